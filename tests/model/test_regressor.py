"""SF2ELRegressor: numbers on streams whose features come and go."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sf2el import SF2ELRegressor

LOSSES = ("squared", "absolute")
NAMES = [f"old{j}" for j in range(4)] + [f"new{j}" for j in range(5)]


def stream(rounds: int = 400, seed: int = 0, rate: float = 0.5, outliers: float = 0.0):
    """A nonlinear number; new sensors mix what the old ones read, and take over at two thirds."""
    rng = np.random.default_rng(seed)
    old = rng.normal(size=(rounds, 4))
    new = old @ rng.normal(size=(4, 5)) + 0.05 * rng.normal(size=(rounds, 5))
    truth = 200 + 30 * (old @ [1.0, -0.5, 0.3, 0.0] + 0.5 * np.tanh(2 * old[:, 0])) + rng.normal(size=rounds)
    told = np.where(rng.random(rounds) < outliers, truth + 3000, truth)
    swap = 2 * rounds // 3
    X = np.hstack([old, new])
    X[: swap - 25, 4:] = np.nan
    X[swap:, :4] = np.nan
    y = [float(v) if rng.random() < rate else None for v in told]
    return X, y, truth, swap


def row(X, t):
    return {name: float(v) for name, v in zip(NAMES, X[t], strict=True) if v == v}


@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_and_goes_on_after_a_swap(loss):
    X, y, truth, swap = stream()
    model = SF2ELRegressor(budget="32KiB", loss=loss)
    track = model.run_many(X, y, features=NAMES)
    spread = np.std(truth)
    for part in (slice(150, swap), slice(swap, swap + 30), slice(swap + 30, len(X))):
        error = np.sqrt(np.mean((track.prediction[part] - truth[part]) ** 2))
        assert error < 0.4 * spread, part
    assert model.memory_usage() <= 32 * 1024
    assert any("recovered by a map from 25 rows" in event.text for event in model.events().last)
    assert set(track.space) == {0, 1}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_table_in_one_call_is_the_loop(loss):
    X, y, _, _ = stream(150)
    whole, loop = (SF2ELRegressor(budget="16KiB", loss=loss) for _ in range(2))
    track = whole.run_many(X, y, features=NAMES)
    for t, target in enumerate(y):
        assert loop.predict_one(row(X, t)) == pytest.approx(track.prediction[t], rel=1e-12)
        loop.learn_one(row(X, t), target)
    assert whole.to_bytes() == loop.to_bytes()
    last = [row(X, t) for t in range(-3, 0)]
    asked = whole.predict_many(np.array([list(x.values()) for x in last]), features=list(last[0]))
    assert asked.tolist() == [loop.predict_one(x) for x in last]


def test_absolute_loss_minds_outliers_less():
    errors = {}
    for loss in LOSSES:
        X, y, truth, swap = stream(600, outliers=0.05)
        model = SF2ELRegressor(loss=loss)
        said = model.run_many(X, y, features=NAMES).prediction
        errors[loss] = np.median(np.abs(said - truth)[100:swap])
    assert errors["absolute"] < 0.7 * errors["squared"]


def test_what_cannot_be_a_target_leaves_everything_as_it_was():
    X, y, _, _ = stream(60)
    model = SF2ELRegressor()
    model.learn_many(X[:30, :4], y[:30], features=NAMES[:4])
    before = model.to_bytes()
    good = row(X, 5)
    for target in ("12", True, float("inf"), -float("inf"), 1e200, 1j, [1.0]):
        with pytest.raises(ValueError):
            model.learn_one(good, target)
        with pytest.raises(ValueError):
            model.learn_one(good, target, late=True)
        with pytest.raises(ValueError):
            model.run_many(X[:2, :4], [1.0, target], features=NAMES[:4])
        assert model.to_bytes() == before
    for x in ({}, {"old0": float("inf")}, {"old0": "1"}):
        with pytest.raises(ValueError):
            model.learn_one(x, 1.0)
        assert model.to_bytes() == before


def test_a_file_goes_on_bit_for_bit():
    X, y, _, _ = stream(120)
    model = SF2ELRegressor(budget="16KiB")
    model.run_many(X[:90], y[:90], features=NAMES)
    twin = SF2ELRegressor.from_bytes(model.to_bytes())
    a, b = (m.run_many(X[90:], y[90:], features=NAMES).prediction for m in (model, twin))
    assert np.array_equal(a, b) and model.to_bytes() == twin.to_bytes()


def test_before_any_target_the_mean_is_said():
    model = SF2ELRegressor()
    assert model.predict_one({"a": 1.0}) == 0.0
    model.learn_one({"a": 1.0}, 50.0)
    assert model.predict_one({"a": 1.0}) == pytest.approx(50.0)
    with pytest.raises(ValueError, match="loss"):
        SF2ELRegressor(loss="hinge")


def test_one_constant_target_is_said_again():
    model = SF2ELRegressor()
    for t in range(20):
        model.learn_one({"a": float(t)}, 7.0)
    assert model.predict_one({"a": 3.0}) == pytest.approx(7.0)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_one_wrong_target_is_got_over(loss):
    rng = np.random.default_rng(0)
    model, errors = SF2ELRegressor(budget="16KiB", loss=loss), []
    for t in range(1500):
        x = {"a": rng.normal(), "b": rng.normal()}
        y = 20.0 + 4.0 * x["a"] - 3.0 * x["b"]
        errors.append(abs(model.predict_one(x) - y))
        model.learn_one(x, -9999.0 if t == 100 else y)
    assert np.mean(errors[1000:]) < 0.5


def test_the_least_budget_is_the_least():
    with pytest.raises(ValueError, match="bytes are needed") as refused:
        SF2ELRegressor(budget=100)
    least = int(re.search(r"at least (\d+) bytes", str(refused.value))[1])
    model = SF2ELRegressor(budget=least)
    model.learn_one({"a": 1.0}, 2.0)
    assert model.memory_usage() <= least
    with pytest.raises(ValueError, match="bytes are needed"):
        SF2ELRegressor(budget=least - 1)


def test_it_takes_late_targets():
    rng = np.random.default_rng(0)
    rows = [({"a": float(a), "b": float(b)}, float(3 * a - b + 10)) for a, b in rng.normal(size=(80, 2))]
    late, waiting = SF2ELRegressor(), []
    for x, y in rows:
        late.learn_one(x)
        waiting.append((x, y))
        if len(waiting) > 5:
            late.learn_one(*waiting.pop(0), late=True)
    assert late.rows_seen == 80
    assert late.predict_one({"a": 1.0, "b": 0.0}) == pytest.approx(13.0, abs=0.3)


@pytest.mark.parametrize("loss", LOSSES)
def test_predictions_stay_finite_whatever_the_targets(loss):
    rng = np.random.default_rng(1)
    model = SF2ELRegressor(budget="8KiB", loss=loss)
    for t in range(200):
        model.learn_one(
            {"a": float(rng.normal()), "b": 1.0}, float(rng.choice([1e99, -1e99, 0.0, 1e-200, t]))
        )
        assert np.isfinite(model.predict_one({"a": 0.5, "b": 1.0}))
        assert model.memory_usage() <= 8192
