"""Simulates flows: the rounds of a plan with a barrier after each step, or all of its flows without barriers."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, Circuits, IntArray, ProgressCallback, Timeline, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.programme import Programme
from opticcl.simulate.barrier_programme import programme_with_barriers
from opticcl.simulate.barriers import RoundEnd, circuit_rounds, simulate_with_barriers
from opticcl.simulate.dependencies import Dependencies, Flows, FlowTimes, released_together, simulate_asynchronously
from opticcl.simulate.device.list_schedule import list_schedule
from opticcl.simulate.device.list_times import asynchronous
from opticcl.simulate.flow._classes import quotient
from opticcl.simulate.flow.events import FlowColumns, Merging, run_flows
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import PathLatency, path_latency
from opticcl.simulate.links import Links, shared_amounts
from opticcl.simulate.options import FlowOptions, PacketOptions
from opticcl.simulate.traffic import Recorder

__all__ = ["flow_programme", "simulate_flows"]

QUOTIENT_FLOWS = limit("rounds.QUOTIENT_FLOWS")


def simulate_flows(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: FlowOptions | PacketOptions,
    engine: str,
    progress: ProgressCallback,
    recorder: Recorder | None,
) -> Timeline:
    """Simulate a plan at flow level; on circuits the packet engine does so too.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: mode and limit.
        engine: name for messages.
        progress: called during the simulation.
        recorder: collects the traffic, or None.
    """
    fabric = plan.fabric
    shared = fabric.is_packet_switched
    merging = Merging(options.tolerance if isinstance(options, FlowOptions) else 0.0)
    per_transfer = 3 if shared and size_bytes > 0 else 2  # a start, an end and a rate
    limit = EventLimit(engine, options.max_events, per_transfer)
    if options.mode == "asynchronous" and shared:
        links = Links(fabric)
        run = _Asynchronous(links.capacity, limit, progress, recorder, merging).run
        timeline = simulate_asynchronously(plan, size_bytes, assumed, run, links.paths, limit, progress, recorder)
        return merging.reported(timeline)
    if options.mode == "asynchronous":
        times = list_schedule(plan, size_bytes, assumed, asynchronous(fabric, assumed), limit, progress)
        if recorder is not None:
            times.record(recorder, plan.schedule.step_classes())
        return times.timeline(plan, size_bytes, assumed)
    if not shared:
        run_round = circuit_rounds(plan, assumed, record=recorder is not None)
    else:
        run_round = _Rounds(Links(fabric), path_latency(fabric, assumed), limit, progress, recorder, merging).run
    timeline = simulate_with_barriers(plan, size_bytes, assumed, run_round, progress, recorder)
    return merging.reported(timeline) if shared else timeline


def flow_programme(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    options: FlowOptions | PacketOptions,
    engine: str,
    progress: ProgressCallback,
) -> Programme:
    """Programme of a plan on circuits by the flow engine, or by the packet engine, which times circuits in the same way.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        options: mode and limit.
        engine: its name.
        progress: called during the simulation.
    """
    if options.mode == "barrier":
        return programme_with_barriers(plan, size_bytes, assumed, engine, progress=progress)
    limit = EventLimit(engine, options.max_events, 2)
    times = list_schedule(plan, size_bytes, assumed, asynchronous(plan.fabric, assumed), limit, progress)
    return times.programme(plan, size_bytes, engine, assumed)


# --- a barrier after every step ---------------------------------------------------------------------------------------


class _Rounds:
    """Simulates rounds of packets, each distinct one once."""

    def __init__(
        self,
        links: Links,
        law: PathLatency,
        limit: EventLimit,
        progress: ProgressCallback,
        recorder: Recorder | None,
        merging: Merging,
    ) -> None:
        self._law, self._merging = law, merging
        self._links, self._limit, self._progress, self._recorder = links, limit, progress, recorder
        self._cached: dict[bytes, RoundEnd] = {}

    def run(self, transfers: Transfers, circuits: Circuits, chunk_bytes: float, repeats: int) -> RoundEnd:
        """When a round ends."""
        if not len(circuits):
            return RoundEnd(0.0, 0.0)
        capacity, record = self._links.capacity, self._recorder is not None
        amount = shared_amounts(transfers.size_chunks() * chunk_bytes, circuits)
        hops, offsets = self._links.paths(circuits)
        delay = self._law.of_circuits(circuits) + self._law.gaps_s(transfers, circuits)
        if self._recorder is not None:
            self._recorder.add_flows(hops, offsets, amount, repeats)
        if np.bincount(hops).max() == 1:  # no link is shared
            seconds = amount / np.minimum.reduceat(capacity[hops], offsets[:-1])
            last = int((delay + seconds).argmax())
            return RoundEnd(float(delay[last]), float(seconds[last]), delay + seconds if record else None)
        digest = blake2b(hops.tobytes())
        for column in (offsets, amount, delay):
            digest.update(column.tobytes())
        key = digest.digest()
        if key not in self._cached:
            self._cached[key] = self._run_at_once(hops, offsets, amount, delay)
        return self._cached[key]

    def _run_at_once(self, hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray) -> RoundEnd:
        """Simulate flows that are all released at the same time."""
        capacity, record = self._links.capacity, self._recorder is not None
        weight = np.ones(len(hops), np.int64)
        classes = None
        if len(amount) >= QUOTIENT_FLOWS:
            merged = quotient(hops, offsets, amount, delay, capacity)
            if merged is not None:
                hops, offsets, weight, amount, delay, capacity, classes = merged
        n = len(amount)
        self._limit.require(2 * n + int((amount > 0).sum()))
        path_at, path_n = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int32)
        flows = FlowColumns(amount, delay, np.zeros(n), path_at, path_n, hops.astype(np.int32), weight)
        finished, _, _ = run_flows(self._limit, self._progress, self._merging, flows, released_together(n), capacity)
        last = int(finished.argmax())
        end_s = (finished if classes is None else finished[classes]) if record else None
        return RoundEnd(float(delay[last]), float(finished[last] - delay[last]), end_s)


# --- without barriers -------------------------------------------------------------------------------------------------


class _Asynchronous:
    """Simulates all flows of a plan, each started as soon as possible."""

    def __init__(
        self,
        capacity: np.ndarray,
        limit: EventLimit,
        progress: ProgressCallback,
        recorder: Recorder | None,
        merging: Merging,
    ) -> None:
        self._merging = merging
        self._capacity, self._limit, self._progress, self._recorder = capacity, limit, progress, recorder

    def run(self, flows: Flows, waits: Dependencies) -> FlowTimes:
        """When they are released and finished."""
        delay = flows["gap"] + flows["latency"] + flows["control"]
        columns = FlowColumns(
            flows["bytes"], delay, flows["compute"], flows["path_at"], flows["path_n"], flows.hops,
            np.ones(len(flows.hops), np.int64),
        )  # fmt: skip
        times = run_flows(self._limit, self._progress, self._merging, columns, waits, self._capacity)
        if self._recorder is not None:
            self._recorder.add_flows(*flows.paths(), flows["bytes"])
        return times
