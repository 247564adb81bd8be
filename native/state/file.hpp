// A state as bytes. Every field is declared once, in `fields`, in one order; what counts bytes, writes and reads goes
// through that declaration. Reading trusts nothing: sizes are compared before anything is made, and what comes out
// is a state that could have been written, or an exception.
#pragma once

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "transitions.hpp"

namespace sf2el {

// What bytes are kept for.
enum class Part : std::size_t { counters, names, scalers, maps, learners, weights, newcomers };
constexpr std::size_t part_count = 7;

class Counter {
public:
    static constexpr bool reading = false;
    std::size_t bytes[part_count] = {};

    void part(Part p) { now_ = static_cast<std::size_t>(p); }
    template <class T>
    void number(const T&) { bytes[now_] += sizeof(T); }
    void raw(const void*, std::size_t count) { bytes[now_] += count; }
    std::size_t count(std::size_t n, std::size_t, std::size_t width = 4) {
        bytes[now_] += width;
        return n;
    }
    void require(bool, const char*) {}

    std::size_t total() const {
        std::size_t sum = 0;
        for (const std::size_t one : bytes) sum += one;
        return sum;
    }

private:
    std::size_t now_ = 0;
};

class Writer {
public:
    static constexpr bool reading = false;
    explicit Writer(std::vector<unsigned char>& out) : out_(out) {}

    void part(Part) {}
    template <class T>
    void number(const T& value) { raw(&value, sizeof value); }
    void raw(const void* from, std::size_t count) {
        const auto* bytes = static_cast<const unsigned char*>(from);
        out_.insert(out_.end(), bytes, bytes + count);
    }
    std::size_t count(std::size_t n, std::size_t, std::size_t width = 4) {
        const std::uint64_t value = n;
        if (width < 8 && value >> (8 * width)) throw std::invalid_argument("a state has more of something than its file can count");
        raw(&value, width);
        return n;
    }
    void require(bool, const char*) {}

private:
    std::vector<unsigned char>& out_;
};

class Reader {
public:
    static constexpr bool reading = true;
    Reader(const unsigned char* at, std::size_t count) : at_(at), left_(count) {}

