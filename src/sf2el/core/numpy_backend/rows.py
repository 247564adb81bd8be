"""Input checks of the NumPy backend, with the sentences of the compiled one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LARGEST_FEATURE = 1e100


def check_row(row: Floats, dim: int) -> Floats:
    """Return one row as float64, or raise ValueError before anything is changed."""
    return _check(row, dim, 1)


def check_rows(rows: Floats, dim: int) -> Floats:
    """Return a table of rows as float64, or raise ValueError before anything is changed."""
    return _check(rows, dim, 2)


def check_known(rows: Floats, dim: int, axes: int) -> Floats:
    """Return rows in which NaN stands for a value that was not observed, or raise ValueError."""
    rows = _shaped(rows, dim, axes)
    if np.any(np.abs(rows) > LARGEST_FEATURE):
        raise ValueError(
            "An array row holds infinity or a value beyond 1e100; clean or clip it before passing it on."
        )
    return rows


def _check(rows: Floats, dim: int, axes: int) -> Floats:
    rows = _shaped(rows, dim, axes)
    if not np.all(np.abs(rows) <= LARGEST_FEATURE):
        raise ValueError(
            "An array row holds NaN, infinity or a value beyond 1e100; clean or clip it before passing it on."
        )
    return rows


def _shaped(rows: Floats, dim: int, axes: int) -> Floats:
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != axes:
        raise ValueError(f"Pass an array of {axes} dimensions here, not of {rows.ndim}.")
    if rows.shape[-1] != dim:
        raise ValueError(
            f"This row has {rows.shape[-1]} values, but this learner's space has {dim} features; "
            "pass rows of that width."
        )
    return rows


def check_labels(labels: npt.ArrayLike) -> Floats:
    """Return labels as float64 (NaN: unlabelled), or raise ValueError."""
    y = np.asarray(labels, dtype=np.float64)
    if not np.all(np.isnan(y) | (np.abs(y) <= LARGEST_FEATURE)):
        raise ValueError("A label is infinite or beyond 1e100; use NaN for an unlabelled row.")
    return y


def check_late_label(label: float) -> None:
    """Raise ValueError unless there is a label."""
    if np.isnan(check_labels(label)):
        raise ValueError("A late label cannot be NaN.")


def check_weights(weights: npt.ArrayLike) -> Floats:
    """Return the weights of rows as float64, or raise ValueError."""
    by = np.asarray(weights, dtype=np.float64)
    if not np.all((by > 0.0) & (by <= LARGEST_FEATURE)):
        raise ValueError("A weight must be above 0 and at most 1e100.")
    return by


def check_same_length(rows: int, entries: int) -> None:
    """Raise ValueError unless there is one entry for each row."""
    if rows != entries:
        raise ValueError(f"There are {rows} rows but {entries} entries beside them; pass one for each row.")


def gather(row: dict[Any, Any], names: tuple[Any, ...], out: Floats) -> bool:
    """Fill ``out`` with the row's values in the order of ``names``.

    False, with ``out`` in any state, unless the row has exactly these keys and a finite number below
    1e100 for each: the caller then finds out what is the matter.
    """
    return gather_gaps(row, names, out) == 0


def gather_gaps(row: dict[Any, Any], names: tuple[Any, ...], out: Floats) -> int:
    """Fill ``out`` likewise, with NaN where there is no value, and return how many there are not.

    -1 if the row has another key, no value at all, or one that is not a finite number below 1e100.
    """
    if not row.keys() <= set(names):
        return -1
    gaps = 0
    for i, name in enumerate(names):
        value = row.get(name)
        value = float("nan") if value is None else value
        if not isinstance(value, (float, int)) or abs(value) > LARGEST_FEATURE:
            return -1
        out[i] = value
        gaps += value != value
    return -1 if gaps == len(names) else gaps
