"""The published algorithm as a strategy: one first-order learner a space, a ridge map, a hedge over risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from sf2el.core import native
from sf2el.events import EventKind, Happened
from sf2el.experts.kinds import Code, Form, Kind, code_of
from sf2el.features.policies import ExactPeriods, FeaturePolicy
from sf2el.inputs.parameters import check_flag, check_range, check_whole, plain_numbers
from sf2el.memory.budget import NoRoomError, least_budget
from sf2el.model.changes import current_space, unsolved_bytes
from sf2el.paper.kernels import KERNELS, Kernel, Sum
from sf2el.paper.learner import build_learner
from sf2el.paper.rows import FORMS, least_bytes, plan
from sf2el.paper.settings import LEAST_BUFFER, LearnerSettings, check_buffer_size

if TYPE_CHECKING:
    from sf2el.core._native import State

STANDING_BYTES, SLACK_BYTES = 48, 64
"""What is kept of a learner beside its numbers; what a hedge that begins may take more."""

PLACES = {form: Form(place) for place, form in enumerate(FORMS)}


@dataclass(frozen=True, kw_only=True)
class PaperStrategy:
    """The paper's learners, map and hedge. Without a buffer size the budget decides on rows."""

    settings: LearnerSettings
    buffer_size: int | None
    scaled: bool = False
    restart: bool = True
    map_ridge: float = 1e-3
    map_intercept: bool = False
    train_in_overlap: bool = False
    eta: float | None = None
    seed: int = 0
    policy: FeaturePolicy = field(default_factory=ExactPeriods)

    def __post_init__(self) -> None:
        plain_numbers(self)
        if self.buffer_size is not None:
            check_buffer_size(self.buffer_size)
        for name in ("scaled", "restart", "map_intercept", "train_in_overlap"):
            check_flag(name, getattr(self, name))
        check_range("map_ridge", self.map_ridge, least=0.0)
        if self.eta is not None:
            check_range("eta", self.eta, above=0.0)
        check_whole("seed", self.seed, 0, (1 << 64) - 1)

    @classmethod
    def from_parameters(cls, given: Mapping[str, Any]) -> PaperStrategy:
        """Return the strategy of parameters by name, the learner's among them; other names are passed over."""
        settings = LearnerSettings(**{one.name: given[one.name] for one in fields(LearnerSettings)})
        own = {one.name: given[one.name] for one in fields(cls) if one.name not in ("settings", "policy")}
        return cls(settings=settings, **own)

    def size(self) -> str:
        """Return the buffer's size."""
        return f"buffer_size={self.buffer_size}"

    def new_state(self) -> State:
        """Return a state without any space."""
        state: State = native().State(
            "classes", scaled=self.scaled, related=False, precise=True, seed=self.seed
        )
        learner = build_learner(self.settings, 1, LEAST_BUFFER, self.seed)
        eta = 0.0 if self.eta is None else float(self.eta)
        state.make_paper(
            learner, self.restart, self.train_in_overlap, eta, float(self.map_ridge), self.map_intercept
        )
        state.exact = self.policy.exact
        return state

    def check_least(self, budget: int, own: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model: one feature, two rows."""
        state = self.new_state()
        needed = (
            sum(state.bytes()) + state.settings_bytes() + 200 + SLACK_BYTES + least_bytes(self.settings, [1])
        )
        least = least_budget(needed, own)
        if budget < least:
            raise ValueError(
                f"A budget of {budget} bytes is too small for any model; at least {least} bytes are needed."
            )

    def arrange(self, state: State, available: int | None, odds: Sequence[float]) -> list[Happened]:
        """Give every learner the rows that the bytes allow, in place; drop what they have no room for."""
        told: list[Happened] = []
        self._settle_maps(state)
        beside = True
        while True:
            places = self._taught(state, beside)
            if available is None:
                rows = [self.buffer_size or LEAST_BUFFER] * len(places)
                codes = [Code(Kind.LEARNER, form=Form.FULL, size=size) for size in rows]
                return told + self._apply(state, places, codes)
            fixed = (
                sum(state.bytes()) + state.settings_bytes() + unsolved_bytes(state) - state.waiting_bytes()
            )
            there = [state.experts(place) for place in range(state.spaces)]
            fixed -= sum(size for experts in there for *_, size in experts)
            fixed += (STANDING_BYTES + 16) * (len(places) - sum(map(len, there)))
            dims = [len(state.space(place)[0]) for place in places]
            held = [there[place][0][1] if there[place] else LEAST_BUFFER for place in places]
            room = available - fixed - SLACK_BYTES
            found = plan(self.settings, dims, room, held)
            found = found or plan(self.settings, dims, room)
            if found is not None:
                form, shapes = found
                codes = [Code(Kind.LEARNER, form=PLACES[form], size=shape.rows) for shape in shapes]
                return told + self._apply(state, places, codes)
            gone = self._give_way(state)
            if gone is None and not (beside and state.incoming):
                self._refuse(fixed, dims)
            beside = beside and gone is not None
            told += gone or []

    def _settle_maps(self, state: State) -> None:
        """Begin the map that an overlap fits, and give up the sums of one that is solved."""
        here = current_space(state)
        for place in range(state.spaces):
            psi = state.map(place)
            if place == here and state.incoming and psi is None:
                state.begin_map(place)
            elif place < here and psi is not None and psi[6]:
                state.settle(place)

    def _taught(self, state: State, beside: bool) -> list[int]:
        """Return the spaces that have a learner, the newest first; that beside the current one waits for its turn."""
        here = current_space(state)
        own = [place for place in range(max(0, here - 1), here) if state.map(place) is not None]
        own.append(here)
        if state.incoming and beside:
            own.append(state.spaces - 1)
        return own[::-1]

    def _apply(self, state: State, places: list[int], codes: list[Code]) -> list[Happened]:
        told: list[Happened] = []
        changed = False
        for place, code in zip(places, codes, strict=True):
            experts = state.experts(place)
            if not experts:
                state.add(place, code, 1.0, 0.0, [])
                changed = True
            elif code_of(experts[0][0]) != code:
                moved = state.reshape(place, 0, code)
                changed = True
                if moved > 0.0:
                    told.append(Happened(EventKind.MOVED, code.size, moved))
        for place in reversed(range(current_space(state))):
            if place not in places:
                state.forget(place)
        if changed and self.buffer_size is None:
            sizes = [code.size for code in codes]
            told.insert(0, Happened(EventKind.BUFFERS, sizes[0], sizes[1] if len(sizes) > 1 else 0))
        return told

    def _give_way(self, state: State) -> list[Happened] | None:
        """Drop the first thing that the current space can do without; None: there is nothing left."""
        here = current_space(state)
        if here > 0:
            features = len(state.space(0)[0])
            state.forget(0)
            return [Happened(EventKind.SPACE_DROPPED, features)]
        if state.incoming and state.map(here) is not None:
            state.drop_map(here)
            return [Happened(EventKind.MAP_DROPPED, len(state.space(here)[0]))]
        if state.incoming and state.experts(state.spaces - 1):
            state.remove(state.spaces - 1, 0)
        return None

    def _refuse(self, fixed: int, dims: list[int]) -> None:
        """Raise NoRoomError, naming the least budget."""
        raise NoRoomError(
            f"A learner of {LEAST_BUFFER} rows on {dims[-1]} features",
            fixed + SLACK_BYTES + least_bytes(self.settings, dims[-1:]),
        )

    def fits(self, state: State, budget: int | None) -> bool:
        """Whether a state is one that this strategy has made, and has a budget or a buffer's size."""
        return bool(state.paper) and (budget is None) != (self.buffer_size is None)

    def rung(self, state: State, available: int) -> int | None:
        """Return nothing: the published algorithm has no ladder."""
        return None

    def full_grown(self, state: State) -> bool:
        """Return False: more rows always help."""
        return False

    def content(self) -> dict[str, Any]:
        """Return the parameters as plain values, for a file."""
        content = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in ("settings", "policy")
        }
        settings = {one.name: getattr(self.settings, one.name) for one in fields(LearnerSettings)}
        settings["kernel"] = [[type(term).__name__, vars(term)] for term in self.settings.kernel.terms()]
        return content | {"settings": settings}

    @classmethod
    def of(cls, content: dict[str, Any]) -> PaperStrategy:
        """Return the strategy of plain values; ValueError for anything else."""
        settings = dict(content["settings"])
        kinds = {kernel.__name__: kernel for kernel in KERNELS}
        terms: list[Kernel] = [kinds[name](**parameters) for name, parameters in settings["kernel"]]
        settings["kernel"] = terms[0] if len(terms) == 1 else Sum(tuple(terms))
        return cls(**(content | {"settings": LearnerSettings(**settings)}))
