"""Who is followed in a bank: a Bayesian mixture, and the weights it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from sf2el import core as _core
from sf2el.core.numpy_backend.fixed_share import MOST_SURENESS
from sf2el.experts.entries import FEW_LABELS, entry_of
from sf2el.experts.posterior import fixed_share_bytes

Floats = npt.NDArray[np.float64]

SHARE = 0.003
"""Share of all weight that is dealt out anew after each label, so that no expert is ever lost."""

DOUBT = 0.9
"""Share of their first weight that recovered experts lose where nothing links the spaces."""

LARGEST_LOSS = 8.0
"""Of a number, in units of the noise."""


class BankWeights:
    """A Bayesian mixture of experts whose weights are shared a little after each label.

    Experts that tell classes apart are told how sure they may be, unless they come from a file that was
    written before there was that: then they go on as they did, in as many bytes.
    """

    share = SHARE

    def __init__(self, prior: Floats, task: str, outputs: int, backend: str | None) -> None:
        self._made = (task, outputs, backend)
        self._begin(prior, sure_of(task))

    def _begin(self, prior: Floats, sure: bool) -> None:
        task, _, backend = self._made
        prior = np.ascontiguousarray(prior / prior.sum())
        self._sure = sure
        self.core: Any = _core.backend(backend).FixedShare(prior, SHARE, sure)
        self.part = self.core if task == "classes" else None
        self.nbytes = weights_bytes(len(prior), sure=sure)
        self._least, self._rounds = 1.0, 1.0  # of a number: the best expert's risks, summed, and their count

    @property
    def outputs(self) -> int:
        """Outputs of each expert."""
        return self._made[1]

    @property
    def rounds(self) -> int:
        """Labels since the mixture began, or had a class more."""
        return int(self.core.rounds)

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

    @property
    def sureness(self) -> Floats:
        """By what the margins of each expert are multiplied, so that it is as sure as it is right."""
        return np.asarray(self.core.sureness)

    def update(self, scores: Floats, risks: Floats, y: float, weight: float) -> None:
        """Follow the experts that did well in a labelled round, of classes by as much as it weighs."""
        if y != y:
            return
        if self._made[0] == "classes":
            self.core.follow(scores, y, weight)
        else:
            self.core.update(self._losses(risks))

    def _losses(self, risks: Floats) -> Floats:
        """Return the risks of a number in units of the noise that the best expert has left so far."""
        scale = self._least / self._rounds
        self._least += float(np.min(risks))
        self._rounds += 1.0
        halves = 2.0 if self._made[0] == "regression_squared" else 1.0
        return np.minimum(risks / (halves * scale + 1e-12), LARGEST_LOSS)

    def run(self, scores: Floats, risks: Floats, y: Floats, weighed: Floats | None) -> tuple[Floats, Floats]:
        """Return what is predicted in each round, and the weights before it."""
        task, outputs, _ = self._made
        if outputs > 1:
            return self.core.run_classes(scores, y, outputs, weighed)  # type: ignore[no-any-return]
        if task == "classes":
            return self.core.run_log_odds(scores, y, weighed)  # type: ignore[no-any-return]
        weights = np.empty(risks.shape)
        numbers = np.empty(len(risks))
        for i, (row, risk) in enumerate(zip(scores, risks, strict=True)):
            weights[i], numbers[i] = self.core.weights, self.core.mix_mean(row)
            self.update(row, risk, float(y[i]), 1.0)
        return numbers, weights

    def average_risks(self) -> Floats:
        """Return the average loss of each expert over the labels so far."""
        return np.asarray(self.core.average)

    def only(self, left: list[int], heirs: Mapping[int, int] | None = None) -> BankWeights:
        """Return the mixture of the experts at these places, with the losses that they have had.

        The weight of those that leave goes to their heirs, or is shared by all.
        """
        weights, losses, *sureness = self._by_expert()
        for i, heir in (heirs or {}).items():
            weights[heir] += weights[i]
        return self._with([normalised(weights[left]), losses[left], *(part[left] for part in sureness)])

    def joined_by(self, newcomers: list[float]) -> BankWeights:
        """Return the mixture with more experts at the end, of these weights."""
        weights, losses, *sureness = self._by_expert()
        weights = np.concatenate([(1.0 - sum(newcomers)) * weights, newcomers])
        losses = np.concatenate([losses, np.full(len(newcomers), losses.mean())])
        unknown = np.zeros(len(newcomers))
        return self._with([weights, losses, *(np.concatenate([part, unknown]) for part in sureness)])

    def _by_expert(self) -> list[Floats]:
        """Return what is kept of each expert: weights, losses, and the two parts of its sureness."""
        n, state = len(self.weights), np.asarray(self.core.state())
        return [state[:n].copy(), state[n : 2 * n], *(state[2 * n + 1 :].reshape(-1, n))]

    def _with(self, kept: list[Floats]) -> BankWeights:
        """Return a mixture that keeps this of each expert, and has had the same rounds."""
        weights, losses, *sureness = kept
        numbers = [self.core.rounds, self._least, self._rounds]
        other = BankWeights(np.ones(len(weights)), *self._made)
        other.set_state(np.concatenate([weights, losses, numbers, *sureness]))
        return other

    def grown(self, outputs: int) -> BankWeights:
        """Return the mixture for more classes: weights and sureness stay, losses are of another kind now."""
        task, _, backend = self._made
        weights, losses, *sureness = self._by_expert()
        other = BankWeights(weights, task, outputs, backend)
        fresh = [0.0, self._least, self._rounds]
        other.set_state(np.concatenate([weights, np.zeros_like(losses), fresh, *sureness]))
        return other

    def clone(self) -> BankWeights:
        """Return weights that go their own way from here."""
        return self._with(self._by_expert())

    def state(self) -> Floats:
        """Return everything kept, as one array; sureness is at its end, where older files have nothing."""
        rest, sureness = np.split(np.asarray(self.core.state()), [2 * len(self.weights) + 1])
        return np.concatenate([rest, [self._least, self._rounds], sureness])

    def set_state(self, state: Floats) -> None:
        """Take over what ``state`` returned, of a mixture with or without sureness."""
        n = len(self.weights)
        if len(state) not in (2 * n + 3, 4 * n + 3 if sure_of(self._made[0]) else 0):
            raise ValueError("weights are of other experts")
        rest, numbers, sureness = np.split(state, [2 * n + 1, 2 * n + 3])
        logarithms, curvatures = sureness[:n], sureness[n:]
        if np.any(np.abs(logarithms) > MOST_SURENESS) or np.any(curvatures < 0.0):
            raise ValueError("weights have a sureness that is none")
        if not numbers[0] > 0.0 or not numbers[1] >= 1.0:
            raise ValueError("weights rest on no rounds")
        if (len(sureness) > 0) != self._sure:
            self._begin(np.ones(n), not self._sure)
        self.core.set_state(np.ascontiguousarray(np.concatenate([rest, sureness])))
        self._least, self._rounds = map(float, numbers)


def sure_of(task: str) -> bool:
    """Whether experts of a task are told how sure they may be: only classes have probabilities."""
    return task == "classes"


def weights_bytes(experts: int, *, sure: bool = True) -> int:
    """Return the bytes of a mixture of so many experts."""
    return fixed_share_bytes(experts, sure=sure) + 16


def recovered_share(rows: int, doubt: float = 0.0) -> float:
    """Return the weight of the recovered experts to begin with, after an overlap of so many rows.

    It is less where the overlap raises a doubt, from 0 to 1, that the new features tell the old ones.

    >>> [round(recovered_share(rows), 2) for rows in (1, 2, 5, 10, 50)]
    [0.17, 0.44, 0.83, 0.95, 0.95]
    >>> round(recovered_share(50, doubt=0.8), 2)
    0.27
    """
    return min(0.95, rows * rows / (rows * rows + 5.0)) * (1.0 - DOUBT * doubt)


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
