"""One row at a time, as dicts: predict_one and learn_one of SF2EL against river's logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import DIM, GAMMA, GRAPH_WIDTH, LABEL_RATE, Row, fastest, main, slower, stream
from river import linear_model, preprocessing

from sf2el import SF2EL
from sf2el.paper.kernels import RBF

ROUNDS = 5_000
GAPS = 0.05
TARGET, DEFAULT_TARGET = 0.5, 1.0


def measure() -> list[Row]:
    X, y, masked = stream(ROUNDS)
    names = [f"feature_{j}" for j in range(DIM)]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    labels = [bool(value > 0) for value in y]
    revealed = [label if value == value else None for label, value in zip(labels, masked, strict=True)]
    unread = np.random.default_rng(1).random(X.shape) < GAPS
    holed = [
        {name: value for name, value, gap in zip(names, row.values(), gaps, strict=True) if not gap}
        for row, gaps in zip(rows, unread.tolist(), strict=True)
    ]

    def ours(on_skip: str) -> Any:
        model = paper_model(on_skip)

        def job() -> None:
            for row, label in zip(rows, revealed, strict=True):
                model.predict_one(row)
                model.learn_one(row, label)

        return job

    def default(changed: bool, rows: list[dict[str, float]] = rows) -> Any:
        """The default in its first space, or after a change: recovered and new experts all live."""
        model = SF2EL(budget="64KiB", seed=0)
        if changed:
            old = [{f"old_{name}": value for name, value in row.items()} for row in rows[:510]]
            for t, row in enumerate(rows[:510]):
                model.learn_one(old[t] if t < 500 else old[t] | row, revealed[t])

        def job() -> None:
            for row, label in zip(rows, revealed, strict=True):
                model.predict_one(row)
                model.learn_one(row, label)

        return job

    def river(every_row: bool, rows: list[dict[str, float]] = rows) -> Any:
        model = preprocessing.StandardScaler() | linear_model.LogisticRegression()

        def job() -> None:
            for row, label in zip(rows, labels if every_row else revealed, strict=True):
                model.predict_one(row)
                if label is not None:
                    model.learn_one(row, label)

        return job

    took = fastest(
        {
            "drop": lambda: ours("drop"),
            "project": lambda: ours("project"),
            "in one space": lambda: default(False),
            "after a change of features": lambda: default(True),
            "in one space, rows with gaps": lambda: default(False, holed),
            "every row": lambda: river(True),
            "every row, with gaps": lambda: river(True, holed),
            "labelled rows": lambda: river(False),
        },
        15,
    )
    us = {name: seconds / ROUNDS * 1e6 for name, seconds in took.items()}
    return (
        [
            slower(
                "per row",
                f"SF2EL.paper, b = 60, {on_skip}",
                f"river scaler | logistic, learns {learns}",
                us[on_skip],
                us[learns],
                most=TARGET if learns == "every row" else None,
                note=NOTE,
            )
            for on_skip in ("drop", "project")
            for learns in ("every row", "labelled rows")
        ]
        + [
            slower(
                "per row",
                f"SF2EL(budget='64KiB') {when}",
                f"river scaler | logistic, learns {learns}",
                us[when],
                us[learns],
                most=DEFAULT_TARGET if learns == "every row" else None,
                note=NOTE,
            )
            for when in ("in one space", "after a change of features")
            for learns in ("every row", "labelled rows")
        ]
        + [
            slower(
                "per row",
                "SF2EL(budget='64KiB') in one space, rows with gaps",
                "river scaler | logistic, learns every row, with gaps",
                us["in one space, rows with gaps"],
                us["every row, with gaps"],
                note=NOTE,
            )
        ]
    )


NOTE = (
    f"per row: predict_one and learn_one, dicts of {DIM}, {LABEL_RATE:.0%} labelled, {ROUNDS:,} rows. SF2EL "
    "learns from every row; river from every row (it gets all labels), or from the labelled ones only. "
    f"Of rows with gaps {GAPS:.0%} of the values are not there: river leaves them out. A "
    "change of features itself takes some milliseconds, which are in the figure."
)


def paper_model(on_skip: str) -> SF2EL:
    """The published algorithm with a buffer of 60."""
    return SF2EL.paper(
        buffer_size=60,
        kernel=RBF(GAMMA),
        graph_width=GRAPH_WIDTH,
        loss="logistic",
        label_rate=LABEL_RATE,
        on_skip=on_skip,
        seed=0,
    )


if __name__ == "__main__":
    main(measure, __doc__)
