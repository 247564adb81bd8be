// Exponential weights over experts that never lose sight of any of them: after
// each round a share of all weight is spread evenly (Herbster and Warmuth, 1998).
#pragma once

#include "tasks.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// All its numbers lie in a block of FixedShare::reals(experts) doubles.
class FixedShare {
public:
    static size_t reals(size_t experts) { return 2 * experts + 1; }

    // `prior`: weights that are not negative, not all 0.
    FixedShare(const double* prior, size_t experts, double share, double* block)
        : n_(experts), share_(share), block_(block) {
        double total = 0.0;
        for (size_t j = 0; j < n_; ++j) total += prior[j];
        for (size_t j = 0; j < n_; ++j) block_[j] = prior[j] / total;
        for (size_t j = n_; j < reals(n_); ++j) block_[j] = 0.0;
    }

    size_t experts() const { return n_; }
    const double* weights() const { return block_; }
    const double* cumulative() const { return block_ + n_; }
    double rounds() const { return block_[2 * n_]; }

    // w_j <- w_j exp(-loss_j), normalised, then shared. A round with a NaN does not count.
    void update(const double* losses) {
        double least = HUGE_VAL;
        for (size_t j = 0; j < n_; ++j) {
            if (losses[j] != losses[j]) return;
            if (block_[j] > 0.0 && losses[j] < least) least = losses[j];
        }
        double total = 0.0;
        for (size_t j = 0; j < n_; ++j) {
            const double behind = losses[j] - least;
            // An expert without weight may be ahead of all that have some.
            block_[j] = block_[j] > 0.0 ? block_[j] * exp_neg(-behind) : 0.0;
            total += block_[j];
            block_[n_ + j] += losses[j];
        }
        for (size_t j = 0; j < n_; ++j) block_[j] = (1.0 - share_) * (block_[j] / total) + share_ / double(n_);
        block_[2 * n_] += 1.0;
    }

    double mix_binary(const double* scores) const {
        double total = 0.0;
        for (size_t j = 0; j < n_; ++j) total += block_[j] * sigmoid(scores[j]);
        return total;
    }

    // The same as log(p / (1 - p)), within +-34.5.
    double mix_log_odds(const double* scores) const {
        constexpr double least = 1e-15;
        double p = mix_binary(scores);
        p = p > least ? p : least;
        p = p < 1.0 - least ? p : 1.0 - least;
        return log_positive(p / (1.0 - p));
    }

    // Probabilities of `classes` classes, from that many scores of each expert in turn.
    void mix_classes(const double* scores, size_t classes, double* probabilities) const {
        for (size_t k = 0; k < classes; ++k) probabilities[k] = 0.0;
        for (size_t j = 0; j < n_; ++j) {
            const double* own = scores + j * classes;
            double total = 0.0;
            for (size_t k = 0; k < classes; ++k) total += sigmoid(clip_margin(own[k]));
            for (size_t k = 0; k < classes; ++k)
                probabilities[k] += block_[j] * (sigmoid(clip_margin(own[k])) / total);
        }
        double all = 0.0;
        for (size_t k = 0; k < classes; ++k) all += probabilities[k];
        for (size_t k = 0; k < classes; ++k) probabilities[k] /= all;
    }

    double mix_mean(const double* scores) const { return dot(block_, scores, n_); }

private:
    size_t n_;
    double share_;
    double* block_;  // weights, cumulative losses, rounds
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
