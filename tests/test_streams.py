"""Evolving streams: their periods, labels and delays, and that a seed fixes all that is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sf2el.datasets import load
from sf2el.datasets.dataset import Spaces
from sf2el.streams import EvolvingStream, Space, evolve, label_mask, random_matrix, stream_for


def rows(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), np.where(rng.random(n) < 0.4, 1.0, -1.0)


shapes = st.fixed_dictionaries(
    {
        "cycles": st.integers(1, 5),
        "overlap": st.integers(0, 12),
        "t1": st.none() | st.integers(1, 40),
        "t2": st.none() | st.integers(1, 40),
    }
)


def build(shape, n=120, **more):
    """An evolving stream, or nothing where these periods do not fit."""
    try:
        return evolve(rows(n), seed=0, **shape, **more)
    except ValueError as error:
        assert "do not fit" in str(error) or "overlap must be" in str(error)
        assume(False)


@given(shapes)
def test_periods_follow_each_other_and_have_the_lengths_asked_for(shape):
    stream = build(shape)
    assert len(stream.spaces) == shape["cycles"] + 1
    assert [period.start for period in stream.periods()] == [0] + [p.stop for p in stream.periods()[:-1]]
    assert stream.periods()[-1].stop == len(stream) <= 120
    if shape["t1"] is not None:
        assert len(stream.spaces[0].rows) == shape["t1"]
    if shape["t1"] is None or shape["t2"] is None:
        assert len(stream) == 120
    for old, new in zip(stream.spaces, stream.spaces[1:], strict=False):
        assert old.stop - new.start == shape["overlap"]
        if shape["t2"] is not None:
            assert new.stop - old.stop == shape["t2"]


@given(shapes)
def test_rounds_periods_and_single_rows_tell_the_same(shape):
    stream = build(shape, label_rate=0.5)
    rounds = list(stream)
    assert [step.index for step in rounds] == list(range(len(stream)))
    for period in stream.periods():
        features = np.hstack(list(period.rows.values()))
        for step, row in zip(rounds[period.start : period.stop], features, strict=True):
            assert list(step.x.values()) == row.tolist()
            assert {name.split("_")[0] for name in step.x} == set(period.spaces)
    assert all(stream.row(step.index) == step.x for step in rounds)


@given(shapes, st.integers(0, 200), st.sampled_from([0.1, 0.5, 1.0]))
def test_a_late_label_is_never_early_and_none_is_lost(shape, delay, rate):
    stream = build(shape, label_delay=delay, label_rate=rate)
    told = {}
    for step in stream:
        assert delay == 0 or step.y is None
        assert delay > 0 or step.late == ()
        if step.y is not None:
            told[step.index] = step.y
        for index, label in step.late:
            assert step.index - index == delay
            told[index] = label
    told |= dict(stream.pending)
    assert sorted(told) == np.flatnonzero(stream.labelled).tolist()
    assert all(label == stream.y[index] for index, label in told.items())


@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.3, 0.9]))
def test_the_mask_has_its_rate_and_does_not_see_the_class(seed, rate):
    X, y = rows(4000, 1)
    stream = evolve((X, y), seed=seed, label_rate=rate)
    bound = 5.0 * np.sqrt(rate * (1.0 - rate) / 1500)  # five sd of a mean over the smaller class
    for sign in (1.0, -1.0):
        assert abs(stream.labelled[stream.y == sign].mean() - rate) < bound
    flipped = evolve((X, -y), seed=seed, label_rate=rate)
    assert np.array_equal(flipped.labelled, stream.labelled)


def test_a_seed_fixes_everything_and_what_is_drawn_is_drawn_apart():
    data = rows(200)

    def drawn(seed=1, **more):
        return evolve(data, cycles=2, **({"noise": 0.1, "seed": seed} | more))

    base = drawn()
    same = drawn()
    for one, other in zip(base.spaces, same.spaces, strict=True):
        assert np.array_equal(one.rows, other.rows)
    assert np.array_equal(base.labelled, same.labelled)
    other = drawn(seed=2)
    assert not np.array_equal(other.y, base.y)
    assert not np.array_equal(other.labelled, base.labelled)
    assert np.array_equal(drawn(label_rate=0.9).spaces[2].rows, base.spaces[2].rows)
    assert np.array_equal(drawn(noise=0.0).y, base.y)
    given_order = drawn(order="given")
    assert np.array_equal(given_order.labelled, base.labelled)
    assert np.array_equal(given_order.y, data[1])
    longer = evolve(data, cycles=3, noise=0.1, seed=1, t1=base.spaces[1].start + 10, t2=30)
    assert np.array_equal(longer.spaces[1].rows[:40], base.spaces[1].rows[:40])


def test_each_space_is_the_first_times_a_matrix_of_its_own():
    X, y = rows(90, 4)
    stream = evolve((X, y), cycles=2, order="given", dims=[2, 5], matrix="uniform", seed=3)
    assert [space.rows.shape[1] for space in stream.spaces] == [4, 2, 5]
    for space in stream.spaces[1:]:
        matrix = np.linalg.lstsq(X[space.start : space.stop], space.rows, rcond=None)[0]
        assert np.allclose(X[space.start : space.stop] @ matrix, space.rows)
        assert np.all((matrix > 0.0) & (matrix < 1.0))


def test_a_given_second_space_is_kept_and_later_ones_have_its_size():
    X, y = rows(90, 4)
    stream = evolve((X, X[:, :2] ** 2, y), cycles=2, order="given", seed=0)
    second, third = stream.spaces[1:]
    assert np.array_equal(second.rows, X[second.start : second.stop, :2] ** 2)
    assert third.rows.shape[1] == 2


def test_noise_is_relative_to_each_features_own_spread():
    X, y = rows(20_000, 2)
    X = X * [1.0, 100.0]
    clean = evolve((X, X, y), seed=0)
    noisy = evolve((X, X, y), seed=0, noise=0.25)
    added = noisy.spaces[1].rows - clean.spaces[1].rows
    assert added.std(axis=0) / X.std(axis=0) == pytest.approx([0.25, 0.25], rel=0.03)
    assert np.array_equal(noisy.spaces[0].rows, clean.spaces[0].rows)


def test_noise_is_drawn_anew_for_each_seed_and_space():
    X, y = rows(90)
    flat = np.arange(180.0).reshape(90, 2)

    def added(seed):
        noisy = evolve((X, flat, y), seed=seed, noise=0.1, order="given", cycles=2, t1=30, t2=30)
        clean = evolve((X, flat, y), seed=seed, order="given", cycles=2, t1=30, t2=30)
        return [(a.rows - b.rows) / b.rows.std() for a, b in zip(noisy.spaces, clean.spaces, strict=True)]

    first, second = added(0), added(1)
    assert abs(np.corrcoef(first[1].ravel(), second[1].ravel())[0, 1]) < 0.5
    assert abs(np.corrcoef(first[1].ravel(), first[2].ravel())[0, 1]) < 0.5


def test_a_gaussian_matrix_has_both_signs_and_an_unknown_kind_is_refused():
    gaussian = random_matrix(200, 200, "gaussian", np.random.default_rng(0))
    assert abs(gaussian.mean()) < 0.02
    assert gaussian.std() == pytest.approx(1.0, abs=0.02)
    with pytest.raises(ValueError, match="matrix must be one of 'uniform', 'gaussian', not 'cauchy'"):
        random_matrix(2, 2, "cauchy", np.random.default_rng(0))


def test_orders_can_be_given():
    X, y = rows(10, 1)
    order = np.random.default_rng(5).permutation(10)
    assert np.array_equal(evolve((X, y), order=order, overlap=2, seed=0).y, y[order])
    for wrong in (np.zeros(10, int), np.arange(9), "sorted"):
        with pytest.raises(ValueError, match="order must"):
            evolve((X, y), order=wrong, overlap=2, seed=0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"overlap": 31}, "overlap must be from 0 to 30 rounds here, not 31"),
        ({"overlap": -1}, "overlap must be"),
        ({"t1": 61}, "do not fit into 60 rows"),
        ({"t1": 30, "t2": 31}, "do not fit into 60 rows"),
        ({"t2": 60}, "do not fit into 60 rows"),
        ({"cycles": 0}, "cycles must be a whole number"),
        ({"cycles": 60, "overlap": 0}, "do not fit into 60 rows"),
        ({"noise": -0.1}, "noise must be"),
        ({"label_delay": -1}, "label_delay must be"),
        ({"label_rate": 0.0}, "label rate must be"),
        ({"dims": [2, 3]}, "dims must have 1 entries"),
        ({"dims": 0}, "dims must be a whole number"),
        ({"matrix": "cauchy"}, "matrix must be"),
    ],
)
def test_what_cannot_be_built_is_refused(more, words):
    with pytest.raises(ValueError, match=words):
        evolve(rows(), seed=0, **more)


@pytest.mark.parametrize(
    "data", [(np.ones((3, 1)),), (np.ones(3), np.ones(3)), (np.ones((3, 1)), np.ones(4))]
)
def test_data_of_another_shape_is_refused(data):
    with pytest.raises(ValueError, match=r"data must be|one row for each label"):
        evolve(data, seed=0, overlap=0)


def test_one_cycle_is_a_two_space_stream():
    stream = evolve(load("swiss"), seed=4, overlap=7)
    two = stream.two_spaces()
    assert (two.t1, len(two.after_swap), two.overlap) == (1000, 1000, 7)
    assert np.array_equal(two.old, stream.spaces[0].rows)
    assert np.array_equal(two.after_swap, stream.periods()[2].rows["s2"])
    assert np.array_equal(two.labelled, stream.labelled)
    X1, X2 = load("swiss").old, load("swiss").new
    matrix = np.linalg.lstsq(X1, X2, rcond=None)[0]
    assert np.allclose(two.old[-7:] @ matrix, two.new[:7])


def test_a_later_cycle_begins_where_its_old_space_does():
    stream = evolve(rows(90), cycles=2, overlap=5, seed=0)
    two = stream.two_spaces(1)
    assert (two.t1, len(two.after_swap), two.overlap) == (35, 30, 5)
    assert np.array_equal(two.y, stream.y[25:])
    with pytest.raises(ValueError, match="cycle must be from 0 to 1, not 2"):
        stream.two_spaces(2)


def test_what_the_eight_methods_cannot_take_is_refused():
    X, y = rows()
    with pytest.raises(ValueError, match="label_delay=0"):
        evolve((X, y), seed=0, label_delay=3).two_spaces()
    with pytest.raises(ValueError, match="labels \\+1 and -1 only"):
        evolve((X, np.arange(60) % 3), seed=0).two_spaces()


@pytest.mark.parametrize(
    ("y", "kind"), [(["cat", "dog"] * 30, str), ([True, False] * 30, bool), ([2.0, 7.0] * 30, int)]
)
def test_labels_come_out_as_python_objects(y, kind):
    step = next(iter(evolve((rows()[0], y), seed=0, label_rate=1.0)))
    assert type(step.y) is type(step.truth) is kind
    assert step.y in y


@pytest.mark.parametrize("y", [["dry", "wet"] * 30, [True, False] * 30, [0, 1] * 30, ["1", "-1"] * 30])
def test_labels_that_the_eight_methods_cannot_take_are_shown(y):
    with pytest.raises(ValueError, match=r"labels \+1 and -1 only, and these are like .+: build the stream"):
        evolve((rows()[0], y), seed=0).two_spaces()


def test_numbers_may_be_numpys():
    given = {"cycles": 2, "overlap": 3, "t1": 20, "t2": 15, "dims": 2, "label_delay": 4}
    reals = {"noise": 0.5, "label_rate": 0.25}
    plain = evolve(rows(), seed=5, **given, **reals)
    numpys = evolve(
        rows(),
        seed=np.int64(5),
        **{name: np.int64(value) for name, value in given.items()},
        **{name: np.float32(value) for name, value in reals.items()},
    )
    assert repr(list(numpys)) == repr(list(plain))
    assert repr(numpys.pending) == repr(plain.pending)
    assert [(space.start, space.stop) for space in numpys.spaces] == [(0, 20), (17, 35), (32, 50)]
    for dims in ([2, 3], np.array([2, 3]), (np.int8(2), np.int64(3))):
        widths = [space.rows.shape[1] for space in evolve(rows(), seed=0, cycles=2, dims=dims).spaces]
        assert widths[1:] == [2, 3]


@pytest.mark.parametrize("dims", [2.5, "2", np.float64(2.0), True])
def test_what_is_no_number_of_features_is_refused(dims):
    with pytest.raises(ValueError, match="dims must be a whole number"):
        evolve(rows(), seed=0, dims=dims)


def test_spaces_must_cover_the_rounds_once_named():
    X, flags = np.zeros((4, 1)), np.ones(8, bool)
    with pytest.raises(ValueError, match="s2 must begin by round 4"):
        EvolvingStream((Space("s1", 0, X), Space("s2", 5, X)), np.ones(9), np.ones(9, bool))
    with pytest.raises(ValueError, match="name of its own"):
        EvolvingStream((Space("s1", 0, X), Space("s1", 4, X)), np.ones(8), flags)
    with pytest.raises(ValueError, match="must have 8 entries"):
        EvolvingStream((Space("s1", 0, X), Space("s2", 4, X)), np.ones(7), flags)
    with pytest.raises(IndexError, match="rounds 0 to 7, not -1"):
        EvolvingStream((Space("s1", 0, X), Space("s2", 4, X)), np.ones(8), flags).row(-1)


@given(st.integers(2, 60), st.integers(0, 3), st.integers(0, 10_000))
def test_the_protocols_stream_takes_published_orders_first(n, published, seed):
    X, y = np.arange(n, dtype=float)[:, None], np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    orders = np.array([np.roll(np.arange(n), shift + 1) for shift in range(published)]).reshape(published, n)
    data = Spaces(X, 10.0 * X, y, orders if published else None)
    for run in [*range(published), published + seed]:
        stream = stream_for(data, run, 0.5, 1)
        order = np.concatenate([stream.old.ravel(), stream.after_swap.ravel() / 10.0]).astype(int)
        assert sorted(order) == list(range(n))
        assert (run < published) == bool(published and run < published and np.array_equal(order, orders[run]))
        assert np.array_equal(stream.y, y[order])
        assert stream.t1 == n // 2
        assert stream.new[0, 0] == 10.0 * stream.old[-1, 0]


def test_the_protocols_mask_is_the_rates_and_differs_by_run():
    masks = [stream_for(load("swiss"), seed, 0.3).labelled for seed in range(10)]
    assert np.mean(masks) == pytest.approx(0.3, abs=0.02)
    assert len({mask.tobytes() for mask in masks}) == 10
    with pytest.raises(ValueError, match="label rate"):
        label_mask(5, 1.5, np.random.default_rng(0))
