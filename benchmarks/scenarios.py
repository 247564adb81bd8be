"""Every scenario of tests/scenarios.py on 30 seeds: is the model as good as the better of its parts alone?

In each block of 200 rounds after each swap, the accuracy of the model, of a new learner that begins at the
swap, and of the recovered experts alone, each averaged over the seeds. Exits 1 where the model is more than
.02 below the better of the two.

    python benchmarks/scenarios.py [--seeds 30] [--jobs 2] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is loaded: a process a core
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from scenarios import SCENARIOS, Blocks, fare  # noqa: E402

MOST_SHORT = 0.02


def run(job: tuple[int, int]) -> Blocks:
    place, seed = job
    return fare(SCENARIOS[place], seed)


def table(name: str, mean: Blocks) -> Table:
    found = Table(title=name, title_justify="left")
    for column in ("block", "model", "new alone", "recovered alone", "below the better"):
        found.add_column(column, justify="right")
    for i, short in enumerate(mean.short()):
        recovered = "-" if np.isnan(mean.recovered[i]) else f"{mean.recovered[i]:.3f}"
        colour = "red" if short > MOST_SHORT else "default"
        found.add_row(
            str(i + 1),
            f"{mean.model[i]:.3f}",
            f"{mean.fresh[i]:.3f}",
            recovered,
            f"[{colour}]{short:+.3f}[/]",
        )
    return found


def averaged(runs: Sequence[Blocks]) -> Blocks:
    """Mean over seeds; recovered experts count where most seeds have them."""
    model, fresh, recovered = (np.array(part) for part in zip(*runs, strict=True))
    there = np.mean(~np.isnan(recovered), axis=0) > 0.5
    mean = np.where(
        there, np.nansum(recovered, axis=0) / np.maximum(1, (~np.isnan(recovered)).sum(axis=0)), np.nan
    )
    return Blocks(model.mean(axis=0), fresh.mean(axis=0), mean)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of scenarios' names; all without")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "scenarios.json")
    args = parser.parse_args()
    places = [
        i for i, s in enumerate(SCENARIOS) if not args.names or any(name in s.name for name in args.names)
    ]
    console = Console()
    results: dict[str, Blocks] = {}
    with ProcessPoolExecutor(args.jobs) as pool:
        futures = {i: [pool.submit(run, (i, seed)) for seed in range(args.seeds)] for i in places}
        for i in places:
            name = SCENARIOS[i].name
            results[name] = averaged([future.result() for future in futures[i]])
            console.print(table(name, results[name]))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    content = {
        name: {key: np.round(part, 4).tolist() for key, part in mean._asdict().items()}
        for name, mean in results.items()
    }
    args.out.write_text(json.dumps({"seeds": args.seeds, "scenarios": content}, indent=1) + "\n")
    worst = max(results, key=lambda name: float(results[name].short().max()))
    short = float(results[worst].short().max())
    console.print(f"worst: {short:+.3f} in '{worst}'; at most {MOST_SHORT} is asked for")
    return int(short > MOST_SHORT)


if __name__ == "__main__":
    sys.exit(main())
