"""SF2EL: learners, map and hedge put together, on rows whose features come and go."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el import _core, events, persist
from sf2el.atomic import write_bytes
from sf2el.budget import LABEL_BYTES, MODEL_BYTES, parse_budget, wrapper_bytes
from sf2el.events import EventLog, Events
from sf2el.kernels import RBF, Kernel
from sf2el.labels import BinaryLabels, Label
from sf2el.plan import check_least, events_kept
from sf2el.settings import (
    Equations,
    LearnerSettings,
    OnSkip,
    Projection,
    Sampling,
    check_buffer_size,
)
from sf2el.spaces import Names, Period, Spaces, ordered, read_row
from sf2el.stage import Recipe, Rounds, Space, Stage, Told, check_fits
from sf2el.tables import Table, labels_of, table_of

Floats = npt.NDArray[np.float64]
Row = Mapping[Hashable, Any]


class SF2EL:
    """Storage-fit learning with feature-evolvable streams.

    One online kernel learner for the current features; when other features appear beside them, a map
    from the new to the old; when the old ones vanish, the old learner goes on with what they would have
    read, a new one starts, and weights follow whichever is best. Learns from unlabelled rows.

    Time O(b (b + d)) a row and learner, memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``: the buffers are as large as fits.
    seed
        Seed of the reservoirs; one seed, same bits.
    classes
        The two labels, the positive one first; else the first label seen is the positive one.
    backend
        ``"native"`` or ``"numpy"``; None takes the compiled one where it was built.

    Examples
    --------
    >>> model = SF2EL(budget="16KiB", seed=0)
    >>> model.learn_one({"old": 1.0}, "wet")
    >>> model.learn_one({"old": -1.0}, "dry")
    >>> model.learn_one({"old": 0.9, "new": 1.8})         # both sensors report; no label
    >>> model.learn_one({"old": -1.1, "new": -2.2})
    >>> model.predict_one({"new": 2.0})                   # only the new one does
    'wet'

    References
    ----------
    Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
    """

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        seed: int = 0,
        classes: Sequence[Any] | None = None,
        backend: str | None = None,
    ) -> None:
        settings = LearnerSettings(
            # Scaled rows lie at squared distances near 2, so these widths are relative to the data.
            kernel=RBF(2.5),
            graph_width=7.5,
            loss="hinge",
            ridge=1e-4,
            smoothness=1e-4,
            step=2.0,
            on_skip="project",
        )
        recipe = Recipe(
            settings=settings,
            buffer_size=None,
            scaled=True,
            restart=False,
            map_ridge=1e-3,
            map_intercept=False,
            train_in_overlap=False,
            eta=None,
            seed=seed,
            backend=backend,
        )
        self._start(recipe, classes, parse_budget(budget))

    @classmethod
    def paper(
        cls,
        *,
        buffer_size: int = 60,
        kernel: Kernel | None = None,
        graph_width: float = 1.0,
        loss: str = "logistic",
        ridge: float = 1e-4,
        smoothness: float = 1e-4,
        step: float = 1.0,
        label_rate: float | None = None,
        eta: float | None = None,
        classes: Sequence[Any] | None = None,
        seed: int = 0,
        manifold: bool = True,
        equations: Equations = "gradient",
        cap: bool = True,
        projection: Projection = "exact",
        pursuit_steps: int = 10,
        keep_gram: bool = True,
        on_skip: OnSkip = "drop",
        sampling: Sampling = "reservoir",
        radius: float = 1e4,
        jitter: float = 1e-3,
        restart: bool = True,
        map_ridge: float = 1e-3,
        map_intercept: bool = False,
        train_in_overlap: bool = False,
        scaled: bool = False,
        backend: str | None = None,
    ) -> Self:
        """Return the published algorithm with explicit parameters.

        The learner's parameters are those of :class:`sf2el.LearnerSettings`.

        Parameters
        ----------
        buffer_size
            Rows that each learner's buffer holds.
        eta
            Rate of the hedge; None takes AdaHedge, which needs no horizon. The paper's own is
            ``Hedge.rate_for(T2)``.
        restart
            Whether the old learner's step size restarts when its features vanish.
        map_ridge, map_intercept
            Parameters of the recovery map.
        train_in_overlap
            Whether the new learner already trains on the overlap's rows.
        scaled
            Whether features are scaled online; the paper's experiments scale them beforehand.

        Examples
        --------
        >>> model = SF2EL.paper(buffer_size=20, kernel=RBF(0.5), label_rate=0.3, classes=["up", "down"])
        >>> model.predict_one({"x": 1.0})
        'up'
        """
        check_buffer_size(buffer_size)
        given = locals()
        names = {field.name for field in fields(LearnerSettings)}
        settings = LearnerSettings(
            **{name: value for name, value in given.items() if name in names and name != "kernel"},
            kernel=RBF(1.0) if kernel is None else kernel,
        )
        recipe = Recipe(
            settings=settings,
            buffer_size=buffer_size,
            scaled=scaled,
            restart=restart,
            map_ridge=map_ridge,
            map_intercept=map_intercept,
            train_in_overlap=train_in_overlap,
            eta=eta,
            seed=seed,
            backend=backend,
        )
        model = cls.__new__(cls)
        model._start(recipe, classes)
        return model

    def _start(self, recipe: Recipe, classes: Sequence[Any] | None, budget: int | None = None) -> None:
        recipe.check()
        if budget is not None:
            check_least(recipe.settings, budget)
        self._gather = _core.backend(recipe.backend).gather
        self._recipe = recipe
        self._labels = BinaryLabels(classes)
        self._stage: Stage | None = None
        self._budget = budget
        self._events = EventLog(events_kept(budget))
        self._rows_seen = 0

    # -- predicting

    def predict_one(self, x: Row) -> Label | None:
        """Return the predicted label of a row; None before any label was seen. Changes nothing."""
        return self._labels.decide(self._score_one(x))

    def predict_proba_one(self, x: Row) -> dict[Label, float]:
        """Return the probability of each label, ``sigmoid(score)``; {} before any label was seen."""
        return self._labels.probabilities(self._score_one(x))

    def predict_many(self, X: Any, features: Sequence[Hashable] | None = None) -> npt.NDArray[np.object_]:
        """Return the predicted label of every row of an array or frame: the loop of ``predict_one``."""
        tables = table_of(X, features, self._current_names())
        scores: list[float] = []
        for table in tables:
            stage = self._stage_of(table.names)
            if stage is None:
                scores += [0.0] * len(table.rows)
            else:
                scores += [stage.score(row) for row in table.columns(stage.current.names)]
        out = np.empty(len(scores), dtype=object)
        out[:] = [self._labels.decide(score) for score in scores]
        return out

    def explain_one(self, x: Row) -> dict[str, dict[str, float]]:
        """Return each expert's score for this row and its weight."""
        stage, row = self._stage_for(x)
        if stage is None:
            return {}
        scores, weights = stage.scores(row), stage.hedge.weights
        return {
            role: {"score": float(score), "weight": float(weight)}
            for role, score, weight in zip(_roles(stage), scores, weights, strict=True)
        }

    def _score_one(self, x: Row) -> float:
        stage = self._stage
        if stage is not None and type(x) is dict and self._gather(x, stage.current.names, stage.current.row):
            return stage.score(stage.current.row)
        stage, row = self._stage_for(x)
        return 0.0 if stage is None else stage.score(row)

    def _stage_for(self, x: Row) -> tuple[Stage | None, Floats]:
        """Return the stage that predicts a row, and the row's values in its order."""
        observed = read_row(x)
        stage = self._stage_of(tuple(observed))
        if stage is None:
            return None, np.empty(0)
        return stage, np.array([observed[name] for name in stage.current.names])

    def _stage_of(self, names: Names) -> Stage | None:
        """Return the stage that predicts rows of these features: after a swap, as it would then be."""
        if self._stage is None:
            return None
        period, found = self._spaces(self._stage).period(names)
        return self._stage.swapped(found, preview=True) if period is Period.SWAP else self._stage

    # -- learning

    def learn_one(self, x: Row, y: Any = None) -> None:
        """Learn one row; ``y`` None means that its label is not known."""
        target, label = self._labels.encode(y)
        stage = self._stage
        if stage is not None and type(x) is dict and self._gather(x, stage.current.names, stage.current.row):
            stage.learn(stage.current.row, target)
            self._rows_seen += 1
        else:
            observed = read_row(x)
            names = ordered(observed)
            values = np.array([[observed[name] for name in names]])
            self._learn_table(Table(names, values), np.array([target]))
        self._labels.see(label)

    def learn_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> None:
        """Learn the rows of an array or frame in turn: the loop of ``learn_one``, bit for bit, in one call.

        Parameters
        ----------
        X
            A frame (its columns are the features, NaN means not observed), or an array of rows.
        y
            One label a row, None or NaN where it is not known; None for no labels at all.
        features
            Names of an array's columns; without them the columns are the features 0, 1, 2, ...
        """
        tables = table_of(X, features, self._current_names())
        targets, seen = self._encode_many(labels_of(y, sum(len(table.rows) for table in tables)))
        start = 0
        for table in self._checked(tables):
            stop = start + len(table.rows)
            self._learn_table(table, targets[start:stop])
            start = stop
        self._labels = seen

    def _encode_many(self, labels: Sequence[Any]) -> tuple[Floats, BinaryLabels]:
        known = BinaryLabels()
        known.seen = list(self._labels.seen)
        targets = np.empty(len(labels))
        for i, label in enumerate(labels):
            targets[i], plain = known.encode(label)
            known.see(plain)
        return targets, known

    def _checked(self, tables: list[Table]) -> list[Table]:
        """Walk the tables' periods and bytes before any row is learned, so that a misfit changes nothing."""
        spaces = None if self._stage is None else self._spaces(self._stage)
        for table in tables:
            if spaces is None:
                spaces = Spaces(table.names)
            else:
                period, names = spaces.period(table.names)
                if period is Period.OVERLAP:
                    spaces = Spaces(spaces.current, names)
                elif period is Period.SWAP:
                    spaces = Spaces(names)
            if self._budget is not None:
                upcoming = spaces.upcoming
                check_fits(self._recipe, spaces.current, upcoming, self._budget, self._own_bytes())
        return tables

    def _learn_table(self, table: Table, targets: Floats) -> Rounds:
        """Learn rows that all have the same features."""
        if self._stage is None:
            first = Stage(Space(table.names, self._recipe), self._recipe, 0)
            told = first.fit(self._budget, self._own_bytes())
            self._stage = first
            self._record([(events.FIRST_SPACE, first.current.dim, 0.0), *told])
        stage = self._stage
        period, names = self._spaces(stage).period(table.names)
        if period is Period.SWAP:
            rounds = self._swap(names).run(table.columns(names), targets)
        elif period is Period.OVERLAP:
            if stage.upcoming is None:
                told = stage.open_overlap(names, self._budget, self._own_bytes())
                self._record([(events.OVERLAP, len(names), stage.current.dim), *told])
            rounds = stage.run_overlap(table.columns(stage.current.names), table.columns(names), targets)
        else:
            rounds = stage.run(table.columns(names), targets)
        self._rows_seen += len(table.rows)
        return rounds

    def _swap(self, names: Names) -> Stage:
        """Go on with the space that follows."""
        before = self._stage
        assert before is not None
        stage = before.swapped(names)
        told = stage.fit(self._budget, self._own_bytes())
        if stage.recovered is not None:
            self._record([(events.SWAP_RECOVERED, len(names), before.psi.rows), *told])
        else:
            overlapped = before.upcoming is not None
            kind = events.SWAP_NO_ROOM if overlapped else events.SWAP_NO_OVERLAP
            self._record([(kind, len(names), 0.0), *told])
        self._stage = stage
        return stage

    # -- memory

    def set_budget(self, budget: int | str) -> None:
        """Change the bytes the model may use, at once.

        With fewer, buffers keep a uniform subsample of their rows and the projection of their function onto
        it; how far the function moved is told by ``events()``. With more, slots open.

        Examples
        --------
        >>> model = SF2EL(budget="64KiB")
        >>> for t in range(200):
        ...     model.learn_one({"a": t % 7, "b": t % 5}, t % 2)
        >>> model.set_budget("4KiB")
        >>> model.memory_usage() <= 4096
        True
        """
        if self._budget is None:
            raise ValueError("SF2EL.paper has a fixed buffer_size; only SF2EL(budget=...) has a budget.")
        size = parse_budget(budget)
        check_least(self._recipe.settings, size)
        told: Told = []
        log = self._events.resized(events_kept(size))
        if self._stage is not None:
            reserved = log.nbytes + LABEL_BYTES + MODEL_BYTES
            told = self._stage.fit(size, reserved, growing=size >= self._budget)
        self._budget, self._events = size, log
        self._record([(events.NEW_BUDGET, size, 0.0), *told])

    def memory_usage(self, *, detail: bool = False) -> int | dict[str, int]:
        """Return the bytes of everything the model keeps; by part with ``detail``.

        Working scratch and the Python objects around the numbers are not in it; ``memory_overhead`` tells
        them.
        """
        parts = {"learners": 0, "maps": 0, "scalers": 0, "weights": 0, "names": 0}
        if self._stage is not None:
            parts |= self._stage.nbytes()
        parts |= {"events": self._events.nbytes, "labels": LABEL_BYTES, "counters": MODEL_BYTES}
        return parts if detail else sum(parts.values())

    def memory_overhead(self) -> dict[str, int]:
        """Return bytes that do not count: a thread's working scratch, and the Python objects of this model.

        The scratch is one block a thread, as large as its largest learner needs, whatever the number of
        models. The wrapper does not grow with rows.

        Examples
        --------
        >>> model = SF2EL(budget="4KiB")
        >>> model.learn_one({"a": 1.0, "b": 2.0})
        >>> sorted(model.memory_overhead())
        ['scratch', 'wrapper']
        """
        scratch = 0 if self._stage is None else self._stage.scratch_nbytes()
        return {"scratch": scratch, "wrapper": wrapper_bytes(self)}

    def _own_bytes(self) -> int:
        return self._events.nbytes + LABEL_BYTES + MODEL_BYTES

    # -- saving

    def to_bytes(self) -> bytes:
        """Return everything the model keeps: its budget's bytes, and less than 2 KiB more."""
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

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return type(self).from_bytes, (self.to_bytes(),)

    # -- looking inside

    def weights(self) -> dict[str, float]:
        """Return who is followed: the weight of each learner in the coming round."""
        if self._stage is None:
            return {}
        return dict(zip(_roles(self._stage), map(float, self._stage.hedge.weights), strict=True))

    def risk(self) -> dict[str, float]:
        """Return the average risk of each learner in the present space."""
        if self._stage is None:
            return {}
        return dict(zip(_roles(self._stage), map(float, self._stage.hedge.average_risks()), strict=True))

    def events(self) -> Events:
        """Return what happened to the features: the last 32 events, and how many there were."""
        return self._events.told()

    def __repr__(self) -> str:
        recipe = self._recipe
        size = f"buffer_size={recipe.buffer_size}" if self._budget is None else f"budget={self._budget}"
        return f"{type(self).__name__}({size}, seed={recipe.seed}, rows={self._rows_seen})"

    # -- small things

    def _spaces(self, stage: Stage) -> Spaces:
        return Spaces(stage.current.names, stage.upcoming.names if stage.upcoming else None)

    def _current_names(self) -> Names | None:
        return None if self._stage is None else self._stage.current.names

    def _record(self, told: Told) -> None:
        for kind, first, second in told:
            self._events.add(self._rows_seen, kind, first, second)


def _roles(stage: Stage) -> tuple[str, ...]:
    return ("current",) if stage.recovered is None else ("recovered", "current")
