"""A digest of the code that a result rests on: new code must not be reported by what the old one gave."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import sf2el

MODEL = ("model", "features", "experts", "maps", "mixing", "memory", "inputs", "core", "paper")
"""Folders of what a model is made of."""


def code_digest(*own: str, model: bool = True, packages: tuple[str, ...] = ()) -> str:
    """Return a digest of files of this package, of the streams and, unless told otherwise, of the model.

    ``packages`` are versions of what else is run.
    """
    content = _content(Path(sf2el.__file__).parent, own, model)
    variant = os.environ.get("SF2EL_VARIANT", "auto") if model else ""
    return hashlib.sha256(json.dumps([content, variant, *packages]).encode()).hexdigest()


@cache
def _content(root: Path, own: tuple[str, ...], model: bool) -> str:
    files = [*(root / "reproduce" / name for name in own), *sorted((root / "streams").glob("*.py"))]
    if model:
        files += sorted(root.glob("*.py"))
        for folder in MODEL:
            files += sorted((root / folder).rglob("*.py"))
        core = find_spec("sf2el.core._native")
        files += [Path(core.origin)] if core and core.origin else []
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
