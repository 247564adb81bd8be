"""A stream whose features change any number of times, round by round or period by period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import check_whole, plain_numbers
from sf2el.streams.two_spaces import Floats, Mask, TwoSpaceStream

Label = str | int | float | bool

MOST_ROUNDS = 1 << 40


@dataclass(frozen=True, eq=False)
class Space:
    """A feature space and the rounds ``start`` to ``stop - 1`` in which it is observed."""

    name: str
    start: int
    rows: Floats

    @property
    def stop(self) -> int:
        """The round after its last."""
        return self.start + len(self.rows)

    @property
    def features(self) -> list[str]:
        """Names of its features: ``s1_0``, ``s1_1``, ..."""
        return [f"{self.name}_{column}" for column in range(self.rows.shape[1])]


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a stream.

    Attributes
    ----------
    index
        The round, counted from 0.
    x
        The features observed, by name.
    y
        The label revealed in this round, or None.
    truth
        The label with hindsight, for evaluation only.
    late
        Labels of earlier rounds that arrive now: (round, label) pairs.
    """

    index: int
    x: dict[str, float]
    y: Label | None
    truth: Label
    late: tuple[tuple[int, Label], ...] = ()


@dataclass(frozen=True, eq=False)
class Period:
    """Consecutive rounds with the same features: each space's rows, the labels, and which are revealed."""

    start: int
    rows: dict[str, Floats]
    y: npt.NDArray[Any]
    labelled: Mask

    @property
    def stop(self) -> int:
        """The round after its last."""
        return self.start + len(self.y)

    @property
    def spaces(self) -> tuple[str, ...]:
        """Names of the spaces observed."""
        return tuple(self.rows)


@dataclass(frozen=True, eq=False)
class EvolvingStream:
    """Feature spaces one after another, each overlapping the next for a few rounds.

    Iterating gives a :class:`Round` at a time. With ``label_delay`` = k > 0 no label is revealed in its own
    round: the label of round t comes in round t + k, as a ``late`` event.

    Attributes
    ----------
    spaces
        The spaces in order of appearance; together they cover all rounds.
    y
        The labels of all rounds.
    labelled
        Which rounds' labels are ever revealed.
    label_delay
        How many rounds late a label comes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(4.0).reshape(4, 1)
    >>> spaces = (Space("s1", 0, X[:2]), Space("s2", 1, 10 * X[1:]))
    >>> stream = EvolvingStream(spaces, np.array([1, -1, 1, -1]), np.array([True, False, True, True]), 1)
    >>> for step in stream:
    ...     print(step.x, step.late)
    {'s1_0': 0.0} ()
    {'s1_0': 1.0, 's2_0': 10.0} ((0, 1),)
    {'s2_0': 20.0} ()
    {'s2_0': 30.0} ((2, 1),)
    >>> stream.pending
    ((3, -1),)
    """

    spaces: tuple[Space, ...]
    y: npt.NDArray[Any]
    labelled: Mask
    label_delay: int = 0

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_whole("label_delay", self.label_delay, 0, MOST_ROUNDS)
        reached = 0
        for space in self.spaces:
            if not 0 <= space.start <= reached or space.stop < reached:
                raise ValueError(f"Space {space.name} must begin by round {reached} and end no earlier.")
            reached = space.stop
        if len({space.name for space in self.spaces}) < len(self.spaces):
            raise ValueError("Each space must have a name of its own.")
        if not len(self.y) == len(self.labelled) == reached:
            raise ValueError(f"y and labelled must have {reached} entries, one for each round.")

    def __len__(self) -> int:
        return len(self.y)

    def __iter__(self) -> Iterator[Round]:
        labels, labelled, delay = plain_labels(self.y), self.labelled.tolist(), self.label_delay
        for period in self.periods():
            names = [name for space in self.spaces if space.name in period.rows for name in space.features]
            rows = np.hstack(list(period.rows.values())).tolist()
            for index, row in enumerate(rows, start=period.start):
                told = labels[index] if labelled[index] and not delay else None
                due = index - delay
                late = ((due, labels[due]),) if delay and due >= 0 and labelled[due] else ()
                yield Round(index, dict(zip(names, row, strict=True)), told, labels[index], late)

    @property
    def pending(self) -> tuple[tuple[int, Label], ...]:
        """Labels that would arrive after the last round: (round, label) pairs."""
        labels = plain_labels(self.y)
        last = range(max(0, len(self) - self.label_delay), len(self))
        return tuple((index, labels[index]) for index in last if self.labelled[index])

    def row(self, index: int) -> dict[str, float]:
        """Return the features of a round by name, as when it was observed."""
        if not 0 <= index < len(self):
            raise IndexError(f"The stream has rounds 0 to {len(self) - 1}, not {index}.")
        return {
            name: value
            for space in self.spaces
            if space.start <= index < space.stop
            for name, value in zip(space.features, space.rows[index - space.start].tolist(), strict=True)
        }

    def periods(self) -> list[Period]:
        """Return the stream cut where its features change."""
        edges = sorted({edge for space in self.spaces for edge in (space.start, space.stop)})
        return [
            Period(
                start,
                {
                    space.name: space.rows[start - space.start : stop - space.start]
                    for space in self.spaces
                    if space.start <= start < space.stop
                },
                self.y[start:stop],
                self.labelled[start:stop],
            )
            for start, stop in pairwise(edges)
        ]

    def two_spaces(self, cycle: int = 0) -> TwoSpaceStream:
        """Return one cycle, the spaces ``cycle`` and ``cycle + 1``, as the eight methods take it."""
        if not 0 <= cycle < len(self.spaces) - 1:
            raise ValueError(f"cycle must be from 0 to {len(self.spaces) - 2}, not {cycle}.")
        if self.label_delay:
            raise ValueError("The eight methods take labels at once: build the stream with label_delay=0.")
        old, new = self.spaces[cycle], self.spaces[cycle + 1]
        rounds = slice(old.start, new.stop)
        y = self.y[rounds]
        if not np.all((y == 1) | (y == -1)):
            kinds = ", ".join(map(repr, dict.fromkeys(plain_labels(y)[:3])))
            raise ValueError(
                f"The eight methods take labels +1 and -1 only, and these are like {kinds}: build the stream "
                "with y = np.where(y == positive, 1, -1)."
            )
        return TwoSpaceStream(
            old.rows, new.rows, y.astype(np.float64), self.labelled[rounds], old.stop - new.start
        )


def plain_labels(y: npt.NDArray[Any]) -> list[Label]:
    """Return labels as Python objects; whole numbers as int, since that is what a class is.

    >>> plain_labels(np.array([1.0, -1.0])), plain_labels(np.array([0.5, 1.0]))
    ([1, -1], [0.5, 1.0])
    """
    if y.dtype.kind == "f" and np.all(y == np.round(y)):
        y = y.astype(np.int64)
    labels: list[Label] = y.tolist()
    return labels
