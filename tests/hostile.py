"""Files that nobody should trust: saved models, and what becomes of them by accident or intent."""

from __future__ import annotations

import json
import os
import struct
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from worlds import bank, learned, paper, paper_fixed, regressor, swap

from sf2el import SF2EL, SF2ELRegressor

NUMBERS = (
    *(0, 1, -1, 2, 3, 5, 31, 64, 255, 1 << 20, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 64, 10**30),
    *(0.5, -0.0, 1e-320, 1e-30, 1e30, 1e100, 1e300, 1.7976931348623157e308, -1e308),
)
TEXTS = ("", "a", "bank", "paper", "classifier", "regressor", "linear", "\0", "\x01", "é" * 40, "9" * 5000)
WORST = (0.0, -1.0, 1e-300, 1e30, -1e30, 3e38, 1e300, -1e308, float("inf"), float("nan"), 2.0)

Maker = tuple[Callable[[], Any], int]
MAKERS: dict[str, Maker] = {
    "new": (lambda: SF2EL(budget="2KiB", classes=[1, 0]), 0),
    "bank": (lambda: bank("6KiB"), 40),
    "overlap": (lambda: bank("6KiB"), 66),
    "vanished": (lambda: bank("6KiB"), 83),
    "swapped": (lambda: bank("16KiB", class_weight="balanced"), 110),
    "swapped, least": (lambda: bank("2KiB"), 110),
    "swapped, wide": (lambda: bank("64KiB"), 130),
    "classes": (lambda: bank("12KiB"), 130),
    "regressor": (lambda: regressor("8KiB"), 110),
    "paper": (lambda: paper("6KiB"), 110),
    "paper, overlap": (lambda: paper("6KiB"), 70),
    "paper, fixed": (lambda: paper_fixed(sampling="stratified"), 110),
}
"""A model in every state: how it is made, and after how many rows."""


def made(name: str) -> Any:
    """Return one of the models."""
    make, count = MAKERS[name]
    rows = swap(classes=3 if name == "classes" else 2)[:count]
    if "paper" in name:  # its periods are of rows without a stranger
        rows = [({key: v for key, v in x.items() if "typo" not in key}, y) for x, y in rows]
    return learned(make(), rows)


# -- a file: a mark of 8 bytes, the length and a checksum of what follows, our text, events, the state

HEAD = 24
ODD = 0xD6E8FEB86659FD93
FULL = (1 << 64) - 1


def checksum(body: bytes) -> int:
    """Four lanes of multiply and fold, as the core has them."""
    lanes = [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, len(body)]

    def fold(lane: int, word: int) -> int:
        lane = ((lane ^ word) * ODD) & FULL
        return lane ^ (lane >> 32)

    whole = len(body) // 32 * 32
    for i, word in enumerate(struct.unpack(f"<{whole // 8}Q", body[:whole])):
        lanes[i % 4] = fold(lanes[i % 4], word)
    for at in range(whole, len(body)):
        lanes[at % 4] = fold(lanes[at % 4], body[at])
    total = 0
    for lane in lanes:
        total = fold(total, lane)
    return total


def sealed(data: bytes) -> bytes:
    """Return a file whose length and checksum fit what it holds."""
    body = data[HEAD:]
    return data[:8] + len(body).to_bytes(8, "little") + checksum(body).to_bytes(8, "little") + body


def opened(data: bytes) -> tuple[list[Any], bytes, bytes]:
    """Return our text, the events and the state of a file."""
    own = int.from_bytes(data[HEAD : HEAD + 4], "little")
    size = int.from_bytes(data[HEAD + 4 : HEAD + 8], "little")
    text = data[HEAD + 8 : HEAD + 8 + size]
    return json.loads(text), data[HEAD + 8 + size : HEAD + 4 + own], data[HEAD + 4 + own :]


