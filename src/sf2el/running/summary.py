"""What a run came to, as ``summary.json`` has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sf2el.evaluate.windows import Part, plain
from sf2el.running.engine import Run
from sf2el.running.history import History

LEAST_SCORED = 30
"""Labelled rows that a stretch of the run needs before it has metrics."""


def summary_of(run: Run) -> dict[str, Any]:
    """Return the summary; nothing in it depends on the clock, or on how often the run was interrupted."""
    tallies, model = run.tallies, run.model
    # A copy takes over the last events, so that a run that goes on later meets them at its own points.
    history = History.from_state(tallies.history.state())
    history.tell(model, run.row_of)
    nbytes = int(model.memory_usage())
    found: dict[str, Any] = {
        "data": run.source.name,
        "rows": tallies.rows,
        "labelled": tallies.labelled,
        "empty_rows": tallies.empty,
        "features": list(history.presence),
        "observed": {name: asdict(life) for name, life in history.lives.items()},
        "metrics": plain(tallies.metrics()),
    }
    if not tallies.regression:
        truths = tallies.total.truths()
        found["labels"] = {str(label): count for label, count in truths.items()}
        found["largest_class"] = max(truths.values()) / tallies.labelled if truths else None
    return found | {
        "bytes": nbytes,
        "most_bytes": max(nbytes, history.most_bytes),
        "spaces": tallies.spaces,
        "followed": dict(tallies.followed),
        "events": [asdict(event) for event in sorted(history.events, key=lambda event: event.row)],
        "events_total": history.events_total,
        "windows": [part.to_dict() for part in stretches(run)],
        "settings": run.settings.to_dict(),
    }


def stretches(run: Run) -> list[Part]:
    """Return the run's windows, neighbours joined until each has enough labelled rows.

    Those at the end that have not go with the last that has.
    """
    windows = run.tallies.windows
    make: Callable[[], Any] = windows.make
    every = [*windows.closed, windows.open]
    least = max(LEAST_SCORED, run.tallies.labelled // 60)
    found: list[tuple[int, int, Any]] = []
    joined, start, stop = make(), 0, 0
    for scores in every:
        joined.merge(scores)
        stop = min(stop + windows.length, windows.rounds)
        if joined.rounds >= least:
            found.append((start, stop, joined))
            joined, start = make(), stop
    if found:
        first, _, last = found[-1]
        last.merge(joined)
        found[-1] = first, stop, last
    elif joined.rounds:
        found.append((start, stop, joined))
    return [Part(first, end, scores.rounds, scores.metrics()) for first, end, scores in found]
