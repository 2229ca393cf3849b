r"""SiPAC: comb lasers and passive wavelength-selective switches (WSS) in levels; nothing is ever switched.

::

    CU x, x_l = i                 WSS of level l, r x r micro-rings                    CU y, y_l = j
    comb ~w lines~> modulators ==port l==> --o-------o-------o--  input bus i
                                             |       |       |    ring (i, j) drops group γ(i, j)
                                             v       v       v
                                           bus 0   bus 1   bus 2  output buses  ==port l==> photodiodes, one a line

A CU has L digits x_0 ... x_{L-1} below r and the number Σ x_l r^l. Its port l leads to a WSS of level l, shared with
the r - 1 CUs that differ from it in digit l alone. The w lines of a link fall into interleaved groups; the ring from
input i to output j drops one group and lets the others pass, so a wavelength chooses its receiver. An output bus takes
a different group from every input. In an irregular SiPAC the switches of each level have a radix r_l of their own: a
digit x_l is below r_l and counts r_0 ... r_{l-1} in the number.

    channels    groups        γ(i, j)            bandwidth of a pair
    published   k mod r       (j - i) mod r      B/r; γ = 0 leads back to the sender and carries nothing
    retuned     k mod (r-1)   (j - i - 1) mod r  B/(r-1); there is no ring for i = j
    ring        k mod r       (j - i) mod r      B/r; γ = 0 leads to j = i + 1, so that pair has 2 B/r

Reading: section III-B gives B/r, the times of section V-A need B/(r-1); hence two kinds of channels. The third is an own
construction: the comb and the free spectral range are those published, and the micro-ring of the loop-back drops its group at
the next output (modulo r) instead: it keeps its place on the input bus, and joins the output bus before the other of its input.

What its light passes::

    comb -> modulator + w - 1 others -> chip )~~ fibre ~~( chip  =o=o=O        input bus: j rings of other outputs, then
                                                                      |         the ring (i, j) that drops it
                                                                      o         output bus: r - 1 - i rings of the inputs
                                                                      o         that join behind
                              filter + others <- chip )~~ fibre ~~( chip

In an r x r matrix of rings, light from input i to output j passes j rings off resonance before it is dropped and r - 1 - i
behind: up to 2 (r - 1), on average over all pairs r - 1. Reading: section III-B has a cascade of rings whose outputs are
recombined on buses; the position of each ring is in figure 4 alone. With the buses in the order of their numbers the longest
path is that of a matrix. Where channels are retuned there are no rings (i, i): from an input to an output of a higher number
light passes two rings fewer, so up to 2 (r - 2), on average r - 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm, prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._failures import FailingFabric, options_of_pairs
from opticcl.fabrics._ring_settings import lanes_at_ends
from opticcl.fabrics._sipac_netlist import sipac_netlist
from opticcl.fabrics.oddl import ring_order
from opticcl.ir import (
    CellGrid,
    Circuits,
    ControlPlane,
    Fabric,
    FabricNumbers,
    Fault,
    IntArray,
    Options,
    PartKind,
    PartUse,
    Resource,
    Usage,
    numbered,
)
from opticcl.ir.capacity import Axis
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import LARGEST_COUNT, Counts, Element, LightPath, Limit, Optics, count_in_words
from opticcl.ir.netlist import Netlist
from opticcl.ir.representatives import LightMove
from opticcl.ir.sub_grid import sub_grid
from opticcl.optics.limits import largest_that_closes
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds, Shape

__all__ = ["Sipac", "checked_radices", "crossings", "num_groups", "shape_at_scale", "strides_of"]

SHEET = datasheet("sipac")

MAX_NODES = 2**31  # node numbers are int32

Channels = Literal["published", "retuned", "ring"]


def shape_at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters of the shape of a SiPAC or a BCube with that many nodes; every number has one, if only a single switch.

    Reading: the paper takes equal radices r <= 32 and few levels. We take equal radices where they need at most one level more
    than the fewest that radices up to 32 allow, else the fewest levels, with radices as equal as possible. A number with a
    prime factor above 32 has the most levels of equal radices that there are, which may be a single switch.

    >>> shape_at_scale(512), shape_at_scale(37)
    ({'radix': 8, 'levels': 3, 'radices': None}, {'radix': 37, 'levels': 1, 'radices': None})
    >>> [shape_at_scale(n)["radices"] for n in (128, 2048, 8192)]
    [(8, 16), (8, 16, 16), (16, 16, 32)]
    """
    shapes = [(num_nodes, 1)]
    for levels in range(2, num_nodes.bit_length()):
        radix = round(num_nodes ** (1 / levels))
        if radix**levels == num_nodes:
            shapes.append((radix, levels))
    most = SHEET["largest_radix"]
    fewest = _most_equal(num_nodes, most)
    radix, levels = next((shape for shape in shapes if shape[0] <= most), shapes[-1])
    if fewest and (radix > most or levels > len(fewest) + 1):
        return {"radices": fewest}
    return {"radix": radix, "levels": levels, "radices": None}


