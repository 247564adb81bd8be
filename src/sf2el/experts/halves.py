r"""Numbers of 16 bits, and what an expert of half precision keeps in place of its covariance.

C, posterior minus prior covariance of the coefficients, nearly cancels the prior once there are many labels,
and 16 bits would lose the rest. Kept is the covariance of the linear coefficients and of what each kept row
adds to those before it (its innovation),

.. math:: prior + C = T' S T, \quad T = diag(I, F), \quad F'F = K^{-1}, \quad K_{ij} = k(x_i, x_j),

with F lower triangular and positive on its diagonal, so that it follows from the rows. The radial part of S
is the prior's scale on the diagonal to begin with, however alike the rows are, and falls as labels come:
rounding takes the same small share of each entry, early and late. Unless bytes are short F is kept too, each
row as whole numbers of 16 bits times a power of two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sf2el.experts.posterior import PosteriorSettings

Floats = npt.NDArray[np.float64]

JITTER = 1e-6
FACTOR_BITS = 15
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


def whole_rows(factor: npt.ArrayLike) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """Return the rows of F as whole numbers, and the power of two that each row is to be multiplied by.

    >>> whole_rows([[0.75, 0.0], [-3.0, 1.5]])
    (array([[ 24576,      0],
           [-24576,  12288]], dtype=int16), array([0, 2], dtype=int16))
    """
    rows = np.asarray(factor, dtype=np.float32)
    exponents = np.frexp(np.max(np.abs(rows), axis=1, initial=0.0))[1]
    most = np.float32((1 << FACTOR_BITS) - 1)
    scaled = np.clip(np.ldexp(rows, (FACTOR_BITS - exponents)[:, None]), -most, most)
    whole = np.trunc(scaled + np.where(scaled < 0.0, np.float32(-0.5), np.float32(0.5)))
    return whole.astype(np.int16), exponents.astype(np.int16)


def from_whole_rows(
    whole: npt.NDArray[np.int16], exponents: npt.NDArray[np.int16]
) -> npt.NDArray[np.float32]:
    """Return F from what ``whole_rows`` returned.

    >>> from_whole_rows(*whole_rows([[0.75, 0.0], [-3.0, 1.5]])).tolist()
    [[0.75, 0.0], [-3.0, 1.5]]
    """
    return np.ldexp(whole.astype(np.float32), exponents.astype(np.int32)[:, None] - FACTOR_BITS)


def factor_of(settings: PosteriorSettings, rows: Floats) -> Floats:
    """Return F from the rows: the inverse of the lower triangular root of their Gram matrix."""
    apart = [np.sum((rows - row) ** 2, axis=1) for row in rows]
    gram = np.exp(-settings.gamma * np.array(apart).reshape(len(rows), len(rows)))
    np.fill_diagonal(gram, 1.0 + JITTER)
    return np.tril(np.linalg.inv(np.linalg.cholesky(gram)))


def innovations_of(settings: PosteriorSettings, factor: Floats, covariance: Floats) -> Floats:
    """Return S from C.

    >>> settings = PosteriorSettings(size=2, gamma=1.0)
    >>> F, C = factor_of(settings, np.array([[0.0], [1.0]])), np.diag([-1.0, -2.0, -3.0, -4.0])
    >>> bool(np.allclose(covariance_of(settings, F, innovations_of(settings, F, C)), C))
    True
    """
    linear = len(covariance) - len(factor)
    innovations = covariance.copy()
    innovations[linear:] = np.linalg.solve(factor.T, innovations[linear:])
    innovations[:, linear:] = np.linalg.solve(factor.T, innovations[:, linear:].T).T
    return innovations + np.diag(prior_scales(settings, linear, len(factor)))


def covariance_of(settings: PosteriorSettings, factor: Floats, innovations: Floats) -> Floats:
    """Return C from S."""
    linear = len(innovations) - len(factor)
    covariance = innovations - np.diag(prior_scales(settings, linear, len(factor)))
    covariance[linear:] = factor.T @ covariance[linear:]
    covariance[:, linear:] = covariance[:, linear:] @ factor
    return np.asarray(np.tril(covariance) + np.tril(covariance, -1).T)


def prior_scales(settings: PosteriorSettings, linear: int, radial: int) -> Floats:
    """Return the prior variance of each coordinate of S."""
    return np.repeat([settings.linear_scale, settings.rbf_scale], [linear, radial])
