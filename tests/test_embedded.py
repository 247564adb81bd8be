"""The core without Python: the examples build, agree with Python bit for bit, and the core takes no heap."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sf2el import RBF, SF2EL, SF2ELRegressor

ROOT = Path(__file__).resolve().parent.parent
FOUND = {name: found for name in ("clang++", "g++", "c++") if (found := shutil.which(name))}
# Names of the same compiler count once.
COMPILERS = sorted({Path(found).resolve(): name for name, found in FOUND.items()}.values())
FLAGS = ["-std=c++17", "-ffp-contract=off", "-Wno-psabi", f"-I{ROOT / 'native'}"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no C++ compiler on the PATH")


def compile_with(compiler: str, *arguments: str | Path) -> None:
    command = [compiler, *FLAGS, *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def built(name: str, folder: Path, *flags: str) -> Path:
    """Return the program of an example."""
    program = folder / name
    sources = [ROOT / "examples" / f"{name}.cpp", ROOT / "native/core/variant_base.cpp"]
    compile_with(COMPILERS[0], *WARNINGS, *(flags or ("-O1",)), *sources, "-o", program)
    return program


# -- a model on a device that has never seen Python


def test_a_device_makes_a_model_and_leads_it_through_a_change_of_sensors(tmp_path):
    reports = [
        subprocess.run(
            [built("embedded", tmp_path, *flags)], check=True, capture_output=True, text=True
        ).stdout
        for flags in (["-O1"], ["-O0", "-DSF2EL_PORTABLE_LANES"])
    ]
    assert reports[0] == reports[1], "every build gives the same bits"
    said = {name: float(value) for name, value in re.findall(r"^(.*?) +([\d.]+)$", reports[0], re.MULTILINE)}
    assert said["the old sensors"] > 0.95
    assert said["the new sensors"] > said["the new sensors, from nothing"] + 0.02
    assert said["bytes in flash"] < 64 * 1024


# -- a model that Python saved


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return built("read_model", tmp_path_factory.mktemp("reader"))


def stream(names, count, seed, labels=("up", "down"), known=0.6, there=1.0):
    """Rows of sensors that all say something of the same two numbers."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        z = rng.normal(size=2)
        place = int(z[0] * z[1] > 0.0) if len(labels) == 2 else int(np.digitize(z[0], [-0.5, 0.5]))
        x = {
            name: float(z[i % 2] + 0.1 * i * z[1 - i % 2] + 0.1 * rng.normal())
            for i, name in enumerate(names)
            if i == 0 or rng.random() < there
        }
        yield x, labels[place] if rng.random() < known else None


def default(**more):
    return SF2EL(budget="32KiB", **more)


def swapped(model):
    for names, count, seed in (("abcd", 70, 1), ("abcdpqr", 20, 2), ("pqr", 30, 3)):
        for x, y in stream(names, count, seed):
            model.learn_one(x, y)
    return model


def learned(model, names, count=70, **how):
    for x, y in stream(names, count, 1, **how):
        model.learn_one(x, y)
    return model


KINDS = {
    "default": (lambda: learned(default(), "abcd"), "abcd", {}),
    "small": (lambda: learned(SF2EL(budget="2KiB"), "abcd"), "abcd", {}),
    "after a swap": (lambda: swapped(default()), "pqr", {}),
    "gaps": (lambda: learned(default(), "abcd", there=0.7), "abcd", {"there": 0.7}),
    "three labels": (lambda: learned(default(), "abc", labels=(7, 8, 9)), "abc", {"labels": (7, 8, 9)}),
    "quotes, numbered features": (
        lambda: learned(default(), [10, 2, 33], labels=('a"é', "b\\]")),
        [10, 2, 33],
        {"labels": ('a"é', "b\\]")},
    ),
    "true or false": (
        lambda: learned(default(), "ab", labels=(True, False)),
        "ab",
        {"labels": (True, False)},
    ),
    "paper": (lambda: swapped(SF2EL.paper(budget="8KiB", kernel=RBF(0.5))), "pqr", {}),
    "paper, fixed": (lambda: learned(SF2EL.paper(buffer_size=20), "abcd"), "abcd", {}),
}


def as_text(label):
    return "" if label is None else str(label).lower() if isinstance(label, bool) else str(label)


def csv(names, rows, labelled=True):
    lines = [[str(name) for name in names] + ["label"] * labelled]
    lines += [
        [repr(x[name]) if name in x else "" for name in names] + [as_text(y)] * labelled for x, y in rows
    ]
    return "".join(",".join(line) + "\n" for line in lines)


