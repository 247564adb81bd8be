"""SF2EL as river estimators: pipelines, metrics and evaluation of river take them as their own.

Needs river: ``pip install 'sf2el[river]'``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sf2el.classifier import SF2EL
from sf2el.inputs.labels import ClassWeight
from sf2el.inputs.tables import labels_of
from sf2el.model.stream import StreamModel
from sf2el.regressor import SF2ELRegressor as Regressor

try:
    from river import base
except ImportError as error:
    raise ImportError("sf2el.adapters.river needs river: pip install 'sf2el[river]'.") from error

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SF2ELClassifier", "SF2ELRegressor"]

Row = Mapping[Hashable, Any]


class _Adapter:
    """What both estimators share."""

    model: StreamModel

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"budget": "16KiB"}

    @property
    def _raw_memory_usage(self) -> int:
        # River's walk sees the Python objects, but not what the compiled core keeps.
        walked: int = super()._raw_memory_usage  # type: ignore[misc]
        kept = self.model.memory_usage()
        assert isinstance(kept, int)
        return walked + kept


class SF2ELClassifier(_Adapter, base.MiniBatchClassifier):  # type: ignore[misc]
    """Classifier for streams whose features come and go, whose labels are rare, whose memory is limited.

    :class:`sf2el.SF2EL` for river. Absent, None and NaN features are not observed, and a row whose label is
    None is learned without one. A row with nothing observed is not learned; for it a label is as likely as it
    was often seen.

    Time O((b + d)^2) a labelled row and expert, O(b d) an unlabelled one; memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``: the experts are as large as fits and helps.
    class_weight
        None, ``"balanced"`` (labels weigh inversely to how often they were seen) or a weight for each label.
    forget
        Share by which what was learned becomes uncertain again with each label; for concepts that drift.
    seed
        Seed of everything random; one seed gives the same bits.

    Attributes
    ----------
    model
        The :class:`sf2el.SF2EL` inside, for its events, weights, budget and saving.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sf2el.adapters.river import SF2ELClassifier
    >>> model = SF2ELClassifier(budget="32KiB", seed=0)
    >>> metric = evaluate.progressive_val_score(datasets.Phishing().take(500), model, metrics.Accuracy())
    >>> metric.get() > 0.8
    True
    >>> model.learn_one({"is_popular": 1.0}, None)        # its label is not known
    >>> model.predict_one({"is_popular": 1.0}) in (False, True)
    True

    References
    ----------
    Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
    """

    def __init__(
        self,
        budget: int | str = "64KiB",
        class_weight: ClassWeight = None,
        forget: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.class_weight = class_weight
        self.forget = forget
        self.seed = seed
        self.model: SF2EL = SF2EL(budget=budget, class_weight=class_weight, forget=forget, seed=seed)
        # The model keeps True as 1; what comes out is what came in.
        self._given: dict[Any, Any] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Row, y: Any = None) -> None:
        """Learn a row; ``y`` None means that its label is not known."""
        if _anything(x):
            self.model.learn_one(x, y)
            self._keep([y])

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each label; {} before any label was seen."""
        if not _anything(x):
            return self._named(self.model._labels.probabilities(None))
        return self._named(self.model.predict_proba_one(x))

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """Return the predicted label of a row; None before any label was seen."""
        if not _anything(x):
            return self._given.get(self.model._labels.decide(None))
        return self._given.get(self.model.predict_one(x))

    def learn_many(self, X: pd.DataFrame, y: Any = None) -> None:
        """Learn the rows of a frame in turn: the loop of ``learn_one``, in one call.

        ``y`` is a series, an array or a list with one label a row; None means that none is known.
        """
        rows, labels = _rows_to_learn(X, y)
        self.model.learn_many(rows, labels)
        self._keep(labels)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probability of each label, one column a label."""
        import pandas as pd

        rows = [self.predict_proba_one(row) for row in _rows(X)]
        return pd.DataFrame(rows, index=X.index, columns=list(self._given.values()))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the predicted label of every row."""
        import pandas as pd

        found = pd.Series([self.predict_one(row) for row in _rows(X)], index=X.index, dtype=object)
        return found.infer_objects()

    def _named(self, probabilities: Mapping[Any, float]) -> dict[Any, float]:
        return {self._given[label]: p for label, p in probabilities.items()}

    def _keep(self, labels: Iterable[Any]) -> None:
        for label in labels:
            if label is not None and label == label:
                self._given.setdefault(label, getattr(label, "item", lambda label=label: label)())


