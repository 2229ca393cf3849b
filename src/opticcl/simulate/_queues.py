"""Runs the kernel of queues in order: decides whether it applies, sets up its arrays and calls it for some cells at a time."""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray, ProgressCallback
from opticcl.simulate import _queue_kernels as kernels
from opticcl.simulate._cell_flows import CellFlows, CellLinks, CellResult, whole_ticks
from opticcl.simulate._dependency_kernels import rows_of
from opticcl.simulate.dependencies import Dependencies
from opticcl.simulate.options import PacketOptions

__all__ = ["run_queues"]

FIRST_ROWS = 1 << 12
CELLS = 1 << 13  # cells that start in a window where links have an order, at least; their rows fit a processor's cache
CELLS_A_LINK = 16  # and a link, so that a window is longer than what a link needs to begin it
MOST_ROWS = (1 << 31) - 1
MOST_WINDOW = 1 << (62 - kernels.PLACES)  # ticks


def run_queues(
    wires: CellLinks,
    flows: CellFlows,
    waits: Dependencies,
    options: PacketOptions,
    most_sent: int,
    tick_s: float,
    progress: ProgressCallback,
    num_sent: int,
) -> CellResult | None:
    """Simulate transfers whose cells only wait for the cells before them; the result is that of the packet kernel.

    Args:
        wires: that the cells cross.
        flows: in the order in which flows of one link and start begin.
        waits: dependencies between the flows.
        options: of the packet engine.
        most_sent: cells sent over a link that are allowed [count].
        tick_s: unit of time [s].
        progress: called after every `num_sent` cells.
        num_sent: cells sent over a link between two checks for an interrupt [count].
    Returns: None if this kernel does not apply: flows or links wait for others, a sending takes no time, more cells than
        are allowed, or a time too long.
    """
    if not len(flows.amount):
        return None
    o = options
    held_back = o.transport != "paced" or o.queue != "output" or o.buffer_bytes is not None
    if held_back or waits.waits.any() or len(waits.feeds) or (waits.next_block >= 0).any() or flows.compute_s.any():
        return None
    total = flows.num_sent(o.cell_bytes)
    if total > most_sent or max(int(flows.path_n.sum()), len(flows.amount)) > MOST_ROWS:
        return None
    queues = _Queues(wires, flows, o, tick_s)
    return queues.run(len(waits.waits), total, progress, num_sent) if queues.window > 0 else None


