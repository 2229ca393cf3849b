"""Light without barriers: which circuits must be set anew, and who has to wait for whom."""

from __future__ import annotations

import numpy as np

from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.simulate import _dependency_kernels as kernels
from opticcl.simulate.assumptions import Assumptions

__all__ = ["NO_EDGES", "Settings", "Units"]

NO_EDGES = np.zeros(0, np.int64)


class Settings:
    """Which circuits must be set anew; as in the closed form, but circuit by circuit."""

    def __init__(self, fabric: Fabric, assumed: Assumptions) -> None:
        self._cost = fabric.reconfiguration_s
        self._every = assumed.reconfiguration_charge == "every_step"
        self._free = assumed.initial == "warm"
        self._standing: np.ndarray | None = None

    def charge(self, circuits: Circuits) -> np.ndarray:
        """Time to set each circuit of the next round, float64 (circuits,) [s]."""
        if not self._cost or self._every:
            return np.full(len(circuits), self._cost)
        columns = (circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n)
        table = np.ascontiguousarray(np.stack([np.asarray(c, np.int32) for c in columns], axis=1))
        records = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
        if self._standing is None:
            changed = np.full(len(circuits), not self._free)
            self._standing = records
        else:
            changed = ~np.isin(records, self._standing)
            if changed.any():
                self._standing = records
        return changed * self._cost


class Units:
    """Who has what light occupies, in turn: circuits of later rounds wait for those before them on the same thing."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.turn = 0
        self.rows: list[tuple[IntArray, IntArray, IntArray]] = []
        self.base: dict[int, int] = {}
        total = 0
        for resource in fabric.resources:
            self.base[id(resource)] = total
            total += resource.count * (fabric.num_wavelengths if resource.per_wavelength else 1)

    def add(self, circuits: Circuits, flow_of: IntArray) -> None:
        """The circuits of the next round; `flow_of` is the number of each transfer."""
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
                colour = circuits.wavelength_lo[owner] + within * circuits.wavelength_step
                index = np.repeat(index, n) * self.fabric.num_wavelengths + colour
            flow = flow_of[circuits.transfer[owner]]
            self.rows.append((index + self.base[id(resource)], np.full(len(flow), self.turn), flow))
        self.turn += 1

    def order(self) -> tuple[IntArray, IntArray]:
        """Pairs (flow, flow that waits for it)."""
        if not self.rows:
            return NO_EDGES, NO_EDGES
        unit, turn, flow = (np.concatenate(column) for column in zip(*self.rows, strict=True))
        by_unit = np.argsort(unit, kind="stable")  # turns rise already
        firsts, laters = kernels.order_needs(unit[by_unit], turn[by_unit], flow[by_unit])
        top = int(flow.max()) + 1
        pairs = np.unique(firsts * top + laters)
        return pairs // top, pairs % top
