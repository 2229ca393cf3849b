"""What a verdict on a programme says: law, step, place, missing time and count, and its figures."""

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import Bench, changed, plan_of, schedule_times

from opticcl.ir import CircuitPlan, Circuits
from opticcl.ir.device import Device
from opticcl.ir.programme import ControlTimes, DeviceTable
from opticcl.verify.time.programme import TimeRules, check_programme

MB = 1_000_000
PLAIN = TimeRules(compute="none", control="none")
CHAIN = [(0, 0, 1, 0, 1, 0), (0, 2, 0, 4, 1, 0), (1, 1, 2, 0, 1, 0)]
SETTING = 10e-6


def said(plan, programme, rules=PLAIN, **others):
    """(law, step, round, place, missing time, count) of each violation."""
    verdict = check_programme(plan, programme, rules, **others)
    return [
        (v.law, v.step, v.round, v.where, pytest.approx(v.missing_s, rel=1e-6), v.count) for v in verdict.violations
    ]


def chain(rules=PLAIN):
    """Two circuits, then one that sends on what arrived; and its programme."""
    plan = plan_of(Bench(nodes=3), CHAIN)
    return plan, schedule_times(plan, MB, rules)


def test_arrivals_and_transfers_without_circuits():
    """Data does not arrive before the last bit of its circuits does; what has no circuit is never sent."""
    plan, p = chain()
    early = np.array([1e-6, 3e-6, 0.0])
    data = changed(p.data, arrived_s=p.data.arrived_s - early, summed_s=p.data.summed_s - early)
    assert said(plan, replace(p, data=data)) == [("too_short", 0, -1, "arrival of transfer 1", 3e-6, 2)]
    alone = CircuitPlan(
        plan.fabric, plan.schedule, lambda i: (plan.rounds(0)[0].take([0]),) if i == 0 else plan.rounds(i)
    )
    without = replace(p, circuits=p.circuits.take(np.flatnonzero(p.circuits.row == 0)))
    assert said(alone, without) == [("never_sent", 0, -1, "transfer 1", 0.0, 1)]


def test_a_period_is_of_whole_slots():
    """Of steps that repeat; the steps are named."""
    bench = Bench(nodes=3, setting_time=0.0, slot=20e-9, payload=950.0)
    plan = plan_of(bench, [(i, 0, 1, 0, 1, 0) for i in range(4)])
    plan = replace(plan, schedule=replace(plan.schedule, classes=(range(4),)))
    p = schedule_times(plan, 8 * 2375, PLAIN, compact=True)
    assert p.runs.repeats.tolist() == [1, 1, 2]
    assert said(plan, p) == said(replace(plan, schedule=replace(plan.schedule, classes=())), p) == []
    assert said(plan, replace(p, total_s=p.total_s - 1e-6)) == [("total_too_small", 3, -1, "the last event", 1e-6, 1)]
    for by in ([0, 0, 6e-16], [5e-9, 0, 0]):  # within the tolerance; of a step that is not repeated
        assert said(plan, replace(p, runs=changed(p.runs, period_s=p.runs.period_s + np.array(by)), total_s=1.0)) == []
    late = changed(p.runs, period_s=p.runs.period_s + np.array([0, 0, 5e-9]))
    longer = replace(p, runs=late, total_s=1.0)
    assert said(plan, longer) == [("off_slot", 2, -1, "period of steps 2..3", 5e-9, 2)]


def test_settings_that_stand_are_no_changes():
    """Rows that begin and end at 0 say what stands, where that is claimed; each is counted once, as none."""
    plan, p = chain()
    assert check_programme(plan, p, PLAIN).changes == 3
    zeros = np.zeros(len(p.devices))
    stand = replace(p, devices=changed(p.devices, begin_s=zeros, done_s=zeros))
    for rules in (replace(PLAIN, initial="given"), replace(PLAIN, initial="warm")):
        verdict = check_programme(plan, stand, rules)
        assert (verdict.ok, verdict.changes, verdict.uses) == (True, 0, 3)
    assert not check_programme(plan, stand, PLAIN).ok
    assert check_programme(plan, stand, PLAIN, standing=stand.devices).ok
    assert not check_programme(plan, stand, PLAIN, standing=stand.devices.take([0, 1])).ok


