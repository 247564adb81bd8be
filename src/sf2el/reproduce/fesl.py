"""Linear FESL-c: the usual answer to features that come and go, as a baseline of the study.

Logistic regression by stochastic gradient in each space on features scaled online, a ridge map from the new
features to the old fitted on the overlap, and a hedge of the two probabilities after the swap. Written to be
as strong as it can be made: the new space's learner trains from the overlap on, and the old one goes on
learning from recovered rows. Step and bias are the best of a few on other seeds (``settings/default.toml``).

References
----------
Hou, Zhang and Zhou, Learning with Feature Evolvable Streams, NIPS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sf2el.streams import TwoSpaceStream

Floats = npt.NDArray[np.float64]
Decay = Literal["constant", "root"]

CLIP = 5.0
"""Scaled features lie in [-5, 5]."""
LEAST_PROBABILITY = 1e-6
"""What the hedge's log loss takes a probability to be at least."""


@dataclass(frozen=True)
class Fesl:
    """FESL-c with logistic loss.

    Parameters
    ----------
    step
        Step of the gradient.
    decay
        ``"constant"``, or ``"root"``: the step is divided by the root of the labels seen in that space.
    bias
        The constant feature; rows have a length of about 1. A small one makes the share of the classes slow
        to learn, which pays where labels are few and classes are even.
    ridge
        Ridge of the map, in units of one scaled row.
    """

    step: float
    decay: Decay = "constant"
    bias: float = 0.5
    ridge: float = 0.1

    def run(self, stream: TwoSpaceStream) -> Floats:
        """Return the probability of +1 in each round of the third period, said before its label is seen.

        Examples
        --------
        >>> from sf2el.datasets import swiss_stream
        >>> Fesl(step=0.3).run(swiss_stream(seed=0, label_rate=0.3)).shape
        (1000,)
        """
        t1, overlap, labels = stream.t1, stream.overlap, stream.labels
        old, new = scaled_online(stream.old), scaled_online(stream.new)
        recovered = self._recovered(old[t1 - overlap :], stream.new, overlap)
        # One learner goes on with what the old features would have read, the other starts at the overlap.
        updating = self._logistic(np.vstack([old, recovered]), labels)[t1:]
        scratch = self._logistic(new, labels[t1 - overlap :])[overlap:]
        return hedged(np.column_stack([updating, scratch]), labels[t1:])

    def _recovered(self, old: Floats, new: Floats, overlap: int) -> Floats:
        """Return the old space's scaled rows as the ridge map of the overlap has them, after the swap."""
        both = new[:overlap]
        center, spread = both.mean(axis=0), both.std(axis=0)
        Z = np.divide(new - center, spread, out=np.zeros_like(new), where=spread > 0.0)
        X = old - old.mean(axis=0)
        gram = Z[:overlap] @ Z[:overlap].T + self.ridge * np.eye(overlap)
        W = Z[:overlap].T @ np.linalg.solve(gram, X)
        return np.asarray(np.clip(old.mean(axis=0) + Z[overlap:] @ W, -CLIP, CLIP))

    def _logistic(self, rows: Floats, labels: Floats) -> Floats:
        """Return the probabilities of +1 along rows, each said before the row is learned."""
        rows = np.column_stack([rows / np.sqrt(rows.shape[1]), np.full(len(rows), self.bias)])
        weights = np.zeros(rows.shape[1])
        probabilities = np.empty(len(rows))
        told = np.flatnonzero(~np.isnan(labels))
        start = 0
        for seen, at in enumerate(told.tolist(), start=1):
            probabilities[start : at + 1] = sigmoid(rows[start : at + 1] @ weights)
            step = self.step / np.sqrt(seen) if self.decay == "root" else self.step
            weights = weights + step * ((labels[at] > 0.0) - probabilities[at]) * rows[at]
            start = at + 1
        probabilities[start:] = sigmoid(rows[start:] @ weights)
        return probabilities


def scaled_online(rows: Floats) -> Floats:
    """Return rows standardised by the running mean and deviation, the current row included, none after it.

    >>> scaled_online(np.array([[1.0], [3.0], [2.0]])).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    counts = np.arange(1, len(rows) + 1)[:, None]
    shifted = rows - rows[0]
    mean = np.cumsum(shifted, axis=0) / counts
    variance = np.cumsum(shifted**2, axis=0) / counts - mean**2
    spread = np.sqrt(np.maximum(variance, 0.0))
    scaled = np.divide(shifted - mean, spread, out=np.zeros_like(rows), where=spread > 1e-9)
    return np.asarray(np.clip(scaled, -CLIP, CLIP))


def hedged(probabilities: Floats, labels: Floats) -> Floats:
    """Return the mix of two learners' probabilities; weights follow the log loss of the labelled rounds.

    A weight is proportional to exp(-log loss so far): the Bayes mixture, whose regret is at most ln 2.
    """
    told = ~np.isnan(labels)
    right = np.where(labels[:, None] > 0.0, probabilities, 1.0 - probabilities)
    losses = np.where(told[:, None], -np.log(np.maximum(right, LEAST_PROBABILITY)), 0.0)
    before = np.cumsum(losses, axis=0) - losses
    first = sigmoid(before[:, 1] - before[:, 0])
    return first * probabilities[:, 0] + (1.0 - first) * probabilities[:, 1]


def sigmoid(scores: Floats) -> Floats:
    """Return 1 / (1 + exp(-score)) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))
