"""A whole round of a learner against its bare arithmetic in C++ (bare.cpp), at four buffer sizes.

The bare program does two b x b products a round, whatever the learner does: with on_skip="project" the
learner also needs two (one with the Gram matrix, one with its inverse), with "drop" one. Both are compiled
with the same flags, those of cmake/flags.cmake, and for the same instruction set.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from common import DIM, RESULTS, ROOT, Row, fastest, learner_settings, main, slower, stream

from sf2el.core import native, variant
from sf2el.paper.learner import build_learner

SIZES = (20, 60, 200, 1000)
TARGET = 2.0
ROUNDS = 20_000
TURNS, REPEATS = 6, 20


def measure() -> list[Row]:
    program, built = compile_bare()
    return [row for b in SIZES for row in measure_size(b, program, built)]


def measure_size(b: int, program: Path, built: str) -> list[Row]:
    X, _, y = stream(ROUNDS)
    window = max(200, 3_000_000 // (b * b + 600))
    learners: dict[str, Any] = {}

    def from_empty(on_skip: str) -> Any:
        learners[on_skip] = build_learner(learner_settings(on_skip), DIM, b, 0)
        return lambda: learners[on_skip].run(X, y)

    def going_on(on_skip: str) -> Any:
        copy = learners[on_skip].copy()
        return lambda: copy.run(X[:window], y[:window])

    skips = ("drop", "project")
    whole = fastest({skip: partial(from_empty, skip) for skip in skips}, 1 if b >= 1000 else 3)
    # In turns with the bare program, the same short window again and again: some repeats are undisturbed.
    bare, steady = float("inf"), dict.fromkeys(skips, float("inf"))
    for _ in range(TURNS):
        bare = min(bare, run_bare(program, b))
        took = fastest({skip: partial(going_on, skip) for skip in skips}, REPEATS if b < 1000 else 4)
        steady = {skip: min(steady[skip], took[skip]) for skip in skips}
    return [
        slower(
            f"bare arithmetic, b = {b}",
            f"run(), {skip}, {when}",
            f"bare C++ ({built})",
            seconds[skip] / rounds * 1e6,
            bare,
            most=target,
            note=NOTE,
        )
        for skip in skips
        for when, seconds, rounds, target in (
            ("steady", steady, window, TARGET),
            ("whole stream", whole, ROUNDS, None),
        )
    ]


NOTE = (
    f"bare arithmetic: d = {DIM}, manifold term on. Whole stream: {ROUNDS:,} rounds from an empty buffer. "
    f"Steady: the rounds after those, where a row still enters the buffer in b of {ROUNDS:,} rounds "
    "(1 in 1000 at b = 20, 1 in 20 at b = 1000)."
)


def compile_bare() -> tuple[Path, str]:
    """Build bare.cpp as the core was built; return the program and a word on the instruction set."""
    compiler = shutil.which(os.environ.get("CXX", "c++")) or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise SystemExit("No C++ compiler was found: install g++ or clang++, or set CXX.")
    wide = native().wide_usable() if variant() == "auto" else variant() == "wide"
    RESULTS.mkdir(exist_ok=True)
    program = RESULTS / ("bare_wide" if wide else "bare_base")
    flags = [*deterministic_flags(), *(["-mavx2"] if wide else [])]
    source = ROOT / "benchmarks" / "bare.cpp"
    subprocess.run(
        [compiler, "-std=c++17", *flags, f"-I{ROOT / 'native'}", str(source), "-o", str(program)], check=True
    )
    return program, "AVX2" if wide else "baseline"


def deterministic_flags() -> list[str]:
    """The flags the core is built with, read where they are declared."""
    text = (ROOT / "cmake" / "flags.cmake").read_text()
    found = re.search(r"set\(SF2EL_DETERMINISTIC_FLAGS ([^)]*)\)", text)
    if found is None:
        raise SystemExit("cmake/flags.cmake sets no SF2EL_DETERMINISTIC_FLAGS any more: adapt bare.py.")
    return found.group(1).split()


def run_bare(program: Path, b: int) -> float:
    """Microseconds a round of the bare program."""
    done = subprocess.run([str(program), str(b)], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[1])


if __name__ == "__main__":
    main(measure, __doc__)
