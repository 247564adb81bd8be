"""The command line's frame: lazy commands, errors in one sentence, exit codes, progress, doctor."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

import sf2el
from sf2el import cli
from sf2el.cli.progress import progress
from sf2el.core import native


@pytest.fixture
def failing(monkeypatch):
    """A command ``fail`` that raises what it is given."""

    def register(error):
        @click.command()
        @click.option("--times", type=int)
        def fail(times):
            raise error

        module = import_module("sf2el.cli.doctor")
        monkeypatch.setattr(module, "fail", fail, raising=False)
        monkeypatch.setitem(cli.COMMANDS, "fail", ("sf2el.cli.doctor", "fail", "Fails."))
        return fail

    return register


def invoke(*args):
    return CliRunner().invoke(cli.main, list(args))


def in_new_python(*args, **env):
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, env=env or None, timeout=60, check=False
    )


# ---- commands


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_registered_command_is_there_and_helps(name):
    module, attribute, short = cli.COMMANDS[name]
    assert isinstance(getattr(import_module(module), attribute), click.Command)
    assert short in " ".join(invoke("--help").output.split())
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert f"sf2el {name}" in result.output


def test_help_imports_no_command_and_nothing_heavy():
    code = (
        "import sys\nfrom sf2el.cli import main\nmain(['--help'], standalone_mode=False)\n"
        "print([m for m in sys.modules if m.startswith(('sf2el.cli.', 'rich', 'matplotlib'))])"
    )
    result = in_new_python("-c", code)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_module_is_the_command_line():
    result = in_new_python("-m", "sf2el", "--version")
    assert result.returncode == 0
    assert result.stdout.startswith(f"sf2el {sf2el.__version__} (")


def test_the_package_tells_its_version_and_looks_it_up_only_then():
    code = "import sys, sf2el; print('importlib.metadata' in sys.modules, sf2el.__version__)"
    assert in_new_python("-c", code).stdout == f"False {sf2el.__version__}\n"
    assert "__version__" in dir(sf2el)


@pytest.mark.parametrize("name", ["auto", "base", "wide"])
def test_version_names_the_variant_in_use(name, monkeypatch):
    usable = native().wide_usable()
    if name == "wide" and not usable:
        pytest.skip("this processor has no wide variant")
    monkeypatch.setenv("SF2EL_VARIANT", name)
    used = name if name != "auto" else "wide" if usable else "base"
    assert invoke("--version").output == f"sf2el {sf2el.__version__} ({used} variant)\n"


# ---- errors


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("rows must be whole,\n  not 1.5"), "rows must be whole, not 1.5."),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "a.csv: no such file or directory."),
        (ImportError('Figures need matplotlib: pip install "sf2el[plot]".'), "Figures need matplotlib"),
        (
            ZeroDivisionError("division by zero"),
            "Unexpected ZeroDivisionError: division by zero; sf2el --debug",
        ),
    ],
)
def test_error_is_one_sentence_and_exit_code_1(failing, error, said):
    failing(error)
    result = invoke("fail")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert said in result.stderr
    assert result.stderr.count("\n") == 1 and result.stderr.endswith(".\n")
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback(failing):
    error = ValueError("no")
    failing(error)
    assert invoke("--debug", "fail").exception is error


def test_interrupt_leaves_with_130(failing):
    failing(KeyboardInterrupt())
    result = invoke("fail")
    assert result.exit_code == 130
    assert result.stderr.endswith("Interrupted.\n")


@pytest.mark.parametrize(
    "args", [["nosuch"], ["--nosuch"], ["fail", "--times", "x"], ["demo", "--runs", "0"]]
)
def test_wrong_usage_leaves_with_2(failing, args):
    failing(ValueError("not reached"))
    result = invoke(*args)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr and "not reached" not in result.stderr


def test_version_of_a_wrong_variant_is_a_sentence(monkeypatch):
    monkeypatch.setenv("SF2EL_VARIANT", "abacus")
    result = invoke("--version")
    assert result.exit_code == 1
    assert result.stderr == "Error: SF2EL_VARIANT must be auto, base or wide, not 'abacus'.\n"


# ---- progress


def lines_of(work, total, seconds):
    """Return what progress writes, off a terminal, where each step takes ``seconds``."""
    out, now = io.StringIO(), [0.0]
    with progress("work", total, console=Console(file=out, width=20), clock=lambda: now[0]) as advance:
        for steps in work:
            now[0] += seconds * steps
            advance(steps)
    return out.getvalue().splitlines()


def test_short_work_says_one_plain_line():
    assert lines_of([1] * 40, 40, 0.01) == ["work: 40 of 40, less than 1 s in all"]


def test_long_work_says_the_time_left_now_and_then():
    lines = lines_of([1, 2, 1, 1, 1], 6, 30.0)
    assert lines == [
        "work: 1 of 6, 2 min 30 s left",
        "work: 3 of 6, 1 min 30 s left",
        "work: 4 of 6, 1 min 0 s left",
        "work: 5 of 6, 30 s left",
        "work: 6 of 6, 3 min 0 s in all",
    ]


def test_interrupted_work_does_not_say_it_is_done():
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt), progress("work", 9, console=Console(file=out)) as advance:
        advance(1)
        raise KeyboardInterrupt
    assert out.getvalue() == ""


def test_terminal_gets_a_bar():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    with progress("work", 8, console=console) as advance:
        advance(8)
    assert "8/8" in out.getvalue() and "━" in out.getvalue()


# ---- doctor


def test_doctor_tells_versions_core_and_how_to_install_extras(monkeypatch):
    monkeypatch.delenv("SF2EL_DATA", raising=False)
    present = import_module("sf2el.cli.doctor").find_spec
    monkeypatch.setattr("sf2el.cli.doctor.find_spec", lambda name: name != "matplotlib" and present(name))
    result = invoke("doctor")
    assert result.exit_code == 0
    assert f"sf2el         {sf2el.__version__}\n" in result.output
    assert 'matplotlib    not installed (figures and HTML pages): pip install "sf2el[plot]"' in result.output
    assert f"numpy         {version('numpy')}\n" in result.output
    assert "compiled core wide variant" in result.output or "compiled core base variant" in result.output


def test_doctor_json_holds_every_extra(monkeypatch, tmp_path):
    monkeypatch.setenv("SF2EL_DATA", str(tmp_path))
    found = json.loads(invoke("doctor", "--json").output)
    assert set(found["extras"]) == {"matplotlib", "polars", "river", "sklearn"}
    assert found["extras"]["matplotlib"]["install"] == 'pip install "sf2el[plot]"'
    assert found["compiled_core"]["built"] is True
    assert found["compiled_core"]["variant"] in ("base", "wide")
    assert (found["data_folder"], found["problems"]) == (str(tmp_path), [])


def test_doctor_reports_problems_and_leaves_with_1(monkeypatch, tmp_path):
    monkeypatch.setenv("SF2EL_VARIANT", "abacus")
    monkeypatch.setenv("SF2EL_DATA", str(tmp_path / "gone"))
    result = invoke("doctor")
    assert result.exit_code == 1
    assert "compiled core cannot be used" in result.output
    assert result.output.count("Problem: ") == 2
