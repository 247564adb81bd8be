"""Numbers of 16 bits: the experts and maps that are kept in them, in both backends."""

from __future__ import annotations

import numpy as np
import pytest
from test_posterior import (
    OUTPUTS,
    STEPS,
    TASKS,
    hostile,
    hostile_labels,
    needs_native,
    same,
    settings,
    stream,
    variance,
)

from sf2el import SF2EL
from sf2el.core import backend
from sf2el.experts.halves import (
    brief,
    covariance_of,
    factor_of,
    from_whole_rows,
    front_halves,
    halved,
    innovations_of,
    whole_rows,
)
from sf2el.experts.posterior import affine_bytes, posterior_bytes

ODD = [0.0, -0.0, 1.0, -2.5, 0.1, 1e-3, 6.1e-5, 6.0e-5, 3e-8, 2.9e-8, 1e-12, 2049.0, 2051.0, 999.9, -65504.0]


# -- rounding


def test_rows_are_kept_as_the_nearest_halves(be):
    """Also below the normal range, and where two halves are as near."""
    rows = np.array(ODD)[:, None]
    expert = be.Posterior(settings("binary", size=len(rows)), 1, "float16")
    state = expert.state()
    both = 2 + len(rows)
    del state["innovations"], state["factor"]
    state |= {
        "rows": rows,
        "coefficients": np.zeros((1, both)),
        "covariance": np.zeros((both, both)),
        "inverse": np.eye(len(rows)),
    }
    expert.set_state(state)
    kept = expert.state()["rows"][:, 0]
    assert np.array_equal(kept, rows[:, 0].astype(np.float32).astype(np.float16).astype(np.float64))


def test_what_is_too_large_becomes_the_largest():
    assert halved([1e300, -7e4, 65519.0]).tolist() == [65504.0, -65504.0, 65504.0]
    assert np.isfinite(brief([1e300, -1e39, 3.4e38])).all()


def test_a_brief_map_is_the_same_in_both_backends(be):
    values = np.array([0.1, -1.0, 1e-3, 1e30, -1e99, 1e-39, 1.00390625, 1.01171875, 257.0, 259.0, 0.0, 3e-45])
    matrix = np.column_stack([values.reshape(3, 4), np.arange(3.0)])
    affine = be.AffineMap(4, 3, 0.0, "bfloat16")
    affine.set(np.ascontiguousarray(matrix), np.zeros(4))
    assert np.array_equal(affine.matrix[:, :4].ravel(), brief(values).astype(np.float64))
    assert affine.nbytes == affine_bytes(4, 3, "bfloat16") == 80
    assert np.abs(brief(values)[:4] / values[:4] - 1.0).max() < 2.0**-8


def test_the_front_halves_of_floats_say_all_of_brief_numbers():
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-20, 20).repeat(25)
    bits = front_halves(values)
    assert bits.dtype == np.uint16
    assert np.array_equal(front_halves((bits.astype(np.uint32) << 16).view(np.float32)), bits)


# -- what stands for the covariance


def test_innovations_and_covariance_are_two_ways_to_say_the_same():
    rng = np.random.default_rng(1)
    s, rows = settings("binary", gamma=1.0), rng.normal(size=(6, 3))
    half = rng.normal(size=(10, 10))
    covariance = -half @ half.T
    factor = factor_of(s, rows)
    innovations = innovations_of(s, factor, covariance)
    assert np.abs(covariance_of(s, factor, innovations) - covariance).max() < 1e-9
    # To begin with they are as large and as independent as the linear coefficients.
    prior = innovations_of(s, factor, np.zeros((10, 10)))
    assert np.array_equal(prior, np.diag([s.linear_scale] * 4 + [s.rbf_scale] * 6))


def test_a_factor_of_whole_numbers_is_near_and_stays_as_it_is():
    rng = np.random.default_rng(4)
    factor = np.tril(rng.normal(size=(20, 20)) * 10.0 ** rng.integers(-3, 4, (20, 1)))
    kept = from_whole_rows(*whole_rows(factor))
    assert (np.abs(kept - factor).max(axis=1) <= 2.0**-15 * np.abs(factor).max(axis=1)).all()
    assert np.array_equal(from_whole_rows(*whole_rows(kept)), kept)


# -- the expert


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [0, 1, 8, 30])
def test_an_expert_takes_the_bytes_it_says(be, task, size, keep):
    expert = be.Posterior(settings(task, size=size, keep_inverse=keep), 5, "float16")
    told = posterior_bytes(5, size, OUTPUTS[task], "float16", keep_inverse=keep)
    assert expert.nbytes == told
    if size >= 8:
        assert told < 0.7 * posterior_bytes(5, size, OUTPUTS[task], "float32", keep_inverse=keep)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_it_learns_as_an_expert_of_single_precision(be, task, keep):
    """Which rows stay may differ; how well it does may not."""
    X, y = stream(task, 3000 if be.NAME == "native" else 500, seed=2)
    known = {"centred": 0.9, "tie_noise": 1.0, "keep_inverse": keep}
    risks = [
        be.Posterior(settings(task, size=12, **known), 3, precision).run(X, y)[1]
        for precision in ("float32", "float16")
    ]
    single, half = (float(np.nanmean(risk)) for risk in risks)
    assert half < single + 0.02
    assert single < {"binary": 0.45, "classes": 0.9}.get(task, 0.35)


