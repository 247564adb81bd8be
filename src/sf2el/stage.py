"""Who learns now: the learner of the current space, the one of the vanished space, and the hedge of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import _core
from sf2el.budget import learner_bytes, map_bytes, rows_that_fit, scaler_bytes
from sf2el.hedge import Hedge
from sf2el.learner import learner_seed
from sf2el.settings import LEAST_BUFFER, LearnerSettings
from sf2el.spaces import Names

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How learners, maps and hedges of a model are made."""

    settings: LearnerSettings
    buffer_size: int | None  # None: as many rows as the budget allows
    budget: int | None
    scaled: bool
    restart: bool
    map_ridge: float
    map_intercept: bool
    train_in_overlap: bool
    eta: float | None
    seed: int
    backend: str | None

    def rows_for(self, dim: int, available: int | None) -> int:
        """Return the buffer size of a new learner, within the bytes that are left."""
        if self.buffer_size is not None or available is None:
            return self.buffer_size or LEAST_BUFFER
        rows = rows_that_fit(self.settings, dim, available)
        if rows < LEAST_BUFFER:
            least = learner_bytes(self.settings, dim, LEAST_BUFFER) - available + (self.budget or 0)
            raise ValueError(
                f"A learner of {LEAST_BUFFER} rows on {dim} features does not fit the budget of "
                f"{self.budget} bytes; give at least {least}."
            )
        return rows


class Rounds(NamedTuple):
    """What a stage said and suffered in a run of rounds: score and risk, of each expert and combined."""

    scores: Floats
    risks: Floats
    expert_scores: Floats
    expert_risks: Floats
    weights: Floats


class Space:
    """A feature space: its names in order, its scaling, and its learner once it has one."""

    def __init__(self, names: Names, recipe: Recipe) -> None:
        self.names = names
        self.dim = len(names)
        core = _core.backend(recipe.backend)
        self.scaler: Any = core.Scaler(self.dim) if recipe.scaled else None
        self.learner: Any = None
        self.row: Floats = np.empty(self.dim)
        self._scaled: Floats = np.empty(self.dim)

    def start_learner(self, recipe: Recipe, index: int, available: int | None) -> None:
        """Give the ``index``-th space of a stream its learner."""
        rows = recipe.rows_for(self.dim, available)
        core = _core.backend(recipe.backend)
        self.learner = core.Learner(
            recipe.settings, self.dim, rows, learner_seed(recipe.seed, index), "float64"
        )

    def view(self, row: Floats, keep: bool) -> Floats:
        """Return a row as the learner sees it; with ``keep`` it enters the running statistics."""
        if self.scaler is None:
            return row
        self.scaler.scale_into(row, self._scaled, keep)
        return self._scaled

    def view_many(self, rows: Floats) -> Floats:
        """Return rows as the learner sees them, each entering the running statistics."""
        return rows if self.scaler is None else np.asarray(self.scaler.scale_many(rows, True))

    @property
    def nbytes(self) -> int:
        """Bytes of the learner and the statistics."""
        scaler = 0 if self.scaler is None else scaler_bytes(self.dim)
        return scaler + (0 if self.learner is None else int(self.learner.nbytes))


class Recovered:
    """The vanished space: its learner, and the map that recovers its rows from the current ones."""

    def __init__(self, learner: Any, psi: Any, new_dim: int, old_dim: int) -> None:
        self.learner, self.psi = learner, psi
        self.nbytes = map_bytes(new_dim, old_dim) + int(learner.nbytes)
        self._row: Floats = np.empty(old_dim)

    def view(self, row: Floats) -> Floats:
        """Return what the vanished features would have read."""
        self.psi.recover_into(row, self._row)
        return self._row


