"""Algorithm 1: one learner in one feature space, on a buffer of rows."""

from __future__ import annotations

from math import isnan, nan, sqrt

import numpy as np
import numpy.typing as npt

from sf2el.core.rng import SplitMix64
from sf2el.paper.kernels import exp_or_zero, squared_distances
from sf2el.paper.losses import LOSSES
from sf2el.paper.settings import LearnerSettings

Floats = npt.NDArray[np.floating]


class ReferenceLearner:
    r"""The learner of one space: :math:`f = \sum_{s \in B} \beta_s K(x_s, \cdot)` (Eq. 15), 0 at first.

    A round with the row x has the risk of Eq. 14,

    .. math:: J(f) = c\, \ell(f(x), y) + \tfrac{\lambda_1}{2} \|f\|_K^2
              + \lambda_2 u \sum_{s \in B} w_s (f(x_s) - f(x))^2, \qquad u = seen / n,

    the loss only where there is a label, and takes one step down its gradient (Eq. 3 and 11). Without the
    manifold term the risk is the loss alone, and f stays as it is where there is no label.

    Time O(b^3 + b d) a round, memory O(b (b + d)).

    Parameters
    ----------
    settings
        Parameters and switches (``keep_gram`` makes no difference here).
    dim
        d, the number of features.
    buffer_size
        b, the rows that the buffer can hold.
    seed
        Seed of the reservoir.

    Examples
    --------
    >>> learner = ReferenceLearner(LearnerSettings(label_rate=0.5), dim=1, buffer_size=2)
    >>> score, risk = learner.learn(np.array([1.0]), 1.0)
    >>> score, round(risk, 3), learner.predict(np.array([1.0]))
    (0.0, 1.386, 1.0)
    """

    def __init__(self, settings: LearnerSettings, *, dim: int, buffer_size: int, seed: int = 0) -> None:
        self.settings, self.buffer_size = settings, buffer_size
        self.rows: Floats = np.empty((0, dim))
        self.beta: Floats = np.empty(0)
        self.gram: Floats = np.empty((0, 0))  # K(x_r, x_s) of the rows in the buffer
        # Stratified sampling has two kinds of rows, 1 the labelled ones; else every row is of kind 0.
        self.kinds = np.empty(0, dtype=np.int64)
        self.seen = [0, 0]  # rounds before this one, by the kind of their rows
        self.labels = 0
        self.clock = 0  # rounds since the step size started
        self._rng = SplitMix64(seed)

    def predict(self, x: Floats) -> float:
        """Return the score f(x); its sign is the class."""
        return float(self.beta @ self.settings.kernel.row(self.rows, x))

    def restart(self) -> None:
        """Restart the step size, as Algorithm 2 does for the old learner."""
        self.clock = 0

    def learn(
        self, x: Floats, y: float = nan, weight: float = 1.0, *, frozen: bool = False
    ) -> tuple[float, float]:
        """Learn a row, y NaN where it has no label; return f(x) and J(f) from before the step.

        ``weight`` multiplies the loss. ``frozen`` only counts the round (fROGD).
        """
        s, labelled = self.settings, not isnan(y)
        kind = int(labelled and s.sampling == "stratified")
        k = s.kernel.row(self.rows, x)
        f_x, f_s = float(self.beta @ k), self.gram @ self.beta  # f(x), and f(x_s) for each row
        w = exp_or_zero(-s.graph_width * squared_distances(self.rows, x))
        u = self._seen_for_each_kept()
        c = 1.0 / (s.label_rate or (self.labels + 1) / (sum(self.seen) + 1))

        loss, risk = LOSSES[s.loss], 0.0
        if labelled:
            risk += c * weight * loss.value(f_x, y)
        if s.manifold:
            risk += s.ridge / 2.0 * float(self.beta @ f_s)
            risk += s.smoothness * float(np.sum(u * w * (f_s - f_x) ** 2))
        if not frozen:
            tau, new = s.step / sqrt(self.clock + 1), 0.0
            slot = self._draw_slot(kind)
            if s.manifold or labelled:
                self.beta = (1.0 - tau * s.ridge) * self.beta
            if s.manifold:
                apart = np.diagonal(self.gram) - 2.0 * k + self._self_kernel(x)
                change, new = self._manifold_step(tau, f_s - f_x, w, u, apart, skipped=slot is None)
                self.beta = self.beta - change
            if labelled:
                new -= tau * c * weight * loss.derivative(f_x, y)
            self._keep(slot, x, k, new, kind)
            self._into_ball()
            self.clock += 1
        self.seen[kind] += 1
        self.labels += labelled
        return f_x, risk

    def _seen_for_each_kept(self) -> Floats:
        """Return u for each row: rows seen for each row kept, of its kind; 1 while the buffer fills."""
        seen = np.array(self.seen, dtype=float)
        kept = np.bincount(self.kinds, minlength=2)
        return np.asarray((seen / np.maximum(kept, 1))[self.kinds])

    def _manifold_step(
        self, tau: float, difference: Floats, w: Floats, u: Floats, apart: Floats, *, skipped: bool
    ) -> tuple[Floats, float]:
        r"""Return what the manifold term takes from each beta_s (Eq. 17) and gives to beta_t (Eq. 18).

        ``difference`` is f(x_s) - f(x), ``apart`` the squared distance of K(x_s, .) and K(x, .). The cap
        divides the step by :math:`q = 2 \tau \lambda_2 u \sum_s w_s apart_s` where it is above 1.
        """
        s = self.settings
        base = 2.0 * tau * s.smoothness
        if s.cap:
            base /= max(1.0, base * float(np.sum(u * w * apart)))
        v = base * u * w * difference
        if s.equations == "gradient":
            return v, float(v.sum())
        # Eq. 17 as printed has no u, and Eq. 20, for a skipped row, no w either; Eq. 18 has both.
        printed = base * difference if s.equations == "printed" and skipped else base * w * difference
        return printed, float(v.sum())

    # -- the buffer

    def _draw_slot(self, kind: int) -> int | None:
        """Reservoir sampling: return the slot for a row of this kind, None to skip the row.

        The t-th row enters with probability b / t. Stratified, each kind is a reservoir with half of the
        slots, and lends those that it does not need yet.
        """
        if len(self.beta) < self.buffer_size:
            return len(self.beta)
        own, other = np.flatnonzero(self.kinds == kind), np.flatnonzero(self.kinds != kind)
        share = self.buffer_size // 2 if kind else self.buffer_size - self.buffer_size // 2
        if self.settings.sampling == "stratified" and len(own) < share:
            return int(other[self._rng.below(len(other))])  # take a lent slot back
        place = self._rng.below(self.seen[kind] + 1)
        return int(own[place]) if place < len(own) else None

    def _keep(self, slot: int | None, x: Floats, k: Floats, new: float, kind: int) -> None:
        """Write f' of b + 1 representers (Eq. 16) with the b that stay (Eq. 19)."""
        if slot is None:
            if self.settings.on_skip == "project" and new != 0.0:
                self.beta = self.beta + new * self._project(k)
            return
        if slot == len(self.beta):
            self.rows, self.kinds = np.vstack([self.rows, x]), np.append(self.kinds, kind)
            self.beta = np.append(self.beta, new)
            self.gram = np.block([[self.gram, k[:, None]], [k[None, :], self._self_kernel(x)]])
            return
        leaving, removed = float(self.beta[slot]), self.gram[slot].copy()
        removed[slot] = k[slot]  # the kernels of the leaving row with those that stay, x among them
        self.rows[slot], self.kinds[slot], self.beta[slot] = x, kind, new
        self.gram[slot, :] = self.gram[:, slot] = k
        self.gram[slot, slot] = self._self_kernel(x)
        if leaving != 0.0:
            self.beta = self.beta + leaving * self._project(removed)

    def _project(self, target: Floats) -> Floats:
        """Return coefficients over the buffer of the function with these inner products with its rows."""
        s = self.settings
        # Duplicate rows and linear kernels make the matrix singular: hence the jitter.
        jitter = max(s.jitter * float(np.diagonal(self.gram).mean()), 1e-100)
        if s.projection == "exact":
            return np.asarray(np.linalg.solve(self.gram + jitter * np.eye(len(target)), target))
        return _matching_pursuit(self.gram, target, jitter, s.pursuit_steps)

    def _into_ball(self) -> None:
        """Project f onto the ball of the radius (the projection of Eq. 3)."""
        norm = sqrt(max(float(self.beta @ self.gram @ self.beta), 0.0))
        if norm > self.settings.radius:
            self.beta = self.beta * (self.settings.radius / norm)

    def _self_kernel(self, x: Floats) -> float:
        return float(self.settings.kernel.row(x[None, :], x)[0])


def _matching_pursuit(gram: Floats, target: Floats, jitter: float, steps: int) -> Floats:
    """Return such coefficients by kernel matching pursuit with back-fitting (Vincent and Bengio, 2002).

    Each step adds the representer nearest in angle to what is left, and fits all of them again.
    """
    chosen: list[int] = []
    alpha, first = np.zeros(len(target)), 0.0
    for _ in range(min(steps, len(target))):
        gains = np.abs(target - gram @ alpha) / np.sqrt(np.diagonal(gram) + jitter)
        gains[chosen] = -1.0
        best = int(np.argmax(gains))
        first = first or float(gains[best])
        if not gains[best] > 1e-12 * first:  # nothing but rounding is left
            break
        chosen.append(best)
        block = gram[np.ix_(chosen, chosen)] + jitter * np.eye(len(chosen))
        alpha[chosen] = np.linalg.solve(block, target[chosen])
    return alpha
