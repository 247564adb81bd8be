"""Which features are alive: the tracker by itself, and what a model makes of it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf2el import SF2EL, SF2ELRegressor
from sf2el.features.attendance import FORGOTTEN, LATELY, SLOWEST, Strangers
from sf2el.features.spaces import LATE_ROWS, LONGEST_PAUSE, MANY_ROWS, STEADY, Tracker
from sf2el.model.stage import NEVER, Stage


def told(tracker: Tracker, *rows: str) -> list[tuple[int, str, str, int]]:
    """Return the changes of rows, each written as its one-letter features: row, kind, features, rows ago."""
    return [
        (t, change.kind.name, "".join(map(str, change.names)), change.ago)
        for t, row in enumerate(rows)
        for change in tracker.step(row)
    ]


def repeated(row: str, times: int) -> list[str]:
    return [row] * times


def test_an_overlap_and_a_swap():
    tracker = Tracker(("a", "b"))
    rows = [*repeated("ab", 3), *repeated("abcd", 6), *repeated("cd", 6)]
    assert told(tracker, *rows) == [(5, "OPEN", "cd", 2), (9, "SWAP", "cd", 0), (13, "SURE", "ab", 4)]
    assert (tracker.current, tracker.past, tracker.upcoming) == (("c", "d"), ("a", "b"), None)


@pytest.mark.parametrize("overlap", [0, 1, 2])
def test_an_overlap_too_short_to_be_noticed_is_found_within_three_rows(overlap):
    tracker = Tracker(("a", "b"))
    rows = [*repeated("ab", 3), *repeated("abcd", overlap), *repeated("cd", 8)]
    changes = told(tracker, *rows)
    assert [change[1] for change in changes] == ["OPEN", "SWAP", "SURE"]
    assert changes[0][0] == changes[1][0] == 3 + 2
    assert changes[0][0] - changes[0][3] == 3


def test_a_typo_is_forgotten_and_three_of_eight_rows_are_enough():
    tracker = Tracker(("a",))
    assert told(tracker, "at", "a", "a", "at", *repeated("a", FORGOTTEN)) == []
    assert tracker.strangers.marks == {}
    assert told(tracker, "at", "a", "a", "at", "a", "a", "at") == [(6, "OPEN", "t", 6)]
    # A feature that comes every third row is not absent for long, and stays.
    assert told(tracker, *["a", "a", "at"] * 30)[0][1] == "GROW"


@pytest.mark.parametrize("gap", [0, 1])
def test_a_first_row_that_lacks_most_features_is_completed(gap):
    tracker = Tracker(("d",))
    changes = told(tracker, "d", *repeated("d", gap), "abd", *repeated("abcd", 8))
    assert changes[0] == (1 + gap, "JOIN", "ab", 0)
    assert set(tracker.current) == set("abd") and tracker.upcoming == ("c",)
    assert told(Tracker(("a",)), "a", *repeated("ab", 3))[0][1] == "OPEN"  # one more is no proof
    assert told(Tracker(("a",)), "a", *repeated("bc", 3))[0][1] == "OPEN"  # nor is another space
    assert told(Tracker(("a",)), *repeated("a", 3), *repeated("abc", 3))[0][1] == "OPEN"


def test_features_that_die_while_others_come_are_told_from_those_dead_before():
    tracker = Tracker(tuple("abcde"))
    told(tracker, *repeated("abcde", 3), *repeated("bcde", 10), *repeated("bcdexyz", 5))
    assert tracker.upcoming is not None and tracker.dying() == set()
    told(tracker, "cdexyz")
    assert tracker.dying() == set()  # it may be a gap
    told(tracker, "cdexyz")
    assert tracker.dying() == {"b"}
    told(tracker, *repeated("cdexyz", 6))
    assert "b" in tracker.dying()


def test_names_of_strangers_have_no_more_room_than_there_is():
    tracker = Tracker(("a",), strangers=Strangers(room=25))
    noted = set()
    for t in range(100):
        tracker.step(["a", f"stranger {t}"])
        assert tracker.strangers.nbytes <= 25
        noted |= tracker.strangers.marks.keys()
    assert len(noted) > 10  # one that was not there lately makes room


def test_a_swap_is_taken_back_if_an_old_feature_shows_up_in_time():
    rows = [*repeated("abcd", 4), *repeated("cd", LATELY - 1)]
    back = told(Tracker(("a", "b")), *rows, "acd", "abcd")
    assert [change[1] for change in back] == ["OPEN", "SWAP", "REVERT"]
    late = told(Tracker(("a", "b")), *rows, "cd", "acd", "cd", "cd", "cd")
    assert [change[1] for change in late] == ["OPEN", "SWAP", "SURE"]


def test_a_space_that_opened_and_is_gone_is_forgotten():
    tracker = Tracker(("a", "b"))
    changes = told(tracker, *repeated("abc", 4), *repeated("ab", 6))
    assert [change[1:] for change in changes] == [("OPEN", "c", 2), ("CLOSE", "c", 4)]
    assert tracker.upcoming is None and tracker.quiet() > 1000


def test_a_feature_that_dies_alone_changes_nothing():
    tracker = Tracker(("a", "b", "c"))
    assert told(tracker, *repeated("ab", 200), *repeated("a", 200)) == []


def test_features_that_die_one_by_one_are_not_taken_for_shared_while_others_follow():
    tracker = Tracker(tuple("abcdef"))
    rows = [*repeated("abcdefuvwxyz", 10)]
    for gone in range(1, 6):
        rows += repeated("abcdef"[gone:] + "uvwxyz", 8)
    rows += repeated("uvwxyz", 6)
    assert [change[1] for change in told(tracker, *rows)] == ["OPEN", "SWAP", "SURE"]


@pytest.mark.parametrize(("shared", "wait"), [("ef", STEADY), ("bcdef", LATE_ROWS)])
def test_features_that_stay_are_shared(shared, wait):
    tracker = Tracker(tuple("abcdef"))
    rows = [*repeated("abcdefuvwx", 10), *repeated(shared + "uvwx", 80)]
    changes = told(tracker, *rows)
    assert [change[1] for change in changes] == ["OPEN", "SWAP", "SURE"]
    row, _, names, ago = changes[1]
    assert names == "uvwx" + shared
    assert row == 10 + LATELY - 1 + wait and row - ago == 10
    assert tracker.current == tuple("uvwx" + shared)


def test_sharing_does_not_wait_for_a_new_feature_that_is_gone_again():
    tracker = Tracker(tuple("abcdef"))
    rows = [*repeated("abcdefuvwxy", 10), *repeated("efuvwx", 40)]
    assert [change[1] for change in told(tracker, *rows)] == ["OPEN", "SWAP", "SURE"]


def test_a_late_feature_joins_even_beside_features_that_died_before():
    tracker = Tracker(tuple("abcdef"))
    changes = told(tracker, *repeated("abcde", 10), *repeated("abcdez", LATE_ROWS + 5))
    assert [change[1:3] for change in changes] == [("OPEN", "z"), ("JOIN", "z")]
    assert tracker.current == tuple("abcdefz")


def test_a_late_feature_does_not_join_a_space_that_is_dying():
    tracker = Tracker(tuple("abcdef"))
    rows = repeated("abcdefz", 10)
    for gone in range(1, 6):
        rows += repeated("abcdef"[gone:] + "z", LATE_ROWS - 10)
    assert "JOIN" not in [change[1] for change in told(tracker, *rows)]


def test_the_space_before_returns_as_itself():
    tracker = Tracker(("a", "b"))
    told(tracker, *repeated("abcd", 5), *repeated("cd", 20))
    changes = told(tracker, *repeated("acd", 3), *repeated("abcd", 3), *repeated("ab", 6))
    assert [change[1:3] for change in changes] == [("RETURN", "ab"), ("SWAP", "ab"), ("SURE", "cd")]


@pytest.mark.parametrize("back", ["a", "ab"])
def test_a_part_of_the_space_before_comes_as_new_features(back):
    tracker = Tracker(tuple("abcd"))
    told(tracker, *repeated("abcdwxyz", 5), *repeated("wxyz", 100))
    changes = told(tracker, *repeated("wxyz" + back, LATE_ROWS + LATELY + 5))
    gone = "abcd"[len(back) :]
    assert [change[1:3] for change in changes] == [("RETURN", "abcd"), ("CLOSE", gone), ("OPEN", back)]
    changes = told(tracker, *repeated("wxyz" + back + "pqrt", 10), *repeated(back + "pqrt", 80))
    assert [change[1] for change in changes] == ["WIDEN", "SWAP", "SURE"]
    assert set(tracker.current) == set("pqrt" + back) and tracker.past == tuple("wxyz")


def test_a_space_that_comes_back_to_stay_goes_on_with_the_current_one():
    tracker = Tracker(tuple("abcd"))
    told(tracker, *repeated("abcdwxyz", 5), *repeated("wxyz", 100))
    changes = told(tracker, *repeated("wxyzabcd", 200))
    assert [change[1:3] for change in changes] == [("RETURN", "abcd"), ("GROW", "abcdwxyz")]
    assert tracker.past == tuple("wxyz")


def test_a_space_that_returns_may_hold_all_of_the_current_one():
    tracker = Tracker(("a",), past=("a", "b"))
    changes = told(tracker, "a", *repeated("ab", 8))
    assert [change[1:] for change in changes] == [
        ("RETURN", "ab", 2),
        ("SWAP", "ab", 0),
        ("SURE", "a", 4),
    ]


row_of_letters = st.sets(st.sampled_from("abcdefgh"), min_size=1)


@given(st.lists(st.tuples(row_of_letters, st.integers(1, 12)), max_size=25))
def test_whatever_comes_spaces_are_whole(parts):
    tracker = Tracker(("a", "b", "c"))
    for row, times in parts:
        for _ in range(times):
            tracker.step(row)
            assert tracker.current and len(set(tracker.current)) == len(tracker.current)
            assert tracker.upcoming is None or tracker.own_upcoming()
            assert not set(tracker.strangers.marks) & set(tracker.expected())
            counts = tracker.attendance
            assert counts.absent.keys() | counts.pace.keys() <= set(tracker.expected())
            assert all(1 <= rows <= counts.patience(name) for name, rows in counts.absent.items())
            assert all(1 < rows <= SLOWEST for rows in counts.pace.values())
            assert 1 <= tracker.pause <= LONGEST_PAUSE
            assert 0 <= tracker.doubt < LATELY
            assert not tracker.doubt or tracker.past is not None


@given(st.lists(st.tuples(row_of_letters, st.integers(1, 12)), max_size=12), st.integers(1, 80))
def test_quiet_rows_may_be_skipped(parts, most):
    stepped = Tracker(("a", "b", "c"))
    for row, times in parts:
        for _ in range(times):
            stepped.step(row)
    skipped = stepped.copy()
    rows = min(most, stepped.quiet())
    for _ in range(rows):
        assert stepped.step(stepped.expected()) == []
    skipped.skip(rows)
    assert skipped == stepped


gaps_in_abc = st.lists(st.sets(st.sampled_from("abc"), max_size=2), max_size=60)


@given(st.lists(st.tuples(row_of_letters, st.integers(1, 12)), max_size=12), gaps_in_abc)
def test_rows_of_one_settled_space_are_counted_alike_in_less_time(parts, gaps):
    stepped = Tracker(("a", "b", "c"))
    for row, times in parts:
        for _ in range(times):
            stepped.step(row)
    for _ in range(FORGOTTEN):
        stepped.step(stepped.expected())
    counted = stepped.copy()
    for names in gaps:
        missing = names & set(stepped.current)
        if not stepped.settled or len(missing) == len(stepped.current):
            break
        assert stepped.step(set(stepped.current) - missing) == []
        counted.stay(tuple(missing))
        assert counted == stepped


# -- models


def one_space_after_another(model, rows: int = 30, overlap: int = 6):
    for t in range(rows):
        x = {"a": t % 5 - 2.0, "b": t % 3 - 1.0}
        if t >= rows - overlap:
            x |= {"c": 3.0 * (t % 5), "d": 1.0 - t % 3}
        model.learn_one(x, "up" if t % 5 > 2 else "down")
    return model


KINDS = {
    "default": lambda **more: SF2EL(budget="16KiB", **more),
    "paper": lambda **more: SF2EL.paper(buffer_size=10, scaled=True, **more),
}


@pytest.mark.parametrize("kind", KINDS)
def test_zero_overlap_is_said(kind):
    model = one_space_after_another(KINDS[kind](), overlap=0)
    for t in range(8):
        model.learn_one({"y": float(t % 5), "z": 1.0}, "up")
    texts = [event.text for event in model.events().last]
    assert any("the new learner starts alone: no row had both spaces" in text for text in texts)
    assert model.weights() == {"current": pytest.approx(1.0)}


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_space_that_comes_back_is_remembered(kind):
    model = one_space_after_another(KINDS[kind]())
    for t in range(20):
        model.learn_one({"c": 3.0 * (t % 5), "d": 1.0 - t % 3})
    for t in range(4):
        model.learn_one({"a": t % 5 - 2.0, "b": t % 3 - 1.0})
    assert any("return: 2 features" in event.text for event in model.events().last)
    right = [
        model.predict_one({"a": t % 5 - 2.0, "b": t % 3 - 1.0}) == ("up" if t % 5 > 2 else "down")
        for t in range(15)
    ]
    assert sum(right) >= 12


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_nothing_but_unknown_keys_are_predicted_and_change_no_expert(kind, monkeypatch):
    model = one_space_after_another(KINDS[kind](), overlap=0)
    # What rests on all rows so far is left as it is too.
    monkeypatch.setattr(Stage, "refit_at", lambda self, rows: NEVER)
    model._refit_at = NEVER
    before = model.explain_one({"a": 1.0, "b": 0.0})
    for key in ("typo", "tpyo"):
        assert model.predict_one({key: 3.0}) in ("up", "down")
        model.learn_one({key: 3.0}, "up")
    assert model.explain_one({"a": 1.0, "b": 0.0}) == before


@pytest.mark.parametrize("kind", KINDS)
def test_predicting_changes_nothing_in_any_period(kind):
    model = one_space_after_another(KINDS[kind]())
    rows = [{"c": 1.0, "d": 0.0}] * 3 + [{"c": 1.0, "d": 0.0, "a": 1.0}] * 8 + [{"c": 2.0}] * 9
    for x in rows:
        before = model.to_bytes()
        model.predict_one(x), model.predict_proba_one(x), model.explain_one({"e": 1.0} | x)
        assert model.to_bytes() == before
        model.learn_one(x)


def test_features_that_join_the_opened_space_do_not_cost_its_map():
    model = one_space_after_another(SF2EL(budget="16KiB"), overlap=20)
    for t in range(4):
        x = {"a": t % 5 - 2.0, "b": t % 3 - 1.0, "c": 3.0 * (t % 5), "d": 1.0 - t % 3, "e": 1.0}
        model.learn_one(x)
    model.learn_one({"c": 1.0, "d": 0.0, "e": 1.0})
    assert any("recovered by a map from 24 rows" in event.text for event in model.events().last)


def test_a_swap_without_overlap_that_is_taken_back_can_be_mapped_after_all():
    model = one_space_after_another(SF2EL(budget="16KiB"), overlap=0)
    for _ in range(4):
        model.learn_one({"y": 1.0, "z": 2.0})
    for t in range(10):
        model.learn_one({"a": t % 5 - 2.0, "b": t % 3 - 1.0, "y": float(t % 5), "z": 1.0})
    for _ in range(5):  # once bitten: four such rows have been a pause before
        model.learn_one({"y": 1.0, "z": 2.0})
    texts = [event.text for event in model.events().last]
    assert any(text.startswith("back") for text in texts)
    assert any("recovered by a map from 10 rows" in text for text in texts)


@pytest.mark.parametrize("budget", [3000, 4096, 6000])
def test_a_small_budget_may_drop_the_past_and_goes_on(budget):
    model = SF2EL(budget=budget)
    spaces = [[f"{k}{j}" for j in range(5)] for k in "abc"]
    for k in (0, 1, 0, 2, 1, 0):
        for t in range(25):
            x = {name: float((t * 7 + j) % 5) for j, name in enumerate(spaces[k])}
            if t > 20:
                x |= {name: float((t * 3 + j) % 5) for j, name in enumerate(spaces[(k + 1) % 3])}
            model.predict_one(x)
            model.learn_one(x, "pqr"[t % 3] if t % 2 else None)
            assert model.memory_usage() <= budget


def test_many_features_that_stay_beside_a_space_go_on_with_it():
    tracker = Tracker(("a", "b"))
    rows = [*repeated("ab", 3), *repeated("abcd", LATE_ROWS + 10)]
    changes = told(tracker, *rows)
    assert [change[1:3] for change in changes] == [("OPEN", "cd"), ("GROW", "cdab")]
    assert changes[1][0] == changes[0][0] + LATE_ROWS
    assert (tracker.past, tracker.upcoming) == (("a", "b"), None)


def test_they_do_so_after_as_long_as_the_space_was_alone():
    tracker = Tracker(("a", "b"))
    rows = [*repeated("ab", 200), *repeated("abcd", 300)]
    opened, grown = told(tracker, *rows)
    assert opened[1] == "OPEN" and grown[1] == "GROW"
    alone = opened[0]
    assert grown[0] == 2 * alone - 1
    shorter = told(Tracker(("a", "b")), *rows[:300], *repeated("cd", 10))
    assert [change[1] for change in shorter] == ["OPEN", "SWAP", "SURE"]


def test_they_do_so_after_a_thousand_rows_at_most():
    tracker = Tracker(("a", "b"))
    tracker.skip(1_000_000)
    opened, grown = told(tracker, *repeated("abcd", MANY_ROWS + 10))
    assert (opened[1], grown[1], grown[0] - opened[0], grown[3]) == ("OPEN", "GROW", MANY_ROWS - 1, 0)


def test_one_feature_beside_one_goes_on_with_it_too():
    assert told(Tracker(("a",)), "a", *repeated("ab", 60))[-1][1:3] == ("GROW", "ba")


def test_quiet_rows_are_those_before_a_space_grows():
    tracker, twin = Tracker(("a", "b")), Tracker(("a", "b"))
    for row in [*repeated("ab", 80), *repeated("abcd", 3)]:
        assert tracker.step(row) == twin.step(row)
    quiet = tracker.quiet()
    assert 0 < quiet < 100
    tracker.skip(quiet)
    assert told(twin, *repeated("abcd", quiet)) == []
    assert tracker == twin
    assert [change[1] for change in told(tracker, "abcd")] == ["GROW"]


def test_dead_features_leave_once_they_are_a_third_and_others_join():
    tracker = Tracker(tuple("abcdefgh"))
    rows = [*repeated("abcdefgh", 5), *repeated("defgh", 10), *repeated("defghx", LATE_ROWS + 10)]
    changes = told(tracker, *rows)
    assert changes[-1][1:3] == ("GROW", "xdefgh")


SENSORS = {
    "complete": lambda t: "abcd",
    "the first row has one feature": lambda t: "abcd" if t else "a",
    "they start one after the other": lambda t: "abcd"[: 1 + t // 20],
}


@pytest.mark.parametrize("budget", ["4KiB", "64KiB"])
@pytest.mark.parametrize("kind", SENSORS)
def test_features_that_come_after_the_first_row_are_used(kind, budget):
    rng = random.Random(5)
    model, right = SF2EL(budget=budget, seed=0), 0
    for t in range(1500):
        values = {name: rng.gauss(0.0, 1.0) for name in "abcd"}
        truth = sum(values.values()) > 0
        x = {name: values[name] for name in SENSORS[kind](t)}
        right += t >= 500 and model.predict_one(x) == truth
        model.learn_one(x, truth if rng.random() < 0.3 else None)
    assert right > 940
    assert set(model._stage.current.names) == set("abcd")


def test_sensors_replaced_one_by_one_for_ever_fit_a_small_budget():
    rng = random.Random(1)
    model, right, generation = SF2EL(budget="2KiB", seed=0), 0, [0] * 4
    for t in range(12_000):
        values = [rng.gauss(0.0, 1.0) for _ in range(4)]
        truth, turn = sum(values) > 0, t // 100 % 4
        if t and t % 100 == 0:
            generation[turn] += 1
        x = {f"{k} {generation[k]}": value for k, value in enumerate(values)}
        if t > 100 and t % 100 < 20:
            x[f"{turn} {generation[turn] - 1}"] = values[turn]
        right += model.predict_one(x) == truth
        model.learn_one(x, truth if rng.random() < 0.1 else None)
    assert right > 0.8 * 12_000
    assert model._stage.current.dim < 12


@pytest.mark.parametrize("budget", ["8KiB", "64KiB"])
def test_a_gap_in_the_first_row_costs_no_width(budget):
    rng = random.Random(2)
    model, right = SF2EL(budget=budget, seed=0), 0
    for t in range(2500):
        x = {name: rng.gauss(0.0, 1.0) for name in "abcde"}
        truth = x["a"] * x["b"] > 0
        if t == 0:
            del x["e"]
        right += t >= 1500 and model.predict_one(x) == truth
        model.learn_one(x, truth if rng.random() < 0.3 else None)
    assert right > 850


def test_widths_begin_anew_when_a_visitor_has_gone():
    model = SF2EL(budget="64KiB")
    rng = random.Random(3)
    for t in range(300):
        x = {name: rng.gauss(0.0, 1.0) for name in "abcd"} | ({"z": 1.0} if 200 <= t < 204 else {})
        model.learn_one(x, x["a"] > 0)
        if t == 203:
            assert sum("rbf" in name for name in model.weights(detail=True)) < 3
    assert {name.split(" ", 1)[1] for name in model.weights(detail=True)} == {
        *("narrow rbf", "middle rbf", "wide rbf", "linear", "even linear", "paper")
    }
    assert SF2EL.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_map_does_not_learn_its_own_guesses():
    """Two old features die as new ones come: a change in the seventh digit stays one."""

    def rows():
        rng = random.Random(1)
        for t in range(140):
            old = {f"a{j}": rng.gauss(0.0, 1.0) for j in range(8)}
            new = {f"b{j}": rng.gauss(0.0, 1.0) for j in range(3)}
            target = sum(old.values()) if t < 100 else None
            if t >= 100:
                old = {name: value for name, value in old.items() if name not in ("a0", "a1")} | new
            yield t, old, target

    one, other = (SF2ELRegressor(budget="16KiB", seed=0) for _ in range(2))
    apart = []
    for t, x, y in rows():
        near = x | ({"b0": x["b0"] * (1 + 1e-7)} if t == 101 else {})
        if t >= 100:
            apart.append(abs(one.predict_one(x) - other.predict_one(near)))
        one.learn_one(x, y)
        other.learn_one(near, y)
    assert max(apart) < 1e-3


def fed(model, names, count, rng):
    for _ in range(count):
        model.learn_one({name: rng.gauss(0.0, 1.0) for name in names}, rng.random() < 0.5)


def test_a_space_that_grows_without_a_map_is_saved_with_the_past_that_it_has():
    """No row has half of the current features beside the new ones: there is no map to go on by."""
    rng = random.Random(0)
    model = SF2EL(budget="16KiB")
    past, current, new = ([f"{kind}{i}" for i in range(n)] for kind, n in (("p", 3), ("c", 6), ("u", 6)))
    fed(model, past, 30, rng)
    fed(model, past + current, 20, rng)
    fed(model, current, 10, rng)
    for i in range(53):
        fed(model, [current[2 * (i % 3)], current[2 * (i % 3) + 1], *new], 1, rng)
    assert set(model._stage.current.names) == {*current, *new}
    assert model._tracker.past == model._stage.past.names == tuple(past)
    twin = SF2EL.from_bytes(model.to_bytes())
    for _ in range(8):
        x = {name: rng.gauss(0.0, 1.0) for name in current + new + past}
        for one in (model, twin):
            one.learn_one(x, True)
    assert model.to_bytes() == twin.to_bytes()


def test_dead_features_that_come_back_join_again():
    rng = random.Random(0)
    model = SF2EL(budget="64KiB")
    for names, count in (("abcdef", 60), ("abcd", 20), ("abcdg", 70), ("abcdefg", 150), ("abcdefgh", 200)):
        fed(model, names, count, rng)
    assert set(model._stage.current.names) == set("abcdefgh")


def test_no_width_that_has_learned_goes_for_one_that_has_not():
    for budget in (1280, 1536, 2048, 4096):
        rng = random.Random(budget)
        model = SF2EL(budget=budget)
        fed(model, "ab", 15, rng)
        learned = {seat.name for seat in model._stage.current.seats if seat.name.endswith("rbf")}
        fed(model, "abc", 4, rng)
        fed(model, "ab", 8, rng)
        labels = [seat.posterior.labels for seat in model._stage.current.seats if seat.name.endswith("rbf")]
        assert not learned or max(labels, default=0) > 8


def test_very_many_features_are_given_no_widths():
    model = SF2EL(budget="512KiB")
    wide = {f"x{i}": 1.0 for i in range(5000)}
    for t in range(58):
        model.learn_one(wide if t < 3 else wide | {"late": 1.0}, t % 2)
    assert [seat.name for seat in model._stage.current.seats] == ["logistic"]


def test_names_that_run_code_do_not_mix_rows_up():
    big, small = SF2EL(budget="64KiB"), SF2EL(budget="16KiB")
    wide = {f"x{i}": float(i) for i in range(50)}
    rng = random.Random(0)
    for t in range(40):
        big.learn_one({name: rng.gauss(0.0, 1.0) for name in wide}, t % 2)
        fed(small, "ab", 1, rng)

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            big.predict_one(wide)
            return str.__eq__(self, other)

    x = {"a": 3.0, "b": 1.0}
    assert small.predict_proba_one(
        {Name(name): value for name, value in x.items()}
    ) == small.predict_proba_one(x)


@pytest.mark.parametrize("seed", range(8))
def test_wrong_readings_as_large_as_can_be_are_learned_wherever_they_come(seed):
    rng = random.Random(seed)
    model = SF2EL(budget="64KiB")
    for names, count in (("abcd", 40), ("abcdefgh", 30), ("efgh", 40)):
        for _ in range(count):
            x = {name: 1e100 if rng.random() < 0.01 else rng.gauss(0.0, 1.0) for name in names}
            model.learn_one(x, rng.random() < 0.5)
    assert model._rows_seen == 110


@pytest.mark.filterwarnings("ignore:.*new features are not used")
@pytest.mark.parametrize("budget", [816, 900, 1000])
def test_features_that_had_no_room_do_not_keep_others_from_being_taken_up(budget):
    """A late feature may have room beside the others, but not among them; then other features come."""
    names = [f"a{i}" for i in range(8)]
    model = SF2EL(budget=budget)
    rng = np.random.default_rng(0)

    def learn(count, *more):
        for t in range(count):
            model.learn_one({name: float(rng.normal()) for name in (*names, *more)}, t % 2)
            assert model.memory_usage() <= budget
            assert model._tracker.current == model._stage.current.names

    learn(50)
    learn(70, "b0")
    learn(20)
    assert model._tracker.upcoming is None
    learn(20, "c0", "c1")
    names = []
    learn(30, "c0", "c1")
    assert set(model._stage.current.names) == {"c0", "c1"}


@pytest.mark.filterwarnings("ignore:.*new features are not used")
def test_a_space_that_widens_in_the_row_of_its_swap_goes_on():
    a, b, c = ([f"{x}{i}" for i in range(n)] for x, n in (("a", 8), ("b", 2), ("c", 3)))
    model = SF2EL(budget=900)
    rng = np.random.default_rng(0)
    refused = 0
    for t, row in enumerate([a] * 20 + [a + b] * 4 + [a + b + c] * 2 + [b + c] * 40):
        try:
            model.learn_one({name: float(rng.normal()) for name in row}, t % 2)
        except ValueError:
            refused += 1
    assert refused == 0 and set(model._stage.current.names) >= {*b}


@pytest.mark.parametrize("count", [4, 8])
def test_a_sensor_that_replaces_one_of_several_takes_over_what_was_known(count):
    right = []
    for seed in range(4):
        rng, model = random.Random(seed), SF2EL(budget="64KiB", seed=0)
        for t in range(2200):
            values = [rng.gauss(0.0, 1.0) for _ in range(count)]
            x = {f"s{i}": value for i, value in enumerate(values) if i}
            if t < 2010:
                x["old"] = values[0]
            if t >= 2000:
                x["new"] = 5.0 * values[0] + 3.0 + 0.05 * rng.gauss(0.0, 1.0)
            truth = 2.0 * values[0] + values[1] > 0.0
            if t > 2060:  # the new one has joined
                right.append(model.predict_one(x) == truth)
            model.learn_one(x, truth if rng.random() < 0.05 else None)
        assert "new" in model._stage.current.names
    assert sum(right) > 0.87 * len(right)


def test_a_sensor_read_every_third_row_is_used():
    rng, model, right = random.Random(0), SF2EL(budget="32KiB", seed=0), []
    for t in range(1500):
        truth = rng.choice(["on", "off"])
        x = {"steady": rng.gauss(0.0, 1.0)}
        if t % 3 == 2:
            x["slow"] = rng.gauss(1.5 if truth == "on" else -1.5, 1.0)
            right.append(t < 700 or model.predict_one(x) == truth)
        model.learn_one(x, truth if rng.random() < 0.3 else None)
    assert sum(right) > 0.9 * len(right)


def test_an_incomplete_first_row_costs_little():
    def accuracy(first):
        rng, model, right = random.Random(3), SF2EL(budget="32KiB", seed=0), 0
        for t in range(1500):
            values = {name: rng.gauss(0.0, 1.0) for name in "abcd"}
            truth = values["a"] + values["b"] > 0.0
            x = {name: value for name, value in values.items() if rng.random() < 0.85} or values
            if t == 0:
                x = {name: values[name] for name in first}
            right += t > 500 and model.predict_one(x) == truth
            model.learn_one(x, truth if rng.random() < 0.1 else None)
        return right / 999

    assert accuracy("d") > accuracy("abcd") - 0.03


def test_features_that_join_bring_what_rows_have_shown_of_them():
    rng, model = random.Random(5), SF2EL(budget="64KiB", seed=0)
    for t in range(460):
        x = {f"s{i}": rng.gauss(0.0, 1.0) for i in range(4)}
        if t >= 400:
            x["late"] = 100.0 + 7.0 * (x["s0"] - 0.5 * x["s1"])
        model.learn_one(x, x["s0"] > 0.0 if t % 4 == 0 else None)
    space = model._stage.current
    assert space.names[-1] == "late"
    mean, spread, count = np.asarray(space.scaler.state()).reshape(3, space.dim)[:, -1]
    assert count == 60 and mean == pytest.approx(100.0, abs=4.0)
    assert np.sqrt(spread / count) == pytest.approx(7.0 * np.sqrt(1.25), rel=0.3)
    covariance = space.moments.matrix()
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    correlation = covariance[-1] / np.sqrt(covariance[-1, -1] * np.diagonal(covariance))
    np.testing.assert_allclose(correlation[:4], [0.89, -0.45, 0.0, 0.0], atol=0.15)
    # A feature that is not observed is filled by what the newcomer tells of it.
    view = space.view_gaps(np.array([np.nan, 0.0, 0.0, 0.0, 107.0]), False)
    assert view[0] * space.divisor == pytest.approx(1.0, abs=0.35)
