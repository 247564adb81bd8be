"""The compiled posterior against Gaussian processes written out in full."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.compiled import OUTPUTS, TASKS, posterior, stream
from oracles.posterior import Posterior, Settings, process, score

CLOSE = {"float64": 1e-8, "float32": 2e-3}
"""Rounding of 2^-53 or 2^-24, times condition numbers of some 1e5 in kernel matrices of rows alike."""

FORMS = {
    "linear": {"size": 0},
    "radial with slopes": {},
    "radial without slopes": {"slopes": False},
    "other scales": {"linear_scale": 2.0, "rbf_scale": 80.0, "bias": 0.4, "gamma": 7.0},
    "forgetting": {"forget": 0.05},
    "linear, forgetting": {"size": 0, "forget": 0.02},
    "centred": {"centred": 0.9, "rbf_scale": 10.0, "slopes": False},
}


def settings(task, **given):
    return Settings(**({"task": task, "outputs": OUTPUTS[task]} | given))


@pytest.mark.parametrize("precision", CLOSE)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task", TASKS)
def test_with_room_for_every_row_it_is_the_full_process(task, form, precision):
    s = settings(task, **FORMS[form])
    X, y, weights = stream(task, 50)
    expert = posterior(s, precision)
    scores, risks = expert.run(X, y, weights)
    wanted, wanted_risks, _ = process(s, X, y, weights)
    close = CLOSE[precision]
    np.testing.assert_allclose(scores, wanted, rtol=close, atol=close)
    np.testing.assert_allclose(risks, wanted_risks, rtol=10 * close, atol=close)
    assert expert.floored == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_at_once_is_what_it_comes_to(weighted):
    """With the noise that each label was given, one linear system says what all of them say together."""
    s = settings("regression_squared", size=0)
    X, y, weights = stream(s.task, 80, labelled=1.0)
    weights = weights if weighted else np.ones(80)
    expert = posterior(s)
    _, risks = expert.run(X, y, weights)
    noise = np.maximum((1.0 + np.cumsum(risks) - risks) / (1.0 + np.arange(80)), 1e-4) / weights
    psi = np.column_stack([X, np.full(80, np.sqrt(s.bias))])
    precision = psi.T @ (psi / noise[:, None]) + np.eye(4) / s.linear_scale
    state = expert.state()
    mean = np.linalg.solve(precision, psi.T @ (y / noise))
    np.testing.assert_allclose(state["coefficients"][0], mean, atol=1e-10)
    covariance = np.eye(4) * s.linear_scale + state["covariance"]
    np.testing.assert_allclose(covariance, np.linalg.inv(precision), atol=1e-10)


@pytest.mark.parametrize("keep_inverse", [True, False])
@pytest.mark.parametrize("form", [form for form in FORMS if FORMS[form].get("size") != 0])
@pytest.mark.parametrize("task", TASKS)
def test_over_budget_the_least_useful_row_is_projected_onto_the_others(task, form, keep_inverse):
    s = settings(task, **(FORMS[form] | {"size": 7, "novelty": 0.01}))
    X, y, weights = stream(task, 150)
    expert, oracle = posterior(s, keep_inverse=keep_inverse), Posterior(s)
    for x, label, weight in zip(X, y, weights, strict=True):
        scores, risk = expert.learn(x, label, weight)
        wanted, wanted_risk = oracle.learn(x, label, weight)
        # The inverse is carried on from row to row, or has a jitter of 1e-12 on rows alike to a hundredth.
        np.testing.assert_allclose(scores, wanted, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(risk, wanted_risk, rtol=1e-6, atol=1e-7)
    rows = expert.state()["rows"]
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], oracle.rows[np.lexsort(oracle.rows.T)])
    assert oracle.removed > 10
    assert expert.floored == 0


@pytest.mark.parametrize("task", ["binary", "regression_squared"])
def test_single_precision_over_budget_stays_near_while_the_same_rows_are_kept(task):
    s = settings(task, size=7, novelty=0.05)
    X, y, weights = stream(task, 150)
    expert, oracle, rounds = posterior(s, "float32"), Posterior(s), 0
    for x, label, weight in zip(X, y, weights, strict=True):
        scores, _ = expert.learn(x, label, weight)
        wanted, _ = oracle.learn(x, label, weight)
        np.testing.assert_allclose(scores, wanted, rtol=5e-3, atol=5e-3)
        rows = expert.state()["rows"]
        if len(rows) != len(oracle.rows) or not np.allclose(
            np.sort(rows, axis=0), np.sort(oracle.rows, axis=0)
        ):
            break  # a near tie between rows went the other way: from here on they are different experts
        rounds += 1
    assert rounds >= 40


def test_covariance_is_that_of_the_function_at_any_two_points():
    """C is posterior minus prior: at new points mean and covariance are a process's conditioned at once."""
    s = settings("regression_squared", linear_scale=2.0, rbf_scale=3.0)
    X, y, weights = stream(s.task, 40, labelled=1.0)
    expert = posterior(s)
    _, risks = expert.run(X, y, weights)
    noise = np.maximum((1.0 + np.cumsum(risks) - risks) / (1.0 + np.arange(40)), 1e-4) / weights
    new = np.random.default_rng(5).normal(size=(20, 3))

    def prior(A, B):
        apart = ((A[:, None] - B[None]) ** 2).sum(axis=2)
        return s.linear_scale * (A @ B.T + s.bias) + s.rbf_scale * np.exp(-s.gamma * apart)

    K, across = prior(X, X) + np.diag(noise), prior(new, X)
    mean = across @ np.linalg.solve(K, y)
    np.testing.assert_allclose(expert.predict_many(new)[:, 0], mean, atol=1e-8)
    state = expert.state()
    apart = ((new[:, None] - state["rows"][None]) ** 2).sum(axis=2)
    psi = np.column_stack([new, np.full(20, np.sqrt(s.bias)), np.exp(-s.gamma * apart)])
    covariance = prior(new, new) + psi @ state["covariance"] @ psi.T
    np.testing.assert_allclose(covariance, prior(new, new) - across @ np.linalg.solve(K, across.T), atol=1e-7)


def test_scores_of_classes_are_softened_by_the_variance():
    s = settings("binary", size=0, linear_scale=4.0, bias=1.0, dim=1)
    expert = posterior(s)
    for label in (1.0, 1.0, -1.0, 1.0):
        expert.learn(np.array([0.5]), label)
    state, psi = expert.state(), np.array([2.0, 1.0])
    variance = psi @ (4.0 * np.eye(2) + state["covariance"]) @ psi
    wanted = score(s, state["coefficients"][0] @ psi, variance)
    np.testing.assert_allclose(expert.predict(np.array([2.0]))[0], wanted, rtol=1e-12)
