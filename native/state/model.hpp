// A model's whole state, and the one way that every row goes through it. No Python: bindings and devices share it.
#pragma once

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "parts.hpp"

namespace sf2el {

// What does not change while a model lives.
struct ModelSettings {
    Task task = Task::binary;   // binary or classes by the number of outputs; or numbers
    bool scaled = true;         // whether features are scaled online
    bool related = true;        // whether a space keeps how its features vary together
    bool precise = false;       // whether scaling is kept in double precision
    bool paper = false;         // the published algorithm: its map, and weights by its hedge
    bool restart = true;        // paper: the old learner's step begins again when its features vanish
    bool train_beside = true;   // whether experts of a space that has opened learn beside the current ones
    double eta = 0.0;           // paper: rate of the hedge; 0: AdaHedge
    double map_ridge = 1e-3;    // paper
    bool map_intercept = false; // paper
    double forget = 0.0;        // of experts that forget at no rate of their own
    std::uint64_t seed = 0;
    LearnerParams learner;      // paper: its learner's
};

// A row on its way: values by feature, and what there is of features that are not known.
struct Row {
    std::vector<double> x;  // NaN: not there
    std::vector<std::uint32_t> present;

    void set(std::uint32_t id, double value) {
        if (x.size() <= id) x.resize(id + 1, std::numeric_limits<double>::quiet_NaN());
        x[id] = value;
        present.push_back(id);
    }

    void clear() {
        for (const std::uint32_t id : present) x[id] = std::numeric_limits<double>::quiet_NaN();
        present.clear();
    }

    void drop(std::uint32_t id) {
        if (!has(id)) return;
        x[id] = std::numeric_limits<double>::quiet_NaN();
        present.erase(std::find(present.begin(), present.end(), id));
    }

    bool has(std::uint32_t id) const { return id < x.size() && x[id] == x[id]; }
};

enum class Learned : int { yes = 0, change = 2 };

// Which experts a prediction rested on: the share of all weight of experts of ended spaces, and the number of the current one.
struct Whose {
    double recovered = 0.0;
    std::uint64_t space = 0;
};

class ModelState {
public:
    static constexpr std::size_t most_waiting = 4;
    static constexpr std::uint32_t longest_pause = 20;
    static constexpr double incoming_weight = 1e-3, incoming_prior = 1e-2, lost_share = 0.9, worth = 0.95;

    ModelSettings settings;
    std::size_t outputs = 1;
    std::vector<Feature> features;
    std::vector<std::string> names;  // of features: 's' and text, or 'i' and digits; empty: the place is free
    std::vector<std::uint32_t> candidates;  // features that are looked at closely: of no living space
    std::vector<Space> spaces;  // the oldest first
    bool incoming = false;      // whether the last space is beside the one before it, which goes on
    bool dealt = false;         // whether weights were dealt again since the older of these two vanished
    bool gapped = false;        // whether a row had gaps so far
    std::vector<Standing> standings;  // of the experts of all spaces in turn
    MixtureCounters mixture;
    Block hedge;                // paper
    std::uint64_t rows = 0, began = 0, refit_at = never, review_at = never, wake_at = never;
    std::uint32_t silent = 0, pause = 1;  // rows without the current space's features: now, and at most before
    std::uint32_t candidate_room = 1 << 30, forgotten_after = 20;
    // What a feature policy goes by: when the current space began, until when it is young (newcomers join it), when
    // the space beside it opened, when a feature was last lost, and until when candidates change nothing.
    std::uint64_t current_since = 0, young_until = 0, opened_at = 0, lost_at = 0, deaf_until = 0;
    bool exact = false;         // whether periods are known by rows' exact features
    std::vector<Waiting> waiting;

    // ---- which experts and spaces there are

    std::size_t current() const { return spaces.size() - (incoming ? 2 : 1); }
    bool empty() const { return spaces.empty(); }

    std::size_t experts_before(std::size_t space) const {
        std::size_t count = 0;
        for (std::size_t s = 0; s < space; ++s) count += spaces[s].experts.size();
        return count;
    }

    Task task() const {
        if (settings.task != Task::binary && settings.task != Task::classes) return settings.task;
        return outputs > 1 ? Task::classes : Task::binary;
    }

    // ---- a row

    // What is predicted: `outputs` numbers. False: nothing of the row is known.
    bool predict(const Row& row, double* out) {
        Working& w = working();
        look(row, false, w);
        if (!score(w)) return false;
        mix(w, out);
        return true;
    }

