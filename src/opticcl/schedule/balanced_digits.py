"""Balanced digits on several planes: all values of a digit in one step, each the shorter way round, on planes of its own.

Nodes are vectors of sides, N = n_1 n_2 ... n_d, and a side has digits of radices b_0 b_1 ..., of weights w_i = b_0 ... b_(i-1).
Step (side, i) moves blocks by v w_i along the side, for all values v of the digit from -(b_i - 1) / 2 to b_i / 2 at the same
time; for an even b_i half of what is b_i / 2 away goes either way. A message has a part for each side. Part q visits the sides
q, q + 1, ..., cyclically, so that the links of all sides carry data in every step:

    one side, radices 3 x 3 x 3      k = 2 planes: +w and -w, a plane each, one link a step
    one side, one radix N            every block at once, on the links of k strides
    two sides, 9 x 9                 rows on one plane, columns on the other: half of every message visits rows first

Steps are cut into segments. A segment holds one shift on each plane; a shift is the node that it leads node 0 to, and leads
node x to their sum, side by side. A block goes on the planes on which it takes the fewest links, in equal parts; h links of
shift s lead from 0 to h s. With k planes and m_j bytes over the busiest link of plane j, a step takes

    alpha + delta max h + beta max m_j

Source: digits of any radix as in Bruck et al. 1997, held links as in `opticcl.schedule.digit_shifts`; balanced ternary digits
on two ports: ReTri (arXiv 2605.26930), read in its abstract only. Parts in the opposite order: Sack and Gropp 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.collective import Request
from opticcl.fabrics.ocs import Ocs
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit, reason_not_shaped
from opticcl.schedule._walk import Order, Visit, walk
from opticcl.schedule.digit_shifts import COLLECTIVES, prime_factors
from opticcl.units import Shape

__all__ = [
    "DigitStep",
    "balanced_digits",
    "digit_steps",
    "held_sets",
    "links_to",
    "own_shifts",
    "shortest",
    "shortest_shares",
]

FloatArray = npt.NDArray[np.float64]


class DigitStep(NamedTuple):
    """What a node sends in a step.

    Args:
        distance: nodes that node 0 sends to, int64 (blocks,).
        moved: to each of them, in messages, float64 (blocks,).
        covered: chunks that a node adds to what it has, in messages; 0 where it adds nothing.
    """

    distance: IntArray
    moved: FloatArray
    covered: float = 0.0


def digit_steps(collective: str, sides: tuple[int, ...], radices: tuple[int, ...]) -> tuple[DigitStep, ...]:
    """The steps; all nodes do the same.

    Args:
        collective: one of `digit_shifts.COLLECTIVES`.
        sides: whose product is the number of nodes.
        radices: of the digits of all sides, side by side, as many of each, the lowest first.

    >>> [(step.distance.tolist(), step.moved.tolist()) for step in digit_steps("all_to_all", (8,), (2, 4))]
    [([1, 7], [0.25, 0.25]), ([2, 4, 4, 6], [0.25, 0.125, 0.125, 0.25])]
    """
    levels = _levels(sides, radices)
    count = len(levels[0]) if levels else 0
    steps = []
    for stage in range(len(sides)):
        for level in range(count):
            ends, shares, covered = [], [], 0.0
            for part in range(len(sides)):
                side = (part + stage) % len(sides)
                before = [levels[(part + one) % len(sides)] for one in range(stage)]
                divided = prod(prod(one) for one in before) * prod(levels[side][: level + 1])
                radix, weight = levels[side][level], prod(levels[side][:level]) * prod(sides[side + 1 :])
                moves, halves = _moves(radix)
                ends.append(moves * weight % (sides[side] * prod(sides[side + 1 :])))
                shares.append(halves / (radix if collective == "all_to_all" else divided) / len(sides))
                covered += 1 / divided / len(sides)
            steps.append(DigitStep(np.concatenate(ends), np.concatenate(shares), covered))
    backwards = tuple(step._replace(covered=0.0) for step in reversed(steps))
    if collective == "all_gather":
        return backwards
    if collective == "all_to_all":
        return backwards[::-1]
    return (*steps, *(backwards if collective == "all_reduce" else ()))


def _moves(radix: int) -> tuple[IntArray, FloatArray]:
    """Values of a digit the shorter way round, and the part of a block that goes so.

    >>> [column.tolist() for column in _moves(4)]
    [[1, 2, -2, -1], [1.0, 0.5, 0.5, 1.0]]
    """
    half = radix // 2
    ahead = np.arange(1, half + 1)
    share = np.where(2 * ahead == radix, 0.5, 1.0)
    back = -ahead[::-1] if radix % 2 == 0 else -np.arange(half, 0, -1)
    return np.concatenate([ahead, back]), np.concatenate([share, share[::-1]])


def _levels(sides: tuple[int, ...], radices: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Radices of each side."""
    each = len(radices) // max(1, len(sides))
    return [radices[each * side : each * (side + 1)] for side in range(len(sides))]


