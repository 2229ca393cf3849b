"""Routes of LUMORPH: circuits of each round, their load on the edges of the wafer, rounds that they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import ceil

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics.lightpath import tile_of_node
from opticcl.ir import Circuits, IntArray
from opticcl.plans.plan import Plan
from opticcl.routing.grid import Grid, max_overlap
from opticcl.routing.paths import random_shortest
from opticcl.routing.split import split
from opticcl.schedule.lumorph import digits, peers

__all__ = [
    "RADICES",
    "UNDER",
    "check_seed",
    "counted_by_circuits",
    "edge_loads",
    "random_overlaps",
    "rounds_needed",
    "rounds_of",
]

RADICES = (2, 4)
UNDER = "times under the assumptions lumorph; opticcl compare -f lightpath has those under common and published"


def check_seed(what: str, seed: int) -> None:
    """Raises: ParameterError: negative."""
    if seed < 0:
        raise ParameterError(f"{what}={seed}; it is 0 or more")


def rounds_of(shape: tuple[int, int], radix: int, numbering: str, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Sending and receiving tiles of each round of a reduce-scatter; the all-gather has the reverse circuits.

    Args:
        shape: rows and columns of tiles.
        radix: of LUMORPH.
        numbering: of the GPUs on the tiles.
        seed: of the random numbering.
    """
    tile = tile_of_node(shape, numbering, seed)
    n, stride = len(tile), 1
    for k in digits(n, radix):
        dst = peers(n, k, stride)
        src = np.broadcast_to(np.arange(n)[:, None], dst.shape)
        stride *= k
        yield tile[src[src != dst]], tile[dst[src != dst]]


def counted_by_circuits(plan: Plan, waveguides: int) -> Plan:
    """The plan with rounds as figures 5 and 6 count them: an edge carries `waveguides` circuits, whatever their wavelengths.

    A circuit may change its waveguide from edge to edge. The machine is as it was; it must not have split any step itself.

    Args:
        plan: on a LIGHTPATH with a waveguide for every node, which splits no step for want of waveguides.
        waveguides: of each edge [count].
    Source: LUMORPH section 5, figures 5 and 6.
    """
    capacity = np.full(4 * plan.fabric.num_machine_nodes, waveguides)

    @cache
    def rounds(step: int) -> tuple[Circuits, ...]:
        found: list[Circuits] = []
        for circuits in plan.circuits.rounds(step):
            parts = split(circuits.hops, circuits.hop_offsets, capacity)
            found += [circuits.take(parts.round_of == r) for r in range(parts.num_rounds)]
        return tuple(found)

    return replace(plan, circuits=replace(plan.circuits, rounds=rounds))


def random_overlaps(shape: tuple[int, int], radix: int, numbering: str, draws: int) -> list[float]:
    """Circuits on the most congested edge of all rounds, for each draw of random shortest paths.

    Args:
        shape: rows and columns of tiles.
        radix: of LUMORPH.
        numbering: of the GPUs on the tiles.
        draws: number of draws [count].
    """
    grid = Grid(*shape)
    rounds = list(rounds_of(shape, radix, numbering, 0))
    return [
        max(max_overlap(grid, random_shortest(grid, src, dst, draw)[0]) for src, dst in rounds) for draw in range(draws)
    ]


def edge_loads(plan: Plan) -> Iterator[tuple[int, np.ndarray]]:
    """Number of identical steps [count], and circuits of one of them on each edge of the wafer, int64 (4 * tiles,).

    Args: plan: of one circuit a path.
    """
    for steps in plan.schedule.step_classes():
        edges = [circuits.hops for circuits in plan.circuits.rounds(steps.start)]
        yield len(steps), np.bincount(np.concatenate(edges), minlength=4 * plan.fabric.num_machine_nodes)


def rounds_needed(plan: Plan, waveguides: int) -> int:
    """Fewest rounds of any split of the routes, at least: circuits over waveguides of the most congested edge, rounded up.

    Args:
        plan: of one circuit a path.
        waveguides: of each edge, each for one circuit [count].
    """
    return sum(count * max(1, ceil(load.max(initial=0) / waveguides)) for count, load in edge_loads(plan))
