"""Exponential weights over experts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import check_row, check_rows, check_same_length
from sf2el.paper.kernels import exp_or_zero

Floats = npt.NDArray[np.float64]


class Hedge:
    """Fixed-rate weights (eta > 0) or AdaHedge (eta = 0). See ``sf2el.mixing.hedge.Hedge``."""

    def __init__(self, experts: int, eta: float) -> None:
        self._eta = eta
        self.cumulative = np.zeros(experts)
        self.mixture = self.gaps = self.largest = self.rounds = 0.0
        self.weights = np.full(experts, 1.0 / experts)

    @property
    def rate(self) -> float:
        """The rate in force; 0 stands for an infinite one (follow the leader)."""
        if self._eta > 0.0:
            return self._eta
        if not self.gaps > 0.0:
            return 0.0
        return min(float(np.log(len(self.weights))) / max(self.gaps, 1e-300), 1e100)

    def mix_row(self, scores: Floats) -> float:
        """Return the combined score, which is the only one where there is one."""
        return float(scores[0]) if len(scores) == 1 else self.combine(scores)

    def follow_row(self, scores: Floats, risks: Floats, y: float, weight: float) -> None:
        """Take the risks of a round."""
        self.update(risks)

    def combine(self, scores: Floats) -> float:
        """Return the weighted score of the coming round."""
        return float(self.weights @ check_row(scores, len(self.weights)))

    def update(self, risks: Floats) -> float:
        """Take the risks of a round; return the combination's risk, weighted as before the round."""
        risks = check_row(risks, len(self.weights))
        mixed = float(self.weights @ risks)
        eta = self.rate
        before = self._mix(eta)
        self.cumulative = self.cumulative + risks
        self.largest = max(self.largest, float(risks.max()))
        self.gaps += max(mixed - (self._mix(eta) - before), 0.0)
        self.mixture += mixed
        self.rounds += 1.0
        behind = self.cumulative - self.cumulative.min()
        rate = self.rate
        weights = exp_or_zero(-rate * behind) if rate > 0.0 else (behind == 0.0).astype(float)
        self.weights = weights / weights.sum()
        return mixed

    def _mix(self, eta: float) -> float:
        """-log(mean of exp(-eta cumulative)) / eta, which is the smallest one for an infinite eta."""
        best = float(self.cumulative.min())
        if not eta > 0.0:
            return best
        return best - float(np.log(exp_or_zero(-eta * (self.cumulative - best)).mean())) / eta

    def run(self, scores: Floats, risks: Floats) -> tuple[Floats, Floats, Floats]:
        """Return combined scores, combined risks, and the weights each round was combined with."""
        scores, risks = check_rows(scores, len(self.weights)), check_rows(risks, len(self.weights))
        check_same_length(len(scores), len(risks))
        combined, mixed = np.empty(len(scores)), np.empty(len(scores))
        weights = np.empty_like(scores)
        for i, (row, risk) in enumerate(zip(scores, risks, strict=True)):
            weights[i] = self.weights
            combined[i] = self.combine(row)
            mixed[i] = self.update(risk)
        return combined, mixed, weights

    def state(self) -> Floats:
        """Return everything kept, as one array, laid out as in the compiled core."""
        totals = [self.mixture, self.gaps, self.largest, self.rounds]
        return np.concatenate([self.weights, self.cumulative, totals])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        n = len(self.weights)
        self.weights, self.cumulative = state[:n].copy(), state[n : 2 * n].copy()
        self.mixture, self.gaps, self.largest, self.rounds = map(float, state[2 * n :])
