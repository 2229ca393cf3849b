"""Transfers cut into cells: runs the packet kernel, some of the events at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, ProgressCallback, numbered
from opticcl.ir.limits import limit
from opticcl.simulate.dependencies import Dependencies
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.options import PacketOptions
from opticcl.simulate.packet import _kernels as kernels

__all__ = ["CellFlows", "CellLinks", "CellResult", "run_cells"]

SLICE = limit("cells.SLICE")
FIRST_CELLS = limit("cells.FIRST_CELLS")
TICKS_S = (1e-15, 1e-12, 1e-9)  # the finest in which all times are below 2**62


@dataclass(frozen=True, slots=True)
class CellLinks:
    """The links that cells cross.

    Args:
        capacity: of each, float64 (links,) [byte/s].
        latency_s: from the end of sending a cell to its arrival, float64 (links,) [s].
        base_s: latency of a transfer in addition to that of its links [s].
        wire: links with one number send one at a time, in turn, int64 (links,); None: each has a wire of its own.
    """

    capacity: np.ndarray
    latency_s: np.ndarray
    base_s: float
    wire: IntArray | None = None

    def rings(self) -> tuple[IntArray, IntArray]:
        """The first link of the wire of each, and the next one on it, int64 (links,)."""
        alone = np.arange(len(self.capacity))
        if self.wire is None:
            return alone, alone
        _, first, number, count = np.unique(self.wire, return_index=True, return_inverse=True, return_counts=True)
        order, last = np.argsort(number, kind="stable"), np.cumsum(count) - 1
        following = np.append(order[1:], 0)
        following[last] = first
        onward = np.empty(len(alone), np.int64)
        onward[order] = following
        return first[number], onward


@dataclass(frozen=True, slots=True)
class CellFlows:
    """Transfers cut into cells.

    Args:
        amount: float64 (n,) [bytes].
        delay_s: from their release until the first cell may start, float64 (n,) [s].
        compute_s: from the last cell until others may use what arrived, float64 (n,) [s].
        path_at, path_n: links of flow i are hops[path_at[i] : path_at[i] + path_n[i]], (n,).
    """

    amount: np.ndarray
    delay_s: np.ndarray
    compute_s: np.ndarray
    path_at: IntArray
    path_n: IntArray
    hops: IntArray

    def num_cells(self, cell_bytes: float) -> IntArray:
        """Cells of each, int64 (n,); an empty transfer has one, without bytes."""
        return self._num_cells(cell_bytes).astype(np.int64)

    def num_sent(self, cell_bytes: float) -> int:
        """Cells sent over a link, if none is sent twice [count]; a Python integer, since it may exceed 64 bits."""
        return int((self._num_cells(cell_bytes) * self.path_n).sum())

    def _num_cells(self, cell_bytes: float) -> np.ndarray:
        cells: np.ndarray = np.maximum(1, np.ceil(self.amount / cell_bytes))
        return cells

    def paths(self) -> tuple[IntArray, IntArray]:
        """(links, offsets), one flow after the other."""
        flow, nth = numbered(self.path_n)
        return self.hops[self.path_at[flow] + nth], np.concatenate([[0], np.cumsum(self.path_n, dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class CellResult:
    """Result of a simulation of cells; times in seconds, NaN where it never happened.

    Args:
        finished, released, caused_by: as of `FlowTimes`.
        passed: cells sent over a link [count].
        carried, busy_s, queue, dropped: of each link, float64 (links,) [bytes or s].
        rows: rows allocated for cells in flight, a power of two [count].
    """

    finished: np.ndarray
    released: np.ndarray
    caused_by: IntArray
    passed: int
    carried: np.ndarray
    busy_s: np.ndarray
    queue: np.ndarray
    dropped: np.ndarray
    rows: int


def run_cells(
    links: CellLinks,
    flows: CellFlows,
    waits: Dependencies,
    options: PacketOptions,
    limit: EventLimit,
    progress: ProgressCallback,
) -> CellResult:
    """Simulate transfers that wait for each other, cell by cell.

    Args:
        links: that the cells cross.
        flows: sorted; of two that start at one time over one link the first goes first.
        waits: dependencies between the flows.
        options: of the packet engine.
        limit: to the cells sent over a link.
        progress: called after every slice of events.
    Raises: ParameterError: more events than allowed, a deadlock of cells that wait for each other's buffers, or a time
        too long.
    """
    for tick_s in TICKS_S:
        kernel = _Kernel(links, flows, waits, options, limit.left, tick_s)
        if kernel.fits:
            status = kernel.run(progress)
            if status != kernels.TOO_LATE:
                break
    else:
        raise ParameterError(
            f"{limit.engine}: it takes more than {kernels.LATEST * TICKS_S[-1]:.3g} s; check rates, latencies and "
            "retransmit_s"
        )
    limit.spend(kernel.passed)
    result = kernel.result()
    stuck = int((np.isnan(result.finished) & ~np.isnan(result.released[waits.group_of])).sum())
    if stuck:
        raise ParameterError(
            f"{limit.engine}: deadlock of {stuck} transfers, whose cells wait for each other's buffers; "
            "try larger buffer_bytes=..., none, or transport=windowed"
        )
    return result


class _Kernel:
    """The arrays that the kernel works on."""

    def __init__(
        self,
        wires: CellLinks,
        flows: CellFlows,
        waits: Dependencies,
        options: PacketOptions,
        most_events: int,
        tick_s: float,
    ) -> None:
        self._tick_s, self._waits = tick_s, waits
        n, num_links = len(flows.amount), len(wires.capacity)
        cell, cells = options.cell_bytes, flows.num_cells(options.cell_bytes)
        tail = flows.amount - (cells - 1) * cell
        per_byte = 1 / (wires.capacity * tick_s)
        back_s = notice_s = np.zeros(n)
        if options.transport == "windowed":
            back_s, trip_s = _round_trips(wires, flows, cell)
            notice_s = 2 * trip_s if options.retransmit_s is None else np.full(n, options.retransmit_s)
        seconds = [
            wires.latency_s, flows.delay_s + wires.base_s, flows.compute_s, cell / wires.capacity, back_s, notice_s,
        ]  # fmt: skip
        self.fits = sum(float(s.max(initial=0)) for s in seconds) / tick_s < kernels.LATEST  # the next event of any
        if not self.fits:
            return

        links = self._links = np.zeros(num_links, kernels.LINK)
        for name in ("first", "in_flight", "input_first", "turn", "blocked_first", "listed"):
            links[name] = -1
        links["wire"], links["next_on_wire"] = wires.rings()
        links["latency"], links["per_byte"] = _whole_ticks(wires.latency_s, tick_s), per_byte
        links["full"] = np.ceil(cell * per_byte - kernels.SLACK)

        rows = self._flows = np.zeros(n, kernels.FLOW)
        rows["acked"], rows["missing"] = -1, -1
        rows["cells"], rows["tail"], rows["tail_buffer_bytes"] = cells, tail, np.ceil(tail)
        rows["compute"] = _whole_ticks(flows.compute_s, tick_s)
        rows["path_at"], rows["path_n"] = flows.path_at, flows.path_n
        rows["back"], rows["notice"] = _whole_ticks(back_s, tick_s), _whole_ticks(notice_s, tick_s)
        self._delay = _whole_ticks(flows.delay_s + wires.base_s, tick_s)
        self._begin = -min(0, int(self._delay.min(initial=0)))  # nodes may forward for longer than flows take to start
        self._hops = flows.hops.astype(np.int32)

        state = self._state = np.zeros(1, kernels.STATE)
        state["now"], state["begin"] = -1, self._begin
        state["most_events"], state["unfinished"] = most_events, n
        state["cell_bytes"], state["cell_buffer_bytes"], state["num_links"] = cell, round(cell), num_links
        if options.buffer_bytes is not None:
            state["finite"], state["buffer"] = True, min(options.buffer_bytes, kernels.LATEST)
        state["at_input"], state["cuts"] = options.queue == "input", options.forwarding == "cut_through"
        state["windowed"], state["window"] = options.transport == "windowed", options.window_cells
        state["interleaved"] = options.order != "sequential"
        self._cells = np.zeros(0, kernels.CELL)
        self._heap = np.zeros(2 * (num_links + n), kernels.EVENT)  # a flow that starts or is summed has lost no cell
        self._idle = np.zeros(num_links, np.int64)
        self._finished, self._released = np.full(n, -1, np.int64), np.full(len(waits.waits), -1, np.int64)
        self._caused_by = np.zeros(len(waits.waits), np.int64)
        self._unfinished = np.bincount(waits.block_of)
        self._waiting = waits.waits.copy()

    @property
    def passed(self) -> int:
        """Cells sent over a link so far [count]."""
        return int(self._state["passed"][0])

    def run(self, progress: ProgressCallback) -> int:
        """Run until everything has ended, or nothing can continue."""
        w = self._waits
        total = int((self._flows["cells"] * self._flows["path_n"]).sum())
        while True:
            status: int = kernels.run(
                self._state, self._links, self._flows, self._cells, self._hops, self._heap, self._idle, self._delay, w.group_at,
                self._waiting, w.block_at, w.block_of, w.next_block, self._unfinished, w.feeds_at, w.feeds,
                self._finished, self._released, self._caused_by, SLICE,
            )  # fmt: skip
            if status == kernels.NO_CELLS:
                self._grow()
            elif status != kernels.RUNNING:
                return status
            else:
                progress("simulate cells", min(self.passed, total), total)

    def _grow(self) -> None:
        """Double the rows for cells in flight."""
        old = len(self._cells)
        new = np.zeros(max(FIRST_CELLS, 2 * old), kernels.CELL)
        new[:old] = self._cells
        new["following"][old:] = np.arange(old + 1, len(new) + 1)
        new["following"][-1] = self._state["free"][0]
        self._state["free"] = old
        self._state["num_free"] += len(new) - old
        self._cells = new

    def result(self) -> CellResult:
        """Times of the flows and loads of the links."""
        links = self._links

        def seconds(ticks: IntArray) -> np.ndarray:
            return np.where(ticks < 0, np.nan, (ticks - self._begin) * self._tick_s)

        return CellResult(
            seconds(self._finished),
            seconds(self._released),
            self._caused_by,
            self.passed,
            links["carried"].copy(),
            links["busy"] * self._tick_s,
            links["most"].astype(float),
            links["dropped"].copy(),
            len(self._cells),
        )


def _round_trips(wires: CellLinks, flows: CellFlows, cell_bytes: float) -> tuple[np.ndarray, np.ndarray]:
    """(return time, round-trip time) of a cell alone on its path, float64 (n,) [s]; acknowledgements take no bandwidth."""
    hops, offsets = flows.paths()
    late = np.add.reduceat(wires.latency_s[hops], offsets[:-1]) + wires.base_s
    sent = np.add.reduceat(cell_bytes / wires.capacity[hops], offsets[:-1])
    return late, 2 * late + sent


def _whole_ticks(seconds: np.ndarray, tick_s: float) -> IntArray:
    """Times as whole ticks, rounded up, int64; a thousandth of a tick is rounding."""
    ticks: IntArray = np.ceil(seconds / tick_s - 1e-3).astype(np.int64)
    return ticks
