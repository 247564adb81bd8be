"""Models as bytes: safetensors for the numbers, one sorted JSON text for the rest.

Reading runs no code and either gives a whole model or raises ValueError. The Gram matrices are not
written: they follow from the rows, to the bit.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from sf2el import _core
from sf2el.hedge import Hedge
from sf2el.kernels import KERNELS, Kernel, Sum
from sf2el.plan import Shape, events_kept
from sf2el.settings import LearnerSettings
from sf2el.spaces import Names
from sf2el.stage import Recipe, Recovered, Seat, Space, Stage

if TYPE_CHECKING:
    from sf2el.model import SF2EL

FORMAT = 1
COUNTERS = ("seen", "labels", "clock", "rng", "seen_by_kind", "decay", "norm_bound", "refreshes")
MOST_BLOW_UP = 64
SPARE = 1 << 26
"""A file may ask for learners of 64 times its own size, and 64 MiB: more is not a model we wrote."""

Tensors = dict[str, npt.NDArray[Any]]
Model = TypeVar("Model", bound="SF2EL")


def to_bytes(model: SF2EL) -> bytes:
    """Return everything a model keeps."""
    from safetensors.numpy import save

    tensors: Tensors = {"events": model._events.state()}
    content: dict[str, Any] = {
        "format": FORMAT,
        "recipe": _recipe_out(model._recipe),
        "budget": model._budget,
        "labels": model._labels.seen,
        "rows": model._rows_seen,
        "events": [model._events.total, model._events.first],
        "stage": None if model._stage is None else _stage_out(model._stage, tensors),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return bytes(save(tensors, metadata={"sf2el": text}))


def from_bytes(cls: type[Model], data: bytes) -> Model:
    """Return the model that ``to_bytes`` wrote; ValueError for anything else."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        length = int.from_bytes(data[:8], "little")
        content = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["sf2el"])
        if content["format"] != FORMAT:
            raise ValueError(f"it has format {content['format']!r}, and this version reads {FORMAT}")
        return _read(cls, content, load(data), MOST_BLOW_UP * len(data) + SPARE)
    except (
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        OverflowError,
    ) as error:
        raise ValueError(
            f"These bytes are not a whole sf2el model: {error or type(error).__name__}."
        ) from None
    except (RecursionError, MemoryError, AssertionError):
        raise ValueError("These bytes are not a whole sf2el model.") from None


def _read(cls: type[Model], content: dict[str, Any], tensors: Tensors, most: int) -> Model:
    recipe = _recipe_in(content["recipe"])
    model = cls.__new__(cls)
    model._start(recipe, None, content["budget"])
    for label in content["labels"]:
        model._labels.see(model._labels.encode(label)[1])
    model._rows_seen = _whole(content["rows"])
    total, first = map(_whole, content["events"])
    model._events.set_state(_finite(tensors["events"], (events_kept(content["budget"]), 4)), total, first)
    if content["stage"] is not None:
        model._stage = _stage_in(content["stage"], tensors, recipe, most)
        usage = model.memory_usage()
        if model._budget is not None and isinstance(usage, int) and usage > model._budget:
            raise ValueError("it is larger than its own budget")
    return model


# ---- the stage


def _stage_out(stage: Stage, tensors: Tensors) -> dict[str, Any]:
    content: dict[str, Any] = {
        "index": stage.index,
        "current": _space_out("current", stage.current, tensors),
        "upcoming": None if stage.upcoming is None else _space_out("upcoming", stage.upcoming, tensors),
        "recovered": None,
        "map": stage.psi is not None,
    }
    tensors["hedge"] = np.asarray(stage.hedge.core.state())
    if stage.recovered is not None:
        content["recovered"] = _seat_out("recovered", stage.recovered.seat, tensors)
        tensors["recovered.map"] = np.asarray(stage.recovered.psi.state())
    if stage.psi is not None:
        tensors["upcoming.map"] = np.asarray(stage.psi.state())
    return content


def _stage_in(content: dict[str, Any], tensors: Tensors, recipe: Recipe, most: int) -> Stage:
    current = _space_in("current", content["current"], tensors, recipe, most)
    if current.seat is None:
        raise ValueError("its current space has no learner")
    stage = Stage(current, recipe, _whole(content["index"]))
    core = _core.backend(recipe.backend)
    if content["recovered"] is not None:
        seat = _seat_in("recovered", content["recovered"], tensors, recipe, most)
        psi = core.RecoveryMap(current.dim, seat.dim, float(recipe.map_ridge), recipe.map_intercept)
        psi.set_state(_finite(tensors["recovered.map"]))
        stage.recovered = Recovered(seat, psi, current.dim)
        stage.hedge = Hedge(2, eta=recipe.eta, backend=recipe.backend)
    stage.hedge.core.set_state(_finite(tensors["hedge"], np.shape(stage.hedge.core.state())))
    if content["upcoming"] is not None:
        stage.upcoming = _space_in("upcoming", content["upcoming"], tensors, recipe, most)
        if content["map"]:
            stage.psi = stage._new_map(stage.upcoming.dim)
            stage.psi.set_state(_finite(tensors["upcoming.map"]))
    return stage


def _space_out(key: str, space: Space, tensors: Tensors) -> dict[str, Any]:
    for name in space.names:
        if not isinstance(name, (str, int)):
            raise ValueError(
                f"A model can be saved if its features are named by text or numbers, not {name!r}."
            )
    if space.scaler is not None:
        tensors[f"{key}.scaler"] = np.asarray(space.scaler.state())
    return {
        "names": list(space.names),
        "learner": None if space.seat is None else _seat_out(key, space.seat, tensors),
    }


