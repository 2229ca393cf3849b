"""Broadcast and reduce along chains of hubs on a ring, spaced so that all nodes are equally deep.

A chain leads from the root to hubs, chains of the level below from each of them into its territory, and so on; pieces of the
message follow each other, as in `hub_chains`. There hubs have equal distances, so only the last node of the last chain is as
deep as the schedule. Here a hub that the message reaches later has a smaller territory: with D steps and L levels

    halves      half of the message each way round     w(L, D) = w(L-1, 0) + ... + w(L-1, D) = (D + L choose L) nodes
    both ways   all of it, to half of the nodes        w(L, D) = w(L-1, D) + 2 (w(L-1, 0) + ... + w(L-1, D-1))

Three levels, D = 2, halves, ten nodes; o are hubs of the first chain:

    node      0 1 2 3 4 5 6 7 8 9
    level 2   o ----------> o -----> o
    level 1   0 ----> 3 -> 5   6 -> 8
    level 0   0 1 2   3 4      6 7

No two chains of a level and a direction meet on a segment, so the L levels share the wavelengths. With S pieces of a chain's
share it takes D + S - 1 steps on circuits that are set once. 1,024 nodes are 4 steps away with 6 levels both ways, and 8 with
5 levels in halves, where equal distances take 15.

Source: the numbers of nodes are those of virtual paths on a line with D hops and L paths on a link (Gerstel, Cidon and Zaks
1996, The layout of virtual paths in ATM networks); pipelined chains as in Chan et al. 2007, Collective communication: theory,
practice, and experience. Both together on the wavelengths of a ring are our own.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Schedule, numbered
from opticcl.ir.limits import limit
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._pipeline import MOST_PIECES, along_trees

__all__ = ["HubLinks", "hub_depth", "hub_links", "spaced_hubs"]

PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
HALVES = (2, 3, 4, 5)
BOTH_WAYS = (3, 4, 6, 9)
MANY_PIECES = (1024, 2048)  # of two levels, whose share of gigabytes they are for
DEEPEST = 128  # steps of a piece of a schedule that a search evaluates
MOST_TRIED = limit("spaced_hubs.MOST_TRIED")

HubLinks = tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]
"""Child, parent, tree, depth of the child, level and direction of each link (0: ahead, 1: back), int64 (links,) each."""


def accepts(
    collective: Request, fabric: Fabric, levels: int = 3, pipeline: int = 1, halves: bool = False
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        levels: of chains [count].
        pipeline: pieces of a chain's share [count].
        halves: whether half of the message goes each way round to all nodes.
    """
    if collective.name not in ("broadcast", "reduce"):
        return "it does broadcast, reduce"
    if not 1 <= levels <= fabric.lasers_per_port:
        return f"levels={levels} need as many wavelengths; try 1 to {fabric.lasers_per_port}"
    if not 1 <= pipeline <= MOST_PIECES // 2:
        return f"pipeline={pipeline} is not 1 to {MOST_PIECES // 2:,}"
    rows = 2 * fabric.num_nodes
    return None if rows <= MOST_TRANSFERS else SizeLimit(f"{rows:,} transfers a step are more than {MOST_TRANSFERS:,}")


def variants(collective: Request, fabric: Fabric) -> list[dict[str, object] | NotTried]:
    """On a TeraRack: two to five levels in halves and three to nine both ways, in up to 512 pieces, of two levels
    in up to 2,048."""
    if collective.name not in ("broadcast", "reduce"):
        return []
    n, tried = fabric.num_nodes, list[dict[str, object] | NotTried]()
    for halves, levels in [*((True, one) for one in HALVES), *((False, one) for one in BOTH_WAYS)]:
        depth = hub_depth(n, levels, halves)
        if accepts(collective, fabric, levels) or depth > DEEPEST:
            continue
        if (transfers := 2 * depth * 2 * n) > MOST_TRIED:
            tried.append(left_out(transfers, MOST_TRIED, f"levels={levels}, halves={halves}"))
            continue
        for pieces in (*PIECES, *(MANY_PIECES if levels == 2 else ())):
            tried.append({"levels": levels, "pipeline": pieces, "halves": halves})
    return tried


@register_algorithm("spaced_hubs", accepts, variants, systems=("terarack",))
def spaced_hubs(
    collective: Request, fabric: Fabric, *, levels: int = 3, pipeline: int = 1, halves: bool = False
) -> Schedule:
    """Broadcast or reduce along hubs whose regions shrink with the depth D, S pieces in D + S - 1 steps.

    Args:
        collective: broadcast or reduce.
        fabric: a TeraRack.
        levels: L of chains [count].
        pipeline: pieces S of a chain's share [count].
        halves: whether half of the message goes each way round to all nodes, and not all of it both ways to half of them.
    """
    n = fabric.num_nodes
    links = hub_links(n, levels, collective.root, halves)[:4]
    steps = along_trees(links, n, pipeline, 1 + halves, down=collective.name == "broadcast")
    return Schedule.of("spaced_hubs", collective.on(n, steps.num_chunks), steps, stands=True)