class Stage:
    """The learners in force in one feature space, from its first row to its last."""

    def __init__(self, names: Names, recipe: Recipe, index: int) -> None:
        self.recipe, self.index = recipe, index
        self.current = Space(names, recipe)
        self.recovered: Recovered | None = None
        self.hedge = Hedge(1, backend=recipe.backend)
        self.upcoming: Space | None = None
        self.psi: Any = None
        self.rows_seen = 0

    @classmethod
    def first(cls, names: Names, recipe: Recipe) -> Stage:
        """Return the stage of a stream's first space; half the budget is kept for the next space."""
        stage = cls(names, recipe, 0)
        half = None if recipe.budget is None else (recipe.budget - stage._between_bytes(len(names))) // 2
        stage.current.start_learner(recipe, 0, half)
        return stage

    # -- one row

    def scores(self, row: Floats, keep: bool = False) -> Floats:
        """Return each expert's score of a row of the current space."""
        view = self.current.view(row, keep)
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
        if self.recovered is None:
            _, risk = self.current.learner.learn(view, y)
            risks = np.array([risk])
        else:
            _, old_risk = self.recovered.learner.learn(self.recovered.view(view), y)
            _, risk = self.current.learner.learn(view, y)
            risks = np.array([old_risk, risk])
        self.hedge.core.update(risks)
        self.rows_seen += 1

    # -- many rows

    def run(self, rows: Floats, y: Floats) -> Rounds:
        """Predict and learn rows of the current space: the loop of ``learn``, bit for bit."""
        views = self.current.view_many(rows)
        return self._run_views(views, y)

    def _run_views(self, views: Floats, y: Floats) -> Rounds:
        runs = []
        if self.recovered is not None:
            runs.append(self.recovered.learner.run(self.recovered.psi.recover(views), y))
        runs.append(self.current.learner.run(views, y))
        expert_scores = np.column_stack([scores for scores, _ in runs])
        expert_risks = np.column_stack([risks for _, risks in runs])
        scores, risks, weights = self.hedge.run(expert_scores, expert_risks)
        self.rows_seen += len(views)
        return Rounds(scores, risks, expert_scores, expert_risks, weights)

    # -- the overlap and the swap

    def open_overlap(self, names: Names) -> None:
        """Begin to learn the map from a space that has appeared beside the current one."""
        upcoming = Space(names, self.recipe)
        if self.recipe.train_in_overlap:
            upcoming.start_learner(self.recipe, self.index + 1, self._left_for(upcoming))
        else:
            self._check_next(upcoming)
        self.upcoming = upcoming
        self.psi = self._new_map(upcoming.dim)

    def run_overlap(self, rows: Floats, new_rows: Floats, y: Floats) -> Rounds:
        """Predict and learn rows that have both spaces, and fit the map on them."""
        assert self.upcoming is not None
        views, new_views = self.current.view_many(rows), self.upcoming.view_many(new_rows)
        self.psi.observe(new_views, views)
        if self.upcoming.learner is not None:
            self.upcoming.learner.run(new_views, y)
        return self._run_views(views, y)

    def swapped(self, names: Names, *, preview: bool = False) -> Stage:
        """Return the stage that follows when the current features vanish.

        ``preview`` leaves this stage usable: it is how a row is predicted before it is learned.
        """
        stage = Stage(names, self.recipe, self.index + 1)
        if self.upcoming is None:  # no row had both spaces: the new learner starts alone
            left = (
                None if self.recipe.budget is None else self.recipe.budget - stage._between_bytes(len(names))
            )
            stage.current.start_learner(self.recipe, stage.index, left)
            return stage
        stage.current = self.upcoming
        if stage.current.learner is None:
            stage.current = Space(names, self.recipe)
            stage.current.scaler = self.upcoming.scaler
            stage.current.start_learner(self.recipe, stage.index, self._left_for(self.upcoming))
        psi = self._new_map(self.upcoming.dim)
        psi.set_state(self.psi.state())
        psi.solve()
        if self.recipe.restart and not preview:
            self.current.learner.restart()
        stage.recovered = Recovered(self.current.learner, psi, self.upcoming.dim, self.current.dim)
        stage.hedge = Hedge(2, eta=self.recipe.eta, backend=self.recipe.backend)
        return stage

    def _new_map(self, new_dim: int) -> Any:
        recipe = self.recipe
        core = _core.backend(recipe.backend)
        return core.RecoveryMap(new_dim, self.current.dim, float(recipe.map_ridge), recipe.map_intercept)

    # -- bytes

    def nbytes(self) -> dict[str, int]:
        """Return the bytes of learners, maps, scalers and weights."""
        spaces = [space for space in (self.current, self.upcoming) if space is not None]
        learners = [space.learner for space in spaces if space.learner is not None]
        maps = 0
        if self.recovered is not None:
            learners.append(self.recovered.learner)
            maps += self.recovered.nbytes - int(self.recovered.learner.nbytes)
        if self.upcoming is not None:
            maps += map_bytes(self.upcoming.dim, self.current.dim)
        return {
            "learners": sum(int(learner.nbytes) for learner in learners),
            "maps": maps,
            "scalers": sum(scaler_bytes(space.dim) for space in spaces if space.scaler is not None),
            "weights": 8 * (2 * self.hedge.experts + 4),
        }

    def _between_bytes(self, dim: int) -> int:
        """Bytes that two spaces of ``dim`` features need besides their learners."""
        return 2 * scaler_bytes(dim) + 2 * map_bytes(dim, dim) + 128

    def _left_for(self, upcoming: Space) -> int | None:
        if self.recipe.budget is None:
            return None
        between = self._between_bytes(max(upcoming.dim, self.current.dim))
        return self.recipe.budget - int(self.current.learner.nbytes) - between

    def _check_next(self, upcoming: Space) -> None:
        self.recipe.rows_for(upcoming.dim, self._left_for(upcoming))
