// What changes a state's layout: spaces that open, join, end and return; experts that come, go and change their
// shape. Each leaves a whole state; whoever wants all or nothing works on a copy.
#pragma once

#include "../core/rng.hpp"
#include "kinds.hpp"
#include "maps.hpp"

namespace sf2el {

using Places = std::vector<std::size_t>;  // where each of the old features is among the new ones

constexpr double new_class_margin = -2.0;  // where a class that was never seen starts: unlikely, not impossible

class Transitions {
public:
    explicit Transitions(ModelState& state) : state_(state) {}

    // ---- spaces

    // A space of these features, the newest one. Beside a current one it waits, and a map from it is begun.
    void open(const std::vector<std::uint32_t>& ids, std::size_t room, bool related, bool mapped) {
        Space space;
        space.ids = ids;
        space.room = static_cast<std::uint32_t>(room);
        space.born = static_cast<std::uint32_t>(ids.size());
        for (const Space& other : state_.spaces) space.index = other.index >= space.index ? other.index + 1 : space.index;
        space.precise = state_.settings.precise;
        if (state_.settings.scaled) space.scaler = Block(Space::scaler_bytes(room, space.precise));
        if (related) space.moments = Block(Moments<float>::bytes(room));
        if (state_.gapped) space.spells.assign(ids.size(), 0);
        const bool beside = !state_.spaces.empty();
        state_.spaces.push_back(std::move(space));
        for (const std::uint32_t id : ids) adopt(id);
        if (!beside) {
            if (state_.settings.paper) state_.begin_hedge();
            return;
        }
        state_.incoming = true;
        state_.dealt = false;
        if (mapped) begin_map(state_.spaces.size() - 2);
    }

    // The map that recovers a space from the next one begins.
    void begin_map(std::size_t s) {
        Map map;
        map.from = static_cast<std::uint32_t>(state_.spaces[s + 1].dim());
        map.to = static_cast<std::uint32_t>(state_.spaces[s].dim());
        map.joint = Block(joint_bytes(map.from, map.to));
        state_.spaces[s].map = std::move(map);
    }

    std::size_t joint_bytes(std::size_t from, std::size_t to) const {
        if (!state_.settings.paper) return Moments<float>::bytes(from + to);
        RecoveryParams p;
        p.from = static_cast<std::uint32_t>(from);
        p.to = static_cast<std::uint32_t>(to);
        return 8 * RecoveryMap::reals(p);
    }

    // The space beside the current one is gone again, or its features have joined. Those that stay are candidates
    // even if no other space has them: one is about to open with them.
    void close(const std::vector<std::uint32_t>& stay = {}) {
        if (!state_.incoming) return;
        drop_newest(stay);
        state_.spaces.back().map.reset();
        state_.incoming = state_.dealt = false;
        if (state_.settings.paper) state_.begin_hedge();
        normalise();
        state_.schedule();
    }

    // The current space has ended: the one beside it goes on alone, the old one on what is recovered of it.
    // `shared`: features of it that are about to join the other.
    void advance(const ModelState::Ids& shared = {}) {
        if (!state_.incoming) return;
        if (!state_.dealt) state_.settle_vanished(shared);
        const std::size_t older = state_.current();
        state_.incoming = state_.dealt = false;
        Space& old = state_.spaces[older];
        if (!old.map || !old.map->solved()) {
            old.map.reset();
            if (state_.settings.paper) state_.begin_hedge();
        }
        for (const std::uint32_t id : old.ids) leave(id);
        state_.silent = 0;
        state_.pause = 1;
        state_.schedule();
    }

    // Features of an older space are back: it stands beside the current one again, as the newest.
    void come_back(std::size_t s, bool mapped) {
        const std::size_t first = state_.experts_before(s), count = state_.spaces[s].experts.size();
        std::rotate(state_.standings.begin() + std::ptrdiff_t(first), state_.standings.begin() + std::ptrdiff_t(first + count),
                    state_.standings.end());
        std::rotate(state_.spaces.begin() + std::ptrdiff_t(s), state_.spaces.begin() + std::ptrdiff_t(s) + 1, state_.spaces.end());
        Space& back = state_.spaces.back();
        back.map.reset();
        if (s > 0 && state_.spaces[s - 1].map) state_.spaces[s - 1].map.reset();
        for (const std::uint32_t id : back.ids) adopt_again(id);
        for (std::size_t j = state_.experts_before(state_.spaces.size() - 1); j < state_.standings.size(); ++j)
            state_.standings[j].prior *= ModelState::incoming_prior;
        state_.incoming = true;
        state_.dealt = false;
        if (mapped) begin_map(state_.spaces.size() - 2);
        if (state_.settings.paper) state_.begin_hedge();
        state_.schedule();
    }

