"""SF2EL as scikit-learn estimators: pipelines, searches and cross-validation take them as their own.

Needs scikit-learn: ``pip install 'sf2el[sklearn]'``.
"""

from __future__ import annotations

from math import log
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el.classifier import SF2EL
from sf2el.inputs.labels import ClassWeight
from sf2el.regressor import SF2ELRegressor as Regressor

try:
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted

    from sf2el.adapters.sklearn_tables import Frame, TableEstimator
except ImportError as error:
    raise ImportError("sf2el.adapters.sklearn needs scikit-learn: pip install 'sf2el[sklearn]'.") from error

__all__ = ["SF2ELClassifier", "SF2ELRegressor"]

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class SF2ELClassifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """Classifier for streams whose features come and go, whose labels are rare, whose memory is limited.

    :class:`sf2el.SF2EL` for scikit-learn. Rows are learned in their order, once. NaN means not observed; a
    row with nothing observed is not learned; for it a label is as likely as it was often seen. Arrays have
    the same columns in every call. Frames (pandas, polars) may have others in each ``partial_fit`` and
    ``predict``: features are known by their names, and ``feature_names_in_`` are those of the last frame
    learned.

    Time O((b + d)^2) a labelled row and expert, O(b d) an unlabelled one; memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``: the experts are as large as fits and helps.
    unlabelled
        The entry of ``y`` that stands for a label that is not known, as None always does; None where there is
        no other. It is a label where ``classes`` of ``partial_fit`` names it. A ``y`` of -1 and 1 alone could
        mean either: to ``fit``, which sees all there is, both are labels; a first ``partial_fit`` asks for
        ``classes``.
    class_weight
        None, ``"balanced"`` (labels weigh inversely to how often they were seen) or a weight for each label,
        above 0 and at most 100.
    forget
        Share by which what was learned becomes uncertain again with each label; for concepts that drift.
    random_state
        Seed of everything random: a whole number (same bits each time), a RandomState, or None for a new one.

    Attributes
    ----------
    classes_
        The labels, sorted.
    n_features_in_, feature_names_in_
        Number of columns, and their names in the last frame learned.
    model_
        The :class:`sf2el.SF2EL` inside, for its events, weights, budget and saving.

    Examples
    --------
    >>> import numpy as np
    >>> from sf2el.adapters.sklearn import SF2ELClassifier
    >>> X = np.linspace(-2.0, 2.0, 41)[:, None] * [1.0, -1.0]
    >>> y = np.where(X[:, 0] > 0, 1, 0)
    >>> y[::2] = -1                                       # every other label is not known
    >>> X[::5, 1] = np.nan                                # the second feature is not always there
    >>> order = np.random.default_rng(0).permutation(41)
    >>> model = SF2ELClassifier(budget="16KiB").fit(X[order], y[order])
    >>> model.predict([[1.5, -1.5], [-1.5, np.nan]])
    array([1, 0])
    >>> model.classes_
    array([0, 1])

    References
    ----------
    Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
    """

    model_: SF2EL

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        unlabelled: Any = -1,
        class_weight: ClassWeight = None,
        forget: float = 0.0,
        random_state: Any = 0,
    ) -> None:
        self.budget = budget
        self.unlabelled = unlabelled
        self.class_weight = class_weight
        self.forget = forget
        self.random_state = random_state

    # -- learning

    def fit(self, X: Any, y: Any) -> Self:
        """Learn rows in turn, from the start."""
        with self._undone_by_failure():
            frame, labels, given = self._read(X, y, fresh=True)
            signs = self._could_be_signs(labels[given])
            known = given if signs else given & ~self._is_unlabelled(labels)
            _check_kind(labels[known])
            if not known.any():
                raise ValueError("No row has a label; fit needs some, partial_fit takes rows without.")
            check_classification_targets(labels[known])
            classes = np.unique(labels[known])
            self._begin(classes, fixed=len(classes) > 1)
            return self._learn(frame, labels, known)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more rows in turn.

        Parameters
        ----------
        X
            Rows; a frame may have other columns than before.
        y
            One label a row, or None or what else stands for none.
        classes
            All labels there will be; without them labels are learned as they come. Where they name the value
            that stands for no label, it is a label. Needed where the first ``y`` has -1 and 1 alone.
        """
        fresh = not hasattr(self, "model_")
        named = None if classes is None else np.unique(column_or_1d(classes))
        if not fresh and named is not None and not np.array_equal(named, self.classes_):
            raise ValueError(f"classes={classes!r} are not the same as before, {self.classes_!r}.")
        with self._undone_by_failure():
            frame, labels, known = self._read(X, y, fresh=fresh)
            told = self.classes_ if not fresh and self._fixed else named
            if fresh and told is None and self._could_be_signs(labels[known]):
                raise ValueError(
                    "y has -1 and 1 alone, and -1 could be a label or stand for none: name all labels there "
                    "will be, as by classes=[-1, 1] or classes=[0, 1]."
                )
            if told is None or not self._is_unlabelled(told).any():
                known = known & ~self._is_unlabelled(labels)
            _check_kind(labels[known])
            if known.any():
                check_classification_targets(labels[known])
            if fresh:
                fixed = named is not None and len(named) > 1
                self._begin(labels[:0] if named is None else named, fixed=fixed)
            return self._learn(frame, labels, known)

    def _read(self, X: Any, y: Any, *, fresh: bool) -> tuple[Frame, Array, npt.NDArray[np.bool_]]:
        """Return rows and labels, and which labels are not None; these have another's in their place."""
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        frame = self._frame(X, fresh=fresh)
        labels, given = _without_none(column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y")
        check_consistent_length(frame.rows, labels)
        return frame, labels, given

    def _is_unlabelled(self, labels: Array) -> npt.NDArray[np.bool_]:
        if self.unlabelled is None:
            return np.zeros(len(labels), dtype=bool)
        return np.array([label == self.unlabelled for label in labels.tolist()], dtype=bool)

    def _could_be_signs(self, labels: Array) -> bool:
        """Tell whether labels are the -1 and 1 of so many binary tables, though -1 stands for no label."""
        return bool(self.unlabelled == -1) and set(labels.tolist()) == {-1, 1}

    def _begin(self, classes: Array, *, fixed: bool) -> None:
        self.model_ = SF2EL(
            budget=self.budget,
            seed=self._seed(),
            classes=classes.tolist() if fixed else None,
            class_weight=self.class_weight,
            forget=self.forget,
        )
        self.classes_ = classes
        self._fixed = fixed

    def _learn(self, frame: Frame, labels: Array, known: npt.NDArray[np.bool_]) -> Self:
        told = [label if has else None for label, has in zip(labels.tolist(), known, strict=True)]
        self._learn_rows(frame, told)
        if not self._fixed:
            self.classes_ = np.unique(np.concatenate([self.classes_, labels[known & frame.observed()]]))
        return self

    # -- predicting

    def predict(self, X: Any) -> Array:
        """Return the predicted label of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each label of ``classes_``."""
        labels = self._known()
        found = map(labels.probabilities, self._outputs(X))
        order = self.classes_.tolist()
        return np.array([[p[label] for label in order] for p in found]).reshape(-1, len(order))

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of ``classes_[1]`` of two labels; of more, each one's log probability."""
        labels, order = self._known(), self.classes_.tolist()
        if len(order) != 2:
            tiny: float = np.finfo(np.float64).tiny
            return np.asarray(np.log(np.maximum(self.predict_proba(X), tiny)))
        sign = 1.0 if labels.seen[0] == order[1] else -1.0
        unknown = labels.probabilities(None)
        odds = log(unknown[order[1]] / unknown[order[0]])
        return np.array([odds if output is None else sign * float(output) for output in self._outputs(X)])

    def _known(self) -> Any:
        check_is_fitted(self, "model_")
        if not len(self.classes_):
            raise ValueError("No label was seen yet; learn some, or name them by classes= of partial_fit.")
        return self.model_._labels


class SF2ELRegressor(RegressorMixin, TableEstimator):  # type: ignore[misc]
    """Regression on streams whose features come and go, within a budget of bytes.

    :class:`sf2el.SF2ELRegressor` for scikit-learn. Rows are learned in their order, once; arrays, frames and
    NaN are read as by :class:`SF2ELClassifier`. The targets' mean is predicted for a row with nothing
    observed. In ``partial_fit`` a target of NaN is not known.

    Time O((b + d)^2) a row with a target and expert, O(b d) one without; memory within ``budget``.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``.
    loss
        ``"squared"``, or ``"absolute"`` for targets with outliers.
    forget
        Share by which what was learned becomes uncertain again with each target.
    random_state
        Seed of everything random: a whole number (same bits each time), a RandomState, or None for a new one.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        Number of columns, and their names in the last frame learned.
    model_
        The :class:`sf2el.SF2ELRegressor` inside, for its events, weights, budget and saving.

    Examples
    --------
    >>> import numpy as np
    >>> from sf2el.adapters.sklearn import SF2ELRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = SF2ELRegressor(budget="16KiB").fit(X, 10.0 + X[:, 0] - 2.0 * X[:, 1])
    >>> model.predict([[1.0, -1.0]]).round()
    array([13.])
    """

    model_: Regressor

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        loss: str = "squared",
        forget: float = 0.0,
        random_state: Any = 0,
    ) -> None:
        self.budget = budget
        self.loss = loss
        self.forget = forget
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn rows in turn, from the start; every row has a target."""
        return self._learn(X, y, fresh=True, gaps=False)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn more rows in turn; a target of NaN is not known."""
        return self._learn(X, y, fresh=not hasattr(self, "model_"), gaps=True)

    def _learn(self, X: Any, y: Any, *, fresh: bool, gaps: bool) -> Self:
        with self._undone_by_failure():
            return self._learn_targets(X, y, fresh=fresh, gaps=gaps)

    def _learn_targets(self, X: Any, y: Any, *, fresh: bool, gaps: bool) -> Self:
        if y is None:
            name = type(self).__name__
            raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
        frame = self._frame(X, fresh=fresh)
        finite: bool | str = "allow-nan" if gaps else True
        targets = check_array(
            column_or_1d(y, warn=True),
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=finite,
            input_name="y",
        )
        check_consistent_length(frame.rows, targets)
        if fresh:
            self.model_ = Regressor(
                budget=self.budget,
                loss=self.loss,
                seed=self._seed(),
                forget=self.forget,
            )
        self._learn_rows(frame, targets.tolist())
        return self

    def predict(self, X: Any) -> Floats:
        """Return the predicted target of each row."""
        outputs = self._outputs(X)
        targets = self.model_._targets
        return np.array([targets.mean if o is None else targets.value(float(o)) for o in outputs])


def _without_none(labels: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return labels with another one in the place of None, and which are their own.

    An array of whole numbers and None holds objects; without None it is an array of whole numbers.
    """
    given = np.array([label is not None for label in labels.tolist()], dtype=bool)
    if given.all() or not given.any():
        return labels, given
    told = labels[given].tolist()
    filled = [label if has else told[0] for label, has in zip(labels.tolist(), given, strict=True)]
    text = any(isinstance(label, str) for label in told)
    return np.array(filled, dtype=object if text else None), given


def _mixed(labels: Array) -> bool:
    """Tell whether some labels are text and others are not."""
    return labels.dtype == object and len({isinstance(label, str) for label in labels.tolist()}) > 1


def _check_kind(labels: Array) -> None:
    if _mixed(labels):
        raise ValueError("Some labels are text and others are not: pass all as text or all as whole numbers.")
