"""The map from means and covariances, and the whitening, in both backends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sf2el.core import backend, native_available
from sf2el.experts.white import whitening
from sf2el.maps.gaussian_map import Known, Shown, gaussian_map


def streams(old, new, rows, seed=0, noise=0.3):
    """Return old and new features that have to do with each other, and a divisor as a space has it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, old)) @ (np.eye(old) + 0.3 * rng.normal(size=(old, old)))
    Z = X @ rng.normal(size=(old, new)) + noise * rng.normal(size=(rows, new))
    return X / (X.std(axis=0) * np.sqrt(old)), Z * rng.uniform(0.1, 30.0, size=new) + 4.0


def covariance(rows):
    return np.atleast_2d(np.cov(rows.T, bias=True))


def known(X, Z, overlap, *, old=True, new=True):
    """What is known when all old rows but the last were seen before the overlap, and the new ones go on."""
    both = np.hstack([Z[:overlap], X[:overlap]])
    shown = Shown(Z.mean(axis=0), Z.std(axis=0), covariance(Z), float(len(Z) - overlap))
    return Known(
        overlap,
        Z.shape[1],
        both.mean(axis=0),
        covariance(both),
        covariance(X) if old else None,
        shown if new else None,
    )


def plain(overlap=20, **given):
    return known(*streams(4, 6, 200), overlap, **given)


def constant_features():
    X, Z = streams(3, 4, 100)
    X[:, 1], Z[:, 2] = 0.0, 1234.5
    return known(X, Z, 10)


def one_row():
    return known(*streams(3, 4, 100), 1)


def one_row_and_nothing_else():
    return known(*streams(3, 4, 100), 1, old=False, new=False)


def one_feature_each():
    return known(*streams(1, 1, 100), 10)


def huge_values():
    X, Z = streams(3, 4, 100)
    return known(X, np.clip(1e15 * (Z - 4.0), -1e15, 1e15), 10)


def huge_offset():
    X, Z = streams(3, 4, 100)
    return known(X, Z + 1e9, 10)


def unrelated(overlap=20, old=4, new=6):
    """The new features have nothing to do with the old ones."""
    X, _ = streams(old, new, 200)
    return known(X, streams(old, new, 200, seed=1)[1], overlap)


def mixtures_and_others(overlap=30, old=4, others=5):
    """Some new features tell the old ones, others have nothing to do with them."""
    X, Z = streams(old, old, 200, noise=0.0)
    return known(X, np.hstack([Z, streams(old, others, 200, seed=1)[1]]), overlap)


def still(overlap=20, by=0.0):
    """The old features stood still in the overlap, but for rounding."""
    X, Z = streams(4, 6, 200)
    X[:overlap] = X[0] + by * X[:overlap]
    return known(X, Z, overlap)


def rank_deficient():
    X, Z = streams(2, 2, 100, noise=0.0)
    return known(np.hstack([X, X, X]), np.hstack([Z, -Z, Z, Z]), 30)


def tiny_overlap_spread():
    """The overlap hardly moved, and the rows after it do."""
    X, Z = streams(3, 4, 300)
    Z[:10] = Z[0] + 1e-6 * (Z[:10] - Z[0])
    return known(X, Z, 10)


def readings(rows=300, old=12, new=8, seed=0):
    """Old features as they are read, some of them constant or far from 0, and weights for sums of them."""
    rng = np.random.default_rng(seed)
    units = np.geomspace(0.2, 5.0, old)
    X = rng.gamma(2.0, size=(rows, old)) @ (np.eye(old) + 0.2 * rng.uniform(size=(old, old))) * units
    return X, rng.uniform(size=(old, new))


def sums(overlap=8, constant=0.0, later=True, **given):
    """The new features are sums of what the old ones read, with or without a constant."""
    X, W = readings(**given)
    return known_as_read(X, X @ W + constant * np.arange(1.0, W.shape[1] + 1.0), overlap, later=later)


