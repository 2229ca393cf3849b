"""Exclusive resources of a fabric, numbered as one list of units: instances, and wavelengths of instances."""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray

__all__ = ["Units"]


class Units:
    """The units that circuits occupy.

    Args: fabric: with its resources.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.base: dict[int, int] = {}
        self.count = 0
        for resource in fabric.resources:
            self.base[id(resource)] = self.count
            if not (resource.shared or resource.once_per_job):
                self.count += resource.count * (fabric.num_wavelengths if resource.per_wavelength else 1)

    def occupied(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """(circuit, unit) of every occupation, sorted by circuit."""
        owners, units = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
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
            owners.append(owner)
            units.append(index + self.base[id(resource)])
        owner, unit = np.concatenate(owners), np.concatenate(units)
        order = np.argsort(owner, kind="stable")
        return owner[order], unit[order]
