"""Finding and loading a dataset by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sf2el.datasets.catalog import CATALOG
from sf2el.datasets.dataset import Dataset, DatasetDamaged, DatasetMissing, Spaces, min_max
from sf2el.datasets.entry import DataFile, Entry
from sf2el.datasets.parsing import read_spaces
from sf2el.inputs.parameters import check_choice

ENVIRONMENT = "SF2EL_DATA"

Folder = str | os.PathLike[str]


def names() -> tuple[str, ...]:
    """Return the datasets' names, as in the paper's tables.

    >>> names()
    ('credit-a', 'diabetes', 'svmguide3', 'swiss', 'rfid', 'htru_2', 'magic04')
    """
    return tuple(CATALOG)


def load(name: str, data_dir: Folder | None = None) -> Dataset:
    """Return a dataset of the paper.

    Its files are looked for in ``data_dir``, then in the folder named by the environment variable
    ``SF2EL_DATA``, then in the cache that :func:`fetch` fills. Swiss is generated, and so is RFID, as a
    simulated stand-in, unless a folder has ``rfid/rfid.csv`` (see :func:`read_file` for its form).

    Parameters
    ----------
    name
        One of :func:`names`.
    data_dir
        A folder with the datasets' files.

    Raises
    ------
    DatasetMissing
        The files are in none of the folders.
    DatasetDamaged
        A file does not hold what it should.

    Examples
    --------
    >>> swiss = load("swiss")
    >>> swiss.rows, swiss.d1, swiss.d2, swiss.majority, swiss.source
    (2000, 2, 3, 0.5, 'generated')
    """
    entry = find_entry(name)
    found = _find(entry, data_dir)
    if found is not None:
        return _dataset(entry, *found)
    if entry.make is None:
        raise DatasetMissing(
            f"Dataset {name} is not here: run 'sf2el datasets fetch {name}', or name a folder that has "
            f"{entry.files[-1].path} with --data-dir (data_dir=) or {ENVIRONMENT}."
        )
    return _described(entry, entry.make(), entry.description, entry.made, simulated=entry.simulated)


def read_file(path: Folder, name: str | None = None) -> Dataset:
    """Return a dataset from a user's own CSV file of rows known in two feature spaces.

    The header is ``old_1,...,old_<d1>,new_1,...,new_<d2>,label``; labels are +1 / -1 or 1 / 0. Both spaces
    are scaled to [0, 1] over all rows.
    """
    path = Path(path)
    if not path.is_file():
        raise DatasetMissing(f"There is no file {path}.")
    spaces = read_spaces(path)
    return Dataset(
        name=name or path.stem,
        old=min_max(spaces.old),
        new=min_max(spaces.new),
        y=spaces.y,
        description="Rows of a user's own two-space file.",
        source=f"{path.name}: scaled to [0, 1] over all rows",
        path=path,
    )


@dataclass(frozen=True, kw_only=True)
class Status:
    """A line of the list of datasets; ``problem`` where a file is there but cannot be used."""

    name: str
    rows: int
    d1: int
    d2: int
    majority: float
    here: bool
    simulated: bool
    source: str
    problem: str | None = None


def status(name: str, data_dir: Folder | None = None) -> Status:
    """Return what is known of a dataset, whether or not it is here.

    >>> status("swiss")  # doctest: +NORMALIZE_WHITESPACE
    Status(name='swiss', rows=2000, d1=2, d2=3, majority=0.5, here=True, simulated=False,
           source='generated', problem=None)
    """
    entry = find_entry(name)
    found = _find(entry, data_dir)
    source = str(found[1]) if found else entry.made or f"sf2el datasets fetch {name}"
    try:
        data: Dataset | Entry = load(name, data_dir)
        here, problem = True, None
    except DatasetMissing:
        data, here, problem = entry, False, None
    except DatasetDamaged as error:
        data, here, problem = entry, False, str(error)
    return Status(
        name=name,
        rows=data.rows,
        d1=data.d1,
        d2=data.d2,
        majority=data.majority,
        here=here,
        simulated=data.simulated,
        source=source,
        problem=problem,
    )


def cache_folder() -> Path:
    """Return the folder that fetched files go to: ``$XDG_CACHE_HOME/sf2el`` or ``~/.cache/sf2el``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path("~/.cache").expanduser()) / "sf2el"


def find_entry(name: str) -> Entry:
    """Return what is known of a dataset before its files are read."""
    check_choice("dataset", name, names())
    return CATALOG[name]


def _folders(data_dir: Folder | None) -> list[Path]:
    if data_dir is not None and not Path(data_dir).is_dir():
        raise DatasetMissing(f"There is no folder {data_dir}: name one that has the datasets' files.")
    given = [data_dir, os.environ.get(ENVIRONMENT) or None]
    return [Path(folder) for folder in given if folder is not None] + [cache_folder()]


def _find(entry: Entry, data_dir: Folder | None) -> tuple[DataFile, Path] | None:
    for folder in _folders(data_dir):
        for file in entry.files:
            if (folder / file.path).is_file():
                return file, folder / file.path
    return None


def _dataset(entry: Entry, file: DataFile, path: Path) -> Dataset:
    spaces = file.read(path)
    if file.description is None:
        _check_size(entry, path, spaces)
    description = file.description or entry.description
    return _described(entry, spaces, description, f"{file.path}: {file.note}", path=path)


def _check_size(entry: Entry, path: Path, spaces: Spaces) -> None:
    sizes = {
        "rows": (len(spaces.y), entry.rows),
        "old features": (spaces.old.shape[1], entry.d1),
        "new features": (spaces.new.shape[1], entry.d2),
        "rows of class +1": (int((spaces.y > 0.0).sum()), entry.positives),
    }
    for what, (number, expected) in sizes.items():
        if number != expected:
            raise DatasetDamaged(
                f"{path} has {number} {what} where {expected} are expected: it is cut off or another file."
            )


def _described(
    entry: Entry,
    spaces: Spaces,
    description: str,
    source: str,
    *,
    simulated: bool = False,
    path: Path | None = None,
) -> Dataset:
    return Dataset(
        name=entry.name,
        **spaces._asdict(),
        description=description,
        source=source,
        citation=entry.citation,
        licence=entry.licence,
        simulated=simulated,
        path=path,
    )
