"""What stands from the start, when a device may change, and which uses find their setting, against loops over all pairs."""

from dataclasses import replace
from functools import cached_property
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.verify.timing import Bench, plan_of, schedule_times

from opticcl.collective import collective
from opticcl.ir import CircuitPlan, Circuits, Op, Resource, Schedule, Transfers, Usage
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.verify.time.programme import TimeRules, check_programme

PLAIN = TimeRules(compute="none", control="none")


def chain(setting_time):
    """Two circuits, then one that sends on what arrived; and its programme."""
    plan = plan_of(
        Bench(nodes=3, setting_time=setting_time), [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 1, 0), (1, 1, 2, 0, 1, 0)]
    )
    return plan, schedule_times(plan, 1_000_000, PLAIN)


def laws(plan, programme, rules, **more):
    """Laws that are broken."""
    return {violation.law for violation in check_programme(plan, programme, rules, **more).violations}


def test_where_rows_say_what_stands_nothing_else_does():
    """Rows of the programme, or others in their place: warm devices that have none are not set."""
    plan, p = chain(10e-6)
    zeros = np.zeros(len(p.devices))
    stand = replace(p.devices, begin_s=zeros, done_s=zeros)
    warm = replace(PLAIN, initial="warm")
    assert laws(plan, replace(p, devices=stand), warm) == set()
    assert laws(plan, replace(p, devices=stand.take([0, 1])), warm) == {"unset_at_start"}
    nothing = replace(p, devices=DeviceTable.empty())
    assert laws(plan, nothing, warm) == set()
    assert laws(plan, nothing, warm, standing=stand) == set()
    assert laws(plan, nothing, warm, standing=stand.take([0, 1])) == {"unset_at_start"}


@pytest.mark.parametrize("setting_time", [10e-6, 0.0])
def test_changes_that_take_their_time_are_changes(setting_time):
    """Though they begin at 0; and at once, where a change takes none."""
    plan, p = chain(setting_time)
    if setting_time:
        assert (p.devices.begin_s == 0).any()
    else:
        p = replace(p, devices=replace(p.devices, begin_s=np.zeros(3), done_s=np.zeros(3)))
    verdict = check_programme(plan, p, replace(PLAIN, initial="given"))
    assert (verdict.ok, verdict.changes) == (True, 3)


def test_data_of_a_device_that_is_set_while_others_still_receive():
    """Without early settings, or behind a control exchange, it waits for its own data, not for that of all ranks."""
    late = [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 4, 0), (1, 1, 2, 0, 1, 0)]
    for control in (0.0, 1e-6):
        rules = TimeRules(
            compute="none", prepare="early" if control else "none", control="charged" if control else "none"
        )
        bench = plan_of(Bench(nodes=3, control=control), late)
        programme = schedule_times(bench, 1_000_000, rules)
        table = programme.devices
        last = int(np.argmax(table.begin_s))
        own = float(programme.data.arrived_s[0])
        assert own + control < float(programme.data.arrived_s[1]) <= table.begin_s[last]
        for begin, ok in ((own + control, True), (own + control - 1e-6, False)):
            by = np.where(np.arange(len(table)) == last, begin - table.begin_s[last], 0.0)
            moved = replace(table, begin_s=table.begin_s + by, done_s=table.done_s + by)
            assert check_programme(bench, replace(programme, devices=moved), rules).ok == ok


# --- every use finds its setting ----------------------------------------------------------------------------------------

TICKS = st.integers(0, 12)


class Board(Bench):
    """Circuits that take nothing but devices: of group src, set to dst - 3.

    Class attribute `pool`: members of each group; the groups are three, or one.
    """

    pool = 1
    resources = ()

    @cached_property
    def devices(self):
        """Of one kind, which change in no time."""
        return (Device("ring", 3 if self.pool == 1 else 1, 0.0, pool=self.pool),)

    def usage(self, circuits):
        """None."""
        return ()

    def settings(self, circuits):
        """One device a circuit."""
        yield SettingUse("ring", circuits.src.astype(np.int64), circuits.dst - 3)


