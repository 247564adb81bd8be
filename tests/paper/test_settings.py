"""Parameters: numbers of NumPy's are numbers, and are kept as Python's own."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from sf2el import (
    RBF,
    SF2EL,
    Constant,
    Hedge,
    Laplacian,
    Learner,
    LearnerSettings,
    Polynomial,
    RecoveryMap,
    Scaler,
    SF2ELRegressor,
)
from sf2el.inputs.parameters import plain_number
from sf2el.paper.methods import Setup

REALS = ("graph_width", "ridge", "smoothness", "step", "label_rate", "radius", "jitter")


@pytest.mark.parametrize("whole", [np.int8, np.int64, np.uint16])
@pytest.mark.parametrize("real", [np.float16, np.float32, np.float64])
def test_settings_take_numpys_numbers_and_keep_pythons(whole, real):
    plain = LearnerSettings(**dict.fromkeys(REALS, 0.5), pursuit_steps=7)
    given = LearnerSettings(**dict.fromkeys(REALS, real(0.5)), pursuit_steps=whole(7))
    assert repr(given) == repr(plain) and given == plain
    settings = Setup(old=plain, new=plain, buffer_size=20, map_ridge=0.5, eta=0.5)
    assert repr(
        Setup(old=given, new=given, buffer_size=whole(20), map_ridge=real(0.5), eta=real(0.5))
    ) == repr(settings)


@pytest.mark.parametrize("real", [np.float32, np.float64, np.int64])
def test_kernels_take_numpys_numbers_and_keep_pythons(real):
    for kernel in (RBF, Laplacian, Constant):
        assert repr(kernel(real(2))) == repr(kernel(type(real(2).item())(2)))
    kernel = Polynomial(np.int64(3), np.float32(0.5), np.float64(2.0))
    assert repr(kernel) == "Polynomial(degree=3, gamma=0.5, offset=2.0)"
    assert json.dumps(asdict(kernel)) == '{"degree": 3, "gamma": 0.5, "offset": 2.0}'


def test_learners_take_numpys_numbers():
    def scores(whole):
        sizes = {"dim": whole(1), "buffer_size": whole(3), "seed": whole(20)}
        made = Learner(LearnerSettings(), **sizes)
        assert type(made.dim) is type(made.buffer_size) is int
        return made.run(np.arange(20.0)[:, None], [1, -1] * 10)[0].tolist()

    assert scores(np.int64) == scores(int)


@pytest.mark.parametrize(
    "wrong", [True, np.True_, np.float64(3.0), np.float64("nan"), "3", None, np.array([3]), 3.0]
)
def test_what_is_no_whole_number_is_still_refused(wrong):
    with pytest.raises(ValueError, match="pursuit_steps must be a whole number"):
        LearnerSettings(pursuit_steps=wrong)


@pytest.mark.parametrize(
    "wrong", [True, np.True_, np.float32("inf"), np.float64("nan"), "1", np.array([1.0])]
)
def test_what_is_no_number_is_still_refused(wrong):
    with pytest.raises(ValueError, match="step must be a number above 0"):
        LearnerSettings(step=wrong)
    with pytest.raises(ValueError, match="gamma must be a number above 0"):
        RBF(wrong)


def test_what_is_no_number_is_left_as_it_is():
    values = [True, np.True_, "3", None, [np.int64(3)]]
    assert all(plain_number(value) is value for value in values)
    assert type(plain_number(np.uint64(2**64 - 1))) is int


MODELS = {
    "seed": lambda whole, real: SF2EL(seed=whole(20), budget=whole(16384)),
    "forget": lambda whole, real: SF2EL(forget=real(0.25)),
    "regressor": lambda whole, real: SF2ELRegressor(seed=whole(20), forget=real(0.25)),
    "paper": lambda whole, real: SF2EL.paper(
        seed=whole(20), buffer_size=whole(7), step=real(0.5), map_ridge=real(0.5), eta=real(0.5)
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_take_numpys_numbers_and_write_pythons(name):
    def file(whole, real):
        model = MODELS[name](whole, real)
        for t in range(60):
            names = "ab" if t < 25 else "abc" if t < 30 else "c"
            model.learn_one({name: (t * ord(name)) % 7 for name in names}, t % 2)
        return repr(model), model.to_bytes()

    assert file(np.int64, np.float32) == file(int, float)


def test_parts_take_numpys_numbers():
    one = np.int64(1)
    assert repr(Hedge(np.int64(2), eta=np.float32(0.5)).eta) == "0.5"
    assert type(RecoveryMap(one, one, ridge=np.float32(0.5)).new_dim) is type(Scaler(one).dim) is int