    // A space goes, with its experts and its map; their weight is shared by all.
    void forget(std::size_t s) {
        const std::size_t first = state_.experts_before(s), count = state_.spaces[s].experts.size();
        state_.standings.erase(state_.standings.begin() + std::ptrdiff_t(first), state_.standings.begin() + std::ptrdiff_t(first + count));
        for (const std::uint32_t id : state_.spaces[s].ids) release(id);
        if (s > 0) state_.spaces[s - 1].map.reset();
        state_.spaces.erase(state_.spaces.begin() + std::ptrdiff_t(s));
        if (state_.settings.paper) state_.begin_hedge();
        normalise();
        state_.schedule();
    }

    // Features take places in a space, which has room for so many from then on.
    void widen(std::size_t s, const std::vector<std::uint32_t>& ids, std::size_t room) {
        Space& space = state_.spaces[s];
        const std::size_t first = space.dim();
        if (room < first + ids.size()) throw std::invalid_argument("a space has no room for its features");
        if (room > space.room) {
            if (!space.scaler.empty()) widen_scaler(space, room);
            if (!space.moments.empty()) widen_moments(space, room);
            space.room = static_cast<std::uint32_t>(room);
            for (Expert& one : space.experts) rebuild(one, shape_in(space, one.code));
        }
        for (const std::uint32_t id : ids) {
            space.ids.push_back(id);
            adopt(id);
        }
        if (!space.spells.empty()) space.spells.resize(space.dim(), 0);
        space.with_scaler([&](auto scaler) { scaler.clear_from(first); });
        if (!space.moments.empty()) {
            // As if all rows so far had had the newcomers at their mean.
            auto moments = space.all_moments();
            for (std::size_t j = first; j < space.dim(); ++j) {
                moments.mean()[j] = 0.0;
                for (std::size_t i = 0; i <= j; ++i) moments.sums()[packed_row(j) + i] = 0.0f;
            }
        }
        if (s > 0 && state_.spaces[s - 1].map && !state_.spaces[s - 1].map->joint.empty() && state_.incoming && s + 1 == state_.spaces.size() &&
            2 * state_.spaces[s - 1].map->from <= space.dim())
            begin_map(s - 1);
        if (space.map && space.map->to != space.dim()) space.map.reset();
    }

    // A space that has hardly begun takes so many features for those that it began with: distances are measured in
    // them. Its experts begin again.
    void begin_again(std::size_t s, std::size_t born) {
        Space& space = state_.spaces.at(s);
        const double before = double(space.born);
        if (born <= space.born || born > space.dim()) return;
        space.born = static_cast<std::uint32_t>(born);
        if (!space.moments.empty()) {
            auto moments = space.all_moments();
            const double by = before / double(space.born);
            for (std::size_t j = 0; j < space.dim(); ++j) moments.mean()[j] *= std::sqrt(by);
            for (std::size_t i = 0; i < packed_size(space.dim()); ++i) moments.sums()[i] = static_cast<float>(double(moments.sums()[i]) * by);
        }
        for (Expert& one : space.experts) one.core = shape_in(space, one.code).make(ModelState::variant());
    }

    // Widened features that a space shows for the first time have no statistics: what another space knows of them.
    void take_scaling(std::size_t to, std::size_t from) {
        if (to >= state_.spaces.size() || from >= state_.spaces.size()) return;
        Space &target = state_.spaces[to], &source = state_.spaces[from];
        if (target.scaler.empty() || source.scaler.empty() || target.precise != source.precise) return;
        for (std::size_t j = 0; j < target.dim(); ++j)
            for (std::size_t i = 0; i < source.dim(); ++i)
                if (target.ids[j] == source.ids[i])
                    source.with_scaler([&](const auto& theirs) {
                        target.with_scaler([&](auto mine) { mine.take_if_new(j, theirs.mean(i), theirs.deviation(i), theirs.count(i)); });
                    });
    }

    // ---- experts

