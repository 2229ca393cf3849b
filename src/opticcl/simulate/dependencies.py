"""Packets without barriers: the dependencies of the transfers of a plan, and its critical path, the chain that ends last.

A transfer waits for the chunks that it sends (and for the sums made of them), and a rank has one step's sends in flight at a
time. Circuits without barriers: `opticcl.simulate.device.list_schedule`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Op, ProgressCallback, Timeline, numbered
from opticcl.simulate.bounds import lower_bound
from opticcl.simulate.guards import EventLimit
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import charged_control_s, sums_s
from opticcl.simulate.traffic import Recorder

__all__ = ["Dependencies", "FlowTimes", "Flows", "SendOrder", "released_together", "simulate_asynchronously"]

SendOrder = Callable[[IntArray, IntArray, IntArray], IntArray]
"""(src, dst, first link of the path) -> rank of each transfer in the order in which its sender starts them."""

_OF_TRANSFER = ("step", "src", "dst", "lo", "n", "by", "adds")
_OF_CIRCUITS = ("bytes", "gap", "latency", "control", "compute", "path_at", "path_n")


class Dependencies(NamedTuple):
    """Dependencies between flows. Flows that are released together are a group, a sender's groups of one step a block.

    Args:
        group_at: flows of group g are group_at[g] .. group_at[g + 1] - 1.
        group_of: group of each flow.
        waits: events that each group waits for, the end of the block before included [count].
        block_at: groups of block b are block_at[b] .. block_at[b + 1] - 1.
        block_of: block of each flow.
        next_block: block that waits for each block, or -1.
        feeds_at, feeds: groups that send data of flow f are feeds[feeds_at[f]:feeds_at[f + 1]].
        most_at_once: flows that can be in flight together at most [count].
    """

    group_at: IntArray
    group_of: IntArray
    waits: IntArray
    block_at: IntArray
    block_of: IntArray
    next_block: IntArray
    feeds_at: IntArray
    feeds: IntArray
    most_at_once: int


def released_together(num_flows: int) -> Dependencies:
    """All flows in one group, which waits for nothing."""
    one, none = np.array([0, 1]), np.zeros(num_flows, np.int64)
    waits, feeds_at = np.zeros(1, np.int64), np.zeros(num_flows + 1, np.int64)
    return Dependencies(num_flows * one, none, waits, one, none, np.full(1, -1), feeds_at, none[:0], num_flows)


@dataclass(frozen=True, slots=True)
class Flows:
    """All transfers of a plan, sorted by step and sender.

    Args:
        columns: step, src, dst, lo, n, by (chunks and their distance), adds, bytes; gap, latency and control of each before
            its first byte, compute after its last [s]; path_at, path_n.
        hops: links of flow i are hops[path_at[i] : path_at[i] + path_n[i]].
    """

    columns: dict[str, np.ndarray]
    hops: IntArray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def paths(self) -> tuple[IntArray, IntArray]:
        """(links, offsets) of all flows, one after the other."""
        flow, nth = numbered(self["path_n"])
        return self.hops[self["path_at"][flow] + nth], np.concatenate([[0], np.cumsum(self["path_n"], dtype=np.int64)])


class FlowTimes(NamedTuple):
    """What an engine finds of flows.

    Args:
        finished: end of each flow, float64 (flows,), NaN: never [s].
        released: release of each group, float64 (groups,), NaN: never [s].
        caused_by: what released each group: the flow times 2, plus 1 if it was its data; negative at the start, int64.
    """

    finished: np.ndarray
    released: np.ndarray
    caused_by: IntArray


def simulate_asynchronously(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    run: Callable[[Flows, Dependencies], FlowTimes],
    routes: Callable[[Circuits], tuple[IntArray, IntArray]],
    limit: EventLimit,
    progress: ProgressCallback,
    recorder: Recorder | None,
    send_order: SendOrder | None = None,
) -> Timeline:
    """Build the flows of a plan and their dependencies, let an engine simulate them, and find the critical path.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        run: simulates the flows.
        routes: circuits -> (links, offsets).
        limit: to the events of the engine.
        progress: called while flows are built and simulated.
        recorder: collects the traffic, or None.
        send_order: order of a sender's transfers of one step; None: that of the schedule.
    Raises: ParameterError: transfers wait for each other. UnsupportedError: a transfer on several routes.
    """
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    built = _FlowBuilder(plan, size_bytes / schedule.collective.num_chunks, assumed, routes, send_order, limit.engine)
    num_rounds = np.zeros(len(classes), np.int64)
    for c, steps in enumerate(classes):
        limit.require(limit.per_transfer * (built.count + len(schedule.step(steps.start)) * len(steps)))
        num_rounds[c] = built.add(steps) * len(steps)
        progress("build flows", steps.stop, schedule.num_steps)
    parts = np.zeros((4, len(classes)))
    if built.count:
        flows = built.flows()
        waits = built.dependencies(flows)
        times = run(flows, waits)
        if np.isnan(times.finished).any():
            waiting = int(np.isnan(times.finished).sum())
            raise ParameterError(f"{limit.engine}: {waiting} transfers of {schedule.name} wait for each other")
        parts, chain = _critical_path(flows, waits, times, classes)
        if recorder is not None:
            start = times.released[waits.group_of] + flows["control"]
            of_flow = [flows[name] for name in ("step", "src", "dst", "bytes")]
            recorder.add_transfers([*of_flow, start, times.finished], classes, chain)
    bound = lower_bound(schedule.collective, fabric, size_bytes, assumed, starts="data")
    about = {**assumed.record(), "mode": "asynchronous"}
    latency, transfer, compute, control = parts
    nothing_set = np.zeros(len(classes))
    return Timeline(
        classes, num_rounds, nothing_set, latency, transfer, compute, control, bound.seconds, about, bound.name
    )


class _FlowBuilder:
    """Builds the flows of a plan, sorted by step and sender, and their dependencies."""

    def __init__(
        self,
        plan: CircuitPlan,
        chunk_bytes: float,
        assumed: Assumptions,
        routes: Callable[[Circuits], tuple[IntArray, IntArray]],
        send_order: SendOrder | None,
        engine: str,
    ) -> None:
        self.send_order, self.engine = send_order, engine
        self.plan, self.chunk_bytes, self.assumed, self.routes = plan, chunk_bytes, assumed, routes
        self.columns: dict[str, list[np.ndarray]] = {name: [] for name in (*_OF_TRANSFER, *_OF_CIRCUITS)}
        self.count = 0
        self.hops: list[IntArray] = [np.zeros(0, np.int32)]
        self.num_hops = 0
        self.law = path_latency(plan.fabric, assumed)

    def add(self, steps: range) -> int:
        """Add the flows of a class of steps; returns the number of rounds of one step."""
        schedule, fabric = self.plan.schedule, self.plan.fabric
        first, rounds = schedule.step(steps.start), self.plan.rounds(steps.start)
        m = len(first)
        path_at, path_n, starts = np.zeros(m, np.int64), np.zeros(m, np.int32), np.zeros(m, np.int64)
        gap, latency, control = np.zeros((3, m))
        carried = first.size_chunks() * self.chunk_bytes
        for circuits in rounds:
            if (np.bincount(circuits.transfer, minlength=m) > 1).any():
                raise UnsupportedError(
                    f"{self.engine}: {schedule.name} on {fabric.name} sends a transfer on several routes; use mode=barrier"
                )
            hops, offsets = self.routes(circuits)
            latency[circuits.transfer] = self.law.of_circuits(circuits)
            gap[circuits.transfer] = self.law.gaps_s(first, circuits)
            control[circuits.transfer] = charged_control_s(fabric, first, circuits, self.assumed)
            path_at[circuits.transfer] = self.num_hops + offsets[:-1]
            path_n[circuits.transfer] = np.diff(offsets)
            starts[circuits.transfer] = hops[offsets[:-1]]
            self.hops.append(hops.astype(np.int32))
            self.num_hops += len(hops)
        if self.send_order is None:
            by_sender = np.argsort(first.src, kind="stable")
        else:
            by_sender = np.lexsort((self.send_order(first.src, first.dst, starts), starts, first.src))
        others = [first, *(schedule.step(i) for i in steps[1:])]
        same_in_all = {
            "src": first.src, "dst": first.dst, "n": first.chunk_n, "adds": first.op != Op.COPY,
            "by": np.ones(m, np.int32) if first.chunk_step is None else first.chunk_step,
            "bytes": carried, "gap": gap, "latency": latency, "control": control,
            "compute": sums_s(first, self.chunk_bytes, self.assumed), "path_at": path_at, "path_n": path_n,
        }  # fmt: skip
        for name, column in same_in_all.items():
            column = column[by_sender]
            self.columns[name].append(np.tile(column, len(steps)) if len(steps) > 1 else column)
        self.columns["step"].append(np.repeat(np.arange(steps.start, steps.stop), m))
        self.columns["lo"] += [t.chunk_lo[by_sender] for t in others]
        self.count += m * len(steps)
        return len(rounds)

    def flows(self) -> Flows:
        """All flows added so far."""
        return Flows({name: np.concatenate(parts) for name, parts in self.columns.items()}, np.concatenate(self.hops))

    def dependencies(self, flows: Flows) -> Dependencies:
        """Dependencies between the flows."""
        from opticcl.simulate._dependency_kernels import data_needs

        src, dst, step, lo, n, by = (flows[name] for name in ("src", "dst", "step", "lo", "n", "by"))
        num_flows = len(src)
        collective = self.plan.schedule.collective
        ranks, chunks = self.plan.schedule.num_ranks, collective.num_chunks

        new_block = _starts(src, step)
        block_of = np.cumsum(new_block) - 1
        new_group = new_block | _starts(lo, n, by)
        group_of = np.cumsum(new_group) - 1
        group_at = np.append(np.flatnonzero(new_group), num_flows)
        block_at = np.append(group_of[new_block], group_of[-1] + 1)
        sender = src[new_block]
        in_turn = np.argsort(sender, kind="stable")
        same = sender[in_turn[1:]] == sender[in_turn[:-1]]
        next_block = np.full(len(sender), -1)
        next_block[in_turn[:-1][same]] = in_turn[1:][same]

        flow, group = data_needs(ranks, chunks, src, dst, step, lo, n, by, flows["adds"], group_of)
        feeds = group[np.argsort(flow, kind="stable")]
        feeds_at = np.concatenate([[0], np.cumsum(np.bincount(flow, minlength=num_flows))])
        waits = np.bincount(feeds, minlength=len(group_at) - 1)
        chained = np.zeros(len(sender), np.int64)
        chained[next_block[next_block >= 0]] = 1
        waits += chained[block_of[group_at[:-1]]]

        most_at_once = np.zeros(ranks, np.int64)
        np.maximum.at(most_at_once, sender, np.bincount(block_of))
        return Dependencies(
            group_at, group_of, waits, block_at, block_of, next_block, feeds_at, feeds,
            int(most_at_once.sum()),
        )  # fmt: skip


def _starts(*columns: IntArray) -> np.ndarray:
    """Rows that differ from the row before, bool (n,)."""
    differs = np.zeros(len(columns[0]), bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _critical_path(
    flows: Flows, waits: Dependencies, times: FlowTimes, classes: tuple[range, ...]
) -> tuple[np.ndarray, IntArray]:
    """Follow the chain of causes back from the transfer that ends last.

    Args:
        flows: of the plan.
        waits: their dependencies.
        times: their simulated times.
        classes: of steps.
    Returns: contribution of each class of steps, float64 (parts of a timeline, classes) [s]; the flows of the chain, in
        order.
    """
    starts = np.array([steps.start for steps in classes])
    parts = np.zeros((4, len(classes)))
    usable = times.finished + flows["compute"]
    last = int(usable.argmax())
    end, added_up = float(usable[last]), True
    chain = []
    while True:
        chain.append(last)
        row = int(np.searchsorted(starts, flows["step"][last], side="right")) - 1
        begin = float(times.released[waits.group_of[last]])
        control, latency = float(flows["control"][last]), float(flows["gap"][last] + flows["latency"][last])
        compute = float(flows["compute"][last]) if added_up else 0.0
        transfer = end - begin - latency - control - compute
        if not flows["bytes"][last]:  # what is left is rounding
            latency, transfer = latency + transfer, 0.0
        parts[:, row] += latency, transfer, compute, control
        cause = int(times.caused_by[waits.group_of[last]])
        if cause < 0:
            return parts, np.array(chain[::-1])
        end, last, added_up = begin, cause // 2, bool(cause % 2)
