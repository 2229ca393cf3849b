"""Programmes with barriers beside a clock that goes through every round of every step, and their limits."""

from dataclasses import replace
from math import ceil, nan

import numpy as np
import pytest
from tests.altered import altered
from tests.images import Made, not_listed, ramp
from tests.simulate.plans import by_hand, drawn

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import Op
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.device_settings import DeviceSettings
from opticcl.simulate import barrier_programme, guards
from opticcl.simulate.barrier_programme import programme_with_barriers
from opticcl.simulate.latency import in_line_on, path_latency
from opticcl.simulate.parts import Reconfiguration, charged_control_s, summed_chunks, transfer_times


class Clock:
    """Times of all rounds of all steps, one after the other.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        at_the_end: whether data arrives when its round ends.
    """

    def __init__(self, plan, size_bytes, assumed, at_the_end):
        self.plan, self.where, self.assumed, self.at_the_end = plan, plan.fabric, assumed, at_the_end
        self.chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
        self.charges, self.law = Reconfiguration(self.where, assumed), path_latency(self.where, assumed)
        self.in_line = in_line_on(self.where, assumed)
        self.now = self.total = 0.0
        self.first = True
        self.setting = {}
        self.circuits, self.data, self.devices, self.control = [], [], [], []
        if assumed.configuration is not None:
            table = assumed.configuration.table
            rows = (getattr(table, name).tolist() for name in ("kind", "device", "begin_s", "done_s", "setting"))
            self.devices = list(zip(*rows, strict=True))
            self.setting = {row[:2]: row[4] for row in self.devices}
        for step in range(plan.schedule.num_steps):
            self.step(step, plan.schedule.step(step))

    def slot(self, time):
        """The next time at which light may begin."""
        slot_s = self.where.slot_s
        return ceil(time / slot_s * (1 - 1e-9)) * slot_s if slot_s else time

    def step(self, step, t):
        """Its rounds, then what arrives is in place and summed."""
        arrived, left, ends, longest = {}, {}, [self.now], [0.0]
        for number, circuits in enumerate(self.plan.rounds(step)):
            exchange_s = charged_control_s(self.where, t, circuits, self.assumed)
            setting_s, control_s = self.charges.of_round(circuits, exchange_s)
            beside = self.assumed.control_order == "beside_setting"
            if control_s > 0 or (beside and setting_s > 0 and exchange_s > 0):
                self.control.append((step, number, self.now, self.now + exchange_s))
            self.change(circuits, self.now if beside else self.now + control_s)
            start = self.slot(self.now + control_s + setting_s)
            rows, _, seconds = transfer_times(self.where, t, circuits, self.chunk_bytes, self.assumed)
            sends = dict(zip(rows.tolist(), seconds.tolist(), strict=True))
            late, gaps = self.law.of_circuits(circuits).tolist(), self.law.gaps_s(t, circuits).tolist()
            last = [start]
            for row, carried in enumerate(circuits.transfer.tolist()):
                gone = start + sends.get(carried, 0.0) + gaps[row]
                slots = (round(start / self.where.slot_s), round(sends.get(carried, 0.0) / self.where.slot_s)) \
                    if self.where.slot_s else (-1, -1)  # fmt: skip
                self.circuits.append((step, number, row, start, gone + late[row] if carried >= 0 else nan, *slots))
                if carried >= 0:
                    left[carried] = max(left.get(carried, 0.0), gone)
                    arrived[carried] = max(arrived.get(carried, 0.0), gone + late[row])
                    last.append(gone + late[row])
            carrying = circuits.take(np.flatnonzero(circuits.transfer >= 0))
            out_s = max(sends.values(), default=0.0) + self.law.gap_s(t, circuits)
            far_s = max(self.law.of_circuits(carrying).tolist(), default=0.0)
            over = start + out_s + far_s if self.at_the_end else max(last)
            self.now = start + out_s if self.in_line else over
            ends.append(over)
            longest.append(far_s)
            if self.at_the_end:
                arrived |= dict.fromkeys(carrying.transfer.tolist(), over)
        if self.in_line:
            self.now = max(*ends, self.now + (max(longest) if self.at_the_end else 0.0))
            if self.at_the_end:
                arrived = dict.fromkeys(range(len(t)), self.now)
        src, dst, op = t.src.tolist(), t.dst.tolist(), t.op.tolist()
        end = self.now + summed_chunks(t, self.assumed.compute) * self.chunk_bytes / self.assumed.memory_bytes_per_s
        for i in range(len(t)):
            placed = max([arrived.get(i, 0.0), *(left[k] for k in left if src[k] == dst[i])])
            self.data.append((step, i, placed, end if op[i] & Op.REDUCE else placed))
        self.total = max(self.total, end)
        self.now = self.slot(end)

    def change(self, circuits, begin):
        """Devices with another setting; of a pool one that stands, else the first that is not taken."""
        where, taken, changed = self.where, set(), {}
        stands = self.first and self.assumed.initial == "warm" and self.assumed.reconfiguration_charge == "on_change"
        self.first = False
        kinds = {device.kind: k for k, device in enumerate(where.devices)}
        uses = []
        for use in where.settings(circuits):
            kind, device = kinds[use.kind], where.devices[kinds[use.kind]]
            if not device.once_per_job:
                uses += [(kind, int(index) * device.pool, device.pool, int(value), device.setting_time_s)
                         for index, value in zip(use.index, use.setting, strict=True)]  # fmt: skip
        others = []
        for kind, first, pool, value, time_s in uses:
            members = [(kind, first + k) for k in range(pool)]
            stand = [one for one in members if self.setting.get(one) == value and one not in taken]
            if stand and pool > 1:
                taken.add(stand[0])
            if not stand:
                others.append((members, pool, value, time_s))
        for members, pool, value, time_s in others:
            one = next(one for one in members if one not in taken)
            changed[one] = (value, time_s)
            if pool > 1:
                taken.add(one)
        for (kind, member), (value, time_s) in changed.items():
            self.setting[kind, member] = value
            self.devices.append((kind, member, *((0.0, 0.0) if stands else (begin, begin + time_s)), value))


