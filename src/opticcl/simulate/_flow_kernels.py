"""The flow engine: flows that wait for each other and share links, event by event.

A flow is identified by its number. It belongs to a group of flows that are released together, and the group to a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import kept_with, njit
from opticcl.simulate import _event_kernels, _fair_kernels, _heap_kernels
from opticcl.simulate._event_kernels import (
    drop_first_end,
    ends_of,
    events_of,
    first_end,
    first_event_s,
    pop_event,
    push_event,
    set_end,
)
from opticcl.simulate._fair_kernels import active_flows, add_flow, fill, reach, remove_flow, shares_of

__all__ = ["DONE", "FlowColumns", "FlowOrder", "run"]

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


class FlowOrder(NamedTuple):
    """What flows wait for, int64 each.

    Args:
        group_at: flows of group g are group_at[g] .. group_at[g + 1] - 1.
        waits: dependencies of each group, the block before included [count]; changed.
        block_at: groups of block b are block_at[b] .. block_at[b + 1] - 1.
        block_of, next_block: block of each flow; the block that waits for a block, or -1.
        feeds_at, feeds: groups that send data of flow f are feeds[feeds_at[f]:feeds_at[f + 1]].
    """

    group_at: IntArray
    waits: IntArray
    block_at: IntArray
    block_of: IntArray
    next_block: IntArray
    feeds_at: IntArray
    feeds: IntArray


READY, FREE, CHANGES, EVENTS, ENDED = 0, 1, 2, 3, 4
"""What a run counts: groups to release, free slots, links on which flows start or end, events, flows that have ended."""


class _Run(NamedTuple):
    """State of a run.

    Args:
        state: what each flow does next.
        slot_of: of each flow; -1: it is not in flight.
        flow_of, since, rest: of each slot: its flow, when its rate was set [s], and what it still had to send then [bytes].
        free: slots that are free.
        unfinished: flows of each block [count].
        ready: groups to release.
        changed, change: links on which flows start or end at this time, and which of them.
        counts: see above.
        slowest: lowest rate of a flow that starts or ends at this time, float64 (1,) [byte/s].
        finished: of each flow [s].
        released, caused_by: of each group, see `run`.
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


@njit(cache=False)
def _begin(order, num_links, num_slots):  # type: ignore[no-untyped-def]
    """State before the first event: groups without dependencies are ready."""
    num_flows, num_groups = len(order.block_of), len(order.waits)
    unfinished = np.zeros(len(order.next_block), np.int64)
    for flow in range(num_flows):
        unfinished[order.block_of[flow]] += 1
    counts, ready, released = np.zeros(5, np.int64), np.zeros(num_groups, np.int64), np.full(num_groups, np.nan)
    for group in range(num_groups):
        if order.waits[group] == 0:
            ready[counts[READY]], released[group] = group, 0.0
            counts[READY] += 1
    counts[FREE] = num_slots
    return _Run(
        np.full(num_flows, ENTER, np.int8),
        np.full(num_flows, -1, np.int32),
        np.zeros(num_slots, np.int64),
        np.zeros(num_slots),
        np.zeros(num_slots),
        np.arange(num_slots)[::-1].copy(),
        unfinished,
        ready,
        np.zeros(num_links, np.int64),
        np.zeros(num_links, np.int8),
        counts,
        np.full(1, np.inf),
        np.full(num_flows, np.nan),
        released,
        np.full(num_groups, -1, np.int64),
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
def _release(state, flows, order, events):  # type: ignore[no-untyped-def]
    """Flows of the groups that are ready start, each after its delay."""
    for i in range(state.counts[READY]):
        group = state.ready[i]
        for flow in range(order.group_at[group], order.group_at[group + 1]):
            push_event(events, flow, state.released[group] + flows.delay[flow])
    state.counts[READY] = 0


@njit(cache=False, inline="always")
def _next_flow(state, flows, active, events, ends, now, tolerance, left_out):  # type: ignore[no-untyped-def]
    """The flow of the next event at this time, and its time; -1 if there is none.

    Args:
        state, events, ends: changed.
        flows, active: of the run.
        now: time [s].
        tolerance, left_out: as of `run`.
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
    add_flow(active, slot, flows.path_at[flow], flows.path_n[flow], flows.hops, flows.weight)
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
        remove_flow(active, slot)
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
            _release(state, flows, order, events)
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


@kept_with(_event_kernels, _fair_kernels, _heap_kernels)
@njit
def run(flow_columns, order_columns, capacity, num_slots, max_events, progress, tolerance, left_out):  # type: ignore[no-untyped-def]
    """Simulate flows that wait for each other and share links.

    Args:
        flow_columns, order_columns: of `FlowColumns` and of `FlowOrder`, as plain tuples.
        capacity: of each link [byte/s].
        num_slots: flows in flight at most [count].
        max_events: limit to the starts, ends and changes of rate [count].
        progress: (flows that have ended, whether to stop), int64 (2,), shared with the waiting thread.
        tolerance: ends that are at most this much later than an event, relative to the time and to the bytes of the flow,
            happen with it; 0 for none.
        left_out: the largest part of the bytes of a flow that was left out by this, float64 (1,), changed.
    Returns: status, events, finish times of the flows, release times of the groups, and what released each: the flow
        times 2, plus 1 if it was its data; negative at the start.
    """
    flows, order = FlowColumns(*flow_columns), FlowOrder(*order_columns)
    active = active_flows(flows.path_at, flows.path_n, flows.hops, flows.weight, capacity, num_slots)
    most_on_link = np.diff(active.link_at).max() if len(capacity) else 0
    shares, fresh = shares_of(len(capacity), num_slots, most_on_link), np.zeros(num_slots)
    state = _begin(order, len(capacity), num_slots)
    at_once = len(order.waits) == 1 and len(order.feeds) == 0  # nothing waits: the order of equal ends does not matter
    events, ends = events_of(len(flows.amount)), ends_of(num_slots, at_once)
    limits = max_events, tolerance
    status = _simulate(flows, order, state, active, shares, fresh, events, ends, limits, progress, left_out)
    return status, state.counts[EVENTS], state.finished, state.released, state.caused_by
