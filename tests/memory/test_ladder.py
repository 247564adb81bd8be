"""The ladder: one plan for every byte; nothing falls as bytes grow."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sf2el import SF2EL
from sf2el.core import native
from sf2el.experts.kinds import RADIAL, RATES, Form, View
from sf2el.memory.ladder import (
    RUNGS,
    STANDING_BYTES,
    WIDEST_LINEAR,
    Costs,
    Held,
    Part,
    Shapes,
    SpaceShape,
    Standing,
    diff,
    plan,
    table,
)


@cache
def costs(task="classes") -> Costs:
    """Bytes by the core's own count."""
    state = native().State(task)
    return Costs(
        cache(lambda code, room, born, outputs: state.expert_bytes(code, room, born, outputs)),
        cache(lambda new, old: state.joint_bytes(new, old) + 48),
        cache(state.solution_bytes),
        cache(state.moments_bytes),
        lambda features: 16 * features,
    )


@st.composite
def situations(draw):
    """Spaces of all roles, what labels have said of them, and which maps still take in rows."""
    older = draw(st.integers(0, 2))
    roles = ["older"] * older
    if draw(st.booleans()):
        roles.append("ended")
    elif older:
        roles[-1] = "ended"
    roles.append("current")
    if draw(st.booleans()):
        roles.append("incoming")
    spaces, mapped, standing = [], [], []
    for place, role in enumerate(roles):
        features = draw(st.integers(1, 12) | st.sampled_from([20, 40, 70, 130, 200]))
        room = features + draw(st.integers(0, 5))
        born = draw(st.integers(1, features))
        spaces.append(SpaceShape(room, born, role, features))
        last = place + 1 == len(roles)
        beside = role == "current" and not last
        mapped.append(not last and (draw(st.booleans()) or beside))
        leading = draw(st.sampled_from(RADIAL))
        standing.append(Standing(leading, draw(st.booleans()), role == "ended" and draw(st.booleans())))
    outputs = draw(st.sampled_from([1, 1, 3, 10]))
    shapes = Shapes(tuple(spaces), tuple(mapped), draw(st.booleans()), outputs, "classes")
    held = Held(tuple(draw(st.lists(st.booleans(), min_size=len(roles), max_size=len(roles)))))
    return shapes, tuple(standing), held


BYTES = st.integers(0, 4000) | st.integers(0, 60_000) | st.integers(0, 2_000_000)
LONE = (Shapes((SpaceShape(8, 8, "current", 8),), (False,), True, 1, "classes"), (Standing(),), Held((True,)))
FORMS = {Form.LEAST: 0, Form.HALF: 1, Form.FULL: 2}


def bytes_of(found, shapes):
    """What an allocation costs, counted once more."""
    c, total = costs(), 0
    for place, (shape, own) in enumerate(zip(shapes.spaces, found.spaces, strict=True)):
        if own is None:
            total -= c.space(shape.features)
            continue
        for code in own.experts:
            total += c.expert(code, shape.room, shape.born, shapes.outputs) + STANDING_BYTES
        total += c.moments(shape.room) if own.related else 0
        psi = found.maps[place]
        if psi is not None:
            new = shapes.spaces[place + 1].features
            total += c.solution(new, shape.features, psi.form)
            total += c.joint(new, shape.features) if psi.statistics else 0
    return total


def by_who(own):
    return {code.who: code for code in own.experts}


def assert_nothing_falls(small, large):
    """Every space, expert, map and relation of the smaller plan is in the larger one, at least as large."""
    assert (large.rung, large.size) >= (small.rung, small.size)
    for mine, more in zip(small.spaces, large.spaces, strict=True):
        if mine is None:
            continue
        assert more is not None
        assert more.related or not mine.related
        ours, theirs = by_who(mine), by_who(more)
        for who, code in ours.items():
            assert who in theirs, (code.name, small.rung, large.rung)
            assert theirs[who].size >= code.size, code.name
            if theirs[who].kind == code.kind:
                assert FORMS[theirs[who].form] >= FORMS[code.form], code.name
    for mine, more in zip(small.maps, large.maps, strict=True):
        if mine is not None:
            assert more is not None and more.form >= mine.form
            assert more.statistics or not mine.statistics


@settings(max_examples=300)
@given(situations(), BYTES, BYTES)
@example(LONE, 3000, 3001)
def test_no_size_falls_as_bytes_grow(situation, one, two):
    small, large = (plan(*situation, bytes_, costs()) for bytes_ in sorted((one, two)))
    if small is None:
        return
    assert large is not None
    assert_nothing_falls(small, large)


@settings(max_examples=60)
@given(situations())
def test_no_size_falls_from_step_to_step(situation):
    found = [plan(*situation, int(200 * 1.15**k), costs()) for k in range(62)]
    there = [one for one in found if one is not None]
    assert found == [None] * (len(found) - len(there)) + there
    for small, large in pairwise(there):
        assert_nothing_falls(small, large)


