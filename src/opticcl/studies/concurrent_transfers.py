"""Concurrent all-reduces and layer-to-layer transfers of a training step on LIGHTPATH.

The next layer waits for layer-to-layer transfers, so these run first, layer by layer in their order. All-reduces must finish
by the end of the step, in any order. With each layer run the all-reduces that were called before it and have no GPU in common
with it or with each other; the rest runs in sets of all-reduces without common GPUs, found greedily. All tasks of a set execute
their k-th step at the same time: GPUs are disjoint, so lasers are; edges are shared, and rounds are split where these are full.

Source: LUMORPH appendix C, "Co-scheduling multiple ALLREDUCE invocations".
Reading: the paper groups transfers between a pair of layers in each direction. A log that does not name layers gives groups
of transfers that follow each other. The paper uses Bruck's algorithm for an all-to-all; here transfers of a layer are direct,
in the fewest rounds (edge colouring, see `routing.transfer_rounds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opticcl.circuits import lower
from opticcl.circuits.lightpath import split_by_waveguides
from opticcl.collective import Request
from opticcl.errors import WorkloadError
from opticcl.fabrics import job
from opticcl.ir import (
    CircuitPlan,
    Circuits,
    Collective,
    Fabric,
    IntArray,
    Op,
    Schedule,
    Transfers,
    concatenate_circuits,
    concatenate_transfers,
)
from opticcl.plans.plan import Plan
from opticcl.schedule import generate
from opticcl.traces import Workload

__all__ = ["ConcurrentPlan", "ConcurrentTask", "compile_concurrent", "disjoint_sets", "tasks_of"]


@dataclass(frozen=True, slots=True, eq=False)
class ConcurrentTask:
    """An all-reduce, or the transfers of a layer in one direction.

    Args:
        name: for messages.
        ranks: participants, ascending, int64 (n,).
        size_bytes: of the all-reduce's buffer, or of all transfers together [bytes].
        src, dst: ranks of each transfer, int64 (k,); empty for an all-reduce.
        sent_bytes: of each transfer, float64 (k,).
    """

    name: str
    ranks: IntArray
    size_bytes: int
    src: IntArray
    dst: IntArray
    sent_bytes: np.ndarray

    @property
    def is_layer(self) -> bool:
        """Whether it consists of layer-to-layer transfers."""
        return len(self.src) > 0


@dataclass(frozen=True, slots=True, eq=False)
class ConcurrentPlan:
    """Tasks that run concurrently.

    Args:
        names: of the tasks.
        plan: their steps combined; each task has chunks of its own.
        chunk_bytes: size of each chunk, float64 (num_chunks,).
    """

    names: tuple[str, ...]
    plan: CircuitPlan
    chunk_bytes: np.ndarray

    @property
    def num_rounds(self) -> int:
        """Rounds of all steps [count]."""
        return sum(len(self.plan.rounds(i)) for i in range(self.plan.schedule.num_steps))

    def time_s(self) -> float:
        """By the paper's model: alpha and a reconfiguration on every round, then the slowest transfer [s]."""
        fabric = self.plan.fabric
        total = 0.0
        for i in range(self.plan.schedule.num_steps):
            transfers = self.plan.schedule.step(i)
            size = transfers.chunk_n * self.chunk_bytes[transfers.chunk_lo]
            for circuits in self.plan.rounds(i):
                circuits = circuits.carrying()
                width = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
                carried = width > 0
                slowest = float((size[carried] / width[carried]).max(initial=0.0)) * 8 / fabric.rate_bits_per_s
                total += fabric.latency_s + fabric.reconfiguration_s + slowest
        return total


