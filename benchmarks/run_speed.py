"""Rows per second of ``sf2el run`` on magic04 as CSV: the published algorithm, and the default model."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from sf2el.datasets import DatasetMissing, load

VARIANTS = {"--paper --buffer 60": ["--paper", "--buffer", "60"], "default, 64 KiB": []}


def write_csv(path: Path, folder: Path | None) -> int:
    """Write magic04, shuffled once, as a CSV file with a header; return its rows."""
    data = load("magic04", folder)
    order = np.random.default_rng(0).permutation(len(data.y))
    names = [f"f{place}" for place in range(data.old.shape[1])]
    with path.open("w") as file:
        file.write(",".join([*names, "class"]) + "\n")
        for row, label in zip(data.old[order].tolist(), data.y[order].tolist(), strict=True):
            file.write(",".join([*(f"{value:.6g}" for value in row), "g" if label > 0 else "h"]) + "\n")
    return len(order)


def main() -> None:
    """Measure each variant several times; print the fastest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("SF2EL_DATA"))
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            rows = write_csv(folder / "magic04.csv", given.data_dir)
        except DatasetMissing as missing:
            print(f"Not measured. {missing}")
            return
        for title, options in VARIANTS.items():
            whole, inside, accuracy = float("inf"), 0.0, 0.0
            for _ in range(given.repeats):
                command = [
                    sys.executable,
                    "-m",
                    "sf2el",
                    "run",
                    str(folder / "magic04.csv"),
                    "--label",
                    "class",
                ]
                start = time.perf_counter()
                subprocess.run(
                    [*command, "--out", str(folder / "out"), *options], check=True, stdout=subprocess.DEVNULL
                )
                whole = min(whole, time.perf_counter() - start)
                summary = json.loads((folder / "out" / "summary.json").read_text())
                inside = max(inside, summary["time"]["rows_per_second"])
                accuracy = summary["metrics"]["accuracy"]
            print(
                f"{title:<22}{inside:>10,.0f} rows/s reading, predicting, learning and writing; "
                f"{rows / whole:>8,.0f} rows/s from the start of Python to the page ({whole:.2f} s); "
                f"accuracy {accuracy:.4f}"
            )


if __name__ == "__main__":
    main()
