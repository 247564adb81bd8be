"""What decides the outcome of a run, beside the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run: a resumed one must have the same.

    Parameters
    ----------
    label
        The label's column.
    budget, seed
        Of the model.
    regression
        Whether numbers are predicted, not classes.
    buffer
        Rows that each learner of the paper's algorithm keeps; None takes the default model.
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
    budget: int | str = "64KiB"
    seed: int = 0
    regression: bool = False
    buffer: int | None = None
    classes: tuple[str, ...] | None = None
    class_weight: Literal["balanced"] | None = None
    delay: int = 0
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.regression and (self.classes or self.class_weight or self.buffer is not None):
            raise ValueError(
                "--regression predicts numbers: leave out --classes, --class-weight and --paper."
            )
        if self.buffer is not None and self.class_weight:
            raise ValueError("--paper is the published algorithm, which knows no --class-weight.")

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
        return [int(float(name)) if self.kind == "whole" else name for name in self.classes]

    def new_model(self) -> Any:
        """Return a model that has seen nothing."""
        from sf2el import SF2EL

        if self.regression:
            from sf2el import SF2ELRegressor

            return SF2ELRegressor(budget=self.budget, seed=self.seed)
        if self.buffer is not None:
            # The data come as they are, so that features are scaled online.
            return SF2EL.paper(
                buffer_size=self.buffer, seed=self.seed, classes=self.known_classes(), scaled=True
            )
        return SF2EL(
            budget=self.budget,
            seed=self.seed,
            classes=self.known_classes(),
            class_weight=self.class_weight,
        )

    def read_model(self, data: bytes) -> Any:
        """Return the model of its bytes."""
        return type(self.new_model()).from_bytes(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON can hold them."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}


def _is_whole(text: str) -> bool:
    try:
        return float(text).is_integer() and "_" not in text
    except (ValueError, OverflowError):
        return False
