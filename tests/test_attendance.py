"""Features that come at a pace of their own: the counts, the spaces they make, and a model's answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hostile import closed, made
from hostile import opened as parts_of
from test_budget import check_bytes
from test_model import state_of
from test_spaces import repeated, told

from sf2el import SF2EL
from sf2el.features.attendance import FORGOTTEN, LATELY, RARELY, SLOWEST, Attendance, Mark, Strangers
from sf2el.features.spaces import LATE_ROWS, LONGEST_PAUSE, Tracker

# -- the counts


def counted(rows: list[str], names: str = "ab") -> Attendance:
    attendance = Attendance()
    for row in rows:
        attendance.count(set(names) - set(row))
    return attendance


@pytest.mark.parametrize("every", [1, 2, 3, 5, 10, 40, SLOWEST])
def test_a_feature_is_gone_after_twice_its_pace(every):
    rows = (["ab"] + ["a"] * (every - 1)) * 12 + ["ab"]
    attendance = counted(rows)
    assert attendance.pace.get("b", 1) == every
    patience = max(LATELY, 2 * every)
    assert attendance.patience("b") == patience
    gone = [attendance.count({"b"}) for _ in range(patience + 3)]
    assert gone.index(True) == patience - 1 and sum(gone) == 1
    assert attendance.gone("ab") == {"b"} and attendance.away("b") == patience


def test_one_outage_makes_no_slow_feature():
    attendance = counted(["ab"] * 5 + ["a"] * 1000 + ["ab"])
    assert attendance.pace == {"b": LATELY + 1}
    for _ in range(LATELY):
        assert not attendance.full
        attendance.count(())
    assert attendance.full


def test_no_pace_is_beyond_the_slowest():
    attendance = counted((["ab"] + ["a"] * (3 * SLOWEST)) * 20)
    assert attendance.pace["b"] == SLOWEST


def test_a_stranger_is_taken_up_in_three_of_eight_rows_or_at_its_fifth_reading():
    strangers = Strangers()
    for _ in range(RARELY - 1):
        for row in [{"x"}, *[set()] * (FORGOTTEN - 1)]:
            strangers.count(row, set())
            assert strangers.rising() == []
    strangers.count({"x"}, set())
    assert strangers.rising() == ["x"] and strangers.marks["x"].pace == FORGOTTEN // 2
    often = Strangers()
    for row in ({"x"}, set(), set(), {"x"}, set(), set(), {"x"}):
        assert often.rising() == []
        often.count(row, set())
    assert often.rising() == ["x"] and often.marks["x"].pace == 1


def test_a_stranger_that_is_too_slow_is_forgotten():
    strangers = Strangers()
    for _ in range(3 * RARELY):
        strangers.count({"x"}, set())
        for _ in range(FORGOTTEN):
            strangers.count(set(), set())
        assert strangers.marks == {}


def test_who_was_not_there_lately_makes_room_the_longest_away_first():
    strangers = Strangers(room=9)
    for row in ("x", "", "y", *[""] * 8):
        strangers.count(set(row), set())
    strangers.count({"u", "v"}, set())
    assert list(strangers.marks) == ["y", "u", "v"]
    assert strangers.count({"p", "q"}, set()) == ("q",)
    assert set(strangers.marks) == {"u", "v", "p"}
    strangers.shrink(5)
    assert len(strangers.marks) == 1 and strangers.room == 5


# -- the spaces


def beside(every: int, *periods: tuple[str, int]) -> list[str]:
    """Return rows of these features, as many of each as told, and every so often the feature s."""
    rows = [names for names, times in periods for _ in range(times)]
    return [names + ("s" if t % every == 0 else "") for t, names in enumerate(rows)]


@pytest.mark.parametrize("every", [1, 6, 10, 19])
def test_a_slow_feature_stops_nothing(every):
    """Others join, come in another's place and swap as they do where each is in all rows."""
    alone = ("abcd", 300)
    ways = {
        "late": ([alone, ("abcdx", 100)], ["OPEN", "JOIN"], "abcdsx"),
        "one instead": ([alone, ("abcdx", 10), ("abcx", 100)], ["OPEN", "GROW"], "xabcs"),
        "most instead": ([alone, ("abcdxyz", 10), ("axyz", 100)], ["OPEN", "SWAP", "SURE"], "xyzas"),
        "all others": ([alone, ("abcdwxyz", 10), ("wxyz", 100)], ["OPEN", "SWAP", "SURE"], "wxyzs"),
    }
    for way, (periods, kinds, names) in ways.items():
        tracker = Tracker(tuple("abcds"))
        assert [change[1] for change in told(tracker, *beside(every, *periods))] == kinds, way
        assert "".join(map(str, tracker.current)) == names and not tracker.attendance.gone("s"), way


