"""The study of the default model: how it compares, whether it reaches the goals, and where it loses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.datasets import Dataset
from sf2el.paper.methods import METHODS
from sf2el.reproduce.default_baselines import REFIT, RIVER
from sf2el.reproduce.default_design import KIB, Design, kinds_here
from sf2el.reproduce.default_few import FEW_LABELS, SPACES
from sf2el.reproduce.default_runner import Results, run_units
from sf2el.reproduce.default_units import REFUSED, Outcome, Unit, units_of
from sf2el.reproduce.statistics import mean_std, paired
from sf2el.reproduce.store import Store

Row = dict[str, Any]

OURS = "default"
PAPER, FESL, FESL_BY_RATE, CEILING = "best of the paper's", "FESL-c", "FESL-c by rate", "refit ceiling"
OTHERS = (PAPER, FESL, FESL_BY_RATE, *RIVER, CEILING)
"""What the model is compared with; the first two are those of the goals."""
LEAST_RUNS = 3
"""Two runs may agree by chance, which leaves their interval no width: nothing is clear before three."""
PUBLISHED = {name: f"{name} (paper)" for name in METHODS}
"""The paper's methods as they are called here, where SF2EL alone could be taken for the model."""
BESTS = {PAPER: tuple(PUBLISHED.values()), CEILING: REFIT}
"""Best of several, in hindsight, by mean accuracy on a dataset at a label rate."""


