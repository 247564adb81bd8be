"""Exponential weights over experts that never lose sight of any of them."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import numpy.typing as npt

from sf2el._core.numpy_backend.rows import check_known, check_row, check_rows, check_same_length
from sf2el._core.numpy_backend.tasks import clipped_sigmoid, sigmoid
from sf2el.kernels import exp_or_zero

Floats = npt.NDArray[np.float64]


class FixedShare:
    """Weights by exp(-loss), of which each round a share is spread evenly (Herbster and Warmuth, 1998)."""

    def __init__(self, prior: Floats, share: float) -> None:
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
        return 8 * (2 * self.experts + 1)

    def update(self, losses: Floats) -> None:
        """Take the losses of a round. A round with a NaN does not count."""
        self._update(check_known(losses, self.experts, 1))

    def _update(self, losses: Floats) -> None:
        if np.isnan(losses).any():
            return
        alive = self._weights > 0.0
        # An expert without weight may be ahead of all that have some.
        behind = np.maximum(losses - losses[alive].min(), 0.0)
        weights = np.where(alive, self._weights * exp_or_zero(-behind), 0.0)
        self._weights = (1.0 - self.share) * (weights / weights.sum()) + self.share / self.experts
        self._cumulative = self._cumulative + losses
        self.rounds += 1.0

    def mix_binary(self, scores: Floats) -> float:
        """Return the weighted probability of the positive class."""
        return float(self._weights @ sigmoid(check_row(scores, self.experts)))

    def mix_log_odds(self, scores: Floats) -> float:
        """Return the same as log(p / (1 - p)), within +-34.5."""
        p = min(max(self.mix_binary(scores), 1e-15), 1.0 - 1e-15)
        return log(p / (1.0 - p))

    mix_row = mix_log_odds

    def mix_mean(self, scores: Floats) -> float:
        """Return the weighted mean of the scores."""
        return float(self._weights @ check_row(scores, self.experts))

    def mix_classes(self, scores: Floats, classes: int) -> Floats:
        """Return the probabilities of the classes, from that many scores of each expert in turn."""
        each = clipped_sigmoid(check_row(scores, self.experts * classes)).reshape(self.experts, classes)
        mixed = self._weights @ (each / each.sum(axis=1, keepdims=True))
        return np.asarray(mixed / mixed.sum())

    def run_log_odds(self, scores: Floats, risks: Floats) -> tuple[Floats, Floats]:
        """Mix and update row by row; return log odds and the weights each was mixed with."""
        return self._run(self.mix_log_odds, scores, risks, ())

    def run_classes(self, scores: Floats, risks: Floats, classes: int) -> tuple[Floats, Floats]:
        """Mix and update row by row; return probabilities and the weights each was mixed with."""
        return self._run(lambda row: self.mix_classes(row, classes), scores, risks, (classes,))

    def _run(
        self, mix: Callable[[Floats], float | Floats], scores: Floats, risks: Floats, shape: tuple[int, ...]
    ) -> tuple[Floats, Floats]:
        scores = check_rows(scores, self.experts * int(np.prod(shape)))
        risks = check_known(risks, self.experts, 2)
        check_same_length(len(scores), len(risks))
        mixed, weights = np.empty((len(scores), *shape)), np.empty((len(scores), self.experts))
        for i, (row, risk) in enumerate(zip(scores, risks, strict=True)):
            weights[i] = self._weights
            mixed[i] = mix(row)
            self._update(risk)
        return mixed, weights

    def state(self) -> Floats:
        """Return everything kept, as one array, laid out as in the compiled core."""
        return np.concatenate([self._weights, self._cumulative, [self.rounds]])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        n = self.experts
        check_same_length(2 * n + 1, len(state))
        self._weights, self._cumulative = np.array(state[:n]), np.array(state[n : 2 * n])
        self.rounds = float(state[2 * n])
