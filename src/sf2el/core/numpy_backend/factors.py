r"""A map as few factors: what of it matters for the rows that come.

With S the covariance of rows, what a matrix M gives varies most in the strongest directions U of M S M', and
the rest is dropped:

.. math:: M \approx U (U'M).

No other factors, as many, are nearer to M on such rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def factors(matrix: Floats, deviation: Floats, correlation: Floats, rank: int) -> Floats:
    """Return so many factors, each a row over what the matrix takes and then over what it gives."""
    scaled = matrix * deviation  # no square of a deviation: features have any scale
    _, directions = np.linalg.eigh(scaled @ correlation @ scaled.T)
    strongest = directions[:, -rank:].T
    return np.hstack([strongest @ matrix, strongest])
