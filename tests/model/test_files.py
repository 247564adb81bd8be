"""Files: what is written is read to the bit, and nothing else is trusted."""

from __future__ import annotations

import copy
import json
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile import HEAD, MAKERS, MUTATIONS, apart, checksum, closed, made, opened, sealed, tried
from worlds import BUDGETED, MODELS, STREAMS, labels_for, learned, swap, table, twin_of

from sf2el import SF2EL, SF2ELRegressor

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")


def class_of(name):
    return SF2ELRegressor if name == "regressor" else SF2EL


@pytest.mark.parametrize("name", MAKERS)
def test_a_model_in_any_state_is_saved_to_the_bit_and_goes_on(name):
    model = made(name)
    data = model.to_bytes()
    loaded = class_of(name).from_bytes(data)
    assert loaded.to_bytes() == data == model.to_bytes()
    assert repr(loaded) == repr(model)
    assert loaded.events() == model.events()
    assert loaded.memory_usage(detail=True) == model.memory_usage(detail=True)
    assert loaded.weights(detail=True) == model.weights(detail=True)
    assert loaded.risk() == model.risk()
    for x, y in labels_for(model, swap(seed=4)[50:120]):
        assert loaded.predict_one(x) == model.predict_one(x)
        assert loaded.explain_one(x) == model.explain_one(x)
        loaded.learn_one(x, y)
        model.learn_one(x, y)
    assert loaded.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("kind", MODELS)
def test_a_loaded_model_goes_on_with_tables_too(kind, stream):
    model = MODELS[kind]()
    X, names, y = table(labels_for(model, STREAMS[stream]()))
    model.learn_many(X[:75], y[:75], features=names)
    loaded = twin_of(model)
    for each in (model, loaded):
        each.learn_many(X[75:], y[75:], features=names)
    assert loaded.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("budget", [2048, 8192, 65536, 1 << 20])
@pytest.mark.parametrize("kind", BUDGETED)
def test_a_file_is_the_budget_and_a_kibibyte_at_most(kind, budget):
    model = BUDGETED[kind](budget)
    for x, y in labels_for(model, STREAMS["gaps"]()):
        model.learn_one(x, y)
        assert len(model.to_bytes()) <= budget + 1024


@pytest.mark.parametrize("name", MAKERS)
def test_copies_are_models_of_their_own(name):
    model = made(name)
    data = model.to_bytes()
    copies = [copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))]
    for other in copies:
        assert type(other) is type(model) and other.to_bytes() == data
        learned(other, swap(seed=3)[:20])
        assert other.to_bytes() != data
    assert model.to_bytes() == data


def test_a_file_is_written_and_read_back(tmp_path):
    model = made("swapped")
    for path in (tmp_path / "a.sf2el", str(tmp_path / "b")):
        model.save(path)
        assert Path(path).read_bytes() == model.to_bytes()
        assert SF2EL.load(path).to_bytes() == model.to_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.sf2el", "b"]


def test_the_bytes_do_not_depend_on_the_process():
    code = """if True:
        import hashlib, hostile
        for name in hostile.MAKERS:
            print(hashlib.sha256(hostile.made(name).to_bytes()).hexdigest())
    """
    here = str(Path(__file__).parents[1])
    told = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": here},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert len(told.pop().split()) == len(MAKERS)


def test_a_file_is_no_pickle_and_its_text_is_for_people():
    content, _, _ = opened(made("paper").to_bytes())
    assert content[:2] == ["classifier", "paper"]
    assert b"sf2el." not in made("paper").to_bytes()


# -- what is refused


@pytest.mark.parametrize("name", MAKERS)
def test_every_truncation_is_refused_in_one_sentence(name):
    data = made(name).to_bytes()
    for at in [*range(0, min(len(data), 700)), *range(700, len(data), 97), len(data) - 1]:
        for cut in (data[:at], sealed(data[:at]) if at >= HEAD else data[:at]):
            with pytest.raises(ValueError) as refused:
                class_of(name).from_bytes(cut)
            assert "\n" not in str(refused.value)
            assert str(refused.value).startswith("These bytes are not a whole sf2el model: ")


