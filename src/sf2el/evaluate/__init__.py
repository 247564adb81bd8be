"""Evaluation of models that learn while they predict."""

from __future__ import annotations

from sf2el.evaluate.counts import Counts
from sf2el.evaluate.errors import Errors
from sf2el.evaluate.paired import Paired, paired
from sf2el.evaluate.prequential import prequential
from sf2el.evaluate.probabilities import BINS, Probabilities
from sf2el.evaluate.scores import CLASSIFICATION, REGRESSION, ClassScores
from sf2el.evaluate.tally import Evaluation
from sf2el.evaluate.windows import Part, Windows

__all__ = [
    "BINS",
    "CLASSIFICATION",
    "REGRESSION",
    "ClassScores",
    "Counts",
    "Errors",
    "Evaluation",
    "Paired",
    "Part",
    "Probabilities",
    "Windows",
    "paired",
    "prequential",
]
