"""Sums of products of old and new features, and the regressions that they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.maps.gaussian_map import CAUTION, NOISE, TRIAL_RIDGE

Floats = npt.NDArray[np.float64]


@dataclass
class Coordinates:
    """x' = A'x, with A = D (I + c 11')^(1/2) / (1 + c)^(1/2).

    In these coordinates all of W is alike beforehand. ``weights`` is tau, ``common`` is c.
    """

    weights: Floats
    common: float

    @property
    def _more(self) -> float:
        """(I + c 11')^(1/2) is I and this times 11'."""
        p = len(self.weights)
        return float((np.sqrt(1.0 + self.common * p) - 1.0) / p)

    def within(self, rows: Floats) -> Floats:
        """Return A' times a matrix or a vector."""
        scaled = (rows.T * self.weights).T
        return np.asarray((scaled + self._more * scaled.sum(axis=0)) / np.sqrt(1.0 + self.common))

    def without(self, rows: Floats) -> Floats:
        """Return the inverse of A' times a matrix or a vector."""
        less = self._more / (1.0 + self._more * len(self.weights))
        scaled = (rows - less * rows.sum(axis=0)) * np.sqrt(1.0 + self.common)
        return np.asarray((scaled.T / self.weights).T)


@dataclass
class Sums:
    """Sums of products of old (x) and standardised new (a) features over rows of this weight."""

    weight: float
    xx: Floats
    xa: Floats
    aa: Floats

    def pooled(self, extra: float, x: Floats, a: Floats) -> Sums:
        """Return the sums with one more row, so far (x, a) from the mean and of this weight."""
        weight = self.weight + extra
        between = self.weight * extra / weight
        return Sums(
            weight,
            self.xx + between * np.outer(x, x),
            self.xa + between * np.outer(x, a),
            self.aa + between * a**2,
        )

    def left_by(self, ridge: float) -> tuple[Floats, Floats, Floats]:
        """Return W by ridge regression, the sums of squares it leaves, and a root of the inverse it took."""
        half = np.asarray(np.linalg.inv(root(self.xx, ridge)), dtype=np.float64)
        w = half.T @ (half @ self.xa)
        return w, self.aa - np.sum(w * (self.xa + ridge * w), axis=0), half

    def within(self, at: Coordinates) -> Sums:
        """Return the sums in coordinates of the old features."""
        return Sums(self.weight, at.within(at.within(self.xx).T), at.within(self.xa), self.aa)

    def and_row(self, x: Floats, a: Floats) -> Sums:
        """Return the sums with one more row, so far (x, a) from where the others have their mean."""
        return Sums(self.weight, self.xx + np.outer(x, x), self.xa + np.outer(x, a), self.aa + a**2)

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


def root(matrix: Floats, raised: float | Floats) -> Floats:
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
