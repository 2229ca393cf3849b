"""Times of plans with long runs of equal steps on machines of any size: few of the steps, one of each kind of circuit.

Equal circuits are followed once (`opticcl.simulate.device._fold`). Of the longest run few steps are scheduled. With chunks
numbered relative to the step, list scheduling is a function of maxima and sums: it adds d to all starts of a step if d is
added to all that the step waits for. That is given by the starts of the W + 1 steps before it; W is how many steps a chunk
is held. What does not move (a device that stands) was no later than a start of an earlier step, so it never decides again.
So once the starts of W + 2 steps in turn differ by one d > 0, those of all further steps do. Starts are whole slots and are
compared as integers; a start that is rounded up to a slot moves by d if what it waits for does.

Steps behind the run may need chunks of its last 2 W steps, so the starts of W more steps must differ by d. With k more steps
of the run a start behind it is max(a + k d, b): it grows by d from k = 0 to 1 only if a >= b, and then by d with every step.
That is tested for every start behind the run.

Source: ours; maxima and sums: Baccelli, Cohen, Olsder and Quadrat 1992 (section 3.7, periodic regimes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Op, Timeline, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.programme import DeviceTable
from opticcl.simulate._device_uses import DeviceUses
from opticcl.simulate.device._fold import Folded, FoldedStep, StepToFold, device_settings, fold
from opticcl.simulate.device.list_schedule import ClassOfSteps, ListScheduler
from opticcl.simulate.device.list_times import ListTimes, Waits, asynchronous, by_device
from opticcl.simulate.parts import charged_control_s, transfer_times

__all__ = ["FOLLOWED", "LEAST_RUN", "has_long_run", "long_run_timeline"]

FOLLOWED = "followed"
"""Entry of the assumptions of a timeline that says what was scheduled."""

LEAST_RUN = 8
"""Steps of a run that is worth it [count]."""

MOST_OTHERS = 64
"""Steps outside of the run [count]."""

MOST_TRIED = limit("long_runs.MOST_TRIED")


MOST_HELD = limit("long_runs.MOST_HELD")


class _Run(NamedTuple):
    """A run of equal steps.

    Args:
        at: its class.
        steps: of the schedule.
        shift: chunks from one step to the next [count].
        held: W: steps between two that touch the same chunk, at most [count].
        alone: steps of the run that may touch what the steps before it touched [count].
    """

    at: int
    steps: range
    shift: int
    held: int
    alone: int


def has_long_run(plan: CircuitPlan) -> bool:
    """Whether all but few steps of a plan are one run of equal steps, on a fabric with slots.

    Args: plan: with its classes of steps.
    """
    lengths = [len(steps) for steps in plan.schedule.step_classes()]
    longest = max(lengths, default=0)
    return bool(plan.fabric.slot_s) and longest > 1 and sum(lengths) - longest <= MOST_OTHERS


def long_run_timeline(plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> Timeline:
    """The timeline of the device engine, of few steps of the longest run.

    Args:
        plan: with a long run of steps.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
    Raises: UnsupportedError: no such run, circuits that are not folded, or starts that do not become periodic.
    """
    if not has_long_run(plan):
        raise UnsupportedError(f"device: {plan.schedule.name} has no long run of equal steps in slots")
    if assumed.configuration is not None:
        raise UnsupportedError("device: long runs start with no circuits, or warm; leave --start out")
    firsts = (plan.schedule.step(steps.start) for steps in plan.schedule.step_classes())
    if any((first.op != Op.COPY).any() for first in firsts):
        raise UnsupportedError("device: sums count what they add, so that equal ranks are not followed once")
    run = _run(plan)
    folding = _Folding(plan, size_bytes, assumed)
    timelines = [_extended(folding, run, waits) for waits in (by_device(assumed), asynchronous(plan.fabric, assumed))]
    return min(timelines, key=lambda timeline: timeline.total_s)


class _Folding:
    """The steps of a plan with one circuit of each kind, to be scheduled.

    Args:
        plan: with a long run of steps.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
    """

    def __init__(self, plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> None:
        self.plan, self.size_bytes, self.assumed = plan, size_bytes, assumed
        self.classes = plan.schedule.step_classes()
        builder = ListScheduler(plan, size_bytes, assumed, by_device(assumed), (0, 0, 0, 0))
        whole, control = [], []
        for steps in self.classes:
            transfers, rounds = plan.schedule.step(steps.start), plan.rounds(steps.start)
            whole.append(_step(builder, transfers, rounds))
            control.append(tuple(charged_control_s(plan.fabric, transfers, one, assumed) for one in rounds))
        self.folded: Folded = fold(plan.fabric, plan.schedule.collective.num_ranks, whole)
        self.common = [
            _class(plan, step, one, control_s)
            for step, one, control_s in zip(whole, self.folded.steps, control, strict=True)
        ]

    def times(self, run: _Run, kept: int, waits: Waits) -> ListTimes:
        """Times of the plan with `kept` steps of its run.

        Args:
            run: whose other steps are left out.
            kept: steps of it [count].
            waits: what a circuit waits for.
        """
        folded = self.folded
        left_out = (len(run.steps) - kept) * run.shift
        chunks = self.plan.schedule.collective.num_chunks - left_out
        if folded.num_ranks * chunks > MOST_HELD:
            raise UnsupportedError(
                f"device: {folded.num_ranks:,} kinds of ranks x {chunks:,} chunks are more than {MOST_HELD:,}; take fewer nodes"
            )
        sizes = folded.num_ranks, chunks, folded.num_units, folded.num_members
        scheduler = ListScheduler(self.plan, self.size_bytes, self.assumed, waits, sizes)
        number = 0
        for at, (steps, one, common) in enumerate(zip(self.classes, folded.steps, self.common, strict=True)):
            for k in range(kept if at == run.at else len(steps)):
                moved = k * run.shift if at == run.at else -left_out if at > run.at else 0
                first = one.transfers
                if at != run.at and k:  # chunks of other runs move as they like
                    first = self._of_other(steps, k, at)
                scheduler.place(number, _moved(first, moved), common)
                number += 1
        rounds = [len(common.rounds) for common in self.common]
        return scheduler.times(np.array(rounds), DeviceTable.empty())

    def _of_other(self, steps: range, k: int, at: int) -> Transfers:
        """Transfers that are left of step k of a run beside the longest."""
        first, now = (self.plan.schedule.step(steps[i]) for i in (0, k))
        move = np.unique(now.chunk_lo - first.chunk_lo)
        if len(move) > 1:
            raise UnsupportedError("device: chunks of a run move by different distances")
        return _moved(self.folded.steps[at].transfers, int(move[0]))

    def shortened(self, run: _Run, kept: int) -> CircuitPlan:
        """The plan with `kept` steps of its run, as far as a timeline needs it.

        Args:
            run: whose other steps are left out.
            kept: steps of it [count].
        """
        classes, number = [], 0
        for at, steps in enumerate(self.classes):
            length = kept if at == run.at else len(steps)
            classes.append(range(number, number + length))
            number += length
        return replace(self.plan, schedule=replace(self.plan.schedule, num_steps=number, classes=tuple(classes)))


def _run(plan: CircuitPlan) -> _Run:
    """The longest run of a plan, all of whose steps are compared with its first.

    Raises: UnsupportedError: chunks do not move evenly, or steps behind the run need those before it.
    """
    classes, schedule = plan.schedule.step_classes(), plan.schedule
    at = max(range(len(classes)), key=lambda one: len(classes[one]))
    steps = classes[at]
    first, second = schedule.step(steps[0]), schedule.step(steps[1])
    shift = int(second.chunk_lo[0]) - int(first.chunk_lo[0]) if len(first) and len(second) else 0
    even = all(_is_moved(first, schedule.step(step), shift * k) for k, step in enumerate(steps))
    if shift < 1 or not even:
        raise UnsupportedError(f"device: the chunks of {schedule.name} do not move evenly from step to step")
    low, high = _touched([first])
    before = _touched([schedule.step(step) for one in classes[:at] for step in one])
    behind = _touched([schedule.step(step) for one in classes[at + 1 :] for step in one])
    alone = max(0, (before[1] - low) // shift + 1)
    held = (high - low) // shift
    if behind[0] < low + shift * (len(steps) - 1 - held):
        raise UnsupportedError(f"device: steps of {schedule.name} behind its longest run need those before it")
    return _Run(at, steps, shift, held, alone)


def _touched(steps: Sequence[Transfers]) -> tuple[int, int]:
    """First and last chunk of steps; none: (largest number, -1)."""
    low, high = np.iinfo(np.int64).max, -1
    for t in steps:
        if len(t):
            apart = 1 if t.chunk_step is None else t.chunk_step
            low = min(low, int(t.chunk_lo.min()))
            high = max(high, int((t.chunk_lo + (t.chunk_n - 1) * apart).max()))
    return int(low), high


def _is_moved(first: Transfers, now: Transfers, shift: int) -> bool:
    """Whether two steps are equal but for a shift of their chunks."""
    same = all(np.array_equal(getattr(first, name), getattr(now, name)) for name in ("src", "dst", "chunk_n", "op"))
    steps = [t.chunk_step for t in (first, now) if t.chunk_step is not None]
    apart = not steps or (len(steps) == 2 and np.array_equal(steps[0], steps[1]))
    return same and apart and np.array_equal(first.chunk_lo + shift, now.chunk_lo)


def _moved(transfers: Transfers, shift: int) -> Transfers:
    """The same of other chunks."""
    return replace(transfers, chunk_lo=transfers.chunk_lo + np.int32(shift)) if shift else transfers


def _step(builder: ListScheduler, transfers: Transfers, rounds: tuple[Circuits, ...]) -> StepToFold:
    """A step with the times of its circuits.

    Args:
        builder: of the plan.
        transfers, rounds: of the step.
    """
    items, latency, duration, gap = [], [], [], []
    for circuits in rounds:
        rows, _, seconds = transfer_times(builder.fabric, transfers, circuits, builder.chunk_bytes, builder.assumed)
        of_transfer = np.zeros(len(transfers) + 1)
        of_transfer[rows] = seconds
        gap.append(builder.law.gaps_s(transfers, circuits))
        items.append(builder.items(transfers, circuits))
        latency.append(builder.law.of_circuits(circuits))
        duration.append(of_transfer[circuits.transfer] + gap[-1])
    return StepToFold(transfers, rounds, tuple(items), tuple(latency), tuple(duration), tuple(gap))


def _class(plan: CircuitPlan, step: StepToFold, one: FoldedStep, control_s: tuple[float, ...]) -> ClassOfSteps:
    """A class of steps with the circuits that are left of them.

    Args:
        plan: that they are of.
        step: the first of them, whole.
        one: what is left of it.
        control_s: of each round [s].
    """
    rounds, item_at, columns, units, members, settings = [], [], [], [], [], []
    base, times = 0, [device.setting_time_s for device in plan.fabric.devices]
    times_of: list[np.ndarray] = []
    for r, circuits in enumerate(step.rounds):
        order = np.argsort(step.items[r][one.rows[r]], kind="stable")
        rows = one.rows[r][order]
        left, item = circuits.take(rows), step.items[r][rows]
        new = np.ones(len(rows), bool)
        new[1:] = np.diff(item) != 0
        columns.append({
            "transfer": one.transfer[r][order], "latency": step.latency_s[r][rows], "gap": step.gap_s[r][rows],
            "duration": step.duration_s[r][rows], "round": np.full(len(rows), r), "row": rows,
        })  # fmt: skip
        item_at.append(np.append(np.flatnonzero(new), len(rows)) + base)
        rounds.append(replace(left, transfer=one.transfer[r][order].astype(np.int32)))
        units.append(one.units[r][order])
        members.append(one.members[r][order])
        of_devices = list(device_settings(plan.fabric, left))
        settings.append(np.array([setting for _, _, setting in of_devices]).T)
        times_of.append(np.tile([times[kind] for kind, _, _ in of_devices], len(rows)))
        base += len(rows)
    joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
    unit_at, unit = _flat(units)
    member_at, member = _flat(members)
    n = len(member)
    circuit = np.repeat(np.arange(base), np.diff(member_at))
    setting = np.concatenate([one.ravel() for one in settings]).astype(np.int64)
    uses = DeviceUses(
        circuit, member, np.ones(n, np.int64), setting, np.zeros(n), np.concatenate(times_of).astype(float)
    )
    return ClassOfSteps(tuple(rounds), tuple(item_at), joined, unit_at, unit, member_at, uses, control_s)


def _flat(tables: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Rows of tables one after the other: where the entries of each row begin, and the end; the entries."""
    widths = np.concatenate([np.full(len(table), table.shape[1], np.int64) for table in tables])
    entries = np.concatenate([table.ravel() for table in tables]).astype(np.int64)
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64), entries


