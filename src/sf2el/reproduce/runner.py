"""Runs units in any number of threads, keeps each result as a file, and goes on where it was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sf2el.datasets import Dataset
from sf2el.reproduce.code import code_digest
from sf2el.reproduce.protocol import Unit, run_unit
from sf2el.reproduce.readings import Reading
from sf2el.reproduce.store import Store, kept_results

Results = dict[Unit, dict[str, Any]]


class UnitStore(Store[Unit]):
    """Finished units of a reading on datasets."""

    def __init__(self, folder: Path, reading: Reading, datasets: Mapping[str, Dataset]) -> None:
        self._folder = folder / "units" / reading.name
        self._reading = reading
        self._digests = {name: dataset.digest() for name, dataset in datasets.items()}

    def key(self, unit: Unit) -> tuple[Path, dict[str, Any]]:
        """Return the beginning of a unit's file name, and the data, settings and code it depends on."""
        basis = {
            "unit": asdict(unit),
            "switches": self._reading.switches,
            "hyperparameters": asdict(self._reading.datasets[unit.dataset]),
            "data": self._digests[unit.dataset],
            "code": code_digest("protocol.py", "readings.py"),
        }
        return self._folder / f"{unit.dataset}-b{unit.buffer}-p{unit.label_rate:g}-s{unit.seed}", basis


def run_units(
    units: Sequence[Unit],
    datasets: Mapping[str, Dataset],
    reading: Reading,
    *,
    jobs: int = 1,
    store: Store[Unit] | None = None,
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
