"""The demo: what it computes, and the command that shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from test_report import outline

from sf2el import cli
from sf2el.datasets import swiss_stream
from sf2el.paper.methods import METHODS, run_methods
from sf2el.report.demo_page import is_best, show
from sf2el.reproduce import demo as experiment
from sf2el.reproduce.readings import reading

pytest.importorskip("matplotlib")
FIGURES = ["timeline", "old-space", "new-space", "risk", "weights", "buffer-size"]


@pytest.fixture(scope="module")
def computed():
    steps = []
    demo = experiment.run_demo(runs=2, advance=steps.append)
    assert sum(steps) == experiment.steps(2)
    return demo


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The command's result and its folder."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return CliRunner().invoke(cli.main, ["demo", "--runs", "2", "--out", str(out)]), out


@pytest.fixture(scope="module")
def page(shown):
    return (shown[1] / "index.html").read_text(encoding="utf-8")


# ---- computing


def test_scores_are_those_of_the_methods_run_one_by_one(computed):
    accuracy, balanced, risk = [], [], []
    for seed in (0, 1):
        stream = swiss_stream(seed, label_rate=0.3, overlap=10)
        setup = reading("best").setup(stream, "swiss", buffer_size=60, label_rate=0.3)
        run = run_methods(stream, setup, methods=["uROGD+MR"], seed=seed)["uROGD+MR"]
        y = stream.y[1000:]
        right = (run.scores >= 0) == (y > 0)
        accuracy.append(right.mean())
        balanced.append((right[y > 0].mean() + right[y < 0].mean()) / 2)
        risk.append(run.risks.mean())
    score = computed.scores["uROGD+MR"][60]
    assert score.accuracy == pytest.approx((np.mean(accuracy), np.std(accuracy, ddof=1)))
    assert score.balanced_accuracy == pytest.approx((np.mean(balanced), np.std(balanced, ddof=1)))
    assert score.average_risk == pytest.approx((np.mean(risk), np.std(risk, ddof=1)))


def test_demo_has_all_methods_sizes_and_curves(computed):
    assert list(computed.scores) == list(METHODS)
    assert list(computed.accuracies()) == ["FESL-Variant", "SF2EL"]
    assert all(list(sizes) == [10, 20, 40, 60] for sizes in computed.accuracies().values())
    assert list(computed.risks) == ["NOGD+MR", "uROGD+MR", "fROGD+MR", "SF2EL"]
    assert all(band.mean.shape == band.std.shape == (1000,) for band in computed.risks.values())
    for name, band in computed.risks.items():
        assert band.mean[-1] == pytest.approx(computed.scores[name][60].average_risk.mean)


def test_memory_helps_and_the_past_is_of_use(computed):
    sf2el = computed.accuracies()["SF2EL"]
    assert sf2el[60].mean > sf2el[10].mean + 0.1
    assert sf2el[60].mean > computed.scores["NOGD+MR"][60].accuracy.mean + 0.05


def test_weights_start_equal_and_add_up(computed):
    updating, scratch = (computed.weights[name].mean for name in ("uROGD+MR", "NOGD+MR"))
    assert updating[0] == scratch[0] == 0.5
    np.testing.assert_allclose(updating + scratch, 1.0, atol=1e-12)
    assert computed.risks["uROGD+MR"].mean[-1] < computed.risks["NOGD+MR"].mean[-1]
    assert updating[-1] > 0.7  # so it is the better one that is followed


def test_regret_of_every_run_is_within_its_certificate(computed):
    for regrets in computed.regrets.values():
        assert len(regrets) == 2
        assert all(0.0 <= run.regret <= run.certificate <= run.bound for run in regrets)


def test_gains_pair_a_method_with_its_plain_twin(computed):
    for plain, twin in (("NOGD", "NOGD+MR"), ("FESL-Variant", "SF2EL")):
        means = [computed.scores[name][60].accuracy.mean for name in (plain, twin)]
        assert computed.gains[twin].mean == pytest.approx(means[1] - means[0], abs=1e-12)


def test_memory_of_the_old_space_is_read_or_recovered(computed):
    view, stream = computed.old_space, swiss_stream(0, label_rate=0.3, overlap=10)
    read = {tuple(row) for row in stream.old}
    assert len(view.buffer) == 60 and 0 < view.recovered.sum() < 60
    for row, recovered in zip(view.buffer, view.recovered, strict=True):
        assert (tuple(row) in read) is not bool(recovered)
    nearest = np.linalg.norm(view.buffer[:, None] - view.rows[None], axis=2).min(axis=1)
    assert nearest.max() < 0.05  # recovered readings lie on the spirals too


def test_plane_of_the_new_space_loses_nothing(computed):
    view, stream = computed.new_space, swiss_stream(0, label_rate=0.3, overlap=10)
    assert view.variance_kept == pytest.approx(1.0)
    flat, full = (
        np.linalg.norm(rows[:50, None] - rows[None, :50], axis=2) for rows in (view.rows, stream.after_swap)
    )
    np.testing.assert_allclose(flat, full, atol=1e-9)
    assert not view.recovered.any()


@pytest.mark.parametrize("runs", [0, 101, 1.5])
def test_seeds_that_settings_were_tuned_on_are_refused(runs):
    with pytest.raises(ValueError, match="runs must be a whole number from 1 to 100"):
        experiment.run_demo(runs=runs)


def test_best_is_judged_by_the_digits_shown(computed):
    scores = {name: by_size[60] for name, by_size in computed.scores.items()}
    best = [name for name in scores if is_best(name, scores, "accuracy")]
    digits = {name: show(score.accuracy, 1) for name, score in scores.items()}
    assert best and {digits[name] for name in best} == {max(digits.values())}
    assert all(digits[name] < max(digits.values()) for name in digits if name not in best)


# ---- the command


def test_command_prints_both_tables_and_the_page(shown, computed):
    result, out = shown
    assert result.exit_code == 0, result.stderr
    for name, by_size in computed.scores.items():
        row = next(line for line in result.stdout.splitlines() if line.startswith(f"│ {name} "))
        assert show(by_size[60].accuracy, 2) in row and show(by_size[60].average_risk, 2) in row
    for spread in computed.accuracies()["SF2EL"].values():
        assert show(spread, 2) in result.stdout
    assert result.stdout.splitlines()[-1].endswith(str(out / "index.html"))
    assert result.stderr.splitlines() == [result.stderr.strip()]  # one line of progress, off a terminal


def test_page_holds_all_methods_and_figures(page):
    parsed = outline(page)
    labelled = [attrs["aria-label"] for tag, attrs in parsed.elements if tag == "svg"]
    assert len(labelled) == len(FIGURES) and all(labelled)
    assert len([tag for tag, _ in parsed.elements if tag == "figcaption"]) == len(FIGURES) - 1 + 3
    for name in METHODS:
        assert f'<th scope="row">{name}</th>' in page
    ids = [attrs["id"] for _, attrs in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_page_fetches_nothing(page):
    for _, attrs in outline(page).elements:
        for name in ("src", "href", "xlink:href", "srcset", "data"):
            assert attrs.get(name, "#").startswith(("#", "data:image/png;base64,"))
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert "@import" not in page and "<script" not in page and "<link" not in page


def test_page_takes_its_numbers_from_the_run(page, computed):
    accuracy = computed.scores["SF2EL"][60].accuracy.mean
    assert page.count(f"{accuracy:.1%}") >= 3
    assert f"{computed.old_space.recovered.sum()} of 60" in page
    assert "over 2 runs" in page and "seeds from 0 to 1" in page
    for name in ("whole set", "first 200 rows", "100 to 199", "30%", "10 of 2000 rounds"):
        assert name in page
    assert f"{computed.weights['uROGD+MR'].mean[-1]:.2f}" in page


def test_same_run_gives_the_same_bytes(shown, tmp_path):
    result = CliRunner().invoke(cli.main, ["demo", "--runs", "2", "--out", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.stderr
    first = {file.relative_to(shown[1]): file.read_bytes() for file in shown[1].rglob("*") if file.is_file()}
    again = {file.relative_to(tmp_path): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert set(first) == {Path("index.html")} | {
        Path("figures", f"{name}.{kind}") for name in FIGURES for kind in ("svg", "png")
    }
    assert first == again
    printed = json.loads(result.stdout)
    assert printed["page"] == str(tmp_path / "index.html")
    assert len(printed["cells"]) == len(METHODS) + 2 * 3
    assert {"dataset", "method", "reading", "buffer", "label_rate", "runs", "accuracy"} <= set(
        printed["cells"][0]
    )
    assert [len(runs) for runs in printed["regret"].values()] == [2, 2]


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(cli.main, ["demo", "--runs", "1", "--out", str(tmp_path / "file" / "demo")])
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "not a directory" in result.stderr.splitlines()[-1]


def test_without_matplotlib_the_command_says_what_to_install(monkeypatch, tmp_path):
    def missing():
        raise ImportError('Figures need matplotlib: pip install "sf2el[plot]".')

    monkeypatch.setattr("sf2el.reproduce.figures.need_matplotlib", missing)
    result = CliRunner().invoke(cli.main, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr == 'Error: Figures need matplotlib: pip install "sf2el[plot]".\n'
    assert list(tmp_path.iterdir()) == []
