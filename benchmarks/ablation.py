"""What each part of the default is worth: accuracy with it less accuracy without it, on the same streams.

The parts: what unlabelled rows teach (ties between kept rows, and the paper's learner), the map fitted also
on rows without the old features (against inverting the overlap's regression, and against plain ridge), what
it makes of how the old ones are read (their units, and where they are 0), a linear expert to which features
count by how evenly they vary, experts that see the new space white, new experts that are taught by the old
ones, labels that are matched, and the factors that make experts as sure as they are right. The default in
64 KiB; streams of the study (seeds from 200 on), but more of them: a part's worth is small beside what the
seeds differ by.

    SF2EL_DATA=FOLDER python benchmarks/ablation.py [--seeds 100] [--jobs 2] [--rates 0.3 0.05 0.02]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded: a process a core
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from sf2el import SF2EL  # noqa: E402
from sf2el.datasets import load  # noqa: E402
from sf2el.experts.posterior import PosteriorSettings  # noqa: E402
from sf2el.maps import joint_map as maps  # noqa: E402
from sf2el.mixing import weights  # noqa: E402
from sf2el.model import bank as recipe  # noqa: E402
from sf2el.streams import stream_for  # noqa: E402

DATASETS = ("credit-a", "diabetes", "svmguide3", "swiss", "htru_2", "magic04")
LARGE = ("htru_2", "magic04")
FIRST_SEED, OVERLAP = 200, 10
SURENESS = "sureness"


class Job(NamedTuple):
    """One stream, and what the model goes without."""

    without: str
    dataset: str
    rate: float
    seed: int


@contextmanager
def bank_of(change: Callable[[Any], Any]) -> Any:
    """The bank with every entry changed, or left out where the change gives None."""
    entries = tuple(changed for entry in recipe.BANK if (changed := change(entry)) is not None)
    with patch.object(recipe, "BANK", entries):
        yield


def ridge(known: Any, divisor: float, backend: str | None) -> Any:
    """Regress the old features on the new ones, standardised, without a doubt of it."""
    new, rows, covariance = known.new_dim, known.rows, np.asarray(known.covariance)
    deviation = np.sqrt(np.maximum(np.diagonal(covariance)[:new], 0.0))
    inverse = np.divide(1.0, deviation, out=np.zeros(new), where=deviation > 1e-12)
    own = rows * covariance[:new, :new] * np.outer(inverse, inverse)
    both = rows * covariance[:new, new:] * inverse[:, None]
    found = np.linalg.solve(own + 0.1 * np.eye(new), both)
    mean = np.asarray(known.mean)
    return np.column_stack([(inverse[:, None] * found).T, mean[new:]]), mean[:new].copy(), 0.0


WITHOUT: dict[str, Callable[[], Any]] = {
    "what unlabelled rows teach": lambda: bank_of(
        lambda entry: None if entry.paper else replace(entry, ties=False)
    ),
    "ties": lambda: bank_of(lambda entry: replace(entry, ties=False)),
    "the paper's learner": lambda: bank_of(lambda entry: None if entry.paper else entry),
    "later rows in the map": lambda: patch.object(maps.JointMap, "_shown", lambda self, new: None),
    "how old features are read": lambda: patch.object(maps, "as_read", lambda space: None),
    "the Gaussian map (ridge)": lambda: patch.object(maps, "gaussian_map", ridge),
    "matched labels": lambda: patch.object(
        recipe, "PosteriorSettings", lambda **known: PosteriorSettings(**(known | {"matched": False}))
    ),
    "teaching": lambda: patch.object(recipe, "taught", lambda space, outputs, y, weights, told: (y, weights)),
    "even features": lambda: patch.object(recipe, "pays_evenness", lambda space: False),
    "white experts": lambda: patch.object(recipe, "whiten", lambda self, stage: None),
    SURENESS: lambda: patch.object(weights, "sure_of", lambda task: False),
}


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
    with WITHOUT[job.without]():
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
        for without in ("", SURENESS):
            cells = []
            for dataset in DATASETS:
                own = [one for job, one in found.items() if job[:3] == (without, dataset, rate)]
                cells.append(f"{np.mean([one.certainty - one.accuracy for one in own]):+.3f}")
            said = "mean probability of what it says less accuracy"
            table.add_row(f"{said}, without sureness" if without else said, *cells)
        Console(width=150).print(table)


if __name__ == "__main__":
    main()
