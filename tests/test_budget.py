"""The budget as a contract: what is counted is what is kept, and it is never more than was allowed."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from test_model import Frame, state_of

from sf2el import RBF, SF2EL, LearnerSettings, SF2ELRegressor
from sf2el.core import native_available
from sf2el.events import MOVED
from sf2el.experts.posterior import (
    Form,
    PosteriorSettings,
    affine_bytes,
    fixed_share_bytes,
    moments_bytes,
    posterior_bytes,
)
from sf2el.maps.sketch import Sketch
from sf2el.memory.bank_sizes import AMPLE_BASIS, ENOUGH_BASIS, FEW_BASIS, MOST_BASIS, SOME_BASIS
from sf2el.memory.budget import (
    hedge_bytes,
    learner_bytes,
    map_bytes,
    names_bytes,
    newcomer_room,
    parse_budget,
    scaler_bytes,
    waiting_room,
)
from sf2el.memory.plan import ENOUGH_ROWS, FORMS

BACKENDS = ("native", "numpy")
KINDS = ("bank", "paper")


def make(kind: str, budget: int | str, **more: Any) -> SF2EL:
    """Return a model within a budget: the default, or the published learner."""
    if kind == "bank":
        return SF2EL(budget=budget, **more)
    return SF2EL.paper(
        budget=budget,
        scaled=True,
        restart=False,
        on_skip="project",
        loss="hinge",
        kernel=RBF(2.5),
        graph_width=7.5,
        step=2.0,
        **more,
    )


def least_of(kind: str) -> int:
    """Return the bytes of the smallest model: one feature with a name of one byte, four events."""
    with pytest.raises(ValueError) as raised:
        make(kind, 1)
    return told_by(raised)


def told_by(raised: Any) -> int:
    """Return the budget that an error asks for: its last number."""
    text = str(raised.value)
    assert "\n" not in text and re.search(r"(least is|give at least) \d+", text), text
    return int(re.findall(r"\d+", text)[-1])


A, B, C = ["a0", "a1", "a2", "a3"], ["b0", "b1", "b2"], ["c0", "c1"]


@pytest.fixture(params=BACKENDS)
def backend(request) -> str:
    if request.param == "native" and not native_available():
        pytest.skip("the compiled core was not built")
    return request.param


# -- reading a budget


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (1, 1),
        (4096, 4096),
        ("4096", 4096),
        ("4096B", 4096),
        ("2KB", 2000),
        ("2KiB", 2048),
        ("2kib", 2048),
        ("3MB", 3_000_000),
        ("3MiB", 3 * 1024 * 1024),
        (" 64 KiB ", 65536),
        ("1.5KiB", 1536),
        ("0.5 MB", 500_000),
        ("1000.9", 1000),
    ],
)
def test_a_budget_is_read(given, size):
    assert parse_budget(given) == size


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        True,
        1.5,
        None,
        b"4KiB",
        "",
        "KiB",
        "-4KiB",
        "4 potatoes",
        "4KiBB",
        "1,000",
        "1e3",
        "nan",
        "inf",
        "0",
        "0.5B",
        "9" * 400 + "MB",
    ],
)
def test_what_is_no_budget_is_refused_in_one_sentence(given):
    with pytest.raises(ValueError, match="budget must be") as raised:
        parse_budget(given)
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError):
        SF2EL(budget=given)


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_that_can_hold_nothing_is_refused_at_once_with_the_least(kind, backend):
    least = least_of(kind)
    assert least < 700
    with pytest.raises(ValueError, match=f"least is {least} bytes"):
        make(kind, least - 1, backend=backend)
    model = make(kind, least, backend=backend)
    for t in range(20):
        model.learn_one({"a": float(t % 3)}, t % 2)
        assert model.memory_usage() <= least
    assert model.memory_usage() == least
    with pytest.raises(ValueError, match=f"{least}"):
        model.set_budget(100)


def test_the_smallest_regressor_fits_too(backend):
    with pytest.raises(ValueError) as raised:
        SF2ELRegressor(budget=1)
    least = told_by(raised)
    model = SF2ELRegressor(budget=least, backend=backend)
    for t in range(20):
        model.learn_one({"a": float(t % 3)}, t % 5)
        assert model.memory_usage() <= least


# -- what is counted is what is kept


LEARNERS = {
    "matrices": LearnerSettings(),
    "stratified": LearnerSettings(sampling="stratified"),
    "pursuit": LearnerSettings(projection="pursuit"),
    "no matrices": LearnerSettings(projection="pursuit", keep_gram=False),
    "no matrices, stratified": LearnerSettings(projection="pursuit", keep_gram=False, sampling="stratified"),
}


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_has_the_bytes_told(be, name, precision):
    settings = LEARNERS[name]
    for dim in (1, 3, 10):
        for rows in (2, 3, 7, 16, 61):
            learner = be.Learner(settings, dim, rows, 0, precision)
            assert learner.nbytes == learner_bytes(settings, dim, rows, precision)
            learner.run(np.random.default_rng(0).normal(size=(100, dim)), np.resize([1.0, np.nan, -1.0], 100))
            assert learner.nbytes == learner_bytes(settings, dim, rows, precision)


RESIDENT = """
import os
from pathlib import Path
import numpy as np
from sf2el import LearnerSettings
from sf2el.core import backend

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

lean = {{"projection": "pursuit", "keep_gram": False}}
be, settings = backend("native"), LearnerSettings(**({{}} if {matrices} else lean))
X, y = np.random.default_rng(0).normal(size=(20, {dim})), np.ones(20)
be.Learner(settings, {dim}, {rows}, 0, "{precision}").run(X, y)
before, kept = resident(), []
for seed in range(2000):
    kept.append(be.Learner(settings, {dim}, {rows}, seed, "{precision}"))
    kept[-1].run(X, y)
