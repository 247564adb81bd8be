"""Labels of the user's kind, and the +1 / -1 of the learners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sf2el.losses import sigmoid

Label = str | int
LABEL_ROOM = 64
"""Bytes of text that a label may have."""

UNLABELLED = float("nan")


class BinaryLabels:
    """Two labels. The first one seen, or the first of ``classes``, is the positive one.

    Examples
    --------
    >>> labels = BinaryLabels()
    >>> labels.decide(0.3) is None
    True
    >>> labels.encode("wet"), labels.encode(None)
    ((1.0, 'wet'), (nan, None))
    """

    def __init__(self, classes: Sequence[Any] | None = None) -> None:
        self.seen: list[Label] = []
        if classes is not None and (isinstance(classes, str) or not isinstance(classes, Iterable)):
            raise ValueError(f"classes must name two different labels, not {classes!r}.")
        for label in classes or ():
            _, known = self.encode(label)
            self.see(known)
        if classes is not None and len(self.seen) != 2:
            raise ValueError(f"classes must name two different labels, not {list(classes)!r}.")

    def encode(self, label: Any) -> tuple[float, Label | None]:
        """Return a label as +1, -1 or NaN (None: unlabelled), and as what ``see`` takes; change nothing."""
        plain = _plain(label)
        if plain is None:
            return UNLABELLED, None
        if plain in self.seen:
            return (1.0 if plain == self.seen[0] else -1.0), plain
        if self.seen and isinstance(plain, str) != isinstance(self.seen[0], str):
            raise ValueError(
                f"Labels so far were like {self.seen[0]!r}; {label!r} is of another type: "
                "pass all labels as text or all as whole numbers."
            )
        if len(self.seen) == 2:
            raise ValueError(
                f"This model is binary and knows the labels {self.seen[0]!r} and {self.seen[1]!r}; "
                f"it cannot take {label!r}."
            )
        return (-1.0 if self.seen else 1.0), plain

    def see(self, label: Label | None) -> None:
        """Remember a label that ``encode`` returned."""
        if label is not None and label not in self.seen:
            self.seen.append(label)

    def decide(self, score: float) -> Label | None:
        """Return the predicted label: None before any was seen, the only one while there is one."""
        if len(self.seen) < 2:
            return self.seen[0] if self.seen else None
        return self.seen[0] if score >= 0.0 else self.seen[1]

    def probabilities(self, score: float) -> dict[Label, float]:
        """Return ``sigmoid(score)`` by label; with a hinge loss it is uncalibrated."""
        if len(self.seen) < 2:
            return dict.fromkeys(self.seen, 1.0)
        positive = sigmoid(score)
        return {self.seen[0]: positive, self.seen[1]: 1.0 - positive}


def _plain(label: Any) -> Label | None:
    """Return a label as str or int, None for an unlabelled row."""
    if label is None or (isinstance(label, (float, np.floating)) and label != label):
        return None
    if isinstance(label, str):
        if len(label.encode()) > LABEL_ROOM:
            raise ValueError(f"A label may have {LABEL_ROOM} bytes of text, not {len(label.encode())}.")
        return str(label)
    if isinstance(label, (bool, int, np.bool_, np.integer)):
        return int(label)
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return int(label)
    raise ValueError(f"A label must be text, a whole number or a bool, not {label!r}.")
