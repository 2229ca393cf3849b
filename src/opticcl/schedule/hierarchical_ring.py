"""Hierarchical ring all-reduce: rings of neighbours, a ring of their leaders, and distribution to the groups.

Eight nodes in groups of m = 3 (the last is shorter); leaders are the first of each group:

    1   0 -> 1 -> 2 -> 0     3 -> 4 -> 5 -> 3     6 -> 7 -> 6     all-reduce in each group       2 (m - 1) steps of d/m
    2   0 ----------------> 3 ----------------> 6 ----------> 0   all-reduce of the G leaders    2 (G - 1) steps of d/G
    3   0 => 1, 2            3 => 4, 5            6 => 7          distribution: broadcast        1 step of d
        0 -> 1 -> 2          3 -> 4 -> 5          6 -> 7          distribution: pipeline         2 (m - 1) steps of d/m

Source: Ueno and Yokota 2019; WRHT section 4.2 and table 1 for the steps (417 or 424 for 1024 nodes in groups of 5).
Reading: WRHT gives only 2 (m^2 + N) / m - 3 steps, if m <= w, and 2 (2 m^2 + N) / m - 6, if not. These are the sums
above, with N / m rounded up: at the end a broadcast in one step, or a message passed along the group in m parts. In a shorter
last group the last node replaces the missing ones, so that its parts are d/m too and all groups take equally long.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt
from typing import Any, Literal

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import register_algorithm

__all__ = ["Distribution", "hierarchical_ring"]

Distribution = Literal["auto", "broadcast", "pipeline"]


def accepts(
    collective: Request, fabric: Fabric, group_size: int | None = None, distribution: Distribution = "auto"
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        group_size, distribution: as the algorithm takes them.
    """
    if collective.name != "all_reduce":
        return "it does all_reduce only"
    n = fabric.num_nodes
    if group_size is not None and not 1 <= group_size <= n:
        return f"group_size={group_size}; 1 to {n}"
    m = _group_size(fabric, group_size)
    for src, dst in () if fabric.links_all else _links(fabric, m, _distribution(fabric, m, distribution)):
        apart = np.flatnonzero((src != dst) & ~fabric.linked(src, dst))
        if len(apart):
            near, far = (fabric.coordinates(int(column[apart[0]])) for column in (src, dst))
            return f"in groups of {m} no single circuit joins nodes {near} and {far}"
    return None


def _group_size(fabric: Fabric, group_size: int | None) -> int:
    """Nodes of a group; by default equal to the number of groups, which takes the fewest steps."""
    return isqrt(fabric.num_nodes - 1) + 1 if group_size is None else group_size


def _distribution(fabric: Fabric, group_size: int, distribution: Distribution) -> Distribution:
    """Broadcast or pipeline; WRHT broadcasts where w wavelengths serve a group, ceil(m / w) = 1."""
    if distribution != "auto":
        return distribution
    return "broadcast" if group_size <= fabric.num_wavelengths else "pipeline"


def _links(fabric: Fabric, group_size: int, distribution: Distribution) -> Iterable[tuple[IntArray, IntArray]]:
    """Pairs of nodes that must be linked."""
    for seats in (_seats(fabric, group_size), _leaders(fabric, group_size)[None, :]):
        yield seats.ravel(), np.roll(seats, -1, axis=1).ravel()
    if distribution == "broadcast":
        yield _leader_of_each(fabric, group_size), fabric.ring_order()


