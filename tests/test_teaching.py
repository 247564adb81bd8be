"""What the experts of a space that opens are taught by those of the current one."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el import SF2EL, SF2ELRegressor
from sf2el.experts import teaching
from sf2el.memory.giving_way import linear_of
from sf2el.model import bank as recipe

OLD, NEW = ("a", "b"), ("c", "d")


def stream(seed: int, *, overlap: int, later: int = 300, before: int = 300, rate: float = 0.2):
    """One class lies on one side of the old features, and far out in the new ones, on any side.

    No linear map can tell that. Labels come before the overlap only.
    """
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], size=before + overlap + later)
    old_rows = 1.5 * y[:, None] + rng.normal(size=(len(y), 2))
    turn, far = rng.uniform(0.0, 2.0 * np.pi, size=len(y)), np.where(y > 0.0, 3.0, 1.0)
    new_rows = (far * np.array([np.cos(turn), np.sin(turn)])).T + 0.5 * rng.normal(size=(len(y), 2))
    for t, (old, new, label) in enumerate(zip(old_rows, new_rows, y, strict=True)):
        row = dict(zip(OLD, old.tolist(), strict=True)) if t < before + overlap else {}
        if t >= before:
            row |= dict(zip(NEW, new.tolist(), strict=True))
        yield row, label, t < before and rng.random() < rate


def after_the_change(model, *, overlap: int, seed: int) -> float:
    """Return how often a model is right once only new features are read, without another label."""
    right = []
    for t, (x, y, known) in enumerate(stream(seed, overlap=overlap)):
        if t >= 300 + overlap:
            right.append(model.predict_one(x) == int(y))
        model.learn_one(x, int(y) if known else None)
    return float(np.mean(right))


def test_new_features_are_learned_without_a_label_of_their_own(monkeypatch):
    found = [after_the_change(SF2EL(budget="16KiB"), overlap=60, seed=s) for s in range(3)]
    monkeypatch.setattr(recipe, "taught", lambda space, outputs, y, weights, told: (y, weights))
    alone = [after_the_change(SF2EL(budget="16KiB"), overlap=60, seed=s) for s in range(3)]
    assert np.mean(alone) < 0.6 and np.mean(found) > 0.7


@pytest.mark.parametrize("overlap", [4, 30, 90])
@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_a_table_is_taught_as_its_rows_are_to_the_bit(overlap, kind):
    def told(y, known, t):
        if not known and not (t >= 300 and t % 7 == 0):
            return None
        return float(y) if kind == "numbers" else int(y) + (t % 3 == 0 and kind == "three")

    new = SF2ELRegressor if kind == "numbers" else SF2EL
    one, many = (new(budget="32KiB", seed=1) for _ in range(2))
    rows = [(x, told(y, known, t)) for t, (x, y, known) in enumerate(stream(3, overlap=overlap, later=20))]
    for x, y in rows:
        one.learn_one(x, y)
    parts = [rows[:300], rows[300 : 300 + overlap], rows[300 + overlap :]]
    for part in parts:
        names = list(part[0][0])
        many.learn_many([[x[n] for n in names] for x, _ in part], [y for _, y in part], features=names)
    assert one.to_bytes() == many.to_bytes()
    assert linear_of(one._stage.current).labels > 0


def test_teaching_ends_once_new_experts_have_labels_enough():
    model = SF2EL(budget="32KiB")
    counts = []
    for t, (x, y, known) in enumerate(stream(0, overlap=120, later=0, rate=0.5)):
        model.learn_one(x, int(y) if known else None)
        if t >= 305:
            counts.append(linear_of(model._stage.upcoming).labels)
    assert counts[0] < teaching.MOST_TAUGHT == counts[-1]
    model.learn_one(x, 1)  # one that is told counts all the same
    assert linear_of(model._stage.upcoming).labels == teaching.MOST_TAUGHT + 1


def test_who_knows_nothing_teaches_nothing():
    for model in (SF2EL(budget="32KiB", classes=[-1, 1]), SF2ELRegressor(budget="32KiB")):
        for x, _, _ in stream(0, overlap=20, later=0):
            model.learn_one(x)
        assert linear_of(model._stage.upcoming).labels == 0


def test_features_that_are_back_are_not_taught():
    model = SF2EL(budget="32KiB")
    rows = list(stream(0, overlap=20, later=60))
    for x, y, known in rows:
        model.learn_one(x, int(y) if known else None)
    past = linear_of(model._stage.past)
    labels = past.labels
    both = rows[310][0]
    for _ in range(6):
        model.learn_one(both)
    assert model._stage.upcoming is model._stage.past
    assert linear_of(model._stage.past).labels == labels


def test_the_papers_learner_is_told_labels_only():
    model = SF2EL.paper(buffer_size=20, label_rate=0.2, train_in_overlap=True)
    for x, y, known in stream(0, overlap=20, later=0):
        model.learn_one(x, int(y) if known else None)
    assert model._stage.current.seats[0].core.predict(np.ones(2)) != 0.0
    assert model._stage.upcoming.seats[0].core.predict(np.ones(2)) == 0.0


def test_what_is_known_of_the_labels_alone_is_not_taught():
    told = [90, 10]
    odds = np.log((90 + 3) / (10 + 3))
    assert teaching.opinion(odds, told)[1] < teaching.LEAST_SURE
    assert teaching.opinion([93 / 109, 13 / 109, 3 / 109], [90, 10, 0])[1] < teaching.LEAST_SURE
    assert teaching.opinion(-1.0, told) == teaching.opinion(-1.0, [50, 50])  # the rarer one is as good as any


def test_opinions_count_by_how_sure_they_are():
    odds = np.array([-3.0, -0.1, 0.2, 5.0])
    counted = np.array([teaching.opinion(z)[1] for z in odds])
    np.testing.assert_allclose(counted, np.abs(np.tanh(odds / 2.0)), atol=0.1)
    assert [teaching.opinion(z)[0] for z in odds] == [-1.0, -1.0, 1.0, 1.0]
    assert teaching.opinion([1 / 3, 1 / 3, 1 / 3])[1] == pytest.approx(0.0)
    assert teaching.opinion([0.0, 0.0, 1.0]) == (2.0, pytest.approx(1.0))
