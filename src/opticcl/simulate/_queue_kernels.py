"""The inner loops of queues in order: cells that wait for nothing but the cells before them, link by link.

Where buffers are unlimited, queues at outputs and senders paced, no link waits for what is behind it. What a link sends,
and when, follows from the cells that arrive and the transfers that start there. So time is cut into windows, and each link
takes all of its events of a window at once, from the cells that other links have sent to it; there is no heap of the events
of all links. Nothing may reach a link that has had its turn: where links form no circle, each comes after those before it,
and a window may be long; where they do, it is no longer than the smallest cell is on its way over a link.

The events of a link and their order are those of `_packet_kernels`: the end of a sending, the arrival of a cell, the start
of a flow. At one time arrivals from links of lower number come first, then the end of a sending, the other arrivals, and
flows. The caller excludes that an event causes another at the same time: a sending takes a tick or more. The key of an
event is one integer, its time in the window and its place in this order.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from opticcl.kernels import njit

RUNNING, DONE, NO_CELLS, TOO_LATE = 0, 1, 2, 4
NEVER = 1 << 62  # ticks
PLACES = 20  # bits of the place of an event among those of its time
STARTS = (1 << PLACES) - 1  # place of the start of a flow
BLOCK = 64  # links that are skipped together where nothing happens
SLACK = 1e-3  # ticks; rounding of a product must not add a tick

_i2, _i4, _i8, _f8 = np.int16, np.int32, np.int64, np.float64

STATE = np.dtype(
    [
        ("begin", _i8), ("end", _i8), ("window", _i8), ("place", _i8),
        ("passed", _i8), ("unfinished", _i8), ("free", _i8),
        ("cell_bytes", _f8), ("cell_buffer_bytes", _i8), ("cuts", _i4), ("interleaved", _i4),
        ("now", _i8), ("num_keys", _i8), ("end_key", _i8), ("start_key", _i8), ("later", _i8),
    ]
)  # fmt: skip
"""One row: the window, the place among the links, cells sent, flows whose last cell is not sent on their last link, the first
free row of a cell, the options; of a link, its time, the keys of its next events and the first arrival behind the window."""

LINK = np.dtype(
    [
        ("full", _i8), ("latency", _i8), ("per_byte", _f8),  # ticks to send a full cell, to its end, a byte
        ("in_at", _i4), ("in_n", _i4), ("in_lower", _i4),  # edges that lead to it; those from links of lower number
        ("start_at", _i4), ("start_end", _i4),  # flows that have not started yet
        ("first", _i4), ("last", _i4), ("turn", _i4),  # cells that wait; the flow whose turn it is
        ("ends", _i2), ("sends", _i2), ("source_queued", _i2), ("from_source", _i2),
        ("free_at", _i8), ("waiting", _i8), ("most", _i8), ("carried", _f8), ("busy", _i8),
    ]
)  # fmt: skip

EDGE = np.dtype([("first", _i4), ("last", _i4), ("to", _i4)])  # from a link to another: cells on their way
FLOW = np.dtype(  # `together`: the next flow to start does so at the same time on the same link
    [
        ("cells", _i8), ("sent", _i8), ("tail", _f8), ("tail_buffer_bytes", _i8), ("start", _i8),
        ("path_at", _i4), ("following", _i4), ("before", _i4), ("together", _i4),
    ]
)  # fmt: skip
CELL = np.dtype(  # `at`: place of its link among the links of all paths; `moved`: past its first
    [("time", _i8), ("flow", _i4), ("at", _i4), ("following", _i4), ("moved", _i2), ("is_tail", _i2)]
)


@njit
def in_order(edge_to, out_at, out, used):  # type: ignore[no-untyped-def]
    """Links that are used, each behind those with an edge to it; fewer than are used if there are circles of edges.

    Args:
        edge_to: link that each edge leads to, (edges,).
        out_at, out: edges from link l are out[out_at[l] : out_at[l + 1]].
        used: whether a link is used, (links,).
    """
    missing = np.zeros(len(used), np.int64)
    for link in edge_to:
        missing[link] += 1
    order = np.empty(len(used), np.int64)
    n = 0
    for link in range(len(used)):
        if used[link] and missing[link] == 0:
            order[n] = link
            n += 1
    done = 0
    while done < n:
        link = order[done]
        done += 1
        for k in range(out_at[link], out_at[link + 1]):
            to = edge_to[out[k]]
            missing[to] -= 1
            if missing[to] == 0:
                order[n] = to
                n += 1
    return order[:n]


@njit(cache=False, inline="always")
def _add_key(heap, n, key):  # type: ignore[no-untyped-def]
    """Add a key to a heap of n."""
    i = np.uint64(n)
    one = np.uint64(1)
    while i > 0:
        up = (i - one) >> one
        if heap[up] <= key:
            break
        heap[i] = heap[up]
        i = up
    heap[i] = key


@njit(cache=False, inline="always")
def _replace_first(heap, n, key):  # type: ignore[no-untyped-def]
    """Put a key in the place of the first of a heap of n; behind the last is NEVER."""
    one, size = np.uint64(1), np.uint64(n)
    i = np.uint64(0)
    child = one
    while child < size:
        child += np.uint64(heap[child + one] < heap[child])
        if key <= heap[child]:
            break
        heap[i] = heap[child]
        i = child
        child = i + i + one
    heap[i] = key


@njit(cache=False, inline="always")
def _key(w, time, place):  # type: ignore[no-untyped-def]
    """Key of an event: its time in the window, then its place; NEVER behind the window."""
    return (time - w.begin) << PLACES | place if time < w.end else np.int64(NEVER)


# --- events of a link -------------------------------------------------------------------------------------------------


@njit(cache=False, inline="always")
def _list_events(w, link, edges, flows, cells, starts, heap):  # type: ignore[no-untyped-def]
    """The keys of the next events of a link: the first arrival over each edge, the end of a sending, the start of a flow."""
    n = 0
    w.later = NEVER
    for k in range(link.in_n):
        first = edges[link.in_at + k].first
        if first >= 0:
            time = cells[first].time
            if time < w.end:
                _add_key(heap, n, _key(w, time, k))
                n += 1
            else:
                w.later = min(w.later, time)
    heap[n] = NEVER
    w.num_keys = n
    w.end_key = _key(w, link.free_at, link.in_lower) if link.ends else np.int64(NEVER)
    w.start_key = (
        _key(w, flows[starts[link.start_at]].start, STARTS) if link.start_at < link.start_end else np.int64(NEVER)
    )


@njit(cache=False, inline="always")
def _plan_end(w, link):  # type: ignore[no-untyped-def]
    """The end of a sending becomes an event."""
    link.ends = 1
    w.end_key = _key(w, link.free_at, link.in_lower)


@njit(cache=False, inline="always")
def _enqueue(w, link, cells, number):  # type: ignore[no-untyped-def]
    """Append a cell to the queue of the link."""
    cells[number].following = -1
    if link.first < 0:
        link.first = number
    else:
        cells[link.last].following = number
    link.last = number
    if not link.ends:
        if link.free_at > w.now:
            _plan_end(w, link)
        else:
            link.sends = 1


@njit(cache=False, inline="always")
def _enqueue_next(w, link, flows, cells):  # type: ignore[no-untyped-def]
    """Queue the next cell of the flow whose turn it is."""
    flow_number, number = link.turn, w.free
    flow, cell = flows[flow_number], cells[number]
    w.free = cell.following
    flow.sent += 1
    is_tail = flow.sent == flow.cells
    if is_tail:
        if flow.following == flow_number:
            link.turn = -1
        else:
            flows[flow.before].following = flow.following
            flows[flow.following].before = flow.before
            link.turn = flow.following
    elif w.interleaved:
        link.turn = flow.following
    cell.flow, cell.at, cell.moved, cell.is_tail = flow_number, flow.path_at, 0, is_tail
    link.source_queued = 1
    _enqueue(w, link, cells, number)


@njit(cache=False, inline="always")
def _start_flow(w, link, flows, starts):  # type: ignore[no-untyped-def]
    """Add a flow to those that alternate on the link, last in the order."""
    number = starts[link.start_at]
    flow = flows[number]
    if link.turn < 0:
        flow.following, flow.before, link.turn = number, number, number
    else:
        before = flows[link.turn].before
        flow.following, flow.before = link.turn, before
        flows[before].following = number
        flows[link.turn].before = number
    link.start_at += 1
    w.start_key = (
        _key(w, flows[starts[link.start_at]].start, STARTS) if link.start_at < link.start_end else np.int64(NEVER)
    )


@njit(cache=False, inline="always")
def _arrive(w, link, edges, flows, cells, heap):  # type: ignore[no-untyped-def]
    """The first of all cells that arrive."""
    k = heap[0] & STARTS
    edge = edges[link.in_at + k]
    number = edge.first
    cell = cells[number]
    edge.first = cell.following
    key = np.int64(NEVER)
    if edge.first >= 0:
        time = cells[edge.first].time
        key = _key(w, time, k)
        if key == NEVER:
            w.later = min(w.later, time)
    if key == NEVER:
        w.num_keys -= 1
        key = heap[w.num_keys]
        heap[w.num_keys] = NEVER
    if w.num_keys > 0:
        _replace_first(heap, w.num_keys, key)
    cell.at, cell.moved = cell.at + 1, 1
    link.waiting += flows[cell.flow].tail_buffer_bytes if cell.is_tail else w.cell_buffer_bytes
    _enqueue(w, link, cells, number)
    if link.waiting > link.most and not link.sends:
        link.most = link.waiting


@njit(cache=False, inline="always")
def _sending_ticks(link, flows, cell):  # type: ignore[no-untyped-def]
    """Ticks that a link needs to send a cell."""
    return np.int64(ceil(flows[cell.flow].tail * link.per_byte - SLACK)) if cell.is_tail else link.full


@njit(cache=False, inline="always")
def _send(w, link, links, edges, flows, cells, via, due, blocks, finished):  # type: ignore[no-untyped-def]
    """Send the first waiting cell."""
    number = link.first
    cell = cells[number]
    link.sends, link.first = 0, cell.following
    spent = _sending_ticks(link, flows, cell)
    link.free_at = w.now + spent
    link.busy += spent
    link.carried += flows[cell.flow].tail if cell.is_tail else w.cell_bytes
    w.passed += 1
    ready = link.free_at + link.latency
    link.from_source = cell.moved == 0
    if cell.moved:
        link.waiting -= flows[cell.flow].tail_buffer_bytes if cell.is_tail else w.cell_buffer_bytes
    onward = via[cell.at]
    if onward < 0:
        if cell.is_tail:
            finished[cell.flow] = ready
            w.unfinished -= 1
        cell.following = w.free
        w.free = number
    else:
        edge = edges[onward]
        if w.cuts:  # its head continues, but never so early that there would be a gap
            ready = w.now + link.latency + max(0, spent - _sending_ticks(links[edge.to], flows, cell))
        cell.time, cell.following = ready, -1
        if edge.first < 0:
            edge.first = number
            if ready < due[edge.to]:
                due[edge.to] = ready
                blocks[edge.to // BLOCK] = min(blocks[edge.to // BLOCK], ready)
        else:
            cells[edge.last].following = number
        edge.last = number
    if link.first >= 0 or (link.from_source and link.turn >= 0):
        _plan_end(w, link)
    elif link.from_source:
        link.source_queued, link.from_source = 0, 0


@njit(cache=False, inline="always")
def _next_window(w, blocks):  # type: ignore[no-untyped-def]
    """Begin the next window, where something happens."""
    least = np.int64(NEVER)
    for k in range(len(blocks)):
        least = min(least, blocks[k])
    w.place = 0
    w.begin = max(w.end, least)
    w.end = w.begin + w.window


@njit(_nrt=False)
def run(state, links, edges, flows, cells, via, due, blocks, starts, heap, finished, num_sent):  # type: ignore[no-untyped-def]
    """Send about `num_sent` cells; returns RUNNING, or why it stopped.

    The whole state is in the arrays, so that it can be called again.

    Args:
        state: STATE, (1,).
        links: LINK, each behind those before it, (links,).
        edges: EDGE, sorted by the link that they lead to, then by the number of the one that they come from.
        flows: FLOW, (flows,).
        cells: CELL, rows for cells.
        via: of each link of each path, the edge to the next, -1 behind the last.
        due: of each link, a time before which it has no event, (links,).
        blocks: the least of `due` or less, of each BLOCK of links.
        starts: flows by their first links, each in order of their starts.
        heap: space for as many keys as a link has edges that lead to it, and two.
        finished: arrival of the last cell of each flow, written.
        num_sent: cells sent over a link after which it returns.
    """
    w = state[0]
    most = w.passed + num_sent
    while w.unfinished > 0:
        while w.place < len(links):
            number = w.place
            block = number // BLOCK
            if number % BLOCK == 0:
                if blocks[block] >= w.end:
                    w.place += BLOCK
                    continue
                blocks[block] = NEVER
            if due[number] < w.end:
                link = links[number]
                _list_events(w, link, edges, flows, cells, starts, heap)
                while min(w.end_key, heap[0], w.start_key) < NEVER:
                    takes = False
                    if w.end_key <= heap[0] and w.end_key < w.start_key:
                        takes = link.from_source and link.turn >= 0
                        if takes and w.free < 0:
                            break
                        w.now, w.end_key = link.free_at, NEVER
                        link.ends, link.sends = 0, link.first >= 0
                        if link.from_source:
                            link.source_queued = 0
                    elif heap[0] < w.start_key:
                        w.now = w.begin + (heap[0] >> PLACES)
                        _arrive(w, link, edges, flows, cells, heap)
                    else:
                        takes = not (link.source_queued or flows[starts[link.start_at]].together)
                        if takes and w.free < 0:
                            break
                        w.now = w.begin + (w.start_key >> PLACES)
                        _start_flow(w, link, flows, starts)
                    if takes:
                        _enqueue_next(w, link, flows, cells)
                    if link.sends:
                        _send(w, link, links, edges, flows, cells, via, due, blocks, finished)
                if min(w.end_key, w.start_key) < NEVER:
                    blocks[block] = w.begin
                    return NO_CELLS
                due[number] = w.later
                if link.ends:
                    due[number] = min(due[number], link.free_at)
                if link.start_at < link.start_end:
                    due[number] = min(due[number], flows[starts[link.start_at]].start)
            blocks[block] = min(blocks[block], due[number])
            w.place += 1
            if w.passed >= most:
                return RUNNING
        _next_window(w, blocks)
        if w.begin >= NEVER and w.unfinished > 0:
            return TOO_LATE
    return DONE
