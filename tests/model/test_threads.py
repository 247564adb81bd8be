"""Threads: a model that two of them use at once says so, and no state is ever mixed."""

from __future__ import annotations

import sys
import threading

import pytest
from worlds import MODELS, STREAMS, labels_for, learned, swap, table

from sf2el import SF2EL
from sf2el.model.engine import BusyError

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")

BUSY = "being used by another thread"


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*acts):
    """Do things at the same time; return what was raised that no BusyError is."""
    raised, start = [], threading.Barrier(len(acts))

    def run(act):
        start.wait()
        try:
            act()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
        assert not one.is_alive()
    return raised


class Slow(dict):
    """A row that lets another thread in while it is read."""

    def __init__(self, row, act):
        super().__init__(row)
        self.act = act

    def items(self):
        self.act()
        return super().items()


@pytest.mark.parametrize("kind", MODELS)
def test_a_second_thread_in_one_model_gets_one_sentence_and_the_first_goes_on(kind):
    model, twin = (learned(MODELS[kind](), swap()[:60]) for _ in range(2))
    refused = []

    def meanwhile():
        for ask in (
            lambda: model.predict_one({"a0": 1.0}),
            lambda: model.learn_one({"a0": 1.0}),
            lambda: model.learn_many([[1.0]], features=["a0"]),
            lambda: model.to_bytes(),
            lambda: model.memory_usage(),
            lambda: model.events(),
            lambda: model.weights(),
            lambda: model.set_budget("8KiB") if model.budget else model.risk(),
        ):
            with pytest.raises(BusyError, match=BUSY) as told:
                ask()
            refused.append(str(told.value))

    def other():
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join(30)

    (x, y), *_ = labels_for(model, swap()[60:])
    model.learn_one(Slow(x, other), y)
    twin.learn_one(x, y)
    assert len(refused) == 8 and all("\n" not in one for one in refused)
    assert model.to_bytes() == twin.to_bytes()


@pytest.mark.parametrize("kind", MODELS)
def test_two_threads_in_one_model_leave_a_state_that_some_order_of_whole_rows_leaves(kind):
    """What was not refused was learned, once and whole."""
    model = MODELS[kind]()
    rows = labels_for(model, swap())
    done, lock = [], threading.Lock()

    def work(mine):
        for x, y in mine:
            with lock:  # rows in an order that is known; the other thread reads without the lock
                model_learn(x, y)

    def model_learn(x, y):
        while True:
            try:
                model.learn_one(x, y)
            except BusyError:
                continue
            done.append((x, y))
            return

    def read():
        for x, _ in rows * 2:
            try:
                model.predict_one(x), model.memory_usage(), model.to_bytes()
            except BusyError as busy:
                assert BUSY in str(busy)

    assert not together(lambda: work(rows[::2]), lambda: work(rows[1::2]), read)
    assert len(done) == len(rows)
    twin = MODELS[kind]()
    for x, y in done:
        twin.learn_one(x, y)
    assert twin.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("kind", MODELS)
def test_threads_without_a_lock_are_refused_or_count_every_row(kind):
    model = MODELS[kind]()
    learned_rows = []

    def work(seed):
        for x, y in labels_for(model, STREAMS["gaps"](seed=seed)):
            try:
                model.learn_one(x, y)
            except BusyError:
                continue
            learned_rows.append(1)

    assert not together(*(lambda seed=seed: work(seed) for seed in range(3)))
    assert model.rows_seen == len(learned_rows) > 0
    type(model).from_bytes(model.to_bytes())


@pytest.mark.parametrize("kind", MODELS)
def test_different_models_side_by_side_are_as_they_are_alone(kind):
    names = list(STREAMS)
    alone = {name: learned(MODELS[kind](), STREAMS[name]()).to_bytes() for name in names}
    models = {name: MODELS[kind]() for name in names}

    def many(name):
        X, columns, y = table(labels_for(models[name], STREAMS[name]()))
        models[name].learn_many(X, y, features=columns)

    assert not together(*(lambda name=name: many(name) for name in names))
    assert {name: model.to_bytes() for name, model in models.items()} == alone
    models = {name: MODELS[kind]() for name in names}
    assert not together(*(lambda name=name: learned(models[name], STREAMS[name]()) for name in names))
    assert {name: model.to_bytes() for name, model in models.items()} == alone


def test_a_row_that_runs_code_does_not_mix_rows_up():
    """A row whose reading uses the model itself is read whole before anything of it is learned."""
    model, twin = (learned(SF2EL(), swap()[:40]) for _ in range(2))
    (x, _), (other, _) = swap()[40], swap()[41]
    model.learn_one(Slow(x, lambda: model.learn_one(other, 1)), 0)
    twin.learn_one(other, 1)
    twin.learn_one(x, 0)
    assert model.to_bytes() == twin.to_bytes()


def test_a_name_that_runs_code_changes_nothing():
    class Name(str):
        def __hash__(self):
            return str.__hash__(self)

        def __eq__(self, other):
            seen.append(1)
            return str.__eq__(self, other)

    seen = []
    one, two = SF2EL(), SF2EL()
    for x, y in swap():
        one.learn_one(x, y)
        two.learn_one({Name(name): value for name, value in x.items()}, y)
    assert one.to_bytes() == two.to_bytes()
