"""Which radices, and which links to hold for which steps: the fastest `digit_shifts` or `balanced_digits` of a size, exactly.

A step of `digit_shifts` shifts by D and sends m bytes a node. On links of shift S, the same on all planes, it takes

    alpha + (delta + beta m) h      h S = D modulo N, h links with h circuits on each

and a change of links R. With C(a, b) the least time of steps a .. b - 1 on the links of one shift, over all shifts that serve
them,

    F[b] = min over a of F[a] + R + C(a, b)

which needs no pairs (a, b): for each shift the best start of its segment is kept while b advances. All ordered
factorisations of N are tried whose least time, every step on one link, is below the best found.

On k > 1 planes the same recurrence holds sets of k shifts, one a plane, for the steps of `balanced_digits`; see `held_sets`.

Source: the law and the recurrence, with the number of changes as a further state, are Harvest's (arXiv 2602.09188); holding
sub-rings is Bridge's (arXiv 2605.12766).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import inf
from time import perf_counter

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.plans.held_sets import factorisations, set_families
from opticcl.schedule.digit_shifts import COLLECTIVES, shift_steps
from opticcl.simulate.held_links import ShiftLaw

__all__ = ["HeldShifts", "fastest_held", "links_needed"]

FloatArray = npt.NDArray[np.float64]

ALL_SHIFTS = limit("held_shifts.ALL_SHIFTS")

KEPT_NODES = limit("held_shifts.KEPT_NODES")

STEP_COLUMNS = ("moved", "arrived", "covered", "messages")

TIMED_BLOCK = 16
"""Factorisations that are tried before time is compared with a limit [count]."""


@dataclass(frozen=True, slots=True)
class HeldShifts:
    """Parameters of `digit_shifts` or `balanced_digits`, and their time.

    Args:
        name: of the algorithm.
        sides: of the grid of nodes, of `balanced_digits`.
        radices: of the digits, the lowest first.
        cuts: first step of each segment after the first.
        shifts: links of each segment; of `balanced_digits` one a plane.
        steps: dependent steps [count].
        links: passed by the circuits of all steps, one after the other [count].
        moved: what a node sends over links in all steps, in messages; of `balanced_digits` as if all ports carried what the
            busiest does.
        seconds: time [s].
        proven: whether no other plan of this kind is faster; False where the time limit ended the search.
        untried: choices of sides and radices that were left out, in words; "": none.
    """

    name: str
    sides: tuple[int, ...]
    radices: tuple[int, ...]
    cuts: tuple[int, ...]
    shifts: tuple[int, ...]
    steps: int
    links: int
    moved: float
    seconds: float
    proven: bool = True
    untried: str = ""

    @property
    def changes(self) -> int:
        """Changes of links after the first [count]."""
        return len(self.cuts)

    @property
    def algorithm(self) -> str:
        """As `opticcl.compile` takes it."""
        if not self.shifts:
            return self.name
        given = {
            "sides": self.sides if len(self.sides) > 1 else (),
            "radices": self.radices if self.radices != self.sides or len(self.sides) == 1 else (),
            "cuts": self.cuts,
            "shifts": self.shifts,
        }
        text = (f"{key}={'x'.join(map(str, numbers))}" for key, numbers in given.items() if numbers)
        return f"{self.name}:{','.join(text)}"


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
    links = distances // common[:, None] * inverse[:, None] % rest[:, None]
    return np.asarray(np.where(distances % common[:, None] == 0, links, 0))


def fastest_held(
    collective: str, num_nodes: int, size_bytes: float, law: ShiftLaw, *, planes: int = 1, time_limit_s: float = inf
) -> HeldShifts:
    """The fastest `digit_shifts` for a message, or `balanced_digits` on several planes.

    Args:
        collective: one that `digit_shifts` does.
        num_nodes: nodes N [count].
        size_bytes: message of every rank [bytes].
        law: of steps and changes; `s_per_byte` is that of all planes together.
        planes: switches k [count].
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
    families = (_families if num_nodes <= KEPT_NODES else _families.__wrapped__)(collective, num_nodes, planes)
    least = families.least_s(size_bytes, law)
    order = np.argsort(least, kind="stable")
    sums = families.sums_s(families.arrived, families.covered, families.messages, size_bytes, law)
    columns = (families.own, sums, families.links, families.weights)
    places = (families.first_step, families.first_link, families.first_weight)
    laws = (float(law.alpha_s), float(law.delta_s), float(law.s_per_byte * size_bytes), float(law.change_s))
    held, begun = np.zeros((2, len(families.moved)), np.int64)
    best, best_s, proven = 0, inf, True
    block = len(order) if time_limit_s == inf else TIMED_BLOCK
    for at in range(0, len(order), block):
        if least[order[at]] >= best_s:
            break
        tried = order[at : at + block]
        stands = families.places_of(law.stands, tried)
        fastest = _first_fastest(
            tried, least, *columns, *places, *laws, law.first_free, stands, best, best_s, held, begun
        )
        best, best_s = int(fastest[0]), float(fastest[1])
        if best_s < inf and perf_counter() - begin > time_limit_s:
            proven = False
            break
    return _segments(families.members[best], held, begun, best_s, proven, families.untried)


