"""Parquet files, by polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from sf2el.sources.block import LARGEST, TAIL, Block, DataError, Label, Place, fingerprint, listed
from sf2el.sources.labels import BadLabel, LabelReader

ROWS = 1 << 16


class ParquetSource:
    """Rows of a Parquet file; null and NaN mean not observed."""

    def __init__(self, path: Path, label: str, *, ignore: Sequence[str], labels: LabelReader) -> None:
        try:
            import polars as pl
        except ImportError:
            raise ImportError("Parquet needs polars: pip install 'sf2el[data]'.") from None
        self.name, self.done = str(path), 0
        self._labels, self._label = labels, label
        with path.open("rb") as file:
            length = file.seek(0, 2)
            file.seek(max(0, length - TAIL))
            self._tail = fingerprint(file.read() + str(length).encode())
        try:
            self._frame = pl.scan_parquet(path, glob=False)
            schema = self._frame.collect_schema()
            self.size: int | None = int(self._frame.select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError) as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"{path} is not a whole Parquet file: {reason}.") from None
        columns = tuple(schema.names())
        for wanted in (label, *ignore):
            if wanted not in columns:
                raise DataError(f"{path} has no column {wanted!r}; its columns are {listed(columns)}.")
        if label in ignore:
            raise DataError(f"The column {label!r} cannot be both the label and ignored.")
        left_out = {label, *ignore}
        self.columns = tuple(column for column in columns if column not in left_out)
        if not self.columns:
            raise DataError(f"{path} has no column beside the label and those left out; it needs a feature.")
        for column in self.columns:
            kind = schema[column]
            if not (kind.is_numeric() or kind == pl.Boolean or kind == pl.Null):
                raise DataError(
                    f"{path}, column {column!r}: it holds {kind}, not numbers; leave it out with "
                    f"--ignore {column}."
                )
        if not self.size:
            raise DataError(f"{path} has columns but no rows.")
        kind = schema[label]
        self._numbers = kind.is_numeric() or kind == pl.Boolean
        # Whole numbers stay as they are: as floats, neighbours above 2**53 would be the same label.
        read_as = pl.Float64 if kind.is_float() else kind if self._numbers else pl.String
        casts: list[Any] = [pl.col(column).cast(pl.Float64) for column in self.columns]
        casts.append(pl.col(label).cast(read_as))
        self._frame = self._frame.select(casts)

    def close(self) -> None:
        """Do nothing: every block opens the file again."""

    def blocks(self, start: Place | None = None) -> Iterator[Block]:
        """Yield blocks, from a place that an earlier block had, or from the first row."""
        row = 0
        if start is not None and start.tail:
            row, self._labels.kind = start.row, start.kind
            if start.tail != self._tail:
                raise DataError(f"{self.name} is not what was read before; resume with the same data.")
        assert self.size is not None
        while row < self.size:
            place = Place(row, 0, 0, self._labels.kind, self._tail)
            frame = self._frame.slice(row, ROWS).collect()
            rows = np.empty((len(frame), len(self.columns)))
            for column, name in enumerate(self.columns):
                rows[:, column] = frame.get_column(name).fill_null(nan).to_numpy()
            cells = frame.get_column(self._label).to_list()
            error = None
            try:
                labels = self._read_labels(cells)
            except BadLabel as bad:
                error = DataError(
                    f"{self.name}, row {row + bad.index}, column {self._label!r}: {bad.reason}."
                )
                labels = self._read_labels(cells[: bad.index])
            rows = rows[: len(labels)]
            wrong = np.argwhere(np.abs(rows) > LARGEST)
            if len(wrong):
                index, column = map(int, wrong[0])
                error = DataError(
                    f"{self.name}, row {row + index}, column {self.columns[column]!r}: "
                    f"{rows[index, column]} is not within -1e100 to 1e100; clip it, or make it null."
                )
                rows, labels = rows[:index], labels[:index]
            if len(rows):
                yield Block(self.columns, rows, labels, place)
            if error is not None:
                raise error
            row += len(frame)
            self.done = row

    def _read_labels(self, cells: list[Any]) -> list[Label | None]:
        return self._labels.numbers(cells) if self._numbers else self._labels.read(cells)
