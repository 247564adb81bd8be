"""The default's strategy: the plan's allocation of experts and maps, made on a model's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sf2el.core import native
from sf2el.events import EventKind, Happened, expert_number
from sf2el.experts.kinds import RADIAL, Code, Kind, View, code_of
from sf2el.features.policies import FeaturePolicy, OwnPace, name_of, policy_named
from sf2el.inputs.parameters import check_choice, check_range, check_whole, plain_numbers
from sf2el.memory.budget import NoRoomError, least_budget
from sf2el.memory.ladder import (
    EVERYTHING,
    RUNGS,
    STANDING_BYTES,
    Allocation,
    Costs,
    Difference,
    Held,
    MapPlan,
    Role,
    Shapes,
    SpacePlan,
    SpaceShape,
    Standing,
    diff,
    plan,
)
from sf2el.model.changes import current_space

if TYPE_CHECKING:
    from sf2el.core._native import State

Floats = npt.NDArray[np.float64]

UNDECIDED = 0.1
"""Share of the leading width's weight from which the other one stays when features change."""

OUTDONE = 0.01
"""Share of all weight below which the experts of an ended space no longer count."""

ENOUGH_LABELS = 50
"""Labels after which that counts, and after which a newcomer is followed only once labels speak for it."""

NEWCOMER_WEIGHT = 0.02
"""Weight of an expert that begins beside others that have learned."""

INCOMING_WEIGHT, INCOMING_PRIOR = 1e-3, 1e-2
"""What experts of a space beside the current one weigh until that one ends."""

MAP_BYTES = 48
"""What describes a map, beside its numbers."""

OWN_PACE = OwnPace()
TASKS = ("classes", "regression_squared", "regression_absolute")


