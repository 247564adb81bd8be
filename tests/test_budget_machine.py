"""Any order of rows, spaces, budgets and mistakes: the model stays within its budget and whole."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from test_model import state_of

from sf2el import SF2EL
from sf2el.budget import LABEL_BYTES, MODEL_BYTES, hedge_bytes, names_bytes, scaler_bytes
from sf2el.events import EVENT_BYTES
from sf2el.plan import events_kept, least_bytes

BUDGETS = st.integers(700, 40_000) | st.integers(700, 2_500)
WIDTHS = st.integers(1, 12)
COUNTS = st.integers(1, 60)
SEEDS = st.integers(0, 1 << 16)


class Budgets(RuleBasedStateMachine):
    """A model beside the little that has to be known to say what it may do."""

    @initialize(budget=BUDGETS, seed=SEEDS, backend=st.sampled_from([None, "numpy"]))
    def start(self, budget: int, seed: int, backend: str | None) -> None:
        self.budget = budget
        self.model = SF2EL(budget=budget, seed=seed, backend=backend)
        self.spaces = 0
        self.current: list[str] = []
        self.upcoming: list[str] = []
        self.total = 0

    def names(self, width: int) -> list[str]:
        self.spaces += 1
        return [f"{self.spaces}_{j}" for j in range(width)]

    def least(self, budget: int, names: list[str], beside: list[str]) -> int:
        """Bytes of one learner of two rows on these features, with others beside them."""
        size = LABEL_BYTES + MODEL_BYTES + EVENT_BYTES * events_kept(budget) + hedge_bytes(1)
        size += names_bytes(names) + scaler_bytes(len(names))
        size += least_bytes(self.model._recipe.settings, [len(names)])
        return size + (names_bytes(beside) + scaler_bytes(len(beside)) if beside else 0)

    def learn(self, names: list[str], count: int, seed: int, labelled: bool, one: bool = False) -> bool:
        """Learn rows; return whether the features were taken. A refusal changes nothing."""
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(count, len(names))) * 10.0 ** rng.integers(-2, 3)
        labels = [int(row.sum() > 0) if labelled and rng.random() < 0.5 else None for row in rows]
        before = state_of(self.model)
        try:
            if one:
                self.model.learn_one(dict(zip(names, rows[0].tolist(), strict=True)), labels[0])
            else:
                self.model.learn_many(rows, labels, features=names)
        except ValueError as refused:
            assert "at least" in str(refused) and "\n" not in str(refused)
            assert state_of(self.model) == before
            return False
        return True

    # -- rows

    # Rules that apply to any state: a machine that has to look for one that applies gives up too often.

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labelled=st.booleans(), one=st.booleans())
    def rows(self, width, count, seed, labelled, one):
        names = self.current or self.names(width)
        if self.learn(names, count, seed, labelled, one):
            self.current = names
        else:
            assert not self.current
            assert self.least(self.budget, names, []) > self.budget

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labelled=st.booleans(), one=st.booleans())
    def overlap(self, width, count, seed, labelled, one):
        if not self.current:
            return
        upcoming = self.upcoming or self.names(width)
        if self.learn(self.current + upcoming, count, seed, labelled, one):
            self.upcoming = upcoming
        else:
            assert not self.upcoming
            assert self.least(self.budget, self.current, upcoming) > self.budget

    @rule(width=WIDTHS, count=COUNTS, seed=SEEDS, labelled=st.booleans(), one=st.booleans())
    def swap(self, width, count, seed, labelled, one):
        overlapped = bool(self.upcoming)
        names = self.upcoming or self.names(width)
        if self.learn(names, count, seed, labelled, one):
            self.current, self.upcoming = names, []
            assert overlapped or set(self.model.weights()) == {"current"}
        else:
            assert self.least(self.budget, names, []) > self.budget

    @rule(kind=st.sampled_from(["infinite", "text", "lost", "half", "label"]))
    def bad_row(self, kind):
        if not self.current:
            return
        good = dict.fromkeys(self.current, 1.0)
        bad = {
            "infinite": good | {self.current[0]: float("inf")},
            "text": good | {self.current[0]: "warm"},
            "lost": dict(list(good.items())[1:]),
            "half": dict(list(good.items())[1:]) | {"never": 1.0, self.current[0]: None},
            "label": good,
        }[kind]
        if kind == "half" and len(self.current) == 1 and not self.upcoming:
            return  # a swap
        before = state_of(self.model)
        try:
            self.model.learn_one(bad, ["no label"] if kind == "label" else None)
        except ValueError as refused:
            assert "\n" not in str(refused)
            assert state_of(self.model) == before
        else:
            raise AssertionError(f"{kind}: {bad} was taken")

    # -- budgets

    @rule(budget=BUDGETS)
    def set_budget(self, budget):
        before = state_of(self.model)
        try:
            self.model.set_budget(budget)
        except ValueError as refused:
            assert "at least" in str(refused)
            assert state_of(self.model) == before
            assert self.least(budget, self.current, self.upcoming) > budget
        else:
            self.budget = budget

    # -- predictions

    @rule(seed=SEEDS, ahead=st.booleans())
    def predict(self, seed, ahead):
        names = (self.upcoming if ahead else self.current) or ["never"]
        row = dict(zip(names, np.random.default_rng(seed).normal(size=len(names)).tolist(), strict=True))
        before = state_of(self.model)
        assert self.model.predict_one(row) in (None, 0, 1)
        chances = self.model.predict_proba_one(row)
        assert all(0.0 <= chance <= 1.0 for chance in chances.values())
        assert not chances or abs(sum(chances.values()) - 1.0) < 1e-12
        assert all(np.isfinite(told["score"]) for told in self.model.explain_one(row).values())
        assert state_of(self.model) == before

    # -- always

    @invariant()
    def within_the_budget(self):
        used = self.model.memory_usage()
        assert used <= self.budget
        assert used == sum(self.model.memory_usage(detail=True).values())

    @invariant()
    def weights_are_weights(self):
        weights = self.model.weights()
        assert bool(weights) == bool(self.current)
        if weights:
            assert abs(sum(weights.values()) - 1.0) < 1e-9
            assert all(0.0 <= weight <= 1.0 for weight in weights.values())

    @invariant()
    def nothing_told_is_taken_back(self):
        told = self.model.events()
        assert told.total >= self.total
        assert len(told.last) <= told.total
        self.total = told.total


TestBudgets = Budgets.TestCase
TestBudgets.settings = settings(max_examples=40, stateful_step_count=40)