def tasks_of(workload: Workload) -> list[ConcurrentTask]:
    """All-reduces and groups of transfers of a workload, in order; a group has the place of its first transfer.

    Raises: WorkloadError: it has no ranks, or other collectives.
    """
    other = sorted(
        {call.collective for call in workload.calls if call.collective != "all_reduce" and not call.is_transfer}
    )
    if other or not workload.num_ranks:
        why = f"it contains {', '.join(other)}" if other else "it does not contain the number of its GPUs"
        raise WorkloadError(f"{workload.name}: {why}; co-scheduling takes all_reduces and transfers between GPUs")
    shared = Counter(call.name for call in workload.calls if call.is_transfer)
    grouped: dict[str, list[tuple[int, int, int]]] = {}
    order: list[tuple[str, tuple[int, ...], int]] = []
    run = 0
    for call in workload.calls:
        if not call.is_transfer:
            order.append((call.name, call.ranks or tuple(range(workload.num_ranks)), call.size_bytes))
            run += 1
            continue
        if min(call.ranks) < 0:
            raise WorkloadError(
                f"{workload.name}: {call.name} does not contain both of its ends; co-scheduling needs them"
            )
        key = call.name if shared[call.name] > 1 else f"transfers {run}"
        if key not in grouped:
            order.append((key, (), 0))
        src, dst = call.ranks
        grouped.setdefault(key, []).append((src, dst, call.size_bytes))
    return [_task(name, ranks, size, grouped.get(name, []) if not ranks else []) for name, ranks, size in order]


def _task(name: str, ranks: tuple[int, ...], size: int, transfers: list[tuple[int, int, int]]) -> ConcurrentTask:
    src, dst, sent = np.array(transfers, np.int64).reshape(-1, 3).T
    participants = np.unique(np.concatenate([src, dst])) if transfers else np.sort(np.array(ranks, np.int64))
    return ConcurrentTask(name, participants, size or int(sent.sum()), src, dst, sent.astype(np.float64))


def disjoint_sets(tasks: Sequence[ConcurrentTask]) -> list[list[int]]:
    """Sets of tasks that run concurrently: lists of indices, layers first and in order, no GPU twice in a list."""
    waiting = [i for i, task in enumerate(tasks) if not task.is_layer]
    disjoint: list[list[int]] = []
    for layer in (i for i, task in enumerate(tasks) if task.is_layer):
        called_before = [i for i in waiting if i < layer]
        disjoint.append([layer, *_fitting(tasks, called_before, tasks[layer].ranks)])
        waiting = [i for i in waiting if i not in disjoint[-1]]
    while waiting:
        disjoint.append(_fitting(tasks, waiting, np.zeros(0, np.int64)))
        waiting = [i for i in waiting if i not in disjoint[-1]]
    return disjoint


def _fitting(tasks: Sequence[ConcurrentTask], candidates: Iterable[int], taken: IntArray) -> list[int]:
    """Candidates, in order, without a GPU in common with `taken` or with each other."""
    busy = set(taken.tolist())
    chosen = []
    for i in candidates:
        ranks = tasks[i].ranks.tolist()
        if busy.isdisjoint(ranks):
            busy.update(ranks)
            chosen.append(i)
    return chosen


def compile_concurrent(fabric: Fabric, tasks: Sequence[ConcurrentTask], algorithm: str = "lumorph") -> ConcurrentPlan:
    """Compile and verify tasks without common GPUs as one plan.

    Args:
        fabric: LIGHTPATH; rank r of the workload is its rank r.
        tasks: with disjoint ranks.
        algorithm: of the all-reduces.
    Raises: WorkloadError: a rank that the fabric does not have. UnsupportedError: the algorithm does not support a task.
        VerificationError: the plan is wrong, an error of this module.
    """
    parts = [_plan_of(fabric, task, algorithm) for task in tasks]
    num_chunks = [part.schedule.collective.num_chunks for part in parts]
    first = np.concatenate([[0], np.cumsum(num_chunks)])
    rank_of = np.full(fabric.num_machine_nodes, -1, np.int32)
    rank_of[fabric.machine_nodes(np.arange(fabric.num_nodes))] = np.arange(fabric.num_nodes)

    def step_of(m: int, i: int) -> Transfers:
        part = parts[m]
        t = part.schedule.step(i)
        src, dst = (rank_of[part.fabric.machine_nodes(ends)] for ends in (t.src, t.dst))
        return Transfers.of(src, dst, t.chunk_lo + first[m], t.chunk_n, t.op, chunk_step=t.chunk_step)

    def running(i: int) -> list[int]:
        return [m for m, part in enumerate(parts) if i < part.schedule.num_steps]

    def step(i: int) -> Transfers:
        return concatenate_transfers(step_of(m, i) for m in running(i))

    def rounds(i: int) -> tuple[Circuits, ...]:
        ends = np.cumsum([0] + [len(parts[m].schedule.step(i)) for m in running(i)])
        of_part = [
            [_shifted(circuits, int(end)) for circuits in parts[m].rounds(i)]
            for m, end in zip(running(i), ends[:-1], strict=True)
        ]
        return tuple(_merged(fabric, of_part))

    combined = _combined(parts, first, fabric.num_nodes, rank_of)
    num_steps = max(part.schedule.num_steps for part in parts)
    names = tuple(task.name for task in tasks)
    plan = CircuitPlan(fabric, Schedule("co_scheduling", combined, num_steps, step), rounds)
    Plan(plan, 1).verify().raise_if_bad()
    sizes = [
        task.sent_bytes if task.is_layer else np.full(n, task.size_bytes / n)
        for task, n in zip(tasks, num_chunks, strict=True)
    ]
    return ConcurrentPlan(names, plan, np.concatenate(sizes))


