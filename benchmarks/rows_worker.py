"""What ``rows.py`` times, one block at a time: a process that is told a case and answers with its times.

    python benchmarks/rows_worker.py sf2el|river

Each line of standard input is ``[case, block]``, with ``block`` rows a block, and each line of standard
output the answer, a table of numbers. The first line says which versions answer. Only what every version of
sf2el has is used, so that one file times them all.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice, product
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

KIB = 1024
LABEL_RATE = 0.3
"""Of the rows that SF2EL learns; river learns each with its label."""
SEED, LABEL_SEED, CHANGE_SEEDS = 0, 1, (0, 1, 2)
WARM = 1_000
"""Rows learned before the first block."""
BEFORE, OLD, BOTH, NEW = 20, 400, 60, 60
"""Of a change: the last rows with old features that are timed too, and the rows of each part."""
CHANGES = (("no overlap", 0, 0.0), ("20 rows", 20, 0.0), ("200 rows", 200, 0.0), ("half stay", 20, 0.5))
"""Kinds of change: rows that have old and new features, and the share of features that stay."""
CHUNK, MANY_ROWS, THREAD_ROWS, FRESH = 500, 1_000, 20_000, 20

Row = dict[str, float]
Stream = Iterator[tuple[Row, Any]]


# ---- rows


def told(X: Any, kind: str) -> list[Any]:
    """Return a target for each of these numbers."""
    if kind == "numbers":
        return (X[:, 0] + X[:, 1] * X[:, 2]).tolist()
    if kind == "classes":
        return ["abc"[k] for k in X[:, :3].argmax(axis=1)]
    return [bool(v) for v in X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0.0]


def sensors(features: int, present: float = 1.0, kind: str = "labels", new_name: bool = False) -> Stream:
    """Yield rows of sensors that are each read so often; on wish each with a name that never comes again."""
    rng = np.random.default_rng(SEED)
    names, count = [f"feature_{j}" for j in range(features)], 0
    while True:
        X, there = rng.normal(size=(CHUNK, features)), rng.random((CHUNK, features)) < present
        there[:, 0] |= ~there.any(axis=1)
        for values, read, y in zip(X.tolist(), there.tolist(), told(X, kind), strict=True):
            x = {name: v for name, v, known in zip(names, values, read, strict=True) if known}
            if new_name:
                x[f"only_{count}"] = 1.0
            count += 1
            yield x, y


def words(vocabulary: int = 300, draws: int = 20) -> Stream:
    """Yield the different words of so many draws, with a value of 1; how common words are follows Zipf."""
    rng = np.random.default_rng(SEED)
    shift = 0.4 * rng.normal(size=vocabulary)
    odds = [np.exp(sign * shift) / np.arange(1, vocabulary + 1) for sign in (-1, 1)]
    while True:
        label = bool(rng.random() < 0.5)
        q = odds[label] / odds[label].sum()
        yield {f"word_{j}": 1.0 for j in np.unique(rng.choice(vocabulary, draws, p=q)).tolist()}, label


def change(features: int, seed: int = SEED, both: int | None = BOTH, shared: int = 0) -> Stream:
    """Yield rows with old features, with both kinds, with new ones; ``both`` None is without end."""
    rng = np.random.default_rng(seed)
    old = [f"shared_{j}" if j < shared else f"old_{j}" for j in range(features)]
    new = [f"shared_{j}" if j < shared else f"new_{j}" for j in range(features)]
    t = 0
    while True:
        Z = rng.normal(size=(CHUNK, features))
        mixed = Z + 0.5 * np.roll(Z, 1, axis=1)
        mixed[:, :shared] = Z[:, :shared]
        for z, m, y in zip(Z.tolist(), mixed.tolist(), told(Z, "labels"), strict=True):
            x = dict(zip(old, z, strict=True)) if both is None or t < OLD + both else {}
            yield (x | dict(zip(new, m, strict=True)) if t >= OLD else x), y
            t += 1


# ---- models


def ours(budget: int = 64 * KIB, kind: str = "labels") -> Any:
    from sf2el import SF2EL, SF2ELRegressor

    return (SF2ELRegressor if kind == "numbers" else SF2EL)(budget=budget, seed=SEED)


def rivers(kind: str) -> Any:
    from river import linear_model, preprocessing

    learners = {
        "labels": linear_model.LogisticRegression,
        "classes": linear_model.SoftmaxRegression,
        "numbers": linear_model.LinearRegression,
    }
    return preprocessing.StandardScaler() | learners[kind]()


def copied(model: Any) -> Any:
    return type(model).from_bytes(model.to_bytes())


def seconds(job: Callable[[], object]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start


# ---- cases: each is asked for block after block


class Rows:
    """predict_one and learn_one of each row of a stream that goes on from block to block."""

    def __init__(
        self, side: str, stream: Stream, budget: int = 64 * KIB, kind: str = "labels", warm: int = WARM
    ) -> None:
        self.model = rivers(kind) if side == "river" else ours(budget, kind)
        self.rate = 1.0 if side == "river" else LABEL_RATE
        self.stream, self.labels = stream, np.random.default_rng(LABEL_SEED)
        for x, y in self.next(warm):
            self.model.learn_one(x, y)

    def next(self, n: int) -> list[tuple[Row, Any]]:
        """Return the next rows, with the labels that are shown."""
        shown = self.labels.random(n) < self.rate
        return [(x, y if s else None) for (x, y), s in zip(islice(self.stream, n), shown, strict=True)]

    def block(self, n: int) -> dict[str, float]:
        return {"row": self.timed(self.model, self.next(n))}

    @staticmethod
    def timed(model: Any, rows: list[tuple[Row, Any]]) -> float:
        predict, learn = model.predict_one, model.learn_one
        start = perf_counter()
        for x, y in rows:
            predict(x)
            learn(x, y)
        return (perf_counter() - start) / len(rows)


class Overlap(Rows):
    """The same where every row has both kinds of features: rows 10 to 60 of an overlap, in every block."""

    def __init__(self, side: str, features: int) -> None:
        super().__init__(side, change(features, both=None), warm=OLD + 10)
        self.rows = self.next(50)

    def block(self, n: int) -> dict[str, float]:
        model = copied(self.model)
        model.predict_one(self.rows[0][0])
        return {"row": self.timed(model, self.rows)}


class Change:
    """Every call around changes of features, each the fastest of as many copies as there were blocks."""

    def __init__(self, side: str, features: int) -> None:
        self.runs, self.best = {}, {}
        for seed, (name, both, share) in product(CHANGE_SEEDS, CHANGES):
            stream, n = change(features, seed, both, int(share * features)), OLD + both + NEW
            shown = np.random.default_rng(LABEL_SEED + seed).random(n) < LABEL_RATE
            rows = [(x, y if s else None) for (x, y), s in zip(islice(stream, n), shown, strict=True)]
            model = ours()
            for x, y in rows[: OLD - BEFORE]:
                model.learn_one(x, y)
            place = f"{name}, seed {seed}"
            self.runs[place] = (type(model), model.to_bytes(), rows[OLD - BEFORE :])
            self.best[place] = np.full((2, BEFORE + both + NEW), np.inf)

    def block(self, n: int) -> dict[str, Any]:
        for place, (kind, saved, rows) in self.runs.items():
            model, took = kind.from_bytes(saved), np.empty((2, len(rows)))
            for t, (x, y) in enumerate(rows):
                start = perf_counter()
                model.predict_one(x)
                middle = perf_counter()
                model.learn_one(x, y)
                took[:, t] = middle - start, perf_counter() - middle
            self.best[place] = np.minimum(self.best[place], took)
        settled = np.concatenate([best[0, BEFORE // 2 : BEFORE] for best in self.best.values()])
        found: dict[str, Any] = {"settled predict": float(np.median(settled))}
        for i, call in enumerate(("predict", "learn")):
            most, place = max((float(best[i].max()), place) for place, best in self.best.items())
            at = int(self.best[place][i].argmax()) - BEFORE
            found |= {call: most, f"{call} at": f"{place}, {at} rows after new features came"}
        return found


class First:
    """The first learn_one of a new model, the fastest of some; and the same with making the model."""

    def __init__(self, side: str) -> None:
        self.row = next(sensors(10))
        copied(ours())

    def block(self, n: int) -> dict[str, float]:
        found = []
        for _ in range(FRESH):
            start = perf_counter()
            model = ours()
            middle = perf_counter()
            model.learn_one(*self.row)
            end = perf_counter()
            found.append((end - middle, end - start))
        return {"learn": min(f[0] for f in found), "with construction": min(f[1] for f in found)}


def array(features: int, present: float, n: int, seed: int) -> tuple[Any, list[Any]]:
    """Return rows as an array with NaN where nothing was read, and the labels that are shown."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    y = [y if s else None for y, s in zip(told(X, "labels"), rng.random(n) < LABEL_RATE, strict=True)]
    return np.where(rng.random(X.shape) < present, X, np.nan), y


