r"""What the light of TeraRack's nodes passes: a modulator, then one interface after the other.

::

    comb -> modulator ~ segment ~ [interface] ~ segment ~ [interface] ~ ... ~ [interface of the receiver] -> photodiode

Source: WRHT section 4.4.1, equation 8: L_l = P_m + L_max P_pass.
Reading: equation 8 has no loss for the last filter, so the receiver's interface counts as one that is passed: as many as
segments. The fibre between neighbours, a few metres, has no loss there and has none here.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits
from opticcl.physics.light import Counts, Element, LightPath

__all__ = ["terarack_light"]

_ELEMENTS = (Element("modulator"), Element("interface"))


def terarack_light(sides: tuple[int, ...], wrap: bool = True) -> LightPath:
    """Paths along rings or lines of fibres.

    Args:
        sides: nodes of a ring, or of a row and of a column.
        wrap: whether the last node is followed by the first.
    """
    longest = [side // 2 if wrap else side - 1 for side in sides]
    shares = np.array([side - 1.0 for side in sides])
    means = np.array([_mean_distance(side, wrap) for side in sides])
    mean = float(shares @ means / shares.sum()) if shares.any() else 0.0

    def counts(circuits: Circuits) -> Counts:
        hops = circuits.num_hops().astype(np.float64)
        return np.stack([np.ones_like(hops), hops], axis=1)

    half = "half " if wrap else ""
    names = ("half the ring",) if len(sides) == 1 else (f"{half}a row", f"{half}a column")
    extremes = np.array([[1.0, hops] for hops in longest])
    return LightPath("terarack", _ELEMENTS, counts, extremes, names, np.array([1.0, mean]))


def _mean_distance(side: int, wrap: bool) -> float:
    """Mean segments between two different nodes of a ring (the shorter way) or line.

    >>> _mean_distance(4, True), _mean_distance(5, True), _mean_distance(3, False)
    (1.3333333333333333, 1.5, 1.3333333333333333)
    """
    if side == 1:
        return 0.0
    return side**2 // 4 / (side - 1) if wrap else (side + 1) / 3
