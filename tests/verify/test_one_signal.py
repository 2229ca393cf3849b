"""One signal on one transmitter: plans whose receivers need different bytes of it are refused, by both judges of light."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.altered import altered
from tests.collectives import nothing_required
from tests.profiles import examples
from tests.signals import signals

from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers, no_progress
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.operations.dynamic_traffic.schedulers import slot_circuits
from opticcl.verify.light import circuits as circuits_module
from opticcl.verify.light.circuits import check_light
from opticcl.verify.light.emulated import emulate
from opticcl.verify.time.epochs import EpochJudge

RAMP = fabric("ramp:groups=3,racks=3,wavelengths=3")
RECEIVERS = (10, 13, 16)
"""Of one wavelength, in the group beside that of node 0."""


def light(ports):
    """Circuits from node 0, one for each (transfer, port); each transfer has a receiver of its own."""
    carried, port = np.array(ports, np.int32).T
    n = len(carried)
    return Circuits.of(carried, np.zeros(n, int), np.array(RECEIVERS)[carried], port, 1, 1, np.tile([1, 0], (n, 1)))


def plan_of(ports, chunks=(0, 0, 0), op=Op.COPY):
    """One step in which node 0 sends a chunk to each receiver."""
    circuits = light(ports)
    many = int(circuits.transfer.max()) + 1
    t = Transfers.of(np.zeros(many, int), np.array(RECEIVERS[:many]), np.array(chunks[:many]), 1, op)
    schedule = Schedule("by hand", nothing_required(RAMP.num_nodes, 4), 1, lambda i: t)
    return CircuitPlan(RAMP, schedule, lambda i: (circuits,))


def rules_of(plan):
    """Rules that the two judges of light find broken."""
    found = check_light(plan, progress=no_progress).violations, emulate(plan).violations
    return tuple({violation.rule for violation in one} for one in found)


@pytest.mark.parametrize(
    "ports",
    [
        [(0, 0), (0, 1), (1, 1), (1, 2), (2, 0), (2, 2)],  # three pairs of three ports
        [(0, 0), (1, 0), (1, 1)],  # all of the chunk by port 0, and half of it
        [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)],  # halves and thirds
    ],
    ids=["pairs", "half and whole", "halves and thirds"],
)
def test_receivers_that_need_other_bytes_of_a_chunk_are_refused_by_name(ports):
    """A transmitter would have to send two signals at once."""
    for rows in (ports, ports[::-1]):
        light_rules, emulated = rules_of(plan_of(rows))
        assert light_rules == {"transmitter_shared", "wavelength_clash"}
        assert "setting_clash" in emulated


@pytest.mark.parametrize("op", [Op.COPY, Op.REDUCE])
def test_receivers_by_the_same_ports_hear_the_same_halves(op):
    """In any order of the rows, whether they store or add what they receive."""
    ports = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    for rows in (ports, ports[::-1], [ports[i] for i in (1, 2, 0, 5, 3, 4)]):
        assert rules_of(plan_of(rows, op=op)) == (set(), set())


def test_receivers_of_other_chunks_are_refused():
    """From one port."""
    light_rules, _ = rules_of(plan_of([(0, 0), (1, 0)], chunks=(0, 1)))
    assert light_rules == {"transmitter_shared", "wavelength_clash"}


def test_every_step_is_judged_by_its_own_chunks():
    """Steps with the same circuits, of which one sends two chunks by one port, in either order."""
    circuits = light([(0, 0), (1, 0)])
    steps = [Transfers.of([0, 0], RECEIVERS[:2], chunks, 1, Op.COPY) for chunks in ([0, 0], [0, 1], [1, 1])]
    for order in ([0, 1], [1, 0], [0, 1, 2], [0, 2, 1]):
        made = [steps[i] for i in order]
        schedule = Schedule("by hand", nothing_required(RAMP.num_nodes, 4), len(made), made.__getitem__)
        plan = CircuitPlan(RAMP, schedule, lambda i: (circuits,))
        found = check_light(plan, progress=no_progress).violations
        assert {(v.step, v.rule) for v in found} == {
            (order.index(1), rule) for rule in ("transmitter_shared", "wavelength_clash")
        }


def test_signals_are_counted_where_circuits_do_not_fit(monkeypatch):
    """Those of circuits that fit are no more."""

    def unexpected(*given):
        raise AssertionError(given)

    apart, one = of_class((1, 2), ports=((0, 0), (1, 1))), plan_of([(0, 0), (1, 0)])
    assert not check_light(one, progress=no_progress).violations
    monkeypatch.setattr(circuits_module, "distinct_signals", unexpected)
    assert not check_light(apart, progress=no_progress).violations
    with pytest.raises(AssertionError):
        check_light(one, progress=no_progress)


def test_circuits_of_steps_that_cannot_be_more_signals_are_counted_once():
    """A step of its own, and steps of rows that move chunks by one distance."""
    rows = PhaseRows.of(1, 0, np.array(RECEIVERS[:2])[:, None], 0, unit_shift=1, op=Op.COPY)
    steps = Steps(Space((RAMP.num_nodes,)), [MessagePart(((UNIT, 1, 4),), 4)], [Phase(rows, (), 3)])
    alone = plan_of([(0, 0), (1, 0)])
    moving = Schedule("rows", nothing_required(RAMP.num_nodes, 4), 3, steps, classes=(range(3),))
    for schedule in (alone.schedule, moving):
        calls = []
        where = altered(RAMP, usage=lambda self, circuits, calls=calls: calls.append(circuits) or RAMP.usage(circuits))
        plan = CircuitPlan(where, schedule, lambda i: alone.rounds(0))
        assert not check_light(plan, progress=no_progress).violations
        assert len(calls) == 1


def test_what_is_wrong_is_said_of_every_step():
    """Also where its light is that of the step before."""
    plan = plan_of([(0, 0), (1, 0)], chunks=(0, 1))
    twice = replace(plan.schedule, num_steps=2)
    found = check_light(replace(plan, schedule=twice), progress=no_progress).violations
    assert [v.step for v in found] == [0, 0, 1, 1]
    assert all(v.round == 0 for v in found)


SUBSETS = [one for n in (1, 2, 3) for one in combinations(range(3), n)]


@examples(60)
@given(
    st.lists(st.sampled_from(SUBSETS), min_size=1, max_size=3),
    st.lists(st.integers(0, 1), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
def test_both_judges_count_signals_by_their_bytes(of_transfers, chunks, order):
    """One for each transmitter, or both refuse the plan."""
    ports = [(transfer, port) for transfer, some in enumerate(of_transfers) for port in some]
    order.shuffle(ports)
    plan = plan_of(ports, chunks)
    found = {}
    for port, mine in zip(light(ports).port, signals(light(ports), plan.schedule.step(0)), strict=True):
        found.setdefault(int(port), set()).add(mine)
    right = all(len(of_port) == 1 for of_port in found.values())
    light_rules, emulated = rules_of(plan)
    assert (not light_rules, not emulated) == (right, right)


def of_class(*others, ports=((0, 0), (1, 0))):
    """A plan of a class of steps; in the first, two receivers get chunk 0 by one port, if no others are given."""
    steps = [Transfers.of([0, 0], RECEIVERS[:2], np.array(lo), 1, Op.COPY) for lo in ((0, 0), *others)]
    circuits, count = light(ports), len(steps)
    schedule = Schedule("some", nothing_required(RAMP.num_nodes, 4), count, lambda i: steps[i], classes=(range(count),))
    return CircuitPlan(RAMP, schedule, lambda i: (circuits,))


def test_a_later_step_of_a_class_may_not_split_a_signal():
    """Chunks may differ between the steps of a class, so a signal of the first may be two in another."""
    assert not check_light(of_class((1, 1)), progress=no_progress).violations
    found = check_light(of_class((1, 2)), progress=no_progress).violations
    assert {(v.rule, v.step) for v in found} == {("transmitter_shared", 1), ("wavelength_clash", 1)}
    found = check_light(of_class((1, 1), (1, 2)), progress=no_progress).violations
    assert {(v.rule, v.step) for v in found} == {("transmitter_shared", 2), ("wavelength_clash", 2)}


def test_rows_beside_each_other_may_not_split_a_signal():
    """As above, with chunks that two rows move apart."""
    circuits = light([(0, 0), (1, 0)])
    for add, right in ((1, True), (2, False)):
        rows = PhaseRows.of(1, 0, np.array(RECEIVERS[:2])[:, None], 0, unit_shift=[1, add], op=Op.COPY)
        steps = Steps(Space((RAMP.num_nodes,)), [MessagePart(((UNIT, 1, 5),), 5)], [Phase(rows, (), 3)])
        schedule = Schedule("rows", nothing_required(RAMP.num_nodes, 5), 3, steps, classes=(range(3),))
        plan = CircuitPlan(RAMP, schedule, lambda i: (circuits,))
        assert (not check_light(plan, progress=no_progress).violations) is right


def test_light_of_a_plan_is_no_signal_of_the_cells_beside_it():
    """Cell 0 of a slot and chunk 0 of the plan that has some of its slots, on one transmitter."""
    machine = fabric("ramp:groups=2,racks=2,wavelengths=4")
    ints = [np.array([value], np.int32) for value in (0, 8, 0, 1, 0)]
    grants = EpochGrants(*ints, *(np.zeros(0, np.int32),) * 3)
    due = EpochRequest(*ints[:2], *ints[3:])
    slot = slot_circuits(machine, grants)[0]
    for chunk in (0, 1):
        judge = EpochJudge(machine, 0, True, None)
        other = Transfers.of([0], [12], [chunk], 1, Op.COPY), replace(slot, dst=np.array([12], np.int32))
        judge.epoch(0, due, grants, [slot], [other])
        found = {violation.rule for violation in judge.end(0, 0, 0).violations}
        assert {"transmitter_shared", "wavelength_clash"} <= found
