"""A budget that grows again brings back the kinds of experts that had to leave."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el import SF2EL
from sf2el.memory.giving_way import kernels_of


def sides_of_products(rows, dim=6, seed=0):
    """Return rows whose class no plane tells, and the classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, dim))
    return X, [int(value) for value in X[:, 0] * X[:, 1] > 0]


@pytest.mark.parametrize("rows", [10, 40, 300])
def test_a_budget_that_was_small_for_a_moment_costs_no_kind_of_expert(rows):
    X, y = sides_of_products(1500)
    names = list("abcdef")
    model, fresh = (SF2EL(budget="64KiB", seed=0) for _ in range(2))
    model.learn_many(X[:rows], y[:rows], features=names)
    model.set_budget("2KiB")
    small = len(model._stage.current.seats)
    model.set_budget("64KiB")
    assert len(model._stage.current.seats) > small
    assert model.memory_usage() <= 64 * 1024
    right = [
        np.mean(one.run_many(X[rows:], y[rows:], features=names).prediction[500:] == y[rows + 500 :])
        for one in (model, fresh)
    ]
    assert right[0] > right[1] - 0.03, right


def test_a_budget_that_was_small_in_an_overlap_costs_the_new_space_no_kind_of_expert():
    X, y = sides_of_products(600)
    Z = X @ np.random.default_rng(1).normal(size=(6, 6))
    old, new = list("abcdef"), list("uvwxyz")
    model = SF2EL(budget="64KiB", seed=0)
    model.learn_many(X[:300], y[:300], features=old)
    model.learn_many(np.hstack([X, Z])[300:310], y[300:310], features=old + new)
    learned = model._stage.upcoming.seats[-1]
    model.set_budget("1900")
    model.set_budget("64KiB")
    for space in (model._stage.current, model._stage.upcoming):
        assert kernels_of(space) and any(seat.name == "linear" for seat in space.seats)
    assert model._stage.overlap is not None and learned.name == "paper"
    model.learn_many(np.hstack([X, Z])[310:330], y[310:330], features=old + new)
    model.learn_many(Z[330:], y[330:], features=new)
    assert kernels_of(model._stage.current) and model.memory_usage() <= 64 * 1024
    assert SF2EL.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_more_bytes_alone_change_no_prediction():
    X, y = sides_of_products(400)
    model = SF2EL(budget="2KiB", seed=0)
    names = list("abcdef")
    model.learn_many(X[:300], y[:300], features=names)
    rows = [dict(zip(names, row, strict=True)) for row in X[300:].tolist()]
    before = [model.predict_proba_one(row)[1] for row in rows]
    model.set_budget("64KiB")
    assert len(kernels_of(model._stage.current)) == 3
    np.testing.assert_allclose([model.predict_proba_one(row)[1] for row in rows], before, atol=1e-5)


@pytest.mark.parametrize("dim", [4, 20, 60])
def test_growing_is_never_refused_and_the_way_back_is_open(dim):
    names = [f"f{i}" for i in range(dim)]
    X = np.random.default_rng(0).normal(size=(20, dim))
    with pytest.raises(ValueError) as raised:
        SF2EL(budget=600).learn_one(dict.fromkeys(names, 1.0), 0)
    least = int(str(raised.value).split()[-1].rstrip("."))
    model = SF2EL(budget=least + 8, seed=0)
    model.learn_many(X, [int(row[0] > 0) for row in X], features=names)
    for budget in (least + 16, least + 100, 2 * least, 4 * least, 20 * least, 3 * least, least + 8):
        model.set_budget(budget)
        kinds = [seat.name for seat in model._stage.current.seats]
        assert len(set(kinds)) == len(kinds) and model.memory_usage() <= budget
        assert len(model.weights(detail=True)) == len(kinds)


def test_a_very_wide_opened_space_gets_no_covariance_from_more_bytes():
    model = SF2EL(budget="2MiB")
    wide = {f"w{i}": 1.0 for i in range(5000)}
    for t in range(6):
        model.learn_one({"a": t, "b": t % 2}, t % 2)
    for t in range(4):
        model.learn_one({"a": t, "b": t % 2} | wide, t % 2)
    before = [seat.name for seat in model._stage.upcoming.seats]
    model.set_budget("3MiB")
    assert [seat.name for seat in model._stage.upcoming.seats] == before == ["logistic"]
