"""Compiled kernels of the cyclic scheduler: queues by label of the cycle, as linked lists.

The named columns are given to them as plain tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import kept_with, njit
from opticcl.operations.dynamic_traffic import _columns
from opticcl.operations.dynamic_traffic._columns import Ended, FreeWords, Granted, common_words, write_end, write_grant

__all__ = ["CycleQueues", "insert_requests", "serve_epoch"]

AT, TO, LEFT, ARRIVAL, FLOW, READY, NEXT = 0, 1, 2, 3, 4, 5, 6
"""Columns of a record: node that has it, receiver, cells, slot of arrival, flow, slot from which it may go, next record."""

GRANTS, ENDS, DELIVERED = 0, 1, 2
"""What is counted in an epoch: circuits, flows that end, cells that reach their receivers."""


class CycleQueues(NamedTuple):
    """Cells that wait, as records in linked lists.

    Args:
        records: int32 (n, 7), see the columns above.
        free: numbers of the free records, int32 (n,).
        flows: cells left, size and arrival of each flow, int32 (m, 3).
        free_flows: numbers of the free flows, int32 (m,).
        counts: [0]: free records, [1]: free flows.
        lists: first and last record of each label, int32 (nodes, 2); -1: none.
        heads: the same of each node, for cells that go by way of any other.
        shape: groups, racks, devices [count].
    """

    records: IntArray
    free: IntArray
    flows: IntArray
    free_flows: IntArray
    counts: IntArray
    lists: IntArray
    heads: IntArray
    shape: IntArray


@njit(inline="always")
def _label(one, two, shape):  # type: ignore[no-untyped-def]
    """Number of the permutation in which node `one` sends to node `two`."""
    groups, racks, devices = shape[0], shape[1], shape[2]
    rack_one, rack_two = one // devices, two // devices
    a = (rack_two // racks - rack_one // racks - rack_one % racks) % groups
    d = (rack_two % racks - rack_one % racks) % racks
    c = (two % devices - one % devices) % devices
    return (c * racks + d) * groups + a


@njit(inline="always")
def _met(one, label, shape):  # type: ignore[no-untyped-def]
    """Node to which node `one` sends in the permutation with that number."""
    groups, racks, devices = shape[0], shape[1], shape[2]
    a, d, c = label % groups, label // groups % racks, label // (groups * racks)
    rack = one // devices
    to = (rack // racks + rack % racks + a) % groups * racks + (rack % racks + d) % racks
    return to * devices + (one % devices + c) % devices


@njit(cache=False)
def _append(queues, lists, which, source, target, cells, arrival, flow, ready):  # type: ignore[no-untyped-def]
    """A new record at the end of a list.

    Args:
        queues: changed.
        lists: those of labels or of nodes.
        which: list.
        source, target, cells, arrival, flow, ready: of the record.
    """
    records, counts = queues.records, queues.counts
    counts[0] -= 1
    row = queues.free[counts[0]]
    records[row, AT], records[row, TO], records[row, LEFT] = source, target, cells
    records[row, ARRIVAL], records[row, FLOW], records[row, READY] = arrival, flow, ready
    records[row, NEXT] = -1
    if lists[which, 1] >= 0:
        records[lists[which, 1], NEXT] = row
    else:
        lists[which, 0] = row
    lists[which, 1] = row


@njit(cache=False)
def _remove(queues, lists, which, before, row):  # type: ignore[no-untyped-def]
    """Take a record out of a list. Args: before: the one before it; -1: it is the first."""
    after = queues.records[row, NEXT]
    if before >= 0:
        queues.records[before, NEXT] = after
    else:
        lists[which, 0] = after
    if after < 0:
        lists[which, 1] = before
    queues.free[queues.counts[0]] = row
    queues.counts[0] += 1


@njit(cache=False)
def _deliver(queues, flow, cells, slot, ended, counted):  # type: ignore[no-untyped-def]
    """Cells of a flow reach their receiver; with the last of them it ends.

    Args:
        queues, ended, counted: changed.
        flow: number of the flow.
        cells: that arrive [count].
        slot: in which they are sent.
    """
    counted[DELIVERED] += cells
    left = queues.flows[flow]
    left[0] -= cells
    if left[0] == 0:
        write_end(ended, counted[ENDS], left[2], left[1], slot + 1)
        counted[ENDS] += 1
        queues.free_flows[queues.counts[1]] = flow
        queues.counts[1] += 1


@kept_with(_columns)
@njit
def insert_requests(src, dst, cells, arrival, queues, two_hops):  # type: ignore[no-untyped-def]
    """Make a record and a flow of each request.

    Args:
        src, dst, cells, arrival: requests.
        queues: changed.
        two_hops: whether they wait at their node for any other.
    """
    queues = CycleQueues(*queues)
    for i in range(len(src)):
        queues.counts[1] -= 1
        flow = queues.free_flows[queues.counts[1]]
        queues.flows[flow, 0], queues.flows[flow, 1], queues.flows[flow, 2] = cells[i], cells[i], arrival[i]
        lists, which = queues.lists, _label(src[i], dst[i], queues.shape)
        if two_hops:
            lists, which = queues.heads, np.int64(src[i])
        _append(queues, lists, which, src[i], dst[i], cells[i], arrival[i], flow, arrival[i] + 1)


@njit(cache=False)
def _serve_label(queues, label, slot, bit, free, per_bit, carried, granted, ended, counted):  # type: ignore[no-untyped-def]
    """Send what waits for the permutation of a plane; arguments as of `_spread`."""
    part, low = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
    records = queues.records
    before, row = -1, queues.lists[label, 0]
    while row >= 0:
        here, to, after = records[row, AT], records[row, TO], records[row, NEXT]
        most = min(records[row, LEFT], per_bit - carried[here])
        if most <= 0 or common_words(free, here, to, part) & low == 0 or records[row, READY] > slot:
            before, row = row, after
            continue
        carried[here] = per_bit  # a plane carries one request in a slot
        records[row, LEFT] -= most
        write_grant(granted, counted[GRANTS], here, to, bit, most, records[row, ARRIVAL])
        counted[GRANTS] += 1
        _deliver(queues, records[row, FLOW], most, slot, ended, counted)
        if records[row, LEFT] == 0:
            _remove(queues, queues.lists, label, before, row)
        else:
            before = row
        row = after


@njit(cache=False)
def _spread(queues, label, slot, bit, free, per_bit, carried, granted, ended, counted):  # type: ignore[no-untyped-def]
    """Send what waits at the nodes to those that the permutation of a plane meets, where its cells are still free.

    Args:
        queues: changed.
        label: number of the permutation.
        slot: number of the slot.
        bit: of the slot and the plane.
        free: cells.
        per_bit: cells of a plane in a slot [count].
        carried: of each node in this plane, not 0 where it sends already.
        granted, ended, counted: written.
    """
    part, low = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
    records = queues.records
    for here in range(len(queues.heads)):
        row = queues.heads[here, 0]
        if row < 0 or records[row, READY] > slot or carried[here] > 0:
            continue
        middle = _met(here, label, queues.shape)
        if middle == here or common_words(free, here, middle, part) & low == 0:
            continue
        most = min(records[row, LEFT], per_bit)
        records[row, LEFT] -= most
        target, arrival, flow = records[row, TO], records[row, ARRIVAL], records[row, FLOW]
        is_there = middle == target
        write_grant(granted, counted[GRANTS], here, middle, bit, most, arrival if is_there else -1)
        counted[GRANTS] += 1
        if is_there:
            _deliver(queues, flow, most, slot, ended, counted)
        else:
            second = _label(middle, target, queues.shape)
            _append(queues, queues.lists, second, middle, target, most, arrival, flow, slot + 1)
        if records[row, LEFT] == 0:
            _remove(queues, queues.heads, here, -1, row)


@kept_with(_columns)
@njit
def serve_epoch(start, slots, per_bit, queues, free, two_hops, granted, ended):  # type: ignore[no-untyped-def]
    """One epoch of the cycle: returns (circuits, flows ended, cells that reached their receivers).

    Args:
        start, slots: first slot, and slots of an epoch.
        per_bit: cells of a plane in a slot [count].
        queues: changed.
        free: cells.
        two_hops: as of `insert_requests`.
        granted, ended: written.
    """
    queues, free, granted, ended = CycleQueues(*queues), FreeWords(*free), Granted(*granted), Ended(*ended)
    groups, num_nodes = queues.shape[0], len(queues.lists)
    carried = np.zeros(num_nodes, np.int64)
    counted = np.zeros(3, np.int64)
    for slot in range(start, start + slots):
        for plane in range(groups):
            label, bit = (slot * groups + plane) % num_nodes, (slot - start) * groups + plane
            carried[:] = 0
            _serve_label(queues, label, slot, bit, free, per_bit, carried, granted, ended, counted)
            if two_hops:
                _spread(queues, label, slot, bit, free, per_bit, carried, granted, ended, counted)
    return counted[GRANTS], counted[ENDS], counted[DELIVERED]
