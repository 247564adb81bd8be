"""The paper's eight methods, as combinations of three experts, with and without the manifold term.

=============  ============================================  ==================
method         experts in the third period                   manifold term
=============  ============================================  ==================
NOGD           ``scratch``: new space, from nothing          no / yes (NOGD+MR)
uROGD          ``updating``: old space recovered, learning   no / yes (uROGD+MR)
fROGD          ``fixed``: old space recovered, frozen        no / yes (fROGD+MR)
FESL-Variant   hedge of ``scratch`` and ``updating``         no
SF2EL          hedge of ``scratch`` and ``updating``         yes
=============  ============================================  ==================

Whatever methods are run on a stream, each expert is trained once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import plain_number, plain_numbers
from sf2el.maps.recovery import RecoveryMap
from sf2el.mixing.hedge import Hedge, Regret
from sf2el.paper.learner import Learner, learner_seed
from sf2el.paper.settings import LearnerSettings, Precision, check_buffer_size
from sf2el.streams import TwoSpaceStream

__all__ = ["METHODS", "ExpertRun", "Method", "MethodRun", "Setup", "run_methods"]

Floats = npt.NDArray[np.float64]
Expert = Literal["updating", "scratch", "fixed"]


@dataclass(frozen=True)
class Method:
    """A method: which experts it follows in the third period, and whether they have the manifold term."""

    name: str
    experts: tuple[Expert, ...]
    manifold: bool


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("NOGD", ("scratch",), False),
        Method("NOGD+MR", ("scratch",), True),
        Method("uROGD", ("updating",), False),
        Method("uROGD+MR", ("updating",), True),
        Method("fROGD", ("fixed",), False),
        Method("fROGD+MR", ("fixed",), True),
        Method("FESL-Variant", ("updating", "scratch"), False),
        Method("SF2EL", ("updating", "scratch"), True),
    )
}


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all methods of a comparison share.

    Parameters
    ----------
    old, new
        Settings of the learner in each space; ``manifold`` is set by the method.
    buffer_size
        Rows each learner's buffer can hold.
    restart
        Whether the old learner's step size restarts when its features vanish.
    map_ridge, map_intercept
        Parameters of the recovery map.
    train_in_overlap
        Whether the new space's learner already trains on the overlap's rows.
    eta
        The hedge's rate; None takes AdaHedge, ``"theory"`` the paper's sqrt(ln 2 / T2).
    precision
        ``"float64"`` or ``"float32"``: how the learners keep their numbers.

    Examples
    --------
    >>> settings = LearnerSettings(label_rate=0.3)
    >>> Setup(old=settings, new=settings, buffer_size=100).eta
    'theory'
    """

    old: LearnerSettings
    new: LearnerSettings
    buffer_size: int = 60
    restart: bool = True
    map_ridge: float = 1e-3
    map_intercept: bool = False
    train_in_overlap: bool = False
    eta: float | Literal["theory"] | None = "theory"
    precision: Precision = "float64"

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_buffer_size(self.buffer_size)


@dataclass(frozen=True)
class ExpertRun:
    """One expert along the third period.

    Attributes
    ----------
    scores, risks
        Its score and its risk in each round, from before it learned the round.
    learner
        The :class:`sf2el.Learner` at the end of the period.
    """

    scores: Floats
    risks: Floats
    learner: Learner


@dataclass(frozen=True)
class MethodRun:
    """One method along the third period, the T2 rounds in which only the new features are there.

    Attributes
    ----------
    scores, risks
        The method's score and risk in each of these rounds, from before it learned the round.
    experts
        The :class:`ExpertRun` of each expert it follows, by name: ``"updating"``, ``"scratch"``, ``"fixed"``.
    weights
        Where it follows several: their weights before each round, T2 x experts; None otherwise.
    regret
        Where it follows several: the :class:`sf2el.mixing.hedge.Regret` of following them; None otherwise.
    """

    scores: Floats
    risks: Floats
    experts: dict[Expert, ExpertRun]
    weights: Floats | None = None
    regret: Regret | None = None

    def correct(
        self, y: Floats, *, zero_score: Literal["positive", "error"] = "positive"
    ) -> npt.NDArray[np.bool_]:
        """Return in which rounds the predicted class is right; a score of 0 predicts +1, or is an error.

        ``y`` are the labels of these rounds: ``stream.y[stream.t1:]``.
        """
        if zero_score == "error":
            return np.asarray(self.scores * y > 0.0)
        return np.asarray((self.scores >= 0.0) == (y > 0.0))

    def average_risk(self) -> Floats:
        """Return the average risk up to each round."""
        return np.asarray(np.cumsum(self.risks) / np.arange(1, len(self.risks) + 1))


