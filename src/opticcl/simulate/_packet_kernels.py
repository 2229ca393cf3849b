"""The inner loop of the packet engine: cells, links and what happens to them, event by event.

Links, flows and cells are rows of record arrays and are known by their row. Lists (cells that wait for a link, flows
that take turns) are linked through the rows; -1 is nobody. Times are whole ticks.

A link has two events, the end of a sending and the arrival of the first cell on the way; a flow has three: it starts
or its sum is made, an acknowledgement is back, a loss is noticed. Each is in the heap at most once, and its number
decides among events of one time: links in the order of their numbers, of a link its end before its arrival, then flows.

Functions are inlined, each at one or two places: calls with so many arrays would cost more than what they do. So an event
only lists the idle links that have something to send, and the loop lets them send when the event is over. Nothing here
makes an array, so references need not be counted (`_nrt=False`), which would take as long as all the rest.
"""

from __future__ import annotations

from math import ceil

import numba
import numpy as np

END, ARRIVE = 0, 1  # events of a link
TURN, ACKNOWLEDGED, LOST = 0, 1, 2  # events of a flow
RUNNING, DONE, NO_CELLS, TOO_MANY, TOO_LATE = 0, 1, 2, 3, 4
WAITS, SENDS = 0, 1  # what a flow does until its next TURN
LATEST = 1 << 62  # ticks
SLACK = 1e-3  # ticks; rounding of a product must not add a tick
SPARE = 4  # cells that one event may need

_i2, _i4, _i8, _f8 = np.int16, np.int32, np.int64, np.float64

WORLD = np.dtype(
    [
        ("now", _i8), ("planned", _i8), ("passed", _i8), ("most_events", _i8), ("unfinished", _i8),
        ("cell_bytes", _f8), ("cell_room", _i8), ("buffer", _i8), ("window", _i8),
        ("at_input", _i4), ("cuts", _i4), ("finite", _i4), ("windowed", _i4), ("interleaved", _i4),
        ("free", _i4), ("num_free", _i8), ("num_links", _i8), ("num_idle", _i8),
    ]
)  # fmt: skip
"""The one row that knows the time, the options and how many events are planned (`planned`), cells sent (`passed`),
flows left (`unfinished`) and idle links listed (`num_idle`) are."""

LINK = np.dtype(
    [
        ("full", _i8), ("latency", _i8), ("per_byte", _f8),  # ticks to send a full cell, to its end, a byte
        ("free_at", _i8), ("ends", _i4), ("blocked", _i4),
        ("first", _i4), ("last", _i4), ("listed", _i4), ("has_room", _i4),  # cells that ask to be sent
        ("flying", _i4), ("flying_last", _i4),  # cells on the way
        ("input_first", _i4), ("input_last", _i4), ("input_busy", _i4),  # cells that came over it, behind the first
        ("turn", _i4), ("asked", _i4), ("from_source", _i4),  # flows that start here, and whether one has a cell waiting
        ("frees", _i4), ("blocked_first", _i4), ("blocked_last", _i4), ("blocked_next", _i4),
        ("frees_room", _i8), ("held", _i8), ("waiting", _i8), ("most", _i8),
        ("carried", _f8), ("dropped", _f8), ("busy", _i8),
    ]
)  # fmt: skip

FLOW = np.dtype(  # what every cell asks for comes first, together
    [
        ("cells", _i8), ("sent", _i8), ("arrived", _i8), ("path_at", _i8), ("path_n", _i4), ("flying", _i4),
        ("lost", _i4), ("lost_tail", _i4), ("in_turn", _i4), ("following", _i4), ("before", _i4), ("state", _i4),
        ("tail", _f8), ("tail_room", _i8), ("back", _i8), ("notice", _i8), ("compute", _i8),
        ("acked", _i4), ("acked_last", _i4), ("missing", _i4), ("missing_last", _i4),
    ]
)  # fmt: skip

CELL = np.dtype(  # `at`: place of its link among the hops; `left`: links behind that one; `moved`: past its first
    [("time", _i8), ("at", _i8), ("flow", _i4), ("following", _i4), ("left", _i4), ("moved", _i2), ("is_tail", _i2)]
)
EVENT = np.dtype([("time", _i8), ("what", _i8)])


# --- events in time ---------------------------------------------------------------------------------------------------


