"""Finished units as files, so that an interrupted command goes on where it was."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from sf2el.storage.atomic import write_text

AnyUnit = TypeVar("AnyUnit")


class Store(ABC, Generic[AnyUnit]):
    """Finished units as files of a folder, named by what they were computed from."""

    @abstractmethod
    def key(self, unit: AnyUnit) -> tuple[Path, Mapping[str, Any]]:
        """Return the beginning of a unit's file name, and all that its result depends on."""

    def get(self, unit: AnyUnit) -> dict[str, Any] | None:
        """Return a finished unit's result, None where there is none that can be used."""
        try:
            result: dict[str, Any] = json.loads(self._path(unit).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return result

    def put(self, unit: AnyUnit, result: Mapping[str, Any]) -> None:
        """Keep a finished unit; a file is there whole or not at all."""
        write_text(self._path(unit), json.dumps(result))

    def _path(self, unit: AnyUnit) -> Path:
        path, basis = self.key(unit)
        digest = hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()[:12]
        return path.with_name(f"{path.name}-{digest}.json")


def kept_results(
    units: Sequence[AnyUnit], store: Store[AnyUnit] | None, advance: Callable[[int], None]
) -> dict[AnyUnit, dict[str, Any]]:
    """Return what a store has of these units, and say so for each."""
    found = {} if store is None else {unit: store.get(unit) for unit in units}
    kept = {unit: result for unit, result in found.items() if result is not None}
    advance(len(kept))
    return kept
