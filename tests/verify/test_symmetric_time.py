"""Times of steps that are not listed: the same as row by row, verified by definition, and wrong ones refused by law."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.images import Made, not_listed, ramp

from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Op, Usage, concatenate_circuits
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import Passage
from opticcl.ir.programme import ControlTimes, DeviceTable, StepRuns
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


REFUSED = [
    ("outside the guards of slots", {"slot_s": 0.0}), ("outside the guards of slots", {"reconfiguration_s": 1e-9}),
    ("devices that take time to change", {"devices": (Device("rx_gate", 1, 0.0), Device("laser", 1, 1e-9))}),
    ("paths of different latencies", {"hop_latency_s": lambda self, hops: np.zeros(len(hops))}),
    ("paths of different latencies", {"hop_passages": lambda self, floor: Passage()}),
    ("devices that are part of no resource", {"units_of_devices": lambda self: None}),
    ("control exchanges", {"shortest_control_s": 1e-9}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "other"), REFUSED)
def test_machines_that_are_not_judged(monkeypatch, what, other):
    """One line says what is not covered; paths that differ by their parts alone matter where latencies are sums of these."""
    _, plan = not_listed(monkeypatch, ramp((3, 2, 6)), "all_to_all", "skewed_exchange:steps=1")
    programme = plan.programme(rounds="in_line")
    rules = rules_of(programme)
    assert rules.latency is not None
    assert check_programme(plan.circuits, programme, rules).ok
    machine = type("Other", (type(plan.fabric),), other)(groups=3, racks=2, wavelengths=6)
    made = Made(plan.circuits, plan.circuits.rounds.lowered_by.rule, machine)
    elsewhere = replace(plan.circuits, fabric=machine, rounds=made)
    said = rf"^programme: steps that are not listed, with (devices that change )?{what}: not judged; take fewer nodes$"
    with pytest.raises(UnsupportedError, match=said):
        check_programme(elsewhere, programme, rules)
    if "hop_passages" in other:
        published = plan.programme(assumptions="published", rounds="in_line")
        assert check_programme(elsewhere, published, rules_of(published)).ok


def test_other_programmes_that_are_not_judged(monkeypatch):
    """With repeated steps, twice is enough; or by moves that are none of the machine."""
    _, plan = not_listed(monkeypatch, ramp((4, 4, 8)), "all_reduce", "skewed_exchange:block=4,steps=4")
    programme = plan.programme(assumptions="published", rounds="in_line")
    runs = StepRuns.of(first=[0, 2, 3], repeats=[2, 1, 1], period_s=1.0)
    with pytest.raises(UnsupportedError, match="repeated steps"):
        check_programme(plan.circuits, replace(programme, runs=runs))
    wrong = replace(plan.circuits, rounds=Made(plan.circuits, Astray(plan.circuits.rounds.lowered_by.rule)))
    with pytest.raises(UnsupportedError, match="found another one; verify the plan first"):
        check_programme(wrong, programme, rules_of(programme))


class Astray:
    """Circuits of a plan, by a first move that takes two nodes to each other's places."""

    def __init__(self, light):
        self.represents, self.senders, self.light = light.represents, light.senders, light

    def symmetric(self, step):
        """With the other move."""
        (one,) = self.light.symmetric(step)
        first, *others = one.moves
        nodes = np.array(first.nodes)
        nodes[[5, 40]] = nodes[[40, 5]]
        return (replace(one, moves=(replace(first, nodes=nodes), *others)),)


def test_data_that_has_no_buffer_of_its_own(monkeypatch):
    """Of steps that are not listed nothing is buffered, whatever the rules allow."""
    _, plan = not_listed(monkeypatch, ramp((4, 4, 8)), "all_reduce", "skewed_exchange:block=4,steps=4")
    programme = plan.programme(assumptions="published", rounds="in_line")
    early = replace(programme, data=with_first_arrival(programme))
    for rules in (rules_of(programme), replace(rules_of(programme), receive_buffers="separate")):
        verdict = check_programme(plan.circuits, early, rules)
        assert "overwritten_before_sent" in {violation.law for violation in verdict.violations}
        assert verdict.receive_buffer_bytes == 0


class Apart(Ramp):
    """Receivers' gates of the last two circuits belong to others; light of transceiver 1 passes no transmitter; rows turned."""

    def usage(self, circuits):
        """Of transmitters in the reverse order, without one of them."""
        transmitter, *others = super().usage(circuits)
        row = np.flatnonzero(transmitter.index != 1)[::-1]
        yield Usage(transmitter.resource, transmitter.index[row], row)
        yield from others

    def settings(self, circuits):
        """In the reverse order."""
        row = np.arange(len(circuits))[::-1]
        for use in super().settings(circuits):
            index = use.index + ((use.kind == "rx_gate") & (np.arange(len(circuits)) >= len(circuits) - 2))
            yield SettingUse(use.kind, index[row], use.setting[row], row)