@numba.njit(_nrt=False)  # type: ignore[call-overload]
def _plan(w, heap, time, what):  # type: ignore[no-untyped-def]
    """Let `what` happen at `time`."""
    i = w.planned
    w.planned = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if heap[up].time < time or (heap[up].time == time and heap[up].what < what):
            break
        heap[i].time = heap[up].time
        heap[i].what = heap[up].what
        i = up
    heap[i].time = time
    heap[i].what = what


@numba.njit(_nrt=False)  # type: ignore[call-overload]
def _drop_first(w, heap):  # type: ignore[no-untyped-def]
    """Forget the first event."""
    n = w.planned - 1
    w.planned = n
    time, what = heap[n].time, heap[n].what
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        other = child + 1
        if other < n and (
            heap[other].time < heap[child].time
            or (heap[other].time == heap[child].time and heap[other].what < heap[child].what)
        ):
            child = other
        if time < heap[child].time or (time == heap[child].time and what < heap[child].what):
            break
        heap[i].time = heap[child].time
        heap[i].what = heap[child].what
        i = child
    heap[i].time = time
    heap[i].what = what


# --- sending ----------------------------------------------------------------------------------------------------------


@numba.njit(inline="always")
def _spent(link, flows, cell):  # type: ignore[no-untyped-def]
    """Ticks that a link sends a cell."""
    return np.int64(ceil(flows[cell.flow].tail * link.per_byte - SLACK)) if cell.is_tail else link.full


@numba.njit(inline="always")
def _room(w, flows, cell):  # type: ignore[no-untyped-def]
    """Bytes that a cell takes in a buffer."""
    return flows[cell.flow].tail_room if cell.is_tail else w.cell_room


@numba.njit(inline="always")
def _bytes(w, flows, cell):  # type: ignore[no-untyped-def]
    """What a cell carries."""
    return flows[cell.flow].tail if cell.is_tail else w.cell_bytes


@numba.njit(inline="always")
def _send(w, links, flows, cells, hops, heap, number):  # type: ignore[no-untyped-def]
    """Let an idle link send the first cell that waits, unless the buffer behind it is full."""
    link = links[number]
    link.listed = 0
    cell_number = link.first
    cell = cells[cell_number]
    goes_on = cell.left > 0
    room = _room(w, flows, cell)
    if goes_on and w.finite and not w.windowed and not link.has_room:
        buffer = links[number if w.at_input else hops[cell.at + 1]]
        if buffer.held + room > w.buffer:
            link.blocked, link.blocked_next = 1, -1
            if buffer.blocked_first < 0:
                buffer.blocked_first = number
            else:
                links[buffer.blocked_last].blocked_next = number
            buffer.blocked_last = number
        else:
            buffer.held += room
    if not link.blocked:
        link.has_room = 0
        link.first = cell.following
        spent = _spent(link, flows, cell)
        link.free_at = w.now + spent
        link.busy += spent
        link.carried += _bytes(w, flows, cell)
        w.passed += 1
        ready = link.free_at + link.latency
        if goes_on and w.cuts:  # its head goes on, but never so early that its tail is missing
            ready = w.now + link.latency + max(0, spent - _spent(links[hops[cell.at + 1]], flows, cell))
        cell.time, cell.following = ready, -1
        if link.flying < 0:
            link.flying = cell_number
            _plan(w, heap, ready, 2 * number + ARRIVE)
        else:
            cells[link.flying_last].following = cell_number
        link.flying_last = cell_number

        link.from_source = cell.moved == 0
        link.frees = -1
        if cell.moved > 0:
            queue_number = hops[cell.at - 1] if w.at_input else number
            links[queue_number].waiting -= room
            if w.finite or w.at_input:
                link.frees, link.frees_room = queue_number, room
        if link.first >= 0 or link.frees >= 0 or (link.from_source and link.turn >= 0):
            link.ends = 1
            _plan(w, heap, link.free_at, 2 * number + END)
        elif link.from_source:
            link.asked, link.from_source = 0, 0


@numba.njit(inline="always")
def _list(w, links, idle, number):  # type: ignore[no-untyped-def]
    """Let an idle link send when the event is over."""
    links[number].listed = 1
    idle[w.num_idle] = number
    w.num_idle += 1


@numba.njit(inline="always")
def _ask(w, links, cells, heap, idle, number, cell_number):  # type: ignore[no-untyped-def]
    """Let a cell wait until a link sends it."""
    link = links[number]
    cells[cell_number].following = -1
    if link.first < 0:
        link.first = cell_number
    else:
        cells[link.last].following = cell_number
    link.last = cell_number
    if not (link.ends or link.blocked or link.listed):
        if link.free_at > w.now:
            link.ends = 1
            _plan(w, heap, link.free_at, 2 * number + END)
        else:
            _list(w, links, idle, number)


