"""A model within its budget: what it keeps, what gives way, which rows wait, and the bytes of all that."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el import events
from sf2el.events import EventLog, Happened
from sf2el.features.spaces import Tracker
from sf2el.inputs.rows import Names
from sf2el.memory.budget import (
    MODEL_BYTES,
    names_bytes,
    newcomer_room,
    parse_budget,
    pending_bytes,
    scaler_bytes,
    waiting_room,
    wrapper_bytes,
)
from sf2el.memory.plan import events_kept
from sf2el.model.stage import NEVER, Stage
from sf2el.model.strategy import Recipe, Told

Floats = npt.NDArray[np.float64]
Observed = Mapping[Hashable, float]


VERY_MANY = 1000
"""Features of which the least budget is not worked out: that takes time and room by their square."""


RESIZED = frozenset({events.BASIS, events.MOVED, *range(events.BUFFERS, events.MOVED)})
"""Events that tell of no more than the size of experts."""


@contextmanager
def too_much_refused() -> Iterator[None]:
    """Refuse in a sentence what the machine has no memory for."""
    try:
        yield
    except MemoryError:
        raise ValueError(
            "This machine has not so much memory; give a smaller budget, or fewer features."
        ) from None


class Pending(NamedTuple):
    """A row with features that belong to no space yet: it is gone through again if they open one."""

    observed: Observed
    target: float
    weight: float

    def of(self, names: Container[Hashable]) -> Pending:
        """Return the row with no other features than these."""
        return self._replace(observed={name: value for name, value in self.observed.items() if name in names})


class MemoryParts(dict[str, int]):
    """Bytes by part; ``full_grown`` where the experts are as large as ever helps, and bytes beyond are left.

    >>> MemoryParts({"learners": 100}, full_grown=True)
    {'learners': 100} (the experts are as large as measured to help; more bytes would not be used)
    """

    def __init__(self, parts: Mapping[str, int], full_grown: bool) -> None:
        super().__init__(parts)
        self.full_grown = full_grown

    def __repr__(self) -> str:
        told = " (the experts are as large as measured to help; more bytes would not be used)"
        return super().__repr__() + (told if self.full_grown else "")


class BudgetedModel:
    """The state of a model and its bytes: ``kept.KeptModel`` adds files, its children rows and labels."""

    LEAST_LABELS: ClassVar[int]
    """Bytes of what the smallest model knows of labels."""

    _recipe: Recipe

    def _begin(self, recipe: Recipe, budget: int | None) -> None:
        recipe.check()
        if budget is not None:
            recipe.check_least(budget, self.LEAST_LABELS)
        self._gather: Callable[..., bool] = _core.backend(recipe.backend).gather
        self._recipe = recipe
        self._stage: Stage | None = None
        self._tracker: Tracker | None = None
        self._pending: list[Pending] = []
        self._settled = False
        self._budget = budget
        self._events = EventLog(events_kept(budget))
        self._rows_seen = 0
        self._refit_at = NEVER

    # -- for children

    def _label_bytes(self) -> int:
        """Return the bytes of what a child keeps."""
        raise NotImplementedError

    def _label_counts(self) -> list[int]:
        """Return how often each label was seen; nothing where targets are numbers."""
        return []

    def _told(self) -> list[int]:
        """Return how often each label was told, none where that says nothing of how likely it is."""
        return []

    @too_much_refused()
    def _fitted(
        self, stage: Stage, budget: int | None = None, *, newcomers: int = 0, growing: bool = False
    ) -> Told:
        """Fit a stage to the budget, beside newcomers of so many bytes where those are more than usual."""
        budget = self._budget if budget is None else budget
        if budget is None:
            return []
        told = self._recipe.fit(stage, budget, self._own_bytes(budget, newcomers), growing=growing)
        stage.arrange()
        return told

    def _check_width(self, names: Names) -> None:
        """Refuse very many features whose names and scaling alone do not fit, before anything is made."""
        if self._budget is None or len(names) < VERY_MANY:
            return
        least = names_bytes(names) + (
            scaler_bytes(len(names), self._recipe.scaling) if self._recipe.scaled else 0
        )
        if least > self._budget:
            raise ValueError(
                f"This row has {len(names)} features, whose names and scaling alone take {least} bytes and "
                f"the budget is {self._budget}; leave features out, or give twice as much as they take."
            )

    def _outputs(self) -> int:
        return 1 if self._stage is None else self._stage.outputs

    def _newcomer_bytes(self) -> int:
        marked = 0 if self._tracker is None else self._tracker.strangers.nbytes
        return marked + pending_bytes([len(row.observed) for row in self._pending])

    # -- rows that wait

    def _wait(self, rows: Sequence[Pending]) -> Told:
        """Let rows wait for their new features to open a space; return which experts gave way to them.

        Only features still known are kept, which are those a file has names for. A row that has no new ones
        stays as a blank, since a change is told by how many rows ago it began.
        """
        assert self._tracker is not None
        marks = self._tracker.strangers.marks
        if not marks:
            self._pending = []
            return []
        known = set(self._tracker.known())
        self._pending = [row.of(() if marks.keys().isdisjoint(row.observed) else known) for row in rows]
        return self._house_rows()

    def _house_rows(self) -> Told:
        """Give the rows that wait their room: bytes that are free, then those of experts that give way.

        A map rests on every row that had both spaces, and where there are ten of them two matter more than
        some radial functions. Where the experts cannot give way, the oldest rows leave.
        """
        while self._pending and self._crowded():
            self._pending = self._pending[1:]
        told = self._refitted(self._newcomer_bytes()) if self._overfull() else []
        while self._pending and (self._overfull() or self._crowded()):
            self._pending = self._pending[1:]
        return told

    def _borrows(self) -> bool:
        """Whether newcomers have more than the room that is always kept for them."""
        return self._budget is not None and self._newcomer_bytes() > newcomer_room(self._budget)

    def _crowded(self) -> bool:
        """Whether newcomers have more than they may; that is more where a row may be the first of a space."""
        if self._budget is None or self._tracker is None or not self._borrows():
            return False
        if self._tracker.upcoming is not None:  # only where a space opens are rows gone through again
            return True
        many = any(self._tracker.brings_many(row.observed) for row in self._pending)
        return not many or self._newcomer_bytes() > waiting_room(self._budget)

    def _overfull(self) -> bool:
        """Whether rows that wait take bytes that the stage has."""
        if self._budget is None or self._stage is None or not self._borrows():
            return False
        left = self._budget - self._own_bytes(self._budget, self._newcomer_bytes())
        return sum(self._stage.nbytes().values()) > left

    def _refitted(self, newcomers: int = 0) -> Told:
        """Go on with a stage fitted anew beside newcomers of so many bytes, unless it would lose too much.

        In the first space only what would go anyway if a second opened: some experts. Later none, since the
        vanished space goes before them when another opens.
        """
        assert self._stage is not None
        try:
            stage = self._stage.clone()
            told = self._fitted(stage, newcomers=newcomers, growing=True)
        except (ValueError, MemoryError):
            return []
        bearable = events.DETAILS if stage.past is None else RESIZED
        if any(one.kind not in bearable for one in told):
            return []
        self._stage, self._refit_at = stage, stage.refit_at(self._rows_seen)
        return told

    def _unfolded(self) -> Told:
        """Go on with the statistics of a long overlap whole, if no more than details give way to them."""
        assert self._stage is not None
        stage = self._stage.clone()
        stage.overlap.unfold()
        try:
            told = self._fitted(stage, newcomers=self._newcomer_bytes())
        except (ValueError, MemoryError):
            return []
        if (
            stage.overlap is None
            or stage.overlap.sketched
            or any(one.kind not in events.DETAILS for one in told)
        ):
            return []
        self._stage = stage
        return told

    # -- memory

    def set_budget(self, budget: int | str) -> None:
        """Change the bytes the model may use, at once.

        With fewer, experts keep fewer rows and the projection of their function onto them; what that moved
        is told by ``events()``. With more, room for rows opens, and experts that had to leave begin anew.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="64KiB")
        >>> for t in range(200):
        ...     model.learn_one({"a": t % 7, "b": t % 5}, t % 2)
        >>> model.set_budget("4KiB")
        >>> model.memory_usage() <= 4096
        True
        """
        if self._budget is None:
            raise ValueError("This model has a fixed buffer_size; only one made with budget= has a budget.")
        size = parse_budget(budget)
        self._recipe.check_least(size, self.LEAST_LABELS)
        stage, told = None, []
        if self._stage is not None:
            stage = self._stage.clone()
            told = self._fitted(stage, size, growing=size >= self._budget)
            if size > self._budget:
                stage, back = self._regained(stage, size)
                told += back
        self._events = self._events.resized(events_kept(size))
        self._budget, self._stage = size, stage
        if self._tracker is not None:
            assert stage is not None
            follow(self._tracker, stage)
            self._refit_at = stage.refit_at(self._rows_seen)
            self._tracker.strangers.shrink(newcomer_room(size))
            told += self._wait(self._pending)
        self._record([Happened(events.NEW_BUDGET, size), *told])

    def _regained(self, stage: Stage, budget: int) -> tuple[Stage, Told]:
        """Return a stage with what had left for want of bytes, unless something else would leave for it."""
        fuller = stage.clone()
        fuller.counts = self._label_counts()
        try:
            told = self._recipe.regained(fuller)
            told += self._fitted(fuller, budget, growing=True)
        except (ValueError, MemoryError):
            return stage, []
        lost = _experts(stage) - _experts(fuller)
        if lost or any(one.kind not in RESIZED | {events.EXPERTS} for one in told):
            return stage, []
        return fuller, told

    def memory_usage(self, *, detail: bool = False) -> int | MemoryParts:
        """Return the bytes of everything the model keeps; by part with ``detail``.

        Working scratch and the Python objects around the numbers are not in it; ``memory_overhead`` tells
        them. The parts also say when the experts are as large as measured to help, so that a larger budget
        would bring nothing.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="1MiB")
        >>> model.learn_one({"a": 1.0, "b": 2.0}, "up")
        >>> parts = model.memory_usage(detail=True)
        >>> parts.full_grown, sum(parts.values()) == model.memory_usage()
        (True, True)
        """
        parts = {"learners": 0, "maps": 0, "scalers": 0, "weights": 0, "names": 0}
        if self._stage is not None:
            parts |= self._stage.nbytes()
        room = 0 if self._budget is None else newcomer_room(self._budget)
        parts |= {
            "newcomers": max(room, self._newcomer_bytes()),
            "events": self._events.nbytes,
            "labels": self._label_bytes(),
            "counters": MODEL_BYTES,
        }
        if not detail:
            return sum(parts.values())
        return MemoryParts(parts, self._stage is not None and self._recipe.full_grown(self._stage))

    def memory_overhead(self) -> dict[str, int]:
        """Return bytes that do not count: a thread's scratch, a row in work, and the model's Python objects.

        The scratch is one block a thread, as large as its largest expert needs, whatever the number of
        models. ``rows`` are arrays for one row, as each space sees it and what experts say of it; within an
        overlap, from a prediction until its row is learned, also the map that was fitted for it. Neither
        these nor the wrapper grow with rows.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="4KiB")
        >>> model.learn_one({"a": 1.0, "b": 2.0})
        >>> sorted(model.memory_overhead())
        ['rows', 'scratch', 'wrapper']
        """
        found = {"scratch": 0, "rows": 0} if self._stage is None else self._stage.working_nbytes()
        return found | {"wrapper": wrapper_bytes(self)}

    def _own_bytes(self, budget: int, newcomers: int = 0) -> int:
        """Return the bytes of a budget that are not the stage's, with newcomers of so many bytes."""
        kept = events.EVENT_BYTES * events_kept(budget)
        return kept + self._label_bytes() + MODEL_BYTES + max(newcomers, newcomer_room(budget))

    def _record(self, told: Told) -> None:
        for kind, first, second, ago in told:
            self._events.add(self._rows_seen - ago, kind, first, second, certain=self._rows_seen)


def follow(tracker: Tracker, stage: Stage) -> None:
    """Let a tracker know the spaces as they are kept; one that was dropped cannot come back."""
    tracker.current = stage.current.names
    if stage.past is None:
        tracker.forget_past()
    else:
        tracker.past = stage.past.names


def _experts(stage: Stage) -> set[tuple[Names, str]]:
    return {(space.names, seat.name) for space in stage.spaces() for seat in space.seats}
