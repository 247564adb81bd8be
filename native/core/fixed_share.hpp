// Exponential weights over experts that never lose sight of any of them: after
// each round a share of all weight is spread evenly (Herbster and Warmuth, 1998).
// Experts that tell classes apart can be told how sure they may be: the margins of
// each are multiplied by a factor that follows its log loss. An expert that is right
// more often than it says would else lose to one that is merely bolder.
#pragma once

#include "tasks.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

constexpr double sureness_prior = 5.0;  // curvature of the log loss that speaks for a factor of 1 beforehand
constexpr double most_sureness = 1.5;   // of a factor's logarithm

// All its numbers lie in a block of FixedShare::reals(experts, sure) doubles.
class FixedShare {
public:
    static size_t reals(size_t experts, bool sure) { return (sure ? 4 : 2) * experts + 1; }

    // `prior`: weights that are not negative, not all 0.
    // `sure`: whether experts are told how sure they may be.
    FixedShare(const double* prior, size_t experts, double share, bool sure, double* block)
        : n_(experts), share_(share), sure_(sure), block_(block) {
        double total = 0.0;
        for (size_t j = 0; j < n_; ++j) total += prior[j];
        for (size_t j = 0; j < n_; ++j) block_[j] = prior[j] / total;
        for (size_t j = n_; j < reals(n_, sure); ++j) block_[j] = 0.0;
    }

    size_t experts() const { return n_; }
    const double* weights() const { return block_; }
    const double* cumulative() const { return block_ + n_; }
    double rounds() const { return block_[2 * n_]; }

    // w_j <- w_j exp(-weight loss_j), normalised, then shared. A round with a NaN does not count.
    void update(const double* losses, double weight = 1.0) {
        double least = HUGE_VAL;
        for (size_t j = 0; j < n_; ++j) {
            if (losses[j] != losses[j]) return;
            if (block_[j] > 0.0 && losses[j] < least) least = losses[j];
        }
        double total = 0.0;
        for (size_t j = 0; j < n_; ++j) {
            const double behind = weight * (losses[j] - least);
            // An expert without weight may be ahead of all that have some.
            block_[j] = block_[j] > 0.0 ? block_[j] * exp_neg(-behind) : 0.0;
            total += block_[j];
            block_[n_ + j] += losses[j];
        }
        for (size_t j = 0; j < n_; ++j) block_[j] = (1.0 - share_) * (block_[j] / total) + share_ / double(n_);
        block_[2 * n_] += 1.0;
    }

    // A labelled round: of one margin an expert, or of one for each of several classes. It counts as so many
    // as its weight says. `losses`: room for one an expert. A round without a label, or with a NaN, does not count.
    void follow(const double* scores, size_t classes, double y, double weight, double* losses) {
        if (y != y) return;
        for (size_t i = 0; i < n_ * classes; ++i)
            if (scores[i] != scores[i]) return;
        for (size_t j = 0; j < n_; ++j) {
            const Step step = classes == 1 ? binary_step(j, scores[j], y) : classes_step(j, scores + j * classes, classes, y);
            losses[j] = step.loss;
            if (!sure_) continue;
            double& logarithm = block_[2 * n_ + 1 + j];
            double& curvature = block_[3 * n_ + 1 + j];
            // Labels of long ago count less here too.
            curvature = (1.0 - share_) * curvature + weight * step.curvature;
            logarithm -= weight * step.slope / (sureness_prior + curvature);
            logarithm = logarithm < most_sureness ? logarithm : most_sureness;
            logarithm = logarithm > -most_sureness ? logarithm : -most_sureness;
        }
        update(losses, weight);
    }

    // By what the margins of an expert are multiplied.
    double sureness(size_t j) const {
        if (!sure_) return 1.0;
        const double logarithm = block_[2 * n_ + 1 + j];
        return logarithm > 0.0 ? 1.0 / exp_neg(-logarithm) : exp_neg(logarithm);
    }

    double mix_binary(const double* scores) const {
        double total = 0.0;
        for (size_t j = 0; j < n_; ++j) total += block_[j] * sigmoid(sureness(j) * scores[j]);
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
            const double factor = sureness(j);
            double total = 0.0;
            for (size_t k = 0; k < classes; ++k) total += sigmoid(clip_margin(factor * own[k]));
            for (size_t k = 0; k < classes; ++k)
                probabilities[k] += block_[j] * (sigmoid(clip_margin(factor * own[k])) / total);
        }
        double all = 0.0;
        for (size_t k = 0; k < classes; ++k) all += probabilities[k];
        for (size_t k = 0; k < classes; ++k) probabilities[k] /= all;
    }

    double mix_mean(const double* scores) const { return dot(block_, scores, n_); }

private:
    // The loss of a round, its slope in the logarithm of the factor, and what it adds to the curvature.
    struct Step {
        double loss, slope, curvature;
    };

    Step binary_step(size_t j, double score, double y) const {
        const double margin = clip_margin(sureness(j) * score), p = sigmoid(margin);
        const double target = y > 0.0 ? 1.0 : 0.0;
        return {softplus(y > 0.0 ? -margin : margin), (p - target) * margin, p * (1.0 - p) * margin * margin};
    }

    // log p_k = log s_k - log sum s, with s_k = sigmoid(m_k): moving the factor moves log s_k by m_k (1 - s_k).
    Step classes_step(size_t j, const double* scores, size_t classes, double y) const {
        const double factor = sureness(j);
        double total = 0.0, mean = 0.0, squares = 0.0, own = 0.0;
        for (size_t k = 0; k < classes; ++k) {
            const double margin = clip_margin(factor * scores[k]), s = sigmoid(margin), moves = margin * (1.0 - s);
            total += s;
            mean += s * moves;
            squares += s * moves * moves;
            if (double(k) == y) own = moves;
        }
        mean /= total;
        const double risk = log_positive(total / sigmoid(clip_margin(factor * scores[size_t(y)])));
        const double spread = squares / total - mean * mean;
        return {risk < most_risk ? risk : most_risk, mean - own, spread > 0.0 ? spread : 0.0};
    }

    size_t n_;
    double share_;
    bool sure_;
    double* block_;  // weights, cumulative losses, rounds; then logarithms of the factors, and curvatures
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
