"""Equal parts: relabellings of nodes, ports and wavelengths that map a fabric onto itself.

Every relabelling that is proposed is checked: the ways to join pairs of nodes must map onto those of the pairs' images, and the
parts that they pass, the cells that they occupy, and what the control plane takes for each pair must map one to one. A plan on
the fabric without a part then is a plan without the image of the part, for the nodes' images, and takes as long. Where a check
fails the relabelling is not used; where none is left every part is a class of its own.

All pairs are checked where their ways are at most `MOST_WAYS`. Of larger fabrics every node is checked with some others, as
many as that allows: its neighbours in every dimension first, then those along each dimension, or else others evenly apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import gcd, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.fabrics.lightpath import Lightpath
from opticcl.fabrics.oddl import Oddl
from opticcl.fabrics.ramp import Ramp
from opticcl.fabrics.sipac import Sipac
from opticcl.fabrics.terarack import Terarack
from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.routing.grid import EAST, NORTH, SOUTH, WEST

__all__ = ["Relabelling", "check_relabelling", "pairs_to_check", "part_classes", "relabelling_maps"]

Relabelling = Callable[[Circuits], Circuits]
"""Circuits of one wavelength each, in any number -> their images, row by row."""

MOST_WAYS, WAYS_AT_ONCE = 1 << 22, 1 << 21
"""Ways to join the pairs that are checked, with their hops: of all, unless a node has more to a single other, and of those that
are compared at the same time [count]."""

PAIRS_OF_ESTIMATE = 64
CELLS, MOST_SETTINGS = "cells", 1 << 32
MOST_CELLS_OF_TABLE = 1 << 24
MOST_CONTROLLED = 1 << 12
"""Pairs of a block whose control times are compared, evenly apart [count]."""


@lru_cache(maxsize=8)
def part_classes(fabric: Fabric, root: int | None) -> dict[str, IntArray]:
    """Class of every part of every kind: parts of a class are equal; those that no way passes are -1.

    Args:
        fabric: where nothing has failed.
        root: node that every relabelling must keep, or None.
    """
    counts = {kind.kind: kind.count for kind in fabric.inventory()}
    class_of_part = {kind: np.arange(count) for kind, count in counts.items()}
    if fabric.is_packet_switched:  # no relabellings are proposed
        return class_of_part
    passed: dict[str, npt.NDArray[np.bool_]] = {kind: np.zeros(count, bool) for kind, count in counts.items()}
    for src, dst in _blocks(fabric, pairs_to_check(fabric)):
        for use in fabric.parts_used(fabric.options(src, dst).circuits):
            passed[use.kind][use.part] = True
    for images in relabelling_maps(fabric, root):
        for kind, (part, image) in images.items():
            _join(class_of_part[kind], part, image)
    if isinstance(fabric, Lightpath) and fabric.switch_unit == "wavelength":
        # waveguides of an edge are counted, not named: as equal as the switches of the edges
        class_of_part["waveguide"] = np.repeat(class_of_part["mzi"], fabric.waveguides) * fabric.waveguides
        passed["waveguide"] = np.repeat(passed["mzi"], fabric.waveguides)
    n = fabric.num_machine_nodes
    if len(pairs_to_check(fabric)[0]) < n * (n - 1):  # a way that is not checked may pass the others
        return class_of_part
    return {kind: np.where(passed[kind], classes, -1) for kind, classes in class_of_part.items()}


@lru_cache(maxsize=8)
def pairs_to_check(fabric: Fabric) -> tuple[IntArray, IntArray]:
    """Nodes of the pairs by whose ways relabellings are checked, int64 (m,) each: all, or as many as `MOST_WAYS` allows."""
    n = fabric.num_machine_nodes
    if n < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    many = int(MOST_WAYS / _ways_of_pair(fabric) / n)
    apart = np.arange(1, n) if many >= n - 1 else _offsets(fabric, max(1, many))
    pairs = np.stack([np.repeat(np.arange(n), len(apart)), (np.arange(n)[:, None] + apart).ravel() % n])
    pairs = pairs[:, np.lexsort(pairs[::-1])]
    return pairs[0], pairs[1]


def _ways_of_pair(fabric: Fabric) -> float:
    """Ways to join a pair of nodes, with their hops, on average; at least one [count]."""
    n, random = fabric.num_machine_nodes, np.random.default_rng(0)
    src = random.integers(n, size=PAIRS_OF_ESTIMATE)
    some = fabric.options(src, (src + random.integers(1, n, size=PAIRS_OF_ESTIMATE)) % n).circuits
    return max(1.0, (len(some) + len(some.hops)) / PAIRS_OF_ESTIMATE)


def _blocks(fabric: Fabric, pairs: tuple[IntArray, IntArray]) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs, about `WAYS_AT_ONCE` ways at the same time."""
    at_once = max(1, int(WAYS_AT_ONCE / _ways_of_pair(fabric))) if len(pairs[0]) else 1
    for first in range(0, len(pairs[0]), at_once):
        yield pairs[0][first : first + at_once], pairs[1][first : first + at_once]


