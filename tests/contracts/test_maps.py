"""What every recovery map promises, the default's and the paper's."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import MODELS

from sf2el import RBF, SF2EL
from sf2el.core import native
from sf2el.experts.kinds import Code, Form, Kind
from sf2el.memory.ladder import BRIEF, SINGLE
from sf2el.paper.settings import LearnerSettings
from sf2el.paper.strategy import PaperStrategy

OLD, NEW = ["a0", "a1"], ["b0", "b1", "b2"]
MIXING = np.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.8]])


def default_state():
    return native().State("classes")


def paper_state():
    settings = LearnerSettings(kernel=RBF(1.0), label_rate=1.0, step=2.0)
    return PaperStrategy(settings=settings, buffer_size=None, scaled=True).new_state()


MAPS = {"default": default_state, "paper": paper_state}
EXPERT = {"default": Code(Kind.LINEAR, form=Form.FULL), "paper": Code(Kind.LEARNER, form=Form.FULL, size=20)}


def old_row(z):
    return dict(zip(OLD, map(float, z), strict=True))


def new_row(z):
    return dict(zip(NEW, map(float, z @ MIXING), strict=True))


def in_overlap(which, rows=40, seed=0):
    """A state whose two spaces have been there together for some rows; its map takes in each of them."""
    rng = np.random.default_rng(seed)
    state = MAPS[which]()
    state.exact = False
    state.open(state.begin(old_row(rng.normal(size=2))), 2, which == "default", False)
    state.add(0, EXPERT[which], 1.0, 1.0, [])
    if which == "default":
        state.set_weights([1.0])
    state.finish(1.0, 1.0)
    state.young_until = 0
    for _ in range(120):
        z = rng.normal(size=2)
        assert state.learn(old_row(z), 1.0 if z[0] > 0 else -1.0, 1.0) != 2
    z = rng.normal(size=2)
    present = state.begin(old_row(z) | new_row(z))
    own = set(state.space(0)[0])
    state.open([one for one in present if one not in own], 3, which == "default", False)
    state.begin_map(0)
    state.add(1, EXPERT[which], 1e-2, 1e-3, [])
    state.finish(1.0, 1.0)
    for _ in range(rows):
        z = rng.normal(size=2)
        state.learn(old_row(z) | new_row(z), 1.0 if z[0] > 0 else -1.0, 1.0)
    return state, rng


def right(state, rng, count=200):
    found = []
    for _ in range(count):
        z = rng.normal(size=2)
        score = state.predict(new_row(z))
        assert np.isfinite(score)
        found.append((score > 0) == (z[0] > 0))
    return np.mean(found)


@pytest.mark.parametrize("which", MAPS)
def test_it_rests_on_every_row_with_both_spaces(which):
    state, _ = in_overlap(which, rows=37)
    new, old, rows, unexplained, *_ = state.map(0)
    assert (new, old, rows) == (3, 2, 38)
    assert 0.0 <= unexplained <= 1.0


@pytest.mark.parametrize("which", MAPS)
def test_a_linear_relation_is_recovered(which):
    """Once the old features are gone, the old expert goes on as before."""
    state, rng = in_overlap(which)
    before = right_on_old(state, np.random.default_rng(5))
    state.advance([])
    assert right(state, np.random.default_rng(5)) > before - 0.08
    _, _, _, unexplained, form, *_ = state.map(0)
    assert form and unexplained < 0.6
    assert rng is not None


def right_on_old(state, rng, count=200):
    found = []
    for _ in range(count):
        z = rng.normal(size=2)
        found.append((state.predict(old_row(z)) > 0) == (z[0] > 0))
    return np.mean(found)


@pytest.mark.parametrize("which", MAPS)
@pytest.mark.parametrize("act", ["settle", "keep brief", "keep single", "drop"])
def test_whatever_becomes_of_a_map_predictions_stay_finite(which, act):
    state, _ = in_overlap(which)
    state.advance([])
    size = state.map(0)[7]
    if act == "settle":
        state.settle(0)
        assert not state.map(0)[6] and state.map(0)[7] < size
    elif act == "drop":
        state.drop_map(0)
        assert state.map(0) is None
    elif which == "default":
        state.keep_map_as(0, BRIEF if act == "keep brief" else SINGLE)
    floor = 0.75 if act != "drop" else 0.0
    assert right(state, np.random.default_rng(6)) >= floor
    rng = np.random.default_rng(7)
    for _ in range(50):
        z = rng.normal(size=2) * 10.0 ** rng.integers(-3, 6)
        state.learn(new_row(z), float(rng.choice([-1.0, 1.0, np.nan])), 1.0)
        assert np.isfinite(state.predict(new_row(z)))
    data = state.save(b"")
    assert native().State.load(data)[0].save(b"") == data


@pytest.mark.parametrize("which", MAPS)
@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_few_rows_with_both_are_enough_for_finite_predictions(which, rows):
    state, rng = in_overlap(which, rows=rows)
    state.advance([])
    right(state, rng, 30)
    for z in rng.normal(size=(30, 2)):
        state.learn(new_row(z), 1.0 if z[0] > 0 else -1.0, 1.0)
        assert np.isfinite(state.predict(new_row(1e90 * z)))


@pytest.mark.parametrize("kind", MODELS)
def test_extreme_values_in_an_overlap_leave_predictions_finite(kind):
    model = MODELS[kind]("64KiB")
    rng = np.random.default_rng(0)
    for t in range(200):
        z = rng.normal(size=2) * (1e60 if t % 10 == 0 else 1.0)
        x = (old_row(z) if t < 120 else {}) | (new_row(z) if t >= 80 else {})
        model.learn_one(x, int(z[0] > 0) if t % 3 else None)
        told = model.explain_one(x)
        assert all(np.isfinite(one["score"]) for one in told.values())


def test_a_map_that_was_measured_bad_is_told():
    """New features that say nothing of the old ones."""
    model = SF2EL(budget="64KiB")
    rng = np.random.default_rng(0)
    for t in range(160):
        a, b = rng.normal(size=2), rng.normal(size=3)
        x = dict(zip(OLD, map(float, a), strict=True)) if t < 120 else {}
        x |= dict(zip(NEW, map(float, b), strict=True)) if t >= 90 else {}
        model.learn_one(x, int(a[0] > 0) if t % 2 else None)
    assert model.events().total >= 3
    for x in (dict(zip(NEW, [1.0, 2.0, -1.0], strict=True)),):
        assert abs(sum(model.predict_proba_one(x).values()) - 1.0) < 1e-9
