"""Running mean and covariance of rows, and the affine map that is made from them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el._core.numpy_backend.rows import check_row, check_rows, check_same_length
from sf2el.halves import brief

Floats = npt.NDArray[np.float64]


class Moments:
    """Welford's recurrence for a whole matrix: a large offset does not drown the spread."""

    def __init__(self, dim: int, precision: str = "float64") -> None:
        self._dim = dim
        self._lower = np.tril_indices(dim)
        self._count = 0.0
        self._mean = np.zeros(dim)
        self._packed = np.zeros(dim * (dim + 1) // 2, dtype=np.dtype(precision))

    def observe(self, x: Floats) -> None:
        """Take in one row."""
        delta = check_row(x, self._dim) - self._mean
        n = self._count + 1.0
        self._mean = self._mean + delta / n
        rows, columns = self._lower
        more = (delta * ((n - 1.0) / n))[rows] * delta[columns]
        self._packed = self._packed + more.astype(self._packed.dtype)
        self._count = n

    def observe_many(self, X: Floats) -> None:
        """Take in every row in turn."""
        for x in check_rows(X, self._dim):
            self.observe(x)

    @property
    def count(self) -> float:
        """Rows taken in."""
        return self._count

    @property
    def mean(self) -> Floats:
        """Mean of the rows."""
        return self._mean.copy()

    def matrix(self) -> Floats:
        """Return the covariance of the rows (divided by their number)."""
        dense = np.zeros((self._dim, self._dim))
        dense[self._lower] = self._packed.astype(np.float64) / self._count if self._count else 0.0
        return np.asarray(dense + np.tril(dense, -1).T)

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        return np.concatenate([[self._count], self._mean, self._packed])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        d = self._dim
        check_same_length(1 + d + len(self._packed), len(state))
        self._count, self._mean, self._packed = (
            float(state[0]),
            state[1 : 1 + d].copy(),
            state[1 + d :].astype(self._packed.dtype),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return 8 * (1 + self._dim) + (self._packed.nbytes + 7) // 8 * 8


class AffineMap:
    """x = M (z - center) + offset, each value held within +-limit (0: no limit)."""

    def __init__(self, new_dim: int, old_dim: int, limit: float = 0.0, precision: str = "float64") -> None:
        self._from, self._to, self._limit = new_dim, old_dim, limit
        self._center, self._offset = np.zeros(new_dim), np.zeros(old_dim)
        self._brief = precision == "bfloat16"
        self._matrix = np.zeros((old_dim, new_dim), dtype=np.float32 if self._brief else np.dtype(precision))

    def set(self, matrix: Floats, center: Floats) -> None:
        """Take over M, one row for each old feature with the offset last, and the center."""
        matrix = np.array(matrix, dtype=np.float64)
        if matrix.shape != (self._to, self._from + 1) or np.shape(center) != (self._from,):
            raise ValueError("This matrix does not fit this map: its sizes differ.")
        check_rows(matrix, self._from + 1)
        self._center = check_row(np.array(center), self._from)
        linear = brief(matrix[:, :-1]) if self._brief else matrix[:, :-1]
        self._matrix = linear.astype(self._matrix.dtype, order="C")  # products depend on it to the bit
        self._offset = matrix[:, -1].copy()

    @property
    def matrix(self) -> Floats:
        """M, with the offset as its last column."""
        return np.column_stack([self._matrix.astype(np.float64), self._offset])

    @property
    def center(self) -> Floats:
        """The center."""
        return self._center.copy()

    def apply_into(self, z: Floats, x: Floats) -> None:
        """Map one row."""
        centred = check_row(z, self._from) - self._center
        value = self._offset + self._matrix.astype(np.float64) @ centred
        x[:] = np.clip(value, -self._limit, self._limit) if self._limit > 0.0 else value

    def apply(self, Z: Floats) -> Floats:
        """Map every row."""
        Z = check_rows(Z, self._from)
        out = np.empty((len(Z), self._to))
        for z, x in zip(Z, out, strict=True):
            self.apply_into(z, x)
        return out

    @property
    def nbytes(self) -> int:
        """Bytes of the map."""
        kept = self._matrix.nbytes // (2 if self._brief else 1)
        return 8 * (self._from + self._to) + (kept + 7) // 8 * 8
