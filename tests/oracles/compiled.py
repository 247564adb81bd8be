"""Compiled experts for an oracle's settings, and streams to run both on."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from sf2el.core import _native

OUTPUTS = {"binary": 1, "classes": 3, "regression_squared": 1, "regression_absolute": 1}
TASKS = list(OUTPUTS)


def posterior(s, precision="float64", keep_inverse=True):
    """The compiled expert with these settings."""
    return _native.posterior(**asdict(s), precision=precision, keep_inverse=keep_inverse, variant="auto")


def stream(task, rounds, dim=3, seed=0, labelled=0.7):
    """Rows of about unit length, labels that a line and a wave tell, NaN where there is none, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, dim)) / np.sqrt(dim)
    value = np.sin(3.0 * X[:, 0]) + X[:, -1] + 0.1 * rng.normal(size=rounds)
    y = {"binary": np.where(value > 0, 1.0, -1.0), "classes": np.digitize(value, [-0.4, 0.4]).astype(float)}
    labels = np.where(rng.random(rounds) < labelled, y.get(task, value), np.nan)
    return X, labels, rng.uniform(0.3, 3.0, rounds)
