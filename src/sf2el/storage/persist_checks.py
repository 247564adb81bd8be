"""Values of a file that is not trusted: what they must be, and in which form they are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.inputs.rows import LARGEST_FEATURE

Content = dict[str, Any]

MOST_ROWS = 1e15
"""Rows beyond which no model has lived."""


def whole(value: Any) -> int:
    """Return a count, or raise ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(f"{value!r} is no count")
    return value


def positive(value: Any) -> float:
    """Return a number of at least 0, or raise ValueError."""
    if not isinstance(value, (int, float)) or not 0.0 <= value < 1e300:
        raise ValueError(f"{value!r} is no size")
    return float(value)


def check_features(values: npt.NDArray[Any]) -> None:
    """Raise ValueError if a feature, or the mean of one, is beyond what a row may hold."""
    if np.any(np.abs(values) > LARGEST_FEATURE):
        raise ValueError("a feature in it is beyond what a row may hold")


def changed(settings: Any, usual: Any) -> Content:
    """Return the parameters that are not the usual ones."""
    return {name: value for name, value in vars(settings).items() if value != getattr(usual, name)}


def text(value: Any) -> str:
    """Return an expert's name, or raise ValueError."""
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError("an expert has no name")
    return value


def symmetric(packed: npt.NDArray[Any], n: int) -> npt.NDArray[np.float64]:
    """Return a symmetric matrix from its lower triangle."""
    full = np.zeros((n, n))
    rows, columns = np.tril_indices(n)
    full[rows, columns] = packed
    full[columns, rows] = packed  # set, not added: a zero keeps its sign
    return full
