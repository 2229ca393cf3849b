"""A dependency graph as a schedule of steps, so that any fabric can carry it.

The step of a message is the number of messages before it on the longest path that leads to it. A schedule has
no cells: a rank holds one value of each chunk, and a message carries the value that its sender holds. A graph in which a rank
keeps several partial sums of a chunk separate while it sends one of them has no such schedule.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from opticcl.circuits import lower
from opticcl.collective import COLLECTIVES, collective, custom_collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Collective, Fabric, IntArray, Op, Schedule, Transfers, no_progress
from opticcl.ir.dependency_graph import DependencyGraph
from opticcl.ir.limits import limit
from opticcl.plans.plan import Plan
from opticcl.verify.data.contributions import check_data
from opticcl.verify.time.dependencies import topological_order, verify_graph

__all__ = ["plan_of_graph", "schedule_of_graph"]

MOST_BITS = limit("graph_schedule.MOST_BITS")


class _Content(NamedTuple):
    """Contributions to a chunk: a bit for each rank that one comes from."""

    chunk: int
    ranks: int


class _Message(NamedTuple):
    src: int
    dst: int
    chunk: int
    ranks: int
    operation: int


def plan_of_graph(graph: DependencyGraph, fabric: Fabric, size_bytes: int) -> Plan:
    """A plan for a graph on a fabric.

    Args:
        graph: from a file of another program.
        fabric: with as many nodes as the graph has ranks.
        size_bytes: message of every rank [bytes].
    Raises: VerificationError: the graph is wrong. ParameterError: another number of nodes. UnsupportedError: the graph has no
        schedule of steps, or the fabric cannot carry it.
    """
    if fabric.num_nodes != graph.num_ranks:
        raise ParameterError(
            f"{graph.name}: {graph.num_ranks} ranks, but {fabric.name} has {fabric.num_nodes} nodes; "
            f"size the fabric to {graph.num_ranks}, or give a job of {graph.num_ranks} nodes"
        )
    return Plan(lower(fabric, schedule_of_graph(graph)), size_bytes)


def schedule_of_graph(graph: DependencyGraph) -> Schedule:
    """The schedule of a graph.

    Each message takes the first step that its dependencies allow. Where a chunk would then arrive before its receiver has sent
    what it held of it without that, the arrival is delayed.

    Args:
        graph: any; it is verified first.
    Raises: VerificationError: the graph is wrong. UnsupportedError: it has no schedule of steps.
    """
    verify_graph(graph).raise_if_bad()
    promised = _promised(graph)
    messages = _messages(graph)
    reason = ""
    for delayed in (False, True):
        try:
            steps = _steps(promised, _by_step(graph, messages, delayed))
        except _NoScheduleError as error:
            reason = reason or str(error)
            continue
        schedule = Schedule(graph.name, promised, len(steps), steps.__getitem__)
        report = check_data(schedule, num_chunks=graph.num_chunks, seed=0, progress=no_progress)
        if not report.violations:
            return schedule
        reason = reason or str(report.violations[0])
    raise UnsupportedError(f"{graph.name} is right, but has no schedule of steps that a fabric could carry: {reason}")


def _promised(graph: DependencyGraph) -> Collective:
    """The collective of a graph; a custom one follows from its inputs and outputs."""
    if graph.collective in COLLECTIVES:
        return collective(graph.collective, graph.num_ranks, graph.num_chunks)
    if graph.num_chunks * graph.num_ranks > MOST_BITS:
        raise UnsupportedError(f"{graph.name}: a custom collective has tables of at most {MOST_BITS:,} bits")
    ranks = graph.rank_of_cell()
    before, after = (np.zeros((graph.num_chunks, graph.num_ranks), bool) for _ in range(2))
    for table, cells, results in (
        (before, graph.input_cell, graph.input_result),
        (after, graph.output_cell, graph.output_result),
    ):
        table[graph.result_chunk[results], ranks[cells]] = True
    return custom_collective(graph.collective, before, after, reduces=bool((before.sum(axis=1) > 1).any()))


class _NoScheduleError(Exception):
    """Why the graph has no schedule of steps."""


def _messages(graph: DependencyGraph) -> list[_Message]:
    """All messages, chunk by chunk.

    Raises: UnsupportedError: one carries a sum of several chunks, or a contribution twice.
    """
    ops, ranks = graph.operations, graph.rank_of_cell()
    cells: list[_Content | None] = [None] * graph.num_cells
    for cell, result in zip(graph.input_cell.tolist(), graph.input_result.tolist(), strict=True):
        cells[cell] = _Content(int(graph.result_chunk[result]), 1 << int(ranks[cell]))
    receiver = np.full(len(ops), -1, np.int64)
    received = np.flatnonzero(ops.message >= 0)
    receiver[ops.message[received]] = received
    sent: dict[int, list[_Content | None]] = {}
    messages = []
    for i in topological_order(graph).tolist():
        count, source, target = int(ops.count[i]), int(ops.source[i]), int(ops.target[i])
        parts = [sent.pop(int(ops.message[i]))] if ops.message[i] >= 0 else []
        parts += [cells[source : source + count]] if source >= 0 else []
        parts += [cells[target : target + count]] if ops.accumulates[i] else []
        value = [_sum(same) for same in zip(*parts, strict=True)]
        if target >= 0:
            cells[target : target + count] = value
        if ops.sends_on[i] >= 0:
            sent[i] = value
            for content in value:
                if content is None:
                    raise UnsupportedError(f"{graph.name}: {graph.operation_name(i)} sends a sum of several chunks")
                messages.append(_Message(int(ops.rank[i]), int(ops.rank[receiver[i]]), *content, i))
    return messages


def _sum(parts: tuple[_Content | None, ...]) -> _Content | None:
    """Contributions of a sum; None where they are not of one chunk or not each once."""
    chunk, ranks = -1, 0
    for part in parts:
        if part is None or chunk not in (-1, part.chunk) or ranks & part.ranks:
            return None
        chunk, ranks = part.chunk, ranks | part.ranks
    return _Content(chunk, ranks)


def _by_step(graph: DependencyGraph, messages: list[_Message], delayed: bool) -> list[list[_Message]]:
    """Messages of each step.

    Args:
        graph: whose messages these are.
        messages: all of them.
        delayed: whether a chunk arrives only after its receiver has sent what it held of it without that.
    """
    level = _levels(graph, _delays(messages) if delayed else [])
    of_step: dict[int, list[_Message]] = defaultdict(list)
    for message in messages:
        of_step[int(level[message.operation])].append(message)
    return [of_step[step] for step in range(max(of_step, default=-1) + 1)]


def _delays(messages: list[_Message]) -> list[tuple[int, int]]:
    """Operations (one, other): the message of the other must not be in an earlier step than that of the one."""
    sent: dict[tuple[int, int], list[_Message]] = defaultdict(list)
    for message in messages:
        sent[message.src, message.chunk].append(message)
    return [
        (one.operation, other.operation)
        for other in messages
        for one in sent[other.dst, other.chunk]
        if other.ranks & ~one.ranks
    ]


def _levels(graph: DependencyGraph, delays: list[tuple[int, int]]) -> IntArray:
    """Messages on the longest path to each operation, those that it receives included, int64 (operations,).

    Raises: _NoScheduleError: the delays and the dependencies contradict each other.
    """
    before, after = graph.edges()
    weight = (np.arange(len(before)) >= len(graph.before)).astype(np.int64)  # messages come last
    if delays:
        one, other = np.unique(np.array(delays, np.int64), axis=0).T
        before, after = np.concatenate([before, one]), np.concatenate([after, other])
        weight = np.concatenate([weight, np.zeros(len(one), np.int64)])
    level = np.zeros(len(graph.operations), np.int64)
    for _ in range(len(level) + 1):
        last = level.copy()
        np.maximum.at(level, after, level[before] + weight)
        if np.array_equal(level, last):
            return level
        if level.max() > graph.operations.num_messages:
            break
    raise _NoScheduleError("a rank keeps several partial sums of a chunk apart")


def _steps(c: Collective, messages: list[list[_Message]]) -> list[Transfers]:
    """Transfers of each step; what each rank holds of each chunk is followed.

    Raises: _NoScheduleError: a rank sends less than it holds.
    """
    rank, chunk = np.nonzero(
        np.broadcast_to(c.before(*np.ogrid[: c.num_ranks, : c.num_chunks]), (c.num_ranks, c.num_chunks))
    )
    held: dict[tuple[int, int], int] = {(r, k): 1 << r for r, k in zip(rank.tolist(), chunk.tolist(), strict=True)}
    steps = []
    for number, mine in enumerate(messages):
        carried: dict[tuple[int, int, int], int] = defaultdict(int)
        for message in mine:
            carried[message.src, message.dst, message.chunk] |= message.ranks
        before = dict(held)
        rows = []
        for (src, dst, k), ranks in sorted(carried.items()):
            if before.get((src, k), 0) != ranks:
                raise _NoScheduleError(f"in step {number} rank {src} sends a part of what it holds of chunk {k}")
            if c.keeps_apart:
                op, held[src, k] = Op.MOVE, held[src, k] & ~ranks
            else:
                op = Op.REDUCE if c.reduces and not ranks & held.get((dst, k), 0) else Op.COPY
            held[dst, k] = ranks if op == Op.COPY else held.get((dst, k), 0) | ranks
            rows.append((src, dst, k, int(op), ranks.bit_count() if c.keeps_apart else 1))
        steps.append(_transfers(rows, c.keeps_apart))
    return steps


def _transfers(rows: list[tuple[int, int, int, int, int]], keeps_apart: bool) -> Transfers:
    """Rows of source, destination, chunk, operation and parts; consecutive chunks become one transfer."""
    src, dst, chunk, op, parts = np.array(rows, np.int64).reshape(-1, 5).T
    if not len(src):
        return Transfers.of(src, dst, 0, 1, Op.COPY)
    same = np.all([np.diff(column) == 0 for column in (src, dst, op, parts)], axis=0) & (np.diff(chunk) == 1)
    first = np.flatnonzero(np.r_[True, ~same])
    count = np.diff(np.r_[first, len(src)])
    apart = parts[first] if keeps_apart else None
    return Transfers.of(src[first], dst[first], chunk[first], count, op[first].astype(np.uint8), apart)
