"""What every model of a stream does: periods, rows, budget, events, saving. Labels are its children's."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from sf2el import _core, events, persist
from sf2el.atomic import write_bytes
from sf2el.budget import MODEL_BYTES, newcomer_room, parse_budget, pending_bytes, wrapper_bytes
from sf2el.events import EventLog, Events, Happened
from sf2el.plan import events_kept
from sf2el.recipe import Recipe, Told
from sf2el.rows import Names, ordered, read_row
from sf2el.spaces import LATELY, Change, Kind, Tracker
from sf2el.stage import NEVER, Rounds, Stage
from sf2el.tables import Table

Floats = npt.NDArray[np.float64]
Row = Mapping[Hashable, Any]
Observed = Mapping[Hashable, float]


class Pending(NamedTuple):
    """A row with features that belong to no space yet: it is gone through again if they open one."""

    observed: Observed
    target: float
    weight: float


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


class StreamModel:
    """A model of a stream whose features come and go. Targets are numbers here; children know labels."""

    KIND: ClassVar[str]
    """What a file says it holds."""

    _recipe: Recipe

    def _begin(self, recipe: Recipe, budget: int | None) -> None:
        recipe.check()
        if budget is not None:
            recipe.check_least(budget)
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

    def _labels_out(self) -> dict[str, Any]:
        """Return what a child keeps, as plain values."""
        raise NotImplementedError

    def _labels_in(self, content: dict[str, Any]) -> None:
        """Take over what ``_labels_out`` returned; ValueError for anything else."""
        raise NotImplementedError

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
        assert self._stage is not None and self._tracker is not None
        tracker = self._tracker.copy()
        changes = tracker.step(observed)
        try:
            return self._changed(tracker, changes)[0] if changes else self._stage
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
                if stage.round.learn(x, target, weight):
                    self._passed(1)
                    return
            elif self._gather(x, stage.current.names, stage.current.row):
                stage.learn(stage.current.row, target, weight)
                self._passed(1)
                return
        self._learn_observed(read_row(x), target, weight)

    def _learn_observed(self, observed: Observed, target: float, weight: float) -> Block:
        """Learn a row with any features; return what was predicted for it just before."""
        if self._stage is None:
            self._first(ordered(observed))
        assert self._stage is not None and self._tracker is not None
        tracker = self._tracker.copy()
        changes = tracker.step(observed)
        stage, told = self._changed(tracker, changes) if changes else (self._stage, [])
        said = _said(stage, observed)
        stage.learn_row(observed, target, weight)
        self._stage, self._tracker = stage, tracker
        self._keep_pending(observed, target, weight)
        self._settled = tracker.upcoming is None and tracker.quiet() > 0
        self._record([one for one in told if self._events.roomy or one.kind not in events.DETAILS])
        self._refit_at = stage.refit_at(self._rows_seen)
        self._passed(1)
        return said

    def _passed(self, rows: int) -> None:
        """Count rows, and fit the map anew where it is time."""
        self._rows_seen += rows
        if self._rows_seen == self._refit_at:
            assert self._stage is not None
            self._stage.refit()
            self._refit_at = self._stage.refit_at(self._rows_seen)

    def _first(self, names: Names) -> None:
        """Open the first space."""
        stage = Stage(self._recipe, self._recipe.new_space(names), 0, self._outputs())
        told = self._fitted(stage)
        room = None if self._budget is None else newcomer_room(self._budget)
        self._stage, self._tracker = stage, Tracker(names, room=room)
        self._settled = True
        self._record([Happened(events.FIRST_SPACE, len(names)), *told])

    def _outputs(self) -> int:
        return 1 if self._stage is None else self._stage.outputs

    def _keep_pending(self, observed: Observed, target: float, weight: float) -> None:
        """Remember the last rows that had features of no space, as far as there is room."""
        assert self._tracker is not None
        if not self._tracker.marks:
            self._pending = []
            return
        known = {*self._tracker.expected(), *self._tracker.marks}
        observed = {name: value for name, value in observed.items() if name in known}
        self._pending = [*self._pending, Pending(observed, target, weight)][-(LATELY - 1) :]
        room = self._tracker.room
        while room is not None and self._pending and self._newcomer_bytes() > room:
            self._pending = self._pending[1:]

    def _pending_in(self, observed: Observed, target: float | None, weight: float) -> None:
        """Take a row from a file."""
        values = [*observed.values(), weight, 0.0 if target is None else float(target)]
        if not observed or not all(abs(value) <= 1e100 for value in values):
            raise ValueError("a row in it is none")
        number = float("nan") if target is None else float(target)
        self._pending.append(Pending(observed, number, weight))

    def _newcomer_bytes(self) -> int:
        marked = 0 if self._tracker is None else self._tracker.marked_bytes()
        return marked + pending_bytes([len(row.observed) for row in self._pending])

    # -- features come and go

    def _changed(self, tracker: Tracker, changes: Sequence[Change]) -> tuple[Stage, Told]:
        """Return the stage that follows from changes of the features, this one untouched."""
        assert self._stage is not None
        stage, told = self._stage.clone(), []
        stage.counts = self._label_counts()
        for change in changes:
            told += self._apply(stage, change)
        _follow(tracker, stage)
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
            case Kind.SURE:
                pass
        told = [*told, *self._fitted(stage)]
        if change.kind in (Kind.OPEN, Kind.RETURN) and stage.upcoming is not None:
            for row in self._pending[-change.ago :] if change.ago else []:
                stage.replay(*row)
        return [Happened(kind, *numbers, change.ago), *told]

    def _fitted(self, stage: Stage, budget: int | None = None, *, growing: bool = False) -> Told:
        budget = self._budget if budget is None else budget
        if budget is None:
            return []
        told = self._recipe.fit(stage, budget, self._own_bytes(budget), growing=growing)
        stage.arrange()
        return told

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
                    yield self._learn_observed(rest.row(0), float(targets[start]), weight)
                rest = Table(rest.names, rest.rows[max(1, taken) :])
                start = stop

    def _block(self, table: Table) -> int:
        """Return how many of these rows, which all have the same features, can be learned in one call."""
        if self._tracker is None or self._stage is None:
            return 0
        expected = self._tracker.expected()
        if len(expected) != len(table.names) or set(expected) != set(table.names):
            return 0
        if self._stage.upcoming is not None and self._stage.upcoming is self._stage.past:
            return 0
        return min(len(table.rows), self._tracker.quiet(), self._refit_at - self._rows_seen)

    def _learn_block(self, table: Table, targets: Floats, weights: Floats | None) -> Rounds:
        stage, tracker = self._stage, self._tracker
        assert stage is not None and tracker is not None
        rows = table.columns(stage.current.names)
        if stage.upcoming is None:
            rounds = stage.run(rows, targets, weights)
        else:
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

    # -- memory

    def set_budget(self, budget: int | str) -> None:
        """Change the bytes the model may use, at once.

        With fewer, experts keep fewer rows and the projection of their function onto them; what that moved
        is told by ``events()``. With more, room for rows opens.

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
        self._recipe.check_least(size)
        stage, told = None, []
        if self._stage is not None:
            stage = self._stage.clone()
            told = self._fitted(stage, size, growing=size >= self._budget)
        self._events = self._events.resized(events_kept(size))
        self._budget, self._stage = size, stage
        if self._tracker is not None:
            assert stage is not None
            _follow(self._tracker, stage)
            self._refit_at = stage.refit_at(self._rows_seen)
            self._tracker.room = newcomer_room(size)
            while self._pending and self._newcomer_bytes() > self._tracker.room:
                self._pending = self._pending[1:]
            while self._newcomer_bytes() > self._tracker.room:
                self._tracker.marks.popitem()
        self._record([Happened(events.NEW_BUDGET, size), *told])

    def memory_usage(self, *, detail: bool = False) -> int | dict[str, int]:
        """Return the bytes of everything the model keeps; by part with ``detail``.

        Working scratch and the Python objects around the numbers are not in it; ``memory_overhead`` tells
        them.
        """
        parts = {"learners": 0, "maps": 0, "scalers": 0, "weights": 0, "names": 0}
        if self._stage is not None:
            parts |= self._stage.nbytes()
        room = self._newcomer_bytes() if self._budget is None else newcomer_room(self._budget)
        parts |= {
            "newcomers": room,
            "events": self._events.nbytes,
            "labels": self._label_bytes(),
            "counters": MODEL_BYTES,
        }
        return parts if detail else sum(parts.values())

    def memory_overhead(self) -> dict[str, int]:
        """Return bytes that do not count: a thread's working scratch, and the Python objects of this model.

        The scratch is one block a thread, as large as its largest expert needs, whatever the number of
        models. The wrapper does not grow with rows.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="4KiB")
        >>> model.learn_one({"a": 1.0, "b": 2.0})
        >>> sorted(model.memory_overhead())
        ['scratch', 'wrapper']
        """
        scratch = 0 if self._stage is None else self._stage.scratch_nbytes()
        return {"scratch": scratch, "wrapper": wrapper_bytes(self)}

    def _own_bytes(self, budget: int) -> int:
        """Return the bytes of a budget that are not the stage's."""
        kept = events.EVENT_BYTES * events_kept(budget)
        return kept + self._label_bytes() + MODEL_BYTES + newcomer_room(budget)

    # -- saving

    def to_bytes(self) -> bytes:
        """Return everything the model keeps: its budget's bytes, and less than 3 KiB more."""
        return persist.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the model of ``to_bytes``, which goes on bit for bit; ValueError for other bytes."""
        return persist.from_bytes(cls, data)

    def save(self, path: str | Path) -> None:
        """Write the model to a safetensors file, whole or not at all."""
        write_bytes(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the model of a file that ``save`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return persist.from_bytes, (type(self), self.to_bytes(), self._recipe.backend)

    # -- looking inside

    def weights(self, *, detail: bool = False) -> dict[str, float]:
        """Return who is followed in the coming round: the recovered or the current space; each expert with
        ``detail``."""
        if self._stage is None:
            return {}
        stage = self._stage
        names = stage.names() if detail else stage.roles()
        return _summed(names, stage.weights.weights)

    def risk(self) -> dict[str, float]:
        """Return the average risk of each expert in the present space."""
        if self._stage is None:
            return {}
        stage = self._stage
        return dict(zip(stage.names(), map(float, stage.weights.average_risks()), strict=True))

    def events(self) -> Events:
        """Return what happened to the features: the last 32 events, and how many there were."""
        return self._events.told()

    def _record(self, told: Told) -> None:
        for kind, first, second, ago in told:
            self._events.add(self._rows_seen - ago, kind, first, second, certain=self._rows_seen)

    def _current_names(self) -> Names | None:
        return None if self._stage is None else self._stage.current.names


def _follow(tracker: Tracker, stage: Stage) -> None:
    """Let a tracker forget the space before where the budget had no room for it: it cannot come back."""
    if stage.past is None:
        tracker.forget_past()


def _said(stage: Stage, observed: Observed) -> Block:
    output = np.asarray(stage.predict_row(observed))[None]
    return Block(output, np.array(stage.weights.weights)[None], stage.roles(), stage.index)


def _summed(names: Sequence[str], values: Floats) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums
