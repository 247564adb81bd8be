"""Rounds of a stream, and streams whose features change."""

from __future__ import annotations

from sf2el.streams.evolve import evolve
from sf2el.streams.evolving import EvolvingStream, Period, Round, Space
from sf2el.streams.matrices import random_matrix
from sf2el.streams.protocol import stream_for
from sf2el.streams.two_spaces import TwoSpaceStream, label_mask

__all__ = [
    "EvolvingStream",
    "Period",
    "Round",
    "Space",
    "TwoSpaceStream",
    "evolve",
    "label_mask",
    "random_matrix",
    "stream_for",
]
