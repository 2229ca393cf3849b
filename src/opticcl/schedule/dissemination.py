"""Dissemination: in step s every node sends its partial sum to the node at offset 2^s. Few steps, any number of nodes.

Eight nodes: 0 receives from 7, then from 6 (with the data of 5), then from 4 (with those of 3, 2, 1). Where the number is
not a power of two, the rest is folded in first and gets the result at the end. Eleven nodes:

    step 0        8 -> 0    9 -> 1    10 -> 2       to be added
    steps 1..3    0 to 7 among themselves
    step 4        0 -> 8    1 -> 9    2 -> 10       to be stored

Where nodes form a grid and only the lines of the grid are linked, this is done on the lines of each dimension in turn.

Source: Hensgen, Finkel and Manber 1988.
Reading: their barrier wraps around any number of nodes, N, in ceil(log2 N) steps, so some signals arrive twice. That is
correct for a signal, not for a sum; this variant is exact for both, and takes floor(log2 N) + 2 steps where N is not a power
of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, IntArray, Op, Schedule
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import line_or_grid


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name not in ("barrier", "all_reduce"):
        return "it does barrier, all_reduce"
    return line_or_grid(fabric, _pairs)[1]


@register_algorithm("dissemination", accepts)
def dissemination(collective: Request, fabric: Fabric) -> Schedule:
    """Barrier, or all-reduce of a short message: log2 N steps, two more where N is not a power of two."""
    shape, _ = line_or_grid(fabric, _pairs)
    phases = []
    for d, side in enumerate(shape):
        for src, dst, op in _on_line(side):
            ends = np.zeros((2, len(src), len(shape)), np.int64)
            ends[0, :, d], ends[1, :, d] = src, dst
            all_do_so = len(src) == side  # all nodes of the line do the same
            some = ends[:, :1] if all_do_so else ends
            moves = tuple(all_do_so or e != d for e in range(len(shape)))
            phases.append(Phase(PhaseRows.of(len(shape), some[0], some[1], 0, op=op), moves))
    steps = Steps(Space(shape), [MessagePart(((UNIT, 1, 1),))], phases)
    return Schedule.of("dissemination", collective.on(fabric.num_nodes, 1), steps)


def _pairs(shape: tuple[int, ...]) -> Iterator[tuple[IntArray, IntArray]]:
    """Senders and receivers of each step."""
    for dimension, side in enumerate(shape):
        stride = prod(shape[dimension + 1 :])
        # one row a line: the number of its first node
        lines = (np.arange(prod(shape[:dimension]))[:, None] * side * stride + np.arange(stride)).reshape(-1, 1)
        for src, dst, _ in _on_line(side):
            yield (lines + src * stride).ravel(), (lines + dst * stride).ravel()


def _on_line(side: int) -> list[tuple[IntArray, IntArray, Op]]:
    inner = 1 << side.bit_length() - 1
    node, rest = np.arange(inner), np.arange(side - inner)
    fold = [(inner + rest, rest, Op.REDUCE)] if len(rest) else []
    unfold = [(rest, inner + rest, Op.COPY)] if len(rest) else []
    rounds = [(node, (node + (1 << s)) % inner, Op.REDUCE) for s in range(side.bit_length() - 1)]
    return fold + rounds + unfold
