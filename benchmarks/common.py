"""What the benchmarks share: a stream, a clock, and a table that says what was asked and what came out.

Every script measures both sides in the same run, in turns, and keeps the fastest of several repeats of
each: what another program does meanwhile can only slow a repeat down.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from sf2el.paper.kernels import RBF
from sf2el.paper.settings import LearnerSettings

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"

DIM = 10
LABEL_RATE = 0.3
GAMMA = 0.25
GRAPH_WIDTH = 0.75

Floats = npt.NDArray[np.float64]
Job = Callable[[], object]
K = TypeVar("K")


@dataclass(frozen=True)
class Row:
    """One comparison: ours and theirs in ``unit``, their ratio, and the ratio asked for.

    ``ratio`` is what ``most`` (at most) or ``least`` (at least) speaks about; with neither the row is only
    told. A row that could not be measured has no ratio, and its note says what to do.
    """

    bench: str
    ours: str
    theirs: str
    ours_value: float | None = None
    theirs_value: float | None = None
    unit: str = "us"
    ratio: float | None = None
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none, or no measurement."""
        if self.ratio is None or (self.most is None and self.least is None):
            return None
        return self.ratio <= self.most if self.most is not None else self.ratio >= (self.least or 0.0)

    @property
    def target(self) -> str:
        """The target in words."""
        if self.most is not None:
            return f"at most {self.most:g} x"
        return f"at least {self.least:g} x" if self.least is not None else "-"


def slower(bench: str, ours: str, theirs: str, mine: float, other: float, **rest: object) -> Row:
    """A row whose ratio is our time over theirs: smaller is better."""
    return Row(bench, ours, theirs, mine, other, ratio=mine / other, **rest)  # type: ignore[arg-type]


def faster(bench: str, ours: str, theirs: str, mine: float, other: float, **rest: object) -> Row:
    """A row whose ratio is their time over ours: larger is better."""
    return Row(bench, ours, theirs, mine, other, ratio=other / mine, **rest)  # type: ignore[arg-type]


def stream(n: int, dim: int = DIM, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Return normal rows, their classes (-1, 1), and the same with NaN where the label is not revealed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0.0, 1.0, -1.0)
    return X, y, np.where(rng.random(n) < LABEL_RATE, y, np.nan)


def learner_settings(on_skip: str) -> LearnerSettings:
    """What every benchmark of the bare learner uses: manifold term on, everything else the default."""
    return LearnerSettings(
        kernel=RBF(GAMMA),
        graph_width=GRAPH_WIDTH,
        label_rate=LABEL_RATE,
        on_skip=on_skip,  # type: ignore[arg-type]
    )


def fastest(jobs: dict[K, Callable[[], Job]], repeats: int = 7) -> dict[K, float]:
    """Return the fewest seconds each job took.

    ``jobs`` maps a name to a function that prepares a job and returns it: only the job is timed. Jobs take
    turns, so that a slow spell of the machine falls on all of them.
    """
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, prepare in jobs.items():
            job = prepare()
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def show(rows: Iterable[Row], title: str = "") -> None:
    """Print rows as a table."""
    table = Table(title=title or None)
    for name in ("benchmark", "ours", "against", "ours", "theirs", "unit", "ratio", "target", "met"):
        table.add_column(name, justify="right" if name in {"ratio", "target"} else "left", overflow="fold")
    words = {True: "[green]yes[/]", False: "[red]NO[/]", None: "-"}
    notes = []
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(
            row.bench, row.ours, row.theirs, _number(row.ours_value), _number(row.theirs_value), row.unit,
            ratio, row.target, words[row.met],
        )  # fmt: skip
        if row.note and row.note not in notes:
            notes.append(row.note)
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table)
    for note in notes:
        console.print(f"  {note}", highlight=False, markup=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def save(rows: Iterable[Row], path: Path) -> None:
    """Write rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = [asdict(row) | {"target": row.target, "met": row.met} for row in rows]
    path.write_text(json.dumps(table, indent=2) + "\n")


def load(path: Path) -> list[Row]:
    """Read rows back."""
    return [
        Row(**{k: v for k, v in row.items() if k not in {"target", "met"}})
        for row in json.loads(path.read_text())
    ]


def main(measure: Callable[[], list[Row]], about: str | None) -> None:
    """Measure, print, and with ``--json FILE`` write."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    path = parser.parse_args().json
    rows = measure()
    show(rows)
    if path:
        save(rows, path)
