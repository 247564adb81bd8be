"""The mixture of experts against fixed share written out, and what holds for any scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles.mixture import SHARE, Mixture, log_probabilities

from sf2el.core import _native

OUTPUTS = {"binary": 1, "classes": 3, "regression_squared": 1, "regression_absolute": 1}
TASKS = list(OUTPUTS)
PRIORS = np.array([3.0, 1.0, 1.0, 0.5])
ALL = np.ones(4)


def stream(task, rounds, seed=0, asleep=0.3):
    """Scores of four experts of different worth, risks, who is awake, labels and weights."""
    rng = np.random.default_rng(seed)
    k = OUTPUTS[task]
    truth = rng.normal(size=(rounds, k))
    # At most 1.7: no factor, of at most e^1.5, takes a margin to where it is clipped and has no derivative.
    noise = rng.normal(size=(rounds, 4, k)) * [[0.3], [1.0], [3.0], [1.0]]
    scores = np.clip(truth[:, None] + noise, -1.7, 1.7)
    y = {"binary": np.sign(truth[:, 0]), "classes": truth.argmax(axis=1).astype(float)}.get(task, truth[:, 0])
    gap = np.abs(y[:, None] - scores[:, :, 0])
    awake = (rng.random((rounds, 4)) >= asleep).astype(float)
    awake[~awake.any(axis=1), 1] = 1.0
    risks = gap if task == "regression_absolute" else gap**2
    return scores.reshape(rounds, -1), risks, awake, y, rng.uniform(0.3, 3.0, rounds)


@pytest.mark.parametrize("asleep", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("task", TASKS)
def test_every_round_is_the_naive_one(task, asleep):
    mixture, oracle = _native.Mixture(task, OUTPUTS[task], PRIORS), Mixture(task, OUTPUTS[task], PRIORS)
    for scores, risks, awake, y, weight in zip(*stream(task, 300, asleep=asleep), strict=True):
        there = awake > 0.0
        # Central differences of width 1e-5 are off by some 1e-10 a round.
        close = {"rtol": 1e-6, "atol": 1e-7}
        np.testing.assert_allclose(mixture.mix(scores, awake), oracle.mix(scores, there), **close)
        mixture.follow(scores, risks, awake, y, weight)
        oracle.follow(scores, risks, there, y, weight)
        np.testing.assert_allclose(mixture.weights, oracle.weights, **close)
        np.testing.assert_allclose(mixture.losses, oracle.losses, **close)
        np.testing.assert_allclose(mixture.factors, np.exp(oracle.logs), **close)
    assert mixture.rounds == 300
    # The best expert is followed, and one that is more often right than it says is told to be surer.
    assert np.argmax(mixture.weights / PRIORS) == 0 or asleep > 0.0
    assert task.startswith("regression") or mixture.factors.max() > 1.05


@st.composite
def rounds(draw, task, largest):
    count = draw(st.integers(1, 25))
    k = OUTPUTS[task]
    # Few different values make ties and certainties; others make everything else.
    values = draw(st.sampled_from([st.sampled_from([-largest, 0.0, largest]), st.floats(-largest, largest)]))
    scores = draw(arrays(float, (count, 4 * k), elements=values))
    labels = {"binary": st.sampled_from([-1.0, 1.0]), "classes": st.sampled_from([0.0, 1.0, 2.0])}
    y = draw(arrays(float, count, elements=labels.get(task, st.floats(-3.0, 3.0))))
    awake = draw(arrays(float, (count, 4), elements=st.sampled_from([0.0, 1.0])))
    return scores, y, awake


def risks_of(task, scores, y):
    gap = np.abs(scores[: 4 * OUTPUTS[task] : OUTPUTS[task]] - y)
    return gap if task == "regression_absolute" else gap**2


@pytest.mark.parametrize("task", TASKS)
@given(data=st.data())
def test_weights_are_shares_and_who_sleeps_keeps_its_own(task, data):
    scores, y, awake = data.draw(rounds(task, largest=1e3))
    mixture = _native.Mixture(task, OUTPUTS[task], PRIORS)
    for row, label, here in zip(scores, y, awake, strict=True):
        before, losses, factors = mixture.weights, mixture.losses, mixture.factors
        mixture.follow(row, risks_of(task, row, label), here, label)
        after, asleep = mixture.weights, here == 0.0
        np.testing.assert_array_equal(after[asleep], before[asleep])
        np.testing.assert_array_equal(mixture.losses[asleep], losses[asleep])
        np.testing.assert_array_equal(mixture.factors[asleep], factors[asleep])
        np.testing.assert_allclose(after.sum(), 1.0, rtol=1e-12)
        np.testing.assert_allclose(after[~asleep].sum(), before[~asleep].sum(), rtol=1e-12)
        if not asleep.all():
            # Nobody falls below its part of what is dealt.
            dealt = SHARE * before[~asleep].sum() * PRIORS[~asleep] / PRIORS[~asleep].sum()
            assert (after[~asleep] >= dealt * (1.0 - 1e-12)).all()
        assert (mixture.factors >= np.exp(-1.5) - 1e-12).all()
        assert (mixture.factors <= np.exp(1.5) + 1e-12).all()
        out = mixture.mix(row, ALL)
        assert np.isfinite(out).all()
        assert task != "classes" or abs(out.sum() - 1.0) < 1e-12


@pytest.mark.parametrize("task", ["binary", "classes"])
@given(data=st.data())
def test_the_mixtures_log_loss_is_at_most_the_best_experts_and_a_price(task, data):
    """Fixed share: at most loss_j + log(1 / prior_j) + rounds log(1 / (1 - share)), for each expert j.

    Scores are within what neither clipped margins nor the largest loss, 8, cut off.
    """
    scores, y, _ = data.draw(rounds(task, largest=1.7))
    mixture, total = _native.Mixture(task, OUTPUTS[task], PRIORS), 0.0
    for t, (row, label) in enumerate(zip(scores, y, strict=True), 1):
        out = mixture.mix(row, ALL)
        if task == "binary":
            total -= log_probabilities("binary", out)[int(label > 0)]
        else:
            total -= np.log(out[int(label)])
        mixture.follow(row, np.zeros(4), ALL, label)
        price = np.log(PRIORS.sum() / PRIORS) - t * np.log1p(-SHARE)
        assert (total <= mixture.losses + price + 1e-9).all()


@pytest.mark.parametrize("task", ["regression_squared", "regression_absolute"])
@given(data=st.data())
def test_of_numbers_the_weights_keep_the_same_bound(task, data):
    """-log sum w_j exp(-loss_j), summed over rounds, in units of the noise that the best expert leaves."""
    scores, y, _ = data.draw(rounds(task, largest=3.0))
    mixture, total = _native.Mixture(task, 1, PRIORS), 0.0
    for t, (row, label) in enumerate(zip(scores, y, strict=True), 1):
        weights, losses = mixture.weights, mixture.losses
        mixture.follow(row, risks_of(task, row, label), ALL, label)
        total -= np.log(weights @ np.exp(losses - mixture.losses))
        price = np.log(PRIORS.sum() / PRIORS) - t * np.log1p(-SHARE)
        assert (total <= mixture.losses + price + 1e-9).all()


def test_an_expert_more_of_a_kind_does_not_dilute_the_rest():
    """What is dealt again goes by prior: with two halves in place of one expert the others weigh the same."""
    one = _native.Mixture("binary", 1, np.ones(2))
    two = _native.Mixture("binary", 1, np.array([1.0, 0.5, 0.5]))
    rng = np.random.default_rng(0)
    for _ in range(100):
        a, b = rng.normal(size=2)
        y = np.sign(a + 0.5 * rng.normal())
        one.follow(np.array([a, b]), np.zeros(2), np.ones(2), y)
        two.follow(np.array([a, b, b]), np.zeros(3), np.ones(3), y)
    wanted = one.weights[[0, 1, 1]] / [1.0, 2.0, 2.0]
    np.testing.assert_allclose(two.weights, wanted, rtol=1e-10)


def test_the_best_expert_is_followed_again_soon_after_it_has_changed():
    """No weight is ever lost: after 1,000 rounds of the one, the other takes over in some 20."""
    mixture, y = _native.Mixture("binary", 1, np.ones(2)), 1.0
    for _ in range(1000):
        mixture.follow(np.array([2.0, -2.0]), np.zeros(2), np.ones(2), y)
    assert mixture.weights[0] > 0.98
    for _ in range(20):
        mixture.follow(np.array([-2.0, 2.0]), np.zeros(2), np.ones(2), y)
    assert mixture.weights[1] > 0.9


def test_rounds_without_a_label_or_without_anyone_awake_change_nothing():
    mixture = _native.Mixture("binary", 1, PRIORS)
    scores = np.array([1.0, -1.0, 0.5, 0.0])
    mixture.follow(scores, np.zeros(4), ALL, 1.0)

    def state():
        return [*mixture.weights, *mixture.losses, *mixture.factors, mixture.rounds]

    before = state()
    mixture.follow(scores, np.zeros(4), ALL, np.nan)
    mixture.follow(scores, np.zeros(4), np.zeros(4), 1.0)
    mixture.follow(np.array([1.0, np.nan, 0.5, 0.0]), np.zeros(4), ALL, 1.0)
    assert state() == before


@pytest.mark.parametrize("awake", [[0.0, 0.0], [0.0, 1.0]])
def test_where_nobody_with_a_weight_is_awake_nothing_is_said(awake):
    """The second expert has no weight: alone it must not come out as certainty, of either label."""
    scores, even = np.array([3.0, 3.0]), np.full(3, 1.0 / 3.0)
    assert _native.Mixture("binary", 1, np.array([1.0, 0.0])).mix(scores, np.array(awake)).tolist() == [0.0]
    classes = _native.Mixture("classes", 3, np.array([1.0, 0.0])).mix(np.arange(6.0), np.array(awake))
    np.testing.assert_allclose(classes, even, rtol=1e-15)


@pytest.mark.parametrize(
    "given",
    [("binary", 1, [0.0, 0.0]), ("binary", 1, [1.0, -1.0]), ("classes", 1, [1.0]), ("colours", 1, [1.0])],
)
def test_what_cannot_be_a_mixture_is_refused(given):
    with pytest.raises(ValueError, match=r"prior|classes take|Unknown setting"):
        _native.Mixture(*given[:2], np.array(given[2]))
