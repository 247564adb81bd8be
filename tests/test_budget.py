"""The budget as a contract: what is counted is what is kept, and it is never more than was allowed."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_model import Frame, state_of

from sf2el import RBF, SF2EL, LearnerSettings
from sf2el._core import native_available
from sf2el.budget import hedge_bytes, learner_bytes, map_bytes, names_bytes, parse_budget, scaler_bytes
from sf2el.events import BUFFERS
from sf2el.plan import ENOUGH_ROWS, FORMS, check_least

BACKENDS = ("native", "numpy")


LEAST = 521
"""Bytes of the smallest model: one feature with a name of one byte, two rows, four events."""

A, B, C = ["a0", "a1", "a2", "a3"], ["b0", "b1", "b2"], ["c0", "c1"]


@pytest.fixture(params=BACKENDS)
def backend(request) -> str:
    if request.param == "native" and not native_available():
        pytest.skip("the compiled core was not built")
    return request.param


# -- reading a budget


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (1, 1),
        (4096, 4096),
        ("4096", 4096),
        ("4096B", 4096),
        ("2KB", 2000),
        ("2KiB", 2048),
        ("2kib", 2048),
        ("3MB", 3_000_000),
        ("3MiB", 3 * 1024 * 1024),
        (" 64 KiB ", 65536),
        ("1.5KiB", 1536),
        ("0.5 MB", 500_000),
        ("1000.9", 1000),
    ],
)
def test_a_budget_is_read(given, size):
    assert parse_budget(given) == size


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        True,
        1.5,
        None,
        b"4KiB",
        "",
        "KiB",
        "-4KiB",
        "4 potatoes",
        "4KiBB",
        "1,000",
        "1e3",
        "nan",
        "inf",
        "0",
        "0.5B",
        "9" * 400 + "MB",
    ],
)
def test_what_is_no_budget_is_refused_in_one_sentence(given):
    with pytest.raises(ValueError, match="budget must be") as raised:
        parse_budget(given)
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError):
        SF2EL(budget=given)


def test_a_budget_that_can_hold_nothing_is_refused_at_once_with_the_least(backend):
    with pytest.raises(ValueError, match=f"least is {LEAST} bytes"):
        SF2EL(budget=LEAST - 1, backend=backend)
    model = SF2EL(budget=LEAST, backend=backend)
    for t in range(20):
        model.learn_one({"a": float(t % 3)}, t % 2)
        assert model.memory_usage() <= LEAST
    assert model.memory_usage() == LEAST
    with pytest.raises(ValueError, match=f"{LEAST}"):
        check_least(model._recipe.settings, 1)
    with pytest.raises(ValueError, match=f"{LEAST}"):
        model.set_budget(100)


# -- what is counted is what is kept


LEARNERS = {
    "matrices": LearnerSettings(),
    "stratified": LearnerSettings(sampling="stratified"),
    "pursuit": LearnerSettings(projection="pursuit"),
    "no matrices": LearnerSettings(projection="pursuit", keep_gram=False),
    "no matrices, stratified": LearnerSettings(projection="pursuit", keep_gram=False, sampling="stratified"),
}


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_has_the_bytes_told(be, name, precision):
    settings = LEARNERS[name]
    for dim in (1, 3, 10):
        for rows in (2, 3, 7, 16, 61):
            learner = be.Learner(settings, dim, rows, 0, precision)
            assert learner.nbytes == learner_bytes(settings, dim, rows, precision)
            learner.run(np.random.default_rng(0).normal(size=(100, dim)), np.resize([1.0, np.nan, -1.0], 100))
            assert learner.nbytes == learner_bytes(settings, dim, rows, precision)


RESIDENT = """
import os
from pathlib import Path
import numpy as np
from sf2el import LearnerSettings
from sf2el._core import backend

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