@lru_cache(maxsize=128)
def links_to(shift: int, sides: tuple[int, ...]) -> IntArray:
    """Links of a shift from node 0 to each node, 0 where they do not lead there, int32 (nodes,).

    >>> links_to(2, (8,)).tolist(), links_to(3, (2, 3)).tolist()
    ([0, 0, 1, 0, 2, 0, 3, 0], [0, 0, 0, 1, 0, 0])

    Args:
        shift: node that node 0 is joined with.
        sides: of the nodes; the last changes first from one node to the next.
    """
    strides, radices = np.array([prod(sides[at + 1 :]) for at in range(len(sides))]), np.array(sides)
    times = np.arange(1, prod(sides))
    node = times[:, None] * (shift // strides % radices) % radices @ strides
    counts = np.zeros(prod(sides), np.int32)
    first = int(np.argmin(node)) if len(node) and not node.all() else len(node)
    counts[node[:first]] = times[:first]
    return counts


def shortest_shares(distance: IntArray, shifts: tuple[int, ...], sides: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
    """Links of each block on the planes that it takes, and the part of it on each plane.

    Args:
        distance: of the blocks, int64 (blocks,).
        shifts: that stand, one a plane.
        sides: as of `links_to`.
    Returns: links, 0 where no plane leads there, int32 (blocks,); parts, float64 (blocks, planes).
    """
    links, parts = shortest(np.stack([links_to(shift, sides)[distance] for shift in shifts]))
    return links, parts.T


def shortest(links: IntArray) -> tuple[IntArray, FloatArray]:
    """Links of each block on the planes where they are fewest, 0 where there is no way, and the part of it on each plane.

    Args: links: on each plane, 0 where it does not lead there, int (..., planes, blocks).
    """
    far = np.iinfo(links.dtype).max
    ways = np.where(links > 0, links, far)
    fewest = ways.min(axis=-2)
    taken = (ways == fewest[..., None, :]) & (links > 0)
    return np.where(fewest < far, fewest, 0), taken / np.maximum(1, taken.sum(axis=-2, keepdims=True))


def own_shifts(distance: IntArray, planes: int) -> tuple[int, ...]:
    """Links of one step alone: its distances, from both ends of the list in turn, over and over up to the number of planes.

    >>> own_shifts(np.array([1, 7]), 2), own_shifts(np.array([1, 2, 2, 3]), 3), own_shifts(np.array([1]), 2)
    ((1, 7), (1, 3, 2), (1, 1))
    """
    both = distance[:planes].tolist(), distance[::-1][:planes].tolist()
    ends = [one for pair in zip(*both, strict=True) for one in pair]
    distinct = list(dict.fromkeys(ends))
    return tuple(distinct[plane % len(distinct)] for plane in range(planes))


def held_sets(schedule: Schedule, planes: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Sides, and the shifts that stand in each step of a schedule of this algorithm, one a plane.

    Args:
        schedule: of `balanced_digits`.
        planes: of the machine [count].
    """
    given, name = schedule.parameters, schedule.collective.name
    sides, radices = _shape(schedule.collective.num_ranks, given["sides"], given["radices"])
    steps = digit_steps(name, sides, radices)
    if given["shifts"] is None:
        return sides, [own_shifts(step.distance, planes) for step in steps]
    return sides, list(_held(len(steps), given["cuts"], given["shifts"], planes))


def _held(steps: int, cuts: tuple[int, ...] | None, shifts: tuple[int, ...], planes: int) -> Iterator[tuple[int, ...]]:
    """Shifts of each step by its segment."""
    ends = (0, *(cuts or ()), steps)
    for number, (first, last) in enumerate(pairwise(ends)):
        for _ in range(first, last):
            yield shifts[number * planes : (number + 1) * planes]


def _shape(
    num_nodes: int, sides: tuple[int, ...] | None, radices: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sides and radices, with those that are not given: one side, its prime factors; of several sides, each is one digit."""
    if num_nodes == 1:
        return (1,), ()
    if sides is None:
        return (num_nodes,), radices or prime_factors(num_nodes)
    return sides, radices or sides


def accepts(
    collective: Request,
    fabric: Fabric,
    *,
    sides: tuple[int, ...] | None = None,
    radices: tuple[int, ...] | None = None,
    cuts: tuple[int, ...] | None = None,
    shifts: tuple[int, ...] | None = None,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        sides, radices, cuts, shifts: as of `balanced_digits`.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n, planes = fabric.num_nodes, fabric.machine_as(Ocs).planes
    if sides is not None and (reason := reason_not_shaped(sides, n)):
        return reason.replace("shape=", "sides=")
    if n == 1:
        return None
    if sides is not None and min(sides) < 2:
        return f"sides={_text(sides)} has a side of one node; leave it out"
    sides, radices = _shape(n, sides, radices)
    if len(radices) % len(sides) or any(
        prod(one) != side for one, side in zip(_levels(sides, radices), sides, strict=True)
    ):
        return f"radices={_text(radices)} are not as many factors of each of the sides {_text(sides)}, side by side"
    if min(radices) < 2:
        return f"radices={_text(radices)} has a digit of one value; leave it out"
    if n * len(sides) * 2 * max(radices) > MOST_TRANSFERS:
        return SizeLimit(f"{n * len(sides) * 2 * max(radices):,} transfers a step are more than {MOST_TRANSFERS:,}")
    steps = digit_steps(collective.name, sides, radices)
    if shifts is None:
        if cuts is not None:
            return f"cuts={_text(cuts)} without shifts; give {planes} shifts a segment, one a plane"
        shifts = tuple(shift for step in steps for shift in own_shifts(step.distance, planes))
        cuts = tuple(range(1, len(steps)))
    segments = len(cuts or ()) + 1
    if len(shifts) != segments * planes:
        return (
            f"shifts={_text(shifts)} are {len(shifts)}; {segments} segments on {planes} planes need {segments * planes}"
        )
    if any(after <= before for before, after in pairwise((0, *(cuts or ()), len(steps)))):
        return f"cuts={_text(cuts or ())} are not ascending below the {len(steps)} steps"
    if max(shifts) >= n or min(shifts) < 1:
        return f"shifts={_text(shifts)} are not all 1 to {n - 1}, nodes that node 0 is joined with"
    for number, (step, held) in enumerate(zip(steps, _held(len(steps), cuts, shifts, planes), strict=True)):
        links, _ = shortest_shares(step.distance, held, sides)
        if not links.all():
            far = int(step.distance[np.argmin(links)])
            return f"in step {number} no plane of the shifts {_text(held)} leads from node 0 to node {far}; try shift {far}"
    return None


def _text(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))


def _variants(collective: Request, fabric: Fabric) -> list[dict[str, object]]:
    """Prime factors with links of their own, on two planes or more."""
    return [{}] if fabric.machine_as(Ocs).planes > 1 else []


@register_algorithm("balanced_digits", accepts, _variants, systems=("ocs",))
def balanced_digits(
    collective: Request,
    fabric: Fabric,
    *,
    sides: Shape | None = None,
    radices: Shape | None = None,
    cuts: Shape | None = None,
    shifts: Shape | None = None,
) -> Schedule:
    """Exchange by the digits of node numbers, all values of a digit in one step over the planes of an ocs.

    Args:
        collective: all_to_all, reduce_scatter, all_gather or all_reduce.
        fabric: optical circuit switches.
        sides: of the grid of nodes; every message has a part for each. None: one side.
        radices: of the digits, side by side, as many of each, the lowest first. None: the prime factors of one side, or
            a digit for each of several.
        cuts: first step of each segment after the first. None: one segment where shifts are given.
        shifts: of each segment, one a plane: the node that node 0 is joined with. None: every step has its own.
    """
    n = fabric.num_nodes
    sides, radices = _shape(n, sides, radices)
    space, levels = Space(sides), _levels(sides, radices)
    order: list[Order] = []
    for part in range(len(sides)):
        visited = [(part + stage) % len(sides) for stage in range(len(sides))]
        order.append(
            [
                [Visit((side,), radix, prod(levels[side][:at]), "balanced") for at, radix in enumerate(levels[side])]
                for side in visited
            ]
        )
    steps, cut = walk(collective, space, order, units=1 + any(radix % 2 == 0 for radix in radices))
    chunks = collective.on(n, steps.num_chunks, owner=steps.owners)
    return Schedule.of("balanced_digits", chunks, steps, stands=bool(shifts), cut=cut)
