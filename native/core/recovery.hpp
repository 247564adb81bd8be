// The map from the new space to the old one: least squares over the rows that
// had both, from the normal equations alone, so that no row is stored.
#pragma once

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

struct RecoveryParams {
    std::uint32_t from = 1;  // features of the new space
    std::uint32_t to = 1;    // features of the old space
    double ridge = 1e-3;     // as a share of the mean diagonal of Z'Z; 0: plain least squares, of least norm
    bool intercept = false;
};

// All its numbers lie in a block of RecoveryMap::reals(p) doubles.
class RecoveryMap {
public:
    static size_t reals(const RecoveryParams& p) {
        return size_t(p.from) * p.to + p.from + p.to + packed_size(p.from) + 1;
    }
    RecoveryMap(const RecoveryParams& p, double* block) : RecoveryMap(p, block, Adopt{}) {
        for (size_t i = 0; i < reals(p); ++i) block[i] = 0.0;
    }

    // Goes on with what the block holds.
    struct Adopt {};
    RecoveryMap(const RecoveryParams& p, double* block, Adopt) : p_(p) {
        matrix_ = block;
        from_sum_ = matrix_ + size_t(p.from) * p.to;
        to_sum_ = from_sum_ + p.from;
        normal_ = to_sum_ + p.to;
        count_ = normal_ + packed_size(p.from);
    }

    double rows() const { return *count_; }
    const double* matrix() const { return matrix_; }  // from x to, by rows

    // One row of the overlap: z in the new space, x in the old.
    void observe(const double* z, const double* x) {
        for (size_t i = 0; i < p_.from; ++i) {
            double* cross = matrix_ + i * p_.to;
            for (size_t j = 0; j < p_.to; ++j) cross[j] += z[i] * x[j];
            double* row = normal_ + packed_row(i);
            for (size_t j = 0; j <= i; ++j) row[j] += z[i] * z[j];
            from_sum_[i] += z[i];
        }
        for (size_t j = 0; j < p_.to; ++j) to_sum_[j] += x[j];
        *count_ += 1.0;
    }

    // Solves for the map; the normal equations are used up. `scratch`: scratch_reals(p) doubles.
    static size_t scratch_reals(const RecoveryParams& p) {
        const size_t d = p.from;
        return (p.ridge > 0.0 ? 0 : 2 * d * d) + 2 * d;
    }

    void solve(double* scratch) {
        const size_t d = p_.from;
        if (!(*count_ > 0.0)) return;
        if (p_.intercept) centre();
        double scale = 0.0;
        for (size_t i = 0; i < d; ++i) scale += normal_[packed_row(i) + i];
        scale /= double(d);
        if (!(scale > 1e-290)) {  // nothing to learn from, or squares that have underflown
            for (size_t i = 0; i < d * p_.to; ++i) matrix_[i] = 0.0;
            return;
        }
        // Divided by the mean diagonal first, so that products of large values stay finite.
        for (size_t i = 0; i < packed_size(d); ++i) normal_[i] /= scale;
        for (size_t i = 0; i < d * p_.to; ++i) matrix_[i] /= scale;
        if (p_.ridge > 0.0) {
            for (size_t i = 0; i < d; ++i) normal_[packed_row(i) + i] += p_.ridge;
            packed_invert(normal_, scratch, d);
        } else {
            pseudo_invert(scratch + 2 * d);
        }
        for (size_t j = 0; j < p_.to; ++j) {
            for (size_t i = 0; i < d; ++i) scratch[i] = matrix_[i * p_.to + j];
            packed_times(normal_, scratch, scratch + d, d);
            for (size_t i = 0; i < d; ++i) matrix_[i * p_.to + j] = bounded(scratch[d + i]);
        }
    }

    // What the old features would have read.
    void recover(const double* z, double* x) const {
        for (size_t j = 0; j < p_.to; ++j) x[j] = p_.intercept ? to_sum_[j] : 0.0;
        for (size_t i = 0; i < p_.from; ++i) {
            const double zi = p_.intercept ? z[i] - from_sum_[i] : z[i];
            const double* row = matrix_ + i * p_.to;
            for (size_t j = 0; j < p_.to; ++j) x[j] += zi * row[j];
        }
        for (size_t j = 0; j < p_.to; ++j) x[j] = saturate(x[j]);
    }

private:
    // Within what a feature of at most 1e100 can be multiplied by.
    static double bounded(double value) {
        value = value < 1e200 ? value : 1e200;
        return value > -1e200 ? value : -1e200;
    }

