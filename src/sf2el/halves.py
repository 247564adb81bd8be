r"""Numbers of 16 bits, and what an expert of half precision keeps in place of its covariance.

C, posterior minus prior covariance of the coefficients, nearly cancels the prior once there are many labels,
and 16 bits would lose the rest. Kept is the covariance of the linear coefficients and of what each kept row
adds to those before it (its innovation),

.. math:: S = T (prior + C) T', \quad T = diag(I, R), \quad R'R = K, \quad K_{ij} = k(x_i, x_j).

Its radial part is the prior's scale on the diagonal to begin with, however alike the rows are, and falls as
labels come: rounding takes the same small share of each entry, early and late.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.posterior import PosteriorSettings

Floats = npt.NDArray[np.float64]

JITTER = 1e-6
LARGEST_HALF = 65504.0
LARGEST_BRIEF = 3.3895313892515355e38


def halved(numbers: npt.ArrayLike) -> npt.NDArray[np.float16]:
    """Return the nearest halves; what is too large becomes the largest.

    >>> halved([0.1, 1e9, -3.0]).tolist()
    [0.0999755859375, 65504.0, -3.0]
    """
    limited = np.clip(np.asarray(numbers, dtype=np.float64), -LARGEST_HALF, LARGEST_HALF)
    return limited.astype(np.float32).astype(np.float16)


def brief(numbers: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return the nearest numbers of which 16 bits say all: the front half of a float32 (bfloat16).

    >>> brief([0.1, 3.0]).tolist()
    [0.10009765625, 3.0]
    """
    single = np.clip(np.asarray(numbers, dtype=np.float64), -LARGEST_BRIEF, LARGEST_BRIEF).astype(np.float32)
    bits = single.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def front_halves(numbers: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """Return the 16 bits of brief numbers."""
    return (brief(numbers).view(np.uint32) >> 16).astype(np.uint16)


def from_front_halves(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the brief numbers of 16 bits each.

    >>> from_front_halves(front_halves([3.0, -0.5])).tolist()
    [3.0, -0.5]
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def innovations_of(settings: PosteriorSettings, rows: Floats, covariance: Floats) -> Floats:
    """Return S from C.

    >>> settings = PosteriorSettings(size=2, gamma=1.0)
    >>> rows, C = np.array([[0.0], [1.0]]), np.diag([-1.0, -2.0, -3.0, -4.0])
    >>> bool(np.allclose(covariance_of(settings, rows, innovations_of(settings, rows, C)), C))
    True
    """
    root, linear = _root(settings, rows), len(covariance) - len(rows)
    innovations = covariance.copy()
    innovations[linear:] = root @ innovations[linear:]
    innovations[:, linear:] = innovations[:, linear:] @ root.T
    return innovations + _prior(settings, linear, len(rows))


def covariance_of(settings: PosteriorSettings, rows: Floats, innovations: Floats) -> Floats:
    """Return C from S."""
    root, linear = _root(settings, rows), len(innovations) - len(rows)
    covariance = innovations - _prior(settings, linear, len(rows))
    covariance[linear:] = np.linalg.solve(root, covariance[linear:])
    covariance[:, linear:] = np.linalg.solve(root, covariance[:, linear:].T).T
    return np.asarray(np.tril(covariance) + np.tril(covariance, -1).T)


def variance_at(settings: PosteriorSettings, rows: Floats, innovations: Floats, psi: Floats) -> float:
    """Return the variance of the function where its features are psi."""
    linear = len(psi) - len(rows)
    shares = np.linalg.solve(_root(settings, rows).T, psi[linear:])
    at = np.concatenate([psi[:linear], shares])
    unexpressed = 1.0 - float(shares @ shares) if settings.size else 0.0
    return float(at @ innovations @ at) + settings.rbf_scale * unexpressed


def _root(settings: PosteriorSettings, rows: Floats) -> Floats:
    """Return the upper triangular factor of the Gram matrix."""
    apart = [np.sum((rows - row) ** 2, axis=1) for row in rows]
    gram = np.exp(-settings.gamma * np.array(apart).reshape(len(rows), len(rows)))
    np.fill_diagonal(gram, 1.0 + JITTER)
    return np.asarray(np.linalg.cholesky(gram).T)


def _prior(settings: PosteriorSettings, linear: int, radial: int) -> Floats:
    scales = np.full(linear + radial, settings.linear_scale)
    scales[linear:] = settings.rbf_scale
    return np.diag(scales)