lean = {{"projection": "pursuit", "keep_gram": False}}
be, settings = backend("native"), LearnerSettings(**({{}} if {matrices} else lean))
X, y = np.random.default_rng(0).normal(size=(20, {dim})), np.ones(20)
be.Learner(settings, {dim}, {rows}, 0, "{precision}").run(X, y)
before, kept = resident(), []
for seed in range(2000):
    kept.append(be.Learner(settings, {dim}, {rows}, seed, "{precision}"))
    kept[-1].run(X, y)
print(kept[0].nbytes, (resident() - before) / len(kept))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
@pytest.mark.parametrize(
    ("matrices", "dim", "rows", "precision"),
    [(True, 10, 39, "float64"), (False, 10, 169, "float64"), (False, 10, 339, "float32")],
)
def test_the_compiled_learner_really_takes_so_much(matrices, dim, rows, precision):
    code = RESIDENT.format(matrices=matrices, dim=dim, rows=rows, precision=precision)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told, taken = map(float, done.stdout.split())
    assert 15_000 < told < 17_500
    # Above it: the parameters and the Python object, a few hundred bytes a learner.
    assert 0.97 * told < taken < 1.03 * told + 600


def test_maps_scalers_and_weights_have_the_bytes_told(be):
    for new_dim, old_dim in ((1, 1), (3, 7), (10, 2)):
        psi = be.RecoveryMap(new_dim, old_dim, 1e-3, False)
        rng = np.random.default_rng(0)
        psi.observe(rng.normal(size=(5, new_dim)), rng.normal(size=(5, old_dim)))
        psi.solve()
        assert psi.state().nbytes == map_bytes(new_dim, old_dim)
        assert be.Scaler(old_dim).state().nbytes == scaler_bytes(old_dim)
    for experts in (1, 2):
        assert be.Hedge(experts, 0.0).state().nbytes == hedge_bytes(experts)


def rows_of(names: list[str], count: int, seed: int) -> tuple[np.ndarray, list[int | None]]:
    """Rows that share what they come from, whatever the space, so that a map exists; a third labelled."""
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(count, 4))
    mixed = [np.random.default_rng(ord(name[0]) * 10 + int(name[1])).normal(size=4) for name in names]
    labels = [int(row[0] * row[1] > 0) if rng.random() < 0.34 else None for row in source]
    return source @ np.array(mixed).T, labels


def learn(model: SF2EL, names: list[str], count: int, seed: int) -> None:
    rows, labels = rows_of(names, count, seed)
    model.learn_many(rows, labels, features=names)


def one_space(budget: int, backend: str, rows: int = 300) -> SF2EL:
    model = SF2EL(budget=budget, seed=3, backend=backend)
    learn(model, A, rows, 0)
    return model


def two_spaces(budget: int, backend: str, rows: int = 250) -> SF2EL:
    """A model that has lost four features and has three, with a map between them."""
    model = SF2EL(budget=budget, seed=3, backend=backend)
    learn(model, A, rows, 0)
    learn(model, A + B, 20, 1)
    learn(model, B, rows, 2)
    return model


def seats(model: SF2EL) -> list[Any]:
    stage = model._stage
    assert stage is not None
    return [stage.current.seat] if stage.recovered is None else [stage.recovered.seat, stage.current.seat]


def kept_by(model: SF2EL) -> int:
    """The bytes of the arrays and texts a model keeps, counted from its parts."""
    stage = model._stage
    assert stage is not None
    size = stage.hedge.core.state().nbytes + model._events._slots.nbytes + 128 + 64
    for space in (stage.current, stage.upcoming):
        if space is not None:
            size += space.scaler.state().nbytes + sum(len(str(name).encode()) for name in space.names)
    for seat in seats(model):
        size += seat.core.nbytes
    if stage.recovered is not None:
        size += stage.recovered.psi.state().nbytes
    if stage.psi is not None:
        size += stage.psi.state().nbytes
    return size


