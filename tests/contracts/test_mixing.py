"""What a mixture of experts promises, by fixed share and by the paper's hedge."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import MODELS, STREAMS, labels_for, learned

from sf2el import SF2EL, SF2ELRegressor
from sf2el.core import native
from sf2el.experts.kinds import Code, Form, Kind, View

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", STREAMS)
def test_weights_are_shares_of_one_after_every_row(kind, name):
    model = MODELS[kind]()
    for x, y in labels_for(model, STREAMS[name]()):
        model.learn_one(x, y)
        weights = model.weights(detail=True)
        assert all(-1e-12 <= weight <= 1.0 + 1e-9 for weight in weights.values())
        assert abs(sum(weights.values()) - 1.0) < 1e-6
        assert all(np.isfinite(list(model.risk().values())))
    assert set(model.weights()) <= {"recovered", "current", "incoming"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(kind, name) for kind in MODELS for name in ("complete", "swap", "cycles", "partly")],
)
def test_the_weights_of_an_explanation_are_shares_of_one(kind, name):
    model = MODELS[kind]("64KiB")
    for x, y in labels_for(model, STREAMS[name]()):
        model.learn_one(x, y)
        told = model.explain_one(x)
        assert not told or abs(sum(one["weight"] for one in told.values()) - 1.0) < 1e-6
        assert len(model.risk()) == len(model.weights(detail=True))


def mixed(priors, task="classes"):
    """A state of one space with a logistic expert in each view, and their weights by their priors."""
    state = native().State(task)
    state.open(state.begin({"a": 1.0, "b": 1.0}), 2, False, False)
    state.begin_gaps()
    for view, prior in zip((View.EXPECTED, View.ZERO, View.FLAGGED), priors, strict=True):
        state.add(0, Code(Kind.LIGHT, view, form=Form.FULL), prior, prior, [])
    state.set_weights([prior / sum(priors) for prior in priors])
    state.finish(float("nan"), 1.0)
    state.young_until = 0
    return state


@pytest.mark.parametrize("task", ["classes", "regression_squared", "regression_absolute"])
def test_what_is_said_lies_between_what_experts_say(task):
    state = mixed([0.5, 0.3, 0.2], task)
    rng = np.random.default_rng(0)
    for _ in range(100):
        z = rng.normal(size=2)
        x = {"a": float(z[0])} if rng.random() < 0.4 else {"a": float(z[0]), "b": float(z[1])}
        state.learn(x, float(np.sign(z[0])), 1.0)
        scores, weights, awake = state.explain(x)
        assert all(awake) and abs(sum(weights) - 1.0) < 1e-9
        if task != "classes":
            assert np.min(scores) - 1e-9 <= state.predict(x) <= np.max(scores) + 1e-9


def test_weights_follow_the_expert_that_is_right():
    """Absence of b is the class: the expert that sees what is missing as expected cannot know."""
    state = mixed([0.6, 0.2, 0.2])
    rng = np.random.default_rng(1)
    for _ in range(400):
        y = float(rng.choice([-1.0, 1.0]))
        x = {"a": float(rng.normal())} | ({"b": float(rng.normal())} if y > 0 or rng.random() < 0.1 else {})
        state.learn(x, y, 1.0)
    weights = state.standings()[:, 0]
    assert weights[0] < 0.2 and weights[1:].sum() > 0.8


def test_no_weight_falls_to_nothing_and_all_can_come_back():
    """Fixed share: after long being wrong an expert is followed again within some rounds."""
    state = mixed([0.6, 0.2, 0.2])
    rng = np.random.default_rng(1)
    least = 1.0
    for t in range(900):
        y = float(rng.choice([-1.0, 1.0]))
        there = y > 0 if t < 600 else rng.random() < 0.5
        x = {"a": float(y + 0.3 * rng.normal()) if t >= 600 else float(rng.normal())}
        state.learn(x | ({"b": float(rng.normal())} if there else {}), y, 1.0)
        least = min(least, float(state.standings()[:, 0].min()))
    assert least > 1e-9
    assert np.isfinite(state.standings()).all()


def test_an_expert_more_has_the_share_it_was_given_and_the_others_theirs():
    state = mixed([0.5, 0.3, 0.2])
    before = state.standings()[:, 0]
    state.add(0, Code(Kind.LINEAR, form=Form.FULL), 0.5, 0.1, [])
    after = state.standings()[:, 0]
    assert after.sum() == pytest.approx(1.0)
    assert after[-1] == pytest.approx(0.1, abs=0.01)
    np.testing.assert_allclose(after[:3] / after[:3].sum(), before / before.sum(), atol=1e-9)
    state.remove(0, 3)
    assert state.standings()[:, 0].sum() == pytest.approx(1.0)


def test_unlabelled_rows_move_no_weight():
    model = learned(SF2EL(), STREAMS["gaps"]())
    before = model.weights(detail=True), model.risk()
    for x, _ in STREAMS["gaps"](seed=4)[:40]:
        model.learn_one(x)
    assert (model.weights(detail=True), model.risk()) == before


@pytest.mark.parametrize("make", [SF2EL, SF2ELRegressor, SF2EL.paper])
def test_contradicting_labels_leave_weights_finite(make):
    model = make(budget="16KiB")
    for t in range(400):
        model.learn_one({"a": 1.0, "b": float(t % 2)}, (t // 3) % 2)
    assert abs(sum(model.weights().values()) - 1.0) < 1e-6
    assert all(np.isfinite(list(model.risk().values())))
