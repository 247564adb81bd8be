"""What a dataset is: rows known in two feature spaces, labels, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Orders = npt.NDArray[np.int64]


class DatasetMissing(FileNotFoundError):
    """A dataset's files are in none of the folders; the message says how to get them."""


class DatasetDamaged(ValueError):
    """A dataset's file does not hold what it should; the message names the file."""


class Spaces(NamedTuple):
    """The arrays of a dataset: rows in the old and in the new space, labels, and published stream orders."""

    old: Floats
    new: Floats
    y: Floats
    orders: Orders | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Rows known in two feature spaces, and where they come from.

    Attributes
    ----------
    name
        The paper's name in lower case.
    old
        The old space S1, n x d1, each feature scaled to [0, 1] over the whole set.
    new
        The new space S2, n x d2.
    y
        The labels, +1 / -1.
    orders
        Published stream orders, one a row, counted from 0; None where there are none.
    description
        What a row is, and what the classes are.
    source
        The file (its path in a data folder) or generator the arrays come from, and what was done to it.
    citation
        Whom to cite.
    licence
        What is known of the data's licence.
    simulated
        Whether the rows stand in for data that could not be obtained.
    path
        The file that was read, on this machine; None where the rows are generated.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.5], [1.0]])
    >>> tiny = Dataset(name="tiny", old=X, new=2 * X, y=np.array([1.0, 1.0, -1.0]), description="", source="")
    >>> tiny.rows, tiny.d1, tiny.d2, round(tiny.majority, 3)
    (3, 1, 1, 0.667)
    """

    name: str
    old: Floats = field(repr=False)
    new: Floats = field(repr=False)
    y: Floats = field(repr=False)
    orders: Orders | None = field(default=None, repr=False)
    description: str
    source: str
    citation: str = ""
    licence: str = ""
    simulated: bool = False
    path: Path | None = None

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.old.ndim != 2 or self.new.ndim != 2 or len(self.old) != n or len(self.new) != n:
            raise ValueError(f"{self.name}: old, new and y must have the same number of rows.")
        if not np.all(np.abs(self.y) == 1.0):
            raise ValueError(f"{self.name}: labels must be +1 or -1.")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def d1(self) -> int:
        """Number of features of the old space."""
        return int(self.old.shape[1])

    @property
    def d2(self) -> int:
        """Number of features of the new space."""
        return int(self.new.shape[1])

    def digest(self) -> str:
        """Return a text that other rows, labels or orders would not have, nor these in another shape."""
        digest = sha256()
        for array in (self.old, self.new, self.y, self.orders):
            if array is None:
                digest.update(b"none")
            else:
                digest.update(f"{array.dtype.str} {array.shape} ".encode())
                digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def majority(self) -> float:
        """Share of the larger class: the accuracy of always predicting it."""
        positive = int(np.sum(self.y > 0.0))
        return max(positive, self.rows - positive) / self.rows


def min_max(rows: Floats) -> Floats:
    """Return the rows with each feature scaled to [0, 1] over all of them; a constant feature becomes 0.

    >>> min_max(np.array([[1.0, 7.0], [3.0, 7.0], [2.0, 7.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]]
    """
    least = rows.min(axis=0)
    width = rows.max(axis=0) - least
    scaled = np.zeros_like(rows)
    np.divide(rows - least, width, out=scaled, where=width > 0.0)
    return scaled
