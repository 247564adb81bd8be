"""The study of the default model: its units, its statistics, its baselines, and the command."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el.cli import main
from sf2el.datasets import Dataset, load
from sf2el.paper.methods import METHODS
from sf2el.report.default_page import default_page
from sf2el.reproduce import default_baselines, default_few, default_runner, default_study
from sf2el.reproduce.default_baselines import (
    LOGISTIC,
    RIVER,
    refit_rounds,
    river_says,
    run_refit,
    run_river,
    version_of,
)
from sf2el.reproduce.default_design import KIB, SLOW, Design, kinds_here
from sf2el.reproduce.default_docs import completed, filled
from sf2el.reproduce.default_fesl import chosen
from sf2el.reproduce.default_few import FEW_LABELS, FewLabels, model_says, run_few_labels
from sf2el.reproduce.default_figures import against_best, drawings
from sf2el.reproduce.default_runner import UnitStore, run_units
from sf2el.reproduce.default_study import CEILING, FESL, OURS, PAPER, Study, run_study
from sf2el.reproduce.default_tables import BLOCKS, NOT_RUN, TITLES, write_study
from sf2el.reproduce.default_units import REFUSED, Unit, run_default, run_unit, units_of
from sf2el.reproduce.drift import drifting, run_forgetting
from sf2el.reproduce.fesl import Fesl, hedged, scaled_online
from sf2el.streams import TwoSpaceStream, stream_for

DECLARED = Design.declared()
SMALL = replace(
    DECLARED,
    datasets=("swiss",),
    label_rates=(0.3, 0.02),
    slow_rates=(0.02,),
    budgets=(8 * KIB, 64 * KIB),
    fesl_by_rate={"swiss": DECLARED.fesl_by_rate["swiss"][:2]},
    drift=replace(DECLARED.drift, streams=("stationary", "abrupt"), rounds=600, label_rates=(1.0,)),
)


@pytest.fixture(scope="module")
def swiss():
    return {"swiss": load("swiss")}


@pytest.fixture(scope="module")
def small(swiss):
    return run_study(SMALL, swiss, runs=2)


# -- what is declared


def test_goals_are_declared_for_every_dataset():
    assert len(DECLARED.datasets) == 6
    for rate, goals in DECLARED.goals.accuracy.items():
        assert rate in DECLARED.label_rates
        assert tuple(goals) == DECLARED.datasets
    assert DECLARED.budget in DECLARED.budgets
    assert set(DECLARED.goals.by_budget) <= set(DECLARED.budgets)
    assert all(len(steps) == len(DECLARED.label_rates) for steps in DECLARED.fesl_by_rate.values())


def test_no_seed_of_the_study_was_used_for_choosing():
    kinds = ("default", "paper", "fesl", *SLOW)
    units = units_of(DECLARED, None, kinds)
    assert min(unit.seed for unit in units) == 200
    runs = {(u.kind, u.dataset): 0 for u in units}
    for unit in units:
        runs[unit.kind, unit.dataset] += unit.label_rate == 0.3
    assert runs["default", "swiss"] == runs["paper", "swiss"] == runs["fesl", "swiss"] == 20
    assert runs["default", "magic04"] == 5
    assert all(0 < runs[kind, name] <= 5 for kind in SLOW for name in DECLARED.datasets)
    few = units_of(DECLARED, None, (FEW_LABELS,))
    assert {unit.dataset for unit in few} == set(DECLARED.datasets)
    assert {unit.seed for unit in few if unit.dataset == "magic04"} == set(range(200, 300))
    assert len(units_of(DECLARED, 2, (FEW_LABELS,))) == 2 * 6


# -- baselines


def mirrored(n: int = 600, rate: float = 0.3) -> TwoSpaceStream:
    """A linear concept whose new features are a rotation of the old."""
    rng = np.random.default_rng(3)
    old = rng.normal(size=(n, 4)) * [1.0, 5.0, 0.2, 1.0] + 3.0
    y = np.where((old[:, 0] - 3.0) + (old[:, 1] - 3.0) / 5 > 0.0, 1.0, -1.0)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return TwoSpaceStream.cut(old, old @ rotation, y=y, labelled=rng.random(n) < rate, overlap=10)


def test_fesl_finds_a_linear_concept_and_keeps_it_over_the_swap():
    stream = mirrored(rate=0.1)
    right = (Fesl(step=3.0, decay="root").run(stream) >= 0.5) == (stream.y[stream.t1 :] > 0.0)
    assert np.mean(right) > 0.85
    assert np.mean(right[:30]) > 0.8  # before a label or two of the new space could have taught it
    # Without labels before the swap it cannot know that early.
    blind = replace(stream, labelled=stream.labelled & (np.arange(600) >= stream.t1))
    early = (Fesl(step=3.0, decay="root").run(blind) >= 0.5) == (blind.y[blind.t1 :] > 0.0)
    assert np.mean(early[:30]) < np.mean(right[:30])


def changed_after(stream: TwoSpaceStream, at: int) -> TwoSpaceStream:
    """The same stream with other rows and labels from this round after the swap on."""
    new, y = stream.new.copy(), stream.y.copy()
    new[stream.overlap + at :] = np.random.default_rng(0).normal(size=new[stream.overlap + at :].shape)
    y[stream.t1 + at :] *= -1.0
    return replace(stream, new=new, y=y)


def test_fesl_looks_at_no_later_row():
    stream = mirrored()
    whole, other = (Fesl(step=1.0).run(s) for s in (stream, changed_after(stream, 100)))
    assert np.array_equal(whole[:100], other[:100])
    assert not np.array_equal(whole[100:], other[100:])


def test_online_scaling_is_that_of_the_rows_so_far():
    rows = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e-3, 1e3] + [0.0, 5.0, -2e3]
    scaled = scaled_online(rows)
    for t in (1, 7, 49):
        spread = rows[: t + 1].std(axis=0)
        assert np.allclose(scaled[t], (rows[t] - rows[: t + 1].mean(axis=0)) / spread, atol=1e-5)


def test_the_hedge_follows_the_better_one_and_only_labels_move_it():
    labels = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    good, bad = np.where(labels > 0, 0.9, 0.1), np.full(40, 0.5)
    mixed = hedged(np.column_stack([bad, good]), labels)
    assert mixed[0] == pytest.approx(0.7)
    assert np.abs(mixed[-1] - good[-1]) < 1e-3
    untold = hedged(np.column_stack([bad, good]), np.full(40, np.nan))
    assert np.allclose(untold, (good + bad) / 2)


def test_refits_keep_every_label_and_look_at_no_later_one():
    pytest.importorskip("sklearn")
    stream = mirrored(240, rate=0.5)
    said = run_refit(stream, growth=1.0, seed=0)
    other = run_refit(changed_after(stream, 60), growth=1.0, seed=0)
    y = stream.y[stream.t1 :]
    assert np.mean(said["refit logistic"] == y) > 0.8
    for name, values in said.items():
        assert np.array_equal(values[:60], other[name][:60]), name
        assert set(np.unique(values)) <= {-1.0, 1.0}


def test_refits_come_with_every_label_at_first_and_then_more_rarely():
    labelled = np.random.default_rng(0).random(5000) < 0.3
    rounds = refit_rounds(labelled, 0.2)
    assert rounds[:5] == np.flatnonzero(labelled)[:5].tolist()
    counts = np.cumsum(labelled)[rounds]
    assert np.all(counts[1:] <= np.maximum(counts[:-1] + 1, np.ceil(1.2 * counts[:-1])))


@pytest.mark.parametrize("name", RIVER)
def test_river_learns_from_revealed_labels_after_the_swap_only(name):
    pytest.importorskip("river")
    stream = mirrored(400, rate=0.5)
    said = run_river(name, stream, seed=1)
    assert np.mean(said == stream.y[stream.t1 :]) > 0.65
    hidden = replace(
        stream,
        old=stream.old * 0.0,
        y=np.where(stream.labelled & (np.arange(400) >= stream.t1), stream.y, -stream.y),
    )
    assert np.array_equal(run_river(name, hidden, seed=1), said)


@pytest.mark.parametrize("rate", [0.05, 0.02])
def test_the_declared_choice_for_fesl_is_what_the_choice_finds(swiss, rate):
    declared = DECLARED.fesl_by_rate["swiss"][DECLARED.label_rates.index(rate)]
    assert chosen(swiss["swiss"], rate) == declared


# -- the model, and concepts that drift


def test_the_model_is_run_as_a_user_would_and_looks_at_no_later_row(swiss):
    stream = stream_for(swiss["swiss"], 200, 0.3, 10)
    outcome = run_default(stream, 64 * KIB, 200)
    assert outcome["accuracy"] > 0.95
    assert outcome["bytes"] <= 64 * KIB
    # Labels that are not revealed change the score but nothing that the model does.
    hidden = replace(stream, y=np.where(stream.labelled, stream.y, -stream.y))
    assert run_default(hidden, 64 * KIB, 200)["bytes"] == outcome["bytes"]
    told = float(np.mean(stream.labelled[stream.t1 :]))
    assert run_default(hidden, 64 * KIB, 200)["accuracy"] < told + 0.05


def test_a_budget_that_is_too_small_is_reported_not_run(swiss):
    outcome = run_default(stream_for(swiss["swiss"], 200, 0.3, 10), 300, 200)
    assert list(outcome) == [REFUSED]
    assert "budget" in outcome[REFUSED]


def test_drifting_streams_differ_only_in_their_concept():
    drift = DECLARED.drift
    streams = {kind: drifting(drift, kind, label_rate=0.3, seed=1) for kind in drift.streams}
    still = streams["stationary"]
    for stream in streams.values():
        assert np.array_equal(stream.rows, still.rows)
        assert np.array_equal(stream.labelled, still.labelled)
    part = drift.rounds // (drift.jumps + 1)
    same = streams["abrupt"].y == still.y
    assert np.all(same[:part])
    assert 0.3 < np.mean(same[part + 1 :]) < 0.7
    turned = np.mean((streams["gradual"].y == still.y).reshape(8, -1), axis=1)
    assert turned[0] > 0.9
    assert turned[-1] < 0.3
    assert np.all(np.diff(turned) < 0.05)


def test_forgetting_pays_after_a_jump_and_costs_where_nothing_drifts():
    # The bank has an expert that forgets: a rate for all experts adds little, and only where labels are few.
    drift = replace(DECLARED.drift, rounds=2400)
    gains = {"stationary": [], "abrupt": []}
    for kind, found in gains.items():
        for seed in (5, 6, 7):
            stream = drifting(drift, kind, label_rate=0.3, seed=seed)
            never, some = (run_forgetting(stream, forget, 32 * KIB, seed) for forget in (0.0, 0.003))
            found.append(some - never)
    assert np.mean(gains["abrupt"]) > 0.003
    assert np.mean(gains["stationary"]) < 0.005


# -- few labels

PARTS = {"old": {"accuracy", "logistic"}, "new": {"accuracy", "logistic"}}


def toy(n: int = 500) -> Dataset:
    """Two classes that are apart in the old space, on other scales; the new space tells nothing."""
    rng = np.random.default_rng(7)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    old = (rng.normal(size=(n, 3)) + 3.0 * y[:, None]) * [1.0, 40.0, 0.01] + [0.0, 900.0, 5.0]
    return Dataset(name="toy", old=old, new=rng.normal(size=(n, 2)), y=y, description="", source="")


def test_a_run_with_few_labels_ends_with_the_eleventh():
    few = DECLARED.few_labels
    for seed in range(200, 220):
        order, labelled = few.draw(2000, seed)
        assert len(order) == len(labelled) == len(set(order)) < few.rows
        assert labelled.sum() == 11
        assert labelled[-1]
        # Not before the third label, and then every row up to the last.
        third = np.flatnonzero(labelled)[2]
        assert np.array_equal(few.scored(labelled), np.arange(len(order)) > third)
    # A stream too short for eleven labels is run to its end.
    short, labelled = few.draw(50, 200)
    assert sorted(short) == list(range(50))
    assert labelled.sum() < 11


def test_the_rows_scored_are_those_after_the_third_label():
    few = FewLabels(rows=12, label_rate=1.0, least=3, most=10)
    labelled = np.array([0, 1, 1, 0, 0, 1, 0, 0, 1, 0], dtype=bool)
    assert np.flatnonzero(few.scored(labelled)).tolist() == [6, 7, 8, 9]
    narrow = replace(few, least=2, most=3)
    assert np.flatnonzero(narrow.scored(labelled)).tolist() == [3, 4, 5, 6, 7, 8]


def test_both_are_scored_on_the_same_rows(monkeypatch):
    """All rows labelled: eleven are run, and the last eight of them count."""
    data, few = toy(), FewLabels(rows=400, label_rate=1.0, least=3, most=10)
    rows = np.random.default_rng(204).permutation(500)[3:11]
    given = []

    def always(rows, y, labelled, *, budget, seed):
        given.append((rows.shape, int(labelled.sum()), budget, seed))
        return np.ones(len(rows))

    monkeypatch.setattr(default_few, "model_says", always)
    monkeypatch.setattr(default_few, "river_says", lambda name, rows, y, labelled, seed: -np.ones(len(rows)))
    found = run_few_labels(few, data, budget=4 * KIB, seed=204)
    positive = float(np.mean(data.y[rows] > 0.0))
    assert positive not in (0.0, 0.5, 1.0)
    assert found == {space: {"accuracy": positive, "logistic": 1.0 - positive} for space in PARTS}
    assert given == [((11, 3), 11, 4 * KIB, 204), ((11, 2), 11, 4 * KIB, 204)]


def test_the_unit_with_few_labels_tells_a_problem_that_can_be_learned_from_one_that_cannot():
    pytest.importorskip("river")
    data = toy()
    runs = [run_unit(Unit(FEW_LABELS, "toy", 0.1, seed), data, DECLARED) for seed in range(200, 206)]
    assert all({space: set(one) for space, one in run.items()} == PARTS for run in runs)
    for who in ("accuracy", "logistic"):
        assert np.mean([run["old"][who] for run in runs]) > 0.9
        assert 0.3 < np.mean([run["new"][who] for run in runs]) < 0.7


def test_with_few_labels_only_those_revealed_are_told():
    pytest.importorskip("river")
    data = toy()
    order, labelled = DECLARED.few_labels.draw(500, 201)
    rows, y = data.old[order], data.y[order]
    for says in (
        lambda y: model_says(rows, y, labelled, budget=64 * KIB, seed=201),
        lambda y: river_says(LOGISTIC, rows, y, labelled, 201),
    ):
        said = says(y)
        assert np.array_equal(says(np.where(labelled, y, -y)), said)
        assert not np.array_equal(says(-y), said)


def test_the_scaler_of_logistic_regression_learns_every_row_once_and_first():
    linear_model = pytest.importorskip("river.linear_model")
    data = toy()
    order, labelled = DECLARED.few_labels.draw(500, 203)
    rows, y = data.new[order], data.y[order]
    model, expected = linear_model.LogisticRegression(), []
    for values, label, told in zip(scaled_online(rows), y, labelled, strict=True):
        row = dict(enumerate(values))
        expected.append(1.0 if model.predict_one(row) else -1.0)
        if told:
            model.learn_one(row, label > 0.0)
    scored = DECLARED.few_labels.scored(labelled)
    said = river_says(LOGISTIC, rows, y, labelled, 203)
    assert np.array_equal(said[scored], np.array(expected)[scored])
    assert set(said[scored]) == {-1.0, 1.0}


def few_study(gaps: dict[str, list[float]]) -> Study:
    """A study of one dataset with these differences to logistic regression, by space."""
    results = {
        Unit(FEW_LABELS, "swiss", 0.1, 200 + run): {
            space: {"accuracy": 0.6 + own[run], "logistic": 0.6} for space, own in gaps.items()
        }
        for run in range(len(gaps["old"]))
    }
    return Study(SMALL, {"swiss": load("swiss")}, results, {})


def test_behind_and_ahead_are_by_more_than_two_standard_errors():
    spread = np.array([-0.01, 0.0, 0.01])
    error = 0.01 / np.sqrt(3)
    for shift, behind, ahead in ((-2.1, 1, 0), (-1.9, 0, 0), (1.9, 0, 0), (2.1, 0, 1)):
        found = few_study({"old": [*(shift * error + spread)], "new": [0.01, -0.01, 0.0]})
        old, new = found.few_labels()["problems"]
        assert (old["behind"], old["ahead"]) == (bool(behind), bool(ahead))
        assert not (new["behind"] or new["ahead"])
        assert old["mean"] == pytest.approx(shift * error, abs=1e-6)
        assert old["standard_error"] == pytest.approx(error, abs=1e-6)
        assert old["low"] < old["mean"] < old["high"]
        text = BLOCKS["few-labels"](found.content())
        assert f"on {behind} of 2 problems" in text
        assert f"more than 2 on {ahead};" in text
        assert ("BEHIND" in text) is bool(behind)
    (one, _) = few_study({"old": [-0.3], "new": [0.3]}).few_labels()["problems"]
    assert (one["behind"], one["low"]) == (False, None)  # a single run tells nothing


def test_the_mean_over_problems_is_taken_run_by_run():
    mean = few_study({"old": [0.02, -0.02, 0.05], "new": [0.0, 0.04, -0.03]}).few_labels()["mean"]
    assert mean["mean"] == pytest.approx(0.01)
    assert mean["standard_error"] == pytest.approx(0.0, abs=1e-6)
    assert mean["accuracy"] == pytest.approx(0.61)
    assert mean["runs"] == 3


# -- statistics


def study_of(values: dict[str, list[float]], design: Design = SMALL) -> Study:
    """A study of one dataset and label rate with these accuracies, by method."""
    kinds = {OURS: "default", FESL: "fesl", **dict.fromkeys(METHODS, "paper")}
    results: dict[Unit, dict[str, dict[str, float]]] = {}
    for method, scores in values.items():
        for seed, score in enumerate(scores, start=200):
            name = "64" if method == OURS else method
            outcome = {"accuracy": score, "balanced_accuracy": score, "bytes": 1000}
            results.setdefault(Unit(kinds[method], "swiss", 0.3, seed), {})[name] = outcome
    return Study(design, {"swiss": load("swiss")}, results, {})


def test_a_goal_is_reached_where_mean_and_one_standard_error_reach_it():
    goal = SMALL.goals.accuracy[0.3]["swiss"]
    spread = np.array([-0.01, 0.0, 0.01])
    error = 0.01 / np.sqrt(3)
    for shift, holds in ((-0.9 * error, True), (-1.1 * error, False), (0.02, True)):
        (row,) = study_of({OURS: list(goal + shift + spread)}).goals()
        assert row["holds"] is holds
        assert row["standard_error"] == pytest.approx(error, abs=1e-6)


def test_a_missed_goal_is_named_as_one():
    scores = {OURS: [0.80, 0.82, 0.81], "SF2EL": [0.9, 0.92, 0.91], FESL: [0.7, 0.7, 0.7]}
    content = study_of(scores).content()
    goal = f"{SMALL.goals.accuracy[0.3]['swiss']:.3f}".removeprefix("0")
    assert f"|  | goal | {goal} (missed) |" in BLOCKS["accuracy"](content)
    said = BLOCKS["verdict"](content)
    assert "0 of 1 goals for the accuracy are reached" in said
    assert f"missed on swiss at a label rate of 0.3: .810 ± 0.0058, goal {goal}" in said
    assert "missed on swiss at a label rate of 0.3 against SF2EL (paper): -.1000" in said
    assert "MISSED" in BLOCKS["differences"](content)
    reached = study_of({OURS: [1.0, 1.0], FESL: [0.7, 0.7]}).content()
    for name in ("accuracy", "verdict", "differences"):
        assert "missed" not in BLOCKS[name](reached).lower()


def test_the_best_other_is_the_best_mean_and_limits_are_each_ones_own():
    scores = {OURS: [0.80, 0.82], "NOGD": [0.7, 0.7], "SF2EL": [0.81, 0.82], FESL: [0.803, 0.823]}
    study = study_of(scores)
    (best,) = study.against_best()
    assert (best["other"], best["method"], best["holds"]) == (PAPER, "SF2EL (paper)", True)
    assert best["mean"] == pytest.approx(-0.005)
    tighter = replace(SMALL, goals=replace(SMALL.goals, to_best=-0.004))
    assert not study_of(scores, tighter).against_best()[0]["holds"]
    # A wider limit against the paper's methods leaves that against FESL-c as it is.
    wider = replace(tighter, goals=replace(tighter.goals, to_paper={"swiss": -0.01}))
    assert study_of(scores, wider).against_best()[0]["holds"]
    worse = scores | {FESL: [0.806, 0.826]}
    assert not study_of(worse, wider).against_best()[0]["holds"]


def test_differences_are_paired_and_losses_are_all_named():
    study = study_of({OURS: [0.5, 0.9, 0.7], FESL: [0.52, 0.92, 0.72], "NOGD": [0.9]})
    rows = {row["other"]: row for row in study.differences()}
    assert rows[FESL]["mean"] == pytest.approx(-0.02)
    assert rows[FESL]["clear"]
    assert rows[PAPER]["runs"] == 1
    assert rows[PAPER]["mean"] == pytest.approx(-0.4)
    assert rows[PAPER]["low"] is None
    assert not rows[PAPER]["clear"]
    assert [row["other"] for row in study.losses()] == [PAPER, FESL]


# -- running it


def test_the_small_study_has_every_part(small):
    content = small.content()
    methods = {cell["method"] for cell in content["cells"]}
    assert {OURS, FESL, *(f"{name} (paper)" for name in METHODS)} <= methods
    assert "SF2EL" not in methods  # the paper's, or the model?
    assert {cell["budget"] for cell in content["cells"] if cell["method"] == OURS} == set(SMALL.budgets)
    full = [row for row in content["budgets"] if row["budget"] == SMALL.budget]
    assert full[0]["mean"] == 0.0
    assert {row["label_rate"] for row in content["against_best"]} == {0.3, 0.02}
    assert all(row["gain"]["mean"] == 0.0 for row in content["drift"] if row["forget"] == 0.0)
    if not small.missing:
        assert {row["other"] for row in content["differences"]} >= {*RIVER, CEILING}
        problems = content["few_labels"]["problems"]
        assert [(row["dataset"], row["space"], row["runs"]) for row in problems] == [
            ("swiss", "old", 2),
            ("swiss", "new", 2),
        ]
        assert content["protocol"]["seeds"][FEW_LABELS] == {"swiss": [200, 201]}


def test_finished_units_are_not_run_again_and_a_torn_file_is(swiss, tmp_path, monkeypatch):
    units = units_of(replace(SMALL, label_rates=(0.3,)), 2, ("default", "fesl"))
    first = run_units(units, swiss, SMALL, store=UnitStore(tmp_path, SMALL, swiss))
    ran = []

    def counted(unit, *rest):
        ran.append(unit)
        return run_unit(unit, *rest)

    monkeypatch.setattr(default_runner, "run_unit", counted)
    assert run_units(units, swiss, SMALL, store=UnitStore(tmp_path, SMALL, swiss)) == first
    assert ran == []
    torn = sorted(tmp_path.glob("fesl/*.json"))[0]
    torn.write_text('{"FESL-c": {"accu')
    assert run_units(units, swiss, SMALL, store=UnitStore(tmp_path, SMALL, swiss)) == first
    assert len(ran) == 1
    # Another budget is another computation, and FESL-c has none.
    other = replace(SMALL, budgets=(64 * KIB,))
    run_units(units, swiss, other, store=UnitStore(tmp_path, other, swiss))
    assert [unit.kind for unit in ran[1:]] == ["default", "default"]
    # So is another model.
    monkeypatch.setattr(default_runner, "_code", lambda kind: f"new {kind}" if kind == "default" else "old")
    run_units(units, swiss, SMALL, store=UnitStore(tmp_path, SMALL, swiss))
    assert [unit.kind for unit in ran[3:]].count("default") == 2


def test_the_number_of_processes_changes_nothing(swiss, tmp_path):
    texts = []
    kinds = ("default", "paper", "fesl", "drift")
    for jobs in (1, 2):
        units = units_of(SMALL, 2, kinds)
        results = run_units(units, swiss, SMALL, jobs=jobs)
        write_study(tmp_path, Study(SMALL, swiss, results, {}).content())
        texts.append((tmp_path / "default.json").read_bytes())
    assert texts[0] == texts[1]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_killed_it_leaves_no_worker_behind_and_what_it_finished(swiss, tmp_path):
    command = [sys.executable, "-m", "sf2el", "reproduce", "default", "--datasets", "swiss", "--jobs", "2"]
    run = subprocess.Popen([*command, "--out", str(tmp_path)], stderr=subprocess.DEVNULL)
    folder = tmp_path / "default" / "units"
    workers: set[int] = set()
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not (len(workers) >= 2 and any(folder.rglob("*.json"))):
            assert run.poll() is None
            children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text()
            workers |= {int(child) for child in children.split()}
            time.sleep(0.05)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert len(workers) >= 2
    end = time.monotonic() + 10
    while time.monotonic() < end and any(map(alive, workers)):
        time.sleep(0.05)
    assert not any(map(alive, workers))
    files = [path for path in folder.rglob("*.json") if not path.name.startswith(".")]
    assert files
    for path in files:
        json.loads(path.read_text())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_without_the_optional_packages_their_rows_are_left_out(swiss, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for module in (default_baselines, default_study.kinds_here.__globals__):
        target = module if isinstance(module, dict) else vars(module)
        monkeypatch.setitem(target, "version_of", lambda package: None)
    kinds, missing = kinds_here()
    assert set(missing) == {"river", "scikit-learn"}
    assert not set(kinds) & set(SLOW)
    small = replace(SMALL, label_rates=(0.3,), drift=replace(SMALL.drift, streams=()))
    content = run_study(small, swiss, runs=1).content()
    assert {row["other"] for row in content["differences"]} == {PAPER, FESL, "FESL-c by rate"}
    assert "river" in BLOCKS["left-out"](content)
    assert content["few_labels"] == {"problems": [], "mean": None}
    assert BLOCKS["few-labels"](content) == NOT_RUN
    assert "logistic" not in BLOCKS["verdict"](content)
    page = default_page(content, drawings(content), version="0", variant="wide", seconds=0.0)
    assert NOT_RUN in page.write(tmp_path / "index.html").read_text()


def test_the_command_writes_everything(swiss, small, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    design = replace(SMALL, slow_rates=())
    monkeypatch.setattr(Design, "declared", classmethod(lambda cls: design))
    arguments = ["reproduce", "default", "--datasets", "swiss", "--runs", "1", "--jobs", "1"]
    result = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "default" / "1-run"
    names = ["against-best", "rates-swiss", "budgets-swiss", "drift-stationary", "drift-abrupt"]
    names += ["few-labels"] if version_of("river") else []
    for name in names:
        assert (folder / "figures" / f"{name}.svg").stat().st_size > 5_000
        assert (folder / "figures" / f"{name}.png").stat().st_size > 5_000
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == len(names)
    assert "Where it loses" in page
    assert "look-aheads" in page
    assert TITLES["few-labels"] in page
    assert ("the default is behind online logistic regression" in page) is bool(version_of("river"))
    content = json.loads((folder / "default.json").read_text())
    with (folder / "default.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(content["cells"])
    with (folder / "few-labels.csv").open() as lines:
        problems = [(row["space"], float(row["accuracy"])) for row in csv.DictReader(lines)]
    assert problems == [(row["space"], row["accuracy"]) for row in content["few_labels"]["problems"]]
    text = (folder / "default.md").read_text()
    assert all(title in text for title in TITLES.values())


def test_every_place_of_the_documentation_is_filled(small):
    content = json.loads(json.dumps(small.content()))
    page = "".join(f"{name}\n<!-- generated: {name} -->\nstale\n<!-- end -->\n" for name in BLOCKS)
    once = filled(page, content)
    assert "stale" not in once
    assert "SF2EL, 64 KiB" in once
    assert filled(once, content) == once
    with pytest.raises(ValueError, match="no block"):
        filled("<!-- generated: nothing -->\n<!-- end -->", content)


def test_files_of_old_fill_the_documentation_the_same_way(small):
    """They had the paper's methods without a mark, and no single runs."""
    content = small.content()
    old = json.loads(json.dumps(content).replace(" (paper)", ""))
    for cell in old["cells"]:
        del cell["seeds"]
    page = completed("# Study\n")
    assert filled(page, old) == filled(page, json.loads(json.dumps(content)))