def _most_equal(num_nodes: int, most: int) -> tuple[int, ...]:
    """Fewest factors above 1 up to a largest, as equal as possible, ascending; empty where there are none.

    >>> _most_equal(2048, 32), _most_equal(74, 32), _most_equal(1, 32)
    ((8, 16, 16), (), ())
    """

    def products(rest: int, count: int, least: int) -> Iterator[tuple[int, ...]]:
        if count == 1:
            if least <= rest <= most:
                yield (rest,)
            return
        for first in range(least, most + 1):
            if first**count > rest:
                return
            if rest % first == 0:
                yield from ((first, *others) for others in products(rest // first, count - 1, first))

    for count in range(1, num_nodes.bit_length()):
        divisions = list(products(num_nodes, count, 2))
        if divisions:
            return min(divisions, key=lambda radices: (radices[-1], [-radix for radix in radices]))
    return ()


@register_fabric("sipac", algorithm="sipco")
@dataclass(frozen=True, kw_only=True, repr=False)
class Sipac(FailingFabric):
    """SiPAC of radix**levels nodes, or an irregular one with the product of its radices.

    Args:
        radix: ports of a switch r [count].
        levels: levels L, and ports of a node [count].
        radices: ports of the switches of each level, level 0 first, such as 4x8x2; None: `radix` at all `levels`. Where
            given, it replaces both.
        node_rate: of all ports of a node together, L B [bit/s].
        wavelengths: lines w of a link [count]; None: the most of the comb's 160 that fill the groups of every level evenly;
            where 160 are too few for that, all 160, and at least one a group. A number that the groups do not divide
            leaves channels of ⌊⌋ and ⌈⌉ wavelengths.
        channels: published (B/r a pair), retuned (B/(r-1) a pair) or ring (B/r, and as much again to the next node).
        latency: from the first bit sent to the first bit received [s].
        failed: parts that have failed, such as comb_laser:5+switch:3.
    Raises: FabricError: no such shape, or no such part.
    Source: SiPAC sections III-A, III-B, VI-A.
    Reading: section VI-A does not say whether passing a WSS is one hop of 1 us or two; we take one. Section III-A has
        switches of different radices without details; we give all links the same comb and the same rate.
    """

    radix: int = SHEET["radix"]
    levels: int = SHEET["levels"]
    radices: Shape | None = None
    node_rate: Rate = SHEET["node_rate"]
    wavelengths: int | None = None
    channels: Channels = SHEET["channels"]
    latency: Seconds = SHEET["latency"]
    failed: str | None = None

    rate_parameter = "node_rate"
    source = "SiPAC sections III-A, III-B, VI-A"
    about = (
        "Nothing is ever switched in a SiPAC: micro-rings drop each wavelength at another output, so the colour "
        "chooses the receiver. Nodes on one background share a switch of level 0, nodes in the same place of their "
        "backgrounds one of level 1. In the published setting λ0 leads back to its sender and stays dark."
    )

    def __post_init__(self) -> None:
        sides = self.sides
        most = max(self.groups_of_levels)
        if self._lines < most:
            raise FabricError(
                f"sipac: wavelengths={self._lines} are too few for the {most} groups of radix={max(sides)}, "
                f"channels={self.channels}; try wavelengths={most}"
            )
        if self.node_rate <= 0 or self.latency < 0:
            raise FabricError(
                f"sipac: node_rate={self.node_rate:g} must be positive, latency={self.latency:g} not negative"
            )
        _ = self.conditions  # refuses parts that do not exist

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """Radix and levels, or the radices, for that many nodes."""
        return shape_at_scale(num_nodes)

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Nine nodes with three lines a link."""
        return cls(radix=3, levels=2, wavelengths=3), "sipco"

    @cached_property
    def sides(self) -> tuple[int, ...]:
        """Ports of the switches of each level, level 0 first."""
        if self.radices is not None:
            return checked_radices("sipac", self.radices)
        return _equal_radices(self.radix, self.levels)

    def sub_machine(self, nodes: IntArray) -> Sipac | None:
        """A SiPAC with the levels in which the nodes differ, and as many ports of their switches as they have values.

        Args: nodes: as of `Fabric.sub_machine`.
        """
        values = sub_grid(self.sides[::-1], nodes)
        radices = tuple(len(some) for some in values[::-1] if len(some) > 1) if values else ()
        if not radices:
            return None
        rate, equal = self.node_rate * len(radices) / len(self.sides), len(set(radices)) == 1
        shape = {"radix": radices[0], "levels": len(radices), "radices": None} if equal else {"radices": radices}
        return replace(self, **shape, node_rate=rate, wavelengths=self.num_wavelengths, failed=None)

    @cached_property
    def groups_of_levels(self) -> tuple[int, ...]:
        """Groups that the lines of a link of each level fall into [count]."""
        return tuple(num_groups(side, self.channels) for side in self.sides)

    @cached_property
    def strides(self) -> IntArray:
        """By how much a node's number grows with each of its digits, int64 (levels,)."""
        return strides_of(self.sides)

    @cached_property
    def numbers(self) -> FabricNumbers:
        """A port a level, with all lines of the comb; a group has the nodes of a switch of level 0.

        Digits, the highest first, are the dimensions where all levels have the same radix.
        """
        nodes, ports = prod(self.sides), len(self.sides)
        return FabricNumbers(
            num_nodes=nodes,
            num_wavelengths=self._lines,
            ports_per_node=ports,
            lasers_per_port=self._lines,
            rate_bits_per_s=self.node_rate / (ports * self._lines),
            latency_s=self.latency,
            dimensions=(self.radix,) * self.levels if self.radices is None else (nodes,),
            nodes_per_group=self.sides[0],
        )

    @cached_property
    def _lines(self) -> int:
        """Lines of a link [count]."""
        if self.wavelengths is not None:
            return self.wavelengths
        even, comb = lcm(*self.groups_of_levels), int(SHEET["comb_lines"])
        return comb // even * even or max(comb, *self.groups_of_levels)

    @property
    def lines_apart(self) -> int:
        """Distance between the lines of one circuit, the same for all levels; from there on each circuit is a single line."""
        return min(lcm(*self.groups_of_levels), self.num_wavelengths)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Modulators of a port, one a line; photodiodes of a port, one a line: as many as its output bus carries."""
        ports = self.num_nodes * self.ports_per_node
        return Resource("laser", ports), Resource("photodiode", ports)

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Modulators of the sender's port and photodiodes of the receiver's."""
        laser, photodiode = self.resources
        port = circuits.port.astype(np.int64)
        yield Usage(laser, circuits.src * np.int64(self.ports_per_node) + port)
        yield Usage(photodiode, circuits.dst * np.int64(self.ports_per_node) + port)

    def move_of(self, nodes: IntArray) -> LightMove | None:
        """Translations of digits, which keep ports and lines."""
        ports, lines = self.ports_per_node, self.num_wavelengths
        move = LightMove(nodes, *map(np.arange, (ports, lines, ports)))
        return None if self.resource_images(move) is None else move

    def resource_images(self, move: LightMove) -> tuple[IntArray, ...] | None:
        """Switches of a level are identical, and so are their inputs: a translation of a node's digits keeps levels and lines.

        Nothing may have failed.
        """
        ports, nodes = self.ports_per_node, np.arange(self.num_nodes)
        kept = ((move.ports, ports), (move.wavelengths, self.num_wavelengths), (move.hops, ports))
        if self.conditions or any(not np.array_equal(column, np.arange(count)) for column, count in kept):
            return None
        for stride, side in zip(self.strides.tolist(), self.sides, strict=True):
            by = (move.nodes // stride - nodes // stride) % side
            if (by != by[0]).any():
                return None
        image = (move.nodes[:, None] * ports + np.arange(ports)).ravel()
        return image, image

    def inventory(self) -> tuple[PartKind, ...]:
        """Combs, modulators, photodiodes and fibres of every port; switches and their rings, level 0 first.

        Retuned channels have no rings (i, i), and those have no number.
        """
        netlist = self.netlist()
        kinds = (
            PartKind("node", self.num_nodes),
            PartKind("comb_laser", netlist.count("comb")),
            PartKind("modulator", netlist.count("modulator") * self.num_wavelengths),
            PartKind("photodiode", netlist.count("photodiode")),
            PartKind("micro_ring", self.num_nodes * int(self._rings_of_input.sum())),
            PartKind("switch", sum(self.num_nodes // side for side in self.sides)),
            PartKind("input_fibre", netlist.count("fibre_up")),
            PartKind("output_fibre", netlist.count("fibre_down")),
        )
        return tuple(kind for kind in kinds if kind.count)

    @property
    def _rings_of_input(self) -> IntArray:
        """Micro-rings of an input of a switch of each level, int64 (levels,)."""
        return np.array(self.sides, np.int64) - (self.channels == "retuned")

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Of the sender's port and the receiver's, the switch of the level, and the ring from one to the other.

        Ring (node, j) of a level leads from the node's input i to output j: rings of a level follow each other node by node.
        Retuned channels have rings for the outputs i + 1, i + 2, ... in a circle.
        """
        yield from super().parts_used(circuits)
        ports, lines = np.int64(self.ports_per_node), self.num_wavelengths
        level = circuits.hops.astype(np.int64)
        sender, receiver = circuits.src * ports + level, circuits.dst * ports + level
        yield PartUse("comb_laser", sender)
        yield PartUse("input_fibre", sender)
        yield PartUse("output_fibre", receiver)
        sides = np.array(self.sides, np.int64)
        side, stride = sides[level], self.strides[level]
        switches = np.concatenate([[0], np.cumsum(self.num_nodes // sides)])[:-1]
        place = circuits.src // (stride * side) * stride + circuits.src % stride
        yield PartUse("switch", switches[level] + place)
        of_input = self._rings_of_input
        rings = np.concatenate([[0], np.cumsum(of_input)])[:-1] * self.num_nodes
        output = circuits.dst // stride % side
        if self.channels == "retuned":
            output = (output - circuits.src // stride - 1) % side
        output = np.where(self._looped(circuits, level), circuits.src // stride % side, output)
        yield PartUse("micro_ring", rings[level] + circuits.src * of_input[level] + output)
        circuit, line = circuits.each_wavelength()
        yield PartUse("modulator", sender[circuit] * lines + line, circuit)
        yield PartUse("photodiode", receiver[circuit] * lines + line, circuit)

    def _looped(self, circuits: Circuits, level: IntArray) -> npt.NDArray[np.bool_]:
        """Circuits of the group that led back to the sender and now leads to the next node, bool (n,).

        Args:
            circuits: of a round.
            level: of each circuit, int64 (n,).
        """
        groups = np.array(self.groups_of_levels, np.int64)[level]
        looped: npt.NDArray[np.bool_] = (circuits.wavelength_lo % groups == 0) & (self.channels == "ring")
        return looped

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """Every line of the channel of the one level in which the two nodes differ; none where they differ in more."""
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        level, group = np.zeros(len(src), np.int64), np.zeros(len(src), np.int64)
        gap = 1 if self.channels == "retuned" else 0
        for number, (side, stride) in enumerate(zip(self.sides, self.strides.tolist(), strict=True)):
            apart = dst // stride % side - src // stride % side
            level[apart != 0], group = number, np.where(apart != 0, (apart - gap) % side, group)
        groups = np.array(self.groups_of_levels, np.int64)[level]
        joined = self._one_digit_apart(src, dst)
        counts = np.where(joined, -(-(self.num_wavelengths - group) // groups), 0)
        pair = np.arange(len(src))
        if self.channels == "ring":  # the next node receives the first group too
            following = np.flatnonzero(joined & (group == 1))
            pair = np.concatenate([pair, following])
            group = np.concatenate([group, np.zeros(len(following), np.int64)])
            counts = np.concatenate([counts, -(-self.num_wavelengths // groups[following])])
            order = np.argsort(pair, kind="stable")
            pair, group, counts = pair[order], group[order], counts[order]
        of_pair, nth = numbered(counts)
        row = pair[of_pair]
        line = group[of_pair] + nth * groups[row]
        path = level[row][:, None]
        return options_of_pairs(Circuits.of(row, src[row], dst[row], level[row], line, 1, path, self.lines_apart))

    def netlist(self) -> Netlist:
        """Combs, modulators and photodiodes of every port, rings of every switch."""
        return self._netlist_of(self.sides)

    def _netlist_of(self, radices: tuple[int, ...]) -> Netlist:
        """With other switches."""
        lines, groups = self.num_wavelengths, tuple(num_groups(radix, self.channels) for radix in radices)
        received = lines_received(radices, lines, groups, self.channels)
        port_rate = self.node_rate / self.ports_per_node
        return sipac_netlist(radices, strides_of(radices), lines, self.channels, received, port_rate)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Modulators of the sender's port, photodiode of the receiver's port and the wavelength."""
        return lanes_at_ends(circuits, self.ports_per_node, self.num_wavelengths)

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Ports of another level than the digit that differs, and wavelengths of another group than the ring drops."""
        bad_path = circuits.num_hops() != 1
        yield Fault("path_broken", np.flatnonzero(bad_path), "one hop: a switch of the port's level")
        if bad_path.any():
            return
        ports, groups = np.array(self.sides, np.int64), np.array(self.groups_of_levels, np.int64)
        level = circuits.hops
        astray = (level < 0) | (level >= self.ports_per_node) | (level != circuits.port)
        level = np.where(astray, 0, level)
        stride, r, apart = self.strides[level], ports[level], groups[level]
        i, j = circuits.src // stride % r, circuits.dst // stride % r
        astray |= (i == j) | (circuits.dst - circuits.src != (j - i) * stride)
        yield Fault("path_broken", np.flatnonzero(astray), "port and hop at the one level whose digit differs")
        gap = 1 if self.channels == "retuned" else 0
        of_group = circuits.wavelength_lo % apart == (j - i - gap) % r
        of_group |= self._looped(circuits, level) & ((j - i - 1) % r == 0)
        leaves = (circuits.wavelength_step % apart != 0) | (circuits.wavelength_step < 1)  # with its second wavelength
        of_group &= ~leaves | (circuits.wavelength_n == 1)
        distances = " or ".join(map(str, sorted(set(self.groups_of_levels))))
        expected = f"wavelengths of the one group that this ring drops, {distances} apart"
        yield Fault("wavelength_unheard", np.flatnonzero(~of_group & ~astray), expected)

    @property
    def links_all(self) -> bool:
        """Nodes that differ in one digit alone are linked."""
        return False

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether two nodes differ in one digit alone, and a line that works joins them."""
        apart = self._one_digit_apart(src, dst)
        return apart & self.joined_around(src, dst) if self.conditions else apart

    def _one_digit_apart(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        src, dst = np.broadcast_arrays(src, dst)
        apart = np.abs(np.subtract(src, dst, dtype=np.int64))
        level = np.maximum(np.searchsorted(self.strides, apart, side="right") - 1, 0)  # the highest that may differ
        stride = self.strides[level]
        line = stride * np.array(self.sides)[level]  # nodes that agree in all higher digits
        one: npt.NDArray[np.bool_] = (apart > 0) & (apart % stride == 0) & (src // line == dst // line)
        return one

    def axes(self, nodes: IntArray) -> Iterator[Axis]:
        """A level each, with the lines of its port that lead to others."""
        for level, (side, stride) in enumerate(zip(self.sides, self.strides.tolist(), strict=True)):
            back = -(-self.num_wavelengths // side) if self.channels == "published" or side == 1 else 0
            lines = self.num_wavelengths - back
            digits = nodes.astype(np.int64) // stride % side
            yield Axis(f"level {level}", digits, lines * self.rate_bits_per_s, side - 1)

    def ring_order(self) -> IntArray:
        """Level by level; see `oddl.ring_order`."""
        return self.order_around(ring_order(self.sides[::-1]))  # there the last side varies fastest, here level 0

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Fibre of each level: within a rack where its lines are, else through the centre."""
        lines = zip(self.strides.tolist(), self.sides, strict=True)
        return Passage(fibre_m=np.array([floor.lines_m(self.num_nodes, *line) for line in lines]))

    def control_plane(self) -> ControlPlane:
        """None: passive switches."""
        return control_plane("sipac", "nothing", "nothing: switches are passive")

    def cell_grid(self) -> CellGrid:
        """Digits, the highest first; blocks that fill whole switches are preferred."""
        cells = np.arange(self.num_nodes).reshape(*self.sides[::-1], 1)
        return CellGrid(cells, contiguous=False, rank=_lines_and_sides)

    @cached_property
    def light_path(self) -> LightPath:
        """Through one switch of micro-rings."""
        return _light(self.netlist(), self.sides, self.channels)

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """The largest switch with a line for each group whose last crossing still lets enough light through."""
        lines = self.num_wavelengths

        def closes(radix: int) -> bool:
            light = _light(self._netlist_of((radix,)), (radix,), self.channels)
            return bool(chain_of(light, values).closes(light.extremes).all())

        most = min(lines + (self.channels == "retuned"), LARGEST_COUNT)
        radix = largest_that_closes(range(2, most + 1), closes)
        passed = max(map(crossings, self.sides, self.groups_of_levels))
        each = values.loss_db("ring_pass")
        rings = crossings(radix, num_groups(radix, self.channels)) if radix else 0
        text = f"{count_in_words(radix, 'port')}, {rings:,} rings passed" if radix else "none closes"
        return (
            Limit("largest_radix", radix, f"largest switch for {lines} lines: {text}"),
            Limit("crossings", passed, f"a circuit passes up to {passed} rings off resonance, {passed * each:.2f} dB"),
        )

    def coordinates(self, node: int) -> str:
        """Digits of a node."""
        digits = (f"x{k}={node // stride % self.sides[k]}" for k, stride in enumerate(self.strides.tolist()))
        return "(" + ", ".join(digits) + ")"


# --- light --------------------------------------------------------------------------------------------------------------


def crossings(radix: int, groups: int) -> int:
    """Rings off resonance on the longest path through a switch.

    Args:
        radix: ports of the switch r [count].
        groups: groups of lines: r, or r - 1 where no input has a ring to its own output [count].

    >>> crossings(8, 8), crossings(8, 7), crossings(2, 1), crossings(1, 1)
    (14, 12, 0, 0)
    """
    return 2 * (radix - 1) if groups == radix else max(0, 2 * (radix - 2))


def _light(netlist: Netlist, radices: tuple[int, ...], channels: str) -> LightPath:
    """Paths through the switches of every level.

    Args:
        netlist: of the machine.
        radices: ports of the switches of each level.
        channels: of the machine.
    """
    sides, strides, levels = np.array(radices, np.int64), strides_of(radices), np.arange(len(radices))
    groups = np.array([num_groups(radix, channels) for radix in radices], np.int64)
    of = {group.name: group for group in netlist.groups}
    pieces = [
        [
            *of["modulator"].loss.items(),
            *of["fibre_up"].loss.items(),
            *of[f"ring{level}"].loss.items(),
            *of[f"ring{level}"].loss_moved.items(),
            *of["fibre_down"].loss.items(),
            *of[f"demux{level}"].loss.items(),
        ]
        for level in range(len(radices))
    ]
    kinds = [kind for kind, _ in pieces[0]]
    each = np.array([[number for _, number in of_level] for of_level in pieces], np.float64)

    def path(level: np.ndarray, passed: np.ndarray) -> Counts:
        counts = each[level]
        counts[:, kinds.index("ring_pass")] *= passed
        return counts

    def ends(circuits: Circuits) -> tuple[IntArray, IntArray, IntArray, npt.NDArray[np.bool_]]:
        """Level, input and output of each circuit, and whether it is of the group that led back."""
        level = circuits.hops[circuits.hop_offsets[:-1]]
        stride, side = strides[level], sides[level]
        looped = (circuits.wavelength_lo % groups[level] == 0) & (channels == "ring")
        return level, circuits.src // stride % side, circuits.dst // stride % side, looped

    def counts(circuits: Circuits) -> Counts:
        level, i, j, looped = ends(circuits)
        return path(level, rings_passed(i, j, sides[level], looped, channels))

    def of_images(circuits: Circuits, moves: Sequence[LightMove]) -> Counts:
        by = np.gcd.reduce([sides, *(move.nodes[0] // strides % sides for move in moves)])  # inputs go on by that
        level, i, j, looped = ends(circuits)
        kinds = np.column_stack([level, i % by[level], (j - i) % sides[level], looped])
        level, first, ahead, looped = np.unique(kinds, axis=0).T
        row, i = np.nonzero(np.arange(sides.max()) < sides[level][:, None])
        own = (i - first[row]) % by[level[row]] == 0
        row, i = row[own], i[own]
        level, j = level[row], (i + ahead[row]) % sides[level[row]]
        return path(level, rings_passed(i, j, sides[level], looped[row].astype(bool), channels))

    longest = path(levels, np.array([crossings(*of_level) for of_level in zip(radices, groups.tolist(), strict=True)]))
    share = (sides - 1) / max(1, int((sides - 1).sum()))
    without = sides != groups  # a ring (i, i)
    mean = np.array([_mean_passed(radix) for radix in radices]) if channels == "ring" else sides - 1 - without
    typical = share @ path(levels, mean) if share.any() else longest[0]
    names = tuple(f"level {level}, first input to last output" for level in levels)
    return LightPath(
        optics_of("sipac"), tuple(map(Element, kinds)), counts, longest, names, typical, of_images=of_images
    )


def rings_passed(i: IntArray, j: IntArray, side: IntArray, looped: npt.NDArray[np.bool_], channels: str) -> IntArray:
    """Rings off resonance on the way from an input of a switch to an output, int64 (n,).

    Args:
        i, j: input and output, int (n,).
        side: ports of the switch, int (n,).
        looped: whether by the group that led back where channels are published, bool (n,).
        channels: of the machine.
    """
    if channels == "published":
        return j + side - 1 - i
    if channels == "retuned":
        return j + side - 1 - i - 2 * (i < j)
    before = np.where(looped, i, j)
    behind = side - 1 - i - (i < j) + ((j - 1) % side > i) + looped  # two rings of input j - 1, none of input j
    passed: IntArray = before + behind
    return passed


def _mean_passed(radix: int) -> float:
    """Mean of `rings_passed` over all pairs of a switch with channels=ring, each by its own group.

    That of a matrix, r - 1, less 1 / (r (r - 1)): r (r - 1) / 2 pairs pass one ring fewer, and as many but one pass one more.

    >>> _mean_passed(1), _mean_passed(2), _mean_passed(3)
    (0.0, 0.5, 1.8333333333333333)
    """
    return radix - 1 - 1 / (radix * (radix - 1)) if radix > 1 else 0.0


def lines_received(radices: tuple[int, ...], wavelengths: int, groups: tuple[int, ...], channels: str) -> IntArray:
    """Lines of the same bus, off resonance at the last filter, by level, int64 (levels,).

    Args:
        radices: ports of the switches of each level.
        wavelengths: lines of a link [count].
        groups: groups that the lines of each level fall into.
        channels: of the machine.
    """
    missing = 0 if channels == "ring" else 1  # inputs without light on an output bus
    lines = [-(-wavelengths // count) * (side - missing) for count, side in zip(groups, radices, strict=True)]
    return np.maximum(np.minimum(lines, wavelengths) - 1, 0)


# --- shape --------------------------------------------------------------------------------------------------------------


def strides_of(radices: tuple[int, ...]) -> IntArray:
    """By how much a node's number grows with each of its digits, int64 (levels,).

    >>> strides_of((4, 8, 2)).tolist()
    [1, 4, 32]
    """
    return np.array([prod(radices[:level]) for level in range(len(radices))], np.int64)


def _lines_and_sides(sides: tuple[int, ...]) -> tuple[int, int]:
    """Digits in which a block has several values, and the sum of its sides."""
    return sum(side > 1 for side in sides), sum(sides)


def num_groups(radix: int, channels: str) -> int:
    """Groups that the lines of a link fall into.

    >>> num_groups(8, "published"), num_groups(8, "retuned"), num_groups(8, "ring")
    (8, 7, 8)
    """
    return max(1, radix - 1) if channels == "retuned" else radix


def checked_radices(system: str, radices: tuple[int, ...]) -> tuple[int, ...]:
    """Radices that differ, level 0 first, as they are.

    Args:
        system: name of the fabric, for messages.
        radices: ports of the switches of each level [count].
    Raises: FabricError: levels without switches, or too many nodes.
    """
    written = "x".join(map(str, radices))
    if 1 in radices and len(radices) > 1:
        near = "x".join(str(r) for r in radices if r > 1) or "1"
        raise FabricError(f"{system}: radices={written} has switches of one port; try radices={near}")
    if prod(radices) >= MAX_NODES:
        near = "x".join(map(str, radices[: _most_levels(radices)])) or str(SHEET["largest_radix"])
        raise FabricError(f"{system}: radices={written} make 2**31 nodes or more; try radices={near}")
    return radices


def _equal_radices(radix: int, levels: int) -> tuple[int, ...]:
    """The radix of each level.

    Raises: FabricError: levels without nodes or switches, or too many nodes.
    """
    if min(radix, levels) < 1:
        raise FabricError(f"sipac: radix={radix}, levels={levels}; both are 1 or more")
    if radix == 1 and levels > 1:
        raise FabricError(f"sipac: levels={levels} with radix=1 is a single node; try levels=1 or radix=2")
    if levels > 30 or radix**levels >= MAX_NODES:
        most = _most_levels((radix,) * 31)
        near = f"levels={most}" if most else f"radix={SHEET['largest_radix']}"
        raise FabricError(f"sipac: radix={radix} to the power levels={levels} is 2**31 nodes or more; try {near}")
    return (radix,) * levels


def _most_levels(radices: tuple[int, ...]) -> int:
    """How many of the levels, from level 0 on, make fewer than MAX_NODES nodes."""
    return sum(prod(radices[: level + 1]) < MAX_NODES for level in range(len(radices)))
