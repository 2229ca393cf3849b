"""Control planes: what they add before a round, less what hides behind computing."""

from __future__ import annotations

from collections.abc import Callable

from opticcl.errors import FabricError
from opticcl.ir import IntArray

__all__ = ["every_round", "shown_share"]


def shown_share(name: str, control_hidden: float) -> float:
    """Share of a control plane's time that a collective has to wait for.

    Args:
        name: of the fabric, for messages.
        control_hidden: share that hides behind computing, 0 to 1.
    Raises: FabricError: no such share.
    """
    if not 0 <= control_hidden <= 1:
        raise FabricError(f"{name}: control_hidden={control_hidden:g} is no share from 0 to 1; try control_hidden=0.5")
    return 1 - control_hidden


def every_round(
    name: str, synchronisation: float, control_hidden: float
) -> Callable[[IntArray, IntArray], float] | None:
    """`Fabric.control_s` of a control plane that takes the same time before every round, None if it takes no time.

    Args:
        name: of the fabric, for messages.
        synchronisation: before every round [s].
        control_hidden: as `shown_share` takes it.
    Raises: FabricError: a negative time, or no such share.
    """
    if synchronisation < 0:
        raise FabricError(f"{name}: synchronisation={synchronisation:g} s is negative; try 0s")
    seconds = synchronisation * shown_share(name, control_hidden)
    if not seconds:
        return None

    def control_s(src: IntArray, dst: IntArray) -> float:
        return seconds if len(src) else 0.0

    return control_s
