"""Packet level: every transfer is cut into cells that wait for the links on their way; what a queue makes of a plan.

    packets    a cell takes bytes / rate to be sent over a link, then the link's latency; cells that want one link wait
               in the order in which they came
    circuits   cells have their light to themselves, one behind the other: latency + bytes / rate, whole slots where
               there are slots, as at flow level; nothing waits

The paced transport judges a schedule: nothing is lost, and a node sends as fast as its link takes cells. The windowed
one shows what a transport adds. Modes are those of the flow engine, options those of `PacketOptions`.

Time is whole femtoseconds (picoseconds where a plan takes more than 1.2 hours); nothing is random but `shuffled`. What
happens at one time goes by links in the order of their numbers, of each first the end of a sending and then an arrival,
and then by transfers in the order of their senders.

Source: Kermani and Kleinrock 1979 (virtual cut-through); Karol, Hluchyj and Morgan 1987 (queues at inputs and outputs).
"""

from __future__ import annotations

from dataclasses import asdict, replace
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Timeline, Transfers
from opticcl.simulate._cells import CellFlows, Wires, play_cells
from opticcl.simulate._cells import Played as CellsPlayed
from opticcl.simulate._pipeline import alone_s, shares_nothing
from opticcl.simulate.assumptions import Assumptions
from opticcl.simulate.barriers import RoundEnd, play_with_barriers
from opticcl.simulate.dependencies import Ended, Flows, Waits, play_asynchronously
from opticcl.simulate.flow import check_mode, play_flow, refuse_below_bound
from opticcl.simulate.limits import Limit, Progress
from opticcl.simulate.links import Links, shared_amounts
from opticcl.simulate.options import PacketOptions, packet_options
from opticcl.simulate.parts import latencies
from opticcl.simulate.traffic import Played, Recorder

__all__ = ["MAX_EVENTS", "packet", "play_packet"]

MAX_EVENTS = 100_000_000


def packet(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    *,
    mode: Literal["barrier", "asynchronous"] = "barrier",
    max_events: int = MAX_EVENTS,
    progress: Progress = lambda what, done, total: None,
    **options: Any,
) -> Timeline:
    """Time of a plan for a message of `size_bytes`, cell by cell.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: what the time rests on.
        mode: barrier or asynchronous, as in `flow`.
        max_events: cells sent over a link that may be played [count].
        progress: told (what, done, total) while it plays and after every class of steps.
        options: fields of `PacketOptions`: cell_bytes, queue, forwarding, buffer_bytes, transport, window,
            retransmit_s, order, seed.
    Returns: rows as of `flow`.
    Raises: ParameterError: no such mode or option, more events than allowed, or cells that wait for each other's
        buffers; UnsupportedError: asynchronously, a transfer on several routes; BoundError: below the lower bound.
    """
    return play_packet(
        plan, size_bytes, assumed, mode=mode, max_events=max_events, progress=progress, **options
    ).timeline


def play_packet(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    *,
    mode: Literal["barrier", "asynchronous"] = "barrier",
    max_events: int = MAX_EVENTS,
    progress: Progress = lambda what, done, total: None,
    record: bool = False,
    **options: Any,
) -> Played:
    """The same with the traffic of the links, if it is to be recorded; see `packet`.

    Args: record: whether to record what links carry, how long cells wait for them and when transfers run.
    """
    check_mode("packet", mode)
    chosen = packet_options(**options)
    if not plan.fabric.is_packet_switched:
        played = play_flow(
            plan, size_bytes, assumed, mode=mode, max_events=max_events, progress=progress, record=record,
            engine="packet",
        )  # fmt: skip
        timeline, traffic = played.timeline, played.traffic
    else:
        limit = Limit("packet", max_events, instead="take larger cells (cell_bytes=..., --cell), or --engine flow")
        recorder = Recorder(plan.fabric) if record else None
        cells = _Cells(plan.fabric, chosen, limit, progress, recorder)
        if mode == "barrier":
            cells.expect(plan, size_bytes)
            timeline = play_with_barriers(plan, size_bytes, assumed, cells.play_round, progress, recorder)
        else:
            timeline = play_asynchronously(
                plan, size_bytes, assumed, cells.play_all, cells.links.routes, limit, progress, recorder, cells.turns
            )
        traffic = recorder.traffic() if recorder else None
        refuse_below_bound(plan, timeline, "by the packet engine")
    told = {**timeline.assumptions, **_told(chosen)}
    return Played(replace(timeline, assumptions=told), traffic)


def _told(options: PacketOptions) -> dict[str, Any]:
    """The options that matter, for the timeline."""
    told = asdict(options)
    if options.transport == "paced":
        del told["window"], told["retransmit_s"]
    if options.order != "shuffled":
        del told["seed"]
    return {
        name: round(value) if name.endswith("_bytes") else value for name, value in told.items() if value is not None
    }


