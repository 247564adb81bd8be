"""The file of predictions: one line a row, written in blocks, cut back when a run is resumed."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from sf2el.storage.atomic import told

HEADER = "row,prediction,probability,space,followed\n"

ADVICE = "make room and run again, with --resume if --save was given, or let --out name another folder"


class PredictionsFile:
    """Appends predictions to a CSV file.

    Parameters
    ----------
    path
        The file; its folder is made where it is missing.
    length
        Bytes to keep of what is there, None to begin with nothing.
    """

    def __init__(self, path: Path, length: int | None = None) -> None:
        self.path, self.length = path, length or 0
        if length is not None and (not path.exists() or path.stat().st_size < length):
            raise ValueError(
                f"{path} does not have the predictions made before the checkpoint; resume with the same "
                "--out, or start again without --resume."
            )
        self._file: IO[bytes] | None = None
        self._quoted: dict[Any, str] = {None: ""}

    def open(self) -> None:
        """Cut off what is not kept; until then the file is as it was."""
        with told(self.path, ADVICE):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("r+b" if self.length else "wb")
            self._file.truncate(self.length)
            self._file.seek(self.length)
        if not self.length:
            self._write(HEADER)

    def _write(self, text: str) -> None:
        assert self._file is not None
        content = text.encode()
        with told(self.path, ADVICE):
            self._file.write(content)
        self.length += len(content)

    def add(
        self,
        first: int,
        predictions: Sequence[Any],
        probabilities: Sequence[float],
        spaces: Sequence[int],
        followed: Sequence[str],
    ) -> None:
        """Write the next rows: labels or numbers, None for no prediction, NaN for no probability."""
        shown = [self._show(value) for value in predictions]
        chances = ["%.6f" % p if p == p else "" for p in probabilities]  # noqa: UP031 (twice as fast)
        rows = range(first, first + len(shown))
        lines = zip(rows, shown, chances, spaces, followed, strict=True)
        self._write("".join(["%d,%s,%s,%d,%s\n" % line for line in lines]))  # noqa: UP031

    def _show(self, value: Any) -> str:
        if isinstance(value, float):
            return repr(float(value))  # NumPy's own would name its type
        if value not in self._quoted:
            out = io.StringIO()
            csv.writer(out, lineterminator="").writerow([value])
            self._quoted[value] = out.getvalue()
        return self._quoted[value]

    def pass_on(self) -> None:
        """Let others see what is written, on the disk or not yet."""
        assert self._file is not None
        with told(self.path, ADVICE):
            self._file.flush()

    def flush(self) -> None:
        """See that all is on the disk."""
        if self._file is not None:
            with told(self.path, ADVICE):
                self._file.flush()
                os.fsync(self._file.fileno())

    def close(self) -> None:
        """See that all is on the disk, and close the file."""
        try:
            self.flush()
        finally:
            if self._file is not None:
                with told(self.path, ADVICE):
                    self._file.close()