def test_devices_that_are_set_before_the_data_is_there():
    """Refused without early settings, by as much as they are early; with them the programme is lawful."""
    rules = replace(PLAIN, prepare="none")
    plan, p = chain(rules)
    assert said(plan, p, rules) == []
    by = np.where(p.devices.device == 1, -4e-6, 0.0)
    early = replace(p, devices=changed(p.devices, begin_s=p.devices.begin_s + by, done_s=p.devices.done_s + by))
    place = "transmitter 1, circuit 1 -> 2"
    assert said(plan, early, rules) == [("set_in_flight", 1, 0, place, 4e-6, 1)]
    assert said(plan, early) == []


def test_figures():
    """Circuits, uses and changes, the time in which no circuit carries data, and buffers where there may be some."""
    plan, p = chain()
    verdict = check_programme(plan, p, PLAIN)
    busy = (MB / 8 * 8 / 8e9 + 1e-6) * 2
    assert (verdict.circuits, verdict.uses, verdict.changes, verdict.total_s) == (3, 3, 3, p.total_s)
    assert verdict.idle_s == pytest.approx(p.total_s - busy)
    assert verdict.receive_buffer_bytes == 0
    meets = plan_of(Bench(nodes=3), [(0, 0, 1, 0, 4, 0), (0, 2, 0, 0, 1, 0)])
    programme = schedule_times(meets, MB, PLAIN)
    shared = check_programme(meets, programme, PLAIN)
    assert ([v.law for v in shared.violations], shared.receive_buffer_bytes) == (["overwritten_before_sent"], 0)


def test_the_last_event_of_any_table_is_the_end():
    """Of circuits, devices and control; the last step is named."""
    plan, p = chain()
    assert said(plan, replace(p, total_s=p.total_s - 1e-6)) == [("total_too_small", 1, -1, "the last event", 1e-6, 1)]
    again = DeviceTable.of(kind=0, device=2, step=-1, begin_s=p.total_s, done_s=p.total_s + SETTING, setting=1)
    columns = (p.devices, again)
    devices = DeviceTable(**{n: np.concatenate([getattr(one, n) for one in columns]) for n in DeviceTable.KINDS})
    assert said(plan, replace(p, devices=devices)) == [("total_too_small", 1, -1, "the last event", SETTING, 1)]


def test_an_exchange_after_all_else_is_the_last_event():
    """Though no circuit needs it."""
    plan, p = chain()
    control = ControlTimes.of(step=0, round=0, begin_s=p.total_s, end_s=[p.total_s + 2e-6])
    assert said(plan, replace(p, control=control)) == [("total_too_small", 1, -1, "the last event", 2e-6, 1)]


def test_the_last_event_is_of_the_step_that_ends_last():
    """Of steps that end together the first; without transfers step 0."""
    plan = plan_of(Bench(nodes=4), [(0, 0, 1, 0, 2, 0), (1, 2, 3, 4, 1, 0)])
    p = schedule_times(plan, MB, PLAIN)
    longer = float(p.circuits.end_s[0])
    for end in (longer, longer - 1e-6):
        late = (end - p.circuits.end_s[1]) * (p.circuits.step == 1)
        circuits = changed(p.circuits, start_s=p.circuits.start_s + late, end_s=p.circuits.end_s + late)
        data = changed(p.data, arrived_s=circuits.end_s, summed_s=circuits.end_s)
        both = replace(p, circuits=circuits, data=data, total_s=longer - 2e-6)
        assert said(plan, both) == [("total_too_small", 0, -1, "the last event", 2e-6, 1)]
    nothing = plan_of(Bench(nodes=4), [], num_steps=2)
    change = DeviceTable.of(kind=0, device=2, step=-1, begin_s=0.0, done_s=[SETTING], setting=1)
    alone = replace(schedule_times(nothing, MB, PLAIN), devices=change)
    assert said(nothing, alone) == [("total_too_small", 0, -1, "the last event", SETTING, 1)]