    // Each expert's scores for a row and the weights they count by; whether any is awake.
    bool explain(const Row& row, std::vector<double>& scores, std::vector<double>& weights, std::vector<char>& awake) {
        Working& w = working();
        look(row, false, w);
        const bool any = score(w);
        scores = w.scores;
        awake = w.awake;
        weights.resize(standings.size());
        effective_weights(w, weights.data());
        return any;
    }

    Whose whose(const Row& row) {
        if (spaces.empty()) return {};
        Working& w = working();
        look(row, false, w);
        score(w);
        return rests_on(w);
    }

    // Learns a row, unless its features may change the spaces: then nothing is touched. `said`: room for what was
    // predicted before, NaN where nothing of the row is known, or null. `settled`: the features have been counted
    // and change nothing. `whose`: room for what that rested on, or null.
    Learned learn(const Row& row, bool strangers, double y, double weight, double* said, bool settled = false, Whose* whose = nullptr) {
        if (!settled) {
            if (spaces.empty() || wakes(row, strangers)) return Learned::change;
            attend(row);
        }
        Working& w = working();
        look(row, true, w);
        w.silent = silent;
        if (said) {
            if (score(w)) mix(w, said);
            else
                for (std::size_t k = 0; k < outputs; ++k) said[k] = std::numeric_limits<double>::quiet_NaN();
            if (whose) *whose = rests_on(w);
        }
        if (vanishes(w)) vanish(w);
        teach(w, y, weight, false);
        ++rows;
        if (rows == refit_at) {
            solve_maps();
            schedule();
        }
        return Learned::yes;
    }

    // Takes only the loss step of a row's label. False: the row belongs to no space that is kept.
    bool learn_late(const Row& row, double y, double weight) {
        Working& w = working();
        look(row, false, w);
        bool any = false;
        for (std::size_t s = 0; s < spaces.size(); ++s) any = any || w.seen[s].known;
        if (any) teach(w, y, weight, true);
        return any;
    }

    // ---- attendance

    // Whether a row's features ask for a decision: something may open, join, end or return.
    bool wakes(const Row& row, bool strangers) const {
        if (rows + 1 >= wake_at || rows >= review_at) return true;
        if (!gapped) {
            const Space& own = spaces.back();  // features of a space that ends beside it are no gaps
            for (const std::uint32_t id : own.ids)
                if (!row.has(id) && has_any(row, own)) return true;
        }
        if (exact) return wakes_exactly(row, strangers);
        if (rows >= deaf_until) {
            const bool young = !incoming && rows < young_until;
            std::size_t again = 0;
            for (const std::uint32_t id : candidates) {
                if (!row.has(id)) continue;
                const Feature& f = features[id];
                again += f.readings >= 1;
                if (again > (young ? 0 : few_new())) return true;
                if (counted(f, true).rows >= often_rows || f.readings + 1 >= rare_readings) return true;
            }
        }
        if (!incoming) return false;
        for (std::size_t s = current(); s < spaces.size(); ++s)
            for (const std::uint32_t id : spaces[s].ids) {
                const Feature& f = features[id];
                if (row.has(id) ? f.gone() : (f.absent + 1u == f.patience())) return true;
            }
        return false;
    }

    // Up to so many new features are late ones, and not the beginning of a space.
    std::size_t few_new() const {
        const std::size_t quarter = spaces[current()].dim() / 4;
        return quarter > 1 ? quarter : 1;
    }

    bool wakes_exactly(const Row& row, bool strangers) const {
        if (rows < deaf_until) return false;
        if (!incoming) {
            if (strangers) return true;
            for (const std::uint32_t id : row.present)
                if (!features[id].living) return true;
            return false;
        }
        const Space &old = spaces[current()], &fresh = spaces.back();
        for (const std::uint32_t id : old.ids)
            if (row.has(id) && !has_feature(fresh, id)) return false;
        return has_any(row, fresh);
    }

    // A candidate that is there often enough to be used; `sightings` are enough in any case.
    bool is_rising(std::uint32_t id, int sightings) const {
        const Feature& f = features[id];
        int often = 0;
        for (int b = 0; b < 8; ++b) often += (f.lately >> b) & 1;
        return f.readings >= sightings || often >= often_rows || f.readings >= rare_readings;
    }

    static constexpr std::uint8_t rare_readings = 5;
    static constexpr int often_rows = 3;
    static constexpr std::uint16_t slowest = 1000;

    // Whether a row has features that only the current space has; where all are shared, whether it has any.
    bool shows_current(const Row& row) const {
        if (spaces.empty()) return false;
        bool own = false, any = false;
        for (const std::uint32_t id : spaces[current()].ids) {
            const bool there = row.has(id), shared = incoming && features[id].living > 1;
            own = own || !shared;
            if (there && !shared) return true;
            any = any || there;
        }
        return !own && any;
    }

