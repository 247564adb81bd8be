"""What every model of a stream does: periods, rows, budget, events, saving. Labels are its children's."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import events
from sf2el.events import Happened
from sf2el.features.attendance import LATELY, Strangers
from sf2el.features.spaces import Change, Kind, Tracker
from sf2el.inputs.rows import Names, ordered, read_row
from sf2el.inputs.tables import Table
from sf2el.memory.budget import NoRoomError, newcomer_room
from sf2el.model.budgeted import Pending, follow, too_much_refused
from sf2el.model.kept import KeptModel
from sf2el.model.stage import Rounds, Stage
from sf2el.model.strategy import Told

Floats = npt.NDArray[np.float64]
Row = Mapping[Hashable, Any]
Observed = Mapping[Hashable, float]

WORTH_TELLING = 0.1
"""Doubt of what is recovered from which a swap's event is followed by one that says so."""


@dataclass(frozen=True)
class Track:
    """What a model said of each row of a table before it learned it.

    ``probability`` is that of the predicted label, NaN where there is none; ``space`` counts the feature
    spaces; ``followed`` says whose weight was largest, as a place in ``roles``.
    """

    prediction: npt.NDArray[Any]
    probability: Floats
    space: npt.NDArray[np.int64]
    followed: npt.NDArray[np.int8]
    roles: tuple[str, ...] = ("current", "recovered")


class Block(NamedTuple):
    """A run of rows as the stage said them, before learning."""

    outputs: Floats
    weights: Floats
    roles: Sequence[str]
    space: int

    def followed(self) -> npt.NDArray[np.int8]:
        """Return 1 where the recovered experts together weigh more than the current ones, else 0."""
        past = sum(role == "recovered" for role in self.roles)
        if not past:
            return np.zeros(len(self.outputs), dtype=np.int8)
        recovered = self.weights[:, :past].sum(axis=1)
        return np.asarray(recovered > self.weights[:, past:].sum(axis=1), dtype=np.int8)


class Met(NamedTuple):
    """What a row's features make of a model, what there is to tell, and whether the spaces have changed."""

    tracker: Tracker
    stage: Stage
    told: Told
    changed: bool
    warning: str = ""


