"""The update is a gradient step: finite differences of the risk, of every loss and of every kernel."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from streams import KERNELS, LOSSES, stream

from sf2el.paper.learner import build_learner
from sf2el.paper.losses import LOSSES as PACKAGE_LOSSES
from sf2el.paper.settings import LearnerSettings

RISKY = {"graph_width": 0.5, "ridge": 0.3, "smoothness": 0.4, "step": 0.1, "label_rate": 0.4, "cap": False}


def one_step(settings, label, frozen=0, rounds=9):
    """A round with room in the buffer: what was known before it, f, and f after it.

    ``frozen`` rounds first leave more rows seen than kept, so that seen / n is not 1.
    """
    X, y = stream(rounds + frozen + 1, seed=11, labelled=0.7)
    start = build_learner(LearnerSettings(kernel=settings.kernel), 3, 100, 0, "float64")
    start.run(X[:rounds], y[:rounds])
    start.run(X[rounds:-1], y[rounds:-1], frozen=True)
    before = start.state()
    learner = build_learner(settings, 3, 100, 0, "float64")
    learner.set_state(before)
    learner.learn(X[-1], label)
    r = oracle.Round.from_state(settings, before, X[-1], label)
    f = oracle.Function.of_state(settings.kernel, before)
    return r, f, oracle.Function.of_state(settings.kernel, learner.state())


def directional(settings, f, r, h, epsilon=1e-4):
    """d/de J(f + e h) at 0, the manifold term over f's own rows."""

    def risk(e):
        return oracle.risk(settings, f.plus(h, times=e), r, neighbours=f.rows)

    return (risk(epsilon) - risk(-epsilon)) / (2.0 * epsilon)


def slopes(settings, r, f, after):
    """(-<step, h> / tau, dJ along h) for random directions h among the representers."""
    rng = np.random.default_rng(5)
    step = after.plus(f, times=-1.0)
    for _ in range(3):
        h = oracle.Function(settings.kernel, (*f.rows, r.x), tuple(rng.normal(size=len(f.rows) + 1)))
        yield -step.inner(h) / r.tau(settings), directional(settings, f, r, h)


