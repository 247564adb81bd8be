"""Labels that come late: only the loss step is taken, in the space of the row's own features."""

from __future__ import annotations

import numpy as np
import pytest
from scenarios import SCENARIOS

from sf2el import SF2EL, SF2ELRegressor

BACKENDS = ("native", "numpy")
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
STREAMS = ("clean swap", "shared features", "flicker of 5 %", "return of an old space")


def default(backend):
    return SF2EL(budget="16KiB", backend=backend)


def paper(backend):
    return SF2EL.paper(buffer_size=12, scaled=True, on_skip="project", backend=backend)


def plain_paper(backend):
    return SF2EL.paper(buffer_size=12, train_in_overlap=True, backend=backend)


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
    told = [(event.row, event.certain, event.text.split(" ")[0]) for event in model.events().last]
    return [event for event in told if event[2] not in ("experts", "experts:", "a")]


def rows_of(name, seed=0, length=110):
    stream = BY_NAME[name].stream(seed, length)
    return [(stream.row(t), label) for t, label in enumerate(stream.labels())]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_delayed_stream_and_an_undelayed_one_agree_on_everything_but_the_losses(name, make, backend):
    rows = rows_of(name)
    now, late = (feed(MODELS[make](backend), rows, delay) for delay in (0, 7))
    assert now._rows_seen == late._rows_seen
    assert now._tracker == late._tracker
    assert now._labels.seen == late._labels.seen and now._labels.counts == late._labels.counts
    assert kinds_of(now) == kinds_of(late)
    spaces = list(zip(now._stage.spaces(), late._stage.spaces(), strict=True))
    assert len(spaces) == 2
    for a, b in spaces:
        assert a.names == b.names
        if a.scaler is not None:
            assert np.array_equal(a.scaler.state(), b.scaler.state())
        if a.moments is not None:
            assert np.array_equal(a.moments.state(), b.moments.state())
        if make != "default":
            ours, theirs = (space.seats[0].core.state() for space in (a, b))
            for key in ("rows", "weights", "decay", "seen", "clock", "rng"):
                assert np.array_equal(ours[key], theirs[key]), key
            if (
                name == "clean swap"
            ):  # elsewhere a label may come to a learner that did not play when its row came
                assert ours["labels"] == theirs["labels"]
    for part in ("core",) if make != "default" else ("joint", "affine"):
        ours, theirs = (getattr(model._stage.psi, part) for model in (now, late))
        if part == "affine":
            assert np.array_equal(ours.matrix, theirs.matrix) and np.array_equal(ours.center, theirs.center)
        else:
            assert np.array_equal(ours.state(), theirs.state())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", MODELS)