@dataclass(frozen=True, slots=True, eq=False)
class _Family:
    """Steps of one choice of sides and radices.

    Args:
        name: of the algorithm.
        sides: of the grid of nodes, of `balanced_digits`.
        radices: of the digits.
        own: shift of each step alone, int64 (steps,); of `balanced_digits` none, since `shifts` has all.
        moved: what a node sends in each step, in messages, float64 (steps,).
        weights: bytes over the links of all planes together for each link of a path, in messages, float64 (steps, columns) or,
            where it is the same on all shifts, (steps, 1).
        arrived: what a node gets to add in each step, in messages, float64 (steps,).
        covered: what it adds to, the same.
        messages: that a node sends in each step behind the first, int64 (steps,).
        shifts: that may be held, int64 (columns, planes), or (columns, 1) where they are the same on all planes.
        links: of each step on each of them, 0 where they do not serve it, int64 (steps, columns).
    """

    name: str
    sides: tuple[int, ...]
    radices: tuple[int, ...]
    own: IntArray
    moved: FloatArray
    weights: FloatArray
    arrived: FloatArray
    covered: FloatArray
    messages: IntArray
    shifts: IntArray
    links: IntArray

    def place_of(self, shifts: tuple[int, ...]) -> int:
        """Place among those that may be held of some that stand, -1 where there is none."""
        planes = self.shifts.shape[1]
        stands = shifts if planes == len(shifts) else tuple(dict.fromkeys(shifts))
        same = (self.shifts == np.array(stands)).all(axis=1) if planes == len(stands) else np.zeros(0, bool)
        return next(iter(np.flatnonzero(same).tolist()), -1)


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
    arrived, alone = moved * adds, np.zeros(len(moved), np.int64)
    return _Family(
        "digit_shifts", (n,), radices, distance, moved, moved[:, None], arrived, arrived, alone, shifts[:, None], links
    )


