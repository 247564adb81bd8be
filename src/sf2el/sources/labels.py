"""Label cells as labels: text or whole numbers, or with a regression numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, nan

from sf2el.sources.block import LARGEST, MISSING, Label, shorten

MOST_CACHED = 10_000


class BadLabel(ValueError):
    """A label that cannot be taken: its place in the block, and why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index, self.reason = index, reason


class LabelReader:
    """Reads label cells. The first label decides whether labels are text or whole numbers.

    Examples
    --------
    >>> LabelReader().read(["1.0", "", "2"])
    [1, None, 2]
    >>> LabelReader().read(["wet", "2"])
    ['wet', '2']
    >>> LabelReader(regression=True).read(["0.5", None])
    [0.5, None]
    """

    def __init__(self, *, regression: bool = False, kind: str | None = None) -> None:
        self.regression = regression
        self.kind = kind
        self._known: dict[str, Label | None] = {}

    def read(self, cells: Sequence[str | None]) -> list[Label | None]:
        """Return the labels of cells; BadLabel names the first that is none."""
        if len(self._known) > MOST_CACHED or self.regression:
            self._known.clear()
        for cell in dict.fromkeys(cells):  # in order of appearance: the first label decides
            if cell is not None and cell not in self._known:
                try:
                    self._known[cell] = self._one(cell.strip())
                except ValueError as error:
                    raise BadLabel(cells.index(cell), str(error)) from None
        return [None if cell is None else self._known[cell] for cell in cells]

    def numbers(self, values: Iterable[float | None]) -> list[Label | None]:
        """Return the labels of numbers, as Parquet and JSON have them."""
        labels: list[Label | None] = []
        for index, value in enumerate(values):
            if value is None or value != value:
                labels.append(None)
                continue
            try:
                labels.append(self._number(float(value), repr(value)))
            except ValueError as error:
                raise BadLabel(index, str(error)) from None
        return labels

    def _one(self, cell: str) -> Label | None:
        if cell in MISSING:
            return None
        number = _number(cell)
        if self.regression:
            if number != number:
                raise ValueError(f"the label {shorten(cell)} is not a number, which --regression needs")
            return self._number(number, cell)
        if self.kind == "text":
            return cell
        if number != number or not isfinite(number):
            if self.kind == "whole":
                raise ValueError(
                    f"the label {shorten(cell)} is text, but the labels before it were whole numbers; "
                    "make them all text or all whole numbers"
                )
            self.kind = "text"
            return cell
        return self._number(number, cell)

    def _number(self, number: float, cell: str) -> Label:
        if self.regression:
            if not abs(number) <= LARGEST:
                raise ValueError(f"the label {cell} is not within -1e100 to 1e100")
            self.kind = "number"
            return number
        if self.kind == "text":
            return cell
        if not number.is_integer():
            raise ValueError(
                f"the label {cell} is neither text nor a whole number; predict numbers with --regression"
            )
        self.kind = "whole"
        return int(number)


def _number(cell: str) -> float:
    """Return the number in a cell, NaN where it is none; 1_000 is none."""
    try:
        return nan if "_" in cell else float(cell)
    except ValueError:
        return nan
