"""What stands from the start, and which of two assignments of members of a pool counts."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.verify.timing import Bench, plan_of, schedule_times

from opticcl.ir.device import Device
from opticcl.ir.programme import DeviceTable
from opticcl.verify._time_devices import Changes, Numbering, Uses
from opticcl.verify.time import TimeRules, _Check, check_programme

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


USES = np.array([1.0, 4.0, 7.0])
CHANGES = Changes(
    np.array([0, 0, 1]), np.array([0.0, 9, 3]), np.array([1.0, 10, 4]), np.array([1, 2, 1]), np.zeros(3, int)
)
FIRST, BY_DATA = [0, 0, 0], [0, 2, 0]


def members(prepare, refused, pool=2, uses=3):
    """Change of each use; `refused`: assignments that break the law; None: a test fails that checks one."""

    def is_refused(given, found, changes, ready_s):
        assert refused is not None
        return found.change.tolist() in refused

    n = np.arange(uses)
    given = Uses(np.zeros(uses, int), USES[:uses], USES[:uses] + 1, np.ones(uses, int), n, n, np.zeros(uses, bool))
    devices = (Device("lane", 1, pool=pool),)
    check = SimpleNamespace(
        rules=replace(PLAIN, prepare=prepare), devices=devices, numbering=Numbering(devices),
        _ready_s=lambda of, timing: np.array([0.0, 3.0, 6.0])[: len(of)], _refused=is_refused,
    )  # fmt: skip
    return _Check._members(check, given, CHANGES, None, False).change.tolist()


@pytest.mark.parametrize("pool", [2, 3])
def test_a_second_assignment(pool):
    """Where the first breaks the law and the second does not; else the first."""
    assert members("none", [], pool) == FIRST
    assert members("none", [FIRST], pool) == BY_DATA
    assert members("none", [FIRST, BY_DATA], pool) == FIRST


def test_one_assignment_is_enough():
    """Where devices may be set early, without pools, and without uses."""
    assert members("early", None) == FIRST
    assert members("none", None, pool=1) == FIRST
    assert members("none", None, uses=0) == []


@pytest.mark.parametrize(
    ("missing_s", "ready_s", "refused"), [(0, 0, False), (0.5, 0, True), (0, 9, True), (0.5, 9, True)]
)
def test_assignments_that_break_the_law(missing_s, ready_s, refused):
    """A use misses its setting, or its device is set before its data is ready."""
    found = SimpleNamespace(missing_s=np.array([0.0, missing_s]), change=np.array([0, 2]))
    n = np.arange(2)
    uses = Uses(np.zeros(2, int), USES[1:], USES[1:] + 1, np.ones(2, int), n, n, np.zeros(2, bool))
    check = SimpleNamespace(programme=SimpleNamespace(total_s=10.0))
    assert _Check._refused(check, uses, found, CHANGES, np.full(2, float(ready_s))) is refused
