"""Experts that see a new space white: its features without their correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.experts.entries import LEAST_SPREAD, WHITE, entry_of
from sf2el.memory.giving_way import kernels_of
from sf2el.mixing.weights import class_log_odds
from sf2el.model.space import Space

if TYPE_CHECKING:
    from sf2el.model.bank import BankRecipe
    from sf2el.model.stage import Stage

Floats = npt.NDArray[np.float64]


def white_of(space: Space) -> list[Any]:
    """Return the experts that see a space white."""
    return [seat for seat in space.seats if seat.name.startswith(WHITE)]


def whiten(recipe: BankRecipe, stage: Stage) -> None:
    """Give a space that has begun one more radial expert, on features without their correlations."""
    space = stage.current
    if space.moments is None or white_of(space):
        return
    widest = min(kernels_of(space), key=lambda seat: entry_of(seat).gamma, default=None)
    seats: list[Any] = []
    for seat in space.seats:
        seats.append(seat)
        if seat is widest:
            white = recipe.new_seat(entry_of(seat), space, stage.outputs, view=WHITE)
            if recipe.task == "classes":
                white.start_from(class_log_odds(stage.counts, stage.outputs))
            seats.append(white)
    space.seat(seats)
    turn(stage, recipe.backend)


def turn(stage: Stage, backend: str | None) -> None:
    """Turn the rows of experts that see them white by what the space has shown by now."""
    space = stage.current
    turned = white_of(space)
    if turned and space.moments is not None and space.moments.count >= 2:
        matrix = whitening(space.moments.matrix(), space.moments.count, backend)
        for seat in turned:
            seat.turn(matrix)


def whitening(covariance: Floats, rows: float, backend: str | None = None) -> Floats:
    """Return the symmetric matrix that takes the correlations out of features whose covariance this is.

    With few rows it hardly turns: the correlation is drawn to none as if by one more row a feature.
    Directions of little variance are not blown up, and the total variance stays.

    >>> turn = whitening(np.array([[1.0, 0.9], [0.9, 1.0]]), 1000.0)
    >>> (turn @ np.array([[1.0, 0.9], [0.9, 1.0]]) @ turn).round(1).tolist()
    [[1.0, 0.2], [0.2, 1.0]]
    """
    return np.asarray(_core.backend(backend).whitening(covariance, rows, LEAST_SPREAD))
