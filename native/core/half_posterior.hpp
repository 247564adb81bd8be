// A posterior in about half the bytes: rows and covariance in half precision, the mean in single precision.
//
// Once there are many labels, C (posterior minus prior) nearly cancels the prior, and half precision would lose
// the rest. What is kept instead is the covariance of the linear coefficients and of what each kept row adds to
// those before it,
//
//   S = covariance of (theta, beta),  f = theta'phi + beta'b,  b = F k,  F'F = inverse of K ,
//
// K being the Gram matrix of the kept rows and F lower triangular. Its radial part is the prior's scale on the
// diagonal to begin with, however alike the rows are, and falls as labels come: rounding takes the same small
// share of each entry, early and late. F has no negative number on its diagonal and so follows from the rows;
// unless bytes are short it is kept too, each row as whole numbers of 16 bits times a power of two. The mean is
// that of the coefficients of k, so that F is asked for variances only, and what rounding adds to it is small.
//
// A row that leaves takes its direction with it: the coordinates are turned until that is the last of them.
#pragma once

#include <algorithm>

#include "dense.hpp"
#include "half.hpp"
#include "posterior.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

class HalfPosterior {
    using Single = Posterior<float>;

public:
    static size_t coordinates(const PosteriorParams& p) { return p.linear() + p.size; }

    static size_t state_bytes(const PosteriorParams& p) {
        const size_t n = p.size, factor = p.keep_inverse ? n + packed_size(n) : 0;
        const size_t short_numbers = n * p.dim + packed_size(coordinates(p)) + factor;
        return sizeof(PosteriorCounters) +
               round_up(p.outputs * coordinates(p) * sizeof(float) + short_numbers * sizeof(Half));
    }

    static size_t scratch_bytes(const PosteriorParams& p) {
        return (p.outputs + working_doubles(p)) * sizeof(double) + round_up(working_floats(p) * sizeof(float));
    }

    // As for a Posterior.
    HalfPosterior(const PosteriorParams& p, void* state, void* scratch) : HalfPosterior(p, state, scratch, Adopt{}) {
        std::memset(state, 0, state_bytes(p));
        *c_ = PosteriorCounters{};
        for (size_t i = 0; i < linear_; ++i) innovations_[diagonal(i)] = half_of(float(p.linear_scale));
        if (p.size && p.centred > 0.0) {
            // The origin is a kept row at which little is left to learn: what all rows share is the constant's.
            c_->n = 1;
            innovations_[diagonal(linear_)] = half_of(float((1.0 - p.centred) * p.rbf_scale));
            f_[0] = 1.0f;
            keep_factor();
        }
    }

    struct Adopt {};
    HalfPosterior(const PosteriorParams& p, void* state, void* scratch, Adopt)
        : p_(p), linear_(p.linear()), stride_(coordinates(p)), slots_(p.size + 1) {
        c_ = static_cast<PosteriorCounters*>(state);
        mean_ = reinterpret_cast<float*>(c_ + 1);
        rows_ = reinterpret_cast<Half*>(mean_ + p.outputs * stride_);
        innovations_ = rows_ + size_t(p.size) * p.dim;
        exponents_ = reinterpret_cast<std::int16_t*>(innovations_ + packed_size(stride_));
        factor_ = exponents_ + p.size;
        m_ = static_cast<double*>(scratch);
        doubles_ = m_ + p.outputs;
        square_ = reinterpret_cast<float*>(doubles_);
        const size_t all = linear_ + slots_;
        float* next = reinterpret_cast<float*>(doubles_ + working_doubles(p));
        const auto take = [&next](size_t count) {
            float* mine = next;
            next += count;
            return mine;
        };
        x_ = take(p.dim), r_ = take(slots_ * p.dim), f_ = take(packed_size(slots_)), s_ = take(packed_size(all));
        a_ = take(p.outputs * all), psi_ = take(all), own_ = take(all), gain_ = take(all), step_ = take(all);
        e_ = take(all), u_ = take(all), cos_ = take(slots_), sin_ = take(slots_);
    }

    void predict(const double* x, double* scores) {
        look(x);
        score(scores);
    }

    // The risk from before the update; NaN where y is: then the row can only tie kept ones.
    double learn(const double* x, double y, double weight, double* scores) {
        look(x);
        score(scores);
        if (y != y) {
            if (Single::may_teach(p_, *c_, own_ + linear_)) tie();
            return y;
        }
        if (!is_classification(p_.task)) y = Single::limit(y, Single::most_number);
        const double risk = risk_of(p_.task, p_.outputs, scores, y);
        widen();
        update(y, weight);
        return risk;
    }

