"""A learner moved to a buffer of another size, or to another way of keeping its numbers."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.core.rng import SplitMix64
from sf2el.paper.kernels import saturate
from sf2el.paper.settings import LearnerSettings, Precision

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


class Resized(NamedTuple):
    """The learner in its new buffer, and how far its function moved: ``||f_after - f_before||``.

    No prediction moves by more than that times sqrt(K(x, x)).
    """

    learner: Any
    error: float


def resize(
    learner: Any,
    settings: LearnerSettings,
    dim: int,
    buffer_size: int,
    *,
    precision: Precision = "float64",
    backend: str | None = None,
) -> Resized:
    """Return a learner of a backend in a buffer of another size.

    A smaller buffer keeps a uniform subsample of the rows (of each stratum, where there are two) and the
    projection of f onto them; a larger one opens slots. Every row's inclusion probability goes along, so
    that the manifold term stays unbiased.
    """
    state = learner.state()
    error = 0.0
    if len(state["beta"]) > buffer_size:
        error = _shrink(state, settings, buffer_size)
    state |= {"gram": None, "inverse": None}
    state.pop("norm_bound", None)
    moved = _core.backend(backend).Learner(settings, dim, buffer_size, 0, precision)
    moved.set_state(state)
    return Resized(moved, error)


def _shrink(state: dict[str, Any], settings: LearnerSettings, buffer_size: int) -> float:
    """Leave ``buffer_size`` rows in a state; return the distance of the functions."""
    rng = SplitMix64(state["rng"])
    kinds = np.asarray(state["kinds"])
    counts = np.bincount(kinds, minlength=2)
    decay = list(state["decay"])
    chosen = []
    for kind, size in enumerate(_sizes(counts, buffer_size, settings.sampling == "stratified")):
        places = np.flatnonzero(kinds == kind)
        chosen.append(places[_subsample(len(places), size, rng)])
        if len(places):
            decay[kind] *= size / len(places) if size else 1.0
    kept = np.sort(np.concatenate(chosen))
    removed = np.setdiff1d(np.arange(len(kinds)), kept)
    beta, error = _project(state, settings, kept, removed)
    for name in ("rows", "weights", "kinds"):
        state[name] = np.ascontiguousarray(state[name][kept])
    state |= {"beta": beta, "decay": tuple(decay), "rng": rng.state}
    return error


def _sizes(counts: npt.NDArray[np.int64], buffer_size: int, stratified: bool) -> tuple[int, int]:
    """Return how many rows of each kind stay: all of one stratum's half that the other does not need."""
    if not stratified:
        return buffer_size, 0
    unlabelled, labelled = int(counts[0]), int(counts[1])
    half = buffer_size // 2
    labelled = min(labelled, max(half, buffer_size - unlabelled))
    return buffer_size - labelled, labelled


def _subsample(n: int, size: int, rng: SplitMix64) -> Places:
    """Return ``size`` of n places, each subset as likely as another (a partial shuffle)."""
    places = list(range(n))
    for i in range(size):
        j = i + rng.below(n - i)
        places[i], places[j] = places[j], places[i]
    return np.array(sorted(places[:size]), dtype=np.int64)


def _project(
    state: dict[str, Any], settings: LearnerSettings, kept: Places, removed: Places
) -> tuple[Floats, float]:
    """Return the kept rows' coefficients with the removed rows' share of f, and what it could not hold."""
    rows = np.asarray(state["rows"], dtype=np.float64)
    beta = np.asarray(state["beta"], dtype=np.float64)
    gram = np.array([saturate(settings.kernel.row(rows, row)) for row in rows])
    target = gram[np.ix_(kept, removed)] @ beta[removed]
    own = gram[np.ix_(kept, kept)]
    jitter = settings.jitter * float(np.mean(np.diagonal(own))) + 1e-100
    share = np.linalg.solve(own + jitter * np.eye(len(kept)), target)
    square = (
        beta[removed] @ gram[np.ix_(removed, removed)] @ beta[removed]
        - 2.0 * share @ target
        + share @ own @ share
    )
    return beta[kept] + share, sqrt(max(float(square), 0.0))
