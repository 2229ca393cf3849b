"""Loads and latencies of very many routes, computed once for steps that send the same, in whatever order.

Where a machine has no grid, an exchange by dimensions is the direct exchange. Steps are compared by two sums of 64-bit numbers
of their transfers, drawn when a search begins: two different steps agree with a probability of about 2^-128. The chunks on a
link are whole numbers, and the longest latency is a maximum, so that no result depends on the order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray, Transfers
from opticcl.ir.limits import limit
from opticcl.simulate.latency import PathLatency

__all__ = ["RouteLoads", "StepLoads"]

AT_ONCE = limit("route_loads.AT_ONCE")


@dataclass(slots=True)
class StepLoads:
    """What is known of the routes of a step.

    Args:
        slowest: load of the busiest link [s for each byte of a chunk]; None before it is computed.
        link_chunks: on each link [chunks].
        longest_s: latency of the longest route, by the law [s].
    """

    slowest: float | None = None
    link_chunks: npt.NDArray[np.float64] | None = None
    longest_s: dict[PathLatency, float] = field(default_factory=dict)


class RouteLoads:
    """What is known of the routes of steps on one fabric."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], StepLoads] = {}
        self._words = np.random.default_rng().integers(0, 1 << 64, (2, 2), dtype=np.uint64) | np.uint64(1)

    def of(self, transfers: Transfers, amount: IntArray) -> StepLoads:
        """Of a step, to be completed by the caller.

        Args:
            transfers: of the step.
            amount: size of each [chunks].
        """
        sums = [0, 0]
        for first in range(0, len(transfers), AT_ONCE):
            rows = slice(first, first + AT_ONCE)
            pair = transfers.src[rows].astype(np.uint64) << np.uint64(32) | transfers.dst[rows].astype(np.uint64)
            size = amount[rows].astype(np.uint64)
            for at, (times, more) in enumerate(self._words):
                sums[at] += int(_scattered(pair + size * times + more).sum(dtype=np.uint64))
        return self._known.setdefault((sums[0] % (1 << 64), sums[1] % (1 << 64)), StepLoads())


def _scattered(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Another word for each, so that equal sums of words are no equal sums of these (the end of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)))
