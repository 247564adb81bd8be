r"""A second linear expert, to which a feature counts by how evenly it varies.

Scaled features all vary as much. But one may do so in most rows, as one that is either 0 or 1, and another in
a few rows that are far out. What a label tells of such a row it tells of few others. So before there are
labels the slope of a feature is thought to be smaller, the more of its variance comes from few rows: scaled
values z are multiplied by

.. math:: s_j \propto 1 / \sqrt{E[z_j^4]}, \qquad \text{mean of } s_j^2 = 1

Where few labels are known that is often the better guess, and often not: both linear experts share one
weight, and labels decide between them. Unlabelled rows tell :math:`E[z_j^4]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sf2el.experts.entries import EVEN, LINEAR, entry_of
from sf2el.model.space import GAUSSIAN, Space

if TYPE_CHECKING:
    from sf2el.model.stage import Stage

Floats = npt.NDArray[np.float64]

WIDEST_EVEN = 32
"""Features up to which a second linear expert is worth its covariance."""

THOUGHT = 10.0
"""Rows as if seen beforehand, of Gaussian features."""


def pays_evenness(space: Space) -> bool:
    """Whether a space can tell how evenly its features vary, and a linear expert more is worth its bytes."""
    return space.moments is not None and space.dim <= WIDEST_EVEN


def even_of(space: Space) -> list[Any]:
    """Return the experts of a space to which features count by how evenly they vary."""
    return [seat for seat in space.seats if seat.name.startswith(EVEN)]


def beside_linear(space: Space, seats: list[Any], even: Any) -> list[Any]:
    """Return a space's experts with this one behind the linear one; the space keeps what it needs."""
    space.keep_fourths(True)
    at = next(i for i, seat in enumerate(seats) if entry_of(seat) is LINEAR)
    return [*seats[: at + 1], even, *seats[at + 1 :]]


def weigh(stage: Stage) -> None:
    """Let features count by how evenly they have varied by now."""
    space = stage.current
    found = even_of(space)
    if found and space.moments is not None and len(space.moments.fourths):
        factors = evenness(np.asarray(space.moments.fourths), space.moments.count, space.divisor)
        for seat in found:
            seat.turn(factors[None, :])


def evenness(fourths: Floats, rows: float, divisor: float = 1.0) -> Floats:
    """Return by what each feature is multiplied, from the mean fourth powers of scaled values over a divisor.

    >>> evenness(np.array([1.0, 3.0, 30.0]), 1000.0).round(2)
    array([1.48, 0.86, 0.27])
    >>> evenness(np.array([1.0, 3.0, 30.0]), 1.0).round(2)      # one row tells little
    array([1.11, 1.07, 0.79])
    """
    powers = (rows * fourths * divisor**4 + THOUGHT * GAUSSIAN) / (rows + THOUGHT)
    factors = 1.0 / np.sqrt(np.maximum(powers, 1.0))  # below 1 are only features that stood still
    return np.asarray(factors / np.sqrt(np.mean(factors**2)))
