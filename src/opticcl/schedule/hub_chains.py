"""Broadcast and reduce along chains of hubs on a ring, in pieces that follow each other.

N = b_0 b_1 ... nodes; the root is at distance 0, and hubs of level l are the nodes whose distance from it is a multiple of
s_l = b_0 ... b_(l-1). A chain of the last level leads from the root to all hubs of that level, chains of the level below from
each of them to the hubs between, and so on. No two chains of a level and a direction meet on a segment, so a level needs no
more wavelengths than a single circuit has, and the L levels share them.

    both ways   the message goes to half of the nodes on either side      depth sum floor(b_l / 2)   L V / (w B)
    halves      each half of it goes to all nodes, one way round          depth sum (b_l - 1)        L V / (2 w B)

With S pieces of a chain's share it takes depth + S - 1 steps on circuits that are set once. No circuit is longer than the
distance of two hubs of its level, so that its light closes where that of `spaced_hubs`, which takes fewer steps, does not.

Source: pipelined chains are known, such as in Chan et al. 2007, Collective communication: theory, practice, and experience;
hubs that share the wavelengths of a ring are our own.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.limits import limit
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._pipeline import MOST_PIECES, along_trees
from opticcl.units import Shape

__all__ = ["chains", "hub_chains"]

PIECES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048)
DEEPEST = 128  # chains that a search evaluates: each stage of the beginning and of the end is a class of steps
MOST_TRIED = limit("hub_chains.MOST_TRIED")
MOST_LONG_PIECES = limit("hub_chains.MOST_LONG_PIECES")
MOST_TRIED_LONG = limit("hub_chains.MOST_TRIED_LONG")


def accepts(
    collective: Request, fabric: Fabric, radices: tuple[int, ...] | None = None, pipeline: int = 1, halves: bool = False
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radices: of the levels, the shortest stride first.
        pipeline: pieces of a chain's share [count].
        halves: whether half of the message goes each way round to all nodes.
    """
    if collective.name not in ("broadcast", "reduce"):
        return "it does broadcast, reduce"
    n, chosen = fabric.num_nodes, radices if radices is not None else (fabric.num_nodes,)
    if prod(chosen) != n or (min(chosen) < 2 and n > 1):
        return f"radices={'x'.join(map(str, chosen))} is not a product of factors above 1 that makes {n} nodes"
    if len(chosen) > fabric.lasers_per_port:
        return f"{len(chosen)} levels need as many wavelengths; there are {fabric.lasers_per_port}"
    if not 1 <= pipeline <= MOST_PIECES // 2:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES // 2:,}"
    return (
        None if 2 * n <= MOST_TRANSFERS else SizeLimit(f"{2 * n:,} transfers a step are more than {MOST_TRANSFERS:,}")
    )


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """On a TeraRack: the most even one, two and three levels, both ways and in halves, in up to 2,048 pieces.

    Also one long chain each way in up to 4,096 pieces.
    """
    if collective.name not in ("broadcast", "reduce"):
        return []
    n = fabric.num_nodes
    firsts = [b for b in range(2, n // 2 + 1) if n % b == 0]
    pairs = [(b, n // b) for b in firsts]
    threes = [(a, b, n // a // b) for a in firsts for b in firsts if n // a % b == 0 and n // a > b]
    tried: list[tuple[int, ...]] = [(n,)] if n > 1 else []
    tried += [min(some, key=lambda radices: (sum(radices), radices)) for some in (pairs, threes) if some]
    found: list[dict[str, object] | NotTried] = []
    for radices in tried:
        for halves in (False, True):
            depth = sum(b - 1 if halves else b // 2 for b in radices)
            if depth > DEEPEST or accepts(collective, fabric, radices):
                continue
            if (transfers := 2 * n * 2 * depth) > MOST_TRIED:
                found.append(left_out(transfers, MOST_TRIED, f"radices={'x'.join(map(str, radices))}, halves={halves}"))
            else:
                found += [{"radices": radices, "pipeline": pieces, "halves": halves} for pieces in PIECES]
    long = n - 1 > DEEPEST and not accepts(collective, fabric, (n,))
    if long and (transfers := 4 * n * (n - 1)) > MOST_TRIED_LONG:
        return [*found, left_out(transfers, MOST_TRIED_LONG, f"radices={n}, halves=True")]
    many = {min(times * n, MOST_LONG_PIECES) for times in (4, 8) if long}
    return found + [{"radices": (n,), "pipeline": pieces, "halves": True} for pieces in sorted(many)]


@register_algorithm("hub_chains", accepts, variants, systems=("terarack",))
def hub_chains(
    collective: Request,
    fabric: Fabric,
    *,
    radices: Shape | None = None,
    pipeline: int = 1,
    halves: bool = False,
) -> Schedule:
    """Broadcast or reduce along chains of hubs, S pieces in depth + S - 1 steps.

    Args:
        collective: broadcast or reduce.
        fabric: a TeraRack.
        radices: of the levels, the shortest stride first; their product is the number of nodes; None: one level.
        pipeline: pieces S of a chain's share [count].
        halves: whether half of the message goes each way round to all nodes, and not all of it both ways to half of them.
    """
    n = fabric.num_nodes
    links = chains(radices or (n,), collective.root, halves)[:4]
    steps = along_trees(links, n, pipeline, 1 + halves, down=collective.name == "broadcast")
    return Schedule.of("hub_chains", collective.on(n, steps.num_chunks), steps, stands=True)


def chains(
    radices: tuple[int, ...], root: int, halves: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Child, parent, tree, depth of the child and level of the link, int64 (links,) each; ahead of the parent is a child with
    an even tree or, both ways, a positive distance.

    Args:
        radices: of the levels, the shortest stride first.
        root: node.
        halves: two trees that reach all nodes, one each way, and not one that goes both ways.

    >>> child, parent, tree, depth, level = chains((2, 2), 0, True)
    >>> list(zip(child.tolist(), parent.tolist(), tree.tolist()))
    [(1, 0, 0), (2, 0, 0), (3, 2, 0), (3, 0, 1), (2, 0, 1), (1, 2, 1)]
    """
    n = prod(radices)
    away = np.arange(1, n)
    strides = [prod(radices[:number]) for number in range(len(radices))]
    columns: list[tuple[IntArray, ...]] = []
    for tree in range(1 + halves):
        rest, step, depth, level = away.copy(), np.zeros_like(away), np.zeros_like(away), np.full_like(away, -1)
        for number, (b, s) in enumerate(zip(radices, strides, strict=True)):
            digit = rest // s % b
            if not halves:
                digit = np.where(2 * digit > b, digit - b, digit)
            rest = rest - digit * s
            lowest = (level < 0) & (digit != 0)
            level[lowest] = number
            step[lowest] = np.sign(digit[lowest]) * s
            depth += np.abs(digit)
        way = -1 if tree else 1
        columns.append(((root + way * away) % n, (root + way * (away - step)) % n, np.full(n - 1, tree), depth, level))
    child, parent, number_of_tree, depth, level = (np.concatenate(column) for column in zip(*columns, strict=True))
    return child, parent, number_of_tree, depth, level
