"""What generic algorithms ask of a fabric: which grid its nodes stand on, and who is linked to whom.

A grid is numbered row by row, the last coordinate fastest. On its lines all nodes are linked to each other.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opticcl.ir import Fabric, IntArray

__all__ = ["MOST_TRANSFERS", "grid_of", "peers_on_line", "why_apart"]

MOST_TRANSFERS = 1 << 24  # of a step: about 300 MB


def grid_of(fabric: Fabric) -> tuple[int, ...]:
    """Sides of the grid that a machine's nodes stand on; a single line if it has none, or if a job has a part of it."""
    known = fabric.parameters
    shape = tuple(known.get("shape", ()))
    if not shape and isinstance(known.get("radix"), int) and isinstance(known.get("levels"), int):
        shape = (known["radix"],) * known["levels"]  # digits, the highest first
    return shape if fabric.nodes is None and prod(shape) == fabric.num_nodes and shape else (fabric.num_nodes,)


def why_apart(fabric: Fabric, src: IntArray, dst: IntArray) -> str | None:
    """Why these pairs cannot all talk, naming the first that cannot, or None if they can; arrays of one shape."""
    apart = np.flatnonzero(~fabric.linked(src, dst) & (src != dst))
    if not len(apart):
        return None
    ends = (int(fabric.machine_nodes(np.ravel(column)[apart[:1]])[0]) for column in (src, dst))
    return "no single circuit joins nodes " + " and ".join(map(fabric.coordinates, ends))


def peers_on_line(shape: tuple[int, ...], dimension: int) -> IntArray:
    """The other nodes of each node's line in that dimension, nearest above first, int32 (nodes, side - 1)."""
    side, stride = shape[dimension], prod(shape[dimension + 1 :])
    node = np.arange(prod(shape), dtype=np.int32)[:, None]
    mine = node // np.int32(stride) % side
    other = (mine + np.arange(1, side, dtype=np.int32)) % side
    peers: IntArray = node + (other - mine) * np.int32(stride)
    return peers
