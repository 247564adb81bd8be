"""``sf2el run``: what it writes, runs that go on after kill -9, refusals, and the page."""

from __future__ import annotations

import csv
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el import SF2EL, cli
from sf2el.events import FIELDS
from sf2el.running import Run, RunSettings, read_checkpoint
from sf2el.running.history import History, Life
from sf2el.running.summary import summary_of
from sf2el.sources import chunks, open_source
from sf2el.sources.csv_source import CsvSource


def evolving(n, *, seed=0, rate=0.3, delimiter=","):
    """Return a CSV whose features are replaced half-way, with few labels and a few empty rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Z = X @ rng.normal(size=(3, 2))
    lines = [delimiter.join(["a", "b", "c", "u", "v", "y"])]
    for t in range(n):
        old = [f"{v:.4f}" if t < n // 2 else "" for v in X[t]]
        new = [f"{v:.4f}" if t >= n // 2 - 40 else "" for v in Z[t]]
        if t % 97 == 13:
            old, new = [""] * 3, [""] * 2
        label = ("wet" if X[t, 0] + X[t, 1] > 0 else "dry") if rng.random() < rate else ""
        lines.append(delimiter.join([*old, *new, label]))
    return "\n".join(lines) + "\n"


def invoke(*args, **options):
    return CliRunner().invoke(cli.main, ["run", *map(str, args)], **options)


def done(*args, **options):
    result = invoke(*args, **options)
    assert result.exit_code == 0, result.output
    return result


def summary(out):
    found = json.loads((out / "summary.json").read_text())
    del found["time"]
    return found


def outcome(out, model=None):
    """Return everything that must not depend on interruptions."""
    return (
        (out / "predictions.csv").read_bytes(),
        summary(out),
        None if model is None else model.read_bytes(),
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    path.write_text(evolving(3000))
    return path


# ---- what is written


def test_predictions_are_those_of_the_loop(data, tmp_path):
    done(data, "--label", "y", "--budget", "8KiB", "--out", tmp_path, "--save", tmp_path / "model")
    model, empty, right = SF2EL(budget="8KiB", seed=0), 0, []
    with data.open() as file, (tmp_path / "predictions.csv").open() as out:
        for t, (row, said) in enumerate(zip(csv.DictReader(file), csv.DictReader(out), strict=True)):
            y = row.pop("y") or None
            x = {name: float(value) for name, value in row.items() if value}
            assert int(said["row"]) == t
            if not x:
                empty += 1
                assert said["prediction"] == said["probability"] == said["followed"] == ""
                right += [False] if y else []
                continue
            assert (said["prediction"] or None) == model.predict_one(x)
            p = model.predict_proba_one(x)
            assert said["probability"] == (f"{p[said['prediction']]:.6f}" if p else "")
            right += [said["prediction"] == y] if y else []
            model.learn_one(x, y)
    found = summary(tmp_path)
    assert found["empty_rows"] == empty > 0
    assert (found["rows"], found["labelled"]) == (3000, len(right))
    assert found["metrics"]["accuracy"] == pytest.approx(np.mean(right))
    assert found["metrics"]["accuracy"] > 0.8
    assert found["most_bytes"] <= 8192
    assert found["spaces"] == 2
    assert SF2EL.load(tmp_path / "model").to_bytes() == model.to_bytes()
    swapped = [event["row"] for event in found["events"] if event["kind"] == "swapped"]
    assert swapped and abs(swapped[0] - 1500) <= 1
    for event in found["events"]:
        assert set(event) == {"row", "kind", "certain", "fields", "text"}
        assert event["row"] <= event["certain"] < 3000 and set(event["fields"]) == set(FIELDS[event["kind"]])


def test_outcome_does_not_depend_on_blocks_or_format(data, tmp_path, monkeypatch):
    args = ["--label", "y", "--budget", "8KiB", "--limit", "1700"]
    done(data, *args, "--out", tmp_path / "one", "--save", tmp_path / "m1")
    monkeypatch.setattr(chunks, "SIZE", 777)
    done(data, *args, "--out", tmp_path / "two", "--save", tmp_path / "m2")
    assert outcome(tmp_path / "one", tmp_path / "m1") == outcome(tmp_path / "two", tmp_path / "m2")
    rows = [
        {k: (v if k == "y" else float(v)) for k, v in row.items() if v}
        for row in csv.DictReader(data.read_text().splitlines())
    ]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done(lines, *args, "--out", tmp_path / "three")
    assert (tmp_path / "three/predictions.csv").read_bytes() == (
        tmp_path / "one/predictions.csv"
    ).read_bytes()


def test_standard_input_and_json(data, tmp_path):
    args = ["--label", "y", "--budget", "8KiB", "--json"]
    piped = done("-", *args, "--out", tmp_path / "pipe", input=data.read_bytes())
    done(data, *args, "--out", tmp_path / "file")
    assert json.loads(piped.stdout)["rows"] == 3000
    assert (tmp_path / "pipe/predictions.csv").read_bytes() == (
        tmp_path / "file/predictions.csv"
    ).read_bytes()


def test_paper_and_classes(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "".join(f"{t % 5},{t % 2}\n" for t in range(200)))
    done(path, "--label", "y", "--paper", "--buffer", "20", "--classes", "1,0", "--out", tmp_path)
    first = next(csv.DictReader((tmp_path / "predictions.csv").read_text().splitlines()))
    assert first["prediction"] == "1"
    done(path, "--label", "y", "--class-weight", "balanced", "--budget", "8KiB", "--out", tmp_path)


def test_paper_takes_a_budget_and_class_weights(data):
    held = RunSettings(label="y", paper=True, budget="16KiB", class_weight="balanced").first_model()
    wanted = SF2EL.paper(budget="16KiB", class_weight="balanced", scaled=True)
    assert held.to_bytes() == wanted.to_bytes()
    kept = RunSettings(label="y", buffer=20, class_weight="balanced")
    wanted = SF2EL.paper(buffer_size=20, class_weight="balanced", scaled=True)
    assert kept.first_model().to_bytes() == wanted.to_bytes()
    assert (kept.paper, kept.to_dict()["paper"], kept.to_dict()["budget"]) == (True, True, None)
    with pytest.raises(ValueError, match="leave out --classes, --class-weight and --paper"):
        RunSettings(label="y", paper=True, regression=True)


def test_paper_with_class_weights_runs_and_keeps_within_a_budget(data, tmp_path):
    args = [data, "--label", "y", "--paper", "--limit", "600", "--out"]
    done(*args, tmp_path / "plain", "--save", tmp_path / "m1")
    done(*args, tmp_path / "even", "--class-weight", "balanced", "--save", tmp_path / "m2")
    assert SF2EL.load(tmp_path / "m1").to_bytes() != SF2EL.load(tmp_path / "m2").to_bytes()
    source = open_source(data, "y")
    run = Run(RunSettings(label="y", paper=True, budget="16KiB"), source, tmp_path / "p.csv")
    run.go(limit=600, advance=lambda rows: None)
    assert 8 * 1024 < summary_of(run)["most_bytes"] <= 16 * 1024


def test_paper_is_held_by_a_buffer_or_by_a_budget(data, tmp_path):
    args = [data, "--label", "y", "--paper", "--limit", "600", "--out", tmp_path, "--save", tmp_path / "m"]
    done(*args, "--budget", "16KiB", "--class-weight", "balanced")
    found = summary(tmp_path)
    assert 8 * 1024 < found["most_bytes"] <= 16 * 1024
    assert (found["settings"]["budget"], found["settings"]["buffer"]) == ("16KiB", None)
    assert "of 16,384 bytes" in (tmp_path / "index.html").read_text()
    done(*args, "--budget", "16KiB", "--class-weight", "balanced", "--resume", tmp_path / "m")
    done(*args)
    assert (summary(tmp_path)["settings"]["budget"], summary(tmp_path)["settings"]["buffer"]) == (None, 60)
    result = invoke(*args, "--budget", "16KiB", "--buffer", "20")
    assert result.exit_code == 2 and "either --budget or --buffer, not both." in result.stderr


def test_checkpoints_of_the_paper_tell_how_it_was_held(data, tmp_path):
    made = {}
    for name, settings in {
        "default": RunSettings(label="y", budget="16KiB"),
        "budget": RunSettings(label="y", budget="16KiB", paper=True),
        "buffer": RunSettings(label="y", buffer=60),
    }.items():
        run = Run(settings, open_source(data, "y"), tmp_path / f"{name}.csv")
        run.go(limit=10, advance=lambda rows: None)
        made[name] = run.last_checkpoint()
    for name, checkpoint in made.items():
        for other in made:
            if other == name:
                checkpoint.check(made[other].settings)
                continue
            with pytest.raises(ValueError, match="The checkpoint was made with --paper"):
                checkpoint.check(made[other].settings)


def test_large_whole_numbers_are_classes_of_their_own(tmp_path):
    labels = ["9007199254740992", "9007199254740993"]
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "".join(f"{t % 2},{labels[t % 2]}\n" for t in range(200)))
    for more in ([], ["--classes", ",".join(labels)]):
        done(path, "--label", "y", "--out", tmp_path, *more)
        assert set(summary(tmp_path)["labels"]) == set(labels)
        with (tmp_path / "predictions.csv").open() as file:
            said = [line["prediction"] for line in csv.DictReader(file)]
        assert said[-2:] == labels
    assert RunSettings(label="y", classes=("1.0", "2e0")).known_classes() == [1, 2]


def test_json_lines_without_any_label_run_as_csv_does(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "y": null}\n{"a": 2, "y": null}\n' * 50)
    done(path, "--label", "y", "--out", tmp_path)
    assert (summary(tmp_path)["rows"], summary(tmp_path)["labelled"]) == (100, 0)


def test_regression_with_empty_rows_writes_plain_numbers_wherever_blocks_end(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.csv"
    lines = [f"{a:.4f},{b:.4f},{a - 2 * b:.4f}\n" for a, b in rng.normal(size=(400, 2))]
    lines[5::90] = [",,1.5\n"] * len(lines[5::90])
    path.write_text("a,b,y\n" + "".join(lines))
    done(path, "--label", "y", "--regression", "--out", tmp_path / "one")
    with (tmp_path / "one/predictions.csv").open() as file:
        said = [line["prediction"] for line in csv.DictReader(file)]
    assert [t for t, text in enumerate(said) if not text] == list(range(5, 400, 90))
    assert all(text == repr(float(text)) for text in said if text)
    monkeypatch.setattr(chunks, "SIZE", 333)
    done(path, "--label", "y", "--regression", "--out", tmp_path / "two")
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
    page = (tmp_path / "one/index.html").read_text()
    assert "5 rows had no observed feature" in page and "which is left out of the scores" in page
    assert "counts as an error" not in page and "labelled rows but those without a prediction" in page


def test_regression_reports_errors(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.csv"
    rows = [(a, b, a - 2 * b) for a, b in rng.normal(size=(800, 2))]
    path.write_text(
        "a,b,y\n"
        + "".join(f"{a!r},{b!r},{y!r}\n".replace("np.float64(", "").replace(")", "") for a, b, y in rows)
    )
    done(path, "--label", "y", "--regression", "--budget", "8KiB", "--out", tmp_path)
    found = summary(tmp_path)
    assert set(found["metrics"]) == {"mae", "rmse", "r2"}
    assert found["windows"][-1]["metrics"]["rmse"] < 1.0
    assert "RMSE" in (tmp_path / "index.html").read_text()


def test_delayed_labels_are_learned_late(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(evolving(400, rate=0.2))
    done(
        path, "--label", "y", "--budget", "8KiB", "--delay", "7", "--out", tmp_path, "--save", tmp_path / "m"
    )
    model, waiting = SF2EL(budget="8KiB", seed=0), []
    for row in csv.DictReader(path.read_text().splitlines()):
        y = row.pop("y") or None
        x = {name: float(value) for name, value in row.items() if value}
        if x:
            model.learn_one(x)
        waiting.append((x, y))
        if len(waiting) > 7:
            x, y = waiting.pop(0)
            if x and y:
                model.learn_one(x, y, late=True)
    assert SF2EL.load(tmp_path / "m").to_bytes() == model.to_bytes()


# ---- other data, after those that were


def days(tmp_path, **more):
    """Write a log whole and in two files; return the three, the second with its header."""
    lines = evolving(2_000, **more).splitlines(keepends=True)
    parts = {"whole": lines, "one": lines[:801], "two": [lines[0], *lines[801:]]}
    for name, part in parts.items():
        (tmp_path / f"{name}.csv").write_text("".join(part))
    return [tmp_path / f"{name}.csv" for name in parts]


@pytest.mark.parametrize("extra", [[], ["--delay", "0", "--paper", "--buffer", "20"]])
def test_a_run_begins_with_the_model_of_another(extra, tmp_path):
    """The features change in the second file: its events have rows of its own."""
    whole, one, two = days(tmp_path)
    args = ["--label", "y", "--save", tmp_path / "m"]
    done(whole, *args, *extra, "--out", tmp_path / "w")
    model = (tmp_path / "m").read_bytes()
    done(one, *args, *extra, "--out", tmp_path / "o")
    done(two, *args, "--out", tmp_path / "t", "--start", tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == model
    said = [
        [line.split(",", 1)[1] for line in (tmp_path / out / "predictions.csv").read_text().splitlines()]
        for out in "wt"
    ]
    assert said[0][801:] == said[1][1:]
    whole_events, own = (summary(tmp_path / out)["events"] for out in "wt")
    late = [[event["row"] - 800, event["text"]] for event in whole_events if event["row"] >= 800]
    assert [[event["row"], event["text"]] for event in own] == late and len(late) > 1
    assert summary(tmp_path / "t")["rows"] == 1_200


def test_a_run_that_began_with_a_model_goes_on_and_takes_another_budget(tmp_path):
    _, one, two = days(tmp_path)
    done(one, "--label", "y", "--out", tmp_path / "o", "--save", tmp_path / "m")
    args = ["--label", "y", "--start", tmp_path / "m", "--budget", "8KiB"]
    done(two, *args, "--out", tmp_path / "w", "--save", tmp_path / "w.model")
    cut = ["--out", tmp_path / "c", "--save", tmp_path / "c.model"]
    done(two, *args, *cut, "--limit", "500")
    done(two, *args, *cut, "--resume", tmp_path / "c.model")
    assert outcome(tmp_path / "c", tmp_path / "c.model") == outcome(tmp_path / "w", tmp_path / "w.model")
    assert (
        SF2EL.load(tmp_path / "c.model").memory_usage() <= 8_192 < SF2EL.load(tmp_path / "m").memory_usage()
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--seed", "3"], "it is the saved model's own with --start"),
        (["--paper"], "leave out --paper"),
        (["--classes", "wet,dry"], "leave out --paper"),
        (["--regression"], "it holds a classifier"),
        (["--start", __file__], "test_run.py: These bytes are not a whole sf2el model"),
        (["--start", "nothing.sf2el"], "nothing.sf2el: no such file or directory."),
    ],
)
def test_what_a_saved_model_has_of_its_own_is_not_told_again(more, said, tmp_path):
    _, one, two = days(tmp_path)
    done(one, "--label", "y", "--out", tmp_path / "o", "--save", tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    result = invoke(two, "--label", "y", "--out", tmp_path / "t", "--start", tmp_path / "m", *more)
    assert result.exit_code in (1, 2) and said in result.stderr
    assert "Traceback" not in result.stderr and not (tmp_path / "t").exists()
    assert (tmp_path / "m").read_bytes() == before


# ---- runs that go on


def start(*args, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "sf2el", "run", *map(str, args)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **options,
    )


def killed_when(process, ready):
    """Kill -9 a process as soon as something is there; return whether it was still alive."""
    deadline = time.monotonic() + 30
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    return alive


def test_killed_runs_go_on_to_the_same_outcome(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(evolving(8_000))
    args = [path, "--label", "y", "--budget", "8KiB", "--checkpoint-every", "900", "--delay", "3"]
    done(*args, "--out", tmp_path / "whole", "--save", tmp_path / "whole.model")
    out, model = tmp_path / "cut", tmp_path / "cut.model"
    kills = 0
    for size in (1, 60_000, 120_000):
        predictions = out / "predictions.csv"
        again = ["--resume", model] if kills else []
        process = start(*args, "--out", out, "--save", model, *again)
        kills += killed_when(process, lambda f=predictions, s=size: f.exists() and f.stat().st_size > s)
    assert kills == 3
    done(*args, "--out", out, "--save", model, "--resume", model)
    assert outcome(out, model) == outcome(tmp_path / "whole", tmp_path / "whole.model")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipe_that_is_interrupted_leaves_its_model_and_goes_on(number, tmp_path):
    """A pipe cannot be read again: nothing that was learned may be lost, and predictions are seen at once."""
    lines = evolving(3_000).splitlines(keepends=True)
    path, out, model = tmp_path / "rows.csv", tmp_path / "cut", tmp_path / "cut.model"
    path.write_text("".join(lines))
    args = ["--label", "y", "--budget", "8KiB", "--delay", "3"]
    done(path, *args, "--out", tmp_path / "whole", "--save", tmp_path / "whole.model")
    process = start("-", *args, "--out", out, "--save", model, stdin=subprocess.PIPE)
    process.stdin.write("".join(lines[:2_001]).encode())
    process.stdin.flush()
    predictions = out / "predictions.csv"
    until = time.monotonic() + 60.0
    while not predictions.exists() or predictions.read_bytes().count(b"\n") < 2_001:
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert b"Interrupted after 2,000 rows" in said and b"--resume" in said
    assert SF2EL.load(model).predict_one({"u": 0.1, "v": 0.2}) in ("wet", "dry")
    assert not (out / "summary.json").exists()
    done(path, *args, "--out", out, "--save", model, "--resume", model)
    assert outcome(out, model) == outcome(tmp_path / "whole", tmp_path / "whole.model")


def test_an_interrupt_within_a_piece_waits_until_it_is_whole(data, tmp_path, monkeypatch):
    def run_of(name, checkpoint=None):
        settings = RunSettings(label="y", budget="8KiB")
        return Run(settings, open_source(str(data), "y"), tmp_path / f"{name}.csv", checkpoint)

    work, place = run_of("cut"), tmp_path / "checkpoint"
    piece = work._piece

    def interrupted(block, start, stop):
        if work.tallies.rows >= 1_000:
            os.kill(os.getpid(), signal.SIGINT)
        piece(block, start, stop)

    monkeypatch.setattr(work, "_piece", interrupted)
    with pytest.raises(KeyboardInterrupt):
        work.go(save=place, advance=lambda rows: None)
    assert work.whole and len(data.read_text().splitlines()) - 1 > read_checkpoint(place).row >= 1_000
    resumed, whole = run_of("cut", read_checkpoint(place)), run_of("whole")
    for one in (resumed, whole):
        one.go(advance=lambda rows: None)
    assert resumed.model.to_bytes() == whole.model.to_bytes()
    assert (tmp_path / "cut.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_an_interrupt_without_save_says_how_it_could_have_gone_on(data, tmp_path, monkeypatch):
    def interrupted(self, block, start, stop):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "_piece", interrupted)
    result = invoke(data, "--label", "y", "--out", tmp_path)
    assert result.exit_code == 130
    assert "Interrupted after 0 rows; with --save it could go on." in result.stderr


KILLER = """
import os, signal, sys
from sf2el.cli import main
real, calls = os.fsync, 0
def fsync(handle):
    global calls
    calls += 1
    if calls == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    real(handle)
