"""What a replaced row leaves behind: the nearest function that the kept rows can write."""

from __future__ import annotations

import itertools

import numpy as np
import oracle
import pytest
from streams import KERNELS, stream, taken_slot

from sf2el.paper.kernels import RBF, Constant, Linear
from sf2el.paper.learner import build_learner
from sf2el.paper.settings import LearnerSettings

RESIDUAL = 1e-7  # how far the kept inverse may drift from an inverse before it is computed anew


def replacement(settings, buffer=8, seed=2):
    """The first round that replaces a row with a share of f: f' and f, on common representers.

    Returns the Gram matrix of the rows [kept..., replaced], the coefficients of f' and of f over them.
    """
    X, y = stream(200, seed=seed)
    learner = build_learner(settings, 3, buffer, 4, "float64")
    learner.run(X[:buffer], y[:buffer])
    for x, label in zip(X[buffer:], y[buffer:], strict=True):
        before = learner.state()
        learner.learn(x, label)
        after = learner.state()
        slot = taken_slot(before, after)
        f = oracle.Function.of_state(settings.kernel, before)
        r = oracle.Round.from_state(settings, before, x, label)
        if slot is not None and abs((wanted := oracle.stepped(settings, f, r)).beta[slot]) > 0.01:
            rows = [*map(tuple, after["rows"]), f.rows[slot]]
            wanted_beta = [*wanted.beta[:buffer], wanted.beta[slot]]
            wanted_beta[slot] = wanted.beta[buffer]  # the arriving row's, in its slot
            return oracle.gram(settings.kernel, rows), np.array(wanted_beta), np.append(after["beta"], 0.0)
    raise AssertionError("no row was replaced")


def distance2(G, difference):
    return float(difference @ G @ difference)


@pytest.mark.parametrize("jitter", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_lost_is_orthogonal_to_the_kept_rows_up_to_the_jitter(kernel, jitter):
    settings = LearnerSettings(kernel=KERNELS[kernel], jitter=jitter, step=0.1)
    G, wanted, got = replacement(settings)
    lost = G @ (wanted - got)  # <f' - f, K(x_s, .)>, the replaced row last
    spread = np.abs(got - wanted)[:-1].max()
    added = jitter * np.trace(G[:-1, :-1]) / (len(G) - 1)
    slack = 1e-9 * np.abs(G).max() * np.abs(wanted).max()
    assert np.abs(lost[:-1]).max() <= added * spread + slack
    # and the jitter is there: what is lost at a kept row is the jitter times the share it was given.
    np.testing.assert_allclose(lost[:-1], added * (got - wanted)[:-1], rtol=0.0, atol=slack)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_other_coefficients_come_nearer_by_more_than_the_jitter(kernel):
    settings = LearnerSettings(kernel=KERNELS[kernel], step=0.1)
    G, wanted, got = replacement(settings)
    kept = G[:-1, :-1]
    added = settings.jitter * np.trace(kept) / len(kept)
    reached = distance2(G, wanted - got)
    rng = np.random.default_rng(0)
    best = np.linalg.lstsq(kept, wanted[-1] * G[:-1, -1], rcond=1e-10)[0]
    for share in [best, *(best + scale * rng.normal(size=len(best)) for scale in (1e-3, 0.1, 1.0))]:
        other = np.append(wanted[:-1] + share, 0.0)
        assert reached <= distance2(G, wanted - other) + added * (share @ share) + 1e-10 * np.abs(G).max()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "four"])
def test_matching_pursuit_comes_nearer_with_every_row_it_may_use_and_ends_at_the_projection(kernel):
    buffer = 8
    exact = LearnerSettings(kernel=KERNELS[kernel], step=0.1)
    G, wanted, nearest = replacement(exact, buffer)
    distances = []
    for steps in (1, 2, 3, 5, buffer, buffer + 3):
        settings = LearnerSettings(
            kernel=KERNELS[kernel], step=0.1, projection="pursuit", pursuit_steps=steps
        )
        # The same rows are replaced, and up to this first replacement both learners are one.
        _, same, got = replacement(settings, buffer)
        np.testing.assert_array_equal(same, wanted)
        assert np.count_nonzero(np.abs(got - wanted)[:-1] > 1e-12) <= steps
        distances.append(distance2(G, wanted - got))
    slack = settings.jitter * np.trace(G)
    assert all(after <= before + slack for before, after in itertools.pairwise(distances))
    assert distances[0] > distances[-1] + 1e-6
    np.testing.assert_allclose(G @ got, G @ nearest, rtol=0.0, atol=1e-9 * np.abs(G @ wanted).max())


def test_pursuit_and_exact_learners_are_one_when_pursuit_may_use_every_row():
    X, y = stream(200, seed=8)
    kept = {"smoothness": 0.01, "on_skip": "project"}
    exact = build_learner(LearnerSettings(**kept), 3, 6, 1, "float64").run(X, y)
    pursuit = LearnerSettings(projection="pursuit", pursuit_steps=6, **kept)
    np.testing.assert_allclose(build_learner(pursuit, 3, 6, 1, "float64").run(X, y), exact, rtol=0, atol=1e-8)


