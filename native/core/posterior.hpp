// A linear part and at most `size` radial functions under one Gaussian posterior:
//
//   f(x) = a' psi(x),  psi = (x, sqrt(bias), k),  k_i = exp(-gamma ||x_i - x||^2) ,
//
// psi without x where features have no slopes.
//
// A labelled row moves the mean a and the covariance by one step of Laplace's approximation (exact for squared
// loss). Kept are a, C = posterior minus prior covariance, and, unless bytes are short, Q = inverse of the Gram
// matrix of the kept rows. A row that the kept ones cannot express joins them; over budget, the one that matters
// least is projected onto the others.
//
// It allocates nothing: like a Learner it lives in a block the caller gives, and
// works in a scratch that learners of one thread can share.
#pragma once

#include "kernels.hpp"
#include "packed.hpp"
#include "tasks.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

template <class Real>
struct PosteriorLimits;

template <>
struct PosteriorLimits<double> {
    static constexpr double jitter = 1e-12, least_novelty = 1e-12, rounding = 1e-13;
};

template <>
struct PosteriorLimits<float> {
    static constexpr double jitter = 1e-6, least_novelty = 1e-5, rounding = 1e-5;
};

template <class Real>
class Posterior {
public:
    static size_t slots(const PosteriorParams& p) { return p.size ? size_t(p.size) + 1 : 0; }
    static size_t coordinates(const PosteriorParams& p) { return p.linear() + slots(p); }

    static size_t state_bytes(const PosteriorParams& p) {
        const size_t reals = slots(p) * p.dim + p.outputs * coordinates(p) + packed_size(coordinates(p));
        return sizeof(PosteriorCounters) + round_up((reals + (p.keep_inverse ? inverse_reals(p) : 0)) * sizeof(Real));
    }

    static size_t scratch_bytes(const PosteriorParams& p) {
        const size_t reals = p.dim + 5 * working(p);
        return p.outputs * sizeof(double) + round_up((reals + (p.keep_inverse ? 0 : inverse_reals(p))) * sizeof(Real));
    }

    // `state`: state_bytes(p) bytes, `scratch`: scratch_bytes(p) bytes, both aligned to 8; the
    // parameters must live as long as the expert.
    Posterior(const PosteriorParams& p, void* state, void* scratch) : Posterior(p, state, scratch, Adopt{}) {
        std::memset(state, 0, state_bytes(p));
        *c_ = PosteriorCounters{};
        if (slots_ && p.centred > 0.0) {
            // The origin is a kept row at which little is left to learn: what all rows share is the constant's.
            c_->n = 1;
            if (p.keep_inverse) inverse_[0] = Real(1);
            covariance_[diagonal(linear_)] = static_cast<Real>(-p.centred * p.rbf_scale);
        }
    }

    // Goes on with a state that an expert with the same parameters has filled.
    struct Adopt {};
    Posterior(const PosteriorParams& p, void* state, void* scratch, Adopt)
        : p_(p), linear_(p.linear()), slots_(slots(p)), stride_(coordinates(p)) {
        c_ = static_cast<PosteriorCounters*>(state);
        rows_ = reinterpret_cast<Real*>(static_cast<unsigned char*>(state) + sizeof(PosteriorCounters));
        mean_ = rows_ + slots_ * p.dim;
        covariance_ = mean_ + p.outputs * stride_;
        m_ = static_cast<double*>(scratch);
        x_ = reinterpret_cast<Real*>(m_ + p.outputs);
        psi_ = x_ + p.dim;
        gain_ = psi_ + working(p);
        e_ = gain_ + working(p);
        u_ = e_ + working(p);
        w_ = u_ + working(p);
        inverse_ = p.keep_inverse ? covariance_ + packed_size(stride_) : w_ + working(p);
    }

    void predict(const double* x, double* scores) {
        featurise(x);
        score(quadratic(), scores);
    }

    // The risk from before the update; NaN where y is: then the row can only tie kept ones.
    double learn(const double* x, double y, double weight, double* scores) {
        featurise(x);
        const double shrunk = quadratic();
        score(shrunk, scores);
        if (y != y) {
            if (p_.tie_noise > 0.0) tie();
            return y;
        }
        if (!is_classification(p_.task)) y = limit(y, most_number);
        const double risk = risk_of(p_.task, p_.outputs, scores, y);
        update(y, weight, shrunk);
        return risk;
    }

    const PosteriorParams& params() const { return p_; }
    PosteriorCounters& counters() { return *c_; }
    size_t linear() const { return linear_; }
    size_t size() const { return c_->n; }
    Real& feature(size_t s, size_t j) { return rows_[j * slots_ + s]; }
    Real* mean(size_t k) { return mean_ + k * stride_; }
    Real* covariance() { return covariance_; }

