"""SF2EL.paper is the published algorithm: its reference, row by row, and the method of the experiments."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import STREAMS, check_bytes, learned, paper, swap, twin_of

from sf2el import RBF, SF2EL, Hedge, LearnerSettings
from sf2el.paper.methods import Setup, run_methods
from sf2el.paper.reference import ReferenceSF2EL
from sf2el.streams import TwoSpaceStream

TOLERANCE = 1e-9
SETTINGS = {"kernel": RBF(0.4), "graph_width": 0.5, "ridge": 0.02, "smoothness": 0.5, "step": 0.4}


def periods(cycles, seed=0, length=40, overlap=8):
    """Old features, both, new ones; these are the old ones of the next cycle."""
    rng = np.random.default_rng(seed)
    for cycle in range(cycles):
        for t in range(length):
            z = rng.normal(size=3)
            x = {f"s{cycle}_{j}": float(z[j]) for j in range(3)}
            if t >= length - overlap and cycle + 1 < cycles:
                x |= {f"s{cycle + 1}_{j}": float(z[j] - 0.4 * z[j - 1]) for j in range(3)}
            label = "up" if z[0] + 0.3 * rng.normal() > 0 else "down"
            yield x, label if rng.random() < 0.5 else None


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("more", [{}, {"train_in_overlap": True}, {"eta": 0.2}, {"restart": False}], ids=str)
@pytest.mark.parametrize("cycles", [1, 2])
def test_it_is_the_reference_row_by_row(cycles, more, seed):
    model = SF2EL.paper(buffer_size=9, seed=seed, **SETTINGS, **more)
    reference = ReferenceSF2EL(LearnerSettings(**SETTINGS), buffer_size=9, seed=seed, **more)
    recovered = 0
    for x, label in periods(cycles, seed):
        assert model.predict_one(x) == reference.predict_one(x)
        ours, theirs = model.explain_one(x), reference.explain_one(x)
        recovered += len(ours) > 1
        for (score, weight), told in zip(theirs.values(), ours.values(), strict=True):
            assert told["score"] == pytest.approx(score, abs=TOLERANCE)
            assert told["weight"] == pytest.approx(weight, abs=TOLERANCE)
        model.learn_one(x, label)
        reference.learn_one(x, label)
    assert (recovered > 30) == (cycles > 1)


def swiss(seed, rows=600):
    """A two-space stream without the real files."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    Z = np.column_stack([X, X.sum(axis=1)]) + 0.05 * rng.normal(size=(rows, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    half, overlap = rows // 2, 20
    return TwoSpaceStream(
        old=X[:half], new=Z[half - overlap :], y=y, labelled=rng.random(rows) < 0.4, overlap=overlap
    )


def test_it_is_the_method_of_the_experiments():
    stream = swiss(3)
    settings = LearnerSettings(kernel=RBF(1.0), graph_width=1.0, label_rate=0.4, loss="hinge", step=2.0)
    setup = Setup(old=settings, new=settings, buffer_size=30)
    expected = run_methods(stream, setup, methods=["SF2EL"], seed=9)["SF2EL"]
    model = SF2EL.paper(
        buffer_size=30,
        kernel=RBF(1.0),
        graph_width=1.0,
        label_rate=0.4,
        loss="hinge",
        step=2.0,
        eta=Hedge.rate_for(len(stream.after_swap)),
        classes=[1, -1],
        seed=9,
    )
    labels = [int(y) if known else None for y, known in zip(stream.y, stream.labelled, strict=True)]
    before, both = stream.t1 - stream.overlap, stream.overlap
    model.learn_many(stream.old[:before], labels[:before], features=["a", "b"])
    overlap = np.hstack([stream.old[before:], stream.new[:both]])
    model.learn_many(overlap, labels[before : stream.t1], features=["a", "b", "p", "q", "r"])
    found = zip(stream.after_swap, labels[stream.t1 :], expected.scores, strict=True)
    for t, (z, y, score) in enumerate(found):
        row = dict(zip("pqr", z.tolist(), strict=True))
        told = model.explain_one(row)
        assert model.predict_one(row) == (1 if score >= 0.0 else -1)
        assert not t or sum(one["weight"] * one["score"] for one in told.values()) == pytest.approx(
            score, abs=TOLERANCE
        )
        model.learn_one(row, y)


def test_cycles_are_told_and_old_learners_go_on():
    model = SF2EL.paper(buffer_size=9, **SETTINGS)
    for x, label in periods(4, 1):
        model.learn_one(x, label)
    kinds = [event.kind for event in model.events().last]
    assert kinds.count("opened") == kinds.count("swapped") == 3
    assert [event.certain for event in model.events().last if event.kind == "opened"] == [32, 72, 112]
    assert [event.certain for event in model.events().last if event.kind == "swapped"] == [40, 80, 120]
    assert "recovered" in model.weights()


def test_the_recovered_learner_predicts_from_the_first_row_after_the_swap():
    model = SF2EL.paper(buffer_size=20, kernel=RBF(0.5), label_rate=0.5, step=2.0, on_skip="project")
    right = []
    for t, (x, label) in enumerate(periods(2, 3, length=400, overlap=30)):
        truth = x.get("s0_0")
        if t > 400:
            told = model.explain_one(x)
            assert {name.split(" ")[0] for name in told} == {"recovered", "current"}
            if label:
                right.append(model.predict_one(x) == label)
        model.learn_one(x, label)
        assert truth is None or t < 400
    assert np.mean(right) > 0.65


@pytest.mark.parametrize("budget", [8192, 16384, 65536])
def test_with_a_budget_buffers_are_as_large_as_fit(budget):
    model = SF2EL.paper(budget=budget, **SETTINGS)
    for x, label in periods(3, 2):
        model.learn_one(x, label)
        check_bytes(model)
    sizes = [event.fields for event in model.events().last if event.kind == "buffers"]
    assert all(size["rows"] >= 2 for size in sizes)
    assert sizes or budget < 32 * 1024  # details are for logs that have room
    assert model.memory_usage() > 0.7 * budget


def test_more_bytes_are_more_rows():
    rows = []
    for budget in (2048, 4096, 16384, 65536):
        model = learned(paper(budget), STREAMS["complete"]())
        rows.append(model.memory_usage(detail=True)["learners"])
    assert rows == sorted(rows) and rows[-1] > 3 * rows[0]


def test_its_parameters_are_saved():
    given = {
        "kernel": RBF(0.3) + RBF(2.0),
        "loss": "hinge",
        "sampling": "stratified",
        "projection": "pursuit",
        "equations": "printed",
        "map_ridge": 0.5,
        "map_intercept": True,
        "label_rate": 0.25,
        "eta": 0.7,
        "seed": 2**64 - 1,
    }
    model, other = SF2EL.paper(buffer_size=7, **given), SF2EL.paper(buffer_size=7)
    for each in (model, other):
        learned(each, swap())
    twin = twin_of(model)
    for each in (model, twin, other):
        learned(each, swap(seed=6))
    assert twin.to_bytes() == model.to_bytes() != other.to_bytes()
    assert repr(model) == "SF2EL(buffer_size=7, seed=18446744073709551615, rows=320)"