class Many:
    """learn_many of arrays, one after the other, by one model."""

    def __init__(self, side: str, features: int, present: float) -> None:
        self.shape, self.seed, self.model = (features, present), SEED, ours()
        self.model.learn_many(*array(*self.shape, WARM, self.seed))

    def block(self, n: int) -> dict[str, float]:
        self.seed += 1
        X, y = array(*self.shape, MANY_ROWS, self.seed)
        return {"row": seconds(lambda: self.model.learn_many(X, y)) / MANY_ROWS}


class Threads:
    """Two models that learn an array each in two threads, and one that does in one."""

    def __init__(self, side: str) -> None:
        self.X, self.y = array(10, 1.0, THREAD_ROWS, SEED)
        model = ours()
        model.learn_many(self.X[:WARM], self.y[:WARM])
        self.model = model

    def block(self, n: int) -> dict[str, float]:
        return {"one": self.together(1), "two": self.together(2)}

    def together(self, count: int) -> float:
        models = [copied(self.model) for _ in range(count)]
        threads = [Thread(target=model.learn_many, args=(self.X, self.y)) for model in models]

        def job() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return seconds(job)


class Bytes:
    """to_bytes and from_bytes of a settled model, together and each; the fastest of some."""

    def __init__(self, side: str, budget: int) -> None:
        self.model = Rows(side, sensors(10), budget).model

    def block(self, n: int) -> dict[str, float]:
        kind, data = type(self.model), self.model.to_bytes()
        out = min(seconds(self.model.to_bytes) for _ in range(FRESH))
        into = min(seconds(lambda: kind.from_bytes(data)) for _ in range(FRESH))
        return {"both": out + into, "to_bytes": out, "from_bytes": into}


