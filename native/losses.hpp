// Losses: value and derivative in the score.
#pragma once

#include "numerics.hpp"
#include "params.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

inline double sigmoid(double z) {
    const double e = exp_neg(z < 0 ? z : -z);
    return z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

inline double loss_value(Loss loss, double score, double y) {
    const double short_of_margin = 1.0 - y * score > 0.0 ? 1.0 - y * score : 0.0;
    switch (loss) {
        case Loss::logistic: {
            const double z = -y * score;
            return (z > 0 ? z : 0.0) + log_one_plus(exp_neg(z < 0 ? z : -z));
        }
        case Loss::hinge: return short_of_margin;
        case Loss::squared_hinge: return short_of_margin * short_of_margin;
        case Loss::squared: return (score - y) * (score - y);
    }
    return 0.0;
}

inline double loss_derivative(Loss loss, double score, double y) {
    const double short_of_margin = 1.0 - y * score > 0.0 ? 1.0 - y * score : 0.0;
    switch (loss) {
        case Loss::logistic: return -y * sigmoid(-y * score);
        case Loss::hinge: return y * score < 1.0 ? -y : 0.0;
        case Loss::squared_hinge: return -2.0 * y * short_of_margin;
        case Loss::squared: return 2.0 * (score - y);
    }
    return 0.0;
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