os.fsync = fsync
main(["run", *sys.argv[2:]])
"""


@pytest.mark.parametrize("moment", [1, 2, 3, 4, 7, 9])
def test_killed_while_writing_to_disk(data, tmp_path, moment):
    args = [data, "--label", "y", "--budget", "8KiB", "--checkpoint-every", "1000"]
    done(*args, "--out", tmp_path / "whole", "--save", tmp_path / "whole.model")
    more = ["--out", tmp_path / "cut", "--save", tmp_path / "model", "--resume", tmp_path / "model"]
    process = subprocess.run(
        [sys.executable, "-c", KILLER, str(moment), *map(str, [*args, *more])],
        capture_output=True,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    done(*args, *more)
    assert outcome(tmp_path / "cut", tmp_path / "model") == outcome(
        tmp_path / "whole", tmp_path / "whole.model"
    )
    assert not [path for folder in (tmp_path, tmp_path / "cut") for path in folder.glob(".*")]


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (40_000, "predictions.csv cannot be written: file too large; make room and run again, with --resume"),
        (600, "model.checkpoint cannot be written: file too large; name another file, or make room."),
        (10, "predictions.csv cannot be written: file too large; make room and run again, with --resume"),
    ],
)
def test_a_full_disk_is_told_with_the_file_and_what_to_do(data, tmp_path, room, said):
    resource = pytest.importorskip("resource")
    args = [data, "--label", "y", "--budget", "8KiB", "--checkpoint-every", "500"]
    done(*args, "--out", tmp_path / "whole", "--save", tmp_path / "whole.model")
    more = ["--out", tmp_path / "cut", "--save", tmp_path / "model", "--resume", tmp_path / "model"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        result = invoke(*args, *more)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert result.exit_code == 1
    assert said in " ".join(result.output.split())
    done(*args, *more)
    assert outcome(tmp_path / "cut", tmp_path / "model") == outcome(
        tmp_path / "whole", tmp_path / "whole.model"
    )


def test_a_finished_run_goes_on_when_the_file_has_grown(tmp_path):
    path, content = tmp_path / "rows.csv", evolving(2000)
    path.write_text(content)
    args = [path, "--label", "y", "--budget", "8KiB"]
    done(*args, "--out", tmp_path / "whole", "--save", tmp_path / "whole.model")
    place = content.index("\n", len(content) // 3) + 1
    path.write_text(content[:place])
    more = ["--out", tmp_path / "grown", "--save", tmp_path / "model"]
    done(*args, *more)
    path.write_text(content)
    done(*args, *more, "--resume", tmp_path / "model")
    assert outcome(tmp_path / "grown", tmp_path / "model") == outcome(
        tmp_path / "whole", tmp_path / "whole.model"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--seed", "1"], "made with --seed 0, not 1"),
        (["--budget", "9KiB"], "--budget '8KiB'"),
        (["--delay", "2"], "--delay"),
        (["--ignore", "a"], "--ignore"),
        (["--paper"], "made with --paper"),
    ],
)
def test_resume_refuses_other_settings(data, tmp_path, change, said):
    args = ["--label", "y", "--out", tmp_path, "--budget", "8KiB"]
    done(data, *args, "--limit", "100", "--save", tmp_path / "m")
    result = invoke(data, *args, *change, "--resume", tmp_path / "m")
    assert result.exit_code == 1 and said in result.stderr


def test_resume_refuses_other_data_label_and_folder(data, tmp_path):
    args = ["--label", "y", "--budget", "8KiB"]
    done(data, *args, "--out", tmp_path, "--limit", "100", "--save", tmp_path / "m")
    other = tmp_path / "other.csv"
    other.write_text(evolving(3000).replace("a,b,c", "a,b,d"))
    for said, more in [
        ("is not what was read before", [other, *args, "--out", tmp_path]),
        ("does not have the predictions", [data, *args, "--out", tmp_path / "elsewhere"]),
        (
            "--label 'y', not 'c'",
            [data, "--label", "c", "--budget", "8KiB", "--out", tmp_path, "--ignore", "y"],
        ),
    ]:
        result = invoke(*more, "--resume", tmp_path / "m")
        assert result.exit_code == 1 and said in result.stderr, result.stderr
    (tmp_path / "m.checkpoint").write_bytes(b"garbage")
    result = invoke(data, *args, "--out", tmp_path, "--resume", tmp_path / "m")
    assert result.exit_code == 1 and "is not a checkpoint" in result.stderr
    (tmp_path / "m.checkpoint").write_bytes((tmp_path / "m").read_bytes())
    result = invoke(data, *args, "--out", tmp_path, "--resume", tmp_path / "m")
    assert result.exit_code == 1 and "it is of another kind." in result.stderr
    result = invoke(data, *args, "--out", tmp_path, "--resume", tmp_path / "nosuch")
    assert result.exit_code == 1 and "There is no checkpoint" in result.stderr


def changed(lines):
    """Return the lines of a CSV file with one cell changed, its length kept, in the second row."""
    cells = lines[2].split(",")
    cells[0] = cells[0][:-1] + str((int(cells[0][-1]) + 1) % 10)
    return [*lines[:2], ",".join(cells), *lines[3:]]


def as_json_lines(lines):
    names = lines[0].strip().split(",")
    rows = [dict(zip(names, line.strip().split(","), strict=True)) for line in lines[1:]]
    kept = [{k: v if k == "y" else float(v) for k, v in row.items() if v} for row in rows]
    return "".join(json.dumps(row) + "\n" for row in kept)


OTHER = {
    "reversed": lambda lines: [lines[0], *lines[:0:-1]],
    "a cell": changed,
    "two rows swapped": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "a label": lambda lines: [
        line.replace(",wet", ",dry") if i < 9 else line for i, line in enumerate(lines)
    ],
    "a row less": lambda lines: [lines[0], *lines[2:]],
    "a column's name": lambda lines: ["a,c,b,u,v,y\n", *lines[1:]],
}


@pytest.mark.parametrize("blocks", [500, 1 << 18])
@pytest.mark.parametrize("kind", ["file", "pipe", "json lines"])
@pytest.mark.parametrize("change", OTHER)
def test_resume_refuses_other_rows_before_the_checkpoint(data, tmp_path, monkeypatch, change, kind, blocks):
    lines = data.read_text().splitlines(keepends=True)[:801]
    path, args = tmp_path / "rows", ["--label", "y", "--budget", "4KiB", "--out", tmp_path / "o"]
    path.write_text("".join(lines))
    monkeypatch.setattr(chunks, "SIZE", blocks)
    done(path, *args, "--limit", "500", "--save", tmp_path / "m", "--checkpoint-every", "90")
    before = outcome(tmp_path / "o", tmp_path / "m.checkpoint")
    other = "".join(OTHER[change](lines))
    path.write_text(as_json_lines(OTHER[change](lines)) if kind == "json lines" else other)
    options = {"input": other.encode()} if kind == "pipe" else {}
    result = invoke("-" if kind == "pipe" else path, *args, "--resume", tmp_path / "m", **options)
    assert result.exit_code == 1
    assert result.stderr.endswith("is not what was read before; resume with the same data.\n")
    assert outcome(tmp_path / "o", tmp_path / "m.checkpoint") == before


@pytest.mark.parametrize("blocks", [500, 1 << 18])
def test_resume_refuses_data_that_end_before_the_checkpoint(data, tmp_path, monkeypatch, blocks):
    monkeypatch.setattr(chunks, "SIZE", blocks)
    args = ["--label", "y", "--budget", "4KiB", "--out", tmp_path / "o"]
    done(data, *args, "--limit", "500", "--save", tmp_path / "m")
    before = outcome(tmp_path / "o", tmp_path / "m.checkpoint")
    short = tmp_path / "short.csv"
    short.write_text("".join(data.read_text().splitlines(keepends=True)[:301]))
    for name, options in ((short, {}), ("-", {"input": short.read_bytes()})):
        result = invoke(name, *args, "--resume", tmp_path / "m", **options)
        assert result.exit_code == 1
        assert "ends before the row 500 that the checkpoint was made at; resume" in result.stderr
        assert outcome(tmp_path / "o", tmp_path / "m.checkpoint") == before


def test_resume_refuses_other_numbers_to_predict(tmp_path):
    path, args = tmp_path / "rows.csv", ["--label", "y", "--regression", "--out", tmp_path / "o"]
    path.write_text("a,y\n" + "".join(f"{t % 7},{t % 5}.5\n" for t in range(300)))
    done(path, *args, "--limit", "200", "--save", tmp_path / "m")
    whole = path.read_text()
    path.write_text(whole.replace("0,0.5\n", "0,0.6\n", 1))
    result = invoke(path, *args, "--resume", tmp_path / "m")
    assert result.exit_code == 1 and "is not what was read before" in result.stderr
    path.write_text(whole)
    done(path, *args, "--resume", tmp_path / "m")


def test_the_same_rows_go_on_in_another_file_format_or_length(data, tmp_path):
    pl = pytest.importorskip("polars")
    args = ["--label", "y", "--budget", "4KiB"]
    done(data, *args, "--out", tmp_path / "whole", "--save", tmp_path / "whole.model")
    lines = data.read_text().splitlines(keepends=True)
    model, path = tmp_path / "m", tmp_path / "rows.parquet"
    again = [*args, "--out", tmp_path / "o", "--save", model, "--resume", model]
    (tmp_path / "rows.csv").write_text("".join(lines[:400]).rstrip("\n"))
    done(tmp_path / "rows.csv", *again)
    (tmp_path / "rows.jsonl").write_text(as_json_lines(lines[:900]))
    done(tmp_path / "rows.jsonl", *again)
    frame = pl.read_csv(data, schema_overrides=dict.fromkeys("abcuv", pl.Float64))
    for rows in (1100, 1900):  # a Parquet file that grows
        frame.head(rows).write_parquet(path)
        done(path, *again)
    done("-", *again, input=data.read_bytes())
    assert outcome(tmp_path / "o", model)[0] == outcome(tmp_path / "whole")[0]
    assert model.read_bytes() == (tmp_path / "whole.model").read_bytes()


def rewritten(path, change):
    """Change what a checkpoint says, with a checksum that fits."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[12:20], "little")
    content = json.loads(whole[20 : 20 + length])
    change(content)
    text = json.dumps(content).encode()
    rest = len(text).to_bytes(8, "little") + text + whole[20 + length :]
    path.write_bytes(whole[:8] + crc32(rest).to_bytes(4, "little") + rest)


