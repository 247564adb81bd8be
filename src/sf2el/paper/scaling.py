"""Online scaling of features, without look-ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core import native
from sf2el.memory.budget import scaler_bytes
from sf2el.paper.kernels import plain_number
from sf2el.paper.settings import check_whole

Floats = npt.NDArray[np.float64]


class Scaler:
    r"""Running mean and variance of every feature, the current row included.

    .. math:: x_s = clip((x - mean) / sd, -5, 5) / \sqrt{d}

    and 0 where sd is 0. From the eleventh row on, a value further than twenty deviations from the mean of
    those before it enters the statistics as if it were twenty away: one wrong reading spoils no feature.
    Dividing by :math:`\sqrt d` keeps the squared distance of two rows near 2 whatever the number of features,
    so that one kernel width suits them all.
    Time and memory O(d).

    Examples
    --------
    >>> scaler = Scaler(1)
    >>> scaler.scale_many([[1.0], [3.0], [2.0]]).ravel().round(3)
    array([0., 1., 0.])
    """

    def __init__(self, dim: int) -> None:
        dim = plain_number(dim)
        check_whole("dim", dim, 1, 1 << 24)
        self.dim = dim
        self.core: Any = native().Scaler(dim)

    def scale_many(self, X: npt.ArrayLike, *, keep: bool = True) -> Floats:
        """Scale rows in turn, each by the rows up to itself; with ``keep`` they stay in the statistics."""
        rows: Floats = self.core.scale_many(np.ascontiguousarray(X, dtype=np.float64), keep)
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes of the statistics."""
        return scaler_bytes(self.dim)

