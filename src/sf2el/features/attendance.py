"""How often features are there: what the core counts, as a policy sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sf2el.inputs.rows import sort_key

if TYPE_CHECKING:
    from sf2el.core._native import State


class Attendance:
    """The features of the row at hand and those of each space, by ids in the order of their names.

    A feature is gone once it has been away for twice as many rows as it lately took to come again, and for 5 at
    least. A new one rises when it was there in 3 of the last 8 rows, or five times at a slower pace. Its second
    reading is enough beside a young space, and where more than a quarter as many come together as there are.
    """

    def __init__(self, state: State, present: Iterable[int]) -> None:
        self._state = state
        self.rows: int = state.rows
        self.spaces: int = state.spaces
        self.present = self._sorted(present)
        self.vanished: bool = state.vanished
        self.young_until: int = state.young_until
        self.opened_at: int = state.opened_at
        self.lost_at: int = state.lost_at
        self.current_since: int = state.current_since
        self._incoming: bool = state.incoming

    @property
    def current(self) -> list[int]:
        """The features of the current space."""
        return self.ids(self.spaces - (2 if self._incoming else 1))

    @property
    def incoming(self) -> list[int] | None:
        """The features of the space beside the current one."""
        return self.ids(self.spaces - 1) if self._incoming else None

    @property
    def returned(self) -> bool:
        """Whether the space beside the current one had ended before."""
        if not self._incoming:
            return False
        (_, _, _, own, *_), (_, _, _, other, *_) = (
            self._state.space(self.spaces - 1),
            self._state.space(self.spaces - 2),
        )
        return bool(own < other)

    def ids(self, space: int) -> list[int]:
        """Return the features of a space, in the order in which they came."""
        return list(self._state.space(space)[0])

    def rising(self) -> list[int]:
        """Return new features of the row that have been there often enough."""
        young = not self._incoming and self.rows < self.young_until
        again = self._state.rising(2)
        found = again if young or len(again) > max(1, len(self.current) // 4) else self._state.rising(5)
        if self._incoming:
            own = set(self.ids(self.spaces - 1))
            found = [one for one in found if one not in own]
        return self._sorted(found)

    def since(self, ids: Iterable[int]) -> int:
        """Return how many rows ago the first of these new features was there."""
        return int(self._state.seen_since(list(ids)))

    def gone(self, ids: Iterable[int]) -> list[int]:
        """Return which of these features are gone."""
        return list(self._state.gone(list(ids)))

    def pace(self, feature: int) -> int:
        """Return how many rows a feature lately took to come again."""
        return int(self._state.feature(feature)[1])

    def _sorted(self, ids: Iterable[int]) -> list[int]:
        found = list(ids)
        names = dict(zip(found, self._state.names(found), strict=True))
        return sorted(found, key=lambda one: sort_key(names[one]))
