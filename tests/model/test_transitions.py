"""Whatever comes, a state is the one before or the one after, within its bytes; copies go on alike."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from worlds import BUDGETED, MODELS, check_bytes, cycles, labels_for, learned, partly, swap, twin_of

import sf2el
from sf2el import SF2EL, SF2ELRegressor
from sf2el.features.policies import ExactPeriods, OwnPace
from sf2el.model import changes
from sf2el.model.strategy import BankStrategy
from sf2el.paper.strategy import PaperStrategy

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")

BUDGETS = st.integers(4_000, 40_000) | st.integers(4_000, 6_000)
TIGHT = st.integers(1000, 3_000)
WIDTHS = st.integers(1, 12)
COUNTS = st.integers(1, 12)
SEEDS = st.integers(0, 1 << 16)
LABELS = st.sampled_from([None, 2, 2, 2, 3, 5])


class OutOfLuckError(Exception):
    """What a test puts in the way."""


PLACES: dict[str, list[tuple[Any, str]]] = {
    "plan": [(BankStrategy, "arrange"), (PaperStrategy, "arrange")],
    "decision": [(OwnPace, "decide"), (ExactPeriods, "decide")],
    "time to wake": [(OwnPace, "wake_at"), (ExactPeriods, "wake_at")],
    "transitions": [(changes, "make")],
    "gaps": [(changes, "note_gaps")],
}
"""Where a change of features can be struck."""


@contextmanager
def struck(place: str, error: type[BaseException], after: bool = False):
    """Let something fail, before it has done anything or after it has done all."""

    def failing(what: Any):
        def fail(*given: Any, **more: Any) -> None:
            if after:
                what(*given, **more)
            raise error("out of luck")

        return fail

    patches = [mock.patch.object(home, name, failing(getattr(home, name))) for home, name in PLACES[place]]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


class Streams(RuleBasedStateMachine):
    """A model, its twin from a file, and the names of the features there were."""

    @initialize(budget=BUDGETS, seed=SEEDS, kind=st.sampled_from(["bank", "bank", "paper", "regressor"]))
    def start(self, budget, seed, kind):
        self.kind = kind
        try:
            self.model = BUDGETED[kind](budget, seed=seed)
        except ValueError as refused:
            assert self.asked(str(refused)) > budget
            self.model = BUDGETED[kind](self.asked(str(refused)), seed=seed)
        self.twin = twin_of(self.model)
        self.spaces: list[list[str]] = []
        self.current: list[str] = []
        self.incoming: list[str] = []
        self.total = 0

    @staticmethod
    def asked(refused: str) -> int:
        found = re.search(r"at least (\d+) bytes are needed", refused)
        assert found and "\n" not in refused, refused
        return int(found[1])

    def new(self, width: int) -> list[str]:
        self.spaces.append([f"{len(self.spaces)}_{j}" for j in range(width)])
        return self.spaces[-1]

    def label(self, rng: np.random.Generator, labels: int | None) -> Any:
        if not labels or rng.random() > 0.6:
            return None
        return (
            float(rng.normal())
            if self.kind == "regressor"
            else int(rng.integers(labels if self.kind == "bank" else 2))
        )

    def both(self, act: Any) -> None:
        """Do something with both models: they agree, and what is refused changes nothing."""
        before = self.model.to_bytes()
        try:
            act(self.model)
        except ValueError as refused:
            assert self.model.to_bytes() == before
            with pytest.raises(ValueError, match=re.escape(str(refused))):
                act(self.twin)
        else:
            act(self.twin)

    def learn(self, names, count, seed, labels, many=False, keep=1.0):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(count, len(names))) * 10.0 ** rng.integers(-2, 3)
        there = rng.random(rows.shape) < keep
        there[np.arange(count), rng.integers(len(names), size=count)] = True
        told = [self.label(rng, labels) for _ in rows]
        if many:
            rows[~there] = np.nan
            self.both(lambda model: model.learn_many(rows, told, features=names))
            return
        for row, seen, label in zip(rows.tolist(), there.tolist(), told, strict=True):
            x = {name: value for name, value, is_there in zip(names, row, seen, strict=True) if is_there}
            self.both(lambda model, x=x, label=label: model.learn_one(x, label))
            check_bytes(self.model)

    # -- rows
    # Rules that apply to any state: a machine that has to look for one that applies gives up too often.

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labels=LABELS, many=st.booleans())
    def rows(self, width, count, seed, labels, many):
        self.current = self.current or self.new(width)
        self.learn(self.current, count, seed, labels, many)

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labels=LABELS, many=st.booleans())
    def overlap(self, width, count, seed, labels, many):
        self.current = self.current or self.new(width)
        self.incoming = self.incoming or self.new(width)
        self.learn(self.current + self.incoming, count, seed, labels, many)

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labels=LABELS, many=st.booleans())
    def swapped(self, width, count, seed, labels, many):
        """With an overlap before, or without one."""
        self.current, self.incoming = self.incoming or self.new(width), []
        self.learn(self.current, count, seed, labels, many)

    @rule(count=COUNTS, seed=SEEDS, labels=LABELS, beside=st.booleans())
    def an_old_space_returns(self, count, seed, labels, beside):
        if not self.spaces:
            return
        old = self.spaces[seed % len(self.spaces)]
        others = [name for name in self.current if name not in old] if beside else []
        self.learn(old + others, count, seed, labels)
        if not beside:
            self.current, self.incoming = old, []

    @rule(count=COUNTS, seed=SEEDS, labels=LABELS, keep=st.floats(0.05, 0.9), many=st.booleans())
    def gaps(self, count, seed, labels, keep, many):
        if self.current:
            names = self.current + [name for name in self.incoming if name not in self.current]
            self.learn(names, count, seed, labels, many, keep)

    @rule(count=COUNTS, seed=SEEDS, labels=LABELS, width=st.sampled_from([1, 3, 40]))
    def strangers(self, count, seed, labels, width):
        if self.current:
            self.learn(self.current + [f"typo{seed}_{j}" for j in range(width)], min(count, 2), seed, labels)

    @rule(seed=SEEDS, label=st.integers(0, 4), old=st.booleans())
    def late_label(self, seed, label, old):
        if not self.spaces or not self.model.rows_seen:
            return
        names = self.spaces[seed % len(self.spaces)] if old else self.current
        values = np.random.default_rng(seed).normal(size=len(names)).tolist()
        row, rows = dict(zip(names, values, strict=True)), self.model.rows_seen
        label = label % 2 if self.kind == "paper" else label
        self.both(lambda model: model.learn_one(row, label, late=True))
        assert self.model.rows_seen == rows

    @rule(kind=st.sampled_from(["infinite", "text", "empty", "label"]))
    def invalid(self, kind):
        good = dict.fromkeys(self.current, 1.0) | {"other": 2.0}
        bad = {"infinite": good | {"never": float("inf")}, "text": good | {"never": "warm"}, "empty": {}}
        before = self.model.to_bytes()
        with pytest.raises(ValueError) as refused:
            self.model.learn_one(bad.get(kind, good), ["no label"] if kind == "label" else None)
        assert "\n" not in str(refused.value)
        assert self.model.to_bytes() == before

    # -- failures

    @rule(
        place=st.sampled_from(sorted(PLACES)),
        error=st.sampled_from([OutOfLuckError, KeyboardInterrupt, MemoryError]),
        after=st.booleans(),
        how=st.sampled_from(["row", "overlap", "swap", "class", "table", "budget"]),
        seed=SEEDS,
        width=WIDTHS,
    )
    def something_fails(self, place, error, after, how, seed, width):
        rng = np.random.default_rng(seed)
        self.current = self.current or self.new(width)
        names = {
            "overlap": self.current + (self.incoming or [f"{len(self.spaces)}_{j}" for j in range(width)])
        }
        names["swap"] = self.incoming or ["elsewhere"]
        names["table"] = [*names["overlap"], "typo"]
        own = names.get(how, self.current)
        values = rng.normal(size=(3, len(own)))
        values[1:, : len(self.current)][rng.random((2, len(self.current[: len(own)]))) < 0.4] = np.nan
        values[:, -1] = 1.0
        label = (
            0.5
            if self.kind == "regressor"
            else int(rng.integers(2))
            if how != "class"
            else int(rng.integers(9))
        )
        budget = int(rng.integers(4000, 30_000))

        def act(model):
            if how == "table":
                model.learn_many(values, [label, None, None], features=own)
            elif how == "budget":
                model.set_budget(budget)
            else:
                model.learn_one(dict(zip(own, values[0].tolist(), strict=True)), label)

        before = self.model.to_bytes()
        with struck(place, error, after):
            try:
                act(self.model)
            except (error, ValueError) as told:
                assert isinstance(told, error) or "\n" not in str(told)
                assert self.model.to_bytes() == before
                return
        act(self.twin)

    # -- budgets and files

    @rule(budget=BUDGETS)
    def set_budget(self, budget):
        self.set_budget_to(budget)

    def set_budget_to(self, budget):
        before = self.model.to_bytes()
        try:
            self.model.set_budget(budget)
        except ValueError as refused:
            assert self.model.to_bytes() == before
            assert self.asked(str(refused)) > budget
            return
        self.twin.set_budget(budget)

    @rule()
    def save_and_load(self):
        data = self.model.to_bytes()
        self.twin = twin_of(self.model)
        assert self.twin.to_bytes() == data

    # -- predictions

    @rule(seed=SEEDS, ahead=st.booleans())
    def predict(self, seed, ahead):
        names = (self.incoming if ahead else self.current) or ["never"]
        row = dict(zip(names, np.random.default_rng(seed).normal(size=len(names)).tolist(), strict=True))
        before = self.model.to_bytes()
        said = self.model.predict_one(row)
        assert said == self.twin.predict_one(row)
        if self.kind == "regressor":
            assert np.isfinite(said)
        else:
            assert said is None or said in self.model.labels
            chances = self.model.predict_proba_one(row)
            assert all(0.0 <= chance <= 1.0 for chance in chances.values())
            assert not chances or abs(sum(chances.values()) - 1.0) < 1e-9
        told = self.model.explain_one(row)
        assert all(np.isfinite(one["score"]) and 0.0 <= one["weight"] <= 1.0 + 1e-9 for one in told.values())
        assert self.model.to_bytes() == before

    # -- always

    @invariant()
    def within_the_budget(self):
        check_bytes(self.model)

    @invariant()
    def the_twin_goes_on_bit_for_bit(self):
        assert self.twin.to_bytes() == self.model.to_bytes()

    @invariant()
    def weights_are_weights(self):
        weights = self.model.weights()
        if weights:
            assert abs(sum(weights.values()) - 1.0) < 1e-6
            assert all(0.0 <= weight <= 1.0 + 1e-9 for weight in weights.values())

    @invariant()
    def what_happened_is_not_taken_back(self):
        events = self.model.events()
        assert events.total >= self.total
        assert len(events.last) <= events.total
        assert all(event.text and event.row <= event.certain for event in events.last)
        self.total = events.total


class Tight(Streams):
    """The same where hardly anything fits."""

    @rule(budget=TIGHT)
    def set_a_tight_budget(self, budget):
        self.set_budget_to(budget)


FILTER = pytest.mark.filterwarnings("ignore:.*new features are not used")
TestStreams = FILTER(Streams.TestCase)
TestStreams.settings = settings(max_examples=30, stateful_step_count=25)
TestTight = FILTER(Tight.TestCase)
TestTight.settings = settings(max_examples=15, stateful_step_count=25)


# -- an error at every single place


HOME = str(Path(sf2el.__file__).parent)
LOCKS = {"enter", "leave", "used", "__enter__", "__exit__"}


def interrupted(act: Any, at: int) -> bool:
    """Raise KeyboardInterrupt at the so-manieth line of the package; whether there were so many."""
    count = 0

    def line(frame, event, _):
        nonlocal count
        if event == "line" and frame.f_code.co_name not in LOCKS:
            count += 1
            if count == at:
                raise KeyboardInterrupt
        return line

    def call(frame, event, _):
        return line if frame.f_code.co_filename.startswith(HOME) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def moments(make, rows, what):
    """Return models just before a row that changes something."""
    model = make()
    found = []
    for x, y in labels_for(model, rows):
        before, total = model.to_bytes(), model.events().total
        model.learn_one(x, y)
        if model.events().total > total:
            found.append((before, x, y, model.to_bytes()))
    assert len(found) >= what
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_an_interrupt_at_any_line_of_a_change_leaves_the_state_before_or_after(kind):
    """Of features that open a space and of a swap, struck in turn at every line of Python."""
    make = MODELS[kind]
    cls = SF2ELRegressor if kind == "regressor" else SF2EL
    mixed = []
    for before, x, y, after in moments(make, swap(length=110), 1)[:4]:
        at = 0
        while True:
            at += 1
            model = cls.from_bytes(before)
            if not interrupted(lambda model=model, x=x, y=y: model.learn_one(x, y), at):
                break
            if model.to_bytes() not in (before, after):
                mixed.append(at)
        assert at > 20
    assert not mixed


@pytest.mark.parametrize("kind", BUDGETED)
@pytest.mark.parametrize("budget", [3000, 30_000])
def test_an_interrupt_at_any_line_of_a_new_budget_leaves_the_state_before_or_after(kind, budget):
    model = learned(BUDGETED[kind](), swap()[:90])
    before = model.to_bytes()
    after = twin_of(model)
    after.set_budget(budget)
    mixed, at = [], 0
    while True:
        at += 1
        model = type(model).from_bytes(before)
        if not interrupted(lambda model=model: model.set_budget(budget), at):
            break
        if model.to_bytes() not in (before, after.to_bytes()):
            mixed.append(at)
    assert at > 20
    assert not mixed


def test_a_model_goes_on_after_an_interrupt():
    model, twin = SF2EL(budget="8KiB"), SF2EL(budget="8KiB")
    for t, (x, y) in enumerate(swap()):
        with struck("plan", KeyboardInterrupt):
            try:
                model.learn_one(x, y)
            except KeyboardInterrupt:
                failed = True
            else:
                failed = False
        if failed:
            model.learn_one(x, y)
        twin.learn_one(x, y)
        assert model.to_bytes() == twin.to_bytes(), t


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", BUDGETED)
@pytest.mark.parametrize("stream", [swap, cycles, partly])
def test_a_table_that_fails_anywhere_changes_nothing(kind, place, stream):
    from worlds import table

    model = learned(BUDGETED[kind](), stream()[:60])
    X, names, y = table(labels_for(model, stream()[60:]))
    before = model.to_bytes()
    for after in (False, True):
        for learn in (model.learn_many, model.run_many):
            with struck(place, OutOfLuckError, after):
                try:
                    learn(X, y, features=names)
                except OutOfLuckError:
                    assert model.to_bytes() == before
                else:
                    model = type(model).from_bytes(before)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("stream", [swap, cycles, partly])
def test_a_model_saved_and_loaded_at_every_row_goes_on_bit_for_bit(kind, stream):
    model, saved = MODELS[kind](), MODELS[kind]()
    for x, y in labels_for(model, stream()):
        model.learn_one(x, y)
        saved = twin_of(saved)
        saved.learn_one(x, y)
    assert saved.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("kind", ["bank", "regressor"])
def test_a_review_that_fails_leaves_a_state_that_can_be_saved_and_goes_on(kind):
    """The plan looks at experts again some time after a swap: that row may fail like any other."""
    model, twin = BUDGETED[kind](), BUDGETED[kind]()
    failures = 0
    for x, y in labels_for(model, swap(length=400)):
        before = model.to_bytes()
        with struck("plan", OutOfLuckError):
            try:
                model.learn_one(x, y)
            except OutOfLuckError:
                failures += 1
                assert model.to_bytes() == before
                failed = True
            else:
                failed = False
        if failed:
            model = twin_of(model)
            model.learn_one(x, y)
        twin.learn_one(x, y)
    assert failures > 3
    assert model.to_bytes() == twin.to_bytes()
