"""What a bank lets go of when there is no room, first what it can best do without.

Every way takes the recipe, the stage and the bytes that the stage may have. It returns what there is to tell
once it has let something go, and None if it has nothing to let go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sf2el import events
from sf2el.events import Happened
from sf2el.experts.entries import LINEAR, SPARE, WHITE, entry_of
from sf2el.experts.even import even_of
from sf2el.experts.posterior import affine_bytes
from sf2el.experts.seats import LogisticSeat, PosteriorSeat
from sf2el.maps.joint_map import statistics_bytes
from sf2el.maps.sketch import ROOM
from sf2el.mixing.weights import normalised, weights_bytes
from sf2el.model.space import Space
from sf2el.model.strategy import Told

if TYPE_CHECKING:
    from sf2el.memory.bank_sizes import BankBudget
    from sf2el.model.stage import Stage


WIDEST_FACTORED = 128
"""Features up to which linear experts give up their covariance for a map in factors."""


def give_way(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Let go of the next thing; None if there is nothing left."""
    for way in WAYS:
        told = way(recipe, stage, room)
        if told is not None:
            return told
    return None


def has_spare(stage: Stage) -> bool:
    """Whether there is something that a model with few radial functions can do without."""
    extras = any(_paper(space) or _white(space) for space in stage.spaces())
    return _vanishing_with_two_widths(stage) is not None or extras or any(psi.thinner for psi in _maps(stage))


def has_paper(stage: Stage) -> bool:
    """Whether the published learner is among the experts."""
    return any(_paper(space) for space in stage.spaces())


def has_even(stage: Stage) -> bool:
    """Whether there is a linear expert to which features count by how evenly they vary."""
    return any(even_of(space) for space in stage.spaces())


def kernels_of(space: Space) -> list[Any]:
    """Return the experts of a space that have radial functions."""
    return [seat for seat in space.seats if entry_of(seat).gamma]


def linear_of(space: Space) -> Any:
    """Return the linear expert of a space, or the plain logistic one in its place."""
    return next(seat for seat in space.seats if entry_of(seat) in (LINEAR, SPARE))


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


def _vanishing_with_two_widths(stage: Stage) -> Space | None:
    """Return a space that has vanished, or may, if labels had not decided on a width of its experts."""
    spaces = [stage.past] if stage.recovers else []
    spaces += [stage.current] if stage.upcoming is not None else []
    return next((space for space in spaces if space is not None and len(kernels_of(space)) > 1), None)


