"""The flow engine: flows that wait for each other and share links, event by event.

All of its kernels stand in this file, since numba compiles a kernel that is on the disk again when its own file changes,
whatever becomes of others. They are a binary heap of numbers, the max-min fair rates of flows that share links, the clock, and
the run. Their arrays are made outside of them.

A flow is identified by its number. It belongs to a group of flows that are released together, and the group to a block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.simulate.dependencies import Dependencies

__all__ = ["FlowColumns", "active_flows", "ends_of", "events_of", "run", "shares_of", "state_of"]

# --- a binary heap ----------------------------------------------------------------------------------------------------
# The number with the least key is on top; of equal keys, the lower number. The heap is two arrays by place, the numbers and
# their keys, so that keys that are compared stand side by side.

at = np.uint64
"""Makes an index unsigned: kernels do not ask then whether it counts from the end, which takes a quarter of their time."""


@njit(cache=False, _nrt=False)
def push(heap, keys, size, number, key):  # type: ignore[no-untyped-def]
    """Add a number that is not in the heap.

    Args:
        heap, keys: numbers and their keys, by place; changed.
        size: of the heap, int64 (1,); changed.
        number, key: to be added.
    """
    place = size[0]
    size[0] += 1
    while place > 0:
        above = at((place - 1) >> 1)
        if keys[above] < key or (keys[above] == key and heap[above] < number):
            break
        heap[at(place)], keys[at(place)] = heap[above], keys[above]
        place = (place - 1) >> 1
    heap[at(place)], keys[at(place)] = number, key


@njit(cache=False, inline="always")
def _sink(heap, keys, size, number, key):  # type: ignore[no-untyped-def]
    """Put a number where it belongs below the top, whose place is free; arguments as of `push`."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size[0]:
            break
        one, other = at(below), at(min(below + 1, size[0] - 1))
        later = keys[one] > keys[other]
        if keys[one] == keys[other]:
            later = heap[one] > heap[other]
        below += int(later)  # without a branch, which cannot be predicted
        first = at(below)
        if keys[first] > key or (keys[first] == key and heap[first] > number):
            break
        heap[at(place)], keys[at(place)] = heap[first], keys[first]
        place = below
    heap[at(place)], keys[at(place)] = number, key


@njit(cache=False, _nrt=False)
def drop_least(heap, keys, size):  # type: ignore[no-untyped-def]
    """Remove the number on top; arguments as of `push`.

    Args: heap, keys, size: changed.
    """
    size[0] -= 1
    _sink(heap, keys, size, heap[size[0]], keys[size[0]])


# --- fair shares ------------------------------------------------------------------------------------------------------
# The max-min fair rates of flows that share links, from nothing or after a change. An active flow has a slot, and each of its
# hops a node: node `(slot << shift) + h` is its h-th hop. The nodes on each link are kept side by side, in
# `nodes[link_at[link]:][:num_on[link]]`.

SAME_SHARE = 1e-11  # relative; bottlenecks closer than that are one level
FEW_LINKS, MOST_PARTS = 16, 12  # links that are queued at once, and parts in which more of them are [count]
PART = 1 / 8  # of the way from the least share to the mean one: up to there links are queued


class ActiveFlows(NamedTuple):
    """Flows in flight and the links that they cross.

    Args:
        capacity: of each link [byte/s].
        load: weight of the flows on each link, int64 (links,).
        link_at, num_on: where the nodes of each link begin, int64 (links + 1,), and their number, int32 (links,).
        nodes: nodes, link by link, int32.
        num_hops: of each slot, int64 (slots,).
        rate: of each slot, float64 (slots,) [byte/s].
        node_link, node_weight, place_on: link of each node, how often the rate counts on it, and its place on the link, int32.
        shift: nodes of a slot, as a power of two.
        weighted: whether some weight is not one.
    """

    capacity: np.ndarray
    load: IntArray
    link_at: IntArray
    num_on: IntArray
    nodes: IntArray
    num_hops: IntArray
    rate: np.ndarray
    node_link: IntArray
    node_weight: IntArray
    place_on: IntArray
    shift: int
    weighted: bool