def known_as_read(X, Z, overlap, *, later=True):
    """What is known where old features are read so; their divisor is 1."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    scaled = np.divide(X - mean, deviation, out=np.zeros_like(X), where=deviation > 0.0)
    return replace(known(scaled, Z, overlap, new=later), read=(mean, deviation))


def sums_of_constants():
    X, W = readings()
    X[:, 3] = 7.0
    return known_as_read(X, X @ W, 8)


def far_from_zero():
    X, W = readings()
    return known_as_read(X + 1e4, (X + 1e4) @ W, 8)


CASES = {
    "plain": plain,
    "sums of readings": sums,
    "sums, and no later rows": lambda: sums(later=False),
    "sums with a constant": lambda: sums(constant=30.0),
    "sums in a long overlap": lambda: sums(60),
    "sums in two rows": lambda: sums(2),
    "sums in one row": lambda: sums(1),
    "sums in a sketch": lambda: replace(sums(), whole=False),
    "sums of which the old features are not known together": lambda: replace(sums(), old=None),
    "fewer rows than old features, and those not known": lambda: known(*streams(9, 6, 60), 5, old=False),
    "sums of many": lambda: sums(10, old=25, new=30),
    "sums of constants": sums_of_constants,
    "sums far from zero": far_from_zero,
    "unrelated readings": lambda: known_as_read(readings()[0], readings(seed=1)[0], 10),
    "readings that are constant": lambda: replace(plain(), read=(np.ones(4), np.zeros(4))),
    "a short overlap": lambda: plain(3),
    "old not known": lambda: plain(old=False),
    "new not known": lambda: plain(new=False),
    "neither known": lambda: plain(old=False, new=False),
    "no later rows": lambda: replace(plain(), new=replace(plain().new, later=0.0)),
    "many later rows": lambda: replace(plain(), new=replace(plain().new, later=1e7)),
    "more old than new": lambda: known(*streams(9, 2, 200), 20),
    "many of each": lambda: known(*streams(21, 35, 400), 40),
    "so many that NumPy solves for both": lambda: known(*streams(2, 520, 60), 10),
    "constant features": constant_features,
    "one row": one_row,
    "one row and nothing else": one_row_and_nothing_else,
    "one feature each": one_feature_each,
    "huge values": huge_values,
    "huge offset": huge_offset,
    "rank deficient": rank_deficient,
    "unrelated": unrelated,
    "unrelated, fewer rows than features": lambda: unrelated(8, 12, 9),
    "mixtures and others": mixtures_and_others,
    "fewer mixtures than old features": lambda: mixtures_and_others(30, 4, 2),
    "a sketch of them": lambda: replace(unrelated(), whole=False),
    "still": still,
    "nearly still": lambda: still(by=1e-9),
    "related in part": lambda: known(*streams(4, 6, 200, noise=2.0), 30),
    "tiny overlap spread": tiny_overlap_spread,
}


def oracle(what, divisor):
    """The equations of the module's text, with plain inverses and the rows' sums written out."""
    q, B = what.new_dim, what.rows
    S = what.covariance
    later = 0.0 if what.new is None else what.new.later
    mean = what.mean[:q] if what.new is None else what.new.mean
    sd = np.sqrt(np.diag(S)[:q]) if what.new is None else what.new.deviation
    D = np.diag([1.0 / s if s > 1e-12 * abs(m) + 1e-30 else 0.0 for s, m in zip(sd, mean, strict=True)])
    m_x, m_a = divisor * what.mean[q:], D @ (what.mean[:q] - mean)

    def correlated(cov):
        scale = np.diag([1.0 / np.sqrt(v) if v > 1e-18 else 0.0 for v in np.diag(cov)])
        return scale @ cov @ scale

    p = len(m_x)
    spread = np.eye(p) if what.old is None else 0.8 * correlated(what.old) + 0.2 * np.eye(p)
    A, zero = thought(what, divisor, D)
    xx_0, xa_0 = A.T @ (divisor**2 * S[q:, q:]) @ A, divisor * A.T @ S[q:, :q] @ D
    m_x, spread = A.T @ m_x, A.T @ spread @ A
    no_row = (np.zeros(p), np.zeros(q))
    row = no_row if zero is None else (A.T @ zero, -D @ what.mean[:q])

    def sums(extra):
        rest = -B * m_a / later if later else 0.0 * m_a
        x, a = B * m_x / (B + extra), (B * m_a + extra * rest) / (B + extra)
        xx = B * (xx_0 + np.outer(m_x - x, m_x - x)) + extra * np.outer(x, x)
        xa = B * (xa_0 + np.outer(m_x - x, m_a - a)) + extra * np.outer(-x, rest - a)
        aa = B * (D @ S[:q, :q] @ D + np.outer(m_a - a, m_a - a)) + extra * np.outer(rest - a, rest - a)
        return x, a, xx + np.outer(row[0], row[0]), xa + np.outer(*row), aa + np.outer(row[1], row[1])

    def doubt():
        _, _, xx, xa, aa = sums(0.0)
        xx, xa, aa = xx - np.outer(row[0], row[0]), xa - np.outer(*row), aa - np.outer(row[1], row[1])
        varies, t = np.diag(aa) > 0.0, 0.1 * p
        if not what.whole or B * B <= 20 or not np.trace(xx) > 0.0 or not varies.any():
            return 0.0, np.zeros(q)
        W = np.linalg.inv(xx + t * np.eye(p)) @ xa
        left = np.diag(aa - 2.0 * W.T @ xa + W.T @ xx @ W)[varies] / np.diag(aa)[varies]
        # The eigenvalues of the Gram matrix of B rows about their mean: those of xx, and 0 for the rest.
        k = np.sort(np.maximum(np.linalg.eigvalsh(xx), 0.0))[::-1]
        k = np.concatenate([k, np.zeros(B)])[: max(B - 1, np.sum(k > 1e-9 * k[0]))]
        exact, nothing = t**2 * np.sum(k / (k + t) ** 2) / np.sum(k), t**2 * np.sum((k + t) ** -2.0) / (B - 1)

        def share(left):
            return np.clip(((left - exact) / nothing - 20.0 / B**2) / (1.0 - 20.0 / B**2), 0.0, 1.0)

        u, noise = share(np.mean(sorted(left)[:p])), np.zeros(q)
        noise[varies] = 0.5 * share(left) * min(1.0, u / max(np.mean(share(left)), 1e-300))
        return u, noise

    u, known_noise = doubt()
    penalty = 0.1 + p * u

    def ridge(xx, xa, aa, weight):
        W = np.linalg.inv(xx + penalty * np.eye(p)) @ xa
        left = np.diag(aa - 2.0 * W.T @ xa + W.T @ xx @ W) / weight
        return W, np.maximum(left, known_noise) + 1e-3

    def fitted(xx, xa, aa, weight):
        W, R = ridge(xx, xa, aa, weight)
        unseen = penalty * np.trace(np.linalg.inv(xx + penalty * np.eye(p))) / p
        return W, R, 0.1 * unseen * np.mean(np.diag(W.T @ spread @ W))

    def turned(W, R):
        return spread @ W @ np.linalg.inv(W.T @ spread @ W + np.diag(R))  # E[x | a] = turned a

    x, a, xx, xa, aa = sums(0.0)
    W, R, unseen = fitted(xx, xa, aa, B)
    R = R + unseen
    if later:
        extra = later * R.mean()
        x, a, xx, xa, aa = sums(extra)
        W, R, unseen = fitted(xx, xa, aa, B + extra)
        R = R + unseen
        n, G = min(5.0 * B, later), correlated(what.new.covariance)
        for _ in range(5 if what.old is None else 10):
            E = turned(W, R)
            second = E @ G @ E.T + spread - E @ W.T @ spread
            W, R = ridge(xx + n * second, xa + n * E @ G, aa + n * G, B + extra + n)
            R = R + unseen * (5.0 / (5.0 + later)) ** 2
    back = np.linalg.inv(A.T) @ turned(W, R) @ D
    return np.column_stack([back, np.linalg.inv(A.T) @ x]) / divisor, mean + sd * a, u


def thought(what, divisor, D):
    """A, and where zero is if it counts: the prior, with the covariances of rows written out."""
    q, B = what.new_dim, what.rows
    p = len(what.mean) - q
    if what.read is None or what.old is None or not what.whole:
        return np.eye(p), None
    mean, deviation = what.read
    xx, xa = B * divisor**2 * what.covariance[q:, q:], B * divisor * what.covariance[q:, :q] @ D
    aa = B * np.diag(D @ what.covariance[:q, :q] @ D)
    told = aa > 0.0

    def root(tau, c):
        values, vectors = np.linalg.eigh(np.eye(p) + c * np.ones((p, p)))
        return np.diag(tau) @ vectors @ np.diag(np.sqrt(values)) @ vectors.T / np.sqrt(1.0 + c)

    def evidence(tau, c):
        A = root(tau, c)
        k = A.T @ xx @ A
        if not np.trace(k) > 0.0 or not told.any():
            return 0.0
        scale = (B - 1) / np.trace(k)
        # Of B - 1 rows about their mean: as many eigenvalues, of which beyond p all are 0.
        eigen = np.concatenate([np.sort(scale * np.linalg.eigvalsh(k))[::-1], np.zeros(B)])[: max(B - 1, p)]
        found = []
        for r in (0.1, 0.9):
            inside = np.linalg.inv(r * np.eye(p) + (1.0 - r) * scale * k)
            explained = (1.0 - r) * scale * np.diag(xa.T @ A @ inside @ A.T @ xa)
            left = max(np.mean((1.0 - explained / np.where(told, aa, 1.0))[told]), 1e-9) / r
            volume = np.sum(np.log((1.0 - r) * eigen + r)) - (len(eigen) - (B - 1)) * np.log(r)
            found.append(-0.5 * told.sum() * (volume + (B - 1) * np.log(left)))
        return np.logaddexp(*found)

    tau, c = np.ones(p), 0.0
    if B > 2 and deviation.any():
        as_read = np.maximum(deviation / np.sqrt(np.mean(deviation[deviation > 0.0] ** 2)), 0.05)
        odds = evidence(as_read, 0.3) - evidence(tau, 0.0) - 2.0
        share, c = 1.0 / (1.0 + np.exp(np.clip(-odds, -700.0, 700.0))), 0.3
        c *= share
        tau = np.sqrt(share * as_read**2 + 1.0 - share)
        tau /= np.sqrt(np.mean(tau**2))
    zero = np.array([-m / s if s > 0.0 else 0.0 for m, s in zip(mean, deviation, strict=True)])
    far, zero, a = np.abs(zero).max() > 100.0, zero - divisor * what.mean[q:], -D @ what.mean[:q]
    A, x = root(tau, 3.0), root(tau, 3.0).T @ zero
    inside, total = np.linalg.inv(A.T @ xx @ A + 0.1 * np.eye(p)), np.trace(A.T @ xx @ A)
    if B <= 2 or far or not total > 0.0 or not told.any():
        return root(tau, c), None
    error = (a - xa.T @ A @ inside @ x)[told] * np.sqrt(B / aa[told])
    known = B / total * 0.1 * (1.0 + 1.0 / B + x @ inside @ x)
    free = known + B / total * x @ x
    odds = np.sum(0.5 * np.log(free / known) - 0.5 * error**2 * (1.0 / known - 1.0 / free))
    return root(tau, c), zero if odds >= 3.0 else None


@pytest.mark.parametrize("name", CASES)
def test_the_map_is_that_of_the_equations(be, name):
    what = CASES[name]()
    for divisor in (1.0, 2.5):
        matrix, center, unexplained = gaussian_map(what, divisor, be.NAME)
        wanted, wanted_center, wanted_unexplained = oracle(what, divisor)
        assert unexplained == pytest.approx(wanted_unexplained, abs=1e-9)
        # A column of a feature that reads in the thousands is small: each is compared by its own size.
        size = np.abs(wanted).max(axis=0) + 1e-300
        # Sums without noise leave matrices that are nearly singular, and the steps add up what is rounded.
        np.testing.assert_allclose(matrix / size, wanted / size, rtol=0, atol=1e-7)
        np.testing.assert_allclose(center, wanted_center, rtol=1e-9)


@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
@pytest.mark.parametrize("name", CASES)
def test_backends_agree(name):
    what = CASES[name]()
    native, numpy = (gaussian_map(what, 1.5, be) for be in ("native", "numpy"))
    (matrix, center, unexplained), (wanted, wanted_center, wanted_unexplained) = native, numpy
    assert unexplained == pytest.approx(wanted_unexplained, abs=1e-9)
    assert matrix.shape == wanted.shape
    size = np.abs(wanted).max(axis=0) + 1e-300
    np.testing.assert_allclose(matrix / size, wanted / size, rtol=0, atol=1e-7)
    np.testing.assert_allclose(center, wanted_center, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_a_map_is_finite_and_leaves_what_it_rests_on_as_it_was(be, name):
    what, before = CASES[name](), CASES[name]()
    first, again = gaussian_map(what, 2.0, be.NAME), gaussian_map(what, 2.0, be.NAME)
    for one, other in zip(first, again, strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(what.covariance, before.covariance)
    np.testing.assert_array_equal(what.mean, before.mean)


def test_a_constant_feature_says_nothing(be):
    matrix, _, _ = gaussian_map(constant_features(), 1.0, be.NAME)
    assert not matrix[:, 2].any()
    np.testing.assert_allclose(matrix[1], 0.0, atol=1e-12)


def unexplained_in(overlap, *, noise, seeds=40, old=5, new=4):
    """What maps say of new features of which this share is noise, by the stream's seed."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, old))
        W = rng.normal(size=(old, new))
        Z = np.sqrt(1.0 - noise) * X @ (W / np.linalg.norm(W, axis=0)) + np.sqrt(noise) * rng.normal(
            size=(200, new)
        )
        found.append(gaussian_map(known(X, Z, overlap, new=False), 1.0).unexplained)
    return np.array(found)


