// What is learned, seen from the scores: two classes, several (one against the
// rest), or a number.
#pragma once

#include "numerics.hpp"
#include "params.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

constexpr double most_margin = 8.0;  // beyond this an expert's certainty counts no more
constexpr double most_risk = 8.0;

inline double clip_margin(double margin) {
    margin = margin < most_margin ? margin : most_margin;
    return margin > -most_margin ? margin : -most_margin;
}

inline double sigmoid(double z) {
    const double e = exp_neg(z > 0.0 ? -z : z);
    return (z > 0.0 ? 1.0 : e) / (1.0 + e);
}

// log(1 + exp(z))
inline double softplus(double z) { return (z > 0.0 ? z : 0.0) + log_one_plus(exp_neg(z > 0.0 ? -z : z)); }

inline bool is_classification(Task task) { return task == Task::binary || task == Task::classes; }

// 1 where output k stands for the label y, else 0.
inline double target(Task task, size_t k, double y) {
    if (task == Task::binary) return y > 0.0 ? 1.0 : 0.0;
    return double(k) == y ? 1.0 : 0.0;
}

inline bool label_fits(Task task, size_t outputs, double y) {
    if (task != Task::classes || y != y) return true;
    return y >= 0.0 && y < double(outputs) && y == std::floor(y);
}

// The risk of a labelled row, from its scores before the update.
inline double risk_of(Task task, size_t outputs, const double* scores, double y) {
    switch (task) {
        case Task::binary: {
            const double margin = clip_margin(scores[0]);
            return softplus(y > 0.0 ? -margin : margin);
        }
        case Task::classes: {
            double total = 0.0;
            for (size_t k = 0; k < outputs; ++k) total += sigmoid(clip_margin(scores[k]));
            const double risk = log_positive(total / sigmoid(clip_margin(scores[size_t(y)])));
            return risk < most_risk ? risk : most_risk;
        }
        case Task::squared: return (y - scores[0]) * (y - scores[0]);
        case Task::absolute: return std::fabs(y - scores[0]);
    }
    return 0.0;
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
