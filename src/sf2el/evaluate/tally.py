"""Scores over everything, by period and by window, summed up round by round."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from sf2el.evaluate.errors import Errors
from sf2el.evaluate.rounds import Step
from sf2el.evaluate.scores import ClassScores, is_regression
from sf2el.evaluate.windows import MOST, Part, Windows, plain

Period = Callable[[int, dict[Any, Any]], Hashable]
LATER = "all later periods"


@dataclass(frozen=True)
class Evaluation:
    """What came out of a prequential evaluation.

    Attributes
    ----------
    metrics
        Over everything, by name.
    periods
        The same for each run of rounds with one period label.
    windows
        The same for consecutive windows.
    moving
        The same for a window of that length that moves by a tenth of it, to the round.
    rounds, scored, labelled
        Rounds in all; those whose true label is known, over which metrics go; those whose label the model
        was told.
    """

    metrics: dict[str, float]
    periods: list[Part]
    windows: list[Part]
    moving: list[Part]
    rounds: int
    scored: int
    labelled: int

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it: NaN becomes None."""
        return {
            "metrics": plain(self.metrics),
            "rounds": self.rounds,
            "scored": self.scored,
            "labelled": self.labelled,
            "periods": [part.to_dict() for part in self.periods],
            "windows": [part.to_dict() for part in self.windows],
            "moving": [part.to_dict() for part in self.moving],
        }


class Tally:
    """Takes rounds, one after another.

    Rounds are counted in one small piece, which is merged into total, period and window when any of them
    ends: that costs less than counting each round four times. Up to the first known truth, which decides
    whether labels or numbers are scored, there is nothing to count but rounds.
    """

    def __init__(
        self,
        model: Any,
        *,
        metrics: Sequence[str] | None,
        window: int,
        period: Period | None,
    ) -> None:
        self._model, self._metrics, self._window, self._period = model, metrics, window, period
        self._decided = False
        self._periods: list[tuple[Hashable, int, Any]] = []
        self._length = self._rounds = 0
        self._prediction: Any = None
        self._told: set[Hashable] = set()  # labels that the model knows from earlier rounds

    def add(self, step: Step, prediction: Any) -> None:
        """Count a round and its prediction."""
        self._prediction = prediction
        if self._period is not None:
            label = self._period(step.index, step.x)
            if not self._periods or (label != self._periods[-1][0] and len(self._periods) <= MOST):
                self._flush()
                later = len(self._periods) == MOST
                scores = self._make(small=False) if self._decided else None
                self._periods.append((LATER if later else label, self._rounds, scores))
        if step.truth is not None:
            if not self._decided:
                self._decide(step.truth, prediction)
            if self._regression:
                self._piece.add(step.truth, prediction)
            else:
                told = step.truth in self._told
                self._piece.add(step.truth, prediction, self._probabilities(step.x), told=told)
        if self._decided and not self._regression:
            self._told.update((step.told, *(label for _, label in step.late)))
        self._rounds += 1
        if self._decided:
            self._length += 1
            if self._length == self._windows.room:
                self._flush()

    def evaluation(self, told: int) -> Evaluation:
        """Return what came out."""
        if not self._decided:
            self._decide(None, self._prediction)
        self._flush()
        stops = [*(start for _, start, _ in self._periods), self._rounds][1:]
        periods = [
            Part(start, stop, scores.rounds, self._chosen(scores.metrics()), str(label))
            for (label, start, scores), stop in zip(self._periods, stops, strict=True)
        ]
        return Evaluation(
            self._chosen(self._total.metrics()),
            periods,
            [self._with_chosen(part) for part in self._windows.parts()],
            [self._with_chosen(part) for part in self._windows.moving()],
            self._rounds,
            self._total.rounds,
            told,
        )

    def _decide(self, truth: Any, prediction: Any) -> None:
        """Settle what is scored, and go over the rounds before, of which there was nothing to score."""
        self._decided = True
        self._regression = is_regression(self._metrics, self._model, truth, prediction)
        wanted = self._metrics is None or not {"auc", "log_loss"}.isdisjoint(self._metrics)
        scored = wanted and not self._regression
        self._proba = getattr(self._model, "predict_proba_one", None) if scored else None
        self._total, self._piece = self._make(small=False), self._make()
        self._periods = [(label, start, self._make(small=False)) for label, start, _ in self._periods]
        self._windows: Windows[Any] = Windows(self._make, self._window)
        while self._windows.rounds < self._rounds:
            rounds = min(self._windows.room, self._rounds - self._windows.rounds)
            self._windows.add(self._make(), rounds)

    def _make(self, *, small: bool = True) -> Any:
        return (
            Errors() if self._regression else ClassScores(probabilities=self._proba is not None, small=small)
        )

    def _probabilities(self, x: dict[Any, Any]) -> dict[Any, float] | None:
        if self._proba is None:
            return None
        try:
            found: dict[Any, float] = self._proba(x)
        except NotImplementedError:
            # river's classifiers all have the method, and some do not implement it.
            self._proba = None
            return None
        return found

    def _flush(self) -> None:
        if not self._length:
            return
        self._total.merge(self._piece)
        if self._periods:
            self._periods[-1][2].merge(self._piece)
        self._windows.add(self._piece, self._length)
        if not self._regression and self._total.probabilities is not None:
            labels = len(self._total.probabilities.histograms)
            self._windows.most = min(MOST, 2 * MOST // max(1, labels))  # a histogram a label and window
        self._piece, self._length = self._make(), 0

    def _with_chosen(self, part: Part) -> Part:
        return Part(part.start, part.stop, part.scored, self._chosen(part.metrics), part.label)

    def _chosen(self, metrics: dict[str, float]) -> dict[str, float]:
        if self._proba is None:
            metrics = {name: value for name, value in metrics.items() if name not in ("auc", "log_loss")}
        if self._metrics is None:
            return metrics
        return {name: metrics[name] for name in self._metrics if name in metrics}


def feature_periods() -> Period:
    """Return a function that labels rounds by their features: a row's NaN and None are not observed.

    >>> label = feature_periods()
    >>> label(0, {"a": 1.0, "b": None}), label(1, {"b": 2.0, "a": 1.0})
    ('1 feature: a', '2 features: a, b')
    """
    keys: list[Any] = []
    told = ""

    def label(_: int, x: dict[Any, Any]) -> str:
        nonlocal keys, told
        observed = [key for key, value in x.items() if not _missing(value)]
        if observed != keys:
            if set(observed) != set(keys) or not told:
                told = _shown(sorted(map(str, observed)))
            keys = observed
        return told

    return label


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and isnan(value))


def _shown(names: list[str]) -> str:
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"{len(names)} feature{'s' if len(names) != 1 else ''}: {', '.join(names[:6])}{more}"