@pytest.mark.parametrize("noise", [0.0, 0.3, 0.7, 1.0])
def test_a_long_overlap_tells_what_is_unexplained(noise):
    found = unexplained_in(100, noise=noise)
    # The ridge of the trial takes a little for noise, and leaves some noise out.
    assert found.mean() == pytest.approx(noise, abs=0.05)


def test_a_short_overlap_calls_nothing_noise_that_may_be_none():
    for overlap in (1, 2, 3, 4):
        assert not unexplained_in(overlap, noise=0.0).any()
    assert np.quantile(unexplained_in(10, noise=0.0), 0.9) < 0.05
    assert np.median(unexplained_in(10, noise=1.0)) > 0.6


def test_what_has_nothing_to_do_with_the_old_features_leaves_them_near_their_mean(be):
    for overlap, old, new in ((10, 5, 4), (10, 12, 9), (40, 6, 6)):
        what = unrelated(overlap, old, new)
        matrix, center, unexplained = gaussian_map(what, np.sqrt(old), be.NAME)
        Z = streams(old, new, 200, seed=1)[1]
        X = streams(old, new, 200)[0]
        guess = (Z[overlap:] - center) @ matrix[:, :-1].T + matrix[:, -1]
        # A guess that says nothing would be off by as much as the features vary.
        assert unexplained > 0.2
        assert np.mean((guess - X[overlap:]) ** 2) < 1.6 * np.mean(X[overlap:] ** 2)


