// Running mean and covariance of rows, and the affine map that is made from them.
#pragma once

#include "half.hpp"
#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// Welford's recurrence for a whole matrix: sums of products of deviations, never
// of raw products, so that a large offset does not drown the spread. Count and
// means are doubles; the sums, which are most of it, are Real.
template <class Real>
class Moments {
public:
    static size_t bytes(size_t dim) {
        return (1 + dim) * sizeof(double) + (packed_size(dim) * sizeof(Real) + 7) / 8 * 8;
    }

    // `block`: bytes(dim) bytes, aligned to 8.
    Moments(size_t dim, void* block) : Moments(dim, block, Adopt{}) { std::memset(block, 0, bytes(dim)); }

    struct Adopt {};
    Moments(size_t dim, void* block, Adopt)
        : dim_(dim), count_(static_cast<double*>(block)), mean_(count_ + 1), sums_(reinterpret_cast<Real*>(mean_ + dim)) {}

    // `scratch`: dim doubles.
    void observe(const double* x, double* scratch) {
        const double n = *count_ + 1.0, share = (n - 1.0) / n;
        for (size_t i = 0; i < dim_; ++i) {
            scratch[i] = x[i] - mean_[i];
            mean_[i] += scratch[i] / n;
        }
        for (size_t i = 0; i < dim_; ++i) {
            Real* row = sums_ + packed_row(i);
            const double ahead = scratch[i] * share;
            for (size_t j = 0; j <= i; ++j) row[j] += static_cast<Real>(ahead * scratch[j]);
        }
        *count_ = n;
    }

    double& count() { return *count_; }
    double* mean() { return mean_; }
    Real* sums() { return sums_; }

    double covariance(size_t i, size_t j) const {
        return *count_ > 0.0 ? double(sums_[packed_at(i, j)]) / *count_ : 0.0;
    }

private:
    size_t dim_;
    double* count_;
    double* mean_;
    Real* sums_;  // packed, of products of deviations
};

// x = M (z - center) + offset, each value held within +-limit (0: no limit). A
// center keeps M's rounding from being multiplied by a large offset of z.
template <class Real>
class AffineMap {
public:
    static size_t bytes(size_t from, size_t to) {
        return (from + to) * sizeof(double) + (from * to * sizeof(Real) + 7) / 8 * 8;
    }

    AffineMap(size_t from, size_t to, double limit, void* block) : AffineMap(from, to, limit, block, Adopt{}) {
        std::memset(block, 0, bytes(from, to));
    }

    struct Adopt {};
    AffineMap(size_t from, size_t to, double limit, void* block, Adopt)
        : from_(from), to_(to), limit_(limit), center_(static_cast<double*>(block)), offset_(center_ + from),
          matrix_(reinterpret_cast<Real*>(offset_ + to)) {}

    void apply(const double* z, double* x) const {
        for (size_t j = 0; j < to_; ++j) {
            const Real* row = matrix_ + j * from_;
            double value = offset_[j];
            for (size_t i = 0; i < from_; ++i) value += double(row[i]) * (z[i] - center_[i]);
            if (limit_ > 0.0) {
                value = value < limit_ ? value : limit_;
                value = value > -limit_ ? value : -limit_;
            }
            x[j] = value;
        }
    }

    double* center() { return center_; }
    double* offset() { return offset_; }
    Real* matrix() { return matrix_; }
    void assign(size_t j, size_t i, double value) { matrix_[j * from_ + i] = Real(value); }

private:
    size_t from_, to_;
    double limit_;
    double* center_;
    double* offset_;
    Real* matrix_;  // by rows
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
