"""Exponential weights over experts that never lose sight of any of them."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, log

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import (
    check_known,
    check_row,
    check_rows,
    check_same_length,
    check_weights,
)
from sf2el.core.numpy_backend.tasks import MOST_MARGIN, MOST_RISK, clipped_sigmoid, sigmoid
from sf2el.paper.kernels import exp_or_zero

Floats = npt.NDArray[np.float64]


SURENESS_PRIOR = 5.0
"""Curvature of the log loss that speaks for a factor of 1 beforehand."""

MOST_SURENESS = 1.5
"""Of a factor's logarithm."""


class FixedShare:
    """Weights by exp(-loss), of which each round a share is spread evenly (Herbster and Warmuth, 1998).

    Experts that tell classes apart can be told how ``sure`` they may be: the margins of each are multiplied
    by a factor that follows its log loss. An expert that is right more often than it says would else lose
    to one that is merely bolder.
    """

    def __init__(self, prior: Floats, share: float, sure: bool = False) -> None:
        prior = np.array(prior, dtype=np.float64)
        fits = prior.ndim == 1 and prior.size > 0 and 0.0 <= share <= 1.0 and bool(np.all(prior >= 0.0))
        if not fits or not 0.0 < prior.sum() <= 1e100:
            raise ValueError(
                "A prior holds weights that are not negative, one of them above 0; share is in [0, 1]."
            )
        self.share = share
        self._weights = prior / prior.sum()
        self._cumulative = np.zeros(len(prior))
        self.rounds = 0.0
        self._sure = sure
        self._logarithms = np.zeros(len(prior) if sure else 0)
        self._curvatures = np.zeros(len(prior) if sure else 0)

    @property
    def experts(self) -> int:
        """Number of experts."""
        return len(self._weights)

    @property
    def weights(self) -> Floats:
        """The weights of the coming round."""
        return np.array(self._weights)

    @property
    def average(self) -> Floats:
        """Average loss of each expert."""
        return np.asarray(self._cumulative / max(self.rounds, 1.0))

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return 8 * (2 * self.experts + 1 + 2 * len(self._logarithms))

    @property
    def sureness(self) -> Floats:
        """By what the margins of each expert are multiplied."""
        return np.exp(self._logarithms) if self._sure else np.ones(self.experts)

    def update(self, losses: Floats) -> None:
        """Take the losses of a round. A round with a NaN does not count."""
        self._update(check_known(losses, self.experts, 1))

    def _update(self, losses: Floats, weight: float = 1.0) -> None:
        if np.isnan(losses).any():
            return
        alive = self._weights > 0.0
        # An expert without weight may be ahead of all that have some.
        behind = weight * np.maximum(losses - losses[alive].min(), 0.0)
        weights = np.where(alive, self._weights * exp_or_zero(-behind), 0.0)
        self._weights = (1.0 - self.share) * (weights / weights.sum()) + self.share / self.experts
        self._cumulative = self._cumulative + losses
        self.rounds += 1.0

    def follow(self, scores: Floats, y: float, weight: float = 1.0) -> None:
        """Take a labelled round: a margin of each expert, or one for each of several classes.

        It counts as so many as its weight says. A round without a label, or with a NaN, does not count.
        """
        classes = max(1, len(scores) // self.experts)
        check_weights(weight)
        self._follow(check_known(scores, self.experts * classes, 1), classes, float(y), float(weight))

    def _follow(self, scores: Floats, classes: int, y: float, weight: float) -> None:
        _check_class(y, classes)
        if isnan(y) or np.isnan(scores).any():
            return
        factors = self.sureness[:, None]
        margins = np.clip(factors * scores.reshape(self.experts, classes), -MOST_MARGIN, MOST_MARGIN)
        losses, slopes, curvatures = (
            _binary_step(margins[:, 0], y) if classes == 1 else _step(margins, int(y))
        )
        if self._sure:
            # Labels of long ago count less here too.
            self._curvatures = (1.0 - self.share) * self._curvatures + weight * curvatures
            moved = self._logarithms - weight * slopes / (SURENESS_PRIOR + self._curvatures)
            self._logarithms = np.clip(moved, -MOST_SURENESS, MOST_SURENESS)
        self._update(losses, weight)

    def mix_binary(self, scores: Floats) -> float:
        """Return the weighted probability of the positive class."""
        return float(self._weights @ sigmoid(self.sureness * check_row(scores, self.experts)))

    def mix_log_odds(self, scores: Floats) -> float:
        """Return the same as log(p / (1 - p)), within +-34.5."""
        p = min(max(self.mix_binary(scores), 1e-15), 1.0 - 1e-15)
        return log(p / (1.0 - p))

    mix_row = mix_log_odds

    def follow_row(self, scores: Floats, risks: Floats, y: float, weight: float) -> None:
        """Take a round of one margin an expert."""
        self._follow(scores, 1, y, weight)

    def mix_mean(self, scores: Floats) -> float:
        """Return the weighted mean of the scores."""
        return float(self._weights @ check_row(scores, self.experts))

    def mix_classes(self, scores: Floats, classes: int) -> Floats:
        """Return the probabilities of the classes, from that many scores of each expert in turn."""
        margins = check_row(scores, self.experts * classes).reshape(self.experts, classes)
        each = clipped_sigmoid(self.sureness[:, None] * margins)
        mixed = self._weights @ (each / each.sum(axis=1, keepdims=True))
        return np.asarray(mixed / mixed.sum())

    def run_log_odds(self, scores: Floats, y: Floats, weights: Floats | None = None) -> tuple[Floats, Floats]:
        """Mix and follow row by row; return log odds and the weights each was mixed with."""
        return self._run(self.mix_log_odds, scores, y, weights, ())

    def run_classes(
        self, scores: Floats, y: Floats, classes: int, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Mix and follow row by row; return probabilities and the weights each was mixed with."""
        if classes < 1:
            raise ValueError("There must be a class.")
        return self._run(lambda row: self.mix_classes(row, classes), scores, y, weights, (classes,))

    def _run(
        self,
        mix: Callable[[Floats], float | Floats],
        scores: Floats,
        y: Floats,
        weighed: Floats | None,
        shape: tuple[int, ...],
    ) -> tuple[Floats, Floats]:
        classes = int(np.prod(shape))
        by = np.ones(len(y)) if weighed is None else weighed
        check_same_length(len(scores), len(by))
        check_weights(by)
        scores = check_rows(scores, self.experts * classes)
        check_same_length(len(scores), len(y))
        for label in y:
            _check_class(float(label), classes)
        mixed, weights = np.empty((len(scores), *shape)), np.empty((len(scores), self.experts))
        for i, (row, label, weight) in enumerate(zip(scores, y, by, strict=True)):
            weights[i] = self._weights
            mixed[i] = mix(row)
            self._follow(row, classes, float(label), float(weight))
        return mixed, weights

    def state(self) -> Floats:
        """Return everything kept, as one array, laid out as in the compiled core."""
        kept = (self._weights, self._cumulative, [self.rounds], self._logarithms, self._curvatures)
        return np.concatenate(kept)

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        n, sure = self.experts, len(self._logarithms)
        check_same_length(2 * n + 1 + 2 * sure, len(state))
        self._weights, self._cumulative = np.array(state[:n]), np.array(state[n : 2 * n])
        self.rounds = float(state[2 * n])
        self._logarithms, self._curvatures = (np.array(part) for part in np.split(state[2 * n + 1 :], 2))


def _check_class(y: float, classes: int) -> None:
    if classes > 1 and not isnan(y) and not (0 <= y < classes and y == int(y)):
        raise ValueError("A label must be one of the classes that the scores are of.")


def _binary_step(margins: Floats, y: float) -> tuple[Floats, Floats, Floats]:
    """Return each expert's loss, its slope in the logarithm of the factor, and its curvature."""
    p, positive = sigmoid(margins), y > 0.0
    losses = np.logaddexp(0.0, -margins if positive else margins)
    return losses, (p - float(positive)) * margins, p * (1.0 - p) * margins**2


def _step(margins: Floats, y: int) -> tuple[Floats, Floats, Floats]:
    """The same of several classes: a factor moves log s_k, with s_k = sigmoid(m_k), by m_k (1 - s_k)."""
    s = sigmoid(margins)
    moves, total = margins * (1.0 - s), s.sum(axis=1)
    mean = (s * moves).sum(axis=1) / total
    spread = (s * moves**2).sum(axis=1) / total - mean**2
    losses = np.minimum(np.log(total / s[:, y]), MOST_RISK)
    return losses, mean - moves[:, y], np.maximum(spread, 0.0)
