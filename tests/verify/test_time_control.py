"""Law 7, control exchanges: what is missing, of which circuits, in which repetition; and the rules that a programme claims."""

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import Bench, changed, plan_of, schedule_times

from opticcl.assumptions import assumptions
from opticcl.ir import Circuits
from opticcl.ir.programme import ControlTimes, DeviceTable
from opticcl.ir.tables import DataRows, Tables
from opticcl.verify.time.programme import TimeRules, check_programme, rules_of

MB = 1_000_000
CONTROL, SETTING = 2e-6, 10e-6
RULES = TimeRules(compute="none", control_charge="every_step", prepare="none")
ON_CHANGE = replace(RULES, control_charge="on_change")
ROWS = [(0, 0, 1, 0, 1, 0), (1, 1, 2, 0, 1, 0), (1, 0, 1, 4, 1, 0)]
"""Rank 0 sends to 1 twice, the second time on circuits that stand, while 1 sends on what it got."""


def made(rows=ROWS, **options):
    """A plan whose control exchanges take 2 us and whose settings take 10 us, and a lawful programme of it."""
    plan = plan_of(Bench(nodes=3, control=CONTROL, setting_time=SETTING, **options), rows)
    return plan, schedule_times(plan, MB, RULES)


def late(plan, programme, rules=RULES):
    """(step, missing time, count) of each violation; all of them are of law 7."""
    found = check_programme(plan, programme, rules).violations
    assert {one.law for one in found} <= {"control_late"}, found
    return [(one.step, pytest.approx(one.missing_s, rel=1e-6), one.count) for one in found]


def moved(programme, step, begin=0.0, end=0.0):
    """The exchange of a step begins and ends at other times."""
    by = programme.control.step == step
    table = programme.control
    control = changed(table, begin_s=table.begin_s + by * begin, end_s=table.end_s + by * end)
    return replace(programme, control=control)


@pytest.mark.parametrize("rules", [RULES, ON_CHANGE])
def test_what_is_missing_of_an_exchange(rules):
    """It is too short, begins too late, or does not exist; step 0 has one circuit, step 1 a new one and one that stands."""
    plan, p = made()
    both = 1 if rules is ON_CHANGE else 2
    assert late(plan, p, rules) == []
    assert late(plan, moved(p, 0, end=-1e-6), rules) == [(0, 1e-6, 1)]
    assert late(plan, moved(p, 1, end=-0.5e-6), rules) == [(1, 0.5e-6, both)]
    assert late(plan, moved(p, 1, begin=0.5e-6), rules) == [(1, 0.5e-6, both)]
    later = SETTING + 1e-6  # the exchange ends 1 us after light has begun
    assert late(plan, moved(p, 1, begin=later, end=later), rules)[0][:2] == (1, 1e-6)
    without = replace(p, control=p.control.take(p.control.step != 1))
    assert late(plan, without, rules) == [(1, CONTROL, both)]
    assert late(plan, replace(p, control=ControlTimes.empty()), rules) == [(0, CONTROL, 1), (1, CONTROL, both)]


def test_circuits_that_stand_need_none():
    """On change; in every step they do."""
    plan, p = made([(0, 0, 1, 0, 1, 0), (1, 0, 1, 4, 1, 0)])
    without = replace(p, control=p.control.take(p.control.step != 1))
    assert late(plan, without, ON_CHANGE) == []
    assert late(plan, without) == [(1, CONTROL, 1)]
    assert late(plan, without, replace(RULES, control="none")) == []


def test_devices_change_after_the_exchange():
    """With control_order=before_setting; beside_setting lets both happen together, after the data is there."""
    plan, p = made()
    begin = np.where(p.devices.begin_s > 0, p.devices.begin_s - 1e-6, p.devices.begin_s)
    early = replace(p, devices=changed(p.devices, begin_s=begin))
    assert late(plan, early) == [(0, 1e-6, 1), (1, 1e-6, 1)]
    assert late(plan, early, replace(RULES, control_order="beside_setting")) == []


def test_the_exchange_begins_once_the_data_is_there():
    """Light does not start sooner than the exchange takes after that, wherever the exchange itself stands in the table."""
    plan, p = made(ROWS[:2])
    rules = replace(RULES, prepare="early")
    before = moved(p, 1, begin=-1e-6, end=-1e-6)
    at_1 = p.devices.begin_s > p.data.summed_s[0] - 1e-12
    by = np.where(at_1, -1e-6, 0.0)
    devices = changed(p.devices, begin_s=p.devices.begin_s + by, done_s=p.devices.done_s + by)
    assert late(plan, replace(before, devices=devices), rules) == [(1, 1e-6, 1)]
    assert late(plan, before, rules) == []  # what stands in the table is early, and the circuits are not


