"""Downloading a dataset from its public archive: verified, and written whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

from sf2el.datasets.entry import Part, Remote
from sf2el.datasets.registry import Folder, cache_folder, find_entry

ARCHIVES = {
    "uci": "https://archive.ics.uci.edu/static/public",
    "libsvm": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary",
    "brownlee": "https://raw.githubusercontent.com/jbrownlee/Datasets/master",
    "fesl": "https://raw.githubusercontent.com/ZW-SIYUAN/OpenMOA_test/"
    "fb55bb26345e32e6ba88867913593ad8ecad0abf/datasets/FESL",
}
"""Where published files are; a :class:`~sf2el.datasets.entry.Part` adds the rest of the address."""

LARGEST = 32 << 20
"""Bytes of a download, or of a file inside a zip, beyond which it is not the dataset."""

SILENCE = 30.0
"""Seconds without an answer after which a download is given up."""

PATIENCE = 300.0
"""Seconds a download may take in all."""


BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, RuntimeError)
"""What a wrong or broken answer can raise when it is read: too short or long, no zip, no such file in it."""


class FetchError(OSError):
    """A dataset could not be fetched; the message says why, in one sentence."""


class Fetched(NamedTuple):
    """Files that are now in the folder, and what went wrong with files that are not needed."""

    paths: tuple[Path, ...]
    problems: tuple[str, ...] = ()


def fetch(name: str, folder: Folder | None = None) -> Fetched:
    """Download a dataset's files into the cache, or into ``folder``; those that are there and right stay.

    A file is checked against its published sha256 and then moved into place, so that a broken download
    leaves nothing behind. Of Credit-a, Diabetes and Svmguide3 there are two files, the raw one and the one
    preprocessed for FESL; where only the second cannot be obtained, ``problems`` says so.

    Parameters
    ----------
    name
        One of :func:`~sf2el.datasets.names`.
    folder
        Where to write; by default the cache, where :func:`~sf2el.datasets.load` looks last.

    Raises
    ------
    FetchError
        There is no network, or the archive does not have the file, or has another.
    """
    entry = find_entry(name)
    if not entry.remotes:
        raise ValueError(f"{name} is {entry.made}: there is nothing to fetch.")
    into = cache_folder() if folder is None else Path(folder)
    paths, problems = [], []
    for remote in entry.remotes:
        path = into / remote.path
        try:
            if not (path.is_file() and _digest(path.read_bytes()) == remote.sha256):
                _write(path, _assemble(name, remote))
            paths.append(path)
        except FetchError as error:
            if remote.required:
                raise
            problems.append(str(error))
    return Fetched(tuple(paths), tuple(problems))


def canonical(data: bytes, newline: str, newline_at_end: bool) -> bytes:
    r"""Return a text file with the given line ends, without trailing blanks and empty last lines.

    >>> canonical(b"1,2 \r\n3,4\r\n\r\n", "\n", False)
    b'1,2\n3,4'
    """
    lines = [line.rstrip(b" \t") for line in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    end = newline.encode()
    return end.join(lines) + (end if newline_at_end else b"")


def _assemble(name: str, remote: Remote) -> bytes:
    parts = [canonical(_download(name, part), "\n", True) for part in remote.parts]
    data = canonical(b"".join(parts), remote.newline, remote.newline_at_end)
    if _digest(data) != remote.sha256:
        raise FetchError(
            f"Fetching {name} failed: what {_address(remote.parts[0])} serves is not the published file "
            f"(its sha256 is {_digest(data)[:12]}..., not {remote.sha256[:12]}...); nothing was kept."
        )
    return data


def _download(name: str, part: Part) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    address = _address(part)
    request = Request(address, headers={"User-Agent": "sf2el"})
    try:
        with urlopen(request, timeout=SILENCE) as answer:
            data = _read(answer)
            promised = answer.headers.get("Content-Length")
        if promised is not None and len(data) != int(promised):
            raise ValueError(f"the answer breaks off after {len(data)} of {promised} bytes")
        return data if part.member is None else _member(data, part.member)
    except (OSError, HTTPException, *BROKEN) as error:
        if isinstance(error, HTTPError):
            error.close()
        why = (str(error) or type(error).__name__).rstrip(".")
        raise FetchError(f"Fetching {name} from {address} failed: {why}; nothing was kept.") from error


def _read(answer: io.BufferedIOBase) -> bytes:
    chunks, size, started = [], 0, time.monotonic()
    while chunk := answer.read(1 << 16):
        chunks.append(chunk)
        size += len(chunk)
        if size > LARGEST:
            raise ValueError(f"the answer has more than {LARGEST} bytes")
        if time.monotonic() - started > PATIENCE:
            raise TimeoutError(f"it took longer than {PATIENCE:.0f} seconds")
    return b"".join(chunks)


def _member(data: bytes, member: str) -> bytes:
    """Return one file of a zip, by its exact name; nothing of a zip is ever written under its own name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(member) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{member} has more than {LARGEST} bytes")
    return content


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(partial).chmod(0o644)
            Path(partial).replace(path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise FetchError(f"{path} could not be written: {error.strerror or error}.") from error


def _address(part: Part) -> str:
    return f"{ARCHIVES[part.archive]}/{part.address}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
