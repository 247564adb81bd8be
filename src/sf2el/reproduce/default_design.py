"""What the study of the default model compares, as ``settings/default.toml`` declares it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from sf2el.reproduce.declared import settings_file
from sf2el.reproduce.default_baselines import RIVER, version_of
from sf2el.reproduce.default_few import FEW_LABELS, FewLabels
from sf2el.reproduce.drift import Drift

KIB = 1024
SLOW = (*RIVER, "refit")
"""Kinds that get fewer runs and label rates."""


@dataclass(frozen=True)
class Goals:
    """The project's goals for the model, shown beside what it reaches.

    Attributes
    ----------
    accuracy
        By label rate and dataset; reached where mean + 1 standard error reaches it.
    to_best, to_paper
        Least mean difference to the best other, and by dataset where it differs against the paper's methods.
    by_budget
        Least mean difference of a budget (bytes) to that of the comparisons.
    """

    accuracy: dict[float, dict[str, float]]
    to_best: float
    to_paper: dict[str, float]
    by_budget: dict[int, float]


@dataclass(frozen=True)
class Design:
    """The study: every dataset with every label rate, and what is run there."""

    title: str
    datasets: tuple[str, ...]
    large: tuple[str, ...]
    label_rates: tuple[float, ...]
    budgets: tuple[int, ...]
    budget: int
    overlap: int
    first_seed: int
    runs: dict[str, int]
    slow: dict[str, int]
    slow_rates: tuple[float, ...]
    reading: str
    buffer: int
    refit_growth: float
    fesl: dict[str, dict[str, Any]]
    fesl_by_rate: dict[str, list[dict[str, Any]]]
    goals: Goals
    few_labels: FewLabels
    drift: Drift

    @classmethod
    def declared(cls) -> Design:
        """Return what the settings file declares.

        >>> Design.declared().label_rates
        (1.0, 0.3, 0.1, 0.05, 0.02)
        """
        content = settings_file("default")
        differences = content["goals"]["differences"]
        drift: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in content["drift"].items()
        }
        return cls(
            title=content["title"],
            datasets=tuple(content["datasets"]),
            large=tuple(content["large"]),
            label_rates=tuple(content["label_rates"]),
            budgets=tuple(KIB * size for size in content["budgets_kib"]),
            budget=KIB * content["budget_kib"],
            overlap=content["overlap"],
            first_seed=content["first_seed"],
            runs=content["runs"],
            slow={size: content["slow"][size] for size in ("small", "large")},
            slow_rates=tuple(content["slow"]["label_rates"]),
            reading=content["paper"]["reading"],
            buffer=content["paper"]["buffer"],
            refit_growth=content["refit"]["growth"],
            fesl=content["fesl"],
            fesl_by_rate=content["fesl_by_rate"],
            goals=Goals(
                accuracy={row["label_rate"]: row["least"] for row in content["goals"]["accuracy"]},
                to_best=differences["to_best"],
                to_paper=differences["to_paper"],
                by_budget={KIB * int(size): least for size, least in differences["by_budget_kib"].items()},
            ),
            few_labels=FewLabels(**content["few_labels"]),
            drift=Drift(**drift),
        )

    def on(self, datasets: Collection[str]) -> Design:
        """Return the study on those of its datasets that are there."""
        return replace(self, datasets=tuple(name for name in self.datasets if name in datasets))

    def rates(self, kind: str) -> tuple[float, ...]:
        """Return the label rates at which a kind is run."""
        if kind == FEW_LABELS:
            return (self.few_labels.label_rate,)
        return self.slow_rates if kind in SLOW else self.label_rates

    def seeds(self, kind: str, dataset: str, runs: int | None = None) -> range:
        """Return the seeds of a kind on a dataset; ``runs`` asks for fewer than declared.

        >>> design = Design.declared()
        >>> design.seeds("default", "swiss"), design.seeds("refit", "swiss", 2)
        (range(200, 220), range(200, 201))
        """
        size = "large" if dataset in self.large else "small"
        if kind == FEW_LABELS:
            size = "few_labels"
        most = max(self.runs["small"], self.runs[size]) if runs is None else runs
        count = min(most, self.runs[size])
        if kind in SLOW:
            count = min(-(-most // 2), self.slow[size])
        return range(self.first_seed, self.first_seed + count)


def kinds_here() -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the kinds that can be run, and the packages that others would need with what they are for."""
    kinds, missing = ["default", "paper", "fesl"], {}
    if version_of("river"):
        kinds += [*RIVER, FEW_LABELS]
    else:
        missing["river"] = "logistic regression, forest and kNN from scratch, and the part on few labels"
    if version_of("scikit-learn"):
        kinds.append("refit")
    else:
        missing["scikit-learn"] = "the refit ceiling"
    return (*kinds, "drift"), missing