    // Rows are meant to be scaled (a few units at most), labels standardised: beyond these they are clipped.
    static constexpr double most_feature = 1e3, most_number = 1e6;

    static double limit(double value, double most) {
        value = value < most ? value : most;
        return value > -most ? value : -most;
    }

    // What a score of this variance is divided by, so that its sigmoid is a probability.
    static double softening(double v) {
        constexpr double pi_over_eight = 0.39269908169872414;
        return std::sqrt(1.0 + pi_over_eight * (v > least_variance ? v : least_variance));
    }

    // Whether a row without a label, with these kernels to n kept rows, may teach an expert anything.
    template <class Kernel>
    static bool may_teach(const PosteriorParams& p, const PosteriorCounters& c, const Kernel* k) {
        if (!(p.tie_noise > 0.0) || !p.size || c.ties >= p.most_ties) return false;
        double nearest = 0.0, farther = 0.0;
        for (size_t s = 0; s < c.n; ++s) {
            const double own = double(k[s]);
            if (own > farther) farther = own < nearest ? own : nearest;
            if (own > nearest) nearest = own;
        }
        // Kernels are computed again in another precision: near the limit the row is learned all the same.
        constexpr double slack = 0.999;
        return may_join(p, c.n, slack * nearest) || (c.n > 1 && tie_weight(p, c.n, farther) >= slack * least_tie);
    }

    // Leaves so many radial functions at most; returns by how much that moves the functions, squared.
    double shrink(size_t size) {
        double moved = 0.0;
        while (c_->n > size) {
            ready();
            moved += remove(least_useful());
        }
        return moved;
    }

    // Whether a block can be what a posterior with these parameters has kept.
    static bool is_sound(const PosteriorParams& p, const void* state) {
        const auto* c = static_cast<const PosteriorCounters*>(state);
        if (!are_sound(p, *c)) return false;
        const Real* reals = reinterpret_cast<const Real*>(c + 1);
        const size_t count = slots(p) * p.dim + p.outputs * coordinates(p) + packed_size(coordinates(p)) +
                             (p.keep_inverse ? inverse_reals(p) : 0);
        constexpr Real huge = Limits<Real>::huge;
        size_t wrong = 0;
        for (size_t i = 0; i < count; ++i) wrong += !(reals[i] >= -huge && reals[i] <= huge);
        return wrong == 0;
    }

    static bool are_sound(const PosteriorParams& p, const PosteriorCounters& c) {
        return c.n <= p.size && c.residuals >= 0.0 && c.residuals <= Limits<double>::huge;
    }

    // Q; where it is not kept, it is good until the scratch is used again.
    Real* inverse() {
        ready();
        return inverse_;
    }

private:
    friend class HalfPosterior;

    static constexpr double least_variance = 1e-9, least_noise = 1e-4, least_curvature = 1e-3, least_pivot = 1e-6,
                            step_back = 0.05, least_tie = 1e-2;
    static constexpr std::uint64_t removals_between_refreshes = 16;

    static size_t round_up(size_t bytes) { return (bytes + 7) / 8 * 8; }
    static size_t inverse_reals(const PosteriorParams& p) { return packed_size(slots(p)); }

    // A vector of scratch may hold a row too.
    static size_t working(const PosteriorParams& p) { return coordinates(p) > p.dim ? coordinates(p) : p.dim; }

    // ---- predicting

    void featurise(const double* x) {
        const size_t dim = p_.dim, n = c_->n;
        for (size_t j = 0; j < dim; ++j) x_[j] = static_cast<Real>(limit(x[j], most_feature));
        std::copy(x_, x_ + linear_ - 1, psi_);
        psi_[linear_ - 1] = static_cast<Real>(std::sqrt(p_.bias));
        kernels(x_, n, psi_ + linear_);
    }

    void kernels(const Real* x, size_t n, Real* out) {
        squared_distances(rows_, slots_, n, x, p_.dim, out);
        gaussian(out, p_.gamma, n, out);
    }

    double quadratic() const { return double(packed_quadratic(covariance_, psi_, linear_ + c_->n)); }

    double prior() const {
        return p_.linear_scale * double(dot(psi_, psi_, linear_)) + (slots_ ? p_.rbf_scale : 0.0);
    }

    void score(double shrunk, double* scores) {
        const size_t n = linear_ + c_->n;
        const double by = is_classification(p_.task) ? softening(prior() + shrunk) : 1.0;
        for (size_t k = 0; k < p_.outputs; ++k) {
            m_[k] = limit(double(dot(mean(k), psi_, n)), double(Limits<Real>::huge));
            scores[k] = m_[k] / by;
        }
    }

