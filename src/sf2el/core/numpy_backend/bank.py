"""Several experts of one space, asked and taught together."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import (
    check_late_label,
    check_row,
    check_rows,
    check_same_length,
    check_weights,
)
from sf2el.core.numpy_backend.tasks import risk_of

Floats = npt.NDArray[np.float64]


class Bank:
    """Experts side by side: the scores of the first, then of the second, and so on."""

    def __init__(self, experts: list[Any], task: str = "") -> None:
        # With a task, every expert's risk is that of its scores: experts of different kinds compare.
        self._task = task
        if not experts:
            raise ValueError("A bank needs an expert.")
        if len({expert.dim for expert in experts}) > 1:
            raise ValueError("The experts of a bank share one space: their dim differs.")
        outputs = {expert.outputs for expert in experts}
        if task and any((count > 1) != (task == "classes") for count in outputs):
            raise ValueError("The experts of a bank and its task differ in their outputs.")
        if len(outputs) > 1:
            raise ValueError("The experts of a bank differ in their outputs.")
        self._experts = list(experts)
        self.dim: int = experts[0].dim
        ends = np.cumsum([expert.outputs for expert in experts])
        self._slices = [slice(int(end) - e.outputs, int(end)) for e, end in zip(experts, ends, strict=True)]
        self.outputs = int(ends[-1])

    @property
    def experts(self) -> list[Any]:
        """The experts."""
        return list(self._experts)

    @property
    def nbytes(self) -> int:
        """Bytes of what the experts keep."""
        return sum(int(expert.nbytes) for expert in self._experts)

    def predict_into(self, x: Floats, scores: Floats) -> None:
        """Fill ``scores`` with what every expert says of a row."""
        check_same_length(self.outputs, len(scores))
        x = check_row(x, self.dim)
        for expert, own in zip(self._experts, self._slices, strict=True):
            scores[own] = expert._scores(x)

    def predict_many(self, X: Floats) -> Floats:
        """Return the scores of every row."""
        X = check_rows(X, self.dim)
        scores = np.empty((len(X), self.outputs))
        for x, out in zip(X, scores, strict=True):
            self.predict_into(x, out)
        return scores

    def learn_into(
        self, x: Floats, y: float, weight: float, late: bool, scores: Floats, risks: Floats
    ) -> None:
        """Teach every expert a row and fill in its scores and risks from before the update.

        An expert that learns nothing from the row is left alone: its scores and its risk are NaN.
        """
        x = check_row(x, self.dim)
        self._check(y, weight)
        if late:
            check_late_label(y)
        check_same_length(self.outputs, len(scores))
        check_same_length(len(self._experts), len(risks))
        self._teach(x, float(y), float(weight), late, False, scores, risks)

    def run(self, X: Floats, y: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Predict and learn every row in turn; return the scores and the risks."""
        X, y = check_rows(X, self.dim), np.asarray(y, dtype=np.float64)
        by = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
        check_same_length(len(X), len(y))
        check_same_length(len(X), len(by))
        self._check(y, by)
        scores, risks = np.empty((len(X), self.outputs)), np.empty((len(X), len(self._experts)))
        for i, x in enumerate(X):
            self._teach(x, float(y[i]), float(by[i]), False, True, scores[i], risks[i])
        return scores, risks

    def _check(self, labels: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        for expert in self._experts:
            expert._check_labels(labels)
        check_weights(weights)

    def _teach(
        self, x: Floats, y: float, weight: float, late: bool, every: bool, scores: Floats, risks: Floats
    ) -> None:
        for j, (expert, own) in enumerate(zip(self._experts, self._slices, strict=True)):
            if expert.uses_unlabelled or not isnan(y):
                scores[own], risks[j] = expert._teach(x, y, weight, late)
                if self._task:
                    risks[j] = nan if isnan(y) else risk_of(self._task, scores[own], y)
            else:
                scores[own], risks[j] = (expert._scores(x) if every else nan), nan
