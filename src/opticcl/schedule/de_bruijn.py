"""Two steps on a directed de Bruijn graph, whose circuits stand: every node reaches every other through one intermediate node.

N = d^2 nodes have two coordinates below d, and circuits lead from (a, b) to (b, c) for every c. So there is one path of two
circuits from (a, b) to (c, e), over (b, c):

    all_to_all    step 0   (a, b) sends to (b, c) its blocks for all (c, e)
                  step 1   (b, c) sends to (c, e) the blocks for it from all (a, b)
    all_gather    step 0   (a, b) sends its block to all (b, c)
                  step 1   (b, c) sends the blocks of all (a, b) to all (c, e)

    broadcast     step 0   the root (a, b) sends everything to all (b, c)
                  step 1   (b, c) sends it to all (c, e); a reduce goes back

In a sum a node gives up what it sends, for the circuits lead one way: it would count its own contribution again when that comes
back to it. Only the nodes (b, b), which follow themselves, keep what they would send to themselves.

    reduce_scatter         step 0   (a, b) gives to (b, c) all that (c, e) will own, for every e; it is added
                           step 1   (b, c) sends to (c, e) what that owns; it is added
    all_reduce, steps=2    step 0   (a, b) gives everything to every (b, c), which has the sum over a
                           step 1   (b, c) gives that to every (c, e), which has the sum over a and b
               steps=3     step 0   (a, b) gives part c of the message to (b, c)
                           step 1   (b, c) sends the sum to every (c, e), which has the whole sum of part c
                           step 2   (c, e) sends it to all (e, f)
               steps=4  steps 0, 1   as a reduce_scatter: (c, e) has the sum of its chunk
                        step 2   (c, e) sends that to all (e, f)
                        step 3   (e, f) sends those of all (c, e) to all (f, g)

A LIGHTPATH has as many lasers a tile as 256 tiles need, d = 16, and nothing is reconfigured between the steps. Of an
all-to-all a circuit carries 1/d of a node's buffer in each step, of an all-gather 1/N and then 1/d of the result, of an
all_reduce 2 messages in 2 steps, 3/d in 3, and 2 (1/d + 1/N) in 4. In these, what (b, c) gets in step 0 are neighbouring
chunks c d + e, and what (e, f) sends in step 3 is every d-th chunk.

Source: de Bruijn 1946; low-diameter directed graphs for collectives on direct circuits are known (Zhao et al. 2022), also a
reduce_scatter before an all_gather. The sums that are given up, and all_reduce in three steps, are own constructions.
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

COLLECTIVES = ("all_reduce", "barrier", "reduce_scatter", "all_to_all", "all_gather", "broadcast", "reduce")
STEPS = (2, 3, 4)
"""Numbers of steps of an all_reduce."""


def accepts(collective: Request, fabric: Fabric, steps: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        steps: of an all_reduce [count].
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    if steps is not None and (collective.name != "all_reduce" or steps not in STEPS):
        return f"an all_reduce has 2 to 4 steps and other collectives have no choice; leave steps={steps} out"
    n = fabric.num_nodes
    d = isqrt(n)
    if d * d != n:
        return f"{n} nodes are no square; nearest: {d * d} or {(d + 1) ** 2}"
    if n * d > MOST_TRANSFERS:
        return f"{n * d:,} transfers a step are more than {MOST_TRANSFERS:,}"
    if steps == 4 and n * n > MOST_TRANSFERS:
        return f"{n * n:,} chunks of all nodes that are no neighbours are more than {MOST_TRANSFERS:,}; try steps=3"
    node = np.arange(n)[:, None]
    pairs = np.broadcast_arrays(node, node % d * d + np.arange(d))
    return reason_not_linked(fabric, *(pairs[::-1] if collective.name == "reduce" else pairs))


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """One on a LIGHTPATH with a laser for each of the d circuits of a tile; else none, since they would not stand."""
    if collective.name not in COLLECTIVES:
        return []
    if not isinstance(fabric.machine, Lightpath) or isqrt(fabric.num_nodes) > fabric.lasers_per_port:
        return []
    return [{"steps": steps} for steps in STEPS] if collective.name == "all_reduce" else [{}]


@register_algorithm("de_bruijn", accepts, variants)
def de_bruijn(collective: Request, fabric: Fabric, *, steps: int | None = None) -> Schedule:
    """Two steps on the same circuits, or three or four of an all_reduce.

    Args:
        collective: all_reduce, barrier, reduce_scatter, all_to_all, all_gather, broadcast or reduce.
        fabric: one of d^2 nodes, all of which are linked.
        steps: of an all_reduce, from least latency to least volume; None: 3 [count].
    """
    n = fabric.num_nodes
    d = isqrt(n)
    node, c = np.arange(n, dtype=np.int32)[:, None], np.arange(d, dtype=np.int32)
    dst = node % d * d + c
    first, second = node // d, node % d
    if collective.name in ("broadcast", "reduce"):
        stands = isinstance(fabric.machine, Lightpath)
        tree = _tree(d, collective)
        return Schedule("de_bruijn", collective.on(n, 1), 2 if n > 1 else 0, StoredSteps(tree), stands=stands)
    if collective.name in ("all_reduce", "barrier", "reduce_scatter"):
        kind = {"barrier": 2, "reduce_scatter": 0}.get(collective.name, steps or 3)
        return _sum(d, collective, kind)
    made: tuple[Transfers, ...]
    if collective.name == "all_to_all":
        made = Transfers.of(node, dst, c * d, d, Op.MOVE, 1), Transfers.of(node, dst, dst, 1, Op.MOVE, d)
        chunks = collective.on(n, n)
    else:  # chunk b d + a belongs to the node (a, b)
        own, of_predecessors = second * d + first, first * d
        made = Transfers.of(node, dst, own, 1, Op.COPY), Transfers.of(node, dst, of_predecessors, d, Op.COPY)
        chunk = np.arange(n, dtype=np.int32)
        chunks = collective.on(n, n, owner=chunk % d * d + chunk // d)
    symmetries = (Symmetry(_next_label(d), _next_label(d)),)
    return Schedule("de_bruijn", chunks, 2 if n > 1 else 0, StoredSteps(made), symmetries=symmetries)


def _next_label(d: int) -> Table:
    """(a + 1, b + 1) of every (a, b)."""
    a, b = np.divmod(np.arange(d * d), d)
    return Table((a + 1) % d * d + (b + 1) % d)


def _sum(d: int, collective: Request, kind: int) -> Schedule:
    """The sums: reduce_scatter, or an all_reduce.

    Args:
        d: coordinates of a node are below it.
        collective: reduce_scatter, all_reduce or barrier.
        kind: steps of an all_reduce, 0 for reduce_scatter [count].
    """
    n = d * d
    node, c = np.arange(n, dtype=np.int32)[:, None], np.arange(d, dtype=np.int32)
    dst = node % d * d + c
    first, second = node // d, node % d
    made: tuple[Transfers, ...]
    to_all = np.where(first == second, Op.REDUCE, Op.REDUCE_MOVE)  # (b, b) is one of those that it sends to
    if kind == 2:
        made = (Transfers.of(node, dst, 0, 1, to_all),) * 2
        num_chunks, images = 1, Table(np.zeros(1, np.int64))
    elif kind == 3:
        made = (
            Transfers.of(node, dst, c, 1, Op.REDUCE_MOVE),
            Transfers.of(node, dst, second, 1, Op.REDUCE),
            Transfers.of(node, dst, first, 1, Op.COPY),
        )
        num_chunks, images = d, Table((np.arange(d) + 1) % d)
    elif kind == 4:  # chunk c d + e belongs to the node (c, e)
        made = (
            Transfers.of(node, dst, c * d, d, Op.REDUCE_MOVE),
            Transfers.of(node, dst, dst, 1, Op.REDUCE),
            Transfers.of(node, dst, node, 1, Op.COPY),
            Transfers.of(node, dst, first, d, Op.COPY, chunk_step=d),
        )
        num_chunks, images = n, _next_label(d)
    else:  # chunk c d + e belongs to the node (c, e)
        made = Transfers.of(node, dst, c * d, d, Op.REDUCE_MOVE), Transfers.of(node, dst, dst, 1, Op.REDUCE)
        num_chunks, images = n, _next_label(d)
    steps = StoredSteps(made if n > 1 else ())
    symmetries = (Symmetry(_next_label(d), images),)
    owner = np.arange(n, dtype=np.int32) if kind == 0 else None
    chunks = collective.on(n, num_chunks, owner=owner)
    return Schedule("de_bruijn", chunks, len(steps.steps), steps, symmetries=symmetries)


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
