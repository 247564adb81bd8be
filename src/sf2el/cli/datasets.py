"""``sf2el datasets``: what there is and where it comes from; ``sf2el datasets fetch``: getting it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sf2el.datasets import Status

PLAIN_WIDTH = 160
"""Columns of the table where the output is no terminal."""


@click.group(name="datasets", invoke_without_command=True)
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with the datasets' files; else SF2EL_DATA, else the cache.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def command(ctx: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """List the paper's datasets, where each comes from, and whether it is here."""
    if ctx.invoked_subcommand is not None:
        return
    from sf2el.datasets import names, status

    found = [status(name, data_dir) for name in names()]
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    else:
        _print_table(found)


@command.command()
@click.argument("name")
@click.option(
    "--data-dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder to write to; else the cache.",
)
@click.pass_context
def fetch(ctx: click.Context, name: str, folder: Path | None) -> None:
    """Download the dataset NAME, or all, from its public archive, and verify it."""
    from sf2el.datasets import FetchError, names
    from sf2el.datasets import fetch as fetch_files
    from sf2el.datasets.registry import find_entry

    if name not in (*names(), "all"):
        raise click.BadParameter(f"{name!r} is not one of {', '.join(names())} or all.", param_hint="NAME")
    if folder is None and ctx.parent is not None:
        folder = ctx.parent.params.get("data_dir")
    failed = []
    for one in names() if name == "all" else (name,):
        entry = find_entry(one)
        if not entry.remotes:
            click.echo(f"{one}: {entry.made}, nothing to fetch.")
            continue
        try:
            paths, problems = fetch_files(one, folder)
        except FetchError as error:
            failed.append(one)
            click.echo(f"{one}: {error}", err=True)
            continue
        click.echo(f"{one}: {', '.join(map(str, paths))}")
        for problem in problems:
            click.echo(f"{one}: without the file preprocessed for FESL. {problem}", err=True)
    if failed:
        raise click.ClickException(f"Not fetched: {', '.join(failed)}.")


def _print_table(found: list[Status]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    table = Table(box=None, header_style="bold")
    for title in ("dataset", "rows", "old", "new", "majority"):
        table.add_column(title, justify="left" if title == "dataset" else "right", no_wrap=True)
    table.add_column("here", no_wrap=True)
    table.add_column("from", overflow="fold")
    for one in found:
        title = f"{one.name} (simulated)" if one.simulated else one.name
        here = "damaged" if one.problem else "yes" if one.here else "no"
        sizes = (str(one.rows), str(one.d1), str(one.d2), f"{one.majority:.3f}")
        table.add_row(title, *sizes, here, Text(one.problem or one.source))
    console.print(table, highlight=False)
