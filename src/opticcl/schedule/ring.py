"""The ring: every piece is handed on from neighbour to neighbour, N - 1 times.

Positions along the ring, chunk c belongs to the node at position c; in step s the node at position p sends

    all_reduce        chunk p - s - 1, to be added for N - 1 steps, then to be stored for N - 1 more
    reduce_scatter    the first half of that
    all_gather        the second half
    all_to_all        the first half with contributions kept apart: s + 1 of them in step s, N(N-1)/2 blocks in all
    broadcast         chunk s - p, positions counted from the root: a chain, k chunks one behind the other
    reduce            the same along the chain that ends at the root
    scatter, gather   what the farthest node gets goes first; every node's block one behind the other

Source: Patarasuk and Yuan 2009; RAMP section 5, WRHT section 3.3 count an all-reduce as 2(N-1) steps.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import why_apart

ROUND = ("all_reduce", "barrier", "reduce_scatter", "all_gather", "all_to_all")  # all nodes alike
CHAIN = ("broadcast", "reduce", "scatter", "gather")  # from the root, or to it
ALIKE = ("all_reduce", "barrier", "reduce_scatter", "all_gather")  # two classes of steps at most
MOST_ROWS = 1 << 26  # transfers of a schedule no two of whose steps are alike: some seconds to look at
MOST_NODES_TRIED = 512  # of such a schedule when the fastest is looked for


def accepts(collective: Request, fabric: Fabric, pipeline: int | None = None) -> str | None:
    """None, or the reason why not."""
    n, name = fabric.num_nodes, collective.name
    if name not in ROUND + CHAIN:
        return "it does everything but send_recv"
    if pipeline is not None and name not in ("broadcast", "reduce"):
        return "pipeline is for broadcast and reduce only"
    if pipeline is not None and not 1 <= pipeline <= MOST_ROWS:
        return f"pipeline={pipeline} is not 1 to {MOST_ROWS:,}"
    rows = 0 if name in ALIKE else (n - 1) * (pipeline or n)
    if rows > MOST_ROWS:
        return f"{rows:,} transfers in steps of which no two are alike; at most {MOST_ROWS:,} are taken on"
    order = fabric.ring()
    if n > 1 and why_apart(fabric, order, np.roll(order, -1)):
        return "no order of its nodes links each with the next"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """One; none where thousands of steps would have to be looked at one by one, which is asked for by name only."""
    return [{}] if collective.name in ALIKE or fabric.num_nodes <= MOST_NODES_TRIED else []


@register_algorithm("ring", accepts, variants)
def ring(collective: Request, fabric: Fabric, *, pipeline: int | None = None) -> Schedule:
    """Everything but send_recv in N - 1 steps, all_reduce in 2(N-1), a pipelined broadcast or reduce in N - 2 + k.

    An all-reduce of 65,536 nodes has 131,070 steps and two classes of steps.

    Args: pipeline: chunks k that a broadcast or a reduce is cut into [count]; None: one a node.
    """
    if collective.name in CHAIN:
        return _chain(collective, fabric, fabric.num_nodes if pipeline is None else pipeline)
    order = fabric.ring().astype(np.int32)
    n = len(order)
    following = np.roll(order, -1)
    twice_round = np.tile(np.arange(n, dtype=np.int32), 2)  # the chunks of any step are a slice of it
    one = np.ones(n, np.int32)
    adding = range(n - 1) if collective.name != "all_gather" else range(0)
    telling = range(len(adding), len(adding) + n - 1) if collective.name not in ("reduce_scatter", "all_to_all") else ()

    hand_on = Op.MOVE if collective.name == "all_to_all" else Op.REDUCE
    add, tell = (np.full(n, op, np.uint8) for op in (hand_on, Op.COPY))

    def step(i: int) -> Transfers:
        """Made of views, since there are thousands."""
        first = (len(adding) - i) % n if i not in adding else (-i - 1) % n
        chunk = twice_round[first : first + n]
        if i not in adding:
            return Transfers(order, following, chunk, one, tell)
        return Transfers(order, following, chunk, one, add, (i + 1) * one if hand_on == Op.MOVE else None)

    num_steps = len(adding) + len(telling)
    classes = () if collective.name == "all_to_all" else tuple(r for r in (adding, telling) if r)
    return Schedule("ring", collective.on(n, n, owner=order), num_steps, step, classes)


def _chain(collective: Request, fabric: Fabric, pipeline: int) -> Schedule:
    """Rooted collectives along the chain that starts at the root, or that ends there."""
    order = fabric.ring().astype(np.int32)
    n, name = len(order), collective.name
    root_at = int(np.flatnonzero(order == collective.root)[0])
    inwards = name in ("reduce", "gather")
    chain = np.roll(order, -root_at - (1 if inwards else 0))
    whole = name in ("broadcast", "reduce")

    def step(i: int) -> Transfers:
        if whole:
            at = np.arange(max(0, i - pipeline + 1), min(i, n - 2) + 1)
            return Transfers.of(chain[at], chain[at + 1], i - at, 1, Op.COPY if name == "broadcast" else Op.REDUCE)
        at = np.arange(i, n - 1) if inwards else np.arange(i + 1)  # at the start all have a block, or the root alone
        return Transfers.of(chain[at], chain[at + 1], at - i if inwards else n - 1 - i + at, 1, Op.COPY)

    num_steps = (n - 2 + pipeline if whole else n - 1) if n > 1 else 0
    chunks = collective.on(n, pipeline) if whole else collective.on(n, n, owner=chain)
    return Schedule("ring", chunks, num_steps, step)
