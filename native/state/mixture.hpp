// How experts are weighed: a Bayesian mixture over experts of which some may be asleep in a row, because nothing of what
// they see is there. After each label a share of the weight of those awake is dealt again by their prior (Herbster
// and Warmuth's fixed share), so that none is ever lost. Experts of classes also have a factor on their
// margins that follows their log loss: one that is right more often than it says would else lose to a bolder one.
#pragma once

#include <vector>

#include "../core/tasks.hpp"

namespace sf2el {
inline namespace SF2EL_VARIANT {

struct Standing {
    double weight = 0.0;
    double loss = 0.0;       // summed over its labels
    double logarithm = 0.0;  // of the factor on its margins
    double curvature = 0.0;  // of its log loss in that
    double prior = 0.0;      // its part of what is dealt again
};

// What a mixture keeps besides the experts' standings.
struct MixtureCounters {
    double rounds = 0.0;
    double least = 1.0, least_rounds = 1.0;  // of a number: the best expert's risks, summed, and their count
};

class Mixture {
public:
    static constexpr double share = 0.003, largest_loss = 8.0;
    static constexpr double confidence_prior = 5.0, most_confidence = 1.5;

    Mixture(Task task, size_t outputs, std::vector<Standing>& who, MixtureCounters& counters)
        : task_(task), outputs_(outputs), who_(who), counters_(counters) {}

    static double factor_of(const Standing& one) {
        return one.logarithm > 0.0 ? 1.0 / exp_neg(-one.logarithm) : exp_neg(one.logarithm);
    }

    // The log odds of the first of two labels, the probability of each of several, or a number. `weights`: in place
    // of those that the experts have.
    void mix(const double* scores, const char* awake, const double* weights, double* out) const {
        double total = 0.0;
        for (size_t j = 0; j < who_.size(); ++j) total += awake[j] ? weight(weights, j) : 0.0;
        const double by = total > 0.0 ? 1.0 / total : 0.0;
        if (task_ == Task::classes) return mix_classes(scores, awake, weights, by, out);
        double sum = 0.0;
        for (size_t j = 0; j < who_.size(); ++j) {
            if (!awake[j]) continue;
            const double w = weight(weights, j) * by;
            sum += w * (task_ == Task::binary ? sigmoid(factor_of(who_[j]) * scores[j]) : scores[j]);
        }
        // Where no expert has any weight, the odds are even, not a certain no.
        out[0] = task_ == Task::binary ? (total > 0.0 ? log_odds(sum) : 0.0) : sum;
    }

    // A labelled row. `losses`: room for one an expert.
    void follow(const double* scores, const double* risks, const char* awake, double y, double by, double* losses) {
        if (y != y) return;
        const size_t n = who_.size();
        bool any = false;
        for (size_t j = 0; j < n; ++j) {
            if (!awake[j]) continue;
            for (size_t k = 0; k < outputs_; ++k)
                if (scores[j * outputs_ + k] != scores[j * outputs_ + k]) return;
            any = true;
        }
        if (!any) return;
        if (is_classification(task_)) {
            for (size_t j = 0; j < n; ++j)
                if (awake[j]) losses[j] = step(who_[j], scores + j * outputs_, y, by);
        } else {
            number_losses(risks, awake, losses);
            by = 1.0;
        }
        update(losses, awake, by);
    }

private:
    double weight(const double* weights, size_t j) const { return weights ? weights[j] : who_[j].weight; }

    static double log_odds(double p) {
        constexpr double least = 1e-15;
        p = p > least ? p : least;
        p = p < 1.0 - least ? p : 1.0 - least;
        return log_positive(p / (1.0 - p));
    }

    void mix_classes(const double* scores, const char* awake, const double* weights, double by, double* out) const {
        for (size_t k = 0; k < outputs_; ++k) out[k] = 0.0;
        for (size_t j = 0; j < who_.size(); ++j) {
            if (!awake[j]) continue;
            const double* own = scores + j * outputs_;
            const double factor = factor_of(who_[j]), w = weight(weights, j) * by;
            double total = 0.0;
            for (size_t k = 0; k < outputs_; ++k) total += sigmoid(clip_margin(factor * own[k]));
            for (size_t k = 0; k < outputs_; ++k) out[k] += w * (sigmoid(clip_margin(factor * own[k])) / total);
        }
        double all = 0.0;
        for (size_t k = 0; k < outputs_; ++k) all += out[k];
        for (size_t k = 0; k < outputs_; ++k) out[k] = all > 0.0 ? out[k] / all : 1.0 / double(outputs_);
    }

    // The loss of a round; the factor takes a Newton step down it.
    double step(Standing& one, const double* scores, double y, double by) const {
        const double factor = factor_of(one);
        double loss, slope, curvature;
        if (task_ == Task::binary) {
            const double margin = clip_margin(factor * scores[0]), p = sigmoid(margin);
            loss = softplus(y > 0.0 ? -margin : margin);
            slope = (p - (y > 0.0 ? 1.0 : 0.0)) * margin;
            curvature = p * (1.0 - p) * margin * margin;
        } else {
            // log p_k = log s_k - log sum s, with s_k = sigmoid(m_k): moving the factor moves log s_k by m_k (1 - s_k).
            double total = 0.0, mean = 0.0, squares = 0.0, own = 0.0;
            for (size_t k = 0; k < outputs_; ++k) {
                const double margin = clip_margin(factor * scores[k]), s = sigmoid(margin), moves = margin * (1.0 - s);
                total += s;
                mean += s * moves;
                squares += s * moves * moves;
                if (double(k) == y) own = moves;
            }
            mean /= total;
            loss = log_positive(total / sigmoid(clip_margin(factor * scores[size_t(y)])));
            loss = loss < most_risk ? loss : most_risk;
            slope = mean - own;
            curvature = squares / total - mean * mean;
            curvature = curvature > 0.0 ? curvature : 0.0;
        }
        // Labels of long ago count less here too.
        one.curvature = (1.0 - share) * one.curvature + by * curvature;
        const double logarithm = one.logarithm - by * slope / (confidence_prior + one.curvature);
        one.logarithm = logarithm < most_confidence ? (logarithm > -most_confidence ? logarithm : -most_confidence) : most_confidence;
        return loss;
    }

    // The risks of a number in units of the noise that the best expert has left so far.
    void number_losses(const double* risks, const char* awake, double* losses) {
        const double halves = task_ == Task::squared ? 2.0 : 1.0;
        const double scale = halves * (counters_.least / counters_.least_rounds) + 1e-12;
        double least = HUGE_VAL;
        for (size_t j = 0; j < who_.size(); ++j) {
            if (!awake[j]) continue;
            if (risks[j] < least) least = risks[j];
            const double loss = risks[j] / scale;
            losses[j] = loss < largest_loss ? loss : largest_loss;
        }
        counters_.least += least;
        counters_.least_rounds += 1.0;
    }

    // w_j <- w_j exp(-by loss_j) among those awake, whose weight together stays; then shared.
    void update(const double* losses, const char* awake, double by) {
        double least = HUGE_VAL, mass = 0.0, priors = 0.0;
        for (size_t j = 0; j < who_.size(); ++j) {
            if (!awake[j]) continue;
            mass += who_[j].weight;
            priors += who_[j].prior;
            if (who_[j].weight > 0.0 && losses[j] < least) least = losses[j];
        }
        double total = 0.0;
        for (size_t j = 0; j < who_.size(); ++j) {
            if (!awake[j]) continue;
            Standing& one = who_[j];
            const double behind = by * (losses[j] - least);
            // An expert without weight may be ahead of all that have some.
            one.weight = one.weight > 0.0 ? one.weight * exp_neg(behind > 0.0 ? -behind : 0.0) : 0.0;
            total += one.weight;
            one.loss += losses[j];
        }
        if (!(mass > 0.0)) return;
        const double rest = total > 0.0 && priors > 0.0 ? share : 0.0;
        for (size_t j = 0; j < who_.size(); ++j) {
            if (!awake[j]) continue;
            Standing& one = who_[j];
            const double kept = total > 0.0 ? one.weight / total : 0.0;
            one.weight = mass * ((1.0 - rest) * kept + (rest > 0.0 ? rest * (one.prior / priors) : 0.0));
        }
        counters_.rounds += 1.0;
    }

    Task task_;
    size_t outputs_;
    std::vector<Standing>& who_;
    MixtureCounters& counters_;
};

}  // namespace SF2EL_VARIANT
}  // namespace sf2el
