"""Bounds of an all-reduce by counting sends and parts, where lasers are only just enough.

N ranks with L lasers and photodiodes each, C pieces, R rounds.

**Whole sums** (C = 1). After r rounds a sum has at most (L + 1)^r parts. If L sums of the last round but one are too few
(L (L + 1)^(R - 1) < N), every rank takes L + 1 of them in the last round, its own included; nobody sends more than L
times, so every sum is used L + 1 times, and N ranks with N parts each have L + 1 times the parts of all sums before.
So L + 1 divides N^2.

**Full lasers** (C (2N - 2) = N L R, so every laser is lit in every round and no piece has more than its 2N - 2 sends). Then
the first ranks that know the sum of a piece are one or two, and every rank sends once until then, but for a single root:

    one root    N - 1 sends up to round t, N - 1 down after it            a <= t <= R - a,      (L + 1)^a >= N
    two roots   N - 2 up before t, an exchange in t, N - 2 down after     b <= t <= R + 1 - b,  2 (L + 1)^(b - 1) >= N

(N - 1 sends at least lead to a first rank that knows the sum, and one to each other. Were three the first in the same
round t, then before t the sends would leave 2 + k parts of the ranks unjoined, each of the three would hear 1 + k others
in t, and 2N - 2 would not be enough unless k = 0, where two trees have but one root each.)

    no such t                        no schedule
    two roots alone, at t = b        C (N - 2) sends must fill b - 1 rounds and 2 C the next
    R = 2a + 1, b = a + 1            rounds 1 .. a have sends up alone, L a of a rank's C (C - 1 for each piece it is the
                                     root of). If L (a + 1) > C, every rank sends down in round a + 1, so it is the root
                                     of a piece that is up by then; with C = N that is all pieces, so L a = C - 1
    R = 2, N > 2                     one root alone, at t = 1: in round 1 every rank sends to the roots of all pieces but its
                                     own C - L, so n (N - n) (C - L) circuits leave any n ranks; a cut may forbid that

Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opticcl.synthesis.cuts import cuts
from opticcl.synthesis.wafer import Wafer
from opticcl.units import counted

__all__ = ["Bound", "counting_bounds"]


class Bound(NamedTuple):
    """Fewer rounds are impossible.

    Args:
        name: receives, sends, reach, cut, ...
        rounds: at least so many [count].
        why: in words.
    """

    name: str
    rounds: int
    why: str


def counting_bounds(wafer: Wafer, num_pieces: int) -> Iterator[Bound]:
    """Bounds for pieces of which all ranks have a part and want the sum."""
    n = wafer.num_ranks
    lasers = int(wafer.sends.sum(axis=1).max())  # ranks with fewer do not make it easier
    if n < 2 or not lasers:
        return
    if num_pieces == 1:
        yield from _whole_sums(n, lasers)
    rounds, rest = divmod(num_pieces * (2 * n - 2), n * lasers)
    if not rest and _full_lasers_fail(n, lasers, num_pieces, rounds):
        why = f"{counted(rounds, 'round')} would light every laser always; then no {num_pieces} sums of {n} fit"
        yield Bound("full lasers", rounds + 1, why)
    elif not rest and rounds == 2 < n:
        yield from _two_full_rounds(wafer, n, num_pieces - lasers)


def _rounds_to(target: int, start: int, lasers: int) -> int:
    """Rounds until `start` ranks have become `target`."""
    rounds = 0
    while start * (lasers + 1) ** rounds < target:
        rounds += 1
    return rounds


def _whole_sums(n: int, lasers: int) -> Iterator[Bound]:
    rounds = _rounds_to(n, 1, lasers)
    if lasers * (lasers + 1) ** (rounds - 1) < n and n**2 % (lasers + 1):
        use = f"{n} ranks would use each sum {lasers + 1} times, and {lasers + 1} does not divide {n}^2"
        yield Bound("whole sums", rounds + 1, f"in {counted(rounds, 'round')} {use}")


def _two_full_rounds(wafer: Wafer, n: int, roots: int) -> Iterator[Bound]:
    """Cuts that are too narrow for it, where every rank is the root of so many pieces."""
    for cut in cuts(wafer):
        inside = int(cut.inside.sum())
        crossing = inside * (n - inside) * roots
        if crossing > cut.out:
            needed = f"all ranks would send to the roots of all pieces in the first, {crossing} across {cut.where}"
            yield Bound("full lasers", 3, f"2 rounds would light every laser always; {needed}, which carries {cut.out}")
            return


def _full_lasers_fail(n: int, lasers: int, pieces: int, rounds: int) -> bool:
    """Whether that many rounds, in which all lasers are lit, cannot be."""
    a, b = _rounds_to(n, 1, lasers), 1 + _rounds_to(n, 2, lasers)
    one_root, two_roots = a <= rounds - a, b <= rounds + 1 - b
    if not one_root and not two_roots:
        return True
    if not one_root and rounds == 2 * b - 1:
        return pieces * (n - 2) != (b - 1) * n * lasers or 2 * pieces != n * lasers
    if rounds == 2 * a + 1 and b == a + 1 and lasers * (a + 1) > pieces:
        return pieces < n or (pieces == n and lasers * a != pieces - 1)
    return False