    void part(Part) {}
    template <class T>
    void number(T& value) { raw(&value, sizeof value); }
    void number(bool& value) {
        std::uint8_t byte = 0;
        raw(&byte, 1);
        require(byte <= 1, "what is yes or no is neither");
        value = byte != 0;
    }
    void raw(void* to, std::size_t count) {
        require(count <= left_, "it ends too early");
        if (count) std::memcpy(to, at_, count);
        at_ += count;
        left_ -= count;
    }
    // How many of something follow, each of at least so many bytes.
    std::size_t count(std::size_t, std::size_t least, std::size_t width = 4) {
        std::uint64_t value = 0;
        raw(&value, width);
        require(value <= left_ / (least ? least : 1), "it says that more follows than there is");
        return std::size_t(value);
    }
    void require(bool holds, const char* what) const {
        if (!holds) throw std::invalid_argument(what);
    }
    std::size_t left() const { return left_; }

private:
    const unsigned char* at_;
    std::size_t left_;
};

namespace fields {

inline bool fine(double value) { return value >= -1e300 && value <= 1e300; }
inline bool at_least(double value, double least) { return value >= least && value <= 1e300; }

template <class Real>
bool finite(const Real* values, std::size_t n, double most = 1e300) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += !(double(values[i]) >= -most && double(values[i]) <= most);
    return wrong == 0;
}

template <class A, class T>
void list(A& a, std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    values.resize(a.count(values.size(), sizeof(T)));
    a.raw(values.data(), values.size() * sizeof(T));
}

template <class A>
void text(A& a, std::string& value, std::size_t width = 1) {
    value.resize(a.count(value.size(), 1, width));
    a.raw(&value[0], value.size());
}

template <class A>
void block(A& a, Block& value, std::size_t bytes) {
    if constexpr (A::reading) {
        a.require(bytes <= a.left(), "it ends too early");
        value = Block(bytes);
    }
    a.raw(value.at(), bytes);
}

// A block that may not be there.
template <class A>
void perhaps(A& a, Block& value, std::size_t bytes) {
    std::uint8_t there = !value.empty();
    a.number(there);
    if (there) block(a, value, bytes);
    else value.clear();
}

template <class A>
void list_block(A& a, Block& value) {
    const std::size_t words = a.count(value.bytes() / 8, 8, 1);
    block(a, value, 8 * words);
}

// What only all parts together show.
template <class A>
void check(A& a, ModelState& s) {
    a.require(!s.incoming || s.spaces.size() >= 2, "a space stands beside none");
    a.require(!s.dealt || s.incoming, "a space has vanished before none");
    std::vector<std::uint32_t> spaces(s.features.size(), 0), living(s.features.size(), 0);
    for (std::size_t i = 0; i < s.spaces.size(); ++i)
        for (const std::uint32_t id : s.spaces[i].ids) {
            ++spaces[id];
            living[id] += i >= s.current();
        }
    std::vector<char> close(s.features.size(), 0);
    for (const std::uint32_t id : s.candidates) {
        a.require(id < close.size() && !close[id] && !living[id] && !s.names[id].empty(), "a feature is a candidate of nothing");
        close[id] = 1;
    }
    for (std::size_t i = 0; i < s.features.size(); ++i) {
        const Feature& f = s.features[i];
        a.require(f.spaces == spaces[i] && f.living == living[i], "a feature is in other spaces");
        a.require(s.names[i].empty() ? !spaces[i] && !close[i] : spaces[i] || close[i], "a feature belongs to nothing");
        a.require(living[i] || close[i] || s.names[i].empty(), "a feature is not looked at");
    }
    double total = 0.0;
    for (const Standing& one : s.standings) {
        a.require(one.weight >= 0.0 && one.weight <= 1.0 + 1e-6 && at_least(one.loss, -1e300) && at_least(one.curvature, 0.0) && at_least(one.prior, 0.0) &&
                      std::fabs(one.logarithm) <= Mixture::most_confidence, "its experts' weights are none");
        total += one.weight;
    }
    const MixtureCounters& m = s.mixture;
    a.require(at_least(m.rounds, 0.0) && at_least(m.least, 0.0) && m.least > 0.0 && at_least(m.least_rounds, 1.0), "its mixture has had no rounds");
    if (!s.spaces.empty()) a.require(!s.spaces[s.current()].experts.empty(), "its current space has no experts");
    if (s.settings.paper) {
        a.require(s.outputs == 1 && finite(static_cast<double*>(s.hedge.at()), s.hedge.bytes() / 8), "its hedge holds no numbers");
        if (!s.spaces.empty()) a.require(s.hedge.bytes() == 8 * Hedge::reals(s.players()), "its hedge is of other learners");
    } else if (!s.standings.empty()) {
        a.require(std::fabs(total - 1.0) < 1e-6 && s.hedge.empty(), "its experts' weights are none");
    }
    a.require(s.waiting.size() <= ModelState::most_waiting, "too many rows wait");
    for (const Waiting& row : s.waiting) {
        for (std::size_t k = 0; k < row.ids.size(); ++k)
            a.require(row.ids[k] < s.names.size() && !s.names[row.ids[k]].empty() && std::fabs(row.values[k]) <= 1e100 && (k == 0 || row.ids[k - 1] < row.ids[k]),
                      "a row that waits is none");
        a.require(row.weight > 0.0 && row.weight <= 1e100 && (row.y != row.y || std::fabs(row.y) <= 1e100), "a row that waits is none");
        a.require(row.y != row.y || label_fits(s.task(), s.outputs, row.y), "a row that waits has no label");
    }
}

template <class A>
void learner(A& a, LearnerParams& p) {
    a.number(p.kernel_terms);
    for (KernelTerm& term : p.kernel) {
        a.number(term.kind);
        a.number(term.degree);
        a.number(term.gamma);
        a.number(term.offset);
    }
    a.number(p.graph_width);
    a.number(p.ridge);
    a.number(p.smoothness);
    a.number(p.step);
    a.number(p.label_rate);
    a.number(p.radius);
    a.number(p.jitter);
    a.number(p.pursuit_steps);
    a.number(p.loss);
    a.number(p.equations);
    a.number(p.projection);
    a.number(p.keep_gram);
    a.number(p.manifold);
    a.number(p.cap);
    a.number(p.project_on_skip);
    a.number(p.stratified);
}

template <class A>
void settings(A& a, ModelSettings& s) {
    a.number(s.task);
    a.number(s.scaled);
    a.number(s.related);
    a.number(s.precise);
    a.number(s.paper);
    a.number(s.forget);
    a.number(s.seed);
    if constexpr (A::reading) {
        a.require(std::uint8_t(s.task) <= std::uint8_t(Task::absolute), "its task is none");
        a.require(s.forget >= 0.0 && s.forget < 1.0, "it forgets by no share");
    }
    if (!s.paper) return;
    a.number(s.restart);
    a.number(s.train_beside);
    a.number(s.eta);
    a.number(s.map_ridge);
    a.number(s.map_intercept);
    learner(a, s.learner);
    if constexpr (A::reading) {
        const LearnerParams& p = s.learner;
        bool sound = p.kernel_terms >= 1 && p.kernel_terms <= most_kernel_terms && std::uint8_t(p.loss) <= std::uint8_t(Loss::absolute) &&
                     std::uint8_t(p.equations) <= std::uint8_t(Equations::printed_weighted) && std::uint8_t(p.projection) <= 1;
        for (const double value : {p.graph_width, p.ridge, p.smoothness, p.step, p.label_rate, p.radius, p.jitter, s.eta, s.map_ridge})
            sound = sound && at_least(value, 0.0);
        for (std::uint32_t t = 0; sound && t < p.kernel_terms; ++t)
            sound = std::uint8_t(p.kernel[t].kind) <= std::uint8_t(KernelKind::constant) && p.kernel[t].degree >= 1 && p.kernel[t].degree <= 100 &&
                    at_least(p.kernel[t].gamma, 0.0) && fine(p.kernel[t].offset);
        a.require(sound && p.label_rate <= 1.0 && (p.keep_gram || p.projection == Projection::pursuit), "its learner's settings are none");
    }
}

template <class A>
void map(A& a, Map& m, const ModelState& state, const Space& old, const Space* source) {
    a.part(Part::maps);
    a.number(m.from);
    a.number(m.to);
    a.number(m.rows);
    a.number(m.unexplained);
    a.number(m.form);
    a.number(m.wanted);
    const bool paper = state.settings.paper;
    if constexpr (A::reading) {
        a.require(source && m.to == old.dim() && m.from >= 1 && m.from <= source->dim(), "a map fits no spaces");
        a.require(m.form <= Map::Form::full && m.wanted >= Map::Form::bfloat16 && m.wanted <= Map::Form::full, "a map is kept in no form");
        a.require(m.unexplained >= 0.0 && m.unexplained <= 1.0 && m.rows < never, "a map rests on no rows");
    }
    RecoveryParams p = recovery_params(state.settings, m);
    const std::size_t sums = paper ? 8 * RecoveryMap::reals(p) : Moments<float>::bytes(std::size_t(m.from) + m.to);
    perhaps(a, m.joint, sums);
    if (m.solved()) block(a, m.solution, paper ? sums : Map::solution_bytes(m.from, m.to, m.form));
    if constexpr (A::reading) {
        if (paper) {
            a.require(finite(static_cast<double*>(m.joint.at()), m.joint.bytes() / 8) && finite(static_cast<double*>(m.solution.at()), m.solution.bytes() / 8),
                      "a map holds no numbers");
            return;
        }
        if (!m.joint.empty()) {
            const std::size_t both = std::size_t(m.from) + m.to;
            Moments<float> joint(both, m.joint.at(), Moments<float>::Adopt{}, both);
            bool sound = at_least(joint.count(), 0.0) && finite(joint.mean(), both, 1e15) && finite(joint.sums(), packed_size(both), 1e38);
            for (std::size_t i = 0; sound && i < both; ++i) sound = joint.sums()[packed_at(i, i)] >= 0.0f;
            a.require(sound, "the statistics of a map are none");
        }
        m.with_solution(0.0, [&](auto affine) {
            bool sound = finite(affine.center(), m.from, 1e100) && finite(affine.offset(), m.to);
            for (std::size_t i = 0; sound && i < std::size_t(m.from) * m.to; ++i) sound = fine(double(affine.linear()[i]));
            a.require(sound, "a map holds no numbers");
        });
    }
}

template <class A>
void space(A& a, Space& s, ModelState& state) {
    a.part(Part::names);
    list(a, s.ids);
    list(a, s.spells);
    a.number(s.room);
    a.number(s.born);
    a.number(s.index);
    a.number(s.rows);
    a.number(s.precise);
    if constexpr (A::reading) {
        a.require(!s.ids.empty() && s.ids.size() <= s.room && s.room <= 1u << 20 && s.born >= 1 && s.born <= s.room, "a space has no features");
        a.require(s.spells.empty() || s.spells.size() == s.ids.size(), "a space's gaps are of other features");
        a.require(s.index < never && s.rows < never, "a space has had no rows");
        std::vector<char> met(state.features.size(), 0);
        for (const std::uint32_t id : s.ids) {
            a.require(id < met.size() && !met[id] && !state.names[id].empty(), "a space's features have no names");
            met[id] = 1;
        }
    }
    a.part(Part::scalers);
    perhaps(a, s.scaler, Space::scaler_bytes(s.room, s.precise));
    perhaps(a, s.moments, Moments<float>::bytes(s.room));
    if constexpr (A::reading) {
        a.require(s.scaler.empty() != state.settings.scaled && s.precise == state.settings.precise, "its scaling is none");
        a.require(s.moments.empty() || state.settings.scaled, "how its features vary together is not known");
        s.with_scaler([&](auto scaler) { a.require(scaler.is_sound(), "its scaling is none"); });
        if (!s.moments.empty()) {
            auto moments = s.all_moments();
            bool sound = at_least(moments.count(), 0.0) && finite(moments.mean(), s.room, 1e15) && finite(moments.sums(), packed_size(s.room), 1e30);
            for (std::size_t i = 0; sound && i < s.dim(); ++i) sound = moments.sums()[packed_at(i, i)] >= 0.0f;
            a.require(sound, "how its features vary together is not known");
        }
    }
    a.part(Part::learners);
    s.experts.resize(a.count(s.experts.size(), 8, 1));
    for (Expert& one : s.experts) {
        a.number(one.code);
        if constexpr (A::reading) {
            a.require(is_known(one.code), "an expert is of no known kind");
            const bool learner = one.code.kind == std::uint8_t(Kind::learner);
            a.require(learner == state.settings.paper && (!learner || (one.code.size >= 1 && state.outputs == 1)), "an expert is of another model");
            const ExpertShape shape = shape_of(state.settings, one.code, s.room, s.born, state.outputs, s.index);
            a.require(shape.bytes() <= a.left(), "it ends too early");
            one.core = shape.make(ModelState::variant());
        }
        a.raw(one.core->block(), one.core->state_bytes());
        if constexpr (A::reading) a.require(one.core->is_sound(), "an expert has learned no numbers");
    }
}

template <class A>
void state(A& a, ModelState& s) {
    a.part(Part::counters);
    std::uint32_t outputs = static_cast<std::uint32_t>(s.outputs);
    a.number(outputs);
    s.outputs = outputs;
    a.number(s.rows);
    a.number(s.began);
    a.number(s.refit_at);
    a.number(s.review_at);
    a.number(s.wake_at);
    a.number(s.silent);
    a.number(s.pause);
    a.number(s.incoming);
    a.number(s.dealt);
    a.number(s.gapped);
    a.number(s.candidate_room);
    a.number(s.forgotten_after);
    a.number(s.current_since);
    a.number(s.young_until);
    a.number(s.opened_at);
    a.number(s.lost_at);
    a.number(s.deaf_until);
    a.number(s.exact);
    if constexpr (A::reading) {
        const bool numbers = s.settings.task == Task::squared || s.settings.task == Task::absolute;
        a.require(outputs >= 1 && outputs != 2 && outputs <= (numbers ? 1 : 1024), "it has no outputs");
        a.require(s.rows < never && s.began <= s.rows && s.refit_at > s.rows, "its rows are not counted");
        a.require(s.forgotten_after >= 1 && s.pause >= 1, "it forgets at once");
    }
    a.part(Part::names);
    const std::size_t n = a.count(s.features.size(), 10);
    s.features.resize(n);
    s.names.resize(n);
    for (Feature& f : s.features) {
        a.number(f.absent);
        a.number(f.pace);
        a.number(f.lately);
        a.number(f.readings);
        a.number(f.spaces);
        a.number(f.living);
    }
    for (std::string& name : s.names) text(a, name, 2);
    if constexpr (A::reading)
        for (std::size_t i = 0; i < n; ++i) a.require(s.features[i].pace >= 1 && (s.names[i].empty() || s.names[i][0] == 's' || s.names[i][0] == 'i'), "a feature is not counted");
    a.part(Part::newcomers);
    list(a, s.candidates);
    a.part(Part::counters);
    s.spaces.resize(a.count(s.spaces.size(), 32, 1));
    for (Space& one : s.spaces) space(a, one, s);
    for (std::size_t i = 0; i < s.spaces.size(); ++i) {
        a.part(Part::maps);
        std::uint8_t there = s.spaces[i].map.has_value();
        a.number(there);
        if (!there) continue;
        if constexpr (A::reading) s.spaces[i].map.emplace();
        map(a, *s.spaces[i].map, s, s.spaces[i], i + 1 < s.spaces.size() ? &s.spaces[i + 1] : nullptr);
    }
    a.part(Part::weights);
    if constexpr (A::reading) s.standings.resize(s.experts_before(s.spaces.size()));
    for (Standing& one : s.standings) a.number(one);
    a.number(s.mixture);
    list_block(a, s.hedge);
    a.part(Part::newcomers);
    s.waiting.resize(a.count(s.waiting.size(), 20, 1));
    for (Waiting& row : s.waiting) {
        list(a, row.ids);
        row.values.resize(row.ids.size());
        a.raw(row.values.data(), 8 * row.values.size());
        a.number(row.y);
        a.number(row.weight);
    }
    if constexpr (A::reading) check(a, s);
}

}  // namespace fields

