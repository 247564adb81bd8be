"""Which features are alive: the periods of a stream, found from the rows' own keys."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from sf2el.features.attendance import LATELY, Attendance, Strangers
from sf2el.inputs.rows import Names, ordered

STEADY = 10
"""Rows without a further loss after which the surviving half of a space is shared with the next one.

Where more than half survive, that takes ``LATE_ROWS``."""

LATE_ROWS = 50
"""Rows that a few new features must have been beside all old ones to join their space."""

LONG = 200
"""Rows alone from which a space's experts know too much to be changed for a feature's successor."""

MANY_ROWS = 1000
"""Rows after which many new features beside all old ones stay, however long those had been alone."""

FIRST_ROWS = 3
"""Rows at the very beginning in which many new features mean that the first row was incomplete."""

LONGEST_PAUSE = 20
"""Rows between two with a feature of the current space beyond which the pause is an end."""


class Kind(Enum):
    """What a row can do to the feature spaces."""

    OPEN = "a space opens beside the current one"
    RETURN = "the space before comes back beside the current one"
    WIDEN = "features join the space that has opened"
    JOIN = "late features join the current space"
    GROW = "the opened space and the current one go on as one"
    CLOSE = "the space that had opened is gone again"
    SWAP = "the current space is gone, the opened one goes on"
    REVERT = "the space that was thought gone is back"
    SURE = "the space is gone for good"


class Change(NamedTuple):
    """A change of the spaces: the features that it brings, and how many rows ago it began."""

    kind: Kind
    names: Names
    ago: int = 0


@dataclass(slots=True)
class Tracker:
    """The feature spaces of a stream, row by row.

    A new feature is taken up once it was there in 3 of 8 rows, or five times at a slower pace; together such
    features open a space. Once one is open, the first row with none of the current features swaps to it, and
    four more make that certain: a current feature that shows up before then takes the swap back. Where rows
    without any of them have been before, it takes a longer pause than those. A space that has opened and is
    gone is forgotten. Where half of the current features are gone and the others stay for 10 rows more, the
    next space shares those; where fewer are gone, that takes 50. A few late features beside a space that
    loses none for 50 rows join it; many go on with it as one space, after 50 rows too, but not before they
    have been there for as long as it was alone, or for 1000 rows. A feature that dies alone changes nothing,
    until others come: where it died beside them and the space had been alone for 200 rows, or where a third
    of it is gone, those that are left and the new ones are the next space. Where the second or the third row
    has, beside those of the first one, two new features or more and at least as many, the first was
    incomplete, and they join it at once. Features of the space before bring it back; where half of it or less
    is there after 50 rows, those are new features. When a feature is gone, ``Attendance`` tells.

    Examples
    --------
    >>> tracker = Tracker(("a", "b"))
    >>> for row in ["ab", "abc", "abc", "abc", "c"]:
    ...     print(row, [(change.kind.name, change.names, change.ago) for change in tracker.step(row)])
    ab []
    abc []
    abc []
    abc [('OPEN', ('c',), 2)]
    c [('SWAP', ('c',), 0)]
    """

    current: Names
    upcoming: Names | None = None
    past: Names | None = None
    strangers: Strangers = field(default_factory=Strangers)
    """Features of no space yet."""
    attendance: Attendance = field(default_factory=Attendance)
    """Of the features of the current and the opened space."""
    pause: int = 1
    """Rows that the current space has taken to show any of its features again, at most."""
    doubt: int = 0
    """Rows until a swap is certain."""
    overlap: int = 0
    """Rows since the space beside the current one opened."""
    losses: int = 0
    """Rows since the current space last lost a feature."""
    alone: int = 0
    """Rows that the current space had to itself."""

    def copy(self) -> Tracker:
        """Return a tracker that goes its own way."""
        return replace(self, strangers=self.strangers.copy(), attendance=self.attendance.copy())

    def quiet(self) -> int:
        """Return how many rows of just the expected features change nothing but a count; 0: look at each."""
        if self.strangers.marks or not self.attendance.full or self.doubt:
            return 0
        if self.upcoming is None:
            return 1 << 60
        left = LATE_ROWS - self.losses
        if not self._few_new():
            left = max(left, self._rows_to_stay() - self.overlap)
        return max(0, left - 1)

    def expected(self) -> Names:
        """Return the features of the current space and of the one beside it."""
        return self.current if self.upcoming is None else self.current + self.own_upcoming()

    def known(self) -> Names:
        """Return the expected features and those of no space yet."""
        return (*self.expected(), *self.strangers.marks)

    def there_lately(self, name: Hashable) -> bool:
        """Whether a feature of the current or the opened space was in one of the last rows."""
        return self.attendance.away(name) < self.attendance.patience(name) - 1

    def dying(self) -> set[Hashable]:
        """Return features that are away for longer than usual, but for those gone before the others came."""
        late = filter(self.attendance.overdue, self.attendance.absent)
        return set(late) if self._lost() else {name for name in late if not self.attendance.is_gone(name)}

    def _lost(self) -> bool:
        """Whether a feature was lost since a space has opened beside the current one."""
        return self.losses < self.overlap - 1

    def few(self) -> int:
        """Return up to how many new features are late ones, and not the beginning of a space."""
        return max(1, len(self.current) // 4)

    def brings_many(self, row: Container[Hashable]) -> bool:
        """Whether a row has so many features of no space that they may be the beginning of one."""
        return sum(name in row for name in self.strangers.marks) > self.few()

    def own_upcoming(self) -> Names:
        """Return the features that only the opened space has."""
        current = set(self.current)
        return tuple(name for name in self.upcoming or () if name not in current)

    def skip(self, rows: int) -> None:
        """Pass over rows that have just the expected features: at most ``quiet()`` of them."""
        if self.upcoming is None:
            self.alone += rows
        else:
            self.overlap += rows
            self.losses += rows

    def step(self, present: Iterable[Hashable]) -> list[Change]:
        """Take in the features of a row; return what changes because of it, in order."""
        row = set(present)
        changes: list[Change] = []
        unnoted = self._count(row)
        if self.doubt:
            changes += self._doubted(row)
        changes += self._completed(row) or self._taken_up()
        if self.upcoming is None:
            self.alone += 1
        else:
            self.overlap += 1
            changes += self._beside(row, unnoted)
        return changes

    @property
    def settled(self) -> bool:
        """Whether there are the features of one space and no others, and no swap is in doubt."""
        return self.upcoming is None and not self.strangers.marks and not self.doubt

    def stay(self, missing: Collection[Hashable]) -> None:
        """Take in a row that has all current features but these and no others, where all is settled.

        That is what ``step`` would do, in less time.
        """
        self.alone += 1
        attendance = self.attendance
        if missing or attendance.absent or attendance.pace:
            self._end_pause()
            attendance.count(missing)

    def pass_over(self, present: Iterable[Hashable], names: Iterable[Hashable]) -> None:
        """Count a row whose new features there is no room for: the spaces stay as they are."""
        self._count(set(present))
        self.losses = 0
        self.strangers.forget(names)
        if self.upcoming is None:
            self.alone += 1
        else:
            self.overlap += 1

    # -- counting

    def _count(self, row: set[Hashable]) -> Names:
        """Count a row's features; return those of no space that there is no room to note."""
        known = set(self.current) | set(self.upcoming or ())
        if not row.isdisjoint(self.current):
            self._end_pause()
        lost = self.attendance.count(known - row)
        self.losses = 0 if lost or self.upcoming is None else self.losses + 1
        return self.strangers.count(row, known)

    def _end_pause(self) -> None:
        """Remember for how long none of the current features has been there."""
        self.pause = max(self.pause, min(self._away(self.current) + 1, LONGEST_PAUSE))

    def _away(self, names: Collection[Hashable]) -> int:
        """Return for how many rows all of these features have been away."""
        if len(self.attendance.absent) < len(names):
            return 0
        return min(map(self.attendance.away, names), default=1)

    def _lives(self, names: Names) -> bool:
        return 2 * len(self.attendance.gone(names)) < len(names)

    # -- what follows

    def _doubted(self, row: set[Hashable]) -> list[Change]:
        """After a swap: is the old space back, or gone for good?"""
        assert self.past is not None
        if row & (set(self.past) - set(self.current)):
            back, self.upcoming = self.past, self.current
            self.pause = LATELY - self.doubt + 1
            self.current, self.past, self.doubt = back, None, 0
            self.attendance = Attendance({name: 1 for name in self.expected() if name not in row})
            self.strangers.forget(self.expected())
            return [Change(Kind.REVERT, back)]
        self.doubt -= 1
        return [self._sure(LATELY - 1)] if self.doubt == 0 else []

    def _completed(self, row: set[Hashable]) -> list[Change]:
        """Features that the very first row should have had."""
        marks = self.strangers.marks
        first = self.past is None and self.upcoming is None and 0 < self.alone < FIRST_ROWS
        if not first or row.isdisjoint(self.current) or len(marks) < max(2, len(self.current)):
            return []
        if any(mark.lately.bit_length() > self.alone for mark in marks.values()):
            return []  # the first row had them: it is no space's first
        names = ordered(marks)
        self.strangers.forget(names)
        self.current += names
        return [Change(Kind.JOIN, names)]

    def _taken_up(self) -> list[Change]:
        """Features that were there often enough of late."""
        rising = self.strangers.rising()
        if not rising or self.doubt or (self.upcoming is not None and self.upcoming == self.past):
            return []
        ago = max(self.strangers.marks[name].lately.bit_length() for name in rising) - 1
        names = ordered(rising)
        for name in names:
            self.attendance.begin(name, self.strangers.marks[name].pace)
        self.strangers.forget(names)
        if self.upcoming is not None:
            self.upcoming = (*self.upcoming, *names)
            return [Change(Kind.WIDEN, names, ago)]
        self.overlap, self.losses = 0, 0
        if self.past is not None and set(names) & set(self.past) and self._mostly_gone(self.past):
            self.upcoming = self.past
            self.strangers.forget(self.past)
            return [Change(Kind.RETURN, self.past, ago)]
        self.upcoming = names
        return [Change(Kind.OPEN, names, ago)]

    def _mostly_gone(self, past: Names) -> bool:
        """Whether a space had to go for the current one; of one that has grown most features are there."""
        return 2 * len(set(past) - set(self.current)) >= len(past)

    def _beside(self, row: set[Hashable], unnoted: Names) -> list[Change]:
        """Two spaces are there: does one of them end?

        When the current one does, features that there was no room to note go on with the opened one.
        """
        assert self.upcoming is not None
        new = self.own_upcoming()
        old = set(self.current) - set(self.upcoming)
        gone = self.attendance.gone(old)
        if len(self.attendance.gone(new)) == len(new):
            names, ago = self.upcoming, self._away(new) - 1
            self._close()
            return [Change(Kind.CLOSE, names, ago)]
        away = self._away(old)
        if row & set(new) and not row & old and (away >= self.pause or gone == old):
            due_later = self.attendance.slow((name for name in self.current if name in old), self.pause)
            return self._swap(unnoted + due_later, away - 1, max(0, LATELY - away))
        steady = STEADY if 2 * len(gone) >= len(self.current) else LATE_ROWS
        if gone and not self._few_new() and self.losses >= steady and self._lives(new):
            shared = tuple(name for name in self.current if name not in gone and name not in self.upcoming)
            return self._swap(shared, LATELY + self.losses - 1, 0)
        if self.losses < LATE_ROWS:
            return []
        if self.upcoming == self.past and not self._lives(new):
            return self._partly_back()
        if not self._few_new():
            grown = not gone and self.overlap >= self._rows_to_stay()
            return self._grow(self.current) if grown else []
        if 3 * len(gone) >= len(self.current) or (gone and self._lost() and self.alone >= LONG):
            return self._grow(tuple(name for name in self.current if name not in gone))
        ago = self.overlap
        self.current += new
        self.pause = 1
        self._close()
        return [Change(Kind.JOIN, new, ago)]

    def _partly_back(self) -> list[Change]:
        """Of the space that was to come back only some features are there: they are new ones."""
        new = self.own_upcoming()
        gone = self.attendance.gone(new)
        back = tuple(name for name in new if name not in gone)
        self._close(back)
        self.upcoming = back
        return [Change(Kind.CLOSE, ordered(gone)), Change(Kind.OPEN, back)]

    def _close(self, still_there: Names = ()) -> None:
        self.alone += self.overlap
        self.upcoming, self.overlap, self.losses = None, 0, 0
        self.attendance.keep(self.current + still_there)

    def forget_past(self) -> None:
        """Forget the space before: it was dropped, and if its features come back they are new ones."""
        self.past, self.doubt = None, 0

    def _swap(self, others: Names, ago: int, doubt: int) -> list[Change]:
        changes = self._go_on(Kind.SWAP, others, ago)
        self.doubt = doubt
        return changes if doubt else [*changes, self._sure(ago)]

    def _grow(self, shared: Names) -> list[Change]:
        self.alone = self.overlap
        return self._go_on(Kind.GROW, shared, 0)

    def _sure(self, ago: int) -> Change:
        assert self.past is not None
        self.alone = 0
        return Change(Kind.SURE, self.past, ago)

    def _go_on(self, kind: Kind, others: Names, ago: int) -> list[Change]:
        """The opened space goes on, with these features of the current one or of none."""
        assert self.upcoming is not None
        others = tuple(name for name in others if name not in self.upcoming)
        self.current, self.past, self.upcoming = self.upcoming + others, self.current, None
        self.attendance.keep(self.current)
        self.overlap, self.losses, self.pause = 0, 0, 1
        return [Change(kind, self.current, ago)]

    def _rows_to_stay(self) -> int:
        """Return for how many rows many new features must be beside the current ones to stay."""
        return min(self.alone, MANY_ROWS)

    def _few_new(self) -> bool:
        return len(self.own_upcoming()) <= self.few() < len(self.current)
