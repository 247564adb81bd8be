"""Algorithm 2: two learners, the map between their spaces, and the hedge that follows the better one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from math import nan
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el.core.rng import SplitMix64
from sf2el.paper.reference.hedge import ReferenceHedge
from sf2el.paper.reference.learner import ReferenceLearner
from sf2el.paper.reference.recovery import ReferenceMap
from sf2el.paper.settings import LearnerSettings

Floats = npt.NDArray[np.floating]
Row = Mapping[Hashable, float]
Expert = Literal["updating", "scratch", "fixed"]


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
    >>> from math import log, sqrt
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
