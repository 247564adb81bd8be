// What a model's state is made of: blocks of bytes, experts with the code by which they are known, spaces and maps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "../core/core.hpp"
#include "../core/dispatch.hpp"
#include "mixture.hpp"

namespace sf2el {

constexpr std::uint32_t nobody = ~std::uint32_t(0);
constexpr std::uint64_t never = std::uint64_t(1) << 60;

// Bytes in one place, aligned to 8; a copy is a copy of the bytes.
class Block {
public:
    Block() = default;
    explicit Block(std::size_t bytes) : words_(bytes / 8) {}

    bool empty() const { return words_.empty(); }
    std::size_t bytes() const { return words_.size() * 8; }
    void* at() { return words_.data(); }
    const void* at() const { return words_.data(); }
    void clear() { std::vector<std::uint64_t>().swap(words_); }

private:
    std::vector<std::uint64_t> words_;
};

// What an expert is made from; the same object serves all models with experts of that shape.
struct ExpertShape {
    std::variant<PosteriorParams, LogisticParams, LearnerParams> params;
    Precision precision = Precision::single;

    std::unique_ptr<AnyExpert> make(const Variant& variant) const {
        if (const auto* p = std::get_if<PosteriorParams>(&params)) return variant.posterior(*p, precision);
        if (const auto* p = std::get_if<LogisticParams>(&params)) return variant.logistic(*p);
        return variant.learner(std::get<LearnerParams>(params), precision == Precision::single);
    }

    std::size_t dim() const {
        return std::visit([](const auto& p) { return std::size_t(p.dim); }, params);
    }

    std::size_t outputs() const {
        if (const auto* p = std::get_if<PosteriorParams>(&params)) return p->outputs;
        if (const auto* p = std::get_if<LogisticParams>(&params)) return p->outputs;
        return 1;
    }

    std::size_t bytes() const {
        if (const auto* p = std::get_if<PosteriorParams>(&params)) {
            if (precision == Precision::half) return HalfPosterior::state_bytes(*p);
            return precision == Precision::single ? Posterior<float>::state_bytes(*p) : Posterior<double>::state_bytes(*p);
        }
        if (const auto* p = std::get_if<LogisticParams>(&params)) return OnlineLogistic::reals(*p) * sizeof(double);
        const auto& p = std::get<LearnerParams>(params);
        return precision == Precision::single ? Learner<float>::state_bytes(p) : Learner<double>::state_bytes(p);
    }
};

// How an expert sees a row: what is missing as it is expected, as zero, or as zero with a flag a feature.
enum class View : std::uint8_t { expected, zero, flagged, mean };
constexpr std::size_t views = 4;

// By what the outside knows an expert: its kind, its rate of forgetting and its form are entries of lists there.
struct ExpertCode {
    std::uint8_t kind = 0;
    View view = View::expected;
    std::uint8_t rate = 0;
    std::uint8_t form = 0;
    std::uint32_t size = 0;
};

struct Expert {
    ExpertCode code;
    std::unique_ptr<AnyExpert> core;

    Expert() = default;
    Expert(const ExpertCode& c, std::unique_ptr<AnyExpert> e) : code(c), core(std::move(e)) {}
    Expert(const Expert& other) : code(other.code), core(other.core->clone()) {}
    Expert(Expert&&) = default;
    Expert& operator=(const Expert& other) { return *this = Expert(other); }
    Expert& operator=(Expert&&) = default;
};

// How often a feature is there.
struct Feature {
    std::uint16_t absent = 0;   // rows since it was last there, up to its patience
    std::uint16_t pace = 1;     // rows that it lately took to come again
    std::uint8_t lately = 0;    // a bit for each of the last rows, the latest the lowest
    std::uint8_t readings = 0;  // rows that had it while it belonged to no living space, up to those that are enough
    std::uint8_t spaces = 0;    // that have it
    std::uint8_t living = 0;    // of these, the current one and the one beside it

    bool in_use() const { return spaces > 0 || readings > 0; }
    std::uint32_t patience() const { return pace > 2 ? 2u * pace : 5u; }
    bool gone() const { return absent >= patience(); }
};

// A map that recovers a space from the next one.
struct Map {
    enum class Form : std::uint8_t { none, bfloat16, single, full };

    std::uint32_t from = 0, to = 0;
    std::uint64_t rows = 0;     // that had both spaces
    double unexplained = 0.0;   // by the old features, of the new ones, when it was last solved
    Form form = Form::none;     // of the solution; none: not solved yet
    Form wanted = Form::single; // of the solution, once there is one
    Block joint;                // statistics of rows that had both; empty: no more rows count
    Block solution;

    bool solved() const { return form != Form::none; }

    static std::size_t solution_bytes(std::size_t from, std::size_t to, Form form) {
        switch (form) {
            case Form::bfloat16: return AffineMap<BFloat16>::bytes(from, to);
            case Form::single: return AffineMap<float>::bytes(from, to);
            case Form::full: return AffineMap<double>::bytes(from, to);
            default: return 0;
        }
    }

    template <class F>
    void with_solution(double limit, F f) {
        if (form == Form::bfloat16) f(AffineMap<BFloat16>(from, to, limit, solution.at()));
        else if (form == Form::single) f(AffineMap<float>(from, to, limit, solution.at()));
        else if (form == Form::full) f(AffineMap<double>(from, to, limit, solution.at()));
    }

    std::size_t bytes() const { return joint.bytes() + solution.bytes(); }
};

// Features that live and die together, what is known of them, and the experts that learn on them.
struct Space {
    std::vector<std::uint32_t> ids;      // the feature of each slot in use
    std::vector<std::uint8_t> spells;    // of absence, of each slot, up to 255; empty until there is a gap
    std::uint32_t room = 0;              // slots, of which some may wait for features
    std::uint32_t born = 1;              // features that it began with: distances are measured in them
    std::uint64_t index = 0;             // spaces before it
    std::uint64_t rows = 0;              // that had any of its features
    Block scaler;                        // empty: rows are taken as they are read
    Block moments;                       // how its features vary together; empty: not kept
    std::vector<Expert> experts;
    std::optional<Map> map;              // from the next space
    bool precise = false;                // whether the scaler is in double precision

    double divisor() const { return std::sqrt(double(born)); }
    std::size_t dim() const { return ids.size(); }

    template <class F>
    void with_scaler(F f) {
        if (scaler.empty()) return;
        if (precise) f(Scaler<double>(dim(), room, scaler.at(), divisor()));
        else f(Scaler<float>(dim(), room, scaler.at(), divisor()));
    }

    Moments<float> all_moments() { return Moments<float>(room, moments.at(), Moments<float>::Adopt{}, dim()); }

    static std::size_t scaler_bytes(std::size_t room, bool precise) {
        return precise ? Scaler<double>::bytes(room) : Scaler<float>::bytes(room);
    }

    std::size_t expert_bytes() const {
        std::size_t sum = 0;
        for (const Expert& one : experts) sum += one.core->state_bytes();
        return sum;
    }
};

// A row that waits: its features may open a space, or join one.
struct Waiting {
    std::vector<std::uint32_t> ids;
    std::vector<double> values;
    double y = 0.0, weight = 1.0;

    std::size_t bytes() const { return 12 * ids.size() + 20; }
};

}  // namespace sf2el
