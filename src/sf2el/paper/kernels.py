"""Kernels: each is declared once, as a value and its gradient in the first argument.

Every kernel saturates: a value beyond ``LARGEST`` is returned as ``LARGEST`` with its sign, so that
no feature value below 1e100 can make a coefficient, a norm or a risk infinite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import plain_numbers

Array = npt.NDArray[np.floating]

LARGEST = 1e100
"""Where kernel values saturate (float64)."""

LARGEST_SINGLE = 1e15
"""Where they saturate in float32."""

SMALLEST_EXPONENT = -708.39
"""Below this ``exp`` is exactly 0: the last normal float64 lies at exp(-708.396...)."""


def exp_or_zero(z: Array) -> Array:
    """``exp(z)`` for z <= 0, exactly 0 where the result would not be a normal number.

    >>> exp_or_zero(np.array([0.0, -708.0, -708.4, -745.2]))
    array([1.000000e+000, 3.307553e-308, 0.000000e+000, 0.000000e+000])
    """
    floor = SMALLEST_EXPONENT if z.dtype == np.float64 else -87.33
    return np.where(z < floor, 0.0, np.exp(np.maximum(z, floor))).astype(z.dtype)


class Kernel(ABC):
    """A positive semi-definite function of two rows. Kernels add: ``RBF(1.0) + Linear()``."""

    @abstractmethod
    def row(self, rows: Array, x: Array) -> Array:
        """Values ``K(rows[s], x)`` for every s, unsaturated."""

    @abstractmethod
    def gradient(self, x: Array, y: Array) -> Array:
        """Gradient of ``K(x, y)`` in x (0 where a kernel has a kink)."""

    def terms(self) -> Iterator[Kernel]:
        """Yield the plain kernels this one is a sum of."""
        yield self

    def parameters(self) -> tuple[str, float, float, int]:
        """Return a plain kernel as the core takes it: its name, gamma or value, offset, degree."""
        gamma = getattr(self, "gamma", getattr(self, "value", 1.0))
        return (
            type(self).__name__,
            float(gamma),
            float(getattr(self, "offset", 0.0)),
            getattr(self, "degree", 1),
        )

    def __call__(self, x: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Value ``K(x, y)``."""
        return float(saturate(self.row(np.asarray(x, dtype=float)[None, :], np.asarray(y, dtype=float)))[0])

    def __add__(self, other: Kernel) -> Sum:
        if not isinstance(other, Kernel):
            raise ValueError(f"A kernel can be added to a kernel, not to {other!r}.")
        return Sum((*self.terms(), *other.terms()))

    @property
    def constant_diagonal(self) -> bool:
        """Whether ``K(x, x)`` is the same for every x."""
        return False


def saturate(values: Array) -> Array:
    """Clip kernel values to the range in which nothing downstream can overflow."""
    largest = LARGEST if values.dtype == np.float64 else LARGEST_SINGLE
    return np.clip(values, -largest, largest)


@dataclass(frozen=True)
class RBF(Kernel):
    """Gaussian kernel ``exp(-gamma ||x - y||^2)``.

    >>> RBF(0.5)([0.0, 0.0], [1.0, 1.0])
    0.36787944117144233
    """

    gamma: float

    def __post_init__(self) -> None:
        plain_numbers(self)
        _check_positive("gamma", self.gamma)

    def row(self, rows: Array, x: Array) -> Array:
        return exp_or_zero(-within(self.gamma, rows) * squared_distances(rows, x))

    def gradient(self, x: Array, y: Array) -> Array:
        return -2.0 * self.gamma * (x - y) * self(x, y)

    @property
    def constant_diagonal(self) -> bool:
        return True


@dataclass(frozen=True)
class Laplacian(Kernel):
    """Laplacian kernel ``exp(-gamma ||x - y||_1)``.

    >>> Laplacian(0.5)([0.0, 0.0], [1.0, 1.0])
    0.36787944117144233
    """

    gamma: float

    def __post_init__(self) -> None:
        plain_numbers(self)
        _check_positive("gamma", self.gamma)

    def row(self, rows: Array, x: Array) -> Array:
        return exp_or_zero(-within(self.gamma, rows) * np.abs(rows - x).sum(axis=1))

    def gradient(self, x: Array, y: Array) -> Array:
        return -self.gamma * np.sign(x - y) * self(x, y)

    @property
    def constant_diagonal(self) -> bool:
        return True


