"""SF2EL: a classifier for streams whose features come and go, with few labels and little memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el import events
from sf2el.events import Happened
from sf2el.inputs.labels import ClassWeight, Label, Labels
from sf2el.inputs.rows import read_row
from sf2el.inputs.tables import Table, labels_of, tables_of
from sf2el.memory.budget import parse_budget
from sf2el.model.bank import BankRecipe
from sf2el.model.strategy import Recipe
from sf2el.model.streaming import Block, Row, StreamModel, Track
from sf2el.paper.kernels import RBF, Kernel, plain_number
from sf2el.paper.settings import Equations, LearnerSettings, OnSkip, Projection, Sampling, check_buffer_size
from sf2el.paper.strategy import PaperRecipe

Floats = npt.NDArray[np.float64]


class SF2EL(StreamModel):
    """Storage-fit learning with feature-evolvable streams.

    A bank of experts for the current features; when other features appear beside them, a map from the new
    to the old; when the old ones vanish, the old experts go on with what they would have read, new ones
    start, and weights follow whichever are best. Learns from unlabelled rows. Needs no tuning; the published
    algorithm with all its parameters is :meth:`SF2EL.paper`.

    Time O((b + d)^2) a labelled row and expert, O(b d) an unlabelled one; memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``: the experts are as large as fits and helps.
    seed
        Seed of the reservoirs; one seed, same bits.
    classes
        The labels, the positive one first; else labels are learned as they come.
    class_weight
        None, ``"balanced"`` (labels weigh inversely to how often they were seen) or a weight for each label.
    forget
        Share by which what was learned becomes uncertain again with each label; for concepts that drift.
    backend
        ``"native"`` or ``"numpy"``; None takes the compiled one where it was built.

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
    LEAST_LABELS = Labels().nbytes

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        seed: int = 0,
        classes: Sequence[Any] | None = None,
        class_weight: ClassWeight = None,
        forget: float = 0.0,
        backend: str | None = None,
    ) -> None:
        recipe = BankRecipe(task="classes", forget=forget, seed=seed, backend=backend)
        self._labels = Labels(classes, class_weight=class_weight)
        self._begin(recipe, parse_budget(budget))

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
        backend: str | None = None,
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
        if budget is None:
            check_buffer_size(plain_number(buffer_size))
        settings = LearnerSettings(
            kernel=RBF(1.0) if kernel is None else kernel,
            graph_width=graph_width,
            loss=loss,
            ridge=ridge,
            smoothness=smoothness,
            step=step,
            label_rate=label_rate,
            manifold=manifold,
            equations=equations,
            cap=cap,
            projection=projection,
            pursuit_steps=pursuit_steps,
            keep_gram=keep_gram,
            on_skip=on_skip,
            sampling=sampling,
            radius=radius,
            jitter=jitter,
        )
        recipe = PaperRecipe(
            settings=settings,
            buffer_size=buffer_size if budget is None else None,
            scaled=scaled,
            restart=restart,
            map_ridge=map_ridge,
            map_intercept=map_intercept,
            train_in_overlap=train_in_overlap,
            eta=eta,
            seed=seed,
            backend=backend,
        )
        labels = Labels(classes, binary=True, class_weight=class_weight)
        return cls._of(recipe, labels, None if budget is None else parse_budget(budget))

    @classmethod
    def _of(cls, recipe: Recipe, labels: Labels, budget: int | None) -> Self:
        model = cls.__new__(cls)
        model._labels = labels
        model._begin(recipe, budget)
        return model

    def _label_bytes(self) -> int:
        return self._labels.nbytes

    def _outputs(self) -> int:
        return self._labels.outputs

    def _label_counts(self) -> list[int]:
        return list(self._labels.counts)

    def _told(self) -> list[int]:
        counts = self._labels.counts
        return [] if self._labels.class_weight is not None else [*counts, *[0] * (2 - len(counts))]

    def _labels_out(self) -> dict[str, Any]:
        return self._labels.state()

    def _labels_in(self, content: dict[str, Any]) -> None:
        self._labels = Labels.of(content)

    # -- predicting

    def predict_one(self, x: Row) -> Label | None:
        """Return the predicted label of a row; None before any label was seen. Changes nothing."""
        return self._labels.decide(self._output_one(x))

    def predict_proba_one(self, x: Row) -> dict[Label, float]:
        """Return the probability of each label; {} before any label was seen."""
        return self._labels.probabilities(self._output_one(x))

    def predict_many(self, X: Any, features: Sequence[Hashable] | None = None) -> npt.NDArray[np.object_]:
        """Return the predicted label of every row of an array or frame: the loop of ``predict_one``."""
        tables = tables_of(X, features, self._current_names())
        found = [
            self._labels.decide(self._output_one(table.row(i)))
            for table in tables
            for i in range(len(table.rows))
        ]
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out

    # -- learning

    def learn_one(self, x: Row, y: Any = None, *, late: bool = False) -> None:
        """Learn one row; ``y`` None means that its label is not known.

        ``late`` says that the row was learned before, without this label: only the loss step is taken, in the
        spaces that have the row's features. No counter of rows, scaler, reservoir or period moves.
        """
        label = self._labels.read(y)
        if late:
            self._learn_late(x, label)
        elif label is None:
            self._learn_dict(x, float("nan"), 1.0)
        elif label in self._labels.seen:
            labels = self._labels
            place = labels.see(label)
            target, weight = labels.target(place), labels.weight(place)
            labels.counts[place] -= 1  # it does not count before its row is learned
            self._learn_dict(x, target, weight)
            labels.counts[place] += 1
        else:
            before = self._snapshot()
            try:
                self._meet(label)
                self.learn_one(x, label)
            except BaseException:
                self._restore(before)
                raise

    def _learn_late(self, x: Row, label: Label | None) -> None:
        if label is None:
            raise ValueError("late=True is for a label that arrives later; pass that label as y.")
        observed = read_row(x)
        if self._stage is None:
            raise ValueError(
                "No row was learned yet; learn the row first, then pass its label with late=True."
            )
        if not self._stage.knows(observed):  # nor is its label counted
            self._record([Happened(events.TOO_LATE)])
            return
        labels = self._labels.copy()
        before = None if label in labels.seen else self._snapshot()
        try:
            if before is not None:
                self._meet(label)
            place = self._labels.see(label)
            target, weight = self._labels.target(place), self._labels.weight(place)
            if not self._stage.learn_late(observed, target, weight):
                self._record([Happened(events.TOO_LATE)])
        except BaseException:
            self._labels = labels
            if before is not None:
                self._restore(before)
            raise

    def _meet(self, label: Label) -> None:
        """Take in a label that was not seen before; from the third on, experts grow an output for it."""
        labels = self._labels.copy()
        labels.see(label, count=False)
        if self._stage is None or labels.outputs == self._stage.outputs:
            self._labels = labels
            return
        stage = self._stage.clone()
        self._recipe.grow(stage, labels.outputs)
        before, self._labels = self._labels, labels
        try:
            told = self._fitted(stage)
        except BaseException:
            self._labels = before
            raise
        if before.outputs == 1:  # rows that wait have +1 or -1 for the places 0 and 1
            self._pending = [row._replace(target=(1.0 - row.target) / 2.0) for row in self._pending]
        self._stage, self._refit_at = stage, stage.refit_at(self._rows_seen)
        if stage.past is None and self._tracker is not None:
            self._tracker.forget_past()
        self._record([Happened(events.NEW_CLASS, len(labels.seen)), *told, *self._house_rows()])

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
        self._run(tables_of(X, features, self._current_names()), y)

    def run_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> Track:
        """Predict and then learn each row in turn; return what was said of each before it was learned.

        The parameters are those of ``learn_many``.

        Examples
        --------
        >>> model = SF2EL(budget="8KiB")
        >>> track = model.run_many([[0.0], [1.0], [0.1], [0.9]], ["low", "high", None, None])
        >>> list(track.prediction)
        [None, 'low', 'low', 'high']
        """
        blocks = self._run(tables_of(X, features, self._current_names()), y)
        predictions, probabilities = [], []
        for block, labels, known in blocks:
            prediction, probability = _decided(block, labels, known)
            predictions.append(prediction)
            probabilities.append(probability)
        spaces = [np.full(len(block.outputs), block.space) for block, _, _ in blocks]
        followed = [block.followed() for block, _, _ in blocks]
        empty = np.empty(0)
        return Track(
            np.concatenate([*predictions, empty.astype(object)]),
            np.concatenate([*probabilities, empty]),
            np.concatenate([*spaces, empty]).astype(np.int64),
            np.concatenate([*followed, empty]).astype(np.int8),
        )

    def _run(self, tables: Sequence[Table], y: Any) -> list[tuple[Block, Labels, npt.NDArray[np.int64]]]:
        """Predict and learn tables; return blocks, each with its labels and how many of them were known."""
        labels = labels_of(y, sum(len(table.rows) for table in tables))
        plain = self._labels.read_many(labels)
        before = self._snapshot()
        try:
            return list(self._walk_labelled(tables, plain))
        except BaseException:
            self._restore(before)
            raise

    def _walk_labelled(
        self, tables: Sequence[Table], plain: list[Label | None]
    ) -> Iterator[tuple[Block, Labels, npt.NDArray[np.int64]]]:
        start = 0
        for table in tables:
            stop = start + len(table.rows)
            while start < stop:
                rest = table.part(start - stop)
                fresh = self._fresh(plain, start, stop)
                if fresh == start:
                    yield self._learn_fresh(rest.part(0, 1), plain[start])
                    start += 1
                    continue
                labels = self._labels.copy()
                targets, weights, known = _told(labels, plain[start:fresh])
                used = 0
                for block in self._walk([rest.part(0, fresh - start)], targets, weights):
                    size = len(block.outputs)
                    self._labels.count(plain[start + used : start + used + size])
                    yield block, labels, known[used : used + size]
                    used += size
                start = fresh

    def _fresh(self, plain: list[Label | None], start: int, stop: int) -> int:
        """Return the first of these rows with a label that gives experts an output more."""
        if set(plain[start:stop]) <= {None, *self._labels.seen}:
            return stop
        labels = self._labels.copy()
        for place in range(start, stop):
            label = plain[place]
            if label is not None and label not in labels.seen:
                labels.see(label, count=False)
                if labels.outputs > 1:
                    return place
        return stop

    def _learn_fresh(self, table: Table, label: Label | None) -> tuple[Block, Labels, npt.NDArray[np.int64]]:
        """Predict a row, then learn it with a label that was not seen before."""
        observed, before = table.row(0), self._labels
        block = self._said(observed)
        self.learn_one(observed, label)
        return block, before, np.array([len(before.seen)])

    def _snapshot(self) -> tuple[Any, ...]:
        return (*super()._snapshot(), self._labels.copy())

    def _restore(self, snapshot: tuple[Any, ...]) -> None:
        *rest, self._labels = snapshot
        super()._restore(tuple(rest))

    def __repr__(self) -> str:
        recipe = self._recipe
        size = f"budget={self._budget}" if self._budget is not None else recipe.size()
        return f"{type(self).__name__}({size}, seed={recipe.seed}, rows={self._rows_seen})"