class StreamModel(KeptModel):
    """A model of a stream whose features come and go. Targets are numbers here; children know labels."""

    # -- predicting

    def _output_one(self, x: Row) -> Any:
        """Return what the stage predicts for a row; None before the first row."""
        if self._settled and type(x) is dict:
            stage = self._stage
            assert stage is not None
            if stage.round is not None:
                output = stage.round.predict(x)
                if output is not None:
                    return output
            elif self._gather(x, stage.current.names, stage.current.row):
                return stage.predict(stage.current.row)
        return self._output(read_row(x))

    def _output(self, observed: Observed) -> Any:
        if self._stage is None:
            return None
        return self._foreseen(observed).predict_row(observed)

    def _foreseen(self, observed: Observed) -> Stage:
        """Return the stage that a row meets: this one, or what the row makes of it, if there is room."""
        assert self._stage is not None
        try:
            return self._met(observed).stage
        except ValueError:  # the budget has no room for the space: learning will say so
            return self._stage

    def explain_one(self, x: Row) -> dict[str, dict[str, float]]:
        """Return each expert's score for this row and its weight."""
        observed = read_row(x)
        if self._stage is None:
            return {}
        stage = self._foreseen(observed)
        stage.predict_row(observed)
        scores = stage._scores.reshape(-1, stage.outputs)
        return {
            name: {"score": float(np.max(score)), "weight": float(weight)}
            for name, score, weight in zip(stage.names(), scores, stage.weights.weights, strict=True)
        }

    def _said(self, observed: Observed) -> Block:
        """Return what is said of a row."""
        if self._stage is None:
            return Block(np.zeros(1), np.ones((1, 1)), ["current"], 0)
        return _said(self._foreseen(observed), observed)

    # -- learning

    def _learn_dict(self, x: Row, target: float, weight: float) -> None:
        if self._settled and type(x) is dict:
            stage = self._stage
            assert stage is not None
            if stage.round is not None:
                missing = stage.round.learn(x, target, weight)
                if missing is not None:
                    self._passed_alone(missing)
                    return
            elif self._gather(x, stage.current.names, stage.current.row):
                stage.learn(stage.current.row, target, weight)
                self._passed_alone(())
                return
        self._learn_observed(read_row(x), target, weight)

    def _learn_observed(self, observed: Observed, target: float, weight: float) -> Block:
        """Learn a row with any features; return what was predicted for it just before."""
        if self._stage is None:
            self._first(ordered(observed))
        borrowed = bool(self._pending) and self._borrows()
        tracker, stage, told, changed, warning = self._met(observed)
        if warning:  # before anything is learned: some make an error of it
            warnings.warn(warning, RuntimeWarning, stacklevel=4)
        said = _said(stage, observed)
        stage.told = self._told()
        stage.learn_row(observed, target, weight, said.outputs, tracker.dying())
        self._stage, self._tracker = stage, tracker
        told = told + self._wait([*self._pending, Pending(observed, target, weight)][-(LATELY - 1) :])
        if borrowed and not changed and not self._borrows():
            told += self._refitted()  # experts have their room back, as after a change they have already
        self._settled = tracker.settled
        self._record_roomy(told)
        self._refit_at = self._stage.refit_at(self._rows_seen)
        self._passed(1)
        return said

    def _record_roomy(self, told: Told) -> None:
        """Record what there is to tell, details only where there is room for many events."""
        self._record([one for one in told if self._events.roomy or one.kind not in events.DETAILS])

    def _passed_alone(self, missing: Collection[Hashable]) -> None:
        """Count a row that had the features of the current space but these, and no other is beside it."""
        self._tracker.stay(missing)  # type: ignore[union-attr]  # every row comes by here: no more than it takes
        self._rows_seen += 1
        if self._rows_seen == self._refit_at:
            self._fit_anew()

    def _passed(self, rows: int) -> None:
        """Count rows, and fit anew what rests on them where it is time."""
        self._rows_seen += rows
        if self._rows_seen == self._refit_at:
            self._fit_anew()
        assert self._stage is not None
        if self._stage.left_in_sketch() == 0:
            self._record_roomy(self._unfolded())

    def _fit_anew(self) -> None:
        assert self._stage is not None and self._tracker is not None
        gone = self._stage.refit()
        if gone:
            self._record_roomy(gone + self._fitted(self._stage, growing=True) + self._house_rows())
            follow(self._tracker, self._stage)
        self._refit_at = self._stage.refit_at(self._rows_seen)

    @too_much_refused()
    def _first(self, names: Names) -> None:
        """Open the first space."""
        self._check_width(names)
        stage = Stage(self._recipe, self._recipe.new_space(names), 0, self._outputs())
        told = self._fitted(stage)
        room = None if self._budget is None else newcomer_room(self._budget)
        self._stage, self._tracker = stage, Tracker(names, strangers=Strangers(room))
        self._settled = True
        self._record([Happened(events.FIRST_SPACE, len(names))])
        self._record_roomy(told)

    # -- features come and go

    def _met(self, observed: Observed) -> Met:
        """Return what a row's features make of the model, which is untouched.

        New features that the budget has no room for beside the current ones are not used; once those have
        been gone for a while, the row's are the only ones.
        """
        assert self._stage is not None and self._tracker is not None
        tracker = self._tracker.copy()
        changes = tracker.step(observed)
        if not changes:
            return Met(tracker, self._stage, [], False)
        try:
            return Met(tracker, *self._changed(tracker, changes), True)
        except NoRoomError as refused:
            before = self._tracker
            if not any(before.there_lately(name) or name in observed for name in before.current):
                return self._alone(ordered(observed))
            names = {name for change in changes for name in change.names} - {*self._stage.current.names}
            return self._without(observed, names, refused)

    def _without(self, observed: Observed, names: Set[Hashable], refused: NoRoomError) -> Met:
        """Return what a row makes of the model that has no room for these features of it."""
        assert self._stage is not None and self._tracker is not None
        tracker = self._tracker.copy()
        tracker.pass_over(observed, names)
        if self._events.latest == events.PASSED_OVER:  # told already
            return Met(tracker, self._stage, [], False)
        passed_over = Happened(events.PASSED_OVER, len(names), self._stage.current.dim)
        warning = f"{refused} Until then {len(names)} new features are not used."
        return Met(tracker, self._stage, [passed_over], False, warning)

    @too_much_refused()
    def _alone(self, names: Names) -> Met:
        """Return what is left of the model where only these features have room."""
        assert self._stage is not None and self._tracker is not None
        self._check_width(names)
        stage = Stage(self._recipe, self._recipe.new_space(names), self._stage.index + 1, self._outputs())
        stage.began = self._rows_seen
        told = self._fitted(stage)
        told.insert(0, Happened(events.SWAP_NO_ROOM, len(names)))
        return Met(Tracker(names, strangers=Strangers(self._tracker.strangers.room)), stage, told, True)

    @too_much_refused()
    def _changed(self, tracker: Tracker, changes: Sequence[Change]) -> tuple[Stage, Told]:
        """Return the stage that follows from changes of the features, this one untouched."""
        assert self._stage is not None
        stage, told = self._stage, []
        if any(change.kind is not Kind.SURE for change in changes):
            stage = stage.clone()
            stage.counts, stage.told = self._label_counts(), self._told()
        for change in changes:
            told += self._apply(stage, change)
        follow(tracker, stage)
        return stage, told

    def _apply(self, stage: Stage, change: Change) -> Told:
        before, told, kind = stage.current.dim, [], events.SURE
        numbers = (float(len(change.names)), float(before))
        match change.kind:
            case Kind.OPEN:
                kind, told = events.OVERLAP, stage.open(change.names)
            case Kind.RETURN:
                kind, told = events.RETURNED, stage.open_past()
            case Kind.WIDEN:
                kind = events.WIDENED
                stage.widen(change.names)
            case Kind.JOIN:
                kind = events.JOINED
                stage.join(change.names)
            case Kind.GROW:
                kind = stage.grow(change.names, self._rows_seen)
                if kind == events.JOINED:
                    numbers = (float(stage.current.dim - before), float(before))
            case Kind.CLOSE:
                kind = events.CLOSED
                stage.close()
            case Kind.SWAP:
                kind = stage.swap(change.names, self._rows_seen)
                rows = 0 if stage.psi is None else stage.psi.rows
                numbers = (float(len(change.names)), float(rows))
            case Kind.REVERT:
                kind = events.REVERTED
                stage.revert()
            case Kind.SURE:  # nothing but the certainty is new
                return [Happened(kind, *numbers, change.ago)]
        growing = change.kind is Kind.CLOSE  # bytes are free again: nothing that was learned has to go
        told = [*told, *self._fitted(stage, growing=growing)]
        if change.kind is Kind.SWAP and stage.doubt >= WORTH_TELLING:
            told.insert(0, Happened(events.UNEXPLAINED, 100.0 * stage.doubt))
        if change.kind in (Kind.JOIN, Kind.GROW, Kind.CLOSE) or kind in (
            events.SWAP_NO_OVERLAP,
            events.SWAP_NO_ROOM,
        ):
            back = self._recipe.replenished(stage)
            told += [*back, *self._fitted(stage, growing=growing)] if back else []
        if change.kind in (Kind.OPEN, Kind.RETURN) and stage.upcoming is not None:
            for row in self._pending[-change.ago :] if change.ago else []:
                stage.replay(*row)
        return [Happened(kind, *numbers, change.ago), *told]

    # -- many rows

    def _walk(self, tables: Sequence[Table], targets: Floats, weights: Floats | None) -> Iterator[Block]:
        """Predict and learn rows in turn, in blocks as long as nothing changes."""
        start = 0
        for table in tables:
            rest = table
            while len(rest.rows):
                taken = self._block(rest)
                stop = start + max(1, taken)
                w = None if weights is None else np.ascontiguousarray(weights[start:stop])
                if taken:
                    head = Table(rest.names, np.ascontiguousarray(rest.rows[:taken]))
                    rounds = self._learn_block(head, targets[start:stop], w)
                    assert self._stage is not None
                    yield Block(*rounds, self._stage.roles(), self._stage.index)
                else:
                    weight = 1.0 if w is None else float(w[0])
                    yield self._learn_row(rest.row(0), float(targets[start]), weight)
                rest = Table(rest.names, rest.rows[max(1, taken) :])
                start = stop

    def _learn_row(self, observed: Observed, target: float, weight: float) -> Block:
        """Predict and learn a row of a table."""
        if self._settled:
            stage = self._stage
            assert stage is not None
            output = None if stage.round is None else stage.round.predict(observed)
            if output is not None:
                said = _block_of(stage, output)
                self._passed_alone(stage.round.learn(observed, target, weight))
                return said
        return self._learn_observed(observed, target, weight)

    def _block(self, table: Table) -> int:
        """Return how many of these rows, which all have the same features, can be learned in one call."""
        if self._tracker is None or self._stage is None:
            return 0
        expected = self._tracker.expected()
        if len(expected) != len(table.names) or set(expected) != set(table.names):
            return 0
        upcoming, past = self._stage.upcoming, self._stage.past
        if upcoming is not None and past is not None and not set(upcoming.names).isdisjoint(past.names):
            return 0  # the past space's experts see what is read of it
        left = self._stage.left_in_sketch() or 0
        most = min(self._tracker.quiet(), self._refit_at - self._rows_seen)
        return min(len(table.rows), most, left if left > 0 else most)

    def _learn_block(self, table: Table, targets: Floats, weights: Floats | None) -> Rounds:
        stage, tracker = self._stage, self._tracker
        assert stage is not None and tracker is not None
        rows = table.columns(stage.current.names)
        if stage.upcoming is None:
            rounds = stage.run(rows, targets, weights)
        else:
            stage.told = self._told()
            rounds = stage.run_overlap(rows, table.columns(stage.upcoming.names), targets, weights)
        tracker.skip(len(rows))
        self._passed(len(rows))
        return rounds

    def _snapshot(self) -> tuple[Any, ...]:
        stage = None if self._stage is None else self._stage.clone()
        tracker = None if self._tracker is None else self._tracker.copy()
        counts = self._rows_seen, self._refit_at
        return stage, tracker, self._pending, self._settled, self._events.copy(), counts

    def _restore(self, snapshot: tuple[Any, ...]) -> None:
        self._stage, self._tracker, self._pending, self._settled, self._events, counts = snapshot
        self._rows_seen, self._refit_at = counts


def _said(stage: Stage, observed: Observed) -> Block:
    return _block_of(stage, stage.predict_row(observed))


def _block_of(stage: Stage, output: Any) -> Block:
    """Return what a stage has said of one row."""
    weights = np.array(stage.weights.weights)
    return Block(np.asarray(output)[None], weights[None], stage.roles(), stage.index)
