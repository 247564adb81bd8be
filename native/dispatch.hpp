// A learner behind an interface, so that one program can hold the core compiled
// for several instruction sets and choose between them when it starts.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "params.hpp"

namespace sf2el {

// Everything a learner keeps, in double precision and with full matrices.
struct LearnerState {
    LearnerCounters counters;
    std::vector<double> rows, beta, weights, gram, inverse;
    std::vector<std::uint8_t> kinds;
};

class AnyLearner {
public:
    virtual ~AnyLearner() = default;
    virtual const LearnerParams& params() const = 0;
    virtual double predict(const double* x) = 0;
    virtual void predict_many(const double* x, std::size_t n, double* scores) = 0;
    virtual Outcome learn(const double* x, double y) = 0;
    virtual void run(const double* x, const double* y, std::size_t n, bool frozen, double* scores, double* risks) = 0;
    virtual void restart() = 0;
    virtual LearnerState state() = 0;
    virtual void set_state(const LearnerState& state) = 0;
    virtual std::size_t state_bytes() const = 0;
    virtual std::size_t scratch_bytes() const = 0;
    virtual std::unique_ptr<AnyLearner> copy() const = 0;
};

using MakeLearner = std::unique_ptr<AnyLearner> (*)(const LearnerParams&, bool single_precision);

std::unique_ptr<AnyLearner> make_learner_base(const LearnerParams& params, bool single_precision);
std::unique_ptr<AnyLearner> make_learner_wide(const LearnerParams& params, bool single_precision);

}  // namespace sf2el
