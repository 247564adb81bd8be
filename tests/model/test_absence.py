"""What absence means is for labels to say: nothing, zero, or a sign of its own. Complete rows pay nothing.

The floors are the least of ten other seeds (20 to 29), rounded down to a multiple of .02.
"""

from __future__ import annotations

import numpy as np
import pytest
from worlds import STREAMS

from sf2el import SF2EL


def right_after(rows, skip, **given):
    """Share of rows predicted right, from the one at ``skip`` on; ``rows``: row, truth, label."""
    model, right = SF2EL(**given), []
    for x, truth, label in rows:
        right.append(model.predict_one(x) == truth)
        model.learn_one(x, label)
    return float(np.mean(right[skip:]))


def tells(seed, length=900):
    """Five sensors; the last one, which reads noise, fails ten times as often in one class."""
    rng = np.random.default_rng(seed)
    for _ in range(length):
        truth = int(rng.integers(2))
        z = rng.normal(size=5) + 0.35 * (2 * truth - 1) * np.array([1.0, 1.0, 0.0, 0.0, 0.0])
        x = {f"s{j}": float(z[j]) for j in range(4)}
        if rng.random() < (0.5 if truth else 0.95):
            x["s4"] = float(z[4])
        yield x, truth, truth if rng.random() < 0.4 else None


def bags(seed, length=900, vocabulary=200):
    """Bags of words, all of them 1: each class has words of its own that come a little more often."""
    rng = np.random.default_rng(seed)
    own = rng.permutation(vocabulary)
    for _ in range(length):
        truth = int(rng.integers(2))
        chance = np.full(vocabulary, 0.05)
        chance[own[:40] if truth else own[40:80]] = 0.12
        x = {f"w{j}": 1.0 for j in np.flatnonzero(rng.random(vocabulary) < chance)}
        yield x or {"w0": 1.0}, truth, truth if rng.random() < 0.5 else None


def at_random(seed, length=900, keep=0.5):
    """Half of the values missing at random, from the first row on: absence says nothing."""
    rng = np.random.default_rng(seed)
    for _ in range(length):
        z = rng.normal(size=6)
        z[3:] = z[:3] + 0.3 * z[3:]
        truth = int(z[0] + z[1] > 0)
        x = {f"f{j}": float(z[j]) for j in range(6) if rng.random() < keep} or {"f0": float(z[0])}
        yield x, truth, truth if rng.random() < 0.4 else None


FLOORS = {"tells": (tells, 0.74), "bags": (bags, 0.76), "at_random": (at_random, 0.78)}


@pytest.mark.parametrize("name", FLOORS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_absence_says_is_learned(name, seed):
    make, floor = FLOORS[name]
    assert right_after(make(seed), 300, budget="64KiB") >= floor


def test_an_absence_that_tells_is_worth_more_than_the_values_alone():
    told, blind = [], []
    for seed in range(3):
        told.append(right_after(tells(seed), 300))
        blind.append(
            right_after((({n: v for n, v in x.items() if n != "s4"}, y, z) for x, y, z in tells(seed)), 300)
        )
    assert np.mean(told) > np.mean(blind) + 0.02


def test_a_first_row_with_gaps_costs_nothing():
    """Half of the values missing from the first row on is as good as a first row that is complete."""
    open_, complete = [], []
    for seed in range(4):
        rows = list(at_random(seed))
        open_.append(right_after(rows, 100))
        first = ({f"f{j}": 0.0 for j in range(6)}, 0, None)
        complete.append(right_after([first, *rows], 101))
    assert abs(np.mean(open_) - np.mean(complete)) < 0.01


@pytest.mark.parametrize("kind", ["complete", "hard_swap"])
def test_complete_streams_have_no_views_of_what_is_missing(kind):
    model = SF2EL(budget="1MiB")
    for x, y in STREAMS[kind](length=200):
        model.learn_one(x, y)
        assert not [name for name in model.risk() if "zero" in name or "flagged" in name]


def test_the_first_gap_brings_them_and_is_told():
    model = SF2EL(budget="64KiB")
    rows = STREAMS["complete"]()
    for x, y in rows[:80]:
        model.learn_one(x, y)
    before = model.predict_proba_one(rows[0][0])
    model.learn_one({"a0": 1.0, "a2": -1.0}, 1)
    assert {word for name in model.risk() for word in ("zero", "flagged") if word in name} == {
        "zero",
        "flagged",
    }
    assert [event.fields for event in model.events().last if event.kind == "first_gap"] == [
        {"missing": 1.0, "features": 3.0}
    ]
    after = model.predict_proba_one(rows[0][0])
    assert abs(after[1] - before[1]) < 0.1


def test_one_dead_sensor_is_no_five_sigma_signal():
    """A flag is none until its feature has been away for some spells."""
    model = SF2EL()
    rng = np.random.default_rng(0)
    right = []
    for t in range(500):
        z = rng.normal(size=4)
        truth = int(z[0] + 0.5 * z[1] > 0)
        x = {f"f{j}": float(z[j]) for j in range(4) if j != 3 or t < 300}
        right.append(model.predict_one(x) == truth)
        model.learn_one(x, truth if t % 3 == 0 else None)
    assert np.mean(right[300:330]) > np.mean(right[250:300]) - 0.15
    assert np.mean(right[300:]) > 0.85
