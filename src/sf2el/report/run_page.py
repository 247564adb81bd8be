"""The page of a run: which features came when, how well it went, who was followed, and the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Self

from sf2el.events import DETAILS, EventKind
from sf2el.inputs.rows import few
from sf2el.report.page import Block, Column, Facts, Figure, Folded, Page, Section, Table, Text
from sf2el.report.run_figures import lines, presence
from sf2el.running.history import History, Point

MOST_MARKS = 12
MOST_CURVES = 6
MOST_LIVES = 50
MOST_NAMED = 20
CHANGES = (EventKind.OPENED, EventKind.RETURNED, EventKind.SWAPPED, EventKind.GROWN)
"""Kinds of events at which figures have a dotted line."""


@dataclass(frozen=True)
class Marks:
    """The rows at which figures have a dotted line, and what a caption says of them."""

    rows: Sequence[int]
    caption: str

    @classmethod
    def of(cls, summary: dict[str, Any]) -> Self:
        """Return the first changes of the features."""
        rows = sorted({event["row"] for event in summary["events"] if event["kind"] in CHANGES})
        told = "features appeared beside others, or were swapped"
        if len(rows) > MOST_MARKS:
            told = f"the first {MOST_MARKS} rows at which {told}"
        elif summary["events_total"] > len(summary["events"]):
            told += ", as far as it is among the events shown"
        return cls(rows[:MOST_MARKS], f"Dotted lines: {told}." if rows else "")


def run_page(
    summary: dict[str, Any],
    history: History,
    *,
    budget: int | None,
    version: str,
    variant: str,
    seconds: float,
) -> Page:
    """Return the page.

    Parameters
    ----------
    summary
        What summary.json has.
    history
        The run's points.
    budget
        Bytes the model may use; None where it has a fixed buffer.
    version, variant, seconds
        For the footer.
    """
    rows = summary["rows"]
    marks = Marks.of(summary)
    sections = [
        _features(summary, history),
        _quality(summary, marks),
        _followed(history.points, rows, marks),
        _risk(history.points, rows, marks),
        _memory(summary, history.points, budget, marks),
        _events(summary),
    ]
    return Page(
        f"{PurePath(summary['data']).name}: a run",
        _lead(summary, len(history.presence)),
        [section for section in sections if section is not None],
        [
            f"sf2el {version}, {variant} variant; {seconds:.1f} s for the rows. Rows are counted from 0.",
            "predictions.csv has a line for each row; summary.json has the numbers of this page.",
            f"Settings: {_shown(summary['settings'])}.",
        ],
        _facts(summary, budget),
    )


def _lead(summary: dict[str, Any], features: int) -> str:
    rows, labelled, empty = summary["rows"], summary["labelled"], summary["empty_rows"]
    regression = summary["settings"]["regression"]
    of = f"{_count(rows, 'row')} with {_count(features, 'feature')}"
    predicted = "was predicted" if rows == 1 else "were predicted one by one"
    share = "It" if rows == 1 else f"{labelled / rows:.0%} of them"
    lead = f"""{of} {predicted} and then learned. {share} came with the
        {"number to predict" if regression else "right label"}; the scores below compare each prediction with
        what the model was told only afterwards."""
    if not labelled:
        told = "number" if regression else "label"
        none = f"it came without a {told}" if rows == 1 else f"none of them came with {told}s"
        lead = f"{_count(rows, 'row')} {predicted}; {none}."
    if empty:
        they, their, them = ("it has", "its", "it") if empty == 1 else ("they have", "their", "them")
        counts = f"counts as an error where {their} label is known"
        lead += f""" {_count(empty, "row")} had no observed feature: {they} no prediction, which
            {"is left out of the scores" if regression else counts}, and nothing was learned from {them}."""
    return lead


def _facts(summary: dict[str, Any], budget: int | None) -> Facts:
    metrics, facts = summary["metrics"], []
    names = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy: all labels count alike",
        "mae": "mean absolute error",
        "rmse": "root mean square error",
    }
    for name, what in names.items():
        if metrics.get(name) is not None:
            value = metrics[name]
            facts.append((f"{value:.1%}" if "accuracy" in name else f"{value:.4g}", what))
    if summary.get("largest_class"):
        facts.append((f"{summary['largest_class']:.1%}", "is what always the most frequent label would get"))
    of = f"of {budget:,} bytes" if budget else "bytes"
    facts.append((f"{summary['most_bytes']:,}", f"{of} used at most"))
    return Facts(facts)


def _features(summary: dict[str, Any], history: History) -> Section:
    caption = """Which feature was observed when: features down in order of appearance, rows across; pale
        where it was observed in some rows only. Look for blocks that end where others begin: there the
        sensors were replaced."""
    drawn = presence(
        history.shares(),
        rows=summary["rows"],
        stride=history.stride,
        description="which features were observed in which rows",
    )
    text = f"The model met {_count(summary['spaces'], 'feature space')}"
    text += ", one after another." if summary["spaces"] > 1 else "."
    blocks: list[Block] = [Text(text), Figure([drawn], caption)]
    if history.lives:
        blocks.append(_lives(history))
    return Section("Which features came when", blocks)


def _lives(history: History) -> Table:
    together: dict[tuple[int, int], list[str]] = {}
    for name, life in history.lives.items():
        together.setdefault((life.first, life.last), []).append(name)
    body = []
    for (first, last), names in sorted(together.items()):
        shares = [history.lives[name].rows / (last + 1 - first) for name in names]
        low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
        body.append(
            [f"{first:,}", f"{last:,}", low if low == high else f"{low} to {high}", few(names, MOST_NAMED)]
        )
    caption = """When features were read: the first row, the last one, in how many of the rows from one to the
        other, and which features."""
    if len(body) > MOST_LIVES:
        caption += f" {_count(len(body) - MOST_LIVES, 'line')} more, those of later features, left out."
    columns = [Column("first row"), Column("last row"), Column("read in"), Column("features", number=False)]
    return Table(caption, columns, body[:MOST_LIVES])


def _quality(summary: dict[str, Any], marks: Marks) -> Section | None:
    windows = summary["windows"]
    if not windows:
        return None
    regression = summary["settings"]["regression"]
    names = ("mae", "rmse") if regression else ("accuracy", "balanced_accuracy")
    curves = {
        name.replace("_", " ") if not regression else name.upper(): [
            ((part["start"] + part["stop"]) / 2, part["metrics"][name])
            for part in windows
            if part["metrics"][name] is not None
        ]
        for name in names
    }
    values = [value for curve in curves.values() for _, value in curve]
    if not values:
        return None
    low, high = (0.0, _top(values)) if regression else (max(0.0, 0.9 * min(values) - 0.05), 1.0)
    level = None
    if not regression and summary["largest_class"]:
        level = ("most frequent label", summary["largest_class"])
        low = min(low, max(0.0, summary["largest_class"] - 0.05))
    fewest = _count(min(part["scored"] for part in windows), "labelled row")
    over = f"consecutive stretches of the run, each with at least {fewest}"
    if len(windows) == 1:
        over = f"the whole run, which has {fewest}"
    caption = f"""{_capital(" and ".join(curves))} over {over}; every row was predicted before it was learned.
        {marks.caption}"""
    drawn = lines(
        curves,
        rows=summary["rows"],
        y=(low, high),
        show=_number if regression else _percent,
        description=f"{' and '.join(curves)} along the run",
        marks=marks.rows,
        level=level,
    )
    return Section("How well it went", [Figure([drawn], caption), _metrics(summary)])


def _metrics(summary: dict[str, Any]) -> Table:
    known = {name: value for name, value in summary["metrics"].items() if value is not None}
    shown = [[name.replace("_", " "), f"{value:.4f}"] for name, value in known.items()]
    unpredicted = summary["settings"]["regression"] and summary["empty_rows"]
    but = " but those without a prediction" if unpredicted else ""
    every = "the labelled row" if summary["labelled"] == 1 else f"all {summary['labelled']:,} labelled rows"
    caption = f"Over {every}{but}."
    if "auc" in known:
        caption += " The area under the ROC curve (auc) is over 2000 bins of the predicted probability."
    return Table(caption, [Column("metric", number=False), Column("value")], shown)


def _followed(points: Sequence[Point], rows: int, marks: Marks) -> Section | None:
    curves = _curves(points, "weights")
    if not points or len(curves) < 2:
        return None
    caption = f"""Weight of the experts of the current features, of those on recovered ones, and of those of
        features that have appeared beside: the prediction follows whichever do better. {marks.caption}"""
    drawn = lines(
        curves,
        rows=rows,
        y=(0.0, 1.0),
        show=lambda value: f"{value:.1f}",
        description="weights of the learners along the run",
        marks=marks.rows,
    )
    return Section("Which experts count", [Figure([drawn], caption)])


def _risk(points: Sequence[Point], rows: int, marks: Marks) -> Section | None:
    curves = _curves(points, "risk")
    values = sorted(value for curve in curves.values() for _, value in curve)
    if not values:
        return None
    usual = values[int(0.98 * (len(values) - 1))]
    more = len({name for point in points for name in point.risk}) - len(curves)
    omitted = f" {more} more {'is' if more == 1 else 'are'} left out." if more > 0 else ""
    caption = f"""Average risk of each learner in the feature space of the time: what learning tries to make
        small. The largest values of the first rows may leave the frame.{omitted} {marks.caption}"""
    drawn = lines(
        curves,
        rows=rows,
        y=(min(0.0, values[0]), _top([usual])),
        show=_number,
        description="average risk of each learner along the run",
        marks=marks.rows,
    )
    return Section("Risk", [Figure([drawn], caption)])


def _memory(
    summary: dict[str, Any], points: Sequence[Point], budget: int | None, marks: Marks
) -> Section | None:
    if not points:
        return None
    curve = [(float(point.rows), point.nbytes / 1024) for point in points]
    held = "with a fixed number of rows kept"
    if budget is not None:
        held = f"{'never above' if summary['most_bytes'] <= budget else 'ABOVE'} the budget of {budget:,}"
    caption = f"""Bytes of everything the model keeps: at most {summary["most_bytes"]:,}, {held}.
        {marks.caption}"""
    top = max([value for _, value in curve] + ([budget / 1024] if budget else []))
    drawn = lines(
        {"used": curve},
        rows=summary["rows"],
        y=(0.0, 1.08 * top),
        show=lambda value: f"{value:g} KiB",
        description="bytes used along the run",
        marks=marks.rows,
        level=("budget", budget / 1024) if budget else None,
    )
    return Section("Memory", [Figure([drawn], caption)])


def _events(summary: dict[str, Any]) -> Section | None:
    events = sorted(summary["events"], key=lambda event: int(event["row"]))
    if not events:
        return None
    left_out = summary["events_total"] - len(events)
    are = "is" if left_out == 1 else "are"
    rest = f" {_count(left_out, 'event')} between the first and the last {are} not shown." if left_out else ""
    blocks: list[Block] = []
    changes = [event for event in events if event["kind"] not in DETAILS]
    if changes:
        blocks.append(
            _listed(f"What happened to the features, and what the budget had no room for.{rest}", changes)
        )
    details = [event for event in events if event["kind"] in DETAILS]
    if details:
        caption = "How many experts there were, and how large: what changes took, and gave back."
        blocks.append(Folded(f"{_count(len(details), 'event')} within the model", _listed(caption, details)))
    return Section("What happened", blocks)


def _listed(caption: str, events: Sequence[dict[str, Any]]) -> Table:
    body = [[f"{event['row']:,}", event["text"]] for event in events]
    return Table(caption, [Column("row"), Column("event", number=False)], body)


def _curves(points: Sequence[Point], what: str) -> dict[str, list[tuple[float, float]]]:
    curves: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        for name, value in getattr(point, what).items():
            if value == value and (name in curves or len(curves) < MOST_CURVES):
                curves.setdefault(name, []).append((float(point.rows), value))
    return curves


def _shown(settings: dict[str, Any]) -> str:
    """Return settings to read, without those that are off."""
    kept = {name: value for name, value in settings.items() if value or name == "seed"}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in kept.items())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _top(values: Sequence[float]) -> float:
    top = max(values)
    return 1.08 * top if top > 0.0 else 1.0


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _number(value: float) -> str:
    return f"{value:.3g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
