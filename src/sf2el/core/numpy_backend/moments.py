"""Running mean and covariance of rows, and the affine map that is made from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import check_known, check_row, check_rows, check_same_length
from sf2el.experts.halves import brief

Floats = npt.NDArray[np.float64]

FILL_RIDGE = 1e-2
"""Share of the mean variance that observed features are trusted less by."""


class Moments:
    """Welford's recurrence for a whole matrix: a large offset does not drown the spread.

    With ``fourths`` the mean fourth power of each feature is kept too.
    """

    def __init__(self, dim: int, precision: str = "float64", fourths: bool = False) -> None:
        self._dim = dim
        self._lower = np.tril_indices(dim)
        self._count = 0.0
        self._mean = np.zeros(dim)
        self._packed = np.zeros(dim * (dim + 1) // 2, dtype=np.dtype(precision))
        self._fourths = np.zeros(dim if fourths else 0, dtype=np.dtype(precision))

    def observe(self, x: Floats) -> None:
        """Take in one row."""
        x = check_row(x, self._dim)
        delta = x - self._mean
        n = self._count + 1.0
        self._mean = self._mean + delta / n
        rows, columns = self._lower
        more = (delta * ((n - 1.0) / n))[rows] * delta[columns]
        self._packed = self._packed + more.astype(self._packed.dtype)
        if len(self._fourths):
            mean, square = self._fourths.astype(np.float64), x * x
            self._fourths = (mean + (square * square - mean) / n).astype(self._fourths.dtype)
        self._count = n

    def observe_many(self, X: Floats) -> None:
        """Take in every row in turn."""
        for x in check_rows(X, self._dim):
            self.observe(x)

    def fill(self, row: Floats, view: Floats) -> None:
        """Give each gap of a row, where it is NaN, its mean given what was observed, as if all were Gaussian.

        ``view`` is the row as these rows are. Where too little is known nothing is filled.
        """
        gaps = np.isnan(check_known(row, self._dim, 1))
        view, seen = check_row(view, self._dim), ~gaps
        if self._count < 2.0 or not gaps.any() or gaps.all():
            return
        covariance = self.matrix()
        share = FILL_RIDGE + 1.0 / self._count
        ridge = share * float(np.trace(covariance)) / self._dim + 1e-12
        among = covariance[np.ix_(seen, seen)] + ridge * np.eye(int(seen.sum()))
        pull = np.linalg.solve(among, view[seen] - self._mean[seen])
        view[gaps] = self._mean[gaps] + covariance[np.ix_(gaps, seen)] @ pull

    @property
    def count(self) -> float:
        """Rows taken in."""
        return self._count

    @property
    def mean(self) -> Floats:
        """Mean of the rows."""
        return self._mean.copy()

    @property
    def fourths(self) -> Floats:
        """Mean fourth power of each feature; none where they are not kept."""
        return self._fourths.astype(np.float64)

    def matrix(self) -> Floats:
        """Return the covariance of the rows (divided by their number)."""
        dense = np.zeros((self._dim, self._dim))
        dense[self._lower] = self._packed.astype(np.float64) / self._count if self._count else 0.0
        return np.asarray(dense + np.tril(dense, -1).T)

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        return np.concatenate([[self._count], self._mean, self._packed, self._fourths])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        d, kind = self._dim, self._packed.dtype
        check_same_length(1 + d + len(self._packed) + len(self._fourths), len(state))
        head, sums, fourths = np.split(state, [1 + d, 1 + d + len(self._packed)])
        self._count, self._mean = float(head[0]), head[1:].copy()
        self._packed, self._fourths = sums.astype(kind), fourths.astype(kind)

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return 8 * (1 + self._dim) + (self._packed.nbytes + self._fourths.nbytes + 7) // 8 * 8


class AffineMap:
    """x = M (z - center) + offset, each value held within +-limit (0: no limit).

    With a rank, M is kept as so many factors: each a row over z and a column over x, side by side.
    """

    def __init__(
        self, new_dim: int, old_dim: int, limit: float = 0.0, precision: str = "float64", rank: int = 0
    ) -> None:
        if rank > min(new_dim, old_dim):
            raise ValueError("A map has no higher rank than it has features.")
        self._from, self._to, self._limit, self.rank = new_dim, old_dim, limit, rank
        self._center, self._offset = np.zeros(new_dim), np.zeros(old_dim)
        self._brief = precision == "bfloat16"
        shape = (rank, new_dim + old_dim) if rank else (old_dim, new_dim)
        self._linear = np.zeros(shape, dtype=np.float32 if self._brief else np.dtype(precision))

    def set(self, matrix: Floats, center: Floats) -> None:
        """Take over M, one row for each old feature with the offset last, and the center."""
        matrix = np.array(matrix, dtype=np.float64)
        sizes = matrix.shape, np.shape(center)
        if self.rank or sizes != ((self._to, self._from + 1), (self._from,)):
            raise ValueError("This matrix does not fit this map: its sizes differ.")
        check_rows(matrix, self._from + 1)
        self._center = check_row(np.array(center), self._from)
        self._linear = self._rounded(matrix[:, :-1])
        self._offset = matrix[:, -1].copy()

    def set_factors(self, factors: Floats, offset: Floats, center: Floats) -> None:
        """Take over the factors of M, each new features and then old ones, the offset and the center."""
        factors = np.array(factors, dtype=np.float64)
        sizes = factors.shape, np.shape(offset), np.shape(center)
        if not self.rank or sizes != (self._linear.shape, (self._to,), (self._from,)):
            raise ValueError("These factors do not fit this map: their sizes differ.")
        check_rows(factors, self._from + self._to)
        self._center = check_row(np.array(center), self._from)
        self._offset = check_row(np.array(offset), self._to)
        self._linear = self._rounded(factors)

    def _rounded(self, linear: Floats) -> npt.NDArray[Any]:
        kept = brief(linear) if self._brief else linear
        return kept.astype(self._linear.dtype, order="C")  # products depend on it to the bit

    @property
    def matrix(self) -> Floats:
        """M, with the offset as its last column."""
        linear = self._linear.astype(np.float64)
        if self.rank:
            linear = linear[:, self._from :].T @ linear[:, : self._from]
        return np.column_stack([linear, self._offset])

    @property
    def factors(self) -> Floats:
        """The factors; none where M is kept as it is."""
        none = np.empty((0, self._from + self._to))
        return self._linear.astype(np.float64) if self.rank else none

    @property
    def center(self) -> Floats:
        """The center."""
        return self._center.copy()

    def apply_into(self, z: Floats, x: Floats) -> None:
        """Map one row."""
        centred, linear = check_row(z, self._from) - self._center, self._linear.astype(np.float64)
        if self.rank:
            value = self._offset + (linear[:, : self._from] @ centred) @ linear[:, self._from :]
        else:
            value = self._offset + linear @ centred
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
        kept = self._linear.nbytes // (2 if self._brief else 1)
        return 8 * (self._from + self._to) + (kept + 7) // 8 * 8
