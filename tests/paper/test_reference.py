"""The reference and the compiled core are the same algorithm.

Both take the same decisions, so that the rows kept are equal to the bit. Numbers are equal to rounding only:
sums are added in another order, and the core keeps an inverse up to date where the reference solves anew.
``TOLERANCE`` is relative to the largest number compared (at least 1). Rounding alone stays below 1e-11 here.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from streams import KERNELS, LOSSES, stream

from sf2el import SF2EL
from sf2el.maps.recovery import RecoveryMap
from sf2el.mixing.hedge import Hedge
from sf2el.paper.kernels import RBF, Linear
from sf2el.paper.learner import Learner
from sf2el.paper.methods import METHODS, Setup, run_methods
from sf2el.paper.reference import (
    ReferenceHedge,
    ReferenceLearner,
    ReferenceMap,
    ReferenceSF2EL,
    run_two_spaces,
)
from sf2el.paper.settings import LearnerSettings
from sf2el.streams import TwoSpaceStream

TOLERANCE = 1e-9
LIVELY = LearnerSettings(kernel=RBF(0.4), graph_width=0.5, ridge=0.02, smoothness=0.5, step=0.4)
PROBES = np.random.default_rng(99).normal(size=(5, 3))


def assert_same(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert np.all(np.isfinite(expected))
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=TOLERANCE * scale)


# -- one learner


def learned(
    settings, *, rounds=150, buffer=9, seed=1, weights=None, restart_at=None, frozen_from=None, X=None
):
    """Run both learners on a stream; hold scores, risks, buffers and functions equal; return the scores."""
    rows, y = stream(rounds, seed=seed)
    rows = rows if X is None else X
    weights = np.ones(rounds) if weights is None else weights
    frozen_from = rounds if frozen_from is None else frozen_from
    core = Learner(settings, dim=3, buffer_size=buffer, seed=seed)
    reference = ReferenceLearner(settings, dim=3, buffer_size=buffer, seed=seed)
    expected, actual = [], []
    for t in range(rounds):
        if t == restart_at:
            core.restart()
            reference.restart()
        if t < frozen_from:
            expected.append(core.learn(rows[t], y[t], weights[t]))
            actual.append(reference.learn(rows[t], y[t], weights[t]))
        else:
            expected.append(np.ravel(core.run(rows[t : t + 1], y[t : t + 1], frozen=True)))
            actual.append(reference.learn(rows[t], y[t], frozen=True))
    np.testing.assert_array_equal(reference.rows, core.buffer)
    assert not np.array_equal(reference.rows, rows[:buffer]), "the stream must replace rows"
    assert_same(np.array(actual)[:, 0], np.array(expected)[:, 0])
    assert_same(np.array(actual)[:, 1], np.array(expected)[:, 1])
    assert_same([reference.predict(x) for x in PROBES], core.predict_many(PROBES))
    return np.array(actual)[:, 0]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("manifold", [True, False], ids=["MR", "no-MR"])
@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
@pytest.mark.parametrize("on_skip", ["drop", "project"])
@pytest.mark.parametrize("projection", ["exact", "pursuit"])
@pytest.mark.parametrize("equations", ["gradient", "printed", "printed-weighted"])
def test_all_equations_and_buffers_are_the_core_s(equations, projection, on_skip, sampling, manifold, seed):
    settings = replace(
        LIVELY,
        equations=equations,
        projection=projection,
        pursuit_steps=3,
        on_skip=on_skip,
        sampling=sampling,
        manifold=manifold,
    )
    learned(settings, seed=seed)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_kernels_and_losses_are_the_core_s(kernel, loss):
    # Large steps on cubic kernels diverge, and would compare rounding errors.
    step = 0.02 if kernel in ("polynomial", "four") else 0.4
    learned(replace(LIVELY, kernel=KERNELS[kernel], loss=loss, step=step, on_skip="project"))


SWITCHES = {
    "no cap": {"cap": False},
    "much capped": {"smoothness": 5.0},
    "printed, much capped": {"smoothness": 5.0, "equations": "printed"},
    "label rate given": {"label_rate": 0.3},
    "small ball": {"radius": 0.3},
    "large jitter": {"jitter": 0.5},
    "no ridge": {"ridge": 0.0},
    "large ridge": {"ridge": 0.8},
    "published": {"equations": "printed-weighted", "loss": "hinge", "label_rate": 0.3},
    "narrow graph": {"graph_width": 500.0},
    "one pursuit step": {"projection": "pursuit", "pursuit_steps": 1},
    "pursuit of all rows, large jitter": {"projection": "pursuit", "jitter": 0.5},
    "pursuit, rows of unequal size": {
        "projection": "pursuit",
        "pursuit_steps": 3,
        "kernel": KERNELS["laplacian+linear"],
    },
    "pursuit without a kept gram": {"projection": "pursuit", "pursuit_steps": 3, "keep_gram": False},
}


@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("changes", SWITCHES.values(), ids=SWITCHES)
def test_every_other_switch_is_the_core_s_and_changes_something(changes, seed):
    usual = learned(LIVELY, seed=seed)
    assert np.abs(learned(replace(LIVELY, **changes), seed=seed) - usual).max() > 1e-6


@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
@pytest.mark.parametrize("buffer", [2, 3, 40])
def test_buffers_of_other_sizes_are_the_core_s(buffer, sampling):
    learned(replace(LIVELY, sampling=sampling), buffer=buffer)


@pytest.mark.parametrize("sampling", ["reservoir", "stratified"])
def test_weights_restart_and_frozen_rounds_are_the_core_s(sampling):
    settings = replace(LIVELY, sampling=sampling)
    usual = learned(settings)
    for changes in (
        {"weights": np.random.default_rng(0).uniform(0.1, 5.0, 150)},
        {"restart_at": 70},
        {"frozen_from": 70},
    ):
        assert np.abs(learned(settings, **changes) - usual).max() > 1e-6


def test_rows_so_far_apart_that_kernels_are_exactly_0():
    X, _ = stream(150, seed=1)
    scores = learned(LIVELY, X=1e3 * X)
    np.testing.assert_array_equal(scores, 0.0)


def test_rows_that_are_all_zero_and_duplicates_leave_singular_matrices():
    X = np.zeros((150, 3))
    X[75:] = np.repeat(stream(15, seed=2)[0], 5, axis=0)
    for kernel in (Linear(), RBF(0.4)):
        learned(replace(LIVELY, kernel=kernel, step=0.1, on_skip="project"), X=X)


# -- the map


@pytest.mark.parametrize("rows", [3, 40], ids=["fewer rows than features", "more"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_map_is_the_core_s(ridge, intercept, rows, seed):
    rng = np.random.default_rng(seed)
    Z, X = rng.normal(size=(rows, 5)) + 2.0, rng.normal(size=(rows, 2))
    # It never varies: centred, nothing but rounding is left of it. Without that it is a feature like others.
    Z[:, 3] = 12345.678 if intercept else 7.0
    core = RecoveryMap(5, 2, ridge=ridge, intercept=intercept)
    reference = ReferenceMap(5, 2, ridge=ridge, intercept=intercept)
    core.observe(Z, X)
    for z, x in zip(Z, X, strict=True):
        reference.observe(z, x)
    core.solve()
    reference.solve()
    probes = rng.normal(size=(6, 5))
    assert_same([reference.recover(z) for z in probes], core.recover(probes))


def test_map_without_rows_recovers_zeros():
    reference = ReferenceMap(3, 2)
    reference.solve()
    np.testing.assert_array_equal(reference.recover(np.ones(3)), np.zeros(2))


# -- the hedge


@pytest.mark.parametrize("experts", [1, 2, 5])
@pytest.mark.parametrize("eta", [None, 0.05, 3.0])
@pytest.mark.parametrize("largest", [1.0, 30.0])
def test_hedge_is_the_core_s(eta, experts, largest):
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(200, experts))
    risks = largest * rng.random((200, experts)) ** np.arange(1, experts + 1)
    core, reference = Hedge(experts, eta=eta), ReferenceHedge(experts, eta=eta)
    expected, expected_risks, weights = core.run(scores, risks)
    for t in range(200):
        assert_same(reference.weights, weights[t])
        assert_same(reference.combine(scores[t]), expected[t])
        assert_same(reference.update(risks[t]), expected_risks[t])
    found, monitor = reference.regret(), core.monitor()
    assert_same(found, [monitor.regret, monitor.bound, monitor.certificate])
    regret, bound, certificate = found
    assert regret <= certificate + 1e-9
    assert regret <= bound


# -- both spaces


def two_spaces(seed, t1=90, t2=90, overlap=10):
    X, y = stream(t1 + t2, seed=seed, labelled=1.0)
    rng = np.random.default_rng(seed)
    labelled = rng.random(t1 + t2) < 0.4
    Z = X @ rng.normal(size=(3, 4)) + 0.1 * rng.normal(size=(t1 + t2, 4))
    return TwoSpaceStream.cut(X, Z, y=y, labelled=labelled, overlap=overlap, t1=t1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("overlap_trains", [False, True])
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("eta", [None, "theory"])
@pytest.mark.parametrize("name", METHODS)
def test_all_eight_methods_are_the_core_s(name, eta, restart, overlap_trains, seed):
    made, method = two_spaces(seed), METHODS[name]
    new_settings = replace(LIVELY, kernel=RBF(0.1), smoothness=0.02)
    setup = Setup(
        old=LIVELY,
        new=new_settings,
        buffer_size=9,
        restart=restart,
        map_intercept=True,
        train_in_overlap=overlap_trains,
        eta=eta,
    )
    run = run_methods(made, setup, methods=name, seed=seed)[name]
    model = ReferenceSF2EL(
        replace(LIVELY, manifold=method.manifold),
        new_settings=replace(new_settings, manifold=method.manifold),
        buffer_size=9,
        seed=seed,
        eta=Hedge.rate_for(90) if eta else None,
        restart=restart,
        map_intercept=True,
        train_in_overlap=overlap_trains,
        experts=method.experts,
    )
    rounds = run_two_spaces(made.old, made.new, made.labels, overlap=10, model=model)
    assert_same([each.score for each in rounds], run.scores)
    assert_same([each.risk for each in rounds], run.risks)
    if run.weights is not None:
        assert_same([each.weights for each in rounds], run.weights)
    for i, expert in enumerate(run.experts.values()):
        assert_same([each.scores[i] for each in rounds], expert.scores)
        assert_same([each.risks[i] for each in rounds], expert.risks)


def dict_stream(seed, periods=(("a", 60), ("ab", 10), ("b", 60), ("bc", 7), ("c", 50))):
    """Rows of three spaces, two of them swaps with an overlap before; four labels in ten are there."""
    rng = np.random.default_rng(seed)
    rounds = sum(length for _, length in periods)
    X, y = stream(rounds, seed=seed)
    widths = {"a": 3, "b": 4, "c": 2}
    spaces = {name: X @ rng.normal(size=(3, width)) / 2.0 for name, width in widths.items()}
    present = [names for names, length in periods for _ in range(length)]
    for t, names in enumerate(present):
        row = {f"{name}{j}": float(spaces[name][t, j]) for name in names for j in range(widths[name])}
        yield row, None if np.isnan(y[t]) else ("up" if y[t] > 0 else "down")


WHOLE = {
    "usual": {},
    "published": {"equations": "printed-weighted", "loss": "hinge", "label_rate": 0.4},
    "best": {"on_skip": "project", "restart": False},
    "train in overlap": {"train_in_overlap": True},
    "fixed rate": {"eta": 0.1},
    "no manifold": {"manifold": False},
    "intercept": {"map_intercept": True},
    "plain least squares": {"map_ridge": 0.0, "train_in_overlap": True},
    "stratified pursuit": {"sampling": "stratified", "projection": "pursuit", "pursuit_steps": 4},
    "balanced": {"class_weight": "balanced", "train_in_overlap": True},
    "weights": {"class_weight": {"up": 3.0, "down": 0.5}},
    "classes known": {"classes": ["down", "up"], "label_rate": 0.4},
}
LEARNER = {name: getattr(LIVELY, name) for name in ("kernel", "graph_width", "ridge", "smoothness", "step")}
OF_MODEL = ("restart", "train_in_overlap", "eta", "map_intercept", "map_ridge", "class_weight", "classes")


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("changes", WHOLE.values(), ids=WHOLE)
def test_dict_rows_through_two_cycles_are_the_core_s(changes, seed):
    core = SF2EL.paper(buffer_size=9, seed=seed, **LEARNER, **changes)
    own = {name: value for name, value in changes.items() if name in OF_MODEL}
    rest = {name: value for name, value in changes.items() if name not in OF_MODEL}
    reference = ReferenceSF2EL(LearnerSettings(**LEARNER, **rest), buffer_size=9, seed=seed, **own)
    followed = set()
    for x, label in dict_stream(seed):
        expected, actual = core.explain_one(x).values(), reference.explain_one(x).values()
        assert len(actual) == len(expected)
        assert_same([score for score, _ in actual], [each["score"] for each in expected])
        assert_same([weight for _, weight in actual], [each["weight"] for each in expected])
        assert reference.predict_one(x) == core.predict_one(x)
        followed.add(len(actual))
        core.learn_one(x, label)
        reference.learn_one(x, label)
    assert followed == {0, 1, 2}
    assert_same(reference.hedge.cumulative / reference.hedge.rounds, list(core.risk().values()))


def test_explaining_a_row_of_the_next_period_changes_nothing():
    model = ReferenceSF2EL(LIVELY, buffer_size=9)
    rows = list(dict_stream(0))
    for x, label in rows[:70]:
        model.learn_one(x, label)
    assert set(model.explain_one(rows[70][0])) == {"updating", "scratch"}
    assert set(model.explain_one(rows[69][0])) == {"scratch"}


@pytest.mark.parametrize("row", [{}, {"a0": 1.0}, {"b0": 1.0}, {"a0": 1.0, "b0": 1.0}])
def test_a_row_of_no_period_is_refused_and_changes_nothing(row):
    model = ReferenceSF2EL(LIVELY, buffer_size=9)
    for x, label in list(dict_stream(0))[:65]:
        model.learn_one(x, label)
    counts = dict(model.counts)
    with pytest.raises(ValueError, match="neither the old features"):
        model.learn_one(row, "up")
    assert model.counts == counts


def test_a_third_label_and_a_swap_without_an_overlap_are_refused():
    model = ReferenceSF2EL(LIVELY, classes=["up", "down"])
    with pytest.raises(ValueError, match="neither"):
        model.learn_one({"a": 1.0}, "left")
    with pytest.raises(ValueError, match="both spaces"):
        model.swap()


# -- by itself


def test_it_runs_where_nothing_is_compiled():
    script = """
import sys
sys.modules["sf2el.core._native"] = None
from sf2el.paper.reference.__main__ import main
main()
ours = {name: module for name, module in sys.modules.items() if name.startswith("sf2el") and module}
print([name for name, module in ours.items() if not (module.__file__ or "").endswith(".py")])
print([name for name in ours if "backend" in name])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *accuracies, compiled, backends = found.stdout.splitlines()
    assert (compiled, backends) == ("[]", "[]")
    assert accuracies[0].startswith("SF2EL: ")
    assert float(accuracies[0].split()[1]) > 0.8
