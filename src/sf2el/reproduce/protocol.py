"""The paper's protocol: experiments as declared in their settings files, and one run of one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.datasets import Dataset
from sf2el.paper.methods import METHODS, MethodRun, run_methods
from sf2el.reproduce.declared import settings_file
from sf2el.reproduce.readings import Hyperparameters, Reading
from sf2el.streams import stream_for

Floats = npt.NDArray[np.float64]

CURVE_POINTS = 100


@dataclass(frozen=True)
class Experiment:
    """What an experiment compares: every dataset with every method, buffer size and label rate."""

    title: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    buffers: tuple[int, ...]
    label_rates: tuple[float, ...]
    overlap: int

    @classmethod
    def declared(cls, name: str) -> Experiment:
        """Return the experiment of a settings file.

        >>> Experiment.declared("table2").buffers
        (10, 20, 40, 60)
        """
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in settings_file(name).items()
        }
        return cls(**values)

    def units(self, seeds: Iterable[int]) -> list[Unit]:
        """Return all runs of the experiment."""
        return [
            Unit(dataset, seed, buffer, rate, self.overlap, self.methods)
            for dataset in self.datasets
            for buffer in self.buffers
            for rate in self.label_rates
            for seed in seeds
        ]


@dataclass(frozen=True, order=True)
class Unit:
    """One run: a dataset's stream of one seed, a buffer size, a label rate, and the methods run on it."""

    dataset: str
    seed: int
    buffer: int
    label_rate: float
    overlap: int
    methods: tuple[str, ...]

    @property
    def key(self) -> tuple[str, int, int, float, int]:
        """What the stream and the learners depend on, whatever the methods."""
        return (self.dataset, self.seed, self.buffer, self.label_rate, self.overlap)


def merge(units: Iterable[Unit]) -> list[Unit]:
    """Return units in order, those with the same key as one that runs the methods of all."""
    methods: dict[tuple[str, int, int, float, int], set[str]] = {}
    first: dict[tuple[str, int, int, float, int], Unit] = {}
    for unit in units:
        methods.setdefault(unit.key, set()).update(unit.methods)
        first.setdefault(unit.key, unit)
    return [
        replace(unit, methods=tuple(name for name in METHODS if name in methods[key]))
        for key, unit in first.items()
    ]


def run_unit(
    unit: Unit, dataset: Dataset, reading: Reading, hyperparameters: Hyperparameters | None = None
) -> dict[str, Any]:
    """Run a unit; return for each method what the tables and figures need, as plain numbers."""
    stream = stream_for(dataset, unit.seed, unit.label_rate, unit.overlap)
    setup = reading.setup(
        stream,
        unit.dataset,
        buffer_size=unit.buffer,
        label_rate=unit.label_rate,
        hyperparameters=hyperparameters,
    )
    runs = run_methods(stream, setup, methods=unit.methods, seed=unit.seed)
    y = stream.y[stream.t1 :]
    return {name: _outcome(run, y, reading) for name, run in runs.items()}


def _outcome(run: MethodRun, y: Floats, reading: Reading) -> dict[str, Any]:
    correct = run.correct(y, zero_score=reading.zero_score)
    points = curve_rounds(len(y))
    outcome: dict[str, Any] = {
        "accuracy": float(np.mean(correct)),
        "balanced_accuracy": balanced(correct, y),
        "zero_scores": float(np.mean(run.scores == 0.0)),
        "risk": run.average_risk()[points - 1].tolist(),
    }
    if run.weights is not None and run.regret is not None:
        outcome["weight_of_recovered"] = run.weights[points - 1, 0].tolist()
        outcome["regret"] = asdict(run.regret)
    return outcome


def balanced(correct: npt.NDArray[np.bool_], y: Floats) -> float:
    """Return the mean of the two classes' shares of correct rounds.

    >>> balanced(np.array([True, True, False]), np.array([1.0, 1.0, -1.0]))
    0.5
    """
    shares = [float(np.mean(correct[y == side])) for side in (1.0, -1.0) if np.any(y == side)]
    return sum(shares) / len(shares)


def curve_rounds(rounds: int) -> npt.NDArray[np.int64]:
    """Return the rounds (from 1) at which a curve is sampled: the same number for every dataset."""
    return np.unique(np.linspace(1, rounds, min(CURVE_POINTS, rounds)).round().astype(np.int64))