    // Counts a row's features.
    void attend(const Row& row) {
        const bool shown = shows_current(row);
        for (std::size_t s = current(); s < spaces.size(); ++s) {
            Space& space = spaces[s];
            for (std::size_t j = 0; j < space.ids.size(); ++j) {
                Feature& f = features[space.ids[j]];
                const bool there = row.has(space.ids[j]);
                if (s > current() && f.living > 1) continue;  // counted with the space before
                if (there) {
                    const std::uint32_t took = f.absent + 1u, slower = f.pace > 1 ? f.pace - 1u : 1u;
                    const std::uint32_t now = took > slower ? took : slower;
                    f.pace = static_cast<std::uint16_t>(now < slowest ? now : slowest);
                    f.absent = 0;
                    if (took > 1 && s == current() && rows < young_until) stay_young(took);
                } else if (f.absent < f.patience()) {
                    if (!f.absent && !space.spells.empty() && space.spells[j] < 255) ++space.spells[j];
                    ++f.absent;
                    if (f.gone()) lost_at = rows;
                }
            }
            if (s == current()) {
                if (shown) {
                    const std::uint32_t took = silent + 1 < longest_pause ? silent + 1 : longest_pause;
                    if (took > pause) pause = took;
                    silent = 0;
                    if (incoming && dealt) undeal();
                } else {
                    ++silent;
                }
            }
        }
        std::size_t kept = 0;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const std::uint32_t id = candidates[i];
            Feature& f = features[id];
            const bool there = row.has(id);
            f.lately = counted(f, there).lately;
            if (there) {
                if (f.readings < rare_readings) ++f.readings;
                f.absent = 0;
            } else if (++f.absent >= forgotten_after) {
                f.readings = 0;
                f.lately = 0;
                if (!f.spaces) {
                    release(id);
                    continue;
                }
            }
            candidates[kept++] = id;
        }
        candidates.resize(kept);
    }

    // A space is young for twice the longest pause of a feature in it; newcomers are looked at for as long.
    void stay_young(std::uint32_t pause_of_one) {
        const std::uint64_t until = current_since + 2u * pause_of_one;
        if (until > young_until) young_until = until;
        const std::uint32_t most = pause_of_one < slowest ? pause_of_one : slowest;
        if (most > forgotten_after) forgotten_after = most;
    }

    // Whether there is room for the name of one candidate more, at the cost of those that were not there lately.
    bool make_room(std::size_t name) {
        while (waiting_bytes() + candidate_bytes() + name + candidate_mark + (free_.empty() ? place_bytes : 0) > candidate_room) {
            std::size_t stalest = candidates.size();
            for (std::size_t i = 0; i < candidates.size(); ++i) {
                const Feature& f = features[candidates[i]];
                if (f.spaces || f.lately) continue;
                if (stalest == candidates.size() || f.absent > features[candidates[stalest]].absent) stalest = i;
            }
            if (stalest == candidates.size()) return false;
            const std::uint32_t id = candidates[stalest];
            candidates.erase(candidates.begin() + std::ptrdiff_t(stalest));
            release(id);
        }
        return true;
    }

    // Features that the last row brought and that were not known; each is a candidate from now on.
    std::uint32_t note(const std::string& name) {
        std::uint32_t id = nobody;
        if (!free_.empty()) {  // the lowest one: a model that was saved and loaded takes the same
            std::pop_heap(free_.begin(), free_.end(), std::greater<std::uint32_t>());
            id = free_.back();
            free_.pop_back();
        } else {
            id = static_cast<std::uint32_t>(features.size());
            features.emplace_back();
            names.emplace_back();
            candidate_room -= candidate_room > place_bytes ? static_cast<std::uint32_t>(place_bytes) : candidate_room;
        }
        features[id] = Feature{};
        names[id] = name;
        return id;
    }

    void begin_candidate(std::uint32_t id) {
        features[id].readings = 1;
        features[id].lately = 1;
        candidates.push_back(id);
    }

    void release(std::uint32_t id) {
        released.push_back(id);
        released_names.push_back(names[id]);
        features[id] = Feature{};
        names[id].clear();
    }

    // Places that may be taken again once their names are forgotten.
    std::vector<std::uint32_t> released;
    std::vector<std::string> released_names;

    void reuse_released() {
        for (const std::uint32_t id : released) {
            free_.push_back(id);
            std::push_heap(free_.begin(), free_.end(), std::greater<std::uint32_t>());
        }
        released.clear();
    }

