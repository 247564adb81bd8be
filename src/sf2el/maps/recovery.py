"""The map that recovers the old features from the new."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core import native
from sf2el.inputs.parameters import check_flag, check_range, check_whole, plain_number

Floats = npt.NDArray[np.float64]


class RecoveryMap:
    r"""The map :math:`\psi` from the new space to the old, fitted on the rows that had both.

    .. math:: M = (Z'Z + r I)^{-1} Z'X, \qquad r = ridge \cdot tr(Z'Z) / d_2, \qquad \psi(z) = z M,

    from the sums Z'Z and Z'X alone: no row is stored. Time O(d2 (d1 + d2)) an overlap row and
    O(d2^2 (d1 + d2)) once; memory d1 d2 numbers, and d2^2 / 2 more until it is solved.

    Parameters
    ----------
    new_dim, old_dim
        d2 and d1, the numbers of features.
    ridge
        Share of the mean diagonal of Z'Z; 0 gives plain least squares, of least norm.
    intercept
        Whether the map has a constant part.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 2))
    >>> Z = X @ rng.normal(size=(2, 3))
    >>> psi = RecoveryMap(3, 2, ridge=1e-9)
    >>> psi.observe(Z, X)
    >>> psi.solve()
    >>> bool(np.allclose(psi.recover(Z), X, atol=1e-4))
    True
    """

    def __init__(
        self,
        new_dim: int,
        old_dim: int,
        *,
        ridge: float = 1e-3,
        intercept: bool = False,
    ) -> None:
        new_dim, old_dim, ridge = map(plain_number, (new_dim, old_dim, ridge))
        check_range("ridge", ridge, least=0.0)
        check_flag("intercept", intercept)
        check_whole("new_dim", new_dim, 1, 1 << 24)
        check_whole("old_dim", old_dim, 1, 1 << 24)
        self._solved = False
        self.new_dim, self.old_dim = new_dim, old_dim
        self.core: Any = native().RecoveryMap(new_dim, old_dim, float(ridge), intercept)

    def observe(self, Z: npt.ArrayLike, X: npt.ArrayLike) -> None:
        """Take rows of the overlap: Z in the new space, X in the old."""
        self._check_open()
        self.core.observe(
            np.ascontiguousarray(Z, dtype=np.float64), np.ascontiguousarray(X, dtype=np.float64)
        )

    def solve(self) -> None:
        """Solve for the map. Call it once, when the overlap is over."""
        self._check_open()
        self.core.solve()
        self._solved = True

    def _check_open(self) -> None:
        if self._solved:
            raise ValueError("This map is solved, and its sums are used up; start a new one.")

    def recover(self, Z: npt.ArrayLike) -> Floats:
        """Return what the old features would have read on the rows Z."""
        rows: Floats = self.core.recover(np.ascontiguousarray(Z, dtype=np.float64))
        return rows

    @property
    def matrix(self) -> Floats:
        """The map M, new_dim x old_dim."""
        return np.asarray(self.core.matrix, dtype=np.float64)


def map_bytes(new_dim: int, old_dim: int) -> int:
    """Return the bytes of a recovery map with its normal equations."""
    return 8 * (new_dim * old_dim + new_dim + old_dim + new_dim * (new_dim + 1) // 2 + 1)
