// The paper's learner in one feature space: f = sum over a buffer of
// beta_s K(x_s, .), moved each round by one step down the gradient of
//
//   J = c loss(f(x), y) + (ridge / 2) ||f||^2
//     + smoothness * sum_s u_s w_s (f(x_s) - f(x))^2 ,
//
// where u_s is the inverse of row s's inclusion probability: seen / n for a
// reservoir of fixed size, by stratum where there are two.
//
// It allocates nothing: all that it keeps lies in a block the caller gives, and
// can be copied with it. A second block is scratch, with no meaning between two
// calls: learners of one thread can share it.
#pragma once

#include "kernels.hpp"
#include "losses.hpp"
#include "rng.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

template <class Real>
class Learner {
public:
    static size_t state_bytes(const LearnerParams& p) {
        const size_t b = p.capacity, square = packed_size(b);
        const size_t matrices = (p.keep_gram ? 1 : 0) + (p.projection == Projection::exact ? 1 : 0);
        const size_t reals = b * p.dim + 2 * b + matrices * square;
        return sizeof(LearnerCounters) + round_up(reals * sizeof(Real)) + round_up(p.stratified ? b : 0);
    }

    static size_t scratch_bytes(const LearnerParams& p) {
        const size_t b = p.capacity, m = pursuit_most(p);
        size_t reals = 2 * p.dim + 10 * b;
        if (p.projection == Projection::pursuit) reals += packed_size(m) + m + m * b;
        const size_t indices = p.projection == Projection::pursuit ? m : 0;
        return round_up(reals * sizeof(Real)) + round_up(indices * sizeof(std::uint32_t));
    }

    // A new learner. `state`: state_bytes(p) bytes, `scratch`: scratch_bytes(p) bytes, both aligned to 8;
    // the parameters must live as long as the learner.
    Learner(const LearnerParams& p, void* state, void* scratch) : Learner(p, state, scratch, Adopt{}) {
        std::memset(state, 0, state_bytes(p));
        *c_ = LearnerCounters{};
        c_->rng = p.seed;
    }

    // Goes on with a state that a learner with the same parameters has filled.
    struct Adopt {};
    Learner(const LearnerParams& p, void* state, void* scratch, Adopt)
        : p_(p), fixed_diagonal_(constant_diagonal(p)) {
        attach(static_cast<unsigned char*>(state), static_cast<unsigned char*>(scratch));
    }

    double predict(const double* x) {
        load_row(x);
        kernel_row();
        return score();
    }

    // `weight` multiplies the loss.
    Outcome learn(const double* x, double y, double weight = 1.0) { return round(x, y, weight, false); }

    // The label of a row that was learned without it: the loss part of a step of now, and nothing else.
    // The row's own coefficient takes it where the row is still there; else it is treated as a skipped row's.
    SF2EL_APART Outcome learn_late(const double* x, double y, double weight = 1.0) {
        load_row(x);
        kernel_row();
        const double f = score();
        const double rounds = c_->seen ? double(c_->seen) : 1.0;
        const double rate = inverse_rate(rounds);
        const LossAt loss = weighted_loss(f, y, weight);
        const double tau = p_.step / std::sqrt(double(c_->clock + 1));
        const Real own = self_kernel(p_, x_);
        const Real fresh = static_cast<Real>(-limit(tau * rate * limit(loss.derivative)));
        c_->norm_bound += std::fabs(double(fresh)) * std::sqrt(double(own));
        const size_t slot = slot_of_row();
        if (slot != skipped) beta_[slot] = saturate<Real>(beta_[slot] + fresh);
        else if (p_.project_on_skip && fresh != Real(0) && c_->n) add_projected(k_, fresh);
        into_ball();
        ++c_->labels;
        return {f, limit(rate * limit(loss.value))};
    }

    // The round's score and risk, with the function and the buffer left as they are.
    Outcome observe(const double* x, double y) { return round(x, y, 1.0, true); }

    void restart() { c_->clock = 0; }

    // Computes the Gram matrix from the rows, as when a state was put in from elsewhere.
    void fill_gram() {
        if (!gram_) return;
        for (size_t s = 0; s < c_->n; ++s) {
            load_kept(s);
            kernel_against(other_, s, column_squared_, gram_ + packed_row(s));
            gram_[packed_row(s) + s] = self_kernel(p_, other_);
        }
    }