class Shares(NamedTuple):
    """What is known of links while rates rise, and lists of what a change can reach.

    Args:
        left, open: capacity and weight of the flows that still rise on each link, before those of `frozen` stopped.
        frozen: weight of the flows that stopped at the last level, int64 (links,).
        touched: links on which some stopped at that level, int64 (links + 1,).
        value: share of each link that waits, float64 (links,) [byte/s].
        heap, num_queued, share: links by the share that they have for each flow, int64 (links,) and (1,), and that share by
            place in the heap, float64 (links,) [byte/s].
        links, slots: that can be reached.
        seen_link, seen_slot: change that reached them last.
        changing, keeping: slots on a link whose rates may change, int32, and what each of the others takes of it, float64
            [byte/s].
    """

    left: np.ndarray
    open: IntArray
    frozen: IntArray
    touched: IntArray
    value: np.ndarray
    heap: IntArray
    num_queued: IntArray
    share: np.ndarray
    links: IntArray
    slots: IntArray
    seen_link: IntArray
    seen_slot: IntArray
    changing: IntArray
    keeping: np.ndarray


def active_flows(flows: FlowColumns, capacity: np.ndarray, num_slots: int) -> ActiveFlows:
    """No flows in flight yet, with room for all that there will be.

    Args:
        flows: that there will be.
        capacity: of each link [byte/s].
        num_slots: flows in flight at most [count].
    """
    shift, num_links, num_hops = int(flows.path_n.max(initial=1) - 1).bit_length(), len(capacity), len(flows.hops)
    most = num_slots << shift
    begins, ends = (np.bincount(at, minlength=num_hops + 1) for at in (flows.path_at, flows.path_at + flows.path_n))
    on_link = np.bincount(flows.hops, np.cumsum(begins - ends)[:num_hops], num_links).astype(np.int64)
    link_at = np.concatenate([[0], np.cumsum(np.minimum(on_link, most))])
    return ActiveFlows(
        capacity,
        np.zeros(num_links, np.int64),
        link_at,
        np.zeros(num_links, np.int32),
        np.empty(link_at[-1], np.int32),
        np.zeros(num_slots, np.int64),
        np.zeros(num_slots),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        shift,
        bool((flows.weight != 1).any()),
    )


def shares_of(active: ActiveFlows) -> Shares:
    """Space for the shares of links and slots."""
    num_links, num_slots = len(active.capacity), len(active.rate)
    most_on_link = int(np.diff(active.link_at).max(initial=0))
    return Shares(
        np.zeros(num_links),
        np.zeros(num_links, np.int64),
        np.zeros(num_links, np.int64),
        np.zeros(num_links + 1, np.int64),
        np.zeros(num_links),
        np.zeros(num_links, np.int64),
        np.zeros(1, np.int64),
        np.zeros(num_links),
        np.zeros(num_links, np.int64),
        np.zeros(num_slots, np.int64),
        np.full(num_links, -1, np.int32),
        np.full(num_slots, -1, np.int32),
        np.zeros(most_on_link + 1, np.int32),
        np.zeros(most_on_link + 1),
    )


@njit(cache=False, _nrt=False)
def _queue_least(shares, waiting, level, all_of_them):  # type: ignore[no-untyped-def]
    """Queue the links that wait with the least shares; returns how many still wait, and the largest share that is queued.

    Shares only grow, so those of the links that wait are evaluated again once all with less are done. By then no flow rises on
    many of them.

    Args:
        shares: changed; those that wait are the first of `links`.
        waiting: links [count].
        level: at which flows stopped last [byte/s].
        all_of_them: whether none is to wait any longer.
    """
    links, value = shares.links, shares.value
    kept, least, total = 0, np.inf, 0.0
    for i in range(waiting):
        link = at(links[at(i)])
        still = shares.open[link] - shares.frozen[link]
        if still:
            share = (shares.left[link] - level * shares.frozen[link]) / still
            links[at(kept)], value[at(kept)] = link, share
            least, total, kept = min(least, share), total + share, kept + 1
    up_to = np.inf if all_of_them or kept <= FEW_LINKS else least + PART * (total / kept - least)
    waiting = 0
    for i in range(kept):
        if value[at(i)] <= up_to:
            push(shares.heap, shares.share, shares.num_queued, links[at(i)], value[at(i)])
        else:
            links[at(waiting)] = links[at(i)]
            waiting += 1
    return waiting, up_to


