"""The sorted columns of the laws of time against loops over all pairs, on drawn times with many ties."""

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.ir.device import Device
from opticcl.verify._time_devices import Changes, Numbering, Uses, find_settings

TICKS = st.integers(0, 12)


@st.composite
def histories(draw, members):
    """Changes of members, one after the other: {member: [(begin, done, setting)]}."""
    found = {}
    for member in range(members):
        times = sorted(draw(st.lists(TICKS, min_size=0, max_size=8)))
        times = times[: len(times) // 2 * 2]
        found[member] = [
            (begin, done, draw(st.integers(0, 2))) for begin, done in zip(times[::2], times[1::2], strict=True)
        ]
    return found


@st.composite
def needs(draw, groups, limit):
    """Uses: [(group, start, end, setting)]."""
    rows = draw(st.lists(st.tuples(st.integers(0, groups - 1), TICKS, TICKS, st.integers(0, 2)), max_size=limit))
    return [(group, min(a, b), max(a, b), setting) for group, a, b, setting in rows]


def columns(uses, history):
    """Both as the verifier takes them."""
    rows = [(m, *change) for m, changes in sorted(history.items()) for change in changes]
    member, begin, done, setting = np.array(rows, float).reshape(-1, 4).T
    changes = Changes(member.astype(int), begin, done, setting.astype(int), np.zeros(len(rows), int))
    group, start, end, wanted = np.array(uses, float).reshape(-1, 4).T
    n = np.arange(len(uses))
    return Uses(group.astype(int), start, end, wanted.astype(int), n, n, np.zeros(len(uses), bool)), changes


def stands(changes, use, warm, initial):
    """Whether one member has the setting of a use from its start to its end."""
    _, start, end, setting = use
    done = [c for c in changes if c[1] <= start]
    upcoming = [c for c in changes if c[1] > start]
    now = done[-1][2] if done else (initial if warm else None)
    return now == setting and all(c[0] >= end for c in upcoming[:1])


@examples(200)
@given(histories(3), needs(3, 12), st.booleans())
def test_settings_of_single_devices(history, uses, warm):
    """Every use is judged as a loop over the changes of its device judges it."""
    found = find_settings(*columns(uses, history), Numbering((Device("ring", 3),)), warm=warm)
    for i, use in enumerate(uses):
        first = min((u for u in uses if u[0] == use[0]), key=lambda u: (u[1], uses.index(u)))
        expected = stands(history[use[0]], use, warm, first[3])
        assert (found.missing_s[i] == 0) == expected, (use, history[use[0]])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_change_during_the_longest_of_several_uses(order):
    """Of one setting, which all find at their start and the short ones keep until their end; given in any order."""
    rows = [(0, 1, 9, 1), (0, 2, 3, 1), (0, 2, 4, 1)]
    uses, changes = columns([rows[i] for i in order], {0: [(0, 1, 1), (5, 6, 2)]})
    found = find_settings(uses, changes, Numbering((Device("ring", 1),)), warm=False)
    assert found.missing_s.tolist() == [4.0 if i == 0 else 0.0 for i in order]


def test_settings_of_few_of_very_many_devices():
    """Memory is for the devices that are used."""
    last = 10**12 - 1
    uses, changes = columns(
        [(last, 2, 3, 1), (7, 2, 3, 1), (last, 4, 5, 1), (7, 4, 5, 2)], {7: [(0, 1, 1)], last: [(0, 1, 1)]}
    )
    found = find_settings(uses, changes, Numbering((Device("ring", last + 1),)), warm=False)
    assert found.change.tolist() == [1, 0, 1, 0]
    assert (found.missing_s > 0).tolist() == [False, False, False, True]


@examples(200)
@given(histories(3), needs(1, 5))
def test_settings_of_pools(history, uses):
    """Whatever is accepted can be given to members; a single use is accepted exactly if some member has its setting."""
    found = find_settings(*columns(uses, history), Numbering((Device("lane", 1, pool=3),)), warm=False)
    if len(uses) == 1:
        assert (found.missing_s[0] == 0) == any(stands(history[m], uses[0], False, None) for m in range(3))
    accepted = [use for use, missing in zip(uses, found.missing_s, strict=True) if missing == 0]

    def fits(chosen):
        for m in range(3):
            mine = sorted(use for use, member in zip(accepted, chosen, strict=True) if member == m)
            if any(one[2] > other[1] for one, other in pairwise(mine)):
                return False
            if not all(stands(history[m], use, False, None) for use in mine):
                return False
        return True

    assert any(fits(chosen) for chosen in np.ndindex(*[3] * len(accepted)))


@examples(60)
@given(histories(3), needs(1, 6), st.lists(TICKS, min_size=6, max_size=6))
def test_members_by_the_data_of_their_uses(history, uses, ready):
    """What the second assignment gives is possible: no two uses share a member, and each has the setting that it needs."""
    uses, changes = columns(uses, history)
    numbering = Numbering((Device("lane", 1, pool=3),))
    found = find_settings(uses, changes, numbering, warm=False, ready_s=np.array(ready[: len(uses)], float))
    right = np.flatnonzero(found.missing_s == 0)
    assert (found.change[right] >= 0).all()
    if not len(right):
        return
    member = changes.member[found.change]
    for i in right:
        change = found.change[i]
        following = change + 1 < len(changes.member) and changes.member[change + 1] == member[i]
        assert changes.setting[change] == uses.setting[i]
        assert changes.done_s[change] <= uses.start_s[i]
        assert not following or changes.begin_s[change + 1] >= uses.end_s[i]
        for j in right[right > i]:
            apart = uses.end_s[i] <= uses.start_s[j] or uses.end_s[j] <= uses.start_s[i]
            assert member[i] != member[j] or apart


def test_a_member_that_was_changed_for_a_use_is_taken_by_it():
    """The first assignment takes the member that changes next, and leaves the other to a use whose data comes later."""
    history = {0: [(0, 1, 1), (9, 10, 2)], 1: [(3, 4, 1)]}
    uses, changes = columns([(0, 1, 2, 1), (0, 4, 5, 1), (0, 7, 8, 1)], history)
    numbering = Numbering((Device("lane", 1, pool=2),))
    assert find_settings(uses, changes, numbering, warm=False).change.tolist() == [0, 0, 0]
    ready = np.array([0.0, 3.0, 6.0])
    assert find_settings(uses, changes, numbering, warm=False, ready_s=ready).change.tolist() == [0, 2, 0]


def test_an_idle_circuit_leaves_its_member_to_the_data_that_follows_at_once():
    """Of equal starts what stands idle comes first, in whatever order the rounds are."""
    for rows in ([(0, 2, 2, 1), (0, 2, 5, 1)], [(0, 2, 5, 1), (0, 2, 2, 1)]):
        uses, changes = columns(rows, {0: [(0, 1, 1)]})
        uses = replace(uses, idle=uses.end_s == uses.start_s)
        found = find_settings(uses, changes, Numbering((Device("lane", 1, pool=2),)), warm=False)
        assert found.missing_s.tolist() == [0, 0]


def test_a_member_is_free_when_its_use_ends():
    """At the start of the programme too, where no time is within a relative difference of another."""
    uses, changes = columns([(0, 0, 0, 1), (0, 0, 5, 1)], {0: [(0, 0, 1)]})
    uses = replace(uses, idle=uses.end_s == uses.start_s)
    found = find_settings(uses, changes, Numbering((Device("lane", 1, pool=2),)), warm=False)
    assert (found.missing_s.tolist(), found.change.tolist()) == ([0, 0], [0, 0])