@pytest.mark.parametrize("size, keep", [(0, False), (10, False), (10, True)])
def test_many_labels_go_on_to_make_it_surer(be, size, keep):
    """A covariance kept as the difference to the prior would stand still after some hundred labels; this one
    does after some thousand, when a label changes it by less than rounding."""
    X, y = stream("binary", 3_000, labelled=1.0, seed=3)
    s = settings("binary", size=size, gamma=0.5, keep_inverse=keep)
    at = {}
    for precision in ("float64", "float16"):
        expert = be.Posterior(s, 3, precision)
        expert.run(X, y)
        at[precision] = float(np.mean(variance(expert, s, X[:200])[0]))
        assert expert.floored < len(X) // 100
    assert 0.5 * at["float64"] < at["float16"] < 1.5 * at["float64"]


@pytest.mark.parametrize("keep", [True, False])
def test_the_factor_follows_from_the_rows_however_many_have_come_and_gone(be, keep):
    """So that it need not be kept; where it is, rounding must not add up."""
    X, y = stream("binary", 4000 if be.NAME == "native" else 600, labelled=1.0, seed=8)
    s = settings("binary", size=12, gamma=0.5, centred=0.9, tie_noise=1.0, keep_inverse=keep)
    expert = be.Posterior(s, 3, "float16")
    expert.run(X, y)
    assert expert.removed > (100 if be.NAME == "native" else 20)
    state = expert.state()
    assert np.abs(state["factor"] - factor_of(s, state["rows"])).max() < 0.02
    assert np.abs(state["inverse"] @ np.linalg.inv(state["inverse"]) - np.eye(12)).max() < 1e-6


def test_rounding_does_not_add_up_while_rows_join(be):
    """Each row that joins rests on the factor so far; rows ever farther out made its error grow with each."""
    rng = np.random.default_rng(9)
    count = 400 if be.NAME == "native" else 150
    X = rng.normal(size=(count, 2)) * np.linspace(0.05, 3.0, count)[:, None]
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] > 0.0, 1.0, -1.0)
    s = settings("binary", size=60, gamma=0.5, novelty=0.01)
    expert = be.Posterior(s, 2, "float16")
    scores, _ = expert.run(X, y)
    state = expert.state()
    assert expert.size > 15 and np.isfinite(scores).all()
    assert np.abs(state["factor"]).max() < 400.0
    near = state["factor"] @ gram(s, state["rows"]) @ state["factor"].T
    assert np.abs(near - np.eye(expert.size)).max() < 0.5


def test_smooth_numbers_of_one_feature_are_learned_without_outbursts(be):
    """Where rows are much alike a covariance of 16 bits can become none, which must not feed on itself."""
    worst = []
    for seed in range(20, 32 if be.NAME == "native" else 22):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1500 if be.NAME == "native" else 500, 1))
        y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
        s = settings("regression_squared", size=40, gamma=7.0, rbf_scale=40.0, novelty=0.01)
        worst.append(be.Posterior(s, 1, "float16").run(X, y)[1][300:].max())
    assert np.median(worst) < 2.0 and max(worst) < 20.0


def gram(s, rows):
    return np.exp(-s.gamma * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))


def test_scores_of_a_round_are_those_of_a_prediction_before_it(be):
    X, y = stream("binary", 120)
    expert = be.Posterior(settings("binary", tie_noise=1.0), 3, "float16")
    for x, label in zip(X, y, strict=True):
        before = expert.predict(x)
        assert np.array_equal(expert.learn(x, label)[0], before)


@pytest.mark.parametrize("task", TASKS)
def test_a_state_goes_on_to_the_bit_in_the_same_and_the_other_backend(be, task):
    X, y = stream(task, 200)
    s = settings(task, centred=0.9, tie_noise=1.0)  # rows join and leave
    expert = be.Posterior(s, 3, "float16")
    expert.run(X, y)
    state = expert.state()
    plain = backend("numpy").Posterior(s, 3, "float16")
    plain.set_state(state)
    again = be.Posterior(s, 3, "float16")
    again.set_state(plain.state())
    more = stream(task, 100, seed=1)
    assert np.array_equal(again.run(*more)[0], expert.copy().run(*more)[0])
    third = be.Posterior(s, 3, "float16")
    third.set_state(state)
    assert same(third.copy().state(), state)


