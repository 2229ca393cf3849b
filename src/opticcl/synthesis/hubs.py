"""Sums by hubs: parts go up to m hubs of their piece, these exchange what they have, sums come down.

    up          every other rank gives its part to a hub: pieces that spread from the hubs, with time turned round
    exchange    digit after digit of the hubs' number, all who differ in that digit add what they have
    down        pieces spread from the hubs

    m = 1       reduce-scatter and all-gather:  2 ceil((N - 1) / L) rounds for N pieces and L lasers, if waveguides are plenty
    m = 2       N / 2 ranks give to each of two hubs: the same sends and one round in the middle
    m = N       LUMORPH-k with the whole buffer: log_k N rounds for one piece

Source: LUMORPH sections 3.2 and 4 for m = 1 and m = N.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.schedule.lumorph import digits
from opticcl.synthesis.draft import Draft, Send
from opticcl.synthesis.packing import pack_together
from opticcl.synthesis.wafer import Wafer

__all__ = ["Hubs", "exchanged", "ways"]

Flags = npt.NDArray[np.bool_]
MOST_WAYS = 24  # that are looked at


@dataclass(frozen=True, slots=True, eq=False)
class Hubs:
    """Who the hubs of each piece are and how they exchange.

    Args:
        name: for people.
        ranks: of each piece, int64 (pieces, hubs).
        radices: of the digits of a hub's number.
        least: rounds that this takes at least, counted at lasers alone [count].
    """

    name: str
    ranks: npt.NDArray[np.int64]
    radices: tuple[int, ...]
    least: int

    def flags(self, num_ranks: int) -> Flags:
        """Who is a hub of which piece, bool (pieces, ranks)."""
        found = np.zeros((len(self.ranks), num_ranks), bool)
        np.put_along_axis(found, self.ranks, True, axis=1)
        return found


def ways(wafer: Wafer, before: Flags, after: Flags) -> list[Hubs]:
    """Hubs worth trying, those that promise the fewest rounds first: of each piece, if possible, such ranks as have a part
    and want the sum.

    Args: before, after: who has a part of each piece, and who wants the sum, bool (pieces, ranks).
    """
    lasers = int(wafer.sends.sum(axis=1).max())
    found: dict[tuple[int, tuple[int, ...]], Hubs] = {}
    with_part = [np.flatnonzero(has) for has in before]
    with_both = [np.flatnonzero(has) for has in before & after]
    for count in range(1, min(map(len, with_part)) + 1):
        ranks = np.array(
            [
                _spaced(both if len(both) >= count else part, count, piece, len(before))
                for piece, (part, both) in enumerate(zip(with_part, with_both, strict=True))
            ]
        )
        for radix in sorted({2, 3, 4, 8, min(lasers + 1, count)}):
            radices = digits(count, radix) if radix > 1 else ()
            if max(radices, default=1) > lasers + 1 or (count, radices) in found:
                continue
            name = f"{count} hub" + "s" * (count > 1) + (f" {'x'.join(map(str, radices))}" if len(radices) > 1 else "")
            found[count, radices] = Hubs(name, ranks, radices, _least(wafer, before, after, ranks, radices, lasers))
    return sorted(found.values(), key=lambda way: way.least)[:MOST_WAYS]


def _spaced(able: IntArray, count: int, piece: int, pieces: int) -> IntArray:
    """So many of the ranks that are able, evenly apart, and other ones for other pieces."""
    first = piece * len(able) // pieces if pieces < len(able) else piece
    return able[(first + np.arange(count) * len(able) // count) % len(able)]


def _least(
    wafer: Wafer, before: Flags, after: Flags, ranks: npt.NDArray[np.int64], radices: tuple[int, ...], lasers: int
) -> int:
    """Rounds up, in between and down, as the busiest rank's lasers have it."""
    n = wafer.num_ranks
    is_hub = np.zeros((len(before), n), bool)
    np.put_along_axis(is_hub, ranks, True, axis=1)
    rounds = 0
    for others in (before & ~is_hub, after & ~is_hub):
        reach = 0
        while ranks.shape[1] * (lasers + 1) ** reach < ranks.shape[1] + int(others.sum(axis=1).max()):
            reach += 1
        rounds += max(reach, int((-(-others.sum(axis=0) // lasers)).max(initial=0)))
    busiest = int(is_hub.sum(axis=0).max())
    return rounds + sum(-(-busiest * (k - 1) // lasers) for k in radices)


def exchanged(wafer: Wafer, hubs: Hubs, most: int) -> Draft | None:
    """The hubs of every piece exchange what they have.

    Args: most: rounds beyond which nobody is interested [count].
    """
    draft: Draft = []
    stride = 1
    for k in hubs.radices:
        part = pack_together(wafer, list(_groups(hubs, k, stride)), most=most - len(draft))
        if part is None:
            return None
        draft += part
        stride *= k
    return draft


def _groups(hubs: Hubs, k: int, stride: int) -> Iterator[list[Send]]:
    """Hubs of a piece that differ in one digit: all add what all others have."""
    count = hubs.ranks.shape[1]
    for first in range(count):
        if first // stride % k:
            continue
        for piece, ranks in enumerate(hubs.ranks.tolist()):
            group = [ranks[first + i * stride] for i in range(k)]
            yield [Send(piece, src, group[(i + d) % k], True) for d in range(1, k) for i, src in enumerate(group)]
