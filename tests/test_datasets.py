"""Datasets: the published files' traps, where files are looked for, downloads, the simulated stand-in."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import time
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sf2el import datasets
from sf2el.cli.datasets import command
from sf2el.datasets import (
    Dataset,
    DatasetDamaged,
    DatasetMissing,
    FetchError,
    download,
    fetch,
    load,
    read_file,
    rfid,
)
from sf2el.datasets.catalog import CATALOG
from sf2el.datasets.dataset import min_max
from sf2el.datasets.parsing import CREDIT_VALUES, read_credit, read_labelled, read_libsvm, read_spaces
from sf2el.paper.methods import run_methods
from sf2el.reproduce.readings import reading
from sf2el.streams import stream_for

REAL = os.environ.get("SF2EL_DATA")
real_files = pytest.mark.skipif(not REAL, reason="SF2EL_DATA does not name a folder with the real files")

CREDIT = """b,30.83,0,u,g,w,v,1.25,t,t,01,f,g,00202,0,+
a,58.67,4.46,u,g,q,h,3.04,t,t,06,f,g,00043,560,-
?,24.50,0.5,u,g,q,h,1.5,t,f,0,f,g,00280,824,+
b,27.83,1.54,y,p,ff,ff,3.75,t,t,05,t,s,?,3,-
a,20.17,5.625,l,gg,ff,o,1.71,t,f,0,f,s,00120,0,-
"""
SIGNS = {"1": 1.0, "0": -1.0}
TWO_SPACES = "old_1,old_2,new_1,label\n0,5,-70,1\n1,5,-60,-1\n2,5,-50,1\n"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No data folder but those a test makes: neither the environment's nor the user's cache."""
    monkeypatch.delenv("SF2EL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def write(tmp_path):
    def put(content, path="file.txt", folder="data"):
        file = tmp_path / folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return put


@pytest.fixture
def small_credit(monkeypatch):
    """The catalog with a Credit-a of the three complete rows above."""
    monkeypatch.setitem(CATALOG, "credit-a", replace(CATALOG["credit-a"], rows=3, positives=2))


# ---- the traps of the published files


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("at_end", [True, False])
def test_any_line_end_gives_the_same_rows(write, end, at_end):
    text = end.join(["140.5,-0.2,0", "102.5,0.46,1", "99,1E-3,0"]) + (end if at_end else "")
    X, y = read_labelled(write(text), 2, SIGNS)
    assert X.tolist() == [[140.5, -0.2], [102.5, 0.46], [99.0, 0.001]]
    assert y.tolist() == [-1.0, 1.0, -1.0]


def test_credit_drops_incomplete_rows_codes_nominals_and_reads_leading_zeros(write):
    X, y = read_credit(write(CREDIT))
    assert X[0].tolist() == [0, 30.83, 0, 0, 0, 9, 0, 1.25, 0, 0, 1, 1, 0, 202, 0]
    assert X[2].tolist() == [1, 20.17, 5.625, 2, 2, 13, 8, 1.71, 0, 1, 0, 1, 2, 120, 0]
    assert X.shape == (3, 15)
    assert y.tolist() == [-1.0, 1.0, 1.0]  # '+' is -1, as in the preprocessed file


def test_credit_without_a_complete_row_is_refused(write):
    with pytest.raises(DatasetDamaged, match="no complete row"):
        read_credit(write(CREDIT.splitlines()[2]))


def test_libsvm_zeros_may_be_left_out_and_repeated_rows_stay(write):
    X, y = read_libsvm(write("-1 1:0.5 3:7.1E-05\n+1 2:1\n+1 2:1\n"), 3)
    assert X.tolist() == [[0.5, 0.0, 7.1e-05], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    assert y.tolist() == [-1.0, 1.0, 1.0]


def test_a_file_sorted_by_class_is_shuffled_into_its_stream(write, monkeypatch):
    lines = [",".join([str(row)] * 10 + ["g" if row < 60 else "h"]) for row in range(100)]
    file = write("\n".join(lines), "magic04/magic04.data")
    monkeypatch.setitem(CATALOG, "magic04", replace(CATALOG["magic04"], rows=100, positives=60))
    magic = load("magic04", file.parents[1])
    assert magic.y.tolist() == [1.0] * 60 + [-1.0] * 40  # g is +1
    assert abs(stream_for(magic, 0).y[:50].mean() - 0.2) < 0.4


def test_preprocessed_orders_count_from_zero(write):
    text = "X1_f1,X2_f1,X2_f2,label,perm_1,perm_2\n0,1,2,1,3,1\n.5,3,4,-1,1,2\n1,5,6,-1,2,3\n"
    spaces = read_spaces(write(text), "X1_f", "X2_f", "perm_")
    assert spaces.orders.tolist() == [[2, 0, 1], [0, 1, 2]]
    assert spaces.new.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_columns_go_by_number_not_by_place(write):
    names = [f"old_{number}" for number in (10, 2, 1, 3, 4, 5, 6, 7, 8, 9)]
    text = (
        ",".join([*names, "label", "new_1"])
        + "\n"
        + "10,2,1,3,4,5,6,7,8,9,0,7\n"
        + ",".join("0" * 10)
        + ",1,8\n"
    )
    spaces = read_spaces(write(text))
    assert spaces.old[0].tolist() == list(range(1, 11))
    assert spaces.y.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("read", "content", "words"),
    [
        (read_credit, "", "is empty"),
        (read_credit, "\n \r\n", "is empty"),
        (read_credit, b"\xff\xfe\x00\x01", "not a text file"),
        (read_credit, CREDIT[:-20], "line 5, has 9 columns and not 16"),
        (read_credit, CREDIT.replace("l,gg", "zz,gg"), "line 5, has 'zz' and not one of u, y, l, t"),
        (read_credit, CREDIT.replace("00202,0,+", "00202,0,x"), "line 1, has 'x' and not one of +, -"),
        (read_credit, CREDIT.replace("5.625", "5.6.25"), "line 5, has '5.6.25' and no finite number"),
        (lambda path: read_labelled(path, 2, SIGNS), "1,2,0\n1,nan,1\n", "line 2, has 'nan' and no finite"),
        (lambda path: read_labelled(path, 2, SIGNS), "1,2,0\n\n1,2,\n", "line 3, has '' and not one of 1, 0"),
        (lambda path: read_libsvm(path, 3), "+1 1:2 4:1\n", "line 1, is not a label"),
        (lambda path: read_libsvm(path, 3), "+1 1:2\n-1 1:2 2:\n", "line 2, is not a label"),
        (lambda path: read_libsvm(path, 3), "0 1:2\n", "line 1, is not a label"),
        (lambda path: read_libsvm(path, 3), "+1 2:2 1:3\n", "line 1, is not a label"),
        (read_spaces, "old_1,new_1,label\n", "a header and no rows"),
        (read_spaces, "old_1,new_1\n1,2\n", "one column label"),
        (read_spaces, "old_1,old_3,new_1,label\n1,2,3,1\n", "must have the columns"),
        (read_spaces, "old_1,new_1,tag,label\n1,2,3,1\n", "and no others"),
        (read_spaces, "old_1,new_1,label\n1,2,1\n1,2,2\n", "labels of two classes"),
        (read_spaces, "old_1,new_1,label\n1,2,1\n1,2,1\n", "labels of two classes"),
        (
            lambda path: read_spaces(path, order="perm_"),
            "old_1,new_1,label,perm_1\n1,2,1,1\n1,2,0,1\n",
            "does not name every row once",
        ),
    ],
)
def test_a_damaged_file_is_named_in_one_sentence(write, read, content, words):
    file = write(content)
    with pytest.raises(DatasetDamaged) as caught:
        read(file)
    message = str(caught.value)
    assert words in message
    assert message.startswith(str(file))
    assert message.endswith(".")
    assert "\n" not in message


def test_the_digest_tells_orders_and_shapes_apart():
    numbers = np.arange(24.0)
    y = np.array([1.0, -1.0, 1.0, -1.0])
    base = Dataset(
        name="d", old=numbers[:8].reshape(4, 2), new=numbers[8:].reshape(4, 4), y=y, description="", source=""
    )
    # The same numbers in the same order, of which one column more is in the old space.
    moved = replace(base, old=numbers[:12].reshape(4, 3), new=numbers[12:].reshape(4, 3))
    orders = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    others = [base, moved, replace(base, orders=orders), replace(base, orders=orders[:1])]
    others += [replace(base, orders=orders[::-1]), replace(base, y=-y), replace(base, old=base.old + 1.0)]
    assert len({other.digest() for other in others}) == len(others)
    assert replace(base, orders=orders.copy(), description="the same").digest() == others[2].digest()


# ---- where a dataset comes from


def test_a_folder_given_comes_before_the_environment_and_that_before_the_cache(
    write, small_credit, monkeypatch, tmp_path
):
    places = [write(CREDIT, "credit-a/crx.data", folder) for folder in ("given", "env", "cache/sf2el")]
    monkeypatch.setenv("SF2EL_DATA", str(tmp_path / "env"))
    for given, place in zip((tmp_path / "given", None, None), places, strict=True):
        assert load("credit-a", given).path == place
        place.unlink()
    (tmp_path / "given").mkdir(exist_ok=True)
    with pytest.raises(DatasetMissing):
        load("credit-a", tmp_path / "given")


def test_a_missing_dataset_says_what_to_do():
    with pytest.raises(DatasetMissing) as caught:
        load("htru_2")
    assert str(caught.value) == (
        "Dataset htru_2 is not here: run 'sf2el datasets fetch htru_2', or name a folder that has "
        "htru_2/HTRU_2.csv with --data-dir (data_dir=) or SF2EL_DATA."
    )
    assert isinstance(caught.value, FileNotFoundError)


def test_wrong_names_and_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"dataset must be one of 'credit-a', .*, not 'iris'"):
        load("iris")
    with pytest.raises(DatasetMissing, match=r"There is no folder .*absent"):
        load("swiss", tmp_path / "absent")


