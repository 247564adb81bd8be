"""How scikit-learn estimators read tables, whatever they learn from them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sf2el.classifier import SF2EL
from sf2el.inputs.tables import table_of
from sf2el.regressor import SF2ELRegressor

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """Rows and names of their columns; NaN means not observed, as in any frame."""

    columns: Sequence[Hashable]
    rows: Floats

    def to_numpy(self) -> Floats:
        """Return the rows."""
        return self.rows

    def observed(self) -> npt.NDArray[np.bool_]:
        """Return which rows have an observed feature."""
        return np.asarray(~np.isnan(self.rows).all(axis=1))


class TableEstimator(BaseEstimator):  # type: ignore[misc]
    """Tables: arrays have fixed columns; the columns of frames may change from call to call."""

    model_: SF2EL | SF2ELRegressor
    random_state: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @contextmanager
    def _undone_by_failure(self) -> Iterator[None]:
        """Leave the estimator as it was where learning fails; the model inside sees to itself."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _frame(self, X: Any, *, fresh: bool = False) -> Frame:
        """Return validated rows under the names by which the model knows the columns."""
        settings = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        if not fresh and _named(X) and hasattr(self, "feature_names_in_"):
            return Frame(list(X.columns), check_array(X, **settings))
        rows = validate_data(self, X, reset=fresh, **settings)
        return Frame(list(getattr(self, "feature_names_in_", range(rows.shape[1]))), rows)

    def _learn_rows(self, frame: Frame, told: Sequence[Any]) -> None:
        """Learn the rows that have an observed feature; from then on arrays are read as this frame was."""
        some = np.flatnonzero(frame.observed()).tolist()
        self.model_.learn_many(Frame(frame.columns, frame.rows[some]), [told[i] for i in some])
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(frame.columns, dtype=object)
            self.n_features_in_ = len(frame.columns)

    def _outputs(self, X: Any) -> list[Any]:
        """Return what the experts together give for each row; None where nothing of it is known."""
        check_is_fitted(self, "model_")
        frame = self._frame(X)
        found: list[Any] = [None] * len(frame.rows)
        some = np.flatnonzero(frame.observed()).tolist()
        if some:
            outputs = _outputs_of(self.model_, Frame(frame.columns, frame.rows[some]))
            for i, output in zip(some, outputs, strict=True):
                if not np.isnan(output[0]):
                    found[i] = output if len(output) > 1 else float(output[0])
        return found


def _outputs_of(model: SF2EL | SF2ELRegressor, frame: Frame) -> Floats:
    """Return what a model's experts together give for each row, NaN where nothing of it is known."""
    engine = model._engine
    with engine.used:
        return engine.predict_many(table_of(frame, None, None))


def _named(X: Any) -> bool:
    """Tell whether a table is a frame whose columns have names."""
    columns = getattr(X, "columns", None)
    return columns is not None and len(columns) > 0 and all(isinstance(name, str) for name in columns)
