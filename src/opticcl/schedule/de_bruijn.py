"""Two steps on a directed graph, whose circuits stand: every node reaches every other through one intermediate node.

N = d e nodes, where e divides d, d = m e, have three coordinates: x = (x1, q, x2) is node x1 d + q e + x2, with x1, x2 < e and
q < m. Circuits lead from (x1, q, x2) to (x2, *, *), to d nodes. With m = 1 this is the de Bruijn graph of d^2 nodes, with one
path of two circuits from x to y, over (x2, y1); else that of Imase and Itoh, with m paths, over (x2, *, y1).

    all_to_all    step 0   (x1, q, x2) sends to (x2, p, z) its blocks for all (z, p - q, *), p - q modulo m
                  step 1   (x1, q, x2) sends to each y = (x2, *, *) the blocks for it
    all_gather    step 0   x sends its block to all (x2, *, *)
                  step 1   (x1, q, x2) sends the blocks of all (*, q, x1) to all (x2, *, *)

    broadcast     step 0   the root x sends everything to all (x2, *, *)
                  step 1   (x2, q, z) sends it to all (z, q, *); a reduce goes back

In a sum a node gives up what it sends, for the circuits lead one way: it would count its own contribution again when that comes
back to it. Only the nodes (x1, q, x1), which follow themselves, keep what they would send to themselves.

    reduce_scatter         step 0   as in the all_to_all, but what meets is added
                           step 1   (x1, q, x2) sends to each y = (x2, *, *) what that owns; it is added
    all_reduce, steps=2    step 0   x gives part p of m parts of the message to all (x2, p, *), which have the sum over x1 and q
                           step 1   (x1, q, x2) gives part q to all (x2, *, *), which have the whole sum
               steps=3     step 0   x gives part (p, z) of d parts of the message to (x2, p, z)
                           step 1   (x1, q, x2) sends the sum of part (q, x2) to all (x2, *, *), which have the whole sum
                           step 2   (x1, q, x2) sends part (q, x1) to all (x2, *, *)
               steps=4     steps 0, 1   as a reduce_scatter: x has the sum of its chunk
                           step 2   x sends that to all (x2, *, *)
                           step 3   (x1, q, x2) sends those of all (*, q, x1) to all (x2, *, *)

A LIGHTPATH has as many lasers a tile as 256 tiles need, d = 16, and nothing is reconfigured between the steps. Of an
all-to-all a circuit carries 1/d of a node's buffer in each step, of an all-gather 1/N and then 1/d of the result, of an
all_reduce 2/m messages in 2 steps, 3/d in 3, and 2 (1/d + 1/N) in 4. In these, what a node gets in step 0 are neighbouring
chunks, and what it sends in step 3 is every d-th chunk.

Source: de Bruijn 1946; Imase and Itoh 1981; low-diameter directed graphs for collectives on direct circuits are known (Zhao et
al. 2022), also a reduce_scatter before an all_gather. The sums that are given up, how m paths share the message, and
all_reduce in three steps are own constructions.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.phases import Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, reason_not_linked

COLLECTIVES = ("all_reduce", "barrier", "reduce_scatter", "all_to_all", "all_gather", "broadcast", "reduce")
STEPS = (2, 3, 4)
"""Numbers of steps of an all_reduce."""
SPREAD = 6
"""Factor of x2 in the numbers of circuits, of 0 to 15 one that puts fewest of one number on an edge of 16 x 16 tiles: 5."""


def degrees(num_nodes: int) -> list[int]:
    """Successors that nodes can have: d with N = d e, where e > 1 divides d; ascending.

    >>> degrees(64), degrees(128), degrees(27), degrees(15), degrees(1)
    ([8, 16, 32], [16, 32, 64], [9], [], [1])
    """
    firsts = [e for e in range(isqrt(num_nodes), 1, -1) if num_nodes % (e * e) == 0]
    return [num_nodes // e for e in firsts] if num_nodes > 1 else [1]


def circuit_colours(num_nodes: int, degree: int | None, src: IntArray, dst: IntArray) -> IntArray:
    """Number of each circuit from (x1, q, x2) to (x2, p, z): q e + x1 + 6 x2 + p e + z modulo d. Those that leave a node have
    distinct numbers, and so have those that reach one.

    Args:
        num_nodes: N [count].
        degree: d, as of `de_bruijn`.
        src, dst: nodes that the graph joins, int (n,).

    >>> circuit_colours(4, 2, np.array([0, 1, 1, 2]), np.array([1, 2, 3, 0])).tolist()
    [1, 0, 1, 1]
    """
    d = degree or degrees(num_nodes)[0]
    e = num_nodes // d
    colours: IntArray = (src % d // e * e + src // d + SPREAD * (src % e) + dst) % d
    return colours


def accepts(collective: Request, fabric: Fabric, steps: int | None = None, degree: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        steps: of an all_reduce [count].
        degree: successors of a node [count].
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    if steps is not None and (collective.name != "all_reduce" or steps not in STEPS):
        return f"an all_reduce has 2 to 4 steps and other collectives have no choice; leave steps={steps} out"
    n = fabric.num_nodes
    possible = degrees(n)
    if not possible:
        root = isqrt(n)
        return (
            f"{n} nodes are not a square, nor a multiple of one; nearest squares: {root * root} and {(root + 1) ** 2}"
        )
    d = possible[0] if degree is None else degree
    if d not in possible:
        return f"degree={d}: nodes can have {', '.join(map(str, possible))} successors; try degree={possible[0]}"
    if n * d > MOST_TRANSFERS:
        return SizeLimit(f"{n * d:,} transfers a step are more than {MOST_TRANSFERS:,}")
    if steps == 4 and n * n > MOST_TRANSFERS:
        return SizeLimit(
            f"{n * n:,} chunks of all nodes that are not neighbours are more than {MOST_TRANSFERS:,}; try steps=3"
        )
    graph = _Graph(n, d)
    pairs = np.broadcast_arrays(graph.node, graph.dst)
    return reason_not_linked(fabric, *(pairs[::-1] if collective.name == "reduce" else pairs))


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """On a LIGHTPATH with a laser for each of the d circuits of a tile; else none, since they would not stand."""
    if collective.name not in COLLECTIVES or not isinstance(fabric.machine, Lightpath):
        return []
    possible = degrees(fabric.num_nodes)
    choices = [{} if d == possible[0] else {"degree": d} for d in possible if d <= fabric.lasers_per_port]
    if collective.name == "all_reduce":
        return [{"steps": steps, **given} for given in choices for steps in STEPS]
    return choices[:1] if collective.name in ("broadcast", "reduce") else choices


@register_algorithm("de_bruijn", accepts, variants)
def de_bruijn(collective: Request, fabric: Fabric, *, steps: int | None = None, degree: int | None = None) -> Schedule:
    """Collectives in two steps on the circuits of a de Bruijn graph that stand, an all_reduce in three or four.

    Args:
        collective: all_reduce, barrier, reduce_scatter, all_to_all, all_gather, broadcast or reduce.
        fabric: one of d e nodes, e a divisor of d, all of which are linked.
        steps: of an all_reduce, from least latency to least volume; None: 3 [count].
        degree: successors of a node, d; None: the fewest [count].
    """
    n = fabric.num_nodes
    graph = _Graph(n, degree or degrees(n)[0])
    if collective.name in ("broadcast", "reduce"):
        stands = isinstance(fabric.machine, Lightpath)
        tree = _tree(graph, collective)
        made = Steps.of_lists(n, 1, tree if n > 1 else ())
        return Schedule.of("de_bruijn", collective.on(n, 1), made, stands=stands)
    transfers, num_chunks, owner = {
        "all_to_all": _all_to_all,
        "all_gather": _all_gather,
        "reduce_scatter": _reduce_scatter,
        "barrier": _in_two_steps,
        "all_reduce": {2: _in_two_steps, 3: _in_three_steps, 4: _in_four_steps}[steps or 3],
    }[collective.name](graph)
    chunks = collective.on(n, num_chunks, owner=owner)
    return Schedule.of("de_bruijn", chunks, Steps.of_lists(n, num_chunks, transfers if n > 1 else ()))


class _Graph:
    """Nodes, successors and coordinates as columns that broadcast to (nodes, degree).

    Args:
        nodes: N [count].
        degree: d, successors of a node [count].
    """

    def __init__(self, nodes: int, degree: int) -> None:
        self.n, self.d, self.e = nodes, degree, nodes // degree
        self.m = self.d // self.e
        self.node = np.arange(nodes, dtype=np.int32)[:, None]
        self.first, self.middle, self.last = self.node // degree, self.node % degree // self.e, self.node % self.e
        self.to = np.arange(degree, dtype=np.int32)
        """Number of a successor among those of a node: its middle coordinate times e + its last."""
        self.dst = self.last * degree + self.to
        self.follows_itself = self.first == self.last

    def ahead(self) -> IntArray:
        """First of the e nodes (z, p - q, *) whose blocks (x1, q, x2) sends to (x2, p, z)."""
        nodes: IntArray = self.to % self.e * self.d + (self.to // self.e - self.middle) % self.m * self.e
        return nodes


Made = tuple[tuple[Transfers, ...], int, IntArray | None]
"""Steps, chunks, and the owner of each, where not all nodes have all."""


def _all_to_all(g: _Graph) -> Made:
    first = Transfers.of(g.node, g.dst, g.ahead(), g.e, Op.MOVE, 1)
    return (first, Transfers.of(g.node, g.dst, g.dst, 1, Op.MOVE, g.e)), g.n, None


def _all_gather(g: _Graph) -> Made:
    """Chunk x2 d + q e + x1 belongs to (x1, q, x2)."""
    own, of_predecessors = g.last * g.d + g.middle * g.e + g.first, g.first * g.d + g.middle * g.e
    made = Transfers.of(g.node, g.dst, own, 1, Op.COPY), Transfers.of(g.node, g.dst, of_predecessors, g.e, Op.COPY)
    return made, g.n, own.ravel()


def _reduce_scatter(g: _Graph) -> Made:
    first = Transfers.of(g.node, g.dst, g.ahead(), g.e, Op.REDUCE_MOVE)
    made = first, Transfers.of(g.node, g.dst, g.dst, 1, Op.REDUCE)
    return made, g.n, g.node.ravel()


def _in_two_steps(g: _Graph) -> Made:
    part = g.to // g.e
    given = np.where(g.follows_itself & (part == g.middle), Op.REDUCE, Op.REDUCE_MOVE)  # one of those that it sends to
    sent = np.where(g.follows_itself, Op.REDUCE, Op.REDUCE_MOVE)
    made = Transfers.of(g.node, g.dst, part, 1, given), Transfers.of(g.node, g.dst, g.middle, 1, sent)
    return made, g.m, None


def _in_three_steps(g: _Graph) -> Made:
    made = (
        Transfers.of(g.node, g.dst, g.to, 1, Op.REDUCE_MOVE),
        Transfers.of(g.node, g.dst, g.middle * g.e + g.last, 1, Op.REDUCE),
        Transfers.of(g.node, g.dst, g.middle * g.e + g.first, 1, Op.COPY),
    )
    return made, g.d, None


def _in_four_steps(g: _Graph) -> Made:
    (first, second), num_chunks, _ = _reduce_scatter(g)
    made = (
        first,
        second,
        Transfers.of(g.node, g.dst, g.node, 1, Op.COPY),
        Transfers.of(g.node, g.dst, g.middle * g.e + g.first, g.e, Op.COPY, chunk_step=g.d),
    )
    return made, num_chunks, None


def _tree(g: _Graph, collective: Request) -> tuple[Transfers, Transfers]:
    """The two steps of a broadcast or a reduce; a root that follows itself sends to other nodes in both.

    Args:
        g: graph.
        collective: broadcast or reduce, with its root.
    """
    b = collective.root % g.e
    near = b * g.d + np.arange(g.d)
    far = np.delete(np.arange(g.n), near)
    far = far[far != collective.root]
    near = near[near != collective.root]
    over = b * g.d + far % g.d // g.e * g.e + far // g.d
    links = ((np.full(len(near), collective.root), near), (over, far))
    if collective.name == "reduce":
        first, second = (Transfers.of(child, parent, 0, 1, Op.REDUCE) for parent, child in reversed(links))
    else:
        first, second = (Transfers.of(parent, child, 0, 1, Op.COPY) for parent, child in links)
    return first, second
