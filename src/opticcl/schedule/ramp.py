"""RAMP-x: every collective in at most four steps, one for each way in which subgroups of nodes can differ.

A node is (group g, rack j, device l), with l = d x + i: device group d, place i. In step k each subgroup of #NS nodes
exchanges everything with everybody at once; a digit (info) of the node's rank says which part of the message is its own.
The rank is the mixed-radix number (info1, info2, info3, info4) with radices (x, x, J, D), D = L / x.

    step   subgroup varies            #NS
    1      group                      x
    2      group and place together   x
    3      group and rack together    J
    4      group and device group     D

Source: RAMP tables 5, 6, 7.
Reading: the printed tables do not fit together (for D >= 2, step 3 joins nodes that hold different chunks), so three variants.
    field      sums in the field of order x (x prime or a power of two, D < x): every step contention-free at full rate
    modular    sums modulo x, table 7 without the factor j, step 4 by formulation 4.2: any x, step 4 on few transceivers
    published  as printed, with step 3 read modulo L x: every node ends with a wrong sum as soon as D >= 2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from opticcl.collective import collective as make_collective
from opticcl.ir import Fabric, IntArray, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm
from opticcl.schedule._field import Arithmetic, galois_field, integers_modulo, is_field_order

__all__ = ["Geometry", "Variant", "active_steps", "geometry", "phase_of_step", "ramp"]

Variant = Literal["auto", "field", "modular", "published"]


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """The maps of one RAMP and variant.

    Args:
        groups, racks, devices: x, J, L.
        variant: field, modular or published.
        arithmetic: in which group numbers and places are added.
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
        """Nodes in all."""
        return self.groups * self.racks * self.devices

    def split(self, node: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """(g, j, i, d) of node numbers."""
        rest, device = np.divmod(node, self.devices)
        g, j = np.divmod(rest, self.racks)
        d, i = np.divmod(device, self.groups)
        return g, j, i, d

    def join(self, g: IntArray, j: IntArray, i: IntArray, d: IntArray) -> IntArray:
        """Node numbers of (g, j, i, d)."""
        return (g * self.racks + j) * self.devices + d * self.groups + i

    def peers(self, step: int) -> IntArray:
        """Members of every node's subgroup in a step, itself included.

        Args: step: 1 to 4.
        Returns: node numbers, int32 (num_nodes, #NS).
        """
        g, j, i, d = (c[:, None] for c in self.split(np.arange(self.num_nodes, dtype=np.int32)))
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
        g, j, i, d = self.split(np.arange(self.num_nodes, dtype=np.int32))
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

    def _tilt(self, step: int, d: IntArray, j: IntArray) -> IntArray:
        """How far the group moves with the rack: u(d) j, with u(d) = 1 + d in the field.

        As printed, step 3 moves by j (g - j constant) and step 4.1 by d j (g - d j constant).
        """
        if self.variant == "field":
            return self.arithmetic.mul(d + 1, j)
        if self.variant == "published" and step == 4:
            return self.arithmetic.mul(d % self.groups, j)
        return j


def geometry(fabric: Fabric, variant: str = "auto") -> Geometry:
    """The maps for a RAMP fabric; "auto" is "field" where that exists, else "modular"."""
    x, racks, devices = (fabric.parameters[k] for k in ("groups", "racks", "wavelengths"))
    if variant == "auto":
        variant = "field" if _has_field(x, devices) else "modular"
    return Geometry(x, racks, devices, variant, galois_field(x) if variant == "field" else integers_modulo(x))


def _has_field(groups: int, devices: int) -> bool:
    return is_field_order(groups) and devices // groups < groups


def active_steps(g: Geometry) -> tuple[int, ...]:
    """The steps of 1 to 4 that have more than one node in a subgroup."""
    return tuple(step for step, size in enumerate(g.radices, start=1) if size > 1)


def phase_of_step(g: Geometry, step: int) -> int:
    """Which of the steps 1 to 4 a schedule's step is: 1, 2, 3, 4 and then 4, 3, 2, 1."""
    active = active_steps(g)
    return (active + active[::-1])[step]


def accepts(collective: str, fabric: Fabric, variant: str = "auto") -> str | None:
    """None, or the reason why not."""
    if fabric.name != "ramp":
        return "it needs a ramp fabric"
    if collective != "all_reduce":
        return "it does all_reduce only"
    x, devices = fabric.parameters["groups"], fabric.parameters["wavelengths"]
    if variant == "field" and not _has_field(x, devices):
        return f"no field of order {x} with more than {devices // x} non-zero elements; try variant=modular"
    return None


@register_algorithm("ramp", accepts)
def ramp(collective: str, fabric: Fabric, *, variant: Variant = "auto") -> Schedule:
    """RAMP-x all-reduce: reduce-scatter in steps 1 to 4, all-gather in steps 4 to 1.

    Args: variant: field, modular, published, or auto: field where it exists, else modular.
    """
    maps = geometry(fabric, variant)
    active = active_steps(maps)
    rank = maps.info()
    sizes = dict(zip((1, 2, 3, 4), _chunks_left(maps), strict=True))

    def step(i: int) -> Transfers:
        phase = phase_of_step(maps, i)
        size = sizes[phase]
        src = np.arange(maps.num_nodes, dtype=np.int32)[:, None]
        dst = maps.peers(phase)
        if i < len(active):  # to each peer the part of my range that has the peer's digit
            above = size * maps.radices[phase - 1]
            lo = rank[src] // above * above + rank[dst] // size % maps.radices[phase - 1] * size
            return Transfers.of(src, dst, lo, size, Op.REDUCE)
        return Transfers.of(src, dst, rank[src] // size * size, size, Op.COPY)

    return Schedule("ramp", make_collective(collective, maps.num_nodes, maps.num_nodes), 2 * len(active), step)


def _chunks_left(g: Geometry) -> list[int]:
    """Chunks that a node is left with after each of the four steps."""
    sizes, left = [], g.num_nodes
    for radix in g.radices:
        left //= radix
        sizes.append(left)
    return sizes
