// Maps between the spaces of a state: what they take in, and how they are solved from what the state knows.
#pragma once

#include "model.hpp"

namespace sf2el {

constexpr double largest_read = 1e15;  // beyond, single precision could not hold the sum of many squares
constexpr double wrong_reading = 5.0;  // usual deviations that a feature's deviation in the overlap is at most
constexpr double unshown = 0.05;       // share of the new features' correlation that is taken as none

inline RecoveryParams recovery_params(const ModelSettings& settings, const Map& map) {
    RecoveryParams p;
    p.from = map.from;
    p.to = map.to;
    p.ridge = settings.map_ridge;
    p.intercept = settings.map_intercept;
    return p;
}

inline void ModelState::observe_both(Space& old, Space& source, const Seen& seen, const Seen& fresh, Working& w) {
    Map& map = *old.map;
    const double* shown = seen.filled.empty() ? seen.values.data() : seen.filled.data();
    if (settings.paper) {
        RecoveryMap(recovery_params(settings, map), static_cast<double*>(map.joint.at()), RecoveryMap::Adopt{})
            .observe(fresh.values.data(), shown);
    } else {
        const std::size_t both = map.from + map.to;
        double* row = grown(w.both, 2 * both + source.room);
        double* filled = row + 2 * both;
        std::copy(fresh.raw.begin(), fresh.raw.begin() + std::ptrdiff_t(source.dim()), filled);
        if (fresh.gaps) source.with_scaler([&](auto scaler) { scaler.unscale_gaps(filled, fresh.values.data()); });
        for (std::size_t i = 0; i < map.from; ++i) row[i] = filled[i] == filled[i] ? filled[i] : fresh.values[i];
        std::copy(shown, shown + map.to, row + map.from);
        for (std::size_t i = 0; i < both; ++i) row[i] = row[i] < largest_read ? (row[i] > -largest_read ? row[i] : -largest_read) : largest_read;
        Moments<float>(both, map.joint.at(), Moments<float>::Adopt{}, both).observe(row, row + both);
    }
    ++map.rows;
    if (settings.paper || map.rows <= 16 || next_after(map.rows - 1) == map.rows) solve_map(old, source);
}

inline void ModelState::solve_map(Space& old, Space& fresh) {
    if (!old.map || old.map->joint.empty() || old.map->rows == 0) return;
    Map& map = *old.map;
    if (settings.paper) {
        const RecoveryParams p = recovery_params(settings, map);
        map.solution = map.joint;
        std::vector<double> scratch(RecoveryMap::scratch_reals(p));
        RecoveryMap(p, static_cast<double*>(map.solution.at()), RecoveryMap::Adopt{}).solve(scratch.data());
        map.form = Map::Form::full;
        return;
    }
    const std::size_t q = map.from, p = map.to, both = p + q;
    std::vector<double> room(both * both + p * p + q * q + 2 * q + 2 * p + p * (q + 1) + q);
    double *covariance = room.data(), *old_covariance = covariance + both * both, *together = old_covariance + p * p;
    double *mean = together + q * q, *deviation = mean + q, *read_mean = deviation + q, *read_deviation = read_mean + p;
    double *matrix = read_deviation + p, *center = matrix + p * (q + 1);
    Moments<float> joint(both, map.joint.at(), Moments<float>::Adopt{}, both);
    for (std::size_t i = 0; i < both; ++i)
        for (std::size_t j = 0; j < both; ++j) covariance[i * both + j] = joint.covariance(i, j);
    MapKnown known;
    known.from = q;
    known.to = p;
    known.rows = double(map.rows);
    known.mean = joint.mean();
    known.covariance = covariance;
    known.divisor = old.divisor();

    // What the new space has shown of the features that the map takes, in rows beyond those that had both.
    if (!fresh.moments.empty() && !fresh.scaler.empty()) {
        double least = HUGE_VAL;
        fresh.with_scaler([&](const auto& scaler) {
            for (std::size_t j = 0; j < q; ++j) {
                mean[j] = scaler.mean(j);
                deviation[j] = scaler.deviation(j);
                least = scaler.count(j) < least ? scaler.count(j) : least;
            }
        });
        const double later = least - double(map.rows);
        auto moments = fresh.all_moments();
        for (std::size_t i = 0; i < q; ++i)
            for (std::size_t j = 0; j < q; ++j) together[i * q + j] = moments.covariance(i, j);
        if (later > 0.0) {
            for (std::size_t j = 0; j < q; ++j) {
                // A wrong reading counts little in what a space has shown, but in full in the rows that had both.
                const double variance = joint.covariance(j, j), own = std::sqrt(variance > 0.0 ? variance : 0.0);
                if (!(own > wrong_reading * deviation[j])) continue;
                mean[j] = joint.mean()[j];
                deviation[j] = own;
            }
            known.new_mean = mean;
            known.new_deviation = deviation;
            known.new_covariance = together;
            known.later = later;
        }
    }

    // How the old features vary together: all their life; where that is not kept, in the overlap if that was long,
    // else as the map has recovered them so far.
    if (!old.moments.empty()) {
        auto moments = old.all_moments();
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j < p; ++j) old_covariance[i * p + j] = moments.covariance(i, j);
        known.old_covariance = old_covariance;
    } else if (map.rows >= 12) {
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j < p; ++j) old_covariance[i * p + j] = joint.covariance(q + i, q + j);
        known.old_covariance = old_covariance;
    } else if (map.solved() && known.later > 0.0) {
        std::vector<double> recovered(p * q), half(p * q), shown(q * q);
        for (std::size_t i = 0; i < q; ++i)
            for (std::size_t j = 0; j < q; ++j) {
                const double size = std::sqrt(together[i * q + i] * together[j * q + j]);
                shown[i * q + j] = (i == j ? unshown : 0.0) + (size > 1e-18 ? (1.0 - unshown) * together[i * q + j] / size : 0.0);
            }
        map.with_solution(0.0, [&](const auto& affine) {
            for (std::size_t i = 0; i < p; ++i)
                for (std::size_t j = 0; j < q; ++j) recovered[i * q + j] = affine.at(i, j) * deviation[j] * old.divisor();
        });
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j < q; ++j) half[i * q + j] = dot(&recovered[i * q], &shown[j * q], q);
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j < p; ++j) old_covariance[i * p + j] = dot(&half[i * q], &recovered[j * q], q);
        std::vector<double> size(p);
        for (std::size_t i = 0; i < p; ++i) {
            const double root = std::sqrt(old_covariance[i * p + i]);
            size[i] = root > 1.0 ? root : 1.0;
        }
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j < p; ++j) old_covariance[i * p + j] /= size[i] * size[j];
        for (std::size_t i = 0; i < p; ++i) old_covariance[i * p + i] = 1.0;  // the rest of it goes its own way
        known.old_covariance = old_covariance;
    }
    old.with_scaler([&](const auto& scaler) {
        for (std::size_t i = 0; i < p; ++i) {
            read_mean[i] = scaler.mean(i);
            read_deviation[i] = scaler.deviation(i);
        }
        known.read_mean = read_mean;
        known.read_deviation = read_deviation;
    });

    map.unexplained = variant().map(known, matrix, center);
    if (!map.solved()) {
        map.form = map.wanted;
        map.solution = Block(Map::solution_bytes(q, p, map.form));
    }
    // Within what single precision holds, and what a feature may be.
    const auto within = [](double value, double largest) {
        value = value < largest ? value : largest;
        return value > -largest ? value : -largest;
    };
    map.with_solution(0.0, [&](auto affine) {
        using Real = std::remove_reference_t<decltype(*affine.linear())>;
        for (std::size_t j = 0; j < q; ++j) affine.center()[j] = within(center[j], 1e100);
        for (std::size_t i = 0; i < p; ++i) {
            for (std::size_t j = 0; j < q; ++j) affine.linear()[i * q + j] = Real(within(matrix[i * (q + 1) + j], 1e38));
            affine.offset()[i] = within(matrix[i * (q + 1) + q], 1e100);
        }
    });
}

