r"""RAMP: tunable transmitters, star couplers, 20 ns slots.

::

    node (g, j, l)                 subnet (g, g', t): one star coupler               node (g', j', l')
    laser t  ~~wavelength l'~~> [TX gate: 1 of x groups] ~~> )=====( ~~> [RX gate: 1 of x groups] ~~> filter l' -> photodiode t
      x transceiver groups             picks g'          J L in, J L out        picks g

A node is (communication group g, rack j, device l) with number (g J + j) L + l. Transceiver group t of every node of group
g reaches, through a gate of x branches, the subnets (g, 0, t), ..., (g, x-1, t). Three kinds of subnet::

    broadcast         one star coupler, J L x J L: all nodes of the destination group receive all of it. A receiver is fixed to
                      its device's wavelength, which one sender of the group may use at a time
    route_broadcast   a wavelength router (AWGR, L x L) for each source rack: light from device l leads to device l'
                      on wavelength l' - l; then, for each l', a star coupler over the racks
    route_switch      the same routers; then, for each l', a J x J crossbar: in a round a source rack meets one destination
                      rack and conversely

Light may be split: a sender may open several gates, and couplers hand a signal to all racks. A receiver's gate listens to one
group at a time. The b transceivers of a group have their own fibres and subnets, but one laser and one instruction.

What a receiver's filter passes (`receiver`; by_subnet is the first that works)::

    fixed     the wavelength of its device, for ever: for broadcast, where a sender's laser chooses the device
    tunable   one wavelength, a setting like a gate's: for route_broadcast, where the wavelength follows from the pair
    none      all of them, there is no filter: for route_switch, where one signal arrives. Elsewhere all light of a subnet
              meets on its photodiodes, so a subnet (route_broadcast: for one l') carries one signal at a time

What its light passes, for every circuit the same, since everything is split whether it is received or not::

    laser -> modulator -> 1:x splitter -> gate ~ fibre ~ core ~ fibre ~ filter -> gate -> x:1 combiner -> photodiode

    core   broadcast         star coupler of J L ports, in stages where one component has too few
           route_broadcast   router, star coupler of J ports
           route_switch      router, 1:J splitter, gate, J:1 combiner

    The filter is left out with receiver=none.

Source of the light path: RAMP sections 3.1, 4.1, 4.2. Reading: the filter stands before the gates of the receiver (section
3.1: "before each port"); which filter a subnet needs the paper does not say, so it is a parameter. A gate is a semiconductor
amplifier; where its gain equals its loss it is only a gate. Couplers lose by splitting and by an excess a stage.

With electrical switches (`switches`: ecs, of circuits; eps, of packets) one of J L ports is in the place of every star coupler,
with a transceiver at each port: x^3 b J L more. Light ends there and begins again::

    laser -> modulator -> 1:x splitter -> gate ~ fibre -> photodiode, switch, laser -> modulator
        ~ fibre -> gate -> x:1 combiner -> photodiode

Both spans pass the same parts. The first is judged, where light is split before it is amplified: the other has no less margin
where gates amplify by 5 dB and can give 5 dB more than leaves a modulator. Circuits are judged as those of the couplers, all
of which such a switch can make. What is not judged or timed: what the switches themselves need to change, to choose and to
queue; the paper says nothing of it. Source: RAMP section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import ceil
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError
from opticcl.fabrics import nearest_sizes, register_fabric
from opticcl.fabrics._control import check_synchronisation, exposed_share
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._failures import FailingFabric, options_of_pairs
from opticcl.fabrics._ramp_netlist import Filters, RampShape, Switches, ramp_netlist, ramp_states
from opticcl.fabrics._ring_settings import ports_at_ends
from opticcl.ir import (
    CellGrid,
    Circuits,
    ControlPlane,
    Fabric,
    FabricNumbers,
    Fault,
    IntArray,
    Occupied,
    Options,
    PartKind,
    PartUse,
    Resource,
    Usage,
)
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.light import Counts, Element, LightPath, Limit, Optics
from opticcl.ir.netlist import Netlist
from opticcl.ir.occupied import failed_parts
from opticcl.ir.representatives import LightMove
from opticcl.ir.sub_grid import sub_grid
from opticcl.optics.clos import clos_stages
from opticcl.optics.limits import largest_that_closes
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds

__all__ = ["Ramp", "shape_at_scale", "wavelength_between"]

SHEET = datasheet("ramp")

Subnet = Literal["broadcast", "route_broadcast", "route_switch"]
Receiver = Literal["by_subnet", "fixed", "tunable", "none"]
RECEIVER_OF_SUBNET: dict[str, Filters] = {"broadcast": "fixed", "route_broadcast": "tunable", "route_switch": "none"}


def shape_at_scale(num_nodes: int) -> tuple[int, int, int] | None:
    """Groups, racks and wavelengths of a RAMP with that many nodes, or None.

    Reading: the paper scales x = J with L = 64. We take the most groups whose square the nodes allow, since x sets how
    many peers a node reaches in a step, then the most racks, with J <= x, x | L and at most x - 1 device groups.
    """
    if num_nodes == 1:
        return 1, 1, 1
    largest: int = SHEET["groups"]
    for groups in range(min(largest, num_nodes), 1, -1):
        for racks in range(min(groups, num_nodes // groups), 0, -1):
            wavelengths, rest = divmod(num_nodes, groups * racks)
            if not rest and wavelengths % groups == 0 and wavelengths // groups < groups:
                return groups, racks, wavelengths
    return None


def wavelength_between(subnet: str, num_devices: int, src: IntArray, dst: IntArray) -> IntArray:
    """The one wavelength on which light gets from src to dst.

    Args:
        subnet: kind of subnet.
        num_devices: devices of a rack L [count].
        src, dst: nodes.
    Source: RAMP sections 3.1, 6.2.1.
    Reading: the paper says that routers force the wavelength by the pair; we take the cyclic router's l_dst - l_src mod L.
    """
    if subnet == "broadcast":
        return dst % num_devices
    return (dst % num_devices - src % num_devices) % num_devices


@register_fabric("ramp", algorithm="ramp")
@dataclass(frozen=True, kw_only=True, repr=False)
class Ramp(FailingFabric):
    """RAMP with one of its three kinds of subnet.

    Args:
        groups: communication groups x [count].
        racks: racks a group J, at most x [count].
        wavelengths: devices a rack L, a multiple of x [count].
        transceivers_per_group: transceivers b of a node in each of its x transceiver groups [count].
        subnet: broadcast, route_broadcast or route_switch.
        receiver: filters before its photodiodes: fixed, tunable, none, or by_subnet, the one that the subnet needs.
        line_rate: of one transceiver [bit/s].
        slot: time slot [s]; 0 for none, then circuits change in `switching`.
        switching: part of a slot that is lost to switching [s].
        propagation: between any two nodes [s].
        io: memory to transceiver and back [s].
        synchronisation: time that control adds before a round; the paper needs none beyond its slots [s].
        control_hidden: share of it that is hidden behind computation, 0 to 1.
        switches: electrical ones in place of star couplers: ecs, of circuits, or eps, of packets; None: none.
        failed: parts that have failed, such as transmitter:5+star:3.
    Raises: FabricError: no such shape, or no such part.
    Source: RAMP sections 3.1, 4.1, 6.2.
    """

    groups: int = SHEET["groups"]
    racks: int = SHEET["racks"]
    wavelengths: int = SHEET["wavelengths"]
    transceivers_per_group: int = SHEET["transceivers_per_group"]
    subnet: Subnet = SHEET["subnet"]
    receiver: Receiver = SHEET["receiver"]
    line_rate: Rate = SHEET["line_rate"]
    slot: Seconds = SHEET["slot"]
    switching: Seconds = SHEET["switching"]
    propagation: Seconds = SHEET["propagation"]
    io: Seconds = SHEET["io"]
    synchronisation: Seconds = SHEET["synchronisation"]
    control_hidden: float = SHEET["control_hidden"]
    switches: Switches | None = None
    failed: str | None = None

    rate_parameter = "line_rate"
    source = "RAMP sections 3.1, 4.1, 6.2"
    drawing = "chords"
    about = (
        "A RAMP device receives one wavelength only, that of its place l in the rack: a sender tunes its laser to "
        "reach it. Each ground is a communication group; lines of one colour from the same group to the same "
        "group leave on different transceivers and so pass through different star couplers."
    )

    def __post_init__(self) -> None:
        x, racks, devices, b = self.groups, self.racks, self.wavelengths, self.transceivers_per_group
        if min(x, racks, devices, b) < 1:
            raise FabricError(
                f"ramp: groups={x}, racks={racks}, wavelengths={devices}, transceivers_per_group={b}; all are 1 or more"
            )
        if racks > x:
            raise FabricError(
                f"ramp: racks={racks} is more than groups={x}; at most one rack a transceiver group, try racks={x}"
            )
        if devices % x:
            below = max(x, devices // x * x)
            raise FabricError(
                f"ramp: groups={x} does not divide wavelengths={devices}; nearest: wavelengths={below} or {below + x}"
            )
        if self.receiver == "fixed" and self.subnet != "broadcast":
            raise FabricError(
                f"ramp: receiver=fixed with subnet={self.subnet}: a router makes the wavelength follow from both devices, so "
                "a fixed filter passes one sender of each rack; try receiver=tunable"
            )
        if self.switches and self.subnet != "broadcast":
            raise FabricError(
                f"ramp: switches={self.switches} with subnet={self.subnet}: an electrical switch is in the place of a whole "
                "subnet; leave subnet out"
            )
        if self.line_rate <= 0 or min(self.slot, self.switching, self.propagation, self.io) < 0:
            raise FabricError("ramp: line_rate must be positive; slot, switching, propagation and io not negative")
        if 0 < self.slot <= self.switching:
            raise FabricError(
                f"ramp: slot={self.slot:g} s leaves no time for data after switching={self.switching:g} s; "
                f"try slot={20 * self.switching:g}"
            )
        check_synchronisation("ramp", self.synchronisation)
        exposed_share("ramp", self.control_hidden)
        _ = self.conditions  # refuses parts that do not exist

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """Shape of that many nodes; a small RAMP keeps the 32 transceivers of a node by b = 32 / x.

        Raises: FabricError: num_nodes is no x J L with J <= x and x | L.
        """
        shape = shape_at_scale(num_nodes)
        if shape is None:
            near = nearest_sizes(num_nodes, lambda n: shape_at_scale(n) is not None)
            raise FabricError(
                f"ramp: no machine has {num_nodes} nodes, groups x racks x wavelengths with racks <= groups and groups "
                f"dividing wavelengths; {near}"
            )
        groups, racks, wavelengths = shape
        b = ceil(SHEET["groups"] / groups)
        return {"groups": groups, "racks": racks, "wavelengths": wavelengths, "transceivers_per_group": b}

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Eighteen nodes in three groups."""
        return cls(groups=3, racks=2, wavelengths=3), "ramp"

    @cached_property
    def numbers(self) -> FabricNumbers:
        """x J L nodes in groups of J L, with x b transceivers each; with slots, switching is a part of every slot."""
        return FabricNumbers(
            num_nodes=self.groups * self.racks * self.wavelengths,
            num_wavelengths=self.wavelengths,
            ports_per_node=self.groups * self.transceivers_per_group,
            rate_bits_per_s=self.line_rate,
            reconfiguration_s=0.0 if self.slot else self.switching,
            slot_s=self.slot,
            slot_payload_bytes=(self.slot - self.switching) * self.line_rate / 8 if self.slot else 0.0,
            latency_s=self.propagation + self.io,
            shortest_control_s=self.synchronisation * (1 - self.control_hidden),
            nodes_per_group=self.racks * self.wavelengths,
        )

    def sub_machine(self, nodes: IntArray) -> Ramp | None:
        """A RAMP with the groups, racks and places that cross in the nodes, if equation 2 has such parameters.

        A pair of groups has x planes of subnets: of x' groups each is given floor(x / x') of them.

        Args: nodes: as of `Fabric.sub_machine`.
        Source: RAMP section 6.3. Reading: "equivalent RAMP architecture parameters" are the numbers of used groups, racks and
            places, in the order of the job's ranks.
        """
        values = sub_grid((self.groups, self.racks, self.wavelengths), nodes)
        groups, racks, places = map(len, values or ((), (), ()))
        if not groups or not _has_equation_2(groups, racks, places):
            return None
        transceivers = self.transceivers_per_group * (self.groups // groups)
        return replace(
            self, groups=groups, racks=racks, wavelengths=places, transceivers_per_group=transceivers, failed=None
        )

    @property
    def filters(self) -> Filters:
        """What stands before a photodiode: fixed, tunable or none."""
        return RECEIVER_OF_SUBNET[self.subnet] if self.receiver == "by_subnet" else self.receiver

    @property
    def signals_meet(self) -> bool:
        """Whether a photodiode receives all light of a subnet, whatever its wavelength."""
        return self.filters == "none" and self.subnet != "route_switch"

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Transmitters, receivers and what lies between the two gates.

        A laser has one wavelength at a time, but its light may pass several gates. Without filters a subnet has one signal
        on all wavelengths together. The output of a crossbar leads to one
        receiver, so besides rx_port the matching demands one circuit an input.
        """
        x, ports = self.groups, self.ports_per_node
        apart = not self.signals_meet
        middle = {
            "broadcast": Resource("subnet", x * x * ports, per_wavelength=apart, splits=True),
            "route_broadcast": Resource("subnet", x * x * ports * self.wavelengths, per_wavelength=apart, splits=True),
            "route_switch": Resource(
                "switch_port", x * self.racks * x * ports * self.wavelengths, per_wavelength=False
            ),
        }[self.subnet]
        return (
            Resource("tx_port", self.num_nodes * ports, per_wavelength=False, splits=True),
            Resource("rx_port", self.num_nodes * ports, per_wavelength=False),
            middle,
        )

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Laser of the sender, photodiode of the receiver, and what lies between the two gates."""
        tx, rx, middle = self.resources
        x, ports, devices = self.groups, self.ports_per_node, self.wavelengths
        src, dst, port = (np.asarray(c, np.int64) for c in (circuits.src, circuits.dst, circuits.port))
        yield Usage(tx, src * ports + port)
        yield Usage(rx, dst * ports + port)
        tx_gate = circuits.hops[::2]
        if self.subnet == "broadcast":
            yield Usage(middle, (src // self.nodes_per_group * x + tx_gate) * ports + port)
            return
        origin = src // devices if self.subnet == "route_switch" else src // self.nodes_per_group  # rack, or group
        yield Usage(middle, ((origin * x + tx_gate) * ports + port) * devices + dst % devices)

    def resource_images(self, move: LightMove) -> tuple[IntArray, ...] | None:
        """Star couplers are identical: groups, places and transceiver groups may be permuted, racks within their group.

        A move takes groups to groups as it takes gates, and places to places as it takes wavelengths. Nothing may have
        failed, and a transceiver group has one transceiver: several share instructions, which no circuit has for itself.
        """
        x, ports, devices = self.groups, self.ports_per_node, self.wavelengths
        group = (move.nodes // self.nodes_per_group).reshape(x, -1)
        identical = self.subnet == "broadcast" and not self.signals_meet and not self.conditions
        if not identical or self.transceivers_per_group > 1 or (group != move.hops[:, None]).any():
            return None
        if (move.nodes % devices != np.tile(move.wavelengths, x * self.racks)).any():
            return None
        node = (move.nodes[:, None] * ports + move.ports).ravel()
        pair = (move.hops[:, None] * x + move.hops).ravel()
        return node, node, (pair[:, None] * ports + move.ports).ravel()

    def units_of_devices(self) -> tuple[tuple[int, int], ...]:
        """Laser and x gates of a transmitter, gate and filter of a receiver, input of a crossbar."""
        of = {"laser": (0, 1), "tx_gate": (0, self.groups), "rx_gate": (1, 1), "filter": (1, 1), "crossbar": (2, 1)}
        return tuple(of[device.kind] for device in self.devices)

    def inventory(self) -> tuple[PartKind, ...]:
        """Transceivers, gates with their fibres, and what the subnet is built of.

        A stuck transmitter is one with setting gate x wavelengths + wavelength: its light stands there.
        """
        netlist, stuck = self.netlist(), self.groups * self.wavelengths if self.subnet == "broadcast" else 0
        middle = []
        if self.subnet != "broadcast":
            middle.append(PartKind("router", netlist.count("awgr")))
        if self.subnet == "route_switch":
            middle.append(PartKind("crossbar", netlist.count("core_splitter") // self.racks))
        else:
            middle.append(PartKind(self._core, netlist.count(self._core)))
        return (
            PartKind("node", self.num_nodes),
            PartKind("transmitter", netlist.count("modulator"), stuck),
            PartKind("receiver", netlist.count("photodiode")),
            PartKind("tx_gate", netlist.count("tx_gate")),
            PartKind("rx_gate", netlist.count("rx_gate")),
            PartKind("input_fibre", netlist.count("fibre_up")),
            PartKind("output_fibre", netlist.count("fibre_down")),
            *middle,
        )

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """Transceivers at both ends, a gate of each with its fibre, and the subnet between their groups."""
        yield from super().parts_used(circuits)
        x, ports, devices, members = self.groups, self.ports_per_node, self.wavelengths, self.nodes_per_group
        src, dst, port = (np.asarray(c, np.int64) for c in (circuits.src, circuits.dst, circuits.port))
        transmitter, receiver = src * ports + port, dst * ports + port
        tx_gate, rx_gate = transmitter * x + dst // members, receiver * x + src // members
        yield PartUse("transmitter", transmitter)
        yield PartUse("receiver", receiver)
        yield PartUse("tx_gate", tx_gate)
        yield PartUse("rx_gate", rx_gate)
        yield PartUse("input_fibre", tx_gate)
        yield PartUse("output_fibre", rx_gate)
        pair = (src // members * x + dst // members) * ports + port
        if self.subnet == "broadcast":
            yield PartUse(self._core, pair)
            return
        yield PartUse("router", (src // devices * x + dst // members) * ports + port)
        yield PartUse("star" if self.subnet == "route_broadcast" else "crossbar", pair * devices + dst % devices)

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """Any transceiver group, with all its planes, on the one wavelength of the pair."""
        ports, members = self.ports_per_node, self.nodes_per_group
        row = np.repeat(np.arange(len(src)), ports)
        src, dst = np.asarray(src)[row], np.asarray(dst)[row]
        gates = np.stack([dst // members, src // members], axis=1)
        wavelength = wavelength_between(self.subnet, self.wavelengths, src, dst)
        port = np.tile(np.arange(ports), len(row) // ports)
        return options_of_pairs(Circuits.of(row, src, dst, port, wavelength, 1, gates), self.transceivers_per_group)

    @cached_property
    def occupied(self) -> Occupied:
        """Light of stuck transmitters: its cell of the subnet behind the gate that is open."""
        cells, x, ports = [], self.groups, self.ports_per_node
        for stuck in (c for c in self.conditions if c.mode == "stuck"):
            gate, wavelength = divmod(int(stuck.value), self.wavelengths)
            node, port = divmod(stuck.index, ports)
            group = node // self.nodes_per_group
            cells.append((2, (group * x + gate) * ports + port, 0 if self.signals_meet else wavelength, 1))
        return Occupied.of(cells, "stuck transmitters")

    def part_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Circuits that need a dead part or a stuck transmitter."""
        yield from super().part_faults(circuits)
        stuck = failed_parts(self.conditions, "transmitter", "stuck")
        if len(stuck):
            sender = circuits.src * np.int64(self.ports_per_node) + circuits.port
            yield Fault("part_failed", np.flatnonzero(np.isin(sender, stuck)), "no data from a stuck transmitter")

    @property
    def links_all(self) -> bool:
        """Unless parts have failed."""
        return not self.conditions

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """All pairs that a transceiver which works can join."""
        return self.joined_around(src, dst)

    def ring_order(self) -> IntArray:
        """As they are numbered, around what has failed."""
        return self.order_around(super().ring_order())

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Laser, gates and tunable filter of every transceiver, inputs of crossbars; with slots they switch in the guard."""
        ports = self.num_nodes * self.ports_per_node
        switching = 0.0 if self.slot else self.switching
        devices = [
            Device("laser", ports, switching),
            Device("tx_gate", ports * self.groups, switching),
            Device("rx_gate", ports, switching),
        ]
        if self.filters == "tunable":
            devices.append(Device("filter", ports, switching))
        if self.subnet == "route_switch":
            devices.append(Device("crossbar", self.resources[2].count, switching))
        return tuple(devices)

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Laser and tunable filter: wavelength; TX gate: open; RX gate: group; crossbar: rack at its output."""
        sender, receiver = ports_at_ends(circuits, self.ports_per_node)
        tx_gate, rx_gate = (circuits.hops[side::2].astype(np.int64) for side in (0, 1))
        wavelength = circuits.wavelength_lo.astype(np.int64)
        yield SettingUse("laser", sender, wavelength)
        yield SettingUse("tx_gate", sender * self.groups + tx_gate, np.ones(len(circuits), np.int64))
        yield SettingUse("rx_gate", receiver, rx_gate)
        if self.filters == "tunable":
            yield SettingUse("filter", receiver, wavelength)
        if self.subnet == "route_switch":
            *_, middle = self.usage(circuits)
            yield SettingUse("crossbar", middle.index, circuits.dst // self.wavelengths % self.racks)

    @property
    def _core(self) -> str:
        """What joins all nodes of a pair of groups where no crossbar does."""
        return "switch" if self.switches else "star"

    @property
    def _shape(self) -> RampShape:
        return self._shape_of(self.groups, self.racks)

    def _shape_of(self, groups: int, racks: int) -> RampShape:
        """With another number of groups and racks."""
        ports = racks * (self.wavelengths if self.subnet == "broadcast" else 1)
        planes, kind = self.transceivers_per_group, (self.subnet, self.filters, self.switches)
        return RampShape(groups, racks, self.wavelengths, planes, *kind, _stages(ports), self.line_rate)

    def netlist(self) -> Netlist:
        """Transceivers with their gates, and the subnets between them."""
        return ramp_netlist(self._shape)

    def states(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Lasers, gates and tunable filters, with those of idle planes, which are ganged with them."""
        yield from ramp_states(self._shape, self.settings(circuits))

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """Modulator of the sender's transceiver, photodiode of the receiver's."""
        circuit, _ = circuits.each_wavelength()
        sender, receiver = ports_at_ends(circuits, self.ports_per_node)
        return sender[circuit], receiver[circuit]

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Gates towards other groups, other wavelengths than the one that the subnet passes, and shared control violated."""
        b = self.transceivers_per_group
        bad_path = circuits.num_hops() != 2
        yield Fault("path_broken", np.flatnonzero(bad_path), "two gates, of the sender and of the receiver")
        if bad_path.any():
            return
        tx_gate, rx_gate = circuits.hops[::2], circuits.hops[1::2]
        wrong = (tx_gate != circuits.dst // self.nodes_per_group) | (rx_gate != circuits.src // self.nodes_per_group)
        yield Fault(
            "path_broken", np.flatnonzero(wrong), "TX gate at the receiver's group, RX gate at the sender's group"
        )
        if wrong.any():
            return
        unheard = circuits.wavelength_n != 1
        if self.subnet != "broadcast" or self.filters == "fixed":
            unheard |= circuits.wavelength_lo != wavelength_between(
                self.subnet, self.wavelengths, circuits.src, circuits.dst
            )
        yield Fault("wavelength_unheard", np.flatnonzero(unheard), "the one wavelength from the sender to the receiver")
        if b > 1:
            rows = _shared_control_violations(circuits, self.groups, b, self.filters == "tunable")
            yield Fault("control_shared", rows, f"one wavelength and the same gates on all {b} transceivers of a group")
            met = np.flatnonzero(_differs_within(self._light_of_group(circuits), circuits.src))
            yield Fault("idle_plane_light", met, f"light of one sender on all {b} planes that its gates open")

    def _light_of_group(self, circuits: Circuits) -> IntArray:
        """Where the light of a transceiver group gets on each of its planes, idle ones too: one number a place and wavelength.

        Reading: section 3.1 has one laser and one instruction for the b transceivers, so a plane without data has its light
        and its open gates as well.
        """
        x, devices = self.groups, self.wavelengths
        src, dst, port = (np.asarray(c, np.int64) for c in (circuits.src, circuits.dst, circuits.port))
        crossbar = self.subnet == "route_switch"
        origin = src // devices if crossbar else src // self.nodes_per_group
        place = (origin * x + circuits.hops[::2]) * x + port // self.transceivers_per_group
        if self.subnet != "broadcast":
            place = place * devices + dst % devices
        return place if crossbar or self.signals_meet else place * devices + circuits.wavelength_lo

    def control_plane(self) -> ControlPlane:
        """Distributed: no schedule is exchanged."""
        return control_plane("ramp", "every node computes its instructions", "slots without a schedule")

    def cell_grid(self) -> CellGrid:
        """Groups x devices; a cell has the nodes of all racks. Blocks that run RAMP's algorithms are preferred."""
        by_rack = np.arange(self.num_nodes).reshape(self.groups, self.racks, self.wavelengths)
        return CellGrid(by_rack.transpose(0, 2, 1), contiguous=False, rank=self._rank_of_block)

    def _rank_of_block(self, sides: tuple[int, ...]) -> tuple[bool, int]:
        """Whether equation 2 does not take it, and the groups, negative: g < J groups give a node g / J of its rate.

        Source: RAMP section 3.1: x^2 subnets a transceiver, each with a signal a place, so g^2 L / (g J L) for each node.
        """
        groups, places = sides
        return not _has_equation_2(groups, self.racks, places), -groups

    @cached_property
    def light_path(self) -> LightPath:
        """The one path of all circuits."""
        return self._light_of(self.groups, self.racks)

    def _light_of(self, groups: int, racks: int) -> LightPath:
        """With another number of groups and racks.

        A star coupler joins the noise of all gates that are open towards it: those of the L wavelengths of a subnet, or,
        behind routers, those of the J racks whose noise leaves at the same port and wavelength.
        """
        open_gates = {"broadcast": self.wavelengths, "route_broadcast": racks, "route_switch": 1}[self.subnet]
        if self.switches:
            open_gates = 1
        return _light(ramp_netlist(self._shape_of(groups, racks)), open_gates)

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """The largest x = J with the same number of wavelengths, as section 4.2 asks."""

        def closes(x: int) -> bool:
            light = self._light_of(x, x)
            return bool(chain_of(light, values).closes(light.extremes).all())

        x = largest_that_closes([x for x in range(1, self.wavelengths + 1) if self.wavelengths % x == 0], closes)
        split = float(chain_of(self.light_path, values).once_db.sum())
        kind = self.switches or self.subnet
        return (
            Limit(
                "largest_scale_nodes",
                x and x * x * self.wavelengths,
                f"largest {kind} machine with {self.wavelengths} wavelengths: "
                + (f"{x * x * self.wavelengths:,} nodes (x = J = {x})" if x else "none closes"),
            ),
            Limit("splitting_db", split, f"splitting alone loses {split:.1f} dB"),
        )

    def coordinates(self, node: int) -> str:
        """Communication group, rack and device."""
        group, rack = node // self.nodes_per_group, node // self.wavelengths % self.racks
        return f"(g={group}, j={rack}, l={node % self.wavelengths})"

    def place_name(self, resource: Resource, index: int) -> str:
        """A star coupler, the switch in its place, or an input of a crossbar."""
        if self.subnet != "route_switch":
            return self.netlist().place(self._core, index)
        return self.netlist().place("core_splitter", int(self._shape.crossbar_input(np.array(index))))


def _has_equation_2(groups: int, racks: int, places: int) -> bool:
    """Whether groups, racks and places of a part are those of a RAMP. Source: RAMP sections 3.1, 6.2."""
    return racks <= groups and places % groups == 0


def _light(netlist: Netlist, open_gates: int) -> LightPath:
    """The one path of all circuits: an element of every group, in their order, up to an electrical switch.

    Args:
        netlist: of the machine.
        open_gates: TX gates whose noise a star coupler joins [count].
    """
    passed = [
        (
            Element(
                kind,
                ways=max(group.n_in, group.n_out) if group.kind in ("splitter", "combiner") else 1,
                amplifies=kind == "soa_gate",
                joined=open_gates if group.name == "tx_gate" else 1,
            ),
            float(number),
        )
        for group in takewhile(lambda group: group.name != "switch", netlist.groups)
        for kind, number in group.loss.items()
    ]
    elements, numbers = zip(*passed, strict=True)
    pieces = np.array(numbers)

    def counts(circuits: Circuits) -> Counts:
        return np.broadcast_to(pieces, (len(circuits), len(pieces)))

    return LightPath(optics_of("ramp"), elements, counts, pieces[None], ("every circuit",), pieces)


def _stages(ports: int) -> float:
    """Star couplers in cascade. Source: section 4.1, 1024 ports as one component, more in cascade.

    >>> _stages(1024), _stages(2048)
    (1.0, 2.0)
    """
    largest = int(optics_of("ramp").geometry["star_ports"])
    return float((clos_stages(ports, largest) + 1) // 2)


def _shared_control_violations(circuits: Circuits, groups: int, b: int, tuned: bool) -> IntArray:
    """Circuits whose transceiver group would need two instructions at the same time, int64 (k,).

    A group of transmitters has one wavelength, and what one of its transceivers in use has open all have open; a group of
    receivers listens to one group and, with tunable filters (`tuned`), has one wavelength.
    Source: RAMP section 3.1: the b transceivers share light source and control instruction.
    """
    group, plane = np.divmod(circuits.port.astype(np.int64), b)
    tx_gate, rx_gate = circuits.hops[::2], circuits.hops[1::2]
    sender, receiver = circuits.src * np.int64(groups) + group, circuits.dst * np.int64(groups) + group
    uneven = _differs_within(sender, circuits.wavelength_lo) | _differs_within(receiver, rx_gate)
    if tuned:
        uneven |= _differs_within(receiver, circuits.wavelength_lo)
    opened = sender * groups + tx_gate
    return np.flatnonzero(uneven | (_num_distinct(sender, plane, b) != _num_distinct(opened, plane, b)))


def _differs_within(key: IntArray, value: IntArray) -> IntArray:
    """Whether rows with the same key have different values, bool (n,)."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    differs = np.zeros(len(first), bool)
    differs[which[value != value[first][which]]] = True
    return differs[which]


def _num_distinct(key: IntArray, value: IntArray, limit: int) -> IntArray:
    """Number of different values, each below `limit`, among the rows of each row's key, int64 (n,)."""
    keys, which = np.unique(key, return_inverse=True)
    pairs = np.unique(which * np.int64(limit) + value)
    return np.bincount(pairs // limit, minlength=len(keys))[which]
