"""The two changes that CONTRIBUTING.md shows are applied to a copy of the tree, and work there."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sf2el.core import native

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "contributing"
CHANGES = ["new_expert", "new_policy"]
SLOW = os.environ.get("SF2EL_SLOW", "0") not in ("", "0")
BUILDS = all(map(shutil.which, ("cmake", "ninja"))) and any(map(shutil.which, ("c++", "g++", "clang++")))
BUILDS = BUILDS and importlib.util.find_spec("nanobind") is not None

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="no git on the PATH")


def ignored(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name == "__pycache__" or name.endswith((".so", ".pyd"))}


@pytest.fixture
def changed(tmp_path):
    """Return a function that copies the tree and applies a change to the copy."""

    def apply(change: str) -> Path:
        for folder in ("src", "native", "cmake", "tests/contracts"):
            shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
        for file in (
            "CMakeLists.txt",
            "pyproject.toml",
            *(f"tests/{name}.py" for name in ("conftest", "worlds")),
        ):
            shutil.copy(ROOT / file, tmp_path / file)
        command = ["git", "apply", "--verbose", str(HERE / f"{change}.diff")]
        done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\nMend {change}.diff, and its copy in CONTRIBUTING.md."
        return tmp_path

    return apply


def run(copy: Path, *arguments: str) -> str:
    """Run Python on the copy, past whatever leads to the installed package; return what it prints."""
    paths = [copy / "src", sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-S", *arguments]
    done = subprocess.run(command, cwd=copy, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contract(copy: Path, file: str, which: str) -> None:
    """Run a contract's tests of one name; none is a failure too."""
    run(
        copy,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"tests/contracts/{file}",
        "-k",
        which,
    )


@pytest.mark.parametrize("change", CHANGES)
def test_the_page_shows_the_change_as_it_is_applied(change):
    diff = (HERE / f"{change}.diff").read_text()
    assert f"```diff\n{diff}```" in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_touches_at_most_four_files(change):
    files = re.findall(r"^\+\+\+ b/(.*)", (HERE / f"{change}.diff").read_text(), re.MULTILINE)
    assert 1 <= len(files) <= 4


NEW_POLICY = """
import random, sf2el
from sf2el import SF2EL
assert sf2el.__file__.startswith({src!r}), sf2el.__file__
random.seed(0)
models = {{name: SF2EL(budget="32KiB", policy=name) for name in ("own pace", "never join")}}
for t in range(260):
    x = {{name: random.gauss(0, 1) for name in ("abcd" if t < 100 else "abcdz")}}
    for model in models.values():
        model.learn_one(x, x["a"] > 0 if t % 2 else None)
joined = {{name: "joined" in [one.kind for one in model.events().last] for name, model in models.items()}}
assert joined == {{"own pace": True, "never join": False}}, joined
again = SF2EL.from_bytes(models["never join"].to_bytes())
assert type(again._engine.strategy.policy).__name__ == "NeverJoin"
print("works")
"""


@needs_git
def test_a_new_policy_takes_its_place(changed):
    copy = changed("new_policy")
    module = Path(native().__file__)
    shutil.copy(module, copy / "src/sf2el/core" / module.name)
    assert run(copy, "-c", NEW_POLICY.format(src=str(copy))) == "works\n"
    contract(copy, "test_policies.py", "never")


NEW_EXPERT = """
import sf2el
from sf2el.experts.kinds import Code, Kind
from sf2el.memory.ladder import RUNGS, Costs, Held, Shapes, SpaceShape, Standing, plan
assert sf2el.__file__.startswith({src!r}), sf2el.__file__
shapes = Shapes((SpaceShape(4, 4, "current", 4),), (False,), False, 1, "classes")
costs = Costs(lambda *_: 100, lambda *_: 100, lambda *_: 100, lambda *_: 100, lambda *_: 100)
experts = plan(shapes, (Standing(),), Held(), 1 << 20, costs).spaces[0].experts
print([code.name for code in experts if code.kind is Kind.STRICT])
"""

NEW_EXPERT_LEARNS = """
from sf2el import SF2EL
model = SF2EL(budget="256KiB")
for t in range(200):
    model.learn_one({{"a": (t * 7 % 20) / 10 - 1, "b": (t * 3 % 11) / 5 - 1}}, t * 7 % 20 > 10)
assert model.weights(detail=True)["current strict linear"] > 0
assert SF2EL.from_bytes(model.to_bytes()).predict_one({{"a": 0.5}}) is True
print("works")
"""


@needs_git
def test_a_new_kind_of_expert_takes_its_place_in_the_plan(changed):
    copy = changed("new_expert")
    assert run(copy, "-c", NEW_EXPERT.format(src=str(copy))) == "['strict linear']\n"


@needs_git
@pytest.mark.skipif(not SLOW, reason="builds the core; SF2EL_SLOW=1 runs it")
@pytest.mark.skipif(not BUILDS, reason="no cmake, ninja, nanobind or C++ compiler")
def test_a_new_kind_of_expert_learns_and_keeps_its_contract(changed):
    copy = changed("new_expert")
    build = copy / "build"
    for command in (
        ["cmake", "-G", "Ninja", "-S", ".", "-B", str(build), f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", str(build)],
    ):
        done = subprocess.run(command, cwd=copy, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    (module,) = [file for file in build.iterdir() if file.name.startswith("_native.")]
    shutil.copy(module, copy / "src/sf2el/core" / module.name)
    assert run(copy, "-c", NEW_EXPERT_LEARNS.format()) == "works\n"
    contract(copy, "test_experts.py", "strict")
