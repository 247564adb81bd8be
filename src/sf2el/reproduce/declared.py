"""The committed settings files."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


def settings_file(name: str) -> dict[str, Any]:
    """Return the content of a committed settings file.

    >>> settings_file("table2")["buffers"]
    [10, 20, 40, 60]
    """
    return tomllib.loads(_text(name))


@cache
def _text(name: str) -> str:
    return files("sf2el.reproduce").joinpath(f"settings/{name}.toml").read_text(encoding="utf-8")
