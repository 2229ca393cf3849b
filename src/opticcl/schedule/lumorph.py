"""LUMORPH-k: recursive halving and doubling with k - 1 peers in each step.

The number of a node is written with m digits of radices k_1, ..., k_m (N = k_1 ... k_m, the first digit the lowest). In
step i the k_i nodes that differ only in digit i exchange: each receives from the others the chunks that it owns from then on.

    reduce-scatter, i = 1..m    each peer gets N / (k_1 ... k_i) chunks: those that have the peer's digit
    all-gather,     i = m..1    each peer gets the chunks that the sender holds, as many
    all-to-all,     i = 1..m    as in the reduce-scatter, but k_1 ... k_(i-1) contributions of each chunk
    barrier,        i = 1..m    each peer gets the partial sum of the sender, one chunk

    N = 16, radix 4             1 <-> 2 3 4 by 4 chunks, 1 <-> 5 9 13 by 1 chunk, and back again

Chunks are numbered by the same digits in reversed order, so that the chunks that a node owns are always one range.

Source: LUMORPH sections 4 and 4.1, appendix B, figure 13.
Reading: the paper has only powers of two and four. Other numbers of nodes take the largest digit that divides them,
at most the radix; a prime above the radix is a digit of its own. Figure 13 gathers with the first digit first; here the
order is mirrored, which has the same sizes (B/16, then B/4), keeps the chunks in ranges and lets the circuits of the
middle step stand. What appendix B adds up to "the total amount of data sent" is the amount for each of the three peers.
The all-to-all by digits is an own construction: it has the rounds and the bytes of the paper's (Bruck's, see `bruck`)
wherever N has the digits, and needs no rotation.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._walk import visits, walk
from opticcl.units import Shape

__all__ = ["digit_of_step", "digits", "lumorph", "peers", "rank_of_node"]

DOES = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")


def digits(num_nodes: int, radix: int = 2, factors: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Radices k_1, ..., k_m of the digits of a node's number; none for a single node.

    Args:
        num_nodes: nodes, >= 1 [count].
        radix: the largest digit, >= 2.
        factors: the radices themselves, product num_nodes; None: the largest possible ones.

    >>> digits(128, 4), digits(96, 4), digits(12, 2), digits(13, 4)
    ((4, 4, 4, 2), (4, 4, 3, 2), (2, 2, 3), (13,))
    """
    if factors is not None:
        return tuple(k for k in factors if k > 1)
    found, rest = [], num_nodes
    while rest > 1:
        fitting = (k for k in range(min(radix, rest), 1, -1) if rest % k == 0)
        found.append(next(fitting, 0) or _smallest_factor(rest))
        rest //= found[-1]
    return tuple(found)


def _smallest_factor(number: int) -> int:
    k = 2
    while k * k <= number:
        if number % k == 0:
            return k
        k += 1
    return number


def digit_of_step(ks: tuple[int, ...], collective: str, step: int) -> tuple[int, int]:
    """Radix of the digit that a step exchanges and the distance of nodes that differ by one in it.

    Args:
        ks: radices of all digits.
        collective: its name; a gather begins with the last digit.
        step: index of the step.

    >>> [digit_of_step((4, 3), "all_reduce", step) for step in range(4)]
    [(4, 1), (3, 4), (3, 4), (4, 1)]
    """
    i = 2 * len(ks) - 1 - step if _gathers(ks, collective, step) else step
    i -= len(ks) * (collective == "all_gather")
    return ks[i], prod(ks[:i])


def _gathers(ks: tuple[int, ...], collective: str, step: int) -> bool:
    """Whether the step sends results rather than contributions."""
    return collective == "all_gather" or step >= len(ks)


def peers(num_nodes: int, k: int, stride: int) -> IntArray:
    """The nodes that differ from each node in one digit only, itself included, in the order of that digit.

    Args:
        num_nodes: nodes [count].
        k: radix of the digit.
        stride: distance of nodes that differ by one in it.
    Returns: int32 (num_nodes, k).

    >>> peers(6, 3, 2)[[0, 5]].tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    nodes = np.arange(num_nodes, dtype=np.int32)[:, None]
    value = np.arange(k, dtype=np.int32)[None, :]
    return nodes + (value - nodes // stride % k) * np.int32(stride)


def rank_of_node(ks: tuple[int, ...]) -> IntArray:
    """The chunk that each node owns: its digits in reversed order, int64 (num_nodes,).

    >>> rank_of_node((2, 3)).tolist()
    [0, 3, 1, 4, 2, 5]
    """
    rest = np.arange(prod(ks))
    rank = np.zeros_like(rest)
    for k in ks:
        rest, digit = np.divmod(rest, k)
        rank = rank * k + digit
    return rank


def accepts(collective: Request, fabric: Fabric, radix: int = 2, factors: Shape | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radix, factors: as the algorithm takes them.
    """
    n = fabric.num_nodes
    if collective.name not in DOES:
        return f"it does {', '.join(DOES)}; try tree or mesh"
    if radix < 2:
        return f"radix={radix}; a digit has at least 2 values, try radix=2"
    if factors is not None and prod(factors) != n:
        written, right = ("x".join(map(str, f)) for f in (factors, digits(n, radix) or (1,)))
        return f"factors={written} make {prod(factors)} nodes, not {n}; try factors={right}"
    ks = digits(n, radix, factors)
    if n * (max(ks, default=1) - 1) > MOST_TRANSFERS:
        step = f"a digit of {max(ks)} means {n * (max(ks) - 1):,} transfers a step"
        return SizeLimit(f"{step}, more than {MOST_TRANSFERS:,}; try a number of nodes with smaller prime factors")
    if fabric.links_all:
        return None
    nodes = np.arange(n)
    for i, k in enumerate(ks):
        stride = prod(ks[:i])
        digit = nodes // stride % k
        for offset in range(1, k):
            peers = nodes + ((digit + offset) % k - digit) * stride
            if not fabric.linked(nodes, peers).all():
                return f"not all nodes that differ in digit {i + 1} of {'x'.join(map(str, ks))} are linked"
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Radices 2, 4, 8 and 16 with distinct digits."""
    different = {digits(fabric.num_nodes, radix): radix for radix in (16, 8, 4, 2)}
    return [{"radix": radix} for radix in sorted(different.values())]


@register_algorithm("lumorph", accepts, variants)
def lumorph(collective: Request, fabric: Fabric, *, radix: int = 2, factors: Shape | None = None) -> Schedule:
    """LUMORPH's exchange by the m digits of ranks: an all-reduce in 2 m steps, any other collective in m.

    Args:
        collective: all_reduce, reduce_scatter, all_gather, all_to_all or barrier.
        fabric: the fabric.
        radix: nodes that exchange with each other in a step; 2 is LUMORPH-2, 4 is LUMORPH-4.
        factors: the radix of each digit, such as 4x4x2; None: as few digits as the radix allows.
    """
    ks = digits(fabric.num_nodes, radix, factors)
    space = Space(ks[::-1] or (1,))  # the first digit is the lowest
    whole = collective.name == "barrier"
    order = range(len(ks) - 1, -1, -1)
    steps, cut = walk(collective, space, [visits(space.radices, order)], depth=0 if whole else None)
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=None if whole else steps.owners)
    return Schedule.of("lumorph", chunks, steps, parameters={"radix": radix, "factors": factors}, cut=cut)
