"""A feature space: its names, its scaling, what is known of its features together, and its experts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.inputs.rows import Names
from sf2el.memory.budget import names_bytes, scaler_bytes

Floats = npt.NDArray[np.float64]

GAUSSIAN = 3.0
"""Mean fourth power of a Gaussian feature of variance 1."""

LEAST_NOISE = 1e-3
"""Share of a feature's variance that other features leave at least."""


class Seat(Protocol):
    """An expert and the shape it is kept in."""

    name: str
    core: Any

    @property
    def nbytes(self) -> int:
        """Bytes that the expert keeps."""
        ...

    def widened(self, dim: int) -> None:
        """Give the expert more features, which all its rows so far have at 0."""
        ...

    def clone(self) -> Seat:
        """Return an expert that goes its own way from here."""
        ...


class Newcomers(NamedTuple):
    """What is known of features that join a space, in its units.

    ``scaling`` is their part of a scaler's state, ``slopes`` those of each on the features that there are, a
    column each; None where these are not known.
    """

    scaling: Floats
    slopes: Floats | None = None


class Space:
    """A feature space and the bank of experts that learns in it.

    ``divisor`` is the square root of the features it began with: features that join later add to the
    distances between rows instead of changing those there are.
    """

    def __init__(
        self,
        names: Names,
        *,
        scaled: bool,
        related: bool,
        backend: str | None,
        dim: int | None = None,
        born: int | None = None,
        precision: str = "float64",
        scaling: str = "float64",
        task: str = "",
    ) -> None:
        self.names = names
        self.dim = len(names) if dim is None else dim
        self.born = self.dim if born is None else born
        self.backend, self.precision, self.scaling, self.task = backend, precision, scaling, task
        self._core = _core.backend(backend)
        self.scaler: Any = self._core.Scaler(self.dim, self.divisor, scaling) if scaled else None
        self.moments: Any = self._core.Moments(self.dim, precision) if related else None
        self.seats: list[Seat] = []
        self.bank: Any = None
        self._prepare()

    def _prepare(self) -> None:
        self.row: Floats = np.empty(self.dim)
        self._scaled: Floats = np.empty(self.dim)

    @property
    def divisor(self) -> float:
        """What scaled features are divided by."""
        return sqrt(self.born)

    def seat(self, seats: Sequence[Seat]) -> None:
        """Take these experts."""
        self.seats = list(seats)
        self.bank = self._core.Bank([seat.core for seat in seats], self.task) if seats else None

    # -- rows

    def read(self, observed: Mapping[Hashable, float]) -> Floats:
        """Return a row's values in the order of the names, NaN where not observed."""
        nan = float("nan")
        return np.array([observed.get(name, nan) for name in self.names])

    def view(self, values: Floats, keep: bool) -> Floats:
        """Return a complete row as the experts see it; with ``keep`` it enters the running statistics."""
        if self.scaler is None:
            view = values
        else:
            self.scaler.scale_into(values, self._scaled, keep)
            view = self._scaled
        if keep and self.moments is not None:
            self.moments.observe(view)
        return view

    def view_gaps(self, values: Floats, keep: bool) -> Floats:
        """Return a row with NaN where not observed as the experts see it: gaps have their expected value."""
        missing = np.isnan(values)
        if not missing.any():
            return self.view(values, keep).copy()
        if self.scaler is None:
            view = np.where(missing, 0.0, values)
        else:
            self.scaler.scale_into(values, self._scaled, keep)
            view = self._scaled.copy()
        if self.moments is not None:
            self.moments.fill(values, view)
        if keep and self.moments is not None and 2 * missing.sum() <= self.dim:
            self.moments.observe(view)
        return view

    def view_many(self, rows: Floats) -> Floats:
        """Return complete rows as the experts see them, each entering the running statistics."""
        views = rows if self.scaler is None else np.asarray(self.scaler.scale_many(rows, True))
        if self.moments is not None:
            self.moments.observe_many(views)
        return views

    def filled(self, values: Floats, view: Floats) -> Floats:
        """Return a row as it was read, with gaps at the value that the view has there."""
        gaps = np.isnan(values)
        if not gaps.any() or self.scaler is None:
            return np.where(gaps, view, values)
        filled = values.copy()
        self.scaler.unscale_gaps(filled, view)
        return filled

    # -- more features

    def widen(self, names: Names, known: Newcomers | None = None) -> None:
        """Take in features that join: to experts the rows so far had them at their mean.

        The space's own statistics have what is ``known`` of them as if all rows had shown it.
        """
        before, self.names = self.dim, self.names + names
        self.dim = len(self.names)
        if self.scaler is not None:
            state = np.asarray(self.scaler.state()).reshape(3, before)
            self.scaler = self._core.Scaler(self.dim, self.divisor, self.scaling)
            more = np.zeros((3, len(names))) if known is None else known.scaling
            self.scaler.set_state(np.hstack([state, more]).ravel())
        if self.moments is not None:
            count, mean, lower = self.unpacked_moments(before)
            grown = np.zeros((self.dim, self.dim))
            grown[:before, :before] = lower
            if known is not None and known.slopes is not None:
                # As if all rows had had what the slopes say, and noise that makes up the variance.
                whole = lower + np.tril(lower, -1).T
                beside = whole @ known.slopes
                told = known.slopes.T @ beside
                noise = np.maximum(count / self.born - np.diagonal(told), LEAST_NOISE * count / self.born)
                grown[before:, :before], grown[before:, before:] = beside.T, told + np.diag(noise)
            fourths = np.asarray(self.moments.fourths)
            self.moments = self._core.Moments(self.dim, self.precision, len(fourths) > 0)
            mean = np.concatenate([mean, np.zeros(len(names))])
            if len(fourths):
                fourths = np.concatenate([fourths, np.full(len(names), GAUSSIAN / self.born**2)])
            lower = grown[np.tril_indices(self.dim)]
            self.moments.set_state(np.concatenate([[count], mean, lower, fourths]))
        for seat in self.seats:
            seat.widened(self.dim)
        self.seat(self.seats)
        self._prepare()

    def unpacked_moments(self, dim: int) -> tuple[float, Floats, Floats]:
        """Return count, mean and the lower triangle of the summed co-deviations."""
        state = np.asarray(self.moments.state())
        lower = np.zeros((dim, dim))
        lower[np.tril_indices(dim)] = state[1 + dim : 1 + dim + dim * (dim + 1) // 2]
        return float(state[0]), state[1 : 1 + dim], lower

    def keep_fourths(self, keep: bool) -> None:
        """Keep the features' mean fourth powers from the first row on, or no longer."""
        state, kept = np.asarray(self.moments.state()), len(self.moments.fourths) > 0
        if keep == kept:
            return
        state = np.concatenate([state, np.zeros(self.dim)]) if keep else state[: -self.dim]
        self.moments = self._core.Moments(self.dim, self.precision, keep)
        self.moments.set_state(state)

    def clone(self) -> Space:
        """Return a space that goes its own way from here."""
        twin = Space(
            self.names,
            scaled=self.scaler is not None,
            related=self.moments is not None,
            backend=self.backend,
            dim=self.dim,
            born=self.born,
            precision=self.precision,
            scaling=self.scaling,
            task=self.task,
        )
        if self.scaler is not None:
            twin.scaler.set_state(self.scaler.state())
        if self.moments is not None:
            twin.keep_fourths(len(self.moments.fourths) > 0)
            twin.moments.set_state(self.moments.state())
        twin.seat([seat.clone() for seat in self.seats])
        return twin

    # -- bytes

    @property
    def fixed_nbytes(self) -> int:
        """Bytes of everything but the experts."""
        return self.name_nbytes + self.scaler_nbytes + self.moments_nbytes

    @property
    def name_nbytes(self) -> int:
        """Bytes of the names."""
        return names_bytes(self.names)

    @property
    def scaler_nbytes(self) -> int:
        """Bytes of the running statistics of each feature."""
        return 0 if self.scaler is None else scaler_bytes(self.dim, self.scaling)

    @property
    def moments_nbytes(self) -> int:
        """Bytes of the running statistics of features together."""
        return 0 if self.moments is None else int(self.moments.nbytes)

    @property
    def expert_nbytes(self) -> int:
        """Bytes of the experts."""
        return sum(seat.nbytes for seat in self.seats)
