"""Which feature space a row belongs to, found from the row's own keys."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from numbers import Real
from typing import Any

Names = tuple[Hashable, ...]

LARGEST_FEATURE = 1e100


class Period(Enum):
    """Where a row stands in the cycle of feature spaces."""

    CURRENT = "current"
    OVERLAP = "overlap"
    SWAP = "swap"


@dataclass(frozen=True)
class Spaces:
    """The feature space in force, and the one that has begun to appear beside it.

    Periods are found by equality of key sets: a row with the current features and others besides is an
    overlap; a row with only those others, or with entirely new ones, is a swap.

    Examples
    --------
    >>> spaces = Spaces(current=("a", "b"))
    >>> spaces.period(("a", "b", "c"))
    (<Period.OVERLAP: 'overlap'>, ('c',))
    >>> Spaces(current=("a", "b"), upcoming=("c",)).period(("c",))
    (<Period.SWAP: 'swap'>, ('c',))
    """

    current: Names
    upcoming: Names | None = None

    def period(self, names: Names) -> tuple[Period, Names]:
        """Return a row's period and the names of the space it brings (of the current one where none)."""
        seen, current = set(names), set(self.current)
        upcoming = set(self.upcoming or ())
        if seen == current:
            return Period.CURRENT, self.current
        if self.upcoming is not None:
            if seen == current | upcoming:
                return Period.OVERLAP, self.upcoming
            if seen == upcoming:
                return Period.SWAP, self.upcoming
        elif seen > current:
            return Period.OVERLAP, ordered(seen - current)
        elif not seen & current:
            return Period.SWAP, ordered(seen)
        raise ValueError(self._misfit(seen))

    def _misfit(self, seen: set[Hashable]) -> str:
        missing = ordered(set(self.current) - seen)
        extra = ordered(seen - set(self.current) - set(self.upcoming or ()))
        parts = [f"lacks {_few(missing)}" if missing else "", f"brings {_few(extra)}" if extra else ""]
        return (
            f"This row {' and '.join(part for part in parts if part)}: pass the current features "
            f"({_few(self.current)}), all of them together with all the new ones, or only the new ones."
        )


def read_row(row: Mapping[Hashable, Any]) -> dict[Hashable, float]:
    """Return the observed features of a dict row as floats; absent, None and NaN mean not observed."""
    if not isinstance(row, Mapping):
        raise ValueError(f"A row must be a dict of features, not {type(row).__name__}.")
    observed = {}
    for name, value in row.items():
        if value is None:
            continue
        if not isinstance(value, Real):
            raise ValueError(
                f"Feature {name!r} is {value!r}, not a number; leave it out if it was not observed."
            )
        number = _number(value)
        if number != number:
            continue
        if abs(number) > LARGEST_FEATURE:
            raise ValueError(f"Feature {name!r} is {value!r}; clip it below 1e100 or leave it out.")
        observed[name] = number
    if not observed:
        raise ValueError("This row has no observed feature; leave such rows out.")
    return observed


def _number(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return inf


def ordered(names: Any) -> Names:
    """Return names in an order that does not depend on the order in which they came."""
    return tuple(sorted(names, key=_sort_key))


def _sort_key(name: Hashable) -> tuple[str, Any]:
    kind = type(name).__name__
    return (kind, name) if isinstance(name, (int, str)) else (kind, repr(name))


def _few(names: Names) -> str:
    shown = ", ".join(repr(name) for name in names[:4])
    return shown + (f" and {len(names) - 4} more" if len(names) > 4 else "")