    // An expert more in a space, with this part of all weight.
    void add(std::size_t s, const ExpertCode& code, double prior, double weight, const std::vector<double>& odds) {
        check(code);
        Expert one(code, shape_in(state_.spaces.at(s), code).make(ModelState::variant()));
        start_from(one, odds);
        insert(s, std::move(one), prior, weight);
    }

    // The like of another expert of the same space, which goes its own way from here with this part of its weight.
    void fork(std::size_t s, std::size_t from, const ExpertCode& code, double prior, double weight) {
        check(code);
        Expert one = state_.spaces.at(s).experts.at(from);
        rebuild(one, shape_in(state_.spaces[s], code));
        one.code = code;
        Standing& before = state_.standings[state_.experts_before(s) + from];
        const Standing source = before;
        before.weight *= 1.0 - weight;  // what the two say together is what the one said
        insert(s, std::move(one), prior, 0.0);
        Standing& fresh = state_.standings[state_.experts_before(s) + state_.spaces[s].experts.size() - 1];
        fresh.weight = weight * source.weight;
        fresh.logarithm = source.logarithm;
        fresh.curvature = source.curvature;
    }

    // An expert leaves: its weight goes to those of its kind in the space, or is shared by all.
    void remove(std::size_t s, std::size_t i) {
        Space& space = state_.spaces[s];
        const std::size_t first = state_.experts_before(s);
        const std::uint8_t kind = space.experts.at(i).code.kind;
        const double weight = state_.standings[first + i].weight;
        space.experts.erase(space.experts.begin() + std::ptrdiff_t(i));
        state_.standings.erase(state_.standings.begin() + std::ptrdiff_t(first + i));
        if (state_.settings.paper) return hedge_again();
        for (std::size_t k = 0; k < space.experts.size(); ++k)
            if (space.experts[k].code.kind == kind) {
                state_.standings[first + k].weight += weight;
                return;
            }
        normalise();
    }

    // An expert takes another shape; returns by how much its function moved.
    double reshape(std::size_t s, std::size_t i, const ExpertCode& code) {
        check(code);
        Expert& one = state_.spaces.at(s).experts.at(i);
        const double moved = rebuild(one, shape_in(state_.spaces[s], code));
        one.code = code;
        return moved;
    }

    void grow(std::size_t outputs) {
        const std::size_t before = state_.outputs;
        state_.outputs = outputs;
        for (std::size_t s = 0; s < state_.spaces.size(); ++s)
            for (std::size_t i = 0; i < state_.spaces[s].experts.size(); ++i) grow_expert(state_.spaces[s].experts[i], shape_in(state_.spaces[s], state_.spaces[s].experts[i].code));
        for (Standing& one : state_.standings) one.loss = 0.0;  // losses are of another kind now
        state_.mixture.rounds = 0.0;
        if (before == 1)  // rows that wait have +1 or -1 for the places 0 and 1
            for (Waiting& row : state_.waiting) row.y = (1.0 - row.y) / 2.0;
    }

    void normalise() {
        double total = 0.0;
        for (const Standing& one : state_.standings) total += one.weight;
        for (Standing& one : state_.standings) one.weight = total > 0.0 ? one.weight / total : 1.0 / double(state_.standings.size());
    }

    // ---- maps

    void settle(std::size_t s) {
        if (state_.spaces[s].map) state_.spaces[s].map->joint.clear();
        state_.schedule();
    }

    void drop_map(std::size_t s) {
        state_.spaces[s].map.reset();
        if (state_.settings.paper) state_.begin_hedge();
        state_.schedule();
    }

    // The map itself in numbers of another form, from now on.
    void keep_map_as(std::size_t s, Map::Form form) {
        auto& map = state_.spaces[s].map;
        if (!map || state_.settings.paper) return;
        map->wanted = form;
        if (!map->solved() || map->form == form) return;
        const std::size_t q = map->from, p = map->to;
        std::vector<double> linear(p * q), offset(p), center(q);
        map->with_solution(0.0, [&](auto affine) {
            for (std::size_t i = 0; i < p; ++i) {
                for (std::size_t j = 0; j < q; ++j) linear[i * q + j] = affine.at(i, j);
                offset[i] = affine.offset()[i];
            }
            for (std::size_t j = 0; j < q; ++j) center[j] = affine.center()[j];
        });
        map->form = form;
        map->solution = Block(Map::solution_bytes(q, p, form));
        map->with_solution(0.0, [&](auto affine) {
            using Real = std::remove_reference_t<decltype(*affine.linear())>;
            for (std::size_t i = 0; i < p * q; ++i) affine.linear()[i] = Real(linear[i]);
            for (std::size_t i = 0; i < p; ++i) affine.offset()[i] = offset[i];
            for (std::size_t j = 0; j < q; ++j) affine.center()[j] = center[j];
        });
    }

