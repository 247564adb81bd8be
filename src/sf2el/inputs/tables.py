"""Arrays and frames as tables of rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.inputs.rows import LARGEST_FEATURE, Names, check_name, short

Floats = npt.NDArray[np.float64]

NO_NUMBER = "The rows hold something that is not a number: pass a table of numbers, and dicts to learn_one."


@dataclass(frozen=True)
class Table:
    """Rows over named columns; NaN: not observed."""

    names: Names
    rows: Floats

    def row(self, i: int) -> dict[Hashable, float]:
        """Return what was observed of one row."""
        return {
            name: value
            for name, value in zip(self.names, self.rows[i].tolist(), strict=True)
            if value == value
        }

    def part(self, start: int, stop: int | None = None) -> Table:
        """Return some of the rows."""
        return Table(self.names, self.rows[start:stop])


def table_of(X: Any, features: Sequence[Hashable] | None, current: Sequence[Hashable] | None) -> Table:
    """Return an array or frame as a table.

    ``current`` are the model's present features. The columns of an array without ``features`` are 0, 1, 2 and
    so on, and the present features must be among them. There may be more columns: one may have had no value
    so far. NaN means not observed, and so does a masked value.

    >>> table_of(np.ones((3, 2)), None, None).names
    (0, 1)
    """
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise ValueError("This frame has not been computed yet; pass what its collect() returns.")
    columns = getattr(X, "columns", None)
    if columns is not None:
        names = _checked(columns)
        if len(set(names)) != len(names):
            raise ValueError("Two columns of this frame have the same name; rename one or leave it out.")
        return _table(_frame_numbers(X, names), names)
    rows = _numbers(X)
    width = rows.shape[1]
    if features is None:
        names = tuple(range(width))
        own = set(names)
        others = [name for name in current or () if name not in own]
        if others:
            raise ValueError(
                f"These rows have {width} values without names, which are features 0 to {width - 1}, but a "
                f"current feature of the model is called {short(others[0])}; name the columns with features=."
            )
        return _table(rows, names)
    listed = isinstance(features, Iterable) and not isinstance(features, (bytes, set, frozenset))
    if not listed or getattr(features, "ndim", 1) != 1:
        raise ValueError(f"features must be a list of the columns' names, not {short(features)}.")
    names = _checked(features)
    if len(set(names)) != width or len(names) != width:
        raise ValueError(f"features must name {width} different columns, not {len(set(names))}.")
    return _table(rows, names)


def labels_of(y: Any, rows: int) -> Sequence[Any]:
    """Return one label a row, None or NaN where it is not known.

    >>> labels_of(np.array([[1], [0]]), 2)
    [1, 0]
    """
    if y is None:
        return [None] * rows
    listed = hasattr(y, "__len__") and not isinstance(y, (str, bytes, Mapping, Set))
    if not listed or getattr(y, "ndim", 1) == 0:
        raise ValueError(f"y must have one label for each row, not be {short(y)}.")
    y = _one_column(y)
    labels = y.tolist() if hasattr(y, "tolist") else y.to_list() if hasattr(y, "to_list") else list(y)
    if hasattr(y, "isna"):  # a pandas gap of its own kind, which is not even equal to itself
        labels = [None if gap else label for label, gap in zip(labels, y.isna(), strict=True)]
    if len(labels) != rows:
        raise ValueError(f"There are {rows} rows but {len(labels)} labels; pass one for each row.")
    return labels


def _one_column(y: Any) -> Any:
    """Return labels that stand in a table of one column as that column."""
    columns = getattr(y, "columns", None)
    if columns is None and getattr(y, "ndim", 1) == 1:
        return y
    width = y.shape[1] if len(y.shape) == 2 else None
    if width != 1:
        shape = f"{len(y.shape)} dimensions" if width is None else f"{width} columns"
        raise ValueError(f"y must have one label for each row, not {shape}; pass one column.")
    return y[:, 0] if columns is None else y[columns[0]]


def _checked(names: Iterable[Hashable]) -> Names:
    found = tuple(names)
    for name in found:
        check_name(name)
    return found


def _frame_numbers(frame: Any, names: Names) -> Floats:
    """Return a frame's numbers; ValueError names the column that has others."""
    try:
        return _numbers(_plain_values(frame))
    except ValueError as error:
        if str(error) != NO_NUMBER:
            raise
    for name in names:
        try:
            _numbers(_plain_values(frame[[name]]))
        except ValueError:
            raise ValueError(
                f"Column {short(name)} holds something that is not a number; leave it out or encode it."
            ) from None
    raise ValueError(NO_NUMBER)


def _plain_values(frame: Any) -> Any:
    """Return a frame's values; a pandas gap of its own kind, which is no number, as NaN."""
    if any(getattr(dtype, "is_temporal", bool)() for dtype in getattr(frame, "dtypes", ())):
        raise ValueError(NO_NUMBER)  # polars would make numbers of times that stand beside numbers
    values = frame.to_numpy()
    if values.dtype == object and hasattr(frame, "isna"):
        values = np.where(frame.isna(), np.nan, values)
    return values


def _numbers(X: Any) -> Floats:
    try:
        plain = np.asanyarray(X)
        if not _numeric(plain):
            raise TypeError
        if isinstance(plain, np.ma.MaskedArray):
            plain = np.where(np.ma.getmaskarray(plain), np.nan, plain.data)
        rows = np.ascontiguousarray(plain, dtype=np.float64)
    except OverflowError:
        raise ValueError("The rows hold a number beyond 1e100; clip it before passing it on.") from None
    except (TypeError, ValueError):
        raise ValueError(NO_NUMBER) from None
    if rows.ndim == 2 and rows.shape[1] == 0:
        raise ValueError("These rows have no features; pass at least one column.")
    if rows.ndim != 2:
        raise ValueError(f"Pass a table of rows and features, not an array of {rows.ndim} dimensions.")
    return rows


def _numeric(values: npt.NDArray[Any]) -> bool:
    """Tell whether all values are numbers, as those of a dict row must be; text and times are none."""
    if values.dtype != object:
        return values.dtype.kind in "biuf"
    kinds = {type(value) for value in np.asarray(values).flat}
    times = (np.datetime64, np.timedelta64)
    return all(
        issubclass(kind, (Real, np.bool_, type(None))) and not issubclass(kind, times) for kind in kinds
    )


def _table(rows: Floats, names: Names) -> Table:
    """Return rows as a table, unless one of them could not be learned."""
    if np.any(np.abs(rows) > LARGEST_FEATURE):
        raise ValueError("A row holds infinity or a value beyond 1e100; clip it or leave it out as NaN.")
    observed = ~np.isnan(rows).all(axis=1)
    if not observed.all():
        raise ValueError(
            f"Row {int(np.argmin(observed))} of these has no observed feature; leave such rows out."
        )
    return Table(names, rows)
