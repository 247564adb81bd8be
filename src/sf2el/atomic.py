"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file by way of a temporary one beside it, so that a crash leaves the old or the new content."""
    try:
        _write(path, content)
    except OSError as error:
        # Its own text would name the temporary file, of which nobody has heard.
        reason = (error.strerror or str(error)).lower()
        raise type(error)(f"{path} cannot be written: {reason}; name another file, or make room.") from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))
