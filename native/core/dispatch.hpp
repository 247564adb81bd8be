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

// What a bank of experts asks of each of them.
class AnyExpert {
public:
    virtual ~AnyExpert() = default;
    virtual std::size_t dim() const = 0;
    virtual std::size_t outputs() const = 0;
    // Whether a row without a label teaches it anything.
    virtual bool uses_unlabelled() const = 0;
    virtual bool label_fits(double y) const = 0;
    virtual void score(const double* x, double* scores) = 0;
    // Learns a row (y NaN: unlabelled) and returns its risk, with the scores from before it. `late`: the
    // row was learned unlabelled when it came, and now has its label.
    virtual double teach(const double* x, double y, double weight, bool late, double* scores) = 0;
    virtual std::size_t state_bytes() const = 0;
    virtual std::size_t scratch_bytes() const = 0;
    virtual std::unique_ptr<AnyExpert> clone() const = 0;
    // All that it keeps, state_bytes() in one place; and whether that can be what an expert has kept.
    virtual unsigned char* block() = 0;
    virtual bool is_sound() = 0;
};

class AnyLearner : public AnyExpert {
public:
    virtual const LearnerParams& params() const = 0;
    virtual double predict(const double* x) = 0;
    virtual void predict_many(const double* x, std::size_t n, double* scores) = 0;
    virtual Outcome learn(const double* x, double y, double weight) = 0;
    virtual Outcome learn_late(const double* x, double y, double weight) = 0;
    virtual void run(const double* x, const double* y, std::size_t n, bool frozen, double* scores, double* risks) = 0;
    virtual void restart() = 0;
    virtual LearnerState state() = 0;
    virtual void set_state(const LearnerState& state) = 0;
    virtual std::unique_ptr<AnyLearner> copy() const = 0;
};

// What a posterior is kept in. Halves are computed with in single precision.
enum class Precision { half, single, full };

// Everything a posterior keeps, in double precision and with full matrices. One in halves also gives out the
// matrix that it keeps in place of the covariance, and takes it back as it is.
struct PosteriorState {
    PosteriorCounters counters;
    std::vector<double> rows, coefficients, covariance, inverse, innovations, factor;
};

class AnyPosterior : public AnyExpert {
public:
    virtual const PosteriorParams& params() const = 0;
    virtual const PosteriorCounters& counters() const = 0;
    virtual PosteriorState state() = 0;
    virtual void set_state(const PosteriorState& state) = 0;
    // Projects radial functions onto the others until so many are left; returns how far the function moved, squared.
    virtual double shrink(std::size_t size) = 0;
    virtual std::unique_ptr<AnyPosterior> copy() const = 0;
};

class AnyLogistic : public AnyExpert {
public:
    virtual const LogisticParams& params() const = 0;
    virtual std::vector<double>& numbers() = 0;
    virtual std::unique_ptr<AnyLogistic> copy() const = 0;
};

// One compiled variant of the core.
struct Variant {
    std::unique_ptr<AnyLearner> (*learner)(const LearnerParams&, bool single_precision);
    std::unique_ptr<AnyPosterior> (*posterior)(const PosteriorParams&, Precision);
    std::unique_ptr<AnyLogistic> (*logistic)(const LogisticParams&);
    void (*fill)(std::size_t room, std::size_t dim, void* block, const double* row, double* view, double* scratch, bool keep);
    double (*map)(const MapKnown&, double* matrix, double* center);
};

extern const Variant base_variant, wide_variant;

}  // namespace sf2el