def test_devices_that_are_part_of_no_unit_of_their_circuit(monkeypatch):
    """Of each kind and step: the round of the first, its device, and how many."""
    _, plan = not_listed(monkeypatch, ramp((4, 4, 8)), "all_reduce", "skewed_exchange:block=4,steps=4")
    programme = plan.programme(assumptions="published", rounds="in_line")
    machine = Apart(groups=4, racks=4, wavelengths=8)
    made = Made(plan.circuits, plan.circuits.rounds.lowered_by.rule, machine)
    verdict = check_programme(replace(plan.circuits, fabric=machine, rounds=made), programme, rules_of(programme))
    due = []
    for step in range(4):
        rounds = plan.circuits.symmetric(step)[0].rounds
        circuits = concatenate_circuits(rounds)
        number = np.repeat(np.arange(len(rounds)), list(map(len, rounds)))
        tx, gate, rx = (use.index for use in plan.fabric.settings(circuits))
        alone = np.flatnonzero(tx == 1)
        for kind, rows, index in (("laser", alone, tx), ("tx_gate", alone, gate), ("rx_gate", [-2, -1], rx + 1)):
            if len(rows):
                due.append(("set_in_flight", step, number[rows[-1]], f"{kind} {index[rows[-1]]}", 0.0, len(rows)))
    found = [(v.law, v.step, v.round, v.where, v.missing_s, v.count) for v in verdict.violations]
    assert {one[3].split()[0] for one in due} == {"laser", "tx_gate", "rx_gate"}
    assert found == due[:8]


class Parted:
    """Circuits of a plan as those of its senders, and of none by other moves."""

    def __init__(self, light):
        self.represents, self.senders, self.light = light.represents, light.senders, light

    def symmetric(self, step):
        """Two sets."""
        (one,), none = self.light.symmetric(step), np.zeros(0, np.int64)
        return one, replace(one, senders=one.senders[:0], rounds=tuple(c.take(none) for c in one.rounds), moves=())


def test_sets_of_circuits_with_moves_of_their_own_are_not_judged(monkeypatch):
    """One line."""
    _, plan = not_listed(monkeypatch, ramp((3, 2, 6)), "all_to_all", "skewed_exchange:steps=1")
    programme = plan.programme(assumptions="published", rounds="in_line")
    parted = replace(plan.circuits, rounds=Made(plan.circuits, Parted(plan.circuits.rounds.lowered_by.rule)))
    with pytest.raises(
        UnsupportedError, match=r"^programme: circuits with different moves in a step that is not listed"
    ):
        check_programme(parted, programme, rules_of(programme))


@pytest.mark.parametrize("compute", ["fused", "chain", "none"])
def test_sums_end_after_the_last_arrival_and_all_work_of_a_rank(monkeypatch, compute):
    """Of steps that add; others end as their data arrives. The work is counted chunk by chunk, of the listed steps."""
    listed, plan = not_listed(monkeypatch, ramp((4, 4, 8)), "all_reduce", "skewed_exchange:block=4,steps=4")
    programme = plan.programme(assumptions="published", rounds="in_line")
    rules = replace(rules_of(programme), compute=compute, memory_bytes_per_s=1e9)
    schedule, data = listed.circuits.schedule, programme.data
    chunk_s = programme.size_bytes / schedule.collective.num_chunks / 1e9
    due = np.array(data.arrived_s)
    for step in range(4):
        t, mine = schedule.step(step), data.step == step
        counts = Counter()
        for row in np.flatnonzero((t.dst == 0) & ((t.op & Op.REDUCE) > 0)):
            first, apart = int(t.chunk_lo[row]), 1 if t.chunk_step is None else int(t.chunk_step[row])
            counts.update(range(first, first + int(t.chunk_n[row]) * apart, apart))
        moved = sum({"fused": n + 2, "chain": 3 * n, "none": 0}[compute] for n in counts.values())
        due[mine] = due[mine].max() + moved * chunk_s if moved else due[mine]
        assert (moved > 0) == (step < 2 and compute != "none")

    def late(by):
        found = check_programme(plan.circuits, replace(programme, data=replace(data, summed_s=due - by)), rules)
        sums = [one for one in found.violations if one.law == "summed_too_fast"]
        return [(one.step, one.missing_s, one.count) for one in sums]

    assert late(0.0) == []
    last = np.flatnonzero(data.transfer == 2)
    assert late(1e-6 * np.isin(np.arange(len(due)), last)) == [(step, pytest.approx(1e-6), 1) for step in range(4)]
    sizes = [int((data.step == step).sum()) for step in range(4)]
    assert late(2e-6) == [(step, pytest.approx(2e-6), n) for step, n in enumerate(sizes)]
