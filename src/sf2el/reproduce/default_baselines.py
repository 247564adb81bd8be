"""Methods that start again when features change: three of river's, and refits on every label kept.

Both packages are optional. Before the first label of the new space a method says +1, as the paper's do.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.streams import TwoSpaceStream

Floats = npt.NDArray[np.float64]

LOGISTIC = "river logistic"
RIVER = (LOGISTIC, "river forest", "river kNN")
REFIT = ("refit logistic", "refit SVM", "refit forest", "refit kNN")


def version_of(package: str) -> str | None:
    """Return an optional package's version, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def run_river(name: str, stream: TwoSpaceStream, seed: int) -> Floats:
    """Return what one of river's learners says in each round after the swap; it sees only these rows."""
    return river_says(name, stream.after_swap, stream.y[stream.t1 :], stream.labelled[stream.t1 :], seed)


def river_says(name: str, rows: Floats, y: Floats, labelled: npt.NDArray[np.bool_], seed: int) -> Floats:
    """Return what one of river's learners says of each row before it learns it.

    The scaler learns every row, labelled or not, once and before it scales it.
    """
    from river.preprocessing import StandardScaler

    model, scaler = _river(name, seed), StandardScaler()
    said = np.ones(len(rows))
    known = False
    for at, (values, label, told) in enumerate(zip(rows.tolist(), y, labelled, strict=True)):
        row = dict(enumerate(values))
        scaler.learn_one(row)
        row = scaler.transform_one(row)
        if known:
            said[at] = 1.0 if model.predict_one(row) else -1.0
        if told:
            model.learn_one(row, bool(label > 0.0))
            known = True
    return said


def _river(name: str, seed: int) -> Any:
    from river import forest, linear_model, neighbors

    if name == LOGISTIC:
        return linear_model.LogisticRegression()
    if name == "river forest":
        return forest.ARFClassifier(seed=seed)
    return neighbors.KNNClassifier(engine=neighbors.SWINN(seed=seed))


def run_refit(stream: TwoSpaceStream, *, growth: float, seed: int) -> dict[str, Floats]:
    """Return what four of scikit-learn's models say after the swap, refit on every label kept so far.

    Labels and rows of the new space only, the overlap's included; features are standardised by the rows seen
    up to the refit. A model is refit when its labels have grown by ``growth`` (at least by one label).
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    first = stream.t1 - stream.overlap
    labels, n = stream.labels[first:], len(stream.new)
    said = {name: np.ones(n) for name in REFIT}
    places = refit_rounds(~np.isnan(labels), growth)
    with threadpool_limits(1):  # the same sums whatever the machine, and one core a run
        for place, following in zip(places, [*places[1:], n - 1], strict=True):
            ahead = slice(place + 1, following + 1)
            seen = stream.new[: place + 1]
            spread = seen.std(axis=0)
            rows = (stream.new - seen.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
            told = np.flatnonzero(~np.isnan(labels[: place + 1]))
            for name in REFIT:
                if len(rows[ahead]):
                    said[name][ahead] = _fitted(name, rows[told], labels[told], rows[ahead], seed)
    return {name: values[stream.overlap :] for name, values in said.items()}


def refit_rounds(labelled: npt.NDArray[np.bool_], growth: float) -> list[int]:
    """Return the rounds after which a model is refit.

    >>> refit_rounds(np.ones(12, bool), 0.5)
    [0, 1, 2, 4, 7, 11]
    """
    found, next_count = [], 1.0
    for count, place in enumerate(np.flatnonzero(labelled), start=1):
        if count >= next_count:
            found.append(int(place))
            next_count = max(count + 1, count * (1.0 + growth))
    return found


def _fitted(name: str, rows: Floats, y: Floats, ahead: Floats, seed: int) -> Floats | float:
    if np.all(y == y[0]):
        return float(y[0])
    predicted: Floats = _refit(name, len(y), seed).fit(rows, y).predict(ahead)
    return predicted


def _refit(name: str, labels: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    if name == "refit logistic":
        return LogisticRegression(max_iter=1000)
    if name == "refit SVM":
        return SVC()
    if name == "refit forest":
        return RandomForestClassifier(n_estimators=50, random_state=seed)
    return KNeighborsClassifier(n_neighbors=min(5, labels))