def closed(content: Any, events: bytes, state: bytes) -> bytes:
    """Return a file of these parts."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    own = len(text).to_bytes(4, "little") + text + events
    return sealed(b"sf2el\3\0\0" + bytes(16) + len(own).to_bytes(4, "little") + own + state)


# -- mutations


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bits anywhere; the checksum fits."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return sealed(bytes(out))


def replaced(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes of the state to anything; the checksum fits."""
    content, events, state = opened(data)
    out = bytearray(state)
    for _ in range(int(rng.integers(1, 8))):
        out[int(rng.integers(len(out)))] = int(rng.choice([0, 1, 2, 127, 128, 255, int(rng.integers(256))]))
    return closed(content, events, bytes(out))


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    """Lose the end, or gain one, or lose something in between."""
    chance = rng.random()
    if chance < 0.2:
        return sealed(data + bytes(int(rng.integers(1, 64))))
    at = int(rng.integers(len(data)))
    if chance < 0.6 or at < HEAD:
        return data[:at]
    return sealed(data[:at] + data[at + int(rng.integers(1, 64)) :] if chance < 0.8 else data[:at])


def retold(data: bytes, rng: np.random.Generator) -> bytes:
    """Change values of our text: numbers, names, nesting, counts."""
    content, events, state = opened(data)
    for _ in range(int(rng.integers(1, 4))):
        _change(content, rng)
    return closed(content, events, state)


def retexted(data: bytes, rng: np.random.Generator) -> bytes:
    """Change characters of our text, or nest it beyond reason."""
    content, events, state = opened(data)
    if rng.random() < 0.05:
        return closed(b"[" * 100_000, events, state)
    text = bytearray(json.dumps(content).encode())
    text[int(rng.integers(len(text)))] = int(rng.choice(list(b'{}[]",:0159-eN \xff')))
    return closed(bytes(text), events, state)


def retimed(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the numbers of events, or how many there are."""
    content, events, state = opened(data)
    slots = np.frombuffer(events).copy()
    if rng.random() < 0.3:
        return closed(content, events[: int(rng.integers(len(events)))], state)
    slots[int(rng.integers(len(slots)))] = rng.choice([*WORST, 3.0, 7.5, 21.0, 1e17])
    return closed(content, slots.tobytes(), state)


def revalued(data: bytes, rng: np.random.Generator) -> bytes:
    """Write the worst numbers there are over the state, wherever a number may be."""
    content, events, state = opened(data)
    out = bytearray(state)
    for _ in range(int(rng.integers(1, 6))):
        kind = str(rng.choice(["<f8", "<f4", "<u4", "<u8", "<u2"]))
        value = WORST if kind[1] == "f" else (0, 1, 2, 1 << 15, (1 << 31) - 1, (1 << 32) - 1)
        with np.errstate(over="ignore"):
            number = np.array(rng.choice(value))
            written = (number if kind[1] == "f" else number.astype("u8")).astype(kind).tobytes()
        at = int(rng.integers(max(1, len(out) - len(written))))
        out[at : at + len(written)] = written
    return closed(content, events, bytes(out))


MUTATIONS = (
    flipped,
    flipped,
    replaced,
    cut,
    retold,
    retexted,
    retimed,
    revalued,
    revalued,
    revalued,
)


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


def apart(act: Callable[[], Any]) -> None:
    """Do something in a process of its own, so that a crash is a failure of one test."""
    process = os.fork()
    if process == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status == 0, f"killed by signal {-status}" if status < 0 else "failed, as printed above"


def tried(cls: type, data: bytes) -> bool:
    """Return whether a file is read; a model that was read must work, or say in a ValueError why not."""
    try:
        model = cls.from_bytes(data)
    except ValueError as refused:
        assert "\n" not in str(refused), str(refused)
        return False
    probes = swap(seed=9)
    number = cls is SF2ELRegressor
    for x, y in (probes[55], probes[70], probes[100], probes[0], probes[125]):
        try:
            model.predict_one(x)
            known = [] if number else model.labels
            model.learn_one(x, y if number or y is None or len(known) < 2 else known[y % len(known)])
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