class Pools(Board):
    """One group of three members."""

    pool = 3


def refused(uses, history, board=Board, warm=False):
    """Time that each refused use misses, by its number: use k (group, start, end or None, setting) is the circuit of step k.

    Args: history: member -> its changes (begin, done, setting); end None: a circuit that stands idle.
    """
    idle = [end is None for _, _, end, _ in uses]

    def rounds(k):
        return (Circuits.of([-1 if idle[k] else 0], [uses[k][0]], [3 + uses[k][3]]),)

    def step(k):
        return Transfers.of(*([[]] * 5 if idle[k] else ([uses[k][0]], [3 + uses[k][3]], [k], [1], [Op.COPY])))

    board = board(nodes=6, latency=0.0, setting_time=0.0)
    schedule = Schedule("uses", collective("barrier", 6, len(uses)), len(uses), step)
    end = np.array([np.nan if end is None else end for _, _, end, _ in uses], float)
    data = DataTimes.of(step=np.flatnonzero(~np.isnan(end)), transfer=0, arrived_s=99.0, summed_s=99.0)
    changes = [(m, *change) for m, mine in sorted(history.items()) for change in mine]
    member, begin, done, setting = np.array(changes, float).reshape(-1, 4).T
    programme = Programme(
        "test", 0, 99.0, StepRuns.single(len(uses)),
        CircuitTimes.of(
            step=range(len(uses)), round=0, row=0, start_s=[use[1] for use in uses], end_s=end, slot=-1, slots=-1
        ),
        data, DeviceTable.of(kind=0, device=member, step=-1, begin_s=begin, done_s=done, setting=setting), ControlTimes.empty(),
    )  # fmt: skip
    rules = replace(PLAIN, initial="warm" if warm else "cold", receive_buffers="separate")
    verdict = check_programme(CircuitPlan(board, schedule, rounds), programme, rules)
    wrong = [one for one in verdict.violations if one.law in ("set_in_flight", "unset_at_start") and one.round >= 0]
    return {one.step: one.missing_s for one in wrong}


@st.composite
def histories(draw, members):
    """Changes of members, one after the other: {member: [(begin, done, setting)]}."""
    found = {}
    for member in range(members):
        times = sorted(draw(st.lists(TICKS, min_size=0, max_size=8)))
        pairs = zip(times[::2], times[1::2], strict=False)
        found[member] = [(begin, done, draw(st.integers(0, 2))) for begin, done in pairs]
    return found


@st.composite
def needs(draw, groups, limit):
    """Uses: [(group, start, end, setting)]."""
    rows = draw(
        st.lists(st.tuples(st.integers(0, groups - 1), TICKS, TICKS, st.integers(0, 2)), min_size=1, max_size=limit)
    )
    return [(group, min(a, b), max(a, b), setting) for group, a, b, setting in rows]


def stands(changes, use, initial=None):
    """Whether one member has the setting of a use from its start to its end."""
    _, start, end, setting = use
    done = [c for c in changes if c[1] <= start]
    upcoming = [c for c in changes if c[1] > start]
    return (done[-1][2] if done else initial) == setting and all(c[0] >= end for c in upcoming[:1])


@examples(120)
@given(histories(3), needs(3, 8), st.booleans())
def test_settings_of_single_devices(history, uses, warm):
    """Every use is judged as a loop over the changes of its device judges it; what a warm device is first set to stands."""
    found = refused(uses, history, warm=warm)
    for i, use in enumerate(uses):
        longest_first = [u for u in uses if u[0] == use[0]]
        first = min(longest_first, key=lambda u: (u[1], -u[2]))
        tied = {u[3] for u in longest_first if u[1:3] == first[1:3]}
        if len(tied) == 1 or not warm:
            assert (i not in found) == stands(history[use[0]], use, first[3] if warm else None), (use, history[use[0]])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_change_during_the_longest_of_several_uses(order):
    """Of one setting, which all find at their start and the short ones keep until their end; given in any order."""
    rows = [(0, 1, 9, 1), (0, 2, 3, 1), (0, 2, 4, 1)]
    found = refused([rows[i] for i in order], {0: [(0, 1, 1), (5, 6, 2)]})
    assert found == {order.index(0): 4.0}


