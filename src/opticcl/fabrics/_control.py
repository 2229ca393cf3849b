"""Time that a control plane adds before a round, less the share that is hidden behind computation."""

from __future__ import annotations

from opticcl.errors import FabricError

__all__ = ["check_synchronisation", "exposed_share"]


def exposed_share(name: str, control_hidden: float) -> float:
    """Share of a control plane's time that a collective has to wait for.

    Args:
        name: of the fabric, for messages.
        control_hidden: share that is hidden behind computation, 0 to 1.
    Raises: FabricError: no such share.
    """
    if not 0 <= control_hidden <= 1:
        raise FabricError(
            f"{name}: control_hidden={control_hidden:g} is not a share from 0 to 1; try control_hidden=0.5"
        )
    return 1 - control_hidden


def check_synchronisation(name: str, synchronisation: float) -> None:
    """Refuse a negative time.

    Args:
        name: of the fabric, for messages.
        synchronisation: before every round [s].
    Raises: FabricError: it is negative.
    """
    if synchronisation < 0:
        raise FabricError(f"{name}: synchronisation={synchronisation:g} s is negative; try 0s")
