"""The demo's computing: the eight methods on the Swiss spirals, and what its figures show.

Nothing here prints or draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el.datasets import swiss_stream
from sf2el.inputs.parameters import check_whole
from sf2el.mixing.hedge import Regret
from sf2el.paper.learner import Learner
from sf2el.paper.methods import METHODS, MethodRun, run_methods
from sf2el.reproduce.readings import Hyperparameters, reading
from sf2el.reproduce.statistics import Paired, paired
from sf2el.streams import TwoSpaceStream

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

DATASET, READING = "swiss", "best"
LABEL_RATE, OVERLAP = 0.3, 10
BUFFERS = (10, 20, 40, 60)
BUFFER = BUFFERS[-1]
HEDGES = tuple(name for name, method in METHODS.items() if len(method.experts) > 1)
WITH_MANIFOLD = tuple(name for name, method in METHODS.items() if method.manifold)
TUNING_SEEDS = range(100, 200)
MOST_RUNS = TUNING_SEEDS.start
"""Runs have the seeds 0, 1, ... and never one that the settings were tuned on."""
GRID = 160
"""Points a side at which a learner's score is taken for its map."""


class Spread(NamedTuple):
    """Mean and standard deviation over runs."""

    mean: float
    std: float


class Band(NamedTuple):
    """Mean and standard deviation over runs, for each round."""

    mean: Floats
    std: Floats


@dataclass(frozen=True)
class Score:
    """How one method did with one buffer size, over all runs.

    Accuracies are over all rounds of the third period, with hindsight labels. The average risk is the
    method's own, at the end; with the manifold term it has more parts than without.
    """

    accuracy: Spread
    balanced_accuracy: Spread
    average_risk: Spread


@dataclass(frozen=True)
class SpaceView:
    """One run's rows and one learner's memory at its end, in a plane.

    Attributes
    ----------
    rows, classes
        The rows the stream brought in this space, n x 2, and their classes.
    buffer
        The rows in the learner's buffer, b x 2.
    recovered
        Which of the buffer's rows were not observed but recovered from the new features.
    scores, extent
        The learner's score on a grid (first index: vertical), and the grid's left, right, bottom and top.
    variance_kept
        Share of the rows' variance that the plane shows.
    """

    rows: Floats
    classes: Floats
    buffer: Floats
    recovered: Mask
    scores: Floats
    extent: tuple[float, float, float, float]
    variance_kept: float


@dataclass(frozen=True)
class Demo:
    """Everything the demo shows.

    Attributes
    ----------
    runs
        Number of runs; run k has seed k.
    rounds
        T1 (of which the last ``overlap`` have both spaces) and T2.
    features
        Number of old and of new features.
    majority
        Share of the larger class in the third period, averaged over the runs.
    scores
        By method and buffer size.
    risks
        Average risk up to each round after the swap, of the methods with the manifold term.
    weights
        SF2EL's weight of each single method it follows, in each round after the swap.
    regrets
        Each run's regret, for both hedges.
    gains
        What the manifold term adds to the accuracy, run against run, by the method that has it.
    old_space, new_space
        The two learners of SF2EL at the end of the first run.
    hyperparameters
        The settings of the reading.
    """

    runs: int
    rounds: tuple[int, int]
    overlap: int
    features: tuple[int, int]
    label_rate: float
    majority: float
    scores: dict[str, dict[int, Score]]
    risks: dict[str, Band]
    weights: dict[str, Band]
    regrets: dict[str, tuple[Regret, ...]]
    gains: dict[str, Paired]
    old_space: SpaceView
    new_space: SpaceView
    hyperparameters: Hyperparameters

    def as_json(self) -> dict[str, Any]:
        """Return the numbers, without the curves, for ``json.dumps``."""
        cells = [
            {
                "dataset": DATASET,
                "method": method,
                "reading": READING,
                "buffer": buffer,
                "label_rate": self.label_rate,
                "runs": self.runs,
                **{name: spread._asdict() for name, spread in vars(score).items()},
                "majority": self.majority,
            }
            for method, by_buffer in self.scores.items()
            for buffer, score in by_buffer.items()
        ]
        protocol = {name: getattr(self, name) for name in ("rounds", "overlap", "features")}
        protocol |= {"seeds": list(range(self.runs)), "hyperparameters": asdict(self.hyperparameters)}
        regret = {name: [asdict(one) for one in all_runs] for name, all_runs in self.regrets.items()}
        return {"protocol": protocol, "cells": cells, "regret": regret}

    def accuracies(self) -> dict[str, dict[float, Spread]]:
        """Return the accuracy by buffer size, of the methods that ran with all sizes."""
        return {
            name: {buffer: score.accuracy for buffer, score in by_buffer.items()}
            for name, by_buffer in self.scores.items()
            if len(by_buffer) == len(BUFFERS)
        }


def steps(runs: int) -> int:
    """Return how many steps ``run_demo`` reports."""
    return runs * len(BUFFERS)


