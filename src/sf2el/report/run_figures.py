"""The run's figures, drawn as SVG text: the base install has no drawing library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

INK, FAINT, GRID = "#1d1f23", "#6b7079", "#e6e4de"
COLOURS = ("#7B1E66", "#0072B2", "#D55E00", "#00805E", "#E69F00", "#56B4E9")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "", "7 3")
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 480, 58, 14, 14, 42
FONT = "font-family='system-ui, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif' font-size='12'"
SHADES = 4
MOST_ROWS, MOST_NAME = 48, 22

Line = Sequence[tuple[float, float]]


@dataclass
class Frame:
    """Axes of a figure: where a value of the data is in the picture."""

    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    left: int = LEFT
    top: int = TOP
    parts: list[str] = field(default_factory=list)

    def at_x(self, value: float) -> float:
        """Return a value's place across."""
        low, high = self.x
        return self.left + (value - low) / ((high - low) or 1.0) * (WIDTH - self.left - RIGHT)

    def at_y(self, value: float) -> float:
        """Return a value's place down."""
        low, high = self.y
        return (
            self.height - BOTTOM - (value - low) / ((high - low) or 1.0) * (self.height - self.top - BOTTOM)
        )

    def text(self, x: float, y: float, content: str, anchor: str = "middle", more: str = "") -> None:
        """Write a text."""
        self.parts.append(
            f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='{INK}'{more}>"
            f"{escape(content)}</text>"
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> None:
        """Draw a straight line."""
        self.parts.append(
            f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}'{more}/>"
        )

    def across(self, label: str) -> None:
        """Draw the axis at the bottom."""
        floor_y = self.height - BOTTOM
        self.line(self.left, floor_y, WIDTH - RIGHT, floor_y, INK)
        for tick in ticks(*self.x, 5):
            if abs(tick - round(tick)) > 1e-9:
                continue  # there is no half row
            place = self.at_x(tick)
            self.line(place, floor_y, place, floor_y + 4, INK)
            anchor = "end" if place > WIDTH - RIGHT - 12 else "middle"
            self.text(place, floor_y + 17, f"{tick:,.0f}", anchor)
        self.text((self.left + WIDTH - RIGHT) / 2, self.height - 6, label)

    def up(self, show: Callable[[float], str]) -> None:
        """Draw the axis at the left, and lines across."""
        for tick in ticks(*self.y, 5):
            place = self.at_y(tick)
            self.line(self.left, place, WIDTH - RIGHT, place, GRID)
            self.text(self.left - 6, place + 4, show(tick), "end")

    def svg(self, description: str) -> str:
        """Return the picture."""
        box = f"viewBox='0 0 {WIDTH} {self.height}'"
        return f"<svg {box} role='img' aria-label='{escape(description)}' {FONT}>{''.join(self.parts)}</svg>"


def lines(
    curves: Mapping[str, Line],
    *,
    rows: int,
    y: tuple[float, float],
    show: Callable[[float], str],
    description: str,
    marks: Sequence[int] = (),
    level: tuple[str, float] | None = None,
) -> str:
    """Draw curves over rows, a legend above them, dotted marks down, and one level across.

    A point with gaps on both sides is a dot; of dots in one place the later is the smaller.
    """
    legend = [*curves, *([level[0]] if level else [])]
    frame = Frame(250, (0.0, float(rows)), y)
    places, frame.top = _legend_places(legend)
    frame.height += frame.top - TOP
    frame.up(show)
    for row in marks:
        place = frame.at_x(row)
        frame.line(place, frame.top, place, frame.height - BOTTOM, FAINT, " stroke-dasharray='1 3'")
    if level:
        at, style = frame.at_y(level[1]), " stroke-width='1.5' stroke-dasharray='4 3'"
        frame.line(frame.left, at, WIDTH - RIGHT, at, INK, style)
        _legend_entry(frame, places[-1], level[0], INK, style)
    for number, (name, curve) in enumerate(curves.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        style = f" stroke-width='2' stroke-dasharray='{dash}'" if dash else " stroke-width='2'"
        for piece in _pieces(curve, rows):
            points = [(frame.at_x(a), frame.at_y(min(max(b, y[0]), y[1]))) for a, b in piece]
            if len(points) == 1:
                ((across, down),) = points
                radius = max(2.0, 5.0 - 1.5 * number)
                frame.parts.append(
                    f"<circle cx='{across:.1f}' cy='{down:.1f}' r='{radius:g}' fill='{colour}'/>"
                )
                continue
            path = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
            frame.parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}'{style}/>")
        _legend_entry(frame, places[number], name, colour, style)
    frame.across("row")
    return frame.svg(description)


