"""Who learns now: the learner of the current space, the one of the vanished space, and the hedge of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import _core, events
from sf2el.budget import hedge_bytes, map_bytes, names_bytes, scaler_bytes
from sf2el.hedge import Hedge
from sf2el.learner import learner_seed
from sf2el.plan import FORMS, Shape, events_kept, least_bytes, plan
from sf2el.resize import resize
from sf2el.settings import (
    LEAST_BUFFER,
    LearnerSettings,
    check_buffer_size,
    check_flag,
    check_range,
    check_whole,
)
from sf2el.spaces import Names

Floats = npt.NDArray[np.float64]
Told = list[tuple[int, float, float]]
"""Events: kind and two numbers each."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How learners, maps and hedges of a model are made. Without a buffer size the budget decides on rows."""

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

    def shape(self, rows: int) -> Shape:
        """Return the shape of a learner with matrices and float64."""
        return Shape(self.settings, "float64", rows)


class Rounds(NamedTuple):
    """What a stage said and suffered in a run of rounds: score and risk, of each expert and combined."""

    scores: Floats
    risks: Floats
    expert_scores: Floats
    expert_risks: Floats
    weights: Floats


class Seat:
    """A learner and the shape it is kept in."""

    def __init__(self, dim: int, shape: Shape, recipe: Recipe, index: int) -> None:
        self.dim, self.shape = dim, shape
        seed = learner_seed(recipe.seed, index)
        core = _core.backend(recipe.backend)
        try:
            self.core: Any = core.Learner(shape.settings, dim, shape.rows, seed, shape.precision)
        except MemoryError:
            raise ValueError("This machine has not so much memory; give a smaller budget.") from None

    def refit(self, shape: Shape, backend: str | None) -> float:
        """Move the learner to another shape; return how far its function moved."""
        if shape == self.shape:
            return 0.0
        self.core, error = resize(
            self.core, shape.settings, self.dim, shape.rows, precision=shape.precision, backend=backend
        )
        self.shape = shape
        return error


class Space:
    """A feature space: its names in order, its scaling, and its learner once it has one."""

    def __init__(self, names: Names, recipe: Recipe) -> None:
        self.names, self.dim = names, len(names)
        self.scaler: Any = _core.backend(recipe.backend).Scaler(self.dim) if recipe.scaled else None
        self.seat: Seat | None = None
        self.row: Floats = np.empty(self.dim)
        self._scaled: Floats = np.empty(self.dim)
        self.name_nbytes = names_bytes(names)
        self.nbytes = self.name_nbytes + (scaler_bytes(self.dim) if recipe.scaled else 0)

    @property
    def learner(self) -> Any:
        """The compiled learner."""
        assert self.seat is not None
        return self.seat.core

    def view(self, row: Floats, keep: bool) -> Floats:
        """Return a row as the learner sees it; with ``keep`` it enters the running statistics."""
        if self.scaler is None:
            return row
        self.scaler.scale_into(row, self._scaled, keep)
        return self._scaled

    def view_many(self, rows: Floats) -> Floats:
        """Return rows as the learner sees them, each entering the running statistics."""
        return rows if self.scaler is None else np.asarray(self.scaler.scale_many(rows, True))


class Recovered:
    """The vanished space: its learner, and the map that recovers its rows from the current ones."""

    def __init__(self, seat: Seat, psi: Any, new_dim: int) -> None:
        self.seat, self.psi = seat, psi
        self.map_nbytes = map_bytes(new_dim, seat.dim)
        self._row: Floats = np.empty(seat.dim)

    @property
    def learner(self) -> Any:
        """The compiled learner."""
        return self.seat.core

    def view(self, row: Floats) -> Floats:
        """Return what the vanished features would have read."""
        self.psi.recover_into(row, self._row)
        return self._row


def check_fits(recipe: Recipe, current: Names, upcoming: Names | None, budget: int, reserved: int) -> None:
    """Raise ValueError, naming the least budget, unless a learner of two rows fits beside these spaces."""
    spaces = [current] if upcoming is None else [current, upcoming]
    least = reserved + hedge_bytes(1) + least_bytes(recipe.settings, [len(current)])
    for names in spaces:
        least += names_bytes(names) + (scaler_bytes(len(names)) if recipe.scaled else 0)
    if budget < least:
        least += events.EVENT_BYTES * (events_kept(least) - events_kept(budget))
        raise ValueError(
            f"A learner of {LEAST_BUFFER} rows on {len(current)} features does not fit the budget of "
            f"{budget} bytes; give at least {least}."
        )


