"""The sketch of rows: all but digits while they are few, and never wrong about a feature's own variance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sf2el import SF2EL
from sf2el.maps.joint_map import JointMap
from sf2el.maps.sketch import ROOM, WIDE, Sketch, sketch_bytes, unit_deviations
from sf2el.storage.persist import opened
from sf2el.storage.persist_parts import Reader


def rows_of(count, dim, seed=0):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(3, dim)) * 10.0 ** rng.integers(-3, 4, size=dim)
    return rng.normal(size=(count, 3)) @ mix + 1e3 * rng.normal(size=dim)


def sketched(rows):
    sketch = Sketch(rows.shape[1])
    sketch.observe_many(rows)
    return sketch


def relative(a, b):
    """The largest difference of two covariances, in units of the features' deviations."""
    scale = np.sqrt(np.diagonal(b))
    return (np.abs(a - b) / np.outer(scale, scale)).max()


@pytest.mark.parametrize("count", [1, 2, ROOM, ROOM + 1])
def test_few_rows_lose_nothing_but_digits(count):
    rows = rows_of(count, 20)
    sketch = sketched(rows)
    assert sketch.count == count and np.allclose(sketch.mean, rows.mean(axis=0))
    if count == 1:
        assert not sketch.matrix().any()
    else:
        # Two numbers of float16, each within a half of a thousandth.
        assert relative(sketch.matrix(), np.cov(rows.T, bias=True)) < 1e-3


def test_the_strongest_directions_of_many_rows_are_kept():
    """More rows than there is room for, of three directions and little noise: the covariance still holds."""
    rows = rows_of(300, 20)
    noise = 1e-2 * rows.std(axis=0) * np.random.default_rng(1).normal(size=rows.shape)
    assert relative(sketched(rows + noise).matrix(), np.cov((rows + noise).T, bias=True)) < 1e-2


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 30), st.integers(0, 5))
def test_variances_are_exact_and_the_rest_is_a_covariance(count, dim, seed):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    matrix = sketched(rows).matrix()
    assert np.allclose(np.diagonal(matrix), rows.var(axis=0), rtol=1e-4, atol=1e-7)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12  # whatever was rounded


@pytest.mark.parametrize("count", [0, 1, 2, 9, 200])
def test_moments_become_a_sketch(be, count):
    rows = rows_of(max(count, 1), 15)[:count]
    moments = be.Moments(15, "float64")
    moments.observe_many(rows)
    sketch = Sketch.of(moments)
    assert sketch.count == count
    assert np.allclose(sketch.mean, moments.mean)
    if count > 1:
        assert relative(sketch.matrix(), np.cov(rows.T, bias=True)) < 1e-3
    more = rows_of(5, 15, seed=3)
    sketch.observe_many(more)
    assert np.allclose(sketch.mean, np.vstack([rows, more]).mean(axis=0))