    // As of a Posterior.
    double shrink(size_t size) {
        if (c_->n <= size) return 0.0;
        double moved = 0.0;
        widen_rows();
        widen_factor();
        widen_innovations();
        for (size_t k = 0; k < p_.outputs; ++k) std::copy(mean(k), mean(k) + linear_ + c_->n, working_mean(k));
        while (c_->n > size) moved += remove(least_useful());
        keep_rows();
        keep_factor();
        keep_learned();
        return moved;
    }

    static bool is_sound(const PosteriorParams& p, const void* state) {
        const auto* c = static_cast<const PosteriorCounters*>(state);
        if (!Single::are_sound(p, *c)) return false;
        const float* means = reinterpret_cast<const float*>(c + 1);
        const size_t floats = p.outputs * coordinates(p), halves = p.size * p.dim + packed_size(coordinates(p));
        size_t wrong = 0;
        for (size_t i = 0; i < floats; ++i) wrong += !(means[i] >= -Limits<float>::huge && means[i] <= Limits<float>::huge);
        const Half* half = reinterpret_cast<const Half*>(means + floats);
        for (size_t i = 0; i < halves; ++i) wrong += (half[i] & 0x7c00u) == 0x7c00u;
        if (p.keep_inverse)
            for (size_t i = 0; i < p.size; ++i) {
                const auto exponent = static_cast<std::int16_t>(half[halves + i]);
                wrong += exponent < -60 || exponent > 60;
            }
        return wrong == 0;
    }

    PosteriorCounters& counters() { return *c_; }
    size_t linear() const { return linear_; }
    size_t size() const { return c_->n; }
    Half& feature(size_t s, size_t j) const { return rows_[j * p_.size + s]; }
    float* mean(size_t k) { return mean_ + k * stride_; }
    Half* innovations() { return innovations_; }
    std::int16_t* exponents() { return exponents_; }
    std::int16_t* factor() { return factor_; }

    // F, packed; good until the scratch is used again.
    const float* factor_floats() {
        widen_rows();
        widen_factor();
        return f_;
    }

    // Takes over F.
    void set_factor(const double* factor) {
        for (size_t r = 0; r < size(); ++r)
            for (size_t j = 0; j <= r; ++j) f_[packed_row(r) + j] = float(factor[r * size() + j]);
        keep_factor();
    }

    // C and the inverse of K in full and in double precision.
    void matrices(double* c, double* q) {
        const size_t n = size(), all = linear_ + n;
        widen_rows();
        widen_factor();
        double* row = doubles_;
        for (size_t i = 0; i < all; ++i) {
            // Row i of T' (S - prior), T = diag(identity, F), then times T.
            for (size_t j = 0; j < all; ++j) row[j] = i < linear_ ? learned(i, j) : 0.0;
            for (size_t r = i < linear_ ? n : i - linear_; r < n; ++r)
                for (size_t j = 0; j < all; ++j) row[j] += factor_at(r, i - linear_) * learned(linear_ + r, j);
            for (size_t j = 0; j <= i; ++j) {
                double value = j < linear_ ? row[j] : 0.0;
                for (size_t r = j < linear_ ? n : j - linear_; r < n; ++r)
                    value += row[linear_ + r] * factor_at(r, j - linear_);
                c[i * all + j] = c[j * all + i] = value;
            }
        }
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j <= i; ++j) {
                double value = 0.0;
                for (size_t r = i; r < n; ++r) value += factor_at(r, i) * factor_at(r, j);
                q[i * n + j] = q[j * n + i] = value;
            }
    }

    // Takes F from the rows, as they are kept.
    void set_factor() {
        widen_rows();
        compute_factor();
        keep_factor();
    }

    // Takes over C, a function of two indices of which the second is at most the first, in the coordinates of
    // set_factor(). The rows must be there.
    template <class Covariance>
    void keep(const Covariance& c) {
        const size_t n = size();
        widen_rows();
        double* row;
        const Dense root = gram_root(row);
        for (size_t i = 0; i < linear_; ++i)
            for (size_t j = 0; j <= i; ++j)
                innovations_[packed_row(i) + j] = half_of(float(c(i, j) + (i == j ? p_.linear_scale : 0.0)));
        for (size_t r = 0; r < n; ++r) {
            // Row r of R C, then times R'; the numbers of C are asked for one by one, which takes no room.
            Half* to = innovations_ + packed_row(linear_ + r);
            for (size_t j = 0; j < linear_; ++j) {
                double value = 0.0;
                for (size_t k = r; k < n; ++k) value += root[r][k] * c(linear_ + k, j);
                to[j] = half_of(float(value));
            }
            for (size_t j = 0; j < n; ++j) {
                row[j] = 0.0;
                for (size_t k = r; k < n; ++k)
                    row[j] += root[r][k] * (j <= k ? c(linear_ + k, linear_ + j) : c(linear_ + j, linear_ + k));
            }
            for (size_t j = 0; j <= r; ++j) {
                double value = j == r ? p_.rbf_scale : 0.0;
                for (size_t k = j; k < n; ++k) value += row[k] * root[j][k];
                to[linear_ + j] = half_of(float(value));
            }
        }
    }