@njit(cache=False, _nrt=False)
def fill(active, shares, num_links, num_slots, rate):  # type: ignore[no-untyped-def]
    """Progressive filling of one component: `rate` of its slots. All rates rise together; where a link is full, its flows stop.

    The caller gives `left` and `open` of the links without the flows whose rates stay. One subtraction a link and level,
    however many flows stop there, keeps rounding small.

    Args:
        active: flows.
        shares: the links of the component, on each of which some of its flows rise, and its slots; changed.
        num_links, num_slots: of the component [count].
        rate: changed.
    """
    left, open_, frozen, touched = shares.left, shares.open, shares.frozen, shares.touched
    heap, share, size = shares.heap, shares.share, shares.num_queued
    size[0] = 0
    for i in range(num_links):
        frozen[at(shares.links[at(i)])] = 0
    for i in range(num_slots):
        rate[at(shares.slots[at(i)])] = -1.0
    rising, level, num_touched = num_slots, 0.0, 0
    waiting, up_to, parts = num_links, 0.0, 0
    while rising:
        if waiting and (size[0] == 0 or share[0] > up_to):
            parts += 1
            waiting, up_to = _queue_least(shares, waiting, level, parts == MOST_PARTS)
            continue
        link = at(heap[0])
        still = open_[link] - frozen[link]
        if still == 0:
            drop_least(heap, share, size)
            continue
        current = (left[link] - level * frozen[link]) / still
        if current > share[0] * (1 + SAME_SHARE):  # others stopped meanwhile and left their part
            _sink(heap, share, size, heap[0], current)
            continue
        if current > level * (1 + SAME_SHARE):
            for i in range(num_touched):
                other = at(touched[at(i)])
                left[other] -= level * frozen[other]
                open_[other] -= frozen[other]
                frozen[other] = 0
            level, num_touched = current, 0
        for i in range(active.link_at[link], active.link_at[link] + active.num_on[link]):
            slot = at(active.nodes[at(i)] >> active.shift)
            if rate[slot] < 0:
                rate[slot] = level
                rising -= 1
                first = np.int64(slot) << active.shift
                for node in range(first, first + active.num_hops[slot]):
                    other = at(active.node_link[at(node)])
                    touched[at(num_touched)] = other
                    num_touched += int(frozen[other] == 0)  # without a branch, which cannot be predicted
                    frozen[other] += active.node_weight[at(node)] if active.weighted else 1


@njit(cache=False, inline="always")
def _split_by_rate(active, shares, link, slowest, epoch):  # type: ignore[no-untyped-def]
    """List the slots on a link that are new and whose rates may change; returns their number.

    Also returns what those that keep their rates take of the link, and weigh.

    Args:
        active, slowest, epoch: as of `reach`.
        shares: changed.
        link: number.
    """
    changing, keeping = shares.changing, shares.keeping
    num_changing = num_keeping = weight = 0
    for i in range(active.link_at[link], active.link_at[link] + active.num_on[link]):
        node = active.nodes[at(i)]
        slot = at(node >> active.shift)
        rate = active.rate[slot]
        keeps = int((rate > 0) & (rate < slowest))  # without a branch, which cannot be predicted
        is_new = int(shares.seen_slot[slot] != epoch)
        changing[at(num_changing)], keeping[at(num_keeping)] = slot, rate
        if active.weighted:
            keeping[at(num_keeping)] *= active.node_weight[at(node)]
            weight += keeps * active.node_weight[at(node)]
        num_changing += is_new & (1 - keeps)
        num_keeping += keeps
    taken, lost = 0.0, 0.0  # lost: to rounding (Knuth)
    for k in range(num_keeping):
        part = keeping[at(k)]
        total = taken + part
        added = total - taken
        lost += (taken - (total - added)) + (part - added)
        taken = total
    return num_changing, taken + lost, weight if active.weighted else num_keeping


