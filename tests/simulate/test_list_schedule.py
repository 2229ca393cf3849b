"""List scheduling beside a scheduler that looks everything up in lists of what has happened so far."""

from collections import Counter
from dataclasses import replace
from math import ceil, inf, nan
from types import SimpleNamespace

import numpy as np
import pytest
from tests.signals import signals
from tests.simulate.plans import by_hand, drawn

from opticcl.assumptions import assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import Op
from opticcl.ir.device_settings import DeviceSettings
from opticcl.plans.plan import compile
from opticcl.simulate import guards
from opticcl.simulate.device.list_schedule import list_schedule
from opticcl.simulate.device.list_times import asynchronous, by_device
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import charged_control_s, transfer_times


class Looked:
    """Times of a small plan by the law of list scheduling, from lists of sends, arrivals, uses and sums.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        waits: what a circuit waits for.
    """

    def __init__(self, plan, size_bytes, assumed, waits):
        self.plan, self.where, self.assumed, self.waits = plan, plan.fabric, assumed, waits
        self.chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
        self.law = path_latency(self.where, assumed)
        self.sent = []  # (rank, chunk, when it has left)
        self.held = {}  # (rank, chunk): arrivals that it consists of: [(complete since, transfer)]
        self.copied = {}  # (rank, chunk): arrival of its last copy
        self.occupied = []  # (unit, until, until when the circuit itself takes it, transfer)
        self.device = {}  # (kind, member): [setting or None, set since, dark since]
        start = assumed.configuration
        for kind, member, setting in (
            zip(*(getattr(start.table, name).tolist() for name in ("kind", "device", "setting")), strict=True)
            if start
            else ()
        ):
            self.device[kind, member] = [setting, 0.0, 0.0]
        self.changes, self.control, self.circuits, self.transfers = [], [], [], []
        self.memory_s = Counter()
        for step in range(plan.schedule.num_steps):
            self.step(step, plan.schedule.step(step))

    def step(self, step, t):
        """All rounds of a step, then what arrives."""
        rows = range(len(t))
        apart = np.ones(len(t), int) if t.chunk_step is None else t.chunk_step
        chunks = [[int(t.chunk_lo[i] + k * apart[i]) for k in range(t.chunk_n[i])] for i in rows]
        src, dst, op = t.src.tolist(), t.dst.tolist(), t.op.tolist()
        there, not_before = [], []
        for i in rows:
            have = [one for c in chunks[i] for one in self.held.get((src[i], c), [])]
            there.append(max(have, key=lambda one: one[0], default=(0.0, -1)))
            old = self.held if op[i] == Op.COPY else {key: [(at, 0)] for key, at in self.copied.items()}
            waits = [at for rank, c, at in self.sent if rank == dst[i] and c in chunks[i]]
            not_before.append(
                max([*waits, *(at for c in chunks[i] for at, _ in old.get((dst[i], c), []))], default=-inf)
            )
        for i in rows:
            for c in chunks[i] if op[i] & 2 else ():
                self.held.pop((src[i], c), None)
                self.copied.pop((src[i], c), None)
        mine = []
        for number, circuits in enumerate(self.plan.rounds(step)):
            mine += self.round(step, number, t, circuits, there, not_before)
        self.arrive(step, t, chunks, mine)

    def item_of(self, t, circuits):
        """Circuits of a transfer start together, and those of one signal that may be split."""
        transfer = circuits.transfer.tolist()
        splits = any(resource.splits for resource in self.where.resources)
        carried = signals(circuits, t) if splits else None
        item = [[i] for i in range(len(circuits))]

        def together(i, j):
            if transfer[i] == transfer[j] >= 0:
                return True
            return splits and carried[i] == carried[j]

        for i in range(len(circuits)):
            for j in range(i):
                if together(i, j) and item[i] is not item[j]:
                    item[j] += item[i]
                    for k in item[i]:
                        item[k] = item[j]
        found = list({id(one): sorted(one) for one in item}.values())
        if splits:
            return sorted(found)
        return sorted(found, key=lambda one: (transfer[one[0]] < 0, transfer[one[0]], one))

    def round(self, step, number, t, circuits, there, not_before):
        """Items of a round, one after the other."""
        where, assumed, slot_s = self.where, self.assumed, self.where.slot_s
        n, shared, first_flow = len(circuits), assumed.receive_buffers == "shared", len(self.transfers)
        transfer = circuits.transfer.tolist()
        rows, _, seconds = transfer_times(where, t, circuits, self.chunk_bytes, assumed)
        gap, latency = self.law.gaps_s(t, circuits), self.law.of_circuits(circuits)
        data_s = dict(zip(rows.tolist(), seconds.tolist(), strict=True))
        duration = [data_s.get(transfer[i], 0.0) + gap[i] for i in range(n)]
        exchange_s = charged_control_s(where, t, circuits, assumed)
        charged, exchanged = np.zeros(n), np.full(n, assumed.control_charge == "every_step")
        on_change = not self.waits.devices and assumed.reconfiguration_charge == "on_change"
        if not self.waits.devices:
            charged = np.full(n, where.reconfiguration_s)
        kinds = {device.kind: k for k, device in enumerate(where.devices)}
        uses, units = [[] for _ in range(n)], [[] for _ in range(n)]
        for use in where.settings(circuits):
            kind, device = kinds[use.kind], where.devices[kinds[use.kind]]
            owner = range(len(use.index)) if use.circuit is None else use.circuit.tolist()
            offset = np.broadcast_to(use.offset_s, len(use.index))
            for i, index, setting, late in zip(owner, use.index, use.setting, offset, strict=True):
                members = [(kind, int(index) * device.pool + k) for k in range(device.pool)]
                if not device.once_per_job:
                    uses[i].append((members, int(setting), float(late), device.setting_time_s))
        lo, width, stride = (
            circuits.wavelength_lo.tolist(),
            circuits.wavelength_n.tolist(),
            int(circuits.wavelength_step),
        )
        for usage in where.usage(circuits):
            owner = range(n) if usage.circuit is None else usage.circuit.tolist()
            resource = usage.resource
            for i, index in zip(owner, usage.index.tolist(), strict=True):
                if not (resource.shared or resource.once_per_job):
                    lit = [lo[i] + k * stride for k in range(width[i])] if resource.per_wavelength else [None]
                    units[i] += [(id(resource), index, w) for w in lit]
        taken, until, exchanges, found = set(), [], [], []
        for item in self.item_of(t, circuits):
            due = max([there[transfer[i]] for i in item if transfer[i] >= 0], key=lambda one: one[0], default=(0.0, -1))
            busy = [one for i in item for unit in units[i] for one in self.occupied if one[0] == unit]
            free = max(busy, key=lambda one: one[1], default=(None, 0.0, 0.0, -1))
            release = max(due[0], free[1])
            counted = due if due[0] >= free[2] else free[2:]
            chosen = []
            for i in item:
                for members, setting, offset_s, time_s in uses[i]:
                    options = []
                    for k, member in enumerate(members):
                        is_set, since_s, dark_s = self.member(member)
                        stands = is_set == setting or (assumed.initial == "warm" and is_set is None)
                        ready_s = max(since_s, dark_s if len(members) > 1 else 0.0)
                        if not stands:
                            ready_s = max(dark_s, 0.0 if self.waits.prepared else release) + time_s
                        if member not in taken:
                            first = not stands if on_change else False
                            options.append((first, max(ready_s, release + offset_s), not stands, k))
                    _, _, changed, k = min(options)
                    chosen.append((i, members[k], setting, offset_s, time_s, changed, len(members) > 1))
                    if len(members) > 1:
                        taken.add(members[k])
            if on_change and not any(one[5] for one in chosen):
                charged[item] = 0.0
            asks = exchange_s > 0 and (any(exchanged[i] for i in item) or any(one[5] for one in chosen))
            begin = due[0] if self.waits.prepared else release
            agreed = begin + exchange_s * asks
            from_s = begin if assumed.control_order == "beside_setting" else agreed
            start = max(release, agreed, from_s + max(charged[i] for i in item))
            from_s = 0.0 if self.waits.prepared and not asks else from_s
            for _, member, _, offset_s, time_s, changed, pooled in chosen:
                _, since_s, dark_s = self.member(member)
                ready_s = max(dark_s, from_s) + time_s if changed else max(since_s, dark_s if pooled else 0.0)
                start = max(start, ready_s - offset_s)
            for i in item:
                if shared and transfer[i] >= 0:
                    start = max(start, not_before[transfer[i]] - latency[i] - duration[i])
            if slot_s:
                start = ceil(start / slot_s * (1 - 1e-9)) * slot_s
            for i, member, setting, offset_s, time_s, _, pooled in chosen:
                is_set, since_s, dark_s = self.member(member)
                light_s = start + offset_s
                if is_set != setting:
                    late = light_s - time_s if pooled or not self.waits.prepared else 0.0
                    begin_s, end_s = max(dark_s, from_s, late), max(dark_s, from_s, late) + time_s
                    if assumed.initial == "warm" and is_set is None and time_s:
                        begin_s = end_s = 0.0
                    self.changes.append((*member, begin_s, end_s, setting))
                    since_s = end_s
                self.device[member] = [setting, since_s, max(dark_s, light_s + max(duration[i], slot_s))]
            for i in item:
                idle = transfer[i] < 0
                longer = latency[i] if self.waits.at_arrival and not idle else 0.0
                end = start + max(duration[i] + longer, slot_s)
                until += [(unit, end, *(counted if idle else (end, first_flow + transfer[i]))) for unit in units[i]]
                exchanges += [begin] * asks
                found.append({
                    "transfer": transfer[i], "latency": latency[i], "gap": gap[i], "duration": duration[i], "round": number,
                    "row": i, "step": step, "start": start, "released": counted[0], "released_by": counted[1],
                    "charged": charged[i], "control": exchange_s * asks,
                })  # fmt: skip
        for unit in {one[0] for one in until}:
            self.occupied.append(max((one for one in until if one[0] == unit), key=lambda one: one[1]))
        if exchanges:
            self.control.append((step, number, min(exchanges), min(exchanges) + exchange_s))
        return found

    def member(self, member):
        """Setting, since when it is set, until when light passes."""
        return self.device.get(member, [None, 0.0, 0.0])

    def sums(self, t, chunks):
        """Sums of a step: (transfers, rank, chunks that the memory moves)."""
        adds = [i for i in range(len(t)) if t.op[i] & Op.REDUCE]
        runs = [  # consecutive chunks of each
            (i, chunks[i][at : at + 1]) if t.chunk_step is not None and t.chunk_step[i] > 1 else (i, chunks[i])
            for i in adds for at in range(len(chunks[i]) if t.chunk_step is not None and t.chunk_step[i] > 1 else 1)
        ]  # fmt: skip
        if self.assumed.compute == "chain":
            return [([i], int(t.dst[i]), 3 * len(run)) for i, run in runs]
        if self.assumed.compute == "none":
            return []
        partly = any(
            t.dst[i] == t.dst[j] and set(one) & set(other) and one != other for i, one in runs for j, other in runs
        )
        of_range = {}
        for i, run in runs:
            for one in [[c] for c in run] if partly else [run]:
                of_range.setdefault((int(t.dst[i]), tuple(one)), []).append(i)
        return [(rows, key[0], (len(rows) + 2) * len(key[1])) for key, rows in sorted(of_range.items())]

    def arrive(self, step, t, chunks, circuits):
        """Data is in place once what it replaces has left; sums queue at the memory of their rank."""
        first_flow, first_circuit, n = len(self.transfers), len(self.circuits), len(t)
        src, dst, op = t.src.tolist(), t.dst.tolist(), t.op.tolist()
        self.circuits += circuits
        start, left, received, last = [inf] * n, [0.0] * n, [0.0] * n, [-1] * n
        for number, one in enumerate(circuits):
            i, has_left = one["transfer"], one["start"] + one["duration"]
            if i >= 0:
                start[i], left[i] = min(start[i], one["start"]), max(left[i], has_left)
                if has_left + one["latency"] >= received[i]:
                    received[i], last[i] = has_left + one["latency"], first_circuit + number
        self.sent += [(src[i], c, left[i]) for i in range(n) for c in chunks[i]]
        arrived = [
            max([received[i], *(at for rank, c, at in self.sent if rank == dst[i] and c in chunks[i])])
            for i in range(n)
        ]
        summed = list(arrived)
        jobs = [(max(arrived[i] for i in rows), rows, rank, moved) for rows, rank, moved in self.sums(t, chunks)]
        for release, rows, rank, moved in sorted(jobs, key=lambda job: job[0]):
            moved_s = moved * self.chunk_bytes / self.assumed.memory_bytes_per_s
            self.memory_s[rank] = max(release, self.memory_s[rank]) + moved_s
            for i in rows:
                summed[i] = max(summed[i], self.memory_s[rank])
        for i in range(n):
            for c in chunks[i]:
                key, now = (dst[i], c), (summed[i], first_flow + i)
                if op[i] == Op.COPY:
                    self.held[key], self.copied[key] = [(arrived[i], first_flow + i)], arrived[i]
                elif summed[i] >= max([at for at, _ in self.held.get(key, [])], default=-inf):
                    self.held[key] = [now]
        self.transfers += [
            {"step": step, "row": i, "src": src[i], "dst": dst[i], "bytes": len(chunks[i]) * self.chunk_bytes,
             "start": start[i], "received": received[i], "arrived": arrived[i], "summed": summed[i], "circuit": last[i]}
            for i in range(n)
        ]  # fmt: skip


