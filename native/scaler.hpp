// Running mean and variance of every feature (Welford), and rows scaled by them.
#pragma once

#include <limits>

#include "numerics.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// What is kept of the deviations from the mean: in double precision the sum of their squares; in single
// precision, whose sums would stop growing, the standard deviation (of 1e-45 to 3e38). A row of very many moves
// that by less than it can resolve, downwards less than upwards, so that it would creep up: rows are counted to
// 2^18, and from then on the statistics are those of about as many last rows.
template <class Real>
struct Spread;

template <>
struct Spread<double> {
    static constexpr double most_rows = std::numeric_limits<double>::infinity();
    static double sum(double kept, double) { return kept; }
    static double kept(double sum, double) { return sum; }
};

template <>
struct Spread<float> {
    static constexpr double most_rows = 1 << 18;
    static double sum(float kept, double count) { return double(kept) * double(kept) * count; }
    static float kept(double sum, double count) {
        constexpr double most = std::numeric_limits<float>::max();
        const double deviation = count > 0.0 ? std::sqrt(sum / count) : 0.0;
        return static_cast<float>(deviation < most ? deviation : most);
    }
};

// Means are in double precision, for they may be large beside deviations; the rest is as Real says.
template <class Real>
class Scaler {
public:
    // All its numbers lie in a block of so many bytes, aligned to 8.
    static size_t bytes(size_t dim) { return dim * (sizeof(double) + 2 * sizeof(Real)); }

    // divisor 0: sqrt(dim), so that the squared distance of two rows does not grow with the number of features.
    Scaler(size_t dim, void* block, double divisor = 0.0)
        : dim_(dim), shrink_(1.0 / (divisor > 0.0 ? divisor : std::sqrt(double(dim)))),
          means_(static_cast<double*>(block)), spreads_(reinterpret_cast<Real*>(means_ + dim)),
          counts_(spreads_ + dim) {
        std::memset(block, 0, bytes(dim));
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
        for (size_t j = 0; j < dim_; ++j) {
            if (x[j] != x[j]) {
                out[j] = 0.0;
                continue;
            }
            const double before = double(counts_[j]), count = before + 1.0;
            const double apart = Spread<Real>::sum(spreads_[j], before);
            double held = x[j], ahead = held - means_[j];
            if (before >= few && apart > 0.0 && ahead * ahead * before > far * far * apart) {
                ahead = std::copysign(far * std::sqrt(apart / before), ahead);
                held = means_[j] + ahead;
            }
            const double mean = means_[j] + ahead / count;
            const double spread = apart + ahead * (held - mean);
            const double sd = std::sqrt(spread / count);
            double z = sd > 0.0 ? (x[j] - mean) / sd : 0.0;
            z = z < 5.0 ? z : 5.0;
            z = z > -5.0 ? z : -5.0;
            out[j] = z * shrink_;
            if (keep) {
                means_[j] = mean;
                spreads_[j] = Spread<Real>::kept(spread, count);
                counts_[j] = counted(count);
            }
        }
    }

    // Gives each gap of a row, where it is NaN, what would have been read for its scaled value.
    void unscale_gaps(double* row, const double* scaled) const {
        for (size_t j = 0; j < dim_; ++j) {
            if (row[j] == row[j]) continue;
            const double count = double(counts_[j]);
            const double sd = count > 0.0 ? std::sqrt(Spread<Real>::sum(spreads_[j], count) / count) : 0.0;
            const double read = means_[j] + scaled[j] / shrink_ * sd, below = read < largest ? read : largest;
            row[j] = below > -largest ? below : -largest;
        }
    }

    // Means, sums of squared deviations and counts, 3 dim numbers; to the bit, whatever is kept.
    void state(double* out) const {
        for (size_t j = 0; j < dim_; ++j) {
            out[j] = means_[j];
            out[dim_ + j] = Spread<Real>::sum(spreads_[j], double(counts_[j]));
            out[2 * dim_ + j] = double(counts_[j]);
        }
    }

    void set_state(const double* in) {
        for (size_t j = 0; j < dim_; ++j) {
            means_[j] = in[j];
            spreads_[j] = Spread<Real>::kept(in[dim_ + j], in[2 * dim_ + j]);
            counts_[j] = counted(in[2 * dim_ + j]);
        }
    }

private:
    static constexpr double few = 10.0, far = 20.0, largest = 1e100;

    static Real counted(double count) {
        return static_cast<Real>(count < Spread<Real>::most_rows ? count : Spread<Real>::most_rows);
    }

    size_t dim_;
    double shrink_;
    double* means_;
    Real *spreads_, *counts_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
