"""One cycle of the paper's setting: old features, both, then only the new."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sf2el.inputs.parameters import plain_numbers

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TwoSpaceStream:
    """Old features for T1 rounds, the last ``overlap`` of them with the new ones, then T2 rounds of the new.

    Attributes
    ----------
    old
        The old space's rows, T1 x d1.
    new
        The new space's rows: the overlap's, then T2 more; (overlap + T2) x d2.
    y
        The labels +1 / -1 of all T1 + T2 rounds.
    labelled
        Which of these rounds reveal their label.
    overlap
        B, the number of rounds that have both.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> stream = TwoSpaceStream.cut(X, 2 * X, y=np.ones(6), labelled=np.ones(6, bool), overlap=1)
    >>> stream.old.shape, stream.new.shape, stream.after_swap.shape
    ((3, 2), (4, 2), (3, 2))
    """

    old: Floats
    new: Floats
    y: Floats
    labelled: Mask
    overlap: int

    def __post_init__(self) -> None:
        plain_numbers(self)
        t1, t2 = len(self.old), len(self.new) - self.overlap
        if not 0 <= self.overlap <= t1 or t2 < 0:
            raise ValueError(f"overlap must be between 0 and the {t1} old rows, not {self.overlap}.")
        if len(self.y) != t1 + t2 or len(self.labelled) != t1 + t2:
            raise ValueError(f"y and labelled must have {t1 + t2} entries, one for each round.")
        if not np.all(np.abs(self.y) == 1.0):
            raise ValueError("y must be +1 or -1 in every round; labelled says which rounds reveal it.")

    @classmethod
    def cut(
        cls, X1: Floats, X2: Floats, *, y: Floats, labelled: Mask, overlap: int, t1: int | None = None
    ) -> TwoSpaceStream:
        """Cut rows known in both spaces into the periods; T1 = n // 2 unless given."""
        t1 = len(y) // 2 if t1 is None else t1
        return cls(X1[:t1], X2[t1 - overlap :], y, labelled, overlap)

    @property
    def t1(self) -> int:
        """Rounds that have the old features."""
        return len(self.old)

    @property
    def after_swap(self) -> Floats:
        """The rows of the third period."""
        return self.new[self.overlap :]

    @property
    def labels(self) -> Floats:
        """What the learner gets in each round: the label, or NaN."""
        return np.where(self.labelled, self.y, np.nan)


def label_mask(rounds: int, rate: float, rng: np.random.Generator) -> Mask:
    """Return which rounds reveal their label: each with probability ``rate``, whatever its class."""
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"label rate must be above 0 and at most 1, not {rate!r}.")
    return rng.random(rounds) < rate
