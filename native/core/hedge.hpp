// Exponential weights over experts, with what is needed to check their regret.
#pragma once

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// All its numbers lie in a block of Hedge::reals(experts) doubles.
class Hedge {
public:
    static size_t reals(size_t experts) { return 2 * experts + 4; }

    // eta > 0: a fixed rate; eta = 0: AdaHedge (de Rooij, van Erven, Grunwald and Koolen, 2014).
    Hedge(size_t experts, double eta, double* block) : n_(experts), eta_(eta), block_(block) {
        for (size_t i = 0; i < reals(experts); ++i) block_[i] = 0.0;
        weigh(0.0);
    }

    // Goes on with what the block holds.
    struct Adopt {};
    Hedge(size_t experts, double eta, double* block, Adopt) : n_(experts), eta_(eta), block_(block) {}

    size_t experts() const { return n_; }
    const double* weights() const { return block_; }
    const double* cumulative() const { return block_ + n_; }     // risk of each expert so far
    double mixture() const { return block_[2 * n_]; }            // risk of the weighted combination so far
    double gaps() const { return block_[2 * n_ + 1]; }           // sum of the mixability gaps
    double largest() const { return block_[2 * n_ + 2]; }        // the largest risk seen
    double rounds() const { return block_[2 * n_ + 3]; }

    // The rate in force; 0 stands for an infinite one (follow the leader).
    double rate() const {
        if (eta_ > 0.0) return eta_;
        if (!(gaps() > 0.0)) return 0.0;
        const double rate = log_positive(double(n_)) / gaps();
        return rate < 1e100 ? rate : 1e100;
    }

    // Kept apart: inlined where the values are two, its loop for many makes compilers warn.
    SF2EL_APART double combine(const double* values) const { return dot(block_, values, n_); }

    // Takes the risks of a round; returns the combination's risk, weighted as before the round.
    double update(const double* risks) {
        const double mixed = combine(risks);
        const double eta = rate();
        const double before = mix(eta);
        for (size_t i = 0; i < n_; ++i) {
            block_[n_ + i] += risks[i];
            if (risks[i] > block_[2 * n_ + 2]) block_[2 * n_ + 2] = risks[i];
        }
        const double gap = mixed - (mix(eta) - before);
        block_[2 * n_] += mixed;
        if (gap > 0.0) block_[2 * n_ + 1] += gap;
        block_[2 * n_ + 3] += 1.0;
        weigh(rate());
        return mixed;
    }

private:
    double least() const {
        double best = block_[n_];
        for (size_t i = 1; i < n_; ++i) best = block_[n_ + i] < best ? block_[n_ + i] : best;
        return best;
    }

    // -log(mean of exp(-eta cumulative)) / eta, which is the smallest one for an infinite eta.
    double mix(double eta) const {
        const double best = least();
        if (!(eta > 0.0)) return best;
        double total = 0.0;
        for (size_t i = 0; i < n_; ++i) total += exp_neg(-eta * (block_[n_ + i] - best));
        return best - log_positive(total / double(n_)) / eta;
    }

    void weigh(double eta) {
        const double best = least();
        double total = 0.0;
        for (size_t i = 0; i < n_; ++i) {
            const double behind = block_[n_ + i] - best;
            block_[i] = eta > 0.0 ? exp_neg(-eta * behind) : (behind == 0.0 ? 1.0 : 0.0);
            total += block_[i];
        }
        for (size_t i = 0; i < n_; ++i) block_[i] /= total;
    }

    size_t n_;
    double eta_;
    double* block_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
