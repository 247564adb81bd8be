"""Concepts that drift, and what forgetting is worth on them: ``SF2EL(forget=...)``."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
import numpy.typing as npt

from sf2el.classifier import SF2EL
from sf2el.streams import label_mask

Floats = npt.NDArray[np.float64]

STREAMS = ("stationary", "gradual", "abrupt")


@dataclass(frozen=True)
class Drift:
    """The experiment, as its settings file declares it.

    Attributes
    ----------
    streams
        Which of stationary, gradual and abrupt.
    forget, label_rates
        What is compared, and at which label rates.
    rounds, features
        Size of a stream.
    noise
        Share of the labels that are wrong: no model is above 1 - noise.
    jumps
        How often the abrupt concept changes, at equal distances.
    turn
        By how many half turns the gradual concept rotates along the stream.
    """

    streams: tuple[str, ...]
    forget: tuple[float, ...]
    label_rates: tuple[float, ...]
    rounds: int
    features: int
    noise: float
    jumps: int
    turn: float


@dataclass(frozen=True)
class DriftingStream:
    """Rows of one space, their labels +1 / -1, and which of them are revealed."""

    rows: Floats
    y: Floats
    labelled: npt.NDArray[np.bool_]


def drifting(drift: Drift, stream: str, *, label_rate: float, seed: int) -> DriftingStream:
    """Return a stream of Gaussian rows; the class is the sign of w(t)'x plus a curved term that stays.

    w is one direction throughout (stationary), turns in a plane (gradual), or is a new direction, at right
    angles to the one before, after each jump (abrupt). Rows, noise and revealed rounds are the same for all
    three.
    """
    if stream not in STREAMS:
        raise ValueError(f"stream must be one of {', '.join(STREAMS)}, not {stream!r}.")
    rng = np.random.default_rng([seed, drift.features])
    rows = rng.normal(size=(drift.rounds, drift.features))
    basis = np.linalg.qr(rng.normal(size=(drift.features, drift.features)))[0]
    flipped = rng.random(drift.rounds) < drift.noise
    labelled = label_mask(drift.rounds, label_rate, rng)
    w = _directions(drift, stream, basis)
    score = np.einsum("ij,ij->i", rows, w) + 0.5 * rows[:, 0] * rows[:, 1]
    y = np.where((score >= 0.0) != flipped, 1.0, -1.0)
    return DriftingStream(rows, y, labelled)


def _directions(drift: Drift, stream: str, basis: Floats) -> Floats:
    along = np.arange(drift.rounds) / drift.rounds
    if stream == "abrupt":
        return np.asarray(basis[(along * (drift.jumps + 1)).astype(int) % len(basis)])
    angle = along * pi * drift.turn if stream == "gradual" else np.zeros_like(along)
    return np.outer(np.cos(angle), basis[0]) + np.outer(np.sin(angle), basis[1])


def run_forgetting(stream: DriftingStream, forget: float, budget: int, seed: int) -> float:
    """Return the accuracy of the public model over all rounds, each predicted before it is learned."""
    model = SF2EL(budget=budget, seed=seed, forget=forget)
    labels = [int(y) if seen else None for y, seen in zip(stream.y, stream.labelled, strict=True)]
    names = [f"a{column}" for column in range(stream.rows.shape[1])]
    track = model.run_many(stream.rows, labels, features=names)
    return float(np.mean(np.asarray(track.prediction == stream.y.astype(int), dtype=bool)))