def test_any_byte_that_is_changed_or_lost_is_noticed(data, tmp_path):
    done(
        data, "--label", "y", "--budget", "2KiB", "--out", tmp_path, "--limit", "50", "--save", tmp_path / "m"
    )
    path = tmp_path / "m.checkpoint"
    whole = path.read_bytes()
    assert read_checkpoint(path).row == 50
    for at in range(0, len(whole), 97):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(
                ValueError, match=r"m.checkpoint is not a checkpoint of sf2el run: it is .*\.$"
            ):
                read_checkpoint(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.update(row=-5),
        lambda content: content.update(written="all"),
        lambda content: content.update(digest="none"),
        lambda content: content.pop("row"),
        lambda content: content["tallies"].pop("history"),
        lambda content: content["tallies"].update(windows=3),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused_in_one_sentence(damage, data, tmp_path):
    args = [data, "--label", "y", "--out", tmp_path]
    done(*args, "--limit", "100", "--save", tmp_path / "m")
    rewritten(tmp_path / "m.checkpoint", damage)
    before = outcome(tmp_path)
    result = invoke(*args, "--resume", tmp_path / "m")
    assert result.exit_code == 1 and "damaged" in result.stderr and "Unexpected" not in result.stderr
    assert outcome(tmp_path) == before


def test_rows_before_a_bad_line_are_kept_and_the_run_goes_on_when_it_is_mended(tmp_path):
    content = evolving(1000).splitlines(keepends=True)
    whole, path = tmp_path / "whole.csv", tmp_path / "rows.csv"
    whole.write_text("".join(content))
    path.write_text("".join([*content[:600], "1,2,three,,,wet\n", *content[601:]]))
    args = ["--label", "y", "--budget", "8KiB"]
    result = invoke(path, *args, "--out", tmp_path / "o", "--save", tmp_path / "m")
    assert result.exit_code == 1
    assert "rows.csv, line 601, column 'c': 'three' is not a number" in result.stderr
    assert len((tmp_path / "o/predictions.csv").read_text().splitlines()) == 600
    path.write_text("".join(content))
    done(path, *args, "--out", tmp_path / "o", "--save", tmp_path / "m", "--resume", tmp_path / "m")
    done(whole, *args, "--out", tmp_path / "w")
    assert (tmp_path / "o/predictions.csv").read_bytes() == (tmp_path / "w/predictions.csv").read_bytes()


@pytest.mark.parametrize("blocks", [50, 1 << 18])
def test_a_late_label_that_is_refused_names_its_row(tmp_path, monkeypatch, blocks):
    monkeypatch.setattr(chunks, "SIZE", blocks)
    path = tmp_path / "rows.csv"
    rows = [f"{t},{t % 2}\n" for t in range(100)]
    path.write_text("a,y\n" + "".join([*rows[:40], ",\n", "1,2\n", *rows[40:]]))
    result = invoke(path, "--label", "y", "--paper", "--delay", "30", "--out", tmp_path)
    assert result.exit_code == 1 and "rows.csv, row 41: This model is binary" in result.stderr
    assert (tmp_path / "predictions.csv").read_text().splitlines()[-1].startswith("71,")


def test_third_label_of_the_paper_names_the_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "".join(f"{t},{t % 2}\n" for t in range(100)) + "1,2\n")
    result = invoke(path, "--label", "y", "--paper", "--out", tmp_path)
    assert result.exit_code == 1 and "rows.csv, rows 0 to 100:" in result.stderr


