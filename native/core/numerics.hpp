// Arithmetic that gives the same bits on every machine: own exponential and
// logarithm, sums in a fixed order of four lanes, symmetric matrices packed by
// rows of their lower triangle. To be compiled without fused multiply-add.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "variant.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

using std::size_t;

// ---- limits: below them no product or sum of products overflows

template <class Real>
struct Limits;

template <>
struct Limits<double> {
    static constexpr double huge = 1e100;
    static constexpr double inverse_residual = 1e-7;
};

template <>
struct Limits<float> {
    static constexpr float huge = 1e15f;
    static constexpr double inverse_residual = 5e-2;
};

template <class Real>
SF2EL_INLINE Real saturate(Real value) {
    constexpr Real huge = Limits<Real>::huge;
    value = value < huge ? value : huge;
    return value > -huge ? value : -huge;
}

// ---- exponential and logarithm

// exp(x) for x <= 0: exactly 0 where the result would not be a normal number.
SF2EL_INLINE double exp_neg(double x) {
    constexpr double floor = -708.39, log2e = 1.4426950408889634, shift = 6755399441055744.0;
    constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const double clipped = x > floor ? x : floor;
    const double shifted = clipped * log2e + shift;  // the nearest whole number, in the low bits
    const double n = shifted - shift;
    const double r = (clipped - n * ln2_high) - n * ln2_low;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * (r * r) + r + 1.0;
    std::uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023u) << 52;  // 2^n
    double scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return x < floor ? 0.0 : p * scale;
}

SF2EL_INLINE float exp_neg(float x) {
    constexpr float floor = -87.33f, log2e = 1.44269504f, shift = 12582912.0f;
    constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float clipped = x > floor ? x : floor;
    const float shifted = clipped * log2e + shift;
    const float n = shifted - shift;
    const float r = (clipped - n * ln2_high) - n * ln2_low;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127u) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return x < floor ? 0.0f : p * scale;
}

// 2 atanh(s) for |s| <= 1/3, which is log((1 + s) / (1 - s)).
inline double two_atanh(double s) {
    constexpr double series[] = {1.0 / 37, 1.0 / 35, 1.0 / 33, 1.0 / 31, 1.0 / 29, 1.0 / 27, 1.0 / 25,
                                 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
    const double s2 = s * s;
    double sum = 0.0;
    for (const double coefficient : series) sum = sum * s2 + coefficient;
    return 2.0 * s * sum;
}

// log(1 + e) for 0 <= e <= 1.
inline double log_one_plus(double e) { return two_atanh(e / (2.0 + e)); }

// log(x) for a normal x > 0.
inline double log_positive(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    // Split at sqrt(1/2), so that the mantissa lies around 1.
    const std::uint64_t offset = 0x3FE6A09E667F3BCDull;
    const std::int64_t exponent = static_cast<std::int64_t>(bits - offset) >> 52;
    bits -= static_cast<std::uint64_t>(exponent) << 52;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    const double n = static_cast<double>(exponent);
    return n * ln2_high + (two_atanh((m - 1.0) / (m + 1.0)) + n * ln2_low);
}

// ---- four lanes, in step

#if (defined(__GNUC__) || defined(__clang__)) && !defined(SF2EL_PORTABLE_LANES)
template <class Real>
struct LanesOf {
    typedef Real type __attribute__((vector_size(4 * sizeof(Real))));
};
template <class Real>
using Lanes = typename LanesOf<Real>::type;
#else
template <class Real>
struct Lanes {
    Real lane[4];
    Real& operator[](int i) { return lane[i]; }
    Real operator[](int i) const { return lane[i]; }
    friend Lanes operator+(Lanes a, const Lanes& b) {
        for (int i = 0; i < 4; ++i) a.lane[i] += b.lane[i];
        return a;
    }
    friend Lanes operator-(Lanes a, const Lanes& b) {
        for (int i = 0; i < 4; ++i) a.lane[i] -= b.lane[i];
        return a;
    }
    friend Lanes operator*(Lanes a, const Lanes& b) {
        for (int i = 0; i < 4; ++i) a.lane[i] *= b.lane[i];
        return a;
    }
};
#endif

template <class Real>
SF2EL_INLINE Lanes<Real> load(const Real* from) {
    Lanes<Real> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Real>
SF2EL_INLINE void store(Real* to, const Lanes<Real>& v) {
    std::memcpy(to, &v, sizeof v);
}

template <class Real>
SF2EL_INLINE Lanes<Real> spread(Real value) {
    return Lanes<Real>{value, value, value, value};
}

template <class Real>
SF2EL_INLINE Real sum_lanes(const Lanes<Real>& v) {
    return (v[0] + v[2]) + (v[1] + v[3]);
}

// The lanes of each of four, summed as by sum_lanes.
template <class Real>
SF2EL_INLINE Lanes<Real> sum_each(const Lanes<Real>& a, const Lanes<Real>& b, const Lanes<Real>& c,
                            const Lanes<Real>& d) {
    const Lanes<Real> first = {a[0], b[0], c[0], d[0]}, second = {a[1], b[1], c[1], d[1]},
                      third = {a[2], b[2], c[2], d[2]}, fourth = {a[3], b[3], c[3], d[3]};
    return (first + third) + (second + fourth);
}

template <class Real>
inline Real dot(const Real* a, const Real* b, size_t n) {
    Lanes<Real> even = spread(Real(0)), odd = even;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        even = even + load(a + i) * load(b + i);
        odd = odd + load(a + i + 4) * load(b + i + 4);
    }
    if (i + 4 <= n) {
        even = even + load(a + i) * load(b + i);
        i += 4;
    }
    Real sum = sum_lanes<Real>(even + odd);
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

template <class Real>
inline Real sum(const Real* a, size_t n) {
    Lanes<Real> lanes = spread(Real(0));
    size_t i = 0;
    for (; i + 4 <= n; i += 4) lanes = lanes + load(a + i);
    Real total = sum_lanes<Real>(lanes);
    for (; i < n; ++i) total += a[i];
    return total;
}

// ---- symmetric matrices, lower triangle packed by rows

SF2EL_INLINE size_t packed_size(size_t n) { return n * (n + 1) / 2; }
SF2EL_INLINE size_t packed_row(size_t i) { return i * (i + 1) / 2; }
SF2EL_INLINE size_t packed_at(size_t i, size_t j) { return i >= j ? packed_row(i) + j : packed_row(j) + i; }

// y = A x. Four rows at a time: each element is read once and used twice, and
// the columns left of a block of rows are always a whole number of lanes.
template <class Real>
inline void packed_times(const Real* a, const Real* x, Real* y, size_t n) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const Real* r0 = a + packed_row(i);
        const Real* r1 = r0 + (i + 1);
        const Real* r2 = r1 + (i + 2);
        const Real* r3 = r2 + (i + 3);
        const Lanes<Real> x0 = spread(x[i]), x1 = spread(x[i + 1]), x2 = spread(x[i + 2]), x3 = spread(x[i + 3]);
        Lanes<Real> s0 = spread(Real(0)), s1 = s0, s2 = s0, s3 = s0;
        for (size_t j = 0; j < i; j += 4) {
            const Lanes<Real> v0 = load(r0 + j), v1 = load(r1 + j), v2 = load(r2 + j), v3 = load(r3 + j);
            const Lanes<Real> xj = load(x + j);
            s0 = s0 + v0 * xj;
            s1 = s1 + v1 * xj;
            s2 = s2 + v2 * xj;
            s3 = s3 + v3 * xj;
            store<Real>(y + j, load(y + j) + ((v0 * x0 + v1 * x1) + (v2 * x2 + v3 * x3)));
        }
        // The block on the diagonal, column by column, and the four sums side by side.
        const Lanes<Real> d0 = {r0[i], r1[i], r2[i], r3[i]}, d1 = {r1[i], r1[i + 1], r2[i + 1], r3[i + 1]},
                          d2 = {r2[i], r2[i + 1], r2[i + 2], r3[i + 2]},
                          d3 = {r3[i], r3[i + 1], r3[i + 2], r3[i + 3]};
        store<Real>(y + i, sum_each<Real>(s0, s1, s2, s3) + ((d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3)));
    }
    for (; i < n; ++i) {
        const Real* row = a + packed_row(i);
        y[i] = row[i] * x[i];
        y[i] += dot(row, x, i);
        for (size_t j = 0; j < i; ++j) y[j] += row[j] * x[i];
    }
}

