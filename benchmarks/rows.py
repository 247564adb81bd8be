"""Times and bytes of the default on dict rows of every kind, with the goal of each.

    python benchmarks/rows.py [--against PYTHON] [--json FILE] [--quick] [--only TEXT]

Every side is a process of its own (``rows_worker.py``): this tree, river, and with ``--against`` the Python
of another tree, such as the one that ``beside.py`` builds. They take turns, block by block, in an order that
is turned round each time. A stream goes on from block to block, after 1,000 rows that are not timed, and the
median of its blocks is told. What is the same work in every block is told by the fastest. Of calls around a
change each is the fastest of 30 copies of the model, and the slowest such call is told. A ratio is that of
the two figures.

River is ``StandardScaler | LogisticRegression``, predicts and learns every row, and is shown every label;
SF2EL predicts and learns every row and is shown 30 % of the labels. Three classes and numbers are compared
with it too, on rows of the same features with two classes; what river has for them is told besides. Streams
have the seed 0, changes of features the seeds 0, 1 and 2. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

WORKER = Path(__file__).with_name("rows_worker.py")
OURS, RIVER, THERE = "this tree", "river", "the other tree"
REPEATS, CLONES, BLOCK = 25, 30, 200
SAME_WORK = {"overlap", "first", "bytes 4", "bytes 64", "threads", "import"}
UNITS = {"us": 1e6, "ms": 1e3, "s": 1.0, "bytes": 1.0}


@dataclass(frozen=True)
class Line:
    """A figure of this tree, ``case`` and ``key``, beside another's; the goal is of their ratio.

    With ``against`` None the goal is of the figure itself, in ``unit``; else it is a side, a case and a key.
    """

    rows: str
    case: str
    key: str = "row"
    against: tuple[str, str, str] | None = None
    goal: float | None = None
    unit: str = "us"


def beside_river(rows: str, case: str, goal: float | None, rivers: str = "") -> Line:
    return Line(rows, case, against=(RIVER, rivers or case, "row"), goal=goal)


def beside_settled(rows: str, case: str, key: str, settled: tuple[str, str], goal: float) -> list[Line]:
    """Return a line for settled rows of this tree, and one for those of the other tree."""
    return [
        Line(f"{rows} of {side}", case, key, against=(side, *settled), goal=goal) for side in (OURS, THERE)
    ]


GROUPS = [
    [beside_river("complete, 10 features, 64 KiB", "complete", 0.5)],
    [beside_river("complete, 10 features, 4 KiB", "complete, 4 KiB", 0.8, "complete")],
    [beside_river("5 % gaps, 10 features", "gaps", 0.7)],
    [beside_river("30 sensors, each in half of the rows", "half", 1.5)],
    [beside_river("20 of 300 words", "words", 2.5)],
    [beside_river("10 sensors and a new name in each row", "new name", 1.0)],
    [
        beside_river("complete, 3 classes", "classes", 0.6, "complete"),
        beside_river("the same, against SoftmaxRegression", "classes", None),
    ],
    [
        beside_river("complete, numbers", "numbers", 0.5, "complete"),
        beside_river("the same, against LinearRegression", "numbers", None),
    ],
    [beside_river("a shared feature after a swap", "shared", 0.6)],
    beside_settled("overlap, d = 10, against a settled row", "overlap", "row", ("complete", "row"), 4),
    [
        *beside_settled(
            "worst predict_one around a change, d = 10, against a settled one",
            "change 10", "predict", ("change 10", "settled predict"), 10,
        ),
        Line("worst learn_one around a change, d = 10", "change 10", "learn", goal=1, unit="ms"),
    ],
    [
        Line("worst predict_one around a change, d = 30", "change 30", "predict", unit="ms"),
        Line("worst learn_one around a change, d = 30", "change 30", "learn", goal=5, unit="ms"),
    ],
    [
        Line("first learn_one of a model", "first", "learn", goal=0.2, unit="ms"),
        Line("the same, and making the model", "first", "with construction", unit="ms"),
    ],
    beside_settled(
        "learn_many, 30 % gaps, d = 10, against complete rows", "many 10, gaps", "row", ("many 10", "row"), 2
    ),
    beside_settled(
        "learn_many, 30 % gaps, d = 30, against complete rows", "many 30, gaps", "row", ("many 30", "row"), 3
    ),
    [Line("longest to_bytes, 4 KiB", "size 4", "bytes", goal=5 * 1024, unit="bytes")],
    [Line("longest to_bytes, 64 KiB", "size 64", "bytes", goal=65 * 1024, unit="bytes")],
    [Line("to_bytes and from_bytes, 4 KiB", "bytes 4", "both", goal=50)],
    [Line("to_bytes and from_bytes, 64 KiB", "bytes 64", "both", goal=100)],
    [
        Line(
            "two learn_many in two threads, against one", "threads", "two",
            (OURS, "threads", "one"), 1.3, "ms",
        )
    ],
    [Line("from sf2el import SF2EL", "import", "import", goal=0.25, unit="s")],
]  # fmt: skip
"""Lines that are measured in turns with each other."""


class Side:
    """A process that answers with times of one package."""

    def __init__(self, python: str, package: str) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [python, str(WORKER), package], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        self.python, self.about = python, self.read()

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise SystemExit(f"{self.process.args}: ended before its answer.")
        return json.loads(line)

    def ask(self, case: str, block: int) -> dict[str, Any]:
        self.process.stdin.write(json.dumps([case, block]) + "\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        return self.read()


def core(python: str) -> str:
    """Return what a tree says of its compiled core."""
    done = subprocess.run([python, "-m", "sf2el", "doctor"], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("compiled core")]
    return lines[0].removeprefix("compiled core").strip() if lines else "not told"


Found = dict[tuple[str, str, str], list[float]]
"""By side, case and key: the figure of each block."""


def blocks(lines: list[Line], sides: dict[str, Side], quick: bool) -> Found:
    """Measure the cases of these lines in turns; nothing is found where one of them fails."""
    jobs = []
    for line in lines:
        jobs += [(side, line.case) for side in (OURS, THERE)]
        if line.against:
            jobs += [line.against[:2]]
            jobs += [(THERE, line.against[1])] if line.against[0] == OURS else []
    jobs = [job for job in dict.fromkeys(jobs) if job[0] in sides]
    case = lines[0].case
    repeats = CLONES if case.startswith("change") else 1 if case.startswith("size") else REPEATS
    found: Found = {}
    for repeat in range(max(1, repeats // 5) if quick else repeats):
        for side, case in jobs if repeat % 2 else jobs[::-1]:
            for key, value in sides[side].ask(case, BLOCK // 2 if quick else BLOCK).items():
                if key == "failed":
                    print(f"  {side}, {case}: {value}")
                    return {}
                if case.startswith("change"):  # each block already tells the best of those so far
                    found[side, case, key] = [value]
                else:
                    found.setdefault((side, case, key), []).append(value)
    return found


def figure(case: str, values: list[float]) -> float:
    """Return the one number of a case's blocks."""
    return min(values) if case in SAME_WORK else median(values)


