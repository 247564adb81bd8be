"""The Swiss spirals: two interleaved arms, the one dataset of the paper that can be generated."""

from __future__ import annotations

import numpy as np

from sf2el.datasets.dataset import Floats, Spaces, min_max
from sf2el.streams import TwoSpaceStream, stream_for

SPACE_SEED = 2
"""Seed of the points and of the one random matrix, for all runs.

A 2 x 3 matrix of Uniform(0, 1) entries can nearly lose a dimension, and then hides the arms from every
method; this one has condition number 2.5.
"""


def spirals(rows: int = 2000) -> tuple[Floats, Floats, Floats]:
    """Return both spaces' rows and the labels: 2 features, 3 features, +1 / -1 for the two arms.

    An arm has radius = angle = ``3 pi sqrt(U(.02, 1))``, the second one negated. The old space is scaled
    to [0, 1] over the whole set; the new one is the old one times a matrix drawn from Uniform(0, 1).

    >>> X1, X2, y = spirals()
    >>> X1.shape, X2.shape, float(y.sum())
    ((2000, 2), (2000, 3), 0.0)
    """
    rng = np.random.default_rng(SPACE_SEED)
    half = rows // 2
    angle = 3.0 * np.pi * np.sqrt(rng.uniform(0.02, 1.0, size=2 * half))
    arm = np.repeat([1.0, -1.0], half)
    points = arm[:, None] * np.column_stack([angle * np.cos(angle), angle * np.sin(angle)])
    X1 = min_max(points)
    X2 = X1 @ rng.uniform(0.0, 1.0, size=(2, 3))
    return X1, X2, arm


def swiss_stream(
    seed: int, *, label_rate: float = 0.3, overlap: int = 10, rows: int = 2000
) -> TwoSpaceStream:
    """Return the spirals as a stream in an order and with a label mask of its own for every seed.

    >>> stream = swiss_stream(seed=0)
    >>> stream.old.shape, stream.new.shape
    ((1000, 2), (1010, 3))
    """
    return stream_for(Spaces(*spirals(rows)), seed, label_rate, overlap)
