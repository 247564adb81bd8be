"""Readers: what a block holds, three readings of CSV that agree, places to go on, and hostile files."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf2el.sources import DataError, chunks, csv_source, jsonl, open_source
from sf2el.sources.block import MISSING
from sf2el.sources.csv_exact import Layout, read_exactly
from sf2el.sources.csv_fast import read_by_splitting
from sf2el.sources.labels import LabelReader


def write(tmp_path, content, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, label="y", **options):
    """Return names, values, labels and first rows of all blocks."""
    source = open_source(path, label, **options)
    try:
        return list(source.blocks())
    finally:
        source.close()


def values(blocks):
    return np.vstack([block.rows for block in blocks]), [label for block in blocks for label in block.labels]


class Pipe(io.BytesIO):
    def seekable(self):
        return False


# ---- CSV


def test_block_holds_names_values_and_labels(tmp_path):
    (block,) = read(write(tmp_path, "a,y,b\n1,x,2\n,z,-3.5e2\nNA,,nan\n"))
    assert block.names == ("a", "b")
    np.testing.assert_array_equal(block.rows, [[1, 2], [np.nan, -350], [np.nan, np.nan]])
    assert block.labels == ["x", "z", None]
    assert block.first == 0


@pytest.mark.parametrize(
    "content",
    [
        "a,b,y\r\n1,2,u\r\n3,4,v\r\n",
        "a,b,y\n1,2,u\n3,4,v",
        "\ufeffa,b,y\n1,2,u\n3,4,v\n",
        "a;b;y\n1;2;u\n3;4;v\n",
        "a\tb\ty\n1\t2\tu\n3\t4\tv\n",
        'a,b,y\n"1","2",u\n3,4,"v"\n',
        '"a",b,y\n1,2,u\n\n3,4,v\n\n\n',
        "a, b ,y\n 1, 2 , u\n3,4,v\n",
        "a,b,y\n1,2,u\r3,4,v\r",
    ],
)
def test_dialects_read_the_same(tmp_path, content):
    rows, labels = values(read(write(tmp_path, content)))
    assert rows.tolist() == [[1, 2], [3, 4]] and labels == ["u", "v"]


@pytest.mark.parametrize(
    ("name", "content", "names"),
    [
        ("rows.csv", '"temp, C";hum;y\n1;2;u\n', ("temp, C", "hum")),
        ("rows.csv", '"a,b,c,d";"say ""x, y, z""";y\n1;2;u\n', ("a,b,c,d", 'say "x, y, z"')),
        ("rows.csv", "temp, C;hum;y\n1;2;u\n", ("temp, C", "hum")),
        ("rows.tsv", "temp, C\thum, %, rel\ty\n1\t2\tu\n", ("temp, C", "hum, %, rel")),
        ("rows.TSV", "a,b,c\ty\n1\tu\n", ("a,b,c",)),
        ("rows.tsv", "a,b,y\n1,2,u\n", ("a", "b")),
        ("rows.csv", "a;b,c|d|y\n1|2|u\n", ("a;b,c", "d")),
    ],
)
def test_the_delimiter_is_found_outside_quotes(tmp_path, name, content, names):
    (block,) = read(write(tmp_path, content, name))
    assert block.names == names and block.rows.tolist() == [[1.0, 2.0][: len(names)]]


CELLS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda v: abs(v) < 1e100).map(repr),
    st.integers(-1000, 1000).map(str),
    st.sampled_from(["", "NA", "nan", "1e5", "+2", "0.1", "x", "inf", "1_0", " 7", "1e400", '"8"', "é"]),
)
TEXTS = st.sampled_from(["u", "v w", "", "class_1", "é", '"q,r"', '"s"'])
LINES = st.lists(st.tuples(CELLS, CELLS, TEXTS).map(",".join), min_size=1, max_size=8)
ODD = st.sampled_from([None, "1,2", "1,2,3,4", ""])


