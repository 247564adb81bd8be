"""The last events, kept as numbers."""

from __future__ import annotations

import numpy as np

from sf2el.events.kinds import FIELDS, KINDS, Event, EventKind, Events, Happened
from sf2el.events.text import text_of
from sf2el.memory.budget import MOST_KEPT


class EventLog:
    """The last events as numbers, 40 bytes each, and a count of all.

    >>> log = EventLog()
    >>> log.add(Happened(EventKind.OPENED, 3, 2), row=7)
    >>> log.last_events().last[0].text, log.last_events().last[0].fields
    ('3 new features beside the 2 current ones', {'features': 3.0, 'beside': 2.0})
    """

    def __init__(self, kept: int = MOST_KEPT) -> None:
        self._slots = np.zeros((kept, 5))
        self.first = 0  # events before this one are no longer there
        self.total = 0

    def add(self, one: Happened, row: int) -> None:
        """Record an event that is certain as of this row."""
        began = row if one.row is None else one.row
        self._slots[self.total % len(self._slots)] = (
            began,
            KINDS.index(one.kind),
            one.first,
            one.second,
            row,
        )
        self.total += 1

    @property
    def latest(self) -> EventKind | None:
        """The kind of the last event."""
        if self.total == self.first:
            return None
        return KINDS[int(self._slots[(self.total - 1) % len(self._slots)][1])]

    @property
    def roomy(self) -> bool:
        """Whether there is room for details."""
        return len(self._slots) >= 16

    def last_events(self) -> Events:
        """Return the log, oldest first."""
        count = len(self._slots)
        places = [i % count for i in range(max(self.total - count, self.first), self.total)]
        last = []
        for row, number, first, second, certain in self._slots[places].tolist():
            kind = KINDS[int(number)]
            values = dict(zip(FIELDS[kind], (first, second), strict=False))
            last.append(Event(int(row), kind, int(certain), values, text_of(kind, first, second)))
        return Events(tuple(last), self.total)

    def copy(self) -> EventLog:
        """Return a log that goes its own way."""
        log = EventLog(len(self._slots))
        log._slots, log.total, log.first = self._slots.copy(), self.total, self.first
        return log

    def resized(self, kept: int) -> EventLog:
        """Return a log of another size with the last of these events."""
        log = EventLog(kept)
        stays = min(self.total - self.first, len(self._slots), kept)
        for i in range(self.total - stays, self.total):
            log._slots[i % kept] = self._slots[i % len(self._slots)]
        log.total, log.first = self.total, self.total - stays
        return log

    def to_bytes(self) -> bytes:
        """Return the slots as bytes, 40 for each."""
        return self._slots.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, total: int, first: int) -> EventLog:
        """Return the log of ``to_bytes``; ValueError for anything else."""
        slots = np.frombuffer(data, dtype=np.float64).reshape(-1, 5)
        rows = slots[:, [0, 4]]
        sound = len(slots) > 0 and 0 <= first <= total and total - first <= max(len(slots), total)
        sound = sound and bool(np.all(np.isfinite(slots))) and bool(np.all((rows >= 0) & (rows < 2**60)))
        if not sound or not np.all((slots[:, 1] >= 0) & (slots[:, 1] < len(KINDS))):
            raise ValueError("an event is of no known kind")
        log = cls(len(slots))
        log._slots, log.total, log.first = slots.copy(), total, first
        log.last_events()
        return log

    @property
    def nbytes(self) -> int:
        """Bytes of the log."""
        return int(self._slots.nbytes)
