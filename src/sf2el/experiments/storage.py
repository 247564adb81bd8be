"""What a byte is worth: accuracy by the bytes that a model may keep, and under a budget that changes.

Two measurements. In the first the paper's learner is kept in several ways (with its matrices or without, in
float64 or float32, with a plain or a stratified reservoir), each with as many rows as a total budget allows,
beside what the product's own planner makes of that budget. In the second the public model runs through one
stream while its budget is changed.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sf2el.atomic import write_text
from sf2el.budget import hedge_bytes, learner_bytes, map_bytes
from sf2el.datasets import Dataset
from sf2el.experiments.changing_budget import Changing, changing_budget, changing_dataset
from sf2el.experiments.declared import settings_file
from sf2el.experiments.readings import Reading
from sf2el.experiments.statistics import mean_std
from sf2el.experiments.tables import as_json
from sf2el.hedge import Hedge
from sf2el.methods import Setup, run_methods
from sf2el.plan import plan
from sf2el.settings import LEAST_BUFFER, MOST_BUFFER, LearnerSettings, Precision, Projection, Sampling
from sf2el.streams import TwoSpaceStream, stream_for

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Side = Literal["old", "new"]

KIB = 1024
PLANNER, PAPER = "the planner", "the paper's settings"
ALONE: dict[Side, str] = {"old": "uROGD+MR", "new": "NOGD+MR"}
"""The method that follows only the learner of a space: SF2EL is the hedge of the two."""


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


Track = tuple[Floats, Floats]
"""Scores and risks of a learner along the third period."""


def shared_bytes(dims: Pair) -> int:
    """Return the bytes that are not the learners': map and weights."""
    return map_bytes(dims[1], dims[0]) + hedge_bytes(2)


@dataclass(frozen=True)
class Storage:
    """Everything measured."""

    design: Design
    reading: Reading
    datasets: dict[str, Dataset]
    seeds: dict[str, list[int]]
    cells: list[dict[str, Any]]
    changing: Changing

    def curve(self, dataset: str, variant: str) -> dict[int, float]:
        """Return accuracy by budget (by bytes for the paper's own settings)."""
        return {
            cell["budget"] or cell["bytes"]: cell["accuracy"]["mean"]
            for cell in self.cells
            if (cell["dataset"], cell["variant"]) == (dataset, variant)
        }

    def falls(self) -> list[dict[str, Any]]:
        """Return where the planner's accuracy falls from one budget to the next by more than tolerated."""
        return [fall for fall in self.steps() if fall["change"] < -self.design.tolerance]

    def steps(self) -> list[dict[str, Any]]:
        """Return how the planner's accuracy changes from each budget to the next."""
        return [
            {"dataset": dataset, "from": low[0], "to": high[0], "change": round(high[1] - low[1], 6)}
            for dataset in self.datasets
            for low, high in pairwise(self.curve(dataset, PLANNER).items())
        ]

    def protocol(self) -> dict[str, Any]:
        """Return what the numbers rest on."""
        design = self.design
        return {
            "title": design.title,
            "reading": self.reading.name,
            "seeds": self.seeds,
            "label_rate": design.label_rate,
            "overlap": design.overlap,
            "bytes": "both learners, recovery map and hedge weights; equal bytes for both learners",
            "most_rows": design.most_rows,
            "variants": {name: asdict(kept) for name, kept in design.variants.items()},
            "look_aheads": [
                "features scaled to [0, 1] over the whole set",
                "kernel widths from the first 200 rows of each space",
            ],
            "sources": {name: dataset.source for name, dataset in self.datasets.items()},
        }

    def write(self, folder: Path) -> None:
        """Write ``storage`` as JSON, CSV and Markdown."""
        more = {"falls": self.falls(), "changing": asdict(self.changing)}
        write_text(folder / "storage.json", as_json(self.protocol(), self.cells, **more))
        write_text(folder / "storage.csv", self._csv())
        write_text(folder / "storage.md", self._markdown())

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        plain = ("dataset", "variant", "form", "budget", "rows_old", "rows_new", "bytes", "runs")
        writer.writerow([*plain, "accuracy_mean", "accuracy_std", "majority"])
        for cell in self.cells:
            numbers = [cell["accuracy"][part] for part in ("mean", "std")]
            writer.writerow([*(cell[key] for key in plain), *numbers, cell["majority"]])
        return out.getvalue()

    def _markdown(self) -> str:
        lines = [f"# {self.design.title}", "", self.verdict(), ""]
        lines += ["| dataset | variant | budget | rows old / new | bytes | accuracy |", "|" + " --- |" * 6]
        for cell in self.cells:
            name = cell["dataset"] + (" (simulated)" if cell["simulated"] else "")
            variant = f"{cell['variant']}: {cell['form']}" if cell["form"] else cell["variant"]
            budget = f"{cell['budget'] // KIB} KiB" if cell["budget"] else ""
            rows, accuracy = f"{cell['rows_old']} / {cell['rows_new']}", cell["accuracy"]
            row = [name, variant, budget, rows, str(cell["bytes"])]
            lines.append("| " + " | ".join([*row, f"{accuracy['mean']:.3f} ± {accuracy['std']:.3f}"]) + " |")
        lines += ["", f"# A budget that changes: {self.changing.dataset}", ""]
        lines += ["| budget | rounds | accuracy | always the largest | most bytes |", "|" + " --- |" * 5]
        for part in self.changing.parts:
            numbers = f"{part['accuracy']:.3f} | {part['steady']:.3f} | {part['most_bytes']}"
            lines.append(
                f"| {part['budget'] // KIB} KiB | {part['start'] + 1} to {part['stop']} | {numbers} |"
            )
        return "\n".join(lines) + "\n"

    def verdict(self) -> str:
        """Return in words whether more bytes were ever worse under the planner."""
        falls = self.falls()
        if not falls:
            return (
                "On no dataset does the planner's accuracy fall by more than "
                f"{self.design.tolerance:g} from one budget to the next."
            )
        places = "; ".join(
            f"{fall['dataset']} from {fall['from'] // KIB} to {fall['to'] // KIB} KiB ({fall['change']:+.4f})"
            for fall in falls
        )
        return f"The planner's accuracy falls by more than {self.design.tolerance:g} here: {places}."


