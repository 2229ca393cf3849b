"""All-gathers in which all ranks do the same at the same time, so that one rank's plan is everybody's.

A whole grid is carried into itself by N moves: by d, tile t goes to t xor d where both sides are powers of two,
otherwise so many rows and columns on, round the rim. In a round every rank g gets, from the rank at g + d, the piece of
the rank at g + a; that one has it if a - d has been heard before (or is 0). What is left to choose are pairs (d, a):
all a but 0 once, each round as many as there are lasers, as long as the light of all ranks fits.

Source: ours; LUMORPH section 3.2 uses the symmetry of squares of four.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.synthesis.draft import Draft, Send
from opticcl.synthesis.packing import RoundOfLight
from opticcl.synthesis.wafer import Wafer

__all__ = ["alike_draft", "moves"]

MOST_TILES = 64
MOST_TRIES, WORK = 40, 9000  # each try takes about tiles^2

Flags = npt.NDArray[np.bool_]


def moves(rows: int, columns: int) -> tuple[IntArray, IntArray]:
    """How a grid is carried into itself.

    Returns: (to, less): move d takes tile t to to[d, t], and after move d move less[a, d] completes a;
        int64 (tiles, tiles).
    """
    tile = np.arange(rows * columns)
    if rows & (rows - 1) == 0 and columns & (columns - 1) == 0:
        return tile[:, None] ^ tile, tile[:, None] ^ tile
    row, column = np.divmod(tile, columns)
    to = (row[:, None] + row) % rows * columns + (column[:, None] + column) % columns
    less = (row[:, None] - row) % rows * columns + (column[:, None] - column) % columns
    return to, less


def alike_draft(wafer: Wafer, before: Flags, after: Flags, seed: int, bound: int, most: int) -> Draft | None:
    """The best of a few seeded tries; None where not all ranks are alike.

    Args:
        before, after: who holds which piece at the start and at the end, bool (pieces, ranks).
        bound: rounds with which it is content [count].
        most: rounds beyond which nobody is interested [count].
    """
    rows, columns = wafer.shape
    n = wafer.num_ranks
    holds = before.sum(axis=0)
    everybody = bool(after.all()) and bool((before.sum(axis=1) == 1).all()) and bool((holds == holds[0]).all())
    if not everybody or n != rows * columns or not 2 < n <= MOST_TILES:
        return None
    rank = np.argsort(wafer.tile)
    pieces = np.argsort(before.argmax(axis=1), kind="stable").reshape(n, -1)[rank]  # of each tile
    random = np.random.default_rng(seed)
    best: Draft | None = None
    for _ in range(min(MOST_TRIES, WORK // n**2)):
        draft = _tried(wafer, rank, pieces, random, most)
        if draft is not None:
            best, most = draft, len(draft) - 1
        if best is not None and len(best) <= bound:
            break
    return best


def _tried(wafer: Wafer, rank: IntArray, pieces: IntArray, random: np.random.Generator, most: int) -> Draft | None:
    """One draft of `most` rounds at most: in every round pieces in random order, each by the first move that fits.

    Args:
        rank: on each tile, int64 (tiles,).
        pieces: that each tile holds at the start, int64 (tiles, pieces).
    """
    to, less = moves(*wafer.shape)
    n, blocks = pieces.shape
    heard = [[0] for _ in range(blocks)]  # of each block, the a whose pieces everybody has
    waiting = [(block, a) for block in range(blocks) for a in range(1, n)]
    draft: Draft = []
    while waiting:
        if len(draft) + -(-len(waiting) // wafer.num_wavelengths) > most:
            return None
        light, sends, late, new = RoundOfLight(wafer), [], [], []
        for i in random.permutation(len(waiting)).tolist():
            block, a = waiting[i]
            laid: list[Send] | None = None
            if light.hears_more(0):
                for d in random.permutation(less[a, heard[block]]).tolist():
                    laid = _laid(light, rank, pieces[to[a], block], to[d])
                    if laid is not None:
                        break
            if laid is None:
                late.append(waiting[i])
            else:
                sends += laid
                new.append((block, a))
        if not sends:
            return None
        for block, a in new:
            heard[block].append(a)
        draft.append(sends)
        waiting = late
    return draft


def _laid(light: RoundOfLight, rank: IntArray, piece: IntArray, source: IntArray) -> list[Send] | None:
    """Circuits to all tiles from their sources, or none at all.

    Args: piece, source: what each tile hears, and from which tile, int64 (tiles,).
    """
    dark = light.remembered()
    sends = []
    for dst, src, what in zip(rank.tolist(), rank[source].tolist(), piece.tolist(), strict=True):
        laid = light.lay(src, dst)
        if laid is None:
            light.restore(dark)
            return None
        sends.append(Send(what, src, dst, False, *laid))
    return sends