def _shifted(circuits: Circuits, by: int) -> Circuits:
    """The same circuits with transfer indices shifted by `by`."""
    return replace(circuits, transfer=circuits.transfer + np.int32(by))


def _merged(fabric: Fabric, of_part: list[list[Circuits]]) -> list[Circuits]:
    """The k-th rounds of all parts merged into one where the edges allow it, else split into as few as found."""
    merged: list[Circuits] = []
    for k in range(max(map(len, of_part), default=0)):
        now = [rounds[k] for rounds in of_part if k < len(rounds)]
        both = concatenate_circuits(now)
        split = split_by_waveguides(fabric, both)
        one_each = len(np.unique(both.transfer)) == len(both)
        merged += split if len(split) == 1 or one_each else now  # circuits of one transfer must stay in one round
    return merged


def _plan_of(fabric: Fabric, task: ConcurrentTask, algorithm: str) -> CircuitPlan:
    """Plan of one task on its own GPUs."""
    if task.is_layer:
        return lower(fabric, _layer(fabric, task))
    part = job(fabric, fabric.machine_nodes(_known(fabric, task.ranks)))
    return lower(part, generate(algorithm, Request("all_reduce"), part))


def _known(fabric: Fabric, ranks: IntArray) -> IntArray:
    if ranks[-1] >= fabric.num_nodes:
        raise WorkloadError(
            f"the workload has a GPU {ranks[-1]}, {fabric.name} has {fabric.num_nodes}; try a larger shape"
        )
    return ranks


def _layer(fabric: Fabric, task: ConcurrentTask) -> Schedule:
    """All transfers of a layer in one step, one chunk each."""
    _known(fabric, task.ranks)
    chunk = np.arange(len(task.src))

    def holds(ranks: IntArray) -> Callable[[IntArray, IntArray], np.ndarray]:
        return lambda rank, chunk: np.asarray(rank) == ranks[chunk]

    collective = Collective("transfers", fabric.num_nodes, len(chunk), False, holds(task.src), holds(task.dst))
    return Schedule("transfers", collective, 1, lambda i: Transfers.of(task.src, task.dst, chunk, 1, Op.COPY))


def _combined(parts: Sequence[CircuitPlan], first: IntArray, num_ranks: int, rank_of: IntArray) -> Collective:
    """Collective of all parts, each on its own chunks and ranks."""
    inside = []
    for part in parts:
        rank = np.full(num_ranks, -1)
        nodes = part.fabric.machine_nodes(np.arange(part.fabric.num_nodes))
        rank[rank_of[nodes]] = np.arange(part.fabric.num_nodes)
        inside.append(rank)

    def holds(when: str) -> Callable[[IntArray, IntArray], np.ndarray]:
        def held(rank: IntArray, chunk: IntArray) -> np.ndarray:
            rank, chunk = np.broadcast_arrays(rank, chunk)
            holds = np.zeros(rank.shape, bool)
            for m, part in enumerate(parts):
                mine = (chunk >= first[m]) & (chunk < first[m + 1]) & (inside[m][rank] >= 0)
                holds[mine] = getattr(part.schedule.collective, when)(inside[m][rank[mine]], chunk[mine] - first[m])
            return holds

        return held

    reduces = any(part.schedule.collective.reduces for part in parts)
    return Collective("co_scheduling", num_ranks, int(first[-1]), reduces, holds("before"), holds("after"))
