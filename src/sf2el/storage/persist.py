"""Models as bytes: safetensors for the numbers, one sorted JSON text for the rest.

Reading runs no code and either gives a whole model or raises ValueError. Gram matrices are not written: they
follow from the rows, to the bit. Files of older formats are brought up to date in ``formats.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import numpy as np

from sf2el import events
from sf2el.events import MOST_KEPT, Happened
from sf2el.features.attendance import LATELY
from sf2el.inputs.rows import LARGEST_FEATURE, Names
from sf2el.memory.budget import MODEL_BYTES, newcomer_room
from sf2el.memory.plan import Shape, events_kept, smallest_budget
from sf2el.model.space import Space
from sf2el.model.stage import Stage
from sf2el.paper.strategy import PaperRecipe
from sf2el.storage.formats import FORMAT, brought_up
from sf2el.storage.persist_checks import check_features, whole
from sf2el.storage.persist_parts import Reader, Writer
from sf2el.storage.persist_seats import check_seats
from sf2el.storage.persist_strategy import recipe_in, recipe_out
from sf2el.storage.persist_tracker import tracker_in, tracker_out

if TYPE_CHECKING:
    from sf2el.model.kept import KeptModel
    from sf2el.model.strategy import Recipe

Model = TypeVar("Model", bound="KeptModel")


def to_bytes(model: KeptModel) -> bytes:
    """Return everything a model keeps."""
    from safetensors.numpy import save

    writer = Writer()
    writer.tensors["events"] = model._events.state()
    content: dict[str, Any] = {
        "format": FORMAT,
        "kind": type(model).KIND,
        "recipe": recipe_out(model._recipe),
        "budget": model._budget,
        "labels": model._labels_out(),
        "rows": model._rows_seen,
        "events": [model._events.total, model._events.first],
        "stage": None if model._stage is None else _stage_out(model._stage, writer),
        "tracker": None if model._tracker is None else tracker_out(model._tracker, writer),
        "pending": _pending_out(model, writer),
    }
    content["checksum"] = _checksum(content, writer.tensors)
    return bytes(save(writer.tensors, metadata={"sf2el": _text(content)}))


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def _checksum(content: dict[str, Any], tensors: dict[str, Any]) -> int:
    """Return what tells a damaged file: a number that changes with every bit of the text and the arrays."""
    found = crc32(_text(content).encode())
    for name in sorted(tensors):
        array = tensors[name]
        found = crc32(array.tobytes(), crc32(f"{name} {array.dtype} {array.shape}".encode(), found))
    return found


def from_bytes(cls: type[Model], data: bytes, backend: str | None = None) -> Model:
    """Return the model that ``to_bytes`` wrote; ValueError for anything else."""
    content, tensors = opened(data)
    try:
        content, tensors, older = brought_up(content, tensors)
        if content["kind"] != cls.KIND:
            raise ValueError(f"it holds a {content['kind']}, to be read by another class than {cls.__name__}")
        return _model_in(cls, content, Reader(tensors, len(data)), older, backend)
    except _DAMAGED as error:
        raise ValueError(_no_model(error)) from None


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the text and the arrays of a file, as they are; ValueError if it is not one of ours."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        data = bytes(memoryview(data))
        length = int.from_bytes(data[:8], "little")
        content = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["sf2el"])
        if not isinstance(content, Mapping):
            raise ValueError("its text is of another kind")
        tensors = load(data)
        told = {name: value for name, value in content.items() if name != "checksum"}
        # Files of earlier versions have none.
        if "checksum" in content and content["checksum"] != _checksum(told, tensors):
            raise ValueError("its checksum is another, so that something in it has changed; use a copy")
        return told, tensors
    except (SafetensorError, *_DAMAGED) as error:
        raise ValueError(_no_model(error)) from None


_DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
    AssertionError,
)


_READING = (json.JSONDecodeError, UnicodeError)


def _no_model(error: BaseException) -> str:
    told = str(error) if isinstance(error, ValueError) and not isinstance(error, _READING) else ""
    return f"These bytes are not a whole sf2el model: {told or 'they are damaged, or of another kind'}."


def _model_in(
    cls: type[Model], content: dict[str, Any], reader: Reader, older: bool, backend: str | None
) -> Model:
    recipe = recipe_in(content["recipe"], backend)
    budget = content["budget"]
    if budget is not None:
        whole(budget)
    if isinstance(recipe, PaperRecipe):
        # Its buffers are as large as it is told, at once, in this space and in the next.
        rows = recipe.buffer_size or 0
        reader.check_size(budget or Shape(recipe.settings, "float64", rows).nbytes(1))
    if (budget is None) != (getattr(recipe, "buffer_size", None) is not None):
        raise ValueError("it has no size")
    model = cls.__new__(cls)
    model._labels_in(content["labels"])
    model._begin(recipe, budget)
    model._rows_seen = whole(content["rows"])
    total, first = map(whole, content["events"])
    slots = reader.array("events")
    if slots.ndim != 2 or slots.shape[1] != 5 or not 1 <= len(slots) <= MOST_KEPT:
        raise ValueError("its events are none")
    model._events.set_state(slots, total, first)
    if len(slots) != events_kept(budget):
        model._events = model._events.resized(events_kept(budget))
    if content["stage"] is None:
        return model
    stage = model._stage = _stage_in(content["stage"], reader, recipe, model._outputs())
    model._tracker = tracker_in(content["tracker"], stage, reader, budget)
    if stage.began > model._rows_seen:
        raise ValueError("it swapped after its last row")
    model._refit_at = stage.refit_at(model._rows_seen)
    model._settled = model._tracker.settled
    _pending_in(model, content["pending"], reader)
    if budget is not None:
        if model._crowded():
            raise ValueError("more waits in it than it has room for")
        if older:
            _roomier(model, stage)
            budget = model._budget
        usage = model.memory_usage()
        if isinstance(usage, int) and usage > budget:
            raise ValueError("it is larger than its own budget")
    return model


def _roomier(model: KeptModel, stage: Stage) -> None:
    """Raise the budget of an older format's model, which knew no room for newcomers, to what it takes now."""
    assert model._tracker is not None and model._budget is not None
    needed = sum(stage.nbytes().values()) + model._label_bytes() + MODEL_BYTES
    budget = max(model._budget, smallest_budget(needed))
    if budget > model._budget:
        model._budget, model._tracker.strangers.room = budget, newcomer_room(budget)
        model._events = model._events.resized(events_kept(budget))
        model._record([Happened(events.NEW_BUDGET, budget)])


