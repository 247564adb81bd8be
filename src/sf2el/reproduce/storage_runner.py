"""What a byte is worth: the runs, each learner along each stream once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.datasets import Dataset
from sf2el.mixing.hedge import Hedge
from sf2el.paper.methods import Setup, run_methods
from sf2el.paper.settings import LEAST_BUFFER
from sf2el.reproduce.changing_budget import changing_budget, changing_dataset
from sf2el.reproduce.readings import Reading
from sf2el.reproduce.statistics import mean_std
from sf2el.reproduce.storage import Storage
from sf2el.reproduce.storage_design import Design, Entry, Part, Side
from sf2el.streams import TwoSpaceStream, stream_for

Floats = npt.NDArray[np.float64]

ALONE: dict[Side, str] = {"old": "uROGD+MR", "new": "NOGD+MR"}
"""The method that follows only the learner of a space: SF2EL is the hedge of the two."""

Track = tuple[Floats, Floats]
"""Scores and risks of a learner along the third period."""


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
