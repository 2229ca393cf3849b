"""Pairwise exchanges over the bits of the node number: halving-doubling and recursive doubling.

In every step node i talks to i XOR D for one power of two D. Eight nodes, who node 0 talks to and what it sends:

    step                  0      1      2      3      4      5
    halving_doubling      4:1/2  2:1/4  1:1/8  1:1/8  2:1/4  4:1/2     the least data, 2(N-1)/N of the message
    recursive_doubling    1:all  2:all  4:all                          the fewest steps

Source: Thakur, Rabenseifner and Gropp 2005; ODDL section 3 and figure 2 for the order of the distances.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import collective as make_collective
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm


def accepts(collective: str, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective != "all_reduce":
        return "it does all_reduce only"
    n = fabric.num_nodes
    below = 1 << n.bit_length() - 1
    if n != below:
        return f"{n} nodes are no power of two; nearest: {below} or {2 * below}"
    node = np.arange(n)
    for distance in _distances(n):
        apart = np.flatnonzero(~fabric.linked(node, node ^ distance))
        if len(apart):
            src, dst = int(apart[0]), int(apart[0]) ^ distance
            return f"no single circuit joins nodes {fabric.coordinates(src)} and {fabric.coordinates(dst)}"
    return None


def _distances(num_nodes: int) -> tuple[int, ...]:
    """1, 2, 4, ... below the number of nodes."""
    return tuple(1 << bit for bit in range(num_nodes.bit_length() - 1))


@register_algorithm("halving_doubling", accepts)
def halving_doubling(collective: str, fabric: Fabric) -> Schedule:
    """Halving-doubling all-reduce of N = 2^q nodes: 2q steps, 2(N-1)/N of the message sent by each node.

    The message is N chunks. Reduce-scatter: partners, the farthest first, halve what both still sum up; after the step
    of distance D node i is left with the D chunks from i // D * D, at last with chunk i. All-gather: back the same way.

    Source: ODDL section 3, figure 2.
    """
    n = fabric.num_nodes
    node = np.arange(n, dtype=np.int32)
    halving = _distances(n)[::-1]
    distances = halving + halving[::-1]

    def step(i: int) -> Transfers:
        distance = distances[i]
        partner = node ^ distance
        if i < len(halving):  # the half that stays with the partner
            return Transfers.of(node, partner, partner // distance * distance, distance, Op.REDUCE)
        return Transfers.of(node, partner, node // distance * distance, distance, Op.COPY)

    return Schedule("halving_doubling", make_collective(collective, n, n), len(distances), step)


@register_algorithm("recursive_doubling", accepts)
def recursive_doubling(collective: str, fabric: Fabric) -> Schedule:
    """Recursive doubling all-reduce of N = 2^q nodes: q steps of the whole message, for short messages.

    After the step of distance D all nodes that differ in the bits up to D hold the same sum; both partners add what the
    other had before the step.
    """
    n = fabric.num_nodes
    node = np.arange(n, dtype=np.int32)
    distances = _distances(n)

    def step(i: int) -> Transfers:
        return Transfers.of(node, node ^ distances[i], 0, 1, Op.REDUCE)

    return Schedule("recursive_doubling", make_collective(collective, n, 1), len(distances), step)
