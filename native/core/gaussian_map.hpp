// The map that recovers vanished features, from means and covariances alone. What is computed, and why, is in
// tests/oracles/gaussian_map.py; the letters are the same.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "dense.hpp"
#include "map_prior.hpp"
#include "params.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

class GaussianMap {
public:
    static constexpr double ridge = 0.1, few = 5.0, least_noise = 1e-3, shrunk = 0.2, unseen_share = 0.1;
    static constexpr double trial_ridge = 0.1, caution = 20.0, noise_share = 0.5, soon = 5.0;
    static constexpr int steps = 10, few_steps = 5;

    static size_t scratch_reals(const MapKnown& known) {
        const size_t p = known.to, q = known.from;
        return 4 * Dense::reals(p, p) + 4 * Dense::reals(p, q) + 2 * Dense::reals(q, q) + 2 * Dense::reals(q, p) +
               10 * q + 5 * p;
    }

    // `scratch`: scratch_reals(known) doubles.
    GaussianMap(const MapKnown& known, double* scratch)
        : known_(known), p_(known.to), q_(known.from), later_(known.new_mean ? known.later : 0.0),
          spread_(p_, p_, scratch), xx_(p_, p_, scratch), normal_(p_, p_, scratch), inverse_root_(p_, p_, scratch),
          xa_(p_, q_, scratch), both_xa_(p_, q_, scratch), w_(p_, q_, scratch), together_(p_, q_, scratch),
          correlation_(q_, q_, scratch), around_(q_, q_, scratch), gain_(q_, p_, scratch), seen_(q_, p_, scratch) {
        for (double** vector : {&center_, &deviation_, &inverse_, &a_, &rest_, &aa_, &both_aa_, &noise_, &known_noise_}) {
            *vector = scratch;
            scratch += q_;
        }
        for (double** vector : {&x_, &tau_, &zero_, &alike_}) {
            *vector = scratch;
            scratch += p_;
        }
        spare_ = scratch;  // p + q
        at_ = {tau_, p_, 0.0};
    }

    // `matrix`: old features by (new features, 1), by rows; `center`: what the new ones are taken from. Returns the
    // share of the new features that the old ones do not explain.
    double solve(double* matrix, double* center) {
        standardise();
        sum();
        const bool zero = take_prior();
        const double unexplained = doubt();
        ridge_ = ridge + unexplained * double(p_);
        if (zero) add_zero();
        pool(0.0);
        fit();
        if (later_ > 0.0) {
            // The mean of many later rows says where the old features' mean was, as surely as the noise allows.
            double noise = 0.0;
            for (size_t j = 0; j < q_; ++j) noise += noise_[j];
            pool(later_ * (noise / double(q_)));
            const double left = soon / (soon + later_), unseen = fit() * (left * left);
            correlation(correlation_, known_.new_covariance, spare_);
            const int most = known_.old_covariance ? steps : few_steps;
            for (int step = 0; step < most; ++step) {
                agree();
                for (size_t j = 0; j < q_; ++j) noise_[j] += unseen;
            }
        }
        turn_round(matrix, center);
        return unexplained;
    }

private:
    double covariance(size_t i, size_t j) const { return known_.covariance[i * (q_ + p_) + j]; }

    // The new features in deviations from the mean of all their rows.
    void standardise() {
        for (size_t j = 0; j < q_; ++j) {
            const double variance = covariance(j, j);
            center_[j] = known_.new_mean ? known_.new_mean[j] : known_.mean[j];
            deviation_[j] = known_.new_mean ? known_.new_deviation[j] : std::sqrt(variance > 0.0 ? variance : 0.0);
            const bool varies = deviation_[j] > 1e-12 * std::fabs(center_[j]) + 1e-30;
            inverse_[j] = varies ? 1.0 / deviation_[j] : 0.0;
            a_[j] = (known_.mean[j] - center_[j]) * inverse_[j];
            rest_[j] = later_ > 0.0 ? -known_.rows * a_[j] / later_ : 0.0;
        }
    }

    // S, and the overlap's sums of products about its mean, and that mean.
    void sum() {
        const double rows = known_.rows, divisor = known_.divisor;
        if (known_.old_covariance) correlation(spread_, known_.old_covariance, spare_);
        for (size_t i = 0; i < p_; ++i) {
            // Standardised features of which no more is known are taken as uncorrelated.
            const double kept = known_.old_covariance ? 1.0 - shrunk : 0.0;
            for (size_t j = 0; j < p_; ++j) spread_[i][j] *= kept;
            spread_[i][i] += 1.0 - kept;
            for (size_t j = 0; j < p_; ++j) xx_[i][j] = rows * covariance(q_ + i, q_ + j) * (divisor * divisor);
            for (size_t j = 0; j < q_; ++j) xa_[i][j] = rows * covariance(q_ + i, j) * divisor * inverse_[j];
            x_[i] = known_.mean[q_ + i] * divisor;
        }
        for (size_t j = 0; j < q_; ++j) aa_[j] = rows * covariance(j, j) * (inverse_[j] * inverse_[j]);
    }

