"""Which labels the paper's learner takes."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el import Learner, LearnerSettings

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(6, 2))
WRONG = [0, 5.0, 0.5, "up", None, np.int64(2), np.inf]


def learner(loss):
    made = Learner(LearnerSettings(loss=loss, label_rate=0.5), dim=2, buffer_size=4)
    made.run(X, [1, -1, NAN, 1, NAN, -1])
    return made


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_loss_of_two_classes_refuses_other_labels_and_learns_nothing(loss, wrong):
    model, twin = learner(loss), learner(loss)
    said = f"The {loss} loss takes the labels -1 and \\+1, and NaN for none, not"
    for call in (
        lambda: model.learn(X[0], wrong),
        lambda: model.learn_late(X[0], wrong),
        lambda: model.run(X[:3], [1, NAN, wrong]),
        lambda: model.run(X[:3], [1, NAN, wrong], frozen=True),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    assert model.run(X, [1] * 6)[1].tolist() == twin.run(X, [1] * 6)[1].tolist()


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", [int, float, np.int8, np.float32])
def test_minus_one_and_one_of_any_kind_are_labels(loss, kind):
    model, twin = learner(loss), learner(loss)
    assert model.learn(X[0], kind(-1)) == twin.learn(X[0], -1.0)
    signs = [1, -1, 1]
    assert model.run(X[:3], np.array(signs, dtype=kind))[0].tolist() == twin.run(X[:3], signs)[0].tolist()
    assert np.isfinite(model.learn(X[1])).all() and np.isfinite(model.learn(X[1], NAN)).all()


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_loss_of_numbers_takes_any_number(loss):
    model = Learner(LearnerSettings(loss=loss), dim=2, buffer_size=4)
    assert np.isfinite(model.run(X, [0, 5.0, NAN, -2.5, 1, 0.1])[1]).all()
    assert np.isfinite(model.learn(X[0], 7)).all() and np.isfinite(model.learn_late(X[0], 7.5)).all()
