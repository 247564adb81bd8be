"""The learner in NumPy: the readable reading of what the compiled core does.

The steps, their order and the random decisions are those of ``native/learner.hpp``; only the order of
the additions inside a sum differs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.core.numpy_backend.projection import inverse_of, pursue, replaced_in_inverse
from sf2el.core.numpy_backend.rows import (
    check_labels,
    check_late_label,
    check_row,
    check_rows,
    check_same_length,
    check_weights,
)
from sf2el.core.rng import SplitMix64
from sf2el.memory.budget import learner_bytes
from sf2el.paper.kernels import LARGEST, LARGEST_SINGLE, exp_or_zero, saturate, squared_distances, within
from sf2el.paper.losses import LOSSES
from sf2el.paper.settings import LearnerSettings

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[np.floating]


def _saturating(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let what overflows become infinite in silence: it is clipped where it is used."""

    @wraps(method)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return method(*args, **kwargs)

    return quiet


class Learner:
    """One online kernel learner with a buffer. See ``sf2el.paper.learner.Learner`` for the meaning."""

    outputs = 1
    uses_unlabelled = True

    def __init__(
        self, settings: LearnerSettings, dim: int, capacity: int, seed: int, precision: str = "float64"
    ) -> None:
        self.settings, self.dim, self.capacity, self.precision = settings, dim, capacity, precision
        real = np.dtype(precision)
        self._real = real
        self._huge = LARGEST if real == np.float64 else LARGEST_SINGLE
        # How far the kept inverse may drift from an inverse before it is computed anew.
        self._residual_limit = 1e-7 if real == np.float64 else 5e-2
        self._loss = LOSSES[settings.loss]
        self._rng = SplitMix64(seed)
        self._rows: Array = np.zeros((0, dim), real)
        self._beta: Array = np.zeros(0, real)
        self._gram: Array = np.zeros((0, 0), real)
        self._inverse: Array = np.zeros((0, 0), real)
        self._inverse_ready = False
        # A row's inclusion probability is the decay of its kind over its weight.
        self._weights: Array = np.zeros(0, real)
        self._decay = [1.0, 1.0]
        self._kinds: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)  # 1: a labelled row's stratum
        self._seen_by_kind = [0, 0]
        self._seen = 0
        self._labels = 0
        self._clock = 0
        self._incoming_weight = 1.0

    # -- predicting

    @_saturating
    def predict(self, x: Floats) -> float:
        """Return the score f(x)."""
        return self._score(self._kernel_row(self._own(check_row(x, self.dim))))

    def predict_many(self, X: Floats) -> Floats:
        """Return the score of every row."""
        return np.array([self.predict(x) for x in check_rows(X, self.dim)], dtype=np.float64)

    # -- learning

    @_saturating
    def learn(self, x: Floats, y: float, weight: float = 1.0) -> tuple[float, float]:
        """Learn one row (y NaN: unlabelled); return its score and risk from before the update.

        ``weight`` multiplies the loss.
        """
        x, label = check_row(x, self.dim), float(check_labels(y))
        return self._round(self._own(x), label, float(check_weights(weight)), frozen=False)

    @_saturating
    def learn_late(self, x: Floats, y: float, weight: float = 1.0) -> tuple[float, float]:
        """Learn the label of a row that was learned without it; return its score and risk of now.

        The loss part of a step of now, and nothing else. The row's own coefficient takes it where the row
        is still there; else it is treated as a skipped row's.
        """
        own = self._own(check_row(x, self.dim))
        check_late_label(y)
        weight = float(check_weights(weight))
        k = self._kernel_row(own)
        score = self._score(k)
        rate = self._inverse_rate(max(self._seen, 1))
        tau = self.settings.step / (self._clock + 1) ** 0.5
        slope = self._finite(weight * self._loss.derivative(score, y))
        fresh = self._real.type(-self._finite(tau * rate * slope))
        same = np.flatnonzero(np.all(self._rows == own, axis=1))
        if len(same):
            self._beta[same[0]] += fresh
        elif self.settings.on_skip == "project" and fresh != 0.0 and len(self._beta):
            self._beta = self._beta + fresh * self._project(k)
        self._beta = self._clip(self._beta)
        self._into_ball()
        self._labels += 1
        return score, self._finite(rate * self._finite(weight * self._loss.value(score, y)))

    @_saturating
    def run(self, X: Floats, y: Floats, frozen: bool = False) -> tuple[Floats, Floats]:
        """Learn every row in turn; return the scores and the risks."""
        X, y = check_rows(X, self.dim), check_labels(y)
        check_same_length(len(X), len(y))
        results = [
            self._round(self._own(x), float(label), 1.0, frozen) for x, label in zip(X, y, strict=True)
        ]
        pairs = np.array(results, dtype=np.float64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def restart(self) -> None:
        """Restart the step size."""
        self._clock = 0

    def _round(self, x: Array, y: float, weight: float, frozen: bool) -> tuple[float, float]:
        s = self.settings
        labelled = y == y
        kind = int(labelled and s.sampling == "stratified")
        k = self._kernel_row(x)
        score = self._score(k)

        inverse_rate = self._inverse_rate(self._seen + 1)
        risk = 0.0
        if labelled:
            risk = self._finite(inverse_rate * self._finite(weight * self._loss.value(score, y)))
        if s.manifold:
            at_rows = np.clip(self._gram @ self._beta, -self._huge, self._huge)  # f(x_s)
            differences = at_rows - self._real.type(score)
            weights = exp_or_zero(-within(s.graph_width, x) * squared_distances(self._rows, x))
            scales = self._inverse_inclusion()
            norm2 = abs(float(self._beta @ at_rows))
            roughness = float((scales * weights) @ (differences * differences))
            rest = self._finite(0.5 * s.ridge * norm2) + self._finite(s.smoothness * roughness)
            risk = self._finite(risk + rest)
        if not frozen:
            tau = s.step / (self._clock + 1) ** 0.5
            entering, probability = self._draw_slot(kind)  # slot None: the row is skipped
            new = 0.0
            if s.manifold:
                new = self._manifold_step(x, k, tau, differences, weights, scales, entering is None)
            if labelled:
                if not s.manifold:
                    self._beta *= self._real.type(self._finite(1.0 - tau * s.ridge))
                slope = self._finite(weight * self._loss.derivative(score, y))
                new -= self._finite(tau * inverse_rate * slope)
            self._beta = self._clip(self._beta)
            if entering is not None:
                self._incoming_weight = self._decay[kind] / probability
            self._store(x, k, self._finite(new), entering, kind)
            if s.manifold or labelled or entering is not None:
                self._into_ball()
            self._clock += 1
        elif self._seen_by_kind[kind]:  # the buffer stands for one row more of this kind
            self._decay[kind] *= self._seen_by_kind[kind] / (self._seen_by_kind[kind] + 1)
        self._seen += 1
        self._labels += int(labelled)
        self._seen_by_kind[kind] += 1
        return score, risk

    def _inverse_rate(self, rounds: int) -> float:
        """c: one over the label rate, given or estimated from the rounds and the labels with this one."""
        if self.settings.label_rate is not None:
            return min(1.0 / self.settings.label_rate, self._huge)
        return rounds / (self._labels + 1)

    # -- as an expert in a bank

    @_saturating
    def _scores(self, x: Floats) -> float:
        return self._score(self._kernel_row(self._own(x)))

    def _teach(self, x: Floats, y: float, weight: float, late: bool) -> tuple[float, float]:
        score, risk = self.learn_late(x, y, weight) if late else self.learn(x, y, weight)
        return score, risk

    def _check_labels(self, labels: npt.ArrayLike) -> Floats:
        return check_labels(labels)

    def _manifold_step(
        self,
        x: Array,
        k: Array,
        tau: float,
        differences: Array,
        weights: Array,
        scales: Array,
        skipped: bool,
    ) -> float:
        """Take the ridge and manifold part of the step; return the arriving row's coefficient."""
        s = self.settings
        base = self._real.type(min(2.0 * tau * s.smoothness, self._huge))
        if s.cap:
            # K(x_s,x_s) - 2 K(x_s,x) + K(x,x): the squared distance of the two representers.
            apart = np.diagonal(self._gram) - 2.0 * k + self._self_kernel(x)
            q = float(base * ((scales * weights) @ apart))
            if q > 1.0:
                base = self._real.type(base / q)
        v = self._clip(base * (scales * weights) * differences)
        if s.equations == "gradient":
            change = v
        elif s.equations == "printed" and skipped:
            change = self._clip(base * differences)
        else:
            change = self._clip(base * weights * differences)
        self._beta = self._real.type(self._finite(1.0 - tau * s.ridge)) * self._beta - change
        return float(v.sum())

    def _inverse_inclusion(self) -> Array:
        """As many rows as each row stands for: the inverse of its inclusion probability."""
        boost = np.array([1.0 / decay for decay in self._decay]).astype(self._real)
        return np.asarray(self._weights * boost[self._kinds])

    # -- the buffer

    def _draw_slot(self, kind: int) -> tuple[int | None, float]:
        """Return the slot for a row of this kind and its probability of entering.

        The slot is the first free one, or one to replace; None skips the row.
        """
        n = len(self._beta)
        if n < self.capacity:
            return n, 1.0
        own = np.flatnonzero(self._kinds == kind)
        quota = self.capacity // 2 if kind else self.capacity - self.capacity // 2
        if self.settings.sampling == "stratified" and len(own) < quota:
            # The other kind has borrowed slots: take one back.
            other = np.flatnonzero(self._kinds != kind)
            self._take(1 - kind, 1.0 / len(other))
            return int(other[self._rng.below(len(other))]), 1.0
        rounds = self._seen_by_kind[kind] + 1
        place = self._rng.below(rounds)
        self._take(kind, 1.0 / rounds)
        return (int(own[place]) if place < len(own) else None), len(own) / rounds

    def _take(self, kind: int, loss: float) -> None:
        """Take this share of the inclusion probability of every row of a kind."""
        self._decay[kind] *= 1.0 - loss
        if self._decay[kind] > 1e-6:
            return
        # Kept within the range of a float: what was taken moves to the rows.
        taken = self._decay[kind] if self._decay[kind] > 0.0 else 1.0
        mine = self._kinds == kind
        self._weights[mine] = (self._weights[mine].astype(np.float64) / taken).astype(self._real)
        self._decay[kind] = 1.0

    def _store(self, x: Array, k: Array, new: float, slot: int | None, kind: int) -> None:
        """Give the arriving row its place and its coefficient, projecting what has none."""
        s = self.settings
        if slot is None:
            if s.on_skip == "project" and new != 0.0:
                self._beta = self._clip(self._beta + self._real.type(new) * self._project(k))
        elif slot == len(self._beta):
            self._append(x, k, new, kind)
        else:
            removed = self._gram[slot].copy()
            removed[slot] = k[slot]
            coefficient = self._beta[slot]
            self._replace(slot, x, k, kind)
            self._beta[slot] = new
            if coefficient != 0.0:
                self._beta = self._clip(self._beta + coefficient * self._project(removed))

    def _append(self, x: Array, k: Array, new: float, kind: int) -> None:
        self._gram = np.block([[self._gram, k[:, None]], [k[None, :], self._self_kernel(x)]])
        self._rows = np.vstack([self._rows, x])
        self._beta = np.append(self._beta, self._real.type(new))
        self._kinds = np.append(self._kinds, np.uint8(kind))
        self._weights = np.append(self._weights, self._real.type(self._incoming_weight))
        self._inverse_ready = False

    def _replace(self, slot: int, x: Array, k: Array, kind: int) -> None:
        own = self._self_kernel(x)
        replaced = None
        if self._inverse_ready and self.settings.kernel.constant_diagonal:
            replaced = replaced_in_inverse(self._inverse, slot, k, own + self._jitter())
        self._inverse_ready = replaced is not None
        if replaced is not None:
            self._inverse = replaced
        k = k.copy()
        k[slot] = own
        self._gram[slot, :] = k
        self._gram[:, slot] = k
        self._rows[slot] = x
        self._kinds[slot] = kind
        self._weights[slot] = self._incoming_weight
        if self._inverse_ready:
            column = self._inverse[:, slot]
            residual = self._gram @ column + self._jitter() * column
            residual[slot] -= 1.0
            self._inverse_ready = bool(np.max(np.abs(residual)) <= self._residual_limit)

    # -- projection onto the buffer's rows

    def _jitter(self) -> Any:
        mean = np.diagonal(self._gram).mean(dtype=self._real)
        return self._real.type(max(self.settings.jitter * mean, 1.0 / self._huge))

    def _project(self, target: Array) -> Array:
        """Coefficients over the buffer of the function whose inner products with its rows are ``target``."""
        if self.settings.projection == "pursuit":
            return self._clip(pursue(self._gram, target, self._jitter(), self.settings.pursuit_steps))
        if not self._inverse_ready:
            gram = self._gram + self._jitter() * np.eye(len(self._beta), dtype=self._real)
            self._inverse = inverse_of(gram)
            self._inverse_ready = True
        return self._clip(self._inverse @ target)

    def _into_ball(self) -> None:
        norm = abs(float(self._beta @ (self._gram @ self._beta))) ** 0.5
        if norm > self.settings.radius:
            self._beta = self._beta * self._real.type(self.settings.radius / norm)

    # -- small things

    def _own(self, x: Floats) -> Array:
        return np.clip(x, -self._huge, self._huge).astype(self._real)

    def _kernel_row(self, x: Array) -> Array:
        return saturate(self.settings.kernel.row(self._rows, x))

    def _self_kernel(self, x: Array) -> Any:
        return saturate(self.settings.kernel.row(x[None, :], x))[0]

    def _score(self, k: Array) -> float:
        return self._finite(float(self._beta @ k))

    def _finite(self, value: float) -> float:
        return min(max(value, -self._huge), self._huge)

    def _clip(self, values: Array) -> Array:
        return np.clip(values, -self._huge, self._huge)

    # -- state

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept at full capacity, as the compiled core lays it out."""
        return learner_bytes(self.settings, self.dim, self.capacity, self.precision)

    @property
    def scratch_nbytes(self) -> int:
        """Bytes of the working arrays that live between two calls: none."""
        return 0

    def state(self) -> dict[str, Any]:
        """Return everything kept, as arrays and numbers."""
        return {
            "rows": self._rows.copy(),
            "beta": self._beta.copy(),
            "weights": self._weights.copy(),
            "decay": tuple(self._decay),
            "gram": self._gram.copy() if self.settings.keep_gram else None,
            "inverse": self._inverse.copy() if self._inverse_ready else None,
            "kinds": self._kinds.copy(),
            "seen_by_kind": tuple(self._seen_by_kind),
            "seen": self._seen,
            "labels": self._labels,
            "clock": self._clock,
            "rng": self._rng.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what ``state`` returned, of this backend or of the other."""
        self._check_state(state)
        self._rows, self._beta, self._weights = (
            np.clip(np.asarray(state[name], np.float64), -self._huge, self._huge).astype(self._real)
            for name in ("rows", "beta", "weights")
        )
        self._decay = list(state["decay"])
        if state["gram"] is not None:
            self._gram = np.array(state["gram"], self._real)
        else:  # it follows from the rows
            self._gram = np.array([self._kernel_row(row) for row in self._rows], self._real)
            self._gram = self._gram.reshape(len(self._rows), len(self._rows))
        self._inverse_ready = state["inverse"] is not None
        self._inverse = np.array(state["inverse"] if self._inverse_ready else np.zeros((0, 0)), self._real)
        self._kinds = np.array(state["kinds"], np.uint8)
        self._seen_by_kind = list(state["seen_by_kind"])
        self._seen, self._labels = state["seen"], state["labels"]
        self._clock = state["clock"]
        self._rng.state = state["rng"]

    def _check_state(self, state: dict[str, Any]) -> None:
        n = len(state["beta"])
        shapes = {"rows": (n, self.dim), "beta": (n,), "weights": (n,), "kinds": (n,), "gram": (n, n)}
        fits = n <= self.capacity
        for name, shape in (shapes | {"inverse": (n, n)}).items():
            fits = fits and (state[name] is None or np.shape(state[name]) == shape)
        if not fits:
            raise ValueError("This state does not fit this learner: its sizes differ.")
        if np.any(np.asarray(state["kinds"]) > int(self.settings.sampling == "stratified")):
            raise ValueError("This state does not fit this learner: its kinds of rows differ.")

    def copy(self) -> Learner:
        """Return an independent copy."""
        return copy.deepcopy(self)