def _offsets(fabric: Fabric, many: int) -> IntArray:
    """Differences of node numbers, 1 to n - 1: of neighbours, of nodes along a dimension, or evenly apart.

    Args:
        many: differences [count].
    """
    n = fabric.num_machine_nodes
    sides = fabric.machine.dimensions if prod(fabric.machine.dimensions) == n else (n,)
    strides = [prod(sides[k + 1 :]) for k in range(len(sides))]
    near = [way * stride % n for stride in strides for way in (1, -1)]
    lines = [(stride, side) for stride, side in zip(strides, sides, strict=True) if len(sides) > 1]
    along = [times * stride for times in range(2, max(sides)) for stride, side in lines if times < side]
    left = max(1, many - len(near))
    evenly = (1 + np.arange(left) * (n - 1) // left).tolist()
    offsets = dict.fromkeys(apart for apart in (*near, *along, *evenly) if apart)
    return np.array(list(offsets)[:many], np.int64)


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
    pairs = pairs_to_check(fabric)
    for relabel in _proposed(fabric.machine) if len(pairs[0]) else []:
        images = check_relabelling(fabric, pairs, relabel, root)
        if images is not None:
            yield images


def check_relabelling(
    fabric: Fabric, pairs: tuple[IntArray, IntArray], relabel: Relabelling, root: int | None
) -> dict[str, tuple[IntArray, IntArray]] | None:
    """Part and image of every kind; None if the relabelling does not map the fabric onto itself.

    Args:
        fabric: where nothing has failed.
        pairs: senders and receivers whose ways are compared with those of their images, int64 (m,) each.
        relabel: proposed.
        root: node that must stay where it is, or None.
    """
    maps: dict[str, list[tuple[IntArray, IntArray]]] = {}
    for block in _blocks(fabric, pairs):
        compared = _compared(fabric, block, relabel)
        if compared is None:
            return None
        for kind, mapped in compared.items():
            maps.setdefault(kind, []).append(mapped)
    images = {}
    for kind, parts in maps.items():
        whole = _one_to_one(*(np.concatenate(side) for side in zip(*parts, strict=True)))
        if whole is None:
            return None
        images[kind] = whole
    of, to = images["node"]
    kept = root is None or not (to[of == root] != root).any()
    return {kind: mapped for kind, mapped in images.items() if not kind.startswith(CELLS)} if kept else None


def _compared(
    fabric: Fabric, pairs: tuple[IntArray, IntArray], relabel: Relabelling
) -> dict[str, tuple[IntArray, IntArray]] | None:
    """What the ways of some pairs map to what: parts of every kind, cells of every resource; None if they do not.

    Args:
        pairs: senders and receivers, int64 (m,) each.
    """
    options = fabric.options(*pairs)
    ways = options.circuits
    image = relabel(ways)
    nodes = _one_to_one(np.concatenate([ways.src, ways.dst]), np.concatenate([image.src, image.dst]))
    if nodes is None:
        return None
    node_of = np.full(fabric.num_machine_nodes, -1)
    node_of[nodes[0]] = nodes[1]
    src, dst = (node_of[end] for end in pairs)
    known = np.flatnonzero((src >= 0) & (dst >= 0))  # others have no way
    theirs = fabric.options(src[known], dst[known])
    others = _shifted(theirs.circuits, transfer=known[theirs.circuits.transfer])
    mine_at, theirs_at = _order(image), _order(others)
    if not _same(image.take(mine_at), others.take(theirs_at)):
        return None
    if _one_to_one(options.choice[mine_at], theirs.choice[theirs_at]) is None or not _same_control(fabric, ways, image):
        return None
    maps = [("node", nodes)]
    for one, other in zip(fabric.usage(ways), fabric.usage(image), strict=True):
        cells = [_cell(fabric, use.index, use.circuit, use.setting, of) for use, of in ((one, ways), (other, image))]
        maps.append((f"{CELLS} of {one.resource.kind}", (cells[0], cells[1])))
    for part, mirror in zip(fabric.parts_used(ways), fabric.parts_used(image), strict=True):
        maps.append((part.kind, (part.part, mirror.part)))
    pairs_of_kind: dict[str, list[tuple[IntArray, IntArray]]] = {}
    for kind, (before, after) in maps:
        mapped = _one_to_one(before, after)
        if mapped is None:
            return None
        pairs_of_kind.setdefault(kind, []).append(mapped)
    return {
        k: (np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))
        for k, parts in pairs_of_kind.items()
    }


