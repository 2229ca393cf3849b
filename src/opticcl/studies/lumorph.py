"""Shared code of the studies of LUMORPH: circuits of each round, names of the algorithms, checks of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics.lightpath import tile_of_node
from opticcl.ir import Circuits, IntArray
from opticcl.plans.plan import Plan
from opticcl.routing.split import split
from opticcl.schedule.lumorph import digits, peers

__all__ = [
    "LARGEST",
    "RADICES",
    "UNDER",
    "check_power_of_two",
    "check_seed",
    "counted_by_circuits",
    "label",
    "rounds_of",
]

RADICES = (2, 4)
LARGEST = 1024  # nodes of a study; local search takes seconds above that
UNDER = "times under the assumptions lumorph; opticcl compare -f lightpath has those under common and published"


def label(radix: int) -> str:
    """The paper's name of the algorithm."""
    return f"LUMORPH-{radix}"


def check_seed(what: str, seed: int) -> None:
    """Raises: ParameterError: negative."""
    if seed < 0:
        raise ParameterError(f"{what}={seed}; it is 0 or more")


def check_power_of_two(what: str, nodes: int) -> None:
    """Raises: ParameterError: not a power of two from 4 to `LARGEST`."""
    if not 4 <= nodes <= LARGEST or nodes.bit_count() != 1:
        raise ParameterError(f"{what}={nodes}; it is a power of two from 4 to {LARGEST}, try 256")


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
