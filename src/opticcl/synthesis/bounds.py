"""Rounds that no schedule can do without, each bound with the words that tell why.

    receives    a rank hears as many pieces in a round as it has photodiodes
    sends       what a rank alone holds must leave by its lasers
    reach       in a round, a piece comes to at most lasers + 1 times as many ranks
    cut         what must cross the edges of a cut is more than they carry
    cut reach   ranks behind a cut have what came across, and what they made of it since then
    sums        an all-reduce of a piece takes 2 (N - 1) sends: N - 1 until a first rank knows the sum, one for each other
    one round   a rank that is done after one round has heard every other rank itself
    and two more for an all-reduce (`counting`)

They hold for any routes, and also if ranks of the job pass on what they do not need themselves.

Source: LUMORPH equations 2 to 6 (no bounds there); the sums are the one-way gossip of Harary and Schwenk 1974.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.synthesis.counting import Bound, counting_bounds
from opticcl.synthesis.cuts import Cut, cuts
from opticcl.synthesis.wafer import Wafer
from opticcl.units import counted

__all__ = ["highest", "spread_bounds", "sum_bounds"]

AT_ONCE = 1 << 24  # (piece, cut) pairs that are looked at together

Flags = npt.NDArray[np.bool_]


def highest(bounds: Iterator[Bound] | list[Bound]) -> Bound:
    """The bound that says most; of equals the first."""
    return max([*bounds, Bound("nothing", 0, "all have what they want from the start")], key=lambda bound: bound.rounds)


def spread_bounds(wafer: Wafer, before: Flags, after: Flags) -> Iterator[Bound]:
    """Bounds for pieces that spread from those who hold them to those who want them.

    Args: before, after: who holds what at the start and at the end, bool (pieces, ranks).
    """
    wanted = after & ~before
    if not wanted.any():
        return
    hears, sends = wafer.hears.sum(axis=1), wafer.sends.sum(axis=1)
    yield _busiest("receives", wanted.sum(axis=0), hears, "must receive {} and has {}", "piece", "photodiode")
    alone = (before[(before.sum(axis=1) == 1) & wanted.any(axis=1)]).sum(axis=0)
    yield _busiest("sends", alone, sends, "alone holds {} that others want and has {}", "piece", "laser")
    yield _reach((before | after).sum(axis=1), before.sum(axis=1), int(sends.max()))
    for side, beyond in _sides(wafer, len(before)):
        waiting = np.where(
            _counted(before, beyond) > 0, 0, _counted(wanted, beyond)
        )  # of what only ranks on this side hold
        for cut, pieces, receivers in zip(side, (waiting > 0).sum(axis=0), waiting.sum(axis=0), strict=True):
            yield from _cut(cut, int(pieces), int(receivers), hears, sends)


def sum_bounds(wafer: Wafer, before: Flags, after: Flags) -> Iterator[Bound]:
    """Bounds for pieces of which every rank in `before` has a part and every rank in `after` wants the sum."""
    hears, sends = wafer.hears.sum(axis=1), wafer.sends.sum(axis=1)
    parts, wanting = before.sum(axis=1), after.sum(axis=1)
    lacks = after & (parts[:, None] - before > 0)  # somebody else has a part
    if not lacks.any():
        return
    yield _busiest("receives", lacks.sum(axis=0), hears, "must receive {} and has {}", "sum", "photodiode")
    gives = before & (wanting[:, None] - after > 0)
    yield _busiest("sends", gives.sum(axis=0), sends, "has a part of {} that others want and has {}", "sum", "laser")
    needed = int(np.where(wanting > 0, parts - 1 + wanting - (before & after).any(axis=1), 0).sum())
    lasers = int(sends.sum())
    if lasers:
        yield Bound(
            "sums", -(-needed // lasers), f"sums take {needed} sends at least, all lasers make {lasers} in a round"
        )
    yield _reach(np.maximum(parts, wanting), np.ones_like(parts), int(sends.max()))
    direct = (after * (parts[:, None] - before)).sum(axis=0)
    busiest = int(np.argmax(direct - hears))
    if direct[busiest] > hears[busiest]:
        why = f"in one round rank {busiest} would hear {direct[busiest]} parts with {hears[busiest]} photodiodes"
        yield Bound("one round", 2, why)
    for side, beyond in _sides(wafer, len(before)):
        crossing = (_counted(before, ~beyond) > 0) & (_counted(after, beyond) > 0)
        for cut, pieces in zip(side, crossing.sum(axis=0), strict=True):
            yield from _cut(cut, int(pieces), int(pieces), hears, sends)
    if before.all() and after.all():
        yield from counting_bounds(wafer, len(before))


def _busiest(name: str, count: IntArray, at_once: IntArray, words: str, thing: str, means: str) -> Bound:
    """The rank that has most to do for what it has; one that has nothing is told by `certificate`."""
    rounds = -(-count // np.maximum(at_once, 1))
    rank = int(np.argmax(rounds))
    return Bound(
        name,
        int(rounds[rank]),
        f"rank {rank} " + words.format(counted(count[rank], thing), counted(at_once[rank], means)),
    )


def _reach(most: IntArray, start: IntArray, lasers: int) -> Bound:
    """Ranks that know of a piece multiply by at most lasers + 1."""
    rounds, piece = np.zeros(len(most), np.int64), 0
    known = start.astype(np.int64)
    while (known < most).any() and lasers:
        rounds[known < most] += 1
        known = np.minimum(known * (lasers + 1), most)
    piece = int(np.argmax(rounds))
    why = f"from {counted(start[piece], 'rank')} to {most[piece]}, at most {lasers + 1} times as many a round"
    return Bound("reach", int(rounds[piece]), why)


def _sides(wafer: Wafer, num_pieces: int) -> Iterator[tuple[list[Cut], Flags]]:
    """Sides of cuts, some at a time, and who is beyond each, bool (ranks, cuts)."""
    sides = list(cuts(wafer))
    some = max(1, AT_ONCE // max(1, num_pieces))
    for start in range(0, len(sides), some):
        part = sides[start : start + some]
        yield part, ~np.stack([cut.inside for cut in part], axis=1)


def _counted(flags: Flags, beyond: Flags) -> IntArray:
    """How many of each piece's ranks are beyond each cut, int (pieces, cuts)."""
    return (flags.astype(np.float32) @ beyond.astype(np.float32)).astype(np.int32)


