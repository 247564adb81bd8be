"""Without the compiled core the package imports, and what needs the core says what to do."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

SENTENCE = "sf2el's compiled core is not installed: install a wheel, or a C++17 compiler and install again."

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "sf2el.core._native":
            {raised}

sys.meta_path.insert(0, Blocked())
"""
NOT_THERE = BLOCKED.format(raised="raise ModuleNotFoundError(name, name=name)")
OF_ANOTHER_PYTHON = BLOCKED.format(raised="raise ImportError('undefined symbol: Py_Ago', name=name)")


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_package_and_its_plain_parts_import():
    done = run(
        NOT_THERE
        + """
import importlib.util
import sf2el, sf2el.core, sf2el.events, sf2el.inputs.rows, sf2el.streams, sf2el.evaluate
from sf2el.core.rng import SplitMix64
SplitMix64(1).next()
if importlib.util.find_spec("sf2el.paper.reference"):
    import sf2el.paper.reference
print("imported")
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "imported\n"


@pytest.mark.parametrize(
    "needs",
    [
        "from sf2el.core import native; native()",
        "import sf2el; sf2el.SF2EL().learn_one({'a': 1.0}, 1)",
        "import sf2el; sf2el.SF2ELRegressor().learn_one({'a': 1.0}, 1.5)",
        "import sf2el; sf2el.SF2EL.paper().learn_one({'a': 1.0}, 1)",
    ],
)
def test_what_needs_the_core_says_what_to_do(needs):
    done = run(NOT_THERE + needs)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: {SENTENCE}"


def test_a_core_that_does_not_load_says_why():
    done = run(OF_ANOTHER_PYTHON + "from sf2el.core import native; native()")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: sf2el's compiled core does not load here (undefined symbol: Py_Ago): "
        "install a wheel, or a C++17 compiler and install again."
    )


def test_the_core_is_loaded_once():
    done = run("from sf2el.core import native; assert native() is native(); print(native().__name__)")
    assert done.stdout == "sf2el.core._native\n", done.stderr


def test_the_doctor_reports_it_as_a_problem():
    done = run(NOT_THERE + "from sf2el.cli import main; main(['doctor'])")
    assert done.returncode == 1
    assert f"Problem: {SENTENCE}" in done.stdout
    assert "Traceback" not in done.stderr
