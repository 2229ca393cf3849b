"""Compiled kernels of the schedulers: grants of one queue on words of bits, and the queues of the cyclic scheduler.

All of them stand in this file, since numba compiles a kernel that is on the disk again when its own file changes, whatever
becomes of others. The named columns are given to them as plain tuples.

A word holds the cells (slot, plane) of an epoch that are free: bit slot * planes + plane, in 64-bit parts, lowest first. A
circuit has a cell if the words of its sender, its receiver and its channel have the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.kernels import njit

__all__ = [
    "CycleQueues",
    "Ended",
    "FreeWords",
    "Granted",
    "Waiting",
    "Words",
    "grant_iteratively",
    "grant_oldest_first",
    "insert_requests",
    "serve_epoch",
]

# --- columns, and what is done to one row of them ---------------------------------------------------------------------

Words = npt.NDArray[np.uint64]


class Waiting(NamedTuple):
    """Requests that wait, oldest first, int32 (n,) each.

    Args:
        arrival: slot in which they arrived.
        src, dst: nodes.
        cells: that are left of them.
        size: that they had.
    """

    arrival: IntArray
    src: IntArray
    dst: IntArray
    cells: IntArray
    size: IntArray


class FreeWords(NamedTuple):
    """Cells of an epoch that are free, and where the word of a channel is.

    Args:
        send, receive: of the nodes, uint64 (nodes, parts) each.
        channel: of the channels, uint64 (channels, parts).
        send_part, receive_part: of the number of the channel between two nodes, which is their sum, int64 (nodes,) each.
    """

    send: Words
    receive: Words
    channel: Words
    send_part: IntArray
    receive_part: IntArray


class Granted(NamedTuple):
    """Grants of an epoch, int32 (n,) each, as `opticcl.ir.epochs.EpochGrants` describes them."""

    src: IntArray
    dst: IntArray
    bit: IntArray
    cells: IntArray
    arrival: IntArray


class Ended(NamedTuple):
    """Flows that end in an epoch, int32 (n,) each: slot of arrival, size [cells], slot after the last."""

    arrival: IntArray
    size: IntArray
    slot: IntArray


@njit(cache=False)
def common_words(free, source, target, part):  # type: ignore[no-untyped-def]
    """Cells that a circuit can have.

    Args:
        free: words.
        source, target: nodes.
        part: of the words.
    """
    channel = free.send_part[source] + free.receive_part[target]
    return free.send[source, part] & free.receive[target, part] & free.channel[channel, part]


@njit(cache=False)
def take_words(free, source, target, part, cells):  # type: ignore[no-untyped-def]
    """Cells are no longer free for circuits that have an end or the channel in common.

    Args:
        free: words, changed.
        source, target: nodes.
        part: of the words.
        cells: of that part.
    """
    channel = free.send_part[source] + free.receive_part[target]
    free.send[source, part] &= ~cells
    free.receive[target, part] &= ~cells
    free.channel[channel, part] &= ~cells


@njit(cache=False)
def write_grant(granted, row, source, target, bit, cells, arrival):  # type: ignore[no-untyped-def]
    """Write a row of the grants.

    Args:
        granted: changed.
        row: number.
        source, target, bit, cells, arrival: its values.
    """
    granted.src[row], granted.dst[row], granted.bit[row] = source, target, bit
    granted.cells[row], granted.arrival[row] = cells, arrival


@njit(cache=False)
def write_end(ended, row, arrival, size, slot):  # type: ignore[no-untyped-def]
    """Write a row of the flows that end.

    Args:
        ended: changed.
        row: number.
        arrival, size, slot: its values.
    """
    ended.arrival[row], ended.size[row], ended.slot[row] = arrival, size, slot


# --- one queue: one request after the other, or in rounds -------------------------------------------------------------

_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)  # de Bruijn sequence of 64 bits
_PLACE = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACE[((0x03F79D71B4CB0A89 << _bit) % 2**64) >> 58] = _bit


@njit(inline="always")
def _lowest_bit(word):  # type: ignore[no-untyped-def]
    """Place of the lowest bit of a word that is not zero."""
    low = word & (~word + np.uint64(1))
    return _PLACE[(low * _SEQUENCE) >> np.uint64(58)]


@njit(cache=False)
def _keep(waiting, row, kept):  # type: ignore[no-untyped-def]
    """Move a request that is left to the front of the columns."""
    waiting.arrival[kept], waiting.src[kept], waiting.dst[kept] = (
        waiting.arrival[row],
        waiting.src[row],
        waiting.dst[row],
    )
    waiting.cells[kept], waiting.size[kept] = waiting.cells[row], waiting.size[row]


@njit
def grant_oldest_first(waiting, count, free, masks, rack, planes, per_bit, start, granted, ended):  # type: ignore[no-untyped-def]
    """Grant the lowest free bits to each request in order; requests that are left move to the front of the columns.

    Args:
        waiting: requests, changed.
        count: of the requests.
        free: cells, changed.
        masks: cells that a pair may use, by the sum of the numbers `rack` of its ends.
        rack: of each node.
        planes: bits of a slot [count].
        per_bit: cells that a bit carries [count].
        start: first slot of the epoch.
        granted, ended: written.
    Returns: (grants, requests done, requests left, cells granted).
    """
    waiting, free, granted, ended = Waiting(*waiting), FreeWords(*free), Granted(*granted), Ended(*ended)
    parts = free.send.shape[1]
    grants, done, kept, cells_granted = 0, 0, 0, 0
    for i in range(count):
        source, target = waiting.src[i], waiting.dst[i]
        left = waiting.cells[i]
        kind = (rack[source] + rack[target]) % len(masks)
        bit = np.int64(0)
        for part in range(parts):
            word = common_words(free, source, target, part) & masks[kind, part]
            taken = np.uint64(0)
            while word != 0 and left > 0:
                at = _lowest_bit(word)
                low = np.uint64(1) << np.uint64(at)
                word ^= low
                taken |= low
                bit = part * 64 + at
                carried = min(left, per_bit)
                left -= carried
                cells_granted += carried
                write_grant(granted, grants, source, target, bit, carried, waiting.arrival[i])
                grants += 1
            if taken != 0:
                take_words(free, source, target, part, taken)
            if left == 0:
                break
        waiting.cells[i] = left
        if left == 0:
            write_end(ended, done, waiting.arrival[i], waiting.size[i], start + bit // planes + 1)
            done += 1
        else:
            _keep(waiting, i, kept)
            kept += 1
    return grants, done, kept, cells_granted


@njit(inline="always")
def _label_of_racks(one, two, racks, groups):  # type: ignore[no-untyped-def]
    """Number of the exchange in which rack `one` sends to rack `two`: (g, j) -> (g + j + a, j + b) has number a racks + b.

    Args:
        racks: of a group [count].
        groups: of the machine [count].
    """
    a = (two // racks - one // racks - one % racks) % groups
    return a * racks + (two % racks - one % racks) % racks


@njit(cache=False)
def _propose(waiting, free, order, offset, rack, num_racks, groups, bits, per_bit, turn):  # type: ignore[no-untyped-def]
    """Bits that each request proposes: its arbiter knows the words at the start of the round and its own proposals.

    Returns: (numbers of bits proposed by each request, the bits).
    """
    num_nodes, parts = free.send.shape
    racks = num_racks // groups
    mine = np.zeros((2 * num_nodes + len(free.channel), parts), np.uint64)  # taken by this arbiter
    owner = np.full(len(mine), -1, np.int64)
    proposed = np.zeros(len(order), np.int32)
    bits_of = np.empty(offset[len(order)], np.int32)
    for i in order:
        source, target = waiting.src[i], waiting.dst[i]
        one, two = rack[source], rack[target]
        pair = one * num_racks + two
        channel = free.send_part[source] + free.receive_part[target]
        at = np.int64(source), num_nodes + np.int64(target), 2 * num_nodes + np.int64(channel)
        for row in at:
            if owner[row] != pair:
                owner[row] = pair
                for part in range(parts):
                    mine[row, part] = 0
        first = (_label_of_racks(one, two, racks, groups) - turn) % num_racks % bits
        wanted = min(-(-waiting.cells[i] // per_bit), bits)
        count = 0
        for step in range(parts + 1):  # from `first` around the word
            part = (first >> 6) + step
            part -= parts if part >= parts else 0
            word = common_words(free, source, target, part)
            word &= ~(mine[at[0], part] | mine[at[1], part] | mine[at[2], part])
            if step == 0:
                word &= ~np.uint64(0) << np.uint64(first & 63)
            elif step == parts:
                word &= ~(~np.uint64(0) << np.uint64(first & 63))
            taken = np.uint64(0)
            while word != 0 and count < wanted:
                bit = _lowest_bit(word)
                low = np.uint64(1) << np.uint64(bit)
                word ^= low
                taken |= low
                bits_of[offset[i] + count] = part * 64 + bit
                count += 1
            if taken != 0:
                for row in at:
                    mine[row, part] |= taken
            if count == wanted:
                break
        proposed[i] = count
    return proposed, bits_of


@njit
def grant_iteratively(  # type: ignore[no-untyped-def]
    waiting, count, free, rack, order, num_racks, groups, bits, planes, per_bit, start, turn, rounds, granted, ended
):
    """Grant in rounds: an arbiter for each pair of racks proposes, then every sender, receiver and channel takes one a bit.

    A bit belongs to one pair of racks of each rack in this epoch (`turn` moves them on); its proposal wins, then the older.

    Args:
        waiting, count, free: as of `grant_oldest_first`.
        rack: number of the rack of each node in the machine.
        order: rows of the requests by pair of racks, within a pair in their order.
        num_racks, groups: of the machine [count].
        bits: of a word [count].
        planes, per_bit, start: as of `grant_oldest_first`.
        turn: bits of the epochs before [count].
        rounds: at most [count].
        granted, ended: written.
    Returns: (grants, requests done, requests left, cells granted, rounds used).
    """
    waiting, free, granted, ended = Waiting(*waiting), FreeWords(*free), Granted(*granted), Ended(*ended)
    grants, cells_granted, used = 0, 0, 0
    last = np.zeros(count, np.int64)
    offset = np.zeros(count + 1, np.int64)
    racks = num_racks // groups
    for _ in range(rounds):
        for i in range(count):
            offset[i + 1] = offset[i] + min(-(-waiting.cells[i] // per_bit), bits)
        proposed, bits_of = _propose(waiting, free, order, offset, rack, num_racks, groups, bits, per_bit, turn)
        before = grants
        for owned in (True, False):
            for i in range(count):
                source, target = waiting.src[i], waiting.dst[i]
                towards = _label_of_racks(rack[source], rack[target], racks, groups)
                for k in range(offset[i], offset[i] + proposed[i]):
                    bit = bits_of[k]
                    if ((bit + turn - towards) % num_racks == 0) != owned or waiting.cells[i] == 0:
                        continue
                    part, low = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
                    if common_words(free, source, target, part) & low == 0:
                        continue
                    take_words(free, source, target, part, low)
                    carried = min(waiting.cells[i], per_bit)
                    waiting.cells[i] -= carried
                    cells_granted += carried
                    last[i] = max(last[i], start + bit // planes + 1)
                    write_grant(granted, grants, source, target, bit, carried, waiting.arrival[i])
                    grants += 1
        if grants == before:
            break
        used += 1
    done, kept = 0, 0
    for i in range(count):
        if waiting.cells[i] == 0:
            write_end(ended, done, waiting.arrival[i], waiting.size[i], last[i])
            done += 1
        else:
            _keep(waiting, i, kept)
            kept += 1
    return grants, done, kept, cells_granted, used


# --- the cyclic scheduler: queues by label of the cycle, as linked lists ----------------------------------------------

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
        cells: that arrive [count].
    """
    counted[DELIVERED] += cells
    left = queues.flows[flow]
    left[0] -= cells
    if left[0] == 0:
        write_end(ended, counted[ENDS], left[2], left[1], slot + 1)
        counted[ENDS] += 1
        queues.free_flows[queues.counts[1]] = flow
        queues.counts[1] += 1


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
        per_bit: cells of a plane in a slot [count].
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
