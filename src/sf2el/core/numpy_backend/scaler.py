"""Running mean and variance of every feature, and rows scaled by them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.rows import LARGEST_FEATURE, check_known, check_row, check_same_length
from sf2el.memory.budget import scaler_bytes

Floats = npt.NDArray[np.float64]

FEW = 10.0
FAR = 20.0
MOST_ROWS = 1 << 18
"""Rows counted in single precision: more would move a deviation by less than it resolves."""


class Scaler:
    """Welford's running statistics. See ``sf2el.paper.scaling.Scaler``."""

    def __init__(self, dim: int, divisor: float | None = None, precision: str = "float64") -> None:
        if divisor is not None and not 0.0 < divisor <= 1e100:
            raise ValueError("divisor must be above 0 and at most 1e100, or None for the root of dim.")
        self._dim = dim
        self._shrink = 1.0 / (np.sqrt(float(dim)) if divisor is None else divisor)
        if precision not in ("float64", "float32"):
            raise ValueError(f"precision must be 'float64' or 'float32', not {precision!r}.")
        self._single = precision == "float32"
        self.nbytes = scaler_bytes(dim, precision)
        self._mean = np.zeros(dim)
        self._spread = np.zeros(dim)  # sum of squared deviations
        self._count = np.zeros(dim)

    def scale_into(self, x: Floats, out: Floats, keep: bool) -> None:
        """Scale one row by the statistics with that row included; with ``keep`` it stays in them.

        NaN is a value not observed: it moves nothing, and its scaled value is the mean's, 0.
        """
        x = check_known(x, self._dim, 1)
        known = ~np.isnan(x)
        x = np.where(known, x, self._mean)
        count = self._count + known
        held, ahead = self._held(x)
        mean = self._mean + np.divide(ahead, count, out=np.zeros(self._dim), where=known)
        spread = self._spread + ahead * (held - mean)
        sd = np.sqrt(np.divide(spread, count, out=np.zeros(self._dim), where=known))
        z = np.divide(x - mean, sd, out=np.zeros(self._dim), where=sd > 0.0)
        out[:] = np.clip(z, -5.0, 5.0) * self._shrink
        if keep:
            self._mean, self._spread, self._count = mean, spread, count
            if self._single:
                self._round()

    def _round(self) -> None:
        """Go on with what is kept in single precision: each feature's deviation and count."""
        seen = self._count > 0.0
        deviation = np.sqrt(np.divide(self._spread, self._count, out=np.zeros(self._dim), where=seen))
        deviation = np.minimum(deviation, np.finfo(np.float32).max).astype(np.float32).astype(np.float64)
        self._count = np.minimum(self._count, MOST_ROWS)
        self._spread = deviation * deviation * self._count

    def _held(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the values that enter the statistics, and how far they are from the mean.

        After the first few rows none is further than twenty deviations.
        """
        ahead = x - self._mean
        room = FAR * FAR * self._spread
        far = (self._count >= FEW) & (self._spread > 0.0) & (ahead * ahead * self._count > room)
        if not far.any():
            return x, ahead
        most = FAR * np.sqrt(np.divide(self._spread, self._count, out=np.zeros(self._dim), where=far))
        ahead = np.where(far, np.copysign(most, ahead), ahead)
        return np.where(far, self._mean + ahead, x), ahead

    def scale_many(self, X: Floats, keep: bool) -> Floats:
        """Scale every row in turn."""
        X = check_known(X, self._dim, 2)
        out = np.empty_like(X)
        for x, scaled in zip(X, out, strict=True):
            self.scale_into(x, scaled, keep)
        return out

    def unscale_gaps(self, row: Floats, scaled: Floats) -> None:
        """Give each gap of a row, where it is NaN, what would have been read for its scaled value."""
        gaps = np.isnan(check_known(row, self._dim, 1))
        scaled, seen = check_row(scaled, self._dim), self._count > 0.0
        sd = np.sqrt(np.divide(self._spread, self._count, out=np.zeros(self._dim), where=seen))
        read = np.clip(self._mean + scaled / self._shrink * sd, -LARGEST_FEATURE, LARGEST_FEATURE)
        row[gaps] = read[gaps]

    def state(self) -> Floats:
        """Return everything kept, as one array: means, sums of squared deviations, counts."""
        return np.concatenate([self._mean, self._spread, self._count])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        check_same_length(3 * self._dim, len(state))
        self._mean, self._spread, self._count = np.split(np.array(state, dtype=np.float64), 3)
        if self._single:
            self._round()
