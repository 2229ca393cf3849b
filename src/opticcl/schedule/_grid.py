"""Helpers of generic algorithms: the grid that the nodes of a fabric form, and pairs of nodes that are not linked.

A grid is numbered row by row, the last coordinate fastest. On its lines all nodes are linked to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod

import numpy as np

from opticcl.ir import Fabric, IntArray
from opticcl.ir.limits import limit

__all__ = [
    "MOST_TRANSFERS",
    "SizeLimit",
    "grid_of",
    "line_or_grid",
    "long_sides",
    "pairs_on_lines",
    "peers_on_line",
    "reason_any_not_linked",
    "reason_not_linked",
    "reason_not_shaped",
]

MOST_TRANSFERS = limit("grid.MOST_TRANSFERS")


class SizeLimit(str):
    """Reason why an algorithm is not generated that is its size alone, so that a search names it among what was not tried."""


def grid_of(fabric: Fabric) -> tuple[int, ...]:
    """Sides of the grid of a machine's nodes, or of the part of it that a job has; a single line if there is none."""
    return fabric.dimensions if prod(fabric.dimensions) == fabric.num_nodes else (fabric.num_nodes,)


def long_sides(fabric: Fabric, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Sides of two or more nodes of a shape, or of the grid of the machine."""
    return tuple(side for side in shape or grid_of(fabric) if side > 1)


def reason_not_shaped(sides: tuple[int, ...], num_nodes: int) -> str | None:
    """Why a grid of these sides is not one of all nodes, or None if it is.

    >>> reason_not_shaped((3, 5), 12)
    'shape=3x5 has 15 nodes, not 12'
    """
    if prod(sides) == num_nodes and min(sides, default=1) >= 1:
        return None
    return f"shape={'x'.join(map(str, sides))} has {prod(sides)} nodes, not {num_nodes}"


def reason_not_linked(fabric: Fabric, src: IntArray, dst: IntArray) -> str | None:
    """Names the first pair that no circuit joins, or None if all are joined.

    Args:
        fabric: the fabric.
        src, dst: ranks, arrays of one shape.
    """
    if fabric.links_all:
        return None
    apart = np.flatnonzero(~fabric.linked(src, dst) & (src != dst))
    if not len(apart):
        return None
    ends = (int(fabric.machine_nodes(np.ravel(column)[apart[:1]])[0]) for column in (src, dst))
    return "no single circuit joins nodes " + " and ".join(map(fabric.coordinates, ends))


def reason_any_not_linked(fabric: Fabric, pairs: Iterable[tuple[IntArray, IntArray]]) -> str | None:
    """Names the first pair that no circuit joins, as `reason_not_linked` does; no pair is made where all are linked.

    Args:
        fabric: the fabric.
        pairs: senders and receivers, made one after the other.
    """
    if fabric.links_all:
        return None
    return next(filter(None, (reason_not_linked(fabric, src, dst) for src, dst in pairs)), None)


def line_or_grid(
    fabric: Fabric, pairs: Callable[[tuple[int, ...]], Iterable[tuple[IntArray, IntArray]]]
) -> tuple[tuple[int, ...], str | None]:
    """Sides of a line if all its pairs are linked, else of the grid of the machine; and why neither is possible, or None.

    Args:
        fabric: the fabric.
        pairs: sides -> senders and receivers, made one after the other.
    """
    line, grid = (fabric.num_nodes,), grid_of(fabric)
    reason = reason_any_not_linked(fabric, pairs(line))
    if reason is None or grid == line:
        return line, reason
    return grid, reason_any_not_linked(fabric, pairs(grid))


def peers_on_line(shape: tuple[int, ...], dimension: int) -> IntArray:
    """The other nodes of each node's line in that dimension, nearest above first, int32 (nodes, side - 1)."""
    side, stride = shape[dimension], prod(shape[dimension + 1 :])
    node = np.arange(prod(shape), dtype=np.int32)[:, None]
    mine = node // np.int32(stride) % side
    peers: IntArray = mine + np.arange(1, side, dtype=np.int32)
    peers -= np.int32(side) * (peers >= side)
    peers -= mine
    peers *= np.int32(stride)
    peers += node
    return peers


def pairs_on_lines(shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
    """Each node and the others of its line, dimension by dimension, int (nodes, side - 1) each."""
    node = np.arange(prod(shape))[:, None]
    for dimension in range(len(shape)):
        src, dst = np.broadcast_arrays(node, peers_on_line(shape, dimension))
        yield src, dst
