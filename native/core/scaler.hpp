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
    Scaler(size_t dim, void* block, double divisor = 0.0) : Scaler(dim, dim, block, divisor) {
        std::memset(block, 0, bytes(dim));
    }

    // Goes on with what a block for `room` features holds, of which `dim` are in use.
    Scaler(size_t dim, size_t room, void* block, double divisor)
        : dim_(dim), shrink_(1.0 / (divisor > 0.0 ? divisor : std::sqrt(double(dim)))),
          means_(static_cast<double*>(block)), spreads_(reinterpret_cast<Real*>(means_ + room)),
          counts_(spreads_ + room) {}

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
            const Seen seen = with(j, x[j]);
            const double sd = std::sqrt(seen.spread / seen.count);
            out[j] = clip(sd > 0.0 ? (x[j] - seen.mean) / sd : 0.0) * shrink_;
            if (keep) take(j, seen);
        }
    }

    // The same of rows in which a value that is not there counts as 0, read as such: with the share p of rows that
    // have a feature, its mean m and its variance v where it is there, mean pm and variance p(v + m^2 (1 - p)).
    // `rows`: so far, this one included. Changes nothing. Gaps for which `recovered` has a scaled value count as
    // observed; it may be null.
    void scale_with_zeros(const double* x, double* out, const double* recovered, double rows, bool kept) const {
        for (size_t j = 0; j < dim_; ++j) {
            const bool there = x[j] == x[j];
            const Seen seen = there && !kept ? as_kept(with(j, x[j])) : now(j);
            const double variance = seen.count > 0.0 ? seen.spread / seen.count : 0.0;
            const double share = seen.count < rows ? seen.count / rows : 1.0, mean = seen.mean;
            const double sd = std::sqrt(share * (variance + mean * mean * (1.0 - share)));
            double read = there ? x[j] : 0.0;
            if (!there && recovered) read = mean + recovered[j] / shrink_ * std::sqrt(variance);
            out[j] = clip(sd > 0.0 ? (read - share * mean) / sd : 0.0) * shrink_;
        }
    }

    // Whether each feature is there, as a number of mean 0 and variance 1 over the divisor.
    void presence(const double* x, double* out, double rows, bool kept) const {
        for (size_t j = 0; j < dim_; ++j) {
            const bool there = x[j] == x[j];
            const double count = double(counts_[j]) + (there && !kept ? 1.0 : 0.0);
            const double share = count < rows ? count / rows : 1.0, sd = std::sqrt(share * (1.0 - share));
            out[j] = clip(sd > 0.0 ? ((there ? 1.0 : 0.0) - share) / sd : 0.0) * shrink_;
        }
    }

    // Whether its block can be what a scaler has kept.
    bool is_sound() const {
        size_t wrong = 0;
        for (size_t j = 0; j < dim_; ++j)
            wrong += !(means_[j] >= -largest && means_[j] <= largest && spreads_[j] >= Real(0) && double(spreads_[j]) <= 1e300 &&
                       counts_[j] >= Real(0) && double(counts_[j]) <= 1e18);
        return wrong == 0;
    }

    double mean(size_t j) const { return means_[j]; }
    double count(size_t j) const { return double(counts_[j]); }
    double deviation(size_t j) const {
        const Seen seen = now(j);
        return std::sqrt(seen.spread / (seen.count > 1.0 ? seen.count : 1.0));
    }

    // Goes on with these statistics of a feature that it has not seen yet.
    void take_if_new(size_t j, double mean, double deviation, double count) {
        if (!(double(counts_[j]) > 0.0)) take(j, {mean, deviation * deviation * count, count});
    }

    // Forgets what it knows of features from this one on.
    void clear_from(size_t first) {
        for (size_t j = first; j < dim_; ++j) {
            means_[j] = 0.0;
            spreads_[j] = counts_[j] = Real(0);
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
    static constexpr double few = 10.0, far = 20.0, largest = 1e100, most_deviations = 5.0;

    // The statistics of a feature: mean, sum of squared deviations, count.
    struct Seen {
        double mean, spread, count;
    };

    Seen now(size_t j) const {
        return {means_[j], Spread<Real>::sum(spreads_[j], double(counts_[j])), double(counts_[j])};
    }

    // As they are with one value more.
    Seen with(size_t j, double x) const {
        const double before = double(counts_[j]), count = before + 1.0;
        const double apart = Spread<Real>::sum(spreads_[j], before);
        double held = x, ahead = held - means_[j];
        if (before >= few && apart > 0.0 && ahead * ahead * before > far * far * apart) {
            ahead = std::copysign(far * std::sqrt(apart / before), ahead);
            held = means_[j] + ahead;
        }
        const double mean = means_[j] + ahead / count;
        return {mean, apart + ahead * (held - mean), count};
    }

    // As they are read again once they are kept.
    static Seen as_kept(const Seen& seen) {
        const double count = double(counted(seen.count));
        return {seen.mean, Spread<Real>::sum(Spread<Real>::kept(seen.spread, seen.count), count), count};
    }

    void take(size_t j, const Seen& seen) {
        means_[j] = seen.mean;
        spreads_[j] = Spread<Real>::kept(seen.spread, seen.count);
        counts_[j] = counted(seen.count);
    }

    static double clip(double z) {
        z = z < most_deviations ? z : most_deviations;
        return z > -most_deviations ? z : -most_deviations;
    }

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
