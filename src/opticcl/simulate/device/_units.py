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
            _, owner, cell = usage.cells(circuits, self.fabric.num_wavelengths)
            owners.append(owner)
            units.append(cell + self.base[id(resource)])
        owner, unit = np.concatenate(owners), np.concatenate(units)
        order = np.argsort(owner, kind="stable")
        return owner[order], unit[order]
