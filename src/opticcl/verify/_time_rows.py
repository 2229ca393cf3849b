"""The rows of a programme as the verifier of time needs them: checked against the plan, and unrolled.

Of a run of many identical steps the first and last copies are unrolled, as many as can meet in time and two more. The copies
between them are the same picture, shifted; circuits and data of other steps must not reach into their time. Where a change that
is not repeated with the run alters a device of its circuits in that time, all copies are unrolled.

Two forms of one plan may repeat other steps: a plan file lists steps whose chunks move by no rule that a header can hold. A run
of a programme is cut where the plan's classes of steps end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.errors import ParameterError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.programme import DeviceTable, Programme
from opticcl.ir.tables import Tables
from opticcl.verify.sweep import numbered

__all__ = ["Copy", "StoredRound", "StoredStep", "TimeRows"]

FloatArray = npt.NDArray[Any]  # float64

MOST_COPIED = limit("time_rows.MOST_COPIED")


@dataclass(frozen=True, slots=True)
class StoredRound:
    """A round of the first step of a run.

    Args:
        number: of the round in its step.
        circuits: of the round.
        start_s, end_s: of each circuit, float64 (circuits,) [s]; NaN end of idle circuits.
        latency_s: of each circuit's path, float64 (circuits,) [s].
        slot, slots: int64 (circuits,).
    """

    number: int
    circuits: Circuits
    start_s: FloatArray
    end_s: FloatArray
    latency_s: FloatArray
    slot: IntArray
    slots: IntArray

    @property
    def carries(self) -> npt.NDArray[np.bool_]:
        """Circuits that carry a transfer; the others are idle."""
        return self.circuits.transfer >= 0

    @property
    def left_s(self) -> FloatArray:
        """When the last bit of each circuit has left its sender, float64 (circuits,) [s]; NaN for idle ones."""
        return self.end_s - self.latency_s


@dataclass(frozen=True, slots=True)
class StoredStep:
    """The first step of a run.

    Args:
        step: its index.
        repeats: steps of the run [count].
        period_s: from one to the next [s].
        transfers: of the step.
        rounds: with their times.
        arrived_s, summed_s: of each transfer, float64 (transfers,) [s].
    """

    step: int
    repeats: int
    period_s: float
    transfers: Transfers
    rounds: tuple[StoredRound, ...]
    arrived_s: FloatArray
    summed_s: FloatArray

    def span_s(self) -> tuple[float, float]:
        """Earliest and latest time of its circuits and data [s]; (0, 0) if it has none."""
        times = [self.arrived_s, self.summed_s]
        for one in self.rounds:
            times += [one.start_s, one.end_s[one.carries]]
        every = np.concatenate(times)
        return (float(every.min()), float(every.max())) if len(every) else (0.0, 0.0)

    def sent_s(self) -> tuple[FloatArray, FloatArray]:
        """First bit of each transfer leaves, last bit has left, float64 (transfers,) [s]; inf and -inf without circuits."""
        first, last = np.full(len(self.transfers), np.inf), np.full(len(self.transfers), -np.inf)
        for one in self.rounds:
            rows = one.circuits.transfer[one.carries]
            np.minimum.at(first, rows, one.start_s[one.carries])
            np.maximum.at(last, rows, one.left_s[one.carries])
        return first, last


@dataclass(frozen=True, slots=True)
class Copy:
    """One unrolled step.

    Args:
        stored: the step that it repeats.
        turn: which repetition, 0 for the stored step itself.
    """

    stored: StoredStep
    turn: int

    @property
    def step(self) -> int:
        """Its index in the plan."""
        return self.stored.step + self.turn

    @property
    def shift_s(self) -> float:
        """Its delay after the stored step [s]."""
        return self.turn * self.stored.period_s


class TimeRows:
    """A programme that names every row of a plan once.

    Args:
        plan: schedule, fabric and circuits.
        programme: its times.
        latency: assumptions of which the latency of a path is the sum of its parts; None: what the fabric's paper prints.

    Attributes:
        programme: the times, with runs that are cut where the plan's classes of steps end.
    Raises: ParameterError: a row that does not exist, exists twice or is missing, or a time that is no time.
    """

    def __init__(self, plan: CircuitPlan, programme: Programme, latency: Assumptions | None = None) -> None:
        self.plan, self.programme, self.latency = plan, programme, latency
        self._turns: dict[int, list[int]] = {}
        self._check_times()
        self._check_runs()
        self._check_steps()
        self.programme, self._run = _cut_at_classes(plan, programme)
        self.steps = tuple(self._stored_steps())
        self._check_holes()

    # --- the unrolled steps -------------------------------------------------------------------------------------------

    def turns(self, stored: StoredStep) -> list[int]:
        """Repetitions of a step that are unrolled."""
        if stored.step not in self._turns:
            self._turns[stored.step] = self._unrolled(stored)
        return self._turns[stored.step]

    def _unrolled(self, stored: StoredStep) -> list[int]:
        """As `turns`: the first and last ones; all, if others change devices of theirs between those."""
        every = list(range(stored.repeats))
        if stored.repeats == 1:
            return every
        begin, end = stored.span_s()
        first_s = begin
        changes = self._repeated_changes(stored.step)
        if len(changes):
            begin, end = min(begin, float(changes.begin_s.min())), max(end, float(changes.done_s.max()))
        kept = 2 + ceil((end - begin) / stored.period_s)
        if 2 * kept >= stored.repeats:
            return every
        hole = first_s + kept * stored.period_s, first_s + (stored.repeats - kept) * stored.period_s
        if self._changed_by_others(stored, *hole):
            return every
        return [*every[:kept], *every[-kept:]]

    def _changed_by_others(self, stored: StoredStep, begin_s: float, end_s: float) -> bool:
        """Whether changes that are not repeated with a step change a device of its circuits.

        Args:
            stored: the step.
            begin_s, end_s: when the changes are under way [s].
        """
        table, fabric = self.programme.devices, self.plan.fabric
        lasts_s = np.array([(one.repeats - 1) * one.period_s for one in self.steps])
        run = np.searchsorted([one.step for one in self.steps], table.step)
        later_s = np.where(table.step < 0, 0.0, lasts_s[run])
        others = (table.step != stored.step) & (table.begin_s < end_s) & (table.done_s + later_s > begin_s)
        if not others.any():
            return False
        kind, device = table.kind[others], table.device[others]
        number_of = {device.kind: number for number, device in enumerate(fabric.devices)}
        return any(
            np.isin(use.index, device[kind == number_of[use.kind]] // fabric.devices[number_of[use.kind]].pool).any()
            for one in stored.rounds
            for use in fabric.settings(one.circuits)
        )

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """All unrolled steps, in order."""
        return tuple(Copy(stored, turn) for stored in self.steps for turn in self.turns(stored))

    def hole(self, stored: StoredStep) -> tuple[float, float, int] | None:
        """(begin, end, repetitions) of the time of the copies that are not unrolled [s], or None."""
        turns = self.turns(stored)
        if len(turns) == stored.repeats:
            return None
        kept = len(turns) // 2
        begin = stored.span_s()[0]
        return (
            begin + kept * stored.period_s,
            begin + (stored.repeats - kept) * stored.period_s,
            stored.repeats - 2 * kept,
        )

    @cached_property
    def _rows_of_changes(self) -> dict[int, IntArray]:
        return _by_step(self.programme.devices.step)

    def _repeated_changes(self, step: int) -> DeviceTable:
        return self.programme.devices.take(self._rows_of_changes.get(step, slice(0)))

    def changes(self) -> tuple[DeviceTable, int]:
        """The unrolled device table, and the number of all changes with repeats."""
        table = self.programme.devices
        parts, total = [table.take(table.step < 0)], int((table.step < 0).sum())
        for stored in self.steps:
            own = self._repeated_changes(stored.step)
            total += len(own) * stored.repeats
            for turn in self.turns(stored) if len(own) else ():
                shift = turn * stored.period_s
                parts.append(replace(own, begin_s=own.begin_s + shift, done_s=own.done_s + shift))
        return DeviceTable(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in table.KINDS}), total

    # --- checks -------------------------------------------------------------------------------------------------------

    def _check_times(self) -> None:
        p = self.programme
        columns = {
            "circuits": (p.circuits, ("start_s",)), "data": (p.data, ("arrived_s", "summed_s")),
            "devices": (p.devices, ("begin_s", "done_s")), "control": (p.control, ("begin_s", "end_s")),
            "runs": (p.runs, ("period_s",)),
        }  # fmt: skip
        for table, (rows, names) in columns.items():
            for name in names:
                _refuse_times(table, name, getattr(rows, name))
        ends = p.circuits.end_s
        _refuse_times("circuits", "end_s", np.where(np.isnan(ends), 0.0, ends))
        if not 0 <= p.total_s < np.inf:
            raise ParameterError(f"programme: total_s={p.total_s} is not a time; give 0 or more seconds")

    def _check_runs(self) -> None:
        runs, schedule = self.programme.runs, self.plan.schedule
        next_step = 0
        for row, (first, repeats, period) in enumerate(zip(runs.first, runs.repeats, runs.period_s, strict=True)):
            if first != next_step or repeats < 1:
                raise ParameterError(
                    f"programme: runs row {row}: first={first}, repeats={repeats}; expected {next_step}"
                )
            next_step = int(first + repeats)
            if repeats > 1 and not period > 0:
                raise ParameterError(f"programme: runs row {row}: period_s={period} of repeated steps is not positive")
        if next_step != schedule.num_steps:
            raise ParameterError(
                f"programme: runs end at step {next_step}, and the plan has {schedule.num_steps} steps"
            )

    def _check_steps(self) -> None:
        p = self.programme
        for table, rows in (("circuits", p.circuits), ("data", p.data), ("control", p.control), ("devices", p.devices)):
            unknown = ~np.isin(rows.step, p.runs.first) & ((rows.step >= 0) | (table != "devices"))
            for row in np.flatnonzero(unknown)[:1]:
                raise ParameterError(f"programme: {table} row {row}: step {rows.step[row]} is the first of no run")

    def _stored_steps(self) -> Iterator[StoredStep]:
        p, plan = self.programme, self.plan
        circuits_of, data_of = _by_step(p.circuits.step), _by_step(p.data.step)
        nothing = np.zeros(0, np.int64)
        before: tuple[int, int, tuple[int, ...]] = -1, -1, ()
        for run, first, repeats, period in zip(self._run, *(getattr(p.runs, n) for n in p.runs.KINDS), strict=True):
            step = int(first)
            transfers, rounds = plan.schedule.step(step), plan.rounds(step)
            sizes = (len(transfers), *map(len, rounds))
            if run == before[0] and sizes != before[2]:
                raise ParameterError(
                    f"programme: runs row {run}: step {step} has other circuits than step {before[1]}; store them apart"
                )
            before = int(run), step, sizes
            times = _placed_circuits(p, circuits_of.get(step, nothing), rounds, step)
            stored = tuple(
                StoredRound(number, circuits, *columns[:2], path_latency_s(plan, circuits, self.latency), *columns[2:])
                for number, (circuits, columns) in enumerate(zip(rounds, times, strict=True))
            )
            arrived, summed = _placed_data(p, data_of.get(step, nothing), len(transfers), step)
            yield StoredStep(step, int(repeats), float(period), transfers, stored, arrived, summed)

    def _check_holes(self) -> None:
        spans = [(stored, stored.span_s()) for stored in self.steps]
        for stored in self.steps:
            hole = self.hole(stored)
            for other, (begin, end) in spans if hole else ():
                if other is not stored and hole is not None:
                    last = end + (other.repeats - 1) * other.period_s
                    if begin < hole[1] and last > hole[0]:
                        raise ParameterError(
                            f"programme: step {other.step} happens during the repeated steps {stored.step}.."
                            f"{stored.step + stored.repeats - 1}; store the steps that it meets as runs of their own"
                        )


def _cut_at_classes(plan: CircuitPlan, programme: Programme) -> tuple[Programme, IntArray]:
    """A programme whose runs end where the classes of steps of its plan do, and the given run of each of its runs.

    Rows of steps that are cut off are copies of those of their run, each in its time, below the given ones.

    Args:
        plan: schedule and fabric.
        programme: whose runs together are all steps of the plan.
    Raises: ParameterError: more copies than `MOST_COPIED`.
    """
    runs = programme.runs
    starts = np.array([steps.start for steps in plan.schedule.step_classes()], np.int64)
    first = np.union1d(runs.first, starts)
    run = np.searchsorted(runs.first, first, "right") - 1
    if len(first) == len(runs):
        return programme, run
    repeats = np.diff(np.append(first, plan.schedule.num_steps))
    later_s = (first - runs.first[run]) * runs.period_s[run]
    cut_off = np.flatnonzero(first != runs.first[run])
    begin = np.searchsorted(run[cut_off], np.arange(len(runs) + 1))  # copies of each run, in `cut_off`

    def with_copies(table: Any, *times: str) -> Any:
        its_run = np.searchsorted(runs.first, table.step)  # of a change that happens once: any
        many = np.where(table.step < 0, 0, np.diff(begin)[its_run])
        if many.sum() > MOST_COPIED:
            raise ParameterError(
                f"programme: {many.sum():,} rows of repeated steps that the plan lists one by one are more than "
                f"{MOST_COPIED:,}; make it from the plan that is verified"
            )
        row, nth = numbered(many)
        part = cut_off[begin[its_run[row]] + nth]
        new = {name: getattr(table, name)[row] for name in table.KINDS} | {"step": first[part]}
        new |= {name: new[name] + later_s[part] for name in times}
        if "slot" in new and plan.fabric.slot_s:
            new["slot"] = new["slot"] + np.rint(later_s[part] / plan.fabric.slot_s).astype(np.int64)
        return type(table).of(**{name: np.concatenate([getattr(table, name), new[name]]) for name in table.KINDS})

    return replace(
        programme,
        runs=type(runs).of(first=first, repeats=repeats, period_s=runs.period_s[run]),
        circuits=with_copies(programme.circuits, "start_s", "end_s"),
        data=with_copies(programme.data, "arrived_s", "summed_s"),
        devices=with_copies(programme.devices, "begin_s", "done_s"),
        control=with_copies(programme.control, "begin_s", "end_s"),
    ), run


def path_latency_s(plan: CircuitPlan | Tables, circuits: Circuits, latency: Assumptions | None = None) -> FloatArray:
    """Latency of the path of each circuit, float64 (circuits,) [s].

    Args:
        plan: with the fabric.
        circuits: of a round.
        latency: assumptions of which the latency is the sum of its parts; None: what the fabric's paper prints.
    """
    fabric = plan.fabric
    if latency is not None and latency.latency == "parts":
        return _sum_of_parts(fabric, circuits, latency)
    of_hop = fabric.hop_latency_s(circuits.hops)
    if of_hop is None or not len(circuits.hops):
        return np.full(len(circuits), fabric.latency_s)
    return fabric.latency_s + np.bincount(circuits.hop_owner(), of_hop, minlength=len(circuits))


def _sum_of_parts(fabric: Fabric, circuits: Circuits, latency: Assumptions) -> FloatArray:
    """Endpoint, receivers, metres and switches on the path of each circuit, float64 (circuits,) [s].

    Args:
        fabric: with its passages.
        circuits: of a round.
        latency: assumptions.
    """
    price = {
        "receivers": latency.transceiver,
        "fibre_m": latency.fibre,
        "waveguide_m": latency.waveguide,
        "switches": latency.hop,
        "server_switches": latency.server_hop,
    }
    base, of_hops = fabric.passage(latency.floor), fabric.hop_passages(latency.floor)
    fixed = latency.endpoint + sum(seconds * float(getattr(base, what)) for what, seconds in price.items())
    if fabric.slot_s:
        fixed = np.ceil(fixed / fabric.slot_s - SLOT_ROUNDING) * fabric.slot_s
    found = np.full(len(circuits), float(fixed))
    if of_hops is not None and len(circuits.hops):
        owner = circuits.hop_owner()
        for what, seconds in price.items():
            each = np.asarray(getattr(of_hops, what), np.float64)
            added = each[circuits.hops] if each.ndim else np.full(len(owner), each)
            found += seconds * np.bincount(owner, added, minlength=len(circuits))
    return found


SLOT_ROUNDING = 1e-9
"""Share of a slot by which a latency of whole slots may exceed it."""


def _refuse_times(table: str, name: str, column: FloatArray) -> None:
    """Refuse the first entry that is not a time."""
    bad = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
    if len(bad):
        raise ParameterError(
            f"programme: {table} row {bad[0]}: {name}={column[bad[0]]} is not a time; give 0 or more seconds"
        )


def _by_step(steps: IntArray) -> dict[int, IntArray]:
    """Rows of each step."""
    if not len(steps):
        return {}
    order = np.argsort(steps, kind="stable")
    cuts = np.flatnonzero(np.diff(steps[order])) + 1
    return {int(steps[rows[0]]): rows for rows in np.split(order, cuts)}


def _placed_circuits(
    p: Programme, rows: IntArray, rounds: tuple[Circuits, ...], step: int
) -> list[tuple[FloatArray, FloatArray, IntArray, IntArray]]:
    """Start, end, slot and slots of the circuits of each round, in the order of the plan."""
    times = p.circuits
    offsets = np.cumsum([0, *map(len, rounds)])
    number, row = times.round[rows].astype(np.int64), times.row[rows].astype(np.int64)
    unknown = (number < 0) | (number >= len(rounds))
    sizes = np.diff(offsets)
    unknown |= (row < 0) | (row >= (sizes[np.where(unknown, 0, number)] if len(sizes) else 0))
    if unknown.any():
        bad = rows[np.flatnonzero(unknown)[0]]
        raise ParameterError(
            f"programme: circuits row {bad}: step {step} has no circuit {times.row[bad]} in round {times.round[bad]}"
        )
    place = offsets[number] + row
    count = np.bincount(place, minlength=int(offsets[-1]))
    if (count != 1).any():
        at = int(np.flatnonzero(count != 1)[0])
        in_round = int(np.searchsorted(offsets, at, side="right")) - 1
        what = "is missing" if not count[at] else "has several rows"
        raise ParameterError(
            f"programme: circuits: circuit {at - offsets[in_round]} of step {step} round {in_round} {what}"
        )
    order = np.empty(int(offsets[-1]), np.int64)
    order[place] = rows
    idle = np.concatenate([circuits.transfer < 0 for circuits in rounds]) if len(rounds) else np.zeros(0, bool)
    endless = np.flatnonzero(np.isnan(times.end_s[order]) & ~idle)
    if len(endless):
        raise ParameterError(
            f"programme: circuits row {order[endless[0]]}: end_s is missing; only idle circuits have none"
        )
    columns = (times.start_s[order], times.end_s[order], times.slot[order], times.slots[order])
    return [(columns[0][a:b], columns[1][a:b], columns[2][a:b], columns[3][a:b]) for a, b in pairwise(offsets)]


def _placed_data(p: Programme, rows: IntArray, num_transfers: int, step: int) -> tuple[FloatArray, FloatArray]:
    """Arrival and sum of each transfer of a step, in the order of the plan."""
    transfer = p.data.transfer[rows]
    bad = np.flatnonzero((transfer < 0) | (transfer >= num_transfers))
    if len(bad):
        row = rows[bad[0]]
        raise ParameterError(f"programme: data row {row}: step {step} has no transfer {p.data.transfer[row]}")
    count = np.bincount(transfer, minlength=num_transfers)
    if (count != 1).any():
        at = int(np.flatnonzero(count != 1)[0])
        what = "is missing" if not count[at] else "has several rows"
        raise ParameterError(f"programme: data: transfer {at} of step {step} {what}")
    order = np.empty(num_transfers, np.int64)
    order[transfer] = rows
    return p.data.arrived_s[order], p.data.summed_s[order]