def beside(plan, size_bytes, assumed, waits):
    """Compare all columns, the programme, and the division of the critical path."""
    found = list_schedule(plan, size_bytes, assumed, waits, EventLimit("test", 10**6, 2), lambda *_: None)
    due = Looked(plan, size_bytes, assumed, waits)
    for table, rows in ((found.circuits, due.circuits), (found.transfers, due.transfers)):
        for name, column in table.items():
            assert column.tolist() == pytest.approx([row[name] for row in rows], rel=1e-12, abs=1e-18), name
    total_s = max((row["summed"] for row in due.transfers), default=0.0)
    assert found.total_s == pytest.approx(total_s, rel=1e-12)
    made = found.programme(plan, size_bytes, "test", assumed)
    assert (made.engine, made.size_bytes, made.total_s) == ("test", size_bytes, found.total_s)
    devices, control, data, circuits = made.devices, made.control, made.data, made.circuits
    given = assumed.configuration.table if assumed.configuration is not None else ()
    changes = zip(
        *(getattr(devices, n).tolist() for n in ("kind", "device", "begin_s", "done_s", "setting")), strict=True
    )
    assert np.array(list(changes)[len(given) :]).ravel() == pytest.approx(np.array(due.changes).ravel(), rel=1e-12)
    assert devices.setting[: len(given)].tolist() == (given.setting.tolist() if len(given) else [])
    assert (devices.step == -1).all()
    exchanges = np.array([control.step, control.round, control.begin_s, control.end_s]).T
    assert exchanges.ravel() == pytest.approx(np.array(due.control).ravel(), rel=1e-12)
    assert data.transfer.tolist() == [row["row"] for row in due.transfers]
    ends = [row["start"] + row["latency"] + row["duration"] if row["transfer"] >= 0 else nan for row in due.circuits]
    assert circuits.end_s.tolist() == pytest.approx(ends, rel=1e-12, nan_ok=True)
    slot_s = plan.fabric.slot_s
    for name, slots in (
        ("slot", [round(row["start"] / slot_s) if slot_s else -1 for row in due.circuits]),
        ("slots", [round((row["duration"] - row["gap"]) / slot_s) if slot_s else -1 for row in due.circuits]),
    ):
        assert getattr(circuits, name).tolist() == slots
    divided(plan, found.timeline(plan, size_bytes, assumed), found.num_rounds, due, total_s)


