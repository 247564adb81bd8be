"""Memory of ``sf2el run`` by the length of its data: it should not grow with the rows."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SHORT, LONG = 10_000, 10_000_000
BLOCK = 10_000


def write_rows(out: object, rows: int) -> None:
    """Write a CSV whose features are replaced half-way, a block at a time."""
    rng = np.random.default_rng(0)
    names = [f"old_{i}" for i in range(4)] + [f"new_{i}" for i in range(4)]
    out.write((",".join([*names, "class"]) + "\n").encode())  # type: ignore[attr-defined]
    mix = rng.normal(size=(4, 4))
    for first in range(0, rows, BLOCK):
        X = rng.normal(size=(min(BLOCK, rows - first), 4))
        Z = X @ mix
        labels = np.where(rng.random(len(X)) < 0.3, np.where(X[:, 0] * X[:, 1] > 0, "a", "b"), "")
        lines = []
        for t, (old, new, label) in enumerate(zip(X.tolist(), Z.tolist(), labels, strict=True), start=first):
            before = ",".join(f"{v:.4f}" for v in old) if t < rows // 2 else ",,,"
            after = ",".join(f"{v:.4f}" for v in new) if t >= rows // 2 - 100 else ",,,"
            lines.append(f"{before},{after},{label}\n")
        out.write("".join(lines).encode())  # type: ignore[attr-defined]


def measure(rows: int, folder: Path, options: list[str], *, pipe: bool) -> tuple[float, float]:
    """Return the largest resident set, in MiB, and the seconds of a run over so many rows."""
    path = folder / "rows.csv"
    command = [sys.executable, "-m", "sf2el", "run", "-" if pipe else str(path), "--label", "class"]
    command += ["--out", str(folder / "out"), "--save", str(folder / "model"), *options]
    timed = ["/usr/bin/env", "python3", "-c", TIMER, *command]
    start = time.monotonic()
    if pipe:
        process = subprocess.Popen(timed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
        assert process.stdin is not None
        write_rows(process.stdin, rows)
        process.stdin.close()
        out = process.stdout.read().decode() if process.stdout else ""
        process.wait()
    else:
        with path.open("wb") as file:
            write_rows(file, rows)
        start = time.monotonic()
        out = subprocess.run(timed, check=True, capture_output=True, text=True).stdout
    found = re.search(r"peak KiB (\d+)", out)
    assert found is not None, out
    return int(found[1]) / 1024, time.monotonic() - start


TIMER = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], check=True)\n"
    "print('peak KiB', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
)


def main() -> int:
    """Measure a short and a long run; return 1 if the long one takes more than 16 MiB more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", type=int, default=SHORT)
    parser.add_argument("--long", type=int, default=LONG)
    parser.add_argument("--pipe", action="store_true", help="through standard input, not a file")
    parser.add_argument("--budget", default="16KiB")
    given = parser.parse_args()
    peaks = []
    for rows in (given.short, given.long):
        with tempfile.TemporaryDirectory() as name:
            peak, seconds = measure(rows, Path(name), ["--budget", given.budget], pipe=given.pipe)
        print(f"{rows:>12,} rows: at most {peak:.1f} MiB resident, {seconds:.1f} s", flush=True)
        peaks.append(peak)
    print(f"{peaks[1] - peaks[0]:+.1f} MiB")
    return 1 if peaks[1] - peaks[0] > 16.0 else 0


if __name__ == "__main__":
    sys.exit(main())
