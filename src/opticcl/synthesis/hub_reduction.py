"""Reductions by hubs: parts are reduced to m hubs of their piece, the hubs exchange their sums, results are multicast.

    up          every other rank sends its part to a hub: a multicast from the hubs with time reversed
    exchange    digit after digit of the hub number, all hubs that differ in that digit exchange and add their sums
    down        multicast from the hubs

    m = 1       reduce-scatter and all-gather: 2 ceil((N - 1) / L) rounds for N pieces and L lasers with enough waveguides
    m = 2       N / 2 ranks send to each of two hubs: the same sends and one round in the middle
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
from opticcl.synthesis.packing import pack_groups
from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.wafer import Wafer

__all__ = ["HubAssignment", "exchange_rounds", "hub_candidates"]

Flags = npt.NDArray[np.bool_]
MAX_CANDIDATES = 24  # assignments that are evaluated


@dataclass(frozen=True, slots=True, eq=False)
class HubAssignment:
    """The hubs of each piece and how they exchange their sums.

    Args:
        name: shown in messages and results.
        ranks: hubs of each piece, int64 (pieces, hubs).
        radices: radices of the digits of a hub number.
        least: lower bound on the rounds from the number of lasers [count].
    """

    name: str
    ranks: npt.NDArray[np.int64]
    radices: tuple[int, ...]
    least: int

    def flags(self, num_ranks: int) -> Flags:
        """Which rank is a hub of which piece, bool (pieces, ranks)."""
        is_hub = np.zeros((len(self.ranks), num_ranks), bool)
        np.put_along_axis(is_hub, self.ranks, True, axis=1)
        return is_hub


def hub_candidates(wafer: Wafer, before: Flags, after: Flags) -> list[HubAssignment]:
    """Hub assignments by ascending lower bound; where possible, hubs are ranks that hold a part and need the sum.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds a part of each piece, and which needs the sum, bool (pieces, ranks).
    """
    lasers = int(wafer.lasers.sum(axis=1).max())
    candidates: dict[tuple[int, tuple[int, ...]], HubAssignment] = {}
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
            if max(radices, default=1) > lasers + 1 or (count, radices) in candidates:
                continue
            name = f"{count} hub" + "s" * (count > 1) + (f" {'x'.join(map(str, radices))}" if len(radices) > 1 else "")
            candidates[count, radices] = HubAssignment(
                name, ranks, radices, _least(wafer, before, after, ranks, radices, lasers)
            )
    return sorted(candidates.values(), key=lambda hubs: hubs.least)[:MAX_CANDIDATES]


def _spaced(able: IntArray, count: int, piece: int, pieces: int) -> IntArray:
    """`count` of the ranks `able`, evenly spaced, shifted from piece to piece.

    Args:
        able: ranks to choose from, int64 (n,).
        count: hubs [count].
    """
    first = piece * len(able) // pieces if pieces < len(able) else piece
    return able[(first + np.arange(count) * len(able) // count) % len(able)]


def _least(
    wafer: Wafer, before: Flags, after: Flags, ranks: npt.NDArray[np.int64], radices: tuple[int, ...], lasers: int
) -> int:
    """Lower bound on the rounds up, in between and down from the lasers of the busiest rank."""
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


def exchange_rounds(wafer: Wafer, hubs: HubAssignment, most: int) -> SendRounds | None:
    """Rounds in which the hubs of every piece exchange their sums.

    Args:
        wafer: optical resources of the job.
        hubs: the hubs and their radices.
        most: largest number of rounds of interest [count].
    Returns: the rounds; None if they are more than `most`.
    """
    schedule: SendRounds = []
    stride = 1
    for k in hubs.radices:
        part = pack_groups(wafer, list(_groups(hubs, k, stride)), most=most - len(schedule))
        if part is None:
            return None
        schedule += part
        stride *= k
    return schedule


def _groups(hubs: HubAssignment, k: int, stride: int) -> Iterator[list[PieceSend]]:
    """Sends among the hubs of a piece that differ in one digit: all add the sums of all others."""
    count = hubs.ranks.shape[1]
    for first in range(count):
        if first // stride % k:
            continue
        for piece, ranks in enumerate(hubs.ranks.tolist()):
            group = [ranks[first + i * stride] for i in range(k)]
            yield [PieceSend(piece, src, group[(i + d) % k], True) for d in range(1, k) for i, src in enumerate(group)]
