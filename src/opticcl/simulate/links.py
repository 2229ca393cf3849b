"""The shared links of a fabric as one list, their names, and the bytes that each carries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray

__all__ = ["Links", "link_bytes", "link_names", "shared_amounts"]


class Links:
    """The shared resources of a fabric, numbered as one list.

    Args:
        fabric: with its resources.
    Attributes:
        capacity: of each link, float64 (links,) [byte/s].
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.base: dict[int, int] = {}
        capacities = [np.zeros(0)]
        for resource in fabric.resources:
            if resource.shared:
                self.base[id(resource)] = sum(map(len, capacities))
                capacities.append(np.full(resource.count, resource.capacity / 8))
        self.capacity = np.concatenate(capacities)

    def paths(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """(links, offsets) of every circuit, from the fabric's `usage`; the links of a circuit are in no particular order."""
        used = [u for u in self.fabric.usage(circuits) if u.resource.shared]
        links = [u.index + self.base[id(u.resource)] for u in used]
        owners = [np.arange(len(circuits)) if u.circuit is None else u.circuit for u in used]
        owner = np.concatenate(owners)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(circuits)))])
        if (owner[1:] < owner[:-1]).any():
            return np.concatenate(links)[np.argsort(owner, kind="stable")], offsets
        return np.concatenate(links), offsets

    @cached_property
    def of_hop(self) -> IntArray:
        """Link of each hop, int64 (hops,): both ways of one may share its rate.

        Raises: UnsupportedError: a fabric whose hops have no shared link each.
        """
        hop = np.arange(self.fabric.num_hops)
        if self.fabric.hops_are_links:
            return hop
        links, offsets = self.paths(Circuits.of(hop, hop, hop, path=hop[:, None]))
        if (np.diff(offsets) != 1).any():
            raise UnsupportedError(f"{self.fabric.name}: the hops of its paths are not its shared links")
        return links

    def routes(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """(hops, offsets) of every circuit, in the order in which a packet crosses them.

        Raises: UnsupportedError: a circuit without a path, or with a hop that there is not; as `of_hop`.
        """
        hops, offsets = circuits.hops, circuits.hop_offsets
        if len(hops) and not 0 <= hops.min() <= hops.max() < len(self.of_hop):
            raise UnsupportedError(f"{self.fabric.name}: the hops of its paths are not its shared links")
        if (np.diff(offsets) < 1).any():
            raise UnsupportedError(f"{self.fabric.name}: a circuit has no path; verify the plan")
        return hops, offsets


def link_bytes(plan: CircuitPlan, size_bytes: int) -> np.ndarray:
    """Bytes that each shared link carries during a plan, float64 (links,).

    A transfer on several routes puts an equal share on each.

    Raises: UnsupportedError: the fabric's links are not shared by packets.
    """
    schedule, fabric = plan.schedule, plan.fabric
    if not fabric.is_packet_switched:
        raise UnsupportedError(f"{fabric.name}: circuits are not shared; only packet fabrics have bytes of a link")
    links = Links(fabric)
    chunk_bytes = size_bytes / schedule.collective.num_chunks
    total = np.zeros(len(links.capacity))
    for steps in schedule.step_classes():
        transfers = schedule.step(steps.start)
        for circuits in plan.rounds(steps.start):
            hops, offsets = links.paths(circuits)
            amount = shared_amounts(transfers.size_chunks() * chunk_bytes, circuits)
            total += np.bincount(hops, np.repeat(amount, np.diff(offsets)), minlength=len(total)) * len(steps)
    return total


def shared_amounts(amount: np.ndarray, circuits: Circuits) -> np.ndarray:
    """Amount of each circuit if the circuits of a transfer share its `amount` equally, float64 (circuits,)."""
    shares = np.bincount(circuits.transfer, minlength=len(amount))
    shared: np.ndarray = (amount / np.maximum(shares, 1))[circuits.transfer]
    return shared


def link_names(fabric: Fabric, links: Sequence[int]) -> list[str]:
    """Names of links, by their numbers.

    >>> from opticcl.fabrics import fabric
    >>> link_names(fabric("torus:shape=2x2"), [0])
    ['link node 0 (0, 0) -> node 2 (1, 0)']
    """
    shared = [row for row, resource in enumerate(fabric.resources) if resource.shared]
    firsts = np.cumsum([0, *(fabric.resources[row].count for row in shared)])
    kinds = [int(np.searchsorted(firsts, link, side="right")) - 1 for link in links]
    return [
        fabric.place_names(shared[kind], [int(link - firsts[kind])])[0] for kind, link in zip(kinds, links, strict=True)
    ]
