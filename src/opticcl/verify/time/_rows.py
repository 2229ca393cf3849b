"""The rows of a programme as the verifier of time needs them: checked against the plan, and unrolled.

Of a run of many identical steps the first and last copies are unrolled, as many as can meet in time and two more. The copies
between them are the same picture, shifted; circuits and data of other steps must not reach into their time. Where a change that
is not repeated with the run alters a device of its circuits in that time, all copies are unrolled.

Two forms of one plan may repeat other steps: a plan file lists steps whose chunks move by no rule that a header can hold. A run
of a programme is cut where the plan's classes of steps end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.errors import ParameterError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Transfers
from opticcl.ir.floor_plan import Passage
from opticcl.ir.limits import limit
from opticcl.ir.programme import DeviceTable, Programme
from opticcl.ir.tables import Tables
from opticcl.verify.light.circuit_rows import circuit_name

__all__ = ["Round", "StoredRound", "StoredStep", "TimeRows", "path_latency_s"]

FloatArray = npt.NDArray[Any]  # float64
BoolArray = npt.NDArray[np.bool_]

NO_TIMES = np.zeros(0)

MOST_COPIED = limit("rows.MOST_COPIED")


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
    def carries(self) -> BoolArray:
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
        first = self.of_transfers(np.minimum, np.inf, [one.start_s for one in self.rounds])
        return first, self.of_transfers(np.maximum, -np.inf, [one.left_s for one in self.rounds])

    def of_transfers(self, ufunc: np.ufunc, initial: float, of_rounds: Sequence[FloatArray]) -> FloatArray:
        """A figure of the circuits of each round, gathered for each transfer, float64 (transfers,).

        Args:
            ufunc: minimum, maximum or add.
            initial: without circuits.
            of_rounds: float64 (circuits,) each.
        """
        figures = np.full(len(self.transfers), initial)
        for one, values in zip(self.rounds, of_rounds, strict=True):
            ufunc.at(figures, one.circuits.transfer[one.carries], values[one.carries])
        return figures


class Round(NamedTuple):
    """An unrolled round.

    Args:
        number: of it among all unrolled rounds.
        step: that it belongs to, as stored.
        turn: which repetition of that step, 0 for the stored one.
        stored: the round as stored.
        circuits: numbers of its circuits among all unrolled ones.
    """

    number: int
    step: StoredStep
    turn: int
    stored: StoredRound
    circuits: slice

    @property
    def plan_step(self) -> int:
        """Its step in the plan."""
        return self.step.step + self.turn

    @property
    def later_s(self) -> float:
        """Its delay after the stored round [s]."""
        return self.turn * self.step.period_s

    def circuit_name(self, circuit: int) -> str:
        """One of its circuits in words.

        Args: circuit: its number among all unrolled ones.
        """
        return f"circuit {circuit_name(self.stored.circuits, circuit - self.circuits.start)}"


class TimeRows:
    """A programme that names every row of a plan once.

    Args:
        plan: schedule, fabric and circuits.
        programme: its times.
        latency: assumptions of which the latency of a path is the sum of its parts; None: what the fabric's paper prints.

    Attributes:
        programme: the times, with runs that are cut where the plan's classes of steps end.
        steps: the first one of each run.
    Raises: ParameterError: a row that does not exist, exists twice or is missing, or a time that is no time.
    """

    def __init__(self, plan: CircuitPlan, programme: Programme, latency: Assumptions | None = None) -> None:
        self.plan, self.programme, self.latency = plan, programme, latency
        self._check_times()
        self._check_runs()
        self._check_steps()
        self.programme, self._run = _cut_at_classes(plan, programme)
        self.steps = tuple(self._stored_steps())
        self._check_holes()

    # --- the unrolled steps -------------------------------------------------------------------------------------------

    def turns(self, stored: StoredStep) -> list[int]:
        """Repetitions of a step that are unrolled."""
        return self._turns[stored.step]

    @cached_property
    def _turns(self) -> dict[int, list[int]]:
        return {stored.step: self._unrolled(stored) for stored in self.steps}

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
        kind, device = table.kind[others], table.device[others]
        number_of = {device.kind: number for number, device in enumerate(fabric.devices)}
        return any(
            np.isin(use.index, device[kind == number_of[use.kind]] // fabric.devices[number_of[use.kind]].pool).any()
            for one in stored.rounds
            for use in fabric.settings(one.circuits)
        )

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """All unrolled rounds: those of the first step, of its next repetition, and so on."""
        rounds: list[Round] = []
        first = 0
        for stored in self.steps:
            for turn in self.turns(stored):
                for one in stored.rounds:
                    after = first + len(one.circuits)
                    rounds.append(Round(len(rounds), stored, turn, one, slice(first, after)))
                    first = after
        return tuple(rounds)

    @cached_property
    def round_of(self) -> IntArray:
        """Number of the round of each unrolled circuit, int64 (circuits,)."""
        return np.repeat(np.arange(len(self.rounds)), [len(one.stored.circuits) for one in self.rounds])

    @cached_property
    def start_s(self) -> FloatArray:
        """Start of each unrolled circuit, float64 (circuits,) [s]."""
        return np.concatenate([NO_TIMES, *(one.stored.start_s + one.later_s for one in self.rounds)])

    @cached_property
    def left_s(self) -> FloatArray:
        """When the last bit of each unrolled circuit has left its sender, float64 (circuits,) [s]; NaN for idle ones."""
        return np.concatenate([NO_TIMES, *(one.stored.left_s + one.later_s for one in self.rounds)])

    @cached_property
    def carries(self) -> BoolArray:
        """Unrolled circuits that carry a transfer, bool (circuits,)."""
        return np.concatenate([NO_TIMES > 0, *(one.stored.carries for one in self.rounds)])

    def hole(self, stored: StoredStep) -> tuple[float, float, int] | None:
        """(begin, end, repetitions) of the time of the copies that are not unrolled [s], or None."""
        turns = self.turns(stored)
        if len(turns) == stored.repeats:
            return None
        kept = len(turns) // 2
        begin = stored.span_s()[0]
        after = stored.repeats - kept
        return begin + kept * stored.period_s, begin + after * stored.period_s, stored.repeats - 2 * kept

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
        return _below_each_other(parts), total

    # --- checks -------------------------------------------------------------------------------------------------------

    def _check_times(self) -> None:
        p = self.programme
        for table in ("circuits", "data", "devices", "control", "runs"):
            rows = getattr(p, table)
            for name in (one for one, kind in rows.KINDS.items() if kind is np.float64):
                times = getattr(rows, name)
                idle = np.isnan(times) & ((table, name) == ("circuits", "end_s"))
                for row in np.flatnonzero(~(np.isfinite(times) & (times >= 0)) & ~idle)[:1]:
                    raise ParameterError(
                        f"programme: {table} row {row}: {name}={times[row]} is not a time; give 0 or more seconds"
                    )
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
        for table in ("circuits", "data", "control", "devices"):
            step = getattr(p, table).step
            unknown = ~np.isin(step, p.runs.first) & ((step >= 0) | (table != "devices"))
            for row in np.flatnonzero(unknown)[:1]:
                raise ParameterError(f"programme: {table} row {row}: step {step[row]} is the first of no run")

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
            if (hole := self.hole(stored)) is None:
                continue
            for other, (begin, end) in spans:
                last = end + (other.repeats - 1) * other.period_s
                if other is not stored and begin < hole[1] and last > hole[0]:
                    raise ParameterError(
                        f"programme: step {other.step} happens during the repeated steps {stored.step}.."
                        f"{stored.step + stored.repeats - 1}; store the steps that it meets as runs of their own"
                    )


def _cut_at_classes(plan: CircuitPlan, programme: Programme) -> tuple[Programme, IntArray]:
    """A programme whose runs end where the classes of steps of its plan do, and the given run of each of its runs.

    Rows of steps that are cut off are copies of those of their run, each in its time.

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
    later_s = (first - runs.first[run]) * runs.period_s[run]

    def with_copies(table: Any, *times: str) -> Any:
        rows_of, nothing = _by_step(table.step), np.zeros(0, np.int64)
        rows = [rows_of.get(int(step), nothing) for step in runs.first[run]]
        many = sum(map(len, rows)) - int((table.step >= 0).sum())
        if many > MOST_COPIED:
            raise ParameterError(
                f"programme: {many:,} rows of repeated steps that the plan lists one by one are more than "
                f"{MOST_COPIED:,}; make it from the plan that is verified"
            )
        part = np.repeat(np.arange(len(first)), [len(one) for one in rows])
        of_parts = table.take(np.concatenate(rows))
        columns = {"step": first[part]} | {name: getattr(of_parts, name) + later_s[part] for name in times}
        if "slot" in table.KINDS and plan.fabric.slot_s:
            columns["slot"] = of_parts.slot + np.rint(later_s[part] / plan.fabric.slot_s).astype(np.int64)
        return _below_each_other([table.take(table.step < 0), replace(of_parts, **columns)])

    repeats = np.diff(np.append(first, plan.schedule.num_steps))
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
    if latency is None or latency.latency != "parts":
        fixed, of_hops = fabric.latency_s, fabric.hop_latency_s(circuits.hops)
    else:
        fixed = latency.endpoint + float(_sum_of_parts(fabric.passage(latency.floor), latency, circuits.hops))
        if fabric.slot_s:
            fixed = np.ceil(fixed / fabric.slot_s - SLOT_ROUNDING) * fabric.slot_s
        passages = fabric.hop_passages(latency.floor)
        of_hops = None
        if passages is not None:
            of_hops = np.broadcast_to(_sum_of_parts(passages, latency, circuits.hops), len(circuits.hops))
    if of_hops is None or not len(circuits.hops):
        return np.full(len(circuits), fixed)
    return fixed + np.bincount(circuits.hop_owner(), of_hops, minlength=len(circuits))