def test_features_that_say_nothing_do_not_spoil_those_that_say_all(be):
    for overlap in (10, 30):
        what = mixtures_and_others(overlap)
        matrix, center, unexplained = gaussian_map(what, 2.0, be.NAME)
        X, Z = streams(4, 4, 200, noise=0.0)
        new = np.hstack([Z, streams(4, 5, 200, seed=1)[1]])
        guess = (new[overlap:] - center) @ matrix[:, :-1].T + matrix[:, -1]
        assert unexplained == 0.0
        assert np.mean((guess - X[overlap:]) ** 2) < 0.3 * np.mean(X[overlap:] ** 2)


def missed(be, what, X, Z, overlap):
    """The share of the old features that a map misses, after the overlap."""
    matrix, center, _ = gaussian_map(what, 1.0, be.NAME)
    guess = (Z[overlap:] - center) @ matrix[:, :-1].T + matrix[:, -1]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.mean((guess - scaled[overlap:]) ** 2)


def missed_with_and_without(be, constant, seeds=12, overlap=8):
    """What maps miss of old features whose sums the new ones are: told how those are read, and not told."""
    found = []
    for seed in range(seeds):
        X, W = readings(seed=seed)
        Z = X @ W + constant * np.random.default_rng(seed).normal(size=W.shape[1])
        what = known_as_read(X, Z, overlap)
        found.append([missed(be, one, X, Z, overlap) for one in (what, replace(what, read=None))])
    return np.mean(found, axis=0)