# ---- the stage and its spaces


def _stage_out(stage: Stage, writer: Writer) -> dict[str, Any]:
    upcoming: Any = None
    if stage.upcoming is not None:
        same = stage.upcoming is stage.past
        upcoming = "past" if same else _space_out("upcoming", stage.upcoming, writer)
    writer.tensors["weights"] = stage.weights.state()
    return {
        "index": stage.index,
        "began": stage.began,
        "outputs": stage.outputs,
        "current": _space_out("current", stage.current, writer),
        "past": None if stage.past is None else _space_out("past", stage.past, writer),
        "upcoming": upcoming,
        "share": stage.weights.share,
        "psi": None if stage.psi is None else writer.map("psi", stage.psi),
        "overlap": None if stage.overlap is None else writer.map("overlap", stage.overlap),
    }


def _stage_in(content: dict[str, Any], reader: Reader, recipe: Recipe, outputs: int) -> Stage:
    if content["outputs"] != outputs:
        raise ValueError("its labels and its experts do not fit")
    current = _space_in("current", content["current"], reader, recipe, outputs)
    if not current.seats:
        raise ValueError("its current space has no learner")
    stage = Stage(recipe, current, whole(content["index"]), outputs)
    if content["past"] is not None:
        stage.past = _space_in("past", content["past"], reader, recipe, outputs)
    if content["upcoming"] == "past":
        stage.upcoming = stage.past
    elif content["upcoming"] is not None:
        stage.upcoming = _space_in("upcoming", content["upcoming"], reader, recipe, outputs)
    if content["psi"] is not None:
        if stage.past is None or not stage.past.seats:
            raise ValueError("it has a map to no space")
        stage.psi = reader.map("psi", content["psi"], recipe, current, stage.past)
    if content["overlap"] is not None:
        if stage.upcoming is None:
            raise ValueError("it has a map from no space")
        stage.overlap = reader.map("overlap", content["overlap"], recipe, stage.upcoming, current)
        if stage.overlap.refits and stage.overlap.settled:
            raise ValueError("a map that is being fitted is none")
    stage.began = whole(content["began"])
    stage.weights = recipe.new_weights(stage)
    kept = reader.array("weights")
    if kept.ndim != 1:
        raise ValueError("its experts' weights are none")
    stage.weights.set_state(kept)
    weights = stage.weights.weights
    if np.any(weights < 0.0) or abs(weights.sum() - 1.0) > 1e-6:
        raise ValueError("its experts' weights are none")
    stage.arrange()
    return stage


