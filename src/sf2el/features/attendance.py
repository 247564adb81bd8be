"""How often features are there: who is away for how long, at what pace each comes, and who is new."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sf2el.inputs.rows import Names, ordered

LATELY = 5
"""Rows after which a feature that was in every row is gone; one that comes at a slower pace has longer."""

SLOWEST = 100
"""Rows between two readings beyond which no pace is remembered."""

ENOUGH, NOTED = 3, 8
"""Rows in which a new feature must have been there to be taken up, of so many: every third row is enough."""

RARELY = 5
"""Readings after which one is taken up that comes at a slower pace."""

FORGOTTEN = 20
"""Rows without it after which a new feature is forgotten."""

_ALL = (1 << NOTED) - 1


@dataclass(slots=True)
class Attendance:
    """How long the features of spaces have been away, and the pace at which each comes.

    A feature that is read every tenth row is not gone after five. It is gone once it has been away for twice
    as many rows as it lately took to come again, and for 5 at least. Those counts end there, so that one long
    outage makes no slow pace: a pace is found in a few readings, each of which can no more than double it.

    Examples
    --------
    >>> attendance = Attendance()
    >>> for row in ["ab", *["a", "a", "a", "ab"] * 3, *["a"] * 7]:
    ...     _ = attendance.count(set("ab") - set(row))
    >>> attendance.pace, attendance.away("b"), attendance.gone("ab")
    ({'b': 4}, 7, set())
    >>> attendance.count({"b"}), attendance.gone("ab")
    (True, {'b'})
    """

    absent: dict[Hashable, int] = field(default_factory=dict)
    """Rows since each feature was last there, where that is not now."""
    pace: dict[Hashable, int] = field(default_factory=dict)
    """Rows that each lately took to come again, where that is more than one."""

    def copy(self) -> Attendance:
        """Return counts that go their own way."""
        return Attendance(dict(self.absent), dict(self.pace))

    @property
    def full(self) -> bool:
        """Whether all features are there, and have been: another such row changes nothing."""
        return not self.absent and not self.pace

    def count(self, missing: Collection[Hashable]) -> bool:
        """Count a row that has all features but these; return whether one of them is gone as of now."""
        for name in (self.absent.keys() | self.pace.keys()).difference(missing):
            self._came(name)
        lost = False
        for name in missing:
            before, most = self.absent.get(name, 0), self.patience(name)
            self.absent[name] = min(before + 1, most)
            lost = lost or before == most - 1
        return lost

    def _came(self, name: Hashable) -> None:
        took, pace = self.absent.pop(name, 0) + 1, self.pace.pop(name, 1) - 1
        if max(took, pace) > 1:
            self.pace[name] = min(max(took, pace), SLOWEST)

    def patience(self, name: Hashable) -> int:
        """Return after how many rows without it a feature is gone."""
        return max(LATELY, 2 * self.pace.get(name, 1))

    def away(self, name: Hashable) -> int:
        """Return how many rows ago a feature was last there, as far as that is counted."""
        return self.absent.get(name, 0)

    def overdue(self, name: Hashable) -> bool:
        """Whether a feature has been away for longer than it lately took to come again."""
        return self.away(name) > self.pace.get(name, 1)

    def is_gone(self, name: Hashable) -> bool:
        """Whether a feature is gone."""
        return self.away(name) >= self.patience(name)

    def gone(self, names: Iterable[Hashable]) -> set[Hashable]:
        """Return which of these features are gone."""
        return {name for name in names if name in self.absent and self.is_gone(name)}

    def begin(self, name: Hashable, pace: int) -> None:
        """Count a feature that has just been there, and comes at this pace."""
        if pace > 1:
            self.pace[name] = pace

    def slow(self, names: Iterable[Hashable], pause: int) -> Names:
        """Return which of these features need not be gone though none is there: all others came more often.

        ``pause`` is how long none of them has been there before.
        """
        most = max(LATELY, pause)
        return tuple(name for name in names if self.pace.get(name, 1) > most and not self.overdue(name))

    def keep(self, names: Container[Hashable]) -> None:
        """Forget all features but these."""
        self.absent = {name: rows for name, rows in self.absent.items() if name in names}
        self.pace = {name: rows for name, rows in self.pace.items() if name in names}


class Mark(NamedTuple):
    """When a feature of no space was there: a bit for each of the last rows, the latest the lowest.

    ``readings`` counts all rows that had it, up to those that are enough; ``away`` the rows since the last.
    """

    lately: int = 1
    readings: int = 1
    away: int = 0

    def after(self, there: bool) -> Mark:
        """Return the mark one row later."""
        readings = min(self.readings + there, RARELY)
        return Mark((self.lately << 1) & _ALL | there, readings, 0 if there else self.away + 1)

    @property
    def rising(self) -> bool:
        """Whether the feature was there often enough to be taken up."""
        return self.often or (self.readings >= RARELY and not self.away)

    @property
    def often(self) -> bool:
        """Whether it was there in many of the last rows."""
        return self.lately.bit_count() >= ENOUGH

    @property
    def pace(self) -> int:
        """At what pace it may be said to come: one that comes rarely may stay away until it is forgotten."""
        return 1 if self.often else FORGOTTEN // 2


@dataclass(slots=True)
class Strangers:
    """Features that belong to no space yet, in no more bytes than there is room for.

    Examples
    --------
    >>> strangers = Strangers()
    >>> for row in ["x", *["", "", "", "", "y", "x"] * 4]:
    ...     _ = strangers.count(set(row), set())
    >>> strangers.rising(), strangers.marks["y"].readings
    (['x'], 4)
    """

    room: int | None = None
    """Bytes of their names and marks; None for any number."""
    marks: dict[Hashable, Mark] = field(default_factory=dict)

    def copy(self) -> Strangers:
        """Return marks that go their own way."""
        return replace(self, marks=dict(self.marks))

    def count(self, row: set[Hashable], known: set[Hashable]) -> Names:
        """Count a row's features but the known ones; return those that there is no room to note."""
        marks = {name: mark.after(name in row) for name, mark in self.marks.items()}
        self.marks = {name: mark for name, mark in marks.items() if mark.away < FORGOTTEN}
        unnoted = []
        for name in ordered(row - known - self.marks.keys()):
            if self._makes_room(name):
                self.marks[name] = Mark()
            else:
                unnoted.append(name)
        return tuple(unnoted)

    def _makes_room(self, name: Hashable) -> bool:
        """Return whether there is room for one more, at the cost of those that were not there lately."""
        if self.room is None:
            return True
        left = self.room - self.nbytes - _bytes_of(name)
        stale = [name for name, mark in self.marks.items() if not mark.lately]
        stale.sort(key=lambda name: -self.marks[name].away)
        if left + sum(map(_bytes_of, stale)) < 0:
            return False
        for old in stale:
            if left >= 0:
                break
            left += _bytes_of(old)
            del self.marks[old]
        return True

    def rising(self) -> list[Hashable]:
        """Return those that were there often enough to be taken up."""
        return [name for name, mark in self.marks.items() if mark.rising]

    def forget(self, names: Iterable[Hashable]) -> None:
        """Forget features: they belong to a space now, or there is none for them."""
        for name in names:
            self.marks.pop(name, None)

    def shrink(self, room: int) -> None:
        """Have only so many bytes from now on."""
        self.room = room
        while self.nbytes > room:
            self.marks.popitem()

    @property
    def nbytes(self) -> int:
        """Bytes of the names, and two for each mark."""
        return sum(map(_bytes_of, self.marks))


def _bytes_of(name: Hashable) -> int:
    return len(str(name).encode()) + 2
