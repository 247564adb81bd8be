"""Storage-fit learning with feature-evolvable streams."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sf2el.classifier import SF2EL
    from sf2el.maps.recovery import RecoveryMap
    from sf2el.mixing.hedge import Hedge
    from sf2el.paper.kernels import RBF, Constant, Laplacian, Linear, Polynomial
    from sf2el.paper.learner import Learner
    from sf2el.paper.scaling import Scaler
    from sf2el.paper.settings import LearnerSettings
    from sf2el.regressor import SF2ELRegressor

    __version__: str

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

_HOMES = {
    "sf2el.mixing.hedge": ("Hedge",),
    "sf2el.paper.kernels": ("RBF", "Constant", "Laplacian", "Linear", "Polynomial"),
    "sf2el.paper.learner": ("Learner",),
    "sf2el.classifier": ("SF2EL",),
    "sf2el.maps.recovery": ("RecoveryMap",),
    "sf2el.regressor": ("SF2ELRegressor",),
    "sf2el.paper.scaling": ("Scaler",),
    "sf2el.paper.settings": ("LearnerSettings",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: a command that needs none of them starts at once."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("sf2el")
        except PackageNotFoundError:  # run from its sources, which say no version of their own
            return "unknown"
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'sf2el' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
