"""Streams whose features come and go in every way we could think of, and how a model fares on them.

A hidden cause is read by generations of sensors; what a later generation reads is a mixture of what the first
one reads. A scenario says which generations are there when, and what goes wrong with them: its twists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import SF2EL

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

BLOCK = 200
"""Rounds over which accuracies are compared."""


class Swap(NamedTuple):
    """From ``row`` up to ``stop`` there are, for good, only these columns."""

    row: int
    stop: int
    columns: npt.NDArray[np.int64]


@dataclass
class Stream:
    """Rows, NaN where a feature is not there; labels, some of them revealed; when spaces swap."""

    names: tuple[str, ...]
    X: Floats
    truth: npt.NDArray[np.str_]
    revealed: Flags
    swaps: list[Swap]
    strays: dict[int, dict[str, float]] = field(default_factory=dict)
    """Unknown keys that some rows have, in place of their features."""

    def row(self, t: int, columns: Any = slice(None)) -> dict[str, float]:
        """Return a row as a dict of what is there."""
        if t in self.strays:
            return self.strays[t]
        names, values = np.array(self.names)[columns], self.X[t, columns]
        return {str(name): float(value) for name, value in zip(names, values, strict=True) if value == value}

    def labels(self) -> list[str | None]:
        """Return the revealed labels."""
        pairs = zip(self.truth, self.revealed, strict=True)
        return [str(label) if told else None for label, told in pairs]


@dataclass
class Draft:
    """A stream in the making: which features are there in which row."""

    rng: np.random.Generator
    there: Flags
    spaces: list[npt.NDArray[np.int64]]
    """The columns of each generation."""
    order: tuple[int, ...]
    length: int
    staying: set[int] = field(default_factory=set)
    strays: dict[int, dict[str, float]] = field(default_factory=dict)


Twist = Callable[[Draft], None]


@dataclass(frozen=True)
class Scenario:
    """A named way for features to come and go."""

    name: str
    overlap: int = 40
    rule: str = "linear"
    rate: float = 0.3
    dims: tuple[int, ...] = (8, 8)
    order: tuple[int, ...] = (0, 1)
    twists: tuple[Twist, ...] = ()
    clean: bool = False
    budget: str = "64KiB"

    def stream(self, seed: int, length: int = 600) -> Stream:
        """Return the stream of a seed; each space is current for ``length`` rows."""
        rng = np.random.default_rng([seed, sum(self.name.encode())])
        rows = length * len(self.order)
        read, truth = _world(rng, rows, self.dims, self.rule)
        ends = np.cumsum(self.dims)
        spaces = [np.arange(end - dim, end) for dim, end in zip(self.dims, ends, strict=True)]
        there = np.zeros(read.shape, dtype=bool)
        for k, space in enumerate(self.order):
            there[max(0, k * length - self.overlap) : (k + 1) * length, spaces[space]] = True
        draft = Draft(rng, there, spaces, self.order, length)
        for twist in self.twists:
            twist(draft)
        swaps = []
        for k in range(1, len(self.order)):
            columns = np.array(sorted({*spaces[self.order[k]].tolist(), *draft.staying}))
            swaps.append(Swap(k * length, (k + 1) * length, columns))
        names = tuple(f"s{k}_{j}" for k, dim in enumerate(self.dims) for j in range(dim))
        X = np.where(draft.there, read, np.nan)
        return Stream(names, X, truth, rng.random(rows) < self.rate, swaps, draft.strays)


def _world(rng: np.random.Generator, rows: int, dims: tuple[int, ...], rule: str) -> tuple[Floats, Any]:
    """Return what every generation reads in every row, and the labels."""
    hidden = rng.normal(size=(rows, 4))
    first = np.tanh(hidden @ rng.normal(size=(4, dims[0])) / 2) + 0.1 * rng.normal(size=(rows, dims[0]))
    reads = [first]
    for dim in dims[1:]:
        mixed = first @ rng.normal(size=(dims[0], dim))
        reads.append(mixed + 0.1 * mixed.std() * rng.normal(size=(rows, dim)))
    read = np.hstack(reads)
    read = read * rng.uniform(0.5, 5.0, read.shape[1]) + rng.normal(size=read.shape[1])
    direction = rng.normal(size=4)
    score = hidden @ (direction / np.linalg.norm(direction))
    if rule == "nonlinear":
        score = hidden[:, 0] * hidden[:, 1] + 0.5 * score
    return read, np.where(score + 0.2 * rng.normal(size=rows) > 0.0, "up", "down")


# -- twists


def dying(every: int) -> Twist:
    """The old features die one by one while the new ones are there, the first of them at the swap."""

    def twist(draft: Draft) -> None:
        for k in range(1, len(draft.order)):
            swap = k * draft.length
            for i, column in enumerate(draft.rng.permutation(draft.spaces[draft.order[k - 1]])):
                draft.there[swap : swap + i * every, column] = True

    return twist


def shared(count: int) -> Twist:
    """Some of the first features never vanish."""

    def twist(draft: Draft) -> None:
        draft.staying |= set(draft.spaces[0][:count].tolist())
        draft.there[:, sorted(draft.staying)] = True

    return twist


def late(after: int, count: int = 1) -> Twist:
    """The last features of every space come later than the others."""

    def twist(draft: Draft) -> None:
        for k, space in enumerate(draft.order):
            start = max(0, k * draft.length - 60)
            draft.there[start : k * draft.length + after, draft.spaces[space][-count:]] = False

    return twist


def trickling(draft: Draft) -> None:
    """The new features appear one by one, every 8 rows, beside the old ones."""
    for k in range(1, len(draft.order)):
        swap = k * draft.length
        for i, column in enumerate(draft.spaces[draft.order[k]][::-1]):
            draft.there[swap - 8 * (i + 1) - 10 : swap, column] = True
            draft.there[swap - 120 : swap - 8 * (i + 1) - 10, column] = False


def flicker(share: float) -> Twist:
    """Every feature is missing now and then; something of the current space is always there."""

    def twist(draft: Draft) -> None:
        gone = draft.rng.random(draft.there.shape) < share
        for t in range(len(gone)):
            own = draft.spaces[draft.order[t // draft.length]]
            gone[t, draft.rng.choice(own[draft.there[t, own]])] = False
        draft.there &= ~gone

    return twist


def typos(draft: Draft) -> None:
    """Now and then a row has nothing but keys that nobody knows."""
    for t in np.flatnonzero(draft.rng.random(len(draft.there)) < 0.02).tolist():
        draft.strays[t] = {f"typo{t % 7}": 1.0, f"typo {t}": 2.0}


SCENARIOS = (
    Scenario("clean swap", clean=True),
    Scenario("clean swap, nonlinear", rule="nonlinear", clean=True),
    Scenario("clean swap, few labels", rate=0.05, clean=True),
    Scenario("clean swap, nonlinear, few labels", rule="nonlinear", rate=0.05, clean=True),
    Scenario("several cycles", dims=(6, 12, 9, 7), order=(0, 1, 2, 3), overlap=30, clean=True),
    Scenario("zero overlap", overlap=0, clean=True),
    Scenario("overlap of 1", overlap=1, clean=True),
    Scenario("overlap of 2", overlap=2, rate=0.05, clean=True),
    Scenario("overlap of 5", overlap=5, rule="nonlinear", clean=True),
    Scenario("overlap of 500", overlap=500, clean=True),
    Scenario("gradual death", twists=(dying(20),)),
    Scenario("gradual death, few labels", twists=(dying(10),), rate=0.05, dims=(12, 8)),
    Scenario("late features", twists=(late(150, 2),), rule="nonlinear"),
    Scenario("new features one by one", twists=(trickling,), dims=(8, 10)),
    Scenario("flicker of 5 %", twists=(flicker(0.05),), rule="nonlinear"),
    Scenario("flicker of 30 %", twists=(flicker(0.3),)),
    Scenario("shared features", twists=(shared(3),), dims=(9, 6)),
    Scenario("shared features, few labels", twists=(shared(3),), rule="nonlinear", rate=0.05, dims=(9, 6)),
    Scenario("most features shared", twists=(shared(6),), dims=(9, 4)),
    Scenario("features join for good", twists=(shared(5),), dims=(5, 6)),
    Scenario("return of an old space", order=(0, 1, 0)),
    Scenario("return, zero overlap", order=(0, 1, 0), overlap=0),
    Scenario("one feature", dims=(1, 1), rate=0.05),
    Scenario("sixty features", dims=(60, 60), budget="256KiB"),
    Scenario("keys that nobody knows", twists=(typos,)),
    Scenario(
        "everything at once",
        dims=(9, 7, 10),
        order=(0, 1, 2, 1),
        twists=(dying(15), late(100), shared(2), flicker(0.1), typos),
    ),
)


# -- how a model fares


class Blocks(NamedTuple):
    """Accuracies in each block of rounds after each swap: of the model, of each of the two alone."""

    model: Floats
    fresh: Floats
    recovered: Floats
    """NaN where no expert is recovered."""

    def short(self) -> Floats:
        """Return how far the model is below the better of the two."""
        return np.fmax(self.fresh, self.recovered) - self.model


def fare(scenario: Scenario, seed: int, length: int = 600, block: int = BLOCK, **more: Any) -> Blocks:
    """Return how a model does on a scenario beside its parts alone, block by block after each swap.

    The new learner alone is a model that begins at the swap and gets only what is there from then on. The
    recovered learner alone is the model's own recovered experts, mixed by the model's weights among
    themselves: ``explain_one`` tells both.
    """
    stream = scenario.stream(seed, length)
    labels = stream.labels()
    model = SF2EL(budget=scenario.budget, seed=seed, **more)
    right = np.empty(len(labels))
    recovered = np.full(len(labels), np.nan)
    for t, label in enumerate(labels):
        x = stream.row(t)
        told = model.explain_one(x)
        right[t] = _first(told.items(), model) == stream.truth[t]
        old = [item for item in told.items() if item[0].startswith("recovered")]
        if old:
            recovered[t] = _first(old, model) == stream.truth[t]
        model.learn_one(x, label)
    found = []
    for swap in stream.swaps:
        alone = alone_from(scenario, stream, swap, seed, **more)
        for start in range(swap.row, swap.stop, block):
            part = slice(start, min(start + block, swap.stop))
            own = recovered[part]
            enough = np.mean(~np.isnan(own)) >= 0.5
            there = ~np.isnan(own)
            # Where nothing is recovered yet, the model is all there is.
            filled = np.where(there, own, right[part]).mean() if enough else np.nan
            at = slice(part.start - swap.row, part.stop - swap.row)
            found.append((right[part].mean(), alone[at].mean(), filled))
    return Blocks(*np.array(found).T)


def alone_from(scenario: Scenario, stream: Stream, swap: Swap, seed: int, **more: Any) -> Floats:
    """Return in which rounds a model that begins at the swap is right."""
    part = slice(swap.row, swap.stop)
    labels = stream.labels()[part]
    model = SF2EL(budget=scenario.budget, seed=seed, **more)
    if not stream.strays and not np.isnan(stream.X[part][:, swap.columns]).all(axis=1).any():
        names = [stream.names[i] for i in swap.columns]
        said = model.run_many(stream.X[part][:, swap.columns], labels, features=names).prediction
        return np.asarray(said == stream.truth[part], dtype=np.float64)
    right = np.zeros(len(labels))
    for i, label in enumerate(labels):
        x = stream.row(swap.row + i, swap.columns)
        if x:
            right[i] = model.predict_one(x) == stream.truth[swap.row + i]
            model.learn_one(x, label)
    return right


def _first(told: Any, model: SF2EL) -> str | None:
    """Return the label that a mixture of experts, given by score and weight, says."""
    seen = model._labels.seen
    if len(seen) < 2:
        return seen[0] if seen else None
    weight = sum(expert["weight"] for _, expert in told)
    mean = sum(expert["weight"] * _sigmoid(expert["score"]) for _, expert in told)
    return seen[0] if mean >= 0.5 * weight else seen[1]


def _sigmoid(score: float) -> float:
    return 1.0 / (1.0 + exp(-min(max(score, -700.0), 700.0)))
