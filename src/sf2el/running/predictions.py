"""The file of predictions: one line a row, written in blocks, cut back when a run is resumed."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

HEADER = "row,prediction,probability,space,followed\n"


class PredictionsFile:
    """Appends predictions to a CSV file.

    Parameters
    ----------
    path
        The file; its folder is made where it is missing.
    length
        Bytes to keep of what is there, None to begin anew.
    """

    def __init__(self, path: Path, length: int | None = None) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if length is None:
            self._file: IO[bytes] = path.open("wb")
            self._file.write(HEADER.encode())
            self.length = len(HEADER)
        else:
            if not path.exists() or path.stat().st_size < length:
                raise ValueError(
                    f"{path} does not have the predictions made before the checkpoint; resume with the same "
                    "--out, or start again without --resume."
                )
            self._file = path.open("r+b")
            self._file.truncate(length)
            self._file.seek(length)
            self.length = length
        self._quoted: dict[Any, str] = {None: ""}

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
        content = "".join(["%d,%s,%s,%d,%s\n" % line for line in lines]).encode()  # noqa: UP031
        self._file.write(content)
        self.length += len(content)

    def _show(self, value: Any) -> str:
        if isinstance(value, float):
            return repr(value)
        if value not in self._quoted:
            out = io.StringIO()
            csv.writer(out, lineterminator="").writerow([value])
            self._quoted[value] = out.getvalue()
        return self._quoted[value]

    def flush(self) -> None:
        """See that all is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