@numba.njit(inline="always")
def _ask_for_next(w, links, flows, cells, heap, idle, number):  # type: ignore[no-untyped-def]
    """Let the flow whose turn it is ask the link where it starts to send its next cell."""
    link = links[number]
    link.asked = 0
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
        flow.flying += 1
        all_sent = flow.sent == flow.cells and flow.lost == 0 and not flow.lost_tail
        if all_sent or (w.windowed and flow.flying >= w.window):
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
        link.asked = 1
        _ask(w, links, cells, heap, idle, number, cell_number)


@numba.njit(inline="always")
def _take_turns(w, link, flows, number):  # type: ignore[no-untyped-def]
    """Let a flow take part in the turns of its first link: last in the round, or, sequentially, next again."""
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


@numba.njit(inline="always")
def _forget(w, cells, number):  # type: ignore[no-untyped-def]
    """Give the row of a cell back."""
    cells[number].following = w.free
    w.free = number
    w.num_free += 1


# --- what happens -----------------------------------------------------------------------------------------------------


@numba.njit(inline="always")
def _end(w, links, flows, cells, hops, heap, idle, number):  # type: ignore[no-untyped-def]
    """A link has sent a cell: its room is free and those behind it move up. Returns the link, if a flow starts there and
    may ask for its next cell, or -1."""
    link = links[number]
    if link.frees >= 0:
        queue = links[link.frees]
        link.frees = -1
        if w.finite:
            queue.held -= link.frees_room
            while queue.blocked_first >= 0:
                other = links[queue.blocked_first]
                room = _room(w, flows, cells[other.first])
                if queue.held + room > w.buffer:
                    break
                queue.held += room
                other.has_room, other.blocked = 1, 0
                _list(w, links, idle, queue.blocked_first)
                queue.blocked_first = other.blocked_next
        if w.at_input:
            behind = queue.input_first
            queue.input_busy = behind >= 0
            if behind >= 0:
                queue.input_first = cells[behind].following
                _ask(w, links, cells, heap, idle, hops[cells[behind].at], behind)
    link.ends = 0
    if link.first >= 0 and not link.listed:
        _list(w, links, idle, number)
    if not link.from_source:
        return -1
    link.from_source = 0
    return number


@numba.njit(inline="always")
def _arrive(w, links, flows, cells, hops, heap, idle, number):  # type: ignore[no-untyped-def]
    """The first cell on a link reaches its end; returns the flow that it completes, or -1."""
    link = links[number]
    cell_number = link.flying
    cell = cells[cell_number]
    link.flying = cell.following
    if link.flying >= 0:
        _plan(w, heap, cells[link.flying].time, 2 * number + ARRIVE)
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
                _plan(w, heap, cell.time, 2 * w.num_links + 3 * flow_number + ACKNOWLEDGED)
            else:
                cells[flow.acked_last].following = cell_number
            flow.acked_last = cell_number
        else:
            _forget(w, cells, cell_number)
    else:
        cell.at, cell.left, cell.moved = cell.at + 1, cell.left - 1, 1
        onward = hops[cell.at]
        queue = links[number if w.at_input else onward]
        room = _room(w, flows, cell)
        if w.finite and w.windowed and queue.held + room > w.buffer:
            flow = flows[flow_number]
            queue.dropped += _bytes(w, flows, cell)
            cell.time, cell.following = w.now + flow.notice, -1
            if flow.missing < 0:
                flow.missing = cell_number
                _plan(w, heap, cell.time, 2 * w.num_links + 3 * flow_number + LOST)
            else:
                cells[flow.missing_last].following = cell_number
            flow.missing_last = cell_number
        else:
            if w.finite and w.windowed:
                queue.held += room
            queue.waiting += room
            if w.at_input and queue.input_busy:
                cell.following = -1
                if queue.input_first < 0:
                    queue.input_first = cell_number
                else:
                    cells[queue.input_last].following = cell_number
                queue.input_last = cell_number
            else:
                queue.input_busy = 1
                _ask(w, links, cells, heap, idle, onward, cell_number)
            if queue.waiting > queue.most and not (links[onward].listed and links[onward].first == cell_number):
                queue.most = queue.waiting
    return completes


