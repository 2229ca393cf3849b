"""Checks the times of a programme by eight laws of circuits, data, control and devices; no engine is imported.

    1  too_short, off_slot             a circuit stands for the latency of its path and for its bytes, from a slot on
    2  set_in_flight, unset_at_start   a device keeps its setting while light passes it, and takes its setting time to change
    3  sent_before_there               data is sent once it has arrived and been summed
    4  overwritten_before_sent         an arrival changes no chunk of which an earlier send still leaves
    5  summed_too_fast                 one memory a rank computes all of its sums
    6  overlap                         circuits never exceed the capacity of a resource at any time
    7  control_late                    data is ready, then its circuits are agreed on, then set, then it is sent
    8  total_too_small, never_sent     the total is the last event, and every transfer has a circuit

A comparison has a tolerance of 1e-9 of the time and 1e-15 s.

Source: the assumptions of all five papers; Horn 1974 (sums by earliest deadline first).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import KEYS, Assumptions, assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, IntArray
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.device import Device
from opticcl.ir.device_settings import GIVEN
from opticcl.ir.programme import DeviceTable, Programme
from opticcl.ir.tables import Tables
from opticcl.ir.time_verdict import TimeVerdict, TimeViolation
from opticcl.verify._time_control import control_late, rows_by_round, set_from_s
from opticcl.verify._time_data import DataTiming, buffer_bytes, follow_data, sums_late
from opticcl.verify._time_devices import (
    Changes,
    DeviceFinding,
    Numbering,
    Uses,
    changes_of,
    check_changes,
    collect_uses,
    find_settings,
    with_standing,
)
from opticcl.verify._time_images import data_missed, overlaps_of_images, refuse_other_machines, sums_missed
from opticcl.verify._time_light import busy_between, overlaps, too_short
from opticcl.verify._time_rows import StoredRound, TimeRows
from opticcl.verify.sweep import runs_of, slack

__all__ = ["TimeRules", "check_programme", "rules_of"]

FloatArray = npt.NDArray[Any]  # float64

_SETTING = ("kind", "device", "setting")

SHOWN = 8
"""Violations of one law that a verdict lists [count]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRules:
    """Rules that depend on the assumptions of a programme.

    Args:
        compute: fused: one pass over memory sums all arrivals of a chunk, (arrivals + 2) bytes moved for each byte; chain:
            3 bytes for each arrival; none: sums take no time.
        memory_bytes_per_s: memory bandwidth of a rank [byte/s].
        initial: cold: a device is set before its first light; given: rows of devices that begin and end at 0 say what stands
            from the start; warm: these too, or, without any such row, the first setting of each device.
        prepare: early: a device may be set while data is awaited; none: only once the data of its circuit is ready.
        control: charged: circuits need a control exchange; none.
        control_charge: every_step: all circuits need it; on_change: only those that do not stand.
        control_order: before_setting: devices change after the exchange; beside_setting: both may happen together.
        receive_buffers: shared: data arrives in the place of the chunk; separate: it may wait in a buffer of its own.
        latency: assumptions of which the latency of a path is the sum of its parts; None: what the fabric's paper prints.
    """

    compute: Literal["fused", "chain", "none"] = "fused"
    memory_bytes_per_s: float = 1.555e12
    initial: Literal["cold", "warm", "given"] = "cold"
    prepare: Literal["early", "none"] = "early"
    control: Literal["charged", "none"] = "charged"
    control_charge: Literal["every_step", "on_change"] = "on_change"
    control_order: Literal["before_setting", "beside_setting"] = "before_setting"
    receive_buffers: Literal["shared", "separate"] = "shared"
    latency: Assumptions | None = None

    @classmethod
    def of(cls, assumed: Assumptions, **others: Any) -> TimeRules:
        """Rules of time assumptions, some of them replaced."""
        names = (f.name for f in fields(cls) if f.name != "latency")
        rules = {name: getattr(assumed, name) for name in names}
        rules["initial"] = str(assumed.initial)
        return cls(**{**rules, "latency": assumed if assumed.latency == "parts" else None, **others})


def rules_of(programme: Programme | Tables) -> TimeRules:
    """The rules that a programme or device tables claim to obey: their assumptions, laid over those of `common`.

    Raises: ParameterError: an assumption has a value that does not exist.
    """
    known = {key: value for key, value in (programme.assumptions or {}).items() if key in KEYS}
    if known.get("initial") != GIVEN:
        return TimeRules.of(assumptions("common", **known))
    del known["initial"]
    return TimeRules.of(assumptions("common", **known), initial=GIVEN)


