"""A new feature space made from an old one by a random matrix."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import check_choice

Floats = npt.NDArray[np.float64]
MatrixKind = Literal["uniform", "gaussian"]


def random_matrix(rows: int, columns: int, kind: MatrixKind, rng: np.random.Generator) -> Floats:
    """Return a matrix of independent entries: Uniform(0, 1), or standard normal.

    >>> random_matrix(2, 3, "uniform", np.random.default_rng(0)).round(3).tolist()
    [[0.637, 0.27, 0.041], [0.017, 0.813, 0.913]]
    """
    check_choice("matrix", kind, get_args(MatrixKind))
    if kind == "uniform":
        return rng.uniform(0.0, 1.0, size=(rows, columns))
    return rng.normal(size=(rows, columns))


def with_noise(rows: Floats, noise: float, rng: np.random.Generator) -> Floats:
    """Return the rows with normal noise whose sd is ``noise`` times each feature's own."""
    if noise == 0.0:
        return rows
    return np.asarray(rows + noise * rows.std(axis=0) * rng.normal(size=rows.shape))