@pytest.mark.parametrize("budget", [1500, 4096, 40_000])
def test_the_parts_sum_to_the_whole_and_are_all_there_is(budget, backend):
    model = SF2EL(budget=budget, backend=backend)
    assert sum(model.memory_usage(detail=True).values()) == model.memory_usage() <= budget
    for names in (A, A + B, B, B + C, C, ["d0"]):
        learn(model, names, 30, len(names))
        assert sum(model.memory_usage(detail=True).values()) == model.memory_usage() <= budget
        assert kept_by(model) == model.memory_usage()


def test_names_count_as_text():
    assert names_bytes(["ab", "ü", 12]) == 2 + 2 + 2
    model = SF2EL(budget=4096)
    model.learn_one({"a" * 500: 1.0})
    assert model.memory_usage(detail=True)["names"] == 500
    assert model.memory_usage() <= 4096


def test_the_bytes_do_not_grow_with_the_rows(backend):
    model = SF2EL(budget=8192, backend=backend)
    learn(model, A, 10, 0)
    used = model.memory_usage()
    learn(model, A, 990, 1)
    assert model.memory_usage() == used


def unused_and_row(model: SF2EL) -> tuple[int, int]:
    last = seats(model)[-1]
    more = replace(last.shape, rows=last.shape.rows + 1)
    return model._budget - model.memory_usage(), more.nbytes(last.dim) - last.shape.nbytes(last.dim)


@pytest.mark.parametrize("budget", [1000, 1501, 3333, 5000, 9999, 30_001, 45_000])
def test_less_than_a_row_is_left_unused(budget, backend):
    model = one_space(budget, backend)
    assert len(model._stage.current.learner.state()["beta"]) == model._stage.current.seat.shape.rows
    left, row = unused_and_row(model)
    assert 0 <= left < row


@pytest.mark.parametrize("budget", [2000, 3333, 5000, 9999, 30_001])
def test_less_than_a_row_is_left_unused_in_two_spaces(budget, backend):
    if backend == "numpy" and budget not in (3333, 9999):
        pytest.skip("the same plan, slower")
    model = two_spaces(budget, backend, rows=450 if budget > 10_000 else 150)
    assert model._stage.recovered is not None
    for seat in seats(model):
        assert len(seat.core.state()["beta"]) == seat.shape.rows
    left, row = unused_and_row(model)
    assert 0 <= left < row


# -- what gives way, and when


def form_of(model: SF2EL) -> int:
    shape = seats(model)[-1].shape
    forms = [(form.matrices, form.precision) for form in FORMS]
    return forms.index((shape.settings.keep_gram, shape.precision))


def test_what_gives_way_gives_way_in_order(backend):
    model = two_spaces(64 * 1024, backend, rows=150)
    steps = []
    for budget in np.geomspace(64 * 1024, LEAST + 150, 60).astype(int).tolist():
        total = model.events().total
        try:
            model.set_budget(budget)
        except ValueError as refused:
            assert "at least" in str(refused)
            break
        assert model.memory_usage() <= budget
        recovered = model._stage.recovered is not None
        steps.append((not recovered, form_of(model), [seat.shape.rows for seat in seats(model)]))
        texts = [event.text for event in model.events().last][-(model.events().total - total) :]
        if len(model.events().last) >= 4:
            assert f"budget {budget} bytes" in texts
            if len(steps) > 1 and steps[-1] != steps[-2]:
                assert any(
                    text.startswith("buffers of") and FORMS[form_of(model)].text in text for text in texts
                )
            if not recovered and not steps[-2][0]:
                assert any("its learner and its map were dropped" in text for text in texts)
    # Matrices go first, then float64, then rows, then the vanished space; a form once left is not taken
    # again before the vanished space makes room.
    assert [alone for alone, _, _ in steps] == sorted(alone for alone, _, _ in steps)
    both = [(form, rows) for alone, form, rows in steps if not alone]
    assert [form for form, _ in both] == sorted(form for form, _ in both)
    assert {form for form, _ in both} == {0, 1, 2}
    for form in range(3):
        kept = [rows for f, rows in both if f == form]
        assert kept == sorted(kept, reverse=True)
        assert form == 2 or min(min(rows) for rows in kept) >= ENOUGH_ROWS
    assert min(min(rows) for _, rows in both) < ENOUGH_ROWS
    assert steps[-1][0]
    assert model.weights() == {"current": 1.0}