@given(LINES, ODD, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_fast_reading_agrees_with_the_exact_one_or_gives_way(lines, odd, end, ended):
    layout = Layout("f", ("a", "b", "y"), 2, (0, 1), ",")
    if odd is not None:
        lines = [*lines[:1], odd, *lines[1:]]
    chunk = (end.join(lines) + (end if ended else "")).encode()
    exact = read_exactly(chunk, layout, 2)
    found = read_by_splitting(chunk, layout)
    if found is None:
        return
    assert exact.error is None
    np.testing.assert_array_equal(found.rows, exact.rows)
    reader, other = LabelReader(kind="text"), LabelReader(kind="text")
    assert reader.read(found.labels) == other.read(exact.labels)


def test_whole_numbers_are_int_labels_and_the_first_label_decides(tmp_path):
    assert values(read(write(tmp_path, "a,y\n1,1.0\n1,\n1,-2\n1,3e0\n")))[1] == [1, None, -2, 3]
    assert values(read(write(tmp_path, "a,y\n1,up\n1,2\n")))[1] == ["up", "2"]
    assert values(read(write(tmp_path, "a,y\n1,2\n"), kind="text"))[1] == ["2"]
    assert values(read(write(tmp_path, "a,y\n1,0.5\n1,2\n1,\n"), regression=True))[1] == [0.5, 2.0, None]


ABOVE = 2**53
"""The next whole number is no float."""


def test_large_whole_numbers_stay_different_labels_in_every_format(tmp_path):
    wanted = [ABOVE, ABOVE + 1, None, -(2**63), 2**63 - 1, 7]
    cells = [f"{'' if label is None else label}" for label in wanted]
    path = write(tmp_path, "a,y\n" + "".join(f"1,{cell}\n" for cell in cells))
    assert values(read(path))[1] == wanted
    lines = "".join(json.dumps({"a": 1, "y": label}) + "\n" for label in wanted)
    assert values(read(write(tmp_path, lines, "rows.jsonl")))[1] == wanted
    lines = "".join(json.dumps({"a": 1, "y": cell}) + "\n" for cell in cells)
    assert values(read(write(tmp_path, lines, "texts.jsonl")))[1] == wanted
    pl = pytest.importorskip("polars")
    kinds = [(pl.Int64, wanted), (pl.String, cells), (pl.UInt64, [2**63 - 1, ABOVE, ABOVE + 1, None])]
    for kind, labels in [*kinds, (pl.Decimal(38, 0), wanted), (pl.Int8, [1, None, -3])]:
        frame = pl.DataFrame({"a": [1.0] * len(labels), "y": pl.Series(labels, dtype=kind, strict=False)})
        frame.write_parquet(tmp_path / "rows.parquet")
        found = values(read(tmp_path / "rows.parquet"))[1]
        assert found == (wanted if kind == pl.String else labels), kind
        assert all(type(label) is int for label in found if label is not None), kind
    pl.DataFrame({"a": [1.0, 1.0], "y": [True, False]}).write_parquet(tmp_path / "rows.parquet")
    assert values(read(tmp_path / "rows.parquet"))[1] == [1, 0]


@pytest.mark.parametrize(
    "large", [str(2**63), str(-(2**63) - 1), "1e30", "1e400", "1" + "0" * 400, "7" * 5000]
)
def test_a_whole_number_beyond_64_bits_is_refused_where_it_stands(tmp_path, large):
    number = large if len(large) < 400 else large[:40]
    said = rf"line 4, column 'y': the label {number}(\.\.\.)? is no whole number of 64 bits; make all"
    for first in ("1", ""):
        source = open_source(write(tmp_path, f"a,y\n1,{first}\n2,\n3,{large}\n4,1\n"), "y")
        blocks = source.blocks()
        assert next(blocks).rows.tolist() == [[1], [2]]
        with pytest.raises(DataError, match=said) as caught:
            next(blocks)
        source.close()
        assert len(str(caught.value)) < 300 + len(str(tmp_path))
    assert values(read(write(tmp_path, f"a,y\n1,u\n1,{large}\n")))[1] == ["u", large], "text is text"


def test_infinity_is_text_and_no_number(tmp_path):
    assert values(read(write(tmp_path, "a,y\n1,inf\n1,-Infinity\n")))[1] == ["inf", "-Infinity"]
    with pytest.raises(DataError, match="the label 'inf' is text, but"):
        read(write(tmp_path, "a,y\n1,1\n1,inf\n"))
    with pytest.raises(DataError, match="line 1: the label inf is neither text nor a whole number"):
        read(write(tmp_path, '{"a": 1, "y": Infinity}\n', "rows.jsonl"))


def test_the_readme_names_every_word_that_means_not_observed(tmp_path):
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    assert all(f"`{word}`" in readme for word in MISSING if word)
    lines = [f"{word},1,{word}\n" for word in MISSING]
    (block,) = read(write(tmp_path, "a,b,y\n" + "".join(lines) + "2,1,u\n"))
    assert np.isnan(block.rows[:-1, 0]).all() and block.rows[-1, 0] == 2.0
    assert block.labels == [None] * len(MISSING) + ["u"]


def test_ignored_columns_may_hold_anything(tmp_path):
    rows, _ = values(read(write(tmp_path, ",city,a,y\n0,Paris,1,u\n1,,2,v\n"), ignore=["", "city"]))
    assert rows.tolist() == [[1], [2]]


def test_quoted_line_ends_do_not_split_rows_across_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "SIZE", 16)
    path = write(tmp_path, "a,note,y\n" + "".join(f'{t},"x\ny, {t}",u\n' for t in range(50)))
    rows, _ = values(read(path, ignore=["note"]))
    assert rows[:, 0].tolist() == list(range(50))