def result(line: Line, found: Found, side: str = OURS) -> dict[str, Any] | None:
    """Return what a line says of a side; None where it was not measured."""
    mine = found.get((side, line.case, line.key))
    scale = UNITS[line.unit]
    if mine is None:
        return None
    answer = {"ours": figure(line.case, mine) * scale, "other": None, "ratio": None}
    if line.against:
        theirs = found.get((side if line.against[0] == OURS else line.against[0], *line.against[1:]))
        if theirs is None:
            return None
        answer["other"] = figure(line.against[1], theirs) * scale
        answer["ratio"] = answer["ours"] / answer["other"]
    value = answer["ratio"] if line.against else answer["ours"]
    return answer | {"met": None if line.goal is None else value <= line.goal}


def told(lines: list[Line], found: Found) -> list[dict[str, Any]]:
    """Return the rows of the table for these lines."""
    failed = {"ours": None, "other": None, "ratio": None, "met": False}
    return [
        asdict(line) | (result(line, found) or failed) | {"other tree": result(line, found, THERE)}
        for line in lines
    ]


def show(rows: list[dict[str, Any]], against: bool, console: Console) -> None:
    table = Table()
    columns = ["rows", "ours", "other", "unit", "ratio", "goal", "met"]
    for name in columns + (["the other tree", "its ratio"] if against else []):
        table.add_column(name, justify="left" if name in ("rows", "unit", "met") else "right")
    for row in rows:
        of = "x" if row["against"] else row["unit"]
        goal = "-" if row["goal"] is None else f"{row['goal']:g} {of}"
        cells = [row["rows"], number(row["ours"]), number(row["other"]), row["unit"], number(row["ratio"])]
        cells += [goal, {True: "yes", False: "NO", None: "-"}[row["met"]]]
        if against:
            there = row["other tree"] or {"ours": None, "ratio": None}
            cells += [number(there["ours"]), number(there["ratio"])]
        table.add_row(*cells)
    console.print(table)


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="PYTHON", help="the Python of another tree, measured in turns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table, and every block")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has this text")
    parser.add_argument("--quick", action="store_true", help="a fifth of the blocks, half as long")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 180, highlight=False)
    sides = {OURS: Side(sys.executable, "sf2el"), RIVER: Side(sys.executable, "river")}
    if given.against:
        sides[THERE] = Side(given.against, "sf2el")
    about = {name: f"{side.about['version']} in {side.about['file']}" for name, side in sides.items()}
    load = os.getloadavg()[0]
    about |= {f"compiled core of {name}": core(sides[name].python) for name in sides if name != RIVER}
    about |= {"python": platform.python_version(), "load average at the start": f"{load:.1f}"}
    for name, text in about.items():
        console.print(f"{name}: {text}", markup=False)
    rows, every = [], {}
    for lines in GROUPS:
        lines = [line for line in lines if given.only in line.rows]
        lines = [line for line in lines if line.against is None or line.against[0] in sides]
        if lines:
            console.print(f"  {lines[0].rows} ...", markup=False)
            found = blocks(lines, sides, given.quick)
            rows += told(lines, found)
            every |= {" / ".join(key): values for key, values in found.items()}
    show(rows, bool(given.against), console)
    console.print(f"{sum(row['met'] is True for row in rows)} goals met, "
                  f"{sum(row['met'] is False for row in rows)} not.")  # fmt: skip
    if load > 0.5:
        console.print("Something else was running at the start: run again alone.")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"about": about, "rows": rows, "blocks": every}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
