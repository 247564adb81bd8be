"""Two backends, two compiled variants, two precisions, many threads: one algorithm."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from streams import KERNELS, LOSSES, same_state, stream

from sf2el.core import backend, native_available
from sf2el.paper.kernels import RBF, Polynomial
from sf2el.paper.settings import LearnerSettings

needs_native = pytest.mark.skipif(not native_available(), reason="the compiled core was not built")

PRECISIONS = ["float64", "float32"]

SWITCHES = {
    "default": {},
    "best": {"on_skip": "project", "loss": "squared_hinge"},
    "published": {"equations": "printed-weighted", "loss": "hinge"},
    "printed": {"equations": "printed", "smoothness": 0.01},
    "no-cap": {"cap": False},
    "no-MR": {"manifold": False},
    "no-MR,project": {"manifold": False, "on_skip": "project"},
    "pursuit": {"projection": "pursuit", "pursuit_steps": 4},
    "pursuit,project": {"projection": "pursuit", "pursuit_steps": 4, "on_skip": "project"},
    "no-gram": {"projection": "pursuit", "pursuit_steps": 4, "keep_gram": False},
    "no-gram,sum": {
        "projection": "pursuit",
        "keep_gram": False,
        "kernel": KERNELS["laplacian+linear"],
        "on_skip": "project",
        "step": 0.1,
    },
    "stratified": {"sampling": "stratified"},
    "stratified,project": {"sampling": "stratified", "on_skip": "project", "label_rate": 0.4},
    "given-rate": {"label_rate": 0.4},
    "small-ball": {"radius": 0.7, "step": 2.0},
    "squared": {"loss": "squared", "step": 0.2},
    "absolute": {"loss": "absolute", "step": 0.2},
    "polynomial": {"kernel": Polynomial(degree=2, gamma=0.3, offset=1.0), "step": 0.05},
    "linear": {"kernel": KERNELS["linear"], "step": 0.1},
    "laplacian": {"kernel": KERNELS["laplacian"]},
    "sum": {"kernel": KERNELS["four"], "step": 0.05},
}


def switched(name):
    return LearnerSettings(**({"kernel": RBF(0.5), "smoothness": 1e-3} | SWITCHES[name]))


def ran(be, settings, rounds=400, buffer=12, precision="float64", seed=6):
    X, y = stream(rounds, seed=seed)
    learner = be.Learner(settings, 3, buffer, 2, precision)
    return learner, *learner.run(X, y)


# -- one backend against the other


def test_the_compiled_core_is_there_where_a_compiler_is():
    if not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no compiler here")
    assert native_available()


@needs_native
@pytest.mark.parametrize("name", SWITCHES)
def test_both_backends_make_the_same_decisions_and_scores_over_a_stream(name):
    settings = switched(name)
    (native, *native_results), (numpy, *numpy_results) = (
        ran(backend(which), settings, rounds=2000, buffer=15) for which in ("native", "numpy")
    )
    for key in ("rows", "kinds", "seen_by_kind", "seen", "labels", "clock", "rng"):
        np.testing.assert_array_equal(native.state()[key], numpy.state()[key])
    np.testing.assert_allclose(native_results, numpy_results, rtol=1e-6, atol=1e-6)


@needs_native
@pytest.mark.parametrize("name", SWITCHES)
def test_from_the_same_state_one_step_gives_the_same_function(name):
    settings = switched(name)
    X, y = stream(300, seed=6)
    probes = np.random.default_rng(0).normal(size=(8, 3))
    both = [backend(which).Learner(settings, 3, 10, 2, "float64") for which in ("native", "numpy")]
    for start in range(0, 290, 13):
        # Forward in one, copied to the other, then one step in each: errors cannot add up.
        source, other = both if start % 2 else reversed(both)
        source.run(X[start : start + 12], y[start : start + 12])
        other.set_state(source.state())
        assert both[0].learn(X[start + 12], y[start + 12]) == pytest.approx(
            both[1].learn(X[start + 12], y[start + 12]), rel=1e-9, abs=1e-12
        )
        values = [learner.predict_many(probes) for learner in both]
        np.testing.assert_allclose(*values, rtol=0, atol=1e-9 * max(1.0, np.abs(values[0]).max()))


@needs_native
@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_both_backends_hedge_alike(eta):
    risks = np.random.default_rng(0).random((500, 3)) ** 3
    native, numpy = (backend(name).Hedge(3, eta) for name in ("native", "numpy"))
    for ours, theirs in zip(native.run(risks, risks), numpy.run(risks, risks), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    numpy.set_state(native.state())
    np.testing.assert_array_equal(numpy.state(), native.state())


# -- one variant against the other


@pytest.fixture
def variants(monkeypatch):
    if not native_available():
        pytest.skip("the compiled core was not built")
    from sf2el.core import _native

    if not _native.wide_usable():
        pytest.skip("this processor or build has no wide variant of the core")

    def run(settings, precision, buffer):
        for variant in ("base", "wide"):
            monkeypatch.setenv("SF2EL_VARIANT", variant)
            learner, *results = ran(
                backend("native"), settings, rounds=600, buffer=buffer, precision=precision
            )
            yield learner.state(), results

    return run


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SWITCHES)
def test_the_wide_variant_gives_the_same_bits(variants, name, precision):
    for buffer in (13, 24):
        (base, base_results), (wide, wide_results) = variants(switched(name), precision, buffer)
        np.testing.assert_array_equal(base_results, wide_results)
        assert same_state(base, wide)


@needs_native
def test_an_unknown_or_missing_variant_is_refused_or_base(monkeypatch):
    from sf2el.core import _native

    monkeypatch.setenv("SF2EL_VARIANT", "wide")
    if _native.wide_usable():
        backend("native").Learner(LearnerSettings(), 1, 2, 0, "float64")
    else:
        with pytest.raises(ValueError, match="no wide variant"):
            backend("native").Learner(LearnerSettings(), 1, 2, 0, "float64")


# -- one precision against the other


@pytest.mark.parametrize("name", ["default", "best", "no-MR", "pursuit", "stratified", "linear"])
def test_single_precision_comes_close_to_double(be, name):
    # The same rows; scores to 1e-3 of their range, which the rounding of 400 steps does not reach.
    double, scores, risks = ran(be, switched(name))
    single, single_scores, single_risks = ran(be, switched(name), precision="float32")
    np.testing.assert_allclose(single.state()["rows"], double.state()["rows"], rtol=1e-6)
    assert single.state()["rng"] == double.state()["rng"]
    np.testing.assert_allclose(single_scores, scores, rtol=0, atol=1e-3 * np.abs(scores).max())
    np.testing.assert_allclose(single_risks, risks, rtol=0, atol=1e-3 * np.abs(risks).max())


@needs_native
@pytest.mark.parametrize("name", ["default", "best", "no-MR", "pursuit", "stratified"])
def test_single_precision_backends_come_close_to_each_other(name):
    results = [ran(backend(which), switched(name), precision="float32")[1:] for which in ("native", "numpy")]
    np.testing.assert_allclose(*results, rtol=0, atol=2e-3 * np.abs(results[0][0]).max())


# -- the Gram matrix kept or not


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "four"])
def test_without_the_gram_matrix_the_function_is_the_same(be, kernel):
    common = {"kernel": KERNELS[kernel], "projection": "pursuit", "pursuit_steps": 4, "step": 0.05}
    kept, *kept_results = ran(be, LearnerSettings(**common))
    computed, *results = ran(be, LearnerSettings(keep_gram=False, **common))
    np.testing.assert_allclose(results, kept_results, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(computed.state()["rows"], kept.state()["rows"])
    assert computed.state()["gram"] is None


def test_the_exact_projection_needs_the_gram_matrix():
    with pytest.raises(ValueError, match='keep_gram=False needs projection="pursuit"'):
        LearnerSettings(keep_gram=False)


# -- many rows against one, copies, states


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SWITCHES)
def test_run_is_a_loop_of_learn_to_the_bit(be, name, precision):
    learner, scores, risks = ran(be, switched(name), rounds=120, precision=precision)
    loop = be.Learner(switched(name), 3, 12, 2, precision)
    pairs = [loop.learn(x, label) for x, label in zip(*stream(120, seed=6), strict=True)]
    np.testing.assert_array_equal(np.array(pairs).T, [scores, risks])
    assert same_state(loop.state(), learner.state())


def test_predict_many_is_a_loop_of_predict_to_the_bit_and_changes_nothing(be):
    learner, *_ = ran(be, switched("default"))
    before = learner.state()
    X, _ = stream(50, seed=1)
    np.testing.assert_array_equal(learner.predict_many(X), [learner.predict(x) for x in X])
    assert same_state(learner.state(), before)


def test_the_layout_of_an_array_does_not_matter(be):
    learner, *_ = ran(be, switched("default"))
    X, _ = stream(50, seed=1)
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    for laid_out in (np.asfortranarray(X), wide):
        np.testing.assert_array_equal(learner.predict_many(laid_out), learner.predict_many(X))


def test_the_score_of_a_round_is_the_prediction_before_it(be):
    learner = be.Learner(switched("default"), 3, 12, 2, "float64")
    for x, label in zip(*stream(100, seed=6), strict=True):
        predicted = learner.predict(x)
        assert learner.learn(x, label)[0] == predicted


def test_inputs_are_not_changed(be):
    X, y = stream(50, seed=6)
    kept = X.copy(), y.copy()
    be.Learner(switched("default"), 3, 12, 2, "float64").run(X, y)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["default", "best", "pursuit,project", "stratified"])
def test_a_copy_goes_its_own_way(be, name, precision):
    learner, *_ = ran(be, switched(name), precision=precision)
    before = learner.state()
    copy = learner.copy()
    X, y = stream(100, seed=12)
    results = copy.run(X, y)
    assert same_state(learner.state(), before)
    np.testing.assert_array_equal(learner.run(X, y), results)
    assert same_state(learner.state(), copy.state())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SWITCHES)
def test_a_state_carries_a_learner_on_to_the_bit(be, name, precision):
    X, y = stream(60, seed=12)
    for rounds in (0, 5, 80):  # empty, filling, full
        learner, *_ = ran(be, switched(name), rounds=rounds, precision=precision)
        other = be.Learner(switched(name), 3, 12, 999, precision)
        other.set_state(learner.state())
        assert same_state(other.state(), learner.state())
        np.testing.assert_array_equal(other.run(X, y), learner.run(X, y))
        assert same_state(other.state(), learner.state())


def test_a_state_is_a_copy(be):
    learner, *_ = ran(be, switched("best"))
    before, other = learner.state(), learner.state()
    for key in ("rows", "beta", "gram", "inverse"):
        other[key][:] = 7.0
    assert same_state(learner.state(), before)
    fresh = be.Learner(switched("best"), 3, 12, 0, "float64")
    fresh.set_state(before)
    before["beta"][:] = 7.0
    assert same_state(fresh.state(), learner.state())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: {**state, "rows": state["rows"][:, :2].copy()},
        lambda state: {**state, "beta": state["beta"][:-1].copy()},
        lambda state: {**state, "gram": state["gram"][:-1].copy()},
        lambda state: {**state, "inverse": state["inverse"][:-1].copy()},
        lambda state: {**state, "weights": state["weights"][:-1].copy()},
        lambda state: {**state, "kinds": state["kinds"][:-1].copy()},
        lambda state: {**state, "kinds": state["kinds"] + 1},
    ],
    ids=["rows", "beta", "gram", "inverse", "weights", "kinds", "kind"],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(be, spoil):
    learner, *_ = ran(be, switched("best"))
    before = learner.state()
    with pytest.raises(ValueError, match="does not fit this learner"):
        learner.set_state(spoil(learner.state()))
    assert same_state(learner.state(), before)


def test_a_state_of_more_rows_than_the_buffer_holds_is_refused(be):
    learner, *_ = ran(be, switched("best"))
    with pytest.raises(ValueError, match="does not fit this learner"):
        be.Learner(switched("best"), 3, 5, 0, "float64").set_state(learner.state())


# -- threads and processes


def digest(be_name, name):
    learner, scores, risks = ran(backend(be_name), switched(name), rounds=300)
    parts = [scores, risks, learner.state()["beta"], learner.state()["rows"]]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def test_threads_give_the_same_bits(be):
    names = ["default", "best", "no-MR", "pursuit,project", "stratified", "sum"] * 2
    alone = [digest(be.NAME, name) for name in names]
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda name: digest(be.NAME, name), names)] == alone


def test_one_learner_can_be_asked_by_many_threads_at_once(be):
    # Predicting changes nothing, so nothing should stand in the way. Long batches, so that they overlap.
    rows = 20_000 if be.NAME == "native" else 200
    learner, *_ = ran(be, switched("default"), buffer=60)
    batches = [stream(rows, seed=seed)[0] for seed in range(12)]
    alone = [learner.predict_many(X) for X in batches]
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(learner.predict_many, batches)]
    wrong = sum(np.count_nonzero(a != b) for a, b in zip(alone, together, strict=True))
    assert wrong == 0


def test_another_process_gives_the_same_bits(be):
    code = "import test_backends; print(*(test_backends.digest(%r, n) for n in %r))"
    names = ["default", "best", "stratified"]
    answer = subprocess.run(
        [sys.executable, "-c", code % (be.NAME, names)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert answer.stdout.split() == [digest(be.NAME, name) for name in names]


def test_every_loss_is_among_the_switches():
    assert {switched(name).loss for name in SWITCHES} == {*LOSSES}


def test_the_stub_names_what_the_compiled_module_has():
    import ast

    import sf2el.core
    from sf2el.core import _native

    tree = ast.parse((Path(sf2el.core.__file__).parent / "_native.pyi").read_text())
    told = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert told == {name for name in dir(_native) if not name.startswith("_")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            told_in = [node, *(other for base in node.bases for other in tree.body if _is_class(other, base))]
            items = [item for place in told_in for item in place.body]
            members = {item.name for item in items if isinstance(item, ast.FunctionDef)} - {"__init__"}
            assert members == {name for name in dir(getattr(_native, node.name)) if not name.startswith("_")}


def _is_class(node, base):
    return getattr(node, "name", None) == base.id
