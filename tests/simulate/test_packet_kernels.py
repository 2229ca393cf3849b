"""Cells beside a simulation with lists: queues, buffers, windows, losses, turns and what flows wait for."""

import heapq
from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.errors import ParameterError
from opticcl.simulate.dependencies import Dependencies, released_together
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.options import PacketOptions
from opticcl.simulate.packet.cells import CellFlows, CellLinks, run_cells

CELL, TICKS = 64, 1e15
ANSWERS = ("finished", "released", "caused_by", "passed", "carried", "busy_s", "queue", "dropped")


class Listed:
    """Cells of flows, each an object, in lists of what waits where.

    At one time links act in their order, on each the end of a sending before an arrival; then flows.

    Args:
        wires: links.
        flows: over them.
        waits: what flows wait for.
        options: of the packet engine.
    """

    def __init__(self, wires, flows, waits, options):
        self.o, self.wires, self.waits = options, wires, waits
        self.limit = options.buffer_bytes
        self.windowed, self.at_input = options.transport == "windowed", options.queue == "input"
        n, m = len(flows.amount), len(wires.capacity)
        self.links = [
            SimpleNamespace(
                number=i, waiting=[], flying=[], inputs=[], input_busy=False, turns=[], own=False, sends_own=False,
                blocked=[], is_blocked=False, granted=False, frees=None, held=0, bytes=0, most=0, carried=0.0, dropped=0.0,
                busy=0,
            )
            for i in range(m)
        ]  # fmt: skip
        names = list(range(m) if wires.wire is None else wires.wire)
        for name in set(names):
            mine = [self.links[i] for i in range(m) if names[i] == name]
            wire = SimpleNamespace(links=mine, free_at=0, ends=False, sender=None, acts=None)
            for link in mine:
                link.wire = wire
        self.late = [round(s * TICKS) for s in wires.latency_s]
        self.flows = []
        for i in range(n):
            path = flows.hops[flows.path_at[i] : flows.path_at[i] + flows.path_n[i]].tolist()
            number = max(1, ceil(flows.amount[i] / CELL))
            back = sum(self.late[k] for k in path) + round(wires.base_s * TICKS)
            trip = 2 * back + sum(self.ticks(CELL, k) for k in path)
            notice = 2 * trip if options.retransmit_s is None else round(options.retransmit_s * TICKS)
            self.flows.append(SimpleNamespace(
                number=i, path=path, left=number, of=number, tail=flows.amount[i] - (number - 1) * CELL, arrived=0, lost=[],
                in_flight=0, started=False, back=back, notice=notice, sums=round(flows.compute_s[i] * TICKS), acks=[],
                losses=[], delay=round((flows.delay_s[i] + wires.base_s) * TICKS), finished=None,
            ))  # fmt: skip
        self.heap, self.now, self.passed = [], 0, 0
        groups = len(waits.waits)
        self.missing = waits.waits.tolist()
        self.released, self.caused_by = [None] * groups, [0] * groups
        self.unfinished = np.bincount(waits.block_of).tolist()
        for group in range(groups):
            if not self.missing[group]:
                self.release(group, -1)
        while self.heap and any(flow.finished is None for flow in self.flows):
            self.now, *what = heapq.heappop(self.heap)
            self.event(*what)

    def ticks(self, size, k):
        """Time that a link needs to send bytes [ticks]."""
        return ceil(size * TICKS / self.wires.capacity[k] - 1e-3)

    def size(self, cell):
        """Bytes of a cell."""
        return cell.flow.tail if cell.is_tail else CELL

    def release(self, group, cause):
        """All flows of a group may start after their delays."""
        self.released[group], self.caused_by[group] = self.now, cause
        for i in range(self.waits.group_at[group], self.waits.group_at[group + 1]):
            heapq.heappush(self.heap, (self.now + self.flows[i].delay, 1, i, 0))

    def met(self, group, cause):
        """One thing less that a group waits for."""
        self.missing[group] -= 1
        if not self.missing[group]:
            self.release(group, cause)

    def event(self, of_flow, number, kind):
        """Of a link (its end of sending, an arrival) or of a flow (its start or sum, news of an arrival, of a loss)."""
        self.active = []
        asks = None
        if not of_flow:
            link = self.links[number]
            if kind == 0:
                asks = self.sent(link.wire.sender)
            else:
                self.arrives(link)
        else:
            flow, joins = self.flows[number], False
            if kind:
                news = flow.losses if kind == 2 else flow.acks
                _, cell = news.pop(0)
                flow.in_flight -= 1
                if kind == 2:
                    flow.lost.append(cell.is_tail)
                if news:
                    heapq.heappush(self.heap, (news[0][0], 1, number, kind))
                joins = flow not in self.links[flow.path[0]].turns and bool(flow.left or flow.lost)
            elif not flow.started:
                flow.started = joins = True
            else:
                self.used(flow)
            if joins:
                asks = self.joins(flow)
        if asks:
            self.next_of_own(asks)
        for link in self.active:
            self.send(link)

    def used(self, flow):
        """What has arrived, and been summed, may be sent on."""
        for k in range(self.waits.feeds_at[flow.number], self.waits.feeds_at[flow.number + 1]):
            self.met(self.waits.feeds[k], 2 * flow.number + 1)

    def joins(self, flow):
        """A flow takes its turns on its first link; whether the link may ask for a cell: all flows of one time join before."""
        link = self.links[flow.path[0]]
        first = self.o.order == "sequential" and flow.left < flow.of
        link.turns.insert(0 if first else len(link.turns), flow)
        time, of_flow, number, kind = self.heap[0] if self.heap else (None, 0, 0, 0)
        if time == self.now and of_flow and kind == 0:
            other = self.flows[number]
            if not other.started and other.path[0] == flow.path[0]:
                return None
        return None if link.own else link

    def next_of_own(self, link):
        """The flow whose turn it is queues a cell: a lost one first, whose last one is the last of them."""
        link.own = False
        if not link.turns:
            return
        flow = link.turns.pop(0)
        if flow.lost:
            is_tail = not any(not one for one in flow.lost)
            flow.lost.remove(is_tail)
        else:
            flow.left -= 1
            is_tail = flow.left == 0
        flow.in_flight += 1
        if (flow.left or flow.lost) and not (self.windowed and flow.in_flight >= self.o.window_cells):
            link.turns.insert(0 if self.o.order == "sequential" else len(link.turns), flow)
        link.own = True
        self.enqueue(link, SimpleNamespace(flow=flow, is_tail=is_tail, at=0))

    def enqueue(self, link, cell):
        """A cell waits for a link."""
        link.waiting.append(cell)
        self.wants(link)

    def wants(self, link):
        """A link sends after this event, or after what is on its wire."""
        if not (link.wire.ends or link.is_blocked or link.wire.acts):
            if link.wire.free_at > self.now:
                self.plans_end(link.wire)
            else:
                self.acts(link)

    def plans_end(self, wire):
        """The end of a sending will be noticed."""
        wire.ends = True
        heapq.heappush(self.heap, (wire.free_at, 0, wire.links[0].number, 0))

    def acts(self, link):
        """A link whose wire is idle sends after this event."""
        link.wire.acts = link
        self.active.append(link)

    def next_on_wire(self, link):
        """The link whose turn it is after this one, or None."""
        mine = link.wire.links
        at = mine.index(link) + 1
        return next((one for one in mine[at:] + mine[:at] if one.waiting and not one.is_blocked), None)

    def send(self, link):
        """The first cell, if there is space where it will wait."""
        link.wire.acts = None
        cell = link.waiting[0]
        goes_on, size = cell.at + 1 < len(cell.flow.path), ceil(self.size(cell))
        onward = self.links[cell.flow.path[cell.at + 1]] if goes_on else None
        if goes_on and self.limit and not self.windowed and not link.granted:
            there = link if self.at_input else onward
            if there.held + size > self.limit:
                link.is_blocked = True
                there.blocked.append(link)
                if other := self.next_on_wire(link):
                    self.acts(other)
                return
            there.held += size
        link.granted = False
        link.waiting.pop(0)
        spent = self.ticks(self.size(cell), link.number)
        link.wire.free_at, link.wire.sender = self.now + spent, link
        link.busy += spent
        link.carried += self.size(cell)
        self.passed += 1
        ready = link.wire.free_at + self.late[link.number]
        if goes_on and self.o.forwarding == "cut_through":
            catches_up = max(0, spent - self.ticks(self.size(cell), onward.number))
            ready = self.now + self.late[link.number] + catches_up
        link.flying.append((ready, cell))
        if len(link.flying) == 1:
            heapq.heappush(self.heap, (ready, 0, link.number, 1))
        link.sends_own, link.frees = cell.at == 0, None
        if cell.at:
            held = self.links[cell.flow.path[cell.at - 1]] if self.at_input else link
            held.bytes -= size
            if self.limit or self.at_input:
                link.frees = held, size
        if self.next_on_wire(link) or link.frees or (link.sends_own and link.turns):
            self.plans_end(link.wire)
        elif link.sends_own:
            link.own = link.sends_own = False

    def sent(self, link):
        """Space is free, and those that wait for it move up; the link, if it may ask for a cell of its own."""
        if link.frees:
            queue, size = link.frees
            link.frees = None
            if self.limit:
                queue.held -= size
                while queue.blocked:
                    other = queue.blocked[0]
                    more = ceil(self.size(other.waiting[0]))
                    if queue.held + more > self.limit:
                        break
                    queue.held += more
                    other.granted, other.is_blocked = True, False
                    self.wants(queue.blocked.pop(0))
            if self.at_input:
                queue.input_busy = bool(queue.inputs)
                if queue.inputs:
                    cell = queue.inputs.pop(0)
                    self.enqueue(self.links[cell.flow.path[cell.at]], cell)
        link.wire.ends = False
        if other := self.next_on_wire(link):
            self.acts(other)
        asks, link.sends_own = link.sends_own, False
        return link if asks else None

    def arrives(self, link):
        """The first cell on a link is at its end."""
        _, cell = link.flying.pop(0)
        flow = cell.flow
        if link.flying:
            heapq.heappush(self.heap, (link.flying[0][0], 0, link.number, 1))
        if cell.at + 1 == len(flow.path):
            flow.arrived += 1
            if self.windowed:
                self.notify(flow, flow.acks, flow.back, 1, cell)
            if flow.arrived == flow.of:
                self.finish(flow)
            return
        cell.at += 1
        onward, size = self.links[flow.path[cell.at]], ceil(self.size(cell))
        queue = link if self.at_input else onward
        if self.limit and self.windowed:
            if queue.held + size > self.limit:
                queue.dropped += self.size(cell)
                self.notify(flow, flow.losses, flow.notice, 2, cell)
                return
            queue.held += size
        queue.bytes += size
        if self.at_input and queue.input_busy:
            queue.inputs.append(cell)
        else:
            queue.input_busy = True
            self.enqueue(onward, cell)
        if not (onward.wire.acts is onward and onward.waiting[0] is cell):
            queue.most = max(queue.most, queue.bytes)

    def notify(self, flow, news, late, kind, cell):
        """A sender will hear of a cell."""
        news.append((self.now + late, cell))
        if len(news) == 1:
            heapq.heappush(self.heap, (news[0][0], 1, flow.number, kind))

    def finish(self, flow):
        """Its last cell is there."""
        flow.finished = self.now
        block = self.waits.block_of[flow.number]
        self.unfinished[block] -= 1
        after = self.waits.next_block[block]
        if not self.unfinished[block] and after >= 0:
            for group in range(self.waits.block_at[after], self.waits.block_at[after + 1]):
                self.met(group, 2 * flow.number)
        if flow.sums:
            heapq.heappush(self.heap, (self.now + flow.sums, 1, flow.number, 0))
        else:
            self.used(flow)

    def answers(self):
        """As of `CellResult`."""
        times = ([np.nan if one is None else one / TICKS for one in column]
                 for column in ([flow.finished for flow in self.flows], self.released))  # fmt: skip
        of_links = zip(*((k.carried, k.busy / TICKS, k.most, k.dropped) for k in self.links), strict=True)
        return dict(zip(ANSWERS, (*times, self.caused_by, self.passed, *of_links), strict=True))


