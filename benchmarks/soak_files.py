"""Files by the hundred thousand that are no models any more: is there one that does harm?"""

from __future__ import annotations

import argparse
import resource
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from hostile import MAKERS, MUTATIONS, made, tried

MUTATED = 100_000
SLOW = 2.0


def main() -> int:
    """Mutate, read, use; print what came of it; return 1 if anything but a model or a ValueError did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutated", nargs="?", type=int, default=MUTATED)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for files that did harm")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(given.seed)
    files = {name: (type(model), model.to_bytes()) for name in MAKERS for model in [made(name)]}
    names, counts, harms = list(files), Counter[str](), Counter[str]()
    before, start, slowest = _peak(), perf_counter(), 0.0
    for number in range(given.mutated):
        cls, data = files[names[number % len(names)]]
        mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        data = mutation(data, rng)
        began = perf_counter()
        try:
            counts[f"{mutation.__name__}: {'read' if tried(cls, data) else 'refused'}"] += 1
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            harms[f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"[:160]] += 1
            if given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{len(harms)}.sf2el").write_bytes(data)
        slowest = max(slowest, perf_counter() - began)
    for text, count in sorted(counts.items()):
        print(f"{text:<24}{count:>8,}")
    print(f"{'other errors':<24}{harms.total():>8,}")
    for text, count in harms.most_common():
        print(f"    {count:>6,} {text}")
    print(f"{'slowest file':<24}{slowest:>8.3f} s")
    print(f"{'memory at its peak':<24}{(_peak() - before) / 2**20:>8.1f} MiB more than before")
    print(f"{'seconds':<24}{perf_counter() - start:>8.1f}")
    return 1 if harms or slowest > SLOW else 0


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
