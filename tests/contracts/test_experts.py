"""What every expert promises: each kind, seen each way, kept in each form, at each rate of forgetting."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sf2el.core import native
from sf2el.experts.kinds import (
    KIND_NAMES,
    KIND_PRIORS,
    RATE_PRIORS,
    RATES,
    VIEW_PRIORS,
    Code,
    Form,
    Kind,
    View,
)
from sf2el.paper.kernels import RBF
from sf2el.paper.settings import LearnerSettings
from sf2el.paper.strategy import PaperStrategy

SIZED = {Kind.NARROW, Kind.WIDE, Kind.LEARNER}
CODES = [
    Code(kind, view, rate, form, 6 if kind in SIZED else 0)
    for kind in Kind
    for view in View
    for rate in range(len(RATES))
    for form in Form
    if kind is not Kind.LEARNER or (view is View.EXPECTED and rate == 0)
]
TASKS = ["classes", "several", "regression_squared", "regression_absolute"]
NAMES = ["a", "b", "c"]


def fresh(code, task="classes"):
    """A state that may have this expert."""
    if code.kind is Kind.LEARNER:
        settings = LearnerSettings(kernel=RBF(1.0), label_rate=0.5)
        return PaperStrategy(settings=settings, buffer_size=None, scaled=True).new_state()
    return native().State("classes" if task == "several" else task, seed=3)


def state_of(code, task="classes", names=NAMES, room=None):
    """A state of one space with one expert."""
    state = fresh(code, task)
    ids = state.begin(dict.fromkeys(names, 0.5))
    state.open(ids, room or len(names), False, False)
    state.begin_gaps()
    if task == "several":
        state.grow(3)
    state.add(0, code, code.prior, 1.0, [])
    if code.kind is not Kind.LEARNER:
        state.set_weights([1.0])
    state.finish(float("nan"), 1.0)
    state.young_until = state.deaf_until = 0
    return state


def target(task, value):
    if task == "several":
        return float(np.digitize(value, [-0.4, 0.4]))
    return (1.0 if value > 0 else -1.0) if task == "classes" else float(value)


def rows(task, count, seed=0, keep=0.8, names=NAMES):
    rng = np.random.default_rng(seed)
    found = []
    for z in rng.normal(size=(count, len(names))):
        there = rng.random(len(names)) < keep
        there[int(rng.integers(len(names)))] = True
        x = {name: float(v) for name, v, seen in zip(names, z, there, strict=True) if seen}
        found.append((x, target(task, z[0] - 0.5 * z[1]) if rng.random() < 0.7 else float("nan")))
    return found


def teach(state, told):
    for x, y in told:
        assert state.learn(x, y, 1.0) != 2
    return state


def cases(codes=CODES):
    return [
        pytest.param(code, task, id=f"{code.name}-{code.form.name.lower()}-{task}")
        for code in codes
        for task in TASKS
        if code.kind is not Kind.LEARNER or task == "classes"
    ]


@pytest.mark.parametrize(("code", "task"), cases())
def test_the_bytes_declared_are_those_kept(code, task):
    state = state_of(code, task, room=5)
    outputs = 3 if task == "several" else 1
    for _ in range(3):
        ((found, _, _, size),) = state.experts(0)
        assert Code(*found) == code
        assert size == state.expert_bytes(code, 5, 3, outputs)
        assert sum(state.bytes()) + 600 > len(state.save(b"")) > size
        teach(state, rows(task, 20))


@pytest.mark.parametrize(("code", "task"), cases())
def test_clones_and_files_go_on_alike_and_alone(code, task):
    state = teach(state_of(code, task), rows(task, 40))
    before = state.save(b"")
    copied, (loaded, own) = state.copy(), native().State.load(state.save(b"mine"))
    assert own == b"mine"
    assert copied.save(b"") == loaded.save(b"") == before
    teach(copied, rows(task, 30, seed=1))
    assert state.save(b"") == before != copied.save(b"")
    teach(loaded, rows(task, 30, seed=1))
    assert loaded.save(b"") == copied.save(b"")


@pytest.mark.parametrize(("code", "task"), cases())
def test_extreme_values_leave_it_finite(code, task):
    state = teach(state_of(code, task), rows(task, 10))
    rng = np.random.default_rng(0)
    worst = [1e100, -1e100, 0.0, 1e-300, 1e50, -1e30, 3e38, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for t in range(60):
            x = {name: float(rng.choice(worst)) for name in NAMES if rng.random() < 0.8} or {"a": 1e100}
            y = target(task, rng.normal() if "regression" not in task else rng.choice([-1e6, 0.0, 1e6]))
            state.learn(x, y if t % 3 else float("nan"), float(rng.choice([1e-3, 1.0, 1e3])))
            assert np.all(np.isfinite(state.predict(x)))
    assert np.all(np.isfinite(state.predict({"a": 1.0, "b": 0.0, "c": -1.0})))
    assert np.all(np.isfinite(state.standings()))
    native().State.load(state.save(b""))


@pytest.mark.parametrize(("code", "task"), cases())
def test_wider_it_says_what_it_said_and_learns_on(code, task):
    """A feature more, of which nothing is known, changes no score."""
    state = teach(state_of(code, task), rows(task, 60))
    probes = [x for x, _ in rows(task, 8, seed=5)]
    before = [np.array(state.predict(x)) for x in probes]
    ids = state.copy().begin({"a": 1.0, "d": 1.0})
    state.begin({"a": 1.0, "d": 1.0})
    state.widen(0, [max(ids)], 6)
    after = [np.array(state.predict(x)) for x in probes]
    # A flag more is a coordinate at its mean; half precision rounds what it had rounded before.
    np.testing.assert_allclose(after, before, atol=1e-5 if code.form is Form.FULL else 5e-3)
    ((_, _, _, size),) = state.experts(0)
    assert size == state.expert_bytes(code, 6, 3, 3 if task == "several" else 1)
    state.finish(float("nan"), 1.0)
    teach(state, rows(task, 30, seed=2, names=[*NAMES, "d"]))
    assert np.all(np.isfinite(state.predict({"a": 1.0, "d": 2.0})))


@pytest.mark.parametrize("code", [code for code in CODES if code.kind is not Kind.LEARNER], ids=str)
def test_growing_classes_keeps_the_order_of_those_there_were(code):
    state = teach(state_of(code), rows("classes", 80))
    probes = [x for x, _ in rows("classes", 20, seed=5)]
    before = np.array([state.predict(x) for x in probes])
    state.grow(3)
    after = np.array([state.predict(x) for x in probes])
    assert after.shape == (20, 3)
    np.testing.assert_allclose(after.sum(axis=1), 1.0, atol=1e-9)
    sure = np.abs(before) > 0.05
    assert np.array_equal((after[:, 0] > after[:, 1])[sure], (before > 0)[sure])
    assert np.all(after[:, 2] < 0.3)
    state.grow(5)
    assert len(state.predict(probes[0])) == 5
    rng = np.random.default_rng(0)
    for x, _ in rows("classes", 30, seed=6):
        state.learn(x, float(rng.integers(5)), 1.0)
    assert np.all(np.isfinite(state.predict(probes[0])))


@pytest.mark.parametrize(("code", "task"), cases())
def test_it_learns(code, task):
    """Rows of the two classes, or the line, that everybody can tell: after 150 labels it is clearly right."""
    state = state_of(code, task)
    teach(state, rows(task, 250, keep=1.1))
    found, wanted = [], []
    for x, y in rows(task, 200, seed=7, keep=1.1):
        if y == y:
            found.append(state.predict(x))
            wanted.append(y)
    if task == "classes":
        assert np.mean(np.sign(found) == wanted) > (0.57 if code.kind is Kind.LEARNER else 0.8)
    elif task == "several":
        assert np.mean(np.argmax(found, axis=1) == wanted) > 0.55
    else:
        assert np.corrcoef(found, wanted)[0, 1] > 0.8


@pytest.mark.parametrize(("code", "task"), cases([code for code in CODES if code.kind in SIZED]))
def test_fewer_functions_say_nearly_the_same_and_more_exactly(code, task):
    state = teach(state_of(code, task), rows(task, 60, keep=1.1))
    probes = [x for x, _ in rows(task, 20, seed=5, keep=1.1)]
    before = np.array([state.predict(x) for x in probes])
    larger = state.copy()
    assert larger.reshape(0, 0, code._replace(size=9)) == 0.0
    after = np.array([larger.predict(x) for x in probes])
    np.testing.assert_allclose(after, before, atol=1e-5 if code.form is Form.FULL else 5e-3)
    smaller = state.copy()
    moved = smaller.reshape(0, 0, code._replace(size=4))
    assert 0.0 <= moved < np.inf
    assert np.all(np.isfinite([smaller.predict(x) for x in probes]))
    ((found, _, _, size),) = smaller.experts(0)
    assert found[4] == 4 and size < state.experts(0)[0][3]
    teach(smaller, rows(task, 20, seed=8))


@pytest.mark.parametrize(("code", "task"), cases([code for code in CODES if code.kind is not Kind.LEARNER]))
def test_another_form_says_nearly_the_same(code, task):
    state = teach(state_of(code, task), rows(task, 60, keep=1.1))
    probes = [x for x, _ in rows(task, 20, seed=5, keep=1.1)]
    before = np.array([state.predict(x) for x in probes])
    spread = max(1.0, float(np.abs(before).max()))
    for form in Form:
        other = state.copy()
        other.reshape(0, 0, code._replace(form=form))
        after = np.array([other.predict(x) for x in probes])
        np.testing.assert_allclose(after, before, atol=0.02 * spread)
        teach(other, rows(task, 10, seed=9))


@pytest.mark.parametrize("view", [view for view in View if view is not View.EXPECTED])
@pytest.mark.parametrize("kind", [Kind.LINEAR, Kind.LIGHT])
def test_another_view_of_rows_without_gaps_learns_what_the_first_one_does(kind, view):
    """Until the first gap all views are equal: flags are none, zero is never read."""
    told = rows("classes", 60, keep=1.1)
    plain = teach(state_of(Code(kind, form=Form.FULL)), told)
    other = teach(state_of(Code(kind, view, form=Form.FULL)), told)
    probes = [x for x, _ in rows("classes", 20, seed=5, keep=1.1)]
    ours, theirs = ([state.predict(x) for x in probes] for state in (plain, other))
    assert np.mean(np.sign(ours) == np.sign(theirs)) > 0.85


@pytest.mark.parametrize("rate", range(1, len(RATES)))
@pytest.mark.parametrize("kind", [Kind.LINEAR, Kind.NARROW, Kind.WIDE])
def test_one_that_forgets_follows_a_change_sooner(kind, rate):
    """After 600 rows the meaning of the labels is turned round."""
    size = 6 if kind in SIZED else 0
    right = []
    for forget in (0, rate):
        state = state_of(Code(kind, rate=forget, form=Form.FULL, size=size))
        teach(state, rows("classes", 600, keep=1.1))
        hits = 0
        for x, y in rows("classes", 200, seed=4, keep=1.1):
            hits += (state.predict(x) > 0) == (y < 0)
            state.learn(x, -y, 1.0)
        right.append(hits)
    assert right[1] > right[0]


def test_every_kind_view_and_rate_has_a_prior_and_a_name():
    assert set(KIND_PRIORS) == set(KIND_NAMES) == set(Kind)
    assert set(VIEW_PRIORS) == set(View)
    assert len(RATES) == len(RATE_PRIORS)
    assert RATES[0] == 0.0 and all(0.0 < rate < 1.0 for rate in RATES[1:])
    names = [code._replace(form=Form.FULL).name for code in CODES if code.form is Form.FULL]
    assert len(set(names)) == len(names)
    for code in CODES:
        assert 0.0 < code.prior <= 1.0


def test_an_expert_that_is_none_is_refused():
    state = state_of(Code(Kind.LINEAR))
    for code in [(9, 0, 0, 0, 0), (0, 9, 0, 0, 0), (0, 0, 9, 0, 0), (0, 0, 0, 9, 0), (1, 0, 0, 0, 1 << 30)]:
        before = state.save(b"")
        with pytest.raises(ValueError):
            state.add(0, code, 1.0, 0.1, [])
        with pytest.raises(ValueError):
            state.reshape(0, 0, code)
        assert state.save(b"") == before
