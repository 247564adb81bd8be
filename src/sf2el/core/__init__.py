"""The compiled core's Python face: one import, made here and nowhere else."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

MISSING = (
    "sf2el's compiled core is not installed: install a wheel of sf2el, or a C++17 compiler and then sf2el again."
)


@cache
def native() -> ModuleType:
    """Return the compiled core; ImportError says what to do where it is not there."""
    try:
        module = import_module("sf2el.core._native")
    except ImportError as error:
        raise ImportError(MISSING) from error
    from sf2el.inputs.rows import read_row

    module.set_row_reader(read_row)
    return module


def variant() -> str:
    """Return which compiled variant to use: ``auto``, or what ``SF2EL_VARIANT`` names."""
    return os.environ.get("SF2EL_VARIANT", "auto")


def as_floats(values: Any) -> Any:
    """Return an array as contiguous doubles."""
    return np.ascontiguousarray(values, dtype=np.float64)
