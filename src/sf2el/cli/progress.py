"""How far long work has come: a bar on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY = 5.0
"""Seconds between two plain lines: short work says one line at its end, an hour does not fill a log."""


@contextmanager
def progress(
    title: str, total: int, *, console: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """Give ``advance(n)``, to be called whenever n more of ``total`` steps are done.

    Parameters
    ----------
    title
        What is being done, in a word or two.
    total
        Number of steps.
    console
        Where to write; stderr unless given, so that results on stdout stay clean.
    clock
        Seconds, for the time left.
    """
    from rich.console import Console

    console = console or Console(stderr=True)
    with (_bar if console.is_terminal else _lines)(title, total, console, clock) as advance:
        yield advance


@contextmanager
def _bar(
    title: str, total: int, console: Console, clock: Callable[[], float]
) -> Iterator[Callable[[int], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, get_time=clock) as bar:
        task = bar.add_task(title, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def _lines(
    title: str, total: int, console: Console, clock: Callable[[], float]
) -> Iterator[Callable[[int], None]]:
    start = last = clock()
    done = 0

    def say(text: str) -> None:
        console.print(f"{title}: {text}", markup=False, highlight=False, soft_wrap=True)

    def advance(steps: int) -> None:
        nonlocal done, last
        done += steps
        now = clock()
        if 0 < done < total and now - last >= LINE_EVERY:
            last = now
            say(f"{done} of {total}, {duration((now - start) / done * (total - done))} left")

    yield advance
    say(f"{done} of {total}, {duration(clock() - start)} in all")


def duration(seconds: float) -> str:
    """Return a duration to read.

    >>> duration(7.4), duration(75), duration(7300)
    ('7 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "less than 1 s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