def _undecided_width(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Of the vanishing space: both are only worth their bytes where there are many."""
    space = _vanishing_with_two_widths(stage)
    return None if space is None else _drop(recipe, stage, space, recipe.kernels_by_weight(stage, space)[1:])


def _extra_experts(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """The published learner, then experts that see a space white where others have radial functions too."""
    for extras in (_paper, _white):
        for space in stage.spaces():
            found = extras(space)
            if found:
                return _drop(recipe, stage, space, found)
    return None


def _statistics_but_a_sketch(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    for psi in _maps(stage):
        if psi.thinner:
            before = psi.sketched, psi.settled
            psi.thin()
            if psi.sketched and not before[0]:
                return [Happened(events.SKETCHED, psi.new_dim, ROOM)]
            return [Happened(events.SETTLED, psi.new_dim)] if psi.settled and not before[1] else []
    return None


def _statistics_of_many_rows(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """But a sketch, though it tells only a part of so many rows."""
    psi = stage.overlap
    if psi is None or not psi.outgrown:
        return None
    psi.sketch()
    return [Happened(events.SKETCHED, psi.new_dim, ROOM)]


def _even_linear(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """It is worth most before there are many labels; widths are worth more."""
    for space in stage.spaces():
        if even_of(space):
            return _drop(recipe, stage, space, even_of(space))
    return None


def _weaker_width(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    kernels = kernels_of(stage.current)
    if len(kernels) < 2:
        return None
    weight = recipe.weights_of(stage, stage.current)

    def worth(seat: Any) -> tuple[bool, float, float]:
        # One that has learned is not let go for one that has not; of these the widest does least harm.
        return seat.labels > 0, weight[seat.name], -entry_of(seat).gamma

    return _drop(recipe, stage, stage.current, [min(kernels, key=worth)])


def _past_before_a_third(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    return _past(recipe, stage, room) if stage.upcoming is not None else None


def _opened_experts(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Those with radial functions, then all: the space gets experts again when it goes on alone."""
    space = stage.upcoming
    if space is None or space is stage.past or not space.seats:
        return None
    return _drop(recipe, stage, space, kernels_of(space) or list(space.seats))


def _unmapped_past(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Of use only if its features return."""
    return None if stage.recovers or stage.past is stage.upcoming else _past(recipe, stage, room)


def _new_kernels(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    kernels = kernels_of(stage.current)
    return _drop(recipe, stage, stage.current, kernels) if stage.past is not None and kernels else None


def _statistics_of_a_known_map(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """The map stays as it is, and then the vanished features' covariance is of no use either.

    It would lose more without that covariance than it gains by going on with the new rows.
    """
    if stage.psi is None or stage.psi.settled or not stage.psi.knows_most:
        return None
    told = _map_statistics(recipe, stage, room) or []
    return told + (_past_covariance(recipe, stage, room) or [])


def _past_covariance(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Of use for the map alone, which gains more from going on with the new rows."""
    past = stage.past
    if not stage.recovers or past is None or past is stage.upcoming or past.moments is None:
        return None
    past.moments = None
    return [Happened(events.UNRELATED, past.dim)]


def _map_statistics(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    if stage.psi is None or stage.psi.settled:
        return None
    stage.psi.settle()
    return [Happened(events.SETTLED, stage.psi.new_dim)]


def _map_but_factors(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    if stage.psi is None or not stage.psi.narrower:
        return None
    stage.psi.narrow(stage.current)
    return []


def _kernels(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    for space in stage.spaces():
        if kernels_of(space):
            return _drop(recipe, stage, space, kernels_of(space))
    return None


def _covariances(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    for space in stage.spaces():
        if space.moments is not None:
            space.moments = None
            return [Happened(events.UNRELATED, space.dim)]
    return None


def drop_past(recipe: BankBudget, stage: Stage) -> None:
    """Let the vanished space go; where it has come back, it stays as the opened one."""
    own = stage.weights.weights[-len(stage.current.seats) :]
    stage.past = stage.psi = None
    stage.weights = recipe.weights_from(stage, normalised(own))
    stage.arrange()


def _past(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    if stage.past is None:
        return None
    drop_past(recipe, stage)
    return [Happened(events.DROPPED_RECOVERED)]


def _coming_map(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    if stage.overlap is None:
        return None
    stage.overlap = None
    return [Happened(events.DROPPED_MAP)]


def _hopeless_map(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """A coming map that has no room whatever else goes: then nothing else has to."""
    if stage.overlap is None or stage.upcoming is None:
        return None
    if _fits_map(recipe, stage.overlap, stage.current, stage.upcoming, stage.outputs, room):
        return None
    return _coming_map(recipe, stage, room)


def _covariances_for_a_map(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Of the vanishing space's linear expert, then of the new space's, where the map then has room."""
    spaces = (stage.past, stage.current) if stage.recovers else (stage.current, stage.upcoming)
    psi = stage.psi if stage.recovers else stage.overlap
    vanishing, coming = spaces
    if psi is None or vanishing is None or coming is None:
        return None
    if not _fits_map(recipe, psi, vanishing, coming, stage.outputs, room):
        return None
    heavy = [space for space in (vanishing, stage.current) if _heavy(space)]
    return _lighten(recipe, stage, heavy[0]) if heavy else None


def _fits_map(recipe: BankBudget, psi: Any, vanishing: Space, coming: Space, outputs: int, room: int) -> bool:
    """Whether a map has room beside nothing but the lightest experts, while it is learned and after."""
    light, new = (recipe.new_seat(SPARE, space, outputs).nbytes for space in (vanishing, coming))
    always = light + sum(space.name_nbytes + space.scaler_nbytes for space in (vanishing, coming))
    thinnest = min(int(psi.nbytes), statistics_bytes(psi.new_dim + psi.old_dim, recipe.precision, thin=True))
    # Of very many features a few factors recover too little to be worth a covariance.
    factored = vanishing.dim <= WIDEST_FACTORED
    solved = psi.least_nbytes if factored else 8 + affine_bytes(psi.new_dim, psi.old_dim, "bfloat16")
    return bool(always + max(thinnest + weights_bytes(1), solved + new + weights_bytes(2)) <= room)


def _linear_covariance(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    """Of the widest space."""
    heavy = [space for space in stage.spaces() if _heavy(space)]
    return _lighten(recipe, stage, max(heavy, key=lambda one: one.dim)) if heavy else None


def _heavy(space: Space) -> bool:
    return any(seat.name == LINEAR.name for seat in space.seats)


def _lighten(recipe: BankBudget, stage: Stage, space: Space) -> Told:
    """Let a space's linear expert go on with its mean alone, or go where there is one such already."""
    if any(seat.name == SPARE.name for seat in space.seats):
        recipe.keep(stage, space, [seat for seat in space.seats if seat.name != LINEAR.name])
        return [Happened(events.LIGHTER, space.dim)]
    seats: list[Any] = []
    for seat in space.seats:
        if isinstance(seat, PosteriorSeat) and seat.name == LINEAR.name:
            light = recipe.new_seat(SPARE, space, stage.outputs)
            assert isinstance(light, LogisticSeat)
            light.take_over(seat)
            seats.append(light)
        else:
            seats.append(seat)
    space.seat(seats)
    stage.arrange()
    return [Happened(events.LIGHTER, space.dim)]


def _all_opened_experts(recipe: BankBudget, stage: Stage, room: int) -> Told | None:
    if stage.upcoming is None or not stage.upcoming.seats:
        return None
    stage.upcoming.seat([])
    return []


WAYS = (
    _undecided_width,
    _extra_experts,
    _statistics_but_a_sketch,
    _hopeless_map,
    _even_linear,
    _weaker_width,
    _past_before_a_third,
    _opened_experts,
    _unmapped_past,
    _new_kernels,
    _statistics_of_a_known_map,
    _past_covariance,
    _map_statistics,
    _map_but_factors,
    _covariances,
    _covariances_for_a_map,
    _kernels,
    _statistics_of_many_rows,
    _past,
    _coming_map,
    _linear_covariance,
    _all_opened_experts,
)
