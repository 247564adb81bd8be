"""The compiled backend against the NumPy one: whole streams of arrays in one call, b = 60."""

from __future__ import annotations

from typing import Any

from common import DIM, Row, faster, fastest, learner_settings, main, stream

from sf2el.core import backend

BUFFER = 60
ROUNDS = 3_000
TARGET = 10.0


def measure() -> list[Row]:
    X, _, y = stream(ROUNDS)
    rows = []
    for on_skip in ("drop", "project"):

        def prepare(name: str, on_skip: str = on_skip) -> Any:
            learner = backend(name).Learner(learner_settings(on_skip), DIM, BUFFER, 0)
            return lambda: learner.run(X, y)

        jobs = {name: lambda name=name: prepare(name) for name in ("native", "numpy")}
        took = {name: seconds / ROUNDS * 1e6 for name, seconds in fastest(jobs, 5).items()}
        rows.append(
            faster(
                "backends, b = 60",
                f"native run(), {on_skip}",
                f"NumPy run(), {on_skip}",
                took["native"],
                took["numpy"],
                least=TARGET,
                note=f"backends: d = {DIM}, {ROUNDS:,} rounds from an empty buffer, microseconds a round.",
            )
        )
    return rows


if __name__ == "__main__":
    main(measure, __doc__)
