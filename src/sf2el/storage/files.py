"""Models as bytes: the core writes its state, and beside it one short text says the rest.

Reading runs no code and either gives whole values or raises ValueError. What they mean is not known here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sf2el.core import native

if TYPE_CHECKING:
    from sf2el.core._native import State

MOST_BYTES = 1 << 62


@dataclass(frozen=True)
class Saved:
    """What a file holds: the core's state, plain values, and a log of events as bytes."""

    state: State
    kind: str
    strategy: str
    parameters: dict[str, Any]
    targets: dict[str, Any]
    budget: int | None
    events: bytes
    total: int
    first: int


def write(saved: Saved) -> bytes:
    """Return everything as bytes: a state of the size that it counts itself, the log, and less than 1 KiB."""
    content = [saved.kind, saved.strategy, saved.parameters, saved.targets, saved.budget]
    content += [saved.total, saved.first]
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
    return bytes(saved.state.save(len(text).to_bytes(4, "little") + text + saved.events))


def read(data: bytes) -> Saved:
    """Return what bytes hold; ValueError where they are no whole model."""
    try:
        state, own = native().State.load(bytes(memoryview(data)))
        size = int.from_bytes(own[:4], "little")
        kind, strategy, parameters, targets, budget, total, first = json.loads(own[4 : 4 + size])
        plain = isinstance(kind, str) and isinstance(strategy, str) and _is_whole(total) and _is_whole(first)
        plain = plain and isinstance(parameters, dict) and isinstance(targets, dict)
        if not plain or not (budget is None or (_is_whole(budget) and 0 < budget < MOST_BYTES)):
            raise ValueError("its text is of another kind")
        return Saved(state, kind, strategy, parameters, targets, budget, own[4 + size :], total, first)
    except DAMAGED as error:
        raise ValueError(no_model(error)) from None


DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    MemoryError,
)

_READING = (json.JSONDecodeError, UnicodeError)


def no_model(error: BaseException) -> str:
    """Return the sentence that refuses bytes."""
    reason = str(error) if isinstance(error, ValueError) and not isinstance(error, _READING) else ""
    return f"These bytes are not a whole sf2el model: {reason or 'they are damaged, or of another kind'}."


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
