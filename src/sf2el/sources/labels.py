"""Label cells as labels: text or whole numbers, or with a regression numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import inf, nan

from sf2el.sources.block import LARGEST, MISSING, Label, has_decimal_comma, shorten

MOST_CACHED = 10_000
MOST_SHOWN = 40
"""Digits of a number that an error shows."""


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

    def numbers(self, values: Iterable[float | Decimal | None]) -> list[Label | None]:
        """Return the labels of numbers, as Parquet and JSON have them."""
        labels: list[Label | None] = []
        for index, value in enumerate(values):
            if value is None or value != value:
                labels.append(None)
                continue
            try:
                labels.append(self._number(_exact(value), str(value)))
            except ValueError as error:
                raise BadLabel(index, str(error)) from None
        return labels

    def _one(self, cell: str) -> Label | None:
        if cell in MISSING:
            return None
        number = number_in(cell)
        if self.regression:
            if number != number:
                comma = "; write numbers with a decimal point" if has_decimal_comma(cell) else ""
                raise ValueError(
                    f"the label {shorten(cell)} is not a number, which --regression needs{comma}"
                )
            return self._number(number, cell)
        if self.kind == "text":
            return cell
        if number != number or _is_infinity(number, cell):
            if self.kind == "whole":
                raise ValueError(
                    f"the label {shorten(cell)} is text, but the labels before it were whole numbers; "
                    "make them all text or all whole numbers"
                )
            self.kind = "text"
            return cell
        return self._number(number, cell)

    def _number(self, number: int | float, cell: str) -> Label:
        shown = cell if len(cell) <= MOST_SHOWN else f"{cell[:MOST_SHOWN]}..."
        if self.regression:
            if not abs(number) <= LARGEST:
                raise ValueError(f"the label {shown} is not within -1e100 to 1e100")
            self.kind = "number"
            return float(number)
        if self.kind == "text":
            return cell
        large = not -(1 << 63) <= number < 1 << 63
        if _is_infinity(number, cell) or not (large or isinstance(number, int) or number.is_integer()):
            raise ValueError(
                f"the label {shown} is neither text nor a whole number; predict numbers with --regression"
            )
        if large:
            raise ValueError(
                f"the label {shown} is no whole number of 64 bits; make all labels text, say with a letter "
                "before each"
            )
        self.kind = "whole"
        return int(number)


def number_in(cell: str) -> int | float:
    """Return the number in a text, NaN where it is none; 1_000 is none.

    Digits alone are an int, however many: as a float, neighbours above 2**53 would be the same.

    >>> number_in("9007199254740993"), number_in("1e3"), number_in("wet")
    (9007199254740993, 1000.0, nan)
    """
    if "_" in cell:
        return nan
    try:
        return int(cell)
    except ValueError:  # also where there are thousands of digits
        pass
    try:
        return float(cell)
    except ValueError:
        return nan


def _exact(value: float | Decimal) -> int | float:
    """Return a number as an int where it is of a kind that is exact, and whole."""
    if isinstance(value, (int, Decimal)) and int(value) == value:
        return int(value)
    return float(value)


def _is_infinity(number: int | float, cell: str) -> bool:
    """Return whether infinity itself is meant, and not a number that is too large for a float."""
    return number in (inf, -inf) and not any(map(str.isdigit, cell))
