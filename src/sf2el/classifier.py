"""SF2EL: a classifier for streams whose features come and go, with few labels and little memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el.events import EventKind, Happened
from sf2el.inputs.labels import UNLABELLED, ClassWeight, Label, Labels
from sf2el.inputs.parameters import plain_number
from sf2el.inputs.tables import Table, labels_of, table_of
from sf2el.memory.budget import parse_budget
from sf2el.model.engine import Engine
from sf2el.model.labelled import Said, decided, targets_of
from sf2el.model.protocols import Strategy
from sf2el.model.strategy import BankStrategy
from sf2el.model.stream import Row, StreamModel, Track
from sf2el.paper.kernels import RBF, Kernel
from sf2el.paper.settings import Equations, OnSkip, Projection, Sampling, check_buffer_size
from sf2el.paper.strategy import PaperStrategy
from sf2el.storage import files

Floats = npt.NDArray[np.float64]


class SF2EL(StreamModel):
    """Storage-fit learning with feature-evolvable streams.

    Each feature space has a few experts. While old and new features are there together, a map from the new
    to the old is fitted. When the old ones vanish, their experts go on with what the map recovers, new ones
    learn, and weights follow whichever are best. Learns from unlabelled rows, and needs no tuning. The
    published algorithm with all its parameters is :meth:`SF2EL.paper`.

    Time O((b + d)^2) a labelled row and expert, O(b d) an unlabelled one; memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``: the experts are as large as fits and helps.
    seed
        Seed of everything random; one seed gives the same bits.
    classes
        The labels, the positive one first; else labels are learned as they come.
    class_weight
        None, ``"balanced"`` (labels weigh inversely to how often they were seen) or a weight for each label.
    forget
        Share of what was learned that becomes uncertain again with each label; for concepts that drift.

    Examples
    --------
    >>> model = SF2EL(budget="16KiB", seed=0)
    >>> for t in range(40):                               # one sensor, a label now and then
    ...     old = (t % 8 - 3.5) / 2
    ...     model.learn_one({"old": old}, ("wet" if old > 0 else "dry") if t % 3 == 0 else None)
    >>> for t in range(5):                                # both sensors report, no label
    ...     model.learn_one({"old": t - 2.0, "new": 20.0 - 4.0 * t})
    >>> model.predict_one({"new": 6.0})                   # only the new one does
    'wet'

    References
    ----------
    Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
    """

    KIND = "classifier"

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        seed: int = 0,
        classes: Sequence[Any] | None = None,
        class_weight: ClassWeight = None,
        forget: float = 0.0,
    ) -> None:
        labels = Labels(classes, class_weight=class_weight)
        self._engine = Engine(BankStrategy(forget=forget, seed=seed), parse_budget(budget), labels)

    @classmethod
    def paper(
        cls,
        *,
        buffer_size: int | None = 60,
        budget: int | str | None = None,
        kernel: Kernel | None = None,
        graph_width: float = 1.0,
        loss: str = "logistic",
        ridge: float = 1e-4,
        smoothness: float = 1e-4,
        step: float = 1.0,
        label_rate: float | None = None,
        eta: float | None = None,
        classes: Sequence[Any] | None = None,
        class_weight: ClassWeight = None,
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
    ) -> Self:
        """Return the published algorithm with explicit parameters.

        The learner's parameters are those of :class:`sf2el.LearnerSettings`. Binary.

        Parameters
        ----------
        buffer_size
            Rows that each learner's buffer holds.
        budget
            Bytes, in place of ``buffer_size``: buffers as large as fit, all of it taken with the first row.
        eta
            Rate of the hedge; None takes AdaHedge, which needs no horizon. The paper's own is
            ``Hedge.rate_for(T2)``.
        classes
            The two labels, the positive one first; else the first label seen is the positive one.
        class_weight
            None, ``"balanced"`` or a weight for each label.
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
        given = locals() | {"kernel": RBF(1.0) if kernel is None else kernel}
        if budget is None:
            check_buffer_size(plain_number(buffer_size))
        else:
            given["buffer_size"] = None
        strategy = PaperStrategy.from_parameters(given)
        model = cls.__new__(cls)
        labels = Labels(classes, binary=True, class_weight=class_weight)
        model._engine = Engine(strategy, None if budget is None else parse_budget(budget), labels)
        return model

    # -- predicting

    def predict_one(self, x: Row) -> Label | None:
        """Return the predicted label of a row; None before any label was seen. Changes nothing."""
        engine = self._engine
        labels: Labels = engine.targets  # type: ignore[assignment]
        return labels.decide(engine.state.predict(x))

    def predict_proba_one(self, x: Row) -> dict[Label, float]:
        """Return the probability of each label; {} before any label was seen."""
        with self._engine.used:
            return self._labels.probabilities(self._engine.state.predict(x))

    def predict_many(self, X: Any, features: Sequence[Hashable] | None = None) -> npt.NDArray[np.object_]:
        """Return the predicted label of every row of an array or frame: the loop of ``predict_one``."""
        return self._decided_many(X, features)[0]

    def predict_proba_many(self, X: Any, features: Sequence[Hashable] | None = None) -> Floats:
        """Return the probability of each label (a column each, in the order of ``labels``) for every row."""
        with self._engine.used:
            table = table_of(X, features, self._engine.current_names())
            outputs = self._engine.predict_many(table)
            return self._labels.probabilities_many(outputs)

    def _decided_many(
        self, X: Any, features: Sequence[Hashable] | None
    ) -> tuple[npt.NDArray[np.object_], Floats]:
        with self._engine.used:
            table = table_of(X, features, self._engine.current_names())
            return self._labels.decide_many(self._engine.predict_many(table))

    @property
    def labels(self) -> list[Label]:
        """The labels seen or named so far, in their order."""
        return list(self._labels.seen)

    # -- learning

    def learn_one(self, x: Row, y: Any = None, *, late: bool = False) -> None:
        """Learn one row; ``y`` None means that its label is not known.

        ``late`` says that the row was learned before, without this label: only the loss step is taken, in the
        spaces that have the row's features. No counter of rows, scaler, reservoir or period moves.
        """
        engine = self._engine
        with engine.used:
            if y is None and not late:
                engine.learn(x, UNLABELLED, 1.0)
                return
            labels = self._labels
            label = labels.read(y)
            if late:
                self._learn_late(x, label)
            elif label is None:
                engine.learn(x, UNLABELLED, 1.0)
            elif label in labels.places:
                self._learn_known(x, labels.places[label])
            else:
                self._learn_new(x, label)

    def _learn_known(self, x: Row, place: int) -> None:
        """Learn a row with a label that was seen before; it counts once the row is learned."""
        labels = self._labels
        counts = labels.counts
        counted = counts, place, counts[place] + 1
        self._engine.learn(x, labels.target(place), labels.weight(place, 1), counted)

    def _learn_new(self, x: Row, label: Label) -> None:
        """Learn a row with a label that was not seen before."""
        engine, before = self._engine, self._snapshot()
        try:
            told = self._meet(label)
            self._learn_known(x, self._labels.places[label])
            for one in told:
                engine.tell(one)
        except BaseException:
            self._restore(before)
            raise

    def _meet(self, label: Label) -> list[Happened]:
        """Take in a label that was not seen before; from the third on, experts grow an output for it."""
        labels = self._labels.copy()
        labels.see(label, count=False)
        self._labels = labels
        if labels.outputs == self._engine.state.outputs:
            return []
        return [Happened(EventKind.NEW_CLASS, len(labels.seen)), *self._engine.grow(labels.outputs)]

    def _learn_late(self, x: Row, label: Label | None) -> None:
        if label is None:
            raise ValueError("late=True is for a label that arrives later; pass that label as y.")
        engine, before = self._engine, self._snapshot()
        try:
            if not engine.can_learn_late(x):
                return
            told = [] if label in self._labels.places else self._meet(label)
            labels = self._labels
            place = labels.see(label)
            engine.learn_late(x, labels.target(place), labels.weight(place))
            for one in told:
                engine.tell(one)
        except BaseException:
            self._restore(before)
            raise

    def learn_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> None:
        """Learn the rows of an array or frame in turn: the loop of ``learn_one``, bit for bit, in one call.

        Parameters
        ----------
        X
            A frame, whose columns are the features, or an array of rows; NaN means not observed.
        y
            One label a row, None or NaN where it is not known; None for no labels at all.
        features
            Names of an array's columns; without them the columns are the features 0, 1, 2, ...
        """
        self._run(X, y, features, False)

    def run_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> Track:
        """Predict and then learn each row in turn; return what was predicted for each before it was learned.

        The parameters are those of ``learn_many``.

        Examples
        --------
        >>> model = SF2EL(budget="8KiB")
        >>> track = model.run_many([[0.0], [1.0], [0.1], [0.9]], ["low", "high", None, None])
        >>> list(track.prediction)
        [None, 'low', 'low', 'high']
        """
        said = self._run(X, y, features, True)
        empty = np.empty(0)
        predictions, probabilities = zip(*(decided(one) for one in said), strict=True) if said else ((), ())
        blocks = [block for one in said for block in one.blocks]
        return Track(
            np.concatenate([*predictions, empty.astype(object)]),
            np.concatenate([*probabilities, empty]),
            np.concatenate([*(block.space for block in blocks), empty]).astype(np.int64),
            np.concatenate([*(block.recovered > 0.5 for block in blocks), empty]).astype(np.int8),
        )

    def _run(self, X: Any, y: Any, features: Sequence[Hashable] | None, wanted: bool) -> list[Said]:
        engine = self._engine
        with engine.used:
            table = table_of(X, features, engine.current_names())
            plain = self._labels.read_many(labels_of(y, len(table.rows)))
            before = self._snapshot()
            try:
                return list(self._parts(table, plain, wanted))
            except BaseException:
                self._restore(before)
                raise

    def _parts(self, table: Table, plain: list[Label | None], wanted: bool) -> Iterator[Said]:
        """Learn a table in parts: up to a label that gives experts an output more, then that row."""
        engine, start = self._engine, 0
        while start < len(plain):
            stop = self._labels.first_growing(plain, start)
            if stop == start:
                x, labels = table.row(start), self._labels.copy()
                if wanted:
                    yield Said([engine.said(x)], labels, np.array([len(labels.seen)]), labels, [None])
                self._learn_new(x, plain[start])  # type: ignore[arg-type]
                start += 1
                continue
            before, ahead = self._labels.copy(), self._labels.copy()
            targets, weights, known = targets_of(ahead, plain[start:stop])
            counted = 0

            def passed(rows: int, first: int = start) -> None:
                nonlocal counted
                self._labels.count(plain[first + counted : first + rows])
                counted = rows

            blocks = engine.run(table.part(start, stop), targets, weights, wanted, passed)
            passed(stop - start)
            if wanted:
                yield Said(blocks, ahead, known, before, plain[start:stop])
            start = stop

    def _snapshot(self) -> tuple[Any, ...]:
        return self._engine.snapshot(), self._labels.copy()

    def _restore(self, snapshot: tuple[Any, ...]) -> None:
        engine, self._labels = snapshot
        self._engine.restore(engine)

    @property
    def _labels(self) -> Labels:
        labels: Labels = self._engine.targets  # type: ignore[assignment]
        return labels

    @_labels.setter
    def _labels(self, labels: Labels) -> None:
        self._engine.targets = labels

    # -- files

    def _content(self) -> tuple[str, dict[str, Any]]:
        strategy = "paper" if isinstance(self._engine.strategy, PaperStrategy) else "bank"
        return strategy, self._labels.state()

    @classmethod
    def _from_content(cls, data: bytes) -> Self:
        saved = files.read(data)
        try:
            if saved.kind != cls.KIND:
                raise ValueError(f"it holds a {saved.kind}, to be read by another class than {cls.__name__}")
            model = cls.__new__(cls)
            strategies: dict[str, Callable[[dict[str, Any]], Strategy]]
            strategies = {"bank": BankStrategy.of, "paper": PaperStrategy.of}
            strategy = strategies[saved.strategy](saved.parameters)
            model._engine = Engine.restored(saved, strategy, Labels.of(saved.targets))
            return model
        except files.DAMAGED as error:
            raise ValueError(files.no_model(error)) from None

    def __repr__(self) -> str:
        engine = self._engine
        size = f"budget={engine.budget}" if engine.budget is not None else engine.strategy.size()
        return f"{type(self).__name__}({size}, seed={engine.strategy.seed}, rows={engine.state.rows})"
