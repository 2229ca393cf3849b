"""Circuits without barriers: which transfers wait for each other because they occupy the same resource."""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.simulate import _dependency_kernels as kernels

__all__ = ["ResourceOrder"]

_NO_EDGES = np.zeros(0, np.int64)


class ResourceOrder:
    """Order in which circuits occupy the exclusive resources of a fabric: that of the rounds of the plan.

    Args: fabric: with its resources.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.round = 0
        self.rows: list[tuple[IntArray, IntArray, IntArray]] = []
        self.base: dict[int, int] = {}
        total = 0
        for resource in fabric.resources:
            self.base[id(resource)] = total
            total += resource.count * (fabric.num_wavelengths if resource.per_wavelength else 1)

    def add(self, circuits: Circuits, flow_of: IntArray) -> None:
        """Add the circuits of the next round.

        Args:
            circuits: of the round.
            flow_of: number of the flow of each transfer.
        """
        for usage in self.fabric.usage(circuits):
            resource = usage.resource
            if resource.shared or resource.once_per_job:
                continue
            owner = np.arange(len(circuits)) if usage.circuit is None else usage.circuit
            index = usage.index.astype(np.int64)
            if resource.per_wavelength:
                n = circuits.wavelength_n[owner].astype(np.int64)
                within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
                owner = np.repeat(owner, n)
                wavelength = circuits.wavelength_lo[owner] + within * circuits.wavelength_step
                index = np.repeat(index, n) * self.fabric.num_wavelengths + wavelength
            flow = flow_of[circuits.transfer[owner]]
            self.rows.append((index + self.base[id(resource)], np.full(len(flow), self.round), flow))
        self.round += 1

    def edges(self) -> tuple[IntArray, IntArray]:
        """Pairs (flow, flow that waits for it)."""
        if not self.rows:
            return _NO_EDGES, _NO_EDGES
        unit, turn, flow = (np.concatenate(column) for column in zip(*self.rows, strict=True))
        by_unit = np.argsort(unit, kind="stable")  # rounds are ascending already
        firsts, laters = kernels.order_needs(unit[by_unit], turn[by_unit], flow[by_unit])
        top = int(flow.max()) + 1
        pairs = np.unique(firsts * top + laters)
        return pairs // top, pairs % top