def test_raw_rows_get_the_same_new_space_every_time_and_say_so(write, small_credit):
    folder = write(CREDIT, "credit-a/crx.data").parents[1]
    first, second = load("credit-a", folder), load("credit-a", folder)
    assert first.orders is None
    assert first.old.min() == 0.0
    assert first.old.max() == 1.0
    assert first.source.startswith("credit-a/crx.data: ")  # no folder of this machine: it goes into reports
    assert "S2 = S1 W" in first.source
    assert "not the S2 and the stream orders published" in first.source
    assert np.array_equal(first.new, second.new)
    assert first.new.shape == (3, 10)
    assert np.array_equal(first.new, first.old @ np.random.default_rng(0).uniform(size=(15, 10)))
    assert first.majority == pytest.approx(2 / 3)


def test_the_preprocessed_file_comes_before_the_raw_one(write, small_credit):
    header = [f"X1_f{i + 1}" for i in range(15)] + [f"X2_f{i + 1}" for i in range(10)] + ["label", "perm_1"]
    rows = [[*[value] * 25, sign, place] for value, sign, place in ((0, 1, 2), (0.5, 1, 3), (1, -1, 1))]
    text = "\n".join(",".join(map(str, row)) for row in [header, *rows])
    folder = write(text, "fesl-preprocessed/credit-a.csv").parents[1]
    write(CREDIT, "credit-a/crx.data")
    loaded = load("credit-a", folder)
    assert loaded.orders.tolist() == [[1, 2, 0]]
    assert stream_for(loaded, 0, 1.0, 0).y.tolist() == [1.0, -1.0, 1.0]
    assert "published with FESL" in loaded.source