@pytest.mark.parametrize("keep", [True, False])
@needs_native
@pytest.mark.parametrize(("task", "matched"), STEPS)
def test_both_backends_agree_while_the_same_rows_are_kept(task, matched, keep):
    """Rounding to 16 bits turns differences of 1e-7 into some of 1e-3; in time other rows are kept."""
    X, y = stream(task, 40)
    s = settings(task, centred=0.9, size=20, keep_inverse=keep, matched=matched)
    compiled, plain = (backend(name).Posterior(s, 3, "float16") for name in ("native", "numpy"))
    assert np.abs(compiled.run(X, y)[0] - plain.run(X, y)[0]).max() < 0.02
    assert np.array_equal(compiled.state()["rows"], plain.state()["rows"])


@pytest.mark.parametrize("keep", [True, False])
@needs_native
def test_both_compiled_variants_give_the_same_bits(monkeypatch, keep):
    X, y = stream("binary", 500)
    s = settings("binary", size=17, tie_noise=1.0, keep_inverse=keep)
    found = []
    for variant in ("base", "wide"):
        monkeypatch.setenv("SF2EL_VARIANT", variant)
        expert = backend("native").Posterior(s, 3, "float16")
        found.append((expert.run(X, y)[0], expert.predict_many(X)))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("gamma, keep", [(0.5, True), (0.5, False), (5.0, True)])
@pytest.mark.parametrize(("task", "matched"), STEPS)
def test_a_long_life_among_hostile_rows(be, task, matched, gamma, keep):
    rounds = 30_000 if be.NAME == "native" else 3_000
    X, rng = hostile(rounds, 4, 3)
    y = hostile_labels(task, X, rng)
    s = settings(task, size=15, gamma=gamma, keep_inverse=keep, matched=matched)
    expert = be.Posterior(s, 4, "float16")
    scores, risks = expert.run(X, y, rng.choice([1.0, 1.0, 20.0], rounds))
    assert np.isfinite(scores).all() and np.isfinite(risks).all()
    v, prior = variance(expert, s, X[:500])
    assert (v > -1e-2 * prior).all() and (v < 1.01 * prior).all()
    assert risks.mean() < {"binary": 1.2, "classes": 1.9}.get(task, 1.6)
    assert expert.floored < rounds // 50


@pytest.mark.parametrize("keep", [True, False])
def test_rows_much_alike_do_not_make_it_lose_its_head(be, keep):
    """On one smooth feature the Gram matrix is nearly singular: its inverse must not blow rounding up."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000 if be.NAME == "native" else 600, 1))
    y = np.sin(3.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    s = settings("regression_squared", size=24, gamma=0.5, keep_inverse=keep)
    risks = {p: be.Posterior(s, 1, p).run(X, y)[1][len(X) // 2 :] for p in ("float32", "float16")}
    assert risks["float16"].max() < 5.0
    assert risks["float16"].mean() < 1.2 * risks["float32"].mean() < 0.03


# -- the model


def rows(rng, count, dim, prefix):
    X = rng.normal(size=(count, dim))
    return [{f"{prefix}{j}": float(x[j]) for j in range(dim)} for x in X], (X[:, 0] + X[:, 1] ** 2 > 0.5)


def small_model(budget="4KiB"):
    rng = np.random.default_rng(5)
    model = SF2EL(budget=budget)
    old, labels = rows(rng, 120, 8, "a")
    for row, label in zip(old, labels, strict=True):
        model.learn_one(row, bool(label))
    mixing = rng.normal(size=(8, 6))
    for row, label in zip(old[:10], labels, strict=False):
        model.learn_one(row | mixed(row, mixing), bool(label))
    later, labels = rows(rng, 60, 8, "a")
    for row, label in zip(later, labels, strict=True):
        model.learn_one(mixed(row, mixing), bool(label))
    return model


def mixed(row, mixing):
    return {f"b{j}": float(value) for j, value in enumerate(np.array(list(row.values())) @ mixing)}


def test_a_small_model_keeps_halves_and_a_brief_map():
    model = small_model()
    stage = model._stage
    posteriors = [seat for space in stage.spaces() for seat in space.seats if hasattr(seat, "posterior")]
    assert posteriors and all(seat.precision == "float16" for seat in posteriors)
    assert stage.psi is not None and stage.psi.brief
    assert model.memory_usage() <= 4096


def test_a_small_model_goes_on_to_the_bit_after_a_file():
    model = small_model()
    again = SF2EL.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    more, labels = rows(np.random.default_rng(6), 80, 6, "b")
    for row, label in zip(more, labels, strict=True):
        assert again.predict_proba_one(row) == model.predict_proba_one(row)
        again.learn_one(row, bool(label))
        model.learn_one(row, bool(label))
    assert again.to_bytes() == model.to_bytes()


def test_more_bytes_bring_single_precision_back():
    model = small_model()
    more, _ = rows(np.random.default_rng(7), 40, 6, "b")
    before = [model.predict_proba_one(row)[True] for row in more]
    model.set_budget("64KiB")
    posteriors = [
        seat for space in model._stage.spaces() for seat in space.seats if hasattr(seat, "posterior")
    ]
    assert all(seat.precision == "float32" for seat in posteriors)
    after = [model.predict_proba_one(row)[True] for row in more]
    assert np.abs(np.array(after) - np.array(before)).max() < 1e-3
