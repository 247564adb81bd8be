"""A first-order learner and the shape it is kept in."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sf2el import core as _core
from sf2el.experts.resize import resize
from sf2el.memory.plan import Shape


class LearnerSeat:
    """A first-order learner and the shape it is kept in."""

    def __init__(self, dim: int, shape: Shape, seed: int, backend: str | None, name: str = "") -> None:
        self.dim, self.shape, self._seed, self._backend, self.name = dim, shape, seed, backend, name
        self.core: Any = self._new(dim)

    def _new(self, dim: int) -> Any:
        shape = self.shape
        try:
            return _core.backend(self._backend).Learner(
                shape.settings, dim, shape.rows, self._seed, shape.precision
            )
        except MemoryError:
            raise ValueError("This machine has not so much memory; give a smaller budget.") from None

    @property
    def nbytes(self) -> int:
        """Bytes that the learner keeps."""
        return int(self.core.nbytes)

    @property
    def held(self) -> int:
        """Rows in its buffer."""
        return len(self.core.state()["beta"])

    def refit(self, shape: Shape) -> float:
        """Move the learner to another shape; return how far its function moved."""
        if shape == self.shape:
            return 0.0
        self.core, error = resize(
            self.core, shape.settings, self.dim, shape.rows, precision=shape.precision, backend=self._backend
        )
        self.shape = shape
        return error

    def widened(self, dim: int) -> None:
        """Give the learner more features, which all its rows so far have at 0."""
        state = self.core.state()
        rows = np.asarray(state["rows"], dtype=np.float64)
        state["rows"] = np.hstack([rows, np.zeros((len(rows), dim - self.dim))])
        state["gram"] = None  # as after a file: it follows from the rows, to the bit
        self.dim = dim
        self.core = self._new(dim)
        self.core.set_state(state)

    def clone(self) -> Self:
        """Return a learner that goes its own way from here."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        twin.core = self.core.copy()
        return twin
