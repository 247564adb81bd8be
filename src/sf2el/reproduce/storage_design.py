"""What a byte is worth: which ways of keeping a learner are measured, and with how many rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sf2el.datasets import Dataset
from sf2el.maps.recovery import map_bytes
from sf2el.mixing.hedge import hedge_bytes
from sf2el.paper.rows import learner_bytes, plan
from sf2el.paper.settings import LEAST_BUFFER, MOST_BUFFER, LearnerSettings, Precision, Projection, Sampling
from sf2el.reproduce.declared import settings_file

Pair = tuple[int, int]
Side = Literal["old", "new"]

KIB = 1024
PLANNER, PAPER = "the planner", "the paper's settings"


@dataclass(frozen=True, order=True)
class Kept:
    """A way of keeping a learner."""

    projection: Projection = "exact"
    keep_gram: bool = True
    precision: Precision = "float64"
    sampling: Sampling = "reservoir"

    def applied(self, settings: LearnerSettings) -> LearnerSettings:
        """Return a learner's settings when it is kept this way."""
        return replace(settings, projection=self.projection, keep_gram=self.keep_gram, sampling=self.sampling)

    def nbytes(self, dim: int, rows: int) -> int:
        """Return the bytes of a learner kept this way."""
        return learner_bytes(self.applied(LearnerSettings()), dim, rows, self.precision)

    def rows_within(self, dim: int, available: int) -> int:
        """Return the most rows a learner of so many bytes can have, 0 if none.

        >>> Kept().rows_within(10, 32768), Kept("pursuit", False, "float32").rows_within(10, 1024)
        (57, 19)
        """
        sizes = range(1, MOST_BUFFER + 1)
        return bisect_right(sizes, available, key=lambda rows: self.nbytes(dim, rows))


@dataclass(frozen=True)
class Design:
    """The first measurement, as its settings file declares it."""

    title: str
    datasets: tuple[str, ...]
    budgets: tuple[int, ...]
    most_rows: int
    label_rate: float
    overlap: int
    paper_buffers: tuple[int, ...]
    tolerance: float
    fewer_runs: dict[str, int]
    variants: dict[str, Kept]

    @classmethod
    def declared(cls) -> Design:
        """Return what ``storage.toml`` declares.

        >>> Design.declared().budgets[:3]
        (2048, 4096, 8192)
        """
        content = settings_file("storage")
        return cls(
            title=content["title"],
            datasets=tuple(content["datasets"]),
            budgets=tuple(KIB * size for size in content["budgets_kib"]),
            most_rows=content["most_rows"],
            label_rate=content["label_rate"],
            overlap=content["overlap"],
            paper_buffers=tuple(content["paper_buffers"]),
            tolerance=content["tolerance"],
            fewer_runs=content["fewer_runs"],
            variants={name: Kept(**values) for name, values in content["variants"].items()},
        )

    def seeds(self, dataset: str, runs: int) -> range:
        """Return the seeds of a dataset: fewer on the large sets."""
        return range(min(runs, self.fewer_runs.get(dataset, runs)))

    def entries(self, dataset: str, dims: Pair, base: LearnerSettings) -> list[Entry]:
        """Return everything measured on a dataset: variants, planner, the paper's own settings."""
        found = [
            entry
            for budget in self.budgets
            for name, kept in self.variants.items()
            if (entry := self.fitted(dataset, name, kept, dims, budget)) is not None
        ]
        found += [
            entry
            for budget in self.budgets
            if (entry := self.planned(dataset, dims, base, budget)) is not None
        ]
        found += [
            Entry(dataset, PAPER, None, (Kept(), Kept()), (size, size), dims) for size in self.paper_buffers
        ]
        return found

    def fitted(self, dataset: str, name: str, kept: Kept, dims: Pair, budget: int) -> Entry | None:
        """Return a variant with all the rows that fit, the learners sharing the bytes alike; None if few."""
        available = budget - shared_bytes(dims)
        old = min(kept.rows_within(dims[0], available // 2), self.most_rows)
        # What the old learner leaves of its half goes to the new one, except where rows are capped.
        left = available - kept.nbytes(dims[0], old) if old < self.most_rows else available // 2
        rows = (old, min(kept.rows_within(dims[1], left), self.most_rows))
        return Entry(dataset, name, budget, (kept, kept), rows, dims) if min(rows) >= LEAST_BUFFER else None

    def planned(self, dataset: str, dims: Pair, base: LearnerSettings, budget: int) -> Entry | None:
        """Return what the product's planner makes of a budget, None if it can make nothing of it."""
        available = budget - shared_bytes(dims)
        choice = plan(base, list(dims), available) if available > 0 else None
        if choice is None:
            return None
        form, shapes = choice
        old, new = (
            Kept(
                shape.settings.projection, shape.settings.keep_gram, shape.precision, shape.settings.sampling
            )
            for shape in shapes
        )
        rows = (min(shapes[0].rows, self.most_rows), min(shapes[1].rows, self.most_rows))
        return Entry(dataset, PLANNER, budget, (old, new), rows, dims, form.text)


@dataclass(frozen=True)
class Entry:
    """One point of a curve: how both learners are kept, and their rows."""

    dataset: str
    variant: str
    budget: int | None
    kept: tuple[Kept, Kept]
    rows: Pair
    dims: Pair
    form: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of both learners, the map and the weights."""
        learners = (
            kept.nbytes(dim, rows) for kept, dim, rows in zip(self.kept, self.dims, self.rows, strict=True)
        )
        return sum(learners) + shared_bytes(self.dims)

    def parts(self, seed: int) -> tuple[Part, Part]:
        """Return the runs of its two learners."""
        old, new = self.kept
        return (
            Part(self.dataset, seed, "old", self.rows[0], old),
            Part(self.dataset, seed, "new", self.rows[1], new),
        )


@dataclass(frozen=True, order=True)
class Part:
    """One learner's run along one stream; entries that need the same one share it."""

    dataset: str
    seed: int
    side: Side
    rows: int
    kept: Kept


def shared_bytes(dims: Pair) -> int:
    """Return the bytes that are not the learners': map and weights."""
    return map_bytes(dims[1], dims[0]) + hedge_bytes(2)


def load_design(datasets: Mapping[str, Dataset]) -> Design:
    """Return the declared measurement on those of its datasets that are there."""
    design = Design.declared()
    return replace(design, datasets=tuple(name for name in design.datasets if name in datasets))