    const LearnerParams& params() const { return p_; }
    LearnerCounters& counters() { return *c_; }
    size_t size() const { return c_->n; }
    Real* beta() { return beta_; }
    Real* weights() { return upweight_; }
    Real* gram() { return gram_; }
    Real* inverse() { return inverse_; }
    std::uint8_t* kinds() { return kinds_; }
    Real& feature(size_t s, size_t j) { return rows_[j * p_.capacity + s]; }

private:
    static constexpr Real huge = Limits<Real>::huge;
    static constexpr size_t skipped = ~size_t(0);

    static size_t round_up(size_t bytes) { return (bytes + 7) / 8 * 8; }
    static size_t pursuit_most(const LearnerParams& p) {
        return p.pursuit_steps < p.capacity ? p.pursuit_steps : p.capacity;
    }

    void attach(unsigned char* state, unsigned char* scratch) {
        const size_t b = p_.capacity, square = packed_size(b);
        c_ = reinterpret_cast<LearnerCounters*>(state);
        rows_ = reinterpret_cast<Real*>(state + sizeof(LearnerCounters));
        beta_ = rows_ + b * p_.dim;
        upweight_ = beta_ + b;
        gram_ = p_.keep_gram ? upweight_ + b : nullptr;
        inverse_ = p_.projection == Projection::exact ? gram_ + square : nullptr;
        kinds_ = p_.stratified ? state + state_bytes(p_) - round_up(b) : nullptr;
        x_ = reinterpret_cast<Real*>(scratch);
        other_ = x_ + p_.dim;
        k_ = other_ + p_.dim;
        squared_ = k_ + b;
        weights_ = squared_ + b;
        scaled_ = weights_ + b;
        gap_ = scaled_ + b;
        work_ = gap_ + b;
        spare_ = work_ + b;
        term_ = spare_ + b;
        column_ = term_ + b;
        column_squared_ = column_ + b;
        factor_ = column_squared_ + b;
        solution_ = factor_ + packed_size(pursuit_most(p_));
        columns_ = solution_ + pursuit_most(p_);
        chosen_ = reinterpret_cast<std::uint32_t*>(scratch + scratch_bytes(p_) -
                                                   round_up(pursuit_most(p_) * sizeof(std::uint32_t)));
    }

    // ---- one round

    Outcome round(const double* x, double y, double weight, bool frozen) {
        const bool labelled = y == y;
        const unsigned kind = labelled && p_.stratified;
        load_row(x);
        kernel_row();
        const double f = score();

        const double rate = inverse_rate(double(c_->seen + 1));
        const LossAt loss = labelled ? weighted_loss(f, y, weight) : LossAt{0.0, 0.0};
        double risk = limit(rate * limit(loss.value));
        if (p_.manifold) risk = limit(risk + regularisers(static_cast<Real>(f)));

        if (!frozen) {
            const double tau = p_.step / std::sqrt(double(c_->clock + 1));
            const Real own = self_kernel(p_, x_);
            const size_t slot = draw_slot(kind);
            double coefficient = 0.0;
            if (p_.manifold) coefficient = manifold_step(tau, own, slot == skipped);
            if (labelled) {
                if (!p_.manifold) shrink(tau);
                coefficient -= limit(tau * rate * limit(loss.derivative));
            }
            const Real fresh = static_cast<Real>(limit(coefficient));
            c_->norm_bound += std::fabs(double(fresh)) * std::sqrt(double(own));
            keep(slot, own, fresh, kind);
            if (p_.manifold || labelled || slot != skipped) into_ball();
            ++c_->clock;
        } else if (c_->seen_by_kind[kind]) {
            // The buffer stands for one more row of this kind.
            c_->decay[kind] *= double(c_->seen_by_kind[kind]) / double(c_->seen_by_kind[kind] + 1);
        }
        ++c_->seen;
        c_->labels += labelled;
        ++c_->seen_by_kind[kind];
        return {f, risk};
    }

    // c: one over the label rate, given or estimated from the rounds and the labels with this one.
    double inverse_rate(double rounds) const {
        if (p_.label_rate > 0.0) return 1.0 / p_.label_rate < huge ? 1.0 / p_.label_rate : double(huge);
        return rounds / double(c_->labels + 1);
    }

    LossAt weighted_loss(double f, double y, double weight) const {
        const LossAt loss = loss_at(p_.loss, f, y);
        return {weight * loss.value, weight * loss.derivative};
    }

