"""One model whose budget moves while it learns: 64, 8, 128, 16 KiB along a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sf2el.classifier import SF2EL
from sf2el.datasets import Dataset
from sf2el.reproduce.declared import settings_file
from sf2el.streams import TwoSpaceStream, stream_for

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Side = Literal["old", "new"]


@dataclass(frozen=True)
class Changing:
    """One stream through the public model while its budget changes.

    Attributes
    ----------
    dataset, rows, t1
        The stream, its rounds, and how many of them have the old features.
    chunk, window
        Rows predicted before they are learned, all at once; rows of the windowed accuracy.
    rounds
        The rounds done at each point of the curves: a point a chunk.
    accuracy, steady
        Windowed accuracy there; the same of a model that has the largest budget throughout.
    nbytes, budget
        What ``memory_usage()`` says there, and the budget in force. Where the budget changes there is a
        point right before and one right after.
    parts
        Each budget's own rounds, accuracy and largest use.
    """

    dataset: str
    rows: int
    t1: int
    chunk: int
    window: int
    rounds: list[int]
    accuracy: list[float]
    steady: list[float]
    nbytes: list[int]
    budget: list[int]
    parts: list[dict[str, Any]]


def changing_dataset(datasets: Mapping[str, Dataset]) -> Dataset:
    """Return the declared dataset if it is there, else the one with the most rows."""
    declared = settings_file("storage")["changing"]["dataset"]
    return datasets.get(declared) or max(datasets.values(), key=lambda dataset: dataset.rows)


def changing_budget(dataset: Dataset) -> Changing:
    """Run the declared budgets along the protocol's stream of a dataset, from the first row to the last."""
    declared = settings_file("storage")
    content = declared["changing"]
    stream = stream_for(dataset, content["seed"], declared["label_rate"], declared["overlap"])
    budgets = [1024 * size for size in content["budgets_kib"]]
    sizes = {"chunk": content["chunk"], "window": content["window"]}
    return run_changing(stream, budgets, name=dataset.name, seed=content["seed"], **sizes)


def run_changing(
    stream: TwoSpaceStream, budgets: Sequence[int], *, name: str = "", seed: int = 0, chunk: int, window: int
) -> Changing:
    """Run a stream through the public model, each budget for an equal part of it.

    Each chunk is predicted before any of its rows is learned. Chunks end where the features or the budget
    change.
    """
    n = len(stream.y)
    starts = [n * place // len(budgets) for place in range(len(budgets))]
    edges = sorted({*range(0, n, chunk), *starts, stream.t1 - stream.overlap, stream.t1, n})
    cuts = list(pairwise(edges))
    model, steady = (SF2EL(budget=size, seed=seed, classes=[1, -1]) for size in (budgets[0], max(budgets)))
    right, steady_right = np.zeros(n, bool), np.zeros(n, bool)
    rounds, used, in_force = [0], [_used(model)], [budgets[0]]
    for start, stop in cuts:
        if start in starts[1:]:
            model.set_budget(budgets[starts.index(start)])
            rounds.append(start)
            used.append(_used(model))
            in_force.append(budgets[starts.index(start)])
        rows, names = _chunk(stream, start, stop)
        truth = stream.y[start:stop].astype(int)
        told = [int(y) if seen else None for y, seen in zip(truth, stream.labelled[start:stop], strict=True)]
        for learner, marks in ((model, right), (steady, steady_right)):
            marks[start:stop] = learner.predict_many(rows, features=names) == truth
            learner.learn_many(rows, told, features=names)
        rounds.append(stop)
        used.append(_used(model))
        in_force.append(in_force[-1])
    parts = []
    for budget, start, stop in zip(budgets, starts, [*starts[1:], n], strict=True):
        within = [
            size
            for size, own, at in zip(used, in_force, rounds, strict=True)
            if own == budget and start <= at <= stop
        ]
        parts.append(
            {
                "budget": budget,
                "start": start,
                "stop": stop,
                "accuracy": round(float(np.mean(right[start:stop])), 6),
                "steady": round(float(np.mean(steady_right[start:stop])), 6),
                "most_bytes": max(within),
            }
        )
    accuracy, reference = (_windowed(marks, rounds, window) for marks in (right, steady_right))
    return Changing(name, n, stream.t1, chunk, window, rounds, accuracy, reference, used, in_force, parts)


def _used(model: SF2EL) -> int:
    size = model.memory_usage()
    assert isinstance(size, int)
    return size


def _chunk(stream: TwoSpaceStream, start: int, stop: int) -> tuple[Floats, list[str]]:
    """Return the rows of rounds that have the same features, and the features' names."""
    first_new = stream.t1 - stream.overlap
    spaces = []
    if start < stream.t1:
        spaces.append(("old", stream.old[start:stop]))
    if start >= first_new:
        spaces.append(("new", stream.new[start - first_new : stop - first_new]))
    names = [f"{space}{column}" for space, rows in spaces for column in range(rows.shape[1])]
    return np.hstack([rows for _, rows in spaces]), names


def _windowed(right: npt.NDArray[np.bool_], rounds: Sequence[int], window: int) -> list[float]:
    """Return the share of right predictions among the last ``window`` rounds (fewer at first)."""
    total = np.concatenate([[0], np.cumsum(right)])
    return [
        round(float(total[at] - total[max(0, at - window)]) / max(1, min(at, window)), 6) for at in rounds
    ]
