"""Compiled kernels of the schedulers: random arrivals, grants on words of bits, counts of delays.

A word holds the cells (slot, plane) of an epoch that are free: bit slot * planes + plane, in 64-bit parts, lowest first.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = [
    "BINS",
    "count_delays",
    "count_ends",
    "draw_epoch",
    "grant_iteratively",
    "grant_oldest_first",
    "value_of_bin",
]

_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)  # de Bruijn sequence of 64 bits
_PLACE = np.zeros(64, np.int64)
for _bit in range(64):
    _PLACE[((0x03F79D71B4CB0A89 << _bit) % 2**64) >> 58] = _bit

EXACT = 2048
"""Delays below this have a bin of their own [slots]; larger ones share bins of 1/1024 of their value."""

BINS = EXACT + 40 * 1024
"""Bins of a histogram of delays [count]."""


@numba.njit(cache=True, nogil=True, inline="always")
def _lowest_bit(word):  # type: ignore[no-untyped-def]
    """Place of the lowest bit of a word that is not zero."""
    low = word & (~word + np.uint64(1))
    return _PLACE[(low * _SEQUENCE) >> np.uint64(58)]


@numba.njit(cache=True, nogil=True, inline="always")
def _random(state):  # type: ignore[no-untyped-def]
    """Next 64 random bits: the generator xoroshiro128+ of Blackman and Vigna; `state` has two words."""
    one, two = state[0], state[1]
    found = one + two
    two ^= one
    state[0] = ((one << np.uint64(24)) | (one >> np.uint64(40))) ^ two ^ (two << np.uint64(16))
    state[1] = (two << np.uint64(37)) | (two >> np.uint64(27))
    return found


@numba.njit(cache=True, nogil=True, inline="always")
def _uniform(state):  # type: ignore[no-untyped-def]
    """A number in [0, 1)."""
    return np.float64(_random(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@numba.njit(cache=True, nogil=True, inline="always")
def _pick(state, chance, other):  # type: ignore[no-untyped-def]
    """A node by the method of aliases: one column, then the column itself or its alias."""
    drawn = _uniform(state) * len(chance)
    column = np.int64(drawn)
    return column if drawn - column < chance[column] else np.int64(other[column])


@numba.njit(cache=True, nogil=True)
def draw_epoch(  # type: ignore[no-untyped-def]
    state, clock, end, gaps, mean_gap, sizes, chance, other, weights, rack_nodes, share, arrival, src, dst, cells
):
    """Flows that arrive before `end`; returns their number and their cells. Full columns end it before clock[0] reaches `end`.

    Args:
        state: of the generator of random numbers, changed.
        clock: [0]: time of the next arrival [slots], changed.
        end: of the epoch [slots].
        gaps: equally likely gaps over their mean; one: exponential.
        mean_gap: between arrivals [slots].
        sizes: equally likely sizes [cells].
        chance, other: aliases of the nodes by weight.
        weights: sums of the weights of the nodes before each.
        rack_nodes: nodes of a rack [count].
        share: of the flows that goes to other racks; negative: any other node.
        arrival, src, dst, cells: columns that are written.
    """
    n = len(chance)
    count, total = 0, 0
    while clock[0] < end and count < len(arrival):
        source = _pick(state, chance, other)
        first = source // rack_nodes * rack_nodes
        if share < 0:
            target = _pick(state, chance, other)
            while target == source:
                target = _pick(state, chance, other)
        elif _uniform(state) < share:
            target = _pick(state, chance, other)
            while target // rack_nodes * rack_nodes == first:
                target = _pick(state, chance, other)
        else:
            low = weights[first]
            width = weights[min(first + rack_nodes, n)] - low
            target = source
            while target == source:
                wanted = low + _uniform(state) * width
                target = np.searchsorted(weights[first + 1 : first + rack_nodes], wanted, side="right") + first
        arrival[count] = np.int32(clock[0])
        src[count], dst[count] = source, target
        cells[count] = sizes[0] if len(sizes) == 1 else sizes[_random(state) >> np.uint64(48)]
        total += cells[count]
        count += 1
        if len(gaps) == 1:
            clock[0] -= np.log(1.0 - _uniform(state)) * mean_gap
        else:
            clock[0] += gaps[_random(state) >> np.uint64(48)] * mean_gap
    return count, total


@numba.njit(cache=True, nogil=True)
def grant_oldest_first(  # type: ignore[no-untyped-def]
    arrival,
    src,
    dst,
    cells,
    size,
    count,
    send,
    receive,
    channel,
    send_part,
    receive_part,
    masks,
    rack,
    planes,
    per_bit,
    start,
    out_src,
    out_dst,
    out_bit,
    out_cells,
    out_arrival,
    done_arrival,
    done_size,
    done_end,
):
    """Grant the lowest free bits to each request in order; requests that are left move to the front of the columns.

    Args:
        arrival, src, dst, cells, size, count: requests, oldest first, changed.
        send, receive, channel: free cells, changed.
        send_part, receive_part: parts of the number of a channel.
        masks: cells that a pair may use, by the sum of the numbers `rack` of its ends.
        rack: of each node.
        planes: bits of a slot [count].
        per_bit: cells that a bit carries [count].
        start: first slot of the epoch.
        out_src, out_dst, out_bit, out_cells, out_arrival: grants, written.
        done_arrival, done_size, done_end: requests that end, written.
    Returns: (grants, requests done, requests left, cells granted).
    """
    kinds = len(masks)
    parts = send.shape[1]
    grants, done, kept, granted = 0, 0, 0, 0
    for i in range(count):
        source, target = src[i], dst[i]
        left = cells[i]
        place = send_part[source] + receive_part[target]
        kind = (rack[source] + rack[target]) % kinds
        bit = np.int64(0)
        for part in range(parts):
            word = send[source, part] & receive[target, part] & channel[place, part] & masks[kind, part]
            taken = np.uint64(0)
            while word != 0 and left > 0:
                at = _lowest_bit(word)
                low = np.uint64(1) << np.uint64(at)
                word ^= low
                taken |= low
                bit = part * 64 + at
                carried = min(left, per_bit)
                left -= carried
                granted += carried
                out_src[grants], out_dst[grants], out_bit[grants] = source, target, bit
                out_cells[grants], out_arrival[grants] = carried, arrival[i]
                grants += 1
            if taken != 0:
                send[source, part] &= ~taken
                receive[target, part] &= ~taken
                channel[place, part] &= ~taken
            if left == 0:
                break
        if left == 0:
            done_arrival[done], done_size[done] = arrival[i], size[i]
            done_end[done] = start + bit // planes + 1
            done += 1
        else:
            arrival[kept], src[kept], dst[kept], size[kept] = arrival[i], source, target, size[i]
            cells[kept] = left
            kept += 1
    return grants, done, kept, granted


@numba.njit(cache=True, nogil=True, inline="always")
def _bin(value):  # type: ignore[no-untyped-def]
    if value < EXACT:
        return value
    shift = 0
    while value >> shift >= EXACT:
        shift += 1
    return min(EXACT + (shift - 1) * 1024 + (value >> shift) - 1024, BINS - 1)


def value_of_bin(number: int) -> float:
    """Middle of the delays in a bin [slots]."""
    if number < EXACT:
        return float(number)
    shift, rest = divmod(number - EXACT, 1024)
    return float((rest + 1024 << shift + 1) + (1 << shift) - 0.5)


@numba.njit(cache=True, nogil=True)
def count_delays(  # type: ignore[no-untyped-def]
    out_src, out_dst, out_bit, out_cells, out_arrival, planes, start, by_pair, histogram, sums, sent, used
):
    """Add the delay of every cell that reached its receiver to a histogram.

    Args:
        out_src, out_dst, out_bit, out_cells, out_arrival: grants of an epoch.
        planes: bits of a slot [count].
        start: first slot of the epoch.
        by_pair: whether the wavelength is the distance of the devices, not the device of the receiver.
        histogram: delays by bin, changed.
        sums: [0]: sum of the delays, [1]: cells; changed.
        sent: cells of each sender, changed.
        used: circuits on each wavelength, changed.
    """
    for i in range(len(out_src)):
        used[(out_dst[i] - (out_src[i] if by_pair else 0)) % len(used)] += 1
        if out_arrival[i] >= 0:
            delay = start + out_bit[i] // planes + 1 - out_arrival[i]
            histogram[_bin(delay)] += out_cells[i]
            sums[0] += delay * out_cells[i]
            sums[1] += out_cells[i]
            sent[out_src[i]] += out_cells[i]


@numba.njit(cache=True, nogil=True, inline="always")
def _label_of_racks(one, two, racks, groups):  # type: ignore[no-untyped-def]
    """Number of the exchange in which rack `one` sends to rack `two`: (g, j) -> (g + j + a, j + b) has number a racks + b.

    Args:
        one, two: numbers of the racks in the machine.
        racks: of a group [count].
        groups: of the machine [count].
    """
    a = (two // racks - one // racks - one % racks) % groups
    return a * racks + (two % racks - one % racks) % racks


@numba.njit(cache=True, nogil=True)
def _order_by_arbiter(src, dst, count, rack, num_racks):  # type: ignore[no-untyped-def]
    """Rows of the requests by pair of racks, within a pair in their order."""
    ends = np.zeros(num_racks * num_racks + 1, np.int64)
    for i in range(count):
        ends[rack[src[i]] * num_racks + rack[dst[i]] + 1] += 1
    for k in range(num_racks * num_racks):
        ends[k + 1] += ends[k]
    order = np.empty(count, np.int32)
    for i in range(count):
        pair = rack[src[i]] * num_racks + rack[dst[i]]
        order[ends[pair]] = i
        ends[pair] += 1
    return order


@numba.njit(cache=True, nogil=True)
def _propose(  # type: ignore[no-untyped-def]
    src,
    dst,
    cells,
    order,
    offset,
    proposed,
    bits_of,
    send,
    receive,
    channel,
    send_part,
    receive_part,
    rack,
    num_racks,
    groups,
    bits,
    per_bit,
    turn,
):
    """Bits that each request proposes: its arbiter knows the words at the start of the round and its own proposals."""
    parts = send.shape[1]
    racks = num_racks // groups
    mine = np.zeros((len(send) + len(receive) + len(channel), parts), np.uint64)  # taken by this arbiter
    owner = np.full(len(mine), -1, np.int64)
    for i in order:
        source, target = src[i], dst[i]
        one, two = rack[source], rack[target]
        pair = one * num_racks + two
        place = send_part[source] + receive_part[target]
        at = np.int64(source), len(send) + np.int64(target), len(send) + len(receive) + np.int64(place)
        for row in at:
            if owner[row] != pair:
                owner[row] = pair
                for part in range(parts):
                    mine[row, part] = 0
        towards = _label_of_racks(one, two, racks, groups)
        first = (towards - turn) % num_racks % bits
        wanted = min(-(-cells[i] // per_bit), bits)
        count = 0
        for step in range(parts + 1):  # from `first` around the word
            part = (first >> 6) + step
            part -= parts if part >= parts else 0
            free = send[at[0], part] & receive[target, part] & channel[place, part]
            free &= ~(mine[at[0], part] | mine[at[1], part] | mine[at[2], part])
            if step == 0:
                free &= ~np.uint64(0) << np.uint64(first & 63)
            elif step == parts:
                free &= ~(~np.uint64(0) << np.uint64(first & 63))
            taken = np.uint64(0)
            while free != 0 and count < wanted:
                bit = _lowest_bit(free)
                low = np.uint64(1) << np.uint64(bit)
                free ^= low
                taken |= low
                bits_of[offset[i] + count] = part * 64 + bit
                count += 1
            if taken != 0:
                for row in at:
                    mine[row, part] |= taken
            if count == wanted:
                break
        proposed[i] = count


@numba.njit(cache=True, nogil=True)
def grant_iteratively(  # type: ignore[no-untyped-def]
    arrival,
    src,
    dst,
    cells,
    size,
    count,
    send,
    receive,
    channel,
    send_part,
    receive_part,
    rack,
    num_racks,
    groups,
    bits,
    planes,
    per_bit,
    start,
    turn,
    rounds,
    out_src,
    out_dst,
    out_bit,
    out_cells,
    out_arrival,
    done_arrival,
    done_size,
    done_end,
):
    """Grant in rounds: an arbiter for each pair of racks proposes, then every sender, receiver and channel takes one a bit.

    A bit belongs to one pair of racks of each rack in this epoch (`turn` moves them on); its proposal wins, then the older.

    Args:
        arrival, src, dst, cells, size, count, send, receive, channel, send_part, receive_part: as of `grant_oldest_first`.
        rack: number of the rack of each node in the machine.
        num_racks, groups: of the machine [count].
        bits: of a word [count].
        planes, per_bit, start: as of `grant_oldest_first`.
        turn: bits of the epochs before [count].
        rounds: at most [count].
        out_src, out_dst, out_bit, out_cells, out_arrival, done_arrival, done_size, done_end: as of `grant_oldest_first`.
    Returns: (grants, requests done, requests left, cells granted, rounds used).
    """
    grants, granted, used = 0, 0, 0
    last = np.zeros(count, np.int64)
    offset = np.empty(count + 1, np.int64)
    order = _order_by_arbiter(src, dst, count, rack, num_racks)
    racks = num_racks // groups
    for _ in range(rounds):
        offset[0] = 0
        for i in range(count):
            offset[i + 1] = offset[i] + min(-(-cells[i] // per_bit), bits)
        proposed = np.zeros(count, np.int32)
        bits_of = np.empty(offset[count], np.int32)
        _propose(
            src,
            dst,
            cells,
            order,
            offset,
            proposed,
            bits_of,
            send,
            receive,
            channel,
            send_part,
            receive_part,
            rack,
            num_racks,
            groups,
            bits,
            per_bit,
            turn,
        )
        before = grants
        for owned in (True, False):
            for i in range(count):
                source, target = src[i], dst[i]
                place = send_part[source] + receive_part[target]
                one, two = rack[source], rack[target]
                towards = _label_of_racks(one, two, racks, groups)
                for k in range(offset[i], offset[i] + proposed[i]):
                    bit = bits_of[k]
                    if ((bit + turn - towards) % num_racks == 0) != owned or cells[i] == 0:
                        continue
                    part, low = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
                    if send[source, part] & receive[target, part] & channel[place, part] & low == 0:
                        continue
                    send[source, part] &= ~low
                    receive[target, part] &= ~low
                    channel[place, part] &= ~low
                    carried = min(cells[i], per_bit)
                    cells[i] -= carried
                    granted += carried
                    last[i] = max(last[i], start + bit // planes + 1)
                    out_src[grants], out_dst[grants], out_bit[grants] = source, target, bit
                    out_cells[grants], out_arrival[grants] = carried, arrival[i]
                    grants += 1
        if grants == before:
            break
        used += 1
    done, kept = 0, 0
    for i in range(count):
        if cells[i] == 0:
            done_arrival[done], done_size[done], done_end[done] = arrival[i], size[i], last[i]
            done += 1
        else:
            arrival[kept], src[kept], dst[kept], size[kept] = arrival[i], src[i], dst[i], size[i]
            cells[kept] = cells[i]
            kept += 1
    return grants, done, kept, granted, used


@numba.njit(cache=True, nogil=True)
def count_ends(arrival, cells, end, rate, scale, histogram, sums):  # type: ignore[no-untyped-def]
    """Add the time of each flow over that of its cells at full rate to a histogram.

    Args:
        arrival, cells, end: of the flows that end.
        rate: full rate [cells a slot].
        scale: bins of a ratio of one [count].
        histogram: ratios by bin, changed.
        sums: [0]: sum of the ratios, [1]: flows; changed.
    """
    for i in range(len(arrival)):
        ideal = (cells[i] + rate - 1) // rate
        ratio = (end[i] - arrival[i]) / ideal
        histogram[_bin(np.int64(ratio * scale))] += 1
        sums[0] += ratio
        sums[1] += 1
