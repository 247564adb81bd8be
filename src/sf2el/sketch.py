"""The strongest directions of rows: their mean and covariance in fewer bytes than the matrix takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ROOM = 12
"""Directions kept: up to as many rows, and one more, their covariance is exact."""


class Sketch:
    """Mean and covariance of rows, from ``ROOM`` directions and the variance of each feature.

    While there are few rows the directions are the rows themselves, less their mean. When one more comes than
    there is room for, the weakest direction goes, and every row then costs one singular value decomposition.
    Directions are in units of each feature's own deviation, whatever its scale; variances are always exact.

    Examples
    --------
    >>> rows = np.array([[1.0, 5.0], [2.0, 3.0], [6.0, 1.0]])
    >>> sketch = Sketch(2)
    >>> sketch.observe_many(rows)
    >>> bool(np.allclose(sketch.matrix(), np.cov(rows.T, bias=True)))
    True
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0.0
        self.mean: Floats = np.zeros(dim)
        self._squares: Floats = np.zeros(dim)  # of deviations, summed
        self._directions = np.zeros((ROOM, dim), dtype=np.float32)
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
            values, vectors = np.linalg.eigh(scatter / np.outer(scale, scale))
            sketch._used = int(min(ROOM, sketch.dim, sketch.count - 1.0))
            lengths = np.sqrt(np.maximum(values[::-1][: sketch._used], 0.0))
            sketch._directions[: sketch._used] = lengths[:, None] * vectors.T[::-1][: sketch._used]
        return sketch

    def observe_many(self, rows: Floats) -> None:
        """Take in every row in turn."""
        for row in rows:
            delta = row - self.mean
            self.count += 1.0
            self.mean = self.mean + delta / self.count
            if self.count > 1.0:
                self._add(delta * np.sqrt((self.count - 1.0) / self.count))

    def _add(self, direction: Floats) -> None:
        if self._used == ROOM:
            self._leave_weakest()
        before, self._squares = self._squares, self._squares + direction**2
        scale = _deviations(self._squares)
        self._directions[: self._used] *= np.sqrt(before / scale**2).astype(np.float32)
        self._directions[self._used] = direction / scale
        self._used += 1

    def _leave_weakest(self) -> None:
        _, lengths, vectors = np.linalg.svd(self._directions.astype(np.float64), full_matrices=False)
        strongest = (lengths[:, None] * vectors)[: ROOM - 1]
        self._directions[:] = 0.0
        self._directions[: len(strongest)] = strongest
        self._used = ROOM - 1

    def matrix(self) -> Floats:
        """Return the covariance of the rows (divided by their number)."""
        kept = self._directions[: self._used].astype(np.float64)
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
    return 16 * (1 + dim) + 4 * dim * ROOM


def _deviations(squares: Floats) -> Floats:
    """Return square roots, 1 where there is nothing."""
    return np.sqrt(np.where(squares > 0.0, squares, 1.0))
