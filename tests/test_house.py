"""The house is as CONTRIBUTING.md draws it: who imports whom, no cycles, and no file or function too long to read."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "sf2el"
MOST_FILES, MOST_LINES, MOST_FUNCTION_LINES = 8, 400, 60


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


FILES = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def imported(name: str, nodes) -> set[str]:
    """Modules of the package that a module's nodes import: anywhere, for typing or within a function too."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{name}: imports are absolute here"
            found |= {node.module if node.module else ""}
            found |= {f"{node.module}.{one.name}" for one in node.names}
            if any(f"{node.module}.{one.name}" in FILES for one in node.names):
                found.discard(
                    node.module
                )  # a module from its folder, and not what the folder's own file says
    return found & FILES.keys() - {name}


IMPORTS = {name: imported(name, ast.walk(tree(file))) for name, file in FILES.items()}


def room(name: str) -> str:
    """The folder of a module; one that lies at the top is a room of its own."""
    parts = name.split(".")
    if len(parts) == 1:
        return "__init__.py"
    return parts[1] if (PACKAGE / parts[1]).is_dir() else f"{parts[1]}.py"


def page_table() -> dict[str, set[str]]:
    """CONTRIBUTING's table: each room, and those that it may import."""
    rooms = {}
    for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 3:
            continue
        for name in re.findall(r"`([^`]+)`", cells[0]):
            rooms[name] = {"anything"} if cells[2] == "anything" else set(re.findall(r"`([^`]+)`", cells[2]))
    return rooms


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of a graph, or nothing."""
    left = {node: set(targets) & graph.keys() for node, targets in graph.items()}
    while ends := [node for node, targets in left.items() if not targets & left.keys()]:
        for node in ends:
            del left[node]
    path: list[str] = []
    node = min(left, default="")
    while node and node not in path:
        path.append(node)
        node = min(left[node] & left.keys())
    return path[path.index(node) :] if node else []


def test_no_module_imports_itself_by_way_of_others():
    assert not cycle(IMPORTS)


def test_a_cycle_would_be_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]
    assert not cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_every_room_is_on_the_page_and_imports_only_what_it_may():
    allowed = page_table()
    assert set(allowed) == {room(name) for name in FILES}
    wrong = {
        f"{name} imports {target}"
        for name, targets in IMPORTS.items()
        for target in targets
        if room(target) != room(name) and not allowed[room(name)] & {"anything", room(target)}
    }
    assert not wrong, sorted(wrong)


def test_what_the_page_allows_is_in_layers():
    """So that no two rooms, and no round of them, ever import each other."""
    rooms = {name: set(targets) for name, targets in page_table().items()}
    for targets in rooms.values():
        if "anything" in targets:
            targets |= rooms.keys() - {"__main__.py", "cli"}
    assert not cycle(rooms)


def test_the_core_knows_nobody_before_it_is_used():
    for name, file in FILES.items():
        if room(name) == "core":
            assert not {one for one in imported(name, tree(file).body) if room(one) != "core"}


def test_only_the_public_models_choose_a_strategy():
    choosers = {
        name
        for name, targets in IMPORTS.items()
        if targets & {"sf2el.model.strategy", "sf2el.paper.strategy"}
    }
    assert choosers <= {"sf2el.classifier", "sf2el.regressor"}


def test_native_folders_include_only_those_before_them():
    order = ["core", "state", "python"]
    for place, folder in enumerate(order):
        for file in (ROOT / "native" / folder).iterdir():
            for path in re.findall(r'^#include "([^"]+)"', file.read_text(), re.MULTILINE):
                target = file.parent / path if (file.parent / path).exists() else ROOT / "native" / path
                assert target.exists(), f"{file}: {path}"
                assert target.resolve().parent.name in order[: place + 1], f"{file.name} includes {path}"


def test_few_files_lie_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_FILES


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_in_one_sitting_and_a_function_fits_a_screen(name):
    file = FILES[name]
    assert len(file.read_text().splitlines()) <= MOST_LINES
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            text = first.end_lineno - first.lineno + 1 if told else 0
            assert node.end_lineno - node.lineno - text <= MOST_FUNCTION_LINES, f"{node.name} of {name}"
