"""Arrays and frames as rows and labels: what is taken, and what is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el import SF2EL, SF2ELRegressor
from sf2el.inputs.tables import labels_of, table_of


def rows_of(X, **options):
    table = table_of(X, options.get("features"), None)
    return [table.row(i) for i in range(len(table.rows))]


# ---- labels


def frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return pd.DataFrame, pl.DataFrame


@pytest.mark.parametrize("which", [0, 1])
def test_a_frame_of_one_column_is_its_column(which):
    frame = frames()[which]
    assert list(labels_of(frame({"y": ["a", None, "b"]}), 3)) == ["a", None, "b"]
    assert list(labels_of(frame({"y": [1]}), 1)) == [1]
    assert list(labels_of(np.array([[1], [0]]), 2)) == [1, 0]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", [SF2EL, SF2ELRegressor])
def test_a_wider_frame_of_labels_is_refused(which, kind):
    frame = frames()[which]
    X, model = np.ones((2, 1)), kind()
    for y in (frame({"a": [1, 0], "b": [0, 1]}), np.eye(2)):
        with pytest.raises(ValueError, match="one label for each row, not 2 columns"):
            model.learn_many(X, y)
    with pytest.raises(ValueError, match="one label for each row, not 3 dimensions"):
        model.learn_many(X, np.ones((2, 1, 1)))
    model.learn_many(X, frame({"a": [1, 0]}))
    assert model.rows_seen == 2


@pytest.mark.parametrize("y", [np.array(1), np.array("ab"), 1, "ab", b"ab", {1, 0}, {1: 1, 0: 0}])
def test_labels_that_are_no_list_are_refused(y):
    with pytest.raises(ValueError, match="y must have one label for each row, not be"):
        SF2EL().learn_many(np.ones((2, 1)), y)


def test_masked_labels_are_not_known():
    assert list(labels_of(np.ma.array([1, 0], mask=[False, True]), 2)) == [1, None]


# ---- rows


@pytest.mark.parametrize("dtype", [float, int, object])
def test_masked_values_are_not_observed(dtype):
    X = np.ma.array([[1, 2], [3, 4]], mask=[[False, True], [False, False]], dtype=dtype)
    assert rows_of(X) == [{0: 1.0}, {0: 3.0, 1: 4.0}]
    assert rows_of(np.ma.array([[1.0, np.inf]], mask=[[False, True]])) == [{0: 1.0}]
    assert rows_of(np.ma.array([[1.0]])) == [{0: 1.0}]


@pytest.mark.parametrize(
    "X",
    [
        [["1", "2"]],
        [["1", 2.0]],
        [[b"1"]],
        np.array([["1", 2.0]], dtype=object),
        np.array([["2020-01-01"]], dtype="datetime64[D]"),
        np.array([[3]], dtype="timedelta64[s]"),
        np.array([[np.timedelta64(3, "s")]], dtype=object),
        np.array([[1j]]),
        [[1.0], [1.0, 2.0]],
        {"a": 1.0},
    ],
)
def test_what_is_no_number_in_a_row_is_none_in_a_table(X):
    for learn in (SF2EL().learn_many, SF2ELRegressor().learn_many):
        with pytest.raises(ValueError, match="something that is not a number"):
            learn(X, [1])


@pytest.mark.parametrize("which", [0, 1])
def test_frames_of_text_and_times_are_refused(which):
    frame = frames()[which]
    for column in (
        ["1"],
        np.array(["2020-01-01"], dtype="datetime64[ms]"),
        np.array([3], dtype="timedelta64[ms]"),
    ):
        with pytest.raises(ValueError, match="Column 'b' holds something that is not a number"):
            rows_of(frame({"a": [1.0], "b": column}))


def test_a_frame_that_is_not_computed_and_a_row_without_a_value_are_told():
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"collect\(\)"):
        SF2EL().learn_many(polars.LazyFrame({"a": [1.0]}), [1])
    with pytest.raises(ValueError, match="Row 1 of these has no observed feature"):
        SF2EL().learn_many(np.array([[1.0, 2.0], [np.nan, np.nan]]), [1, 0])


def test_numbers_of_any_kind_are_taken():
    assert rows_of([[1, None]]) == [{0: 1.0}]
    assert rows_of(np.array([[True, np.float32(2.5), 3, None]], dtype=object)) == [{0: 1.0, 1: 2.5, 2: 3.0}]
    assert rows_of(np.array([[True, False]])) == [{0: 1.0, 1: 0.0}]
    assert rows_of(np.array([[1.5]], dtype=np.float16)) == [{0: 1.5}]


@pytest.mark.parametrize("features", [np.array("ab"), np.array([["a", "b"]]), 3, {"a", "b"}])
def test_features_that_are_no_list_are_refused(features):
    with pytest.raises(ValueError, match="features must be a list"):
        rows_of(np.ones((1, 2)), features=features)
    assert rows_of(np.ones((1, 2)), features=np.array(["a", "b"])) == [{"a": 1.0, "b": 1.0}]
