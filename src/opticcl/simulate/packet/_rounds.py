"""Simulates cells: the rounds of a plan with a barrier after each step, or all of its transfers without barriers."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, ProgressCallback, Timeline, Transfers, numbered
from opticcl.simulate.barriers import RoundEnd, simulate_with_barriers
from opticcl.simulate.dependencies import Dependencies, Flows, FlowTimes, released_together, simulate_asynchronously
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import PathLatency, path_latency
from opticcl.simulate.links import Links, shared_amounts
from opticcl.simulate.options import PacketOptions
from opticcl.simulate.packet._pipeline import share_no_link, unshared_s
from opticcl.simulate.packet.cells import CellFlows, CellLinks, CellResult, run_cells
from opticcl.simulate.traffic import Recorder

__all__ = ["simulate_cells"]


def simulate_cells(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: PacketOptions,
    progress: ProgressCallback,
    recorder: Recorder | None,
) -> Timeline:
    """Simulate a plan on a packet fabric cell by cell.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: of the packet engine.
        progress: called during the simulation.
        recorder: collects the traffic, or None.
    """
    limit = EventLimit(
        "packet", options.max_events, instead="take larger cells (cell_bytes=..., --cell), or --engine flow"
    )
    cells = _Cells(plan.fabric, path_latency(plan.fabric, assumed), options, limit, progress, recorder)
    if options.mode == "barrier":
        cells.require(plan, size_bytes)
        return simulate_with_barriers(plan, size_bytes, assumed, cells.run_round, progress, recorder)
    return simulate_asynchronously(
        plan, size_bytes, assumed, cells.run_all, cells.links.routes, limit, progress, recorder, cells.send_order
    )


class _Cells:
    """Simulates rounds, or whole plans, on a packet fabric."""

    def __init__(
        self,
        fabric: Fabric,
        law: PathLatency,
        options: PacketOptions,
        limit: EventLimit,
        progress: ProgressCallback,
        recorder: Recorder | None,
    ) -> None:
        self.links, self._law = Links(fabric), law
        self._options, self._limit = options, limit
        self._progress, self._recorder = progress, recorder
        of_hop = self.links.of_hop
        known = law.of_hops(np.arange(len(of_hop)))
        late = np.zeros(len(of_hop)) if known is None else known
        self._speeds = CellLinks(self.links.capacity[of_hop], late, law.base_s, of_hop)
        self._random = np.random.default_rng(options.random_seed)
        self._cached: dict[bytes, CellResult] = {}

    # --- a barrier after every step -----------------------------------------------------------------------------------

    def require(self, plan: CircuitPlan, size_bytes: int) -> None:
        """Refuse a plan that is known to take too many events, before it is simulated.

        Raises: ParameterError.
        """
        chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
        counted: set[bytes] = set()
        total = 0
        for steps in plan.schedule.step_classes():
            transfers = plan.schedule.step(steps.start)
            for circuits in plan.rounds(steps.start):
                flows = self._flows(transfers, circuits, chunk_bytes)
                if self._is_formula(flows) or (key := _digest(flows)) in counted:
                    continue
                counted.add(key)
                total += flows.num_sent(self._options.cell_bytes)
                self._limit.require(total)

    def run_round(self, transfers: Transfers, circuits: Circuits, chunk_bytes: float, repeats: int) -> RoundEnd:
        """When a round ends; each distinct one is simulated once."""
        if not len(circuits):
            return RoundEnd(0.0, 0.0)
        flows = self._flows(transfers, circuits, chunk_bytes)
        if self._is_formula(flows):
            cuts = self._options.forwarding == "cut_through"
            end_s = unshared_s(self._speeds, flows, self._options.cell_bytes, cuts)
            if self._recorder is not None:
                hops, offsets = flows.paths()
                self._recorder.add_flows(self.links.of_hop[hops], offsets, flows.amount, repeats)
        else:
            key = _digest(flows)
            if key not in self._cached:
                self._cached[key] = self._run_at_once(transfers.take(circuits.transfer), flows)
            result = self._cached[key]
            end_s = result.finished
            self._record(result, repeats)
        last = int(end_s.argmax())
        total_s = float(end_s[last])
        latency_s = float(self._law.of_circuits(circuits.take(np.array([last])))[0] + flows.delay_s[last])
        if not flows.amount[last]:  # what is left is rounding
            latency_s = total_s
        return RoundEnd(latency_s, total_s - latency_s, end_s if self._recorder is not None else None)

    def _flows(self, transfers: Transfers, circuits: Circuits, chunk_bytes: float) -> CellFlows:
        """One flow a circuit, in their order."""
        hops, offsets = self.links.routes(circuits)
        amount = shared_amounts(transfers.size_chunks() * chunk_bytes, circuits)
        gaps = self._law.gaps_s(transfers, circuits)
        return CellFlows(amount, gaps, np.zeros(len(amount)), offsets[:-1], np.diff(offsets), hops)

    def _is_formula(self, flows: CellFlows) -> bool:
        """Whether no cell ever waits for a cell of another transfer or for buffer space, so that a formula holds."""
        o = self._options
        return o.transport == "paced" and o.buffer_bytes is None and share_no_link(self.links.of_hop[flows.hops])

    def _record(self, result: CellResult, repeats: int = 1) -> None:
        """Add what cells did on each link to what is recorded; of hops of one link the sum, and the largest queue.

        Args:
            result: of the hops.
            repeats: times that this happens [count].
        """
        if self._recorder is not None:
            of, n = self.links.of_hop, len(self.links.capacity)
            carried, busy_s, dropped = (
                np.bincount(of, column, n) for column in (result.carried, result.busy_s, result.dropped)
            )
            queue = np.zeros(n)
            np.maximum.at(queue, of, result.queue)
            self._recorder.add_links(carried, busy_s, queue, dropped, repeats)

    def _run_at_once(self, transfers: Transfers, flows: CellFlows) -> CellResult:
        """Simulate flows that are all released at the same time."""
        n = len(flows.amount)
        first_link = flows.hops[flows.path_at]
        order = np.lexsort((self.send_order(transfers.src, transfers.dst, first_link), first_link, transfers.src))
        in_turn = replace(
            flows,
            amount=flows.amount[order],
            delay_s=flows.delay_s[order],
            path_at=flows.path_at[order],
            path_n=flows.path_n[order],
        )
        together = released_together(n)
        result = run_cells(self._speeds, in_turn, together, self._options, self._limit, self._progress)
        finished = np.empty(n)
        finished[order] = result.finished
        return replace(result, finished=finished)

    def send_order(self, src: IntArray, dst: IntArray, link: IntArray) -> IntArray:
        """Order of the transfers of each sender over one link, int64 (n,).

        They are sent in order of the receivers, and sender r begins with the r-th of its k receivers (modulo k), so that
        senders with the same receivers do not all begin with the same one.

        Args:
            src, dst: ranks of each transfer, (n,).
            link: first link of its path, (n,).
        """
        n = len(src)
        if self._options.order == "shuffled":
            return self._random.permutation(n)
        order = np.lexsort((dst, link, src))
        new = np.ones(n, bool)
        new[1:] = (np.diff(src[order]) != 0) | (np.diff(link[order]) != 0)
        first = np.flatnonzero(new)
        count = np.diff(np.append(first, n))
        _, place = numbered(count)
        turns = np.empty(n, np.int64)
        turns[order] = (place - src[order]) % np.repeat(count, count)
        return turns

    # --- without barriers ---------------------------------------------------------------------------------------------

    def run_all(self, flows: Flows, waits: Dependencies) -> FlowTimes:
        """Simulate all transfers of a plan, each started as soon as possible."""
        if (flows["path_n"] < 1).any():
            raise UnsupportedError(f"packet: a transfer on {self.links.fabric.name} has no route; verify the plan")
        delay = flows["gap"] + flows["control"]
        cells = CellFlows(
            flows["bytes"], delay, flows["compute"], flows["path_at"], flows["path_n"].astype(np.int64), flows.hops
        )
        self._limit.require(cells.num_sent(self._options.cell_bytes))
        result = run_cells(self._speeds, cells, waits, self._options, self._limit, self._progress)
        self._record(result)
        return FlowTimes(result.finished, result.released, result.caused_by)


def _digest(flows: CellFlows) -> bytes:
    """Key of a round in the cache."""
    digest = blake2b(flows.hops.tobytes())
    for column in (flows.path_at, flows.amount, flows.delay_s):
        digest.update(column.tobytes())
    return digest.digest()
