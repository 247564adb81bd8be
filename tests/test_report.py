"""The page builder and the figures' house style."""

from __future__ import annotations

import builtins
import re
from dataclasses import asdict
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from sf2el.events import DETAILS, EventKind, EventLog, Happened
from sf2el.paper.methods import METHODS
from sf2el.report.page import Cell, Column, Facts, Figure, Page, Points, Section, Table, Text
from sf2el.report.run_figures import lines, presence
from sf2el.report.run_page import run_page
from sf2el.reproduce import figures
from sf2el.running.history import History, Point

matplotlib = pytest.importorskip("matplotlib")

VOID = {"meta", "br", "link", "img"}


class Outline(HTMLParser):
    """Checks that every element is closed in order, and keeps elements and texts."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def outline(html):
    parser = Outline()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def sample_page(**changes):
    table = Table(
        "A & B",
        [Column("method", number=False), Column("score")],
        [["SF2EL", Cell("0.9", best=True)], ["<b>NOGD</b>", "0.8"]],
    )
    section = Section(
        "Part <1>", [Text("a < b"), Points(["one", "two"]), table, Figure(["<svg></svg>"], "c > d")]
    )
    return Page(
        **{
            "title": 'Title "x" & y',
            "lead": "Lead\n   text",
            "sections": [section],
            "footer": ["version <1>"],
            "facts": Facts([("99 %", "right")]),
        }
        | changes
    )


def curves(*names, rounds=400):
    rng = np.random.default_rng(0)
    return {name: (rng.random(rounds), np.full(rounds, 0.1)) for name in names}


# ---- the page


def test_page_is_well_formed_and_escaped():
    html = sample_page().html()
    parsed = outline(html)
    assert html.startswith("<!DOCTYPE html>\n")
    assert ("html", {"lang": "en"}) in parsed.elements
    assert "<b>NOGD</b>" not in html and "<b>NOGD</b>" in parsed.texts
    assert "Lead text" in parsed.texts  # line breaks of the source are no line breaks of the text
    tags = [tag for tag, _ in parsed.elements]
    assert [tags.count(tag) for tag in ("h1", "h2", "thead", "tbody", "main", "footer", "li")] == [1] * 6 + [
        2
    ]


def test_table_marks_numbers_rows_and_the_best():
    html = sample_page().html()
    assert '<td class="number"><strong>0.9</strong></td>' in html
    assert '<td class="number">0.8</td>' in html
    assert '<th scope="row">SF2EL</th>' in html
    assert '<th scope="col" class="number">score</th>' in html


def test_table_refuses_a_row_of_another_length():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("t", [Column("a"), Column("b")], [["1"]])


def test_page_has_both_color_schemes_and_no_script():
    html = sample_page().html()
    assert "prefers-color-scheme: dark" in html
    assert "<script" not in html and "@import" not in html and "@font-face" not in html


def test_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "new" / "folder" / "index.html"
    sample_page().write(path)
    before = path.read_text(encoding="utf-8")
    assert before == sample_page().html()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="cannot be written: no space left"):
        sample_page(title="Other").write(path)
    assert path.read_text(encoding="utf-8") == before
    assert [file.name for file in path.parent.iterdir()] == ["index.html"]


# ---- the house style


def test_every_method_has_its_own_color_and_its_twin_the_same_marker():
    assert set(figures.LOOKS) == set(METHODS)
    assert len({look.color.lower() for look in figures.LOOKS.values()}) == len(METHODS)
    for name, method in METHODS.items():
        twins = [other for other in METHODS if METHODS[other].experts == method.experts]
        assert {figures.LOOKS[other].marker for other in twins} == {figures.LOOKS[name].marker}
        assert (figures.LOOKS[name].dashes == "-") is method.manifold


def test_same_data_give_the_same_svg_and_other_data_another():
    names = ("NOGD+MR", "SF2EL")
    first, again, other = (
        figures.inline_svg(figures.along_rounds(curves(*names, rounds=rounds), ylabel="risk"), "f", "d")
        for rounds in (400, 400, 300)
    )
    assert first == again
    assert first != other


def test_inline_svgs_share_no_id_and_point_at_their_own():
    drawn = figures.along_rounds(curves("SF2EL"), ylabel="risk")
    one, two = (figures.inline_svg(drawn, name, 'say "x" & y') for name in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0] and not ids[0] & ids[1]
    assert set(re.findall(r"url\(#([^)]+)\)", one)) | set(re.findall(r'href="#([^"]+)"', one)) <= ids[0]
    assert dict(outline(one).elements)["svg"]["aria-label"] == 'say "x" & y'
    assert "http" not in one


def test_no_text_below_8_points_and_column_width():
    points = {name: {10: (0.7, 0.1), 60: (0.9, 0.05)} for name in METHODS}
    for figure in (
        figures.along_rounds(curves(*METHODS), ylabel="average risk"),
        figures.by_number(points, xlabel="buffer size (rows)", chance=0.5),
    ):
        with figures.house_style():
            figure.draw_without_rendering()
        texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text()]
        assert min(text.get_fontsize() for text in texts) >= 8.0
        assert figure.get_size_inches()[0] == figures.COLUMN
        (axes,) = figure.axes
        assert axes.get_xlabel() and axes.get_ylabel()
        frame = figure.bbox
        boxes = [text.get_window_extent() for text in texts if text.get_visible()]
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 + 1 for box in boxes)


def test_curves_draw_mean_and_band_at_the_given_rounds():
    rounds = np.array([1, 10, 100, 1000])
    mean, std = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.2, 0.3, 0.4])
    (axes,) = figures.along_rounds({"SF2EL": (mean, std)}, ylabel="risk", rounds=rounds).axes
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), np.column_stack([rounds, mean]))
    corners = axes.collections[0].get_paths()[0].vertices
    assert {(float(x), round(float(y), 9)) for x, y in corners} >= {(10.0, 1.8), (10.0, 2.2), (1000.0, 4.4)}


def test_long_curves_are_thinned_but_keep_their_ends():
    (axes,) = figures.along_rounds(curves("SF2EL", rounds=9000), ylabel="risk").axes
    drawn = axes.lines[0].get_xdata()
    assert len(drawn) < 400
    assert list(drawn[:40]) == list(range(1, 41)) and drawn[-1] == 9000


def test_bars_are_set_side_by_side_on_either_scale():
    points = {name: {0.1: (0.7, 0.1), 0.5: (0.9, 0.05)} for name in ("FESL-Variant", "SF2EL")}
    for logarithmic in (False, True):
        figure = figures.by_number(points, xlabel="label rate", logarithmic=logarithmic)
        (axes,) = figure.axes
        first, second = (container.lines[0].get_xdata() for container in axes.containers)
        first, second = np.asarray(first), np.asarray(second)
        assert (first < second).all()
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "0.5"]


def test_matplotlib_is_left_as_it_was():
    before = dict(matplotlib.rcParams)
    matplotlib.rcParams["font.size"] = 31.0
    try:
        figure = figures.along_rounds(curves("SF2EL"), ylabel="risk")
        figures.inline_svg(figure, "f", "d")
        assert matplotlib.rcParams["font.size"] == 31.0
        assert figure.axes[0].xaxis.label.get_fontsize() == figures.STYLE["axes.labelsize"]
    finally:
        matplotlib.rcParams["font.size"] = before["font.size"]
    assert dict(matplotlib.rcParams) == before


def test_figures_are_written_as_svg_and_png(tmp_path):
    paths = figures.write(figures.along_rounds(curves("SF2EL"), ylabel="risk"), tmp_path / "risk")
    assert paths[0].read_bytes().startswith(b"<?xml")
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_missing_matplotlib_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "sf2el\[plot\]"'):
        figures.along_rounds(curves("SF2EL"), ylabel="risk")


# ---- the page of a run


def draw(curve, rows=100, **options):
    return lines(curve, rows=rows, y=(0.0, 1.0), show=str, description="d", **options)


def run_summary(rows=1, windows=1, **changes):
    scored = {"start": 0, "scored": rows, "metrics": {"accuracy": 0.5, "balanced_accuracy": 0.5}}
    step = rows / windows
    parts = [scored | {"start": k * step, "stop": (k + 1) * step} for k in range(windows)]
    return {
        "data": "log.csv",
        "rows": rows,
        "labelled": rows,
        "empty_rows": 0,
        "spaces": 1,
        "metrics": {"accuracy": 0.5},
        "largest_class": 0.5,
        "most_bytes": 900,
        "windows": parts,
        "events": [],
        "events_total": 0,
        "settings": {"regression": False},
    } | changes


def run_html(summary, features=1, points=()):
    history = History()
    names = [f"f{k}" for k in range(features)]
    history.observe(names, np.ones((summary["rows"], features), dtype=bool))
    history.points = list(points)
    html = run_page(summary, history, budget=1024, version="1", variant="wide", seconds=1.0).html()
    return html, " ".join(" ".join(outline(html).texts).split())


def test_single_points_are_dots():
    assert draw({"a": [(50.0, 0.5)]}).count("<circle") == 1
    gaps = draw(
        {"a": [*((float(x), 0.5) for x in range(10)), (50.0, 0.7), *((float(x), 0.5) for x in range(90, 99))]}
    )
    assert (gaps.count("<circle"), gaps.count("<polyline")) == (1, 2)
    both = re.findall("r='([0-9.]+)'", draw({"a": [(50.0, 0.5)], "b": [(50.0, 0.5)]}))
    assert float(both[0]) > float(both[1])
    assert "<circle" not in draw({"a": [(0.0, 0.5), (50.0, 0.5)]})
    html, _ = run_html(run_summary(rows=40))
    assert html.count("<circle") == 2 and "<polyline" not in html


@pytest.mark.parametrize("rows", [1, 2, 3, 12, 13, 6000])
def test_rows_are_counted_in_whole_numbers_once_each(rows):
    svg = presence({"a": [1.0]}, rows=rows, stride=rows, description="d")
    shown = [int(text.replace(",", "")) for text in re.findall(">([0-9,]+)</text>", svg)]
    assert shown == sorted(set(shown)) and shown[0] == 0
    places = [float(x) for x in re.findall("<text x='([0-9.]+)'[^>]*>[0-9,]+<", svg)]
    assert np.allclose(np.diff(places) / np.diff(shown), np.diff(places)[0] / np.diff(shown)[0], atol=0.1)


def test_one_of_anything_is_not_many():
    _, text = run_html(run_summary())
    assert "1 row with 1 feature was predicted and then learned. It came with the right label;" in text
    assert "over the whole run, which has 1 labelled row;" in text
    assert "Over the labelled row." in text
    many = run_html(run_summary(rows=3000, windows=3), features=2)[1]
    assert "3,000 rows with 2 features were predicted one by one and then learned. 100% of them came" in many
    assert "Over all 3,000 labelled rows." in many
    empty = run_html(run_summary(rows=2, empty_rows=1))[1]
    assert "1 row had no observed feature: it has no prediction" in empty
    none = run_html(run_summary(labelled=0, windows=1) | {"windows": []})[1]
    assert "1 row was predicted; it came without a label." in none
    for every in (text, empty, none):
        assert not re.search(r"\b1 (labelled )?(rows|features)\b", every)


def test_captions_say_how_many_changes_are_marked():
    point = Point(3000, 900, {"current": 0.5, "recovered": 0.5}, {"current linear": 0.5})
    for changes, said in (
        (12, "Dotted lines: features appeared beside others, or were swapped."),
        (13, "Dotted lines: the first 12 rows at which features appeared beside others, or were swapped."),
    ):
        events = [{"row": 10 * k, "kind": "swapped", "text": "swap to 2 features"} for k in range(changes)]
        html, text = run_html(
            run_summary(rows=3000, windows=3, events=events[::-1], events_total=changes), points=[point]
        )
        assert text.count(said) == 4 == text.count("Dotted lines")
        marks = re.findall("<line x1='([0-9.]+)'[^>]*stroke-dasharray='1 3'", html)
        assert len(marks) == 4 * 12 and marks[:12] == sorted(marks[:12], key=float)
        assert float(marks[11]) == pytest.approx(58 + 110 / 3000 * 408, abs=0.1)
    cut = run_summary(rows=3000, windows=3, events=events[:3], events_total=900)
    assert "or were swapped, as far as it is among the events shown." in run_html(cut)[1]


def test_events_are_in_the_order_of_rows():
    events = [{"row": row, "kind": "joined", "text": f"event {row}"} for row in (0, 200, 191, 1000)]
    html, _ = run_html(run_summary(rows=2000, events=events, events_total=4))
    assert re.findall(">event ([0-9]+)<", html) == ["0", "191", "200", "1000"]


def test_what_is_within_the_model_is_folded_away():
    log = EventLog()
    for row, kind in enumerate(EventKind):
        log.add(Happened(kind, 0, 4), row)
    events = [asdict(event) for event in log.last_events().last]
    html, _ = run_html(run_summary(rows=2000, events=events, events_total=len(events)))
    folded = html[html.index("<details>") : html.index("</details>")]
    assert all((escape(event["text"]) in folded) == (event["kind"] in DETAILS) for event in events)
    assert all(escape(event["text"]) in html for event in events)
    assert f"{folded.count('<tr>') - 1} events within the model" in folded
    assert folded.count("<tr>") - 1 == len(DETAILS)


def test_windows_without_a_score_make_no_figure():
    summary = run_summary(settings={"regression": True})
    summary["windows"][0]["metrics"] = {"mae": None, "rmse": None}
    assert "How well it went" not in run_html(summary)[1]


def test_a_band_ends_where_no_value_can_be():
    pytest.importorskip("matplotlib")
    curve = (np.full(20, 0.5), np.full(20, 0.8))
    for least, bottom in ((0.0, 0.0), (-np.inf, -0.3)):
        drawn = figures.along_rounds({"SF2EL": curve}, ylabel="average risk", least=least)
        (axes,) = drawn.axes
        band = axes.collections[0].get_paths()[0].vertices
        assert band[:, 1].min() == pytest.approx(bottom)
        assert axes.get_ylim()[0] == 0.0 if least == 0.0 else axes.get_ylim()[0] < bottom