    // There was a row with gaps: from now on absences are counted.
    void begin_gaps() {
        state_.gapped = true;
        for (Space& space : state_.spaces)
            if (space.spells.empty()) space.spells.assign(space.dim(), 0);
    }

    // How a space's features vary together is kept from now on.
    void keep_moments(std::size_t s) {
        Space& space = state_.spaces[s];
        if (space.moments.empty()) space.moments = Block(Moments<float>::bytes(space.room));
    }

    void drop_moments(std::size_t s) { state_.spaces[s].moments.clear(); }

    // ---- rows that wait

    // A row is kept until its features belong to a space, if it has any that belong to none.
    void wait(const Row& row, double y, double weight, std::size_t room) {
        if (state_.candidates.empty()) {
            state_.waiting.clear();
            return;
        }
        Waiting one;
        bool new_features = false;
        for (const std::uint32_t id : row.present) {
            one.ids.push_back(id);
            new_features = new_features || (id < state_.features.size() && !state_.features[id].living);
        }
        if (!new_features) one.ids.clear();
        std::sort(one.ids.begin(), one.ids.end());
        for (const std::uint32_t id : one.ids) one.values.push_back(row.x[id]);
        one.y = y;
        one.weight = weight;
        state_.waiting.push_back(std::move(one));
        while (state_.waiting.size() > ModelState::most_waiting) state_.waiting.erase(state_.waiting.begin());
        while (!state_.waiting.empty() && state_.waiting_bytes() + state_.candidate_bytes() > room)
            state_.waiting.erase(state_.waiting.begin());
    }

    // Candidates and rows that wait have less room.
    void shrink_waiting() {
        while (!state_.waiting.empty() && state_.waiting_bytes() + state_.candidate_bytes() > state_.candidate_room)
            state_.waiting.erase(state_.waiting.begin());
        auto& list = state_.candidates;
        for (std::size_t i = list.size(); i-- > 0 && state_.candidate_bytes() > state_.candidate_room;) {
            const std::uint32_t id = list[i];
            if (state_.features[id].spaces) continue;
            list.erase(list.begin() + std::ptrdiff_t(i));
            state_.release(id);
        }
    }

    // Features take the lowest places, so that none is kept for nobody. Returns where each is now.
    std::vector<std::uint32_t> compact() {
        std::vector<std::uint32_t> now(state_.names.size());
        std::uint32_t used = 0;
        for (std::uint32_t id = 0; id < now.size(); ++id) {
            if (state_.names[id].empty()) continue;
            now[id] = used;
            if (used != id) {
                state_.features[used] = state_.features[id];
                state_.names[used] = std::move(state_.names[id]);
            }
            ++used;
        }
        state_.features.resize(used);
        state_.names.resize(used);
        state_.find_free();
        for (Space& space : state_.spaces)
            for (std::uint32_t& id : space.ids) id = now[id];
        for (std::uint32_t& id : state_.candidates) id = now[id];
        for (Waiting& row : state_.waiting)
            for (std::uint32_t& id : row.ids) id = now[id];  // in their order, which stays
        return now;
    }

    // Features that were forgotten are in no row that waits.
    void forget_in_waiting(const std::vector<std::uint32_t>& ids) {
        for (Waiting& row : state_.waiting)
            for (const std::uint32_t id : ids)
                for (std::size_t k = 0; k < row.ids.size(); ++k)
                    if (row.ids[k] == id) {
                        row.ids.erase(row.ids.begin() + std::ptrdiff_t(k));
                        row.values.erase(row.values.begin() + std::ptrdiff_t(k));
                        break;
                    }
    }

private:
    void adopt(std::uint32_t id) {
        Feature& f = state_.features.at(id);
        ++f.spaces;
        ++f.living;
        not_candidate(id, f);
    }

    void adopt_again(std::uint32_t id) {
        Feature& f = state_.features.at(id);
        ++f.living;
        not_candidate(id, f);
    }

