"""The choice of a backend, made here and nowhere else."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType

from sf2el.core._load import MISSING, native

__all__ = ["BACKENDS", "MISSING", "backend", "native", "native_available"]

BACKENDS = ("native", "numpy")


@cache
def native_available() -> bool:
    """Whether the compiled core was built."""
    try:
        native()
    except ImportError:
        return False
    return True


def backend(name: str | None = None) -> ModuleType:
    """Return the backend module: the one named, else ``SF2EL_BACKEND``'s, else the compiled one."""
    name = name or os.environ.get("SF2EL_BACKEND") or "native"
    if name not in BACKENDS:
        raise ValueError(f"backend must be 'native' or 'numpy', not {name!r}.")
    if name == "native":
        native()
    return _module(f"sf2el.core.{name}_backend")


_module = cache(import_module)  # looking a module up takes longer than some of what is asked of it
