"""Models as bytes: the core writes its state, and beside it one short text says the rest.

Reading runs no code and either gives a whole model or raises ValueError.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sf2el.events import EventLog
from sf2el.model.engine import Engine, load_state

if TYPE_CHECKING:
    from sf2el.core._native import State
    from sf2el.model.protocols import Strategy, Targets

MOST_BYTES = 1 << 62


@dataclass(frozen=True)
class Saved:
    """What a file holds: the core's state, and plain values."""

    state: State
    kind: str
    strategy: str
    parameters: dict[str, Any]
    targets: dict[str, Any]
    budget: int | None
    events: EventLog


def write(engine: Engine, kind: str, strategy: str, targets: dict[str, Any]) -> bytes:
    """Return everything that an engine keeps: at most its budget, and 1 KiB."""
    log = engine.events
    content = [kind, strategy, engine.strategy.content(), targets, engine.budget, log.total, log.first]
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode()
    own = len(text).to_bytes(4, "little") + text + log.to_bytes()
    return bytes(engine.state.save(own))


def read(data: bytes) -> Saved:
    """Return what bytes hold; ValueError where they are no whole model."""
    try:
        state, own = load_state(bytes(memoryview(data)))
        size = int.from_bytes(own[:4], "little")
        kind, strategy, parameters, targets, budget, total, first = json.loads(own[4 : 4 + size])
        plain = isinstance(kind, str) and isinstance(strategy, str) and _is_whole(total) and _is_whole(first)
        plain = plain and isinstance(parameters, dict) and isinstance(targets, dict)
        if not plain or not (budget is None or (_is_whole(budget) and 0 < budget < MOST_BYTES)):
            raise ValueError("its text is of another kind")
        return Saved(state, kind, strategy, parameters, targets, budget, EventLog.from_bytes(own[4 + size :], total, first))
    except DAMAGED as error:
        raise ValueError(no_model(error)) from None


def restored(saved: Saved, strategy: Strategy, targets: Targets) -> Engine:
    """Return the engine that a file holds."""
    engine = Engine.restored(strategy, saved.budget, targets, saved.state)
    if saved.events.nbytes != engine.events.nbytes or saved.state.outputs != targets.outputs:
        raise ValueError("its parts are of different models")
    if saved.budget is not None and sum(engine.nbytes().values()) > saved.budget:
        raise ValueError("it takes more bytes than its budget")
    engine.events = saved.events
    return engine


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
