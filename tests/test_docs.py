"""Every example of the documentation runs, and gives what the page says.

A page's blocks run in order, in one folder and one namespace of their own:

- ``python`` blocks are run; what follows ``>>>`` must print what is shown;
- ``console`` blocks are run line by line after ``$``, and must print what is shown;
- ``sh`` blocks are not run, for they take long or reach out: each ``sf2el`` line must be one the command line
  understands, and each ``make`` line name a target;
- the scripts of ``docs/examples`` lie in the folder.

``...`` in what is shown stands for anything, and numbers with a decimal point may be a little off: they move
when experts are improved, and a page should show about what a reader gets.
"""

from __future__ import annotations

import doctest
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = {"_build", "auto_gallery"}
PAGES = sorted(page for page in DOCS.rglob("*.md") if not MADE & set(page.relative_to(DOCS).parts))
GALLERY = sorted((DOCS / "gallery").glob("plot_*.py"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMPILER = next(filter(shutil.which, ("c++", "g++", "clang++")), None)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language or directive, its text, and the line of its first line."""

    language: str
    text: str
    line: int


def blocks_of(text: str) -> Iterator[Block]:
    """Give the fenced blocks of a page."""
    for found in re.finditer(r"^( *)(`{3,})([^\n]*)\n(.*?)^\1\2 *$", text, re.MULTILINE | re.DOTALL):
        yield Block(found[3].strip(), found[4], text[: found.start(4)].count("\n"))


class Nearly(doctest.OutputChecker):
    """Takes output whose numbers with a decimal point are within .05 or a tenth of those shown."""

    PARTS = re.compile(r"(?P<any>\.\.\.)|(?P<number>(?<![\w.])-?\d+\.\d+(?![\w.]))|(?P<space>\s+)")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        pattern, numbers, start = "", [], 0
        for part in self.PARTS.finditer(want.strip()):
            pattern += re.escape(want.strip()[start : part.start()])
            start = part.end()
            if part["number"]:
                numbers.append(float(part["number"]))
            pattern += {"any": ".*?", "number": r"(-?\d+\.\d+)", "space": r"\s+"}[str(part.lastgroup)]
        found = re.fullmatch(pattern + re.escape(want.strip()[start:]), got.strip(), re.DOTALL)
        pairs = zip(numbers, map(float, found.groups()), strict=True) if found else ()
        return found is not None and all(abs(a - b) <= max(0.05, 0.1 * abs(a)) for a, b in pairs)


def shown(page: Path) -> str:
    return str(page.relative_to(DOCS))


class Folder:
    """A page's folder and namespace, and the ways to run its blocks there."""

    def __init__(self, page: Path, path: Path) -> None:
        self.page, self.path = page, path
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.compared = 0

    def run(self, block: Block) -> None:
        if block.language == "python":
            self.python(block)
        elif block.language == "console":
            self.console(block)
        elif block.language == "sh":
            for line in block.text.splitlines():
                understood(line)

    def python(self, block: Block) -> None:
        if ">>>" not in block.text:
            self.compared += "assert " in block.text
            exec(compile(block.text, f"{shown(self.page)}:{block.line}", "exec"), self.names)
            return
        parsed = doctest.DocTestParser().get_doctest(
            block.text, self.names, shown(self.page), str(self.page), block.line
        )
        self.compared += sum(bool(example.want) for example in parsed.examples)
        said: list[str] = []
        doctest.DocTestRunner(Nearly(), optionflags=FLAGS).run(parsed, out=said.append, clear_globs=False)
        assert not said, "".join(said)
        self.names |= parsed.globs

    def console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, want = part.partition("\n")
            while command.endswith("\\"):
                more, _, want = want.partition("\n")
                command = f"{command[:-1]} {more.strip()}"
            code, got = self.ran(command)
            assert code == 0 or want.startswith("Error"), f"{command}\n{got}"
            if want.strip():
                self.compared += 1
                same = Nearly().check_output(want, got, FLAGS)
                assert same, f"{shown(self.page)}: $ {command}\nwanted\n{want}\ngot\n{got}"

    def ran(self, command: str) -> tuple[int, str]:
        """Run a line, here if it is plain ``sf2el`` or ``python``; return exit code and output."""
        words = shlex.split(command)
        if not set(command) & set("|><&;$"):
            if words[0] == "sf2el":
                from sf2el.cli import main

                said = CliRunner().invoke(main, words[1:], prog_name="sf2el")
                return said.exit_code, said.output
            if words[0] == "python" and len(words) == 2:
                runpy.run_path(words[1], run_name="__main__")
                return 0, ""
        if words[0] == "c++":
            if COMPILER is None:
                pytest.skip("no C++ compiler on the PATH")
            command = command.replace("c++", COMPILER, 1)
        # This interpreter's own, be it installed with a script or not.
        command = re.sub(r"(^|[|;&]\s*)sf2el ", rf"\1{shlex.quote(sys.executable)} -m sf2el ", command)
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.path,
            env=environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr


def environment() -> dict[str, str]:
    """Return an environment in which this interpreter's programs come first and no data folder is set."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    kept = {name: value for name, value in os.environ.items() if name != "SF2EL_DATA"}
    return kept | {"PATH": path, "MPLBACKEND": "Agg", "COLUMNS": "100", "SF2EL_SOURCE": str(ROOT)}


def understood(line: str) -> None:
    """Raise unless an ``sf2el`` line parses, or a ``make`` line names a target."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words[1:]) <= set(targets), line
    if words[:1] != ["sf2el"]:
        return
    from sf2el.cli import main

    group: click.Command = main
    parent = click.Context(main, info_name="sf2el")
    words = [word for word in words[1:] if word != "--debug"]
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        command = group.get_command(parent, words.pop(0))
        assert command is not None, line
        group = command
    if group is not main:
        group.make_context("sf2el", words, parent=parent).close()


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(page, tmp_path)
    shutil.copytree(DOCS / "examples", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("SF2EL_DATA", raising=False)
    blocks = list(blocks_of(page.read_text()))
    before = set(sys.modules)
    for block in blocks:
        folder.run(block)
    for name in {"make_log"} & (set(sys.modules) - before):
        del sys.modules[name]
    if any(block.language in ("python", "console") for block in blocks):
        assert folder.compared, f"{shown(page)} runs, but compares nothing"


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_gallery(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert "assert " in script.read_text()
    runpy.run_path(str(script), run_name="__main__")
    drawn = plt.get_fignums()
    plt.close("all")
    assert drawn


def test_every_page_is_in_the_contents() -> None:
    listed: set[Path] = set()
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            if block.language == "{toctree}":
                for line in block.text.splitlines():
                    entry = line.rpartition("<")[2].rstrip("> ") if "<" in line else line.strip()
                    if entry and not entry.startswith(":"):
                        listed.add((page.parent / f"{entry}.md").resolve())
    assert set(PAGES) - {DOCS / "index.md"} <= listed


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s#]+\.(?:md|py|cpp))[^)]*\)", page.read_text()):
            if "://" not in target and "auto_gallery" not in target:
                assert (page.parent / target).exists(), f"{shown(page)}: {target}"