def asked(reader, model, text, folder):
    """Return what the program says to each row of a table, and the file that it writes."""
    before, after = folder / "model.sf2el", folder / "later.sf2el"
    model.save(before)
    done = subprocess.run(
        [reader, before, after], input=text.encode(), check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines(), after


@pytest.mark.parametrize("kind", KINDS)
def test_it_predicts_and_learns_as_python_does_bit_for_bit(kind, reader, tmp_path):
    make, names, how = KINDS[kind]
    model = make()
    rows = list(stream(names, 50, 9, **how))
    lines, after = asked(reader, model, csv(names, rows), tmp_path)
    for line, (x, y) in zip(lines, rows, strict=True):
        label, *numbers = line.rsplit(",", model._engine.state.outputs)
        expected = np.atleast_1d(model._engine.state.predict(x))
        assert [float(number) for number in numbers] == expected.tolist()
        assert label == as_text(model.predict_one(x))
        model.learn_one(x, y)
    assert after.read_bytes() == model.to_bytes()
    again = SF2EL.load(after)
    assert again.rows_seen == model.rows_seen and again.predict_one(x) == model.predict_one(x)


def test_a_table_without_labels_is_only_predicted(reader, tmp_path):
    model = learned(default(), "abcd")
    rows = list(stream("abcd", 5, 9))
    lines, after = asked(reader, model, csv("abcd", rows, labelled=False), tmp_path)
    assert [line.split(",")[0] for line in lines] == [model.predict_one(x) for x, _ in rows]
    assert after.read_bytes() == model.to_bytes()


def test_what_asks_for_a_decision_is_left_to_python(reader, tmp_path):
    """A row with a gap, new features and hundreds of rows: the device goes on, and Python decides afterwards."""
    model = learned(default(), "abcd", 100)
    rows = [*stream("abcd", 30, 5, there=0.5), *stream("abcdz", 100, 6), *stream("abcd", 300, 7)]
    lines, after = asked(reader, model, csv("abcdz", rows), tmp_path)
    right = [line.split(",")[0] == y for line, (_, y) in zip(lines, rows, strict=True) if y][-150:]
    assert np.mean(right) > 0.8
    again = SF2EL.load(after)
    assert again.rows_seen == 530
    for x, y in stream("abcd", 5, 8, there=0.5):
        again.learn_one(x, y)
    assert "first_gap" in [event.kind for event in again.events().last]
    assert again.memory_usage() <= again.budget


def test_what_it_cannot_read_it_refuses_in_one_sentence(reader, tmp_path):
    data = learned(default(), "ab").to_bytes()
    regressor = SF2ELRegressor(budget="8KiB")
    regressor.learn_one({"a": 1.0}, 2.0)
    weighed = learned(default(class_weight="balanced"), "ab").to_bytes()
    flipped = data[:900] + bytes([data[900] ^ 1]) + data[901:]
    path = tmp_path / "model.sf2el"
    for content in (b"", b"\0" * 40, data[:-1], data + b"\0", flipped, regressor.to_bytes(), weighed):
        path.write_bytes(content)
        done = subprocess.run(
            [reader, path, tmp_path / "later.sf2el"], input="", check=False, capture_output=True, text=True
        )
        assert done.returncode == 1 and not (tmp_path / "later.sf2el").exists()
        assert len(done.stderr.splitlines()) == 1 and done.stderr.endswith(".\n")


# -- the core


@pytest.mark.skipif(not shutil.which("nm"), reason="no nm on the PATH")
def test_the_core_takes_no_heap(tmp_path):
    compiled = tmp_path / "device.o"
    compile_with(COMPILERS[0], "-O2", "-c", ROOT / "docs/examples/device.cpp", "-o", compiled)
    listed = subprocess.run(["nm", "-u", str(compiled)], check=True, capture_output=True, text=True).stdout
    wanted = {line.split()[-1].lstrip("_").split("@")[0] for line in listed.splitlines() if line.strip()}
    assert "printf" in wanted | {name.removesuffix("_chk") for name in wanted}
    assert not wanted & {
        "malloc",
        "calloc",
        "realloc",
        "aligned_alloc",
        "posix_memalign",
        "free",
        "Znwm",
        "Znam",
    }


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("standard", ["-std=c++17", "-std=c++20"])
def test_the_core_alone_compiles_without_a_warning(compiler, standard, tmp_path):
    source = tmp_path / "core.cpp"
    source.write_text(
        '#include "core/core.hpp"\n'
        "template class sf2el::Learner<double>;\ntemplate class sf2el::Learner<float>;\n"
    )
    compile_with(compiler, standard, *WARNINGS, "-Wshadow", "-O1", "-c", source, "-o", tmp_path / "o")
    assert (tmp_path / "o").stat().st_size > 0
