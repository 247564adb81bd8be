"""``sf2el reproduce``: the paper's tables and figures, ours beside the published."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sf2el.datasets import Dataset
    from sf2el.experiments.protocol import Experiment
    from sf2el.experiments.reproduce import Reproduction


@click.command()
@click.argument("target", type=click.Choice(["table1", "table2", "table3", "figures", "all"]))
@click.option("--reading", type=click.Choice(["best", "published"]), default="best", show_default=True)
@click.option("--datasets", "chosen", help="Names separated by commas; else all of them.")
@click.option("--runs", type=click.IntRange(1, 100), default=10, show_default=True, help="Seeds 0, 1, ...")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Threads; else one a core.")
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/reproduce"),
    show_default=True,
    help="Folder for tables, figures and the page; one below it for each reading.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
def reproduce(
    target: str,
    reading: str,
    chosen: str | None,
    runs: int,
    jobs: int,
    data_dir: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Run the paper's experiments again: table1, table2, table3, figures, or all.

    Finished runs are kept, and not computed again when the command is repeated. Figures and the page need
    matplotlib: pip install "sf2el[plot]".
    """
    from sf2el.cli.progress import progress
    from sf2el.experiments import reproduce as steps
    from sf2el.experiments.figures import need_matplotlib
    from sf2el.experiments.readings import reading as reading_of
    from sf2el.experiments.runner import Store

    need_matplotlib()
    start = time.monotonic()
    datasets = load_chosen(chosen, data_dir)
    experiments = steps.experiments_for(target, tuple(datasets))
    if not experiments:
        raise ValueError(f"None of the datasets of {target} is here; sf2el datasets says how to get them.")
    used = {name for experiment in experiments.values() for name in experiment.datasets}
    datasets = {name: dataset for name, dataset in datasets.items() if name in used}
    folder = out / reading
    with progress(f"{target}, {reading} reading", steps.count_units(experiments, range(runs))) as advance:
        result = steps.reproduce(
            experiments,
            datasets,
            reading_of(reading),
            seeds=range(runs),
            jobs=jobs,
            store=Store(out, reading_of(reading), datasets),
            advance=advance,
        )
    result.write(folder)
    page = _write_page(result, folder, start)
    if as_json:
        click.echo(json.dumps({"cells": result.cells, "page": str(page)}, indent=1))
    else:
        _print(result)
        click.echo(f"Tables, figures and the page: {page}")


def load_chosen(chosen: str | None, data_dir: Path | None) -> dict[str, Dataset]:
    """Load the datasets asked for; say of each missing one how to get it, and go on with the others."""
    from sf2el.datasets import DatasetMissing, load, names

    wanted = [name.strip() for name in chosen.split(",")] if chosen else list(names())
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]!r} is not one of {', '.join(names())}.", param_hint="--datasets"
        )
    found = {}
    for name in wanted:
        try:
            found[name] = load(name, data_dir)
        except DatasetMissing as error:
            click.echo(f"{name}: {error}", err=True)
    return found


def _write_page(result: Reproduction, folder: Path, start: float) -> Path:
    from sf2el._core import backend
    from sf2el.cli import version
    from sf2el.experiments import figures
    from sf2el.report.reproduction_page import drawings, reproduction_page

    drawn = drawings(result)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name, figure in drawn.items():
        figures.write(figure, folder / "figures" / name)
    page = reproduction_page(
        result, drawn, version=version(), backend=backend().NAME, seconds=time.monotonic() - start
    )
    return page.write(folder / "index.html")


def _print(result: Reproduction) -> None:
    """Print each table: a row a dataset, a column for what varies, the published numbers below ours."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for name, experiment in result.experiments.items():
        axis = _axis(experiment)
        table = Table(title=experiment.title, box=None, header_style="bold", title_justify="left")
        table.add_column("", no_wrap=True)
        for value in getattr(experiment, axis):
            table.add_column(f"{value}".replace("FESL-Variant", "FESL-V."), justify="right", no_wrap=True)
        for dataset in experiment.datasets:
            shown = f"{dataset} (sim.)" if result.datasets[dataset].simulated else dataset
            for method in experiment.methods if axis != "methods" else ("",):
                cells = [
                    cell
                    for cell in result.cells[name]
                    if cell["dataset"] == dataset and method in ("", cell["method"])
                ]
                title = f"{shown} {method}" if axis == "label_rates" else shown
                table.add_row(title, *(f"{cell['accuracy']['mean']:.3f}" for cell in cells))
                if cells[0]["paper"]:
                    published = (f"{cell['paper']['mean']:.3f}" for cell in cells)
                    table.add_row("  published", *published, style="dim", end_section=True)
        console.print(table, highlight=False)
    if any(dataset.simulated for dataset in result.datasets.values()):
        click.echo("(sim.): simulated, since the paper's data could not be had.")


def _axis(experiment: Experiment) -> str:
    """Return what varies along a row of an experiment's table."""
    if len(experiment.label_rates) > 1:
        return "label_rates"
    return "buffers" if len(experiment.buffers) > 1 else "methods"