def test_sums_of_readings_are_recovered_better_by_who_knows_how_they_are_read(be):
    told, untold = missed_with_and_without(be, constant=0.0)
    assert told < 0.75 * untold


def test_a_constant_is_noticed_and_costs_nothing(be):
    told, untold = missed_with_and_without(be, constant=100.0)
    assert told < 0.9 * untold  # the units are worth something still


def test_units_that_have_nothing_to_do_with_the_sums_are_not_followed(be):
    found = []
    for seed in range(12):
        X, W = readings(seed=seed)
        Z = X @ W
        units = np.exp(2.0 * np.random.default_rng(seed).normal(size=X.shape[1]))
        what = known_as_read(X, Z, 8)
        mean, deviation = what.read
        found.append(
            [
                missed(be, replace(what, read=read), X, Z, 8)
                for read in ((mean * units, deviation * units), None)
            ]
        )
    told, untold = np.mean(found, axis=0)
    assert told < 1.1 * untold


def test_more_rows_with_both_spaces_make_what_was_thought_beforehand_matter_less(be):
    X, W = readings()
    far = []
    for overlap in (8, 200):
        what = known_as_read(X, X @ W, overlap)
        one, other = (gaussian_map(each, 1.0, be.NAME).matrix for each in (what, replace(what, read=None)))
        far.append(np.abs(one - other).max() / np.abs(other).max())
    assert far[1] < 0.3 * far[0]


