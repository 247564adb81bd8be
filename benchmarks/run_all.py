"""Run every benchmark, each in a process of its own; print one table and write results/bench.json."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import RESULTS, Row, load, save, show

SCRIPTS = ("per_row", "bare", "openmoa_fesl", "flat", "threads")


def run(script: str, folder: Path) -> list[Row]:
    out = folder / f"{script}.json"
    path = Path(__file__).with_name(f"{script}.py")
    print(f"{script} ...", flush=True)
    done = subprocess.run(
        [sys.executable, str(path), "--json", str(out)], check=False, capture_output=True, text=True
    )
    if done.returncode == 0:
        return load(out)
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return [Row(script, "-", "-", note=f"{script}: failed: {last}")]


def main() -> int:
    busy = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for script in SCRIPTS for row in run(script, Path(folder))]
    show(rows, "Benchmarks")
    save(rows, RESULTS / "bench.json")
    missed = sum(row.met is False for row in rows)
    unmeasured = sum(row.ratio is None for row in rows)
    print(f"{sum(row.met is True for row in rows)} targets met, {missed} missed, {unmeasured} not measured.")
    if busy > 0.5:
        print(
            f"The load average was {busy:.1f} at the start: if something else was running, run again alone."
        )
    print(f"Written: {RESULTS / 'bench.json'}")
    return 1 if any(row.ours == "-" for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