    void find_free() {
        free_.clear();
        for (std::size_t i = 0; i < features.size(); ++i)
            if (names[i].empty()) free_.push_back(static_cast<std::uint32_t>(i));
    }

    // Candidates' names and counts, in bytes.
    // What the file takes for a feature's place, which may be taken again; and for a candidate, beside its name.
    static constexpr std::size_t place_bytes = 10, candidate_mark = 4;

    // Of candidates of no space: bytes that come free when they are forgotten.
    std::size_t candidate_bytes() const {
        std::size_t sum = 0;
        for (const std::uint32_t id : candidates)
            if (!features[id].spaces) sum += candidate_mark + names[id].size();
        return sum;
    }

    bool has_free_places() const { return !free_.empty(); }

    std::size_t waiting_bytes() const {
        std::size_t sum = 0;
        for (const Waiting& one : waiting) sum += one.bytes();
        return sum;
    }

    // ---- maps

    void solve_maps() {
        for (std::size_t s = 0; s + 1 < spaces.size(); ++s) solve_map(spaces[s], spaces[s + 1]);
    }

    void solve_map(Space& old, Space& fresh);

    // When maps are solved again: whenever the rows since the last space vanished have grown by a quarter.
    void schedule() {
        refit_at = never;
        for (std::size_t s = 0; s + 1 < spaces.size(); ++s) {
            const auto& map = spaces[s].map;
            if (map && !settings.paper && !map->joint.empty() && !(incoming && !dealt && s == current())) {
                refit_at = next_after(rows - began) + began;
                return;
            }
        }
    }

    // The next of the counts 1, 2, 3 ... 8, 10, 12, 14, 16, 20 ...
    static std::uint64_t next_after(std::uint64_t count) {
        int bits = 0;
        for (std::uint64_t left = count; left; left >>= 1) ++bits;
        const std::uint64_t quarter = std::uint64_t(1) << (bits > 3 ? bits - 3 : 0);
        return (count / quarter + 1) * quarter;
    }

    // The weight that recovered experts begin with, after an overlap of so many rows.
    static double recovered_share(std::uint64_t rows, double doubt) {
        const double square = double(rows) * double(rows), share = square / (square + 5.0);
        return (share < 0.95 ? share : 0.95) * (1.0 - lost_share * doubt);
    }

    using Ids = std::vector<std::uint32_t>;

    // How little of a vanishing space can be recovered: nothing is doubted of features that are still read, which are
    // those of the next space and those that are about to join it.
    double doubt_of(std::size_t s, const Ids& shared) const {
        const Space& old = spaces[s];
        if (!old.map || !old.map->solved()) return 0.0;
        std::size_t gone = 0;
        for (const std::uint32_t id : old.ids)
            gone += !has_feature(spaces[s + 1], id) && std::find(shared.begin(), shared.end(), id) == shared.end();
        return old.map->unexplained * double(gone) / double(old.dim());
    }

    // The weights that two neighbouring spaces begin with when the older of them vanishes.
    void deal(std::size_t older, double* weights, const Ids& shared = {}) const;

    // The older of the two last spaces has vanished: weights are dealt again, and its experts go on.
    void settle_vanished(const Ids& shared = {}) {
        const std::size_t older = current();
        if (spaces[older].map) solve_map(spaces[older], spaces[older + 1]);
        dealt = true;  // the newest space plays from here
        if (settings.paper) {
            begin_hedge();
            if (settings.restart && spaces[older].map)
                for (Expert& one : spaces[older].experts)
                    if (auto* learner = dynamic_cast<AnyLearner*>(one.core.get())) learner->restart();
        } else {
            std::vector<double> weights(standings.size());
            deal(older, weights.data(), shared);
            for (std::size_t j = 0; j < standings.size(); ++j) {
                standings[j].weight = weights[j];
                standings[j].loss = 0.0;  // counted from here, as the rounds are
            }
            for (std::size_t j = experts_before(older + 1); j < standings.size(); ++j) standings[j].prior /= incoming_prior;
            mixture.rounds = 0.0;
        }
        began = rows;
        schedule();
    }

    // The space that had vanished is back.
    void undeal() {
        dealt = false;
        if (settings.paper) return begin_hedge();
        for (std::size_t j = experts_before(spaces.size() - 1); j < standings.size(); ++j) standings[j].prior *= incoming_prior;
        schedule();
    }

