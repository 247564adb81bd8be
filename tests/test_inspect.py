"""``sf2el inspect``: what a saved model holds, told in full or in short."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hostile import MAKERS, made

from sf2el import SF2EL
from sf2el.cli import main
from sf2el.memory.ladder import RUNGS


def inspected(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["inspect", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", MAKERS)
def test_everything_is_told_as_json(name, tmp_path):
    model = made(name)
    model.save(tmp_path / "m.sf2el")
    found = json.loads(inspected(str(tmp_path / "m.sf2el"), "--json"))
    assert found["kind"] == type(model).KIND
    assert found["strategy"]["name"] == ("paper" if "paper" in name else "bank")
    assert found["budget"] == model.budget
    parts = model.memory_usage(detail=True)
    told = {"total": model.memory_usage(), "parts": parts, "full_grown": parts.full_grown}
    assert found["memory"] == told
    assert found["rows"] == model.rows_seen
    assert found["file_bytes"] == len(model.to_bytes())
    assert found["risk"] == model.risk()
    events = model.events()
    assert found["events"]["total"] == events.total
    assert found["events"]["last"] == [
        {"row": e.row, "kind": e.kind, "certain": e.certain, "fields": e.fields, "text": e.text}
        for e in events.last
    ]
    if not model.rows_seen:
        assert found["spaces"] == [] == found["maps"]
        assert found["rung"] is None
        return
    if "paper" in name:
        assert found["rung"] is None
    else:
        assert found["rung"]["part"] == RUNGS[found["rung"]["place"]].part
    roles = [space["role"] for space in found["spaces"]]
    assert roles == sorted(roles, key=["recovered", "current", "incoming"].index)
    assert all(len(space["features"]) == space["size"] for space in found["spaces"])
    weights = {}
    for space in found["spaces"]:
        for expert in space["experts"]:
            assert 0 <= expert["held"] <= expert["most"] or not expert["most"]
            key = f"{space['role']} {expert['name']}"
            weights[key] = weights.get(key, 0.0) + expert["weight"]
    assert weights == pytest.approx(model.weights(detail=True))
    assert sum(weights.values()) == pytest.approx(1.0)
    experts = sum(expert["bytes"] for space in found["spaces"] for expert in space["experts"])
    assert 0 < experts <= found["memory"]["parts"]["learners"]
    assert sum(psi["bytes"] for psi in found["maps"]) <= found["memory"]["parts"]["maps"]


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_told_in_few_lines_too(name, tmp_path):
    model = made(name)
    model.save(tmp_path / "m.sf2el")
    lines = inspected(str(tmp_path / "m.sf2el")).splitlines()
    assert len(lines) < 70 and all(lines)
    assert lines[0].endswith(f"{len(model.to_bytes()):,} bytes")
    assert any(line.startswith("space") for line in lines) == (model.rows_seen > 0)
    assert sum(line.startswith("  expert") for line in lines) == len(model.risk())
    assert model.budget is None or f"{model.budget:,} bytes" in "\n".join(lines)


def test_the_two_sides_of_a_map_are_told(tmp_path):
    model = SF2EL(budget="16KiB")
    for t in range(90):
        x = {f"a{j}": float(t * (j + 2) % 7) for j in range(4)}
        if t >= 70:
            x |= {f"b{j}": float(t * (j + 3) % 5) for j in range(3)}
        model.learn_one(x, t % 2)
    model.save(tmp_path / "m.sf2el")
    found = json.loads(inspected(str(tmp_path / "m.sf2el"), "--json"))
    assert [space["role"] for space in found["spaces"]] == ["current", "incoming"]
    (psi,) = found["maps"]
    assert (psi["to"], psi["from_features"], psi["to_features"]) == (0, 3, 4)
    assert psi["role"] == "being fitted" and 0 < psi["rows"] <= 20
    assert "being fitted: 3 to 4 features" in inspected(str(tmp_path / "m.sf2el"))


def test_of_many_features_a_few_are_shown(tmp_path):
    model = SF2EL(budget="64KiB")
    model.learn_one({f"f{i:02}": 1.0 for i in range(40)}, "yes")
    model.save(tmp_path / "m.sf2el")
    text = inspected(str(tmp_path / "m.sf2el"))
    assert "f00, f01, f02, f03, f04, f05, f06, f07 and 32 more" in text


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
    path = tmp_path / "m.sf2el"
    if content is not None:
        path.write_bytes(content)
    done = CliRunner().invoke(main, ["inspect", str(path)])
    assert done.exit_code == 1
    assert told in done.output and "m.sf2el" in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert "Traceback" not in done.output
