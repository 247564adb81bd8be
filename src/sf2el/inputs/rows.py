"""Dict rows: reading one, and an order of names that does not depend on the order in which they came."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np

Names = tuple[Hashable, ...]

LARGEST_FEATURE = 1e100
LARGEST_NAME = 10**60
"""Beyond it no whole number names a feature."""


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
        if not is_number(value):
            raise ValueError(
                f"Feature {short(name)} is {short(value)}, not a number; leave it out if it was not observed."
            )
        number = _number(value)
        if number != number:
            continue
        if abs(number) > LARGEST_FEATURE:
            raise ValueError(f"Feature {short(name)} is {short(value)}; clip it below 1e100 or leave it out.")
        check_name(name)
        observed[name] = number
    if not observed:
        raise ValueError("This row has no observed feature; leave such rows out.")
    return observed


def is_number(value: Any) -> bool:
    """Whether a value is a number; to Python a span of time is one too.

    >>> is_number(np.float32(1.0)), is_number(np.timedelta64(1, "s")), is_number("1")
    (True, False, False)
    """
    return isinstance(value, (Real, np.bool_)) and not isinstance(value, np.timedelta64)


def check_name(name: Hashable) -> None:
    """Refuse a name that a file could not hold: a model that learns can be saved.

    >>> check_name("a"), check_name(0)
    (None, None)
    >>> check_name(("a", 0))
    Traceback (most recent call last):
    ...
    ValueError: Features are named by text or whole numbers below 1e60, not ('a', 0); give it such a name.
    """
    if isinstance(name, str):
        utf8(name, "feature")
    elif (
        isinstance(name, bool)
        or not isinstance(name, Integral)
        or not is_number(name)
        or abs(int(name)) >= LARGEST_NAME
    ):
        raise ValueError(
            f"Features are named by text or whole numbers below 1e60, not {short(name)}; give it such a name."
        )


def utf8(text: str, what: str) -> bytes:
    """Return a text as a file holds it; half a character, which Python lets pass, is refused."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"The {what} {short(text)} is not Unicode text; rename it.") from None


def few(texts: Sequence[str], most: int) -> str:
    """Return the first of some texts, and how many more there are.

    >>> few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


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


def _number(value: Real | np.bool_) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return inf


def sort_key(name: Hashable) -> tuple[str, Any]:
    """Whole numbers first, NumPy's among Python's: both are the same key of a dict."""
    return ("int", int(name)) if isinstance(name, Integral) else ("str", name)
