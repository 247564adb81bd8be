"""An expert kept in halves against the naive process: near it, finite, and exact in its prior part."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.compiled import OUTPUTS, TASKS, posterior, stream
from oracles.posterior import Posterior, Settings


def settings(task, **given):
    return Settings(**({"task": task, "outputs": OUTPUTS[task], "novelty": 0.01} | given))


def root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.parametrize(
    "given", [{}, {"slopes": False}, {"size": 0}, {"forget": 0.02}, {"tie_noise": 2.0}], ids=str
)
@pytest.mark.parametrize("keep_inverse", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_scores_stay_near_those_of_the_naive_expert(task, keep_inverse, given):
    """Halves have 11 bits: each update is off by some 2^-12, and the errors of 80 add up as noise does.

    Seen: .0001 to .0015 of the scores' size on average, .003 at most; about three times that is let pass.
    """
    s, oracle = settings(task, **given), Posterior(settings(task, **given))
    X, y, weights = stream(task, 80, labelled=0.7 if s.tie_noise else 1.0)
    expert = posterior(s, "float16", keep_inverse)
    scores, risks = expert.run(X, y, weights)
    wanted = np.array([oracle.learn(*row)[0] for row in zip(X, y, weights, strict=True)])
    assert root_mean_square(scores - wanted) < 0.004 * root_mean_square(wanted)
    assert np.abs(scores - wanted).max() < 0.01 * np.abs(wanted).max()
    assert np.isfinite(risks[~np.isnan(y)]).all()
    assert expert.ties == oracle.ties
    assert (expert.ties > 0) == (s.tie_noise > 0.0)
    assert expert.floored == 0


@pytest.mark.parametrize("keep_inverse", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_over_budget_it_predicts_as_the_naive_expert_does(task, keep_inverse):
    """Other rows may be kept after a near tie, so that scores differ; what they are worth must not."""
    s = settings(task, size=12)
    X, y, weights = stream(task, 400, seed=3)
    oracle = Posterior(s)
    wanted = np.array([oracle.learn(*row) for row in zip(X, y, weights, strict=True)], dtype=object)
    _, risks = posterior(s, "float16", keep_inverse).run(X, y, weights)
    named = ~np.isnan(y)
    naive = np.array([row[1] for row in wanted[named]], dtype=float)
    assert abs(risks[named].mean() - naive.mean()) < 0.05 * naive.mean() + 0.01


@pytest.mark.parametrize("keep_inverse", [True, False])
def test_the_prior_is_exact_however_alike_the_rows_are(keep_inverse):
    """Labels that weigh nothing leave C = 0: rows alike to a thousandth must not bring rounding into it.

    The covariance of the coefficients themselves would have entries of some 1e4 that cancel.
    """
    s = settings("binary", dim=1, size=12, novelty=1e-4, gamma=1.0, linear_scale=2.0, rbf_scale=10.0)
    expert = posterior(s, "float16", keep_inverse)
    for x in np.linspace(-0.5, 0.5, 12):
        expert.learn(np.array([x]), 1.0, 1e-12)
    assert expert.size > 3
    state = expert.state()
    np.testing.assert_array_equal(state["covariance"], np.zeros_like(state["covariance"]))
    np.testing.assert_array_equal(state["innovations"], np.diag([2.0, 2.0] + [10.0] * expert.size))


def test_far_from_all_rows_the_radial_part_knows_as_little_as_at_first():
    s = settings("binary", slopes=False, size=10)
    X, y, weights = stream(s.task, 200, labelled=1.0)
    expert = posterior(s, "float16")
    expert.run(X, y, weights)
    state, root = expert.state(), np.sqrt(np.float32(s.bias))
    constant = float(root) ** 2 * (s.linear_scale + state["covariance"][0, 0])
    wanted = state["coefficients"][0, 0] * root / np.sqrt(1.0 + np.pi * (s.rbf_scale + constant) / 8.0)
    np.testing.assert_allclose(expert.predict(np.full(3, 50.0))[0], wanted, rtol=1e-5)  # single precision


@pytest.mark.parametrize("keep_inverse", [True, False])
@pytest.mark.parametrize(("task", "size", "dim"), [("binary", 0, 5), ("binary", 40, 5), ("classes", 17, 3)])
def test_it_takes_the_bytes_that_its_numbers_take(task, size, dim, keep_inverse):
    """Counters of 56 bytes; means in singles; rows, covariance and, if kept, the factor in 16 bits."""
    s = settings(task, size=size, dim=dim)
    coordinates = dim + 1 + size
    short = size * dim + coordinates * (coordinates + 1) // 2
    short += size + size * (size + 1) // 2 if keep_inverse else 0
    numbers = 4 * s.outputs * coordinates + 2 * short
    half, single = posterior(s, "float16", keep_inverse), posterior(s, "float32", keep_inverse)
    assert half.nbytes == 56 + (numbers + 7) // 8 * 8
    assert size == 0 or half.nbytes < 0.6 * single.nbytes
    half.run(*stream(task, 60, dim))
    assert half.nbytes == 56 + (numbers + 7) // 8 * 8


def hostile(rounds, dim):
    """Rows that repeat, nearly repeat, jump far away and stand still, and weights of any size."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rounds, dim))
    for i in range(1, rounds):
        X[i] = [X[i], X[i - 1], X[i - 1] + 1e-4 * X[i], 1e3 * X[i], np.zeros(dim)][rng.integers(5)]
    return np.clip(X, -1e6, 1e6), rng.uniform(0.01, 100.0, rounds)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("task", TASKS)
def test_it_stays_finite_over_a_long_life_among_hostile_rows(task, gamma):
    s = settings(task, size=10, gamma=gamma, forget=0.01, tie_noise=1.0, novelty=1e-6)
    X, weights = hostile(1500, 3)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 1500).astype(float) if task == "classes" else rng.choice([-1.0, 1.0, 1e6], 1500)
    y[rng.random(1500) < 0.2] = np.nan
    expert = posterior(s, "float16")
    scores, risks = expert.run(X, y, weights)
    assert np.isfinite(scores).all()
    assert np.isfinite(risks[~np.isnan(y)]).all()
    state = expert.state()
    assert all(np.isfinite(state[key]).all() for key in ("rows", "coefficients", "covariance", "innovations"))
    # A covariance: no variance below 0, none above the prior's but for rounding, however long the life.
    variances = np.diag(state["innovations"])
    assert variances.min() >= 0.0
    assert variances.max() <= 5.0 * 1.01