@dataclass(frozen=True)
class Study:
    """Everything measured."""

    design: Design
    datasets: dict[str, Dataset]
    results: Results
    missing: dict[str, str]

    @cached_property
    def _outcomes(self) -> dict[tuple[str, float, str], dict[int, Outcome]]:
        """Outcomes by dataset, label rate and method, by seed; the model's are named by their budget."""
        found: dict[tuple[str, float, str], dict[int, Outcome]] = {}
        for unit, outcomes in self.results.items():
            if unit.kind in ("drift", FEW_LABELS):
                continue
            for name, outcome in outcomes.items():
                method = f"{OURS} {name}" if unit.kind == OURS else PUBLISHED.get(name, name)
                if REFUSED not in outcome:
                    found.setdefault((unit.dataset, unit.label_rate, method), {})[unit.seed] = outcome
        return found

    def values(
        self, dataset: str, rate: float, method: str, *, budget: int | None = None, what: str = "accuracy"
    ) -> dict[int, float]:
        """Return what a method reached, by seed; {} where it was not run or its budget was too small.

        The model is taken at ``budget``, that of the comparisons unless given; the best of several methods is
        the one of best mean accuracy.
        """
        if method == OURS:
            method = f"{OURS} {(budget or self.design.budget) // KIB}"
        method = self.best(dataset, rate, BESTS[method]) if method in BESTS else method
        return {seed: one[what] for seed, one in self._outcomes.get((dataset, rate, method), {}).items()}

    def best(self, dataset: str, rate: float, methods: Sequence[str]) -> str:
        """Return which of these methods has the best mean accuracy; the first where none was run."""
        means = {name: _mean(self.values(dataset, rate, name)) for name in methods}
        return max(methods, key=lambda name: means[name])

    # -- tables

    def cells(self) -> list[Row]:
        """Return mean and deviation of everything, a row for each dataset, label rate, method and budget."""
        ours = [(OURS, budget) for budget in self.design.budgets]
        others = [*PUBLISHED.values(), FESL, FESL_BY_RATE, *RIVER, *REFIT]
        rows = []
        for dataset in self.design.datasets:
            for rate in self.design.label_rates:
                for method, budget in [*ours, *((name, None) for name in others)]:
                    accuracy, balanced = (
                        self.values(dataset, rate, method, budget=budget, what=what)
                        for what in ("accuracy", "balanced_accuracy")
                    )
                    if not accuracy:
                        continue
                    row: Row = {"dataset": dataset, "label_rate": rate, "method": method, "budget": budget}
                    row |= {"runs": len(accuracy), "seeds": {s: round(a, 6) for s, a in accuracy.items()}}
                    row |= {"accuracy": mean_std([*accuracy.values()])}
                    row["balanced_accuracy"] = mean_std([*balanced.values()])
                    row["majority"] = round(self.datasets[dataset].majority, 6)
                    if method == OURS:
                        used = self.values(dataset, rate, method, budget=budget, what="bytes")
                        row["bytes"] = int(max(used.values()))
                    rows.append(row)
        return rows

    def refused(self) -> list[Row]:
        """Return the budgets that were too small, with what the model said."""
        found = {
            (unit.dataset, name): outcome[REFUSED]
            for unit, outcomes in self.results.items()
            for name, outcome in outcomes.items()
            if REFUSED in outcome
        }
        return [
            {"dataset": dataset, "budget": KIB * int(name), "said": said}
            for (dataset, name), said in found.items()
        ]

    def goals(self) -> list[Row]:
        """Return the goals for the accuracy beside what is reached."""
        rows = []
        for rate, goals in self.design.goals.accuracy.items():
            for dataset in self.design.datasets:
                values = [*self.values(dataset, rate, OURS).values()]
                if not values or dataset not in goals:
                    continue
                mean, error = float(np.mean(values)), _standard_error(values)
                row: Row = {"dataset": dataset, "label_rate": rate, "asked": goals[dataset]}
                row |= {"mean": round(mean, 6), "standard_error": _round(error), "runs": len(values)}
                rows.append(row | {"holds": mean + (error or 0.0) >= goals[dataset]})
        return rows

    def differences(self) -> list[Row]:
        """Return the model's paired differences to every other, on the seeds that both have."""
        return [
            row
            for dataset in self.design.datasets
            for rate in self.design.label_rates
            for other in OTHERS
            if (row := self._difference(dataset, rate, other))
        ]

    def _difference(self, dataset: str, rate: float, other: str) -> Row | None:
        ours, theirs = self.values(dataset, rate, OURS), self.values(dataset, rate, other)
        seeds = sorted(ours.keys() & theirs.keys())
        if not seeds:
            return None
        result = paired([ours[seed] for seed in seeds], [theirs[seed] for seed in seeds])
        name = self.best(dataset, rate, BESTS[other]) if other in BESTS else other
        row: Row = {"dataset": dataset, "label_rate": rate, "other": other, "method": name}
        row |= {"runs": len(seeds), "mean": _round(result.mean)}
        row |= {
            "low": _round(result.low),
            "high": _round(result.high),
            "clear": len(seeds) >= LEAST_RUNS and result.excludes_zero,
        }
        limit = self._limit(dataset, other)
        if limit is not None:
            row |= {"limit": limit, "holds": row["mean"] >= limit}
        return row

    def _limit(self, dataset: str, other: str) -> float | None:
        goals = self.design.goals
        if other == PAPER:
            return goals.to_paper.get(dataset, goals.to_best)
        return goals.to_best if other == FESL else None

    def against_best(self) -> list[Row]:
        """Return, by dataset and label rate, the difference to the better of the paper's best and FESL-c.

        The goals are for the differences to each of the two, so that each may have its own limit.
        """
        found: dict[tuple[str, float], list[Row]] = {}
        for row in self.differences():
            if row["other"] in (PAPER, FESL):
                found.setdefault((row["dataset"], row["label_rate"]), []).append(row)
        return [
            min(rows, key=lambda row: row["mean"]) | {"holds": all(row["holds"] for row in rows)}
            for rows in found.values()
        ]

    def losses(self) -> list[Row]:
        """Return where another is ahead on the mean, the largest distance first."""
        behind = [row for row in self.differences() if row["mean"] < 0.0]
        return sorted(behind, key=lambda row: row["mean"])

    def budgets(self) -> list[Row]:
        """Return each budget's difference to that of the comparisons, mean over datasets and label rates."""
        rows = []
        for budget in self.design.budgets:
            by_dataset: dict[str, float] = {}
            for dataset in self.design.datasets:
                gaps = [
                    paired([ours[seed] for seed in ours], [full[seed] for seed in ours]).mean
                    for rate in self.design.label_rates
                    if (ours := self.values(dataset, rate, OURS, budget=budget))
                    and (full := self.values(dataset, rate, OURS))
                ]
                if gaps:
                    by_dataset[dataset] = round(float(np.mean(gaps)), 6)
            if not by_dataset:
                continue
            mean = round(float(np.mean([*by_dataset.values()])), 6)
            row: Row = {"budget": budget, "mean": mean, "by_dataset": by_dataset}
            limit = self.design.goals.by_budget.get(budget)
            rows.append(row if limit is None else row | {"limit": limit, "holds": mean >= limit})
        return rows

    def drift(self) -> list[Row]:
        """Return accuracy by stream, label rate and rate of forgetting, and the gain over not forgetting."""
        found: dict[tuple[str, float, str], dict[int, float]] = {}
        for unit, outcomes in self.results.items():
            if unit.kind == "drift":
                for name, outcome in outcomes.items():
                    by_seed = found.setdefault((unit.dataset, unit.label_rate, name), {})
                    by_seed[unit.seed] = outcome["accuracy"]
        rows = []
        design = self.design.drift
        for stream in design.streams:
            for rate in design.label_rates:
                for forget in design.forget:
                    values = found.get((stream, rate, f"{forget:g}"))
                    if not values:
                        continue
                    never = found[stream, rate, f"{design.forget[0]:g}"]
                    gain = paired([*values.values()], [never[seed] for seed in values])
                    row: Row = {"stream": stream, "label_rate": rate, "forget": forget, "runs": len(values)}
                    row["accuracy"] = mean_std([*values.values()])
                    ends = {"mean": gain.mean, "low": gain.low, "high": gain.high}
                    rows.append(row | {"gain": {key: _round(end) for key, end in ends.items()}})
        return rows

    def few_labels(self) -> dict[str, Any]:
        """Return the model beside logistic regression after a few labels: by problem, and their mean.

        The mean is taken run by run, as the two spaces of a dataset have their rows and labels in common.
        """
        runs = {unit: outcomes for unit, outcomes in self.results.items() if unit.kind == FEW_LABELS}
        problems, pairs = [], []
        for dataset in self.design.datasets:
            for space in SPACES:
                own = [outcomes[space] for unit, outcomes in runs.items() if unit.dataset == dataset]
                if own:
                    pairs.append([(one["accuracy"], one["logistic"]) for one in own])
                    problems.append({"dataset": dataset, "space": space} | _beside(pairs[-1]))
        return {"problems": problems, "mean": _beside(np.mean(pairs, axis=0)) if pairs else None}

    # -- all of it

    def protocol(self) -> dict[str, Any]:
        """Return what the numbers rest on."""
        design = self.design
        seeds: dict[str, dict[str, list[int]]] = {}
        for unit in self.results:
            own = seeds.setdefault(unit.kind, {}).setdefault(unit.dataset, [])
            if unit.seed not in own:
                own.append(unit.seed)
        return {
            "title": design.title,
            "seeds": {kind: {name: sorted(own) for name, own in by.items()} for kind, by in seeds.items()},
            "label_rates": design.label_rates,
            "slow_label_rates": design.slow_rates,
            "budget": design.budget,
            "overlap": design.overlap,
            "periods": "T1 = n // 2, T2 = n - T1; accuracy over all T2 rounds with hindsight labels",
            "look_aheads": {
                OURS: "none: features are standardised online, which undoes the files' scaling",
                "the paper's methods": "features scaled to [0, 1] over the whole set; kernel widths from the "
                "first 200 rows of each space",
            },
            "paper": {"reading": design.reading, "buffer": design.buffer},
            "fesl": {name: design.fesl[name] for name in design.datasets},
            "fesl_by_rate": {name: design.fesl_by_rate[name] for name in design.datasets},
            "refit_growth": design.refit_growth,
            "few_labels": asdict(design.few_labels),
            "drift": asdict(design.drift),
            "rehearsal": any(
                len(own) < len(design.seeds(kind, name))
                for kind, by_dataset in seeds.items()
                for name, own in by_dataset.items()
            ),
            "missing": self.missing,
            "sources": {name: dataset.source for name, dataset in self.datasets.items()},
        }

    def content(self) -> dict[str, Any]:
        """Return everything as plain data: what is written as JSON."""
        return {
            "protocol": self.protocol(),
            "cells": self.cells(),
            "refused": self.refused(),
            "targets": self.goals(),  # the name that files have had from the start, as has "asked"
            "against_best": self.against_best(),
            "differences": self.differences(),
            "losses": self.losses(),
            "budgets": self.budgets(),
            "few_labels": self.few_labels(),
            "drift": self.drift(),
        }