def test_repetitions_are_judged_at_their_time():
    """The exchange of a repeated step is that of its first, a period later."""
    rows = [(i, 0, 1, 0, 1, 0) for i in range(6)]
    plan = plan_of(Bench(nodes=3, control=CONTROL), rows)
    plan = replace(plan, schedule=replace(plan.schedule, classes=(range(6),)))
    p = schedule_times(plan, MB, RULES, compact=True)
    assert len(p.runs) == 3
    assert late(plan, p) == []
    found = late(plan, moved(p, 2, begin=0.5e-6))
    assert {step for step, _, _ in found} >= {2, 5}
    assert all(missing == 0.5e-6 for _, missing, _ in found)
    found = late(plan, moved(p, 2, begin=1e-6, end=1e-6))
    assert [(step, missing) for step, missing, _ in found] == [(step, 1e-6) for step in (2, 3, 4, 5)]


def test_exchanges_without_devices_and_rounds_without_exchanges():
    """Circuits that set nothing wait for the exchange; where it takes no time, devices may be set before the data is there."""

    class Fixed(Bench):
        devices = ()

        def settings(self, circuits):
            return ()

    class Near(Bench):
        def control_s(self, src, dst):
            return self.control if 0 in src else 0.0

    plan = plan_of(Fixed(nodes=3, control=CONTROL, setting_time=0.0), ROWS[:2])
    p = schedule_times(plan, MB, RULES)
    assert late(plan, p) == []
    assert late(plan, replace(p, control=ControlTimes.empty())) == [(0, CONTROL, 1), (1, CONTROL, 1)]
    near = plan_of(Near(nodes=3, control=CONTROL, setting_time=SETTING), ROWS[:2])
    rules = replace(RULES, prepare="early")
    p = schedule_times(near, MB, rules)
    first, second = (changed(p.devices, begin_s=p.devices.begin_s * (p.devices.device != i)) for i in (0, 1))
    assert late(near, replace(p, devices=first), rules) == [(0, CONTROL, 1)]
    assert late(near, replace(p, devices=second), rules) == []
    after = plan_of(near.fabric, [(0, 1, 2, 0, 1, 0), (1, 0, 1, 4, 1, 0)])
    p = schedule_times(after, MB, rules)
    assert late(after, replace(p, control=ControlTimes.empty()), rules) == [(1, CONTROL, 1)]


def test_idle_circuits_are_agreed_on_between_their_ends():
    """By the nodes that they join."""
    seen = []

    class Watched(Bench):
        def control_s(self, src, dst):
            seen.append((src.tolist(), dst.tolist()))
            return super().control_s(src, dst)

    plan, p = made()
    idle = Circuits.of(np.array([-1, 0]), np.array([2, 0]), np.array([0, 1]))
    watched = replace(plan, fabric=Watched(nodes=3, control=CONTROL, setting_time=SETTING))
    watched = replace(watched, rounds=lambda i: (idle,) if i == 0 else plan.rounds(i))
    first = p.circuits.take([0, *range(len(p.circuits))])
    row = np.array([0, 1, *first.row[2:]])
    end = first.end_s.copy()
    end[0] = np.nan
    table = DeviceTable.joined([
        tuple(getattr(one, name) for name in one.KINDS)
        for one in (p.devices, changed(p.devices.take([0]), device=np.array([2], np.int32), setting=np.array([0])))
    ])  # fmt: skip
    programme = replace(p, circuits=changed(first, row=row, end_s=end), devices=table)
    check_programme(watched, programme, RULES)
    assert ([2, 0], [0, 1]) in seen


def test_rules_are_those_that_the_programme_claims():
    """Each of them, with the law of latency where it is the sum of its parts."""
    _, p = made()
    assert rules_of(p) == TimeRules.of(assumptions("common"))
    assert rules_of(p).latency == assumptions("common")
    claimed = {
        "latency": "published", "compute": "chain", "prepare": "none", "initial": "warm", "control": "none",
        "control_charge": "every_step", "control_order": "beside_setting", "receive_buffers": "separate",
        "memory_bytes_per_s": 2e12, "mode": "barrier",
    }  # fmt: skip
    rules = rules_of(replace(p, assumptions=claimed))
    assert rules.latency is None
    assert {name: getattr(rules, name) for name in claimed if name not in ("latency", "mode")} == {
        name: value for name, value in claimed.items() if name not in ("latency", "mode")
    }
    given = rules_of(replace(p, assumptions={**claimed, "initial": "given"}))
    assert given == replace(rules, initial="given")


def test_tables_without_assumptions_obey_the_common_rules():
    """As a programme that names none."""
    plan, _ = made()
    nothing = DeviceTable.empty(), DataRows.empty()
    tables = Tables(plan.fabric, plan.schedule.collective, MB, 1.0, False, *nothing)
    assert tables.assumptions is None
    assert rules_of(tables) == TimeRules.of(assumptions("common"))


def test_default_rules():
    """Without rules those of `TimeRules` hold."""
    plan, p = made(latency=0.0)
    assert check_programme(plan, p).violations == check_programme(plan, p, TimeRules()).violations
