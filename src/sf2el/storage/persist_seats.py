"""How experts are written to a model's file, and read from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sf2el.experts.entries import EVEN, LINEAR, SPARE, WHITE, entry_of
from sf2el.experts.halves import from_whole_rows, halved, whole_rows
from sf2el.experts.learner_seat import LearnerSeat
from sf2el.experts.posterior import LogisticSettings, PosteriorSettings
from sf2el.experts.seats import LogisticSeat, PaperSeat, PosteriorSeat
from sf2el.maps.joint_map import LARGEST_SCALED
from sf2el.memory.plan import Shape
from sf2el.model.bank import BankRecipe
from sf2el.model.space import Space
from sf2el.model.strategy import Recipe
from sf2el.paper.strategy import PaperRecipe
from sf2el.storage.persist_checks import changed, positive, symmetric, text, whole

if TYPE_CHECKING:
    from sf2el.storage.persist_parts import Reader, Writer

Content = dict[str, Any]
Floats = npt.NDArray[np.float64]

LEARNER_COUNTERS = ("seen", "labels", "clock", "rng", "seen_by_kind", "decay", "norm_bound", "refreshes")
PLAIN = (LINEAR, SPARE)
"""One of these is in every bank."""

POSTERIOR_COUNTERS = ("labels", "joined", "removed", "floored", "refreshed", "ties")

LARGEST_EXPONENT = 20
"""Of a row of the factor that an expert of half precision keeps: its entries are at most some hundred."""


# ---- the paper's learner


def _learner_out(writer: Writer, key: str, seat: LearnerSeat) -> Content:
    state = seat.core.state()
    real = np.dtype(seat.shape.precision)
    for name in ("rows", "beta", "weights"):
        writer.tensors[f"{key}.{name}"] = np.ascontiguousarray(state[name], dtype=real)
    if seat.shape.settings.sampling == "stratified":
        writer.tensors[f"{key}.kinds"] = np.ascontiguousarray(state["kinds"])
    if state["inverse"] is not None:
        lower = np.tril_indices(len(state["beta"]))
        writer.tensors[f"{key}.inverse"] = np.ascontiguousarray(state["inverse"][lower], dtype=real)
    counters = {
        name: state[name] for name in LEARNER_COUNTERS if np.all(np.isfinite(state.get(name, np.inf)))
    }
    return {
        "rows": seat.shape.rows,
        "lean": not seat.shape.settings.keep_gram,
        "precision": seat.shape.precision,
        "counters": counters,
    }


def _learner_in(
    reader: Reader, key: str, content: Content, recipe: Recipe, space: Space, outputs: int
) -> LearnerSeat:
    settings, dim, rows = recipe.learner_settings(space), space.dim, whole(content["rows"])
    if content["lean"]:
        settings = Shape(settings, "float64", rows).lean().settings
    if content["precision"] not in ("float64", "float32") or not 2 <= rows <= 1 << 20 or outputs != 1:
        raise ValueError("a learner's shape is none")
    shape = Shape(settings, content["precision"], rows)
    reader.check_size(shape.nbytes(dim))
    real = np.dtype(shape.precision)
    n = len(reader.array(f"{key}.beta", None, real))
    state: dict[str, Any] = dict(content["counters"]) | {"gram": None, "inverse": None}
    for name, size in (("rows", (n, dim)), ("beta", (n,)), ("weights", (n,))):
        state[name] = reader.array(f"{key}.{name}", size, real).astype(np.float64)
    state["kinds"] = np.zeros(n, np.uint8)
    if settings.sampling == "stratified":
        state["kinds"] = reader.array(f"{key}.kinds", (n,), np.uint8)
    if f"{key}.inverse" in reader.tensors:
        packed = reader.array(f"{key}.inverse", (n * (n + 1) // 2,), real)
        state["inverse"] = symmetric(packed, n)
    for name in ("seen", "labels", "clock", "rng", "refreshes"):
        if name != "refreshes" or name in state:
            state[name] = whole(state[name])
    if "norm_bound" in state:
        state["norm_bound"] = positive(state["norm_bound"])
    state["seen_by_kind"] = tuple(map(whole, state["seen_by_kind"]))
    state["decay"] = tuple(float(value) for value in state["decay"])
    if len(state["seen_by_kind"]) != 2 or len(state["decay"]) != 2:
        raise ValueError("a learner has two kinds of rows")
    if not all(0.0 < value <= 1.0 for value in state["decay"]) or not np.all(state["weights"] > 0.0):
        raise ValueError("a row's inclusion probability is none")
    kind = PaperSeat if isinstance(recipe, BankRecipe) else LearnerSeat
    seat = kind(dim, shape, 0, recipe.backend, name=text(content["name"]))
    seat.core.set_state(state)
    return seat


# ---- the bank's experts


def _posterior_out(writer: Writer, key: str, seat: PosteriorSeat) -> Content:
    state = seat.posterior.state()
    if seat.limit > 0.0:
        writer.tensors[f"{key}.turn"] = np.asarray(seat.core.matrix).astype(np.float32)
    if seat.precision == "float16":
        kept = [np.ravel(state["rows"]), _lower(state["innovations"])]
        writer.tensors[key] = halved(np.concatenate(kept))
        writer.tensors[f"{key}.mean"] = np.ravel(state["coefficients"]).astype(np.float32)
        if _keeps_factor(seat):
            numbers, exponents = whole_rows(state["factor"])
            writer.tensors[f"{key}.factor"] = np.concatenate([exponents, _lower(numbers)])
    else:
        kept = [np.ravel(state["rows"]), np.ravel(state["coefficients"]), _lower(state["covariance"])]
        kept += [_lower(state["inverse"])] if seat.settings.keep_inverse else []
        writer.tensors[key] = np.concatenate(kept).astype(seat.precision)
    return {
        "precision": seat.precision,
        "settings": changed(seat.settings, PosteriorSettings()),
        "rows": len(state["rows"]),
        "counters": [int(state[name]) for name in POSTERIOR_COUNTERS],
        "residuals": float(state["residuals"]),
    }


def _lower(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(matrix[np.tril_indices(len(matrix))])


def _posterior_in(
    reader: Reader, key: str, content: Content, recipe: Recipe, space: Space, outputs: int
) -> PosteriorSeat:
    settings = PosteriorSettings(**content["settings"])
    size, dim = settings.size, space.dim
    if content["precision"] not in ("float64", "float32", "float16") or settings.outputs != outputs:
        raise ValueError("an expert's shape is none")
    scratch = 12 if content["precision"] == "float16" else 1  # halves are thawed into as many times the room
    reader.check_size(8 * (scratch * (dim + size + 2) ** 2 + outputs * (dim + size + 2)))
    n = whole(content["rows"])
    if n > size:
        raise ValueError("an expert has more rows than it can")
    limit = LARGEST_SCALED / space.divisor if f"{key}.turn" in reader.tensors else 0.0
    name = text(content["name"])
    even = name.startswith(EVEN)
    if (limit > 0.0) != name.startswith((WHITE, EVEN)) or (even and settings.size > 0):
        raise ValueError("an expert's view is none")
    seat = PosteriorSeat(name, settings, dim, content["precision"], recipe.backend, limit, even)
    if limit > 0.0:
        rows = 1 if even else dim
        seat.turn(reader.array(f"{key}.turn", (rows, dim), np.float32).astype(np.float64))
    state: dict[str, Any] = dict(
        zip(POSTERIOR_COUNTERS, map(whole, content["counters"]), strict=True),
        residuals=positive(content["residuals"]),
    )
    state |= (_halves_in if seat.precision == "float16" else _numbers_in)(reader, key, seat, n)
    if state["ties"] >= 1 << 32:
        raise ValueError("an expert has more ties than it can count")
    seat.posterior.set_state(state)
    return seat


def _numbers_in(reader: Reader, key: str, seat: PosteriorSeat, n: int) -> Content:
    dim, outputs, every = seat.dim, seat.settings.outputs, seat.settings.linear_of(seat.dim) + n
    kept_inverse = n * (n + 1) // 2 if seat.settings.keep_inverse else 0
    sizes = [n * dim, outputs * every, every * (every + 1) // 2, kept_inverse]
    numbers = reader.array(key, (sum(sizes),), seat.precision).astype(np.float64)
    rows, coefficients, covariance, inverse = np.split(numbers, np.cumsum(sizes)[:-1])
    return {
        "rows": rows.reshape(n, dim),
        "coefficients": coefficients.reshape(outputs, every),
        "covariance": symmetric(covariance, every),
        "inverse": symmetric(inverse, n) if seat.settings.keep_inverse else np.zeros((n, n)),
    }


def _halves_in(reader: Reader, key: str, seat: PosteriorSeat, n: int) -> Content:
    dim, outputs, every = seat.dim, seat.settings.outputs, seat.settings.linear_of(seat.dim) + n
    kept = reader.array(key, (n * dim + every * (every + 1) // 2,), np.float16).astype(np.float64)
    rows = kept[: n * dim].reshape(n, dim)
    mean = reader.array(f"{key}.mean", (outputs * every,), np.float32).astype(np.float64)
    return (_factor_in(reader, f"{key}.factor", n) if _keeps_factor(seat) else {}) | {
        "rows": rows,
        "coefficients": mean.reshape(outputs, every),
        "innovations": symmetric(kept[n * dim :], every),
        "covariance": np.zeros((every, every)),
        "inverse": np.zeros((n, n)),
    }


def _keeps_factor(seat: PosteriorSeat) -> bool:
    return seat.settings.keep_inverse and seat.settings.size > 0


def _factor_in(reader: Reader, key: str, n: int) -> Content:
    kept = reader.array(key, (n + n * (n + 1) // 2,), np.int16)
    if np.any(np.abs(kept[:n].astype(np.int32)) > LARGEST_EXPONENT):
        raise ValueError("an expert's factor is none")
    numbers = np.zeros((n, n), np.int16)
    numbers[np.tril_indices(n)] = kept[n:]
    return {"factor": from_whole_rows(numbers, kept[:n]).astype(np.float64)}


def _logistic_out(writer: Writer, key: str, seat: LogisticSeat) -> Content:
    writer.tensors[key] = np.asarray(seat.core.state())
    return {"settings": changed(seat.settings, LogisticSettings())}


def _logistic_in(
    reader: Reader, key: str, content: Content, recipe: Recipe, space: Space, outputs: int
) -> LogisticSeat:
    reader.check_size(16 * outputs * (space.dim + 1))
    settings = LogisticSettings(**content["settings"])
    if settings.outputs != outputs:
        raise ValueError("an expert's shape is none")
    seat = LogisticSeat(text(content["name"]), settings, space.dim, recipe.backend)
    seat.core.set_state(reader.array(key, np.shape(seat.core.state())))
    return seat


SEATS: dict[str, tuple[type, Callable[..., Content], Callable[..., Any]]] = {
    "learner": (LearnerSeat, _learner_out, _learner_in),
    "posterior": (PosteriorSeat, _posterior_out, _posterior_in),
    "logistic": (LogisticSeat, _logistic_out, _logistic_in),
}
"""Every kind of expert: its class, how it is written, how it is read."""


def check_seats(recipe: Recipe, seats: list[Any]) -> None:
    """Raise ValueError unless a space of this recipe can have these experts."""
    if isinstance(recipe, PaperRecipe):
        fits = len(seats) <= 1 and all(isinstance(seat, LearnerSeat) for seat in seats)
    else:
        names = [seat.name for seat in seats]
        kernels = [entry_of(seat).gamma > 0.0 for seat in seats]
        fits = len(set(names)) == len(names) and (not seats or any(entry_of(seat) in PLAIN for seat in seats))
        for seat, kernel in zip(seats, kernels, strict=True):
            own = isinstance(seat, PosteriorSeat) and seat.kernel
            fits = fits and own == kernel and isinstance(seat, PaperSeat) == entry_of(seat).paper
    if not fits:
        raise ValueError("a space has experts that do not go together")
