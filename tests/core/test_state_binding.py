"""The way into the native state: a refused call leaves nothing behind, and no caller's code can hurt it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from sf2el import SF2EL
from sf2el.core import native

LIGHT, LINEAR = (3, 0, 0, 0, 0), (0, 0, 0, 0, 0)
NAN = float("nan")


def opened(*names, task="binary"):
    """A state with one space of these features and one light expert, one row old."""
    state = native().State(task)
    ids = state.begin(dict.fromkeys(names or ("a", "b"), 1.0))
    state.open(ids, len(ids), False, False)
    state.add(0, LIGHT, 1.0, 1.0, [])
    state.begin_gaps()
    state.finish(1.0, 1.0)
    return state


def run(state, rows, names, y):
    return state.run(np.atleast_2d(rows), names, np.atleast_1d(y), None, True)


def saved(state):
    data = state.save(b"")
    loaded, _ = native().State.load(data)
    assert loaded.save(b"") == data
    return data


# -- what was refused


@pytest.mark.parametrize("call", ["learn", "learn_late", "finish", "run"])
@pytest.mark.parametrize(("y", "weight"), [(np.inf, 1.0), (1.0, 0.0), (1.0, NAN)])
def test_a_refused_row_leaves_nothing_for_the_next(call, y, weight):
    state, other = opened(), opened()
    if (
        call == "finish"
    ):  # a row that was begun changes how often features are there: on a copy, as the engine does
        state = state.copy()
        state.begin({"a": 1.0})
        other.begin({"a": 1.0})
    with pytest.raises(ValueError, match=r"label|weight"):
        if call == "run":
            state.run(np.ones((1, 2)), ["a", "stranger"], np.array([y]), np.array([weight]), False)
        elif call == "finish":
            state.finish(y, weight)
        else:
            getattr(state, call)({"a": 1.0, "stranger": 1.0}, y, weight)
    if call == "finish":
        other = other.copy()  # without the row at hand
    for one in (state, other):
        assert run(one, [NAN, 1.0], ["a", "b"], 1.0)[0] == 1
    assert saved(state) == saved(other)


def test_a_row_that_asks_for_a_decision_leaves_nothing_for_the_next():
    state, other = opened(), opened()
    for one in (state, other):
        one.wake_at = 0
    assert state.learn({"a": 1.0, "b": 5.0}, 1.0, 1.0) == 2
    for one in (state, other):
        one.wake_at = 1 << 60
        run(one, [1.0, 1.0], ["a", "b"], 1.0)
    assert saved(state) == saved(other)


@pytest.mark.parametrize("y", [3.0, -1.0, 0.5, 1e18])
def test_a_class_that_there_is_no_score_for_is_refused(y):
    state = opened(task="classes")
    state.grow(3)
    row = {"a": 1.0, "b": 1.0}
    for call in (
        lambda: state.learn(row, y, 1.0),
        lambda: state.learn_late(row, y, 1.0),
        lambda: state.finish(y, 1.0),
        lambda: run(state, [1.0, 1.0], ["a", "b"], y),
    ):
        with pytest.raises(ValueError, match="a class from 0 to 2"):
            call()
    assert state.learn(row, 2.0, 1.0) == 0


def test_what_is_not_known_is_said_alike_of_rows_and_tables():
    state, other = opened(), opened()
    rows = np.array([[NAN, NAN, 1.0], [1.0, NAN, 1.0]])
    said = run(state, rows, ["a", "b", "c"], [1.0, 1.0])[2]
    many = other.predict_many(rows, ["a", "b", "c"])
    assert other.predict({"c": 1.0}) is None
    assert np.isnan([said[0, 0], many[0, 0]]).all()
    other.learn({"c": 1.0}, 1.0, 1.0)
    assert said[1, 0] == other.predict({"a": 1.0, "c": 1.0})


# -- features that are given up while their row is at hand


def test_a_feature_given_up_between_begin_and_finish_waits_in_no_row():
    """Its number may be another feature's by then, and a file with it would be refused."""
    state = opened()
    long = "z" * 400
    state.begin({"a": 1.0, "b": 1.0, "q": 1.0, long: 2.0})
    state.candidate_room = 300
    state.shrink_waiting()
    assert state.names(state.candidates()) == ["q"]
    state.finish(1.0, 1.0)
    assert state.waiting_bytes() > 0
    saved(state)


def test_a_space_forgotten_while_its_feature_is_at_hand():
    state = opened("a")
    state.open(state.begin({"c": 1.0}), 1, False, False)
    state.add(1, LIGHT, 1.0, 0.5, [])
    state.finish(1.0, 1.0)
    state.advance()
    state.begin({"c": 1.0, "a": 1.0, "q": 1.0})
    state.forget(0)
    state.finish(1.0, 1.0)
    assert state.names(state.space(0)[0]) == ["c"]
    saved(state)
    state.learn({"c": 1.0, "new": 1.0}, 1.0, 1.0)
    saved(state)


