// AnyLearner on the core's learner, with a block of its own.
#pragma once

#include "core.hpp"
#include "dispatch.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

template <class Real>
class BoxedLearner final : public AnyLearner {
public:
    explicit BoxedLearner(const LearnerParams& p)
        : block_(new std::uint64_t[words(p)]), learner_(p, block_.get()) {}

    const LearnerParams& params() const override { return learner_.params(); }
    double predict(const double* x) override { return learner_.predict(x); }

    void predict_many(const double* x, size_t n, double* scores) override {
        for (size_t i = 0; i < n; ++i) scores[i] = learner_.predict(x + i * params().dim);
    }

    Outcome learn(const double* x, double y) override { return learner_.learn(x, y); }

    void run(const double* x, const double* y, size_t n, bool frozen, double* scores, double* risks) override {
        for (size_t i = 0; i < n; ++i) {
            const double* row = x + i * params().dim;
            const Outcome outcome = frozen ? learner_.observe(row, y[i]) : learner_.learn(row, y[i]);
            scores[i] = outcome.score;
            risks[i] = outcome.risk;
        }
    }

    void restart() override { learner_.restart(); }

    LearnerState state() override {
        LearnerState out;
        out.counters = learner_.counters();
        const size_t n = learner_.size(), dim = params().dim;
        out.rows.resize(n * dim);
        for (size_t s = 0; s < n; ++s)
            for (size_t j = 0; j < dim; ++j) out.rows[s * dim + j] = double(learner_.feature(s, j));
        out.beta.assign(learner_.beta(), learner_.beta() + n);
        unpack(learner_.gram(), out.gram);
        if (out.counters.inverse_ready) unpack(learner_.inverse(), out.inverse);
        if (learner_.kinds()) out.kinds.assign(learner_.kinds(), learner_.kinds() + n);
        else out.kinds.assign(n, 0);
        return out;
    }

    void set_state(const LearnerState& in) override {
        learner_.counters() = in.counters;
        const size_t n = in.counters.n, dim = params().dim;
        for (size_t s = 0; s < n; ++s) {
            for (size_t j = 0; j < dim; ++j) learner_.feature(s, j) = static_cast<Real>(in.rows[s * dim + j]);
            learner_.beta()[s] = static_cast<Real>(in.beta[s]);
            if (learner_.kinds()) learner_.kinds()[s] = in.kinds[s];
            for (size_t r = 0; r <= s; ++r) {
                learner_.gram()[packed_at(s, r)] = static_cast<Real>(in.gram[s * n + r]);
                if (in.counters.inverse_ready)
                    learner_.inverse()[packed_at(s, r)] = static_cast<Real>(in.inverse[s * n + r]);
            }
        }
    }

    size_t state_bytes() const override { return Learner<Real>::state_bytes(params()); }
    size_t scratch_bytes() const override { return Learner<Real>::scratch_bytes(params()); }

    std::unique_ptr<AnyLearner> copy() const override {
        auto other = std::make_unique<BoxedLearner>(params());
        std::memcpy(other->block_.get(), block_.get(), state_bytes() + scratch_bytes());
        return other;
    }

private:
    static size_t words(const LearnerParams& p) {
        return (Learner<Real>::state_bytes(p) + Learner<Real>::scratch_bytes(p)) / sizeof(std::uint64_t);
    }

    void unpack(const Real* packed, std::vector<double>& dense) const {
        const size_t n = learner_.size();
        dense.resize(n * n);
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < n; ++j) dense[i * n + j] = double(packed[packed_at(i, j)]);
    }

    std::unique_ptr<std::uint64_t[]> block_;
    Learner<Real> learner_;
};

inline std::unique_ptr<AnyLearner> make_boxed(const LearnerParams& p, bool single_precision) {
    if (single_precision) return std::make_unique<BoxedLearner<float>>(p);
    return std::make_unique<BoxedLearner<double>>(p);
}

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
