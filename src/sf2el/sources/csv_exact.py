"""CSV read cell by cell: slow, and able to say which cell is wrong. The fast readings must agree with it."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from math import isinf, nan

import numpy as np

from sf2el.sources.block import LARGEST, MISSING, DataError, Floats, has_decimal_comma, shorten


@dataclass(frozen=True)
class Layout:
    """The columns of a CSV file: their names, the label's place, and the features' places."""

    name: str
    columns: tuple[str, ...]
    label: int
    features: tuple[int, ...]
    delimiter: str


@dataclass
class Cells:
    """A block's values, its label cells, and the error that ended it, if one did."""

    rows: Floats
    labels: list[str | None]
    lines: list[int] | None = None
    error: DataError | None = None


def decode(chunk: bytes, name: str, line: int) -> str:
    """Return bytes as text; DataError names the line that is not UTF-8."""
    try:
        return chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        where = line + chunk.count(b"\n", 0, error.start)
        raise DataError(
            f"{name}, line {where}: the byte 0x{chunk[error.start]:02x} is not UTF-8; save the file as UTF-8."
        ) from None


def read_exactly(chunk: bytes, layout: Layout, line: int) -> Cells:
    """Read a block. The rows before an error are returned with it.

    >>> layout = Layout("a.csv", ("x", "y"), 1, (0,), ",")
    >>> found = read_exactly(b"1,a\\n,b\\nz,c\\n", layout, 2)
    >>> found.rows.tolist(), found.labels
    ([[1.0], [nan]], ['a', 'b'])
    >>> print(found.error)
    a.csv, line 4, column 'x': 'z' is not a number; leave the cell empty where nothing was
    observed, or leave the column out with --ignore x.
    """
    error: DataError | None = None
    try:
        content = decode(chunk, layout.name, line)
    except DataError as found:
        error = found
        content = _before_bad_byte(chunk).decode("utf-8")
    rows: list[list[float]] = []
    labels: list[str | None] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=layout.delimiter, strict=True)
    at = line
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as wrong:
            error = DataError(f"{layout.name}, line {at}: {wrong}; correct the line.")
            break
        if cells is None:
            break
        start, at = at, line + reader.line_num
        if not cells:
            continue  # an empty line is no row
        try:
            rows.append(_values(cells, layout, start, last=not chunk.endswith(b"\n") and reader.line_num))
        except DataError as found:
            error = found
            break
        labels.append(cells[layout.label])
        lines.append(start)
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(layout.features))
    return Cells(values, labels, lines, error)


def _before_bad_byte(chunk: bytes) -> bytes:
    """Return the whole lines before the first byte that is not UTF-8."""
    try:
        chunk.decode("utf-8")
    except UnicodeDecodeError as error:
        return chunk[: chunk.rfind(b"\n", 0, error.start) + 1]
    return chunk


def _values(cells: list[str], layout: Layout, line: int, *, last: int) -> list[float]:
    if len(cells) != len(layout.columns):
        cut = "; the file seems to be cut off there" if last and len(cells) < len(layout.columns) else ""
        raise DataError(
            f"{layout.name}, line {line}: {len(cells)} cells for {len(layout.columns)} columns{cut}; "
            "correct or remove the line."
        )
    return [_value(cells[place], layout, place, line) for place in layout.features]


def _value(cell: str, layout: Layout, place: int, line: int) -> float:
    stripped = cell.strip()
    if stripped in MISSING:
        return nan
    column = layout.columns[place]
    where = f"{layout.name}, line {line}, column {column!r}"
    try:
        value = float("not" if "_" in stripped else stripped)
    except ValueError:
        advice = (
            "write numbers with a decimal point, not a comma"
            if has_decimal_comma(cell)
            else "leave the cell empty where nothing was observed"
        )
        raise DataError(
            f"{where}: {shorten(cell)} is not a number; {advice}, "
            f"or leave the column out with --ignore {column}."
        ) from None
    if isinf(value) or abs(value) > LARGEST:
        raise DataError(
            f"{where}: {shorten(cell)} is not within -1e100 to 1e100; clip it, or leave the cell empty."
        )
    return value