def test_a_feature_of_a_closed_space_that_another_opens_with_keeps_its_name():
    state = opened("a")
    ids = state.begin({"a": 1.0, "c": 1.0, "d": 1.0})
    state.open(ids[1:], 2, False, False)
    state.add(1, LIGHT, 1.0, 0.5, [])
    state.finish(1.0, 1.0)
    state.begin({"a": 1.0, "c": 1.0})
    state.close(ids[1:2])
    assert state.names(ids) == ["a", "c", None]
    state.open(ids[1:2], 1, False, False)
    state.finish(1.0, 1.0)
    assert (state.names(state.space(1)[0]), state.candidates()) == (["c"], [])
    saved(state)


def test_a_space_that_was_back_goes_on_with_half_of_its_features():
    """It closes, and one opens with those of its features that stay: these must be the same features."""
    rng, model = np.random.default_rng(0), SF2EL(budget="64KiB", seed=1)
    a, b = [f"a{i}" for i in range(4)], [f"b{i}" for i in range(4)]
    for names, rows in ((a, 100), (a + b, 20), (b, 180), (a + b, 10), (a[:2] + b, 190)):
        for row in rng.normal(size=(rows, len(names))):
            model.learn_one(dict(zip(names, row.tolist(), strict=True)), bool(row[0] > 0))
    state = model._engine.state
    assert [set(state.names(state.space(s)[0])) for s in range(state.spaces)] == [set(b), set(a[:2])]
    assert any(event.kind == "closed" for event in model.events()[0])
    saved(state)


# -- names


class Name(str):
    """A text that claims to be like no other."""

    def __hash__(self):
        return 7

    def __eq__(self, other):
        return self is other


class Number(int):
    def __hash__(self):
        raise RuntimeError("a hash was asked for")

    def __index__(self):
        raise RuntimeError("an index was asked for")


@pytest.mark.parametrize("name", [np.str_("a"), Name("a")])
def test_a_name_is_what_it_says(name):
    state, row = opened(), {"b": 2.0}
    plain = state.predict(row | {"a": 0.5})
    assert state.predict(row | {name: 0.5}) == plain
    table = state.predict_many(np.array([[2.0, 0.5]]), ["b", name])
    assert table[0, 0] == plain


@pytest.mark.parametrize("name", [np.int64(5), np.uint8(5)])
def test_whole_numbers_of_numpy_are_whole_numbers(name):
    state = opened(5, "b")
    assert state.predict({name: 0.5, "b": 2.0}) == state.predict({5: 0.5, "b": 2.0})
    many = state.predict_many(np.array([[0.5, 2.0]]), [name, "b"])
    assert many[0, 0] == state.predict({5: 0.5, "b": 2.0})


def test_a_row_with_a_feature_twice_is_refused():
    state = opened()
    before = saved(state)
    for row in ({"a": 1.0, Name("a"): 2.0}, {"a": 1.0, Name("q"): 1.0, Name("q"): 2.0}):
        with pytest.raises(ValueError, match="same name"):
            state.learn(row, 1.0, 1.0)
    for names in (["a", "a"], ["q", Name("q")]):
        with pytest.raises(ValueError, match="same name"):
            run(state, [1.0, 1.0], names, 1.0)
    assert saved(state) == before


NO_NAMES = ["\ud800", "n" * 65_535, 10**60, -(10**60), 10**5000, True, (1, 2), 1.5, None]
ODD_NAMES = ["", "n" * 65_534, 10**60 - 1, -(10**60) + 1, "\0", "é"]


@pytest.mark.parametrize("name", NO_NAMES, ids=range(len(NO_NAMES)))
def test_a_name_that_no_file_could_hold_is_refused(name):
    state = opened()
    before = saved(state)
    with pytest.raises(ValueError, match=r"name|UTF|Unicode"):
        state.learn({"a": 1.0, name: 1.0}, 1.0, 1.0)
    with pytest.raises(ValueError, match="rename"):
        run(state, [1.0, 1.0], ["a", name], 1.0)
    assert saved(state) == before


@pytest.mark.parametrize("name", ODD_NAMES, ids=range(len(ODD_NAMES)))
def test_the_longest_and_the_oddest_names_are_kept(name):
    state = opened()
    state.learn({"a": 1.0, name: 1.0}, 1.0, 1.0)
    loaded, _ = native().State.load(state.save(b""))
    assert loaded.names(loaded.candidates()) == [name]


def test_no_name_runs_code_of_its_own():
    state = opened(5, "b")
    assert state.predict_many(np.array([[0.5, 2.0]]), [Number(5), "b"])[0, 0] == state.predict(
        {5: 0.5, "b": 2.0}
    )


def test_a_column_that_uses_the_state_while_its_name_is_read():
    """Its class count grows under the call: what is said must have room for it."""
    state = opened(5, "b", task="classes")

    class Growing:
        def __index__(self):
            if state.outputs == 1:
                state.learn({"b": 1.0}, NAN, 1.0)
                state.grow(300)
            return 5

    said = state.predict_many(np.ones((50, 2)), [Growing(), "b"])
    assert said.shape == (50, 300)


