"""Direct exchange: every pair with data for each other communicates in one step (two for an all-reduce).

    step    all_to_all      a node sends every other node its block         N (N-1) transfers
            reduce_scatter  the same, and the receiver adds
            all_gather      a node sends its block to every other node
            all_reduce      a reduce-scatter, then an all-gather
            barrier         a node signals every other node
            broadcast, scatter, gather, reduce: the root and every other    N-1 transfers

The least latency and the least data where a node can communicate with all others in one round; elsewhere the circuits take as
many rounds as necessary. Rows are in the order of the offset, (dst - src) mod N: those of one offset have every node
once as a sender and once as a receiver, so p transmitters per node serve p offsets in one round.

Source: the direct algorithms of Thakur, Rabenseifner and Gropp 2005 (pairwise and spread-out exchange).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from opticcl.collective import ROOTED, Request
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space, Steps
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, reason_any_not_linked
from opticcl.schedule._walk import visits, walk

__all__ = ["mesh"]

SEARCHED_TRANSFERS = limit("mesh.SEARCHED_TRANSFERS")
OF_ALL = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce", "barrier")
WHOLE = ("broadcast", "reduce", "barrier")  # every transfer carries the whole message


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name not in (*OF_ALL, *ROOTED):
        return f"it does {', '.join((*OF_ALL, *ROOTED))}"
    n = fabric.num_nodes
    pairs: Iterable[tuple[IntArray, IntArray]]
    if collective.name in ROOTED:
        pairs = [_with_root(collective, n)]
    elif n * (n - 1) > MOST_TRANSFERS:
        many = f"{n:,} nodes mean {n * (n - 1):,} transfers a step, more than {MOST_TRANSFERS:,}"
        return SizeLimit(f"{many}; try lumorph or ring")
    else:
        node = np.arange(n)
        pairs = ((node, (node + offset) % n) for offset in range(1, n))
    return reason_any_not_linked(fabric, pairs)


def _with_root(collective: Request, num_nodes: int) -> tuple[IntArray, IntArray]:
    """Senders and receivers between the root and every other, by offset."""
    others = ((collective.root + np.arange(1, num_nodes)) % num_nodes).astype(np.int32)
    root = np.full_like(others, collective.root)
    return (root, others) if collective.name in ("broadcast", "scatter") else (others, root)


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """One; it is left out where other algorithms send as few bytes with far fewer transfers."""
    many = fabric.num_nodes**2 > SEARCHED_TRANSFERS
    if many and collective.name in ("all_reduce", "reduce_scatter", "all_gather", "barrier"):
        return [left_out(fabric.num_nodes * (fabric.num_nodes - 1), SEARCHED_TRANSFERS)] if fabric.links_all else []
    return [{}]


@register_algorithm("mesh", accepts, variants)
def mesh(collective: Request, fabric: Fabric) -> Schedule:
    """Direct exchange of all pairs in one step, an all-reduce in two."""
    n, name = fabric.num_nodes, collective.name
    if name in ROOTED:
        src, dst = _with_root(collective, n)
        chunk = 0 if name in WHOLE else src if name == "gather" else dst
        op = Op.REDUCE if name == "reduce" else Op.COPY
        chunks = collective.on(n, 1 if name in WHOLE else n)
        made = Steps.of_lists(n, chunks.num_chunks, [Transfers.of(src, dst, chunk, 1, op)] if n > 1 else [])
        return Schedule.of("mesh", chunks, made)
    space = Space((n,))
    whole = name == "barrier"
    steps, cut = walk(collective, space, [visits(space.radices, (0,))], depth=0 if whole else None, listed="row")
    chunks = collective.on(n, steps.num_chunks, owner=None if whole else steps.owners)
    return Schedule.of("mesh", chunks, steps, cut=cut)