@njit(cache=False, inline="always")
def reach(active, shares, start, epoch, slowest):  # type: ignore[no-untyped-def]
    """List all links and slots that a change on a link can reach; returns the number of each.

    Flows slower than `slowest` keep their rates: they are not followed, and `left` and `open` are without them.

    Args:
        active: flows.
        shares: changed.
        start: link that changes.
        epoch: number of the change.
        slowest: lowest rate that may change [byte/s].
    """
    links, reached, visited, num_slots = shares.links, np.int64(1), 0, np.int64(0)
    links[0], shares.seen_link[start] = start, epoch
    while visited < reached:
        here = at(links[at(visited)])
        visited += 1
        changing, taken, weight = _split_by_rate(active, shares, here, slowest, epoch)
        shares.left[here], shares.open[here] = active.capacity[here] - taken, active.load[here] - weight
        for k in range(changing):
            slot = at(shares.changing[at(k)])
            if shares.seen_slot[slot] != epoch:
                shares.seen_slot[slot] = epoch
                shares.slots[at(num_slots)] = slot
                num_slots += 1
                first = np.int64(slot) << active.shift
                for node in range(first, first + active.num_hops[slot]):
                    link = at(active.node_link[at(node)])
                    if shares.seen_link[link] != epoch:
                        shares.seen_link[link] = epoch
                        links[at(reached)] = link
                        reached += 1
    return reached, num_slots


# --- the clock --------------------------------------------------------------------------------------------------------
# The next event of each flow, and the ends of flows in flight.

RECENT = 8
BLOCK = 7  # slots of a block, as a power of two


