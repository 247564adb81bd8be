"""Reading the published files, each in its own form, and saying in one sentence what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from sf2el.datasets.dataset import DatasetDamaged, Floats, Orders, Spaces

CREDIT_VALUES: dict[int, tuple[str, ...]] = {
    0: ("b", "a"),
    3: ("u", "y", "l", "t"),
    4: ("g", "p", "gg"),
    5: ("c", "d", "cc", "i", "j", "k", "m", "r", "q", "w", "x", "e", "aa", "ff"),
    6: ("v", "h", "bb", "j", "n", "z", "dd", "ff", "o"),
    8: ("t", "f"),
    9: ("t", "f"),
    11: ("t", "f"),
    12: ("g", "p", "s"),
}
"""Nominal columns of crx.data: their values in the order of crx.names, which are coded 0, 1, 2, ..."""

BINARY = {1.0: 1.0, 0.0: -1.0}
SIGNED = {1.0: 1.0, -1.0: -1.0}


def read_lines(path: Path) -> list[str]:
    """Return the lines that are not blank, whether they end in LF, CR LF or a bare CR."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DatasetDamaged(f"{path} is not a text file.") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise DatasetDamaged(f"{path} is empty.")
    return lines


def read_fields(path: Path, columns: int | None = None) -> list[list[str]]:
    """Return the comma-separated fields of each line; all must have as many columns as said, or as the first."""
    rows = [[field.strip() for field in line.split(",")] for line in read_lines(path)]
    expected = len(rows[0]) if columns is None else columns
    for number, row in enumerate(rows, start=1):
        if len(row) != expected:
            raise DatasetDamaged(f"{path} has {len(row)} columns in line {number} where {expected} are expected.")
    return rows


def numbers(path: Path, rows: Sequence[Sequence[str]], first_line: int = 1) -> Floats:
    """Return the fields as finite numbers."""
    values = np.empty((len(rows), len(rows[0])))
    for index, row in enumerate(rows):
        try:
            values[index] = [float(field) for field in row]
        except ValueError:
            wrong = next(field for field in row if not _is_finite(field))
            raise DatasetDamaged(f"{path} has {wrong!r} in line {first_line + index}, which is no number.") from None
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise DatasetDamaged(f"{path} has a value that is not finite in line {first_line + int(bad[0])}.")
    return values


def read_labelled(path: Path, features: int, labels: dict[str, float]) -> tuple[Floats, Floats]:
    """Return features and labels of a file without a header whose last column is the label.

    Used for Diabetes, HTRU_2 (whose lines end in a bare CR) and magic04 (whose label is a letter).
    """
    rows = read_fields(path, features + 1)
    for number, row in enumerate(rows, start=1):
        if row[-1] not in labels:
            raise DatasetDamaged(
                f"{path} has the label {row[-1]!r} in line {number}; expected {' or '.join(labels)}."
            )
    return numbers(path, [row[:-1] for row in rows]), np.array([labels[row[-1]] for row in rows])


def read_credit(path: Path) -> tuple[Floats, Floats]:
    """Return features and labels of crx.data: complete rows only, nominal values as codes.

    The sign is that of the preprocessed file: ``+`` (approved) is -1 and ``-`` is +1.
    """
    rows: list[list[str]] = []
    y: list[float] = []
    for number, row in enumerate(read_fields(path, 16), start=1):
        if row[-1] not in "+-" or not row[-1]:
            raise DatasetDamaged(f"{path} has the label {row[-1]!r} in line {number}; expected + or -.")
        if "?" in row:
            continue
        for column, known in CREDIT_VALUES.items():
            if row[column] not in known:
                raise DatasetDamaged(
                    f"{path} has {row[column]!r} in column {column + 1} of line {number}; "
                    f"expected one of {', '.join(known)}."
                )
            row[column] = str(known.index(row[column]))
        rows.append(row[:-1])
        y.append(-1.0 if row[-1] == "+" else 1.0)
    if not rows:
        raise DatasetDamaged(f"{path} has no complete row.")
    return numbers(path, rows), np.array(y)


def read_libsvm(path: Path, features: int) -> tuple[Floats, Floats]:
    """Return features and labels of a LIBSVM file (``label index:value ...``); what is not written is 0."""
    lines = read_lines(path)
    X, y = np.zeros((len(lines), features)), np.empty(len(lines))
    for row, line in enumerate(lines):
        label, *pairs = line.split()
        try:
            y[row] = SIGNED[float(label)]
            last = 0
            for pair in pairs:
                index, value = pair.split(":")
                if not last < int(index) <= features or not isfinite(float(value)):
                    raise ValueError
                last = int(index)
                X[row, last - 1] = float(value)
        except (KeyError, ValueError):
            raise DatasetDamaged(
                f"{path}, line {row + 1}, is not '+1 or -1, then index:value pairs' with indices from 1 to {features}."
            ) from None
    return X, y


def read_spaces(path: Path, old: str = "old_", new: str = "new_", order: str | None = None) -> Spaces:
    """Return both spaces, labels and orders of a CSV whose header tells the spaces apart.

    The header has ``old_1 .. old_d1``, ``new_1 .. new_d2`` and ``label``, with any prefixes, columns in any
    order. Labels are +1 / -1 or 1 / 0. Columns ``<order>1, <order>2, ...`` hold stream orders counted from 1.
    """
    table = read_fields(path)
    header = table[0]
    if len(table) < 2:
        raise DatasetDamaged(f"{path} has a header and no rows.")
    columns = {prefix: _numbered(header, prefix) for prefix in (old, new, order) if prefix}
    named = sum(map(len, columns.values())) + header.count("label")
    if named != len(header) or header.count("label") != 1 or not columns[old] or not columns[new]:
        raise DatasetDamaged(
            f"{path} must have the columns {old}1, {old}2, ..., {new}1, {new}2, ... and one column label, "
            f"and no others."
        )
    values = numbers(path, table[1:], first_line=2)
    y = _signs(path, values[:, header.index("label")])
    orders = _orders(path, values[:, columns[order]]) if order and columns[order] else None
    return Spaces(values[:, columns[old]], values[:, columns[new]], y, orders)


def _numbered(header: list[str], prefix: str) -> list[int]:
    found = {name: place for place, name in enumerate(header) if re.fullmatch(re.escape(prefix) + r"\d+", name)}
    wanted = [f"{prefix}{number}" for number in range(1, len(found) + 1)]
    return [found[name] for name in wanted] if found.keys() == set(wanted) else []


def _signs(path: Path, labels: Floats) -> Floats:
    for coding in (SIGNED, BINARY):
        if set(labels.tolist()) == coding.keys():
            return np.array([coding[label] for label in labels.tolist()])
    raise DatasetDamaged(f"{path} must have labels of two classes, +1 and -1 or 1 and 0.")


def _orders(path: Path, columns: Floats) -> Orders:
    orders = columns.T.astype(np.int64) - 1
    if not np.array_equal(np.sort(orders, axis=1), np.broadcast_to(np.arange(len(columns)), orders.shape)):
        raise DatasetDamaged(f"{path} has a stream order that does not name every row once.")
    return orders


def _is_finite(field: str) -> bool:
    try:
        return isfinite(float(field))
    except ValueError:
        return False
