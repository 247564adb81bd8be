"""``sf2el inspect``: what a saved model holds, told in full or in short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hostile import MAKERS, made

from sf2el.cli import main

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.safetensors"))


def inspected(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["inspect", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", MAKERS)
def test_everything_is_told_as_json(name, tmp_path):
    model = made(name)
    model.save(tmp_path / "m.safetensors")
    found = json.loads(inspected(str(tmp_path / "m.safetensors"), "--json"))
    assert found["format"] == 2 and found["kind"] == type(model).KIND
    assert found["budget"] == model._budget
    parts = model.memory_usage(detail=True)
    told = {"total": model.memory_usage(), "parts": parts, "full_grown": parts.full_grown}
    assert found["memory"] == told
    assert found["rows"] == model._rows_seen
    assert found["file_bytes"] == len(model.to_bytes())
    assert found["events"]["total"] == model.events().total
    if model._stage is None:
        assert found["spaces"] == [] == found["maps"]
        return
    current = found["spaces"][0]
    assert current["role"] == "current" and current["features"] == list(model._stage.current.names)
    weights = [e["weight"] for space in found["spaces"] for e in space["experts"] if e["weight"] is not None]
    assert sum(weights) == pytest.approx(1.0)
    assert len(weights) == len(model.weights(detail=True))
    told = sum(expert["bytes"] for space in found["spaces"] for expert in space["experts"])
    assert told == found["memory"]["parts"]["learners"]
    assert sum(psi["bytes"] for psi in found["maps"]) == found["memory"]["parts"]["maps"]


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_told_in_few_lines_too(name, tmp_path):
    model = made(name)
    model.save(tmp_path / "m.safetensors")
    lines = inspected(str(tmp_path / "m.safetensors")).splitlines()
    assert len(lines) < 50 and all(lines)
    assert lines[0].endswith("format 2")
    if model._stage is not None:
        names = ", ".join(model._stage.current.names[:8])
        assert any(line.startswith("space") and f"({names}" in line for line in lines)
    assert model._budget is None or f"{model._budget:,} bytes" in "\n".join(lines)


def test_of_many_features_a_few_are_shown(tmp_path):
    from sf2el import SF2EL

    model = SF2EL(budget="64KiB")
    model.learn_one({f"f{i:02}": 1.0 for i in range(40)}, "yes")
    model.save(tmp_path / "m.safetensors")
    text = inspected(str(tmp_path / "m.safetensors"))
    assert "f00, f01, f02, f03, f04, f05, f06, f07 and 32 more" in text


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_files_of_every_version_are_read(path):
    assert f"format {path.stem[1]}" in inspected(str(path))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such file"),
        (b"", "not a whole sf2el model"),
        (b"hello there, this is a text", "not a whole sf2el model"),
        (made("bank").to_bytes()[:-5], "not a whole sf2el model"),
    ],
)
def test_errors_are_one_sentence(content, told, tmp_path):
    path = tmp_path / "m.safetensors"
    if content is not None:
        path.write_bytes(content)
    done = CliRunner().invoke(main, ["inspect", str(path)])
    assert done.exit_code == 1
    assert told in done.output and "m.safetensors" in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert "Traceback" not in done.output
