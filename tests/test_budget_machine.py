"""Any order of rows, spaces, labels, budgets and mistakes: the model stays within its budget and whole."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from test_budget import check_bytes, make
from test_model import state_of

from sf2el import SF2EL

BUDGETS = st.integers(750, 40_000) | st.integers(750, 2_500)
WIDTHS = st.integers(1, 12)
COUNTS = st.integers(1, 12)
SEEDS = st.integers(0, 1 << 16)
LABELS = st.sampled_from([None, 2, 2, 2, 3, 5])


class Budgets(RuleBasedStateMachine):
    """A model, and the names of the features there were."""

    @initialize(
        budget=BUDGETS,
        seed=SEEDS,
        backend=st.sampled_from([None, "numpy"]),
        kind=st.sampled_from(["bank", "paper"]),
    )
    def start(self, budget: int, seed: int, backend: str | None, kind: str) -> None:
        self.kind = kind
        self.model = make(kind, budget, seed=seed, backend=backend)
        self.spaces: list[list[str]] = []
        self.current: list[str] = []
        self.upcoming: list[str] = []
        self.total = 0

    def new(self, width: int) -> list[str]:
        self.spaces.append([f"{len(self.spaces)}_{j}" for j in range(width)])
        return self.spaces[-1]

    def learn(
        self,
        names: list[str],
        count: int,
        seed: int,
        labels: int | None,
        many: bool = False,
        keep: float = 1.0,
    ) -> None:
        """Learn rows; a refusal changes nothing and names a budget that suffices."""
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(count, len(names))) * 10.0 ** rng.integers(-2, 3)
        told = [int(rng.integers(labels)) if labels and rng.random() < 0.6 else None for _ in rows]
        if self.kind == "paper":
            told = [label if label is None else label % 2 for label in told]
        if many:
            self.attempt(lambda model: model.learn_many(rows, told, features=names))
            return
        for row, label in zip(rows.tolist(), told, strict=True):
            there = rng.random(len(names)) < keep
            there[int(rng.integers(len(names)))] = True
            x = {name: value for name, value, seen in zip(names, row, there, strict=True) if seen}
            self.attempt(lambda model, x=x, label=label: model.learn_one(x, label))
            check_bytes(self.model)

    def attempt(self, act: Any) -> None:
        before = state_of(self.model)
        try:
            act(self.model)
        except ValueError as refused:
            assert state_of(self.model) == before
            self.suffices(act, str(refused))

    def suffices(self, act: Any, refused: str) -> None:
        """What an error asks for is enough; rows after the refused one may ask for more."""
        model = SF2EL.from_bytes(state_of(self.model))
        asked = 0
        for _ in range(20):
            found = re.search(r"give at least (\d+)\.$", refused)
            assert found and "\n" not in refused, refused
            assert int(found[1]) > asked, refused
            asked = int(found[1])
            model.set_budget(asked)
            try:
                act(model)
            except ValueError as again:
                refused = str(again)
            else:
                check_bytes(model)
                return
        raise AssertionError("no budget was enough")

    # -- rows
    # Rules that apply to any state: a machine that has to look for one that applies gives up too often.

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labels=LABELS, many=st.booleans())
    def rows(self, width, count, seed, labels, many):
        self.current = self.current or self.new(width)
        self.learn(self.current, count, seed, labels, many)

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labels=LABELS, many=st.booleans())
    def overlap(self, width, count, seed, labels, many):
        self.current = self.current or self.new(width)
        self.upcoming = self.upcoming or self.new(width)
        self.learn(self.current + self.upcoming, count, seed, labels, many)

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labels=LABELS, many=st.booleans())
    def swap(self, width, count, seed, labels, many):
        """With an overlap before, or without one."""
        self.current, self.upcoming = self.upcoming or self.new(width), []
        self.learn(self.current, count, seed, labels, many)

    @rule(count=COUNTS, seed=SEEDS, labels=LABELS, beside=st.booleans())
    def an_old_space_returns(self, count, seed, labels, beside):
        if not self.spaces:
            return
        old = self.spaces[seed % len(self.spaces)]
        others = [name for name in self.current if name not in old] if beside else []
        self.learn(old + others, count, seed, labels)
        if not beside:
            self.current, self.upcoming = old, []

    @rule(count=COUNTS, seed=SEEDS, labels=LABELS, keep=st.floats(0.05, 0.9))
    def flicker(self, count, seed, labels, keep):
        if self.current:
            names = self.current + [name for name in self.upcoming if name not in self.current]
            self.learn(names, count, seed, labels, keep=keep)

    @rule(count=COUNTS, seed=SEEDS, labels=LABELS, width=st.sampled_from([1, 3, 40]))
    def typos(self, count, seed, labels, width):
        if self.current:
            self.learn(self.current + [f"typo{seed}_{j}" for j in range(width)], min(count, 2), seed, labels)

    @rule(seed=SEEDS, label=st.integers(0, 4), old=st.booleans())
    def late_label(self, seed, label, old):
        if not self.spaces or self.model._stage is None:
            return
        names = self.spaces[seed % len(self.spaces)] if old else self.current
        values = np.random.default_rng(seed).normal(size=len(names)).tolist()
        row = dict(zip(names, values, strict=True))
        label = label % 2 if self.kind == "paper" else label
        rows = self.model._rows_seen
        self.attempt(lambda model: model.learn_one(row, label, late=True))
        assert self.model._rows_seen == rows

    @rule(kind=st.sampled_from(["infinite", "text", "empty", "label", "third"]))
    def bad_row(self, kind):
        if not self.current:
            return
        good = dict.fromkeys(self.current, 1.0)
        bad = {"infinite": good | {"never": float("inf")}, "text": good | {"never": "warm"}, "empty": {}}
        label = {"label": ["no label"], "third": "a text"}.get(kind)
        if kind == "third" and not self.model._labels.seen:
            return
        before = state_of(self.model)
        try:
            self.model.learn_one(bad.get(kind, good), label)
        except ValueError as refused:
            assert "\n" not in str(refused)
            assert state_of(self.model) == before
        else:
            raise AssertionError(f"{kind} was taken")

    # -- budgets and files

    @rule(budget=BUDGETS)
    def set_budget(self, budget):
        before = state_of(self.model)
        try:
            self.model.set_budget(budget)
        except ValueError as refused:
            assert state_of(self.model) == before
            found = re.search(r"give at least (\d+)\.$", str(refused))
            assert found and int(found[1]) > budget, refused
            SF2EL.from_bytes(before).set_budget(int(found[1]))

    @rule()
    def save_and_load(self):
        data = state_of(self.model)
        assert len(data) <= self.model._budget + 8 * 1024
        backend = self.model._recipe.backend
        if backend is None:
            self.model = SF2EL.from_bytes(data)
            assert state_of(self.model) == data

    # -- predictions

    @rule(seed=SEEDS, ahead=st.booleans())
    def predict(self, seed, ahead):
        names = (self.upcoming if ahead else self.current) or ["never"]
        row = dict(zip(names, np.random.default_rng(seed).normal(size=len(names)).tolist(), strict=True))
        before = state_of(self.model)
        assert self.model.predict_one(row) in (None, 0, 1, 2, 3, 4)
        chances = self.model.predict_proba_one(row)
        assert all(0.0 <= chance <= 1.0 for chance in chances.values())
        assert not chances or abs(sum(chances.values()) - 1.0) < 1e-9
        assert all(np.isfinite(told["score"]) for told in self.model.explain_one(row).values())
        assert state_of(self.model) == before

    # -- always

    @invariant()
    def within_the_budget(self):
        check_bytes(self.model)

    @invariant()
    def weights_are_weights(self):
        weights = self.model.weights()
        assert bool(weights) == (self.model._stage is not None)
        if weights:
            assert abs(sum(weights.values()) - 1.0) < 1e-9
            assert all(0.0 <= weight <= 1.0 + 1e-12 for weight in weights.values())

    @invariant()
    def nothing_told_is_taken_back(self):
        told = self.model.events()
        assert told.total >= self.total
        assert len(told.last) <= told.total
        self.total = told.total


TestBudgets = pytest.mark.filterwarnings("ignore:.*new features are not used")(Budgets.TestCase)
TestBudgets.settings = settings(max_examples=60, stateful_step_count=30)