def test_a_late_label_moves_no_counter_scaler_reservoir_or_period(make, backend):
    rows = rows_of("clean swap", length=60)
    model = feed(MODELS[make](backend), rows, 0)
    before = model.from_bytes(model.to_bytes())
    score = model.explain_one(rows[-1][0])
    for x, _ in rows[-3:]:
        model.learn_one(x, "up", late=True)
    assert model.explain_one(rows[-1][0]) != score
    assert model._rows_seen == before._rows_seen and model._tracker == before._tracker
    assert model.events() == before.events()
    for a, b in zip(model._stage.spaces(), before._stage.spaces(), strict=True):
        assert np.array_equal(a.scaler.state(), b.scaler.state()) if a.scaler is not None else True
        assert np.array_equal(a.moments.state(), b.moments.state()) if a.moments is not None else True


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("name", ["clean swap", "shared features", "zero overlap"])
def test_the_late_label_of_a_row_before_the_swap_reaches_the_old_experts_only(name, make):
    rows = rows_of(name)
    model = feed(MODELS[make]("native"), rows, 0)
    old, new = rows[20][0], rows[-1][0]
    states = [[_function(seat, space) for seat in space.seats] for space in _spaces(model)]
    for _ in range(3):
        model.learn_one(old, "up", late=True)
    after = [[_function(seat, space) for seat in space.seats] for space in _spaces(model)]
    assert all(np.any(a != b) for a, b in zip(states[0], after[0], strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(states[1], after[1], strict=True))
    assert model.predict_one(new) in ("up", "down")


def _spaces(model):
    return model._stage.past, model._stage.current


def _function(seat, space):
    """An expert's scores at a few rows."""
    rng = np.random.default_rng(0)
    bank, scores = space.bank, np.empty(len(space.seats))
    found = []
    for row in rng.normal(size=(4, space.dim)) / np.sqrt(space.dim):
        bank.predict_into(np.ascontiguousarray(row), scores)
        found.append(scores[space.seats.index(seat)])
    return np.array(found)


@pytest.mark.parametrize("make", MODELS)
def test_a_late_label_of_a_space_long_gone_is_told_and_changes_nothing_else(make):
    rows = rows_of("several cycles", length=60)
    model = feed(MODELS[make]("native"), rows, 0)
    score, total = model.explain_one(rows[-1][0]), model.events().total
    model.learn_one(rows[10][0], "up", late=True)
    assert model.events().total == total + 1
    assert model.events().last[-1].text == "a late label belongs to no space in force"
    assert model.explain_one(rows[-1][0]) == score


@pytest.mark.parametrize("backend", BACKENDS)
def test_late_labels_teach(backend):
    """All labels come late, and still nearly as much is learned."""
    rows = rows_of("clean swap", length=150)
    now, late = (feed(default(backend), rows, delay) for delay in (0, 10))
    truth = BY_NAME["clean swap"].stream(0, 150).truth
    right = [
        np.mean([m.predict_one(x) == truth[t] for t, (x, _) in enumerate(rows) if t >= 150])
        for m in (now, late)
    ]
    assert right[1] > right[0] - 0.05 > 0.7


def test_late_labels_may_be_of_a_new_class():
    model = feed(default("native"), rows_of("clean swap"), 0)
    x = {"s1_0": 1.0, "s1_1": 2.0}
    model.learn_one(x)
    model.learn_one(x, "sideways", late=True)
    assert set(model.predict_proba_one(x)) == {"up", "down", "sideways"}
    assert any("a class more: 3 labels" in event.text for event in model.events().last)


@pytest.mark.parametrize("make", [*MODELS, "regressor"])
def test_wrong_late_calls_change_nothing(make):
    fresh = SF2ELRegressor() if make == "regressor" else MODELS[make]("native")
    good = 1.0 if make == "regressor" else "up"
    with pytest.raises(ValueError, match="learn the row first"):
        fresh.learn_one({"a": 1.0}, good, late=True)
    fresh.learn_one({"a": 1.0, "b": 2.0}, good)
    before = fresh.to_bytes()
    for x, y in [({"a": 1.0}, None), ({"a": float("inf")}, good), ({}, good), ({"a": 1.0}, 1.5j)]:
        with pytest.raises(ValueError):
            fresh.learn_one(x, y, late=True)
        assert fresh.to_bytes() == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_regressor_takes_late_targets(backend):
    rng = np.random.default_rng(0)
    rows = [({"a": float(a), "b": float(b)}, float(3 * a - b + 10)) for a, b in rng.normal(size=(80, 2))]
    now, late = (feed(SF2ELRegressor(backend=backend), rows, delay) for delay in (0, 5))
    assert now._targets.count == late._targets.count
    assert now._targets.mean == pytest.approx(late._targets.mean)
    assert late.predict_one({"a": 1.0, "b": 0.0}) == pytest.approx(13.0, abs=0.3)


@pytest.mark.parametrize("make", [lambda: SF2EL(budget="16KiB"), lambda: SF2ELRegressor(budget="16KiB")])
def test_a_late_label_of_an_unknown_row_changes_nothing_but_the_log(make):
    model = make()
    for t in range(60):
        model.learn_one({"a": float(t % 5), "b": float(t % 3)}, t % 2)
    before, stage = model.predict_one({"a": 1.0, "b": 2.0}), state(model)
    model.learn_one({"elsewhere": 1.0}, 1_000_000, late=True)
    assert model.events().last[-1].text == "a late label belongs to no space in force"
    assert model.predict_one({"a": 1.0, "b": 2.0}) == before
    assert state(model) == stage


def state(model):
    """Return what a model knows of labels and weights."""
    labels = vars(model._targets) if isinstance(model, SF2ELRegressor) else model._labels.state()
    return labels, model.weights(detail=True)


def test_a_late_label_that_fails_is_not_counted(monkeypatch):
    model = SF2EL(budget="16KiB")
    for t in range(60):
        model.learn_one({"a": float(t % 5)}, t % 2)

    def fail(self, observed, y, weight):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(type(model._stage), "learn_late", fail)
    for label in (1, 7):
        before = model.to_bytes()
        with pytest.raises(RuntimeError):
            model.learn_one({"a": 1.0}, label, late=True)
        assert model.to_bytes() == before
