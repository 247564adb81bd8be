"""The compiled core's Python face: one import, made here and nowhere else."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from types import ModuleType

MISSING = "sf2el's compiled core is not installed: install a wheel, or a C++17 compiler and install again."
"""What whoever needs the compiled core reads where there is none."""


@cache
def native() -> ModuleType:
    """Return the compiled core; ImportError where it is not installed or does not load.

    The package itself, and what is plain Python in it, can be imported without.
    """
    try:
        module = import_module("sf2el.core._native")
    except ModuleNotFoundError as error:
        raise ImportError(MISSING, name="sf2el.core._native") from error
    except ImportError as error:  # it is there, but was built for another Python or another system
        raise ImportError(
            f"sf2el's compiled core does not load here ({error}): install a wheel, "
            "or a C++17 compiler and install again.",
            name="sf2el.core._native",
            path=error.path,
        ) from error
    from sf2el.inputs.rows import read_row

    module.set_row_reader(read_row)
    return module


def variant() -> str:
    """Return which compiled variant to use: ``auto``, or what ``SF2EL_VARIANT`` names."""
    return os.environ.get("SF2EL_VARIANT", "auto")
