"""Rounds of a stream, and streams whose features change."""

from __future__ import annotations

from sf2el.streams.two_spaces import TwoSpaceStream, label_mask

__all__ = ["TwoSpaceStream", "label_mask"]
