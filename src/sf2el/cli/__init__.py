"""The command line: one module a command, loaded only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

COMMANDS: dict[str, tuple[str, str, str]] = {
    "datasets": ("sf2el.cli.datasets", "command", "List the paper's datasets, and fetch them."),
    "demo": ("sf2el.cli.demo", "demo", "Run the eight methods on the Swiss spirals, and show them."),
    "doctor": ("sf2el.cli.doctor", "doctor", "Say what is installed, what is missing and how to get it."),
    "inspect": ("sf2el.cli.inspect", "inspect", "Say what a saved model holds."),
    "reproduce": (
        "sf2el.cli.reproduce",
        "reproduce",
        "Run the paper's experiments again, beside its numbers.",
    ),
    "run": ("sf2el.cli.run", "run", "Predict and learn every row of a file or a pipe."),
    "tune": ("sf2el.cli.tune", "tune", "Search hyperparameters on seeds that no reported run uses."),
}
"""Name of a command: its module, the command in it, and what ``--help`` says without importing either."""


class LazyGroup(click.Group):
    """A group that imports a command when it is used, and reports an error in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or return None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the registry: no command is imported for ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with errors_in_one_sentence(debug=ctx.params.get("debug", False)):
            return super().invoke(ctx)


@contextmanager
def errors_in_one_sentence(*, debug: bool) -> Iterator[None]:
    """Turn an error into one sentence on stderr and exit code 1; with ``debug`` let its traceback through."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click's own: usage errors leave with 2, and a reader that has closed the pipe is no error
    except KeyboardInterrupt as interrupt:
        click.echo(f"Interrupted {interrupt}".rstrip() + ".", err=True)
        raise click.exceptions.Exit(130) from None
    except Exception as error:
        if debug:
            raise
        raise click.ClickException(sentence(error)) from error


def sentence(error: Exception) -> str:
    """Return an error as one sentence on one line.

    >>> sentence(FileNotFoundError(2, "No such file or directory", "rows.csv"))
    'rows.csv: no such file or directory.'
    >>> sentence(ValueError("budget must be positive,\\nnot -1."))
    'budget must be positive, not -1.'
    >>> sentence(KeyError("angle"))
    "Unexpected KeyError: 'angle'; sf2el --debug COMMAND shows where."
    """
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror[0].lower() + error.strerror[1:]
        return f"{error.filename}: {reason}." if error.filename else f"{error.strerror}."
    text = " ".join(str(error).split())
    if isinstance(error, (ValueError, OSError, ImportError)) and text:
        return text if text.endswith(".") else f"{text}."
    return f"Unexpected {type(error).__name__}: {text or 'no message'}; sf2el --debug COMMAND shows where."


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    with errors_in_one_sentence(debug=ctx.params.get("debug", False)):
        from sf2el import __version__
        from sf2el.cli.compiled import variant_in_use

        click.echo(f"sf2el {__version__} ({variant_in_use()} variant)")
    ctx.exit()


@click.group(name="sf2el", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and the variant of the compiled core, and exit.",
)
@click.option("--debug", is_flag=True, is_eager=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Learn from streams whose features come and go, with few labels and little memory."""
