"""The first labels of a stream: the default model beside logistic regression, both from scratch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sf2el.classifier import SF2EL
from sf2el.datasets import Dataset
from sf2el.reproduce.default_baselines import LOGISTIC, river_says
from sf2el.streams import label_mask

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

FEW_LABELS = "few labels"
SPACES = ("old", "new")
"""Each of a dataset's two spaces is a stream of its own here."""


@dataclass(frozen=True)
class FewLabels:
    """The experiment, as its settings file declares it.

    Attributes
    ----------
    rows
        The most rows of a run.
    label_rate
        Probability that a row is labelled.
    least, most
        Rows are scored before which so many labels were seen; a run ends with the label after them.
    """

    rows: int
    label_rate: float
    least: int
    most: int

    def draw(self, rows: int, seed: int) -> tuple[npt.NDArray[np.int64], Mask]:
        """Return which of a dataset's rows a run has, in their order, and which of these are labelled."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(rows)[: self.rows]
        labelled = label_mask(len(order), self.label_rate, rng)
        length = int(np.sum(_seen_before(labelled) <= self.most))
        return order[:length], labelled[:length]

    def scored(self, labelled: Mask) -> Mask:
        """Return which rows are scored.

        >>> few = FewLabels(rows=8, label_rate=0.5, least=1, most=2)
        >>> few.scored(np.array([0, 1, 0, 1, 0, 1, 0, 1], dtype=bool)).astype(int)
        array([0, 0, 1, 1, 1, 1, 0, 0])
        """
        seen = _seen_before(labelled)
        return (self.least <= seen) & (seen <= self.most)


def _seen_before(labelled: Mask) -> npt.NDArray[np.int64]:
    return np.asarray(np.cumsum(labelled) - labelled, dtype=np.int64)


def run_few_labels(
    few: FewLabels, dataset: Dataset, *, budget: int, seed: int
) -> dict[str, dict[str, float]]:
    """Return the accuracy of both over the scored rows, by space; order and labels are the same in each."""
    order, labelled = few.draw(dataset.rows, seed)
    y, scored = dataset.y[order], few.scored(labelled)
    found = {}
    for name, space in zip(SPACES, (dataset.old, dataset.new), strict=True):
        rows = space[order]
        said = {
            "accuracy": model_says(rows, y, labelled, budget=budget, seed=seed),
            "logistic": river_says(LOGISTIC, rows, y, labelled, seed),
        }
        found[name] = {what: float(np.mean((one == y)[scored])) for what, one in said.items()}
    return found


def model_says(rows: Floats, y: Floats, labelled: Mask, *, budget: int, seed: int) -> npt.NDArray[np.generic]:
    """Return what the public model says of each row before it learns it.

    It is given the classes, as logistic regression knows both of them before the first label too.
    """
    model = SF2EL(budget=budget, seed=seed, classes=[-1, 1])
    labels = [int(label) if seen else None for label, seen in zip(y, labelled, strict=True)]
    names = [f"a{column}" for column in range(rows.shape[1])]
    return np.asarray(model.run_many(rows, labels, features=names).prediction)
