"""Streams whose rows differ from one to the next or whose concept moves, as rows and labels by seed.

Also what is done with a stream: a model predicts each row, and then learns it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Labelled = list[tuple[dict[str, float], bool]]


# ---- rows that differ


def masked(X: Floats, y: Any, seed: int, present: float) -> Labelled:
    """Return a table's rows in random order, each value there so often, at least one of a row."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    there = rng.random(X.shape) < present
    for row in np.flatnonzero(~there.any(axis=1)):
        there[row, rng.integers(X.shape[1])] = True
    return [
        ({f"x{j}": float(x[j]) for j in np.flatnonzero(known)}, bool(label))
        for x, known, label in zip(X[order], there, y[order], strict=True)
    ]


def words(seed: int, rows: int = 1500, vocabulary: int = 300, draws: int = 20) -> Labelled:
    """Return bags of words: how common words are follows Zipf, and the class moves the odds of each."""
    rng = np.random.default_rng(seed)
    shift = 0.4 * rng.normal(size=vocabulary)
    found = []
    for _ in range(rows):
        label = bool(rng.random() < 0.5)
        odds = np.exp(shift if label else -shift) / np.arange(1, vocabulary + 1)
        drawn = rng.choice(vocabulary, draws, p=odds / odds.sum())
        found.append(({f"w{j}": 1.0 for j in np.unique(drawn)}, label))
    return found


def broken(seed: int, rows: int = 1500) -> Labelled:
    """Return ten sensors, each silent in 30 % of the rows; the label follows whether the first is silent."""
    rng = np.random.default_rng(seed)
    X, found = rng.normal(size=(rows, 10)), []
    for values in X:
        silent = rng.random(10) < 0.3
        score = 1.5 * silent[0] + values[1] * (not silent[1]) + 0.3 * rng.normal()
        x = {f"f{j}": float(values[j]) for j in np.flatnonzero(~silent)}
        found.append((x or {"f9": 0.0}, bool(score > 0.75)))
    return found


# ---- complete rows


def complete(X: Floats, y: Any) -> Labelled:
    rows = [{f"f{j}": v for j, v in enumerate(x)} for x in X.tolist()]
    return list(zip(rows, map(bool, y), strict=True))


