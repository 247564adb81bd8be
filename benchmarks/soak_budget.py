"""A long random walk of budgets and feature spaces: does the model ever use more than its budget?"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from sf2el import RBF, SF2EL

ROUNDS = 1_000_000
MOST_FEATURES = 12
LONGEST_BLOCK = 400
ONE_BY_ONE = 0.01
SMALLEST, SMALL, LARGE = 700, 8 * 1024, 64 * 1024


@dataclass
class Tally:
    """What the walk has met."""

    rounds: int = 0
    checks: int = 0
    violations: int = 0
    refusals: int = 0
    budgets: list[int] = field(default_factory=list)
    spaces: int = 0
    overlaps: int = 0
    largest_share: float = 0.0
    worst: str = ""


def make(kind: str, **more: Any) -> SF2EL:
    """Return a model within a budget: the default, or the published learner."""
    if kind == "default":
        return SF2EL(**more)
    given = {"scaled": True, "restart": False, "on_skip": "project", "loss": "hinge", "kernel": RBF(2.5)}
    return SF2EL.paper(graph_width=7.5, step=2.0, **(given | more))


class Walk:
    """One model led through random spaces and budgets."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.tally = Tally()
        self.budget = 16 * 1024
        self.model = make(kind, budget=self.budget, seed=seed)
        self.labels = 2 if kind == "paper" else 4
        self.tally.budgets.append(self.budget)
        self.current = self.new_space()
        self.upcoming: list[str] | None = None

    def new_space(self) -> list[str]:
        """Return the names of a space that was not there before."""
        self.tally.spaces += 1
        width = int(self.rng.integers(1, MOST_FEATURES + 1))
        return [f"s{self.tally.spaces}_{j}" for j in range(width)]

    def step(self) -> None:
        """Do one thing: change the budget, the features, or nothing; then learn a block of rows."""
        chance = self.rng.random()
        if chance < 0.25:
            self.change_budget()
        names, arrival = self.current, ""
        if chance > 0.85 and self.tally.rounds:
            names, arrival = self.change_features()
        elif chance > 0.8 and self.tally.rounds:
            self.flicker(names)
        length = int(self.rng.integers(1, LONGEST_BLOCK + 1))
        if arrival == "overlap":
            length = min(length, 40)
        if self.learn(names, length):
            if arrival == "overlap" and self.upcoming is None:
                self.upcoming = names[len(self.current) :]
                self.tally.overlaps += 1
            elif arrival == "swap":
                self.current, self.upcoming = names, None

    def change_features(self) -> tuple[list[str], str]:
        """Return the features of the coming block, and whether they overlap or swap."""
        if self.upcoming is not None:
            if self.rng.random() < 0.3:
                return self.current + self.upcoming, "overlap"
            return self.upcoming, "swap"
        if self.rng.random() < 0.8:
            return self.current + self.new_space(), "overlap"
        return self.new_space(), "swap"

    def flicker(self, names: list[str]) -> None:
        """Learn rows with gaps and keys that nobody asked for, and a late label."""
        for t in range(6):
            kept = [name for name in names if self.rng.random() < 0.7] or names[:1]
            row = {name: float(self.rng.normal()) for name in kept} | {f"typo{t}": 1.0}
            try:
                self.model.learn_one(row)
                self.model.learn_one(row, 0, late=True)
            except ValueError as error:
                if "budget" not in str(error):
                    raise
                self.tally.refusals += 1
            self.check("flicker")

    def change_budget(self) -> None:
        """Draw another budget: mostly small, for without kept matrices a row costs O(b^2) kernels."""
        top = LARGE if self.rng.random() < 0.1 else SMALL
        budget = int(np.exp(self.rng.uniform(np.log(SMALLEST), np.log(top))))
        try:
            self.model.set_budget(budget)
        except ValueError:
            self.tally.refusals += 1
        else:
            self.budget = budget
            self.tally.budgets.append(budget)
        self.check("set_budget")

    def learn(self, names: list[str], length: int) -> bool:
        """Learn a block, in one call or row by row; return whether its features were taken."""
        rows = self.rng.normal(size=(length, len(names))) * 10.0 ** self.rng.integers(-3, 4)
        known = 2 if self.tally.rounds < ROUNDS // 10 else self.labels
        labels = [abs(int(row.sum())) % known if self.rng.random() < 0.3 else None for row in rows]
        try:
            if self.rng.random() < ONE_BY_ONE:
                for row, label in zip(rows.tolist(), labels, strict=True):
                    self.model.learn_one(dict(zip(names, row, strict=True)), label)
                    self.check("learn_one")
            else:
                self.model.learn_many(rows, labels, features=names)
        except ValueError as error:
            if "budget" not in str(error):
                raise
            self.tally.refusals += 1
            self.check("refused space")
            return False
        self.check("learn_many")
        self.tally.rounds += length
        return True

    def check(self, after: str) -> None:
        """Compare the bytes in use with the budget."""
        self.tally.checks += 1
        used = self.model.memory_usage()
        self.tally.largest_share = max(self.tally.largest_share, used / self.budget)
        if used > self.budget:
            self.tally.violations += 1
            self.tally.worst = f"{used} bytes of {self.budget} after {after} at round {self.tally.rounds}"


def main() -> int:
    """Walk, print what was met, return 1 if a budget was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=["default", "paper"], default="default")
    given = parser.parse_args()
    walk = Walk(given.seed, given.kind)
    start = perf_counter()
    while walk.tally.rounds < given.rounds:
        walk.step()
    seconds = perf_counter() - start
    tally = walk.tally
    print(f"rounds            {tally.rounds:,}")
    print(f"checks            {tally.checks:,}")
    print(f"violations        {tally.violations}" + (f" (the last: {tally.worst})" if tally.worst else ""))
    print(f"refused           {tally.refusals} budgets and spaces, for which one learner was too much")
    print(
        f"budgets           {len(tally.budgets):,}, from {min(tally.budgets)} to {max(tally.budgets)} bytes"
    )
    print(f"largest use       {tally.largest_share:.4%} of the budget in force")
    print(f"spaces            {tally.spaces:,}, {tally.overlaps:,} with an overlap")
    print(f"events            {walk.model.events().total:,}")
    print(f"seconds           {seconds:.1f}")
    return 1 if tally.violations else 0


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=".*new features are not used")
    sys.exit(main())
