"""A run in one file, so that it can go on: the model, the rows done, and all that was summed up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from sf2el.storage.atomic import write_bytes

MAGIC = b"sf2elrun"

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Checkpoint:
    """Where a run was.

    Attributes
    ----------
    row
        Rows done.
    written
        Bytes of predictions.csv.
    settings
        The settings of the run; a resumed one must have the same.
    tallies
        The sums of everything that the summary and the report show.
    model
        The model's bytes.
    digest
        Checksum of the rows done.
    """

    row: int
    written: int
    settings: dict[str, Any]
    tallies: dict[str, Any]
    model: bytes
    digest: int

    def write(self, path: Path) -> None:
        """Write the checkpoint, whole or not at all: its length and checksum, a text, and the model."""
        content = {
            "row": self.row,
            "written": self.written,
            "settings": self.settings,
            "tallies": self.tallies,
            "digest": self.digest,
        }
        text = json.dumps(content, separators=(",", ":")).encode()
        rest = len(text).to_bytes(8, "little") + text + self.model
        write_bytes(path, MAGIC + crc32(rest).to_bytes(4, "little") + rest)

    def check(self, settings: dict[str, Any]) -> None:
        """Refuse settings that differ from those of the run."""
        for name in sorted(settings, key=lambda name: name != "buffer"):  # which decides what a budget is
            if self.settings.get(name) != settings[name]:
                made = self.settings.get(name)
                option = {"buffer": "--paper and --buffer"}.get(name, "--" + name.replace("_", "-"))
                raise ValueError(
                    f"The checkpoint was made with {option} {made!r}, not {settings[name]!r}; "
                    "resume with the settings it was made with."
                )


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint of a file; ValueError where it is none."""
    data = path.read_bytes()
    with damage_told(f"{path} is not a checkpoint of sf2el run"):
        head = len(MAGIC)
        if data[:head] != MAGIC:
            raise ValueError("it is of another kind")
        rest = data[head + 4 :]
        if crc32(rest) != int.from_bytes(data[head : head + 4], "little"):
            raise ValueError("it is damaged")
        length = int.from_bytes(rest[:8], "little")
        content = json.loads(rest[8 : 8 + length])
        for count in (content["row"], content["written"], content["digest"]):
            if not isinstance(count, int) or count < 0:
                raise ValueError("it is damaged")
        return Checkpoint(
            content["row"],
            content["written"],
            dict(content["settings"]),
            dict(content["tallies"]),
            rest[8 + length :],
            content["digest"],
        )


@contextmanager
def damage_told(what: str) -> Iterator[None]:
    """Turn whatever a damaged file leads to into a ValueError that begins with ``what``."""
    try:
        yield
    except DAMAGED as error:
        plain = isinstance(error, ValueError) and not isinstance(error, (json.JSONDecodeError, UnicodeError))
        reason = str(error).removesuffix(".") if plain else "it is damaged, or of another kind"
        raise ValueError(f"{what}: {reason}.") from None