print(kept[0].nbytes, (resident() - before) / len(kept))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
@pytest.mark.skipif(not native_available(), reason="the compiled core was not built")
@pytest.mark.parametrize(
    ("matrices", "dim", "rows", "precision"),
    [(True, 10, 39, "float64"), (False, 10, 169, "float64"), (False, 10, 339, "float32")],
)
def test_the_compiled_learner_really_takes_so_much(matrices, dim, rows, precision):
    code = RESIDENT.format(matrices=matrices, dim=dim, rows=rows, precision=precision)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told, taken = map(float, done.stdout.split())
    assert 15_000 < told < 17_500
    # Above it: the parameters and the Python object, a few hundred bytes a learner.
    assert 0.97 * told < taken < 1.03 * told + 600


def test_maps_scalers_and_weights_have_the_bytes_told(be):
    for new_dim, old_dim in ((1, 1), (3, 7), (10, 2)):
        psi = be.RecoveryMap(new_dim, old_dim, 1e-3, False)
        rng = np.random.default_rng(0)
        psi.observe(rng.normal(size=(5, new_dim)), rng.normal(size=(5, old_dim)))
        psi.solve()
        assert psi.state().nbytes == map_bytes(new_dim, old_dim)
        assert be.Scaler(old_dim).nbytes == scaler_bytes(old_dim) == 3 * old_dim * 8
        assert be.Scaler(old_dim, None, "float32").nbytes == scaler_bytes(old_dim, "float32") == old_dim * 16
    for experts in (1, 2, 6):
        for sure in (False, True):
            weights = be.FixedShare(np.ones(experts), 0.01, sure)
            assert weights.nbytes == weights.state().nbytes == fixed_share_bytes(experts, sure=sure)
    for experts in (1, 2):
        assert be.Hedge(experts, 0.0).state().nbytes == hedge_bytes(experts)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_experts_moments_and_affine_maps_have_the_bytes_told(be, precision):
    for dim in (1, 3, 10):
        for size in (0, 1, 7, 40):
            for outputs, task in ((1, "binary"), (3, "classes")):
                for kept in (True, False):
                    settings = PosteriorSettings(
                        size=size, gamma=1.0, outputs=outputs, task=task, keep_inverse=kept
                    )
                    told = posterior_bytes(dim, size, outputs, precision, keep_inverse=kept)
                    expert = be.Posterior(settings, dim, precision)
                    assert expert.nbytes == told
                    X = np.random.default_rng(0).normal(size=(100, dim))
                    expert.run(X, np.resize([1.0, np.nan, 0.0 if outputs > 1 else -1.0], 100))
                    assert expert.nbytes == told
        assert be.Moments(dim, precision).nbytes == moments_bytes(dim, precision)
        assert be.AffineMap(dim, 4, 0.0, precision).nbytes == affine_bytes(dim, 4, precision)
        assert be.AffineMap(dim, 4, 0.0, precision, 1).nbytes == affine_bytes(dim, 4, precision, rank=1)


def rows_of(names: list[str], count: int, seed: int) -> tuple[np.ndarray, list[int | None]]:
    """Rows that share what they come from, whatever the space, so that a map exists; a third labelled."""
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(count, 4))
    mixed = [np.random.default_rng(ord(name[0]) * 10 + int(name[1])).normal(size=4) for name in names]
    labels = [int(row[0] * row[1] > 0) if rng.random() < 0.34 else None for row in source]
    return source @ np.array(mixed).T, labels


def learn(model: SF2EL, names: list[str], count: int, seed: int) -> None:
    rows, labels = rows_of(names, count, seed)
    model.learn_many(rows, labels, features=names)


def one_space(kind: str, budget: int, backend: str, rows: int = 300) -> SF2EL:
    model = make(kind, budget, seed=3, backend=backend)
    learn(model, A, rows, 0)
    return model


def two_spaces(kind: str, budget: int, backend: str, rows: int = 250) -> SF2EL:
    """A model that has lost four features and has three, with a map between them."""
    model = make(kind, budget, seed=3, backend=backend)
    learn(model, A, rows, 0)
    learn(model, A + B, 20, 1)
    learn(model, B, rows, 2)
    return model


def seats(model: SF2EL) -> list[Any]:
    """The experts that play, those of the vanished space first."""
    stage = model._stage
    assert stage is not None
    return [*(stage.past.seats if stage.recovers else []), *stage.current.seats]


REAL = {"float64": 8, "float32": 4}


def kept_by(model: SF2EL) -> dict[str, int]:
    """The bytes of the arrays and texts a model keeps, counted from what each part gives out of itself."""
    stage = model._stage
    assert stage is not None
    parts = dict.fromkeys(("learners", "maps", "scalers", "weights", "names"), 0)
    for space in {
        id(space): space for space in (stage.current, stage.past, stage.upcoming) if space
    }.values():
        parts["names"] += sum(len(str(name).encode()) for name in space.names)
        parts["scalers"] += space.scaler.nbytes
        assert space.scaler.nbytes == len(space.names) * (24 if space.scaling == "float64" else 16)
        if space.moments is not None:
            parts["scalers"] += kept_by_moments(space.moments, space.dim, space.precision)
        parts["learners"] += sum(kept_by_seat(seat) for seat in space.seats)
    for psi in (stage.psi, stage.overlap):
        if psi is not None:
            parts["maps"] += kept_by_map(psi)
    parts["weights"] = stage.weights.state().nbytes
    waiting = model._tracker.strangers.nbytes + sum(8 * (len(r.observed) + 2) for r in model._pending)
    assert waiting <= waiting_room(model._budget)
    return parts | {
        "newcomers": max(waiting, newcomer_room(model._budget)),
        "events": model._events._slots.nbytes,
        "labels": max(2, len(model._labels.seen)) * (64 + 8),
        "counters": 64,
    }


def eights(size: int) -> int:
    return (size + 7) // 8 * 8


def kept_by_moments(moments: Any, dim: int, precision: str) -> int:
    state = np.asarray(moments.state())
    return 8 * (1 + dim) + eights(REAL[precision] * (len(state) - 1 - dim))


