"""Online scaling of features, without look-ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core import native
from sf2el.inputs.parameters import check_whole, plain_number

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


def scaler_bytes(dim: int, precision: str = "float64") -> int:
    """Return the bytes of the running statistics of each feature of a space; means are always of 8 bytes.

    >>> scaler_bytes(10), scaler_bytes(10, "float32")
    (240, 160)
    """
    real = 8 if precision == "float64" else 4
    return (8 + 2 * real) * dim