# -- the kept inverse


def residual(settings, state):
    """How far inverse @ (gram + jitter) is from the identity, at worst."""
    G = state["gram"]
    added = settings.jitter * np.trace(G) / len(G) * np.eye(len(G))
    return np.abs(state["inverse"] @ (G + added) - np.eye(len(G))).max()


def assert_inverse_kept(settings, rows, rounds, buffer):
    """Stream rows, with the reservoir made young again and again so that it keeps replacing."""
    learner = build_learner(settings, rows.shape[1], buffer, 3, "float64")
    rng = np.random.default_rng(1)
    y = np.where(rng.random(len(rows)) < 0.3, rng.choice([-1.0, 1.0], len(rows)), np.nan)
    chunk, checked, entered, rows_before = rounds // 20, 0, 0, None
    for start in range(0, rounds, chunk):
        learner.run(rows[start : start + chunk], y[start : start + chunk])
        state = learner.state()
        np.testing.assert_allclose(
            state["gram"],
            [settings.kernel.row(state["rows"], x) for x in state["rows"]],
            rtol=1e-13,
            atol=1e-15,
        )
        if state["inverse"] is not None:
            checked += 1
            assert residual(settings, state) <= RESIDUAL
        entered += np.count_nonzero(np.any(state["rows"] != rows_before, axis=1)) if start else 0
        rows_before = state["rows"].copy()
        state |= {
            "seen": buffer,
            "seen_by_kind": (buffer, 0),
            "decay": (1.0, 1.0),
            "weights": np.ones(buffer),
        }
        learner.set_state(state)
    assert checked >= 10
    assert entered > 5 * buffer


@pytest.mark.parametrize("jitter", [1e-3, 1e-8])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "rbf+constant", "constant"])
def test_the_kept_inverse_stays_an_inverse(kernel, jitter):
    rounds = 20_000
    settings = LearnerSettings(kernel=KERNELS[kernel], jitter=jitter, step=0.1)
    X, _ = stream(rounds, seed=9)
    assert_inverse_kept(settings, X, rounds, buffer=20)


def test_the_kept_inverse_is_updated_and_seldom_computed_anew():
    X, y = stream(1_000, seed=9)
    learner = build_learner(LearnerSettings(), 3, 20, 3, "float64")
    replaced = 0
    for x, label in zip(X, y, strict=True):
        before = learner.state()
        learner.learn(x, label)
        after = learner.state()
        replaced += taken_slot(before, after) not in (None, len(before["beta"]))
    assert replaced > 60
    assert after["refreshes"] == 1


@pytest.mark.parametrize("kernel", ["rbf", "linear", "polynomial", "laplacian+linear"])
def test_duplicate_rows_do_not_break_the_kept_inverse(kernel):
    rounds = 20_000
    settings = LearnerSettings(kernel=KERNELS[kernel], step=0.01)
    X, _ = stream(5, seed=9)
    rows = X[np.random.default_rng(2).integers(0, 5, rounds)]
    assert_inverse_kept(settings, rows, rounds, buffer=12)


@pytest.mark.parametrize("kernel", [Linear(), Constant(2.0), RBF(1e-8), RBF(0.5)], ids=repr)
@pytest.mark.parametrize("projection", ["exact", "pursuit"])
def test_singular_gram_matrices_lose_nothing_but_the_jitter(kernel, projection):
    # Three linearly dependent rows in a plane (or all the same row) hold all there is to hold: what a
    # replaced row had can be written without loss, and f' stays what it was.
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    if not isinstance(kernel, Linear):
        rows = rows[[0, 0, 0]]
    settings = LearnerSettings(
        kernel=kernel, manifold=False, ridge=0.0, projection=projection, jitter=1e-9, label_rate=1.0, step=0.1
    )
    learner = build_learner(settings, 2, 4, 0, "float64")
    learner.run(rows[[0, 1, 2, 0]], np.array([1.0, -1.0, 1.0, 1.0]))
    probes = np.array([[0.3, -0.2], [1.0, 2.0], [-1.0, 0.5]])
    before = learner.predict_many(probes)
    unlabelled = rows[np.arange(60) % 3]
    learner.run(unlabelled, np.full(60, np.nan))
    np.testing.assert_allclose(learner.predict_many(probes), before, rtol=0, atol=1e-6)
    assert np.abs(before).max() > 0.01


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_gram_matrix_follows_the_rows(kernel):
    X, y = stream(150, seed=3)
    learner = build_learner(LearnerSettings(kernel=KERNELS[kernel]), 3, 9, 0, "float64")
    learner.run(X, y)
    state = learner.state()
    rows = [tuple(row) for row in state["rows"].tolist()]
    np.testing.assert_allclose(state["gram"], oracle.gram(KERNELS[kernel], rows), rtol=1e-14, atol=1e-16)
    assert {*rows} <= {tuple(x) for x in X.tolist()}