@pytest.mark.parametrize("size", [7, 64, 1 << 18])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "pipe"])
def test_reading_goes_on_at_the_place_of_any_block(tmp_path, monkeypatch, size, kind):
    monkeypatch.setattr(chunks, "SIZE", size)
    if kind == "jsonl":
        path = write(tmp_path, "".join(json.dumps({"a": t, "y": t % 3}) + "\n" for t in range(40)), "r.jsonl")
    else:
        path = write(tmp_path, "a,y\n" + "".join(f"{t},{t % 3}\n" for t in range(40)))

    def opened():
        if kind != "pipe":
            return open_source(path, "y")
        pipe = Pipe(path.read_bytes())
        return csv_source.CsvSource(pipe, "pipe", "y", ignore=(), labels=LabelReader(), size=None)

    source = opened()
    blocks = list(source.blocks())
    source.close()
    for number, block in enumerate(blocks):
        source = opened()
        rest = list(source.blocks(block.place))
        source.close()
        np.testing.assert_array_equal(values(rest)[0], values(blocks[number:])[0])
        assert values(rest)[1] == values(blocks[number:])[1]
        assert rest[0].place == block.place


def test_other_data_are_refused_when_reading_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "SIZE", 64)
    path = write(tmp_path, "a,y\n" + "".join(f"{t},{t % 3}\n" for t in range(100)))
    place = read(path)[-1].place
    source = open_source(write(tmp_path, path.read_bytes().replace(b"3,", b"7,"), "other.csv"), "y")
    with pytest.raises(DataError, match="is not what was read before"):
        next(source.blocks(place))
    source.close()
    source = open_source(write(tmp_path, path.read_bytes()[:50], "short.csv"), "y")
    with pytest.raises(DataError, match="is shorter than"):
        next(source.blocks(place))
    source.close()


# ---- hostile files