    bool has_prior() const { return known_.read_mean && known_.old_covariance; }

    // The prior of W: from here on the old features are in coordinates in which all of it is alike. Returns
    // whether zero counts, which then is in zero_ and, of the new features, in both_aa_.
    bool take_prior() {
        if (!has_prior()) return false;
        const MapPrior prior(known_.rows, xx_, xa_, aa_, normal_, both_xa_, spare_);
        at_.common = prior.weigh(known_.read_deviation, tau_, alike_);
        bool zero = MapPrior::zero_of(known_.read_mean, known_.read_deviation, p_, zero_);
        for (size_t i = 0; i < p_; ++i) zero_[i] -= x_[i];
        if (zero) {
            for (size_t i = 0; i < p_; ++i) alike_[i] = zero_[i];
            for (size_t j = 0; j < q_; ++j) both_aa_[j] = -known_.mean[j] * inverse_[j];
            zero = prior.zero_counts(tau_, alike_, both_aa_, ridge);
        }
        at_.within(xa_, spare_);
        at_.within(x_);
        at_.within(zero_);
        at_.around(xx_, spare_);
        at_.around(spread_, spare_);
        return zero;
    }

    // One more row with both spaces: where all features read 0.
    void add_zero() {
        for (size_t i = 0; i < p_; ++i) {
            for (size_t j = 0; j < p_; ++j) xx_[i][j] += zero_[i] * zero_[j];
            for (size_t j = 0; j < q_; ++j) xa_[i][j] += zero_[i] * both_aa_[j];
        }
        for (size_t j = 0; j < q_; ++j) aa_[j] += both_aa_[j] * both_aa_[j];
    }

    // How far the old features explain the new ones: the share of those explained best, as many as there are old
    // ones, that is left unexplained; in known_noise_ what of each counts as its noise.
    double doubt() {
        const double rows = known_.rows, chance = caution / (rows * rows), trial = trial_ridge * double(p_);
        double total = 0.0;
        for (size_t i = 0; i < p_; ++i) total += xx_[i][i];
        for (size_t j = 0; j < q_; ++j) known_noise_[j] = 0.0;
        if (!(chance < 1.0) || !(total > 0.0)) return 0.0;
        copy(normal_, xx_);
        factor(normal_, [trial](size_t) { return trial; });
        invert_root();
        solve_upper(normal_, inverse_root_);
        normal_.clear();
        add_product(normal_, inverse_root_, xx_);
        double if_exact = 0.0;
        for (size_t i = 0; i < p_; ++i) if_exact += dot(inverse_root_[i], normal_[i], p_);
        if_exact *= trial * trial / total;
        const double squares = sum_of_squares(inverse_root_);
        const double if_noise = (trial * trial * squares + (rows - 1.0 - double(p_))) / (rows - 1.0);
        if (!(if_noise > 1e-9)) return 0.0;
        const auto unexplained = [=](double left) {
            const double share = ((left - if_exact) / if_noise - chance) / (1.0 - chance);
            return share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
        };
        w_.clear();
        add_product(w_, inverse_root_, xa_);
        size_t counted = 0;
        double mean = 0.0;
        for (size_t j = 0; j < q_; ++j) {
            if (!(aa_[j] > 0.0)) continue;
            double left = aa_[j];
            for (size_t i = 0; i < p_; ++i) left -= w_[i][j] * (xa_[i][j] + trial * w_[i][j]);
            spare_[counted++] = left / aa_[j];
            known_noise_[j] = unexplained(left / aa_[j]);
            mean += known_noise_[j];
        }
        if (!counted) return 0.0;
        mean /= double(counted);
        std::sort(spare_, spare_ + counted);
        const size_t enough = counted < p_ ? counted : p_;
        double left = 0.0;
        for (size_t k = 0; k < enough; ++k) left += spare_[k];
        const double share = unexplained(left / double(enough));
        const double counts = share < mean ? share / mean : 1.0;
        for (size_t j = 0; j < q_; ++j) known_noise_[j] *= noise_share * counts;
        return share;
    }

    // inverse_root_ <- R'^-1, where R is the root in normal_.
    void invert_root() {
        inverse_root_.clear();
        for (size_t i = 0; i < p_; ++i) inverse_root_[i][i] = 1.0;
        solve_lower(normal_, inverse_root_);
    }

