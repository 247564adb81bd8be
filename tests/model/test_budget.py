"""A budget that changes while the model runs: smaller at once, larger without a change of predictions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from worlds import BUDGETED, STREAMS, labels_for, learned, swap, twin_of

from sf2el import SF2EL

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")


def sides_of_products(rows, dim=6, seed=0):
    """Rows whose class no plane tells, and the classes."""
    X = np.random.default_rng(seed).normal(size=(rows, dim))
    return X, [int(value) for value in X[:, 0] * X[:, 1] > 0]


@pytest.mark.parametrize("kind", BUDGETED)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_smaller_budget_holds_at_once_and_from_then_on(kind, stream):
    """At roomy sizes; the smallest budgets have their own tests."""
    rows = STREAMS[stream]()
    for first, then in [("256KiB", "32KiB"), ("64KiB", "12KiB"), ("16KiB", "64KiB")]:
        model = learned(BUDGETED[kind](first), rows[:90])
        model.set_budget(then)
        assert model.memory_usage() <= model.budget
        assert model.events().last[-1].kind != "new_budget" or model.events().total
        for x, y in labels_for(model, rows[90:]):
            model.learn_one(x, y)
            assert model.memory_usage() <= model.budget


@pytest.mark.parametrize("kind", BUDGETED)
def test_a_budget_set_before_the_first_row_is_kept(kind):
    model = BUDGETED[kind]("64KiB")
    for budget in (2000, 100_000, 8000):
        model.set_budget(budget)
        assert model.budget == budget and model.memory_usage() <= budget
    fresh = BUDGETED[kind](8000)
    for each in (model, fresh):
        learned(each, STREAMS["complete"]())
    assert model.memory_usage(detail=True) == fresh.memory_usage(detail=True)


@pytest.mark.parametrize("kind", BUDGETED)
def test_what_is_no_budget_is_refused_and_changes_nothing(kind):
    model = learned(BUDGETED[kind](), swap()[:90])
    before = model.to_bytes()
    for given in (0, -5, 1.5, True, None, "3 potatoes", "", "64 KiB KiB", "0KiB", 1 << 70, "9" * 400):
        with pytest.raises(ValueError) as refused:
            model.set_budget(given)
        assert "\n" not in str(refused.value)
        assert model.to_bytes() == before


@pytest.mark.parametrize("kind", ["bank", "regressor"])
def test_a_model_shrunk_to_a_budget_has_the_experts_of_a_new_one_of_that_budget(kind):
    """As long as labels have not spoken against some of them."""
    rows = [(x, None) for x, _ in STREAMS["complete"]()]
    for budget in (2500, 4096, 8192, 16384):
        shrunk, fresh = BUDGETED[kind]("256KiB"), BUDGETED[kind](budget)
        for each in (shrunk, fresh):
            learned(each, rows)
        shrunk.set_budget(budget)
        assert set(shrunk.risk()) == set(fresh.risk())
        ours, theirs = (each.memory_usage(detail=True)["learners"] for each in (shrunk, fresh))
        assert abs(ours - theirs) < 0.05 * theirs


def check_growing(kind, small):
    model = learned(BUDGETED[kind](small), STREAMS["complete"]())
    probes = [x for x, _ in STREAMS["complete"](seed=5)][:30]

    def said():
        if kind == "regressor":
            return np.array([model.predict_one(x) for x in probes])
        return np.array([list(model.predict_proba_one(x).values()) for x in probes])

    for budget in (small + 300, 2 * small, 64 * 1024, 1 << 20):
        before = said()
        names = set(model.risk())
        total = model.events().total
        model.set_budget(budget)
        told = model.events()
        assert names <= set(model.risk())
        assert not any(
            e.kind in ("moved", "expert_left") for e in told.last[len(told.last) - (told.total - total) :]
        )
        # A newcomer that has learned nothing may have a share of the weight: of a hundredth.
        np.testing.assert_allclose(said(), before, atol=0.03)


@pytest.mark.parametrize("kind", BUDGETED)
def test_more_bytes_change_no_prediction(kind):
    for small in (3000, 5000, 9000):
        check_growing(kind, small)


def test_a_shrink_says_how_far_functions_moved():
    model = learned(SF2EL(budget="256KiB"), STREAMS["complete"]())
    model.set_budget("32KiB")
    model.set_budget("32500")
    texts = [event.text for event in model.events().last if event.kind == "moved"]
    for event in (event for event in model.events().last if event.kind == "moved"):
        told = float(re.search(r"at most (\S+) in norm", event.text)[1])
        assert told >= event.fields["distance"] > 0.0
    assert texts


@pytest.mark.parametrize("rows", [10, 40, 300])
def test_a_budget_that_was_small_for_a_moment_costs_no_kind_of_expert(rows):
    X, y = sides_of_products(1500)
    names = list("abcdef")
    model, fresh = (SF2EL(budget="64KiB", seed=0) for _ in range(2))
    for each in (model, fresh):
        each.learn_many(X[:rows], y[:rows], features=names)
    kinds = set(model.risk())
    model.set_budget("2KiB")
    assert set(model.risk()) < kinds
    model.set_budget("64KiB")
    assert set(model.risk()) == kinds
    right = [
        np.mean(one.run_many(X[rows:], y[rows:], features=names).prediction[500:] == y[rows + 500 :])
        for one in (model, fresh)
    ]
    assert right[0] > right[1] - 0.03, right


def test_a_budget_that_was_small_in_an_overlap_costs_the_new_space_no_kind_of_expert():
    X, y = sides_of_products(600)
    Z = X @ np.random.default_rng(1).normal(size=(6, 6))
    old, new = list("abcdef"), list("uvwxyz")
    model = SF2EL(budget="64KiB", seed=0)
    model.learn_many(X[:300], y[:300], features=old)
    model.learn_many(np.hstack([X, Z])[300:310], y[300:310], features=old + new)
    kinds = set(model.risk())
    model.set_budget("2500")
    model.set_budget("64KiB")
    assert {name for name in kinds if "rbf" not in name} <= set(model.risk())
    for role in ("current", "incoming"):
        assert any("rbf" in name for name in model.risk() if name.startswith(role))
    model.learn_many(np.hstack([X, Z])[310:330], y[310:330], features=old + new)
    model.learn_many(Z[330:], y[330:], features=new)
    assert model.memory_usage() <= 64 * 1024
    assert any("rbf" in name for name in model.risk() if name.startswith("current"))
    assert twin_of(model).to_bytes() == model.to_bytes()


def test_a_fixed_buffer_has_no_budget():
    model = SF2EL.paper(buffer_size=5)
    assert model.budget is None
    before = model.to_bytes()
    with pytest.raises(ValueError, match="only one made with budget= has a budget"):
        model.set_budget("8KiB")
    assert model.to_bytes() == before


@pytest.mark.parametrize("kind", BUDGETED)
def test_the_peak_is_told_and_is_that_of_two_states(kind):
    model = learned(BUDGETED[kind](), swap())
    told = model.memory_overhead()
    assert model.memory_usage() // 2 < told["peak"] <= 2 * model.budget
    assert told["wrapper"] > 0


def test_the_parts_say_when_more_bytes_would_not_be_used():
    small, large = (learned(SF2EL(budget=b), STREAMS["complete"]()) for b in ("4KiB", "1MiB"))
    assert not small.memory_usage(detail=True).full_grown
    assert large.memory_usage(detail=True).full_grown
    assert "more bytes would not be used" in repr(large.memory_usage(detail=True))
    assert large.memory_usage() < large.budget // 2


@pytest.mark.parametrize("kind", ["bank", "regressor"])
def test_features_without_room_beside_the_current_ones_are_told_of_and_the_model_goes_on(kind):
    model = BUDGETED[kind](2048)
    for t in range(80):
        model.learn_one({"a": float(t % 5), "b": float(t % 3)}, t % 2)
    wide = {f"a very long name of a feature {j:04}": 1.0 for j in range(400)}
    for t in range(40):
        model.learn_one({"a": float(t % 5), "b": float(t % 3)} | wide, t % 2)
    assert model.memory_usage() <= 2048
    said = model.predict_one({"a": 1.0, "b": 1.0})
    assert said == said
