"""Who is followed in a bank: a Bayesian mixture, and the weights it starts from."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el import _core
from sf2el.bank.entries import FEW_LABELS, entry_of
from sf2el.posterior import fixed_share_bytes

Floats = npt.NDArray[np.float64]

SHARE = 0.003
"""Share of all weight that is dealt out anew after each label, so that no expert is ever lost."""

LARGEST_LOSS = 8.0


class BankWeights:
    """A Bayesian mixture of experts whose weights are shared a little after each label."""

    share = SHARE

    def __init__(self, prior: Floats, task: str, outputs: int, backend: str | None) -> None:
        self._made = (task, outputs, backend)
        self.core: Any = _core.backend(backend).FixedShare(np.ascontiguousarray(prior / prior.sum()), SHARE)
        self.part = self.core if task == "classes" else None
        self.nbytes = fixed_share_bytes(len(prior)) + 16
        self._least, self._rounds = 1.0, 1.0  # of a number: the best expert's risks, summed, and their count

    @property
    def outputs(self) -> int:
        """Outputs of each expert."""
        return self._made[1]

    @property
    def weights(self) -> Floats:
        """Weight of each expert in the coming round."""
        return np.asarray(self.core.weights)

    def mix(self, scores: Floats) -> Any:
        """Return the log odds of the first label, the probability of each of several, or a number."""
        task, outputs, _ = self._made
        if outputs > 1:
            return self.core.mix_classes(scores, outputs)
        if task == "classes":
            return self.core.mix_log_odds(scores)
        return self.core.mix_mean(scores)

    def update(self, risks: Floats) -> None:
        """Follow the experts that did well in a labelled round."""
        if risks[-1] != risks[-1]:
            return
        if self._made[0] == "classes":
            self.core.update(risks)
        else:
            self.core.update(self._losses(risks))

    def _losses(self, risks: Floats) -> Floats:
        """Return the risks of a number in units of the noise that the best expert has left so far."""
        scale = self._least / self._rounds
        self._least += float(np.min(risks))
        self._rounds += 1.0
        halves = 2.0 if self._made[0] == "regression_squared" else 1.0
        return np.minimum(risks / (halves * scale + 1e-12), LARGEST_LOSS)

    def run(self, scores: Floats, risks: Floats) -> tuple[Floats, Floats]:
        """Return what is predicted in each round, and the weights before it."""
        task, outputs, _ = self._made
        if outputs > 1:
            return self.core.run_classes(scores, risks, outputs)  # type: ignore[no-any-return]
        if task == "classes":
            return self.core.run_log_odds(scores, risks)  # type: ignore[no-any-return]
        weights = np.empty(risks.shape)
        numbers = np.empty(len(risks))
        for i, (row, risk) in enumerate(zip(scores, risks, strict=True)):
            weights[i], numbers[i] = self.core.weights, self.core.mix_mean(row)
            self.update(risk)
        return numbers, weights

    def average_risks(self) -> Floats:
        """Return the average loss of each expert over the labels so far."""
        return np.asarray(self.core.average)

    def only(self, left: list[int]) -> BankWeights:
        """Return the mixture of the experts at these places, with the losses that they have had."""
        weights, losses, rest = np.split(self.state(), [len(self.weights), 2 * len(self.weights)])
        fewer = BankWeights(np.ones(len(left)), *self._made)
        fewer.set_state(np.concatenate([normalised(weights[left]), losses[left], rest]))
        return fewer

    def joined_by(self, newcomers: list[float]) -> BankWeights:
        """Return the mixture with more experts at the end, of these weights."""
        weights, losses, rest = np.split(self.state(), [len(self.weights), 2 * len(self.weights)])
        more = BankWeights(np.ones(len(weights) + len(newcomers)), *self._made)
        weights = np.concatenate([(1.0 - sum(newcomers)) * weights, newcomers])
        losses = np.concatenate([losses, np.full(len(newcomers), losses.mean())])
        more.set_state(np.concatenate([weights, losses, rest]))
        return more

    def clone(self) -> BankWeights:
        """Return weights that go their own way from here."""
        twin = BankWeights(np.ones(len(self.weights)), *self._made)
        twin.set_state(self.state())
        return twin

    def state(self) -> Floats:
        """Return everything kept, as one array."""
        return np.concatenate([np.asarray(self.core.state()), [self._least, self._rounds]])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned."""
        if not state[-2] > 0.0 or not state[-1] >= 1.0:
            raise ValueError("weights rest on no rounds")
        self.core.set_state(np.ascontiguousarray(state[:-2]))
        self._least, self._rounds = float(state[-2]), float(state[-1])


def recovered_share(rows: int) -> float:
    """Return the weight of the recovered experts to begin with, after an overlap of so many rows.

    >>> [round(recovered_share(rows), 2) for rows in (1, 2, 5, 10, 50)]
    [0.17, 0.44, 0.83, 0.95, 0.95]
    """
    return min(0.95, rows * rows / (rows * rows + 5.0))


def class_log_odds(counts: list[int], outputs: int) -> list[float]:
    """Return the log odds of the first of two classes, or of each of several, by how often each was seen.

    >>> [round(value, 2) for value in class_log_odds([7, 2], 1)]
    [0.69]
    """
    seen = [count + FEW_LABELS for count in counts] + [FEW_LABELS] * max(0, 2 - len(counts))
    total = sum(seen)
    odds = [log(count / (total - count)) for count in seen]
    return odds[:1] if outputs == 1 else odds[:outputs]


def shared(values: list[float], seats: list[Any]) -> Floats:
    """Return weights that sum to 1; experts of one entry, seen plain and white, share its weight."""
    names = [entry_of(seat).name for seat in seats]
    return normalised([value / names.count(name) for value, name in zip(values, names, strict=True)])


def normalised(values: Any) -> Floats:
    """Return weights that sum to 1."""
    array = np.asarray(values, dtype=np.float64)
    return np.asarray(array / array.sum())
