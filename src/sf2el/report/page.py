"""A builder of self-contained HTML pages: no network, no scripts, style and figures inside.

Every text is escaped, and may be broken into lines as its author likes; only a figure's SVG is taken as it
is, and it must come from our own drawing code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from sf2el.storage.atomic import write_text


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    content: str

    def html(self) -> str:
        """Return the paragraph's HTML."""
        return f"<p>{text(self.content)}</p>"


@dataclass(frozen=True)
class Points:
    """A list of short paragraphs."""

    points: Sequence[str]

    def html(self) -> str:
        """Return the list's HTML."""
        items = "\n".join(f"<li>{text(point)}</li>" for point in self.points)
        return f"<ul>\n{items}\n</ul>"


@dataclass(frozen=True)
class Facts:
    """A few large numbers, each with what it is."""

    facts: Sequence[tuple[str, str]]

    def html(self) -> str:
        """Return the numbers' HTML."""
        items = "\n".join(
            f"<div><dt>{text(what)}</dt><dd>{text(number)}</dd></div>" for number, what in self.facts
        )
        return f'<dl class="facts">\n{items}\n</dl>'


@dataclass(frozen=True)
class Figure:
    """One or more panels, each an SVG element, and a caption."""

    panels: Sequence[str]
    caption: str

    def html(self) -> str:
        """Return the figure's HTML."""
        panels = "\n".join(f'<div class="card">{svg}</div>' for svg in self.panels)
        layout = "single" if len(self.panels) == 1 else "pair"
        return (
            f'<figure class="{layout}">\n{panels}\n<figcaption>{text(self.caption)}</figcaption>\n</figure>'
        )


@dataclass(frozen=True)
class Cell:
    """A cell of a table; ``best`` sets it in bold."""

    content: str
    best: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand to the right, under each other."""

    title: str
    number: bool = True


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of a row names it."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"A row has {len(row)} cells for {len(self.columns)} columns: {row!r}.")

    def html(self) -> str:
        """Return the table's HTML, in a box that scrolls where the page is narrow."""
        head = "".join(
            f'<th scope="col"{_number(column)}>{text(column.title)}</th>' for column in self.columns
        )
        body = "\n".join(f"<tr>{self._row(row)}</tr>" for row in self.rows)
        # A scrolling box must be reachable without a mouse: hence tabindex, and a role and a name for it.
        # The caption stands outside, where it does not scroll away.
        return (
            f'<figure>\n<div class="scroll" role="region" tabindex="0" aria-label="{text(self.caption)}">\n'
            f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>\n"
            f"<figcaption>{text(self.caption)}</figcaption>\n</figure>"
        )

    def _row(self, row: Sequence[Cell | str]) -> str:
        cells = []
        for place, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
            cell = cell if isinstance(cell, Cell) else Cell(cell)
            content = f"<strong>{text(cell.content)}</strong>" if cell.best else text(cell.content)
            tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
            cells.append(f"<{tag}{scope}{_number(column)}>{content}</{tag}>")
        return "".join(cells)


def text(content: str) -> str:
    """Return a text as HTML, on one line.

    >>> text("5 < 6,   they say")
    '5 &lt; 6, they say'
    """
    return escape(" ".join(content.split()))


def _number(column: Column) -> str:
    return ' class="number"' if column.number else ""


@dataclass(frozen=True)
class Folded:
    """A table that opens when its title is asked for."""

    title: str
    table: Table

    def html(self) -> str:
        """Return the HTML."""
        return f"<details>\n<summary>{text(self.title)}</summary>\n{self.table.html()}\n</details>"


Block = Text | Points | Facts | Figure | Table | Folded


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """Return the section's HTML."""
        blocks = "\n".join(block.html() for block in self.blocks)
        return f"<section>\n<h2>{text(self.title)}</h2>\n{blocks}\n</section>"


@dataclass(frozen=True)
class Page:
    """A page: title, lead paragraph, facts and sections, and a footer with version and settings.

    Examples
    --------
    >>> page = Page("Rain", "Did it rain?", [Section("Yes", [Text("5 < 6 mm")])], ["version 1"])
    >>> "<p>5 &lt; 6 mm</p>" in page.html()
    True
    """

    title: str
    lead: str
    sections: Sequence[Section]
    footer: Sequence[str] = ()
    facts: Facts | None = None

    def html(self) -> str:
        """Return the whole page."""
        sections = "\n".join(section.html() for section in self.sections)
        footer = "\n".join(f"<p>{text(line)}</p>" for line in self.footer)
        return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(self.title)}</title>
<style>
{_style()}</style>
</head>
<body>
<main>
<header>
<h1>{text(self.title)}</h1>
<p class="lead">{text(self.lead)}</p>
{self.facts.html() if self.facts else ""}
</header>
{sections}
</main>
<footer>
{footer}
</footer>
</body>
</html>
"""

    def write(self, path: Path) -> Path:
        """Write the page, whole or not at all; make its folder where it is missing."""
        write_text(path, self.html())
        return path


@cache
def _style() -> str:
    return files("sf2el.report").joinpath("page.css").read_text(encoding="utf-8")
