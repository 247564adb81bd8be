"""The core without Python: it compiles alone and without warnings, and the example runs without a heap."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hostile import MAKERS, MUTATIONS, closed, made, opened, paper, rows

from sf2el import RBF, SF2EL, Linear
from sf2el.core import native_available
from sf2el.model.stage import NEVER, Stage

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


# -- a saved model, read without Python

READER = ROOT / "examples" / "read_model.cpp"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("reader") / "read_model"
    compile_with(COMPILERS[0], *WARNINGS, "-Wshadow", "-O2", str(READER), "-o", str(program))
    return program


def read_by(program: Path, path: Path, lines: list[str]) -> list[list[float]]:
    text = "\n".join(lines)
    done = subprocess.run(
        [str(program), str(path)], input=text, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return [[float(value) for value in line.split(",")] for line in done.stdout.splitlines()]


def wide_rows(count: int) -> list[tuple[dict[str, float], int]]:
    X = np.random.default_rng(3).normal(size=(count, 15))
    return [({f"a{j}": float(x) for j, x in enumerate(row)}, int(row[0] > 0.0)) for row in X]


SAVED = {
    "bank": (lambda: SF2EL(budget="16KiB"), rows(2)[:45], 2),
    "bank, true or false": (lambda: SF2EL(budget="16KiB"), [(x, bool(y)) for x, y in rows(2)[:45]], 2),
    "bank, swapped": (lambda: SF2EL(budget="16KiB"), rows(2)[:94], 2),
    "bank, all of it": (lambda: SF2EL(budget="64KiB"), rows(2)[:94], 2),
    "bank, in doubt": (lambda: SF2EL(budget="6KiB"), rows(2)[:77], 2),
    "bank, halves": (lambda: SF2EL(budget="3KiB"), rows(2)[:94], 2),
    "bank, factors": (lambda: SF2EL(budget="6KiB"), rows(2, width=30)[:94], 2),
    "bank, slopeless": (lambda: SF2EL(budget="64KiB"), rows(2, width=20)[:94], 2),
    "bank, slopeless halves": (lambda: SF2EL(budget="5KiB"), rows(2, width=16)[:94], 2),
    "bank, no room": (lambda: SF2EL(budget=1_100), wide_rows(60), 2),
    "bank, forgets": (lambda: SF2EL(budget="16KiB", forget=0.01), rows(2)[:100], 2),
    "bank, three labels": (lambda: SF2EL(budget="16KiB"), rows(3)[:100], 3),
    "paper": (lambda: paper(budget="4KiB"), rows(2)[:45], 2),
    "paper, swapped": (lambda: paper(budget="4KiB"), rows(2)[:90], 2),
    "paper, matrices": (lambda: paper(budget="64KiB"), rows(2)[:90], 2),
    "paper, fixed": (lambda: SF2EL.paper(buffer_size=20, label_rate=0.3), rows(2)[:90], 2),
    "paper, sum": (lambda: SF2EL.paper(buffer_size=9, kernel=RBF(0.5) + Linear(), eta=0.1), rows(2)[:90], 2),
}


def saved(name: str) -> SF2EL:
    make, stream, _ = SAVED[name]
    model = make()
    for x, y in stream:
        model.learn_one(x, y)
    return model


@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
@pytest.mark.parametrize("name", SAVED)
def test_a_saved_model_predicts_and_learns_without_python(name, reader, tmp_path, monkeypatch):
    monkeypatch.setenv("SF2EL_BACKEND", "native")
    model, kinds = saved(name), SAVED[name][2]
    path = tmp_path / "model.safetensors"
    model.save(path)
    names = model._stage.current.names
    rng = np.random.default_rng(5)
    probes = rng.normal(size=(60, len(names))).tolist()
    lines = [",".join(map(repr, row)) for row in probes]
    expected = [np.atleast_1d(model._output_one(dict(zip(names, row, strict=True)))) for row in probes]
    told = read_by(reader, path, lines)
    np.testing.assert_allclose(told, expected, rtol=1e-6, atol=1e-6)
    # Then every row is learned after it was predicted, a third of them without a label. Fitting the map anew
    # is left to Python, which here leaves it too.
    monkeypatch.setattr(Stage, "refit_at", lambda self, rows: NEVER)
    model._refit_at = NEVER
    labels = [None if rng.random() < 0.34 else int(rng.integers(kinds)) for _ in probes]
    lines = [f"{line},{'' if y is None else y}" for line, y in zip(lines, labels, strict=False)]
    expected = []
    for row, label in zip(probes, labels, strict=True):
        x = dict(zip(names, row, strict=True))
        expected.append(np.atleast_1d(model._output_one(x)))
        model.learn_one(x, label)
    told = read_by(reader, path, lines)
    np.testing.assert_allclose(told, expected, rtol=1e-6, atol=1e-6)
    assert not np.allclose(told[-1], told[0])


def test_the_reader_is_tried_on_every_kind_of_expert():
    names: set[str] = set()
    precisions, brief, ranks, slopeless, kept = set(), set(), set(), set(), set()
    tried = ("swapped", "all of it", "halves", "factors", "slopeless", "slopeless halves", "no room")
    for name in tried:
        model = saved(f"bank, {name}")
        posteriors = [
            seat for space in model._stage.spaces() for seat in space.seats if hasattr(seat, "posterior")
        ]
        slopeless |= {seat.precision for seat in posteriors if not seat.settings.slopes}
        halves = [seat for seat in posteriors if seat.precision == "float16" and seat.kernel]
        kept |= {seat.settings.keep_inverse for seat in halves}
        names |= set(model._stage.names())
        precisions |= {getattr(seat, "precision", None) for seat in model._stage.current.seats}
        brief |= {model._stage.psi.brief} if model._stage.psi is not None else set()
        ranks |= {model._stage.psi.rank} if model._stage.psi is not None else set()
    assert {"float32", "float16"} < precisions and brief == {True, False} and ranks == {0, 9}
    assert slopeless == {"float32", "float16"} and kept == {True, False}
    kinds_of_experts = {name.split()[-1] for name in names}
    assert kinds_of_experts == {"rbf", "linear", "paper", "logistic"}
    assert {"recovered paper", "current paper"} < names
    assert any(name.startswith("current white") for name in names)
    assert any(name.startswith("recovered even") for name in names)


@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
@pytest.mark.parametrize("make", [lambda: SF2EL(budget="16KiB"), lambda: paper(budget="4KiB")])
def test_a_model_saved_while_features_change_is_asked_as_if_they_stayed(make, reader, tmp_path):
    model = make()
    for x, y in rows(2)[:57]:
        model.learn_one(x, y)
    stage = model._stage
    assert stage.overlap is not None and stage.upcoming is not None
    model.save(tmp_path / "model.safetensors")
    names = stage.current.names
    probes = np.random.default_rng(5).normal(size=(20, len(names))).tolist()
    expected = [[model._output_one(dict(zip(names, row, strict=True)))] for row in probes]
    told = read_by(reader, tmp_path / "model.safetensors", [",".join(map(repr, row)) for row in probes])
    np.testing.assert_allclose(told, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("content", [None, b"", b"\0" * 40, b"\xff" * 64])
def test_the_reader_says_in_one_sentence_what_it_cannot_read(content, reader, tmp_path):
    path = tmp_path / "model.safetensors"
    if content is not None:
        path.write_bytes(content)
    done = subprocess.run(
        [str(reader), str(path)], input="", check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1


# -- files that are not what they were

FUZZ = int(os.environ.get("SF2EL_FUZZ", "240"))
"""Mutated files that the reader is tried on."""
SANITIZED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
# No block may be larger than what a small file may ask for, 64 MiB and 64 times itself.
STRICT = {"ASAN_OPTIONS": "max_allocation_size_mb=80:hard_rss_limit_mb=1000:detect_leaks=0"}


@pytest.fixture(scope="module")
def strict_reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader, compiled so that it ends with a report where it does what C++ does not define."""
    program = tmp_path_factory.mktemp("reader") / "strict"
    command = [COMPILERS[0], *FLAGS, *SANITIZED, str(READER), "-o", str(program)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    return program


def asked(program: Path, path: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), str(path)],
        input="\n".join(lines),
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        env=os.environ | STRICT,
    )