def _order(ways: Circuits) -> IntArray:
    """An order of ways, the same for the same ways of the same pairs."""
    path = np.zeros(len(ways), np.int64)
    lengths = ways.num_hops()
    for nth in range(
        int(lengths.max(initial=0))
    ):  # a number of the path; ways with the same number are compared in full
        longer = np.flatnonzero(lengths > nth)
        path[longer] = path[longer] * 1_000_003 + ways.hops[ways.hop_offsets[longer] + nth] + 1
    guide = () if ways.waveguide is None else (ways.waveguide,)
    return np.lexsort((path, *guide, ways.wavelength_lo, ways.port, ways.transfer))


def _same(ways: Circuits, others: Circuits) -> bool:
    """Whether ways are the same, row by row."""
    columns = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n", "hop_offsets", "hops")
    same = all(np.array_equal(getattr(ways, column), getattr(others, column)) for column in columns)
    if ways.waveguide is None or others.waveguide is None:
        return same and ways.waveguide is others.waveguide
    return same and np.array_equal(ways.waveguide, others.waveguide)


def _same_control(fabric: Fabric, ways: Circuits, image: Circuits) -> bool:
    """Whether the control plane takes as long for every pair as for its image."""
    if not fabric.control_s(ways.src[:1], ways.dst[:1]):
        return True
    first = np.flatnonzero(np.diff(ways.transfer, prepend=-1))  # one way of each pair
    first = first[:: -(-len(first) // MOST_CONTROLLED)]
    pairs = np.stack([ways.src, ways.dst, image.src, image.dst], axis=1)[first]
    return all(fabric.control_s(p[:1], p[1:2]) == fabric.control_s(p[2:3], p[3:]) for p in pairs)


def _cell(fabric: Fabric, index: IntArray, circuit: IntArray | None, setting: Any, ways: Circuits) -> IntArray:
    """One number for each resource, wavelength and setting that is used."""
    owner = np.arange(len(ways)) if circuit is None else np.asarray(circuit)
    cell = index.astype(np.int64) * fabric.num_wavelengths + ways.wavelength_lo[owner]
    if setting is None:
        return np.asarray(cell)
    return np.asarray(cell * MOST_SETTINGS + setting)


def _one_to_one(before: IntArray, after: IntArray) -> tuple[IntArray, IntArray] | None:
    """Each value before and its value after, ascending; None if one value has two images or two have one."""
    before, after = before.astype(np.int64), after.astype(np.int64)
    if max(before.max(initial=0), after.max(initial=0)) >= MOST_CELLS_OF_TABLE:
        order = np.lexsort((after, before))
        before, after = before[order], after[order]
        new = np.flatnonzero((np.diff(before, prepend=-1) != 0) | (np.diff(after, prepend=-1) != 0))
        before, after = before[new], after[new]
        alone = (np.diff(before) != 0).all() and (np.diff(np.sort(after)) != 0).all()
        return (before, after) if alone else None
    image = np.full(int(before.max(initial=-1)) + 1, -1)
    image[before] = after
    if not np.array_equal(image[before], after):
        return None
    values = np.flatnonzero(image >= 0)
    images = image[values]
    if np.bincount(images, minlength=1).max() > 1:
        return None
    return values, images


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
    relabellings: list[Relabelling] = []
    lines, apart = machine.num_wavelengths, machine.lines_apart

    def digit(level: int) -> Relabelling:
        stride, side = int(machine.strides[level]), machine.sides[level]

        def node(number: IntArray) -> IntArray:
            at = number // stride % side
            return np.asarray(number + ((at + 1) % side - at) * stride)

        return lambda c: _shifted(c, src=node(c.src), dst=node(c.dst))

    def multiplied(level: int, factor: int) -> Relabelling:
        """Digits and gaps between them by a factor; the group of lines of a gap becomes that of its multiple."""
        stride, side, groups = int(machine.strides[level]), machine.sides[level], machine.groups_of_levels[level]
        gap = side - groups  # the group of two digits is their difference, or one less

        def node(number: IntArray) -> IntArray:
            at = number // stride % side
            return np.asarray(number + (at * factor % side - at) * stride)

        def relabel(c: Circuits) -> Circuits:
            group = c.wavelength_lo % groups
            line = c.wavelength_lo + ((group + gap) * factor - gap) % side - group
            return _shifted(
                c, src=node(c.src), dst=node(c.dst), wavelength_lo=np.where(c.port == level, line, c.wavelength_lo)
            )

        return relabel

    relabellings += [digit(level) for level in range(len(machine.sides))]
    for level, side in enumerate(machine.sides):
        relabellings += [multiplied(level, factor) for factor in _generators(side)]
    relabellings.append(lambda c: _shifted(c, wavelength_lo=(c.wavelength_lo + apart) % lines))
    if len(machine.sides) == 2 and machine.sides[0] == machine.sides[1]:
        r = machine.sides[0]
        relabellings.append(
            lambda c: _shifted(
                c, src=c.src % r * r + c.src // r, dst=c.dst % r * r + c.dst // r, port=1 - c.port, hops=1 - c.hops
            )
        )
    return relabellings


def _generators(side: int) -> list[int]:
    """Factors of which all others that have an inverse modulo a number are products."""
    group, factors = {1}, []
    for factor in range(2, side):
        if gcd(factor, side) == 1 and factor not in group:
            factors.append(factor)
            while not (further := {one * factor % side for one in group}) <= group:
                group |= further
    return factors


def _of_oddl(machine: Oddl) -> list[Relabelling]:
    relabellings: list[Relabelling] = []
    stride = 1
    for side in machine.shape[::-1]:
        for bit in range((side - 1).bit_length() if side & (side - 1) == 0 else 0):
            relabellings.append(_flipped(stride << bit))
        stride *= side
    return relabellings


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

    relabellings: list[Relabelling] = [
        moved(lambda r, c: r * columns + columns - 1 - c, [WEST, EAST, SOUTH, NORTH]),
        moved(lambda r, c: (rows - 1 - r) * columns + c, [EAST, WEST, NORTH, SOUTH]),
        lambda c: _shifted(c, wavelength_lo=(c.wavelength_lo + 1) % machine.lasers),
    ]
    if rows == columns:
        relabellings.append(moved(lambda r, c: c * columns + r, [SOUTH, NORTH, EAST, WEST]))
    return relabellings
