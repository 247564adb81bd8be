// Running mean and covariance of rows, and the affine map that is made from them.
#pragma once

#include <algorithm>

#include "dense.hpp"
#include "half.hpp"

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
    Moments(size_t dim, void* block) : Moments(dim, block, Adopt{}, dim) {
        std::memset(block, 0, bytes(dim));
    }

    // Goes on with a block that has `room` for features, of which `dim` are in use.
    struct Adopt {};
    Moments(size_t room, void* block, Adopt, size_t dim)
        : dim_(dim), count_(static_cast<double*>(block)), mean_(count_ + 1),
          sums_(reinterpret_cast<Real*>(mean_ + room)) {}

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

    // Gives each gap of a row, where it is NaN, the mean of that feature given those observed, as if all were
    // Gaussian; nothing where too little is known. The fewer rows there were, the less is made of what they have in
    // common. `view` is the row as these rows are, `scratch` fill_reals(dim) doubles. With `keep` the row is then
    // observed: as filled, and with the covariance that the gaps have given the rest, which expected values lack.
    void fill(const double* row, double* view, double* scratch, bool keep = false) {
        const size_t seen = size_t(std::count_if(row, row + dim_, [](double x) { return x == x; }));
        const size_t gaps = dim_ - seen;
        double* own = scratch;
        scratch += dim_;
        if (seen == 0) return;
        if (gaps == 0 || !(*count_ >= 2.0)) {
            if (keep) observe(view, own);
            return;
        }
        // Sums of products, those of observed features first, with the row itself as the last column: each step takes
        // one observed feature out of the rest. What is left of the gaps is their covariance given the row.
        const size_t stride = (dim_ + lanes) / lanes * lanes;
        Real* m = reinterpret_cast<Real*>(scratch);
        size_t* order = reinterpret_cast<size_t*>(m + dim_ * stride);
        for (size_t i = 0, a = 0, g = seen; i < dim_; ++i) order[row[i] == row[i] ? a++ : g++] = i;
        double trace = 0.0;
        for (size_t i = 0; i < dim_; ++i) trace += double(sums_[packed_at(i, i)]);
        const Real ridge = static_cast<Real>((fill_ridge + 1.0 / *count_) * trace / double(dim_) + 1e-12 * *count_);
        for (size_t a = 0; a < dim_; ++a) {
            const size_t i = order[a];
            Real* to = m + a * stride;
            for (size_t b = 0; b < a; ++b) to[b] = Real(0);
            for (size_t b = a; b < dim_; ++b) to[b] = sums_[packed_at(i, order[b])];
            for (size_t b = dim_; b < stride; ++b) to[b] = Real(0);
            if (a < seen) to[dim_] = static_cast<Real>(view[i] - mean_[i]);
        }
        for (size_t i = 0; i < seen; ++i) {
            const Real* from = m + i * stride;
            const Real pivot = Real(1) / ((from[i] > Real(0) ? from[i] : Real(0)) + ridge);
            for (size_t j = i + 1; j < dim_; ++j) {
                const Real share = from[j] * pivot;
                Real* to = m + j * stride;
                for (size_t k = j / lanes * lanes; k < stride; ++k) to[k] -= share * from[k];
            }
        }
        for (size_t a = seen; a < dim_; ++a) {
            const size_t i = order[a];
            view[i] = within(mean_[i] - double(m[a * stride + dim_]), most_filled);
        }
        if (!keep) return;
        const double by = 1.0 / *count_;
        observe(view, own);
        for (size_t a = seen; a < dim_; ++a)
            for (size_t b = a; b < dim_; ++b) {
                const double left = within(double(m[a * stride + b]) * by, most_filled * most_filled);
                sums_[packed_at(order[a], order[b])] += static_cast<Real>(a == b && left < 0.0 ? 0.0 : left);
            }
    }

    // In doubles: a row of deviations, a matrix, and an order of the features.
    static size_t fill_reals(size_t dim) { return dim + dim * (dim + lanes) + dim; }

    double& count() { return *count_; }
    double* mean() { return mean_; }
    Real* sums() { return sums_; }

    double covariance(size_t i, size_t j) const {
        return *count_ > 0.0 ? double(sums_[packed_at(i, j)]) / *count_ : 0.0;
    }

private:
    // Scaled rows never come near the bound; sums that are no covariance, from damage, would go beyond all.
    static constexpr double fill_ridge = 1e-2, most_filled = 1e6;
    static constexpr size_t lanes = 8;

    static double within(double value, double most) {
        value = value < most ? value : most;
        return value > -most ? value : -most;
    }

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

    // Goes on with what the block holds: bytes(from, to) bytes, aligned to 8; zeros for a new one.
    AffineMap(size_t from, size_t to, double limit, void* block)
        : from_(from), to_(to), limit_(limit), center_(static_cast<double*>(block)),
          offset_(center_ + from), linear_(reinterpret_cast<Real*>(offset_ + to)) {}

    void apply(const double* z, double* x) const {
        for (size_t j = 0; j < to_; ++j) {
            double value = offset_[j];
            for (size_t i = 0; i < from_; ++i) value += double(linear_[j * from_ + i]) * (z[i] - center_[i]);
            if (limit_ > 0.0) {
                value = value < limit_ ? value : limit_;
                value = value > -limit_ ? value : -limit_;
            }
            x[j] = value;
        }
    }

    double* center() { return center_; }
    double* offset() { return offset_; }
    Real* linear() { return linear_; }  // M by rows

    // One element of M.
    double at(size_t j, size_t i) const { return double(linear_[j * from_ + i]); }

private:
    size_t from_, to_;
    double limit_;
    double* center_;
    double* offset_;
    Real* linear_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
