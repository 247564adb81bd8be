"""Reading the published files, each in its own form, and saying in one sentence what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
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

CREDIT_LABELS = {"+": -1.0, "-": 1.0}
BINARY = {1.0: 1.0, 0.0: -1.0}
SIGNED = {1.0: 1.0, -1.0: -1.0}


Line = tuple[int, list[str]]
"""A line's number in its file, from 1, and its fields."""


def read_lines(path: Path) -> list[tuple[int, str]]:
    """Return the lines that are not blank with their numbers, whether they end in LF, CR LF or a bare CR."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DatasetDamaged(f"{path} is not a text file.") from None
    except OSError as error:
        raise DatasetDamaged(f"{path} cannot be read: {error.strerror}.") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise DatasetDamaged(f"{path} is empty.")
    return lines


def read_fields(path: Path, columns: int | None = None) -> list[Line]:
    """Return the comma-separated fields of each line; all must have ``columns``, or as many as the first."""
    lines = [(number, [field.strip() for field in line.split(",")]) for number, line in read_lines(path)]
    expected = len(lines[0][1]) if columns is None else columns
    for number, fields in lines:
        if len(fields) != expected:
            raise DatasetDamaged(f"{path}, line {number}, has {len(fields)} columns and not {expected}.")
    return lines


def numbers(path: Path, lines: Sequence[Line]) -> Floats:
    """Return the fields as finite numbers."""
    values = np.empty((len(lines), len(lines[0][1])))
    for row, (number, fields) in enumerate(lines):
        try:
            values[row] = [float(field) for field in fields]
        except ValueError:
            values[row] = np.nan
        if not np.isfinite(values[row].sum()):
            wrong = next((field for field in fields if not _is_finite(field)), None)
            if wrong is not None:
                raise DatasetDamaged(f"{path}, line {number}, has {wrong!r} and no finite number.")
    return values


def read_labelled(path: Path, features: int, labels: dict[str, float]) -> tuple[Floats, Floats]:
    """Return features and labels of a file without a header whose last column is the label.

    Used for Diabetes, HTRU_2 (whose lines end in a bare CR) and magic04 (whose label is a letter).
    """
    lines = read_fields(path, features + 1)
    for number, fields in lines:
        _check_known(path, number, fields[-1], labels)
    X = numbers(path, [(number, fields[:-1]) for number, fields in lines])
    return X, np.array([labels[fields[-1]] for _, fields in lines])


def read_credit(path: Path) -> tuple[Floats, Floats]:
    """Return features and labels of crx.data: complete rows only, nominal values as codes.

    The sign is that of the preprocessed file: ``+`` is -1 and ``-`` is +1.
    """
    lines: list[Line] = []
    y: list[float] = []
    for number, fields in read_fields(path, 16):
        label = fields.pop()
        _check_known(path, number, label, CREDIT_LABELS)
        if "?" in fields:
            continue
        for column, known in CREDIT_VALUES.items():
            _check_known(path, number, fields[column], known)
            fields[column] = str(known.index(fields[column]))
        lines.append((number, fields))
        y.append(CREDIT_LABELS[label])
    if not lines:
        raise DatasetDamaged(f"{path} has no complete row.")
    return numbers(path, lines), np.array(y)


def read_libsvm(path: Path, features: int) -> tuple[Floats, Floats]:
    """Return features and labels of a LIBSVM file (``label index:value ...``); what is not written is 0."""
    lines = read_lines(path)
    X, y = np.zeros((len(lines), features)), np.empty(len(lines))
    for row, (number, line) in enumerate(lines):
        label, *pairs = line.split()
        try:
            y[row] = SIGNED[float(label)]
            last = 0
            for pair in pairs:
                index, value = pair.split(":")
                if not last < int(index) <= features or not _is_finite(value):
                    raise ValueError
                last = int(index)
                X[row, last - 1] = float(value)
        except (KeyError, ValueError):
            raise DatasetDamaged(
                f"{path}, line {number}, is not a label +1 or -1 and index:value pairs from 1 to {features}."
            ) from None
    return X, y


def read_spaces(path: Path, old: str = "old_", new: str = "new_", order: str | None = None) -> Spaces:
    """Return both spaces, labels and orders of a CSV whose header tells the spaces apart.

    The header has ``old_1 .. old_d1``, ``new_1 .. new_d2`` and ``label``, with any prefixes, columns in any
    order. Labels are +1 / -1 or 1 / 0. Columns ``<order>1, <order>2, ...`` hold stream orders counted from 1.
    """
    table = read_fields(path)
    header = table[0][1]
    if len(table) < 2:
        raise DatasetDamaged(f"{path} has a header and no rows.")
    columns = {prefix: _numbered(header, prefix) for prefix in (old, new, order) if prefix}
    named = sum(map(len, columns.values())) + header.count("label")
    if named != len(header) or header.count("label") != 1 or not columns[old] or not columns[new]:
        raise DatasetDamaged(
            f"{path} must have the columns {old}1, {old}2, ..., {new}1, {new}2, ... and one column label, "
            f"and no others."
        )
    values = numbers(path, table[1:])
    y = _signs(path, values[:, header.index("label")])
    orders = _orders(path, values[:, columns[order]]) if order and columns[order] else None
    return Spaces(values[:, columns[old]], values[:, columns[new]], y, orders)


def _numbered(header: list[str], prefix: str) -> list[int]:
    pattern = re.compile(re.escape(prefix) + r"\d+")
    found = {name: place for place, name in enumerate(header) if pattern.fullmatch(name)}
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


def _check_known(path: Path, number: int, field: str, known: Collection[str]) -> None:
    if field not in known:
        raise DatasetDamaged(f"{path}, line {number}, has {field!r} and not one of {', '.join(known)}.")


def _is_finite(field: str) -> bool:
    try:
        return isfinite(float(field))
    except ValueError:
        return False
