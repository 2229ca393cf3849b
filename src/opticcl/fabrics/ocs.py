r"""Nodes on k optical circuit switches: a setting of a switch is a permutation, and a node may forward what is not for it.

::

    node i   port 0 --> [ switch 0 ] --> port 0   node sigma_0(i)        a plane each: one port a node, one setting
             port 1 --> [ switch 1 ] --> port 1   node sigma_1(i)
             ...

    a circuit over several links    src --> a --> b --> dst     the interfaces of a and b forward it: on its plane, or, where
                                                                forwarding=any, from the port of one plane to that of another

A link joins the port of one node to that of another through the switch of their plane; each port has one link at a time, and
another one takes the time of a reconfiguration. A circuit passes one link or several; the interface of each node between
forwards it in hardware, so that its software is not involved. Circuits may share a link: each takes a share of its rate.

Hop plane * N + i is the link out of node i on its plane, where i sends; hop (k + plane) * N + i is the same link, where i
forwards.

Source: the model of Harvest (arXiv 2602.09188), SWOT (arXiv 2510.19322) and arXiv 2602.10468: a step takes
alpha + (delta + beta m) h for h links with h circuits on each, a change R.
Reading: arXiv 2602.10468 has nodes of degree 2 that forward from any link to any; `forwarding=plane` keeps to one plane.
Reading: links that stay keep their light while other ports of their switch change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from opticcl.errors import TooLargeError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._ocs_netlist import MOST_CHANNELS, ocs_netlist
from opticcl.fabrics._packet import at_least, not_too_large, positive_rates
from opticcl.ir import Circuits, ControlPlane, Fabric, FabricNumbers, Fault, IntArray, Resource, Usage
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import Counts, Element, LightPath, Limit, Optics
from opticcl.ir.netlist import Netlist
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds

__all__ = ["SHARES", "Ocs"]

SHEET = datasheet("ocs")

SHARES = 720_720_000
"""Shares of a port's rate that circuits take: divisible by all numbers of circuits up to 16 [count]."""


