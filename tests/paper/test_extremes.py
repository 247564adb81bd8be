"""No setting and no row that is let in makes anything infinite; what is not let in changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import LOSSES, same_state, stream

from sf2el import SF2EL, SF2ELRegressor
from sf2el.core import native
from sf2el.paper.kernels import RBF, Constant, Laplacian, Linear, Polynomial
from sf2el.paper.learner import build_learner
from sf2el.paper.settings import LearnerSettings

# -- extreme settings and rows

POWERS = st.integers(-100, 100).map(lambda power: 10.0**power)
POSITIVE = st.one_of(st.sampled_from([1e-100, 1e-3, 1.0, 1e3, 1e20, 1e50, 1e100]), POWERS)
NOT_NEGATIVE = st.one_of(st.just(0.0), POSITIVE)
VALUES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e-100, 1e18, 1e19, -1e19, 1e50, 1e100, -1e100]),
    st.floats(-1e100, 1e100),
)

PLAIN_KERNELS = st.one_of(
    POSITIVE.map(RBF),
    POSITIVE.map(Laplacian),
    POSITIVE.map(Constant),
    st.just(Linear()),
    st.builds(Polynomial, degree=st.integers(1, 16), gamma=POSITIVE, offset=NOT_NEGATIVE),
)
SOME_KERNELS = st.one_of(
    PLAIN_KERNELS, st.tuples(PLAIN_KERNELS, PLAIN_KERNELS).map(lambda two: two[0] + two[1])
)

# (projection, keep_gram): the exact projection needs the Gram matrix.
PROJECTIONS = st.sampled_from([("exact", True), ("pursuit", True), ("pursuit", False)])

SETTINGS = st.builds(
    lambda projection, **others: LearnerSettings(projection=projection[0], keep_gram=projection[1], **others),
    projection=PROJECTIONS,
    kernel=SOME_KERNELS,
    graph_width=NOT_NEGATIVE,
    loss=st.sampled_from(LOSSES),
    ridge=NOT_NEGATIVE,
    smoothness=NOT_NEGATIVE,
    step=POSITIVE,
    label_rate=st.one_of(st.none(), st.sampled_from([1e-300, 1e-100, 0.3, 1.0])),
    manifold=st.booleans(),
    equations=st.sampled_from(["gradient", "printed", "printed-weighted"]),
    cap=st.booleans(),
    pursuit_steps=st.sampled_from([1, 2, 10]),
    on_skip=st.sampled_from(["drop", "project"]),
    sampling=st.sampled_from(["reservoir", "stratified"]),
    radius=st.one_of(st.just(1e4), POSITIVE),
)


@st.composite
def streams(draw, values=VALUES, dim=2):
    """12 rows, some of them the same, labelled or not: enough to fill a buffer of 4, replace and skip."""
    pool = draw(st.lists(st.lists(values, min_size=dim, max_size=dim), min_size=1, max_size=6))
    rows = draw(st.lists(st.sampled_from(pool), min_size=12, max_size=12))
    y = draw(st.lists(st.sampled_from([1.0, -1.0, np.nan]), min_size=12, max_size=12))
    return np.array(rows), np.array(y)


def assert_all_finite(learner_settings, rows, y, precision):
    learner = build_learner(learner_settings, rows.shape[1], 4, 1, precision)
    scores, risks = learner.run(rows, y)
    frozen_scores, frozen_risks = learner.run(rows, y, frozen=True)
    state = learner.state()
    for name, numbers in {
        "scores": scores,
        "risks": risks,
        "frozen scores": frozen_scores,
        "frozen risks": frozen_risks,
        "predictions": learner.predict_many(rows),
        "beta": state["beta"],
        "gram": state["gram"] if learner_settings.keep_gram else 0.0,
        "weights": state["weights"],
        "rows": state["rows"],
    }.items():
        assert np.all(np.isfinite(numbers)), name
    assert np.all(risks >= 0.0)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(learner_settings=SETTINGS, table=streams())
@settings(max_examples=150)
def test_extreme_settings_and_rows_stay_finite_without_a_warning(precision, learner_settings, table):
    assert_all_finite(learner_settings, *table, precision)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(learner_settings=SETTINGS, table=streams(values=st.floats(-3, 3)))
@settings(max_examples=80)
def test_extreme_settings_on_plain_rows_stay_finite_without_a_warning(precision, learner_settings, table):
    assert_all_finite(learner_settings, *table, precision)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Linear(), Polynomial(degree=3), RBF(1.0) + Linear()], ids=repr)
@given(table=streams())
@settings(max_examples=30)
def test_extreme_rows_under_plain_settings_stay_finite_without_a_warning(precision, kernel, table):
    assert_all_finite(LearnerSettings(kernel=kernel), *table, precision)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(learner_settings=SETTINGS, table=streams())
@settings(max_examples=60)
def test_without_a_label_the_function_stays_zero_under_any_settings(precision, learner_settings, table):
    rows, _ = table
    learner = build_learner(learner_settings, rows.shape[1], 4, 1, precision)
    scores, risks = learner.run(rows, np.full(len(rows), np.nan))
    assert not scores.any()
    assert not risks.any()
    assert not learner.state()["beta"].any()


@pytest.mark.parametrize("precision", ["float64", "float32"])
@given(learner_settings=SETTINGS, table=streams())
@settings(max_examples=60)
def test_without_regularisers_an_unlabelled_round_has_no_risk_under_any_settings(
    precision, learner_settings, table
):
    rows, y = table
    learner = build_learner(
        replace(learner_settings, ridge=0.0, smoothness=0.0), rows.shape[1], 4, 1, precision
    )
    _, risks = learner.run(rows, y)
    assert not risks[np.isnan(y)].any()


@pytest.mark.parametrize("projection", ["exact", "pursuit"])
@pytest.mark.parametrize("kernel", [Constant(1.0), Linear(), RBF(1e-100)], ids=repr)
@pytest.mark.parametrize("jitter", [1e-300, 1e-20, 1e100])
def test_any_jitter_that_is_allowed_projects_singular_gram_matrices(jitter, kernel, projection):
    rows, y = stream(40, dim=2, seed=1)
    rows[::2] = rows[0]
    learner_settings = LearnerSettings(
        kernel=kernel, jitter=jitter, projection=projection, on_skip="project", step=0.1
    )
    assert_all_finite(learner_settings, rows, y, "float64")


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("y", [1e100, -1e100, 1e60, 0.0])
def test_any_label_that_is_let_in_stays_finite(y, loss, precision):
    rows, _ = stream(12, dim=2, seed=1)
    learner_settings = LearnerSettings(loss=loss, kernel=RBF(1.0) + Linear(), radius=1e100)
    assert_all_finite(learner_settings, rows, np.tile([y, -y], 6), precision)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_many_features_of_the_largest_value_stay_finite(precision):
    rng = np.random.default_rng(0)
    rows = 1e100 * rng.choice([-1.0, 1.0], size=(12, 500))
    _, y = stream(12, seed=1)
    for kernel in (RBF(1.0), Laplacian(1.0), Linear(), Polynomial(degree=2)):
        assert_all_finite(LearnerSettings(kernel=kernel), rows, y, precision)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_a_row_has_kernel_one_with_itself_however_narrow_the_kernel(kernel, precision):
    learner_settings = LearnerSettings(kernel=kernel(1e100), label_rate=1.0, loss="hinge", manifold=False)
    learner = build_learner(learner_settings, 1, 4, 0, precision)
    learner.learn(np.array([0.5]), 1.0)
    assert learner.predict(np.array([0.5])) == 1.0


# -- what is not let in


@pytest.fixture
def learner():
    X, y = stream(30, seed=3)
    learner = build_learner(LearnerSettings(on_skip="project"), 3, 8, 1, "float64")
    learner.run(X, y)
    return learner


BAD_ROWS = {
    "narrow": np.zeros(2),
    "wide": np.zeros(4),
    "nan": np.array([0.0, np.nan, 0.0]),
    "inf": np.array([0.0, np.inf, 0.0]),
    "-inf": np.array([0.0, 0.0, -np.inf]),
    "beyond": np.array([1.1e100, 0.0, 0.0]),
}
REFUSED = r"This row has \d+ values|An array row holds NaN, infinity"


@pytest.mark.parametrize("bad", BAD_ROWS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda learner, x: learner.predict(x),
        lambda learner, x: learner.predict_many(x[None, :]),
        lambda learner, x: learner.learn(x, 1.0),
        lambda learner, x: learner.learn(x, np.nan),
        lambda learner, x: learner.run(x[None, :], np.array([1.0])),
        lambda learner, x: learner.run(x[None, :], np.array([1.0]), frozen=True),
    ],
    ids=["predict", "predict_many", "learn", "learn unlabelled", "run", "run frozen"],
)
def test_a_bad_row_is_refused_and_changes_nothing(learner, bad, ask):
    before = learner.state()
    with pytest.raises(ValueError, match=REFUSED):
        ask(learner, BAD_ROWS[bad])
    assert same_state(learner.state(), before)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("bad", ["nan", "inf", "beyond"])
def test_a_bad_row_in_the_middle_of_a_run_is_refused_before_the_first_is_learnt(learner, bad, frozen):
    X, y = stream(20, seed=4)
    X[13] = BAD_ROWS[bad]
    before = learner.state()
    with pytest.raises(ValueError, match=REFUSED):
        learner.run(X, y, frozen)
    assert same_state(learner.state(), before)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 1.1e100])
def test_an_infinite_label_is_refused_and_changes_nothing(learner, bad):
    X, y = stream(20, seed=4)
    before = learner.state()
    with pytest.raises(ValueError, match="A label is infinite or beyond 1e100"):
        learner.learn(X[0], bad)
    y[13] = bad
    with pytest.raises(ValueError, match="A label is infinite or beyond 1e100"):
        learner.run(X, y)
    assert same_state(learner.state(), before)


@pytest.mark.parametrize("entries", [19, 21, 0])
def test_a_run_with_more_or_fewer_labels_than_rows_is_refused(learner, entries):
    X, _ = stream(20, seed=4)
    before = learner.state()
    with pytest.raises(ValueError, match=f"There are 20 rows but {entries} entries"):
        learner.run(X, np.full(entries, np.nan))
    assert same_state(learner.state(), before)


@pytest.mark.parametrize(
    "ask",
    [
        lambda learner: learner.predict(np.zeros((2, 3))),
        lambda learner: learner.predict(np.float64(1.0)),
        lambda learner: learner.learn(np.zeros((2, 3)), 1.0),
        lambda learner: learner.predict_many(np.zeros(3)),
        lambda learner: learner.run(np.zeros(3), np.zeros(1)),
        lambda learner: learner.run(np.zeros((1, 3)), np.zeros((1, 1))),
        lambda learner: learner.learn(np.zeros(3), np.zeros(1)),
    ],
    ids=[
        "predict table",
        "predict number",
        "learn table",
        "predict_many row",
        "run row",
        "run column of labels",
        "learn array of labels",
    ],
)
def test_an_array_of_the_wrong_shape_is_refused_and_changes_nothing(learner, ask):
    before = learner.state()
    with pytest.raises((ValueError, TypeError)):
        ask(learner)
    assert same_state(learner.state(), before)


def test_an_empty_run_is_an_empty_answer(learner):
    before = learner.state()
    scores, risks = learner.run(np.zeros((0, 3)), np.zeros(0))
    assert scores.shape == risks.shape == learner.predict_many(np.zeros((0, 3))).shape == (0,)
    assert same_state(learner.state(), before)


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_recovery_map_refuses_bad_rows_and_changes_nothing(bad):
    recovery = native().RecoveryMap(3, 3, 1e-3, True)
    good = np.arange(6.0).reshape(2, 3)
    recovery.observe(good, good)
    before = recovery.state()
    row = BAD_ROWS[bad][None, :]
    for Z, X in ((row, good[:1]), (good[:1], row)):
        with pytest.raises(ValueError, match=REFUSED):
            recovery.observe(Z, X)
    with pytest.raises(ValueError, match="There are 2 rows but 1 entries"):
        recovery.observe(good, good[:1])
    np.testing.assert_array_equal(recovery.state(), before)
    recovery.solve()
    with pytest.raises(ValueError, match=REFUSED):
        recovery.recover(row)


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_hedge_refuses_bad_risks_and_changes_nothing(bad):
    hedge = native().Hedge(3, 0.0)
    hedge.update(np.array([0.1, 0.2, 0.3]))
    before = hedge.state()
    risks = BAD_ROWS[bad]
    with pytest.raises(ValueError, match=REFUSED):
        hedge.update(risks)
    table = np.vstack([np.zeros(len(risks)), risks])
    for scores, rows in ((table, np.zeros((2, 3))), (np.zeros((2, 3)), table)):
        with pytest.raises(ValueError, match=REFUSED):
            hedge.run(scores, rows)
    with pytest.raises(ValueError, match="There are 2 rows but 1 entries"):
        hedge.run(np.zeros((2, 3)), np.zeros((1, 3)))
    np.testing.assert_array_equal(hedge.state(), before)


# -- whole models


def test_a_learner_that_goes_to_single_precision_stays_finite():
    model = SF2EL.paper(budget=3000)
    for t in range(40):
        model.learn_one({"a": 1e50 * (t % 3 - 1), "b": 1.0 * t}, t % 2)
    model.set_budget(1500)
    assert all(np.isfinite(told["score"]) for told in model.explain_one({"a": 1e50, "b": 1.0}).values())
    assert SF2EL.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_gaps_beside_the_largest_values_are_filled_within_what_a_row_may_hold():
    model = SF2EL(budget="16KiB", seed=0)
    sign = [-1.0, 1.0]
    for t in range(46):
        x = {"a": t % 3} if t < 26 else {}
        x |= {"b": sign[t % 2] * 1e100, "c": sign[t % 2]} if t >= 20 else {}
        model.learn_one(x, t % 2)
    assert model.predict_one({"c": 3.0}) in (0, 1)
    model.learn_one({"c": 3.0}, 1)
    model.learn_one({"c": 3.0}, 1, late=True)


def test_a_span_of_time_is_no_number_no_label_and_no_name():
    span = np.timedelta64(3, "D")
    model = SF2EL(budget="4KiB")
    model.learn_one({"a": 1.0}, "u")
    before = model.to_bytes()
    for x, y in (({"a": span}, "new"), ({"a": 1.0}, span), ({span: 1.0}, "u")):
        with pytest.raises(ValueError, match="timedelta64"):
            model.learn_one(x, y)
        assert model.to_bytes() == before
    with pytest.raises(ValueError, match="timedelta64"):
        SF2ELRegressor().learn_one({"a": 1.0}, span)


@pytest.mark.parametrize("label", [1e19, 2.0**63, 1e300])
def test_a_label_beyond_64_bits_is_refused_however_it_comes(label):
    model = SF2EL(budget="4KiB")
    model.learn_one({"a": 1.0}, 0)
    before = model.to_bytes()
    for learn in (
        lambda: model.learn_one({"a": 1.0}, label),
        lambda: model.learn_many([[1.0], [2.0]], [0, label], features=["a"]),
        lambda: model.learn_one({"a": 1.0}, label, late=True),
        lambda: SF2EL(classes=[0, label]),
        lambda: SF2EL(class_weight={0: 1.0, label: 2.0}),
    ):
        with pytest.raises(ValueError, match="64 bits"):
            learn()
        assert model.to_bytes() == before
