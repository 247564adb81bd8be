// The gaussian map with scratch of its own: it is solved rarely, and needs more room than an expert.
#pragma once

#include <memory>

#include "gaussian_map.hpp"
#include "moments.hpp"

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

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
