// SF2EL on a device: the core alone, without Python and without a heap.
//
//   c++ -std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Wno-psabi -Inative examples/embedded.cpp -o embedded
//   ./embedded
//
// Two interleaved spirals are to be told apart, a row at a time, with 3 labels
// in 10 rows. First two sensors are read; for 10 rows both they and three new
// ones; then the two old ones are gone:
//
//   period 1   old features only        the old learner learns
//   period 2   both, 10 rows            and a map from new to old features is fitted
//   period 3   new features only        the old learner goes on with recovered features,
//                                       a new one starts from nothing, a hedge follows the better
//
// Everything lies in one block of bytes of fixed size. The power fails once on
// the way: the old learner is written to "flash" and read back.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>

#include "core/core.hpp"

// Proof, not need: whatever asks for heap memory ends the program.
void* operator new(std::size_t) { std::abort(); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}

namespace {

using Real = float;  // of the learners: float halves their bytes, double is closer to the paper
using Learner = sf2el::Learner<Real>;

constexpr int old_features = 2, new_features = 3;
constexpr int first_rounds = 990, overlap_rounds = 10, last_rounds = 1000;
constexpr double label_rate = 0.3;

// ---- memory: one block, given out once, at the start

constexpr std::size_t words_at_hand = 5 * 1024;
std::uint64_t memory[words_at_hand];
static_assert(sizeof memory <= 40 * 1024, "the device has 40 KiB to spare");
std::size_t words_used = 0;

void* take(std::size_t bytes, const char* what) {
    const std::size_t words = (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
    if (words > words_at_hand - words_used) {
        std::printf("%s needs %zu bytes, more than are left: enlarge the memory or shrink the buffers.\n", what, bytes);
        std::exit(1);
    }
    std::printf("%-24s %6zu bytes\n", what, words * sizeof(std::uint64_t));
    void* block = memory + words_used;
    words_used += words;
    return block;
}

void* take_learner(const sf2el::LearnerParams& p, const char* what) {
    return take(Learner::state_bytes(p), what);
}

// Working memory means nothing between two calls: both learners take turns in it.
void* take_scratch(const sf2el::LearnerParams& a, const sf2el::LearnerParams& b) {
    const std::size_t first = Learner::scratch_bytes(a), second = Learner::scratch_bytes(b);
    return take(first > second ? first : second, "learners' scratch");
}

double* take_reals(std::size_t count, const char* what) {
    return static_cast<double*>(take(count * sizeof(double), what));
}

// Stands for memory that outlives a loss of power.
unsigned char flash[20 * 1024];

// ---- the sensors

struct Row {
    double old_space[old_features];
    double new_space[new_features];
    double truth;  // 1 or -1
    double label;  // the same, or NaN: not revealed
};

double uniform(std::uint64_t& random) { return double(sf2el::random_word(random) >> 11) * 0x1p-53; }

// A point on one of two spirals in the unit square; the new sensors read linear mixtures of the old.
Row read_sensors(std::uint64_t& random) {
    static constexpr double mixture[old_features][new_features] = {{0.64, 0.27, 0.04}, {0.02, 0.81, 0.91}};
    constexpr double pi = 3.14159265358979323846;
    Row row;
    row.truth = uniform(random) < 0.5 ? 1.0 : -1.0;
    row.label = uniform(random) < label_rate ? row.truth : std::numeric_limits<double>::quiet_NaN();
    const double turn = std::sqrt(0.02 + 0.98 * uniform(random));
    row.old_space[0] = 0.5 + 0.5 * row.truth * turn * std::cos(3.0 * pi * turn);
    row.old_space[1] = 0.5 + 0.5 * row.truth * turn * std::sin(3.0 * pi * turn);
    for (int j = 0; j < new_features; ++j) {
        row.new_space[j] = 0.0;
        for (int i = 0; i < old_features; ++i) row.new_space[j] += row.old_space[i] * mixture[i][j];
    }
    return row;
}

// ---- what the learners are told

// `spread`: the median squared distance of two rows of the space. The kernel is narrow, as spirals ask for.
sf2el::LearnerParams learner_params(std::uint32_t features, double spread, std::uint64_t seed) {
    sf2el::LearnerParams p;
    p.dim = features;
    p.capacity = 60;
    p.seed = seed;
    p.kernel[0].kind = sf2el::KernelKind::rbf;
    p.kernel[0].gamma = 71.0 / spread;
    p.graph_width = 0.86 * p.kernel[0].gamma;
    p.ridge = 7.8e-5;
    p.smoothness = 0.08;
    p.step = 2.6;
    p.label_rate = label_rate;
    p.loss = sf2el::Loss::hinge;
    p.project_on_skip = true;
    return p;
}

// ---- counting

struct Tally {
    int right = 0, rounds = 0;
    void count(double score, double truth) {
        right += (score >= 0.0) == (truth > 0.0);
        ++rounds;
    }
    double accuracy() const { return double(right) / double(rounds); }
};

}  // namespace

int main() {
    const sf2el::LearnerParams old_params = learner_params(old_features, 0.19, 1);
    const sf2el::LearnerParams new_params = learner_params(new_features, 0.16, 2);
    const sf2el::RecoveryParams map_params{new_features, old_features, 1e-3, false};

    void* scratch = take_scratch(old_params, new_params);
    void* old_block = take_learner(old_params, "old learner");
    Learner new_learner(new_params, take_learner(new_params, "new learner"), scratch);
    sf2el::RecoveryMap map(map_params, take_reals(sf2el::RecoveryMap::reals(map_params), "recovery map"));
    double* map_scratch = take_reals(sf2el::RecoveryMap::scratch_reals(map_params), "map's scratch");
    const double rate = std::sqrt(std::log(2.0) / last_rounds);  // the paper's; 0 where the rounds are not known ahead
    sf2el::Hedge hedge(2, rate, take_reals(sf2el::Hedge::reals(2), "hedge"));
    std::printf("%-24s %6zu bytes\n\n", "all together", words_used * sizeof(std::uint64_t));

    std::uint64_t random = 2021;
    {
        Learner old_learner(old_params, old_block, scratch);
        for (int t = 0; t < first_rounds; ++t) {
            const Row row = read_sensors(random);
            old_learner.learn(row.old_space, row.label);
        }
        for (int t = 0; t < overlap_rounds; ++t) {
            const Row row = read_sensors(random);
            old_learner.learn(row.old_space, row.label);
            map.observe(row.new_space, row.old_space);
        }
        map.solve(map_scratch);
    }

    // The power fails. A learner is its block of bytes, which is copied out, and back in.
    const std::size_t state = Learner::state_bytes(old_params);
    if (state > sizeof flash) return 1;
    std::memcpy(flash, old_block, state);
    std::memset(old_block, 0xFF, state);
    std::memcpy(old_block, flash, state);
    Learner old_learner(old_params, old_block, scratch, Learner::Adopt{});

    Tally recovered_alone, new_alone, combined;
    for (int t = 0; t < last_rounds; ++t) {
        const Row row = read_sensors(random);
        double recovered[old_features];
        map.recover(row.new_space, recovered);
        // The score comes from before the update, so that to learn is also to predict.
        const sf2el::Outcome from_old = old_learner.learn(recovered, row.label);
        const sf2el::Outcome from_new = new_learner.learn(row.new_space, row.label);
        const double scores[2] = {from_old.score, from_new.score};
        const double risks[2] = {from_old.risk, from_new.risk};
        recovered_alone.count(from_old.score, row.truth);
        new_alone.count(from_new.score, row.truth);
        combined.count(hedge.combine(scores), row.truth);
        hedge.update(risks);
    }

    std::printf("accuracy over the %d rounds without the old features\n", last_rounds);
    std::printf("recovered features alone  %.3f\n", recovered_alone.accuracy());
    std::printf("new features alone        %.3f\n", new_alone.accuracy());
    std::printf("hedge of the two          %.3f\n", combined.accuracy());
    return 0;
}
