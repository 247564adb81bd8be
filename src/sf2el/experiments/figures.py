"""Figures in one house style: each method has its colour and marker everywhere, a spread over runs its band.

Figures are made for a column of a page (3.5 inches) with no text below 8 points. Nothing here touches
matplotlib's global state, and the same data give the same bytes. matplotlib is an optional extra.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sf2el.experiments.demo import SpaceView

Floats = npt.NDArray[np.float64]
Curves = Mapping[str, tuple[Floats, Floats]]
Points = Mapping[str, Mapping[float, tuple[float, float]]]

COLUMN = 3.5
"""Width of a figure, in inches."""
SVG_DPI, PNG_DPI = 150, 300
"""In an SVG only images have a resolution."""


@dataclass(frozen=True)
class Look:
    """How a method is drawn."""

    color: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"


_DASHED = (0, (4.0, 1.6))
LOOKS: dict[str, Look] = {
    "NOGD": Look("#56B4E9", "s", _DASHED),
    "NOGD+MR": Look("#0072B2", "s"),
    "uROGD": Look("#E69F00", "^", _DASHED),
    "uROGD+MR": Look("#D55E00", "^"),
    "fROGD": Look("#66C2A5", "v", _DASHED),
    "fROGD+MR": Look("#00805E", "v"),
    "FESL-Variant": Look("#CC79A7", "o", _DASHED),
    "SF2EL": Look("#7B1E66", "o"),
}
"""After Okabe and Ito; a method and its twin with the manifold term share hue and marker, and the twin is
darker and solid. Marker and dashes tell apart what a colour-blind eye may not."""

_DOTTED = (0, (1.0, 1.4))
KEPT_LOOKS: dict[str, Look] = {
    "exact, float64": Look("#D55E00", "", _DASHED),
    "exact, float32": Look("#D55E00", ""),
    "exact, float32, stratified": Look("#D55E00", "", _DOTTED),
    "pursuit + Gram, float64": Look("#0072B2", "", _DASHED),
    "pursuit + Gram, float32": Look("#0072B2", ""),
    "pursuit + Gram, float32, stratified": Look("#0072B2", "", _DOTTED),
    "no matrix, float64": Look("#00805E", "", _DASHED),
    "no matrix, float32": Look("#00805E", ""),
    "no matrix, float32, stratified": Look("#00805E", "", _DOTTED),
}
"""Ways of keeping a learner: a colour for what is kept, dashes for float64, dots for stratified rows."""

CLASS_COLORS = {1.0: "#3B4CA8", -1.0: "#C77C11"}
INK, FAINT = "#222222", "#777777"

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is there on every machine
    "font.size": 8.0,  # of ticks and legends too
    "axes.labelsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.7,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
    "hatch.linewidth": 0.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "sf2el",
}


def need_matplotlib() -> ModuleType:
    """Import matplotlib, or say which extra has it."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise ImportError('Figures need matplotlib: pip install "sf2el[plot]".') from error
    return matplotlib


@contextmanager
def house_style() -> Iterator[ModuleType]:
    """Put the house style in force, whatever the user's own matplotlib settings, and take it back."""
    matplotlib = need_matplotlib()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield matplotlib


@contextmanager
def column_axes(height: float) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of column width and its axes, in the house style."""
    with house_style() as matplotlib:
        figure = matplotlib.figure.Figure(figsize=(COLUMN, height))
        yield figure, figure.subplots()


def along_rounds(
    curves: Curves,
    *,
    ylabel: str,
    xlabel: str = "round after the swap",
    rounds: npt.NDArray[np.int64] | None = None,
    labels: Mapping[str, str] | None = None,
    ylim: tuple[float, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw curves of methods along the rounds: the mean over runs, and a band of one standard deviation.

    Parameters
    ----------
    curves
        Mean and standard deviation for each of the rounds, by method.
    ylabel, xlabel
        What the axes show.
    rounds
        The rounds of the curves; 1, 2, 3 and so on unless given.
    labels
        What the legend calls a method; its name unless given.
    ylim
        Limits of the vertical axis; unless given, what holds all curves after the first rounds, whose
        averages over few rounds would set the scale for all others.
    title
        What the figure is of, where several stand side by side.
    """
    with column_axes(_height(2.4, len(curves), 1 if labels else 2)) as (figure, axes):
        for place, (name, (mean, std)) in enumerate(curves.items()):
            look, kept = LOOKS[name], _thinned(len(mean))
            at, mean, std = kept + 1 if rounds is None else rounds[kept], mean[kept], std[kept]
            axes.fill_between(at, mean - std, mean + std, color=look.color, alpha=0.16, linewidth=0)
            axes.plot(
                at,
                mean,
                color=look.color,
                linestyle=look.dashes,
                marker=look.marker,
                markevery=_marked(at, (place + 0.5) / len(curves)),
                label=(labels or {}).get(name, name),
            )
        axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, at[-1]), ylim=ylim or _settled_range(curves))
        axes.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
        _legend_above(figure, columns=1 if labels else 2)
        return figure