def kept_by_map(psi: Any) -> int:
    if not hasattr(psi, "affine"):
        return psi.state().nbytes
    size = 8  # the count of its rows
    if psi.affine is not None:
        matrix, center = np.asarray(psi.affine.matrix), np.asarray(psi.affine.center)
        assert matrix.shape == (psi.old_dim, psi.new_dim + 1)
        real = 2 if psi.brief else REAL[psi.precision]
        linear = np.asarray(psi.affine.factors) if psi.rank else matrix[:, :-1]
        assert linear.shape in ((psi.old_dim, psi.new_dim), (psi.rank, psi.new_dim + psi.old_dim))
        size += center.nbytes + matrix[:, -1].size * 8 + eights(real * linear.size)
    if psi.joint is not None:
        both = psi.new_dim + psi.old_dim
        if isinstance(psi.joint, Sketch):
            size += 8 * (2 + 2 * both) + eights(2 * (len(psi.joint.state()) - 2 - 2 * both))
        else:
            size += kept_by_moments(psi.joint, both, psi.precision)
    return size


def kept_by_seat(seat: Any) -> int:
    """A full expert's arrays are what it gives out; one that is not full yet has the room already."""
    posterior = getattr(seat, "posterior", None)
    state = (posterior or seat.core).state()
    if isinstance(state, dict) and "beta" in state:
        n, shape = seat.shape.rows, seat.shape
        matrices = int(state["gram"] is not None) + int(shape.settings.projection == "exact")
        reals = n * (seat.dim + 2) + matrices * n * (n + 1) // 2
        return 104 + eights(REAL[shape.precision] * reals)
    if not isinstance(state, dict):
        assert len(state) == seat.settings.outputs * (seat.dim + 1) + 1
        return state.nbytes
    outputs, most, halves = len(state["coefficients"]), seat.settings.size, seat.precision == "float16"
    slots = most + 1 if most and not halves else most  # a row joins before another leaves
    every = (seat.dim if seat.settings.slopes else 0) + 1 + slots
    mean, rest = outputs * every, slots * seat.dim + every * (every + 1) // 2
    # The inverse of a Gram matrix, or its factor with an exponent for each row.
    inverse = slots * (slots + 1) // 2 + (slots if halves else 0)
    rest += inverse if seat.settings.keep_inverse else 0
    numbers = 4 * mean + 2 * rest if halves else REAL[seat.precision] * (mean + rest)
    assert state["rows"].shape[0] <= most
    turn = 0
    if seat.name.startswith(("white ", "even ")):
        turn = eights(np.asarray(seat.core.matrix).astype(np.float32).nbytes)
        rows = 1 if seat.name.startswith("even ") else seat.dim
        assert np.asarray(seat.core.matrix).shape == (rows, seat.dim)
    else:
        assert seat.core is posterior
    return 56 + turn + eights(numbers)


def bank_form(seats: list[Any]) -> Form:
    """The form that these experts have."""
    kept = all(seat.settings.keep_inverse for seat in seats)
    if all(seat.precision == "float16" for seat in seats):
        return Form.HALF if kept else Form.LEAST
    assert kept and not any(seat.precision == "float16" for seat in seats)
    return Form.FULL


def check_bytes(model: SF2EL) -> None:
    """The parts sum to the whole, are all there is, and are within the budget."""
    told = model.memory_usage(detail=True)
    assert sum(told.values()) == model.memory_usage() <= model._budget
    if model._stage is not None:
        assert told == kept_by(model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [1500, 4096, 40_000])
def test_the_parts_sum_to_the_whole_and_are_all_there_is(kind, budget, backend):
    model = make(kind, budget, backend=backend)
    assert sum(model.memory_usage(detail=True).values()) == model.memory_usage() <= budget
    # Overlaps, swaps, a space that comes back beside the next, one without an overlap, and typos.
    for t, names in enumerate((A, A + B, B, A + B, A, A + C, C, ["d0"])):
        rows, labels = rows_of(names, 30, t)
        for i, (row, label) in enumerate(zip(rows.tolist(), labels, strict=True)):
            typo = {f"t{i}": 1.0} if i % 7 == 3 else {}
            model.learn_one(dict(zip(names, row, strict=True)) | typo, label)
            check_bytes(model)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_any_width_in_between_is_within_the_budget(kind, backend):
    # Newcomers have a room of their own: a thousand keys that nobody asked for do not burst it.
    model = one_space(kind, 4096, backend, rows=50)
    for t in range(12):
        model.learn_one({f"{t}_{i}": 1.0 for i in range(1000)} | dict.fromkeys(A, 1.0), 1)
        check_bytes(model)
    for _ in range(3):
        model.learn_one({f"x{i}": 1.0 for i in range(300)} | dict.fromkeys(A, 1.0), 1)
        check_bytes(model)


@pytest.mark.parametrize("kind", KINDS)
def test_names_count_as_text(kind):
    assert names_bytes(["ab", "ü", 12]) == 2 + 2 + 2
    model = make(kind, 4096)
    model.learn_one({"a" * 500: 1.0})
    assert model.memory_usage(detail=True)["names"] == 500
    assert model.memory_usage() <= 4096


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_do_not_grow_with_the_rows(kind, backend):
    model = make(kind, 8192, backend=backend)
    learn(model, A, 1_100, 0)  # by now labels have said which widths stay; asked again after 2,048 rows
    used = model.memory_usage()
    learn(model, A, 900, 1)
    assert model.memory_usage() == used