    // Turns the sums into means and takes them out of the normal equations.
    void centre() {
        const double count = *count_;
        for (size_t i = 0; i < p_.from; ++i) from_sum_[i] /= count;
        for (size_t j = 0; j < p_.to; ++j) to_sum_[j] /= count;
        for (size_t i = 0; i < p_.from; ++i) {
            // What is left of a feature that never varied is rounding, and must not be scaled up.
            double& own = normal_[packed_row(i) + i];
            const double spread = own - count * from_sum_[i] * from_sum_[i];
            const bool varied = spread > 1e-12 * own;
            for (size_t j = 0; j <= i; ++j) {
                double& value = normal_[packed_row(i) + j];
                const bool both = varied && normal_[packed_row(j) + j] > 0.0;
                value = both ? value - count * from_sum_[i] * from_sum_[j] : 0.0;
            }
            for (size_t j = 0; j < p_.to; ++j) {
                double& value = matrix_[i * p_.to + j];
                value = varied ? value - count * from_sum_[i] * to_sum_[j] : 0.0;
            }
        }
    }

    // normal <- its pseudo-inverse, by cyclic Jacobi rotations. `work`: 2 d^2 doubles.
    void pseudo_invert(double* work) {
        const size_t d = p_.from;
        double* a = work;
        double* v = work + d * d;
        for (size_t i = 0; i < d; ++i)
            for (size_t j = 0; j < d; ++j) {
                a[i * d + j] = normal_[packed_at(i, j)];
                v[i * d + j] = i == j ? 1.0 : 0.0;
            }
        for (int sweep = 0; sweep < 60; ++sweep) {
            double off = 0.0, on = 0.0;
            for (size_t i = 0; i < d; ++i)
                for (size_t j = 0; j < d; ++j) (i == j ? on : off) += a[i * d + j] * a[i * d + j];
            if (off <= 1e-30 * on) break;
            for (size_t p = 0; p + 1 < d; ++p)
                for (size_t q = p + 1; q < d; ++q) rotate(a, v, d, p, q);
        }
        double largest = 0.0;
        for (size_t i = 0; i < d; ++i) largest = a[i * d + i] > largest ? a[i * d + i] : largest;
        // Normal equations square the condition number: smaller eigenvalues than this are rounding.
        const double cutoff = 1e-13 * double(d) * largest;
        for (size_t i = 0; i < d; ++i)
            for (size_t j = 0; j <= i; ++j) {
                double total = 0.0;
                for (size_t k = 0; k < d; ++k)
                    if (a[k * d + k] > cutoff) total += v[i * d + k] * v[j * d + k] / a[k * d + k];
                normal_[packed_row(i) + j] = total;
            }
    }

    static void rotate(double* a, double* v, size_t d, size_t p, size_t q) {
        const double apq = a[p * d + q];
        if (apq == 0.0) return;
        const double theta = (a[q * d + q] - a[p * d + p]) / (2.0 * apq);
        const double t = (theta >= 0 ? 1.0 : -1.0) / (std::fabs(theta) + std::sqrt(theta * theta + 1.0));
        const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
        for (size_t k = 0; k < d; ++k) {
            const double x = a[k * d + p], y = a[k * d + q];
            a[k * d + p] = c * x - s * y;
            a[k * d + q] = s * x + c * y;
        }
        for (size_t k = 0; k < d; ++k) {
            const double x = a[p * d + k], y = a[q * d + k];
            a[p * d + k] = c * x - s * y;
            a[q * d + k] = s * x + c * y;
            const double xv = v[k * d + p], yv = v[k * d + q];
            v[k * d + p] = c * xv - s * yv;
            v[k * d + q] = s * xv + c * yv;
        }
    }

    RecoveryParams p_;
    double *matrix_, *from_sum_, *to_sum_, *normal_, *count_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