    // (ridge / 2) ||f||^2 + smoothness * roughness; leaves w_s, the scaled w_s and f(x_s) - f(x) for the step.
    double regularisers(Real f) {
        const size_t n = c_->n;
        gram_times(beta_, gap_);
        for (size_t s = 0; s < n; ++s) gap_[s] = saturate(gap_[s]);
        const double norm2 = std::fabs(double(dot(beta_, gap_, n)));
        c_->norm_bound = std::sqrt(norm2);
        gaussian(squared_, p_.graph_width, n, weights_);
        // Each row counts for as many as it stands for: the inverse of its inclusion probability.
        const Real boost[2] = {static_cast<Real>(1.0 / c_->decay[0]), static_cast<Real>(1.0 / c_->decay[1])};
        if (kinds_)
            for (size_t s = 0; s < n; ++s) scaled_[s] = upweight_[s] * boost[kinds_[s]] * weights_[s];
        else
            for (size_t s = 0; s < n; ++s) scaled_[s] = upweight_[s] * boost[0] * weights_[s];
        for (size_t s = 0; s < n; ++s) {
            const Real gap = gap_[s] - f;
            gap_[s] = gap;
            work_[s] = gap * gap;
        }
        const double roughness = double(dot(scaled_, work_, n));
        return limit(0.5 * p_.ridge * norm2) + limit(p_.smoothness * roughness);
    }

    // The ridge and manifold part of the step. Returns the arriving row's coefficient.
    double manifold_step(double tau, Real own, bool is_skipped) {
        const size_t n = c_->n;
        const double wide = 2.0 * tau * p_.smoothness;
        Real base = static_cast<Real>(wide < huge ? wide : double(huge));
        if (p_.cap) {
            // K(x_s,x_s) - 2 K(x_s,x) + K(x,x): the squared distance of the two representers.
            if (fixed_diagonal_)
                for (size_t s = 0; s < n; ++s) work_[s] = own - Real(2) * k_[s] + own;
            else
                for (size_t s = 0; s < n; ++s) work_[s] = diagonal(s, own) - Real(2) * k_[s] + own;
            const Real q = base * dot(scaled_, work_, n);
            if (q > Real(1)) base = base / q;
        }
        const bool by_gradient = p_.equations == Equations::gradient;
        const bool unweighted = p_.equations == Equations::printed && is_skipped;
        const Real decay = static_cast<Real>(limit(1.0 - tau * p_.ridge));
        for (size_t s = 0; s < n; ++s) work_[s] = saturate<Real>(base * scaled_[s] * gap_[s]);
        const double coefficient = double(sum(work_, n));
        if (unweighted)
            for (size_t s = 0; s < n; ++s) work_[s] = saturate<Real>(base * gap_[s]);
        else if (!by_gradient)
            for (size_t s = 0; s < n; ++s) work_[s] = saturate<Real>(base * weights_[s] * gap_[s]);
        for (size_t s = 0; s < n; ++s) {
            beta_[s] = saturate<Real>(decay * beta_[s] - work_[s]);
            work_[s] = work_[s] < 0 ? -work_[s] : work_[s];
        }
        c_->norm_bound = std::fabs(double(decay)) * c_->norm_bound + double(sum(work_, n)) * std::sqrt(double(own));
        return coefficient;
    }

    void shrink(double tau) {
        const Real decay = static_cast<Real>(limit(1.0 - tau * p_.ridge));
        for (size_t s = 0; s < c_->n; ++s) beta_[s] = saturate<Real>(decay * beta_[s]);
        c_->norm_bound *= std::fabs(double(decay));
    }

    // ---- the buffer

    // The slot for a row of this kind: the first free one, one to replace, or `skipped`.
    size_t draw_slot(unsigned kind) {
        const size_t n = c_->n;
        entering_ = 1.0;
        if (n < p_.capacity) return n;
        const std::uint32_t half = p_.capacity / 2;
        if (p_.stratified && c_->kept[kind] < (kind ? half : p_.capacity - half)) {
            // The other kind has borrowed slots: take one back.
            decay(!kind, 1.0 / double(c_->kept[!kind]));
            return slot_of_kind(!kind, random_below(c_->rng, c_->kept[!kind]));
        }
        const std::uint64_t rounds = c_->seen_by_kind[kind] + 1;
        const std::uint64_t place = random_below(c_->rng, rounds);
        entering_ = double(c_->kept[kind]) / double(rounds);
        decay(kind, 1.0 / double(rounds));
        if (place >= c_->kept[kind]) return skipped;
        return p_.stratified ? slot_of_kind(kind, place) : size_t(place);
    }