def run_study(
    design: Design,
    datasets: Mapping[str, Dataset],
    *,
    runs: int | None = None,
    jobs: int = 1,
    store: Store[Unit] | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Study:
    """Run the study; what needs a package that is not here is left out."""
    kinds, missing = kinds_here()
    units = units_of(design, runs, kinds)
    results = run_units(units, datasets, design, jobs=jobs, store=store, advance=advance)
    return Study(design, {name: datasets[name] for name in design.datasets}, results, missing)


def count_units(design: Design, runs: int | None) -> int:
    """Return how many runs the study needs here."""
    return len(units_of(design, runs, kinds_here()[0]))


def _mean(values: Mapping[int, float]) -> float:
    return sum(values.values()) / len(values) if values else -1.0


def _standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean; None for a single run, which has none."""
    return float(np.std(values, ddof=1)) / sqrt(len(values)) if len(values) > 1 else None


def _beside(pairs: npt.ArrayLike) -> Row:
    """Return the means of the model and of logistic regression over runs, and their paired difference."""
    ours, theirs = np.asarray(pairs, dtype=float).T
    gap, error = paired(ours, theirs), _standard_error(ours - theirs)
    clear = len(ours) >= LEAST_RUNS and error is not None and abs(gap.mean) > 2.0 * error
    row: Row = {"runs": len(ours), "accuracy": _round(ours.mean()), "logistic": _round(theirs.mean())}
    row |= {"mean": _round(gap.mean), "standard_error": _round(error)}
    row |= {"low": _round(gap.low), "high": _round(gap.high)}
    return row | {"behind": clear and gap.mean < 0.0, "ahead": clear and gap.mean > 0.0}


def _round(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)