def test_of_very_many_features_only_those_directions_are_sought_that_matter(be):
    dim = WIDE + 20
    rows = np.random.default_rng(2).normal(size=(40, dim)) * 0.8 ** np.arange(40)[:, None]
    moments = be.Moments(dim, "float32")
    moments.observe_many(rows)
    found, covariance = Sketch.of(moments).matrix(), np.cov(rows.T, bias=True)
    spread = np.sqrt(np.diagonal(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
    best = (vectors[:, -ROOM:] * values[-ROOM:]) @ vectors[:, -ROOM:].T
    beside = ~np.eye(dim, dtype=bool)
    np.testing.assert_allclose((found / np.outer(spread, spread))[beside], best[beside], atol=3e-3)


def test_constant_features_and_one_feature():
    assert not sketched(np.full((40, 3), 7.0)).matrix().any()
    rows = np.arange(40.0)[:, None]
    assert sketched(rows).matrix()[0, 0] == pytest.approx(rows.var(), rel=1e-5)


def test_a_state_goes_on_alike_and_a_wrong_one_is_refused():
    rows = rows_of(40, 6)
    sketch = sketched(rows)
    twin = Sketch(6)
    twin.set_state(sketch.state())
    sketch.observe_many(rows)
    twin.observe_many(rows)
    assert np.array_equal(sketch.state(), twin.state())
    assert sketch.nbytes == sketch_bytes(6) == 16 * 7 + 2 * 6 * ROOM
    for place, value in ((1, ROOM + 1), (1, 0.5), (1, -1), (0, 1)):
        state = sketch.state()
        state[place] = value
        with pytest.raises(ValueError, match="a sketch"):
            twin.set_state(state)
    state = sketch.state()
    state[2 + 6] = -1.0
    with pytest.raises(ValueError, match="negative"):
        twin.set_state(state)
    state = sketch.state()
    state[-1] = 3.0
    with pytest.raises(ValueError, match="longer than its features vary"):
        twin.set_state(state)


def test_a_row_is_rounded_once():
    """As long as rows are kept as they are: the first is kept no worse after twelve more than after one."""
    rows = rows_of(ROOM + 1, 20)
    rounded = 2.0**-11  # half of the last place of float16, relative
    for count in range(2, ROOM + 2):
        sketch = sketched(rows[:count])
        second = (rows[1] - rows[0]) / np.sqrt(2.0)
        assert np.allclose(sketch._kept()[0], second, rtol=1.01 * rounded, atol=0.0)


@pytest.mark.parametrize("scale", [1e-90, 1e-20, 1e20, 1e90])
def test_the_scale_of_a_feature_does_not_matter(scale):
    rows = np.random.default_rng(0).normal(size=(50, 8)) @ np.random.default_rng(1).normal(size=(8, 8))
    units = np.where(np.arange(8) % 2, scale, 1.0)
    plain, scaled = sketched(rows).matrix(), sketched(rows * units).matrix()
    assert relative(scaled / np.outer(units, units), plain) < 1e-2


@pytest.mark.parametrize("budget", ["5KiB", "40KiB"])
@pytest.mark.parametrize("scale", [1e-18, 3e19, 1e90])
def test_features_of_any_scale_are_learned_in_an_overlap(scale, budget):
    """With a sketch and with exact statistics: no row fails, the model is saved, and its bytes hold."""
    rng = np.random.default_rng(0)
    old, new = [f"a{i}" for i in range(20)], [f"b{i}" for i in range(20)]
    X = rng.normal(size=(160, 20))
    Z = X @ rng.normal(size=(20, 20)) * scale
    Z[105, 3] = 1e20  # what stands for a missing value in some files
    labels = [int(row[0] > 0) for row in X]
    model = SF2EL(budget=budget)
    model.learn_many(X[:100], labels[:100], features=old)
    model.learn_many(np.hstack([X, Z])[100:130], labels[100:130], features=[*old, *new])
    assert isinstance(model._stage.overlap.joint, Sketch) == (budget == "5KiB")
    model = SF2EL.from_bytes(model.to_bytes())
    model.learn_many(Z[130:], labels[130:], features=new)
    odds = [model.predict_proba_one(dict(zip(new, row, strict=True)))[1] for row in Z[130:]]
    assert np.all(np.isfinite(odds)) and np.ptp(odds) > 0.0
    assert SF2EL.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_map_from_a_sketch_is_the_map_from_all_statistics(be):
    """The overlap is short: nothing is lost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 30)) / np.sqrt(30)
    Z = X @ rng.normal(size=(30, 20))
    maps = [JointMap(20, 30, np.sqrt(30), "float64", None) for _ in range(2)]
    narrow = JointMap(2, 3, 1.0, "float64", None)
    for psi in (maps[1], narrow):
        assert psi.thinner
        psi.thin()
        assert not psi.thinner and psi.brief
    assert maps[1].nbytes < maps[0].nbytes and not isinstance(narrow.joint, Sketch)
    space = type("Space", (), {"moments": None, "scaler": None, "dim": 20})()
    for psi in maps:
        psi.observe(Z, X)
        psi.solve(space, space)
    assert np.abs(maps[0].recover(Z) - maps[1].recover(Z)).max() < 0.05 * X.std()
    twin = maps[1].clone()
    assert isinstance(twin.joint, Sketch) and np.array_equal(twin.recover(Z), maps[1].recover(Z))


@pytest.mark.parametrize("value", [1e-200, 1e-30, 1e-18, 1.0, 1e15])
def test_a_feature_that_was_constant_for_long_may_move(value):
    rng = np.random.default_rng(0)
    for _ in range(20):
        sketch = Sketch(20)
        rows = rng.normal(size=(40, 20))
        rows[:30, 4] = 0.0
        rows[30:, 4] *= value
        for row in rows:
            sketch.observe_many(row[None, :])
            assert np.all(np.isfinite(sketch.matrix()))
            twin = Sketch(20)
            twin.set_state(sketch.state())
        assert np.allclose(np.diagonal(sketch.matrix()), rows.var(axis=0), rtol=1e-6)


@pytest.mark.parametrize("count", [8, 30])
def test_a_file_of_float32_directions_is_read(count):
    """Earlier versions kept them so, in units of the deviations."""
    dim = 20
    sketch = sketched(rows_of(count, dim))
    state = sketch.state()
    squares, directions = state[2 + dim : 2 + 2 * dim], state[2 + 2 * dim :].reshape(ROOM, dim)
    earlier = (directions / unit_deviations(sketch.count, squares)).astype(np.float32)
    tensors = {"map.sketch": state[: 2 + 2 * dim], "map.sketch.directions": earlier.ravel()}
    twin = Sketch(dim)
    twin.set_state(Reader(tensors, 10_000).sketch("map.sketch", dim))
    assert relative(twin.matrix(), sketch.matrix()) < 1e-3
    tensors["map.sketch.directions"] = earlier.ravel().astype(np.float64)
    with pytest.raises(ValueError, match="another size or type"):
        Reader(tensors, 10_000).sketch("map.sketch", dim)


def test_a_model_with_a_sketch_is_saved_and_goes_on_alike():
    rng = np.random.default_rng(0)
    old, new = [f"a{i}" for i in range(30)], [f"b{i}" for i in range(20)]
    X = rng.normal(size=(160, 30))
    both = np.hstack([X, X @ rng.normal(size=(30, 20))])
    labels = [int(row[0] > 0) for row in X]
    model = SF2EL(budget="16KiB")
    model.learn_many(X[:100], labels[:100], features=old)
    model.learn_many(both[100:108], labels[100:108], features=[*old, *new])
    assert isinstance(model._stage.overlap.joint, Sketch)
    assert opened(model.to_bytes())[1]["overlap.sketch.directions"].dtype == np.float16
    for stop in (112, 130):
        twin = SF2EL.from_bytes(model.to_bytes())
        assert len(model.to_bytes()) < 16 * 1024 + 3 * 1024
        for one in (model, twin):
            rows, names = (both[:, :50], [*old, *new]) if stop == 112 else (both[:, 30:], new)
            one.learn_many(rows[stop - 4 : stop], labels[stop - 4 : stop], features=names)
        assert twin.to_bytes() == model.to_bytes()
        assert model.memory_usage() <= 16 * 1024
    assert model._stage.recovers


def long_overlap(dim=25, seed=0):
    """Return rows of an old and a new space of independent features, with labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, dim))
    Z = X @ rng.normal(size=(dim, dim))
    labels = [int(value > 0) for value in X @ rng.normal(size=dim)]
    return X, Z, labels, [f"a{i}" for i in range(dim)], [f"b{i}" for i in range(dim)]


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 5, ROOM + 1])
def test_statistics_that_are_whole_again_are_those_of_the_rows(be, precision, rows):
    both = rows_of(rows, 30)
    folded, whole = (JointMap(10, 20, 1.0, precision, be.NAME) for _ in range(2))
    folded.sketch()
    for psi in (folded, whole):
        psi.observe(both[:, :10], both[:, 10:])
    assert folded.sketched and not whole.sketched
    folded.unfold()
    assert not folded.sketched and folded.joint.count == whole.joint.count
    np.testing.assert_allclose(folded.joint.mean, whole.joint.mean, rtol=1e-12)
    spread = np.sqrt(np.diagonal(whole.joint.matrix()))
    wrong = np.abs(folded.joint.matrix() - whole.joint.matrix())
    assert np.all(wrong <= 5e-3 * np.outer(spread, spread) + 1e-12)
    folded.observe(both[:, :10], both[:, 10:])
    assert folded.joint.count == 2 * rows


