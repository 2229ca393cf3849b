"""The sets of ranks whose links carry least of what must leave them, by maximum flow.

A set S needs f(S) bytes to leave it, and its links carry c(S): wavelengths of its ranks that reach a rank outside. Each row of
links is a switch of a network, with an arc of its wavelengths from its sender and as wide ones to the ranks that it reaches: an
arc is cut where the sender is inside and a rank that it reaches is outside. The largest f / c:

    what one root has       (all_reduce, broadcast): one over the smallest cut, from the root to every rank, and to it
    linear in |S|           (reduce_scatter, all_gather): `opticcl.routing.forest.optimum`, with all arcs turned round where
                            ranks outside count
    |S| (p - |S|)           (all_to_all): the sparsest cut, which no flow finds; all sets of up to 16 ranks are tried

Source: the sparsest cut is NP-hard (Matula and Shahrokhi 1990).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.ir import IntArray
from opticcl.kernels import njit
from opticcl.routing.forest.graph import CapacityGraph
from opticcl.routing.forest.optimum import optimum

__all__ = ["MOST_RANKS", "MOST_RANKS_OF_ALL_SETS", "LinksOfRanks", "largest_linear", "largest_of_all_sets"]

MOST_RANKS = 128
"""Up to which flows are computed [count]."""

MOST_RANKS_OF_ALL_SETS = 16
"""Up to which all sets are tried [count]."""

UNITS = 10**6
"""Of a wavelength, in which its share that works is counted; a part of a unit counts as one, so that no bound is too large."""

Floats = npt.NDArray[np.float64]


class LinksOfRanks(NamedTuple):
    """What light of a sender reaches: a row for wavelengths that reach the same ranks.

    Args:
        sender: rank, int64 (m,).
        reaches: ranks, bool (m, ranks).
        number: wavelengths, float64 (m,).
    """

    sender: IntArray
    reaches: npt.NDArray[np.bool_]
    number: Floats


def largest_linear(links: LinksOfRanks, root: int | None = None, *, inside: bool) -> float:
    """The largest of ranks inside a set, or outside, over the wavelengths that leave it; infinite where none does.

    Args:
        links: of all ranks.
        root: rank that counts alone; None: all ranks count.
        inside: whether ranks inside count; else those outside.
    """
    m, p = links.reaches.shape
    row, reached = np.nonzero(links.reaches)
    units = np.ceil(np.round(links.number * UNITS, 3)).astype(np.int64)
    tail, head = np.concatenate([links.sender, p + row]), np.concatenate([p + np.arange(m), reached])
    graph = CapacityGraph(p, p + m, tail, head, np.concatenate([units, units[row]]))
    try:
        largest = optimum(graph if inside else replace(graph, tail=head, head=tail), root)
    except UnsupportedError:
        return float("inf")
    return 0.0 if largest is None else UNITS * float(largest.time)


def largest_of_all_sets(links: LinksOfRanks) -> float:
    """The largest of |S| (p - |S|) / p over the wavelengths that leave S, over all sets of ranks; infinite where none does."""
    p = links.reaches.shape[1]
    masks = links.reaches @ (np.int64(1) << np.arange(p))
    return float(_largest_of_all_sets(links.sender, masks, links.number, p))


@njit
def _largest_of_all_sets(sender, masks, number, p):  # type: ignore[no-untyped-def]
    largest = 0.0
    for chosen in range(1, (1 << p) - 1):
        size = 0
        for rank in range(p):
            size += chosen >> rank & 1
        leaves = 0.0
        for row in range(len(sender)):
            if chosen >> sender[row] & 1 and masks[row] & ~chosen:
                leaves += number[row]
        if leaves == 0.0:
            return np.inf
        largest = max(largest, size * (p - size) / (p * leaves))
    return largest
