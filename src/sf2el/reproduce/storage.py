"""What a byte is worth: accuracy by the bytes that a model may keep, and under a budget that changes.

Two measurements. In the first the paper's learner is kept in several ways (with its matrices or without, in
float64 or float32, with a plain or a stratified reservoir), each with as many rows as a total budget allows,
beside what the product's own planner makes of that budget. In the second the public model runs through one
stream while its budget is changed.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sf2el.datasets import Dataset
from sf2el.reproduce.changing_budget import Changing
from sf2el.reproduce.readings import Reading
from sf2el.reproduce.statistics import spread_text
from sf2el.reproduce.storage_design import KIB, PLANNER, Design
from sf2el.reproduce.tables import as_json
from sf2el.storage.atomic import write_text


@dataclass(frozen=True)
class Storage:
    """Everything measured."""

    design: Design
    reading: Reading
    datasets: dict[str, Dataset]
    seeds: dict[str, list[int]]
    cells: list[dict[str, Any]]
    changing: Changing

    def curve(self, dataset: str, variant: str) -> dict[int, float]:
        """Return accuracy by budget (by bytes for the paper's own settings)."""
        return {
            cell["budget"] or cell["bytes"]: cell["accuracy"]["mean"]
            for cell in self.cells
            if (cell["dataset"], cell["variant"]) == (dataset, variant)
        }

    def falls(self) -> list[dict[str, Any]]:
        """Return where the planner's accuracy falls from one budget to the next by more than tolerated."""
        return [fall for fall in self.steps() if fall["change"] < -self.design.tolerance]

    def steps(self) -> list[dict[str, Any]]:
        """Return how the planner's accuracy changes from each budget to the next."""
        return [
            {"dataset": dataset, "from": low[0], "to": high[0], "change": round(high[1] - low[1], 6)}
            for dataset in self.datasets
            for low, high in pairwise(self.curve(dataset, PLANNER).items())
        ]

    def protocol(self) -> dict[str, Any]:
        """Return what the numbers rest on."""
        design = self.design
        return {
            "title": design.title,
            "reading": self.reading.name,
            "seeds": self.seeds,
            "label_rate": design.label_rate,
            "overlap": design.overlap,
            "bytes": "both learners, recovery map and hedge weights; equal bytes for both learners",
            "most_rows": design.most_rows,
            "variants": {name: asdict(kept) for name, kept in design.variants.items()},
            "look_aheads": [
                "features scaled to [0, 1] over the whole set",
                "kernel widths from the first 200 rows of each space",
            ],
            "sources": {name: dataset.source for name, dataset in self.datasets.items()},
        }

    def content(self) -> dict[str, Any]:
        """Return everything as plain data: what is written as JSON."""
        return {
            "protocol": self.protocol(),
            "cells": self.cells,
            "falls": self.falls(),
            "changing": asdict(self.changing),
        }

    def write(self, folder: Path) -> None:
        """Write ``storage`` as JSON, CSV and Markdown."""
        write_text(folder / "storage.json", as_json(self.content()))
        write_text(folder / "storage.csv", self._csv())
        write_text(folder / "storage.md", self._markdown())

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        plain = ("dataset", "variant", "form", "budget", "rows_old", "rows_new", "bytes", "runs")
        writer.writerow([*plain, "accuracy_mean", "accuracy_std", "majority"])
        for cell in self.cells:
            numbers = [cell["accuracy"][part] for part in ("mean", "std")]
            writer.writerow([*(cell[key] for key in plain), *numbers, cell["majority"]])
        return out.getvalue()

    def _markdown(self) -> str:
        lines = [f"# {self.design.title}", "", self.verdict(), ""]
        lines += ["| dataset | variant | budget | rows old / new | bytes | accuracy |", "|" + " --- |" * 6]
        for cell in self.cells:
            name = cell["dataset"] + (" (simulated)" if cell["simulated"] else "")
            variant = f"{cell['variant']}: {cell['form']}" if cell["form"] else cell["variant"]
            budget = f"{cell['budget'] // KIB} KiB" if cell["budget"] else ""
            rows = f"{cell['rows_old']} / {cell['rows_new']}"
            row = [name, variant, budget, rows, str(cell["bytes"]), spread_text(**cell["accuracy"])]
            lines.append("| " + " | ".join(row) + " |")
        lines += ["", f"# A budget that changes: {self.changing.dataset}", ""]
        lines += ["| budget | rounds | accuracy | always the largest | most bytes |", "|" + " --- |" * 5]
        for part in self.changing.parts:
            numbers = f"{part['accuracy']:.3f} | {part['steady']:.3f} | {part['most_bytes']}"
            lines.append(
                f"| {part['budget'] // KIB} KiB | {part['start'] + 1} to {part['stop']} | {numbers} |"
            )
        return "\n".join(lines) + "\n"

    def verdict(self) -> str:
        """Return in words whether more bytes were ever worse under the planner."""
        falls = self.falls()
        if not falls:
            return (
                "On no dataset does the planner's accuracy fall by more than "
                f"{self.design.tolerance:g} from one budget to the next."
            )
        places = "; ".join(
            f"{fall['dataset']} from {fall['from'] // KIB} to {fall['to'] // KIB} KiB ({fall['change']:+.4f})"
            for fall in falls
        )
        return f"The planner's accuracy falls by more than {self.design.tolerance:g} here: {places}."
