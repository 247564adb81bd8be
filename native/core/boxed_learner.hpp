// AnyLearner on the core's learner, with a block of its own for its state. Scratch
// belongs to the thread: many learners cost no more of it than one, and a learner
// can be asked by several threads at once.
#pragma once

#include "core.hpp"
#include "dispatch.hpp"
#include "thread_scratch.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

// A number as a learner of this precision holds it, within its range.
template <class Real>
inline Real held(double value) {
    constexpr double huge = double(Limits<Real>::huge);
    value = value < huge ? value : huge;
    return static_cast<Real>(value > -huge ? value : -huge);
}

template <class Real>
inline void unpack(const Real* packed, size_t n, std::vector<double>& dense) {
    dense.resize(n * n);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) dense[i * n + j] = double(packed[packed_at(i, j)]);
}

template <class Real>
inline void pack(const std::vector<double>& dense, size_t n, Real* packed) {
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) packed[packed_at(i, j)] = static_cast<Real>(dense[i * n + j]);
}

template <class Real>
class BoxedLearner final : public AnyLearner {
public:
    explicit BoxedLearner(const LearnerParams& p) : params_(p), block_(new std::uint64_t[words()]) {
        Learner<Real>(params_, block_.get(), scratch());
    }

    const LearnerParams& params() const override { return params_; }
    double predict(const double* x) override { return view().predict(x); }

    void predict_many(const double* x, size_t n, double* scores) override {
        auto learner = view();
        for (size_t i = 0; i < n; ++i) scores[i] = learner.predict(x + i * params_.dim);
    }

    Outcome learn(const double* x, double y, double weight) override { return view().learn(x, y, weight); }
    Outcome learn_late(const double* x, double y, double weight) override { return view().learn_late(x, y, weight); }

    size_t dim() const override { return params_.dim; }
    size_t outputs() const override { return 1; }
    bool uses_unlabelled() const override { return true; }
    bool label_fits(double) const override { return true; }
    void score(const double* x, double* scores) override { scores[0] = predict(x); }

    double teach(const double* x, double y, double weight, bool late, double* scores) override {
        const Outcome outcome = late ? learn_late(x, y, weight) : learn(x, y, weight);
        scores[0] = outcome.score;
        return outcome.risk;
    }

    void run(const double* x, const double* y, size_t n, bool frozen, double* scores, double* risks) override {
        auto learner = view();
        for (size_t i = 0; i < n; ++i) {
            const double* row = x + i * params_.dim;
            const Outcome outcome = frozen ? learner.observe(row, y[i]) : learner.learn(row, y[i]);
            scores[i] = outcome.score;
            risks[i] = outcome.risk;
        }
    }

    void restart() override { view().restart(); }

    LearnerState state() override {
        auto learner = view();
        LearnerState out;
        out.counters = learner.counters();
        const size_t n = learner.size(), dim = params_.dim;
        out.rows.resize(n * dim);
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) out.rows[s * dim + j] = double(learner.feature(s, j));
        out.beta.assign(learner.beta(), learner.beta() + n);
        out.weights.assign(learner.weights(), learner.weights() + n);
        if (learner.gram()) unpack(learner.gram(), n, out.gram);
        if (out.counters.inverse_ready) unpack(learner.inverse(), n, out.inverse);
        if (learner.kinds()) out.kinds.assign(learner.kinds(), learner.kinds() + n);
        else out.kinds.assign(n, 0);
        return out;
    }

    void set_state(const LearnerState& in) override {
        auto learner = view();
        learner.counters() = in.counters;
        const size_t n = in.counters.n, dim = params_.dim;
        for (size_t s = 0; s < n; ++s) {
            for (size_t j = 0; j < dim; ++j) learner.feature(s, j) = held<Real>(in.rows[s * dim + j]);
            learner.beta()[s] = held<Real>(in.beta[s]);
            learner.weights()[s] = held<Real>(in.weights[s]);
            if (learner.kinds()) learner.kinds()[s] = in.kinds[s];
        }
        if (in.counters.inverse_ready) pack(in.inverse, n, learner.inverse());
        // The Gram matrix follows from the rows, to the bit.
        learner.fill_gram();
    }

    unsigned char* block() override { return reinterpret_cast<unsigned char*>(block_.get()); }

    bool is_sound() override {
        auto learner = view();
        const LearnerCounters& c = learner.counters();
        const size_t b = params_.capacity;
        constexpr std::uint64_t most = std::uint64_t(1) << 60;  // labels may be more than rows: some come late
        bool sound = c.n <= b && c.inverse_ready <= (learner.inverse() ? 1u : 0u) && c.labels < most && c.seen < most &&
                     c.clock < most && c.seen_by_kind[0] < most && c.seen_by_kind[1] < most &&
                     c.decay[0] >= 1e-18 && c.decay[0] <= 1.0 && c.decay[1] >= 1e-18 && c.decay[1] <= 1.0 &&
                     c.norm_bound >= 0.0 && c.norm_bound <= 1e300;
        const Real* reals = reinterpret_cast<const Real*>(block() + sizeof(LearnerCounters));
        const Real* end = learner.kinds() ? reinterpret_cast<const Real*>(learner.kinds())
                                          : reinterpret_cast<const Real*>(block() + state_bytes());
        for (; reals < end; ++reals) sound = sound && *reals >= -Limits<Real>::huge && *reals <= Limits<Real>::huge;
        size_t kept[2] = {0, 0};
        for (size_t s = 0; sound && s < c.n; ++s) {
            const unsigned kind = learner.kinds() ? learner.kinds()[s] : 0;
            sound = learner.weights()[s] > Real(0) && kind <= 1;
            if (sound) ++kept[kind];
        }
        return sound && kept[0] == c.kept[0] && kept[1] == c.kept[1];
    }

    std::unique_ptr<AnyExpert> clone() const override { return copy(); }
    size_t state_bytes() const override { return Learner<Real>::state_bytes(params_); }
    size_t scratch_bytes() const override { return Learner<Real>::scratch_bytes(params_); }

    std::unique_ptr<AnyLearner> copy() const override {
        auto other = std::make_unique<BoxedLearner>(params_);
        std::memcpy(other->block_.get(), block_.get(), state_bytes());
        return other;
    }

private:
    size_t words() const { return state_bytes() / sizeof(std::uint64_t); }

    Learner<Real> view() { return {params_, block_.get(), scratch(), typename Learner<Real>::Adopt{}}; }

    void* scratch() const { return thread_scratch(scratch_bytes()); }

    LearnerParams params_;
    std::unique_ptr<std::uint64_t[]> block_;
};

inline std::unique_ptr<AnyLearner> make_boxed(const LearnerParams& p, bool single_precision) {
    if (single_precision) return std::make_unique<BoxedLearner<float>>(p);
    return std::make_unique<BoxedLearner<double>>(p);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
