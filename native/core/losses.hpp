// Losses: value and derivative in the score.
#pragma once

#include "numerics.hpp"
#include "params.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

struct LossAt {
    double value;
    double derivative;
};

inline LossAt loss_at(Loss loss, double score, double y) {
    const double margin = y * score;
    const double missing = 1.0 - margin > 0.0 ? 1.0 - margin : 0.0;
    switch (loss) {
        case Loss::logistic: {
            // log(1 + exp(-margin)) and -y / (1 + exp(margin)), from one exponential of a negative number.
            const double e = exp_neg(margin > 0.0 ? -margin : margin);
            const double value = (margin < 0.0 ? -margin : 0.0) + log_one_plus(e);
            return {value, -y * ((margin > 0.0 ? e : 1.0) / (1.0 + e))};
        }
        case Loss::hinge: return {missing, margin < 1.0 ? -y : 0.0};
        case Loss::squared_hinge: return {missing * missing, -2.0 * y * missing};
        case Loss::squared: return {(score - y) * (score - y), 2.0 * (score - y)};
        case Loss::absolute: return {std::fabs(score - y), score > y ? 1.0 : (score < y ? -1.0 : 0.0)};
    }
    return {0.0, 0.0};
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
