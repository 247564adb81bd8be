"""Figures of the study of the default model, from its plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sf2el.reproduce.default_design import KIB
from sf2el.reproduce.default_study import CEILING, FESL, FESL_BY_RATE, OTHERS, OURS, PAPER
from sf2el.reproduce.default_tables import mean_of
from sf2el.reproduce.figures import (
    COLUMN,
    DASHED,
    DOTTED,
    FAINT,
    INK,
    LOOKS,
    Look,
    column_axes,
    house_style,
    legend_above,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Content = Mapping[str, Any]

METHOD_LOOKS: dict[str, Look] = {
    OURS: Look(LOOKS["SF2EL"].color, "o"),
    PAPER: Look("#0072B2", "s"),
    FESL: Look("#D55E00", "^"),
    FESL_BY_RATE: Look("#E69F00", "^", DOTTED),
    "river logistic": Look("#00805E", "v", DASHED),
    "river forest": Look("#66C2A5", "D", DASHED),
    "river kNN": Look("#56B4E9", "P", DASHED),
    CEILING: Look("#555555", "x", DOTTED),
}
RATE_COLORS = ("#2B1055", LOOKS["SF2EL"].color, "#B8527F", "#DD8A5B", "#C9A227")
"""From all labels to few of them."""
MISSED = "#C0141E"


def by_label_rate(content: Content, dataset: str) -> Figure:
    """Draw accuracy by label rate: the model, every other, and the goals."""
    rates = sorted(content["protocol"]["label_rates"])
    with column_axes(3.6) as (figure, axes):
        axes.set(xlabel="label rate", ylabel="accuracy", xscale="log")
        axes.set_title(dataset, loc="left", fontsize=8.5, fontweight="bold")
        for method in (OURS, *OTHERS):
            means = {rate: mean_of(content, dataset, rate, method) for rate in rates}
            points = {rate: mean for rate, mean in means.items() if mean is not None}
            look, bold = METHOD_LOOKS[method], method == OURS
            if points:
                axes.plot(
                    list(points),
                    list(points.values()),
                    color=look.color,
                    linestyle=look.dashes,
                    marker=look.marker,
                    markersize=5.5 if bold else 4.2,
                    linewidth=2.4 if bold else 1.1,
                    zorder=4 if bold else 3,
                    label="SF2EL, the default" if bold else method,
                )
        goals = [row for row in content["targets"] if row["dataset"] == dataset]
        if goals:
            axes.plot(
                [row["label_rate"] for row in goals],
                [row["asked"] for row in goals],
                linestyle="none",
                marker="_",
                markersize=13,
                markeredgewidth=1.6,
                color="black",
                zorder=5,
                label="goal",
            )
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axes.minorticks_off()
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.015))
        legend_above(figure, columns=2)
        return figure


def by_budget(content: Content, dataset: str) -> Figure:
    """Draw the model's accuracy by its budget, a curve a label rate."""
    rates = content["protocol"]["label_rates"]
    with column_axes(2.9) as (figure, axes):
        axes.set(xlabel="budget (KiB)", ylabel="accuracy", xscale="log")
        axes.set_title(dataset, loc="left", fontsize=8.5, fontweight="bold")
        cells = [c for c in content["cells"] if c["method"] == OURS and c["dataset"] == dataset]
        for place, rate in enumerate(rates):
            own = [cell for cell in cells if cell["label_rate"] == rate]
            axes.plot(
                [cell["budget"] // KIB for cell in own],
                [cell["accuracy"]["mean"] for cell in own],
                color=RATE_COLORS[place % len(RATE_COLORS)],
                marker="osD^v"[place % 5],
                label=f"label rate {rate:g}",
            )
        sizes = sorted({cell["budget"] // KIB for cell in cells})
        axes.set_xticks(sizes, [f"{size}" for size in sizes])
        axes.minorticks_off()
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.015))
        legend_above(figure, columns=2)
        return figure


def against_best(content: Content) -> Figure:
    """Draw the paired differences to the best other with their intervals, a line a dataset and label rate."""
    rows = content["against_best"]
    lines = [(row["dataset"], f"{row['label_rate']:g}", row["holds"], row) for row in rows]
    marks = ("goal reached", "goal missed")
    return _differences(lines, marks, "the best other", sorted({row["limit"] for row in rows}))


def few_labels(content: Content) -> Figure:
    """Draw the paired differences to logistic regression after a few labels, a line a problem."""
    lines = [
        (row["dataset"], row["space"], not row["behind"], row) for row in content["few_labels"]["problems"]
    ]
    return _differences(lines, ("not behind", "behind"), "logistic regression")


def _differences(
    lines: Sequence[tuple[str, str, bool, Mapping[str, Any]]],
    marks: tuple[str, str],
    other: str,
    limits: Sequence[float] = (),
) -> Figure:
    """Draw paired differences with their intervals, each with its dataset, a name and whether it is good."""
    with house_style() as matplotlib:
        figure: Figure = matplotlib.figure.Figure(figsize=(COLUMN, 1.1 + 0.19 * len(lines)))
        axes: Axes = figure.subplots()
        names, places, at = [], [], 0.0
        before = ""
        for dataset, name, good, row in lines:
            if before and before != dataset:
                at += 0.7
            color = INK if good else MISSED
            if row["low"] is not None:
                axes.plot([row["low"], row["high"]], [at, at], color=color, linewidth=1.2)
            axes.plot(row["mean"], at, "o" if good else "X", color=color, markersize=5)
            names.append(name if before == dataset else f"{dataset}  {name}")
            places.append(at)
            at += 1.0
            before = dataset
        axes.axvline(0.0, color=FAINT, linewidth=0.9)
        for limit in limits:
            axes.axvline(limit, color=FAINT, linewidth=0.9, linestyle=":" if limit == max(limits) else "--")
        axes.set_yticks(places, names)
        axes.set(xlabel=f"difference in accuracy to {other}", ylim=(at - 0.3, -0.7))
        axes.locator_params(axis="x", nbins=5)
        _limit_range(axes, [row["mean"] for *_, row in lines])
        _mark_cuts(axes, [(row, INK if good else MISSED) for *_, good, row in lines], places)
        axes.tick_params(axis="y", length=0)
        axes.plot([], [], "o-", color=INK, markersize=5, linewidth=1.2, label=marks[0])
        axes.plot([], [], "X-", color=MISSED, markersize=5, linewidth=1.2, label=marks[1])
        legend_above(figure, columns=2)
        return figure


def _limit_range(axes: Axes, means: Sequence[float]) -> None:
    """Let the means decide the range: the interval of a few runs may be wider than all that is to be seen."""
    room = 0.6 * max(0.02, max(means) - min(means))
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, min(means) - room), min(high, max(means) + room))


