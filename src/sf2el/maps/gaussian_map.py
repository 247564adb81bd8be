r"""The map that recovers vanished features, from means and covariances alone.

The new features are taken as a noisy linear function of the old ones, and Bayes' rule turns that round by the
covariance S that the old space has shown all its life. With x the old features in deviations from their mean
and a the standardised new ones,

.. math:: a = W'x + e, \quad e \sim N(0, R), \qquad
    \hat x(z) = m_x + S W (W'SW + R)^{-1} a(z).

W and R are fitted to the overlap's B rows by ridge regression. Then come the new rows of which the old
features were never seen: their covariance G is what W'SW + R should be, and some steps of
expectation-maximisation bring W and R to agree with it, the later rows counting as at most ``FEW`` times the
overlap's. While there are few of them, what the overlap cannot have shown stays noise.

A short overlap leaves most of W open, so it matters what is thought of it before any row is seen. Column j
of W, how a new feature depends on the old ones, is normal with covariance

.. math:: \sigma^2 D (I + c \, 1 1') D / (1 + c), \qquad D = \mathrm{diag}(\tau).

Either all old features matter alike, tau = 1 and c = 0, or the new ones are sums of readings: each old one
matters by how far it varies as it is read, and weights of one sign have c = ``COMMON`` of them in common. The
evidence of the overlap, its probability with W integrated out, weighs the two; tau^2 and c are their means.
(With K = XAA'X' scaled to trace B - 1, X the overlap's old features about their mean and AA' the covariance
above, it is that of new features with covariance (1 - r) K + r I, of any scale, for r either of
``SHARES_OF_NOISE``; beforehand the log odds are ``UNLIKELY`` against sums.) In the coordinates x' = A'x ridge
regression has this prior.

Sums have no constant: where every old feature reads 0, so does the new one. If that holds it is as good as
one more row with both spaces, far from the others. How well the fitted W foretells it says whether it holds:
against a constant as large as the prior of W makes the distance to that row, and with ``ONE_SIGN`` for c, as
weights drawn evenly from 0 to 1 have it, the log odds must be ``SURE_OF_ZERO`` or more.

Where S is not known, the rows of the overlap tell by the directions that they span what old features are
likely; then nothing is thought of W beforehand but that all matter alike.

New features may have little to do with the old ones. How little is told by a trial regression with ridge
t = ``TRIAL_RIDGE`` d1 on the overlap's rows. With K their Gram matrix about their mean, which has B - 1
eigenvalues, the share rho of a new feature that it leaves is, on average,

.. math:: \rho_0 = t^2 \, \mathrm{tr}\, K (K + tI)^{-2} / \mathrm{tr}\, K, \qquad
    \rho_1 = t^2 \, \mathrm{tr}\, (K + tI)^{-2} / (B - 1)

where it is a linear function of the old ones, and where it has nothing to do with them. (rho - rho_0) over
rho_1, less what chance makes of it in so few rows, is its unexplained share: near 1 for noise, but less where
there are about as many old features as rows, which then fit anything. Part of it is noise of that feature,
whatever later rows say. The mean u over the new features explained best, as many as there are old ones and so
enough to tell them all, raises the ridge by d1 u, as noise of variance u does where coefficients have
variance 1 / d1. What cannot be recovered then stays near its mean.

The steps are a backend's (``numpy_backend/gaussian_map.py``, ``native/core/gaussian_map.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el import core as _core

Floats = npt.NDArray[np.float64]

RIDGE = 0.1
STEPS = 10
FEW_STEPS = 5
"""Where S is not known: more would follow rounding."""

FEW = 5.0
LEAST_NOISE = 1e-3
SHRUNK = 0.2
"""Share of the way that the old features' correlation, as shown, goes back to none at all."""

UNSEEN = 0.1
"""Share of what the overlap cannot have shown that counts as noise of the new features."""

SOON = 5.0
"""Later rows after which a quarter of that noise is left."""

COMMON = 0.3
UNLIKELY = 2.0
"""Log odds, beforehand, against sums of readings."""

ONE_SIGN = 3.0
SHARES_OF_NOISE = (0.1, 0.9)
LEAST_WEIGHT = 0.05
"""Of an old feature that hardly varies as it is read, beside the root mean square of all."""

SURE_OF_ZERO = 3.0
FARTHEST_ZERO = 100.0
"""Deviations of an old feature beyond which its 0 is too far away to be asked."""

TRIAL_RIDGE = 0.1
"""Ridge of the trial regression for each old feature."""

CAUTION = 20.0
"""Divided by the square of the rows that had both spaces: the unexplained share that chance may make."""

NOISE = 0.5
"""Share of the unexplained that counts as noise of the new features, whatever later rows say."""


@dataclass(frozen=True)
class Shown:
    """What a space has shown: mean, deviation and covariance of features, and rows beyond the overlap.

    The covariance may be of features in any unit: only their correlation counts.
    """

    mean: Floats
    deviation: Floats
    covariance: Floats
    later: float


@dataclass(frozen=True)
class Known:
    """What a map rests on: mean and covariance of (new, old) features in the overlap, and each space's own.

    Old features are in standard deviations over their space's divisor, new ones as read. Of the covariance
    that the old space has shown, again, only the correlation counts; None of either is not known. ``read`` is
    mean and standard deviation of the old features as they are read.
    """

    rows: int
    new_dim: int
    mean: Floats
    covariance: Floats
    old: Floats | None
    new: Shown | None
    whole: bool = True
    """Whether ``covariance`` is that of the rows, not a sketch which leaves directions of them out."""

    read: tuple[Floats, Floats] | None = None


def correlation(covariance: Floats) -> Floats:
    """Return a covariance with every variance brought to 1, or 0 where it is 0.

    >>> correlation(np.array([[4.0, 2.0], [2.0, 4.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    inverse = np.divide(1.0, deviation, out=np.zeros(len(deviation)), where=deviation > 1e-9)
    return np.asarray(covariance * inverse[:, None] * inverse)


class Solved(NamedTuple):
    """A map: its matrix, old features by (new features, 1), and the center that the new ones are taken from.

    ``unexplained`` is the share of the new features, of as many as there are old ones, those explained best,
    that the old ones do not explain.
    """

    matrix: Floats
    center: Floats
    unexplained: float


def gaussian_map(known: Known, divisor: float, backend: str | None = None) -> Solved:
    """Return the map from what is known of both spaces.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> Z = X @ rng.normal(size=(2, 3)) + 7.0
    >>> both = np.hstack([Z, X])
    >>> known = Known(40, 3, both.mean(axis=0), np.cov(both.T, bias=True), np.eye(2), None)
    >>> matrix, center, unexplained = gaussian_map(known, 1.0)
    >>> bool(np.abs((Z - center) @ matrix[:, :3].T + matrix[:, 3] - X).max() < 0.1), round(unexplained, 2)
    (True, 0.0)
    """
    return Solved(*_core.backend(backend).gaussian_map(known, divisor))
