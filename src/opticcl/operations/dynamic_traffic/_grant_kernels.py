"""Compiled kernels of the schedulers with one queue: grants on words of bits, one request after the other or in rounds.

The named columns are given to them as plain tuples.
"""

from __future__ import annotations

import numpy as np

from opticcl.kernels import kept_with, njit
from opticcl.operations.dynamic_traffic import _columns
from opticcl.operations.dynamic_traffic._columns import (
    Ended,
    FreeWords,
    Granted,
    Waiting,
    common_words,
    take_words,
    write_end,
    write_grant,
)

__all__ = ["grant_iteratively", "grant_oldest_first"]

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


@kept_with(_columns)
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
        one, two: numbers of the racks in the machine.
        racks: of a group [count].
        groups: of the machine [count].
    """
    a = (two // racks - one // racks - one % racks) % groups
    return a * racks + (two % racks - one % racks) % racks


@njit(cache=False)
def _order_by_arbiter(waiting, count, rack, num_racks):  # type: ignore[no-untyped-def]
    """Rows of the requests by pair of racks, within a pair in their order."""
    ends = np.zeros(num_racks * num_racks + 1, np.int64)
    for i in range(count):
        ends[rack[waiting.src[i]] * num_racks + rack[waiting.dst[i]] + 1] += 1
    for k in range(num_racks * num_racks):
        ends[k + 1] += ends[k]
    order = np.empty(count, np.int32)
    for i in range(count):
        pair = rack[waiting.src[i]] * num_racks + rack[waiting.dst[i]]
        order[ends[pair]] = i
        ends[pair] += 1
    return order


@njit(cache=False)
def _propose(waiting, free, order, offset, rack, num_racks, groups, bits, per_bit, turn):  # type: ignore[no-untyped-def]
    """Bits that each request proposes: its arbiter knows the words at the start of the round and its own proposals.

    Args:
        waiting, free: requests and free cells.
        order: of the requests, by arbiter.
        offset: of the bits of each request.
        rack, num_racks, groups, bits, per_bit, turn: as of `grant_iteratively`.
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


@kept_with(_columns)
@njit
def grant_iteratively(  # type: ignore[no-untyped-def]
    waiting, count, free, rack, num_racks, groups, bits, planes, per_bit, start, turn, rounds, granted, ended
):
    """Grant in rounds: an arbiter for each pair of racks proposes, then every sender, receiver and channel takes one a bit.

    A bit belongs to one pair of racks of each rack in this epoch (`turn` moves them on); its proposal wins, then the older.

    Args:
        waiting, count, free: as of `grant_oldest_first`.
        rack: number of the rack of each node in the machine.
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
    order = _order_by_arbiter(waiting, count, rack, num_racks)
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