HOSTILE = {
    "text": (
        "a,y\n1,u\ntwo,u\n",
        "rows.csv, line 3, column 'a': 'two' is not a number; leave the cell empty",
    ),
    "text column": ("a,city,y\n1,Rome,u\n", "line 2, column 'city': 'Rome' .*--ignore city"),
    "infinity": ("a,y\n1,u\n-inf,u\n", "line 3, column 'a': '-inf' is not within"),
    "overflow": ("a,y\n1e400,u\n", "line 2, column 'a': '1e400' is not within"),
    "too large": ("a,y\n1e101,u\n", "line 2, column 'a'"),
    "underscore": ("a,y\n1_000,u\n", "'1_000' is not a number"),
    "no label": ("a,b\n1,2\n", "has no column 'y'; its columns are a, b"),
    "no header": ("1.5,2\n1,2\n", "first line must name the columns"),
    "empty": ("", "is empty"),
    "blank": ("\n", "is empty"),
    "header only": ("a,y\n", "has a header but no rows"),
    "short line": ("a,b,y\n1,2,u\n1,u\n1,2,u\n", "line 3: 2 cells for 3 columns; correct"),
    "long line": ("a,b,y\n1,2,u\n1,2,3,u\n", "line 3: 4 cells for 3 columns; correct"),
    "cut off": ("a,b,y\n1,2,u\n1,2", "line 3: 2 cells for 3 columns; the file seems to be cut off"),
    "two names": ("a,a,y\n1,2,u\n", "two columns 'a'"),
    "no name": (",a,y\n1,2,u\n", "column 1 of the header has no name.*--ignore ''"),
    "only label": ("y\nu\n", "it needs a feature"),
    "latin-1": (b"a,y\n1,u\n2,caf" + b"\xe9\n", "line 3: the byte 0xe9 is not UTF-8"),
    "latin-1 header": (b"\xe9,y\n1,u\n", "line 1: the byte 0xe9"),
    "gzip": (gzip.compress(b"a,y\n1,u\n"), r"compressed \(gzip\); unpack it: zcat /.*rows.csv \| sf2el run"),
    "bzip2": (bz2.compress(b"a,y\n1,u\n"), r"compressed \(bzip2\); unpack it: bzcat /"),
    "xz": (lzma.compress(b"a,y\n1,u\n"), r"compressed \(xz\); unpack it: xzcat /"),
    "zip": (b"PK\x03\x04\x14\x00", r"compressed \(zip\); unpack it: unzip -p /"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", r"compressed \(zstd\); unpack it: zstdcat /"),
    "no bzip2": ("BZh,a\n1,2\n", "has no column 'y'; its columns are BZh, a"),
    "decimal comma": (
        "a;y\n0;u\n-1,288;u\n",
        "line 3, column 'a': '-1,288' is not a number; write numbers with a decimal",
    ),
    "CR alone": ("a,y\r1,u\r2,v\r", "rows.csv: its lines end with CR alone; save it with LF"),
    "fraction": ("a,y\n1,u\n", None),
    "fraction label": ("a,y\n1,1\n1,1.5\n", "line 3, column 'y': the label 1.5 is neither.*--regression"),
    "mixed labels": ("a,y\n1,1\n1,\n1,up\n", "line 4, column 'y': the label 'up' is text"),
    "long name": ("a" * 200_000 + ",y\n1,u\n", "line 1: field larger than"),
    "quote": ('a,y\n1,"u\n2,v\n', "line 2"),
    "nul": (b"a,y\n1\x00,u\n", "line 2"),
}


@pytest.mark.parametrize("name", [name for name, (_, said) in HOSTILE.items() if said])
def test_hostile_file_is_a_sentence_that_says_where(tmp_path, name):
    content, said = HOSTILE[name]
    with pytest.raises(DataError, match=said) as caught:
        read(write(tmp_path, content))
    assert str(caught.value).endswith((".", "...")) and "\n" not in str(caught.value)


def test_rows_before_an_error_are_yielded(tmp_path):
    source = open_source(write(tmp_path, "a,y\n1,u\n2,v\nx,u\n4,u\n"), "y")
    blocks = source.blocks()
    assert next(blocks).rows.tolist() == [[1], [2]]
    with pytest.raises(DataError, match="line 4"):
        next(blocks)
    source.close()


def test_line_without_end_is_refused_in_constant_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "MOST", 1 << 16)
    monkeypatch.setattr(chunks, "SIZE", 1 << 12)
    with pytest.raises(DataError, match="line 2: the line does not end"):
        read(write(tmp_path, b"a,y\n" + b"1" * (1 << 18)))
    with pytest.raises(DataError, match="line 1: the line does not end"):
        read(write(tmp_path, b"a" * (1 << 18)))
    with pytest.raises(DataError, match="line 2: a double quote is not closed"):
        read(write(tmp_path, b'a,y\n"' + b"1,2\n" * (1 << 16)))


def test_regression_label_must_be_a_number(tmp_path):
    with pytest.raises(DataError, match="line 3, column 'y': the label 'up' is not a number"):
        read(write(tmp_path, "a,y\n1,2\n1,up\n"), regression=True)
    with pytest.raises(DataError, match=r"the label '1,5' is .* --regression needs; write numbers with a"):
        read(write(tmp_path, "a;y\n1;2\n1;1,5\n"), regression=True)


def test_compressed_data_on_a_pipe_and_spreadsheets_say_what_to_do(tmp_path, monkeypatch):
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(gzip.compress(b"a,y\n1,u\n"))))
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(DataError, match=r"input is compressed \(gzip\); unpack it: zcat FILE \| sf2el run"):
        open_source("-", "y")
    with pytest.raises(DataError, match=r"rows.xlsx is a spreadsheet; save it as CSV\."):
        open_source(write(tmp_path, b"PK\x03\x04\x14\x00", "rows.xlsx"), "y")


