"""WRHT against the electrical fat tree: the averages of figure 7.

As for figures 5 and 6 the averages come out only with 320 Gb/s, here a link of the tree too, and as the ratio of the
sums of all bars: fitted, no prediction. An electrical step costs three routers of 25 us where nodes of two leaves talk,
and nothing is added up for queues, which D-mod-k avoids.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.errors import FabricError
from opticcl.fabric import fabric
from opticcl.papers import claim
from opticcl.papers.wrht import BYTES, PARAMETERS
from opticcl.plan import compile
from opticcl.simulate import assumptions, profile

NODES = (128, 256, 512, 1024)
FITTED, LITERAL = "320Gb/s", "40Gb/s"
WRHT, PUBLISHED = "wrht", "wrht:variant=published"  # with an exchange where it fits; 2 ceil(log_m N) steps


@cache
def _times(fabric_name: str, algorithm: str, rate: str) -> np.ndarray:
    """Time of each model at each number of nodes, float64 (nodes, models) [s]."""
    rows = []
    for nodes in NODES:
        spec = (
            f"terarack:nodes={nodes},wavelengths=64,wavelength_rate={rate}"
            if fabric_name == "terarack"
            else f"fat_tree:nodes={nodes},preset=wrht,rate={rate}"
        )
        made = profile(compile(spec, "all_reduce", 0, algorithm=algorithm).circuits, assumptions("wrht"))
        rows.append([made.timeline(round(p * BYTES)).total_s for p in PARAMETERS])
    return np.array(rows)


def _reduction(ours: str, theirs: str, rate: str = FITTED) -> float:
    """How much less time all bars of an algorithm on the ring take in sum than those of one on the tree [%]."""
    optical, electrical = _times("terarack", ours, rate), _times("fat_tree", theirs, rate)
    return float(100 * (1 - optical.sum() / electrical.sum()))


@claim("wrht", "W33")
def ring_against_ring() -> float:
    """O-Ring against E-Ring [%], fitted."""
    return _reduction("ring", "ring")


@claim("wrht", "W33l")
def ring_against_ring_literal() -> float:
    """The same with 40 Gb/s [%]."""
    return _reduction("ring", "ring", LITERAL)


@claim("wrht", "W34")
def wrht_against_ring() -> float:
    """WRHT as described against E-Ring [%], fitted rate."""
    return _reduction(WRHT, "ring")


@claim("wrht", "W34p")
def wrht_of_the_averages_against_ring() -> float:
    """WRHT without an exchange, as figures 5 and 6 were computed, against E-Ring [%]."""
    return _reduction(PUBLISHED, "ring")


@claim("wrht", "W34l")
def wrht_against_ring_literal() -> float:
    """WRHT as described against E-Ring with 40 Gb/s [%]."""
    return _reduction(WRHT, "ring", LITERAL)


@claim("wrht", "W35")
def wrht_against_recursive_doubling() -> float:
    """WRHT as described against E-RD [%], fitted rate."""
    return _reduction(WRHT, "recursive_doubling")


@claim("wrht", "W35p")
def wrht_of_the_averages_against_recursive_doubling() -> float:
    """WRHT without an exchange against E-RD [%]."""
    return _reduction(PUBLISHED, "recursive_doubling")


@claim("wrht", "W36")
def ring_is_the_slowest() -> bool:
    """Whether E-RD is faster than E-Ring at all points, and by less than half."""
    ratios = _recursive_doubling_over_ring()
    return bool(((ratios < 1) & (ratios > 0.5)).all())


@claim("wrht", "W36r")
def recursive_doubling_over_ring() -> list[float]:
    """Least and most of E-RD over E-Ring."""
    ratios = _recursive_doubling_over_ring()
    return [round(float(extreme), 2) for extreme in (ratios.min(), ratios.max())]


def _recursive_doubling_over_ring() -> np.ndarray:
    return _times("fat_tree", "recursive_doubling", FITTED) / _times("fat_tree", "ring", FITTED)


@claim("wrht", "W38")
def hosts_of_the_tree() -> int:
    """The largest tree of two layers of 32-port routers at full bisection."""

    def fits(nodes: int) -> bool:
        try:
            fabric("fat_tree:radix=32,layers=2", nodes=nodes)
        except FabricError:
            return False
        return True

    return max(nodes for nodes in range(128, 1025) if fits(nodes))
