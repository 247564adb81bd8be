"""What a budget buys: one ladder of rungs, from the least model to the full one.

The plan is the highest rung that fits; the rest of the bytes go to the sizes of that rung. Each rung holds what
the rungs below it hold, and starts no smaller than the one below ends, so no size falls as bytes grow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from typing import Literal, NamedTuple

from sf2el.experts.kinds import RADIAL, RATES, Code, Form, Kind, View

Role = Literal["older", "ended", "current", "incoming"]

WIDEST_RELATED = 128
"""Features up to which a space keeps how they vary together."""

WIDEST_LINEAR = 128
"""Features up to which linear experts have a covariance: a row takes time by its square, and on bags of words the
logistic ones were as good."""

STANDING_BYTES = 48
"""What the mixture keeps of an expert, and its code."""

FEW_MAPPED, MANY_MAPPED = 28, 128
"""Features of both spaces beyond which a map takes so many bytes that linear experts come first, and then all."""

SINGLE, BRIEF = 2, 1
"""How a map is kept: in single precision, or in bfloat16."""


class Part(StrEnum):
    """What a rung adds; the text says it to people."""

    LEAST = "a logistic expert for the current space"
    LIGHT_VIEWS = "logistic experts for the views zero and flagged"
    LINEAR = "a linear expert with its covariance for the current space"
    MAP = "a map to the space before, and a logistic expert there"
    RELATIONS = "how the current features vary together, once values are missing"
    ENDED_LINEAR = "a linear expert for the space before"
    WIDE = "radial functions of one width, in the space that has learned most"
    STATISTICS = "the statistics with which the map goes on after a change"
    SECOND_WIDTH = "radial functions of a second width"
    COVARIANCES = "how the features of each space vary together"
    FRESH_RADIAL = "radial functions for the younger space, half as many"
    VIEWS = "linear experts for the views zero, flagged and mean"
    RATE = "a linear expert that forgets"
    OLDER = "spaces that ended before"
    SINGLE = "single precision in place of half"


class Rung(NamedTuple):
    """What is added, and the radial functions with which the rung starts and ends."""

    part: Part
    start: int
    end: int
    worth: str
    """What it was measured to be worth."""


RUNGS = (
    Rung(Part.LEAST, 0, 0, "the least model"),
    Rung(Part.LIGHT_VIEWS, 0, 0, "bags of words: no better than chance without them"),
    Rung(Part.MAP, 0, 0, "old experts go on after a change"),
    Rung(Part.LINEAR, 0, 0, "quicker with few labels than the logistic expert"),
    Rung(Part.RELATIONS, 0, 0, "missing values are filled by what is observed"),
    Rung(Part.ENDED_LINEAR, 0, 0, "the same, for the old experts"),
    Rung(Part.WIDE, 4, 10, "svmguide3: .02"),
    Rung(Part.COVARIANCES, 10, 10, ".003 to .007"),
    Rung(Part.STATISTICS, 10, 10, "credit-a with 2 % of the labels: .01"),
    Rung(Part.SECOND_WIDTH, 10, 18, "Swiss spirals: .26"),
    Rung(Part.FRESH_RADIAL, 18, 30, "new relations are learned sooner"),
    Rung(Part.VIEWS, 30, 30, "a sensor that fails in the state to be predicted: .18"),
    Rung(Part.RATE, 30, 36, "drift: .01 to .02"),
    Rung(Part.OLDER, 36, 48, "spaces that return go on with what they learned"),
    Rung(Part.SINGLE, 48, 120, "speed, and the last digits"),
)
EVERYTHING = 1 << 50
"""Bytes with which there is room for the last rung."""

PLACE = {rung.part: place for place, rung in enumerate(RUNGS)}

FORESEEN = 36
"""Radial functions from which a lone space leaves room for a second one like it."""


class SpaceShape(NamedTuple):
    """A space as the plan sees it: room for features, features it began with, and its part in things."""

    room: int
    born: int
    role: Role
    features: int


class Shapes(NamedTuple):
    """All that decides on bytes, apart from the budget."""

    spaces: tuple[SpaceShape, ...]
    """The oldest first."""
    mapped: tuple[bool, ...]
    """Of each space, whether there is (or may be) a map to it from the next one."""
    gapped: bool
    outputs: int
    task: str


class Standing(NamedTuple):
    """What labels have said of a space's experts."""

    leading: Kind = RADIAL[0]
    """The width that is followed most."""
    decided: bool = False
    """Whether the other one has little weight left."""
    outdone: bool = False
    """Of an ended space: whether its experts have none left."""


class Held(NamedTuple):
    """What is there already and would not come back: statistics of a map that was solved for good."""

    statistics: tuple[bool, ...] = ()


class SpacePlan(NamedTuple):
    """What a space keeps."""

    experts: tuple[Code, ...]
    related: bool


class MapPlan(NamedTuple):
    """How the map to a space is kept."""

    form: int
    statistics: bool


class Allocation(NamedTuple):
    """What is kept of everything; None: a space, or the map to it, goes."""

    spaces: tuple[SpacePlan | None, ...]
    maps: tuple[MapPlan | None, ...]
    rung: int = 0
    size: int = 0


