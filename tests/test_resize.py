"""A learner in a buffer of another size: unbiased, close, and whole."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el.experts.resize import _sizes, resize
from sf2el.paper.kernels import RBF, Linear
from sf2el.paper.settings import LearnerSettings


def stream(rows: int, seed: int = 0, rate: float = 0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    y = np.where(rng.random(rows) < rate, np.where(X[:, 0] > 0, 1.0, -1.0), np.nan)
    return X, y


def settings(**more) -> LearnerSettings:
    return LearnerSettings(**{"kernel": RBF(0.5), "on_skip": "project", "label_rate": 0.3, **more})


def test_predictions_move_by_no_more_than_the_error_told(be):
    chosen = settings()
    learner = be.Learner(chosen, 2, 40, 3, "float64")
    learner.run(*stream(300))
    probes = np.random.default_rng(9).normal(size=(50, 2))
    before = learner.predict_many(probes)
    for size in (30, 12, 5, 2):
        moved, error = resize(learner, chosen, 2, size, backend=be.NAME)
        assert len(moved.state()["beta"]) == size
        assert np.max(np.abs(moved.predict_many(probes) - before)) <= error * (1.0 + 1e-9) + 1e-12
    assert error > 0.0


def test_growing_leaves_the_function_as_it_was_and_opens_slots(be):
    chosen = settings()
    learner = be.Learner(chosen, 2, 10, 3, "float64")
    learner.run(*stream(100))
    moved, error = resize(learner, chosen, 2, 25, backend=be.NAME)
    probes = stream(20, seed=5)[0]
    np.testing.assert_allclose(moved.predict_many(probes), learner.predict_many(probes), rtol=1e-12)
    assert error == 0.0
    moved.run(*stream(15, seed=6))
    assert len(moved.state()["beta"]) == 25


@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
def test_the_manifold_term_stays_unbiased_through_shrinking_and_growing(sampling):
    # For a fixed f: the sum over the buffer, each row weighted by the inverse of its inclusion
    # probability, has the full sum as its mean. 4 standard errors: a false alarm in 16,000.
    from sf2el.core import backend

    be = backend()
    chosen = settings(manifold=False, sampling=sampling)
    X, y = stream(120, seed=1)
    values = np.exp(X[:, 0]) + X[:, 1] ** 2
    sums = []
    for seed in range(4000):
        learner = be.Learner(chosen, 2, 16, seed, "float64")
        learner.run(X[:40], y[:40])
        learner, _ = resize(learner, chosen, 2, 6, backend=be.NAME)
        learner.run(X[40:70], y[40:70])
        learner, _ = resize(learner, chosen, 2, 20, backend=be.NAME)
        learner.run(X[70:], y[70:])
        state = learner.state()
        weights = state["weights"] / np.asarray(state["decay"])[state["kinds"]]
        rows = state["rows"]
        sums.append(float(weights @ (np.exp(rows[:, 0]) + rows[:, 1] ** 2)))
    error = np.std(sums, ddof=1) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - values.sum()) <= 4.0 * error
    assert error < 0.05 * values.sum()


@pytest.mark.parametrize(
    ("counts", "size", "kept"),
    [((30, 10), 20, (10, 10)), ((38, 2), 20, (18, 2)), ((5, 35), 20, (5, 15)), ((20, 20), 7, (4, 3))],
)
def test_strata_share_the_slots_and_lend_what_they_do_not_need(counts, size, kept):
    assert _sizes(np.array(counts), size, True) == kept


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_learner_can_move_to_less_memory_a_row(be, precision):
    kept = settings()
    lean = settings(projection="pursuit", keep_gram=False)
    learner = be.Learner(kept, 2, 20, 1, "float64")
    learner.run(*stream(200))
    moved, _ = resize(learner, lean, 2, 20, precision=precision, backend=be.NAME)
    assert moved.nbytes < learner.nbytes / (2 if precision == "float64" else 4)
    probes = stream(30, seed=2)[0]
    tolerance = 1e-9 if precision == "float64" else 1e-4
    np.testing.assert_allclose(moved.predict_many(probes), learner.predict_many(probes), atol=tolerance)
    scores, risks = moved.run(*stream(100, seed=4))
    assert np.all(np.isfinite(scores)) and np.all(np.isfinite(risks))


def test_duplicate_rows_and_a_singular_gram_matrix_can_be_shrunk(be):
    chosen = settings(kernel=Linear())
    learner = be.Learner(chosen, 2, 12, 1, "float64")
    X, y = stream(60)
    learner.run(np.repeat(X[:20], 3, axis=0), y)
    moved, error = resize(learner, chosen, 2, 4, backend=be.NAME)
    assert np.isfinite(error) and np.all(np.isfinite(moved.state()["beta"]))
