"""Which radices, and which links to hold for which steps: the fastest `digit_shifts` of a size, exactly.

A step shifts by D and sends m bytes a node. On links of shift S it takes

    alpha + (delta + beta m) h      h S = D modulo N, h links with h circuits on each

and a change of links R. With C(a, b) the least time of steps a .. b - 1 on the links of one shift, over all shifts that serve
them,

    F[b] = min over a of F[a] + R + C(a, b)

which needs no pairs (a, b): for each shift the best start of its segment is kept while b advances. All ordered
factorisations of N are tried whose least time, every step on one link, is below the best found.

Source: the law and the recurrence, with the number of changes as a further state, are Harvest's (arXiv 2602.09188); holding
sub-rings is Bridge's (arXiv 2605.12766).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import comb, inf, isfinite
from time import perf_counter

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.schedule.digit_shifts import COLLECTIVES, shift_steps
from opticcl.units import Seconds

__all__ = ["HeldShifts", "ShiftLaw", "bound_s", "factorisations", "fastest_held", "links_needed"]

FloatArray = npt.NDArray[np.float64]

ALL_SHIFTS = limit("held_shifts.ALL_SHIFTS")

KEPT_NODES = limit("held_shifts.KEPT_NODES")

TIMED_BLOCK = 16
"""Factorisations that are tried before time is compared with a limit [count]."""


@dataclass(frozen=True, slots=True)
class ShiftLaw:
    """What a step and a change take.

    Args:
        alpha_s: of a step [s].
        delta_s: of each link that a circuit passes [s].
        s_per_byte: of a link [s/byte].
        change_s: of a change of links [s].
        sums_s_per_byte: of adding what arrived [s/byte].
        first_free: whether the first links stand from the start, whichever they are.
        stands: shift whose links stand from the start; 0: none.
    Raises: ParameterError: a negative time, or one that is no number.
    """

    alpha_s: Seconds
    delta_s: Seconds
    s_per_byte: float
    change_s: Seconds
    sums_s_per_byte: float = 0.0
    first_free: bool = False
    stands: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha_s", "delta_s", "s_per_byte", "change_s", "sums_s_per_byte"):
            value = getattr(self, name)
            if not value >= 0 or (name != "change_s" and not isfinite(value)):
                raise ParameterError(f"plan: {name}={value:g} is not a duration; try 0 or more")


@dataclass(frozen=True, slots=True)
class HeldShifts:
    """Parameters of `digit_shifts`, and their time.

    Args:
        radices: of the digits, the lowest first.
        cuts: first step of each segment after the first.
        shifts: links of each segment.
        steps: dependent steps [count].
        links: passed by the circuits of all steps, one after the other [count].
        moved: what a port carries, in messages.
        seconds: time [s].
        proven: whether no other plan of this kind is faster; False where the time limit ended the search.
    """

    radices: tuple[int, ...]
    cuts: tuple[int, ...]
    shifts: tuple[int, ...]
    steps: int
    links: int
    moved: float
    seconds: float
    proven: bool = True

    @property
    def changes(self) -> int:
        """Changes of links after the first [count]."""
        return len(self.cuts)

    @property
    def algorithm(self) -> str:
        """As `opticcl.compile` takes it."""
        if not self.shifts:
            return "digit_shifts"
        text = [f"radices={'x'.join(map(str, self.radices))}"] if self.radices else []
        text += [f"cuts={'x'.join(map(str, self.cuts))}"] if self.cuts else []
        text.append(f"shifts={'x'.join(map(str, self.shifts))}")
        return "digit_shifts:" + ",".join(text)


@lru_cache(maxsize=16)
def factorisations(number: int) -> tuple[tuple[int, ...], ...]:
    """All ordered products of numbers above 1.

    >>> factorisations(8)
    ((8,), (2, 4), (4, 2), (2, 2, 2))
    """

    def parts(rest: int) -> Iterator[tuple[int, ...]]:
        if rest == 1:
            yield ()
        for factor in range(2, rest + 1):
            if rest % factor == 0:
                yield from ((factor, *others) for others in parts(rest // factor))

    return tuple(sorted(parts(number), key=lambda radices: (len(radices), radices))) if number > 1 else ((),)


def links_needed(distances: IntArray, shifts: IntArray, num_nodes: int) -> IntArray:
    """Links of each shift that lead each distance ahead, 0 where they do not, int64 (shifts, distances).

    >>> links_needed(np.array([1, 2, 6]), np.array([1, 2]), 8).tolist()
    [[1, 2, 6], [0, 1, 3]]

    Args:
        distances: of the steps, int64 (distances,).
        shifts: of links, int64 (shifts,).
        num_nodes: nodes N [count].
    """
    common = np.gcd(shifts, num_nodes)
    rest = num_nodes // common
    inverse = np.array(
        [pow(int(s // g), -1, int(r)) if r > 1 else 0 for s, g, r in zip(shifts, common, rest, strict=True)]
    )
    found = distances // common[:, None] * inverse[:, None] % rest[:, None]
    return np.asarray(np.where(distances % common[:, None] == 0, found, 0))


def fastest_held(
    collective: str, num_nodes: int, size_bytes: float, law: ShiftLaw, *, time_limit_s: float = inf
) -> HeldShifts:
    """The fastest `digit_shifts` for a message.

    Args:
        collective: one that `digit_shifts` does.
        num_nodes: nodes N [count].
        size_bytes: message of every rank [bytes].
        law: of steps and changes.
        time_limit_s: after which the best so far is returned [s].
    Raises: ParameterError: another collective, or links that can never be set.
    """
    if collective not in COLLECTIVES:
        raise ParameterError(f"plan: {collective} has no shifts to hold; it does {', '.join(COLLECTIVES)}")
    if law.change_s == inf and not (law.first_free or law.stands):
        raise ParameterError(
            "plan: links that take forever to set never stand; give a finite reconfiguration, or --assume initial=warm"
        )
    begin = perf_counter()
    families = (_families if num_nodes <= KEPT_NODES else _families.__wrapped__)(collective, num_nodes)
    least = families.least_s(size_bytes, law)
    order = np.argsort(least, kind="stable")
    sums = families.moved * families.adds * size_bytes * law.sums_s_per_byte
    columns = (families.moved, sums, families.links, families.first_step, families.first_link)
    laws = (float(law.alpha_s), float(law.delta_s), float(law.s_per_byte * size_bytes), float(law.change_s))
    held, begun = np.zeros((2, len(families.moved)), np.int64)
    best, best_s, proven = 0, inf, True
    block = len(order) if time_limit_s == inf else TIMED_BLOCK
    for at in range(0, len(order), block):
        if least[order[at]] >= best_s:
            break
        tried = order[at : at + block]
        stands = families.places_of(law.stands, tried)
        found = _first_fastest(tried, least, *columns, *laws, law.first_free, stands, best, best_s, held, begun)
        best, best_s = int(found[0]), float(found[1])
        if best_s < inf and perf_counter() - begin > time_limit_s:
            proven = False
            break
    return _segments(families.members[best], held, begun, best_s, proven)


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Steps of one factorisation.

    Args:
        num_nodes: nodes [count].
        radices: of the digits.
        distance: of each step, int64 (steps,).
        moved: what a node sends in each step, in messages, float64 (steps,).
        adds: whether the receiver adds in each step, bool (steps,).
        shifts: that may be held, int64 (shifts,).
        links: of each step on each shift, 0 where they do not serve it, int64 (steps, shifts).
        whole: what a node sends in all steps, in messages.
        added: what a node adds in all steps, in messages.
    """

    num_nodes: int
    radices: tuple[int, ...]
    distance: IntArray
    moved: FloatArray
    adds: npt.NDArray[np.bool_]
    shifts: IntArray
    links: IntArray
    whole: float
    added: float


