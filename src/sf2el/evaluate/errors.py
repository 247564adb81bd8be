"""Errors of predicted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan, sqrt
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Errors:
    """Mean absolute error, root mean square error and R2, by running sums; O(1) in time and memory.

    A prediction None or NaN is left out, and counted in ``unpredicted``.

    Examples
    --------
    >>> errors = Errors()
    >>> errors.add_many([1.0, 2.0, 4.0], [1.0, 3.0, 3.0])
    >>> {name: round(value, 3) for name, value in errors.metrics().items()}
    {'mae': 0.667, 'rmse': 0.816, 'r2': 0.571}
    """

    def __init__(self) -> None:
        self.rounds = 0
        self.unpredicted = 0
        # |e|, e^2, (y - origin), (y - origin)^2; sums about a value near the mean do not cancel.
        self.sums = np.zeros(4)
        self.origin = 0.0

    def add(self, truth: float, prediction: float | None) -> None:
        """Count one round."""
        self.add_many([truth], [prediction])

    def add_many(self, truths: Sequence[Any], predictions: Sequence[Any]) -> None:
        """Count rounds."""
        y = np.array(truths, dtype=np.float64)
        p = np.array([nan if value is None else value for value in predictions], dtype=np.float64)
        known = ~np.isnan(p)
        self.unpredicted += int(len(p) - known.sum())
        y, p = y[known], p[known]
        if not len(y):
            return
        if not self.rounds:
            self.origin = float(y[0])
        error, distance = np.abs(y - p), y - self.origin
        terms = np.stack([error, error**2, distance, distance**2])
        # A running sum, term by term: the same bits however the rounds are cut into blocks.
        self.sums = np.cumsum(np.hstack([self.sums[:, None], terms]), axis=1)[:, -1].copy()
        self.rounds += len(y)

    def merge(self, other: Self) -> None:
        """Add another's rounds."""
        self.unpredicted += other.unpredicted
        if not other.rounds:
            return
        if not self.rounds:
            self.origin = other.origin
        shift, theirs = other.origin - self.origin, other.sums.copy()
        theirs[3] += 2.0 * shift * theirs[2] + other.rounds * shift**2
        theirs[2] += other.rounds * shift
        self.sums = self.sums + theirs
        self.rounds += other.rounds

    def metrics(self) -> dict[str, float]:
        """Return the metrics; NaN where undefined."""
        n = self.rounds
        if not n:
            return {"mae": nan, "rmse": nan, "r2": nan}
        absolute, squared, first, second = map(float, self.sums)
        spread = second - first**2 / n
        r2 = 1.0 - squared / spread if n > 1 and spread > 0.0 else nan
        return {"mae": absolute / n, "rmse": sqrt(squared / n), "r2": r2}

    def state(self) -> dict[str, Any]:
        """Return the sums as JSON can hold them."""
        return {
            "rounds": self.rounds,
            "unpredicted": self.unpredicted,
            "sums": self.sums.tolist(),
            "origin": self.origin,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the errors of a ``state``."""
        errors = cls()
        errors.rounds, errors.unpredicted = int(state["rounds"]), int(state["unpredicted"])
        errors.sums, errors.origin = np.array(state["sums"], dtype=np.float64), float(state["origin"])
        return errors
