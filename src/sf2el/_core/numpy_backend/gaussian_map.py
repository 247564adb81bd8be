"""The map that recovers vanished features: model and letters are those of ``sf2el.gaussian_map``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.gaussian_map import (
    CAUTION,
    FEW,
    LEAST_NOISE,
    NOISE,
    RIDGE,
    SHRUNK,
    STEPS,
    TRIAL_RIDGE,
    UNSEEN,
    Known,
    Shown,
    correlation,
)

Floats = npt.NDArray[np.float64]


@dataclass
class _Sums:
    """Sums of products of old (x) and standardised new (a) features over rows of this weight."""

    weight: float
    xx: Floats
    xa: Floats
    aa: Floats

    def pooled(self, extra: float, x: Floats, a: Floats) -> _Sums:
        """Return the sums with one more row, so far (x, a) from the mean and of this weight."""
        weight = self.weight + extra
        between = self.weight * extra / weight
        return _Sums(
            weight,
            self.xx + between * np.outer(x, x),
            self.xa + between * np.outer(x, a),
            self.aa + between * a**2,
        )

    def left_by(self, ridge: float) -> tuple[Floats, Floats, Floats]:
        """Return W by ridge regression, the sums of squares it leaves, and a root of the inverse it took."""
        half = np.asarray(np.linalg.inv(_root(self.xx, ridge)), dtype=np.float64)
        w = half.T @ (half @ self.xa)
        return w, self.aa - np.sum(w * (self.xa + ridge * w), axis=0), half

    def regressed(self, prior: _Prior) -> tuple[Floats, Floats, Floats]:
        """Return W and R by ridge regression, and a root of the inverse of xx + ridge."""
        w, left, half = self.left_by(prior.ridge)
        return w, np.maximum(left / self.weight, prior.noise) + LEAST_NOISE, half

    def doubt(self) -> tuple[float, Floats]:
        """Return how little the old features explain of the new ones, and what of each is noise at least."""
        p, rows, noise = len(self.xx), self.weight, np.zeros(len(self.aa))
        chance, trial, varies = CAUTION / rows**2, TRIAL_RIDGE * p, self.aa > 0.0
        total = float(np.trace(self.xx))
        if not chance < 1.0 or not total > 0.0 or not varies.any():
            return 0.0, noise
        _, left, half = self.left_by(trial)
        inverse = half.T @ half
        if_exact = trial**2 * float(np.sum(inverse * (inverse @ self.xx))) / total
        if_noise = (trial**2 * float(np.sum(inverse**2)) + rows - 1.0 - p) / (rows - 1.0)
        if not if_noise > 1e-9:
            return 0.0, noise

        def unexplained(left: Any) -> Any:
            return np.clip(((left - if_exact) / if_noise - chance) / (1.0 - chance), 0.0, 1.0)

        shares = left[varies] / self.aa[varies]
        own = unexplained(shares)
        share, mean = float(unexplained(np.sort(shares)[:p].mean())), float(own.mean())
        noise[varies] = NOISE * own * (share / mean if share < mean else 1.0)
        return share, noise


@dataclass
class _Prior:
    """What is known of W and R beforehand: a ridge, and the noise that each new feature has at least."""

    ridge: float
    noise: Floats


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
    found = _Sums(
        rows,
        rows * covariance[new_dim:, new_dim:] * divisor**2,
        rows * covariance[new_dim:, :new_dim] * divisor * inverse,
        rows * np.diagonal(covariance)[:new_dim] * inverse**2,
    )
    unexplained, noise = found.doubt() if known.whole else (0.0, np.zeros(new_dim))
    prior = _Prior(RIDGE + unexplained * len(m_x), noise)
    spread = _spread(known, len(m_x))
    w, noise = _fitted(found, spread, prior)
    extra, rest = 0.0, np.zeros(new_dim)
    if shown.later > 0.0:
        # The mean of many later rows says where the old features' mean was, as surely as the noise allows:
        # they stand as one row of that weight, with the old features at 0.
        extra, rest = shown.later * float(np.mean(noise)), -rows * a_0 / shown.later
        found = found.pooled(extra, m_x, a_0 - rest)
        w, noise = _fitted(found, spread, prior)
        weight = min(FEW * rows, shown.later)
        for _ in range(STEPS):
            w, noise = _agreed(found, spread, w, noise, correlation(shown.covariance), weight, prior)
    _, gain = _turned(spread, w, noise)
    matrix = (inverse[:, None] * gain).T
    mean_x, mean_a = rows * m_x / found.weight, (rows * a_0 + extra * rest) / found.weight
    center = shown.mean + shown.deviation * mean_a
    return np.column_stack([matrix, mean_x]) / divisor, center, unexplained


def _spread(known: Known, old_dim: int) -> Floats:
    """Return S. Standardised features of which no more is known are taken as uncorrelated."""
    if known.old is None:
        return np.eye(old_dim)
    return np.asarray((1.0 - SHRUNK) * correlation(known.old) + SHRUNK * np.eye(old_dim))


def _fitted(found: _Sums, spread: Floats, prior: _Prior) -> tuple[Floats, Floats]:
    """Return W and R from rows that had both spaces; what they cannot have shown of W is noise in part."""
    w, noise, half = found.regressed(prior)
    unseen = prior.ridge * float(np.sum(half**2)) / len(half)
    return w, noise + UNSEEN * unseen * float(np.mean(np.sum(w * (spread @ w), axis=0)))


def _turned(spread: Floats, w: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return a factor F of how much of S the new features tell, F'F, and gain, with E[x | a] = gain' a."""
    together = spread @ w
    half = np.linalg.inv(_root(w.T @ together, noise))
    factor = half @ together.T
    return factor, np.asarray(half.T @ factor)


def _agreed(
    found: _Sums,
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
    both = _Sums(
        found.weight + weight,
        found.xx + weight * (gain.T @ seen - factor.T @ factor + spread),
        found.xa + weight * seen.T,
        found.aa + weight * np.diagonal(correlation),
    )
    return both.regressed(prior)[:2]


def _root(matrix: Floats, raised: float | Floats) -> Floats:
    """Return the lower triangular L with LL' = matrix + diag(raised).

    As the matrix has no negative eigenvalue, no pivot is below what its diagonal was raised by. Where
    rounding took one below 0 all the same, all are held at that.
    """
    whole = matrix.copy()
    whole.flat[:: len(matrix) + 1] += raised
    try:
        return np.asarray(np.linalg.cholesky(whole))
    except np.linalg.LinAlgError:
        return _held_root(whole, np.broadcast_to(raised, len(matrix)))


def _held_root(matrix: Floats, least: Floats) -> Floats:
    root = np.zeros_like(matrix)
    for i in range(len(matrix)):
        column = matrix[i:, i] - root[i:, :i] @ root[i, :i]
        pivot = np.sqrt(column[0] if column[0] > least[i] else least[i])
        root[i:, i] = column / pivot
        root[i, i] = pivot
    return root