def test_a_value_that_uses_the_state_while_its_row_is_read():
    state, other = opened(), opened()

    class Value(float):
        def __float__(self):
            state.predict({"b": 3.0})
            return 0.5

    assert state.predict({"a": Value(1.0), "b": 2.0}) == other.predict({"a": 0.5, "b": 2.0})


def test_an_error_in_a_value_is_the_callers():
    class Broken(float):
        def __float__(self):
            raise KeyError("mine")

    state = opened()
    with pytest.raises(KeyError, match="mine"):
        state.learn({"b": 1.0, "a": Broken(1.0)}, 1.0, 1.0)
    assert saved(state) == saved(opened())


def test_without_a_reader_a_strange_row_is_refused():
    program = (
        "from sf2el.core import _native as n\n"
        "try: n.State('binary').predict([1])\n"
        "except ValueError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "must be a dict" in done.stdout


# -- numbers that name nothing


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.space(1),
        lambda s: s.experts(1),
        lambda s: s.map(1),
        lambda s: s.feature(9),
        lambda s: s.gone([9]),
        lambda s: s.names([9]),
        lambda s: s.come_back(0, False),
        lambda s: s.forget(0),
        lambda s: s.begin_map(0),
        lambda s: s.remove(1, 0),
        lambda s: s.remove(0, 1),
        lambda s: s.reshape(0, 1, LIGHT),
        lambda s: s.fork(0, 1, LIGHT, 1.0, 0.1),
        lambda s: s.settle(1),
        lambda s: s.drop_map(1),
        lambda s: s.keep_map_as(1, 1),
        lambda s: s.drop_moments(1),
        lambda s: s.keep_moments(1),
        lambda s: s.widen(1, [], 3),
        lambda s: s.add(1, LIGHT, 1.0, 0.1, []),
    ],
)
def test_spaces_and_experts_that_there_are_not(call):
    state = opened()
    before = saved(state)
    with pytest.raises(IndexError):
        call(state)
    assert saved(state) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.open([], 1, False, False),
        lambda s: s.open([0, 1], 1, False, False),
        lambda s: s.open([0, 0], 2, False, False),
        lambda s: s.open([9], 1, False, False),
        lambda s: s.open([0], 1 << 40, False, False),
        lambda s: s.widen(0, [0], 3),
        lambda s: s.widen(0, [9], 3),
        lambda s: s.keep_map_as(0, 0),
        lambda s: s.keep_map_as(0, 259),
        lambda s: s.solution_bytes(1, 1, 4),
        lambda s: s.expert_bytes((5, 0, 0, 0, 0), 1, 1, 1),
        lambda s: s.expert_bytes((256, 0, 0, 0, 0), 1, 1, 1),
        lambda s: s.expert_bytes((0, 0, 200, 0, 0), 1, 1, 1),
        lambda s: s.add(0, (0, 9, 0, 0, 0), 1.0, 0.1, []),
        lambda s: s.reshape(0, 0, (0, 0, 0, -1, 0)),
        lambda s: s.grow(0),
        lambda s: s.grow(2),
        lambda s: s.grow(1025),
        lambda s: s.set_weights([1.0, 1.0]),
    ],
)
def test_shapes_that_there_are_not(call):
    state = opened()
    before = saved(state)
    with pytest.raises(ValueError, match=r"no such|no growing|takes features|no room|form|entries beside"):
        call(state)
    assert saved(state) == before


def test_numbers_do_not_grow_classes():
    with pytest.raises(ValueError, match="outputs"):
        opened(task="regression_squared").grow(3)


# -- files


def checksum(body):
    """As in native/state/file.hpp."""
    mask, lanes = (1 << 64) - 1, [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, len(body)]

    def fold(lane, word):
        lane = ((lane ^ word) * 0xD6E8FEB86659FD93) & mask
        return lane ^ (lane >> 32)

    whole = len(body) // 32 * 32
    for at in range(0, whole, 8):
        k = at // 8 % 4
        lanes[k] = fold(lanes[k], int.from_bytes(body[at : at + 8], "little"))
    for at in range(whole, len(body)):
        lanes[at % 4] = fold(lanes[at % 4], body[at])
    result = 0
    for lane in lanes:
        result = fold(result, lane)
    return result


@pytest.mark.parametrize("name", [b"s\xff\xfe\xff", b"i12x", b"i012", b"i+12", b"i1_2", b"iiii", b"sbbb"])
def test_a_file_with_a_name_that_is_none_is_refused(name):
    """Its checksum is right: it was written so. A name must read back as it was kept, and be there once."""
    state = opened("aaa", "bbb")
    data = state.save(b"")
    body = data[24:].replace(b"saaa", name)
    forged = data[:16] + checksum(body).to_bytes(8, "little") + body
    assert native().State.load(data[:16] + checksum(data[24:]).to_bytes(8, "little") + data[24:])
    if len(name) != 4:
        pytest.fail("the forged name must have the length of the true one")
    with pytest.raises(ValueError, match="name"):
        native().State.load(forged)