    // Paper: the hedge over the learners that play.
    void begin_hedge() {
        const std::size_t playing = players();
        mixture.rounds = 0.0;
        hedge = Block(8 * Hedge::reals(playing));
        Hedge(playing, playing > 1 ? settings.eta : 0.0, static_cast<double*>(hedge.at()));
        share_out_hedge();
    }

    // The space that has opened is shown the rows that have waited for it.
    void replay() {
        if (!incoming) return;
        Row row;
        for (const Waiting& one : waiting) {
            if (one.ids.empty()) continue;
            for (std::size_t k = 0; k < one.ids.size(); ++k) row.set(one.ids[k], one.values[k]);
            Working& w = working();
            look(row, false, w);
            const std::size_t s = spaces.size() - 1;
            if (w.seen[s].observed) {
                see(s, w.seen[s], nullptr, true, w);
                fit_maps(w);
                if (settings.train_beside) {
                    w.scores.resize(outputs);
                    for (Expert& expert : spaces[s].experts)
                        if (one.y == one.y || expert.core->uses_unlabelled())
                            expert.core->teach(w.seen[s].view(expert.code.view), one.y, one.weight, false, w.scores.data());
                }
            }
            row.clear();
        }
    }

    std::vector<double> average_risks() {
        std::vector<double> out(standings.size());
        const double by = mixture.rounds > 0.0 ? 1.0 / mixture.rounds : 0.0;
        std::size_t k = 0, j = 0;
        const std::size_t n = playing();
        for (std::size_t s = 0; s < spaces.size(); ++s)
            for (std::size_t i = 0; i < spaces[s].experts.size(); ++i, ++j) {
                if (!settings.paper) out[j] = standings[j].loss * by;
                else if (plays(s) && k < n) out[j] = hedge_block()[n + k++] * by;
            }
        return out;
    }

    void share_out_hedge() {
        for (Standing& one : standings) one.weight = 0.0;
        std::size_t k = 0, j = 0;
        const std::size_t n = playing();
        for (std::size_t s = 0; s < spaces.size(); ++s)
            for (std::size_t i = 0; i < spaces[s].experts.size(); ++i, ++j)
                if (plays(s) && k < n) standings[j].weight = hedge_block()[k++];
    }

    std::size_t players() const {
        std::size_t count = 0;
        for (std::size_t s = 0; s < spaces.size(); ++s) count += plays(s) ? spaces[s].experts.size() : 0;
        return count;
    }

    // The newest space unless it waits, the current one, and those that are recovered.

    bool plays(std::size_t s) const {
        if (s + 1 == spaces.size()) return !incoming || dealt;
        return s == current() || bool(spaces[s].map);
    }

    static bool has_feature(const Space& space, std::uint32_t id) {
        for (const std::uint32_t own : space.ids)
            if (own == id) return true;
        return false;
    }

    static const Variant& variant();

private:
    // What a space sees of a row.
    struct Seen {
        bool known = false;      // whether it says anything of the space
        bool observed = false;   // whether any of its own features is there
        bool recovered = false;
        std::size_t gaps = 0;
        std::vector<double> raw, values, zero, flagged, mean;
        std::vector<double> filled;  // what the values were before a map that is being fitted recovered some

        const double* view(View which) const {
            if (which == View::zero && !zero.empty()) return zero.data();
            if (which == View::flagged && !flagged.empty()) return flagged.data();
            if (which == View::mean && !mean.empty()) return mean.data();
            return values.data();
        }
    };

    struct Working {
        std::vector<Seen> seen;
        std::vector<double> scores, risks, losses, scratch, weights, both;
        std::vector<char> awake;
        std::uint32_t silent = 0;  // rows without the current space's features, if this one has none
    };

    struct Lately {
        std::uint8_t lately;
        int rows;
    };

    static Lately counted(const Feature& f, bool there) {
        const auto bits = static_cast<std::uint8_t>((f.lately << 1) | (there ? 1 : 0));
        int count = 0;
        for (int b = 0; b < 8; ++b) count += (bits >> b) & 1;
        return {bits, count};
    }

    static Working& working() {
        thread_local Working w;
        return w;
    }

    static double* grown(std::vector<double>& values, std::size_t size) {
        if (values.size() < size) values.resize(size);
        return values.data();
    }

    static bool has_any(const Row& row, const Space& space) {
        for (const std::uint32_t id : space.ids)
            if (row.has(id)) return true;
        return false;
    }

    // ---- what the spaces see

