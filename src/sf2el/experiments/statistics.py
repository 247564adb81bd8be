"""Statistics of repeated runs: mean, standard deviation, paired differences with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import atan, cos, pi, sqrt

import numpy as np


@dataclass(frozen=True)
class Paired:
    """Mean difference of paired runs, with the half-width of its 95 % interval (None for a single run)."""

    mean: float
    half_width: float | None

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return None if self.half_width is None else self.mean + self.half_width

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero; a single run has no interval and tells nothing."""
        return self.half_width is not None and abs(self.mean) > self.half_width


def mean_std(values: Sequence[float]) -> dict[str, float]:
    """Return mean and sample standard deviation (0 for a single run).

    >>> mean_std([0.5, 0.7])
    {'mean': 0.6, 'std': 0.141421}
    """
    return {
        "mean": round(float(np.mean(values)), 6),
        "std": round(float(np.std(values, ddof=1)), 6) if len(values) > 1 else 0.0,
    }


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Return the mean of first - second over runs, with its 95 % interval (Student's t).

    >>> result = paired([0.5, 0.6, 0.7], [0.4, 0.6, 0.5])
    >>> round(result.mean, 3), round(result.half_width, 3)
    (0.1, 0.248)
    """
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    n = len(differences)
    if n < 2:
        return Paired(float(differences.mean()), None)
    error = float(np.std(differences, ddof=1)) / sqrt(n)
    return Paired(float(differences.mean()), t_quantile(n - 1) * error)


@cache
def t_quantile(freedom: int, coverage: float = 0.95) -> float:
    """Return the half-width of Student's t that holds ``coverage``, in standard errors.

    >>> round(t_quantile(9), 3), round(t_quantile(1), 2), round(t_quantile(1000), 3)
    (2.262, 12.71, 1.962)
    """
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _within(middle, freedom) < coverage else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Probability that Student's t lies in [-t, t]: the finite series for whole degrees of freedom."""
    theta = atan(t / sqrt(freedom))
    s, c2 = t / sqrt(freedom + t * t), cos(theta) ** 2
    odd = freedom % 2
    term = s * (cos(theta) if odd else 1.0)
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= c2 * (k - 1) / k
        total += term
    return (2.0 / pi) * (theta + total) if odd else total
