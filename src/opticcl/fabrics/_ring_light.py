r"""Light path on rings and lines of micro-ring nodes, TeraRack's and SiP-Ring's: a modulator, then interfaces.

::

    comb -> modulator ~ segment ~ [interface] ~ segment ~ [interface] ~ ... ~ [interface of the receiver] -> photodiode

Source: WRHT section 4.4.1, equation 8: L_l = P_m + L_max P_pass.
Reading: equation 8 has no loss for the last filter, so the receiver's interface counts as one that is passed: as many as
segments. The fibre between neighbours, a few metres, has no loss there and has none here. RAMP section 2 has both as rings
with wavelengths added and dropped, where the number of elements passed grows with the distance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from opticcl.ir import Circuits, IntArray
from opticcl.ir.light import Counts, Element, LightPath, OpticsTable

__all__ = ["ring_light"]

_ONE_EACH = MappingProxyType({"modulator": 1.0, "interface": 1.0})


def ring_light(
    table: OpticsTable,
    sides: tuple[int, ...],
    distance: Callable[[IntArray, IntArray], IntArray],
    wrap: bool = True,
    directions: int = 2,
    pieces: Mapping[str, float] = _ONE_EACH,
) -> LightPath:
    """Paths along rings or lines of fibres.

    Args:
        table: values of the elements.
        sides: nodes of a ring, or of a row and of a column.
        distance: senders, receivers -> segments of the shortest way [count].
        wrap: whether the last node is followed by the first.
        directions: in which light runs round a ring, 1 or 2; with 2 it takes the shorter way.
        pieces: of a modulator at the sender, and of an interface at the end of a segment [count].
    """
    modulator, interface = pieces["modulator"], pieces["interface"]
    shorter = wrap and directions == 2
    longest = [side // 2 if shorter else side - 1 for side in sides]
    shares = np.array([side - 1.0 for side in sides])
    means = np.array([_mean_distance(side, wrap, directions) for side in sides])
    mean = float(shares @ means / shares.sum()) if shares.any() else 0.0

    def passed(segments: IntArray) -> Counts:
        return np.stack([np.full(len(segments), modulator), interface * segments], axis=1)

    def counts(circuits: Circuits) -> Counts:
        return passed(circuits.num_hops())

    def least(src: IntArray, dst: IntArray) -> Counts:
        return passed(distance(src, dst))

    half = "half " if wrap else ""
    ring = "half the ring" if shorter else "all of the ring but one segment"
    names = (ring,) if len(sides) == 1 else (f"{half}a row", f"{half}a column")
    extremes = np.array([[modulator, interface * hops] for hops in longest])
    typical = np.array([modulator, interface * mean])
    return LightPath(table, tuple(map(Element, _ONE_EACH)), counts, extremes, names, typical, least)


def _mean_distance(side: int, wrap: bool, directions: int) -> float:
    """Mean segments between two different nodes of a ring (the shorter of the ways that there are) or line.

    >>> [_mean_distance(*ring) for ring in ((4, True, 2), (5, True, 2), (3, False, 2), (4, True, 1))]
    [1.3333333333333333, 1.5, 1.3333333333333333, 2.0]
    """
    if side == 1:
        return 0.0
    if directions == 1:
        return side / 2
    return side**2 // 4 / (side - 1) if wrap else (side + 1) / 3
