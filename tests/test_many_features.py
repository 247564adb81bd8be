"""Many features in few bytes: radial experts without slopes, and a vanished space that makes room."""

from __future__ import annotations

import numpy as np
import pytest
from test_budget import check_bytes

from sf2el import SF2EL
from sf2el.experts.entries import MANY_FEATURES
from sf2el.experts.posterior import PosteriorSettings
from sf2el.experts.seats import PosteriorSeat


@pytest.fixture(params=["native", "numpy"])
def backend(request):
    return request.param


OLD, NEW = [f"a{i}" for i in range(20)], [f"b{i}" for i in range(14)]


def rings(count, seed=0):
    """Return rows of 20 features whose label is how far out they lie, and 14 mixtures of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=count)
    X = rng.normal(size=(count, 20)) * np.where(y, 2.0, 1.0)[:, None]
    return X, X @ np.random.default_rng(99).normal(size=(20, 14)), [int(label) for label in y]


def changed(budget, backend=None, before=400, after=300, overlap=12):
    """Return a model whose features changed, and how often it was right after."""
    X, Z, y = rings(before + overlap + after)
    model = SF2EL(budget=budget, backend=backend)
    model.learn_many(X[:before], y[:before], features=OLD)
    both = slice(before, before + overlap)
    model.learn_many(np.hstack([X[both], Z[both]]), y[both], features=OLD + NEW)
    track = model.run_many(Z[before + overlap :], y[before + overlap :], features=NEW)
    return model, float(np.mean(track.prediction == np.array(y[before + overlap :])))


def radial(model):
    spaces = model._stage.spaces()
    return [seat for space in spaces for seat in space.seats if "rbf" in seat.name]


def test_radial_experts_of_many_features_have_no_slopes(backend):
    model, right = changed("4KiB", backend)
    assert len(NEW) >= MANY_FEATURES
    assert radial(model) and not any(seat.settings.slopes for seat in radial(model))
    check_bytes(model)
    assert right > 0.8  # a line tells nothing here
    assert all(seat.settings.slopes for seat in model._stage.current.seats if seat.name == "linear")


def test_with_few_features_they_have(backend):
    few = SF2EL(budget="3KiB", backend=backend)
    few.learn_many(np.random.default_rng(0).normal(size=(60, 5)), [0, 1] * 30, features=list("abcde"))
    assert radial(few) and all(seat.settings.slopes for seat in radial(few))


@pytest.mark.parametrize("precision", ["float64", "float32", "float16"])
def test_an_expert_without_slopes_takes_more_features_and_classes(precision, backend):
    rng = np.random.default_rng(1)
    settings = PosteriorSettings(size=10, gamma=1.0, keep_inverse=precision != "float16", slopes=False)
    seat = PosteriorSeat("wide rbf", settings, 15, precision, backend)
    seat.start_from([0.7])
    assert seat.constant == pytest.approx([0.7], rel=1e-3)
    for _ in range(30):
        x = rng.normal(size=15) / 4.0
        seat.posterior.learn(x, float(np.sign(x @ x - 1.0)))
    before, probe = seat.posterior.state(), rng.normal(size=15) / 4.0
    score = float(seat.posterior.predict(probe)[0])
    seat.widened(18)
    assert seat.posterior.state()["rows"].shape[1] == 18
    np.testing.assert_array_equal(seat.posterior.state()["coefficients"], before["coefficients"])
    assert float(seat.posterior.predict(np.append(probe, [0.0] * 3))[0]) == pytest.approx(score, abs=1e-6)
    seat.grown(3)
    assert np.allclose(seat.posterior.state()["coefficients"][1], -before["coefficients"][0])


@pytest.mark.parametrize("budget", ["4KiB", "8KiB", "16KiB"])
def test_a_model_without_slopes_is_saved_and_goes_on_to_the_bit(budget, backend):
    model, _ = changed(budget, backend)
    twin = SF2EL.from_bytes(model.to_bytes(), backend=backend)
    assert twin.to_bytes() == model.to_bytes()
    _, Z, y = rings(40, seed=5)
    for one in (model, twin):
        one.learn_many(Z, y, features=NEW)
    assert twin.to_bytes() == model.to_bytes()


# -- a vanished space that labels have spoken against


def replaced(budget, rows, backend=None):
    """Return a model whose new features tell what the old ones never did."""
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(600 + rows, 20)), rng.normal(size=(600 + rows, 16))
    y = [int(label) for label in np.concatenate([rng.random(600) < 0.5, Z[600:].sum(axis=1) > 0.0])]
    names = [f"c{i}" for i in range(16)]
    model = SF2EL(budget=budget, backend=backend)
    model.learn_many(X[:590], y[:590], features=OLD)
    model.learn_many(np.hstack([X, Z])[590:600], y[590:600], features=OLD + names)
    model.learn_many(Z[600:], y[600:], features=names)
    return model, X, Z, y, names


def test_it_takes_labels_since_the_change_not_before():
    model, *_ = replaced("4KiB", 19)
    assert model._stage.recovers and model._stage.weights.rounds < 20
    assert model._stage.past.seats[0].labels > 500


def test_a_vanished_space_that_tells_nothing_makes_room_for_the_current_one(backend):
    model, X, _, y, names = replaced("4KiB", 300, backend)
    texts = [event.text for event in model.events().last]
    assert any("spoken against the vanished space" in text for text in texts)
    assert model._stage.past is None and model._stage.psi is None and not model._stage.recovers
    assert radial(model)
    check_bytes(model)
    # Its features can come back: as any that are new.
    both = [*names, *OLD]
    rng = np.random.default_rng(0)
    model.learn_many(np.hstack([rng.normal(size=(20, 16)), X[:20]]), y[:20], features=both)
    model.learn_many(X[20:60], y[20:60], features=OLD)
    assert set(model._stage.current.names) == set(OLD)
    check_bytes(model)


def test_where_there_are_bytes_for_both_it_stays():
    model, *_ = replaced("128KiB", 800)
    assert model._stage.recovers


def test_letting_it_go_is_the_same_row_by_row_and_in_tables():
    model, X, Z, y, names = replaced("4KiB", 300)
    loop = SF2EL(budget="4KiB")
    for t, label in enumerate(y):
        old = dict(zip(OLD, X[t].tolist(), strict=True)) if t < 600 else {}
        new = dict(zip(names, Z[t].tolist(), strict=True)) if t >= 590 else {}
        loop.learn_one(old | new, label)
    assert loop.to_bytes() == model.to_bytes()
    assert any("spoken against" in event.text for event in model.events().last)


# -- a space that starts alone


def test_a_space_that_starts_alone_has_radial_experts_again(backend):
    """There was no room for a map, nor for radial experts beside what it would have taken."""
    model = SF2EL(budget="4KiB", backend=backend)
    rng = np.random.default_rng(0)
    wide, next_ones = [f"a{i}" for i in range(36)], [f"b{i}" for i in range(25)]
    X, Z = rng.normal(size=(100, 36)), rng.normal(size=(100, 25))
    y = [int(label) for label in rng.integers(0, 2, size=100)]
    model.learn_many(X[:50], y[:50], features=wide)
    assert radial(model)
    model.learn_many(np.hstack([X, Z])[50:60], y[50:60], features=wide + next_ones)
    assert model._stage.overlap is None and radial(model)  # nothing left for a map that has no room anyway
    model.learn_many(Z[60:], y[60:], features=next_ones)
    assert not model._stage.recovers and [seat.name for seat in radial(model)] == ["wide rbf"]
    check_bytes(model)


def test_without_an_overlap_the_new_space_comes_before_the_vanished_one():
    model = SF2EL(budget="3KiB")
    rng = np.random.default_rng(0)
    y = [int(label) for label in rng.integers(0, 2, size=60)]
    model.learn_many(rng.normal(size=(60, 20)), y, features=OLD)
    model.learn_many(rng.normal(size=(60, 14)), y, features=NEW)
    assert any("rbf" in seat.name for seat in model._stage.current.seats)
    check_bytes(model)


@pytest.mark.parametrize(
    ("dims", "budget"), [((30, 30, 30), 5000), ((20, 14, 20), 3800), ((10, 10, 10), 2400)]
)
def test_a_third_space_is_recovered_in_few_bytes(dims, budget):
    """The map to come has the room of the vanished space and of its map, which then go."""
    rng = np.random.default_rng(1)
    sources = rng.normal(size=(660, 6))
    y = [int(value > 0.0) for value in sources[:, 0]]
    spaces = [sources @ rng.normal(size=(6, width)) for width in dims]
    names = [[f"{letter}{i}" for i in range(width)] for letter, width in zip("abc", dims, strict=True)]
    model, at = SF2EL(budget=budget), 0
    for present, rows in (([0], 200), ([0, 1], 12), ([1], 200), ([1, 2], 12), ([2], 200)):
        table = np.hstack([spaces[k] for k in present])[at : at + rows]
        features = [name for k in present for name in names[k]]
        last = present == [2]
        labels = [None] * rows if last else y[at : at + rows]
        track = model.run_many(table, labels, features=features)
        check_bytes(model)
        at += rows
    assert model._stage.recovers
    assert np.mean(track.prediction == np.array(y[at - 200 : at])) > 0.85
