"""All metrics of one task together, to be summed over rounds and merged over windows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from sf2el.evaluate.counts import Counts
from sf2el.evaluate.probabilities import Probabilities

CLASSIFICATION = ("accuracy", "balanced_accuracy", "kappa", "auc", "log_loss")
REGRESSION = ("mae", "rmse", "r2")


class Scores(Protocol):
    """What windows are made of: rounds that can be merged."""

    @property
    def rounds(self) -> int:
        """Rounds counted."""

    def merge(self, other: Any) -> None:
        """Add another's rounds."""

    def metrics(self) -> dict[str, float]:
        """Return the metrics; NaN where undefined."""

    def state(self) -> Any:
        """Return everything as JSON can hold it."""


AnyScores = TypeVar("AnyScores", bound=Scores)


class ClassScores:
    """Counts and, where a model gives them, probabilities.

    >>> scores = ClassScores(probabilities=False)
    >>> scores.add("a", "a", None)
    >>> scores.metrics()["accuracy"]
    1.0
    """

    def __init__(self, *, probabilities: bool, small: bool = False) -> None:
        self.counts = Counts()
        self.probabilities = Probabilities(small=small) if probabilities else None

    @property
    def rounds(self) -> int:
        """Rounds counted."""
        return self.counts.rounds

    def add(
        self,
        truth: Hashable,
        prediction: Hashable,
        probabilities: Mapping[Any, float] | None,
        *,
        told: bool = True,
    ) -> None:
        """Count one round; ``told`` says whether the model was told of this label before."""
        self.counts.add(truth, prediction)
        if self.probabilities is not None and probabilities is not None:
            self.probabilities.add(truth, probabilities, told=told)

    def merge(self, other: Self) -> None:
        """Add another's rounds."""
        self.counts.merge(other.counts)
        if self.probabilities is not None and other.probabilities is not None:
            self.probabilities.merge(other.probabilities)

    def metrics(self) -> dict[str, float]:
        """Return the metrics; NaN where undefined."""
        more = self.probabilities.metrics() if self.probabilities is not None else {}
        return self.counts.metrics() | more

    def state(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {
            "counts": self.counts.state(),
            "probabilities": None if self.probabilities is None else self.probabilities.state(),
        }


def check_names(metrics: Sequence[str]) -> None:
    """Refuse a name that is no metric."""
    known = (*CLASSIFICATION, *REGRESSION)
    for name in metrics:
        if name not in known:
            raise ValueError(f"{name!r} is not a metric; choose among {', '.join(known)}.")
    if not (set(metrics) <= set(CLASSIFICATION) or set(metrics) <= set(REGRESSION)):
        raise ValueError("Metrics of labels and metrics of numbers cannot be asked for together.")


def is_regression(metrics: Sequence[str] | None, model: Any, truth: Any, prediction: Any) -> bool:
    """Say whether numbers are predicted: by the metrics, else by the model and the first known truth.

    ``truth`` is None where no round's is known; ``prediction`` is that of the same round.

    >>> is_regression(None, object(), "a", None), is_regression(None, object(), 1.5, None)
    (False, True)
    """
    if metrics:
        return metrics[0] in REGRESSION
    if hasattr(model, "predict_proba_one") or isinstance(truth, (str, bool, np.bool_)):
        return False
    return any(isinstance(value, (float, np.floating)) for value in (truth, prediction))
