"""The calls that every expert has, and that a bank makes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import check_late_label, check_row, check_rows, check_weights
from sf2el.core.numpy_backend.tasks import check_task_labels

Floats = npt.NDArray[np.float64]


class Expert(ABC):
    """An expert with one or several scores, that learns from labelled rows only."""

    uses_unlabelled = False

    def __init__(self, settings: Any, dim: int) -> None:
        self.settings, self.dim = settings, dim
        self.outputs: int = settings.outputs

    @abstractmethod
    def _scores(self, x: Floats) -> Floats:
        """Return the scores of a checked row."""

    @abstractmethod
    def _teach(self, x: Floats, y: float, weight: float, late: bool) -> tuple[Floats, float]:
        """Learn a checked row; return its scores and risk from before the update."""

    def _check_labels(self, labels: npt.ArrayLike) -> Floats:
        return check_task_labels(self.settings.task, self.outputs, labels)

    def predict(self, x: Floats) -> Floats:
        """Return the scores of a row."""
        return self._scores(check_row(x, self.dim))

    def predict_many(self, X: Floats) -> Floats:
        """Return the scores of every row."""
        rows = [self._scores(x) for x in check_rows(X, self.dim)]
        return np.array(rows, dtype=np.float64).reshape(-1, self.outputs)

    def learn(self, x: Floats, y: float, weight: float = 1.0) -> tuple[Floats, float]:
        """Learn one row (y NaN: unlabelled); return its scores and risk from before the update."""
        x, label = check_row(x, self.dim), float(self._check_labels(y))
        return self._teach(x, label, float(check_weights(weight)), False)

    def learn_late(self, x: Floats, y: float, weight: float = 1.0) -> tuple[Floats, float]:
        """Learn the label of a row that came without it: a label like any other."""
        check_late_label(y)
        return self.learn(x, y, weight)

    def run(self, X: Floats, y: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Predict and learn every row in turn; return the scores and the risks."""
        X, y = check_rows(X, self.dim), self._check_labels(y)
        by = check_weights(np.ones(len(X)) if weights is None else weights)
        scores, risks = np.empty((len(X), self.outputs)), np.empty(len(X))
        for i, (x, label, weight) in enumerate(zip(X, y, by, strict=True)):
            scores[i], risks[i] = self._teach(x, float(label), float(weight), False)
        return scores, risks

    @property
    def scratch_nbytes(self) -> int:
        """Bytes of the working arrays that live between two calls: none."""
        return 0

    def copy(self) -> Self:
        """Return an independent copy."""
        return copy.deepcopy(self)