def divided(plan, timeline, num_rounds, due, total_s):
    """From the last sum back: settings and control before light, data, its way, sums; messages and slots are latency."""
    classes = plan.schedule.step_classes()
    rounds = [len(plan.rounds(steps.start)) * len(steps) for steps in classes]
    assert (num_rounds.tolist(), timeline.num_rounds) == (rounds, sum(rounds))
    parts = np.zeros((5, len(classes)))
    last = max(range(len(due.transfers)), key=lambda i: due.transfers[i]["summed"], default=-1)
    end = total_s
    while last >= 0:
        one = due.circuits[due.transfers[last]["circuit"]]
        wait, rest = one["start"] - one["released"], end - one["start"]
        control = min(wait, one["control"])
        setting = min(wait - control, one["charged"] if plan.fabric.slot_s else inf)
        data = min(rest, one["duration"])
        messages, way = min(data, one["gap"]), min(rest - data, one["latency"])
        latency = way + messages + wait - control - setting
        row = next(k for k, steps in enumerate(classes) if one["step"] in steps)
        parts[:, row] += setting, latency, data - messages, rest - data - way, control
        last, end = one["released_by"], one["released"]
    names = ("reconfiguration_s", "latency_s", "transfer_s", "compute_s", "control_s")
    for name, column in zip(names, parts, strict=True):
        assert getattr(timeline, name) == pytest.approx(column, rel=1e-9, abs=1e-9 * total_s), name