// ---- the whole file: a mark, the length, a checksum, the caller's own bytes, settings and state

constexpr unsigned char file_mark[8] = {'s', 'f', '2', 'e', 'l', 3, 0, 0};

inline std::uint64_t checksum_of(const unsigned char* from, std::size_t count) {
    // Four lanes of multiply and fold: damage is to be seen, not malice.
    std::uint64_t lanes[4] = {0x9E3779B97F4A7C15ull, 0xBF58476D1CE4E5B9ull, 0x94D049BB133111EBull, count};
    std::size_t at = 0;
    for (; at + 32 <= count; at += 32)
        for (int k = 0; k < 4; ++k) {
            std::uint64_t word;
            std::memcpy(&word, from + at + 8 * k, 8);
            lanes[k] = (lanes[k] ^ word) * 0xD6E8FEB86659FD93ull;
            lanes[k] ^= lanes[k] >> 32;
        }
    for (; at < count; ++at) {
        lanes[at % 4] = (lanes[at % 4] ^ from[at]) * 0xD6E8FEB86659FD93ull;
        lanes[at % 4] ^= lanes[at % 4] >> 32;
    }
    std::uint64_t all = 0;
    for (const std::uint64_t lane : lanes) {
        all = (all ^ lane) * 0xD6E8FEB86659FD93ull;
        all ^= all >> 32;
    }
    return all;
}

