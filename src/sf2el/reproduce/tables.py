"""Tables of an experiment: cells as data, and as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sf2el.datasets import Dataset
from sf2el.reproduce.declared import settings_file
from sf2el.reproduce.protocol import Experiment, Unit
from sf2el.reproduce.readings import Reading
from sf2el.reproduce.runner import Results
from sf2el.reproduce.statistics import Paired, mean_std, paired, signed_text, spread_text

Cell = dict[str, Any]

PAIRS = (("NOGD", "NOGD+MR"), ("uROGD", "uROGD+MR"), ("fROGD", "fROGD+MR"), ("FESL-Variant", "SF2EL"))
"""Each method without the manifold term, and with it."""
RUN_VALUES = ("accuracy", "balanced_accuracy", "zero_scores")
"""What is written of every single run."""


class Measured:
    """Results by dataset, buffer size, label rate and method, one value a run."""

    def __init__(self, results: Results) -> None:
        self._by_key = {unit.key: result for unit, result in results.items()}

    def values(self, units: Sequence[Unit], method: str, what: str) -> list[Any]:
        """Return what a method measured in each of these units."""
        return [self._by_key[unit.key][method][what] for unit in units]


def groups(experiment: Experiment, seeds: Sequence[int]) -> dict[tuple[str, int, float], list[Unit]]:
    """Return the runs of an experiment by dataset, buffer size and label rate."""
    grouped: dict[tuple[str, int, float], list[Unit]] = {}
    for unit in experiment.units(seeds):
        grouped.setdefault((unit.dataset, unit.buffer, unit.label_rate), []).append(unit)
    return grouped


def published(table: str, dataset: str, method: str, buffer: int) -> dict[str, float] | None:
    """Return the paper's number for a cell, None where it prints none.

    >>> published("table1", "swiss", "SF2EL", 60)
    {'mean': 0.939, 'std': 0.02}
    >>> published("table2", "swiss", "SF2EL", 10)
    {'mean': 0.29, 'std': 0.07}
    """
    paper = settings_file("paper")
    if table == "table1":
        block, key = paper["table1"], method
    elif table in ("table2", "table3"):
        block, key = paper["by_buffer"], str(buffer)
    else:
        return None
    place = block["datasets"].index(dataset)
    return {what: block[what][key][place] for what in ("mean", "std")}


def cells_of(
    name: str,
    experiment: Experiment,
    measured: Measured,
    datasets: Mapping[str, Dataset],
    reading: Reading,
    seeds: Sequence[int],
) -> list[Cell]:
    """Return a table's cells: ours beside the paper's."""
    cells = []
    for (dataset, buffer, rate), units in groups(experiment, seeds).items():
        for method in experiment.methods:
            cells.append(
                {
                    "dataset": dataset,
                    "method": method,
                    "reading": reading.name,
                    "buffer": buffer,
                    "label_rate": rate,
                    "runs": len(seeds),
                    "accuracy": mean_std(measured.values(units, method, "accuracy")),
                    "balanced_accuracy": mean_std(measured.values(units, method, "balanced_accuracy")),
                    "zero_scores": mean_std(measured.values(units, method, "zero_scores"))["mean"],
                    "majority": round(datasets[dataset].majority, 6),
                    "simulated": datasets[dataset].simulated,
                    "paper": published(name, dataset, method, buffer),
                }
            )
    return cells


def run_rows(experiment: Experiment, measured: Measured, seeds: Sequence[int]) -> list[Cell]:
    """Return what every method reached in every single run, so that any two can be compared in pairs."""
    return [
        {
            "dataset": unit.dataset,
            "method": method,
            "buffer": unit.buffer,
            "label_rate": unit.label_rate,
            "seed": unit.seed,
            **{what: measured.values([unit], method, what)[0] for what in RUN_VALUES},
        }
        for unit in experiment.units(seeds)
        for method in experiment.methods
    ]


def manifold_gains(
    experiment: Experiment, measured: Measured, seeds: Sequence[int]
) -> list[tuple[str, float, str, Paired]]:
    """Return the paired gains in accuracy from the manifold term: dataset, label rate, method, difference."""
    return [
        (
            dataset,
            rate,
            with_term,
            paired(
                measured.values(units, with_term, "accuracy"), measured.values(units, without, "accuracy")
            ),
        )
        for (dataset, _, rate), units in groups(experiment, seeds).items()
        for without, with_term in PAIRS
        if {without, with_term} <= set(experiment.methods)
    ]


def against_best(
    experiment: Experiment, measured: Measured, seeds: Sequence[int]
) -> dict[str, tuple[str, Paired]]:
    """Return, by dataset, the best baseline and SF2EL's paired difference to it."""
    out = {}
    for (dataset, _, _), units in groups(experiment, seeds).items():
        accuracy = {method: measured.values(units, method, "accuracy") for method in experiment.methods}
        best = max(
            (method for method in experiment.methods if method != "SF2EL"),
            key=lambda method: sum(accuracy[method]),
        )
        out[dataset] = (best, paired(accuracy["SF2EL"], accuracy[best]))
    return out


def regrets(experiment: Experiment, measured: Measured, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return SF2EL's regret, certificate and bound in every run."""
    return [
        {"dataset": dataset, "seed": unit.seed, **{key: round(value, 6) for key, value in regret.items()}}
        for (dataset, _, _), units in groups(experiment, seeds).items()
        for unit, regret in zip(units, measured.values(units, "SF2EL", "regret"), strict=True)
    ]


def as_json(content: Mapping[str, Any]) -> str:
    """Return plain data as JSON; the same results give the same bytes."""
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def as_csv(cells: Sequence[Cell]) -> str:
    """Return a table as CSV, a row a cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    plain = ("dataset", "method", "reading", "buffer", "label_rate", "runs")
    pairs = ("accuracy", "balanced_accuracy", "paper")
    numbers = [f"{pair}_{part}" for pair in pairs for part in ("mean", "std")]
    writer.writerow([*plain, *numbers, "zero_scores", "majority", "simulated"])
    for cell in cells:
        values = [(cell[pair] or {}).get(part) for pair in pairs for part in ("mean", "std")]
        rest = (cell["zero_scores"], cell["majority"], cell["simulated"])
        writer.writerow([*(cell[key] for key in plain), *values, *rest])
    return buffer.getvalue()


def as_markdown(title: str, cells: Sequence[Cell]) -> str:
    """Return a table as Markdown: a row a cell, ours beside the paper's and the majority class."""
    head = "| dataset | method | buffer | label rate | accuracy | balanced | paper | difference | majority |"
    lines = [f"# {title}", "", head, "|" + " --- |" * 9]
    for cell in cells:
        ours, theirs = cell["accuracy"], cell["paper"]
        name = cell["dataset"] + (" (simulated)" if cell["simulated"] else "")
        row = [name, cell["method"], str(cell["buffer"]), f"{cell['label_rate']:g}"]
        row += [spread_text(**ours), f"{cell['balanced_accuracy']['mean']:.3f}"]
        row += [spread_text(**theirs) if theirs else "", difference_text(cell)]
        lines.append("| " + " | ".join([*row, f"{cell['majority']:.3f}"]) + " |")
    return "\n".join(lines) + "\n"


def difference_text(cell: Mapping[str, Any]) -> str:
    """Return our mean minus the paper's, to read; nothing where its data are simulated here."""
    if cell["paper"] is None or cell["simulated"]:
        return ""
    return signed_text(cell["accuracy"]["mean"] - cell["paper"]["mean"], 3)


def rows_as_csv(rows: Sequence[Cell]) -> str:
    """Return rows that all have the same keys as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
