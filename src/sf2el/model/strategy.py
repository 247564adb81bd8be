"""How a model's spaces are furnished: which experts, which map, whose advice is followed, in which bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sf2el.events import Happened
from sf2el.inputs.rows import Names
from sf2el.model.space import Space
from sf2el.paper.kernels import plain_numbers
from sf2el.paper.settings import LearnerSettings

if TYPE_CHECKING:
    from sf2el.model.stage import Stage

Told = list[Happened]
Floats = npt.NDArray[np.float64]


class Recipe(ABC):
    """What makes one kind of model different from another; stages, rows and periods are the same for all."""

    seed: int
    backend: str | None
    scaled: bool
    related: bool
    """Whether a space keeps the covariance of its features."""
    precision: str
    """How covariances are kept."""
    train_in_overlap: bool = True
    """Whether the experts of a space that opens learn beside the current ones."""
    raw_maps: ClassVar[bool]
    """Whether maps take rows as read: a young space's scaling moves, and a map fitted on it would with it."""

    def __post_init__(self) -> None:
        plain_numbers(self)

    @property
    def scaling(self) -> str:
        """The precision of what is kept to scale features by."""
        return "float64"

    def new_space(
        self,
        names: Names,
        *,
        dim: int | None = None,
        born: int | None = None,
        related: bool | None = None,
        scaling: str | None = None,
    ) -> Space:
        """Return a space without experts; what is not said is as the recipe has it."""
        return Space(
            names,
            scaled=self.scaled,
            related=self.related if related is None else related,
            backend=self.backend,
            dim=dim,
            born=born,
            precision=self.precision,
            scaling=scaling or self.scaling,
        )

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError unless every parameter is in its range."""

    @abstractmethod
    def check_least(self, budget: int, labels: int) -> None:
        """Raise ValueError if a budget cannot hold the smallest model there is, labels and all."""

    @abstractmethod
    def furnish(self, stage: Stage, space: Space, index: int) -> None:
        """Give a space its experts; they are as small as can be until the budget says more."""

    @abstractmethod
    def new_weights(self, stage: Stage) -> Any:
        """Return who is followed to begin with."""

    @abstractmethod
    def new_map(self, new: Space, old: Space, new_dim: int | None = None) -> Any:
        """Return a map that recovers one space from another (or from its first features), to be fitted."""

    @abstractmethod
    def learner_settings(self, space: Space) -> LearnerSettings:
        """Return the settings of the first-order learner of a space."""

    @abstractmethod
    def opened(self, stage: Stage) -> Told:
        """A space has opened beside the current one."""

    def taught(
        self, space: Space, outputs: Floats, y: Floats, weights: Floats | None, told: list[int]
    ) -> tuple[Floats, Any]:
        """Return labels and weights of rows for an opened space; the current one says the outputs.

        ``told`` is how often each label was before; it is empty where that says nothing of how likely it is.
        """
        return y, weights

    @abstractmethod
    def swapped(self, stage: Stage) -> None:
        """The opened space has become the current one."""

    @abstractmethod
    def reverted(self, stage: Stage) -> None:
        """A swap was taken back."""

    def replenished(self, stage: Stage) -> Told:
        """Give the current space back experts that left while another was beside it, where that pays."""
        return []

    def regained(self, stage: Stage) -> Told:
        """Give the spaces back what had to leave for want of bytes, now that there are more."""
        return []

    def risk_task(self, outputs: int) -> str:
        """Return the task by which experts of all kinds are judged alike; none: each by its own risk."""
        return ""

    def watches(self, stage: Stage) -> bool:
        """Whether something of the experts is to be fitted anew as the current space shows more."""
        return False

    def refitted(self, stage: Stage) -> Told:
        """Fit anew what rests on rows, of which the current space has shown more.

        What there is to tell is what has left; then bytes have come free.
        """
        return []

    @abstractmethod
    def grow(self, stage: Stage, outputs: int) -> None:
        """There is a class more: give experts more outputs."""

    @abstractmethod
    def size(self) -> str:
        """Return what a model without a budget says of its size."""

    def full_grown(self, stage: Stage) -> bool:
        """Whether the experts are as large as they ever get: more bytes would not be used."""
        return False

    @abstractmethod
    def fit(self, stage: Stage, budget: int, reserved: int, *, growing: bool = False) -> Told:
        """Give every expert the shape that the budget allows; drop what it has no room for.

        ``reserved`` bytes of the budget are not the stage's. A ``growing`` budget costs no buffer a row.
        Raises ValueError if not even the least model fits.
        """
