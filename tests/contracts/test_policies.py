"""What every feature policy promises, and what each of the two makes of streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import MODELS, STREAMS, labels_for

from sf2el import SF2EL
from sf2el.core import native
from sf2el.features.attendance import Attendance
from sf2el.features.policies import (
    LATE_ROWS,
    POLICIES,
    STEADY_ROWS,
    YOUNG_ROWS,
    Close,
    ExactPeriods,
    Join,
    Open,
    OwnPace,
    Return,
    Swap,
)
from sf2el.model.changes import NEVER, current_space, features_of, make, note_gaps, set_wake
from sf2el.model.strategy import BankStrategy

pytestmark = pytest.mark.filterwarnings("ignore:.*new features are not used")

REVIEW, CHANGE = 1, 2


class Follower:
    """A state whose spaces follow a policy, with an expert each; no plan and no bytes."""

    def __init__(self, policy):
        self.policy = policy
        self.state = native().State("classes")
        self.state.exact = policy.exact
        self.made = []

    def see(self, names):
        x = dict.fromkeys(names, 1.0)
        code = self.state.learn(x, float("nan"), 1.0)
        if code == REVIEW:
            self.state.review_at = NEVER
        if code != CHANGE:
            return []
        state = self.state
        present = state.begin(x)
        seen = Attendance(state, present)
        transitions = self.policy.decide(seen)
        assert transitions == self.policy.decide(Attendance(state, present))
        check_legal(state, seen, transitions)
        if state.spaces:
            note_gaps(state, present)
        make(state, transitions, len(present))
        while state.experts(state.spaces - 1) == []:
            state.add(state.spaces - 1, (0, 0, 0, 2, 0), 1.0, 1.0 if state.spaces == 1 else 1e-3, [])
        weights = state.standings()[:, 0]
        state.set_weights((weights / weights.sum()).tolist())
        at = self.policy.wake_at(Attendance(state, ()))
        assert at is None or at > state.rows
        set_wake(state, self.policy)
        if state.finish(float("nan"), 1.0) == REVIEW:
            state.review_at = NEVER
        self.made += transitions
        return transitions

    def names_of(self, space):
        return sorted(self.state.names(features_of(self.state, space)))

    @property
    def current(self):
        return self.names_of(current_space(self.state))

    @property
    def incoming(self):
        return self.names_of(self.state.spaces - 1) if self.state.incoming else None


def check_legal(state, seen, transitions):
    """Transitions can be made one after the other."""
    spaces, incoming = state.spaces, state.incoming
    for one in transitions:
        match one:
            case Open(ids):
                assert ids and len(set(ids)) == len(ids) and not incoming
                incoming, spaces = spaces > 0, spaces + 1
            case Join(ids, beside):
                assert ids and spaces and (incoming or not beside)
                place = spaces - 1 if beside or not incoming else spaces - 2
                if place < state.spaces:
                    assert not set(ids) & set(features_of(state, place))
            case Swap(shared, _):
                assert incoming
                assert set(shared) <= set(features_of(state, current_space(state)))
                incoming = False
            case Return(space):
                assert not incoming and 0 <= space < spaces - 1
                incoming = True
            case Close():
                assert incoming
                incoming, spaces = False, spaces - 1
    assert spaces >= 1


ROWS = st.lists(
    st.tuples(st.sets(st.sampled_from("abcdefgh"), min_size=1), st.integers(1, 25), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=120)
@given(stretches=ROWS, seed=st.integers(0, 1 << 16))
def test_transitions_are_legal_and_spaces_whole_for_any_stream(policy, stretches, seed):
    rng = np.random.default_rng(seed)
    follower = Follower(POLICIES[policy]())
    for names, count, how in stretches:
        names = sorted(names)
        for _ in range(count):
            there = rng.random(len(names)) < (1.1, 0.7, 0.3, 0.9)[how]
            row = [name for name, seen in zip(names, there, strict=True) if seen] or names[:1]
            follower.see(row)
            state = follower.state
            assert state.spaces >= 1
            assert not state.incoming or state.spaces >= 2
            for space in range(state.spaces):
                own = follower.names_of(space)
                assert own and len(set(own)) == len(own)
    data = follower.state.save(b"")
    assert native().State.load(data)[0].save(b"") == data


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_alike_change_nothing(policy):
    follower = Follower(POLICIES[policy]())
    for _ in range(300):
        follower.see("abc")
    assert follower.made == [Open((0, 1, 2))]
    assert follower.current == ["a", "b", "c"]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_overlap_and_a_swap(policy):
    follower = Follower(POLICIES[policy]())
    for rows, names in [(70, "abc"), (20, "abcxy"), (30, "xy")]:
        for _ in range(rows):
            follower.see(names)
    assert follower.current == ["x", "y"] and follower.incoming is None
    assert [type(one) for one in follower.made] == [Open, Open, Swap]
    assert follower.names_of(0) == ["a", "b", "c"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_swap_from_one_row_to_the_next(policy):
    follower = Follower(POLICIES[policy]())
    for rows, names in [(70, "abc"), (40, "xy")]:
        for _ in range(rows):
            follower.see(names)
    assert follower.current == ["x", "y"]
    assert follower.names_of(0) == ["a", "b", "c"]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_old_space_that_comes_back_is_the_old_one(policy):
    follower = Follower(POLICIES[policy]())
    for rows, names in [(70, "abc"), (20, "abcxy"), (70, "xy"), (20, "xyabc"), (30, "abc")]:
        for _ in range(rows):
            follower.see(names)
    assert follower.current == ["a", "b", "c"]
    assert any(isinstance(one, Return) for one in follower.made)
    assert follower.state.spaces == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_a_file_keeps_the_policy(policy):
    strategy = BankStrategy(policy=POLICIES[policy]())
    again = BankStrategy.of(strategy.content())
    assert type(again.policy) is type(strategy.policy) and again.content() == strategy.content()


# -- the default: features at a pace of their own


@pytest.mark.parametrize("first", ["abcdefgh", "a", "ab", "ceg"])
@pytest.mark.parametrize("keep", [0.3, 0.5, 0.8])
def test_features_at_a_pace_of_their_own_are_one_space_whatever_the_first_row_held(first, keep):
    """Half of the values missing at random from the first row on: one space of all, no second one, ever."""
    rng = np.random.default_rng(int(10 * keep) + len(first))
    follower = Follower(OwnPace())
    follower.see(first)
    for _ in range(400):
        follower.see([name for name in "abcdefgh" if rng.random() < keep] or ["a"])
    assert follower.current == list("abcdefgh")
    assert follower.state.spaces == 1 and follower.incoming is None
    assert not [one for one in follower.made[1:] if not isinstance(one, Join)]


@pytest.mark.parametrize("every", [2, 3, 4, 6, 8])
def test_a_slow_sensor_there_from_the_first_row_stays_in_the_one_space(every):
    follower = Follower(OwnPace())
    for t in range(300):
        follower.see("abs" if t % every == 0 else "ab")
    assert follower.state.spaces == 1
    assert follower.current == ["a", "b", "s"]


def test_sensors_that_report_in_turn_are_one_space():
    follower = Follower(OwnPace())
    for t in range(300):
        follower.see("abcd"[t % 4])
    assert follower.state.spaces == 1
    assert follower.current == list("abcd")


@pytest.mark.parametrize("row", [3, 20, YOUNG_ROWS - 3])
def test_a_young_space_takes_newcomers(row):
    follower = Follower(OwnPace())
    for t in range(100):
        follower.see("ab" if t < row else "abn")
    assert follower.state.spaces == 1
    assert follower.current == ["a", "b", "n"]
    assert any(isinstance(one, Join) and not one.incoming for one in follower.made)


def test_beside_an_old_space_several_newcomers_open_one():
    follower = Follower(OwnPace())
    for t in range(YOUNG_ROWS + 60):
        follower.see("abcd" if t < YOUNG_ROWS + 40 else "abcdxyz")
    assert follower.incoming == ["x", "y", "z"]
    assert follower.current == list("abcd")


@pytest.mark.parametrize("width", [4, 8])
def test_a_late_feature_beside_an_old_space_that_loses_none_joins_after_fifty_rows(width):
    names = "abcdefgh"[:width]
    follower = Follower(OwnPace())
    joined = None
    for t in range(400):
        follower.see(names if t < 100 else names + "z")
        if joined is None and follower.current == sorted(names + "z"):
            joined = t
    assert joined is not None and LATE_ROWS <= joined - 100 <= LATE_ROWS + 10
    assert follower.state.spaces == 1


def test_a_typo_is_forgotten():
    follower = Follower(OwnPace())
    for t in range(200):
        follower.see([*"abc", f"typo{t}"] if t % 9 == 5 else "abc")
    assert follower.state.spaces == 1 and follower.current == ["a", "b", "c"]
    assert len(follower.state.candidates()) < 4


def test_a_newcomer_that_is_gone_again_closes_its_space():
    follower = Follower(OwnPace())
    for t in range(200):
        follower.see("abcxy" if 100 <= t < 120 else "abc")
    assert follower.state.spaces == 1 and follower.incoming is None
    assert [type(one) for one in follower.made] == [Open, Open, Close]


def test_one_outage_ends_nothing():
    follower = Follower(OwnPace())
    for t in range(200):
        follower.see("ab" if 100 <= t < 140 else "abc")
    assert follower.made == [Open((0, 1, 2))]


def test_a_space_of_which_half_is_replaced_goes_on_with_what_it_shares():
    """Two of four sensors are replaced: the next space has the other two as well."""
    follower = Follower(OwnPace())
    swapped = None
    for t in range(240):
        follower.see("abcd" if t < 100 else "abcdxy" if t < 110 else "abxy")
        if swapped is None and any(isinstance(one, Swap) for one in follower.made):
            swapped = t
    assert follower.current == ["a", "b", "x", "y"]
    (swap,) = (one for one in follower.made if isinstance(one, Swap))
    assert swap.partly and len(swap.shared) == 2
    assert STEADY_ROWS <= swapped - 110 <= STEADY_ROWS + 15


def test_no_names_of_strangers_are_kept_beyond_their_room():
    follower = Follower(OwnPace())
    follower.see("ab")
    follower.state.candidate_room = 100
    for t in range(50):
        follower.see(["a", "b", *(f"stranger {t} {j}" for j in range(20))])
        assert follower.state.waiting_bytes() <= 100 + 8 * 200
        assert len(follower.state.candidates()) <= 8


# -- the paper's periods


def test_exact_periods_take_the_first_row_with_both_for_the_overlap():
    follower = Follower(ExactPeriods())
    for names in ["ab", "ab", "abxy", "abxy", "xy", "xy"]:
        follower.see(names)
    assert follower.made == [Open((0, 1)), Open((2, 3)), Swap()]
    assert follower.current == ["x", "y"]


def test_exact_periods_swap_in_one_row_where_there_is_no_overlap():
    follower = Follower(ExactPeriods())
    for names in ["ab", "xy"]:
        follower.see(names)
    assert follower.made == [Open((0, 1)), Open((2, 3)), Swap()]


# -- what users are told


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", STREAMS)
def test_every_change_of_the_spaces_is_an_event_at_its_row(kind, name):
    model = MODELS[kind]("64KiB")
    total = 0
    for t, (x, y) in enumerate(labels_for(model, STREAMS[name]())):
        model.learn_one(x, y)
        events = model.events()
        for event in events.last[len(events.last) - (events.total - total) :]:
            assert event.certain == t or event.kind in ("expert_came", "expert_left", "resized", "moved")
            assert 0 <= event.row <= t
            assert not event.text[0].isupper() and not event.text.endswith(".")
        total = events.total
    kinds = [event.kind for event in model.events().last]
    if kind in ("bank", "regressor"):  # the paper's periods are of rows without a gap and without a stranger
        assert ("swapped" in kinds or "grown" in kinds) == (name in ("swap", "cycles", "partly", "hard_swap"))


def test_the_default_forgets_what_is_long_gone_in_few_bytes():
    """Sensors replaced one by one for ever fit a small budget."""
    model = SF2EL(budget="8KiB")
    rng = np.random.default_rng(0)
    for t in range(1500):
        names = [f"s{k}" for k in range(t // 100, t // 100 + 4)]
        z = rng.normal(size=5)
        model.learn_one({name: float(z[j]) for j, name in enumerate(names)}, int(z[0] > 0))
        assert model.memory_usage() <= 8192
    last = [f"s{k}" for k in range(14, 18)]
    assert model.predict_one(dict.fromkeys(last, 2.0)) in (0, 1)
    assert model.explain_one({last[-1]: 1.0})
