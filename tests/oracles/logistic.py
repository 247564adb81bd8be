"""Online regression, a gradient step a label."""

from __future__ import annotations

import numpy as np


class Logistic:
    """Scores w'x + b of rows times a scale; steps fall as (1 + labels)^-power."""

    def __init__(self, dim, outputs, task, step, power, scale):
        self.w, self.b = np.zeros((outputs, dim)), np.zeros(outputs)
        self.task, self.step, self.power, self.scale, self.labels = task, step, power, scale, 0

    def scores(self, x):
        return self.w @ (self.scale * x) + self.b

    def loss(self, scores, y):
        """What a step goes down: of several classes, each against the rest."""
        if self.task == "regression_squared":
            return (y - scores[0]) ** 2
        if self.task == "regression_absolute":
            return abs(y - scores[0])
        wanted = [y > 0] if self.task == "binary" else [k == y for k in range(len(scores))]
        return sum(np.log1p(np.exp(-s if one else s)) for s, one in zip(scores, wanted, strict=True))

    def learn(self, x, y, weight=1.0):
        scores, x = self.scores(x), self.scale * x
        if np.isnan(y):
            return scores
        rate = weight * self.step * (1.0 + self.labels) ** -self.power
        if self.task == "regression_squared":
            rate = min(rate, 0.5 / (1.0 + x @ x))  # a longer step would pass the label
        e = 1e-6
        for k in range(len(scores)):
            ahead = e * (np.arange(len(scores)) == k)
            slope = (self.loss(scores + ahead, y) - self.loss(scores - ahead, y)) / (2.0 * e)
            self.w[k] -= rate * slope * x
            self.b[k] -= rate * slope
        self.labels += 1
        return scores