@examples(120)
@given(histories(3), needs(1, 5))
def test_settings_of_pools(history, uses):
    """Whatever is accepted can be given to members; a single use is accepted exactly if some member has its setting."""
    found = refused(uses, history, Pools)
    if len(uses) == 1:
        assert (not found) == any(stands(history[m], uses[0]) for m in range(3))
    accepted = [use for i, use in enumerate(uses) if i not in found]

    def fits(chosen):
        for m in range(3):
            mine = sorted(use for use, member in zip(accepted, chosen, strict=True) if member == m)
            if any(one[2] > other[1] for one, other in pairwise(mine)):
                return False
            if not all(stands(history[m], use) for use in mine):
                return False
        return True

    assert any(fits(chosen) for chosen in np.ndindex(*[3] * len(accepted)))


@pytest.mark.parametrize("start", [0, 2])
def test_an_idle_circuit_leaves_its_member_to_the_data_that_follows_at_once(start):
    """Of equal starts what stands idle comes first, in whatever order the rounds are; at the start of the programme too."""
    for rows in ([(0, start, None, 1), (0, start, 5, 1)], [(0, start, 5, 1), (0, start, None, 1)]):
        assert refused(rows, {0: [(0, start // 2, 1)]}, Pools) == {}


# --- members of a pool that are set for data ------------------------------------------------------------------------------


class Sending(Pools):
    """What node 0 sends passes a member, and the one laser; what it receives passes nothing."""

    resources = (Resource("laser", 1),)

    def usage(self, circuits):
        """Of circuits that start at node 0."""
        row = np.flatnonzero(circuits.src == 0)
        yield Usage(self.resources[0], circuits.src[row].astype(np.int64), row)

    def settings(self, circuits):
        """Of circuits that start at node 0."""
        row = np.flatnonzero(circuits.src == 0)
        yield SettingUse("ring", circuits.src[row].astype(np.int64), circuits.dst[row] - 3, row)


class Beside(Sending):
    """With a laser for each circuit."""

    def usage(self, circuits):
        """None."""
        return ()


def set_too_soon(uses, history, board=Beside):
    """Time that each refused use misses without early settings, by its number.

    Use k (start, end, whether it sends on what arrives at 5, setting) is the circuit of step k + 1; end None: it stands idle.
    """
    rows = [(0.0, 5.0, 1, 0, 0), *((a, b, 0, 3 + to, 0 if on else 1 + k) for k, (a, b, on, to) in enumerate(uses))]
    start, end, src, dst, chunk = (np.array(column, float) for column in zip(*rows, strict=True))
    steps, carry = range(len(rows)), np.flatnonzero(~np.isnan(end))

    def step(k):
        row = [k] if k in carry else []
        return Transfers.of(src[row].astype(int), dst[row].astype(int), chunk[row].astype(int), 1, Op.COPY)

    def rounds(k):
        return (Circuits.of([0 if k in carry else -1], src[[k]], dst[[k]]),)

    changes = [(m, *change) for m, mine in sorted(history.items()) for change in mine]
    member, begin, done, setting = np.array(changes, float).reshape(-1, 4).T
    programme = Programme(
        "test", 0, 99.0, StepRuns.single(len(rows)),
        CircuitTimes.of(step=steps, round=0, row=0, start_s=start, end_s=end, slot=-1, slots=-1),
        DataTimes.of(step=carry, transfer=0, arrived_s=end[carry], summed_s=end[carry]),
        DeviceTable.of(kind=0, device=member, step=-1, begin_s=begin, done_s=done, setting=setting), ControlTimes.empty(),
    )  # fmt: skip
    schedule = Schedule("uses", collective("barrier", 6, len(rows)), len(rows), step)
    plan = CircuitPlan(board(nodes=6, latency=0.0, setting_time=0.0), schedule, rounds)
    found = check_programme(plan, programme, replace(PLAIN, prepare="none")).violations
    assert {one.law for one in found} <= {"set_in_flight"}
    return {one.step - 1: pytest.approx(one.missing_s) for one in found}


TWO = {0: [(0, 10, 1), (50, 60, 2)], 1: [(5, 15, 1)]}
"""Of two members the first is set before the data arrives, and changes before the other."""


@pytest.mark.parametrize(
    ("uses", "history", "due"),
    [
        # the first use needs the member that was set after 5, though the next change of the other comes first
        ([(20, 30, True, 1), (32, 40, False, 1)], TWO, {}),
        # that member is set 1 too soon
        ([(20, 30, True, 1), (32, 40, False, 1)], {**TWO, 1: [(4, 15, 1)]}, {0: 5.0}),
        # another use needs it too
        ([(20, 30, True, 1), (25, 35, True, 1)], TWO, {0: 5.0}),
        # or it is needed for another use, as the other changes at 50
        ([(20, 40, True, 1), (25, 70, False, 1)], TWO, {0: 5.0}),
        # if the first use took the member that changes first, the last would find none
        ([(20, 48, False, 1), (25, 49.5, False, 1), (48.2, 54, False, 1)], {**TWO, 1: [(5, 15, 1), (55, 60, 2)]}, {}),
        ([(20, 30, True, 1)], {0: [(3, 10, 1)]}, {0: 2.0}),
    ],
)  # fmt: skip
def test_members_that_are_set_once_the_data_is_there(uses, history, due):
    """Without early settings; a use takes another member if all uses are right then, else the first refusal stands."""
    assert set_too_soon(uses, history) == due


def test_what_is_right_at_once_is_not_assigned_anew():
    """An idle circuit takes the member that changes first, and leaves its laser then."""
    assert set_too_soon([(20, None, False, 1), (60, 70, False, 2)], TWO, Sending) == {}


class Alone(Beside):
    """With one member."""

    pool = 1


def test_a_change_is_made_for_the_circuit_that_uses_it_first():
    """Another one that starts with it, of another round, finds it set, though its own data arrives after the change began."""
    assert set_too_soon([(20, 30, False, 1), (20, 30, True, 1)], {0: [(3, 10, 1)]}, Alone) == {}
    assert set_too_soon([(20, 30, True, 1), (20, 30, False, 1)], {0: [(3, 10, 1)]}, Alone) == {0: 2.0}


class Pairs(Board):
    """Three groups of two members."""

    @cached_property
    def devices(self):
        """Of one kind."""
        return (Device("ring", 3, 0.0, pool=2),)


@pytest.mark.parametrize(
    ("uses", "history", "board", "warm", "due"),
    [
        # members of several groups
        ([(1, 5, 9, 1), (2, 5, 9, 2)], {2: [(0, 1, 1)], 5: [(0, 1, 2)]}, Pairs, False, {}),
        ([(1, 5, 9, 1), (2, 5, 9, 2)], {3: [(0, 1, 1)], 4: [(0, 1, 2)]}, Pairs, False, {}),
        ([(1, 5, 9, 1), (2, 5, 9, 2)], {1: [(0, 1, 1)], 4: [(0, 1, 2)]}, Pairs, False, {0: 4.0}),
        ([(1, 5, 9, 1), (0, 5, 9, 2)], {4: [(0, 1, 1)], 1: [(0, 1, 2)]}, Pairs, False, {0: 4.0}),
        # changes that begin together, in the order of their ends
        ([(0, 9, 10, 1)], {0: [(5, 8, 1), (5, 5, 2)]}, Board, False, {}),
        ([(0, 9, 10, 1)], {0: [(5, 5, 1), (5, 8, 2)]}, Board, False, {0: 1.0}),
        # a warm device has the setting of what starts first, of these the longest
        ([(0, 1, 3, 2), (0, 1, 9, 1)], {}, Board, True, {0: 2.0}),
        ([(0, 1, 9, 1), (0, 1, 3, 2)], {}, Board, True, {1: 2.0}),
    ],
)  # fmt: skip
def test_settings_by_hand(uses, history, board, warm, due):
    """Refused uses, and what each misses."""
    assert refused(uses, history, board, warm) == due
