"""Rows scaled by the running mean and standard deviation, the current row included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sf2el import Scaler
from sf2el.core import native

core = native()

ROWS = st.tuples(st.integers(1, 25), st.integers(1, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(-1e3, 1e3).map(lambda value: round(value, 3)))
)


def expected(X):
    """By NumPy, over every prefix; what is far from all before it counts as twenty deviations away."""
    out, held = np.zeros_like(X), X.copy()
    for t in range(len(X)):
        if t >= 10:
            mean, most = held[:t].mean(axis=0), 20.0 * held[:t].std(axis=0)
            varied = np.ptp(held[:t], axis=0) > 0
            held[t] = np.where(varied, np.clip(X[t], mean - most, mean + most), X[t])
        seen = held[: t + 1]
        sd = seen.std(axis=0)
        # Constant so far: std's rounding is not a spread.
        varies = np.ptp(seen, axis=0) > 0
        out[t, varies] = ((X[t] - seen.mean(axis=0))[varies] / sd[varies]).clip(-5, 5)
    return out / np.sqrt(X.shape[1])


@given(X=ROWS)
def test_scaled_rows_are_numpys_mean_and_std_over_the_rows_so_far(X):
    np.testing.assert_allclose(core.Scaler(X.shape[1]).scale_many(X, True), expected(X), rtol=0, atol=1e-8)


@given(X=ROWS)
def test_many_is_a_loop_of_one_to_the_bit(X):
    together, one_by_one = core.Scaler(X.shape[1]), core.Scaler(X.shape[1])
    many, one = together.scale_many(X, True), np.empty(X.shape[1])
    for x, row in zip(X, many, strict=True):
        one_by_one.scale_into(x, one, True)
        np.testing.assert_array_equal(one, row)
    np.testing.assert_array_equal(together.state(), one_by_one.state())


def test_values_are_clipped_at_five_standard_deviations():
    scaler = core.Scaler(1)
    X = np.append(np.tile([-1.0, 1.0], 500), [1e6, -1e9])[:, None]
    scaled = scaler.scale_many(X, True)
    assert scaled[-2:, 0].tolist() == [5.0, -5.0]
    assert np.abs(scaled).max() == 5.0


def test_rows_are_divided_by_the_root_of_their_width():
    x = np.random.default_rng(0).normal(size=20)
    narrow = core.Scaler(1).scale_many(x[:, None], True)
    wide = core.Scaler(9).scale_many(np.repeat(x[:, None], 9, axis=1), True)
    np.testing.assert_allclose(wide, np.repeat(narrow, 9, axis=1) / 3.0, rtol=1e-15)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e100, 1e-300])
def test_a_constant_feature_is_zero(value):
    scaled = core.Scaler(2).scale_many(np.column_stack([np.full(30, value), np.arange(30.0)]), True)
    assert not scaled[:, 0].any()
    assert scaled[1:, 1].all()


def test_the_first_row_is_zero():
    assert not core.Scaler(3).scale_many(np.array([[1.0, -2.0, 1e50]]), True).any()


# -- in single precision


@given(X=ROWS)
def test_single_precision_scales_to_rounding_as_double(X):
    double, single = core.Scaler(X.shape[1]), core.Scaler(X.shape[1], None, "float32")
    np.testing.assert_allclose(single.scale_many(X, True), double.scale_many(X, True), rtol=0, atol=2e-5)


@given(X=ROWS)
def test_a_state_carries_single_precision_on_to_the_bit(X):
    first, second = (core.Scaler(X.shape[1], None, "float32") for _ in range(2))
    first.scale_many(X, True)
    second.set_state(first.state())
    np.testing.assert_array_equal(first.state(), second.state())
    np.testing.assert_array_equal(first.scale_many(X, True), second.scale_many(X, True))


def test_in_single_precision_an_offset_of_a_million_deviations_is_no_trouble():
    x = np.random.default_rng(2).normal(size=200)
    plain = core.Scaler(1, None, "float32").scale_many(x[:, None], True)
    offset = core.Scaler(1, None, "float32").scale_many(x[:, None] + 1e6, True)
    np.testing.assert_allclose(offset, plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [1e100, 1e39, 1e-100])
def test_in_single_precision_values_of_any_size_stay_finite(scale):
    scaler = core.Scaler(1, None, "float32")
    scaled = scaler.scale_many(scale * np.random.default_rng(0).normal(size=(50, 1)).clip(-1, 1), True)
    assert np.all(np.isfinite(scaled)) and np.all(np.isfinite(scaler.state()))


def test_after_very_many_rows_single_precision_goes_on_with_the_last_ones():
    """The count has ended: neither the mean nor the deviation runs away, and both still move."""
    rng, scaler = np.random.default_rng(5), core.Scaler(1, None, "float32")
    most = 2.0**18
    scaler.set_state(np.array([3.0, 4.0 * 1e9, 1e9]))
    coin = np.where(rng.random((60_000, 1)) < 0.2, 7.0, 2.0)  # of mean 3 and deviation 2
    scaler.scale_many(coin, True)
    mean, spread, count = scaler.state()
    assert count == most and abs(mean - 3.0) < 0.01 and abs(np.sqrt(spread / count) - 2.0) < 0.01
    scaler.scale_many(np.full((3000, 1), 20.0), True)
    assert scaler.state()[0] > mean + 0.1 and scaler.state()[1] > spread


def test_a_row_that_is_not_kept_leaves_the_state():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3))
    scaler = core.Scaler(3)
    scaler.scale_many(X, True)
    before = scaler.state()
    new = rng.normal(size=(5, 3))
    looked = scaler.scale_many(new, False)
    np.testing.assert_array_equal(scaler.state(), before)
    # Each was scaled as if it had been the next.
    for x, row in zip(new, looked, strict=True):
        np.testing.assert_allclose(row, expected(np.vstack([X, x]))[-1], rtol=1e-10)


def test_large_values_stay_finite():
    X = np.array([[1e100], [-1e100], [0.0], [1e-100], [1e100]])
    scaler = core.Scaler(1)
    assert np.all(np.isfinite(scaler.scale_many(X, True)))
    assert np.all(np.isfinite(scaler.state()))


def test_a_large_offset_does_not_drown_the_spread():
    # Sums of squares would lose everything here; Welford's recurrence does not.
    x = np.random.default_rng(2).normal(size=200)
    plain = core.Scaler(1).scale_many(x[:, None], True)
    offset = core.Scaler(1).scale_many(x[:, None] + 1e6, True)
    np.testing.assert_allclose(offset, plain, rtol=0, atol=1e-6)


def test_a_state_carries_a_scaler_on_to_the_bit():
    X = np.random.default_rng(3).normal(size=(30, 2))
    whole, first, second = core.Scaler(2), core.Scaler(2), core.Scaler(2)
    expected_rows = whole.scale_many(X, True)
    first.scale_many(X[:12], True)
    second.set_state(first.state())
    np.testing.assert_array_equal(second.scale_many(X[12:], True), expected_rows[12:])


@pytest.mark.parametrize(
    "bad", [np.zeros((2, 4)), np.array([[0.0, -2e100, 0.0]]), np.array([[np.nan, np.inf, 0.0]])]
)
def test_bad_rows_are_refused_with_the_state_unchanged(bad):
    scaler = core.Scaler(3)
    scaler.scale_many(np.arange(6.0).reshape(2, 3), True)
    before = scaler.state()
    with pytest.raises(ValueError, match=r"This row has|An array row holds"):
        scaler.scale_many(np.vstack([np.ones((1, bad.shape[1])), bad]), True)
    np.testing.assert_array_equal(scaler.state(), before)


def test_a_missing_value_moves_nothing_and_is_scaled_to_zero():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.4] = np.nan
    X[0, 1] = np.nan
    scaler = core.Scaler(3)
    scaled = scaler.scale_many(X, True)
    for j in range(3):
        there = ~np.isnan(X[:, j])
        # As if the rows without the feature had never come.
        alone = core.Scaler(1, divisor=np.sqrt(3.0)).scale_many(X[there, j : j + 1].copy(), True)[:, 0]
        np.testing.assert_array_equal(scaled[there, j], alone)
        assert not scaled[~there, j].any()
    np.testing.assert_array_equal(scaler.state()[6:], (~np.isnan(X)).sum(axis=0))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_gap_is_read_as_what_would_be_scaled_to_its_value(precision):
    X = np.random.default_rng(4).normal(size=(60, 4)) * [1.0, 1e3, 1e-3, 0.0] + [0.0, 5.0, 1.0, 2.0]
    scaler = core.Scaler(4, 3.0, precision)
    scaler.scale_many(X, True)
    row, scaled = np.array([np.nan, 7.0, np.nan, np.nan]), np.array([0.3, 0.2, -0.4, 0.1])
    scaler.unscale_gaps(row, scaled)
    expected = X.mean(axis=0) + 3.0 * scaled * X.std(axis=0)
    np.testing.assert_allclose(row[[0, 2, 3]], expected[[0, 2, 3]], rtol=1e-5)
    assert row[1] == 7.0
    again = np.empty(4)
    scaler.scale_into(row, again, False)
    np.testing.assert_allclose(again[[0, 2]], scaled[[0, 2]], atol=0.02)


def test_a_gap_is_read_as_no_more_than_a_row_may_hold():
    scaler = core.Scaler(3)
    scaler.scale_many(np.array([[1e100, -1e100, 0.0], [-1e100, -1e100, 0.0]]), True)
    row = np.full(3, np.nan)
    scaler.unscale_gaps(row, np.array([2.0, -2.0, 1.0]))
    assert row.tolist() == [1e100, -1e100, 0.0]
    unseen = np.full(3, np.nan)
    core.Scaler(3).unscale_gaps(unseen, np.ones(3))
    assert unseen.tolist() == [0.0, 0.0, 0.0]
    for wrong in (np.ones(2), np.full(3, np.nan)):
        with pytest.raises(ValueError, match=r"This row has|An array row holds"):
            scaler.unscale_gaps(row, wrong)


def test_the_divisor_is_the_callers():
    X = np.random.default_rng(5).normal(size=(20, 4))
    plain = core.Scaler(4).scale_many(X, True)
    np.testing.assert_array_equal(core.Scaler(4, 2.0).scale_many(X, True), plain)
    np.testing.assert_allclose(core.Scaler(4, divisor=1.0).scale_many(X, True), 2.0 * plain, rtol=1e-15)
    with pytest.raises(ValueError, match="divisor must be above 0"):
        core.Scaler(4, 0.0)


def test_one_wrong_reading_does_not_spoil_a_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 2.0, size=(300, 2))
    wrong = X.copy()
    wrong[100, 0], wrong[150] = -9999.0, 1e9
    scaled = core.Scaler(2, divisor=1.0).scale_many(wrong, True)
    assert scaled[100, 0] == -5.0 and scaled[150].tolist() == [5.0, 5.0]
    truth = core.Scaler(2, divisor=1.0).scale_many(X, True)
    assert 0.3 < scaled[200:, 0].std() / truth[200:, 0].std() < 1.0
    assert np.corrcoef(scaled[200:, 0], truth[200:, 0])[0, 1] > 0.99


def test_a_scale_that_has_truly_changed_is_followed():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=200), rng.normal(1e4, 1e3, size=400)])
    scaler = core.Scaler(1, divisor=1.0)
    scaler.scale_many(x[:, None], True)
    mean, spread, count = scaler.state()
    assert 1e3 < np.sqrt(spread / count) < 1e4 and mean > 1e3


def test_the_public_scaler_tells_its_bytes_and_refuses_what_is_no_size():
    scaler = Scaler(10)
    assert scaler.nbytes == scaler.core.state().nbytes
    for dim in (0, -1, "a", 2.5):
        with pytest.raises(ValueError, match="dim"):
            Scaler(dim)