def sealed(data: bytes) -> bytes:
    """Return a file with the checksum of what it holds, where it holds enough for one."""
    names = {
        "F64": "float64",
        "F32": "float32",
        "F16": "float16",
        "U16": "uint16",
        "I16": "int16",
        "U8": "uint8",
        "I64": "int64",
    }
    try:
        length = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        text = header["__metadata__"]["sf2el"]
        found = crc32(text.encode())
        for name in sorted(set(header) - {"__metadata__"}):
            entry = header[name]
            start, stop = entry["data_offsets"]
            label = f"{name} {names[entry['dtype']]} {tuple(entry['shape'])}"
            found = crc32(body[start:stop], crc32(label.encode(), found))
        return closed(header, f'{{"checksum":{found},{text[1:]}', body)
    except (ValueError, TypeError, KeyError, AttributeError):
        return data


def refused(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether a file was refused in one sentence, the names of features aside; else it was read."""
    assert done.returncode in (0, 1), done.stderr
    last = done.stderr.splitlines()[-1] if done.returncode else ""
    assert "anitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    assert not done.returncode or last.endswith("."), done.stderr
    return done.returncode == 1


def test_a_bit_of_damage_anywhere_is_told_by_the_checksum(reader, tmp_path):
    data, path = made("bank, swapped").to_bytes(), tmp_path / "model.safetensors"
    start = 8 + int.from_bytes(data[:8], "little")
    for place in np.linspace(start, len(data) - 1, 40).astype(int).tolist():
        bit = 1 << place % 8
        path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        done = asked(reader, path, [])
        assert refused(done) and "damaged, says its checksum" in done.stderr
    header, content, body = opened(data)
    path.write_bytes(closed(header, content, body))
    assert "has no checksum" in asked(reader, path, []).stderr
    path.write_bytes(sealed(closed(header, content, body)))
    assert not refused(asked(reader, path, []))


def test_a_file_that_asks_for_much_or_is_nested_is_refused(strict_reader, tmp_path):
    header, content, body = opened(made("bank, swapped").to_bytes())
    path, text = tmp_path / "model.safetensors", json.dumps(content)
    deep = "[" * 300_000
    path.write_bytes(len(deep).to_bytes(8, "little") + deep.encode())
    assert "nested too deeply" in asked(strict_reader, path, []).stderr
    path.write_bytes(closed(header, deep, body))
    assert "nested too deeply" in asked(strict_reader, path, []).stderr
    for key, value in itertools.product(
        ("dim", "size", "outputs", "new_dim", "rows"), (-1, 0, 60_000, 1 << 31)
    ):
        changed = re.sub(rf'"{key}": \d+', f'"{key}": {value}', text)
        if changed == text:
            continue
        path.write_bytes(sealed(closed(header, changed, body)))
        assert refused(asked(strict_reader, path, [])), (key, value)


@pytest.mark.parametrize("rank", [-1, 0, 8, 10, 31, 60_000, 1 << 31, 1 << 40])
def test_factors_of_another_number_are_refused(rank, strict_reader, tmp_path):
    header, content, body = opened(made("bank, factors").to_bytes())
    path = tmp_path / "model.safetensors"
    path.write_bytes(sealed(closed(header, content, body)))
    assert not refused(asked(strict_reader, path, []))
    content["stage"]["psi"]["rank"] = rank
    path.write_bytes(sealed(closed(header, content, body)))
    assert refused(asked(strict_reader, path, []))


@pytest.mark.parametrize(
    "more", [{"matched": 1}, {"matched": "true"}, {"matched": None}, {"slopes": []}, {"of tomorrow": 1}]
)
def test_a_switch_that_is_none_and_a_setting_of_a_newer_version_are_refused(more, strict_reader, tmp_path):
    header, content, body = opened(made("bank, factors").to_bytes())
    path = tmp_path / "model.safetensors"
    seat = next(seat for seat in content["stage"]["current"]["seats"] if "settings" in seat)
    seat["settings"] |= more
    path.write_bytes(sealed(closed(header, content, body)))
    assert refused(asked(strict_reader, path, []))
    with pytest.raises(ValueError, match="not a whole sf2el model"):
        SF2EL.from_bytes(path.read_bytes())


def test_no_file_makes_the_reader_leave_its_memory(strict_reader, tmp_path):
    path, rng, told = tmp_path / "model.safetensors", np.random.default_rng(11), []
    models = [made(name) for name in MAKERS if name not in ("regressor", "nothing")]
    models += [saved(name) for name in SAVED]
    for number in range(FUZZ):
        model = models[int(rng.integers(len(models)))]
        data = MUTATIONS[number % len(MUTATIONS)](model.to_bytes(), rng)
        path.write_bytes(sealed(data))
        values = ",".join(["0.5"] * len(model._stage.current.names))
        lines = [values, *[f"{values},{label}" for label in ("", "0", "1", "2") for _ in range(3)]]
        done = asked(strict_reader, path, lines)
        if refused(done):
            told.append(done.stderr.splitlines()[-1])
    # The checks behind the checksum were met, too.
    assert len(told) < FUZZ and len(set(told)) > 10
    assert sum("checksum" in sentence for sentence in told) < 0.2 * FUZZ