    // ---- learning

    void update(double y, double weight, double shrunk) {
        const double before = prior();
        double keep = 1.0 - p_.forget;
        const double v = before + keep * shrunk;
        const bool spent = !(v > least_variance);
        const double divisor = steps(p_, *c_, m_, y, weight, spent ? least_variance : v);
        gain(static_cast<Real>(keep));
        const size_t n = linear_ + c_->n;
        double taken = -1.0 / divisor;
        if (spent || !is_covariance(keep, before, v)) {
            // Rounding has eaten the variance, and a step would feed on rounding alone: none is taken, and
            // the covariance goes a part of the way back to the prior.
            keep *= 1.0 - step_back;
            taken = 0.0;
            ++c_->floored;
        } else {
            for (size_t k = 0; k < p_.outputs; ++k) {
                Real* a = mean(k);
                const Real step = static_cast<Real>(m_[k]);
                for (size_t j = 0; j < n; ++j) a[j] += gain_[j] * step;
            }
        }
        packed_rank_one(covariance_, static_cast<Real>(keep), gain_, static_cast<Real>(taken), n);
        ++c_->labels;
        if (c_->n > p_.size) remove(least_useful());
    }

    // Whether the gain can be one column of a covariance, but for rounding: gain_j^2 <= variance_j v.
    bool is_covariance(double keep, double before, double v) const {
        constexpr double rounding = PosteriorLimits<Real>::rounding;
        const double here = v + rounding * before;
        size_t wrong = 0;
        for (size_t j = 0; j < linear_ + c_->n; ++j) {
            const double own = j < linear_ ? p_.linear_scale : p_.rbf_scale * double(inverse_[diagonal(j - linear_)]);
            const double there = own + keep * double(covariance_[diagonal(j)]) + rounding * own;
            wrong += !(double(gain_[j]) * double(gain_[j]) <= here * there);
        }
        return wrong == 0;
    }

    static size_t diagonal(size_t i) { return packed_row(i) + i; }

    // Turns the means in m into the steps along the gain; returns D, which the covariance is divided by.
    static double steps(const PosteriorParams& p, PosteriorCounters& c, double* m, double y, double weight, double v) {
        if (is_classification(p.task)) {
            // What a label says of f is taken as a number with noise, by the likelihood's curvature at the mean.
            double h = least_curvature;
            for (size_t k = 0; k < p.outputs; ++k) {
                const double share = sigmoid(m[k]);
                m[k] = target(p.task, k, y) - share;
                if (share * (1.0 - share) > h) h = share * (1.0 - share);
            }
            const double divisor = 1.0 / h / weight + v;
            for (size_t k = 0; k < p.outputs; ++k) m[k] *= 1.0 / (h * divisor);
            return divisor;
        }
        const double residual = y - m[0], size = std::fabs(residual);
        const bool squared = p.task == Task::squared;
        const double scale = (1.0 + c.residuals) / (1.0 + double(c.labels));
        double noise = squared ? scale : scale * (size > 0.1 * scale ? size : 0.1 * scale);
        noise = noise > least_noise ? noise : least_noise;
        c.residuals += squared ? residual * residual : size;
        const double divisor = noise / weight + v;
        m[0] = residual / divisor;
        return divisor;
    }

    // gain = posterior covariance times psi, after the row has joined the kept ones where it is new to them and
    // stays; m_ holds the steps along it.
    void gain(Real keep) {
        const size_t n = linear_ + c_->n;
        packed_times(covariance_, psi_, gain_, n);
        for (size_t j = 0; j < n; ++j) gain_[j] *= keep;
        const Real linear_scale = static_cast<Real>(p_.linear_scale), rbf_scale = static_cast<Real>(p_.rbf_scale);
        for (size_t j = 0; j < linear_; ++j) gain_[j] += linear_scale * psi_[j];
        if (!slots_) return;
        const Real* k = psi_ + linear_;
        ready();
        packed_times(inverse_, k, e_, c_->n);
        const Real g = Real(1) - dot(k, e_, c_->n);
        const double least = p_.novelty > PosteriorLimits<Real>::least_novelty ? p_.novelty
                                                                               : PosteriorLimits<Real>::least_novelty;
        if (double(g) > least && !(c_->n == p_.size && would_leave_at_once(double(g)))) {
            join(g);
            gain_[n] = rbf_scale;
        } else {
            for (size_t s = 0; s < c_->n; ++s) gain_[linear_ + s] += rbf_scale * e_[s];
        }
    }

