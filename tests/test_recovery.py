"""The map back to the old space, from the normal equations alone."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el.core import native

core = native()


def overlap(B, d2, d1, seed=0, offset=0.0):
    """Z in the new space, X in the old: X = Z W + noise + offset."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(B, d2)) + offset
    return Z, Z @ rng.normal(size=(d2, d1)) + 0.1 * rng.normal(size=(B, d1)) + offset


def fitted(Z, X, ridge=1e-3, intercept=False):
    recovery = core.RecoveryMap(Z.shape[1], X.shape[1], ridge, intercept)
    recovery.observe(Z, X)
    recovery.solve()
    return recovery


def ridge_solution(Z, X, ridge):
    d2 = Z.shape[1]
    return np.linalg.solve(Z.T @ Z + ridge * np.trace(Z.T @ Z) / d2 * np.eye(d2), Z.T @ X)


SHAPES = [(10, 5, 8), (50, 10, 3), (4, 9, 6), (1, 7, 4), (1, 1, 1), (30, 1, 2), (10, 10, 10)]


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e-6])
@pytest.mark.parametrize(("B", "d2", "d1"), SHAPES)
def test_the_map_is_the_ridge_solution(B, d2, d1, ridge):
    Z, X = overlap(B, d2, d1)
    recovery = fitted(Z, X, ridge)
    expected = ridge_solution(Z, X, ridge)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(recovery.matrix, expected, rtol=0, atol=1e-9 * scale)
    new, _ = overlap(6, d2, d1, seed=1)
    np.testing.assert_allclose(recovery.recover(new), new @ expected, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
@pytest.mark.parametrize(("B", "d2", "d1"), [shape for shape in SHAPES if shape[0] > 1])
def test_with_an_intercept_it_is_the_ridge_solution_of_the_centred_rows(B, d2, d1, ridge):
    Z, X = overlap(B, d2, d1, offset=2.0)
    recovery = fitted(Z, X, ridge, intercept=True)
    expected = ridge_solution(Z - Z.mean(axis=0), X - X.mean(axis=0), ridge)
    np.testing.assert_allclose(recovery.matrix, expected, rtol=1e-8, atol=1e-10)
    new, _ = overlap(6, d2, d1, seed=1)
    np.testing.assert_allclose(
        recovery.recover(new), X.mean(axis=0) + (new - Z.mean(axis=0)) @ expected, rtol=1e-8, atol=1e-9
    )


def test_with_an_intercept_one_row_is_recovered_as_itself():
    Z, X = overlap(1, 4, 3)
    recovery = fitted(Z, X, intercept=True)
    np.testing.assert_array_equal(recovery.recover(Z + 5.0), X)


@pytest.mark.parametrize(("B", "d2", "d1"), SHAPES)
def test_plain_least_squares_is_numpys_with_the_least_norm(B, d2, d1):
    Z, X = overlap(B, d2, d1)
    expected = np.linalg.lstsq(Z, X, rcond=1e-6)[0]
    np.testing.assert_allclose(fitted(Z, X, ridge=0.0).matrix, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_plain_least_squares_of_dependent_features_has_the_least_norm(rank):
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(40, rank)) @ rng.normal(size=(rank, 6))
    X = rng.normal(size=(40, 3))
    expected = np.linalg.lstsq(Z, X, rcond=1e-6)[0]
    np.testing.assert_allclose(fitted(Z, X, ridge=0.0).matrix, expected, rtol=1e-6, atol=1e-8)


def test_plain_least_squares_with_an_intercept():
    Z, X = overlap(40, 5, 3, offset=1.5)
    recovery = fitted(Z, X, ridge=0.0, intercept=True)
    solution = np.linalg.lstsq(np.column_stack([Z, np.ones(40)]), X, rcond=None)[0]
    new, _ = overlap(6, 5, 3, seed=1)
    np.testing.assert_allclose(
        recovery.recover(new), np.column_stack([new, np.ones(6)]) @ solution, rtol=1e-8
    )


@pytest.mark.parametrize("intercept", [False, True])
def test_rows_may_come_in_pieces(intercept):
    Z, X = overlap(23, 6, 4)
    whole = fitted(Z, X, intercept=intercept)
    for cuts in ([1], [5, 6, 20], range(1, 23)):
        pieces = core.RecoveryMap(6, 4, 1e-3, intercept)
        for z, x in zip(np.split(Z, cuts), np.split(X, cuts), strict=True):
            pieces.observe(z, x)
        pieces.solve()
        np.testing.assert_allclose(pieces.matrix, whole.matrix, rtol=0, atol=1e-12)
        np.testing.assert_allclose(pieces.recover(Z), whole.recover(Z), rtol=0, atol=1e-12)
        assert pieces.rows == 23


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("scales", [(1e90, 1e90), (1e-90, 1e90), (1e90, 1e-90), (1e100, 1e100)])
def test_large_and_small_values_are_mapped_as_their_scaled_copies(scales, ridge, intercept):
    Z, X = overlap(10, 4, 3)
    Z, X = np.clip(Z, -1, 1), np.clip(X, -1, 1)
    to, back = scales
    plain, scaled = fitted(Z, X, ridge, intercept), fitted(Z * to, X * back, ridge, intercept)
    expected = plain.recover(Z)
    np.testing.assert_allclose(
        scaled.recover(Z * to) / back, np.clip(expected, -1e100 / back, 1e100 / back), rtol=1e-6
    )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("tiny", [1e-130, 1e-155, 1e-160, 1e-170, 1e-300])
def test_values_whose_squares_underflow_still_give_finite_rows(tiny, ridge, intercept):
    Z, X = overlap(10, 4, 3)
    recovery = fitted(Z * tiny, np.clip(X * 1e100, -1e100, 1e100), ridge, intercept)
    assert np.all(np.isfinite(recovery.recover(Z * tiny)))
    assert np.all(np.isfinite(recovery.recover(np.clip(Z * 1e100, -1e100, 1e100))))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-3])