@pytest.mark.parametrize(
    ("rows", "words"), [(2, "has 3 rows where 2 are expected"), (3, "has 2 rows of class")]
)
def test_a_file_of_another_size_is_refused(write, monkeypatch, rows, words):
    file = write(CREDIT, "credit-a/crx.data")
    monkeypatch.setitem(CATALOG, "credit-a", replace(CATALOG["credit-a"], rows=rows, positives=1))
    with pytest.raises(DatasetDamaged, match=words) as caught:
        load("credit-a", file.parents[1])
    assert str(caught.value).startswith(str(file))


# ---- generated and simulated rows


def test_swiss_keeps_its_points_and_its_streams():
    """Two golden rows: the numbers of every experiment on Swiss hang on these points."""
    stream = datasets.swiss_stream(4)
    assert stream.old[0] == pytest.approx([0.12681736, 0.83213271])
    assert stream.new[0] == pytest.approx([0.37011221, 0.02705427, 0.52438012])
    again = stream_for(load("swiss"), 4)
    for field in ("old", "new", "y", "labelled"):
        assert np.array_equal(getattr(stream, field), getattr(again, field))


def test_the_stand_in_for_rfid_is_called_simulated_and_is_the_same_every_time():
    first, second = load("rfid"), load("rfid")
    assert first.simulated
    assert first.source == "simulated"
    assert first.description.startswith("Simulated")
    assert (first.rows, first.d1, first.d2, int((first.y > 0).sum())) == (940, 78, 72, 514)
    assert np.array_equal(first.old, second.old)
    assert [name for name in datasets.names() if datasets.status(name).simulated] == ["rfid"]


