"""A bank within a budget: how large its experts are."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sf2el import events
from sf2el.events import Happened
from sf2el.experts.entries import SPARE, Entry, entry_of
from sf2el.experts.posterior import Form
from sf2el.maps.joint_map import statistics_bytes
from sf2el.memory.budget import MODEL_BYTES, NoRoomError
from sf2el.memory.giving_way import give_way, has_even, has_paper, has_spare, kernels_of
from sf2el.memory.plan import budget_overhead, smallest_budget
from sf2el.mixing.weights import BankWeights, Floats, weights_bytes
from sf2el.model.space import Space
from sf2el.model.strategy import Recipe, Told

if TYPE_CHECKING:
    from sf2el.model.stage import Stage

MOST_BASIS = 120
"""Radial functions of an expert at most: twice as many measured a gain on few datasets, in four times the
bytes and the time."""

AMPLE_BASIS = 60
"""With so many radial functions each, bytes are worth more for another width, or for the younger space."""

ENOUGH_BASIS = 48
"""With so many radial functions each, experts keep single precision, which is faster. Below, more of them in
half precision are better."""

FEW_BASIS = 36
"""Below so many radial functions each, extra experts and exact statistics of a map are not worth it. With so
many, a single width keeps what it could compute, which is faster; below, the bytes are worth more as
functions."""

SOME_BASIS = 24
"""The same for the experts of a younger space, and for several widths."""

LITTLE_BASIS = 18
"""Below so many radial functions each, two widths are better than three, one linear expert better than two,
and experts of a space that has just opened can wait until it goes on alone."""

LEAST_BASIS = 6
"""Fewer radial functions are not worth their bytes."""


class Sizes(NamedTuple):
    """Radial functions of experts that have learned and of those about to, and the form they all have."""

    main: int
    fresh: int
    form: Form


class Held(NamedTuple):
    """The most radial functions that an expert of the older spaces and of the younger has learned."""

    main: int
    fresh: int


class BankBudget(Recipe):
    """The part of a bank's recipe that counts bytes."""

    precision: str

    @abstractmethod
    def new_seat(self, entry: Entry, space: Space, outputs: int, *, index: int = 0, view: str = "") -> Any:
        """Return an expert of the bank for a space."""

    @abstractmethod
    def keep(self, stage: Stage, space: Space, seats: list[Any]) -> None:
        """Leave only these experts in a space; the others' weight goes to them."""

    @abstractmethod
    def weights_from(self, stage: Stage, prior: Floats) -> BankWeights:
        """Return a mixture that begins with these weights."""

    def weights_of(self, stage: Stage, space: Space) -> dict[str, float]:
        """Return the weight of each expert of a space, by name; 0 where they do not play (yet)."""
        count, weights = len(space.seats), stage.weights.weights
        past = len(stage.past.seats) if stage.past is not None and stage.recovers else 0
        own = np.zeros(count)
        if len(weights) == past + len(stage.current.seats):  # else a swap is under way
            if space is stage.current:
                own = weights[past:]
            elif space is stage.past and past:
                own = weights[:past]
        return dict(zip((seat.name for seat in space.seats), map(float, own), strict=True))

    def kernels_by_weight(self, stage: Stage, space: Space) -> list[Any]:
        """Return the radial experts of a space, the one that is followed most first.

        Before labels tell, that is the widest: it does least harm.
        """
        weight = self.weights_of(stage, space)

        def worth(seat: Any) -> tuple[float, float]:
            return weight[seat.name], -entry_of(seat).gamma

        return sorted(kernels_of(space), key=worth, reverse=True)

    def check_least(self, budget: int, labels: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model: a feature, an expert, its labels."""
        space = Space(("a",), scaled=True, related=False, backend=self.backend, scaling=self.scaling)
        least_seat = self.new_seat(SPARE, space, 1)
        needed = MODEL_BYTES + labels + weights_bytes(1)
        needed += space.fixed_nbytes + least_seat.nbytes
        least = smallest_budget(needed)
        if budget < least:
            raise ValueError(f"A budget of {budget} bytes can hold no model; the least is {least} bytes.")

    def fit(self, stage: Stage, budget: int, reserved: int, *, growing: bool = False) -> Told:
        """Give every expert the room that the budget allows; drop what it has no room for."""
        told: Told = []
        while True:
            held = _held(stage) if growing else Held(0, 0)
            sizes = self._sizes(stage, budget - reserved - stage.fixed_nbytes(), held)
            if sizes is not None:
                return told + self._apply(stage, sizes)
            gone = give_way(self, stage, budget - reserved)
            if gone is None:
                self._refuse(stage, budget, reserved)
            told += gone or []

    def full_grown(self, stage: Stage) -> bool:
        """Whether every expert has as many radial functions as measured to help, and all their digits."""
        return _all_have(stage, MOST_BASIS)

    def ample(self, stage: Stage) -> bool:
        """Whether every expert has so many radial functions that another expert is worth more."""
        return _all_have(stage, AMPLE_BASIS)

    def _sizes(self, stage: Stage, available: int, held: Held) -> Sizes | None:
        """Return how large the experts are to be; None: no room for all of them."""
        several = len(kernels_of(stage.current)) > 1  # of them some may leave yet
        half = (Form.HALF, SOME_BASIS if several else FEW_BASIS, 0)
        for form, enough, fresh in ((Form.FULL, ENOUGH_BASIS, SOME_BASIS), half):
            sizes = self._sizes_if(stage, available, held, form)
            if sizes is not None:
                many = sizes.main >= max(enough, held.main)
                if many and sizes.fresh >= max(fresh, held.fresh):
                    return sizes
            if has_paper(stage):
                return None  # with fewer bytes it would take most of a row's time: it goes before digits do
        return None if has_spare(stage) else self._sizes_if(stage, available, held, Form.LEAST)

    def _sizes_if(self, stage: Stage, available: int, held: Held, form: Form) -> Sizes | None:
        """Return how large experts of this form can be; None: no room.

        While several widths share the first space, room is left for a second one, if that costs none of the
        ``held`` radial functions. A single width takes all: what it learns is projected once another comes.
        """
        apart = _younger(stage)
        main = [seat for space in stage.spaces() if space is not apart for seat in space.seats]
        fresh = [] if apart is None else apart.seats
        first = None
        widths = len(kernels_of(stage.current))
        if stage.past is None and apart is None and widths > 1:
            first = _largest(main, available - self._foresight(stage, form), LEAST_BASIS, form)
            if first is None or (widths > 2 and first < LITTLE_BASIS):
                return None
        if first is None or first < held.main:
            first = self._shared(stage, available, main, fresh, held, form)
        if first is None or (first < FEW_BASIS and has_spare(stage)):
            return None
        if first < LITTLE_BASIS and has_even(stage):
            return None
        if first < LITTLE_BASIS and fresh and apart is stage.upcoming:
            return None
        second = _largest(fresh, available - _bytes(main, first, form), 1, form)
        if second is None or (second < SOME_BASIS and apart is stage.current and has_spare(stage)):
            return None
        return Sizes(first, min(first, second), form)

    def _shared(
        self, stage: Stage, available: int, main: list[Any], fresh: list[Any], held: Held, form: Form
    ) -> int | None:
        """Return how large the experts that have learned can be beside those about to.

        They come first until they are ample; then the others, and then all alike.
        """
        room = max(LEAST_BASIS, held.fresh)
        if not fresh:
            return _largest(main, available, LEAST_BASIS, form)
        alike = _largest(main, available, AMPLE_BASIS, form, fresh, 1.0, room)
        if alike is not None:
            return alike
        if _younger(stage) is stage.current:
            return _largest(main, available, LEAST_BASIS, form, fresh, 0.5, room, AMPLE_BASIS)
        # New features may be gone again: what was learned gives way to bytes only.
        most = max(AMPLE_BASIS, _held(stage).main)
        return _largest(main, available, LEAST_BASIS, form, fresh, 0.0, room, most)

    def _foresight(self, stage: Stage, form: Form) -> int:
        """Return the bytes that a second space like the first would take beside it."""
        space = stage.current
        kernels = kernels_of(space)
        rest = [seat for seat in space.seats if seat not in kernels[1:]]
        extra = statistics_bytes(2 * space.dim, self.precision, thin=form is not Form.FULL)
        extra += space.fixed_nbytes + _bytes(rest, LEAST_BASIS, form)
        return max(0, extra - _bytes(kernels[1:], LEAST_BASIS, form))

    def _apply(self, stage: Stage, sizes: Sizes) -> Told:
        told: Told = []
        changed = False
        for space in stage.spaces():
            size = sizes.fresh if space is _younger(stage) else sizes.main
            for seat in space.seats:
                before = seat.nbytes
                moved = seat.refit(size, sizes.form)  # type: ignore[attr-defined]
                changed = changed or seat.nbytes != before
                if moved > 0.0:
                    told.append(Happened(events.MOVED, size, moved))
            if space.seats:
                space.seat(space.seats)
        if changed:
            told.insert(0, Happened(events.BASIS, sizes.main))
        return told

    def _refuse(self, stage: Stage, budget: int, reserved: int) -> None:
        """Raise NoRoomError, naming the least budget."""
        widest = max(stage.spaces(), key=lambda space: space.dim)
        classes = f" and {stage.outputs} classes" if stage.outputs > 1 else ""
        needed = stage.fixed_nbytes() + max(
            _bytes(stage.current.seats, 1, Form.HALF), self.new_seat(SPARE, widest, stage.outputs).nbytes
        )
        least = smallest_budget(needed + reserved - budget_overhead(budget))
        raise NoRoomError(
            f"The smallest expert on {widest.dim} features{classes} does not fit the budget "
            f"of {budget} bytes; give at least {least}."
        )


def _all_have(stage: Stage, size: int) -> bool:
    kernels = [seat for space in stage.spaces() for seat in kernels_of(space)]
    return bool(kernels) and all(
        seat.settings.size >= size and seat.precision != "float16" for seat in kernels
    )


def _held(stage: Stage) -> Held:
    apart = _younger(stage)
    held = {True: 0, False: 0}
    for space in stage.spaces():
        sizes = [int(seat.posterior.size) for seat in kernels_of(space)]
        held[space is apart] = max([held[space is apart], *sizes])
    return Held(held[False], held[True])


def _bytes(seats: list[Any], size: int, form: Form) -> int:
    return sum(int(seat.bytes_of(size, form)) for seat in seats)


def _younger(stage: Stage) -> Space | None:
    """Return the space whose experts have learned less than those of another in force."""
    if stage.upcoming is not None and stage.upcoming is not stage.past:
        return stage.upcoming
    return stage.current if stage.recovers else None


def _largest(
    seats: list[Any],
    available: int,
    least: int,
    form: Form,
    beside: list[Any] | None = None,
    share: float = 0.0,
    room: int = 0,
    most: int = MOST_BASIS,
) -> int | None:
    """Return the most radial functions, up to ``most``, with which these experts fit; None: too few.

    The experts ``beside`` them have this share of them, and ``room`` radial functions at least.
    """

    def fits(size: int) -> bool:
        theirs = _bytes(beside or [], max(room, int(share * size)), form)
        return _bytes(seats, size, form) + theirs <= available

    # Bytes grow with the size: the first that does not fit comes after the last that does.
    first_beyond = bisect_left(range(least, most + 1), True, key=lambda size: not fits(size))
    return least + first_beyond - 1 if first_beyond else None
