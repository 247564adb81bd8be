"""Every model within every budget: after each row of each stream, in its file, and whatever is set."""

from __future__ import annotations

import re

import numpy as np
import pytest
from worlds import BUDGETED, STREAMS, check_bytes, labels_for, learned, swap, twin_of

from sf2el import SF2EL

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")

LARGE = [1 << k for k in range(14, 21)]
SMALL = [2048, 2500, 3000, 3777, 4096, 5000, 6144, 8192, 12_000]


@pytest.mark.parametrize("kind", BUDGETED)
def test_no_small_budget_is_passed_after_any_row(kind):
    for name in STREAMS:
        for budget in SMALL:
            model = BUDGETED[kind](budget)
            for x, y in labels_for(model, STREAMS[name]()):
                model.learn_one(x, y)
                check_bytes(model)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("kind", BUDGETED)
def test_no_large_budget_is_passed_after_any_row(kind, name):
    for budget in LARGE:
        model = BUDGETED[kind](budget)
        for t, (x, y) in enumerate(labels_for(model, STREAMS[name]())):
            model.learn_one(x, y)
            assert model.memory_usage() <= budget
            if t % 8 == 0:
                check_bytes(model)


@pytest.mark.parametrize("budget", [1000, 4096, 65536])
def test_strangers_take_no_more_than_their_room(budget):
    model = SF2EL(budget=budget)
    model.learn_one({"z": 1.0})
    for t in range(60):
        model.learn_one({"z": 1.0} | {f"typo {t} {j}": 1.0 for j in range(1 + 37 * (t % 3))}, t % 2)
        check_bytes(model)


@pytest.mark.parametrize("kind", BUDGETED)
def test_names_count_as_the_text_they_are(kind):
    short, long = (BUDGETED[kind]("64KiB") for _ in range(2))
    for t in range(20):
        short.learn_one({"a": float(t % 3), "b": float(t % 5)}, t % 2)
        long.learn_one({"a" * 200: float(t % 3), "b" * 200: float(t % 5)}, t % 2)
    assert long.memory_usage(detail=True)["names"] - short.memory_usage(detail=True)["names"] == 2 * 199


@pytest.mark.parametrize("kind", BUDGETED)
def test_bytes_do_not_grow_with_rows_of_the_same_features(kind):
    model = learned(BUDGETED[kind](), STREAMS["complete"](length=60))
    before = model.memory_usage()
    learned(model, STREAMS["complete"](seed=1, length=600))
    assert model.memory_usage() <= before


@pytest.mark.parametrize("kind", BUDGETED)
def test_a_larger_budget_is_used(kind):
    used = [
        learned(BUDGETED[kind](budget), swap()[:50]).memory_usage() for budget in (2048, 4096, 8192, 16384)
    ]
    assert used == sorted(used)
    assert used[-1] > 3 * used[0]


def asked(refused):
    found = re.search(r"at least (\d+) bytes are needed", str(refused.value))
    assert found, refused.value
    return int(found[1])


@pytest.mark.parametrize("kind", BUDGETED)
def test_a_budget_that_can_hold_nothing_is_refused_at_once_with_the_least(kind):
    for budget in (1, 100, 500):
        with pytest.raises(ValueError) as refused:
            BUDGETED[kind](budget)
        least = asked(refused)
        assert least > budget
        with pytest.raises(ValueError):
            BUDGETED[kind](least - 1)
        model = BUDGETED[kind](least)
        model.learn_one({"a": 1.0}, 1)
        check_bytes(model)


@pytest.mark.parametrize("width", [20, 100, 400])
@pytest.mark.parametrize("kind", BUDGETED)
def test_the_bytes_asked_for_a_first_row_suffice_and_one_less_does_not(kind, width):
    row = {f"feature {j}": float(j) for j in range(width)}
    model = BUDGETED[kind](1500)
    before = model.to_bytes()
    with pytest.raises(ValueError) as refused:
        model.learn_one(row, 1)
    assert model.to_bytes() == before
    least = asked(refused)
    BUDGETED[kind](least).learn_one(row, 1)
    with pytest.raises(ValueError):
        BUDGETED[kind](least - 1).learn_one(row, 1)


@pytest.mark.parametrize("kind", BUDGETED)
def test_a_refused_budget_changes_nothing_and_the_one_asked_for_suffices(kind):
    model = BUDGETED[kind]("64KiB")
    rng = np.random.default_rng(0)
    for t in range(30):
        model.learn_one({f"f{j}": float(v) for j, v in enumerate(rng.normal(size=40))}, t % 2)
    before = model.to_bytes()
    with pytest.raises(ValueError) as refused:
        model.set_budget(1300)
    assert model.to_bytes() == before
    least = asked(refused)
    assert least > 1300
    model.set_budget(least)
    check_bytes(model)
    with pytest.raises(ValueError):
        twin_of(model).set_budget(least - 1)


@pytest.mark.parametrize("kind", ["bank", "paper"])
def test_a_young_space_that_has_no_room_for_the_next_one_ends_all_the_same(kind):
    """One feature, ten rows with four others instead: they are used, or refused in one sentence."""
    for budget in range(1000 if kind == "bank" else 1240, 1500, 20):
        for width in (4, 8, 12):
            model = BUDGETED[kind](budget)
            model.learn_one({"old": 0.1})
            rng = np.random.default_rng(0)
            for _ in range(20):
                x = {f"new{j}": float(rng.normal()) for j in range(width)}
                try:
                    model.learn_one(x, 1)
                except ValueError as refused:
                    assert "\n" not in str(refused)


@pytest.mark.parametrize("kind", ["bank", "regressor"])
def test_strangers_that_have_passed_take_nothing_for_good(kind):
    """Names by the hundred that never come again, a late feature among them, and a budget that is lowered."""
    bytes_left = []
    for strangers in (0, 15):
        model = BUDGETED[kind]("64KiB")
        for t in range(60):
            x = {"a": t % 7 / 7, "b": t % 5 / 5}
            x |= {f"s{t}_{i}": 1.0 for i in range(strangers)} if t else {}
            x |= {"late": t % 3 / 1} if t >= 20 else {}
            model.learn_one(x, t % 2)
            check_bytes(model)
        model.set_budget(4096)
        check_bytes(model)
        bytes_left.append(model.memory_usage(detail=True)["learners"])
        model.set_budget(2048)
        check_bytes(model)
    assert bytes_left[1] >= 0.8 * bytes_left[0]
