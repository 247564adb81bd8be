"""How long a single call can take, what it takes in memory meanwhile, and what a budget buys: as tables.

A stream of rows with the features of one space, some with those of two, then with those of the other; a
third of the rows are labelled. Every stream is gone through several times and the fastest of each call is
kept: what another program does meanwhile can only slow a call down. Memory is counted by a malloc of our own,
which asks for a C compiler and glibc.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from sf2el import SF2EL
from sf2el.experts.kinds import code_of

KIB = 1024
SIZES = ((10, 16), (60, 64))
"""Features of each space, and KiB."""
STREAMS, REPEATS = 30, 3
OLD, BOTH, NEW = 400, 60, 1_040
LABEL_RATE = 0.3
BUYS = (8, 25, 60, 200), (2, 4, 16, 64)

TABLES = {
    "latency": "microseconds: median / 99.9 % / most",
    "memory": "most bytes in one call beside what was there before it; then `memory_overhead`, largest file",
    "buys": "experts in the first space, and after a change of features",
}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "howto" / "memory.md"

PHASES = {
    "old": "old features",
    "opening": "new features are taken up",
    "overlap": "both",
    "swap": "old features are given up",
    "new": "new features",
}

Row = tuple[dict[str, float], str | None]

COUNTER = """
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t), __libc_free(void *);
static long live, most;
static void *in(void *p) {
    if (p) live += malloc_usable_size(p);
    if (live > most) most = live;
    return p;
}
static void out(void *p) { if (p) live -= malloc_usable_size(p); }
void *malloc(size_t n) { return in(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return in(__libc_calloc(n, size)); }
void *realloc(void *p, size_t n) { out(p); return in(__libc_realloc(p, n)); }
void *memalign(size_t a, size_t n) { return in(__libc_memalign(a, n)); }
void *aligned_alloc(size_t a, size_t n) { return in(__libc_memalign(a, n)); }
int posix_memalign(void **p, size_t a, size_t n) { return (*p = in(__libc_memalign(a, n))) ? 0 : ENOMEM; }
void free(void *p) { out(p); __libc_free(p); }
long begin_counting(void) { return most = live; }
long most_counted(void) { return most; }
"""


def stream(features: int, seed: int, counts: tuple[int, int, int] = (OLD, BOTH, NEW)) -> list[Row]:
    """Return rows through two spaces of so many features each; the new ones are mixtures of the old ones."""
    rng = np.random.default_rng(seed)
    old, both, new = counts
    z = rng.normal(size=(old + both + new, features))
    mixed = z + 0.5 * np.roll(z, 1, axis=1)
    truth = z[:, 0] * z[:, 1] + z[:, 2] > 0.0
    labelled = rng.random(len(z)) < LABEL_RATE
    rows = []
    for t in range(len(z)):
        x = {f"old{j}": float(v) for j, v in enumerate(z[t])} if t < old + both else {}
        x |= {f"new{j}": float(v) for j, v in enumerate(mixed[t])} if t >= old else {}
        rows.append((x, ("a" if truth[t] else "b") if labelled[t] else None))
    return rows


def phase_of(model: Any, before: tuple[int, bool]) -> str:
    """Return what a row has brought to a model that was at ``before``."""
    index, opened = where(model)
    if index > before[0]:
        return "swap"
    if opened != before[1]:
        return "opening"
    if index == 0:
        return "overlap" if opened else "old"
    return "new"


def where(model: Any) -> tuple[int, bool]:
    """Return the number of the current space, and whether another is beside it."""
    state = model._engine.state
    if not state.spaces:
        return 0, False
    here = state.spaces - (2 if state.incoming and not state.vanished else 1)
    return int(state.space(here)[3]), bool(state.incoming and not state.vanished)


# ---- time


def times(budget: int, rows: list[Row], seed: int) -> Iterator[tuple[str, int, int]]:
    """Yield the phase of every row, and the nanoseconds of predicting and of learning it."""
    model = SF2EL(budget=budget, seed=seed)
    for x, y in rows:
        before = where(model)
        start = perf_counter_ns()
        model.predict_one(x)
        middle = perf_counter_ns()
        model.learn_one(x, y)
        end = perf_counter_ns()
        yield phase_of(model, before), middle - start, end - middle


def latency(features: int, kib: int) -> list[list[str]]:
    """Return median, 99.9 % quantile and maximum of each call in each phase, in microseconds."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    rows_in: Counter[str] = Counter()
    for seed in range(STREAMS):
        rows = stream(features, seed)
        gc.collect()
        gc.disable()
        runs = [list(times(kib * KIB, rows, seed)) for _ in range(REPEATS)]
        gc.enable()
        for t, ((_, y), calls) in enumerate(zip(rows, zip(*runs, strict=True), strict=True)):
            if t < 20:
                continue
            phase = calls[0][0]
            rows_in[phase] += 1
            found[phase, "predict"].append(min(call[1] for call in calls) / 1e3)
            found[phase, "unlabelled" if y is None else "labelled"].append(
                min(call[2] for call in calls) / 1e3
            )
    return [
        [text, f"{rows_in[phase]:,}"]
        + [_quantiles(found[phase, call]) for call in ("predict", "labelled", "unlabelled")]
        for phase, text in PHASES.items()
    ]


def _quantiles(values: list[float]) -> str:
    if not values:
        return "-"
    return " / ".join(f"{v:,.0f}" for v in (np.median(values), np.quantile(values, 0.999), max(values)))


# ---- memory


def memory() -> list[list[str]]:
    """Return the most bytes that a call had beside what was there before, by phase; and of a saved file."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return []
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "counter.c"), Path(folder, "counter.so")
        source.write_text(COUNTER)
        command = [compiler, "-O1", "-shared", "-fPIC", "-fno-builtin", "-w", str(source), "-o", str(library)]
        if subprocess.run(command, check=False).returncode:
            return []
        more = {"LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc", "OPENBLAS_NUM_THREADS": "1"}
        table = []
        for features, kib in SIZES:
            command = [sys.executable, __file__, "--counted", f"{features},{kib}", str(library)]
            done = subprocess.run(
                command, env=os.environ | more, check=True, stdout=subprocess.PIPE, text=True
            )
            table.append(
                [f"{features} in {kib} KiB", *[f"{n:,}" if n else "-" for n in json.loads(done.stdout)]]
            )
    return table


def counted(features: int, kib: int, library: str) -> list[int]:
    """Return the bytes of one line of ``memory``, in a process that counts them."""
    counter = ctypes.CDLL(library)
    begin, most = counter.begin_counting, counter.most_counted
    begin.restype = most.restype = ctypes.c_long
    found: Counter[str] = Counter()
    rows = stream(features, 0)
    for _ in range(2):  # what is kept for good, such as scratch, is there the second time
        found.clear()
        model = SF2EL(budget=kib * KIB, seed=0)
        model.learn_one(*rows[0])
        file = 0
        for t, (x, y) in enumerate(rows[1:]):
            before = where(model)
            start = begin()
            model.predict_one(x)
            predicted = most() - start
            start = begin()
            model.learn_one(x, y)
            taken = max(predicted, most() - start)
            phase = phase_of(model, before)
            found[phase] = max(found[phase], taken)
            if t % 50 == 0:
                file = max(file, len(model.to_bytes()))
    overhead = model.memory_overhead()
    return [*[found[phase] for phase in PHASES], overhead["peak"], overhead["wrapper"], file]


# ---- what a budget buys


def buys(features: int, kib: int) -> list[str]:
    """Return the experts of a model before and after a change of features, and whether there is a map."""
    model = SF2EL(budget=kib * KIB, seed=0)
    rows = stream(features, 0, (300, 40, 100))
    try:
        for x, y in rows[:300]:
            model.learn_one(x, y)
    except ValueError:
        return [str(features), f"{kib} KiB", "refused", "", "", ""]
    first = _experts(model, "current")
    try:
        for x, y in rows[300:]:
            model.learn_one(x, y)
    except ValueError:
        return [str(features), f"{kib} KiB", first, "refused", "", ""]
    state = model._engine.state
    past, psi = _experts(model, "recovered"), state.map(state.spaces - 2) if state.spaces > 1 else None
    kind = "none" if psi is None else {1: "16 bits a number", 2: "32 bits a number"}.get(psi[4], "none")
    if psi is not None and not psi[6]:
        kind += ", not fitted again"
    return [str(features), f"{kib} KiB", first, _experts(model, "current"), past, kind]


def _experts(model: Any, role: str) -> str:
    """Return the experts of a space: radial ones with their number of functions, then the others."""
    engine = model._engine
    codes = [
        code_of(code)
        for space in range(engine.state.spaces)
        if engine.role(space) == role
        for code, *_ in engine.state.experts(space)
    ]
    radial = sorted({code.size for code in codes if code.size})
    count = sum(1 for code in codes if code.size)
    found = [f"{count} radial of {'/'.join(map(str, radial))}"] if radial else []
    return ", ".join(found + [code.name for code in codes if not code.size]) or "none"


# ---- printing


def table(head: list[str], rows: list[list[str]], align: str = "---:") -> str:
    """Return a table as Markdown, all but the first column aligned so."""
    rule = ["---", *[align] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


def printed(name: str) -> str:
    """Return a table by name."""
    if name == "buys":
        head = ["features", "budget", "first space", "then: new features", "vanished features", "map"]
        return table(head, [buys(features, kib) for features in BUYS[0] for kib in BUYS[1]], "---")
    if name == "memory":
        return table(["bytes", *PHASES.values(), "`peak`", "`wrapper`", "file"], memory())
    head = ["rows with", "how many", "`predict_one`", "`learn_one`, a label", "`learn_one`, none"]
    return "\n\n".join(
        f"{features} features in {kib} KiB:\n\n{table(head, latency(features, kib))}"
        for features, kib in SIZES
    )


def main() -> None:
    """Print the tables that were asked for, else all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; all by default")
    parser.add_argument("--write", action="store_true", help=f"also write them to {PAGE.name}")
    parser.add_argument("--counted", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.counted:
        features, kib = map(int, given.counted[0].split(","))
        print(json.dumps(counted(features, kib, given.counted[1])))
        return
    if not set(given.tables) <= TABLES.keys():
        parser.error(f"tables are {', '.join(TABLES)}.")
    for name in given.tables or TABLES:
        text = printed(name)
        print(f"{TABLES[name]}\n\n{text}\n", flush=True)
        if given.write:
            begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
            before, rest = PAGE.read_text().split(begin)
            PAGE.write_text(f"{before}{begin}\n{text}\n\n{end}{rest.split(end)[1]}")


if __name__ == "__main__":
    main()