def test_widths_that_labels_speak_against_make_room_for_the_others(backend):
    """Bytes are short, and labels in rings: fewer widths stay, which then have more radial functions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    labels = [int(value) for value in (np.sum(X**2, axis=1) % 2.0) > 1.0]
    model = SF2EL(budget=4096, backend=backend)
    sizes = []
    for start, stop in pairwise([0, 3, 100, 300, 600]):
        model.learn_many(X[start:stop], labels[start:stop], features=["a", "b"])
        kernels = [seat for seat in model._stage.current.seats if "rbf" in seat.name]
        sizes.append((len(kernels), kernels[0].settings.size))
        check_bytes(model)
        assert model._stage.weights.core.rounds == stop  # the losses so far are not forgotten
    assert sizes[0][0] > sizes[-1][0] and sizes[0][1] < sizes[-1][1]
    assert sizes == sorted(sizes, key=lambda one: (-one[0], one[1]))
    roomy = SF2EL(budget="64KiB", backend=backend)
    roomy.learn_many(X, labels, features=["a", "b"])
    assert roomy.events().total < 4
    assert sum("rbf" in seat.name for seat in roomy._stage.current.seats) == 3


def test_widths_that_leave_are_told(backend):
    """In a budget whose log has room for details."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    labels = [int(row[0] > 0) for row in X]
    model = SF2EL(budget=34_000, backend=backend)
    model.learn_many(X, labels, features=[f"a{i}" for i in range(60)])
    left = len(model._stage.current.seats)
    told = [event.text for event in model.events().last if event.text.startswith("experts:")]
    assert left < 4 and told[-1] == f"experts: {left} in the current space, 0 recovered"