class SF2ELRegressor(_Adapter, base.MiniBatchRegressor):  # type: ignore[misc]
    """Regression on streams whose features come and go, within a budget of bytes.

    :class:`sf2el.SF2ELRegressor` for river. Absent, None and NaN features are not observed, and a row whose
    target is None or NaN is learned without one. A row with nothing observed is not learned; the targets'
    mean is predicted for it.

    Time O((b + d)^2) a row with a target and expert, O(b d) one without; memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``.
    loss
        ``"squared"``, or ``"absolute"`` for targets with outliers.
    forget
        Share by which what was learned becomes uncertain again with each target.
    seed
        Seed of everything random; one seed gives the same bits.

    Attributes
    ----------
    model
        The :class:`sf2el.SF2ELRegressor` inside, for its events, weights, budget and saving.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from sf2el.adapters.river import SF2ELRegressor
    >>> model = SF2ELRegressor(budget="32KiB")
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval().take(500), model, metrics.MAE())
    >>> metric.get() < 1.0
    True
    """

    def __init__(
        self,
        budget: int | str = "64KiB",
        loss: str = "squared",
        forget: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.loss = loss
        self.forget = forget
        self.seed = seed
        self.model: Regressor = Regressor(budget=budget, loss=loss, forget=forget, seed=seed)

    def learn_one(self, x: Row, y: float | None = None) -> None:
        """Learn a row; ``y`` None or NaN means that its target is not known."""
        if _anything(x):
            self.model.learn_one(x, y)

    def predict_one(self, x: Row) -> float:
        """Return the predicted target of a row; the mean so far where nothing else is known."""
        return self.model.predict_one(x) if _anything(x) else self.model._targets.mean

    def learn_many(self, X: pd.DataFrame, y: Any = None) -> None:
        """Learn the rows of a frame in turn: the loop of ``learn_one``, in one call.

        ``y`` is a series, an array or a list with one target a row; None means that none is known.
        """
        self.model.learn_many(*_rows_to_learn(X, y))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the predicted target of every row."""
        import pandas as pd

        return pd.Series([self.predict_one(row) for row in _rows(X)], index=X.index, dtype=float)


def _anything(x: Row) -> bool:
    """Tell whether a row has an observed feature; what is no row is left to the model to refuse."""
    if not isinstance(x, Mapping):
        return True
    return any(
        value is not None and not (isinstance(value, (float, np.floating)) and value != value)
        for value in x.values()
    )


def _observed(X: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which values of a frame are observed."""
    if not hasattr(X, "notna") or not hasattr(X, "columns"):
        raise ValueError(f"Pass the rows as a pandas frame, not as {type(X).__name__}.")
    return np.asarray(X.notna())


def _rows_to_learn(X: pd.DataFrame, y: Any) -> tuple[pd.DataFrame, list[Any]]:
    """Return the rows with an observed feature, and their labels."""
    some = np.atleast_1d(_observed(X).any(axis=1))
    labels = labels_of(y, len(X))
    return X[some], [label for label, there in zip(labels, some, strict=True) if there]


def _rows(X: pd.DataFrame) -> Iterator[dict[Hashable, Any]]:
    """Return the observed features of each row."""
    observed = _observed(X)
    names = list(X.columns)
    for row, some in zip(X.itertuples(index=False, name=None), observed, strict=True):
        yield {name: value for name, value, seen in zip(names, row, some, strict=True) if seen}
