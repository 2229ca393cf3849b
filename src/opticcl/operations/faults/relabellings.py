"""Equal parts: relabellings of nodes, ports and wavelengths that map a fabric onto itself.

Every relabelling that is proposed is checked: the ways to join all pairs of nodes must map onto themselves, and the parts that
they pass, the cells that they occupy, and what the control plane takes for each pair must map one to one. A plan on the fabric
without a part then is a plan without the image of the part, for the nodes' images, and takes as long. Where a check fails the
relabelling is not used; where none is left every part is a class of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from opticcl.fabrics.lightpath import Lightpath
from opticcl.fabrics.oddl import Oddl
from opticcl.fabrics.ramp import Ramp
from opticcl.fabrics.sipac import Sipac
from opticcl.fabrics.terarack import Terarack
from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST

__all__ = ["Relabelling", "part_classes", "relabelling_maps"]

Relabelling = Callable[[Circuits], Circuits]
"""Circuits of one wavelength each, in any number -> their images, row by row."""

MOST_WAYS = 1 << 21


@lru_cache(maxsize=8)
def part_classes(fabric: Fabric, root: int | None) -> dict[str, IntArray]:
    """Class of every part of every kind: parts of a class are equal; those that no way passes are -1.

    Args:
        fabric: where nothing has failed.
        root: node that every relabelling must keep, or None.
    """
    counts = {kind.kind: kind.count for kind in fabric.inventory()}
    pairs = np.argwhere(~np.eye(fabric.num_machine_nodes, dtype=bool))
    found = {kind: np.arange(count) for kind, count in counts.items()}
    passed: dict[str, IntArray] = {kind: np.zeros(count, bool) for kind, count in counts.items()}
    ways = fabric.options(pairs[:, 0], pairs[:, 1]).circuits if len(pairs) else None
    if ways is None or len(ways) + len(ways.hops) > MOST_WAYS:
        return found
    for use in fabric.parts_used(ways):
        passed[use.kind][use.part] = True
    for images in relabelling_maps(fabric, root):
        for kind, (part, image) in images.items():
            _join(found[kind], part, image)
    if isinstance(fabric, Lightpath) and fabric.switch_unit == "wavelength":
        # waveguides of an edge are counted, not named: as equal as the switches of the edges
        found["waveguide"] = np.repeat(found["mzi"], fabric.waveguides) * fabric.waveguides
        passed["waveguide"] = np.repeat(passed["mzi"], fabric.waveguides)
    return {kind: np.where(passed[kind], classes, -1) for kind, classes in found.items()}


def _join(classes: IntArray, part: IntArray, image: IntArray) -> None:
    """Give every part and its image one class, the lowest part of both; changed in place."""
    while True:
        least = np.minimum(classes[part], classes[image])
        before = classes.copy()
        np.minimum.at(classes, part, least)
        np.minimum.at(classes, image, least)
        classes[:] = classes[classes]
        if np.array_equal(before, classes):
            return


def relabelling_maps(fabric: Fabric, root: int | None) -> Iterator[dict[str, tuple[IntArray, IntArray]]]:
    """Part and image, int64 (m,) each, of every kind, for every relabelling that passes its check.

    Args:
        fabric: where nothing has failed.
        root: node that must stay where it is, or None.
    """
    pairs = np.argwhere(~np.eye(fabric.num_machine_nodes, dtype=bool))
    options = fabric.options(pairs[:, 0], pairs[:, 1])
    for relabel in _proposed(fabric.machine):
        images = check_relabelling(fabric, options.circuits, options.choice, relabel, root)
        if images is not None:
            yield images


def check_relabelling(
    fabric: Fabric, ways: Circuits, choice: IntArray, relabel: Relabelling, root: int | None
) -> dict[str, tuple[IntArray, IntArray]] | None:
    """Part and image of every kind; None if the relabelling does not map the fabric onto itself.

    Args:
        fabric: where nothing has failed.
        ways: to join all pairs of nodes.
        choice: of each way, as `Options` has it.
        relabel: proposed.
        root: node that must stay where it is, or None.
    """
    image = relabel(ways)
    if _keys(fabric, ways)[1] != _keys(fabric, image)[1]:
        return None
    nodes = _one_to_one(np.concatenate([ways.src, ways.dst]), np.concatenate([image.src, image.dst]))
    if nodes is None or (root is not None and (nodes[1][nodes[0] == root] != root).any()):
        return None
    row_of = dict(zip(_rows(fabric, ways), choice.tolist(), strict=True))
    if _one_to_one(choice, np.array([row_of[row] for row in _rows(fabric, image)])) is None:
        return None
    if not _same_control(fabric, ways, image):
        return None
    for one, other in zip(fabric.usage(ways), fabric.usage(image), strict=True):
        cells = [_cell(fabric, use.index, use.circuit, use.setting, of) for use, of in ((one, ways), (other, image))]
        if _one_to_one(*cells) is None:
            return None
    collected: dict[str, tuple[list[IntArray], list[IntArray]]] = {}
    for part, mirror in zip(fabric.parts_used(ways), fabric.parts_used(image), strict=True):
        before, after = collected.setdefault(part.kind, ([], []))
        before.append(part.part)
        after.append(mirror.part)
    found = {}
    for kind, (before, after) in collected.items():
        mapped = _one_to_one(np.concatenate(before), np.concatenate(after))
        if mapped is None:
            return None
        found[kind] = mapped
    return found


def _rows(fabric: Fabric, ways: Circuits) -> list[tuple[int, ...]]:
    """A tuple for each way: ends, port, wavelength, waveguide and path."""
    guide = () if ways.waveguide is None else (ways.waveguide,)
    columns = (ways.src, ways.dst, ways.port, ways.wavelength_lo, ways.wavelength_n, *guide)
    ends = ways.hop_offsets.tolist()
    hops = ways.hops.tolist()
    return [
        (*row, *hops[lo:hi])
        for row, lo, hi in zip(zip(*(c.tolist() for c in columns), strict=True), ends, ends[1:], strict=False)
    ]


def _keys(fabric: Fabric, ways: Circuits) -> tuple[int, set[tuple[int, ...]]]:
    rows = _rows(fabric, ways)
    return len(rows), set(rows)


def _same_control(fabric: Fabric, ways: Circuits, image: Circuits) -> bool:
    """Whether the control plane takes as long for every pair as for its image."""
    if not fabric.control_s(ways.src[:1], ways.dst[:1]):
        return True
    pairs = np.unique(np.stack([ways.src, ways.dst, image.src, image.dst], axis=1), axis=0)
    return all(fabric.control_s(p[:1], p[1:2]) == fabric.control_s(p[2:3], p[3:]) for p in pairs)


def _cell(fabric: Fabric, index: IntArray, circuit: IntArray | None, setting: Any, ways: Circuits) -> IntArray:
    """One number for each resource, wavelength and setting that is used.

    Args:
        fabric: of the ways.
        index: of the resource.
        circuit: that uses it, or None.
        setting: that it needs, or None.
        ways: the circuits.
    """
    owner = np.arange(len(ways)) if circuit is None else np.asarray(circuit)
    cell = index.astype(np.int64) * fabric.num_wavelengths + ways.wavelength_lo[owner]
    if setting is None:
        return np.asarray(cell)
    return np.asarray(cell * (int(np.max(setting, initial=0)) + 1) + setting)


def _one_to_one(before: IntArray, after: IntArray) -> tuple[IntArray, IntArray] | None:
    """Each value before and its value after, ascending; None if one value has two images or two have one."""
    pairs = np.unique(np.stack([before, after], axis=1).astype(np.int64), axis=0)
    alone = all(len(np.unique(pairs[:, side])) == len(pairs) for side in (0, 1))
    return (pairs[:, 0], pairs[:, 1]) if alone else None


# --- what is proposed -------------------------------------------------------------------------------------------------


def _proposed(machine: Fabric) -> list[Relabelling]:
    """Relabellings of each system, to be checked."""
    if isinstance(machine, Terarack):
        return _of_ring(machine)
    if isinstance(machine, Ramp):
        return _of_ramp(machine)
    if isinstance(machine, Sipac):
        return _of_sipac(machine)
    if isinstance(machine, Oddl):
        return _of_oddl(machine)
    return _of_tiles(machine) if isinstance(machine, Lightpath) else []


def _shifted(circuits: Circuits, **columns: Any) -> Circuits:
    """The same circuits with other columns, as int32."""
    changed: dict[str, Any] = {name: np.asarray(value).astype(np.int32) for name, value in columns.items()}
    return replace(circuits, **changed)


def _of_ring(machine: Terarack) -> list[Relabelling]:
    n, w = machine.nodes, machine.wavelengths

    def turned(c: Circuits) -> Circuits:
        way, segment = np.divmod(c.hops, n)
        return _shifted(c, src=(c.src + 1) % n, dst=(c.dst + 1) % n, hops=way * n + (segment + 1) % n)

    def mirrored(c: Circuits) -> Circuits:
        way, segment = np.divmod(c.hops, n)  # the segment from s to s + 1 becomes that from -s to -s - 1
        return _shifted(
            c, src=-c.src % n, dst=-c.dst % n, port=c.port ^ 1, hops=(1 - way) * n + (-1 - segment) % n
        )  # fmt: skip

    def coloured(c: Circuits) -> Circuits:
        return _shifted(c, wavelength_lo=(c.wavelength_lo + 1) % w)

    def other_ring(c: Circuits) -> Circuits:
        return _shifted(c, port=(c.port + 2) % machine.ports_per_node)

    return [turned, mirrored, coloured, other_ring]


def _of_ramp(machine: Ramp) -> list[Relabelling]:
    x, racks, devices, b = machine.groups, machine.racks, machine.wavelengths, machine.transceivers_per_group

    def moved(by: tuple[int, int, int]) -> Relabelling:
        def node(number: IntArray) -> IntArray:
            g, j, l = number // (racks * devices), number // devices % racks, number % devices  # noqa: E741
            return np.asarray(
                (((g + by[0]) % x) * racks + (j + by[1]) % racks) * devices + (l + by[2]) % devices
            )  # fmt: skip

        def relabel(c: Circuits) -> Circuits:
            wavelength = (c.wavelength_lo + by[2]) % devices if machine.subnet == "broadcast" else c.wavelength_lo
            return _shifted(c, src=node(c.src), dst=node(c.dst), hops=(c.hops + by[0]) % x, wavelength_lo=wavelength)

        return relabel

    def ports(c: Circuits) -> Circuits:
        return _shifted(c, port=(c.port + b) % (x * b))

    def planes(c: Circuits) -> Circuits:
        return _shifted(c, port=c.port // b * b + (c.port + 1) % b)

    return [moved((1, 0, 0)), moved((0, 1, 0)), moved((0, 0, 1)), ports, planes]


def _of_sipac(machine: Sipac) -> list[Relabelling]:
    found: list[Relabelling] = []
    lines, apart = machine.num_wavelengths, machine.lines_apart

    def digit(level: int) -> Relabelling:
        stride, side = int(machine.strides[level]), machine.sides[level]

        def node(number: IntArray) -> IntArray:
            at = number // stride % side
            return np.asarray(number + ((at + 1) % side - at) * stride)

        return lambda c: _shifted(c, src=node(c.src), dst=node(c.dst))

    found += [digit(level) for level in range(len(machine.sides))]
    found.append(lambda c: _shifted(c, wavelength_lo=(c.wavelength_lo + apart) % lines))
    if len(machine.sides) == 2 and machine.sides[0] == machine.sides[1]:
        r = machine.sides[0]
        found.append(
            lambda c: _shifted(
                c, src=c.src % r * r + c.src // r, dst=c.dst % r * r + c.dst // r, port=1 - c.port, hops=1 - c.hops
            )
        )
    return found


def _of_oddl(machine: Oddl) -> list[Relabelling]:
    found: list[Relabelling] = []
    stride = 1
    for side in machine.shape[::-1]:
        for bit in range((side - 1).bit_length() if side & (side - 1) == 0 else 0):
            found.append(_flipped(stride << bit))
        stride *= side
    return found


def _flipped(bit: int) -> Relabelling:
    """Nodes whose numbers differ in one bit change places."""

    def relabel(c: Circuits) -> Circuits:
        return _shifted(c, src=c.src ^ bit, dst=c.dst ^ bit)

    return relabel


def _of_tiles(machine: Lightpath) -> list[Relabelling]:
    rows, columns = machine.grid_shape
    node = np.argsort(machine.tile)

    def moved(tile_of: Callable[[IntArray, IntArray], IntArray], way: list[int]) -> Relabelling:
        def relabel(c: Circuits) -> Circuits:
            def tile(number: IntArray) -> IntArray:
                return tile_of(*np.divmod(number, columns))

            src, dst = (node[tile(machine.tile[end])] for end in (c.src, c.dst))
            return _shifted(c, src=src, dst=dst, hops=4 * tile(c.hops // 4) + np.array(way)[c.hops % 4])

        return relabel

    found: list[Relabelling] = [
        moved(lambda r, c: r * columns + columns - 1 - c, [WEST, EAST, SOUTH, NORTH]),
        moved(lambda r, c: (rows - 1 - r) * columns + c, [EAST, WEST, NORTH, SOUTH]),
        lambda c: _shifted(c, wavelength_lo=(c.wavelength_lo + 1) % machine.lasers),
    ]
    if rows == columns:
        found.append(moved(lambda r, c: c * columns + r, [SOUTH, NORTH, EAST, WEST]))
    return found