def run_methods(
    stream: TwoSpaceStream,
    setup: Setup,
    *,
    methods: str | Iterable[str] = tuple(METHODS),
    seed: int = 0,
) -> dict[str, MethodRun]:
    """Run methods on one stream; each expert that several of them need is trained once.

    Parameters
    ----------
    stream
        One change of features; :meth:`sf2el.streams.EvolvingStream.two_spaces` makes it of any rows.
    setup
        What all methods share.
    methods
        Names of ``METHODS``, or one name; by default all eight.
    seed
        Seed of the learners' reservoirs.

    Examples
    --------
    Two methods on rows of one's own, in three runs, and the difference of their accuracies:

    >>> from sf2el.evaluate import paired
    >>> from sf2el.streams import evolve
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = np.where(X[:, 0] > 0, 1, -1)
    >>> settings = LearnerSettings(label_rate=0.3)
    >>> setup = Setup(old=settings, new=settings)
    >>> found = {"NOGD": [], "SF2EL": []}
    >>> for seed in range(3):
    ...     stream = evolve((X, y), seed=seed, label_rate=0.3).two_spaces()
    ...     for name, run in run_methods(stream, setup, methods=found, seed=seed).items():
    ...         found[name].append(run.correct(stream.y[stream.t1 :]).mean())
    >>> difference = paired(found["SF2EL"], found["NOGD"])
    >>> difference.mean > 0.0, difference.excludes_zero
    (True, True)
    """
    wanted = [_method(name) for name in ([methods] if isinstance(methods, str) else methods)]
    seed = plain_number(seed)
    runs: dict[str, MethodRun] = {}
    for manifold in (False, True):
        group = [method for method in wanted if method.manifold == manifold]
        names = {expert for method in group for expert in method.experts}
        experts = _run_experts(stream, setup, manifold, names, seed)
        for method in group:
            runs[method.name] = _combine(method, experts, setup, len(stream.after_swap))
    return {method.name: runs[method.name] for method in wanted}


def _method(name: str) -> Method:
    if name not in METHODS:
        raise ValueError(f"Unknown method {name!r}; choose from {', '.join(METHODS)}.")
    return METHODS[name]


def _run_experts(
    stream: TwoSpaceStream,
    setup: Setup,
    manifold: bool,
    names: set[Expert],
    seed: int,
) -> dict[Expert, ExpertRun]:
    labels, t1 = stream.labels, stream.t1
    before, after = labels[:t1], labels[t1:]
    runs: dict[Expert, ExpertRun] = {}

    def learner(settings: LearnerSettings, dim: int, space: int) -> Learner:
        return Learner(
            replace(settings, manifold=manifold),
            dim=dim,
            buffer_size=setup.buffer_size,
            seed=learner_seed(seed, space),
            precision=setup.precision,
        )

    if names & {"updating", "fixed"}:
        psi = RecoveryMap(
            stream.new.shape[1],
            stream.old.shape[1],
            ridge=setup.map_ridge,
            intercept=setup.map_intercept,
        )
        psi.observe(stream.new[: stream.overlap], stream.old[t1 - stream.overlap :])
        psi.solve()
        recovered = psi.recover(stream.after_swap)
        old = learner(setup.old, stream.old.shape[1], 0)
        old.run(stream.old, before)
        if "fixed" in names:
            fixed = old.copy()
            runs["fixed"] = ExpertRun(*fixed.run(recovered, after, frozen=True), fixed)
        if "updating" in names:
            if setup.restart:
                old.restart()
            runs["updating"] = ExpertRun(*old.run(recovered, after), old)
    if "scratch" in names:
        new = learner(setup.new, stream.new.shape[1], 1)
        if setup.train_in_overlap:
            new.run(stream.new[: stream.overlap], before[t1 - stream.overlap :])
        runs["scratch"] = ExpertRun(*new.run(stream.after_swap, after), new)
    return runs


def _combine(method: Method, experts: dict[Expert, ExpertRun], setup: Setup, rounds: int) -> MethodRun:
    own = {name: experts[name] for name in method.experts}
    if len(own) == 1:
        (run,) = own.values()
        return MethodRun(run.scores, run.risks, own)
    eta = Hedge.rate_for(rounds) if setup.eta == "theory" else setup.eta
    hedge = Hedge(len(own), eta=eta)
    scores, risks, weights = hedge.run(
        np.column_stack([run.scores for run in own.values()]),
        np.column_stack([run.risks for run in own.values()]),
    )
    return MethodRun(scores, risks, own, weights, hedge.monitor())