def load_design(datasets: Mapping[str, Dataset]) -> Design:
    """Return the declared measurement on those of its datasets that are there."""
    design = Design.declared()
    return replace(design, datasets=tuple(name for name in design.datasets if name in datasets))


def entries_of(design: Design, datasets: Mapping[str, Dataset], reading: Reading) -> list[Entry]:
    """Return all points of all curves."""
    found = []
    for name in design.datasets:
        dataset = datasets[name]
        base = _setup(design, dataset, reading, 0)[1].old
        found += design.entries(name, (dataset.d1, dataset.d2), base)
    return found


def parts_of(design: Design, entries: Sequence[Entry], runs: int) -> list[Part]:
    """Return the learners' runs that the entries need, each once, the longest first."""
    parts = {
        part for entry in entries for seed in design.seeds(entry.dataset, runs) for part in entry.parts(seed)
    }
    return sorted(parts, key=lambda part: (-part.rows, part))


def measure(
    design: Design,
    datasets: Mapping[str, Dataset],
    reading: Reading,
    *,
    runs: int,
    jobs: int = 1,
    advance: Callable[[int], None] = lambda steps: None,
) -> Storage:
    """Run everything in ``jobs`` threads; the results do not depend on how many there are."""
    entries = entries_of(design, datasets, reading)
    cells: list[dict[str, Any]] = []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            for name in design.datasets:  # one dataset at a time: the tracks of all need not fit in memory
                own = [entry for entry in entries if entry.dataset == name]
                cells += _cells(pool, design, own, datasets[name], reading, runs, advance)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    moving = changing_budget(changing_dataset(datasets))
    seeds = {name: list(design.seeds(name, runs)) for name in design.datasets}
    kept = {name: datasets[name] for name in design.datasets}
    return Storage(design, reading, kept, seeds, cells, moving)


def _cells(
    pool: ThreadPoolExecutor,
    design: Design,
    entries: Sequence[Entry],
    dataset: Dataset,
    reading: Reading,
    runs: int,
    advance: Callable[[int], None],
) -> list[dict[str, Any]]:
    seeds = design.seeds(dataset.name, runs)
    setups = {seed: _setup(design, dataset, reading, seed) for seed in seeds}

    def run(part: Part) -> Track:
        track = run_part(part, *setups[part.seed])
        advance(1)
        return track

    parts = parts_of(design, entries, runs)
    tracks = dict(zip(parts, pool.map(run, parts), strict=True))

    @cache
    def accuracy(pair: tuple[Part, Part]) -> float:
        stream, setup = setups[pair[0].seed]
        return hedged_accuracy(stream, setup, reading, [tracks[part] for part in pair])

    return [
        {
            "dataset": entry.dataset,
            "variant": entry.variant,
            "form": entry.form,
            "budget": entry.budget,
            "rows_old": entry.rows[0],
            "rows_new": entry.rows[1],
            "capped": entry.budget is not None and max(entry.rows) >= design.most_rows,
            "bytes": entry.nbytes,
            "runs": len(seeds),
            "accuracy": mean_std([accuracy(entry.parts(seed)) for seed in seeds]),
            "majority": round(dataset.majority, 6),
            "simulated": dataset.simulated,
        }
        for entry in entries
    ]


def _setup(design: Design, dataset: Dataset, reading: Reading, seed: int) -> tuple[TwoSpaceStream, Setup]:
    stream = stream_for(dataset, seed, design.label_rate, design.overlap)
    return stream, reading.setup(stream, dataset.name, buffer_size=LEAST_BUFFER, label_rate=design.label_rate)


def run_part(part: Part, stream: TwoSpaceStream, setup: Setup) -> Track:
    """Run one learner along a stream, kept as the part says."""
    own = replace(
        setup,
        old=part.kept.applied(setup.old),
        new=part.kept.applied(setup.new),
        buffer_size=part.rows,
        precision=part.kept.precision,
    )
    method = ALONE[part.side]
    run = run_methods(stream, own, methods=[method], seed=part.seed)[method]
    return run.scores, run.risks


def hedged_accuracy(stream: TwoSpaceStream, setup: Setup, reading: Reading, tracks: Sequence[Track]) -> float:
    """Return the accuracy over the third period of the hedge that follows these learners."""
    eta = Hedge.rate_for(len(stream.after_swap)) if setup.eta == "theory" else setup.eta
    scores, _, _ = Hedge(len(tracks), eta=eta).run(
        np.column_stack([scores for scores, _ in tracks]), np.column_stack([risks for _, risks in tracks])
    )
    y = stream.y[stream.t1 :]
    right = scores * y > 0.0 if reading.zero_score == "error" else (scores >= 0.0) == (y > 0.0)
    return float(np.mean(right))


# -- a budget that changes
