"""Runs the units of the study in processes, keeps each as a file, and goes on where it was interrupted.

Processes, not threads: river's learners and FESL-c are Python, which threads would run one after the other.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import Any

from sf2el.datasets import Dataset
from sf2el.reproduce.code import code_digest
from sf2el.reproduce.declared import settings_file
from sf2el.reproduce.default_baselines import version_of
from sf2el.reproduce.default_design import SLOW, Design
from sf2el.reproduce.default_few import FEW_LABELS
from sf2el.reproduce.default_units import Outcome, Unit, run_unit
from sf2el.reproduce.store import Store, kept_results

Results = dict[Unit, dict[str, Outcome]]


class UnitStore(Store[Unit]):
    """Finished units of a design on datasets."""

    def __init__(self, folder: Path, design: Design, datasets: Mapping[str, Dataset]) -> None:
        self._folder = folder
        self._design = design
        self._digests = {name: dataset.digest() for name, dataset in datasets.items()}

    def key(self, unit: Unit) -> tuple[Path, dict[str, Any]]:
        """Return the beginning of a unit's file name, and the data, settings and code it depends on."""
        basis = {
            "unit": asdict(unit),
            "settings": _settings(unit, self._design),
            "overlap": self._design.overlap,
            "data": self._digests.get(unit.dataset, ""),
            "code": _code(unit.kind),
        }
        name = f"{unit.dataset}-p{unit.label_rate:g}-s{unit.seed}"
        return self._folder / unit.kind.replace(" ", "-") / name, basis


def _settings(unit: Unit, design: Design) -> Any:
    """Return the declared values on which a unit depends."""
    if unit.kind == "default":
        return design.budgets
    if unit.kind == "paper":
        best = settings_file(design.reading)
        return [best["switches"], best["datasets"][unit.dataset], design.buffer]
    if unit.kind == "fesl":
        rate = design.label_rates.index(unit.label_rate)
        return [design.fesl[unit.dataset], design.fesl_by_rate[unit.dataset][rate]]
    if unit.kind == "refit":
        return design.refit_growth
    if unit.kind == "drift":
        return [asdict(design.drift), design.budget]
    if unit.kind == FEW_LABELS:
        return [asdict(design.few_labels), design.budget]
    return None


def _code(kind: str) -> str:
    """Return a digest of the code that a kind runs, with the version of the package that it calls."""
    own = {"paper": "readings.py", "drift": "drift.py", "fesl": "fesl.py", FEW_LABELS: "default_few.py"}
    files = ["default_units.py", "protocol.py", *([own[kind]] if kind in own else [])]
    packages: tuple[str, ...] = ()
    if kind in (*SLOW, FEW_LABELS):
        files.append("default_baselines.py")
        packages = (version_of("scikit-learn" if kind == "refit" else "river") or "",)
    model = kind in ("default", "paper", "drift", FEW_LABELS)
    return code_digest(*files, model=model, packages=packages)


def run_units(
    units: Sequence[Unit],
    datasets: Mapping[str, Dataset],
    design: Design,
    *,
    jobs: int = 1,
    store: Store[Unit] | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Results:
    """Run units in ``jobs`` processes (1: in this one); the results do not depend on how many there are.

    Units that ``store`` has are not computed again.
    """
    results: Results = kept_results(units, store, advance)

    def done(unit: Unit, outcomes: dict[str, Outcome]) -> None:
        results[unit] = outcomes
        if store:
            store.put(unit, outcomes)
        advance(1)

    waiting = [unit for unit in units if unit not in results]
    if jobs == 1 or len(waiting) <= 1:
        for unit in waiting:
            done(unit, run_unit(unit, datasets.get(unit.dataset), design))
    else:
        _run_in_processes(waiting, datasets, design, min(jobs, len(waiting)), done)
    return {unit: results[unit] for unit in sorted(units)}


def _run_in_processes(
    units: Sequence[Unit],
    datasets: Mapping[str, Dataset],
    design: Design,
    jobs: int,
    done: Callable[[Unit, dict[str, Outcome]], None],
) -> None:
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (dict(datasets), design))
    try:
        futures = {pool.submit(_work, unit): unit for unit in units}
        for future in as_completed(futures):
            done(futures[future], future.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_given: tuple[dict[str, Dataset], Design]
"""What a worker process runs units on; set once, when it begins."""


def _begin(datasets: dict[str, Dataset], design: Design) -> None:
    global _given
    _given = (datasets, design)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when the command was killed: a pool alone would leave it waiting for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        sys.stderr.flush()
        os._exit(1)


def _work(unit: Unit) -> dict[str, Outcome]:
    datasets, design = _given
    return run_unit(unit, datasets.get(unit.dataset), design)
