"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on Windows
    fcntl = None  # type: ignore[assignment]

AT_ONCE = 8
"""Names for the temporary files of one target: as many may write it at once."""

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file by way of a temporary one beside it, so that a crash leaves the old or the new content.

    A crash may leave the temporary file too, but not many: its name is always the same, and the next to write
    the same target removes it. A file that is replaced keeps its mode; its owner may read and write it.
    """
    with told(path):
        _write(path, content)


@contextmanager
def told(path: Path, advice: str = "name another file, or make room") -> Iterator[None]:
    """Let an OSError name the file that was meant, and say what to do."""
    try:
        yield
    except OSError as error:
        # Its own text would name the temporary file, of which nobody has heard, or none at all.
        reason = (error.strerror or str(error)).lower()
        raise type(error)(f"{path} cannot be written: {reason}; {advice}.") from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = _opened(path)
    with os.fdopen(handle, "wb") as file:
        try:
            with suppress(OSError):  # no target yet, or a disk that knows no modes
                temporary.chmod(path.stat().st_mode & 0o777 | 0o600)
            file.write(content)
            file.flush()
            os.fsync(handle)
            if fcntl is None:
                file.close()  # Windows renames no open file; elsewhere it is ours only as long as it is open
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def _opened(path: Path) -> tuple[int, Path]:
    """Return a new file beside another, open and locked, and its name; its mode is what the umask says."""
    if fcntl is not None:
        for number in range(AT_ONCE):
            temporary = path.with_name(f".{path.name}.{number}.sf2el-part")
            try:
                return _claimed(temporary), temporary
            except BlockingIOError:
                continue  # another is writing there at this moment
            except OSError:
                break  # no locks on this disk, too long a name, a file that is not ours
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    return os.open(temporary, _NEW, 0o666), temporary


def _claimed(temporary: Path) -> int:
    """Return a new file of this name, locked; BlockingIOError while another has it.

    A file that is there, and that nobody has locked, was left by a crash: it is removed.
    """
    while True:
        try:
            handle, mine = os.open(temporary, _NEW, 0o666), True
        except FileExistsError:
            try:
                handle, mine = os.open(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), False
            except FileNotFoundError:
                continue  # renamed or removed in between
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Until it was locked, another could rename or remove it: then the name is not this file's.
            ours = _names(temporary, handle)
            if ours and mine:
                return handle
            if ours:
                temporary.unlink()
        except BlockingIOError:
            os.close(handle)  # ours or not, who has locked it removes or renames it
            raise
        except BaseException:
            os.close(handle)
            if mine:
                temporary.unlink(missing_ok=True)
            raise
        os.close(handle)


def _names(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def write_text(path: Path, content: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))