constexpr std::size_t file_head = sizeof file_mark + 16;

inline std::vector<unsigned char> save(ModelState& state, const std::string& own) {
    std::vector<unsigned char> out(file_head);
    Counter counter;
    fields::state(counter, state);
    out.reserve(file_head + own.size() + counter.total() + 512);
    Writer writer(out);
    std::string copy = own;
    fields::text(writer, copy, 4);
    fields::settings(writer, state.settings);
    fields::state(writer, state);
    const std::uint64_t length = out.size() - file_head, checksum = checksum_of(out.data() + file_head, out.size() - file_head);
    std::memcpy(out.data(), file_mark, sizeof file_mark);
    std::memcpy(out.data() + 8, &length, 8);
    std::memcpy(out.data() + 16, &checksum, 8);
    return out;
}

// Fills a fresh state; returns the caller's own bytes.
inline std::string load(ModelState& state, const unsigned char* from, std::size_t count) {
    Reader head(from, count);
    head.require(count >= file_head && std::memcmp(from, file_mark, 5) == 0, "it is no sf2el model");
    head.require(std::memcmp(from, file_mark, sizeof file_mark) == 0, "it is of another format");
    std::uint64_t length = 0, checksum = 0;
    std::memcpy(&length, from + 8, 8);
    std::memcpy(&checksum, from + 16, 8);
    head.require(length == count - file_head, "it ends too early or too late");
    head.require(checksum == checksum_of(from + file_head, count - file_head), "it is damaged");
    Reader reader(from + file_head, count - file_head);
    std::string own;
    fields::text(reader, own, 4);
    fields::settings(reader, state.settings);
    fields::state(reader, state);
    reader.require(reader.left() == 0, "it ends too late");
    state.find_free();
    return own;
}

}  // namespace sf2el
