"""Two streams in two threads against one stream in one: the core runs without the interpreter's lock."""

from __future__ import annotations

import os
from threading import Thread
from typing import Any

from common import DIM, Row, fastest, learner_settings, main, slower, stream

from sf2el.paper.learner import build_learner

BUFFER = 60
ROUNDS = 20_000
TARGET = 1.3


def measure() -> list[Row]:
    X, _, y = stream(ROUNDS)

    def prepare(count: int) -> Any:
        learners = [build_learner(learner_settings("project"), DIM, BUFFER, seed) for seed in range(count)]
        threads = [Thread(target=learner.run, args=(X, y)) for learner in learners]

        def job() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return job

    took = fastest({"one": lambda: prepare(1), "two": lambda: prepare(2)}, 40)
    cores = len(os.sched_getaffinity(0))
    return [
        slower(
            "threads, b = 60",
            "two run() in two threads",
            "one run() in one thread",
            took["two"] * 1e3,
            took["one"] * 1e3,
            unit="ms",
            most=TARGET,
            note=f"threads: {ROUNDS:,} rounds each, on {cores} cores; needs two that are idle.",
        )
    ]


if __name__ == "__main__":
    main(measure, __doc__)
