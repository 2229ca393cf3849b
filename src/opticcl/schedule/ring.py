"""The ring: every chunk is passed from neighbour to neighbour, N - 1 times.

Positions along the ring, chunk c belongs to the node at position c; in step s the node at position p sends

    all_reduce        chunk p - s - 1, to be added for N - 1 steps, then to be stored for N - 1 more
    reduce_scatter    the first half of that
    all_gather        the second half
    all_to_all        the first half with contributions kept apart: s + 1 of them in step s, N(N-1)/2 blocks in total
    broadcast         chunk s - p, positions counted from the root: a chain of k chunks
    reduce            the same along the chain that ends at the root
    scatter, gather   the data of the farthest node first, block after block

Source: Patarasuk and Yuan 2009; RAMP section 5, WRHT section 3.3 count an all-reduce as 2(N-1) steps.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import SizeLimit, reason_not_linked
from opticcl.schedule._pipeline import PipelineStage, pipelined
from opticcl.schedule._walk import visits, walk

ROUND = ("all_reduce", "barrier", "reduce_scatter", "all_gather", "all_to_all")  # all nodes do the same
CHAIN = ("broadcast", "reduce", "scatter", "gather")  # from the root, or to it
TWO_CLASSES = ("all_reduce", "barrier", "reduce_scatter", "all_gather")  # at most two classes of steps
MOST_ROWS = limit("ring.MOST_ROWS")
MOST_NODES_TRIED = limit("ring.MOST_NODES_TRIED")


def accepts(collective: Request, fabric: Fabric, pipeline: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        pipeline: chunks of a broadcast or a reduce [count].
    """
    n, name = fabric.num_nodes, collective.name
    if name not in ROUND + CHAIN:
        return "it does everything but send_recv"
    if pipeline is not None and name not in ("broadcast", "reduce"):
        return "pipeline is for broadcast and reduce only"
    if pipeline is not None and not 1 <= pipeline <= MOST_ROWS:
        return f"pipeline={pipeline} is not 1 to {MOST_ROWS:,}"
    rows = 0 if name in TWO_CLASSES else (n - 1) * (pipeline or n)
    if rows > MOST_ROWS:
        return SizeLimit(f"{rows:,} transfers in distinct steps are more than {MOST_ROWS:,}")
    order = fabric.ring_order()
    if n > 1 and reason_not_linked(fabric, order, np.roll(order, -1)):
        return "no order of its nodes links each with the next"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """One; it is left out where thousands of distinct steps would have to be evaluated."""
    n = fabric.num_nodes
    if collective.name in TWO_CLASSES or n <= MOST_NODES_TRIED or collective.name not in ROUND + CHAIN:
        return [{}]
    return [left_out((n - 1) * n, MOST_NODES_TRIED * (MOST_NODES_TRIED - 1))]


@register_algorithm("ring", accepts, variants)
def ring(collective: Request, fabric: Fabric, *, pipeline: int | None = None) -> Schedule:
    """Everything but send_recv in N - 1 steps, all_reduce in 2(N-1), a pipelined broadcast or reduce in N - 2 + k.

    An all-reduce of 65,536 nodes has 131,070 steps and two classes of steps.

    Args:
        collective: any but send_recv.
        fabric: the fabric.
        pipeline: chunks k of a broadcast or a reduce [count]; None: one a node.
    """
    if collective.name in CHAIN:
        return _chain(collective, fabric, fabric.num_nodes if pipeline is None else pipeline)
    space = Space((fabric.num_nodes,), fabric.ring_order().astype(np.int32))
    steps, cut = walk(collective, space, [visits(space.radices, (0,), "ring")])
    return Schedule.of("ring", collective.on(space.num_ranks, steps.num_chunks, owner=steps.owners), steps, cut=cut)


def _chain(collective: Request, fabric: Fabric, pipeline: int) -> Schedule:
    """Rooted collectives along the chain that starts at the root, or that ends there."""
    order = fabric.ring_order().astype(np.int32)
    n, name = len(order), collective.name
    root_at = int(np.flatnonzero(order == collective.root)[0])
    inwards = name in ("reduce", "gather")
    chain = np.roll(order, -root_at - (1 if inwards else 0))
    if name in ("broadcast", "reduce"):
        op = Op.COPY if name == "broadcast" else Op.REDUCE
        stages = [PipelineStage(chain[at : at + 1], chain[at + 1 : at + 2], 0, op) for at in range(n - 1)]
        return Schedule.of("ring", collective.on(n, pipeline), pipelined(n, stages, pipeline))
    # at the start all hold a block, or only the root; the link at place p carries the block of place lo, one on each step
    at = np.arange(n - 1)
    lo, shift = (at, -1) if inwards else (n - 1 + at, -1)
    rows = PhaseRows.of(1, chain[:-1, None], chain[1:, None], 0, unit_lo=lo, unit_shift=shift, op=Op.COPY)
    phases = [Phase(rows, (), n - 1)] if n > 1 else []
    steps = Steps(Space((n,)), [MessagePart(((UNIT, 1, n),), n)], phases)
    return Schedule.of("ring", collective.on(n, n, owner=chain), steps)
