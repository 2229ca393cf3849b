"""Shifts of all nodes, one a step, by the digits of distances, on links that stand for several steps.

N = b_0 b_1 ... b_L; a block for the node at distance o goes forward by the digits of o, the lowest first. Step (i, j) is the
shift by j w_i, w_i = b_0 ... b_(i-1), for j = 1 .. b_i - 1: every node x sends to x + j w_i what is for nodes congruent to it
modulo w_i b_i.

    all_to_all        a node sends N / b_i blocks                        sum of the steps (b_i - 1) / b_i messages
    reduce_scatter    and the receiver adds: N / (w_i b_i) blocks, N - 1 in all
    all_gather        the same steps backwards, and the receiver stores
    all_reduce        a reduce_scatter, then an all_gather

Blocks are numbered by the digits of their node, the lowest first, so that what a node sends is always a range.

Steps are cut into segments, each with the links of one shift S. A shift by D takes h links of them, h S = D modulo N; all N
pairs together load every link h times. With a segment a step, every step has links of its own: D itself.

Source: Bruck et al. 1997 for digits of any radix; radix N is a direct exchange. Holding sub-rings: Bridge (arXiv 2605.12766)
for radix 2, Harvest (arXiv 2602.09188) for given steps.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd, prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.ocs import Ocs
from opticcl.fabrics.sipac import strides_of
from opticcl.ir import Fabric, IntArray, Schedule
from opticcl.ir.limits import limit
from opticcl.ir.phases import Space
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import MOST_TRANSFERS, SizeLimit
from opticcl.schedule._walk import levels, walk
from opticcl.units import Shape

__all__ = ["COLLECTIVES", "digit_shifts", "held_shifts", "prime_factors", "shift_steps"]

COLLECTIVES = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce")
MOST_STEPS = limit("digit_shifts.MOST_STEPS")


def prime_factors(number: int) -> tuple[int, ...]:
    """Prime factors, ascending.

    >>> prime_factors(60), prime_factors(1)
    ((2, 2, 3, 5), ())
    """
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return (*found, *([number] if number > 1 else []))


def shift_steps(collective: str, radices: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Digit and value of each step; a step shifts by value times the product of the radices before the digit.

    Args:
        collective: one of `COLLECTIVES`.
        radices: of the digits, the lowest first.
    Returns: digits and values, int64 (steps,).

    >>> [column.tolist() for column in shift_steps("all_to_all", (2, 3))]
    [[0, 1, 1], [1, 1, 2]]
    """
    sizes = np.array(radices, np.int64) - 1
    digit = np.repeat(np.arange(len(radices)), sizes)
    value = np.concatenate([np.arange(1, radix) for radix in radices] or [np.zeros(0, np.int64)])
    if collective == "all_gather":
        return digit[::-1], value[::-1]
    if collective == "all_reduce":
        return np.concatenate([digit, digit[::-1]]), np.concatenate([value, value[::-1]])
    return digit, value


def held_shifts(schedule: Schedule) -> tuple[int, ...]:
    """Shift of the links that stand in each step of a schedule of this algorithm."""
    parameters, n = schedule.parameters, schedule.collective.num_ranks
    radices = _radices(n, parameters["radices"])
    digit, value = shift_steps(schedule.collective.name, radices)
    return _held(value * strides_of(radices)[digit], parameters["cuts"], parameters["shifts"])


def _held(distance: IntArray, cuts: tuple[int, ...] | None, shifts: tuple[int, ...] | None) -> tuple[int, ...]:
    """Shift of each step: its own distance, or that of its segment."""
    if shifts is None:
        return tuple(distance.tolist())
    ends = (0, *(cuts or ()), len(distance))
    lengths = [after - before for before, after in pairwise(ends)]
    return tuple(np.repeat(shifts, lengths).tolist())


def _radices(num_nodes: int, radices: tuple[int, ...] | None) -> tuple[int, ...]:
    return prime_factors(num_nodes) if radices is None else tuple(radix for radix in radices if radix > 1)


def accepts(
    collective: Request,
    fabric: Fabric,
    *,
    radices: tuple[int, ...] | None = None,
    cuts: tuple[int, ...] | None = None,
    shifts: tuple[int, ...] | None = None,
) -> str | None:
    """None, or the reason why not.

    Args:
        collective: requested.
        fabric: where it would run.
        radices: as of `digit_shifts`.
        cuts: as of `digit_shifts`.
        shifts: as of `digit_shifts`.
    """
    if collective.name not in COLLECTIVES:
        return "it does " + ", ".join(COLLECTIVES)
    n = fabric.num_nodes
    if prod(radices or ()) != n and radices is not None:
        return f"radices={_text(radices)} make {prod(radices)} nodes, not {n}; try radices={_text(prime_factors(n))}"
    digits = _radices(n, radices)
    digit, value = shift_steps(collective.name, digits)
    distance = value * strides_of(digits)[digit] if len(digit) else value
    steps = len(distance)
    if steps > MOST_STEPS or n > MOST_TRANSFERS:
        return SizeLimit(
            f"{steps:,} steps of {n:,} transfers; at most {MOST_STEPS:,} of {MOST_TRANSFERS:,} are supported"
        )
    if cuts is not None and shifts is None:
        return f"cuts={_text(cuts)} without shifts; give one more shift than cuts"
    if shifts is None:
        return None
    if len(shifts) != len(cuts or ()) + 1:
        return f"shifts={_text(shifts)} are {len(shifts)}, with {len(cuts or ())} cuts; give one more shift than cuts"
    ends = (0, *(cuts or ()), steps)
    if any(after <= before for before, after in pairwise(ends)):
        return f"cuts={_text(cuts or ())} are not ascending below the {steps} steps"
    if max(shifts) >= n:
        return f"shifts={_text(shifts)} reach {max(shifts)}; shifts are below the {n} nodes"
    for step, (one, held) in enumerate(zip(distance.tolist(), _held(distance, cuts, shifts), strict=True)):
        if one % gcd(held, n):
            return f"links of shift {held} do not lead {one} nodes ahead in step {step}; try shift {gcd(one, held)}"
    return None


def _text(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))


def _variants(collective: Request, fabric: Fabric) -> list[dict[str, object]]:
    """Small radices with links of their own, and a direct exchange."""
    if not isinstance(fabric.machine, Ocs):
        return []
    n = fabric.num_nodes
    primes = prime_factors(n)
    return [{}] if len(primes) < 2 else [{}, {"radices": (n,)}]


@register_algorithm("digit_shifts", accepts, _variants, systems=("ocs",))
def digit_shifts(
    collective: Request,
    fabric: Fabric,
    *,
    radices: Shape | None = None,
    cuts: Shape | None = None,
    shifts: Shape | None = None,
) -> Schedule:
    """Exchange by the digits of distances, over links of an ocs that stand for one step or several.

    Args:
        collective: all_to_all, reduce_scatter, all_gather or all_reduce.
        fabric: optical circuit switches.
        radices: of the digits, the lowest first; their product is the number of nodes. None: its prime factors.
        cuts: first step of each segment after the first. None: one segment where shifts are given.
        shifts: links of each segment, from node x to x + shift. None: every step has its own.
    """
    n = fabric.num_nodes
    space = Space((n,))
    steps, cut = walk(collective, space, [levels(0, _radices(n, radices), "serial")])
    chunks = collective.on(n, steps.num_chunks, owner=steps.owners)
    return Schedule.of("digit_shifts", chunks, steps, stands=bool(shifts), cut=cut)
