"""Gaps filled with what the observed values say, and the covariance of rows that had some."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.moments import Moments

from sf2el.core import _native

CLOSE = {"float64": 1e-9, "float32": 1e-4}
"""Double precision through a ridge of 1 %; sums kept in single precision through the same."""


def correlated(rows, dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, dim)) @ (np.eye(dim) + 0.5 * rng.normal(size=(dim, dim))) + np.arange(dim)


def with_gaps(X, share, seed=1):
    gone = np.random.default_rng(seed).random(X.shape) < share
    return np.where(gone, np.nan, X)


def fill(moments, row, keep):
    view = np.where(np.isnan(row), 0.0, row)
    moments.fill(row, view, keep)
    return view


@pytest.mark.parametrize("precision", CLOSE)
@pytest.mark.parametrize("known", [0, 1, 2, 5, 200])
def test_gaps_get_the_conditional_mean(known, precision):
    X = correlated(250, 5)
    moments, oracle, close = _native.Moments(5, precision), Moments(5), CLOSE[precision]
    moments.observe_many(X[:known])
    oracle.rows = list(X[:known])
    state = moments.state()
    for row in with_gaps(X[200:], 0.4):
        got, wanted = fill(moments, row, False), oracle.fill(row, np.where(np.isnan(row), 0.0, row))
        np.testing.assert_allclose(got, wanted, rtol=close, atol=close)
    np.testing.assert_array_equal(moments.state(), state)


@pytest.mark.parametrize("precision", CLOSE)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("dim", [2, 5])
def test_kept_rows_bring_the_covariance_of_their_gaps(dim, share, precision):
    X = with_gaps(correlated(80, dim), share)
    moments, oracle = _native.Moments(dim, precision), Moments(dim)
    close = CLOSE[precision]
    for row in X:
        wanted = oracle.fill(row, np.where(np.isnan(row), 0.0, row), keep=True)
        np.testing.assert_allclose(fill(moments, row, True), wanted, rtol=close, atol=close)
        if oracle.rows:
            np.testing.assert_allclose(moments.mean, oracle.mean(), rtol=close, atol=close)
            np.testing.assert_allclose(moments.matrix(), oracle.covariance(), rtol=close, atol=close)
    assert moments.count == len(oracle.rows) == (~np.isnan(X)).any(axis=1).sum()


def test_in_long_life_a_filled_gap_is_the_true_conditional_mean():
    """N((0, 0), ((1, .8), (.8, 1))): a gap beside 2 is 1.6, but for the ridge of 1 % and 1 / sqrt(20,000)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    moments = _native.Moments(2)
    moments.observe_many(np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=20_000)]))
    np.testing.assert_allclose(fill(moments, np.array([2.0, np.nan]), False)[1], 1.6, atol=0.04)


@pytest.mark.parametrize("precision", CLOSE)
@pytest.mark.parametrize("dim", [2, 6])
@pytest.mark.parametrize(("share", "formerly"), [(0.2, 0.55), (0.4, 0.6)])
def test_gaps_at_random_leave_the_correlation_as_it_is(share, formerly, dim, precision):
    """Values 0.5 correlated, each missing at random; filled values taken as observed gave .56 and .62.

    Both values are there in 36 % of 8,000 rows at least, which tell a correlation to .75 / sqrt(2,880) =
    .014, and three streams of them to .008: the mean must be within .02.
    """
    found, as_observed = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.sqrt(0.5) * rng.normal(size=(8000, 1)) + np.sqrt(0.5) * rng.normal(size=(8000, dim))
        moments, wrong = _native.Moments(dim, precision), _native.Moments(dim)
        for row in with_gaps(X, share, seed):
            fill(moments, row, True)
            if not np.isnan(row).all():
                wrong.observe(fill(wrong, row, False))
        pairs = np.triu_indices(dim, 1)
        for moments_, into in ((moments, found), (wrong, as_observed)):
            covariance = moments_.matrix()
            deviation = np.sqrt(np.diag(covariance))
            into.append((covariance / np.outer(deviation, deviation))[pairs].mean())
        variance = np.diag(moments.matrix())
        np.testing.assert_allclose(variance, 1.0, atol=0.08)
    assert abs(np.mean(found) - 0.5) < 0.02
    assert np.mean(as_observed) > formerly


def test_a_row_with_nothing_observed_says_nothing():
    moments = _native.Moments(3)
    moments.observe_many(correlated(20, 3))
    before = moments.state()
    assert fill(moments, np.full(3, np.nan), True).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_array_equal(moments.state(), before)