    void look(const Row& row, bool keep, Working& w) {
        w.silent = shows_current(row) ? 0 : silent + 1;
        if (w.seen.size() < spaces.size()) w.seen.resize(spaces.size());
        for (std::size_t s = spaces.size(); s-- > 0;) {
            Seen& seen = w.seen[s];
            read(row, spaces[s], seen);
            const Seen* next = s + 1 < spaces.size() ? &w.seen[s + 1] : nullptr;
            see(s, seen, next, keep, w);
        }
        if (keep) fit_maps(w);
    }

    static void read(const Row& row, const Space& space, Seen& seen) {
        const std::size_t n = space.dim();
        seen.raw.resize(space.room);
        seen.gaps = 0;
        for (std::size_t j = 0; j < n; ++j) {
            const std::uint32_t id = space.ids[j];
            const double value = id < row.x.size() ? row.x[id] : std::numeric_limits<double>::quiet_NaN();
            seen.raw[j] = value;
            seen.gaps += value != value;
        }
        for (std::size_t j = n; j < space.room; ++j) seen.raw[j] = 0.0;
        seen.observed = seen.gaps < n;
    }

    // A row as the experts of a space see it: observed, else recovered by its map, else as expected.
    void see(std::size_t s, Seen& seen, const Seen* next, bool keep, Working& w) {
        Space& space = spaces[s];
        const std::size_t n = space.dim();
        seen.values.assign(space.room, 0.0);
        seen.known = seen.observed;
        seen.recovered = false;
        seen.filled.clear();
        const bool ended = s < current();
        const bool counts = keep && seen.observed && !ended;
        if (counts) ++space.rows;
        if (seen.observed || space.scaler.empty()) {
            if (space.scaler.empty())
                for (std::size_t j = 0; j < n; ++j) seen.values[j] = seen.raw[j] == seen.raw[j] ? seen.raw[j] : 0.0;
            else space.with_scaler([&](auto scaler) { scaler.scale(seen.raw.data(), seen.values.data(), keep && !ended); });
        }
        seen.mean.clear();
        if (seen.gaps && seen.observed && needs(space, View::mean)) seen.mean = seen.values;
        // What a map will recover need not be guessed from the rest, unless the map is fitted on it.
        const bool recovers = seen.gaps && next && next->known && space.map && space.map->solved();
        const bool guessed = counts || !recovers || (keep && incoming && s == current());
        if (!space.moments.empty() && seen.observed && (seen.gaps || counts) && guessed) {
            double* scratch = grown(w.scratch, Moments<float>::fill_reals(n));
            variant().fill(space.room, n, space.moments.at(), seen.raw.data(), seen.values.data(), scratch, counts);
        }
        if (recovers) {
            if (incoming && s == current()) seen.filled = seen.values;
            recover(space, seen, *next, s, w);
        }
        if (gapped && (seen.observed || seen.recovered)) other_views(space, seen, counts);
        else {
            seen.zero.clear();
            seen.flagged.clear();
        }
        if (seen.flagged.empty() && needs(space, View::flagged)) {
            // Experts that see flags always see them: here all are zero.
            seen.flagged.assign(2 * space.room, 0.0);
            std::copy(seen.values.begin(), seen.values.end(), seen.flagged.begin());
        }
    }

    void recover(Space& space, Seen& seen, const Seen& next, std::size_t s, Working& w) {
        Map& map = *space.map;
        Space& source = spaces[s + 1];
        const double* from = next.values.data();
        if (!settings.paper) {
            // As read: a young space's scaling moves, and a map fitted on it would with it.
            double* filled = grown(w.scratch, source.room + space.room);
            std::copy(next.raw.begin(), next.raw.begin() + std::ptrdiff_t(source.dim()), filled);
            if (next.gaps) {
                if (source.scaler.empty())
                    for (std::size_t j = 0; j < source.dim(); ++j)
                        filled[j] = filled[j] == filled[j] ? filled[j] : next.values[j];
                else source.with_scaler([&](auto scaler) { scaler.unscale_gaps(filled, next.values.data()); });
            }
            from = filled;
        }
        double* recovered = grown(w.scratch, source.room + space.room) + source.room;
        if (settings.paper) {
            RecoveryParams p;
            p.from = map.from;
            p.to = map.to;
            p.ridge = settings.map_ridge;
            p.intercept = settings.map_intercept;
            RecoveryMap(p, static_cast<double*>(map.solution.at()), RecoveryMap::Adopt{}).recover(from, recovered);
        } else {
            map.with_solution(5.0 / space.divisor(), [&](const auto& affine) { affine.apply(from, recovered); });
        }
        for (std::size_t j = 0; j < map.to; ++j)
            if (seen.raw[j] != seen.raw[j]) seen.values[j] = recovered[j];
        seen.mean.clear();
        seen.known = seen.recovered = true;
    }

