"""Weights that follow the better learner."""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
import numpy.typing as npt

from sf2el.paper.kernels import exp_or_zero

Floats = npt.NDArray[np.floating]


class ReferenceHedge:
    r"""Weights :math:`\alpha_i \propto e^{-\eta \sum_{s<t} J_{i,s}}` over experts (Eq. 5), of earlier rounds.

    Eq. 7 says the same one round at a time, once its last J_i is read as J_j. Where T_2 is not known,
    AdaHedge sets :math:`\eta = \ln N / \Delta`; :math:`\Delta` sums how far the mixture's risk is above its
    mix loss :math:`-\ln(\sum_i \alpha_i e^{-\eta J_i}) / \eta`. Time and memory O(N).

    Parameters
    ----------
    experts
        N, the number of experts.
    eta
        The rate, in the paper :math:`\sqrt{\ln 2 / T_2}`; None takes AdaHedge.

    Examples
    --------
    >>> hedge = ReferenceHedge(2, eta=0.5)
    >>> hedge.update(np.array([2.0, 0.0])), hedge.weights.round(3)
    (1.0, array([0.269, 0.731]))
    """

    def __init__(self, experts: int, *, eta: float | None = None) -> None:
        self.eta, self.rounds = eta, 0
        self.cumulative: Floats = np.zeros(experts)
        self.mixture = self.gaps = self.largest = 0.0

    @property
    def rate(self) -> float:
        """The rate in use: eta, or AdaHedge's, infinite until there is a gap."""
        if self.eta is not None:
            return self.eta
        experts = len(self.cumulative)
        return log(experts) / self.gaps if self.gaps > 0.0 and experts > 1 else inf

    @property
    def weights(self) -> Floats:
        """alpha of the coming round."""
        behind = self.cumulative - self.cumulative.min()
        alpha = (behind == 0.0).astype(float) if self.rate == inf else exp_or_zero(-self.rate * behind)
        return np.asarray(alpha / alpha.sum())

    def combine(self, scores: Floats) -> float:
        """Return the weighted score (Eq. 4)."""
        return float(self.weights @ scores)

    def update(self, risks: Floats) -> float:
        """Take the experts' risks of a round; return the weighted risk (Eq. 6)."""
        risk, rate = float(self.weights @ risks), self.rate
        before = _mix_loss(self.cumulative, rate)
        self.cumulative = self.cumulative + risks
        self.gaps += max(risk - (_mix_loss(self.cumulative, rate) - before), 0.0)
        self.mixture += risk
        self.largest = max(self.largest, float(risks.max()))
        self.rounds += 1
        return risk

    def regret(self) -> tuple[float, float, float]:
        r"""Return the regret to the best expert, its bound, and its bound for these very risks.

        With a given eta and risks in [0, M], Theorem 1 reads :math:`\ln N / \eta + \eta T_2 M^2 / 8`, with M
        the largest risk seen. At the paper's eta, with M = 1, that is 9/8 of what Eq. 21 prints. For these
        risks it is :math:`\ln N / \eta + \Delta`; for AdaHedge, :math:`2 \Delta`.
        """
        regret, most = self.mixture - float(self.cumulative.min()), log(len(self.cumulative))
        if self.eta is None:
            bound = self.largest * (sqrt(self.rounds * most) + 4.0 / 3.0 * most + 2.0)
            return regret, bound, 2.0 * self.gaps
        bound = most / self.eta + self.eta * self.rounds * self.largest**2 / 8.0
        return regret, bound, most / self.eta + self.gaps


def _mix_loss(cumulative: Floats, rate: float) -> float:
    """Return -ln(mean of exp(-rate * cumulative)) / rate: the least one for an infinite rate."""
    best = float(cumulative.min())
    if rate == inf:
        return best
    return best - log(float(exp_or_zero(-rate * (cumulative - best)).mean())) / rate
