"""``sf2el run``: what it writes, runs that go on after kill -9, refusals, and the page."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el import SF2EL, cli
from sf2el.running import Run, RunSettings
from sf2el.running.history import History
from sf2el.sources import chunks, open_source


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
    swapped = [event["row"] for event in found["events"] if event["text"].startswith("swap")]
    assert swapped and abs(swapped[0] - 1500) <= 1


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
        (["--paper"], "--paper and --buffer"),
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
    assert result.exit_code == 1 and "is damaged, or of another kind." in result.stderr
    result = invoke(data, *args, "--out", tmp_path, "--resume", tmp_path / "nosuch")
    assert result.exit_code == 1 and "There is no checkpoint" in result.stderr


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.update(row=-5),
        lambda content: content.update(written="all"),
        lambda content: content["place"].update(offset=None),
        lambda content: content["tallies"].pop("history"),
        lambda content: content["tallies"].update(windows=3),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused_in_one_sentence(damage, data, tmp_path):
    args = [data, "--label", "y", "--out", tmp_path]
    done(*args, "--limit", "100", "--save", tmp_path / "m")
    path = tmp_path / "m.checkpoint"
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    content = json.loads(header["__metadata__"]["sf2el-run"])
    damage(content)
    header["__metadata__"]["sf2el-run"] = json.dumps(content)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
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


# ---- memory, page


def test_history_is_bounded_and_keeps_every_count():
    history = History()
    total = 0
    while history.rows < 100_000:
        n = min(history.room, 50)
        history.observe(("a", "b"), np.array([n, n // 2]), n)
        total += n // 2
    assert history.presence["a"].sum() == history.rows
    assert history.presence["b"].sum() == total
    assert len(history.shares()["a"]) <= 128
    again = History.from_state(json.loads(json.dumps(history.state())))
    assert again.state() == history.state()


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
        "Who is followed",
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


def test_a_log_without_any_value_gets_a_page(tmp_path):
    log = tmp_path / "empty.csv"
    log.write_text("a,b,y\n,,x\n,,z\n")
    done(log, "--label", "y", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "index.html").exists()


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
