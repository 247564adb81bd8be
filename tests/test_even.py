"""The second linear expert, to which a feature counts by how evenly it varies."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from sf2el import SF2EL, SF2ELRegressor
from sf2el.experts.entries import EVEN
from sf2el.experts.even import THOUGHT, WIDEST_EVEN, even_of, evenness
from sf2el.experts.posterior import PosteriorSettings, moments_bytes
from sf2el.mixing.weights import BankWeights

BACKENDS = ("native", "numpy")


def mixed_rows(count: int, dim: int = 6, seed: int = 0) -> np.ndarray:
    """Features of variance 1: the first half are -1 or 1, the others 0 but in one of fifty rows."""
    rng = np.random.default_rng(seed)
    even = rng.choice([-1.0, 1.0], size=(count, dim // 2))
    rare = np.where(
        rng.random((count, dim - dim // 2)) < 0.02, rng.normal(0.0, 7.0, (count, dim - dim // 2)), 0.0
    )
    return np.hstack([even, rare])


def learned(X: np.ndarray, share: float = 0.1, budget: str = "64KiB", **more) -> SF2EL:
    rng = np.random.default_rng(1)
    model = SF2EL(budget=budget, seed=0, **more)
    model.learn_many(X, [int(x[0] > 0) if rng.random() < share else None for x in X])
    return model


# -- what is counted


@pytest.mark.parametrize(("precision", "close"), [("float64", 1e-12), ("float32", 1e-4)])
def test_fourth_powers_are_their_mean_and_change_nothing_else(be, precision, close):
    X = np.random.default_rng(3).normal(size=(70, 4)) * [1.0, 0.1, 3.0, 0.0] + 0.2
    plain, more = be.Moments(4, precision), be.Moments(4, precision, True)
    for moments in (plain, more):
        moments.observe_many(X[:40])
        for x in X[40:]:
            moments.observe(x)
    np.testing.assert_allclose(more.fourths, (X**4).mean(axis=0), rtol=close)
    assert len(plain.fourths) == 0 and more.count == 70
    np.testing.assert_array_equal(more.matrix(), plain.matrix())
    np.testing.assert_array_equal(more.state()[: len(plain.state())], plain.state())
    assert plain.nbytes == moments_bytes(4, precision)
    assert more.nbytes == moments_bytes(4, precision, fourths=True) > plain.nbytes
    again = be.Moments(4, precision, True)
    again.set_state(more.state())
    np.testing.assert_array_equal(again.state(), more.state())
    for one, other in ((plain, more), (more, plain)):
        with pytest.raises(ValueError, match="pass one for each row"):
            one.set_state(other.state())


@given(
    st.lists(st.floats(0.0, 1e30), min_size=1, max_size=12),
    st.floats(0.0, 1e9),
    st.sampled_from([1.0, 2.0, 5.5]),
)
def test_factors_are_those_of_the_equation(fourths, rows, divisor):
    factors = evenness(np.array(fourths), rows, divisor)
    assert np.all(np.isfinite(factors)) and np.all(factors > 0.0)
    assert np.mean(factors**2) == pytest.approx(1.0)
    powers = (rows * np.array(fourths) * divisor**4 + 3.0 * THOUGHT) / (rows + THOUGHT)
    expected = 1.0 / np.sqrt(np.maximum(powers, 1.0))
    np.testing.assert_allclose(factors / factors[0], expected / expected[0], rtol=1e-9)


def test_without_rows_all_features_count_alike():
    np.testing.assert_array_equal(evenness(np.zeros(5), 0.0), np.ones(5))


# -- an expert that sees rows by factors


def test_a_diagonal_is_the_matrix_with_it(be):
    factors = np.array([[0.5, 2.0, 1.25]])
    X = np.random.default_rng(4).normal(size=(60, 3))
    y = np.where(np.arange(60) % 3 == 0, np.where(X[:, 0] > 0, 1.0, -1.0), np.nan)
    settings = PosteriorSettings(size=0, gamma=0.0)
    told = []
    for diagonal, matrix in ((True, factors), (False, np.diag(factors[0]))):
        expert = be.Turned(be.Posterior(settings, 3), 3.0, diagonal)
        assert np.all(np.asarray(expert.matrix) == (np.ones((1, 3)) if diagonal else np.eye(3)))
        expert.set_matrix(matrix)
        np.testing.assert_array_equal(expert.matrix, matrix)
        scores, _ = expert.run(X, y)
        told.append(np.asarray(scores))
        wrong = np.ones((3, 3)) if diagonal else np.ones((1, 3))
        with pytest.raises(ValueError, match="does not fit"):
            expert.set_matrix(wrong)
        with pytest.raises(ValueError, match="holds"):
            expert.set_matrix(np.full(matrix.shape, np.nan))
        assert expert.nbytes - be.Posterior(settings, 3).nbytes == (16 if diagonal else 40)
    np.testing.assert_array_equal(*told)
    inside = be.Posterior(settings, 3)
    np.testing.assert_allclose(inside.run(np.clip(X * factors[0], -3.0, 3.0), y)[0], told[0])


# -- in a model


@pytest.mark.parametrize("backend", BACKENDS)
def test_features_that_vary_evenly_count_for_more(backend):
    model = learned(mixed_rows(400), backend=backend)
    (even,) = even_of(model._stage.current)
    assert even.name == f"{EVEN}linear" and f"current {EVEN}linear" in model.weights(detail=True)
    factors = np.asarray(even.core.matrix)[0]
    assert factors[:3].min() > 2.0 * factors[3:].max()
    assert np.mean(factors**2) == pytest.approx(1.0, abs=1e-6)


def test_few_labels_are_enough_where_it_is_right():
    right = []
    for seed in range(30):
        X = mixed_rows(300, seed=seed)
        model = SF2EL(budget="64KiB", seed=0, classes=[0, 1])
        labels = [int(x[0] > 0) if 100 <= t < 106 else None for t, x in enumerate(X)]
        model.learn_many(X, labels)
        names = model.explain_one(dict(enumerate(X[0])))
        scores = {}
        for name in ("current linear", f"current {EVEN}linear"):
            assert name in names
            said = [model.explain_one(dict(enumerate(x)))[name]["score"] for x in X[200:]]
            scores[name] = np.mean((np.array(said) < 0) == (X[200:, 0] > 0))
        right.append(list(scores.values()))
    plain, even = np.mean(right, axis=0)
    assert even > plain + 0.02


def test_both_linear_experts_begin_with_one_weight():
    model = SF2EL(budget="64KiB", seed=0)
    model.learn_one({"a": 1.0, "b": 2.0}, None)
    weights = model.weights(detail=True)
    assert weights["current linear"] == weights[f"current {EVEN}linear"]
    small = SF2EL(budget="2KiB", seed=0)
    small.learn_one({"a": 1.0, "b": 2.0}, None)
    left = small.weights(detail=True)
    assert f"current {EVEN}linear" not in left
    widths = [sum(one for name, one in told.items() if "rbf" in name) for told in (weights, left)]
    linear = 2 * weights["current linear"]
    # One that leaves is inherited from by its kind, and not by all.
    assert (
        left["current linear"] / (left["current linear"] + widths[1]) >= linear / (linear + widths[0]) - 1e-9
    )


def test_who_leaves_is_inherited_from_by_its_heir():
    weights = BankWeights(np.array([0.1, 0.2, 0.3, 0.4]), "classes", 1, "numpy")
    np.testing.assert_allclose(weights.only([0, 1, 3], {2: 1}).weights, [0.1, 0.5, 0.4])
    np.testing.assert_allclose(weights.only([0, 1, 3]).weights, np.array([1.0, 2.0, 4.0]) / 7.0)
    np.testing.assert_allclose(weights.weights, [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("backend", BACKENDS)
def test_once_features_have_vanished_the_factors_stay(backend):
    X = mixed_rows(260)
    model = learned(X[:250], backend=backend, share=0.05)
    (even,) = even_of(model._stage.current)
    names = model._stage.current.names
    before = np.asarray(even.core.matrix).copy()
    new = np.random.default_rng(2).normal(size=(6, 4))
    for t, x in enumerate(mixed_rows(300, seed=9)):
        row = dict(zip([f"new_{j}" for j in range(4)], (x @ new).tolist(), strict=True))
        if t < 10:
            row |= dict(zip(names, x.tolist(), strict=True))
        model.learn_one(row, None)
    assert model._stage.past is not None and model._stage.past.names == names
    recovered = even_of(model._stage.past)
    assert [seat.name for seat in recovered] == [f"{EVEN}linear"]
    after = np.asarray(recovered[0].core.matrix)
    np.testing.assert_allclose(after, before, rtol=0.2)
    again = SF2EL.from_bytes(model.to_bytes(), backend=backend)
    assert again.to_bytes() == model.to_bytes()
    np.testing.assert_array_equal(even_of(again._stage.past)[0].core.matrix, after)
    assert not even_of(model._stage.current) and not len(model._stage.current.moments.fourths)


def test_features_that_join_count_like_others():
    rng = np.random.default_rng(5)
    model = SF2EL(budget="64KiB", seed=0)
    for t in range(400):
        row = {"a": rng.normal(), "b": rng.choice([-1.0, 1.0])} | ({"c": rng.normal()} if t > 20 else {})
        model.learn_one(row, int(row["b"] > 0) if t % 9 == 0 else None)
    space = model._stage.current
    assert set(space.names) == {"a", "b", "c"}
    (even,) = even_of(space)
    factors = dict(zip(space.names, np.asarray(even.core.matrix)[0], strict=True))
    assert factors["b"] > 1.2 * max(factors["a"], factors["c"])
    assert factors["a"] == pytest.approx(factors["c"], rel=0.25)


def test_a_third_label_leaves_it_there():
    X = mixed_rows(200)
    model = SF2EL(budget="64KiB", seed=0)
    model.learn_many(X, [t % 3 if t % 4 == 0 else None for t in range(200)])
    (even,) = even_of(model._stage.current)
    assert even.settings.outputs == 3


def test_numbers_and_many_features_are_learned_without_it():
    X = mixed_rows(60)
    numbers = SF2ELRegressor(budget="64KiB", seed=0)
    numbers.learn_many(X, list(X[:, 0]))
    assert not even_of(numbers._stage.current)
    for width, there in ((WIDEST_EVEN, True), (WIDEST_EVEN + 1, False)):
        model = learned(mixed_rows(60, width), budget="1MiB")
        assert bool(even_of(model._stage.current)) is there
        assert bool(len(model._stage.current.moments.fourths)) is there


def test_a_smaller_budget_lets_it_go_and_what_it_rests_on():
    model = learned(mixed_rows(300))
    assert even_of(model._stage.current)
    told = model.memory_usage()
    model.set_budget("2KiB")
    assert not even_of(model._stage.current) and model.memory_usage() <= 2048 < told
    moments = model._stage.current.moments
    assert moments is None or not len(moments.fourths)
    assert SF2EL.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_file_whose_factors_are_none_is_refused():
    model = learned(mixed_rows(120))
    data = model.to_bytes()
    tensors = load(data)
    (turn,) = [key for key, value in tensors.items() if key.endswith(".turn") and value.shape[0] == 1]
    fourths = "current.moments.fourths"
    assert fourths in tensors
    header = {"sf2el": _text_of(data)}
    for key, value in ((turn, np.ones((6, 6), np.float32)), (fourths, -np.ones(6, np.float32))):
        with pytest.raises(ValueError, match="are not a whole sf2el model"):
            SF2EL.from_bytes(save(tensors | {key: value}, header))


def _text_of(data: bytes) -> str:
    """Return the text of a model's file without its checksum, which would tell of any change first."""
    size = int.from_bytes(data[:8], "little")
    told = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["sf2el"])
    told.pop("checksum", None)
    return json.dumps(told, sort_keys=True)