@pytest.mark.parametrize("name", MAKERS)
def test_any_changed_bit_is_noticed(name):
    data = made(name).to_bytes()
    assert checksum(data[HEAD:]) == int.from_bytes(data[16:24], "little")
    rng = np.random.default_rng(0)
    for at in {*range(HEAD), *rng.integers(len(data), size=300).tolist()}:
        out = bytearray(data)
        out[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(ValueError, match="not a whole sf2el model"):
            class_of(name).from_bytes(bytes(out))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("mutation", dict.fromkeys(MUTATIONS), ids=lambda one: one.__name__)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_mutated_file_whose_checksum_fits_gives_a_model_or_a_value_error(mutation, name):
    data = made(name).to_bytes()
    rng = np.random.default_rng(len(name))

    def attempt():
        for _ in range(25):
            tried(class_of(name), mutation(data, rng))

    apart(attempt)


OTHERS = {
    "nothing": b"",
    "text": b"not a model",
    "zeros": bytes(1000),
    "json": json.dumps({"kind": "classifier"}).encode(),
    "pickle": pickle.dumps({"a": 1}),
    "our mark alone": b"sf2el\3\0\0",
    "an empty body": sealed(b"sf2el\3\0\0" + bytes(16)),
    "a later format": b"sf2el\4\0\0" + made("bank").to_bytes()[8:],
    "an earlier format": b"sf2el\2\0\0" + made("bank").to_bytes()[8:],
    "a safetensors header": (2).to_bytes(8, "little") + b"{}",
    "twice": made("bank").to_bytes() * 2,
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("cls", [SF2EL, SF2ELRegressor])
def test_other_bytes_are_refused_in_one_sentence(cls, other):
    with pytest.raises(ValueError, match=r"^These bytes are not a whole sf2el model: ") as refused:
        cls.from_bytes(OTHERS[other])
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")


@pytest.mark.parametrize("given", [None, 3, "text", [1, 2], object()])
def test_what_is_no_bytes_is_refused(given):
    with pytest.raises((ValueError, TypeError)):
        SF2EL.from_bytes(given)


def test_bytes_of_any_kind_are_read():
    data = made("bank").to_bytes()
    for given in (bytearray(data), memoryview(data)):
        assert SF2EL.from_bytes(given).to_bytes() == data


def test_a_model_of_another_class_is_refused_and_named():
    with pytest.raises(ValueError, match="it holds a regressor"):
        SF2EL.from_bytes(made("regressor").to_bytes())
    with pytest.raises(ValueError, match="it holds a classifier"):
        SF2ELRegressor.from_bytes(made("paper").to_bytes())


def _own(place, value):
    def change(data):
        content, events, state = opened(data)
        content[place] = value
        return closed(content, events, state)

    return change


def _targets(**changed):
    def change(data):
        content, events, state = opened(data)
        content[3] |= changed
        return closed(content, events, state)

    return change


HANDMADE = {
    "a strategy that is none": _own(1, "forest"),
    "another strategy": _own(1, "paper"),
    "parameters that are none": _own(2, []),
    "a parameter more": _own(2, {"task": "classes", "forget": 0.0}),
    "a task of numbers": _own(2, {"task": 3, "forget": 0.0, "seed": 0}),
    "a rate beyond one": _own(2, {"task": "classes", "forget": 1.5, "seed": 0}),
    "a seed below zero": _own(2, {"task": "classes", "forget": 0.0, "seed": -1}),
    "no budget at all": _own(4, 0),
    "a budget of text": _own(4, "64KiB"),
    "a budget that is true": _own(4, True),
    "a budget too small for its bytes": _own(4, 2000),
    "a budget beyond all": _own(4, 1 << 70),
    "another number of events": _own(4, 1 << 20),
    "fewer events than there were": _own(5, -1),
    "a first event after the last": _own(6, 10**6),
    "labels that are none": _own(3, {}),
}


@pytest.mark.parametrize("what", HANDMADE)
def test_a_file_made_by_hand_is_refused_in_one_sentence(what):
    data = HANDMADE[what](made("swapped").to_bytes())
    with pytest.raises(ValueError) as refused:
        SF2EL.from_bytes(data)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [b"s\xff\xfe", b"s\xc3(", b"ix1", b"i1_", b"i"])
def test_a_feature_whose_name_is_no_text_or_number_is_refused(name):
    model = SF2EL(budget="4KiB")
    model.learn_one({"q" * (len(name) - 1): 1.0})
    content, events, state = opened(model.to_bytes())
    usual = b"s" + b"q" * (len(name) - 1)
    assert state.count(len(usual).to_bytes(2, "little") + usual) == 1

    def attempt():
        with pytest.raises(ValueError, match="not a whole sf2el model"):
            SF2EL.from_bytes(closed(content, events, state.replace(usual, name)))

    apart(attempt)


def test_two_features_of_one_name_are_refused():
    model = SF2EL(budget="4KiB")
    model.learn_one({"aaaa": 1.0, "bbbb": 2.0})
    content, events, state = opened(model.to_bytes())
    with pytest.raises(ValueError, match="not a whole sf2el model"):
        SF2EL.from_bytes(closed(content, events, state.replace(b"sbbbb", b"saaaa")))


@pytest.mark.parametrize("pair", [("bank", "paper"), ("paper", "bank"), ("swapped", "paper, fixed")])
def test_a_strategy_over_another_one_s_state_is_refused(pair):
    ours, theirs = (opened(made(name).to_bytes()) for name in pair)
    content = [*theirs[0][:1], *ours[0][1:4], 1 << 20, 0, 0]
    with pytest.raises(ValueError, match="not a whole sf2el model"):
        SF2EL.from_bytes(closed(content, bytes(32 * 40), theirs[2]))


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "new"])
def test_a_file_that_says_more_follows_than_there_is_asks_for_no_memory(name):
    """Every count of the state, wherever it is, made as large as can be: nothing large is made for it."""
    content, events, state = opened(made(name).to_bytes())

    def attempt():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for at in range(min(len(state) - 4, 1200)):
            out = bytearray(state)
            out[at : at + 4] = b"\xff\xff\xff\x7f"
            try:
                class_of(name).from_bytes(closed(content, events, bytes(out)))
            except ValueError as refused:
                assert "\n" not in str(refused)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes

    apart(attempt)


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_read_from_a_mutated_file_is_written_and_read_again_to_the_bit(name):
    rng = np.random.default_rng(2)
    data = made(name).to_bytes()

    def attempt():
        read = 0
        for _ in range(60):
            mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
            try:
                model = class_of(name).from_bytes(mutation(data, rng))
            except ValueError:
                continue
            read += 1
            again = model.to_bytes()
            assert class_of(name).from_bytes(again).to_bytes() == again
        assert read > 0

    apart(attempt)


def test_a_place_that_cannot_be_written_leaves_what_was_there(tmp_path):
    model, path = made("swapped"), tmp_path / "model"
    model.save(path)
    before = path.read_bytes()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        model.save(tmp_path / "folder")
    with pytest.raises(OSError):
        model.save(path / "below a file")
    assert path.read_bytes() == before
    with pytest.raises(OSError):
        SF2EL.load(tmp_path / "missing")
