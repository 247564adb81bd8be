"""Following the best: the regret bounds hold for any risks, at every time."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sf2el.core import native

core = native()

ADAPTIVE = 0.0


@st.composite
def risk_tables(draw, largest=None):
    """(risks, M): rounds x experts, each risk in [0, M]."""
    M = draw(st.sampled_from([1e-6, 1.0, 30.0, 1e6])) if largest is None else largest
    shape = draw(st.tuples(st.integers(1, 40), st.integers(2, 5)))
    # Few different values make ties and leaders that change; many make everything else.
    values = draw(st.sampled_from([st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)]))
    return M * draw(arrays(float, shape, elements=values)), M


def after_each_round(risks, eta):
    """(rounds so far, hedge) after every round."""
    hedge = core.Hedge(risks.shape[1], eta)
    for t, row in enumerate(risks, 1):
        hedge.update(row)
        yield t, hedge


def regret(hedge):
    return hedge.mixture - min(hedge.cumulative)


@given(table=risk_tables(), scaled_eta=st.floats(1e-3, 20))
def test_a_fixed_rate_keeps_theorem_1s_bound_at_every_time(table, scaled_eta):
    risks, M = table
    eta, n = scaled_eta / M, risks.shape[1]
    for t, hedge in after_each_round(risks, eta):
        assert regret(hedge) <= log(n) / eta + eta * t * M**2 / 8 + 1e-9 * M * t


@given(table=risk_tables(), scaled_eta=st.floats(1e-3, 20))
def test_a_fixed_rate_keeps_its_exact_certificate_at_every_time(table, scaled_eta):
    risks, M = table
    eta, n = scaled_eta / M, risks.shape[1]
    for t, hedge in after_each_round(risks, eta):
        assert regret(hedge) <= log(n) / eta + hedge.gaps + 1e-9 * M * t
        assert 0.0 <= hedge.gaps <= eta * t * M**2 / 8 + 1e-9 * M * t


@given(table=risk_tables(largest=1.0))
def test_the_papers_rate_keeps_nine_eighths_of_the_printed_bound(table):
    risks = table[0][:, :2]
    T = len(risks)
    *_, (_, hedge) = after_each_round(risks, sqrt(log(2) / T))
    assert regret(hedge) <= 9 / 8 * sqrt(T * log(2)) + 1e-9


@given(table=risk_tables())
def test_adahedge_keeps_its_bounds_at_every_time(table):
    risks, M = table
    n, S = risks.shape[1], 0.0
    for t, hedge in after_each_round(risks, ADAPTIVE):
        S = max(S, float(np.ptp(risks[t - 1])))
        assert regret(hedge) <= 2 * hedge.gaps + 1e-9 * M * t
        assert regret(hedge) <= S * sqrt(t * log(n)) + S * (4 / 3 * log(n) + 2) + 1e-9 * M * t


@given(table=risk_tables(), eta=st.sampled_from([ADAPTIVE, 0.3, 5.0]))
def test_weights_are_a_distribution_that_starts_equal(table, eta):
    risks, _ = table
    n = risks.shape[1]
    assert core.Hedge(n, eta).weights == pytest.approx([1 / n] * n, rel=1e-15)
    for _, hedge in after_each_round(risks, eta):
        assert np.all(hedge.weights >= 0.0)
        assert np.sum(hedge.weights) == pytest.approx(1.0, rel=1e-14)


@given(table=risk_tables(), scaled_eta=st.floats(1e-3, 20))
def test_weights_are_the_closed_form(table, scaled_eta):
    risks, M = table
    eta = scaled_eta / M
    for t, hedge in after_each_round(risks, eta):
        total = risks[:t].sum(axis=0)
        expected = np.exp(-eta * (total - total.min()))
        np.testing.assert_allclose(hedge.cumulative, total, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(hedge.weights, expected / expected.sum(), rtol=1e-9, atol=1e-300)


@given(table=risk_tables(), scaled_eta=st.sampled_from([ADAPTIVE, 0.5]))
def test_a_round_is_combined_with_the_weights_of_earlier_rounds_only(table, scaled_eta):
    risks, M = table
    scores = np.sin(np.arange(risks.size)).reshape(risks.shape)
    hedge, mirror = core.Hedge(risks.shape[1], scaled_eta / M), core.Hedge(risks.shape[1], scaled_eta / M)
    combined, mixed, weights = hedge.run(scores, risks)
    for t, row in enumerate(risks):
        np.testing.assert_array_equal(weights[t], mirror.weights)
        assert combined[t] == pytest.approx(mirror.weights @ scores[t], rel=1e-12, abs=1e-15)
        assert mixed[t] == pytest.approx(mirror.weights @ row, rel=1e-12, abs=1e-300)
        mirror.update(row)
    assert hedge.mixture == pytest.approx(mixed.sum(), rel=1e-12)
    assert hedge.largest == risks.max()
    assert hedge.rounds == len(risks)


@given(table=risk_tables(), scaled_eta=st.sampled_from([ADAPTIVE, 0.5]), split=st.integers(0, 40))
def test_run_is_a_loop_of_updates_to_the_bit_and_can_be_cut_anywhere(table, scaled_eta, split):
    risks, M = table
    whole, loop, cut = (core.Hedge(risks.shape[1], scaled_eta / M) for _ in range(3))
    _, mixed, _ = whole.run(risks, risks)
    np.testing.assert_array_equal(mixed, [loop.update(row) for row in risks])
    cut.run(risks[:split], risks[:split])
    cut.run(risks[split:], risks[split:])
    np.testing.assert_array_equal(whole.state(), loop.state())
    np.testing.assert_array_equal(whole.state(), cut.state())


@given(table=risk_tables(largest=1.0), eta=st.sampled_from([ADAPTIVE, 0.5]), constant=st.floats(0, 100))
def test_adding_the_same_to_every_expert_changes_no_weight(table, eta, constant):
    # On a grid, so that adding loses nothing and ties stay ties.
    risks, constant = np.round(table[0] * 1024) / 1024, np.round(constant * 1024) / 1024
    *_, (_, plain) = after_each_round(risks, eta)
    *_, (_, shifted) = after_each_round(risks + constant, eta)
    np.testing.assert_allclose(shifted.weights, plain.weights, rtol=1e-8, atol=1e-10)
    assert regret(shifted) == pytest.approx(regret(plain), abs=1e-9)


@pytest.mark.parametrize("eta", [ADAPTIVE, 1e-3, 1.0])
def test_huge_risks_stay_finite(eta):
    hedge = core.Hedge(3, eta)
    risks = np.array([[1e100, 0.0, 1e99], [0.0, 1e100, 1e100], [1e-300, 1e100, 0.0], [1e100, 1e100, 1e100]])
    _, mixed, weights = hedge.run(risks, risks)
    for numbers in (mixed, weights, hedge.state(), [hedge.rate]):
        assert np.all(np.isfinite(numbers))


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-300])
def test_tiny_risks_stay_finite(tiny):
    # The rate of AdaHedge, ln n / gaps, must not overflow.
    hedge = core.Hedge(2, ADAPTIVE)
    risks = tiny * np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    _, mixed, weights = hedge.run(risks, risks)
    for numbers in (mixed, weights, hedge.state(), [hedge.rate]):
        assert np.all(np.isfinite(numbers))


def test_adahedge_follows_the_leader_until_the_leader_errs():
    hedge = core.Hedge(2, ADAPTIVE)
    assert hedge.rate == 0.0  # which stands for infinity
    hedge.update(np.array([0.0, 0.0]))
    np.testing.assert_array_equal(hedge.weights, [0.5, 0.5])
    hedge.update(np.array([0.0, 1.0]))  # gap: mixture 0.5, best expert 0
    assert hedge.gaps == 0.5
    assert hedge.rate == pytest.approx(log(2) / 0.5, rel=1e-14)
    np.testing.assert_allclose(hedge.weights, np.array([1.0, 0.25]) / 1.25, rtol=1e-14)


def test_a_state_carries_a_hedge_on_to_the_bit():
    risks = np.random.default_rng(0).random((60, 3))
    for eta in (ADAPTIVE, 0.4):
        whole, first, second = (core.Hedge(3, eta) for _ in range(3))
        whole.run(risks, risks)
        first.run(risks[:25], risks[:25])
        second.set_state(first.state())
        second.run(risks[25:], risks[25:])
        np.testing.assert_array_equal(whole.state(), second.state())


def test_mixture_comes_near_the_best_of_many_rounds():
    rng = np.random.default_rng(3)
    risks = rng.random((5_000, 2)) * [1.0, 0.8]
    hedge = core.Hedge(2, ADAPTIVE)
    hedge.run(risks, risks)
    assert hedge.weights[1] > 0.999
    assert regret(hedge) < 10.0
