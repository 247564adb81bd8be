// A model on a device that has never seen Python: made, trained, saved to "flash", read back, and led through a change
// of its sensors by the device itself.
//
//   c++ -std=c++17 -O2 -ffp-contract=off -Wno-psabi -Inative examples/embedded.cpp native/core/variant_base.cpp -o embedded
//   ./embedded
//
// Two interleaved spirals are to be told apart, a row at a time, with 3 labels in 10 rows. First two sensors are read,
// for 40 rows both they and three new ones, and then only the new ones:
//
//   period 1   the old sensors     the experts of their space learn
//   period 2   both                a second space opens beside the first, and a map from new to old is fitted
//   period 3   the new sensors     the old experts go on with what the map recovers, new ones learn beside them
//
// In Python a policy decides when a space opens and ends, and a plan gives it experts by the budget. Here the device
// knows when its sensors are replaced, and has its list of experts: that is all that it takes.
#include <cstdio>

#include "state/file.hpp"

// A program says once which build of the core it uses; a device has one.
const sf2el::Variant& sf2el::ModelState::variant() { return base_variant; }

namespace {

using namespace sf2el;

using Ids = std::vector<std::uint32_t>;

constexpr int old_sensors = 2, new_sensors = 3;
constexpr int first_rows = 960, both_rows = 40, last_rows = 1000;

// ---- the sensors

struct Reading {
    double before[old_sensors], after[new_sensors];
    double truth;  // 1 or -1
    double label;  // the same, or NaN: not known
};

double uniform(std::uint64_t& random) { return double(random_word(random) >> 11) * 0x1p-53; }

// A point on one of two spirals; the new sensors read mixtures of what the old ones read.
Reading read_sensors(std::uint64_t& random) {
    static constexpr double mixture[old_sensors][new_sensors] = {{0.64, 0.27, 0.04}, {0.02, 0.81, 0.91}};
    constexpr double pi = 3.14159265358979323846;
    Reading out{};
    out.truth = uniform(random) < 0.5 ? 1.0 : -1.0;
    out.label = uniform(random) < 0.3 ? out.truth : std::numeric_limits<double>::quiet_NaN();
    const double turn = std::sqrt(0.02 + 0.98 * uniform(random));
    out.before[0] = out.truth * turn * std::cos(3.0 * pi * turn);
    out.before[1] = out.truth * turn * std::sin(3.0 * pi * turn);
    for (int j = 0; j < new_sensors; ++j)
        for (int i = 0; i < old_sensors; ++i) out.after[j] += out.before[i] * mixture[i][j];
    return out;
}

// ---- the model

ExpertCode expert(Kind kind, std::uint32_t size = 0) {
    ExpertCode code;
    code.kind = std::uint8_t(kind);
    code.form = std::uint8_t(Form::full);
    code.size = size;  // radial functions
    return code;
}

// A space of these features with three experts. Beside a current one it waits, and a map to that one begins.
void open(ModelState& state, const Ids& ids) {
    Transitions change(state);
    const bool first = state.empty();
    change.open(ids, ids.size(), true, !first);
    const std::size_t space = state.spaces.size() - 1;
    for (const ExpertCode& code : {expert(Kind::linear), expert(Kind::narrow, 60), expert(Kind::wide, 20)})
        change.add(space, code, first ? 1.0 : ModelState::incoming_prior, first ? 0.3 : ModelState::incoming_weight, {});
    change.normalise();
}

// Predicts a row and learns it; returns whether the prediction was right.
bool step(ModelState& state, const Row& row, const Reading& reading) {
    double said = 0.0;
    if (state.learn(row, false, reading.label, 1.0, &said) == Learned::change) {
        state.attend(row);  // the device decides on its own when its sensors change
        state.learn(row, false, reading.label, 1.0, &said, true);
    }
    return (said >= 0.0) == (reading.truth > 0.0);
}

// Runs rows in which the old or the new sensors, or both, are read; returns the share of right predictions.
double run(ModelState& state, int rows, const Ids& before, const Ids& after, std::uint64_t& random) {
    int right = 0;
    Row row;
    for (int t = 0; t < rows; ++t, row.clear()) {
        const Reading reading = read_sensors(random);
        for (std::size_t i = 0; i < before.size(); ++i) row.set(before[i], reading.before[i]);
        for (std::size_t j = 0; j < after.size(); ++j) row.set(after[j], reading.after[j]);
        right += step(state, row, reading);
    }
    return double(right) / rows;
}

}  // namespace

int main() {
    ModelState state;
    state.settings.seed = 1;
    Ids before, after;  // features are numbers here; a file keeps their names: 's' and a text
    for (const char* name : {"sx", "sy"}) before.push_back(state.note(name));
    for (const char* name : {"sp", "sq", "sr"}) after.push_back(state.note(name));

    std::uint64_t random = 2021;
    open(state, before);
    run(state, first_rows / 2, before, {}, random);
    std::printf("the old sensors               %.3f\n", run(state, first_rows / 2, before, {}, random));

    open(state, after);
    run(state, both_rows, before, after, random);

    // The power fails. A model is the bytes of its file.
    std::vector<unsigned char> flash = save(state, "");
    state = ModelState();
    load(state, flash.data(), flash.size());
    std::printf("bytes in flash                %zu\n", flash.size());

    Transitions(state).advance();  // the old sensors are gone: the map is solved, and weights are dealt again
    const double accuracy = run(state, last_rows, {}, after, random);
    std::printf("the new sensors               %.3f\n", accuracy);

    // A second model, which has only the new sensors from its first row on.
    random = 2021;
    for (int t = 0; t < first_rows + both_rows; ++t) read_sensors(random);
    ModelState alone;
    Ids own;
    for (const char* name : {"sp", "sq", "sr"}) own.push_back(alone.note(name));
    open(alone, own);
    std::printf("the new sensors, from nothing %.3f\n", run(alone, last_rows, {}, own, random));
    return 0;
}
