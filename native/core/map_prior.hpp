// The prior of a map: coordinates in which all of W is alike, and whether zero counts. What is computed, and why,
// is in tests/oracles/gaussian_map.py; the letters are the same.
#pragma once

#include "dense.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// x' = A'x, with A = D (I + c 11')^(1/2) / (1 + c)^(1/2) and D = diag(tau).
struct MapCoordinates {
    const double* tau;
    size_t dim;
    double common;

    // (I + c 11')^(1/2) is I and this times 11'.
    double more() const { return (std::sqrt(1.0 + common * double(dim)) - 1.0) / double(dim); }
    double size() const { return std::sqrt(1.0 + common); }

    // a <- A'a.
    void within(double* a) const {
        for (size_t i = 0; i < dim; ++i) a[i] *= tau[i];
        const double added = more() * sum(a, dim);
        for (size_t i = 0; i < dim; ++i) a[i] = (a[i] + added) / size();
    }

    // a <- A'^-1 a.
    void without(double* a) const {
        const double less = more() / (1.0 + more() * double(dim)) * sum(a, dim);
        for (size_t i = 0; i < dim; ++i) a[i] = (a[i] - less) * size() / tau[i];
    }

    // Matrices with a row for each feature: m <- A'm. `spare`: a number for each column.
    void within(const Dense& m, double* spare) const {
        for (size_t j = 0; j < m.width; ++j) spare[j] = 0.0;
        for (size_t i = 0; i < dim; ++i)
            for (size_t j = 0; j < m.width; ++j) spare[j] += m[i][j] *= tau[i];
        for (size_t i = 0; i < dim; ++i)
            for (size_t j = 0; j < m.width; ++j) m[i][j] = (m[i][j] + more() * spare[j]) / size();
    }

    // m <- A'mA.
    void around(const Dense& m, double* spare) const {
        within(m, spare);
        for (size_t i = 0; i < dim; ++i) within(m[i]);
    }
};

class MapPrior {
public:
    static constexpr double common = 0.3, unlikely = 2.0, one_sign = 3.0, least_weight = 0.05;
    static constexpr double sure_of_zero = 3.0, farthest_zero = 100.0;
    static constexpr double shares_of_noise[] = {0.1, 0.9};

    // The overlap's sums of products about its mean, and matrices of the same sizes and p + q numbers to work with.
    MapPrior(double rows, const Dense& xx, const Dense& xa, const double* aa, const Dense& square, const Dense& wide,
             double* spare)
        : rows_(rows), p_(xx.rows), q_(xa.width), xx_(xx), xa_(xa), aa_(aa), square_(square), wide_(wide),
          spare_(spare) {}

    // tau, and c, which it returns, by what the overlap says of sums of readings, against old features that all count
    // alike. `alike`: p numbers to work with.
    double weigh(const double* deviation, double* tau, double* alike) const {
        double squares = 0.0, varying = 0.0;
        for (size_t i = 0; i < p_; ++i) {
            alike[i] = 1.0;
            tau[i] = 1.0;
            squares += deviation[i] * deviation[i];
            varying += deviation[i] > 0.0 ? 1.0 : 0.0;
        }
        if (!(rows_ > 2.0) || !(varying > 0.0)) return 0.0;
        const double size = std::sqrt(squares / varying);
        for (size_t i = 0; i < p_; ++i) {
            const double weight = deviation[i] / size;
            tau[i] = weight > least_weight ? weight : least_weight;
        }
        const double odds = evidence({tau, p_, common}) - evidence({alike, p_, 0.0}) - unlikely;
        const double less = exp_neg(odds > 0.0 ? -odds : odds), share = (odds > 0.0 ? 1.0 : less) / (1.0 + less);
        double mean = 0.0;
        for (size_t i = 0; i < p_; ++i) {
            tau[i] = share * (tau[i] * tau[i]) + (1.0 - share);
            mean += tau[i] / double(p_);
        }
        for (size_t i = 0; i < p_; ++i) tau[i] = std::sqrt(tau[i] / mean);
        return share * common;
    }