def test_simulated_signals_fade_with_distance_down_to_the_floor(monkeypatch):
    monkeypatch.setattr(rfid, "MISSED", 0.0)
    rng = np.random.default_rng(0)
    places = np.column_stack([np.linspace(0.0, 24.0, 200), np.full(200, 6.0)])
    strength = rfid._read(places, np.zeros(200), 40, -45.0, 0.0, rng)
    stands = np.random.default_rng(0).uniform((0.0, 0.0), rfid.HALL, size=(40, 2))
    distance = np.linalg.norm(places[:, None] - stands, axis=2)
    for antenna in range(40):
        ordered = strength[np.argsort(distance[:, antenna]), antenna]
        assert np.all(np.diff(ordered) <= 0.0)
    assert strength.min() >= rfid.FLOOR
    assert np.all(strength % rfid.RESOLUTION == 0.0)


def test_simulated_tags_move_smoothly_inside_the_hall():
    places = rfid._wander(2000, np.random.default_rng(3))
    assert places.min() >= 0.0
    assert np.all(places.max(axis=0) <= rfid.HALL)
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() < 6.0
    assert places[:, 0].std() > 3.0


def test_the_simulation_is_neither_trivial_nor_hopeless():
    """On tuning seeds, as its noise was chosen."""
    data, choice, accuracies = load("rfid"), reading("best"), []
    for seed in range(100, 105):
        stream = stream_for(data, seed)
        setup = choice.setup(stream, "rfid", buffer_size=60, label_rate=0.3)
        run = run_methods(stream, setup, methods=["SF2EL"], seed=seed)["SF2EL"]
        accuracies.append(run.correct(stream.y[stream.t1 :]).mean())
    assert 0.7 < np.mean(accuracies) < 0.9


def test_a_users_rfid_file_takes_the_simulations_place(write):
    folder = write(TWO_SPACES, "rfid/rfid.csv").parents[1]
    own = load("rfid", folder)
    assert not own.simulated
    assert "imulated" not in own.description + own.source
    assert own.old.tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]  # scaled; a constant column is 0
    assert own.new.ravel().tolist() == [0.0, 0.5, 1.0]
    assert not datasets.status("rfid", folder).simulated
    same = read_file(folder / "rfid/rfid.csv")
    assert same.name == "rfid"
    assert np.array_equal(same.old, own.old)
    with pytest.raises(DatasetMissing, match="There is no file"):
        read_file(folder / "absent.csv")


# ---- fetching