    // Whether, of all rows after this round, the newcomer would matter least. To join and be projected onto the
    // others is the same as to be expressed by them from the start, which is cheaper.
    bool would_leave_at_once(double g) {
        double own = 0.0;
        for (size_t k = 0; k < p_.outputs; ++k) own += m_[k] * m_[k];
        own *= p_.rbf_scale * p_.rbf_scale * g;
        for (size_t s = 0; s < c_->n; ++s) {
            const size_t at = linear_ + s;
            double moved = 0.0;
            for (size_t k = 0; k < p_.outputs; ++k) {
                const double alpha = double(mean(k)[at]) + double(gain_[at]) * m_[k];
                moved += alpha * alpha;
            }
            if (moved <= own * (double(inverse_[diagonal(s)]) + double(e_[s]) * double(e_[s]) / g)) return false;
        }
        return true;
    }

    void join(Real g) {
        const size_t n = c_->n;
        packed_rank_one(inverse_, Real(1), e_, Real(1) / g, n);
        Real* row = inverse_ + packed_row(n);
        for (size_t s = 0; s < n; ++s) row[s] = -e_[s] / g;
        row[n] = Real(1) / g;
        for (size_t j = 0; j < p_.dim; ++j) feature(n, j) = x_[j];
        Real* fresh = covariance_ + packed_row(linear_ + n);
        for (size_t j = 0; j <= linear_ + n; ++j) fresh[j] = Real(0);
        for (size_t k = 0; k < p_.outputs; ++k) mean(k)[linear_ + n] = Real(0);
        ++c_->n;
        ++c_->joined;
    }

    // ---- unlabelled rows

    // A row between two kept ones says that f is much the same at both: an observation of their difference,
    // 0 up to noise. A row that lies apart from all joins them while there is room.
    void tie() {
        const size_t n = c_->n;
        if (!slots_ || c_->ties >= p_.most_ties) return;
        const Real* k = psi_ + linear_;
        size_t first, second;
        nearest_two(k, n, first, second);
        if (may_join(p_, n, n ? double(k[first]) : 0.0)) {
            ready();
            packed_times(inverse_, k, e_, n);
            const Real g = Real(1) - dot(k, e_, n);
            if (double(g) > p_.tie_novelty) {
                join(g);
                return;
            }
        }
        const double weight = n < 2 ? 0.0 : tie_weight(p_, n, double(k[second]));
        if (weight < least_tie) return;
        ++c_->ties;
        observe_equal(first, second, p_.tie_noise / weight);
    }

    // Whether an unlabelled row may lie apart from the kept ones, the nearest of which has this kernel. That one
    // alone expresses its kernel squared: only past that does the rest matter.
    static bool may_join(const PosteriorParams& p, size_t n, double nearest) {
        return n < p.size && (n == 0 || 1.0 - nearest * nearest > p.tie_novelty);
    }

    // What a tie weighs of which the farther row has this kernel; none while there are few rows.
    static double tie_weight(const PosteriorParams& p, size_t n, double farther) {
        double weight = 2 * n < p.size ? 0.0 : 1.0;
        for (std::uint32_t i = 0; i < p.tie_power; ++i) weight *= farther;
        return weight;
    }

    // The largest and the second largest of n kernels; as far as there are two.
    static void nearest_two(const Real* k, size_t n, size_t& first, size_t& second) {
        first = n > 1 && k[1] > k[0] ? 1 : 0;
        second = 1 - first;
        for (size_t s = 2; s < n; ++s) {
            if (k[s] > k[first]) {
                second = first;
                first = s;
            } else if (k[s] > k[second]) {
                second = s;
            }
        }
    }

    // f(x_i) - f(x_j) = 0, observed with this noise.
    void observe_equal(size_t i, size_t j, double noise) {
        const size_t n = c_->n, all = linear_ + n;
        kernels_of(i, u_ + linear_);
        kernels_of(j, w_ + linear_);
        for (size_t f = 0; f + 1 < linear_; ++f) w_[f] = feature(i, f) - feature(j, f);
        w_[linear_ - 1] = Real(0);
        const double apart = 2.0 - 2.0 * double(u_[linear_ + j]);
        for (size_t s = linear_; s < all; ++s) w_[s] = u_[s] - w_[s];
        const double before = p_.linear_scale * double(dot(w_, w_, linear_)) + p_.rbf_scale * apart;
        const double v = before + double(packed_quadratic(covariance_, w_, all));
        if (!(v > least_variance)) {
            ++c_->floored;
            return;
        }
        packed_times(covariance_, w_, gain_, all);
        const Real linear_scale = static_cast<Real>(p_.linear_scale), rbf_scale = static_cast<Real>(p_.rbf_scale);
        for (size_t f = 0; f < linear_; ++f) gain_[f] += linear_scale * w_[f];
        gain_[linear_ + i] += rbf_scale;
        gain_[linear_ + j] -= rbf_scale;
        const double divisor = noise + v;
        for (size_t k = 0; k < p_.outputs; ++k) {
            Real* a = mean(k);
            const Real step = static_cast<Real>(-double(dot(a, w_, all)) / divisor);
            for (size_t s = 0; s < all; ++s) a[s] += gain_[s] * step;
        }
        packed_rank_one(covariance_, Real(1), gain_, static_cast<Real>(-1.0 / divisor), all);
    }