    // Every row of a kind stays with this much less probability.
    void decay(unsigned kind, double loss) {
        c_->decay[kind] *= 1.0 - loss;
        if (c_->decay[kind] > 1e-6) return;
        // Kept within the range of a float: what was taken moves to the rows.
        const double taken = c_->decay[kind] > 0.0 ? c_->decay[kind] : 1.0;
        for (size_t s = 0; s < c_->n; ++s)
            if (!kinds_ || kinds_[s] == kind) upweight_[s] = static_cast<Real>(double(upweight_[s]) / taken);
        c_->decay[kind] = 1.0;
    }

    size_t slot_of_kind(unsigned kind, std::uint64_t place) const {
        for (size_t s = 0; s < c_->n; ++s)
            if (kinds_[s] == kind && place-- == 0) return s;
        return skipped;
    }

    // The slot that holds exactly the row at hand.
    size_t slot_of_row() {
        for (size_t s = 0; s < c_->n; ++s) {
            size_t j = 0;
            while (j < p_.dim && feature(s, j) == x_[j]) ++j;
            if (j == p_.dim) return s;
        }
        return skipped;
    }

    // Gives the arriving row its place and its coefficient, projecting what has no place.
    void keep(size_t slot, Real own, Real fresh, unsigned kind) {
        if (slot == skipped) {
            if (p_.project_on_skip && fresh != Real(0)) add_projected(k_, fresh);
            return;
        }
        const size_t n = c_->n;
        if (slot == n) {
            put_row(slot, kind);
            beta_[slot] = fresh;
            k_[slot] = own;
            ++c_->n;
            if (gram_) packed_set_column(gram_, slot, k_, c_->n);
            c_->inverse_ready = 0;
            return;
        }
        // The replaced row's inner products with the rows that stay: its share of f is spread over them.
        gram_column(slot, squared_);
        squared_[slot] = k_[slot];
        const Real coefficient = beta_[slot];
        if (c_->inverse_ready && fixed_diagonal_) replace_in_inverse(slot, own);
        else c_->inverse_ready = 0;
        k_[slot] = own;
        if (gram_) packed_set_column(gram_, slot, k_, n);
        if (kinds_) --c_->kept[kinds_[slot]];
        else --c_->kept[0];
        put_row(slot, kind);
        beta_[slot] = fresh;
        if (c_->inverse_ready) check_inverse(slot);
        c_->norm_bound += std::fabs(double(coefficient)) * std::sqrt(double(own));
        if (coefficient != Real(0)) add_projected(squared_, coefficient);
    }

    // ---- kernels among the kept rows: looked up, or computed where no matrix is kept

    Real diagonal(size_t s, Real own) {
        if (fixed_diagonal_) return own;
        if (gram_) return gram_[packed_row(s) + s];
        load_kept(s);
        return self_kernel(p_, other_);
    }

    void gram_column(size_t s, Real* out) {
        if (gram_) {
            packed_column(gram_, s, out, c_->n);
        } else {
            load_kept(s);
            kernel_against(other_, c_->n, column_squared_, out);
        }
    }

    void gram_times(const Real* v, Real* out) {
        const size_t n = c_->n;
        if (gram_) return packed_times(gram_, v, out, n);
        for (size_t s = 0; s < n; ++s) {
            load_kept(s);
            kernel_against(other_, s, column_squared_, column_);
            out[s] = dot(column_, v, s) + self_kernel(p_, other_) * v[s];
            for (size_t r = 0; r < s; ++r) out[r] += column_[r] * v[s];
        }
    }

    void load_kept(size_t s) {
        for (size_t j = 0; j < p_.dim; ++j) other_[j] = feature(s, j);
    }

    void put_row(size_t slot, unsigned kind) {
        for (size_t j = 0; j < p_.dim; ++j) feature(slot, j) = x_[j];
        upweight_[slot] = static_cast<Real>(c_->decay[kind] / entering_);
        if (kinds_) kinds_[slot] = static_cast<std::uint8_t>(kind);
        ++c_->kept[kind];
    }

    // ---- projection onto the buffer's rows

    Real jitter() {
        const size_t n = c_->n;
        const Real own = fixed_diagonal_ ? self_kernel(p_, x_) : Real(0);
        double total = 0.0;
        for (size_t s = 0; s < n; ++s) total += double(diagonal(s, own));
        const double value = p_.jitter * total / double(n);
        return static_cast<Real>(value > 1.0 / double(huge) ? value : 1.0 / double(huge));
    }

