// A map as few factors: what it computes, and why, is said in src/sf2el/core/numpy_backend/factors.py.
#pragma once

#include "dense.hpp"
#include "params.hpp"
#include "rng.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

class Factors {
public:
    static size_t scratch_reals(const MapToFactor& map) {
        const size_t p = map.to, q = map.from, r = map.rank;
        return 2 * Dense::reals(p, q) + Dense::reals(q, p) + Dense::reals(q, q) + Dense::reals(r, p) +
               2 * Dense::reals(r, q);
    }

    // `scratch`: scratch_reals(map) doubles.
    Factors(const MapToFactor& map, double* scratch)
        : map_(map), p_(map.to), q_(map.from), r_(map.rank), matrix_(p_, q_, scratch), scaled_(p_, q_, scratch),
          back_(q_, p_, scratch), correlation_(q_, q_, scratch), directions_(r_, p_, scratch), seen_(r_, q_, scratch),
          together_(r_, q_, scratch) {}

    // `out`: one factor after the other, each over the new features and then over the old ones.
    void solve(double* out) {
        read();
        // Orthogonal iteration. Where the map has no higher rank its first step finds all there is; where it has,
        // what is left out after some steps is hardly more than must be.
        for (int step = 0; step < steps; ++step) {
            spread();
            orthonormalise();
        }
        seen_.clear();
        add_product(seen_, directions_, matrix_);
        for (size_t k = 0; k < r_; ++k, out += q_ + p_) {
            std::memcpy(out, seen_[k], q_ * sizeof(double));
            std::memcpy(out + q_, directions_[k], p_ * sizeof(double));
        }
    }

private:
    static constexpr int steps = 30;

    void read() {
        std::uint64_t state = 0;
        for (size_t k = 0; k < r_; ++k)
            for (size_t i = 0; i < p_; ++i) directions_[k][i] = random_word(state) >> 63 ? 1.0 : -1.0;
        for (size_t i = 0; i < p_; ++i)
            for (size_t j = 0; j < q_; ++j) {
                matrix_[i][j] = map_.matrix[i * q_ + j];
                scaled_[i][j] = matrix_[i][j] * map_.deviation[j];
            }
        transpose(back_, scaled_);
        for (size_t i = 0; i < q_; ++i) std::memcpy(correlation_[i], map_.correlation + i * q_, q_ * sizeof(double));
    }

    // directions_ <- directions_ times the covariance of what the map gives.
    void spread() {
        seen_.clear();
        add_product(seen_, directions_, scaled_);
        together_.clear();
        add_product(together_, seen_, correlation_);
        directions_.clear();
        add_product(directions_, together_, back_);
    }

    // Each direction less what it has of those before it; taken away twice, for once leaves rounding.
    void orthonormalise() {
        for (size_t k = 0; k < r_; ++k) {
            double* own = directions_[k];
            for (int again = 0; again < 2; ++again) {
                shorten(own);
                for (size_t l = 0; l < k; ++l) {
                    const double along = dot(own, directions_[l], p_);
                    for (size_t i = 0; i < p_; ++i) own[i] -= along * directions_[l][i];
                }
            }
            shorten(own);
        }
    }

    // To a length of 1; one of no length stays.
    void shorten(double* own) const {
        const double length = std::sqrt(dot(own, own, p_));
        for (size_t i = 0; i < p_ && length > 0.0; ++i) own[i] /= length;
    }

    const MapToFactor map_;
    const size_t p_, q_, r_;
    const Dense matrix_, scaled_, back_, correlation_, directions_, seen_, together_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
