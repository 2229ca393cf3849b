"""Light whose paths are straight, many steps at a time and without a list of links.

A circuit occupies an arc: some links of one line from a first one on. Within a step and a wavelength each arc of a line is
compared with the others, where these are few. Otherwise they are sorted by their starts; each must end before the next begins,
the last of them, which may pass the end of the line, before the first. Of every other resource a circuit occupies one instance,
which no other may have on its wavelength. The cost is that of sorting the circuits at most, however long their paths are.

A step is clean if nothing is wrong with it. Whatever is not found clean is left to `light`, which names what is wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import CircuitPlan, Fabric, IntArray, ProgressCallback, Usage
from opticcl.ir.fabric import StraightUsage
from opticcl.ir.step_blocks import ArcBlock, StepBlock, step_blocks
from opticcl.kernels import njit, worth_compiling

__all__ = ["clean_steps", "steps_to_list"]

MOST_COMPARED = 8
"""Arcs of its step and line that each is compared with, on average, instead of sorting them [count]."""


def steps_to_list(plan: CircuitPlan, *, progress: ProgressCallback) -> tuple[list[range], int]:
    """Classes of steps that have to be counted circuit by circuit, and the number of circuits of all others, which are clean.

    Args:
        plan: whose classes are all steps, each once and in order.
        progress: called after every block of steps.
    """
    blocks = step_blocks(plan.schedule)
    if blocks is None or plan.fabric.conditions:
        return list(plan.schedule.step_classes()), 0
    left: list[range] = []
    total = 0
    for steps in blocks:
        circuits = plan.block(steps)
        clean = None if circuits is None else clean_steps(plan.fabric, steps, circuits)
        if clean is None:
            clean = np.zeros(len(steps), bool)
        total += int(np.diff(steps.starts)[clean].sum())
        left += [range(i, i + 1) for i in (steps.first + np.flatnonzero(~clean)).tolist()]
        progress("count the light", steps.first + len(steps), plan.schedule.num_steps)
    return left, total


def clean_steps(fabric: Fabric, steps: StepBlock, circuits: ArcBlock) -> npt.NDArray[np.bool_] | None:
    """Which steps of a block break no rule, bool (steps,); None where the fabric, or the block, cannot be judged in this way.

    Args:
        fabric: that nothing has failed of.
        steps: with their transfers.
        circuits: one for each transfer.
    """
    transfers, n = steps.transfers, len(steps.transfers)
    columns = circuits.src, circuits.dst, circuits.port, circuits.wavelength
    if any(len(column) != n for column in columns):
        return None
    clean = np.ones(len(steps), bool)
    if not n:
        return clean
    of_row = np.repeat(np.arange(len(steps)), np.diff(steps.starts))
    wrong = (circuits.src != fabric.machine_nodes(transfers.src)) | (
        circuits.dst != fabric.machine_nodes(transfers.dst)
    )
    nodes, depth = fabric.num_machine_nodes, fabric.num_wavelengths
    for column, count in zip(columns, (nodes, nodes, fabric.ports_per_node, depth), strict=True):
        wrong |= (column < 0) | (column >= count)
    if wrong.any():  # what does not exist occupies nothing
        return _without(of_row, wrong, fabric, steps, circuits)
    usage = fabric.straight_usage(circuits)
    if usage is None or not _exclusive(fabric, usage):
        return None
    wrong = _impossible(usage)
    if wrong.any():
        return _without(of_row, wrong, fabric, steps, circuits)
    clean[_crossing(of_row, circuits.wavelength, usage, depth)] = False
    for other in usage.others:
        clean[_twice(of_row, circuits.wavelength, other, depth)] = False
    return clean


def _without(
    of_row: IntArray, wrong: npt.NDArray[np.bool_], fabric: Fabric, steps: StepBlock, circuits: ArcBlock
) -> npt.NDArray[np.bool_] | None:
    """As `clean_steps`, where some steps have circuits that do not exist.

    Args:
        of_row: step of each circuit.
        wrong: which circuits do not exist, or join other nodes than their transfers.
        fabric, steps, circuits: as of `clean_steps`.
    """
    clean = np.ones(len(steps), bool)
    clean[of_row[wrong]] = False
    rows = np.flatnonzero(clean[of_row])
    starts = np.searchsorted(rows, steps.starts)
    kept = StepBlock(steps.first, steps.transfers.take(rows), starts)
    some = ArcBlock(circuits.src[rows], circuits.dst[rows], circuits.port[rows], circuits.wavelength[rows])
    others = clean_steps(fabric, kept, some)
    return None if others is None else clean & others


def _exclusive(fabric: Fabric, usage: StraightUsage) -> bool:
    """Whether all resources of the fabric are counted, each is for one circuit on a wavelength, and all lines are as long."""
    counted = {usage.resource, *(other.resource for other in usage.others)}
    plain = all(
        r.capacity == 1 and r.per_wavelength and not (r.shared or r.once_per_job or r.one_setting or r.in_wavelengths)
        for r in counted
    )
    whole = all(other.circuit is None and other.amount is None for other in usage.others)
    side = usage.links.side
    equal = bool((side == side.flat[0]).all() and (usage.links.first % side == 0).all())
    return plain and whole and equal and counted == set(fabric.resources)


def _impossible(usage: StraightUsage) -> npt.NDArray[np.bool_]:
    """Which circuits occupy what does not exist, or no link, bool (circuits,)."""
    links = usage.links
    wrong = (links.length < 1) | (links.length > links.side) | (links.start < 0) | (links.start >= links.side)
    wrong |= (links.first < 0) | (links.first + links.side > usage.resource.count)
    for other in usage.others:
        wrong |= (other.index < 0) | (other.index >= other.resource.count)
    return wrong


def _crossing(of_row: IntArray, wavelength: IntArray, usage: StraightUsage, depth: int) -> IntArray:
    """Steps in which arcs of one line and wavelength share a link.

    Args:
        of_row: step of each circuit, ascending.
        wavelength: of each circuit.
        usage: of the circuits, which exist.
        depth: wavelengths of the fabric [count].
    """
    start, length, side = usage.links.start, usage.links.length, int(usage.links.side[0])
    line, lines = usage.links.first // side * depth + wavelength, usage.resource.count // side * depth
    if worth_compiling(len(line), _overlapping):
        found, compared = _overlapping(of_row, line, lines, start, length, side)
        if compared:
            return of_row[found]
    order = np.lexsort([start, line, of_row])
    group = line[order] + of_row[order] * lines
    begin = start[order]
    end = begin + length[order]
    new = np.flatnonzero(group[1:] != group[:-1])
    next_begin = np.roll(begin, -1)
    # behind the last of a group comes its first, once round
    next_begin[np.append(new, len(order) - 1)] = begin[np.concatenate([[0], new + 1])] + side
    return of_row[order[end > next_begin]]


def _twice(of_row: IntArray, wavelength: IntArray, usage: Usage, depth: int) -> IntArray:
    """Steps in which an instance has two circuits on one wavelength.

    Args:
        of_row: step of each circuit, ascending.
        wavelength: of each circuit.
        usage: of one resource.
        depth: wavelengths of the fabric [count].
    """
    cell = usage.index * depth + wavelength
    if worth_compiling(len(cell), _again):
        return of_row[_again(of_row, cell, usage.resource.count * depth)]
    order = np.argsort(cell, kind="stable")
    again = (cell[order[1:]] == cell[order[:-1]]) & (of_row[order[1:]] == of_row[order[:-1]])
    return of_row[order[1:][again]]


@njit
def _overlapping(of_row, line, lines, start, length, side):  # type: ignore[no-untyped-def]
    """Arcs that share a place with an earlier one of the same step and line, bool (n,); whether all were compared.

    Each is compared with every earlier one of its step and line, which only suits short lists: it ends where they are long.
    """
    last, earlier = np.full(lines, -1, np.int32), np.empty(len(line), np.int32)
    found, compared = np.zeros(len(line), np.bool_), 0
    for row in range(len(line)):
        at = earlier[row] = last[line[row]]
        last[line[row]] = row
        while at >= 0 and of_row[at] == of_row[row]:
            apart = np.int64(start[row]) - start[at]
            if apart >= 0:
                found[row] |= apart < length[at] or side - apart < length[row]
            else:
                found[row] |= -apart < length[row] or side + apart < length[at]
            at = earlier[at]
            compared += 1
        if compared > MOST_COMPARED * len(line):
            return found, False
    return found, True


@njit
def _again(of_row, cell, cells):  # type: ignore[no-untyped-def]
    """Rows whose cell an earlier row of the same step has; rows are in the order of their steps."""
    taken, found = np.zeros(cells // 8 + 1, np.uint8), np.zeros(len(cell), np.bool_)
    first = 0
    for row in range(len(cell)):
        if of_row[row] != of_row[first]:
            for before in range(first, row):
                taken[cell[before] >> 3] = 0
            first = row
        bit = np.uint8(1 << (cell[row] & 7))
        found[row] = taken[cell[row] >> 3] & bit > 0
        taken[cell[row] >> 3] |= bit
    return found