def hub_depth(num_nodes: int, levels: int, halves: bool) -> int:
    """Least number of steps D in which a piece reaches all nodes [count].

    Args:
        num_nodes: on the ring [count].
        levels: of chains [count].
        halves: whether chains go one way.

    >>> hub_depth(1024, 5, True), hub_depth(1024, 4, False), hub_depth(1024, 1, True)
    (8, 6, 1023)
    """
    reached = _widths(num_nodes, levels, halves)[-1]
    due = num_nodes if halves else 2 * (num_nodes // 2) + 1
    return int(np.searchsorted(reached, due))


def _widths(num_nodes: int, levels: int, halves: bool) -> list[IntArray]:
    """Nodes of the territory of a hub with k levels of chains and r steps, at most 4 N; int64 (N,) for each k = 0, ..., L.

    Args:
        num_nodes: N.
        levels: L.
        halves: whether chains go one way.
    """
    widths: list[IntArray] = [np.ones(num_nodes, np.int64)]
    for _ in range(levels):
        below, sums = widths[-1], np.cumsum(widths[-1])
        widths.append(np.minimum(sums if halves else 2 * sums - below, 4 * num_nodes))
    return widths


def hub_links(num_nodes: int, levels: int, root: int, halves: bool) -> HubLinks:
    """Links of all chains.

    Args:
        num_nodes: on the ring [count].
        levels: of chains [count].
        root: node.
        halves: two trees that reach all nodes, one each way, and not one that goes both ways.

    >>> child, parent, tree, depth, *_ = hub_links(4, 2, 0, True)
    >>> list(zip(child.tolist(), parent.tolist(), tree.tolist(), depth.tolist()))
    [(3, 0, 0, 1), (1, 0, 0, 1), (2, 1, 0, 2), (1, 0, 1, 1), (3, 0, 1, 1), (2, 3, 1, 2)]
    """
    behind = 0 if halves else (num_nodes - 1) // 2
    child, parent, depth, level = _links(num_nodes, levels, behind, halves)
    columns = [(child, parent), (-child, -parent)] if halves else [(child, parent)]
    every = len(columns)
    child, parent = (np.concatenate([pair[end] for pair in columns]) for end in (0, 1))
    tree = np.repeat(np.arange(every), len(depth))
    direction = (child < parent).astype(np.int64)
    ends = (root + child) % num_nodes, (root + parent) % num_nodes
    return *ends, tree, np.tile(depth, every), np.tile(level, every), direction


def _links(num_nodes: int, levels: int, behind: int, halves: bool) -> tuple[IntArray, ...]:
    """Child, parent, depth and level of each link, as distances from the root.

    Args:
        num_nodes: on the ring [count].
        levels: of chains [count].
        behind: nodes that are reached backwards [count].
        halves: whether chains go one way.
    """
    widths, deepest = _widths(num_nodes, levels, halves), hub_depth(num_nodes, levels, halves)
    # a row a hub: where it is, nodes of its territory behind and ahead of it, steps that it has left
    hub, back, ahead, left = (np.array([one]) for one in (0, behind, num_nodes - 1 - behind, deepest))
    links: list[tuple[IntArray, ...]] = []
    for number in reversed(range(levels)):
        width, sums = widths[number], np.cumsum(widths[number])
        inner = width[left] - 1 if halves else (width[left] - 1) // 2
        hubs = [(hub, np.minimum(back, inner), np.minimum(ahead, inner), left)]
        for way, extent in ((1, ahead), (-1, back)):
            row, nth = numbered(left)
            nth += 1
            begin = inner[row] + sums[left[row] - 1] - sums[left[row] - nth]  # nodes between the hub and the territory
            kept = begin < extent[row]
            row, nth, begin = row[kept], nth[kept], begin[kept]
            rest = left[row] - nth
            size = np.minimum(extent[row] - begin, width[rest])
            near = np.zeros_like(size) if halves else size // 2
            far = size - 1 - near
            at = hub[row] + way * (begin + 1 + near)
            before = np.where(nth == 1, hub[row], np.concatenate([[0], at[:-1]]))
            links.append((at, before, deepest - rest, np.full(len(at), number)))
            hubs.append((at, near, far, rest) if way > 0 else (at, far, near, rest))
        hub, back, ahead, left = (np.concatenate(column) for column in zip(*hubs, strict=True))
    child, parent, depth, level = (np.concatenate(column) for column in zip(*links, strict=True))
    return child, parent, depth, level
