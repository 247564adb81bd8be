"""The map that recovers vanished features: model and letters are those of ``sf2el.maps.gaussian_map``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.map_prior import thought, zero_counts, zero_of
from sf2el.core.numpy_backend.map_sums import Coordinates, Sums, root
from sf2el.maps.gaussian_map import (
    FEW,
    FEW_STEPS,
    LEAST_NOISE,
    RIDGE,
    SHRUNK,
    SOON,
    STEPS,
    UNSEEN,
    Known,
    Shown,
    correlation,
)

Floats = npt.NDArray[np.float64]


@dataclass
class _Prior:
    """A ridge, and the noise that each new feature has at least."""

    ridge: float
    noise: Floats

    def regressed(self, sums: Sums) -> tuple[Floats, Floats, Floats]:
        """Return W and R by ridge regression, and a root of the inverse of xx + ridge."""
        w, left, half = sums.left_by(self.ridge)
        return w, np.maximum(left / sums.weight, self.noise) + LEAST_NOISE, half


def gaussian_map(known: Known, divisor: float) -> tuple[Floats, Floats, float]:
    """Return a matrix, the center that the new features are taken from, and what of them is unexplained."""
    new_dim = known.new_dim
    rows = float(known.rows)
    covariance, m_x = known.covariance, known.mean[new_dim:] * divisor
    shown = known.new or Shown(
        known.mean[:new_dim],
        np.sqrt(np.maximum(np.diagonal(covariance)[:new_dim], 0.0)),
        np.zeros((new_dim, new_dim)),
        0.0,
    )
    varies = shown.deviation > 1e-12 * np.abs(shown.mean) + 1e-30
    inverse = np.divide(1.0, shown.deviation, out=np.zeros(new_dim), where=varies)
    a_0 = (known.mean[:new_dim] - shown.mean) * inverse
    found = Sums(
        rows,
        rows * covariance[new_dim:, new_dim:] * divisor**2,
        rows * covariance[new_dim:, :new_dim] * divisor * inverse,
        rows * np.diagonal(covariance)[:new_dim] * inverse**2,
    )
    at, zero = _thought(known, found, m_x, -known.mean[:new_dim] * inverse)
    found, m_x, spread = found.within(at), at.within(m_x), _spread(known, at)
    unexplained, noise = found.doubt() if known.whole else (0.0, np.zeros(new_dim))
    prior = _Prior(RIDGE + unexplained * len(m_x), noise)
    if zero is not None:
        found = found.and_row(at.within(zero), -known.mean[:new_dim] * inverse)
    w, noise, _ = _fitted(found, spread, prior)
    extra, rest = 0.0, np.zeros(new_dim)
    if shown.later > 0.0:
        # The mean of many later rows says where the old features' mean was, as surely as the noise allows:
        # they stand as one row of that weight, with the old features at 0.
        extra, rest = shown.later * float(np.mean(noise)), -rows * a_0 / shown.later
        found = found.pooled(extra, m_x, a_0 - rest)
        w, noise, unseen = _fitted(found, spread, prior)
        weight = min(FEW * rows, shown.later)
        unseen *= (SOON / (SOON + shown.later)) ** 2
        for _ in range(STEPS if known.old is not None else FEW_STEPS):
            w, noise = _agreed(found, spread, w, noise, correlation(shown.covariance), weight, prior)
            noise = noise + unseen
    _, gain = _turned(spread, w, noise)
    matrix = (inverse[:, None] * at.without(gain.T).T).T
    mean_x = at.without(rows * m_x / found.weight)
    mean_a = (rows * a_0 + extra * rest) / found.weight
    center = shown.mean + shown.deviation * mean_a
    return np.column_stack([matrix, mean_x]) / divisor, center, unexplained


def _thought(known: Known, found: Sums, m_x: Floats, a: Floats) -> tuple[Coordinates, Floats | None]:
    """Return coordinates in which all of W is alike beforehand, and where zero is, if it counts.

    ``a`` is where the new features read 0, from the overlap's mean.
    """
    if known.read is None or known.old is None or not known.whole:
        return Coordinates(np.ones(len(m_x)), 0.0), None
    mean, deviation = known.read
    at, zero = thought(found, deviation), zero_of(mean, deviation)
    if zero is not None:
        zero = zero - m_x
        zero = zero if zero_counts(found, at.weights, zero, a) else None
    return at, zero


def _spread(known: Known, at: Coordinates) -> Floats:
    """Return S. Standardised features of which no more is known are taken as uncorrelated."""
    spread = np.eye(len(at.weights))
    if known.old is not None:
        spread = (1.0 - SHRUNK) * correlation(known.old) + SHRUNK * spread
    return at.within(at.within(spread).T)


def _fitted(found: Sums, spread: Floats, prior: _Prior) -> tuple[Floats, Floats, float]:
    """Return W and R from rows that had both spaces, and what of R comes from what they cannot have shown."""
    w, noise, half = prior.regressed(found)
    unseen = prior.ridge * float(np.sum(half**2)) / len(half)
    more = UNSEEN * unseen * float(np.mean(np.sum(w * (spread @ w), axis=0)))
    return w, noise + more, more


def _turned(spread: Floats, w: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return a factor F of how much of S the new features tell, F'F, and gain, with E[x | a] = gain' a."""
    together = spread @ w
    half = np.linalg.inv(root(w.T @ together, noise))
    factor = half @ together.T
    return factor, np.asarray(half.T @ factor)


def _agreed(
    found: Sums,
    spread: Floats,
    w: Floats,
    noise: Floats,
    correlation: Floats,
    weight: float,
    prior: _Prior,
) -> tuple[Floats, Floats]:
    """Return W and R after a step of expectation-maximisation on rows without the old features."""
    factor, gain = _turned(spread, w, noise)
    seen = correlation @ gain
    both = Sums(
        found.weight + weight,
        found.xx + weight * (gain.T @ seen - factor.T @ factor + spread),
        found.xa + weight * seen.T,
        found.aa + weight * np.diagonal(correlation),
    )
    return prior.regressed(both)[:2]
