"""Who learns now: the experts of the current space, those of the space before it, and who is followed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el import events
from sf2el.inputs.rows import Names
from sf2el.model.space import Newcomers, Space
from sf2el.model.strategy import Recipe, Told

Floats = npt.NDArray[np.float64]
Observed = Mapping[Hashable, float]

NEVER = 1 << 60
NOTHING: Floats = np.empty(0)


class Rounds(NamedTuple):
    """What a stage said in a run of rounds, and the weights of the experts in each, all before learning."""

    outputs: Floats
    weights: Floats


class Stage:
    """The feature spaces in force and their experts.

    ``current`` predicts. ``past`` is the space before it: with a map ``psi`` its experts play too, on what
    its features would have read; without one it is only remembered. ``upcoming`` has appeared beside the
    current space, and ``overlap`` is the map from it that is being fitted.
    """

    def __init__(self, recipe: Recipe, current: Space, index: int = 0, outputs: int = 1) -> None:
        self.recipe, self.index, self.outputs = recipe, index, outputs
        self.current = current
        self.past: Space | None = None
        self.psi: Any = None
        self.upcoming: Space | None = None
        self.overlap: Any = None
        self.weights: Any = None
        self.began = 0  # the row of the last swap
        self.counts: list[int] = []  # of each label so far, told by the model when a space opens
        self.told: list[int] = []  # the same before each row that has both spaces; none where labels weigh
        if not current.seats:
            recipe.furnish(self, current, index)
            self.weights = recipe.new_weights(self)
            self.arrange()

    def arrange(self) -> None:
        """Lay out the arrays for the experts that play, those of the past space first."""
        past = len(self.past.seats) if self.past is not None and self.psi is not None else 0
        total = past + len(self.current.seats)
        self._scores: Floats = np.zeros(total * self.outputs)
        self._risks: Floats = np.zeros(total)
        # Where no past expert plays nothing is split, and thousands of models share one empty array.
        self._past_scores: Floats = NOTHING
        self._past_risks: Floats = NOTHING
        self._own_scores, self._own_risks = self._scores, self._risks
        if past:
            split = past * self.outputs
            self._past_scores, self._own_scores = self._scores[:split], self._scores[split:]
            self._past_risks, self._own_risks = self._risks[:past], self._risks[past:]
        self._past_row: Floats = NOTHING if self.past is None else np.empty(self.past.dim)
        self._trial: Any = None
        self._shared: list[tuple[int, int]] = []
        if past and self.past is not None:
            place = {name: i for i, name in enumerate(self.current.names)}
            self._shared = [(i, place[name]) for i, name in enumerate(self.past.names) if name in place]
        self.round = self._new_round()

    def _new_round(self) -> Any:
        """Return what predicts and learns a plain dict row in one call; None where a row takes more."""
        mixer = self.weights.part
        if self.outputs > 1 or self._shared or mixer is None:
            return None
        own, past = self.current, self.past if self.recovers else None
        return _core.backend(self.recipe.backend).Round(
            own.names,
            own.scaler,
            own.moments,
            own.bank,
            None if past is None else self.psi.part,
            None if past is None else past.bank,
            mixer,
            self.recipe.raw_maps,
        )

    @property
    def recovers(self) -> bool:
        """Whether the experts of the space before play."""
        return self.past is not None and self.psi is not None

    @property
    def doubt(self) -> float:
        """How little of the past features can be told, from 0 to 1: nothing of those that are still read."""
        if self.past is None or self.psi is None:
            return 0.0
        gone = len(set(self.past.names) - set(self.current.names))
        return float(self.psi.unexplained) * gone / len(self.past.names)

    def roles(self) -> list[str]:
        """Return whose each expert is, ``recovered`` or ``current``, in the order of the weights."""
        past = len(self._past_risks)
        return ["recovered"] * past + ["current"] * len(self._own_risks)

    def names(self) -> list[str]:
        """Return what each expert is called, in the order of the weights."""
        seats = (self.past.seats if self.past is not None and self.recovers else []) + self.current.seats
        return [
            role if seat.name == "" else f"{role} {seat.name}"
            for role, seat in zip(self.roles(), seats, strict=True)
        ]

    # -- a row that has all the current features and no others

    def predict(self, row: Floats) -> Any:
        """Return what is predicted for a complete row of the current space."""
        view = self.current.view(row, False)
        self.current.bank.predict_into(view, self._own_scores)
        if self._past_risks.size:
            self._past_bank().predict_into(self._recovered(view, row, False), self._past_scores)
        return self.weights.mix(self._scores)

    def learn(self, row: Floats, y: float, weight: float) -> None:
        """Learn a complete row of the current space."""
        view = self.current.view(row, True)
        if self._past_risks.size:
            recovered = self._recovered(view, row, True)
            self._past_bank().learn_into(recovered, y, weight, False, self._past_scores, self._past_risks)
        self.current.bank.learn_into(view, y, weight, False, self._own_scores, self._own_risks)
        self.weights.update(self._scores, self._risks, y, weight)

    def run(self, rows: Floats, y: Floats, weights: Floats | None) -> Rounds:
        """Predict and learn complete rows of the current space: the loop, bit for bit."""
        return self._run(self.current.view_many(rows), rows, y, weights)

    def _run(self, views: Floats, rows: Floats, y: Floats, weights: Floats | None) -> Rounds:
        own = self.current.bank.run(views, y, weights)
        if not self._past_risks.size:
            return Rounds(*self.weights.run(*own, y, weights))
        past = self._past_bank().run(self._recovered_many(views, rows), y, weights)
        scores, risks = (np.ascontiguousarray(np.hstack(pair)) for pair in zip(past, own, strict=True))
        return Rounds(*self.weights.run(scores, risks, y, weights))

    def _past_bank(self) -> Any:
        assert self.past is not None
        return self.past.bank

    def _recovered(self, view: Floats, row: Floats, keep: bool) -> Floats:
        """Return what the past features would have read; those that are still there, as they read."""
        source = row if self.recipe.raw_maps else view
        self.psi.recover_into(source[: self.psi.new_dim], self._past_row)
        if self._shared:
            assert self.past is not None
            values = np.full(self.past.dim, np.nan)
            for i, j in self._shared:
                values[i] = row[j]
            self._use_observed(values, keep)
        return self._past_row

    def _use_observed(self, values: Floats, keep: bool) -> None:
        assert self.past is not None
        seen = ~np.isnan(values)
        if self.past.scaler is None:
            self._past_row[seen] = values[seen]
        else:
            scaled = np.empty(self.past.dim)
            self.past.scaler.scale_into(values, scaled, keep)
            self._past_row[seen] = scaled[seen]

    def _recovered_many(self, views: Floats, rows: Floats) -> Floats:
        if self._shared:
            pairs = zip(views, rows, strict=True)
            return np.array([self._recovered(view, row, True).copy() for view, row in pairs])
        sources = rows if self.recipe.raw_maps else views
        return np.asarray(self.psi.recover(np.ascontiguousarray(sources[:, : self.psi.new_dim])))

    # -- a row that has both spaces, complete

    def run_overlap(self, rows: Floats, new_rows: Floats, y: Floats, weights: Floats | None) -> Rounds:
        """Predict and learn rows that have the current and the opened space, and fit the map on them."""
        assert self.upcoming is not None and self.upcoming is not self.past
        new_views, views = self.upcoming.view_many(new_rows), self.current.view_many(rows)
        self._trial = None
        if self.overlap is not None:
            self.overlap.observe(new_rows if self.recipe.raw_maps else new_views, views)
        rounds = self._run(views, rows, y, weights)
        if self.upcoming.bank is not None:
            told = self.recipe.taught(self.upcoming, rounds.outputs, y, weights, self.told)
            self.upcoming.bank.run(new_views, *told)
        return rounds

    # -- any other row

    def predict_row(self, observed: Observed) -> Any:
        """Return what is predicted for a row with any features."""
        self._views(observed, keep=False)
        if self._past_view is not None and self.recovers:
            self._past_bank().predict_into(self._past_view, self._past_scores)
        self.current.bank.predict_into(self._view, self._own_scores)
        return self.weights.mix(self._scores)

    def learn_row(
        self, observed: Observed, y: float, weight: float, said: Floats, dying: Set[Hashable]
    ) -> None:
        """Learn a row with any features: gaps have their expected value, in every space that the row has.

        ``said`` is what was predicted for it, a row of one. What stands in for features that are ``dying``
        would tell the map that they have nothing to do with the new ones.
        """
        known = self._views(observed, keep=True)
        self._trial = None
        if self.upcoming is not None and self._new_seen:
            if self.overlap is not None and self._fits_map and dying.isdisjoint(self.current.names):
                self.overlap.observe(self._new_source[None, :], self._shown_to_map[None, :])
            if self.upcoming.bank is not None and not (self.upcoming is self.past and self.recovers):
                self._aside(self.upcoming, self._new_view, *self._taught(said, y, weight), False)
        if known:
            self._step(y, weight, False)

    def replay(self, observed: Observed, y: float, weight: float) -> None:
        """Show the space that has just opened a row that the current space has learned already."""
        assert self.upcoming is not None
        said = np.asarray(self.predict_row(observed))[None]
        if not self._new_seen:
            return
        self._trial = None
        values = self.upcoming.read(observed)
        self._new_view = self.upcoming.view_gaps(values, True)
        if self.overlap is not None and self._fits_map:
            source = self._source(self.upcoming, values, self._new_view)
            self.overlap.observe(source[None, :], self._shown_to_map[None, :])
        if self.upcoming.bank is not None and self.upcoming is not self.past:
            self._aside(self.upcoming, self._new_view, *self._taught(said, y, weight), False)

    def _taught(self, said: Floats, y: float, weight: float) -> tuple[float, float]:
        """Return the label and the weight of a row for the opened space, which the current one may teach."""
        assert self.upcoming is not None
        if self.upcoming is self.past or not self._fits_map:
            return y, weight
        row = np.array([y]), np.array([weight])
        labels, weights = self.recipe.taught(self.upcoming, said, *row, self.told)
        return float(labels[0]), float(weights[0])

    def knows(self, observed: Observed) -> bool:
        """Whether a row has a feature of a space in force."""
        return any(name in observed for space in self.spaces() for name in space.names)

    def learn_late(self, observed: Observed, y: float, weight: float) -> bool:
        """Take only the loss step of a row's label; return whether the row belongs to a space in force."""
        if self.past is not None and self.upcoming is not self.past and self._only_in(self.past, observed):
            taught = [self.past]
            if self.recipe.train_in_overlap and self._only_in(self.current, observed):
                taught.append(self.current)
            for space in taught:
                self._aside(space, space.view_gaps(space.read(observed), False), y, weight, True)
            return True
        known = self._views(observed, keep=False)
        if known:
            self._step(y, weight, True)
        if self.upcoming is not None and self._new_seen and self.upcoming is not self.past:
            if self.upcoming.bank is not None:
                self._aside(self.upcoming, self._new_view, y, weight, True)
            known = True
        return known

    def _only_in(self, space: Space, observed: Observed) -> bool:
        """Whether a row has a feature that of the past and the current space only this one has."""
        assert self.past is not None
        other = self.current if space is self.past else self.past
        return any(name in observed and name not in other.names for name in space.names)

    def _step(self, y: float, weight: float, late: bool) -> None:
        if self._past_view is not None and self.recovers:
            self._past_bank().learn_into(
                self._past_view, y, weight, late, self._past_scores, self._past_risks
            )
        self.current.bank.learn_into(self._view, y, weight, late, self._own_scores, self._own_risks)
        self.weights.update(self._scores, self._risks, y, weight)

    def _aside(self, space: Space, view: Floats, y: float, weight: float, late: bool) -> None:
        """Teach the experts of a space that do not play."""
        count = len(space.seats)
        space.bank.learn_into(view, y, weight, late, np.empty(count * self.outputs), np.empty(count))

    def _views(self, observed: Observed, keep: bool) -> bool:
        """Set the row as each space sees it; return whether it says anything of the current space."""
        values = self.current.read(observed)
        gaps = np.isnan(values)
        known = not gaps.all()
        self._new_seen, self._fits_map, trial = False, False, None
        if self.upcoming is not None:
            new_values = self.upcoming.read(observed)
            new_gaps = np.isnan(new_values)
            self._new_seen = not new_gaps.all()
            self._fits_map = 2 * gaps.sum() <= len(gaps) and 2 * new_gaps.sum() <= len(new_gaps)
            if self._new_seen and gaps.any():
                trial = self._trial_map()  # before the row enters any statistics: as when it was predicted
            if self._new_seen:
                self._new_view = self.upcoming.view_gaps(new_values, keep)
                self._new_source = self._source(self.upcoming, new_values, self._new_view)
        self._view = self._shown_to_map = self.current.view_gaps(values, keep)
        if trial is not None:
            source = np.ascontiguousarray(self._new_source[None, : trial.new_dim])
            self._view = self._view.copy()  # a map must not learn its own guesses
            self._view[gaps] = trial.recover(source)[0][gaps]
            known = True
        self._past_view: Floats | None = None
        if self.past is not None and self.recovers:
            source = self._source(self.current, values, self._view)
            self.psi.recover_into(source[: self.psi.new_dim], self._past_row)
            past_values = self.past.read(observed)
            if not np.isnan(past_values).all():
                self._use_observed(past_values, keep and self.upcoming is not self.past)
            self._past_view = self._past_row
        return known

    def _trial_map(self) -> Any:
        """Return the map as it would be now, None before its first row; fitted once for each row learned.

        It follows from what is kept and is not saved itself: a model that is saved meanwhile goes on alike.
        """
        if self._trial is None and self.overlap is not None and self.overlap.rows > 0:
            trial = self.overlap.clone()
            trial.solve(self.current, self.upcoming)
            trial.settle()
            self._trial = trial
        return self._trial

    def _source(self, space: Space, values: Floats, view: Floats) -> Floats:
        """Return a row as a map from its space takes it: as read, gaps filled, or as its experts see it."""
        return space.filled(values, view) if self.recipe.raw_maps else view

    # -- features come and go

    def open(self, names: Names) -> Told:
        """A space has appeared beside the current one: begin to learn the map from it."""
        return self._open(self.recipe.new_space(names))

    def open_past(self) -> Told:
        """The space before is back beside the current one."""
        assert self.past is not None
        return self._open(self.past)

    def _open(self, space: Space) -> Told:
        self.upcoming = space
        self.overlap = self.recipe.new_map(space, self.current)
        told = self.recipe.opened(self)
        self.arrange()
        return told

    def close(self) -> None:
        """The opened space is gone again."""
        self.upcoming = self.overlap = None

    def widen(self, names: Names) -> None:
        """Features join the opened space; its map goes on from those it had, or begins anew if few."""
        assert self.upcoming is not None
        self.upcoming.widen(names)
        if self.overlap is not None and 2 * self.overlap.new_dim <= self.upcoming.dim:
            self.overlap = self.recipe.new_map(self.upcoming, self.current)
        self.arrange()

    def join(self, names: Names) -> None:
        """Late features join the current space; the space that they had opened is gone."""
        shown = self._shown_of(names)
        self.close()
        self.current.widen(names, shown)
        self.arrange()

    def _shown_of(self, names: Names) -> Newcomers | None:
        """Return what the opened space has shown of features, in the units of the current one."""
        opened = self.upcoming
        if opened is None or opened.scaler is None or not set(names) <= set(opened.names):
            return None
        places = [opened.names.index(name) for name in names]
        scaling = np.asarray(opened.scaler.state()).reshape(3, opened.dim)[:, places]
        slopes = None if self.overlap is None else self.overlap.regressed(places, scaling)
        return Newcomers(scaling, slopes)

    def grow(self, names: Names, rows: int) -> int:
        """The opened space goes on with features of the current one; return the event.

        The experts of the current space go on beside it, on what they can see; without a map they could not,
        and then it is they that take in the new features.
        """
        assert self.upcoming is not None
        if self.overlap is not None and self.overlap.rows > 0:
            self.swap(names, rows)
            return events.GROWN
        known = set(self.current.names)
        self.join(tuple(name for name in self.upcoming.names if name not in known))
        return events.JOINED

    def swap(self, names: Names, rows: int) -> int:
        """The current space is gone and the opened one goes on, after so many rows; return the event."""
        assert self.upcoming is not None
        new, before, overlap = self.upcoming, self.current, self.overlap
        known = new.names
        self.psi = None
        if overlap is not None and overlap.rows > 0:
            overlap.solve(before, new)
            self.psi = overlap
        self.past, self.current, self.upcoming, self.overlap = before, new, None, None
        self.index += 1
        self.began = rows
        if len(names) > len(known):
            new.widen(names[len(known) :])
        if not new.seats:
            self.recipe.furnish(self, new, self.index)
        self.recipe.swapped(self)
        self.arrange()
        if self.psi is not None:
            return events.SWAP_RECOVERED
        return events.SWAP_NO_OVERLAP if overlap is not None else events.SWAP_NO_ROOM

    def refit_at(self, rows: int) -> int:
        """Return the row, of a stream with so many rows so far, at which the map is fitted anew.

        That is whenever the rows since the swap have grown by a quarter, of the last power of two in number.
        """
        if (not self.recovers or self.psi.settled) and not self.recipe.watches(self):
            return NEVER
        since = rows - self.began
        quarter = 1 << max(0, since.bit_length() - 3)
        return self.began + (since // quarter + 1) * quarter

    def left_in_sketch(self) -> int | None:
        """Return of how many more rows with both spaces a map's sketch can tell all; None: no sketch."""
        if self.overlap is None or not self.overlap.sketched:
            return None
        return int(self.overlap.left_in_sketch)

    def refit(self) -> Told:
        """Fit anew what rests on rows of the current space; return what has left, and freed its bytes."""
        if self.recovers:
            self.psi.solve(self.past, self.current)
        return self.recipe.refitted(self)

    def revert(self) -> None:
        """The space that was thought gone is back, beside the one that had followed it."""
        assert self.past is not None
        self.current, self.upcoming = self.past, self.current
        self.past, self.overlap, self.psi = None, self.psi, None
        if self.overlap is None or not self.overlap.refits or self.overlap.settled:
            self.overlap = self.recipe.new_map(self.upcoming, self.current)
        else:
            self.overlap.reopen()
        self.index -= 1
        self.recipe.reverted(self)
        self.arrange()

    # -- a second one

    def clone(self) -> Stage:
        """Return a stage that goes its own way from here."""
        twin = Stage.__new__(Stage)
        twin.recipe, twin.index, twin.outputs = self.recipe, self.index, self.outputs
        twin.began, twin.counts, twin.told = self.began, list(self.counts), list(self.told)
        twins = {id(space): space.clone() for space in self.spaces()}
        twin.current = twins[id(self.current)]
        twin.past = None if self.past is None else twins[id(self.past)]
        twin.upcoming = None if self.upcoming is None else twins[id(self.upcoming)]
        twin.psi = None if self.psi is None else self.psi.clone()
        twin.overlap = None if self.overlap is None else self.overlap.clone()
        twin.weights = self.weights.clone()
        twin.arrange()
        return twin

    # -- bytes

    def spaces(self) -> list[Space]:
        """Return the spaces kept, each once."""
        found = [self.current]
        for space in (self.past, self.upcoming):
            if space is not None and space not in found:
                found.append(space)
        return found

    def nbytes(self) -> dict[str, int]:
        """Return the bytes of what the stage keeps, by part."""
        spaces = self.spaces()
        return {
            "learners": sum(space.expert_nbytes for space in spaces),
            "maps": sum(int(psi.nbytes) for psi in (self.psi, self.overlap) if psi is not None),
            "scalers": sum(space.scaler_nbytes + space.moments_nbytes for space in spaces),
            "weights": self.weights.nbytes,
            "names": sum(space.name_nbytes for space in spaces),
        }

    def fixed_nbytes(self) -> int:
        """Return the bytes of everything but the experts."""
        parts = self.nbytes()
        return sum(parts.values()) - parts["learners"]

    def working_nbytes(self) -> dict[str, int]:
        """Return the bytes of a thread's scratch for these experts, and of arrays for a row in work."""
        scratch = max(int(seat.core.scratch_nbytes) for space in self.spaces() for seat in space.seats)
        parts = {id(part): part for whole in (self, *self.spaces()) for part in vars(whole).values()}
        arrays = [part for part in parts.values() if isinstance(part, np.ndarray) and part.base is None]
        rows = sum(array.nbytes for array in arrays)
        return {"scratch": scratch, "rows": rows + (0 if self._trial is None else self._trial.nbytes)}
