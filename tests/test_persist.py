"""Models as bytes: the same bits afterwards, little more than the budget, no harm from a stranger's file."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from test_model import evolving_rows, make, state_of

from sf2el import RBF, SF2EL, Linear

BACKENDS = ("native", "numpy")


@pytest.fixture(params=BACKENDS)
def backend(request, monkeypatch) -> str:
    monkeypatch.setenv("SF2EL_BACKEND", request.param)
    return request.param


def kinds() -> dict[str, dict]:
    return {
        "stratified": {"sampling": "stratified"},
        "pursuit": {"projection": "pursuit"},
        "lean": {"projection": "pursuit", "keep_gram": False},
        "sum": {"kernel": RBF(0.5) + Linear()},
        "overlap": {"train_in_overlap": True, "map_intercept": True},
    }


@pytest.mark.parametrize("kind", ["default", "paper"])
def test_a_saved_model_goes_on_bit_for_bit(kind, backend):
    model = make(kind, None)
    rows = evolving_rows(cycles=2)
    for i, (x, y) in enumerate(rows):
        if i in (0, 1, 30, 55, 60, 100, 115, 130):
            model = SF2EL.from_bytes(model.to_bytes())
        model.learn_one(x, y)
    straight = make(kind, None)
    for x, y in rows:
        straight.learn_one(x, y)
    assert state_of(model) == state_of(straight)


@pytest.mark.parametrize("name", kinds())
def test_every_switch_is_saved(name, backend):
    model = SF2EL.paper(buffer_size=10, label_rate=0.3, **kinds()[name])
    straight = SF2EL.paper(buffer_size=10, label_rate=0.3, **kinds()[name])
    for i, (x, y) in enumerate(evolving_rows(cycles=1)):
        if i in (20, 54, 62):
            model = SF2EL.from_bytes(model.to_bytes())
        model.learn_one(x, y)
        straight.learn_one(x, y)
    probe = evolving_rows(cycles=1, seed=3)[-1][0]
    if name == "sum" and backend == "numpy":
        assert model._score_one(probe) == pytest.approx(straight._score_one(probe), rel=1e-9)
    else:
        assert state_of(model) == state_of(straight)


def test_either_backend_reads_the_other_s_file(monkeypatch):
    monkeypatch.setenv("SF2EL_BACKEND", "native")
    model = make("default", None)
    for x, y in evolving_rows(cycles=1):
        model.learn_one(x, y)
    data = model.to_bytes()
    monkeypatch.setenv("SF2EL_BACKEND", "numpy")
    other = SF2EL.from_bytes(data)
    probe = evolving_rows(cycles=1, seed=4)[-1][0]
    assert other._score_one(probe) == pytest.approx(model._score_one(probe), rel=1e-9)


@pytest.mark.parametrize("budget", [1200, 2048, 4096, 16384, 65536])
def test_the_saved_size_is_the_budget_and_less_than_two_kibibytes(budget, backend):
    model = SF2EL(budget=budget)
    for i, (x, y) in enumerate(evolving_rows(cycles=2, length=200)):
        model.learn_one(x, y)
        if i % 37 == 0 or i in (195, 200, 395, 400):
            assert len(model.to_bytes()) <= budget + 2048


def test_the_bytes_do_not_depend_on_chance(backend):
    models = [make("default", None) for _ in range(2)]
    for x, y in evolving_rows(cycles=1):
        for model in models:
            model.learn_one(x, y)
    assert models[0].to_bytes() == models[1].to_bytes() == SF2EL.from_bytes(models[0].to_bytes()).to_bytes()


def test_copies_are_independent_and_pickles_are_models(backend):
    model = make("default", None)
    rows = evolving_rows(cycles=1)
    for x, y in rows[:70]:
        model.learn_one(x, y)
    twin, thawed = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    before = state_of(model)
    twin.learn_one(*rows[70])
    assert state_of(model) == before == state_of(thawed) != state_of(twin)


def test_a_file_is_read_back(tmp_path, backend):
    model = make("paper", None)
    for x, y in evolving_rows(cycles=1):
        model.learn_one(x, y)
    model.save(tmp_path / "model.safetensors")
    assert state_of(SF2EL.load(tmp_path / "model.safetensors")) == state_of(model)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def a_model() -> bytes:
    model = SF2EL(budget="4KiB")
    for x, y in evolving_rows(cycles=2)[:118]:
        model.learn_one(x, y)
    return model.to_bytes()


def test_other_bytes_are_refused():
    whole = a_model()
    for data in (
        b"",
        b"x",
        whole[:7],
        whole[: len(whole) // 2],
        whole[:-1],
        whole + b"x",
        b"\xff" * 64,
        b"\0" * 200,
    ):
        with pytest.raises(ValueError, match="not a whole sf2el model"):
            SF2EL.from_bytes(data)


def test_a_thousand_mutated_files_give_a_model_or_a_value_error():
    whole = a_model()
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(int(rng.integers(1, 6))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        try:
            model = SF2EL.from_bytes(bytes(data))
        except ValueError:
            continue
        read += 1
        assert model.memory_usage() > 0
        model.weights(), model.risk(), model.events()
    assert 0 < read < 1000


def test_a_file_that_asks_for_all_memory_is_refused():
    data = SF2EL.paper(buffer_size=4).to_bytes()
    model = SF2EL.paper(buffer_size=4)
    model.learn_one({"a": 1.0}, 1)
    data = model.to_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    content = json.loads(header["__metadata__"]["sf2el"])
    content["stage"]["current"]["learner"]["rows"] = 1 << 20
    header["__metadata__"]["sf2el"] = json.dumps(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with pytest.raises(ValueError, match="memory"):
        SF2EL.from_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def test_features_without_plain_names_cannot_be_saved(backend):
    model = make("paper", None)
    model.learn_one({("a", 1): 1.0})
    with pytest.raises(ValueError, match="named by text"):
        model.to_bytes()
