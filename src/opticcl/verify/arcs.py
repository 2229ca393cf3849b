"""Light whose paths are straight, many steps at a time and without a list of links.

A circuit occupies an arc: some links of one line from a first one on. Within a step and a wavelength the arcs of a line are
sorted by their starts; each must end before the next begins, the last of them, which may pass the end of the line, before the
first. Of every other resource a circuit occupies one instance, which no other may have on its wavelength. The cost is that of
sorting the circuits, however long their paths are.

A step is clean if nothing is wrong with it. Whatever is not found clean is left to `light`, which names what is wrong.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from opticcl.ir import CircuitPlan, Fabric, IntArray, ProgressCallback, Usage
from opticcl.ir.fabric import StraightUsage
from opticcl.ir.step_blocks import ArcBlock, StepBlock, step_blocks
from opticcl.kernels import worth_compiling

__all__ = ["clean_steps", "steps_to_list"]


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
    order = _ascending(((start, side), (line, lines), (of_row, int(of_row[-1]) + 1)))
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


def _ascending(columns: tuple[tuple[IntArray, int], ...]) -> IntArray:
    """Rows by the last column, then by the one before it, ...; int64 (n,).

    Args: columns: values and the number above all of them.
    """
    if not worth_compiling(len(columns[0][0]), _counted_out):
        return np.lexsort([column for column, _ in columns])
    order = np.arange(len(columns[0][0]))
    for column, most in columns:
        order = _counted_out(column, most, order)
    return order


@numba.njit(cache=True, nogil=True)
def _counted_out(values, most, order):  # type: ignore[no-untyped-def]
    """Rows in an order, stably sorted by values below `most`."""
    places = np.zeros(most + 1, np.int64)
    for value in values:
        places[value + 1] += 1
    for at in range(most):
        places[at + 1] += places[at]
    found = np.empty_like(order)
    for row in order:
        found[places[values[row]]] = row
        places[values[row]] += 1
    return found


@numba.njit(cache=True, nogil=True)
def _again(of_row, cell, cells):  # type: ignore[no-untyped-def]
    """Rows whose cell an earlier row of the same step has; rows are in the order of their steps."""
    last = np.full(cells, -1, np.int32)
    found = np.zeros(len(cell), np.bool_)
    for row in range(len(cell)):
        found[row] = last[cell[row]] == of_row[row]
        last[cell[row]] = of_row[row]
    return found
