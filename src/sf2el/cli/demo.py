"""``sf2el demo``: the eight methods on the Swiss spirals, a table here and a page to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from sf2el.reproduce.demo import Demo


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Folder for the page and its figures.",
)
@click.option("--runs", type=click.IntRange(1, 100), default=10, show_default=True, help="Number of runs.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
def demo(out: Path, runs: int, as_json: bool) -> None:
    """Run the eight methods on the Swiss spirals and write an HTML page.

    A device's sensors are replaced half-way; few rows have labels and few can be remembered. Needs
    matplotlib: pip install "sf2el[plot]".
    """
    from sf2el.cli.progress import progress
    from sf2el.reproduce import figures
    from sf2el.reproduce.demo import run_demo, steps

    figures.need_matplotlib()
    with progress("demo", steps(runs)) as advance:
        results = run_demo(runs=runs, advance=advance)
    page = write_page(results, out)
    if as_json:
        click.echo(json.dumps(results.as_json() | {"page": str(page)}, indent=2))
        return
    from rich.console import Console

    console = Console()
    console.print(methods_table(results))
    console.print(buffer_table(results))
    click.echo(f"The page with figures and explanations: {page}")


def write_page(results: Demo, out: Path) -> Path:
    """Write the figures and the page; return the page's path."""
    from sf2el import __version__
    from sf2el.cli.compiled import variant_in_use
    from sf2el.report.demo_figures import drawings
    from sf2el.report.demo_page import demo_page
    from sf2el.reproduce import figures

    drawn = drawings(results)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        figures.write(figure, out / "figures" / name)
    return demo_page(results, drawn, version=__version__, variant=variant_in_use()).write(out / "index.html")


def methods_table(results: Demo) -> Table:
    """Return the eight methods' scores."""
    from rich.table import Table

    from sf2el.report.demo_page import is_best, show
    from sf2el.reproduce.demo import BUFFER

    spread = f"mean ± std over {results.runs} runs" if results.runs > 1 else "one run"
    table = Table(title=f"After the sensor swap: {spread}, {BUFFER} rows of memory")
    table.add_column("method", no_wrap=True)
    for title in ("accuracy", "balanced accuracy", "average risk"):
        table.add_column(title, justify="right", no_wrap=True)
    scores = {name: by_buffer[BUFFER] for name, by_buffer in results.scores.items()}
    for name, score in scores.items():
        cells = [show(spread, results.runs) for spread in vars(score).values()]
        marked = [
            f"[bold]{cell}[/]" if field != "average_risk" and is_best(name, scores, field) else cell
            for field, cell in zip(vars(score), cells, strict=True)
        ]
        table.add_row(name, *marked, end_section=name in ("NOGD+MR", "uROGD+MR", "fROGD+MR"))
    return table


def buffer_table(results: Demo) -> Table:
    """Return the accuracy by buffer size."""
    from rich.table import Table

    from sf2el.report.demo_page import show
    from sf2el.reproduce.demo import BUFFERS

    table = Table(title="Accuracy by rows of memory")
    table.add_column("method", no_wrap=True)
    for size in BUFFERS:
        table.add_column(str(size), justify="right", no_wrap=True)
    for name, by_size in results.accuracies().items():
        table.add_row(name, *(show(by_size[size], results.runs) for size in BUFFERS))
    return table
