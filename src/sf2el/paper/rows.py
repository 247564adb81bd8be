"""The best use of the bytes there are: how learners keep their numbers, and how many rows each has.

Three ways of keeping a learner, in the order in which they give way as the budget shrinks:

1. the Gram matrix and its inverse, in float64: fastest, but a row costs 8 (d + 2 + b) bytes;
2. no matrix, in float64: kernels among the rows are computed when needed;
3. no matrix, in float32.

A way is taken if it leaves every learner ``ENOUGH_ROWS`` rows; else the next. On the paper's datasets more
rows without matrices were as good as or better than fewer rows with them, at every budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sf2el.paper.settings import LEAST_BUFFER, MOST_BUFFER, LearnerSettings, Precision

ENOUGH_ROWS = 48

COUNTER_BYTES = 104
"""Counters, generator and flags of one learner (``LearnerCounters`` in ``native/core/params.hpp``)."""


class Form(NamedTuple):
    """A way of keeping a learner's numbers."""

    text: str
    matrices: bool
    precision: Precision

    def applied(self, settings: LearnerSettings) -> LearnerSettings:
        """Return the settings of a learner kept this way."""
        if self.matrices:
            return settings
        return replace(settings, projection="pursuit", keep_gram=False)


FORMS = (
    Form("matrices kept, float64", True, "float64"),
    Form("no matrices, float64", False, "float64"),
    Form("no matrices, float32", False, "float32"),
)
LEANEST = FORMS[-1]


@dataclass(frozen=True)
class Shape:
    """How one learner is kept: its settings, its precision and its rows."""

    settings: LearnerSettings
    precision: Precision
    rows: int

    def lean(self) -> Shape:
        """Return this shape without matrices."""
        return replace(self, settings=LEANEST.applied(self.settings))

    def heavy(self) -> Shape:
        """Return this shape with the matrices that exact projection works on."""
        return replace(self, settings=replace(self.settings, projection="exact", keep_gram=True))

    def nbytes(self, dim: int) -> int:
        """Return the bytes of a learner of this shape."""
        return learner_bytes(self.settings, dim, self.rows, self.precision)


def learner_bytes(settings: LearnerSettings, dim: int, buffer_size: int, precision: str = "float64") -> int:
    """Return the bytes a learner keeps, working scratch apart: exactly what the compiled core allocates."""
    real = 8 if precision == "float64" else 4
    triangle = buffer_size * (buffer_size + 1) // 2
    matrices = int(settings.keep_gram) + int(settings.projection == "exact")
    reals = buffer_size * dim + 2 * buffer_size + matrices * triangle
    kinds = buffer_size if settings.sampling == "stratified" else 0
    return COUNTER_BYTES + _round_up(real * reals) + _round_up(kinds)


def least_bytes(settings: LearnerSettings, dims: Sequence[int]) -> int:
    """Return the bytes below which learners on these numbers of features do not fit at all."""
    lean = LEANEST.applied(settings)
    return sum(learner_bytes(lean, dim, LEAST_BUFFER, LEANEST.precision) for dim in dims)


def plan(
    settings: LearnerSettings, dims: Sequence[int], available: int, held: Sequence[int] | None = None
) -> tuple[Form, list[Shape]] | None:
    """Return how learners on these numbers of features are best kept in so many bytes, None if they cannot.

    The learners share the bytes alike; less than the cost of one more row of the last is left over.
    ``held`` are rows that must not be lost if that can be: with more room a buffer never gets smaller.

    >>> form, shapes = plan(LearnerSettings(), [10], 65536)
    >>> form.text, shapes[0].rows
    ('matrices kept, float64', 84)
    >>> form, shapes = plan(LearnerSettings(), [10, 7], 4096)
    >>> form.text, [shape.rows for shape in shapes]
    ('no matrices, float32', [40, 54])
    """
    least = [LEAST_BUFFER] * len(dims)
    kept = least if held is None else [max(LEAST_BUFFER, rows) for rows in held]
    options = [(form, _shapes(settings, form, dims, available)) for form in FORMS]
    for wanted in ([max(ENOUGH_ROWS, rows) for rows in kept], kept):
        for form, shapes in options:
            if (form is LEANEST or wanted is not least) and _hold(shapes, wanted):
                return form, shapes
    form, shapes = options[-1]
    return (form, shapes) if _hold(shapes, least) else None


def _hold(shapes: Sequence[Shape], rows: Sequence[int]) -> bool:
    return all(shape.rows >= least for shape, least in zip(shapes, rows, strict=True))


def _shapes(settings: LearnerSettings, form: Form, dims: Sequence[int], available: int) -> list[Shape]:
    applied, left, shapes = form.applied(settings), available, []
    for place, dim in enumerate(dims):
        rows = _rows_that_fit(applied, form.precision, dim, left // (len(dims) - place))
        shapes.append(Shape(applied, form.precision, rows))
        left -= shapes[-1].nbytes(dim)
    return shapes


def _rows_that_fit(settings: LearnerSettings, precision: Precision, dim: int, available: int) -> int:
    low, high = 0, MOST_BUFFER
    while low < high:
        middle = (low + high + 1) // 2
        if learner_bytes(settings, dim, middle, precision) <= available:
            low = middle
        else:
            high = middle - 1
    return low


def _round_up(size: int) -> int:
    return (size + 7) // 8 * 8
