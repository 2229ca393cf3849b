"""What light passes on its way: kinds of elements in order, and how many of each.

    launch ──► modulator ──► splitter ──► soa_gate ──► fibre ──► star ──► ... ──► detector
               1 piece       1, 32 ways   amplifies    2 spans   2 stages, 2,048 ways

A fabric says which elements its circuits pass (`LightPath`, written from the paper's hardware section); what each of them
loses or adds is another matter (`opticcl.physics.optics`), and so the same path can be judged with the values of any
datasheet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError

if TYPE_CHECKING:
    from opticcl.ir import Circuits, Fabric

__all__ = ["Counts", "Element", "LightPath", "light_path_of"]

_LIT = ("lightpath", "oddl", "ramp", "sip_ring", "sipac", "terarack", "terarack_torus", "topoopt")
Counts = npt.NDArray[np.float64]
"""How many of each element paths have, (paths, elements)."""


@dataclass(frozen=True, slots=True)
class Element:
    """One place on the path.

    Args:
        kind: name under which its values are looked up; the same kind may stand at several places.
        ways: into how many it divides the light; whatever else it loses, that alone costs 10 log10(ways) dB.
        amplifies: whether it may have a gain; a passive element may not.
    """

    kind: str
    ways: int = 1
    amplifies: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LightPath:
    """What the light of a fabric passes; called with circuits it tells how many of each element each of them passes.

    Args:
        sheet: name of the file of values, data/optics/<sheet>.toml.
        elements: in the order in which light meets them.
        counts: circuits -> how many of each element each of them passes, (circuits, elements).
        extremes: a few paths of which one is the worst whatever the values, where light takes the shorter way,
            (paths, elements).
        names: of these paths, for messages.
        typical: mean over all pairs of nodes that one circuit can join, (elements,).
    """

    sheet: str
    elements: tuple[Element, ...]
    counts: Callable[[Circuits], Counts]
    extremes: Counts
    names: tuple[str, ...]
    typical: Counts

    def __call__(self, circuits: Circuits) -> Counts:
        """How many of each element each circuit passes, (circuits, elements)."""
        return self.counts(circuits)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of elements, each once, in order."""
        return tuple(dict.fromkeys(element.kind for element in self.elements))


def light_path_of(fabric: Fabric) -> LightPath:
    """What the light of a fabric passes.

    Raises: UnsupportedError: there is none from end to end.
    """
    if fabric.light_path is None:
        raise UnsupportedError(
            f"{fabric.name}: no light path: packets are passed on electrically, so no light goes from end to end; "
            f"try {', '.join(_LIT)}"
        )
    return fabric.light_path
