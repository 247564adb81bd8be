"""Figures in one house style: each method has its colour and marker everywhere, a spread over runs its band.

Figures are made for a column of a page (3.5 inches) with no text below 8 points. Nothing here touches
matplotlib's global state, and the same data give the same bytes. matplotlib is an optional extra.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
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

    from sf2el.reproduce.demo import SpaceView

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


DASHED = (0, (4.0, 1.6))
LOOKS: dict[str, Look] = {
    "NOGD": Look("#56B4E9", "s", DASHED),
    "NOGD+MR": Look("#0072B2", "s"),
    "uROGD": Look("#E69F00", "^", DASHED),
    "uROGD+MR": Look("#D55E00", "^"),
    "fROGD": Look("#66C2A5", "v", DASHED),
    "fROGD+MR": Look("#00805E", "v"),
    "FESL-Variant": Look("#CC79A7", "o", DASHED),
    "SF2EL": Look("#7B1E66", "o"),
}
"""After Okabe and Ito; a method and its twin with the manifold term share hue and marker, and the twin is
darker and solid. Marker and dashes tell apart what a colour-blind eye may not."""

DOTTED = (0, (1.0, 1.4))


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
    least: float = -np.inf,
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
    least
        What no value can be below: bands end there.
    title
        What the figure is of, where several stand side by side.
    """
    with column_axes(_height(2.4, len(curves), 1 if labels else 2)) as (figure, axes):
        for place, (name, (mean, std)) in enumerate(curves.items()):
            look, kept = LOOKS[name], _thinned(len(mean))
            at, mean, std = kept + 1 if rounds is None else rounds[kept], mean[kept], std[kept]
            low = np.maximum(mean - std, least)
            axes.fill_between(at, low, mean + std, color=look.color, alpha=0.16, linewidth=0)
            axes.plot(
                at,
                mean,
                color=look.color,
                linestyle=look.dashes,
                marker=look.marker,
                markevery=_marked(at, (place + 0.5) / len(curves)),
                label=(labels or {}).get(name, name),
            )
        axes.set(xlabel=xlabel, ylabel=ylabel, xlim=(0, at[-1]), ylim=ylim or _settled_range(curves, least))
        axes.set_title(title, loc="left", fontsize=8.5, fontweight="bold")
        legend_above(figure, columns=1 if labels else 2)
        return figure


def scatter(rows: Floats, classes: Floats, *, xlabel: str, ylabel: str) -> Figure:
    """Draw rows of two features by class."""
    with column_axes(3.1) as (figure, axes):
        for sign, name in ((1.0, "class +1"), (-1.0, "class -1")):
            points = rows[classes == sign]
            axes.scatter(points[:, 0], points[:, 1], s=5, color=CLASS_COLORS[sign], linewidths=0)
            axes.plot([], [], "o", color=CLASS_COLORS[sign], markersize=6, label=name)
        axes.set(xlabel=xlabel, ylabel=ylabel, aspect="equal")
        legend_above(figure, columns=2)
        return figure


def _thinned(rounds: int) -> npt.NDArray[np.int64]:
    """Return which rounds to draw: the first 40, then as many as the eye can tell apart, and the last."""
    evenly = np.linspace(0, rounds - 1, min(rounds, 250)).round().astype(np.int64)
    return np.union1d(np.arange(min(rounds, 40)), evenly)


def _marked(rounds: npt.NDArray[np.int64], shift: float) -> list[int]:
    """Return where to set six markers, shifted so that those of different curves do not meet."""
    return [int(place) for place in np.searchsorted(rounds, (np.arange(6) + shift) / 6 * rounds[-1])]


def _settled_range(curves: Curves, least: float) -> tuple[float, float]:
    """Return the range of the bands without their first 2 %, and a little room."""
    settled = [(mean[len(mean) // 50 :], std[len(mean) // 50 :]) for mean, std in curves.values()]
    low = max(least, min(float((mean - std).min()) for mean, std in settled))
    high = max(float((mean + std).max()) for mean, std in settled)
    room = 0.05 * (high - low)
    return max(least, low - room), high + room


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
        legend_above(figure, columns=2)
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
        legend_above(figure, columns=2)
        return figure


def _height(below: float, entries: int, columns: int) -> float:
    """Return a height that leaves the plot the same room under any legend."""
    return below + 0.17 * -(-entries // columns)


def legend_above(figure: Figure, *, columns: int) -> None:
    """Put the legend above the axes."""
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
