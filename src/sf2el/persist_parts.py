"""How recipes, maps and experts are written to a model's file, and read by one who does not trust it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.bank import WHITE, BankRecipe, entry_of
from sf2el.experts import LogisticSeat, PaperSeat, PosteriorSeat
from sf2el.kernels import KERNELS, Kernel, Sum
from sf2el.learner_seat import LearnerSeat
from sf2el.maps import LARGEST_SCALED, JointMap
from sf2el.paper import PaperRecipe
from sf2el.plan import Shape
from sf2el.posterior import LogisticSettings, PosteriorSettings
from sf2el.recipe import Recipe
from sf2el.rows import Names
from sf2el.settings import LearnerSettings
from sf2el.sketch import ROOM, Sketch
from sf2el.space import Seat, Space

Tensors = dict[str, npt.NDArray[Any]]
Content = dict[str, Any]
Floats = npt.NDArray[np.float64]

MOST_BLOW_UP = 64
SPARE = 1 << 26
"""A file may ask for 64 times its own size, and 64 MiB: more is not a model we wrote."""

LEARNER_COUNTERS = ("seen", "labels", "clock", "rng", "seen_by_kind", "decay", "norm_bound", "refreshes")
POSTERIOR_COUNTERS = ("labels", "joined", "removed", "floored", "refreshed", "ties")


class Writer:
    """Collects the arrays of a model."""

    def __init__(self) -> None:
        self.tensors: Tensors = {}

    def names(self, key: str, names: Names) -> None:
        """Write names as text, one after the other, each ended by a zero byte."""
        self.tensors[key] = np.frombuffer(b"".join(map(_name_out, names)), np.uint8)

    def moments(self, key: str, moments: Any, dim: int, precision: str) -> None:
        """Write a running mean and covariance."""
        state = np.asarray(moments.state())
        self.tensors[key] = state[: 1 + dim].copy()
        self.tensors[f"{key}.sums"] = state[1 + dim :].astype(precision)

    def map(self, key: str, psi: Any) -> Content:
        """Write a map."""
        if not isinstance(psi, JointMap):
            self.tensors[key] = np.asarray(psi.state())
            return {"new_dim": psi.new_dim}
        if psi.affine is not None:
            matrix = np.asarray(psi.affine.matrix)
            self.tensors[key] = np.concatenate([psi.affine.center, matrix[:, -1]])
            self.tensors[f"{key}.matrix"] = np.ascontiguousarray(matrix[:, :-1], dtype=psi.precision)
        if isinstance(psi.joint, Sketch):
            dim, state = psi.new_dim + psi.old_dim, psi.joint.state()
            self.tensors[f"{key}.sketch"] = state[: 2 + 2 * dim].copy()
            self.tensors[f"{key}.sketch.directions"] = state[2 + 2 * dim :].astype(np.float32)
        elif not psi.settled:
            self.moments(f"{key}.joint", psi.joint, psi.new_dim + psi.old_dim, psi.precision)
        return {"new_dim": psi.new_dim, "rows": psi.rows}

    def seat(self, key: str, seat: Seat) -> Content:
        """Write an expert."""
        for kind, (cls, write, _) in SEATS.items():
            if isinstance(seat, cls):
                return {"kind": kind, "name": seat.name} | write(self, key, seat)
        raise AssertionError(f"no way to write {seat!r}")


class Reader:
    """Gives out the arrays of a file, checked."""

    def __init__(self, tensors: Tensors, size: int) -> None:
        self.tensors = tensors
        self.most = MOST_BLOW_UP * size + SPARE

    def array(
        self, key: str, shape: tuple[int, ...] | None = None, kind: Any = np.float64
    ) -> npt.NDArray[Any]:
        """Return an array of this shape and type, all of it finite."""
        array = self.tensors[key]
        if array.dtype != np.dtype(kind) or (shape is not None and array.shape != shape):
            raise ValueError("an array has another size or type than it should")
        if not np.all(np.isfinite(array)):
            raise ValueError("a number in it is not finite")
        return array

    def check_size(self, size: int) -> None:
        """Refuse what would take far more memory than the file has."""
        if size > self.most:
            raise ValueError("it asks for far more memory than it holds")

    def map(self, key: str, content: Content, recipe: Recipe, new: Space, old: Space) -> Any:
        """Read a map between two spaces."""
        new_dim = whole(content["new_dim"])
        if not 1 <= new_dim <= new.dim:
            raise ValueError("a map is from another space")
        self.check_size(8 * (new_dim + old.dim) ** 2)
        psi = recipe.new_map(new, old, new_dim)
        if not isinstance(psi, JointMap):
            psi.set_state(self.array(key, np.shape(psi.state())))
            return psi
        joint = matrix = center = None
        if f"{key}.joint" in self.tensors:
            joint = self.moments(f"{key}.joint", new_dim + old.dim, psi.precision)
        elif f"{key}.sketch" in self.tensors:
            psi.thin()
            joint = self.sketch(f"{key}.sketch", new_dim + old.dim)
        if key in self.tensors:
            center, offset = np.split(self.array(key, (new_dim + old.dim,)), [new_dim])
            linear = self.array(f"{key}.matrix", (old.dim, new_dim), psi.precision)
            matrix = np.column_stack([linear.astype(np.float64), offset])
        if (key == "psi") != (matrix is not None) or (key == "overlap" and joint is None):
            raise ValueError("a map has not what it needs")
        psi.take(whole(content["rows"]), joint, matrix, center)
        return psi

    def names(self, key: str) -> Names:
        """Return names, checked."""
        *texts, rest = self.array(key, None, np.uint8).tobytes().split(b"\0")
        names = tuple(map(_name_in, texts))
        if rest or len(set(names)) != len(names):
            raise ValueError("its features are not named")
        return names

    def moments(self, key: str, dim: int, precision: str) -> npt.NDArray[np.float64]:
        """Return the state of a running mean and covariance."""
        head = self.array(key, (1 + dim,))
        if not 0.0 <= head[0] < 1e15:
            raise ValueError("statistics rest on no number of rows")
        return np.concatenate([head, self.array(f"{key}.sums", (dim * (dim + 1) // 2,), precision)])

    def sketch(self, key: str, dim: int) -> Floats:
        """Return the state of a sketch of rows."""
        head = self.array(key, (2 + 2 * dim,))
        if not 0.0 <= head[0] < 1e15:
            raise ValueError("a sketch rests on no number of rows")
        return np.concatenate([head, self.array(f"{key}.directions", (ROOM * dim,), np.float32)])

    def seat(self, key: str, content: Content, recipe: Recipe, space: Space, outputs: int) -> Any:
        """Read an expert of a space."""
        _, _, read = SEATS[content["kind"]]
        return read(self, key, content, recipe, space, outputs)


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
        state["inverse"] = _symmetric(packed, n)
    for name in ("seen", "labels", "clock", "rng", "refreshes"):
        if name != "refreshes" or name in state:
            state[name] = whole(state[name])
    if "norm_bound" in state:
        state["norm_bound"] = _positive(state["norm_bound"])
    state["seen_by_kind"] = tuple(map(whole, state["seen_by_kind"]))
    state["decay"] = tuple(float(value) for value in state["decay"])
    if len(state["seen_by_kind"]) != 2 or len(state["decay"]) != 2:
        raise ValueError("a learner has two kinds of rows")
    if not all(0.0 < value <= 1.0 for value in state["decay"]) or not np.all(state["weights"] > 0.0):
        raise ValueError("a row's inclusion probability is none")
    kind = PaperSeat if isinstance(recipe, BankRecipe) else LearnerSeat
    seat = kind(dim, shape, 0, recipe.backend, name=_text(content["name"]))
    seat.core.set_state(state)
    return seat


# ---- the bank's experts


def _posterior_out(writer: Writer, key: str, seat: PosteriorSeat) -> Content:
    state = seat.posterior.state()
    if seat.limit > 0.0:
        writer.tensors[f"{key}.turn"] = np.asarray(seat.core.matrix).astype(np.float32)
    real = np.dtype(seat.precision)
    parts = [np.ravel(state[name]) for name in ("rows", "coefficients")]
    matrices = ("covariance", "inverse") if seat.settings.keep_inverse else ("covariance",)
    parts += [state[name][np.tril_indices(len(state[name]))] for name in matrices]
    writer.tensors[key] = np.concatenate(parts).astype(real)
    return {
        "precision": seat.precision,
        "settings": _changed(seat.settings, PosteriorSettings()),
        "rows": len(state["rows"]),
        "counters": [int(state[name]) for name in POSTERIOR_COUNTERS],
        "residuals": float(state["residuals"]),
    }


def _posterior_in(
    reader: Reader, key: str, content: Content, recipe: Recipe, space: Space, outputs: int
) -> PosteriorSeat:
    settings = PosteriorSettings(**content["settings"])
    size, dim = settings.size, space.dim
    if content["precision"] not in ("float64", "float32") or settings.outputs != outputs:
        raise ValueError("an expert's shape is none")
    reader.check_size(8 * ((dim + size + 2) ** 2 + outputs * (dim + size + 2)))
    n = whole(content["rows"])
    if n > size:
        raise ValueError("an expert has more rows than it can")
    limit = LARGEST_SCALED / space.divisor if f"{key}.turn" in reader.tensors else 0.0
    name = _text(content["name"])
    if (limit > 0.0) != name.startswith(WHITE):
        raise ValueError("an expert's view is none")
    seat = PosteriorSeat(name, settings, dim, content["precision"], recipe.backend, limit)
    if limit > 0.0:
        seat.turn(reader.array(f"{key}.turn", (dim, dim), np.float32).astype(np.float64))
    every = dim + 1 + n
    kept_inverse = n * (n + 1) // 2 if settings.keep_inverse else 0
    sizes = [n * dim, outputs * every, every * (every + 1) // 2, kept_inverse]
    numbers = reader.array(key, (sum(sizes),), seat.precision).astype(np.float64)
    rows, coefficients, covariance, inverse = np.split(numbers, np.cumsum(sizes)[:-1])
    state: dict[str, Any] = dict(
        zip(POSTERIOR_COUNTERS, map(whole, content["counters"]), strict=True),
        rows=rows.reshape(n, dim),
        coefficients=coefficients.reshape(outputs, every),
        covariance=_symmetric(covariance, every),
        inverse=_symmetric(inverse, n) if settings.keep_inverse else np.zeros((n, n)),
        residuals=_positive(content["residuals"]),
    )
    if state["ties"] >= 1 << 32:
        raise ValueError("an expert has more ties than it can count")
    seat.posterior.set_state(state)
    return seat


def _logistic_out(writer: Writer, key: str, seat: LogisticSeat) -> Content:
    writer.tensors[key] = np.asarray(seat.core.state())
    return {"settings": _changed(seat.settings, LogisticSettings())}


def _logistic_in(
    reader: Reader, key: str, content: Content, recipe: Recipe, space: Space, outputs: int
) -> LogisticSeat:
    reader.check_size(16 * outputs * (space.dim + 1))
    settings = LogisticSettings(**content["settings"])
    if settings.outputs != outputs:
        raise ValueError("an expert's shape is none")
    seat = LogisticSeat(_text(content["name"]), settings, space.dim, recipe.backend)
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
        fits = len(set(names)) == len(names) and (not seats or not all(kernels))
        for seat, kernel in zip(seats, kernels, strict=True):
            own = isinstance(seat, PosteriorSeat) and seat.kernel
            fits = fits and own == kernel and isinstance(seat, PaperSeat) == entry_of(seat).paper
    if not fits:
        raise ValueError("a space has experts that do not go together")


# ---- parameters


def recipe_out(recipe: Recipe) -> Content:
    """Return a recipe as plain values."""
    kind = "bank" if isinstance(recipe, BankRecipe) else "paper"
    content = {
        field.name: getattr(recipe, field.name)
        for field in fields(recipe)  # type: ignore[arg-type]
        if field.name != "backend"
    }
    if isinstance(recipe, PaperRecipe):
        settings = {field.name: getattr(recipe.settings, field.name) for field in fields(LearnerSettings)}
        settings["kernel"] = [[type(term).__name__, vars(term)] for term in recipe.settings.kernel.terms()]
        content["settings"] = settings
    return content | {"kind": kind}


def recipe_in(content: Content, backend: str | None = None) -> Recipe:
    """Return the recipe of plain values."""
    values = {name: value for name, value in content.items() if name != "kind"} | {"backend": backend}
    recipe: Recipe
    if content["kind"] == "bank":
        recipe = BankRecipe(**values)
    else:
        settings = dict(values["settings"])
        kinds = {kernel.__name__: kernel for kernel in KERNELS}
        terms: list[Kernel] = [kinds[name](**parameters) for name, parameters in settings["kernel"]]
        settings["kernel"] = terms[0] if len(terms) == 1 else Sum(tuple(terms))
        recipe = PaperRecipe(**(values | {"settings": LearnerSettings(**settings)}))
    recipe.check()
    return replace(recipe)


# ---- checks


def whole(value: Any) -> int:
    """Return a count, or raise ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(f"{value!r} is no count")
    return value


