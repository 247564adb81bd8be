// A posterior in half the bytes: rows and covariance as halves, the mean in single precision. A label thaws it
// into scratch, where it is a Posterior<float> that learns, and freezes it again.
//
// Once there are many labels, C (posterior minus prior) nearly cancels the prior, and halves would lose the
// rest. What is kept instead is the covariance of the linear coefficients and of what each kept row adds to
// those before it,
//
//   S = T (prior + C) T',  T = (identity, R),  R'R = K, the Gram matrix of the kept rows .
//
// Its radial part is the prior's scale on the diagonal to begin with, however alike the rows are, and falls as
// labels come: rounding takes the same small share of each entry, early and late.
#pragma once

#include "dense.hpp"
#include "half.hpp"
#include "posterior.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

class Halved {
    using Thawed = Posterior<float>;

public:
    static size_t coordinates(const PosteriorParams& p) { return p.linear() + p.size; }

    static size_t state_bytes(const PosteriorParams& p) {
        const size_t halves = size_t(p.size) * p.dim + packed_size(coordinates(p));
        return sizeof(PosteriorCounters) + round_up(p.outputs * coordinates(p) * sizeof(float) + halves * sizeof(Half));
    }

    static size_t scratch_bytes(const PosteriorParams& p) {
        return thawed_bytes(p) + Thawed::scratch_bytes(p) + working_reals(p) * sizeof(double);
    }

    // As for a Posterior; the parameters must say that no inverse is kept.
    Halved(const PosteriorParams& p, void* state, void* scratch) : Halved(p, state, scratch, Adopt{}) {
        std::memset(state, 0, state_bytes(p));
        Thawed fresh(p, thawed_, own_scratch());
        freeze(fresh);
    }

    struct Adopt {};
    Halved(const PosteriorParams& p, void* state, void* scratch, Adopt)
        : p_(p), linear_(p.linear()), stride_(coordinates(p)) {
        c_ = static_cast<PosteriorCounters*>(state);
        mean_ = reinterpret_cast<float*>(c_ + 1);
        rows_ = reinterpret_cast<Half*>(mean_ + p.outputs * stride_);
        innovations_ = rows_ + size_t(p.size) * p.dim;
        thawed_ = static_cast<unsigned char*>(scratch);
        working_ = reinterpret_cast<double*>(own_scratch() + Thawed::scratch_bytes(p));
    }

    void predict(const double* x, double* scores) { predicts(x, scores); }

    // The risk from before the update; NaN where y is: then the row can only tie kept ones.
    double learn(const double* x, double y, double weight, double* scores) {
        const bool labelled = y == y;
        if (predicts(x, scores) || labelled) {
            Thawed posterior = thaw();
            posterior.learn(x, y, weight, own_scores());
            const PosteriorCounters& now = posterior.counters();
            if (labelled || now.ties != c_->ties || now.joined != c_->joined || now.floored != c_->floored)
                freeze(posterior);
        }
        if (!labelled) return y;
        if (!is_classification(p_.task)) y = Thawed::limit(y, Thawed::most_number);
        return risk_of(p_.task, p_.outputs, scores, y);
    }

    PosteriorCounters& counters() { return *c_; }
    size_t linear() const { return linear_; }
    size_t size() const { return c_->n; }
    Half& feature(size_t s, size_t j) const { return rows_[s * p_.dim + j]; }
    float* mean(size_t k) { return mean_ + k * stride_; }
    Half* innovations() { return innovations_; }