    void kernels_of(size_t s, Real* out) {
        for (size_t j = 0; j < p_.dim; ++j) x_[j] = feature(s, j);
        kernels(x_, c_->n, out);
        out[s] = Real(1);
    }

    // ---- keeping to the budget

    double pivot(size_t s) {
        const double value = double(inverse_[packed_row(s) + s]);
        if (value > least_pivot) return value;
        ++c_->floored;
        return least_pivot;
    }

    // The row whose projection onto the others moves the functions least.
    size_t least_useful() {
        size_t best = 0;
        double least = 0.0;
        for (size_t s = 0; s < c_->n; ++s) {
            double moved = 0.0;
            for (size_t k = 0; k < p_.outputs; ++k) {
                const double alpha = double(mean(k)[linear_ + s]);
                moved += alpha * alpha;
            }
            moved /= pivot(s);
            if (s == 0 || moved < least) {
                best = s;
                least = moved;
            }
        }
        return best;
    }

    // k_i is written over the other kept rows with the coefficients u = -Q_.i / Q_ii. Returns by how much the
    // functions move, squared.
    double remove(size_t i) {
        const size_t n = c_->n, all = linear_ + n, at = linear_ + i;
        packed_column(inverse_, i, e_, n);
        const Real q = static_cast<Real>(double(e_[i]) > least_pivot ? double(e_[i]) : least_pivot);
        double moved = 0.0;
        for (size_t k = 0; k < p_.outputs; ++k) moved += double(mean(k)[at]) * double(mean(k)[at]) / double(q);
        for (size_t j = 0; j < linear_; ++j) u_[j] = Real(0);
        for (size_t s = 0; s < n; ++s) u_[linear_ + s] = -e_[s] / q;
        u_[at] = Real(0);
        for (size_t k = 0; k < p_.outputs; ++k) {
            Real* a = mean(k);
            const Real alpha = a[at];
            for (size_t j = linear_; j < all; ++j) a[j] += u_[j] * alpha;
            a[at] = a[all - 1];
        }
        packed_column(covariance_, at, gain_, all);
        for (size_t j = 0; j < all; ++j) w_[j] = gain_[at] * u_[j] + gain_[j];
        packed_fold(covariance_, u_, gain_, w_, linear_, all);
        packed_move_last(covariance_, at, all);
        if (p_.keep_inverse) {
            packed_rank_one(inverse_, Real(1), e_, Real(-1) / q, n);
            packed_move_last(inverse_, i, n);
        }
        for (size_t j = 0; j < p_.dim; ++j) feature(i, j) = feature(n - 1, j);
        --c_->n;
        if (++c_->removed % removals_between_refreshes == 0 && p_.keep_inverse) {
            // What rounding has added to Q goes.
            invert();
            ++c_->refreshed;
        }
        return moved;
    }

    void ready() {
        if (!p_.keep_inverse) invert();
    }

    // Q from the rows.
    void invert() {
        const size_t n = c_->n;
        for (size_t s = 0; s < n; ++s) {
            for (size_t j = 0; j < p_.dim; ++j) u_[j] = feature(s, j);
            kernels(u_, s, inverse_ + packed_row(s));
            inverse_[packed_row(s) + s] = static_cast<Real>(1.0 + PosteriorLimits<Real>::jitter);
        }
        packed_invert(inverse_, w_, n);
    }

    const PosteriorParams& p_;
    size_t linear_, slots_, stride_;
    PosteriorCounters* c_;
    Real* rows_;        // slots x dim, feature by feature
    Real* mean_;        // outputs x coordinates
    Real* covariance_;  // posterior minus prior, packed, linear coordinates first
    Real* inverse_;     // of the Gram matrix, packed; scratch where it is not kept
    // Scratch, with no meaning between rounds.
    double* m_;
    Real *x_, *psi_, *gain_, *e_, *u_, *w_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
