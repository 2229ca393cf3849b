"""Orbits of what circuits are made of, under moves that commute."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from opticcl.ir._common import IntArray
from opticcl.ir.fabric import Fabric
from opticcl.ir.representatives import LightMove

__all__ = ["first_of_orbit", "orbits_of_units"]


def first_of_orbit(images: Sequence[IntArray], count: int) -> IntArray:
    """Least element that maps which commute take each element to; -1 where some product has no image, int (count,).

    Args:
        images: of all elements, each at most once, -1 for none, (count,) each.
        count: of elements.

    >>> first_of_orbit([np.array([1, 0, 3, 2])], 4).tolist()
    [0, 0, 2, 2]
    >>> first_of_orbit([np.array([1, 0, 3, -1])], 4).tolist()
    [0, 0, -1, -1]
    """
    least = np.arange(count + 1, dtype=np.int32 if count < 1 << 31 else np.int64)
    least[-1] = -1  # the last stands for none
    for image in images:
        power = np.append(image, -1)
        while True:  # the least of 2 k powers from that of k
            lower = np.minimum(least, least[power])
            if np.array_equal(lower, least):
                break
            least, power = lower, power[power]
    return least[:-1]


@lru_cache(4)
def orbits_of_units(fabric: Fabric, moves: tuple[LightMove, ...]) -> tuple[IntArray, ...] | None:
    """`first_of_orbit` of the units of each resource of a machine; None where some move does not keep the machine.

    Those of the last steps are kept, as most steps have the same moves.

    Args:
        fabric: the machine.
        moves: of light.
    """
    images = [fabric.resource_images(move) for move in moves]
    known = [of for of in images if of is not None]
    if len(known) < len(images):
        return None
    return tuple(
        first_of_orbit([of[at] for of in known], resource.count) for at, resource in enumerate(fabric.resources)
    )
