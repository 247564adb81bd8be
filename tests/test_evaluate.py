"""Prequential evaluation: metrics against scikit-learn's, masks and delays, windows, river's models."""

from __future__ import annotations

import json
import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf2el import SF2EL, evaluate
from sf2el.evaluate import BINS, Counts, Errors, Probabilities, Windows, prequential
from sf2el.streams import evolve

metrics = pytest.importorskip("sklearn.metrics")

LABELS = st.sampled_from(["a", "b", "c"])
rounds = st.lists(st.tuples(LABELS, LABELS | st.none()), min_size=1, max_size=60)
numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))


class Recorder:
    """A model that predicts what it is told to, and writes down what it learns."""

    def __init__(self, predictions=None):
        self.predictions, self.calls, self.asked = iter(predictions or ()), [], 0

    def predict_one(self, x):
        self.asked += 1
        return next(self.predictions, None)

    def learn_one(self, x, y=None, *, late=False):
        self.calls.append((x["t"], y, late))


class Supervised(Recorder):
    def learn_one(self, x, y):
        self.calls.append((x["t"], y, False))


def pairs(labels):
    return [({"t": t}, y) for t, y in enumerate(labels)]


def same(ours, theirs):
    return (math.isnan(ours) and math.isnan(theirs)) or ours == pytest.approx(theirs, rel=1e-9, abs=1e-9)


# ---- metrics


@given(rounds)
def test_counts_are_scikit_learns(found):
    counts = Counts()
    for truth, said in found:
        counts.add(truth, said)
    truth, said = [t for t, _ in found], [p or "none" for _, p in found]
    ours = counts.metrics()
    assert same(ours["accuracy"], metrics.accuracy_score(truth, said))
    recalls = metrics.recall_score(truth, said, labels=sorted(set(truth)), average=None, zero_division=0)
    assert same(ours["balanced_accuracy"], float(np.mean(recalls)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(ours["kappa"], metrics.cohen_kappa_score(truth, said))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, BINS)), min_size=2, max_size=80))
def test_two_labels_auc_and_log_loss_are_scikit_learns(found):
    truth = [int(positive) for positive, _ in found]
    p = [(place + 0.5) / BINS if place < BINS else 1.0 for _, place in found]
    scores = Probabilities()
    for t, value in zip(truth, p, strict=True):
        scores.add(t, {1: value, 0: 1.0 - value})
    if len(set(truth)) == 2:
        binned = [min(int(value * BINS), BINS - 1) for value in p]
        if truth[0] == 1:
            assert same(scores.metrics()["auc"], metrics.roc_auc_score(truth, binned))
        assert scores.metrics()["auc"] == pytest.approx(
            metrics.roc_auc_score(truth, p), abs=2e-3 + 0.5 / len(p)
        )
    eps = np.clip(np.array([value if t else 1 - value for t, value in zip(truth, p, strict=True)]), 1e-15, 1)
    assert scores.metrics()["log_loss"] == pytest.approx(float(np.mean(-np.log(eps))))


def test_three_labels_auc_is_the_mean_of_one_against_the_rest():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 400)
    p = rng.dirichlet(np.ones(3), 400) + 0.5 * np.eye(3)[truth]
    p /= p.sum(axis=1, keepdims=True)
    scores = Probabilities()
    for t, row in zip(truth.tolist(), p.tolist(), strict=True):
        scores.add(t, dict(enumerate(row)))
    wanted = metrics.roc_auc_score(truth, p, multi_class="ovr", average="macro")
    assert scores.metrics()["auc"] == pytest.approx(wanted, abs=1e-3)


def test_a_label_that_appears_late_had_probability_zero_before():
    scores = Probabilities()
    for truth, said in [
        ("a", {}),
        ("a", {"a": 1.0}),
        ("b", {"a": 0.2, "b": 0.8}),
        ("c", {"b": 0.4, "c": 0.6}),
    ]:
        scores.add(truth, said)
    assert all(histogram.sum() == 4 for histogram in scores.histograms.values())
    assert scores.metrics()["log_loss"] == pytest.approx(-np.mean(np.log([1.0, 0.8, 0.6])))


