"""WRHT against the electrical fat tree: the averages of figure 7.

As for figures 5 and 6 the averages result only with 320 Gb/s, here of a link of the tree too, and as the ratio of the sums of
all bars: fitted, no prediction. An electrical step has three routers of 25 us where nodes of two leaves communicate, and no
queueing, which D-mod-k avoids. A candidate has 410 Gb/s on the tree.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError
from opticcl.fabrics import fabric
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.papers.wrht import BYTES, FIGURE_6, H_RING, PARAMETERS, steps_of
from opticcl.papers.wrht import FITTED as FITTED_OPTICAL
from opticcl.papers.wrht import reduction as optical_reduction
from opticcl.plans.plan import compile
from opticcl.simulate import profile

NODES = (128, 256, 512, 1024)
FITTED, LITERAL, CANDIDATE = "320Gb/s", "40Gb/s", "410Gb/s"
MODELS = ("BEiT-L", "VGG16", "AlexNet", "ResNet50")
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
        rows.append([made.timeline(round(p * BYTES), bounded=False).total_s for p in PARAMETERS])
    return np.array(rows)


@claim("wrht", "W33l", "ring", "ring", LITERAL)
@claim("wrht", "W34", WRHT, "ring")
@claim("wrht", "W34l", WRHT, "ring", LITERAL)
@claim("wrht", "W34c", WRHT, "ring", FITTED, CANDIDATE)
@claim("wrht", "W35", WRHT, "recursive_doubling")
@claim("wrht", "W35c", WRHT, "recursive_doubling", FITTED, CANDIDATE)
def reduction(ours: str, theirs: str, rate: str = FITTED, electrical_rate: str | None = None) -> float:
    """Reduction of the sum of all bars of an algorithm on the ring against one on the tree [%].

    Args:
        ours, theirs: algorithms on the ring and on the tree.
        rate: of a wavelength, and of a link of the tree.
        electrical_rate: of a link of the tree, if another.
    """
    optical, electrical = _times("terarack", ours, rate), _times("fat_tree", theirs, electrical_rate or rate)
    return float(100 * (1 - optical.sum() / electrical.sum()))


def _printed(id: str) -> float:
    return float(printed_claims("wrht")[id]["published"])


@claim("wrht", "W33")
def ring_against_ring() -> Found:
    """O-Ring against E-Ring [%], fitted."""
    percent = reduction("ring", "ring")
    return found(percent, off=abs(percent - _printed("W33")))


@claim("wrht", "W33c")
def ring_against_ring_candidate() -> Found:
    """The same with another rate of the tree [%]; and how far the worst of the three averages is from the printed one [%]."""
    pairs = {"W33": ("ring", "ring"), "W34": (WRHT, "ring"), "W35": (WRHT, "recursive_doubling")}
    ours = {id: reduction(*pair, FITTED, CANDIDATE) for id, pair in pairs.items()}
    return found(ours["W33"], worst=max(100 * abs(value / _printed(id) - 1) for id, value in ours.items()))


@claim("wrht", "W34p")
def wrht_of_the_averages_against_ring() -> Found:
    """WRHT without an exchange, as figures 5 and 6 were computed, against E-Ring [%]."""
    by_formula, described = (
        steps_of(f"nodes={NODES[-1]},wavelengths=64", algorithm) for algorithm in (PUBLISHED, WRHT)
    )
    return found(reduction(PUBLISHED, "ring"), by_formula=by_formula, described=described)


@claim("wrht", "W35p")
def wrht_of_the_averages_against_recursive_doubling() -> Found:
    """WRHT without an exchange against E-RD [%]."""
    off = 100 * abs(reduction(PUBLISHED, "ring") / _printed("W34") - 1)
    return found(reduction(PUBLISHED, "recursive_doubling"), off=off)


@claim("wrht", "W36")
def ring_is_the_slowest() -> Found:
    """Whether E-RD is faster than E-Ring at all points, and by less than half."""
    ratios = _recursive_doubling_over_ring()
    needed = (1 - _printed("W34") / 100) / (1 - _printed("W35") / 100)
    return found(
        bool(((ratios < 1) & (ratios > 0.5)).all()),
        least=_point(ratios.argmin()),
        most=_point(ratios.argmax()),
        needed=needed,
    )


def _point(index: np.int64) -> str:
    """A ratio with its model and number of nodes."""
    ratios = _recursive_doubling_over_ring()
    row, column = np.unravel_index(index, ratios.shape)
    return f"{ratios[row, column]:.2f} ({MODELS[column]}, {NODES[row]} nodes)"


@claim("wrht", "W36r")
def recursive_doubling_over_ring() -> list[float]:
    """Least and most of E-RD over E-Ring."""
    ratios = _recursive_doubling_over_ring()
    return [round(float(extreme), 2) for extreme in (ratios.min(), ratios.max())]


def _recursive_doubling_over_ring() -> np.ndarray:
    return _times("fat_tree", "recursive_doubling", FITTED) / _times("fat_tree", "ring", FITTED)


@claim("wrht", "W37")
def averages_of_the_abstract() -> Found:
    """The fitted values of section 5: Ring, H-Ring, BT, E-Ring, E-RD [%]."""
    optical = [
        optical_reduction(FIGURE_6, rival, *FITTED_OPTICAL)
        for rival in ("ring", f"{H_RING},distribution=pipeline", "tree")
    ]
    electrical = [reduction(WRHT, rival) for rival in ("ring", "recursive_doubling")]
    averages = [round(value, 2) for value in (*optical, *electrical)]
    printed = printed_claims("wrht")["W37"]["published"]
    near = sum(abs(ours / theirs - 1) <= 0.05 for ours, theirs in zip(averages, printed, strict=True))
    return found(averages, near=near, all=len(printed))


@claim("wrht", "W38")
def hosts_of_the_tree() -> Found:
    """The largest tree of two layers of 32-port routers at full bisection."""

    def fits(nodes: int) -> bool:
        try:
            fabric("fat_tree:radix=32,layers=2", nodes=nodes)
        except FabricError:
            return False
        return True

    largest = max(nodes for nodes in (1 << bits for bits in range(7, 11)) if fits(nodes))
    return found(largest, leaves=32, hosts=largest // 32)
