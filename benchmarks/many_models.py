"""Ten thousand models of 4 KiB in one process: the resident memory, and where what is not the models goes."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from sf2el import SF2EL

MODELS = 10_000
BUDGET = 4096
FEATURES = 10
ROWS = 60
TWO_SPACES = 4
"""Every fourth model has lost its first features."""
TARGET_MIB = 100.0

SHARED = (type, ModuleType, FunctionType)


def resident() -> int:
    """Return the bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def data() -> tuple[np.ndarray, np.ndarray, list[int | None]]:
    """Return rows of an old space, the same rows in a new one, and labels, a third of them known."""
    rng = np.random.default_rng(0)
    old = rng.normal(size=(ROWS, FEATURES))
    new = old @ rng.normal(size=(FEATURES, FEATURES))
    labels = [int(row[0] > 0) if rng.random() < 0.34 else None for row in old]
    return old, new, labels


OLD, NEW = [f"old_{j}" for j in range(FEATURES)], [f"new_{j}" for j in range(FEATURES)]


def build(seed: int, old: np.ndarray, new: np.ndarray, labels: list[int | None]) -> SF2EL:
    """Return a model that has learned its rows, every fourth through two spaces."""
    model = SF2EL(budget=BUDGET, seed=seed)
    if seed % TWO_SPACES:
        model.learn_many(old, labels, features=OLD)
        return model
    model.learn_many(old[:30], labels[:30], features=OLD)
    model.learn_many(np.hstack([old, new])[30:40], labels[30:40], features=OLD + NEW)
    model.learn_many(new[40:], labels[40:], features=NEW)
    return model


def objects(model: SF2EL, shared: set[int]) -> Counter[str]:
    """Return the bytes of the Python objects that only this model holds, by type."""
    sizes: Counter[str] = Counter()
    seen, waiting = set(shared), [(model, "")]
    while waiting:
        thing, owner = waiting.pop()
        if id(thing) in seen or isinstance(thing, SHARED):
            continue
        seen.add(id(thing))
        name = type(thing).__name__
        label = f"{owner}.__dict__" if isinstance(thing, dict) and owner else name
        sizes[label] += sys.getsizeof(thing) + (16 if gc.is_tracked(thing) else 0)
        held = list(gc.get_referents(thing))
        own = getattr(thing, "__dict__", None)
        if isinstance(own, dict):
            held.append(own)
        waiting += [(part, name) for part in held]
    return sizes


def graph(model: SF2EL) -> set[int]:
    """Return the identities of everything reachable from a model, classes and modules apart."""
    seen: set[int] = set()
    waiting: list[Any] = [model]
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and not isinstance(thing, SHARED):
            seen.add(id(thing))
            waiting += gc.get_referents(thing)
    return seen


def tell(title: str, model: SF2EL, other: SF2EL) -> None:
    """Print where the bytes of one model's objects are; what another model also holds is not its own."""
    sizes = objects(model, graph(other))
    used = model.memory_usage()
    print(f"\n{title}: {used:,} bytes of numbers, {sum(sizes.values()):,} of Python objects (sys.getsizeof)")
    for name, size in sizes.most_common(14):
        print(f"  {size:7,}  {name}")


def main() -> int:
    """Measure and print; return 1 if the target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="?", type=int, default=MODELS)
    count = parser.parse_args().models
    given = data()
    warm = [build(seed, *given) for seed in range(2)]  # scratch, caches, lazily imported modules
    gc.collect()
    before = resident()
    models = [build(seed + 2, *given) for seed in range(count)]
    gc.collect()
    taken = resident() - before
    numbers = sum(model.memory_usage() for model in models)
    mib = taken / 2**20
    print(f"{count:,} models of {BUDGET} bytes, {FEATURES} features, {ROWS} rows each")
    print(
        f"resident above the import {mib:.1f} MiB (target {TARGET_MIB:.0f}): "
        f"{taken / count:,.0f} bytes a model"
    )
    print(f"numbers in the models     {numbers / 2**20:.1f} MiB: {numbers / count:,.0f} bytes a model")
    print(f"everything else           {(taken - numbers) / count:,.0f} bytes a model")
    tell("a model in one space", warm[1], models[1])
    tell("a model in its second space", warm[0], models[2])
    return 0 if mib < TARGET_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