class Frequencies(Recorder):
    """A model whose probabilities are the shares of the labels that it was told."""

    def predict_proba_one(self, x):
        told = [y for _, y, _ in self.calls if y is not None]
        return {label: told.count(label) / len(told) for label in dict.fromkeys(told)}


def test_a_label_that_the_model_could_not_know_is_not_in_the_log_loss():
    found = prequential(Frequencies(), pairs("aabab"), metrics=["log_loss"], window=3)
    assert found.metrics["log_loss"] == pytest.approx(-np.mean(np.log([1.0, 2 / 3, 1 / 4])))
    assert found.windows[0].metrics["log_loss"] == 0.0
    # Late labels are not known before they come; those that never come are never known.
    late = prequential(Frequencies(), pairs("aaaabb"), metrics=["log_loss"], delay=2)
    assert late.metrics["log_loss"] == 0.0
    masked = prequential(Frequencies(), pairs("ababab"), metrics=["log_loss"], mask=lambda t: t % 2 == 0)
    assert masked.metrics["log_loss"] == 0.0


def test_a_label_that_was_told_and_is_not_named_counts_in_the_log_loss():
    class Forgetful(Frequencies):
        def predict_proba_one(self, x):
            return {"a": 1.0} if self.calls else {}

    found = prequential(Forgetful(), pairs("abb"), metrics=["log_loss"])
    assert found.metrics["log_loss"] == pytest.approx(-math.log(1e-15))
    named = Probabilities()
    named.add("b", {"a": 0.75, "b": 0.25}, told=False)
    assert named.metrics()["log_loss"] == pytest.approx(-math.log(0.25))


@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 4), (3,)])
def test_a_label_that_the_model_could_not_know_is_not_in_the_log_loss_of_predicted_ones(cuts):
    truths, said = ["a", "a", "b", "b", "a", "b"], [None, "a", "a", "a", "a", "a"]
    p = np.array([np.nan, 1.0, 1.0, 1.0, 0.75, 1.0])
    scores = Probabilities()
    for start, stop in pairwise((0, *cuts, 6)):
        scores.add_predicted(truths[start:stop], said[start:stop], p[start:stop])
        scores = Probabilities.from_state(json.loads(json.dumps(scores.state())))
    # The last one is certain and wrong, although both labels are known by then.
    assert scores.metrics()["log_loss"] == pytest.approx(-np.mean(np.log([1.0, 0.75, 1e-15])))


def test_predicted_probabilities_of_two_labels_count_like_full_ones():
    rng = np.random.default_rng(1)
    truth = ["y" if value else "n" for value in rng.random(500) < 0.4]
    p = rng.random(500)
    whole, predicted = Probabilities(), Probabilities()
    for t, value in zip(truth, p.tolist(), strict=True):
        whole.add(t, {"y": value, "n": 1 - value})
    said = ["y" if value >= 0.5 else "n" for value in p]
    predicted.add_predicted(truth[:77], said[:77], np.maximum(p, 1 - p)[:77])
    predicted.add_predicted(truth[77:], said[77:], np.maximum(p, 1 - p)[77:])
    assert predicted.metrics() == pytest.approx(whole.metrics(), abs=1e-3)


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=60), st.integers(0, 60))
def test_errors_are_scikit_learns_and_merge(found, cut):
    truth, said = [t for t, _ in found], [p for _, p in found]
    errors, rest = Errors(), Errors()
    errors.add_many(truth[:cut], said[:cut])
    rest.add_many(truth[cut:], said[cut:])
    errors.merge(rest)
    ours = errors.metrics()
    assert ours["mae"] == pytest.approx(metrics.mean_absolute_error(truth, said), rel=1e-6, abs=1e-9)
    assert ours["rmse"] == pytest.approx(np.sqrt(metrics.mean_squared_error(truth, said)), rel=1e-6, abs=1e-9)
    if np.std(truth) > 1e-2 * (1.0 + np.abs(truth).max()):
        assert ours["r2"] == pytest.approx(metrics.r2_score(truth, said), rel=1e-4, abs=1e-6)


