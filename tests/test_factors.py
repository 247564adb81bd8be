"""A map as factors: all of it where it is of low rank, and what matters most where it is not."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from test_budget import check_bytes

from sf2el import SF2EL
from sf2el import core as _core
from sf2el.experts.posterior import affine_bytes
from sf2el.maps.joint_map import RANK, JointMap
from sf2el.maps.sketch import ROOM


def spread_of(dim, seed=0):
    """Return deviations of any scale, and a correlation."""
    rng = np.random.default_rng(seed)
    covariance = np.cov(rng.normal(size=(dim, dim)) @ rng.normal(size=(dim, 4 * dim)))
    deviation = np.sqrt(np.diagonal(covariance))
    return 10.0 ** rng.integers(-9, 9, size=dim), covariance / np.outer(deviation, deviation)


def lost(matrix, factors, deviation, correlation):
    """Return the share of what a matrix gives, for rows that vary so, that its factors do not."""
    dim, root = matrix.shape[1], np.linalg.cholesky(correlation + 1e-12 * np.eye(len(correlation)))
    wrong = (matrix - factors[:, dim:].T @ factors[:, :dim]) * deviation
    return np.linalg.norm(wrong @ root) / np.linalg.norm((matrix * deviation) @ root)


@pytest.mark.parametrize(("old", "new"), [(90, 63), (20, 40)])
@pytest.mark.parametrize("rank", [1, 5, 13])
def test_a_map_of_low_rank_is_all_there(be, old, new, rank):
    rng, (deviation, correlation) = np.random.default_rng(1), spread_of(new)
    matrix = rng.normal(size=(old, rank)) @ rng.normal(size=(rank, new)) / deviation
    for kept in (rank, 13):
        factors = np.asarray(be.factors(matrix, deviation, correlation, kept))
        assert factors.shape == (kept, new + old)
        assert lost(matrix, factors, deviation, correlation) < 1e-10
        # The directions are of length 1: their digits are all used, whatever the scale of features.
        assert np.abs((factors[:, new:] ** 2).sum(axis=1) - 1.0).max() < 1e-9 or kept > rank


@pytest.mark.parametrize("decay", [0.7, 0.95])
def test_no_other_factors_are_nearer(be, decay):
    old, new, rank = 50, 40, 13
    rng, (deviation, correlation) = np.random.default_rng(2), spread_of(new)
    matrix = rng.normal(size=(old, new)) * decay ** np.arange(new) @ rng.normal(size=(new, new)) / deviation
    factors = np.asarray(be.factors(matrix, deviation, correlation, rank))
    lengths = np.linalg.svd((matrix * deviation) @ np.linalg.cholesky(correlation), compute_uv=False)
    least = np.linalg.norm(lengths[rank:]) / np.linalg.norm(lengths)
    assert least <= lost(matrix, factors, deviation, correlation) * (1.0 + 1e-9)
    assert lost(matrix, factors, deviation, correlation) < 1.02 * least


def test_what_gives_nothing_has_factors_too(be):
    factors = np.asarray(be.factors(np.zeros((30, 20)), np.zeros(20), np.eye(20), 3))
    assert np.all(np.isfinite(factors)) and not (factors[:, 20:].T @ factors[:, :20]).any()


@pytest.mark.skipif(not _core.native_available(), reason="the compiled core was not built")
def test_sizes_that_differ_are_refused():
    be = _core.backend("native")
    for deviation, correlation in ((np.ones(3), np.eye(4)), (np.ones(4), np.eye(3))):
        with pytest.raises(ValueError, match="sizes differ"):
            be.factors(np.zeros((5, 4)), deviation, correlation, 2)


# -- in a model


def fitted_map(be, rows, new_dim=30, old_dim=40):
    rng = np.random.default_rng(0)
    sources = rng.normal(size=(rows, old_dim)) * 0.8 ** np.arange(old_dim)
    X = sources @ rng.normal(size=(old_dim, old_dim)) / old_dim
    Z = X @ rng.normal(size=(old_dim, new_dim)) * 10.0 ** rng.integers(-3, 3, size=new_dim) + 5.0
    psi = JointMap(new_dim, old_dim, np.sqrt(old_dim), "float32", be.NAME)
    space = type("Space", (), {"moments": None, "scaler": be.Scaler(new_dim, 1.0), "dim": new_dim})()
    for z in Z:
        space.scaler.scale_into(z, np.empty(new_dim), True)
    psi.observe(Z, X)
    psi.solve(type("Space", (), {"moments": None, "scaler": None}), space)
    return psi, space, Z


@pytest.mark.parametrize("rows", [1, 3, ROOM, RANK])
def test_a_map_from_few_rows_loses_nothing_but_digits(be, rows):
    psi, space, Z = fitted_map(be, rows)
    before, least = psi.recover(Z), psi.least_nbytes
    assert psi.narrower and not psi.rank
    psi.narrow(space)
    assert psi.rank == rows and psi.settled and psi.brief and not psi.narrower and not psi.thinner
    assert psi.nbytes == 8 + affine_bytes(30, 40, "bfloat16", rank=rows) == psi.least_nbytes <= least
    assert np.abs(psi.recover(Z) - before).max() <= 0.02 * np.abs(before).max()
    twin = psi.clone()
    assert twin.rank == rows and np.array_equal(twin.recover(Z), psi.recover(Z))
    assert np.array_equal(twin.affine.factors, psi.affine.factors)
    psi.solve(space, space)  # it is not fitted anew
    assert np.array_equal(twin.recover(Z), psi.recover(Z))


def test_a_map_from_many_rows_keeps_most(be):
    psi, space, Z = fitted_map(be, 25)
    before = psi.recover(Z)
    psi.narrow(space)
    assert psi.rank == RANK
    wrong = np.linalg.norm(psi.recover(Z) - before) / np.linalg.norm(before)
    assert 0.001 < wrong < 0.3  # more than digits, and not much more


def test_a_map_between_few_features_stays_as_it_is(be):
    psi, _, _ = fitted_map(be, ROOM, new_dim=18, old_dim=25)
    assert not psi.narrower and psi.least_nbytes == 8 + affine_bytes(18, 25, "bfloat16")


def wide_stream(old_dim=90, new_dim=63, rows=420):
    """Return features that share five sources, as sensors do, with labels."""
    rng = np.random.default_rng(3)
    sources = rng.normal(size=(rows, 5))
    X = sources @ rng.normal(size=(5, old_dim)) + 0.2 * rng.normal(size=(rows, old_dim))
    Z = X @ rng.random((old_dim, new_dim))
    names = [f"a{i}" for i in range(old_dim)], [f"b{i}" for i in range(new_dim)]
    return X, Z, (sources[:, 0] > 0.0).astype(int), names


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize(("old_dim", "new_dim", "budget"), [(90, 63, "16KiB"), (60, 42, "10KiB")])
def test_many_features_are_recovered_in_few_bytes(old_dim, new_dim, budget, backend, monkeypatch):
    """After the change no label comes: what is known is known through the map."""
    X, Z, y, (old, new) = wide_stream(old_dim, new_dim)
    monkeypatch.setenv("SF2EL_BACKEND", backend)
    model = SF2EL(budget=budget)
    for t in range(420):
        names = old if t < 190 else old + new if t < 200 else new
        row = dict(zip(old + new, [*X[t], *Z[t]], strict=True))
        model.learn_one({name: row[name] for name in names}, int(y[t]) if t < 200 else None)
        if t > 180:
            check_bytes(model)
    psi = model._stage.psi
    assert psi is not None and psi.rank == psi.rows < ROOM
    told = [model.predict_one(dict(zip(new, z, strict=True))) for z in Z[200:]]
    assert np.mean(told == y[200:]) > 0.85
    twin, again = copy.deepcopy(model), SF2EL.from_bytes(model.to_bytes())
    assert twin.to_bytes() == again.to_bytes() == model.to_bytes()
    for z, label in zip(Z[200:260], y[200:], strict=False):
        row = dict(zip(new, z, strict=True))
        assert twin.predict_proba_one(row) == again.predict_proba_one(row) == model.predict_proba_one(row)
        for one in (model, twin, again):
            one.learn_one(row, int(label))
    assert twin.to_bytes() == again.to_bytes() == model.to_bytes()


def test_a_long_overlap_of_many_features_is_recovered_too():
    X, Z, y, (old, new) = wide_stream()
    model = SF2EL(budget="16KiB")
    model.learn_many(X[:140], y[:140].tolist(), features=old)
    model.learn_many(np.hstack([X, Z])[140:200], y[140:200].tolist(), features=old + new)
    check_bytes(model)
    track = model.run_many(Z[200:], [None] * 220, features=new)
    check_bytes(model)
    assert model._stage.psi.rank == RANK and model._stage.psi.rows > ROOM
    assert np.mean(track.prediction == y[200:]) > 0.85
