"""Rows in which absent values count as 0, and flags of what is there, each by its own mean and variance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf2el.core import _native

CLOSE = {"float64": 1e-9, "float32": 1e-4}
"""Single precision keeps standard deviations to 2^-24, through a mean of up to ten of them squared."""


def stream(rows, seed=0, dim=4):
    """Features of any offset and scale, one of them always there, the others in some rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, dim)) * [1.0, 0.1, 5.0, 2.0] + [3.0, 1.0, 0.0, -4.0]
    gone = rng.random(X.shape) < [0.0, 0.3, 0.6, 0.9]
    return np.where(gone, np.nan, X)


def scaled(rows, row, divisor):
    """A row by mean and deviation of all rows, clipped to five deviations; 0 where nothing varies."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    varies = deviation > 1e-7 * np.abs(rows).max(axis=0)
    z = np.where(varies, (row - mean) / np.where(varies, deviation, 1.0), 0.0)
    return np.clip(z, -5.0, 5.0) / divisor


def views(scaler, row, rows, kept, recovered=None):
    return scaler.scale_with_zeros(row, float(rows), kept, recovered), scaler.presence(row, float(rows), kept)


def near(got, wanted, precision):
    np.testing.assert_allclose(got, wanted, rtol=CLOSE[precision], atol=CLOSE[precision])


@pytest.mark.parametrize("divisor", [None, 1.0, 3.0])
@pytest.mark.parametrize("precision", CLOSE)
def test_both_views_are_those_of_rows_with_zeros_and_of_flags(precision, divisor):
    """Mean and variance of the rows themselves, no formula: once before a row is kept and once after."""
    X, scaler = stream(120), _native.Scaler(4, divisor, precision)
    by = divisor or 2.0
    for n, row in enumerate(X, 1):
        zeros, flags = np.nan_to_num(X[:n]), (~np.isnan(X[:n])).astype(float)
        state = scaler.state()
        before = views(scaler, row, n, kept=False)
        np.testing.assert_array_equal(scaler.state(), state)
        scaler.scale_into(row, np.empty(4), True)
        after = views(scaler, row, n, kept=True)
        for got in (before, after):
            near(got[0], scaled(zeros, zeros[-1], by), precision)
            near(got[1], scaled(flags, flags[-1], by), precision)


@pytest.mark.parametrize("precision", CLOSE)
def test_the_formulas_are_the_stated_ones(precision):
    X, scaler = stream(200, seed=3), _native.Scaler(4, 1.0, precision)
    scaler.scale_many(X, True)
    p = (~np.isnan(X)).mean(axis=0)
    m, v = np.nanmean(X, axis=0), np.nanvar(X, axis=0)
    row = np.array([4.0, np.nan, 2.0, np.nan])
    zeros, flags = views(scaler, row, 200, kept=True)
    near(zeros, ((np.nan_to_num(row) - p * m) / np.sqrt(p * (v + m**2 * (1 - p)))).clip(-5, 5), precision)
    there, varies = (~np.isnan(row)).astype(float), p < 1.0
    near(flags[varies], (there - p)[varies] / np.sqrt(p * (1 - p))[varies], precision)
    assert flags[~varies].tolist() == [0.0]


@pytest.mark.parametrize("precision", CLOSE)
def test_without_gaps_zeros_are_the_plain_view_and_flags_say_nothing(precision):
    X, scaler, plain = stream(60)[:, :1], _native.Scaler(1, None, precision), np.empty(1)
    for n, row in enumerate(X, 1):
        scaler.scale_into(row, plain, False)
        zeros, flags = views(scaler, row, n, kept=False)
        # What is kept is rounded to single precision, and a view is read from what would be kept.
        np.testing.assert_allclose(zeros, plain, rtol=1e-12 if precision == "float64" else 1e-6)
        assert flags.tolist() == [0.0]
        scaler.scale_into(row, plain, True)


def test_a_recovered_value_counts_as_if_it_had_been_read():
    X, scaler = stream(100), _native.Scaler(4)
    scaler.scale_many(X, True)
    mean, deviation = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    gaps, recovered = np.full(4, np.nan), np.array([0.3, -0.5, 0.1, 0.7])
    as_read = mean + recovered * 2.0 * deviation
    with_recovered = scaler.scale_with_zeros(gaps, 100.0, True, recovered)
    np.testing.assert_allclose(with_recovered, scaler.scale_with_zeros(as_read, 100.0, True), rtol=1e-9)
    some = np.array([X[-1, 0], np.nan, 1.0, np.nan])
    mixed = scaler.scale_with_zeros(some, 100.0, True, recovered)
    np.testing.assert_allclose(mixed[[1, 3]], with_recovered[[1, 3]], rtol=1e-12)
    np.testing.assert_array_equal(mixed[[0, 2]], scaler.scale_with_zeros(some, 100.0, True)[[0, 2]])


def test_words_that_are_always_1_differ_from_words_that_are_not_there():
    """A present word has no spread of its own; as 0 or 1 it has, and then both views say the same."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((100, 3)) < [0.2, 0.5, 0.8], 1.0, np.nan)
    scaler, plain = _native.Scaler(3), np.empty(3)
    scaler.scale_many(X, True)
    for row in X[:20]:
        scaler.scale_into(row, plain, False)
        zeros, flags = views(scaler, row, 100, kept=True)
        assert plain.tolist() == [0.0, 0.0, 0.0]
        np.testing.assert_allclose(zeros, flags, rtol=1e-12)
        np.testing.assert_array_equal(np.sign(zeros), np.where(np.isnan(row), -1.0, 1.0))


@given(st.lists(st.sampled_from([np.nan, 0.0, 1.0, -3.0, 1e6]), min_size=1, max_size=40))
def test_any_column_stays_within_five_deviations(values):
    scaler = _native.Scaler(1, 1.0)
    for n, value in enumerate(values, 1):
        row = np.array([value])
        for kept in (False, True):
            for view in views(scaler, row, n, kept):
                assert abs(view[0]) <= 5.0
            if not kept:
                scaler.scale_into(row, np.empty(1), True)