def _extended(folding: _Folding, run: _Run, waits: Waits) -> Timeline:
    """The timeline of all steps, from two plans with few steps of the run, one of which has one more.

    Args:
        folding: the steps of the plan.
        run: the longest.
        waits: what a circuit waits for.
    Raises: UnsupportedError: starts do not become periodic.
    """
    plan, slot_s = folding.plan, folding.plan.fabric.slot_s
    kept = run.alone + 2 * run.held + LEAST_RUN - 1
    if kept + 1 > len(run.steps):  # all steps are scheduled
        whole = folding.times(run, len(run.steps), waits).timeline(plan, folding.size_bytes, folding.assumed)
        about = {**whole.assumptions, FOLLOWED: "all steps, one circuit of each kind"}
        return replace(
            whole, assumptions=about, rounds=whole.rounds * np.array([len(steps) for steps in folding.classes])
        )
    while kept + 1 <= min(MOST_TRIED, len(run.steps)):
        few, more = folding.times(run, kept, waits), folding.times(run, kept + 1, waits)
        if _periodic(folding, run, kept, few, more):
            break
        kept *= 2
    else:
        raise UnsupportedError(
            f"device: the starts of {plan.schedule.name} on {plan.fabric.name} do not become periodic; take fewer nodes"
        )
    one, two = (
        times.timeline(folding.shortened(run, steps), folding.size_bytes, folding.assumed)
        for times, steps in ((few, kept), (more, kept + 1))
    )
    others = len(run.steps) - kept
    slots = round((two.total_s - one.total_s) / slot_s)
    parts = {
        name: np.maximum(0.0, getattr(one, name) + others * (getattr(two, name) - getattr(one, name)))
        for name in Timeline.PARTS
    }
    total_s = one.total_s + others * slots * slot_s
    parts["transfer_s"][run.at] += total_s - sum(float(part.sum()) for part in parts.values())  # rounding
    rounds = one.rounds * np.array([len(steps) for steps in folding.classes])
    about = {**one.assumptions, FOLLOWED: f"{kept + 1} of {len(run.steps)} equal steps, one circuit of each kind"}
    return replace(one, steps=folding.classes, rounds=rounds, assumptions=about, **parts)


def _periodic(folding: _Folding, run: _Run, kept: int, few: ListTimes, more: ListTimes) -> bool:
    """Whether all starts, from the last steps of the run on, move by the same number of slots with every step.

    Args:
        folding: the steps of the plan.
        run: the longest.
        kept: steps of it in `few`; one more in `more` [count].
        few, more: times of both.
    """
    slot_s = folding.plan.fabric.slot_s
    begin = sum(len(steps) for steps in folding.classes[: run.at])

    def starts(times: ListTimes) -> list[IntArray]:
        slot = np.rint(times.circuits["start"] / slot_s).astype(np.int64)
        step = times.circuits["step"]
        return np.split(slot, np.searchsorted(step, np.arange(1, int(step.max()) + 1)))

    short, long = starts(few), starts(more)
    in_run = long[begin + kept - 2 * run.held - 1 : begin + kept + 1]
    pairs = [*pairwise(in_run), *zip(short[begin + kept :], long[begin + kept + 1 :], strict=True)]
    moves = np.unique(np.concatenate([after - before for before, after in pairs]))
    ends = round((more.total_s - few.total_s) / slot_s)
    return len(moves) == 1 and int(moves[0]) > 0 and ends == int(moves[0])
