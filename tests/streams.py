"""Small streams and comparisons that several tests share."""

from __future__ import annotations

import numpy as np

from sf2el.paper.kernels import RBF, Constant, Laplacian, Linear, Polynomial

KERNELS = {
    "rbf": RBF(0.7),
    "laplacian": Laplacian(0.5),
    "polynomial": Polynomial(degree=3, gamma=0.3, offset=0.5),
    "linear": Linear(),
    "constant": Constant(0.8),
    "rbf+constant": RBF(0.7) + Constant(0.3),
    "laplacian+linear": Laplacian(0.5) + Linear(),
    "four": RBF(0.7) + Laplacian(0.2) + Polynomial(degree=2, gamma=0.2) + Constant(0.1),
}

LOSSES = ("logistic", "hinge", "squared_hinge", "squared", "absolute")


def stream(rounds, dim=3, seed=0, labelled=0.4):
    """Two noisy, overlapping classes; labels are +1 / -1, NaN where none is revealed."""
    rng = np.random.default_rng(seed)
    classes = rng.choice([-1.0, 1.0], rounds)
    X = rng.normal(size=(rounds, dim))
    X[:, 0] += 0.8 * classes
    return X, np.where(rng.random(rounds) < labelled, classes, np.nan)


def same_state(a, b):
    """Whether two learner states hold the same bits."""
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def taken_slot(before, after):
    """Which slot the arriving row got: ``n`` if appended, None if skipped."""
    n = len(before["beta"])
    if len(after["beta"]) > n:
        return n
    changed = np.flatnonzero(np.any(before["rows"] != after["rows"], axis=1))
    assert len(changed) <= 1
    return int(changed[0]) if len(changed) else None