class _Queues:
    """The arrays that the kernel works on; `window` is 0 if it does not apply."""

    def __init__(self, wires: CellLinks, flows: CellFlows, options: PacketOptions, tick_s: float) -> None:
        self._tick_s, self.window = tick_s, 0
        n, num_links = len(flows.amount), len(wires.capacity)
        cell, cells = options.cell_bytes, flows.num_cells(options.cell_bytes)
        tail = flows.amount - (cells - 1) * cell
        per_byte = 1 / (wires.capacity * tick_s)
        seconds = [wires.latency_s, flows.delay_s + wires.base_s, cell / wires.capacity]
        if sum(float(s.max(initial=0)) for s in seconds) / tick_s >= kernels.NEVER / 4:
            return
        start = whole_ticks(flows.delay_s + wires.base_s, tick_s)
        if start.min() < 0:  # nodes forward for longer than a transfer takes to start
            return
        hops, offsets = flows.paths()
        first, before_last = hops[offsets[:-1]], np.delete(hops, offsets[1:] - 1)
        cuts = options.forwarding == "cut_through"
        full, latency = np.ceil(cell * per_byte - kernels.SLACK), whole_ticks(wires.latency_s, tick_s)
        least = np.minimum(full, np.ceil(tail.min() * per_byte - kernels.SLACK))  # ticks of the smallest cell
        on_its_way = (latency if cuts else latency + least)[before_last].min(initial=kernels.NEVER)
        if least[hops].min() < 1 or on_its_way < 1:
            return

        links = np.zeros(num_links, kernels.LINK)
        for name in ("first", "turn"):
            links[name] = -1
        links["full"], links["latency"], links["per_byte"] = full, latency, per_byte
        rows = self._flows = np.zeros(n, kernels.FLOW)
        rows["cells"], rows["tail"], rows["tail_buffer_bytes"] = cells, tail, np.ceil(tail)
        rows["path_at"], rows["start"] = offsets[:-1], start
        self._add_starts(links, first)
        link, to = self._add_edges(links, hops, offsets)
        most = int(links["in_n"].max())
        if most >= kernels.STARTS:
            return
        used = np.bincount(hops, minlength=num_links) > 0
        out_at, out = rows_of(link, np.arange(len(link)), num_links)
        self._number, window = kernels.in_order(to, out_at, out, used), on_its_way
        if len(self._number) == used.sum():
            window = max(CELLS, CELLS_A_LINK * len(self._number)) / (1 / full[np.unique(first)]).sum()
        else:
            self._number = np.flatnonzero(used)
        place = np.zeros(num_links, np.int64)
        place[self._number] = np.arange(len(self._number))
        self._edges["to"] = place[to]
        self.window, self._num_links = int(min(window, MOST_WINDOW)), num_links
        links = self._links = links[self._number]

        state = self._state = np.zeros(1, kernels.STATE)
        state["end"], state["window"], state["unfinished"], state["free"] = self.window, self.window, n, -1
        state["cell_bytes"], state["cell_buffer_bytes"] = cell, round(cell)
        state["cuts"], state["interleaved"] = cuts, options.order != "sequential"
        self._due = np.full(len(links), kernels.NEVER)
        begins = np.flatnonzero(links["start_at"] < links["start_end"])
        self._due[begins] = rows["start"][self._starts[links["start_at"][begins]]]
        self._blocks = np.minimum.reduceat(self._due, np.arange(0, len(links), kernels.BLOCK))
        self._heap, self._finished = np.zeros(most + 2, np.int64), np.zeros(n, np.int64)
        self._cells = np.zeros(0, kernels.CELL)
        self._grow()

    def _add_starts(self, links: np.ndarray, first_link: IntArray) -> None:
        """Flows by their first links, and which start together: one directly after the other, at one time on one link."""
        start = self._flows["start"]
        in_time = np.argsort(start, kind="stable")
        link = first_link[in_time]
        same = (start[in_time[1:]] == start[in_time[:-1]]) & (link[1:] == link[:-1])
        self._flows["together"][in_time[:-1]] = same
        at, self._starts = rows_of(link, in_time, len(links))
        links["start_at"], links["start_end"] = at[:-1], at[1:]

    def _add_edges(self, links: np.ndarray, hops: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
        """Edges from links to those behind them, sorted by the second and then by the first: (the first, the second)."""
        self._via = np.full(len(hops), -1, np.int32)
        place = np.delete(np.arange(len(hops)), offsets[1:] - 1)
        for behind in (0, 1):
            _, place = rows_of(hops[place + behind], place, len(links))
        link, to = hops[place], hops[place + 1]
        new = np.ones(len(place), bool)
        new[1:] = (link[1:] != link[:-1]) | (to[1:] != to[:-1])
        self._via[place] = np.cumsum(new) - 1
        link, to = link[new], to[new]
        self._edges = np.zeros(len(to), kernels.EDGE)
        self._edges["first"] = -1
        number = np.bincount(to, minlength=len(links))
        links["in_n"], links["in_at"] = number, np.cumsum(number) - number
        links["in_lower"] = np.bincount(to[link < to], minlength=len(links))
        return link, to

    def run(self, num_groups: int, total: int, progress: ProgressCallback, num_sent: int) -> CellResult | None:
        """Run until everything has arrived; None if that takes too long.

        Args:
            num_groups: of flows, for the result.
            total: cells sent over a link in all [count].
            progress: called after every slice.
            num_sent: cells of a slice [count].
        """
        while True:
            status: int = kernels.run(
                self._state, self._links, self._edges, self._flows, self._cells, self._via, self._due, self._blocks,
                self._starts, self._heap, self._finished, num_sent,
            )  # fmt: skip
            if status == kernels.NO_CELLS:
                self._grow()
            elif status == kernels.RUNNING:
                progress("simulate cells", self._passed, total)
            else:
                break
        if status != kernels.DONE or self._finished.max() > kernels.NEVER:
            return None
        return CellResult(
            self._finished * self._tick_s,
            np.zeros(num_groups),
            np.full(num_groups, -1),
            self._passed,
            self._of_links("carried"),
            self._of_links("busy") * self._tick_s,
            self._of_links("most").astype(float),
            np.zeros(self._num_links),
            len(self._cells),
        )

    @property
    def _passed(self) -> int:
        """Cells sent over a link so far [count]."""
        return int(self._state["passed"][0])

    def _of_links(self, name: str) -> np.ndarray:
        """A column of all links; 0 where a link is not used."""
        column = np.zeros(self._num_links, self._links.dtype[name])
        column[self._number] = self._links[name]
        return column

    def _grow(self) -> None:
        """Double the rows for cells; called when none is free."""
        old = len(self._cells)
        new = np.zeros(max(FIRST_ROWS, 2 * old), kernels.CELL)
        new[:old] = self._cells
        new["following"][old:] = np.arange(old + 1, len(new) + 1)
        new["following"][-1] = -1
        self._state["free"] = old
        self._cells = new
