"""Loss functions: each is declared once, as a value and its derivative in the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log1p

from sf2el.inputs.labels import sigmoid


@dataclass(frozen=True)
class Loss:
    """A loss ``value(score, y)`` that is convex in the score, and its (sub)derivative in the score.

    Examples
    --------
    >>> hinge = LOSSES["hinge"]
    >>> hinge.value(0.25, 1.0), hinge.derivative(0.25, 1.0)
    (0.75, -1.0)
    """

    name: str
    value: Callable[[float, float], float]
    derivative: Callable[[float, float], float]


def _softplus(z: float) -> float:
    return max(z, 0.0) + log1p(exp(-abs(z)))


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("logistic", lambda f, y: _softplus(-y * f), lambda f, y: -y * sigmoid(-y * f)),
        Loss("hinge", lambda f, y: max(0.0, 1.0 - y * f), lambda f, y: -y if y * f < 1.0 else 0.0),
        Loss(
            "squared_hinge",
            lambda f, y: max(0.0, 1.0 - y * f) * max(0.0, 1.0 - y * f),
            lambda f, y: -2.0 * y * max(0.0, 1.0 - y * f),
        ),
        Loss("squared", lambda f, y: (f - y) * (f - y), lambda f, y: 2.0 * (f - y)),
        Loss("absolute", lambda f, y: abs(f - y), lambda f, y: float(f > y) - float(f < y)),
    )
}