def _sets(collective: str, num_nodes: int, planes: int) -> tuple[list[_Family], str]:
    """Families of `balanced_digits`, none on one plane, and what is left out, in words."""
    tables, untried = set_families(collective, num_nodes, planes) if planes > 1 else ([], "")
    none = np.zeros(0, np.int64)
    return [
        _Family(
            "balanced_digits", one.sides, one.radices, none, one.moved, one.weights, one.arrived, one.covered,
            one.messages - 1, one.shifts, one.links,
        )
        for one in tables
    ], untried  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Families:
    """All families of a number of nodes, with their columns end to end.

    Args:
        members: each of them.
        moved, arrived, covered, messages: of the steps of all, (steps,).
        own: messages over the link of a step alone, inf where there is none, float64 (steps,).
        links: of the steps of all, each on all that its family may hold, int32 (entries,).
        weights: of the same, or of the steps, float64.
        first_step: place of the first step of each, and the end, int64 (families + 1,).
        first_link, first_weight: place of the first of the `links` and `weights` of each, and the end, int64 (families + 1,).
        totals: moved, arrived, covered and messages of all steps of each, float64 (4, families).
        untried: what was left out, in words.
    """

    members: tuple[_Family, ...]
    moved: FloatArray
    arrived: FloatArray
    covered: FloatArray
    messages: IntArray
    own: FloatArray
    links: IntArray
    weights: FloatArray
    first_step: IntArray
    first_link: IntArray
    first_weight: IntArray
    totals: FloatArray
    untried: str

    @staticmethod
    def sums_s(
        arrived: FloatArray, covered: FloatArray, messages: FloatArray, size_bytes: float, law: ShiftLaw
    ) -> FloatArray:
        """Time of adding and of further messages [s].

        Args:
            arrived, covered, messages: as of `_Family`, of steps or of families.
            size_bytes: message of every rank [bytes].
            law: of steps.
        """
        added = arrived + (covered - arrived) * (2 / 3) if law.fused else arrived
        return added * size_bytes * law.sums_s_per_byte + messages * law.gap_s

    def least_s(self, size_bytes: float, law: ShiftLaw) -> FloatArray:
        """Time of each with one link a step and without changes [s], float64 (families,)."""
        steps = np.diff(self.first_step)
        first = np.where(steps > 0, 0.0 if law.first_free or law.stands else law.change_s, 0.0)
        moved, arrived, covered, messages = self.totals
        whole = steps * (law.alpha_s + law.delta_s) + moved * size_bytes * law.s_per_byte
        return first + whole + self.sums_s(arrived, covered, messages, size_bytes, law)

    def places_of(self, shifts: tuple[int, ...], numbers: IntArray) -> IntArray:
        """Place of shifts among those of some of them, -1 where they are none and of the others, int64 (families,)."""
        places = np.full(len(self.members), -1)
        for number in numbers.tolist() if shifts else ():
            places[number] = self.members[number].place_of(shifts)
        return places


@lru_cache(maxsize=8)
def _families(collective: str, num_nodes: int, planes: int) -> _Families:
    sets, untried = _sets(collective, num_nodes, planes)
    members = [*(_family(collective, radices) for radices in factorisations(num_nodes)), *sets]
    links = np.concatenate([one.links.ravel() for one in members])
    weights = np.concatenate([one.weights.ravel() for one in members])
    first_link = np.cumsum([0, *(one.links.size for one in members)])
    first_weight = np.cumsum([0, *(one.weights.size for one in members)])
    return _Families(
        tuple(  # columns are kept once
            replace(one, links=links[a:b].reshape(one.links.shape), weights=weights[c:d].reshape(one.weights.shape))
            for one, (a, b), (c, d) in zip(
                members, pairwise(first_link.tolist()), pairwise(first_weight.tolist()), strict=True
            )
        ),
        **{name: np.concatenate([getattr(one, name) for one in members]) for name in STEP_COLUMNS},
        own=np.concatenate([one.moved if len(one.own) else np.full(len(one.moved), inf) for one in members]),
        links=links,
        weights=weights,
        first_step=np.cumsum([0, *(len(one.moved) for one in members)]),
        first_link=first_link,
        first_weight=first_weight,
        totals=np.array([[getattr(one, name).sum() for one in members] for name in STEP_COLUMNS]),
        untried=untried,
    )


def _segments(
    family: _Family, held: IntArray, begun: IntArray, seconds: float, proven: bool, untried: str
) -> HeldShifts:
    """The plan of a family of steps.

    Args:
        family: steps.
        held, begun: as `_held_until` finds them.
        seconds: time [s].
        proven: whether no other plan of this kind is faster.
        untried: what was left out, in words.
    """
    cuts, segments, links, moved, end = list[int](), list[list[int]](), 0, 0.0, len(family.moved)
    while end:
        place, first = int(held[end - 1]), int(begun[end - 1])
        passed = family.links[first:end, place] if place >= 0 else np.ones(1, np.int64)
        links += int(passed.sum())
        moved += float(passed @ family.weights[first:end, place if family.weights.shape[1] > 1 else 0])
        cuts.append(first)
        segments.append(family.shifts[place].tolist() if place >= 0 else [int(family.own[first])])
        end = first
    shifts = tuple(shift for one in reversed(segments) for shift in one)
    steps = len(family.moved)
    return HeldShifts(
        family.name, family.sides, family.radices, tuple(cuts[::-1][1:]), shifts, steps, links, moved, seconds, proven, untried
    )  # fmt: skip