class Server:
    """Serves what a test puts into ``files``; ``broken`` paths promise more bytes than they send."""

    def __init__(self):
        self.files, self.broken, self.slow, self.asked = {}, set(), set(), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                body = outer.files.get(self.path)
                if self.path in outer.slow:
                    time.sleep(0.6)
                self.send_response(404 if body is None else 200)
                body = body or b""
                self.send_header(
                    "Content-Length", str(len(body) + (1000 if self.path in outer.broken else 0))
                )
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        # A client that hangs up early is part of a test, and no reason to write to stderr.
        self.http.handle_error = lambda *_: None
        self.base = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def server(monkeypatch):
    running = Server()
    for name in download.ARCHIVES:
        monkeypatch.setitem(download.ARCHIVES, name, f"{running.base}/{name}")
    yield running
    running.http.shutdown()
    running.http.server_close()


def expect(monkeypatch, name, *contents):
    """Make the catalog expect these contents of the dataset's files."""
    entry = CATALOG[name]
    remotes = [
        replace(remote, sha256=hashlib.sha256(content).hexdigest())
        for remote, content in zip(entry.remotes, contents, strict=False)
    ]
    monkeypatch.setitem(CATALOG, name, replace(entry, remotes=tuple(remotes)))


HTRU = b"1,2,3,4,5,6,7,8,0\r1,2,3,4,5,6,7,9,1"
HTRU_PATH = "/uci/372/htru2.zip"


def left_behind(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
def test_fetch_verifies_and_writes_the_published_bytes(server, monkeypatch, tmp_path, end):
    expect(monkeypatch, "htru_2", HTRU)
    server.files[HTRU_PATH] = zipped({"HTRU_2.csv": HTRU.replace(b"\r", end) + end, "Readme.txt": b"x"})
    done = fetch("htru_2")
    assert done.paths == (tmp_path / "cache/sf2el/htru_2/HTRU_2.csv",)
    assert done.paths[0].read_bytes() == HTRU
    assert left_behind(tmp_path) == [done.paths[0]]
    monkeypatch.setitem(CATALOG, "htru_2", replace(CATALOG["htru_2"], rows=2, positives=1))
    assert load("htru_2").y.tolist() == [-1.0, 1.0]


def test_a_file_that_is_there_and_right_is_not_fetched_again(server, monkeypatch, tmp_path):
    expect(monkeypatch, "htru_2", HTRU)
    server.files[HTRU_PATH] = zipped({"HTRU_2.csv": HTRU})
    path = fetch("htru_2", tmp_path).paths[0]
    fetch("htru_2", tmp_path)
    assert len(server.asked) == 1
    path.write_bytes(HTRU[:20])
    fetch("htru_2", tmp_path)
    assert path.read_bytes() == HTRU
    assert len(server.asked) == 2


def test_svmguide3_is_its_training_file_and_then_its_test_file(server, monkeypatch, tmp_path):
    expect(monkeypatch, "svmguide3", b"-1 1:0\n+1 1:1\n+1 1:1\n")
    server.files |= {"/libsvm/svmguide3": b"-1 1:0 \n+1 1:1 \n", "/libsvm/svmguide3.t": b"+1 1:1"}
    assert fetch("svmguide3", tmp_path).paths[0].read_bytes() == b"-1 1:0\n+1 1:1\n+1 1:1\n"


def test_without_the_preprocessed_file_the_raw_one_is_kept(server, monkeypatch, tmp_path):
    raw, ready = b"1,2\n3,4", b"X1_f1,X2_f1\n"
    expect(monkeypatch, "diabetes", raw, ready)
    server.files["/brownlee/pima-indians-diabetes.csv"] = raw
    paths, problems = fetch("diabetes", tmp_path)
    assert [path.name for path in paths] == ["pima-indians-diabetes.csv"]
    assert "404" in problems[0]
    server.files["/fesl/diabetes.csv"] = ready
    paths, problems = fetch("diabetes", tmp_path)
    assert paths[1].read_bytes() == ready
    assert not problems


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "404"),
        (zipped({"HTRU_2.csv": HTRU + b"0"}), "is not the published file"),
        (zipped({"other.csv": HTRU}), "There is no item named"),
        (zipped({"../HTRU_2.csv": HTRU}), "There is no item named"),
        (b"<html>sorry</html>", "not a zip file"),
        (zipped({"HTRU_2.csv": HTRU})[:60], "not a zip file"),
        (zipped({"HTRU_2.csv": b"0" * 50_000}), "more than"),
        (os.urandom(50_000), "more than"),
    ],
)
def test_a_broken_download_says_why_and_leaves_nothing_behind(server, monkeypatch, tmp_path, answer, words):
    monkeypatch.setattr(download, "LARGEST", 40_000)
    expect(monkeypatch, "htru_2", HTRU)
    if answer is not None:
        server.files[HTRU_PATH] = answer
    with pytest.raises(FetchError, match=words) as caught:
        fetch("htru_2", tmp_path / "into")
    assert str(caught.value).startswith("Fetching htru_2")
    assert str(caught.value).endswith("nothing was kept.")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("how", ["broken", "slow"])
