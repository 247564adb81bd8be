"""The core without Python: it compiles alone and without warnings, and the example runs without a heap."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "embedded.cpp"
FOUND = {name: found for name in ("clang++", "g++", "c++") if (found := shutil.which(name))}
# Names of the same compiler count once.
COMPILERS = sorted({Path(found).resolve(): name for name, found in FOUND.items()}.values())
FLAGS = ["-std=c++17", "-ffp-contract=off", "-Wno-psabi", f"-I{ROOT / 'native'}"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no C++ compiler on the PATH")


def compile_with(compiler: str, *arguments: str) -> None:
    done = subprocess.run([compiler, *FLAGS, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def report_of(*arguments: str, folder: Path) -> str:
    """Build the example and return what it prints."""
    program = folder / "embedded"
    compile_with(COMPILERS[0], *WARNINGS, *arguments, str(EXAMPLE), "-o", str(program))
    return subprocess.run([str(program)], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_of("-O2", folder=tmp_path_factory.mktemp("embedded"))


def number(report: str, what: str) -> float:
    found = re.search(rf"^{what} +([\d.]+)", report, re.MULTILINE)
    assert found, f"{what!r} is not in:\n{report}"
    return float(found.group(1))


def test_the_bytes_of_every_part_add_up(report: str) -> None:
    parts = ("learners' scratch", "old learner", "new learner", "recovery map", "map's scratch", "hedge")
    sizes = [number(report, part) for part in parts]
    assert min(sizes) > 0
    assert sum(sizes) == number(report, "all together") <= 40 * 1024


def test_following_the_better_learner_pays(report: str) -> None:
    hedge = number(report, "hedge of the two")
    assert hedge >= 0.95
    assert hedge > number(report, "new features alone")


def test_another_build_gives_the_same_report(report: str, tmp_path: Path) -> None:
    assert report_of("-O3", folder=tmp_path) == report


def test_lanes_in_standard_cpp_give_the_same_report(report: str, tmp_path: Path) -> None:
    assert report_of("-O2", "-DSF2EL_PORTABLE_LANES", folder=tmp_path) == report


@pytest.mark.skipif(not shutil.which("nm"), reason="no nm on the PATH")
def test_nothing_in_the_example_can_reach_an_allocator(tmp_path: Path) -> None:
    # The example aborts in operator new; that leaves C's allocators, of which it must not even know.
    compiled = tmp_path / "embedded.o"
    compile_with(COMPILERS[0], "-O2", "-c", str(EXAMPLE), "-o", str(compiled))
    listed = subprocess.run(["nm", "-u", str(compiled)], check=True, capture_output=True, text=True).stdout
    wanted = {line.split()[-1].lstrip("_").split("@")[0] for line in listed.splitlines() if line.strip()}
    assert "printf" in wanted | {name.removesuffix("_chk") for name in wanted}
    assert not wanted & {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "free"}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["-std=c++17", "-std=c++20"])
def test_the_core_alone_compiles_without_a_warning(compiler: str, standard: str, tmp_path: Path) -> None:
    source = tmp_path / "core.cpp"
    source.write_text(
        '#include "core/core.hpp"\n'
        "template class sf2el::Learner<double>;\ntemplate class sf2el::Learner<float>;\n"
    )
    compile_with(
        compiler, standard, *WARNINGS, "-Wshadow", "-O1", "-c", str(source), "-o", str(tmp_path / "o")
    )
    assert (tmp_path / "o").stat().st_size > 0
