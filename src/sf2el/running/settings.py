"""What decides the outcome of a run, beside the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sf2el.sources.labels import number_in


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run: a resumed one must have the same.

    Parameters
    ----------
    label
        The label's column.
    budget, seed
        Of the model; there is no budget where ``buffer`` is given, and None leaves a saved model its own.
    start
        A file with the model to begin with; None begins with a new one.
    regression
        Whether numbers are predicted, not classes.
    buffer
        Rows that each learner of the paper's algorithm keeps, in place of a budget.
    paper
        Whether the paper's algorithm is run, not the default; with ``buffer`` it always is.
    classes
        The labels, where they are known beforehand.
    class_weight
        ``"balanced"`` or None.
    delay
        Rows after which a label arrives.
    ignore
        Columns left out.

    Examples
    --------
    >>> RunSettings(label="y", classes=("1", "2")).known_classes()
    [1, 2]
    """

    label: str
    budget: int | str | None = "64KiB"
    seed: int = 0
    start: str | None = None
    regression: bool = False
    buffer: int | None = None
    paper: bool = False
    classes: tuple[str, ...] | None = None
    class_weight: Literal["balanced"] | None = None
    delay: int = 0
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.buffer is not None:
            object.__setattr__(self, "paper", True)
        if self.regression and (self.classes or self.class_weight or self.paper):
            raise ValueError(
                "--regression predicts numbers: leave out --classes, --class-weight and --paper."
            )
        if self.start is not None and (self.classes or self.class_weight or self.paper):
            raise ValueError(
                "--start goes on with a saved model: leave out --paper, --buffer, --classes and "
                "--class-weight, which are its own."
            )

    @property
    def kind(self) -> str | None:
        """What the labels are, where ``classes`` tells: ``"text"`` or ``"whole"``."""
        if self.classes is None:
            return None
        return "whole" if all(map(_is_whole, self.classes)) else "text"

    def known_classes(self) -> list[str | int] | None:
        """Return the classes as the labels that the data will have."""
        if self.classes is None:
            return None
        return [int(number_in(name)) if self.kind == "whole" else name for name in self.classes]

    def first_model(self) -> Any:
        """Return the model to begin with: one that has seen nothing, or a saved one."""
        from sf2el import SF2EL

        if self.start is not None:
            try:
                model = self._kind_of_model().load(self.start)
            except ValueError as error:
                raise ValueError(f"{self.start}: {error}") from None
            if self.budget is not None:
                model.set_budget(self.budget)
            return model
        assert self.budget is not None
        if self.regression:
            return self._kind_of_model()(budget=self.budget, seed=self.seed)
        if self.paper:
            # The data come as they are, so that features are scaled online.
            return SF2EL.paper(
                buffer_size=self.buffer,
                budget=self.budget if self.buffer is None else None,
                seed=self.seed,
                classes=self.known_classes(),
                class_weight=self.class_weight,
                scaled=True,
            )
        return SF2EL(
            budget=self.budget,
            seed=self.seed,
            classes=self.known_classes(),
            class_weight=self.class_weight,
        )

    def read_model(self, data: bytes) -> Any:
        """Return the model of its bytes."""
        return self._kind_of_model().from_bytes(data)

    def _kind_of_model(self) -> Any:
        from sf2el import SF2EL, SF2ELRegressor

        return SF2ELRegressor if self.regression else SF2EL

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        found = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}
        return found if self.buffer is None else found | {"budget": None}


def _is_whole(text: str) -> bool:
    number = number_in(text)
    return isinstance(number, int) or number.is_integer()