class Size:
    """The longest to_bytes of a few streams; one that does not fit the budget ends where it is refused."""

    def __init__(self, side: str, budget: int) -> None:
        self.budget = budget

    def block(self, n: int) -> dict[str, float]:
        most = 0
        streams = (sensors(10), sensors(10, 0.7), sensors(30, 0.5), words(), sensors(10, new_name=True))
        streams += (change(10), change(30), change(10, shared=1), sensors(10, kind="classes"))
        for stream in streams:
            model = ours(self.budget)
            shown = np.random.default_rng(LABEL_SEED).random(OLD + BOTH + NEW) < LABEL_RATE
            try:
                for t, (x, y) in enumerate(islice(stream, len(shown))):
                    model.learn_one(x, y if shown[t] else None)
                    if t % 10 == 9:
                        most = max(most, len(model.to_bytes()))
            except ValueError:
                continue
        return {"bytes": most}


class Import:
    """Importing the package and its classifier in a new process; what Python itself takes is not in it."""

    CODE = "import time; t = time.perf_counter(); from sf2el import SF2EL; print(time.perf_counter() - t)"

    def __init__(self, side: str) -> None:
        self.block(0)

    def block(self, n: int) -> dict[str, float]:
        done = subprocess.run([sys.executable, "-c", self.CODE], check=True, capture_output=True, text=True)
        return {"import": float(done.stdout)}


CASES: dict[str, Callable[[str], Any]] = {
    "complete": lambda side: Rows(side, sensors(10)),
    "complete, 4 KiB": lambda side: Rows(side, sensors(10), 4 * KIB),
    "gaps": lambda side: Rows(side, sensors(10, 0.95)),
    "half": lambda side: Rows(side, sensors(30, 0.5)),
    "words": lambda side: Rows(side, words()),
    "new name": lambda side: Rows(side, sensors(10, new_name=True)),
    "classes": lambda side: Rows(side, sensors(10, kind="classes"), kind="classes"),
    "numbers": lambda side: Rows(side, sensors(10, kind="numbers"), kind="numbers"),
    "shared": lambda side: Rows(side, change(10, shared=1)),
    "overlap": lambda side: Overlap(side, 10),
    "change 10": lambda side: Change(side, 10),
    "change 30": lambda side: Change(side, 30),
    "first": First,
    "many 10": lambda side: Many(side, 10, 1.0),
    "many 10, gaps": lambda side: Many(side, 10, 0.7),
    "many 30": lambda side: Many(side, 30, 1.0),
    "many 30, gaps": lambda side: Many(side, 30, 0.7),
    "bytes 4": lambda side: Bytes(side, 4 * KIB),
    "bytes 64": lambda side: Bytes(side, 64 * KIB),
    "size 4": lambda side: Size(side, 4 * KIB),
    "size 64": lambda side: Size(side, 64 * KIB),
    "threads": Threads,
    "import": Import,
}


def main(side: str) -> None:
    """Answer line by line."""
    package = __import__(side)
    print(json.dumps({"version": version(side), "file": package.__file__}), flush=True)
    warnings.simplefilter("ignore")
    cases: dict[str, Any] = {}
    for line in sys.stdin:
        name, block = json.loads(line)
        try:
            if name not in cases:
                cases[name] = CASES[name](side)
            gc.collect()
            gc.disable()
            found = cases[name].block(block)
        except Exception as error:
            found = {"failed": repr(error)}
        gc.enable()
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
