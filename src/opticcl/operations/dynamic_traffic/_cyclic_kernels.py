"""Compiled kernels of the cyclic scheduler: queues by label of the cycle, as linked lists."""

from __future__ import annotations

import numba
import numpy as np

__all__ = ["insert_requests", "serve_epoch"]

AT, TO, LEFT, ARRIVAL, FLOW, READY, NEXT = 0, 1, 2, 3, 4, 5, 6
"""Columns of a record: node that has it, receiver, cells, slot of arrival, flow, slot from which it may go, next record."""


@numba.njit(cache=True, nogil=True, inline="always")
def _append(records, lists, which, row):  # type: ignore[no-untyped-def]
    records[row, NEXT] = -1
    if lists[which, 1] >= 0:
        records[lists[which, 1], NEXT] = row
    else:
        lists[which, 0] = row
    lists[which, 1] = row


@numba.njit(cache=True, nogil=True, inline="always")
def _label(one, two, groups, racks, devices):  # type: ignore[no-untyped-def]
    """Number of the permutation in which node `one` sends to node `two`."""
    rack_one, rack_two = one // devices, two // devices
    a = (rack_two // racks - rack_one // racks - rack_one % racks) % groups
    d = (rack_two % racks - rack_one % racks) % racks
    c = (two % devices - one % devices) % devices
    return (c * racks + d) * groups + a


@numba.njit(cache=True, nogil=True)
def insert_requests(src, dst, cells, arrival, records, free, flows, free_flows, counts, lists, heads, two_hops, shape):  # type: ignore[no-untyped-def]
    """Make a record and a flow of each request.

    Args:
        src, dst, cells, arrival: requests.
        records, free: records and the numbers of the free ones, changed.
        flows, free_flows: cells left, size and arrival of each flow, and the numbers of the free ones, changed.
        counts: [0]: free records, [1]: free flows; changed.
        lists, heads: first and last record of each label, and of each node; changed.
        two_hops: whether they wait at their node for any other.
        shape: groups, racks, devices [count].
    """
    for i in range(len(src)):
        counts[0] -= 1
        counts[1] -= 1
        row, flow = free[counts[0]], free_flows[counts[1]]
        flows[flow, 0], flows[flow, 1], flows[flow, 2] = cells[i], cells[i], arrival[i]
        records[row, AT], records[row, TO], records[row, LEFT] = src[i], dst[i], cells[i]
        records[row, ARRIVAL], records[row, FLOW], records[row, READY] = arrival[i], flow, arrival[i] + 1
        if two_hops:
            _append(records, heads, src[i], row)
        else:
            _append(records, lists, _label(src[i], dst[i], shape[0], shape[1], shape[2]), row)


@numba.njit(cache=True, nogil=True)
def serve_epoch(  # type: ignore[no-untyped-def]
    start,
    slots,
    per_bit,
    shape,
    send,
    receive,
    channel,
    send_part,
    receive_part,
    records,
    free,
    flows,
    free_flows,
    counts,
    lists,
    heads,
    two_hops,
    out_src,
    out_dst,
    out_bit,
    out_cells,
    out_arrival,
    done_arrival,
    done_size,
    done_end,
):
    """One epoch of the cycle: returns (circuits, flows ended, cells that reached their receivers).

    Args:
        start, slots: first slot, and slots of an epoch.
        per_bit: cells of a plane in a slot [count].
        shape, records, free, flows, free_flows, counts, lists, heads, two_hops: as of `insert_requests`.
        send, receive, channel: free cells.
        send_part, receive_part: parts of the number of a channel.
        out_src, out_dst, out_bit, out_cells, out_arrival: circuits, written.
        done_arrival, done_size, done_end: flows that end, written.
    """
    groups, racks, devices = shape[0], shape[1], shape[2]
    num_nodes = groups * racks * devices
    carried = np.zeros(num_nodes, np.int64)
    grants, done, delivered = 0, 0, 0
    for slot in range(start, start + slots):
        for plane in range(groups):
            label = (slot * groups + plane) % num_nodes
            a, d, c = label % groups, label // groups % racks, label // (groups * racks)
            bit = (slot - start) * groups + plane
            part, low = bit >> 6, np.uint64(1) << np.uint64(bit & 63)
            carried[:] = 0
            before, row = -1, lists[label, 0]
            while row >= 0:
                here, to = records[row, AT], records[row, TO]
                after = records[row, NEXT]
                most = min(records[row, LEFT], per_bit - carried[here])
                place = send_part[here] + receive_part[to]
                is_free = send[here, part] & receive[to, part] & channel[place, part] & low != 0
                if most <= 0 or not is_free or records[row, READY] > slot:
                    before, row = row, after
                    continue
                carried[here] = per_bit  # a plane carries one request in a slot
                records[row, LEFT] -= most
                delivered += most
                out_src[grants], out_dst[grants], out_bit[grants] = here, to, bit
                out_cells[grants], out_arrival[grants] = most, records[row, ARRIVAL]
                grants += 1
                flow = records[row, FLOW]
                flows[flow, 0] -= most
                if flows[flow, 0] == 0:
                    done_arrival[done], done_size[done], done_end[done] = flows[flow, 2], flows[flow, 1], slot + 1
                    done += 1
                    free_flows[counts[1]] = flow
                    counts[1] += 1
                if records[row, LEFT] == 0:
                    if before >= 0:
                        records[before, NEXT] = after
                    else:
                        lists[label, 0] = after
                    if after < 0:
                        lists[label, 1] = before
                    free[counts[0]] = row
                    counts[0] += 1
                else:
                    before = row
                row = after
            if not two_hops:
                continue
            for here in range(num_nodes):
                row = heads[here, 0]
                if row < 0 or records[row, READY] > slot or carried[here] > 0:
                    continue
                rack = here // devices
                middle = (
                    (rack // racks + rack % racks + a) % groups * racks + (rack % racks + d) % racks
                ) * devices + (here % devices + c) % devices
                place = send_part[here] + receive_part[middle]
                if middle == here or send[here, part] & receive[middle, part] & channel[place, part] & low == 0:
                    continue
                most = min(records[row, LEFT], per_bit)
                records[row, LEFT] -= most
                flow = records[row, FLOW]
                out_src[grants], out_dst[grants], out_bit[grants] = here, middle, bit
                out_cells[grants], out_arrival[grants] = most, -1
                if middle == records[row, TO]:
                    out_arrival[grants] = records[row, ARRIVAL]
                    delivered += most
                    flows[flow, 0] -= most
                    if flows[flow, 0] == 0:
                        done_arrival[done], done_size[done], done_end[done] = flows[flow, 2], flows[flow, 1], slot + 1
                        done += 1
                        free_flows[counts[1]] = flow
                        counts[1] += 1
                else:
                    counts[0] -= 1
                    relay = free[counts[0]]
                    records[relay, AT], records[relay, TO], records[relay, LEFT] = middle, records[row, TO], most
                    records[relay, ARRIVAL], records[relay, FLOW] = records[row, ARRIVAL], flow
                    records[relay, READY] = slot + 1
                    _append(records, lists, _label(middle, records[row, TO], groups, racks, devices), relay)
                grants += 1
                if records[row, LEFT] == 0:
                    heads[here, 0] = records[row, NEXT]
                    if heads[here, 0] < 0:
                        heads[here, 1] = -1
                    free[counts[0]] = row
                    counts[0] += 1
    return grants, done, delivered
