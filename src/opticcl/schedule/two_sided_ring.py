"""The ring in both directions: a chunk reaches its owner from both sides, so N / 2 steps are enough.

Positions along the ring, chunk c belongs to the node at position c; with H = floor(N / 2), in step s = 0, ..., H - 1

    all_gather        the node at position p sends chunk p - s to the next node and chunk p + s to the previous one;
                      for even N the opposite node gets half of its last chunk from each side
    reduce_scatter    the same backwards, added
    all_reduce        both

    T = 2 H alpha + 2 (N - 1) / N x V / (2 B)      all_reduce of V on links of rate B each way

Source: the two halves of a bidirectional ring, as in Chan, Heimlich, Purkayastha and van de Geijn 2007, Collective
communication: theory, practice, and experience; Jain and Sabharwal 2010, Optimal bucket algorithms for large MPI
collectives on torus interconnects. Here both directions carry whole chunks half way round, not half chunks all the way.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Schedule
from opticcl.schedule import register_algorithm
from opticcl.schedule._both_ways import COLLECTIVES, BothWays
from opticcl.schedule._grid import reason_not_linked


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    order = fabric.ring_order()
    for to in (-1, 1):
        if fabric.num_nodes > 1 and reason_not_linked(fabric, order, np.roll(order, to)):
            return "no order of its nodes links each with the next and the previous one"
    return None


@register_algorithm("two_sided_ring", accepts)
def two_sided_ring(collective: Request, fabric: Fabric) -> Schedule:
    """All-gather or reduce-scatter in floor(N / 2) steps, all_reduce in twice as many.

    Args:
        collective: all_reduce, reduce_scatter, all_gather or barrier.
        fabric: the fabric.
    """
    n = fabric.num_nodes
    sides = (n,) if n > 1 else ()
    return BothWays(sides, fabric.ring_order().astype(np.int32)).schedule("two_sided_ring", collective)
