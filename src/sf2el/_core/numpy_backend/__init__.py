"""The backend in NumPy: slower, readable, and there where no compiler is."""

from __future__ import annotations

from sf2el._core.numpy_backend.hedge import Hedge
from sf2el._core.numpy_backend.learner import Learner
from sf2el._core.numpy_backend.recovery import RecoveryMap
from sf2el._core.numpy_backend.rows import gather
from sf2el._core.numpy_backend.scaler import Scaler

__all__ = ["NAME", "Hedge", "Learner", "RecoveryMap", "Scaler", "gather"]

NAME = "numpy"