    // Adds the later rows as one row of weight `extra`, its old features at 0: sums about the common mean.
    void pool(double extra) {
        extra_ = extra;
        weight_ = known_.rows + extra;
        const double between = known_.rows * extra / weight_;
        for (size_t i = 0; i < p_; ++i) {
            const double xi = between * x_[i];
            for (size_t j = 0; j < p_; ++j) xx_[i][j] += xi * x_[j];
            for (size_t j = 0; j < q_; ++j) xa_[i][j] += xi * (a_[j] - rest_[j]);
        }
        for (size_t j = 0; j < q_; ++j) aa_[j] += between * ((a_[j] - rest_[j]) * (a_[j] - rest_[j]));
    }

    // W and R from rows that had both spaces. Returns what of R comes from what they cannot have shown of W.
    double fit() {
        copy(normal_, xx_);
        regress(xa_, aa_, weight_);
        invert_root();
        const double unseen = ridge_ * sum_of_squares(inverse_root_) / double(p_);
        look();
        double shown = 0.0;
        for (size_t i = 0; i < p_; ++i) shown += dot(w_[i], together_[i], q_);
        const double more = unseen_share * unseen * (shown / double(q_));
        for (size_t j = 0; j < q_; ++j) noise_[j] += more;
        return more;
    }

    // A step of expectation-maximisation on rows without the old features.
    void agree() {
        const double weight = few * known_.rows < later_ ? few * known_.rows : later_;
        turn();
        copy(normal_, xx_);
        add_transposed_product(normal_, -weight, gain_, gain_, true);
        solve_upper(around_, gain_);
        seen_.clear();
        add_product(seen_, correlation_, gain_);
        add_transposed_product(normal_, weight, gain_, seen_, true);
        for (size_t i = 0; i < p_; ++i) {
            for (size_t j = i; j < p_; ++j) normal_[i][j] += weight * spread_[i][j];
            for (size_t j = 0; j < q_; ++j) both_xa_[i][j] = xa_[i][j] + weight * seen_[j][i];
        }
        for (size_t j = 0; j < q_; ++j) both_aa_[j] = aa_[j] + weight * correlation_[j][j];
        regress(both_xa_, both_aa_, weight_ + weight);
    }

    // W and R by ridge regression on sums of products; normal_ is that of x with x, and is factored.
    void regress(const Dense& xa, const double* aa, double weight) {
        factor(normal_, [this](size_t) { return ridge_; });
        copy(w_, xa);
        solve_lower(normal_, w_);
        solve_upper(normal_, w_);
        for (size_t j = 0; j < q_; ++j) noise_[j] = aa[j];
        for (size_t i = 0; i < p_; ++i)
            for (size_t j = 0; j < q_; ++j) noise_[j] -= w_[i][j] * (xa[i][j] + ridge_ * w_[i][j]);
        for (size_t j = 0; j < q_; ++j) {
            const double left = noise_[j] / weight;
            noise_[j] = (left > known_noise_[j] ? left : known_noise_[j]) + least_noise;
        }
    }

    // together_ <- SW, how old and new features vary together.
    void look() {
        together_.clear();
        add_product(together_, spread_, w_);
    }

    // around_ <- the root of W'SW + R; gain_ <- half of Bayes' rule: after solve_upper, E[x | a] = gain' a.
    void turn() {
        look();
        around_.clear();
        add_transposed_product(around_, 1.0, w_, together_, true);
        factor(around_, [this](size_t j) { return noise_[j]; });
        transpose(gain_, together_);
        solve_lower(around_, gain_);
    }

    // Bayes' rule: from W and R to the old features given the new ones.
    void turn_round(double* matrix, double* center) {
        turn();
        solve_upper(around_, gain_);
        for (size_t i = 0; i < p_; ++i) x_[i] = known_.rows * x_[i] / weight_;
        if (has_prior()) {
            for (size_t j = 0; j < q_; ++j) at_.without(gain_[j]);
            at_.without(x_);
        }
        for (size_t i = 0; i < p_; ++i) {
            double* row = matrix + i * (q_ + 1);
            for (size_t j = 0; j < q_; ++j) row[j] = inverse_[j] * gain_[j][i] / known_.divisor;
            row[q_] = x_[i] / known_.divisor;
        }
        for (size_t j = 0; j < q_; ++j)
            center[j] = center_[j] + deviation_[j] * ((known_.rows * a_[j] + extra_ * rest_[j]) / weight_);
    }

    const MapKnown known_;
    const size_t p_, q_;
    const double later_;
    double weight_ = 0.0, extra_ = 0.0, ridge_ = ridge;
    const Dense spread_, xx_, normal_, inverse_root_, xa_, both_xa_, w_, together_, correlation_, around_, gain_, seen_;
    double *center_, *deviation_, *inverse_, *a_, *rest_, *aa_, *both_aa_, *noise_, *known_noise_, *x_, *tau_, *zero_, *alike_, *spare_;
    MapCoordinates at_{};
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
