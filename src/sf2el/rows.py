"""Dict rows: reading one, and an order of names that does not depend on the order in which they came."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from math import inf
from numbers import Real
from typing import Any

import numpy as np

Names = tuple[Hashable, ...]

LARGEST_FEATURE = 1e100


def read_row(row: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """Return the observed features of a dict row as floats; absent, None and NaN mean not observed.

    >>> read_row({"a": 1, "b": None, "c": float("nan")})
    {'a': 1.0}
    """
    if not isinstance(row, Mapping):
        raise ValueError(f"A row must be a dict of features, not {type(row).__name__}.")
    observed = {}
    for name, value in row.items():
        if value is None:
            continue
        if not isinstance(value, (Real, np.bool_)):
            raise ValueError(
                f"Feature {short(name)} is {short(value)}, not a number; leave it out if it was not observed."
            )
        number = _number(value)
        if number != number:
            continue
        if abs(number) > LARGEST_FEATURE:
            raise ValueError(f"Feature {short(name)} is {short(value)}; clip it below 1e100 or leave it out.")
        observed[name] = number
    if not observed:
        raise ValueError("This row has no observed feature; leave such rows out.")
    return observed


def short(value: Any) -> str:
    """Return a value as a message shows it.

    >>> short("cold"), len(short("x" * 1000)), short(10**5000)
    ("'cold'", 43, 'a number of very many digits')
    """
    try:
        text = repr(value)
    except ValueError:  # more digits than Python prints
        return "a number of very many digits"
    return text if len(text) <= 40 else text[:40] + "..."


def ordered(names: Iterable[Hashable]) -> Names:
    """Return names in an order of their own.

    >>> ordered(["b", 2, "a"])
    (2, 'a', 'b')
    """
    return tuple(sorted(names, key=_sort_key))


def _number(value: Real | np.bool_) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return inf


def _sort_key(name: Hashable) -> tuple[str, Any]:
    kind = type(name).__name__
    return (kind, name) if isinstance(name, (int, str)) else (kind, repr(name))
