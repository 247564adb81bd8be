"""The backend in NumPy: slower, readable, and there where no compiler is."""

from __future__ import annotations

from sf2el.core.numpy_backend.bank import Bank
from sf2el.core.numpy_backend.factors import factors
from sf2el.core.numpy_backend.fixed_share import FixedShare
from sf2el.core.numpy_backend.gaussian_map import gaussian_map
from sf2el.core.numpy_backend.halved import Halved
from sf2el.core.numpy_backend.hedge import Hedge
from sf2el.core.numpy_backend.learner import Learner
from sf2el.core.numpy_backend.moments import AffineMap, Moments
from sf2el.core.numpy_backend.online_logistic import OnlineLogistic
from sf2el.core.numpy_backend.posterior import Posterior as Real
from sf2el.core.numpy_backend.recovery import RecoveryMap
from sf2el.core.numpy_backend.round import Round
from sf2el.core.numpy_backend.rows import gather
from sf2el.core.numpy_backend.scaler import Scaler
from sf2el.core.numpy_backend.turned import Turned
from sf2el.core.numpy_backend.whitening import whitening
from sf2el.experts.posterior import PosteriorSettings

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

NAME = "numpy"


def Posterior(settings: PosteriorSettings, dim: int, precision: str = "float64") -> Real:
    """Build a posterior expert."""
    return (Halved if precision == "float16" else Real)(settings, dim, precision)
