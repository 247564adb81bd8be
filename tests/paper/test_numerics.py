"""The package's own exponential and logarithm, and the underflow that the published reading lives on."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf2el.core import native
from sf2el.paper.kernels import RBF, Laplacian, exp_or_zero
from sf2el.paper.learner import build_learner
from sf2el.paper.settings import LearnerSettings

EPSILON = 2.0**-52
SMALLEST_NORMAL = 2.0**-1022


def numpy_exp(x):
    return float(exp_or_zero(np.array([x]))[0])


@pytest.fixture(params=["native", "numpy"])
def exp(request):
    return native().exp_neg if request.param == "native" else numpy_exp


GRID = -np.concatenate(
    [np.linspace(0, 708, 20_001), np.geomspace(1e-300, 708, 5_000), np.arange(1, 1022) * math.log(2)]
)


def test_exp_is_right_to_two_units_in_the_last_place(exp):
    worst = max(abs(exp(float(x)) / math.exp(x) - 1.0) for x in GRID)
    assert worst <= 2 * EPSILON


@pytest.mark.parametrize("x", [-745.2, -745.2000001, -746.0, -1e3, -1e100, -1e300])
def test_exp_is_exactly_zero_below_745_2(exp, x):
    assert exp(x) == 0.0


@given(st.floats(-745.2, -708.4))
def test_exp_is_zero_or_subnormal_from_708_4_down(x):
    functions = [numpy_exp, native().exp_neg]
    assert all(0.0 <= exp(x) < SMALLEST_NORMAL for exp in functions)


def test_exp_of_zero_is_one(exp):
    assert exp(0.0) == exp(-0.0) == 1.0


def test_exp_never_grows_as_its_argument_falls(exp):
    values = [exp(float(x)) for x in np.linspace(0.0, -709.0, 20_000)]
    assert all(after <= before for before, after in itertools.pairwise(values))


def test_single_precision_exp_is_right_and_underflows_to_zero():
    grid = np.linspace(-87, 0, 5_001).astype(np.float32)
    expected = np.exp(grid.astype(float))
    np.testing.assert_allclose(exp_or_zero(grid), expected, rtol=3e-7)
    assert exp_or_zero(np.array([-87.4, -104.0, -1e30], np.float32)).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose([native().exp_neg32(float(x)) for x in grid], expected, rtol=3e-7)
    assert [native().exp_neg32(x) for x in (-87.4, -104.0, -1e30)] == [0.0, 0.0, 0.0]


def test_log_is_right_to_a_few_units_in_the_last_place():
    rng = np.random.default_rng(0)
    grid = [
        *np.geomspace(SMALLEST_NORMAL, 1.7e308, 5_001),
        *np.linspace(0.5, 2.0, 3_001),
        *(1.0 + rng.uniform(-1e-6, 1e-6, 500)),
        *np.arange(2.0, 100.0),
    ]
    for x in map(float, grid):
        assert native().log_positive(x) == pytest.approx(math.log(x), rel=4 * EPSILON, abs=1e-300)


def test_log_of_one_is_zero():
    assert native().log_positive(1.0) == 0.0


# -- in a learner


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(1.0)], ids=repr)
def test_the_score_of_a_far_row_is_exactly_zero(kernel, precision):
    settings = LearnerSettings(kernel=kernel, label_rate=0.1)
    learner = build_learner(settings, 1, 4, 0, precision)
    learner.learn(np.array([0.0]), 1.0)
    assert learner.predict(np.array([0.0])) > 1.0
    assert learner.predict(np.array([750.0])) == 0.0
    assert learner.learn(np.array([750.0]), -1.0)[0] == 0.0
    assert learner.predict(np.array([1e100])) == 0.0


def test_the_score_of_a_row_short_of_the_underflow_is_not():
    learner = build_learner(LearnerSettings(kernel=RBF(1.0), label_rate=0.1), 1, 4, 0, "float64")
    learner.learn(np.array([0.0]), 1.0)
    assert learner.predict(np.array([math.sqrt(708.0)])) == pytest.approx(5 * math.exp(-708.0), rel=1e-12)
    assert learner.predict(np.array([math.sqrt(708.4)])) < SMALLEST_NORMAL


def test_an_edge_weight_that_underflows_leaves_the_manifold_term_out():
    settings = LearnerSettings(kernel=RBF(1e-3), graph_width=1.0, ridge=0.0, smoothness=1.0, label_rate=1.0)
    learner = build_learner(settings, 1, 4, 0, "float64")
    learner.learn(np.array([0.0]), 1.0)
    score, risk = learner.learn(np.array([27.4]), np.nan)  # 27.4^2 = 750.76
    assert 0.1 < score < learner.predict(np.array([0.0]))
    assert risk == 0.0
