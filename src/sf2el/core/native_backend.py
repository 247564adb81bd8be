"""The compiled backend: the names of the NumPy one, over ``_native``."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from sf2el.core import _native
from sf2el.core._native import (
    AffineMap,
    Bank,
    FixedShare,
    Hedge,
    Moments,
    RecoveryMap,
    Round,
    Scaler,
    Turned,
    gather,
)
from sf2el.core.numpy_backend.gaussian_map import gaussian_map as wide_gaussian_map
from sf2el.experts.posterior import LogisticSettings, PosteriorSettings
from sf2el.maps.gaussian_map import Known
from sf2el.paper.kernels import RBF, Constant, Kernel, Laplacian, Linear, Polynomial
from sf2el.paper.settings import LearnerSettings

Floats = npt.NDArray[np.float64]

__all__ = [
    "NAME",
    "AffineMap",
    "Bank",
    "FixedShare",
    "Hedge",
    "Learner",
    "Moments",
    "OnlineLogistic",
    "Posterior",
    "RecoveryMap",
    "Round",
    "Scaler",
    "Turned",
    "factors",
    "gather",
    "gaussian_map",
    "whitening",
]

NAME = "native"

MOST_COMPILED = 512
"""Features of both spaces beyond which NumPy's matrix library, made for large matrices, solves faster."""


def Learner(
    settings: LearnerSettings, dim: int, capacity: int, seed: int, precision: str = "float64"
) -> _native.Learner:
    """Build a compiled learner."""
    s = settings
    return _native.learner(
        dim=dim,
        capacity=capacity,
        seed=seed,
        kernel=[_term(kernel) for kernel in s.kernel.terms()],
        loss=s.loss,
        graph_width=float(s.graph_width),
        ridge=float(s.ridge),
        smoothness=float(s.smoothness),
        step=float(s.step),
        label_rate=0.0 if s.label_rate is None else float(s.label_rate),
        radius=float(s.radius),
        jitter=float(s.jitter),
        manifold=s.manifold,
        equations=s.equations,
        cap=s.cap,
        projection=s.projection,
        pursuit_steps=s.pursuit_steps,
        keep_gram=s.keep_gram,
        on_skip=s.on_skip,
        sampling=s.sampling,
        precision=precision,
        variant=_variant(),
    )


def Posterior(settings: PosteriorSettings, dim: int, precision: str = "float64") -> _native.Posterior:
    """Build a compiled posterior expert."""
    s = settings
    return _native.posterior(
        dim=dim,
        size=s.size,
        outputs=s.outputs,
        task=s.task,
        gamma=float(s.gamma),
        linear_scale=float(s.linear_scale),
        rbf_scale=float(s.rbf_scale),
        bias=float(s.bias),
        novelty=float(s.novelty),
        forget=float(s.forget),
        centred=float(s.centred),
        tie_noise=float(s.tie_noise),
        tie_novelty=float(s.tie_novelty),
        tie_power=s.tie_power,
        most_ties=s.most_ties,
        keep_inverse=s.keep_inverse,
        slopes=s.slopes,
        matched=s.matched,
        precision=precision,
        variant=_variant(),
    )


def OnlineLogistic(settings: LogisticSettings, dim: int) -> _native.OnlineLogistic:
    """Build a compiled online logistic expert."""
    s = settings
    return _native.logistic(
        dim=dim,
        outputs=s.outputs,
        task=s.task,
        step=float(s.step),
        power=float(s.power),
        scale=float(s.scale),
        variant=_variant(),
    )


def gaussian_map(known: Known, divisor: float) -> tuple[Floats, Floats, float]:
    """Solve for a map, compiled unless it is between very many features."""
    if len(known.mean) > MOST_COMPILED:
        return wide_gaussian_map(known, divisor)
    new = known.new
    shown = None if new is None else (new.mean, new.deviation, new.covariance, float(new.later))
    return _native.gaussian_map(
        float(known.rows),
        known.new_dim,
        known.mean,
        known.covariance,
        known.old,
        shown,
        divisor,
        known.whole,
        known.read,
        _variant(),
    )


def factors(matrix: Floats, deviation: Floats, correlation: Floats, rank: int) -> Floats:
    """Return so many factors of a matrix, what matters most of it for rows that vary so."""
    return _native.factors(matrix, deviation, correlation, rank, _variant())


def whitening(covariance: Floats, rows: float, least_spread: float) -> Floats:
    """Take correlations out, compiled."""
    return _native.whitening(covariance, rows, least_spread, _variant())


def _variant() -> str:
    return os.environ.get("SF2EL_VARIANT", "auto")


def _term(kernel: Kernel) -> tuple[str, float, float, int]:
    """Return a kernel as (kind, gamma or value, offset, degree)."""
    match kernel:
        case RBF(gamma=gamma) | Laplacian(gamma=gamma):
            return type(kernel).__name__, float(gamma), 0.0, 1
        case Polynomial(degree=degree, gamma=gamma, offset=offset):
            return "Polynomial", float(gamma), float(offset), degree
        case Constant(value=value):
            return "Constant", float(value), 0.0, 1
        case Linear():
            return "Linear", 1.0, 0.0, 1
    raise ValueError(f"The compiled core does not know the kernel {kernel!r}.")
