"""Logistic (or least squares, or least absolute) regression by plain stochastic gradient steps."""

from __future__ import annotations

from math import exp, isnan, log, nan

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.expert import Expert
from sf2el.core.numpy_backend.rows import check_same_length
from sf2el.core.numpy_backend.tasks import risk_of, sigmoid, targets
from sf2el.experts.posterior import LogisticSettings, logistic_bytes
from sf2el.paper.kernels import LARGEST

Floats = npt.NDArray[np.float64]


class OnlineLogistic(Expert):
    """The quickest to start where labels are few. See ``LogisticSettings``."""

    settings: LogisticSettings

    def __init__(self, settings: LogisticSettings, dim: int) -> None:
        super().__init__(settings, dim)
        self._weights = np.zeros((settings.outputs, dim + 1))
        self._labels = 0.0

    def _row(self, x: Floats) -> Floats:
        return np.append(_limit(x * self.settings.scale), 1.0)

    def _scores(self, x: Floats) -> Floats:
        return _limit(self._weights @ self._row(x))

    def _teach(self, x: Floats, y: float, weight: float, late: bool) -> tuple[Floats, float]:
        s, row = self.settings, self._row(x)
        scores = _limit(self._weights @ row)
        if isnan(y):
            return scores, nan
        risk = risk_of(s.task, scores, y)
        rate = weight * s.step * exp(-s.power * log(1.0 + self._labels))
        if s.task == "regression_squared":
            rate = min(rate, 0.5 / float(row @ row))  # a longer step would pass the label
            pull = 2.0 * (y - scores)
        elif s.task == "regression_absolute":
            pull = np.sign(y - scores)
        else:
            pull = targets(s.task, self.outputs, y) - sigmoid(scores)
        self._weights = _limit(self._weights + np.outer(rate * pull, row))
        self._labels += 1.0
        return scores, risk

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return logistic_bytes(self.dim, self.outputs)

    def state(self) -> Floats:
        """Return everything kept, as one array: weights and intercept of each output, then the labels."""
        return np.append(self._weights.ravel(), self._labels)

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        check_same_length(self._weights.size + 1, len(state))
        self._weights = np.array(state[:-1], np.float64).reshape(self._weights.shape)
        self._labels = float(state[-1])


def _limit(values: Floats) -> Floats:
    return np.clip(values, -LARGEST, LARGEST)