@pytest.mark.parametrize(
    "args", [["--buffer", "9"], ["--delay", "-1"], ["--format", "xls"], ["--save", ""], ["--resume", ""], []]
)
def test_wrong_usage_leaves_with_2(data, tmp_path, args):
    label = ["--label", "y"] if args else []
    assert invoke(data, *label, *args, "--out", tmp_path).exit_code == 2


def test_nothing_is_no_name_of_a_file_and_no_class(data, tmp_path):
    result = invoke("", "--label", "y", "--out", tmp_path)
    assert result.exit_code == 2 and "name a file." in result.stderr
    result = invoke(data, "--label", "y", "--out", tmp_path, "--classes", "")
    assert result.exit_code == 1 and "at least two different labels" in result.stderr


def told(monkeypatch, capsys, steps, size, **options):
    """Return the lines of progress; a step is the clock, rows done and bytes read."""
    module = importlib.import_module("sf2el.cli.run")
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    source = SimpleNamespace(size=size, done=0)
    with module.progress(source, **options) as advance:
        for now[0], rows, source.done in steps:
            advance(rows)
    return capsys.readouterr().err.splitlines()


def test_progress_counts_the_first_block_the_limit_and_what_was_done_before(monkeypatch, capsys):
    lines = told(monkeypatch, capsys, [(0, 0, 100), (10, 500, 200), (12, 700, 300), (20, 1000, 400)], 400)
    assert lines == [
        "run: 500 rows, 50 rows/s, 50%, 10 s left",
        "run: 1,000 rows, 50 rows/s, 100%, less than 1 s left",
    ]
    lines = told(monkeypatch, capsys, [(0, 0, 1), (10, 500, 2)], 1000, limit=2000)
    assert lines == ["run: 500 rows, 50 rows/s, 25%, 30 s left"]
    lines = told(monkeypatch, capsys, [(0, 0, 1), (10, 500, 500)], 1000, limit=2000)
    assert lines == ["run: 500 rows, 50 rows/s, 50%, 10 s left"], "the data may end before the limit"
    lines = told(monkeypatch, capsys, [(60, 500, 500), (70, 750, 750)], 1000, before=500)
    assert lines == ["run: 750 rows, 25 rows/s, 75%, 10 s left"]
    assert told(monkeypatch, capsys, [(0, 0, 1), (10, 90, 2)], None) == ["run: 90 rows, 9 rows/s"]


