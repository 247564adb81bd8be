// Small dense matrices by rows, and what a Gaussian model asks of them. Every
// element of a product is summed over rows in turn, with several columns side by
// side, whatever the width of the processor's lanes.
#pragma once

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// Rows are padded to whole lanes, and to an odd number of them: a power of two would put a whole column into a
// few places of the cache. What is in the padding is never read out.
struct Dense {
    double* at;
    size_t rows, width, stride;

    static size_t padded(size_t m) { return (m + 3) / 4 * 4; }
    static size_t apart(size_t m) { return (padded(m) / 4 | 1) * 4; }
    static size_t reals(size_t n, size_t m) { return n * apart(m); }

    // Takes its numbers, all 0, from the front of `scratch`.
    Dense(size_t n, size_t m, double*& scratch) : at(scratch), rows(n), width(m), stride(apart(m)) {
        clear();
        scratch += rows * stride;
    }

    double* operator[](size_t i) const { return at + i * stride; }
    void clear() const { std::memset(at, 0, rows * stride * sizeof(double)); }
};

// As many columns as the processor takes at once.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(SF2EL_PORTABLE_LANES) && !defined(__AVX__)
typedef double Columns __attribute__((vector_size(2 * sizeof(double))));
SF2EL_INLINE Columns in_each(double value) { return Columns{value, value}; }
#else
using Columns = Lanes<double>;
SF2EL_INLINE Columns in_each(double value) { return spread(value); }
#endif

// to += sign (factors[0] from_0 + factors[step] from_1 + ...), over `count` rows of `from`, for so many columns.
template <int columns>
SF2EL_INLINE void add_rows_tile(double* to, double sign, const double* factors, size_t step, const double* from,
                                size_t stride, size_t count) {
    constexpr int across = sizeof(Columns) / sizeof(double), tile = columns / across;
    Columns sum[tile], row;
    for (int t = 0; t < tile; ++t) std::memcpy(&sum[t], to + t * across, sizeof row);
    for (size_t k = 0; k < count; ++k) {
        const Columns factor = in_each(sign * factors[k * step]);
        for (int t = 0; t < tile; ++t) {
            std::memcpy(&row, from + k * stride + t * across, sizeof row);
            sum[t] = sum[t] + factor * row;
        }
    }
    for (int t = 0; t < tile; ++t) std::memcpy(to + t * across, &sum[t], sizeof row);
}

// The same for all columns of a row, or for those from the lanes of column `first` on.
inline void add_rows(double* to, double sign, const double* factors, size_t step, const Dense& from, size_t begin,
                     size_t end, size_t first = 0) {
    const size_t count = end - begin, stride = from.stride, width = Dense::padded(from.width);
    const double* rows = from[begin];
    size_t j = first / 4 * 4;
    for (; j + 16 <= width; j += 16) add_rows_tile<16>(to + j, sign, factors, step, rows + j, stride, count);
    switch (width - j) {
        case 12: return add_rows_tile<12>(to + j, sign, factors, step, rows + j, stride, count);
        case 8: return add_rows_tile<8>(to + j, sign, factors, step, rows + j, stride, count);
        case 4: return add_rows_tile<4>(to + j, sign, factors, step, rows + j, stride, count);
    }
}

// c += a b.
inline void add_product(const Dense& c, const Dense& a, const Dense& b) {
    for (size_t i = 0; i < c.rows; ++i) add_rows(c[i], 1.0, a[i], 1, b, 0, b.rows);
}

// c += sign a' b; with `upper` only on and above the diagonal, where c is known to be symmetric.
inline void add_transposed_product(const Dense& c, double sign, const Dense& a, const Dense& b, bool upper = false) {
    for (size_t i = 0; i < c.rows; ++i) add_rows(c[i], sign, a.at + i, a.stride, b, 0, b.rows, upper ? i : 0);
}

inline void copy(const Dense& to, const Dense& from) {
    std::memcpy(to.at, from.at, from.rows * from.stride * sizeof(double));
}

inline double sum_of_squares(const Dense& a) {
    double sum = 0.0;
    for (size_t i = 0; i < a.rows; ++i) sum += dot(a[i], a[i], a.width);
    return sum;
}

inline void transpose(const Dense& to, const Dense& from) {
    for (size_t i = 0; i < to.rows; ++i)
        for (size_t j = 0; j < to.width; ++j) to[i][j] = from[j][i];
}

// a <- R, upper triangular, with R'R = a + diag(raise(0), raise(1), ...). Reads a on and above its diagonal. As a
// has no negative eigenvalue, no pivot is below what its diagonal was raised by; rounding must not take one there.
template <class Raise>
inline void factor(const Dense& a, Raise raise) {
    for (size_t i = 0; i < a.rows; ++i) {
        double* row = a[i];
        const double least = raise(i);
        row[i] += least;
        add_rows(row, -1.0, a.at + i, a.stride, a, 0, i, i);
        const double root = std::sqrt(row[i] > least ? row[i] : least);
        for (size_t j = 0; j < i; ++j) row[j] = 0.0;
        row[i] = root;
        for (size_t j = i + 1; j < a.width; ++j) row[j] /= root;
    }
}

// b <- R'^-1 b.
inline void solve_lower(const Dense& r, const Dense& b) {
    for (size_t i = 0; i < b.rows; ++i) {
        add_rows(b[i], -1.0, r.at + i, r.stride, b, 0, i);
        for (size_t j = 0; j < b.width; ++j) b[i][j] /= r[i][i];
    }
}

// b <- R^-1 b.
inline void solve_upper(const Dense& r, const Dense& b) {
    for (size_t i = b.rows; i-- > 0;) {
        add_rows(b[i], -1.0, r[i] + i + 1, 1, b, i + 1, b.rows);
        for (size_t j = 0; j < b.width; ++j) b[i][j] /= r[i][i];
    }
}

// `to` <- the covariance with every variance brought to 1, or 0 where it is 0. `inverse`: scratch of as many numbers.
inline void correlation(const Dense& to, const double* covariance, double* inverse) {
    const size_t n = to.rows;
    for (size_t i = 0; i < n; ++i) {
        const double variance = covariance[i * n + i];
        const double deviation = std::sqrt(variance > 0.0 ? variance : 0.0);
        inverse[i] = deviation > 1e-9 ? 1.0 / deviation : 0.0;
    }
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) to[i][j] = covariance[i * n + j] * inverse[i] * inverse[j];
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