class _Cells:
    """Plays rounds, or whole plans, on a packet fabric."""

    def __init__(
        self, fabric: Fabric, options: PacketOptions, limit: Limit, progress: Progress, recorder: Recorder | None
    ) -> None:
        self.links = Links(fabric)
        self._fabric, self._options, self._limit = fabric, options, limit
        self._progress, self._recorder = progress, recorder
        n = len(self.links.capacity)
        late = np.zeros(n) if fabric.hop_latency_s is None else fabric.hop_latency_s(np.arange(n))
        self._wires = Wires(self.links.capacity, late, fabric.latency_s)
        self._random = np.random.default_rng(options.seed)
        self._known: dict[bytes, CellsPlayed] = {}

    # --- a barrier after every step -----------------------------------------------------------------------------------

    def expect(self, plan: CircuitPlan, size_bytes: int) -> None:
        """Refuse a plan that is known to take too many events, before it is played.

        Raises: ParameterError.
        """
        chunk_bytes = size_bytes / plan.schedule.collective.num_chunks
        seen: set[bytes] = set()
        total = 0
        for steps in plan.schedule.step_classes():
            transfers = plan.schedule.step(steps.start)
            for circuits in plan.rounds(steps.start):
                flows = self._flows(transfers, circuits, chunk_bytes)
                if self._is_formula(flows) or (key := _digest(flows)) in seen:
                    continue
                seen.add(key)
                total += flows.num_sent(self._options.cell_bytes)
                self._limit.expect(total)

    def play_round(self, transfers: Transfers, circuits: Circuits, chunk_bytes: float, repeats: int) -> RoundEnd:
        """How a round ends; each distinct one is played once."""
        if not len(circuits):
            return RoundEnd(0.0, 0.0)
        flows = self._flows(transfers, circuits, chunk_bytes)
        if self._is_formula(flows):
            cuts = self._options.forwarding == "cut_through"
            end_s = alone_s(self._wires, flows, self._options.cell_bytes, cuts)
            if self._recorder is not None:
                self._recorder.carry(*flows.paths(), flows.amount, repeats)
        else:
            key = _digest(flows)
            if key not in self._known:
                self._known[key] = self._play_at_once(transfers.take(circuits.transfer), flows)
            played = self._known[key]
            end_s = played.finished
            if self._recorder is not None:
                self._recorder.sent(played.carried, played.busy_s, played.queue, played.dropped, repeats)
        last = int(end_s.argmax())
        took_s = float(end_s[last])
        latency_s = float(latencies(self._fabric, circuits.take(np.array([last])))[0])
        if not flows.amount[last]:  # what is left is rounding
            latency_s = took_s
        return RoundEnd(latency_s, took_s - latency_s, end_s if self._recorder is not None else None)

    def _flows(self, transfers: Transfers, circuits: Circuits, chunk_bytes: float) -> CellFlows:
        """One flow a circuit, in their order."""
        hops, offsets = self.links.routes(circuits)
        amount = shared_amounts(transfers.size_chunks() * chunk_bytes, circuits)
        nothing = np.zeros(len(amount))
        return CellFlows(amount, nothing, nothing, offsets[:-1], np.diff(offsets), hops)

    def _is_formula(self, flows: CellFlows) -> bool:
        """Whether no cell ever waits for those of another transfer, nor for room."""
        o = self._options
        return o.transport == "paced" and o.buffer_bytes is None and shares_nothing(flows.hops)

    def _play_at_once(self, transfers: Transfers, flows: CellFlows) -> CellsPlayed:
        """Play flows that are all released at once."""
        n = len(flows.amount)
        first_link = flows.hops[flows.path_at]
        order = np.lexsort((self.turns(transfers.src, transfers.dst, first_link), first_link, transfers.src))
        in_turn = replace(flows, amount=flows.amount[order], path_at=flows.path_at[order], path_n=flows.path_n[order])
        none, no_edges = np.zeros(n + 1, np.int64), np.zeros(0, np.int64)
        together = np.zeros(n, np.int64)
        waits = Waits(
            np.array([0, n]), together, np.zeros(1, np.int64), np.array([0, 1]), together, np.full(1, -1), none, no_edges,
            none, no_edges, n,
        )  # fmt: skip
        played = play_cells(self._wires, in_turn, waits, self._options, self._limit, self._progress)
        finished = np.empty(n)
        finished[order] = played.finished
        return replace(played, finished=finished)

    def turns(self, src: IntArray, dst: IntArray, link: IntArray) -> IntArray:
        """Which of the transfers of a sender over one link comes first, int64 (n,).

        They go by receivers, and sender r begins with the r-th of its k receivers (modulo k), so that senders with the
        same receivers do not all begin with the same one.
        """
        n = len(src)
        if self._options.order == "shuffled":
            return self._random.permutation(n)
        order = np.lexsort((dst, link, src))
        new = np.ones(n, bool)
        new[1:] = (np.diff(src[order]) != 0) | (np.diff(link[order]) != 0)
        first = np.flatnonzero(new)
        count = np.diff(np.append(first, n))
        place = np.arange(n) - np.repeat(first, count)
        turns = np.empty(n, np.int64)
        turns[order] = (place - src[order]) % np.repeat(count, count)
        return turns

    # --- as soon as possible ------------------------------------------------------------------------------------------

    def play_all(self, flows: Flows, waits: Waits) -> Ended:
        """Play all transfers of a plan, each as soon as it can start."""
        if (flows["path_n"] < 1).any():
            raise UnsupportedError(f"packet: a transfer on {self._fabric.name} has no route; verify the plan")
        delay = flows["setting"] + flows["control"]
        cells = CellFlows(
            flows["amount"], delay, flows["compute"], flows["path_at"], flows["path_n"].astype(np.int64), flows.hops
        )
        self._limit.expect(cells.num_sent(self._options.cell_bytes))
        played = play_cells(self._wires, cells, waits, self._options, self._limit, self._progress)
        if self._recorder is not None:
            self._recorder.sent(played.carried, played.busy_s, played.queue, played.dropped)
        return Ended(played.finished, played.released, played.caused_by)


def _digest(flows: CellFlows) -> bytes:
    """Tells rounds apart."""
    seen = blake2b(flows.hops.tobytes())
    for column in (flows.path_at, flows.amount):
        seen.update(column.tobytes())
    return seen.digest()
