"""What each part of the default is worth: accuracy with it less accuracy without it, on the same streams.

A part is left out of every plan: experts of a kind, a view or a rate of forgetting, what spaces keep of how
their features vary together, or the map; its bytes are not used for anything else. The default in 64 KiB;
streams of the study (seeds from 200 on), but more of them: a part's worth is small beside what the seeds
differ by.

    SF2EL_DATA=FOLDER python benchmarks/ablation.py [--seeds 100] [--jobs 2] [--rates 0.3 0.05 0.02]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded: a process a core
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from sf2el import SF2EL  # noqa: E402
from sf2el.datasets import load  # noqa: E402
from sf2el.experts.kinds import Code, Kind, View  # noqa: E402
from sf2el.memory.ladder import Allocation, plan  # noqa: E402
from sf2el.model import strategy  # noqa: E402
from sf2el.streams import stream_for  # noqa: E402

DATASETS = ("credit-a", "diabetes", "svmguide3", "swiss", "htru_2", "magic04")
LARGE = ("htru_2", "magic04")
FIRST_SEED, OVERLAP = 200, 10


class Job(NamedTuple):
    """One stream, and what the model goes without."""

    without: str
    dataset: str
    rate: float
    seed: int


Change = Callable[[Allocation], Allocation]


def experts_without(leaves: Callable[[Code], bool]) -> Change:
    """Return a change that leaves out experts."""

    def change(found: Allocation) -> Allocation:
        spaces = tuple(
            own and own._replace(experts=tuple(code for code in own.experts if not leaves(code)))
            for own in found.spaces
        )
        return found._replace(spaces=spaces)

    return change


WITHOUT: dict[str, Change] = {
    "narrow radial functions": experts_without(lambda code: code.kind is Kind.NARROW),
    "wide radial functions": experts_without(lambda code: code.kind is Kind.WIDE),
    "an expert that forgets": experts_without(lambda code: code.rate > 0),
    "views of what is missing": experts_without(lambda code: code.view is not View.EXPECTED),
    "how features vary together": lambda found: found._replace(
        spaces=tuple(own and own._replace(related=False) for own in found.spaces)
    ),
    "the map": lambda found: found._replace(maps=(None,) * len(found.maps)),
}


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """Change every plan."""

    def without(*given: Any) -> Allocation | None:
        found = plan(*given)
        return None if found is None else change(found)

    with patch.object(strategy, "plan", without):
        yield


class Measured(NamedTuple):
    """After the features have changed: how often it was right, and how sure it was on average."""

    accuracy: float
    certainty: float


def measured(job: Job) -> Measured:
    """Return how right and how sure the default is on a stream."""
    stream = stream_for(load(job.dataset), job.seed, job.rate, OVERLAP)
    old, new, t1, overlap = stream.old, stream.new, stream.t1, stream.overlap
    labels = [int(y) if shown else None for y, shown in zip(stream.y, stream.labelled, strict=True)]
    names = [[f"{space}{i}" for i in range(X.shape[1])] for space, X in (("old", old), ("new", new))]
    model = SF2EL(budget="64KiB", seed=job.seed)
    model.learn_many(old[: t1 - overlap], labels[: t1 - overlap], features=names[0])
    beside = np.hstack([old[t1 - overlap :], new[:overlap]])
    model.learn_many(beside, labels[t1 - overlap : t1], features=names[0] + names[1])
    told = model.run_many(new[overlap:], labels[t1:], features=names[1])
    right = np.mean(told.prediction == stream.y[t1:].astype(int))
    return Measured(float(right), float(np.nanmean(told.probability)))


def run(job: Job) -> Measured:
    """Return what a job's model is worth."""
    if not job.without:
        return measured(job)
    with changed(WITHOUT[job.without]):
        return measured(job)


def main() -> None:
    """Run every model on every stream; print a table for each label rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="a quarter of them on the two large sets")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--rates", type=float, nargs="+", default=[0.3, 0.05, 0.02])
    given = parser.parse_args()
    jobs = [
        Job(without, dataset, rate, seed)
        for without in ("", *WITHOUT)
        for dataset in DATASETS
        for rate in given.rates
        for seed in range(FIRST_SEED, FIRST_SEED + given.seeds // (4 if dataset in LARGE else 1))
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = dict(zip(jobs, pool.map(run, jobs, chunksize=4), strict=True))
    for rate in given.rates:
        table = Table(title=f"label rate {rate:g}: with the part less without it (standard error)")
        table.add_column("part")
        for dataset in DATASETS:
            table.add_column(dataset, justify="right")
        for without in ("", *WITHOUT):
            cells = []
            for dataset in DATASETS:
                values = np.array(
                    [
                        found[job._replace(without="")].accuracy - one.accuracy if without else one.accuracy
                        for job, one in found.items()
                        if job[:3] == (without, dataset, rate)
                    ]
                )
                error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
                cells.append(f"{values.mean():{'+' if without else ''}.4f} ({error:.4f})")
            table.add_row(without or "accuracy of the default", *cells, end_section=not without)
        cells = []
        for dataset in DATASETS:
            own = [one for job, one in found.items() if job[:3] == ("", dataset, rate)]
            cells.append(f"{np.mean([one.certainty - one.accuracy for one in own]):+.3f}")
        table.add_row("mean probability of what it says less accuracy", *cells)
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