def presence(shares: Mapping[str, Sequence[float]], *, rows: int, stride: int, description: str) -> str:
    """Draw which feature was there when: features down, rows across, darker where it was there more often.

    With more features than fit, neighbours share a line.
    """
    names = list(shares)
    group = max(1, ceil(len(names) / MOST_ROWS))
    bands = [names[start : start + group] for start in range(0, len(names), group)]
    labels = [_name(band) for band in bands]
    step = 17 if len(bands) <= 24 else 12
    longest = max(map(len, labels), default=0)
    frame = Frame(
        TOP + BOTTOM + step * len(bands), (0.0, float(rows)), (0.0, 1.0), left=16 + round(6.6 * longest)
    )
    for place, (band, label) in enumerate(zip(bands, labels, strict=True)):
        top = TOP + place * step
        small = "" if step > 12 else " font-size='10'"
        frame.text(frame.left - 6, top + step / 2 + 4, label, "end", small)
        levels = [
            ceil(SHADES * sum(column) / len(band)) for column in zip(*(shares[n] for n in band), strict=True)
        ]
        for start, stop, level in runs(levels):
            if not level:
                continue
            x1, x2 = frame.at_x(start * stride), frame.at_x(min(stop * stride, rows))
            frame.parts.append(
                f"<rect x='{x1:.1f}' y='{top + 1}' width='{x2 - x1:.1f}' height='{step - 3}' "
                f"fill='{COLOURS[1]}' fill-opacity='{level / SHADES:g}'/>"
            )
    frame.across("row")
    return frame.svg(description)


def runs(values: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the stretches of equal values: start, stop, value.

    >>> runs([2, 2, 0])
    [(0, 2, 2), (2, 3, 0)]
    """
    found: list[tuple[int, int, int]] = []
    for place, value in enumerate(values):
        if found and found[-1][2] == value:
            found[-1] = (found[-1][0], place + 1, value)
        else:
            found.append((place, place + 1, value))
    return found


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers from low to high, about so many.

    >>> ticks(0.0, 19020.0, 5)
    [0.0, 5000.0, 10000.0, 15000.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    unit = 10.0 ** floor(log10(raw))
    step = next(unit * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if unit * factor >= raw * 0.999)
    first = ceil(low / step - 1e-9)
    return [number * step for number in range(first, floor(high / step + 1e-9) + 1)]


def _pieces(curve: Line, rows: int) -> list[Line]:
    """Return a curve cut where it has a gap: a stretch without points."""
    if len(curve) < 3:
        return [curve] if curve else []
    steps = sorted(b[0] - a[0] for a, b in pairwise(curve))
    most = 2.5 * max(steps[len(steps) // 2], rows / 200)
    found: list[list[tuple[float, float]]] = [[curve[0]]]
    for before, point in pairwise(curve):
        if point[0] - before[0] > most:
            found.append([])
        found[-1].append(point)
    return list(found)


def _legend_places(names: Sequence[str]) -> tuple[list[tuple[float, float]], int]:
    """Return where the legend's entries stand, and where the plot begins below them."""
    places, x, y = [], float(LEFT), 14.0
    for name in names:
        width = 34 + 6.8 * len(name)
        if x + width > WIDTH and x > LEFT:
            x, y = float(LEFT), y + 17
        places.append((x, y))
        x += width + 10
    return places, round(y + 14)


def _legend_entry(frame: Frame, place: tuple[float, float], name: str, colour: str, style: str) -> None:
    x, y = place
    frame.line(x, y - 4, x + 24, y - 4, colour, style)
    frame.text(x + 30, y, name, "start")


def _name(band: Sequence[str]) -> str:
    label = band[0] if len(band) == 1 else f"{band[0]} +{len(band) - 1}"
    return label if len(label) <= MOST_NAME else f"{label[: MOST_NAME - 1]}…"
