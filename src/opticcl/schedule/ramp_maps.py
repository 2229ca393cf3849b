"""RAMP's maps: the peers of a node in each of the four steps, and the part of a message that it owns.

A node is (group g, rack j, device l), with l = d x + i: device group d, place i. In step k each subgroup of #NS nodes
exchanges all-to-all; a digit (info) of the node's rank is the part of the message that it owns.
The rank is the mixed-radix number (info1, info2, info3, info4) with radices (x, x, J, D), D = L / x.

    step   subgroup varies            #NS
    1      group                      x
    2      group and place together   x
    3      group and rack together    J
    4      group and device group     D

From any node, one step after the other reaches every node on exactly one path; all nine operations rest on that.

Source: RAMP tables 5, 6, 7.
Reading: the printed tables are inconsistent (for D >= 2, step 3 joins nodes that hold different chunks), so three variants.
    field      sums in the field of order x (x prime or a power of two, D < x): every step contention-free at full rate
    modular    sums modulo x, table 7 without the factor j, step 4 by formulation 4.2: any x, step 4 on few transceivers
    published  as printed, with step 3 read modulo L x: every node ends with a wrong sum for D >= 2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric, IntArray
from opticcl.schedule.galois_field import Arithmetic, galois_field, integers_modulo, is_field_order

__all__ = ["Geometry", "Variant", "active_steps", "geometry", "has_field"]

Variant = Literal["auto", "field", "modular", "published"]


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """The maps of one RAMP and variant.

    Args:
        groups, racks, devices: x, J, L.
        variant: field, modular or published.
        arithmetic: arithmetic of group numbers and places.
    """

    groups: int
    racks: int
    devices: int
    variant: str
    arithmetic: Arithmetic

    @property
    def radices(self) -> tuple[int, int, int, int]:
        """Nodes of a subgroup in each of the four steps."""
        return self.groups, self.groups, self.racks, self.devices // self.groups

    @property
    def num_nodes(self) -> int:
        """Nodes in total."""
        return self.groups * self.racks * self.devices

    def nodes(self) -> IntArray:
        """All nodes, int32 (num_nodes,)."""
        return np.arange(self.num_nodes, dtype=np.int32)

    def split(self, node: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """(g, j, i, d) of node numbers."""
        rest, device = np.divmod(node, self.devices)
        g, j = np.divmod(rest, self.racks)
        d, i = np.divmod(device, self.groups)
        return g, j, i, d

    def join(self, g: IntArray, j: IntArray, i: IntArray, d: IntArray) -> IntArray:
        """Node numbers of (g, j, i, d).

        Args:
            g: communication group.
            j: rack.
            i: place.
            d: device group.
        """
        return g * np.int32(self.racks * self.devices) + (j * self.devices + d * self.groups + i)

    def peers(self, step: int, nodes: IntArray | None = None) -> IntArray:
        """Members of nodes' subgroups in a step, the nodes themselves included.

        Args: step: 1 to 4; nodes: int32 (n,), None for all.
        Returns: node numbers, int32 (n, #NS).
        """
        g, j, i, d = (c[:, None] for c in self.split(self.nodes() if nodes is None else nodes))
        y = np.arange(self.radices[step - 1], dtype=np.int32)[None, :]
        add, sub = self.arithmetic.add, self.arithmetic.sub
        if step == 1:
            return self.join(y, j, i, d)
        if step == 2:
            return self.join(add(g, y), j, add(i, y), d)
        if step == 3:
            return self.join(add(g, self._tilt(step, d, sub(y, j))), y, i, d)
        if self.variant == "modular":  # formulation 4.2
            return self.join(add(g, sub(y % self.groups, d % self.groups)), j, i, y)
        return self.join(add(g, sub(self._tilt(step, y, j), self._tilt(step, d, j))), j, i, y)

    def info(self) -> IntArray:
        """Rank of every node: the mixed-radix number of its four digits, int32 (num_nodes,)."""
        g, j, i, d = self.split(self.nodes())
        sub = self.arithmetic.sub
        if self.variant == "modular":
            second = sub(sub(g, j), d % self.groups)
        elif self.variant == "published":
            second = sub(sub(g, j), self.arithmetic.mul(d % self.groups, j))
        else:
            second = sub(g, self._tilt(4, d, j))
        first = sub(second, i)
        x, _, racks, device_groups = self.radices
        return ((first * x + second) * racks + j) * device_groups + d

    def chunks_left(self) -> dict[int, int]:
        """Chunks of num_nodes that a node owns after each of the steps 1 to 4, by step."""
        sizes, left = {}, self.num_nodes
        for step, radix in enumerate(self.radices, start=1):
            left //= radix
            sizes[step] = left
        return sizes

    def reached(self, root: int) -> dict[int, IntArray]:
        """Nodes that data of `root` can have reached before each of the steps 1 to 4, by step."""
        before, nodes = {}, np.array([root], np.int32)
        for step in (1, 2, 3, 4):
            before[step] = nodes
            nodes = np.unique(self.peers(step, nodes))
        return before

    def arrival_order(self, node: int) -> IntArray:
        """Sources of the blocks in a node's receive buffer after an all-to-all, int32 (num_nodes,).

        In every step a node stores what its subgroup sends side by side in the order of the members' digits; the result differs
        between nodes, in x ways. The block from s is at position argsort(arrival_order)[s].

        Reading: section 6.1.4 transposes the buffer as a 3-D array, which would need the same order everywhere.
        """
        rank, below = self.info(), self.chunks_left()
        sources = np.array([node], np.int32)
        for step in (4, 3, 2, 1):
            members = self.peers(step, sources)
            digit = rank[members] // below[step] % self.radices[step - 1]
            sources = np.take_along_axis(members, np.argsort(digit, axis=1), axis=1).ravel()
        return sources

    def _tilt(self, step: int, d: IntArray, j: IntArray) -> IntArray:
        """Shift of the group with the rack: u(d) j, with u(d) = 1 + d in the field.

        As printed, step 3 shifts by j (g - j constant) and step 4.1 by d j (g - d j constant).
        """
        if self.variant == "field":
            return self.arithmetic.mul(d + 1, j)
        if self.variant == "published" and step == 4:
            return self.arithmetic.mul(d % self.groups, j)
        return j


def geometry(fabric: Fabric, variant: str = "auto") -> Geometry:
    """The maps for a RAMP fabric; "auto" is "field" where that exists and there is a step 4 to gain by it, else "modular"."""
    machine = fabric.machine_as(Ramp)
    x, racks, devices = machine.groups, machine.racks, machine.wavelengths
    if variant == "auto":
        variant = "field" if has_field(x, devices) and devices > x else "modular"
    return Geometry(x, racks, devices, variant, galois_field(x) if variant == "field" else integers_modulo(x))


def has_field(groups: int, devices: int) -> bool:
    """Whether variant field exists: a field of order x with an element 1 + d, not zero, for each device group."""
    return is_field_order(groups) and devices // groups < groups


def active_steps(g: Geometry) -> tuple[int, ...]:
    """The steps of 1 to 4 that have more than one node in a subgroup."""
    return tuple(step for step, size in enumerate(g.radices, start=1) if size > 1)
