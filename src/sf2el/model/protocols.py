"""What an engine asks of its parts: targets, and a strategy that gives spaces their experts within bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sf2el.events import Happened
from sf2el.features.policies import FeaturePolicy

if TYPE_CHECKING:
    from sf2el.core._native import State


class Targets(Protocol):
    """What is known of labels or numbers."""

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        ...

    @property
    def outputs(self) -> int:
        """Numbers that an expert gives for a row."""
        ...

    def counted(self, key: Any, value: Any) -> Targets:
        """Return what is known once a row is learned, with this value for the key."""
        ...

    def log_odds(self) -> list[float]:
        """Return where a new expert's constant starts, one for each output; nothing where that is unknown."""
        ...


class Strategy(Protocol):
    """Which experts and maps there are, and in how many bytes."""

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        ...

    @property
    def policy(self) -> FeaturePolicy:
        """What decides on spaces."""
        ...

    def size(self) -> str:
        """Return what a model without a budget says of its size."""
        ...

    def new_state(self) -> State:
        """Return a state without any space."""
        ...

    def check_least(self, budget: int, own: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model beside ``own`` bytes."""
        ...

    def arrange(self, state: State, available: int | None, odds: Sequence[float]) -> list[Happened]:
        """Give every space what the bytes allow, in place; return what there is to tell.

        ``available`` are bytes for all of the state; None: no limit. Raises NoRoomError where even the least
        model does not fit.
        """
        ...

    def rung(self, state: State, available: int) -> int | None:
        """Return the place of the highest rung of the ladder that fits so many bytes; None where there is none."""
        ...

    def fits(self, state: State, budget: int | None) -> bool:
        """Whether a state is one that this strategy has made, with a budget if it needs one."""
        ...

    def full_grown(self, state: State) -> bool:
        """Whether the experts are as large as they ever get: more bytes would not be used."""
        ...

    def content(self) -> dict[str, Any]:
        """Return the parameters as plain values, for a file."""
        ...
