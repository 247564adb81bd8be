"""The published algorithm as a recipe: one first-order learner a space, a ridge map, a hedge over risks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sf2el import events
from sf2el.events import Happened
from sf2el.experts.learner_seat import LearnerSeat
from sf2el.maps.ridge_map import RidgeMap
from sf2el.memory.budget import NoRoomError, hedge_bytes, names_bytes, scaler_bytes
from sf2el.memory.plan import (
    FORMS,
    Form,
    Shape,
    budget_overhead,
    check_least,
    least_bytes,
    plan,
    smallest_budget,
)
from sf2el.mixing.hedge import Hedge
from sf2el.model.space import Space
from sf2el.model.strategy import Recipe, Told
from sf2el.paper.learner import learner_seed
from sf2el.paper.settings import (
    LEAST_BUFFER,
    LearnerSettings,
    check_buffer_size,
    check_flag,
    check_range,
    check_whole,
)

if TYPE_CHECKING:
    from sf2el.model.stage import Stage

Floats = npt.NDArray[np.float64]


class HedgeWeights:
    """Exponential weights over the learners' risks; their scores are averaged (Eq. 9 of the paper)."""

    share = 0.0
    """Weight that is dealt out anew each round: none."""

    def __init__(self, experts: int, eta: float | None, backend: str | None) -> None:
        self._made = (experts, eta, backend)
        self.hedge = Hedge(experts, eta=eta, backend=backend)
        self.nbytes = hedge_bytes(experts)
        self.part = self.hedge.core
        self._combine = self.hedge.core.combine

    def mix(self, scores: Floats) -> float:
        """Return the combined score."""
        return float(scores[0]) if len(scores) == 1 else float(self._combine(scores))

    def update(self, scores: Floats, risks: Floats, y: float, weight: float) -> None:
        """Follow the learners of little risk."""
        self.hedge.core.update(risks)

    def run(self, scores: Floats, risks: Floats, y: Floats, weighed: Floats | None) -> tuple[Floats, Floats]:
        """Return the combined score and the weights before each round."""
        mixed, _, weights = self.hedge.run(scores, risks)
        return mixed, weights

    @property
    def weights(self) -> Floats:
        """Weight of each learner in the coming round."""
        return self.hedge.weights

    def average_risks(self) -> Floats:
        """Return the average risk of each learner so far."""
        return self.hedge.average_risks()

    def clone(self) -> HedgeWeights:
        """Return weights that go their own way from here."""
        twin = HedgeWeights(*self._made)
        twin.set_state(self.state())
        return twin

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        return np.asarray(self.hedge.core.state())

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        self.hedge.core.set_state(state)