def run_demo(*, runs: int = 10, advance: Callable[[int], object] = lambda steps: None) -> Demo:
    """Run all eight methods with the full buffer and both hedges with smaller ones.

    Parameters
    ----------
    runs
        Number of runs, at most 100.
    advance
        Called with 1 after each of ``steps(runs)`` steps.

    Examples
    --------
    >>> demo = run_demo(runs=1)
    >>> demo.scores["SF2EL"][60].accuracy.mean > demo.scores["NOGD"][60].accuracy.mean
    True
    """
    check_whole("runs", runs, 1, MOST_RUNS)
    streams = [swiss_stream(seed, label_rate=LABEL_RATE, overlap=OVERLAP) for seed in range(runs)]
    collected: dict[tuple[str, int], list[MethodRun]] = {}
    for seed, stream in enumerate(streams):
        for buffer in BUFFERS:
            wanted = tuple(METHODS) if buffer == BUFFER else HEDGES
            setup = reading(READING).setup(stream, DATASET, buffer_size=buffer, label_rate=LABEL_RATE)
            for name, run in run_methods(stream, setup, methods=wanted, seed=seed).items():
                collected.setdefault((name, buffer), []).append(run)
            advance(1)
    full = {name: collected[name, BUFFER] for name in METHODS}
    first, truth = streams[0], [stream.y[stream.t1 :] for stream in streams]
    learners = {name: expert.learner for name, expert in full["SF2EL"][0].experts.items()}
    return Demo(
        runs=runs,
        rounds=(first.t1, len(first.after_swap)),
        overlap=first.overlap,
        features=(first.old.shape[1], first.new.shape[1]),
        label_rate=LABEL_RATE,
        majority=float(np.mean([max(np.mean(y > 0), np.mean(y < 0)) for y in truth])),
        scores={
            name: {b: _score(collected[name, b], truth) for b in BUFFERS if (name, b) in collected}
            for name in METHODS
        },
        risks={name: _band([run.average_risk() for run in full[name]]) for name in WITH_MANIFOLD},
        weights=_weights(full["SF2EL"]),
        regrets={name: tuple(run.regret for run in full[name] if run.regret) for name in HEDGES},
        gains=_gains(full, truth),
        old_space=_old_space(first, learners["updating"]),
        new_space=_new_space(first, learners["scratch"]),
        hyperparameters=reading(READING).datasets[DATASET],
    )


def _score(runs: Sequence[MethodRun], truth: Sequence[Floats]) -> Score:
    correct = _correct(runs, truth)
    by_class = [(hits[y > 0].mean(), hits[y < 0].mean()) for hits, y in zip(correct, truth, strict=True)]
    return Score(
        accuracy=_spread([hits.mean() for hits in correct]),
        balanced_accuracy=_spread(np.mean(by_class, axis=1)),
        average_risk=_spread([run.average_risk()[-1] for run in runs]),
    )


def _correct(runs: Sequence[MethodRun], truth: Sequence[Floats]) -> list[Mask]:
    zero_score = reading(READING).zero_score
    return [run.correct(y, zero_score=zero_score) for run, y in zip(runs, truth, strict=True)]


def _gains(runs: dict[str, list[MethodRun]], truth: Sequence[Floats]) -> dict[str, Paired]:
    """Compare each method that has the manifold term with the one that differs in nothing else."""
    accuracy = {name: [float(hits.mean()) for hits in _correct(runs[name], truth)] for name in METHODS}
    plain = {method.experts: name for name, method in METHODS.items() if not method.manifold}
    return {name: paired(accuracy[name], accuracy[plain[METHODS[name].experts]]) for name in WITH_MANIFOLD}


def _spread(values: npt.ArrayLike) -> Spread:
    mean, std = _band(values)
    return Spread(float(mean), float(std))


def _band(curves: npt.ArrayLike) -> Band:
    """Return mean and sample standard deviation over the first axis; one run has no spread."""
    table = np.asarray(curves, dtype=np.float64)
    return Band(table.mean(axis=0), table.std(axis=0, ddof=1 if len(table) > 1 else 0))


def _weights(runs: Sequence[MethodRun]) -> dict[str, Band]:
    """Return the weights by the method that follows only that expert."""
    alone = {method.experts: method.name for method in METHODS.values() if method.manifold}
    return {
        alone[(expert,)]: _band([run.weights[:, column] for run in runs if run.weights is not None])
        for column, expert in enumerate(METHODS["SF2EL"].experts)
    }


def _old_space(stream: TwoSpaceStream, learner: Learner) -> SpaceView:
    observed = (learner.buffer[:, None, :] == stream.old[None, :, :]).all(axis=2).any(axis=1)
    view = _space(stream.old, stream.y[: stream.t1], learner, np.zeros(2), np.eye(2))
    return replace(view, recovered=~observed)


def _new_space(stream: TwoSpaceStream, learner: Learner) -> SpaceView:
    """Return the new space along its two principal axes."""
    rows = stream.after_swap
    center = rows.mean(axis=0)
    axes = np.linalg.svd(rows - center, full_matrices=False)[2][:2]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    # An axis has no sign of its own: its largest entry is made positive, so that no library decides it.
    return _space(rows, stream.y[stream.t1 :], learner, center, axes * np.sign(largest))


def _space(rows: Floats, classes: Floats, learner: Learner, center: Floats, axes: Floats) -> SpaceView:
    flat, buffer = (rows - center) @ axes.T, (learner.buffer - center) @ axes.T
    least = np.minimum(flat.min(axis=0), buffer.min(axis=0))
    most = np.maximum(flat.max(axis=0), buffer.max(axis=0))
    margin = 0.04 * (most - least).max()
    (left, bottom), (right, top) = least - margin, most + margin
    across, up = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    grid = center + np.column_stack([across.ravel(), up.ravel()]) @ axes
    return SpaceView(
        rows=flat,
        classes=classes,
        buffer=buffer,
        recovered=np.zeros(len(buffer), dtype=bool),
        scores=learner.predict_many(grid).reshape(GRID, GRID),
        extent=(float(left), float(right), float(bottom), float(top)),
        variance_kept=float(flat.var(axis=0).sum() / rows.var(axis=0).sum()),
    )
