"""All-gather and reduce-scatter along the lines of a grid, both ways round each line at the same time.

The message is cut into one part a dimension. Part q visits the dimensions q, q + 1, ..., cyclically, so that at every time the
parts are in distinct dimensions. A part visits a dimension as follows: each node of a line of n holds a block, and passes

    blocks p, p - 1, p - 2, ...  to the next node         n / 2 blocks each way: the node opposite on an even line gets
    blocks p, p + 1, p + 2, ...  to the previous node     one half from each side

A part is cut into slices, and the chunks of a slice are numbered by the coordinates in the order of the visits, the first
visited least significant. So a block is a range of chunks of each slice, half a block is half of the slices, and all nodes do
the same. Reduce-scatter is the reversal: every transfer backwards, in the opposite order, added.

Visits of one stage last as long as that of the longest side. On a shorter side the blocks are longer, so they are sent in
pieces, some of the slices at a time; `pieces` chooses their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod

from opticcl.collective import Request
from opticcl.ir import Schedule
from opticcl.ir.phases import Space
from opticcl.schedule import NotTried
from opticcl.schedule._walk import visits, walk

__all__ = ["COLLECTIVES", "both_ways", "num_chunks", "variants_in_pieces"]

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "barrier")
MOST_SLICES = 128  # of a part


def both_ways(name: str, collective: Request, space: Space, cut: int) -> Schedule:
    """The schedule of a collective on the lines of a grid.

    Args:
        name: of the algorithm.
        collective: one of `COLLECTIVES`.
        space: a digit for each side of the grid; radices of 1 have no lines.
        cut: slices of a part at least; each slice of a block is a transfer of its own [count].
    """
    sides = tuple(radix for radix in space.radices if radix > 1)
    lines = [d for d, radix in enumerate(space.radices) if radix > 1] or [0]
    k, (counts, slices) = len(lines), _pieces(sides, cut)
    orders = [visits(space.radices, [lines[(part + j) % k] for j in reversed(range(k))], "both") for part in range(k)]
    steps, where = walk(
        collective, space, orders, units=slices, pieces=lambda part, stage: counts[k - 1 - stage][part], slices=True
    )
    chunks = collective.on(space.num_ranks, steps.num_chunks, owner=steps.owners)
    return Schedule.of(name, chunks, steps, cut=where)


def num_chunks(sides: tuple[int, ...], cut: int) -> int:
    """Chunks of all parts on a grid [count].

    Args:
        sides: 2 or more each.
        cut: as of `both_ways`.
    """
    return max(1, len(sides)) * _pieces(sides, cut)[1] * prod(sides)


def _pieces(sides: tuple[int, ...], cut: int) -> tuple[list[tuple[int, ...]], int]:
    """Pieces of a block by stage of the all-gather and by part, and slices of a part, which all of them divide.

    Args:
        sides: of the grid, 2 or more each.
        cut: slices at least [count].
    """
    k = len(sides)
    halves = found_in = 1 + any(side % 2 == 0 for side in sides)  # a node opposite gets a half from each side
    stages = []
    for stage in range(k):
        lines = [sides[(part + stage) % k] for part in range(k)]
        blocks = [prod(sides[(part + j) % k] for j in range(stage)) for part in range(k)]
        # with a side of 2, the next node is the previous one: one link for both ways
        doubled = [(1 + (side == 2)) * block for side, block in zip(lines, blocks, strict=True)]
        stages.append(pieces(lines, doubled, found_in))
        found_in = lcm(found_in, *stages[-1])
    return stages, lcm(cut, halves, *(count for stage in stages for count in stage))


def pieces(lines: Sequence[int], blocks: Sequence[int], slices: int) -> tuple[int, ...]:
    """Pieces that each part cuts its blocks into during a stage: 1 or an even number.

    A line that is not the longest has time to spare. Its blocks are cut so that its steps move no more than those of the
    longest, if possible.

    Args:
        lines: nodes of the line of each part [count].
        blocks: length of the blocks of each part, doubled where both ways use one link.
        slices: that parts have so far; the numbers of pieces divide a multiple of it, at most `MOST_SLICES`.

    >>> pieces([32, 32], [32, 32], 2), pieces([32, 8], [8, 32], 2), pieces([31, 7], [7, 31], 1)
    ((1, 1), (1, 4), (1, 4))
    """
    steps = max(side // 2 for side in lines)
    due = max(block for side, block in zip(lines, blocks, strict=True) if side // 2 == steps)
    chosen = []
    for side, block in zip(lines, blocks, strict=True):
        most = 2 * steps // (side - 1)
        possible = [count for count in range(2, most + 1, 2) if lcm(slices, count) <= MOST_SLICES]
        enough = [count for count in possible if block <= due * count]
        count = 1 if block <= due or not possible else min(enough or [possible[-1]])
        slices = lcm(slices, count)
        chosen.append(count)
    return tuple(chosen)


def variants_in_pieces(pieces: int, most: int) -> list[dict[str, int] | NotTried]:
    """Whole blocks, and blocks in that many pieces, halved until they are at most as many as allowed.

    >>> variants_in_pieces(128, 1000), variants_in_pieces(128, 64)[:-1], variants_in_pieces(128, 1)[:-1]
    ([{}, {'pieces': 128}], [{}, {'pieces': 64}], [{}])
    """
    wanted = pieces
    while pieces > most:
        pieces //= 2
    tried: list[dict[str, int] | NotTried] = [{}, {"pieces": pieces}] if pieces > 1 else [{}]
    if pieces < wanted:
        tried.append(NotTried(f"pieces={wanted}", f"a search cuts blocks of these nodes into {max(most, 1)} at most"))
    return tried
