"""Tables of labelled rows: the targets of their labels, and the labels that were predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sf2el.inputs.labels import UNLABELLED, Label, Labels
from sf2el.model.engine import Block

Floats = npt.NDArray[np.float64]


class Said(NamedTuple):
    """What was predicted for a run of rows, and the labels by which to read it."""

    blocks: list[Block]
    labels: Labels
    known: npt.NDArray[np.int64]
    """How many labels were known before each row."""
    before: Labels
    """The labels before the first row."""
    told: Sequence[Label | None]
    """The label of each row."""


def targets_of(
    labels: Labels, plain: Sequence[Label | None]
) -> tuple[Floats, Floats | None, npt.NDArray[np.int64]]:
    """Return targets and weights of labels, and how many labels were known before each; count them."""
    if labels.class_weight is None and set(plain) <= {None, *labels.seen}:
        target: dict[Label | None, float] = {None: UNLABELLED}
        target |= {name: labels.target(place) for place, name in enumerate(labels.seen)}
        return np.array([target[label] for label in plain]), None, np.full(len(plain), len(labels.seen))
    targets, known = np.full(len(plain), np.nan), np.empty(len(plain), dtype=np.int64)
    weights = None if labels.class_weight is None else np.ones(len(plain))
    for i, label in enumerate(plain):
        known[i] = len(labels.seen)
        if label is None:
            continue
        place = labels.see(label)
        targets[i] = labels.target(place)
        if weights is not None:
            weights[i] = labels.weight(place)
    return targets, weights, known


def decided(said: Said) -> tuple[npt.NDArray[np.object_], Floats]:
    """Return the label of each row and its probability, by the labels known before the row."""
    labels, known = said.labels, said.known
    outputs = np.concatenate([block.outputs for block in said.blocks])
    prediction, probability = labels.decide_many(outputs)
    if np.isnan(
        outputs[:, 0]
    ).any():  # where nothing of a row is known, it is what was seen most often so far
        counts = said.before.copy()
        for i, label in enumerate(said.told):
            if np.isnan(outputs[i, 0]) and known[i] >= 2:
                prediction[i] = counts.commonest()
                probability[i] = counts.shares()[prediction[i]]
            counts.see(label)
    if known[0] >= 2:
        return prediction, probability
    few = known < 2
    prediction[few] = [labels.seen[0] if count else None for count in known[few]]
    probability[few] = np.where(known[few] > 0, 1.0, np.nan)
    return prediction, probability
