"""The ring in both directions: a chunk reaches its owner from both sides, so N / 2 steps are enough.

Positions along the ring, chunk c belongs to the node at position c; with H = floor(N / 2), in step s = 0, ..., H - 1

    all_gather        the node at position p sends chunk p - s to the next node and chunk p + s to the previous one;
                      for even N the opposite node gets half of its last chunk from each side
    reduce_scatter    the same backwards, added
    all_reduce        both

    T = 2 H alpha + 2 (N - 1) / N x V / (2 B)      all_reduce of V on links of rate B each way

A TeraRack gives a transfer one wavelength unless it stripes messages over all. There `pieces` cuts each chunk into as many
transfers as there are wavelengths: with the times of its paper, 1 GB on 1,024 nodes take 3.1 ms instead of 100.

Source: the two halves of a bidirectional ring, as in Chan, Heimlich, Purkayastha and van de Geijn 2007, Collective
communication: theory, practice, and experience; Jain and Sabharwal 2010, Optimal bucket algorithms for large MPI
collectives on torus interconnects. Here both directions carry whole chunks half way round, not half chunks all the way.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.terarack import Terarack
from opticcl.ir import Fabric, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import NotTried, register_algorithm
from opticcl.schedule._both_ways import COLLECTIVES, both_ways, variants_in_pieces
from opticcl.schedule._grid import MOST_TRANSFERS, reason_not_linked

MOST_TRIED = limit("two_sided_ring.MOST_TRIED")


def accepts(collective: Request, fabric: Fabric, pieces: int = 1) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pieces: transfers of a chunk [count].
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    if not 1 <= pieces <= MOST_TRANSFERS // max(fabric.num_nodes, 1):
        return f"pieces={pieces} is not 1 to {MOST_TRANSFERS // max(fabric.num_nodes, 1):,}"
    order = fabric.ring_order()
    for to in (-1, 1):
        if fabric.num_nodes > 1 and reason_not_linked(fabric, order, np.roll(order, to)):
            return "no order of its nodes links each with the next and the previous one"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """Whole chunks; on a TeraRack that does not stripe, also two pieces for each wavelength, since the
    opposite node gets half of them from each side; fewer on large machines.
    """
    machine = fabric.machine
    if not isinstance(machine, Terarack) or machine.striping or collective.name == "barrier":
        return [{}]
    return variants_in_pieces(2 * machine.lasers_per_port, MOST_TRIED // fabric.num_nodes)


@register_algorithm("two_sided_ring", accepts, variants)
def two_sided_ring(collective: Request, fabric: Fabric, *, pieces: int = 1) -> Schedule:
    """All-gather or reduce-scatter in floor(N / 2) steps, all_reduce in twice as many.

    Args:
        collective: all_reduce, reduce_scatter, all_gather or barrier.
        fabric: the fabric.
        pieces: transfers that each chunk is cut into, at least; twice as many where N is even and this is odd [count].
    """
    space = Space((fabric.num_nodes,), fabric.ring_order().astype(np.int32))
    return both_ways("two_sided_ring", collective, space, pieces)
