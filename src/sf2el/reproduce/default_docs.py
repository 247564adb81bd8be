"""Puts the study's numbers into a page of the documentation, so that none of them is typed by hand.

    python -m sf2el.reproduce.default_docs results/reproduce/default/default.json docs/default.md

A page marks the places: what stands between ``<!-- generated: NAME -->`` and ``<!-- end -->`` is replaced by
the block of that name of :mod:`sf2el.reproduce.default_tables`. A block that has no place yet gets one at
the end, under its title; it may be moved from there. All other text stays as it is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sf2el.reproduce.default_tables import BLOCKS, TITLES
from sf2el.storage.atomic import write_text

PLACE = re.compile(r"<!-- generated: (?P<name>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str, content: Mapping[str, Any]) -> str:
    """Return a page with its marked places filled from the study's data.

    >>> content = {"protocol": {"missing": {}}}
    >>> print(filled("Look:\\n<!-- generated: left-out -->\\nold\\n<!-- end -->", content))
    Look:
    <!-- generated: left-out -->
    <BLANKLINE>
    Nothing was left out.
    <BLANKLINE>
    <!-- end -->
    """

    def block(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in BLOCKS:
            raise ValueError(f"There is no block {name!r}; choose from {', '.join(BLOCKS)}.")
        return f"<!-- generated: {name} -->\n\n{BLOCKS[name](content)}\n\n<!-- end -->"

    return PLACE.sub(block, page)


def completed(page: str) -> str:
    """Return a page with a place for every block: those it lacks follow at its end, each under its title.

    >>> completed(completed("# Study\\n")).count("<!-- generated: few-labels -->")
    1
    """
    there = {place["name"] for place in PLACE.finditer(page)}
    return page + "".join(
        f"\n## {TITLES[name]}\n\n<!-- generated: {name} -->\n<!-- end -->\n"
        for name in BLOCKS
        if name not in there
    )


def main() -> None:
    """Fill a page in place: the study's JSON, then the page."""
    source, page = map(Path, sys.argv[1:3])
    content = json.loads(source.read_text(encoding="utf-8"))
    write_text(page, filled(completed(page.read_text(encoding="utf-8")), content))


if __name__ == "__main__":
    main()