def test_a_download_that_breaks_off_or_hangs_is_given_up(server, monkeypatch, tmp_path, how):
    monkeypatch.setattr(download, "SILENCE", 0.2)
    expect(monkeypatch, "diabetes", b"1,2\n3,4")
    address = "/brownlee/pima-indians-diabetes.csv"
    server.files[address] = b"1,2\n3,4"  # all of it, so that only the promised length tells
    getattr(server, how).add(address)
    with pytest.raises(FetchError, match=r"breaks off after 7 of 1007 bytes|timed out"):
        fetch("diabetes", tmp_path)
    assert left_behind(tmp_path) == []


def test_a_zip_is_never_unpacked_by_its_own_names(server, monkeypatch, tmp_path):
    expect(monkeypatch, "htru_2", HTRU)
    server.files[HTRU_PATH] = zipped({"HTRU_2.csv": HTRU, "../../evil": b"x", "/evil": b"x"})
    (path,) = fetch("htru_2", tmp_path / "a/b").paths
    assert left_behind(tmp_path) == [path]


def test_an_archive_out_of_reach_and_a_folder_that_is_a_file(server, monkeypatch, tmp_path):
    expect(monkeypatch, "htru_2", HTRU)
    server.files[HTRU_PATH] = zipped({"HTRU_2.csv": HTRU})
    (tmp_path / "taken").write_text("")
    with pytest.raises(FetchError, match=r"HTRU_2.csv could not be written: .*\.$"):
        fetch("htru_2", tmp_path / "taken")
    server.http.shutdown()
    server.http.server_close()
    with pytest.raises(FetchError, match="nothing was kept"):
        fetch("htru_2", tmp_path)


def test_a_write_that_fails_leaves_nothing_behind(server, monkeypatch, tmp_path):
    expect(monkeypatch, "htru_2", HTRU)
    server.files[HTRU_PATH] = zipped({"HTRU_2.csv": HTRU})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(FetchError, match="could not be written: No space left on device"):
        fetch("htru_2", tmp_path)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("name", ["swiss", "rfid"])
def test_generated_datasets_have_nothing_to_fetch(name):
    with pytest.raises(ValueError, match=f"{name} is (generated|simulated): there is nothing to fetch"):
        fetch(name)


# ---- the command


def test_the_list_goes_on_where_datasets_are_missing_or_damaged(write):
    folder = write(CREDIT, "credit-a/crx.data").parents[1]
    result = CliRunner().invoke(command, ["--json", "--data-dir", str(folder)])
    assert result.exit_code == 0
    found = {one["name"]: one for one in json.loads(result.stdout)}
    assert tuple(found) == datasets.names()
    assert [name for name, one in found.items() if one["here"]] == ["swiss", "rfid"]
    assert "3 rows where 653" in found["credit-a"]["problem"]
    assert found["magic04"]["source"] == "sf2el datasets fetch magic04"
    assert found["magic04"]["majority"] == pytest.approx(12332 / 19020)
    table = CliRunner().invoke(command, ["--data-dir", str(folder)]).stdout
    lines = {line.split()[0]: line for line in table.splitlines()}
    assert "damaged" in lines["credit-a"]
    assert "rfid (simulated)" in lines["rfid"]
    assert lines["htru_2"].split()[1:5] == ["17898", "8", "5", "0.908"]


