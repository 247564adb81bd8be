"""The pages have the package's tables of the ladder and of the kinds of events, and its numbers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sf2el.events import EventKind
from sf2el.features.policies import LATE_ROWS, LONG_ROWS, MANY_ROWS, STEADY_ROWS, YOUNG_ROWS
from sf2el.memory.ladder import (
    FEW_MAPPED,
    FORESEEN,
    MANY_MAPPED,
    PLACE,
    RUNGS,
    WIDEST_LINEAR,
    WIDEST_RELATED,
    Part,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import tables

    yield tables
    del sys.modules["tables"]


@pytest.mark.parametrize("name", ["ladder", "kinds"])
def test_a_page_has_the_table_of_the_package(tables, name):
    page, text = tables.filled(name)
    assert page.read_text() == text, "python docs/_ext/tables.py puts it right"


def test_every_rung_and_every_kind_has_a_line():
    ladder = (DOCS / "memory.md").read_text()
    assert all(f"| {place + 1} | {rung.part} |" in ladder for place, rung in enumerate(RUNGS))
    kinds = (DOCS / "events.md").read_text()
    assert all(f"\n| `{kind}` |" in kinds for kind in EventKind)


def words(page: str) -> str:
    return re.sub(r"\s+", " ", (DOCS / page).read_text())


def rung(part: Part) -> int:
    return PLACE[part] + 1


@pytest.mark.parametrize(
    "said",
    [
        f"Views (rungs {rung(Part.LIGHT_VIEWS)} and {rung(Part.VIEWS)})",
        f"more than {FEW_MAPPED} features in all, a map comes with rung {rung(Part.ENDED_LINEAR)} only",
        f"beyond {MANY_MAPPED} with rung {rung(Part.OLDER)}",
        f"a covariance up to {WIDEST_LINEAR} features",
        f"Below rung {rung(Part.SINGLE)} experts keep half precision",
        f"maps bfloat16 below rung {rung(Part.OLDER)}",
        f"stop at {RUNGS[-1].end} an expert",
        f"from {FORESEEN} radial functions on",
    ],
)
def test_a_number_beside_the_ladder_is_that_of_the_plan(said):
    assert WIDEST_RELATED == WIDEST_LINEAR
    assert said in words("memory.md")


@pytest.mark.parametrize(
    "said",
    [
        f"for its first {YOUNG_ROWS} rows",
        f"lost for {STEADY_ROWS} rows ({LATE_ROWS} where fewer than half are gone)",
        f"nothing is lost for {LATE_ROWS} rows",
        f"had been alone for {LONG_ROWS} rows",
        f"({LATE_ROWS} rows at least, {MANY_ROWS} at most)",
    ],
)
def test_a_number_of_a_rule_is_that_of_the_policy(said):
    assert said in words("concepts/spaces.md")


def test_every_kind_that_a_rule_leads_to_is_on_the_page_of_the_rules():
    page = (DOCS / "concepts" / "spaces.md").read_text()
    named = set(re.findall(r"\| `(\w+)` \|$", page, re.MULTILINE))
    assert named <= set(EventKind)
    assert {
        "first_space",
        "opened",
        "joined",
        "swapped",
        "grown",
        "returned",
        "closed",
        "passed_over",
    } <= named
