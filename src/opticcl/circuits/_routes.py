"""The rule of packet fabrics: every transfer on the path that it states, else on its route, all in one round."""

from __future__ import annotations

import numpy as np

from opticcl.circuits._by_senders import BySenders
from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.ir.limits import ROUTES_LISTED
from opticcl.ir.paths import joined_paths, paths_of_rows
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
        self.on_routes = fabric.hops_are_links and all(resource.shared for resource in fabric.resources)

    def _all_at_once(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        if transfers.path is not None:
            return (self._on_paths(transfers, *transfers.path),)
        last = self._last
        if last is None or not all(
            np.array_equal(getattr(last, end), getattr(transfers, end)) for end in ("src", "dst")
        ):
            last = self._last = self._between(transfers.src, transfers.dst)
        return (last,)

    def _between(self, src: IntArray, dst: IntArray) -> Circuits:
        """Routes between nodes of the machine."""
        return Circuits.of(np.arange(len(src)), src, dst, path=self._fabric.route(src, dst))

    def _on_paths(self, transfers: Transfers, hops: IntArray, offsets: IntArray) -> Circuits:
        """Circuits on stated paths, and on routes where these are empty.

        Raises: UnsupportedError: offsets that cut no list of links, or links that the fabric does not have.
        """
        links = self._fabric.num_hops
        cut = len(offsets) == len(transfers) + 1 and offsets[0] == 0 and offsets[-1] == len(hops)
        if not cut or (np.diff(offsets) < 0).any() or hops.min(initial=0) < 0 or hops.max(initial=-1) >= links:
            raise UnsupportedError(
                f"{self._fabric.name}: the paths that {len(transfers):,} transfers state are not lists of its {links:,} links, "
                "0 to the last; hops end to end, and where each path begins"
            )
        src, dst = transfers.src, transfers.dst
        place = np.arange(len(transfers))
        routed = np.flatnonzero(np.diff(offsets) == 0)
        place[routed] = len(place) + np.arange(len(routed))
        every = joined_paths([(hops, offsets), self._fabric.route(src[routed], dst[routed])])
        return Circuits.of(np.arange(len(place)), src, dst, path=paths_of_rows(*every, place))

    def represents(self, step: int) -> bool:
        """No step is: packets of all senders share links, so that engines need all routes."""
        return False

    def routed(self, step: int) -> RoutedStep | None:
        """Routes of the senders that define all, where there are too many to list."""
        few = self._steps.num_transfers(step) <= ROUTES_LISTED
        if few or not self._fabric.hops_are_links or self._steps.states_paths(step):
            return None
        moves, senders = self.of_step(step)
        return RoutedStep(senders, moves, self._of_ranks)

    def _of_ranks(self, ends: TransferEnds) -> Circuits:
        """Routes of transfers between ranks."""
        return self._between(self._fabric.machine_nodes(ends.src), self._fabric.machine_nodes(ends.dst))
