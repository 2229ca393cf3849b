"""Message sizes in a geometric sequence."""

from __future__ import annotations

from opticcl.errors import ParameterError
from opticcl.ir.limits import limit

__all__ = ["MOST_SIZES", "sizes_by"]

MOST_SIZES = limit("sizes.MOST_SIZES")


def sizes_by(smallest: int, largest: int, factor: float, what: str = "sweep") -> list[int]:
    """Sizes in a geometric sequence, rounded to whole bytes.

    >>> sizes_by(8, 100, 2), sizes_by(10, 10, 2)
    ([8, 16, 32, 64], [10])

    Args:
        smallest: first size [bytes].
        largest: upper limit [bytes].
        factor: ratio of each size to the one before; more than 1.
        what: name of the sizes in error messages.
    Raises: ParameterError: the largest is below the smallest, no growth, or more than `MOST_SIZES` sizes.
    """
    if smallest < 1 or largest < smallest:
        raise ParameterError(
            f"{what}: from {smallest:,} to {largest:,} is not ascending from 1 or more; give another from or to"
        )
    if not 1 < factor < float("inf"):
        raise ParameterError(f"{what}: factor={factor:.10g} is not above 1; try 2")
    sizes, size = [smallest], smallest * factor
    while round(size) <= largest:
        sizes.append(round(size))
        if len(sizes) > MOST_SIZES:
            raise ParameterError(f"{what}: factor={factor:.10g} makes more than {MOST_SIZES} values; try 2")
        size *= factor
    return list(dict.fromkeys(sizes))