def test_without_room_for_a_map_the_new_learner_starts_alone_and_says_so(backend):
    wide = [f"w{i}" for i in range(10)] + [f"x{i}" for i in range(2)]
    model = SF2EL(budget=1300, backend=backend)
    learn(model, A, 60, 0)
    learn(model, A + wide, 20, 1)
    assert model.memory_usage() <= 1300
    assert model._stage.psi is None
    learn(model, wide, 60, 2)
    assert model._stage.recovered is None
    assert model.memory_usage() <= 1300
    assert model.weights() == {"current": 1.0}
    if len(model.events().last) >= 2:
        assert any("no room for a map" in event.text for event in model.events().last)


def test_the_plan_is_relaxed_when_the_old_space_is_gone(backend):
    model = two_spaces(6000, backend)
    tight = seats(model)[-1].shape
    learn(model, C, 300, 5)
    assert model._stage.recovered is None
    fresh = SF2EL(budget=6000, backend=backend)
    learn(fresh, C, 10, 5)
    assert seats(model)[-1].shape == seats(fresh)[-1].shape
    assert seats(model)[-1].shape.rows > tight.rows
    assert model.memory_usage() <= 6000


def test_a_space_that_does_not_fit_tells_how_many_bytes_are_needed_and_changes_nothing(backend):
    model = SF2EL(budget=1200, seed=1, backend=backend)
    learn(model, A, 50, 0)
    before, used = state_of(model), model.memory_usage()
    wide = {f"wide{i}": float(i) for i in range(60)}
    now = dict.fromkeys(A, 1.0)
    for row in (wide, now | wide):
        with pytest.raises(ValueError, match="at least") as raised:
            model.learn_one(row, 1)
        assert "\n" not in str(raised.value)
        assert state_of(model) == before and model.memory_usage() == used
    learn(model, A, 10, 1)


def test_the_bytes_asked_for_suffice_and_one_less_does_not(backend):
    row = {f"f{i}": float(i) for i in range(40)}
    with pytest.raises(ValueError) as raised:
        SF2EL(budget=1000, backend=backend).learn_one(row)
    told = max(map(int, re.findall(r"\d+", str(raised.value))))
    enough = told if told > 1000 else 1000 + told
    least = SF2EL(budget=enough, backend=backend)
    least.learn_one(row)
    assert least.memory_usage() <= enough
    with pytest.raises(ValueError, match="at least"):
        SF2EL(budget=enough - 1, backend=backend).learn_one(row)


def test_a_frame_whose_last_space_does_not_fit_changes_nothing(backend):
    model = SF2EL(budget=1200, backend=backend)
    rows = np.full((6, 61), np.nan)
    rows[:3, 0] = [1.0, 2.0, 3.0]
    rows[3:, 1:] = 1.0
    before = state_of(model)
    with pytest.raises(ValueError, match="at least"):
        model.learn_many(Frame([f"f{i}" for i in range(61)], rows), [1, 0, 1, 0, 1, 0])
    assert state_of(model) == before


def test_a_refused_budget_changes_nothing(backend):
    model = two_spaces(8192, backend, rows=100)
    before, used = state_of(model), model.memory_usage(detail=True)
    for given in (LEAST - 1, LEAST + 20, "3 potatoes", 0):
        with pytest.raises(ValueError) as raised:
            model.set_budget(given)
        assert "\n" not in str(raised.value)
        assert state_of(model) == before
        assert model.memory_usage(detail=True) == used
    learn(model, B, 20, 7)
    assert model.memory_usage() <= 8192


