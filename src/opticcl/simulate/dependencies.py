"""Without barriers: what each transfer of a plan waits for, and the chain of transfers that ends last.

A transfer waits for the chunks that it sends (and for the sums made of them). On packet fabrics a rank has one step's
sends under way at a time; on circuits everything that light occupies is handed on in the order of the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, IntArray, Op, Timeline
from opticcl.simulate import _dependency_kernels as kernels
from opticcl.simulate._standing_light import Settings, Units
from opticcl.simulate.assumptions import Assumptions, as_dict
from opticcl.simulate.bounds import lower_bound_s
from opticcl.simulate.limits import Limit, Progress
from opticcl.simulate.parts import charged_control_s, latencies, lit, sums_s
from opticcl.simulate.traffic import Recorder

__all__ = ["Ended", "Flows", "Turns", "Waits", "play_asynchronously"]

Turns = Callable[[IntArray, IntArray, IntArray], IntArray]
"""(src, dst, first link of the path) -> which transfers of one sender and step come first."""

_OF_TRANSFER = ("step", "src", "dst", "lo", "n", "adds")
_OF_CIRCUITS = ("amount", "bytes", "setting", "latency", "control", "compute", "path_at", "path_n")


class Waits(NamedTuple):
    """What waits for what. Flows that are released together are a group, a sender's groups of one step a block.

    Args:
        group_at: flows of group g are group_at[g] .. group_at[g + 1] - 1.
        group_of: group of each flow.
        waits: what each group waits for, the block before included [count].
        block_at: groups of block b are block_at[b] .. block_at[b + 1] - 1.
        block_of, next_block: block of each flow; the block that waits for a block, or -1.
        feeds_at, feeds: groups that each flow's data feed. frees_at, frees: groups that its end frees from waiting.
        most_at_once: most flows that can be under way together [count].
    """

    group_at: IntArray
    group_of: IntArray
    waits: IntArray
    block_at: IntArray
    block_of: IntArray
    next_block: IntArray
    feeds_at: IntArray
    feeds: IntArray
    frees_at: IntArray
    frees: IntArray
    most_at_once: int


@dataclass(frozen=True, slots=True)
class Flows:
    """All transfers of a plan, sorted by step and sender.

    Args:
        columns: step, src, dst, lo, n (chunks), adds, bytes; amount: bytes, or seconds of light; setting, latency and
            control of each before its first byte, compute after its last [s]; path_at, path_n.
        hops: links of flow i are hops[path_at[i] : path_at[i] + path_n[i]].
    """

    columns: dict[str, np.ndarray]
    hops: IntArray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def paths(self) -> tuple[IntArray, IntArray]:
        """(links, offsets) of all flows, one after the other."""
        n = self["path_n"].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(n)])
        return self.hops[np.arange(offsets[-1]) + np.repeat(self["path_at"] - offsets[:-1], n)], offsets


class Ended(NamedTuple):
    """When flows were released and finished, and by what: see `_flow_kernels.play`. Times in seconds, NaN: never."""

    finished: np.ndarray
    released: np.ndarray
    caused_by: IntArray


def play_asynchronously(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    play: Callable[[Flows, Waits], Ended],
    routes: Callable[[Circuits], tuple[IntArray, IntArray]] | None,
    limit: Limit,
    progress: Progress,
    recorder: Recorder | None,
    turns: Turns | None = None,
) -> Timeline:
    """Gather the flows of a plan and what they wait for, let an engine play them, and tell the critical path.

    Args:
        routes: circuits -> (links, offsets) of packet fabrics; None: light.
        turns: of transfers of one sender and step; None: as the schedule lists them.
    Raises: ParameterError: transfers wait for each other. UnsupportedError: a transfer on several routes.
    """
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    gathered = _Gathered(plan, size_bytes / schedule.collective.num_chunks, assumed, routes, turns, limit.engine)
    num_rounds = np.zeros(len(classes), np.int64)
    for c, steps in enumerate(classes):
        limit.expect(limit.least_a_transfer * (gathered.count + len(schedule.step(steps.start)) * len(steps)))
        num_rounds[c] = gathered.add(steps) * len(steps)
        progress("gather flows", steps.stop, schedule.num_steps)
    parts = np.zeros((5, len(classes)))
    if gathered.count:
        flows = gathered.flows()
        waits = gathered.waits(flows)
        ended = play(flows, waits)
        if np.isnan(ended.finished).any():
            waiting = int(np.isnan(ended.finished).sum())
            raise ParameterError(f"{limit.engine}: {waiting} transfers of {schedule.name} wait for each other")
        parts, chain = _critical(flows, waits, ended, classes)
        if recorder is not None:
            start = ended.released[waits.group_of] + flows["setting"] + flows["control"]
            of_flow = [flows[name] for name in ("step", "src", "dst", "bytes")]
            recorder.played([*of_flow, start, ended.finished], classes, chain)
    bound = lower_bound_s(schedule.collective, fabric, size_bytes)
    told = {**as_dict(assumed), "mode": "asynchronous"}
    setting, latency, transfer, compute, control = parts
    return Timeline(classes, num_rounds, setting, latency, transfer, compute, control, bound, told)


class _Gathered:
    """The flows of a plan, sorted by step and sender, and what they wait for."""

    def __init__(
        self,
        plan: CircuitPlan,
        chunk_bytes: float,
        assumed: Assumptions,
        routes: Callable[[Circuits], tuple[IntArray, IntArray]] | None,
        turns: Turns | None,
        engine: str,
    ) -> None:
        self.turns, self.engine = turns, engine
        self.plan, self.chunk_bytes, self.assumed, self.routes = plan, chunk_bytes, assumed, routes
        self.columns: dict[str, list[np.ndarray]] = {name: [] for name in (*_OF_TRANSFER, *_OF_CIRCUITS)}
        self.count = 0
        self.hops: list[IntArray] = [np.zeros(0, np.int32)]
        self.num_hops = 0
        self.settings = Settings(plan.fabric, assumed)
        self.units = Units(plan.fabric)

    def add(self, steps: range) -> int:
        """Take up the flows of a class of steps; returns the rounds of one step."""
        schedule, fabric = self.plan.schedule, self.plan.fabric
        first, rounds = schedule.step(steps.start), self.plan.rounds(steps.start)
        m = len(first)
        path_at, path_n, starts = np.zeros(m, np.int64), np.zeros(m, np.int32), np.zeros(m, np.int64)
        amount, latency, control = np.zeros((3, m))
        carried = first.size_chunks() * self.chunk_bytes
        for circuits in rounds:
            control[circuits.transfer] = charged_control_s(fabric, first, circuits, self.assumed)
            if self.routes is not None:
                if (np.bincount(circuits.transfer, minlength=m) > 1).any():
                    raise UnsupportedError(
                        f"{self.engine}: {schedule.name} on {fabric.name} sends a transfer on several routes; "
                        "play it with mode=barrier"
                    )
                hops, offsets = self.routes(circuits)
                amount[circuits.transfer] = carried[circuits.transfer]
                latency[circuits.transfer] = latencies(fabric, circuits)
                path_at[circuits.transfer] = self.num_hops + offsets[:-1]
                path_n[circuits.transfer] = np.diff(offsets)
                starts[circuits.transfer] = hops[offsets[:-1]]
                self.hops.append(hops.astype(np.int32))
                self.num_hops += len(hops)
            else:
                rows, late, duration = lit(fabric, first, circuits, self.chunk_bytes)
                amount[rows], latency[rows] = duration, late
        if self.turns is None:
            by_sender = np.argsort(first.src, kind="stable")
        else:
            by_sender = np.lexsort((self.turns(first.src, first.dst, starts), starts, first.src))
        place = np.empty(m, np.int64)
        place[by_sender] = np.arange(m)
        settings = [self._set(rounds, m, self.count + k * m + place) for k in range(len(steps))]
        others = [first, *(schedule.step(i) for i in steps[1:])]
        alike = {
            "src": first.src, "dst": first.dst, "n": first.chunk_n, "adds": first.op != Op.COPY, "amount": amount,
            "bytes": carried, "latency": latency, "control": control,
            "compute": sums_s(first, self.chunk_bytes, self.assumed), "path_at": path_at, "path_n": path_n,
        }  # fmt: skip
        for name, column in alike.items():
            column = column[by_sender]
            self.columns[name].append(np.tile(column, len(steps)) if len(steps) > 1 else column)
        self.columns["step"].append(np.repeat(np.arange(steps.start, steps.stop), m))
        self.columns["lo"] += [t.chunk_lo[by_sender] for t in others]
        self.columns["setting"] += [seconds[by_sender] for seconds in settings]
        self.count += m * len(steps)
        return len(rounds)

    def _set(self, rounds: tuple[Circuits, ...], num_transfers: int, flow: IntArray) -> np.ndarray:
        """Time to set the circuits of each transfer of the next step [s]; `flow` is the number of each transfer."""
        seconds = np.zeros(num_transfers)
        for circuits in rounds if self.routes is None else ():
            np.maximum.at(seconds, circuits.transfer, self.settings.charge(circuits))
            self.units.add(circuits, flow)
        return seconds

    def flows(self) -> Flows:
        """All that were taken up."""
        return Flows({name: np.concatenate(parts) for name, parts in self.columns.items()}, np.concatenate(self.hops))

    def waits(self, flows: Flows) -> Waits:
        """What they wait for."""
        src, dst, step, lo, n = (flows[name] for name in ("src", "dst", "step", "lo", "n"))
        num_flows = len(src)
        collective = self.plan.schedule.collective
        ranks, chunks = collective.num_ranks, collective.num_chunks
        packets = self.routes is not None

        new_block = _starts(src, step)
        block_of = np.cumsum(new_block) - 1
        new_group = new_block | _starts(lo, n) if packets else np.ones(num_flows, bool)
        group_of = np.cumsum(new_group) - 1
        group_at = np.append(np.flatnonzero(new_group), num_flows)
        block_at = np.append(group_of[new_block], group_of[-1] + 1)
        sender = src[new_block]
        next_block = kernels.next_of_same(sender, ranks) if packets else np.full(len(sender), -1)

        needs = kernels.data_needs(ranks, chunks, src, dst, step, lo, n, flows["adds"], group_of)
        turns = self.units.order()
        feeds_at, feeds = kernels.rows_of(needs[0], needs[1], num_flows)
        frees_at, frees = kernels.rows_of(turns[0], turns[1], num_flows)
        waits = np.bincount(feeds, minlength=len(group_at) - 1) + np.bincount(frees, minlength=len(group_at) - 1)
        chained = np.zeros(len(sender), np.int64)
        chained[next_block[next_block >= 0]] = 1
        waits += chained[block_of[group_at[:-1]]]

        most_at_once = np.zeros(ranks, np.int64)
        np.maximum.at(most_at_once, sender, np.bincount(block_of))
        return Waits(
            group_at, group_of, waits, block_at, block_of, next_block, feeds_at, feeds, frees_at, frees,
            int(most_at_once.sum()) if packets else 1,
        )  # fmt: skip


def _starts(*columns: IntArray) -> np.ndarray:
    """Rows that differ from the row before, bool (n,)."""
    differs = np.zeros(len(columns[0]), bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _critical(flows: Flows, waits: Waits, ended: Ended, classes: tuple[range, ...]) -> tuple[np.ndarray, IntArray]:
    """Walk back from the transfer that ends last.

    Returns: what each class of steps puts on the way, float64 (parts of a timeline, classes) [s]; the flows on it, in
        order.
    """
    starts = np.array([steps.start for steps in classes])
    parts = np.zeros((5, len(classes)))
    usable = ended.finished + flows["compute"]
    last = int(usable.argmax())
    end, added_up = float(usable[last]), True
    chain = []
    while True:
        chain.append(last)
        row = int(np.searchsorted(starts, flows["step"][last], side="right")) - 1
        begin = float(ended.released[waits.group_of[last]])
        setting, latency, control = (float(flows[name][last]) for name in ("setting", "latency", "control"))
        compute = float(flows["compute"][last]) if added_up else 0.0
        transfer = end - begin - setting - latency - control - compute
        if not flows["amount"][last]:  # what is left is rounding
            latency, transfer = latency + transfer, 0.0
        parts[:, row] += setting, latency, transfer, compute, control
        cause = int(ended.caused_by[waits.group_of[last]])
        if cause < 0:
            return parts, np.array(chain[::-1])
        end, last, added_up = begin, cause // 2, bool(cause % 2)