def _sum_of_parts(passage: Passage, latency: Assumptions, hops: IntArray) -> FloatArray:
    """Time of receivers, metres and switches, one for all, or of each of some hops, float64 (hops,) [s].

    Args:
        passage: what a signal passes.
        latency: assumptions.
        hops: numbers of hops, where the passage has an entry for each hop of a fabric.
    """
    parts = (
        (passage.receivers, latency.transceiver), (passage.fibre_m, latency.fibre), (passage.waveguide_m, latency.waveguide),
        (passage.switches, latency.hop), (passage.server_switches, latency.server_hop),
    )  # fmt: skip
    times = (np.asarray(seconds * (np.asarray(count)[hops] if np.ndim(count) else count)) for count, seconds in parts)
    return sum(times, np.zeros(()))


SLOT_ROUNDING = 1e-9
"""Share of a slot by which a latency of whole slots may exceed it."""


def _below_each_other(tables: list[Any]) -> Any:
    """Tables of one type as one."""
    return type(tables[0]).joined([tuple(getattr(one, name) for name in one.KINDS) for one in tables])


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
    unknown |= (row < 0) | (row >= np.append(np.diff(offsets), 0)[np.where(unknown, -1, number)])
    for bad in rows[unknown][:1]:
        raise ParameterError(
            f"programme: circuits row {bad}: step {step} has no circuit {times.row[bad]} in round {times.round[bad]}"
        )

    def name(place: int) -> str:
        of = int(np.searchsorted(offsets, place, side="right")) - 1
        return f"circuits: circuit {place - offsets[of]} of step {step} round {of}"

    order = _row_of_each(offsets[number] + row, rows, int(offsets[-1]), name)
    carries = np.concatenate([NO_TIMES > 0, *(circuits.transfer >= 0 for circuits in rounds)])
    for endless in order[np.isnan(times.end_s[order]) & carries][:1]:
        raise ParameterError(f"programme: circuits row {endless}: end_s is missing; only idle circuits have none")
    columns = [column[order] for column in (times.start_s, times.end_s, times.slot, times.slots)]
    return [tuple(column[a:b] for column in columns) for a, b in pairwise(offsets)]  # type: ignore[misc]


def _placed_data(p: Programme, rows: IntArray, num_transfers: int, step: int) -> tuple[FloatArray, FloatArray]:
    """Arrival and sum of each transfer of a step, in the order of the plan."""
    transfer = p.data.transfer[rows]
    for bad in rows[(transfer < 0) | (transfer >= num_transfers)][:1]:
        raise ParameterError(f"programme: data row {bad}: step {step} has no transfer {p.data.transfer[bad]}")
    order = _row_of_each(transfer, rows, num_transfers, lambda place: f"data: transfer {place} of step {step}")
    return p.data.arrived_s[order], p.data.summed_s[order]


def _row_of_each(place: IntArray, rows: IntArray, count: int, name: Callable[[int], str]) -> IntArray:
    """Row of each place, int64 (count,), of which each has one.

    Args:
        place: of each row.
        rows: numbers of the rows.
        count: places [count].
        name: table and place in words.
    Raises: ParameterError: a place has none, or several.
    """
    times = np.bincount(place, minlength=count)
    for bad in np.flatnonzero(times != 1)[:1]:
        raise ParameterError(f"programme: {name(int(bad))} {'has several rows' if times[bad] else 'is missing'}")
    order = np.empty(count, np.int64)
    order[place] = rows
    return order
