"""Runs units in any number of threads, keeps each result as a file, and goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sf2el.atomic import write_text
from sf2el.datasets import Dataset
from sf2el.experiments.protocol import Unit, run_unit
from sf2el.experiments.readings import Reading

Results = dict[Unit, dict[str, Any]]


class Store:
    """Finished units as files of a folder, named by what they were computed from."""

    def __init__(self, folder: Path, reading: Reading, datasets: Mapping[str, Dataset]) -> None:
        self._folder = folder / "units" / reading.name
        self._reading = reading
        self._digests = {name: dataset.digest() for name, dataset in datasets.items()}

    def get(self, unit: Unit) -> dict[str, Any] | None:
        """Return a finished unit's result, None where there is none that can be used."""
        try:
            result: dict[str, Any] = json.loads(self._path(unit).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return result

    def put(self, unit: Unit, result: dict[str, Any]) -> None:
        """Keep a finished unit; a file is there whole or not at all."""
        write_text(self._path(unit), json.dumps(result))

    def _path(self, unit: Unit) -> Path:
        basis = {
            "unit": asdict(unit),
            "switches": self._reading.switches,
            "hyperparameters": asdict(self._reading.datasets[unit.dataset]),
            "data": self._digests[unit.dataset],
            "version": version("sf2el"),
        }
        digest = hashlib.sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()[:12]
        name = f"{unit.dataset}-b{unit.buffer}-p{unit.label_rate:g}-s{unit.seed}-{digest}.json"
        return self._folder / name


def kept_results(units: Sequence[Any], store: Any, advance: Callable[[int], None]) -> dict[Any, Any]:
    """Return what a store has of these units, and say so for each."""
    found = {} if store is None else {unit: store.get(unit) for unit in units}
    kept = {unit: result for unit, result in found.items() if result is not None}
    advance(len(kept))
    return kept


def run_units(
    units: Sequence[Unit],
    datasets: Mapping[str, Dataset],
    reading: Reading,
    *,
    jobs: int = 1,
    store: Store | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Results:
    """Run units in ``jobs`` threads; the results do not depend on how many there are.

    Units that ``store`` has are not computed again.
    """
    results: Results = kept_results(units, store, advance)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting = {
            pool.submit(run_unit, unit, datasets[unit.dataset], reading): unit
            for unit in units
            if unit not in results
        }
        try:
            for future in as_completed(waiting):
                unit = waiting[future]
                results[unit] = future.result()
                if store:
                    store.put(unit, results[unit])
                advance(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {unit: results[unit] for unit in units}