@pytest.mark.parametrize("every", [4, 10, 19])
def test_a_slow_feature_that_comes_later_joins(every):
    tracker = Tracker(tuple("abcd"))
    changes = told(tracker, *repeated("abcd", 50), *beside(every, ("abcd", every * RARELY + LATE_ROWS + 5)))
    assert [change[1:3] for change in changes] == [("OPEN", "s"), ("JOIN", "s")]
    assert changes[0][0] == 50 + every * (RARELY - 1)


def test_devices_that_report_in_turn_are_one_space():
    """Rows of two devices, one after the other: neither has gone, though each is away in every other row."""
    tracker = Tracker(tuple("ab"))
    kinds = [change[1] for change in told(tracker, *repeated("ab", 10), *["xy", "ab"] * 200)]
    assert set(tracker.current) == set("abxy") and tracker.upcoming is None
    assert kinds.count("SWAP") <= 1 and kinds[-1] == "GROW"
    longer = Tracker(tuple("ab"))
    kinds = [change[1] for change in told(longer, *[*repeated("ab", 4), *repeated("xy", 4)] * 200)]
    assert kinds.count("SWAP") <= 1 and set(longer.current) == set("abxy")


def test_after_a_pause_it_takes_a_longer_one_to_swap():
    tracker = Tracker(("a", "b"))
    told(tracker, *repeated("abcd", 10), *repeated("cd", 3), *repeated("abcd", 3))
    assert tracker.current == ("a", "b") and tracker.pause == 4
    assert told(tracker, *repeated("cd", 3), "abcd") == []
    assert [change[:2] for change in told(tracker, *repeated("cd", 6))] == [(3, "SWAP"), (4, "SURE")]
    assert tracker.pause == 1


def test_a_space_that_paused_does_not_go_on_in_the_next_one():
    tracker = Tracker(("a", "b"))
    told(tracker, *repeated("cd", 2), *repeated("abcd", 4), *repeated("cd", 8))
    told(tracker, "ab", *repeated("cd", 12))
    assert tracker.current == ("c", "d")


# -- files


def test_marks_of_earlier_files_are_read():
    header, content, body = parts_of(made("bank, newcomers").to_bytes())
    start, stop = header["marks"]["data_offsets"]
    pairs = np.frombuffer(body[start:stop], np.uint8).reshape(-1, 2)
    model = SF2EL.from_bytes(closed(header, content, body))
    marks = model._tracker.strangers.marks
    assert [mark.lately for mark in marks.values()] == pairs[:, 0].tolist()
    # The same features with a byte each: what was not counted then follows from it.
    header["marks"] = {"dtype": "U8", "shape": [len(pairs)], "data_offsets": [start, stop - len(pairs)]}
    for name, entry in header.items():
        if name not in ("__metadata__", "marks") and entry["data_offsets"][0] >= stop:
            entry["data_offsets"] = [offset - len(pairs) for offset in entry["data_offsets"]]
    del content["tracker"]["pause"]
    lately = np.array([mask or 1 for mask in pairs[:, 0]], np.uint8)
    before = SF2EL.from_bytes(closed(header, content, body[:start] + lately.tobytes() + body[stop:]))
    read = before._tracker.strangers.marks
    assert list(read) == list(marks) and before._tracker.pause == 1
    assert all(read[name] == mark for name, mark in marks.items() if mark.lately)


@pytest.mark.parametrize("pair", [(0, 32), (1, 0), (1, 1 | 32), (3, 32), (1, 6 << 5), (0, FORGOTTEN | 32)])
def test_marks_that_no_rows_leave_are_refused(pair):
    header, content, body = parts_of(made("bank, newcomers").to_bytes())
    start, stop = header["marks"]["data_offsets"]
    changed = body[:start] + bytes(pair) + body[start + 2 :]
    assert stop >= start + 2
    with pytest.raises(ValueError, match="was in no row"):
        SF2EL.from_bytes(closed(header, content, changed))


@pytest.mark.parametrize("pause", [0, LONGEST_PAUSE + 1, -3, 1.5, "4", None])
def test_a_pause_that_no_rows_make_is_refused(pause):
    header, content, body = parts_of(made("bank").to_bytes())
    content["tracker"]["pause"] = pause
    with pytest.raises(ValueError, match="not a whole sf2el model"):
        SF2EL.from_bytes(closed(header, content, body))