def test_the_speed_of_a_resumed_run_is_that_of_its_own_rows(data, tmp_path, monkeypatch):
    args = ["--label", "y", "--out", tmp_path, "--json", "--save", tmp_path / "m"]
    done(data, *args, "--limit", "2990")
    real = CsvSource.blocks

    def slow(self, start=None):
        time.sleep(0.5)
        yield from real(self, start)

    monkeypatch.setattr(CsvSource, "blocks", slow)
    assert json.loads(done(data, *args, "--resume", tmp_path / "m").stdout)["time"]["seconds"] < 0.5


def test_a_run_tells_its_progress_before_the_first_row_and_after_every_block(data, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "SIZE", 20_000)
    run, said = Run(RunSettings(label="y"), open_source(data, "y"), tmp_path / "p.csv"), []
    run.go(advance=said.append)
    assert said[0] == 0 and said[-1] == 3000 and len(said) > 2 and said == sorted(set(said))


# ---- memory, page


def test_history_is_bounded_and_keeps_every_count():
    history = History()
    total = 0
    while history.rows < 100_000:
        n = min(history.room, 50)
        observed = np.ones((n, 2), dtype=bool)
        observed[n // 2 :, 1] = False
        history.observe(("a", "b"), observed)
        total += n // 2
    assert history.presence["a"].sum() == history.rows
    assert history.presence["b"].sum() == total
    assert len(history.shares()["a"]) <= 128
    again = History.from_state(json.loads(json.dumps(history.state())))
    assert again.state() == history.state()


def test_history_keeps_so_many_features_and_no_more(monkeypatch):
    monkeypatch.setattr("sf2el.running.history.MOST_FEATURES", 3)
    history = History()
    history.observe("abcde", np.array([[1, 0, 0, 1, 0], [0, 0, 1, 1, 1]], dtype=bool))
    assert list(history.presence) == list(history.lives) == ["a", "c", "d"]


def test_history_knows_when_each_feature_was_there():
    rng = np.random.default_rng(0)
    observed = rng.random((700, 3)) < 0.2
    observed[:, 2] = np.arange(700) == 437
    history = History()
    start = 0
    while start < 700:
        if start > 300:
            history = History.from_state(json.loads(json.dumps(history.state())))
        n = min(history.room, 700 - start, int(rng.integers(1, 90)))
        history.observe("abc", observed[start : start + n])
        start += n
    for j, name in enumerate("abc"):
        rows = np.flatnonzero(observed[:, j])
        assert history.lives[name] == Life(rows[0], rows[-1], len(rows))


def test_all_columns_of_a_wide_file_are_told(tmp_path):
    path, names = tmp_path / "rows.csv", [f"x{n}" for n in range(3000)]
    row = ",".join(["1"] * len(names))
    path.write_text(",".join([*names, "y"]) + "\n" + f"{row},u\n{row},v\n" * 3)
    done(path, "--label", "y", "--budget", "1MiB", "--out", tmp_path)
    assert summary(tmp_path)["features"] == names
    assert "rows with 3000 features" in (tmp_path / "index.html").read_text().replace("3,000", "3000")


def test_checkpoints_stop_growing(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n" + "1,2,u\n3,1,v\n" * 20_000)
    source = open_source(path, "y")
    run = Run(RunSettings(label="y", budget="4KiB"), source, tmp_path / "p.csv")
    sizes = {}
    run.go(advance=lambda rows: sizes.update({rows: len(json.dumps(run.tallies.state()))}))
    assert max(sizes.values()) < 200_000


def test_page_is_whole_and_escapes_names(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(evolving(700).replace("a,b,c", "<a>,b&b,c'c", 1))
    done(path, "--label", "y", "--budget", "8KiB", "--out", tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "<a>" not in page and "&lt;a&gt;" in page
    for title in (
        "Which features came when",
        "How well it went",
        "Which experts count",
        "Risk",
        "Memory",
        "What happened",
    ):
        assert f"<h2>{title}</h2>" in page
    for svg in page.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + svg.split("</svg>")[0] + "</svg>")
    assert "http" not in page


def test_a_run_without_labels_still_has_a_page(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n" + "1,\n2,\n" * 50)
    done(path, "--label", "y", "--budget", "8KiB", "--out", tmp_path)
    assert summary(tmp_path)["metrics"]["accuracy"] is None
    assert "none of them came with labels" in (tmp_path / "index.html").read_text()


def test_command_needs_neither_matplotlib_nor_polars_for_a_small_file(data, tmp_path):
    code = (
        "import sys\nfrom sf2el.cli import main\n"
        "main(['run', *sys.argv[1:], '--label', 'y', '--limit', '99'], standalone_mode=False)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('matplotlib', 'polars', 'rich', 'scipy')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(data), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


@pytest.mark.parametrize("name", ["predictions.csv", "summary.json", "index.html"])
def test_the_data_is_never_written_over(name, data, tmp_path):
    log = tmp_path / name
    log.write_bytes(data.read_bytes())
    for options in (["--out", tmp_path], ["--out", tmp_path / "other", "--save", log]):
        result = invoke(log, "--label", "y", "--format", "csv", *options)
        assert result.exit_code == 1 and "data itself" in result.output
        assert log.read_bytes() == data.read_bytes()


@pytest.mark.parametrize(
    ("save", "said"),
    [
        ("r/predictions.csv", "is what the run writes in --out"),
        ("r/summary.json", "is what the run writes in --out"),
        ("r/../r/index.html", "is what the run writes in --out"),
        ("r", "is the folder of --out"),
        ("m.checkpoint", "is the name of a checkpoint; let --save name a file without .checkpoint"),
    ],
)
def test_the_model_is_not_saved_over_what_the_run_writes(data, tmp_path, save, said):
    args = [data, "--label", "y", "--limit", "50", "--out", tmp_path / "r"]
    result = invoke(*args, "--save", tmp_path / save)
    assert result.exit_code == 1 and said in result.stderr
    assert list(tmp_path.iterdir()) == []
    done(*args)
    before = outcome(tmp_path / "r")
    assert invoke(*args, "--save", tmp_path / save).exit_code in (1, 2)
    assert outcome(tmp_path / "r") == before


def test_a_log_without_any_value_gets_a_page(tmp_path):
    log = tmp_path / "empty.csv"
    log.write_text("a,b,y\n,,x\n,,z\n")
    done(log, "--label", "y", "--out", tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "which counts as an error where" in page


def test_a_failed_run_leaves_no_summary_of_an_earlier_one_beside_its_predictions(tmp_path):
    path, out = tmp_path / "rows.csv", tmp_path / "o"
    path.write_text(evolving(300))
    done(path, "--label", "y", "--out", out, "--save", tmp_path / "m")
    before, bad = outcome(out), tmp_path / "bad.csv"
    bad.write_text("a,b,c,u,v,y\none,2,3,,,wet\n" * 200)
    assert invoke(path, "--label", "nosuch", "--out", out).exit_code == 1
    assert invoke(bad, "--label", "y", "--out", out).exit_code == 1
    assert invoke(bad, "--label", "y", "--out", out, "--resume", tmp_path / "m").exit_code == 1
    assert outcome(out) == before, "a run that did not begin changes nothing"
    path.write_text(evolving(300) + "one,2,3,,,wet\n")
    assert invoke(path, "--label", "y", "--out", out, "--seed", "1").exit_code == 1
    assert [file.name for file in out.iterdir()] == ["predictions.csv"]
