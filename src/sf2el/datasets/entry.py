"""What is known of a dataset before its files are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sf2el.datasets.dataset import Spaces


@dataclass(frozen=True)
class Part:
    """A published file: the archive it is in, its address there, and its name inside if it is a zip."""

    archive: str
    address: str
    member: str | None = None


@dataclass(frozen=True)
class Remote:
    """A file as it is to lie in the data folder, and the published parts it is put together from.

    Line ends and the last line's end are those of ``sha256``, whichever form the archive serves today.
    """

    path: str
    parts: tuple[Part, ...]
    sha256: str
    newline: str = "\n"
    newline_at_end: bool = True
    required: bool = True


@dataclass(frozen=True)
class DataFile:
    """A file that can hold a dataset, how to read both spaces from it, and what was done for that.

    A user's own file has a ``description`` of its own, and any number of rows and features.
    """

    path: str
    read: Callable[[Path], Spaces]
    note: str
    description: str | None = None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is known of a dataset before its files are read; ``make`` where it can be generated."""

    name: str
    rows: int
    positives: int
    d1: int
    d2: int
    description: str
    citation: str
    licence: str
    files: tuple[DataFile, ...] = ()
    remotes: tuple[Remote, ...] = ()
    make: Callable[[], Spaces] | None = None
    made: str = ""
    simulated: bool = False

    @property
    def majority(self) -> float:
        """Share of the larger class."""
        return max(self.positives, self.rows - self.positives) / self.rows