    void not_candidate(std::uint32_t id, Feature& f) {
        const bool rare = f.readings >= ModelState::rare_readings && f.living == 1 && f.lately;
        int lately = 0;
        for (int b = 0; b < 8; ++b) lately += (f.lately >> b) & 1;
        if (f.living == 1) {
            if (rare && lately < 3) f.pace = static_cast<std::uint16_t>(state_.forgotten_after / 2);
            f.absent = 0;
        }
        f.readings = 0;
        f.lately = 0;
        auto& list = state_.candidates;
        list.erase(std::remove(list.begin(), list.end(), id), list.end());
    }

    // A feature's space has ended; if it comes back it is looked at closely.
    void leave(std::uint32_t id) {
        Feature& f = state_.features.at(id);
        if (--f.living == 0) {
            f.lately = f.readings = 0;
            state_.candidates.push_back(id);
        }
    }

    // A space that had a feature is dropped.
    void release(std::uint32_t id) {
        Feature& f = state_.features.at(id);
        if (--f.spaces == 0) {
            auto& list = state_.candidates;
            list.erase(std::remove(list.begin(), list.end(), id), list.end());
            state_.release(id);
        }
    }

    void drop_newest(const std::vector<std::uint32_t>& stay) {
        Space& space = state_.spaces.back();
        state_.standings.resize(state_.standings.size() - space.experts.size());
        for (const std::uint32_t id : space.ids) {
            leave(id);
            if (std::find(stay.begin(), stay.end(), id) == stay.end()) release(id);
            else --state_.features[id].spaces;
        }
        state_.spaces.pop_back();
    }

    // The hedge goes on where the same learners play, and begins again where others do.
    void hedge_again() {
        if (state_.hedge.bytes() == 8 * Hedge::reals(state_.players())) state_.share_out_hedge();
        else state_.begin_hedge();
    }

    void insert(std::size_t s, Expert&& one, double prior, double weight) {
        const std::size_t at = state_.experts_before(s) + state_.spaces[s].experts.size();
        for (Standing& other : state_.standings) other.weight *= 1.0 - weight;
        Standing fresh;
        fresh.prior = prior;
        fresh.weight = state_.standings.empty() ? 1.0 : weight;
        state_.standings.insert(state_.standings.begin() + std::ptrdiff_t(at), fresh);
        state_.spaces[s].experts.push_back(std::move(one));
        if (state_.settings.paper) hedge_again();
    }

    static void check(const ExpertCode& code) {
        if (!is_known(code)) throw std::invalid_argument("there is no such expert");
    }

    ExpertShape shape_in(const Space& space, const ExpertCode& code) const {
        return shape_of(state_.settings, code, space.room, space.born, state_.outputs, space.index);
    }

    static void widen_scaler(Space& space, std::size_t room) {
        Block block(Space::scaler_bytes(room, space.precise));
        const std::size_t n = space.dim();
        const auto move = [&](auto real) {
            using Real = decltype(real);
            const auto* means = static_cast<const double*>(space.scaler.at());
            const auto* spreads = reinterpret_cast<const Real*>(means + space.room);
            auto* to = static_cast<double*>(block.at());
            auto* wide = reinterpret_cast<Real*>(to + room);
            std::copy(means, means + n, to);
            std::copy(spreads, spreads + n, wide);
            std::copy(spreads + space.room, spreads + space.room + n, wide + room);
        };
        if (space.precise) move(double());
        else move(float());
        space.scaler = std::move(block);
    }

    static void widen_moments(Space& space, std::size_t room) {
        Block block(Moments<float>::bytes(room));
        auto from = space.all_moments();
        Moments<float> to(room, block.at(), Moments<float>::Adopt{}, room);
        to.count() = from.count();
        std::copy(from.mean(), from.mean() + space.dim(), to.mean());
        std::copy(from.sums(), from.sums() + packed_size(space.dim()), to.sums());
        space.moments = std::move(block);
    }

    // ---- what an expert has learned, in another shape

    // Where old features are among the new ones: flags come behind all values.
    static Places places_of(std::size_t from, std::size_t to, bool flagged) {
        Places places(from);
        for (std::size_t j = 0; j < from; ++j)
            places[j] = flagged && 2 * j >= from ? j - from / 2 + to / 2 : j;
        return places;
    }

