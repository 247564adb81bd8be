"""Labels of the user's kind, and the numbers that the experts learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sf2el.inputs.rows import is_number, short, utf8

Floats = npt.NDArray[np.float64]
Label = str | int
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None

LABEL_ROOM = 64
"""Bytes of text that a label may have."""

MOST_CLASSES = 1024
FEW_LABELS = 3.0
"""Labels of each class as if seen beforehand, where a new expert's constant starts from how often each was."""

UNLABELLED = float("nan")
LARGEST_WEIGHT = 100.0


class Labels:
    """The labels seen, in order. Of two the first is +1 and the second -1; of more each is its place.

    Parameters
    ----------
    classes
        Labels known beforehand, the positive one first.
    binary
        Whether a third label is refused.
    class_weight
        None, ``"balanced"`` (the inverse of how often a label was seen so far) or a weight for each label.

    Examples
    --------
    >>> labels = Labels()
    >>> labels.decide(0.3) is None
    True
    >>> labels.see(labels.read("wet")), labels.see(labels.read("dry"))
    (0, 1)
    >>> labels.target(1), labels.decide(0.3), labels.decide(-0.3)
    (-1.0, 'wet', 'dry')

    Labels that are equal are the same: the model says the one that it met first.

    >>> labels = Labels([True, False])
    >>> labels.decide(1.0), labels.read(1) in labels.seen
    (True, True)
    """

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        *,
        binary: bool = False,
        class_weight: ClassWeight = None,
    ) -> None:
        self.seen: list[Label] = []
        self.places: dict[Label, int] = {}
        self.counts: list[int] = []
        self.binary = binary
        self.class_weight = _checked_weights(class_weight)
        self.fixed = False
        if classes is None:
            return
        told = f"classes must name {'two' if binary else 'at least two'} different labels, not {classes!r}."
        if isinstance(classes, str) or not isinstance(classes, Iterable) or "" in list(classes):
            raise ValueError(told)
        for label in classes:
            self.see(self.read(label), count=False)
        if len(self.seen) < 2 or len(self.seen) != len(list(classes)):
            raise ValueError(told)
        self.fixed = True

    def copy(self) -> Labels:
        """Return labels that go their own way."""
        twin = Labels(binary=self.binary, class_weight=self.class_weight)
        twin.seen, twin.counts, twin.fixed = list(self.seen), list(self.counts), self.fixed
        twin.places = dict(self.places)
        return twin

    def counted(self, place: int, count: int) -> Labels:
        """Return labels of which that at a place was seen so often."""
        twin = self.copy()
        twin.counts[place] = count
        return twin

    def read(self, label: Any) -> Label | None:
        """Return a label as it is kept, None for an unlabelled row; ValueError if it cannot be taken."""
        plain = _plain(label)
        if plain is None or plain in self.places:
            return plain
        if self.seen and isinstance(plain, str) != isinstance(self.seen[0], str):
            raise ValueError(
                f"Labels so far were like {self.seen[0]!r}; {short(label)} is of another type: "
                "pass all labels as text or all as whole numbers."
            )
        if self.binary and len(self.seen) == 2:
            raise ValueError(
                f"This model is binary and knows the labels {self.seen[0]!r} and {self.seen[1]!r}; "
                f"it cannot take {short(label)}."
            )
        if self.fixed:
            known = ", ".join(map(repr, self.seen))
            raise ValueError(f"classes= names the labels {known}; it cannot take {short(label)}.")
        if len(self.seen) == MOST_CLASSES:
            raise ValueError(f"A model takes {MOST_CLASSES} labels; {short(label)} would be one more.")
        return plain

    def read_many(self, labels: Sequence[Any]) -> list[Label | None]:
        """Return labels as they are kept, each read as if those before it had been seen."""
        known: dict[Any, Label | None] = {None: None}
        trial, found = self.copy(), []
        for label in labels:
            # Labels that are equal are the same, but for NaN and what cannot be a key, which read tells.
            if type(label) in (str, int) or label is None:
                if label not in known:
                    known[label] = trial.read(label)
                    trial.see(known[label], count=False)
                found.append(known[label])
            else:
                found.append(trial.read(label))
                trial.see(found[-1], count=False)
        return found

    def see(self, label: Label | None, *, count: bool = True) -> int:
        """Remember a label that ``read`` returned; return its place, -1 for an unlabelled row."""
        if label is None:
            return -1
        place = self.places.get(label, -1)
        if place < 0:
            place = self.places[label] = len(self.seen)
            self.seen.append(label)
            self.counts.append(0)
        self.counts[place] += count
        return place

    def first_growing(self, labels: Sequence[Label | None], start: int) -> int:
        """Return the first place from ``start`` on of a label that gives experts an output more, else their number."""
        if set(labels[start:]) <= {None, *self.places}:
            return len(labels)
        twin = self.copy()
        for place in range(start, len(labels)):
            label = labels[place]
            if label is not None and label not in twin.places:
                twin.see(label, count=False)
                if twin.outputs > 1:
                    return place
        return len(labels)

    def count(self, labels: Sequence[Label | None]) -> None:
        """Remember labels that ``read`` returned, in this order."""
        for label in dict.fromkeys(labels):
            if label is not None:
                self.counts[self.see(label, count=False)] += labels.count(label)

    @property
    def outputs(self) -> int:
        """Numbers that an expert gives for a row: one for two labels, else one for each."""
        return 1 if len(self.seen) <= 2 else len(self.seen)

    def target(self, place: int) -> float:
        """Return what the experts learn for a label's place: +1 or -1, its place, or NaN without a label."""
        if place < 0:
            return UNLABELLED
        return float(place) if self.outputs > 1 else (-1.0 if place else 1.0)

    def weight(self, place: int, more: int = 0) -> float:
        """Return how much the label at a place weighs, once it was seen so many times more."""
        if place < 0 or self.class_weight is None:
            return 1.0
        if isinstance(self.class_weight, Mapping):
            return float(self.class_weight.get(self.seen[place], 1.0))
        own = self.counts[place] + more
        present = sum(1 for count in self.counts if count) + (own > 0 and self.counts[place] == 0)
        weight = (sum(self.counts) + more) / (present * own)
        return min(max(weight, 1.0 / LARGEST_WEIGHT), LARGEST_WEIGHT)

    def log_odds(self) -> list[float]:
        """Return the log odds of the first of two classes, or of each of several, by how often each was seen.

        >>> labels = Labels()
        >>> labels.count(["a"] * 7 + ["b"] * 2)
        >>> [round(value, 2) for value in labels.log_odds()]
        [0.69]
        """
        seen = [count + FEW_LABELS for count in self.counts] + [FEW_LABELS] * max(0, 2 - len(self.counts))
        total = sum(seen)
        odds = [log(count / (total - count)) for count in seen]
        return odds[: self.outputs]

    def decide(self, output: Any) -> Label | None:
        """Return the predicted label: None before any was seen, the only one while there is one."""
        if len(self.seen) < 2:
            return self.seen[0] if self.seen else None
        if output is None:
            return self.commonest()
        if self.outputs == 1:
            return self.seen[0] if output >= 0.0 else self.seen[1]
        best: int = output.index(max(output))
        return self.seen[best]

    def commonest(self) -> Label:
        """Return the label that was seen most often so far; of equals, and in the paper's model, the first."""
        return self.seen[0] if self.binary else self.seen[self.counts.index(max(self.counts))]

    def probabilities(self, output: Any) -> dict[Label, float]:
        """Return the probability of each label: ``sigmoid(score)`` of two, uncalibrated for a hinge loss."""
        if len(self.seen) < 2:
            return dict.fromkeys(self.seen, 1.0)
        if output is None:
            return self.shares()
        if self.outputs == 1:
            positive = sigmoid(float(output))
            return {self.seen[0]: positive, self.seen[1]: 1.0 - positive}
        return dict(zip(self.seen, map(float, output), strict=True))

    def probabilities_many(self, outputs: Floats) -> Floats:
        """Return the probability of each label, a column each, for every row."""
        if len(self.seen) < 2:
            return np.ones((len(outputs), len(self.seen)))
        if self.outputs == 1:
            scores = np.clip(outputs[:, 0], -745.0, 745.0)
            positive = 1.0 / (1.0 + np.exp(-scores))
            found = np.column_stack([positive, 1.0 - positive])
        else:
            found = np.array(outputs)
        found[np.isnan(outputs[:, 0])] = list(self.shares().values())
        return found

    def shares(self) -> dict[Label, float]:
        """Return how likely each label is where nothing of a row is known: by how often it was seen."""
        if self.binary:
            return dict.fromkeys(self.seen, 0.5)
        total = sum(self.counts) + len(self.seen)
        return {label: (count + 1.0) / total for label, count in zip(self.seen, self.counts, strict=True)}

    def decide_many(self, outputs: Floats) -> tuple[npt.NDArray[np.object_], Floats]:
        """Return the predicted label of each row and its probability; NaN: nothing of the row is known."""
        rows = len(outputs)
        if len(self.seen) < 2:
            labels = np.full(rows, self.seen[0] if self.seen else None, dtype=object)
            return labels, np.full(rows, 1.0 if self.seen else np.nan)
        known = np.array([*self.seen, None], dtype=object)[:-1]
        if self.outputs == 1:
            scores = outputs[:, 0]
            probability = 1.0 / (1.0 + np.exp(-np.minimum(np.abs(scores), 745.0)))
            best = (scores < 0.0).astype(np.int64)
        else:
            best = np.argmax(outputs, axis=1)
            probability = outputs[np.arange(rows), best]
        unknown = np.isnan(outputs[:, 0])
        label, shares = self.commonest(), self.shares()
        best[unknown], probability[unknown] = self.seen.index(label), shares[label]
        return known[best], probability

    def state(self) -> dict[str, Any]:
        """Return everything kept, as plain values."""
        weight = self.class_weight
        pairs = [[label, value] for label, value in weight.items()] if isinstance(weight, Mapping) else weight
        return {
            "seen": self.seen,
            "counts": self.counts,
            "fixed": self.fixed,
            "binary": self.binary,
            "class_weight": pairs,
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Labels:
        """Return the labels of ``state``; ValueError for anything else."""
        weight = state["class_weight"]
        labels = cls(
            binary=bool(state["binary"]), class_weight=dict(weight) if isinstance(weight, list) else weight
        )
        for label, count in zip(state["seen"], state["counts"], strict=True):
            if not isinstance(count, int) or not 0 <= count < 1 << 62 or label is None:
                raise ValueError("a label was seen no number of times")
            place = labels.see(labels.read(label), count=False)
            if place != len(labels.counts) - 1:
                raise ValueError("a label is there twice")
            labels.counts[place] = count
        labels.fixed = bool(state["fixed"])
        return labels

    @property
    def nbytes(self) -> int:
        """Bytes of the labels: room for text and a count each, and for two at least."""
        return (LABEL_ROOM + 8) * max(2, len(self.seen))


def _checked_weights(weights: ClassWeight) -> ClassWeight:
    if weights is None or weights == "balanced":
        return weights
    if isinstance(weights, Mapping):
        plain = {_plain(label): float(weight) for label, weight in weights.items()}
        if None not in plain and all(0.0 < weight <= LARGEST_WEIGHT for weight in plain.values()):
            return plain
    raise ValueError(
        "class_weight must be None, 'balanced' or a dict from labels to weights above 0 and "
        f"at most {LARGEST_WEIGHT:.0f}, not {weights!r}."
    )


def _plain(label: Any) -> Label | None:
    """Return a label as str, bool or int, None for an unlabelled row. True and 1 are the same label."""
    if label is None or (isinstance(label, (float, np.floating)) and label != label):
        return None
    if isinstance(label, str):
        if not label:
            raise ValueError("An empty text is no label; pass None where a row's label is not known.")
        size = len(utf8(label, "label"))
        if size > LABEL_ROOM:
            raise ValueError(f"A label may have {LABEL_ROOM} bytes of text, not {size}.")
        return str(label)
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    whole = isinstance(label, (int, np.integer)) and is_number(label)
    if not whole and not (isinstance(label, (float, np.floating)) and float(label).is_integer()):
        raise ValueError(f"A label must be text, a whole number or a bool, not {short(label)}.")
    if not -(1 << 63) <= int(label) < 1 << 63:
        raise ValueError(f"A label may be a whole number of 64 bits, not {short(label)}.")
    return int(label)


def sigmoid(z: float) -> float:
    """Logistic function ``1 / (1 + exp(-z))``, without overflow."""
    e = exp(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0 else e / (1.0 + e)
