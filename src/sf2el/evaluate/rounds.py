"""Rounds to evaluate: what is seen, what is true, and which labels a model gets when."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from sf2el.inputs.rows import short
from sf2el.streams.evolving import Round

Row = dict[Any, Any]
Mask = Iterable[bool] | Callable[[int], bool] | None


@dataclass(frozen=True, slots=True)
class Step:
    """A round: the row, its true label if known, the label told at once, and the late ones of other rows."""

    index: int
    x: Row
    truth: Any
    told: Any
    late: tuple[tuple[Row, Any], ...]
    from_round: bool


def steps_of(
    stream: Iterable[Any], *, delay: int, mask: Mask, label_rate: float | None, seed: int
) -> Iterator[Step]:
    """Yield the rounds of pairs or of :class:`sf2el.streams.Round`.

    >>> for step in steps_of([({"a": 1}, 0), ({"a": 2}, 1)], delay=1, mask=None, label_rate=None, seed=0):
    ...     print(step.truth, step.told, step.late)
    0 None ()
    1 None (({'a': 1}, 0),)
    """
    revealed = _revealed(mask, label_rate, seed)
    waiting: deque[tuple[Row, Any]] = deque()
    for index, item in enumerate(stream):
        if isinstance(item, Round):
            if delay or mask is not None or label_rate is not None:
                raise ValueError(
                    "These rounds say themselves which labels come when; build the stream with the "
                    "label_rate and label_delay you want, and pass neither here."
                )
            yield Step(item.index, item.x, item.truth, item.y, _late_rows(stream, item), True)
            continue
        x, truth = _pair(index, item)
        told = truth if revealed(index) else None
        if not delay:
            yield Step(index, x, truth, told, (), False)
            continue
        waiting.append((x, told))
        due = waiting.popleft() if len(waiting) > delay else None
        late = () if due is None or due[1] is None else (due,)
        yield Step(index, x, truth, None, late, False)


def _pair(index: int, item: Any) -> tuple[Row, Any]:
    """Return a row and its true label, None where it is not known."""
    try:
        if isinstance(item, (str, bytes, Mapping, Set)):
            raise TypeError
        x, y = item
    except (TypeError, ValueError):
        raise ValueError(
            f"Round {index} of the stream is {short(item)}; pass pairs of a row and its label, None where it "
            "is not known."
        ) from None
    try:
        hash(y)
    except TypeError:
        raise ValueError(
            f"The label of round {index} is {short(y)}; pass text, a number, or None where it is not known."
        ) from None
    return x, None if isinstance(y, (float, np.floating)) and y != y else y


def _revealed(mask: Mask, label_rate: float | None, seed: int) -> Callable[[int], bool]:
    if label_rate is not None:
        draw, rate = Random(seed).random, label_rate
        return lambda _: draw() < rate
    if mask is None:
        return lambda _: True
    if callable(mask):
        return mask
    entries = iter(mask)

    def entry(index: int) -> bool:
        try:
            return bool(next(entries))
        except StopIteration:
            raise ValueError(f"The mask ends at round {index}, before the stream does.") from None

    return entry


def _late_rows(stream: Any, item: Round) -> tuple[tuple[Row, Any], ...]:
    if not item.late:
        return ()
    if not hasattr(stream, "row"):
        raise ValueError(
            "Late labels need their rows: pass the EvolvingStream itself, not an iterator of it."
        )
    return tuple((stream.row(index), label) for index, label in item.late)


class ModelsWords:
    """Puts the labels of a stream into the model's words.

    River's binary models answer True and False, and some of them learn wrongly from any other labels. So a
    model that answers with booleans gets booleans, and is scored by them. A stream that has booleans of
    its own is left as it is.

    >>> words = ModelsWords()
    >>> step = Step(0, {"a": 1}, -1, -1, (({"a": 0}, 1),), False)
    >>> words.of(step, answer=-1).truth, words.of(step, answer=True).truth, words.of(step, answer=None).late
    (-1, False, (({'a': 0}, True),))
    """

    def __init__(self) -> None:
        self._boolean = False
        self._stream_has_booleans = False
        self._negative: Any = None

    def of(self, step: Step, answer: Any) -> Step:
        """Return a round with its labels as a model takes them that has given this answer."""
        self._boolean = self._boolean or isinstance(answer, (bool, np.bool_))
        self._stream_has_booleans = self._stream_has_booleans or isinstance(step.truth, (bool, np.bool_))
        if self._stream_has_booleans or not self._boolean:
            return step
        truth, told = self._as_boolean(step.truth), self._as_boolean(step.told)
        late = tuple((x, self._as_boolean(label)) for x, label in step.late)
        return Step(step.index, step.x, truth, told, late, step.from_round)

    def _as_boolean(self, label: Any) -> bool | None:
        if label is None:
            return None
        if label == 1:
            return True
        if label in (0, -1) and self._negative in (None, label):
            self._negative = label
            return False
        raise ValueError(
            f"The model answers True or False, and the stream has the label {short(label)}: pass labels True "
            "and False, 1 and 0, or 1 and -1, or a model for more labels."
        )


class Learning:
    """Calls ``learn_one`` with what the model can take."""

    def __init__(self, model: Any, unlabelled: bool | None = None) -> None:
        self._takes_late = "late" in inspect.signature(model.learn_one).parameters
        self._takes_none = _takes_none(model) if unlabelled is None else unlabelled
        self._learn = model.learn_one
        self.told = 0
        """Labels that the model was told."""

    def learn(self, step: Step) -> None:
        """Learn a round's row, then the labels that arrive with it."""
        if step.told is not None:
            self._learn(step.x, step.told)
            self.told += 1
        elif self._takes_none:
            self._learn(step.x, None)
        for x, label in step.late:
            if self._takes_late:
                self._learn(x, label, late=True)
            else:
                self._learn(x, label)
            self.told += 1


def _takes_none(model: Any) -> bool:
    """Tell whether a model can learn a row without a label: None is what ``learn_one`` takes by default.

    A river pipeline or union has that default whatever it is made of. It hands the label to its supervised
    parts, so that these must all be able to do without.
    """
    parts = getattr(model, "steps", None) or getattr(model, "transformers", None)
    if isinstance(parts, Mapping):
        return all(_takes_none(part) for part in parts.values() if getattr(part, "_supervised", True))
    parameters = list(inspect.signature(model.learn_one).parameters.values())
    return len(parameters) > 1 and parameters[1].default is None
