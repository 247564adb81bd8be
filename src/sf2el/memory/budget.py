"""Memory in bytes: reading a budget, and counting what each part of a model keeps."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from numbers import Integral
from types import BuiltinFunctionType, ModuleType

import numpy as np

MOST_KEPT, EVENT_BYTES = 32, 40
"""Events that are remembered at most, and the bytes of each."""

MOST_BYTES = 1 << 62

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
}


class NoRoomError(ValueError):
    """The budget is too small for a feature space; the text names the least that would do.

    >>> str(NoRoomError("The smallest model of 6 features", 700).of(1000, 1200))
    'The smallest model of 6 features does not fit the budget of 1000 bytes; at least 1200 bytes are needed.'
    """

    def __init__(self, what: str, needed: int, text: str = "") -> None:
        super().__init__(text or what)
        self.what, self.needed = what, needed

    def of(self, budget: int, least: int) -> NoRoomError:
        """Return the error with the sentence for people."""
        text = f"{self.what} does not fit the budget of {budget} bytes; at least {least} bytes are needed."
        return NoRoomError(self.what, self.needed, text)


def parse_budget(budget: int | str) -> int:
    """Return a budget in bytes.

    >>> parse_budget("64KiB"), parse_budget("2 KB"), parse_budget(4096)
    (65536, 2000, 4096)
    >>> parse_budget("64 potatoes")
    Traceback (most recent call last):
    ...
    ValueError: budget must be a number of bytes or a text such as '64KiB' or '1MB', not '64 potatoes'.
    """
    if isinstance(budget, Integral) and not isinstance(budget, bool) and 0 < budget < MOST_BYTES:
        return int(budget)
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", budget)
        if match and match[2].upper() in _UNITS:
            size = float(match[1]) * _UNITS[match[2].upper()]
            if 1.0 <= size < MOST_BYTES:
                return int(size)
    raise ValueError(f"budget must be a number of bytes or a text such as '64KiB' or '1MB', not {budget!r}.")


def newcomer_room(budget: int) -> int:
    """Return the bytes of a budget kept free for features that belong to no space yet, and for their rows.

    >>> newcomer_room(2048), newcomer_room(16384), newcomer_room(65536)
    (128, 512, 2048)
    """
    return max(budget // 32, min(budget // 32 + 64, 512))


OWN_BYTES = 64
"""Length, checksum, budget, seed and counts of a model, beside its state."""


def own_bytes(budget: int | None, targets: int) -> int:
    """Return the bytes of a model beside its state: events, what is known of targets, and its own numbers."""
    return EVENT_BYTES * events_kept(budget) + targets + OWN_BYTES


def events_kept(budget: int | None) -> int:
    """Return how many events a model remembers: one for each 2 KiB of its budget, from 4 to 32.

    >>> events_kept(None), events_kept(65536), events_kept(16384), events_kept(2048)
    (32, 32, 8, 4)
    """
    return MOST_KEPT if budget is None else min(max(budget // 2048, 4), MOST_KEPT)


def least_budget(needed: int, own: int) -> int:
    """Return the smallest budget with so many bytes left beside newcomers, events and ``own`` bytes.

    >>> budget = least_budget(1000, 100)
    >>> budget - newcomer_room(budget) - own_bytes(budget, 100) >= 1000
    True
    """
    budget = needed
    while (short := needed - (budget - newcomer_room(budget) - own_bytes(budget, own))) > 0:
        budget += short
    return budget


def wrapper_bytes(root: object) -> int:
    """Return the bytes of the Python objects that make up a model, without the numbers they hold."""
    seen: set[int] = set()

    def size(thing: object) -> int:
        if id(thing) in seen or isinstance(thing, (type, ModuleType, BuiltinFunctionType)):
            return 0
        seen.add(id(thing))
        own = sys.getsizeof(thing) - (int(thing.nbytes) if isinstance(thing, np.ndarray) else 0)
        parts: Iterable[object] = ()
        if isinstance(thing, dict):
            parts = thing.values()
        elif isinstance(thing, (list, tuple)):
            parts = thing
        elif hasattr(thing, "__dict__"):
            parts = (vars(thing),)
        elif hasattr(thing, "__slots__"):
            parts = [getattr(thing, name, None) for name in thing.__slots__]
        return own + sum(map(size, parts))

    return size(root)
