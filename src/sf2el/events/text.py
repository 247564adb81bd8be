"""The text that says an event to people."""

from __future__ import annotations

import re
from math import ceil, floor, log10

from sf2el.events.kinds import EventKind
from sf2el.experts.kinds import Code, Form, Kind, View
from sf2el.memory.ladder import RUNGS


def expert_number(code: Code) -> float:
    """Return an expert as a number that a log can keep."""
    return float(code.kind * 100 + code.view * 10 + code.rate)


def expert_name(number: float) -> str:
    """Return the name of an expert that was kept as a number.

    >>> expert_name(expert_number(Code(Kind.LINEAR, View.ZERO, form=Form.HALF)))
    'linear, zero'
    """
    whole = int(number)
    return Code(Kind(whole // 100), View(whole // 10 % 10), whole % 10, Form.FULL).name


def text_of(kind: EventKind, first: float, second: float) -> str:
    """Return what an event says to people.

    >>> text_of(EventKind.OPENED, 1, 11)
    '1 new feature beside the 11 current ones'
    """
    a, b = int(first), int(second)
    match kind:
        case EventKind.FIRST_SPACE:
            text = f"first space: {a} features"
        case EventKind.OPENED:
            text = f"{a} new features beside the {b} current ones"
        case EventKind.JOINED:
            text = f"{a} features join the {b} current ones"
        case EventKind.SWAPPED if b > 0:
            text = f"swap to {a} features; the old features are recovered by a map from {b} rows"
        case EventKind.SWAPPED if b == 0:
            text = f"swap to {a} features; the new experts start alone: no row had both spaces"
        case EventKind.SWAPPED:
            text = f"swap to {a} features; the new experts start alone: the budget has no room for a map"
        case EventKind.GROWN:
            text = f"swap to {a} features, old ones among them; the experts of the {b} before go on beside"
        case EventKind.RETURNED:
            text = f"{a} features of an earlier space are back beside the {b} current ones"
        case EventKind.CLOSED:
            text = f"the {a} features that had appeared beside the {b} current ones are gone again"
        case EventKind.FIRST_GAP:
            text = f"first row with missing values: {a} of {b} features"
        case EventKind.PASSED_OVER:
            text = (
                f"the budget has no room for {a} new features beside the {b} current ones: they are not used"
            )
        case EventKind.SPACE_DROPPED:
            text = f"the budget has no room for the {a} features that vanished: "
            text += "their experts and map were dropped"
        case EventKind.MAP_DROPPED:
            text = f"the budget has no room for a map from {a} features: the next space will start alone"
        case EventKind.MAP_SETTLED:
            text = f"the budget has no room to improve the map from {a} features: it stays as it is"
        case EventKind.EXPERT_CAME:
            text = f"expert added: {expert_name(first)} (the budget has room for: {RUNGS[b].part})"
        case EventKind.EXPERT_LEFT:
            text = f"expert removed: {expert_name(first)} (the budget has room up to: {RUNGS[b].part})"
        case EventKind.EXPERT_OUTDONE:
            text = f"expert removed: {expert_name(first)} (labels have decided for others, or its space has ended)"
        case EventKind.RESIZED:
            text = f"experts of {a} radial functions (the budget has room for: {RUNGS[b].part})"
        case EventKind.MOVED:
            moved = f"{rounded_up(second):.3g}"
            text = f"fewer radial functions: an expert's function moved by at most {moved} in norm"
        case EventKind.NEW_BUDGET:
            text = f"budget {a} bytes"
        case EventKind.NEW_CLASS:
            text = f"a new class: {a} labels"
        case EventKind.TOO_LATE:
            text = "a late label belongs to no space in use"
        case EventKind.UNEXPLAINED:
            text = f"the old features do not explain {a} % of the new ones: "
            text += "recovered experts weigh less at first"
        case EventKind.BUFFERS:
            text = f"buffers of {a} rows (current) and {b} rows (recovered)"
    return _one_or_more(text)


def _one_or_more(text: str) -> str:
    """Return a text with "1 features" as "1 feature"."""
    single = re.sub(r"\b1 ((?:new |more |old )?)(feature|row|label)s\b", r"1 \1\2", text)
    return single.replace("1 feature join ", "1 feature joins ")


def rounded_up(value: float) -> float:
    """Return a number rounded up to three digits, so that what is said of an error is a bound.

    >>> rounded_up(1.74117), rounded_up(0.0)
    (1.75, 0.0)
    """
    if not value > 0.0:
        return 0.0
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(f"{ceil(value / unit) * unit:.3g}")