@pytest.mark.parametrize("bad", ["nosuch", "y"])
def test_ignored_columns_are_checked(tmp_path, bad):
    with pytest.raises(DataError, match=bad):
        read(write(tmp_path, "a,y\n1,u\n"), ignore=[bad])


def test_folder_and_unknown_format_are_refused(tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        open_source(tmp_path, "y")
    with pytest.raises(ValueError, match="format must be"):
        open_source(write(tmp_path, "a,y\n1,u\n"), "y", format="xls")


# ---- JSON lines


def test_json_lines_may_differ_in_keys(tmp_path):
    rows = [{"a": 1, "y": "u"}, {"b": 2.5, "a": None}, {}, {"y": "v", "c": True, "id": "x"}]
    path = write(tmp_path, "\n".join(map(json.dumps, rows)) + "\n\n", "rows.jsonl")
    (block,) = read(path, ignore=["id"])
    assert block.names == ("a", "b", "c")
    nan = np.nan
    wanted = [[1, nan, nan], [nan, 2.5, nan], [nan, nan, nan], [nan, nan, 1]]
    np.testing.assert_array_equal(block.rows, wanted)
    assert block.labels == ["u", None, None, "v"]


def test_rows_that_share_no_keys_make_no_vast_table(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "MOST_CELLS", 1000)
    rows = [{"a": i, f"stray{i}": 1, "y": "uv"[i % 2]} for i in range(400)]
    path = write(tmp_path, "\n\n".join(map(json.dumps, rows)) + "\n", "rows.jsonl")
    blocks = read(path)
    assert all(block.rows.size <= 1000 for block in blocks)
    assert [value for block in blocks for value in block.rows[:, 0]] == list(range(400))
    assert [label for block in blocks for label in block.labels] == ["u", "v"] * 200
    for begun in blocks[:: len(blocks) // 5]:
        source = open_source(path, "y")
        assert [value for block in source.blocks(begun.place) for value in block.rows[:, 0]] == list(
            range(begun.first, 400)
        )
        source.close()
    with pytest.raises(DataError, match="line 801: this is not JSON"):
        read(write(tmp_path, path.read_text() + "\n{", "rows.jsonl"))


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
@pytest.mark.parametrize("place", [0, 150, 300])
def test_one_long_line_makes_no_vast_table(tmp_path, monkeypatch, place, end):
    monkeypatch.setattr(jsonl, "MOST_CELLS", 1000)
    rows = [{"y": i % 2, "a": i} for i in range(300)]
    rows.insert(place, {"y": 1, "a": -1} | {f"k{j}": j for j in range(900)})
    blocks = read(write(tmp_path, "\n".join(map(json.dumps, rows)) + end, "rows.jsonl"))
    assert all(block.rows.size <= 1000 for block in blocks)
    found = [value for block in blocks for value in block.rows[:, block.names.index("a")]]
    assert found == [row["a"] for row in rows]
    assert [block.first for block in blocks] == np.cumsum([0, *(len(b.rows) for b in blocks[:-1])]).tolist()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"a": 1, "y": 1}\n{"a": 1,\n', "line 2: this is not JSON"),
        ('{"a": 1, "b', r"not JSON \(unterminated string starting at character 10\); correct"),
        ('{"a": 1, "y": 1}\r{"a": 2, "y": 1}\r', "its lines end with CR alone; save it"),
        ('{"a": "x", "y": 1}\n', "line 1, key 'a': 'x' is not a number"),
        ('{"a": [1], "y": 1}\n', "line 1, key 'a'"),
        ('{"a": Infinity, "y": 1}\n', "line 1, key 'a': 'inf' is not within"),
        ('{"a": 1' + "0" * 400 + ', "y": 1}\n', "is not within"),
        ('{"a": 1, "y": [1]}\n', "line 1: the label"),
        ('{"a": 1, "y": 1}\n{"a": 1, "y": "up"}\n', "line 2: the label 'up' is text"),
        ('[{"a": 1}]\n', "this is an array"),
        ('{"a": 1, "y": 1}\n{"a": 1, "a": 2, "y": 1}\n', "line 2: the key 'a' is there twice"),
        ('{"a": 1}\n{"b": 1}\n', "no row has a label 'y'; the keys are a, b"),
        (
            '{"a": 1, "state": "up"}\n',
            r"key 'state': 'up' is not .* \(no row so far has the label 'y'; name it",
        ),
        (b'{"a": 1, "y": "\xe9"}\n', "line 1: the byte 0xe9"),
        ("\n\n", "is empty"),
        ("[" * 100_000 + "\n", "line 1"),
        (
            '{"a": 1, "y": 1}\n{"a": 1, "y": 1' + "0" * 400 + "}\n",
            "line 2: the label 10+... is no whole number",
        ),
        ('{"a": 1, "y": 1}\n{"a": 1' + "0" * 5000 + ', "y": 1}\n', "line 2: a number has too many digits"),
    ],
)
def test_hostile_json_lines_are_a_sentence(tmp_path, content, said):
    with pytest.raises(DataError, match=said):
        read(write(tmp_path, content, "rows.jsonl"))