class Costs(NamedTuple):
    """Bytes of each part, by the core's own count."""

    expert: Callable[[Code, int, int, int], int]
    """Of a code, the room, the features it began with and the outputs."""
    joint: Callable[[int, int], int]
    solution: Callable[[int, int, int], int]
    moments: Callable[[int], int]
    space: Callable[[int], int]
    """Of a space of so many features that only remembers."""


@lru_cache(maxsize=4096)
def plan(
    shapes: Shapes, standing: tuple[Standing, ...], held: Held, available: int, costs: Costs
) -> Allocation | None:
    """Return the best use of so many bytes; None: not even the least model fits.

    ``available`` are bytes for experts, maps and covariances; names, scaling and counters are paid already. Models
    of a fleet are much alike, so answers are remembered.
    """
    return _Ladder(shapes, standing, held, costs).climb(available)


@dataclass(frozen=True)
class _Ladder:
    shapes: Shapes
    standing: tuple[Standing, ...]
    held: Held
    costs: Costs

    def climb(self, available: int) -> Allocation | None:
        lone = len(self.shapes.spaces) == 1
        best = self._highest(available, FORESEEN if lone else RUNGS[-1].end)
        if lone and best is not None and best.size >= FORESEEN:
            twin = self._with_a_twin()._highest(available, RUNGS[-1].end)
            if twin is not None and (twin.rung, twin.size) > (best.rung, best.size):
                return self._highest(
                    available, twin.size
                )  # alone it may keep a second width that a twin would not
        return best

    def _with_a_twin(self) -> _Ladder:
        """Return the ladder as it will be once a space like this one opens beside it."""
        own = self.shapes.spaces[0]
        shapes = self.shapes._replace(spaces=(own, own._replace(role="incoming")), mapped=(True, False))
        return _Ladder(shapes, (*self.standing, Standing()), Held((True, False)), self.costs)

    def _highest(self, available: int, most: int) -> Allocation | None:
        """Return the highest rung that fits, with up to so many radial functions."""

        def fits(place: int, size: int) -> bool:
            return self.bytes(self.at(place, size)) <= available

        top = sum(rung.start <= most for rung in RUNGS)
        # Bytes grow with the rung, and on a rung with the size: the first that does not fit follows the last that does.
        place = bisect_left(range(top), True, key=lambda one: not fits(one, RUNGS[one].start)) - 1
        if place < 0:
            return None
        start, end = RUNGS[place].start, min(RUNGS[place].end, most)
        beyond = bisect_left(range(start + 1, end + 1), True, key=lambda one: not fits(place, one))
        return self.at(place, start + beyond)

    def bytes(self, found: Allocation) -> int:
        """Return what an allocation costs."""
        shapes, costs = self.shapes, self.costs
        total = 0
        for place, (shape, own) in enumerate(zip(shapes.spaces, found.spaces, strict=True)):
            if own is None:
                total -= costs.space(shape.features)
                continue
            for code in own.experts:
                total += costs.expert(code, shape.room, shape.born, shapes.outputs) + STANDING_BYTES
            total += costs.moments(shape.room) if own.related else 0
            psi = found.maps[place]
            if psi is not None:
                new, old = shapes.spaces[place + 1].features, shape.features
                total += costs.solution(new, old, psi.form) + (costs.joint(new, old) if psi.statistics else 0)
        return total

    def at(self, place: int, size: int) -> Allocation:
        """Return what a rung keeps with so many radial functions."""
        spaces: list[SpacePlan | None] = []
        maps: list[MapPlan | None] = []
        for i, shape in enumerate(self.shapes.spaces):
            spaces.append(self._space(i, shape, place, size))
            maps.append(self._map(i, shape, place) if spaces[-1] is not None else None)
        return Allocation(tuple(spaces), tuple(maps), place, size)

    def _space(self, i: int, shape: SpaceShape, place: int, size: int) -> SpacePlan | None:
        """Return what a rung keeps of a space."""

        def has(part: Part) -> bool:
            return place >= PLACE[part]

        role = shape.role
        outdone = self.standing[i].outdone
        if role == "older" and not has(Part.OLDER):
            return None
        old = role in ("older", "ended")
        if role == "ended" and not self._maps(i, place):
            return None
        form = Form.FULL if has(Part.SINGLE) else Form.HALF
        linear = shape.room <= WIDEST_LINEAR and has(Part.LINEAR if role == "current" else Part.ENDED_LINEAR)
        kind, kind_form = (Kind.LINEAR, form) if linear else (Kind.LIGHT, Form.FULL)
        codes = [Code(kind, form=kind_form)]
        if role in ("current", "incoming") and self.shapes.gapped and has(Part.LIGHT_VIEWS):
            for view in (View.ZERO, View.FLAGGED):
                heavy = linear and has(Part.VIEWS)
                codes.append(
                    Code(Kind.LINEAR, view, form=Form.HALF)
                    if heavy
                    else Code(Kind.LIGHT, view, form=Form.FULL)
                )
        if linear and role in ("current", "incoming") and self.shapes.gapped and has(Part.VIEWS):
            codes.append(Code(Kind.LINEAR, View.MEAN, form=Form.HALF))
        if linear and role == "current" and has(Part.RATE):
            codes += [Code(Kind.LINEAR, rate=rate, form=form) for rate in range(1, len(RATES))]
        if role != "older" and not outdone:
            codes += self._radial(i, place, size, form)
        related = shape.room <= WIDEST_RELATED and (
            has(Part.COVARIANCES) or (role == "current" and self.shapes.gapped and has(Part.RELATIONS))
        )
        related = related and role != "older" and not (old and self._settled(i, place))
        return SpacePlan(tuple(codes), related)

    def _radial(self, i: int, place: int, size: int, form: Form) -> list[Code]:
        """Return a space's experts with radial functions: most go to where most was learned."""
        if place < PLACE[Part.WIDE] or size < 1:
            return []
        leading, decided = self.standing[i].leading, self.standing[i].decided
        several = self._several
        if self._younger != i:
            other = RADIAL[1] if leading is RADIAL[0] else RADIAL[0]
            second = place >= PLACE[Part.RATE if decided else Part.SECOND_WIDTH] and not (several and decided)
            widths = [leading, other] if second else [leading]
            return [Code(kind, form=form, size=size) for kind in widths]
        if place < PLACE[Part.FRESH_RADIAL]:
            return []
        theirs = size // 2 if size < RUNGS[-1].start else size - RUNGS[-1].start // 2
        return [Code(leading, form=form, size=theirs)]

    @cached_property
    def _several(self) -> bool:
        return self._younger is not None

    @cached_property
    def _younger(self) -> int | None:
        """The space whose experts have learned less than those of another that matters."""
        spaces = self.shapes.spaces
        if spaces[-1].role == "incoming":
            return len(spaces) - 1
        plays = [i for i, one in enumerate(spaces) if one.role == "ended" and not self.standing[i].outdone]
        return len(spaces) - 1 if plays else None

    def _maps(self, i: int, place: int) -> bool:
        """Whether a rung has the map to a space; without one it is of use only if its features return."""
        if not self.shapes.mapped[i]:
            return place >= PLACE[Part.OLDER]
        both = self.shapes.spaces[i].features + self.shapes.spaces[i + 1].features
        first = Part.MAP if both <= FEW_MAPPED else Part.ENDED_LINEAR if both <= MANY_MAPPED else Part.OLDER
        return place >= PLACE[first]

    def _settled(self, i: int, place: int) -> bool:
        return i < len(self.held.statistics) and not self.held.statistics[i]

    def _map(self, i: int, shape: SpaceShape, place: int) -> MapPlan | None:
        """Return how the map to a space is kept."""
        if not self.shapes.mapped[i] or i + 1 == len(self.shapes.spaces):
            return None
        if not self._maps(i, place):
            return None
        fitted = self.shapes.spaces[i + 1].role == "incoming"
        goes_on = place >= PLACE[Part.STATISTICS] and shape.role == "ended" and not self._settled(i, place)
        goes_on = goes_on and not self.standing[i].outdone
        form = SINGLE if place >= PLACE[Part.OLDER] else BRIEF
        return MapPlan(form, fitted or goes_on)


