"""The paper's experiments: units, runner, tables, tuning, and the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el.cli import main
from sf2el.datasets import load
from sf2el.experiments import reproduce as steps
from sf2el.experiments.protocol import Experiment, Unit, balanced, curve_rounds, merge, run_unit
from sf2el.experiments.readings import reading
from sf2el.experiments.runner import UnitStore, run_units
from sf2el.experiments.tables import as_csv, as_json, published
from sf2el.experiments.tune import as_toml, distance_to_paper, tune
from sf2el.methods import METHODS

SWISS = ("swiss",)


@pytest.fixture(scope="module")
def swiss():
    return {"swiss": load("swiss")}


def small(name: str = "table1") -> dict[str, Experiment]:
    return {name: replace(Experiment.declared(name), datasets=SWISS)}


def test_units_that_share_a_stream_are_merged():
    first = Unit("swiss", 0, 60, 0.3, 10, ("SF2EL",))
    second = Unit("swiss", 0, 60, 0.3, 10, ("NOGD", "SF2EL"))
    other = Unit("swiss", 1, 60, 0.3, 10, ("NOGD",))
    assert merge([first, other, second]) == [replace(first, methods=("NOGD", "SF2EL")), other]


def test_the_results_do_not_depend_on_the_number_of_workers(swiss):
    texts = []
    for jobs in (1, 2, 3):
        result = steps.reproduce(small(), swiss, reading("best"), seeds=range(3), jobs=jobs)
        texts.append(
            as_json(result.protocol("table1"), result.cells["table1"], statistics=result.statistics())
        )
    assert texts[0] == texts[1] == texts[2]


def test_methods_run_alone_give_what_they_give_together(swiss):
    together = run_unit(Unit("swiss", 4, 20, 0.3, 10, tuple(METHODS)), swiss["swiss"], reading("best"))
    for method in ("NOGD", "fROGD+MR", "SF2EL"):
        alone = run_unit(Unit("swiss", 4, 20, 0.3, 10, (method,)), swiss["swiss"], reading("best"))
        assert alone[method] == together[method]


def test_finished_units_are_not_computed_again(swiss, tmp_path, monkeypatch):
    units = small()["table1"].units(range(2))
    store = UnitStore(tmp_path, reading("best"), swiss)
    first = run_units(units, swiss, reading("best"), store=store)
    monkeypatch.setattr("sf2el.experiments.runner.run_unit", lambda *_: pytest.fail("computed again"))
    assert run_units(units, swiss, reading("best"), store=store) == first


def test_a_damaged_result_is_computed_again(swiss, tmp_path):
    units = small()["table1"].units(range(1))
    store = UnitStore(tmp_path, reading("best"), swiss)
    first = run_units(units, swiss, reading("best"), store=store)
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text(kept.read_text()[:100])
    assert run_units(units, swiss, reading("best"), store=store) == first


def test_other_hyperparameters_are_other_results(swiss, tmp_path):
    best = reading("best")
    changed = replace(best, datasets=best.datasets | {"swiss": replace(best.datasets["swiss"], step=0.5)})
    unit = small()["table1"].units(range(1))[0]
    UnitStore(tmp_path, best, swiss).put(unit, {"SF2EL": {}})
    assert UnitStore(tmp_path, changed, swiss).get(unit) is None


def test_other_published_orders_are_other_results(swiss, tmp_path):
    best = reading("best")
    unit = small()["table1"].units(range(1))[0]
    n = swiss["swiss"].rows
    given = [None, np.arange(n)[None], np.arange(n)[::-1][None]]
    stores = [
        UnitStore(tmp_path, best, {"swiss": replace(swiss["swiss"], orders=orders)}) for orders in given
    ]
    for number, store in enumerate(stores):
        assert store.get(unit) is None
        store.put(unit, {"SF2EL": {"accuracy": number}})
    assert [store.get(unit)["SF2EL"]["accuracy"] for store in stores] == [0, 1, 2]


@pytest.mark.parametrize("name", ["best", "published"])
def test_the_bounds_of_theorem_1_hold_on_every_run(name, swiss):
    result = steps.reproduce(small(), swiss, reading(name), seeds=range(5), jobs=2)
    regrets = result.statistics()["regrets"]
    assert len(regrets) == 5
    for regret in regrets:
        assert regret["regret"] <= regret["certificate"] + 1e-6 <= regret["bound"] + 2e-6


def test_swiss_reaches_what_the_reading_promises(swiss):
    # 10 runs of the protocol: .985 is the promise, .994 was measured; the std over runs is below .003.
    best = steps.reproduce(small(), swiss, reading("best"), seeds=range(10), jobs=2)
    accuracy = {cell["method"]: cell["accuracy"]["mean"] for cell in best.cells["table1"]}
    assert accuracy["SF2EL"] >= 0.985
    assert accuracy["SF2EL"] >= max(accuracy.values()) - 0.01


def test_the_published_reading_is_near_the_paper_on_swiss(swiss):
    experiments = small("table2")
    result = steps.reproduce(experiments, swiss, reading("published"), seeds=range(10), jobs=2)
    for cell in result.cells["table2"]:
        assert abs(cell["accuracy"]["mean"] - cell["paper"]["mean"]) <= 0.07


def test_the_paper_s_numbers_are_those_of_the_paper():
    assert published("table1", "magic04", "fROGD+MR", 60) == {"mean": 0.649, "std": 0.001}
    assert published("table3", "magic04", "SF2EL", 60) == {"mean": 0.641, "std": 0.026}
    assert published("label_rates", "swiss", "SF2EL", 60) is None


def test_csv_has_a_row_a_cell(swiss):
    result = steps.reproduce(small("table2"), swiss, reading("best"), seeds=range(2))
    lines = as_csv(result.cells["table2"]).splitlines()
    assert len(lines) == 1 + 4
    assert lines[0].split(",")[:3] == ["dataset", "method", "reading"]


def test_balanced_accuracy_weighs_the_classes_alike():
    y = np.array([1.0] * 9 + [-1.0])
    assert balanced(y > 0, y) == 0.5


def test_curves_end_with_the_last_round():
    for rounds in (1, 7, 100, 9510):
        points = curve_rounds(rounds)
        assert points[0] == 1 and points[-1] == rounds and np.all(np.diff(points) > 0)


def test_tuning_never_uses_a_reported_seed(swiss, monkeypatch):
    used = set()

    def spy(unit, *_):
        used.add(unit.seed)
        return {method: {"accuracy": 0.5} for method in unit.methods}

    monkeypatch.setattr("sf2el.experiments.tune.run_unit", spy)
    tune(swiss["swiss"], reading("best"), trials=4, seeds=2, finalists=2)
    assert min(used) >= 100 and max(used) <= 199


def test_tuning_keeps_what_it_cannot_better(swiss):
    best, cost = tune(swiss["swiss"], reading("best"), trials=2, seeds=1, finalists=1)
    again, same = tune(swiss["swiss"], reading("best"), trials=2, seeds=1, finalists=1, jobs=2)
    assert (best, cost) == (again, same)
    assert cost <= -0.9


def test_the_distance_to_the_paper_is_zero_for_its_own_numbers():
    own = {method: published("table1", "swiss", method, 60)["mean"] for method in METHODS}
    assert distance_to_paper(own, "swiss") == 0.0


def test_a_settings_file_is_read_back_as_it_was_written():
    import tomllib

    for name in ("best", "published"):
        found = reading(name)
        content = tomllib.loads(as_toml("a comment", found))
        assert content["switches"] == found.switches
        assert content["datasets"] == {key: vars(values) for key, values in found.datasets.items()}


def test_the_command_writes_tables_figures_and_a_page(tmp_path):
    arguments = ["reproduce", "all", "--datasets", "swiss", "--runs", "2", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "best"
    names = {path.name for path in folder.iterdir()}
    assert {
        f"{table}.{ending}"
        for table in ("table1", "table2", "label_rates")
        for ending in ("json", "csv", "md")
    } <= names
    table = json.loads((folder / "table1.json").read_text())
    assert {cell["method"] for cell in table["cells"]} == set(METHODS)
    assert set(table["cells"][0]) >= {
        "dataset",
        "method",
        "reading",
        "buffer",
        "label_rate",
        "runs",
        "accuracy",
        "paper",
    }
    page = (folder / "index.html").read_text()
    assert page.count("<svg") == 4 and "published" in page
    assert (folder / "figures" / "risk-swiss.svg").exists() and (
        folder / "figures" / "risk-swiss.png"
    ).exists()


def test_a_missing_dataset_is_named_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.delenv("SF2EL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    arguments = ["reproduce", "table2", "--datasets", "credit-a,swiss", "--runs", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "credit-a" in done.stderr and "sf2el datasets fetch" in done.stderr
    only = ["reproduce", "table1", "--datasets", "credit-a", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, only).exit_code == 1
    wrong = ["reproduce", "table1", "--datasets", "nowhere", "--out", str(tmp_path)]
    assert CliRunner().invoke(main, wrong).exit_code == 2


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path):
    def command(folder: str) -> list[str]:
        arguments = ["reproduce", "table1", "--datasets", "swiss,rfid", "--runs", "8", "--jobs", "1"]
        return [sys.executable, "-m", "sf2el", *arguments, "--out", str(tmp_path / folder)]

    environment = os.environ | {"SF2EL_DATA": ""}
    subprocess.run(command("whole"), check=True, capture_output=True, env=environment)
    broken = subprocess.Popen(
        command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    units = tmp_path / "killed" / "units" / "best"
    deadline = time.monotonic() + 60
    while len(list(units.glob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.002)
    broken.send_signal(signal.SIGKILL)
    broken.wait()
    assert len(list(units.glob("*.json"))) < 16, "the run was over before it could be killed"
    subprocess.run(command("killed"), check=True, capture_output=True, env=environment)
    whole, again = (tmp_path / folder / "best" / "table1.json" for folder in ("whole", "killed"))
    assert whole.read_bytes() == again.read_bytes()