@given(st.lists(numbers, min_size=1, max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_sums_do_not_depend_on_how_rounds_are_cut(truth, cuts):
    one, many = Errors(), Errors()
    said = [value * 0.9 + 1 for value in truth]
    one.add_many(truth, said)
    edges = [0, *sorted(min(cut, len(truth)) for cut in cuts), len(truth)]
    for start, stop in pairwise(edges):
        many.add_many(truth[start:stop], said[start:stop])
    assert one.state() == many.state()


def test_states_survive_json():
    counts, errors, scores = Counts(), Errors(), Probabilities()
    counts.add_many(["a", 1, "b"], [None, 1, "a"])
    errors.add_many([1.1, 2.2], [None, 0.1])
    scores.add("a", {"a": 0.3, "b": 0.7})
    assert Counts.from_state(json.loads(json.dumps(counts.state()))).pairs == counts.pairs
    assert Errors.from_state(json.loads(json.dumps(errors.state()))).state() == errors.state()
    assert Probabilities.from_state(json.loads(json.dumps(scores.state()))).metrics() == scores.metrics()
    assert errors.unpredicted == 1


# ---- windows


def test_windows_are_bounded_and_cover_everything():
    windows = Windows(Counts, 3, most=10)
    for t in range(1000):
        one = Counts()
        one.add(t % 2, 1)
        windows.add(one, 1)
    parts = windows.parts()
    assert len(parts) <= 10
    assert [part.start for part in parts][1:] == [part.stop for part in parts][:-1]
    assert (parts[0].start, parts[-1].stop, sum(part.scored for part in parts)) == (0, 1000, 1000)
    assert len(windows.moving()) <= 10


@given(st.integers(1, 50), st.integers(1, 400))
def test_windows_hold_their_own_rounds(length, total):
    windows = Windows(Counts, length, most=8)
    right = [t * 7919 % 13 > 4 for t in range(total)]
    for value in right:
        one = Counts()
        one.add(1, int(value))
        windows.add(one, 1)
    for part in [*windows.parts(), *windows.moving()]:
        assert part.metrics["accuracy"] == pytest.approx(np.mean(right[part.start : part.stop]))
        assert part.scored == part.stop - part.start


@pytest.mark.parametrize("length", [1, 7, 10, 15, 19, 25, 99, 105, 500])
def test_the_moving_window_is_as_long_as_asked_and_moves_by_a_tenth(length):
    said = ["ab"[t * 7919 % 13 > 4] for t in range(3 * length + 3)]
    moving = prequential(Recorder(said), pairs(["a"] * len(said)), window=length).moving
    stops = [part.stop for part in moving]
    assert [part.start for part in moving] == [max(0, stop - length) for stop in stops]
    assert {length, 2 * length, 3 * length} <= set(stops)
    steps = set(np.diff([0, *stops]).tolist())
    assert steps <= {max(1, length // 10), max(1, -(-length // 10))}
    for part in moving:
        right = [value == "a" for value in said[part.start : part.stop]]
        assert part.scored == len(right)
        assert part.metrics["accuracy"] == pytest.approx(np.mean(right))


def test_the_moving_window_keeps_a_bounded_number_of_slices():
    for length in (19, 25, 10_007):
        windows = Windows(Counts, length, most=8)
        while windows.rounds < 40 * length:
            windows.add(Counts(), windows.room)
        assert len(windows._slices) == 10
        assert len(windows.moving()) <= 8
        assert {part.stop - part.start for part in windows.moving()} == {length}


# ---- what is learned when


def test_pairs_are_predicted_first_and_learned_then():
    model = Recorder(["a", "b", "b"])
    found = prequential(model, pairs(["a", "a", "b"]), metrics=["accuracy"])
    assert found.metrics == {"accuracy": pytest.approx(2 / 3)}
    assert model.calls == [(0, "a", False), (1, "a", False), (2, "b", False)]
    assert (found.rounds, found.scored, found.labelled) == (3, 3, 3)


def test_delayed_labels_come_late_after_the_row_was_learned_unlabelled():
    model = Recorder()
    found = prequential(model, pairs("abcd"), delay=2, mask=[True, False, True, True])
    assert model.calls == [
        (0, None, False),
        (1, None, False),
        (2, None, False),
        (0, "a", True),
        (3, None, False),
    ]
    assert found.labelled == 1


def test_a_model_without_unlabelled_rows_learns_late_labels_as_rows():
    model = Supervised()
    prequential(model, pairs("abcd"), delay=1, mask=lambda t: t != 1)
    assert model.calls == [(0, "a", False), (2, "c", False)]
    assert model.asked == 4


def test_label_rate_is_drawn_by_the_seed():
    def told(seed, rate=0.3):
        model = Recorder()
        prequential(model, pairs(["a"] * 500), label_rate=rate, seed=seed)
        return [y is not None for _, y, _ in model.calls]

    assert told(1) == told(1) != told(2)
    assert 100 < sum(told(1)) < 200
    assert sum(told(1, 0.0)) == 0 and sum(told(1, 1.0)) == 500


def test_unknown_truth_is_not_scored():
    found = prequential(Recorder(["a"] * 4), pairs(["a", None, float("nan"), "b"]))
    assert (found.scored, found.labelled, found.metrics["accuracy"]) == (2, 2, 0.5)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_no_number_of_any_kind_is_a_known_truth(kind):
    model = Recorder(["a"] * 3)
    found = prequential(model, pairs(["a", kind("nan"), "b"]))
    assert (found.scored, found.labelled, found.metrics["accuracy"]) == (2, 2, 0.5)
    assert model.calls[1] == (1, None, False)
    numbers = prequential(Recorder([1, 2]), pairs([kind("nan"), kind(1.0)]))
    assert set(numbers.metrics) == set(evaluate.REGRESSION)
    gap = prequential(Recorder(), [({"t": 0, "u": kind("nan")}, "a")], periods="features")
    assert gap.periods[0].label == "1 feature: t"


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (3, "Round 1 of the stream is 3; pass pairs"),
        (({"t": 1},), "Round 1 of the stream is .*; pass pairs"),
        (({"t": 1}, "a", "b"), "Round 1 of the stream is .*; pass pairs"),
        ({"t": 1, "u": 2}, "Round 1 of the stream is .*; pass pairs"),
        ("ab", "Round 1 of the stream is 'ab'; pass pairs"),
        (({"t": 1}, [1]), r"The label of round 1 is \[1\]; pass text"),
        (({"t": 1}, np.array([1])), r"The label of round 1 is array\(\[1\]\); pass text"),
    ],
)
def test_what_is_no_pair_and_no_label_is_a_sentence(item, said):
    model = Recorder()
    with pytest.raises(ValueError, match=said):
        prequential(model, [({"t": 0}, "a"), item])
    assert model.calls == [(0, "a", False)]


@pytest.mark.parametrize("late", [1, 30])
def test_the_first_known_truth_says_whether_labels_or_numbers_are_scored(late):
    unknown = [None, float("nan")] * late

    def found(said, known, **options):
        return prequential(Recorder(said), pairs([*unknown, *known]), window=7, **options)

    labels = found(["a"] * (2 * late + 3), ["a", "b", "a"])
    assert labels.metrics["accuracy"] == pytest.approx(2 / 3)
    assert set(labels.metrics) == {"accuracy", "balanced_accuracy", "kappa"}
    numbers = found([1.0] * (2 * late + 2), [1.0, 3.0])
    assert (set(numbers.metrics), numbers.metrics["mae"]) == (set(evaluate.REGRESSION), 1.0)
    # All is as if it had been known from the start.
    for by in (None, lambda t, x: t // 5):
        late_known = found(["a"] * (2 * late + 3), ["a", "b", "a"], periods=by)
        names = [name for name in evaluate.CLASSIFICATION if name in late_known.metrics]
        from_start = found(["a"] * (2 * late + 3), ["a", "b", "a"], periods=by, metrics=names)
        assert late_known.to_dict() == from_start.to_dict()
        assert late_known.rounds == late_known.windows[-1].stop == 2 * late + 3


def test_without_any_known_truth_predictions_say_what_would_be_scored():
    for said, names in (
        (["a"] * 9, {"accuracy", "balanced_accuracy", "kappa"}),
        ([0.5] * 9, {"mae", "rmse", "r2"}),
    ):
        found = prequential(Recorder(said), pairs([None] * 9), window=4, periods=lambda t, x: t // 3)
        assert (found.rounds, found.scored, len(found.windows), len(found.periods)) == (9, 0, 3, 3)
        for part in (found, *found.windows, *found.moving, *found.periods):
            assert set(part.metrics) == names
            assert all(math.isnan(value) for value in part.metrics.values())


def test_rounds_of_evolve_bring_their_own_labels_late_ones_included():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    stream = evolve((X, X[:, 0] > 0), seed=3, label_rate=0.5, label_delay=4, overlap=5)

    class Model(Recorder):
        def learn_one(self, x, y=None, *, late=False):
            self.calls.append((x, y, late))

    model = Model()
    found = prequential(model, stream)
    late = [(x, y) for x, y, is_late in model.calls if is_late]
    due = [t for t in range(56) if stream.labelled[t]]
    assert late == [(stream.row(t), bool(stream.y[t])) for t in due]
    assert [(part.start, part.stop) for part in found.periods] == [(0, 25), (25, 30), (30, 60)]
    with pytest.raises(ValueError, match="build the stream with"):
        prequential(Model(), stream, delay=2)


def test_periods_by_function_and_by_features():
    stream = [({"t": t} | ({"u": 1.0} if t >= 4 else {}), "a") for t in range(10)]
    by_features = prequential(Recorder(["a"] * 10), stream, periods="features")
    assert [(p.label, p.start, p.stop) for p in by_features.periods] == [
        ("1 feature: t", 0, 4),
        ("2 features: t, u", 4, 10),
    ]
    by_function = prequential(Recorder(["a"] * 10), stream, periods=lambda t, x: t // 5)
    assert [(p.label, p.stop, p.metrics["accuracy"]) for p in by_function.periods] == [
        ("0", 5, 1.0),
        ("1", 10, 1.0),
    ]
    many = prequential(Recorder(), pairs(["a"] * 3000), periods=lambda t, x: t)
    assert len(many.periods) == 1001
    assert (many.periods[-1].label, many.periods[-1].stop) == ("all later periods", 3000)


def test_result_is_json_and_deterministic():
    def result():
        rng = np.random.default_rng(0)
        said = rng.choice(["a", "b"], 1234).tolist()
        return prequential(Recorder(said), pairs(rng.choice(["a", "b"], 1234).tolist()), window=100)

    found = json.loads(json.dumps(result().to_dict(), allow_nan=False))
    assert found == json.loads(json.dumps(result().to_dict()))
    assert len(found["windows"]) == 13 and len(found["moving"]) == 123


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": ["precision"]}, "'precision' is not a metric"),
        ({"metrics": ["mae", "auc"]}, "together"),
        ({"window": 0}, "window"),
        ({"delay": -1}, "delay"),
        ({"label_rate": 1.5}, "label_rate"),
        ({"mask": [True]}, "mask ends at round 1"),
        ({"mask": [True, True], "label_rate": 0.5}, "either"),
        ({"periods": "months"}, "periods"),
    ],
)
def test_wrong_options_are_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        prequential(Recorder(), pairs("ab"), **options)


def test_empty_stream_is_a_sentence():
    with pytest.raises(ValueError, match="no rounds"):
        prequential(Recorder(), [])


# ---- river's models


def test_river_classifier_and_pipeline_are_evaluated():
    river = pytest.importorskip("river")
    from river import linear_model, preprocessing

    assert river
    rng = np.random.default_rng(0)
    stream = [({"a": a, "b": b}, bool(a + b > 0)) for a, b in rng.normal(size=(600, 2)).tolist()]
    for model in (
        linear_model.LogisticRegression(),
        preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ):
        found = prequential(model, stream, label_rate=0.5, delay=3, window=200)
        assert found.metrics["accuracy"] > 0.85
        assert found.metrics["auc"] > 0.95
        assert set(found.metrics) == set(evaluate.CLASSIFICATION)


def test_river_regressor_gets_errors():
    pytest.importorskip("river")
    from river import linear_model

    stream = [({"a": a}, 3.0 * a) for a in np.random.default_rng(0).normal(size=400).tolist()]
    found = prequential(linear_model.LinearRegression(), stream, label_rate=0.9)
    assert set(found.metrics) == set(evaluate.REGRESSION)
    assert found.windows[-1].metrics["rmse"] < 2.0


def rare_labels(rounds=400):
    """Two features, the label +1 or -1 by the first of them, one label in fifty told."""
    X = np.random.default_rng(3).normal(size=(rounds, 2))
    return evolve((X, np.where(X[:, 0] > 0, 1, -1)), seed=0, label_rate=0.02)


def test_the_river_adapter_learns_unlabelled_rows_alone_and_in_pipelines():
    pytest.importorskip("river")
    from river import compose

    from sf2el import SF2EL
    from sf2el.adapters.river import SF2ELClassifier

    stream = rare_labels()
    model, adapter = SF2EL(budget="16KiB"), SF2ELClassifier(budget="16KiB")
    end = SF2ELClassifier(budget="16KiB")
    pipeline = compose.FuncTransformer(dict) | end
    found = [prequential(each, stream).metrics for each in (model, adapter, pipeline)]
    assert found[0] == found[1] == found[2]
    assert model.to_bytes() == adapter.model.to_bytes() == pipeline[-1].model.to_bytes()


def test_a_scaler_before_the_river_adapter_passes_none_on():
    pytest.importorskip("river")
    from river import preprocessing

    from sf2el.adapters.river import SF2ELClassifier

    stream = rare_labels(200)
    evaluated, by_hand = (preprocessing.StandardScaler() | SF2ELClassifier(budget="16KiB") for _ in range(2))
    prequential(evaluated, stream)
    for step in stream:
        by_hand.predict_one(step.x)
        by_hand.predict_proba_one(step.x)
        by_hand.learn_one(step.x, step.y)
    assert evaluated[-1].model.to_bytes() == by_hand[-1].model.to_bytes()
    assert f"rows={len(stream)}" in repr(evaluated[-1].model)


def test_a_pipeline_with_a_part_that_needs_labels_is_not_called_without():
    pytest.importorskip("river")
    from river import feature_extraction, preprocessing, stats

    from sf2el.adapters.river import SF2ELClassifier

    needy = feature_extraction.TargetAgg(by="a", how=stats.Mean())
    stream = [({"a": t % 2, "b": float(t)}, t % 2) for t in range(60)]
    for before in (needy, needy.clone() + preprocessing.StandardScaler()):
        model = before | SF2ELClassifier(budget="16KiB")
        found = prequential(model, stream, label_rate=0.3)
        assert f"rows={found.labelled})" in repr(model[-1].model)


# ---- models that answer True and False


def sayings(stream, label):
    """Return a stream of pairs with each truth put otherwise."""
    return [(step.x, label(step.truth)) for step in stream]


@pytest.mark.parametrize("negative", [0, -1, -1.0])
@pytest.mark.parametrize("kind", ["LogisticRegression", "Perceptron", "PAClassifier"])
def test_rivers_binary_models_do_the_same_whatever_two_labels_are_called(kind, negative):
    pytest.importorskip("river")
    from river import linear_model

    stream = rare_labels(300)
    expected, found = (
        prequential(getattr(linear_model, kind)(), sayings(stream, label), label_rate=0.3, delay=2)
        for label in (lambda y: y == 1, lambda y: type(negative)(1) if y == 1 else negative)
    )
    assert found == expected
    assert found.metrics["accuracy"] > 0.6


def test_rounds_of_evolve_are_put_into_rivers_words():
    pytest.importorskip("river")
    from river import linear_model

    X = np.random.default_rng(3).normal(size=(400, 2))
    stream = evolve((X, np.where(X[:, 0] > 0, 1, -1)), seed=0, label_rate=0.5, label_delay=3)
    found = prequential(linear_model.LogisticRegression(), stream).metrics
    assert found["accuracy"] > 0.6 and found["auc"] > 0.7 and found["log_loss"] < 0.7


def test_a_model_that_answers_with_the_labels_it_was_told_is_told_them():
    model = Recorder([1, -1, 1])
    assert prequential(model, pairs([1, -1, -1])).metrics["accuracy"] == pytest.approx(2 / 3)
    assert [y for _, y, _ in model.calls] == [1, -1, -1]


@pytest.mark.parametrize(
    ("labels", "shown"), [("ab", "'a'"), ([1, 2], "2"), ([0, 1, -1], "-1"), ([0.5], "0.5")]
)
def test_labels_that_no_boolean_stands_for_are_a_sentence(labels, shown):
    model = Recorder([False] * 9)
    with pytest.raises(ValueError, match=f"answers True or False, and the stream has the label {shown}:"):
        prequential(model, pairs(labels))


# ---- numbers of NumPy's, and two models


def test_options_may_be_numbers_of_numpys():
    def told(whole, real):
        model = Recorder()
        found = prequential(
            model, pairs("ab" * 50), window=whole(20), delay=whole(3), label_rate=real(0.5), seed=whole(4)
        )
        return model.calls, found.to_dict()["windows"]

    assert told(np.int64, np.float32) == told(int, float)


def test_paired_runs():
    result = evaluate.paired([0.7, 0.8, 0.9], [0.6, 0.7, 0.81])
    assert result.mean == pytest.approx(0.29 / 3)
    assert result.low < result.mean < result.high and result.excludes_zero
    alone = evaluate.paired([0.7], [0.6])
    assert (alone.half_width, alone.low, alone.high, alone.excludes_zero) == (None, None, None, False)
    for first, second in (([0.5, 0.6], [0.5]), ([], []), (0.5, 0.6), ([[0.5]], [[0.6]])):
        with pytest.raises(ValueError, match="one number a run for each model"):
            evaluate.paired(first, second)


@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=20))
def test_the_interval_of_paired_runs_is_scipys(found):
    stats = pytest.importorskip("scipy.stats")
    first, second = np.array(found).T
    differences = first - second
    result = evaluate.paired(first, second)
    error = differences.std(ddof=1) / math.sqrt(len(found))
    assert result.half_width == pytest.approx(stats.t.ppf(0.975, len(found) - 1) * error, rel=1e-6, abs=1e-9)


def test_a_stream_with_booleans_among_its_labels_is_left_as_it_is():
    rows = [({"a": float(t)}, (True, False, 2)[t % 3]) for t in range(60)]
    plain = [(x, int(label)) for x, label in rows]
    found, wanted = (prequential(SF2EL(budget="16KiB"), one).metrics for one in (rows, plain))
    assert found["accuracy"] == wanted["accuracy"]
