"""What happened along a run, in a bounded number of points: features, weights, risk, bytes, events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el.events import EventKind

STRIDE = 128
"""Rows between two points, at first: it doubles whenever there are too many points."""
MOST_POINTS = 128
MOST_FEATURES = 10_000
MOST_EVENTS = 200

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Point:
    """The model after ``rows`` rows."""

    rows: int
    nbytes: int
    weights: dict[str, float]
    risk: dict[str, float]


@dataclass(frozen=True)
class Happening:
    """An event of the model: the rows of the data where it began and was certain, and what it was."""

    row: int
    kind: EventKind
    certain: int
    fields: dict[str, float]
    text: str


@dataclass
class Life:
    """The first and the last row in which a feature was observed, and in how many."""

    first: int
    last: int
    rows: int


class History:
    """Points along a run and, between them, how often each feature was observed.

    Memory O(points x features), at most 128 x 10,000 (10 MB), however long the run is.

    Examples
    --------
    >>> history = History()
    >>> history.observe(("a", "b"), np.array([[True, False], [True, True]]))
    >>> history.rows, history.room, history.shares()["b"], history.lives["b"]
    (2, 126, [0.5], Life(first=1, last=1, rows=1))
    """

    def __init__(self) -> None:
        self.stride = STRIDE
        self.rows = 0
        self.points: list[Point] = []
        self.most_bytes = 0
        self.presence: dict[str, Ints] = {}
        """Counts by stretch of the features, of the first ``MOST_FEATURES`` of them."""
        self.lives: dict[str, Life] = {}
        """When each of these features was there."""
        self.events: list[Happening] = []
        self.events_total = 0

    @property
    def room(self) -> int:
        """Rows until the next point."""
        return self.stride - self.rows % self.stride

    def observe(self, names: Sequence[str], observed: Mask) -> None:
        """Count how often features were observed in the next rows, no more than ``room``."""
        rows, counts = len(observed), observed.sum(axis=0)
        first, last = observed.argmax(axis=0), rows - 1 - observed[::-1].argmax(axis=0)
        place = self.rows // self.stride
        if place == MOST_POINTS:
            self._double()
            place = self.rows // self.stride
        columns = (counts.tolist(), first.tolist(), last.tolist())
        for name, count, begins, ends in zip(names, *columns, strict=True):
            if not count:
                continue
            kept = self.presence.get(name)
            if kept is None:
                if len(self.presence) >= MOST_FEATURES:
                    continue
                kept = self.presence[name] = np.zeros(MOST_POINTS, dtype=np.int64)
                self.lives[name] = Life(self.rows + begins, 0, 0)
            kept[place] += count
            life = self.lives[name]
            life.last, life.rows = self.rows + ends, life.rows + count
        self.rows += rows

    def note(self, model: Any) -> None:
        """Add a point: how the model stands now."""
        nbytes = int(model.memory_usage())
        self.most_bytes = max(self.most_bytes, nbytes)
        self.points.append(Point(self.rows, nbytes, model.weights(), model.risk()))

    def tell(self, model: Any, row_of: Any) -> None:
        """Take over the model's new events; ``row_of`` turns its rows into those of the data."""
        told = model.events()
        new = min(told.total - self.events_total, len(told.last))
        if new:
            self.events += [
                Happening(row_of(event.row), event.kind, row_of(event.certain), event.fields, event.text)
                for event in told.last[-new:]
            ]
            # The beginning and the end of a long story tell most.
            half = MOST_EVENTS // 2
            if len(self.events) > MOST_EVENTS:
                self.events = self.events[:half] + self.events[-half:]
        self.events_total = told.total

    def shares(self) -> dict[str, list[float]]:
        """Return each feature's share of rows in which it was observed, by stretch of ``stride`` rows."""
        places = -(-self.rows // self.stride)
        lengths = np.full(places, self.stride)
        if self.rows % self.stride:
            lengths[-1] = self.rows % self.stride
        return {name: (counts[:places] / lengths).tolist() for name, counts in self.presence.items()}

    def _double(self) -> None:
        self.stride *= 2
        self.points = [point for point in self.points if point.rows % self.stride == 0]
        for name, counts in self.presence.items():
            joined = np.zeros_like(counts)
            joined[: MOST_POINTS // 2] = counts.reshape(-1, 2).sum(axis=1)
            self.presence[name] = joined

    def state(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        places = -(-self.rows // self.stride)
        return {
            "stride": self.stride,
            "rows": self.rows,
            "points": [[point.rows, point.nbytes, point.weights, point.risk] for point in self.points],
            "most_bytes": self.most_bytes,
            "presence": {name: counts[:places].tolist() for name, counts in self.presence.items()},
            "lives": {name: [life.first, life.last, life.rows] for name, life in self.lives.items()},
            "events": [asdict(event) for event in self.events],
            "events_total": self.events_total,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the history of a ``state``."""
        history = cls()
        history.stride, history.rows = int(state["stride"]), int(state["rows"])
        history.points = [Point(*point) for point in state["points"]]
        history.most_bytes = int(state["most_bytes"])
        for name, counts in state["presence"].items():
            history.presence[name] = np.zeros(MOST_POINTS, dtype=np.int64)
            history.presence[name][: len(counts)] = counts
        history.lives = {name: Life(*map(int, life)) for name, life in state["lives"].items()}
        history.events = [
            Happening(**(event | {"kind": EventKind(event["kind"])})) for event in state["events"]
        ]
        history.events_total = int(state["events_total"])
        return history
