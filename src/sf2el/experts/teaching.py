r"""What the experts of a space that opens are taught by those of the current one.

A row that has both spaces may have no label, but the old experts have an opinion of it, and the new ones know
nothing yet but how often each label was told. So they learn the label that the old ones think likeliest. It
counts by how sure these are of it, or by how much surer than anybody would be, whichever is less: with its
probability p, and p0 by how often each of k labels was told,

.. math:: \min (p - 1 / k, \; p - p_0) \, k / (k - 1), \qquad
    \text{of two labels } 2p - 1 = \tanh(z / 2) \approx z / \sqrt{4 + z^2}

with z the log odds. (The root in place of the hyperbolic tangent is rounded alike on every machine.) A number
that they guess counts a quarter of one that is told. That is worth most where the new features cannot tell
the old ones, and the new experts have to learn by themselves. What the old ones do not know they cannot
teach: after some labels, told or taught, only those that are told count. A label that comes late is learned
as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.experts.entries import FEW_LABELS
from sf2el.memory.giving_way import linear_of
from sf2el.model.space import Space

Floats = npt.NDArray[np.float64]

MOST_TAUGHT = 50
"""Labels of an opened space's experts, told or taught, after which they are taught no more."""

LEAST_SURE = 0.05
"""An opinion that counts less is none: it would only take the place of a row that says more."""

GUESSED = 0.25
"""How much a number counts that the old experts guess."""


def taught(
    space: Space, outputs: Floats, y: Floats, weights: Floats | None, told: list[int] | None
) -> tuple[Floats, Floats | None]:
    """Return labels and weights of rows for the experts of an opened space.

    ``outputs`` is what the experts of the current space say of each row: the log odds of the first label, the
    probability of each of several, or a number. ``told`` is how often each label was told before, none where
    labels weigh, None where they are numbers.
    """
    labels = linear_of(space).labels
    if labels >= MOST_TAUGHT or not np.isnan(y).any():
        return y, weights
    y, weights = y.copy(), np.ones(len(y)) if weights is None else weights.copy()
    told = None if told is None else list(told)
    for i, output in enumerate(outputs):
        if labels >= MOST_TAUGHT:
            break
        if np.isnan(y[i]):
            label, sure = guess(output) if told is None else opinion(output, told)
            if sure < LEAST_SURE:
                continue
            y[i], weights[i] = label, sure
        elif told:
            told[int(y[i]) if np.ndim(output) else int(y[i] < 0.0)] += 1
        labels += 1
    return y, weights


def guess(number: Any) -> tuple[float, float]:
    """Return a number, and how much it counts; experts that know nothing say 0.

    >>> guess(2.0), guess(0.0)
    ((2.0, 0.25), (0.0, 0.0))
    """
    return float(number), GUESSED if number else 0.0


def opinion(output: Any, told: Sequence[int] = ()) -> tuple[float, float]:
    """Return the label that an output speaks for, as experts are told it, and how much it counts.

    ``told`` is how often each label was; without it they are equally likely.

    >>> opinion(2.0)
    (1.0, 0.7071067811865475)
    >>> label, counts = opinion(2.0, [50, 10])    # the commoner label is hardly news
    >>> label, round(counts, 2)
    (1.0, 0.1)
    >>> opinion([0.25, 0.5, 0.25], [2, 2, 2])
    (1.0, 0.25)
    """
    seen = [count + FEW_LABELS for count in told or [0] * max(2, np.size(output))]
    if np.ndim(output):
        best, count = int(np.argmax(output)), len(output)
        known = max(1.0 / count, seen[best] / sum(seen))
        return float(best), (float(output[best]) - known) * count / (count - 1)
    odds, label = float(output), 1.0 if output > 0.0 else -1.0
    known = max(0.0, label * (seen[0] - seen[1]) / (seen[0] + seen[1]))
    return label, label * odds / sqrt(4.0 + odds * odds) - known
