"""Datasets with two feature spaces."""

from __future__ import annotations

from sf2el.datasets.swiss import spirals, swiss_stream

__all__ = ["spirals", "swiss_stream"]
