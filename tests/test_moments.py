"""Running mean and covariance, and the affine map."""

from __future__ import annotations

import numpy as np
import pytest


def rows(n=60, dim=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim)) @ np.diag(np.arange(1.0, dim + 1)) + 3.0


def test_moments_are_numpys(be):
    X = rows()
    moments = be.Moments(4)
    moments.observe_many(X)
    assert moments.count == 60
    np.testing.assert_allclose(moments.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.matrix(), np.cov(X.T, bias=True), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(moments.matrix(), moments.matrix().T)


def test_a_large_offset_does_not_drown_the_spread(be):
    moments = be.Moments(4)
    moments.observe_many(rows() + 1e8)
    np.testing.assert_allclose(moments.matrix(), np.cov(rows().T, bias=True), rtol=1e-5, atol=1e-5)


def test_many_is_a_loop_and_a_state_carries_on_to_the_bit(be):
    X = rows()
    together, loop, resumed = be.Moments(4), be.Moments(4), be.Moments(4)
    together.observe_many(X)
    for x in X[:25]:
        loop.observe(x)
    resumed.set_state(loop.state())
    resumed.observe_many(X[25:])
    np.testing.assert_array_equal(resumed.state(), together.state())
    assert together.state().nbytes == together.nbytes


def test_no_row_and_one_row_have_no_spread(be):
    moments = be.Moments(2)
    assert not moments.matrix().any()
    moments.observe(np.array([3.0, 4.0]))
    assert not moments.matrix().any()
    assert moments.mean.tolist() == [3.0, 4.0]


def test_what_does_not_fit_is_refused(be):
    with pytest.raises(ValueError, match="one for each row"):
        be.Moments(2).set_state(np.zeros(5))
    with pytest.raises(ValueError, match="An array row holds"):
        be.Moments(2).observe(np.array([np.nan, 0.0]))
    with pytest.raises(ValueError, match="does not fit this map"):
        be.AffineMap(3, 2).set(np.zeros((2, 3)), np.zeros(3))


@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("gaps", [(0,), (1, 3), (0, 1, 2)])
def test_gaps_are_filled_with_their_mean_given_the_others(be, precision, close, gaps):
    X = rows() @ np.array([[1, 0.5, 0, 0.2], [0, 1, 0.7, 0], [0.1, 0, 1, 0], [0, 0.4, 0, 1.0]])
    moments = be.Moments(4, precision)
    moments.observe_many(X[:50])
    for x in X[50:]:
        row = x.copy()
        row[list(gaps)] = np.nan
        view = np.where(np.isnan(row), 0.0, row)
        moments.fill(row, view)
        seen = [i for i in range(4) if i not in gaps]
        mean, covariance = X[:50].mean(axis=0), np.cov(X[:50].T, bias=True)
        among = covariance[np.ix_(seen, seen)] + (0.01 + 0.02) * np.trace(covariance) / 4 * np.eye(len(seen))
        pull = np.linalg.solve(among, (x - mean)[seen])
        expected = mean[list(gaps)] + covariance[np.ix_(gaps, seen)] @ pull
        np.testing.assert_allclose(view[list(gaps)], expected, rtol=close, atol=close)
        np.testing.assert_array_equal(view[seen], x[seen])


def test_nothing_is_filled_where_nothing_is_known_or_missing(be):
    moments = be.Moments(2)
    gap, full, none = np.array([np.nan, 2.0]), np.array([1.0, 2.0]), np.array([np.nan, np.nan])
    for _ in range(2):
        view = np.array([7.0, 8.0])
        moments.fill(gap, view)
        assert view.tolist() == [7.0, 8.0]
        moments.observe(full)
    moments.observe(-full)
    for row in (full, none):
        moments.fill(row, view)
        assert view.tolist() == [7.0, 8.0]
    for row, seen in ((np.ones(3), view), (gap, np.ones(3)), (np.array([np.inf, 1.0]), view)):
        with pytest.raises(ValueError, match=r"This row has|An array row holds"):
            moments.fill(row, seen)


@pytest.mark.parametrize("limit", [0.0, 1.5])
@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-12), ("float32", 1e-5)])
def test_the_map_is_a_product_and_an_offset_within_its_limit(be, limit, precision, close):
    rng = np.random.default_rng(1)
    matrix, Z = rng.normal(size=(5, 4)), rng.normal(size=(20, 3)) + 1e6
    affine = be.AffineMap(3, 5, limit, precision)
    affine.set(matrix, np.full(3, 1e6))
    np.testing.assert_allclose(affine.matrix, matrix, rtol=close)
    assert affine.center.tolist() == [1e6] * 3
    X = affine.apply(Z)
    wanted = (Z - 1e6) @ matrix[:, :3].T + matrix[:, 3]
    np.testing.assert_allclose(X, wanted.clip(-limit, limit) if limit else wanted, rtol=close, atol=close)
    one = np.empty(5)
    for z, x in zip(Z, X, strict=True):
        affine.apply_into(z, one)
        np.testing.assert_array_equal(one, x)
    assert affine.nbytes == 8 * (3 + 5) + 15 * np.dtype(precision).itemsize + (
        4 if precision == "float32" else 0
    )


