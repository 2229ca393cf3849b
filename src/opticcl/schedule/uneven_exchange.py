"""All-reduce by direct exchange where one rank has a laser less than the others.

With p ranks of p lasers, of which one has p - 1, a laser leads to each partner and one is left. The rank that has none left
owns p - 2 chunks, every other rank p. Offsets are counted from sender to receiver:

    step 0 .. p - 2    every rank sends chunk i of each owner in step i; the owner at offset i + 1 also gets chunk p - 1
    step 0 .. p - 1    the weak rank sends chunk p - 1 first, then 0, 1, ..., p - 2: one a step
    step p - 1 + i     the owners hand out: chunk i to all, chunk p - 1 also to the rank at offset i + 1
    step p + i         the weak rank hands out its p - 2 chunks, one a step

2 p - 2 steps, in each of which every laser has at most one chunk: 2 p - 2 of (p - 1) p + p - 2 chunks, where the least is
2 (p - 1) / (p - 1 + (p - 1) / p) of p. A photodiode less is the same backwards.

Source: ours; the bound is that of rates of different size, total traffic over all rates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm

__all__ = ["uneven_exchange"]

FEWEST_NODES, MOST_NODES = 3, 64


class _Weak(NamedTuple):
    """The rank with a laser or a photodiode less, and whether it is a photodiode."""

    rank: int
    receives: bool


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name != "all_reduce":
        return "it does all_reduce"
    machine = fabric.machine
    if not isinstance(machine, Lightpath):
        return "it needs a lightpath fabric"
    n = fabric.num_nodes
    if not (n == machine.lasers and FEWEST_NODES <= n <= MOST_NODES):
        return (
            f"{n} nodes with {machine.lasers} lasers are not as many; it needs {FEWEST_NODES} to {MOST_NODES} of both"
        )
    if not fabric.links_all:
        return "some nodes are not linked"
    return None if _weak(fabric, machine) else "it needs one node with one laser or photodiode less"


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """One, where parts have failed."""
    return [{}] if fabric.conditions else []


@register_algorithm("uneven_exchange", accepts, variants)
def uneven_exchange(collective: Request, fabric: Fabric) -> Schedule:
    """All-reduce by direct exchange where one of p ranks has a laser less than the others, in 2 p - 2 steps."""
    n = fabric.num_nodes
    weak = _weak(fabric, fabric.machine_as(Lightpath))
    assert weak is not None
    first = np.concatenate([[0], np.cumsum(np.where(np.arange(n) == weak.rank, n - 2, n))])
    steps = 2 * n - 2
    tables = _sent(n, weak.rank)
    if weak.receives:
        back = (tables[0].max() - tables[0], tables[2], tables[1], tables[3], 1 - tables[4], tables[5])
        tables = back
    at, src, dst, owner, hands_out, nth = tables
    order = np.lexsort((nth, owner, dst, src, at))
    starts = np.searchsorted(at[order], np.arange(steps + 1))

    def step(i: int) -> Transfers:
        rows = order[starts[i] : starts[i + 1]]
        op = np.where(hands_out[rows] == 1, int(Op.COPY), int(Op.REDUCE))
        return Transfers.of(src[rows], dst[rows], first[owner[rows]] + nth[rows], 1, op)

    return Schedule("uneven_exchange", collective.on(n, int(first[-1])), steps, step)


def _weak(fabric: Fabric, machine: Lightpath) -> _Weak | None:
    """The one rank with one laser or one photodiode less, None if there is no such rank, or another one with less."""
    damage, nodes = machine.damage, fabric.machine_nodes(np.arange(fabric.num_nodes))
    place = {int(tile): rank for rank, tile in enumerate(machine.tile[nodes].tolist())}
    lost = [(place[int(tile)], False) for tile in damage.laser_tile if int(tile) in place]
    lost += [(place[int(tile)], True) for tile in damage.photodiode_tile if int(tile) in place]
    return _Weak(*lost[0]) if len(lost) == 1 else None


def _sent(n: int, weak: int) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Step, sender, receiver, owner, whether the owner hands out, and number among its chunks of every transfer.

    Args:
        n: ranks [count].
        weak: the one with a laser less.
    """
    rank = np.arange(n)
    src, dst = (side.ravel() for side in np.meshgrid(rank, rank, indexing="ij"))
    src, dst = src[src != dst], dst[src != dst]
    offset = (dst - src) % n
    found: list[tuple[IntArray, ...]] = []

    def add(step: IntArray | int, rows: IntArray, number: IntArray | int, gathers: bool) -> None:
        """Transfers of some pairs. Args: step, number: of each; rows: of the pairs; gathers: whether the sender owns them."""
        one = np.ones(len(rows), np.int64)
        owner = src[rows] if gathers else dst[rows]
        found.append((step * one, src[rows], dst[rows], owner, int(gathers) * one, number * one))

    normal, slow = np.flatnonzero(src != weak), np.flatnonzero(src == weak)
    to_normal = normal[dst[normal] != weak]
    for i in range(n - 1):
        rows = normal if i < n - 2 else to_normal
        add(i, rows, i, False)
        add(n - 1 + i, normal, i, True)
    add(offset[to_normal] - 1, to_normal, n - 1, False)
    add(n - 2 + offset[normal], normal, n - 1, True)
    for i in range(n):
        add(i, slow, n - 1 if i == 0 else i - 1, False)
    for i in range(n - 2):
        add(n + i, slow, i, True)
    columns = [np.concatenate(column) for column in zip(*found, strict=True)]
    return columns[0], columns[1], columns[2], columns[3], columns[4], columns[5]