def scatter(rows: Floats, classes: Floats, *, xlabel: str, ylabel: str) -> Figure:
    """Draw rows of two features by class."""
    with column_axes(3.1) as (figure, axes):
        for sign, name in ((1.0, "class +1"), (-1.0, "class -1")):
            points = rows[classes == sign]
            axes.scatter(points[:, 0], points[:, 1], s=5, color=CLASS_COLORS[sign], linewidths=0, label=name)
        axes.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
        _legend_above(figure, columns=2)
        return figure


def _thinned(rounds: int) -> npt.NDArray[np.int64]:
    """Return which rounds to draw: the first 40, then as many as the eye can tell apart, and the last."""
    evenly = np.linspace(0, rounds - 1, min(rounds, 250)).round().astype(np.int64)
    return np.union1d(np.arange(min(rounds, 40)), evenly)


def _marked(rounds: npt.NDArray[np.int64], shift: float) -> list[int]:
    """Return where to set six markers, shifted so that those of different curves do not meet."""
    return [int(place) for place in np.searchsorted(rounds, (np.arange(6) + shift) / 6 * rounds[-1])]


def _settled_range(curves: Curves) -> tuple[float, float]:
    """Return the range of the bands without their first 2 %, and a little room."""
    settled = [(mean[len(mean) // 50 :], std[len(mean) // 50 :]) for mean, std in curves.values()]
    least = min(float((mean - std).min()) for mean, std in settled)
    most = max(float((mean + std).max()) for mean, std in settled)
    room = 0.05 * (most - least)
    return least - room, most + room


def by_number(
    points: Points,
    *,
    xlabel: str,
    ylabel: str = "accuracy",
    chance: float | None = None,
    logarithmic: bool = False,
    title: str = "",
) -> Figure:
    """Draw a score by a number that was varied: the mean over runs, with bars of one standard deviation.

    ``chance`` draws a line at the share of the larger class; ``logarithmic`` is about the horizontal axis.
    """
    with column_axes(_height(2.4, len(points) + (chance is not None), 2)) as (figure, axes):
        numbers = sorted({number for by_value in points.values() for number in by_value})
        axes.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if logarithmic else "linear")
        axes.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
        for place, (name, by_value) in enumerate(points.items()):
            look = LOOKS[name]
            # Side by side, so that equal scores do not hide each other's bars.
            shift = (place - (len(points) - 1) / 2) * 0.02
            axes.errorbar(
                [x * (1 + shift) if logarithmic else x + shift * np.ptp(numbers) for x in by_value],
                [mean for mean, _ in by_value.values()],
                yerr=[std for _, std in by_value.values()],
                color=look.color,
                linestyle=look.dashes,
                marker=look.marker,
                capsize=2.5,
                elinewidth=1.0,
                label=name,
            )
        if chance is not None:
            axes.axhline(chance, color=FAINT, linewidth=0.9, linestyle=":", label="always the larger class")
        axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
        axes.minorticks_off()
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.02))
        _legend_above(figure, columns=2)
        return figure


def memory_map(view: SpaceView, *, xlabel: str, ylabel: str) -> Figure:
    """Draw a space: its rows by class, the learner's score behind them, and the rows it remembers."""
    left, right, bottom, top = view.extent
    with column_axes(0.95 + 2.9 * (top - bottom) / (right - left)) as (figure, axes):
        from matplotlib.colors import LinearSegmentedColormap

        shades = [CLASS_COLORS[-1.0], "#FFFFFF", CLASS_COLORS[1.0]]
        axes.imshow(
            view.scores,
            extent=view.extent,
            origin="lower",
            cmap=LinearSegmentedColormap.from_list("classes", shades),
            vmin=-2.2,  # twice what the hinge loss asks for: the rows stay visible on their own class
            vmax=2.2,
            aspect="equal",
        )
        for label, color in CLASS_COLORS.items():
            rows, name = view.rows[view.classes == label], "class A" if label > 0 else "class B"
            axes.plot(*rows.T, ".", color=color, markersize=2.4, markeredgewidth=0)
            axes.plot([], [], "o", color=color, markersize=5, markeredgewidth=0, label=name)
        for mask, marker, size, name in (
            (~view.recovered, "o", 4.6, "remembered, as read"),
            (view.recovered, "D", 4.0, "remembered, recovered"),
        ):
            if mask.any():
                axes.plot(*view.buffer[mask].T, marker, mfc="white", mec="black", ms=size, label=name)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        _legend_above(figure, columns=2)
        return figure


