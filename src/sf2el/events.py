"""What happened to the features, told to the user."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

KEPT = 32


@dataclass(frozen=True)
class Event:
    """Something that happened to the features: the row (from 0) and what it was."""

    row: int
    text: str


class Events(NamedTuple):
    """The last events, and how many there were in all."""

    last: tuple[Event, ...]
    total: int


class EventLog:
    """The last 32 events, and a count of all.

    >>> log = EventLog()
    >>> log.add(7, "swap")
    >>> log.told()
    Events(last=(Event(row=7, text='swap'),), total=1)
    """

    def __init__(self) -> None:
        self._last: deque[Event] = deque(maxlen=KEPT)
        self._total = 0

    def add(self, row: int, text: str) -> None:
        """Record an event."""
        self._last.append(Event(row, text))
        self._total += 1

    def told(self) -> Events:
        """Return the log."""
        return Events(tuple(self._last), self._total)
