"""The eight methods on streams of one's own."""

from __future__ import annotations

import numpy as np
import pytest

from sf2el import LearnerSettings
from sf2el.paper.methods import METHODS, MethodRun, Setup, run_methods
from sf2el.streams import evolve

SETUP = Setup(old=LearnerSettings(label_rate=0.5), new=LearnerSettings(label_rate=0.5), buffer_size=10)


def stream(rounds=80):
    X = np.random.default_rng(0).normal(size=(rounds, 3))
    return evolve((X, np.where(X[:, 0] > 0, 1, -1)), seed=0, label_rate=0.5, overlap=5).two_spaces()


def test_one_method_may_be_named_alone():
    alone, listed = run_methods(stream(), SETUP, methods="SF2EL"), run_methods(stream(), SETUP)
    assert list(alone) == ["SF2EL"] and list(listed) == list(METHODS)
    assert isinstance(alone["SF2EL"], MethodRun)
    assert alone["SF2EL"].scores.tolist() == listed["SF2EL"].scores.tolist()


@pytest.mark.parametrize("methods", ["SF2", ["SF2EL", "SF2"], ""])
def test_an_unknown_method_is_named_whole(methods):
    with pytest.raises(ValueError, match=r"Unknown method '(SF2)?'; choose from NOGD, "):
        run_methods(stream(), SETUP, methods=methods)


def test_the_seed_may_be_numpys():
    plain, numpys = (run_methods(stream(), SETUP, methods="NOGD", seed=seed) for seed in (20, np.int64(20)))
    assert plain["NOGD"].scores.tolist() == numpys["NOGD"].scores.tolist()


def test_what_a_run_holds():
    data = stream()
    for name, run in run_methods(data, SETUP).items():
        rounds = len(data.after_swap)
        assert run.scores.shape == run.risks.shape == run.correct(data.y[data.t1 :]).shape == (rounds,)
        assert tuple(run.experts) == METHODS[name].experts
        several = len(run.experts) > 1
        assert (run.weights is not None) == (run.regret is not None) == several
        if several:
            assert run.weights.shape == (rounds, 2)
