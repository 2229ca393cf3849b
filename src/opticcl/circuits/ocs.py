"""Links of a machine of optical circuit switches.

Any schedule   an edge colouring of the pairs of a step; colour c in round c // k on plane c % k. Fewer colours than planes:
               every pair has as many planes as fit. Where a step consists of whole shifts, i to i + D for all i, the colours
               are the shifts in order, so that equal steps get equal links.
digit_shifts, balanced_digits
               the links that the schedule holds: a shift on every plane; a pair at distance D is joined by h links of shift S,
               h S = D modulo N, on the planes where h is smallest
held_graph     the links of the graph, on planes by edge colouring: one path a pair, or along trees all links to the next node

Circuits that share links take shares of them in proportion to their bytes, so that all of them end at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._size import decline_too_many
from opticcl.errors import TooLargeError, UnsupportedError
from opticcl.fabrics.ocs import SHARES, Ocs
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, concatenate_circuits, numbered
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.routing.assign import edge_colouring
from opticcl.schedule.balanced_digits import held_sets, shortest_shares
from opticcl.schedule.digit_shifts import held_shifts
from opticcl.schedule.held_graph import graph_of

__all__ = ["MOST_HOPS", "ocs"]

MOST_HOPS = limit("ocs.MOST_HOPS")

BYTES_A_TRANSFER = 104
"""Pairs and their colours, 64 bytes, and a circuit of one hop."""

SPARSE = 4
"""Entries that a table of all values may have for each value that is given [count]."""


@register_rule("ocs")
def ocs(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Links and shares for any schedule.

    Raises: UnsupportedError: the circuits of a step are too many, or pass too many links.
    """
    machine = fabric.machine_as(Ocs)
    decline_too_many(fabric, schedule, BYTES_A_TRANSFER)
    if schedule.name == "held_graph":
        return _OnGraph(fabric, schedule)
    held = _held(schedule, machine.planes)

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        return _over_held(fabric, transfers, held.sides, held.shifts[step]) if held else _direct(machine, transfers)

    return rounds


def _held(schedule: Schedule, planes: int) -> _Held | None:
    """The shifts that stand in each step; None where the schedule holds none.

    Args:
        schedule: of any algorithm.
        planes: of the machine [count].
    """
    if schedule.name == "digit_shifts":
        return _Held((schedule.collective.num_ranks,), [(shift,) * planes for shift in held_shifts(schedule)])
    return _Held(*held_sets(schedule, planes)) if schedule.name == "balanced_digits" else None


class _Held(NamedTuple):
    """Shifts that stand.

    Args:
        sides: of the grid of ranks, along which shifts are counted.
        shifts: of each step, one a plane.
    """

    sides: tuple[int, ...]
    shifts: list[tuple[int, ...]]


