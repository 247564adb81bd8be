"""The run itself: blocks of rows through a model, predictions to a file, checkpoints now and then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el.running.checkpoint import Checkpoint, damage_told
from sf2el.running.digest import Digest
from sf2el.running.interrupts import Interrupts
from sf2el.running.predictions import PredictionsFile
from sf2el.running.settings import RunSettings
from sf2el.running.tallies import Tallies
from sf2el.sources import Block, DataError, Place, Source

Advance = Callable[[int], None]

RECENT = 1024


class Run:
    """A model that predicts and then learns every row of a source.

    The outcome depends on data and settings alone, not on how the data are cut into blocks or how often the
    run was interrupted. Memory does not grow with the rows.

    Parameters
    ----------
    settings
        What decides the outcome.
    source
        The data.
    predictions
        The file to write.
    checkpoint
        Where to go on; None begins with the first row.
    told_after
        Files that tell of a whole run: those of an earlier one are removed when this one begins.
    """

    def __init__(
        self,
        settings: RunSettings,
        source: Source,
        predictions: Path,
        checkpoint: Checkpoint | None = None,
        told_after: Sequence[Path] = (),
    ) -> None:
        self.settings, self.source, self.told_after = settings, source, told_after
        self.waiting: deque[tuple[dict[str, float], Any]] = deque()
        """Rows whose labels arrive later, with these labels."""
        self.recent: deque[int] = deque(maxlen=RECENT)
        """The data's rows that the model was given last: where its events were."""
        self.digest = Digest()
        """Checksum of the rows done, but for the last of the block at hand."""
        self.wanted: int | None = None
        """What it must be before the first row."""
        self.block: tuple[Block, int] | None = None
        """The block at hand, and its first row."""
        self.whole = True
        """Whether model, sums and predictions have all had the same rows."""
        if checkpoint is None:
            self.model = settings.first_model()
            self.tallies = Tallies(regression=settings.regression)
            self.tallies.history.events_total = self.model.events().total
            self.file = PredictionsFile(predictions)
        else:
            checkpoint.check(settings.to_dict())
            self.wanted = checkpoint.digest
            state = checkpoint.tallies
            with damage_told("The checkpoint cannot be resumed"):
                self.model = settings.read_model(checkpoint.model)
                self.tallies = Tallies.from_state(state, regression=settings.regression)
                self.waiting.extend((row, label) for row, label in state["waiting"])
                self.recent.extend(state["recent"])
            self.file = PredictionsFile(predictions, checkpoint.written)
        self.before = self.model.rows_seen - (self.tallies.rows - self.tallies.empty)
        """Rows that the model had seen before the first of the data."""

    def go(
        self,
        *,
        limit: int | None = None,
        every: int | None = None,
        save: Path | None = None,
        advance: Advance,
    ) -> None:
        """Run to the end of the data, or to the row ``limit``; write a checkpoint every so many rows.

        One is written too where the run ends early, because of the data or of an interrupt: a pipe cannot be
        read again. ``advance`` gets the rows done before the first row and after every block.
        """
        due = self.tallies.rows
        blocks = self._rest()
        interrupts = Interrupts()
        with interrupts.caught():
            try:
                # Data that are refused at once leave the files of an earlier run alone.
                head = list(islice(blocks, 1))
                self._begin()
                if save is not None:
                    self.checkpoint().write(save)
                advance(self.tallies.rows)
                for block in chain(head, blocks):
                    self.block = block, self.tallies.rows
                    start = 0
                    while start < len(block.labels):
                        if limit is not None and self.tallies.rows >= limit:
                            return
                        stop = self._end(start, len(block.labels), limit)
                        with interrupts.held():
                            self._piece(block, start, stop)
                        start = stop
                        if save is not None and every is not None and self.tallies.rows - due >= every:
                            self.checkpoint().write(save)
                            due = self.tallies.rows
                    self._digested()
                    self.file.pass_on()
                    advance(self.tallies.rows)
            except (ValueError, KeyboardInterrupt):
                if save is not None and self.whole and self.tallies.rows > due:
                    with interrupts.held():
                        self.checkpoint().write(save)
                raise
            finally:
                try:
                    self.file.close()
                finally:
                    self.source.close()

    def _begin(self) -> None:
        for path in self.told_after:
            path.unlink(missing_ok=True)
        self.file.open()

    def checkpoint(self) -> Checkpoint:
        """Return where the run is."""
        self.file.flush()
        return self.last_checkpoint()

    def last_checkpoint(self) -> Checkpoint:
        """Return where the run is, all predictions being on the disk."""
        return Checkpoint(
            self.tallies.rows,
            self.file.length,
            self.settings.to_dict(),
            self.tallies.state()
            | {"waiting": [[row, label] for row, label in self.waiting], "recent": list(self.recent)},
            self.model.to_bytes(),
            self._digested(),
        )

    def _digested(self) -> int:
        """Return the checksum of the rows done."""
        if self.block is not None:
            self.digest.add(*self.block, self.tallies.rows)
        return self.digest.total

    def _rest(self) -> Iterator[Block]:
        """Yield the blocks that are left, the first one without the rows that are done.

        DataError if the rows before are not those that were done, or not as many.
        """
        done, seen = self.tallies.rows, 0
        for block in self.source.blocks(Place(kind=self.settings.kind)):
            seen = block.first + len(block.labels)
            if block.first < done:
                self.digest.add(block, block.first, min(seen, done))
            if seen < done:
                continue
            if block.first <= done:
                self._check_before()
            if seen == done:
                continue
            if block.first < done:
                skip = done - block.first
                block = replace(block, rows=block.rows[skip:], labels=block.labels[skip:])
            yield block
        if seen < done:
            raise DataError(
                f"{self.source.name} ends before the row {done} that the checkpoint was made at; resume with "
                "the same data."
            )

    def _check_before(self) -> None:
        if self.wanted is not None and self.digest.total != self.wanted:
            raise DataError(f"{self.source.name} is not what was read before; resume with the same data.")

    def _end(self, start: int, length: int, limit: int | None) -> int:
        """Return where the next piece ends: no point of the history and no late label inside it."""
        most = min(length - start, self.tallies.history.room)
        if limit is not None:
            most = min(most, limit - self.tallies.rows)
        if self.settings.delay:
            missing = self.settings.delay - len(self.waiting)
            for place in range(max(0, missing), most):
                if place - missing >= len(self.waiting):
                    return start + min(most, place)  # the label is of this very piece: look again then
                if self.waiting[place - missing][1] is not None:
                    return start + place + 1
        return start + most

    def _piece(self, block: Block, start: int, stop: int) -> None:
        rows, labels = block.rows[start:stop], block.labels[start:stop]
        observed = ~np.isnan(rows)
        there: npt.NDArray[np.bool_] = np.asarray(observed.any(axis=1))
        tallies = self.tallies
        first = tallies.rows
        with self._told(f"rows {first} to {first + len(rows) - 1}"):
            kept_labels = labels if there.all() else [labels[place] for place in np.flatnonzero(there)]
            said = self._said(rows[there], block.names, kept_labels)
        self.whole = False
        predictions, probabilities, spaces, followed = _spread(said, there, max(0, tallies.spaces - 1))
        self.file.add(first, predictions, probabilities.tolist(), spaces, followed)
        tallies.empty += int(len(there) - there.sum())
        tallies.followed.update(name for name in followed if name)
        history = tallies.history
        history.observe(block.names, observed)
        tallies.add(labels, predictions, probabilities, spaces)
        if self.settings.delay:
            self._late(block.names, rows, labels, first)
        self.recent.extend((first + np.flatnonzero(there)).tolist())
        if history.rows % history.stride == 0:
            # Only at such rows, never where a block happens to end: a small model remembers few events, and
            # which of them are met must not depend on how the data were cut.
            history.tell(self.model, self.row_of)
            history.note(self.model)
        self.whole = True

    def row_of(self, row: int) -> int:
        """Return the data's row of one of the model's, which is given no empty rows."""
        own = row - self.before
        back = self.tallies.rows - self.tallies.empty - own
        return self.recent[-back] if 0 < back <= len(self.recent) else own + self.tallies.empty

    def _said(self, rows: npt.NDArray[np.float64], names: tuple[str, ...], labels: list[Any]) -> Any:
        if not len(rows):
            return None
        y = None if self.settings.delay else labels
        return self.model.run_many(np.ascontiguousarray(rows), y, features=names)

    @contextmanager
    def _told(self, where: str) -> Iterator[None]:
        """Let an error of the model say which of the data's rows it is about."""
        try:
            yield
        except ValueError as error:
            raise ValueError(f"{self.source.name}, {where}: {error}") from error

    def _late(
        self, names: tuple[str, ...], rows: npt.NDArray[np.float64], labels: list[Any], first: int
    ) -> None:
        """Learn the labels that have arrived, of rows that were learned without."""
        for number, (values, label) in enumerate(zip(rows.tolist(), labels, strict=True), start=first):
            x = {} if label is None else {n: v for n, v in zip(names, values, strict=True) if v == v}
            self.waiting.append((x, label if x else None))
            if len(self.waiting) > self.settings.delay:
                row, late = self.waiting.popleft()
                if late is not None:
                    with self._told(f"row {number - self.settings.delay}"):
                        self.model.learn_one(row, late, late=True)


def _spread(
    said: Any, there: npt.NDArray[np.bool_], space: int
) -> tuple[list[Any], npt.NDArray[np.float64], list[int], list[str]]:
    """Return predictions, probabilities, spaces and who was followed, with nothing for the empty rows."""
    if said is not None and there.all():
        names = said.roles
        followed = [names[place] for place in said.followed.tolist()]
        return said.prediction.tolist(), said.probability, said.space.tolist(), followed
    predictions: list[Any] = [None] * len(there)
    probabilities = np.full(len(there), np.nan)
    spaces, followed = [space] * len(there), [""] * len(there)
    plain = [] if said is None else said.prediction.tolist()
    for place, index in enumerate(np.flatnonzero(there).tolist()):
        predictions[index] = plain[place]
        probabilities[index] = said.probability[place]
        spaces[index] = space = int(said.space[place])
        followed[index] = said.roles[said.followed[place]]
    return predictions, probabilities, spaces, followed
