// Logistic (or least squares, or least absolute) regression by plain stochastic
// gradient steps: the quickest to start where labels are few.
#pragma once

#include "tasks.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// All its numbers lie in a block of OnlineLogistic::reals(p) doubles.
class OnlineLogistic {
public:
    static size_t reals(const LogisticParams& p) { return size_t(p.outputs) * (p.dim + 1) + 1; }
    static size_t scratch_reals(const LogisticParams& p) { return p.dim; }

    // Goes on with what the block holds: zeros for a new one.
    OnlineLogistic(const LogisticParams& p, double* block, double* scratch) : p_(p), block_(block), x_(scratch) {}

    void predict(const double* x, double* scores) {
        for (size_t j = 0; j < p_.dim; ++j) x_[j] = limit(x[j] * p_.scale);
        for (size_t k = 0; k < p_.outputs; ++k) scores[k] = limit(dot(weights(k), x_, p_.dim) + weights(k)[p_.dim]);
    }

    // The risk from before the update; NaN where y is, and then nothing changes.
    double learn(const double* x, double y, double weight, double* scores) {
        predict(x, scores);
        if (y != y) return y;
        const double risk = risk_of(p_.task, p_.outputs, scores, y);
        double rate = weight * p_.step * exp_neg(-p_.power * log_positive(1.0 + labels()));
        if (p_.task == Task::squared) {
            // A longer step would pass the label.
            const double most = 0.5 / (1.0 + dot(x_, x_, p_.dim));
            rate = rate < most ? rate : most;
        }
        for (size_t k = 0; k < p_.outputs; ++k) {
            const double step = rate * pull(k, scores[k], y);
            double* w = weights(k);
            for (size_t j = 0; j < p_.dim; ++j) w[j] = limit(w[j] + step * x_[j]);
            w[p_.dim] = limit(w[p_.dim] + step);
        }
        labels() += 1.0;
        return risk;
    }

private:
    // Minus the derivative of the loss in the score.
    double pull(size_t k, double score, double y) const {
        if (p_.task == Task::squared) return 2.0 * (y - score);
        if (p_.task == Task::absolute) return y > score ? 1.0 : (y < score ? -1.0 : 0.0);
        return target(p_.task, k, y) - sigmoid(score);
    }

    static double limit(double value) { return saturate(value); }
    double* weights(size_t k) { return block_ + k * (p_.dim + 1); }
    double& labels() { return block_[reals(p_) - 1]; }

    const LogisticParams& p_;
    double* block_;  // weights and intercept of each output, then the number of labels
    double* x_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
