"""Streams of dict rows in which features come and go, and the models that learn them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sf2el import RBF, SF2EL, SF2ELRegressor

Rows = list[tuple[dict[Any, float], Any]]


def told(rng: np.random.Generator, label: Any, rate: float = 0.6) -> Any:
    """A label, or None where it is not known."""
    return label if rng.random() < rate else None


def complete(seed: int = 0, length: int = 160, classes: int = 2) -> Rows:
    """Three features in every row."""
    rng = np.random.default_rng(seed)
    rows = []
    for z in rng.normal(size=(length, 3)):
        label = int(z[0] + 0.5 * z[1] > 0) if classes == 2 else int(np.digitize(z[0], [-0.4, 0.4]))
        rows.append(({f"a{j}": float(z[j]) for j in range(3)}, told(rng, label)))
    return rows


def gaps(seed: int = 0, length: int = 160) -> Rows:
    """Values missing at random, now and then all but one."""
    rng = np.random.default_rng(seed + 100)
    rows = []
    for x, y in complete(seed, length):
        there = {name: value for name, value in x.items() if rng.random() < 0.6}
        rows.append((there or {"a0": x["a0"]}, y))
    return rows


def swap(seed: int = 0, length: int = 160, classes: int = 2) -> Rows:
    """Old features, both, new ones; typos on the way, and gaps in the overlap."""
    rng = np.random.default_rng(seed + 200)
    rows = []
    for t in range(length):
        z = rng.normal(size=3)
        x = {}
        if t < length // 2:
            x |= {f"a{j}": float(z[j]) for j in range(3)}
        if t >= length // 2 - 20:
            x |= {f"b{j}": float(z[j] + 0.3 * z[j - 1]) for j in range(3)}
        if t % 7 == 3:
            x.pop("a1", None)
        if t % 29 == 5:
            x[f"typo{t}"] = 1.0
        label = int(z[0] > 0) + (2 * int(z[1] > 0.8) if classes > 2 else 0)
        rows.append((x, told(rng, min(label, classes - 1))))
    return rows


def cycles(seed: int = 0, length: int = 240) -> Rows:
    """Spaces that follow each other with short overlaps; the first one returns."""
    rng = np.random.default_rng(seed + 300)
    rows = []
    period = length // 4
    for t in range(length):
        z = rng.normal(size=2)
        names = [(t // period) % 3]
        if t % period >= period - 8:
            names.append((t // period + 1) % 3)
        x = {f"{'abc'[k]}{j}": float(z[j] * (k + 1)) for k in names for j in range(2)}
        rows.append((x, told(rng, int(z[0] + z[1] > 0))))
    return rows


def partly(seed: int = 0, length: int = 220) -> Rows:
    """Two of four sensors are replaced, the others stay; much later a further one joins."""
    rng = np.random.default_rng(seed + 400)
    rows = []
    for t in range(length):
        z = rng.normal(size=4)
        x = {"s0": float(z[0]), "s1": float(z[1])}
        if t < 80:
            x |= {"s2": float(z[2]), "s3": float(z[3])}
        if t >= 70:
            x |= {"n2": float(z[2] - z[0]), "n3": float(z[3])}
        if t >= 150:
            x["late"] = float(z[0] + z[3])
        rows.append((x, told(rng, int(z[0] + z[2] > 0))))
    return rows


def words(seed: int = 0, length: int = 150, count: int = 40) -> Rows:
    """Bags of words: half of the words are more frequent in one class."""
    rng = np.random.default_rng(seed + 500)
    rows = []
    for _ in range(length):
        label = int(rng.integers(2))
        chance = np.where(np.arange(count) % 2 == label, 0.25, 0.08)
        there = np.flatnonzero(rng.random(count) < chance)
        x = {f"w{j}": 1.0 for j in (there if len(there) else [0])}
        rows.append((x, told(rng, "right" if label else "left")))
    return rows


def hard_swap(seed: int = 0, length: int = 120) -> Rows:
    """Other features from one row to the next; names are whole numbers and texts."""
    rng = np.random.default_rng(seed + 600)
    rows = []
    for t in range(length):
        z = rng.normal(size=2)
        x = {0: float(z[0]), 1: float(z[1])} if t < length // 2 else {"x": float(z[0]), "y": float(z[1])}
        rows.append((x, told(rng, int(z[0] > 0))))
    return rows


STREAMS: dict[str, Callable[..., Rows]] = {
    make.__name__: make for make in (complete, gaps, swap, cycles, partly, words, hard_swap)
}


def bank(budget: int | str = "16KiB", **given: Any) -> SF2EL:
    """Return the default classifier."""
    return SF2EL(budget=budget, **given)


def regressor(budget: int | str = "16KiB", **given: Any) -> SF2ELRegressor:
    """Return the regressor."""
    return SF2ELRegressor(budget=budget, **given)


def paper(budget: int | str = "16KiB", **given: Any) -> SF2EL:
    """Return the published learner within a budget."""
    usual = {"scaled": True, "on_skip": "project", "kernel": RBF(1.0)}
    return SF2EL.paper(budget=budget, **(usual | given))


def paper_fixed(budget: Any = None, **given: Any) -> SF2EL:
    """Return the published learner with buffers of a fixed size."""
    return SF2EL.paper(buffer_size=10, **({"train_in_overlap": True} | given))


MODELS: dict[str, Callable[..., Any]] = {
    make.__name__: make for make in (bank, regressor, paper, paper_fixed)
}
BUDGETED = {name: make for name, make in MODELS.items() if name != "paper_fixed"}


def labels_for(model: Any, rows: Rows) -> Rows:
    """Return rows with labels that a model takes: numbers for a regressor."""
    if isinstance(model, SF2EL):
        return rows
    known = {"left": -1.0, "right": 1.0}
    return [(x, None if y is None else float(known.get(y, y)) + 0.1 * sum(x.values())) for x, y in rows]


def learned(model: Any, rows: Rows) -> Any:
    """Return the model after it has learned rows."""
    for x, y in labels_for(model, rows):
        model.learn_one(x, y)
    return model


def table(rows: Rows) -> tuple[np.ndarray, list[Any], list[Any]]:
    """Return rows as an array with NaN for what is missing, its columns' names, and labels."""
    names: list[Any] = []
    for x, _ in rows:
        names += [name for name in x if name not in names]
    X = np.full((len(rows), len(names)), np.nan)
    for t, (x, _) in enumerate(rows):
        for name, value in x.items():
            X[t, names.index(name)] = value
    return X, names, [y for _, y in rows]


def twin_of(model: Any) -> Any:
    """Return what comes of saving and loading a model."""
    return type(model).from_bytes(model.to_bytes())


def check_bytes(model: Any) -> None:
    """A model is within its budget, its parts are the whole, and its file is hardly larger."""
    parts = model.memory_usage(detail=True)
    total = sum(parts.values())
    assert total == model.memory_usage()
    assert all(size >= 0 for size in parts.values())
    if model.budget is not None:
        assert total <= model.budget, (total, model.budget, parts)
        assert len(model.to_bytes()) <= model.budget + 1024