def test_old_features_that_stood_still_tell_nothing_of_the_relation(be):
    for by in (1e-6, 1e-8, 1e-9):
        assert gaussian_map(still(by=by), 2.0, be.NAME).unexplained < 0.05


def not_a_covariance(kind):
    """What no rows can have shown: a correlation beyond 1, or a variance below 0."""
    what = plain()
    if kind == "old":
        beyond = np.full((4, 4), 1.01)
        np.fill_diagonal(beyond, 1.0)
        return replace(what, old=beyond)
    together = what.covariance.copy()
    together[6:, 6:] -= 2.0 * np.eye(4)
    return replace(what, covariance=together)


@pytest.mark.parametrize("kind", ["old", "joint"])
def test_a_matrix_without_a_root_gives_the_same_map_in_both_backends(be, kind):
    what = not_a_covariance(kind)
    matrix, center, _ = gaussian_map(what, 1.0, be.NAME)
    wanted, wanted_center, _ = gaussian_map(what, 1.0, "numpy")
    assert np.isfinite(matrix).all() and np.isfinite(center).all()
    np.testing.assert_allclose(matrix, wanted, rtol=1e-6, atol=1e-9 * np.abs(wanted).max())
    np.testing.assert_allclose(center, wanted_center, rtol=1e-6)


def test_what_is_no_number_is_refused_when_the_map_is_set(be):
    what = plain()
    bad = what.covariance.copy()
    bad[0, 8] = bad[8, 0] = np.nan
    matrix, center, _ = gaussian_map(replace(what, covariance=bad), 1.0, be.NAME)
    with pytest.raises(ValueError, match="holds NaN"):
        be.AffineMap(6, 4).set(np.ascontiguousarray(matrix), np.ascontiguousarray(center))


