"""What a bank lets go of when there is no room, first what it can best do without.

Every way takes the recipe and the stage. It returns what there is to tell once it has let something go, and
None if it has nothing to let go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sf2el import events
from sf2el.bank.entries import SPARE, WHITE, entry_of
from sf2el.bank.weights import normalised
from sf2el.events import Happened
from sf2el.experts import LogisticSeat, PosteriorSeat
from sf2el.recipe import Told
from sf2el.sketch import ROOM
from sf2el.space import Space

if TYPE_CHECKING:
    from sf2el.bank.bytes import BankBudget
    from sf2el.stage import Stage


def give_way(recipe: BankBudget, stage: Stage) -> Told | None:
    """Let go of the next thing; None if there is nothing left."""
    for way in WAYS:
        told = way(recipe, stage)
        if told is not None:
            return told
    return None


def has_spare(stage: Stage) -> bool:
    """Whether there is something that a model with few radial functions can do without."""
    extras = any(_paper(space) or _white(space) for space in stage.spaces())
    return extras or any(psi.thinner for psi in _maps(stage))


def kernels_of(space: Space) -> list[Any]:
    """Return the experts of a space that have radial functions."""
    return [seat for seat in space.seats if entry_of(seat).gamma]


def _paper(space: Space) -> list[Any]:
    return [seat for seat in space.seats if entry_of(seat).paper]


def _white(space: Space) -> list[Any]:
    kernels = kernels_of(space)
    white = [seat for seat in kernels if seat.name.startswith(WHITE)]
    return white if len(white) < len(kernels) else []


def _maps(stage: Stage) -> list[Any]:
    return [psi for psi in (stage.overlap, stage.psi) if psi is not None]


def _drop(recipe: BankBudget, stage: Stage, space: Space, seats: list[Any]) -> Told:
    recipe.keep(stage, space, [seat for seat in space.seats if seat not in seats])
    past = len(stage.past.seats) if stage.past is not None and stage.recovers else 0
    return [Happened(events.EXPERTS, len(stage.current.seats), past)]


def _extra_experts(recipe: BankBudget, stage: Stage) -> Told | None:
    """The published learner, then experts that see a space white where others have radial functions too."""
    for extras in (_paper, _white):
        for space in stage.spaces():
            found = extras(space)
            if found:
                return _drop(recipe, stage, space, found)
    return None


def _statistics_but_a_sketch(recipe: BankBudget, stage: Stage) -> Told | None:
    for psi in _maps(stage):
        if psi.thinner:
            psi.thin()
            return [Happened(events.SKETCHED, psi.new_dim, ROOM)]
    return None


def _weaker_width(recipe: BankBudget, stage: Stage) -> Told | None:
    kernels = kernels_of(stage.current)
    if len(kernels) < 2:
        return None
    weight = recipe.own_weights(stage)
    return _drop(recipe, stage, stage.current, [min(kernels, key=lambda seat: weight[seat.name])])


def _past_before_a_third(recipe: BankBudget, stage: Stage) -> Told | None:
    return _past(recipe, stage) if stage.upcoming is not None else None


def _opened_experts(recipe: BankBudget, stage: Stage) -> Told | None:
    """Those with radial functions, then all: the space gets experts again when it goes on alone."""
    space = stage.upcoming
    if space is None or space is stage.past or not space.seats:
        return None
    return _drop(recipe, stage, space, kernels_of(space) or list(space.seats))


def _new_kernels(recipe: BankBudget, stage: Stage) -> Told | None:
    kernels = kernels_of(stage.current)
    return _drop(recipe, stage, stage.current, kernels) if stage.past is not None and kernels else None


def _map_statistics(recipe: BankBudget, stage: Stage) -> Told | None:
    """And the covariance of the vanished space, which is of use for nothing else."""
    if stage.psi is None or stage.psi.settled:
        return None
    stage.psi.settle()
    if stage.past is not None and stage.past is not stage.upcoming:
        stage.past.moments = None
    return [Happened(events.SETTLED, stage.psi.new_dim)]


def _kernels(recipe: BankBudget, stage: Stage) -> Told | None:
    for space in stage.spaces():
        if kernels_of(space):
            return _drop(recipe, stage, space, kernels_of(space))
    return None


def _covariances(recipe: BankBudget, stage: Stage) -> Told | None:
    for space in stage.spaces():
        if space.moments is not None:
            space.moments = None
            return [Happened(events.UNRELATED, space.dim)]
    return None


def _past(recipe: BankBudget, stage: Stage) -> Told | None:
    if stage.past is None:
        return None
    own = stage.weights.weights[-len(stage.current.seats) :]
    stage.past = stage.psi = None  # where it has come back, it stays as the opened space
    stage.weights = recipe.weights_from(stage, normalised(own))
    stage.arrange()
    return [Happened(events.DROPPED_RECOVERED)]


def _coming_map(recipe: BankBudget, stage: Stage) -> Told | None:
    if stage.overlap is None:
        return None
    stage.overlap = None
    return [Happened(events.DROPPED_MAP)]


def _linear_covariance(recipe: BankBudget, stage: Stage) -> Told | None:
    """Of the widest space: its linear expert goes on with its mean alone."""
    heavy = [space for space in stage.spaces() if any(seat.name == "linear" for seat in space.seats)]
    if not heavy:
        return None
    space = max(heavy, key=lambda one: one.dim)
    seats: list[Any] = []
    for seat in space.seats:
        if isinstance(seat, PosteriorSeat) and seat.name == "linear":
            light = recipe.new_seat(SPARE, space, stage.outputs)
            assert isinstance(light, LogisticSeat)
            light.take_over(seat)
            seats.append(light)
        else:
            seats.append(seat)
    space.seat(seats)
    stage.arrange()
    return [Happened(events.LIGHTER, space.dim)]


def _all_opened_experts(recipe: BankBudget, stage: Stage) -> Told | None:
    if stage.upcoming is None or not stage.upcoming.seats:
        return None
    stage.upcoming.seat([])
    return []


WAYS = (
    _extra_experts,
    _statistics_but_a_sketch,
    _weaker_width,
    _past_before_a_third,
    _opened_experts,
    _new_kernels,
    _map_statistics,
    _kernels,
    _covariances,
    _past,
    _coming_map,
    _linear_covariance,
    _all_opened_experts,
)
