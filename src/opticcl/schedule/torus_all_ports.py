"""Rings along all dimensions of a grid at the same time, in both directions, so that every port sends in every step.

The message is cut into one part a dimension; part q visits the dimensions q, q + 1, ... cyclically, each by the two-sided
ring: `opticcl.schedule._both_ways`. All-gather on k equal sides n, N = n^k nodes, links of rate B each way:

    T = k floor(n / 2) alpha + (N - 1) / N x V / (2 k B)

which is the diameter and the time that the ports of a node need for what they must receive. On unequal sides a part is in the
longest dimension while others are in shorter ones; shorter sides have longer blocks, so the ports are nearly balanced.

On a torus of TeraRack rings that does not stripe messages over wavelengths, `pieces` cuts the blocks into as many transfers as
there are wavelengths, as `opticcl.schedule.two_sided_ring` does.

Source: Jain and Sabharwal 2010, Optimal bucket algorithms for large MPI collectives on torus interconnects; Sack and Gropp
2015, Collective algorithms for multiported torus networks. There, 2k parts go round in one direction each, in twice as many
steps.
Reading: no all-to-all, and a mesh without the links that close its lines is declined.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.terarack_torus import TerarackTorus
from opticcl.ir import Fabric, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import NotTried, register_algorithm
from opticcl.schedule._both_ways import COLLECTIVES, both_ways, num_chunks, variants_in_pieces
from opticcl.schedule._grid import SizeLimit, long_sides, reason_not_linked, reason_not_shaped
from opticcl.units import Shape

MOST_CHUNKS = limit("torus_all_ports.MOST_CHUNKS")
MOST_TRIED = limit("torus_all_ports.MOST_TRIED")


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None, pieces: int = 1) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: sides of the grid; None: those of the machine.
        pieces: transfers of a block [count].
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n = fabric.num_nodes
    if shape is not None and (reason := reason_not_shaped(shape, n)):
        return reason
    sides = long_sides(fabric, shape)
    if len(sides) < 2:
        return "it needs a grid of two or more dimensions; try two_sided_ring"
    node = np.arange(n)
    for d, side in enumerate(sides):
        stride = prod(sides[d + 1 :])
        at = node // stride % side
        for way in (1, -1):
            if reason := reason_not_linked(fabric, node, node + ((at + way) % side - at) * stride):
                return reason
    if not 1 <= pieces <= MOST_CHUNKS // n:
        return f"pieces={pieces} is not 1 to {MOST_CHUNKS // n:,}"
    if (chunks := num_chunks(sides, pieces)) > MOST_CHUNKS:
        return SizeLimit(f"{chunks:,} chunks are more than {MOST_CHUNKS:,}")
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """Whole blocks; on TeraRack rings that do not stripe, also two pieces for each wavelength, since the
    opposite node gets half of them from each side; fewer on large machines.
    """
    machine = fabric.machine
    if not isinstance(machine, TerarackTorus) or machine.striping or collective.name == "barrier":
        return [{}]
    return variants_in_pieces(2 * machine.lasers_per_port, MOST_TRIED // fabric.num_nodes)


@register_algorithm("torus_all_ports", accepts, variants)
def torus_all_ports(collective: Request, fabric: Fabric, *, shape: Shape | None = None, pieces: int = 1) -> Schedule:
    """All-gather or reduce-scatter in as many steps as the diameter has hops (equal sides), all_reduce in twice as many.

    Args:
        collective: all_reduce, reduce_scatter, all_gather or barrier.
        fabric: the fabric.
        shape: sides of the grid; None: those of the machine.
        pieces: transfers that each block is cut into, at least [count].
    """
    return both_ways("torus_all_ports", collective, Space(long_sides(fabric, shape)), pieces)
