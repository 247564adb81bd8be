"""One run of the study of the default model: a kind of method on one stream, and what it measured.

Every kind gets the same streams: ``stream_for(dataset, seed, label_rate, overlap)``. Accuracy and balanced
accuracy are over all rounds after the swap, with hindsight labels. Streams that drift, and those with few
labels, are of one space and have files of their own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.classifier import SF2EL
from sf2el.datasets import Dataset
from sf2el.paper.methods import run_methods
from sf2el.reproduce.default_baselines import RIVER, run_refit, run_river
from sf2el.reproduce.default_design import KIB, Design
from sf2el.reproduce.default_few import FEW_LABELS, run_few_labels
from sf2el.reproduce.drift import drifting, run_forgetting
from sf2el.reproduce.fesl import Fesl
from sf2el.reproduce.protocol import balanced
from sf2el.reproduce.readings import reading
from sf2el.streams import TwoSpaceStream, stream_for

Floats = npt.NDArray[np.float64]
Outcome = dict[str, Any]

REFUSED = "refused"
"""What an outcome holds in place of numbers where a budget is too small for the model."""


@dataclass(frozen=True, order=True)
class Unit:
    """A kind of method on the stream of one seed; ``dataset`` is the stream's name where it drifts."""

    kind: str
    dataset: str
    label_rate: float
    seed: int


def units_of(design: Design, runs: int | None, kinds: tuple[str, ...]) -> list[Unit]:
    """Return all runs of the study."""
    units = [
        Unit(kind, dataset, rate, seed)
        for kind in kinds
        if kind != "drift"
        for dataset in design.datasets
        for rate in design.rates(kind)
        for seed in design.seeds(kind, dataset, runs)
    ]
    if "drift" in kinds:
        units += [
            Unit("drift", stream, rate, seed)
            for stream in design.drift.streams
            for rate in design.drift.label_rates
            for seed in design.seeds("drift", stream, runs)
        ]
    # Slow and fast ones mixed, the same way every time, so that the time left can be told from what is done.
    random.Random(0).shuffle(units)
    return units


def run_unit(unit: Unit, dataset: Dataset | None, design: Design) -> dict[str, Outcome]:
    """Run a unit; return the outcomes of its methods (budgets, rates of forgetting, spaces) by name."""
    if unit.kind == "drift":
        stream = drifting(design.drift, unit.dataset, label_rate=unit.label_rate, seed=unit.seed)
        return {
            f"{forget:g}": {"accuracy": run_forgetting(stream, forget, design.budget, unit.seed)}
            for forget in design.drift.forget
        }
    assert dataset is not None
    if unit.kind == FEW_LABELS:
        return run_few_labels(design.few_labels, dataset, budget=design.budget, seed=unit.seed)
    two = stream_for(dataset, unit.seed, unit.label_rate, design.overlap)
    return KINDS[unit.kind](unit, two, design)


def run_default(stream: TwoSpaceStream, budget: int, seed: int) -> Outcome:
    """Run the public model as a user would, told nothing but rows, names and the labels that are revealed."""
    t1, first = stream.t1, stream.t1 - stream.overlap
    old = [f"a{column}" for column in range(stream.old.shape[1])]
    new = [f"b{column}" for column in range(stream.new.shape[1])]
    labels = [int(y) if seen else None for y, seen in zip(stream.y, stream.labelled, strict=True)]
    try:
        model = SF2EL(budget=budget, seed=seed)
        model.learn_many(stream.old[:first], labels[:first], features=old)
        both = np.hstack([stream.old[first:], stream.new[: stream.overlap]])
        model.learn_many(both, labels[first:t1], features=[*old, *new])
        track = model.run_many(stream.after_swap, labels[t1:], features=new)
    except ValueError as error:
        if "budget" not in str(error):
            raise
        return {REFUSED: str(error)}
    y = stream.y[t1:]
    right = np.asarray(track.prediction == y.astype(int), dtype=bool)
    return {**_measured(right, y), "bytes": model.memory_usage()}


def _default(unit: Unit, stream: TwoSpaceStream, design: Design) -> dict[str, Outcome]:
    return {f"{budget // KIB}": run_default(stream, budget, unit.seed) for budget in design.budgets}


def _paper(unit: Unit, stream: TwoSpaceStream, design: Design) -> dict[str, Outcome]:
    best = reading(design.reading)
    setup = best.setup(stream, unit.dataset, buffer_size=design.buffer, label_rate=unit.label_rate)
    y = stream.y[stream.t1 :]
    runs = run_methods(stream, setup, seed=unit.seed)
    return {name: _measured(run.correct(y, zero_score=best.zero_score), y) for name, run in runs.items()}


def _fesl(unit: Unit, stream: TwoSpaceStream, design: Design) -> dict[str, Outcome]:
    fixed, by_rate = design.fesl[unit.dataset], design.fesl_by_rate[unit.dataset]
    settings = {"FESL-c": fixed, "FESL-c by rate": by_rate[design.label_rates.index(unit.label_rate)]}
    y = stream.y[stream.t1 :]
    return {
        name: _measured((Fesl(**values).run(stream) >= 0.5) == (y > 0.0), y)
        for name, values in settings.items()
    }


def _river(unit: Unit, stream: TwoSpaceStream, design: Design) -> dict[str, Outcome]:
    y = stream.y[stream.t1 :]
    return {unit.kind: _measured(run_river(unit.kind, stream, unit.seed) == y, y)}


def _refit(unit: Unit, stream: TwoSpaceStream, design: Design) -> dict[str, Outcome]:
    y = stream.y[stream.t1 :]
    predicted = run_refit(stream, growth=design.refit_growth, seed=unit.seed)
    return {name: _measured(said == y, y) for name, said in predicted.items()}


def _measured(right: npt.NDArray[np.bool_], y: Floats) -> Outcome:
    return {"accuracy": float(np.mean(right)), "balanced_accuracy": balanced(right, y)}


KINDS: dict[str, Callable[[Unit, TwoSpaceStream, Design], dict[str, Outcome]]] = {
    "default": _default,
    "paper": _paper,
    "fesl": _fesl,
    **dict.fromkeys(RIVER, _river),
    "refit": _refit,
}
"""What is run on the streams of the datasets."""