@dataclass(frozen=True)
class Polynomial(Kernel):
    """Polynomial kernel ``(gamma <x, y> + offset) ** degree``.

    >>> Polynomial(degree=2, gamma=1.0, offset=1.0)([1.0, 2.0], [3.0, 0.5])
    25.0
    """

    degree: int = 2
    gamma: float = 1.0
    offset: float = 1.0

    def __post_init__(self) -> None:
        plain_numbers(self)
        _check_positive("gamma", self.gamma)
        if not (isinstance(self.degree, int) and 1 <= self.degree <= 16):
            raise ValueError(f"degree must be a whole number from 1 to 16, not {self.degree!r}.")
        if not (isinstance(self.offset, (int, float)) and 0.0 <= self.offset <= LARGEST):
            raise ValueError(f"offset must be between 0 and 1e100, not {self.offset!r}.")

    def row(self, rows: Array, x: Array) -> Array:
        base = saturate(
            within(self.gamma, rows) * saturate(inner_products(rows, x)) + within(self.offset, rows)
        )
        # Multiplied out and saturated at each factor, so that no product overflows on the way.
        value = base
        for _ in range(self.degree - 1):
            value = saturate(value * base)
        return value

    def gradient(self, x: Array, y: Array) -> Array:
        base = self.gamma * float(x @ y) + self.offset
        return self.degree * base ** (self.degree - 1) * self.gamma * y


@dataclass(frozen=True)
class Linear(Kernel):
    """Linear kernel ``<x, y>``.

    >>> Linear()([1.0, 2.0], [3.0, 0.5])
    4.0
    """

    def row(self, rows: Array, x: Array) -> Array:
        return inner_products(rows, x)

    def gradient(self, x: Array, y: Array) -> Array:
        return np.array(y, dtype=float)


@dataclass(frozen=True)
class Constant(Kernel):
    """Constant kernel ``value``: added to another kernel it gives the function an offset.

    >>> (RBF(0.5) + Constant(2.0))([0.0], [0.0])
    3.0
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        plain_numbers(self)
        _check_positive("value", self.value)

    def row(self, rows: Array, x: Array) -> Array:
        return np.full(len(rows), within(self.value, rows), dtype=rows.dtype)

    def gradient(self, x: Array, y: Array) -> Array:
        return np.zeros_like(x)

    @property
    def constant_diagonal(self) -> bool:
        return True


@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of kernels, written ``RBF(1.0) + Linear()``."""

    parts: tuple[Kernel, ...]

    MOST_PARTS = 4

    def __post_init__(self) -> None:
        count = len(list(self.terms()))
        if not 1 <= count <= self.MOST_PARTS:
            raise ValueError(f"A sum of kernels takes 1 to {self.MOST_PARTS} parts, not {count}.")

    def row(self, rows: Array, x: Array) -> Array:
        values = [saturate(term.row(rows, x)) for term in self.terms()]
        return np.asarray(sum(values[1:], start=values[0]))

    def gradient(self, x: Array, y: Array) -> Array:
        return np.asarray(np.sum([part.gradient(x, y) for part in self.parts], axis=0))

    def terms(self) -> Iterator[Kernel]:
        for part in self.parts:
            yield from part.terms()

    @property
    def constant_diagonal(self) -> bool:
        return all(part.constant_diagonal for part in self.parts)


def within(value: float, rows: Array) -> np.floating:
    """Return a parameter in the precision of the rows, within its range."""
    largest = LARGEST if rows.dtype == np.float64 else LARGEST_SINGLE
    return rows.dtype.type(min(value, largest))


def inner_products(rows: Array, x: Array) -> Array:
    """``<rows[s], x>`` for every s, each summed in the same order however many rows there are."""
    return np.asarray(np.einsum("ij,j->i", rows, x))


def squared_distances(rows: Array, x: Array) -> Array:
    """``||rows[s] - x||^2`` for every s."""
    difference = rows - x
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _check_positive(name: str, value: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number and 0.0 < value <= LARGEST):
        raise ValueError(f"{name} must be a number above 0 and at most 1e100, not {value!r}.")


KERNELS = (RBF, Laplacian, Polynomial, Linear, Constant)
"""The plain kernels, which the core knows."""
