"""The programme of a plan whose steps follow each other, and the rounds of each step: a running clock.

    round   control exchange, if charged; then change of devices, if circuits change; then light
    step    its rounds, then the sums of what arrived

Settings are charged where they occur. With slots, light begins with a slot. Of identical steps that follow each other the
first are stored one by one, until one leaves all devices as it found them; the rest are repetitions of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Op, ProgressCallback, Transfers
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.programme import CircuitTimes, ControlTimes, DataTimes, DeviceTable, Programme, StepRuns
from opticcl.simulate._device_uses import Devices, DeviceUses
from opticcl.simulate.guards import refuse_large_programme
from opticcl.simulate.latency import in_line_on, path_latency
from opticcl.simulate.parts import (
    Reconfiguration,
    charged_control_s,
    slot_wait_s,
    summed_chunks,
    transfer_times,
)

__all__ = ["programme_with_barriers"]

FloatArray = npt.NDArray[np.float64]

SMALL_PART = 64
"""Transfers of a step for each circuit of a round from which the round is evaluated without the others."""

_NOTHING = np.zeros(0, np.int64)
NO_USES = DeviceUses(_NOTHING, _NOTHING, _NOTHING, _NOTHING, np.zeros(0), np.zeros(0))

UNSET = np.iinfo(np.int64).min
"""Setting of a device that was never set."""


class _Round(NamedTuple):
    """A round of a class of steps.

    Args:
        circuits: of the round.
        latency_s, duration_s: of each circuit, the duration with the time of its sender's messages, float64 (circuits,) [s].
        slots: of each circuit, int64 (circuits,).
        left_s, lasts_s: from the start of its light until the last bit has left, and has arrived [s].
        longest_s: latency of the longest path [s].
        control_s: of its control exchange [s].
        uses: of devices.
    """

    circuits: Circuits
    latency_s: FloatArray
    duration_s: FloatArray
    slots: IntArray
    left_s: float
    lasts_s: float
    longest_s: float
    control_s: float
    uses: DeviceUses


@dataclass
class _Tables:
    """Rows of the tables of a programme, as lists of columns."""

    circuits: list[tuple[IntArray | FloatArray, ...]] = field(default_factory=list)
    data: list[tuple[IntArray | FloatArray, ...]] = field(default_factory=list)
    devices: list[DeviceTable] = field(default_factory=list)
    control: list[tuple[float, ...]] = field(default_factory=list)
    runs: list[tuple[float, ...]] = field(default_factory=list)


def programme_with_barriers(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    engine: str,
    *,
    progress: ProgressCallback,
    at_the_end: bool = False,
) -> Programme:
    """Times of a plan with a barrier after every round.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        engine: name of the engine that charges these times.
        progress: called after every class of steps.
        at_the_end: whether all data of a round arrives when it ends, as the closed form has it: after the longest latency
            and the longest transfer.
    Raises: UnsupportedError: more circuits or devices than a programme holds.

    Of steps that are not listed, the circuits of some senders and their data have rows; the others have the same times. Their
    devices change within the guards of slots, without rows.
    """
    return _Writer(plan, size_bytes, assumed, at_the_end).programme(engine, progress)


class _Writer:
    """The running clock and the settings of all devices."""

    def __init__(self, plan: CircuitPlan, size_bytes: int, assumed: Assumptions, at_the_end: bool) -> None:
        self.fabric, self.size_bytes, self.assumed = plan.fabric, size_bytes, assumed
        self.at_the_end, self.schedule = at_the_end, plan.schedule
        defined = at_the_end and plan.has_images
        if defined and (plan.fabric.reconfiguration_s or assumed.configuration is not None):
            raise UnsupportedError(
                f"programme: {plan.fabric.name}: steps that are not listed need devices that slots set"
            )
        self.images = plan.images if defined else (lambda step: None)
        self.plan = listed_plan(plan) if defined else plan
        self.in_line = in_line_on(plan.fabric, assumed)
        self.law = path_latency(plan.fabric, assumed)
        self.chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
        self.charges = Reconfiguration(plan.fabric, assumed)
        self.devices = None if defined else Devices(plan.fabric)
        self.setting = _NOTHING
        if self.devices is not None:
            self.setting = np.full(self.devices.num_members, UNSET)
            member, setting = self.devices.set_at_start(assumed.configuration)
            self.setting[member] = setting
        self.now_s, self.last_s = 0.0, 0.0
        self.stored = 0
        self.before_first_round = True
        self.tables = _Tables()
        if assumed.configuration is not None:
            self.tables.devices.append(assumed.configuration.table)

    def programme(self, engine: str, progress: ProgressCallback) -> Programme:
        """Walk through all steps."""
        schedule, slot_s = self.plan.schedule, self.fabric.slot_s
        for steps in schedule.step_classes():
            transfers = schedule.step(steps.start)
            rounds = [self._round(transfers, circuits) for circuits in self.plan.rounds(steps.start)]
            defined = self.images(steps.start) if self.devices is None else None
            received = transfers if defined is None else defined.received_by_first()
            sum_s = summed_chunks(received, self.assumed.compute) * self.chunk_bytes / self.assumed.memory_bytes_per_s
            step = steps.start
            while step < steps.stop:
                begin_s, num_changes = self.now_s, len(self.tables.devices)
                self.stored += sum(len(one.circuits) for one in rounds)
                refuse_large_programme(self.stored, self.fabric.name)
                charged = [self.charges.of_round(one.circuits, one.control_s) for one in rounds]
                steady = self._step(step, transfers, rounds, charged, sum_s)
                again = self._charges_again(rounds, charged, steady and steps.stop - step > 1)
                repeats = steps.stop - step if again else 1
                period_s = self.now_s - begin_s if repeats > 1 else 0.0
                if slot_s:
                    period_s = round(period_s / slot_s) * slot_s
                if period_s > 0:
                    self._mark_repeated(step, num_changes)
                    self.now_s = begin_s + repeats * period_s
                    self.last_s += (repeats - 1) * period_s
                else:
                    repeats = 1
                self.tables.runs.append((step, repeats, period_s))
                step += repeats
            progress("time the steps", steps.stop, schedule.num_steps)
        return self._joined(engine)

    def _charges_again(self, rounds: list[_Round], charged: list[tuple[float, float]], wanted: bool) -> bool:
        """Whether the next identical step is charged what this one was; keeps what stands."""
        if not wanted:
            return False
        standing = self.charges.standing.copy()
        same = [self.charges.of_round(one.circuits, one.control_s) for one in rounds] == charged
        self.charges.standing = standing
        return same

    def _round(self, transfers: Transfers, circuits: Circuits) -> _Round:
        """What all repetitions of a round have in common."""
        all_circuits = circuits
        gaps, gap_s = self.law.gaps_s(transfers, circuits), self.law.gap_s(transfers, circuits)
        transfers, circuits = _carried(transfers, circuits)
        late = self.law.of_circuits(circuits)
        rows, _, seconds = transfer_times(self.fabric, transfers, circuits, self.chunk_bytes, self.assumed)
        of_transfer = np.zeros(len(transfers))
        of_transfer[rows] = seconds
        carries = circuits.transfer >= 0
        duration = np.where(carries, of_transfer[circuits.transfer], 0.0) if len(transfers) else np.zeros(len(circuits))
        slots = (
            np.rint(duration / self.fabric.slot_s).astype(np.int64) if self.fabric.slot_s else np.full(len(late), -1)
        )
        left_s = float(duration.max(initial=0.0)) + gap_s
        duration = duration + gaps
        longest_s = self.law.longest_s(circuits.carrying())
        lasts_s = left_s + longest_s if self.at_the_end else float((late + duration)[carries].max(initial=0.0))
        control_s = charged_control_s(self.fabric, transfers, circuits, self.assumed)
        uses = NO_USES if self.devices is None else self.devices.uses(circuits)
        return _Round(all_circuits, late, duration, slots, left_s, lasts_s, longest_s, control_s, uses)

    def _step(
        self, step: int, transfers: Transfers, rounds: list[_Round], charged: list[tuple[float, float]], sum_s: float
    ) -> bool:
        """Time one step; returns whether it leaves all devices as it found them.

        Args:
            step: its index.
            transfers: of the step.
            rounds: of the step.
            charged: reconfiguration and control time of each round [s].
            sum_s: time of its sums [s].
        """
        arrived, left = np.zeros(len(transfers)), np.full(len(transfers), -np.inf)
        touched = [(_NOTHING, _NOTHING)]
        beside = self.assumed.control_order == "beside_setting"
        over_s = self.now_s
        for number, (one, (setting_s, control_s)) in enumerate(zip(rounds, charged, strict=True)):
            begin_s = self.now_s
            if control_s or (beside and setting_s and one.control_s):
                self.tables.control.append((step, number, begin_s, begin_s + one.control_s))
            set_from_s = begin_s if beside else begin_s + control_s
            start_s = begin_s + control_s + setting_s
            start_s += slot_wait_s(self.fabric, start_s)
            if self.fabric.slot_s:
                start_s = round(start_s / self.fabric.slot_s) * self.fabric.slot_s
            touched.append(self._set(one.uses, set_from_s))
            self._light(step, number, one, start_s)
            carries = np.flatnonzero(one.circuits.transfer >= 0)
            carried = one.circuits.transfer[carries]
            np.maximum.at(arrived, carried, start_s + (one.latency_s + one.duration_s)[carries])
            np.maximum.at(left, carried, start_s + one.duration_s[carries])
            over_s = max(over_s, start_s + one.lasts_s)
            self.now_s = start_s + (one.left_s if self.in_line else one.lasts_s)
            if self.at_the_end:
                arrived[carried] = self.now_s
        if self.in_line:
            longest_s = max((one.longest_s for one in rounds), default=0.0) if self.at_the_end else 0.0
            self.now_s = max(over_s, self.now_s + longest_s)
            arrived = np.full(len(arrived), self.now_s) if self.at_the_end else arrived
        if self.devices is None:  # receivers are images of senders, the last of which has sent then
            arrived = np.maximum(arrived, left.max(initial=-np.inf))
        else:
            arrived = _in_place(transfers, arrived, left)
        end_s = self.now_s + sum_s
        summed = np.where(transfers.op & Op.REDUCE > 0, end_s, arrived)
        n = len(transfers)
        self.tables.data.append((np.full(n, step), np.arange(n), arrived, summed))
        self.last_s = max(end_s, self.last_s)
        self.now_s = end_s + slot_wait_s(self.fabric, end_s)
        members, before = (np.concatenate(c) for c in zip(*touched, strict=True))
        _, first = np.unique(members, return_index=True)  # the earliest change of each member says what it was before
        return bool((self.setting[members[first]] == before[first]).all())

    def _light(self, step: int, number: int, one: _Round, start_s: float) -> None:
        """Add the circuits of a round that begins now."""
        n = len(one.circuits)
        start = np.full(n, start_s)
        end = np.where(one.circuits.transfer >= 0, start_s + one.latency_s + one.duration_s, np.nan)
        slot = np.full(n, round(start_s / self.fabric.slot_s) if self.fabric.slot_s else -1)
        self.tables.circuits.append((np.full(n, step), np.full(n, number), np.arange(n), start, end, slot, one.slots))

    def _set(self, uses: DeviceUses, begin_s: float) -> tuple[IntArray, IntArray]:
        """Change the devices that have another setting; returns their members and their settings before."""
        first_round, self.before_first_round = self.before_first_round, False
        if not len(uses):
            return _NOTHING, _NOTHING
        assert self.devices is not None
        member, row = members_to_change(uses, self.setting)
        before = self.setting[member]
        self.setting[member] = uses.setting[row]
        stands = first_round and self.assumed.initial == "warm" and self.assumed.reconfiguration_charge == "on_change"
        begin_s = 0.0 if stands else begin_s
        done_s = begin_s + uses.setting_s[row] * (not stands)
        self.tables.devices.append(self.devices.table(member, uses.setting[row], begin_s, done_s))
        return member, before

    def _mark_repeated(self, step: int, first_table: int) -> None:
        """The changes from one table on are those of a run of steps."""
        for at in range(first_table, len(self.tables.devices)):
            changes = self.tables.devices[at]
            self.tables.devices[at] = replace(changes, step=np.full(len(changes), step))

    def _joined(self, engine: str) -> Programme:
        tables = self.tables
        runs, control = (
            np.array(rows, np.float64).reshape(-1, n) for rows, n in ((tables.runs, 3), (tables.control, 4))
        )
        return Programme(
            engine,
            self.size_bytes,
            self.last_s,
            StepRuns.of(first=runs[:, 0], repeats=runs[:, 1], period_s=runs[:, 2]),
            CircuitTimes.joined(tables.circuits),
            DataTimes.joined(tables.data),
            DeviceTable.joined(tables.devices),
            ControlTimes.of(step=control[:, 0], round=control[:, 1], begin_s=control[:, 2], end_s=control[:, 3]),
            {**self.assumed.record(), "mode": "barrier"},
        )


def _carried(transfers: Transfers, circuits: Circuits) -> tuple[Transfers, Circuits]:
    """The transfers that circuits carry, and the circuits with their numbers among these, where they are a small part.

    Args:
        transfers: of the step.
        circuits: of a round.
    """
    if SMALL_PART * len(circuits) > len(transfers) or (circuits.transfer < 0).any():
        return transfers, circuits
    rows, numbers = np.unique(circuits.transfer, return_inverse=True)
    return transfers.take(rows), replace(circuits, transfer=numbers.astype(np.int32))


def _in_place(transfers: Transfers, arrived: FloatArray, left: FloatArray) -> FloatArray:
    """When what arrives takes its place: once its rank has sent what it sends in this step; until then it is buffered.

    Args:
        transfers: of a step.
        arrived: last bit received, float64 (transfers,) [s].
        left: last bit has left the sender, likewise.
    """
    if not len(transfers):
        return arrived
    last = np.full(1 + int(max(transfers.src.max(), transfers.dst.max())), -np.inf)
    np.maximum.at(last, transfers.src, left)
    placed: FloatArray = np.maximum(arrived, last[transfers.dst])
    return placed


def members_to_change(uses: DeviceUses, setting: IntArray) -> tuple[IntArray, IntArray]:
    """Members that a round must change, and a use of each.

    Args:
        uses: of the round.
        setting: of every member now, int64 (members,).
    Returns: member and row of the use, int64 (changes,) each; of a pool a use takes a member that has its setting, else the
        first one that no other use of the round takes.
    """
    single = np.flatnonzero(uses.pool == 1)
    other = single[setting[uses.first_member[single]] != uses.setting[single]]
    member, first = np.unique(uses.first_member[other], return_index=True)
    row = other[first]
    pooled = np.flatnonzero(uses.pool > 1)
    if len(pooled):
        from opticcl.simulate._pools import take_members

        order = pooled[np.argsort(uses.first_member[pooled], kind="stable")]
        taken = take_members(uses.first_member[order], uses.pool[order], uses.setting[order], setting)
        changed = setting[taken] != uses.setting[order]
        member, row = np.concatenate([member, taken[changed]]), np.concatenate([row, order[changed]])
    return member, row
