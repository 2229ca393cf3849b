"""Lower bounds for an all-reduce by counting sends and parts, where the lasers have no slack.

N ranks with L lasers and photodiodes each, C pieces, R rounds.

**Whole sums** (C = 1). After r rounds a sum has at most (L + 1)^r parts. If L sums of the last round but one are too few
(L (L + 1)^(R - 1) < N), every rank combines L + 1 of them in the last round, its own included; no rank sends more than L
times, so every sum is used L + 1 times, and N ranks with N parts each hold L + 1 times the parts of all sums before.
So L + 1 divides N^2.

**Full lasers** (C (2N - 2) = N L R, so every laser sends in every round and no piece has more than its 2N - 2 sends). Then
one or two ranks are the first to hold the sum of a piece, and every rank but a single root sends once until then:

    one root    N - 1 sends up to round t, N - 1 down after it            a <= t <= R - a,      (L + 1)^a >= N
    two roots   N - 2 up before t, an exchange in t, N - 2 down after     b <= t <= R + 1 - b,  2 (L + 1)^(b - 1) >= N

(At least N - 1 sends lead to a first rank that holds the sum, and one to each other rank. If three were the first in the
same round t, then before t the sends would leave 2 + k components of the ranks, each of the three would receive from
1 + k others in t, and 2N - 2 would not be enough unless k = 0, where two trees have only one root each.)

    no such t                        no schedule
    only two roots, at t = b         C (N - 2) sends must fill b - 1 rounds and 2 C the next
    R = 2a + 1, b = a + 1            rounds 1 .. a have only sends up, L a of a rank's C (C - 1 for each piece it is the
                                     root of). If L (a + 1) > C, every rank sends down in round a + 1, so it is the root
                                     of a piece that is reduced by then; with C = N those are all pieces, so L a = C - 1
    R = 2, N > 2                     only one root, at t = 1: in round 1 every rank sends to the roots of all pieces but its
                                     own C - L, so n (N - n) (C - L) circuits leave any n ranks; a cut may forbid that

Source: own derivation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opticcl.synthesis.cuts import cuts
from opticcl.synthesis.wafer import Wafer
from opticcl.units import counted

__all__ = ["Bound", "counting_bounds"]


class Bound(NamedTuple):
    """A lower bound on the number of rounds.

    Args:
        name: receives, sends, reach, cut, ...
        rounds: least number of rounds [count].
        why: the reason in words.
    """

    name: str
    rounds: int
    why: str


def counting_bounds(wafer: Wafer, num_pieces: int) -> Iterator[Bound]:
    """Bounds for pieces of which all ranks hold a part and need the sum."""
    n = wafer.num_ranks
    lasers = int(wafer.lasers.sum(axis=1).max())  # ranks with fewer lasers only raise the bound
    if n < 2 or not lasers:
        return
    if num_pieces == 1:
        yield from _whole_sums(n, lasers)
    rounds, rest = divmod(num_pieces * (2 * n - 2), n * lasers)
    if not rest and _full_lasers_fail(n, lasers, num_pieces, rounds):
        why = (
            f"{counted(rounds, 'round')} would use every laser in every round; then {num_pieces} sums of {n} do not fit"
        )
        yield Bound("full lasers", rounds + 1, why)
    elif not rest and rounds == 2 < n:
        yield from _two_full_rounds(wafer, n, num_pieces - lasers)


def _rounds_to(target: int, start: int, lasers: int) -> int:
    """Rounds until `start` ranks have multiplied to `target`, by lasers + 1 in a round."""
    rounds = 0
    while start * (lasers + 1) ** rounds < target:
        rounds += 1
    return rounds


def _whole_sums(n: int, lasers: int) -> Iterator[Bound]:
    rounds = _rounds_to(n, 1, lasers)
    if lasers * (lasers + 1) ** (rounds - 1) < n and n**2 % (lasers + 1):
        use = f"{n} ranks would use each sum {lasers + 1} times, and {lasers + 1} does not divide {n}^2"
        yield Bound("whole sums", rounds + 1, f"in {counted(rounds, 'round')}, {use}")


def _two_full_rounds(wafer: Wafer, n: int, roots: int) -> Iterator[Bound]:
    """Cuts without the capacity for two rounds in which every laser sends.

    Args:
        n: ranks [count].
        roots: pieces that each rank is the root of [count].
    """
    for cut in cuts(wafer):
        inside = int(cut.inside.sum())
        crossing = inside * (n - inside) * roots
        if crossing > cut.out:
            needed = f"in the first all ranks would send to the roots of all pieces, {crossing} across {cut.where}"
            why = f"2 rounds would use every laser in every round; {needed}, which carries {cut.out}"
            yield Bound("full lasers", 3, why)
            return


def _full_lasers_fail(n: int, lasers: int, pieces: int, rounds: int) -> bool:
    """Whether no schedule has `rounds` rounds in all of which all lasers send."""
    a, b = _rounds_to(n, 1, lasers), 1 + _rounds_to(n, 2, lasers)
    one_root, two_roots = a <= rounds - a, b <= rounds + 1 - b
    if not one_root and not two_roots:
        return True
    if not one_root and rounds == 2 * b - 1:
        return pieces * (n - 2) != (b - 1) * n * lasers or 2 * pieces != n * lasers
    if rounds == 2 * a + 1 and b == a + 1 and lasers * (a + 1) > pieces:
        return pieces < n or (pieces == n and lasers * a != pieces - 1)
    return False
