"""The tables of the ladder and of the kinds of events, as the package has them.

    python docs/_ext/tables.py

puts them into the pages, between ``<!-- begin: NAME -->`` and ``<!-- end: NAME -->``. A test holds the pages
against them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sf2el.events import DETAILS, FIELDS, EventKind, expert_number, text_of
from sf2el.experts.kinds import Code, Form, Kind, View
from sf2el.memory.ladder import RUNGS, Part, table

DOCS = Path(__file__).resolve().parent.parent

LINEAR = expert_number(Code(Kind.LINEAR, View.ZERO, form=Form.FULL))
SAMPLES: dict[EventKind, tuple[float, float]] = {
    EventKind.SWAPPED: (5, 20),
    EventKind.FIRST_GAP: (2, 5),
    EventKind.EXPERT_CAME: (LINEAR, [rung.part for rung in RUNGS].index(Part.VIEWS)),
    EventKind.EXPERT_LEFT: (LINEAR, [rung.part for rung in RUNGS].index(Part.WIDE)),
    EventKind.EXPERT_OUTDONE: (LINEAR, [rung.part for rung in RUNGS].index(Part.WIDE)),
    EventKind.RESIZED: (24, [rung.part for rung in RUNGS].index(Part.FRESH_RADIAL)),
    EventKind.MOVED: (12, 0.25),
    EventKind.NEW_BUDGET: (16384, 0),
    EventKind.NEW_CLASS: (3, 0),
    EventKind.UNEXPLAINED: (40, 0),
    EventKind.BUFFERS: (60, 45),
}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ladder() -> str:
    """Return the rungs, the least first."""
    rows = []
    for place, part, start, end, worth in table():
        size = "" if not end else f"{start}" if start == end else f"{start} to {end}"
        rows.append([str(place + 1), part, size, worth])
    return markdown(["rung", "what it adds", "radial functions", "what that was measured to be worth"], rows)


def kinds() -> str:
    """Return the kinds of events: fields, and what one of them says."""
    rows = []
    for kind in EventKind:
        fields = ", ".join(f"`{name}`" for name in FIELDS[kind])
        said = text_of(kind, *SAMPLES.get(kind, (5, 4)))
        rows.append([f"`{kind}`", fields, said, "yes" if kind in DETAILS else ""])
    return markdown(["kind", "fields", "a text", "detail"], rows)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "ladder": ("memory.md", ladder),
    "kinds": ("events.md", kinds),
}


def filled(name: str) -> tuple[Path, str]:
    """Return the page of a table, and its text with the table in it."""
    page = DOCS / TABLES[name][0]
    place = re.compile(f"(<!-- begin: {name} -->\n).*?(<!-- end: {name} -->)", re.DOTALL)
    text, count = place.subn(lambda found: f"{found[1]}\n{TABLES[name][1]()}\n\n{found[2]}", page.read_text())
    if count != 1:
        raise ValueError(f"{page} must have one place for the table {name!r}.")
    return page, text


if __name__ == "__main__":
    for one in TABLES:
        path, content = filled(one)
        path.write_text(content)
