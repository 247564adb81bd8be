"""The paper's experiments: units, runner, tables, tuning, and the command."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el.cli import main
from sf2el.datasets import DatasetMissing, load
from sf2el.maps.recovery import RecoveryMap
from sf2el.paper.methods import METHODS, run_methods
from sf2el.report.reproduction_page import drawings, reproduction_page
from sf2el.reproduce import code
from sf2el.reproduce import reproduce as steps
from sf2el.reproduce.protocol import Experiment, Unit, balanced, curve_rounds, merge, run_unit
from sf2el.reproduce.readings import reading, reading_from
from sf2el.reproduce.runner import UnitStore, run_units
from sf2el.reproduce.statistics import mean_std, paired
from sf2el.reproduce.tables import as_csv, as_json, as_markdown, difference_text, published
from sf2el.reproduce.tune import as_toml, distance_to_paper, tune
from sf2el.streams import stream_for

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
        texts.append(as_json(result.content()))
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
    monkeypatch.setattr("sf2el.reproduce.runner.run_unit", lambda *_: pytest.fail("computed again"))
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


@pytest.mark.parametrize(
    "changed",
    [
        "reproduce/protocol.py",
        "streams/cut.py",
        "paper/learner.py",
        "model/strategy.py",
        "core/learner.py",
    ],
)
def test_results_of_other_code_are_not_used(changed, swiss, tmp_path, monkeypatch):
    files = ["reproduce/readings.py", "reproduce/protocol.py", "streams/cut.py", "paper/learner.py"]
    for name in [*files, "model/strategy.py", "core/learner.py"]:
        (tmp_path / "sf2el" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sf2el" / name).write_text("old")
    monkeypatch.setattr(code.sf2el, "__file__", str(tmp_path / "sf2el" / "__init__.py"))
    unit = small()["table1"].units(range(1))[0]
    store = UnitStore(tmp_path / "out", reading("best"), swiss)
    store.put(unit, {"SF2EL": {}})
    assert store.get(unit) == {"SF2EL": {}}
    (tmp_path / "sf2el" / changed).write_text("new")
    code._content.cache_clear()
    assert store.get(unit) is None
    code._content.cache_clear()


def test_the_folders_of_a_models_code_are_there():
    package = Path(code.sf2el.__file__).parent
    assert [folder for folder in code.MODEL if not list((package / folder).rglob("*.py"))] == []


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

    monkeypatch.setattr("sf2el.reproduce.tune.run_unit", spy)
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
    folder = tmp_path / "best" / "swiss_2-runs"
    names = {path.name for path in folder.iterdir()}
    assert {
        f"{table}{ending}"
        for table in ("table1", "table2", "label_rates")
        for ending in (".json", ".csv", ".md", "-runs.csv")
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
    place = "best/table1_swiss+rfid_8-runs/table1.json"
    whole, again = (tmp_path / folder / place for folder in ("whole", "killed"))
    assert whole.read_bytes() == again.read_bytes()


def command(folder, *arguments):
    return CliRunner().invoke(main, ["reproduce", *arguments, "--out", str(folder)])


def test_a_part_replaces_nothing_of_another_selection(tmp_path):
    two = ("--datasets", "swiss", "--runs", "2")
    for arguments in (("table1", *two), ("table2", *two), ("table1", "--datasets", "swiss", "--runs", "1")):
        done = command(tmp_path, *arguments)
        assert done.exit_code == 0, done.output
    folders = {path.name: path for path in (tmp_path / "best").iterdir()}
    assert set(folders) == {"table1_swiss_2-runs", "table2_swiss_2-runs", "table1_swiss_1-run"}
    cells = json.loads((folders["table1_swiss_2-runs"] / "table1.json").read_text())["cells"]
    assert {cell["runs"] for cell in cells} == {2}
    assert not (folders["table2_swiss_2-runs"] / "table1.json").exists()


def test_the_whole_has_the_folder_of_its_reading():
    whole = steps.experiments_for("all", steps.datasets_of("all"))
    assert steps.folder_of("all", whole, reading("best"), 10) == Path("best")
    assert steps.folder_of("all", whole, reading("published"), 9) == Path("published/9-runs")
    table = steps.experiments_for("table3", steps.datasets_of("all"))
    assert steps.folder_of("table3", table, reading("best"), 10) == Path("best/table3")


def test_single_runs_and_risk_curves_are_written(swiss, tmp_path):
    result = steps.reproduce(small(), swiss, reading("best"), seeds=range(3))
    result.write(tmp_path)
    with (tmp_path / "table1-runs.csv").open() as lines:
        runs = list(csv.DictReader(lines))
    assert len(runs) == len(METHODS) * 3
    by_method = {
        method: [float(run["accuracy"]) for run in runs if run["method"] == method] for method in METHODS
    }
    for cell in result.cells["table1"]:
        assert mean_std(by_method[cell["method"]]) == cell["accuracy"]
    gain = result.statistics()["manifold_gains"]["swiss"]["SF2EL"]
    assert round(paired(by_method["SF2EL"], by_method["FESL-Variant"]).mean, 6) == gain["mean"]
    with (tmp_path / "figures" / "risk.csv").open() as lines:
        curve = [row for row in csv.DictReader(lines) if row["method"] == "SF2EL"]
    rounds, curves = result.risk_curves("swiss")
    assert [int(row["round"]) for row in curve] == rounds.tolist()
    assert [float(row["mean"]) for row in curve] == curves["SF2EL"][0].tolist()
    assert [float(row["std"]) for row in curve] == curves["SF2EL"][1].tolist()


def test_a_single_run_has_no_deviation(swiss, tmp_path):
    result = steps.reproduce(small(), swiss, reading("best"), seeds=range(1))
    result.write(tmp_path)
    assert {cell["accuracy"]["std"] for cell in result.cells["table1"]} == {None}
    with (tmp_path / "figures" / "risk.csv").open() as lines:
        assert {row["std"] for row in csv.DictReader(lines)} == {""}
    assert "None" not in (tmp_path / "table1.md").read_text() + (tmp_path / "table1.csv").read_text()
    page = reproduction_page(result, drawings(result), version="0", variant="wide", seconds=0.0)
    assert "None" not in page.write(tmp_path / "index.html").read_text()


def test_what_is_printed_as_json_is_what_the_files_hold(tmp_path):
    done = command(tmp_path, "table2", "--datasets", "swiss", "--runs", "2", "--json")
    told = json.loads(done.stdout)
    page = Path(told.pop("page"))
    assert told == {"table2": json.loads((page.parent / "table2.json").read_text())}


def test_simulated_data_have_no_difference_to_the_paper():
    cell = {"accuracy": {"mean": 0.8, "std": 0.1}, "paper": {"mean": 0.7, "std": 0.1}, "simulated": False}
    assert difference_text(cell) == "+0.100"
    assert difference_text(cell | {"simulated": True}) == ""
    result = steps.reproduce(
        {"table2": replace(Experiment.declared("table2"), datasets=("rfid",), buffers=(10,))},
        {"rfid": load("rfid")},
        reading("best"),
        seeds=range(1),
    )
    if result.datasets["rfid"].simulated:
        assert "0.542 ± 0.056 |  |" in as_markdown("Table 2", result.cells["table2"])


def test_no_difference_is_a_negative_zero(swiss, tmp_path):
    result = steps.reproduce(small(), swiss, reading("best"), seeds=range(2))
    page = reproduction_page(result, {}, version="0", variant="wide", seconds=0.0)
    text = page.write(tmp_path / "index.html").read_text()
    assert not re.search(r"[-+]0\.0+\b(?![1-9])", text)
    assert re.search(r"[-+]0\.\d{4} ± 0\.\d{4}", text)


def test_a_dataset_that_is_not_part_of_a_table_is_not_called_missing(tmp_path):
    for target, dataset in (("table3", "swiss"), ("default", "rfid")):
        done = command(tmp_path, target, "--datasets", dataset)
        assert done.exit_code == 1
        assert f"not on {dataset}." in done.stderr and "is here" not in done.stderr


# -- settings of the user


def test_settings_that_were_tuned_can_be_reproduced(tmp_path):
    file = tmp_path / "mine.toml"
    arguments = ["tune", "--datasets", "swiss", "--trials", "2", "--jobs", "1", "--out", str(file)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    part = ("table2", "--datasets", "swiss", "--runs", "1")
    file.write_text(re.sub("step = .*", "step = 0.5", file.read_text()))
    for more in ((), ("--settings", str(file))):
        done = command(tmp_path, *part, *more)
        assert done.exit_code == 0, done.output
    own, given = sorted((tmp_path / "best").iterdir())
    assert re.fullmatch(r"table2_swiss_1-run_settings-[0-9a-f]{8}", given.name)
    tables = [json.loads((folder / "table2.json").read_text()) for folder in (own, given)]
    assert tables[1]["protocol"]["settings"] == "mine.toml"
    values = tables[1]["protocol"]["hyperparameters"]["swiss"]
    assert values == vars(reading_from(file, "best").datasets["swiss"])
    assert tables[0]["cells"] != tables[1]["cells"]
    assert "mine.toml" in (given / "index.html").read_text()


def test_a_file_that_is_no_settings_file_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "mine.toml"
    whole = as_toml("mine", reading("best"))
    for text in ("[", "", whole.replace("width", "breadth"), whole.replace('on_skip = "project"', "")):
        file.write_text(text)
        done = command(tmp_path, "table1", "--datasets", "swiss", "--settings", str(file))
        assert done.exit_code == 1
        assert "is not a settings file as sf2el tune writes them" in done.stderr
    file.write_text(whole.replace("[datasets.swiss]", "[datasets.other]"))
    done = command(tmp_path, "table1", "--datasets", "swiss", "--settings", str(file))
    assert done.exit_code == 1 and "has no values for swiss" in done.stderr
    assert command(tmp_path, "storage", "--settings", str(file)).exit_code == 2


# -- what the documentation says


def test_plain_least_squares_recovers_what_the_method_s_page_says():
    try:
        credit = load("credit-a")
    except DatasetMissing:
        pytest.skip("needs credit-a")
    most = {}
    for ridge in (0.0, 1e-3):
        found = []
        for seed in range(10):
            stream = stream_for(credit, seed, 0.3, 10)
            psi = RecoveryMap(credit.d2, credit.d1, ridge=ridge)
            psi.observe(stream.new[:10], stream.old[-10:])
            psi.solve()
            found.append(float(np.abs(psi.recover(stream.after_swap)).max()))
        most[ridge] = max(found)
    assert most[0.0] > 50.0
    assert most[1e-3] < 2.1


def test_dropped_coefficients_diverge_where_the_method_s_page_says():
    try:
        htru = load("htru_2")
    except DatasetMissing:
        pytest.skip("needs htru_2")
    best = reading("best")
    stream = stream_for(htru, 0, 0.3, 10)
    values = replace(best.datasets["htru_2"], smoothness=1e-3)
    most = {}
    for on_skip in ("drop", "project"):
        kept = replace(best, switches=best.switches | {"on_skip": on_skip})
        setup = kept.setup(stream, "htru_2", buffer_size=60, label_rate=0.3, hyperparameters=values)
        most[on_skip] = run_methods(stream, setup, methods=["uROGD+MR"], seed=0)["uROGD+MR"].risks.max()
    assert setup.old.cap
    assert most["drop"] > 1e5 and most["project"] < 100.0


def test_the_citation_names_this_version():
    root = Path(__file__).parents[1]
    citation = (root / "CITATION.cff").read_text()
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert f"\nversion: {project['version']}\n" in citation