def _over_held(
    fabric: Fabric, transfers: Transfers, sides: tuple[int, ...], shifts: tuple[int, ...]
) -> tuple[Circuits, ...]:
    """Circuits of a step over the links of a shift on each plane; each transfer on the planes where it passes the fewest.

    Args:
        fabric: a machine with its planes, or a job on it; shifts are those of ranks within a group.
        transfers: of the step.
        sides: of the grid of ranks.
        shifts: from rank 0 to the next, one a plane.
    Raises: UnsupportedError: a pair that they do not join, or too many links.
    """
    machine, n, k = fabric.machine_as(Ocs), prod(sides), len(shifts)
    strides, radices = np.array([prod(sides[at + 1 :]) for at in range(len(sides))]), np.array(sides)
    ranks = fabric.ranks_at(transfers.src).astype(np.int64)
    begin = ranks % n
    ahead = fabric.ranks_at(transfers.dst) % n
    distance = (ahead[:, None] // strides - begin[:, None] // strides) % radices @ strides
    distances, which = np.unique(distance, return_inverse=True)
    links, parts = shortest_shares(distances, shifts, sides)
    if not links.all():
        far = int(distances[np.argmin(links)])
        held = "x".join(map(str, dict.fromkeys(shifts)))
        raise UnsupportedError(f"ocs: links of shift {held} do not lead {far} nodes ahead; try another hold")
    plane, row = np.nonzero(parts[which].T)
    length = links[which].astype(np.int64)[row]
    total = int(length.sum())
    if total > MOST_HOPS:
        raise TooLargeError(
            f"ocs: the circuits of a step pass {total:,} links, at most {MOST_HOPS:,} are supported; hold fewer steps"
        )
    offsets = np.concatenate([[0], np.cumsum(length)])
    circuit, along = numbered(length)
    step = np.array(shifts)[:, None] // strides % radices
    coordinates = begin[:, None] // strides % radices
    at = (coordinates[row[circuit]] + along[:, None] * step[plane[circuit]]) % radices
    node = fabric.machine_nodes((ranks // n * n)[row[circuit]] + at @ strides).astype(np.int64)
    hop = plane[circuit] * machine.nodes + node
    size = (transfers.size_chunks() * parts[which].max(axis=1))[row]
    load = np.bincount(hop, size[circuit]).max()
    shares = np.maximum(1, np.floor(SHARES * (size / load))).astype(np.int64)
    path = (hop + k * machine.nodes * (along > 0), offsets)
    carrying = Circuits.of(row, transfers.src[row], transfers.dst[row], plane, 0, shares, path)
    every = np.arange(fabric.num_nodes)
    idle = [
        _idle(machine, fabric.machine_nodes(every), fabric.machine_nodes(every // n * n + to), number)
        for number in sorted(set(range(k)) - set(plane.tolist()))
        for to in [(every[:, None] % n // strides + step[number]) % radices @ strides]
    ]
    return (concatenate_circuits([carrying, *idle]) if idle else carrying,)


def _idle(machine: Ocs, src: IntArray, dst: IntArray, plane: IntArray | int) -> Circuits:
    """Links that stand and carry nothing in a step.

    Args:
        machine: with its planes.
        src, dst: ends of the links.
        plane: number of each, or of all.
    """
    return Circuits.of(
        np.full(len(src), -1), src, dst, plane, 0, 1, (plane * machine.nodes + src.astype(np.int64))[:, None]
    )


class _OnGraph:
    """Circuits of `held_graph`, with the links of the graph that carry nothing in a step.

    Args:
        fabric: a machine with its planes, or a job on it; the graph is that of ranks within a group.
        schedule: of `held_graph`.
    """

    def __init__(self, fabric: Fabric, schedule: Schedule) -> None:
        self._fabric, self._machine, given = fabric, fabric.machine_as(Ocs), schedule.parameters
        self._num_ranks = schedule.collective.num_ranks
        self._graph = graph_of(given["graph"], given["strides"], self._num_ranks, self._machine.planes)
        self._plane = _planes_of(self._graph.links)
        self._relays = schedule.collective.name == "all_to_all" or given["along"] in ("paths", "whole")

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        """The circuits of a step, in one round.

        Args:
            step: its number.
            transfers: of it.
        Raises: TooLargeError: they pass too many links.
        """
        n = self._num_ranks
        ranks = self._fabric.ranks_at(transfers.src).astype(np.int64)
        src, dst, group = ranks % n, self._fabric.ranks_at(transfers.dst) % n, ranks // n * n
        row, links = self._links(src, dst)
        length = np.count_nonzero(links >= 0, axis=1)
        total = int(length.sum())
        if total > MOST_HOPS:
            raise TooLargeError(
                f"ocs: the circuits of a step pass {total:,} links, at most {MOST_HOPS:,} are supported"
            )
        offsets = np.concatenate([[0], np.cumsum(length)])
        size = transfers.size_chunks()[row] / np.bincount(row)[row]
        at = self._fabric.machine_nodes(np.arange(self._fabric.num_nodes)).astype(np.int64)
        hop = np.empty(total, np.int32)
        load = _along(src[row], group[row], size, links, self._graph.links, self._plane, at, self._machine.nodes, hop)
        shares = np.maximum(1, np.floor(SHARES * (size / load.max()))).astype(np.int64)
        first = self._plane[src[row], links[:, 0]]
        carrying = Circuits.of(row, transfers.src[row], transfers.dst[row], first, 0, shares, (hop, offsets))
        return (concatenate_circuits([carrying, *self._idle(load)]),)

    def _links(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Row of each circuit, and its links in order, by their numbers, -1 behind the last, int (circuits, longest)."""
        if self._relays:
            return np.arange(len(src)), self._graph.paths.links[src, dst]
        row, link = np.nonzero(self._graph.links[src] == dst[:, None])
        return row, link[:, None]

    def _idle(self, load: IntArray) -> Iterator[Circuits]:
        """Links of the graph that carry nothing, by planes.

        Args: load: of each plane and node of the machine.
        """
        every = np.arange(self._fabric.num_nodes)
        begin = self._fabric.machine_nodes(every).astype(np.int64)
        for link in range(self._machine.planes):
            to = self._graph.links[every % self._num_ranks, link]
            plane = self._plane[every % self._num_ranks, link]
            idle = (to >= 0) & (load[plane * self._machine.nodes + begin] == 0)
            end = self._fabric.machine_nodes(every // self._num_ranks * self._num_ranks + to)
            if idle.any():
                yield _idle(self._machine, begin[idle], end[idle], plane[idle])


@njit(writes=("hop",))
def _along(begin, group, size, steps, links, planes, at, nodes, hop):  # type: ignore[no-untyped-def]
    """Number the links of circuits, those of a circuit in order, and return what each link carries, by planes and nodes.

    Args:
        begin: node where each circuit begins, within its group.
        group: first node of the group of each.
        size: of each [chunks].
        steps: numbers of the links of each circuit among those of their nodes, -1 behind the last.
        links: node that each link leads to.
        planes: of each link.
        at: node of the machine of each.
        nodes: of the machine [count].
        hop: number of each link, int32 (links of all circuits,), set here.
    """
    sides = links.shape[1] * nodes
    load = np.zeros(sides)
    done = 0
    for row in range(len(begin)):
        here = begin[row]
        for place in range(steps.shape[1]):
            link = steps[row, place]
            if link < 0:
                break
            number = planes[here, link] * nodes + at[group[row] + here]
            load[number] += size[row]
            hop[done] = number + (sides if place else 0)  # nodes forward by links of the other side
            here = links[here, link]
            done += 1
    return load


def _planes_of(links: IntArray) -> IntArray:
    """Plane of each link, so that no two that leave a node or reach one have the same, int64 (nodes, degree).

    Args: links: node that each leads to, -1 where there is none, int64 (nodes, degree).
    """
    nodes, degree = links.shape
    each = np.broadcast_to(np.arange(degree), links.shape)
    if all(len(np.unique(ends[ends >= 0])) == (ends >= 0).sum() for ends in links.T):
        return each
    begin, link = np.nonzero(links >= 0)
    planes = each.copy()
    planes[begin, link] = edge_colouring(begin, links[begin, link], nodes, degree)
    return planes


def _direct(machine: Ocs, transfers: Transfers) -> tuple[Circuits, ...]:
    """Circuits of a step over a link each, in as few rounds as the planes allow.

    Args:
        machine: with its planes.
        transfers: of the step.
    """
    n, k = machine.nodes, machine.planes
    pairs, of_pair = _distinct(transfers.src.astype(np.int64) * n + transfers.dst, n * n)
    src, dst = np.divmod(pairs, n)
    colour, number = _colours(src, dst, n)
    size = transfers.size_chunks()
    load = np.bincount(of_pair, size)
    times = max(1, k // number)
    round_of = (colour[of_pair] // k).astype(np.min_scalar_type(number))  # few are sorted by radix
    of_round = np.split(np.argsort(round_of, kind="stable"), np.cumsum(np.bincount(round_of))[:-1])
    rounds = []
    for first, rows in zip(range(0, number, k), of_round, strict=True):
        busiest = float(load[of_pair[rows]].max())
        shares = np.maximum(1, np.floor(SHARES * (size[rows] / busiest))).astype(np.int64)
        again = np.tile(rows, times)
        plane = np.tile(colour[of_pair[rows]] - first, times) + number * np.repeat(np.arange(times), len(rows))
        ends = src[of_pair[again]], dst[of_pair[again]]
        path = (plane * n + ends[0])[:, None]
        rounds.append(Circuits.of(again, *ends, plane, 0, np.tile(shares, times), path))
    return tuple(rounds)


def _distinct(values: IntArray, below: int) -> tuple[IntArray, IntArray]:
    """Distinct values, ascending, and the position of each value among them.

    Args:
        values: 0 or more, int64.
        below: a limit of all of them.
    """
    if below > SPARSE * len(values):
        distinct, position = np.unique(values, return_inverse=True)
        return distinct, position
    there = np.zeros(below, bool)
    there[values] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]


def _colours(src: IntArray, dst: IntArray, num_nodes: int) -> tuple[IntArray, int]:
    """Colour of each pair, and their number: the fewest, by the distance where the step consists of whole shifts.

    Args:
        src, dst: distinct pairs, in order.
        num_nodes: nodes N [count].
    """
    busiest = max(int(np.bincount(end).max()) for end in (src, dst))
    distances, colour = _distinct((dst - src) % num_nodes, num_nodes)
    if len(distances) == busiest:
        return colour, busiest
    return edge_colouring(src, dst, num_nodes, busiest), busiest
