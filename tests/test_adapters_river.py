"""SF2EL as river estimators: every check that river has for its own, and what pipelines ask."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys

import numpy as np
import pytest

from sf2el import SF2EL

river = pytest.importorskip("river")
pd = pytest.importorskip("pandas")

from river import compose, datasets, evaluate, feature_extraction, metrics, preprocessing  # noqa: E402
from river.checks import check_estimator, yield_checks  # noqa: E402

from sf2el.adapters.river import SF2ELClassifier, SF2ELRegressor  # noqa: E402


def cases():
    for kind in (SF2ELClassifier, SF2ELRegressor):
        for params in kind._unit_test_params():
            model = kind(**params)
            names: dict[str, int] = {}
            for check in yield_checks(model):
                names[check.__name__] = names.get(check.__name__, -1) + 1
                name = f"{kind.__name__}-{check.__name__}-{names[check.__name__]}"
                yield pytest.param(model, check, id=name)


@pytest.mark.parametrize(("model", "check"), list(cases()))
def test_rivers_check(model, check):
    random.seed(0)
    check(model.clone())


@pytest.mark.parametrize("kind", [SF2ELClassifier, SF2ELRegressor])
def test_no_check_is_skipped(kind):
    assert kind()._unit_test_skips() == set()


def test_other_settings_pass_too():
    random.seed(0)
    check_estimator(SF2ELClassifier(budget="4KiB", class_weight="balanced", forget=0.01))
    check_estimator(SF2ELRegressor(budget="4KiB", loss="absolute", forget=0.01))


# -- labels and rows


@pytest.mark.parametrize("labels", [(True, False), ("wet", "dry"), (3, 7), (np.True_, np.False_)])
def test_labels_come_out_as_they_came_in(labels):
    model = SF2ELClassifier(budget="8KiB")
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    for t in range(40):
        model.learn_one({"a": t % 4 - 1.5}, labels[t % 4 < 2])
    kind = bool if isinstance(labels[0], np.bool_) else type(labels[0])
    assert type(model.predict_one({"a": 1.5})) is kind
    assert model.predict_one({"a": 1.5}) == labels[False]
    assert {type(label) for label in model.predict_proba_one({"a": 1.0})} == {kind}


def test_is_the_model_inside():
    model, plain = SF2ELClassifier(budget="16KiB", seed=5), SF2EL(budget="16KiB", seed=5)
    for t, (x, y) in enumerate(datasets.ImageSegments().take(150)):
        label = y if t % 3 else None
        assert model.predict_one(x) == plain.predict_one(x)
        assert model.predict_proba_one(x) == plain.predict_proba_one(x)
        model.learn_one(x, label)
        plain.learn_one(x, label)
    assert model.model.to_bytes() == plain.to_bytes()


def test_a_row_that_is_refused_leaves_no_label_behind():
    model = SF2ELClassifier()
    model.learn_one({"a": 1.0}, "wet")
    for x, y in [({"a": "text"}, "dry"), ({"a": 1.0}, 3)]:
        with pytest.raises(ValueError, match=r"not a number|another type"):
            model.learn_one(x, y)
    assert model.predict_proba_one({"a": 1.0}) == {"wet": 1.0}


@pytest.mark.parametrize("nothing", [{}, {"a": None}, {"a": float("nan"), "b": None}])
def test_rows_with_nothing_observed(nothing):
    model, numbers = SF2ELClassifier(), SF2ELRegressor()
    assert model.predict_one(nothing) is None
    assert numbers.predict_one(nothing) == 0.0
    for t in range(10):
        model.learn_one({"a": float(t)}, t % 2 == 0)
        numbers.learn_one({"a": float(t)}, t)
    before = model.model.to_bytes(), numbers.model.to_bytes()
    model.learn_one(nothing, True)
    numbers.learn_one(nothing, 1.0)
    assert (model.model.to_bytes(), numbers.model.to_bytes()) == before
    assert model.predict_proba_one(nothing) == {True: 0.5, False: 0.5}
    assert numbers.predict_one(nothing) == 4.5


@pytest.mark.parametrize("text", [False, True])
def test_frames_are_loops(text):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"), index=np.arange(90) + 1000)
    X[rng.random(X.shape) < 0.3] = np.nan
    y = X["a"].fillna(0.0) > 0
    if text:
        y = y.map({True: "up", False: "down"})
    one, many = SF2ELClassifier(budget="16KiB"), SF2ELClassifier(budget="16KiB")
    for (_, row), label in zip(X.iterrows(), y, strict=True):
        one.learn_one(row.to_dict(), label)
    for start in range(0, 90, 30):
        many.learn_many(X[start : start + 30], y[start : start + 30])
    assert one.model.to_bytes() == many.model.to_bytes()
    found, p = many.predict_many(X), many.predict_proba_many(X)
    assert found.index.equals(X.index)
    assert p.index.equals(X.index)
    assert found.tolist() == [one.predict_one(row.to_dict()) for _, row in X.iterrows()]
    assert set(p.columns) == set(y)
    assert np.allclose(p.sum(axis=1), 1.0)


def test_frames_without_labels():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    model, numbers = SF2ELClassifier(), SF2ELRegressor()
    model.learn_many(X)
    model.learn_many(X, pd.Series(["up", None, "down"]))
    numbers.learn_many(X)
    numbers.learn_many(X, pd.Series([1.0, np.nan, 3.0]))
    assert set(model.predict_proba_many(X).columns) == {"up", "down"}
    assert numbers.predict_many(X).shape == (3,)
    assert model.model.rows_seen == numbers.model.rows_seen == 6


def test_gaps_of_the_kind_pandas_has():
    X = pd.DataFrame({"a": pd.array([1, None, 3, 4], dtype="Int64"), "b": [0.5, 1.5, None, 2.5]})
    model, plain = SF2ELClassifier(), SF2ELClassifier()
    model.learn_many(X, pd.Series(["up", None, "down", "up"], dtype="string"))
    plain.learn_many(X.astype(float), pd.Series(["up", None, "down", "up"], dtype=object))
    assert model.model.to_bytes() == plain.model.to_bytes()
    assert model.predict_proba_many(X).equals(plain.predict_proba_many(X.astype(float)))
    numbers = SF2ELRegressor()
    numbers.learn_many(X, pd.Series([1, None, 3, 4], dtype="Int64"))
    assert numbers.predict_many(X).notna().all()


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, lambda y: pd.Series(y, index=[7, 8, 9])])
def test_labels_of_a_frame_may_be_any_sequence(kind):
    X = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": [0.5, np.nan, 1.5]})
    one, many = SF2ELClassifier(), SF2ELClassifier()
    for t, label in ((0, "up"), (2, "down")):
        one.learn_one(X.loc[t].to_dict(), label)
    many.learn_many(X, kind(["up", "up", "down"]))
    assert many.model.to_bytes() == one.model.to_bytes()
    assert many.predict_many(X).tolist() == [one.predict_one(row) for row in X.to_dict("records")]
    numbers, plain = SF2ELRegressor(), SF2ELRegressor()
    for t, target in ((0, 1.0), (2, 3.0)):
        plain.learn_one(X.loc[t].to_dict(), target)
    numbers.learn_many(X, kind([1.0, 2.0, 3.0]))
    assert numbers.model.to_bytes() == plain.model.to_bytes()


@pytest.mark.parametrize("estimator", [SF2ELClassifier, SF2ELRegressor])
@pytest.mark.parametrize(
    "y", [[1, 0], np.array([1, 0, 1, 0]), pd.Series([1]), 1, "abc", np.array(1), {1, 2, 3}]
)
def test_labels_that_do_not_match_the_rows_are_refused_before_learning(estimator, y):
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    model = estimator()
    model.learn_many(X, [1, 0, 1])
    before = model.model.to_bytes()
    with pytest.raises(ValueError, match="label"):
        model.learn_many(X, y)
    assert model.model.to_bytes() == before
    assert model.predict_many(X).notna().all()


def test_what_is_no_row_and_no_frame_is_a_sentence():
    for model in (SF2ELClassifier(), SF2ELRegressor()):
        with pytest.raises(ValueError, match="pandas frame, not as ndarray"):
            model.learn_many(np.ones((2, 1)), [1, 0])
        with pytest.raises(ValueError, match="pandas frame, not as list"):
            model.predict_many([[1.0]])
        for row, said in (
            ([1.0], "must be a dict"),
            ({"a": pd.NA}, "not a number"),
            ({"a": np.ones(2)}, "not"),
        ):
            with pytest.raises(ValueError, match=said):
                model.learn_one(row, 1)
        assert model.model.rows_seen == 0


def test_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="same name"):
        SF2ELClassifier().learn_many(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), pd.Series([True]))


# -- among other estimators


def test_in_pipelines():
    model = preprocessing.StandardScaler() | SF2ELClassifier(budget="16KiB")
    score = evaluate.progressive_val_score(datasets.Phishing().take(400), model, metrics.ROCAUC())
    assert score.get() > 0.85
    numbers = compose.Select("gallup", "ipsos", "rasmussen") | SF2ELRegressor(budget="16KiB")
    score = evaluate.progressive_val_score(datasets.TrumpApproval().take(400), numbers, metrics.MAE())
    assert score.get() < 1.0


def test_on_hashed_text():
    model = compose.Pipeline(
        ("words", feature_extraction.BagOfWords(lowercase=True)),
        ("hash", preprocessing.FeatureHasher(n_features=8, seed=1)),
        ("model", SF2ELClassifier(budget="16KiB")),
    )
    texts = [("cheap pills now", "spam"), ("meeting at noon", "ham"), ("buy cheap now", "spam"), ("", "ham")]
    for text, label in texts * 20:
        model.learn_one(text, label)
    assert model.predict_one("cheap pills") == "spam"
    assert model.predict_one("meeting at noon") == "ham"
    assert model.predict_one("") in ("spam", "ham")


def test_goes_on_after_pickling_and_starts_anew_after_cloning():
    rows = list(datasets.Phishing().take(200))
    model = SF2ELClassifier(budget="16KiB", class_weight={True: 2.0})
    for x, y in rows[:100]:
        model.learn_one(x, y)
    twin = pickle.loads(pickle.dumps(model))
    for x, y in rows[100:]:
        model.learn_one(x, y)
        twin.learn_one(x, y)
    assert twin.model.to_bytes() == model.model.to_bytes()
    assert model.clone().predict_one(rows[0][0]) is None
    assert model.clone().class_weight == {True: 2.0}


def test_memory_counts_the_compiled_core():
    model = SF2ELClassifier(budget="64KiB")
    for x, y in datasets.Phishing().take(300):
        model.learn_one(x, y)
    assert model._raw_memory_usage > model.model.memory_usage()


# -- importing


def test_without_river_the_error_names_the_extra():
    code = "import sys; sys.modules['river'] = None; import sf2el.adapters.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'sf2el[river]'" in done.stderr


def test_the_package_does_not_import_it():
    code = "import sf2el, sf2el.cli, sys; print('river' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
