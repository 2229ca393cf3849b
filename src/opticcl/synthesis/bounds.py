"""Lower bounds on the number of rounds, each with its reason in words.

    receives    a rank receives at most one piece per photodiode in a round
    sends       pieces that only one rank holds must leave by the lasers of that rank
    reach       in a round, the ranks that hold a piece multiply by at most lasers + 1
    cut         pieces that must cross a cut, over the capacity of its edges
    cut reach   ranks behind a cut hold what has crossed it and what they have multicast since then
    sums        an all-reduce of a piece takes 2 (N - 1) sends: N - 1 until a first rank holds the sum, one for each other
    one round   a rank that is done after one round has received from every other rank directly
    and two more for an all-reduce (`counting`)

The bounds hold for any routes, also where ranks of the job relay pieces that they do not need themselves.

Source: LUMORPH equations 2 to 6 (no bounds there); the sums are the one-way gossip of Harary and Schwenk 1974.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.synthesis.counting import Bound, counting_bounds
from opticcl.synthesis.cuts import WaferCut, cuts
from opticcl.synthesis.wafer import Wafer
from opticcl.units import counted

__all__ = ["multicast_bounds", "reduction_bounds", "tightest"]

PAIRS_PER_BLOCK = 1 << 24  # (piece, cut) pairs that are evaluated together

Flags = npt.NDArray[np.bool_]


def tightest(bounds: Iterator[Bound] | list[Bound]) -> Bound:
    """The largest bound; of equal ones the first."""
    nothing = Bound("nothing", 0, "every rank holds what it needs from the start")
    return max([*bounds, nothing], key=lambda bound: bound.rounds)


def multicast_bounds(wafer: Wafer, before: Flags, after: Flags) -> Iterator[Bound]:
    """Bounds for pieces that are copied from the ranks that hold them to the ranks that need them.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
    """
    wanted = after & ~before
    if not wanted.any():
        return
    photodiodes, sends = wafer.photodiodes.sum(axis=1), wafer.lasers.sum(axis=1)
    yield _busiest_rank_bound(
        "receives", wanted.sum(axis=0), photodiodes, "must receive {} and has {}", "piece", "photodiode"
    )
    alone = (before[(before.sum(axis=1) == 1) & wanted.any(axis=1)]).sum(axis=0)
    yield _busiest_rank_bound("sends", alone, sends, "alone holds {} that others need and has {}", "piece", "laser")
    yield _reach_bound((before | after).sum(axis=1), before.sum(axis=1), int(sends.max()))
    for side, beyond in _cut_blocks(wafer, len(before)):
        # receivers beyond the cut of the pieces that only ranks on this side hold
        waiting = np.where(_count_per_cut(before, beyond) > 0, 0, _count_per_cut(wanted, beyond))
        for cut, pieces, receivers in zip(side, (waiting > 0).sum(axis=0), waiting.sum(axis=0), strict=True):
            yield from _cut_bounds(cut, int(pieces), int(receivers), photodiodes, sends)


def reduction_bounds(wafer: Wafer, before: Flags, after: Flags) -> Iterator[Bound]:
    """Bounds for pieces of which every rank in `before` holds a part and every rank in `after` needs the sum.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds a part of each piece, and which needs the sum, bool (pieces, ranks).
    """
    photodiodes, sends = wafer.photodiodes.sum(axis=1), wafer.lasers.sum(axis=1)
    parts, wanting = before.sum(axis=1), after.sum(axis=1)
    lacks = after & (parts[:, None] - before > 0)  # another rank holds a part
    if not lacks.any():
        return
    yield _busiest_rank_bound(
        "receives", lacks.sum(axis=0), photodiodes, "must receive {} and has {}", "sum", "photodiode"
    )
    gives = before & (wanting[:, None] - after > 0)
    yield _busiest_rank_bound(
        "sends", gives.sum(axis=0), sends, "has a part of {} that others need and has {}", "sum", "laser"
    )
    needed = int(np.where(wanting > 0, parts - 1 + wanting - (before & after).any(axis=1), 0).sum())
    lasers = int(sends.sum())
    if lasers:
        yield Bound(
            "sums",
            -(-needed // lasers),
            f"the sums take at least {needed} sends, all lasers together {lasers} per round",
        )
    yield _reach_bound(np.maximum(parts, wanting), np.ones_like(parts), int(sends.max()))
    direct = (after * (parts[:, None] - before)).sum(axis=0)
    busiest = int(np.argmax(direct - photodiodes))
    if direct[busiest] > photodiodes[busiest]:
        why = (
            f"in one round rank {busiest} would receive {direct[busiest]} parts with {photodiodes[busiest]} photodiodes"
        )
        yield Bound("one round", 2, why)
    for side, beyond in _cut_blocks(wafer, len(before)):
        crossing = (_count_per_cut(before, ~beyond) > 0) & (_count_per_cut(after, beyond) > 0)
        for cut, pieces in zip(side, crossing.sum(axis=0), strict=True):
            yield from _cut_bounds(cut, int(pieces), int(pieces), photodiodes, sends)
    if before.all() and after.all():
        yield from counting_bounds(wafer, len(before))


def _busiest_rank_bound(name: str, count: IntArray, at_once: IntArray, words: str, thing: str, means: str) -> Bound:
    """Bound of the rank with the most pieces per laser or photodiode; `require_reachable` has refused ranks without any."""
    rounds = -(-count // np.maximum(at_once, 1))
    rank = int(np.argmax(rounds))
    return Bound(
        name,
        int(rounds[rank]),
        f"rank {rank} " + words.format(counted(count[rank], thing), counted(at_once[rank], means)),
    )


def _reach_bound(most: IntArray, start: IntArray, lasers: int) -> Bound:
    """Ranks that hold a piece multiply by at most lasers + 1 in a round."""
    rounds, piece = np.zeros(len(most), np.int64), 0
    known = start.astype(np.int64)
    while (known < most).any() and lasers:
        rounds[known < most] += 1
        known = np.minimum(known * (lasers + 1), most)
    piece = int(np.argmax(rounds))
    why = f"from {counted(start[piece], 'rank')} to {most[piece]}, at most {lasers + 1} times as many per round"
    return Bound("reach", int(rounds[piece]), why)


def _cut_blocks(wafer: Wafer, num_pieces: int) -> Iterator[tuple[list[WaferCut], Flags]]:
    """Sides of cuts in blocks, and the ranks beyond each, bool (ranks, cuts)."""
    sides = list(cuts(wafer))
    some = max(1, PAIRS_PER_BLOCK // max(1, num_pieces))
    for start in range(0, len(sides), some):
        part = sides[start : start + some]
        yield part, ~np.stack([cut.inside for cut in part], axis=1)


def _count_per_cut(flags: Flags, beyond: Flags) -> IntArray:
    """Number of ranks beyond each cut for each piece, int32 (pieces, cuts)."""
    return (flags.astype(np.float32) @ beyond.astype(np.float32)).astype(np.int32)


def _cut_bounds(cut: WaferCut, pieces: int, receivers: int, photodiodes: IntArray, sends: IntArray) -> Iterator[Bound]:
    """Bounds of one cut, from inside to outside.

    Args:
        pieces: pieces that must cross it [count].
        receivers: (piece, rank) pairs outside that need them; the number of pieces if one copy is enough for all [count].
    """
    arrivals = int(photodiodes[~cut.inside].sum())
    circuits = min(cut.out, arrivals, int(sends[cut.inside].sum()))
    if not pieces or not circuits:
        return
    yield Bound(
        "cut",
        -(-pieces // circuits),
        f"{cut.where}: {counted(pieces, 'piece')} must cross, at most {circuits} per round",
    )
    if receivers == pieces:  # no rank behind the cut could relay what has crossed it
        return
    there, rounds = 0, 0
    lasers = np.sort(sends[~cut.inside])[::-1].cumsum()
    while there < receivers:  # at most `there` ranks hold something to relay, and at most all photodiodes receive
        passed_on = int(lasers[min(there, len(lasers)) - 1]) if there else 0
        there += min(arrivals, circuits + passed_on)
        rounds += 1
    why = f"{cut.where}: ranks behind it need {receivers} pieces in total, {circuits} arrive in the first round"
    yield Bound("cut reach", rounds, why)