def flows_on(paths, amount, delay_s=0.0, compute_s=0.0):
    """Flows over links in turn."""
    n, length = len(paths), np.array([len(path) for path in paths])
    columns = (np.zeros(n) + column for column in (amount, delay_s, compute_s))
    return CellFlows(*columns, np.cumsum(length) - length, length, np.array([k for path in paths for k in path]))


def traffic(seed, circles, compute=False):
    """Five links of few rates and latencies, and up to five flows over one to three of them; times coincide often.

    Every third time all flows cross one link that is slow, some of them from one link.
    """
    draw = np.random.default_rng(seed)
    if seed % 3 == 2:
        n = int(draw.integers(3, 7))
        links = CellLinks(np.array([1e9, 1e9, 1e9, 2.5e8, 1e9]), draw.choice([8e-9, 64e-9], 5), 0.0)
        return links, flows_on(
            [[k, 3, 4] for k in sorted(draw.integers(0, 3, n).tolist())],
            draw.choice([2 * CELL, 3.5 * CELL, 5 * CELL], n), draw.choice([0, 32e-9, 320e-9], n),
            draw.choice([0, 64e-9], n) * compute,
        )  # fmt: skip
    links = CellLinks(draw.choice([1e9, 1e9, 2.5e8], 5), draw.choice([0, 8e-9, 64e-9], 5), draw.integers(2) * 8e-9)
    n = int(draw.integers(1, 6))
    paths = [draw.permutation(5)[: draw.integers(1, 4)].tolist() for _ in range(n)]
    paths = sorted(paths if circles else map(sorted, paths))
    amount = draw.choice([0, 7.5, CELL, CELL + 1, 3 * CELL, 4.25 * CELL], n)
    delay = draw.choice([0, 0, 8e-9, 64e-9, 320e-9, 960e-9], n)
    return links, flows_on(paths, amount, delay, draw.choice([0, 0, 32e-9], n) * compute)


