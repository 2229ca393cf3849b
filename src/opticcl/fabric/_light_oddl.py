r"""What ODDL's light passes: one fibre and one switch.

::

    tunable laser ~~~~~~~~ switch of n ports [~ amplifier] ~~~~~~~~ receiver           200 m of fibre from end to end

    n <= 8, 16, 32   one module of that many ports (wss8, wss16, wss32), the smallest that is large enough
    n > 32           a Clos of the smallest modules that make it in three stages, or of 32 ports in five and more
    n > 8            an amplifier, whose gain is 0 dB where a preset has none

Source: ODDL sections 3.B, 3.C, figure 6.
Reading: the modules of the 64-port Clos (8 x 16, 8 x 8, 16 x 8) lose what a switch of 8 ports loses; section 3.C gives no
figure for 8 x 16.
"""

from __future__ import annotations

import numpy as np

from opticcl.data import datasheet
from opticcl.ir import Circuits
from opticcl.physics.clos import clos_stages
from opticcl.physics.light import Counts, Element, LightPath
from opticcl.physics.optics import geometry

__all__ = ["modules_passed", "oddl_light"]

PASSIVE_PORTS: int = datasheet("oddl")["passive_side"]
_ELEMENTS = ("fibre", "wss8", "wss16", "wss32", "edfa")


def modules_passed(ports: int) -> tuple[int, int]:
    """Ports of a module, and modules that light passes in a switch of so many ports.

    >>> [modules_passed(ports) for ports in (2, 8, 16, 20, 64, 256, 2048)]
    [(8, 1), (8, 1), (16, 1), (32, 1), (8, 3), (16, 3), (32, 5)]
    """
    sizes = geometry("oddl", "module_ports")
    for most in (1, 3):
        for size in sizes:
            if clos_stages(ports, size) <= most:
                return size, clos_stages(ports, size)
    return sizes[-1], clos_stages(ports, sizes[-1])


def oddl_light(shape: tuple[int, ...]) -> LightPath:
    """A path for each dimension. Args: shape: ports of the switches of each dimension."""
    longest = np.zeros((len(shape), len(_ELEMENTS)))
    longest[:, _ELEMENTS.index("fibre")] = 1
    for dimension, ports in enumerate(shape):
        size, stages = modules_passed(ports)
        longest[dimension, _ELEMENTS.index(f"wss{size}")] = stages
        longest[dimension, _ELEMENTS.index("edfa")] = ports > PASSIVE_PORTS

    def counts(circuits: Circuits) -> Counts:
        return longest[circuits.hops[circuits.hop_offsets[:-1]]]

    shares = np.array(shape) - 1.0
    typical = shares @ longest / shares.sum() if shares.any() else longest[0]
    names = tuple(f"dimension {dimension}, {ports} port{'s' * (ports > 1)}" for dimension, ports in enumerate(shape))
    elements = tuple(Element(kind, amplifies=kind == "edfa") for kind in _ELEMENTS)
    return LightPath("oddl", elements, counts, longest, names, typical)