def _mark_cuts(axes: Axes, rows: Sequence[tuple[Mapping[str, Any], str]], places: Sequence[float]) -> None:
    """Set an arrowhead at the frame where an interval goes on beyond it."""
    left, right = axes.get_xlim()
    for (row, color), at in zip(rows, places, strict=True):
        if row["low"] is None:
            continue
        for cut, edge, marker in ((row["low"] < left, left, 4), (row["high"] > right, right, 5)):
            if cut:  # 4 and 5 are carets whose tip is at the point
                axes.plot(edge, at, marker=marker, color=color, markersize=5, clip_on=False, zorder=6)


def forgetting(content: Content, stream: str) -> Figure:
    """Draw the gain from forgetting over not forgetting, a curve a label rate."""
    rows = [row for row in content["drift"] if row["stream"] == stream]
    values = sorted({row["forget"] for row in rows})
    gains = [row["gain"]["mean"] for row in content["drift"]]
    with column_axes(2.95) as (figure, axes):
        axes.set(xlabel="forget", ylabel="gain in accuracy")
        axes.set_title(stream, loc="left", fontsize=8.5, fontweight="bold")
        axes.axhline(0.0, color=FAINT, linewidth=0.9)
        rates = list(dict.fromkeys(row["label_rate"] for row in rows))
        for place, rate in enumerate(rates):
            own = [row for row in rows if row["label_rate"] == rate]
            shift = 0.08 * (place - (len(rates) - 1) / 2)
            axes.errorbar(
                [values.index(row["forget"]) + shift for row in own],
                [row["gain"]["mean"] for row in own],
                yerr=[_half(row["gain"]) for row in own],
                color=RATE_COLORS[2 * place % len(RATE_COLORS)],
                marker="osD"[place % 3],
                capsize=2.5,
                elinewidth=1.0,
                label=f"label rate {rate:g}",
            )
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
        # One scale for all streams, so that what is won on one can be held against what is lost on another.
        room = 0.15 * (max(gains) - min(gains)) + 0.005
        axes.set_ylim(min(gains) - room, max(gains) + room)
        legend_above(figure, columns=2)
        return figure


def _half(gain: Mapping[str, float | None]) -> float:
    """Return half the width of an interval; a single run has none."""
    return 0.0 if gain["high"] is None or gain["mean"] is None else gain["high"] - gain["mean"]


def drawings(content: Content) -> dict[str, Figure]:
    """Return all figures by name."""
    datasets = list(dict.fromkeys(cell["dataset"] for cell in content["cells"]))
    streams = list(dict.fromkeys(row["stream"] for row in content["drift"]))
    return {
        "against-best": against_best(content),
        **({"few-labels": few_labels(content)} if content["few_labels"]["problems"] else {}),
        **{f"rates-{name}": by_label_rate(content, name) for name in datasets},
        **{f"budgets-{name}": by_budget(content, name) for name in datasets},
        **{f"drift-{name}": forgetting(content, name) for name in streams},
    }
