"""The inner loops of the flow engine: events, fair shares of links, colours of equivalent flows.

A flow is identified by its number. It belongs to a group of flows that are released together, and the group to a block.
A slot is the place of one active flow, a node the place of one of its hops. The nodes on each link are kept side by side, in
`nodes[link_at[link]:][:count[link]]`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numba
import numpy as np

ENTER, FINISH, USABLE = 0, 1, 2  # what a flow does next
SAME_TIME = 1e-12  # relative; events closer than that are simultaneous
SAME_SHARE = 1e-11  # relative; bottlenecks closer than that are one level
SAME_RATE = 1e-9  # relative; rates that may be the same, but for rounding
NONE, ENDS, STARTS = 0, 1, 2  # what changes on a link
DONE, TOO_MANY = 0, 1
RECENT = 8
BLOCK = 7  # slots of a block, as a power of two

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


# --- fair shares ------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _fill(  # type: ignore[no-untyped-def]
    links, num_links, slots, num_slots, shift, slot_n, node_link, node_weight, weighted, link_at, count, nodes, left,
    open_, frozen, level_of, rate,
):  # fmt: skip
    """Progressive filling of one component: `rate` of its slots. All rates rise together; where a link is full, its
    flows stop.

    left, open_: capacity and weight of the flows that still rise on a link, without the `frozen` weight of level
    `level_of`; the caller gives both without the flows whose rates stay. One subtraction a link and level, however many
    flows stop there, keeps rounding small.
    """
    shares = [(0.0, 0)]
    shares.pop()
    for i in range(num_links):
        link = links[i]
        if open_[link] > 0:
            frozen[link], level_of[link] = 0, 0.0
            shares.append((left[link] / open_[link], link))
    heapify(shares)
    for i in range(num_slots):
        rate[slots[i]] = -1.0
    rising, level = num_slots, 0.0
    while rising:
        share, link = heappop(shares)
        still = open_[link] - frozen[link]
        if still == 0:
            continue
        current = (left[link] - level_of[link] * frozen[link]) / still
        if current > share * (1 + SAME_SHARE):  # others stopped meanwhile and left their part
            heappush(shares, (current, link))
            continue
        if current > level * (1 + SAME_SHARE):
            level = current
        for i in range(link_at[link], link_at[link] + count[link]):
            slot = nodes[i] >> shift
            if rate[slot] < 0:
                rate[slot] = level
                rising -= 1
                for node in range(slot << shift, (slot << shift) + slot_n[slot]):
                    other = node_link[node]
                    if level_of[other] != level:
                        left[other] -= level_of[other] * frozen[other]
                        open_[other] -= frozen[other]
                        frozen[other] = 0
                        level_of[other] = level
                    frozen[other] += node_weight[node] if weighted else 1


@numba.njit(cache=True)
def fair_rates(path_at, path_n, hops, weight, capacity):  # type: ignore[no-untyped-def]
    """Max-min fair rates of flows that are all active, float64 (flows,); arguments as of `run`.

    Args:
        path_at, path_n, hops: paths, as `run` takes them.
        weight: of each hop.
        capacity: of each link [byte/s].
    """
    n = len(path_at)
    shift = 0
    while 1 << shift < path_n.max():
        shift += 1
    node_link = np.full(n << shift, -1, np.int32)
    node_weight = np.full(n << shift, -1, np.int32)
    load = np.zeros(len(capacity), np.int64)
    link_at = _link_places(path_at, path_n, hops, len(capacity), n << shift)
    count = np.zeros(len(capacity), np.int32)
    nodes = np.empty(link_at[-1], np.int32)
    for f in range(n):
        for h in range(path_n[f]):
            node, link = (f << shift) + h, hops[path_at[f] + h]
            node_link[node], node_weight[node] = link, weight[path_at[f] + h]
            nodes[link_at[link] + count[link]] = node
            count[link] += 1
            load[link] += node_weight[node]
    links = np.flatnonzero(load)
    rate = np.empty(n)
    _fill(links, len(links), np.arange(n), n, shift, path_n, node_link, node_weight, True, link_at, count, nodes,
          capacity.copy(), load, np.zeros(len(capacity), np.int64), np.zeros(len(capacity)), rate)  # fmt: skip
    return rate


@numba.njit(cache=True)
def _link_places(path_at, path_n, hops, num_links, most):  # type: ignore[no-untyped-def]
    """Where the nodes of each link begin, int64 (links + 1,): room for all flows that cross it, or `most` nodes."""
    places = np.zeros(num_links + 1, np.int64)
    for f in range(len(path_at)):
        for h in range(path_at[f], path_at[f] + path_n[f]):
            places[hops[h] + 1] += 1
    for link in range(num_links):
        places[link + 1] = places[link] + min(places[link + 1], most)
    return places


# --- events -----------------------------------------------------------------------------------------------------------


@numba.njit(inline="always")
def _push_event(flow, time, heap, recent, recent_time, bucket_first, spare, bucket_of, after, before):  # type: ignore[no-untyped-def]
    """Set the next event of a flow. Events of one time are a doubly linked list, a bucket."""
    bucket = -1
    for i in range(RECENT):
        if recent_time[i] == time:
            bucket = recent[i]
    if bucket < 0:
        if len(spare):
            bucket = spare.pop()
        else:
            bucket = len(bucket_first)
            bucket_first.append(-1)
        heappush(heap, (time, bucket))
        oldest = bucket % RECENT  # any bucket may be dropped from the recent ones
        recent[oldest], recent_time[oldest] = bucket, time
    bucket_of[flow], before[flow], after[flow] = bucket, -1, bucket_first[bucket]
    if bucket_first[bucket] >= 0:
        before[bucket_first[bucket]] = flow
    bucket_first[bucket] = flow


@numba.njit(inline="always")
def _cancel(flow, bucket_first, bucket_of, after, before):  # type: ignore[no-untyped-def]
    """Remove the next event of a flow."""
    if before[flow] >= 0:
        after[before[flow]] = after[flow]
    else:
        bucket_first[bucket_of[flow]] = after[flow]
    if after[flow] >= 0:
        before[after[flow]] = before[flow]
    bucket_of[flow] = -1


@numba.njit(cache=True)
def _move(slot, place, num_queued, end, queue, place_of):  # type: ignore[no-untyped-def]
    """Put a slot, whose place in the queue is free, where its end belongs: a binary heap, the first end on top."""
    time = end[slot]
    while place > 0 and end[queue[(place - 1) >> 1]] > time:
        above = queue[(place - 1) >> 1]
        queue[place], place_of[above] = above, place
        place = (place - 1) >> 1
    while True:
        below = 2 * place + 1
        if below >= num_queued:
            break
        if below + 1 < num_queued and end[queue[below + 1]] < end[queue[below]]:
            below += 1
        if end[queue[below]] >= time:
            break
        queue[place], place_of[queue[below]] = queue[below], place
        place = below
    queue[place], place_of[slot] = slot, place


@numba.njit(cache=True)
def _first_end(end, least, stale):  # type: ignore[no-untyped-def]
    """The slot that ends first; -1 if none does. `least` is brought up to date where it is stale."""
    first, time = -1, np.inf
    for block in range(len(least)):
        if stale[block]:
            stale[block] = False
            soon = np.inf
            for slot in range(block << BLOCK, min((block + 1) << BLOCK, len(end))):
                soon = min(soon, end[slot])
            least[block] = soon
        if least[block] < time:
            first, time = block, least[block]
    if first >= 0:
        first <<= BLOCK
        while end[first] != time:
            first += 1
    return first


@numba.njit(inline="always")
def _resolve_dependency(group, cause, time, waits, released, caused_by, ready, num_ready):  # type: ignore[no-untyped-def]
    """A dependency of a group is met; when all are, the group is listed. Returns the number of listed groups."""
    waits[group] -= 1
    if waits[group] == 0:
        released[group], caused_by[group] = time, cause
        ready[num_ready] = group
        num_ready += 1
    return num_ready


@numba.njit(inline="always")
def _reach(  # type: ignore[no-untyped-def]
    start, epoch, slowest, shift, link_at, count, nodes, node_link, node_weight, weighted, slot_n, rate, capacity, load,
    links, slots, seen_link, seen_slot, left, open_,
):  # fmt: skip
    """List all links and slots that a change on a link can reach; returns the number of each.

    Flows slower than `slowest` keep their rates: they are not followed, and `left` and `open_` are without them.
    """
    links[0], reached, visited, num_slots = start, 1, 0, 0
    seen_link[start] = epoch
    while visited < reached:
        here = links[visited]
        visited += 1
        kept, lost, kept_weight = 0.0, 0.0, 0  # by those that keep their rates; lost: to rounding (Kahan)
        for i in range(link_at[here], link_at[here] + count[here]):
            node = nodes[i]
            slot = node >> shift
            if 0 < rate[slot] < slowest:
                times = node_weight[node] if weighted else 1
                part = rate[slot] * times - lost
                total = kept + part
                lost = (total - kept) - part
                kept = total
                kept_weight += times
            elif seen_slot[slot] != epoch:
                seen_slot[slot] = epoch
                slots[num_slots] = slot
                num_slots += 1
                for h in range(slot_n[slot]):
                    link = node_link[(slot << shift) + h]
                    if seen_link[link] != epoch:
                        seen_link[link] = epoch
                        links[reached] = link
                        reached += 1
        left[here], open_[here] = capacity[here] - kept, load[here] - kept_weight
    return reached, num_slots


@numba.njit(cache=True, nogil=True)
def run(  # type: ignore[no-untyped-def]
    amount, delay, compute, path_at, path_n, hops, weight, capacity, group_at, waits, block_at, block_of, next_block,
    feeds_at, feeds, num_slots, max_events, progress, tolerance, left_out,
):  # fmt: skip
    """Simulate flows that wait for each other and share links.

    Args:
        amount: bytes of each flow.
        delay: from the release of a flow to its first byte [s].
        compute: from the last byte until others may use the data [s].
        path_at, path_n: hops of a flow are hops[path_at:path_at + path_n].
        weight: of each hop: multiple of the flow's rate on that link [flows].
        capacity: of each link [byte/s].
        group_at: flows of group g are group_at[g] .. group_at[g + 1] - 1.
        waits: dependencies of each group, the block before included [count]; modified.
        block_at: groups of block b are block_at[b] .. block_at[b + 1] - 1.
        block_of, next_block: block of each flow; the block that waits for a block, or -1.
        feeds_at, feeds: groups that send data of flow f are feeds[feeds_at[f]:feeds_at[f + 1]].
        num_slots: flows in flight at most [count].
        max_events: limit to the starts, ends and changes of rate [count].
        progress: (flows that have ended, whether to stop), int64 (2,), shared with the waiting thread.
        tolerance: ends that are at most this much later than an event, relative to the time and to the bytes of the flow,
            happen with it; 0 for none.
        left_out: the largest part of the bytes of a flow that was left out by this, float64 (1,), changed.
    Returns: status, events, finish times of the flows, release times of the groups, and what released each: the flow
        times 2, plus 1 if it was its data; negative at the start.
    """
    n, num_links = len(amount), len(capacity)
    finished = np.full(n, np.nan)
    released = np.full(len(group_at) - 1, np.nan)
    caused_by = np.full(len(group_at) - 1, -1, np.int64)
    unfinished = np.zeros(len(block_at) - 1, np.int64)
    for flow in range(n):
        unfinished[block_of[flow]] += 1

    # next event of each flow, and its time
    state = np.full(n, ENTER, np.int8)
    bucket_of = np.full(n, -1, np.int32)
    after = np.full(n, -1, np.int32)
    before = np.full(n, -1, np.int32)
    recent, recent_time = np.full(RECENT, -1, np.int64), np.full(RECENT, -1.0)  # most events find their bucket here
    bucket_first, spare = [-1], [0]
    heap = [(0.0, 0)]
    heap.pop()

    # active flows and the links that they cross
    shift, weighted = 0, bool((weight != 1).any())
    while n and 1 << shift < path_n.max():
        shift += 1
    slot_of = np.full(n, -1, np.int32)
    free = np.arange(num_slots)[::-1].copy()
    num_free = num_slots
    slot_flow = np.zeros(num_slots, np.int64)
    slot_n = np.zeros(num_slots, np.int64)
    slots = np.zeros(num_slots, np.int64)
    rate = np.zeros(num_slots)
    since = np.zeros(num_slots)
    rest = np.zeros(num_slots)
    fresh = np.zeros(num_slots)
    seen_slot = np.full(num_slots, -1, np.int32)
    node_link = np.zeros(num_slots << shift, np.int32)
    node_weight = np.zeros(num_slots << shift, np.int32)
    place_on = np.zeros(num_slots << shift, np.int32)
    link_at = _link_places(path_at, path_n, hops, num_links, num_slots << shift)
    nodes = np.empty(link_at[-1], np.int32)
    count = np.zeros(num_links, np.int32)
    seen_link = np.full(num_links, -1, np.int32)
    load = np.zeros(num_links, np.int64)
    open_ = np.zeros(num_links, np.int64)
    frozen = np.zeros(num_links, np.int64)
    links = np.zeros(num_links, np.int64)
    dirty = np.zeros(num_links, np.int64)
    left = np.zeros(num_links)
    level_of = np.zeros(num_links)
    change = np.zeros(num_links, np.int8)
    end_of, num_queued = np.full(num_slots, np.inf), 0
    scans = len(group_at) == 2 and len(feeds) == 0  # nothing waits, so the order of ends at one time does not matter
    queue = np.zeros(0 if scans else num_slots, np.int64)  # slots by the time at which they end
    place_of = np.zeros(0 if scans else num_slots, np.int64)
    block_end = np.full((num_slots >> BLOCK) + 1 if scans else 0, np.inf)  # the first end of each block of slots
    stale = np.zeros(len(block_end), np.bool_)

    ready = np.flatnonzero(waits == 0)  # groups to release
    num_ready = len(ready)
    ready = np.append(ready, np.zeros(len(waits) - num_ready, np.int64))
    events, ended, epoch, now = 0, 0, 0, 0.0
    released[ready[:num_ready]] = 0.0
    while True:
        edge = now + now * SAME_TIME
        num_dirty, slowest = 0, np.inf  # links of flows that start or end, and the lowest rate of such a flow
        while True:
            for i in range(num_ready):
                group = ready[i]
                for flow in range(group_at[group], group_at[group + 1]):
                    _push_event(flow, released[group] + delay[flow], heap, recent, recent_time, bucket_first, spare,
                          bucket_of, after, before)  # fmt: skip
            num_ready = 0
            soonest = -1
            if num_queued:
                soonest = _first_end(end_of, block_end, stale) if scans else queue[0]
            if soonest >= 0 and (len(heap) == 0 or end_of[soonest] <= heap[0][0]):
                time, flow = end_of[soonest], slot_flow[soonest]
                if time > edge:
                    rest_bytes = (time - now) * rate[soonest]
                    if time - now > tolerance * now or rest_bytes > tolerance * amount[flow]:
                        break
                    left_out[0] = max(left_out[0], rest_bytes / amount[flow])
                num_queued -= 1
                if scans:
                    end_of[soonest], stale[soonest >> BLOCK] = np.inf, True
                elif num_queued:
                    _move(queue[num_queued], 0, num_queued, end_of, queue, place_of)
            else:
                if len(heap) == 0 or heap[0][0] > edge:
                    break
                time, bucket = heap[0]
                flow = bucket_first[bucket]
                if flow < 0:
                    heappop(heap)
                    for i in range(RECENT):
                        if recent[i] == bucket:
                            recent_time[i] = -1.0
                    spare.append(bucket)
                    continue
                _cancel(flow, bucket_first, bucket_of, after, before)
            if state[flow] == ENTER:
                events += 1
                state[flow] = FINISH
                if amount[flow] <= 0:
                    end = time
                    _push_event(flow, end, heap, recent, recent_time, bucket_first, spare, bucket_of, after, before)
                    continue
                num_free -= 1
                slot = free[num_free]
                slot_of[flow], slot_flow[slot], slot_n[slot] = slot, flow, path_n[flow]
                rate[slot], since[slot], rest[slot] = 0.0, time, amount[flow]
                for h in range(path_n[flow]):
                    node, link = (slot << shift) + h, hops[path_at[flow] + h]
                    node_link[node], node_weight[node] = link, weight[path_at[flow] + h]
                    load[link] += node_weight[node]
                    place_on[node], nodes[link_at[link] + count[link]] = count[link], node
                    count[link] += 1
                    if change[link] == NONE:
                        dirty[num_dirty] = link
                        num_dirty += 1
                    change[link] = STARTS
                continue
            if state[flow] == FINISH:
                events += 1
                ended += 1
                finished[flow] = time
                slot = slot_of[flow]
                if slot >= 0:
                    free[num_free] = slot
                    num_free += 1
                    slowest = min(slowest, rate[slot])
                    for h in range(path_n[flow]):
                        node = (slot << shift) + h
                        link = node_link[node]
                        load[link] -= node_weight[node]
                        count[link] -= 1
                        last = nodes[link_at[link] + count[link]]
                        place_on[last], nodes[link_at[link] + place_on[node]] = place_on[node], last
                        if change[link] == NONE:
                            change[link] = ENDS
                            dirty[num_dirty] = link
                            num_dirty += 1
                block = block_of[flow]
                unfinished[block] -= 1
                if unfinished[block] == 0 and next_block[block] >= 0:
                    for group in range(block_at[next_block[block]], block_at[next_block[block] + 1]):
                        num_ready = _resolve_dependency(
                            group, 2 * flow, time, waits, released, caused_by, ready, num_ready
                        )
                if compute[flow] > 0:
                    state[flow] = USABLE
                    _push_event(flow, time + compute[flow], heap, recent, recent_time, bucket_first, spare, bucket_of,
                          after, before)  # fmt: skip
                    continue
            for k in range(feeds_at[flow], feeds_at[flow + 1]):
                num_ready = _resolve_dependency(
                    feeds[k], 2 * flow + 1, time, waits, released, caused_by, ready, num_ready
                )

        # The shares of all flows that a change can reach. Rates rise together, and up to that of the slowest flow that
        # starts or ends nothing is new: what is slower keeps its rate. Who starts gets an equal part at least.
        for d in range(num_dirty):
            link = dirty[d]
            if change[link] == STARTS and load[link] > 0:
                slowest = min(slowest, capacity[link] / load[link])
            change[link] = NONE
        slowest *= 1 - SAME_RATE
        for d in range(num_dirty):
            if seen_link[dirty[d]] == epoch or count[dirty[d]] == 0:
                continue
            reached, num_component = _reach(
                dirty[d], epoch, slowest, shift, link_at, count, nodes, node_link, node_weight, weighted, slot_n, rate,
                capacity, load, links, slots, seen_link, seen_slot, left, open_,
            )  # fmt: skip
            if num_component == 1:
                least = np.inf
                for i in range(reached):
                    if open_[links[i]] > 0:
                        least = min(least, left[links[i]] / open_[links[i]])
                fresh[slots[0]] = least
            elif num_component > 1:
                _fill(links, reached, slots, num_component, shift, slot_n, node_link, node_weight, weighted, link_at,
                      count, nodes, left, open_, frozen, level_of, fresh)  # fmt: skip
            for i in range(num_component):
                slot = slots[i]
                if fresh[slot] != rate[slot]:
                    place = place_of[slot] if rate[slot] > 0 and not scans else num_queued
                    num_queued += rate[slot] == 0
                    rest[slot] = max(0.0, rest[slot] - rate[slot] * (now - since[slot]))
                    since[slot], rate[slot] = now, fresh[slot]
                    end_of[slot] = now + rest[slot] / rate[slot]
                    if scans:
                        stale[slot >> BLOCK] = True
                    else:
                        _move(slot, place, num_queued, end_of, queue, place_of)
                    events += 1
        epoch += 1
        progress[0] = ended
        if events > max_events or progress[1]:
            return TOO_MANY, events, finished, released, caused_by
        if len(heap) == 0 and num_queued == 0:
            return DONE, events, finished, released, caused_by
        now = np.inf
        if num_queued:
            now = end_of[_first_end(end_of, block_end, stale) if scans else queue[0]]
        if len(heap):
            now = min(now, heap[0][0])


# --- equivalent flows -------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def mix(word):  # type: ignore[no-untyped-def]
    """A hash of a word (splitmix64)."""
    word = np.uint64(word) + _GOLDEN
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@numba.njit(cache=True)
def refine(offsets, hops, flow_colour, link_colour):  # type: ignore[no-untyped-def]
    """One round of colour refinement, in place: links by their flows, then flows by their links.

    Args:
        offsets, hops: links of each flow.
        flow_colour: of each flow, changed.
        link_colour: of each link, changed.
    """
    crossing = np.zeros(len(link_colour), np.uint64)
    for flow in range(len(flow_colour)):
        mixed = mix(flow_colour[flow])
        for k in range(offsets[flow], offsets[flow + 1]):
            crossing[hops[k]] += mixed
    for link in range(len(link_colour)):
        link_colour[link] = mix(link_colour[link] ^ mix(crossing[link]))
    for flow in range(len(flow_colour)):
        crossed = np.uint64(0)
        for k in range(offsets[flow], offsets[flow + 1]):
            crossed += mix(link_colour[hops[k]])
        flow_colour[flow] = mix(flow_colour[flow] ^ mix(crossed))