class NextEvents(NamedTuple):
    """Next events, by time. Those of one time are a linked list, a bucket; buckets are in a binary heap.

    Args:
        after: the next flow in the bucket of each flow, int32 (flows,); -1: none.
        bucket_first: first flow of each bucket, int32 (flows + 1,).
        spare: buckets that are free, int32 (flows + 1,).
        heap: buckets in the heap, the first time on top, int64 (flows + 1,).
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


def events_of(num_flows: int) -> NextEvents:
    """No events of that many flows."""
    return NextEvents(
        np.full(num_flows, -1, np.int32),
        np.full(num_flows + 1, -1, np.int32),
        np.arange(num_flows, -1, -1, dtype=np.int32),
        np.zeros(num_flows + 1, np.int64),
        np.zeros(num_flows + 1),
        np.full(1, num_flows + 1),
        np.zeros(1, np.int64),
        np.full(RECENT, -1),
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


def ends_of(num_slots: int, scans: bool) -> Ends:
    """No ends of that many slots."""
    queued, blocks = 0 if scans else num_slots, (num_slots >> BLOCK) + 1 if scans else 0
    return Ends(
        np.full(num_slots, np.inf),
        np.zeros(1, np.int64),
        scans,
        np.zeros(queued, np.int64),
        np.zeros(queued, np.int64),
        np.full(blocks, np.inf),
        np.zeros(blocks, bool),
    )


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
        _move(ends, ends.queue[ends.num_queued[0]], np.int64(0))


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


# --- a run ------------------------------------------------------------------------------------------------------------

ENTER, FINISH, USABLE = 0, 1, 2  # what a flow does next
SAME_TIME = 1e-12  # relative; events closer than that are simultaneous
SAME_RATE = 1e-9  # relative; rates that may be the same, but for rounding
NONE, ENDS, STARTS = 0, 1, 2  # what changes on a link
DONE, TOO_MANY = 0, 1


class FlowColumns(NamedTuple):
    """What flows carry, and where.

    Args:
        amount: of each flow, float64 (flows,) [bytes].
        delay: from its release to its first byte, float64 (flows,) [s].
        compute: from its last byte until others may use the data, float64 (flows,) [s].
        path_at, path_n: hops of flow f are hops[path_at[f]:path_at[f] + path_n[f]], int64 and int32 (flows,).
        hops: links, int32.
        weight: of each hop: multiple of the flow's rate on that link, int64 [flows].
    """

    amount: np.ndarray
    delay: np.ndarray
    compute: np.ndarray
    path_at: IntArray
    path_n: IntArray
    hops: IntArray
    weight: IntArray


READY, FREE, CHANGES, EVENTS, ENDED = 0, 1, 2, 3, 4
"""What a run counts: groups to release, free slots, links on which flows start or end, events, flows that have ended."""


class RunState(NamedTuple):
    """State of a run.

    Args:
        state: what each flow does next.
        slot_of: of each flow; -1: it is not in flight.
        flow_of, since, rest: of each slot: its flow, when its rate was set [s], and what it still had to send then [bytes].
        free: slots that are free.
        unfinished: flows of each block [count].
        ready: groups to release.
        changed, change: links on which flows start or end at this time, and which of them.
        counts: of READY, FREE and so on, int64 (5,).
        slowest: lowest rate of a flow that starts or ends at this time, float64 (1,) [byte/s].
        finished: of each flow [s].
        released, caused_by: as of `FlowTimes`.
    """

    state: IntArray
    slot_of: IntArray
    flow_of: IntArray
    since: np.ndarray
    rest: np.ndarray
    free: IntArray
    unfinished: IntArray
    ready: IntArray
    changed: IntArray
    change: IntArray
    counts: IntArray
    slowest: np.ndarray
    finished: np.ndarray
    released: np.ndarray
    caused_by: IntArray


def state_of(order: Dependencies, num_links: int, num_slots: int) -> RunState:
    """State before the first event: groups without dependencies are ready.

    Args:
        order: what flows wait for.
        num_links: of all flows [count].
        num_slots: flows in flight at most [count].
    """
    num_flows, num_groups = len(order.block_of), len(order.waits)
    first = np.flatnonzero(order.waits == 0)
    counts, ready, released = np.zeros(5, np.int64), np.zeros(num_groups, np.int64), np.full(num_groups, np.nan)
    ready[: len(first)], released[first] = first, 0.0
    counts[READY], counts[FREE] = len(first), num_slots
    return RunState(
        np.full(num_flows, ENTER, np.int8),
        np.full(num_flows, -1, np.int32),
        np.zeros(num_slots, np.int64),
        np.zeros(num_slots),
        np.zeros(num_slots),
        np.arange(num_slots - 1, -1, -1),
        np.bincount(order.block_of, minlength=len(order.next_block)),
        ready,
        np.zeros(num_links, np.int64),
        np.zeros(num_links, np.int8),
        counts,
        np.full(1, np.inf),
        np.full(num_flows, np.nan),
        released,
        np.full(num_groups, -1),
    )


@njit(cache=False, inline="always")
def _resolve_dependency(state, order, group, cause, time):  # type: ignore[no-untyped-def]
    """A dependency of a group is met; when all are, the group is ready."""
    order.waits[group] -= 1
    if order.waits[group] == 0:
        state.released[group], state.caused_by[group] = time, cause
        state.ready[state.counts[READY]] = group
        state.counts[READY] += 1


@njit(cache=False, inline="always")
def _next_flow(state, flows, active, events, ends, now, tolerance, left_out):  # type: ignore[no-untyped-def]
    """The flow of the next event at this time, and its time; -1 if there is none.

    Args:
        state, events, ends: changed.
        flows, active: of the run.
        now: time [s].
        tolerance, left_out: as of `run`, the tolerance of `limits`.
    """
    edge = now + now * SAME_TIME
    while True:
        slot, event_s = first_end(ends), first_event_s(events)
        if slot >= 0 and ends.time[slot] <= event_s:
            time, flow = ends.time[slot], state.flow_of[slot]
            if time > edge:
                rest_bytes = (time - now) * active.rate[slot]
                if time - now > tolerance * now or rest_bytes > tolerance * flows.amount[flow]:
                    return -1, time
                left_out[0] = max(left_out[0], rest_bytes / flows.amount[flow])
            drop_first_end(ends, slot)
            return flow, time
        if event_s > edge:
            return -1, now
        flow = pop_event(events)
        if flow >= 0:
            return flow, event_s


@njit(cache=False, inline="always")
def _mark(state, active, slot, what):  # type: ignore[no-untyped-def]
    """Flows start or end on the links of a slot; where some start, the ends do not matter."""
    for node in range(slot << active.shift, (slot << active.shift) + active.num_hops[slot]):
        link = active.node_link[node]
        if state.change[link] == NONE:
            state.changed[state.counts[CHANGES]] = link
            state.counts[CHANGES] += 1
        state.change[link] = max(state.change[link], what)


@njit(cache=False, inline="always")
def _enter(state, flows, active, events, flow, time):  # type: ignore[no-untyped-def]
    """A flow starts: it takes a slot, or ends at once if it is empty.

    Args:
        state, active, events: changed.
        flows: of the run.
        flow: number.
        time: of its start [s].
    """
    state.state[flow] = FINISH
    if flows.amount[flow] <= 0:
        push_event(events, flow, time)
        return
    state.counts[FREE] -= 1
    slot = state.free[state.counts[FREE]]
    state.slot_of[flow], state.flow_of[slot] = slot, flow
    state.since[slot], state.rest[slot] = time, flows.amount[flow]
    active.num_hops[slot], active.rate[slot] = flows.path_n[flow], 0.0
    for h in range(flows.path_n[flow]):
        node, link = (slot << active.shift) + h, flows.hops[flows.path_at[flow] + h]
        active.node_link[node], active.node_weight[node] = link, flows.weight[flows.path_at[flow] + h]
        active.load[link] += active.node_weight[node]
        active.place_on[node], active.nodes[active.link_at[link] + active.num_on[link]] = active.num_on[link], node
        active.num_on[link] += 1
    _mark(state, active, slot, STARTS)


@njit(cache=False, inline="always")
def _finish(state, order, active, flow, time):  # type: ignore[no-untyped-def]
    """A flow ends: it gives its slot back, and the last of a block lets the next block start.

    Args:
        state, active: changed.
        order: of the run.
        flow: number.
        time: of its end [s].
    """
    state.counts[ENDED] += 1
    state.finished[flow] = time
    slot = state.slot_of[flow]
    if slot >= 0:
        state.free[state.counts[FREE]] = slot
        state.counts[FREE] += 1
        state.slowest[0] = min(state.slowest[0], active.rate[slot])
        for node in range(slot << active.shift, (slot << active.shift) + active.num_hops[slot]):
            link, place = active.node_link[node], active.place_on[node]
            active.load[link] -= active.node_weight[node]
            active.num_on[link] -= 1
            last = active.nodes[active.link_at[link] + active.num_on[link]]
            active.place_on[last], active.nodes[active.link_at[link] + place] = place, last
        _mark(state, active, slot, ENDS)
    block = order.block_of[flow]
    state.unfinished[block] -= 1
    after = order.next_block[block]
    if state.unfinished[block] == 0 and after >= 0:
        for group in range(order.block_at[after], order.block_at[after + 1]):
            _resolve_dependency(state, order, group, 2 * flow, time)


@njit(cache=False, inline="always")
def _share_again(state, active, shares, ends, fresh, epoch, now):  # type: ignore[no-untyped-def]
    """The rates of all flows that the changes at this time can reach.

    Rates rise together, and up to that of the slowest flow that starts or ends nothing is new: what is slower keeps its rate.
    Who starts gets an equal part at least.

    Args:
        state, active, shares, ends: changed.
        fresh: space for a rate a slot.
        epoch: number of the time.
        now: time [s].
    """
    slowest = state.slowest[0]
    for i in range(state.counts[CHANGES]):
        link = state.changed[i]
        if state.change[link] == STARTS:
            slowest = min(slowest, active.capacity[link] / active.load[link])
        state.change[link] = NONE
    slowest *= 1 - SAME_RATE
    for i in range(state.counts[CHANGES]):
        start = state.changed[i]
        if shares.seen_link[start] == epoch:
            continue
        num_links, num_slots = reach(active, shares, start, epoch, slowest)
        if num_slots == 1:
            least = np.inf
            for k in range(num_links):
                link = shares.links[k]
                least = min(least, shares.left[link] / shares.open[link])
            fresh[shares.slots[0]] = least
        elif num_slots > 1:
            fill(active, shares, num_links, num_slots, fresh)
        for k in range(num_slots):
            slot = shares.slots[k]
            old, new = active.rate[slot], fresh[slot]
            if new != old:
                state.rest[slot] = max(0.0, state.rest[slot] - old * (now - state.since[slot]))
                state.since[slot], active.rate[slot] = now, new
                set_end(ends, slot, now + state.rest[slot] / new, old == 0)
                state.counts[EVENTS] += 1


@njit(cache=False, _nrt=False)
def _simulate(flows, order, state, active, shares, fresh, events, ends, limits, progress, left_out):  # type: ignore[no-untyped-def]
    """Process all events; returns DONE, or TOO_MANY.

    Args:
        flows, order, progress, left_out: as of `run`.
        state, active, shares, events, ends: changed.
        fresh: space for a rate a slot.
        limits: (max_events, tolerance) of `run`.
    """
    max_events, tolerance = limits
    counts, epoch, now = state.counts, 0, 0.0
    while True:
        counts[CHANGES], state.slowest[0] = 0, np.inf
        while True:
            for i in range(counts[READY]):  # each flow after its delay
                group = state.ready[i]
                for flow in range(order.group_at[group], order.group_at[group + 1]):
                    push_event(events, flow, state.released[group] + flows.delay[flow])
            counts[READY] = 0
            flow, time = _next_flow(state, flows, active, events, ends, now, tolerance, left_out)
            if flow < 0:
                break
            if state.state[flow] == ENTER:
                counts[EVENTS] += 1
                _enter(state, flows, active, events, flow, time)
                continue
            if state.state[flow] == FINISH:
                counts[EVENTS] += 1
                _finish(state, order, active, flow, time)
                if flows.compute[flow] > 0:
                    state.state[flow] = USABLE
                    push_event(events, flow, time + flows.compute[flow])
                    continue
            for k in range(order.feeds_at[flow], order.feeds_at[flow + 1]):
                _resolve_dependency(state, order, order.feeds[k], 2 * flow + 1, time)

        _share_again(state, active, shares, ends, fresh, epoch, now)
        epoch += 1
        progress[0] = counts[ENDED]
        if counts[EVENTS] > max_events or progress[1]:
            return TOO_MANY
        slot = first_end(ends)
        now = first_event_s(events)
        if slot >= 0:
            now = min(now, ends.time[slot])
        if now == np.inf:
            return DONE


@njit
def run(flows, order, state, active, shares, events, ends, limits, progress, left_out):  # type: ignore[no-untyped-def]
    """Simulate flows that wait for each other and share links; returns DONE, or TOO_MANY.

    Args:
        flows, order, state, active, shares, events, ends: of `FlowColumns`, `Dependencies` and so on, as plain tuples; all but
            `flows` are changed.
        limits: limit to the starts, ends and changes of rate [count]; ends that are at most this much later than an event,
            relative to the time and to the bytes of the flow, happen with it, 0 for none.
        progress: (flows that have ended, whether to stop), int64 (2,), shared with the waiting thread.
        left_out: the largest part of the bytes of a flow that was left out by this, float64 (1,), changed.
    """
    columns, waits, now = FlowColumns(*flows), Dependencies(*order), RunState(*state)
    in_flight, parts, next_events, next_ends = ActiveFlows(*active), Shares(*shares), NextEvents(*events), Ends(*ends)
    fresh = np.zeros(len(in_flight.rate))
    return _simulate(columns, waits, now, in_flight, parts, fresh, next_events, next_ends, limits, progress, left_out)
