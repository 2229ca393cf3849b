"""List scheduling of circuits: in the order of the plan, each starts as early as the law of time lets it.

A circuit waits for the data that it carries (and the sums made of it), for its resources, and for its devices. Data that
arrives while its chunk still leaves in the same step is buffered until it has left; an arrival waits for sends of earlier
steps. Sums queue at the memory of their rank.

Source: Graham 1966 (list scheduling); the laws of `opticcl.verify.time.programme`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, IntArray, ProgressCallback, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.programme import ControlTimes, DeviceTable
from opticcl.ir.signals import signals_of
from opticcl.simulate._device_uses import Devices, DeviceUses
from opticcl.simulate.device import _kernels as kernels
from opticcl.simulate.device._units import Units
from opticcl.simulate.device.list_sums import sums_of_step
from opticcl.simulate.device.list_times import ListTimes, Waits
from opticcl.simulate.guards import EventLimit, refuse_large_programme
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import Reconfiguration, charged_control_s, transfer_times

__all__ = ["ClassOfSteps", "ListScheduler", "list_schedule"]

FloatArray = npt.NDArray[np.float64]

_READ: Any = kernels.read_chunks
_PLACE: Any = kernels.place_items
_WRITE: Any = kernels.write_chunks

MOST_CHUNKS = limit("list_schedule.MOST_CHUNKS")


class ClassOfSteps(NamedTuple):
    """What the steps of a class have in common.

    Args:
        rounds: circuits of each round, in the order of their items.
        item_at: for each round, its items as positions among the circuits of the step.
        circuits: transfer, latency, duration and round of each circuit of the step.
        units_at, units: that each circuit occupies.
        uses_at, uses: of devices, sorted by circuit.
        control_s: of each round [s].
        jobs: sums of the step.
    """

    rounds: tuple[Circuits, ...]
    item_at: tuple[IntArray, ...]
    circuits: dict[str, np.ndarray]
    units_at: IntArray
    units: IntArray
    uses_at: IntArray
    uses: DeviceUses
    control_s: tuple[float, ...]


def list_schedule(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    waits: Waits,
    limit: EventLimit,
    progress: ProgressCallback,
) -> ListTimes:
    """Schedule all circuits of a plan.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        waits: what a circuit waits for.
        limit: to the transfers, two events each.
        progress: called after every class of steps.
    Raises: UnsupportedError: too large; ParameterError: more events than allowed.
    """
    return ListScheduler(plan, size_bytes, assumed, waits).run(limit, progress)


class ListScheduler:
    """The state of all ranks, resources and devices while steps are scheduled.

    Attributes:
        ready, ready_by, left, copied: of every rank and chunk: since when it is complete and which transfer completed it,
            when its last send has left, when its last copy arrived [s].
        unit_s, unit_by: since when each resource is free, and the transfer that freed it.
        unit_from_s: as of `place_items`.
        setting, set_s, dark_s: of each device: its setting, since when it is complete, until when light passes it.
        memory_s: since when the memory of each rank is free.
        changes: of devices, in each round that has any: results of `place_items`.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        waits: what a circuit waits for.
        sizes: ranks, chunks, resources and devices whose state is followed; None: all of them [count].
    """

    def __init__(
        self,
        plan: CircuitPlan,
        size_bytes: int,
        assumed: Assumptions,
        waits: Waits,
        sizes: tuple[int, int, int, int] | None = None,
    ) -> None:
        self.plan, self.fabric, self.assumed, self.waits = plan, plan.fabric, assumed, waits
        collective = plan.schedule.collective
        self.chunk_bytes = size_bytes / collective.num_chunks
        self.charges, self.law = Reconfiguration(plan.fabric, assumed), path_latency(plan.fabric, assumed)
        self.devices, self.occupation = Devices(plan.fabric), Units(plan.fabric)
        if sizes is None:
            ranks, chunks = plan.schedule.num_ranks, collective.num_chunks
            if ranks * chunks > MOST_CHUNKS:
                raise UnsupportedError(
                    f"programme: {ranks:,} ranks x {chunks:,} chunks are more than {MOST_CHUNKS:,}; try mode=barrier or "
                    "engine=closed_form"
                )
            sizes = ranks, chunks, self.occupation.count, self.devices.num_members
        ranks, chunks, units, members = sizes
        self.ready, self.left, self.copied = np.full((3, ranks, chunks), -np.inf)
        self.ready_by = np.full((ranks, chunks), -1, np.int32)
        self.unit_s, self.unit_from_s, self.unit_by = np.zeros(units), np.zeros(units), np.full(units, -1)
        self.setting, self.marked = np.full(members, kernels.UNSET), np.zeros(members, np.int64)
        self.set_s, self.dark_s = np.zeros((2, members))
        member, setting = self.devices.set_at_start(assumed.configuration)
        self.setting[member] = setting
        self.memory_s = np.zeros(ranks)
        self.changes: list[tuple[IntArray, FloatArray]] = []
        self.control: list[tuple[float, ...]] = []
        self.circuits: list[dict[str, np.ndarray]] = []
        self.transfers: list[dict[str, np.ndarray]] = []
        self.num_circuits = self.num_flows = 0
        self.marks = 1  # 0 marks no member

    def run(self, limit: EventLimit, progress: ProgressCallback) -> ListTimes:
        """Schedule all steps."""
        schedule = self.plan.schedule
        classes = schedule.step_classes()
        num_rounds = np.zeros(len(classes), np.int64)
        for number, steps in enumerate(classes):
            first, rounds = schedule.step(steps.start), self.plan.rounds(steps.start)
            limit.require(limit.per_transfer * (self.num_flows + len(first) * len(steps)))
            refuse_large_programme(self.num_circuits + sum(map(len, rounds)) * len(steps), self.fabric.name)
            num_rounds[number] = len(rounds) * len(steps)
            common = self._class(first, rounds)
            for step in steps:
                self.place(step, first if step == steps.start else schedule.step(step), common)
            progress("schedule the circuits", steps.stop, schedule.num_steps)
        return self.times(num_rounds, self._device_table())

    def times(self, num_rounds: IntArray, devices: DeviceTable) -> ListTimes:
        """Times of the steps that have been scheduled.

        Args:
            num_rounds: of each class of steps, int64 (classes,).
            devices: changes of devices.
        """
        control = np.array(self.control, np.float64).reshape(-1, 4).T
        return ListTimes(
            _joined(self.circuits, _OF_CIRCUITS),
            _joined(self.transfers, _OF_TRANSFERS),
            devices,
            ControlTimes.of(step=control[0], round=control[1], begin_s=control[2], end_s=control[3]),
            num_rounds,
            self.waits,
        )

    def _device_table(self) -> DeviceTable:
        nothing = np.zeros((2, 0), np.int64), np.zeros((2, 0))
        (member, setting), (begin_s, done_s) = map(np.hstack, zip(nothing, *self.changes, strict=True))
        table = self.devices.table(member, setting, begin_s, done_s)
        if self.assumed.configuration is not None:
            table = DeviceTable.joined([self.assumed.configuration.table, table])
        return table

    # --- what the steps of a class have in common ---------------------------------------------------------------------

    def _class(self, transfers: Transfers, rounds: tuple[Circuits, ...]) -> ClassOfSteps:
        ordered, items, columns, uses, units = [], [], [], [], []
        base = 0
        for number, circuits in enumerate(rounds):
            item = self.items(transfers, circuits)
            order = np.argsort(item, kind="stable")
            circuits = circuits.take(order)
            new = np.ones(len(order), bool)
            new[1:] = np.diff(item[order]) != 0
            rows, _, seconds = transfer_times(self.fabric, transfers, circuits, self.chunk_bytes, self.assumed)
            of_transfer = np.zeros(len(transfers) + 1)
            of_transfer[rows] = seconds  # the last entry is that of idle circuits
            gaps = self.law.gaps_s(transfers, circuits)
            columns.append({
                "transfer": circuits.transfer.astype(np.int64), "latency": self.law.of_circuits(circuits), "gap": gaps,
                "duration": of_transfer[circuits.transfer] + gaps, "round": np.full(len(order), number), "row": order,
            })  # fmt: skip
            of_circuits = self.devices.uses(circuits)
            uses.append((of_circuits.circuit + base, *(getattr(of_circuits, name) for name in _OF_USES)))
            owner, unit = self.occupation.occupied(circuits)
            units.append((owner + base, unit))
            items.append(np.append(np.flatnonzero(new), len(order)) + base)
            ordered.append(circuits)
            base += len(order)
        of_uses = _columns(uses, 6)
        of_units = _columns(units, 2)
        control = tuple(charged_control_s(self.fabric, transfers, circuits, self.assumed) for circuits in rounds)
        return ClassOfSteps(
            tuple(ordered), tuple(items), _joined(columns, _OF_CLASS),
            _offsets(of_units[0], base), of_units[1].astype(np.int64), _offsets(of_uses[0], base),
            DeviceUses(of_uses[0], of_uses[1], of_uses[2], of_uses[3], of_uses[4].astype(float), of_uses[5].astype(float)),
            control,
        )  # fmt: skip

    def items(self, transfers: Transfers, circuits: Circuits) -> IntArray:
        """Circuits of one transfer, or of one split signal, have the same number, int64 (circuits,)."""
        n = len(circuits)
        if not any(resource.splits for resource in self.fabric.resources) or not n:
            return np.where(circuits.transfer >= 0, circuits.transfer, len(transfers) + np.arange(n))
        signal = signals_of(self.fabric, circuits, transfers).of_circuits()
        of_transfer = np.where(circuits.transfer >= 0, circuits.transfer, len(transfers) + np.arange(n))
        item = np.arange(n)
        while True:  # the smallest row that signals and transfers connect
            before = item
            for group in (signal, of_transfer):
                least = np.full(int(group.max()) + 1, n)
                np.minimum.at(least, group, item)
                item = least[group]
            if np.array_equal(item, before):
                return item

    # --- one step -----------------------------------------------------------------------------------------------------

    def place(self, step: int, transfers: Transfers, common: ClassOfSteps) -> None:
        """Schedule the circuits of a step.

        Args:
            step: its number.
            transfers: of the step.
            common: what its class has in common.
        """
        t = [
            column.astype(np.int64)
            for column in (transfers.src, transfers.dst, transfers.chunk_lo, transfers.chunk_n, _apart(transfers))
        ]
        op, m, n = transfers.op.astype(np.int64), len(transfers), len(common.circuits["row"])
        there_s, no_sooner_s, there_by = np.zeros(m), np.zeros(m), np.zeros(m, np.int64)
        _READ(
            *t, op, self.ready, self.ready_by, self.left, self.copied, there_s, there_by, no_sooner_s
        )  # fmt: skip
        charged, exchanged = np.zeros(n), np.full(n, self.assumed.control_charge == "every_step")
        on_change = False
        if not self.waits.devices and n:
            charged, on_change = np.full(n, float(self.fabric.reconfiguration_s)), self.charges.on_change
            if not self.fabric.devices:  # what stands is known of rounds alone
                changes = np.array([self.charges.changes(circuits) for circuits in common.rounds])
                changes = np.repeat(changes, [len(circuits) for circuits in common.rounds])
                charged, exchanged = charged * (changes | (not on_change)), exchanged | changes
                on_change = False
        of_circuits = common.circuits
        released, control_from, start = np.zeros((3, n))
        released_by = np.zeros(n, np.int64)
        taken = np.zeros(len(common.uses), np.int64)
        uses = common.uses
        for number, (item_at, control_s) in enumerate(zip(common.item_at, common.control_s, strict=True)):
            num_uses = common.uses_at[item_at[-1]] - common.uses_at[item_at[0]]
            changes, changes_s = np.empty((2, num_uses), np.int64), np.empty((2, num_uses))
            num_changes = _PLACE(
                item_at, of_circuits["transfer"], of_circuits["latency"], of_circuits["duration"], charged,
                on_change, exchanged, control_s,
                common.units_at, common.units, common.uses_at, uses.first_member, uses.pool, uses.setting, uses.offset_s,
                uses.setting_s, self.unit_s, self.unit_from_s, self.unit_by, self.setting, self.set_s, self.dark_s,
                there_s, there_by, no_sooner_s, self.num_flows, self.fabric.slot_s, self.assumed.initial == "warm",
                self.waits.at_arrival, self.waits.prepared, self.assumed.control_order == "beside_setting",
                self.assumed.receive_buffers == "shared", released, released_by, control_from, start,
                changes, changes_s, taken, self.marked, self.marks,
            )  # fmt: skip
            if num_changes:
                self.changes.append((changes[:, :num_changes].copy(), changes_s[:, :num_changes].copy()))
            self.marks += 1
            if control_s:
                begin_s = float(control_from[item_at[0] : item_at[-1]].min())
                if np.isfinite(begin_s):
                    self.control.append((step, number, begin_s, begin_s + control_s))
        self._arrive(step, transfers, t, op, common, start)
        control = np.where(np.isfinite(control_from), np.array(common.control_s)[of_circuits["round"]], 0.0)
        self.circuits.append({
            **of_circuits, "step": np.full(n, step), "start": start, "released": released, "released_by": released_by,
            "charged": charged, "control": control,
        })  # fmt: skip
        self.num_circuits += n
        self.num_flows += m

    def _arrive(
        self, step: int, transfers: Transfers, t: list[IntArray], op: IntArray, common: ClassOfSteps, start: FloatArray
    ) -> None:
        """Data of a step arrives and is summed.

        Args:
            step: its index.
            transfers: of the step.
            t: src, dst, chunk_lo, chunk_n and chunk_step of the transfers, int64.
            op: of the transfers, int64.
            common: circuits of its class.
            start: of each circuit [s].
        """
        m = len(transfers)
        carries = np.flatnonzero(common.circuits["transfer"] >= 0)
        carried = common.circuits["transfer"][carries]
        left = start[carries] + common.circuits["duration"][carries]
        end = left + common.circuits["latency"][carries]
        first, left_s, received, circuit = np.full(m, np.inf), np.zeros(m), np.zeros(m), np.full(m, -1)
        np.minimum.at(first, carried, start[carries])
        np.maximum.at(left_s, carried, left)
        np.maximum.at(received, carried, end)
        last = end == received[carried]
        circuit[carried[last]] = self.num_circuits + carries[last]
        arrived, summed = received.copy(), np.zeros(m)
        jobs = sums_of_step(transfers, self.assumed.compute)
        _WRITE(
            *t, op, left_s, arrived, self.num_flows, *jobs, self.chunk_bytes / self.assumed.memory_bytes_per_s,
            self.memory_s, self.ready, self.ready_by, self.left, self.copied, summed,
        )  # fmt: skip
        self.transfers.append({
            "step": np.full(m, step), "row": np.arange(m), "src": t[0], "dst": t[1],
            "bytes": transfers.size_chunks() * self.chunk_bytes, "start": first, "received": received,
            "arrived": arrived, "summed": summed, "circuit": circuit,
        })  # fmt: skip


_OF_USES = ("first_member", "pool", "setting", "offset_s", "setting_s")
_OF_CLASS = {"transfer": int, "latency": float, "gap": float, "duration": float, "round": int, "row": int}
_OF_CIRCUITS = {
    **_OF_CLASS, "step": int, "start": float, "released": float, "released_by": int, "charged": float, "control": float
}  # fmt: skip
_OF_TRANSFERS = {
    "step": int, "row": int, "src": int, "dst": int, "bytes": float, "start": float, "received": float,
    "arrived": float, "summed": float, "circuit": int,
}  # fmt: skip


def _joined(parts: Sequence[dict[str, np.ndarray]], kinds: dict[str, type]) -> dict[str, np.ndarray]:
    """Columns of several tables, one below the other."""
    return {
        name: np.concatenate([part[name] for part in parts]).astype(kind) if parts else np.zeros(0, kind)
        for name, kind in kinds.items()
    }


def _columns(parts: Sequence[tuple[np.ndarray, ...]], count: int) -> list[np.ndarray]:
    """Columns of several tables of `count` columns, one below the other."""
    if not parts:
        return [np.zeros(0, np.int64)] * count
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _offsets(owner: IntArray, count: int) -> IntArray:
    """Where the rows of each of `count` owners begin, and the end, int64 (count + 1,); rows are sorted by owner."""
    return np.searchsorted(owner, np.arange(count + 1)).astype(np.int64)


def _apart(transfers: Transfers) -> IntArray:
    """Distance between the chunks of each transfer."""
    return np.ones(len(transfers), np.int32) if transfers.chunk_step is None else transfers.chunk_step
