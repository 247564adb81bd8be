"""What a reader yields: a block of rows, and the place in the data where it begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Label = str | int | float

MISSING = ("", "NA", "NaN", "nan", "null")
"""Cells that mean: not observed, or not labelled."""
LARGEST = 1e100
"""No feature is larger: the model takes none."""
TAIL = 4096
"""Bytes before a place that are compared when reading goes on there."""


class DataError(ValueError):
    """Something is wrong with the data; the text says where, and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block begins, so that reading can go on there.

    Attributes
    ----------
    row, line
        Rows before it; its line in the file, from 1 (0 where the format has no lines).
    offset
        Bytes before it.
    kind
        What the labels so far were: ``"text"``, ``"whole"``, ``"number"``, or None before the first.
    tail
        Fingerprint of the bytes just before it: other data are refused.
    met
        Whether the label's key was there so far, be it without a label (of JSON lines only).
    """

    row: int = 0
    line: int = 0
    offset: int = 0
    kind: str | None = None
    tail: str = ""
    met: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows: values with NaN for not observed, and labels with None for not known."""

    names: tuple[str, ...]
    rows: Floats
    labels: list[Label | None]
    place: Place

    @property
    def first(self) -> int:
        """The number of its first row, from 0."""
        return self.place.row


class Source(Protocol):
    """Data that yield blocks."""

    name: str
    size: int | None
    """Bytes (or rows) in all, None where that is not known."""
    done: int
    """How many of them have been read."""

    def blocks(self, start: Place | None = None) -> Iterator[Block]:
        """Yield blocks, from a place that an earlier block had, or from the first row."""

    def close(self) -> None:
        """Close the file."""


def fingerprint(data: bytes) -> str:
    """Return a short text that other bytes would hardly have.

    >>> fingerprint(b"a,b")
    '1eb7c54d52831bbf'
    """
    return sha256(data).hexdigest()[:16]


def shorten(text: str, most: int = 40) -> str:
    """Return a text's repr, cut where it is long.

    >>> shorten("x" * 50, 8)
    "'xxxxxxxx...'"
    """
    return repr(text if len(text) <= most else text[:most] + "...")


def has_decimal_comma(text: str) -> bool:
    """Return whether a text is a number whose decimals follow a comma.

    >>> has_decimal_comma("-1.288,5"), has_decimal_comma("1,2,3"), has_decimal_comma("one, two")
    (True, False, False)
    """
    return re.fullmatch(r"[+-]?[\d.]*,\d+([eE][+-]?\d+)?", text.strip(), re.ASCII) is not None


def listed(names: tuple[str, ...], most: int = 20) -> str:
    """Return names to read, the first few of them.

    >>> listed(("a", "b", "c"), 2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return ", ".join(names) or "none"
    return f"{', '.join(names[:most])} and {len(names) - most} more"
