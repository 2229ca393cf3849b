"""Bruck's algorithms: all-to-all and all-gather in ceil(log_r N) steps for any number of nodes N and any radix r.

All-to-all: a block for the node at offset o is forwarded by the digits of o, the highest first. In the step of stride h = r^i
a node sends to the node at offset j h, for every j = 1 .. r-1, all that it holds for the offsets j h to (j + 1) h - 1.
The remaining offset is then below h, so the chunks (by destination) of a transfer are neighbours modulo N:
one row, two where they wrap around, another where the number of contributions changes (N is not a power of r).

    N = 8, r = 2, node 0    4 <- 4 5 6 7      2 <- 2 3, twice      1 <- 1, four times

All-gather: a node that holds h blocks, its own and the next ones, sends them to the nodes at offsets -h, -2 h, ...,
-(r - 1) h.

    N = 8, r = 2, node 0    7 <- 0            6 <- 0 1             4 <- 0 1 2 3

Source: LUMORPH section 4 and appendix C; the index and concatenation algorithms of Bruck et al. 1997.
Reading: Bruck et al. take the lowest digit first and rotate the blocks before and after. The order of the digits
changes neither rounds nor bytes; with the highest first no rotation is needed and ranges stay contiguous.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps, part
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, reason_any_not_linked

__all__ = ["bruck"]

DOES = ("all_to_all", "all_gather")


def strides(num_nodes: int, radix: int) -> tuple[int, ...]:
    """1, r, r^2, ... below the number of nodes.

    >>> strides(8, 2), strides(10, 3), strides(1, 2)
    ((1, 2, 4), (1, 3, 9), ())
    """
    found = []
    stride = 1
    while stride < num_nodes:
        found.append(stride)
        stride *= radix
    return tuple(found)


def accepts(collective: Request, fabric: Fabric, radix: int = 2) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radix: one more than the number of nodes that a node sends to in a step.
    """
    n = fabric.num_nodes
    if collective.name not in DOES:
        return f"it does {' and '.join(DOES)}"
    if radix < 2:
        return f"radix={radix}; a digit has at least 2 values, try radix=2"
    if n * (min(radix, n) - 1) > MOST_TRANSFERS:
        step = f"radix={radix} means {n * (min(radix, n) - 1):,} transfers a step"
        return SizeLimit(f"{step}, more than {MOST_TRANSFERS:,}; try radix={1 + MOST_TRANSFERS // n}")
    node = np.arange(n)
    forward = 1 if collective.name == "all_to_all" else -1
    offsets = (offset for h in strides(n, radix) for offset in range(h, min(radix * h, n), h))
    return reason_any_not_linked(fabric, ((node, (node + forward * offset) % n) for offset in offsets))


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int]]:
    """Radices 2, 4, 8 and 16 with distinct numbers of steps."""
    different = {len(strides(fabric.num_nodes, radix)): radix for radix in (16, 8, 4, 2)}
    return [{"radix": radix} for radix in sorted(different.values())]


@register_algorithm("bruck", accepts, variants)
def bruck(collective: Request, fabric: Fabric, *, radix: int = 2) -> Schedule:
    """Bruck's all-to-all and all-gather in ceil(log_radix N) steps.

    Args:
        collective: all_to_all or all_gather.
        fabric: the fabric.
        radix: one more than the number of nodes that a node sends to in a step.
    """
    n, moves = fabric.num_nodes, collective.name == "all_to_all"
    all_strides = strides(n, radix)
    make = _exchange if moves else _gather
    of_steps = [make(n, h, radix) for h in (all_strides[::-1] if moves else all_strides)]
    phases = [Phase(rows, (True,), 1, tuple(range(len(rows)))) for rows in of_steps]
    steps = Steps(Space((n,)), [part((n,), (0,))], phases)
    return Schedule.of("bruck", collective.on(n, n), steps, parameters={"radix": radix})


def _exchange(num_nodes: int, h: int, radix: int) -> PhaseRows:
    """Blocks for the nodes from each multiple of h on to the next, that many nodes ahead.

    Args:
        num_nodes: nodes [count].
        h: stride of the digit.
        radix: its values [count].
    """
    reach = min(h * radix, num_nodes)  # no block has a larger offset left
    change, count = num_nodes % reach, num_nodes // reach  # below that distance there is one contribution more
    ranges = []
    for first in range(h, reach, h):
        last = min(first + h, reach)
        middle = min(max(first, change), last)
        ranges += [(first, first, middle, count + 1)] * (first < middle)
        ranges += [(first, middle, last, count)] * (middle < last)
    offset, lo, end, parts = np.array(ranges).T
    return PhaseRows.of(1, 0, offset[:, None], lo[:, None], (end - lo)[:, None], op=Op.MOVE, parts=parts)


def _gather(num_nodes: int, h: int, radix: int) -> PhaseRows:
    """The first h blocks that a node has, its own first, to the nodes multiples of h back.

    Args:
        num_nodes: nodes [count].
        h: stride of the digit.
        radix: its values [count].
    """
    offset = np.arange(h, min(h * radix, num_nodes), h)[:, None]
    return PhaseRows.of(1, 0, -offset % num_nodes, 0, np.minimum(h, num_nodes - offset))
