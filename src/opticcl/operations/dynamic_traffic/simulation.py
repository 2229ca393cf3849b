"""A run of dynamic traffic: arrivals of an epoch, the requests that are due, what is granted, and the counts.

    epoch e       flows arrive
    epoch e + 1   the scheduler works on their requests
    epoch e + 2   their cells are sent from its first slot on

The delay of a cell is from its slot of arrival to the end of the slot in which it is sent; propagation comes on top. Every flow
is counted once: offered cells = cells that reached their receivers + cells that wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray, ProgressCallback, no_progress
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.operations.dynamic_traffic._arrival_kernels import draw_epoch
from opticcl.operations.dynamic_traffic._delay_kernels import count_delays, count_ends
from opticcl.operations.dynamic_traffic.demand import NodeDemand, Worst, node_weights
from opticcl.operations.dynamic_traffic.flows import FlowMix, run_values
from opticcl.operations.dynamic_traffic.schedulers import FreeCells, Scheduler, all_free, make_scheduler
from opticcl.operations.dynamic_traffic.statistics import (
    RATIO_SCALE,
    Counts,
    IntervalEstimate,
    Stability,
    growth,
    stability,
)

__all__ = [
    "FlowArrivals",
    "Observer",
    "TrafficResult",
    "TrafficSetup",
    "assumptions_of",
    "epoch_slots",
    "least_slots",
    "simulate_traffic",
]

MOST_SLOTS = 10**8
"""Longest run [slots]."""

Observer = Callable[[int, EpochRequest, EpochGrants], None]
"""Called with each epoch, the requests that became due in it, and what is sent in it."""


def epoch_slots() -> int:
    """Slots of an epoch [count]."""
    return int(run_values()["slots"])


@dataclass(frozen=True, eq=False)
class TrafficSetup:
    """Traffic and scheduler of a run.

    Args:
        fabric: a RAMP with slots.
        mix: sizes, gaps and skew of the flows.
        load: of the busiest port, more than 0; 1 fills it.
        placement: of the hot nodes: spread or group.
        scheduler: name:key=value,...
        slots: length of the run [slots]; rounded up to whole epochs.
        seed: of all random choices.
    Raises: ParameterError: no RAMP or no slots; a load, skew, share, seed or length out of range.
    """

    fabric: Fabric
    mix: FlowMix
    load: float
    placement: str = "spread"
    scheduler: str = "native"
    slots: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        machine, epoch = self.fabric, epoch_slots()
        if not isinstance(machine, Ramp):
            raise ParameterError(
                f"traffic: {machine.name} has no slots to schedule; give a ramp, such as ramp:groups=8,racks=8,wavelengths=64"
            )
        if not machine.slot:
            raise ParameterError("traffic: slot=0 is a ramp without slots; leave slot out or give slot=20ns")
        if machine.signals_meet:
            raise ParameterError(
                f"traffic: without filters a subnet carries one signal at a time, so there are no wavelengths to schedule; "
                f"leave receiver={machine.receiver} out or give receiver=tunable"
            )
        if not 0 < self.load <= 100:
            raise ParameterError(f"load: {self.load:g} is not above 0 and at most 100; try 0.9")
        if not 1 <= self.mix.skew <= 1e6:
            raise ParameterError(f"skew: {self.mix.skew:g} is not 1 to 1000000; 1 makes all nodes equal")
        if self.mix.between_racks is not None and self.mix.between_racks < 0:
            raise ParameterError(f"between_racks: {self.mix.between_racks:g} is not 0 to 1")
        if self.slots < epoch:
            raise ParameterError(f"slots: {self.slots} are fewer than the {epoch} of an epoch; give {epoch} or more")
        if self.slots > MOST_SLOTS:
            raise ParameterError(f"slots: {self.slots:,} are more than {MOST_SLOTS:,}; give fewer")
        if not 0 <= self.seed < 2**63:
            raise ParameterError(f"seed: {self.seed} is not 0 to 2**63 - 1")

    @property
    def machine(self) -> Ramp:
        """The fabric."""
        return self.fabric.machine_as(Ramp)

    def demand(self) -> NodeDemand:
        """Traffic between the nodes."""
        return NodeDemand(self.machine, node_weights(self.machine, self.mix, self.placement), self.mix.between_racks)

    def limit(self) -> Worst:
        """What limits the load."""
        return self.demand().worst


def least_slots(setup: TrafficSetup) -> int:
    """Slots of a run that is long enough for its longest flow, alone on its ports [slots]."""
    longest = int(setup.mix.cells(setup.machine.slot_payload_bytes).max()) if len(setup.mix.size_bytes) > 1 else 1
    return int(run_values()["longest_flows"]) * ceil(longest / setup.machine.ports_per_node)


@dataclass(frozen=True, eq=False)
class TrafficResult:
    """What a run counted.

    Args:
        setup: of the run.
        limit: what limits the load.
        offered_cells, sent_cells, pending_cells: of the whole run [count].
        epochs: simulated; fewer than planned if too many cells waited [count].
        ended_early: whether too many cells waited.
        counts: of the measured part.
        slope: growth of the backlog [cells a slot].
        stability: whether the backlog stays: stable, unstable, or undecided where the run does not show it.
        channel_cells: cells of all channels in an epoch [count].
        of_bound: ages of the cells sent over the bound of the linear relaxation; None but for the reference.
    """

    setup: TrafficSetup
    limit: Worst
    offered_cells: int
    sent_cells: int
    pending_cells: int
    epochs: int
    ended_early: bool
    counts: Counts
    slope: IntervalEstimate
    stability: Stability
    channel_cells: int
    of_bound: float | None = None

    @property
    def stable(self) -> bool:
        """Whether the run shows that the backlog stays."""
        return self.stability == "stable"

    @property
    def throughput(self) -> IntervalEstimate:
        """Cells that reached their receivers over the cells of all ports."""
        return self.counts.per_epoch(self.counts.delay_sums[:, 1]).scaled(1 / self._port_cells)

    @property
    def offered(self) -> IntervalEstimate:
        """Offered cells over the cells of all ports."""
        return self.counts.per_epoch(self.counts.offered).scaled(1 / self._port_cells)

    @property
    def _port_cells(self) -> int:
        """Cells of all ports in an epoch [count]."""
        return self.setup.machine.num_nodes * self.setup.machine.ports_per_node * epoch_slots()

    @property
    def wavelength_use(self) -> float:
        """Share of the cells of all channels that have a circuit."""
        return float(self.counts.circuits.sum() / max(1, self.counts.epochs.sum() * self.channel_cells))


class FlowArrivals:
    """Flows of a setup, epoch by epoch. Args: setup: load, sizes, gaps, weights and seed."""

    def __init__(self, setup: TrafficSetup) -> None:
        demand, machine = setup.demand(), setup.machine
        self._sizes = (
            setup.mix.cells(machine.slot_payload_bytes) if len(setup.mix.size_bytes) > 1 else np.ones(1, np.int32)
        )
        rate = setup.load * demand.cells_per_slot / float(self._sizes.mean())  # flows a slot
        self._chance, self._other = _aliases(demand.weights)
        self._weights = np.concatenate([[0.0], np.cumsum(demand.weights)])
        self._state = np.random.SeedSequence(setup.seed).generate_state(2, np.uint64)
        self._clock = np.zeros(1)
        self._gaps, self._mean_gap = setup.mix.gaps, 1 / rate
        self._rack_nodes = machine.wavelengths
        self._share = -1.0 if demand.between_racks is None else demand.between_racks
        self._columns = [np.zeros(int(rate * epoch_slots() * 1.2) + 1000, np.int32) for _ in range(4)]

    def epoch(self, number: int) -> EpochRequest:
        """Flows that arrive in an epoch; to be called with 0, 1, 2, ..."""
        end = float((number + 1) * epoch_slots())
        arrival, src, dst, cells = self._columns
        parts: list[list[IntArray]] = []
        while self._clock[0] < end or not parts:
            count, _ = draw_epoch(
                self._state, self._clock, end, self._gaps, self._mean_gap, self._sizes, self._chance, self._other,
                self._weights, self._rack_nodes, self._share, arrival, src, dst, cells,
            )  # fmt: skip
            parts.append([column[:count].copy() for column in (src, dst, cells, arrival)])
        return EpochRequest(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _aliases(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], IntArray]:
    """Chance of each column and its alias, for draws by weight in constant time. Source: Walker 1977, Vose 1991."""
    chance = weights / weights.mean()
    other = np.arange(len(weights))
    small, large = np.flatnonzero(chance < 1).tolist(), np.flatnonzero(chance >= 1).tolist()
    while small and large:
        low, high = small.pop(), large[-1]
        other[low] = high
        chance[high] -= 1 - chance[low]
        if chance[high] < 1:
            small.append(large.pop())
    chance[small + large] = 1.0
    return chance, other


def simulate_traffic(
    setup: TrafficSetup,
    *,
    progress: ProgressCallback = no_progress,
    observe: Observer | None = None,
    free: Callable[[int], FreeCells] | None = None,
    scheduler: Scheduler | None = None,
) -> TrafficResult:
    """Simulate a run, whether its load is admissible or not.

    Args:
        setup: traffic and scheduler.
        progress: called with (what, done, total).
        observe: called after every epoch.
        free: cells that may be used in an epoch; None: all.
        scheduler: in place of the one that the setup names.
    Returns: its counts; the delays of an unstable load mean nothing.
    """
    machine, values, slots = setup.machine, run_values(), epoch_slots()
    whole = all_free(machine)
    used = make_scheduler(setup.scheduler, machine) if scheduler is None else scheduler
    arrivals = FlowArrivals(setup)
    planned = ceil(setup.slots / slots)
    first = int(planned * values["discard"])
    batches = values["batches"] if planned - first >= values["batches"] else 1
    counts = Counts(batches, machine.num_nodes, machine.wavelengths)
    waiting: deque[EpochRequest] = deque()
    offered = sent = epoch = on_the_way = 0
    ended_early = False
    by_pair = machine.subnet != "broadcast"
    for epoch in range(planned):
        new = arrivals.epoch(epoch)
        new_cells = int(new.cells.sum(dtype=np.int64))
        offered += new_cells
        on_the_way += new_cells
        waiting.append(new)
        due = _NONE
        if len(waiting) > used.lead:
            due = waiting.popleft()
            used.add(due)
            on_the_way -= int(due.cells.sum(dtype=np.int64))
        before = used.pending_cells
        grants = used.schedule(epoch, whole if free is None else free(epoch))
        sent += before - used.pending_cells
        if observe is not None:
            observe(epoch, due, grants)
        if epoch >= first:
            batch = (epoch - first) * batches // (planned - first)
            _count(counts, batch, grants, epoch * slots, machine, by_pair)
            counts.offered[batch] += new_cells
            np.add.at(counts.offered_by, new.src, new.cells)
            counts.backlog[batch] += used.pending_cells + on_the_way
        progress(f"schedule at load {setup.load:g}", epoch + 1, planned)
        if used.pending_cells + on_the_way > values["most_pending"]:
            ended_early = True
            break
    counts.backlog /= np.maximum(1, counts.epochs)
    slope, answer = _stability(counts, (planned - first) * slots / batches)
    channel_cells = len(whole.channel) * slots * machine.groups
    reached, bound = getattr(used, "reached", 0.0), getattr(used, "bound", 0.0)
    return TrafficResult(
        setup, setup.limit(), offered, sent, used.pending_cells + on_the_way, epoch + 1, ended_early, counts, slope, answer,
        channel_cells, reached / bound if bound else None,
    )  # fmt: skip


_NONE = EpochRequest(*(np.zeros(0, np.int32) for _ in range(4)))


def _count(counts: Counts, batch: int, grants: EpochGrants, start: int, machine: Ramp, by_pair: bool) -> None:
    """Add an epoch to the counts.

    Args:
        counts: changed.
    """
    granted = grants.src, grants.dst, grants.bit, grants.cells, grants.arrival
    ended = grants.ended_arrival, grants.ended_cells, grants.ended_slot
    delays, delay_sums = counts.delays[batch], counts.delay_sums[batch]
    count_delays(granted, machine.groups, start, by_pair, delays, delay_sums, counts.sent_by, counts.used)
    count_ends(ended, machine.ports_per_node, RATIO_SCALE, counts.ratios[batch], counts.ratio_sums[batch])
    counts.epochs[batch] += 1
    counts.circuits[batch] += len(grants)
    counts.rounds[batch] += grants.rounds


def _stability(counts: Counts, slots_per_batch: float) -> tuple[IntervalEstimate, Stability]:
    """Growth of the backlog, and whether the load is stable; where too many cells waited, by the batches before.

    Args:
        slots_per_batch: length of a batch [slots].
    """
    backlog = counts.backlog[counts.epochs > 0]
    offered = float(counts.offered.sum() / (max(1, counts.epochs.sum()) * epoch_slots()))
    slope = growth(backlog, slots_per_batch)
    half_width = slope.by_scatter if len(backlog) >= run_values()["batches"] else None
    return IntervalEstimate(slope.value, half_width), stability(backlog, slots_per_batch, offered)


def assumptions_of(setup: TrafficSetup) -> dict[str, Any]:
    """What the times rest on, as plain values with their units in the names."""
    machine, values = setup.machine, run_values()
    return {
        "slot_s": machine.slot,
        "cell_bytes": machine.slot_payload_bytes,
        "epoch_slots": values["slots"],
        "request_lead_epochs": values["lead"],
        "planes": machine.groups,
        "cells_per_plane_and_slot": machine.transceivers_per_group,
        "propagation_s": machine.latency_s,
        "discarded_share": values["discard"],
        "batches": values["batches"],
    }
