// The settings of a learner. Plain data, shared by every compiled variant of the core.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sf2el {

enum class KernelKind : std::uint8_t { rbf, laplacian, polynomial, linear, constant };
enum class Loss : std::uint8_t { logistic, hinge, squared_hinge, squared, absolute };
enum class Equations : std::uint8_t { gradient, printed, printed_weighted };
enum class Projection : std::uint8_t { exact, pursuit };
enum class Task : std::uint8_t { binary, classes, squared, absolute };

struct KernelTerm {
    KernelKind kind = KernelKind::rbf;
    std::int32_t degree = 1;
    double gamma = 1.0;   // rbf, laplacian, polynomial; the value of a constant
    double offset = 0.0;  // polynomial
};

constexpr std::uint32_t most_kernel_terms = 4;

struct LearnerParams {
    std::uint32_t dim = 1;
    std::uint32_t capacity = 60;
    std::uint64_t seed = 0;
    std::uint32_t kernel_terms = 1;
    KernelTerm kernel[most_kernel_terms];
    double graph_width = 1.0;
    double ridge = 1e-4;
    double smoothness = 1e-4;
    double step = 1.0;
    double label_rate = 0.0;  // 0: estimated
    double radius = 1e4;
    double jitter = 1e-3;
    std::uint32_t pursuit_steps = 10;
    Loss loss = Loss::logistic;
    Equations equations = Equations::gradient;
    Projection projection = Projection::exact;
    bool keep_gram = true;  // false (pursuit only): kernels among kept rows are computed when needed
    bool manifold = true;
    bool cap = true;
    bool project_on_skip = false;
    bool stratified = false;
};

// The numbers a learner keeps besides its arrays.
struct LearnerCounters {
    std::uint64_t seen = 0;             // rounds before this one
    std::uint64_t labels = 0;           // labels before this one
    std::uint64_t clock = 0;            // rounds since the step size (re)started
    std::uint64_t rng = 0;
    std::uint64_t seen_by_kind[2] = {0, 0};
    // A row's inclusion probability is decay[its kind] / its weight: what every
    // draw takes from all rows of a kind is taken here, once.
    double decay[2] = {1.0, 1.0};
    std::uint64_t refreshes = 0;        // times the inverse was computed again
    std::uint64_t left_out = 0;         // pivots left out in doing so
    double norm_bound = 0.0;            // ||f|| is at most this
    std::uint32_t n = 0;                // rows in the buffer
    std::uint32_t kept[2] = {0, 0};     // rows in the buffer, by kind
    std::uint32_t inverse_ready = 0;
};

struct PosteriorParams {
    std::uint32_t dim = 1;
    std::uint32_t size = 40;    // radial functions; 0: linear
    std::uint32_t outputs = 1;  // one, or one for each of several classes
    Task task = Task::binary;
    double gamma = 1.0;
    double linear_scale = 5.0;  // prior variances of the two parts
    double rbf_scale = 5.0;
    double bias = 0.03;     // square of the constant feature
    double novelty = 0.01;  // least share of a row that the kept ones do not express, for it to join them
    double forget = 0.0;    // share of the way back to the prior covariance, each labelled round
    double centred = 0.0;   // share of the radial part's variance at the origin that is taken away beforehand
    // Unlabelled rows tie the kept rows they lie between: f is the same at both, up to this noise. 0: they do not.
    double tie_noise = 0.0;
    double tie_novelty = 0.25;      // least share of an unlabelled row not expressed by the kept ones, to join them
    std::uint32_t tie_power = 6;    // a tie weighs the lesser of the two kernels to this power
    std::uint32_t most_ties = 500;  // then unlabelled rows teach nothing more
    bool keep_inverse = true;       // whether Q is kept (a factor of it in half precision), or computed when needed
    bool slopes = true;             // whether features have coefficients; radial functions can do with a constant

    std::size_t linear() const { return (slopes ? std::size_t(dim) : 0) + 1; }
};

struct PosteriorCounters {
    std::uint64_t labels = 0;
    std::uint64_t joined = 0;
    std::uint64_t removed = 0;
    std::uint64_t floored = 0;    // variances and pivots that rounding had brought below their floor
    std::uint64_t refreshed = 0;  // times Q was computed again
    double residuals = 0.0;       // sum of squared or absolute residuals (regression)
    std::uint32_t n = 0;          // rows kept
    std::uint32_t ties = 0;       // unlabelled rows that have tied two kept ones
};

struct LogisticParams {
    std::uint32_t dim = 1;
    std::uint32_t outputs = 1;
    Task task = Task::binary;
    double step = 0.1;
    double power = 0.0;  // the step falls as (1 + labels)^-power
    double scale = 1.0;  // rows are multiplied by it
};

// The score and the risk of a round, both from before its update.
struct Outcome {
    double score;
    double risk;
};

// What a map rests on: full matrices by rows, new features before old ones.
struct MapKnown {
    std::size_t from = 1, to = 1;  // new features, old features
    double rows = 0.0;             // of the overlap
    const double* mean = nullptr;
    const double* covariance = nullptr;
    const double* old_covariance = nullptr;  // null: not known
    // What the new space has shown by itself, in `later` rows more; null: no more than the overlap.
    const double* new_mean = nullptr;
    const double* new_deviation = nullptr;
    const double* new_covariance = nullptr;
    double later = 0.0;
    double divisor = 1.0;  // of the old features
    // Mean and deviation of the old features as they are read; null: not known.
    const double* read_mean = nullptr;
    const double* read_deviation = nullptr;
};

}  // namespace sf2el
