"""A model run over data: every row predicted, then learned; interrupted runs go on where they were."""

from __future__ import annotations

from sf2el.running.checkpoint import Checkpoint, read_checkpoint
from sf2el.running.engine import Run
from sf2el.running.settings import RunSettings

__all__ = ["Checkpoint", "Run", "RunSettings", "read_checkpoint"]
