"""The symmetric matrix that takes the correlations out of features: see ``sf2el.model.bank.whitening``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.maps.gaussian_map import correlation

Floats = npt.NDArray[np.float64]


def whitening(covariance: Floats, rows: float, least_spread: float) -> Floats:
    """Return the matrix for features of which so many rows have shown this covariance."""
    dim = len(covariance)
    drawn = (rows * correlation(covariance) + dim * np.eye(dim)) / (rows + dim)
    values, vectors = np.linalg.eigh(drawn)
    values = np.maximum(values, 0.0)
    scale = np.sqrt(dim / max(float(np.sum(values / (values + least_spread))), 1e-12))
    return np.asarray(scale * (vectors / np.sqrt(values + least_spread)) @ vectors.T)
