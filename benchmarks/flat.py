"""A round costs the same after a million rounds as after a thousand, in time and in memory."""

from __future__ import annotations

import resource
from functools import partial
from pathlib import Path
from typing import Any

from common import DIM, Row, fastest, learner_settings, main, slower, stream

from sf2el.paper.learner import build_learner

BUFFER = 60
MARKS = (1_000, 10_000, 100_000, 1_000_000)
WINDOW = 1_000
REPEATS = 60
CHUNK = 10_000
MOST_TIME = 1.1
MOST_MEMORY = 1.01


def measure() -> list[Row]:
    # Every window is timed on a copy that stands at the mark, so that a repeat is of the same rounds.
    standing: dict[int, Any] = {}
    learner = build_learner(learner_settings("project"), DIM, BUFFER, 0)
    X, _, y = stream(CHUNK)
    rss: dict[int, float] = {}
    nbytes: dict[int, float] = {}
    done = 0
    for mark in MARKS:
        while done < mark:
            n = min(CHUNK, mark - done)
            learner.run(X[:n], y[:n])
            done += n
        rss[mark], nbytes[mark] = resident_mib(), learner.nbytes + learner.scratch_nbytes
        standing[mark] = learner.copy()

    def window(mark: int) -> Any:
        copy = standing[mark].copy()
        return lambda: copy.run(X[:WINDOW], y[:WINDOW])

    jobs = {mark: partial(window, mark) for mark in MARKS}
    took = {mark: seconds / WINDOW * 1e6 for mark, seconds in fastest(jobs, REPEATS).items()}
    first, last = MARKS[0], MARKS[-1]
    early = f"round {first:,}"
    note = (
        f"flat: b = {BUFFER}, d = {DIM}, project; {WINDOW:,} rounds after each mark. A row enters the buffer "
        "with probability b / t, and costs more then: where nothing grows, the ratio falls slightly below 1."
    )
    rows = []
    for mark in MARKS[1:]:
        target = MOST_TIME if mark == last else None
        rows.append(
            slower("flat time", f"round {mark:,}", early, took[mark], took[first], most=target, note=note)
        )
    for what, unit, size, target in (
        ("process", "MiB RSS", rss, MOST_MEMORY),
        ("learner", "bytes", nbytes, 1.0),
    ):
        rows.append(
            slower(
                "flat memory",
                f"{what}, round {last:,}",
                early,
                size[last],
                size[first],
                unit=unit,
                most=target,
            )
        )
    return rows


def resident_mib() -> float:
    """Memory of this process that is in RAM now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main(measure, __doc__)
