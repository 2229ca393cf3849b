"""Rings along all dimensions of a grid at the same time, one way round, on circuits that are set once.

The message is cut into one part a dimension. In a reduce-scatter part q goes round the rings of the dimensions q - 1, q - 2,
..., q, cyclically, and in an all-gather back, q, q + 1, ..., so that at every time the parts are in distinct dimensions, and
every node sends to the next node of each of its lines:

    3 x 4, all_gather     part 0   columns, 1 chunk at a time     rows, 3 chunks at a time
                          part 1   rows, 1 chunk at a time        columns, 4 chunks at a time

On sides n_1 ... n_k, N nodes, with one sender and one receiver of rate B a dimension, an all-reduce of V takes

    T = R + 2 sum over the stages of max over the parts of (n_d - 1) alpha + r (1 - 1/n_d) V / (k B)

where r is what share of its part a node has after the stage; with equal sides 2 (N-1)/N V / (k B), the least. Chunks of a
part are numbered by the coordinates in the order of its all-gather, the first least significant, so what a node passes
on is a range.

Where sides differ, a step on a shorter ring would carry a larger block, for which the others wait. Blocks are cut into pieces,
every c-th chunk each, as long as a ring has no more steps than the longest: on 16 x 32 the first stage moves 31/32 of a part
in place of 15/16 + 16/32. Above a million transfers they stay whole.

Source: Jain and Sabharwal 2010, Optimal bucket algorithms for large MPI collectives on torus interconnects; Sack and Gropp
2015, Collective algorithms for multiported torus networks. `opticcl.schedule.torus_all_ports` goes both ways round, for
nodes with two senders and receivers a dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm, prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.oddl import Oddl
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import NotTried, left_out, register_algorithm
from opticcl.schedule._grid import SizeLimit, long_sides, reason_not_linked, reason_not_shaped
from opticcl.schedule._walk import visits, walk
from opticcl.units import Shape

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "barrier")
MOST_CHUNKS = limit("rotated_rings.MOST_CHUNKS")
MOST_ROWS = limit("rotated_rings.MOST_ROWS")


def accepts(collective: Request, fabric: Fabric, shape: tuple[int, ...] | None = None) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        shape: sides of the grid; None: those of the machine.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n = fabric.num_nodes
    if shape is not None and (reason := reason_not_shaped(shape, n)):
        return reason
    sides = long_sides(fabric, shape)
    if len(sides) < 2:
        return "it needs a grid of two or more dimensions; try ring"
    if (chunks := _parts_of(sides).num_chunks) > MOST_CHUNKS:
        return SizeLimit(f"{chunks:,} chunks are more than {MOST_CHUNKS:,}")
    node = np.arange(n)
    for d in range(len(sides)):
        if reason := reason_not_linked(fabric, node, _next_node(sides, d)):
            return reason
    return None


def variants(collective: Request, fabric: Fabric) -> list[dict[str, int] | NotTried]:
    """One on an ODDL, whose nodes have a sender and a receiver a dimension."""
    if not isinstance(fabric.machine, Oddl):
        return []
    sides = long_sides(fabric, None)
    if len(sides) < 2 or _parts_of(sides).even:
        return [{}]
    return [{}, left_out(_rows_in_halves(sides), MOST_ROWS, "blocks of short rings that are cut")]


@register_algorithm("rotated_rings", accepts, variants)
def rotated_rings(collective: Request, fabric: Fabric, *, shape: Shape | None = None) -> Schedule:
    """All-gather or reduce-scatter in a stage of n - 1 steps for each side n of the grid, all_reduce in both.

    Args:
        collective: all_reduce, reduce_scatter, all_gather or barrier.
        fabric: the fabric.
        shape: sides of the grid; None: those of the machine.
    """
    parts = _parts_of(long_sides(fabric, shape))
    space, k = Space(parts.sides), len(parts.sides)
    orders = [visits(space.radices, parts.order(part)[::-1], "ring") for part in range(k)]
    steps, cut = walk(
        collective, space, orders, units=parts.units, pieces=lambda part, stage: parts.pieces(part, k - 1 - stage)
    )
    chunks = collective.on(fabric.num_nodes, steps.num_chunks, owner=steps.owners)
    return Schedule.of("rotated_rings", chunks, steps, cut=cut)


def _parts_of(sides: tuple[int, ...]) -> _Parts:
    """Even where that does not make too many chunks or transfers."""
    even = _Parts(sides, True)
    fits = even.num_chunks <= MOST_CHUNKS and _rows_in_halves(sides) <= MOST_ROWS
    return even if fits else _Parts(sides, False)


def _rows_in_halves(sides: tuple[int, ...]) -> int:
    """Transfers of all steps where blocks of short rings are cut [count]."""
    return prod(sides) * len(sides) * 2 * len(sides) * (max(sides) - 1)


def _next_node(sides: tuple[int, ...], dimension: int) -> IntArray:
    """Of every node, on its line of that dimension, int64 (nodes,)."""
    node, stride = np.arange(prod(sides)), prod(sides[dimension + 1 :])
    at = node // stride % sides[dimension]
    following: IntArray = node + ((at + 1) % sides[dimension] - at) * stride
    return following


@dataclass(frozen=True)
class _Parts:
    """The parts of the message on a grid.

    Args:
        sides: of the grid, 2 or more each.
        even: whether blocks of short rings are cut.
    """

    sides: tuple[int, ...]
    even: bool

    @property
    def units(self) -> int:
        """Chunks of a node and part, which every number of pieces divides [count]."""
        numbers = range(len(self.sides))
        return lcm(*(self.pieces(part, stage) for part in numbers for stage in numbers)) if self.even else 1

    @property
    def num_chunks(self) -> int:
        """Of all nodes and parts [count]."""
        return len(self.sides) * prod(self.sides) * self.units

    def pieces(self, part: int, stage: int) -> int:
        """That a block of a part is cut into in a stage of the all-gather [count].

        Args:
            part: number.
            stage: number.
        """
        if not self.even:
            return 1
        left = [prod(self.sides[d] for d in self.order(other)[stage:]) for other in range(len(self.sides))]
        longest, side = max(self.sides), self.sides[self.order(part)[stage]]
        return max(1, min(-(-max(left) // left[part]), (longest - 1) // (side - 1)))

    def order(self, part: int) -> tuple[int, ...]:
        """Dimensions in the order in which a part visits them in an all-gather."""
        k = len(self.sides)
        return tuple((part + j) % k for j in range(k))