@dataclass(frozen=True, kw_only=True)
class PaperRecipe(Recipe):
    """The paper's learners, map and hedge. Without a buffer size the budget decides on rows."""

    raw_maps = False

    settings: LearnerSettings
    buffer_size: int | None
    scaled: bool
    restart: bool
    map_ridge: float
    map_intercept: bool
    train_in_overlap: bool
    eta: float | None
    seed: int
    backend: str | None
    related: bool = False
    precision: str = "float64"

    def check(self) -> None:
        """Raise ValueError unless every parameter is in its range."""
        if self.buffer_size is not None:
            check_buffer_size(self.buffer_size)
        for name in ("scaled", "restart", "map_intercept", "train_in_overlap"):
            check_flag(name, getattr(self, name))
        check_range("map_ridge", self.map_ridge, least=0.0)
        if self.eta is not None:
            check_range("eta", self.eta, above=0.0)
        check_whole("seed", self.seed, 0, (1 << 64) - 1)

    def check_least(self, budget: int, labels: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model: one feature, two rows, its labels."""
        check_least(self.settings, budget, labels)

    def furnish(self, stage: Stage, space: Space, index: int) -> None:
        """Give a space its learner; of two rows, where the budget decides."""
        shape = Shape(self.settings, "float64", self.buffer_size or LEAST_BUFFER)
        space.seat([LearnerSeat(space.dim, shape, learner_seed(self.seed, index), self.backend)])

    def new_weights(self, stage: Stage) -> HedgeWeights:
        """Return the hedge of the learners that play."""
        both = stage.recovers
        return HedgeWeights(2 if both else 1, self.eta if both else None, self.backend)

    def learner_settings(self, space: Space) -> LearnerSettings:
        """Return the learner's settings."""
        return self.settings

    def new_map(self, new: Space, old: Space, new_dim: int | None = None) -> RidgeMap:
        """Return the paper's map."""
        return RidgeMap(new_dim or new.dim, old.dim, float(self.map_ridge), self.map_intercept, self.backend)

    def opened(self, stage: Stage) -> Told:
        """A space has opened: with ``train_in_overlap`` its learner begins."""
        if self.train_in_overlap and stage.upcoming is not None and not stage.upcoming.seats:
            self.furnish(stage, stage.upcoming, stage.index + 1)
        return []

    def swapped(self, stage: Stage) -> None:
        """The old learner goes on with recovered features, its step size begun anew if so wished."""
        stage.weights = self.new_weights(stage)
        if self.restart and stage.past is not None and stage.recovers:
            stage.past.seats[0].core.restart()

    def reverted(self, stage: Stage) -> None:
        """The old learner is alone again."""
        stage.weights = self.new_weights(stage)

    def grow(self, stage: Stage, outputs: int) -> None:
        """The published algorithm is binary."""
        raise ValueError("The published algorithm is binary; use SF2EL(budget=...) for more labels.")

    def size(self) -> str:
        """Return the buffer's size."""
        return f"buffer_size={self.buffer_size}"

    # -- bytes

    def fit(self, stage: Stage, budget: int, reserved: int, *, growing: bool = False) -> Told:
        """Give every learner the shape that the budget allows; drop what it has no room for."""
        told: Told = []
        while True:
            spaces = [space for space in reversed(stage.spaces()) if space.seats]
            seats = [space.seats[0] for space in spaces]
            held = [seat.held for seat in seats] if growing else None  # type: ignore[attr-defined]
            dims = [space.dim for space in spaces]
            found = plan(self.settings, dims, budget - reserved - stage.fixed_nbytes(), held)
            if found is not None:
                return told + self._apply(stage, *found)
            told += self._give_way(stage, budget, reserved)

    def _give_way(self, stage: Stage, budget: int, reserved: int) -> Told:
        """Drop the first thing that is not needed for the current space."""
        if stage.past is not None:
            stage.past = stage.psi = None  # where it has come back, it stays as the opened space
            stage.weights = self.new_weights(stage)
            stage.arrange()
            return [Happened(events.DROPPED_RECOVERED)]
        if stage.overlap is not None:
            stage.overlap = None
            return [Happened(events.DROPPED_MAP)]
        if stage.upcoming is not None and stage.upcoming.seats:
            stage.upcoming.seat([])
            return [Happened(events.DROPPED_MAP)]
        self._check_fits(stage, budget, reserved)
        raise AssertionError("a budget without room was let through")

    def _check_fits(self, stage: Stage, budget: int, reserved: int) -> None:
        """Raise NoRoomError, naming the least budget, unless a learner of two rows fits beside the spaces."""
        least = hedge_bytes(1) + least_bytes(self.settings, [stage.current.dim])
        for space in stage.spaces():
            least += names_bytes(space.names) + (scaler_bytes(space.dim) if self.scaled else 0)
        if budget < reserved + least:
            least = smallest_budget(least + reserved - budget_overhead(budget))
            raise NoRoomError(
                f"A learner of {LEAST_BUFFER} rows on {stage.current.dim} features does not fit the budget "
                f"of {budget} bytes; give at least {least}."
            )

    def _apply(self, stage: Stage, form: Form, shapes: list[Shape]) -> Told:
        told: Told = []
        changed = False
        spaces = [space for space in reversed(stage.spaces()) if space.seats]
        for space, shape in zip(spaces, shapes, strict=True):
            seat = space.seats[0]
            assert isinstance(seat, LearnerSeat)
            changed = changed or seat.shape != shape
            error = seat.refit(shape)
            space.seat([seat])
            if error > 0.0:
                told.append(Happened(events.MOVED, shape.rows, error))
        if changed:
            rows = (shapes[-1].rows, shapes[0].rows if len(shapes) > 1 else 0)
            told.insert(0, Happened(events.BUFFERS + FORMS.index(form), *rows))
        return told
