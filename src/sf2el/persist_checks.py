"""Values of a file that is not trusted: what they must be, and in which form they are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Content = dict[str, Any]


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
