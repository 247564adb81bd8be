"""What is learned, seen from the scores: two classes, several (one against the rest), or a number."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import check_labels
from sf2el.paper.kernels import exp_or_zero

Floats = npt.NDArray[np.float64]

MOST_MARGIN = 8.0
MOST_RISK = 8.0


def sigmoid(z: Floats) -> Floats:
    """Logistic function, without overflow."""
    e = exp_or_zero(-np.abs(z))
    return np.asarray(np.where(z > 0.0, 1.0, e) / (1.0 + e))


def clipped_sigmoid(scores: Floats) -> Floats:
    """Logistic function of the margin up to which an expert's certainty counts."""
    return sigmoid(np.clip(scores, -MOST_MARGIN, MOST_MARGIN))


def is_classification(task: str) -> bool:
    """Whether the labels are classes."""
    return task in ("binary", "classes")


def targets(task: str, outputs: int, y: float) -> Floats:
    """1 for the output that stands for the label, else 0."""
    if task == "binary":
        return np.array([float(y > 0.0)])
    return np.array(np.arange(outputs) == y, dtype=np.float64)


def risk_of(task: str, scores: Floats, y: float) -> float:
    """Return the risk of a labelled row, from its scores before the update."""
    if task == "binary":
        margin = float(np.clip(scores[0], -MOST_MARGIN, MOST_MARGIN)) * (-1.0 if y > 0.0 else 1.0)
        return float(np.logaddexp(0.0, margin))
    if task == "classes":
        each = clipped_sigmoid(scores)
        return min(log(float(each.sum()) / float(each[int(y)])), MOST_RISK)
    miss = y - float(scores[0])
    return miss * miss if task == "regression_squared" else abs(miss)


def check_task_labels(task: str, outputs: int, labels: npt.ArrayLike) -> Floats:
    """Return labels as float64 (NaN: unlabelled), or raise ValueError."""
    y = check_labels(labels)
    if task == "classes" and not np.all(np.isnan(y) | ((y >= 0) & (y < outputs) & (y == np.floor(y)))):
        raise ValueError(f"A label must be a class from 0 to {outputs - 1}, or NaN for an unlabelled row.")
    return y
