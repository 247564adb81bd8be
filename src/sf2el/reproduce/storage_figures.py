"""Figures of what a byte is worth: accuracy by total bytes, and bytes under a budget that moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sf2el.reproduce.figures import (
    COLUMN,
    DASHED,
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

KEPT_LOOKS: dict[str, Look] = {
    "exact, float64": Look("#D55E00", "s", DASHED),
    "exact, float32": Look("#D55E00", "s"),
    "no matrix, float64": Look("#00805E", "^", DASHED),
    "no matrix, float32": Look("#00805E", "^"),
}
"""The ways of keeping a learner that have a curve: a colour for what is kept, dashes for float64."""


def by_bytes(
    variants: Mapping[str, Mapping[int, float]],
    planner: Mapping[int, float],
    points: Mapping[int, tuple[int, float]],
    *,
    chance: float,
    title: str = "",
) -> Figure:
    """Draw accuracy by total bytes: the planner, the range of the variants, some of them, and single points.

    Parameters
    ----------
    variants, planner
        Accuracy by budget in bytes.
    points
        Bytes and accuracy of the paper's own settings, by buffer size.
    chance
        The share of the larger class; its line is drawn where it is near the curves.
    title
        What the figure is of.
    """
    with column_axes(3.6) as (figure, axes):
        axes.set(xlabel="total bytes (KiB)", ylabel="accuracy", xscale="log")
        axes.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
        # Under the curves, so that the variant that the planner follows stays in sight.
        axes.plot(
            list(planner),
            list(planner.values()),
            color=LOOKS["SF2EL"].color,
            linewidth=3.4,
            marker="o",
            markersize=6.5,
            alpha=0.75,
            zorder=1.8,
            label="the planner",
        )
        _draw_variants(axes, variants)
        _draw_points(axes, points)
        _draw_chance(axes, chance)
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.02))
        _kib_ticks(axes.xaxis, [*planner, *(size for size, _ in points.values())])
        legend_above(figure, columns=2)
        return figure


def _draw_variants(axes: Axes, variants: Mapping[str, Mapping[int, float]]) -> None:
    """Draw the range of all variants as an area, and of the two extremes each its curve."""
    budgets = sorted({budget for curve in variants.values() for budget in curve})
    found = [[curve[budget] for curve in variants.values() if budget in curve] for budget in budgets]
    if len(budgets) > 1:
        low, high = [min(values) for values in found], [max(values) for values in found]
        label = f"range of all {len(variants)} ways"
        axes.fill_between(budgets, low, high, color=FAINT, alpha=0.18, linewidth=0, label=label)
    shown = {name: curve for name, curve in variants.items() if name in KEPT_LOOKS}
    for place, (name, curve) in enumerate(shown.items()):
        look = KEPT_LOOKS[name]
        # A curve of one budget is a point; points stand side by side, so that equal scores are all seen.
        shift = 1.0 if len(curve) > 1 else 1 + 0.09 * (place - (len(shown) - 1) / 2)
        axes.plot(
            [size * shift for size in curve],
            list(curve.values()),
            color=look.color,
            linestyle=look.dashes if len(curve) > 1 else "none",
            marker=look.marker,
            mfc="white" if look.dashes == DASHED else look.color,
            markersize=3.6 if len(curve) > 1 else 6,
            linewidth=1.3,
            label=name.replace("exact", "exact projection"),
        )


def _draw_points(axes: Axes, points: Mapping[int, tuple[int, float]]) -> None:
    from matplotlib.patheffects import withStroke

    axes.plot(
        [size for size, _ in points.values()],
        [mean for _, mean in points.values()],
        "D",
        mfc="white",
        mec="black",
        markersize=4.8,
        zorder=5,
        label="the paper's buffers",
    )
    for buffer, at in points.items():
        text = axes.annotate(f"{buffer}", at, (4, -9), textcoords="offset points", zorder=6)
        text.set_path_effects([withStroke(linewidth=2.2, foreground="white")])


def _draw_chance(axes: Axes, chance: float) -> None:
    """Draw the share of the larger class, where it is near the curves."""
    axes.margins(y=0.08)
    low, high = axes.get_ylim()
    if low - 0.15 * (high - low) <= chance <= high:
        axes.axhline(chance, color=FAINT, linewidth=0.9, linestyle=":")
        axes.annotate(
            "always the larger class",
            (1, chance),
            (0, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            color=FAINT,
        )


def under_budget(
    rounds: list[int],
    accuracy: Mapping[str, list[float]],
    used: list[int],
    budget: list[int],
    *,
    swap: int,
    settled: int,
    title: str = "",
) -> Figure:
    """Draw a model whose budget changes: windowed accuracy above, bytes kept and allowed below.

    ``swap`` is the round at which the features change; accuracy is drawn from round ``settled`` on, and the
    first of its curves in bold.
    """
    with house_style() as matplotlib:
        figure: Figure = matplotlib.figure.Figure(figsize=(COLUMN, 3.9))
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.15, 1.0))
        start = next((place for place, at in enumerate(rounds) if at >= settled), 0)
        for bold, (name, curve) in zip((True, *[False] * len(accuracy)), accuracy.items(), strict=False):
            color = LOOKS["SF2EL"].color if bold else FAINT
            width, order = (1.6, 3) if bold else (1.0, 2)
            above.plot(rounds[start:], curve[start:], color=color, linewidth=width, zorder=order, label=name)
        above.set_ylabel("windowed accuracy")
        above.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
        below.fill_between(rounds, used, 1, color="#00805E", alpha=0.15, linewidth=0)
        below.plot(rounds, used, color="#00805E", linewidth=2.2, label="memory_usage()")
        below.plot(rounds, budget, color="black", linewidth=1.0, linestyle=DASHED, label="budget")
        below.set(xlabel="round", ylabel="bytes (KiB)", yscale="log", xlim=(0, rounds[-1]))
        _kib_ticks(below.yaxis, budget)
        below.set_ylim(min(budget) / 2, max(budget) * 1.6)
        changes = [
            at for at, before, now in zip(rounds[1:], budget, budget[1:], strict=False) if before != now
        ]
        for axes in (above, below):
            for at in changes:
                axes.axvline(at, color=FAINT, linewidth=0.6, linestyle=":", zorder=1)
        above.annotate(
            "features\nswap",
            (swap, 0),
            (3, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=INK,
        )
        legend_above(figure, columns=2)
        return figure


def _kib_ticks(axis: Any, sizes: Iterable[int]) -> None:
    """Set the ticks of a logarithmic axis of bytes at powers of two of KiB, over the sizes shown."""
    sizes = list(sizes)
    least, most = int(np.floor(np.log2(min(sizes) / 1024))), int(np.ceil(np.log2(max(sizes) / 1024)))
    powers = [2.0**power for power in range(least, most + 1)]
    axis.set_ticks([1024 * size for size in powers], labels=[f"{size:g}" for size in powers])
    axis.set_ticks([], minor=True)
