"""Files that nobody should trust: saved models, and what becomes of them by accident or intent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from sf2el import RBF, SF2EL, SF2ELRegressor

NUMBERS = (
    *(0, 1, -1, 2, 3, 5, 31, 64, 255, 1 << 20, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 64, 10**30),
    *(0.5, -0.0, 1e-320, 1e-30, 1e30, 1e100, 1e300, 1.7976931348623157e308, -1e308),
)
TEXTS = (
    "",
    "a",
    "bank",
    "paper",
    "linear",
    "narrow rbf",
    "float64",
    "\0",
    "\x01",
    "é" * 40,
    "9" * 5000,
    "past",
)


def paper(**more: Any) -> SF2EL:
    """Return the published learner within a budget."""
    given = {"scaled": True, "restart": False, "on_skip": "project", "loss": "hinge", "kernel": RBF(2.5)}
    return SF2EL.paper(**({"graph_width": 7.5, "step": 2.0} | given | more))


def rows(kinds: int = 2, seed: int = 0, width: int = 3) -> list[tuple[dict[str, float], int | None]]:
    """Return rows through two spaces that share their source and back to the first, with a few typos."""
    rng = np.random.default_rng(seed)
    told = []
    for t in range(160):
        z = rng.normal(size=width)
        row = {}
        if t < 60 or t >= 120:
            row |= {f"a{j}": float(z[j]) for j in range(width)}
        if 50 <= t < 130:
            row |= {f"b{j}": float(z[j] + 0.3 * z[j - 1]) for j in range(width)}
        if t % 29 == 5:
            row["typo"] = 1.0
        label = int(z[0] > 0) + (2 * int(z[1] > 0.8) if kinds > 2 else 0)
        told.append((row, min(label, kinds - 1) if rng.random() < 0.5 else None))
    return told


MAKERS: dict[str, tuple[Callable[[], Any], int, int]] = {
    "bank": (lambda: SF2EL(budget="6KiB"), 40, 2),
    "bank, overlap": (lambda: SF2EL(budget="6KiB"), 57, 2),
    "bank, in doubt": (lambda: SF2EL(budget="6KiB"), 62, 2),
    "bank, swapped": (lambda: SF2EL(budget="16KiB", class_weight="balanced"), 90, 2),
    "bank, halves": (lambda: SF2EL(budget="3KiB"), 94, 2),
    "bank, halves, overlap": (lambda: SF2EL(budget="2KiB"), 57, 2),
    "bank, factors": (lambda: SF2EL(budget="6KiB"), 94, 2),
    "bank, slopeless": (lambda: SF2EL(budget="5KiB"), 94, 2),
    "bank, returned": (lambda: SF2EL(budget="16KiB"), 126, 2),
    "bank, newcomers": (lambda: SF2EL(budget="16KiB"), 52, 2),
    "classes": (lambda: SF2EL(budget="12KiB"), 100, 3),
    "regressor": (lambda: SF2ELRegressor(budget="8KiB"), 80, 2),
    "paper": (lambda: paper(budget="4KiB"), 90, 2),
    "paper, overlap": (lambda: paper(budget="4KiB"), 56, 2),
    "paper, fixed": (lambda: SF2EL.paper(buffer_size=8, sampling="stratified", train_in_overlap=True), 64, 2),
    "nothing": (lambda: SF2EL(budget="2KiB", classes=["x", "y"]), 0, 2),
}
"""A model in every state: how it is made, after how many rows, with how many labels."""

WIDE = {"bank, factors": 30, "bank, slopeless": 16}
"""Features of a space, where they are more than usual."""


def rows_for(name: str, seed: int = 0) -> list[tuple[dict[str, float], int | None]]:
    """Return rows for one of the models."""
    return rows(MAKERS[name][2], seed, WIDE.get(name, 3))


def made(name: str) -> Any:
    """Return one of the models."""
    make, count, _ = MAKERS[name]
    model = make()
    for x, y in rows_for(name)[:count]:
        model.learn_one(x, y)
    return model


# -- mutations


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the header, our text in it and the numbers of a file, but not the checksum.

    A file without one is read too, and must not be trusted more than one whose checksum was made to fit.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    content = json.loads(header["__metadata__"]["sf2el"])
    content.pop("checksum", None)
    return header, content, data[8 + length :]


def closed(header: dict[str, Any], content: Any, body: bytes) -> bytes:
    """Return a file of these parts."""
    header["__metadata__"]["sf2el"] = content if isinstance(content, str) else json.dumps(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes anywhere."""
    out = bytearray(closed(*opened(data)))
    for _ in range(int(rng.integers(1, 6))):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    """Lose the end, or gain one."""
    if rng.random() < 0.2:
        return data + bytes(int(rng.integers(1, 64)))
    return data[: int(rng.integers(len(data)))]