SYSTEMS = (
    "terarack:nodes=5,wavelengths=2", "lightpath:shape=2x2,waveguides=2,lasers=4",
    "lightpath:shape=3x2,waveguides=1,lasers=4",
    "ramp:groups=2,racks=2,wavelengths=2", "oddl:shape=4,wavelengths=4",
    "ocs:nodes=5,planes=2,control=1us", "sipac:radix=4,levels=1,wavelengths=4",
    "sip_ring:nodes=4,wavelengths=2", "ideal:nodes=4",
)  # fmt: skip
ASSUMED = (
    {}, {"initial": "warm"}, {"receive_buffers": "separate", "compute": "none"}, {"control_order": "beside_setting"},
    {"compute": "chain", "message_gap": 0}, {"prepare": "none", "rounds": "apart"}, {"control_charge": "every_step"},
    {"reconfiguration_charge": "every_step", "rounds": "apart"}, {"control": "none", "memory_bytes_per_s": 1e9},
)  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_drawn_plans_are_scheduled_as_by_looking_up(system):
    """Under all assumptions that change what is waited for; by devices and asynchronously; some devices set at the start."""
    where = fabric(system)
    for seed, changed in enumerate(ASSUMED):
        plan = by_hand(where, drawn(seed, where.num_nodes), 4, chunks=3)
        assumed = assumptions("common", **changed)
        beside(plan, 30_000, assumed, by_device(assumed))
        if seed % 2 or not seed:
            beside(plan, 0 if seed % 3 else 10**6, assumed, asynchronous(where, assumed))
        if where.devices and seed == 3:
            assumed = assumptions("common", initial=DeviceSettings.of_circuits(where, plan.rounds(1)[0]))
            beside(plan, 30_000, assumed, by_device(assumed))


