"""Opening data by path: which format it is, and the source that reads it."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from sf2el.sources.block import DataError, Source
from sf2el.sources.csv_source import CsvSource
from sf2el.sources.jsonl import JsonlSource
from sf2el.sources.labels import LabelReader
from sf2el.sources.parquet import ParquetSource

FORMATS = ("csv", "jsonl", "parquet")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PACKED = {
    b"\x1f\x8b": ("gzip", "zcat"),
    b"BZh": ("bzip2", "bzcat"),
    b"\xfd7zXZ\x00": ("xz", "xzcat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
}
"""How compressed data begin, what they are, and the command that unpacks them."""


def open_source(
    path: str | Path,
    label: str,
    *,
    format: str | None = None,
    regression: bool = False,
    ignore: Sequence[str] = (),
    kind: str | None = None,
) -> Source:
    """Open data that yield blocks of rows.

    Parameters
    ----------
    path
        A CSV, JSON lines or Parquet file; ``-`` for CSV or JSON lines on standard input.
    label
        The label's column; an empty cell there means that the label is not known.
    format
        ``"csv"``, ``"jsonl"`` or ``"parquet"``; else by the name's ending, else by the first byte.
    regression
        Whether labels are numbers to be predicted, not classes.
    ignore
        Columns to leave out.
    kind
        ``"text"`` or ``"whole"`` where it is known what the labels are; else the first label decides.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "rows.csv").write_text("a,b,label\\n1,,yes\\n2,5,\\n")
    >>> source = open_source(folder / "rows.csv", "label")
    >>> for block in source.blocks():
    ...     print(block.names, block.rows.tolist(), block.labels)
    ('a', 'b') [[1.0, nan], [2.0, 5.0]] ['yes', None]
    >>> source.close()
    """
    if format not in (None, *FORMATS):
        raise ValueError(f"format must be {', '.join(FORMATS)}, not {format!r}.")
    file: BinaryIO
    if str(path) == "-":
        file, name, size = sys.stdin.buffer, "standard input", None
    else:
        path = Path(path)
        if path.is_dir():
            raise DataError(f"{path} is a folder; name a file.")
        name = str(path)
        file = cast(BinaryIO, path.open("rb"))
        size = file.seek(0, 2) if file.seekable() else None
        if file.seekable():
            file.seek(0)
    labels = LabelReader(regression=regression, kind=kind)
    try:
        if not hasattr(file, "peek"):
            file = io.BufferedReader(cast(io.RawIOBase, file))
        first = file.peek(16)[:16]
        if not first:
            raise DataError(f"{name} is empty; it needs rows.")
        refuse_packed(first, name)
        chosen = format or SUFFIXES.get(Path(name).suffix.lower()) or sniff(first)
        if chosen != "parquet":
            reader = JsonlSource if chosen == "jsonl" else CsvSource
            return reader(file, name, label, ignore=ignore, labels=labels, size=size)
        if size is None:
            raise DataError("Parquet cannot be read from a pipe; save it to a file and name that.")
    except BaseException:
        file.close()
        raise
    file.close()
    return ParquetSource(Path(path), label, ignore=ignore, labels=labels)


def refuse_packed(first: bytes, name: str) -> None:
    """Raise DataError where data begin like compressed ones.

    >>> refuse_packed(b"a,b", "rows.csv")
    >>> refuse_packed(b"\\x1f\\x8b", "standard input")
    Traceback (most recent call last):
    ...
    sf2el.sources.block.DataError: standard input is compressed (gzip); unpack it: zcat FILE | sf2el run - ...
    """
    for magic, (what, command) in PACKED.items():
        if not first.startswith(magic) or (what == "bzip2" and first[4:10] != b"1AY&SY"):
            continue
        if Path(name).suffix.lower() in (".xlsx", ".xlsm", ".ods"):
            raise DataError(f"{name} is a spreadsheet; save it as CSV.")
        file = "FILE" if name == "standard input" else shlex.quote(name)
        raise DataError(f"{name} is compressed ({what}); unpack it: {command} {file} | sf2el run - ...")


def sniff(first: bytes) -> str:
    """Return the format that data begin like.

    >>> sniff(b'{"a"'), sniff(b"a,b"), sniff(b"PAR1")
    ('jsonl', 'csv', 'parquet')
    """
    if first.startswith(b"PAR1"):
        return "parquet"
    return "jsonl" if first.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") else "csv"