@settings(max_examples=300)
@given(situations(), BYTES)
def test_a_plan_is_pure_and_costs_no_more_than_there_is(situation, available):
    found = plan(*situation, available, costs())
    assert found == plan(*situation, available, costs())
    if found is None:
        return
    shapes = situation[0]
    assert bytes_of(found, shapes) <= available
    assert len(found.spaces) == len(found.maps) == len(shapes.spaces)
    for place, (shape, own) in enumerate(zip(shapes.spaces, found.spaces, strict=True)):
        if shape.role in ("current", "incoming"):
            assert own is not None
        if own is None:
            assert found.maps[place] is None
            continue
        assert len(own.experts) == len({code.who for code in own.experts}) >= 1
        assert own.experts[0].view is View.EXPECTED and own.experts[0].rate == 0
        if found.maps[place] is not None:
            assert shapes.mapped[place]
        if not shapes.gapped:
            assert all(code.view is View.EXPECTED for code in own.experts)


@given(situations())
def test_the_full_model_has_every_kind_of_expert(situation):
    shapes, standing, held = situation
    found = plan(shapes, standing, held, 1 << 40, costs())
    assert found.rung == len(RUNGS) - 1
    place = next(i for i, shape in enumerate(shapes.spaces) if shape.role == "current")
    current = by_who(found.spaces[place])
    if shapes.spaces[place].room <= WIDEST_LINEAR:
        assert {who[2] for who in current} == set(range(len(RATES)))
    assert shapes.gapped == any(who[1] is not View.EXPECTED for who in current)
    assert None not in found.spaces


def test_the_rungs_go_on_where_the_one_before_ends():
    assert sorted(rung.part for rung in RUNGS) == sorted(Part)
    for before, after in pairwise(RUNGS):
        if before.end:
            assert after.start == before.end
    assert all(rung.start <= rung.end for rung in RUNGS)
    assert all(rung.worth for rung in RUNGS)


def test_the_table_for_people_is_the_ladder():
    rows = table()
    assert [row[0] for row in rows] == list(range(len(RUNGS)))
    for (_, text, start, end, worth), rung in zip(rows, RUNGS, strict=True):
        assert (text, start, end, worth) == (str(rung.part), rung.start, rung.end, rung.worth)
        assert ("\n" not in text and text[0].islower()) or text[0].isupper()


@settings(max_examples=200)
@given(situations(), BYTES, BYTES)
def test_the_difference_names_every_expert_that_leaves_or_comes_and_why(situation, one, two):
    old, new = (plan(*situation, bytes_, costs()) for bytes_ in (one, two))
    if old is None or new is None:
        return
    told = diff(old, new)
    for place, (before, after) in enumerate(zip(old.spaces, new.spaces, strict=True)):
        ours = {} if before is None else by_who(before)
        theirs = {} if after is None else by_who(after)
        leave = sorted(ours[who].name for who in ours if who not in theirs)
        come = sorted(theirs[who].name for who in theirs if who not in ours)
        assert sorted(one.name for one in told if one.space == place and not one.comes) == leave
        assert sorted(one.name for one in told if one.space == place and one.comes) == come
    assert all("rung" in one.why and "\n" not in one.why for one in told)
    assert not diff(old, old)
    if new.rung > old.rung:
        assert not [one for one in told if not one.comes]


def test_the_difference_to_nothing_is_everything():
    found = plan(*LONE, 20_000, costs())
    told = diff(None, found)
    assert {one.name for one in told} == {code.name for code in found.spaces[0].experts}
    assert all(one.comes for one in told)


@pytest.mark.parametrize("task", ["classes", "regression_squared", "regression_absolute"])
def test_a_byte_less_than_the_least_is_no_plan(task):
    shapes, standing, held = LONE
    shapes = shapes._replace(task=task)
    least = next(b for b in range(5000) if plan(shapes, standing, held, b, costs(task)) is not None)
    found = plan(shapes, standing, held, least, costs(task))
    assert found.rung == 0 and len(found.spaces[0].experts) == 1
    assert plan(shapes, standing, held, least - 1, costs(task)) is None


@pytest.mark.parametrize("budget", [2048, 4096, 8192, 16384, 65536, 1 << 20])
def test_a_model_is_what_its_plan_says_and_events_tell_what_left(budget):
    model = SF2EL(budget="1MiB")
    for t in range(200):
        model.learn_one({f"f{j}": float((t * (j + 3)) % 7) for j in range(4)}, t % 2)
    names = set(model.risk())
    model.set_budget(budget)
    left = names - set(model.risk())
    if model.events().last and budget >= 32 * 1024:
        told = {event.text for event in model.events().last if event.kind == "expert_left"}
        assert all(any(name.split(" ", 1)[1] in text for text in told) for name in left)
    assert set(model.risk()) <= names
    assert model.memory_usage() <= budget
    assert budget < 1 << 20 or not left


def test_the_same_rows_in_more_bytes_are_never_a_smaller_model():
    sizes = []
    for budget in (1500, 2048, 3000, 4096, 6000, 8192, 12_000, 16_384, 32_768, 65_536, 1 << 18):
        model = SF2EL(budget=budget)
        for t in range(80):
            x = {f"f{j}": float((t * (j + 3)) % 7) for j in range(4)}
            if t % 5 == 0:
                x.pop("f1")
            model.learn_one(x, t % 2)
        sizes.append((len(model.risk()), model.memory_usage(detail=True)["learners"]))
    assert sizes == sorted(sizes)