def _space_out(key: str, space: Space, writer: Writer) -> dict[str, Any]:
    writer.names(f"{key}.names", space.names)
    if space.scaler is not None:
        writer.scaler(f"{key}.scaler", space)
    if space.moments is not None:
        writer.moments(f"{key}.moments", space.moments, space.dim, space.precision)
    return {
        "dim": space.dim,
        "born": space.born,
        "seats": [writer.seat(f"{key}.{i}", seat) for i, seat in enumerate(space.seats)],
    }


def _space_in(key: str, content: dict[str, Any], reader: Reader, recipe: Recipe, outputs: int) -> Space:
    names: Names = reader.names(f"{key}.names")
    dim, born = whole(content["dim"]), whole(content["born"])
    # A space of the first format has lost its names: it can be recovered, but it cannot come back.
    if not 1 <= born <= dim <= 1 << 20 or len(set(names)) != len(names) or len(names) not in (0, dim):
        raise ValueError("its features are not named")
    reader.check_size(64 * dim)
    single = f"{key}.scaler.spread" in reader.tensors
    space = recipe.new_space(
        names,
        dim=dim,
        born=born,
        related=f"{key}.moments" in reader.tensors,
        scaling="float32" if single else "float64",
    )
    if space.scaler is not None:
        space.scaler.set_state(reader.scaler(f"{key}.scaler", space))
    if space.moments is not None:
        space.keep_fourths(f"{key}.moments.fourths" in reader.tensors)
        space.moments.set_state(reader.moments(f"{key}.moments", dim, space.precision))
    seats = [
        reader.seat(f"{key}.{i}", seat, recipe, space, outputs) for i, seat in enumerate(content["seats"])
    ]
    check_seats(recipe, seats)
    space.task = recipe.risk_task(outputs)
    space.seat(seats)
    return space


# ---- rows that wait


def _pending_out(model: KeptModel, writer: Writer) -> list[list[Any]]:
    """Write the values as an array; which features they are of, as the bits of a number."""
    if not model._pending or model._tracker is None:
        return []
    known, values, rows = model._tracker.known(), [], []
    for observed, target, weight in model._pending:
        there = [name in observed for name in known]
        values += [weight, 0.0 if target != target else target]
        values += [observed[name] for name in known if name in observed]
        bits = sum(1 << place for place, seen in enumerate(there) if seen)
        rows.append([target == target, f"{bits:x}"])
    writer.tensors["pending"] = np.array(values)
    return rows


def _pending_in(model: KeptModel, rows: list[list[Any]], reader: Reader) -> None:
    if not rows:
        return
    assert model._tracker is not None
    known, values, place = model._tracker.known(), reader.array("pending"), 0
    if len(rows) >= LATELY:
        raise ValueError("it has too many rows")
    for labelled, text in rows:
        if len(text) > len(known) // 4 + 1:
            raise ValueError("a row has features of no space")
        bits = int(text, 16)
        names = [name for i, name in enumerate(known) if bits >> i & 1]
        weight, target, *row = values[place : place + 2 + len(names)].tolist()
        place += 2 + len(names)
        if not 0.0 < weight <= LARGEST_FEATURE:
            raise ValueError("a row weighs nothing")
        check_features(np.array(row))
        model._pending_in(dict(zip(names, row, strict=True)), target if labelled else None, weight)
    if place != len(values):
        raise ValueError("a row has more features than names")
