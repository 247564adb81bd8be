"""Accuracy by bytes, and a budget that changes."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el import Learner
from sf2el.cli import main
from sf2el.datasets import load
from sf2el.paper.methods import run_methods
from sf2el.paper.settings import LEAST_BUFFER, LearnerSettings
from sf2el.reproduce import changing_budget, storage_runner
from sf2el.reproduce.readings import reading
from sf2el.reproduce.storage import Storage
from sf2el.reproduce.storage_design import PAPER, PLANNER, Design, Entry, Kept
from sf2el.streams import TwoSpaceStream, stream_for

DIMS = [(15, 10), (2, 3), (78, 72), (10, 7), (1, 1)]


@pytest.fixture(scope="module")
def swiss():
    return load("swiss")


def generated(n: int = 800) -> TwoSpaceStream:
    rng = np.random.default_rng(5)
    old = rng.normal(size=(n, 4))
    y = np.where(old[:, 0] * old[:, 1] > 0.0, 1.0, -1.0)
    new = old @ rng.normal(size=(4, 3))
    return TwoSpaceStream.cut(old, new, y=y, labelled=rng.random(n) < 0.5, overlap=10)


@pytest.mark.parametrize("dims", DIMS)
def test_no_entry_is_above_its_budget_and_one_more_row_would_be(dims):
    design = replace(Design.declared(), most_rows=10**6)
    seen = 0
    for entry in design.entries("x", dims, LearnerSettings(on_skip="project")):
        if entry.budget is None:
            assert entry.variant == PAPER
            continue
        seen += 1
        assert min(entry.rows) >= LEAST_BUFFER
        assert entry.nbytes <= entry.budget
        larger = replace(entry, rows=(entry.rows[0], entry.rows[1] + 1))
        if max(entry.rows) < 4096:
            assert larger.nbytes > entry.budget
    assert seen


@pytest.mark.parametrize("kept", Design.declared().variants.values(), ids=Design.declared().variants)
def test_counted_bytes_are_those_of_the_learner(kept):
    rows = kept.rows_within(7, 4096)
    settings = kept.applied(LearnerSettings())
    learner = Learner(settings, dim=7, buffer_size=rows, precision=kept.precision)
    assert learner.nbytes == kept.nbytes(7, rows) <= 4096 < kept.nbytes(7, rows + 1)


@pytest.mark.parametrize("dims", DIMS)
def test_the_planner_fits_wherever_any_variant_does(dims):
    design, base = Design.declared(), LearnerSettings(on_skip="project")
    for budget in design.budgets:
        planned = design.planned("x", dims, base, budget)
        fitted = [design.fitted("x", name, kept, dims, budget) for name, kept in design.variants.items()]
        assert (planned is not None) == any(entry is not None for entry in fitted)
        if planned is not None:
            assert planned.nbytes <= budget
            assert max(planned.rows) <= design.most_rows


def test_two_learners_hedged_are_sf2el(swiss):
    """Learners run apart and combined give what the eight methods' own code gives."""
    design, best = Design.declared(), reading("best")
    stream = stream_for(swiss, 3, design.label_rate, design.overlap)
    setup = best.setup(stream, "swiss", buffer_size=20, label_rate=design.label_rate)
    entry = Entry("swiss", PAPER, None, (Kept(), Kept()), (20, 20), (2, 3))
    tracks = [storage_runner.run_part(part, stream, setup) for part in entry.parts(3)]
    expected = run_methods(stream, setup, methods=["SF2EL"], seed=3)["SF2EL"]
    accuracy = float(np.mean(expected.correct(stream.y[stream.t1 :])))
    assert storage_runner.hedged_accuracy(stream, setup, best, tracks) == accuracy


def test_falls_are_found():
    def cell(budget: int, mean: float) -> dict[str, object]:
        return {"dataset": "d", "variant": PLANNER, "budget": budget, "accuracy": {"mean": mean}}

    cells = [cell(2048, 0.8), cell(4096, 0.79), cell(8192, 0.786), cell(16384, 0.9)]
    result = Storage(Design.declared(), reading("best"), {"d": None}, {}, cells, None)
    assert [(fall["from"], fall["to"]) for fall in result.falls()] == [(2048, 4096)]
    assert "d from 2 to 4 KiB" in result.verdict()


def test_a_changing_budget_is_never_exceeded():
    budgets = [32768, 4096, 65536, 6000]
    run = changing_budget.run_changing(generated(), budgets, chunk=20, window=100)
    assert all(used <= budget for used, budget in zip(run.nbytes, run.budget, strict=True))
    assert [part["budget"] for part in run.parts] == budgets
    assert list(dict.fromkeys(run.budget)) == budgets
    assert run.rounds[-1] == 800
    # Each budget is made use of, too.
    assert all(part["most_bytes"] > 0.5 * part["budget"] for part in run.parts)
    assert run.parts[2]["accuracy"] > 0.6


def test_the_future_changes_nothing():
    """Up to a round, a changing budget's numbers depend on no later row."""
    stream = generated()
    rng = np.random.default_rng(9)
    y, new = stream.y.copy(), stream.new.copy()
    y[600:] = -y[600:]
    new[-200:] = rng.normal(size=new[-200:].shape)
    sizes = {"chunk": 50, "window": 50}
    runs = [
        changing_budget.run_changing(s, [32768, 8192], **sizes)
        for s in (stream, replace(stream, y=y, new=new))
    ]
    known = sum(at <= 600 for at in runs[0].rounds)
    assert runs[0].accuracy[:known] == runs[1].accuracy[:known]
    assert runs[0].accuracy[known:] != runs[1].accuracy[known:]


SMALL = replace(Design.declared(), datasets=("swiss",), budgets=(2048, 16384), most_rows=40)


def test_the_number_of_threads_changes_nothing(swiss, tmp_path):
    texts = []
    for jobs in (1, 3):
        result = storage_runner.measure(SMALL, {"swiss": swiss}, reading("best"), runs=2, jobs=jobs)
        result.write(tmp_path)
        texts.append((tmp_path / "storage.json").read_bytes())
    assert texts[0] == texts[1]


def test_the_command_writes_everything(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(Design, "declared", classmethod(lambda cls: SMALL))
    arguments = ["reproduce", "storage", "--datasets", "swiss", "--runs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "storage" / "1-run"
    for name in ("bytes-swiss", "changing-budget"):
        assert (folder / "figures" / f"{name}.svg").stat().st_size > 10_000
        assert (folder / "figures" / f"{name}.png").stat().st_size > 10_000
    assert (folder / "index.html").read_text().count("<svg") == 2
    assert (folder / "storage.md").read_text().count("the planner: ") == 2
    content = json.loads((folder / "storage.json").read_text())
    cells = content["cells"]
    assert len(cells) == 2 * len(SMALL.variants) + 2 + len(SMALL.paper_buffers)
    assert all(cell["bytes"] <= cell["budget"] for cell in cells if cell["budget"])
    assert content["changing"]["dataset"] == "swiss"
    with (folder / "storage.csv").open() as lines:
        assert len(list(csv.DictReader(lines))) == len(cells)
    by_variant = {(cell["variant"], cell["budget"]): cell["accuracy"]["mean"] for cell in cells}
    assert by_variant["no matrix, float32", 2048] > by_variant["exact, float64", 2048] + 0.1


def test_the_command_refuses_the_other_reading():
    result = CliRunner().invoke(
        main, ["reproduce", "storage", "--datasets", "swiss", "--reading", "published"]
    )
    assert result.exit_code != 0