    bool needs(const Space& space, View which) const {
        for (const Expert& one : space.experts)
            if (one.code.view == which) return true;
        return false;
    }

    // Spells of absence so far, this row included: it may begin one that is not counted yet.
    std::uint32_t spells_of(const Space& space, std::size_t j, bool missing) const {
        if (space.spells.size() <= j) return 0;
        return space.spells[j] + (missing && features[space.ids[j]].absent == 0 ? 1u : 0u);
    }

    void other_views(Space& space, Seen& seen, bool kept) {
        const bool zero = needs(space, View::zero), flagged = needs(space, View::flagged);
        seen.zero.clear();
        seen.flagged.clear();
        if ((!zero && !flagged) || space.scaler.empty()) return;
        const double all = double(space.rows) + (kept || space.rows == 0 ? 0.0 : 1.0);
        seen.zero.assign(space.room, 0.0);
        space.with_scaler([&](auto scaler) {
            scaler.scale_with_zeros(seen.raw.data(), seen.zero.data(), seen.recovered ? seen.values.data() : nullptr, all, kept);
        });
        if (!flagged) return;
        seen.flagged.assign(2 * space.room, 0.0);
        std::copy(seen.zero.begin(), seen.zero.end(), seen.flagged.begin());
        if (seen.recovered) return;
        double* flags = seen.flagged.data() + space.room;
        space.with_scaler([&](auto scaler) { scaler.presence(seen.raw.data(), flags, all, kept); });
        for (std::size_t j = 0; j < space.dim(); ++j)
            if (spells_of(space, j, seen.raw[j] != seen.raw[j]) < least_spells) flags[j] = 0.0;
    }

    static constexpr std::uint8_t least_spells = 5;

    // The map that is being fitted takes in a row that has both spaces.
    void fit_maps(Working& w) {
        if (!incoming) return;
        const std::size_t s = current();
        Space& old = spaces[s];
        const Seen &seen = w.seen[s], &fresh = w.seen[s + 1];
        if (!old.map || old.map->joint.empty() || !seen.observed || !fresh.observed) return;
        if (2 * seen.gaps > old.dim() || 2 * fresh.gaps > spaces[s + 1].dim()) return;
        for (std::size_t j = 0; j < old.dim(); ++j) {
            // What stands in for features that are dying would say that they have nothing to do with the new ones.
            const Feature& f = features[old.ids[j]];
            if (seen.raw[j] != seen.raw[j] && f.absent > f.pace) return;
        }
        observe_both(old, spaces[s + 1], seen, fresh, w);
    }

    void observe_both(Space& old, Space& source, const Seen& seen, const Seen& fresh, Working& w);

    // ---- experts

    // Asks the experts that are awake; whether there is any.
    bool score(Working& w) {
        prepare(w);
        double* to = w.scores.data();
        bool any = false;
        std::size_t j = 0;
        for (std::size_t s = 0; s < spaces.size(); ++s)
            for (Expert& one : spaces[s].experts) {
                if (w.awake[j]) {
                    one.core->score(w.seen[s].view(one.code.view), to);
                    any = true;
                }
                to += outputs;
                ++j;
            }
        return any;
    }

    void prepare(Working& w) {
        const std::size_t n = standings.size();
        w.scores.resize(n * outputs);
        w.risks.resize(n);
        w.losses.resize(n);
        w.awake.resize(n);
        std::size_t j = 0;
        // The paper follows two learners: that of the last space that ended, and the newest one once that goes on.
        const bool beside = settings.paper && incoming && !dealt, paper_swap = beside && vanishes(w), paper_wait = beside && !paper_swap;
        for (std::size_t s = 0; s < spaces.size(); ++s) {
            const bool asleep = !w.seen[s].known || (paper_wait && s + 1 == spaces.size()) || (paper_swap && s < current());
            for (std::size_t i = 0; i < spaces[s].experts.size(); ++i) w.awake[j++] = !asleep;
        }
    }

    // Whether the current space's own features are gone as of this row, and those beside it are there.
    bool vanishes(const Working& w) const {
        if (!incoming || dealt) return false;
        const std::size_t s = current();
        if (!w.seen[s + 1].observed || !spaces[s].map || spaces[s].map->rows == 0) return false;
        if (w.silent < pause) return false;
        for (std::size_t j = 0; j < spaces[s].dim(); ++j)
            if (w.seen[s].raw[j] == w.seen[s].raw[j] && !has_feature(spaces[s + 1], spaces[s].ids[j])) return false;
        return true;
    }