def test_changes_take_their_time():
    """The device, when, and how much is missing; a device that is set once a job has no change, and its uses agree."""
    plan = plan_of(Bench(nodes=3), [(0, 0, 1, 0, 1, 0), (1, 0, 2, 4, 1, 0), (1, 2, 1, 5, 1, 0)])
    p = schedule_times(plan, MB, PLAIN)
    second = np.flatnonzero(p.devices.begin_s > 0)[:1]
    begin = p.devices.begin_s.copy()
    begin[second] += 3e-6
    place = f"change of transmitter 0 at {begin[second][0]:.6g} s"
    short = replace(p, devices=changed(p.devices, begin_s=begin))
    assert said(plan, short) == [("set_in_flight", 0, -1, place, 3e-6, 1)]

    class Fixed(Bench):
        devices = (Device("transmitter", 3, 0.0, once_per_job=True),)

    fixed = plan_of(Fixed(nodes=3), [(0, 0, 1, 0, 1, 0), (1, 2, 1, 0, 1, 0), (1, 0, 2, 0, 1, 0)])
    p = schedule_times(fixed, MB, PLAIN)
    took = MB / 8 * 8 / 8e9
    assert said(fixed, p) == [("set_in_flight", 1, 0, "transmitter 0, circuit 0 -> 2", took, 1)]
    change = DeviceTable.of(kind=0, device=2, step=-1, begin_s=[1e-6], done_s=[1e-6], setting=[1])
    agrees = plan_of(Fixed(nodes=3), CHAIN)
    p = replace(schedule_times(agrees, MB, PLAIN), devices=change)
    assert said(agrees, p) == [
        ("set_in_flight", 0, -1, "change of transmitter 2, which is set before the job", 0.0, 1)
    ]  # fmt: skip


def test_changes_of_one_device_at_a_time():
    """In the order in which they begin; the second begins before the first is done."""
    plan = plan_of(Bench(nodes=4), CHAIN)
    p = schedule_times(plan, MB, PLAIN)
    begin, done = np.array([1e-6, 3e-6]), np.array([30e-6, 14e-6])
    both = DeviceTable.of(kind=0, device=3, step=-1, begin_s=begin, done_s=done, setting=[1, 2])
    devices = DeviceTable(
        **{n: np.concatenate([getattr(one, n) for one in (both, p.devices)]) for n in DeviceTable.KINDS}
    )
    place = "change of transmitter 3 at 3e-06 s"
    assert said(plan, replace(p, devices=devices)) == [("set_in_flight", 0, -1, place, 27e-6, 1)]


def test_what_stands_was_set_before_any_data():
    """So that it is not set too soon, where settings wait for the data."""
    rules = replace(PLAIN, prepare="none")
    plan, p = chain(rules)
    right = DeviceTable.of(kind=0, device=range(3), step=-1, begin_s=0, done_s=0, setting=[1, 2, 0])
    assert said(plan, replace(p, devices=DeviceTable.empty()), rules, standing=right) == []


def test_uses_are_named_by_their_circuits():
    """Behind repeated steps, and in later rounds of a step."""
    rows = [
        *((i, 0, 1, i, 1, 0) for i in range(12)),
        (12, 2, 0, 12, 1, 0),
        *((13, 1, dst, 13 + dst, 1, 0) for dst in (0, 2, 3)),
    ]
    plan = plan_of(Bench(), rows, chunks=17)
    classes = (range(12), range(12, 13), range(13, 14))
    plan = replace(plan, schedule=replace(plan.schedule, classes=classes))
    p = schedule_times(plan, MB, PLAIN, compact=True)
    assert p.runs.repeats.tolist() == [1, 1, 10, 1, 1]
    assert said(plan, p) == []
    took = pytest.approx(MB / 17 * 8 / 8e9)
    without = replace(p, devices=p.devices.take(p.devices.device != 2))
    assert said(plan, without) == [("unset_at_start", 12, 0, "transmitter 2, circuit 2 -> 0", took, 1)]
    other = changed(
        p.devices, setting=np.where((p.devices.device == 1) & (p.devices.setting == 2), 0, p.devices.setting)
    )
    assert said(plan, replace(p, devices=other)) == [("set_in_flight", 13, 1, "transmitter 1, circuit 1 -> 2", took, 1)]


