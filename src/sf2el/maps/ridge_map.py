"""The paper's map that recovers a vanished space, as a stage uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.memory.budget import map_bytes
from sf2el.model.space import Space

Floats = npt.NDArray[np.float64]


class RidgeMap:
    """The paper's map: ridge least squares from the sums of products alone (``sf2el.RecoveryMap``)."""

    settled = True
    refits = False
    """Solving uses up the sums: no more rows can be taken in after it."""

    sketched = False
    unexplained = 0.0
    """It does not ask how far the spaces have to do with each other."""

    def __init__(
        self, new_dim: int, old_dim: int, ridge: float, intercept: bool, backend: str | None
    ) -> None:
        self.new_dim, self.old_dim = new_dim, old_dim
        self._made = (ridge, intercept, backend)
        self.core: Any = _core.backend(backend).RecoveryMap(new_dim, old_dim, ridge, intercept)
        self.part = self.core
        self.nbytes = map_bytes(new_dim, old_dim)
        self.recover, self.recover_into = self.core.recover, self.core.recover_into

    @property
    def rows(self) -> int:
        """Rows it was fitted on."""
        return int(self.core.rows)

    def observe(self, Z: Floats, X: Floats) -> None:
        """Take in rows that had both spaces."""
        self.core.observe(np.ascontiguousarray(Z[:, : self.new_dim]), X)

    def solve(self, old: Space, new: Space) -> None:
        """Fit the map to the rows observed so far."""
        self.core.solve()

    def regressed(self, places: list[int], scaling: Floats) -> None:
        """It does not ask what the old features tell of the new ones."""

    def settle(self) -> None:
        """No more rows will come; the sums stay, for they are the map's certificate."""

    def clone(self) -> RidgeMap:
        """Return a map that goes its own way from here."""
        twin = RidgeMap(self.new_dim, self.old_dim, *self._made)
        twin.core.set_state(self.core.state())
        return twin

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        return np.asarray(self.core.state())

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        self.core.set_state(state)