def test_fetch_all_fetches_what_it_can_and_leaves_with_one(server, monkeypatch, tmp_path):
    expect(monkeypatch, "htru_2", HTRU)
    server.files[HTRU_PATH] = zipped({"HTRU_2.csv": HTRU})
    result = CliRunner().invoke(command, ["fetch", "all", "--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert "Not fetched: credit-a, diabetes, svmguide3, magic04." in result.stderr
    assert "swiss: generated, nothing to fetch." in result.stdout
    assert left_behind(tmp_path) == [tmp_path / "htru_2/HTRU_2.csv"]
    assert CliRunner().invoke(command, ["--data-dir", str(tmp_path), "fetch", "htru_2"]).exit_code == 0
    assert CliRunner().invoke(command, ["fetch", "iris"]).exit_code == 2


# ---- the real files


@real_files
@pytest.mark.parametrize("name", sorted(CATALOG))
def test_real_datasets_have_the_papers_sizes(name):
    data, entry = load(name, REAL), CATALOG[name]
    assert (data.rows, data.d1, data.d2) == (entry.rows, entry.d1, entry.d2)
    assert int((data.y > 0).sum()) == entry.positives
    assert data.old.min() == 0.0
    assert data.old.max() == 1.0
    assert data.majority == entry.majority


@real_files
@pytest.mark.parametrize("name", ["credit-a", "diabetes", "svmguide3"])
def test_our_preprocessing_is_the_published_one(name):
    data = load(name, REAL)
    raw = CATALOG[name].files[1].read(Path(REAL) / CATALOG[name].files[1].path)
    assert np.array_equal(raw.old, data.old)
    assert np.array_equal(raw.y, data.y)
    matrix = np.linalg.lstsq(data.old, data.new, rcond=None)[0]
    assert np.linalg.norm(data.old @ matrix - data.new) < 1e-12 * np.linalg.norm(data.new)
    assert data.orders.shape == (10, data.rows)
    assert np.array_equal(np.sort(data.orders, axis=1), np.tile(np.arange(data.rows), (10, 1)))
    assert len({order.tobytes() for order in data.orders}) == 10


@real_files
@pytest.mark.parametrize("name", ["htru_2", "magic04"])
def test_the_new_space_keeps_all_its_dimensions(name):
    data = load(name, REAL)
    matrix = np.linalg.lstsq(data.old, data.new, rcond=None)[0]
    assert np.all((matrix > 0.0) & (matrix < 1.0))
    assert np.linalg.cond(matrix) < 20.0


@real_files
def test_facts_of_the_raw_files():
    root = Path(REAL)
    X, y = read_libsvm(root / "svmguide3/svmguide3_train_test.txt", 22)
    assert np.array_equal(X[1243:], X[1202:1243])
    assert np.all(y[1243:] == 1.0)
    assert np.all(X[:, 21] == 0.0)
    assert np.all(min_max(X)[:, 21] == 0.0)
    assert b"\n" not in (root / "htru_2/HTRU_2.csv").read_bytes()
    names = (root / "credit-a/crx.names").read_text()
    for column, values in CREDIT_VALUES.items():
        assert f"A{column + 1}:\t{', '.join(values)}." in names


@real_files
def test_the_real_files_are_those_that_fetch_would_accept():
    for entry in CATALOG.values():
        for remote in entry.remotes:
            data = (Path(REAL) / remote.path).read_bytes()
            assert hashlib.sha256(data).hexdigest() == remote.sha256
            assert download.canonical(data, remote.newline, remote.newline_at_end) == data
