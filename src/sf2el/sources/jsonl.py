"""JSON lines: one object a line, whose keys may differ from row to row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from math import nan
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from sf2el.sources.block import (
    LARGEST,
    TAIL,
    Block,
    DataError,
    Floats,
    Label,
    Place,
    fingerprint,
    listed,
    shorten,
)
from sf2el.sources.chunks import Chunks
from sf2el.sources.csv_exact import decode
from sf2el.sources.labels import BadLabel, LabelReader

MOST_CELLS = 1 << 20
"""Rows times different keys that a block may have: each is a number, there or not."""


class RepeatedKey(Exception):
    """An object has a key twice, and which value is meant nobody knows."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKey(next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1))
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_once)


class Found(NamedTuple):
    """The objects of a piece of the data, each with its line, and the error that ended them, if one did."""

    offset: int
    line: int
    tail: bytes
    objects: list[dict[str, Any]]
    lines: list[int]
    error: DataError | None


class JsonlSource:
    """Rows as JSON objects, one a line; a key that is absent or null means not observed."""

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
        self._label, self._ignore, self._labels = label, frozenset(ignore), labels
        self._chunks = Chunks(file, name, quoted=False)
        self._keys: dict[str, None] = {}
        self._met = False

    def close(self) -> None:
        """Close the file."""
        self._chunks.file.close()

    def blocks(self, start: Place | None = None) -> Iterator[Block]:
        """Yield blocks, from a place that an earlier block had, or from the first row."""
        chunks = self._chunks
        row = chunks.resume(start)
        if start is not None:
            self._labels.kind = start.kind
            # A place of an older version does not tell.
            self._met = start.met or (row > 0 and start.kind is not None)
        for found in (part for piece in chunks for part in self._narrow(*piece)):
            place = Place(
                row, found.line, found.offset, self._labels.kind, fingerprint(found.tail), self._met
            )
            objects, lines, error = found.objects, found.lines, found.error
            self._met = self._met or any(self._label in keys for keys in objects)
            self.done = chunks.offset
            labels: list[Label | None] = []
            try:
                labels = self._read_labels(objects)
            except BadLabel as bad:
                error = DataError(f"{self.name}, line {lines[bad.index]}: {bad.reason}.")
                objects = objects[: bad.index]
                labels = self._read_labels(objects)
            rows, names, wrong = self._values(objects, lines)
            error = wrong or error
            if len(rows):
                yield Block(names, rows, labels[: len(rows)], place)
            row += len(rows)
            if error is not None:
                raise error
        if not row:
            raise DataError(f"{self.name} is empty; it needs one JSON object a line.")
        if not self._met:
            keys = listed(tuple(self._keys))
            raise DataError(f"{self.name}: no row has a label {self._label!r}; the keys are {keys}.")

    def _narrow(self, chunk: bytes, offset: int, line: int, tail: bytes) -> Iterator[Found]:
        """Yield what a piece holds, in halves while its rows have too many different keys for one table."""
        objects, lines, error = self._objects(chunk, line)
        middle = chunk.find(b"\n", len(chunk) // 2) + 1
        if not 0 < middle < len(chunk):  # the last line is the longer half: cut before it
            middle = chunk.rfind(b"\n", 0, len(chunk) - 1) + 1
        if middle and len(objects) * len(set().union(*objects)) > MOST_CELLS:
            first, second = chunk[:middle], chunk[middle:]
            yield from self._narrow(first, offset, line, tail)
            yield from self._narrow(
                second, offset + middle, line + first.count(b"\n"), (tail + first)[-TAIL:]
            )
        else:
            yield Found(offset, line, tail, objects, lines, error)

    def _objects(self, chunk: bytes, line: int) -> tuple[list[dict[str, Any]], list[int], DataError | None]:
        """Return a block's objects, their lines, and the error that ended it."""
        objects: list[dict[str, Any]] = []
        lines: list[int] = []
        for at, raw in enumerate(chunk.split(b"\n"), start=line):
            if not raw.strip():
                continue
            try:
                found = DECODER.decode(decode(raw, self.name, at).removeprefix("\ufeff"))
            except json.JSONDecodeError as error:
                what = error.msg.lower().removesuffix(" at")
                if b"\r" in raw.strip():
                    what = "its lines end with CR alone; save it with LF or CR LF line ends"
                    return objects, lines, DataError(f"{self.name}: {what}.")
                reason = f"this is not JSON ({what} at character {error.pos + 1})"
                return objects, lines, DataError(f"{self.name}, line {at}: {reason}; correct the line.")
            except RepeatedKey as error:
                reason = f"the key {shorten(str(error))} is there twice; leave one out"
                return objects, lines, DataError(f"{self.name}, line {at}: {reason}.")
            except RecursionError:
                return objects, lines, DataError(f"{self.name}, line {at}: this is nested too deeply.")
            except DataError as error:
                return objects, lines, error
            except (ValueError, OverflowError):  # Python reads no whole number of thousands of digits
                reason = "a number has too many digits to be read; shorten it"
                return objects, lines, DataError(f"{self.name}, line {at}: {reason}.")
            if not isinstance(found, dict):
                what = "an array" if isinstance(found, list) else "a bare value"
                reason = f'this is {what}; every line must be an object such as {{"a": 1.5, "label": 1}}'
                return objects, lines, DataError(f"{self.name}, line {at}: {reason}.")
            objects.append(found)
            lines.append(at)
        return objects, lines, None

    def _read_labels(self, objects: list[dict[str, Any]]) -> list[Label | None]:
        found = [row.get(self._label) for row in objects]
        if all(type(label) is str or label is None for label in found):
            return self._labels.read(found)
        labels: list[Label | None] = []
        for index, label in enumerate(found):
            if not isinstance(label, (str, int, float, type(None))):
                raise BadLabel(index, f"the label {shorten(str(label))} is neither text nor a number")
            try:
                labels += (
                    self._labels.read([label]) if isinstance(label, str) else self._labels.numbers([label])
                )
            except BadLabel as bad:
                raise BadLabel(index, bad.reason) from None
        return labels

    def _values(
        self, objects: list[dict[str, Any]], lines: list[int]
    ) -> tuple[Floats, tuple[str, ...], DataError | None]:
        """Return the objects' values with NaN for absent keys, up to the first that is no number."""
        union: dict[str, None] = {}
        for found in objects:
            union |= dict.fromkeys(found)
        if len(self._keys) < 1000:
            self._keys |= union
        names = tuple(key for key in union if key != self._label and key not in self._ignore)
        rows = np.empty((len(objects), len(names)))
        for column, key in enumerate(names):
            values = [found.get(key) for found in objects]
            try:
                if any(type(value) is str for value in values):
                    raise TypeError
                rows[:, column] = [nan if value is None else value for value in values]
                if np.any(np.abs(rows[:, column]) > LARGEST):
                    raise TypeError
            except (TypeError, ValueError, OverflowError):
                return self._cut(objects, lines)
        return rows, names, None

    def _cut(
        self, objects: list[dict[str, Any]], lines: list[int]
    ) -> tuple[Floats, tuple[str, ...], DataError | None]:
        """Find the first value that is no number; return the rows before it, and the error."""
        for index, found in enumerate(objects):
            for key, value in found.items():
                if key == self._label or key in self._ignore or value is None:
                    continue
                number = isinstance(value, (int, float))
                if number and (value != value or abs(value) <= LARGEST):
                    continue
                advice = (
                    "is not within -1e100 to 1e100; clip it, or leave the key out"
                    if number
                    else f"is not a number; leave the key out, or all of them with --ignore {key}"
                )
                if not self._met:
                    advice += f" (no row so far has the label {self._label!r}; name it with --label)"
                where = f"{self.name}, line {lines[index]}, key {key!r}"
                error = DataError(f"{where}: {shorten(str(value))} {advice}.")
                rows, names, _ = self._values(objects[:index], lines)
                return rows, names, error
        raise AssertionError("every value is a number")