def test_a_long_overlap_has_whole_statistics_where_radial_functions_can_give_way():
    X, Z, labels, old, new = long_overlap()
    right = {}
    for rows in (10, 60):
        model = SF2EL(budget="16KiB", seed=0)
        start, stop = 300, 300 + rows
        model.learn_many(X[:start], labels[:start], features=old)
        model.learn_many(np.hstack([X, Z])[start:stop], labels[start:stop], features=old + new)
        assert model._stage.overlap.sketched == (rows < ROOM)
        assert model.memory_usage() <= 16 * 1024
        track = model.run_many(Z[stop:], [None] * (700 - stop), features=new)
        right[rows] = np.mean(track.prediction == labels[stop:])
        assert model.memory_usage() <= 16 * 1024
    assert right[60] > right[10] + 0.05, right


def test_rows_one_by_one_and_saved_in_between_come_to_the_same_statistics():
    X, Z, labels, old, new = long_overlap()
    both = np.hstack([X, Z])
    table, loop = (SF2EL(budget="16KiB", seed=0) for _ in range(2))
    for model in (table, loop):
        model.learn_many(X[:100], labels[:100], features=old)
    table.learn_many(both[100:125], labels[100:125], features=old + new)
    for t in range(100, 125):
        loop.learn_one(dict(zip(old + new, both[t].tolist(), strict=True)), labels[t])
        loop = SF2EL.from_bytes(loop.to_bytes())
    assert not table._stage.overlap.sketched
    assert loop.to_bytes() == table.to_bytes()


def test_a_budget_too_small_for_whole_statistics_leaves_the_sketch_and_the_experts():
    X, Z, labels, old, new = long_overlap()
    model = SF2EL(budget="5KiB", seed=0)
    model.learn_many(X[:100], labels[:100], features=old)
    model.learn_many(np.hstack([X, Z])[100:110], labels[100:110], features=old + new)
    names = model._stage.names()
    assert model._stage.overlap.sketched
    model.learn_many(np.hstack([X, Z])[110:140], labels[110:140], features=old + new)
    assert model._stage.overlap.sketched and model._stage.names() == names
    assert model.memory_usage() <= 5 * 1024
