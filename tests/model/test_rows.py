"""Every row goes one way: row by row or in tables, in any order of keys, whatever its numbers are made of."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import MODELS, STREAMS, labels_for, learned, swap, table, twin_of

from sf2el import SF2EL

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")

CASES = [(kind, name) for kind in MODELS for name in STREAMS]


def same(a, b):
    return a == b or (a != a and b != b)


@pytest.mark.parametrize("budget", [4096, 16384])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_table_in_one_call_is_the_loop_bit_for_bit(kind, name, budget):
    make = MODELS[kind]
    loop, many, run = make(budget), make(budget), make(budget)
    rows = labels_for(loop, STREAMS[name]())
    learned(loop, STREAMS[name]())
    X, names, y = table(rows)
    many.learn_many(X, y, features=names)
    run.run_many(X, y, features=names)
    assert many.to_bytes() == loop.to_bytes()
    assert run.to_bytes() == loop.to_bytes()


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*case) for case in CASES],
)
def test_a_run_says_of_each_row_what_predict_says_before_it_is_learned(kind, name):
    loop, run = MODELS[kind](), MODELS[kind]()
    rows = labels_for(loop, STREAMS[name]())
    X, names, y = table(rows)
    track = run.run_many(X, y, features=names)
    for (x, label), said, chance in zip(rows, track.prediction, track.probability, strict=True):
        assert same(said, loop.predict_one(x))
        if isinstance(loop, SF2EL) and said is not None:
            assert chance == pytest.approx(loop.predict_proba_one(x)[said], abs=1e-12)
        loop.learn_one(x, label)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_tables_cut_anywhere_are_one_table(kind, name):
    make = MODELS[kind]
    whole, parts = make(), make()
    rows = labels_for(whole, STREAMS[name]())
    X, names, y = table(rows)
    whole.learn_many(X, y, features=names)
    cuts = [0, 1, 2, 17, 63, 64, 90, len(rows)]
    for start, stop in pairwise(cuts):
        parts.learn_many(X[start:stop], y[start:stop], features=names)
    assert parts.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_many_predictions_are_those_of_each_row_and_none_changes_anything(kind, name):
    model = MODELS[kind]()
    rows = labels_for(model, STREAMS[name]())
    probes, names, _ = table(STREAMS[name](seed=1)[::9])
    for start in range(0, len(rows), 31):
        learned(model, STREAMS[name]()[start : start + 31])
        before = model.to_bytes()
        observed = [{n: v for n, v in zip(names, x, strict=True) if v == v} for x in probes.tolist()]
        one = [model.predict_one(x) for x in observed]
        many = model.predict_many(probes, features=names)
        assert all(same(a, b) for a, b in zip(many, one, strict=True))
        if isinstance(model, SF2EL):
            chances = model.predict_proba_many(probes, features=names)
            for x, row in zip(observed, chances, strict=True):
                alone = model.predict_proba_one(x)
                assert list(alone.values()) == pytest.approx(row.tolist(), abs=1e-12)
                assert abs(row.sum() - 1.0) < 1e-9 and row.min() >= 0.0
        model.explain_one(rows[start][0])
        model.predict_one({"nobody knows this": 1.0})
        assert model.to_bytes() == before


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_order_of_keys_does_not_matter(kind, name):
    rng = np.random.default_rng(0)
    plain, mixed = MODELS[kind](), MODELS[kind]()
    for x, y in labels_for(plain, STREAMS[name]()):
        keys = list(x)
        rng.shuffle(keys)
        other = {key: x[key] for key in keys}
        assert same(plain.predict_one(x), mixed.predict_one(other))
        plain.learn_one(x, y)
        mixed.learn_one(other, y)
    assert plain.to_bytes() == mixed.to_bytes()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_none_nan_and_absent_mean_not_observed(kind, name):
    rows = STREAMS[name]()
    every = {key for x, _ in rows for key in x} | {"never there"}
    absent, none, nan = (MODELS[kind]() for _ in range(3))
    for x, y in labels_for(absent, rows):
        absent.learn_one(x, y)
        none.learn_one(dict.fromkeys(every) | x, y)
        nan.learn_one(dict.fromkeys(every, float("nan")) | x, y)
    assert absent.to_bytes() == none.to_bytes() == nan.to_bytes()


NUMBERS = {
    "int": int,
    "bool": lambda v: bool(v % 2),
    "numpy float32": np.float32,
    "numpy float64": np.float64,
    "numpy int": np.int16,
    "numpy bool": lambda v: np.bool_(v % 2),
    "fraction": Fraction,
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", MODELS)
def test_numbers_of_any_kind_are_the_same_numbers(kind, number):
    made = NUMBERS[number]
    plain, other = MODELS[kind](), MODELS[kind]()
    for t in range(90):
        names = ["a", "b"] if t < 50 else ["a", "b", "c"] if t < 60 else ["c"]
        given = {name: made((t * (3 + j)) % 7) for j, name in enumerate(names)}
        x = {name: float(value) for name, value in given.items()}
        assert same(plain.predict_one(x), other.predict_one(given))
        plain.learn_one(x, t % 2)
        other.learn_one(given, t % 2)
    assert plain.to_bytes() == other.to_bytes()


def test_a_decimal_is_no_number_to_python_and_is_refused_as_such():
    with pytest.raises(ValueError, match="not a number"):
        SF2EL().learn_one({"a": Decimal("1.0")})


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
        | st.integers(-(10**60) + 1, 10**60 - 1)
        | st.sampled_from(["0", 0, "", " ", "-1", -1, "\0", "é", "1e5", 2**64, -(2**63)]),
        min_size=2,
        max_size=6,
        unique=True,
    )
)
def test_any_text_and_any_whole_number_is_a_name_and_stays_the_same(names):
    model = SF2EL(budget="16KiB")
    half = len(names) // 2
    for t in range(40):
        there = names[:half] if t < 25 else names if t < 30 else names[half:]
        model.learn_one({name: float((t * (j + 3)) % 5) for j, name in enumerate(there)}, t % 2)
    twin = twin_of(model)
    x = dict.fromkeys(names[half:], 1.0)
    assert twin.predict_proba_one(x) == model.predict_proba_one(x)
    for each in (twin, model):
        each.learn_one(x, 1)
    assert twin.to_bytes() == model.to_bytes()


def test_zero_and_its_text_are_two_features():
    one, two = SF2EL(), SF2EL()
    for t in range(30):
        one.learn_one({0: float(t % 3)}, t % 2)
        two.learn_one({"0": float(t % 3)}, t % 2)
    assert one.to_bytes() != two.to_bytes()
    assert one.explain_one({0: 1.0}) and not one.explain_one({"0": 1.0})


def test_numpy_whole_numbers_name_what_python_s_do():
    one, two = SF2EL(), SF2EL()
    for t in range(30):
        one.learn_one({0: float(t % 3), 1: 1.0 * t}, t % 2)
        two.learn_one({np.int64(0): float(t % 3), np.uint8(1): 1.0 * t}, t % 2)
    assert one.to_bytes() == two.to_bytes()


BAD_ROWS = {
    "empty": {},
    "nothing observed": {"a0": None, "a1": float("nan")},
    "infinite": {"a0": float("inf")},
    "minus infinite": {"a0": 1.0, "b0": float("-inf")},
    "too large": {"a0": 1.1e100},
    "a huge whole number": {"a0": 10**400},
    "text": {"a0": "warm"},
    "complex": {"a0": 1j},
    "list": {"a0": [1.0]},
    "array": {"a0": np.ones(2)},
    "time": {"a0": np.timedelta64(3, "s")},
    "a stranger's text": {"a0": 1.0, "never seen": "x"},
    "a tuple as name": {("a", 0): 1.0},
    "true as name": {True: 1.0},
    "None as name": {None: 1.0},
    "a float as name": {1.5: 1.0},
    "half a character": {"\ud800": 1.0},
    "a name beyond all": {10**60: 1.0},
    "no dict": [("a0", 1.0)],
    "none": None,
    "a number": 3.0,
}


@pytest.mark.parametrize(
    "bad",
    BAD_ROWS,
)
@pytest.mark.parametrize("kind", MODELS)
def test_an_invalid_row_gets_one_sentence_and_changes_nothing(kind, bad):
    row = BAD_ROWS[bad]
    for rows in (0, 30, 70, 100):
        model = learned(MODELS[kind](), swap()[:rows])
        before = model.to_bytes()
        asked = [model.predict_one, model.learn_one, lambda x, m=model: m.learn_one(x, 1)]
        asked.append(model.explain_one if rows else model.predict_one)
        if rows:
            asked.append(lambda x, m=model: m.learn_one(x, 1, late=True))
        for ask in asked:
            with pytest.raises(ValueError) as refused:
                ask(row)
            text = str(refused.value)
            assert "\n" not in text and text.endswith(".") and len(text) < 200
            assert model.to_bytes() == before


BAD_TABLES = {
    "infinite": ([[1.0], [np.inf]], None, ["a0"]),
    "too large": ([[1.0], [-2e100]], None, ["a0"]),
    "an empty row": ([[1.0, 2.0], [np.nan, np.nan]], None, ["a0", "a1"]),
    "one dimension": ([1.0, 2.0], None, ["a0"]),
    "three dimensions": (np.ones((2, 1, 1)), None, ["a0"]),
    "names too few": ([[1.0, 2.0]], None, ["a0"]),
    "names twice": ([[1.0, 2.0]], None, ["a0", "a0"]),
    "labels too few": ([[1.0], [2.0]], [1], ["a0"]),
    "labels too many": ([[1.0]], [1, 0], ["a0"]),
    "text": ([["warm"]], None, ["a0"]),
    "name": ([[1.0]], None, [("a", 0)]),
    "half a character": ([[1.0]], None, ["\ud800"]),
}


@pytest.mark.parametrize("bad", BAD_TABLES)
@pytest.mark.parametrize("kind", MODELS)
def test_an_invalid_table_changes_nothing(kind, bad):
    X, y, names = BAD_TABLES[bad]
    for rows in (0, 70):
        model = learned(MODELS[kind](), swap()[:rows])
        before = model.to_bytes()
        for learn in (model.learn_many, model.run_many):
            with pytest.raises(ValueError) as refused:
                learn(X, y, features=names)
            assert "\n" not in str(refused.value)
            assert model.to_bytes() == before


@pytest.mark.parametrize("kind", MODELS)
def test_a_table_with_an_invalid_last_row_changes_nothing(kind):
    model = learned(MODELS[kind](), swap()[:50])
    X, names, y = table(labels_for(model, swap()[50:]))
    X[-1, 0] = np.inf
    before = model.to_bytes()
    for learn in (model.learn_many, model.run_many):
        with pytest.raises(ValueError):
            learn(X, y, features=names)
        assert model.to_bytes() == before


BAD_LABELS = {"a list": [1], "infinite": float("inf"), "half": 0.5, "a dict": {}, "complex": 1j, "empty": ""}


@pytest.mark.parametrize("bad", BAD_LABELS)
def test_an_invalid_label_changes_nothing(bad):
    for rows in (0, 40, 70):
        model = learned(SF2EL(), swap()[:rows])
        before = model.to_bytes()
        with pytest.raises(ValueError) as refused:
            model.learn_one({"a0": 1.0, "fresh": 2.0}, BAD_LABELS[bad])
        assert "\n" not in str(refused.value)
        with pytest.raises(ValueError):
            model.learn_many([[1.0], [2.0]], [0, BAD_LABELS[bad]], features=["a0"])
        assert model.to_bytes() == before


@pytest.mark.parametrize("kind", MODELS)
def test_rows_and_tables_are_left_as_they_were(kind):
    model = MODELS[kind]()
    rows = labels_for(model, swap())
    for x, y in rows:
        before = dict(x)
        model.predict_one(x)
        model.learn_one(x, y)
        assert x == before and list(x) == list(before)
    X, names, y = table(rows)
    copies = X.copy(), list(names), list(y)
    model.learn_many(X, y, features=names)
    assert np.array_equal(X, copies[0], equal_nan=True) and names == copies[1] and y == copies[2]


@pytest.mark.parametrize("kind", MODELS)
def test_one_seed_gives_the_same_bits(kind):
    one, two = (learned(MODELS[kind](seed=3), swap()) for _ in range(2))
    assert one.to_bytes() == two.to_bytes()


def test_an_empty_table_changes_nothing():
    model = learned(SF2EL(), swap()[:40])
    before = model.to_bytes()
    model.learn_many(np.empty((0, 2)), features=["a0", "q"])
    track = model.run_many(np.empty((0, 2)), [], features=["a0", "q"])
    assert len(track.prediction) == len(track.space) == 0
    assert model.to_bytes() == before


def test_a_mapping_that_is_no_dict_is_a_row():
    from types import MappingProxyType

    one, two = SF2EL(), SF2EL()
    for x, y in swap():
        one.learn_one(x, y)
        two.learn_one(MappingProxyType(x), y)
    assert one.to_bytes() == two.to_bytes()


def test_a_shared_feature_beside_a_space_that_returns_is_said_alike_in_one_call():
    """All features of the current space are missing but one that it shares: a run says what predict says."""
    rng = np.random.default_rng(3)
    spaces = {"A": ("a", "s", "u"), "B": ("b", "s", "v", "w")}
    order = ["A"] * 200 + ["AB"] * 10 + ["B"] * 190 + ["AB"] * 6 + ["A"] * 30
    columns = ("a", "b", "s", "u", "v", "w")
    hidden = rng.normal(size=(len(order), 6))
    names = [{name for space in here for name in spaces[space]} for here in order]
    X = np.array(
        [
            [v if c in own else np.nan for c, v in zip(columns, row, strict=True)]
            for row, own in zip(hidden, names, strict=True)
        ]
    )
    y = (hidden[:, 2] + hidden[:, 0] > 0).astype(int)
    labels = [int(label) if t % 2 else None for t, label in enumerate(y)]
    loop, run = SF2EL(budget="8KiB"), SF2EL(budget="8KiB")
    said = run.run_many(X, labels, features=columns)
    for t, row in enumerate(X):
        x = {c: v for c, v in zip(columns, row.tolist(), strict=True) if v == v}
        assert loop.predict_one(x) == said.prediction[t]
        if t > 5:
            assert max(loop.predict_proba_one(x).values()) == pytest.approx(said.probability[t], abs=1e-12)
        loop.learn_one(x, labels[t])
    assert loop.to_bytes() == run.to_bytes()


def test_risks_are_counted_from_the_last_change_of_the_spaces():
    """A log loss of two classes is near its own size right after a swap, not that of all labels before over one."""
    rng = np.random.default_rng(4)
    model = SF2EL(budget="16KiB")
    for t in range(330):
        a = rng.normal(size=3)
        old, new = {f"a{i}": v for i, v in enumerate(a)}, {f"b{i}": v for i, v in enumerate(a[::-1])}
        model.learn_one(old if t < 300 else old | new if t < 320 else new, int(a[0] > 0))
    assert {name.split()[0] for name in model.risk()} == {"recovered", "current"}
    assert all(risk < 3.0 for risk in model.risk().values())