@pytest.mark.parametrize(("early", "missing"), [(0.5e-6, 0.0), (0.7e-6, 0.2e-6)])
def test_light_passes_a_device_later_than_it_leaves(early, missing):
    """A lane half a latency behind its sender is free as the last bit has passed it."""
    plan = plan_of(Bench(lanes=1), [(0, 0, 1, 0, 1, 0), (1, 2, 3, 4, 1, 0)])
    p = schedule_times(plan, MB, PLAIN)
    by = early * ((p.devices.kind == 1) & (p.devices.begin_s > 0))
    found = said(
        plan, replace(p, devices=changed(p.devices, begin_s=p.devices.begin_s - by, done_s=p.devices.done_s - by))
    )
    assert found == ([("set_in_flight", 0, 0, "lane 0, circuit 0 -> 1", missing, 1)] if missing else [])


def test_data_that_is_late():
    """What is sent before it is there, altered while it leaves, or summed too fast; of a step the worst and how many."""
    rows = [(0, 0, 1, 0, 1, 0), (1, 0, 2, 4, 1, 0), (1, 1, 0, 0, 1, 0)]
    plan = plan_of(Bench(nodes=3, setting_time=0.0), rows)
    p = schedule_times(plan, MB, PLAIN)
    late = changed(p.data, summed_s=p.data.summed_s + np.array([2e-6, 0, 0]))
    assert said(plan, replace(p, data=late)) == [("sent_before_there", 1, -1, "transfer 1 -> 0, chunk 0", 2e-6, 1)]
    rules = replace(PLAIN, compute="fused", memory_bytes_per_s=1e9)
    sums = plan_of(Bench(nodes=3, setting_time=0.0), [(0, 0, 1, 0, 1, 0), (1, 2, 1, 4, 1, 1)])
    p = schedule_times(sums, MB, rules)
    soon = changed(p.data, summed_s=p.data.summed_s - np.array([0, 5e-6]))
    assert said(sums, replace(p, data=soon), rules) == [
        ("summed_too_fast", 1, -1, "sum at rank 1 of transfer 0", 5e-6, 1)
    ]  # fmt: skip


def test_an_idle_circuit_stands_until_its_device_changes():
    """Not longer: its receiver is free then; had the device not changed, another circuit would meet it there."""
    base = plan_of(Bench(nodes=4), [(0, 1, 2, 0, 1, 0), (1, 0, 1, 4, 1, 0), (1, 2, 3, 5, 1, 0)])

    def rounds(i):
        return (Circuits.of([0, -1], [1, 0], [2, 3]),) if i == 0 else base.rounds(i)

    plan, p = CircuitPlan(base.fabric, base.schedule, rounds), schedule_times(base, MB, PLAIN)
    idle = {"step": 0, "round": 0, "row": 1, "start_s": p.circuits.start_s[0], "end_s": np.nan, "slot": -1, "slots": -1}
    circuits = changed(p.circuits, **{name: np.append(getattr(p.circuits, name), idle[name]) for name in idle})
    own = p.devices.take(p.devices.device != 0)
    there = DeviceTable.of(
        kind=0, device=0, step=-1, begin_s=[0, 1e-4], done_s=[SETTING, 1e-4 + SETTING], setting=[3, 1]
    )
    both = {name: np.concatenate([getattr(own, name), getattr(there, name)]) for name in DeviceTable.KINDS}
    assert said(plan, replace(p, circuits=circuits, devices=DeviceTable(**both))) == []
