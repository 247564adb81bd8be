"""The map from the new features to the old."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]


class ReferenceMap:
    r"""The map :math:`\psi(z) = z M` from the new space to the old, by ridge least squares.

    .. math:: M = (Z'Z + r I)^{-1} Z'X, \qquad r = ridge \cdot tr(Z'Z) / d_2,

    from these sums alone; no row is stored. With an intercept the same of centred rows. Without ridge it is
    the solution of least norm.

    Time O(d2 (d1 + d2)) a row and O(d2^2 (d1 + d2)) to solve, memory O(d2 (d1 + d2)).

    Parameters
    ----------
    new_dim, old_dim
        d2 and d1, the numbers of features.
    ridge
        Share of the mean diagonal of Z'Z.
    intercept
        Whether the map has a constant part.

    Examples
    --------
    >>> psi = ReferenceMap(1, 1, ridge=0.0, intercept=True)
    >>> for z in (0.0, 1.0, 2.0):
    ...     psi.observe(np.array([z]), np.array([3.0 * z + 1.0]))
    >>> psi.solve()
    >>> psi.recover(np.array([5.0])).round(6)
    array([16.])
    """

    def __init__(self, new_dim: int, old_dim: int, *, ridge: float = 1e-3, intercept: bool = False) -> None:
        self.ridge, self.intercept, self.count = ridge, intercept, 0
        self.matrix: Floats = np.zeros((new_dim, old_dim))
        self._zz, self._zx = np.zeros((new_dim, new_dim)), np.zeros((new_dim, old_dim))
        self._z_mean, self._x_mean = np.zeros(new_dim), np.zeros(old_dim)

    def observe(self, z: Floats, x: Floats) -> None:
        """Take in a round of the overlap: z in the new space, x in the old one."""
        self.count += 1
        self._zz, self._zx = self._zz + np.outer(z, z), self._zx + np.outer(z, x)
        if self.intercept:
            self._z_mean = self._z_mean + (z - self._z_mean) / self.count
            self._x_mean = self._x_mean + (x - self._x_mean) / self.count

    def solve(self) -> None:
        """Fit M to the rounds so far."""
        zz = self._zz - self.count * np.outer(self._z_mean, self._z_mean)
        zx = self._zx - self.count * np.outer(self._z_mean, self._x_mean)
        # A feature that never varied leaves nothing but rounding, which must not be scaled up.
        constant = np.diagonal(zz) <= 1e-12 * np.diagonal(self._zz)
        zz[constant, :] = zz[:, constant] = 0.0
        zx[constant] = 0.0
        d2 = len(zz)
        if not np.trace(zz) > 0.0:
            self.matrix = np.zeros_like(zx)
        elif self.ridge > 0.0:
            self.matrix = np.linalg.solve(zz + self.ridge * np.trace(zz) / d2 * np.eye(d2), zx)
        else:
            self.matrix = np.linalg.pinv(zz, rcond=1e-13 * d2, hermitian=True) @ zx

    def recover(self, z: Floats) -> Floats:
        """Return what the old features would have read."""
        return np.asarray((z - self._z_mean) @ self.matrix + self._x_mean)
