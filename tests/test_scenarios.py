"""Features come and go in many ways: nothing breaks, swaps are found, and no part alone does better.

The comparison over thirty seeds is ``benchmarks/scenarios.py``; here are a few seeds on shorter streams.
"""

from __future__ import annotations

import numpy as np
import pytest
from scenarios import SCENARIOS, Scenario, fare

from sf2el import SF2EL
from sf2el.events import EventKind

LENGTH = 300


def named(scenario: Scenario) -> str:
    return scenario.name


@pytest.fixture(scope="module", params=SCENARIOS, ids=named)
def scenario(request) -> Scenario:
    return request.param


def test_there_are_twenty_scenarios():
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 20


def test_a_table_in_one_call_is_the_loop(scenario):
    stream = scenario.stream(1, 130)
    stream.strays = {}  # a table has no columns for them
    labels = stream.labels()
    whole = SF2EL(budget=scenario.budget)
    said = whole.run_many(stream.X, labels, features=stream.names).prediction
    model = SF2EL(budget=scenario.budget)
    for t, label in enumerate(labels):
        x = stream.row(t)
        assert model.predict_one(x) == said[t]
        model.learn_one(x, label)
    assert model.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.clean], ids=named)
@pytest.mark.parametrize("kind", ["default", "paper"])
def test_clean_swaps_are_found_within_five_rows(scenario, kind):
    # An overlap as long as what was before would be for good.
    stream = scenario.stream(2, max(LENGTH, 3 * scenario.overlap))
    model = SF2EL() if kind == "default" else SF2EL.paper(buffer_size=8, scaled=True)
    model.learn_many(*framed(stream))
    swaps = [event for event in model.events().last if event.kind == EventKind.SWAPPED]
    opened = [event for event in model.events().last if event.kind == EventKind.OPENED]
    assert len(swaps) == len(opened) == len(stream.swaps)
    for event, onset, swap in zip(swaps, opened, stream.swaps, strict=True):
        assert swap.row <= event.row <= event.certain <= swap.row + 5
        # Many features together are taken up at their second row; the paper's periods need no such proof.
        assert onset.row == swap.row - scenario.overlap
        assert onset.certain == onset.row + (1 if kind == "default" else 0)
        assert event.fields == {"features": len(swap.columns), "map_rows": scenario.overlap}


class Frame:
    """The least that a frame has."""

    def __init__(self, names, X):
        self.columns, self._X = names, X

    def to_numpy(self):
        return self._X


def framed(stream):
    return Frame(stream.names, stream.X), stream.labels()


def test_no_part_alone_does_much_better(scenario):
    runs = [fare(scenario, seed, LENGTH, block=LENGTH) for seed in range(2)]
    model, fresh, recovered = (np.mean(part, axis=0) for part in zip(*runs, strict=True))
    assert np.all(np.fmax(fresh, recovered) - model <= 0.05)


@pytest.mark.parametrize("kind", ["paper", "paper with a budget", "small"])
def test_other_models_get_through_everything(kind):
    scenario = SCENARIOS[-1]
    assert scenario.name == "everything at once"
    stream = scenario.stream(3, 120)
    model = {
        "paper": lambda: SF2EL.paper(buffer_size=10, on_skip="project", train_in_overlap=True),
        "paper with a budget": lambda: SF2EL.paper(budget="16KiB", scaled=True),
        "small": lambda: SF2EL(budget="6KiB"),
    }[kind]()
    for t, label in enumerate(stream.labels()):
        x = stream.row(t)
        assert model.predict_one(x) in (None, "up", "down")
        model.learn_one(x, label)
        if kind != "paper":
            assert model.memory_usage() <= model.budget
