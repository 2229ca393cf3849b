"""Pairwise exchanges over the bits of the node number: halving-doubling and recursive doubling.

In every step node i exchanges with i XOR D for one power of two D. Eight nodes, the peers of node 0 and what it sends:

    step                  0      1      2      3      4      5
    halving_doubling      4:1/2  2:1/4  1:1/8  1:1/8  2:1/4  4:1/2     the least data, 2(N-1)/N of the message
    recursive_doubling    1:all  2:all  4:all                          the fewest steps

Halving-doubling is made of four movements, each a step for every distance. Those of the first column have the farthest
partner first and send the chunks of the partner's side; those of the second go back and send what the sender holds:

    halve     all nodes, to be added (or kept apart)      double    all nodes, to be stored
    scatter   only nodes that hold data                   gather    only nodes that are done

    all_reduce  halve, double     reduce_scatter  halve     broadcast  scatter, double
    all_to_all  halve             all_gather      double    reduce     halve, gather

Source: Thakur, Rabenseifner and Gropp 2005; ODDL section 3 and figure 2 for the order of the distances.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import ROOTED, Request
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.ir.phases import Space, Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import reason_any_not_linked
from opticcl.schedule._walk import visits, walk

MOVEMENTS = {
    "all_reduce": ("halve", "double"),
    "reduce_scatter": ("halve",),
    "all_gather": ("double",),
    "all_to_all": ("halve",),
    "broadcast": ("scatter", "double"),
    "reduce": ("halve", "gather"),
}


def accepts_halving(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name not in MOVEMENTS:
        return "it does " + ", ".join(MOVEMENTS)
    return _reason_not_hypercube(fabric)


def accepts_doubling(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name not in ("all_reduce", "barrier", "all_gather"):
        return "it does all_reduce, barrier, all_gather"
    return _reason_not_hypercube(fabric)


def _reason_not_hypercube(fabric: Fabric) -> str | None:
    n = fabric.num_nodes
    below = 1 << n.bit_length() - 1
    if n != below:
        return f"{n} nodes are not a power of two; nearest: {below} or {2 * below}"
    node = np.arange(n)
    return reason_any_not_linked(fabric, ((node, node ^ distance) for distance in _distances(n)))


def _distances(num_nodes: int) -> tuple[int, ...]:
    """1, 2, 4, ... below the number of nodes."""
    return tuple(1 << bit for bit in range(num_nodes.bit_length() - 1))


@register_algorithm("halving_doubling", accepts_halving)
def halving_doubling(collective: Request, fabric: Fabric) -> Schedule:
    """Halving-doubling of N = 2^q nodes, q steps a movement; in an all-reduce a node sends 2(N-1)/N of the message.

    The message is N chunks. After the halving step of distance D node i owns the D chunks from i // D * D, finally
    chunk i; doubling has the same steps in reverse. An all-to-all sends half of the buffer in every step.

    Source: ODDL section 3, figure 2.
    """
    n = fabric.num_nodes
    if collective.name not in ROOTED:
        return _on_bits("halving_doubling", collective, n)
    doubling = _distances(n)
    steps = tuple(
        (movement, distance)
        for movement in MOVEMENTS[collective.name]
        for distance in (doubling[::-1] if movement in ("halve", "scatter") else doubling)
    )

    def step(i: int) -> Transfers:
        movement, distance = steps[i]
        node = np.arange(n, dtype=np.int32)
        if movement in ("scatter", "gather"):  # seen from the root; XOR keeps the partners
            node = (
                np.arange(0 if movement == "scatter" else distance, n, 2 * distance, dtype=np.int32) ^ collective.root
            )
        partner = node ^ distance
        side = partner if movement in ("halve", "scatter") else node
        op = Op.REDUCE if movement == "halve" else Op.COPY
        return Transfers.of(node, partner, side // distance * distance, distance, op)

    made = Steps.of_lists(n, n, map(step, range(len(steps))))
    return Schedule.of("halving_doubling", collective.on(n, n), made)


def _on_bits(name: str, collective: Request, num_nodes: int, depth: int | None = None) -> Schedule:
    """A walk over the bits of the node's number: the highest first, or the lowest where whole messages are exchanged.

    Args:
        name: of the algorithm.
        collective: requested.
        num_nodes: a power of two.
        depth: 0 for whole messages.
    """
    bits = num_nodes.bit_length() - 1
    space = Space((2,) * bits or (1,))
    order = range(bits) if depth is None else range(bits - 1, -1, -1)
    steps, cut = walk(collective, space, [visits(space.radices, order)], depth=depth)
    owner = None if depth == 0 else steps.owners
    return Schedule.of(name, collective.on(num_nodes, steps.num_chunks, owner=owner), steps, cut=cut)


@register_algorithm("recursive_doubling", accepts_doubling)
def recursive_doubling(collective: Request, fabric: Fabric) -> Schedule:
    """Recursive doubling of N = 2^q nodes in q steps: an all-reduce of the whole message each, for short messages.

    After the step of distance D all nodes that differ in the bits up to D hold the same sum; both partners add what the
    other held before the step. In an all-gather they hold the same 2 D chunks.
    """
    return _on_bits("recursive_doubling", collective, fabric.num_nodes, None if collective.name == "all_gather" else 0)
