"""A dict row predicted or learned in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.moments import AffineMap
from sf2el.core.numpy_backend.rows import gather_gaps

Floats = npt.NDArray[np.float64]


class Round:
    """The parts of a stage as one row meets them; a part that is not there is None."""

    def __init__(
        self,
        names: tuple[Any, ...],
        scaler: Any,
        moments: Any,
        bank: Any,
        map: Any,
        past: Any,
        mixer: Any,
        raw: bool,
    ) -> None:
        self._names, self._scaler, self._moments, self._bank = names, scaler, moments, bank
        self._map, self._past, self._mixer, self._raw = map, past, mixer, raw
        split = 0 if past is None else past.outputs
        self._row: Floats = np.empty(len(names))
        self._view: Floats = np.empty(len(names))
        self._recovered: Floats = np.empty(0 if past is None else past.dim)
        self._scores: Floats = np.empty(split + bank.outputs)
        self._risks: Floats = np.empty(split + bank.outputs)
        self._split = split

    def predict(self, row: dict[Any, Any]) -> float | None:
        """Return the combined score, or None for a row that has other features."""
        gaps = gather_gaps(row, self._names, self._row)
        if gaps < 0:
            return None
        view = self._look(gaps, False)
        if self._past is not None:
            self._past.predict_into(self._recovered, self._scores[: self._split])
        self._bank.predict_into(view, self._scores[self._split :])
        return float(self._mixer.mix_row(self._scores))

    def learn(self, row: dict[Any, Any], y: float, weight: float) -> tuple[Any, ...] | None:
        """Learn a row; return which features it does not have. None, with nothing done, if it has others."""
        gaps = gather_gaps(row, self._names, self._row)
        if gaps < 0:
            return None
        missing = tuple(self._names[i] for i in np.flatnonzero(np.isnan(self._row))) if gaps else ()
        view = self._look(gaps, True)
        split = self._split
        if self._past is not None:
            self._past.learn_into(
                self._recovered, y, weight, False, self._scores[:split], self._risks[:split]
            )
        self._bank.learn_into(view, y, weight, False, self._scores[split:], self._risks[split:])
        self._mixer.follow_row(self._scores, self._risks, y, weight)
        return missing

    def _look(self, gaps: int, keep: bool) -> Floats:
        """Return the row as the experts see it, and set what the space before would have read."""
        view = self._row
        if self._scaler is not None:
            self._scaler.scale_into(self._row, self._view, keep)
            view = self._view
        elif gaps:
            view = np.nan_to_num(self._row)
        if gaps and self._moments is not None:
            self._moments.fill(self._row, view)
        if keep and self._moments is not None and 2 * gaps <= len(self._row):
            self._moments.observe(view)
        if gaps and self._raw and self._map is not None:
            if self._scaler is not None:
                self._scaler.unscale_gaps(self._row, view)
            else:
                self._row[:] = view
        if self._map is not None:
            source = self._row if self._raw else view
            if isinstance(self._map, AffineMap):
                self._map.apply_into(source[: self._map._from], self._recovered)
            else:
                self._map.recover_into(source[: self._map._from], self._recovered)
        return view
