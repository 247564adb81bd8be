"""Maps in few bytes: what is let go of for them, and what they go on with."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el import SF2EL


def sums(old_dim, new_dim, seed=0, rows=700):
    """Return readings that share some sources, sums of them, and labels."""
    rng = np.random.default_rng(seed)
    sources = rng.normal(size=(rows, 6))
    X = np.exp(0.4 * sources @ rng.normal(size=(6, old_dim)) + 0.4 * rng.normal(size=(rows, old_dim)))
    return X, X @ rng.uniform(size=(old_dim, new_dim)), (sources[:, 0] > 0.0).astype(int)


def after_a_change(budget, old_dim, new_dim, seed=0, overlap=10):
    """Return a model that has seen a change of features half-way, and how often it was right since."""
    X, Z, y = sums(old_dim, new_dim, seed)
    old, new = [f"a{i}" for i in range(old_dim)], [f"b{i}" for i in range(new_dim)]
    labels = [int(label) if i % 10 == 0 else None for i, label in enumerate(y)]
    model, first = SF2EL(budget=budget), 350 - overlap
    model.learn_many(X[:first], labels[:first], features=old)
    model.learn_many(np.hstack([X[first:350], Z[first:350]]), labels[first:350], features=old + new)
    told = model.run_many(Z[350:], labels[350:], features=new)
    return model, np.mean(told.prediction == y[350:])


def test_a_map_that_knows_most_stays_and_leaves_its_bytes_to_others():
    model, _ = after_a_change("4KiB", 15, 10)
    psi = model._stage.psi
    assert psi.knows_most and psi.settled and model._stage.past.moments is None
    assert model.memory_usage() <= 4096


def test_a_map_that_knows_little_goes_on_with_what_it_recovers():
    model, right = after_a_change("16KiB", 40, 28)
    stage = model._stage
    assert not stage.psi.knows_most and not stage.psi.settled and stage.past.moments is None
    covariance = stage.psi._old_covariance(stage.past, stage.current)
    np.testing.assert_allclose(np.diagonal(covariance), 1.0)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9
    off = covariance - np.diag(np.diagonal(covariance))
    assert np.abs(off).max() > 0.1  # it says something
    assert right > 0.7 and model.memory_usage() <= 16384


@pytest.mark.parametrize(("budget", "old_dim", "new_dim"), [("4KiB", 15, 10), ("16KiB", 40, 28)])
def test_such_models_go_on_bit_for_bit_from_a_file(budget, old_dim, new_dim):
    model, _ = after_a_change(budget, old_dim, new_dim)
    twin = SF2EL.from_bytes(model.to_bytes())
    Z = sums(old_dim, new_dim, seed=1)[1]
    names = [f"b{i}" for i in range(new_dim)]
    for one in (model, twin):  # enough rows for the map to be fitted anew, where it is
        one.learn_many(Z, [None] * len(Z), features=names)
    assert model.to_bytes() == twin.to_bytes()
