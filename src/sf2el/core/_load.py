"""The compiled core, or one sentence that says what to do where it is not there."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

MISSING = "sf2el's compiled core is not installed: install a wheel, or a C++17 compiler and install again."
"""What whoever needs the compiled core is told where there is none."""


@cache
def native() -> ModuleType:
    """Return the compiled core; ImportError where it is not installed or does not load.

    The package itself, and what is plain Python in it, can be imported without.
    """
    try:
        return import_module("sf2el.core._native")
    except ModuleNotFoundError as error:
        raise ImportError(MISSING, name="sf2el.core._native") from error
    except ImportError as error:  # it is there, but was built for another Python or another system
        raise ImportError(
            f"sf2el's compiled core does not load here ({error}): install a wheel, "
            "or a C++17 compiler and install again.",
            name="sf2el.core._native",
            path=error.path,
        ) from error
