"""All-gathers in which all ranks do the same at the same time: the schedule of one rank, carried to all by symmetry.

A whole grid has N translations onto itself: by d, tile t goes to t xor d where both sides are powers of two, otherwise by
rows and columns, modulo the shape. In a round every rank g receives, from the rank at g + d, the piece of the rank at
g + a; that rank holds it if a - d has been received before (or is 0). What is chosen are pairs (d, a): each a but 0 once,
in each round at most as many as there are lasers, as long as circuits exist for all ranks.

Source: own construction; LUMORPH section 3.2 uses the symmetry of squares of four.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.synthesis.packing import RoundOccupancy
from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.wafer import Wafer

__all__ = ["grid_translations", "symmetric_rounds"]

MOST_TILES = 64
MOST_TRIES, WORK = 40, 9000  # each try takes about tiles^2

Flags = npt.NDArray[np.bool_]


def grid_translations(rows: int, columns: int) -> tuple[IntArray, IntArray]:
    """Translations of a grid onto itself.

    Args: rows, columns: of the grid [count].
    Returns: (to, less): translation d takes tile t to to[d, t], and translation d followed by less[a, d] is translation a;
        int64 (tiles, tiles).
    """
    tile = np.arange(rows * columns)
    if rows & (rows - 1) == 0 and columns & (columns - 1) == 0:
        return tile[:, None] ^ tile, tile[:, None] ^ tile
    row, column = np.divmod(tile, columns)
    to = (row[:, None] + row) % rows * columns + (column[:, None] + column) % columns
    less = (row[:, None] - row) % rows * columns + (column[:, None] - column) % columns
    return to, less


def symmetric_rounds(wafer: Wafer, before: Flags, after: Flags, seed: int, bound: int, most: int) -> SendRounds | None:
    """The best of several seeded attempts; None where the ranks are not symmetric.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
        seed: seed of the attempts.
        bound: number of rounds at which to stop [count].
        most: largest number of rounds of interest [count].
    """
    rows, columns = wafer.shape
    n = wafer.num_ranks
    holds = before.sum(axis=0)
    uniform = bool(after.all()) and bool((before.sum(axis=1) == 1).all()) and bool((holds == holds[0]).all())
    if not uniform or n != rows * columns or not 2 < n <= MOST_TILES:
        return None
    rank = np.argsort(wafer.tile)
    pieces = np.argsort(before.argmax(axis=1), kind="stable").reshape(n, -1)[rank]  # of each tile
    random = np.random.default_rng(seed)
    best: SendRounds | None = None
    for _ in range(min(MOST_TRIES, WORK // n**2)):
        schedule = _try_once(wafer, rank, pieces, random, most)
        if schedule is not None:
            best, most = schedule, len(schedule) - 1
        if best is not None and len(best) <= bound:
            break
    return best


def _try_once(
    wafer: Wafer, rank: IntArray, pieces: IntArray, random: np.random.Generator, most: int
) -> SendRounds | None:
    """At most `most` rounds: in every round pieces in random order, each by the first translation with free circuits.

    Args:
        rank: rank on each tile, int64 (tiles,).
        pieces: pieces that each tile holds at the start, int64 (tiles, pieces).
        most: largest number of rounds of interest [count].
    """
    to, less = grid_translations(*wafer.shape)
    n, blocks = pieces.shape
    received = [[0] for _ in range(blocks)]  # of each block, the a whose pieces every rank holds
    waiting = [(block, a) for block in range(blocks) for a in range(1, n)]
    schedule: SendRounds = []
    while waiting:
        if len(schedule) + -(-len(waiting) // wafer.num_wavelengths) > most:
            return None
        light, sends, late, new = RoundOccupancy(wafer), [], [], []
        for i in random.permutation(len(waiting)).tolist():
            block, a = waiting[i]
            assigned: list[PieceSend] | None = None
            if light.can_receive(0):
                for d in random.permutation(less[a, received[block]]).tolist():
                    assigned = _assign_all(light, rank, pieces[to[a], block], to[d])
                    if assigned is not None:
                        break
            if assigned is None:
                late.append(waiting[i])
            else:
                sends += assigned
                new.append((block, a))
        if not sends:
            return None
        for block, a in new:
            received[block].append(a)
        schedule.append(sends)
        waiting = late
    return schedule


def _assign_all(light: RoundOccupancy, rank: IntArray, piece: IntArray, source: IntArray) -> list[PieceSend] | None:
    """Circuits to all tiles from their sources, or None if one of them has none.

    Args:
        rank: rank on each tile, int64 (tiles,).
        piece, source: what each tile receives, and from which tile, int64 (tiles,).
    """
    dark = light.snapshot()
    sends = []
    for dst, src, what in zip(rank.tolist(), rank[source].tolist(), piece.tolist(), strict=True):
        assigned = light.assign(src, dst)
        if assigned is None:
            light.restore(dark)
            return None
        sends.append(PieceSend(what, src, dst, False, *assigned))
    return sends
