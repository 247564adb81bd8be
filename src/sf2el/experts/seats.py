"""The experts of the default's bank, each with what changes it: more features, more classes, other bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.experts.learner_seat import LearnerSeat
from sf2el.experts.posterior import Form, LogisticSettings, PosteriorSettings, logistic_bytes, posterior_bytes
from sf2el.memory.plan import Shape
from sf2el.paper.settings import LEAST_BUFFER

Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=1024)
def one_of(settings: Any) -> Any:
    """Return settings equal to these, the same object for all: thousands of models share a few."""
    return settings


NEW_CLASS_MARGIN = -2.0
"""Where a class that was never seen starts: unlikely, but not impossible."""


@dataclass(slots=True)
class PosteriorSeat:
    """A Gaussian posterior over a linear part and some radial functions (``sf2el.experts.posterior``).

    With a ``limit`` above 0 it sees rows turned, within that limit; ``turn`` says how, where ``diagonal`` by
    a factor for each feature.
    """

    name: str
    settings: PosteriorSettings
    dim: int
    precision: str
    backend: str | None
    limit: float = 0.0
    diagonal: bool = False
    posterior: Any = None
    core: Any = None

    def __post_init__(self) -> None:
        self.settings = one_of(self.settings)
        if self.posterior is None:
            self._take(self._new())

    def _new(self) -> Any:
        return _core.backend(self.backend).Posterior(self.settings, self.dim, self.precision)

    def _take(self, posterior: Any) -> None:
        """Sit this posterior here, behind the turn that there was."""
        before = self.core
        self.posterior = self.core = posterior
        if self.limit > 0.0:
            self.core = _core.backend(self.backend).Turned(posterior, self.limit, self.diagonal)
            if before is not None and before.dim == self.dim:
                self.turn(before.matrix)

    def turn(self, matrix: Floats) -> None:
        """Turn rows by this matrix from now on; a diagonal one is a row of factors."""
        self.core.set_matrix(np.ascontiguousarray(matrix))

    @property
    def _linear(self) -> int:
        return self.settings.linear_of(self.dim)

    @property
    def labels(self) -> int:
        """Labels that it has learned from."""
        return int(self.posterior.labels)

    @property
    def kernel(self) -> bool:
        """Whether it has radial functions."""
        return self.settings.gamma > 0.0

    def bytes_of(self, size: int, form: Form) -> int:
        """Return the bytes it would keep in this form with so many radial functions."""
        size = size if self.kernel else 0
        factors = self.dim * (1 if self.diagonal else self.dim) if self.limit > 0.0 else 0
        turn = (4 * factors + 7) // 8 * 8
        kept = form is not Form.LEAST
        s = self.settings
        return turn + posterior_bytes(
            self.dim, size, s.outputs, self._precision_of(form), keep_inverse=kept, slopes=s.slopes
        )

    def _precision_of(self, form: Form) -> str:
        if form is not Form.FULL:
            return "float16"
        return "float32" if self.precision == "float16" else self.precision

    @property
    def nbytes(self) -> int:
        """Bytes that the expert keeps."""
        return int(self.core.nbytes)

    def refit(self, size: int, form: Form) -> float:
        """Take this form, with room for so many radial functions; return how far the function moved."""
        size, precision = size if self.kernel else 0, self._precision_of(form)
        settings = replace(self.settings, size=size, keep_inverse=form is not Form.LEAST or not self.kernel)
        if (settings, precision) == (self.settings, self.precision):
            return 0.0
        state = self.posterior.state()
        moved = _shrink(state, self._linear, size)
        self.settings, self.precision = one_of(settings), precision
        self._adopt(state)
        return moved

    def widened(self, dim: int) -> None:
        """Give the expert more features, which all its rows so far have at 0."""
        state, more, old = self.posterior.state(), dim - self.dim, self.dim
        _leave_to_covariance(state)
        rows = np.asarray(state["rows"], dtype=np.float64)
        state["rows"] = np.hstack([rows, np.zeros((len(rows), more))])
        if self.settings.slopes:
            # The features come before the constant and the radial functions.
            state["coefficients"] = np.insert(state["coefficients"], [old] * more, 0.0, axis=1)
            covariance = np.insert(state["covariance"], [old] * more, 0.0, axis=1)
            state["covariance"] = np.insert(covariance, [old] * more, 0.0, axis=0)
        turn = np.ones((1, dim)) if self.diagonal else np.eye(dim)
        if self.limit > 0.0:
            turn[:old, :old] = self.core.matrix
        self.dim = dim
        self._adopt(state)
        if self.limit > 0.0:
            self.turn(turn)

    @property
    def constant(self) -> list[float]:
        """The margin of each output that is the same for all rows."""
        coefficients = np.asarray(self.posterior.state()["coefficients"], dtype=np.float64)
        return [float(value) for value in coefficients[:, self._linear - 1] * sqrt(self.settings.bias)]

    def start_from(self, log_odds: list[float]) -> None:
        """Begin with this margin for each output, whatever the row."""
        state = self.posterior.state()
        state["coefficients"][:, self._linear - 1] = np.array(log_odds) / sqrt(self.settings.bias)
        self._adopt(state)

    def grown(self, outputs: int) -> None:
        """Give the expert more classes: the two there were become one against the rest."""
        state = self.posterior.state()
        known = np.asarray(state["coefficients"], dtype=np.float64)
        if len(known) == 1:
            known = np.vstack([known, -known])
        fresh = np.zeros((outputs - len(known), known.shape[1]))
        fresh[:, self._linear - 1] = NEW_CLASS_MARGIN / sqrt(self.settings.bias)
        state["coefficients"] = np.vstack([known, fresh])
        self.settings = one_of(replace(self.settings, task="classes", outputs=outputs))
        self._adopt(state)

    def _adopt(self, state: dict[str, Any]) -> None:
        posterior = self._new()
        arrays = {"rows", "coefficients", "covariance", "inverse", "innovations", "factor"} & state.keys()
        posterior.set_state(state | {name: np.ascontiguousarray(state[name]) for name in arrays})
        self._take(posterior)

    def clone(self) -> PosteriorSeat:
        """Return an expert that goes its own way from here."""
        twin = replace(self)
        twin._take(self.posterior.copy())
        return twin


def _leave_to_covariance(state: dict[str, Any]) -> None:
    """Take out what says the same in half precision, before rows or covariance change."""
    state.pop("innovations", None)
    state.pop("factor", None)


def _shrink(state: dict[str, Any], linear: int, size: int) -> float:
    """Leave ``size`` radial functions in a state, each removed one projected onto the others."""
    moved = 0.0
    a = np.array(state["coefficients"], dtype=np.float64)
    c = np.array(state["covariance"], dtype=np.float64)
    q = np.array(state["inverse"], dtype=np.float64)
    rows = np.array(state["rows"], dtype=np.float64)
    if len(rows) > size:
        _leave_to_covariance(state)
    while len(rows) > size:
        pivots = np.maximum(np.diagonal(q), 1e-6)
        costs = np.sum(a[:, linear:] ** 2, axis=0) / pivots
        i = int(np.argmin(costs))
        moved += float(costs[i])
        u = np.zeros(a.shape[1])
        u[linear:] = -q[:, i] / pivots[i]
        at = linear + i
        u[at] = 0.0
        a += np.outer(a[:, at], u)
        column = c[:, at].copy()
        c += column[at] * np.outer(u, u) + np.outer(column, u) + np.outer(u, column)
        q -= np.outer(q[:, i], q[i]) / pivots[i]
        a, rows = np.delete(a, at, axis=1), np.delete(rows, i, axis=0)
        c = np.delete(np.delete(c, at, axis=0), at, axis=1)
        q = np.delete(np.delete(q, i, axis=0), i, axis=1)
    state |= {"coefficients": a, "covariance": c, "inverse": q, "rows": rows}
    return sqrt(moved)


@lru_cache(maxsize=1024)
def _reshaped(shape: Shape, rows: int) -> Shape:
    return replace(shape.heavy(), rows=rows)


class PaperSeat(LearnerSeat):
    """The paper's first-order learner with its manifold term, as one of several experts."""

    MOST_ROWS = 12
    """Every row costs it time, labelled or not; in a bank more of them measured no gain."""

    def bytes_of(self, size: int, form: Form) -> int:
        """Return the bytes it would keep beside experts of so many radial functions."""
        return self._of(size).nbytes(self.dim)

    def _of(self, size: int) -> Shape:
        most = max(self.MOST_ROWS, self.shape.rows)  # older files have more
        return _reshaped(self.shape, max(LEAST_BUFFER, min(size, most)))

    def refit(self, size: int, form: Form) -> float:  # type: ignore[override]
        """Take room for as many rows as others have radial functions."""
        return super().refit(self._of(size))

    def start_from(self, log_odds: list[float]) -> None:
        """Begin at 0: it has no constant."""


