"""Rows that wait for their new features to open a space: each has its room, and no byte above the budget."""

from __future__ import annotations

import numpy as np
import pytest
from test_budget import check_bytes, make
from test_model import state_of

from sf2el import SF2EL
from sf2el.features.attendance import FORGOTTEN, Mark, Strangers
from sf2el.features.spaces import Tracker
from sf2el.memory.budget import newcomer_room, waiting_room
from sf2el.memory.giving_way import kernels_of
from sf2el.storage.persist import opened

OLD, NEW = [f"a{i}" for i in range(15)], [f"b{i}" for i in range(10)]
BOTH = OLD + NEW
OVERLAP = 10


def stream(count, seed=0):
    """Rows of 25 features from 5, and labels of a third of them."""
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(count, 5))
    rows = source @ rng.normal(size=(5, len(BOTH))) + 0.1 * rng.normal(size=(count, len(BOTH)))
    labels = [int(row[0] * row[1] > 0) if rng.random() < 0.34 else None for row in source]
    return [dict(zip(BOTH, row, strict=True)) for row in rows.tolist()], labels


def only(names, row):
    return {name: row[name] for name in names}


def begun(kind, budget, rows=120, **more):
    """A model of the old features alone, and the rows that come."""
    model = make(kind, budget, seed=3, **more)
    told, labels = stream(rows + 60)
    for row, label in zip(told[:rows], labels[:rows], strict=True):
        model.learn_one(only(OLD, row), label)
    return model, list(zip(told[rows:], labels[rows:], strict=True))


@pytest.mark.parametrize(
    ("kind", "budget"),
    [*(("bank", f"{size}KiB") for size in (3, 4, 8, 16, 64)), ("paper", "4KiB"), ("paper", "8KiB")],
)
def test_a_map_rests_on_every_row_of_the_overlap(kind, budget):
    model, coming = begun(kind, budget)
    waited = 0
    for t, (row, label) in enumerate(coming[: OVERLAP + 5]):
        model.learn_one(row if t < OVERLAP else only(NEW, row), label)
        check_bytes(model)
        waited = max(waited, model.memory_usage(detail=True)["newcomers"])
    (swap,) = [event.text for event in model.events().last if event.text.startswith("swap")]
    assert swap.endswith("a map from 10 rows")
    room = newcomer_room(model._budget)
    assert (waited > room) == (budget in ("3KiB", "4KiB", "8KiB"))
    assert model.memory_usage(detail=True)["newcomers"] == room


@pytest.mark.parametrize("kind", ["bank", "paper"])
def test_experts_give_way_and_have_their_room_back_when_nothing_opens(kind):
    def sizes(model):
        return [seat.nbytes for seat in model._stage.current.seats]

    shrunk = 0
    for budget in range(5_000, 12_000, 500):
        model, coming = begun(kind, budget)
        before, held = sizes(model), []
        for t, (row, label) in enumerate(coming[:24]):
            model.learn_one(row if t in (0, 1) else only(OLD, row), label)
            check_bytes(model)
            held.append(sizes(model))
        assert not model._pending and len(held[1]) == len(before)
        if held[1] != before:
            assert sum(held[1]) < sum(before)
            shrunk += 1
        # They may have gone to another form for more rows, and stay there as long as they have them.
        assert sizes(model) == before or sum(sizes(model)) > sum(held[1])
    assert shrunk


def test_a_stray_wide_row_in_a_large_budget_changes_no_bit_of_the_experts():
    model, coming = begun("bank", "64KiB")
    twin = SF2EL.from_bytes(model.to_bytes())
    for t, (row, label) in enumerate(coming[:24]):
        model.learn_one(row if t in (0, 1) else only(OLD, row), label)
        twin.learn_one(only(OLD, row), label)
        mine, its = (opened(one.to_bytes())[1] for one in (model, twin))
        assert all(np.array_equal(mine[name], its[name]) for name in its)
        assert (set(mine) - set(its) == set()) == (t > FORGOTTEN)
    assert state_of(model) == state_of(twin)


@pytest.mark.parametrize("budget", [2048, 4096, 8192])
def test_a_late_feature_has_the_room_there_always_is(budget):
    """A feature or three that come late are no beginning of a space, and nobody gives way to their rows."""
    for width in (1, 3):
        model, coming = begun("bank", budget)
        before = [seat.nbytes for seat in model._stage.current.seats]
        for row, label in coming[:2]:
            model.learn_one(only(OLD + NEW[:width], row), label)
            assert model.memory_usage(detail=True)["newcomers"] == newcomer_room(budget)
            assert [seat.nbytes for seat in model._stage.current.seats] == before


def test_what_is_many():
    tracker = Tracker(tuple("abcdefgh"), strangers=Strangers(marks=dict.fromkeys("xyz", Mark())))
    assert tracker.few() == 2
    assert tracker.brings_many("axyz") and not tracker.brings_many("axy")
    assert Tracker(("a",)).few() == 1


def test_a_row_without_new_features_waits_as_a_blank():
    """It has nothing to tell to a space that opens, but a change is told by how many rows ago it began."""
    model, coming = begun("bank", "4KiB")
    rows = [only(BOTH if t != 1 else OLD, row) for t, (row, _) in enumerate(coming[:4])]
    for row in rows[:3]:
        model.learn_one(row)
    assert [len(row.observed) for row in model._pending] == [25, 0, 25]
    model.learn_one(rows[3])
    assert model._stage.overlap.rows == 3
    (event,) = [event for event in model.events().last if event.text.startswith("overlap")]
    assert (event.row, event.certain) == (120, 123)


