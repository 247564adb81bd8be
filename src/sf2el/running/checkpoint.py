"""A run in one file, so that it can go on: the model, the place in the data, and all that was summed up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sf2el.sources import Place
from sf2el.storage.atomic import write_bytes

FORMAT = 1

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Checkpoint:
    """Where a run was.

    Attributes
    ----------
    row
        Rows done.
    place
        Where the block of the next row begins.
    written
        Bytes of predictions.csv.
    settings
        What the run was told; a resumed one must be told the same.
    tallies
        The sums of everything that the summary and the report show.
    model
        The model's bytes.
    digest
        Checksum of the rows done; None where an older version wrote the checkpoint.
    """

    row: int
    place: Place
    written: int
    settings: dict[str, Any]
    tallies: dict[str, Any]
    model: bytes
    digest: int | None = None

    def write(self, path: Path) -> None:
        """Write the checkpoint as a safetensors file, whole or not at all."""
        from safetensors.numpy import save

        content = {
            "format": FORMAT,
            "row": self.row,
            "place": asdict(self.place),
            "written": self.written,
            "settings": self.settings,
            "tallies": self.tallies,
            "digest": self.digest,
        }
        text = json.dumps(content, separators=(",", ":"))
        tensors = {"model": np.frombuffer(self.model, dtype=np.uint8)}
        write_bytes(path, bytes(save(tensors, metadata={"sf2el-run": text})))

    def check(self, settings: dict[str, Any]) -> None:
        """Refuse settings that differ from those of the run."""
        told = {"paper": False} | self.settings
        if told.get("buffer") is not None:
            told |= {"paper": True, "budget": None}  # older versions told a budget that did not count
        for name in sorted(settings, key=lambda name: name != "buffer"):  # which decides what a budget is
            if told.get(name) != settings[name]:
                option = {"buffer": "--paper and --buffer"}.get(name, "--" + name.replace("_", "-"))
                raise ValueError(
                    f"The checkpoint was made with {option} {told.get(name)!r}, not {settings[name]!r}; "
                    "resume with the settings it was made with."
                )


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint of a file; ValueError where it is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = path.read_bytes()
    with damage_told(f"{path} is not a checkpoint of sf2el run"):
        length = int.from_bytes(data[:8], "little")
        content = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["sf2el-run"])
        if content["format"] != FORMAT:
            raise ValueError(f"it has format {content['format']!r}, and this version reads {FORMAT}")
        place = Place(**content["place"])
        digest = content.get("digest")
        counts = (content["row"], content["written"], place.row, place.line, place.offset)
        for count in counts if digest is None else (*counts, digest):
            if not isinstance(count, int) or count < 0:
                raise ValueError("it is damaged")
        try:
            model = load(data)["model"].tobytes()
        except SafetensorError as error:
            raise ValueError(str(error)) from None
        return Checkpoint(
            content["row"],
            place,
            content["written"],
            dict(content["settings"]),
            dict(content["tallies"]),
            model,
            digest,
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
