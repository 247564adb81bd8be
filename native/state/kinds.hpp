// What each kind of expert is made of. Another kind is an entry here, and one with its name and prior in
// src/sf2el/experts/kinds.py.
#pragma once

#include "../core/rng.hpp"
#include "model.hpp"

namespace sf2el {

enum class Kind : std::uint8_t { linear, narrow, wide, light, learner };
constexpr std::uint8_t kinds = 5;

// How an expert keeps what it has learned: in single precision; in half; and in half without what follows from the rest.
enum class Form : std::uint8_t { full, half, least };
constexpr std::uint8_t forms = 3;

// Shares of the way back to the prior that every label goes.
constexpr double rates[] = {0.0, 0.01};
constexpr std::uint8_t rate_count = 2;

constexpr std::uint32_t many_features = 12;  // from which radial functions have no slopes: their bytes are worth more as functions
constexpr double linear_scale = 2.0, constant = 1.25, least_constant = 0.06;  // prior variances; the constant's in a feature's, and in all's
constexpr double numbers_part = 0.5;  // of prior variances and of ties' noise for numbers: log odds reach farther
constexpr double light_step = 0.1, steady = 2.0;

inline double rate_of(const ModelSettings& settings, const ExpertCode& code) {
    return code.rate == 0 ? settings.forget : rates[code.rate];
}

inline ExpertShape posterior_shape(const ModelSettings& settings, const ExpertCode& code, std::size_t dim, std::size_t born, std::size_t outputs, Task task) {
    PosteriorParams p;
    const auto kind = static_cast<Kind>(code.kind);
    const double part = is_classification(task) ? 1.0 : numbers_part;
    p.dim = static_cast<std::uint32_t>(dim);
    p.outputs = static_cast<std::uint32_t>(outputs);
    p.task = task;
    p.size = 0;
    p.linear_scale = linear_scale;
    p.rbf_scale = 5.0 * part;
    p.gamma = 0.0;
    p.bias = constant / double(born) > least_constant ? constant / double(born) : least_constant;
    p.forget = rate_of(settings, code);
    p.most_ties = 2000;
    if (kind == Kind::narrow) {
        p.gamma = 7.0;
        p.rbf_scale = 80.0 * part;
        p.tie_noise = 10.0 * part;
    } else if (kind == Kind::wide) {
        p.gamma = 0.5;
        p.rbf_scale = 10.0 * part;
        p.centred = 0.9;
    }
    const bool radial = p.gamma > 0.0;
    if (radial) p.size = code.size;
    p.slopes = !radial || born < many_features;
    p.keep_inverse = !radial || code.form != std::uint8_t(Form::least);
    ExpertShape shape;
    shape.params = p;
    shape.precision = code.form == std::uint8_t(Form::full) ? Precision::single : Precision::half;
    return shape;
}

inline ExpertShape shape_of(const ModelSettings& settings, const ExpertCode& code, std::size_t room, std::size_t born, std::size_t outputs, std::uint64_t index = 0) {
    const std::size_t dim = code.view == View::flagged ? 2 * room : room;
    const bool numbers = settings.task == Task::squared || settings.task == Task::absolute;
    const Task task = numbers ? settings.task : (outputs > 1 ? Task::classes : Task::binary);
    ExpertShape shape;
    if (code.kind == std::uint8_t(Kind::light)) {
        LogisticParams p;
        p.dim = static_cast<std::uint32_t>(dim);
        p.outputs = static_cast<std::uint32_t>(outputs);
        p.task = task;
        p.step = steady / double(room) < light_step ? steady / double(room) : light_step;
        p.scale = std::sqrt(double(born));
        shape.params = p;
        return shape;
    }
    if (code.kind == std::uint8_t(Kind::learner)) {
        LearnerParams p = settings.learner;
        p.dim = static_cast<std::uint32_t>(dim);
        p.capacity = code.size;
        // The word of the generator that has this place, found at once however many spaces there were.
        std::uint64_t word = settings.seed + index * 0x9E3779B97F4A7C15ull;
        p.seed = random_word(word);
        if (code.form != std::uint8_t(Form::full)) {  // no matrices: kernels are computed when they are needed
            p.projection = Projection::pursuit;
            p.keep_gram = false;
        }
        shape.params = p;
        shape.precision = code.form == std::uint8_t(Form::least) ? Precision::single : Precision::full;
        return shape;
    }
    return posterior_shape(settings, code, dim, born, outputs, task);
}

inline bool is_known(const ExpertCode& code) {
    return code.kind < kinds && std::uint8_t(code.view) < views && code.rate < rate_count && code.form < forms && code.size <= (1u << 20);
}

}  // namespace sf2el