def test_the_rows_that_outlast_a_wide_one_have_the_usual_room():
    model, coming = begun("bank", "4KiB")
    for names in (BOTH, OLD + NEW[:3], OLD + NEW[3:6]):
        model.learn_one(only(names, coming[0][0]))
        assert model._borrows()
    model.learn_one(only(OLD + NEW[6:8], coming[0][0]))  # four rows are more than an eighth of the budget
    assert len(model._pending) == 1 and not model._borrows()
    assert state_of(SF2EL.from_bytes(model.to_bytes())) == state_of(model)


@pytest.mark.parametrize("kind", ["bank", "paper"])
@pytest.mark.parametrize("budget", [3000, 4096, 6000, 9000])
@pytest.mark.parametrize("opens", [True, False])
def test_a_model_saved_while_rows_wait_goes_on_bit_for_bit(kind, budget, opens):
    for saved in (1, 2):
        model, coming = begun(kind, budget)
        for row, label in coming[:saved]:
            model.learn_one(row, label)
        assert model._pending
        twin = SF2EL.from_bytes(model.to_bytes())
        for row, label in coming[saved:20]:
            for one in (model, twin):
                one.learn_one(row if opens else only(OLD, row), label)
            assert state_of(twin) == state_of(model)


@pytest.mark.parametrize("kind", ["bank", "paper"])
@pytest.mark.parametrize("budget", [4096, 9000])
def test_many_rows_are_the_loop_and_are_predicted_before_anybody_gives_way(kind, budget):
    model, coming = begun(kind, budget)
    twin = SF2EL.from_bytes(model.to_bytes())
    rows = np.array([[row[name] for name in BOTH] for row, _ in coming[:OVERLAP]])
    labels = [label for _, label in coming[:OVERLAP]]
    track = twin.run_many(rows, labels, features=BOTH)
    for t, (row, label) in enumerate(coming[:OVERLAP]):
        chances = model.predict_proba_one(row)
        assert chances[track.prediction[t]] == pytest.approx(track.probability[t], abs=1e-12)
        model.learn_one(row, label)
    assert state_of(twin) == state_of(model)


@pytest.mark.parametrize("kind", ["bank", "paper"])
def test_the_budget_changes_while_rows_wait(kind):
    refused = kept = 0
    for smaller in (900, 1500, 2200, 2600, 3000, 3500, 4000, 4096, 5000, 20_000):
        model, coming = begun(kind, 4096)
        for row, label in coming[:2]:
            model.learn_one(row, label)
        before = state_of(model)
        try:
            model.set_budget(smaller)
        except ValueError as error:
            assert "at least" in str(error) and state_of(model) == before
            refused += 1
            continue
        check_bytes(model)
        kept += len(model._pending) == 2
        twin = SF2EL.from_bytes(model.to_bytes())
        for row, label in coming[2:OVERLAP]:
            try:
                model.learn_one(row, label)
            except ValueError as error:  # no room for the second space
                assert "at least" in str(error)
                break
            twin.learn_one(row, label)
            check_bytes(model)
            assert state_of(twin) == state_of(model)
    assert refused and kept >= 4


def test_a_class_more_while_rows_wait_is_within_the_budget():
    for budget in range(4_000, 9_000, 500):
        model, coming = begun("bank", budget)
        for row, _ in coming[:2]:
            model.learn_one(row, 0)
        model.learn_one(only(OLD, coming[0][0]), 2, late=True)
        check_bytes(model)
        for row, _ in coming[2:6]:
            model.learn_one(row, 1)
            check_bytes(model)
        assert model._stage.outputs == 3


def test_a_vanished_space_is_not_given_up_for_rows_that_wait():
    """Two rows are worth some radial functions, not the experts of a space and the map to it."""
    third = [f"c{i}" for i in range(12)]
    for budget in range(3_000, 9_000, 400):
        model, coming = begun("bank", budget)
        for t, (row, label) in enumerate(coming[:40]):
            model.learn_one(row if t < OVERLAP else only(NEW, row), label)
        recovers = model._stage.recovers
        for row, label in coming[40:42]:
            model.learn_one(only(NEW, row) | dict.fromkeys(third, 1.0), label)
            check_bytes(model)
        assert model._stage.recovers == recovers


def test_giving_way_is_told_where_details_are():
    wide = [f"w{i}" for i in range(160)]
    model = SF2EL(budget="32KiB")
    told, labels = stream(60)
    for row, label in zip(told, labels, strict=True):
        model.learn_one(row, label)
    total = model.events().total
    size = kernels_of(model._stage.current)[0].settings.size
    for _ in range(2):
        model.learn_one(told[0] | dict.fromkeys(wide, 1.0))
        check_bytes(model)
    assert model._borrows() and len(model._pending) == 2
    changed = kernels_of(model._stage.current)[0].settings.size != size
    assert changed == (model.events().total > total)


# -- a stranger's file


def test_a_file_with_more_rows_than_there_is_room_for_is_refused():
    model, coming = begun("bank", "4KiB")
    for row, label in coming[:2]:
        model.learn_one(row, label)
    assert model._newcomer_bytes() <= waiting_room(model._budget)
    for copies in (2, 3):
        hostile = SF2EL.from_bytes(model.to_bytes())
        hostile._pending = hostile._pending * copies
        with pytest.raises(ValueError, match="not a whole sf2el model"):
            SF2EL.from_bytes(hostile.to_bytes())


def test_a_file_whose_few_features_wait_in_too_many_rows_is_refused():
    model, coming = begun("bank", "4KiB")
    model.learn_one(only(OLD + NEW[:1], coming[0][0]))
    model._pending = model._pending * 2
    with pytest.raises(ValueError, match="more waits in it than it has room for"):
        SF2EL.from_bytes(model.to_bytes())
