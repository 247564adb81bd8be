"""What happened to the features and to the memory: typed events, and the text that says each to people."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil, floor, log10
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el.experts.kinds import Code, Form, Kind, View
from sf2el.memory.budget import MOST_KEPT
from sf2el.memory.ladder import RUNGS


class EventKind(StrEnum):
    """What an event is about."""

    FIRST_SPACE = "first_space"
    OPENED = "opened"
    JOINED = "joined"
    SWAPPED = "swapped"
    GROWN = "grown"
    RETURNED = "returned"
    CLOSED = "closed"
    FIRST_GAP = "first_gap"
    PASSED_OVER = "passed_over"
    SPACE_DROPPED = "space_dropped"
    MAP_DROPPED = "map_dropped"
    MAP_SETTLED = "map_settled"
    EXPERT_CAME = "expert_came"
    EXPERT_LEFT = "expert_left"
    RESIZED = "resized"
    MOVED = "moved"
    NEW_BUDGET = "new_budget"
    NEW_CLASS = "new_class"
    TOO_LATE = "too_late"
    UNEXPLAINED = "unexplained"
    BUFFERS = "buffers"


KINDS = tuple(EventKind)

DETAILS = frozenset(
    {
        EventKind.MAP_SETTLED,
        EventKind.EXPERT_CAME,
        EventKind.EXPERT_LEFT,
        EventKind.RESIZED,
        EventKind.MOVED,
        EventKind.UNEXPLAINED,
        EventKind.BUFFERS,
        EventKind.FIRST_GAP,
    }
)
"""Kinds that say how a change was paid for: a short log is kept for the changes themselves."""

FIELDS: dict[EventKind, tuple[str, ...]] = {
    EventKind.FIRST_SPACE: ("features",),
    EventKind.OPENED: ("features", "beside"),
    EventKind.JOINED: ("features", "beside"),
    EventKind.SWAPPED: ("features", "map_rows"),
    EventKind.GROWN: ("features", "before"),
    EventKind.RETURNED: ("features", "beside"),
    EventKind.CLOSED: ("features", "beside"),
    EventKind.FIRST_GAP: ("missing", "features"),
    EventKind.PASSED_OVER: ("features", "beside"),
    EventKind.SPACE_DROPPED: ("features",),
    EventKind.MAP_DROPPED: ("features",),
    EventKind.MAP_SETTLED: ("features",),
    EventKind.EXPERT_CAME: ("expert", "rung"),
    EventKind.EXPERT_LEFT: ("expert", "rung"),
    EventKind.RESIZED: ("functions", "rung"),
    EventKind.MOVED: ("functions", "distance"),
    EventKind.NEW_BUDGET: ("bytes",),
    EventKind.NEW_CLASS: ("labels",),
    EventKind.TOO_LATE: (),
    EventKind.UNEXPLAINED: ("percent",),
    EventKind.BUFFERS: ("rows", "recovered_rows"),
}
"""The fields of each kind, at most two numbers."""


@dataclass(frozen=True)
class Event:
    """Something that happened.

    ``row`` (from 0) is where it began and ``certain`` the row that made it certain; ``fields`` are its numbers by
    name (``FIELDS``), and ``text`` says it to people.
    """

    row: int
    kind: EventKind
    certain: int
    fields: dict[str, float] = field(default_factory=dict)
    text: str = ""


class Events(NamedTuple):
    """The last events, and how many there were in all."""

    last: tuple[Event, ...]
    total: int


class Happened(NamedTuple):
    """An event on its way to the log: its kind, two numbers, and the row where it began; None: this one."""

    kind: EventKind
    first: float = 0.0
    second: float = 0.0
    row: int | None = None


def expert_number(code: Code) -> float:
    """Return an expert as a number that a log can keep."""
    return float(code.kind * 100 + code.view * 10 + code.rate)


def expert_name(number: float) -> str:
    """Return the name of an expert that was kept as a number.

    >>> expert_name(expert_number(Code(Kind.LINEAR, View.ZERO, form=Form.HALF)))
    'linear, zero'
    """
    whole = int(number)
    return Code(Kind(whole // 100), View(whole // 10 % 10), whole % 10, Form.FULL).name


def text_of(kind: EventKind, first: float, second: float) -> str:
    """Return what an event says to people.

    >>> text_of(EventKind.OPENED, 1, 11)
    '1 new feature beside the 11 current ones'
    """
    a, b = int(first), int(second)
    match kind:
        case EventKind.FIRST_SPACE:
            text = f"first space: {a} features"
        case EventKind.OPENED:
            text = f"{a} new features beside the {b} current ones"
        case EventKind.JOINED:
            text = f"{a} features join the {b} current ones"
        case EventKind.SWAPPED if b > 0:
            text = f"swap to {a} features; the old features are recovered by a map from {b} rows"
        case EventKind.SWAPPED if b == 0:
            text = f"swap to {a} features; the new experts start alone: no row had both spaces"
        case EventKind.SWAPPED:
            text = f"swap to {a} features; the new experts start alone: the budget has no room for a map"
        case EventKind.GROWN:
            text = f"swap to {a} features, old ones among them; the experts of the {b} before go on beside"
        case EventKind.RETURNED:
            text = f"{a} features of an earlier space are back beside the {b} current ones"
        case EventKind.CLOSED:
            text = f"the {a} features that had appeared beside the {b} current ones are gone again"
        case EventKind.FIRST_GAP:
            text = f"first row with missing values: {a} of {b} features"
        case EventKind.PASSED_OVER:
            text = f"the budget has no room for {a} new features beside the {b} current ones: they are not used"
        case EventKind.SPACE_DROPPED:
            text = f"the budget has no room for the {a} features that vanished: their experts and map were dropped"
        case EventKind.MAP_DROPPED:
            text = f"the budget has no room for a map from {a} features: the next space will start alone"
        case EventKind.MAP_SETTLED:
            text = f"the budget has no room to improve the map from {a} features: it stays as it is"
        case EventKind.EXPERT_CAME:
            text = f"expert added: {expert_name(first)} (the budget has room for: {RUNGS[b].part})"
        case EventKind.EXPERT_LEFT:
            text = f"expert removed: {expert_name(first)} (the budget has room up to: {RUNGS[b].part})"
        case EventKind.RESIZED:
            text = f"experts of {a} radial functions (the budget has room for: {RUNGS[b].part})"
        case EventKind.MOVED:
            text = f"fewer radial functions: an expert's function moved by at most {rounded_up(second):.3g} in norm"
        case EventKind.NEW_BUDGET:
            text = f"budget {a} bytes"
        case EventKind.NEW_CLASS:
            text = f"a new class: {a} labels"
        case EventKind.TOO_LATE:
            text = "a late label belongs to no space in use"
        case EventKind.UNEXPLAINED:
            text = f"the old features do not explain {a} % of the new ones: recovered experts weigh less at first"
        case EventKind.BUFFERS:
            text = f"buffers of {a} rows (current) and {b} rows (recovered)"
    return _one_or_more(text)


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
        self._slots[self.total % len(self._slots)] = (began, KINDS.index(one.kind), one.first, one.second, row)
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


def _one_or_more(text: str) -> str:
    """Return a text with "1 features" as "1 feature"."""
    single = re.sub(r"\b1 ((?:new |more |old )?)(feature|row|label)s\b", r"1 \1\2", text)
    return single.replace("1 feature join ", "1 feature joins ")


def rounded_up(value: float) -> float:
    """Return a number rounded up to three digits, so that what is said of an error is a bound.

    >>> rounded_up(1.74117), rounded_up(0.0)
    (1.75, 0.0)
    """
    if not value > 0.0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(f"{ceil(value / unit) * unit:.3g}")
