// The gaussian map, its factors and the whitening, each with scratch for the moment: they are rare, and larger than an expert's.
#pragma once

#include <memory>

#include "factors.hpp"
#include "gaussian_map.hpp"
#include "moments.hpp"
#include "whitening.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// A row of a space, taken into how its features vary together; gaps are given what the rest says of them.
inline void fill_row(std::size_t room, std::size_t dim, void* block, const double* row, double* view, double* scratch, bool keep) {
    Moments<float>(room, block, Moments<float>::Adopt{}, dim).fill(row, view, scratch, keep);
}

inline double solve_map(const MapKnown& known, double* matrix, double* center) {
    const std::unique_ptr<double[]> scratch(new double[GaussianMap::scratch_reals(known)]);
    return GaussianMap(known, scratch.get()).solve(matrix, center);
}

inline void solve_factors(const MapToFactor& map, double* factors) {
    const std::unique_ptr<double[]> scratch(new double[Factors::scratch_reals(map)]);
    Factors(map, scratch.get()).solve(factors);
}

inline void solve_whitening(const double* covariance, size_t dim, double rows, double least_spread, double* out) {
    const std::unique_ptr<double[]> scratch(new double[Whitening::scratch_reals(dim)]);
    Whitening(dim, scratch.get()).solve(covariance, rows, least_spread, out);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
