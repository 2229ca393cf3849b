"""Times of steps that are not listed: the same as row by row, verified by definition, and wrong ones refused by law."""

from dataclasses import replace

import numpy as np
import pytest
from tests.images import not_listed, ramp

from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir.programme import ControlTimes, DeviceTable
from opticcl.verify.time.programme import check_programme, rules_of

EACH = [
    ((3, 2, 6), "all_to_all", "skewed_exchange:steps=1"),
    ((3, 2, 6), "all_reduce", "skewed_exchange:block=2,steps=4"),
    ((5, 3, 5), "all_to_all", "skewed_exchange:block=1"),
    ((4, 4, 8), "all_to_all", "skewed_exchange:classes=4"),
    ((3, 2, 6), "all_to_all", "skewed_exchange:block=2,parts=3,direct=2"),
    ((5, 3, 5), "all_reduce", "skewed_exchange:block=3,steps=3"),
    ((4, 4, 8), "all_gather", "skewed_exchange:block=2"),
    ((4, 4, 8), "all_reduce", "skewed_exchange:block=2,steps=2"),
]
ASSUMED = [("published", {"rounds": "in_line"}), ("published", {}), ("common", {"compute": "chain"})]


@pytest.mark.parametrize(("shape", "collective", "algorithm"), EACH)
def test_the_same_times_as_row_by_row(monkeypatch, shape, collective, algorithm):
    """Programmes of both end together, at the closed form's time, and both are verified."""
    for name, more in ASSUMED:
        found = []
        for plan in not_listed(monkeypatch, ramp(shape), collective, algorithm):
            programme = plan.programme(assumptions=name, **more)
            verdict = check_programme(plan.circuits, programme, rules_of(programme))
            assert verdict.ok, str(verdict)
            assert programme.total_s == pytest.approx(plan.simulate(assumptions=name, **more).total_s, rel=1e-9)
            found.append((programme.total_s, verdict.circuits, verdict.idle_s))
        assert found[0] == pytest.approx(found[1], rel=1e-12)


def later(table, by_s, which=slice(None), *names):
    """A table with some times moved."""
    columns = {}
    for name in names:
        columns[name] = np.array(getattr(table, name))
        columns[name][which] += by_s
    return replace(table, **columns)


SLOT = 20e-9
LAST = slice(-1, None)
WRONG = [
    (
        "half a slot later",
        lambda p: replace(p, circuits=later(p.circuits, SLOT / 2, slice(None), "start_s")),
        "off_slot",
    ),
    ("a slot shorter", lambda p: replace(p, circuits=later(p.circuits, -SLOT, slice(None), "end_s")), "too_short"),
    ("a slot less", lambda p: replace(p, circuits=later(p.circuits, -1, slice(None), "slots")), "too_short"),
    ("arrived before its last bit", lambda p: replace(p, data=later(p.data, -SLOT, LAST, "arrived_s")), "too_short"),
    ("the last step at once", lambda p: replace(p, circuits=with_start(p, 1, 0)), "sent_before_there"),
    ("rounds at once", lambda p: replace(p, circuits=with_rounds_at_once(p)), "overlap"),
    ("summed at once", lambda p: replace(p, data=replace(p.data, summed_s=p.data.arrived_s)), "summed_too_fast"),
    ("summed before it arrived", lambda p: replace(p, data=later(p.data, -3e-6, LAST, "summed_s")), "summed_too_fast"),
    ("in place before the last bit left", lambda p: replace(p, data=with_first_arrival(p)), "overwritten_before_sent"),
    ("a total that is smaller", lambda p: replace(p, total_s=p.total_s * 0.999), "total_too_small"),
]


def with_start(p, step, slot):
    """Circuits of a step from another slot on."""
    c, rows = p.circuits, p.circuits.step == step
    by = slot - int(c.slot[rows].min())
    return replace(later(later(c, by, rows, "slot"), by * SLOT, rows, "start_s", "end_s"))


def with_rounds_at_once(p):
    """Circuits of the first step, all rounds with the first."""
    c = p.circuits
    by = np.where(c.step == 0, c.slot[(c.step == 0) & (c.round == 0)][0] - c.slot, 0)
    return replace(c, slot=c.slot + by, start_s=c.start_s + by * SLOT, end_s=c.end_s + by * SLOT)


def with_first_arrival(p):
    """Data of the first step arrives with the first circuit that ends."""
    arrived, first = np.array(p.data.arrived_s), p.data.step == 0
    arrived[first] = p.circuits.start_s[p.circuits.step == 0].min()
    return replace(p.data, arrived_s=arrived)


@pytest.mark.parametrize(("what", "change", "law"), WRONG, ids=[one[0] for one in WRONG])
def test_wrong_times_are_refused(monkeypatch, what, change, law):
    """By law."""
    _, plan = not_listed(monkeypatch, ramp((4, 4, 8)), "all_reduce", "skewed_exchange:block=4,steps=4")
    programme = plan.programme(assumptions="published", rounds="in_line")
    right = check_programme(plan.circuits, programme, rules_of(programme))
    assert (right.ok, right.circuits, right.changes) == (True, plan.verify().circuits, 0)
    assert right.uses == right.circuits * len(plan.fabric.devices)
    wrong = change(programme)
    verdict = check_programme(plan.circuits, wrong, rules_of(wrong))
    assert law in {violation.law for violation in verdict.violations}, str(verdict)


def test_what_is_not_judged(monkeypatch):
    """Devices that take time outside slots, tables of them, and engines that need lists: one line."""
    _, plan = not_listed(monkeypatch, ramp((3, 2, 6)), "all_to_all", "skewed_exchange:steps=1")
    programme = plan.programme(assumptions="published", rounds="in_line")
    table = DeviceTable.of(kind=0, device=[0], step=-1, begin_s=0.0, done_s=0.0, setting=0)
    with pytest.raises(UnsupportedError, match="tables of devices"):
        check_programme(plan.circuits, replace(programme, devices=table))
    with pytest.raises(UnsupportedError, match="tables of devices"):
        check_programme(plan.circuits, programme, standing=table)
    exchange = ControlTimes.of(step=0, round=0, begin_s=0.0, end_s=[1e-6])
    with pytest.raises(UnsupportedError, match="tables of devices or control"):
        check_programme(plan.circuits, replace(programme, control=exchange))
    _, plan = not_listed(monkeypatch, ramp((3, 2, 6), slot=0.0), "all_to_all", "skewed_exchange:steps=1")
    with pytest.raises(UnsupportedError, match="slots"):
        plan.programme()
    assert fabric("sipac").units_of_devices() is None


def test_files_of_times(monkeypatch, tmp_path):
    """A programme is bound to its plan: written, read and verified; another plan refuses it."""
    from opticcl.errors import PlanFileError
    from opticcl.formats.programme_file import read_programme_file, write_programme_file

    where = ramp((3, 2, 6))
    _, plan = not_listed(monkeypatch, where, "all_to_all", "skewed_exchange:steps=1")
    _, other = not_listed(monkeypatch, where, "all_to_all", "skewed_exchange:block=1")
    programme = plan.programme(assumptions="published", rounds="in_line")
    write_programme_file(tmp_path / "times.json", plan.circuits, programme)
    read = read_programme_file(tmp_path / "times.json", plan.circuits)
    assert check_programme(plan.circuits, read, rules_of(read)).ok
    with pytest.raises(PlanFileError):
        read_programme_file(tmp_path / "times.json", other.circuits)
