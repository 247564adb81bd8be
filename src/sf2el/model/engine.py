"""A model's state within its budget: rows go in, predictions come out. Targets are numbers here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el.core import native
from sf2el.events import DETAILS, EventKind, EventLog, Happened
from sf2el.experts.kinds import code_of
from sf2el.features.attendance import Attendance
from sf2el.features.policies import Open, Swap
from sf2el.inputs.tables import Table
from sf2el.memory.budget import NoRoomError, events_kept, least_budget, newcomer_room, own_bytes
from sf2el.model import changes
from sf2el.model.changes import current_space, features_of, unsolved_bytes
from sf2el.model.protocols import Strategy, Targets
from sf2el.storage.files import Saved

if TYPE_CHECKING:
    from sf2el.core._native import Guard, State

Floats = npt.NDArray[np.float64]
Row = Mapping[Hashable, Any]

CHANGE = 2
"""What the core says of a row that it has not touched, since its features or the plan ask for a decision."""

DEAF_ROWS = 8
"""Rows for which new features change nothing after there was no room for them."""

PARTS = ("counters", "names", "scalers", "maps", "learners", "weights", "newcomers")


class Block(NamedTuple):
    """A run of rows: what was predicted before each was learned, the weight of recovered experts, and the space."""

    outputs: Floats
    recovered: Floats
    space: npt.NDArray[np.int64]


Counted = tuple[Any, Any, Any]
"""Where something is counted, under what key, and the value that it has once a row is learned."""


class BusyError(RuntimeError):
    """Two threads are in one model."""


def _guard() -> Guard:
    guard: Guard = native().Guard(
        BusyError, "This model is being used by another thread; give each thread its own, or use a lock."
    )
    return guard


class Engine:
    """A native state, a strategy that gives its spaces experts, and a budget.

    ``learn`` is one call of the core. Only a row whose features may change the spaces goes further: then the next
    state is made on a copy and taken over whole, so that an error anywhere leaves the state before.
    """

    def __init__(self, strategy: Strategy, budget: int | None, targets: Targets) -> None:
        self.strategy, self.budget, self.targets = strategy, budget, targets
        if budget is not None:
            strategy.check_least(budget, targets.nbytes)
        self.state: State = strategy.new_state()
        if targets.outputs > 1:  # classes that are known beforehand
            self.state.grow(targets.outputs)
        self.events = EventLog(events_kept(budget))
        self.peak = 0
        self.used = _guard()
        self.state.guarded_by(self.used)

    def saved(self, kind: str, strategy: str, targets: dict[str, Any]) -> Saved:
        """Return everything that is kept, for a file."""
        log, parameters = self.events, self.strategy.content()
        events = log.to_bytes(), log.total, log.first
        return Saved(self.state, kind, strategy, parameters, targets, self.budget, *events)

    @classmethod
    def restored(cls, saved: Saved, strategy: Strategy, targets: Targets) -> Engine:
        """Return the engine that a file holds; ValueError where its parts do not fit together."""
        engine = cls.__new__(cls)
        engine.strategy, engine.budget, engine.targets = strategy, saved.budget, targets
        engine.state = saved.state
        engine.events = EventLog.from_bytes(saved.events, saved.total, saved.first)
        engine.peak = 0
        engine.used = _guard()
        engine.state.guarded_by(engine.used)
        kept = EventLog(events_kept(saved.budget))
        fits = saved.state.outputs == targets.outputs and strategy.fits(saved.state, saved.budget)
        if engine.events.nbytes != kept.nbytes or not fits:
            raise ValueError("its parts are of different models")
        if saved.budget is not None and sum(engine.nbytes().values()) > saved.budget:
            raise ValueError("it takes more bytes than its budget")
        return engine

    # -- rows

    def predict(self, x: Row) -> Any:
        """Return the score, the probabilities or the number for a row; None where nothing of it is known.

        The core itself refuses a model that another thread is changing.
        """
        return self.state.predict(x)

    def learn(self, x: Row, target: float, weight: float, counted: Counted | None = None) -> None:
        """Learn a row; a target of NaN is one that is not known.

        ``counted``: what is to be known of targets once the row is learned, in one step with it.
        """
        learn = self.state.learn
        code = learn(x, target, weight, *counted) if counted else learn(x, target, weight)
        if code == CHANGE:
            self._change(x, target, weight, counted)

    def can_learn_late(self, x: Row) -> bool:
        """Return whether a row has a feature of a space in use; if not, an event says so."""
        if self.state.spaces == 0:
            raise ValueError(
                "No row was learned yet; learn the row first, then pass its label with late=True."
            )
        known = bool(self.state.knows(x))
        if not known:
            self.tell(Happened(EventKind.TOO_LATE))
        return known

    def learn_late(self, x: Row, target: float, weight: float) -> None:
        """Take the loss step of a row that was learned without its target."""
        self.state.learn_late(x, target, weight)

    def run(
        self,
        table: Table,
        targets: Floats,
        weights: Floats | None,
        wanted: bool,
        before_change: Callable[[int], None] = lambda rows: None,
    ) -> list[Block]:
        """Learn a table row by row; with ``wanted`` return what was predicted before each row.

        ``before_change`` gets how many rows were learned before one that may change the spaces.
        """
        blocks: list[Block] = []
        names, start, count = list(table.names), 0, len(table.rows)
        while start < count:
            w = None if weights is None else weights[start:]
            done, code, said, shares, spaces = self.state.run(
                table.rows[start:], names, targets[start:], w, wanted
            )
            if wanted and done:
                blocks.append(Block(said, shares, spaces))
            start += done
            if code == CHANGE:
                before_change(start)
                x = table.row(start)
                if wanted:
                    blocks.append(self.said(x))
                self._change(x, float(targets[start]), 1.0 if weights is None else float(weights[start]))
                start += 1
        return blocks

    def predict_many(self, table: Table) -> Floats:
        """Return what is predicted for each row of a table, NaN where nothing of it is known."""
        found: Floats = self.state.predict_many(table.rows, list(table.names))
        return found

    def snapshot(self) -> tuple[State, EventLog]:
        """Return what ``restore`` goes back to."""
        return self.state.copy(), self.events.copy()

    def restore(self, snapshot: tuple[State, EventLog]) -> None:
        """Go back to a snapshot."""
        self.state, self.events = snapshot

    def said(self, x: Row) -> Block:
        """Return what is predicted for a row, and whom that rests on."""
        output = self.state.predict(x)
        outputs = np.full((1, self.state.outputs), np.nan if output is None else output)
        share, space = self.state.whose(x)
        return Block(outputs, np.array([share]), np.array([space]))

    # -- features come and go

    def _change(self, x: Row, target: float, weight: float, counted: Counted | None = None) -> None:
        """Learn a row whose features may change the spaces."""
        twin = self.state.copy()
        told = self._make_room(twin, x)
        present = twin.begin(x)
        first = twin.spaces == 0
        seen = Attendance(twin, present)
        transitions = self.strategy.policy.decide(seen)
        gaps = [] if first else changes.note_gaps(twin, present)
        told += gaps
        review = self._review(twin)
        try:
            if transitions or gaps or review:
                told += changes.make(twin, transitions, len(present))
                told += self._arranged(twin)
        except NoRoomError as refused:
            if first:
                raise
            twin, told = self._without(x, refused)
        if twin.incoming and any(one.kind in (EventKind.OPENED, EventKind.RETURNED) for one in told):
            twin.replay()
        changes.set_wake(twin, self.strategy.policy)
        twin.finish(target, weight)
        self._commit(twin, told, self._after(counted))

    def _after(self, counted: Counted | None) -> Targets:
        """Return what is known of targets once a row is learned."""
        if counted is None:
            return self.targets
        holder, key, value = counted
        if holder is vars(self):
            after: Targets = value
            return after
        return self.targets.counted(key, value)

    def _make_room(self, twin: State, x: Row) -> list[Happened]:
        """Let experts give bytes to new features that come together, which may be the beginning of a space.

        If they are not, the experts have them back at the next review.
        """
        needed = 0 if self.budget is None else twin.crowd_bytes(x)
        if needed == 0:
            return []
        assert self.budget is not None
        try:
            told = (
                self._arranged(twin, room=newcomer_room(self.budget) + needed)
                if needed <= self.budget // 4
                else []
            )
        except NoRoomError:
            told = []
        if not told and twin.crowd_bytes(x):
            twin.deaf_until = twin.rows + DEAF_ROWS
        twin.review_at = min(twin.review_at, twin.rows + changes.FORGOTTEN_ROWS + 1)
        return told

    def _without(self, x: Row, refused: NoRoomError) -> tuple[State, list[Happened]]:
        """Return what a row makes of a model that has no room for its new features beside the current ones.

        They are not used; once the current ones are gone, they are the only ones.
        """
        twin = self.state.copy()
        present = twin.begin(x)
        own = features_of(twin, current_space(twin))
        new = tuple(one for one in Attendance(twin, present).present if one not in set(own))
        if new and not twin.incoming and (len(twin.gone(own)) == len(own) or self.strategy.policy.exact):
            try:
                told = changes.make(twin, [Open(new), Swap()], len(present))
                return twin, told + self._arranged(twin)
            except NoRoomError as also:
                refused = also
        twin = self.state.copy()
        twin.begin(x)
        twin.deaf_until = twin.rows + DEAF_ROWS
        if self.events.latest == EventKind.PASSED_OVER:
            return twin, []
        # Before anything is learned: some make an error of a warning.
        warnings.warn(
            f"{refused} Until then {len(new)} new features are not used.", RuntimeWarning, stacklevel=5
        )
        return twin, [Happened(EventKind.PASSED_OVER, len(new), len(own))]

    def _review(self, twin: State) -> bool:
        """Return whether it is time to look again at what labels have said of the experts; say when it is next."""
        if twin.rows < twin.review_at:
            return False
        since = max(twin.rows - max(twin.began, twin.current_since), changes.FIRST_REVIEW)
        twin.review_at = twin.rows + since
        return True

    def grow(self, outputs: int) -> list[Happened]:
        """Give experts an output for each class; return what there is to tell, once the row is learned."""
        twin = self.state.copy()
        twin.grow(outputs)
        told = self._arranged(twin) if twin.spaces else []
        self.state = twin
        return told

    def _arranged(self, state: State, budget: int | None = None, room: int | None = None) -> list[Happened]:
        """Give a state's spaces what the budget allows beside ``room`` for newcomers."""
        budget = self.budget if budget is None else budget
        if budget is None:
            return self.strategy.arrange(state, None, self.targets.log_odds())
        room = newcomer_room(budget) if room is None else room
        available = budget - own_bytes(budget, self.targets.nbytes)
        if budget < (self.budget or 0):
            state.candidate_room = room
            state.shrink_waiting()
        state.compact()
        try:
            told = self.strategy.arrange(state, available - room, self.targets.log_odds())
        except NoRoomError as refused:
            least = least_budget(refused.needed, self.targets.nbytes)
            raise refused.of(budget, least) from None
        except MemoryError:
            raise ValueError(
                "This machine does not have so much memory; give a smaller budget, or fewer features."
            ) from None
        held = sum(state.bytes()) + state.settings_bytes() - state.waiting_bytes() + unsolved_bytes(state)
        state.candidate_room = max(room, available - held)
        state.shrink_waiting()
        return told

    def _commit(self, twin: State, told: list[Happened], targets: Targets, budget: int | None = None) -> None:
        """Take over the next state, with all that belongs to it.

        That is one step of the interpreter: an interrupt comes before it or after it.
        """
        budget = self.budget if budget is None else budget
        peak = max(self.peak, sum(self.state.bytes()) + sum(twin.bytes()))
        log = self._log(told, max(0, twin.rows - 1), budget)
        vars(self).update(state=twin, events=log, peak=peak, targets=targets, budget=budget)

    def _log(self, told: list[Happened], row: int, budget: int | None) -> EventLog:
        """Return the log with more events, details only where there is room for many."""
        log = self.events.resized(events_kept(budget))
        for one in told:
            if log.roomy or one.kind not in DETAILS:
                log.add(one, row)
        return log

    def tell(self, one: Happened) -> None:
        """Record an event of the model's own."""
        self.events = self._log([one], self.state.rows, self.budget)

    # -- memory

    def set_budget(self, budget: int) -> None:
        """Change the bytes that may be used, at once."""
        if self.budget is None:
            raise ValueError("This model has a fixed buffer_size; only one made with budget= has a budget.")
        self.strategy.check_least(budget, self.targets.nbytes)
        twin = self.state.copy()
        told = self._arranged(twin, budget) if twin.spaces else []
        self._commit(twin, [Happened(EventKind.NEW_BUDGET, budget), *told], self.targets, budget)

    def nbytes(self) -> dict[str, int]:
        """Return the bytes of everything that is kept, by part."""
        parts = dict(zip(PARTS, self.state.bytes(), strict=True))
        parts["counters"] += self.state.settings_bytes() + own_bytes(self.budget, 0) - self.events.nbytes
        return parts | {"events": self.events.nbytes, "labels": self.targets.nbytes}

    # -- looking inside

    def rung(self) -> int | None:
        """Return the place of the highest rung that the budget has room for; None without a ladder or a space."""
        if self.budget is None or not self.state.spaces:
            return None
        room = newcomer_room(self.budget) + own_bytes(self.budget, self.targets.nbytes)
        return self.strategy.rung(self.state, self.budget - room)

    def expert_names(self) -> list[tuple[int, str]]:
        """Return each expert's space, and its name after its space's role, in the order of their standings.

        The space that ended last is ``recovered``; of those before it the name says which.
        """
        state, found = self.state, []
        last = current_space(state) + (1 if state.vanished else 0) - 1
        for space in range(state.spaces):
            before = f" (space {state.space(space)[3]})" if space < last else ""
            found += [
                (space, f"{self.role(space)}{before} {code_of(code).name}")
                for code, *_ in state.experts(space)
            ]
        return found

    def role(self, space: int) -> str:
        """Return what a space is to the model."""
        here = current_space(self.state) + (1 if self.state.vanished else 0)
        return "recovered" if space < here else "current" if space == here else "incoming"

    def current_names(self) -> list[Hashable] | None:
        """Return the names of the current space's features."""
        if self.state.spaces == 0:
            return None
        return list(self.state.names(features_of(self.state, current_space(self.state))))
