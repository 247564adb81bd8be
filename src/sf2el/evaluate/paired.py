"""Two models over the same runs: the mean of their differences, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import atan, cos, pi, sqrt

import numpy as np


@dataclass(frozen=True)
class Paired:
    """The difference of two models over the same runs.

    Attributes
    ----------
    mean
        Mean of the differences.
    half_width
        Half the width of its 95 % interval; None for a single run.
    """

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


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Return the mean of first - second over runs, with its 95 % interval (Student's t).

    Runs of the same seed see the same stream, so that what the seed does to both of them cancels. The
    interval takes the differences for independent and normal. It speaks of other seeds on the same rows, not
    of other rows.

    Parameters
    ----------
    first, second
        A metric of each model, one number a run, the runs in the same order.

    Examples
    --------
    >>> result = paired([0.5, 0.6, 0.7], [0.4, 0.6, 0.5])
    >>> round(result.mean, 3), round(result.half_width, 3), result.excludes_zero
    (0.1, 0.248, False)

    Is more memory better, over streams of eight seeds?

    >>> from sf2el import SF2EL
    >>> from sf2el.datasets import load
    >>> from sf2el.evaluate import prequential
    >>> from sf2el.streams import evolve
    >>> def accuracies(budget):
    ...     streams = (evolve(load("swiss"), seed=seed, t1=200, t2=200) for seed in range(8))
    ...     return [prequential(SF2EL(budget=budget), stream).metrics["accuracy"] for stream in streams]
    >>> paired(accuracies("16KiB"), accuracies("2KiB")).excludes_zero
    True
    """
    ours, theirs = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if ours.ndim != 1 or ours.shape != theirs.shape or not len(ours):
        raise ValueError(
            f"Pass one number a run for each model, of the same runs, not {ours.size} and {theirs.size}."
        )
    differences = ours - theirs
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
