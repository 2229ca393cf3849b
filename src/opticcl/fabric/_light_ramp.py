r"""What RAMP's light passes: all circuits alike, since everything is split whether it is heard or not.

::

    laser -> modulator -> 1:x splitter -> gate ~ fibre ~ core ~ fibre ~ filter -> gate -> x:1 combiner -> photodiode

    core   broadcast         star coupler of J L ports, in stages where one component has too few
           route_broadcast   router, star coupler of J ports
           route_switch      router, 1:J splitter, gate, J:1 combiner

Source: RAMP sections 3.1, 4.1, 4.2.
Reading: the filter stands before the gates of the receiver (section 3.1: "before each port"). A gate is a semiconductor
amplifier; where it gives as much as it loses it is only a gate. Couplers lose by splitting and by an excess a stage.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits
from opticcl.physics.clos import clos_stages
from opticcl.physics.light import Counts, Element, LightPath
from opticcl.physics.optics import geometry

__all__ = ["ramp_light"]


def ramp_light(groups: int, racks: int, devices: int, subnet: str) -> LightPath:
    """The one path of all circuits.

    Args: groups, racks, devices: x, J, L [count]; subnet: as in `fabric.ramp`.
    """
    gate = Element("soa_gate", amplifies=True)
    ports = racks * (devices if subnet == "broadcast" else 1)
    star = Element("star", ways=ports)
    core = {
        "broadcast": (star,),
        "route_broadcast": (Element("awgr"), star),
        "route_switch": (
            Element("awgr"),
            Element("core_splitter", ways=racks),
            gate,
            Element("core_combiner", ways=racks),
        ),
    }[subnet]
    elements = (
        Element("modulator"),
        Element("splitter", ways=groups),
        gate,
        Element("fibre"),
        *core,
        Element("fibre"),
        Element("filter"),
        gate,
        Element("combiner", ways=groups),
    )
    pieces = np.array([_stages(ports) if element is star else 1.0 for element in elements])

    def counts(circuits: Circuits) -> Counts:
        return np.broadcast_to(pieces, (len(circuits), len(pieces)))

    return LightPath("ramp", elements, counts, pieces[None], ("every circuit",), pieces)


def _stages(ports: int) -> float:
    """Star couplers one behind the other. Source: section 4.1, 1024 ports as one component, more in cascade.

    >>> _stages(1024), _stages(2048)
    (1.0, 2.0)
    """
    largest = int(geometry("ramp", "star_ports"))
    return float((clos_stages(ports, largest) + 1) // 2)