    // C and Q in full and in double precision.
    void matrices(double* c, double* q) {
        const size_t n = size(), all = linear_ + n;
        Basis basis(*this, working_);
        const Dense radial = unfold(basis);
        for (size_t i = 0; i < linear_; ++i)
            for (size_t j = 0; j <= i; ++j) c[i * all + j] = c[j * all + i] = linear_covariance(i, j);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j <= linear_ + r; ++j)
                c[(linear_ + r) * all + j] = c[j * all + linear_ + r] = radial[r][j];
        Dense inverse(n, n, basis.spare);
        for (size_t r = 0; r < n; ++r) inverse[r][r] = 1.0;
        solve_lower(basis.root, inverse);
        solve_upper(basis.root, inverse);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j < n; ++j) q[r * n + j] = inverse[r][j];
    }

    // Takes over C, a function of two indices of which the second is at most the first. The rows must be there.
    template <class Covariance>
    void keep(const Covariance& c) {
        const size_t n = size(), all = linear_ + n;
        Basis basis(*this, working_);
        for (size_t i = 0; i < linear_; ++i)
            for (size_t j = 0; j <= i; ++j)
                innovations_[packed_row(i) + j] = half(c(i, j) + (i == j ? p_.linear_scale : 0.0));
        Dense radial(n, all, basis.spare), product(n, all, basis.spare);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j < all; ++j) radial[r][j] = j <= linear_ + r ? c(linear_ + r, j) : c(j, linear_ + r);
        add_product(product, basis.root, radial);
        Dense turned(n, n, basis.spare), square(n, n, basis.spare);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j < n; ++j) turned[j][r] = product[r][linear_ + j];
        add_product(square, basis.root, turned);
        for (size_t r = 0; r < n; ++r) {
            Half* row = innovations_ + packed_row(linear_ + r);
            for (size_t j = 0; j < linear_; ++j) row[j] = half(product[r][j]);
            for (size_t j = 0; j <= r; ++j) row[linear_ + j] = half(square[r][j] + (j == r ? p_.rbf_scale : 0.0));
        }
    }

