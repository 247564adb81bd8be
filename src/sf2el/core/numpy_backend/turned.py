"""An expert that sees rows turned: T x, each value held within +-limit.

T is kept whole, or its diagonal alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.expert import Expert
from sf2el.core.numpy_backend.rows import check_rows

Floats = npt.NDArray[np.float64]


class Turned(Expert):
    """Another expert, behind a linear map of its rows."""

    def __init__(self, inner: Expert, limit: float, diagonal: bool = False) -> None:
        super().__init__(inner.settings, inner.dim)
        self._inner, self._limit, self._diagonal = inner, limit, diagonal
        self._matrix = (
            np.ones((1, inner.dim), np.float32) if diagonal else np.eye(inner.dim, dtype=np.float32)
        )

    @property
    def uses_unlabelled(self) -> bool:  # type: ignore[override]
        """Whether an unlabelled row teaches it anything."""
        return self._inner.uses_unlabelled

    @property
    def matrix(self) -> Floats:
        """The map, or its diagonal as one row."""
        return self._matrix.astype(np.float64)

    def set_matrix(self, matrix: Floats) -> None:
        """Take over a map."""
        if np.shape(matrix) != self._matrix.shape:
            raise ValueError("This matrix does not fit this expert: its sizes differ.")
        self._matrix = check_rows(matrix, self.dim).astype(np.float32)

    def _turn(self, x: Floats) -> Floats:
        matrix = self._matrix.astype(np.float64)
        turned = matrix[0] * x if self._diagonal else matrix @ x
        return np.clip(turned, -self._limit, self._limit)

    def _scores(self, x: Floats) -> Floats:
        return self._inner._scores(self._turn(x))

    def _teach(self, x: Floats, y: float, weight: float, late: bool) -> tuple[Floats, float]:
        return self._inner._teach(self._turn(x), y, weight, late)

    @property
    def nbytes(self) -> int:
        """Bytes of the expert and of the map."""
        inner: int = self._inner.nbytes  # type: ignore[attr-defined]
        return inner + (self._matrix.nbytes + 7) // 8 * 8