# -- the budget at run time


def test_a_budget_set_before_the_first_row_is_kept(backend):
    for budget in (LEAST + 1, 700, 2000, 100_000):
        model = SF2EL(budget="64KiB", backend=backend)
        model.set_budget(budget)
        assert model.memory_usage() <= budget
        learn(model, ["a0"], 30, 0)
        assert model.memory_usage() <= budget


@pytest.mark.parametrize("budget", [900, 1100, 1500])
def test_a_model_shrunk_to_a_budget_takes_what_a_new_one_of_that_budget_would(budget, backend):
    # The log of events has to give way too: it has 1 KiB of a budget of 64 KiB.
    model = one_space(64 * 1024, backend, rows=200)
    fresh = one_space(budget, backend, rows=200)
    model.set_budget(budget)
    assert model.memory_usage() <= budget
    assert seats(model)[-1].shape.rows >= seats(fresh)[-1].shape.rows - 1


def scores(model: SF2EL, names: list[str], probes: np.ndarray) -> np.ndarray:
    return np.array([model._score_one(dict(zip(names, row, strict=True))) for row in probes.tolist()])


def moved(model: SF2EL, since: int) -> dict[int, float]:
    """The errors told since an event, from the log's numbers."""
    log = model._events
    slots = [log._slots[i % len(log._slots)] for i in range(since, log.total)]
    return {int(rows): error for _, kind, rows, error in slots if int(kind) == BUFFERS + len(FORMS)}


@pytest.mark.parametrize("smaller", [30_000, 8_000, 5_000, 3_200])
def test_a_shrink_moves_predictions_by_no_more_than_it_tells(smaller, backend):
    model = two_spaces(40_000, backend)
    probes = rows_of(B, 60, 9)[0]
    weights, before = model.weights(), scores(model, B, probes)
    single = {role: [model.explain_one(dict(zip(B, p, strict=True)))[role]["score"] for p in probes.tolist()]
              for role in weights}  # fmt: skip
    sizes = [len(seat.core.state()["beta"]) for seat in seats(model)]
    total = model.events().total
    model.set_budget(smaller)
    assert model._stage.recovered is not None
    errors, bound = moved(model, total), 0.0
    for role, seat, size in zip(("recovered", "current"), seats(model), sizes, strict=True):
        rows = seat.shape.rows
        told = errors.get(rows, 0.0)
        assert (told > 0.0) == (rows < size)
        slack = 1e-9 if seat.shape.precision == "float64" else 1e-4
        after = [model.explain_one(dict(zip(B, p, strict=True)))[role]["score"] for p in probes.tolist()]
        assert np.max(np.abs(np.array(after) - single[role])) <= told + slack
        bound += weights[role] * told + slack
    assert model.weights() == weights
    change = np.max(np.abs(scores(model, B, probes) - before))
    assert change <= bound
    assert change > 0.0


def test_the_error_in_the_text_is_not_less_than_the_error(backend):
    # Three digits, rounded to the nearest, would be a bound that does not hold.
    for rows in range(300, 330, 6):
        model = one_space(40_000, backend, rows=rows)
        total = model.events().total
        model.set_budget(1_500)
        (error,) = moved(model, total).values()
        (text,) = [event.text for event in model.events().last if "moved by" in event.text]
        assert float(re.search(r"moved by (\S+)", text)[1]) >= error


@pytest.mark.parametrize(
    ("small", "large", "tolerance"),
    [
        (3_000, 3_500, 1e-9),  # float32 both times
        (6_000, 9_000, 1e-9),  # float64 without matrices
        (40_000, 60_000, 1e-9),  # matrices
    ],
)
def test_growing_changes_no_prediction(small, large, tolerance, backend):
    model = one_space(small, backend)
    probes = rows_of(A, 40, 9)[0]
    before, rows, total = scores(model, A, probes), seats(model)[0].shape.rows, model.events().total
    model.set_budget(large)
    assert seats(model)[0].shape.rows > rows
    np.testing.assert_allclose(scores(model, A, probes), before, atol=tolerance)
    assert moved(model, total) == {}
    learn(model, A, 250, 10)
    assert len(seats(model)[0].core.state()["beta"]) == seats(model)[0].shape.rows
    assert model.memory_usage() <= large


