"""The default's map that recovers a vanished space, as a stage uses it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.experts.posterior import affine_bytes, moments_bytes
from sf2el.inputs.rows import LARGEST_FEATURE
from sf2el.maps.gaussian_map import RIDGE, Known, Shown, correlation, gaussian_map
from sf2el.maps.sketch import ROOM, Sketch, sketch_bytes
from sf2el.model.space import Space

Floats = npt.NDArray[np.float64]

LARGEST_READ = 1e15
"""Values beyond which float32 could not hold the sum of many squares; larger ones count as this."""

WRONG = 5.0
"""How many times a feature's usual deviation that in the overlap must be to come from a wrong reading."""

LARGEST_SCALED = 5.0
"""Standard deviations beyond which a recovered feature is clipped, as an observed one is."""

RANK = ROOM + 1
"""Factors of a map at most: one fitted on rows of which a sketch tells everything has no higher rank."""

UNSHOWN = 0.05
"""Share of the new features' correlation that is taken as none where factors are chosen: few rows have shown
little, and what they have not shown must not be dropped altogether."""


def as_read(space: Space) -> tuple[Floats, Floats] | None:
    """Return mean and standard deviation of a space's features as they are read."""
    if space.scaler is None:
        return None
    mean, spread, count = space.scaler.state().reshape(3, space.dim)
    return np.ascontiguousarray(mean), np.sqrt(spread / np.maximum(count, 1.0))


class Fitted(NamedTuple):
    """A map as it is kept: its matrix or the factors of that, what it adds, and what rows are taken from."""

    linear: Floats
    offset: Floats
    center: Floats


def statistics_bytes(dim: int, precision: str, *, thin: bool) -> int:
    """Return the bytes of a map between spaces of so many features together that is yet to be solved.

    >>> statistics_bytes(50, "float32", thin=True) < statistics_bytes(50, "float32", thin=False)
    True
    """
    whole = moments_bytes(dim, precision)
    return 8 + (min(whole, sketch_bytes(dim)) if thin else whole)