@dataclass(frozen=True, kw_only=True)
class BankStrategy:
    """A bank of experts (kind x view x rate), sized and weighted so that nothing has to be set."""

    task: str = "classes"
    forget: float = 0.0
    seed: int = 0
    policy: FeaturePolicy = field(default=OWN_PACE)

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_choice("task", self.task, TASKS)
        check_range("forget", self.forget, least=0.0)
        if self.forget >= 1.0:
            raise ValueError(f"forget must be below 1, not {self.forget!r}.")
        check_whole("seed", self.seed, 0, (1 << 64) - 1)

    @classmethod
    def of(cls, content: dict[str, Any]) -> BankStrategy:
        """Return the strategy of plain values."""
        policy = policy_named(content.get("policy", name_of(OWN_PACE)))
        return cls(task=content["task"], forget=content["forget"], seed=content["seed"], policy=policy)

    def size(self) -> str:
        """Return nothing: the budget is the size."""
        return ""

    def new_state(self) -> State:
        """Return a state without any space."""
        state: State = native().State(self.task, forget=float(self.forget), seed=self.seed)
        state.exact = self.policy.exact
        return state

    def content(self) -> dict[str, Any]:
        """Return the parameters as plain values, for a file."""
        own = {} if isinstance(self.policy, OwnPace) else {"policy": name_of(self.policy)}
        return {"task": self.task, "forget": self.forget, "seed": self.seed, **own}

    def check_least(self, budget: int, own: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model: a feature and a logistic expert."""
        state = self.new_state()
        fixed = sum(state.bytes()) + state.settings_bytes()
        space = 80 + state.expert_bytes(Code(Kind.LIGHT), 1, 1, 1) + STANDING_BYTES
        least = least_budget(fixed + space, own)
        if budget < least:
            raise ValueError(
                f"A budget of {budget} bytes is too small for any model; at least {least} bytes are needed."
            )

    # -- the plan

    def arrange(self, state: State, available: int | None, odds: Sequence[float]) -> list[Happened]:
        """Give every space what the bytes allow, in place; return what there is to tell."""
        assert available is not None
        costs = _costs(self.task)
        shapes = _shapes(state, self.task)
        held = _held(state)
        variable = _bytes_of(state)
        fixed = sum(state.bytes()) + state.settings_bytes() - state.waiting_bytes() - variable
        standing = _standing(state)
        found = plan(shapes, standing, held, available - fixed, costs)
        if found is None:
            self._refuse(state, available, fixed, costs, shapes)
        assert found is not None
        told = _told(
            diff(_as_it_is(state), found, plan(shapes, standing, held, EVERYTHING, costs)), found, shapes
        )
        return told + _Arranging(state, shapes, odds).make(found)

    def fits(self, state: State, budget: int | None) -> bool:
        """Whether a state is one that this strategy has made, and has a budget."""
        return budget is not None and not state.paper and state.numbers == (self.task != "classes")

    def rung(self, state: State, available: int) -> int | None:
        """Return the place of the highest rung that fits so many bytes; None where not even the least does."""
        fixed = sum(state.bytes()) + state.settings_bytes() - state.waiting_bytes() - _bytes_of(state)
        shapes = _shapes(state, self.task)
        found = plan(shapes, _standing(state), _held(state), available - fixed, _costs(self.task))
        return None if found is None else found.rung

    def full_grown(self, state: State) -> bool:
        """Whether every radial expert has as many functions as were measured to help."""
        codes = [code_of(code) for space in range(state.spaces) for code, *_ in state.experts(space)]
        radial = [code for code in codes if code.kind in RADIAL]
        return bool(radial) and all(code.size >= RUNGS[-1].end for code in radial)

    def _refuse(self, state: State, available: int, fixed: int, costs: Costs, shapes: Shapes) -> None:
        """Raise NoRoomError, naming the least budget."""
        widest = max(shapes.spaces, key=lambda one: one.room)
        light = costs.expert(Code(Kind.LIGHT), widest.room, widest.born, shapes.outputs) + STANDING_BYTES
        needed = fixed + light * (2 if state.incoming else 1)
        classes = f" and {shapes.outputs} classes" if shapes.outputs > 1 else ""
        raise NoRoomError(f"The smallest model of {widest.features} features{classes}", needed)


@cache
def _costs(task: str) -> Costs:
    state = native().State(task)
    expert = cache(lambda code, room, born, outputs: state.expert_bytes(code, room, born, outputs))
    joint = cache(lambda new, old: state.joint_bytes(new, old) + MAP_BYTES)
    solution = cache(state.solution_bytes)
    return Costs(expert, joint, solution, state.moments_bytes, lambda features: 16 * features)


def _shapes(state: State, task: str) -> Shapes:
    """Return what decides on bytes."""
    here, count = current_space(state), state.spaces
    spaces, mapped = [], []
    for place in range(count):
        ids, room, born, *_ = state.space(place)
        role: Role = "current"
        if place > here:
            role = "incoming"
        elif place < here:
            role = "ended" if place == here - 1 else "older"
        spaces.append(SpaceShape(room, born, role, len(ids)))
        beside = place == here and state.incoming and not (state.vanished and state.map(place) is None)
        mapped.append(beside or state.map(place) is not None)
    return Shapes(tuple(spaces), tuple(mapped), state.gapped, state.outputs, task)


def _held(state: State) -> Held:
    """Return which maps still take in rows."""
    found = []
    for place in range(state.spaces):
        psi = state.map(place)
        found.append(psi is None or psi[6])
    return Held(tuple(found))


def _standing(state: State) -> tuple[Standing, ...]:
    """Return what labels have said of each space's experts."""
    weights = state.standings()[:, 0]
    here, at, found = current_space(state), 0, []
    leading = RADIAL[0]
    for place in range(state.spaces):
        codes = [code_of(code) for code, *_ in state.experts(place)]
        own = weights[at : at + len(codes)]
        at += len(codes)
        radial = {code.kind: float(w) for code, w in zip(codes, own, strict=True) if code.kind in RADIAL}
        decided = False
        if radial:
            leading = max(radial, key=lambda kind: (radial[kind], -int(kind is not RADIAL[0])))
            decided = len(radial) == 1 or min(radial.values()) < UNDECIDED * radial[leading]
        outdone = place < here and float(own.sum()) < OUTDONE and state.rounds >= ENOUGH_LABELS
        found.append(Standing(leading, decided, outdone))
    return tuple(found)


def _bytes_of(state: State) -> int:
    """Return the bytes of what the plan decides on."""
    total = 0
    for place in range(state.spaces):
        experts = state.experts(place)
        total += sum(size for *_, size in experts) + STANDING_BYTES * len(experts)
        _, room, _, _, _, related = state.space(place)
        total += state.moments_bytes(room) if related else 0
        psi = state.map(place)
        total += 0 if psi is None else psi[7]
    return total


def _as_it_is(state: State) -> Allocation:
    """Return which experts there are, as a plan would say it."""
    spaces = [
        SpacePlan(tuple(code_of(code) for code, *_ in state.experts(place)), state.space(place)[5])
        for place in range(state.spaces)
    ]
    return Allocation(tuple(spaces), (None,) * len(spaces))


def _told(differences: list[Difference], found: Allocation, shapes: Shapes) -> list[Happened]:
    """Return events that say which experts leave and come, and why; not of spaces that go or have just begun."""
    fresh = {
        place
        for place, own in enumerate(found.spaces)
        if own is None
        or {one.code for one in differences if one.space == place and one.comes} == {*own.experts}
    }
    told = []
    for one in differences:
        if one.space in fresh or shapes.spaces[one.space].role == "incoming":
            continue
        kind = EventKind.EXPERT_CAME if one.comes else EventKind.EXPERT_LEFT
        kind = kind if one.for_bytes else EventKind.EXPERT_OUTDONE
        told.append(Happened(kind, expert_number(one.code), found.rung))
    return told


class _Arranging:
    """An allocation, made on a state: what leaves first, then what changes its shape, then what comes."""

    def __init__(self, state: State, shapes: Shapes, odds: Sequence[float]) -> None:
        self.state, self.shapes, self.odds = state, shapes, list(odds)
        self.told: list[Happened] = []
        self.empty = state.spaces == 1 and not state.experts(0)
        self.resized = False

    def make(self, found: Allocation) -> list[Happened]:
        """Change the state; return what there is to tell."""
        kept = []
        for place in reversed(range(len(found.spaces))):
            own = found.spaces[place]
            if own is None:
                self.told.append(Happened(EventKind.SPACE_DROPPED, self.shapes.spaces[place].features))
                self.state.forget(place)
            else:
                kept.append((own, found.maps[place], self.shapes.spaces[place]))
        kept.reverse()
        for place, (_, psi, shape) in enumerate(kept):
            self._map(place, psi, shape)
        for place, (own, _, _) in enumerate(kept):
            self._shrink(place, own)
        for place, (own, _, shape) in enumerate(kept):
            self._grow(place, own, shape)
        if self.resized and not self.empty:
            self.told.append(Happened(EventKind.RESIZED, found.size, found.rung))
        if self.empty:
            priors = self.state.standings()[:, 3]
            self.state.set_weights([float(prior) for prior in priors / priors.sum()])
        return self.told

    def _map(self, place: int, wanted: MapPlan | None, shape: SpaceShape) -> None:
        state, psi = self.state, self.state.map(place)
        if wanted is None:
            if psi is not None:
                state.drop_map(place)
            if psi is not None or (shape.role == "current" and state.incoming):
                self.told.append(Happened(EventKind.MAP_DROPPED, shape.features))
            return
        if psi is None:
            state.begin_map(place)
        elif psi[6] and not wanted.statistics:
            state.settle(place)
            self.told.append(Happened(EventKind.MAP_SETTLED, shape.features))
        state.keep_map_as(place, wanted.form)

    def _shrink(self, place: int, own: SpacePlan) -> None:
        """Let experts go, and give those that stay fewer bytes."""
        state = self.state
        if not own.related and state.space(place)[5]:
            state.drop_moments(place)
        wanted = {code.who: code for code in own.experts}
        there = [code_of(code) for code, *_ in state.experts(place)]
        for i in reversed(range(len(there))):
            code = there[i]
            if code.who not in wanted:
                state.remove(place, i)
        there = [code_of(code) for code, *_ in state.experts(place)]
        for i, code in enumerate(there):
            if wanted[code.who] != code:
                moved = state.reshape(place, i, wanted[code.who])
                self.resized = True
                if moved > 0.0:
                    self.told.append(Happened(EventKind.MOVED, wanted[code.who].size, moved))

    def _grow(self, place: int, own: SpacePlan, shape: SpaceShape) -> None:
        """Let experts come."""
        state = self.state
        if own.related and not state.space(place)[5]:
            state.keep_moments(place)
        there = [code_of(code) for code, *_ in state.experts(place)]
        incoming = shape.role == "incoming" or (shape.role == "current" and not there and state.spaces > 1)
        learned = max((labels for _, _, labels, _ in state.experts(place)), default=0)
        total = sum(code.prior for code in own.experts)
        for code in own.experts:
            if code.who in {one.who for one in there}:
                continue
            scale = INCOMING_PRIOR if shape.role == "incoming" else 1.0
            like = next((i for i, one in enumerate(there) if _is_like(one, code)), None)
            weight = code.prior / total
            if incoming:
                weight *= INCOMING_WEIGHT
            elif like is None and learned >= ENOUGH_LABELS:
                weight = NEWCOMER_WEIGHT
            if like is not None and (code.view is not View.EXPECTED or code.rate) and not self.empty:
                part = code.prior / (code.prior + there[like].prior)
                state.fork(place, like, code, scale * code.prior, part)
            else:
                odds = self.odds if (incoming or there) and code.kind is not Kind.LEARNER else []
                state.add(place, code, scale * code.prior, weight, odds)
            there.append(code)


def _is_like(one: Code, code: Code) -> bool:
    """Whether an expert may go on as another: of the same kind, seeing what is missing as expected."""
    return one.who == (code.who[0], View.EXPECTED, 0)
