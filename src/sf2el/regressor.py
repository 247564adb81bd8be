"""SF2ELRegressor: numbers in place of labels, on streams whose features come and go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import copysign, inf, sqrt
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import check_choice
from sf2el.inputs.rows import LARGEST_FEATURE, is_number, short
from sf2el.inputs.tables import labels_of, table_of
from sf2el.memory.budget import parse_budget
from sf2el.model.engine import Block, Engine
from sf2el.model.strategy import BankStrategy
from sf2el.model.stream import Row, StreamModel, Track
from sf2el.storage import files

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

    nbytes, outputs = 3 * 8, 1

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

    def counted(self, key: Any, value: Any) -> Targets:
        """Return the targets once a row is learned."""
        assert isinstance(value, Targets)
        return value

    def log_odds(self) -> list[float]:
        """Return nothing: numbers have no odds."""
        return []

    def copy(self) -> Targets:
        """Return targets that go their own way."""
        twin = Targets()
        twin.count, twin.mean, twin.spread = self.count, self.mean, self.spread
        return twin

    @classmethod
    def of(cls, content: dict[str, Any]) -> Targets:
        """Return the targets of plain values; ValueError for anything else."""
        targets = cls()
        targets.count = int(content["count"])
        targets.mean, targets.spread = float(content["mean"]), float(content["spread"])
        if targets.count < 0 or not 0.0 <= targets.spread < 1e300 or not abs(targets.mean) <= LARGEST_FEATURE:
            raise ValueError("what it knows of its targets is not possible")
        return targets


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
        Seed of everything random; one seed gives the same bits.
    forget
        Share of what was learned that becomes uncertain again with each target.

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

    def __init__(
        self,
        *,
        budget: int | str = "64KiB",
        loss: str = "squared",
        seed: int = 0,
        forget: float = 0.0,
    ) -> None:
        check_choice("loss", loss, ("squared", "absolute"))
        strategy = BankStrategy(task=f"regression_{loss}", forget=forget, seed=seed)
        self._engine = Engine(strategy, parse_budget(budget), Targets())

    @property
    def _targets(self) -> Targets:
        targets: Targets = self._engine.targets  # type: ignore[assignment]
        return targets

    # -- predicting

    def predict_one(self, x: Row) -> float:
        """Return the predicted target of a row; the mean so far before anything else is known."""
        engine = self._engine
        output: Any = engine.state.predict(x)
        targets: Targets = engine.targets  # type: ignore[assignment]
        return targets.mean if output is None else targets.value(output)

    def predict_many(self, X: Any, features: Sequence[Hashable] | None = None) -> Floats:
        """Return the predicted target of every row of an array or frame: the loop of ``predict_one``."""
        with self._engine.used:
            outputs = self._engine.predict_many(table_of(X, features, self._engine.current_names()))[:, 0]
            targets = self._targets
            return np.where(np.isnan(outputs), targets.mean, targets.mean + targets.sd * outputs)

    # -- learning

    def learn_one(self, x: Row, y: Any = None, *, late: bool = False) -> None:
        """Learn one row; ``y`` None or NaN means that its target is not known. ``late``: as for SF2EL."""
        engine = self._engine
        with engine.used:
            target = _number(y)
            if late and target is None:
                raise ValueError("late=True is for a target that arrives later; pass that target as y.")
            if target is None:
                engine.learn(x, float("nan"), 1.0)
                return
            after = self._targets.copy()
            scaled = after.see(target)
            if not late:
                engine.learn(x, scaled, 1.0, (vars(engine), "targets", after))
            elif engine.can_learn_late(x):
                engine.learn_late(x, scaled, 1.0)
                engine.targets = after

    def learn_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> None:
        """Learn the rows of an array or frame in turn: the loop of ``learn_one``, bit for bit."""
        self._run(X, y, features, False)

    def run_many(self, X: Any, y: Any = None, features: Sequence[Hashable] | None = None) -> Track:
        """Predict and then learn each row in turn; return what was predicted for each before it was learned."""
        blocks, means, sds = self._run(X, y, features, True)
        empty = np.empty(0)
        outputs = np.concatenate([*(block.outputs[:, 0] for block in blocks), empty])
        return Track(
            np.where(np.isnan(outputs), means, means + sds * outputs),
            np.full(len(outputs), np.nan),
            np.concatenate([*(block.space for block in blocks), empty]).astype(np.int64),
            np.concatenate([*(block.recovered > 0.5 for block in blocks), empty]).astype(np.int8),
        )

    def _run(
        self, X: Any, y: Any, features: Sequence[Hashable] | None, wanted: bool
    ) -> tuple[list[Block], Floats, Floats]:
        """Predict and learn rows; return blocks, and the targets' mean and deviation before each row."""
        engine = self._engine
        with engine.used:
            table = table_of(X, features, engine.current_names())
            numbers = [_number(label) for label in labels_of(y, len(table.rows))]
            before = engine.snapshot(), self._targets
            scaled = np.full(len(numbers), np.nan)
            means, sds = np.empty(len(numbers)), np.empty(len(numbers))
            targets = before[1].copy()
            for i, number in enumerate(numbers):
                means[i], sds[i] = targets.mean, targets.sd
                if number is not None:
                    scaled[i] = targets.see(number)
            try:
                blocks = engine.run(table, scaled, None, wanted)
                engine.targets = targets
            except BaseException:
                engine.restore(before[0])
                engine.targets = before[1]
                raise
            return blocks, means, sds

    # -- files

    def _content(self) -> tuple[str, dict[str, Any]]:
        return "bank", vars(self._targets).copy()

    @classmethod
    def _from_content(cls, data: bytes) -> Self:
        saved = files.read(data)
        try:
            if saved.kind != cls.KIND or saved.strategy != "bank":
                raise ValueError(f"it holds a {saved.kind}, to be read by another class than {cls.__name__}")
            model = cls.__new__(cls)
            model._engine = Engine.restored(
                saved, BankStrategy.of(saved.parameters), Targets.of(saved.targets)
            )
            return model
        except files.DAMAGED as error:
            raise ValueError(files.no_model(error)) from None

    def __repr__(self) -> str:
        engine = self._engine
        return f"{type(self).__name__}(budget={engine.budget}, seed={engine.strategy.seed}, rows={engine.state.rows})"


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
