"""What every use of a device finds, exactly: its change, the next one, the time that it misses, and whether nothing was set."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.ir.device import Device
from opticcl.ir.programme import DeviceTable
from opticcl.verify._time_devices import (
    Changes,
    Numbering,
    Uses,
    changes_of,
    collect_uses,
    find_settings,
    with_standing,
)

LEAST = 2e-15
"""What a use misses at least that misses anything [s]."""


def some_changes(rng, members, most):
    """[(member, begin, done, setting)], each begun once the last of its member is done, in the order of members."""
    found = []
    for member in range(members):
        times = np.unique(rng.integers(0, 9, 2 * rng.integers(0, most + 1)))
        made = [(*times[at : at + 2].tolist(), int(rng.integers(2))) for at in range(0, len(times) - 1, 2)]
        if found and rng.random() < 0.4:  # as the last member that was changed
            made = [change[1:] for change in found if change[0] == found[-1][0]]
        found += [(member, *change) for change in made]
    return found


def some_uses(rng, groups, most):
    """[(group, start, end, setting, round, idle)]."""
    rows = []
    for _ in range(rng.integers(1, most + 1)):
        start = int(rng.integers(0, 9))
        end = start + int(rng.integers(0, 4))
        rows.append((int(rng.integers(groups)), start, end, *rng.integers(0, 2, 2).tolist(), bool(rng.random() < 0.2)))
    return rows


def columns(uses, changes):
    """Both as the verifier takes them."""
    member, begin, done, setting = np.array(changes, float).reshape(-1, 4).T
    group, start, end, wanted, number, idle = np.array(uses, float).reshape(-1, 6).T
    rows = np.arange(len(uses))
    made = Changes(member.astype(int), begin, done, setting.astype(int), np.zeros(len(changes), int))
    return Uses(group.astype(int), start, end, wanted.astype(int), number.astype(int), rows, idle.astype(bool)), made


def alone(use, mine, initial):
    """What a use finds at a device without a pool: (change, next begin, missed, never set).

    Args:
        use: of the device.
        mine: its changes with their rows, in order.
        initial: setting before the first, or None.
    """
    _, start, end, setting, *_ = use
    done = [one for one in mine if one[3] <= start]
    upcoming = mine[len(done)] if len(done) < len(mine) else None
    has = done[-1][4] if done else initial
    missing = 0.0
    if has != setting:
        comes = upcoming is not None and upcoming[4] == setting
        missing = max(upcoming[3] - start if comes else end - start, 0) or 2e-9 * abs(end) + LEAST
    until = math.inf if upcoming is None else upcoming[2]
    missing = max(missing, end - until if end > until else 0)
    return done[-1][0] if done else -1, until, missing, not done and initial is None


@pytest.mark.parametrize("warm", [False, True])
def test_single_devices(warm):
    """Of as many uses as changes too, one for each."""
    rng = np.random.default_rng(7)
    for turn in range(300):
        changes, uses = some_changes(rng, 2, 3), some_uses(rng, 2, 4)
        if turn % 3 == 0:  # one use for each change, once it is done
            uses = [(m, done, done + int(rng.integers(0, 3)), value, 0, False) for m, _, done, value in changes]
        found = find_settings(*columns(uses, changes), Numbering((Device("ring", 2),)), warm=warm)
        for i, use in enumerate(uses):
            mine = [(row, *change) for row, change in enumerate(changes) if change[0] == use[0]]
            first = min((u for u in uses if u[0] == use[0]), key=lambda u: (u[1], uses.index(u)))
            change, until, missing, unset = alone(use, mine, first[3] if warm else None)
            assert (found.change[i], found.next_begin_s[i], found.unset[i]) == (change, until, unset)
            assert found.missing_s[i] == pytest.approx(missing, rel=1e-12, abs=1e-18)


class Member:
    """A member of a group.

    Args: changes: its own with their rows, in order.
    """

    def __init__(self, changes):
        self.changes = changes
        self.initial = None
        self.free_at = self.begun = -math.inf
        self.round = self.used_by = None

    def at(self, start):
        """The last change that is done, and the one after it."""
        done = [one for one in self.changes if one[3] <= start]
        return (done[-1] if done else None), (self.changes[len(done)] if len(done) < len(self.changes) else None)


def in_pool(uses, ready, members, warm):
    """What each use of a group finds, in the order in which they are served: {use: (change, next begin, missed, never set)}."""
    found = {}
    order = sorted(range(len(uses)), key=lambda i: (uses[i][1], not uses[i][5], -uses[i][2], i))
    for i in order:
        _, start, end, setting, number, _ = uses[i]
        waits, free, known = [], [], False
        for place, member in enumerate(members):
            now, then = member.at(start)
            known |= now is not None
            until = math.inf if then is None else then[2]
            if then is not None and then[4] == setting:
                waits.append(then[3] - start)
            if now[4] != setting if now is not None else not (warm and member.initial in (None, setting)):
                continue
            if member.free_at > start or (member.round == number and member.begun == start):
                waits.append(max(member.free_at - start, LEAST))
            elif until < end:
                waits.append(end - until)
            else:
                turn = 1
                if ready is not None and now is not None and member.used_by != now[0]:
                    turn = 0 if now[2] >= ready[i] else 2
                again = member.initial == setting
                since = -math.inf if now is None else now[3]
                rank = (turn, until if turn else 0, -since, not again, -place if again else place)
                free.append((rank, member, -1 if now is None else now[0], until))
        if not free:
            least = min(waits, default=math.inf)
            missed = least if 0 < least < math.inf else max(end - start, LEAST)
            found[i] = (-1, math.inf, missed, not known and not warm)
            continue
        _, member, change, until = min(free, key=lambda one: one[0])
        if change < 0:
            member.initial = setting
        member.used_by = None if change < 0 else change
        member.free_at, member.round, member.begun = max(member.free_at, end), number, start
        found[i] = (change, until, 0.0, False)
    return found


@pytest.mark.parametrize("warm", [False, True])
def test_members_of_pools(warm):
    """Uses of two groups of up to three members each, with the times at which their data is ready and without."""
    rng = np.random.default_rng(11)
    refused = served = 0
    for turn in range(400):
        pool = int(rng.integers(2, 4))
        changes, uses = some_changes(rng, 2 * pool, 2), some_uses(rng, 2, 8)
        ready = rng.integers(0, 12, len(uses)).astype(float) if turn % 2 else None
        numbering = Numbering((Device("lane", 2, pool=pool),))
        found = find_settings(*columns(uses, changes), numbering, warm=warm, ready_s=ready)
        for group in (0, 1):
            rows = [i for i, use in enumerate(uses) if use[0] == group]
            mine = [[(n, *c) for n, c in enumerate(changes) if c[0] == group * pool + m] for m in range(pool)]
            mine.sort(key=lambda one: not one)  # members without changes come last
            due = None if ready is None else [ready[i] for i in rows]
            expected = in_pool([uses[i] for i in rows], due, [Member(one) for one in mine], warm)
            for at, i in enumerate(rows):
                change, until, missing, unset = expected[at]
                assert (found.change[i], found.next_begin_s[i], found.unset[i]) == (change, until, unset)
                assert found.missing_s[i] == pytest.approx(missing, rel=1e-12, abs=1e-18)
                refused, served = refused + (missing > 0), served + (missing == 0)
    assert min(refused, served) > 200


def test_of_members_that_were_set_together_the_first_is_taken():
    """Whichever one was used before."""
    changes = [(0, 0, 1, 1), (1, 0, 1, 1)]
    uses = [(0, 2, 5, 1, 0, False), (0, 2, 3, 1, 1, False), (0, 6, 7, 1, 2, False)]
    found = find_settings(*columns(uses, changes), Numbering((Device("lane", 1, pool=2),)), warm=False)
    assert found.change.tolist() == [0, 1, 0]


def test_a_member_that_another_use_needs_is_not_taken_because_it_changes_sooner():
    """One that was changed before the data is ready, and not used yet, is the last choice."""
    changes = [(0, 0, 1, 1), (1, 1, 3, 1), (1, 8, 9, 0)]
    uses = [(0, 2, 3, 1, 0, False), (0, 4, 5, 1, 1, False)]
    lanes, ready_s = Numbering((Device("lane", 1, pool=2),)), np.array([0.0, 3.0])
    assert find_settings(*columns(uses, changes), lanes, warm=False, ready_s=ready_s).change.tolist() == [0, 0]


def test_columns_of_changes():
    """Sorted by member, begin and end; what stands from the start comes first; no uses are none."""
    assert [len(getattr(Uses.none(), name)) for name in Uses.__slots__] == [0] * len(Uses.__slots__)
    table = DeviceTable(
        kind=np.zeros(4, np.int32),
        device=np.array([1, 0, 0, 0]),
        step=np.full(4, -1),
        setting=np.array([1, 2, 3, 4]),
        begin_s=np.array([0.0, 1.0, 1.0, 0.0]),
        done_s=np.array([1.0, 3.0, 2.0, 4.0]),
    )
    changes = changes_of(table, Numbering((Device("ring", 2),)))
    assert changes.setting.tolist() == [4, 3, 2, 1]
    standing = Changes(np.array([1]), np.zeros(1), np.zeros(1), np.array([9]), np.zeros(1, int))
    both = with_standing(changes, standing)
    assert both.setting.tolist() == [4, 3, 2, 9, 1]
    assert both.member.tolist() == [0, 0, 0, 1, 1]
    assert np.isneginf(both.done_s).tolist() == [False, False, False, True, False]


def test_uses_of_repeated_steps():
    """Two steps, the first with three repetitions of two rounds: every unrolled round has a number; light passes late."""

    def round_of(start, carries):
        start = np.array(start, float)
        return SimpleNamespace(circuits=start, carries=np.array(carries), start_s=start, left_s=start + 3)

    def settings(circuits):
        yield SimpleNamespace(kind="ring", index=np.arange(len(circuits)), circuit=None, setting=circuits, offset_s=0.5)
        yield SimpleNamespace(kind="lane", index=[0], circuit=[0], setting=[7], offset_s=0.0)

    first = SimpleNamespace(period_s=10.0, rounds=(round_of([1, 2], [True, False]), round_of([5], [True])))
    second = SimpleNamespace(period_s=0.0, rounds=(round_of([40], [True]),))
    rows = SimpleNamespace(steps=(first, second), turns=lambda step: [0, 1, 2] if step is first else [0])
    machine = SimpleNamespace(settings=settings)
    uses = collect_uses(rows, machine, Numbering((Device("ring", 2), Device("lane", 1))))
    found = sorted(zip(*(getattr(uses, name).tolist() for name in Uses.__slots__), strict=True))
    expected = []
    for number, shift in ((0, 0.0), (2, 10.0), (4, 20.0)):
        for group, setting, late in ((0, 1, 0.5), (2, 7, 0.0)):
            expected.append((group, 1 + shift + late, 4 + shift + late, setting, number, 0, False))
        expected.append((1, 2 + shift, 2 + shift, 2, number, 1, True))
        for group, setting, late in ((0, 5, 0.5), (2, 7, 0.0)):
            expected.append((group, 5 + shift + late, 8 + shift + late, setting, number + 1, 0, False))
    expected += [(0, 40.5, 43.5, 40, 6, 0, False), (2, 40.0, 43.0, 7, 6, 0, False)]
    assert found == sorted(expected)
    assert len(collect_uses(SimpleNamespace(steps=()), machine, Numbering(()))) == 0
