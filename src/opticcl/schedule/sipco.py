"""SiPCO: every collective on all L levels of a SiPAC in every step.

The message is cut into L groups. Group g visits the levels g, g-1, ..., g-L+1 (mod L), one a step, and then the first k
of them in reverse order. So in every step the groups are at L different levels, and all links are busy.

    step            group g at level   what a node sends                                       all_reduce
    0 ... k-1       g - step           to each peer the chunks that the peer may still own     adds
    k ... L-1       g - step           the chunk owned, to all peers                           adds
    L ... L+k-1     g - (L+k-1-step)   all that share the leading digits so far, to all peers  stores

Chunks are numbered by k digits, one for each of the first k levels visited; a node owns of each group the chunk
whose digits are its own. The other collectives are subsets of it:

    collective                 k        steps         transfers               receivers
    all_reduce, barrier        0 ... L  0 ... L+k-1   all                     add, from step L on store
    broadcast                  0 ... L  0 ... L+k-1   from where the root's   store
                                                      data have come
    reduce                     0 ... L  0 ... L+k-1   towards the root        add, from step L on store
    reduce_scatter             L        0 ... L-1     all                     add
    all_to_all                 L        0 ... L-1     all                     put beside their own
    scatter                    L        0 ... L-1     as broadcast            store
    all_gather                 L        L ... 2L-1    all                     store
    gather                     L        L ... 2L-1    as reduce               store

So an all_gather is a time-reversed reduce_scatter, and a gather a time-reversed scatter. A send_recv has only the walk: each
block to one node. Of a message n a link carries

    all_reduce                             n (2/L (1 - r^-k) + (L-k) (r-1)/(L r^k)); at k = L the least, 2 (p-1)/p n/L
    broadcast, reduce                      the same at the root
    reduce_scatter, all_gather             (p-1)/p n/L, the least
    scatter, gather                        the same at the root, where a channel carries (p-1)/(L (r-1)) blocks
    all_to_all                             (r-1)/r n/L in each of its L steps

all_reduce with k = 1 is the paper's: L + 1 steps of (r-1) n/(r L) a link. With switches of different radices, p is
their product, and r^k that of the k levels which a group visits first. The groups stay of one size, so links of
different levels carry different loads; the L links of a node together still carry 2 (p-1)/p n at k = L, and (p-1)/p n
for one half.

Source: SiPAC section V-A, algorithm 1, table III, and its remark that the principle serves other collectives too. The
family and all collectives but all_reduce are own constructions.
Reading: algorithm 1 omits that step 0 sends each chunk to its owner, that from then on a node sends the chunk it
owns, and that the last step stores instead of adding. The owners are free to choose: a node owns the chunk of its digits; in
table III the node of digit x owns that of digit r - 1 - x.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.sipac import Sipac
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._sipco_send import send_recv
from opticcl.schedule._walk import Visit, visits, walk

__all__ = ["digit_walks", "reason_unfit", "sipco"]


class _WalkPhases(NamedTuple):
    """Parts of the walk that a collective uses.

    Args:
        k: default number of digits; None: all L, and every chunk belongs to a node.
        out, back: whether it has the first L steps, and the last k.
        op: operation of receivers in the first L steps; in the last k they store.
        root: "from" if data come from a root, "to" if they go to one.
    """

    k: int | None
    out: bool = True
    back: bool = True
    op: Op = Op.REDUCE
    root: str = ""


_WALKS = {
    "all_reduce": _WalkPhases(k=1),
    "barrier": _WalkPhases(k=0),
    "broadcast": _WalkPhases(k=0, op=Op.COPY, root="from"),
    "reduce": _WalkPhases(k=0, root="to"),
    "reduce_scatter": _WalkPhases(k=None, back=False),
    "all_to_all": _WalkPhases(k=None, back=False, op=Op.MOVE),
    "scatter": _WalkPhases(k=None, back=False, op=Op.COPY, root="from"),
    "all_gather": _WalkPhases(k=None, out=False),
    "gather": _WalkPhases(k=None, out=False, root="to"),
}


def accepts(collective: Request, fabric: Fabric, k: int | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        k: digits by which each group is scattered [count].
    """
    return reason_unfit(collective, fabric.machine_as(Sipac).sides, k)


