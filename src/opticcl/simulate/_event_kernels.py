"""Kernels of the flow engine's clock: the next event of each flow, and the ends of flows in flight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.simulate._heap_kernels import drop_least, push

__all__ = [
    "Ends",
    "NextEvents",
    "drop_first_end",
    "ends_of",
    "events_of",
    "first_end",
    "first_event_s",
    "pop_event",
    "push_event",
    "set_end",
]

RECENT = 8
BLOCK = 7  # slots of a block, as a power of two


class NextEvents(NamedTuple):
    """Next events, by time. Those of one time are a linked list, a bucket; buckets are in a binary heap.

    Args:
        after: the next flow in the bucket of each flow, int32 (flows,); -1: none.
        bucket_first: first flow of each bucket, int32 (flows + 1,).
        spare, heap: buckets that are free, and those in the heap, the first time on top, int32 (flows + 1,) each.
        heap_time: times of the buckets in the heap, float64 (flows + 1,) [s].
        num_spare, num_queued: int64 (1,) each.
        recent, recent_time: buckets in which most events have their place, int64 and float64 (RECENT,).
    """

    after: IntArray
    bucket_first: IntArray
    spare: IntArray
    heap: IntArray
    heap_time: np.ndarray
    num_spare: IntArray
    num_queued: IntArray
    recent: IntArray
    recent_time: np.ndarray


@njit(cache=False)
def events_of(num_flows):  # type: ignore[no-untyped-def]
    """No events of that many flows."""
    buckets = np.full((2, num_flows + 1), -1, np.int32)
    counts = np.zeros((2, 1), np.int64)
    counts[0, 0] = num_flows + 1
    return NextEvents(
        np.full(num_flows, -1, np.int32),
        buckets[0],
        np.arange(num_flows + 1, dtype=np.int32)[::-1].copy(),
        buckets[1],
        np.zeros(num_flows + 1),
        counts[0],
        counts[1],
        np.full(RECENT, -1, np.int64),
        np.full(RECENT, -1.0),
    )


@njit(cache=False, inline="always")
def push_event(events, flow, time):  # type: ignore[no-untyped-def]
    """Set the next event of a flow.

    Args:
        events: changed.
        flow: number.
        time: of the event [s].
    """
    bucket = np.int64(-1)
    for i in range(RECENT):
        if events.recent_time[i] == time:
            bucket = events.recent[i]
    if bucket < 0:
        events.num_spare[0] -= 1
        bucket = np.int64(events.spare[events.num_spare[0]])
        push(events.heap, events.heap_time, events.num_queued, bucket, time)
        oldest = bucket % RECENT  # any bucket may be dropped from the recent ones
        events.recent[oldest], events.recent_time[oldest] = bucket, time
    events.after[flow] = events.bucket_first[bucket]
    events.bucket_first[bucket] = flow


@njit(cache=False, inline="always")
def pop_event(events):  # type: ignore[no-untyped-def]
    """Remove one of the first events and return its flow; -1 if their bucket is empty, which is freed."""
    bucket = events.heap[0]
    flow = events.bucket_first[bucket]
    if flow < 0:
        for i in range(RECENT):
            if events.recent[i] == bucket:
                events.recent_time[i] = -1.0
        events.spare[events.num_spare[0]] = bucket
        events.num_spare[0] += 1
        drop_least(events.heap, events.heap_time, events.num_queued)
    else:
        events.bucket_first[bucket] = events.after[flow]
    return flow


@njit(cache=False, inline="always")
def first_event_s(events):  # type: ignore[no-untyped-def]
    """Time of the first bucket; infinite if there is none [s]."""
    return events.heap_time[0] if events.num_queued[0] else np.inf


class Ends(NamedTuple):
    """When the flows in flight end, as a binary heap, or by blocks of slots where the order of equal ends does not matter.

    Args:
        time: of each slot, float64 (slots,) [s]; infinite: none.
        num_queued: int64 (1,).
        scans: whether blocks are scanned.
        queue, place_of: slots, the first end on top, and the place of each, int64 (slots,); empty if blocks are scanned.
        block_time, stale: first end of each block, and whether it is to be found again; empty if there is a heap.
    """

    time: np.ndarray
    num_queued: IntArray
    scans: bool
    queue: IntArray
    place_of: IntArray
    block_time: np.ndarray
    stale: Any


@njit(cache=False)
def ends_of(num_slots, scans):  # type: ignore[no-untyped-def]
    """No ends of that many slots."""
    heap = np.zeros((2, 0 if scans else num_slots), np.int64)
    blocks = (num_slots >> BLOCK) + 1 if scans else 0
    time, num_queued = np.full(num_slots, np.inf), np.zeros(1, np.int64)
    return Ends(time, num_queued, scans, heap[0], heap[1], np.full(blocks, np.inf), np.zeros(blocks, np.bool_))


@njit(cache=False, _nrt=False)
def _move(ends, slot, place):  # type: ignore[no-untyped-def]
    """Put a slot, whose place in the queue is free, where its end belongs."""
    queue, place_of, time, num_queued = ends.queue, ends.place_of, ends.time[slot], ends.num_queued[0]
    while place > 0 and ends.time[queue[(place - 1) >> 1]] > time:
        above = queue[(place - 1) >> 1]
        queue[place], place_of[above] = above, place
        place = (place - 1) >> 1
    while True:
        below = 2 * place + 1
        if below >= num_queued:
            break
        if below + 1 < num_queued and ends.time[queue[below + 1]] < ends.time[queue[below]]:
            below += 1
        if ends.time[queue[below]] >= time:
            break
        queue[place], place_of[queue[below]] = queue[below], place
        place = below
    queue[place], place_of[slot] = slot, place


@njit(cache=False, _nrt=False)
def _first_of_blocks(ends):  # type: ignore[no-untyped-def]
    """The slot that ends first. Blocks are brought up to date where they are stale."""
    first, time = 0, np.inf
    for block in range(len(ends.block_time)):
        if ends.stale[block]:
            ends.stale[block] = False
            soon = np.inf
            for slot in range(block << BLOCK, min((block + 1) << BLOCK, len(ends.time))):
                soon = min(soon, ends.time[slot])
            ends.block_time[block] = soon
        if ends.block_time[block] < time:
            first, time = block, ends.block_time[block]
    first <<= BLOCK
    while ends.time[first] != time:
        first += 1
    return first


@njit(cache=False, inline="always")
def first_end(ends):  # type: ignore[no-untyped-def]
    """The slot that ends first; -1 if none is queued."""
    if not ends.num_queued[0]:
        return -1
    return _first_of_blocks(ends) if ends.scans else ends.queue[0]


@njit(cache=False, inline="always")
def drop_first_end(ends, slot):  # type: ignore[no-untyped-def]
    """Remove the slot that ends first."""
    ends.num_queued[0] -= 1
    if ends.scans:
        ends.time[slot], ends.stale[slot >> BLOCK] = np.inf, True
    elif ends.num_queued[0]:
        _move(ends, ends.queue[ends.num_queued[0]], 0)


@njit(cache=False, inline="always")
def set_end(ends, slot, time, is_new):  # type: ignore[no-untyped-def]
    """Set the end of a slot.

    Args:
        ends: changed.
        slot: number.
        time: of the end [s].
        is_new: whether the slot had none.
    """
    ends.time[slot] = time
    place = ends.num_queued[0]
    ends.num_queued[0] += is_new
    if ends.scans:
        ends.stale[slot >> BLOCK] = True
    else:
        _move(ends, slot, place if is_new else ends.place_of[slot])