    // beta += coefficient * the projection of the function with inner products `target`.
    void add_projected(const Real* target, Real coefficient) {
        const size_t n = c_->n;
        if (p_.projection == Projection::pursuit) {
            pursue(target);
        } else {
            if (!c_->inverse_ready) refresh_inverse();
            packed_times(inverse_, target, work_, n);
        }
        for (size_t s = 0; s < n; ++s) beta_[s] = saturate<Real>(beta_[s] + coefficient * saturate(work_[s]));
    }

    void refresh_inverse() {
        const size_t n = c_->n, size = packed_size(n);
        const Real added = jitter();
        for (size_t i = 0; i < size; ++i) inverse_[i] = gram_[i];
        for (size_t s = 0; s < n; ++s) inverse_[packed_row(s) + s] += added;
        c_->left_out += packed_invert(inverse_, work_, n);
        ++c_->refreshes;
        c_->inverse_ready = 1;
    }

    // Adds the arriving row to the inverse and takes the replaced one out: a rank-two update.
    void replace_in_inverse(size_t slot, Real own) {
        const size_t n = c_->n;
        Real* e = work_;
        Real* q = spare_;
        packed_times(inverse_, k_, e, n);
        const Real g = own + jitter() - dot(k_, e, n);
        packed_column(inverse_, slot, q, n);
        const Real share = e[slot] / g;
        for (size_t s = 0; s < n; ++s) q[s] += e[s] * share;
        const Real pivot = q[slot];
        if (!(g > Real(0) && pivot > Real(0))) {
            c_->inverse_ready = 0;
            return;
        }
        // The arriving row takes over the slot: its coordinate of e is -1, of q that of the new row.
        q[slot] = -share;
        e[slot] = Real(-1);
        for (size_t s = 0; s < n; ++s) inverse_[packed_at(s, slot)] = Real(0);
        packed_rank_two(inverse_, e, g, q, pivot, n);
    }

    // Leaves the inverse marked as not ready if the slot's column of it is off by too much.
    void check_inverse(size_t slot) {
        const size_t n = c_->n;
        const Real added = jitter();
        packed_column(inverse_, slot, work_, n);
        packed_times(gram_, work_, spare_, n);
        double worst = 0.0;
        for (size_t s = 0; s < n; ++s) {
            const double off = std::fabs(double(spare_[s] + added * work_[s] - (s == slot ? Real(1) : Real(0))));
            if (!(off <= worst)) worst = off;
        }
        c_->inverse_ready = worst <= Limits<Real>::inverse_residual;
    }

    // Kernel matching pursuit with back-fitting (Vincent and Bengio, 2002): leaves the coefficients in work_.
    void pursue(const Real* target) {
        const size_t n = c_->n;
        const Real own = self_kernel(p_, x_), added = jitter();
        Real* residual = spare_;
        for (size_t s = 0; s < n; ++s) residual[s] = target[s];
        double first = 0.0;
        size_t m = 0;
        for (const size_t most = pursuit_most(p_) < n ? pursuit_most(p_) : n; m < most; ++m) {
            size_t best = n;
            double best_gain = -1.0;
            for (size_t s = 0; s < n; ++s) {
                const double size = std::sqrt(double(diagonal(s, own) + added));
                const double gain = std::fabs(double(residual[s])) / size;
                if (gain > best_gain && !is_chosen(s, m)) {
                    best = s;
                    best_gain = gain;
                }
            }
            if (m == 0) first = best_gain;
            if (best == n || !(best_gain > 1e-12 * first)) break;
            gram_column(best, columns_ + m * n);
            if (!extend_factor(best, added, m)) break;
            back_fit(target, m + 1);
            for (size_t s = 0; s < n; ++s) residual[s] = target[s];
            for (size_t i = 0; i <= m; ++i)
                for (size_t s = 0; s < n; ++s) residual[s] -= columns_[i * n + s] * solution_[i];
        }
        for (size_t s = 0; s < n; ++s) work_[s] = Real(0);
        for (size_t i = 0; i < m; ++i) work_[chosen_[i]] = solution_[i];
    }

    bool is_chosen(size_t s, size_t m) const {
        for (size_t i = 0; i < m; ++i)
            if (chosen_[i] == s) return true;
        return false;
    }

