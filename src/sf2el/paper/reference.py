r"""The paper's Algorithms 1 and 2 in plain NumPy, to be read beside the paper.

Nothing here is fast, and nothing needs a compiler. The compiled core is tested against this file. Both keep
the same rows of a stream, since they draw the same random numbers; sums are added in another order, so that
results agree to rounding and not to the bit. The core also clips numbers at 1e100, which is left out here.

==================================  =====================================================================
in the paper                        here
==================================  =====================================================================
:math:`f, \beta_s, K`               ``ReferenceLearner``: ``predict``, ``beta``, ``settings.kernel``
:math:`\mathcal{B}, b`              ``rows`` (what the buffer holds), ``buffer_size``
:math:`\lambda_1, \lambda_2`        ``settings.ridge``, ``settings.smoothness``
:math:`\tau_t`                      ``tau``: ``settings.step`` over the square root of the round
:math:`T / l = 1 / p_l`             ``c``: given by ``settings.label_rate``, or rounds over labels
:math:`w_{st}`                      ``w``: :math:`e^{-g \|x_s - x_t\|^2}`, where g is ``settings.graph_width``
:math:`(t - 1) / b`                 ``u``: rows seen for each row kept
:math:`\psi`                        ``ReferenceMap``
:math:`\alpha_i, \eta, J`           ``ReferenceHedge``: ``weights``, ``eta``, what ``update`` returns
:math:`S_1, S_2, B, T_1, T_2`       ``old``, ``new``, ``overlap`` and the lengths in ``run_two_spaces``
==================================  =====================================================================

Run ``python -m sf2el.paper.reference`` for a small example.

References
----------
Hou, Yan, Zhao and Zhou, Storage Fit Learning with Feature Evolvable Streams, AAAI 2021.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from math import inf, isnan, log, nan, sqrt
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el.core.rng import SplitMix64
from sf2el.paper.kernels import exp_or_zero, squared_distances
from sf2el.paper.losses import LOSSES
from sf2el.paper.settings import LearnerSettings

__all__ = ["ReferenceHedge", "ReferenceLearner", "ReferenceMap", "ReferenceSF2EL", "Round", "run_two_spaces"]

Floats = npt.NDArray[np.floating]
Row = Mapping[Hashable, float]
Expert = Literal["updating", "scratch", "fixed"]


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


class ReferenceMap:
    r"""The map :math:`\psi(z) = z M` from the new space to the old, by ridge least squares.

    .. math:: M = (Z'Z + r I)^{-1} Z'X, \qquad r = ridge \cdot tr(Z'Z) / d_2,

    from these sums alone; no row is stored. With an intercept the same of centred rows. Without ridge it is
    the solution of least norm.

    Time O(d2 (d1 + d2)) a row and O(d2^2 (d1 + d2)) to solve, memory O(d2 (d1 + d2)).

    Parameters
    ----------
    new_dim, old_dim
        d2 and d1, the numbers of features.
    ridge
        Share of the mean diagonal of Z'Z.
    intercept
        Whether the map has a constant part.

    Examples
    --------
    >>> psi = ReferenceMap(1, 1, ridge=0.0, intercept=True)
    >>> for z in (0.0, 1.0, 2.0):
    ...     psi.observe(np.array([z]), np.array([3.0 * z + 1.0]))
    >>> psi.solve()
    >>> psi.recover(np.array([5.0])).round(6)
    array([16.])
    """

    def __init__(self, new_dim: int, old_dim: int, *, ridge: float = 1e-3, intercept: bool = False) -> None:
        self.ridge, self.intercept, self.count = ridge, intercept, 0
        self.matrix: Floats = np.zeros((new_dim, old_dim))
        self._zz, self._zx = np.zeros((new_dim, new_dim)), np.zeros((new_dim, old_dim))
        self._z_mean, self._x_mean = np.zeros(new_dim), np.zeros(old_dim)

    def observe(self, z: Floats, x: Floats) -> None:
        """Take in a round of the overlap: z in the new space, x in the old one."""
        self.count += 1
        self._zz, self._zx = self._zz + np.outer(z, z), self._zx + np.outer(z, x)
        if self.intercept:
            self._z_mean = self._z_mean + (z - self._z_mean) / self.count
            self._x_mean = self._x_mean + (x - self._x_mean) / self.count

    def solve(self) -> None:
        """Fit M to the rounds so far."""
        zz = self._zz - self.count * np.outer(self._z_mean, self._z_mean)
        zx = self._zx - self.count * np.outer(self._z_mean, self._x_mean)
        # A feature that never varied leaves nothing but rounding, which must not be scaled up.
        constant = np.diagonal(zz) <= 1e-12 * np.diagonal(self._zz)
        zz[constant, :] = zz[:, constant] = 0.0
        zx[constant] = 0.0
        d2 = len(zz)
        if not np.trace(zz) > 0.0:
            self.matrix = np.zeros_like(zx)
        elif self.ridge > 0.0:
            self.matrix = np.linalg.solve(zz + self.ridge * np.trace(zz) / d2 * np.eye(d2), zx)
        else:
            self.matrix = np.linalg.pinv(zz, rcond=1e-13 * d2, hermitian=True) @ zx

    def recover(self, z: Floats) -> Floats:
        """Return what the old features would have read."""
        return np.asarray((z - self._z_mean) @ self.matrix + self._x_mean)


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


class Round(NamedTuple):
    """A round, from before it was learned: score and risk, and each expert's weight, score and risk."""

    score: float
    risk: float
    weights: Floats
    scores: Floats
    risks: Floats


class ReferenceSF2EL:
    r"""Algorithms 1 and 2: two learners, the map between their spaces and the hedge over them.

    In the first period f_1 learns in the old space. In the second, which has both, it goes on, and
    :math:`\psi` is fitted. In the third, f_1 goes on with :math:`\psi(z)`, f_2 starts from 0 on z (Eq. 8
    and 9), and Eq. 4 to 7 combine them. The new space is then the old one of the next cycle.

    Time O(b^3 + b d + d1 d2) a round, memory that of two learners and two maps.

    Parameters
    ----------
    settings, new_settings
        Settings of the first learner and of the later ones (None: the same).
    buffer_size, seed, eta, restart, map_ridge, map_intercept, train_in_overlap, classes, class_weight
        As for :meth:`sf2el.SF2EL.paper`.
    experts
        Whose scores are combined in the third period: ``"updating"`` (f_1, which goes on learning),
        ``"fixed"`` (f_1 as it was) and ``"scratch"`` (f_2). The paper's other seven methods are other
        choices, with the manifold term or without.

    Examples
    --------
    >>> model = ReferenceSF2EL(LearnerSettings(label_rate=0.5), buffer_size=20, classes=["wet", "dry"])
    >>> for t in range(40):                                # the old sensor, a label now and then
    ...     old = (t % 8 - 3.5) / 2
    ...     model.learn_one({"old": old}, ("wet" if old > 0 else "dry") if t % 3 == 0 else None)
    >>> for t in range(5):                                 # both
    ...     model.learn_one({"old": t - 2.0, "new": 2.0 - t})
    >>> model.predict_one({"new": -1.0})                   # only the new one
    'wet'
    >>> round(model.explain_one({"new": -1.0})["updating"][0], 3)
    0.848
    """

    def __init__(
        self,
        settings: LearnerSettings,
        *,
        buffer_size: int = 60,
        seed: int = 0,
        eta: float | None = None,
        restart: bool = True,
        map_ridge: float = 1e-3,
        map_intercept: bool = False,
        train_in_overlap: bool = False,
        experts: Sequence[Expert] = ("updating", "scratch"),
        new_settings: LearnerSettings | None = None,
        classes: Sequence[Hashable] | None = None,
        class_weight: Literal["balanced"] | Mapping[Hashable, float] | None = None,
    ) -> None:
        self.settings, self.new_settings = settings, new_settings or settings
        self.buffer_size, self.eta, self.restart = buffer_size, eta, restart
        self.map_ridge, self.map_intercept = map_ridge, map_intercept
        self.train_in_overlap, self.experts = train_in_overlap, tuple(experts)
        self._seeds = SplitMix64(seed)
        # "scratch" is the learner of the current space, in the first period too.
        self.learners: dict[Expert, ReferenceLearner] = {}
        self.followed: tuple[Expert, ...] = ("scratch",)
        self.hedge = ReferenceHedge(1, eta=eta)
        self.psi: ReferenceMap | None = None
        self.next_psi: ReferenceMap | None = None  # fitted in the overlap
        self.next_learner: ReferenceLearner | None = None
        # Only of rows with names and labels:
        self.names: tuple[Hashable, ...] = ()
        self.next_names: tuple[Hashable, ...] = ()
        self.classes, self.class_weight = list(classes or ()), class_weight
        self.counts: dict[Hashable, int] = {}

    # -- rows as arrays

    def learn(self, x: Floats, y: float = nan, z: Floats | None = None, weight: float = 1.0) -> Round:
        """Predict and learn a round: x in the current space, in the overlap with z in the next one.

        These are lines 3 to 8 of Algorithm 1, and lines 5 to 10 of Algorithm 2 after a swap.
        """
        if not self.learners:
            self.learners["scratch"] = self._new_learner(self.settings, len(x))
        if z is not None:
            if self.next_psi is None:
                self.next_psi = ReferenceMap(
                    len(z), len(x), ridge=self.map_ridge, intercept=self.map_intercept
                )
                self.next_learner = self._new_learner(self.new_settings, len(z))
            self.next_psi.observe(z, x)
            if self.train_in_overlap and self.next_learner is not None:
                self.next_learner.learn(z, y, weight)
        said = {
            expert: learner.learn(self._seen_by(expert, x), y, weight, frozen=expert == "fixed")
            for expert, learner in self.learners.items()
        }
        scores, risks = np.array([said[expert] for expert in self.followed]).T
        alpha, score = self.hedge.weights, self.hedge.combine(scores)
        return Round(score, self.hedge.update(risks), alpha, scores, risks)

    def swap(self) -> None:
        """Begin Algorithm 2 (lines 1 to 3): the old features are gone."""
        if self.next_psi is None or self.next_learner is None:
            raise ValueError("No round has had both spaces: there is nothing to fit the map on.")
        self.next_psi.solve()
        self.psi, old, new = self.next_psi, self.learners["scratch"], self.next_learner
        self.next_psi = self.next_learner = None
        self.learners = {expert: deepcopy(old) for expert in self.experts if expert != "scratch"}
        if self.restart and "updating" in self.learners:
            self.learners["updating"].restart()
        self.learners["scratch"] = new
        self.followed, self.hedge = self.experts, ReferenceHedge(len(self.experts), eta=self.eta)

    def _seen_by(self, expert: Expert, x: Floats) -> Floats:
        return x if expert == "scratch" or self.psi is None else self.psi.recover(x)

    def _new_learner(self, settings: LearnerSettings, dim: int) -> ReferenceLearner:
        return ReferenceLearner(settings, dim=dim, buffer_size=self.buffer_size, seed=self._seeds.next())

    # -- rows with names

    def predict_one(self, x: Row) -> Hashable | None:
        """Return the predicted label of a row, None before any was seen; a score of 0 is the first label."""
        if len(self.classes) < 2:
            return self.classes[0] if self.classes else None
        said = self.explain_one(x).values()
        return self.classes[0 if sum(score * weight for score, weight in said) >= 0.0 else 1]

    def explain_one(self, x: Row) -> dict[Expert, tuple[float, float]]:
        """Return the score and the weight of each expert that is followed. Changes nothing."""
        if not self.names:
            return {}
        model = self
        if self._swaps(x):
            model = deepcopy(self)
            model._swap_names()
        row, alpha = np.array([float(x[name]) for name in model.names]), model.hedge.weights
        return {
            expert: (model.learners[expert].predict(model._seen_by(expert, row)), float(alpha[i]))
            for i, expert in enumerate(model.followed)
        }

    def learn_one(self, x: Row, y: Hashable | None = None) -> None:
        """Learn a row, y None where it has no label. Its keys tell the period.

        They must be those of the current space, of the current and the next one, or of the next one alone.
        """
        swaps = self._swaps(x)
        target, weight = self._target(y)
        if swaps:
            self._swap_names()
        self.names = self.names or tuple(x)
        both = len(x) > len(self.names)
        if both:
            self.next_names = self.next_names or tuple(name for name in x if name not in self.names)
        row = np.array([float(x[name]) for name in self.names])
        z = np.array([float(x[name]) for name in self.next_names]) if both else None
        self.learn(row, target, z, weight)

    def _swaps(self, x: Row) -> bool:
        """Whether a row has only the next space's features; ValueError if it fits no period."""
        old, new, present = set(self.names), set(self.next_names), set(x)
        if present and present == new:
            return True
        opens = not new and present > old
        if not present or not (present in (old, old | new) or opens):
            raise ValueError("This row has neither the old features, nor the new ones, nor both.")
        return False

    def _swap_names(self) -> None:
        self.swap()
        self.names, self.next_names = self.next_names, ()

    def _target(self, y: Hashable | None) -> tuple[float, float]:
        """Return +1, -1 or NaN for a label, and its weight."""
        if y is None:
            return nan, 1.0
        if y not in self.classes:
            if len(self.classes) == 2:
                raise ValueError(f"There are two labels, {self.classes!r}; {y!r} is neither.")
            self.classes.append(y)
        self.counts[y] = self.counts.get(y, 0) + 1
        weight = 1.0
        if self.class_weight == "balanced":
            weight = sum(self.counts.values()) / (len(self.counts) * self.counts[y])
            weight = min(max(weight, 0.01), 100.0)
        elif isinstance(self.class_weight, Mapping):
            weight = float(self.class_weight.get(y, 1.0))
        return (1.0 if y == self.classes[0] else -1.0), weight


def run_two_spaces(
    old: Floats,
    new: Floats,
    labels: Floats,
    *,
    overlap: int,
    model: ReferenceSF2EL,
) -> list[Round]:
    """Run one cycle of a stream; return the rounds of its third period, T2 of them.

    Parameters
    ----------
    old
        The old space's rows, T1 of them.
    new
        The new space's rows: those of the overlap, then T2 more.
    labels
        +1, -1 or NaN for each of the T1 + T2 rounds.
    overlap
        B, the rounds that have both.
    model
        A model without rows so far.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [1.0]] * 50), np.array([-1.0, 1.0] * 50)
    >>> model = ReferenceSF2EL(LearnerSettings(label_rate=1.0), buffer_size=10, eta=sqrt(log(2.0) / 50))
    >>> rounds = run_two_spaces(X[:50], -3.0 * X[40:], y, overlap=10, model=model)
    >>> len(rounds), rounds[0].scores.round(2)
    (50, array([-1.4,  0. ]))
    """
    before, t1 = len(old) - overlap, len(old)
    for t, x in enumerate(old):
        model.learn(x, float(labels[t]), new[t - before] if t >= before else None)
    model.swap()
    return [model.learn(x, float(labels[t1 + i])) for i, x in enumerate(new[overlap:])]


def main() -> None:
    """Print the accuracy of the published algorithm and of its learners on a generated stream."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0.0, 1.0, -1.0)
    labels = np.where(rng.random(600) < 0.3, y, nan)
    model = ReferenceSF2EL(LearnerSettings(label_rate=0.3), eta=sqrt(log(2.0) / 300))
    rounds = run_two_spaces(X[:300], X[290:] @ rng.normal(size=(2, 3)), labels, overlap=10, model=model)
    scores = np.array([[round.score, *round.scores] for round in rounds])
    right = ((scores >= 0.0) == (y[300:, None] > 0.0)).mean(axis=0)
    for name, accuracy in zip(("SF2EL", "old learner, recovered", "new learner"), right, strict=True):
        print(f"{name}: {accuracy:.3f} of {len(rounds)} rounds right")


if __name__ == "__main__":
    main()
