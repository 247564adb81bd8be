// Running mean and variance of every feature (Welford), and rows scaled by them.
#pragma once

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// All its numbers lie in a block of Scaler::reals(dim) doubles.
class Scaler {
public:
    static size_t reals(size_t dim) { return 2 * dim + 1; }

    Scaler(size_t dim, double* block) : dim_(dim), block_(block) {
        for (size_t i = 0; i < reals(dim); ++i) block_[i] = 0.0;
    }

    // Scales a row by the statistics with that row included, clipped to five
    // standard deviations and divided by sqrt(dim), so that the squared
    // distance of two rows does not grow with the number of features. Where
    // `keep`, the row stays in the statistics.
    void scale(const double* x, double* out, bool keep) {
        const double count = block_[2 * dim_] + 1.0;
        const double shrink = 1.0 / std::sqrt(double(dim_));
        for (size_t j = 0; j < dim_; ++j) {
            const double ahead = x[j] - block_[j];
            const double mean = block_[j] + ahead / count;
            const double spread = block_[dim_ + j] + ahead * (x[j] - mean);
            const double sd = std::sqrt(spread / count);
            double z = sd > 0.0 ? (x[j] - mean) / sd : 0.0;
            z = z < 5.0 ? z : 5.0;
            z = z > -5.0 ? z : -5.0;
            out[j] = z * shrink;
            if (keep) {
                block_[j] = mean;
                block_[dim_ + j] = spread;
            }
        }
        if (keep) block_[2 * dim_] = count;
    }

    double rows() const { return block_[2 * dim_]; }
    double* block() { return block_; }

private:
    size_t dim_;
    double* block_;  // means, sums of squared deviations, count
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
