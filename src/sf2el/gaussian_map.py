r"""The map that recovers vanished features, from means and covariances alone.

The new features are taken as a noisy linear function of the old ones, whitened by the covariance S = LL' that
the old space has shown all its life; Bayes' rule turns that round. With u = L^-1 (x - m_x) and a the
standardised new features,

.. math:: a = W'u + e, \quad e \sim N(0, R), \qquad
    \hat x(z) = m_x + L W (W'W + R)^{-1} a(z).

W and R are fitted to the overlap's B rows by ridge regression. Then come the new rows of which the old
features were never seen: their covariance G is what W'W + R should be, and a few steps of
expectation-maximisation bring W and R to agree with it, the later rows counting as at most ``FEW`` times the
overlap's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RIDGE = 0.1
STEPS = 5
FEW = 5.0
LEAST_NOISE = 1e-3
UNSEEN = 0.1
"""Share of what the overlap cannot have shown that counts as noise of the new features."""


@dataclass(frozen=True)
class Shown:
    """What a space has shown: mean, deviation and correlation of features, and rows beyond the overlap."""

    mean: Floats
    deviation: Floats
    correlation: Floats
    later: float


@dataclass(frozen=True)
class Known:
    """What a map rests on: mean and covariance of (new, old) features in the overlap, and each space's own.

    Old features are in standard deviations over their space's divisor, new ones as read.
    """

    rows: int
    new_dim: int
    mean: Floats
    covariance: Floats
    old: Floats | None
    new: Shown | None


def correlation(covariance: Floats) -> Floats:
    """Return a covariance with every variance brought to 1, or 0 where it is 0.

    >>> correlation(np.array([[4.0, 2.0], [2.0, 4.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    inverse = np.divide(1.0, deviation, out=np.zeros(len(deviation)), where=deviation > 1e-9)
    return np.asarray(covariance * inverse[:, None] * inverse)


@dataclass
class _Sums:
    """Sums of products of whitened old (u) and standardised new (a) features over rows of this weight."""

    weight: float
    uu: Floats
    ua: Floats
    aa: Floats

    def inverse(self) -> Floats:
        """Return the inverse of uu + RIDGE."""
        return np.asarray(np.linalg.inv(_raised(self.uu, RIDGE)))

    def noise(self, w: Floats) -> Floats:
        """Return the variance of what W leaves unexplained."""
        left = self.aa + np.einsum("ij,ij->j", w, self.uu @ w - 2.0 * self.ua)
        return np.asarray(np.maximum(left / self.weight, 0.0) + LEAST_NOISE)


def _raised(matrix: Floats, by: float | Floats) -> Floats:
    """Return a matrix with something added to its diagonal."""
    raised = matrix.copy()
    raised.flat[:: len(matrix) + 1] += by
    return raised


def gaussian_map(known: Known, divisor: float) -> tuple[Floats, Floats]:
    """Return a matrix, old features by (new features, 1), and the center that the new ones are taken from.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> Z = X @ rng.normal(size=(2, 3)) + 7.0
    >>> both = np.hstack([Z, X])
    >>> known = Known(40, 3, both.mean(axis=0), np.cov(both.T, bias=True), np.eye(2), None)
    >>> matrix, center = gaussian_map(known, 1.0)
    >>> bool(np.abs((Z - center) @ matrix[:, :3].T + matrix[:, 3] - X).max() < 0.1)
    True
    """
    new_dim = known.new_dim
    rows = float(known.rows)
    covariance, m_x = known.covariance, known.mean[new_dim:] * divisor
    shown = known.new or Shown(
        known.mean[:new_dim],
        np.sqrt(np.maximum(np.diagonal(covariance)[:new_dim], 0.0)),
        np.zeros((new_dim, new_dim)),
        0.0,
    )
    varies = shown.deviation > 1e-12 * np.abs(shown.mean) + 1e-30
    inverse = np.divide(1.0, shown.deviation, out=np.zeros(new_dim), where=varies)
    a_0 = (known.mean[:new_dim] - shown.mean) * inverse
    xx = covariance[new_dim:, new_dim:] * divisor**2
    xa = covariance[new_dim:, :new_dim] * divisor * inverse
    aa = np.diagonal(covariance)[:new_dim] * inverse**2
    # Standardised features of which no more is known are taken as uncorrelated.
    old = np.eye(len(m_x)) if known.old is None else known.old
    lower = np.linalg.cholesky(_raised(old, LEAST_NOISE))
    whiten = np.linalg.inv(lower)

    def sums(extra: float) -> tuple[_Sums, Floats, Floats]:
        """Sums about the means, where the later rows stand as one row of this weight: old features at 0."""
        weight = rows + extra
        rest = -rows * a_0 / shown.later if shown.later > 0.0 else np.zeros(new_dim)
        mean_x, mean_a = rows * m_x / weight, (rows * a_0 + extra * rest) / weight
        off_x, off_a = m_x - mean_x, a_0 - mean_a
        sum_xx = rows * (xx + np.outer(off_x, off_x)) + extra * np.outer(mean_x, mean_x)
        sum_xa = rows * (xa + np.outer(off_x, off_a)) - extra * np.outer(mean_x, rest - mean_a)
        sum_aa = rows * (aa + off_a**2) + extra * (rest - mean_a) ** 2
        return _Sums(weight, whiten @ sum_xx @ whiten.T, whiten @ sum_xa, sum_aa), mean_x, mean_a

    def fitted(found: _Sums) -> tuple[Floats, Floats]:
        inverse = found.inverse()
        w = inverse @ found.ua
        unseen = RIDGE * float(np.trace(inverse)) / len(m_x)
        return w, found.noise(w) + UNSEEN * unseen * float(np.mean(np.sum(w**2, axis=0)))

    found, mean_x, mean_a = sums(0.0)
    w, noise = fitted(found)
    if shown.later > 0.0:
        # The mean of many later rows says where the old features' mean was, as surely as the noise allows.
        found, mean_x, mean_a = sums(shown.later * float(np.mean(noise)))
        w, noise = fitted(found)
        w, noise = _agreed(found, w, noise, shown.correlation, min(FEW * rows, shown.later))
    back = np.linalg.solve(_raised(w.T @ w, noise), w.T @ lower.T)
    matrix = (inverse[:, None] * back).T
    center = shown.mean + shown.deviation * mean_a
    return np.column_stack([matrix, mean_x]) / divisor, center


def _agreed(
    found: _Sums, w: Floats, noise: Floats, correlation: Floats, weight: float
) -> tuple[Floats, Floats]:
    """Return W and R after some steps of expectation-maximisation on rows without the old features."""
    for _ in range(STEPS):
        gain = np.linalg.solve(_raised(w.T @ w, noise), w.T)  # E[u | a] = gain' a
        seen = correlation @ gain
        both = _Sums(
            found.weight + weight,
            _raised(found.uu + weight * (gain.T @ seen - w @ gain), weight),
            found.ua + weight * seen.T,
            found.aa + weight * np.diagonal(correlation),
        )
        w = both.inverse() @ both.ua
        noise = both.noise(w)
    return w, noise
