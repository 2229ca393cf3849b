"""Circuits of schedules that nobody would write: right by the verifier, each transfer once, and in the fewest rounds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.collectives import nothing_required
from tests.profiles import examples

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.verify import verify

STEPS = st.lists(st.lists(st.tuples(st.integers(0, 35), st.integers(1, 35)), max_size=12), min_size=1, max_size=3)


def schedule_of(where, steps):
    """Each step's pairs that the fabric links, a chunk of their own each."""
    n, found = where.num_nodes, []
    for step in steps:
        src, ahead = np.array(step, int).reshape(-1, 2).T
        src, dst = src % n, (src + ahead) % n
        kept = (src != dst) & np.asarray(where.linked(src, dst), bool)
        found.append(Transfers.of(src[kept], dst[kept], np.arange(int(kept.sum())), 1, Op.COPY))
    return Schedule("by hand", nothing_required(n, 12), len(found), lambda i: found[i])


def carried(plan, step):
    """Rounds of each transfer of a step, and the wavelengths of its circuits in all."""
    rounds, width = {}, Counter()
    for number, circuits in enumerate(plan.rounds(step)):
        light = plan.fabric.wavelengths_carried(circuits)
        for transfer, wavelengths in zip(circuits.transfer.tolist(), np.asarray(light).tolist(), strict=True):
            rounds.setdefault(transfer, set()).add(number)
            width[transfer] += wavelengths * (transfer >= 0)
    rounds.pop(-1, None)
    return rounds, width


def judged(where, steps):
    """The plan of any steps, right and with each transfer in one round."""
    plan = lower(where, schedule_of(where, steps))
    verdict = verify(plan)
    assert verdict.ok, verdict
    for i in range(plan.schedule.num_steps):
        rounds, width = carried(plan, i)
        assert sorted(rounds) == list(range(len(plan.schedule.step(i))))
        assert all(len(one) == 1 for one in rounds.values())
        assert all(width[number] > 0 for number in rounds)
    return plan


def busiest(ends):
    """How often the most frequent of them occurs."""
    return max(Counter(ends).values(), default=0)


ODDL = ("oddl:shape=2x3,wavelengths=12", "oddl:shape=5,wavelengths=12", "oddl:shape=3x2x2,wavelengths=11")
SIPAC = (
    "sipac:radix=3,levels=2",
    "sipac:radices=2x3",
    "sipac:radix=4,levels=1,channels=retuned",
    "sipac:radix=3,levels=2,channels=ring",
)


@examples(40)
@given(st.sampled_from(ODDL), STEPS)
def test_oddl(where, steps):
    """As many rounds as a NIC has transfers; a switch's wavelengths shared among the partners of its busiest port."""
    where = fabric(where)
    plan = judged(where, steps)
    pairs, every = set(), []
    for i in range(plan.schedule.num_steps):
        t = plan.schedule.step(i)
        every.append([(s, d, dimension(where, s, d)) for s, d in zip(t.src.tolist(), t.dst.tolist(), strict=True)])
        pairs.update(every[-1])
    for i, rows in enumerate(every):
        assert len(plan.rounds(i)) == max(busiest((s, k) for s, _, k in rows), busiest((d, k) for _, d, k in rows))
        _, width = carried(plan, i)
        for number, (_, _, k) in enumerate(rows):
            mine = [(s, d) for s, d, other in pairs if other == k]
            most = max(busiest(s for s, _ in mine), busiest(d for _, d in mine))
            assert width[number] == where.num_wavelengths // most


def dimension(where, src, dst):
    """In which two nodes differ."""
    places = [axis.coordinate for axis in where.axes(np.arange(where.num_nodes))]
    (found,) = (k for k, place in enumerate(places) if place[src] != place[dst])
    return found


DIGITS = st.tuples(st.integers(0, 35), st.integers(0, 1), st.integers(1, 3))
"""Sender, level, and how far the receiver is ahead in its digit."""


@pytest.mark.parametrize("where", SIPAC)
@examples(20)
@example(steps=[[(0, 0, 1)] * 5 + [(1, 1, 1)] * 3, [(0, 1, 1)] * 4 + [(2, 0, 2)]])
@given(steps=st.lists(st.lists(DIGITS, max_size=10), min_size=1, max_size=2))
def test_sipac(where, steps):
    """A round for each transfer of a pair; with channels=ring the next node has two channels, and takes two at a time."""
    where = fabric(where)
    plan = judged(where, [[(src, step_ahead(where, *rest, src)) for src, *rest in step] for step in steps])
    for i in range(plan.schedule.num_steps):
        t = plan.schedule.step(i)
        pairs = list(zip(t.src.tolist(), t.dst.tolist(), strict=True))
        rounds, width = carried(plan, i)
        near = {pair: where.channels == "ring" and ahead(where, *pair) == 1 for pair in pairs}
        assert len(plan.rounds(i)) == max((-(-pairs.count(pair) // (1 + near[pair])) for pair in pairs), default=0)
        for number, (s, d) in enumerate(pairs):
            groups = where.groups_of_levels[dimension(where, s, d)]
            few, many = where.num_wavelengths // groups, -(-where.num_wavelengths // groups)
            beside = [n for n, pair in enumerate(pairs) if pair == (s, d) and rounds[n] == rounds[number]]
            both = near[s, d] and len(beside) == 1
            assert width[number] in ((2 * few, few + many, 2 * many) if both else (few, many))


def step_ahead(where, level, ahead, src):
    """From a sender to the node so far ahead in the digit of a level."""
    level, src = level % len(where.sides), src % where.num_nodes
    stride, side = int(where.strides[level]), int(where.sides[level])
    digit = src // stride % side
    return ((digit + ahead) % side - digit) * stride


def ahead(where, src, dst):
    """How far the receiver is ahead in the digit that differs, modulo the radix."""
    k = dimension(where, src, dst)
    place = [axis.coordinate for axis in where.axes(np.arange(where.num_nodes))][k]
    return int(place[dst] - place[src]) % where.sides[k]


@pytest.mark.parametrize(
    "where",
    [
        "ramp:groups=2,racks=2,wavelengths=2",
        "ramp:groups=3,racks=2,wavelengths=3,subnet=route_switch",
        "ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast",
        "ramp:groups=3,racks=1,wavelengths=3,transceivers_per_group=2",
        "terarack:nodes=7,wavelengths=3",
        "lightpath:shape=2x3,lasers=3",
        "sip_ring:nodes=6,wavelengths=2",
        "ocs:nodes=6,planes=2",
    ],
)
def test_others(where):
    """Right, whatever is asked; never in fewer rounds than the busiest node has transfers for its ports and lasers."""
    where = fabric(where)

    @examples(12)
    @given(STEPS)
    def run(steps):
        plan = judged(where, steps)
        at_once = where.ports_per_node * where.lasers_per_port
        for i in range(plan.schedule.num_steps):
            received = busiest(plan.schedule.step(i).dst.tolist())
            assert len(plan.rounds(i)) >= -(-received // at_once)

    run()
