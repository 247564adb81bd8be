"""The map between spaces against its equations on the rows themselves, and where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.gaussian_map import gaussian_map

from sf2el.core import _native

CLOSE = 1e-7
"""Double precision through normal equations with a ridge of .1 beside sums of some 1e3, ten times over."""


def covariance(rows):
    return np.atleast_2d(np.cov(rows.T, bias=True))


def compiled(Z, X, divisor, old=None, shown=None, read=None):
    both = np.hstack([Z, X])
    known = (float(len(Z)), Z.shape[1], both.mean(axis=0), covariance(both))
    return _native.gaussian_map(*known, old, shown, divisor, read, "auto")


def spaces(old, new, rows, seed=0, noise=0.3, unrelated=0):
    """Old features over their deviations, and new ones in any unit, some of them unrelated to the old."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, old)) @ (np.eye(old) + 0.3 * rng.normal(size=(old, old)))
    Z = X @ rng.normal(size=(old, new)) + noise * rng.normal(size=(rows, new))
    Z[:, :unrelated] = rng.normal(size=(rows, unrelated))
    return (X - X.mean(axis=0)) / X.std(axis=0), Z * rng.uniform(0.1, 30.0, size=new) + 4.0


def readings(sums, old=5, new=4, rows=300, seed=0):
    """Old features as they are read, and new ones that are sums of them, or differences with constants."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(rows, old)) * np.geomspace(0.2, 5.0, old)
    if sums:
        return X, X @ rng.uniform(size=(old, new))
    return X, (X / X.std(axis=0)) @ rng.normal(size=(old, new)) + 10.0 * np.arange(1.0, new + 1.0)


def agree(got, wanted):
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=CLOSE, atol=CLOSE)


SHAPES = {
    "a short overlap": (4, 6, 8, {}),
    "a long one": (4, 6, 60, {}),
    "fewer rows than features": (9, 5, 6, {}),
    "one feature each": (1, 1, 10, {}),
    "many old features, few new": (8, 2, 30, {}),
    "some unrelated": (3, 7, 40, {"unrelated": 4}),
    "all unrelated": (3, 3, 40, {"unrelated": 3}),
}


@pytest.mark.parametrize("later", [0, 3, 400])
@pytest.mark.parametrize("old_known", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_what_its_equations_give_on_the_rows(shape, old_known, later):
    old, new, overlap, given = SHAPES[shape]
    X, Z = spaces(old, new, 500, **given)
    divisor = np.sqrt(old)
    own, all_ = slice(0, overlap), slice(0, overlap + later)
    shown = (Z[all_].mean(axis=0), Z[all_].std(axis=0), covariance(Z[all_]), float(later)) if later else None
    arguments = (Z[own], X[own] / divisor, divisor, covariance(X) if old_known else None, shown)
    agree(compiled(*arguments), gaussian_map(*arguments))


@pytest.mark.parametrize("later", [0, 100])
@pytest.mark.parametrize("overlap", [4, 12, 60])
@pytest.mark.parametrize("sums", [True, False])
def test_what_is_thought_of_sums_beforehand_is_its_equations_too(sums, overlap, later):
    X, Z = readings(sums)
    mean, deviation, divisor = X.mean(axis=0), X.std(axis=0), np.sqrt(5.0)
    scaled = (X - mean) / deviation / divisor
    all_ = slice(0, overlap + later)
    shown = (Z[all_].mean(axis=0), Z[all_].std(axis=0), covariance(Z[all_]), float(later)) if later else None
    arguments = (Z[:overlap], scaled[:overlap], divisor, covariance(scaled), shown)
    got = compiled(*arguments, (mean, deviation))
    agree(got, gaussian_map(*arguments, (mean, deviation)))
    assert not sums or np.abs(got[0] - compiled(*arguments)[0]).max() > 1e-4


def recovered(solved, Z, divisor):
    matrix, center, _ = solved
    return divisor * ((Z - center) @ matrix[:, :-1].T + matrix[:, -1])


def test_an_exact_relation_is_found_in_a_long_overlap():
    """Z = X M without noise, more new features than old: what is lost is the noise assumed, of .001."""
    X, Z = spaces(3, 6, 2000, noise=0.0)
    solved = compiled(Z[:1000], X[:1000] / np.sqrt(3.0), np.sqrt(3.0), covariance(X))
    assert np.abs(recovered(solved, Z[1000:], np.sqrt(3.0)) - X[1000:]).max() < 0.05
    assert solved[2] < 1e-3


@pytest.mark.parametrize("noise", [0.1, 0.5, 2.0])
def test_noise_of_known_size_makes_it_the_best_linear_map(noise):
    """x of covariance S, z = W'x + e: nothing linear does better than S W (W'SW + R)^-1.

    From 4,000 rows a coefficient is known to about 1 / sqrt(4,000) = .016 times the noise over the spread of
    what it multiplies; twice that is let pass.
    """
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8000, 3))
    W = np.array([[1.0, 0.5, 0.0, -1.0], [0.0, 1.0, 1.0, 0.3], [0.4, 0.0, -1.0, 1.0]])
    Z = X @ W + noise * rng.normal(size=(8000, 4))
    solved = compiled(Z[:4000], X[:4000], 1.0, np.eye(3))
    best = W @ np.linalg.inv(W.T @ W + noise**2 * np.eye(4))
    np.testing.assert_allclose(solved[0][:, :-1], best, atol=0.03)
    ours = np.mean((recovered(solved, Z[4000:], 1.0) - X[4000:]) ** 2)
    assert ours < 1.02 * np.mean((Z[4000:] @ best.T - X[4000:]) ** 2) + 1e-4


def test_unrelated_features_leave_the_old_ones_at_their_mean():
    X, Z = spaces(3, 4, 3000, unrelated=4)
    solved = compiled(Z, X / np.sqrt(3.0), np.sqrt(3.0), covariance(X))
    assert solved[2] > 0.9
    assert np.abs(recovered(solved, Z, np.sqrt(3.0))).max() < 0.3


def test_later_rows_bring_the_overlaps_map_nearer():
    """A short overlap, and then the new features' own covariance: the mean error over streams must fall."""
    errors = {False: [], True: []}
    for seed in range(20):
        X, Z = spaces(4, 6, 400, seed=seed)
        shown = (Z.mean(axis=0), Z.std(axis=0), covariance(Z), 392.0)
        for later, into in errors.items():
            solved = compiled(Z[:8], X[:8] / 2.0, 2.0, covariance(X), shown if later else None)
            into.append(np.mean((recovered(solved, Z[8:], 2.0) - X[8:]) ** 2))
    assert np.mean(errors[True]) < 0.8 * np.mean(errors[False])


@pytest.mark.parametrize("ridge", [1e-3, 0.3])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_plain_map_is_ridge_regression(intercept, ridge):
    X, Z = spaces(3, 5, 40)
    plain = _native.RecoveryMap(5, 3, ridge, intercept)
    plain.observe(Z, X)
    plain.solve()
    a, b = (Z - Z.mean(axis=0), X - X.mean(axis=0)) if intercept else (Z, X)
    normal = a.T @ a
    W = np.linalg.solve(normal + ridge * np.trace(normal) / 5 * np.eye(5), a.T @ b)
    np.testing.assert_allclose(plain.recover(Z), a @ W + (X.mean(axis=0) if intercept else 0.0), atol=1e-8)
