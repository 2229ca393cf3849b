"""Trees that share links: planned one after the other, then again and again beside all others.

A tree grows from its root by the node that costs least, a link costs more the more it and its ports carry over their rate:

    cost of a link = least + (load with this tree / largest load) ** steepness          steepness 4 at first, 60 at last

The search keeps the trees whose busiest link carries least. Shallow trees fill and empty a pipeline sooner; `share` is what the
distance from the root counts in the cost of a node. Where roots are free, a tree takes the one from which its links cost least.

Source: Garg and Koenemann 2007 for costs that grow with the load; Edmonds 1973: such trees exist up to the smallest cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.schedule._links_left import LinksLeft

__all__ = ["Forest", "below", "busiest", "in_turns", "pack"]

LEAST_COST = 0.02
KNOWN, KNOWN_SPREAD = 256, 7919.0
FIRST_STEEPNESS, LAST_STEEPNESS = 4.0, 60.0
MOST_PASSES, FEWEST_PASSES = 60, 4
WORK = limit("tree_packing.WORK")

Floats = npt.NDArray[np.float64]


class Forest(NamedTuple):
    """Trees: parent of each node in each, itself at the root, int64 (trees, ranks); depth likewise; and the root of each."""

    parent: IntArray
    depth: IntArray
    root: IntArray


def below(forest: Forest) -> IntArray:
    """Nodes of each subtree, with its root, int64 (trees, ranks)."""
    found = np.ones_like(forest.parent)
    for depth in range(int(forest.depth.max()), 0, -1):
        tree, node = np.nonzero(forest.depth == depth)
        np.add.at(found, (tree, forest.parent[tree, node]), found[tree, node])
    return found


def busiest(links: LinksLeft, loads: Floats, pieces: int) -> Floats:
    """The largest of what a link or a port carries over its wavelengths in each step of a pipeline, float64 (steps,).

    Args:
        links: that carry it.
        loads: of each pair in the stages of one piece, float64 (stages, ranks, ranks).
        pieces: that follow each other, a stage apart [count].
    """
    stages, steps = len(loads), len(loads) + pieces - 1
    begun = np.cumsum(loads, axis=0)
    load = begun[np.minimum(np.arange(steps), stages - 1)]
    load[pieces:] -= begun[: steps - pieces]
    busy: Floats = (load / np.maximum(links.width, 1)).max(axis=(1, 2))
    for width, receivers in zip(links.port_width, (2, 1), strict=True):  # summed over receivers, and over senders
        for port in range(links.ports):
            carried = np.where(links.port == port, load, 0.0).sum(axis=receivers)
            busy = np.maximum(busy, (carried / np.maximum(width[:, port], 1)).max(axis=1))
    return busy


def pack(
    links: LinksLeft,
    roots: IntArray,
    up: bool,
    down: bool,
    *,
    counted: bool,
    share: float,
    enough: float,
    free: bool,
) -> tuple[Forest | None, Forest | None]:
    """In-trees and out-trees of the given roots.

    Args:
        links: that are left.
        roots: of the trees, int64 (trees,).
        up: whether there are in-trees.
        down: whether there are out-trees.
        counted: whether a link of an in-tree carries as many chunks as there are nodes below it.
        share: of the distance from the root in the cost of a node: 1 for shortest paths, 0 for cheap links alone.
        enough: load of the busiest link over its wavelengths with which the search ends.
        free: whether a tree may have any other root; an in-tree has that of the out-tree of its number.
    """
    n = len(links.width)
    visits = len(roots) * n * n * (up + down) * (n if free else 1)
    passes = min(MOST_PASSES, max(FEWEST_PASSES, WORK // visits))
    random = np.random.default_rng(0)
    turns = np.array([random.permutation(len(roots)) for _ in range(passes)])
    width, sent, received = (side.astype(float) for side in (links.width, *links.port_width))
    wanted = np.array([up, down])
    parent, depth, chosen = _search(
        width, sent, received, links.port, np.asarray(roots, np.int64), wanted, counted, share, turns, enough, free
    )
    made = [Forest(parent[kind], depth[kind], chosen) if wanted[kind] else None for kind in range(2)]
    return made[0], made[1]


def in_turns(stages: list[IntArray], lag: int) -> tuple[list[IntArray], int]:
    """Steps of the first piece of every tree, in each of which a link has one transfer; the next piece follows a period later.

    A transfer waits for those that it needs and for the turn of its link; those with the longest way before them go first.

    Args:
        stages: sender, receiver, tree, operation and contributions of every transfer, int64 (5, m) each; a transfer needs
            those of its tree in earlier stages that end at its sender.
        lag: steps from the start of a transfer until what it brings goes on, at least 1 [count].
    """
    src, dst, tree, _, _ = rows = np.concatenate(stages, axis=1)
    stage = np.repeat(np.arange(len(stages)), [each.shape[1] for each in stages])
    n = int(max(src.max(), dst.max())) + 1
    link = src * n + dst
    period = int(np.bincount(link).max())
    sender, receiver = tree * n + src, tree * n + dst
    places = (int(tree.max()) + 1) * n
    arrived, longest = np.zeros(places, np.int64), np.zeros(places, np.int64)
    needs, chain = np.zeros(len(src), np.int64), np.zeros(len(src), np.int64)
    by_stage = [np.flatnonzero(stage == s) for s in range(len(stages))]
    for at in by_stage:
        needs[at] = arrived[sender[at]]
        np.add.at(arrived, receiver[at], 1)
    for at in reversed(by_stage):
        chain[at] = 1 + longest[receiver[at]]
        np.maximum.at(longest, sender[at], chain[at])
    start = _turns(sender, receiver, link, needs, np.argsort(-chain, kind="stable"), places, n * n, period, lag)
    return [rows[:, start == at] for at in range(int(start.max()) + 1)], period


@njit
def _turns(sender, receiver, link, needs, order, places, links, period, lag):  # type: ignore[no-untyped-def]
    start = np.full(len(sender), -1, np.int64)
    taken = np.zeros((links, period), np.bool_)
    arrived, waiting = np.zeros(places, np.int64), np.zeros((lag, places), np.int64)
    at, left = 0, len(sender)
    while left:
        now = waiting[at % lag]
        arrived += now
        now[:] = 0
        for row in order:
            if start[row] < 0 and not taken[link[row], at % period] and arrived[sender[row]] >= needs[row]:
                start[row] = at
                taken[link[row], at % period] = True
                now[receiver[row]] += 1
                left -= 1
        at += 1
    return start


@njit
def _busy(i, j, width, port, sent_width, received_width, load, sent, received, more):  # type: ignore[no-untyped-def]
    p = port[i, j]
    return max(
        (load[i, j] + more) / width[i, j],
        (sent[i, p] + more) / max(1.0, sent_width[i, p]),
        (received[j, p] + more) / max(1.0, received_width[j, p]),
    )


@njit
def _grow(cost, root, share, inwards, parent, order, distance, waiting):  # type: ignore[no-untyped-def]
    n = len(cost)
    distance[:] = np.inf
    distance[root] = 0.0
    parent[:] = root
    waiting[:] = True
    for nth in range(n):
        best = -1
        for v in range(n):
            if waiting[v] and (best < 0 or distance[v] < distance[best]):
                best = v
        waiting[best] = False
        order[nth] = best
        through = share * distance[best]
        for v in range(n):
            if waiting[v]:
                far = through + (cost[v, best] if inwards else cost[best, v])
                if far < distance[v]:
                    distance[v] = far
                    parent[v] = best


@njit
def _largest(width, port, sent_width, received_width, load, sent, received, least):  # type: ignore[no-untyped-def]
    n = len(width)
    top = least
    for i in range(n):
        for j in range(n):
            if width[i, j] > 0:
                top = max(top, _busy(i, j, width, port, sent_width, received_width, load, sent, received, 0.0))
    return top


@njit
def _price(width, port, sent_width, received_width, load, sent, received, steepness, cost):  # type: ignore[no-untyped-def]
    n = len(width)
    top = _largest(width, port, sent_width, received_width, load, sent, received, 1e-9)
    # loads are few different numbers, and powers take most of the time
    known, price = np.full(KNOWN, -1.0), np.zeros(KNOWN)
    for i in range(n):
        for j in range(n):
            if width[i, j] > 0:
                busy = _busy(i, j, width, port, sent_width, received_width, load, sent, received, 1.0)
                place = int(busy * KNOWN_SPREAD) % KNOWN
                if known[place] != busy:
                    known[place], price[place] = busy, LEAST_COST + (busy / top) ** steepness
                cost[i, j] = price[place]


@njit
def _describe(root, parent, order, summed, depth, weight):  # type: ignore[no-untyped-def]
    """Depth of each node of a tree, and what its link carries: one chunk, or one for each node below if they are summed up."""
    for v in order:
        depth[v] = 0 if v == root else depth[parent[v]] + 1
    weight[:] = 1.0
    if summed:
        for v in order[:0:-1]:
            weight[parent[v]] += weight[v]


@njit
def _carry(root, parent, inwards, weight, sign, port, load, sent, received):  # type: ignore[no-untyped-def]
    """Add a tree to the loads, or take it away."""
    for v in range(len(parent)):
        if v != root:
            i, j = (v, parent[v]) if inwards else (parent[v], v)
            much = sign * weight[v]
            load[i, j] += much
            sent[i, port[i, j]] += much
            received[j, port[i, j]] += much


@njit
def _cheapest_root(cost, wanted, share, parent, order, distance, waiting):  # type: ignore[no-untyped-def]
    """The root from which the links of an in-tree and of an out-tree cost least."""
    n = len(cost)
    best, least = 0, np.inf
    for root in range(n):
        total = 0.0
        for kind in range(2):
            if wanted[kind]:
                _grow(cost, root, share, kind == 0, parent, order, distance, waiting)
                for v in range(n):
                    if v != root:
                        total += cost[v, parent[v]] if kind == 0 else cost[parent[v], v]
        if total < least:
            best, least = root, total
    return best


@njit
def _search(width, sent_width, received_width, port, roots, wanted, counted, share, turns, enough, free):  # type: ignore[no-untyped-def]
    n, trees = len(width), len(roots)
    roots = roots.copy()
    kept_roots, trial = roots.copy(), np.zeros(n, np.int64)
    load = np.zeros((n, n))
    sent, received = np.zeros(sent_width.shape), np.zeros(sent_width.shape)
    parent, depth = np.zeros((2, trees, n), np.int64), np.zeros((2, trees, n), np.int64)
    weight = np.zeros((2, trees, n))
    kept_parent, kept_depth = parent.copy(), depth.copy()
    cost, distance = np.full((n, n), np.inf), np.zeros(n)
    order, waiting = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    least = np.inf
    passes = len(turns)
    for number in range(passes):
        steepness = FIRST_STEEPNESS + (LAST_STEEPNESS - FIRST_STEEPNESS) * number / passes
        for t in turns[number]:
            if free:
                for kind in range(2):
                    if wanted[kind] and number > 0:
                        _carry(roots[t], parent[kind, t], kind == 0, weight[kind, t], -1.0, port, load, sent, received)
                _price(width, port, sent_width, received_width, load, sent, received, steepness, cost)
                roots[t] = _cheapest_root(cost, wanted, share, trial, order, distance, waiting)
            for kind in range(2):
                if not wanted[kind]:
                    continue
                mine, root, inwards, carried = parent[kind, t], roots[t], kind == 0, weight[kind, t]
                if number > 0 and not free:
                    _carry(root, mine, inwards, carried, -1.0, port, load, sent, received)
                _price(width, port, sent_width, received_width, load, sent, received, steepness, cost)
                _grow(cost, root, share, inwards, mine, order, distance, waiting)
                _describe(root, mine, order, counted and inwards, depth[kind, t], carried)
                _carry(root, mine, inwards, carried, 1.0, port, load, sent, received)
        top = _largest(width, port, sent_width, received_width, load, sent, received, 0.0)
        if top < least - 1e-9:
            least = top
            kept_parent, kept_depth, kept_roots = parent.copy(), depth.copy(), roots.copy()
        if least <= enough + 1e-9:
            break
    return kept_parent, kept_depth, kept_roots