def _seats(fabric: Fabric, group_size: int) -> IntArray:
    """Nodes of each group in ring order, int64 (groups, m); the last node of a shorter group has several seats."""
    order = fabric.ring_order()
    groups = -(-len(order) // group_size)
    return order[np.minimum(np.arange(groups * group_size), len(order) - 1)].reshape(groups, group_size)


def _leaders(fabric: Fabric, group_size: int) -> IntArray:
    """First node of each group, int64 (groups,)."""
    return fabric.ring_order()[::group_size]


def _leader_of_each(fabric: Fabric, group_size: int) -> IntArray:
    """Leader of each node, in ring order, int64 (num_nodes,)."""
    return np.repeat(_leaders(fabric, group_size), group_size)[: fabric.num_nodes]


def _variants(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
    """Few large steps or many small ones at the end."""
    yield {}
    yield {
        "distribution": "pipeline"
        if _distribution(fabric, _group_size(fabric, None), "auto") == "broadcast"
        else "broadcast"
    }


@register_algorithm("hierarchical_ring", accepts, _variants)
def hierarchical_ring(
    collective: Request, fabric: Fabric, *, group_size: int | None = None, distribution: Distribution = "auto"
) -> Schedule:
    """All-reduce in rings of neighbours, among their leaders, and distribution to the groups.

    The message is m G chunks, so that d/m and d/G are whole chunks.

    Args:
        collective: all_reduce.
        fabric: the fabric.
        group_size: nodes m of a group [count]; None: the square root of N, rounded up.
        distribution: how leaders send the result to their groups: broadcast (in one step), pipeline (along the group), or auto:
            broadcast where m <= w, as in the paper.
    """
    n, m = fabric.num_nodes, _group_size(fabric, group_size)
    seats, leaders = _seats(fabric, m), _leaders(fabric, m)
    num_groups = len(leaders)
    chosen = _distribution(fabric, m, distribution)
    last = {"broadcast": 1, "pipeline": 2 * (m - 1)}[chosen] if m > 1 and num_groups > 1 else 0
    group_steps, leader_steps = 2 * (m - 1), 2 * (num_groups - 1)

    def step(i: int) -> Transfers:
        if i < group_steps:
            return _round_the_ring(seats, n - (num_groups - 1) * m, i, num_groups)
        if i < group_steps + leader_steps:
            return _round_the_ring(leaders[None, :], num_groups, i - group_steps, m)
        if chosen == "broadcast":
            return Transfers.of(_leader_of_each(fabric, m), fabric.ring_order(), 0, m * num_groups, Op.COPY)
        return _along_the_group(seats, i - group_steps - leader_steps, num_groups)

    runs = _identical_runs(0, m, n % m > 1) + _identical_runs(group_steps, num_groups, False)
    before, num_steps = group_steps + leader_steps, group_steps + leader_steps + last
    wanted, equal = collective.on(n, m * num_groups), chosen == "pipeline" and last > 0 and n % m == 0
    runs += [] if equal else [range(i, i + 1) for i in range(before, num_steps)]
    steps = Steps.listed(n, wanted.num_chunks, before if equal else num_steps, step, [r for r in runs if r], sends=True)
    if equal:
        parts = [MessagePart(((UNIT, 1, m), (0, 1, num_groups)), m)]
        steps = Steps(Space((num_groups, m), fabric.ring_order()), parts, [*steps.phases, _along_groups(num_groups, m)])
    return Schedule.of("hierarchical_ring", wanted, steps)


def _along_groups(num_groups: int, size: int) -> Phase:
    """The steps of `_along_the_group` where all groups are equally large: those of one group, under translations of groups.

    Args:
        num_groups: groups [count].
        size: nodes of a group, and parts of the message [count].
    """
    seat = np.arange(size - 1)
    src, dst = (np.column_stack([np.zeros_like(at), at]) for at in (seat, seat + 1))
    rows = PhaseRows.of(2, src, dst, 0, (num_groups, 1), unit_lo=-seat, unit_shift=1, op=Op.COPY)
    return Phase(rows, (True, False), 2 * (size - 1))


def _round_the_ring(seats: IntArray, last_size: int, i: int, chunks: int) -> Transfers:
    """Step i of a ring all-reduce in all rows of seats, as in `ring`.

    The last row has `last_size` nodes; the last of them has all remaining seats. A sum that began there returns to
    it with its contribution in it, and is stored.

    Args:
        seats: nodes of each ring in order, int64 (rings, m).
        last_size: nodes of the last ring [count].
        i: step.
        chunks: chunks of a part [count].
    """
    m = seats.shape[1]
    seat = np.arange(m)
    piece, following = (seat - i) % m, (seat + 1) % m
    op = np.full(seats.shape, Op.REDUCE if i < m - 1 else Op.COPY)
    op[-1, (following == last_size - 1) & (piece > following)] = Op.COPY
    return Transfers.of(seats, np.roll(seats, -1, axis=1), piece * chunks, chunks, op)


def _along_the_group(seats: IntArray, i: int, chunks: int) -> Transfers:
    """Step i of passing a message along every row of seats, one part after the other.

    Args:
        seats: nodes of each group in order, int64 (groups, m).
        i: step.
        chunks: chunks of a part [count].
    """
    m = seats.shape[1]
    seat = np.arange(max(0, i - m + 1), min(i, m - 2) + 1)
    return Transfers.of(seats[:, seat], seats[:, seat + 1], (i - seat) * chunks, chunks, Op.COPY)


def _identical_runs(first: int, size: int, shorter: bool) -> list[range]:
    """Runs of identical steps of a ring all-reduce; where a row is shorter, every adding step stores different sums.

    Args:
        first: first step.
        size: nodes of a ring [count].
        shorter: whether the last ring is shorter.
    """
    adding, storing = range(first, first + size - 1), range(first + size - 1, first + 2 * (size - 1))
    return ([range(i, i + 1) for i in adding] if shorter else [adding]) + [storing]
