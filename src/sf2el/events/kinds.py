"""Kinds of events, their fields, and an event itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


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
    EXPERT_OUTDONE = "expert_outdone"
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
        EventKind.EXPERT_OUTDONE,
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
    EventKind.EXPERT_OUTDONE: ("expert", "rung"),
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

    ``row`` (from 0) is where it began, ``certain`` the row that made it certain; ``fields`` are its numbers
    by name (``FIELDS``), and ``text`` says it to people.
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