def _space_in(key: str, content: dict[str, Any], tensors: Tensors, recipe: Recipe, most: int) -> Space:
    names: Names = tuple(content["names"])
    if not names or len(set(names)) != len(names) or not all(isinstance(n, (str, int)) for n in names):
        raise ValueError("its features are not named")
    space = Space(names, recipe)
    if space.scaler is not None:
        space.scaler.set_state(_finite(tensors[f"{key}.scaler"], (2 * space.dim + 1,)))
    if content["learner"] is not None:
        space.seat = _seat_in(key, content["learner"], tensors, recipe, most)
        if space.seat.dim != space.dim:
            raise ValueError("a learner has other features than its space")
    return space


# ---- a learner


def _seat_out(key: str, seat: Seat, tensors: Tensors) -> dict[str, Any]:
    state = seat.core.state()
    real = np.dtype(seat.shape.precision)
    for name in ("rows", "beta", "weights"):
        tensors[f"{key}.{name}"] = np.ascontiguousarray(state[name], dtype=real)
    if seat.shape.settings.sampling == "stratified":
        tensors[f"{key}.kinds"] = np.ascontiguousarray(state["kinds"])
    if state["inverse"] is not None:
        lower = np.tril_indices(len(state["beta"]))
        tensors[f"{key}.inverse"] = np.ascontiguousarray(state["inverse"][lower], dtype=real)
    return {
        "dim": seat.dim,
        "rows": seat.shape.rows,
        "lean": not seat.shape.settings.keep_gram,
        "precision": seat.shape.precision,
        "counters": {name: state[name] for name in COUNTERS if np.all(np.isfinite(state.get(name, np.inf)))},
    }


def _seat_in(key: str, content: dict[str, Any], tensors: Tensors, recipe: Recipe, most: int) -> Seat:
    settings, dim, rows = recipe.settings, _whole(content["dim"]), _whole(content["rows"])
    if content["lean"]:
        settings = Shape(settings, "float64", rows).lean().settings
    if (
        content["precision"] not in ("float64", "float32")
        or not 2 <= rows <= 1 << 20
        or not 1 <= dim <= 1 << 24
    ):
        raise ValueError("a learner's shape is none")
    shape = Shape(settings, content["precision"], rows)
    if shape.nbytes(dim) > most:
        raise ValueError("it asks for far more memory than it holds")
    real = np.dtype(shape.precision)
    n = len(tensors[f"{key}.beta"])
    state: dict[str, Any] = dict(content["counters"]) | {"gram": None, "inverse": None}
    for name, size in (("rows", (n, dim)), ("beta", (n,)), ("weights", (n,))):
        state[name] = _finite(tensors[f"{key}.{name}"], size, real).astype(np.float64)
    state["kinds"] = np.zeros(n, np.uint8)
    if settings.sampling == "stratified":
        state["kinds"] = _exact(tensors[f"{key}.kinds"], (n,), np.dtype(np.uint8))
    if f"{key}.inverse" in tensors:
        packed = _finite(tensors[f"{key}.inverse"], (n * (n + 1) // 2,), real).astype(np.float64)
        inverse = np.zeros((n, n))
        inverse[np.tril_indices(n)] = packed
        state["inverse"] = inverse + np.tril(inverse, -1).T
    for name in ("seen", "labels", "clock", "rng"):
        state[name] = _whole(state[name])
    state["seen_by_kind"] = tuple(map(_whole, state["seen_by_kind"]))
    state["decay"] = tuple(float(value) for value in state["decay"])
    if not all(0.0 < value <= 1.0 for value in state["decay"]) or not np.all(state["weights"] > 0.0):
        raise ValueError("a row's inclusion probability is none")
    seat = Seat(dim, shape, recipe, 0)
    seat.core.set_state(state)
    return seat


# ---- parameters


def _recipe_out(recipe: Recipe) -> dict[str, Any]:
    content = {field.name: getattr(recipe, field.name) for field in fields(Recipe) if field.name != "backend"}
    settings = {field.name: getattr(recipe.settings, field.name) for field in fields(LearnerSettings)}
    settings["kernel"] = [[type(term).__name__, vars(term)] for term in recipe.settings.kernel.terms()]
    return content | {"settings": settings}


def _recipe_in(content: dict[str, Any]) -> Recipe:
    settings = dict(content["settings"])
    kinds = {kernel.__name__: kernel for kernel in KERNELS}
    terms: list[Kernel] = [kinds[name](**values) for name, values in settings["kernel"]]
    settings["kernel"] = terms[0] if len(terms) == 1 else Sum(tuple(terms))
    recipe = Recipe(**(content | {"settings": LearnerSettings(**settings), "backend": None}))
    recipe.check()
    return recipe


# ---- checks


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise ValueError(f"{value!r} is no count")
    return value


def _exact(array: npt.NDArray[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    if array.shape != shape or array.dtype != kind:
        raise ValueError("an array has another size or type than it should")
    return array


def _finite(
    array: npt.NDArray[Any],
    shape: tuple[int, ...] | None = None,
    kind: np.dtype[Any] | None = None,
) -> npt.NDArray[Any]:
    array = _exact(
        array, array.shape if shape is None else shape, np.dtype(np.float64) if kind is None else kind
    )
    if not np.all(np.isfinite(array)):
        raise ValueError("a number in it is not finite")
    return array
