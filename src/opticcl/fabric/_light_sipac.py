r"""What SiPAC's light passes: a sender's bus, a switch of micro-rings, a receiver's bus.

::

    comb -> modulator + w - 1 others -> chip )~~ fibre ~~( chip  =o=o=O        input bus: j rings of other outputs, then
                                                                      |         the ring (i, j) that drops it
                                                                      o         output bus: r - 1 - i rings of the inputs
                                                                      o         that join behind
                              filter + others <- chip )~~ fibre ~~( chip

In an r x r matrix of rings, light from input i to output j passes j cells off resonance before it is dropped and r - 1 - i
behind: up to 2 (r - 1), on average over all pairs r - 1.

Source: SiPAC section III-B, figure 4. Reading: the text has a cascade of rings whose outputs are recombined on buses; which
cell stands where is in the figure alone. With the buses in the order of their numbers the longest way is that of a matrix.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits
from opticcl.physics.light import Counts, Element, LightPath

__all__ = ["crossings", "sipac_light"]

_SENDER = ("modulator", "bus_ring", "coupler", "fibre", "coupler")
_SWITCH = ("ring_pass", "ring_drop")
_RECEIVER = ("coupler", "fibre", "coupler", "bus_ring", "ring_drop")
_ELEMENTS = _SENDER + _SWITCH + _RECEIVER
_SENT, _PASSED, _RECEIVED = 1, len(_SENDER), len(_ELEMENTS) - 2


def crossings(radix: int) -> int:
    """Cells off resonance on the longest way through a switch.

    >>> crossings(8), crossings(1)
    (14, 0)
    """
    return 2 * (radix - 1)


def sipac_light(radices: tuple[int, ...], strides: Counts, wavelengths: int, groups: tuple[int, ...]) -> LightPath:
    """Paths through the switches of every level.

    Args:
        radices: ports of the switches of each level.
        strides: by how much a node's number grows with each digit, (levels,).
        wavelengths: lines of a link [count].
        groups: groups that the lines of each level fall into.
    """
    sides = np.array(radices, np.int64)
    lines = [-(-wavelengths // count) * (side - 1) for count, side in zip(groups, radices, strict=True)]
    received = np.maximum(
        np.minimum(lines, wavelengths) - 1, 0
    )  # lines of the same bus that the last filter is not for

    def path(level: np.ndarray, passed: np.ndarray) -> Counts:
        counts = np.ones((len(level), len(_ELEMENTS)))
        counts[:, _SENT] = wavelengths - 1
        counts[:, _PASSED] = passed
        counts[:, _RECEIVED] = received[level]
        return counts

    def counts(circuits: Circuits) -> Counts:
        level = circuits.hops[circuits.hop_offsets[:-1]]
        stride, side = strides[level], sides[level]
        i, j = circuits.src // stride % side, circuits.dst // stride % side
        return path(level, j + side - 1 - i)

    levels = np.arange(len(radices))
    longest = path(levels, np.array([crossings(radix) for radix in radices]))
    share = (sides - 1) / max(1, int((sides - 1).sum()))
    typical = share @ path(levels, sides - 1) if share.any() else longest[0]
    names = tuple(f"level {level}, first input to last output" for level in levels)
    return LightPath("sipac", tuple(map(Element, _ELEMENTS)), counts, longest, names, typical)
