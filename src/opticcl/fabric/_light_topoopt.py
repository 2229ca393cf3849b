r"""What TopoOpt's light passes: a fibre, the patch panel, a fibre.

::

    interface ~~ fibre ~~ [patch panel] ~~ fibre ~~ interface of the next node of the ring

A packet that goes on is sent anew by every node on its way, so the light of all circuits is alike and never adds up.

Source: RAMP section 2: patch panels, or 3-D MEMS switches in their place.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits
from opticcl.physics.light import Counts, Element, LightPath

__all__ = ["topoopt_light"]

_ELEMENTS = tuple(map(Element, ("fibre", "patch_panel", "fibre")))


def topoopt_light() -> LightPath:
    """The one path there is."""
    once = np.ones((1, len(_ELEMENTS)))

    def counts(circuits: Circuits) -> Counts:
        return np.broadcast_to(once, (len(circuits), len(_ELEMENTS)))

    return LightPath("topoopt", _ELEMENTS, counts, once, ("every circuit",), once[0])
