"""The learner is the paper's: every step of it against the naive transcription in ``oracle``.

Functions are compared, by their values, and not coefficients: a singular Gram matrix has many.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import oracle
import pytest
from streams import KERNELS, LOSSES, stream, taken_slot

from sf2el.paper.kernels import RBF
from sf2el.paper.learner import build_learner
from sf2el.paper.settings import LearnerSettings

LIVELY = {"graph_width": 0.5, "ridge": 0.02, "smoothness": 0.05, "step": 0.4}
PROBES = np.random.default_rng(99).normal(size=(4, 3))


def assert_close(actual, expected, scale, tolerance):
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * max(1.0, scale))


# -- every row kept


@cache
def unbuffered(settings, rounds, seed):
    X, y = stream(rounds, seed=seed)
    naive = oracle.Unbuffered(settings)
    scores, risks = np.array([naive.learn(*each) for each in zip(X, y, strict=True)]).T
    return X, y, scores, risks, naive.f.at(np.vstack([X, PROBES]))


@pytest.mark.parametrize("manifold", [True, False], ids=["MR", "no-MR"])
@pytest.mark.parametrize("cap", [True, False], ids=["cap", "no-cap"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_with_room_for_every_row_the_learner_is_the_unbuffered_one(kernel, loss, cap, manifold):
    # Large steps on cubic kernels would diverge without the cap, and compare rounding errors.
    step = 0.02 if kernel in ("polynomial", "four") else 0.4
    settings = LearnerSettings(
        kernel=KERNELS[kernel], loss=loss, cap=cap, manifold=manifold, **(LIVELY | {"step": step})
    )
    X, y, scores, risks, values = unbuffered(settings, 20, 1)
    learner = build_learner(settings, 3, 20, 0, "float64")
    learned = np.array([learner.learn(*each) for each in zip(X, y, strict=True)]).T
    assert_close(learned[0], scores, np.abs(scores).max(), 1e-10)
    assert_close(learned[1], risks, np.abs(risks).max(), 1e-10)
    actual = learner.predict_many(np.vstack([X, PROBES]))
    assert_close(actual, values, np.abs(values).max(), 1e-10)


@pytest.mark.parametrize("equations", ["printed", "printed-weighted"])
def test_while_every_row_is_kept_the_printed_equations_are_the_gradient(equations):
    settings = LearnerSettings(equations=equations, **LIVELY)
    X, y, scores, risks, _ = unbuffered(LearnerSettings(**LIVELY), 20, 1)
    learned = build_learner(settings, 3, 20, 0, "float64").run(X, y)
    assert_close(learned[0], scores, np.abs(scores).max(), 1e-10)
    assert_close(learned[1], risks, np.abs(risks).max(), 1e-10)


def test_the_cap_changes_the_step_and_not_the_risk_of_the_same_function():
    steep = LIVELY | {"smoothness": 5.0}
    capped = unbuffered(LearnerSettings(cap=True, **steep), 12, 1)
    free = unbuffered(LearnerSettings(cap=False, **steep), 12, 1)
    assert np.abs(capped[2] - free[2]).max() > 1e-3
    # Up to the first step that the cap shortens, f is the same, and so is J.
    same = np.isclose(capped[2], free[2], rtol=0.0, atol=1e-12)
    first = int(np.argmin(same))
    assert first >= 2
    np.testing.assert_allclose(capped[3][:first], free[3][:first])


# -- a buffer


def assert_steps_follow_oracle(settings, rounds=45, buffer=7, seed=3, tolerance=1e-9):
    """Run a stream, working out every round by hand from the learner's own state before it.

    Returns, for every round after the first: whether it was labelled, q, and ||f|| / radius before the ball.
    """
    X, y = stream(rounds, seed=seed)
    learner = build_learner(settings, 3, buffer, 5, "float64")
    before = learner.state()
    slots, events = [], []
    for x, label in zip(X, y, strict=True):
        score, J = learner.learn(x, label)
        after = learner.state()
        f = oracle.Function.of_state(settings.kernel, before)
        if len(before["beta"]) == 0:
            r = oracle.Round(tuple(x), label, before["seen"], before["labels"], before["clock"])
        else:
            r = oracle.Round.from_state(settings, before, x, label)
        slot = taken_slot(before, after)
        slots.append(slot)
        expected_score, expected_risk = f(r.x), oracle.risk(settings, f, r)
        assert_close(score, expected_score, abs(expected_score), tolerance)
        assert_close(J, expected_risk, abs(expected_risk), tolerance)
        points = np.vstack([after["rows"], PROBES])
        free = oracle.kept(replace(settings, radius=1e100), f, r, slot)
        expected = oracle.into_ball(settings, free).at(points)
        scale = max(np.abs(expected).max(), *map(abs, free.beta))
        assert_close(learner.predict_many(points), expected, scale, tolerance)
        events.append((r.labelled, oracle.overshoot(settings, f, r), free.norm() / settings.radius))
        before = after
    replaced = [slot for slot in slots if slot is not None and slot < buffer]
    assert len(replaced) > 5, "the stream must replace rows"
    assert len([slot for slot in slots[buffer:] if slot is None]) > 5, "the stream must skip rows"
    return events


@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
@pytest.mark.parametrize("on_skip", ["drop", "project"])
@pytest.mark.parametrize("projection", ["exact", "pursuit"])
@pytest.mark.parametrize("equations", ["gradient", "printed", "printed-weighted"])
def test_each_buffered_step_is_the_equations_on_one_more_representer(
    equations, projection, on_skip, sampling
):
    settings = LearnerSettings(
        kernel=RBF(0.4),
        equations=equations,
        projection=projection,
        pursuit_steps=3,
        on_skip=on_skip,
        sampling=sampling,
        **LIVELY,
    )
    assert_steps_follow_oracle(settings)


@pytest.mark.parametrize(
    "changes",
    [
        {"cap": False},
        {"cap": True, "smoothness": 2.0},
        {"label_rate": 0.3},
        {"label_rate": 0.3, "sampling": "stratified", "cap": False, "smoothness": 0.01},
        {"manifold": False},
        {"manifold": False, "on_skip": "project", "sampling": "stratified"},
        {"manifold": False, "projection": "pursuit", "pursuit_steps": 2},
        {"loss": "hinge", "equations": "printed-weighted"},
        {"loss": "squared_hinge", "on_skip": "project"},
        {"loss": "squared", "equations": "printed", "cap": False, "smoothness": 0.01},
        {"ridge": 0.0, "smoothness": 0.0},
        {"jitter": 1e-6, "on_skip": "project"},
        {"jitter": 0.3},
        {"projection": "pursuit", "pursuit_steps": 3, "keep_gram": False},
        {"projection": "pursuit", "keep_gram": False, "on_skip": "project", "sampling": "stratified"},
    ],
    ids=lambda changes: ",".join(f"{name}={value}" for name, value in changes.items()),
)
def test_each_buffered_step_follows_the_other_switches_too(changes):
    assert_steps_follow_oracle(LearnerSettings(**(LIVELY | changes)))


@pytest.mark.parametrize("on_skip", ["drop", "project"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_each_buffered_step_is_right_for_every_kernel(kernel, on_skip):
    step = 0.02 if kernel in ("polynomial", "four") else 0.4
    settings = LearnerSettings(kernel=KERNELS[kernel], on_skip=on_skip, **(LIVELY | {"step": step}))
    assert_steps_follow_oracle(settings)


@pytest.mark.parametrize("keep_gram", [True, False])
@pytest.mark.parametrize("kernel", ["polynomial", "laplacian+linear", "four"])
def test_each_buffered_pursuit_is_right_where_representers_differ_in_length(kernel, keep_gram):
    settings = LearnerSettings(
        kernel=KERNELS[kernel],
        projection="pursuit",
        pursuit_steps=2,
        keep_gram=keep_gram,
        on_skip="project",
        **(LIVELY | {"step": 0.02}),
    )
    assert_steps_follow_oracle(settings)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "polynomial", "rbf+constant"])
@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
def test_each_capped_step_is_right_for_every_kind_of_diagonal(kernel, sampling):
    steep = LIVELY | {"smoothness": 3.0, "step": 0.1 if kernel == "polynomial" else 0.2}
    settings = LearnerSettings(kernel=KERNELS[kernel], sampling=sampling, **steep)
    overshoots = [q for _, q, _ in assert_steps_follow_oracle(settings)]
    assert 5 < sum(q > 1.0 for q in overshoots) < len(overshoots)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"manifold": False},
        {"on_skip": "project", "projection": "pursuit"},
        {"cap": False, "smoothness": 10.0},
        {"kernel": KERNELS["laplacian+linear"], "step": 0.1, "radius": 0.1},
    ],
    ids=lambda changes: ",".join(f"{name}={value}" for name, value in changes.items()) or "default",
)
def test_each_step_ends_in_the_ball(changes):
    settings = LearnerSettings(**(LIVELY | {"radius": 0.2} | changes))
    events = assert_steps_follow_oracle(settings)
    assert sum(1.001 < norm < 1.8 for _, _, norm in events) >= 2, "the ball must be left by a little"
    if not settings.cap:  # an overshooting manifold step leaves it without a label
        assert sum(not labelled and norm > 1.001 for labelled, _, norm in events) > 2


def test_a_step_whose_parts_cancel_in_the_arriving_row_still_ends_in_the_ball():
    # f = K(-1, .) - K(1, .), and a row halfway: its coefficient is 0, yet the step overshoots.
    settings = LearnerSettings(cap=False, smoothness=20.0, ridge=0.0, step=0.1, radius=2.0, graph_width=0.1)
    learner = build_learner(settings, 1, 5, 0, "float64")
    learner.run(np.array([[-1.0], [1.0]]), np.array([np.nan, np.nan]))
    state = learner.state()
    state["beta"] = np.array([1.0, -1.0])
    learner.set_state(state)
    learner.restart()
    f = oracle.Function.of_state(settings.kernel, state)
    r = oracle.Round.from_state(settings, learner.state(), [0.0], np.nan)
    wanted = oracle.stepped(settings, f, r)
    assert f.norm() < 2.0 < 0.7 * wanted.norm()
    assert wanted.beta[-1] == 0.0
    learner.learn(np.array([0.0]), np.nan)
    assert oracle.Function.of_state(settings.kernel, learner.state()).norm() == pytest.approx(2.0, rel=1e-12)


# -- the counters


def next_coefficient(learner, row):
    """The coefficient that this row would get, labelled +1."""
    copy = learner.copy()
    copy.learn(row, 1.0)
    return copy.state()["beta"][-1]


def test_restart_restarts_the_step_and_nothing_else():
    settings = LearnerSettings(label_rate=0.5, smoothness=0.0, ridge=0.0, step=0.4, loss="hinge")
    X, y = stream(15, seed=2)
    learner = build_learner(settings, 3, 40, 0, "float64")
    learner.run(X, y)
    far = np.full(3, 40.0)  # K = 0 to every row: its coefficient is tau * c
    late = next_coefficient(learner, far)
    before = learner.state()
    learner.restart()
    after = learner.state()
    early = next_coefficient(learner, far)
    assert late == pytest.approx(0.4 / np.sqrt(16) / 0.5, rel=1e-14)
    assert early == pytest.approx(0.4 / 0.5, rel=1e-14)
    assert (before.pop("clock"), after.pop("clock")) == (15, 0)
    for key in before:
        np.testing.assert_array_equal(before[key], after[key])


def test_the_estimated_label_rate_is_labels_over_rounds_with_this_one():
    settings = LearnerSettings(manifold=False, loss="hinge", ridge=0.0)
    learner = build_learner(settings, 1, 10, 0, "float64")
    far = iter(np.arange(1.0, 100.0) * 50.0)  # every score is 0, so every hinge loss is 1
    risks = [learner.learn(np.array([next(far)]), y)[1] for y in (1.0, np.nan, np.nan, -1.0, 1.0)]
    assert risks == [1.0, 0.0, 0.0, 4 / 2, 5 / 3]


def test_a_frozen_run_leaves_the_function_and_counts_on_in_the_risk():
    settings = LearnerSettings(**LIVELY)
    X, y = stream(60, seed=4)
    learner = build_learner(settings, 3, 8, 1, "float64")
    learner.run(X[:30], y[:30])
    before = learner.state()
    f = oracle.Function.of_state(settings.kernel, before)
    scores, risks = learner.run(X[30:], y[30:], frozen=True)
    after = learner.state()
    for key in ("rows", "beta", "gram", "kinds", "clock", "rng"):
        np.testing.assert_array_equal(before[key], after[key])
    assert after["seen"] == 60
    assert after["labels"] == np.count_nonzero(~np.isnan(y))
    state = dict(before)
    for i in range(30, 60):
        r = oracle.Round.from_state(settings, state, X[i], y[i])
        assert scores[i - 30] == pytest.approx(f(r.x), rel=1e-10, abs=1e-12)
        assert risks[i - 30] == pytest.approx(oracle.risk(settings, f, r), rel=1e-10)
        state["seen"] += 1
        state["labels"] += int(r.labelled)


def test_without_the_manifold_term_unlabelled_rounds_leave_the_function_while_rows_are_added():
    settings = LearnerSettings(manifold=False, ridge=0.1)
    X, _ = stream(20, seed=5)
    learner = build_learner(settings, 3, 20, 1, "float64")
    learner.learn(X[0], 1.0)
    before = learner.predict_many(PROBES)
    _, risks = learner.run(X[1:], np.full(19, np.nan))
    state = learner.state()
    np.testing.assert_array_equal(learner.predict_many(PROBES), before)
    assert not risks.any()
    assert not state["beta"][1:].any()
    assert len(state["rows"]) == state["clock"] == state["seen"] == 20


def test_without_the_manifold_term_a_replaced_unlabelled_row_changes_nothing():
    # Its coefficient is 0, so there is nothing to spread.
    settings = LearnerSettings(manifold=False)
    X, _ = stream(40, seed=6)
    learner = build_learner(settings, 3, 5, 1, "float64")
    learner.run(X, np.full(40, np.nan))
    assert not learner.state()["beta"].any()
    assert not learner.predict_many(PROBES).any()


def test_the_function_starts_at_zero():
    learner = build_learner(LearnerSettings(), 3, 5, 0, "float64")
    assert learner.predict(np.ones(3)) == 0.0
    assert learner.learn(np.ones(3), np.nan) == (0.0, 0.0)


def test_the_function_never_leaves_the_ball():
    settings = LearnerSettings(radius=0.3, step=3.0, label_rate=0.1, loss="hinge")
    X, y = stream(60, seed=7)
    learner = build_learner(settings, 3, 6, 0, "float64")
    norms = []
    for x, label in zip(X, y, strict=True):
        learner.learn(x, label)
        norms.append(oracle.Function.of_state(settings.kernel, learner.state()).norm())
    assert max(norms) <= 0.3 * (1 + 1e-12)
    assert max(norms) > 0.3 * (1 - 1e-12)


# -- weights and late labels


def test_a_weight_of_one_is_no_weight_to_the_bit():
    settings = LearnerSettings(on_skip="project", **LIVELY)
    X, y = stream(60, seed=3)
    plain, weighted = (build_learner(settings, 3, 9, 0, "float64") for _ in range(2))
    for x, label in zip(X, y, strict=True):
        assert plain.learn(x, label) == weighted.learn(x, label, 1.0)
    np.testing.assert_array_equal(plain.state()["beta"], weighted.state()["beta"])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_multiplies_the_loss_and_nothing_else(loss):
    # Without the manifold term the risk is c * loss, so a weight can go into c = 1 / label_rate.
    common = {"manifold": False, "loss": loss, "step": 0.2, "ridge": 0.0}
    X, y = stream(40, seed=4, labelled=0.6)
    halved = build_learner(LearnerSettings(label_rate=1.0, **common), 3, 40, 0, "float64")
    plain = build_learner(LearnerSettings(label_rate=0.4, **common), 3, 40, 0, "float64")
    for x, label in zip(X, y, strict=True):
        assert halved.learn(x, label, 2.5) == pytest.approx(plain.learn(x, label), rel=1e-12)
    np.testing.assert_allclose(halved.predict_many(PROBES), plain.predict_many(PROBES), rtol=1e-10)


@pytest.mark.parametrize("label_rate", [None, 0.3])
@pytest.mark.parametrize("on_skip", ["drop", "project"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_late_label_is_the_loss_part_of_a_step(loss, on_skip, label_rate):
    settings = LearnerSettings(loss=loss, on_skip=on_skip, label_rate=label_rate, **LIVELY)
    X, y = stream(40, seed=5)
    learner = build_learner(settings, 3, 8, 0, "float64")
    learner.run(X, y)
    kept = learner.state()["rows"][3]
    rng = np.random.default_rng(0)
    for x in (kept, rng.normal(size=3), kept, X[0]):
        before = learner.state()
        f = oracle.Function.of_state(settings.kernel, before)
        point = tuple(map(float, x))
        score, risk = learner.learn_late(x, 1.0, 1.5)
        after = learner.state()
        c = 1.0 / label_rate if label_rate else before["seen"] / (before["labels"] + 1)
        assert score == pytest.approx(f(point), rel=1e-9, abs=1e-12)
        assert risk == pytest.approx(1.5 * c * oracle.loss(loss, f(point), 1.0), rel=1e-9, abs=1e-12)
        tau = settings.step / np.sqrt(before["clock"] + 1)
        new = -tau * c * 1.5 * oracle.slope(loss, f(point), 1.0)
        own = oracle.Function(settings.kernel, (point,), (1.0,))
        if point not in f.rows:
            own = oracle.spread(settings, point, f.rows) if on_skip == "project" else own.scaled(0.0)
        wanted = f.plus(own, times=new).at(PROBES)
        assert_close(learner.predict_many(PROBES), wanted, np.abs(wanted).max(), 1e-9)
        # Nothing but the coefficients and the number of labels moves.
        assert after["labels"] == before["labels"] + 1
        for key in ("rows", "seen", "clock", "rng", "kinds", "weights", "seen_by_kind", "decay"):
            np.testing.assert_array_equal(after[key], before[key])


def test_a_late_label_for_a_row_still_there_moves_its_coefficient_alone():
    learner = build_learner(LearnerSettings(), 3, 8, 0, "float32")
    X, y = stream(40, seed=5)
    learner.run(X, y)
    before = learner.state()
    # The row as it came, before it was rounded to float32.
    x = X[np.flatnonzero(np.all(X.astype(np.float32) == before["rows"][2].astype(np.float32), axis=1))[0]]
    learner.learn_late(x, -1.0)
    changed = np.flatnonzero(learner.state()["beta"] != before["beta"])
    assert changed.tolist() == [2]


def test_a_late_label_keeps_f_in_the_ball():
    learner = build_learner(LearnerSettings(radius=0.5, step=5.0), 3, 8, 0, "float64")
    X, y = stream(20, seed=5)
    learner.run(X, y)
    learner.learn_late(learner.state()["rows"][0], -1.0, 100.0)
    f = oracle.Function.of_state(RBF(1.0), learner.state())
    assert f.norm() <= 0.5 + 1e-9


def test_late_labels_before_any_row_and_without_a_value():
    learner = build_learner(LearnerSettings(on_skip="project"), 3, 8, 0, "float64")
    score, risk = learner.learn_late(np.zeros(3), 1.0)
    assert score == 0.0
    assert risk == pytest.approx(np.log(2.0))
    with pytest.raises(ValueError, match="late label"):
        learner.learn_late(np.zeros(3), np.nan)
    with pytest.raises(ValueError, match="A weight"):
        learner.learn(np.zeros(3), 1.0, 0.0)
