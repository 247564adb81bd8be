"""What a classifier and a regressor share: memory, files, events, and a look inside."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sf2el.events import Events
from sf2el.memory.budget import parse_budget, wrapper_bytes
from sf2el.model.engine import Engine
from sf2el.storage import files
from sf2el.storage.atomic import write_bytes

Floats = npt.NDArray[np.float64]
Row = Mapping[Hashable, Any]


@dataclass(frozen=True)
class Track:
    """What a model predicted for each row of a table before it learned it.

    ``probability`` is that of the predicted label, NaN where there is none; ``space`` numbers the feature spaces in
    the order in which they opened; ``followed`` says which experts had the larger weight, as a place in ``roles``.
    """

    prediction: npt.NDArray[Any]
    probability: Floats
    space: npt.NDArray[np.int64]
    followed: npt.NDArray[np.int8]
    roles: tuple[str, ...] = ("current", "recovered")


class MemoryParts(dict[str, int]):
    """Bytes by part; ``full_grown`` where the experts are as large as helps, and more bytes would stay unused.

    >>> MemoryParts({"learners": 100}, full_grown=True)
    {'learners': 100} (the experts are as large as measured to help; more bytes would not be used)
    """

    def __init__(self, parts: Mapping[str, int], full_grown: bool) -> None:
        super().__init__(parts)
        self.full_grown = full_grown

    def __repr__(self) -> str:
        note = " (the experts are as large as measured to help; more bytes would not be used)"
        return super().__repr__() + (note if self.full_grown else "")


class StreamModel:
    """A model of a stream whose features come and go: an engine, and what all models share."""

    KIND: ClassVar[str]
    """What a file says it holds."""

    _engine: Engine

    # -- for the two models

    def _content(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the strategy, and what is known of labels or numbers as plain values."""
        raise NotImplementedError

    @classmethod
    def _from_content(cls, data: bytes) -> Self:
        raise NotImplementedError

    # -- memory

    def set_budget(self, budget: int | str) -> None:
        """Change the bytes the model may use, at once.

        With fewer, experts keep fewer radial functions, and their function is projected onto these; ``events()``
        says by how much it moved. With more, room opens, and experts that had to leave begin again.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="64KiB")
        >>> for t in range(200):
        ...     model.learn_one({"a": t % 7, "b": t % 5}, t % 2)
        >>> model.set_budget("4KiB")
        >>> model.memory_usage() <= 4096
        True
        """
        with self._engine.used:
            self._engine.set_budget(parse_budget(budget))

    def memory_usage(self, *, detail: bool = False) -> int | MemoryParts:
        """Return the bytes of everything the model keeps; by part with ``detail``.

        Working scratch and the Python objects around the numbers are not in it; ``memory_overhead`` has them. The
        parts also say when the experts are as large as measured to help, so that a larger budget would bring
        nothing.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="1MiB")
        >>> model.learn_one({"a": 1.0, "b": 2.0}, "up")
        >>> parts = model.memory_usage(detail=True)
        >>> parts.full_grown, sum(parts.values()) == model.memory_usage()
        (True, True)
        """
        with self._engine.used:
            parts = self._engine.nbytes()
            if not detail:
                return sum(parts.values())
            return MemoryParts(parts, self._engine.strategy.full_grown(self._engine.state))

    def memory_overhead(self) -> dict[str, int]:
        """Return bytes that do not count: the Python objects, and the most that a change of features has taken.

        While the next state is made on a copy, both are there; ``peak`` is the most that both took together.

        Examples
        --------
        >>> from sf2el import SF2EL
        >>> model = SF2EL(budget="4KiB")
        >>> model.learn_one({"a": 1.0, "b": 2.0})
        >>> sorted(model.memory_overhead())
        ['peak', 'wrapper']
        """
        with self._engine.used:
            return {"peak": self._engine.peak, "wrapper": wrapper_bytes(self)}

    # -- files

    def to_bytes(self) -> bytes:
        """Return everything the model keeps: at most its budget and 1 KiB."""
        with self._engine.used:
            strategy, targets = self._content()
            return files.write(self._engine.saved(self.KIND, strategy, targets))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the model of ``to_bytes``, which goes on to the same bits; ValueError for other bytes."""
        return cls._from_content(data)

    def save(self, path: str | Path) -> None:
        """Write the model to a file, whole or not at all."""
        write_bytes(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the model of a file that ``save`` wrote."""
        return cls.from_bytes(Path(path).read_bytes())

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self).from_bytes, (self.to_bytes(),)

    # -- looking inside

    def weights(self, *, detail: bool = False) -> dict[str, float]:
        """Return how much each space's experts weigh in the coming round; each expert with ``detail``.

        ``recovered`` are those of spaces that have ended, ``current`` those of the current one, and ``incoming``
        those of one that has appeared beside it.
        """
        engine = self._engine
        with engine.used:
            found: dict[str, float] = {}
            weights = engine.state.standings()[:, 0]
            for (space, name), weight in zip(engine.expert_names(), weights, strict=True):
                role = engine.role(space)
                key = name if detail else role
                found[key] = found.get(key, 0.0) + float(weight)
            return found

    def risk(self) -> dict[str, float]:
        """Return the average loss of each expert since the last change of the spaces."""
        engine = self._engine
        with engine.used:
            names = [name for _, name in engine.expert_names()]
            return dict(zip(names, map(float, engine.state.average_risks()), strict=True))

    def explain_one(self, x: Row) -> dict[str, dict[str, float]]:
        """Return each expert's score for this row and its weight."""
        engine = self._engine
        with engine.used:
            found = engine.state.explain(x) if engine.state.spaces else None
            if found is None:
                return {}
            scores, weights, awake = found
            return {
                name: {"score": float(np.max(score)), "weight": float(weight)}
                for (_, name), score, weight, up in zip(
                    engine.expert_names(), scores, weights, awake, strict=True
                )
                if up
            }

    def events(self) -> Events:
        """Return what happened: the last events (one for each 2 KiB of budget, 4 to 32), and their number."""
        with self._engine.used:
            return self._engine.events.last_events()

    @property
    def rows_seen(self) -> int:
        """Rows learned so far."""
        return int(self._engine.state.rows)

    @property
    def budget(self) -> int | None:
        """The budget in bytes; None where buffers have a fixed size."""
        return self._engine.budget