@lru_cache(maxsize=64)
def _family(collective: str, radices: tuple[int, ...]) -> _Family:
    weights = np.concatenate([[1], np.cumprod(np.array(radices, np.int64))])
    n = int(weights[-1])
    digit, value = shift_steps(collective, radices)
    factor = np.array([*radices, 1], np.int64)
    distance = value * weights[digit]
    moved = 1.0 / factor[digit] if collective == "all_to_all" else 1.0 / weights[digit + 1]
    adds = np.zeros(len(digit), bool)
    if collective in ("reduce_scatter", "all_reduce"):
        adds[: len(digit) if collective == "reduce_scatter" else len(digit) // 2] = True
    every = np.arange(1, n)
    few = np.concatenate([every[n % every == 0], weights[:-1]])
    shifts = every if n <= ALL_SHIFTS else np.unique(few[few < n])
    links = links_needed(distance, shifts, n).T.astype(np.int32, order="C")
    return _Family(n, radices, distance, moved, adds, shifts, links, float(moved.sum()), float(moved[adds].sum()))


@dataclass(frozen=True, slots=True, eq=False)
class _Families:
    """All factorisations of a number of nodes, with their columns end to end.

    Args:
        members: each of them.
        moved, adds: of the steps of all, (steps,).
        links: of the steps of all, each on all shifts of its factorisation, int32 (entries,).
        first_step: place of the first step of each, and the end, int64 (factorisations + 1,).
        first_link: place of the first of the `links` of each, and the end, int64 (factorisations + 1,).
        whole, added: of each, float64 (factorisations,).
    """

    members: tuple[_Family, ...]
    moved: FloatArray
    adds: npt.NDArray[np.bool_]
    links: IntArray
    first_step: IntArray
    first_link: IntArray
    whole: FloatArray
    added: FloatArray

    def least_s(self, size_bytes: float, law: ShiftLaw) -> FloatArray:
        """Time of each with one link a step and without changes [s], float64 (factorisations,)."""
        steps = np.diff(self.first_step)
        first = np.where(steps > 0, 0.0 if law.first_free or law.stands else law.change_s, 0.0)
        whole = steps * (law.alpha_s + law.delta_s) + self.whole * size_bytes * law.s_per_byte
        return first + whole + self.added * size_bytes * law.sums_s_per_byte

    def places_of(self, shift: int, numbers: IntArray) -> IntArray:
        """Place of a shift among those of some of them, -1 where it is none and of the others, int64 (factorisations,)."""
        places = np.full(len(self.members), -1)
        for number in numbers.tolist() if shift else ():
            places[number] = next(iter(np.flatnonzero(self.members[number].shifts == shift)), -1)
        return places


@lru_cache(maxsize=8)
def _families(collective: str, num_nodes: int) -> _Families:
    members = [_family(collective, radices) for radices in factorisations(num_nodes)]
    links = np.concatenate([one.links.ravel() for one in members])
    first_link = np.cumsum([0, *(one.links.size for one in members)])
    return _Families(
        tuple(
            replace(one, links=links[start:end].reshape(one.links.shape))  # kept once
            for one, (start, end) in zip(members, pairwise(first_link.tolist()), strict=True)
        ),
        moved=np.concatenate([one.moved for one in members]),
        adds=np.concatenate([one.adds for one in members]),
        links=links,
        first_step=np.cumsum([0, *(len(one.moved) for one in members)]),
        first_link=first_link,
        whole=np.array([one.whole for one in members]),
        added=np.array([one.added for one in members]),
    )


def _segments(family: _Family, held: IntArray, begun: IntArray, seconds: float, proven: bool) -> HeldShifts:
    """The plan of a family of steps.

    Args:
        family: steps.
        held, begun: as `_held_until` finds them.
        seconds: time [s].
        proven: whether no other plan of this kind is faster.
    """
    cuts, shifts, links, moved, end = [], [], 0, 0.0, len(family.distance)
    while end:
        place, first = int(held[end - 1]), int(begun[end - 1])
        passed = family.links[first:end, place] if place >= 0 else np.ones(1, np.int64)
        links += int(passed.sum())
        moved += float(passed @ family.moved[first:end])
        cuts.append(first)
        shifts.append(int(family.shifts[place] if place >= 0 else family.distance[first]))
        end = first
    steps = len(family.distance)
    return HeldShifts(family.radices, tuple(cuts[::-1][1:]), tuple(shifts[::-1]), steps, links, moved, seconds, proven)


@njit(cache=False)
def _held_until(  # type: ignore[no-untyped-def]
    moved, sums, links, alpha_s, delta_s, s_per_message, change_s, first_free, stands, held, begun
):
    """Time at which the last step ends on the best links for each segment, inf where nothing is ever set [s].

    Args:
        moved: what a node sends in each step, in messages, float64 (steps,).
        sums: time of adding in each step, float64 (steps,).
        links: of each step on each shift, 0 where they do not serve it, int32 (steps, shifts).
        alpha_s: of a step [s].
        delta_s: of each link that a circuit passes [s].
        s_per_message: of a link, for a whole message [s].
        change_s: of a change of links [s].
        first_free: whether the first links stand from the start.
        stands: place among the shifts of the one that stands from the start; -1: none.
        held: for the result, place of the shift that ends each step, -1 for that of the step alone, int64 (steps,) or more.
        begun: for the result, first step of the segment that ends with each step, int64 (steps,) or more.
    """
    running = np.full(links.shape[1], np.inf)  # time so far, if the links of that shift stand
    since = np.zeros(links.shape[1], np.int64)
    until = 0.0
    for i in range(len(moved)):
        a_link = delta_s + s_per_message * moved[i]
        start = until + (0.0 if i == 0 and first_free else change_s)
        least, at = np.inf, 0
        for j in range(len(running)):
            if start < running[j]:
                running[j] = start
                since[j] = i
            if i == 0 and j == stands:
                running[j] = 0.0
            if links[i, j] == 0:
                running[j] = np.inf
            else:
                running[j] += (alpha_s + sums[i]) + a_link * links[i, j]
            if running[j] < least:
                least, at = running[j], j
        own = start + ((alpha_s + sums[i]) + a_link)
        if own < least:
            until, held[i], begun[i] = own, -1, i
        else:
            until, held[i], begun[i] = least, at, since[at]
    return until


@njit
def _first_fastest(  # type: ignore[no-untyped-def]
    order, least, moved, sums, links, first_step, first_link,
    alpha_s, delta_s, s_per_message, change_s, first_free, stands, best, best_s, held, begun,
):  # fmt: skip
    """The fastest of some families, up to the first whose bound is not below the best time.

    Args:
        order: numbers of the families to try, by their bounds, int64 (tried,).
        least: bound of each family [s].
        moved, sums: as of `_held_until`, of the steps of all families.
        links: the same, int32 (entries,).
        first_step, first_link: of each family, and the end, int64 (families + 1,).
        alpha_s, delta_s, s_per_message, change_s, first_free: as of `_held_until`.
        stands: the same of each family, int64 (families,).
        best: number of the best family so far.
        best_s: its time [s].
        held, begun: for the result, as of `_held_until`, of the fastest family; int64, as long as `moved`.
    Returns: number of the fastest family, of those before too, and its time [s].
    """
    now = np.empty_like(held), np.empty_like(begun)
    for number in order:
        if least[number] >= best_s:
            break
        start, end = first_step[number], first_step[number + 1]
        of_family = links[first_link[number] : first_link[number + 1]]
        table = of_family.reshape((end - start, len(of_family) // max(end - start, 1)))
        seconds = _held_until(
            moved[start:end], sums[start:end], table,
            alpha_s, delta_s, s_per_message, change_s, first_free, stands[number], *now,
        )  # fmt: skip
        if seconds < best_s:
            best, best_s = number, seconds
            held[: end - start], begun[: end - start] = now[0][: end - start], now[1][: end - start]
    return best, best_s


def bound_s(
    collective: str, num_nodes: int, size_bytes: int, law: ShiftLaw, *, planes: int = 1
) -> tuple[Seconds, str, int]:
    """Least time of any schedule with barriers on links that all change at the same times, whatever shape they have.

    With q changes a node reaches at most C(t + q, q) k^t nodes over t links in all: t is cut into hops on each of the q + 1
    sets of links in order. So some block passes as many links as it takes to count N nodes, and the blocks of an all_to_all
    pass at least the sum over the N - 1 nearest. Every set of links has a step of its own; where a change takes no time, they
    may all be rounds of one, in line:

        first + min over q of q R + (q + 1) alpha + delta t(q) + beta V(q)

    Args:
        collective: one that `digit_shifts` does.
        num_nodes: nodes N [count].
        size_bytes: message of every rank [bytes].
        law: of steps and changes; `s_per_byte` is that of all planes together.
        planes: switches k [count].
    Returns: time [s], the term that dominates, and changes after the first [count].
    Source: ours; with q = 0 the Moore bound of a digraph of degree k.
    """
    if num_nodes == 1:
        return 0.0, "nothing to send", 0
    first = 0.0 if law.first_free or law.stands else law.change_s
    best: tuple[float, str, int] = (inf, "", 0)
    others = num_nodes - 1
    for q in range(others):
        if law.change_s == inf and q:
            break
        farthest, total, counted, links = 0, 0, 0, 0
        while counted < others:
            links += 1
            here = min(others - counted, comb(links + q, q) * planes**links)
            farthest, total, counted = links, total + links * here, counted + here
        volume = (
            total / num_nodes if collective == "all_to_all" else others / num_nodes * (1 + (collective == "all_reduce"))
        )
        parts = {
            "changes of links": first + (q * law.change_s if q else 0.0),
            "steps": (q + 1 if law.change_s else 1) * law.alpha_s,
            "links to the farthest node": farthest * law.delta_s,
            "bytes through a port": volume * size_bytes * law.s_per_byte,
        }
        seconds = sum(parts.values())
        if seconds < best[0]:
            best = seconds, max(parts, key=lambda part: parts[part]), q
        if farthest == 1:  # more changes bring nothing
            break
    return best
