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

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import KEYS, Assumptions, assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, IntArray, concatenate_circuits
from opticcl.ir.circuit_plan import listed_plan
from opticcl.ir.device import Device
from opticcl.ir.device_settings import GIVEN
from opticcl.ir.programme import DeviceTable, Programme
from opticcl.ir.representatives import SymmetricRounds
from opticcl.ir.tables import Tables
from opticcl.ir.time_verdict import TimeVerdict, TimeViolation
from opticcl.verify.light.circuit_rows import circuit_name
from opticcl.verify.sweep import slack
from opticcl.verify.time._control import control_late
from opticcl.verify.time._data import DataTiming, buffer_bytes, follow_data, sums_late, sums_of_images_late
from opticcl.verify.time._devices import (
    BEFORE_S,
    Changes,
    DeviceFinding,
    Numbering,
    Uses,
    changes_of,
    collect_uses,
    find_settings,
    set_from_s,
    short_changes,
)
from opticcl.verify.time._images import devices_apart, orbits_of_step, refuse_other_machines
from opticcl.verify.time._light import Overlap, busy_between, overlaps, overlaps_of_images, too_short
from opticcl.verify.time._rows import Round, StoredRound, StoredStep, TimeRows

__all__ = ["TimeRules", "check_programme", "rules_of"]

FloatArray = npt.NDArray[Any]  # float64
BoolArray = npt.NDArray[np.bool_]

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


class _Settings(NamedTuple):
    """What law 2 finds of the unrolled circuits.

    Args:
        until_s: when an idle circuit ceases to stand, since a device of it changes, float64 (circuits,) [s].
        set_s: start of the first change that is made for each, inf where it stands, float64 (circuits,) [s].
        uses: of devices that change [count].
        changes: with repeats [count].
    """

    until_s: FloatArray
    set_s: FloatArray
    uses: int = 0
    changes: int = 0


