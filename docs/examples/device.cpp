// One learner on a device: no Python, no heap, all state in a block of bytes.
#include <cstdio>
#include <cstring>
#include <limits>

#include "core/core.hpp"

using Learner = sf2el::Learner<float>;  // float takes half the bytes of double

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

alignas(8) unsigned char state[16 * 1024], scratch[8 * 1024], flash[16 * 1024];

double uniform(std::uint64_t& random) {
    return 2.0 * double(sf2el::random_word(random) >> 11) * 0x1p-53 - 1.0;  // from -1 to 1
}

// Read a row, predict it, learn it; return the share of right predictions.
double run(Learner& learner, int rounds, std::uint64_t& random) {
    int right = 0;
    for (int t = 0; t < rounds; ++t) {
        const double x[2] = {uniform(random), uniform(random)};
        const double truth = x[0] * x[1] > 0.0 ? 1.0 : -1.0;
        const bool labelled = t % 10 < 3;
        const sf2el::Outcome said = learner.learn(x, labelled ? truth : unknown);
        right += (said.score >= 0.0) == (truth > 0.0);  // the score is from before the update
    }
    return double(right) / rounds;
}

int main() {
    sf2el::LearnerParams params;
    params.dim = 2;
    params.capacity = 40;  // rows it keeps
    params.kernel[0].kind = sf2el::KernelKind::rbf;
    params.kernel[0].gamma = 4.0;
    params.graph_width = 20.0;
    params.label_rate = 0.3;
    params.step = 2.0;
    params.project_on_skip = true;

    const std::size_t bytes = Learner::state_bytes(params), work = Learner::scratch_bytes(params);
    std::printf("learner %zu bytes, scratch %zu bytes\n", bytes, work);
    if (bytes > sizeof state || work > sizeof scratch) return 1;

    std::uint64_t random = 1;
    Learner learner(params, state, scratch);
    run(learner, 1000, random);
    std::printf("accuracy %.2f\n", run(learner, 1000, random));

    std::memcpy(flash, state, bytes);  // a learner is its block of bytes
    std::memset(state, 0, bytes);
    std::memcpy(state, flash, bytes);
    Learner again(params, state, scratch, Learner::Adopt{});
    std::printf("after the restart %.2f\n", run(again, 1000, random));
    return 0;
}
