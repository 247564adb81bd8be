"""What a run sums up of its predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.evaluate.counts import Counts
from sf2el.evaluate.errors import Errors
from sf2el.evaluate.probabilities import Probabilities
from sf2el.evaluate.windows import Windows
from sf2el.running.history import STRIDE, History

WINDOWS = 128
PROBABILITIES_AT = 8192
"""Rounds after which waiting probabilities are counted."""

Floats = npt.NDArray[np.float64]


class Tallies:
    """Metrics over everything and by window, and the history; in constant memory."""

    def __init__(self, *, regression: bool) -> None:
        self.regression = regression
        self.rows = self.labelled = self.empty = self.spaces = 0
        self.followed: Counter[str] = Counter()
        self.history = History()
        self.total: Any = self._make()
        self.windows: Windows[Any] = Windows(self._make, STRIDE, most=WINDOWS, moving=False)
        # None once there are more than two labels: only the predicted one's probability is known.
        self.probabilities: Probabilities | None = None if regression else Probabilities()
        self._waiting: tuple[list[Any], list[Any], list[Floats]] = ([], [], [])

    def _make(self) -> Any:
        return Errors() if self.regression else Counts()

    def add(
        self, labels: Sequence[Any], predictions: Sequence[Any], probabilities: Floats, spaces: Sequence[int]
    ) -> None:
        """Count the next rows, no more than the history has room for."""
        known = [place for place, label in enumerate(labels) if label is not None]
        if known:
            truths, said = [labels[place] for place in known], [predictions[place] for place in known]
            # Never by merging pieces: sums of numbers would depend on where blocks end.
            self.total.add_many(truths, said)
            self.windows.open.add_many(truths, said)
            if self.probabilities is not None:
                self._waiting[0].extend(truths)
                self._waiting[1].extend(said)
                self._waiting[2].append(probabilities[known])
                if len(self._waiting[0]) >= PROBABILITIES_AT:
                    self._count_probabilities()
        self.windows.advance(len(labels))
        self.rows += len(labels)
        self.labelled += len(known)
        self.spaces = max(self.spaces, *(space + 1 for space in spaces))

    def _count_probabilities(self) -> None:
        truths, said, p = self._waiting
        if self.probabilities is not None and truths:
            self.probabilities.add_predicted(truths, said, np.concatenate(p))
            if len(self.probabilities.histograms) > 2:
                self.probabilities = None
        self._waiting = ([], [], [])

    def metrics(self) -> dict[str, float]:
        """Return the metrics over everything."""
        self._count_probabilities()
        found: dict[str, float] = self.total.metrics()
        if self.probabilities is not None and len(self.probabilities.histograms) == 2:
            found |= self.probabilities.metrics()
        return found

    def state(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        self._count_probabilities()
        return {
            "rows": self.rows,
            "labelled": self.labelled,
            "empty": self.empty,
            "spaces": self.spaces,
            "followed": dict(self.followed),
            "history": self.history.state(),
            "total": self.total.state(),
            "windows": self.windows.state(),
            "probabilities": None if self.probabilities is None else self.probabilities.state(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], *, regression: bool) -> Tallies:
        """Return the tallies of a ``state``."""
        tallies = cls(regression=regression)
        read = Errors.from_state if regression else Counts.from_state
        tallies.rows, tallies.labelled = int(state["rows"]), int(state["labelled"])
        tallies.empty, tallies.spaces = int(state["empty"]), int(state["spaces"])
        tallies.followed = Counter(state["followed"])
        tallies.history = History.from_state(state["history"])
        tallies.total = read(state["total"])
        tallies.windows.set_state(state["windows"], read)
        kept = state["probabilities"]
        tallies.probabilities = None if kept is None else Probabilities.from_state(kept)
        return tallies