def dependencies(seed, n):
    """Groups of flows, blocks of groups; some wait for flows or for blocks before them."""
    draw = np.random.default_rng(seed)
    group_of = np.cumsum(draw.integers(0, 2, n) * (np.arange(n) > 0))
    block_of_group = np.cumsum(draw.integers(0, 2, group_of[-1] + 1) * (np.arange(group_of[-1] + 1) > 0))
    groups, blocks = len(block_of_group), int(block_of_group[-1]) + 1
    waits, next_block = np.zeros(groups, np.int64), np.full(blocks, -1)
    for block in range(1, blocks):
        if draw.integers(3) and seed % 2:
            next_block[block - 1] = block
            waits[block_of_group == block] += 1
    turn = draw.permutation(groups) if (next_block < 0).all() else np.arange(groups)
    feeds = [[g for g in range(groups) if turn[g] > turn[group_of[i]] and draw.integers(2)] for i in range(n)]
    for mine in feeds:
        waits[mine] += 1
    at = [np.searchsorted(of, np.arange(count + 1)) for of, count in ((group_of, groups), (block_of_group, blocks))]
    feeds_at, fed = np.cumsum([0, *map(len, feeds)]), np.array([g for mine in feeds for g in mine], np.int64)
    return Dependencies(at[0], group_of, waits, at[1], block_of_group[group_of], next_block, feeds_at, fed, n)


