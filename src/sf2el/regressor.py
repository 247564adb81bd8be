"""SF2ELRegressor: numbers in place of labels, on streams whose features come and go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import copysign, inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el import events
from sf2el.events import Happened
from sf2el.inputs.rows import LARGEST_FEATURE, is_number, read_row, short
from sf2el.inputs.tables import labels_of, tables_of
from sf2el.memory.budget import parse_budget
from sf2el.model.bank import BankRecipe
from sf2el.model.streaming import Block, Row, StreamModel, Track
from sf2el.paper.settings import check_choice

Floats = npt.NDArray[np.float64]


FEW, FAR = 10, 10.0


class Targets:
    """Running mean and variance of the targets: experts learn standardised numbers.

    >>> targets = Targets()
    >>> [targets.see(y) for y in (10.0, 30.0)]
    [0.0, 1.0]
    >>> targets.value(0.5)
    25.0
    """

    nbytes = 3 * 8

    def __init__(self) -> None:
        self.count, self.mean, self.spread = 0, 0.0, 0.0

    def see(self, y: float) -> float:
        """Take in a target; return it standardised.

        After the first few a target counts as at most ten deviations away.
        """
        ahead = y - self.mean
        most = FAR * self.sd
        if self.count >= FEW and 0.0 < most < abs(ahead):
            y = self.mean + copysign(most, ahead)
            ahead = y - self.mean
        self.count += 1
        self.mean += ahead / self.count
        self.spread += ahead * (y - self.mean)
        sd = self.sd
        return (y - self.mean) / sd if sd > 0.0 else 0.0

    @property
    def sd(self) -> float:
        """Standard deviation so far."""
        return sqrt(self.spread / self.count) if self.count else 0.0

    def value(self, output: float) -> float:
        """Return a standardised number as a target."""
        return self.mean + self.sd * output

    def copy(self) -> Targets:
        """Return targets that go their own way."""
        twin = Targets()
        twin.count, twin.mean, twin.spread = self.count, self.mean, self.spread
        return twin


class SF2ELRegressor(StreamModel):
    """Regression on streams whose features come and go, within a budget of bytes.

    The same spaces, maps, experts and weights as :class:`sf2el.SF2EL`; targets are numbers, standardised by
    their own running mean and variance.

    Parameters
    ----------
    budget
        Bytes, as a number or a text such as ``"64KiB"``.
    loss
        ``"squared"``, or ``"absolute"`` for targets with outliers.
    seed
        Seed of the reservoirs; one seed, same bits.
    forget
        Share by which what was learned becomes uncertain again with each target.
    backend
        ``"native"`` or ``"numpy"``; None takes the compiled one where it was built.

    Examples
    --------
    >>> model = SF2ELRegressor(budget="16KiB")
    >>> for t in range(60):
    ...     x = (t * 7 % 20) / 10 - 1
    ...     model.learn_one({"a": x}, 100 + 10 * x)
    >>> round(model.predict_one({"a": 0.5}))
    105
    """

    KIND = "regressor"
    LEAST_LABELS = Targets.nbytes

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        loss: str = "squared",
        seed: int = 0,
        forget: float = 0.0,
        backend: str | None = None,
    ) -> None:
        check_choice("loss", loss, ("squared", "absolute"))
        recipe = BankRecipe(
            task=f"regression_{loss}",  # type: ignore[arg-type]
            forget=forget,
            seed=seed,
            backend=backend,
        )
        self._targets = Targets()
        self._begin(recipe, parse_budget(budget))

    def _label_bytes(self) -> int:
        return Targets.nbytes

    def _labels_out(self) -> dict[str, Any]:
        return vars(self._targets).copy()

    def _labels_in(self, content: dict[str, Any]) -> None:
        targets = Targets()
        targets.count = int(content["count"])
        targets.mean, targets.spread = float(content["mean"]), float(content["spread"])
        if targets.count < 0 or not 0.0 <= targets.spread < 1e300 or not abs(targets.mean) <= LARGEST_FEATURE:
            raise ValueError("its targets are none")
        self._targets = targets

    # -- predicting

    def predict_one(self, x: Row) -> float:
        """Return the predicted target of a row; the mean so far before anything else is known."""
        output = self._output_one(x)
        return self._targets.mean if output is None else self._targets.value(float(output))

    def predict_many(self, X: Any, features: Sequence[Hashable] | None = None) -> Floats:
        """Return the predicted target of every row of an array or frame: the loop of ``predict_one``."""
        tables = tables_of(X, features, self._current_names())
        return np.array([self.predict_one(table.row(i)) for table in tables for i in range(len(table.rows))])

    # -- learning

    def learn_one(self, x: Row, y: Any = None, *, late: bool = False) -> None:
        """Learn one row; ``y`` None or NaN means that its target is not known. ``late``: as for SF2EL."""
        target = _number(y)
        if late:
            self._learn_late(x, target)
        elif target is None:
            self._learn_dict(x, float("nan"), 1.0)
        else:
            before, self._targets = self._targets, self._targets.copy()
            try:
                self._learn_dict(x, self._targets.see(target), 1.0)
            except BaseException:
                self._targets = before
                raise

    def _learn_late(self, x: Row, target: float | None) -> None:
        if target is None:
            raise ValueError("late=True is for a target that arrives later; pass that target as y.")
        observed = read_row(x)
        if self._stage is None:
            raise ValueError(
                "No row was learned yet; learn the row first, then pass its target with late=True."
            )
        before, self._targets = self._targets, self._targets.copy()
        try:
            known = self._stage.knows(observed)
            if not known or not self._stage.learn_late(observed, self._targets.see(target), 1.0):
                self._record([Happened(events.TOO_LATE)])
        except BaseException:
            self._targets = before
            raise

    def learn_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> None:
        """Learn the rows of an array or frame in turn: the loop of ``learn_one``, bit for bit."""
        self._run(X, y, features)

    def run_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> Track:
        """Predict and then learn each row in turn; return what was said of each before it was learned."""
        blocks, means, sds = self._run(X, y, features)
        empty = np.empty(0)
        outputs = np.concatenate([*(block.outputs for block in blocks), empty])
        return Track(
            means + sds * outputs,
            np.full(len(outputs), np.nan),
            np.concatenate([*(np.full(len(b.outputs), b.space) for b in blocks), empty]).astype(np.int64),
            np.concatenate([*(block.followed() for block in blocks), empty]).astype(np.int8),
        )

    def _run(self, X: Any, y: Any, features: Sequence[Hashable] | None) -> tuple[list[Block], Floats, Floats]:
        """Predict and learn rows; return blocks, and the targets' mean and deviation before each row."""
        tables = tables_of(X, features, self._current_names())
        numbers = [_number(label) for label in labels_of(y, sum(len(table.rows) for table in tables))]
        before = self._snapshot()
        targets = np.full(len(numbers), np.nan)
        means, sds = np.empty(len(numbers)), np.empty(len(numbers))
        self._targets = self._targets.copy()
        for i, number in enumerate(numbers):
            means[i], sds[i] = self._targets.mean, self._targets.sd
            if number is not None:
                targets[i] = self._targets.see(number)
        try:
            return list(self._walk(tables, targets, None)), means, sds
        except BaseException:
            self._restore(before)
            raise

    def _snapshot(self) -> tuple[Any, ...]:
        return (*super()._snapshot(), self._targets)

    def _restore(self, snapshot: tuple[Any, ...]) -> None:
        *rest, self._targets = snapshot
        super()._restore(tuple(rest))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(budget={self._budget}, seed={self._recipe.seed}, rows={self._rows_seen})"
        )


def _number(y: Any) -> float | None:
    """Return a target as a float, None where it is not known."""
    if y is None:
        return None
    if not is_number(y) or isinstance(y, bool):
        raise ValueError(f"A target must be a number, not {short(y)}; pass None where it is not known.")
    try:
        number = float(y)
    except OverflowError:  # a whole number beyond every float
        number = inf
    if number != number:
        return None
    if not abs(number) <= LARGEST_FEATURE:
        raise ValueError(f"A target is {short(y)}; clip it below 1e100 or pass None.")
    return number
