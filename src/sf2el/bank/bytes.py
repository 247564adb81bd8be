"""A bank within a budget: how large its experts are, and what gives way when there is no room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sf2el import events
from sf2el.bank.entries import SPARE, WHITE, entry_of
from sf2el.bank.weights import normalised
from sf2el.budget import MODEL_BYTES
from sf2el.events import Happened
from sf2el.experts import LogisticSeat, PosteriorSeat
from sf2el.maps import JointMap
from sf2el.plan import budget_overhead, smallest_budget
from sf2el.posterior import fixed_share_bytes
from sf2el.recipe import Recipe, Told
from sf2el.space import Space

if TYPE_CHECKING:
    from sf2el.stage import Stage

MOST_BASIS = 60
"""Radial functions of an expert at most: more measured no gain."""

FEW_BASIS = 24
"""Below so many radial functions each, two widths are better than three."""

LEAST_BASIS = 6
"""Fewer radial functions are not worth their bytes."""


class BankBudget(Recipe):
    """The part of a bank's recipe that counts bytes."""

    precision: str

    def _seat(self, entry: Any, space: Space, outputs: int, *, index: int = 0, white: bool = False) -> Any:
        raise NotImplementedError

    def _keep(self, stage: Stage, space: Space, seats: list[Any]) -> None:
        raise NotImplementedError

    def _weights(self, stage: Stage, prior: Any) -> Any:
        raise NotImplementedError

    def check_least(self, budget: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model: one feature, one expert."""
        from sf2el.labels import Labels

        space = Space(("a",), scaled=True, related=False, backend=self.backend)
        least_seat = self._seat(SPARE, space, 1)
        needed = MODEL_BYTES + Labels().nbytes + fixed_share_bytes(1) + 16
        needed += space.fixed_nbytes + least_seat.nbytes
        least = smallest_budget(needed)
        if budget < least:
            raise ValueError(f"A budget of {budget} bytes can hold no model; the least is {least} bytes.")

    def fit(self, stage: Stage, budget: int, reserved: int, *, growing: bool = False) -> Told:
        """Give every expert the room that the budget allows; drop what it has no room for."""
        told: Told = []
        while True:
            held = _held(stage) if growing else 0
            sizes = self._sizes(stage, budget - reserved - stage.fixed_nbytes(), held)
            if sizes is not None:
                return told + self._apply(stage, *sizes)
            dropped = self._give_way(stage)
            if dropped is None:
                self._refuse(stage, budget, reserved)
            told += dropped or []

    def _sizes(self, stage: Stage, available: int, held: int = 0) -> tuple[int, int] | None:
        """Return the radial functions of experts that have learned and of those about to; None: no room.

        Where no second space has come yet, room is left for one like the first, if that costs none of the
        ``held`` radial functions.
        """
        apart = _younger(stage)
        main = [seat for space in stage.spaces() if space is not apart for seat in space.seats]
        fresh = [] if apart is None else apart.seats
        first = None
        if stage.past is None and apart is None:
            first = _largest(main, available - self._foresight(stage), LEAST_BASIS)
            kernels = [seat for seat in main if entry_of(seat).gamma]
            if (first is None and len(kernels) > 1) or ((first or 0) < FEW_BASIS and len(kernels) > 2):
                return None
        if first is None or first < held:
            first = _largest(main, available, LEAST_BASIS, fresh if apart is stage.current else (), fresh)
        if first is None or (first < FEW_BASIS and _to_spare(stage)):
            return None
        second = _largest(fresh, available - _bytes(main, first), 1)
        return None if second is None else (first, min(first, second))

    def _foresight(self, stage: Stage) -> int:
        """Return the bytes that a second space like the first would take beside it."""
        space = stage.current
        psi = JointMap(space.dim, space.dim, space.divisor, self.precision, self.backend)
        kernels = [seat for seat in space.seats if entry_of(seat).gamma]
        spared = len(kernels) > 1
        rest = [seat for seat in space.seats if seat not in kernels[1:]]
        extra = psi.nbytes + space.fixed_nbytes + _bytes(rest, LEAST_BASIS)
        return extra - (_bytes(kernels[1:], LEAST_BASIS) if spared else 0)

    def _apply(self, stage: Stage, main: int, fresh: int) -> Told:
        told: Told = []
        changed = False
        for space in stage.spaces():
            size = fresh if space is _younger(stage) else main
            for seat in space.seats:
                before = seat.nbytes
                moved = seat.refit(size)  # type: ignore[attr-defined]
                changed = changed or seat.nbytes != before
                if moved > 0.0:
                    told.append(Happened(events.MOVED, size, moved))
            if space.seats:
                space.seat(space.seats)
        if changed:
            told.insert(0, Happened(events.BASIS, main))
        return told

    def _give_way(self, stage: Stage) -> Told | None:
        """Drop the next thing that the model can best do without; None if there is nothing left to drop."""
        kernels = {
            id(space): [seat for seat in space.seats if entry_of(seat).gamma] for space in stage.spaces()
        }
        own = kernels[id(stage.current)]
        for extras in (_paper, _white):
            for space in stage.spaces():
                extra = extras(space)
                if extra:
                    return self._drop(stage, space, extra)
        if len(own) > 1:
            weights = dict(
                zip(
                    (seat.name for seat in stage.current.seats),
                    stage.weights.weights[-len(stage.current.seats) :],
                    strict=True,
                )
            )
            worst = min(own, key=lambda seat: weights[seat.name])
            return self._drop(stage, stage.current, [worst])
        if stage.psi is not None and not stage.psi.settled:
            stage.psi.settle()
            return []
        if stage.past is not None and stage.past.moments is not None and stage.upcoming is not stage.past:
            stage.past.moments = None
            return []
        if stage.past is not None and stage.upcoming is not None:
            return self._drop_past(stage)
        if stage.upcoming is not None and stage.upcoming is not stage.past and stage.upcoming.seats:
            fresh = kernels[id(stage.upcoming)] or stage.upcoming.seats
            return self._drop(stage, stage.upcoming, list(fresh))
        if stage.past is not None and own:
            return self._drop(stage, stage.current, own)
        for space in stage.spaces():
            if space.moments is not None:
                space.moments = None
                return []
        for space in stage.spaces():
            if kernels[id(space)]:
                return self._drop(stage, space, kernels[id(space)])
        if stage.past is not None:
            return self._drop_past(stage)
        if stage.overlap is not None:
            stage.overlap = None
            return [Happened(events.DROPPED_MAP)]
        heavy = [space for space in stage.spaces() if any(seat.name == "linear" for seat in space.seats)]
        if heavy:
            return self._lighten(stage, max(heavy, key=lambda space: space.dim))
        if stage.upcoming is not None and stage.upcoming.seats:
            stage.upcoming.seat([])
            return []
        return None

    def _lighten(self, stage: Stage, space: Space) -> Told:
        """Go on with a linear expert's mean alone."""
        seats: list[Any] = []
        for seat in space.seats:
            if isinstance(seat, PosteriorSeat) and seat.name == "linear":
                light = self._seat(SPARE, space, stage.outputs)
                assert isinstance(light, LogisticSeat)
                light.take_over(seat)
                seats.append(light)
            else:
                seats.append(seat)
        space.seat(seats)
        stage.arrange()
        return [Happened(events.LIGHTER, space.dim)]

    def _drop(self, stage: Stage, space: Space, seats: list[Any]) -> Told:
        self._keep(stage, space, [seat for seat in space.seats if seat not in seats])
        past = len(stage.past.seats) if stage.past is not None and stage.recovers else 0
        return [Happened(events.EXPERTS, len(stage.current.seats), past)]

    def _drop_past(self, stage: Stage) -> Told:
        own = stage.weights.weights[-len(stage.current.seats) :]
        stage.past = stage.psi = None  # where it has come back, it stays as the opened space
        stage.weights = self._weights(stage, normalised(own))
        stage.arrange()
        return [Happened(events.DROPPED_RECOVERED)]

    def _refuse(self, stage: Stage, budget: int, reserved: int) -> None:
        """Raise ValueError, naming the least budget."""
        widest = max(stage.spaces(), key=lambda space: space.dim)
        classes = f" and {stage.outputs} classes" if stage.outputs > 1 else ""
        needed = stage.fixed_nbytes() + max(
            _bytes(stage.current.seats, 1), self._seat(SPARE, widest, stage.outputs).nbytes
        )
        least = smallest_budget(needed + reserved - budget_overhead(budget))
        raise ValueError(
            f"The smallest expert on {widest.dim} features{classes} does not fit the budget "
            f"of {budget} bytes; give at least {least}."
        )


def _to_spare(stage: Stage) -> bool:
    """Whether there is an expert that a model with few radial functions can do without."""
    return any(_paper(space) or _white(space) for space in stage.spaces())


def _paper(space: Space) -> list[Any]:
    """Return the published learner of a space, if it has one."""
    return [seat for seat in space.seats if entry_of(seat).paper]


def _white(space: Space) -> list[Any]:
    """Return the experts of a space that see it white, if others have radial functions too."""
    kernels = [seat for seat in space.seats if entry_of(seat).gamma]
    white = [seat for seat in kernels if seat.name.startswith(WHITE)]
    return white if len(white) < len(kernels) else []


def _held(stage: Stage) -> int:
    """Return the most radial functions that an expert has learned."""
    seats = [seat for space in stage.spaces() for seat in space.seats]
    return max((int(s.posterior.size) for s in seats if isinstance(s, PosteriorSeat) and s.kernel), default=0)


def _bytes(seats: list[Any], size: int) -> int:
    return sum(int(seat.bytes_of(size)) for seat in seats)


def _younger(stage: Stage) -> Space | None:
    """Return the space whose experts have learned less than those of another in force."""
    if stage.upcoming is not None and stage.upcoming is not stage.past:
        return stage.upcoming
    return stage.current if stage.recovers else None


def _largest(
    seats: list[Any], available: int, least: int, halved: Sequence[Any] = (), others: Sequence[Any] = ()
) -> int | None:
    """Return the most radial functions, up to ``MOST_BASIS``, with which these experts fit; None: too few.

    Beside them ``halved`` experts have half as many at least, and ``others`` the least that is worth it.
    """
    for size in range(MOST_BASIS, least - 1, -1):
        beside = list(halved) or list(others)
        room = max(LEAST_BASIS, size // 2) if halved else LEAST_BASIS
        if _bytes(seats, size) + _bytes(beside, room) <= available:
            return size
    return None