// Copies column c (which is row c) out of a packed matrix.
template <class Real>
inline void packed_column(const Real* a, size_t c, Real* out, size_t n) {
    const Real* row = a + packed_row(c);
    for (size_t j = 0; j <= c; ++j) out[j] = row[j];
    for (size_t i = c + 1; i < n; ++i) out[i] = a[packed_row(i) + c];
}

template <class Real>
inline void packed_set_column(Real* a, size_t c, const Real* in, size_t n) {
    Real* row = a + packed_row(c);
    for (size_t j = 0; j <= c; ++j) row[j] = in[j];
    for (size_t i = c + 1; i < n; ++i) a[packed_row(i) + c] = in[i];
}

// A += u u' / du - v v' / dv.
template <class Real>
inline void packed_rank_two(Real* a, const Real* u, Real du, const Real* v, Real dv, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        Real* row = a + packed_row(i);
        const Real ui = u[i] / du, vi = v[i] / dv;
        for (size_t j = 0; j <= i; ++j) row[j] += ui * u[j] - vi * v[j];
    }
}

// A <- inverse of A, for a positive definite A, in place by sweeping. A pivot
// that is not positive is left out: its row and column of the result are 0.
// Returns how many were. `column` is scratch of n numbers.
template <class Real>
inline size_t packed_invert(Real* a, Real* column, size_t n) {
    size_t left_out = 0;
    for (size_t k = 0; k < n; ++k) {
        packed_column(a, k, column, n);
        const Real pivot = column[k];
        if (!(pivot > Real(0)) || !(pivot < Real(1e30) * Limits<Real>::huge)) {
            ++left_out;
            for (size_t i = 0; i < n; ++i) column[i] = Real(0);
            packed_set_column(a, k, column, n);
            continue;
        }
        for (size_t i = 0; i < n; ++i) {
            Real* row = a + packed_row(i);
            const Real factor = column[i] / pivot;
            for (size_t j = 0; j <= i; ++j) row[j] -= factor * column[j];
        }
        for (size_t i = 0; i < n; ++i) column[i] = column[i] / pivot;
        column[k] = -Real(1) / pivot;
        packed_set_column(a, k, column, n);
    }
    const size_t size = packed_size(n);
    for (size_t i = 0; i < size; ++i) a[i] = -a[i];
    return left_out;
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
