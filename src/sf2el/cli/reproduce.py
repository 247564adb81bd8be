"""``sf2el reproduce``: the paper's tables and figures, ours beside the published."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sf2el.datasets import Dataset
    from sf2el.report.page import Page
    from sf2el.reproduce.protocol import Experiment
    from sf2el.reproduce.reproduce import Reproduction
    from sf2el.reproduce.storage import Storage


TARGETS = ("table1", "table2", "table3", "figures", "all", "storage", "default")


@click.command()
@click.argument("target", type=click.Choice(TARGETS))
@click.option("--reading", type=click.Choice(["best", "published"]), default="best", show_default=True)
@click.option("--datasets", "chosen", help="Names separated by commas; else all of them.")
@click.option(
    "--runs",
    type=click.IntRange(1, 100),
    help="Number of seeds; else 10 (0, 1, ...), and for default as many as declared (200, 201, ...).",
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, help="Workers; else one a core.")
@click.option("--data-dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/reproduce"),
    show_default=True,
    help="Folder for all results: one below it for each reading, and in that one for each part.",
)
@click.option(
    "--settings",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A settings file as sf2el tune writes them, in place of the reading's own; for the paper's tables.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what the JSON files hold.")
def reproduce(
    target: str,
    reading: str,
    chosen: str | None,
    runs: int | None,
    jobs: int,
    data_dir: Path | None,
    out: Path,
    settings: Path | None,
    as_json: bool,
) -> None:
    """Run the paper's experiments again: table1, table2, table3, figures, or all.

    Finished runs are kept, and not computed again when the command is repeated, as long as neither data nor
    settings nor code have changed. A part (a table, some datasets, fewer runs) has a folder of its own and
    replaces nothing of the whole. Figures and the page need matplotlib: pip install "sf2el[plot]".

    storage is an experiment of our own: accuracy by bytes for different ways of keeping the learners, and a
    budget that changes while a stream runs. default is another: the default model beside the paper's methods
    and others, by label rate and budget, and on concepts that drift.
    """
    from sf2el.cli.progress import progress
    from sf2el.report.reproduction_page import drawings, reproduction_page
    from sf2el.reproduce import reproduce as steps
    from sf2el.reproduce.figures import need_matplotlib
    from sf2el.reproduce.readings import reading as reading_of
    from sf2el.reproduce.readings import reading_from
    from sf2el.reproduce.runner import UnitStore

    need_matplotlib()
    start = time.monotonic()
    datasets = load_chosen(chosen, data_dir)
    if settings and target in ("default", "storage"):
        raise click.BadParameter(f"{target} has its own settings.", param_hint="--settings")
    if target == "default":
        _default(datasets, reading, runs, jobs, Output(out / "default", as_json, start))
        return
    runs = runs or steps.RUNS
    if target == "storage":
        _storage(datasets, reading, runs, jobs, Output(out / "storage", as_json, start))
        return
    experiments = steps.experiments_for(target, tuple(datasets))
    if not experiments:
        raise ValueError(_nothing_to_run(target, steps.datasets_of(target), datasets))
    found = reading_from(settings, reading) if settings else reading_of(reading)
    used = {name for experiment in experiments.values() for name in experiment.datasets}
    datasets = {name: dataset for name, dataset in datasets.items() if name in used}
    if lacking := used - found.datasets.keys():
        raise ValueError(
            f"{settings} has no values for {', '.join(sorted(lacking))}; name others by --datasets."
        )
    with progress(f"{target}, {reading} reading", steps.count_units(experiments, range(runs))) as advance:
        result = steps.reproduce(
            experiments,
            datasets,
            found,
            seeds=range(runs),
            jobs=jobs,
            store=UnitStore(out, found, datasets),
            advance=advance,
        )
    output = Output(out / steps.folder_of(target, experiments, found, runs), as_json, start)
    result.write(output.folder)
    page = partial(reproduction_page, result)
    output.finish(drawings(result), page, result.content(), partial(_print, result))


@dataclass(frozen=True)
class Output:
    """Where results are written, and how they are printed."""

    folder: Path
    as_json: bool
    start: float
    """When the command began, by ``time.monotonic``."""

    def below(self, parts: Sequence[str]) -> Output:
        """Return the output of a part, in a folder of its own, so that it replaces nothing of the whole."""
        return replace(self, folder=self.folder / "_".join(parts))

    def finish(
        self,
        drawn: Mapping[str, Figure],
        page: Callable[..., Page],
        content: Mapping[str, Any],
        show: Callable[[], None],
    ) -> None:
        """Write the figures and their page; then print the content as JSON, or show it, and name the page."""
        from sf2el import __version__
        from sf2el.cli.compiled import variant_in_use
        from sf2el.reproduce import figures

        (self.folder / "figures").mkdir(parents=True, exist_ok=True)
        for name, figure in drawn.items():
            figures.write(figure, self.folder / "figures" / name)
        seconds = time.monotonic() - self.start
        made = page(drawn, version=__version__, variant=variant_in_use(), seconds=seconds)
        path = made.write(self.folder / "index.html")
        if self.as_json:
            click.echo(json.dumps({**content, "page": str(path)}, indent=1))
        else:
            show()
            click.echo(f"Tables, figures and the page: {path}")


def _storage(datasets: dict[str, Dataset], name: str, runs: int, jobs: int, output: Output) -> None:
    from sf2el.cli.progress import progress
    from sf2el.report.storage_page import drawings, storage_page
    from sf2el.reproduce import storage_runner
    from sf2el.reproduce.readings import reading
    from sf2el.reproduce.reproduce import RUNS, selection_parts
    from sf2el.reproduce.storage_design import Design, load_design

    if name != "best":
        raise click.BadParameter("storage is measured under the best reading.", param_hint="--reading")
    if not datasets:
        raise ValueError("None of the datasets is here; sf2el datasets says how to get them.")
    design = load_design(datasets)
    parts = storage_runner.parts_of(design, storage_runner.entries_of(design, datasets, reading(name)), runs)
    from_whole = selection_parts(design.datasets, Design.declared().datasets, None if runs == RUNS else runs)
    output = output.below(from_whole)
    with progress(f"storage, {name} reading", len(parts)) as advance:
        result = storage_runner.measure(
            design, datasets, reading(name), runs=runs, jobs=jobs, advance=advance
        )
    result.write(output.folder)
    page = partial(storage_page, result)
    output.finish(drawings(result), page, result.content(), partial(_print_storage, result))


def _default(datasets: dict[str, Dataset], reading: str, runs: int | None, jobs: int, output: Output) -> None:
    from sf2el.cli.progress import progress
    from sf2el.report.default_page import default_page
    from sf2el.reproduce.default_design import Design
    from sf2el.reproduce.default_figures import drawings
    from sf2el.reproduce.default_runner import UnitStore
    from sf2el.reproduce.default_study import count_units, run_study
    from sf2el.reproduce.default_tables import accuracy, verdict, write_study
    from sf2el.reproduce.reproduce import selection_parts

    if reading != "best":
        raise click.BadParameter("default is measured beside the best reading.", param_hint="--reading")
    design = Design.declared().on(datasets)
    if not design.datasets:
        raise ValueError(_nothing_to_run("default", Design.declared().datasets, datasets))
    used = {name: datasets[name] for name in design.datasets}
    store = UnitStore(output.folder / "units", design, used)
    output = output.below(selection_parts(design.datasets, Design.declared().datasets, runs))
    with progress("default", count_units(design, runs)) as advance:
        study = run_study(design, used, runs=runs, jobs=jobs, store=store, advance=advance)
    content = study.content()
    write_study(output.folder, content)

    def show() -> None:
        click.echo(f"{accuracy(content)}\n\n{verdict(content)}")
        for name, what in study.missing.items():
            click.echo(f"{name} is not installed: {what} left out.", err=True)

    output.finish(drawings(content), partial(default_page, content), content, show)


def _nothing_to_run(target: str, declared: Sequence[str], found: Collection[str]) -> str:
    """Return why a target has nothing to run: its datasets are not here, or not those that were asked for."""
    if found:
        return f"{target} is on {', '.join(declared)}, not on {' or '.join(found)}."
    return f"None of the datasets of {target} is here; sf2el datasets says how to get them."


def _print_storage(result: Storage) -> None:
    """Print the planner's accuracy, a row a dataset and a column a budget."""
    from rich.console import Console
    from rich.table import Table

    from sf2el.reproduce.storage_design import KIB, PLANNER

    budgets = result.design.budgets
    table = Table(title=f"{result.design.title}: the planner", box=None, header_style="bold")
    table.add_column("KiB", no_wrap=True)
    for budget in budgets:
        table.add_column(f"{budget // KIB}", justify="right", no_wrap=True)
    for dataset in result.datasets:
        curve = result.curve(dataset, PLANNER)
        shown = f"{dataset} (simulated)" if result.datasets[dataset].simulated else dataset
        table.add_row(shown, *(f"{curve[budget]:.3f}" if budget in curve else "" for budget in budgets))
    Console().print(table, highlight=False)
    click.echo(result.verdict())


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
                title = shown
                if axis == "label_rates":
                    if method == experiment.methods[0]:
                        table.add_row(shown)
                    title = f"  {method}"
                table.add_row(title, *(f"{cell['accuracy']['mean']:.3f}" for cell in cells))
                if cells[0]["paper"]:
                    published = (f"{cell['paper']['mean']:.3f}" for cell in cells)
                    table.add_row("  published", *published, style="dim", end_section=True)
        console.print(table, highlight=False)
    if any(dataset.simulated for dataset in result.datasets.values()):
        click.echo("(sim.): simulated, since the paper's data could not be obtained.")


def _axis(experiment: Experiment) -> str:
    """Return what varies along a row of an experiment's table."""
    if len(experiment.label_rates) > 1:
        return "label_rates"
    return "buffers" if len(experiment.buffers) > 1 else "methods"
