"""What a model's file has of features: which were there lately, and those that belong to no space yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sf2el.features.attendance import FORGOTTEN, LATELY, NOTED, RARELY, SLOWEST, Attendance, Mark
from sf2el.features.spaces import LONGEST_PAUSE, Tracker
from sf2el.inputs.rows import Names
from sf2el.memory.budget import newcomer_room
from sf2el.storage.persist_checks import whole
from sf2el.storage.persist_parts import Reader, Writer

if TYPE_CHECKING:
    from sf2el.model.stage import Stage

AWAY_BITS = 5
"""Of a mark's second byte: the rows since its feature was last there. Above them are its readings."""


def tracker_out(tracker: Tracker, writer: Writer) -> dict[str, Any]:
    """Write which features are alive; return what goes into the text."""
    marks = tracker.strangers.marks
    if marks:
        writer.names("marks.names", tuple(marks))
        pairs = [(mark.lately, mark.readings << AWAY_BITS | mark.away) for mark in marks.values()]
        writer.tensors["marks"] = np.array(pairs, np.uint8)
    for name, counts in (("absent", tracker.attendance.absent), ("pace", tracker.attendance.pace)):
        if counts:
            writer.tensors[name] = np.array([counts.get(n, 0) for n in tracker.expected()], np.uint8)
    return {
        "doubt": tracker.doubt,
        "overlap": tracker.overlap,
        "losses": tracker.losses,
        "alone": tracker.alone,
        "pause": tracker.pause,
    }


def tracker_in(content: dict[str, Any], stage: Stage, reader: Reader, budget: int | None) -> Tracker:
    """Return the tracker of a file; what earlier versions did not count is as after rows without gaps."""
    tracker = Tracker(
        stage.current.names,
        upcoming=None if stage.upcoming is None else stage.upcoming.names,
        past=None if stage.past is None else stage.past.names,
        doubt=whole(content["doubt"]),
        overlap=min(whole(content["overlap"]), 1 << 62),
        losses=min(whole(content["losses"]), 1 << 62),
        alone=min(whole(content.get("alone", 1 << 62)), 1 << 63),
        pause=whole(content.get("pause", 1)),
    )
    expected = tracker.expected()
    tracker.attendance = _attendance_in(expected, reader)
    tracker.strangers.room = None if budget is None else newcomer_room(budget)
    if "marks" in reader.tensors:
        tracker.strangers.marks = _marks_in(reader)
    if not tracker.strangers.marks.keys().isdisjoint(expected):
        raise ValueError("a feature of no space is in one")
    if tracker.doubt and (tracker.doubt >= LATELY or tracker.past is None or stage.upcoming is not None):
        raise ValueError("it doubts a swap that was none")
    if not 1 <= tracker.pause <= LONGEST_PAUSE:
        raise ValueError("a space paused for no number of rows")
    return tracker


def _attendance_in(expected: Names, reader: Reader) -> Attendance:
    counts: list[dict[Any, int]] = []
    for name in ("absent", "pace"):
        found = {}
        if name in reader.tensors:
            rows = reader.array(name, (len(expected),), np.uint8).tolist()
            found = {feature: count for feature, count in zip(expected, rows, strict=True) if count}
        counts.append(found)
    attendance = Attendance(*counts)
    if any(not 1 < rows <= SLOWEST for rows in attendance.pace.values()):
        raise ValueError("a feature comes at no pace")
    if any(rows > attendance.patience(feature) for feature, rows in attendance.absent.items()):
        raise ValueError("a feature was away for no number of rows")
    return attendance


def _marks_in(reader: Reader) -> dict[Any, Mark]:
    """Read marks; earlier versions have one byte for each, and forgot a feature after so many rows."""
    names = reader.names("marks.names")
    if reader.tensors["marks"].ndim == 1:
        masks = reader.array("marks", (len(names),), np.uint8).tolist()
        marks = [_mark_of(mask) for mask in masks if mask]
    else:
        pairs = reader.array("marks", (len(names), 2), np.uint8).tolist()
        marks = [Mark(lately, rest >> AWAY_BITS, rest & (1 << AWAY_BITS) - 1) for lately, rest in pairs]
    if len(marks) != len(names) or not all(map(_is_possible, marks)):
        raise ValueError("a feature of no space was in no row")
    return dict(zip(names, marks, strict=True))


def _mark_of(lately: int) -> Mark:
    return Mark(lately, min(lately.bit_count(), RARELY), (lately & -lately).bit_length() - 1)


def _is_possible(mark: Mark) -> bool:
    """Whether rows can leave such a mark."""
    if mark.away >= FORGOTTEN or not 1 <= mark.readings <= RARELY:
        return False
    if not mark.lately:
        return mark.away >= NOTED
    shown = _mark_of(mark.lately)
    return mark.away == shown.away and mark.readings >= shown.readings
