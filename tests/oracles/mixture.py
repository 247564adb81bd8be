"""Fixed share among the experts awake, and a factor on the margins of each."""

from __future__ import annotations

import numpy as np

SHARE, LARGEST_LOSS, PRIOR_CURVATURE, MOST = 0.003, 8.0, 5.0, 1.5


def log_probabilities(task, margins):
    """Of the classes, or of (not, yes) where there are two."""
    margins = np.clip(margins, -8.0, 8.0)
    if task == "binary":
        return np.array([-np.log1p(np.exp(margins[0])), -np.log1p(np.exp(-margins[0]))])
    s = 1.0 / (1.0 + np.exp(-margins))
    return np.log(s / s.sum())


class Mixture:
    """Weights and factors of experts; factors take steps of Fisher scoring, by numerical derivatives."""

    def __init__(self, task, outputs, priors):
        self.task, self.outputs, self.priors = task, outputs, np.asarray(priors, dtype=float)
        self.weights = self.priors / self.priors.sum()
        self.losses, self.logs, self.curvature = (np.zeros(len(self.priors)) for _ in range(3))
        self.least, self.least_rounds = 1.0, 1.0

    @property
    def numbers(self):
        return self.task.startswith("regression")

    def mix(self, scores, awake):
        scores = np.reshape(scores, (len(self.weights), self.outputs))
        share = np.where(awake, self.weights, 0.0) / self.weights[awake].sum()
        if self.numbers:
            return share @ scores
        factors = np.exp(self.logs)
        p = sum(
            w * np.exp(log_probabilities(self.task, f * s))
            for w, f, s in zip(share, factors, scores, strict=True)
        )
        return np.array([np.log(p[1] / p[0])]) if self.task == "binary" else p

    def follow(self, scores, risks, awake, y, weight=1.0):
        scores = np.reshape(scores, (len(self.weights), self.outputs))
        here, losses = np.flatnonzero(awake), np.zeros(len(self.weights))
        if self.numbers:
            scale = (2.0 if self.task == "regression_squared" else 1.0) * self.least / self.least_rounds
            losses[here] = np.minimum(risks[here] / scale, LARGEST_LOSS)
            self.least, self.least_rounds, weight = self.least + risks[here].min(), self.least_rounds + 1, 1.0
        else:
            label = int(y > 0) if self.task == "binary" else int(y)
            for j in here:
                losses[j] = self.step(j, scores[j], label, weight)
        mass, prior = self.weights[here].sum(), self.priors[here] / self.priors[here].sum()
        own = self.weights[here] * np.exp(-weight * losses[here])
        self.weights[here] = mass * ((1.0 - SHARE) * own / own.sum() + SHARE * prior)
        self.losses += losses

    def step(self, j, scores, label, weight):
        def log_p(log_factor):
            return log_probabilities(self.task, np.exp(log_factor) * scores)

        now, e = log_p(self.logs[j]), 1e-5
        slopes = (log_p(self.logs[j] + e) - log_p(self.logs[j] - e)) / (2.0 * e)
        information = np.exp(now) @ slopes**2
        self.curvature[j] = (1.0 - SHARE) * self.curvature[j] + weight * information
        self.logs[j] += weight * slopes[label] / (PRIOR_CURVATURE + self.curvature[j])
        self.logs[j] = np.clip(self.logs[j], -MOST, MOST)
        return -now[label]
