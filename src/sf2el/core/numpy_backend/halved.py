"""The posterior expert in half the bytes: the readable reading of ``native/halved.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np

from sf2el.core.numpy_backend.posterior import (
    LEAST_PIVOT,
    LEAST_VARIANCE,
    STEP_BACK,
    Array,
    Floats,
    Posterior,
    lower,
)
from sf2el.experts.halves import (
    covariance_of,
    factor_of,
    from_whole_rows,
    halved,
    innovations_of,
    prior_scales,
    whole_rows,
)

LEAST_NOVELTY = 1e-5
LARGE_FACTOR = 16.0
REMOVALS_BETWEEN_REFRESHES = 64


class Halved(Posterior):
    """Rows and covariance of 16 bits a number, coefficients of 32. See ``sf2el.experts.halves``."""

    def _begin(self, centred: bool) -> None:
        s = self.settings
        self._factor: Array = np.zeros((0, 0), np.float32)
        self._innovations: Array = np.diag(prior_scales(s, self._linear, 0)).astype(np.float32)
        if centred:
            self._join(np.zeros(self.dim, np.float32), np.zeros(0, np.float32), np.float32(1.0))
            self.joined = 0
            self._innovations[-1, -1] = (1.0 - s.centred) * s.rbf_scale
        self._round(basis=True)

    def _round(self, *, basis: bool) -> None:
        """Go on with what 16 bits say."""
        self._innovations = lower(halved(self._innovations).astype(np.float32))
        if not basis:
            return
        self._rows = halved(self._rows).astype(np.float32)
        if self.settings.keep_inverse:
            self._factor = from_whole_rows(*whole_rows(self._factor))
        else:
            self._factor = factor_of(self.settings, self._rows.astype(np.float64)).astype(np.float32)

    # -- predicting

    def _coordinates(self, psi: Array) -> tuple[Array, float]:
        """Return (phi, F k), and the share of the row that the kept ones do not express."""
        b = self._factor @ psi[self._linear :]
        left = 1.0 - float(b @ b) if self.settings.size else 0.0
        return np.concatenate([psi[: self._linear], b]), left

    def _soften(self, means: Floats, psi: Array) -> Floats:
        at, left = self._coordinates(psi)
        return self._softened(means, self._variance(at @ (self._innovations @ at), left))

    def _variance(self, inside: Any, left: float) -> float:
        return float(inside) + self.settings.rbf_scale * max(left, 0.0)

    # -- learning

    def _update(self, x: Array, psi: Array, means: Floats, y: float, weight: float) -> None:
        s, linear = self.settings, self._linear
        at, left = self._coordinates(psi)
        if s.forget > 0.0:
            self._go_towards_prior(s.forget)
        gain = self._innovations @ at
        inside = float(at @ gain)
        v = self._variance(inside, left)
        spent = not v > LEAST_VARIANCE
        steps, divisor = self._steps(means, y, weight, LEAST_VARIANCE if spent else v)
        self.labels += 1
        if spent or not self._is_column(gain, inside):
            # Rounding has eaten the variance, and a step would feed on rounding alone: none is taken.
            self._go_towards_prior(STEP_BACK)
            self.floored += 1
            self._round(basis=False)
            return
        moved = self._of_coefficients(gain)
        joins = False
        if s.size and left > self._novelty:
            e, g = self._expressed(psi[linear:])
            fresh = moved.copy()
            fresh[linear:] -= np.float32(s.rbf_scale) * e
            stays = self.size < s.size or not self._would_leave_at_once(fresh, steps, e, float(g))
            as_kept = self._as_kept(x) if stays else None
            if as_kept is not None and s.rbf_scale * as_kept[2] < divisor:
                joins = True
                scale, (kept, e, g) = np.float32(s.rbf_scale), as_kept
                moved[linear:] -= scale * e
                moved, gain = np.append(moved, scale), np.append(gain, scale * np.sqrt(g))
                self._join(kept, e, g)
        self._mean += np.outer(steps.astype(np.float32), moved)
        self._innovations = self._innovations - np.outer(gain * np.float32(1.0 / divisor), gain)
        if self.size > s.size:
            self._remove(self._least_useful())
        if joins:
            self._tidy()
        self._round(basis=joins)

    def _tidy(self) -> None:
        """Rounding adds up as rows join, the faster the larger the numbers of F."""
        if self.settings.keep_inverse and np.max(np.abs(self._factor[-1])) > LARGE_FACTOR:
            self._refresh()

    def _go_towards_prior(self, share: float) -> None:
        scales = prior_scales(self.settings, self._linear, self.size)
        kept = np.float32(1.0 - share) * self._innovations
        self._innovations = kept + np.diag(share * scales).astype(np.float32)

    def _of_coefficients(self, gain: Array) -> Array:
        """Return what a gain in the coordinates of S is to the coefficients."""
        return np.concatenate([gain[: self._linear], self._factor.T @ gain[self._linear :]])

    def _is_column(self, gain: Array, inside: float) -> bool:
        """Whether the gain can be one column of a covariance but for rounding: gain_j^2 <= S_jj psi'S psi."""
        own = np.diagonal(self._innovations).astype(np.float64)
        return bool(np.all(gain.astype(np.float64) ** 2 <= own * inside * 1.001))

    def _expressed(self, k: Array) -> tuple[Array, Any]:
        b = self._factor @ k
        return self._factor.T @ b, np.float32(1.0 - float(b @ b))

    def _pivots(self) -> Floats:
        return np.asarray(np.sum(self._factor**2, axis=0), dtype=np.float64)

    def _as_kept(self, x: Array) -> tuple[Array, Array, Any] | None:
        """Return a row as it would be kept, and how the kept ones express that; None where they do so wholly.

        Kernels are computed to it as it is kept from then on.
        """
        kept = halved(x).astype(np.float32)
        e, g = self._expressed(self._kernels(kept))
        return (kept, e, g) if g > LEAST_NOVELTY else None

    def _join(self, x: Array, e: Array, g: Any) -> None:
        """What the row adds to the kept ones is a coordinate of its own."""
        root = np.sqrt(np.float32(g))
        self._factor = np.pad(self._factor, (0, 1))
        self._factor[-1] = np.append(-e / root, np.float32(1.0) / root)
        self._innovations = np.pad(self._innovations, (0, 1))
        self._innovations[-1, -1] = self.settings.rbf_scale
        self._rows = np.vstack([self._rows, x])
        self._mean = np.pad(self._mean, ((0, 0), (0, 1)))
        self.joined += 1

    # -- unlabelled rows

    def _tie(self, x: Array, psi: Array) -> None:
        before = self.joined
        super()._tie(x, psi)
        self._round(basis=self.joined != before)

    def _join_unlabelled(self, x: Array, e: Array, g: Any) -> None:
        as_kept = self._as_kept(x)
        if as_kept is not None:
            self._join(*as_kept)
            self._tidy()

    def _observe_equal(self, i: int, j: int, noise: float) -> None:
        linear = self._linear
        at_i, at_j = self._kernels(self._rows[i]), self._kernels(self._rows[j])
        at_i[i] = at_j[j] = 1.0
        between = np.zeros(linear + self.size, np.float32)
        between[: linear - 1] = (self._rows[i] - self._rows[j])[: linear - 1]
        between[linear:] = at_i - at_j
        at, _ = self._coordinates(between)
        gain = self._innovations @ at
        v = float(at @ gain)
        if not v > LEAST_VARIANCE or not self._is_column(gain, v):
            self.floored += 1
            return
        moved = self._of_coefficients(gain)
        steps = -(self._mean @ between).astype(np.float64) / (noise + v)
        self._mean += np.outer(steps.astype(np.float32), moved)
        self._innovations = self._innovations - np.outer(gain * np.float32(1.0 / (noise + v)), gain)

    # -- keeping to the budget

    def _remove(self, i: int) -> None:
        """Write k_i over the other rows; turn coordinates until its own direction is the last, which goes."""
        linear = self._linear
        down = self._factor[:, i].copy()
        q = self._factor.T @ down
        self._mean[:, linear:] -= np.outer(self._mean[:, linear + i], q / np.float32(max(q[i], LEAST_PIVOT)))
        self._mean = np.delete(self._mean, linear + i, axis=1)
        self._rows = np.delete(self._rows, i, axis=0)
        for r in range(i, len(down) - 1):
            length = np.sqrt(down[r] ** 2 + down[r + 1] ** 2)
            c, s = (down[r + 1] / length, down[r] / length) if length > 0.0 else (1.0, 0.0)
            down[r + 1] = length
            turn = np.array([[-c, s], [s, c]], np.float32)  # a reflection: the diagonal stays positive
            self._factor[r : r + 2] = turn @ self._factor[r : r + 2]
            pair = slice(linear + r, linear + r + 2)
            self._innovations[pair] = turn @ self._innovations[pair]
            self._innovations[:, pair] = self._innovations[:, pair] @ turn.T
        self._factor = np.tril(np.delete(self._factor[:-1], i, axis=1))
        self._innovations = self._innovations[:-1, :-1].copy()
        self.removed += 1
        if self.removed % REMOVALS_BETWEEN_REFRESHES == 0 and self.settings.keep_inverse:
            self._refresh()

    def _refresh(self) -> None:
        """What rounding has added to F goes."""
        self._factor = factor_of(self.settings, self._rows.astype(np.float64)).astype(np.float32)
        self.refreshed += 1

    # -- state

    def _arrays(self) -> dict[str, Array]:
        factor, innovations = self._factor.astype(np.float64), self._innovations.astype(np.float64)
        return {
            "rows": self._rows,
            "coefficients": self._mean,
            "covariance": covariance_of(self.settings, factor, innovations),
            "inverse": factor.T @ factor,
            "innovations": innovations,
            "factor": factor,
        }

    def _take(self, arrays: dict[str, Floats]) -> None:
        self._rows = halved(arrays["rows"]).astype(np.float32)
        own = factor_of(self.settings, self._rows.astype(np.float64))
        if "innovations" in arrays:
            self._innovations = arrays["innovations"].astype(np.float32)
            self._factor = arrays.get("factor", own).astype(np.float32)
        else:
            self._innovations = innovations_of(self.settings, own, arrays["covariance"]).astype(np.float32)
            self._factor = own.astype(np.float32)
        self._round(basis=True)
