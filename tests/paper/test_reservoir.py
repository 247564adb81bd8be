"""The buffer is a uniform sample of what was seen.

The chi-square tests raise a false alarm once in 10,000 fixed sets of seeds (``FALSE_ALARM``): with the
seeds below they either always pass or always fail.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from sf2el.paper.kernels import Constant, Linear
from sf2el.paper.learner import build_learner
from sf2el.paper.settings import LearnerSettings

FALSE_ALARM = 1e-4


def settings(sampling="reservoir"):
    return LearnerSettings(kernel=Constant(1.0), manifold=False, ridge=0.0, sampling=sampling)


def kept_states(buffer, y, streams, sampling="reservoir"):
    """The state after each of many streams; a row's only feature is its index."""
    rows = np.arange(float(len(y)))[:, None]
    for seed in range(streams):
        learner = build_learner(settings(sampling), 1, buffer, seed, "float64")
        learner.run(rows, y)
        yield learner.state()


def indices(state, kind=None):
    rows = state["rows"][:, 0].astype(int)
    return rows if kind is None else rows[state["kinds"] == kind]


def inclusion_p_value(counts, streams, size):
    """Chi-square of how often each row was kept, for samples of ``size`` without replacement."""
    rows, p = len(counts), size / len(counts)
    statistic = ((counts - streams * p) ** 2).sum() / (streams * p * (1 - p)) * (rows - 1) / rows
    return chi2.sf(statistic, rows - 1)


@pytest.mark.parametrize(("buffer", "rounds"), [(2, 9), (5, 12), (8, 40)])
def test_every_row_is_kept_with_probability_b_over_t(buffer, rounds):
    streams, counts = 10_000, np.zeros(rounds)
    for state in kept_states(buffer, np.full(rounds, np.nan), streams):
        kept = indices(state)
        assert len({*kept.tolist()}) == buffer
        counts[kept] += 1
    assert inclusion_p_value(counts, streams, buffer) > FALSE_ALARM


def test_every_set_of_rows_is_equally_likely():
    buffer, rounds, streams = 3, 7, 20_000
    sets = {frozenset(rows): 0 for rows in combinations(range(rounds), buffer)}
    for state in kept_states(buffer, np.full(rounds, np.nan), streams):
        sets[frozenset(indices(state).tolist())] += 1
    counts, expected = np.array(list(sets.values())), streams / len(sets)
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), len(sets) - 1) > FALSE_ALARM


def test_a_replaced_slot_is_uniformly_chosen():
    buffer, streams, counts = 5, 10_000, np.zeros(5)
    for state in kept_states(buffer, np.full(buffer + 1, np.nan), streams):
        counts += indices(state) == buffer
    entered = counts.sum()
    assert abs(entered - streams * 5 / 6) < 4 * np.sqrt(streams * 5 / 36)
    assert chi2.sf(((counts - entered / 5) ** 2 / (entered / 5)).sum(), 4) > FALSE_ALARM


def test_labels_play_no_part_in_the_plain_reservoir():
    y = np.where(np.arange(60) % 3 == 0, 1.0, np.nan)
    plain = [indices(state).tolist() for state in kept_states(6, np.full(60, np.nan), 20)]
    assert [indices(state).tolist() for state in kept_states(6, y, 20)] == plain


# -- one reservoir among labelled rows, one among unlabelled


def labels(pattern):
    """``"l"``: labelled, ``"u"``: not."""
    return np.array([1.0 if letter == "l" else np.nan for letter in pattern])


def kept_by_kind(state):
    return [int(np.count_nonzero(state["kinds"] == kind)) for kind in (0, 1)]


