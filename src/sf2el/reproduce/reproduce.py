"""The whole paper again: which runs its tables and figures need, and what comes of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.datasets import Dataset
from sf2el.reproduce import tables
from sf2el.reproduce.protocol import Experiment, Unit, curve_rounds, merge
from sf2el.reproduce.readings import Reading
from sf2el.reproduce.runner import run_units
from sf2el.reproduce.statistics import Paired
from sf2el.reproduce.store import Store
from sf2el.reproduce.tables import Cell, Measured
from sf2el.storage.atomic import write_text

Floats = npt.NDArray[np.float64]
Curves = dict[str, tuple[Floats, Floats]]

TARGETS: dict[str, tuple[str, ...]] = {
    "table1": ("table1",),
    "table2": ("table2",),
    "table3": ("table3",),
    "figures": ("table1", "table2", "table3", "label_rates"),
    "all": ("table1", "table2", "table3", "label_rates"),
}
"""What can be asked for, and the experiments it needs."""

RUNS = 10
"""How many runs the paper has."""

CURVED = ("NOGD+MR", "uROGD+MR", "fROGD+MR", "SF2EL")
"""The methods of the paper's risk figures: those that have a risk in every round."""


@dataclass(frozen=True)
class Reproduction:
    """Everything measured for one target under one reading."""

    reading: Reading
    seeds: tuple[int, ...]
    datasets: dict[str, Dataset]
    experiments: dict[str, Experiment]
    measured: Measured
    cells: dict[str, list[Cell]]

    def protocol(self, name: str) -> dict[str, Any]:
        """Return what a table's numbers rest on."""
        experiment = self.experiments[name]
        return {
            "title": experiment.title,
            "reading": self.reading.name,
            "settings": self.reading.file or "the package's own",
            "seeds": list(self.seeds),
            "overlap": experiment.overlap,
            "periods": "T1 = n // 2, T2 = n - T1",
            "look_aheads": [
                "features scaled to [0, 1] over the whole set",
                "kernel widths from the first 200 rows of each space",
            ],
            "switches": self.reading.switches,
            "hyperparameters": {
                dataset: asdict(self.reading.datasets[dataset]) for dataset in experiment.datasets
            },
            "sources": {dataset: self.datasets[dataset].source for dataset in experiment.datasets},
        }

    def risk_curves(self, dataset: str) -> tuple[npt.NDArray[np.int64], Curves]:
        """Return the rounds, and each method's average risk there: mean and deviation over runs."""
        units = self._units("table1", dataset)
        rows = self.datasets[dataset].rows
        curves = {}
        for method in CURVED:
            runs = np.array(self.measured.values(units, method, "risk"))
            curves[method] = (runs.mean(axis=0), _deviation(runs))
        return curve_rounds(rows - rows // 2), curves

    def accuracy_by(self, axis: str, dataset: str) -> dict[str, dict[float, tuple[float, float]]]:
        """Return accuracy by ``"buffer"`` or ``"label_rate"``: method, value, mean and deviation."""
        wanted = ("table2", "table3") if axis == "buffer" else ("label_rates",)
        out: dict[str, dict[float, tuple[float, float]]] = {}
        for name in wanted:
            for cell in self.cells.get(name, ()):
                if cell["dataset"] == dataset:
                    spread = cell["accuracy"]
                    out.setdefault(cell["method"], {})[cell[axis]] = (
                        spread["mean"],
                        spread["std"] or 0.0,
                    )
        return out

    def statistics(self) -> dict[str, Any]:
        """Return paired differences and regrets of Table 1's runs, as plain data."""
        experiment = self.experiments["table1"]
        best = tables.against_best(experiment, self.measured, self.seeds)
        return {
            "manifold_gains": self.manifold_gains("table1", "method"),
            "against_best": {d: {"baseline": name, **_interval(p)} for d, (name, p) in best.items()},
            "regrets": tables.regrets(experiment, self.measured, self.seeds),
        }

    def manifold_gains(self, name: str, by: str) -> dict[str, dict[str, dict[str, float | None]]]:
        """Return paired gains from the manifold term by dataset, then ``"method"`` or ``"label_rate"``."""
        found: dict[str, dict[str, dict[str, float | None]]] = {}
        gains = tables.manifold_gains(self.experiments[name], self.measured, self.seeds)
        for dataset, rate, method, difference in gains:
            key = method if by == "method" else f"{rate:g}"
            found.setdefault(dataset, {})[key] = _interval(difference)
        return found

    def content(self) -> dict[str, dict[str, Any]]:
        """Return every table as plain data, by name: what its JSON file holds."""
        found: dict[str, dict[str, Any]] = {
            name: {"protocol": self.protocol(name), "cells": cells} for name, cells in self.cells.items()
        }
        if "table1" in found:
            found["table1"]["statistics"] = self.statistics()
        if "label_rates" in found:
            gains = self.manifold_gains("label_rates", "label_rate")
            found["label_rates"]["statistics"] = {"manifold_gains": gains}
        return found

    def risk_rows(self) -> list[dict[str, Any]]:
        """Return the curves of the risk figures: a row for each dataset, method and round drawn."""
        found = []
        for dataset in self.experiments["table1"].datasets:
            rounds, curves = self.risk_curves(dataset)
            for method, (mean, std) in curves.items():
                spread = std if len(self.seeds) > 1 else [None] * len(rounds)
                for at, value, deviation in zip(rounds, mean, spread, strict=True):
                    row = {"dataset": dataset, "method": method, "round": int(at), "mean": float(value)}
                    found.append(row | {"std": None if deviation is None else float(deviation)})
        return found

    def write(self, folder: Path) -> None:
        """Write every table as JSON, CSV and Markdown, its single runs as CSV, and the curves of the risk."""
        for name, content in self.content().items():
            experiment = self.experiments[name]
            write_text(folder / f"{name}.json", tables.as_json(content))
            write_text(folder / f"{name}.csv", tables.as_csv(content["cells"]))
            write_text(folder / f"{name}.md", tables.as_markdown(experiment.title, content["cells"]))
            runs = tables.run_rows(experiment, self.measured, self.seeds)
            write_text(folder / f"{name}-runs.csv", tables.rows_as_csv(runs))
        if "table1" in self.experiments:
            write_text(folder / "figures" / "risk.csv", tables.rows_as_csv(self.risk_rows()))

    def _units(self, name: str, dataset: str) -> list[Unit]:
        return [unit for unit in self.experiments[name].units(self.seeds) if unit.dataset == dataset]


def datasets_of(target: str) -> list[str]:
    """Return the datasets of a target's experiments.

    >>> datasets_of("table3")
    ['htru_2', 'magic04']
    """
    every = (name for table in TARGETS[target] for name in Experiment.declared(table).datasets)
    return list(dict.fromkeys(every))


def experiments_for(target: str, datasets: Sequence[str]) -> dict[str, Experiment]:
    """Return the experiments a target needs, on those of their datasets that are asked for."""
    chosen = {}
    for name in TARGETS[target]:
        experiment = Experiment.declared(name)
        kept = tuple(dataset for dataset in experiment.datasets if dataset in datasets)
        if kept:
            chosen[name] = Experiment(**{**vars(experiment), "datasets": kept})
    return chosen


def folder_of(target: str, experiments: Mapping[str, Experiment], reading: Reading, runs: int) -> Path:
    """Return where a selection's results belong, below the folder of all results.

    The whole paper has its reading's folder to itself. Every smaller selection, and every other settings
    file, has one of its own below it, so that no command replaces what another measured.

    >>> from sf2el.reproduce.readings import reading
    >>> swiss = experiments_for("table1", ["swiss"])
    >>> folder_of("table1", swiss, reading("best"), 2).as_posix()
    'best/table1_swiss_2-runs'
    """
    chosen = {name for experiment in experiments.values() for name in experiment.datasets}
    parts = selection_parts(chosen, datasets_of(target), None if runs == RUNS else runs)
    if target != "all":
        parts.insert(0, target)
    if reading.file:
        values = {name: asdict(reading.datasets[name]) for name in sorted(chosen)}
        basis = json.dumps([reading.switches, values], sort_keys=True)
        parts.append(f"settings-{hashlib.sha256(basis.encode()).hexdigest()[:8]}")
    return Path(reading.name, "_".join(parts))


def selection_parts(chosen: Collection[str], declared: Collection[str], runs: int | None) -> list[str]:
    """Return what tells a selection from the whole: its datasets, and its runs unless as declared."""
    names = [name for name in declared if name in chosen]
    parts = [] if len(names) == len(declared) else ["+".join(names)]
    return [*parts, *([] if runs is None else [f"{runs}-run{'s' * (runs > 1)}"])]


def count_units(experiments: Mapping[str, Experiment], seeds: Sequence[int]) -> int:
    """Return how many runs the experiments need, shared ones counted once."""
    return len(_all_units(experiments, seeds))


def reproduce(
    experiments: Mapping[str, Experiment],
    datasets: Mapping[str, Dataset],
    reading: Reading,
    *,
    seeds: Sequence[int],
    jobs: int = 1,
    store: Store[Unit] | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Reproduction:
    """Run the experiments and gather their tables."""
    units = _all_units(experiments, seeds)
    measured = Measured(run_units(units, datasets, reading, jobs=jobs, store=store, advance=advance))
    cells = {
        name: tables.cells_of(name, experiment, measured, datasets, reading, seeds)
        for name, experiment in experiments.items()
    }
    return Reproduction(reading, tuple(seeds), dict(datasets), dict(experiments), measured, cells)


def _all_units(experiments: Mapping[str, Experiment], seeds: Sequence[int]) -> list[Unit]:
    return merge(unit for experiment in experiments.values() for unit in experiment.units(seeds))


def _deviation(runs: Floats) -> Floats:
    return np.asarray(runs.std(axis=0, ddof=1)) if len(runs) > 1 else np.zeros(runs.shape[1])


def _interval(difference: Paired) -> dict[str, float | None]:
    ends = {"mean": difference.mean, "low": difference.low, "high": difference.high}
    return {key: None if value is None else round(value, 6) + 0.0 for key, value in ends.items()}
