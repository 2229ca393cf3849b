"""Judges a cut: no way to join a node on one side to a node on the other passes working parts alone.

The fabric lists all ways to join each pair; each must need a failed part. Light that goes past other nodes does so within the
way of a pair, so pairs of neighbours across the cut are among those that are checked. On fabrics of packets, whose routes lead
around failed parts, no pair has a route.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import Fabric, IntArray, Violation
from opticcl.ir.limits import limit

__all__ = ["check_cut"]

PAIRS_AT_ONCE = limit("cut.PAIRS_AT_ONCE")


def check_cut(fabric: Fabric, inside: IntArray) -> tuple[Violation, ...]:
    """Violations of the claim that no data leave a set of ranks.

    Args:
        fabric: with failed parts.
        inside: ranks of the set.
    Returns: rule cut_empty if the set has no ranks or all, cut_open if a way out works; nothing if the cut holds.
    """
    n = fabric.num_nodes
    within = np.zeros(n, bool)
    within[inside] = True
    if within.all() or not within.any():
        return (Violation("cut_empty", -1, -1, "cut", f"1 to {n - 1} ranks", f"{int(within.sum())}", 1),)
    return tuple(_open_routes(fabric, within) if fabric.is_packet_switched else _open_ways(fabric, within))


def _open_routes(fabric: Fabric, within: IntArray) -> Iterator[Violation]:
    """The first pair that a route across the cut joins."""
    for sender in np.flatnonzero(within).tolist():
        for receiver in np.flatnonzero(~within).tolist():
            ends = fabric.machine_nodes(np.array([sender, receiver]))
            with suppress(UnsupportedError):  # there is none
                fabric.route(ends[:1], ends[1:])
                where = " to ".join(fabric.node_name(int(node)) for node in ends)
                yield Violation("cut_open", -1, -1, where, "no route", "one around failed parts", 1)
                return


def _open_ways(fabric: Fabric, within: IntArray) -> Iterator[Violation]:
    """The first pair that a way across the cut joins."""
    senders, receivers = np.flatnonzero(within), np.flatnonzero(~within)
    src, dst = (fabric.machine_nodes(side.ravel()) for side in np.meshgrid(senders, receivers, indexing="ij"))
    for first in range(0, len(src), PAIRS_AT_ONCE):
        rows = slice(first, first + PAIRS_AT_ONCE)
        ways = fabric.options(src[rows], dst[rows]).circuits
        works = np.ones(len(ways), bool)
        for fault in fabric.part_faults(ways):
            works[fault.circuits] = False
        opened = np.flatnonzero(works)
        if len(opened):
            way = int(opened[0])
            where = f"{fabric.node_name(int(ways.src[way]))} to {fabric.node_name(int(ways.dst[way]))}"
            yield Violation("cut_open", -1, -1, where, "a failed part on every way", "one that works", len(opened))
            return
