"""More than two classes, classes that appear while the stream runs, and classes that weigh more."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sf2el import SF2EL


def digits(classes: int, rounds: int, seed: int = 0, rate: float = 0.3, appear: int = 40):
    """Blobs in ten dimensions, two a class; a class appears every ``appear`` rows. Swaps at two thirds."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, 2, 10)) * 1.6
    mixing = rng.normal(size=(10, 8)) / 2
    truth = np.array([rng.integers(min(classes, 1 + t // appear)) for t in range(rounds)])
    old = centres[truth, rng.integers(2, size=rounds)] + rng.normal(size=(rounds, 10))
    new = old @ mixing + 0.1 * rng.normal(size=(rounds, 8))
    swap = 2 * rounds // 3
    X = np.hstack([old, new])
    X[: swap - 30, 10:] = np.nan
    X[swap:, :10] = np.nan
    labels = [f"digit {y}" if rng.random() < rate else None for y in truth]
    names = [f"old{j}" for j in range(10)] + [f"new{j}" for j in range(8)]
    return X, labels, np.array([f"digit {y}" for y in truth]), names


@pytest.mark.parametrize("classes", [3, 10])
def test_many_classes_beat_the_majority_clearly_and_keep_the_budget(classes):
    rounds = 1200
    X, labels, truth, names = digits(classes, rounds)
    model = SF2EL(budget="64KiB")
    said = model.run_many(X, labels, features=names).prediction
    assert model.memory_usage() <= 64 * 1024
    for part in (slice(500, 800), slice(800, rounds)):
        majority = max(Counter(truth[part]).values()) / len(truth[part])
        assert np.mean(said[part] == truth[part]) > majority + (0.35 if classes == 3 else 0.3)
    assert sum(model.predict_proba_one({"new0": 1.0}).values()) == pytest.approx(1.0)
    assert len(model.predict_proba_one({"new0": 1.0})) == classes


@pytest.mark.parametrize(
    "more", [{}, {"class_weight": "balanced"}, {"classes": [f"digit {k}" for k in range(5)]}]
)
def test_a_block_in_which_classes_appear_is_the_loop(more):
    X, labels, _, names = digits(5, 150, appear=20)
    whole, loop = (SF2EL(budget="32KiB", **more) for _ in range(2))
    track = whole.run_many(X, labels, features=names)
    for t, label in enumerate(labels):
        x = {name: float(v) for name, v in zip(names, X[t], strict=True) if v == v}
        assert loop.predict_one(x) == track.prediction[t]
        loop.learn_one(x, label)
        assert loop.memory_usage() <= 32 * 1024
    assert whole.to_bytes() == loop.to_bytes()


def test_fixed_classes_predict_from_the_first_row_and_refuse_others():
    model = SF2EL(classes=["a", "b", "c"])
    assert model.predict_one({"x": 1.0}) == "a"
    model.learn_one({"x": 1.0}, "c")
    before = model.to_bytes()
    with pytest.raises(ValueError, match="classes= names the labels 'a', 'b', 'c'; it cannot take 'd'"):
        model.learn_one({"x": 1.0}, "d")
    with pytest.raises(ValueError, match="it cannot take 'd'"):
        model.run_many([[1.0], [2.0]], ["a", "d"], features=["x"])
    assert model.to_bytes() == before


def test_a_class_that_the_budget_has_no_room_for_changes_nothing():
    model = SF2EL(budget=2048)
    model.learn_one({f"x{j}": 1.0 for j in range(3)}, 0)
    refused = None
    for label in range(1, 60):
        before = model.to_bytes()
        try:
            model.learn_one({f"x{j}": float(label) for j in range(3)}, label)
        except ValueError as error:
            refused = error
            assert "classes does not fit the budget" in str(error) and "\n" not in str(error)
            assert model.to_bytes() == before
            break
        assert model.memory_usage() <= 2048
    assert refused is not None


def rare(rounds: int, seed: int):
    """One row in twenty is of the minority, which overlaps with the rest."""
    rng = np.random.default_rng(seed)
    truth = rng.random(rounds) < 0.05
    X = rng.normal(size=(rounds, 4)) + 1.2 * truth[:, None] * np.array([1.0, 1.0, 0.0, 0.0])
    return X, np.where(truth, "rare", "usual")


def balanced_accuracy(said, truth):
    return np.mean([np.mean(said[truth == label] == label) for label in ("rare", "usual")])


def test_balanced_weights_raise_the_balanced_accuracy_of_rare_classes():
    plain, balanced = [], []
    for seed in range(4):
        X, truth = rare(800, seed)
        for found, weight in ((plain, None), (balanced, "balanced")):
            model = SF2EL(class_weight=weight)
            said = model.run_many(X, list(truth), features="abcd").prediction
            found.append(balanced_accuracy(said[200:], truth[200:]))
    assert np.mean(balanced) > np.mean(plain) + 0.1


@pytest.mark.parametrize("make", [SF2EL, SF2EL.paper])
def test_a_label_that_weighs_more_is_said_more_often(make):
    X, truth = rare(400, 7)
    said = [
        make(class_weight=weights).run_many(X, list(truth), features="abcd").prediction
        for weights in ({"rare": 1.0}, {"rare": 15.0})
    ]
    assert np.sum(said[1] == "rare") > np.sum(said[0] == "rare") + 10


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_as_high_as_the_model_is_right(classes):
    rng = np.random.default_rng(3)
    centers = 1.2 * rng.normal(size=(classes, 4))
    y = rng.integers(classes, size=1500)
    X = centers[y] + 0.8 * rng.normal(size=(1500, 4))
    labels = [f"class {label}" for label in y]
    model = SF2EL(budget="16KiB")
    told = model.run_many(
        X, [label if i % 3 == 0 else None for i, label in enumerate(labels)], features=list("abcd")
    )
    right = np.array([said == label for said, label in zip(told.prediction, labels, strict=True)])[500:]
    assert right.mean() > 0.8
    assert told.probability[500:].mean() == pytest.approx(right.mean(), abs=0.03)


def test_an_empty_text_is_no_label():
    model = SF2EL(budget="8KiB")
    model.learn_one({"a": 1.0}, "wet")
    before = model.to_bytes()
    for learn in (lambda: model.learn_one({"a": 2.0}, ""), lambda: model.learn_many([[2.0]], [""], ["a"])):
        with pytest.raises(ValueError, match="pass None where a row's label is not known"):
            learn()
        assert model.to_bytes() == before


def test_what_is_true_or_false_comes_back_so():
    model = SF2EL(budget="8KiB")
    for t in range(40):
        model.learn_one({"a": float(t % 5)}, np.bool_(t % 5 > 2))
    model.learn_one({"a": 4.0}, 1)  # the same label
    for one in (model, SF2EL.from_bytes(model.to_bytes())):
        assert one.predict_one({"a": 4.0}) is True and one.predict_one({"a": 0.0}) is False
        assert list(one.predict_proba_one({"a": 0.0})) == [False, True]
    assert model.run_many([[4.0]], features=["a"]).prediction[0] is True


def test_a_class_that_appears_while_features_wait_to_be_taken_up():
    """Rows that wait know their labels by the coding of two classes, and are gone through with three."""
    model, twin = SF2EL(), SF2EL()
    for t in range(60):
        for each in (model, twin):
            each.learn_one({"a": t % 5 - 2.0}, "up" if t % 5 > 2 else "down")
    for label in ("down", "up", None):
        for each in (model, twin):
            each.learn_one({"a": 1.0, f"b{label}": 5.0}, label)
    model.learn_one({"a": -2.0}, "sideways", late=True)
    twin = SF2EL.from_bytes(model.to_bytes())
    for _ in range(3):
        for each in (model, twin):
            each.learn_one({"a": 1.0, "bup": 5.0}, "sideways")
    assert twin.to_bytes() == model.to_bytes()
    assert set(model.predict_proba_one({"a": 1.0})) == {"up", "down", "sideways"}
    assert any(event.kind == "opened" for event in model.events().last)


def test_a_new_class_is_told_with_how_many_labels_there_are():
    model = SF2EL()
    for t in range(30):
        model.learn_one({"a": float(t % 3)}, "abc"[t % 3])
    (told,) = (event for event in model.events().last if event.kind == "new_class")
    assert told.fields == {"labels": 3.0} and told.certain <= 3
    assert model.labels == ["a", "b", "c"]


def test_labels_before_any_and_with_one_class():
    model = SF2EL()
    assert model.predict_one({"a": 1.0}) is None and model.predict_proba_one({"a": 1.0}) == {}
    model.learn_one({"a": 1.0})
    assert model.predict_one({"a": 1.0}) is None and model.labels == []
    model.learn_one({"a": 1.0}, "yes")
    assert model.predict_one({"a": -1.0}) == "yes" and model.predict_proba_one({"a": 1.0}) == {"yes": 1.0}


def test_the_paper_takes_two_labels_and_refuses_a_third():
    model = SF2EL.paper(buffer_size=5)
    for label in ("a", "b"):
        model.learn_one({"x": 1.0}, label)
    before = model.to_bytes()
    with pytest.raises(ValueError) as refused:
        model.learn_one({"x": 1.0}, "c")
    assert "\n" not in str(refused.value)
    assert model.to_bytes() == before
    with pytest.raises(ValueError):
        SF2EL.paper(classes=["a", "b", "c"])


def test_labels_of_mixed_types_are_refused():
    model = SF2EL()
    model.learn_one({"x": 1.0}, "a")
    before = model.to_bytes()
    for label in (1, True, 2.5, b"a", ("a",)):
        with pytest.raises(ValueError):
            model.learn_one({"x": 1.0}, label)
        with pytest.raises(ValueError):
            model.learn_one({"x": 1.0}, label, late=True)
        assert model.to_bytes() == before


@pytest.mark.parametrize("classes", [[], ["a"], ["a", "a"], [None, "a"], ["a", 1], [[1], [2]], "ab\ud800"])
def test_classes_that_are_none_are_refused(classes):
    with pytest.raises(ValueError) as refused:
        SF2EL(classes=classes)
    assert "\n" not in str(refused.value)


def test_a_label_that_fails_is_not_counted(monkeypatch):
    """What is known of labels goes back with the state."""
    from sf2el.model.strategy import BankStrategy

    def fail(*given):
        raise RuntimeError("out of luck")

    model = SF2EL()
    for t in range(60):
        model.learn_one({"a": float(t % 5), "b": 1.0 * t}, t % 2)
    before = model.to_bytes()
    monkeypatch.setattr(BankStrategy, "arrange", fail)
    with pytest.raises(RuntimeError):
        model.learn_one({"a": 1.0}, 7)
    with pytest.raises(RuntimeError):
        model.learn_one({"a": 1.0}, 7, late=True)
    with pytest.raises(RuntimeError):
        model.learn_many([[1.0, 2.0]] * 3, [0, 7, 1], features=["a", "b"])
    assert model.to_bytes() == before