def check_programme(
    plan: CircuitPlan, programme: Programme, rules: TimeRules | None = None, *, standing: DeviceTable | None = None
) -> TimeVerdict:
    """Verify the times of a plan. Its data and its light are verified by `opticcl.verify.verify`.

    Args:
        plan: schedule, fabric and circuits.
        programme: its times.
        rules: that the programme claims to obey; None: the defaults.
        standing: settings that stand from the start, in place of `rules.initial`; their times are ignored. Rows of the
            programme that begin and end at 0 must be among them.
    Raises: ParameterError: the programme names rows that the plan does not have, or lacks some. UnsupportedError: a packet
        fabric, whose links are shared; or a fabric that does not name its devices.
    """
    return _Check(plan, programme, rules or TimeRules(), standing).verdict()


class _Check:
    """One verification."""

    def __init__(self, plan: CircuitPlan, programme: Programme, rules: TimeRules, standing: DeviceTable | None) -> None:
        self.plan, self.programme, self.rules = plan, programme, rules
        self.fabric = plan.fabric
        if self.fabric.is_packet_switched:
            raise UnsupportedError(f"{self.fabric.name}: packets share its links; laws of time are for circuits")
        self.devices = self.fabric.devices
        if self.fabric.reconfiguration_s and not self.devices:
            raise UnsupportedError(
                f"{self.fabric.name}: names no devices, so that its reconfigurations cannot be verified"
            )
        self.whole, self.defined = plan, plan.has_images
        if self.defined:
            self.plan = plan = listed_plan(plan)
            tables = bool(len(programme.devices) or len(programme.control) or standing)
            floor = None if rules.latency is None else rules.latency.floor
            refuse_other_machines(self.fabric, int(programme.runs.repeats.max(initial=1)), floor, tables=tables)
        self.numbering = Numbering(self.devices)
        self.chunk_bytes = programme.size_bytes / plan.schedule.collective.num_chunks
        _check_devices(programme.devices, self.devices, "devices")
        if standing is not None:
            _check_devices(standing, self.devices, "standing")
        self.standing = standing
        self.rows = TimeRows(plan, programme, rules.latency)
        self.programme = self.rows.programme
        self.rounds = [(copy, one) for copy in self.rows.copies for one in copy.stored.rounds]
        self.found: dict[str, list[TimeViolation]] = {}

    def verdict(self) -> TimeVerdict:
        """Apply all laws."""
        if self.defined:
            return self._by_definition()
        control = self.rules.control == "charged" and self._has_control()
        timing = follow_data(self.rows, exact=control or self.rules.prepare == "none")
        uses, found, changes = self._settings(timing)
        self._light_lasts()
        self._data_flows(timing)
        self._sums()
        self._capacity(uses, found)
        self._prepared(uses, found, changes, timing)
        if control:
            self._control(uses, found, changes, timing)
        self._total()
        buffers = 0.0
        if self.rules.receive_buffers == "separate":
            buffers = buffer_bytes(self.rows, timing, self.chunk_bytes)
        violations = [one for law in self.found.values() for one in law[:SHOWN]]
        circuits = sum(sum(len(r.circuits) for r in s.rounds) * s.repeats for s in self.rows.steps)
        return TimeVerdict(
            tuple(violations), circuits, len(uses), self.num_changes, self.programme.total_s, self._idle_s(), buffers
        )

    def _by_definition(self) -> TimeVerdict:
        """Apply all laws to listed rows, whose images have the same times."""
        self._light_lasts()
        ready_s, circuits = 0.0, 0
        for stored in self.rows.steps:
            step, rules = self.whole.images(stored.step), self.rules
            sums = sums_missed(stored, step, self.chunk_bytes, rules.compute, rules.memory_bytes_per_s)
            for one in (*data_missed(stored, ready_s), *sums, *overlaps_of_images(self.whole, stored)):
                self._put(one.law, stored.step, one.round, one.where, one.missing_s, one.times)
            ready_s = max(ready_s, float(stored.summed_s.max(initial=0.0)))
            listed = sum(len(one.circuits) for one in stored.rounds)
            rounds = self.whole.symmetric(stored.step) if step is not None else None
            circuits += listed if rounds is None else listed * (self.fabric.num_nodes // len(rounds.senders))
        self._total()
        violations = tuple(one for law in self.found.values() for one in law[:SHOWN])
        return TimeVerdict(
            violations, circuits, circuits * len(self.devices), 0, self.programme.total_s, self._idle_s()
        )

    # --- laws ---------------------------------------------------------------------------------------------------------

    def _light_lasts(self) -> None:
        """Law 1, and the transfers without circuits of law 8."""
        for stored in self.rows.steps:
            for law, one, rows, missing in too_short(self.fabric, stored, self.chunk_bytes):
                self._add(law, stored.step, one, rows, missing)
            ends = np.full(len(stored.transfers), -np.inf)
            for one in stored.rounds:
                np.maximum.at(ends, one.circuits.transfer[one.carries], one.end_s[one.carries])
            early = np.flatnonzero(ends - stored.arrived_s > slack(stored.arrived_s))
            if len(early):
                worst = early[int(np.argmax((ends - stored.arrived_s)[early]))]
                where = f"arrival of transfer {worst}"
                self._put("too_short", stored.step, -1, where, float(ends[worst] - stored.arrived_s[worst]), len(early))
            never = np.flatnonzero(np.isneginf(ends))
            if len(never):
                self._put("never_sent", stored.step, -1, f"transfer {never[0]}", 0.0, len(never))
            if self.fabric.slot_s and stored.repeats > 1:
                off = abs(stored.period_s / self.fabric.slot_s - round(stored.period_s / self.fabric.slot_s))
                if off * self.fabric.slot_s > slack(stored.period_s):
                    where = f"period of steps {stored.step}..{stored.step + stored.repeats - 1}"
                    self._put("off_slot", stored.step, -1, where, off * self.fabric.slot_s, stored.repeats)

    def _settings(self, timing: DataTiming) -> tuple[Uses, DeviceFinding, Changes]:
        """Law 2, but for the times before which a device may not change."""
        table, self.num_changes = self.rows.changes()
        standing = self._standing_at_first(table)
        self.num_changes -= int(standing.sum())
        changes = changes_of(table.take(~standing), self.numbering)
        self._changes(changes)
        once = np.array([device.once_per_job for device in self.devices], bool)
        uses = collect_uses(self.rows, self.fabric, self.numbering) if self.devices else Uses.none()
        is_once = once[self.numbering.kind_of_group(uses.group)] if len(uses) else np.zeros(0, bool)
        self._once_per_job(uses.take(is_once))
        changing = uses.take(~is_once)
        if self.standing is not None:
            changes = with_standing(changes, changes_of(self.standing, self.numbering))
        elif standing.any():
            changes = with_standing(changes, changes_of(table.take(standing), self.numbering))
        warm = self.rules.initial == "warm" and self.standing is None and not standing.any()
        found = self._members(changing, changes, timing, warm)
        bad = np.flatnonzero(found.missing_s > 0)
        for unset, law in ((True, "unset_at_start"), (False, "set_in_flight")):
            self._add_uses(law, changing, bad[found.unset[bad] == unset], found.missing_s)
        return changing, found, changes

    def _members(self, uses: Uses, changes: Changes, timing: DataTiming, warm: bool) -> DeviceFinding:
        """The change that gave each use its setting, of pools by a second assignment where the first is refused.

        Args:
            uses: of devices that change.
            changes: of them.
            timing: when data is ready.
            warm: whether first settings stand from the start.
        """
        found = find_settings(uses, changes, self.numbering, warm=warm)
        if self.rules.prepare == "early" or all(device.pool == 1 for device in self.devices) or not len(uses):
            return found
        ready_s = self._ready_s(uses, timing)
        if self._refused(uses, found, changes, ready_s):
            other = find_settings(uses, changes, self.numbering, warm=warm, ready_s=ready_s)
            if not self._refused(uses, other, changes, ready_s):
                return other
        return found

    def _refused(self, uses: Uses, found: DeviceFinding, changes: Changes, ready_s: FloatArray) -> bool:
        """Whether an assignment of members breaks law 2 without early settings.

        Args:
            uses: of devices.
            found: the assignment.
            changes: of devices.
            ready_s: when the data of each use is ready [s].
        """
        early = ready_s - set_from_s(uses, found, changes) > slack(self.programme.total_s)
        return bool((found.missing_s > 0).any() or early.any())

    def _standing_at_first(self, table: DeviceTable) -> npt.NDArray[np.bool_]:
        """Rows of a programme that say what stands from the start: begin and end at 0, though a change takes time."""
        times = np.array([device.setting_time_s for device in self.devices] or [0.0])
        at_first = (table.begin_s == 0) & (table.done_s == 0) & (times[table.kind] > 0)
        if self.standing is None:
            return at_first & (self.rules.initial != "cold")
        stands = set(zip(*(getattr(self.standing, name).tolist() for name in _SETTING), strict=True))
        rows = zip(*(getattr(table, name)[at_first].tolist() for name in _SETTING), strict=True)
        at_first[at_first] = [row in stands for row in rows]
        return at_first

    def _changes(self, changes: Changes) -> None:
        """Law 2: changes take their time, one after the other."""
        times = np.array([device.setting_time_s for device in self.devices], np.float64)
        if not len(changes.member):
            return
        short, early = check_changes(changes, times)
        first = np.ones(len(changes.member), bool)
        first[1:] = changes.member[1:] != changes.member[:-1]
        for law, missing in (
            ("unset_at_start", np.where(first, short, 0.0)),
            ("set_in_flight", np.maximum(np.where(first, 0.0, short), early)),
        ):
            bad = np.flatnonzero(missing > 0)
            if len(bad):
                worst = int(bad[np.argmax(missing[bad])])
                name = self.numbering.member_name(int(changes.member[worst]))
                where = f"change of {name} at {changes.begin_s[worst]:.6g} s"
                self._put(law, self._step_at(float(changes.begin_s[worst])), -1, where, float(missing[worst]), len(bad))
        kinds = {i for i, device in enumerate(self.devices) if device.once_per_job}
        for i in kinds & set(changes.kind.tolist()):
            row = int(np.flatnonzero(changes.kind == i)[0])
            where = f"change of {self.numbering.member_name(int(changes.member[row]))}, which is set before the job"
            self._put("set_in_flight", self._step_at(float(changes.begin_s[row])), -1, where, 0.0, 1)

    def _once_per_job(self, uses: Uses) -> None:
        """Law 2 for devices that never change."""
        if not len(uses):
            return
        order, first = runs_of((uses.group,))
        setting = uses.setting[order]
        wanted = setting[np.flatnonzero(first)][np.cumsum(first) - 1]
        missing = np.zeros(len(uses))
        missing[order] = np.where(setting != wanted, np.maximum(uses.end_s - uses.start_s, 2e-15)[order], 0.0)
        self._add_uses("set_in_flight", uses, np.flatnonzero(missing), missing)

    def _data_flows(self, timing: DataTiming) -> None:
        """Laws 3 and 4."""
        lifted = self.rules.receive_buffers == "separate"
        for law, of_step in (
            ("sent_before_there", timing.late_s),
            ("overwritten_before_sent", {} if lifted else timing.overwritten_s),
        ):
            for step, missing in sorted(of_step.items()):
                bad = np.flatnonzero(missing > 0)
                worst = int(bad[np.argmax(missing[bad])])
                t = self.plan.schedule.step(step)
                where = f"transfer {t.src[worst]} -> {t.dst[worst]}, chunk {t.chunk_lo[worst]}"
                self._put(law, step, -1, where, float(missing[worst]), len(bad))

    def _sums(self) -> None:
        """Law 5."""
        rules = self.rules
        for copy, rows, missing in sums_late(self.rows, self.chunk_bytes, rules.compute, rules.memory_bytes_per_s):
            worst = int(np.argmax(missing))
            t = copy.stored.transfers
            where = f"sum at rank {t.dst[rows[worst]]} of transfer {rows[worst]}"
            self._put("summed_too_fast", copy.step, -1, where, float(missing[worst]), len(rows))

    def _capacity(self, uses: Uses, found: DeviceFinding) -> None:
        """Law 6."""
        until = {}
        for number, rows in rows_by_round(uses, len(self.rounds)):
            idle = rows[uses.idle[rows]]
            until[number] = uses.row[idle], found.next_begin_s[idle]
        for one in overlaps(self.rows, until, self.programme.total_s):
            circuits = one.copy.stored.rounds[one.round].circuits
            where = f"{one.resource.kind} {one.index}, circuit {circuits.src[one.row]} -> {circuits.dst[one.row]}"
            self._put("overlap", one.copy.step, one.round, where, one.missing_s, one.count)

    def _prepared(self, uses: Uses, found: DeviceFinding, changes: Changes, timing: DataTiming) -> None:
        """Law 2 without early settings: a device changes once the data of the circuit that it is set for is ready."""
        if self.rules.prepare == "none":
            missing = self._ready_s(uses, timing) - set_from_s(uses, found, changes)
            self._add_uses("set_in_flight", uses, np.flatnonzero(missing > slack(self.programme.total_s)), missing)

    def _control(self, uses: Uses, found: DeviceFinding, changes: Changes, timing: DataTiming) -> None:
        """Law 7."""
        rules = self.rules
        late = control_late(
            self.rounds, self.fabric, self.programme.control, timing, uses, set_from_s(uses, found, changes),
            on_change=rules.control_charge == "on_change", before_setting=rules.control_order == "before_setting",
        )  # fmt: skip
        for copy, one, rows, missing in late:
            self._add("control_late", copy.step, one, rows, missing)

    def _total(self) -> None:
        """Law 8."""
        last, step = 0.0, 0
        for stored in self.rows.steps:
            end = stored.span_s()[1] + (stored.repeats - 1) * stored.period_s
            if end > last:
                last, step = end, stored.step + stored.repeats - 1
        for table in (self.programme.devices.done_s, self.programme.control.end_s):
            last = max(last, float(table.max(initial=0.0)))
        if last - self.programme.total_s > slack(last):
            self._put("total_too_small", step, -1, "the last event", last - self.programme.total_s, 1)

    # --- figures ------------------------------------------------------------------------------------------------------

    def _idle_s(self) -> float:
        """Time in which no circuit carries data [s]."""
        spans = [
            (one.start_s[one.carries] + copy.shift_s, one.end_s[one.carries] + copy.shift_s)
            for copy, one in self.rounds
        ]
        if not spans:
            return self.programme.total_s
        start, end = (np.concatenate(column) for column in zip(*spans, strict=True))
        busy_s = busy_between(start, end, 0.0, np.inf)
        for stored in self.rows.steps:
            hole = self.rows.hole(stored)
            if hole is not None:  # the copies that are not unrolled are like the last one before them
                begin, until, repeats = hole
                busy_s += repeats * busy_between(start, end, begin - stored.period_s, begin)
                busy_s -= busy_between(start, end, begin, until)
        return max(0.0, self.programme.total_s - busy_s)

    def _has_control(self) -> bool:
        """Whether a step takes a control exchange."""
        steps = (stored.transfers for stored in self.rows.steps if len(stored.transfers))
        return any(self.fabric.control_s(transfers.src, transfers.dst) > 0 for transfers in steps)

    def _ready_s(self, uses: Uses, timing: DataTiming) -> FloatArray:
        """When the data of the circuit of each use is ready, float64 (uses,) [s]; -inf for idle circuits."""
        ready = np.full(len(uses), -np.inf)
        for number, rows in rows_by_round(uses, len(self.rounds)):
            copy, one = self.rounds[number]
            transfer = one.circuits.transfer[uses.row[rows]]
            kept = transfer >= 0
            ready[rows[kept]] = timing.ready_s[copy.step][transfer[kept]]
        return ready

    # --- violations ---------------------------------------------------------------------------------------------------

    def _put(self, law: str, step: int, number: int, where: str, missing_s: float, count: int) -> None:
        """Add one violation."""
        self.found.setdefault(law, []).append(TimeViolation(law, step, number, where, float(missing_s), count))

    def _add(self, law: str, step: int, one: StoredRound, rows: IntArray, missing: FloatArray) -> None:
        """Add the violation of circuits of a round, if there are any."""
        if len(rows):
            worst = int(np.argmax(missing))
            c, row = one.circuits, rows[worst]
            self._put(law, step, one.number, f"circuit {c.src[row]} -> {c.dst[row]}", float(missing[worst]), len(rows))

    def _add_uses(self, law: str, uses: Uses, bad: IntArray, missing: FloatArray) -> None:
        """Add the violations of uses of devices, one a round."""
        for number in np.unique(uses.round[bad])[:SHOWN]:
            mine = bad[uses.round[bad] == number]
            worst = int(mine[np.argmax(missing[mine])])
            copy, one = self.rounds[int(number)]
            c, row = one.circuits, uses.row[worst]
            where = f"{self.numbering.group_name(int(uses.group[worst]))}, circuit {c.src[row]} -> {c.dst[row]}"
            self._put(law, copy.step, one.number, where, float(missing[worst]), len(mine))

    def _step_at(self, time_s: float) -> int:
        """The last step that has begun, 0 before the first."""
        begun = [copy.step for copy in self.rows.copies if copy.stored.span_s()[0] + copy.shift_s <= time_s]
        return max(begun, default=0)


def _check_devices(table: DeviceTable, devices: tuple[Device, ...], name: str) -> None:
    """Refuse changes of devices that do not exist.

    Raises: ParameterError: the first of them.
    """
    sizes = np.array([device.count * device.pool for device in devices] or [0], np.int64)
    unknown = (table.kind < 0) | (table.kind >= len(devices))
    unknown |= (table.device < 0) | (table.device >= sizes[np.where(unknown, 0, table.kind)])
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        kind = int(table.kind[row])
        known = f"{devices[kind].kind} 0..{sizes[kind] - 1}" if 0 <= kind < len(devices) else f"{len(devices)} kinds"
        raise ParameterError(f"programme: {name} row {row}: kind={kind}, device={table.device[row]}; there are {known}")