    static double rebuild(Expert& one, const ExpertShape& shape) {
        AnyExpert& before = *one.core;
        if (shape.dim() < before.dim()) throw std::invalid_argument("an expert cannot see less than it has seen");
        std::unique_ptr<AnyExpert> after = shape.make(ModelState::variant());
        const bool flagged = one.code.view == View::flagged;
        double moved = 0.0;
        if (auto* old = dynamic_cast<AnyPosterior*>(&before)) {
            if (auto* fresh = dynamic_cast<AnyPosterior*>(after.get())) moved = move_posterior(*old, *fresh, flagged);
            else move_to_logistic(*old, dynamic_cast<AnyLogistic&>(*after));
        } else if (auto* light = dynamic_cast<AnyLogistic*>(&before)) {
            if (auto* fresh = dynamic_cast<AnyLogistic*>(after.get())) move_logistic(*light, *fresh, flagged);
            else move_to_linear(*light, dynamic_cast<AnyPosterior&>(*after));
        } else {
            moved = move_learner(dynamic_cast<AnyLearner&>(before), dynamic_cast<AnyLearner&>(*after));
        }
        one.core = std::move(after);
        return moved;
    }

    static double move_posterior(AnyPosterior& old, AnyPosterior& fresh, bool flagged) {
        const PosteriorParams &from = old.params(), &to = fresh.params();
        double moved = 0.0;
        std::unique_ptr<AnyPosterior> copy;
        AnyPosterior* source = &old;
        if (old.counters().n > to.size) {
            copy = old.copy();
            moved = std::sqrt(copy->shrink(to.size));
            source = copy.get();
        }
        PosteriorState state = source->state();
        if (from.dim != to.dim) {
            const Places places = places_of(from.dim, to.dim, flagged);
            respace(state, from, to, places);
        }
        fresh.set_state(state);
        return moved;
    }

    static void respace(PosteriorState& state, const PosteriorParams& from, const PosteriorParams& to, const Places& places) {
        const std::size_t n = state.counters.n;
        std::vector<double> rows(n * to.dim, 0.0);
        for (std::size_t s = 0; s < n; ++s)
            for (std::size_t j = 0; j < from.dim; ++j) rows[s * to.dim + places[j]] = state.rows[s * from.dim + j];
        state.rows = std::move(rows);
        state.innovations.clear();
        state.factor.clear();
        if (!from.slopes) return;
        const std::size_t all = from.linear() + n, more = to.linear() + n;
        Places at(all);
        for (std::size_t j = 0; j < from.dim; ++j) at[j] = places[j];
        for (std::size_t j = from.dim; j < all; ++j) at[j] = j - from.dim + to.dim;
        std::vector<double> coefficients(to.outputs * more, 0.0), covariance(more * more, 0.0);
        for (std::size_t k = 0; k < to.outputs; ++k)
            for (std::size_t j = 0; j < all; ++j) coefficients[k * more + at[j]] = state.coefficients[k * all + j];
        for (std::size_t i = 0; i < all; ++i)
            for (std::size_t j = 0; j < all; ++j) covariance[at[i] * more + at[j]] = state.covariance[i * all + j];
        state.coefficients = std::move(coefficients);
        state.covariance = std::move(covariance);
    }

    static void move_to_logistic(AnyPosterior& old, AnyLogistic& fresh) {
        const PosteriorState state = old.state();
        const PosteriorParams& from = old.params();
        const LogisticParams& to = fresh.params();
        const std::size_t all = from.linear() + state.counters.n;
        auto& numbers = fresh.numbers();
        for (std::size_t k = 0; k < to.outputs; ++k) {
            for (std::size_t j = 0; from.slopes && j < from.dim && j < to.dim; ++j)
                numbers[k * (to.dim + 1) + j] = state.coefficients[k * all + j] / to.scale;
            numbers[k * (to.dim + 1) + to.dim] = state.coefficients[k * all + from.linear() - 1] * std::sqrt(from.bias);
        }
        numbers.back() = double(state.counters.labels);
    }

    // Its weights are a mean; how sure they are is not known, and so they count as the prior's.
    static void move_to_linear(AnyLogistic& old, AnyPosterior& fresh) {
        const LogisticParams& from = old.params();
        const PosteriorParams& to = fresh.params();
        PosteriorState state = fresh.state();
        const std::size_t all = to.linear() + state.counters.n;
        for (std::size_t k = 0; k < to.outputs; ++k) {
            for (std::size_t j = 0; to.slopes && j < from.dim && j < to.dim; ++j)
                state.coefficients[k * all + j] = old.numbers()[k * (from.dim + 1) + j] * from.scale;
            state.coefficients[k * all + to.linear() - 1] = old.numbers()[k * (from.dim + 1) + from.dim] / std::sqrt(to.bias);
        }
        fresh.set_state(state);
    }

