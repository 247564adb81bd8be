"""The online logistic expert against gradient steps by numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.compiled import OUTPUTS, TASKS, stream
from oracles.logistic import Logistic

from sf2el.core import _native


@pytest.mark.parametrize(("power", "scale", "step"), [(0.0, 1.0, 0.1), (0.5, 1.0, 0.5), (0.3, 2.0, 5.0)])
@pytest.mark.parametrize("task", TASKS)
def test_every_step_is_the_naive_one(task, power, scale, step):
    X, y, weights = stream(task, 150)
    expert = _native.logistic(
        dim=3, outputs=OUTPUTS[task], task=task, step=step, power=power, scale=scale, variant="auto"
    )
    oracle = Logistic(3, OUTPUTS[task], task, step, power, scale)
    for x, label, weight in zip(X, y, weights, strict=True):
        scores, risk = expert.learn(x, label, weight)
        wanted = oracle.learn(x, label, weight)
        # Central differences of width 1e-6 are off by some 1e-10; steps of 5 and 150 rows make 1e-7 of it.
        np.testing.assert_allclose(scores, wanted, rtol=1e-6, atol=1e-6)
        assert np.isnan(risk) == np.isnan(label)
    assert np.abs(expert.predict_many(X)).max() > 0.1
    weights_, labels = expert.state()[:-1].reshape(OUTPUTS[task], 4), expert.state()[-1]
    np.testing.assert_allclose(weights_, np.column_stack([oracle.w, oracle.b]), rtol=1e-6, atol=1e-6)
    assert labels == oracle.labels == (~np.isnan(y)).sum()


def test_a_first_step_by_hand():
    """p = .5 before any label: w = step weight (1 - .5) scale x, intercept without x."""
    expert = _native.logistic(dim=2, outputs=1, task="binary", step=0.4, power=0.7, scale=3.0, variant="auto")
    expert.learn(np.array([1.0, -2.0]), 1.0, 2.0)
    np.testing.assert_allclose(expert.state(), [1.2, -2.4, 0.4, 1.0], rtol=1e-14)


def test_squared_steps_never_pass_the_label():
    expert = _native.logistic(
        dim=2, outputs=1, task="regression_squared", step=100.0, power=0.0, scale=1.0, variant="auto"
    )
    x = np.array([3.0, -1.0])
    expert.learn(x, 7.0, 50.0)
    np.testing.assert_allclose(expert.predict(x), [7.0], rtol=1e-14)
