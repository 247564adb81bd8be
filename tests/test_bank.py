"""Banks of experts, the online logistic expert, and the weights over experts."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from test_posterior import OUTPUTS, TASKS, sigmoid, stream

from sf2el.core import backend, native_available
from sf2el.experts.posterior import (
    LogisticSettings,
    PosteriorSettings,
    affine_bytes,
    fixed_share_bytes,
    logistic_bytes,
    moments_bytes,
)
from sf2el.paper.kernels import RBF
from sf2el.paper.settings import LearnerSettings

needs_native = pytest.mark.skipif(not native_available(), reason="the compiled core was not built")


def logistic(task, **kwargs):
    return LogisticSettings(**({"task": task, "outputs": OUTPUTS[task], "scale": 3.0**0.5} | kwargs))


def experts(be, task):
    common = {"task": task, "outputs": OUTPUTS[task]}
    made = [
        be.Posterior(PosteriorSettings(size=6, gamma=2.0, **common), 3, "float32"),
        be.Posterior(PosteriorSettings(size=0, **common), 3),
        be.OnlineLogistic(logistic(task), 3),
    ]
    if task != "classes":
        loss = {"binary": "logistic", "regression_squared": "squared"}.get(task, "absolute")
        learner = LearnerSettings(kernel=RBF(2.0), loss=loss, step=0.3, on_skip="project")
        made.insert(1, be.Learner(learner, 3, 8, 1, "float64"))
    return made


def states(bank):
    out = []
    for expert in bank.experts:
        state = expert.state()
        out += list(state.values()) if isinstance(state, dict) else [state]
    return out


def assert_same(a, b):
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(np.asarray(left, dtype=float), np.asarray(right, dtype=float))


# -- the bank


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_a_run_is_predicting_and_learning_row_by_row_to_the_bit(be, task, weighted):
    X, y = stream(task, 120, labelled=0.5)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 120) if weighted else None
    together, loop = be.Bank(experts(be, task)), be.Bank(experts(be, task))
    scores, risks = together.run(X, y, weights)
    count = len(loop.experts)
    assert scores.shape == (120, loop.outputs) == (120, count * OUTPUTS[task])
    own, learned, risk = np.empty(loop.outputs), np.empty(loop.outputs), np.empty(count)
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        loop.predict_into(x, own)
        loop.learn_into(x, label, 1.0 if weights is None else weights[i], False, learned, risk)
        np.testing.assert_array_equal(own, scores[i])
        np.testing.assert_array_equal(risk, risks[i])
        there = ~np.isnan(learned)
        np.testing.assert_array_equal(learned[there], own[there])
        quiet = np.isnan(label) & np.array([not expert.uses_unlabelled for expert in loop.experts])
        np.testing.assert_array_equal(np.isnan(risk), quiet)
        np.testing.assert_array_equal(~there, np.repeat(quiet, OUTPUTS[task]))
    assert_same(states(together), states(loop))
    np.testing.assert_array_equal(together.predict_many(X)[7], [*_one(together, X[7])])


def _one(bank, x):
    out = np.empty(bank.outputs)
    bank.predict_into(x, out)
    return out


def test_a_bank_does_what_its_experts_do_alone(be):
    X, y = stream("binary", 80)
    bank, alone = be.Bank(experts(be, "binary")), experts(be, "binary")
    scores, risks = bank.run(X, y)
    for j, expert in enumerate(alone):
        own, risk = expert.run(X, y)
        np.testing.assert_array_equal(scores[:, j], np.ravel(own))
        np.testing.assert_array_equal(risks[:, j], risk)
    assert bank.nbytes == sum(expert.nbytes for expert in alone)


def test_late_labels_reach_every_expert_its_own_way(be):
    X, y = stream("binary", 40, labelled=1.0)
    bank, alone = be.Bank(experts(be, "binary")), experts(be, "binary")
    scores, risks = np.empty(4), np.empty(4)
    for x, label in zip(X, y, strict=True):
        bank.learn_into(x, np.nan, 1.0, False, scores, risks)
        bank.learn_into(x, label, 2.0, True, scores, risks)
        for j, expert in enumerate(alone):
            expert.learn(x, np.nan)
            own, risk = expert.learn_late(x, label, 2.0)
            assert (scores[j], risks[j]) == (np.ravel(own)[0], risk)


def test_the_experts_live_as_long_as_the_bank_and_stay_reachable(be):
    bank = be.Bank(experts(be, "binary"))
    gc.collect()
    X, y = stream("binary", 30)
    bank.run(X, y)
    assert bank.experts[0].labels == np.count_nonzero(~np.isnan(y))
    assert [expert.outputs for expert in bank.experts] == [1, 1, 1, 1]
    bank.experts[0].learn(X[0], 1.0)
    assert bank.experts[0].labels == np.count_nonzero(~np.isnan(y)) + 1


def test_what_does_not_fit_is_refused_before_anything_is_learned(be):
    with pytest.raises(ValueError, match="needs an expert"):
        be.Bank([])
    with pytest.raises(ValueError, match="share one space"):
        be.Bank([be.OnlineLogistic(logistic("binary"), 2), be.OnlineLogistic(logistic("binary"), 3)])
    bank = be.Bank(experts(be, "classes"))
    X = np.zeros((2, 3))
    before = states(bank)
    for y, weights in (([0.0, 7.0], None), ([0.0, 1.0], [1.0, 0.0]), ([0.0], None), ([0.0, 1.0], [1.0])):
        with pytest.raises(ValueError, match=r"A label|A weight|one for each row"):
            bank.run(X, np.array(y), None if weights is None else np.array(weights))
    scores, risks = np.empty(9), np.empty(3)
    with pytest.raises(ValueError, match="late label"):
        bank.learn_into(X[0], np.nan, 1.0, True, scores, risks)
    with pytest.raises(ValueError, match="one for each row"):
        bank.learn_into(X[0], 1.0, 1.0, False, scores[:5].copy(), risks)
    assert_same(states(bank), before)


@needs_native
@pytest.mark.parametrize("task", TASKS)
def test_banks_of_both_backends_agree(task):
    X, y = stream(task, 200)
    native, numpy = (
        backend(name).Bank(experts(backend(name), task)).run(X, y) for name in ("native", "numpy")
    )
    for ours, theirs in zip(native, numpy, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)


# -- the online logistic expert


@pytest.mark.parametrize("task", TASKS)
def test_the_online_logistic_expert_takes_gradient_steps(be, task):
    s = logistic(task, step=0.2, power=0.4)
    expert, X, y = be.OnlineLogistic(s, 3), *stream(task, 80)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 80)
    scores, risks = expert.run(X, y, weights)
    W, labels = np.zeros((s.outputs, 4)), 0
    for x, label, weight, score, risk in zip(X, y, weights, scores, risks, strict=True):
        row = np.append(x * s.scale, 1.0)
        m = W @ row
        np.testing.assert_allclose(score, m, rtol=1e-9, atol=1e-12)
        if np.isnan(label):
            assert np.isnan(risk)
            continue
        rate = weight * 0.2 / (1 + labels) ** 0.4
        labels += 1
        if task == "binary":
            wanted, loss = (label > 0) - sigmoid(m), np.log1p(np.exp(-label * np.clip(m[0], -8, 8)))
        elif task == "classes":
            wanted = (np.arange(3) == label) - sigmoid(m)
            each = sigmoid(np.clip(m, -8, 8))
            loss = min(-np.log(each[int(label)] / each.sum()), 8)
        elif task == "regression_squared":
            wanted, loss = 2.0 * (label - m), (label - m[0]) ** 2
            rate = min(rate, 0.5 / (row @ row))
        else:
            wanted, loss = np.sign(label - m), abs(label - m[0])
        assert risk == pytest.approx(loss, rel=1e-9)
        W = W + np.outer(rate * wanted, row)
    np.testing.assert_allclose(expert.state(), np.append(W.ravel(), labels), rtol=1e-9, atol=1e-12)
    assert expert.nbytes == logistic_bytes(3, s.outputs) == expert.state().nbytes


@pytest.mark.parametrize("task", TASKS)
def test_the_online_logistic_experts_state_carries_on_to_the_bit(be, task):
    X, y = stream(task, 60)
    whole, first, second = (be.OnlineLogistic(logistic(task), 3) for _ in range(3))
    scores, risks = whole.run(X, y)
    first.run(X[:25], y[:25])
    second.set_state(first.state())
    for other in (second, first.copy()):
        for i in range(25, 60):
            np.testing.assert_array_equal(other.predict(X[i]), scores[i])
            own, risk = other.learn(X[i], y[i])
            np.testing.assert_array_equal([*own, risk], [*scores[i], risks[i]])
        np.testing.assert_array_equal(other.state(), whole.state())


@pytest.mark.parametrize("task", TASKS)
def test_extreme_rows_leave_the_online_logistic_expert_finite(be, task):
    rng = np.random.default_rng(3)
    X = rng.choice([-1e100, -1.0, 0.0, 1e3, 1e100], (300, 3))
    y = stream(task, 300, labelled=1.0)[1]
    scores, risks = be.OnlineLogistic(logistic(task, step=10.0), 3).run(X, y)
    assert np.isfinite(scores).all()
    if task != "regression_squared":  # whose risk is a square of what may be 1e100
        assert np.isfinite(risks).all()


# -- weights over experts


def shared_by_hand(prior, share, losses):
    w = np.array(prior) / np.sum(prior)
    for row in losses:
        if not np.isnan(row).any():
            w = w * np.exp(-row)
            w = (1 - share) * w / w.sum() + share / len(w)
    return w


def test_weights_follow_the_losses_and_are_shared(be):
    losses = np.random.default_rng(4).exponential(size=(50, 3))
    losses[::7, 1] = np.nan
    share = be.FixedShare(np.array([2.0, 2.0, 6.0]), 0.01)
    np.testing.assert_allclose(share.weights, [0.2, 0.2, 0.6])
    np.testing.assert_array_equal(share.average, np.zeros(3))
    for row in losses:
        share.update(row)
    np.testing.assert_allclose(share.weights, shared_by_hand([2, 2, 6], 0.01, losses), rtol=1e-10)
    counted = losses[~np.isnan(losses).any(axis=1)]
    np.testing.assert_allclose(share.average, counted.mean(axis=0), rtol=1e-12)
    assert (share.experts, share.rounds, share.share) == (3, len(counted), 0.01)
    assert share.nbytes == share.state().nbytes == fixed_share_bytes(3, sure=False)


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_weights_survive_losses_of_any_size(be, share):
    weights = be.FixedShare(np.array([0.0, 1e-300, 1.0]), share)
    for losses in ([0.0, 1e90, 1e90], [5e3, 0.0, 1e4], [1e90, 1e90, 0.0], [1e4, 1e4, 1e4]):
        weights.update(np.array(losses))
        assert np.isfinite(weights.weights).all()
        assert weights.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_mixtures_are_weighted_probabilities_and_means(be):
    share = be.FixedShare(np.array([0.2, 0.3, 0.5]), 0.01)
    scores = np.array([-1.0, 0.5, 2.0])
    assert share.mix_binary(scores) == pytest.approx(share.weights @ sigmoid(scores), rel=1e-12)
    assert share.mix_mean(scores) == pytest.approx(share.weights @ scores, rel=1e-12)
    many = np.random.default_rng(5).normal(size=12)
    each = sigmoid(many.reshape(3, 4))
    np.testing.assert_allclose(
        share.mix_classes(many, 4), share.weights @ (each / each.sum(axis=1, keepdims=True)), rtol=1e-12
    )
    assert share.mix_classes(np.full(12, -1e99), 4).tolist() == [0.25] * 4


def labels_for(rng, rows, classes):
    """Labels of one against the other, or of several classes, half of them unknown."""
    y = rng.integers(classes, size=rows).astype(float) if classes > 1 else rng.choice([-1.0, 1.0], size=rows)
    y[rng.random(rows) < 0.5] = np.nan
    return y


@pytest.mark.parametrize("kind", ["log_odds", "classes"])
def test_running_is_mixing_and_following_row_by_row_to_the_bit(be, kind):
    rng = np.random.default_rng(6)
    width = 4 if kind == "classes" else 1
    scores, y = rng.normal(size=(60, 2 * width)), labels_for(rng, 60, width)
    together, loop = be.FixedShare(np.ones(2), 0.02, True), be.FixedShare(np.ones(2), 0.02, True)
    extra = (4,) if kind == "classes" else ()
    mixed, weights = getattr(together, f"run_{kind}")(scores, y, *extra)
    assert mixed.shape == ((60, 4) if kind == "classes" else (60,))
    for i in range(60):
        np.testing.assert_array_equal(loop.weights, weights[i])
        np.testing.assert_array_equal(getattr(loop, f"mix_{kind}")(scores[i], *extra), mixed[i])
        loop.follow(scores[i], y[i])
    np.testing.assert_array_equal(loop.state(), together.state())
    assert loop.rounds == np.isfinite(y).sum()
    resumed = be.FixedShare(np.ones(2), 0.02, True)
    resumed.set_state(loop.state())
    np.testing.assert_array_equal(resumed.state(), loop.state())
    np.testing.assert_array_equal(resumed.sureness, loop.sureness)


def log_loss(log_factor, scores, y):
    """Of one expert in one round, its margins multiplied by a factor."""
    margins = np.exp(log_factor) * np.asarray(scores)
    if len(margins) == 1:
        return np.logaddexp(0.0, -y * margins[0])
    each = sigmoid(margins)
    return -np.log(each[int(y)] / each.sum())


@pytest.mark.parametrize("classes", [1, 3])
def test_sureness_takes_a_newton_step_down_the_log_loss(be, classes):
    rng = np.random.default_rng(7)
    share = be.FixedShare(np.ones(1), 0.01, True)
    curvature, log_factor = 0.0, 0.0
    for scores, y in zip(rng.normal(size=(40, classes)), labels_for(rng, 40, classes), strict=True):
        share.follow(scores, y)
        if np.isnan(y):
            continue
        each = sigmoid(np.exp(log_factor) * scores)
        p = each / each.sum() if classes > 1 else np.array([each[0], 1.0 - each[0]])
        outcomes = range(classes) if classes > 1 else (1.0, -1.0)

        def slope(label, at=log_factor, scores=scores):
            return (log_loss(at + 1e-6, scores, label) - log_loss(at - 1e-6, scores, label)) / 2e-6

        # Expected squared slope: Fisher information, which Newton's step takes for the curvature.
        curvature = 0.99 * curvature + sum(
            q * slope(label) ** 2 for q, label in zip(p, outcomes, strict=True)
        )
        log_factor -= slope(y) / (5.0 + curvature)
        assert share.sureness[0] == pytest.approx(np.exp(log_factor), rel=1e-6)
        assert share.average[0] > 0.0
    assert share.sureness[0] != 1.0


def test_experts_become_as_sure_as_they_are_right(be):
    """One expert is right in 9 rows of 10 and says .6; the other says so, and is right in 6 of 10."""
    rng = np.random.default_rng(8)
    y = rng.choice([-1.0, 1.0], size=2000)
    said = np.log(0.6 / 0.4)
    scores = np.column_stack(
        [y * said * np.where(rng.random(2000) < right, 1.0, -1.0) for right in (0.9, 0.6)]
    )
    share = be.FixedShare(np.ones(2), 0.0, True)
    for row, label in zip(scores, y, strict=True):
        share.follow(row, label)
    timid, honest = sigmoid(share.sureness * said)
    assert timid == pytest.approx(0.86, abs=0.01)  # a factor of e^1.5 is the most
    assert honest == pytest.approx(0.6, abs=0.02)
    assert share.weights[0] > 0.999


@pytest.mark.parametrize("classes", [1, 3])
def test_a_round_counts_as_so_many_as_it_weighs(be, classes):
    """In a mixture that forgets nothing, to first order: a heavy round, and as many light ones."""
    rng = np.random.default_rng(10)
    scores, y = 0.1 * rng.normal(size=(1, 2 * classes)), 1.0
    heavy, light = (be.FixedShare(np.ones(2), 0.0, True) for _ in range(2))
    heavy.follow(scores[0], y, 3.0)
    for _ in range(3):
        light.follow(scores[0], y)
    np.testing.assert_allclose(heavy.weights, light.weights, rtol=2e-3)
    np.testing.assert_allclose(heavy.sureness, light.sureness, rtol=2e-3)
    assert not np.allclose(heavy.sureness, 1.0, rtol=1e-3)
    assert (heavy.rounds, light.rounds) == (1, 3)
    weighed = be.FixedShare(np.ones(2), 0.0, True)
    extra = (classes,) if classes > 1 else ()
    run = weighed.run_classes if classes > 1 else weighed.run_log_odds
    run(scores, np.array([y]), *extra, np.array([3.0]))
    np.testing.assert_array_equal(weighed.state(), heavy.state())


def test_sureness_stays_within_its_limits_whatever_is_said(be):
    share = be.FixedShare(np.ones(3), 0.01, True)
    rng = np.random.default_rng(9)
    for scale in (1e-3, 1.0, 1e3, 1e99):
        for _ in range(50):
            share.follow(rng.normal(size=3) * scale, rng.choice([-1.0, 1.0]))
            assert np.all((np.exp(-1.5) - 1e-12 <= share.sureness) & (share.sureness <= np.exp(1.5) + 1e-12))
            assert np.isfinite(share.state()).all() and share.weights.sum() == pytest.approx(1.0)
    before = share.state()
    share.follow(np.array([1.0, np.nan, 2.0]), 1.0)
    np.testing.assert_array_equal(share.state(), before)
    for wrong in (np.ones(4), np.ones(2), np.ones(0)):
        with pytest.raises(ValueError, match="features"):
            share.follow(wrong, 1.0)
    with pytest.raises(ValueError, match="weight"):
        share.follow(np.ones(3), 1.0, 0.0)
    with pytest.raises(ValueError, match="class"):
        share.run_classes(np.ones((2, 0)), np.zeros(2), 0)
    with pytest.raises(ValueError, match="one of the classes"):
        share.follow(np.ones(9), 3.0)
    with pytest.raises(ValueError, match="one of the classes"):
        share.run_classes(np.ones((2, 9)), np.array([0.0, 0.5]), 3)
    np.testing.assert_array_equal(share.state(), before)


@pytest.mark.parametrize(
    ("prior", "share"), [([], 0.1), ([-1.0, 2.0], 0.1), ([0.0, 0.0], 0.1), ([1.0], 2.0), ([np.nan], 0.1)]
)
def test_a_prior_that_is_none_is_refused(be, prior, share):
    with pytest.raises(ValueError, match="A prior holds"):
        be.FixedShare(np.array(prior, dtype=float), share)


def test_the_other_bytes_are_those_told(be):
    assert be.Moments(5).nbytes == moments_bytes(5)
    assert be.AffineMap(4, 5).nbytes == affine_bytes(4, 5)


def test_a_bank_and_its_experts_agree_on_outputs(be):
    one = experts(be, "binary")[0]
    three = experts(be, "classes")[0]
    for seats, task in (([one], "classes"), ([three], "binary"), ([one, three], "")):
        with pytest.raises(ValueError, match="outputs"):
            be.Bank(seats, task)