@register_fabric("ocs", algorithm="digit_shifts")
@dataclass(frozen=True, kw_only=True, repr=False)
class Ocs(Fabric):
    """Nodes on k optical circuit switches.

    Args:
        nodes: nodes N, also the ports of each switch, >= 1 [count].
        planes: switches k, also the ports of a node [count].
        rate: of a port, each direction [bit/s].
        reconfiguration: to give ports of a switch other links [s].
        hop_delay: of a link and the interface behind it [s].
        endpoint_latency: of a dependent step: software, memory, transmitter [s].
        control: of the exchange with the controller before a change [s].
        forwarding: plane: a node passes light of a plane on to the same plane; any: to any.
    Raises: FabricError: no nodes, planes or rate, or a negative time.
    Source: arXiv 2602.09188, 2510.19322, 2602.10468.
    Reading: the published models have one switch, k switches without relays, or a graph of degree 2 with relays between all
        links; here every plane has relays, or all links.
    """

    nodes: int = SHEET["nodes"]
    planes: int = SHEET["planes"]
    rate: Rate = SHEET["rate"]
    reconfiguration: Seconds = SHEET["reconfiguration"]
    hop_delay: Seconds = SHEET["hop_delay"]
    endpoint_latency: Seconds = SHEET["endpoint_latency"]
    control: Seconds = SHEET["control"]
    forwarding: Literal["plane", "any"] = "plane"

    rate_parameter = "rate"
    source = "arXiv 2602.09188, 2510.19322, 2602.10468"
    about = "A switch joins each port of a node to one other node until the next setting; a node forwards what is not for it."

    def __post_init__(self) -> None:
        at_least("ocs", 1, nodes=self.nodes, planes=self.planes)
        at_least("ocs", 0, reconfiguration=self.reconfiguration, hop_delay=self.hop_delay)
        at_least("ocs", 0, endpoint_latency=self.endpoint_latency, control=self.control)
        positive_rates("ocs", rate=self.rate)
        not_too_large("ocs", self.nodes * self.planes)

    @cached_property
    def numbers(self) -> FabricNumbers:
        """A port a plane; its rate is divided into shares. The latency is that of a dependent step, apart from its links."""
        return FabricNumbers(
            num_nodes=self.nodes,
            num_wavelengths=SHARES,
            ports_per_node=self.planes,
            lasers_per_port=SHARES,
            rate_bits_per_s=self.rate / SHARES,
            reconfiguration_s=self.reconfiguration,
            latency_s=self.endpoint_latency,
            shortest_control_s=self.control,
        )

    @property
    def node_rate_bits_per_s(self) -> float:
        """Of all ports of a node [bit/s]."""
        return self.planes * self.rate

    def sub_machine(self, nodes: IntArray) -> Ocs:
        """Switches with the ports of the nodes alone.

        Args: nodes: as of `Fabric.sub_machine`.
        """
        return replace(self, nodes=len(nodes))

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Transmitters and receivers of all ports; circuits take shares of them."""
        ports = self.nodes * self.planes
        return (
            Resource("tx_port", ports, capacity=SHARES, per_wavelength=False, in_wavelengths=True),
            Resource("rx_port", ports, capacity=SHARES, per_wavelength=False, in_wavelengths=True),
        )

    def ends_of_links(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Node where each link that circuits pass begins, and node where it ends, int64 (hops,)."""
        begin = (circuits.hops % np.int32(self.nodes)).astype(np.int64)
        end = np.empty_like(begin)
        end[:-1] = begin[1:]
        last = circuits.hop_offsets[1:] - 1
        end[last[circuits.num_hops() > 0]] = circuits.dst[circuits.num_hops() > 0]
        return begin, end

    def _planes_of(self, circuits: Circuits) -> IntArray:
        """Plane of each link that circuits pass, int64 (hops,)."""
        planes: IntArray = circuits.hops // np.int32(self.nodes) % np.int32(self.planes)
        return planes.astype(np.int64)

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Its shares of the transmitter and of the receiver of every link."""
        tx, rx = self.resources
        owner, (begin, end) = circuits.hop_owner(), self.ends_of_links(circuits)
        port, amount = self._planes_of(circuits), circuits.wavelength_n[owner].astype(np.int64)
        yield Usage(tx, begin * self.planes + port, owner, amount=amount)
        yield Usage(rx, end * self.planes + port, owner, amount=amount)

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Paths that do not lead from the sender over nodes that forward, ports with two links."""
        hops, owner, n = circuits.hops.astype(np.int64), circuits.hop_owner(), self.nodes
        first = np.zeros(len(hops), bool)
        first[circuits.hop_offsets[:-1][circuits.num_hops() > 0]] = True
        side, node = np.divmod(hops, n)
        forwards, plane = np.divmod(side, self.planes)
        wrong = (forwards != ~first) | (first & (node != circuits.src[owner]))
        wrong |= (first | (self.forwarding == "plane")) & (plane != circuits.port[owner])
        begin, end = self.ends_of_links(circuits)
        wrong |= begin == end
        bad = np.bincount(owner[wrong], minlength=len(circuits)) > 0
        bad |= circuits.num_hops() == 0
        yield Fault(
            "path_broken",
            np.flatnonzero(bad),
            f"links of {'its' if self.forwarding == 'plane' else 'any'} plane from the sender on, over nodes that forward",
        )
        if bad.any():
            return
        port = self._planes_of(circuits)
        twice = np.zeros(len(hops), bool)
        for one, other in ((begin, end), (end, begin)):
            key = port * n + one
            order = np.lexsort((other, key))
            differs = (key[order[1:]] == key[order[:-1]]) & (other[order[1:]] != other[order[:-1]])
            twice[order[1:]] |= differs
        yield Fault(
            "port_set_twice", np.unique(owner[twice]), "one link a port of a switch: its setting is a permutation"
        )

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Input and output sides of the switches' ports."""
        ports = self.nodes * self.planes
        return (Device("input", ports, self.reconfiguration), Device("output", ports, self.reconfiguration))

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """An input: the node that its light goes to; an output: the node whose light it gets."""
        owner, (begin, end) = circuits.hop_owner(), self.ends_of_links(circuits)
        port = self._planes_of(circuits)
        yield SettingUse("input", begin * self.planes + port, end, owner)
        yield SettingUse("output", end * self.planes + port, begin, owner)

    def links_set(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Input and output of each link, once."""
        end = np.full(self.planes * self.nodes, -1)
        end[circuits.hops % np.int32(len(end))] = self.ends_of_links(circuits)[1]
        plane, begin = np.divmod(np.flatnonzero(end >= 0), self.nodes)
        return begin * self.planes + plane, end[end >= 0] * self.planes + plane

    def hop_latency_s(self, hops: IntArray) -> npt.NDArray[np.float64]:
        """Of every link, with the interface behind it."""
        return np.full(len(hops), self.hop_delay)

    def passage(self, floor: FloorPlan) -> Passage:
        """Nothing apart from links."""
        return Passage()

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Fibre through the switch at the centre and a receiver; a node that forwards."""
        links = self.nodes * self.planes
        forwards = np.repeat([0.0, 1.0], links)
        fibre = np.full(2 * links, floor.through_centre_m(self.nodes))
        return Passage(fibre_m=fibre, receivers=np.ones(2 * links), switches=forwards)

    def control_plane(self) -> ControlPlane:
        """A controller sets the switches."""
        return control_plane("ocs", "nothing", "the controller of the switches sets a change")

    @cached_property
    def light_path(self) -> LightPath:
        """Through the switch; the same for all links, since forwarding nodes receive and send again."""
        once = np.ones((1, len(_ELEMENTS)))

        def counts(circuits: Circuits) -> Counts:
            return np.broadcast_to(once, (len(circuits), len(_ELEMENTS)))

        return LightPath(optics_of("ocs"), _ELEMENTS, counts, once, ("every link",), once[0])

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """The largest loss of a switch with which the budget closes."""
        path = self.light_path
        most = float(chain_of(path, values).margin_db(path.extremes)[0]) + values.loss_db("circuit_switch")
        text = f"a switch may lose up to {most:.2f} dB" if most >= 0 else "not even a switch without loss closes"
        return (Limit("largest_switch_loss_db", most if most >= 0 else None, text),)

    def netlist(self) -> Netlist:
        """A transceiver a port, a switch a plane, two fibres a link, and interfaces that forward."""
        return ocs_netlist(self.nodes, self.planes, self.rate, self.forwarding == "plane")

    def states(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Both mirrors of each link, and what interfaces do with circuits: forward them, or hand them to the receiver."""
        owner, (begin, end) = circuits.hop_owner(), self.ends_of_links(circuits)
        port = self._planes_of(circuits)
        yield SettingUse("switch", port, end, owner, within=begin)
        yield SettingUse("switch", port, begin, owner, within=self.nodes + end)
        onward = circuits.hops.astype(np.int64) >= self.nodes * self.planes
        yield SettingUse("interface", begin[onward], port[onward], owner[onward], within=owner[onward])
        every = np.arange(len(circuits))
        yield SettingUse("interface", circuits.dst.astype(np.int64), np.full(len(circuits), -1), every, within=every)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """The port by which a circuit leaves its sender, and the one by which it reaches its receiver.

        Raises: TooLargeError: more circuits than links distinguish.
        """
        if len(circuits) > MOST_CHANNELS:
            raise TooLargeError(
                f"ocs: a round of {len(circuits):,} circuits; at most {MOST_CHANNELS:,} are distinguished, try fewer nodes"
            )
        last = self._planes_of(circuits)[circuits.hop_offsets[1:] - 1]
        return circuits.src.astype(np.int64) * self.planes + circuits.port, circuits.dst.astype(
            np.int64
        ) * self.planes + last


_ELEMENTS = tuple(map(Element, ("fibre", "circuit_switch", "fibre")))