def test_every_single_run_is_written(small, tmp_path):
    content = small.content()
    write_study(tmp_path, content)
    with (tmp_path / "default-runs.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == sum(cell["runs"] for cell in content["cells"])
    cell = next(cell for cell in content["cells"] if cell["method"] == "SF2EL (paper)")
    own = [
        float(row["accuracy"])
        for row in rows
        if [row["method"], float(row["label_rate"])] == [cell["method"], cell["label_rate"]]
    ]
    assert np.mean(own) == pytest.approx(cell["accuracy"]["mean"], abs=1e-5)


def test_a_single_run_has_neither_deviation_nor_error(tmp_path):
    one = replace(SMALL, label_rates=(0.3,))
    content = study_of({OURS: [0.8], "SF2EL": [0.9], FESL: [0.7]}, one).content()
    assert {cell["accuracy"]["std"] for cell in content["cells"]} == {None}
    assert {row["standard_error"] for row in content["targets"]} == {None}
    write_study(tmp_path, content)
    page = default_page(content, drawings(content), version="0", variant="wide", seconds=0.0)
    text = page.write(tmp_path / "index.html").read_text()
    assert "None" not in text + (tmp_path / "default.md").read_text() + (tmp_path / "default.csv").read_text()


def test_an_interval_that_leaves_the_figure_ends_in_an_arrowhead():
    pytest.importorskip("matplotlib")
    wide = study_of({OURS: [0.5, 0.9, 0.7], FESL: [0.7, 0.7, 0.7]}).content()
    narrow = study_of({OURS: [0.70, 0.71, 0.72], FESL: [0.7, 0.711, 0.72]}).content()
    for content, heads in ((wide, {4, 5}), (narrow, set())):
        (axes,) = against_best(content).axes
        assert {line.get_marker() for line in axes.lines} & {4, 5} == heads


def test_a_block_without_a_place_gets_a_section_at_the_end_and_the_others_stay():
    content = few_study({"old": [0.01, 0.02, 0.03], "new": [-0.03, -0.02, -0.01]}).content()
    names = [name for name in BLOCKS if name != "few-labels"]
    page = "# Study\n" + "".join(f"<!-- generated: {name} -->\n<!-- end -->\n" for name in names)
    whole = completed(page)
    assert whole.startswith(page)
    assert whole[len(page) :].startswith(f"\n## {TITLES['few-labels']}\n")
    assert completed(whole) == whole
    text = filled(whole[len(page) :], content)
    assert "| swiss | old | .620 | .600 | +.0200 |" in text
    assert "| swiss | new | .580 | .600 | -.0200 |" in text
    assert "BEHIND" in text


def test_the_command_refuses_the_other_reading():
    arguments = ["reproduce", "default", "--datasets", "swiss", "--reading", "published"]
    assert CliRunner().invoke(main, arguments).exit_code != 0