    static void move_logistic(AnyLogistic& old, AnyLogistic& fresh, bool flagged) {
        const std::size_t from = old.params().dim, to = fresh.params().dim;
        const Places places = places_of(from, to, flagged);
        for (std::size_t k = 0; k < old.params().outputs; ++k) {
            for (std::size_t j = 0; j < from; ++j) fresh.numbers()[k * (to + 1) + places[j]] = old.numbers()[k * (from + 1) + j];
            fresh.numbers()[k * (to + 1) + to] = old.numbers()[k * (from + 1) + from];
        }
        fresh.numbers().back() = old.numbers().back();
    }

    static double move_learner(AnyLearner& old, AnyLearner& fresh) {
        LearnerState state = old.state();
        const LearnerParams &from = old.params(), &to = fresh.params();
        double moved = 0.0;
        if (state.counters.n > to.capacity) moved = shrink_learner(state, from, to);
        if (from.dim != to.dim) {
            std::vector<double> rows(state.counters.n * std::size_t(to.dim), 0.0);
            for (std::size_t s = 0; s < state.counters.n; ++s)
                for (std::size_t j = 0; j < from.dim; ++j) rows[s * to.dim + j] = state.rows[s * from.dim + j];
            state.rows = std::move(rows);
        }
        state.counters.inverse_ready = 0;
        fresh.set_state(state);
        return moved;
    }

    // A uniform subsample of the rows, of each stratum where there are two, and the projection of f onto it.
    static double shrink_learner(LearnerState& state, const LearnerParams& from, const LearnerParams& to) {
        const std::size_t n = state.counters.n, size = to.capacity;
        std::size_t counts[2] = {0, 0}, keep[2] = {size, 0};
        for (std::size_t s = 0; s < n; ++s) ++counts[state.kinds[s]];
        if (from.stratified) {
            const std::size_t half = size / 2, rest = size > counts[0] ? size - counts[0] : 0, most = half > rest ? half : rest;
            keep[1] = counts[1] < most ? counts[1] : most;
            keep[0] = size - keep[1];
        }
        std::vector<std::size_t> kept, removed;
        std::vector<char> stays(n, 0);
        for (std::size_t kind = 0; kind < 2; ++kind) {
            std::vector<std::size_t> places;
            for (std::size_t s = 0; s < n; ++s)
                if (state.kinds[s] == kind) places.push_back(s);
            const std::size_t wanted = keep[kind] < places.size() ? keep[kind] : places.size();
            for (std::size_t i = 0; i < wanted; ++i)
                std::swap(places[i], places[i + random_below(state.counters.rng, places.size() - i)]);
            for (std::size_t i = 0; i < wanted; ++i) stays[places[i]] = 1;
            if (!places.empty()) state.counters.decay[kind] *= wanted ? double(wanted) / double(places.size()) : 1.0;
        }
        for (std::size_t s = 0; s < n; ++s) (stays[s] ? kept : removed).push_back(s);
        const std::vector<double> gram = gram_of(state, from);
        const std::size_t m = kept.size(), r = removed.size();
        std::vector<double> target(m, 0.0), scratch(Dense::reals(m, m) + Dense::reals(m, 1));
        double trace = 0.0, square = 0.0;
        for (std::size_t i = 0; i < m; ++i) {
            trace += gram[kept[i] * n + kept[i]];
            for (std::size_t k = 0; k < r; ++k) target[i] += gram[kept[i] * n + removed[k]] * state.beta[removed[k]];
        }
        const double jitter = from.jitter * trace / double(m) + 1e-100;
        double* room = scratch.data();
        const Dense root(m, m, room), share(m, 1, room);
        for (std::size_t i = 0; i < m; ++i) {
            share[i][0] = target[i];
            for (std::size_t j = i; j < m; ++j) root[i][j] = gram[kept[i] * n + kept[j]];
        }
        factor(root, [jitter](std::size_t) { return jitter; });
        solve_lower(root, share);
        solve_upper(root, share);
        for (std::size_t k = 0; k < r; ++k)
            for (std::size_t l = 0; l < r; ++l) square += state.beta[removed[k]] * gram[removed[k] * n + removed[l]] * state.beta[removed[l]];
        for (std::size_t i = 0; i < m; ++i) {
            square -= 2.0 * share[i][0] * target[i];
            for (std::size_t j = 0; j < m; ++j) square += share[i][0] * gram[kept[i] * n + kept[j]] * share[j][0];
        }
        LearnerState out = state;
        out.rows.clear();
        out.beta.clear();
        out.weights.clear();
        out.kinds.clear();
        out.counters.kept[0] = out.counters.kept[1] = 0;
        for (std::size_t i = 0; i < m; ++i) {
            const std::size_t s = kept[i];
            out.rows.insert(out.rows.end(), state.rows.begin() + std::ptrdiff_t(s * from.dim), state.rows.begin() + std::ptrdiff_t((s + 1) * from.dim));
            out.beta.push_back(state.beta[s] + share[i][0]);
            out.weights.push_back(state.weights[s]);
            out.kinds.push_back(state.kinds[s]);
            ++out.counters.kept[state.kinds[s]];
        }
        out.counters.n = static_cast<std::uint32_t>(m);
        state = std::move(out);
        return std::sqrt(square > 0.0 ? square : 0.0);
    }

