// Running mean and variance of every feature (Welford), and rows scaled by them.
#pragma once

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// All its numbers lie in a block of Scaler::reals(dim) doubles.
class Scaler {
public:
    static size_t reals(size_t dim) { return 3 * dim; }

    // divisor 0: sqrt(dim), so that the squared distance of two rows does not grow with the number of features.
    Scaler(size_t dim, double* block, double divisor = 0.0)
        : dim_(dim), shrink_(1.0 / (divisor > 0.0 ? divisor : std::sqrt(double(dim)))), block_(block) {
        for (size_t i = 0; i < reals(dim); ++i) block_[i] = 0.0;
    }

    // Scales a row by the statistics with that row included, clipped to five
    // standard deviations and divided by the divisor. Where `keep`, the row stays
    // in the statistics. NaN is a value not observed: it moves nothing, and its
    // scaled value is the mean's, 0.
    //
    // After the first few rows a value far from all before it enters the statistics as one that is twenty
    // deviations away: a sensor's glitch must not stretch them for good. Where the scale has truly changed,
    // rows like it grow the deviation until it fits: by a factor each, the smaller the more rows there were.
    void scale(const double* x, double* out, bool keep) {
        double* means = block_;
        double* spreads = block_ + dim_;
        double* counts = block_ + 2 * dim_;
        for (size_t j = 0; j < dim_; ++j) {
            if (x[j] != x[j]) {
                out[j] = 0.0;
                continue;
            }
            const double count = counts[j] + 1.0;
            double held = x[j], ahead = held - means[j];
            if (counts[j] >= few && spreads[j] > 0.0 && ahead * ahead * counts[j] > far * far * spreads[j]) {
                ahead = std::copysign(far * std::sqrt(spreads[j] / counts[j]), ahead);
                held = means[j] + ahead;
            }
            const double mean = means[j] + ahead / count;
            const double spread = spreads[j] + ahead * (held - mean);
            const double sd = std::sqrt(spread / count);
            double z = sd > 0.0 ? (x[j] - mean) / sd : 0.0;
            z = z < 5.0 ? z : 5.0;
            z = z > -5.0 ? z : -5.0;
            out[j] = z * shrink_;
            if (keep) {
                means[j] = mean;
                spreads[j] = spread;
                counts[j] = count;
            }
        }
    }

private:
    static constexpr double few = 10.0, far = 20.0;

    size_t dim_;
    double shrink_;
    double* block_;  // means, sums of squared deviations, counts
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