def test_a_plan_without_transfers_takes_no_time():
    """Nothing is on its critical path; more chunks than are followed are refused."""
    where, assumed = fabric("terarack:nodes=4"), assumptions("common")
    beside(by_hand(where, [], 2, chunks=3), 1000, assumed, by_device(assumed))
    limit = EventLimit("test", 10**6, 2)
    with pytest.raises(UnsupportedError, match="4 ranks x 4,194,305 chunks are more than 16,777,216; try mode=barrier"):
        list_schedule(by_hand(where, [], 1, 2**22 + 1), 1, assumed, by_device(assumed), limit, lambda *_: None)
    plan = by_hand(where, [(0, 0, 1, 0, 1, 0), (1, 1, 2, 0, 1, 0)], 2)
    with pytest.raises(ParameterError, match="about 4 events or more, and 3 are allowed"):
        list_schedule(plan, 1, assumed, by_device(assumed), EventLimit("test", 3, 2), lambda *_: None)
    found = list_schedule(plan, 1, assumed, by_device(assumed), EventLimit("test", 4, 2), lambda *_: None)
    assert found.chain().tolist() == [0, 1]


LIGHT_COLUMNS, MOVED_COLUMNS = (
    ("src", "port", "wavelength_lo", "wavelength_n"),
    ("chunk_lo", "chunk_n", "chunk_step", "op"),
)