def compare(links, flows, waits, options):
    """The answers, which are those of lists to rounding of the last digit; or the refusal of cells that never arrive."""
    due = Listed(links, flows, waits, options).answers()
    if np.isnan(due["finished"]).any():
        with pytest.raises(ParameterError, match="deadlock"):
            run_cells(links, flows, waits, options, EventLimit("packet", 10**6), lambda *_: None)
        return None
    found = run_cells(links, flows, waits, options, EventLimit("packet", 10**6), lambda *_: None)
    for name in ANSWERS:
        np.testing.assert_allclose(getattr(found, name), due[name], rtol=1e-12, atol=0, err_msg=name)
    return found


MANY = [
    {"queue": queue, "order": order, "forwarding": forwarding}
    for queue, order, forwarding in (
        ("output", "interleaved", "store_and_forward"),
        ("output", "sequential", "cut_through"),
        ("input", "interleaved", "cut_through"),
        ("input", "sequential", "store_and_forward"),
    )
]
BUFFERS = [
    {}, {"buffer_bytes": 2 * CELL}, {"buffer_bytes": CELL}, {"transport": "windowed", "window": 2},
    {"transport": "windowed", "window": 3, "buffer_bytes": CELL},
    {"transport": "windowed", "buffer_bytes": 2 * CELL, "retransmit_s": 1e-7},
]  # fmt: skip