@pytest.mark.parametrize("frozen", [0, 20], ids=["seen=n", "seen>n"])
@pytest.mark.parametrize("label", [1.0, -1.0, np.nan], ids=["+1", "-1", "unlabelled"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_step_is_minus_tau_times_the_gradient_of_the_risk(loss, label, frozen):
    settings = LearnerSettings(loss=loss, **RISKY)
    r, f, after = one_step(settings, label, frozen)
    assert abs(1.0 - f(r.x)) > 0.01, "a difference across a kink is no derivative"
    assert abs(1.0 + f(r.x)) > 0.01, "a difference across a kink is no derivative"
    stepped, differenced = zip(*slopes(settings, r, f, after), strict=True)
    assert max(map(abs, differenced)) > 0.1
    assert stepped == pytest.approx(differenced, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_step_is_the_gradient_in_the_space_of_every_kernel(kernel):
    settings = LearnerSettings(kernel=KERNELS[kernel], **(RISKY | {"step": 0.01}))
    r, f, after = one_step(settings, 1.0, frozen=20)
    stepped, differenced = zip(*slopes(settings, r, f, after), strict=True)
    assert stepped == pytest.approx(differenced, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("equations", ["printed", "printed-weighted"])
def test_the_printed_equations_are_not_the_gradient_once_more_rows_were_seen_than_kept(equations):
    settings = LearnerSettings(equations=equations, **RISKY)
    r, f, after = one_step(settings, np.nan, frozen=20)
    stepped, differenced = next(slopes(settings, r, f, after))
    assert abs(stepped - differenced) > 0.01 * abs(differenced)


def test_the_cap_divides_the_manifold_part_of_the_step_by_q():
    steep = RISKY | {"ridge": 0.0, "smoothness": 20.0}  # and no label: the manifold part alone
    capped = LearnerSettings(**(steep | {"cap": True}))
    r, f, far = one_step(LearnerSettings(**steep), np.nan)
    _, _, near = one_step(capped, np.nan)
    q = oracle.overshoot(capped, f, r)
    assert q > 1.5
    start = np.array((*f.beta, 0.0))
    np.testing.assert_allclose((np.array(near.beta) - start) * q, np.array(far.beta) - start, rtol=1e-9)


def test_the_cap_leaves_a_short_step_as_it_is():
    gentle = RISKY | {"smoothness": 1e-3}
    r, f, free = one_step(LearnerSettings(**gentle), 1.0)
    capped = LearnerSettings(**(gentle | {"cap": True}))
    assert oracle.overshoot(capped, f, r) < 1.0
    assert one_step(capped, 1.0)[2] == free


# -- losses and kernels


@given(
    score=st.floats(-20, 20),
    y=st.sampled_from([-1.0, 1.0]),
    name=st.sampled_from(LOSSES),
)
def test_every_loss_has_its_own_derivative(score, y, name):
    assume(abs(y * score - 1.0) > 1e-4)  # the hinge's kink
    loss, epsilon = PACKAGE_LOSSES[name], 1e-5
    differenced = (loss.value(score + epsilon, y) - loss.value(score - epsilon, y)) / (2 * epsilon)
    assert loss.derivative(score, y) == pytest.approx(differenced, rel=1e-6, abs=1e-8)
    assert loss.value(score, y) == pytest.approx(oracle.loss(name, score, y), rel=1e-12, abs=1e-15)


@given(
    scores=st.tuples(st.floats(-20, 20), st.floats(-20, 20)),
    share=st.floats(0, 1),
    y=st.sampled_from([-1.0, 1.0]),
    name=st.sampled_from(LOSSES),
)
def test_every_loss_is_convex_in_the_score(scores, share, y, name):
    value = PACKAGE_LOSSES[name].value
    a, b = scores
    between = share * a + (1 - share) * b
    assert value(between, y) <= share * value(a, y) + (1 - share) * value(b, y) + 1e-9


def test_every_loss_of_the_package_is_tested():
    assert set(PACKAGE_LOSSES) == set(LOSSES)


ROWS = st.lists(st.floats(-2, 2), min_size=3, max_size=3).map(np.array)


@given(x=ROWS, y=ROWS, name=st.sampled_from(sorted(KERNELS)))
def test_every_kernel_has_its_own_gradient(x, y, name):
    kernel, epsilon = KERNELS[name], 1e-6
    assume(("laplacian" not in name and name != "four") or np.abs(x - y).min() > 1e-4)  # its kink
    differenced = [(kernel(x + e, y) - kernel(x - e, y)) / (2 * epsilon) for e in epsilon * np.eye(3)]
    np.testing.assert_allclose(kernel.gradient(x, y), differenced, rtol=1e-6, atol=1e-7)


@given(x=ROWS, y=ROWS, name=st.sampled_from(sorted(KERNELS)))
def test_every_kernel_is_symmetric_and_has_its_formulas_value(x, y, name):
    kernel = KERNELS[name]
    assert kernel(x, y) == kernel(y, x)
    assert kernel(x, y) == pytest.approx(oracle.K(kernel, x.tolist(), y.tolist()), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_every_gram_matrix_is_positive_semi_definite(name):
    X, _ = stream(30, seed=1)
    rows = np.vstack([X, X[:5]])  # duplicates
    G = np.array([[KERNELS[name](a, b) for b in rows] for a in rows])
    assert np.linalg.eigvalsh(G).min() > -1e-10 * np.trace(G)


@pytest.mark.parametrize("name", KERNELS)
def test_constant_diagonal_says_so_exactly_when_it_is(name):
    X, _ = stream(10, seed=1)
    diagonal = {KERNELS[name](x, x) for x in X}
    assert KERNELS[name].constant_diagonal == (len(diagonal) == 1)
