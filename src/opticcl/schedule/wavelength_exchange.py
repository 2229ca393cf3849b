"""All-to-all exchange on a ring of fibres, by laps: arcs of one wavelength that close the circle.

      a ---> x ---> b        node a, its antipode b, and one node of either side: four arcs, once round the ring,
      ^             |        carry the data of x and y for a and b and the other way round on one wavelength
      +---- y <-----+        clockwise (drawn) and one counter-clockwise

Pair k is a = k and b = h + k with h = floor(N / 2); x and y run over the nodes behind them on either side that no
earlier pair has used. An odd N leaves one y over, which makes laps of three arcs; an even N leaves a and b
themselves, a lap of two arcs, clockwise and counter-clockwise in turn. So every fibre is full: N nodes take N^2 / 8
wavelengths (rounded up) in both directions, and where w wavelengths are fewer, a step takes the next w laps each way.

Source: WRHT section 4.1.2, which gives ceil(N^2 / 8) and no assignment.
Reading: for odd N (N^2 - 1) / 8 suffice. The paper leaves the wavelengths to first fit, which needs more from N = 8 on
(over 70 instead of 61 for 22 nodes).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.terarack import Terarack
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.phases import Steps
from opticcl.schedule import register_algorithm

__all__ = ["CLOCKWISE", "COUNTER_CLOCKWISE", "arcs", "channels", "exchange_wavelengths", "lap_of"]

CLOCKWISE, COUNTER_CLOCKWISE = 0, 1
MAX_STEPS = limit("wavelength_exchange.MAX_STEPS")

HALVES = {  # operations on a block that its receiver, or its sender, owns
    "all_to_all": (Op.MOVE,),
    "reduce_scatter": (Op.REDUCE,),
    "all_gather": (Op.COPY,),
    "all_reduce": (Op.REDUCE, Op.COPY),
}


def exchange_wavelengths(num_nodes: int) -> int:
    """Wavelengths (each in both directions) for an all-to-all exchange among `num_nodes` nodes of a ring.

    Args: num_nodes: R >= 1; their positions on the ring do not matter.
    Source: WRHT section 4.1.2, ceil(R^2 / 8).
    Reading: for odd R (R^2 - 1) / 8, see above.

    >>> [exchange_wavelengths(r) for r in (2, 3, 4, 5, 8, 22)]
    [1, 1, 2, 3, 8, 61]
    """
    return -(-(num_nodes**2 - num_nodes % 2) // 8)


def channels(fabric: Fabric) -> int:
    """Wavelengths w of one direction, over all rings [count]."""
    machine = fabric.machine
    return fabric.num_wavelengths * (machine.rings if isinstance(machine, Terarack) else 1)


def num_exchange_steps(fabric: Fabric) -> int:
    """Steps of an all-to-all exchange among all nodes of a ring: the fewest possible, as every step fills every fibre."""
    return -(-exchange_wavelengths(fabric.num_nodes) // channels(fabric)) if fabric.num_nodes > 1 else 0


def lap_of(num_nodes: int, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
    """Direction and lap of the arc from one node to another, int64 (n,) each.

    Args:
        num_nodes: R >= 2; nodes are counted along the ring.
        src, dst: ends of each arc, two nodes.

    >>> [column.tolist() for column in lap_of(5, np.array([0, 1, 3, 2]), np.array([1, 3, 4, 0]))]
    [[0, 0, 0, 1], [0, 2, 2, 1]]
    """
    half = num_nodes // 2
    src, dst = (np.asarray(end, np.int64) for end in (src, dst))
    src_behind, dst_behind = src >= half, dst >= half
    first, second = src - half * src_behind, dst - half * dst_behind
    pair, behind = np.minimum(first, second), np.abs(first - second)
    counter = (first < second) == (src_behind != dst_behind)
    counter = np.where(behind == 0, src_behind if num_nodes % 2 else pair % 2 == 1, counter)
    behind = np.where(behind == 0, half - pair, behind)
    direction = np.where(counter, COUNTER_CLOCKWISE, CLOCKWISE)
    return direction, _first_lap(num_nodes, pair, direction) + behind - 1


def arcs(num_nodes: int, first: int, count: int) -> tuple[IntArray, IntArray]:
    """Senders and receivers of the arcs of some laps in both directions, int64 (n,) each; laps beyond the last have none.

    Args:
        num_nodes: R >= 1; nodes are counted along the ring.
        first: lap.
        count: laps [count].

    >>> [column.tolist() for column in arcs(3, 0, 1)]
    [[0, 1, 2, 1, 0, 2], [1, 2, 0, 0, 2, 1]]
    """
    half, found = num_nodes // 2, list[IntArray]()
    for direction in (CLOCKWISE, COUNTER_CLOCKWISE):
        begins = _first_lap(num_nodes, np.arange(half + 1), direction)
        lap = np.arange(first, min(first + count, int(begins[-1])))
        pair = np.searchsorted(begins, lap, side="right") - 1
        member = pair + lap - begins[pair] + 1
        node, antipode = (pair, half + pair) if direction == CLOCKWISE else (half + pair, pair)
        one = np.where(member < half, member, antipode)
        other = np.where((member < half) | bool(num_nodes % 2), half + member, antipode)
        found.append(np.stack([node, one, antipode, other, node]))
    src, dst = (np.concatenate([stops[side].T.ravel() for stops in found]) for side in (slice(4), slice(1, 5)))
    return src[src != dst], dst[src != dst]


def _first_lap(num_nodes: int, pair: IntArray, direction: IntArray | int) -> IntArray:
    """First lap of each pair in a direction: each has a lap for every later pair, and those without a node left one more."""
    more = pair if num_nodes % 2 else (pair + 1 - direction) // 2
    return pair * (num_nodes // 2 - 1) - pair * (pair - 1) // 2 + more


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name not in HALVES:
        return f"it does {', '.join(HALVES)}"
    steps = num_exchange_steps(fabric)
    if steps > MAX_STEPS:
        return (
            f"{fabric.num_nodes} nodes take {steps:,} steps with {channels(fabric)} wavelengths; at most {MAX_STEPS:,}"
        )
    return None


def _variants(collective: Request, fabric: Fabric) -> Iterable[dict[str, Any]]:
    """None where a ring takes fewer steps of the same size."""
    if (
        not isinstance(fabric.machine, Terarack)
        or collective.name == "all_to_all"
        or num_exchange_steps(fabric) < fabric.num_nodes
    ):
        yield {}


@register_algorithm("wavelength_exchange", accepts, _variants, systems=("terarack",))
def wavelength_exchange(collective: Request, fabric: Fabric) -> Schedule:
    """Direct exchange of blocks over wavelengths: all_to_all, reduce_scatter, all_gather; all_reduce is the last two.

    A half takes W(N) / w steps (rounded up), each of one block of N per transfer.

    Source: WRHT section 4.1.2.
    """
    n = fabric.num_nodes
    half = num_exchange_steps(fabric)
    ops = HALVES[collective.name]

    def step(i: int) -> Transfers:
        number, at = divmod(i, half)
        (src, dst), op = arcs(n, at * channels(fabric), channels(fabric)), ops[number]
        return Transfers.of(src, dst, src if op == Op.COPY else dst, 1, op, parts=1 if op == Op.MOVE else None)

    steps = Steps.listed(n, n, half * len(ops), step, sends=True)
    return Schedule.of("wavelength_exchange", collective.on(n, n), steps)
