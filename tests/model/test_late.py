"""Labels that come late: only the loss step is taken, in the space of the row's own features."""

from __future__ import annotations

import numpy as np
import pytest
from scenarios import SCENARIOS

from sf2el import SF2EL, SF2ELRegressor

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
STREAMS = ("clean swap", "shared features", "flicker of 5 %", "return of an old space")


def default():
    return SF2EL(budget="64KiB")


def paper():
    return SF2EL.paper(buffer_size=12, scaled=True, on_skip="project")


def plain_paper():
    return SF2EL.paper(buffer_size=12, train_in_overlap=True)


MODELS = {make.__name__: make for make in (default, paper, plain_paper)}


def feed(model, rows, delay):
    """Learn rows; with a delay every label comes so many rows later."""
    waiting = []
    for t, (x, y) in enumerate(rows):
        model.learn_one(x, None if delay else y)
        if delay and y is not None:
            waiting.append((t + delay, x, y))
        while waiting and waiting[0][0] <= t:
            _, row, label = waiting.pop(0)
            model.learn_one(row, label, late=True)
    for _, row, label in waiting:
        model.learn_one(row, label, late=True)
    return model


def kinds_of(model):
    """What happened to features; what the budget made of it depends on what was learned."""
    spaces = ("first_space", "opened", "joined", "swapped", "grown", "returned", "closed", "first_gap")
    return [(event.row, event.certain, event.kind) for event in model.events().last if event.kind in spaces]


def rows_of(name, seed=0, length=110):
    stream = BY_NAME[name].stream(seed, length)
    return [(stream.row(t), label) for t, label in enumerate(stream.labels())]


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_delayed_stream_and_an_undelayed_one_agree_on_everything_but_the_losses(name, make):
    rows = rows_of(name)
    now, late = (feed(MODELS[make](), rows, delay) for delay in (0, 7))
    assert now.rows_seen == late.rows_seen == len(rows)
    if not any(event.kind == "too_late" for event in late.events().last):  # these would fill the log
        assert kinds_of(now) == kinds_of(late)
    assert sorted(now.labels) == sorted(late.labels)
    assert {name.split(" ")[0] for name in now.risk()} == {name.split(" ")[0] for name in late.risk()}
    ours, theirs = (model.memory_usage(detail=True) for model in (now, late))
    assert ours["names"] == theirs["names"] and ours["scalers"] == theirs["scalers"]


@pytest.mark.parametrize("make", MODELS)
def test_a_late_label_moves_no_counter_and_no_period_but_teaches(make):
    rows = rows_of("clean swap", length=60)
    model = feed(MODELS[make](), rows, 0)
    rows_seen, events, parts = model.rows_seen, model.events(), model.memory_usage(detail=True)
    score = model.explain_one(rows[-1][0])
    for x, _ in rows[-3:]:
        model.learn_one(x, "up", late=True)
    assert model.explain_one(rows[-1][0]) != score
    assert model.rows_seen == rows_seen and model.events() == events
    assert model.memory_usage(detail=True) == parts


@pytest.mark.parametrize("make", MODELS)
def test_late_labels_leave_scaling_and_maps_alone(make):
    """A row that comes late says nothing of what features are like: what is recovered stays what it was."""
    rows = rows_of("clean swap")
    model = feed(MODELS[make](), rows, 0)
    quiet = model.from_bytes(model.to_bytes())
    for x, _ in rows[20:26]:
        model.learn_one({name: 50.0 * value for name, value in x.items()}, "up", late=True)
    for x, _ in rows[-5:]:
        model.learn_one(x)
        quiet.learn_one(x)
    assert kinds_of(model) == kinds_of(quiet)
    assert model.rows_seen == quiet.rows_seen


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("name", ["clean swap", "zero overlap"])
def test_the_late_label_of_a_row_before_the_swap_reaches_the_old_experts_only(name, make):
    rows = rows_of(name)
    model = feed(MODELS[make](), rows, 0)
    old, new = rows[20][0], rows[-1][0]
    before = model.explain_one(new)
    for _ in range(3):
        model.learn_one(old, "up", late=True)
    after = model.explain_one(new)
    for expert in before:
        if expert.startswith("current"):
            assert before[expert]["score"] == after[expert]["score"]
    recovered = [expert for expert in before if expert.startswith("recovered")]
    if recovered:
        assert any(before[expert]["score"] != after[expert]["score"] for expert in recovered)
    assert model.predict_one(new) in ("up", "down")


def test_a_late_label_of_a_space_long_gone_is_told_and_changes_nothing_else():
    rows = rows_of("several cycles", length=60)
    model = feed(SF2EL(budget="2KiB"), rows, 0)
    score, total = model.explain_one(rows[-1][0]), model.events().total
    model.learn_one(rows[10][0], "up", late=True)
    assert model.events().total == total + 1
    assert model.events().last[-1].text == "a late label belongs to no space in use"
    assert model.explain_one(rows[-1][0]) == score


def test_late_labels_teach():
    """All labels come late, and still nearly as much is learned."""
    rows = rows_of("clean swap", length=150)
    now, late = (feed(default(), rows, delay) for delay in (0, 10))
    truth = BY_NAME["clean swap"].stream(0, 150).truth
    right = [
        np.mean([m.predict_one(x) == truth[t] for t, (x, _) in enumerate(rows) if t >= 150])
        for m in (now, late)
    ]
    assert right[1] > right[0] - 0.05 > 0.7


def test_late_labels_may_be_of_a_new_class():
    model = feed(default(), rows_of("clean swap"), 0)
    x = {"s1_0": 1.0, "s1_1": 2.0}
    model.learn_one(x)
    model.learn_one(x, "sideways", late=True)
    assert set(model.predict_proba_one(x)) == {"up", "down", "sideways"}
    assert any(event.kind == "new_class" for event in model.events().last)


@pytest.mark.parametrize("make", [*MODELS, "regressor"])
def test_wrong_late_calls_change_nothing(make):
    fresh = SF2ELRegressor() if make == "regressor" else MODELS[make]()
    good = 1.0 if make == "regressor" else "up"
    with pytest.raises(ValueError, match="learn the row first"):
        fresh.learn_one({"a": 1.0}, good, late=True)
    fresh.learn_one({"a": 1.0, "b": 2.0}, good)
    before = fresh.to_bytes()
    for x, y in [({"a": 1.0}, None), ({"a": float("inf")}, good), ({}, good), ({"a": 1.0}, 1.5j)]:
        with pytest.raises(ValueError):
            fresh.learn_one(x, y, late=True)
        assert fresh.to_bytes() == before


@pytest.mark.parametrize("make", [lambda: SF2EL(budget="16KiB"), lambda: SF2ELRegressor(budget="16KiB")])
def test_a_late_label_of_an_unknown_row_changes_nothing_but_the_log(make):
    model = make()
    for t in range(60):
        model.learn_one({"a": float(t % 5), "b": float(t % 3)}, t % 2)
    before, stage = model.predict_one({"a": 1.0, "b": 2.0}), state(model)
    model.learn_one({"elsewhere": 1.0}, 1_000_000, late=True)
    assert model.events().last[-1].text == "a late label belongs to no space in use"
    assert model.predict_one({"a": 1.0, "b": 2.0}) == before
    assert state(model) == stage


def state(model):
    """Return what a model knows of labels and weights."""
    labels = [] if isinstance(model, SF2ELRegressor) else model.labels
    return labels, model.weights(detail=True), model.risk(), model.memory_usage(detail=True)
