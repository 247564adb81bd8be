r"""What the experts of a space that opens are taught by those of the current one.

A row that has both spaces may have no label, but the old experts have an opinion of it, and the new ones know
nothing yet. So they learn what the old ones say, as a label that counts as much as these are sure of it: with
the probability p of the likelier of two labels

.. math:: 2p - 1 = \tanh(|z| / 2) \approx |z| / \sqrt{4 + z^2}, \qquad z \text{ the log odds},

and of the likeliest of k labels (kp - 1) / (k - 1). (The root in place of the hyperbolic tangent is rounded
alike on every machine.) A number that they guess counts a quarter of one that is told. That is worth most
where the new features cannot tell the old ones, and the new experts have to learn by themselves. What the old
ones do not know they cannot teach: after some labels, told or taught, only those that are told count.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.bank.giving_way import linear_of
from sf2el.space import Space

Floats = npt.NDArray[np.float64]

MOST_TAUGHT = 50
"""Labels of an opened space's experts, told or taught, after which they are taught no more."""

LEAST_SURE = 0.05
"""An opinion that counts less is none: it would only take the place of a row that says more."""

GUESSED = 0.25
"""How much a number counts that the old experts guess."""


def taught(
    space: Space, outputs: Floats, y: Floats, weights: Floats | None, *, numbers: bool
) -> tuple[Floats, Floats | None]:
    """Return labels and weights of rows for the experts of an opened space.

    ``outputs`` is what the experts of the current space say of each row: the log odds of the first label, the
    probability of each of several, or a number.
    """
    labels = linear_of(space).labels
    if labels >= MOST_TAUGHT or not np.isnan(y).any():
        return y, weights
    y, weights = y.copy(), np.ones(len(y)) if weights is None else weights.copy()
    for i, output in enumerate(outputs):
        if np.isnan(y[i]):
            label, sure = opinion(output, numbers=numbers)
            if labels >= MOST_TAUGHT or sure < LEAST_SURE:
                continue
            y[i], weights[i] = label, sure
        labels += 1
    return y, weights


def opinion(output: Any, *, numbers: bool = False) -> tuple[float, float]:
    """Return the label that an output speaks for, as experts are told it, and how much it counts.

    Experts that know nothing say 0.

    >>> opinion(2.0), opinion(0.0)
    ((1.0, 0.7071067811865475), (-1.0, 0.0))
    >>> opinion([0.25, 0.5, 0.25])
    (1.0, 0.25)
    >>> opinion(2.0, numbers=True), opinion(0.0, numbers=True)
    ((2.0, 0.25), (0.0, 0.0))
    """
    if np.ndim(output):
        best, count = int(np.argmax(output)), len(output)
        return float(best), (count * float(output[best]) - 1.0) / (count - 1)
    said = float(output)
    if numbers:
        return said, GUESSED if said else 0.0
    return 1.0 if said > 0.0 else -1.0, abs(said) / sqrt(4.0 + said * said)
