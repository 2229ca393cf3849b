"""The rule of packet fabrics: every transfer on its route, all in one round."""

from __future__ import annotations

import numpy as np

from opticcl.circuits._by_senders import BySenders
from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.ir.limits import ROUTES_LISTED
from opticcl.ir.phases import Steps, TransferEnds
from opticcl.ir.representatives import RoutedStep

__all__ = ["OnRoutes"]


class OnRoutes(BySenders):
    """Routes of a packet fabric; the last ones are kept, since steps may share pairs.

    Args:
        fabric: of packets.
        steps: of the schedule.
    """

    def __init__(self, fabric: Fabric, steps: Steps) -> None:
        super().__init__(fabric, steps, self._all_at_once)
        self._last: Circuits | None = None

    def _all_at_once(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        last = self._last
        if last is None or not all(
            np.array_equal(getattr(last, end), getattr(transfers, end)) for end in ("src", "dst")
        ):
            last = self._last = self._between(transfers.src, transfers.dst)
        return (last,)

    def _between(self, src: IntArray, dst: IntArray) -> Circuits:
        """Routes between nodes of the machine."""
        return Circuits.of(np.arange(len(src)), src, dst, path=self._fabric.route(src, dst))

    def represents(self, step: int) -> bool:
        """No step is: packets of all senders share links, so that engines need all routes."""
        return False

    def routed(self, step: int) -> RoutedStep | None:
        """Routes of the senders that define all, where there are too many to list."""
        if self._steps.num_transfers(step) <= ROUTES_LISTED:
            return None
        moves, senders = self.of_step(step)
        return RoutedStep(senders, moves, self._of_ranks)

    def _of_ranks(self, ends: TransferEnds) -> Circuits:
        """Routes of transfers between ranks."""
        return self._between(self._fabric.machine_nodes(ends.src), self._fabric.machine_nodes(ends.dst))
