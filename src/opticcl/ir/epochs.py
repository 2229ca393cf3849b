"""Requests of dynamic traffic and the cells that a scheduler grants, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field

from opticcl.ir._common import IntArray

__all__ = ["EpochGrants", "EpochRequest"]


@dataclass(frozen=True, slots=True)
class EpochRequest:
    """Flows that arrive in an epoch, in the order of their arrival, as columns of equal length.

    Args:
        src, dst: nodes, int32 (n,).
        cells: to be sent, int32 (n,).
        arrival: slot, int32 (n,).
    """

    src: IntArray
    dst: IntArray
    cells: IntArray
    arrival: IntArray

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True, slots=True)
class EpochGrants:
    """What is sent in the slots of an epoch, as columns of equal length; and the flows that end in it.

    Args:
        src, dst: nodes of each circuit, int32 (n,).
        bit: slot of the epoch times planes plus plane, int32 (n,).
        cells: carried by it, int32 (n,).
        arrival: slot in which they arrived; -1 if they have another hop to go, int32 (n,).
        ended_arrival, ended_cells, ended_slot: of the flows that end, int32 (m,): slot of arrival, size, slot after the last.
        rounds: of the scheduler [count].
    """

    src: IntArray
    dst: IntArray
    bit: IntArray
    cells: IntArray
    arrival: IntArray
    ended_arrival: IntArray
    ended_cells: IntArray
    ended_slot: IntArray
    rounds: int = field(default=1, kw_only=True)

    def __len__(self) -> int:
        return len(self.src)
