r"""TeraRack ring: micro-ring modulators and filters on a double ring of fibres.

::

    node i                                                           node i + 1
    port 0 (clockwise)          --- fibre segment i, w wavelengths -->
      comb laser ~> w modulators ~~> ))                             (( ~~> w filters ~> w photodiodes
                                                                        what is not filtered out passes on
    port 1 (counter-clockwise)  <-- fibre segment N + i -------------

Clockwise segment i joins node i to node i + 1, counter-clockwise segment N + i joins node i + 1 to node i (modulo N). A
circuit is the segments from its sender on in the direction of its port, up to its receiver; its light passes the nodes
between untouched. Each port has a modulator and a filter for every wavelength. Each further ring has ports, fibres, modulators
and filters of its own: port 2 r + direction belongs to ring r.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._failures import FailingFabric, options_of_pairs
from opticcl.fabrics._ring_light import ring_light
from opticcl.fabrics._ring_settings import lanes_at_ends, ports_at_ends, ring_settings
from opticcl.fabrics._terarack_netlist import (
    fibre_of_segment,
    ring_fibre_name,
    ring_segments,
    terarack_netlist,
    terarack_states,
)
from opticcl.ir import (
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
)
from opticcl.ir.capacity import Cut
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.fabric import HopLatency
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import LARGEST_COUNT, LightPath, Limit, Optics, count_in_words
from opticcl.ir.netlist import Netlist
from opticcl.ir.occupied import failed_parts
from opticcl.optics.crosstalk import snr_for_ber
from opticcl.optics.decibels import ratio_of_db
from opticcl.optics.limits import reach
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds

__all__ = [
    "Terarack",
    "check_node",
    "in_ring_order",
    "lost_on_the_way",
    "ring_cuts",
    "ring_faults",
    "ring_fibre_name",
    "terarack_limits",
]

SHEET = datasheet("terarack")


@register_fabric("terarack", algorithm="wrht")
@dataclass(frozen=True, kw_only=True, repr=False)
class Terarack(FailingFabric):
    """TeraRack's double ring of fibres.

    Args:
        nodes: nodes N on the ring, >= 1 [count].
        wavelengths: wavelengths w of a fibre [count].
        wavelength_rate: of one wavelength [bit/s].
        rings: double rings; the paper uses 1, the node of section 3.2 has 2 [count].
        reconfiguration: to retune the micro-rings [s].
        oeo: conversion to light and back of one packet [s].
        striping: whether a transfer may use wavelengths that would be idle, k of them at k times the rate. The paper
            gives each transfer one wavelength, so by default it may not.
        failed: parts that have failed, such as comb_laser:5+fibre:3.
    Raises: FabricError: no such shape, or no such part.
    Source: WRHT sections 3.2, 4.3, table 2.
    Reading: the conversion delay is "per packet"; packets follow each other through the converter, so a transfer waits
        for one. Added up over all packets of the paper's largest model it would be 8.5 us in 246 ms.
    """

    nodes: int = SHEET["nodes"]
    wavelengths: int = SHEET["wavelengths"]
    wavelength_rate: Rate = SHEET["wavelength_rate"]
    rings: int = SHEET["rings"]
    reconfiguration: Seconds = SHEET["reconfiguration"]
    oeo: Seconds = SHEET["oeo"]
    striping: bool = False
    failed: str | None = None

    rate_parameter = "wavelength_rate"
    alternatives = MappingProxyType({"striping": True})
    source = "WRHT sections 3.2, 4.3, table 2"
    drawing = "ring"
    about = (
        "Each node puts light on the ring and takes it off with micro-rings; other nodes' light passes by untouched."
    )

    def __post_init__(self) -> None:
        for name, number in (("nodes", self.nodes), ("wavelengths", self.wavelengths), ("rings", self.rings)):
            if number < 1:
                raise FabricError(f"terarack: {name}={number}; at least 1")
        check_node("terarack", self.wavelength_rate, reconfiguration=self.reconfiguration, oeo=self.oeo)
        _ = self.conditions  # refuses parts that do not exist

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Fifteen nodes with two wavelengths."""
        return cls(nodes=15, wavelengths=2), "wrht"

    @cached_property
    def numbers(self) -> FabricNumbers:
        """Two directions a ring, with all wavelengths of the comb each; the latency is the conversion of one packet."""
        return FabricNumbers(
            num_nodes=self.nodes,
            num_wavelengths=self.wavelengths,
            ports_per_node=2 * self.rings,
            lasers_per_port=self.wavelengths,
            rate_bits_per_s=self.wavelength_rate,
            reconfiguration_s=self.reconfiguration,
            latency_s=self.oeo,
            double_ring_bits_per_s=self.rings * self.wavelengths * self.wavelength_rate,
        )

    def sub_machine(self, nodes: IntArray) -> Terarack | None:
        """A ring of the nodes alone, in the order of the ring: light passes by those between.

        Args: nodes: as of `Fabric.sub_machine`, from any of them on.
        """
        return replace(self, nodes=len(nodes), failed=None) if in_ring_order(nodes) else None

    def shared(self, num_members: int) -> Terarack:
        """A ring with an equal share of the wavelengths, at least one, since every group's light goes round the whole ring.

        Args: num_members: of nodes on the ring [count].
        """
        return replace(self, wavelengths=max(1, self.wavelengths // num_members))

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Fibre segments, modulators and filters with photodiodes."""
        count = self.nodes * self.ports_per_node
        return Resource("fibre", count), Resource("laser", count), Resource("photodiode", count)

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Modulator of the sender, filter and photodiode of the receiver, every segment of the port's fibre between."""
        fibre, modulator, photodiode = self.resources
        owner, ports = circuits.hop_owner(), np.int64(self.ports_per_node)
        port = circuits.port.astype(np.int64)
        yield Usage(fibre, port[owner] // 2 * (2 * self.nodes) + circuits.hops, owner)
        yield Usage(modulator, circuits.src * ports + port)
        yield Usage(photodiode, circuits.dst * ports + port)

    def inventory(self) -> tuple[PartKind, ...]:
        """Combs, modulators and filters of every port, fibre segments.

        A filter that is stuck drops its wavelength whether its node wants it or not. Reading: light passes the rings of a
        node that is dead.
        """
        netlist = self.netlist()
        return (
            PartKind("node", self.nodes),
            PartKind("comb_laser", netlist.count("transmitter")),
            PartKind("modulator", netlist.count("add") * self.wavelengths),
            PartKind("filter", netlist.count("drop") * self.wavelengths, 1),
            PartKind("fibre", netlist.count("fibre")),
        )

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Comb and modulators of the sender, fibre all the way, filters of the receiver."""
        yield from super().parts_used(circuits)
        sender, receiver = ports_at_ends(circuits, self.ports_per_node)
        circuit, wavelength = circuits.each_wavelength()
        yield PartUse("comb_laser", sender)
        yield PartUse("modulator", sender[circuit] * self.wavelengths + wavelength, circuit)
        yield PartUse("filter", receiver[circuit] * self.wavelengths + wavelength, circuit)
        owner = circuits.hop_owner()
        ring = circuits.port[owner].astype(np.int64) // 2
        yield PartUse("fibre", ring * 2 * self.nodes + circuits.hops, owner)

    def part_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Circuits that need a dead part, or that pass a filter which is stuck."""
        yield from super().part_faults(circuits)
        stuck = failed_parts(self.conditions, "filter", "stuck")
        if not len(stuck):
            return
        owner = circuits.hop_owner()
        way, segment = np.divmod(circuits.hops.astype(np.int64), self.nodes)
        reached = (segment + 1 - way) % self.nodes
        between = reached != circuits.dst[owner]
        hop_port = reached * np.int64(self.ports_per_node) + circuits.port[owner]
        port, wavelength = np.divmod(stuck, self.wavelengths)
        step, lo, n = circuits.wavelength_step, circuits.wavelength_lo, circuits.wavelength_n
        lost = np.zeros(len(circuits), bool)
        for at, colour in zip(port, wavelength, strict=True):
            rows = owner[between & (hop_port == at)]
            behind = colour - lo[rows]
            lost[rows[(behind >= 0) & (behind % step == 0) & (behind // step < n[rows])]] = True
        yield Fault("part_failed", np.flatnonzero(lost), "no light past a filter that is stuck")

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """Any wavelength of any ring, the shorter way first."""
        n, w, rings = self.nodes, self.wavelengths, self.rings
        src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
        each = 2 * rings * w
        row = np.repeat(np.arange(len(src)), each)
        turn, rest = np.divmod(np.tile(np.arange(each), len(src)), rings * w)
        ring, wavelength = np.divmod(rest, w)
        ahead = (dst - src) % n
        way = (2 * ahead > n)[row] ^ (turn == 1)
        hops = np.where(way, n - ahead[row], ahead[row])
        offsets = np.concatenate([[0], np.cumsum(hops)])
        owner = np.repeat(np.arange(len(row)), hops)
        nth = np.arange(len(owner)) - offsets[owner]
        begin = src[row][owner]
        path = np.where(way[owner], n + (begin - 1 - nth) % n, (begin + nth) % n)
        circuits = Circuits.of(row, src[row], dst[row], 2 * ring + way, wavelength, 1, (path, offsets))
        return options_of_pairs(circuits)

    @property
    def links_all(self) -> bool:
        """Unless parts have failed."""
        return not self.conditions

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """All pairs that a wavelength which works can join."""
        return self.joined_around(src, dst)

    def ring_order(self) -> IntArray:
        """As they are numbered, around what has failed."""
        return self.order_around(super().ring_order())

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Modulator and drop ring of every port and wavelength."""
        count = self.nodes * self.ports_per_node * self.wavelengths
        return Device("modulator", count, self.reconfiguration), Device("ring", count, self.reconfiguration)

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """The sender's modulator, the rings of the nodes between, the receiver's ring."""
        way, segment = np.divmod(circuits.hops.astype(np.int64), self.nodes)
        reached = (segment + 1 - way) % self.nodes
        yield from ring_settings(circuits, reached, self.ports_per_node, self.wavelengths)

    def netlist(self) -> Netlist:
        """Banks of rings, fibres and photodiodes of every node and direction."""
        sides = self.nodes * self.ports_per_node, self.ports_per_node
        segments = ring_segments(self.nodes, self.rings)
        return terarack_netlist("terarack", *sides, self.wavelengths, self.wavelength_rate, segments)

    def states(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Rings that add at the sender, those that drop at the receiver and are off at the nodes between."""
        yield from terarack_states(self.settings(circuits), self.wavelengths)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Comb of the sender's port, photodiode of the receiver's port and the wavelength."""
        return lanes_at_ends(circuits, self.ports_per_node, self.wavelengths)

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Segments that do not lead from the sender to the receiver."""
        yield from ring_faults(circuits, self.nodes)

    def distance(self, src: IntArray, dst: IntArray) -> IntArray:
        """Segments, the shorter way round."""
        ahead = (np.asarray(dst, np.int64) - src) % self.nodes
        return np.minimum(ahead, self.nodes - ahead)

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Fibre of each segment: clockwise, then counter-clockwise."""
        node = np.arange(self.nodes)
        return Passage(fibre_m=np.tile(floor.segments_m(self.nodes, node, (node + 1) % self.nodes), 2))

    def shortest_paths_s(
        self, node: int, of_hops: HopLatency
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The nearer way round the ring [s]."""
        order = (node + np.arange(self.nodes)) % self.nodes
        clockwise, back = of_hops(order), of_hops(self.nodes + order)  # of the segment from each node on, and to it
        if clockwise is None or back is None:
            return super().shortest_paths_s(node, of_hops)
        there, hither = np.zeros((2, self.nodes))
        there[order] = np.minimum(np.cumsum(clockwise) - clockwise, np.cumsum(back[::-1])[::-1])
        hither[order] = np.minimum(np.cumsum(back) - back, np.cumsum(clockwise[::-1])[::-1])
        return there, hither

    def cuts(self, nodes: IntArray) -> Iterator[Cut]:
        """Through two fibres of each ring."""
        rate = self.double_ring_bits_per_s
        yield from ring_cuts(nodes, out=rate, back=rate)

    def control_plane(self) -> ControlPlane:
        """None."""
        return control_plane("terarack", "nothing", "nothing: retuning is a reconfiguration")

    @cached_property
    def light_path(self) -> LightPath:
        """Modulator and the interfaces of the nodes passed."""
        pieces = {kind: number for group in self.netlist().groups for kind, number in group.loss.items()}
        return ring_light(optics_of("terarack"), (self.nodes,), self.distance, pieces=pieces)

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Interfaces that light may pass, by power and by crosstalk."""
        return terarack_limits(self.light_path, values)

    def place_name(self, resource: Resource, index: int) -> str:
        """A fibre segment by its ends."""
        return self.netlist().place("fibre", fibre_of_segment(self.nodes, self.rings, index))


def in_ring_order(places: IntArray) -> bool:
    """Whether places on a ring are in its order, from any of them on."""
    return int(np.count_nonzero(np.diff(places, append=places[:1]) < 0)) <= 1


def check_node(name: str, wavelength_rate: float, **durations: float) -> None:
    """Refuse values that no TeraRack node has.

    Args:
        name: of the fabric, for messages.
        wavelength_rate: of one wavelength [bit/s].
        durations: by parameter name [s].
    Raises: FabricError: a rate that is not positive, or a negative time.
    """
    if wavelength_rate <= 0:
        raise FabricError(f"{name}: wavelength_rate={wavelength_rate:g} bit/s; more than 0, try 40Gb/s")
    for parameter, seconds in durations.items():
        if seconds < 0:
            raise FabricError(f"{name}: {parameter}={seconds:g} s; not negative, try 0s")


def ring_faults(circuits: Circuits, nodes: int) -> Iterator[Fault]:
    """Circuits on a ring whose segments do not lead from the sender to the receiver in the port's direction.

    Args:
        circuits: hop s < nodes joins node s to s + 1, hop nodes + s joins s + 1 to s.
        nodes: on the ring [count].
    """
    num_hops = circuits.num_hops()
    lost = (num_hops < 1) | (num_hops > nodes)
    yield Fault("path_broken", np.flatnonzero(lost), f"1 to {nodes} segments, at most once round the ring")
    if lost.any():
        return
    way, segment = np.divmod(circuits.hops, nodes)  # 0 clockwise, 1 counter-clockwise; anything else is no segment
    begin, end = (segment + way) % nodes, (segment + 1 - way) % nodes
    yield lost_on_the_way(circuits, begin, end, way != circuits.port[circuits.hop_owner()] % 2)


def lost_on_the_way(circuits: Circuits, begin: IntArray, end: IntArray, apart: npt.NDArray[np.bool_]) -> Fault:
    """Circuits whose segments do not lead from the sender to the receiver.

    Args:
        circuits: of one segment or more each.
        begin, end: nodes of each segment, int (hops,).
        apart: segments that are none of their circuit, whatever they join, bool (hops,).
    """
    owner = circuits.hop_owner()
    apart[1:] |= (begin[1:] != end[:-1]) & (owner[1:] == owner[:-1])
    broken = np.zeros(len(circuits), bool)
    broken[owner[apart]] = True
    broken |= begin[circuits.hop_offsets[:-1]] != circuits.src
    broken |= end[circuits.hop_offsets[1:] - 1] != circuits.dst
    return Fault("path_broken", np.flatnonzero(broken), "segments from sender to receiver in the port's direction")


def ring_cuts(nodes: IntArray, *, out: float, back: float, where: str = "the ring") -> Iterator[Cut]:
    """Arcs of a ring with half of the nodes; each has two ends, where light leaves clockwise and counter-clockwise.

    Args:
        nodes: positions on the ring.
        out: rate of a segment clockwise [bit/s].
        back: counter-clockwise [bit/s].
        where: what is cut, in words.
    """
    order = np.unique(nodes)
    half = len(order) // 2
    for first in sorted({half * part // 4 for part in range(4)}) if half else ():
        inside = (nodes >= order[first]) & (nodes < order[first + half])
        yield Cut(f"bisection of {where}", inside, out + back, out + back)


def terarack_limits(path: LightPath, values: Optics) -> tuple[Limit, ...]:
    """Interfaces that light may pass, by power and by crosstalk.

    Args:
        path: of the fabric.
        values: of its elements.
    Raises: ParameterError: values are missing.
    """
    everything = np.ones(len(path.elements), bool)  # also on a ring of one node
    by_power = reach(chain_of(path, values, everything), path, {"interface": 1})
    limits = [Limit("reach_interfaces", by_power, f"by power light passes {count_in_words(by_power, 'interface')}")]
    if not values.missing(["crosstalk.receiver", "crosstalk.transmitter"]):
        by_noise = _crosstalk_reach(values)
        rate = f"{values.table.geometry['bit_error_rate']:g}".replace("e-0", "e-")
        text = f"by crosstalk, for a bit error rate of {rate}, light passes {count_in_words(by_noise, 'interface')}"
        limits.append(Limit("crosstalk_interfaces", by_noise, text))
    return tuple(limits)


def _crosstalk_reach(values: Optics) -> int | None:
    """Interfaces at which the crosstalk of equation 12 still leaves the ratio that equation 13 needs."""
    receiver, transmitter = (
        float(ratio_of_db(-decibels)) for decibels in values.needed(["crosstalk.receiver", "crosstalk.transmitter"])
    )
    allowed = 1 / snr_for_ber(values.table.geometry["bit_error_rate"])
    if transmitter > allowed:
        return None
    return floor(min((allowed - transmitter) / receiver, LARGEST_COUNT)) if receiver else LARGEST_COUNT
