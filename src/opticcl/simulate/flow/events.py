"""Runs the flow kernel: sets up its arrays, calls it in another thread and reports its progress meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np

from opticcl.ir import ProgressCallback, Timeline
from opticcl.simulate.dependencies import Dependencies, FlowTimes
from opticcl.simulate.flow import _kernels as kernels
from opticcl.simulate.flow._kernels import FlowColumns
from opticcl.simulate.guards import EventLimit

__all__ = ["FlowColumns", "Merging", "run_flows"]

POLL_S = 0.2  # between two checks for an interrupt


class Merging:
    """Ends of flows that are simulated together with an earlier event.

    Args:
        tolerance: how much later they may be, relative to the time and to the bytes of the flow; 0: none are merged.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance: float = tolerance
        self.left_out: np.ndarray = np.zeros(1)

    def reported(self, timeline: Timeline) -> Timeline:
        """The timeline with the tolerance and the largest part of the bytes of a flow that was left out."""
        if not self.tolerance:
            return timeline
        about = {"tolerance": self.tolerance, "left_out": round(float(self.left_out[0]), 9)}
        return replace(timeline, assumptions={**timeline.assumptions, **about})


def run_flows(
    limit: EventLimit,
    progress: ProgressCallback,
    merging: Merging,
    flows: FlowColumns,
    waits: Dependencies,
    capacity: np.ndarray,
) -> FlowTimes:
    """Simulate flows that wait for each other and share links; an interrupt of this thread stops the kernel.

    Args:
        limit: to the starts, ends and changes of rate.
        progress: called meanwhile.
        merging: of ends.
        flows: what they carry, and where.
        waits: dependencies between the flows; those of each group are counted down.
        capacity: of each link, float64 (links,) [byte/s].
    Raises: ParameterError: more events than allowed.
    """
    num_flows, slots = len(flows.amount), waits.most_at_once
    state, active = kernels.state_of(waits, len(capacity), slots), kernels.active_flows(flows, capacity, slots)
    at_once = len(waits.waits) == 1 and not len(waits.feeds)  # nothing waits: the order of equal ends does not matter
    arrays = [
        tuple(one)
        for one in (
            flows, waits, state, active, kernels.shares_of(active), kernels.events_of(num_flows),
            kernels.ends_of(slots, at_once),
        )
    ]  # fmt: skip
    limits, ended = (limit.left, merging.tolerance), np.zeros(2, np.int64)  # flows that have ended; whether to stop
    with ThreadPoolExecutor(1) as other:
        running = other.submit(lambda: kernels.run(*arrays, limits, ended, merging.left_out))
        try:
            while not wait([running], POLL_S).done:
                progress("simulate flows", int(ended[0]), num_flows)
        finally:
            ended[1] = True
    running.result()
    limit.spend(int(state.counts[kernels.EVENTS]))
    return FlowTimes(state.finished, state.released, state.caused_by)
