"""Compiled kernels of the counts: histograms of delays, and of times of flows over the shortest."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["BINS", "count_delays", "count_ends", "value_of_bin"]

EXACT = 2048
"""Delays below this have a bin of their own [slots]; larger ones share bins of 1/1024 of their value."""

BINS = EXACT + 40 * 1024
"""Bins of a histogram of delays [count]."""


@njit(inline="always")
def _bin(value):  # type: ignore[no-untyped-def]
    if value < EXACT:
        return value
    shift = 0
    while value >> shift >= EXACT:
        shift += 1
    return min(EXACT + (shift - 1) * 1024 + (value >> shift) - 1024, BINS - 1)


def value_of_bin(number: int) -> float:
    """Middle of the delays in a bin [slots]."""
    if number < EXACT:
        return float(number)
    shift, rest = divmod(number - EXACT, 1024)
    return float((rest + 1024 << shift + 1) + (1 << shift) - 0.5)


@njit
def count_delays(granted, planes, start, by_pair, histogram, sums, sent, used):  # type: ignore[no-untyped-def]
    """Add the delay of every cell that reached its receiver to a histogram.

    Args:
        granted: src, dst, bit, cells and arrival of the grants of an epoch.
        planes: bits of a slot [count].
        start: first slot of the epoch.
        by_pair: whether the wavelength is the distance of the devices, not the device of the receiver.
        histogram: delays by bin, changed.
        sums: [0]: sum of the delays, [1]: cells; changed.
        sent: cells of each sender, changed.
        used: circuits on each wavelength, changed.
    """
    src, dst, bits, cells, arrival = granted
    for i in range(len(src)):
        used[(dst[i] - (src[i] if by_pair else 0)) % len(used)] += 1
        if arrival[i] >= 0:
            delay = start + bits[i] // planes + 1 - arrival[i]
            histogram[_bin(delay)] += cells[i]
            sums[0] += delay * cells[i]
            sums[1] += cells[i]
            sent[src[i]] += cells[i]


@njit
def count_ends(ended, rate, scale, histogram, sums):  # type: ignore[no-untyped-def]
    """Add the time of each flow over that of its cells at full rate to a histogram.

    Args:
        ended: arrival, size and slot after the last of the flows that end.
        rate: full rate [cells a slot].
        scale: bins of a ratio of one [count].
        histogram: ratios by bin, changed.
        sums: [0]: sum of the ratios, [1]: flows; changed.
    """
    arrival, size, end = ended
    for i in range(len(arrival)):
        ideal = (size[i] + rate - 1) // rate
        ratio = (end[i] - arrival[i]) / ideal
        histogram[_bin(np.int64(ratio * scale))] += 1
        sums[0] += ratio
        sums[1] += 1
