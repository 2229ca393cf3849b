"""The inner loop of the packet engine: events of cells and links.

Links, flows and cells are rows of record arrays, identified by their row. Queues (cells that wait for a link, flows that
alternate on a link) are linked lists through the rows; -1 is the end. Times are whole ticks.

A link has two events, the end of a sending and the arrival of the first cell in flight; a flow has three: its start or
the end of its sum, an acknowledgement, the notice of a loss. Each is in the heap at most once, and its number orders
events of one time: links by their numbers, on each the end of a sending before an arrival, then flows.

Functions are inlined, each in one or two places, since a call with this many arrays would cost more than its body. An
event therefore only lists the idle links that have cells to send, and the loop lets them send after the event. No
array is created here, so references need not be counted (`_nrt=False`), which would take as long as everything else.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from opticcl.kernels import njit

END, ARRIVE = 0, 1  # events of a link
TURN, ACKNOWLEDGED, LOST = 0, 1, 2  # events of a flow
RUNNING, DONE, NO_CELLS, TOO_MANY, TOO_LATE = 0, 1, 2, 3, 4
WAITS, SENDS = 0, 1  # what a flow does until its next TURN
LATEST = 1 << 62  # ticks
SLACK = 1e-3  # ticks; rounding of a product must not add a tick
SPARE = 4  # cells that one event may need

_i2, _i4, _i8, _f8 = np.int16, np.int32, np.int64, np.float64

STATE = np.dtype(
    [
        ("now", _i8), ("begin", _i8), ("num_planned", _i8), ("passed", _i8), ("most_events", _i8), ("unfinished", _i8),
        ("cell_bytes", _f8), ("cell_buffer_bytes", _i8), ("buffer", _i8), ("window", _i8),
        ("at_input", _i4), ("cuts", _i4), ("finite", _i4), ("windowed", _i4), ("interleaved", _i4),
        ("free", _i4), ("num_free", _i8), ("num_links", _i8), ("num_idle", _i8),
    ]
)  # fmt: skip
"""One row with the time, the time at which the first flows are released (`begin`), the options and the numbers of events in the
heap (`num_planned`), cells sent (`passed`), unfinished flows (`unfinished`) and listed idle links (`num_idle`)."""

LINK = np.dtype(
    [
        ("full", _i8), ("latency", _i8), ("per_byte", _f8),  # ticks to send a full cell, to its end, a byte
        ("free_at", _i8), ("wire", _i4), ("next_on_wire", _i4), ("ends", _i4), ("sender", _i4), ("listed", _i4),
        ("first", _i4), ("last", _i4), ("blocked", _i4), ("has_space", _i4),  # cells that wait to be sent
        ("in_flight", _i4), ("in_flight_last", _i4),  # cells in flight
        ("input_first", _i4), ("input_last", _i4), ("input_busy", _i4),  # cells that arrived over it, behind the first
        ("turn", _i4), ("source_queued", _i4), ("from_source", _i4),  # flows that start here, and whether a cell is queued
        ("frees", _i4), ("blocked_first", _i4), ("blocked_last", _i4), ("blocked_next", _i4),
        ("frees_bytes", _i8), ("held", _i8), ("waiting", _i8), ("most", _i8),
        ("carried", _f8), ("dropped", _f8), ("busy", _i8),
    ]
)  # fmt: skip

"""Links that share a rate are a ring, `next_on_wire`. The first of them, their `wire`, has when it is free (`free_at`), whether
its END is in the heap (`ends`), who has sent last (`sender`) and who is listed to send after this event, or -1 (`listed`)."""

FLOW = np.dtype(  # the fields that every cell needs come first
    [
        ("cells", _i8), ("sent", _i8), ("arrived", _i8), ("path_at", _i8), ("path_n", _i4), ("in_flight", _i4),
        ("lost", _i4), ("lost_tail", _i4), ("in_turn", _i4), ("following", _i4), ("before", _i4), ("state", _i4),
        ("tail", _f8), ("tail_buffer_bytes", _i8), ("back", _i8), ("notice", _i8), ("compute", _i8),
        ("acked", _i4), ("acked_last", _i4), ("missing", _i4), ("missing_last", _i4),
    ]
)  # fmt: skip

CELL = np.dtype(  # `at`: place of its link among the hops; `left`: links behind that one; `moved`: past its first
    [("time", _i8), ("at", _i8), ("flow", _i4), ("following", _i4), ("left", _i4), ("moved", _i2), ("is_tail", _i2)]
)
EVENT = np.dtype([("time", _i8), ("what", _i8)])


# --- events in time ---------------------------------------------------------------------------------------------------


@njit(cache=False, _nrt=False)
def _push_event(w, heap, time, what):  # type: ignore[no-untyped-def]
    """Add an event to the heap."""
    i = w.num_planned
    w.num_planned = i + 1
    while i > 0:
        up = (i - 1) >> 2
        if heap[up].time < time or (heap[up].time == time and heap[up].what < what):
            break
        heap[i].time = heap[up].time
        heap[i].what = heap[up].what
        i = up
    heap[i].time = time
    heap[i].what = what


@njit(cache=False, inline="always")
def _before(heap, one, other):  # type: ignore[no-untyped-def]
    """1 if one event comes before another, else 0."""
    a, b = heap[one], heap[other]
    return np.uint64((a.time < b.time) | ((a.time == b.time) & (a.what < b.what)))


@njit(cache=False, inline="always")
def _sink(heap, n, time, what):  # type: ignore[no-untyped-def]
    """Put an event into the heap of n places, the first of which is free; indices without sign need no second check."""
    one, two, four = np.uint64(1), np.uint64(2), np.uint64(4)
    i = np.uint64(0)
    while True:
        child = four * i + one
        if child + two + one < n:  # the first of four in two rounds, by comparisons without jumps
            a = child + _before(heap, child + one, child)
            b = child + two + _before(heap, child + two + one, child + two)
            child = a + (b - a) * _before(heap, b, a)
        elif child < n:
            other = child + one
            while other < n:
                if _before(heap, other, child):
                    child = other
                other += one
        else:
            break
        first_time, first_what = heap[child].time, heap[child].what
        if time < first_time or (time == first_time and what < first_what):
            break
        heap[i].time = first_time
        heap[i].what = first_what
        i = child
    heap[i].time = time
    heap[i].what = what


@njit(cache=False, _nrt=False)
def _pop_event(w, heap):  # type: ignore[no-untyped-def]
    """Remove the first event from the heap, in which an event has up to four others below it."""
    w.num_planned -= 1
    n = np.uint64(w.num_planned)
    _sink(heap, n, heap[n].time, heap[n].what)


# --- sending ----------------------------------------------------------------------------------------------------------


@njit(cache=False, inline="always")
def _sending_ticks(link, flows, cell):  # type: ignore[no-untyped-def]
    """Ticks that a link needs to send a cell."""
    return np.int64(ceil(flows[cell.flow].tail * link.per_byte - SLACK)) if cell.is_tail else link.full


@njit(cache=False, inline="always")
def _buffer_bytes(w, flows, cell):  # type: ignore[no-untyped-def]
    """Buffer space of a cell [bytes]."""
    return flows[cell.flow].tail_buffer_bytes if cell.is_tail else w.cell_buffer_bytes


@njit(cache=False, inline="always")
def _bytes(w, flows, cell):  # type: ignore[no-untyped-def]
    """Payload of a cell [bytes]."""
    return flows[cell.flow].tail if cell.is_tail else w.cell_bytes


@njit(cache=False, inline="always")
def _send(w, links, flows, cells, hops, heap, idle, number):  # type: ignore[no-untyped-def]
    """Send the first waiting cell over an idle link, unless the buffer behind it is full."""
    link = links[number]
    wire = links[link.wire]
    wire.listed = -1
    cell_number = link.first
    cell = cells[cell_number]
    goes_on = cell.left > 0
    size = _buffer_bytes(w, flows, cell)
    if goes_on and w.finite and not w.windowed and not link.has_space:
        buffer = links[number if w.at_input else hops[cell.at + 1]]
        if buffer.held + size > w.buffer:
            link.blocked, link.blocked_next = 1, -1
            if buffer.blocked_first < 0:
                buffer.blocked_first = number
            else:
                links[buffer.blocked_last].blocked_next = number
            buffer.blocked_last = number
            another = _next_in_turn(links, number)
            if another >= 0:
                _mark_ready(w, links, idle, another)
        else:
            buffer.held += size
    if not link.blocked:
        link.has_space = 0
        link.first = cell.following
        spent = _sending_ticks(link, flows, cell)
        wire.free_at, wire.sender = w.now + spent, number
        link.busy += spent
        link.carried += _bytes(w, flows, cell)
        w.passed += 1
        ready = wire.free_at + link.latency
        if goes_on and w.cuts:  # its head continues, but never so early that there would be a gap
            ready = w.now + link.latency + max(0, spent - _sending_ticks(links[hops[cell.at + 1]], flows, cell))
        cell.time, cell.following = ready, -1
        if link.in_flight < 0:
            link.in_flight = cell_number
            _push_event(w, heap, ready, 2 * number + ARRIVE)
        else:
            cells[link.in_flight_last].following = cell_number
        link.in_flight_last = cell_number

        link.from_source = cell.moved == 0
        link.frees = -1
        if cell.moved > 0:
            queue_number = hops[cell.at - 1] if w.at_input else number
            links[queue_number].waiting -= size
            if w.finite or w.at_input:
                link.frees, link.frees_bytes = queue_number, size
        if _next_in_turn(links, number) >= 0 or link.frees >= 0 or (link.from_source and link.turn >= 0):
            wire.ends = 1
            _push_event(w, heap, wire.free_at, 2 * link.wire + END)
        elif link.from_source:
            link.source_queued, link.from_source = 0, 0


@njit(cache=False, inline="always")
def _mark_ready(w, links, idle, number):  # type: ignore[no-untyped-def]
    """List an idle link, to send after the event."""
    links[links[number].wire].listed = number
    idle[w.num_idle] = number
    w.num_idle += 1


@njit(cache=False, inline="always")
def _next_in_turn(links, number):  # type: ignore[no-untyped-def]
    """The next of the links that share a rate that has a cell to send and is not blocked, this one last; or -1."""
    one = links[number].next_on_wire
    while one != number and (links[one].first < 0 or links[one].blocked):
        one = links[one].next_on_wire
    return one if links[one].first >= 0 and not links[one].blocked else -1


@njit(cache=False, inline="always")
def _ask_to_send(w, links, heap, idle, number):  # type: ignore[no-untyped-def]
    """A link has a cell to send: after the event where its wire is idle, else in turn once that has sent."""
    link = links[number]
    wire = links[link.wire]
    if not (wire.ends or link.blocked or wire.listed >= 0):
        if wire.free_at > w.now:
            wire.ends = 1
            _push_event(w, heap, wire.free_at, 2 * link.wire + END)
        else:
            _mark_ready(w, links, idle, number)


@njit(cache=False, inline="always")
def _enqueue(w, links, cells, heap, idle, number, cell_number):  # type: ignore[no-untyped-def]
    """Append a cell to the queue of a link."""
    link = links[number]
    cells[cell_number].following = -1
    if link.first < 0:
        link.first = cell_number
    else:
        cells[link.last].following = cell_number
    link.last = cell_number
    _ask_to_send(w, links, heap, idle, number)


@njit(cache=False, inline="always")
def _enqueue_next(w, links, flows, cells, heap, idle, number):  # type: ignore[no-untyped-def]
    """Queue the next cell of the flow whose turn it is on its first link."""
    link = links[number]
    link.source_queued = 0
    flow_number = link.turn
    if flow_number >= 0:
        flow = flows[flow_number]
        is_tail = 0
        if flow.lost > 0:
            flow.lost -= 1
        elif flow.lost_tail:
            flow.lost_tail, is_tail = 0, 1
        else:
            flow.sent += 1
            is_tail = flow.sent == flow.cells
        flow.in_flight += 1
        all_sent = flow.sent == flow.cells and flow.lost == 0 and not flow.lost_tail
        if all_sent or (w.windowed and flow.in_flight >= w.window):
            flow.in_turn = 0
            if flow.following == flow_number:
                link.turn = -1
            else:
                flows[flow.before].following = flow.following
                flows[flow.following].before = flow.before
                link.turn = flow.following
        elif w.interleaved:
            link.turn = flow.following
        cell_number = w.free
        cell = cells[cell_number]
        w.free = cell.following
        w.num_free -= 1
        cell.flow, cell.is_tail, cell.moved = flow_number, is_tail, 0
        cell.at, cell.left = flow.path_at, flow.path_n - 1
        link.source_queued = 1
        _enqueue(w, links, cells, heap, idle, number, cell_number)


@njit(cache=False, inline="always")
def _join_turns(w, link, flows, number):  # type: ignore[no-untyped-def]
    """Add a flow to those that alternate on their first link: last in the order, or, sequentially, next again."""
    flow = flows[number]
    flow.in_turn = 1
    if link.turn < 0:
        flow.following, flow.before, link.turn = number, number, number
    else:
        follower = link.turn
        before = flows[follower].before
        flow.following, flow.before = follower, before
        flows[before].following = number
        flows[follower].before = number
        if flow.sent > 0 and not w.interleaved:
            link.turn = number


@njit(cache=False, inline="always")
def _release_cell(w, cells, number):  # type: ignore[no-untyped-def]
    """Return the row of a cell to the free list."""
    cells[number].following = w.free
    w.free = number
    w.num_free += 1


# --- events -----------------------------------------------------------------------------------------------------------


@njit(cache=False, inline="always")
def _end_sending(w, links, flows, cells, hops, heap, idle, wire_number):  # type: ignore[no-untyped-def]
    """A wire has sent a cell: its buffer space is freed and waiting cells move up. Returns the link if a flow that starts
    there may queue its next cell, or -1."""
    wire = links[wire_number]
    number = wire.sender
    link = links[number]
    if link.frees >= 0:
        queue = links[link.frees]
        if w.finite:
            queue.held -= link.frees_bytes
            while queue.blocked_first >= 0:
                other = links[queue.blocked_first]
                size = _buffer_bytes(w, flows, cells[other.first])
                if queue.held + size > w.buffer:
                    break
                queue.held += size
                other.has_space, other.blocked = 1, 0
                _ask_to_send(w, links, heap, idle, queue.blocked_first)
                queue.blocked_first = other.blocked_next
        if w.at_input:
            behind = queue.input_first
            queue.input_busy = behind >= 0
            if behind >= 0:
                queue.input_first = cells[behind].following
                _enqueue(w, links, cells, heap, idle, hops[cells[behind].at], behind)
    wire.ends = 0
    another = _next_in_turn(links, number)
    if another >= 0:
        _mark_ready(w, links, idle, another)
    return number if link.from_source else -1


@njit(cache=False, inline="always")
def _arrive(w, links, flows, cells, hops, heap, idle, number):  # type: ignore[no-untyped-def]
    """The first cell on a link reaches its end; returns the flow that it completes, or -1."""
    link = links[number]
    cell_number = link.in_flight
    cell = cells[cell_number]
    link.in_flight = cell.following
    if link.in_flight >= 0:
        _push_event(w, heap, cells[link.in_flight].time, 2 * number + ARRIVE)
    flow_number = cell.flow
    completes = -1
    if cell.left == 0:
        flow = flows[flow_number]
        flow.arrived += 1
        if flow.arrived == flow.cells:
            completes = flow_number
        if w.windowed:
            cell.time, cell.following = w.now + flow.back, -1
            if flow.acked < 0:
                flow.acked = cell_number
                _push_event(w, heap, cell.time, 2 * w.num_links + 3 * flow_number + ACKNOWLEDGED)
            else:
                cells[flow.acked_last].following = cell_number
            flow.acked_last = cell_number
        else:
            _release_cell(w, cells, cell_number)
    else:
        cell.at, cell.left, cell.moved = cell.at + 1, cell.left - 1, 1
        onward = hops[cell.at]
        queue = links[number if w.at_input else onward]
        size = _buffer_bytes(w, flows, cell)
        if w.finite and w.windowed and queue.held + size > w.buffer:
            flow = flows[flow_number]
            queue.dropped += _bytes(w, flows, cell)
            cell.time, cell.following = w.now + flow.notice, -1
            if flow.missing < 0:
                flow.missing = cell_number
                _push_event(w, heap, cell.time, 2 * w.num_links + 3 * flow_number + LOST)
            else:
                cells[flow.missing_last].following = cell_number
            flow.missing_last = cell_number
        else:
            if w.finite and w.windowed:
                queue.held += size
            queue.waiting += size
            if w.at_input and queue.input_busy:
                cell.following = -1
                if queue.input_first < 0:
                    queue.input_first = cell_number
                else:
                    cells[queue.input_last].following = cell_number
                queue.input_last = cell_number
            else:
                queue.input_busy = 1
                _enqueue(w, links, cells, heap, idle, onward, cell_number)
            if queue.waiting > queue.most and links[links[onward].wire].listed != onward:  # else it is sent at once
                queue.most = queue.waiting
    return completes


@njit(cache=False, inline="always")
def _notify_sender(w, flow, cells, heap, number, of_loss):  # type: ignore[no-untyped-def]
    """A sender learns that a cell has arrived, or that one is lost."""
    flow.in_flight -= 1
    cell_number = flow.missing if of_loss else flow.acked
    cell = cells[cell_number]
    if of_loss:
        flow.missing = cell.following
        if cell.is_tail:
            flow.lost_tail = 1
        else:
            flow.lost += 1
    else:
        flow.acked = cell.following
    if cell.following >= 0:
        what = LOST if of_loss else ACKNOWLEDGED
        _push_event(w, heap, cells[cell.following].time, 2 * w.num_links + 3 * number + what)
    _release_cell(w, cells, cell_number)


@njit(cache=False, inline="always")
def _another_joins(w, flows, hops, heap, start):  # type: ignore[no-untyped-def]
    """Whether the next event adds another flow to this link at the same time; then all are added first."""
    # events of links come before those of flows, and a flow that waits has no other event than its start
    number = (heap[0].what - 2 * w.num_links) // 3
    at_once = w.num_planned > 0 and heap[0].time == w.now
    return at_once and flows[number].state == WAITS and hops[flows[number].path_at] == start


@njit(cache=False, inline="always")
def _resolve_dependency(w, heap, group, cause, waits, group_at, delay, released, caused_by):  # type: ignore[no-untyped-def]
    """A dependency of a group is met; when all are, its flows start, each after its delay."""
    waits[group] -= 1
    if waits[group] == 0:
        released[group], caused_by[group] = w.now, cause
        for flow in range(group_at[group], group_at[group + 1]):
            _push_event(w, heap, w.now + delay[flow], 2 * w.num_links + 3 * flow + TURN)


@njit(_nrt=False)
def run(  # type: ignore[no-untyped-def]
    state, links, flows, cells, hops, heap, idle, delay, group_at, waits, block_at, block_of, next_block, unfinished,
    feeds_at, feeds, finished, released, caused_by, num_events,
):  # fmt: skip
    """Process at most `num_events` events; returns RUNNING, or why it stopped.

    The whole state is in the arrays, so that it can be called again. Dependencies are those of `Dependencies`; the
    first call, at a time of -1, releases the groups without dependencies.

    Args: idle: space for a list of all links.
    """
    w = state[0]
    if w.now < 0:
        w.now = w.begin
        for group in range(len(waits)):
            if waits[group] == 0:
                waits[group] = 1
                _resolve_dependency(w, heap, group, -1, waits, group_at, delay, released, caused_by)
    for _ in range(num_events):
        if w.num_planned == 0 or w.unfinished == 0:
            return DONE
        if w.num_free < SPARE:
            return NO_CELLS
        if w.passed > w.most_events:
            return TOO_MANY
        w.now = heap[0].time
        if w.now > LATEST:
            return TOO_LATE
        what = heap[0].what
        _pop_event(w, heap)
        number, kind = -1, -1
        if what >= 2 * w.num_links:
            number, kind = divmod(what - 2 * w.num_links, 3)
        joins, ended, source = -1, -1, -1
        if number < 0:
            if what & 1 == END:
                source = _end_sending(w, links, flows, cells, hops, heap, idle, what >> 1)
            else:
                ended = _arrive(w, links, flows, cells, hops, heap, idle, what >> 1)
                number = ended
        elif kind != TURN:
            _notify_sender(w, flows[number], cells, heap, number, kind == LOST)
            flow = flows[number]
            if not flow.in_turn and (flow.sent < flow.cells or flow.lost > 0 or flow.lost_tail):
                joins = number
        elif flows[number].state == WAITS:
            flows[number].state = SENDS
            joins = number
        else:
            ended = number

        if ended >= 0:
            may_use = True
            if kind != TURN:  # its last cell has arrived
                finished[number] = w.now
                w.unfinished -= 1
                block = block_of[number]
                unfinished[block] -= 1
                if unfinished[block] == 0 and next_block[block] >= 0:
                    for group in range(block_at[next_block[block]], block_at[next_block[block] + 1]):
                        _resolve_dependency(w, heap, group, 2 * number, waits, group_at, delay, released, caused_by)
                if flows[number].compute > 0:
                    _push_event(w, heap, w.now + flows[number].compute, 2 * w.num_links + 3 * number + TURN)
                    may_use = False
            if may_use:  # and summed
                for k in range(feeds_at[number], feeds_at[number + 1]):
                    _resolve_dependency(w, heap, feeds[k], 2 * number + 1, waits, group_at, delay, released, caused_by)

        if joins >= 0:
            start = hops[flows[joins].path_at]
            _join_turns(w, links[start], flows, joins)
            if not links[start].source_queued and not _another_joins(w, flows, hops, heap, start):
                source = start
        if source >= 0:
            _enqueue_next(w, links, flows, cells, heap, idle, source)
        k = 0
        while k < w.num_idle:  # one that is blocked lists another of its wire
            _send(w, links, flows, cells, hops, heap, idle, idle[k])
            k += 1
        w.num_idle = 0
    return RUNNING