    void vanish(Working& w) {
        settle_vanished();
        const std::size_t s = current();
        if (spaces[s].map && spaces[s].map->solved()) recover(spaces[s], w.seen[s], w.seen[s + 1], s, w);
    }

    void effective_weights(const Working& w, double* weights) const {
        for (std::size_t j = 0; j < standings.size(); ++j) weights[j] = standings[j].weight;
        if (vanishes(w)) {
            if (settings.paper) std::fill(weights, weights + standings.size(), 1.0);  // a hedge begins
            else deal(current(), weights);
        }
        double total = 0.0;
        for (std::size_t j = 0; j < standings.size(); ++j) total += w.awake[j] ? weights[j] : 0.0;
        for (std::size_t j = 0; j < standings.size(); ++j) weights[j] = w.awake[j] && total > 0.0 ? weights[j] / total : 0.0;
    }

    void mix(Working& w, double* out) {
        if (settings.paper) return mix_hedge(w, out);
        const double* weights = nullptr;
        if (vanishes(w)) {
            deal(current(), grown(w.weights, standings.size()));
            weights = w.weights.data();
        }
        Mixture(task(), outputs, standings, mixture).mix(w.scores.data(), w.awake.data(), weights, out);
    }

    void mix_hedge(Working& w, double* out) {
        double sum = 0.0, total = 0.0;
        std::size_t count = 0;
        const bool even = vanishes(w);
        double* scores = grown(w.both, standings.size());
        for (std::size_t j = 0; j < standings.size(); ++j) {
            if (!w.awake[j]) continue;
            const double weight = even ? 1.0 : standings[j].weight;
            sum += weight * w.scores[j];
            total += weight;
            scores[count++] = w.scores[j];
        }
        if (count == 1) out[0] = scores[0];
        else if (!even && playing_are_awake(w)) out[0] = Hedge(count, settings.eta, hedge_block(), Hedge::Adopt{}).combine(scores);
        else out[0] = total > 0.0 ? sum / total : 0.0;
    }

    std::size_t playing() const { return hedge.bytes() >= 48 ? (hedge.bytes() / 8 - 4) / 2 : 0; }

    // Whether the learners of the hedge, and no others, are awake.
    bool playing_are_awake(const Working& w) const {
        std::size_t j = 0;
        for (std::size_t s = 0; s < spaces.size(); ++s)
            for (std::size_t i = 0; i < spaces[s].experts.size(); ++i, ++j)
                if (bool(w.awake[j]) != plays(s)) return false;
        return true;
    }

    double* hedge_block() { return static_cast<double*>(hedge.at()); }

    Whose rests_on(const Working& w) const {
        std::vector<double> weights(standings.size());
        effective_weights(w, weights.data());
        const std::size_t space = vanishes(w) || dealt ? spaces.size() - 1 : current(), end = experts_before(space);
        Whose out{0.0, spaces[space].index};
        for (std::size_t j = 0; j < end; ++j) out.recovered += weights[j];
        return out;
    }

    void teach(Working& w, double y, double weight, bool late) {
        prepare(w);
        const bool labelled = y == y;
        double* to = w.scores.data();
        std::size_t j = 0;
        for (std::size_t s = 0; s < spaces.size(); ++s) {
            const bool beside = incoming && !dealt && s + 1 == spaces.size();
            const bool learns = w.seen[s].known && (!beside || settings.train_beside);
            for (Expert& one : spaces[s].experts) {
                double risk = std::numeric_limits<double>::quiet_NaN();
                if (learns && (labelled || one.core->uses_unlabelled())) {
                    risk = one.core->teach(w.seen[s].view(one.code.view), y, weight, late, to);
                    if (!settings.paper) risk = labelled ? risk_of(task(), outputs, to, y) : risk;
                }
                w.risks[j++] = risk;
                to += outputs;
            }
        }
        if (settings.paper) return follow_hedge(w);
        if (labelled) Mixture(task(), outputs, standings, mixture).follow(w.scores.data(), w.risks.data(), w.awake.data(), y, weight, w.losses.data());
    }

    void follow_hedge(Working& w) {
        std::size_t count = 0;
        double* risks = w.losses.data();
        for (std::size_t j = 0; j < standings.size(); ++j)
            if (w.awake[j]) risks[count++] = w.risks[j];
        if (count == 0 || !playing_are_awake(w)) return;
        Hedge(count, count > 1 ? settings.eta : 0.0, hedge_block(), Hedge::Adopt{}).update(risks);
        share_out_hedge();
        mixture.rounds += 1.0;
    }

    std::vector<std::uint32_t> free_;
};

}  // namespace sf2el
