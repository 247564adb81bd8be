"""What a model keeps beyond its process, and what it tells of itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sf2el.events import Events
from sf2el.inputs.rows import Names
from sf2el.model.budgeted import BudgetedModel, Observed, Pending
from sf2el.storage import persist
from sf2el.storage.atomic import write_bytes

Floats = npt.NDArray[np.float64]


class KeptModel(BudgetedModel):
    """Everything of a model but its rows: ``streaming.StreamModel`` adds those, and its children labels."""

    KIND: ClassVar[str]
    """What a file says it holds."""

    # -- for children

    def _labels_out(self) -> dict[str, Any]:
        """Return what a child keeps, as plain values."""
        raise NotImplementedError

    def _labels_in(self, content: dict[str, Any]) -> None:
        """Take over what ``_labels_out`` returned; ValueError for anything else."""
        raise NotImplementedError

    # -- saving

    def _pending_in(self, observed: Observed, target: float | None, weight: float) -> None:
        """Take a row from a file."""
        values = [*observed.values(), weight, 0.0 if target is None else float(target)]
        if not all(abs(value) <= 1e100 for value in values):
            raise ValueError("a row in it is none")
        number = float("nan") if target is None else float(target)
        self._pending.append(Pending(observed, number, weight))

    def to_bytes(self) -> bytes:
        """Return everything the model keeps: its budget's bytes, and less than 8 KiB that describe them.

        A description takes up to 450 bytes an expert and 3 KiB besides, however large the budget. Only
        thousands of features, each with two bytes more, labels full of quotes, or weights for hundreds of
        classes make it longer.
        """
        return persist.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes, *, backend: str | None = None) -> Self:
        """Return the model of ``to_bytes``, which goes on bit for bit; ValueError for other bytes.

        It goes on with the ``backend`` that is named, the one that models usually have otherwise; only on the
        one it had before the bits are the same.
        """
        return persist.from_bytes(cls, data, backend)

    def save(self, path: str | Path) -> None:
        """Write the model to a safetensors file, whole or not at all."""
        write_bytes(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, *, backend: str | None = None) -> Self:
        """Return the model of a file that ``save`` wrote; ``backend`` as for ``from_bytes``."""
        return cls.from_bytes(Path(path).read_bytes(), backend=backend)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return persist.from_bytes, (type(self), self.to_bytes(), self._recipe.backend)

    # -- looking inside

    def weights(self, *, detail: bool = False) -> dict[str, float]:
        """Return who is followed in the coming round: the recovered or the current space; each expert with
        ``detail``."""
        if self._stage is None:
            return {}
        stage = self._stage
        names = stage.names() if detail else stage.roles()
        return _summed(names, stage.weights.weights)

    def risk(self) -> dict[str, float]:
        """Return the average risk of each expert in the present space."""
        if self._stage is None:
            return {}
        stage = self._stage
        return dict(zip(stage.names(), map(float, stage.weights.average_risks()), strict=True))

    def events(self) -> Events:
        """Return what happened: the last events (one for each 2 KiB of budget, 4 to 32), and their number."""
        return self._events.told()

    def _current_names(self) -> Names | None:
        return None if self._stage is None else self._stage.current.names


def _summed(names: Sequence[str], values: Floats) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        sums[name] = sums.get(name, 0.0) + float(value)
    return sums