@pytest.mark.parametrize(("absent", "pace"), [(0, 1), (0, SLOWEST + 1), (LATELY + 1, 0), (21, 10)])
def test_counts_that_no_rows_make_are_refused(absent, pace):
    model = made("bank")
    model._tracker.attendance = Attendance({"a0": absent} if absent else {}, {"a0": pace} if pace else {})
    with pytest.raises(ValueError, match="a feature"):
        SF2EL.from_bytes(model.to_bytes())


def test_a_mark_in_two_bytes_is_the_mark():
    for rows in range(1 << 9):
        there = [bool(rows >> bit & 1) for bit in range(9)]
        mark = Mark()
        for row in there:
            mark = mark.after(row)
        model = made("bank")
        model._tracker.strangers.marks = {"new": mark}
        if rows % 37 == 0:
            assert SF2EL.from_bytes(model.to_bytes())._tracker.strangers.marks == {"new": mark}


# -- the model

Plan = Callable[[int, int], bool]


def right(plan: Plan, budget: str = "64KiB", rows: int = 1200) -> np.ndarray:
    """Return the share of right answers in each row, where features are there as planned.

    They are twelve views of three hidden numbers; one row of ten has a label.
    """
    seeds = 4
    found = np.zeros(rows)
    for seed in range(seeds):
        rng = np.random.default_rng(seed + 70)
        hidden = rng.normal(size=(rows, 3))
        views = hidden @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(rows, 12))
        truth = hidden @ rng.normal(size=3) > 0
        model = SF2EL(budget=budget, seed=seed)
        for t in range(rows):
            x = {f"f{j}": float(views[t, j]) for j in range(12) if plan(t, j)}
            found[t] += model.predict_one(x) == truth[t]
            model.learn_one(x, bool(truth[t]) if rng.random() < 0.1 else None)
        check_bytes(model)
    return found / seeds


def replaced(t: int, j: int) -> bool:
    return j < 2 or (j in (2, 3) and t < 600) or (j in (4, 5) and t >= 590)


@pytest.mark.parametrize("budget", ["4KiB", "64KiB"])
def test_replaced_sensors_are_followed_beside_a_slow_one(budget):
    usual = right(replaced, budget=budget)[650:].mean()
    slow = right(lambda t, j: replaced(t, j) or (j == 7 and t % 10 == 0), budget=budget)[650:].mean()
    never = right(lambda t, j: j < 2, budget=budget)[650:].mean()
    assert usual > never + 0.02 and slow > usual - 0.01


def test_sensors_that_report_in_turn_are_learned_from():
    turns = right(lambda t, j: j == t % 6)[600:].mean()
    assert turns > 0.58


@pytest.mark.parametrize("repaired", [1, 2])
def test_an_old_sensor_that_is_repaired_does_not_cost_the_next_map(repaired):
    def three(t: int, j: int) -> bool:
        return (j < 4 and t < 400) or (4 <= j < 8 and 390 <= t < 900) or (j >= 8 and t >= 890)

    usual = right(three)[900:1000].mean()
    back = right(lambda t, j: three(t, j) or (j < repaired and t >= 650))[900:1000].mean()
    assert usual > 0.75 and back > usual - 0.05


def slow_rows(rows: int, seed: int = 0) -> list[tuple[dict[str, float], int | None]]:
    rng = np.random.default_rng(seed)
    told = []
    for t in range(rows):
        z = rng.normal(size=3)
        x = {"a": z[0], "b": z[1]} if t < 150 else {"c": z[0] + z[1], "d": z[2]}
        if 140 <= t < 150:
            x |= {"c": z[0] + z[1], "d": z[2]}
        if t % 7 == 3:
            x["s"] = z[2]
        if t >= 200 and t % 12 == 0:
            x["r"] = z[1]
        told.append(({k: float(v) for k, v in x.items()}, int(z[0] > 0) if rng.random() < 0.4 else None))
    return told


def test_counts_are_saved_to_the_bit():
    stream = slow_rows(340)
    straight, often = SF2EL(budget="8KiB"), SF2EL(budget="8KiB")
    for t, (x, y) in enumerate(stream):
        straight.learn_one(x, y)
        often.learn_one(x, y)
        if t % 3 == 0:
            often = SF2EL.from_bytes(often.to_bytes())
        assert state_of(often) == state_of(straight)
    assert straight._tracker.attendance.pace["s"] > LATELY
    assert set(straight._stage.current.names) == {"c", "d", "s", "r"}
