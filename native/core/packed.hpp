// More on symmetric matrices packed by rows of their lower triangle: what a
// posterior needs of them. Elementwise, or in a fixed order of four lanes.
#pragma once

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// x' A x. Four rows at a time, the lanes summed once, at the end.
template <class Real>
inline Real packed_quadratic(const Real* a, const Real* x, size_t n) {
    Lanes<Real> below = spread(Real(0)), diagonal = below;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const Real* r0 = a + packed_row(i);
        const Real* r1 = r0 + (i + 1);
        const Real* r2 = r1 + (i + 2);
        const Real* r3 = r2 + (i + 3);
        const Lanes<Real> x0 = spread(x[i]), x1 = spread(x[i + 1]), x2 = spread(x[i + 2]), x3 = spread(x[i + 3]);
        for (size_t j = 0; j < i; j += 4)
            below = below + load(x + j) * ((load(r0 + j) * x0 + load(r1 + j) * x1) +
                                           (load(r2 + j) * x2 + load(r3 + j) * x3));
        const Lanes<Real> d0 = {r0[i], r1[i], r2[i], r3[i]}, d1 = {r1[i], r1[i + 1], r2[i + 1], r3[i + 1]},
                          d2 = {r2[i], r2[i + 1], r2[i + 2], r3[i + 2]},
                          d3 = {r3[i], r3[i + 1], r3[i + 2], r3[i + 3]};
        diagonal = diagonal + load(x + i) * ((d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3));
    }
    Real total = sum_lanes<Real>((below + below) + diagonal);
    for (; i < n; ++i) {
        const Real* row = a + packed_row(i);
        total += x[i] * (Real(2) * dot(row, x, i) + row[i] * x[i]);
    }
    return total;
}

// A <- keep A + c c' factor.
template <class Real>
inline void packed_rank_one(Real* a, Real keep, const Real* c, Real factor, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        Real* row = a + packed_row(i);
        const Real ci = c[i] * factor;
        for (size_t j = 0; j <= i; ++j) row[j] = keep * row[j] + ci * c[j];
    }
}

// The part of A over the last coordinates, from `first` on, gets u w' + v u' (symmetric by what u, v and w are).
template <class Real>
inline void packed_fold(Real* a, const Real* u, const Real* v, const Real* w, size_t first, size_t n) {
    for (size_t i = first; i < n; ++i) {
        Real* row = a + packed_row(i);
        const Real ui = u[i], vi = v[i];
        for (size_t j = 0; j <= i; ++j) row[j] += ui * w[j] + vi * u[j];
    }
}

// Takes coordinate i out of a matrix of n: the last one moves into its place.
template <class Real>
inline void packed_move_last(Real* a, size_t i, size_t n) {
    const size_t last = n - 1;
    if (i == last) return;
    const Real* from = a + packed_row(last);
    Real* row = a + packed_row(i);
    for (size_t j = 0; j < i; ++j) row[j] = from[j];
    row[i] = from[last];
    for (size_t k = i + 1; k < last; ++k) a[packed_row(k) + i] = from[k];
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
