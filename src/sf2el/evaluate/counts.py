"""How often each label was predicted for each true one, and what follows from that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import nan
from typing import Any, Self


class Counts:
    """A confusion matrix that grows with the labels met; a prediction None is an error.

    Memory O(pairs of labels met), time O(1) a round.

    Examples
    --------
    >>> counts = Counts()
    >>> counts.add_many(["a", "a", "b", "b"], ["a", "b", "b", None])
    >>> {name: round(value, 3) for name, value in counts.metrics().items()}
    {'accuracy': 0.5, 'balanced_accuracy': 0.5, 'kappa': 0.2}
    """

    def __init__(self) -> None:
        self.pairs: Counter[tuple[Hashable, Hashable]] = Counter()

    @property
    def rounds(self) -> int:
        """Rounds counted."""
        return self.pairs.total()

    @property
    def labels(self) -> list[Hashable]:
        """The true labels met, in order of appearance."""
        return list(dict.fromkeys(truth for truth, _ in self.pairs))

    def truths(self) -> dict[Hashable, int]:
        """Return how often each label was the true one."""
        found: Counter[Hashable] = Counter()
        for (truth, _), count in self.pairs.items():
            found[truth] += count
        return dict(found)

    def add(self, truth: Hashable, prediction: Hashable) -> None:
        """Count one round."""
        self.pairs[truth, prediction] += 1

    def add_many(self, truths: Iterable[Hashable], predictions: Iterable[Hashable]) -> None:
        """Count rounds."""
        self.pairs.update(zip(truths, predictions, strict=True))

    def merge(self, other: Self) -> None:
        """Add another's rounds."""
        self.pairs.update(other.pairs)

    def metrics(self) -> dict[str, float]:
        """Return accuracy, balanced accuracy (mean recall) and Cohen's kappa; NaN where undefined.

        Kappa is ``(accuracy - chance) / (1 - chance)``, with chance the agreement that labels and
        predictions of these frequencies would have if they were independent.
        """
        total = self.rounds
        if not total:
            return {"accuracy": nan, "balanced_accuracy": nan, "kappa": nan}
        predicted: Counter[Hashable] = Counter()
        for (_, prediction), count in self.pairs.items():
            predicted[prediction] += count
        truths = self.truths()
        right = {truth: self.pairs[truth, truth] for truth in truths if (truth, truth) in self.pairs}
        accuracy = sum(right.values()) / total
        balanced = sum(right.get(truth, 0) / count for truth, count in truths.items()) / len(truths)
        chance = sum(count * predicted[truth] for truth, count in truths.items()) / total**2
        kappa = (accuracy - chance) / (1.0 - chance) if chance < 1.0 else nan
        return {"accuracy": accuracy, "balanced_accuracy": balanced, "kappa": kappa}

    def state(self) -> list[list[Any]]:
        """Return the counts as JSON can hold them."""
        return [[truth, prediction, count] for (truth, prediction), count in self.pairs.items()]

    @classmethod
    def from_state(cls, state: Sequence[Sequence[Any]]) -> Self:
        """Return the counts of a ``state``."""
        counts = cls()
        for truth, prediction, count in state:
            counts.pairs[truth, prediction] = int(count)
        return counts
