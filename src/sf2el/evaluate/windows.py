"""Consecutive windows of rounds, as many as fit, each twice as long when there are too many."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from sf2el.evaluate.scores import AnyScores

MOST = 1000
"""Windows kept: one more, and each two become one."""
SLICES = 10
"""Steps that a moving window takes to move by its own length; a shorter one moves by one round."""


@dataclass(frozen=True)
class Part:
    """Consecutive rounds ``start`` to ``stop - 1``, how many of them could be scored, and their metrics."""

    start: int
    stop: int
    scored: int
    metrics: dict[str, float]
    label: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the part as JSON can hold it: NaN becomes None."""
        named = {} if self.label is None else {"label": self.label}
        return named | {
            "start": self.start,
            "stop": self.stop,
            "scored": self.scored,
            "metrics": plain(self.metrics),
        }


class Windows(Generic[AnyScores]):
    """Windows of ``length`` rounds one after another, and one that moves over them.

    The moving window is as long, and moves by a tenth of it, rounded: the k-th step ends at round
    ``k * length // 10``, so that any ten steps are ``length`` rounds. Rounds come in slices of at most
    ``room``. Memory O(``most``), however many rounds there are.

    Examples
    --------
    >>> from sf2el.evaluate.counts import Counts
    >>> windows = Windows(Counts, 2, most=2)
    >>> for right in (1, 0, 1, 1, 1, 1):
    ...     one = Counts()
    ...     one.add(1, right)
    ...     windows.add(one, 1)
    >>> [(part.start, part.stop, part.metrics["accuracy"]) for part in windows.parts()]
    [(0, 4, 0.75), (4, 6, 1.0)]
    """

    def __init__(
        self, make: Callable[[], AnyScores], length: int, *, most: int = MOST, moving: bool = True
    ) -> None:
        self.make, self.length, self.most = make, length, most
        self.rounds = 0
        self.closed: list[AnyScores] = []
        self.open = make()
        self._moving = moving
        self._window = length  # the moving one's, which is not doubled
        self._slices: deque[AnyScores] = deque(maxlen=min(SLICES, length))
        self._slice = make()
        self._stride, self._steps = 1, 0
        self._points: list[Part] = []

    @property
    def room(self) -> int:
        """Rounds that the next slice may have at most."""
        left = self.length - self.rounds % self.length
        return min(left, self._edge(self._steps + 1) - self.rounds) if self._moving else left

    def add(self, scores: AnyScores, rounds: int) -> None:
        """Add the next rounds, no more than ``room``."""
        self.open.merge(scores)
        if self._moving:
            self._slice.merge(scores)
        self.advance(rounds)

    def advance(self, rounds: int) -> None:
        """Go on by rounds, no more than ``room``, that are in the ``open`` window already."""
        if rounds > self.room:
            raise ValueError(f"The next slice has room for {self.room} rounds, not {rounds}.")
        self.rounds += rounds
        if self._moving and self.rounds == self._edge(self._steps + 1):
            self._move()
        if self.rounds % self.length == 0:
            self.closed.append(self.open)
            self.open = self.make()
            while len(self.closed) >= max(2, self.most):
                self._double()

    def parts(self) -> list[Part]:
        """Return the windows, the last one perhaps unfinished."""
        every = [*self.closed, self.open] if self.rounds % self.length else self.closed
        return [
            Part(
                number * self.length,
                min((number + 1) * self.length, self.rounds),
                scores.rounds,
                scores.metrics(),
            )
            for number, scores in enumerate(every)
        ]

    def moving(self) -> list[Part]:
        """Return the moving window at regular rounds."""
        return list(self._points)

    def _edge(self, step: int) -> int:
        """Return the round at which a step of the moving window ends."""
        return step * self._window // min(SLICES, self._window)

    def _move(self) -> None:
        self._slices.append(self._slice)
        self._slice = self.make()
        self._steps += 1
        if self._steps % self._stride:
            return
        total = self.make()
        for scores in self._slices:
            total.merge(scores)
        start = self._edge(self._steps - len(self._slices))
        self._points.append(Part(start, self.rounds, total.rounds, total.metrics()))
        if len(self._points) > self.most:
            self._stride *= 2
            self._points = self._points[1::2]

    def _double(self) -> None:
        """Join each two windows; an odd one at the end is open again."""
        pairs = zip(self.closed[::2], self.closed[1::2], strict=False)
        odd = len(self.closed) % 2
        joined = []
        for first, second in pairs:
            first.merge(second)
            joined.append(first)
        if odd:
            self.open = self.closed[-1]
        self.closed, self.length = joined, self.length * 2

    def state(self) -> dict[str, Any]:
        """Return the windows as JSON can hold them; the moving one is not in it."""
        if self._moving:
            raise ValueError("A moving window is not kept; make the windows with moving=False.")
        return {
            "length": self.length,
            "rounds": self.rounds,
            "closed": [scores.state() for scores in self.closed],
            "open": self.open.state(),
        }

    def set_state(self, state: dict[str, Any], read: Callable[[Any], AnyScores]) -> None:
        """Take over what ``state`` returned; ``read`` makes scores of their own state."""
        self.length, self.rounds = int(state["length"]), int(state["rounds"])
        self.closed = [read(scores) for scores in state["closed"]]
        self.open = read(state["open"])


def plain(metrics: dict[str, float]) -> dict[str, float | None]:
    """Return metrics as JSON can hold them: NaN becomes None.

    >>> plain({"auc": float("nan"), "kappa": 0.5})
    {'auc': None, 'kappa': 0.5}
    """
    return {name: value if value == value else None for name, value in metrics.items()}