def _cut(cut: Cut, pieces: int, receivers: int, hears: IntArray, sends: IntArray) -> Iterator[Bound]:
    """Bounds of one cut, from inside to outside.

    Args:
        pieces: that must come across [count].
        receivers: (piece, rank) pairs outside that wait for them; as many as pieces if one is enough for all [count].
        hears, sends: photodiodes and lasers of each rank.
    """
    heard = int(hears[~cut.inside].sum())
    circuits = min(cut.out, heard, int(sends[cut.inside].sum()))
    if not pieces or not circuits:
        return
    yield Bound(
        "cut", -(-pieces // circuits), f"{cut.where}: {counted(pieces, 'piece')} must cross, {circuits} can in a round"
    )
    if receivers == pieces:  # nobody behind the cut could pass on what came across
        return
    there, rounds = 0, 0
    lasers = np.sort(sends[~cut.inside])[::-1].cumsum()
    while there < receivers:  # at most `there` ranks have something to pass on, and at most all photodiodes hear
        passed_on = int(lasers[min(there, len(lasers)) - 1]) if there else 0
        there += min(heard, circuits + passed_on)
        rounds += 1
    why = f"{cut.where}: behind it ranks wait for {receivers} pieces in all, {circuits} get there in the first round"
    yield Bound("cut reach", rounds, why)
