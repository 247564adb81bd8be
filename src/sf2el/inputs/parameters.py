"""Parameters: plain numbers, checked once, with a sentence that says what they must be."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from numbers import Integral, Real
from typing import Any

LARGEST_PARAMETER = 1e100


def plain_number(value: Any) -> Any:
    """Return a number of any library as Python's own, and what is no number (True is none) as it is.

    Parameters are kept as plain numbers: they are shown, written to files and counted with as such.

    >>> import numpy as np
    >>> plain_number(np.int64(3)), plain_number(np.float32(0.5)), plain_number(True), plain_number("3")
    (3, 0.5, True, '3')
    """
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else value


def plain_numbers(parameters: Any) -> None:
    """Make the numbers among the fields of a dataclass, frozen or not, Python's own.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Circle:
    ...     radius: float
    >>> circle = Circle(np.float32(2.0))
    >>> plain_numbers(circle)
    >>> circle
    Circle(radius=2.0)
    """
    for field in fields(parameters):
        object.__setattr__(parameters, field.name, plain_number(getattr(parameters, field.name)))


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}.")


def check_range(name: str, value: Any, *, least: float | None = None, above: float | None = None) -> None:
    """Raise ValueError unless ``value`` is a finite number in range, at most 1e100."""
    bound = f"at least {least:g}" if least is not None else f"above {above:g}"
    if not (
        is_plain_number(value)
        and isfinite(value)
        and value <= LARGEST_PARAMETER
        and (least is None or value >= least)
        and (above is None or value > above)
    ):
        raise ValueError(f"{name} must be a number {bound} and at most 1e100, not {value!r}.")


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Raise ValueError unless ``value`` is a whole number from ``least`` to ``most``."""
    if not (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")


def is_plain_number(value: Any) -> bool:
    """Whether a value is one of Python's own numbers, which True is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
