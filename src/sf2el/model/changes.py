"""A policy's transitions, made on a model's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sf2el.events import EventKind, Happened
from sf2el.features.attendance import Attendance
from sf2el.features.policies import YOUNG_ROWS, Close, FeaturePolicy, Join, Open, Return, Swap, Transition

if TYPE_CHECKING:
    from sf2el.core._native import State

NEVER = 1 << 60

FORGOTTEN_ROWS = 20
"""Rows without it after which a new feature is forgotten, in a space without longer pauses."""

HARDLY_LEARNED = 10
"""Labels up to which experts begin again when features join them."""

WORTH_TELLING = 0.1
"""Share of the new features that the old ones do not explain from which an event says so."""

FIRST_REVIEW = 128
"""Rows after a swap at which the plan first looks again at what labels have said; then at twice as many."""


def current_space(state: State) -> int:
    """Return the place of the current space."""
    return int(state.spaces) - (2 if state.incoming else 1)


def features_of(state: State, space: int) -> list[int]:
    """Return the ids of a space's features."""
    return list(state.space(space)[0])


def unsolved_bytes(state: State) -> int:
    """Return the bytes that maps will take once they are solved."""
    maps = [psi for psi in map(state.map, range(state.spaces)) if psi is not None and not psi[4]]
    return sum(state.solution_bytes(new, old, wanted) for new, old, _, _, _, wanted, *_ in maps)


def make(state: State, transitions: Iterable[Transition], present: int) -> list[Happened]:
    """Make transitions in turn, for a row with so many features; return what there is to tell."""
    told: list[Happened] = []
    left = list(transitions)
    while left:
        one = left.pop(0)
        needed = [id for later in left if isinstance(later, Open | Join) for id in later.ids]
        told += _make(state, one, present, needed)
    return told


def note_gaps(state: State, present: Iterable[int]) -> list[Happened]:
    """Begin to count absences at the first row with missing values.

    Beside a newer space the current one may be ending: what it misses then is no gap.
    """
    own = features_of(state, state.spaces - 1)
    missing = set(own) - set(present)
    if state.gapped or not missing or len(missing) == len(own):
        return []
    state.begin_gaps()
    return [Happened(EventKind.FIRST_GAP, len(missing), len(own))]


def set_wake(state: State, policy: FeaturePolicy) -> None:
    """Have the policy asked again when time alone may decide something."""
    at = policy.wake_at(Attendance(state, ()))
    state.wake_at = NEVER if at is None else at


def _make(state: State, one: Transition, present: int, needed: list[int]) -> list[Happened]:
    match one:
        case Open(ids, ago):
            return _open(state, ids, ago)
        case Join(ids, incoming):
            space = state.spaces - 1 if incoming else current_space(state)
            before = len(features_of(state, space))
            _widen(state, space, ids)
            if max((labels for _, _, labels, _ in state.experts(space)), default=0) <= HARDLY_LEARNED:
                state.begin_again(space, min(before + len(ids), 2 * present))
            return [Happened(EventKind.JOINED, len(ids), before)]
        case Swap(shared, partly):
            return _swap(state, shared, partly)
        case Return(space):
            beside = len(features_of(state, current_space(state)))
            state.come_back(space, False)
            state.opened_at = state.rows
            back = len(features_of(state, state.spaces - 1))
            return [Happened(EventKind.RETURNED, back, beside)]
        case Close(join):
            return _close(state, join, needed)


def _open(state: State, ids: Iterable[int], ago: int) -> list[Happened]:
    ids = list(ids)
    first = state.spaces == 0
    beside = 0 if first else len(features_of(state, current_space(state)))
    state.open(ids, len(ids), False, False)
    state.opened_at = state.rows
    if first:
        state.current_since, state.young_until = state.rows, state.rows + YOUNG_ROWS
        state.review_at = state.rows + FIRST_REVIEW
        return [Happened(EventKind.FIRST_SPACE, len(ids))]
    return [Happened(EventKind.OPENED, len(ids), beside, state.rows - ago)]


def _swap(state: State, shared: Iterable[int], partly: bool) -> list[Happened]:
    old = current_space(state)
    before = features_of(state, old)
    psi = state.map(old)
    began = state.began if state.vanished else state.rows
    shared = list(shared)
    state.advance(shared)
    if shared:
        _widen(state, old + 1, shared)
        state.take_scaling(old + 1, old)
    now = features_of(state, old + 1)
    state.current_since, state.young_until = state.opened_at, state.opened_at + YOUNG_ROWS
    state.forgotten_after = FORGOTTEN_ROWS
    state.review_at = state.rows + FIRST_REVIEW
    grown = partly and set(before) <= set(now)
    rows = psi[2] if psi is not None else 0 if state.opened_at == state.rows else -1
    told = [
        Happened(EventKind.GROWN, len(now), len(before), began)
        if grown
        else Happened(EventKind.SWAPPED, len(now), rows, began)
    ]
    solved = state.map(old)
    if solved is not None and not grown:
        doubt = solved[3] * len(set(before) - set(now)) / len(before)
        if doubt >= WORTH_TELLING:
            told.append(Happened(EventKind.UNEXPLAINED, 100.0 * doubt, 0.0, began))
    return told


def _close(state: State, join: bool, needed: list[int]) -> list[Happened]:
    current, opened = current_space(state), state.spaces - 1
    own = features_of(state, current)
    new = [one for one in features_of(state, opened) if one not in set(own)]
    if join:
        _widen(state, current, new)
        state.take_scaling(current, opened)
    count = len(features_of(state, opened)) if not join else len(new)
    state.close(needed)
    kind = EventKind.JOINED if join else EventKind.CLOSED
    return [Happened(kind, count, len(own), state.opened_at)]


def _widen(state: State, space: int, ids: Iterable[int]) -> None:
    """Let features join a space; room grows by half, so that many newcomers are few transitions."""
    ids = list(ids)
    own, room, *_ = state.space(space)
    needed = len(own) + len(ids)
    state.widen(space, ids, room if needed <= room else max(needed, room + room // 2))
