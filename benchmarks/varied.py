"""Accuracy where rows differ or the concept moves: the default in 64 KiB against the best of five of river's.

    python benchmarks/varied.py [STREAM ...] [--seeds 3] [--first 0] [--rates 1 .1] [--jobs 2] [--json FILE]

The streams are those of ``streams_varied.py``. Per cell, the best is the one with the highest mean over the
seeds, chosen in hindsight.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded: a process a core
    os.environ.setdefault(threads, "1")

from streams_varied import STREAMS, accuracies, told, write_runs  # noqa: E402

RIVALS = ("scaled logistic", "logistic", "BernoulliNB", "GaussianNB", "HoeffdingTree")


def run(job: tuple[str, float, int]) -> dict[str, float]:
    name, rate, seed = job
    return accuracies(STREAMS[name](seed), rate, seed, RIVALS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("streams", nargs="*", metavar="STREAM", help="all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every run")
    given = parser.parse_args()
    if not set(given.streams) <= STREAMS.keys():
        parser.error(f"streams are {', '.join(STREAMS)}.")
    seeds = range(given.first, given.first + given.seeds)
    jobs = list(product(given.streams or STREAMS, given.rates, seeds))
    with ProcessPoolExecutor(given.jobs) as pool:
        found = list(pool.map(run, jobs))
    cells: dict[tuple[str, float], list[dict[str, float]]] = {}
    for (name, rate, _), one in zip(jobs, found, strict=True):
        cells.setdefault((name, rate), []).append(one)
    print(told(cells))
    write_runs(given.json, jobs, found)


if __name__ == "__main__":
    main()