@pytest.mark.parametrize("bad", ['{"a": 4, "y": 1' + "0" * 400 + "}", '{"a": ' + "1" * 5000 + ', "y": 1}'])
def test_rows_before_too_large_a_number_are_yielded(tmp_path, bad):
    lines = ['{"a": 1, "y": 1}', '{"a": 2, "y": 2}', bad, '{"a": 3, "y": 1}']
    source = open_source(write(tmp_path, "\n".join(lines), "rows.jsonl"), "y")
    blocks = source.blocks()
    assert next(blocks).rows.tolist() == [[1], [2]]
    with pytest.raises(DataError, match=r"rows\.jsonl, line 3: ") as caught:
        next(blocks)
    source.close()
    assert "set_int_max" not in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"regression": True}, {"kind": "whole"}])
def test_json_lines_whose_labels_are_all_null_are_read_and_go_on(tmp_path, monkeypatch, options):
    monkeypatch.setattr(chunks, "SIZE", 64)
    lines = ['{"a": 1, "y": null}', *['{"a": 2}'] * 40]
    blocks = read(write(tmp_path, "\n".join(lines), "rows.jsonl"), **options)
    assert values(blocks)[1] == [None] * 41 and len(blocks) > 2
    source = open_source(tmp_path / "rows.jsonl", "y", **options)
    assert sum(len(block.labels) for block in source.blocks(blocks[-1].place)) == len(blocks[-1].labels)
    source.close()
    with pytest.raises(DataError, match="no row has a label 'y'; the keys are a"):
        read(write(tmp_path, "\n".join(lines[1:]), "rows.jsonl"), **options)


# ---- Parquet


def test_parquet_reads_like_csv(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"a": [1, None, 3], "b": [0.5, float("nan"), None], "t": ["x", "y", "z"], "y": ["u", None, "v"]}
    )
    frame.write_parquet(tmp_path / "rows.parquet")
    (block,) = read(tmp_path / "rows.parquet", ignore=["t"])
    np.testing.assert_array_equal(block.rows, [[1, 0.5], [np.nan, np.nan], [3, np.nan]])
    assert block.labels == ["u", None, "v"]
    for said, options in [("'t': it holds String, not numbers", {}), ("no column 'q'", {"label": "q"})]:
        with pytest.raises(DataError, match=said):
            read(tmp_path / "rows.parquet", **options)
    path = write(tmp_path, (tmp_path / "rows.parquet").read_bytes()[:100], "cut.parquet")
    with pytest.raises(DataError, match="not a whole Parquet file"):
        read(path)


def test_parquet_goes_on_and_names_the_row(tmp_path, monkeypatch):
    pl = pytest.importorskip("polars")
    from sf2el.sources import parquet

    monkeypatch.setattr(parquet, "ROWS", 4)
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"a": np.arange(10.0), "y": [0, 1] * 5}).write_parquet(path)
    blocks = read(path)
    assert [block.first for block in blocks] == [0, 4, 8]
    source = open_source(path, "y")
    assert values(list(source.blocks(blocks[1].place)))[0].ravel().tolist() == list(range(4, 10))
    pl.DataFrame({"a": [0.0] * 5 + [float("inf")], "y": [0] * 6}).write_parquet(path)
    with pytest.raises(DataError, match="row 5, column 'a': inf"):
        read(path)


def test_parquet_without_polars_names_the_extra(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'sf2el\[data\]'"):
        open_source(write(tmp_path, b"PAR1", "rows.parquet"), "y")