def sea(seed: int, rows: int = 4000) -> Labelled:
    """Return four concepts in turn, each a bound on a sum; a tenth of the labels is wrong."""
    rng = np.random.default_rng(seed)
    X = 10 * rng.random((rows, 3))
    bound = np.repeat([8.0, 9.0, 7.0, 9.5], rows // 4)
    return complete(X, (X[:, 0] + X[:, 1] <= bound) != (rng.random(rows) < 0.1))


def reversal(seed: int, rows: int = 4000) -> Labelled:
    """Return a linear concept that is the opposite from the middle on."""
    rng = np.random.default_rng(seed)
    X, truth = rng.normal(size=(rows, 8)), rng.normal(size=8)
    score = X @ truth
    score[rows // 2 :] *= -1
    return complete(X, score > 0)


def still(seed: int, rows: int = 4000) -> Labelled:
    """Return a concept that stays, with nothing missing."""
    rng = np.random.default_rng(seed)
    X, truth = rng.normal(size=(rows, 8)), rng.normal(size=8)
    return complete(X, X[:, 0] * X[:, 1] + X @ truth + 0.5 * rng.normal(size=rows) > 0)


def recalibrated(seed: int, rows: int = 3000) -> Labelled:
    """Return six related sensors, of which one reads in other units from the middle on."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 3))
    X = hidden @ rng.normal(size=(3, 6)) + 0.3 * rng.normal(size=(rows, 6))
    X[rows // 2 :, 2] = 1.8 * X[rows // 2 :, 2] + 2.5
    return complete(X, hidden[:, 0] + 0.5 * hidden[:, 1] * hidden[:, 2] > 0)


def hyperplane(seed: int, rows: int = 4000) -> Labelled:
    """Return river's hyperplane, which turns slowly."""
    from river.datasets import synth

    return plain(synth.Hyperplane(seed=seed, n_features=10, n_drift_features=10, mag_change=0.01), rows)


def rbf(seed: int, rows: int = 4000) -> Labelled:
    """Return river's radial centres, half of which move."""
    from river.datasets import synth

    sizes = {"n_classes": 2, "n_features": 10, "n_centroids": 20, "n_drift_centroids": 10}
    return plain(synth.RandomRBFDrift(seed_model=seed, seed_sample=seed, change_speed=0.001, **sizes), rows)


def plain(stream: Any, rows: int) -> Labelled:
    return [({str(j): float(v) for j, v in x.items()}, bool(y)) for x, y in islice(stream, rows)]


STREAMS: dict[str, Callable[[int], Labelled]] = {
    make.__name__: make for make in (words, broken, sea, reversal, still, recalibrated, hyperplane, rbf)
}


# ---- models


def ours() -> Any:
    from sf2el import SF2EL

    return SF2EL(budget="64KiB")


def rivals() -> dict[str, Callable[[], Any]]:
    """Return river's learners by name."""
    from river import linear_model, naive_bayes, preprocessing, tree

    return {
        "scaled logistic": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        "logistic": linear_model.LogisticRegression,
        "GaussianNB": naive_bayes.GaussianNB,
        "BernoulliNB": naive_bayes.BernoulliNB,
        "HoeffdingTree": tree.HoeffdingTreeClassifier,
    }


def accuracies(stream: Labelled, rate: float, seed: int, names: tuple[str, ...]) -> dict[str, float]:
    """Return how often each of these of river's learners is right, and SF2EL, which reads every row.

    A row is predicted, then learned; its label is shown with probability ``rate``. River's learners are given
    the rows whose label is shown.
    """
    shown = np.random.default_rng(seed).random(len(stream)) < rate
    makers = {name: make for name, make in rivals().items() if name in names}
    found = {}
    for name, make in {"ours": ours, **makers}.items():
        model, right = make(), 0
        for (x, y), known in zip(stream, shown, strict=True):
            right += model.predict_one(x) == y
            if known or name == "ours":
                model.learn_one(x, y if known else None)
        found[name] = right / len(stream)
    return found


def told(cells: dict[tuple[str, float], list[dict[str, float]]]) -> str:
    """Return a table of mean accuracies, a line for each stream and label rate, and mean margins below it."""
    names = [name for name in next(iter(cells.values()))[0] if name != "ours"]
    lines = [f"{'stream':<22}{'labels':>7}{'ours':>8}{'best':>8}{'margin':>8}  best of river's" + " " * 6]
    lines[0] = lines[0].rstrip().ljust(72) + "".join(f"{name:>17}" for name in names)
    margins: dict[float, list[float]] = {}
    for (stream, rate), runs in cells.items():
        mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        best = max(names, key=mean.__getitem__)
        margin = mean["ours"] - mean[best]
        margins.setdefault(rate, []).append(margin)
        start = f"{stream:<22}{rate:>7g}{mean['ours']:>8.3f}{mean[best]:>8.3f}{margin:>+8.3f}  {best}"
        lines.append(start.ljust(72) + "".join(f"{mean[name]:>17.3f}" for name in names))
    lines.append("")
    for rate, some in margins.items():
        lines.append(f"mean margin, label rate {rate:g}: {np.mean(some):+.4f}, worst {min(some):+.3f}")
    every = [margin for some in margins.values() for margin in some]
    return "\n".join([*lines, f"mean margin: {np.mean(every):+.4f}, at or ahead in "
                      f"{sum(margin >= 0 for margin in every)} of {len(every)}"])  # fmt: skip


def write_runs(path: Path | None, jobs: Sequence[Any], found: Sequence[dict[str, float]]) -> None:
    """Write every run, where a file is named."""
    if path is not None:
        runs = [{"job": job, **one} for job, one in zip(jobs, found, strict=True)]
        path.write_text(json.dumps(runs, indent=1) + "\n")
