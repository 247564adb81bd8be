"""Unlabelled rows between two kept ones say that the function is much the same at both."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.compiled import OUTPUTS, TASKS, posterior, stream
from oracles.posterior import Posterior, Settings, process

TIED = {"tie_noise": 2.0, "tie_power": 2}


def settings(task, **given):
    return Settings(**({"task": task, "outputs": OUTPUTS[task]} | TIED | given))


@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-8), ("float32", 2e-3)])
@pytest.mark.parametrize("slopes", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_with_room_for_every_row_ties_are_readings_of_differences(task, slopes, precision, close):
    s = settings(task, size=45, slopes=slopes)
    X, y, weights = stream(task, 60, labelled=0.4)
    expert = posterior(s, precision)
    scores, _ = expert.run(X, y, weights)
    wanted, _, ties = process(s, X, y, weights)
    np.testing.assert_allclose(scores, wanted, rtol=close, atol=close)
    assert expert.ties == ties > 3
    assert expert.removed == 0
    without = posterior(replace(s, tie_noise=0.0), precision).run(X, y, weights)[0]
    assert np.abs(scores - without).max() > 0.05


@pytest.mark.parametrize("keep_inverse", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_over_budget_ties_are_those_of_the_rows_kept(task, keep_inverse):
    s = settings(task, size=8, novelty=0.01, tie_power=6, forget=0.01, gamma=1.0)
    X, y, weights = stream(task, 200, labelled=0.3)
    expert, oracle = posterior(s, keep_inverse=keep_inverse), Posterior(s)
    for x, label, weight in zip(X, y, weights, strict=True):
        scores, _ = expert.learn(x, label, weight)
        # Rows alike to a hundredth, in an inverse carried on or computed with a jitter of 1e-12.
        np.testing.assert_allclose(scores, oracle.learn(x, label, weight)[0], rtol=1e-7, atol=1e-7)
    assert expert.ties == oracle.ties > 10
    assert oracle.removed > 3
    assert expert.floored == 0


def test_a_tie_is_what_conditioning_on_a_difference_of_zero_gives():
    """All at once: labels of known noise at two places, and f(first) - f(second) = 0 with the tie's noise."""
    s = settings("regression_squared", size=2, gamma=0.5, novelty=0.0)
    first, second, between = np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.4, 0.0, 0.0])
    expert = posterior(s)
    risks = [expert.learn(first, 1.0)[1], expert.learn(second, -0.5)[1]]
    before = expert.predict_many(np.array([first, second]))[:, 0]
    expert.learn(between, np.nan)
    assert expert.ties == 1
    rows = np.array([first, second])
    prior = s.linear_scale * (rows @ rows.T + s.bias)
    prior += s.rbf_scale * np.exp(-s.gamma * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    farther = np.exp(-s.gamma * 0.6**2)
    readings = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    noise = np.diag([1.0, (1.0 + risks[0]) / 2.0, s.tie_noise / farther**s.tie_power])
    told = readings @ prior @ readings.T + noise
    wanted = prior @ readings.T @ np.linalg.solve(told, np.array([1.0, -0.5, 0.0]))
    after = expert.predict_many(rows)[:, 0]
    np.testing.assert_allclose(after, wanted, atol=1e-10)
    assert abs(after[0] - after[1]) < abs(before[0] - before[1])


def test_a_row_apart_from_all_joins_without_a_word_about_the_function():
    s = settings("binary", size=4)
    expert = posterior(s)
    expert.learn(np.zeros(3), 1.0)
    points = np.random.default_rng(0).normal(size=(10, 3))
    before = expert.predict_many(points)
    expert.learn(np.array([2.0, 0.0, 0.0]), np.nan)
    assert (expert.size, expert.ties) == (2, 0)
    np.testing.assert_allclose(expert.predict_many(points), before, rtol=1e-14)


@pytest.mark.parametrize("given", [{"most_ties": 0}, {"tie_noise": 0.0}, {"size": 40}])
def test_unlabelled_rows_say_nothing_where_they_may_not_or_rows_are_few(given):
    s = settings("binary", **({"size": 4} | given))
    expert = posterior(s)
    for x in ([0.0, 0.0, 0.0], [0.5, 0.0, 0.0]):
        expert.learn(np.array(x), 1.0)
    state = expert.state()
    expert.learn(np.array([0.25, 0.0, 0.0]), np.nan)
    after = expert.state()
    assert all(np.array_equal(state[key], after[key]) for key in state)
