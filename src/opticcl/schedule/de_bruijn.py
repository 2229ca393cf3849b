"""Two steps on a directed de Bruijn graph, whose circuits stand: every node reaches every other through one intermediate node.

N = d^2 nodes have two coordinates below d, and circuits lead from (a, b) to (b, c) for every c. So there is one path of two
circuits from (a, b) to (c, e), over (b, c):

    all_to_all    step 0   (a, b) sends to (b, c) its blocks for all (c, e)
                  step 1   (b, c) sends to (c, e) the blocks for it from all (a, b)
    all_gather    step 0   (a, b) sends its block to all (b, c)
                  step 1   (b, c) sends the blocks of all (a, b) to all (c, e)

    broadcast     step 0   the root (a, b) sends everything to all (b, c)
                  step 1   (b, c) sends it to all (c, e); a reduce goes back

A LIGHTPATH has as many lasers a tile as 256 tiles need, d = 16, and nothing is reconfigured between the steps. Of an
all-to-all a circuit carries 1/d of a node's buffer in each step, of an all-gather 1/N and then 1/d of the result.

Source: de Bruijn 1946; low-diameter directed graphs for collectives on direct circuits are known (Zhao et al. 2022).
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.ir.schedule import StoredSteps
from opticcl.ir.symmetry import Symmetry, Table
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, reason_not_linked

COLLECTIVES = ("all_to_all", "all_gather", "broadcast", "reduce")


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n = fabric.num_nodes
    d = isqrt(n)
    if d * d != n:
        return f"{n} nodes are no square; nearest: {d * d} or {(d + 1) ** 2}"
    if n * d > MOST_TRANSFERS:
        return f"{n * d:,} transfers a step are more than {MOST_TRANSFERS:,}"
    node = np.arange(n)[:, None]
    pairs = np.broadcast_arrays(node, node % d * d + np.arange(d))
    return reason_not_linked(fabric, *(pairs[::-1] if collective.name == "reduce" else pairs))


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """One on a LIGHTPATH with a laser for each of the d circuits of a tile; else none, since they would not stand."""
    if collective.name not in COLLECTIVES:
        return []
    fits = isinstance(fabric.machine, Lightpath) and isqrt(fabric.num_nodes) <= fabric.lasers_per_port
    return [{}] if fits else []


@register_algorithm("de_bruijn", accepts, variants)
def de_bruijn(collective: Request, fabric: Fabric) -> Schedule:
    """Two steps on the same circuits.

    Args:
        collective: all_to_all, all_gather, broadcast or reduce.
        fabric: one of d^2 nodes, all of which are linked.
    """
    n = fabric.num_nodes
    d = isqrt(n)
    node, c = np.arange(n, dtype=np.int32)[:, None], np.arange(d, dtype=np.int32)
    dst = node % d * d + c
    first, second = node // d, node % d
    if collective.name in ("broadcast", "reduce"):
        stands = isinstance(fabric.machine, Lightpath)
        steps = _tree(d, collective)
        return Schedule("de_bruijn", collective.on(n, 1), 2 if n > 1 else 0, StoredSteps(steps), stands=stands)
    if collective.name == "all_to_all":
        steps = Transfers.of(node, dst, c * d, d, Op.MOVE, 1), Transfers.of(node, dst, dst, 1, Op.MOVE, d)
        chunks = collective.on(n, n)
    else:  # chunk b d + a belongs to the node (a, b)
        own, of_predecessors = second * d + first, first * d
        steps = Transfers.of(node, dst, own, 1, Op.COPY), Transfers.of(node, dst, of_predecessors, d, Op.COPY)
        chunk = np.arange(n, dtype=np.int32)
        chunks = collective.on(n, n, owner=chunk % d * d + chunk // d)
    next_label = Table((first[:, 0] + 1) % d * d + (second[:, 0] + 1) % d)  # (a + 1, b + 1), and so of the chunks
    symmetries = (Symmetry(next_label, next_label),)
    return Schedule("de_bruijn", chunks, 2 if n > 1 else 0, StoredSteps(steps), symmetries=symmetries)


def _tree(d: int, collective: Request) -> tuple[Transfers, Transfers]:
    """The two steps of a broadcast or a reduce; a root that follows itself sends to other nodes in both.

    Args:
        d: coordinates of a node are below it.
        collective: broadcast or reduce, with its root.
    """
    b = collective.root % d
    near = b * d + np.arange(d)
    far = np.delete(np.arange(d * d), near)
    far = far[far != collective.root]
    near = near[near != collective.root]
    links = ((np.full(len(near), collective.root), near), (b * d + far // d, far))
    if collective.name == "reduce":
        first, second = (Transfers.of(child, parent, 0, 1, Op.REDUCE) for parent, child in reversed(links))
    else:
        first, second = (Transfers.of(parent, child, 0, 1, Op.COPY) for parent, child in links)
    return first, second