class Difference(NamedTuple):
    """An expert that leaves or comes, and why."""

    space: int
    code: Code
    comes: bool
    why: str
    for_bytes: bool
    """Whether bytes are the reason; else labels have decided for others, or the space has another part."""

    @property
    def name(self) -> str:
        """What people call the expert."""
        return self.code.name


def diff(old: Allocation | None, new: Allocation, most: Allocation | None = None) -> list[Difference]:
    """Return which experts leave and come between two allocations of the same spaces, each with the reason.

    ``most`` is what there would be with bytes for everything: what is not in it leaves for another reason.
    """
    found: list[Difference] = []
    for place in range(len(new.spaces)):
        theirs, ours, ever = (_experts_of(one, place) for one in (old, new, most))
        for who in theirs.keys() - ours.keys():
            room = most is None or who in ever
            why = (
                "the budget has room up to"
                if room
                else "labels have decided for others, or its space has ended, at"
            )
            found.append(Difference(place, theirs[who], False, f"{why} rung {new.rung}", room))
        why = f"the budget has room for rung {new.rung}"
        found += [Difference(place, ours[who], True, why, True) for who in ours.keys() - theirs.keys()]
    return sorted(found, key=lambda one: (one.space, one.comes, one.code))


def _experts_of(found: Allocation | None, place: int) -> dict[tuple[Kind, View, int], Code]:
    """Return the experts of a space, none where it is not there."""
    own = None if found is None or place >= len(found.spaces) else found.spaces[place]
    return {} if own is None else {code.who: code for code in own.experts}


@cache
def table() -> tuple[tuple[int, str, int, int, str], ...]:
    """Return the ladder as rows of a table: number, what is added, sizes, and what that was measured to be worth."""
    return tuple((i, str(rung.part), rung.start, rung.end, rung.worth) for i, rung in enumerate(RUNGS))