@pytest.mark.parametrize("options", MANY, ids=lambda one: "-".join(one.values()))
@pytest.mark.parametrize("buffers", range(len(BUFFERS)))
def test_cells_are_as_in_lists(options, buffers):
    """Of all options: each time, byte, queue and loss."""
    given = PacketOptions(cell_bytes=CELL, **options, **BUFFERS[buffers])
    links, flows = traffic(4 * buffers + MANY.index(options), circles=buffers % 2 == 1)
    waits = released_together(len(flows.amount))
    compare(links, flows, waits, given)


@pytest.mark.parametrize("seed", range(18))
def test_flows_wait_as_in_lists(seed):
    """For others, for blocks of others and for sums of what arrived."""
    links, flows = traffic(seed, seed % 2 == 1, compute=True)
    waits = dependencies(seed, len(flows.amount))
    given = PacketOptions(cell_bytes=CELL, **MANY[seed % 4], **BUFFERS[seed % 6])
    compare(links, flows, waits, given)


@pytest.mark.parametrize(
    ("seed", "order", "window"),
    [
        (2, "interleaved", 2),
        (5, "sequential", 5),
        (14, "sequential", 1),
        (14, "interleaved", 5),
        (14, "interleaved", 2),
        (5, "sequential", 2),
    ],
)
def test_lost_cells_as_in_lists(seed, order, window):
    """Of flows that share links all the way: several are lost before the first is sent again."""
    links, flows = traffic(seed, circles=False)
    waits = released_together(len(flows.amount))
    more = {"window": window, "buffer_bytes": CELL, "retransmit_s": 3e-8}
    given = PacketOptions(cell_bytes=CELL, order=order, transport="windowed", **more)
    compare(links, flows, waits, given)


@pytest.mark.parametrize("buffers", range(len(BUFFERS)))
@pytest.mark.parametrize("seed", range(6))
def test_links_that_share_a_wire_as_in_lists(seed, buffers):
    """Two and three links that send one at a time, at one rate."""
    links, flows = traffic(seed, circles=seed % 2 == 1)
    wire = np.array([[0, 1, 0, 3, 1], [0, 0, 1, 2, 0]][seed % 2])
    links = replace(links, capacity=links.capacity[wire], wire=wire)
    given = PacketOptions(cell_bytes=CELL, **MANY[(seed + buffers) % 4], **BUFFERS[buffers])
    compare(links, flows, released_together(len(flows.amount)), given)


def test_two_ways_of_a_wire_take_turns():
    """Eight cells there and five back: one each in turn, then the rest, without a pause."""
    links = CellLinks(np.full(2, 1e9), np.zeros(2), 0.0, np.array([7, 7]))
    given, waits = PacketOptions(cell_bytes=CELL), released_together(2)
    found = compare(links, flows_on([[0], [1]], [8 * CELL, 5 * CELL]), waits, given)
    assert found.finished.tolist() == pytest.approx([13 * CELL / 1e9, 10 * CELL / 1e9])


def test_cells_that_wait_for_each_other():
    """In a circle, with space for one: nothing arrives any more."""
    links, flows = CellLinks(np.full(3, 1e9), np.full(3, 8e-9), 0.0), flows_on([[0, 1], [1, 2], [2, 0]], 5 * CELL)
    given, waits = PacketOptions(cell_bytes=CELL, buffer_bytes=CELL), released_together(3)
    assert compare(links, flows, waits, given) is None
