"""What happened to the features and to the memory, told to the user."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MOST_KEPT = 32
EVENT_BYTES = 32

TEXTS = (
    "first space: {0:.0f} features",
    "overlap: {0:.0f} new features beside the {1:.0f} current ones",
    "swap to {0:.0f} features; the old features are recovered by a map from {1:.0f} rows",
    "swap to {0:.0f} features; the new learner starts alone: no row had both spaces",
    "swap to {0:.0f} features; the new learner starts alone: the budget has no room for a map",
    "the budget has no room for the vanished space: its learner and its map were dropped",
    "the budget has no room for a map: the next space will start alone",
    "budget {0:.0f} bytes",
    "buffers of {0:.0f} rows (current) and {1:.0f} rows (recovered), matrices kept, float64",
    "buffers of {0:.0f} rows (current) and {1:.0f} rows (recovered), no matrices, float64",
    "buffers of {0:.0f} rows (current) and {1:.0f} rows (recovered), no matrices, float32",
    "a smaller buffer: the {0:.0f}-row learner's function moved by {1:.3g} in norm",
)
(
    FIRST_SPACE,
    OVERLAP,
    SWAP_RECOVERED,
    SWAP_NO_OVERLAP,
    SWAP_NO_ROOM,
    DROPPED_RECOVERED,
    DROPPED_MAP,
    NEW_BUDGET,
    BUFFERS,
    _,
    _,
    MOVED,
) = range(len(TEXTS))
"""Kinds of events; ``BUFFERS`` is followed by one for each further way of keeping a learner."""


@dataclass(frozen=True)
class Event:
    """Something that happened: the row (from 0) and what it was."""

    row: int
    text: str


class Events(NamedTuple):
    """The last events, and how many there were in all."""

    last: tuple[Event, ...]
    total: int


class EventLog:
    """The last events as numbers, 32 bytes each, and a count of all.

    >>> log = EventLog()
    >>> log.add(7, OVERLAP, 3, 2)
    >>> log.told()
    Events(last=(Event(row=7, text='overlap: 3 new features beside the 2 current ones'),), total=1)
    """

    def __init__(self, kept: int = MOST_KEPT) -> None:
        self._slots = np.zeros((kept, 4))
        self.first = 0  # events before this one are no longer there
        self.total = 0

    def add(self, row: int, kind: int, first: float = 0.0, second: float = 0.0) -> None:
        """Record an event."""
        self._slots[self.total % len(self._slots)] = (row, kind, first, second)
        self.total += 1

    def told(self) -> Events:
        """Return the log, oldest first."""
        count = len(self._slots)
        places = [i % count for i in range(max(self.total - count, self.first), self.total)]
        last = tuple(
            Event(int(row), TEXTS[int(kind)].format(first, rounded_up(second) if kind == MOVED else second))
            for row, kind, first, second in self._slots[places].tolist()
        )
        return Events(last, self.total)

    def resized(self, kept: int) -> EventLog:
        """Return a log of another size with the last of these events."""
        log = EventLog(kept)
        stays = min(self.total, len(self._slots), kept)
        for i in range(self.total - stays, self.total):
            log._slots[i % kept] = self._slots[i % len(self._slots)]
        log.total, log.first = self.total, self.total - stays
        return log

    def state(self) -> npt.NDArray[np.float64]:
        """Return the slots."""
        return self._slots.copy()

    def set_state(self, slots: npt.NDArray[np.float64], total: int, first: int) -> None:
        """Take over what ``state`` returned, with the counts beside it."""
        if not np.all((slots[:, 1] >= 0) & (slots[:, 1] < len(TEXTS))) or first > total:
            raise ValueError("an event is of no known kind")
        self._slots, self.total, self.first = slots.copy(), total, first

    @property
    def nbytes(self) -> int:
        """Bytes of the log."""
        return int(self._slots.nbytes)


def rounded_up(value: float) -> float:
    """Return a number rounded up to three digits, so that what is told of an error is a bound.

    >>> rounded_up(1.74117), rounded_up(0.0)
    (1.75, 0.0)
    """
    if not value > 0.0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(f"{ceil(value / unit) * unit:.3g}")
