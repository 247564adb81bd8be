"""The experts of the default: kind x view x rate of forgetting, three short lists whose priors multiply.

``native/state/kinds.hpp`` says what each kind is made of.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What an expert computes."""

    LINEAR = 0
    NARROW = 1
    WIDE = 2
    LIGHT = 3
    LEARNER = 4


class View(IntEnum):
    """How an expert sees what is missing: as expected, as zero, or as zero with a flag for each feature."""

    EXPECTED = 0
    ZERO = 1
    FLAGGED = 2
    MEAN = 3


class Form(IntEnum):
    """How an expert keeps its numbers: single precision, half, or half without what follows from the rest."""

    FULL = 0
    HALF = 1
    LEAST = 2


KIND_PRIORS = {
    Kind.LINEAR: 0.5,
    Kind.NARROW: 0.25,
    Kind.WIDE: 0.25,
    Kind.LIGHT: 0.5,
    Kind.LEARNER: 1.0,
}
VIEW_PRIORS = {View.EXPECTED: 1.0, View.ZERO: 0.3, View.FLAGGED: 0.3, View.MEAN: 1.0}
RATES = (0.0, 0.01)
"""Share of what was learned that becomes uncertain again with each label."""
RATE_PRIORS = (1.0, 0.2)

RADIAL = (Kind.WIDE, Kind.NARROW)
"""Kinds with radial functions; before labels tell, the first does least harm."""

KIND_NAMES = {
    Kind.LINEAR: "linear",
    Kind.NARROW: "narrow rbf",
    Kind.WIDE: "wide rbf",
    Kind.LIGHT: "logistic",
    Kind.LEARNER: "learner",
}


class Code(NamedTuple):
    """What an expert is, as the core knows it; ``size`` counts radial functions or rows."""

    kind: Kind
    view: View = View.EXPECTED
    rate: int = 0
    form: Form = Form.LEAST
    size: int = 0

    @property
    def who(self) -> tuple[Kind, View, int]:
        """What stays when an expert is reshaped; a linear expert may take the place of a light one."""
        kind = Kind.LINEAR if self.kind is Kind.LIGHT else self.kind
        return kind, self.view, self.rate

    @property
    def prior(self) -> float:
        """The product of its priors."""
        return KIND_PRIORS[self.kind] * VIEW_PRIORS[self.view] * RATE_PRIORS[self.rate]

    @property
    def name(self) -> str:
        """What people call it.

        >>> Code(Kind.LINEAR, View.FLAGGED, rate=1).name
        'linear, flagged, forgets 0.01'
        """
        parts = [KIND_NAMES[self.kind]]
        if self.view is not View.EXPECTED:
            parts.append(self.view.name.lower())
        if self.rate:
            parts.append(f"forgets {RATES[self.rate]:g}")
        return ", ".join(parts)


def code_of(raw: tuple[int, int, int, int, int]) -> Code:
    """Return a code as the core gives it."""
    kind, view, rate, form, size = raw
    return Code(Kind(kind), View(view), rate, Form(form), size)
