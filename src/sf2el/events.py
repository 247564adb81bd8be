"""What happened to the features and to the memory, told to the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MOST_KEPT = 32
EVENT_BYTES = 40

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
    "the old features are gone for good: {0:.0f} features",
    "return: {0:.0f} features of the space before are back beside the {1:.0f} current ones",
    "wider: {0:.0f} more features beside the {1:.0f} current ones",
    "late: {0:.0f} features join the {1:.0f} current ones",
    "gone again: the {0:.0f} features that had appeared beside the {1:.0f} current ones",
    "back: the {0:.0f} old features were only away",
    "a class more: {0:.0f} labels",
    "experts: {0:.0f} in the current space, {1:.0f} recovered",
    "experts of {0:.0f} basis rows",
    "a late label belongs to no space in force",
    "the budget has no room for a covariance of {0:.0f} features: a plain logistic expert goes on",
    "of the statistics behind a map from {0:.0f} features the {1:.0f} strongest directions are kept",
    "the budget has no room to fit the map from {0:.0f} features anew",
    "the budget has no room for how {0:.0f} features vary together",
    "swap to {0:.0f} features, old ones among them; the experts of the {1:.0f} before go on beside",
    "the budget has no room for {0:.0f} new features beside the {1:.0f} current ones: they are not used",
    "labels have spoken against the vanished space: its experts and its map make room for others",
    "the old features do not explain {0:.0f} % of the new ones: those recovered are followed less at first",
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
    SURE,
    RETURNED,
    WIDENED,
    JOINED,
    CLOSED,
    REVERTED,
    NEW_CLASS,
    EXPERTS,
    BASIS,
    TOO_LATE,
    LIGHTER,
    SKETCHED,
    SETTLED,
    UNRELATED,
    GROWN,
    PASSED_OVER,
    OUTDONE,
    UNEXPLAINED,
) = range(len(TEXTS))
"""Kinds of events; ``BUFFERS`` is followed by one for each further way of keeping a learner."""

DETAILS = frozenset(
    {BUFFERS, BUFFERS + 1, BUFFERS + 2, MOVED, EXPERTS, BASIS, SKETCHED, SETTLED, UNRELATED, UNEXPLAINED}
)
"""Kinds that tell more of a change of features, or how it was paid for: a short log is kept for the changes
themselves."""


def is_detail(text: str) -> bool:
    """Whether the text of an event tells how a change was paid for, and not what changed.

    >>> is_detail("experts of 63 basis rows"), is_detail("swap to 5 features; ...")
    (True, False)
    """
    return text.startswith(tuple(TEXTS[kind].split("{")[0] for kind in DETAILS - {UNEXPLAINED}))


class Happened(NamedTuple):
    """An event on its way to the log: its kind, two numbers, and how many rows ago it began."""

    kind: int
    first: float = 0.0
    second: float = 0.0
    ago: int = 0


@dataclass(frozen=True)
class Event:
    """Something that happened: the row (from 0) where it began, what it was, the row that made it certain."""

    row: int
    text: str
    certain: int


class Events(NamedTuple):
    """The last events, and how many there were in all."""

    last: tuple[Event, ...]
    total: int


class EventLog:
    """The last events as numbers, 40 bytes each, and a count of all.

    >>> log = EventLog()
    >>> log.add(7, OVERLAP, 3, 2)
    >>> log.told()
    Events(last=(Event(row=7, text='overlap: 3 new features beside the 2 current ones', certain=7),), total=1)
    """

    def __init__(self, kept: int = MOST_KEPT) -> None:
        self._slots = np.zeros((kept, 5))
        self.first = 0  # events before this one are no longer there
        self.total = 0

    def add(
        self, row: int, kind: int, first: float = 0.0, second: float = 0.0, certain: int | None = None
    ) -> None:
        """Record an event."""
        sure = row if certain is None else certain
        self._slots[self.total % len(self._slots)] = (row, kind, first, second, sure)
        self.total += 1

    @property
    def latest(self) -> int | None:
        """The kind of the last event."""
        return int(self._slots[(self.total - 1) % len(self._slots)][1]) if self.total > self.first else None

    @property
    def roomy(self) -> bool:
        """Whether there is room for details."""
        return len(self._slots) >= 16

    def told(self) -> Events:
        """Return the log, oldest first."""
        count = len(self._slots)
        places = [i % count for i in range(max(self.total - count, self.first), self.total)]
        last = tuple(
            Event(
                int(row),
                one_or_more(TEXTS[int(kind)].format(first, rounded_up(second) if kind == MOVED else second)),
                int(certain),
            )
            for row, kind, first, second, certain in self._slots[places].tolist()
        )
        return Events(last, self.total)

    def copy(self) -> EventLog:
        """Return a log that goes its own way."""
        log = EventLog(len(self._slots))
        log._slots, log.total, log.first = self._slots.copy(), self.total, self.first
        return log

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


def one_or_more(text: str) -> str:
    """Return a text with "1 features" as "1 feature".

    >>> one_or_more("overlap: 1 new features beside the 11 current ones")
    'overlap: 1 new feature beside the 11 current ones'
    >>> one_or_more("late: 1 features join the 4 current ones")
    'late: 1 feature joins the 4 current ones'
    """
    single = re.sub(r"\b1 ((?:new |more |old )?)(feature|row|label)s\b", r"1 \1\2", text)
    return single.replace("1 feature join ", "1 feature joins ")


def rounded_up(value: float) -> float:
    """Return a number rounded up to three digits, so that what is told of an error is a bound.

    >>> rounded_up(1.74117), rounded_up(0.0)
    (1.75, 0.0)
    """
    if not value > 0.0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(f"{ceil(value / unit) * unit:.3g}")