def retold(data: bytes, rng: np.random.Generator) -> bytes:
    """Change values of our text: numbers, names, nesting, counts."""
    header, content, body = opened(data)
    for _ in range(int(rng.integers(1, 4))):
        _change(content, rng)
    return closed(header, content, body)


def retexted(data: bytes, rng: np.random.Generator) -> bytes:
    """Change characters of our text, or nest it beyond reason."""
    header, content, body = opened(data)
    text = json.dumps(content)
    if rng.random() < 0.05:
        return closed(header, "[" * 100_000, body)
    i = int(rng.integers(len(text)))
    return closed(header, text[:i] + str(rng.choice(list('{}[]",:0159-eN '))) + text[i + 1 :], body)


def resized(data: bytes, rng: np.random.Generator) -> bytes:
    """Change what the header says of an array, or forget or rename one."""
    header, content, body = opened(data)
    names = [name for name in header if name != "__metadata__"]
    name = names[int(rng.integers(len(names)))]
    chance = rng.random()
    if chance < 0.2:
        del header[name]
    elif chance < 0.4:
        header[str(rng.choice([*names, "absent", "marks", "pending", "psi"]))] = header.pop(name)
    elif chance < 0.6:
        header[name]["dtype"] = str(rng.choice(["F64", "F32", "U8", "I64", "F16", "BF16"]))
    else:
        _change(header[name], rng)
    return closed(header, content, body)


def revalued(data: bytes, rng: np.random.Generator) -> bytes:
    """Change numbers of the arrays to the worst there are."""
    header, content, body = opened(data)
    out = bytearray(body)
    arrays = [entry for name, entry in header.items() if name != "__metadata__"]
    for _ in range(int(rng.integers(1, 6))):
        entry = arrays[int(rng.integers(len(arrays)))]
        width = {"F64": 8, "F32": 4}.get(entry["dtype"])
        start, stop = entry["data_offsets"]
        if width is None or stop == start:
            continue
        at = start + width * int(rng.integers((stop - start) // width))
        value = float(rng.choice([0.0, -1.0, 1e-300, 1e30, -1e30, 3e38, 1e300, -1e308, np.inf, np.nan, 2.0]))
        with np.errstate(over="ignore"):
            out[at : at + width] = np.array(value).astype(f"f{width}").tobytes()
    return closed(header, content, bytes(out))


MUTATIONS = (flipped, cut, retold, retold, retexted, resized, revalued, revalued)


def _change(content: Any, rng: np.random.Generator) -> None:
    """Change one value somewhere in nested lists and dicts."""
    places = list(_places(content))
    if not places:
        return
    holder, key = places[int(rng.integers(len(places)))]
    chance = rng.random()
    value = holder[key]
    if chance < 0.1:
        del holder[key]
    elif chance < 0.5:
        holder[key] = NUMBERS[int(rng.integers(len(NUMBERS)))]
    elif chance < 0.6 and isinstance(value, int):
        holder[key] = int(value) + int(rng.integers(-2, 3))
    elif chance < 0.75:
        holder[key] = TEXTS[int(rng.integers(len(TEXTS)))]
    elif chance < 0.85:
        other, where = places[int(rng.integers(len(places)))]
        holder[key] = json.loads(json.dumps(other.get(where) if isinstance(other, dict) else None))
    elif chance < 0.9:
        holder[key] = [value] * int(rng.integers(0, 4))
    else:
        holder[key] = (None, True, False, [], {}, [[]], {"a": 1})[int(rng.integers(7))]


def _places(content: Any) -> Any:
    keys = content if isinstance(content, dict) else range(len(content))
    for key in list(keys):
        yield content, key
        if isinstance(content[key], (dict, list)):
            yield from _places(content[key])


# -- what may come of it


def tried(cls: type, data: bytes) -> bool:
    """Return whether a file is read; a model that was read must work, or say in a ValueError why not."""
    try:
        model = cls.from_bytes(data)
    except ValueError as refused:
        assert "\n" not in str(refused), str(refused)
        return False
    probes = rows(3, seed=9)
    number = cls is SF2ELRegressor
    for x, y in (probes[55], probes[70], probes[100], probes[0], probes[125]):
        try:
            model.predict_one(x)
            model.learn_one(x, y if number or y is None else _label(model, y))
        except ValueError:
            continue
    try:
        model.memory_usage(detail=True), model.memory_overhead()
        model.weights(detail=True), model.risk(), model.events(), repr(model)
        model.explain_one(probes[90][0])
        model.to_bytes()
    except ValueError:
        pass
    return True


def _label(model: SF2EL, y: int) -> Any:
    seen = model._labels.seen
    return seen[y % len(seen)] if len(seen) > 1 else y
