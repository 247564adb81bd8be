"""Rows from files and pipes, a block at a time, in constant memory whatever their length."""

from __future__ import annotations

from sf2el.sources.block import Block, DataError, Place, Source
from sf2el.sources.opening import FORMATS, open_source

__all__ = ["FORMATS", "Block", "DataError", "Place", "Source", "open_source"]
