"""What stands from the start, and when a device may change."""

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.timing import Bench, plan_of, schedule_times

from opticcl.ir.programme import DeviceTable
from opticcl.verify.time import TimeRules, check_programme

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