def test_columns_of_zeros_take_no_part(ridge, intercept):
    Z, X = overlap(20, 5, 3)
    Z[:, 2] = 0.0
    recovery = fitted(Z, X, ridge, intercept)
    np.testing.assert_allclose(recovery.matrix[2], 0.0, atol=1e-12)
    moved = Z.copy()
    moved[:, 2] = 7.0  # a feature that never varied says nothing when it does
    np.testing.assert_allclose(recovery.recover(moved), recovery.recover(Z), rtol=0, atol=1e-11)


def test_nothing_but_zeros_is_recovered_as_zeros():
    recovery = fitted(np.zeros((5, 3)), np.ones((5, 2)))
    assert not recovery.matrix.any()
    assert not recovery.recover(np.ones((2, 3))).any()


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("value", [0.1, 1.1, 3.3, 1e6 + 0.1])
def test_with_an_intercept_features_that_never_vary_give_the_mean(value, ridge):
    # Their spread is 0 but for rounding; a map made of rounding would send other values anywhere.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(10, 2))
    recovery = fitted(np.full((10, 3), value), X, ridge, intercept=True)
    np.testing.assert_allclose(
        recovery.recover(np.full((1, 3), value + 1.0)), X.mean(axis=0)[None, :], atol=1e-6
    )


def test_with_an_intercept_a_large_offset_is_not_mistaken_for_structure():
    Z, X = overlap(30, 3, 2)
    plain = fitted(Z, X, intercept=True).recover(Z)
    moved = fitted(Z + 1e4, X, intercept=True).recover(Z + 1e4)
    np.testing.assert_allclose(moved, plain, rtol=0, atol=1e-5)


def test_without_rows_the_map_is_zero():
    recovery = core.RecoveryMap(3, 2, 1e-3, False)
    recovery.solve()
    assert not recovery.recover(np.ones((1, 3))).any()


@pytest.mark.parametrize("intercept", [False, True])
def test_a_state_carries_a_map_on(intercept):
    Z, X = overlap(10, 4, 3)
    whole, first, second = (core.RecoveryMap(4, 3, 1e-3, intercept) for _ in range(3))
    for piece in (slice(0, 4), slice(4, 10)):
        whole.observe(Z[piece], X[piece])
    first.observe(Z[:4], X[:4])
    second.set_state(first.state())
    second.observe(Z[4:], X[4:])
    np.testing.assert_array_equal(second.state(), whole.state())
    whole.solve()
    second.solve()
    np.testing.assert_array_equal(second.recover(Z), whole.recover(Z))
    third = core.RecoveryMap(4, 3, 1e-3, intercept)
    third.set_state(whole.state())
    np.testing.assert_array_equal(third.recover(Z), whole.recover(Z))