    // Whether new features read 0 where the old ones do: at (x, a) from the overlap's mean. Takes x for itself.
    bool zero_counts(const double* tau, double* x, const double* a, double ridge) const {
        const MapCoordinates at{tau, p_, one_sign};
        copy(square_, xx_);
        copy(wide_, xa_);
        at.around(square_, spare_);
        at.within(wide_, spare_);
        at.within(x);
        double total = 0.0;
        for (size_t i = 0; i < p_; ++i) total += square_[i][i];
        if (!(rows_ > 2.0) || !(total > 0.0)) return false;
        const double scale = rows_ / total, length = dot(x, x, p_);
        factor(square_, [ridge](size_t) { return ridge; });
        solve_lower(square_, wide_);
        for (size_t i = 0; i < p_; ++i) {
            for (size_t k = 0; k < i; ++k) x[i] -= square_[k][i] * x[k];
            x[i] /= square_[i][i];
        }
        const double known = scale * ridge * (1.0 + 1.0 / rows_ + dot(x, x, p_)), open = known + scale * length;
        double odds = 0.0;
        for (size_t j = 0; j < q_; ++j) {
            if (!(aa_[j] > 0.0)) continue;
            double left = a[j];
            for (size_t i = 0; i < p_; ++i) left -= wide_[i][j] * x[i];
            // In deviations that the new feature had in the overlap.
            odds += 0.5 * (log_positive(open / known) - left * left * (rows_ / aa_[j]) * (1.0 / known - 1.0 / open));
        }
        return odds >= sure_of_zero;
    }

    // Where all old features read 0, in their deviations from their means; false: too far away.
    static bool zero_of(const double* mean, const double* deviation, size_t p, double* zero) {
        bool near = true;
        for (size_t i = 0; i < p; ++i) {
            zero[i] = deviation[i] > 0.0 ? -mean[i] / deviation[i] : 0.0;
            near = near && std::fabs(zero[i]) <= farthest_zero;
        }
        return near;
    }

private:
    // The log probability of the overlap's new features, but for what does not depend on the coordinates.
    double evidence(const MapCoordinates& at) const {
        const double freedom = rows_ - 1.0;
        double varying = 0.0, found[2], most = 0.0;
        for (size_t j = 0; j < q_; ++j) varying += aa_[j] > 0.0 ? 1.0 : 0.0;
        for (int k = 0; k < 2; ++k) {
            const double noise = shares_of_noise[k] / (1.0 - shares_of_noise[k]);
            copy(square_, xx_);
            copy(wide_, xa_);
            at.around(square_, spare_);
            at.within(wide_, spare_);
            double total = 0.0;
            for (size_t i = 0; i < p_; ++i) total += square_[i][i];
            if (!(total > 0.0) || !(varying > 0.0)) return 0.0;
            const double scale = freedom / total;
            for (size_t i = 0; i < p_; ++i)
                for (size_t j = 0; j < p_; ++j) square_[i][j] *= scale;
            factor(square_, [noise](size_t) { return noise; });
            solve_lower(square_, wide_);
            double volume = -double(p_) * log_positive(noise), left = 0.0;
            for (size_t j = 0; j < q_; ++j) spare_[j] = 0.0;
            for (size_t i = 0; i < p_; ++i) {
                volume += 2.0 * log_positive(square_[i][i]);
                for (size_t j = 0; j < q_; ++j) spare_[j] += wide_[i][j] * wide_[i][j];
            }
            for (size_t j = 0; j < q_; ++j)
                if (aa_[j] > 0.0) left += (1.0 - scale * spare_[j] / aa_[j]) / varying;
            found[k] = -0.5 * varying * (volume + freedom * log_positive(left > 1e-9 ? left : 1e-9));
            if (!k || found[k] > most) most = found[k];
        }
        return most + log_positive(exp_neg(found[0] - most) + exp_neg(found[1] - most));
    }

    const double rows_;
    const size_t p_, q_;
    const Dense& xx_;
    const Dense& xa_;
    const double* aa_;
    const Dense& square_;
    const Dense& wide_;
    double* spare_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