@njit(cache=False)
def _held_until(  # type: ignore[no-untyped-def]
    own, sums, links, weights, alpha_s, delta_s, s_per_message, change_s, first_free, stands, held, begun
):
    """Time at which the last step ends on the best links for each segment, inf where nothing is ever set [s].

    Args:
        own: messages over the link of a step alone, inf where there is none, float64 (steps,).
        sums: time of adding and of further messages in each step, float64 (steps,).
        links: of each step on each shift, or set of them, 0 where they do not serve it, int32 (steps, columns).
        weights: messages over all planes together for each link, float64 (steps, columns), or (steps, 1).
        alpha_s: of a step [s].
        delta_s: of each link that a circuit passes [s].
        s_per_message: of a link, for a whole message [s].
        change_s: of a change of links [s].
        first_free: whether the first links stand from the start.
        stands: place among the columns of the one that stands from the start; -1: none.
        held: for the result, place of the shift that ends each step, -1 for that of the step alone, int64 (steps,) or more.
        begun: for the result, first step of the segment that ends with each step, int64 (steps,) or more.
    """
    apart = weights.shape[1] > 1
    running = np.full(links.shape[1], np.inf)  # time so far, if the links of that shift stand
    since = np.zeros(links.shape[1], np.int64)
    until = 0.0
    for i in range(len(own)):
        a_link = delta_s + s_per_message * weights[i, 0]
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
            elif apart:
                running[j] += (alpha_s + sums[i]) + (delta_s + s_per_message * weights[i, j]) * links[i, j]
            else:
                running[j] += (alpha_s + sums[i]) + a_link * links[i, j]
            if running[j] < least:
                least, at = running[j], j
        alone = start + ((alpha_s + sums[i]) + (delta_s + s_per_message * own[i]))
        if alone < least:
            until, held[i], begun[i] = alone, -1, i
        else:
            until, held[i], begun[i] = least, at, since[at]
    return until


@njit
def _first_fastest(  # type: ignore[no-untyped-def]
    order, least, own, sums, links, weights, first_step, first_link, first_weight,
    alpha_s, delta_s, s_per_message, change_s, first_free, stands, best, best_s, held, begun,
):  # fmt: skip
    """The fastest of some families, up to the first whose bound is not below the best time.

    Args:
        order: numbers of the families to try, by their bounds, int64 (tried,).
        least: bound of each family [s].
        own, sums: as of `_held_until`, of the steps of all families.
        links: the same, int32 (entries,).
        weights: the same, float64.
        first_step, first_link, first_weight: of each family, and the end, int64 (families + 1,).
        alpha_s, delta_s, s_per_message, change_s, first_free: as of `_held_until`.
        stands: the same of each family, int64 (families,).
        best: number of the best family so far.
        best_s: its time [s].
        held, begun: for the result, as of `_held_until`, of the fastest family; int64, as long as `own`.
    Returns: number of the fastest family, of those before too, and its time [s].
    """
    now = np.empty_like(held), np.empty_like(begun)
    for number in order:
        if least[number] >= best_s:
            break
        start, end = first_step[number], first_step[number + 1]
        many = max(end - start, 1)
        of_family = links[first_link[number] : first_link[number + 1]]
        loads = weights[first_weight[number] : first_weight[number + 1]]
        seconds = _held_until(
            own[start:end], sums[start:end],
            of_family.reshape((end - start, len(of_family) // many)), loads.reshape((end - start, len(loads) // many)),
            alpha_s, delta_s, s_per_message, change_s, first_free, stands[number], *now,
        )  # fmt: skip
        if seconds < best_s:
            best, best_s = number, seconds
            held[: end - start], begun[: end - start] = now[0][: end - start], now[1][: end - start]
    return best, best_s