def reason_unfit(collective: Request, radices: tuple[int, ...], k: int | None) -> str | None:
    """Why there are no such walks, or None.

    Args: collective, radices, k: as in `digit_walks`.
    """
    levels = len(radices)
    if k is not None and _usual_k(collective) is None:
        return f"{collective.name} has no k, each block is cut for all levels; leave k={k} out"
    if k is not None and not 0 <= k <= levels:
        return f"k={k} is not 0 to levels={levels}"
    transfers = prod(radices) * sum(radix - 1 for radix in radices)
    if transfers >= 2**31:  # there are never more chunks
        return f"{transfers:,} transfers a step are more than can be numbered"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Every k of a SiPAC for collectives whose time depends on it; else none given."""
    machine = fabric.machine
    if not isinstance(machine, Sipac) or collective.name not in ("all_reduce", "broadcast", "reduce"):
        return [{}]
    return [{"k": k} for k in range(machine.ports_per_node + 1)]


@register_algorithm("sipco", accepts, variants, systems=("sipac",))
def sipco(collective: Request, fabric: Fabric, *, k: int | None = None) -> Schedule:
    """SiPCO in L + k steps, or in L where half of them is enough.

    Args:
        collective: any.
        fabric: a SiPAC.
        k: digits by which each group is scattered, 0 (fewest steps) to L (least volume) [count]; None: 1 for all_reduce, as
            in the paper, 0 for broadcast, reduce and barrier. The other collectives have no choice.
    """
    return digit_walks(collective, fabric.machine_as(Sipac).sides, k)


def digit_walks(collective: Request, radices: tuple[int, ...], k: int | None) -> Schedule:
    """The schedule on nodes with digits of these radices.

    Args:
        collective: any.
        radices: of each digit, the fastest first; nodes that differ in one digit are linked.
        k: as in `sipco`.
    """
    levels = len(radices)
    k = _num_digits(collective, levels, k)
    if collective.name == "send_recv":
        return send_recv(collective, radices)
    space = Space(radices[::-1])  # the first level is the lowest digit
    visited = [[levels - 1 - (group - j) % levels for j in range(levels)] for group in range(levels)]
    if _WALKS[collective.name].root:
        return _rooted(collective, space, visited, k)
    orders = [visits(space.radices, order) for order in visited]
    steps, cut = walk(collective, space, orders, depth=k, listed="digit")
    owned = _WALKS[collective.name].k is None
    chunks = collective.on(space.num_ranks, steps.num_chunks, owner=steps.owners if owned else None)
    return Schedule.of("sipco", chunks, steps, cut=cut)


def _rooted(collective: Request, space: Space, visited: Sequence[Sequence[int]], k: int) -> Schedule:
    """The walks of a collective with a root: the transfers that data of the root, or for it, need.

    A chunk belongs to the node whose digits and those of the chunk add up to the largest.

    Args:
        collective: broadcast, reduce, scatter or gather.
        space: digits of the nodes.
        visited: digits that each group visits, in their order.
        k: digits by which each group is scattered [count].
    """
    kind, levels, n = _WALKS[collective.name], len(space.radices), space.num_ranks
    orders = [tuple((Visit((digit,), space.radices[digit]),) for digit in order) for order in visited]
    every, _ = walk(Request("all_reduce"), space, orders, depth=k, listed="digit")
    digits, size = space.digits(np.arange(n)), every.num_chunks // levels

    def step(i: int) -> Transfers:
        at = i if kind.out else levels + i
        sent = every(at)
        src, dst = n - 1 - sent.src, n - 1 - sent.dst
        of_root = _positions_of_root(kind, levels, k, at)
        as_root = [
            (digits[:, shared] == digits[collective.root, shared]).all(axis=1)
            for shared in (order[of_root.start : of_root.stop] for order in visited)
        ]
        rows = np.array(as_root)[sent.chunk_lo // size, src if kind.root == "from" else dst]
        op = kind.op if at < levels else Op.COPY
        return Transfers.of(src[rows], dst[rows], sent.chunk_lo[rows], sent.chunk_n[rows], op)

    num_steps = (kind.out * levels + kind.back * k) if n > 1 else 0
    owner = n - 1 - every.owners if kind.k is None else None
    return Schedule("sipco", collective.on(n, every.num_chunks, owner=owner), num_steps, step)


def _usual_k(collective: Request) -> int | None:
    """The default k; None where there is no choice."""
    return None if collective.name == "send_recv" else _WALKS[collective.name].k


def _num_digits(collective: Request, levels: int, k: int | None) -> int:
    """Digits of a chunk's number: as given, the default, or all of them."""
    usual = _usual_k(collective)
    return levels if usual is None else min(usual, levels) if k is None else k


def _positions_of_root(kind: _WalkPhases, levels: int, k: int, at: int) -> range:
    """Positions in the walk of a group at which the node that sends data of a root, or receives data for it, has its digits.

    Args:
        kind: phases of the collective.
        levels, k: L and k.
        at: step, counted from the first of all L + k.
    """
    if kind.root == "from":
        return range(at, levels)  # data have spread along the earlier levels
    return range(k, at + 1) if at < levels else range(levels + k - 1 - at, levels)
