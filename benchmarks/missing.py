"""Accuracy where values are missing at random: the default in 64 KiB against the best of four of river's.

    SF2EL_DATA=FOLDER python benchmarks/missing.py [SET ...] [--seeds 3] [--rows N] [--jobs 2]

Datasets are the paper's (``sf2el datasets fetch``), their rows scaled to [0, 1] and in random order, each
value there in 25, 50 or 75 % of the rows. Per cell, the best is the one with the highest mean over the seeds,
chosen in hindsight.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded: a process a core
    os.environ.setdefault(threads, "1")

from streams_varied import accuracies, masked, told, write_runs  # noqa: E402

from sf2el.datasets import load  # noqa: E402

SETS = ("magic04", "diabetes", "svmguide3", "credit-a")
PRESENT = (0.25, 0.5, 0.75)
RIVALS = ("scaled logistic", "logistic", "GaussianNB", "BernoulliNB")


def run(job: tuple[str, float, float, int], rows: int) -> dict[str, float]:
    name, present, rate, seed = job
    data = load(name)
    return accuracies(masked(data.old, data.y > 0, seed, present)[:rows], rate, seed, RIVALS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="all of the four by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--rows", type=int, default=1 << 20, help="at most so many rows of a stream; all by default"
    )
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every run")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    jobs = list(product(given.sets or SETS, PRESENT, given.rates, seeds))
    with ProcessPoolExecutor(given.jobs) as pool:
        found = list(pool.map(run, jobs, [given.rows] * len(jobs)))
    cells: dict[tuple[str, float], list[dict[str, float]]] = {}
    for (name, present, rate, _), one in zip(jobs, found, strict=True):
        cells.setdefault((f"{name}, {present:.0%} there", rate), []).append(one)
    print(told(cells))
    write_runs(given.json, jobs, found)


if __name__ == "__main__":
    main()
