"""Predicted probabilities: the area under the ROC curve, and the log loss, in constant memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import log, nan
from typing import Any, Self

import numpy as np
import numpy.typing as npt

BINS = 2000
"""Probabilities are counted in so many bins of equal width; those in one bin count as ties."""
LEAST = 1e-15
"""A probability below it counts as it in the log loss."""

Floats = npt.NDArray[np.float64]
Histogram = npt.NDArray[np.integer[Any]]


class Probabilities:
    """Histograms of each label's probability, where it was the true one and where it was not.

    The AUC is the exact rank statistic of probabilities rounded down to multiples of 1/2000: off by at most
    half the share of (positive, negative) pairs that fall into one bin. With more than two labels it is the
    mean over labels of one against the rest. A label that a prediction does not name has probability 0.

    A model cannot be right about a label that it has not met. The log loss therefore leaves out rounds in
    which it said nothing at all, and those with a label that it was not told of before and does not name.

    Memory 32 KiB a label (16 KiB if ``small``, for fewer than 2^31 rounds), time O(labels) a round.

    Examples
    --------
    >>> found = Probabilities()
    >>> for truth, p in [("a", 0.9), ("b", 0.4), ("a", 0.3), ("b", 0.1)]:
    ...     found.add(truth, {"a": p, "b": 1 - p})
    >>> {name: round(value, 3) for name, value in found.metrics().items()}
    {'auc': 0.75, 'log_loss': 0.481}
    """

    def __init__(self, *, small: bool = False) -> None:
        self.rounds = 0
        self.said = 0  # rounds in the log loss
        self.loss = 0.0
        self.sure = True  # so far every word was certain: who knows one label alone can say nothing else
        self._dtype = np.int32 if small else np.int64
        self.histograms: dict[Hashable, Histogram] = {}
        """A label's counts by bin: row 1 where it was the true label, row 0 where it was not."""

    def add(self, truth: Hashable, probabilities: Mapping[Any, float], *, told: bool = True) -> None:
        """Count one round; ``told`` says whether the model was told of this label before."""
        for label in (truth, *probabilities):
            if label not in self.histograms:
                self.histograms[label] = self._absent()
        for label, histogram in self.histograms.items():
            p = probabilities.get(label, 0.0)
            histogram[int(label == truth), min(int(p * BINS), BINS - 1)] += 1
        if probabilities and (told or truth in probabilities):
            self.loss -= log(max(probabilities.get(truth, 0.0), LEAST))
            self.said += 1
        self.rounds += 1

    def add_predicted(
        self, truths: Sequence[Hashable], predictions: Sequence[Hashable], probabilities: Floats
    ) -> None:
        """Count rounds of two labels of which only the predicted one's probability is known.

        With a third label they mean nothing: the rest of the probability could be anyone's. As long as the
        model has said nothing but one label with certainty, it was not told of the other one.
        """
        for label in dict.fromkeys((*truths, *predictions)):
            if label is not None and label not in self.histograms:
                self.histograms[label] = self._absent()
        for label, histogram in self.histograms.items():
            predicted = np.array([prediction == label for prediction in predictions])
            true = np.array([truth == label for truth in truths])
            p = np.where(predicted, probabilities, 1.0 - probabilities)
            p = np.where(np.isnan(p), 0.0, p)
            places = np.minimum((p * BINS).astype(np.int64), BINS - 1)
            np.add.at(histogram, (true.astype(np.int64), places), 1)
        hit = np.array([truth == prediction for truth, prediction in zip(truths, predictions, strict=True)])
        p = np.where(hit, probabilities, 1.0 - probabilities)
        certain = np.isnan(p) | (probabilities == 1.0)
        alone = np.logical_and.accumulate(np.concatenate(([self.sure], certain)))
        losses = -np.log(np.maximum(p[~np.isnan(p) & (hit | ~alone[1:])], LEAST))
        self.sure = bool(alone[-1])
        # A running sum, term by term: the same bits however the rounds are cut into blocks.
        self.loss = float(np.cumsum(np.concatenate(([self.loss], losses)))[-1])
        self.said += len(losses)
        self.rounds += len(truths)

    def merge(self, other: Self) -> None:
        """Add another's rounds."""
        for label in other.histograms:
            if label not in self.histograms:
                self.histograms[label] = self._absent()
        for label, histogram in self.histograms.items():
            theirs = other.histograms.get(label)
            histogram += theirs if theirs is not None else other._absent()
        self.loss += other.loss
        self.sure = self.sure and other.sure
        self.said += other.said
        self.rounds += other.rounds

    def metrics(self) -> dict[str, float]:
        """Return the AUC and the log loss; NaN where undefined."""
        labels = list(self.histograms)
        # With two labels one against the rest is the same from either side.
        areas = [area(self.histograms[label]) for label in (labels if len(labels) > 2 else labels[:1])]
        known = [value for value in areas if value == value]
        return {
            "auc": sum(known) / len(known) if known else nan,
            "log_loss": self.loss / self.said if self.said else nan,
        }

    def state(self) -> dict[str, Any]:
        """Return the histograms as JSON can hold them."""
        return {
            "rounds": self.rounds,
            "said": self.said,
            "loss": self.loss,
            "sure": self.sure,
            "labels": list(self.histograms),
            "histograms": [_sparse(histogram) for histogram in self.histograms.values()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the probabilities of a ``state``."""
        found = cls()
        found.rounds, found.said, found.loss = int(state["rounds"]), int(state["said"]), float(state["loss"])
        found.sure = bool(state.get("sure", not found.said))
        for label, (places, counts) in zip(state["labels"], state["histograms"], strict=True):
            histogram = np.zeros((2, BINS), dtype=found._dtype)
            histogram.reshape(-1)[np.array(places, dtype=np.int64)] = counts
            found.histograms[label] = histogram
        return found

    def _absent(self) -> Histogram:
        """Return the histogram of a label that no round has had."""
        histogram = np.zeros((2, BINS), dtype=self._dtype)
        histogram[0, 0] = self.rounds
        return histogram


def area(histogram: Histogram) -> float:
    """Return the share of (positive, negative) pairs in the right order, ties counting half; NaN without.

    >>> area(np.array([[2, 1, 0], [0, 1, 2]]))
    0.9444444444444444
    """
    negative, positive = histogram.astype(np.float64)
    pairs = positive.sum() * negative.sum()
    below = np.cumsum(negative) - negative
    return float(np.sum(positive * (below + 0.5 * negative)) / pairs) if pairs else nan


def _sparse(histogram: Histogram) -> list[list[int]]:
    flat = histogram.reshape(-1)
    places = np.flatnonzero(flat)
    return [places.tolist(), flat[places].tolist()]
