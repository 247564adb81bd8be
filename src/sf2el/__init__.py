"""Storage-fit learning with feature-evolvable streams."""

from __future__ import annotations

from sf2el.hedge import Hedge
from sf2el.kernels import RBF, Constant, Laplacian, Linear, Polynomial
from sf2el.learner import Learner
from sf2el.model import SF2EL
from sf2el.recovery import RecoveryMap
from sf2el.regressor import SF2ELRegressor
from sf2el.scaling import Scaler
from sf2el.settings import LearnerSettings

__all__ = [
    "RBF",
    "SF2EL",
    "Constant",
    "Hedge",
    "Laplacian",
    "Learner",
    "LearnerSettings",
    "Linear",
    "Polynomial",
    "RecoveryMap",
    "SF2ELRegressor",
    "Scaler",
]