private:
    static constexpr std::uint64_t removals_between_refreshes = 64;
    static constexpr int bits = 15;  // of a number of F, but for its sign
    static constexpr float large_factor = 16.0f;

    static size_t round_up(size_t bytes) { return (bytes + 7) / 8 * 8; }
    static size_t diagonal(size_t i) { return packed_row(i) + i; }

    static size_t working_floats(const PosteriorParams& p) {
        const size_t n = p.size + 1, all = p.linear() + n;
        return p.dim + n * p.dim + packed_size(n) + packed_size(all) + (p.outputs + 6) * all + 2 * n;
    }

    // For a Gram matrix with its rows and one more row, or for S in full in single precision.
    static size_t working_doubles(const PosteriorParams& p) {
        const size_t n = p.size, all = coordinates(p) + 1, gram = (n + 1) * p.dim + Dense::reals(n + 1, n);
        const size_t square = (all * all + 1) / 2;
        return gram > square ? gram : square;
    }

    double prior(size_t i) const { return i < linear_ ? p_.linear_scale : p_.rbf_scale; }

    // S minus the prior, and F.
    double learned(size_t i, size_t j) const {
        return double(float_of(innovations_[packed_at(i, j)])) - (i == j ? prior(i) : 0.0);
    }
    double factor_at(size_t r, size_t j) const { return r < j ? 0.0 : double(f_[packed_row(r) + j]); }

    // ---- from half precision, and back

    void widen_rows() {
        for (size_t j = 0; j < p_.dim; ++j) floats_of(rows_ + j * p_.size, r_ + j * slots_, size());
    }

    void widen_factor() {
        if (!p_.keep_inverse) return compute_factor();
        for (size_t r = 0; r < size(); ++r) {
            const float unit = std::ldexp(1.0f, exponents_[r] - bits);
            const std::int16_t* from = factor_ + packed_row(r);
            float* to = f_ + packed_row(r);
            for (size_t j = 0; j <= r; ++j) to[j] = float(from[j]) * unit;
        }
    }

    void widen_innovations() { floats_of(innovations_, s_, packed_size(linear_ + size())); }

    void widen() {
        if (!is_classification(p_.task)) widen_innovations();  // else the score has done that
        for (size_t k = 0; k < p_.outputs; ++k) std::copy(mean(k), mean(k) + linear_ + size(), working_mean(k));
    }

    void keep_rows() {
        for (size_t j = 0; j < p_.dim; ++j) halves_of(r_ + j * slots_, rows_ + j * p_.size, size());
    }

    void keep_factor() {
        if (!p_.keep_inverse) return;
        constexpr float most = float((1 << bits) - 1);
        for (size_t r = 0; r < size(); ++r) {
            const float* from = f_ + packed_row(r);
            std::int16_t* to = factor_ + packed_row(r);
            float largest = 0.0f;
            for (size_t j = 0; j <= r; ++j) {
                const float value = from[j] < 0.0f ? -from[j] : from[j];
                largest = value > largest ? value : largest;
            }
            int exponent = 0;
            std::frexp(largest, &exponent);
            exponents_[r] = static_cast<std::int16_t>(exponent);
            const float by = std::ldexp(1.0f, bits - exponent);
            for (size_t j = 0; j <= r; ++j) {
                float value = from[j] * by;
                value = value < most ? value : most;
                value = value > -most ? value : -most;
                to[j] = static_cast<std::int16_t>(value + (value < 0.0f ? -0.5f : 0.5f));
            }
        }
    }

    void keep_learned() {
        halves_of(s_, innovations_, packed_size(linear_ + size()));
        for (size_t k = 0; k < p_.outputs; ++k) {
            const float* from = working_mean(k);
            std::copy(from, from + linear_ + size(), mean(k));
        }
    }

    float* working_mean(size_t k) const { return a_ + k * (linear_ + slots_); }

    // ---- predicting

    // The row's features: (phi, k) and (phi, b).
    void look(const double* x) {
        const size_t n = size();
        for (size_t j = 0; j < p_.dim; ++j) x_[j] = float(Single::limit(x[j], Single::most_feature));
        std::copy(x_, x_ + linear_ - 1, own_);
        own_[linear_ - 1] = float(std::sqrt(p_.bias));
        std::copy(own_, own_ + linear_, psi_);
        unexpressed_ = 0.0;
        if (!p_.size) return;
        widen_rows();
        widen_factor();
        kernels(x_, n, own_ + linear_);
        unexpressed_ = 1.0 - expressed(own_ + linear_, psi_ + linear_);
    }

    void kernels(const float* x, size_t n, float* out) const {
        squared_distances(r_, slots_, n, x, p_.dim, out);
        gaussian(out, p_.gamma, n, out);
    }

    // b = F k; returns b'b.
    double expressed(const float* k, float* b) const {
        for (size_t r = 0; r < size(); ++r) b[r] = dot(f_ + packed_row(r), k, r + 1);
        return double(dot(b, b, size()));
    }

    void score(double* scores) {
        const size_t all = linear_ + size();
        double by = 1.0;
        if (is_classification(p_.task)) {
            widen_innovations();
            by = Single::softening(variance(double(packed_quadratic(s_, psi_, all))));
        }
        for (size_t k = 0; k < p_.outputs; ++k) {
            m_[k] = Single::limit(double(dot(mean(k), own_, all)), double(Limits<float>::huge));
            scores[k] = m_[k] / by;
        }
    }

    double variance(double inside) const { return inside + p_.rbf_scale * (unexpressed_ > 0.0 ? unexpressed_ : 0.0); }

    // ---- learning

    void update(double y, double weight) {
        size_t all = linear_ + size();
        if (p_.forget > 0.0) towards_prior(p_.forget);
        packed_times(s_, psi_, gain_, all);
        const double inside = double(dot(psi_, gain_, all)), v = variance(inside);
        const bool spent = !(v > Single::least_variance);
        const double divisor = Single::steps(p_, *c_, m_, y, weight, spent ? Single::least_variance : v);
        ++c_->labels;
        if (spent || !is_covariance(inside)) {
            // Rounding has eaten the variance, and a step would feed on rounding alone: none is taken, and
            // the covariance goes a part of the way back to the prior.
            towards_prior(Single::step_back);
            ++c_->floored;
            keep_learned();
            return;
        }
        std::copy(gain_, gain_ + linear_, step_);
        times_factor(gain_ + linear_, step_ + linear_);
        const bool joins = is_new(p_.novelty) && !(size() == p_.size && would_leave_at_once()) && is_new_as_kept() &&
                           p_.rbf_scale * unexpressed_ < divisor;
        if (joins) {
            const float g = float(unexpressed_), scale = float(p_.rbf_scale);
            for (size_t s = 0; s < size(); ++s) step_[linear_ + s] -= scale * e_[s];
            step_[all] = scale;
            gain_[all] = scale * std::sqrt(g);
            join();
            ++all;
        }
        for (size_t k = 0; k < p_.outputs; ++k) {
            float* a = working_mean(k);
            const float by = float(m_[k]);
            for (size_t j = 0; j < all; ++j) a[j] += step_[j] * by;
        }
        packed_rank_one(s_, 1.0f, gain_, float(-1.0 / divisor), all);
        if (size() > p_.size) remove(least_useful());
        if (joins) keep_basis();
        keep_learned();
    }

    // Of rows that have just changed. Rounding adds up as rows join, the faster the larger the numbers of F.
    void keep_basis() {
        const float* last = f_ + packed_row(size() - 1);
        float largest = 0.0f;
        for (size_t j = 0; j < size(); ++j) {
            const float value = last[j] < 0.0f ? -last[j] : last[j];
            largest = value > largest ? value : largest;
        }
        if (p_.keep_inverse && largest > large_factor) refresh();
        keep_rows();
        keep_factor();
    }

    void towards_prior(double share) {
        const size_t all = linear_ + size();
        const float keep = float(1.0 - share);
        for (size_t i = 0; i < packed_size(all); ++i) s_[i] *= keep;
        for (size_t i = 0; i < all; ++i) s_[diagonal(i)] += float(share * prior(i));
    }

    // Whether the gain can be one column of a covariance, but for rounding: gain_j^2 <= S_jj psi'S psi.
    bool is_covariance(double inside) const {
        size_t wrong = 0;
        for (size_t j = 0; j < linear_ + size(); ++j)
            wrong += !(double(gain_[j]) * double(gain_[j]) <= double(s_[diagonal(j)]) * inside * 1.001);
        return wrong == 0;
    }

    // out = F' of a vector.
    void times_factor(const float* of, float* out) const {
        const size_t n = size();
        for (size_t j = 0; j < n; ++j) out[j] = 0.0f;
        for (size_t r = 0; r < n; ++r) {
            const float* row = f_ + packed_row(r);
            const float by = of[r];
            for (size_t j = 0; j <= r; ++j) out[j] += row[j] * by;
        }
    }

    // Whether the kept rows leave this share of the row unexpressed; e_ is then how they express the rest.
    bool is_new(double novelty) {
        const double least = PosteriorLimits<float>::least_novelty;
        if (!p_.size || !(unexpressed_ > (novelty > least ? novelty : least))) return false;
        times_factor(psi_ + linear_, e_);
        return true;
    }

    // The same of the row as it would be kept, to which kernels are computed from then on.
    bool is_new_as_kept() {
        for (size_t j = 0; j < p_.dim; ++j) x_[j] = float_of(half_of(x_[j]));
        kernels(x_, size(), u_);
        unexpressed_ = 1.0 - expressed(u_, square_);
        times_factor(square_, e_);
        return unexpressed_ > PosteriorLimits<float>::least_novelty;
    }

    // u_ = the squared length of each column of F, which is the diagonal of the inverse of K.
    void pivots() {
        const size_t n = size();
        for (size_t j = 0; j < n; ++j) u_[j] = 0.0f;
        for (size_t r = 0; r < n; ++r) {
            const float* row = f_ + packed_row(r);
            for (size_t j = 0; j <= r; ++j) u_[j] += row[j] * row[j];
        }
    }

    // As in a Posterior.
    bool would_leave_at_once() {
        double own = 0.0;
        for (size_t k = 0; k < p_.outputs; ++k) own += m_[k] * m_[k];
        own *= p_.rbf_scale * p_.rbf_scale * unexpressed_;
        pivots();
        for (size_t s = 0; s < size(); ++s) {
            const double turned = double(step_[linear_ + s]) - p_.rbf_scale * double(e_[s]);
            double moved = 0.0;
            for (size_t k = 0; k < p_.outputs; ++k) {
                const double alpha = double(working_mean(k)[linear_ + s]) + turned * m_[k];
                moved += alpha * alpha;
            }
            if (moved <= own * (double(u_[s]) + double(e_[s]) * double(e_[s]) / unexpressed_)) return false;
        }
        return true;
    }

    // The row that was looked at joins the kept ones: what it adds to them is a coordinate of its own.
    void join() {
        const size_t n = size();
        const float root = std::sqrt(float(unexpressed_));
        float* row = f_ + packed_row(n);
        for (size_t j = 0; j < n; ++j) row[j] = -e_[j] / root;
        row[n] = 1.0f / root;
        float* fresh = s_ + packed_row(linear_ + n);
        for (size_t j = 0; j < linear_ + n; ++j) fresh[j] = 0.0f;
        fresh[linear_ + n] = float(p_.rbf_scale);
        for (size_t j = 0; j < p_.dim; ++j) r_[j * slots_ + n] = x_[j];
        for (size_t k = 0; k < p_.outputs; ++k) working_mean(k)[linear_ + n] = 0.0f;
        ++c_->n;
        ++c_->joined;
    }

    // ---- unlabelled rows, as in a Posterior

    void tie() {
        const size_t n = size();
        const float* k = own_ + linear_;
        size_t first, second;
        Single::nearest_two(k, n, first, second);
        widen();
        if (Single::may_join(p_, n, n ? double(k[first]) : 0.0) && is_new(p_.tie_novelty) && is_new_as_kept()) {
            join();
            keep_basis();
            keep_learned();
            return;
        }
        const double weight = n < 2 ? 0.0 : Single::tie_weight(p_, n, double(k[second]));
        if (weight < Single::least_tie) return;
        ++c_->ties;
        observe_equal(first, second, p_.tie_noise / weight);
        keep_learned();
    }

    // f(x_i) - f(x_j) = 0, observed with this noise.
    void observe_equal(size_t i, size_t j, double noise) {
        const size_t n = size(), all = linear_ + n;
        kernels_of(i, own_ + linear_);
        kernels_of(j, e_);
        for (size_t f = 0; f + 1 < linear_; ++f) own_[f] = r_[f * slots_ + i] - r_[f * slots_ + j];
        own_[linear_ - 1] = 0.0f;
        for (size_t s = 0; s < n; ++s) own_[linear_ + s] -= e_[s];
        std::copy(own_, own_ + linear_, psi_);
        expressed(own_ + linear_, psi_ + linear_);
        packed_times(s_, psi_, gain_, all);
        const double v = double(dot(psi_, gain_, all)), divisor = noise + v;
        if (!(v > Single::least_variance) || !is_covariance(v)) {
            ++c_->floored;
            return;
        }
        std::copy(gain_, gain_ + linear_, step_);
        times_factor(gain_ + linear_, step_ + linear_);
        for (size_t k = 0; k < p_.outputs; ++k) {
            float* a = working_mean(k);
            const float by = float(-double(dot(a, own_, all)) / divisor);
            for (size_t s = 0; s < all; ++s) a[s] += step_[s] * by;
        }
        packed_rank_one(s_, 1.0f, gain_, float(-1.0 / divisor), all);
    }

    void kernels_of(size_t s, float* out) {
        for (size_t j = 0; j < p_.dim; ++j) x_[j] = r_[j * slots_ + s];
        kernels(x_, size(), out);
        out[s] = 1.0f;
    }

    // ---- keeping to the budget

    // The row whose projection onto the others moves the functions least.
    size_t least_useful() {
        pivots();
        size_t best = 0;
        double least = 0.0;
        for (size_t s = 0; s < size(); ++s) {
            double moved = 0.0;
            for (size_t k = 0; k < p_.outputs; ++k) {
                const double alpha = double(working_mean(k)[linear_ + s]);
                moved += alpha * alpha;
            }
            moved /= double(u_[s]) > Single::least_pivot ? double(u_[s]) : Single::least_pivot;
            if (s == 0 || moved < least) {
                best = s;
                least = moved;
            }
        }
        return best;
    }

    // Returns by how much the functions move, squared.
    double remove(size_t i) {
        const size_t n = size(), all = linear_ + n;
        // k_i is written over the others with the coefficients -Q_.i / Q_ii, Q = F'F.
        for (size_t r = 0; r < n; ++r) e_[r] = r < i ? 0.0f : f_[packed_row(r) + i];
        times_factor(e_, u_);
        const float pivot = float(double(u_[i]) > Single::least_pivot ? double(u_[i]) : Single::least_pivot);
        double moved = 0.0;
        for (size_t k = 0; k < p_.outputs; ++k) {
            float* a = working_mean(k) + linear_;
            const float alpha = a[i];
            moved += double(alpha) * double(alpha) / double(pivot);
            for (size_t s = 0; s < n; ++s) a[s] -= u_[s] / pivot * alpha;
            for (size_t s = i; s + 1 < n; ++s) a[s] = a[s + 1];
        }
        for (size_t j = 0; j < p_.dim; ++j) {
            float* column = r_ + j * slots_;
            for (size_t s = i; s + 1 < n; ++s) column[s] = column[s + 1];
        }
        turn_out(i);
        drop_last(i, all);
        --c_->n;
        if (++c_->removed % removals_between_refreshes == 0 && p_.keep_inverse) refresh();
        return moved;
    }

    // Turns coordinates pairwise until column i of F has an entry in the last one only, and leaves both out of F.
    // Each turn is a reflection: the diagonal stays positive.
    void turn_out(size_t i) {
        const size_t n = size();
        float* above = u_;  // the row on its way down
        std::copy(f_ + packed_row(i), f_ + packed_row(i) + i + 1, above);
        float down = above[i];
        for (size_t r = i; r + 1 < n; ++r) {
            const float* below = f_ + packed_row(r + 1);
            const float length = std::sqrt(down * down + below[i] * below[i]);
            const float c = length > 0.0f ? below[i] / length : 1.0f, s = length > 0.0f ? down / length : 0.0f;
            cos_[r] = c;
            sin_[r] = s;
            down = length;
            above[r + 1] = 0.0f;
            float* to = f_ + packed_row(r);
            for (size_t j = 0; j < i; ++j) {
                const float high = above[j], low = below[j];
                to[j] = s * low - c * high;
                above[j] = s * high + c * low;
            }
            for (size_t j = i + 1; j <= r + 1; ++j) {
                const float high = above[j], low = below[j];
                to[j - 1] = s * low - c * high;
                above[j] = s * high + c * low;
            }
        }
    }

    // Turns S likewise, and leaves its last coordinate out.
    void drop_last(size_t i, size_t all) {
        float* here = square_;
        for (size_t r = 0; r < all; ++r) {
            const float* row = s_ + packed_row(r);
            for (size_t j = 0; j <= r; ++j) here[r * all + j] = here[j * all + r] = row[j];
        }
        for (int side = 0; side < 2; ++side) {
            for (size_t r = linear_ + i; r + 1 < all; ++r) {
                const float c = cos_[r - linear_], s = sin_[r - linear_];
                float *high = here + r * all, *low = high + all;
                for (size_t j = 0; j < all; ++j) {
                    const float first = high[j], second = low[j];
                    high[j] = s * second - c * first;
                    low[j] = s * first + c * second;
                }
            }
            for (size_t r = 0; r < all; ++r)
                for (size_t j = 0; j < r; ++j) std::swap(here[r * all + j], here[j * all + r]);
        }
        for (size_t r = linear_ + i; r + 1 < all; ++r) std::copy(here + r * all, here + r * all + r + 1, s_ + packed_row(r));
    }

    // What rounding has added to F goes.
    void refresh() {
        compute_factor();
        ++c_->refreshed;
    }

    // The upper triangular root of the Gram matrix of the rows in the scratch, and a row of doubles besides.
    Dense gram_root(double*& row) const {
        const size_t n = size(), dim = p_.dim;
        double *rows = doubles_, *x = rows + n * dim, *spare = x + dim;
        const Dense root(n, n, spare);
        row = spare;
        for (size_t j = 0; j < dim; ++j)
            for (size_t s = 0; s < n; ++s) rows[j * n + s] = double(r_[j * slots_ + s]);
        for (size_t s = 0; s < n; ++s) {
            for (size_t j = 0; j < dim; ++j) x[j] = rows[j * n + s];
            double* kernels = root[s] + s;
            squared_distances(rows + s, n, n - s, x, dim, kernels);
            gaussian(kernels, p_.gamma, n - s, kernels);
            kernels[0] = 1.0;
        }
        sf2el::factor(root, [](size_t) { return PosteriorLimits<float>::jitter; });
        return root;
    }

    // F from the rows in the scratch: the inverse of the lower triangular root of their Gram matrix.
    void compute_factor() {
        const size_t n = size();
        double* row;
        const Dense root = gram_root(row);
        for (size_t i = n; i-- > 0;) {
            // Below row i is the inverse already; with it row i becomes its own.
            double* own = root[i];
            std::fill(row, row + Dense::padded(n), 0.0);
            add_rows(row, -1.0, own + i + 1, 1, root, i + 1, n, i + 1 < n ? i + 1 : i);
            const double by = 1.0 / own[i];
            own[i] = by;
            for (size_t j = i + 1; j < n; ++j) own[j] = row[j] * by;
        }
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j <= r; ++j) f_[packed_row(r) + j] = float(root[j][r]);
    }

    const PosteriorParams& p_;
    size_t linear_, stride_, slots_;
    PosteriorCounters* c_;
    float* mean_;               // outputs x coordinates
    Half* rows_;                // feature by feature
    Half* innovations_;         // S, packed, linear coordinates first
    std::int16_t* exponents_;   // of the rows of F
    std::int16_t* factor_;      // F, packed
    // Scratch, with no meaning between calls: what is kept, in single precision, with room for one more row; vectors.
    double* doubles_;
    double* m_;
    float *x_, *r_, *f_, *s_, *a_, *psi_, *own_, *gain_, *step_, *e_, *u_, *cos_, *sin_, *square_;
    double unexpressed_ = 0.0;  // share of the row that the kept ones do not express
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