def by_bytes(
    variants: Mapping[str, Mapping[int, float]],
    planner: Mapping[int, float],
    points: Mapping[int, tuple[int, float]],
    *,
    chance: float,
    title: str = "",
) -> Figure:
    """Draw accuracy by total bytes: the planner's curve over thin ones of the variants, and single points.

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
    with column_axes(4.15) as (figure, axes):
        from matplotlib.patheffects import withStroke

        axes.set(xlabel="total bytes (KiB)", ylabel="accuracy", xscale="log")
        axes.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
        # Under the thin curves, so that the variant that the planner follows stays in sight.
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
        single: dict[Any, str] = {_DASHED: "_", "-": "x", _DOTTED: "+"}  # a curve of one budget is a point
        for place, (name, curve) in enumerate(variants.items()):
            look = KEPT_LOOKS[name]
            # Points stand side by side, so that equal scores do not hide each other.
            shift = 1.0 if len(curve) > 1 else 1 + 0.025 * (place - (len(variants) - 1) / 2)
            axes.plot(
                [size * shift for size in curve],
                list(curve.values()),
                color=look.color,
                linestyle=look.dashes if len(curve) > 1 else "none",
                marker=None if len(curve) > 1 else single[look.dashes],
                markersize=7,
                linewidth=1.0,
                label=name.replace(", stratified", ", strat.").replace("float", "f"),
            )
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
        axes.set_ylim(top=min(axes.get_ylim()[1], 1.02))
        _kib_ticks(axes.xaxis, [*planner, *(size for size, _ in points.values())])
        bold, *others = axes.get_legend_handles_labels()[0]
        figure.legend(
            handles=[*others[:-1], bold, others[-1]],
            loc="outside upper center",
            ncols=2,
            columnspacing=1.2,
            handlelength=1.8,
        )
        return figure


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
        below.plot(rounds, budget, color="black", linewidth=1.0, linestyle=_DASHED, label="budget")
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
        _legend_above(figure, columns=2)
        return figure


def _kib_ticks(axis: Any, sizes: Iterable[int]) -> None:
    """Set the ticks of a logarithmic axis of bytes at powers of two of KiB, over the sizes shown."""
    sizes = list(sizes)
    least, most = int(np.floor(np.log2(min(sizes) / 1024))), int(np.ceil(np.log2(max(sizes) / 1024)))
    powers = [2.0**power for power in range(least, most + 1)]
    axis.set_ticks([1024 * size for size in powers], labels=[f"{size:g}" for size in powers])
    axis.set_ticks([], minor=True)


def _height(below: float, entries: int, columns: int) -> float:
    """Return a height that leaves the plot the same room under any legend."""
    return below + 0.17 * -(-entries // columns)


def _legend_above(figure: Figure, *, columns: int) -> None:
    figure.legend(loc="outside upper center", ncols=columns)


def write(figure: Figure, stem: Path) -> list[Path]:
    """Write ``stem``.svg and ``stem``.png; return both."""
    paths = [stem.with_suffix(".svg"), stem.with_suffix(".png")]
    with house_style():
        figure.savefig(paths[0], metadata={"Date": None}, dpi=SVG_DPI)
        figure.savefig(paths[1], dpi=PNG_DPI)
    return paths


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an SVG element to stand in an HTML page, scaled by the page's style.

    ``name`` keeps the ids of several figures in a page apart; ``description`` is read out in its place.
    """
    out = io.StringIO()
    with house_style():
        figure.savefig(out, format="svg", metadata={"Date": None}, dpi=SVG_DPI)
    _, box, content = re.split(r'<svg\b[^>]*(viewBox="[^"]*")[^>]*>', out.getvalue(), maxsplit=1)
    # matplotlib's style element would hold for the whole page; what it says is said by the SVG itself.
    content = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", content, flags=re.DOTALL)
    content = re.sub(r"base64,[^\"]*", lambda data: "".join(data[0].split()), content)
    content = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", content).replace("xlink:href", "href")
    lines = "stroke-linejoin:round;stroke-linecap:butt"
    return f'<svg {box} style="{lines}" role="img" aria-label="{escape(description)}">{content.strip()}'
