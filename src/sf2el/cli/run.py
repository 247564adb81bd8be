"""``sf2el run``: a model over a file or a pipe, every row predicted and then learned."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sf2el.running import Checkpoint, Run, RunSettings
    from sf2el.sources import Source

EVERY = 50_000
BUDGET = "64KiB"
BUFFER = 60


def _named(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value is not None and not Path(value).name:
        raise click.BadParameter("name a file.")
    return value


@click.command()
@click.argument("data", callback=_named)
@click.option("--label", required=True, metavar="COL", help="The label's column; empty where not known.")
@click.option("--budget", show_default=BUDGET, help="Bytes the model may use.")
@click.option("--seed", type=int, default=0, show_default=True, help="One seed, same bits.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results/run"),
    show_default=True,
    help="Folder for predictions.csv, summary.json and index.html.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=_named,
    help="Write the model there at the end, or when the run is stopped, and checkpoints beside it meanwhile.",
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=_named,
    help="Go on from the checkpoint of an interrupted run: the FILE that --save named.",
)
@click.option(
    "--start",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    callback=_named,
    help="Begin with a saved model, of other data that came before, not with a new one.",
)
@click.option("--checkpoint-every", "every", type=click.IntRange(1), default=EVERY, show_default=True)
@click.option("--regression", is_flag=True, help="Predict numbers, not labels.")
@click.option("--paper", is_flag=True, help="The published algorithm, held by --buffer or by --budget.")
@click.option(
    "--buffer",
    type=click.IntRange(2),
    help=f"Rows that each learner keeps; only with --paper, {BUFFER} where no --budget is given.",
)
@click.option("--classes", metavar="A,B", help="The labels, where they are known beforehand.")
@click.option("--class-weight", type=click.Choice(["balanced", "none"]), default="none", show_default=True)
@click.option(
    "--delay", type=click.IntRange(0), default=0, show_default=True, help="Rows a label comes late."
)
@click.option("--ignore", multiple=True, metavar="COL", help="Leave a column out; can be repeated.")
@click.option("--format", "format_", type=click.Choice(["csv", "jsonl", "parquet"]), help="Else found out.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N rows.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def run(
    data: str,
    out: Path,
    save: Path | None,
    resume: Path | None,
    every: int,
    format_: str | None,
    limit: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Predict and then learn every row of DATA: CSV, JSON lines or Parquet, or - for standard input.

    An empty cell means that a feature was not observed, or that a label is not known. A run that was
    interrupted goes on with --resume and gives the same predictions, summary and model, bit for bit.
    Summary and page are written at the end: a folder that has them holds one whole run.
    """
    from sf2el.running import Run
    from sf2el.sources import open_source

    settings = _settings(options)
    path = save or (resume and _model_path(resume))
    at_the_end = [out / "summary.json", out / "index.html"]
    _check_targets(data, [out / "predictions.csv", *at_the_end], path)
    found = _checkpoint(save, resume)
    source = open_source(
        data,
        settings.label,
        format=format_,
        regression=settings.regression,
        ignore=settings.ignore,
        kind=settings.kind,
    )
    try:
        work = Run(settings, source, out / "predictions.csv", found, at_the_end)
    except BaseException:
        source.close()
        raise
    start, before = time.monotonic(), work.tallies.rows
    with progress(source, before, limit) as advance:

        def tell(rows: int) -> None:
            nonlocal start
            if before and rows == before:
                start = time.monotonic()  # the rows that were done are passed over by now
            advance(rows)

        try:
            with _plain_warnings():
                work.go(limit=limit, every=every, save=_checkpoint_path(path) if path else None, advance=tell)
        except (ValueError, KeyboardInterrupt) as early:
            if path is not None and work.whole and work.tallies.rows > before:
                work.model.save(path)
            if isinstance(early, KeyboardInterrupt):
                raise KeyboardInterrupt(_left(work, path)) from None
            raise
    seconds = time.monotonic() - start
    summary = _finish(work, out, path, seconds, work.tallies.rows - before)
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(_told(summary, out, path)))


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Say what is warned of as a sentence, not where in the code."""

    def show(message: Any, *place: Any, **more: Any) -> None:
        click.echo(f"Warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _check_targets(data: str, outputs: list[Path], model: Path | None) -> None:
    """Refuse to write over the data, over what is no file, or two things to one place."""
    targets = outputs if model is None else [*outputs, model, _checkpoint_path(model)]
    if model is not None:
        if model == _checkpoint_path(model):
            raise ValueError(
                f"{model} is the name of a checkpoint; let --save name a file without .checkpoint."
            )
        places = [target.resolve() for target in outputs]
        for target in (model, _checkpoint_path(model)):
            if target.resolve() in places:
                raise ValueError(f"{target} is what the run writes in --out; let --save name another file.")
            if target.resolve() in places[0].parents:
                raise ValueError(f"{target} is the folder of --out; let --save name another file.")
    for target in targets:
        if not target.exists():
            continue
        if not target.is_file():
            raise ValueError(f"{target} is not a file that can be written; name another.")
        if data != "-" and Path(data).exists() and target.samefile(data):
            raise ValueError(f"{target} is the data itself; write to another place.")


def _settings(options: dict[str, Any]) -> RunSettings:
    from sf2el.running import RunSettings

    paper, buffer = options.pop("paper"), options.pop("buffer")
    if buffer is not None and not paper:
        raise click.BadParameter("it goes with --paper; SF2EL itself has --budget.", param_hint="--buffer")
    budget, start = options.pop("budget"), options.pop("start")
    told = click.get_current_context().get_parameter_source("seed")
    if start is not None and told is not click.core.ParameterSource.DEFAULT:
        raise click.BadParameter("it is the saved model's own with --start.", param_hint="--seed")
    if buffer is not None and budget is not None:
        raise click.BadParameter("give either --budget or --buffer, not both.", param_hint="--buffer")
    if paper and budget is None:
        buffer = buffer or BUFFER
    classes = options.pop("classes")
    weight = options.pop("class_weight")
    return RunSettings(
        **options,
        budget=BUDGET if budget is None and start is None else budget,
        start=None if start is None else str(start),
        buffer=buffer,
        paper=paper,
        classes=tuple(name.strip() for name in classes.split(",")) if classes is not None else None,
        class_weight=None if weight == "none" else weight,
    )


def _checkpoint(save: Path | None, resume: Path | None) -> Checkpoint | None:
    """Return the checkpoint to go on from; None starts with the first row."""
    from sf2el.running import read_checkpoint

    if resume is None:
        return None
    path = _checkpoint_path(resume)
    if path.exists():
        return read_checkpoint(path)
    if save is None or _checkpoint_path(save) != path:
        raise ValueError(
            f"There is no checkpoint {path}; name the FILE that --save named, or start without --resume."
        )
    click.echo(f"There is no checkpoint {path} yet: starting with the first row.", err=True)
    return None


def _checkpoint_path(model: Path) -> Path:
    return model if model.name.endswith(".checkpoint") else model.with_name(f"{model.name}.checkpoint")


def _model_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".checkpoint"))


def _finish(work: Run, out: Path, path: Path | None, seconds: float, rows: int) -> dict[str, Any]:
    """Write the last checkpoint, the model, the summary and the page."""
    from sf2el import __version__
    from sf2el.cli.compiled import variant_in_use
    from sf2el.report.run_page import run_page
    from sf2el.running.summary import summary_of
    from sf2el.storage.atomic import write_text

    summary = summary_of(work) | {"time": {"seconds": seconds, "rows_per_second": rows / max(seconds, 1e-9)}}
    if path is not None:
        work.last_checkpoint().write(_checkpoint_path(path))
        work.model.save(path)
    write_text(out / "summary.json", json.dumps(summary, indent=1) + "\n")
    page = run_page(
        summary,
        work.tallies.history,
        budget=work.model.budget,
        version=__version__,
        variant=variant_in_use(),
        seconds=seconds,
    )
    page.write(out / "index.html")
    return summary


def _left(work: Run, path: Path | None) -> str:
    """Return what an interrupted run leaves behind."""
    done = f"after {work.tallies.rows:,} rows"
    if path is None:
        return f"{done}; with --save it could go on"
    return f"{done}; --resume {path} goes on, and the model by then is there too"


def _told(summary: dict[str, Any], out: Path, path: Path | None) -> list[str]:
    """Return the summary as lines to read."""
    named = [("rows", f"{summary['rows']:,}"), ("labelled", f"{summary['labelled']:,}")]
    if summary["empty_rows"]:
        named.append(("empty rows", f"{summary['empty_rows']:,}"))
    named += [
        (name.replace("_", " "), f"{value:.4f}")
        for name, value in summary["metrics"].items()
        if value is not None
    ]
    if summary.get("largest_class"):
        named.append(("largest class", f"{summary['largest_class']:.4f}"))
    named += [
        ("bytes at most", f"{summary['most_bytes']:,}"),
        ("feature spaces", f"{summary['spaces']}"),
        ("speed", f"{summary['time']['rows_per_second']:,.0f} rows/s"),
        ("report", str(out / "index.html")),
    ]
    if path is not None:
        named.append(("model", str(path)))
    return [f"{name:<19}{value}" for name, value in named]


@contextmanager
def progress(source: Source, before: int = 0, limit: int | None = None) -> Iterator[Callable[[int], None]]:
    """Give ``advance(rows)``: rows, rows per second and the time left, on stderr, once it takes a while.

    ``before`` are the rows that an earlier run did, ``limit`` those to be done in all. The first call tells
    that the next row is about to be done.
    """
    from sf2el.cli.progress import LINE_EVERY, duration

    start = last = time.monotonic()
    terminal = sys.stderr.isatty()
    begun: float | None = None
    shown = False

    def share(rows: int) -> float:
        """Return the part that is done, 0 where that is not known."""
        read = source.done / source.size if source.size else 0.0
        return min(1.0, max(read, rows / limit if limit else 0.0))

    def advance(rows: int) -> None:
        nonlocal start, last, begun, shown
        now = time.monotonic()
        if begun is None:
            # Passing over rows that were done says nothing about how long the others take.
            start, begun = now, share(rows) if before else 0.0
            return
        if now - last < (0.2 if terminal else LINE_EVERY):
            return
        last = now
        text = f"run: {rows:,} rows, {(rows - before) / max(now - start, 1e-9):,.0f} rows/s"
        if done := share(rows):
            filled = round(24 * done)
            bar = f"{'━' * filled}{' ' * (24 - filled)} " if terminal else ""
            text = f"{bar}{text}, {done:.0%}"
            if done > begun:
                text += f", {duration((now - start) / (done - begun) * (1.0 - done))} left"
        click.echo(f"\r\x1b[K{text}" if terminal else text, err=True, nl=not terminal)
        shown = True

    yield advance
    if terminal and shown:
        click.echo("\r\x1b[K", err=True, nl=False)
