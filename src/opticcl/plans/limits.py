"""What a light budget limits: sizes and distances of the machine, and what they mean for the system's own algorithm."""

from __future__ import annotations

from opticcl.ir import Fabric
from opticcl.ir.light import Limit, Optics
from opticcl.optics.values import light_path_of
from opticcl.schedule import ALGORITHMS

__all__ = ["limits"]


def limits(fabric: Fabric, values: Optics) -> tuple[Limit, ...]:
    """What the budget limits on this fabric.

    Args:
        fabric: optical.
        values: of the elements on its light path.
    Raises: UnsupportedError: no light path. ParameterError: values are missing.
    """
    light_path_of(fabric)
    of_machine = fabric.limits(values)
    own = fabric.machine.algorithm
    return of_machine + (ALGORITHMS.get(own).limits(fabric, of_machine) if own else ())
