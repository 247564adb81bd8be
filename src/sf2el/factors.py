"""A map as few factors: what of it matters for the rows that come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def factors_of(matrix: Floats, deviation: Floats, correlation: Floats, rank: int) -> Floats:
    r"""Return factors whose product is nearest to a matrix on rows that vary so.

    Each is a row, over what the matrix takes and then over what it gives. With S the covariance of rows, what
    the matrix gives varies most in the ``rank`` strongest directions U of M S M', and the rest is dropped:

    .. math:: M \approx U (U'M).

    >>> matrix = np.outer([1.0, 2.0, 0.0], [3.0, 0.0, 4.0]) + np.outer([0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    >>> factors = factors_of(matrix, np.ones(3), np.eye(3), 2)
    >>> bool(np.allclose(factors[:, 3:].T @ factors[:, :3], matrix))
    True
    """
    scaled = matrix * deviation  # no square of a deviation: features have any scale
    _, directions = np.linalg.eigh(scaled @ correlation @ scaled.T)
    strongest = directions[:, -rank:].T
    return np.hstack([strongest @ matrix, strongest])