@dataclass(slots=True)
class LogisticSeat:
    """Plain online logistic regression (``sf2el.experts.posterior.LogisticSettings``)."""

    name: str
    settings: LogisticSettings
    dim: int
    backend: str | None
    core: Any = None

    def __post_init__(self) -> None:
        self.settings = one_of(self.settings)
        if self.core is None:
            self.core = self._new()

    def _new(self) -> Any:
        return _core.backend(self.backend).OnlineLogistic(self.settings, self.dim)

    def bytes_of(self, size: int, form: Form) -> int:
        """Return the bytes it keeps, whatever the size of others."""
        return logistic_bytes(self.dim, self.settings.outputs)

    @property
    def nbytes(self) -> int:
        """Bytes that the expert keeps."""
        return int(self.core.nbytes)

    def refit(self, size: int, form: Form) -> float:
        """Do nothing: it has no size."""
        return 0.0

    @property
    def labels(self) -> int:
        """Labels that it has learned from."""
        return int(self._state()[1][0])

    @property
    def constant(self) -> list[float]:
        """The margin of each output that is the same for all rows."""
        return [float(value) for value in self._state()[0][:, self.dim]]

    def start_from(self, log_odds: list[float]) -> None:
        """Begin with this margin for each output, whatever the row."""
        weights, rest = self._state()
        weights = weights.copy()
        weights[:, self.dim] = log_odds
        self._adopt(weights, rest)

    def take_over(self, linear: PosteriorSeat) -> None:
        """Go on from the mean of a posterior without radial functions."""
        state = linear.posterior.state()
        weights = np.array(state["coefficients"], dtype=np.float64)
        weights[:, : self.dim] /= self.settings.scale
        weights[:, self.dim] *= sqrt(linear.settings.bias)
        self._adopt(weights, np.array([float(state["labels"])]))

    def widened(self, dim: int) -> None:
        """Give the expert more features, with no weight yet."""
        weights, rest = self._state()
        weights = np.insert(weights, [self.dim] * (dim - self.dim), 0.0, axis=1)
        self.dim = dim
        self._adopt(weights, rest)

    def grown(self, outputs: int) -> None:
        """Give the expert more classes: the two there were become one against the rest."""
        weights, rest = self._state()
        if len(weights) == 1:
            weights = np.vstack([weights, -weights])
        fresh = np.zeros((outputs - len(weights), weights.shape[1]))
        fresh[:, self.dim] = NEW_CLASS_MARGIN
        self.settings = one_of(replace(self.settings, task="classes", outputs=outputs))
        self._adopt(np.vstack([weights, fresh]), rest)

    def _state(self) -> tuple[Floats, Floats]:
        state, outputs = np.asarray(self.core.state()), self.settings.outputs
        cut = outputs * (self.dim + 1)
        return state[:cut].reshape(outputs, self.dim + 1), state[cut:]

    def _adopt(self, weights: Floats, rest: Floats) -> None:
        self.core = self._new()
        self.core.set_state(np.concatenate([weights.ravel(), rest]))

    def clone(self) -> LogisticSeat:
        """Return an expert that goes its own way from here."""
        return replace(self, core=self.core.copy())
