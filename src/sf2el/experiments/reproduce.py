"""The whole paper again: which runs its tables and figures need, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.datasets import Dataset
from sf2el.experiments import tables
from sf2el.experiments.protocol import Experiment, Unit, curve_rounds, merge
from sf2el.experiments.readings import Reading
from sf2el.experiments.runner import run_units
from sf2el.experiments.statistics import Paired
from sf2el.experiments.store import Store
from sf2el.experiments.tables import Cell, Measured

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
                    out.setdefault(cell["method"], {})[cell[axis]] = (spread["mean"], spread["std"])
        return out

    def statistics(self) -> dict[str, Any]:
        """Return paired differences and regrets of Table 1's runs, as plain data."""
        experiment = self.experiments["table1"]
        gains = tables.manifold_gains(experiment, self.measured, self.seeds)
        best = tables.against_best(experiment, self.measured, self.seeds)
        return {
            "manifold_gains": {d: {m: _interval(p) for m, p in row.items()} for d, row in gains.items()},
            "against_best": {d: {"baseline": name, **_interval(p)} for d, (name, p) in best.items()},
            "regrets": tables.regrets(experiment, self.measured, self.seeds),
        }

    def write(self, folder: Path) -> None:
        """Write every table as JSON, CSV and Markdown; Table 1 with its statistics."""
        for name, cells in self.cells.items():
            more = {"statistics": self.statistics()} if name == "table1" else {}
            title = self.experiments[name].title
            tables.write_table(folder, name, title, self.protocol(name), cells, **more)

    def _units(self, name: str, dataset: str) -> list[Unit]:
        return [unit for unit in self.experiments[name].units(self.seeds) if unit.dataset == dataset]


def experiments_for(target: str, datasets: Sequence[str]) -> dict[str, Experiment]:
    """Return the experiments a target needs, on those of their datasets that are asked for."""
    chosen = {}
    for name in TARGETS[target]:
        experiment = Experiment.declared(name)
        kept = tuple(dataset for dataset in experiment.datasets if dataset in datasets)
        if kept:
            chosen[name] = Experiment(**{**vars(experiment), "datasets": kept})
    return chosen


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
    return {key: None if value is None else round(value, 6) for key, value in ends.items()}
