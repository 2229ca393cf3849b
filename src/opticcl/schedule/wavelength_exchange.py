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
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.terarack import Terarack
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.kernels import njit
from opticcl.schedule import needs_whole, register_algorithm

__all__ = ["CLOCKWISE", "COUNTER_CLOCKWISE", "Arcs", "arcs", "channels", "exchange_wavelengths", "num_exchange_steps"]

CLOCKWISE, COUNTER_CLOCKWISE = 0, 1
MAX_STEPS = 1 << 16

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


@dataclass(frozen=True, slots=True)
class Arcs:
    """Transfers of an exchange with their circuits, as columns of int32: nodes, direction, lap (one wavelength each).

    Args:
        src, dst: nodes.
        direction: of each arc.
        lap: of each arc, counted from the first of its step.
        starts: arc at which each step begins, and their number, int64 (steps + 1,).
    """

    src: IntArray
    dst: IntArray
    direction: IntArray
    lap: IntArray
    starts: IntArray


@lru_cache(maxsize=2)  # the schedule and the circuits of a step use the same arcs
def arcs(num_nodes: int, first_lap: int, num_laps: int, num_steps: int = 1) -> Arcs:
    """The arcs of a range of laps in both directions, step by step; laps beyond the last have none.

    Args:
        num_nodes: R >= 1; nodes are counted along the ring.
        first_lap: first lap.
        num_laps: laps of a step [count].
        num_steps: steps [count].

    >>> one = arcs(3, 0, 1)
    >>> list(zip(one.src.tolist(), one.dst.tolist(), one.direction.tolist()))
    [(0, 1, 0), (1, 2, 0), (2, 0, 0), (1, 0, 1), (0, 2, 1), (2, 1, 1)]
    """
    begin = np.stack([_first_laps(num_nodes, direction) for direction in (CLOCKWISE, COUNTER_CLOCKWISE)])
    src, dst, direction, lap, starts = _listed(num_nodes, first_lap, num_laps, num_steps, begin)
    return Arcs(src, dst, direction, lap, starts)


@njit
def _listed(num_nodes, first_lap, num_laps, num_steps, begin):  # type: ignore[no-untyped-def]
    """Columns of `Arcs`; `begin` has the first laps of each pair in both directions."""
    columns = np.empty((4, 8 * num_laps * num_steps), np.int32)
    starts = np.zeros(num_steps + 1, np.int64)
    half, pairs = num_nodes // 2, begin.shape[1] - 1
    stops = np.empty(5, np.int64)
    rows = 0
    for step in range(num_steps):
        for direction in range(2):
            first = first_lap + step * num_laps
            k = np.searchsorted(begin[direction], first, side="right") - 1
            for lap in range(first, min(first + num_laps, begin[direction, pairs])):
                while begin[direction, k + 1] <= lap:
                    k += 1
                behind = lap - begin[direction, k] + 1
                short = k + behind >= half
                stops[0] = stops[4] = k if direction == 0 else half + k
                stops[2] = half + k if direction == 0 else k
                stops[1] = stops[2] if short else k + behind
                stops[3] = stops[2] if short and num_nodes % 2 == 0 else half + k + behind
                for at in range(4):
                    if stops[at] != stops[at + 1]:
                        columns[0, rows] = stops[at]
                        columns[1, rows] = stops[at + 1]
                        columns[2, rows] = direction
                        columns[3, rows] = lap - first
                        rows += 1
        starts[step + 1] = rows
    return columns[0, :rows], columns[1, :rows], columns[2, :rows], columns[3, :rows], starts


@cache
def _first_laps(num_nodes: int, direction: int) -> IntArray:
    """First lap of each pair, and the number of laps, int64 (half + 1,)."""
    half = num_nodes // 2
    pair = np.arange(half)
    short = 1 if num_nodes % 2 else pair % 2 == direction  # laps of fewer than four arcs
    return np.concatenate([[0], np.cumsum(half - 1 - pair + short)])


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if reason := needs_whole(fabric, "terarack"):
        return reason
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


@register_algorithm("wavelength_exchange", accepts, _variants)
def wavelength_exchange(collective: Request, fabric: Fabric) -> Schedule:
    """Each block directly to its receiver: all_to_all, reduce_scatter, all_gather; all_reduce is the last two together.

    A half takes W(N) / w steps (rounded up), each of one block of N per transfer.

    Source: WRHT section 4.1.2.
    """
    n = fabric.num_nodes
    half = num_exchange_steps(fabric)
    ops = HALVES[collective.name]

    def step(i: int) -> Transfers:
        number, at = divmod(i, half)
        some, op = arcs(n, at * channels(fabric), channels(fabric)), ops[number]
        owner = some.src if op == Op.COPY else some.dst
        return Transfers.of(some.src, some.dst, owner, 1, op, parts=1 if op == Op.MOVE else None)

    return Schedule("wavelength_exchange", collective.on(n, n), half * len(ops), step)
