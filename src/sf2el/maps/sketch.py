"""The strongest directions of rows: their mean and covariance in fewer bytes than the matrix takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROOM = 12
"""Directions kept: up to as many rows, and one more, nothing of their covariance is lost but digits."""

WIDE = 1000
"""Features from which all directions of a matrix take seconds, where few rows have but few."""

LONGEST = 2.0
"""Units that no direction reaches in any feature: it is at most one, but for rounding."""


class Sketch:
    """Mean and covariance of rows, from ``ROOM`` directions and the variance of each feature.

    While there are few rows the directions are the rows themselves, less their mean. When one more comes than
    there is room for, the weakest direction goes, and every row then costs one singular value decomposition.
    Directions are in units of each feature's own deviation, whatever its scale, which float16 resolves; while
    they are the rows themselves, in the next power of two, so that a row is rounded once and not again as
    deviations grow. Variances are always exact.

    Examples
    --------
    >>> rows = np.array([[1.0, 5.0], [2.0, 3.0], [6.0, 1.0]])
    >>> sketch = Sketch(2)
    >>> sketch.observe_many(rows)
    >>> bool(np.allclose(sketch.matrix(), np.cov(rows.T, bias=True), rtol=1e-2))
    True
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0.0
        self.mean: Floats = np.zeros(dim)
        self._squares: Floats = np.zeros(dim)  # of deviations, summed
        self._directions = np.zeros((ROOM, dim), dtype=np.float16)
        self._used = 0

    @classmethod
    def of(cls, moments: Any) -> Sketch:
        """Return the sketch of rows of which mean and covariance were kept until now."""
        mean = np.array(moments.mean)
        sketch = cls(len(mean))
        sketch.count, sketch.mean = float(moments.count), mean
        if sketch.count > 1.0:
            scatter = sketch.count * np.array(moments.matrix())
            sketch._squares = np.diagonal(scatter).copy()
            scale = _deviations(sketch._squares)
            values, vectors = _directions_of(scatter / np.outer(scale, scale), sketch.count - 1.0)
            used = int(min(ROOM, sketch.dim, sketch.count - 1.0))
            lengths = np.sqrt(np.maximum(values[::-1][:used], 0.0))
            sketch._store(scale * _bounded(lengths[:, None] * vectors.T[::-1][:used]))
        return sketch

    def observe_many(self, rows: Floats) -> None:
        """Take in every row in turn."""
        for row in rows:
            delta, kept = row - self.mean, self._kept()
            self.count += 1.0
            self.mean = self.mean + delta / self.count
            if self.count > 1.0:
                self._add(kept, delta * np.sqrt((self.count - 1.0) / self.count))

    def _add(self, kept: Floats, direction: Floats) -> None:
        if len(kept) == ROOM:
            scale = _deviations(self._squares)
            kept = scale * _without_weakest(_bounded(kept / scale))
            kept[:, self._squares == 0.0] = 0.0  # rounding has a share for features that never varied
        self._squares = self._squares + direction**2
        self._store(np.vstack([kept, direction]))

    def _kept(self) -> Floats:
        """Return the directions in use, in the features' own scale."""
        return np.asarray(self._directions[: self._used] * self._units())

    def _store(self, directions: Floats) -> None:
        """Keep directions in the features' own scale."""
        self._used = len(directions)
        self._directions[: self._used] = np.clip(directions / self._units(), -LONGEST, LONGEST)
        self._directions[self._used :] = 0.0

    def _units(self) -> Floats:
        return np.asarray(_deviations(self._squares) / unit_deviations(self.count, self._squares))

    def matrix(self) -> Floats:
        """Return the covariance of the rows (divided by their number)."""
        kept = _bounded(self._kept() / _deviations(self._squares))
        correlation = kept.T @ kept
        np.fill_diagonal(correlation, 1.0)  # what the directions leave out is each feature's own
        deviation = np.sqrt(self._squares / max(self.count, 1.0))
        return np.asarray(correlation * np.outer(deviation, deviation))

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        head = np.array([self.count, float(self._used)])
        return np.concatenate([head, self.mean, self._squares, self._directions.ravel()])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        head, mean, squares, directions = np.split(state, np.cumsum([2, self.dim, self.dim]))
        if not (0.0 <= head[1] <= ROOM and head[1] == int(head[1]) and head[0] >= head[1]):
            raise ValueError("a sketch has as many directions as it has room and rows for")
        if np.any(squares < 0.0):
            raise ValueError("a variance in it is negative")
        if np.any(np.abs(directions) > LONGEST):
            raise ValueError("a direction of a sketch is longer than its features vary")
        self.count, self._used = float(head[0]), int(head[1])
        self.mean, self._squares = mean.copy(), squares.copy()
        self._directions[:] = directions.reshape(ROOM, self.dim)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sketch_bytes(self.dim)


def sketch_bytes(dim: int) -> int:
    """Return the bytes of a sketch: count and directions in use, means, variances, directions.

    >>> Sketch(5).nbytes == sketch_bytes(5)
    True
    """
    return 16 * (1 + dim) + 2 * dim * ROOM


def unit_deviations(count: float, squares: Floats) -> Floats:
    """Return the deviation of each feature in the unit of its directions, which is a power of two at first.

    >>> unit_deviations(2.0, np.array([9.0])).tolist(), unit_deviations(99.0, np.array([9.0])).tolist()
    ([0.75], [1.0])
    """
    few = count <= ROOM + 1.0
    return np.asarray(np.frexp(_deviations(squares))[0]) if few else np.ones(len(squares))


def _bounded(directions: Floats) -> Floats:
    """Return directions, in deviations, whose squares sum to one at most, whatever was rounded."""
    return np.asarray(directions / np.sqrt(np.maximum((directions**2).sum(axis=0), 1.0)))


def _without_weakest(directions: Floats) -> Floats:
    """Return one direction less: the strongest that span the same, as far as so many can."""
    _, lengths, vectors = np.linalg.svd(directions, full_matrices=False)
    return np.asarray((lengths[:, None] * vectors)[: ROOM - 1])


def _directions_of(matrix: Floats, rank: float) -> tuple[Floats, Floats]:
    """Return eigenvalues, the smallest first, and eigenvectors of a symmetric matrix of this rank.

    Of a wide one of low rank only those that matter: what it makes of a few random vectors spans them all.
    """
    dim = len(matrix)
    if dim > WIDE and rank < dim / 8:
        draws = np.random.default_rng(0).normal(size=(dim, int(rank) + ROOM))
        span = np.linalg.qr(matrix @ draws)[0]
        values, within = np.linalg.eigh(span.T @ matrix @ span)
        return values, span @ within
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors


def _deviations(squares: Floats) -> Floats:
    """Return square roots, 1 where there is nothing."""
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))
