"""A fabric with devices, and a plain scheduler of its plans, for tests of the laws of time."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Fabric, FabricNumbers, Op, Resource, Schedule, Transfers, Usage
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns


@dataclass(frozen=True, kw_only=True, repr=False)
class Bench(Fabric):
    """Nodes with one tunable transmitter and one receiver each, joined by a passive coupler.

    Args:
        nodes: [count].
        rate: of a wavelength [bit/s].
        latency: of every path [s].
        setting_time: of a transmitter [s].
        lanes: switches between the nodes, each circuit takes any of them; 0: none [count].
        control: duration of a control exchange [s].
        slot: time slot, 0 for none [s].
        payload: of a slot [bytes].
        splits: whether the coupler hands one signal to several receivers.
    """

    nodes: int = 4
    rate: float = 8e9
    latency: float = 1e-6
    setting_time: float = 10e-6
    lanes: int = 0
    control: float = 0.0
    slot: float = 0.0
    payload: float = 0.0
    splits: bool = False

    @property
    def name(self):
        """Name for messages."""
        return "bench"

    @cached_property
    def numbers(self):
        """Latency is that of every path, reconfiguration that of a transmitter."""
        return FabricNumbers(
            num_nodes=self.nodes, rate_bits_per_s=self.rate, latency_s=self.latency, reconfiguration_s=self.setting_time,
            slot_s=self.slot, slot_payload_bytes=self.payload,
        )  # fmt: skip

    @cached_property
    def resources(self):
        """Transmitters and receivers."""
        return Resource("laser", self.nodes, splits=self.splits), Resource("photodiode", self.nodes)

    def usage(self, circuits):
        """The sender's transmitter and the receiver's receiver."""
        laser, photodiode = self.resources
        yield Usage(laser, circuits.src.astype(np.int64))
        yield Usage(photodiode, circuits.dst.astype(np.int64))

    def faults(self, circuits):
        """None."""
        return ()

    def control_s(self, src, dst):
        """The same for all rounds."""
        return self.control

    @cached_property
    def devices(self):
        """Transmitters and, if there are any, switches."""
        transmitters = Device("transmitter", self.nodes, self.setting_time)
        return (transmitters, Device("lane", 1, self.setting_time, pool=self.lanes)) if self.lanes else (transmitters,)

    def settings(self, circuits):
        """Each transmitter is tuned to its receiver; a lane joins the two nodes."""
        yield SettingUse("transmitter", circuits.src, circuits.dst if not self.splits else np.zeros_like(circuits.dst))
        if self.lanes:
            pair = circuits.src.astype(np.int64) * self.nodes + circuits.dst
            yield SettingUse("lane", np.zeros(len(circuits), np.int64), pair, offset_s=self.latency / 2)


def plan_on(bench, schedule):
    """One circuit a transfer; in a round a node sends once and receives once."""

    def rounds(i):
        t = schedule.step(i)
        left, made = list(range(len(t))), []
        while left:
            taken, senders, receivers = [], set(), set()
            for row in left:
                if (bench.splits or t.src[row] not in senders) and t.dst[row] not in receivers:
                    taken.append(row)
                    senders.add(t.src[row])
                    receivers.add(t.dst[row])
            left = [row for row in left if row not in taken]
            made.append(Circuits.of(np.array(taken), t.src[taken], t.dst[taken]))
        return tuple(made)

    return CircuitPlan(bench, schedule, rounds)


def plan_of(bench, rows, name="barrier", num_steps=None, chunks=8):
    """A plan of transfers (step, src, dst, chunk_lo, chunk_n, op)."""
    from opticcl.collective import collective

    num_steps = 1 + max(row[0] for row in rows) if num_steps is None else num_steps
    steps = []
    for i in range(num_steps):
        mine = [row[1:] for row in rows if row[0] == i]
        steps.append(Transfers.of(*np.array(mine).T) if mine else Transfers.of([], [], [], [], []))
    return plan_on(bench, Schedule("by hand", collective(name, bench.nodes, chunks), num_steps, steps.__getitem__))


def schedule_times(plan, size_bytes, rules, *, compact=False):
    """A lawful programme: the steps one after the other, everything as early as that allows.

    Args: compact: whether identical steps are stored once; each class then begins with two steps of their own.
    """
    return _Scheduler(plan, size_bytes, rules).programme(compact)


class _Scheduler:
    """State while the steps of a plan are timed."""

    def __init__(self, plan, size_bytes, rules):
        self.plan, self.fabric, self.rules, self.size_bytes = plan, plan.fabric, rules, size_bytes
        self.now = 0.0
        self.value = {}  # (kind, member) -> setting
        self.free = {}  # (kind, member) -> its last light has gone
        self.runs, self.circuits, self.data, self.devices, self.control = [], [], [], [], []

    def programme(self, compact):
        step, classes = 0, self.plan.schedule.step_classes()
        for steps in classes if compact else [range(i, i + 1) for i in range(self.plan.schedule.num_steps)]:
            for step in steps[:2]:
                self.runs.append((step, 1, 0.0))
                self.time(step, -1)
            rest = steps[2:]
            if len(rest):
                begin = self.now
                self.time(rest[0], rest[0])
                period = self.now - begin
                self.runs.append((rest[0], len(rest), period if len(rest) > 1 else 0.0))
                self.now = begin + period * len(rest)
                for key in self.free:
                    self.free[key] += period * (len(rest) - 1)
        tables = [
            (CircuitTimes, self.circuits), (DataTimes, self.data), (DeviceTable, self.devices),
            (ControlTimes, self.control), (StepRuns, self.runs),
        ]  # fmt: skip
        made = [
            kind.of(**dict(zip(kind.stored(), zip(*rows, strict=True), strict=True))) if rows else kind.empty()
            for kind, rows in tables
        ]
        circuits, data, devices, control, runs = made
        return Programme("test", self.size_bytes, self.now, runs, circuits, data, devices, control)

    def time(self, step, repeated):
        """Time one step; its changes belong to the run `repeated`, -1 for none."""
        fabric, transfers = self.fabric, self.plan.schedule.step(step)
        chunk_bytes = self.size_bytes / self.plan.schedule.collective.num_chunks
        ends = np.zeros(len(transfers))
        for number, circuits in enumerate(self.plan.rounds(step)):
            control_s = self.charged_s(transfers, circuits)
            if control_s:
                self.control.append((step, number, self.now, self.now + control_s))
                self.now += control_s
            members = self.set_devices(circuits, repeated)
            start = max([self.now, *(done for done, _ in members)])
            slot = -1
            if fabric.slot_s:
                slot = int(np.ceil(start / fabric.slot_s - 1e-9))
                start = slot * fabric.slot_s
            late, slots, took = self.durations(transfers, circuits, chunk_bytes)
            ends_here = start + late + took
            for row, end in enumerate(ends_here):
                self.circuits.append((step, number, row, start, end, slot, slots[row]))
            np.maximum.at(ends, circuits.transfer, ends_here)
            self.now = float(ends_here.max(initial=self.now))
            for _, key in members:
                self.free[key] = self.now
        work = self.memory_s(transfers, chunk_bytes)
        for t in range(len(transfers)):
            adds = transfers.op[t] == Op.REDUCE
            self.data.append((step, t, ends[t], self.now + work[transfers.dst[t]] if adds else ends[t]))
        self.now += max(work.values(), default=0.0) if (transfers.op == Op.REDUCE).any() else 0.0

    def set_devices(self, circuits, repeated):
        """Set what the circuits of a round need; [(done, members)]."""
        found = []
        for use in self.fabric.settings(circuits):
            (kind,) = (i for i, device in enumerate(self.fabric.devices) if device.kind == use.kind)
            device, taken = self.fabric.devices[kind], set()
            if device.once_per_job:
                continue
            for index, setting in zip(use.index.tolist(), use.setting.tolist(), strict=True):
                members = [(kind, index * device.pool + m) for m in range(device.pool)]
                members = [key for key in members if device.pool == 1 or key not in taken]
                key = min(members, key=lambda k: (self.value.get(k) != setting, k in self.value, k))
                taken.add(key)
                done = 0.0
                if self.value.get(key) != setting:
                    begin = max(self.now, self.free.get(key, 0.0))
                    if self.rules.prepare == "early" and self.rules.control == "none":
                        begin = self.free.get(key, 0.0)
                    done = begin + device.setting_time_s
                    self.devices.append((kind, key[1], repeated, begin, done, setting))
                    self.value[key] = setting
                found.append((done, key))
        return found

    def charged_s(self, transfers, circuits):
        """Duration of the control exchange of a round."""
        if self.rules.control == "none":
            return 0.0
        return self.fabric.control_s(transfers.src[circuits.transfer], transfers.dst[circuits.transfer])

    def durations(self, transfers, circuits, chunk_bytes):
        """Latency, slots and duration of each circuit."""
        fabric = self.fabric
        late = np.full(len(circuits), fabric.latency_s)
        of_hop = fabric.hop_latency_s(circuits.hops)
        if of_hop is not None and len(circuits.hops):
            late = late + np.bincount(circuits.hop_owner(), of_hop, minlength=len(circuits))
        wavelengths = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
        share = (transfers.size_chunks() * chunk_bytes / np.maximum(wavelengths, 1))[circuits.transfer]
        if fabric.slot_s:
            slots = np.ceil(share / fabric.slot_payload_bytes).astype(int)
            return late, slots, slots * fabric.slot_s
        return late, np.full(len(circuits), -1), share * 8 / fabric.rate_bits_per_s

    def memory_s(self, transfers, chunk_bytes):
        """Time of the sums at each rank of a step."""
        seconds = dict.fromkeys(range(self.plan.schedule.collective.num_ranks), 0.0)
        if self.rules.compute == "none":
            return seconds
        arrivals = {}
        t, apart = transfers, 1 if transfers.chunk_step is None else transfers.chunk_step
        for dst, lo, n, by, op in zip(*np.broadcast_arrays(t.dst, t.chunk_lo, t.chunk_n, apart, t.op), strict=True):
            for chunk in range(lo, lo + n * by, by) if op == Op.REDUCE else ():
                arrivals[dst, chunk] = arrivals.get((dst, chunk), 0) + 1
        for (dst, _), count in arrivals.items():
            moved = 3 * count if self.rules.compute == "chain" else count + 2
            seconds[int(dst)] += moved * chunk_bytes / self.rules.memory_bytes_per_s
        return seconds


def changed(table, **columns):
    """A table with other columns."""
    return replace(table, **columns)
