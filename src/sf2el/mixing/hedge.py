"""Weights that follow the best expert."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core import native
from sf2el.inputs.parameters import check_range, check_whole, plain_number

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Regret:
    """How far a hedge is behind its best expert, and how far it could be at most.

    Attributes
    ----------
    regret
        Risk of the combination minus that of the best expert.
    bound
        What theory allows, for risks in [0, M] with M the largest seen: ``ln N / eta + eta T M^2 / 8``
        (fixed rate), or ``M sqrt(T ln N) + M (4/3 ln N + 2)`` (AdaHedge).
    certificate
        What these very risks allow: ``ln N / eta`` plus the sum of the mixability gaps.
    """

    regret: float
    bound: float
    certificate: float


class Hedge:
    r"""Exponential weights :math:`\alpha_i \propto \exp(-\eta \sum_{s<t} J_{i,s})` over experts.

    The prediction is :math:`\sum_i \alpha_i p_i`, the risk :math:`\sum_i \alpha_i J_i`. Time and memory O(N).

    Parameters
    ----------
    experts
        N, the number of experts.
    eta
        The rate; None takes AdaHedge, which needs no horizon (de Rooij, van Erven, Grunwald and Koolen,
        Follow the Leader If You Can, Hedge If You Must, JMLR 2014).

    Examples
    --------
    >>> hedge = Hedge(2, eta=Hedge.rate_for(100))
    >>> for _ in range(100):
    ...     _ = hedge.update([0.9, 0.1])
    >>> hedge.weights.round(3)
    array([0.001, 0.999])
    >>> hedge.monitor().regret < hedge.monitor().certificate < hedge.monitor().bound
    True
    """

    def __init__(self, experts: int, *, eta: float | None = None) -> None:
        experts, eta = plain_number(experts), plain_number(eta)
        check_whole("experts", experts, 1, 1 << 16)
        if eta is not None:
            check_range("eta", eta, above=0.0)
        self.experts, self.eta = experts, eta
        self.core: Any = native().Hedge(experts, 0.0 if eta is None else float(eta))

    @staticmethod
    def rate_for(rounds: int) -> float:
        """Return the paper's rate ``sqrt(ln 2 / T2)`` for a known number of rounds."""
        return sqrt(log(2.0) / max(rounds, 1))

    @property
    def weights(self) -> Floats:
        """The weights of the coming round, from earlier rounds only."""
        return np.asarray(self.core.weights, dtype=np.float64)

    def update(self, risks: npt.ArrayLike) -> float:
        """Take the experts' risks of a round; return the combination's."""
        return float(self.core.update(np.asarray(risks, dtype=np.float64)))

    def run(self, scores: npt.ArrayLike, risks: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Combine whole streams (rounds x experts): return scores, risks, and each round's weights."""
        combined, mixed, weights = self.core.run(
            np.ascontiguousarray(scores, dtype=np.float64), np.ascontiguousarray(risks, dtype=np.float64)
        )
        return combined, mixed, weights

    def average_risks(self) -> Floats:
        """Return each expert's average risk so far (0 before the first round)."""
        return np.asarray(self.core.cumulative / max(self.core.rounds, 1.0), dtype=np.float64)

    def monitor(self) -> Regret:
        """Return the regret so far and what bounds it."""
        core, count = self.core, log(self.experts)
        regret = core.mixture - float(np.min(core.cumulative))
        largest, rounds = core.largest, core.rounds
        if self.eta is not None:
            bound = count / self.eta + self.eta * rounds * largest**2 / 8.0
            return Regret(regret, bound, count / self.eta + core.gaps)
        bound = largest * (sqrt(rounds * count) + 4.0 / 3.0 * count + 2.0) if rounds else inf
        return Regret(regret, bound, 2.0 * core.gaps)


def hedge_bytes(experts: int) -> int:
    """Return the bytes of the weights and of what their regret is checked with."""
    return 8 * (2 * experts + 4)