class Stage:
    """The learners in force in one feature space, from its first row to its last."""

    def __init__(self, space: Space, recipe: Recipe, index: int) -> None:
        self.recipe, self.index = recipe, index
        self.current = space
        self.recovered: Recovered | None = None
        self.hedge = Hedge(1, backend=recipe.backend)
        self.upcoming: Space | None = None
        self.psi: Any = None  # being fitted on the overlap; None where the budget has no room for it
        if space.seat is None:
            # Two rows, until the budget says more.
            space.seat = Seat(space.dim, recipe.shape(recipe.buffer_size or LEAST_BUFFER), recipe, index)

    # -- one row

    def scores(self, row: Floats) -> Floats:
        """Return each expert's score of a row of the current space."""
        view = self.current.view(row, False)
        own = self.current.learner.predict(view)
        if self.recovered is None:
            return np.array([own])
        return np.array([self.recovered.learner.predict(self.recovered.view(view)), own])

    def score(self, row: Floats) -> float:
        """Return the combined score of a row of the current space."""
        if self.recovered is None:
            return float(self.current.learner.predict(self.current.view(row, False)))
        return float(self.hedge.core.combine(self.scores(row)))

    def learn(self, row: Floats, y: float) -> None:
        """Learn one row of the current space."""
        view = self.current.view(row, True)
        risks = []
        if self.recovered is not None:
            risks.append(self.recovered.learner.learn(self.recovered.view(view), y)[1])
        risks.append(self.current.learner.learn(view, y)[1])
        self.hedge.core.update(np.array(risks))

    # -- many rows

    def run(self, rows: Floats, y: Floats) -> Rounds:
        """Predict and learn rows of the current space: the loop of ``learn``, bit for bit."""
        return self._run_views(self.current.view_many(rows), y)

    def _run_views(self, views: Floats, y: Floats) -> Rounds:
        runs = []
        if self.recovered is not None:
            runs.append(self.recovered.learner.run(self.recovered.psi.recover(views), y))
        runs.append(self.current.learner.run(views, y))
        expert_scores = np.column_stack([scores for scores, _ in runs])
        expert_risks = np.column_stack([risks for _, risks in runs])
        scores, risks, weights = self.hedge.run(expert_scores, expert_risks)
        return Rounds(scores, risks, expert_scores, expert_risks, weights)

    # -- the overlap and the swap

    def open_overlap(self, names: Names, budget: int | None, reserved: int) -> Told:
        """Begin to learn the map from a space that has appeared beside the current one."""
        self.upcoming = Space(names, self.recipe)
        if self.recipe.train_in_overlap and self.recipe.buffer_size is not None:
            shape = self.recipe.shape(self.recipe.buffer_size)
            self.upcoming.seat = Seat(self.upcoming.dim, shape, self.recipe, self.index + 1)
        told: Told = []
        if budget is None or map_bytes(self.upcoming.dim, self.current.dim) <= budget - reserved:
            self.psi = self._new_map(self.upcoming.dim)
        else:
            told.append((events.DROPPED_MAP, 0.0, 0.0))
        try:
            return told + self.fit(budget, reserved)
        except ValueError:
            self.upcoming = self.psi = None
            raise

    def run_overlap(self, rows: Floats, new_rows: Floats, y: Floats) -> Rounds:
        """Predict and learn rows that have both spaces, and fit the map on them."""
        assert self.upcoming is not None
        views, new_views = self.current.view_many(rows), self.upcoming.view_many(new_rows)
        if self.psi is not None:
            self.psi.observe(new_views, views)
        if self.upcoming.seat is not None:
            self.upcoming.learner.run(new_views, y)
        return self._run_views(views, y)

    def swapped(self, names: Names, *, preview: bool = False) -> Stage:
        """Return the stage that follows when the current features vanish, its buffers not yet fitted.

        ``preview`` leaves this stage usable: it is how a row is predicted before it is learned.
        """
        space = Space(names, self.recipe)
        if self.upcoming is not None:
            space.scaler = self.upcoming.scaler
            space.seat = self.upcoming.seat
        stage = Stage(space, self.recipe, self.index + 1)
        if self.psi is None:
            return stage
        psi = self._new_map(space.dim)
        psi.set_state(self.psi.state())
        psi.solve()
        assert self.current.seat is not None
        stage.recovered = Recovered(self.current.seat, psi, space.dim)
        stage.hedge = Hedge(2, eta=self.recipe.eta, backend=self.recipe.backend)
        if self.recipe.restart and not preview:
            stage.recovered.learner.restart()
        return stage

    def _new_map(self, new_dim: int) -> Any:
        recipe = self.recipe
        core = _core.backend(recipe.backend)
        return core.RecoveryMap(new_dim, self.current.dim, float(recipe.map_ridge), recipe.map_intercept)

    # -- bytes

    def fit(self, budget: int | None, reserved: int, *, growing: bool = False) -> Told:
        """Give every learner the shape that the budget allows; drop what it has no room for.

        ``reserved`` bytes of the budget are not the stage's. A ``growing`` budget costs no buffer a row. A
        budget of None leaves the buffers as they are. Raises ValueError, with nothing changed, if not even a
        learner of two rows fits.
        """
        if budget is None:
            return []
        told: Told = []
        found = None
        for recovered, psi in self._choices():
            seats = [self.current.seat] if recovered is None else [recovered.seat, self.current.seat]
            dims = [seat.dim for seat in seats if seat is not None]
            held = [len(seat.core.state()["beta"]) for seat in seats if seat is not None] if growing else None
            found = plan(
                self.recipe.settings, dims, budget - reserved - self._fixed_bytes(recovered, psi), held
            )
            if found is not None:
                break
        if found is None:
            names = self.upcoming.names if self.upcoming else None
            check_fits(self.recipe, self.current.names, names, budget, reserved)
        assert found is not None
        if recovered is not self.recovered:
            told.append((events.DROPPED_RECOVERED, 0.0, 0.0))
            self.recovered, self.hedge = None, Hedge(1, backend=self.recipe.backend)
        if psi is not self.psi:
            told.append((events.DROPPED_MAP, 0.0, 0.0))
            self.psi = None
        return told + self._apply(*found)

    def _choices(self) -> list[tuple[Recovered | None, Any]]:
        """Return what to keep beside the current learner, the most first."""
        choices = [(self.recovered, self.psi), (None, self.psi), (None, None)]
        return [choice for i, choice in enumerate(choices) if choice not in choices[:i]]

    def _apply(self, form: Any, shapes: list[Shape]) -> Told:
        seats = [self.current.seat] if self.recovered is None else [self.recovered.seat, self.current.seat]
        told: Told = []
        changed = False
        for seat, shape in zip(seats, shapes, strict=True):
            assert seat is not None
            changed = changed or seat.shape != shape
            error = seat.refit(shape, self.recipe.backend)
            if error > 0.0:
                told.append((events.MOVED, shape.rows, error))
        if changed:
            rows = (shapes[-1].rows, shapes[0].rows if self.recovered else 0)
            told.insert(0, (events.BUFFERS + FORMS.index(form), *rows))
        return told

    def _fixed_bytes(self, recovered: Recovered | None, psi: Any) -> int:
        """Bytes of everything but the learners."""
        size = self.current.nbytes + hedge_bytes(1 if recovered is None else 2)
        size += 0 if recovered is None else recovered.map_nbytes
        if self.upcoming is not None:
            size += self.upcoming.nbytes
            size += 0 if psi is None else map_bytes(self.upcoming.dim, self.current.dim)
        return size

    def nbytes(self) -> dict[str, int]:
        """Return the bytes of what the stage keeps, by part."""
        seats = [self.current.seat, self.upcoming.seat if self.upcoming else None]
        seats.append(self.recovered.seat if self.recovered else None)
        spaces = [space for space in (self.current, self.upcoming) if space is not None]
        maps = 0 if self.recovered is None else self.recovered.map_nbytes
        if self.upcoming is not None and self.psi is not None:
            maps += map_bytes(self.upcoming.dim, self.current.dim)
        return {
            "learners": sum(int(seat.core.nbytes) for seat in seats if seat is not None),
            "maps": maps,
            "scalers": sum(scaler_bytes(space.dim) for space in spaces if space.scaler is not None),
            "weights": hedge_bytes(self.hedge.experts),
            "names": sum(space.name_nbytes for space in spaces),
        }

    def scratch_nbytes(self) -> int:
        """Return the bytes of working scratch that a thread needs for these learners."""
        seats = [self.current.seat, self.recovered.seat if self.recovered else None]
        return max(int(seat.core.scratch_nbytes) for seat in seats if seat is not None)