@pytest.fixture
def in_each_variant(monkeypatch):
    """Return a function that gives what the base and the wide variant of the core compute."""
    if not native_available():
        pytest.skip("the compiled core was not built")
    from sf2el.core import _native

    if not _native.wide_usable():
        pytest.skip("this processor or build has no wide variant of the core")

    def compute(function):
        found = []
        for variant in ("base", "wide"):
            monkeypatch.setenv("SF2EL_VARIANT", variant)
            found.append(function())
        return found

    return compute


@pytest.mark.parametrize("name", CASES)
def test_both_variants_give_the_same_bits(in_each_variant, name):
    base, wide = in_each_variant(lambda: gaussian_map(CASES[name](), 1.5, "native"))
    for one, other in zip(base, wide, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
def test_what_does_not_fit_together_is_refused():
    what = plain()
    with pytest.raises(ValueError, match="their sizes differ"):
        gaussian_map(replace(what, old=np.eye(3)), 1.0, "native")
    with pytest.raises(ValueError, match="their sizes differ"):
        gaussian_map(replace(what, new=replace(what.new, mean=np.zeros(2))), 1.0, "native")
    with pytest.raises(ValueError, match="their sizes differ"):
        gaussian_map(replace(what, read=(np.zeros(4), np.ones(3))), 1.0, "native")
    with pytest.raises(ValueError, match="a feature of each space"):
        gaussian_map(replace(what, new_dim=10), 1.0, "native")


# -- whitening

COVARIANCES = {
    "plain": (covariance(streams(1, 7, 50)[1]), 50.0),
    "few rows": (covariance(streams(5, 5, 3)[1]), 3.0),
    "one feature": (np.array([[4.0]]), 10.0),
    "uncorrelated": (np.diag([1.0, 4.0, 9.0]), 1000.0),
    "constant": (np.zeros((3, 3)), 20.0),
    "one constant": (np.diag([1.0, 0.0, 9.0]), 1000.0),
    "alike": (np.ones((6, 6)), 1e6),
    "opposite": (np.array([[1.0, -1.0], [-1.0, 1.0]]), 1e9),
    "huge": (1e30 * covariance(streams(3, 4, 60)[1]), 60.0),
    "many": (covariance(streams(30, 45, 300)[1]), 300.0),
}


@pytest.mark.parametrize("name", COVARIANCES)
def test_whitening_is_a_root_of_the_inverse(be, name):
    matrix, rows = COVARIANCES[name]
    turn = whitening(matrix, rows, be.NAME)
    np.testing.assert_allclose(turn, turn.T, rtol=0, atol=1e-12)
    n = len(matrix)
    variance = np.diag(matrix)
    scale = np.array([1.0 / np.sqrt(v) if v > 1e-18 else 0.0 for v in variance])
    drawn = (rows * matrix * np.outer(scale, scale) + n * np.eye(n)) / (rows + n)
    inverse = np.linalg.inv(drawn + 0.05 * np.eye(n))
    # Its square is the inverse but for one factor, which keeps the total variance.
    np.testing.assert_allclose(turn @ turn, inverse * n / np.trace(drawn @ inverse), rtol=1e-9, atol=1e-9)
    assert np.trace(turn @ drawn @ turn) == pytest.approx(n)
    assert np.linalg.eigvalsh(turn).min() > 0.0


@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
@pytest.mark.parametrize("name", COVARIANCES)
def test_backends_agree_on_whitening(name):
    native, numpy = (whitening(*COVARIANCES[name], be) for be in ("native", "numpy"))
    np.testing.assert_allclose(native, numpy, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", COVARIANCES)
def test_both_variants_give_the_same_whitening(in_each_variant, name):
    base, wide = in_each_variant(lambda: backend("native").whitening(*COVARIANCES[name], 0.05))
    np.testing.assert_array_equal(base, wide)
