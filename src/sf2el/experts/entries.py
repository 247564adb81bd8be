"""The experts of the default's bank: one list, and what each entry says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sf2el.paper.kernels import RBF
from sf2el.paper.settings import LearnerSettings


@dataclass(frozen=True)
class Entry:
    """An expert of the bank: its weight to begin with, and its weight in the base that swaps fall back on.

    With a ``gamma`` it has radial functions of that width and prior variance ``scale``, ``centred`` on the
    origin, and labels are matched (``PosteriorSettings``); with ``ties`` unlabelled rows tell it where its
    function is the same. ``paper`` is the published learner, first order and with its manifold term.
    """

    name: str
    prior: float
    base: float
    gamma: float = 0.0
    scale: float = 5.0
    centred: float = 0.0
    ties: bool = False
    paper: bool = False


LINEAR = Entry("linear", 0.4, 0.4)
BANK = (
    Entry("middle rbf", 0.1, 0.5, gamma=1.5, scale=12.0, centred=0.9),
    Entry("narrow rbf", 0.2, 0.5, gamma=7.0, scale=80.0, ties=True),
    Entry("wide rbf", 0.2, 0.5, gamma=0.5, scale=10.0, centred=0.9),
    LINEAR,
    Entry("paper", 0.01, 0.01, paper=True),
)
PAPER = LearnerSettings(
    kernel=RBF(2.5),
    graph_width=7.5,
    loss="logistic",
    ridge=1e-4,
    smoothness=1e-4,
    step=2.0,
    on_skip="project",
)
"""Scaled rows lie at squared distances near 2, so these widths are relative to the data."""

MANY_FEATURES = 12
"""Features from which radial experts have no slopes. Those would take most of an expert's bytes, the linear
expert has them too, and the bytes are worth more as radial functions."""

LINEAR_SCALE = 2.0
CONSTANT = 1.25
"""Prior variance of the constant, in that of a feature."""

LEAST_CONSTANT = 0.06
"""The same in that of all features together, where there are many: classes may be unequal anywhere."""

LEAST_SPREAD = 0.05
"""Variance added to each direction of correlated features before they are made white."""

TIE_NOISE = 10.0
NUMBERS = 0.5
"""Of the prior variance and of the noise of ties, where numbers are learned: log odds reach farther."""

MOST_TIES = 2000
FEW_LABELS = 3.0
"""Labels of each class as if seen beforehand, where a new space's constant starts from how often each was."""

SPARE = Entry("logistic", 0.4, 0.4)
"""In place of the linear expert where its covariance has no room: a number a feature, and no certainty."""

WIDEST = min((entry for entry in BANK if entry.gamma), key=lambda entry: entry.gamma)
"""Of the radial experts the one that does least harm before labels tell."""

ENTRIES = {entry.name: entry for entry in (*BANK, SPARE)}

WHITE = "white "
"""Before the name of an expert that sees a new space's features without their correlations."""


EVEN = "even "
"""Before the name of an expert to which a feature counts by how evenly it varies."""


def entry_of(seat: Any) -> Entry:
    """Return the entry of an expert in the bank."""
    return ENTRIES[seat.name.removeprefix(WHITE).removeprefix(EVEN)]