def listed(table, names, runs, times, slot_s):
    """Rows of a table with those of all repetitions, in order."""
    assert not len(table.step) or table.step.min() >= -1
    rows = []
    repeats = {first: (count, period) for first, count, period in runs}
    columns = [getattr(table, name).tolist() for name in names]
    for step, *row in zip(table.step.tolist(), *columns, strict=True):
        count, period = repeats[step] if step >= 0 else (1, 0.0)
        for k in range(int(count)):
            by = dict.fromkeys(times, k * period) | {"slot": k * round(period / slot_s) if slot_s else 0}
            moved = [value + by.get(name, 0) for name, value in zip(names, row, strict=True)]
            rows.append((step + k if step >= 0 else -1, *moved))
    return rows


def beside(plan, size_bytes, assumed, at_the_end):
    """Compare all tables."""
    reports = []
    more = {"at_the_end": True} if at_the_end else {}
    found = programme_with_barriers(
        plan, size_bytes, assumed, "test", progress=lambda *given: reports.append(given), **more
    )
    due = Clock(plan, size_bytes, assumed, at_the_end)
    runs = list(zip(*(getattr(found.runs, name).tolist() for name in ("first", "repeats", "period_s")), strict=True))
    steps = [step for first, count, _ in runs for step in range(first, first + count)]
    assert steps == list(range(plan.schedule.num_steps))
    assert reports == [("time the steps", one.stop, len(steps)) for one in plan.schedule.step_classes()]
    assert (found.engine, found.size_bytes, found.assumptions["mode"]) == ("test", size_bytes, "barrier")
    assert found.total_s == pytest.approx(due.total, rel=1e-9, abs=1e-18)
    assert all(period_s == 0 for _, count, period_s in runs if count == 1)
    slot_s = plan.fabric.slot_s
    for time_s in (*found.circuits.start_s.tolist(), *(period_s for _, _, period_s in runs)) if slot_s else ():
        assert time_s == round(time_s / slot_s) * slot_s
    times = ("start_s", "end_s", "arrived_s", "summed_s", "begin_s", "done_s")
    for table, names, rows in (
        (found.circuits, ("round", "row", "start_s", "end_s", "slot", "slots"), due.circuits),
        (found.data, ("transfer", "arrived_s", "summed_s"), due.data),
        (found.control, ("round", "begin_s", "end_s"), due.control),
        (found.devices, ("kind", "device", "begin_s", "done_s", "setting"), [(0, *row) for row in due.devices]),
    ):
        mine = listed(table, names, runs, times, slot_s)
        if table is found.devices:
            key = {(round(row[3], 12), *row[1:3]): row for row in mine}
            assert len(key) == len(mine)
            mine = sorted(((0, *row[1:]) for row in mine), key=lambda row: (round(row[3], 12), row))
            rows = sorted(rows, key=lambda row: (round(row[3], 12), row))
        flat = np.array(sorted(mine) if table is not found.devices else mine).ravel()
        assert flat == pytest.approx(np.array(rows).ravel(), rel=1e-9, abs=1e-15, nan_ok=True), names
    return found


