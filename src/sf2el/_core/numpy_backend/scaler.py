"""Running mean and variance of every feature, and rows scaled by them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el._core.numpy_backend.rows import check_row, check_rows

Floats = npt.NDArray[np.float64]


class Scaler:
    """Welford's running statistics. See ``sf2el.scaling.Scaler``."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._mean = np.zeros(dim)
        self._spread = np.zeros(dim)  # sum of squared deviations
        self._count = 0.0

    def scale_into(self, x: Floats, out: Floats, keep: bool) -> None:
        """Scale one row by the statistics with that row included; with ``keep`` it stays in them."""
        x = check_row(x, self._dim)
        count = self._count + 1.0
        ahead = x - self._mean
        mean = self._mean + ahead / count
        spread = self._spread + ahead * (x - mean)
        sd = np.sqrt(spread / count)
        z = np.divide(x - mean, sd, out=np.zeros(self._dim), where=sd > 0.0)
        out[:] = np.clip(z, -5.0, 5.0) * (1.0 / np.sqrt(float(self._dim)))
        if keep:
            self._mean, self._spread, self._count = mean, spread, count

    def scale_many(self, X: Floats, keep: bool) -> Floats:
        """Scale every row in turn."""
        X = check_rows(X, self._dim)
        out = np.empty_like(X)
        for x, scaled in zip(X, out, strict=True):
            self.scale_into(x, scaled, keep)
        return out

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        return np.concatenate([self._mean, self._spread, [self._count]])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        d = self._dim
        self._mean, self._spread, self._count = state[:d].copy(), state[d : 2 * d].copy(), float(state[2 * d])
