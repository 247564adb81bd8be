"""A checksum of rows, so that a run goes on only where the rows before are those it was made of."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from sf2el.sources.block import Block, Label

CELLS = 1 << 16
"""Cells mixed at once."""

Words = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_LABEL = np.uint64(0x1D8E4E27C47D124F)


class Digest:
    """The sum, modulo 2**64, of a mixed word for every observed cell and label.

    A cell's word comes of its row, its feature and its value: neither the blocks that rows come in nor the
    order of the columns matters, and cells that are not observed do not count.

    Examples
    --------
    >>> from sf2el.sources import Place
    >>> block = Block(("a", "b"), np.array([[1.0, 2.0], [3.0, np.nan]]), ["u", None], Place())
    >>> whole, parts = Digest(), Digest()
    >>> whole.add(block, 0, 2)
    >>> parts.add(block, 0, 1)
    >>> parts.add(block, 0, 2)
    >>> whole.total == parts.total, whole.rows
    (True, 2)
    """

    def __init__(self) -> None:
        self.rows = self.total = 0

    def add(self, block: Block, first: int, stop: int) -> None:
        """Go on to the row ``stop`` of the data, in a block that begins with the row ``first``."""
        features = np.array([_word(f"feature {name}") for name in block.names], dtype=np.uint64)
        step = max(1, CELLS // max(1, len(block.names)))
        while self.rows < stop:
            end = min(stop, self.rows + step)
            part = slice(self.rows - first, end - first)
            numbers = _mixed(np.arange(self.rows, end, dtype=np.uint64) * _ODD)
            self.total += _cells(block.rows[part], features, numbers) + _labels(block.labels[part], numbers)
            self.total &= (1 << 64) - 1
            self.rows = end


def _cells(rows: npt.NDArray[np.float64], features: Words, numbers: Words) -> int:
    values = np.ascontiguousarray(rows, dtype="<f8").view("<u8")
    mixed = _mixed((values + features) ^ numbers[:, None])
    return int(mixed.sum(where=~np.isnan(rows)))


def _labels(labels: list[Label | None], numbers: Words) -> int:
    places = [place for place, label in enumerate(labels) if label is not None]
    known = [label for label in labels if label is not None]
    if known and isinstance(known[0], float):  # of a regression: all of them are
        words = np.array(known, dtype="<f8").view("<u8")
    else:
        words = np.array([_label(label) for label in known], dtype=np.uint64)
    return int(_mixed((words + _LABEL) ^ numbers[places]).sum())


def _mixed(words: Words) -> Words:
    """Return words in which every bit depends on every bit (the last steps of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


@lru_cache(maxsize=1 << 14)
def _word(text: str) -> int:
    return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "little")


@lru_cache(maxsize=1 << 12, typed=True)
def _label(label: Label) -> int:
    return _word(f"{type(label).__name__} {label!r}")