private:
    // The kept rows in double precision, and the upper triangular factor of their Gram matrix.
    struct Basis {
        Basis(const Halved& of, double* scratch)
            : n(of.c_->n),
              dim(of.p_.dim),
              gamma(of.p_.gamma),
              spare(scratch + n * dim),
              rows(scratch),
              root(n, n, spare) {
            for (size_t s = 0; s < n; ++s)
                for (size_t j = 0; j < dim; ++j) rows[j * n + s] = double(float_of(of.feature(s, j)));
            for (size_t s = 0; s < n; ++s) {
                for (size_t j = 0; j < dim; ++j) spare[j] = rows[j * n + s];
                kernels(spare, root[s]);
                root[s][s] = 1.0;
            }
            factor(root, [](size_t) { return PosteriorLimits<float>::jitter; });
        }

        void kernels(const double* x, double* out) const {
            squared_distances(rows, n, n, x, dim, out);
            gaussian(out, gamma, n, out);
        }

        size_t n, dim;
        double gamma;
        double* spare;  // what is left of the scratch
        double* rows;   // feature by feature
        Dense root;
    };

    static size_t round_up(size_t bytes) { return (bytes + 7) / 8 * 8; }
    static size_t thawed_bytes(const PosteriorParams& p) { return round_up(Thawed::state_bytes(p)); }

    // As much as the call takes that takes most.
    static size_t working_reals(const PosteriorParams& p) {
        const size_t n = p.size, all = coordinates(p);
        const size_t basis = n * p.dim + Dense::reals(n, n) + p.dim;
        const size_t predicts = p.dim + all + packed_size(all) + Dense::reals(n, 1);
        const size_t turns = 2 * Dense::reals(n, all) + 3 * Dense::reals(n, n);
        return basis + (predicts > turns ? predicts : turns) + p.outputs;
    }

    static Half half(double value) { return half_of(static_cast<float>(value)); }

    // Scores that are not asked for.
    double* own_scores() const { return working_ + working_reals(p_) - p_.outputs; }

    unsigned char* own_scratch() const { return thawed_ + thawed_bytes(p_); }

    double linear_covariance(size_t i, size_t j) const {
        return double(float_of(innovations_[packed_row(i) + j])) - (i == j ? p_.linear_scale : 0.0);
    }

    // Scores, and whether the row may tell something even without a label. With b = R'^-1 k the variance is
    // (phi, b)' S (phi, b) + scale (1 - b'b): nothing has to be thawed.
    bool predicts(const double* x, double* scores) {
        const size_t n = size(), all = linear_ + n;
        Basis basis(*this, working_);
        double* own = basis.spare;
        double* psi = own + p_.dim;
        for (size_t j = 0; j < p_.dim; ++j)
            own[j] = double(static_cast<float>(Thawed::limit(x[j], Thawed::most_feature)));
        std::copy(own, own + linear_ - 1, psi);
        psi[linear_ - 1] = std::sqrt(p_.bias);
        basis.kernels(own, psi + linear_);
        for (size_t k = 0; k < p_.outputs; ++k) {
            double m = 0.0;
            for (size_t j = 0; j < all; ++j) m += double(mean(k)[j]) * psi[j];
            scores[k] = Thawed::limit(m, double(Limits<float>::huge));
        }
        const bool tells = Thawed::may_tell(p_, *c_, psi + linear_);
        if (!is_classification(p_.task)) return tells;
        double* packed = psi + all;
        for (size_t i = 0; i < packed_size(all); ++i) packed[i] = double(float_of(innovations_[i]));
        double* rest = packed + packed_size(all);
        Dense b(n, 1, rest);
        for (size_t s = 0; s < n; ++s) b[s][0] = psi[linear_ + s];
        solve_lower(basis.root, b);
        double unexpressed = p_.size ? 1.0 : 0.0;
        for (size_t s = 0; s < n; ++s) {
            unexpressed -= b[s][0] * b[s][0];
            psi[linear_ + s] = b[s][0];
        }
        const double by = Thawed::softening(packed_quadratic(packed, psi, all) + p_.rbf_scale * unexpressed);
        for (size_t k = 0; k < p_.outputs; ++k) scores[k] /= by;
        return tells;
    }

    // The radial rows of C.
    Dense unfold(Basis& basis) const {
        const size_t n = basis.n, all = linear_ + n;
        Dense radial(n, all, basis.spare), turned(n, n, basis.spare);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j < all; ++j) {
                const size_t i = linear_ + r, at = j <= i ? packed_row(i) + j : packed_row(j) + i;
                radial[r][j] = double(float_of(innovations_[at])) - (i == j ? p_.rbf_scale : 0.0);
            }
        solve_upper(basis.root, radial);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j < n; ++j) turned[j][r] = radial[r][linear_ + j];
        solve_upper(basis.root, turned);
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j < n; ++j) radial[r][linear_ + j] = turned[r][j];
        return radial;
    }

    Thawed thaw() {
        Thawed posterior(p_, thawed_, own_scratch(), Thawed::Adopt{});
        posterior.counters() = *c_;
        const size_t n = size(), all = linear_ + n;
        Basis basis(*this, working_);
        const Dense radial = unfold(basis);
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < p_.dim; ++j) posterior.feature(s, j) = float_of(feature(s, j));
        for (size_t k = 0; k < p_.outputs; ++k)
            for (size_t j = 0; j < all; ++j) posterior.mean(k)[j] = mean(k)[j];
        float* c = posterior.covariance();
        for (size_t i = 0; i < linear_; ++i)
            for (size_t j = 0; j <= i; ++j) c[packed_row(i) + j] = static_cast<float>(linear_covariance(i, j));
        for (size_t r = 0; r < n; ++r)
            for (size_t j = 0; j <= linear_ + r; ++j)
                c[packed_row(linear_ + r) + j] = static_cast<float>(radial[r][j]);
        return posterior;
    }

    void freeze(Thawed& posterior) {
        *c_ = posterior.counters();
        const size_t n = size(), all = linear_ + n;
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < p_.dim; ++j) feature(s, j) = half_of(posterior.feature(s, j));
        for (size_t k = 0; k < p_.outputs; ++k)
            for (size_t j = 0; j < all; ++j) mean(k)[j] = posterior.mean(k)[j];
        const float* c = posterior.covariance();
        keep([c](size_t i, size_t j) { return double(c[packed_row(i) + j]); });
    }

    const PosteriorParams& p_;
    size_t linear_, stride_;
    PosteriorCounters* c_;
    float* mean_;   // outputs x coordinates
    Half* rows_;    // row by row
    Half* innovations_;  // S, packed, linear coordinates first
    // Scratch, with no meaning between calls.
    unsigned char* thawed_;
    double* working_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