@pytest.mark.parametrize("buffer", [6, 7])
@pytest.mark.parametrize("pattern", ["lu" * 40, "l" * 40 + "u" * 40, "u" * 40 + "l" * 40])
def test_stratified_both_kinds_get_half_the_slots(pattern, buffer):
    (state,) = kept_states(buffer, labels(pattern), 1, "stratified")
    assert kept_by_kind(state) == [buffer - buffer // 2, buffer // 2]
    for kind, letter in enumerate("ul"):
        assert all(pattern[i] == letter for i in indices(state, kind))


@pytest.mark.parametrize("kind", [0, 1], ids=["unlabelled", "labelled"])
def test_stratified_unused_slots_are_lent_and_taken_back_one_by_one(kind):
    own, other = ("u", "l") if kind == 0 else ("l", "u")
    pattern = own * 30 + other * 10
    learner = build_learner(settings("stratified"), 1, 8, 3, "float64")
    shares = []
    for i, y in enumerate(labels(pattern)):
        learner.learn(np.array([float(i)]), y)
        shares.append(kept_by_kind(learner.state())[1 - kind])
    assert shares[:30] == [0] * 30
    assert shares[30:] == [1, 2, 3, 4, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(
    "pattern",
    ["lu" * 12, "u" * 14 + "l" * 10, "l" * 14 + "u" * 10, "uuul" * 6, "u" * 22 + "ll"],
)
def test_stratified_is_uniform_within_each_kind(pattern):
    buffer, streams = 6, 10_000
    rows = [np.array([i for i, letter in enumerate(pattern) if letter == kind]) for kind in "ul"]
    counts = np.zeros(len(pattern))
    for state in kept_states(buffer, labels(pattern), streams, "stratified"):
        counts[indices(state)] += 1
        share = kept_by_kind(state)
    for kind in (0, 1):
        if share[kind] == len(rows[kind]):
            assert (counts[rows[kind]] == streams).all()
        else:
            assert inclusion_p_value(counts[rows[kind]], streams, share[kind]) > FALSE_ALARM


# -- the inclusion probabilities that are kept


def inclusion(state):
    """Each kept row's probability of being there."""
    return np.array(state["decay"])[state["kinds"]] / state["weights"]


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
def test_the_kept_inclusion_probability_is_rows_kept_over_rows_seen(sampling, precision):
    y = labels("uul" * 20 + "u" * 80 + "l" * 40)
    learner = build_learner(settings(sampling), 1, 7, 3, precision)
    for i, label in enumerate(y):
        learner.learn(np.array([float(i)]), label)
        state = learner.state()
        share = np.bincount(state["kinds"], minlength=2) / np.maximum(state["seen_by_kind"], 1)
        np.testing.assert_allclose(
            inclusion(state), share[state["kinds"]], rtol=1e-6 if precision == "float32" else 1e-12
        )


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_inclusion_probabilities_survive_a_stream_longer_than_a_float_can_count(precision):
    # The share that every row has lost is kept apart and, before it gets too small, moved to the rows.
    learner = build_learner(settings("stratified"), 1, 6, 3, precision)
    learner.run(np.arange(40.0)[:, None], labels("ul" * 20))
    state = learner.state()
    state["weights"] = state["weights"] * np.where(state["kinds"] == 0, 1.2e-5, 1.0)
    state["decay"] = (state["decay"][0] * 1.2e-5, state["decay"][1])
    learner.set_state(state)
    shares, decays = [], []
    for i in range(200):
        learner.learn(np.array([float(i)]), np.nan)
        state = learner.state()
        seen = np.array(state["seen_by_kind"])
        shares.append(inclusion(state) * seen[state["kinds"]] / 3)
        decays.append(state["decay"][0])
    np.testing.assert_allclose(shares, 1.0, rtol=1e-4 if precision == "float32" else 1e-11)
    assert min(decays) > 1e-6
    assert max(decays) > 0.5, "the share must have been moved to the rows"


# -- Theorem 2


@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
def test_the_buffered_manifold_term_of_a_fixed_function_is_unbiased(sampling):
    # f by a formula; R = sum over all rows seen of w (f(x_s) - f(x))^2, R^ = the same over the buffer, each
    # row weighted by rows seen / rows kept of its kind.
    rng = np.random.default_rng(4)
    X, now = rng.normal(size=30), 0.3
    y = np.where(rng.random(30) < 0.25, 1.0, np.nan)
    X[~np.isnan(y)] += 1.0  # the kinds differ, so that weighting them alike is found out
    terms = np.exp(-((X - now) ** 2)) * (np.sin(3 * X) - np.sin(3 * now)) ** 2
    estimates, alike = [], []
    for state in kept_states(6, y, 8_000, sampling):
        share = np.bincount(state["kinds"], minlength=2)
        scales = np.array(state["seen_by_kind"]) / np.maximum(share, 1)
        estimates.append((scales[state["kinds"]] * terms[indices(state)]).sum())
        alike.append(30 / 6 * terms[indices(state)].sum())
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - terms.sum()) < 4 * error
    if sampling == "stratified":
        assert abs(np.mean(alike) - terms.sum()) > 4 * error


@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
def test_the_learners_own_manifold_term_is_unbiased_for_a_fixed_function(sampling):
    # With one feature and the linear kernel every buffer can write f(x) = 2 x, so f can be held fixed.
    rng = np.random.default_rng(7)
    X, now = rng.normal(size=30), np.array([0.4])
    y = np.where(rng.random(30) < 0.25, 1.0, np.nan)
    X[~np.isnan(y)] += 1.0
    full = (np.exp(-((X - now) ** 2)) * (2 * X - 2 * now) ** 2).sum()
    s = LearnerSettings(kernel=Linear(), ridge=0.0, smoothness=1.0, step=1e-9, sampling=sampling)
    estimates = []
    for seed in range(5_000):
        learner = build_learner(s, 1, 6, seed, "float64")
        learner.run(X[:, None], y)
        state = learner.state()
        state["beta"] = 2.0 / (len(state["rows"]) * state["rows"][:, 0])
        learner.set_state(state)
        estimates.append(learner.run(now[None, :], np.array([np.nan]), frozen=True)[1][0])
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - full) < 4 * error
    assert error < 0.05 * full


def test_another_seed_keeps_other_rows():
    y = np.full(100, np.nan)
    kept = {tuple(sorted(indices(state))) for state in kept_states(5, y, 20)}
    assert len(kept) == 20


def test_a_frozen_run_draws_nothing():
    learner = build_learner(settings(), 1, 3, 0, "float64")
    learner.run(np.arange(10.0)[:, None], np.full(10, np.nan))
    before = learner.state()
    learner.run(np.arange(10.0, 30.0)[:, None], np.full(20, np.nan), frozen=True)
    after = learner.state()
    assert before["rng"] == after["rng"]
    np.testing.assert_array_equal(before["rows"], after["rows"])
