// The gaussian map with scratch of its own: it is solved rarely, and needs more room than an expert.
#pragma once

#include <memory>

#include "gaussian_map.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

inline double solve_map(const MapKnown& known, double* matrix, double* center) {
    const std::unique_ptr<double[]> scratch(new double[GaussianMap::scratch_reals(known)]);
    return GaussianMap(known, scratch.get()).solve(matrix, center);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