    // The kernels among a learner's rows, in double precision.
    static std::vector<double> gram_of(const LearnerState& state, const LearnerParams& params) {
        LearnerParams p = params;
        p.keep_gram = true;
        p.projection = Projection::pursuit;
        p.capacity = state.counters.n;
        auto learner = ModelState::variant().learner(p, false);
        LearnerState whole = state;
        whole.counters.inverse_ready = 0;
        learner->set_state(whole);
        return learner->state().gram;
    }

    void start_from(Expert& one, const std::vector<double>& odds) const {
        if (odds.size() != state_.outputs) return;
        if (auto* posterior = dynamic_cast<AnyPosterior*>(one.core.get())) {
            PosteriorState state = posterior->state();
            const PosteriorParams& p = posterior->params();
            const std::size_t all = p.linear() + state.counters.n;
            for (std::size_t k = 0; k < odds.size(); ++k) state.coefficients[k * all + p.linear() - 1] = odds[k] / std::sqrt(p.bias);
            posterior->set_state(state);
        } else if (auto* light = dynamic_cast<AnyLogistic*>(one.core.get())) {
            const std::size_t dim = light->params().dim;
            for (std::size_t k = 0; k < odds.size(); ++k) light->numbers()[k * (dim + 1) + dim] = odds[k];
        }
    }

    // More classes: the two there were become one against the rest.
    void grow_expert(Expert& one, const ExpertShape& shape) const {
        std::unique_ptr<AnyExpert> after = shape.make(ModelState::variant());
        if (auto* old = dynamic_cast<AnyPosterior*>(one.core.get())) {
            auto& fresh = dynamic_cast<AnyPosterior&>(*after);
            PosteriorState state = old->state();
            const std::size_t all = old->params().linear() + state.counters.n, before = old->params().outputs;
            if (before == 1)
                for (std::size_t j = 0; j < all; ++j) state.coefficients.push_back(-state.coefficients[j]);
            for (std::size_t k = state.coefficients.size() / all; k < state_.outputs; ++k) {
                state.coefficients.insert(state.coefficients.end(), all, 0.0);
                state.coefficients[k * all + old->params().linear() - 1] = new_class_margin / std::sqrt(old->params().bias);
            }
            fresh.set_state(state);
        } else if (auto* light = dynamic_cast<AnyLogistic*>(one.core.get())) {
            auto& fresh = dynamic_cast<AnyLogistic&>(*after);
            const std::size_t width = light->params().dim + 1, before = light->params().outputs;
            for (std::size_t j = 0; j < width * before; ++j) fresh.numbers()[j] = light->numbers()[j];
            if (before == 1)
                for (std::size_t j = 0; j < width; ++j) fresh.numbers()[width + j] = -light->numbers()[j];
            for (std::size_t k = before == 1 ? 2 : before; k < state_.outputs; ++k) fresh.numbers()[k * width + width - 1] = new_class_margin;
            fresh.numbers().back() = light->numbers().back();
        } else {
            throw std::invalid_argument("a kernel learner is binary");
        }
        one.core = std::move(after);
    }

    ModelState& state_;
};

}  // namespace sf2el