@pytest.mark.parametrize(
    ("spaces", "small", "large"), [(1, 2_500, 70_000), (1, 20_000, 30_000), (2, 4_000, 70_000)]
)
def test_growing_never_gives_up_rows_that_are_there(spaces, small, large, backend):
    # Through every form: more bytes must not cost rows, even where matrices would now fit.
    model = one_space(small, backend) if spaces == 1 else two_spaces(small, backend)
    names = A if spaces == 1 else B
    probes = rows_of(names, 40, 9)[0]
    before = scores(model, names, probes)
    for budget in np.geomspace(small, large, 60).astype(int).tolist():
        total = model.events().total
        held = [len(seat.core.state()["beta"]) for seat in seats(model)]
        model.set_budget(budget)
        assert moved(model, total) == {}
        assert [len(seat.core.state()["beta"]) for seat in seats(model)] == held
        assert model.memory_usage() <= budget
        np.testing.assert_allclose(scores(model, names, probes), before, atol=1e-4)


def test_shrinking_and_growing_while_learning_stays_within_the_budget(backend):
    model = SF2EL(budget=4096, seed=5, backend=backend)
    rng = np.random.default_rng(1)
    for t, names in enumerate([A, A, A + B, B, B + C, B + C, C, C, ["d0"]] * 3):
        if t % 9 == 0 and t:
            names = ["a0", *A[1:]]
        learn(model, names, 25, t)
        budget = int(rng.integers(1_500, 12_000))
        model.set_budget(budget)
        assert model.memory_usage() == kept_by(model) <= budget
        learn(model, names, 25, t + 100)
        assert model.memory_usage() == kept_by(model) <= budget


def test_predicting_a_space_to_come_takes_no_more_than_the_budget(backend):
    model = one_space(3_000, backend, rows=60)
    before = dict(vars(model))
    model.predict_one({f"wide{i}": 1.0 for i in range(500)})
    assert vars(model) == before
    assert model.memory_usage() <= 3_000


def test_a_prediction_of_the_coming_space_follows_the_budget(backend):
    # What is kept to predict a space before it is learned is not kept past a change of the budget.
    model = SF2EL(budget=40_000, seed=3, backend=backend)
    learn(model, A, 200, 0)
    learn(model, A + B, 20, 1)
    probe = dict(zip(B, rows_of(B, 1, 4)[0][0].tolist(), strict=True))
    model.predict_one(probe)
    model.set_budget(800)
    assert model._stage.psi is None
    model.set_budget(40_000)
    after = model.explain_one(probe)
    assert set(after) == {"current"}


def test_the_paper_model_has_no_budget(backend):
    model = SF2EL.paper(buffer_size=10, kernel=RBF(1.0), backend=backend)
    with pytest.raises(ValueError, match="buffer_size"):
        model.set_budget("64KiB")
    learn(model, A, 20, 0)
    before = state_of(model)
    with pytest.raises(ValueError, match="buffer_size"):
        model.set_budget("64KiB")
    assert state_of(model) == before


def test_scratch_and_wrapper_are_told_apart_and_do_not_grow_with_rows(backend):
    model = SF2EL(budget=8_000, backend=backend)
    learn(model, A, 100, 0)
    before = model.memory_overhead()
    learn(model, A, 400, 1)
    after = model.memory_overhead()
    assert before["scratch"] == after["scratch"] == (model._stage.current.learner.scratch_nbytes)
    assert 500 < after["wrapper"] < 8_000
    assert abs(after["wrapper"] - before["wrapper"]) < 200