@numba.njit(inline="always")
def _hear(w, flow, cells, heap, number, of_loss):  # type: ignore[no-untyped-def]
    """A sender hears that a cell has arrived, or that one is lost."""
    flow.flying -= 1
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
        _plan(w, heap, cells[cell.following].time, 2 * w.num_links + 3 * number + what)
    _forget(w, cells, cell_number)


@numba.njit(inline="always")
def _another_joins(w, flows, hops, heap, start):  # type: ignore[no-untyped-def]
    """Whether the next event lets another flow take its turns on this link at the same time; then all join first."""
    number, kind = divmod(heap[0].what - 2 * w.num_links, 3)
    at_once = w.planned > 0 and heap[0].time == w.now and number >= 0 and kind == TURN
    return at_once and flows[number].state == WAITS and hops[flows[number].path_at] == start


@numba.njit(inline="always")
def _count_down(w, heap, group, cause, waits, group_at, delay, released, caused_by):  # type: ignore[no-untyped-def]
    """A group waits for one thing less; if for nothing, its flows start, each after its delay."""
    waits[group] -= 1
    if waits[group] == 0:
        released[group], caused_by[group] = w.now, cause
        for flow in range(group_at[group], group_at[group + 1]):
            _plan(w, heap, w.now + delay[flow], 2 * w.num_links + 3 * flow + TURN)


@numba.njit(cache=True, _nrt=False)  # type: ignore[call-overload]
def play(  # type: ignore[no-untyped-def]
    world, links, flows, cells, hops, heap, idle, delay, group_at, waits, block_at, block_of, next_block, unfinished,
    feeds_at, feeds, frees_at, frees, finished, released, caused_by, num_events,
):  # fmt: skip
    """Play at most `num_events` events; returns RUNNING, or why it stopped.

    Everything that changes stands in the arrays, so that it can be called again. What waits for what is as in
    `_flow_kernels.play`; the first call, at a time of -1, releases the groups that wait for nothing.

    Args: idle: room for a list of all links.
    """
    w = world[0]
    if w.now < 0:
        w.now = 0
        for group in range(len(waits)):
            if waits[group] == 0:
                waits[group] = 1
                _count_down(w, heap, group, -1, waits, group_at, delay, released, caused_by)
    for _ in range(num_events):
        if w.planned == 0 or w.unfinished == 0:
            return DONE
        if w.num_free < SPARE:
            return NO_CELLS
        if w.passed > w.most_events:
            return TOO_MANY
        w.now = heap[0].time
        if w.now > LATEST:
            return TOO_LATE
        what = heap[0].what
        _drop_first(w, heap)
        number, kind = divmod(what - 2 * w.num_links, 3)
        joins, ended, source = -1, -1, -1
        if what < 2 * w.num_links:
            number, kind = -1, -1
            if what & 1 == END:
                source = _end(w, links, flows, cells, hops, heap, idle, what >> 1)
            else:
                ended = _arrive(w, links, flows, cells, hops, heap, idle, what >> 1)
                number = ended
        elif kind != TURN:
            _hear(w, flows[number], cells, heap, number, kind == LOST)
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
            if kind != TURN:  # its last cell is here
                finished[number] = w.now
                w.unfinished -= 1
                for k in range(frees_at[number], frees_at[number + 1]):
                    _count_down(w, heap, frees[k], 2 * number, waits, group_at, delay, released, caused_by)
                block = block_of[number]
                unfinished[block] -= 1
                if unfinished[block] == 0 and next_block[block] >= 0:
                    for group in range(block_at[next_block[block]], block_at[next_block[block] + 1]):
                        _count_down(w, heap, group, 2 * number, waits, group_at, delay, released, caused_by)
                if flows[number].compute > 0:
                    _plan(w, heap, w.now + flows[number].compute, 2 * w.num_links + 3 * number + TURN)
                    may_use = False
            if may_use:  # and added up
                for k in range(feeds_at[number], feeds_at[number + 1]):
                    _count_down(w, heap, feeds[k], 2 * number + 1, waits, group_at, delay, released, caused_by)

        if joins >= 0:
            start = hops[flows[joins].path_at]
            _take_turns(w, links[start], flows, joins)
            if not links[start].asked and not _another_joins(w, flows, hops, heap, start):
                source = start
        if source >= 0:
            _ask_for_next(w, links, flows, cells, heap, idle, source)
        for k in range(w.num_idle):
            _send(w, links, flows, cells, hops, heap, idle[k])
        w.num_idle = 0
    return RUNNING