class _Check:
    """One verification."""

    def __init__(self, plan: CircuitPlan, programme: Programme, rules: TimeRules, standing: DeviceTable | None) -> None:
        self.rules, self.fabric, self.devices = rules, plan.fabric, plan.fabric.devices
        if self.fabric.is_packet_switched:
            raise UnsupportedError(f"{self.fabric.name}: packets share its links; laws of time are for circuits")
        if self.fabric.reconfiguration_s and not self.devices:
            raise UnsupportedError(
                f"{self.fabric.name}: names no devices, so that its reconfigurations cannot be verified"
            )
        self.whole, self.defined = plan, plan.has_images
        if self.defined:
            tables = bool(len(programme.devices) or len(programme.control) or standing)
            floor = None if rules.latency is None else rules.latency.floor
            refuse_other_machines(self.fabric, int(programme.runs.repeats.max(initial=1)), floor, tables=tables)
        self.plan = listed_plan(plan) if self.defined else plan
        self.numbering = Numbering(self.devices)
        self.chunk_bytes = programme.size_bytes / plan.schedule.collective.num_chunks
        _check_devices(programme.devices, self.devices, "devices")
        if standing is not None:
            _check_devices(standing, self.devices, "standing")
        self.standing = standing
        self.rows = TimeRows(self.plan, programme, rules.latency)
        self.programme = self.rows.programme
        self.by_law: dict[str, list[TimeViolation]] = {}

    def verdict(self) -> TimeVerdict:
        """Apply all laws."""
        control = self.rules.control == "charged" and self._has_control()
        exact = control or self.rules.prepare == "none"
        timing = follow_data(self.rows, exact=exact, defined=self.defined)
        ready_s = self._ready_s(timing) if exact else None
        settings = self._settings_of_images() if self.defined else self._settings(ready_s)
        self._light_lasts()
        self._data_flows(timing)
        self._sums()
        self._capacity(settings.until_s)
        if control and ready_s is not None:
            self._control(ready_s, settings.set_s)
        self._total()
        buffers = 0.0
        if self.rules.receive_buffers == "separate" and not self.defined:
            buffers = buffer_bytes(self.rows, timing, self.chunk_bytes)
        violations = tuple(one for law in self.by_law.values() for one in law[:SHOWN])
        checked = self._num_circuits(), settings.uses, settings.changes
        return TimeVerdict(violations, *checked, self.programme.total_s, self._idle_s(), buffers)

    # --- laws ---------------------------------------------------------------------------------------------------------

    def _light_lasts(self) -> None:
        """Law 1, and the transfers without circuits of law 8."""
        for stored in self.rows.steps:
            for law, one, rows, missing in too_short(self.fabric, stored, self.chunk_bytes):
                self._add(law, stored.step, one, rows, missing)
            ends = stored.of_transfers(np.maximum, -np.inf, [one.end_s for one in stored.rounds])
            early = np.flatnonzero(ends - stored.arrived_s > slack(stored.arrived_s))
            missing = (ends - stored.arrived_s)[early]
            self._add_transfers("too_short", stored.step, early, missing, "arrival of transfer {row}")
            never = np.flatnonzero(np.isneginf(ends))
            if len(never):
                self._put("never_sent", stored.step, -1, f"transfer {never[0]}", 0.0, len(never))
            if self.fabric.slot_s and stored.repeats > 1:
                off = abs(stored.period_s / self.fabric.slot_s - round(stored.period_s / self.fabric.slot_s))
                if off * self.fabric.slot_s > slack(stored.period_s):
                    where = f"period of steps {stored.step}..{stored.step + stored.repeats - 1}"
                    self._put("off_slot", stored.step, -1, where, off * self.fabric.slot_s, stored.repeats)

    def _settings(self, ready_s: FloatArray | None) -> _Settings:
        """Law 2: every use of a device finds its setting and keeps it; without early settings, one made when data is there.

        Args: ready_s: when the data of each unrolled circuit is ready; None: no law asks [s].
        """
        rows = self.rows
        table, num_changes = rows.changes()
        stands = self._standing_at_first(table)
        standing = table.take(stands) if self.standing is None else self.standing
        changes = changes_of(table.take(~stands), standing, self.numbering)
        self._changes_last(changes)
        once = np.array([device.once_per_job for device in self.devices], bool)
        changes = changes.take(~once[changes.kind])
        uses = collect_uses(rows, self.fabric, self.numbering)
        warm = once | (self.rules.initial == "warm" and self.standing is None and not stands.any())

        def find(by_data: FloatArray | None = None) -> tuple[DeviceFinding, FloatArray, FloatArray]:
            """What each use finds, when that was made for it, and by how much too early."""
            finding = find_settings(uses, changes, self.numbering, rows, warm, by_data)
            if ready_s is None:
                return finding, np.full(len(uses), np.inf), np.zeros(len(uses))
            made_s = set_from_s(uses, finding, changes, rows.round_of)
            early_s = ready_s[uses.circuit] - made_s
            early = (early_s > slack(self.programme.total_s)) & (self.rules.prepare == "none")
            return finding, made_s, np.where(early, early_s, 0.0)

        finding, made_s, early_s = find()
        refused = finding.missing_s.any() or early_s.any()
        if refused and self.rules.prepare == "none":
            other = find(ready_s)  # another assignment of members, which is taken if it is right
            if not (other[0].missing_s.any() or other[2].any()):
                finding, made_s, early_s = other
        self._add_uses("unset_at_start", uses, np.where(finding.unset, finding.missing_s, 0.0))
        self._add_uses("set_in_flight", uses, np.where(finding.unset, 0.0, finding.missing_s))
        self._add_uses("set_in_flight", uses, early_s)
        until_s = np.full(len(rows.carries), self.programme.total_s)
        idle = ~rows.carries[uses.circuit]
        np.minimum.at(until_s, uses.circuit[idle], finding.next_begin_s[idle])
        set_s = np.full(len(rows.carries), np.inf)
        np.minimum.at(set_s, uses.circuit, made_s)
        changing = int((~once[self.numbering.kind_of_group(uses.group)]).sum())
        return _Settings(until_s, set_s, changing, num_changes - int(stands.sum()))

    def _settings_of_images(self) -> _Settings:
        """Law 2 of circuits that define others: devices change within the guards of slots, each with the light of one unit."""
        for stored in self.rows.steps:
            rounds = self._rounds_of(stored)
            circuits = concatenate_circuits(one.stored.circuits for one in rounds)
            for kind, index, row in devices_apart(self.fabric, circuits):
                number = self.rows.round_of[rounds[0].circuits.start + row[0]] - rounds[0].number
                self._put("set_in_flight", stored.step, int(number), f"{kind} {index[0]}", 0.0, len(index))
        until_s = np.full(len(self.rows.carries), self.programme.total_s)
        return _Settings(until_s, until_s, self._num_circuits() * len(self.devices))

    def _standing_at_first(self, table: DeviceTable) -> BoolArray:
        """Rows of a programme that say what stands from the start: begin and end at 0, though a change takes time."""
        times = np.array([device.setting_time_s for device in self.devices] or [0.0])
        at_first = (table.begin_s == 0) & (table.done_s == 0) & (times[table.kind] > 0)
        if self.standing is None:
            return at_first & (self.rules.initial != "cold")
        stands = set(zip(*(getattr(self.standing, name).tolist() for name in _SETTING), strict=True))
        rows = zip(*(getattr(table, name)[at_first].tolist() for name in _SETTING), strict=True)
        at_first[at_first] = [row in stands for row in rows]
        return at_first

    def _changes_last(self, changes: Changes) -> None:
        """Law 2: changes take their time, one after the other; what is set before the job has none."""
        first, missing = short_changes(
            changes, np.array([device.setting_time_s for device in self.devices], np.float64)
        )
        for law, rows in (("unset_at_start", first), ("set_in_flight", ~first)):
            bad = np.flatnonzero((missing > 0) & rows)
            if len(bad):
                worst = int(bad[np.argmax(missing[bad])])
                self._put_change(law, changes, worst, f" at {changes.begin_s[worst]:.6g} s", missing[worst], len(bad))
        made = np.flatnonzero(changes.begin_s > BEFORE_S)
        for row in made[np.unique(changes.kind[made], return_index=True)[1]].tolist():
            if self.devices[changes.kind[row]].once_per_job:
                self._put_change("set_in_flight", changes, row, ", which is set before the job", 0.0, 1)

    def _data_flows(self, timing: DataTiming) -> None:
        """Laws 3 and 4."""
        lifted = self.rules.receive_buffers == "separate" and not self.defined
        for law, of_step in (
            ("sent_before_there", timing.late_s),
            ("overwritten_before_sent", {} if lifted else timing.overwritten_s),
        ):
            for step, missing in sorted(of_step.items()):
                bad = np.flatnonzero(missing)
                self._add_transfers(law, step, bad, missing[bad], "transfer {src} -> {dst}, chunk {chunk}")

    def _sums(self) -> None:
        """Law 5."""
        given = self.chunk_bytes, self.rules.compute, self.rules.memory_bytes_per_s
        late = sums_of_images_late(self.rows, self.whole, *given) if self.defined else sums_late(self.rows, *given)
        for step, transfers, missing in late:
            self._add_transfers("summed_too_fast", step, transfers, missing, "sum at rank {dst} of transfer {row}")

    def _capacity(self, until_s: FloatArray) -> None:
        """Law 6; circuits that define others have left before those of the next step begin (law 3).

        Args: until_s: as of `_Settings`.
        """
        rows = self.rows
        left_s = np.where(rows.carries, rows.left_s, np.maximum(rows.start_s, until_s))
        overlapping = overlaps(rows, rows.rounds, left_s)
        if self.defined:
            overlapping = chain.from_iterable(self._overlaps_of_step(stored, left_s) for stored in rows.steps)
        for one in overlapping:
            at = one.round
            self._put("overlap", at.plan_step, at.stored.number, one.where, one.missing_s, one.times)

    def _overlaps_of_step(self, stored: StoredStep, left_s: FloatArray) -> Iterator[Overlap]:
        """Circuits of a step that overlap, listed or not."""
        rounds = self._rounds_of(stored)
        if stored.step not in self._defined_by:
            return overlaps(self.rows, rounds, left_s)
        orbits = orbits_of_step(self.whole, stored.step, self._defined_by[stored.step])
        return overlaps_of_images(self.rows, rounds, left_s, orbits)

    def _rounds_of(self, stored: StoredStep) -> list[Round]:
        """Unrolled rounds of a step."""
        return [one for one in self.rows.rounds if one.step is stored]

    def _control(self, ready_s: FloatArray, set_s: FloatArray) -> None:
        """Law 7.

        Args:
            ready_s: when the data of each unrolled circuit is ready [s].
            set_s: as of `_Settings`.
        """
        rules = self.rules
        on_change, before = rules.control_charge == "on_change", rules.control_order == "before_setting"
        for one, circuits, missing in control_late(
            self.rows, self.fabric, ready_s, set_s, on_change=on_change, before_setting=before
        ):
            self._add("control_late", one.plan_step, one.stored, circuits, missing)

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

    @cached_property
    def _defined_by(self) -> dict[int, SymmetricRounds]:
        """What defines the circuits of each step that is not listed, by step."""
        steps = [stored.step for stored in self.rows.steps] if self.defined else []
        sets_of_step = {step: sets for step in steps if (sets := self.whole.symmetric(step))}
        if any(len(sets) > 1 for sets in sets_of_step.values()):
            raise UnsupportedError("programme: circuits with different moves in a step that is not listed: not judged")
        return {step: sets[0] for step, sets in sets_of_step.items()}

    def _num_circuits(self) -> int:
        """Circuits of all steps, listed or not [count]."""
        listed = {stored.step: sum(len(one.circuits) for one in stored.rounds) for stored in self.rows.steps}
        images = {step: rounds.images for step, rounds in self._defined_by.items()}
        return sum(listed[stored.step] * stored.repeats * images.get(stored.step, 1) for stored in self.rows.steps)

    def _idle_s(self) -> float:
        """Time in which no circuit carries data [s]."""
        rows = self.rows
        latency_s = np.concatenate([np.zeros(0), *(one.stored.latency_s for one in rows.rounds)])
        start, end = rows.start_s[rows.carries], (rows.left_s + latency_s)[rows.carries]
        busy_s = busy_between(start, end, 0.0, np.inf)
        for stored in rows.steps:
            hole = rows.hole(stored)
            if hole is not None:  # the copies that are not unrolled are like the last one before them
                begin, until, repeats = hole
                busy_s += repeats * busy_between(start, end, begin - stored.period_s, begin)
                busy_s -= busy_between(start, end, begin, until)
        return max(0.0, self.programme.total_s - busy_s)

    def _has_control(self) -> bool:
        """Whether a step takes a control exchange."""
        steps = (stored.transfers for stored in self.rows.steps if len(stored.transfers))
        return any(self.fabric.control_s(transfers.src, transfers.dst) > 0 for transfers in steps)

    def _ready_s(self, timing: DataTiming) -> FloatArray:
        """When the data of each unrolled circuit is ready, float64 (circuits,) [s]; -inf for idle circuits."""
        ready = np.full(len(self.rows.carries), -np.inf)
        for one in self.rows.rounds:
            transfer, carries = one.stored.circuits.transfer, one.stored.carries
            ready[one.circuits][carries] = timing.ready_s[one.plan_step][transfer[carries]]
        return ready

    # --- violations ---------------------------------------------------------------------------------------------------

    def _put(self, law: str, step: int, number: int, where: str, missing_s: float, count: int) -> None:
        """Add one violation."""
        self.by_law.setdefault(law, []).append(TimeViolation(law, step, number, where, float(missing_s), count))

    def _put_change(self, law: str, changes: Changes, row: int, more: str, missing_s: float, count: int) -> None:
        """Add the violation of changes, of which one is named, in the last step that has begun, 0 before the first."""
        time_s, steps = changes.begin_s[row], ((one, turn) for one in self.rows.steps for turn in self.rows.turns(one))
        begun = (one.step + turn for one, turn in steps if one.span_s()[0] + turn * one.period_s <= time_s)
        where = f"change of {self.numbering.member_name(int(changes.member[row]))}{more}"
        self._put(law, max(begun, default=0), -1, where, missing_s, count)

    def _add(self, law: str, step: int, one: StoredRound, rows: IntArray, missing: FloatArray) -> None:
        """Add the violation of circuits of a round, if there are any."""
        if len(rows):
            worst = int(np.argmax(missing))
            where = f"circuit {circuit_name(one.circuits, int(rows[worst]))}"
            self._put(law, step, one.number, where, missing[worst], len(rows))

    def _add_transfers(self, law: str, step: int, rows: IntArray, missing: FloatArray, text: str) -> None:
        """Add the violation of transfers of a step, if there are any; `text` names one by row, src, dst and chunk."""
        if len(rows):
            worst, t = int(np.argmax(missing)), self.plan.schedule.step(step)
            row = int(rows[worst])
            where = text.format(row=row, src=t.src[row], dst=t.dst[row], chunk=t.chunk_lo[row])
            self._put(law, step, -1, where, missing[worst], len(rows))

    def _add_uses(self, law: str, uses: Uses, missing: FloatArray) -> None:
        """Add the violations of uses of devices that miss a law by some time, one a round."""
        bad = np.flatnonzero(missing > 0)
        rounds = self.rows.round_of[uses.circuit[bad]]
        for number in np.unique(rounds)[:SHOWN]:
            mine = bad[rounds == number]
            worst = int(mine[np.argmax(missing[mine])])
            one = self.rows.rounds[number]
            where = f"{self.numbering.group_name(int(uses.group[worst]))}, {one.circuit_name(int(uses.circuit[worst]))}"
            self._put(law, one.plan_step, one.stored.number, where, missing[worst], len(mine))


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
