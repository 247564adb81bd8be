"""Feature policies: which features are one space, and when a space opens, ends or comes back.

A policy sees attendance alone and returns plain transitions of feature ids. The core wakes it when a feature
asks for a decision (a new one has been there often enough, one is gone or is back) and at the row ``wake_at``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sf2el.features.attendance import Attendance
from sf2el.inputs.parameters import check_choice

Ids = tuple[int, ...]

YOUNG_ROWS = 50
"""Rows in which newcomers join a new space; a space with longer pauses stays young for twice the longest."""

STEADY_ROWS = 10
"""Rows without a further loss after which the survivors of a space that lost half are shared with the next."""

LATE_ROWS = 50
"""Rows that new features must have been beside a space that loses none to join it."""

LONG_ROWS = 200
"""Rows alone from which a space's experts know too much to be changed for a feature's successor."""

MANY_ROWS = 1000
"""Rows after which many new features stay, however long the space beside them had been alone."""

SLOW_PACE = 3
"""Rows between two readings from which a feature counts as one that comes and goes."""


@dataclass(frozen=True)
class Open:
    """A space of these features opens; beside a current one it waits until that one ends.

    ``ago``: rows since the first of them was there.
    """

    ids: Ids
    ago: int = 0


@dataclass(frozen=True)
class Join:
    """Features join the current space, or the one beside it."""

    ids: Ids
    incoming: bool = False


@dataclass(frozen=True)
class Swap:
    """The current space has ended. The one beside it goes on, with these features of both."""

    shared: Ids = ()
    partly: bool = False


@dataclass(frozen=True)
class Return:
    """A space that had ended is back beside the current one."""

    space: int


@dataclass(frozen=True)
class Close:
    """The space beside the current one is gone; with ``join`` its features join the current one."""

    join: bool = False


Transition = Open | Join | Swap | Return | Close


class FeaturePolicy(Protocol):
    """What decides on spaces."""

    exact: bool
    """Whether periods go by the exact features of rows; else by how often each feature is there."""

    def decide(self, seen: Attendance) -> list[Transition]:
        """Return what changes because of the row at hand, in order."""
        ...

    def wake_at(self, seen: Attendance) -> int | None:
        """Return the row at which time alone may decide something; None: features will tell."""
        ...


class OwnPace:
    """The default: features that come and go at a pace of their own are one space.

    A space ends when its features are gone, each by its own pace, and others are there.
    """

    exact = False

    def decide(self, seen: Attendance) -> list[Transition]:
        """Return what changes because of the row at hand, in order."""
        if not seen.spaces:
            return [Open(tuple(seen.present))]
        rising = seen.rising()
        if seen.incoming is None:
            return self._newcomers(seen, rising) if rising else []
        found: list[Transition] = []
        if rising:
            found.append(Join(tuple(rising), incoming=True))
        return found + self._beside(seen, rising)

    def wake_at(self, seen: Attendance) -> int | None:
        """Return the next row at which a space beside the current one may join, or go on with its survivors."""
        if seen.incoming is None:
            return None
        loss = max(seen.lost_at, seen.opened_at)
        times = [loss + STEADY_ROWS, loss + LATE_ROWS, seen.opened_at + self._rows_to_stay(seen)]
        return min((time + 1 for time in times if time + 1 > seen.rows + 1), default=None)

    def _newcomers(self, seen: Attendance, rising: list[int]) -> list[Transition]:
        """New features beside the current ones: they join a young or sparse space, or open one of their own."""
        back = self._back(seen, rising)
        if back is not None:
            return [Return(back)]
        if seen.rows < seen.young_until or self._is_sparse(seen):
            return [Join(tuple(rising))]
        return [Open(tuple(rising), seen.since(rising))]

    def _back(self, seen: Attendance, rising: Iterable[int]) -> int | None:
        """Return the newest ended space that these features belong to and that had to go for the current one."""
        current = set(seen.current)
        for place in reversed(range(seen.spaces - 1)):
            own = set(seen.ids(place))
            if not own.isdisjoint(rising) and 2 * len(own - current) >= len(own):
                return place
        return None

    def _is_sparse(self, seen: Attendance) -> bool:
        """Whether most features of the current space come and go."""
        slow = sum(seen.pace(one) >= SLOW_PACE for one in seen.current)
        return 2 * slow > len(seen.current)

    def _beside(self, seen: Attendance, rising: list[int]) -> list[Transition]:
        """Two spaces are there: does one of them end?"""
        assert seen.incoming is not None
        current, incoming = set(seen.current), set(seen.incoming) | set(rising)
        new, old = incoming - current, current - incoming
        gone, gone_new = set(seen.gone(old)), set(seen.gone(new))
        if gone_new == new and not seen.vanished:
            return [Close()]
        if old and gone == old:
            return [Swap()]
        survivors = tuple(one for one in seen.current if one not in gone and one not in incoming)
        many = len(new) > max(1, len(current) // 4) or len(current) <= 1
        lives = 2 * len(gone_new) < len(new)
        since = seen.rows - max(seen.lost_at, seen.opened_at)
        steady = STEADY_ROWS if 2 * len(gone) >= len(current) else LATE_ROWS
        if gone and many and lives and since >= steady:
            return [Swap(survivors, partly=True)]
        if since < LATE_ROWS or seen.vanished:
            return []
        if seen.returned and not lives:
            return [Close(), Open(tuple(one for one in seen.incoming if one in new - gone_new))]
        if many:
            stays = not gone and seen.rows - seen.opened_at >= self._rows_to_stay(seen)
            return [Swap(survivors, partly=True)] if stays else []
        lost = seen.lost_at > seen.opened_at
        if 3 * len(gone) >= len(current) or (gone and lost and self._alone(seen) >= LONG_ROWS):
            return [Swap(survivors, partly=True)]
        return [Close(join=True)]

    def _alone(self, seen: Attendance) -> int:
        return seen.opened_at - seen.current_since

    def _rows_to_stay(self, seen: Attendance) -> int:
        return max(LATE_ROWS, min(self._alone(seen), MANY_ROWS))


class ExactPeriods:
    """The paper's periods: rows with the old features, rows with both, rows with the new ones."""

    exact = True

    def decide(self, seen: Attendance) -> list[Transition]:
        """Return what changes because of the row at hand, in order."""
        present = set(seen.present)
        if not seen.spaces:
            return [Open(tuple(seen.present))]
        current = set(seen.current)
        if seen.incoming is not None:
            new = set(seen.incoming) - current
            old = current - set(seen.incoming)
            return [Swap()] if present & new and not present & old else []
        extra = tuple(one for one in seen.present if one not in current)
        if not extra or (present & current and not current <= present):
            return []
        both = bool(present & current)
        back = next((s for s in reversed(range(seen.spaces - 1)) if set(seen.ids(s)) == set(extra)), None)
        first: Transition = Open(extra) if back is None else Return(back)
        return [first] if both else [first, Swap()]

    def wake_at(self, seen: Attendance) -> int | None:
        """Return None: only rows tell."""
        return None


POLICIES: dict[str, Callable[[], FeaturePolicy]] = {"own pace": OwnPace, "exact periods": ExactPeriods}
"""Policies by the names that files keep."""


def policy_named(name: str) -> FeaturePolicy:
    """Return a policy by its name.

    >>> policy_named("no pace")
    Traceback (most recent call last):
    ...
    ValueError: policy must be one of 'own pace', ..., not 'no pace'.
    """
    check_choice("policy", name, tuple(POLICIES))
    return POLICIES[name]()


def name_of(policy: FeaturePolicy) -> str:
    """Return the name of a policy; ValueError where it has none, and no file could keep it."""
    for name, kind in POLICIES.items():
        if type(policy) is kind:
            return name
    raise ValueError(f"{type(policy).__name__} has no name; a policy that files keep is one of POLICIES.")
