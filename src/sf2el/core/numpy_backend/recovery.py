"""The map from the new space to the old one, from normal equations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import check_row, check_rows, check_same_length
from sf2el.paper.kernels import LARGEST

Floats = npt.NDArray[np.float64]


class RecoveryMap:
    """Least squares from sums of products. See ``sf2el.maps.recovery.RecoveryMap``."""

    def __init__(self, new_dim: int, old_dim: int, ridge: float, intercept: bool) -> None:
        self._from, self._to, self._ridge, self._intercept = new_dim, old_dim, ridge, intercept
        self.matrix: Floats = np.zeros((new_dim, old_dim))  # Z'X, then the map
        self._normal: Floats = np.zeros((new_dim, new_dim))  # Z'Z
        self._from_sum = np.zeros(new_dim)
        self._to_sum = np.zeros(old_dim)
        self.rows = 0.0

    def observe(self, Z: Floats, X: Floats) -> None:
        """Take rows of the overlap: Z in the new space, X in the old."""
        Z, X = check_rows(Z, self._from), check_rows(X, self._to)
        check_same_length(len(Z), len(X))
        for z, x in zip(Z, X, strict=True):  # row by row, so that pieces add up to the same bits
            self.matrix = self.matrix + np.outer(z, x)
            self._normal = self._normal + np.outer(z, z)
            self._from_sum = self._from_sum + z
            self._to_sum = self._to_sum + x
            self.rows += 1.0

    def solve(self) -> None:
        """Solve for the map; the normal equations are used up."""
        if self.rows == 0.0:
            return
        if self._intercept:
            self._from_sum = self._from_sum / self.rows
            self._to_sum = self._to_sum / self.rows
            before = np.diagonal(self._normal)
            self._normal = self._normal - self.rows * np.outer(self._from_sum, self._from_sum)
            self.matrix = self.matrix - self.rows * np.outer(self._from_sum, self._to_sum)
            # What is left of a feature that never varied is rounding, and must not be scaled up.
            constant = ~(np.diagonal(self._normal) > 1e-12 * before)
            self._normal[constant, :] = 0.0
            self._normal[:, constant] = 0.0
            self.matrix[constant] = 0.0
        scale = float(np.trace(self._normal)) / self._from
        if not scale > 1e-290:  # nothing to learn from, or squares that have underflown
            self.matrix = np.zeros_like(self.matrix)
            return
        normal, cross = self._normal / scale, self.matrix / scale
        if self._ridge > 0.0:
            ridged = normal + self._ridge * np.eye(self._from)
            self.matrix = np.asarray(np.linalg.solve(ridged, cross), dtype=np.float64)
        else:
            values, vectors = np.linalg.eigh(normal)
            kept = values > 1e-13 * self._from * values[-1]
            inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
            self.matrix = (vectors * inverse) @ (vectors.T @ cross)
        self.matrix = np.clip(self.matrix, -1e200, 1e200)  # what a feature can be multiplied by

    def recover(self, Z: Floats) -> Floats:
        """Return what the old features would have read."""
        Z = check_rows(Z, self._from)
        out = np.empty((len(Z), self._to))
        for z, x in zip(Z, out, strict=True):
            self.recover_into(z, x)
        return out

    def recover_into(self, z: Floats, x: Floats) -> None:
        """Recover one row into ``x``."""
        z = check_row(z, self._from)
        if self._intercept:
            z = z - self._from_sum
        with np.errstate(over="ignore"):  # what overflows is clipped
            recovered = z @ self.matrix + (self._to_sum if self._intercept else 0.0)
        x[:] = np.clip(recovered, -LARGEST, LARGEST)

    def state(self) -> Floats:
        """Return everything kept, as one array, laid out as in the compiled core."""
        packed = self._normal[np.tril_indices(self._from)]
        return np.concatenate([self.matrix.ravel(), self._from_sum, self._to_sum, packed, [self.rows]])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        d, to = self._from, self._to
        matrix, from_sum, to_sum, packed, rows = np.split(state, np.cumsum([d * to, d, to, d * (d + 1) // 2]))
        self.matrix = matrix.reshape(d, to).copy()
        self._from_sum, self._to_sum, self.rows = from_sum.copy(), to_sum.copy(), float(rows[0])
        self._normal[np.tril_indices(d)] = packed
        self._normal = np.tril(self._normal) + np.tril(self._normal, -1).T