    // Adds a row to the Cholesky factor of the chosen rows' Gram matrix.
    bool extend_factor(size_t s, Real added, size_t m) {
        Real* row = factor_ + packed_row(m);
        Real rest = columns_[m * c_->n + s] + added;
        for (size_t i = 0; i < m; ++i) {
            const Real* earlier = factor_ + packed_row(i);
            Real value = columns_[i * c_->n + s];
            for (size_t j = 0; j < i; ++j) value -= row[j] * earlier[j];
            row[i] = value / earlier[i];
            rest -= row[i] * row[i];
        }
        if (!(rest > Real(0))) return false;
        row[m] = std::sqrt(rest);
        chosen_[m] = static_cast<std::uint32_t>(s);
        return true;
    }

    void back_fit(const Real* target, size_t m) {
        for (size_t i = 0; i < m; ++i) {
            Real value = target[chosen_[i]];
            const Real* row = factor_ + packed_row(i);
            for (size_t j = 0; j < i; ++j) value -= row[j] * solution_[j];
            solution_[i] = value / row[i];
        }
        for (size_t i = m; i-- > 0;) {
            Real value = solution_[i];
            for (size_t j = i + 1; j < m; ++j) value -= factor_[packed_row(j) + i] * solution_[j];
            solution_[i] = value / factor_[packed_row(i) + i];
        }
    }

    // Rescales f onto the ball. The bound, from the triangle inequality, spares most rounds the exact norm.
    void into_ball() {
        if (fixed_diagonal_ && c_->norm_bound <= p_.radius) return;
        const size_t n = c_->n;
        gram_times(beta_, work_);
        const double norm = std::sqrt(std::fabs(double(dot(beta_, work_, n))));
        c_->norm_bound = norm;
        if (!(norm > p_.radius)) return;
        const Real factor = static_cast<Real>(p_.radius / norm);
        for (size_t s = 0; s < n; ++s) beta_[s] = beta_[s] * factor;
        c_->norm_bound = p_.radius;
    }

    // ---- small things

    void load_row(const double* x) {
        for (size_t j = 0; j < p_.dim; ++j) {
            double value = x[j];
            value = value < double(huge) ? value : double(huge);
            x_[j] = static_cast<Real>(value > -double(huge) ? value : -double(huge));
        }
    }

    void kernel_row() { kernel_against(x_, c_->n, squared_, k_); }

    // Kernels between x and the first n rows; leaves the squared distances where they are needed.
    void kernel_against(const Real* x, size_t n, Real* squared, Real* out) {
        const size_t stride = p_.capacity, dim = p_.dim;
        if (needs_squared_distances(p_)) squared_distances(rows_, stride, n, x, dim, squared);
        kernel_term(p_.kernel[0], rows_, stride, n, x, dim, squared, out);
        for (size_t s = 0; s < n; ++s) out[s] = saturate(out[s]);
        for (std::uint32_t t = 1; t < p_.kernel_terms; ++t) {
            kernel_term(p_.kernel[t], rows_, stride, n, x, dim, squared, term_);
            for (size_t s = 0; s < n; ++s) out[s] += saturate(term_[s]);
        }
        if (p_.kernel_terms > 1)
            for (size_t s = 0; s < n; ++s) out[s] = saturate(out[s]);
    }

    double score() const { return limit(double(dot(beta_, k_, c_->n))); }

    static double limit(double value) {
        value = value < double(huge) ? value : double(huge);
        return value > -double(huge) ? value : -double(huge);
    }

    const LearnerParams& p_;
    bool fixed_diagonal_;
    double entering_ = 1.0;  // the probability with which the arriving row enters
    LearnerCounters* c_ = nullptr;
    Real* rows_ = nullptr;       // capacity x dim, feature by feature
    Real* beta_ = nullptr;       // coefficients
    Real* upweight_ = nullptr;   // decay of the kind over the row's inclusion probability
    Real* gram_ = nullptr;       // K(x_s, x_r), packed
    Real* inverse_ = nullptr;    // of gram + jitter, packed (exact projection only)
    std::uint8_t* kinds_ = nullptr;  // 1: the labelled stratum (stratified sampling only)
    // Scratch, with no meaning between rounds.
    Real *x_ = nullptr, *other_ = nullptr, *k_ = nullptr, *squared_ = nullptr, *weights_ = nullptr,
         *scaled_ = nullptr, *gap_ = nullptr, *work_ = nullptr, *spare_ = nullptr, *term_ = nullptr,
         *column_ = nullptr, *column_squared_ = nullptr, *factor_ = nullptr, *solution_ = nullptr,
         *columns_ = nullptr;
    std::uint32_t* chosen_ = nullptr;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