@pytest.mark.parametrize("limit", [0.0, 1.5])
@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 0.05)])
def test_factors_are_the_matrix_that_they_multiply_to(be, limit, precision, close):
    rng = np.random.default_rng(1)
    factors, offset, Z = rng.normal(size=(2, 11)), rng.normal(size=6), rng.normal(size=(20, 5)) + 1e6
    affine, whole = be.AffineMap(5, 6, limit, precision, 2), be.AffineMap(5, 6, limit, "float64")
    affine.set_factors(factors, offset, np.full(5, 1e6))
    assert affine.rank == 2 and whole.rank == 0
    assert affine.factors.shape == (2, 11) and whole.factors.shape == (0, 11)
    np.testing.assert_allclose(affine.factors, factors, rtol=close)
    np.testing.assert_array_equal(affine.matrix[:, -1], offset)
    np.testing.assert_allclose(
        affine.matrix[:, :-1], factors[:, 5:].T @ factors[:, :5], atol=close, rtol=close
    )
    whole.set(affine.matrix, affine.center)
    X, one = affine.apply(Z), np.empty(6)
    np.testing.assert_allclose(X, whole.apply(Z), rtol=1e-9, atol=1e-9)
    for z, x in zip(Z, X, strict=True):
        affine.apply_into(z, one)
        np.testing.assert_array_equal(one, x)
    real = {"float64": 8, "float32": 4, "bfloat16": 2}[precision]
    assert affine.nbytes == 8 * 11 + (22 * real + 7) // 8 * 8


def test_factors_that_do_not_fit_are_refused(be):
    center, offset = np.zeros(4), np.zeros(5)
    for shape in ((3, 9), (2, 8), (0, 9)):
        with pytest.raises(ValueError, match="do not fit this map"):
            be.AffineMap(4, 5, 0.0, "float64", 2).set_factors(np.zeros(shape), offset, center)
    with pytest.raises(ValueError, match="do not fit this map"):
        be.AffineMap(4, 5).set_factors(np.zeros((0, 9)), offset, center)
    with pytest.raises(ValueError, match="does not fit this map"):
        be.AffineMap(4, 5, 0.0, "float64", 2).set(np.zeros((5, 5)), center)
    with pytest.raises(ValueError, match="no higher rank"):
        be.AffineMap(4, 5, 0.0, "float64", 5)
    with pytest.raises(ValueError, match="An array row holds"):
        be.AffineMap(4, 5, 0.0, "float64", 2).set_factors(np.full((2, 9), np.nan), offset, center)


def test_moments_in_single_precision_are_close_and_half_the_bytes(be):
    X = rows(2000) + 1e6
    single, double = be.Moments(4, "float32"), be.Moments(4)
    single.observe_many(X)
    double.observe_many(X)
    np.testing.assert_allclose(single.matrix(), double.matrix(), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(single.mean, double.mean)
    assert double.nbytes - single.nbytes == 10 * 4
    resumed = be.Moments(4, "float32")
    resumed.set_state(single.state())
    np.testing.assert_array_equal(resumed.state(), single.state())