def _told(
    labels: Labels, plain: Sequence[Label | None]
) -> tuple[Floats, Floats | None, npt.NDArray[np.int64]]:
    """Return targets and weights of labels, and how many labels were known before each; count them."""
    if labels.class_weight is None and set(plain) <= {None, *labels.seen}:
        target: dict[Label | None, float] = {None: float("nan")}
        target |= {name: labels.target(place) for place, name in enumerate(labels.seen)}
        return np.array([target[label] for label in plain]), None, np.full(len(plain), len(labels.seen))
    targets, known = np.full(len(plain), np.nan), np.empty(len(plain), dtype=np.int64)
    weights = None if labels.class_weight is None else np.ones(len(plain))
    for i, label in enumerate(plain):
        known[i] = len(labels.seen)
        if label is None:
            continue
        place = labels.see(label)
        targets[i] = labels.target(place)
        if weights is not None:
            weights[i] = labels.weight(place)
    return targets, weights, known


def _decided(
    block: Block, labels: Labels, known: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.object_], Floats]:
    """Return the label of each row and its probability, by the labels known before the row."""
    prediction, probability = labels.decide_many(block.outputs)
    if known[0] >= 2:
        return prediction, probability
    few = known < 2
    prediction, probability = prediction.copy(), probability.copy()
    prediction[few] = [labels.seen[0] if count else None for count in known[few]]
    probability[few] = np.where(known[few] > 0, 1.0, np.nan)
    return prediction, probability