SYSTEMS = (
    "terarack:nodes=4,wavelengths=2", "lightpath:shape=2x2,waveguides=2,lasers=4", "ramp:groups=2,racks=2,wavelengths=2",
    "oddl:shape=4,wavelengths=4", "ocs:nodes=5,planes=2,control=1us", "sipac:radix=4,levels=1,wavelengths=4",
)  # fmt: skip
ASSUMED = (
    {}, {"initial": "warm"}, {"rounds": "apart", "control_order": "beside_setting"}, {"compute": "chain"},
    {"reconfiguration_charge": "every_step"}, {"control_charge": "every_step", "rounds": "apart"}, {"control": "none"},
    {"initial": "warm", "reconfiguration_charge": "every_step"},
)  # fmt: skip


def repeated(where, seed):
    """A plan of three kinds of steps, which take place once to four times each."""
    rows, lengths = drawn(seed, where.num_nodes, 3), np.random.default_rng(seed).integers(1, 5, 3)
    ends = np.cumsum(lengths).tolist()
    kinds = np.repeat(np.arange(3), lengths).tolist()
    hand = by_hand(where, rows, 3, chunks=3).schedule
    classes = tuple(range(end - n, end) for end, n in zip(ends, lengths.tolist(), strict=True))
    return lower(where, replace(hand, num_steps=ends[-1], step=lambda i: hand.step(kinds[i]), classes=classes))


@pytest.mark.parametrize("seed", range(len(ASSUMED)))
@pytest.mark.parametrize("system", SYSTEMS)
def test_drawn_plans_are_timed_as_by_a_clock(system, seed):
    """Of all systems whose devices change and all assumptions that matter; steps that are equal are stored once."""
    where = fabric(system)
    plan, assumed = repeated(where, seed), assumptions(("common", "published")[seed % 2], **ASSUMED[seed])
    beside(plan, (30_000, 0)[seed == 6], assumed, at_the_end=(seed + SYSTEMS.index(system)) % 2 == 0)
    if seed == 3 and where.devices:
        start = DeviceSettings.of_circuits(where, plan.rounds(0)[0])
        beside(plan, 30_000, assumptions("common", initial=start), at_the_end=False)


@pytest.mark.parametrize("system", SYSTEMS[:2])
def test_rounds_that_follow_in_line(system, monkeypatch):
    """Where paths are of different lengths, the last bit of a round that is not the last may arrive last."""
    for module in (barrier_programme, __import__(__name__, fromlist=["in_line_on"])):
        monkeypatch.setattr(module, "in_line_on", lambda fabric, assumed: True)
    where = fabric(system)
    for seed in range(3):
        plan = repeated(where, seed)
        first, alone = (
            plan.schedule.step_classes()[0],
            [one.take([k]) for one in plan.rounds(0) for k in range(len(one))],
        )
        plan = replace(
            plan,
            rounds=lambda i, plan=plan, first=first, alone=alone: tuple(alone[::-1]) if i in first else plan.rounds(i),
        )
        for at_the_end in (False, True):
            beside(plan, 300, assumptions("common", **ASSUMED[seed]), at_the_end)


@pytest.mark.parametrize("system", [SYSTEMS[2], SYSTEMS[5]])
def test_steps_that_leave_devices_as_they_found_them_are_stored_once(system):
    """Two or three of them; not steps that take no time, with an empty round or none; as many circuits as fit."""
    where = fabric(system)
    hand = by_hand(where, [(0, 0, 1, 0, 1, 0), (2, 2, 3, 0, 1, 3)], 3, chunks=3).schedule
    kinds, classes = [0, 0, 1, 1, 1, 2, 2, 2], (range(2), range(2, 5), range(5, 8))
    plan = lower(where, replace(hand, num_steps=8, step=lambda i: hand.step(kinds[i]), classes=classes))
    nothing = plan.rounds(0)[0].take(np.zeros(0, int))
    for empty in ((), (nothing,)):
        some = replace(plan, rounds=lambda i, empty=empty: empty if kinds[i] == 1 else plan.rounds(i))
        found = beside(some, 1000, assumptions("common"), at_the_end=False)
        assert sum(found.runs.repeats.tolist()) == 8
        of_none = found.runs.repeats[(found.runs.first >= 2) & (found.runs.first < 5)]
        assert of_none.tolist() == [1, 1, 1]
        assert found.runs.repeats[found.runs.first < 2].tolist() in ([2], [1, 1])
        assert found.runs.repeats[-1] in (2, 3)