class JointMap:
    """A map from what is known of both spaces together (``sf2el.maps.gaussian_map``).

    It is fitted on the statistics of the rows that had both spaces, with the covariance that the old space
    has shown all its life and the one that the new space shows: rows without the old features, labelled or
    not, make it better. Memory (d1 + d2)^2 / 2 numbers, or 40 (d1 + d2) bytes as a sketch, until it is
    settled; d1 d2 numbers after, or half as many bytes if they are brief, or ``RANK`` (d1 + d2) brief ones as
    factors. A sketch tells everything of few rows, and little of many: a map that outgrows it needs the
    statistics whole.
    """

    refits = True

    def __init__(
        self, new_dim: int, old_dim: int, old_divisor: float, precision: str, backend: str | None
    ) -> None:
        self.new_dim, self.old_dim = new_dim, old_dim
        self.precision = precision
        self._made = (old_divisor, precision, backend)
        self.joint: Any = _core.backend(backend).Moments(new_dim + old_dim, precision)
        self.affine: Any = None  # until it is solved
        self.brief = False  # whether the map itself is kept in 16 bits a number
        self.unexplained = 0.0  # by the old features, of the new ones, when it was last solved
        self._rows = 0

    def _open(self, rank: int = 0) -> None:
        """Make room for the map itself, as so many factors; 0: as one matrix."""
        divisor, precision, backend = self._made
        core, kept = _core.backend(backend), "bfloat16" if self.brief else precision
        self.affine = core.AffineMap(self.new_dim, self.old_dim, LARGEST_SCALED / divisor, kept, rank)

    @property
    def part(self) -> Any:
        """The compiled map."""
        return self.affine

    @property
    def settled(self) -> bool:
        """Whether the statistics are gone and only the map is left."""
        return self.joint is None

    @property
    def rows(self) -> int:
        """Rows it was fitted on."""
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of the map, and of the statistics while they are kept."""
        parts = [part for part in (self.affine, self.joint) if part is not None]
        return 8 + sum(int(part.nbytes) for part in parts)

    def recover(self, Z: Floats) -> Floats:
        """Return what the old features would have read."""
        return np.asarray(self.affine.apply(Z))

    def recover_into(self, z: Floats, x: Floats) -> None:
        """Recover one row."""
        self.affine.apply_into(z, x)

    def observe(self, Z: Floats, X: Floats) -> None:
        """Take in rows that had both spaces."""
        Z = np.clip(Z[:, : self.new_dim], -LARGEST_READ, LARGEST_READ)
        self.joint.observe_many(np.hstack([Z, X]))
        self._rows += len(Z)

    @property
    def rank(self) -> int:
        """Factors that the map is kept as; 0: it is one matrix, or there is none yet."""
        return 0 if self.affine is None else int(self.affine.rank)

    @property
    def fitted(self) -> Fitted | None:
        """The map itself, once there is one."""
        if self.affine is None:
            return None
        matrix, factors = np.asarray(self.affine.matrix), np.asarray(self.affine.factors)
        linear = factors if self.rank else np.ascontiguousarray(matrix[:, :-1])
        return Fitted(linear, matrix[:, -1].copy(), np.asarray(self.affine.center))

    def take(self, rows: int, joint: Floats | None, fitted: Fitted | None, rank: int) -> None:
        """Take over what another map keeps: its rows, its statistics and itself, where it has them."""
        self._rows = rows
        if joint is None:
            self.settle()
        else:
            self.joint.set_state(np.ascontiguousarray(joint))
        if fitted is None:
            return
        self._open(rank)
        linear, offset, center = map(np.ascontiguousarray, fitted)
        if rank:
            self.affine.set_factors(linear, offset, center)
        else:
            self.affine.set(np.column_stack([linear, offset]), center)

    def solve(self, old: Space, new: Space) -> None:
        """Fit the map to the rows that had both spaces, and to what each space has shown by itself."""
        if self.settled or not self._rows:
            return
        known = Known(
            rows=self._rows,
            new_dim=self.new_dim,
            mean=self.joint.mean,
            covariance=self.joint.matrix(),
            old=self._old_covariance(old, new),
            new=self._shown(new),
            whole=not self.sketched or self._rows <= RANK,
            read=as_read(old),
        )
        divisor, _, backend = self._made
        matrix, center, self.unexplained = gaussian_map(known, divisor, backend)
        center = np.clip(center, -LARGEST_FEATURE, LARGEST_FEATURE)
        if self.affine is None:
            self._open()
        self.affine.set(matrix, center)

    def regressed(self, places: list[int], scaling: Floats) -> Floats | None:
        """Return the slopes of these new features on the old ones, all in standard deviations; a column each.

        ``scaling`` is the part of a scaler's state that tells the new ones' deviations.
        """
        if self.settled or not self._rows or max(places) >= self.new_dim:
            return None
        divisor, covariance = self._made[0], self._rows * np.asarray(self.joint.matrix())
        old = covariance[self.new_dim :, self.new_dim :] * divisor**2
        deviation = np.sqrt(scaling[1] / np.maximum(scaling[2], 1.0))
        inverse = np.divide(1.0, deviation, out=np.zeros(len(places)), where=deviation > 0.0)
        both = covariance[self.new_dim :, places] * divisor * inverse
        slopes = np.linalg.solve(old + RIDGE * np.eye(self.old_dim), both)
        return np.clip(slopes, -LARGEST_SCALED, LARGEST_SCALED)  # beyond, a wrong reading has made them

    def _old_covariance(self, old: Space, new: Space) -> Floats | None:
        """Return how the old features vary together: all their life, or in the overlap if that was long.

        Where that had no room it is taken from what the map has recovered so far, once there are later rows.
        """
        if old.moments is not None:
            return np.asarray(old.moments.matrix())
        if self.left_in_sketch <= 0:
            return np.ascontiguousarray(self.joint.matrix()[self.new_dim :, self.new_dim :])
        if self.affine is None or new.moments is None or self._shown(new) is None:
            return None
        deviation, together = self._spread(new)
        recovered = np.asarray(self.affine.matrix)[:, :-1] * deviation * self._made[0]
        covariance = recovered @ together @ recovered.T
        size = np.maximum(np.sqrt(np.diagonal(covariance)), 1.0)
        covariance /= np.outer(size, size)
        np.fill_diagonal(covariance, 1.0)  # what is not recovered goes its own way
        return np.asarray(covariance)

    def _shown(self, new: Space) -> Shown | None:
        """Return what the new space has shown of the features that the map takes."""
        if new.moments is None or new.scaler is None:
            return None
        mean, spread, count = new.scaler.state().reshape(3, new.dim)[:, : self.new_dim]
        later = float(count.min()) - self._rows
        if not later > 0.0:
            return None
        together = new.moments.matrix()[: self.new_dim, : self.new_dim]
        deviation = np.sqrt(spread / count)
        # A wrong reading counts little in what a space has shown, but in full in the rows that had both.
        own = np.sqrt(np.maximum(np.diagonal(self.joint.matrix())[: self.new_dim], 0.0))
        spoilt = own > WRONG * deviation
        mean = np.where(spoilt, self.joint.mean[: self.new_dim], mean)
        deviation = np.where(spoilt, own, deviation)
        return Shown(mean, deviation, np.ascontiguousarray(together), later)

    def settle(self) -> None:
        """Drop the statistics: no more rows will come."""
        self.joint = None

    @property
    def knows_most(self) -> bool:
        """Whether the rows that had both spaces have shown most directions of the old features."""
        return 2 * self._rows > self.old_dim

    @property
    def thinner(self) -> bool:
        """Whether ``thin`` would leave fewer bytes."""
        return not self.brief or (self._sketches and not (self.outgrown and self.affine is None))

    @property
    def sketched(self) -> bool:
        """Whether the statistics are a sketch."""
        return isinstance(self.joint, Sketch)

    @property
    def _sketches(self) -> bool:
        """Whether a sketch of the statistics would take fewer bytes."""
        if self.joint is None or self.sketched:
            return False
        return sketch_bytes(self.new_dim + self.old_dim) < int(self.joint.nbytes)

    @property
    def left_in_sketch(self) -> int:
        """How many more rows a sketch can certainly tell everything of."""
        return ROOM - self._rows

    @property
    def outgrown(self) -> bool:
        """Whether the statistics are whole because a sketch would tell only a part."""
        return self._sketches and self.left_in_sketch <= 0

    def sketch(self) -> None:
        """Keep a sketch of the statistics in their place."""
        self.joint = Sketch.of(self.joint)

    def unfold(self) -> None:
        """Keep the statistics whole again."""
        sketch, dim = self.joint, self.new_dim + self.old_dim
        sums = sketch.count * sketch.matrix()[np.tril_indices(dim)]
        _, precision, backend = self._made
        self.joint = _core.backend(backend).Moments(dim, precision)
        self.joint.set_state(np.concatenate([[sketch.count], sketch.mean, sums]))

    def thin(self) -> None:
        """Keep the map in 16 bits a number, and a sketch of the statistics where it tells as much.

        Where it does not, a map that there is already goes on as it is.
        """
        if self._sketches and self.left_in_sketch > 0:
            self.sketch()
        elif self.outgrown and self.affine is not None:
            self.settle()
        self.brief = True
        if self.affine is not None:
            matrix, center = self.affine.matrix, self.affine.center
            self._open()
            self.affine.set(matrix, center)

    @property
    def narrower(self) -> bool:
        """Whether ``narrow`` would leave fewer bytes."""
        return self.affine is not None and not self.rank and self._least_rank > 0

    @property
    def _least_rank(self) -> int:
        """Factors of the map at least; 0: they are more numbers than the matrix."""
        rank = min(RANK, self._rows) if self.settled else RANK
        return rank if rank * (self.new_dim + self.old_dim) < self.new_dim * self.old_dim else 0

    @property
    def least_nbytes(self) -> int:
        """Bytes of the map alone, kept as shortly as it may have to be."""
        return 8 + affine_bytes(self.new_dim, self.old_dim, "bfloat16", self.rank or self._least_rank)

    def narrow(self, new: Space) -> None:
        """Keep the map as factors in 16 bits a number, for good: it is not fitted anew.

        Where few rows had both spaces they lose nothing but digits, unless later rows have made it better
        since. Otherwise they keep what matters most for the rows of the new space.
        """
        self.settle()
        fitted = self.fitted
        assert fitted is not None
        core, rank = _core.backend(self._made[-1]), self._least_rank
        factors = core.factors(fitted.linear, *self._spread(new), rank)
        self.brief = True
        self.take(self._rows, None, fitted._replace(linear=factors), rank)

    def _spread(self, new: Space) -> tuple[Floats, Floats]:
        """Return the deviations and the correlation of the features that the map takes.

        What is not known is taken as 1 and as uncorrelated.
        """
        deviation, together = np.ones(self.new_dim), np.eye(self.new_dim)
        if new.scaler is not None:
            _, spread, count = new.scaler.state().reshape(3, new.dim)[:, : self.new_dim]
            deviation = np.sqrt(spread / np.maximum(count, 1.0))
        if new.moments is not None:
            shown = correlation(new.moments.matrix()[: self.new_dim, : self.new_dim])
            together = UNSHOWN * together + (1.0 - UNSHOWN) * shown
        return deviation, together

    def reopen(self) -> None:
        """More rows will come, and the map itself is not needed meanwhile."""
        self.affine = None

    def clone(self) -> JointMap:
        """Return a map that goes its own way from here."""
        twin = JointMap(self.new_dim, self.old_dim, *self._made)
        twin.brief, twin.unexplained = self.brief, self.unexplained
        if self.sketched:
            twin.sketch()
        joint = None if self.joint is None else self.joint.state()
        twin.take(self._rows, joint, self.fitted, self.rank)
        return twin
