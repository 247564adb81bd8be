"""CSV files and pipes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from sf2el.sources.block import Block, DataError, Place, fingerprint, listed
from sf2el.sources.chunks import Chunks
from sf2el.sources.csv_exact import Cells, Layout, decode, read_exactly
from sf2el.sources.csv_fast import read_by_splitting
from sf2el.sources.labels import BadLabel, LabelReader

DELIMITERS = ",;\t|"
QUOTED = re.compile('"[^"]*"')


class CsvSource:
    """Rows of a CSV file with a header line; an empty cell means not observed.

    Parameters
    ----------
    file
        Opened for bytes.
    name
        What errors call it.
    label
        The label's column.
    ignore
        Columns to leave out.
    labels
        How label cells are read.
    size
        Bytes in all, where known.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        label: str,
        *,
        ignore: Sequence[str],
        labels: LabelReader,
        size: int | None,
    ) -> None:
        self.name, self.size, self.done = name, size, 0
        self._labels = labels
        self._chunks = Chunks(file, name, quoted=True)
        self._layout = layout_of(self._chunks.first_line(), name, label, ignore)
        self.columns = tuple(self._layout.columns[place] for place in self._layout.features)

    def close(self) -> None:
        """Close the file."""
        self._chunks.file.close()

    def blocks(self, start: Place | None = None) -> Iterator[Block]:
        """Yield blocks, from a place that an earlier block had, or from the first row."""
        chunks = self._chunks
        row = chunks.resume(start)
        if start is not None:
            self._labels.kind = start.kind
        for chunk, offset, line, tail in chunks:
            place = Place(row, line, offset, self._labels.kind, fingerprint(tail))
            cells = self._read(chunk, line)
            self.done = chunks.offset
            try:
                labels = self._labels.read(cells.labels)
            except BadLabel as bad:
                cells = cells if cells.lines else read_exactly(chunk, self._layout, line)
                assert cells.lines is not None
                where = f"line {cells.lines[bad.index]}, column {self._layout.columns[self._layout.label]!r}"
                cells.error = DataError(f"{self.name}, {where}: {bad.reason}.")
                cells.rows = cells.rows[: bad.index]
                labels = self._labels.read(cells.labels[: bad.index])
            if labels:
                yield Block(self.columns, cells.rows, labels, place)
            row += len(labels)
            if cells.error is not None:
                raise cells.error
        if not row:
            raise DataError(f"{self.name} has a header but no rows.")

    def _read(self, chunk: bytes, line: int) -> Cells:
        return read_by_splitting(chunk, self._layout) or read_exactly(chunk, self._layout, line)


def layout_of(header: bytes, name: str, label: str, ignore: Sequence[str]) -> Layout:
    """Return the columns that a header line names.

    >>> layout_of(b"x;y;z\\n", "a.csv", "z", ["x"])
    Layout(name='a.csv', columns=('x', 'y', 'z'), label=2, features=(1,), delimiter=';')
    """
    text = decode(header, name, 1).removeprefix("\ufeff").rstrip("\r\n")
    if not text.strip():
        raise DataError(f"{name} is empty; it needs a header line and rows.")
    delimiter = delimiter_of(text, name, label)
    if "\r" in QUOTED.sub("", text):
        raise DataError(f"{name}: its lines end with CR alone; save it with LF or CR LF line ends.")
    try:
        cells = next(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as wrong:
        raise DataError(f"{name}, line 1: {wrong}; correct the header.") from None
    columns = tuple(cell.strip() for cell in cells)
    seen: set[str] = set()
    for place, column in enumerate(columns):
        if column in seen:
            raise DataError(f"{name}: the header has two columns {column!r}; rename one of them.")
        if not column and column not in ignore:
            raise DataError(
                f"{name}: column {place + 1} of the header has no name; name it, or leave it out with "
                "--ignore ''."
            )
        seen.add(column)
    for wanted in (label, *ignore):
        if wanted not in seen:
            hint = "; its first line must name the columns" if all(map(_is_number, columns[:-1])) else ""
            raise DataError(f"{name} has no column {wanted!r}; its columns are {listed(columns)}{hint}.")
    if label in ignore:
        raise DataError(f"The column {label!r} cannot be both the label and ignored.")
    left_out = {label, *ignore}
    features = tuple(place for place, column in enumerate(columns) if column not in left_out)
    if not features:
        raise DataError(f"{name} has no column beside the label and those left out; it needs a feature.")
    return Layout(name, columns, columns.index(label), features, delimiter)


def delimiter_of(header: str, name: str, label: str) -> str:
    """Return what separates the cells: a tab in a .tsv file, else what sets the label's column apart.

    Where several marks do, or none, it is the one that is most often outside quotes.

    >>> delimiter_of('"temp, C";hum;state', "a.csv", "state")
    ';'
    >>> delimiter_of("temp, C\\tstate", "a.tsv", "state")
    '\\t'
    >>> delimiter_of("cpu|user|percent,state", "a.csv", "state")
    ','
    """
    outside = QUOTED.sub("", header)
    if name.lower().endswith(".tsv") and "\t" in outside:
        return "\t"
    apart = [mark for mark in DELIMITERS if label in (cell.strip(' "') for cell in header.split(mark))]
    return max(apart or DELIMITERS, key=outside.count)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