def test_as_many_circuits_as_a_programme_holds(monkeypatch):
    """Of steps that are stored, each once."""
    plan = repeated(fabric(SYSTEMS[0]), 0)
    found = beside(plan, 1000, assumptions("common"), at_the_end=False)
    monkeypatch.setattr(guards, "MOST_CIRCUITS", len(found.circuits.step))
    beside(plan, 1000, assumptions("common"), at_the_end=False)
    monkeypatch.setattr(guards, "MOST_CIRCUITS", len(found.circuits.step) - 1)
    with pytest.raises(UnsupportedError, match="circuits on terarack"):
        beside(plan, 1000, assumptions("common"), at_the_end=False)


def moves(t):
    """What the transfers of a step differ in."""
    return t.src, t.dst, t.chunk_lo


@pytest.mark.parametrize(("collective", "steps"), [("all_to_all", "steps=1"), ("all_reduce", "block=2,steps=4")])
@pytest.mark.parametrize("rounds", ["in_line", "apart"])
def test_steps_by_symmetries_are_timed_as_all_of_their_rows(collective, steps, rounds, monkeypatch):
    """Times of what is listed are those of the whole; only where data arrives at the end, and devices are set in slots."""
    whole, defined = not_listed(monkeypatch, ramp((3, 2, 6)), collective, f"skewed_exchange:{steps}")
    assumed = assumptions("published", rounds=rounds)
    due = Clock(whole.circuits, whole.size_bytes, assumed, True)

    def made(plan=defined.circuits, assumed=assumed, at_the_end=True):
        return programme_with_barriers(
            plan, whole.size_bytes, assumed, "test", progress=lambda *_: None, at_the_end=at_the_end
        )

    found = made()
    assert found.total_s == pytest.approx(due.total, rel=1e-9)
    starts = {(step, number): start for step, number, _, start, *_ in due.circuits}
    places = zip(found.circuits.step.tolist(), found.circuits.round.tolist(), strict=True)
    assert found.circuits.start_s == pytest.approx([starts[place] for place in places], rel=1e-9)
    ends, some = {}, listed_plan(defined.circuits).schedule
    for step, row, *times in due.data:
        ends[step, *(int(column[row]) for column in moves(whole.circuits.schedule.step(step)))] = times
    mine = [ends[i, *(int(column[row]) for column in moves(some.step(i)))]
            for i, row in zip(found.data.step.tolist(), found.data.transfer.tolist(), strict=True)]  # fmt: skip
    for name, column in zip(("arrived_s", "summed_s"), zip(*mine, strict=True), strict=True):
        assert getattr(found.data, name) == pytest.approx(column, rel=1e-9)
    assert not len(found.devices)
    in_time = [made(plan, at_the_end=False) for plan in (whole.circuits, defined.circuits)]
    for name in ("arrived_s", "summed_s"):
        one, other = (getattr(programme.data, name) for programme in in_time)
        assert one == pytest.approx(other, rel=1e-12)
    slower = altered(defined.fabric, reconfiguration_s=1e-6)
    rounds = Made(defined.circuits, defined.circuits.rounds.lowered_by.rule, slower)
    slow = replace(defined.circuits, fabric=slower, rounds=rounds)
    start = DeviceSettings.of_circuits(whole.fabric, whole.circuits.rounds(0)[0])
    for changed in ({"plan": slow}, {"assumed": assumptions("published", initial=start)}):
        with pytest.raises(UnsupportedError, match="need devices that slots set"):
            made(**changed)


def test_a_small_part_of_a_step_is_evaluated_alone(monkeypatch):
    """With the same times."""
    monkeypatch.setattr(barrier_programme, "SMALL_PART", 0)
    for system in SYSTEMS:
        beside(repeated(fabric(system), 1), 30_000, assumptions("common"), at_the_end=False)