@pytest.mark.parametrize("rounds", [0, 1])
def test_steps_without_circuits_take_no_time(rounds):
    """Between two that have some, with no round or one that is empty; control is exchanged for the others."""
    where = fabric("ocs:nodes=3,planes=1,control=1us")
    plan = by_hand(where, [(0, 0, 1, 0, 1, 0), (2, 1, 2, 0, 1, 0)], 3)
    nothing = (plan.rounds(0)[0].take(np.zeros(0, int)),) * rounds
    plan = replace(plan, rounds=lambda i, before=plan.rounds: nothing if i == 1 else before(i))
    assumed = assumptions("published")
    for waits in (by_device(assumed), asynchronous(where, assumed)):
        beside(plan, 1000, assumed, waits)
        found = list_schedule(plan, 1000, assumed, waits, EventLimit("test", 100, 2), lambda *_: None)
        assert found.control.step.tolist() == [0, 2]


def test_repeated_steps_and_idle_circuits(monkeypatch):
    """Every step of a class is placed; idle circuits carry nothing; progress and traffic are told; as many circuits as fit."""
    for algorithm, collective in (("ring", "all_gather"), ("two_sided_ring", "reduce_scatter")):
        plan = compile("terarack:nodes=5", collective, "1 MB", algorithm=algorithm).circuits
        for assumed in (assumptions("common"), assumptions("published")):
            beside(plan, 10**6, assumed, by_device(assumed))
            beside(plan, 10**6, assumed, asynchronous(plan.fabric, assumed))
    told, limit = [], EventLimit("test", 10**6, 2)
    plan, assumed = compile("terarack:nodes=4", "all_gather", "1 MB", algorithm="ring").circuits, assumptions("common")
    found = list_schedule(plan, 10**6, assumed, by_device(assumed), limit, lambda *given: told.append(given[1:]))
    classes = plan.schedule.step_classes()
    assert told == [(steps.stop, 3) for steps in classes]
    given = []
    found.record(SimpleNamespace(add_transfers=lambda *one: given.append(one)), classes)
    ((columns, steps, chain),) = given
    assert [c.tolist() for c in columns] == [
        found.transfers[name].tolist() for name in ("step", "src", "dst", "bytes", "start", "received")
    ]
    assert (steps, chain.tolist()) == (classes, found.chain().tolist())
    list_schedule(plan, 10**6, assumed, by_device(assumed), EventLimit("test", 24, 2), lambda *_: None)
    with pytest.raises(ParameterError, match="about 24 events or more, and 23 are"):  # two of each of 12 transfers
        list_schedule(plan, 10**6, assumed, by_device(assumed), EventLimit("test", 23, 2), lambda *_: None)
    monkeypatch.setattr(guards, "MOST_CIRCUITS", len(found.circuits["step"]))
    list_schedule(plan, 10**6, assumed, by_device(assumed), limit, lambda *_: None)
    monkeypatch.setattr(guards, "MOST_CIRCUITS", len(found.circuits["step"]) - 1)
    with pytest.raises(UnsupportedError, match="circuits on terarack"):
        list_schedule(plan, 10**6, assumed, by_device(assumed), limit, lambda *_: None)