def test_more_labels_cost_bytes_that_others_give(backend):
    model = SF2EL(budget=6_000, backend=backend)
    rng = np.random.default_rng(0)
    for t in range(400):
        label = int(rng.integers(min(2 + t // 60, 8)))
        model.learn_one({"a": float(label) + rng.normal(), "b": rng.normal()}, label)
        check_bytes(model)
    assert len(model._labels.seen) == 8
    assert model.memory_usage(detail=True)["labels"] == 8 * 72
    assert any("a class more: 8 labels" in event.text for event in model.events().last)
    before = state_of(model)
    with pytest.raises(ValueError) as raised:
        for label in range(8, 100):
            before = state_of(model)
            model.learn_one({"a": 1.0, "b": 1.0}, label)
            check_bytes(model)
    assert state_of(model) == before
    model.set_budget(told_by(raised))
    model.learn_one({"a": 1.0, "b": 1.0}, label)
    check_bytes(model)


def unused_and_row(model: SF2EL) -> tuple[int, int]:
    last = seats(model)[-1]
    more = replace(last.shape, rows=last.shape.rows + 1)
    return model._budget - model.memory_usage(), more.nbytes(last.dim) - last.shape.nbytes(last.dim)


@pytest.mark.parametrize("budget", [1000, 1501, 3333, 5000, 9999, 30_001, 45_000])
def test_less_than_a_row_is_left_unused(budget, backend):
    model = one_space("paper", budget, backend)
    (seat,) = seats(model)
    assert seat.held == seat.shape.rows
    left, row = unused_and_row(model)
    assert 0 <= left < row


@pytest.mark.parametrize("budget", [2000, 3333, 5000, 9999, 30_001])
def test_less_than_a_row_is_left_unused_in_two_spaces(budget, backend):
    if backend == "numpy" and budget not in (3333, 9999):
        pytest.skip("the same plan, slower")
    model = two_spaces("paper", budget, backend, rows=450 if budget > 10_000 else 150)
    assert model._stage.recovers
    for seat in seats(model):
        assert seat.held == seat.shape.rows
    left, row = unused_and_row(model)
    assert 0 <= left < row


@pytest.mark.parametrize("budget", [3333, 5000, 9999, 15_000, 45_000, 200_000])
def test_the_bank_takes_what_helps_and_no_more(budget, backend):
    """The older space has as many radial functions as ever help, or as fit; the younger what is left."""
    model = two_spaces("bank", budget, backend, rows=60)
    past, current = (
        [seat for seat in space.seats if "rbf" in seat.name]
        for space in (model._stage.past, model._stage.current)
    )
    if not past or not current:
        return
    (old,), (new,) = ({seat.settings.size for seat in group} for group in (past, current))
    assert old // 2 <= new <= old <= MOST_BASIS
    form = bank_form(past + current)
    more = sum(seat.bytes_of(new + 1, form) - seat.nbytes for seat in model._stage.current.seats)
    assert new == old or model._budget - model.memory_usage() < more
    assert old == MOST_BASIS or new < old + 1


def test_the_parts_say_when_more_bytes_would_not_be_used(backend):
    """From some budget on nothing more is used, and the parts say so; below, and for the paper, never."""
    used = {}
    for budget in (4_000, *range(20_000, 110_000, 5_000), 400_000):
        model = two_spaces("bank", budget, backend, rows=60)
        parts = model.memory_usage(detail=True)
        used[parts["learners"], parts["maps"]] = parts.full_grown
        assert ("more bytes would not be used" in repr(parts)) == parts.full_grown
    assert sum(used.values()) == 1 and used[max(used)]
    assert not two_spaces("paper", 100_000, backend, rows=60).memory_usage(detail=True).full_grown
    assert not SF2EL(budget=100_000, backend=backend).memory_usage(detail=True).full_grown


@pytest.mark.parametrize("spaces", [one_space, two_spaces])
def test_more_bytes_never_cost_a_row_that_was_learned(spaces, backend):
    """From every budget to every larger one: no expert is smaller after, and no function has moved."""
    budgets = [6_000, 10_000, 20_000, 40_000, 47_000, 56_000, 70_000, 90_000]
    for place, budget in enumerate(budgets[:-1]):
        for more in budgets[place + 1 :: 2]:
            model = spaces("bank", budget, backend, rows=80)
            before = {id(seat): len(seat.posterior.state()["rows"]) for seat in radial(model)}
            total = model.events().total
            model.set_budget(more)
            kept = [len(seat.posterior.state()["rows"]) for seat in radial(model)]
            # A width that labels had let go may begin anew, after those that have learned.
            assert kept[: len(before)] == list(before.values()), (budget, more)
            told = [event.text for event in model.events().last][total - model.events().total :]
            assert not any("moved" in text for text in told)


def radial(model: SF2EL) -> list[Any]:
    return [seat for seat in seats(model) if "rbf" in seat.name]


# -- what gives way, and when


def form_of(model: SF2EL) -> int:
    shape = seats(model)[-1].shape
    forms = [(form.matrices, form.precision) for form in FORMS]
    return forms.index((shape.settings.keep_gram, shape.precision))


def test_what_gives_way_gives_way_in_order(backend):
    model = two_spaces("paper", 64 * 1024, backend, rows=150)
    steps = []
    for budget in np.geomspace(64 * 1024, least_of("paper") + 150, 60).astype(int).tolist():
        total = model.events().total
        try:
            model.set_budget(budget)
        except ValueError as refused:
            assert "at least" in str(refused)
            break
        check_bytes(model)
        recovered = model._stage.past is not None
        steps.append((not recovered, form_of(model), [seat.shape.rows for seat in seats(model)]))
        texts = [event.text for event in model.events().last][-(model.events().total - total) :]
        if len(model.events().last) >= 4:
            assert f"budget {budget} bytes" in texts
            if len(steps) > 1 and steps[-1] != steps[-2]:
                assert any(
                    text.startswith("buffers of") and FORMS[form_of(model)].text in text for text in texts
                )
            if not recovered and not steps[-2][0]:
                assert any("its learner and its map were dropped" in text for text in texts)
    # Matrices go first, then float64, then rows, then the vanished space; a form once left is not taken
    # again before the vanished space makes room.
    assert [alone for alone, _, _ in steps] == sorted(alone for alone, _, _ in steps)
    both = [(form, rows) for alone, form, rows in steps if not alone]
    assert [form for form, _ in both] == sorted(form for form, _ in both)
    assert {form for form, _ in both} == {0, 1, 2}
    for form in range(3):
        kept = [rows for f, rows in both if f == form]
        assert kept == sorted(kept, reverse=True)
        assert form == 2 or min(min(rows) for rows in kept) >= ENOUGH_ROWS
    assert min(min(rows) for _, rows in both) < ENOUGH_ROWS
    assert steps[-1][0]
    assert model.weights() == {"current": 1.0}


def _joined(step: tuple[list[str], bool, bool, int, Form]) -> tuple[str, int]:
    """The experts of a step, its statistics and its form as one text, and its radial functions."""
    names, fits_anew, _, size, form = step
    return " ".join([*names, str(fits_anew), form.name]), size


def test_what_gives_way_in_the_bank_gives_way_in_order(backend):
    """Down to some radial functions, then what they are worth more than, then all but a linear expert.

    The published learner goes first, then half of each number, the experts that see white, the map's
    statistics, what can be computed, radial experts, the vanished space and the covariance of what is left.
    """
    model = two_spaces("bank", 80 * 1024, backend, rows=150)
    steps: list[tuple[list[str], bool, bool, int, Form]] = []
    for budget in np.geomspace(80 * 1024, 600, 120).astype(int).tolist():
        total = model.events().total
        before = len(seats(model)), model._stage.past is not None
        try:
            model.set_budget(budget)
        except ValueError as refused:
            assert "at least" in str(refused)
            break
        check_bytes(model)
        after = len(seats(model)), model._stage.past is not None
        texts = [event.text for event in model.events().last][-(model.events().total - total) :]
        if after != before and len(model.events().last) >= 4:
            assert any(text.startswith("experts:") or "were dropped" in text for text in texts)
        stage, names = model._stage, [seat.name for seat in seats(model)]
        sizes = [seat.settings.size for seat in seats(model) if "rbf" in seat.name]
        names += ["covariance" for space in stage.spaces() if space.moments is not None]
        fits_anew = stage.psi is not None and not stage.psi.settled
        form = bank_form([seat for seat in seats(model) if "rbf" in seat.name])
        steps.append((names, fits_anew, stage.past is not None, max(sizes, default=0), form))
    whole = steps[0]
    assert whole[1:3] == (True, True) and whole[3] >= AMPLE_BASIS and whole[4] is Form.FULL
    radial = [(size, form) for _, _, _, size, form in steps if size]
    least = {form: min(size for size, one in radial if one is form) for form in Form}
    assert least[Form.FULL] >= ENOUGH_BASIS
    assert least[Form.HALF] >= SOME_BASIS
    assert least[Form.LEAST] < SOME_BASIS
    assert [name.split()[-1] for name in whole[0]].count("paper") == 2
    assert sum(name.startswith("white") for name in whole[0]) == 1
    # What has gone does not come back, and goes in this order.
    kept = [
        (
            past,
            sum("rbf" in name and not name.startswith("white") for name in names),
            fits_anew,
            sum(name.startswith("white") for name in names),
            names.count("paper"),
        )
        for names, fits_anew, past, *_ in steps
    ]
    for thing in zip(*kept, strict=True):
        assert list(thing) == sorted(thing, reverse=True) and thing[0] and not thing[-1]
    gone = [next(i for i, step in enumerate(kept) if not step[place]) for place in (4, 3, 2, 1, 0)]
    assert gone == sorted(gone)
    # With the same experts fewer bytes are fewer radial functions; few are only what is left without extras.
    for extras in {step[0] for step in map(_joined, steps)}:
        grown = [size for names, size in map(_joined, steps) if names == extras]
        assert grown == sorted(grown, reverse=True)
        if "paper" in extras or "white" in extras:
            assert min(grown) >= FEW_BASIS
    assert [seat.name for seat in seats(model)] in (["linear"], ["logistic"])
    assert model.weights() == {"current": 1.0}


def test_what_gives_way_in_one_space_gives_way_in_order(backend):
    """The published learner, radial widths one by one, the features' covariance, then the last width."""
    model = one_space("bank", 80 * 1024, backend, rows=150)
    steps = []
    for budget in np.geomspace(80 * 1024, 600, 120).astype(int).tolist():
        try:
            model.set_budget(budget)
        except ValueError as refused:
            assert "at least" in str(refused)
            break
        check_bytes(model)
        names = [seat.name for seat in seats(model)]
        widths = sum("rbf" in name for name in names)
        light = "logistic" in names
        steps.append(("paper" in names, widths, model._stage.current.moments is not None, not light))
    assert steps[0] == (True, 3, True, True)
    assert steps[-1] == (False, 0, False, False)
    assert steps == sorted(steps, reverse=True)
    for paper, widths, related, linear in steps:
        assert paper <= (widths == 3) and (widths > 1) <= related and (widths > 0) <= linear


def test_a_white_expert_that_is_the_only_radial_one_is_no_extra(backend):
    model = two_spaces("bank", 30_000, backend, rows=150)
    stage = model._stage
    heavy = [100.0 if name.startswith("current white") else 1.0 for name in stage.names()]
    stage.weights = model._recipe.weights_from(stage, np.array(heavy) / sum(heavy))
    stage.arrange()
    learn(model, B + C, 6, 3)
    white = [seat.name for seat in model._stage.current.seats if "rbf" in seat.name]
    assert len(white) == 1 and white[0].startswith("white ")
    model.set_budget(6_000)
    check_bytes(model)
    (left,) = [seat for seat in model._stage.current.seats if "rbf" in seat.name]
    assert left.name == white[0] and left.settings.size < FEW_BASIS
    # The vanished space stays too; of its map the statistics went first.
    assert model._stage.recovers
    learn(model, C, 60, 4)
    check_bytes(model)
    assert model._stage.recovers


@pytest.mark.parametrize("kind", KINDS)
def test_without_room_for_a_map_the_new_learner_starts_alone_and_says_so(kind, backend):
    wide = [f"w{i}" for i in range(10)] + [f"x{i}" for i in range(2)]
    budget = 1500 if kind == "paper" else 1400
    model = make(kind, budget, backend=backend)
    learn(model, A, 60, 0)
    learn(model, A + wide, 20, 1)
    check_bytes(model)
    assert model._stage.overlap is None
    learn(model, wide, 1, 2)
    assert any("no room for a map" in event.text for event in model.events().last)
    learn(model, wide, 59, 2)
    assert not model._stage.recovers
    check_bytes(model)
    assert model.weights() == {"current": pytest.approx(1.0)}


@pytest.mark.filterwarnings("ignore:.*new features are not used")
@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_second_space_fits_or_is_refused_with_what_suffices(kind, backend):
    """At every budget from the least on a wide second space is taken, or one sentence says what suffices."""
    start = least_of(kind)
    refused = 0
    for budget in range(start, 4000, 173):
        for width in (1, 8, 30):
            wide = [f"w{i}" for i in range(width)]
            model = make(kind, budget, backend=backend)
            for names in (["a", "b"], ["a", "b", *wide], wide):
                for t in range(8):
                    row = {name: float((t * 3 + i) % 5) for i, name in enumerate(names)}
                    before = state_of(model)
                    try:
                        model.learn_one(row, t % 2)
                    except ValueError:
                        refused += 1
                        with pytest.raises(ValueError, match="at least") as raised:
                            model.learn_one(row, t % 2)
                        assert state_of(model) == before
                        model.set_budget(told_by(raised))
                        model.learn_one(row, t % 2)
                    check_bytes(model)
                    model.predict_one(row)
    assert refused


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [1600, 2200, 3000, 5000])
def test_a_space_that_comes_back_into_too_small_a_budget_is_a_space_like_any_other(kind, budget, backend):
    # The vanished space may have been given up for room, before or while it comes back.
    for narrow in range(1, 5):
        model = make(kind, budget, backend=backend)
        for t, names in enumerate((A, A + B, B, A[:narrow] + B, A, A + B, B, C)):
            learn(model, names, 12, t)
            check_bytes(model)
        model.set_budget(900 if kind == "paper" else 1000)
        learn(model, C, 5, 9)
        check_bytes(model)


def test_the_plan_is_relaxed_when_the_old_space_is_gone(backend):
    model = two_spaces("paper", 5500, backend)
    tight = form_of(model)
    learn(model, C, 300, 5)
    model.set_budget(5500)
    # Of the first space nothing is left, and the last two share what it had.
    assert {name for space in model._stage.spaces() for name in space.names} == {*B, *C}
    assert tight > form_of(model)
    left, row = unused_and_row(model)
    assert 0 <= left < row
    check_bytes(model)


def wide_names(count):
    return tuple(f"w{i}" for i in range(count))


def least_budget(kind, names, backend):
    with pytest.raises(ValueError) as raised:
        make(kind, 1000, backend=backend).learn_one(dict.fromkeys(names, 1.0))
    return told_by(raised)


@pytest.mark.filterwarnings("ignore:.*new features are not used")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows_with_both", [0, 1, 4, 20])
def test_features_that_have_no_room_beside_the_current_ones_wait_until_those_are_gone(
    kind, rows_with_both, backend
):
    old = wide_names(20)
    model = make(kind, least_budget(kind, old, backend) + 200, seed=1, backend=backend)
    new = tuple(f"v{i}" for i in range(20))
    learn(model, old, 30, 0)
    for t in range(rows_with_both):
        learn(model, old + new, 1, t)
        check_bytes(model)
    assert set(model._stage.current.names) == set(old)
    texts = [event.text for event in model.events().last]
    if rows_with_both > 4:
        assert sum("they are not used" in text for text in texts) == 1, texts
    for t in range(20):
        learn(model, new, 1, t)
        check_bytes(model)
    assert set(model._stage.current.names) == set(new)
    assert model._stage.past is None or not model._stage.recovers


@pytest.mark.filterwarnings("ignore:.*new features are not used")
@pytest.mark.parametrize("kind", KINDS)
def test_a_space_that_does_not_fit_alone_tells_how_many_bytes_are_needed_and_changes_nothing(kind, backend):
    model = make(kind, 1300, seed=1, backend=backend)
    learn(model, A, 50, 0)
    row = dict.fromkeys(wide_names(60), 1.0)
    told = []
    for _ in range(12):
        before = state_of(model)
        try:
            model.learn_one(row, 1)
        except ValueError as error:
            told.append(int(re.search(r"at least (\d+)", str(error)).group(1)))
            assert state_of(model) == before
    assert told and set(told) == {least_budget(kind, wide_names(60), backend)}
    model.learn_one(dict.fromkeys(A, 1.0), 1)
    model.set_budget(told[-1])
    for _ in range(60):  # some features are noted in between, and join as late ones do
        model.learn_one(row, 1)
        check_bytes(model)
    assert set(model._stage.current.names) == set(row)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_asked_for_suffice_and_one_less_does_not(kind, backend):
    row = {f"f{i}": float(i) for i in range(40)}
    with pytest.raises(ValueError) as raised:
        make(kind, 1000, backend=backend).learn_one(row)
    enough = told_by(raised)
    least = make(kind, enough, backend=backend)
    least.learn_one(row)
    check_bytes(least)
    with pytest.raises(ValueError, match=f"at least {enough}"):
        make(kind, enough - 1, backend=backend).learn_one(row)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_whose_last_space_does_not_fit_changes_nothing(kind, backend):
    model = make(kind, 1200, backend=backend)
    rows = np.full((6, 61), np.nan)
    rows[:3, 1:] = 1.0
    rows[3:, 0] = [1.0, 2.0, 3.0]
    before = state_of(model)
    with pytest.raises(ValueError, match="at least"):
        model.learn_many(Frame([f"f{i}" for i in range(61)], rows), [1, 0, 1, 0, 1, 0])
    assert state_of(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_budget_changes_nothing(kind, backend):
    model = two_spaces(kind, 8192, backend, rows=100)
    before, used = state_of(model), model.memory_usage(detail=True)
    for given in (least_of(kind) - 1, least_of(kind) + 20, "3 potatoes", 0):
        with pytest.raises(ValueError) as raised:
            model.set_budget(given)
        assert "\n" not in str(raised.value)
        assert state_of(model) == before
        assert model.memory_usage(detail=True) == used
    learn(model, B, 20, 7)
    check_bytes(model)


# -- the budget at run time


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_set_before_the_first_row_is_kept(kind, backend):
    for budget in (least_of(kind) + 1, 700, 2000, 100_000):
        model = make(kind, "64KiB", backend=backend)
        model.set_budget(budget)
        assert model.memory_usage() <= budget
        learn(model, ["a0"], 30, 0)
        check_bytes(model)


@pytest.mark.parametrize("budget", [900, 1100, 1500])
def test_a_model_shrunk_to_a_budget_takes_what_a_new_one_of_that_budget_would(budget, backend):
    # The log of events has to give way too: it has 1 KiB of a budget of 64 KiB.
    model = one_space("paper", 64 * 1024, backend, rows=200)
    fresh = one_space("paper", budget, backend, rows=200)
    model.set_budget(budget)
    check_bytes(model)
    assert seats(model)[-1].shape.rows >= seats(fresh)[-1].shape.rows - 1


@pytest.mark.parametrize("budget", [1100, 1500, 2500, 6000])
def test_a_bank_shrunk_to_a_budget_is_as_large_as_a_new_one(budget, backend, monkeypatch):
    # Short of bytes from the start, the new one may have let widths go that labels spoke against.
    monkeypatch.setattr("sf2el.model.bank.settle", lambda recipe, stage: [])
    model = one_space("bank", 64 * 1024, backend, rows=200)
    fresh = one_space("bank", budget, backend, rows=200)
    model.set_budget(budget)
    check_bytes(model)
    shapes = [[(seat.name, seat.settings.size) for seat in seats(m)] for m in (model, fresh)]
    assert [size for _, size in shapes[0]] == [size for _, size in shapes[1]]


def scores(model: SF2EL, names: list[str], probes: np.ndarray) -> np.ndarray:
    return np.array([model._output_one(dict(zip(names, row, strict=True))) for row in probes.tolist()])


def moved(model: SF2EL, since: int) -> dict[int, float]:
    """The errors told since an event, from the log's numbers."""
    log = model._events
    slots = [log._slots[i % len(log._slots)] for i in range(since, log.total)]
    return {int(rows): error for _, kind, rows, error, _ in slots if int(kind) == MOVED}


@pytest.mark.parametrize("smaller", [30_000, 8_000, 5_000, 3_200])
def test_a_shrink_moves_predictions_by_no_more_than_it_tells(smaller, backend):
    model = two_spaces("paper", 40_000, backend)
    probes = rows_of(B, 60, 9)[0]
    weights, before = model.weights(), scores(model, B, probes)
    single = {role: [model.explain_one(dict(zip(B, p, strict=True)))[role]["score"] for p in probes.tolist()]
              for role in weights}  # fmt: skip
    sizes = [seat.held for seat in seats(model)]
    total = model.events().total
    model.set_budget(smaller)
    assert model._stage.recovers
    errors, bound = moved(model, total), 0.0
    for role, seat, size in zip(("recovered", "current"), seats(model), sizes, strict=True):
        rows = seat.shape.rows
        told = errors.get(rows, 0.0)
        assert (told > 0.0) == (rows < size)
        slack = 1e-9 if seat.shape.precision == "float64" else 1e-4
        after = [model.explain_one(dict(zip(B, p, strict=True)))[role]["score"] for p in probes.tolist()]
        assert np.max(np.abs(np.array(after) - single[role])) <= told + slack
        bound += weights[role] * told + slack
    assert model.weights() == weights
    change = np.max(np.abs(scores(model, B, probes) - before))
    assert change <= bound
    assert change > 0.0


def test_the_error_in_the_text_is_not_less_than_the_error(backend):
    # Three digits, rounded to the nearest, would be a bound that does not hold.
    for rows in range(300, 330, 6):
        model = one_space("paper", 40_000, backend, rows=rows)
        total = model.events().total
        model.set_budget(1_500)
        (error,) = moved(model, total).values()
        (text,) = [event.text for event in model.events().last if "moved by" in event.text]
        assert float(re.search(r"moved by (\S+)", text)[1]) >= error


@pytest.mark.parametrize(
    ("kind", "small", "large", "tolerance"),
    [
        ("paper", 3_000, 3_500, 1e-9),  # float32 both times
        ("paper", 6_000, 9_000, 1e-9),  # float64 without matrices
        ("paper", 40_000, 60_000, 1e-9),  # matrices
        ("bank", 5_000, 6_000, 1e-9),  # halves both times
        ("bank", 9_000, 64_000, 1e-5),  # halves, then float32
    ],
)
def test_growing_changes_no_prediction(kind, small, large, tolerance, backend):
    model = one_space(kind, small, backend)
    probes = rows_of(A, 40, 9)[0]
    room = [seat.nbytes for seat in seats(model)]
    before, total = scores(model, A, probes), model.events().total
    model.set_budget(large)
    assert sum(seat.nbytes for seat in seats(model)) > sum(room)
    np.testing.assert_allclose(scores(model, A, probes), before, atol=tolerance)
    assert moved(model, total) == {}
    learn(model, A, 250, 10)
    if kind == "paper":
        assert seats(model)[0].held == seats(model)[0].shape.rows
    check_bytes(model)


@pytest.mark.parametrize(
    ("kind", "spaces", "small", "large"),
    [
        ("paper", 1, 2_500, 70_000),
        ("paper", 1, 20_000, 30_000),
        ("paper", 2, 4_000, 70_000),
        ("bank", 1, 2_500, 70_000),
        ("bank", 2, 4_000, 70_000),
    ],
)
def test_growing_never_gives_up_rows_that_are_there(kind, spaces, small, large, backend):
    # Through every form: more bytes must not cost rows, even where matrices would now fit.
    model = one_space(kind, small, backend) if spaces == 1 else two_spaces(kind, small, backend)
    names = A if spaces == 1 else B
    probes = rows_of(names, 40, 9)[0]
    before = scores(model, names, probes)

    def held() -> list[int]:
        return [len(seat.core.state()["rows"]) for seat in seats(model)]

    for budget in np.geomspace(small, large, 60).astype(int).tolist():
        total, there = model.events().total, held()
        model.set_budget(budget)
        assert moved(model, total) == {}
        assert held()[: len(there)] == there
        check_bytes(model)
        # Log odds, by experts of which half precision keeps four digits.
        np.testing.assert_allclose(scores(model, names, probes), before, atol=3e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_shrinking_and_growing_while_learning_stays_within_the_budget(kind, backend):
    model = make(kind, 4096, seed=5, backend=backend)
    rng = np.random.default_rng(1)
    for t, names in enumerate([A, A, A + B, B, B + C, B + C, C, C, ["d0"]] * 3):
        learn(model, names, 25, t)
        model.set_budget(int(rng.integers(1_800, 12_000)))
        check_bytes(model)
        learn(model, names, 25, t + 100)
        check_bytes(model)


@pytest.mark.parametrize("kind", KINDS)
def test_predicting_a_space_to_come_takes_no_more_than_the_budget(kind, backend):
    model = one_space(kind, 3_000, backend, rows=60)
    before = state_of(model)
    model.predict_one({f"wide{i}": 1.0 for i in range(500)})
    assert state_of(model) == before
    assert model.memory_usage() <= 3_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_prediction_of_the_coming_space_follows_the_budget(kind, backend):
    # What is kept to predict a space before it is learned is not kept past a change of the budget.
    model = make(kind, 40_000, seed=3, backend=backend)
    learn(model, A, 200, 0)
    learn(model, A + B, 20, 1)
    probe = dict(zip(B, rows_of(B, 1, 4)[0][0].tolist(), strict=True))
    assert {name.split()[0] for name in model.explain_one(probe)} == {"current", "recovered"}
    model.set_budget(1000 if kind == "paper" else 800)
    assert model._stage.overlap is None
    model.set_budget(40_000)
    assert {name.split()[0] for name in model.explain_one(probe)} == {"current"}


def test_a_fixed_buffer_has_no_budget(backend):
    model = SF2EL.paper(buffer_size=10, kernel=RBF(1.0), backend=backend)
    with pytest.raises(ValueError, match="buffer_size"):
        model.set_budget("64KiB")
    learn(model, A, 20, 0)
    before = state_of(model)
    with pytest.raises(ValueError, match="buffer_size"):
        model.set_budget("64KiB")
    assert state_of(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_scratch_and_wrapper_are_told_apart_and_do_not_grow_with_rows(kind, backend):
    model = make(kind, 8_000, backend=backend)
    learn(model, A, 100, 0)
    before = model.memory_overhead()
    learn(model, A, 400, 1)
    after = model.memory_overhead()
    assert 0 < before["rows"] == after["rows"] < 2_000
    assert before["scratch"] == after["scratch"] == max(seat.core.scratch_nbytes for seat in seats(model))
    assert 500 < after["wrapper"] < 16_000
    assert abs(after["wrapper"] - before["wrapper"]) < 200


def recovered_widths(model):
    return [name for name in model.weights(detail=True) if name.startswith("recovered") and "rbf" in name]


@pytest.mark.parametrize(("every", "budget", "widths"), [(80, "64KiB", 2), (80, "4KiB", 1), (1, "64KiB", 1)])
def test_two_widths_go_on_where_labels_have_not_decided_and_there_are_bytes(every, budget, widths, backend):
    """Rings: few labels leave the widths undecided, many speak for a narrow one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(900, 2))
    rings = np.sum(X**2, axis=1) % 0.6 > 0.3
    labels = [int(ring) if i % every == 0 else None for i, ring in enumerate(rings)]
    model = SF2EL(budget=budget, backend=backend)
    old, new = ["a", "b"], ["x", "y"]
    turned = X @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    model.learn_many(X[:800], labels[:800], features=old)
    model.learn_many(np.hstack([X, turned])[800:810], labels[800:810], features=old + new)
    model.learn_many(turned[810:], labels[810:], features=new)
    assert len(recovered_widths(model)) == widths
    check_bytes(model)
    assert len([name for name in model.weights(detail=True) if name.startswith("current wh")]) <= 1
