"""The posterior expert in NumPy: the readable reading of ``native/posterior.hpp``.

The steps, their order and the decisions are the same; only the order of the additions inside a sum differs.
"""

from __future__ import annotations

from math import isnan, nan, pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.expert import Expert
from sf2el.core.numpy_backend.tasks import is_classification, risk_of, sigmoid, targets
from sf2el.experts.posterior import PosteriorSettings, posterior_bytes
from sf2el.paper.kernels import LARGEST, LARGEST_SINGLE, exp_or_zero, squared_distances, within

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.floating]

MOST_FEATURE, MOST_NUMBER = 1e3, 1e6
LEAST_VARIANCE, LEAST_NOISE, LEAST_CURVATURE, LEAST_PIVOT = 1e-9, 1e-4, 1e-3, 1e-6
STEP_BACK, LEAST_TIE = 0.05, 1e-2
REMOVALS_BETWEEN_REFRESHES = 16

COUNTERS = ("labels", "joined", "removed", "floored", "refreshed", "ties")


class Posterior(Expert):
    """A linear part and some radial functions under one Gaussian posterior. See ``PosteriorSettings``."""

    settings: PosteriorSettings

    def __init__(self, settings: PosteriorSettings, dim: int, precision: str = "float64") -> None:
        super().__init__(settings, dim)
        self.precision = precision
        real = np.dtype("float32" if precision == "float16" else precision)
        double = real == np.float64
        self._real = real
        self._huge = LARGEST if double else LARGEST_SINGLE
        self._jitter = 1e-12 if double else 1e-6
        self._rounding = 1e-13 if double else 1e-5
        self._novelty = max(settings.novelty, 1e-12 if double else 1e-5)
        self._linear = settings.linear_of(dim)
        self._rows: Array = np.zeros((0, dim), real)
        self._mean: Array = np.zeros((settings.outputs, self._linear), real)
        self.labels = self.joined = self.removed = self.floored = self.refreshed = self.ties = 0
        self._residuals = 0.0
        self._begin(settings.size > 0 and settings.centred > 0.0)

    def _begin(self, centred: bool) -> None:
        """Know nothing; ``centred``: the origin is a kept row at which little is left to learn.

        What rows share is the constant's.
        """
        s, real = self.settings, self._real
        self._covariance: Array = np.zeros((self._linear, self._linear), real)  # posterior minus prior
        self._inverse: Array = np.zeros((0, 0), real)  # of the Gram matrix; see _ready
        if centred:
            self._join(np.zeros(self.dim, real), np.zeros(0, real), real.type(1.0))
            self.joined = 0
            self._covariance[-1, -1] = -s.centred * s.rbf_scale

    @property
    def size(self) -> int:
        """Rows kept."""
        return len(self._rows)

    # -- predicting

    def _scores(self, x: Floats) -> Floats:
        psi = self._features(self._own(x))
        return self._soften(self._means(psi), psi)

    def _own(self, x: Floats) -> Array:
        return np.clip(x, -MOST_FEATURE, MOST_FEATURE).astype(self._real)

    def _features(self, x: Array) -> Array:
        bias = self._real.type(sqrt(self.settings.bias))
        return np.concatenate([x[: self._linear - 1], [bias], self._kernels(x)]).astype(self._real)

    def _kernels(self, x: Array) -> Array:
        return exp_or_zero(-within(self.settings.gamma, x) * squared_distances(self._rows, x))

    def _means(self, psi: Array) -> Floats:
        # Not by BLAS, which was seen to report an invalid value in such a small product of finite float32.
        products: Array = np.einsum("kj,j->k", self._mean, psi)
        return np.clip(products.astype(np.float64), -self._huge, self._huge)

    def _prior(self, psi: Array) -> float:
        phi = psi[: self._linear]
        s = self.settings
        return s.linear_scale * float(phi @ phi) + (s.rbf_scale if s.size else 0.0)

    def _soften(self, means: Floats, psi: Array) -> Floats:
        return self._softened(means, self._prior(psi) + float(psi @ (self._covariance @ psi)))

    def _softened(self, means: Floats, variance: float) -> Floats:
        if not is_classification(self.settings.task):
            return means.copy()
        return np.asarray(means / softening(variance))

    # -- learning

    def _teach(self, x: Floats, y: float, weight: float, late: bool) -> tuple[Floats, float]:
        own = self._own(x)
        psi = self._features(own)
        means = self._means(psi)
        scores = self._soften(means, psi)
        if isnan(y):
            if self.uses_unlabelled:
                self._tie(own, psi)
            return scores, nan
        if not is_classification(self.settings.task):
            y = min(max(y, -MOST_NUMBER), MOST_NUMBER)
        risk = risk_of(self.settings.task, scores, y)
        self._update(own, psi, means, y, weight)
        return scores, risk

    def _update(self, x: Array, psi: Array, means: Floats, y: float, weight: float) -> None:
        prior, keep = self._prior(psi), 1.0 - self.settings.forget
        v = prior + keep * float(psi @ (self._covariance @ psi))
        spent = not v > LEAST_VARIANCE
        steps, divisor = self._steps(means, y, weight, LEAST_VARIANCE if spent else v)
        gain = self._gain(x, psi, steps, self._real.type(keep))
        taken = 1.0 / divisor
        if spent or not self._is_covariance(gain, keep, prior, v):
            # Rounding has eaten the variance, and a step would feed on rounding alone: none is taken, and
            # the covariance goes a part of the way back to the prior.
            keep *= 1.0 - STEP_BACK
            taken = 0.0
            self.floored += 1
        else:
            self._mean += np.outer(steps.astype(self._real), gain)
        smaller = np.outer(gain * self._real.type(taken), gain)
        self._covariance = lower(self._real.type(keep) * self._covariance - smaller)
        self.labels += 1
        if self.size > self.settings.size:
            self._remove(self._least_useful())

    def _is_covariance(self, gain: Array, keep: float, prior: float, v: float) -> bool:
        """Whether the gain can be one column of a covariance, but for rounding: gain_j^2 <= variance_j v."""
        s = self.settings
        radial = s.rbf_scale * np.diagonal(self._inverse).astype(np.float64)
        own = np.concatenate([np.full(self._linear, s.linear_scale), radial])
        there = own + keep * np.diagonal(self._covariance).astype(np.float64) + self._rounding * own
        return bool(np.all(gain.astype(np.float64) ** 2 <= (v + self._rounding * prior) * there))

    def _steps(self, means: Floats, y: float, weight: float, v: float) -> tuple[Floats, float]:
        """Return the steps along the gain and D, which the covariance is divided by."""
        s = self.settings
        if is_classification(s.task):
            # What a label says of f is taken as a number with noise: by the likelihood's curvature at the
            # mean, or so that mean and variance become those that f has given the label.
            by = softening(v) if s.matched else 1.0
            p = sigmoid(means / by)
            h = max(float(np.max(p * (1.0 - p))), LEAST_CURVATURE)
            noise = by * by / h - v if s.matched else 1.0 / h
            divisor = noise / weight + v
            return (targets(s.task, self.outputs, y) - p) * (by / (h * divisor)), divisor
        residual = y - means
        size = abs(float(residual[0]))
        scale = (1.0 + self._residuals) / (1.0 + self.labels)
        squared = s.task == "regression_squared"
        noise = max(scale if squared else scale * max(size, 0.1 * scale), LEAST_NOISE)
        self._residuals += size * size if squared else size
        divisor = noise / weight + v
        return residual / divisor, divisor

    def _gain(self, x: Array, psi: Array, steps: Floats, keep: Any) -> Array:
        """Posterior covariance times psi, after the row has joined the kept ones if it is new and stays."""
        s, linear = self.settings, self._linear
        gain = keep * (self._covariance @ psi)
        gain[:linear] += self._real.type(s.linear_scale) * psi[:linear]
        if not s.size:
            return np.asarray(gain)
        e, g = self._expressed(psi[linear:])
        full = self.size == s.size
        if float(g) > self._novelty and not (full and self._would_leave_at_once(gain, steps, e, float(g))):
            self._join(x, e, g)
            return np.append(gain, self._real.type(s.rbf_scale))
        gain[linear:] += self._real.type(s.rbf_scale) * e
        return np.asarray(gain)

    def _expressed(self, k: Array) -> tuple[Array, Any]:
        """Return how the kept rows express a row with these kernels, and the share that they leave."""
        self._ready()
        e = self._inverse @ k
        return e, self._real.type(1.0) - k @ e

    def _pivots(self) -> Floats:
        """Return the diagonal of the inverse of the Gram matrix."""
        return np.diagonal(self._inverse).astype(np.float64)

    def _would_leave_at_once(self, gain: Array, steps: Floats, e: Array, g: float) -> bool:
        """Whether, of all rows after this round, the newcomer would matter least.

        To join and be projected onto the others is the same as to be expressed by them from the start.
        """
        own = self.settings.rbf_scale**2 * g * float(steps @ steps)
        alpha = self._mean[:, self._linear :] + np.outer(steps, gain[self._linear :]).astype(np.float64)
        pivots = self._pivots() + e.astype(np.float64) ** 2 / g
        return bool(np.all((alpha**2).sum(axis=0) > own * pivots))

    def _join(self, x: Array, e: Array, g: Any) -> None:
        grown = self._inverse + np.outer(e / g, e)
        self._inverse = lower(np.block([[grown, -e[:, None] / g], [-e[None, :] / g, 1.0 / g]]))
        self._rows = np.vstack([self._rows, x])
        self._covariance = np.pad(self._covariance, (0, 1))
        self._mean = np.pad(self._mean, ((0, 0), (0, 1)))
        self.joined += 1

    # -- unlabelled rows

    @property
    def uses_unlabelled(self) -> bool:  # type: ignore[override]
        """Whether an unlabelled row can still tell something."""
        s = self.settings
        return s.tie_noise > 0.0 and s.size > 0 and self.ties < s.most_ties

    def _tie(self, x: Array, psi: Array) -> None:
        """Take a row between two kept ones as an observation that f is the same at both, up to noise.

        A row that lies apart from all joins them while there is room.
        """
        s, k, n = self.settings, psi[self._linear :], self.size
        # The nearest alone expresses its kernel squared: only past that does the rest matter.
        if n < s.size and (n == 0 or 1.0 - float(np.max(k)) ** 2 > s.tie_novelty):
            e, g = self._expressed(k)
            if float(g) > s.tie_novelty:
                self._join_unlabelled(x, e, g)
                return
        if n < 2 or 2 * n < s.size:
            return
        first, second = np.argsort(-k, kind="stable")[:2].tolist()
        weight = float(k[second]) ** s.tie_power
        if weight < LEAST_TIE:
            return
        self.ties += 1
        self._observe_equal(first, second, s.tie_noise / weight)

    def _join_unlabelled(self, x: Array, e: Array, g: Any) -> None:
        self._join(x, e, g)

    def _observe_equal(self, i: int, j: int, noise: float) -> None:
        """Take f(x_i) - f(x_j) = 0 as observed with this noise."""
        s, linear = self.settings, self._linear
        at_i, at_j = self._kernels(self._rows[i]), self._kernels(self._rows[j])
        at_i[i] = at_j[j] = 1.0
        zero = np.zeros(1, self._real)
        apart_by = (self._rows[i] - self._rows[j])[: linear - 1]
        between = np.concatenate([apart_by, zero, at_i - at_j]).astype(self._real)
        apart = 2.0 - 2.0 * float(at_i[j])
        v = s.linear_scale * float(between[:linear] @ between[:linear]) + s.rbf_scale * apart
        v += float(between @ (self._covariance @ between))
        if not v > LEAST_VARIANCE:
            self.floored += 1
            return
        gain = self._covariance @ between
        gain[:linear] += self._real.type(s.linear_scale) * between[:linear]
        gain[linear + i] += self._real.type(s.rbf_scale)
        gain[linear + j] -= self._real.type(s.rbf_scale)
        steps = -(self._mean @ between).astype(np.float64) / (noise + v)
        self._mean += np.outer(steps.astype(self._real), gain)
        smaller = np.outer(gain * self._real.type(1.0 / (noise + v)), gain)
        self._covariance = lower(self._covariance - smaller)

    # -- keeping to the budget

    def _least_useful(self) -> int:
        """Return the row whose projection onto the others moves the functions least."""
        pivots = self._pivots()
        self.floored += int(np.count_nonzero(~(pivots > LEAST_PIVOT)))
        alpha = self._mean[:, self._linear :].astype(np.float64)
        return int(np.argmin((alpha * alpha).sum(axis=0) / np.maximum(pivots, LEAST_PIVOT)))

    def _remove(self, i: int) -> None:
        """Write k_i over the other kept rows, with the coefficients u = -Q_.i / Q_ii."""
        linear, at = self._linear, self._linear + i
        q = self._inverse[:, i].copy()
        pivot = self._real.type(max(float(q[i]), LEAST_PIVOT))
        u = np.zeros(linear + self.size, self._real)
        u[linear:] = -q / pivot
        u[at] = 0.0
        self._mean += np.outer(self._mean[:, at], u)
        column = self._covariance[:, at].copy()
        self._covariance = self._covariance + np.outer(u, column[at] * u + column) + np.outer(column, u)
        self._covariance = _without(lower(self._covariance), at)
        self._inverse = _without(lower(self._inverse - np.outer(q / pivot, q)), i)
        self._mean = _last_to(self._mean.T, at).T.copy()
        self._rows = _last_to(self._rows, i)
        self.removed += 1
        if self.removed % REMOVALS_BETWEEN_REFRESHES == 0 and self.settings.keep_inverse:
            # What rounding has added to Q goes.
            self._invert()
            self.refreshed += 1

    def _ready(self) -> None:
        """Where Q is not kept, what is left in it from the last round says nothing."""
        if not self.settings.keep_inverse:
            self._invert()

    def _invert(self) -> None:
        """Compute Q from the rows."""
        gram = np.array([self._kernels(row) for row in self._rows], self._real).reshape(self.size, self.size)
        np.fill_diagonal(gram, 1.0 + self._jitter)
        self._inverse = lower(np.linalg.inv(gram))

    # -- state

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept at full size, as the compiled core lays it out."""
        s = self.settings
        return posterior_bytes(
            self.dim, s.size, self.outputs, self.precision, keep_inverse=s.keep_inverse, slopes=s.slopes
        )

    def state(self) -> dict[str, Any]:
        """Return everything kept, as arrays and numbers."""
        kept: dict[str, Any] = {name: np.array(value, np.float64) for name, value in self._arrays().items()}
        return kept | {name: getattr(self, name) for name in COUNTERS} | {"residuals": self._residuals}

    def _arrays(self) -> dict[str, Array]:
        self._ready()
        return {
            "rows": self._rows,
            "coefficients": self._mean,
            "covariance": self._covariance,
            "inverse": self._inverse,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what ``state`` returned, of this backend or of the other."""
        n = len(state["rows"])
        both = self._linear + n
        shapes = {
            "rows": (n, self.dim),
            "coefficients": (self.outputs, both),
            "covariance": (both, both),
            "inverse": (n, n),
            "innovations": (both, both),
            "factor": (n, n),
        }
        arrays = {name: np.asarray(state[name], np.float64) for name in shapes if name in state}
        fits = all(array.shape == shapes[name] for name, array in arrays.items())
        if n > self.settings.size or not fits:
            raise ValueError("This state does not fit this expert: its sizes differ.")
        for name in COUNTERS:
            setattr(self, name, int(state[name]))
        self._residuals = float(state["residuals"])
        self._mean = arrays["coefficients"].astype(self._real)
        self._take(arrays)

    def _take(self, arrays: dict[str, Floats]) -> None:
        self._rows = arrays["rows"].astype(self._real)
        self._covariance = arrays["covariance"].astype(self._real)
        self._inverse = arrays["inverse"].astype(self._real)


def softening(variance: float) -> float:
    """Return what a score of this variance is divided by, so that its sigmoid is a probability."""
    return sqrt(1.0 + pi / 8.0 * max(variance, LEAST_VARIANCE))


def lower(matrix: Array) -> Array:
    """Return a matrix with its upper triangle taken from the lower: symmetric to the bit."""
    return np.asarray(np.tril(matrix) + np.tril(matrix, -1).T)


def _last_to(values: Array, i: int) -> Array:
    """Return the values without the i-th, whose place the last one takes."""
    out = values[:-1].copy()
    if i < len(out):
        out[i] = values[-1]
    return out


def _without(matrix: Array, i: int) -> Array:
    return _last_to(_last_to(matrix, i).T, i).T.copy()