def _positive(value: Any) -> float:
    if not isinstance(value, (int, float)) or not 0.0 <= value < 1e300:
        raise ValueError(f"{value!r} is no size")
    return float(value)


def _changed(settings: Any, usual: Any) -> Content:
    """Return the parameters that are not the usual ones."""
    return {name: value for name, value in vars(settings).items() if value != getattr(usual, name)}


NUMBER = b"\x01"
"""Before a name that is a whole number; before a text that begins so or has a zero byte, its JSON follows."""

OTHER = b"\x02"


def _name_out(name: Any) -> bytes:
    if not isinstance(name, str):
        return NUMBER + str(int(name)).encode() + b"\0"
    text = name.encode()
    if text[:1] in (NUMBER, OTHER) or b"\0" in text:
        text = OTHER + json.dumps(name).encode()
    return text + b"\0"


def _name_in(text: bytes) -> str | int:
    if text[:1] == NUMBER:
        if len(text) > 64:
            raise ValueError("a feature's number is too long")
        return int(text[1:])
    if text[:1] == OTHER:
        name = json.loads(text[1:])
        if not isinstance(name, str):
            raise ValueError("a feature is not named by text or a number")
        return name
    return text.decode()


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 64:
        raise ValueError("an expert has no name")
    return value


def _symmetric(packed: npt.NDArray[Any], n: int) -> npt.NDArray[np.float64]:
    full = np.zeros((n, n))
    rows, columns = np.tril_indices(n)
    full[rows, columns] = packed
    full[columns, rows] = packed  # set, not added: a zero keeps its sign
    return full