inline void ModelState::deal(std::size_t older, double* weights, const Ids& shared) const {
    const std::size_t first = experts_before(older), split = first + spaces[older].experts.size(), end = standings.size();
    const Space& fresh = spaces[older + 1];
    double past = 0.0, past_prior = 0.0, fresh_prior = 0.0, kinds = 0.0;
    for (std::size_t j = 0; j < split; ++j) {
        past += standings[j].weight;
        past_prior += standings[j].prior;
    }
    for (std::size_t j = split; j < end; ++j) fresh_prior += standings[j].prior;
    // What each kind of expert was worth before goes on; those of one kind share it by their priors.
    std::vector<double> kind(end - split);
    for (std::size_t i = 0; i < kind.size(); ++i) {
        double worth_of_kind = 0.0, alike = 0.0;
        for (std::size_t j = first; j < split; ++j)
            if (spaces[older].experts[j - first].code.kind == fresh.experts[i].code.kind) worth_of_kind += standings[j].weight;
        for (std::size_t k = 0; k < kind.size(); ++k)
            if (fresh.experts[k].code.kind == fresh.experts[i].code.kind) alike += standings[split + k].prior;
        const double part = alike > 0.0 ? standings[split + i].prior / alike : 0.0;
        kind[i] = (past > 0.0 ? worth_of_kind / past : 0.0) * part + 1e-12;
        kinds += kind[i];
    }
    const Map* map = spaces[older].map ? &*spaces[older].map : nullptr;
    // Who stays alone has all the weight.
    const double trust = split == end ? 1.0 : map && map->solved() ? recovered_share(map->rows, doubt_of(older, shared)) : 0.0;
    for (std::size_t j = 0; j < split; ++j) {
        const double base = past_prior > 0.0 ? standings[j].prior / past_prior : 1.0 / double(split);
        const double own = past > 0.0 ? standings[j].weight / past : base;
        weights[j] = trust * (worth * own + (1.0 - worth) * base);
    }
    for (std::size_t j = split; j < end; ++j) {
        const double base = fresh_prior > 0.0 ? standings[j].prior / fresh_prior : 1.0 / double(end - split);
        weights[j] = (1.0 - trust) * (worth * (kind[j - split] / kinds) + (1.0 - worth) * base);
    }
}

}  // namespace sf2el
