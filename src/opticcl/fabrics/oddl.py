r"""ODDL: tunable transmitters around wavelength-selective switches that are set once a job.

::

    node i, NIC of dimension d            N x N LCoS-WSS, one for each line of d             node j, NIC of d
    tunable laser ~~ one wavelength ~~> in i =[ (in i, wavelength) -> out j ]= out j ~~> receiver
                     or a bonded group        [  fixed for the whole job    ]

    2 x 4:   0 - 1 - 2 - 3    each row one switch of 4 ports (dimension 1),
             |   |   |   |    each column one switch of 2 ports (dimension 0):
             4 - 5 - 6 - 7    a node has two NICs

Nodes stand on a grid of one to three dimensions, numbered row by row. All nodes that differ in one coordinate alone
share a switch, so one hop joins them. The switch turns a sender's wavelength into a destination: to change its partner
a node retunes its laser, and the switch stays as it is. Readiness is signalled over an electrical control network, a fat
tree.

What its light passes::

    tunable laser ~~~~~~~~ switch of n ports [~ amplifier] ~~~~~~~~ receiver           200 m of fibre from end to end

    n <= 8, 16, 32   one module of that many ports (wss8, wss16, wss32), the smallest that is large enough
    n > 32           a Clos of the smallest modules that make it in three stages, or of 32 ports in five and more
    n > 8            an amplifier, whose gain is 0 dB where a preset has none

Source of the light path: ODDL sections 3.B, 3.C, figure 6. Reading: the modules of the 64-port Clos (8 x 16, 8 x 8, 16 x 8)
lose what a switch of 8 ports loses; section 3.C gives no figure for 8 x 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import register_fabric
from opticcl.fabrics._control import exposed_share
from opticcl.fabrics._datasheet import control_plane, datasheet, optics_of
from opticcl.fabrics._failures import FailingFabric, options_of_pairs
from opticcl.fabrics._oddl_netlist import Switches, oddl_netlist, oddl_states, pieces_passed, switches_of
from opticcl.fabrics._ring_settings import lanes_at_ends
from opticcl.ir import (
    CellGrid,
    Circuits,
    ControlPlane,
    Fabric,
    FabricNumbers,
    Fault,
    IntArray,
    Options,
    Part,
    PartKind,
    PartUse,
    Resource,
    Usage,
)
from opticcl.ir.capacity import Axis
from opticcl.ir.device import Device, SettingUse
from opticcl.ir.floor_plan import FloorPlan, Passage
from opticcl.ir.light import Counts, Element, LightPath, Limit, Optics
from opticcl.ir.netlist import Netlist
from opticcl.ir.sub_grid import sub_grid
from opticcl.optics.chain import ROUNDING_DB, amplifier_places
from opticcl.optics.clos import clos_stages
from opticcl.optics.values import chain_of
from opticcl.units import Rate, Seconds, Shape
from opticcl.units import shape as parse_shape

__all__ = [
    "BAND_HZ",
    "Oddl",
    "control_hops",
    "coordinate",
    "dimension_between",
    "modules_passed",
    "partners_of_side",
    "ring_order",
    "shape_at_scale",
    "switches_per_dimension",
]

SHEET = datasheet("oddl")
SHAPE = parse_shape(SHEET["shape"])
MAX_DIMENSIONS = 3
BAND_HZ: tuple[float, float] = (SHEET["band_low"], SHEET["band_high"])
MAX_WAVELENGTHS: int = round((BAND_HZ[1] - BAND_HZ[0]) / SHEET["channel_spacing"])
PASSIVE_PORTS: int = SHEET["passive_side"]
LIMIT_PORTS = (8, 16, 32, 64)
"""Sizes of switches for which limits are listed."""


def shape_at_scale(num_nodes: int) -> tuple[int, ...] | None:
    """Sides of the grid of that many nodes nearest to a square, none above 32, shorter first; None if there is none.

    >>> shape_at_scale(64), shape_at_scale(128), shape_at_scale(4096)
    ((8, 8), (8, 16), (16, 16, 16))
    """
    longest_bits = partners_of_side(SHEET["longest_side"])
    bits = num_nodes.bit_length() - 1
    if num_nodes != 1 << bits or bits > MAX_DIMENSIONS * longest_bits:
        return None
    num_dimensions = max(1, -(-bits // longest_bits))
    return tuple(1 << (bits + d) // num_dimensions for d in range(num_dimensions))


def partners_of_side(side: int) -> int:
    """Partners of a node along a side in halving-doubling, at least 1: the wavelengths that a NIC needs for them.

    >>> partners_of_side(32), partners_of_side(5), partners_of_side(1)
    (5, 3, 1)

    Source: section 3.C, w >= log2(max(n, m)).
    """
    return max(1, (side - 1).bit_length())


def switches_per_dimension(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Switches that a grid needs in each dimension; those of dimension d have shape[d] ports.

    >>> switches_per_dimension((8, 8, 16))
    (128, 128, 64)

    Source: section 3.C. Reading: it prints 288 for 16 x 16 x 16; every line has its own switch, which makes 768.
    """
    return tuple(prod(shape) // side for side in shape)


def coordinate(shape: tuple[int, ...], node: IntArray, dimension: IntArray) -> IntArray:
    """Coordinate of each node in its given dimension; arrays that broadcast.

    Args:
        shape: sides of the grid.
        node: numbers.
        dimension: of each node.
    """
    strides = np.array([prod(shape[d + 1 :]) for d in range(len(shape))], np.int64)
    return node // strides[dimension] % np.array(shape, np.int64)[dimension]


def dimension_between(shape: tuple[int, ...], src: IntArray, dst: IntArray) -> IntArray:
    """The one dimension in which two nodes differ, -1 if they differ in none or in several; arrays that broadcast.

    Args:
        shape: sides of the grid.
        src, dst: nodes.
    """
    dimension = np.full(np.broadcast(src, dst).shape, -1, np.int32)
    count = np.zeros(dimension.shape, np.int32)
    for d, side in enumerate(shape):
        stride = prod(shape[d + 1 :])
        differ = src // stride % side != dst // stride % side
        dimension[differ] = d
        count += differ
    return np.where(count == 1, dimension, -1)


def control_hops(src: IntArray, dst: IntArray, radix: int) -> IntArray:
    """Switches of the control network between two nodes: 1, 3 or 5; arrays that broadcast.

    Args:
        src, dst: nodes.
        radix: ports of a control switch [count].
    Source: section 4.B, a fat tree of three layers.
    """
    hosts_per_edge = radix // 2
    same_edge, same_pod = (src // hosts == dst // hosts for hosts in (hosts_per_edge, hosts_per_edge**2))
    return np.where(same_edge, 1, np.where(same_pod, 3, 5))


def ring_order(shape: tuple[int, ...]) -> IntArray:
    """Nodes of a grid in a closed order from 0 in which each differs from the next in one coordinate, int64 (nodes,).

    Dimension by dimension: a boustrophedon along the path so far over all values of the new coordinate except 0, then back
    along 0.
    It closes for every shape, since a switch joins any two values.
    """
    path = np.zeros(1, np.int64)
    for side in shape:
        if side > 1:
            snake = path[:, None] * side + np.arange(1, side)
            snake[1::2] = snake[1::2, ::-1]
            path = np.concatenate([path[:1] * side, snake.ravel(), path[:0:-1] * side])
    return path


@register_fabric("oddl", algorithm="halving_doubling")
@dataclass(frozen=True, kw_only=True, repr=False)
class Oddl(FailingFabric):
    """ODDL on a grid of one to three dimensions.

    Args:
        shape: nodes along each dimension, also the ports of its switches.
        wavelengths: that a NIC can tune to [count]; None: ceil(log2(longest side)), one for each partner.
        nic_rate: of a NIC on one wavelength [bit/s]; bonded wavelengths add up.
        reconfiguration: from one partner to the next: laser, clock and data recovery [s].
        control_switch_delay: of one switch of the control network [s].
        control_radix: ports of a switch of the control network, an even number [count].
        control_hidden: share of the control messages' time that is hidden behind computation (sums, host transfers), 0 to 1.
        failed: parts that have failed, such as transmitter:5+switch:3.
    Raises: FabricError: no such shape, or no such part.
    Source: ODDL sections 3, 4.B, 5.A.
    Reading: the text leaves open how many wavelengths a NIC sends at the same time. Section 3.A gives two wavelengths to
        a partner where a laser has eight and a node four partners, so a NIC may use any adjacent wavelengths, all of them
        towards one partner. Three layers of radix 16 connect at most 1024 hosts, while the messages of section 4.B address
        4096 nodes; the top layer is as wide as necessary, and there is never a fourth layer.
    """

    shape: Shape = SHAPE
    wavelengths: int | None = None
    nic_rate: Rate = SHEET["nic_rate"]
    reconfiguration: Seconds = SHEET["reconfiguration"]
    control_switch_delay: Seconds = SHEET["control_switch_delay"]
    control_radix: int = SHEET["control_radix"]
    control_hidden: float = SHEET["control_hidden"]
    failed: str | None = None

    rate_parameter = "nic_rate"
    source = "ODDL sections 3, 4.B, 5.A"
    about = (
        "The switches are set once for the whole job: a node changes its partner by retuning its laser. Nodes on "
        "one background share the switch of their row, nodes in the same column one of that column. Two lines side by "
        "side are two wavelengths bonded for one partner."
    )

    def __post_init__(self) -> None:
        if len(self.shape) > MAX_DIMENSIONS:
            given, near = ("x".join(map(str, s)) for s in (self.shape, (*self.shape[:2], prod(self.shape[2:]))))
            raise FabricError(f"oddl: shape={given} has {len(self.shape)} dimensions, 1 to 3 exist; nearest: {near}")
        number = self.num_wavelengths
        if not 1 <= number <= MAX_WAVELENGTHS:
            near = str(min(max(number, 1), MAX_WAVELENGTHS))
            raise FabricError(
                f"oddl: wavelengths={number}; a switch takes 1 to {MAX_WAVELENGTHS}, nearest: wavelengths={near}"
            )
        if self.nic_rate <= 0 or self.reconfiguration < 0 or self.control_switch_delay < 0:
            raise FabricError("oddl: nic_rate must be positive; reconfiguration and control_switch_delay not negative")
        radix = self.control_radix
        if radix < 2 or radix % 2:
            near = "2" if radix < 2 else f"{radix - 1} or {radix + 1}"
            raise FabricError(f"oddl: control_radix={radix} is not an even number of at least 2; nearest: {near}")
        exposed_share("oddl", self.control_hidden)
        ports = np.repeat(self.shape, switches_per_dimension(self.shape))
        for stuck in (c for c in self.conditions if c.mode == "stuck"):  # also refuses parts that do not exist
            if not 1 <= stuck.value < ports[stuck.index]:
                raise FabricError(
                    f"oddl: failed={stuck}: a switch of {ports[stuck.index]} ports leads light 1 to {ports[stuck.index] - 1} "
                    f"ports further; nearest: stuck={min(max(stuck.value, 1), max(1, int(ports[stuck.index]) - 1))}"
                )

    @classmethod
    def parameters_at_scale(cls, num_nodes: int) -> dict[str, Any]:
        """Shape of that many nodes.

        Raises: FabricError: num_nodes is no power of two, or more than three sides of 32.
        """
        shape = shape_at_scale(num_nodes)
        if shape is None:
            largest = SHEET["longest_side"] ** MAX_DIMENSIONS
            below = min(largest, 1 << num_nodes.bit_length() - 1)
            near = f"{below} or {2 * below}" if below < largest else f"{below}"
            raise FabricError(f"oddl: {num_nodes} nodes are not a power of two up to {largest}; nearest: {near}")
        return {"shape": shape}

    @classmethod
    def example(cls) -> tuple[Fabric, str]:
        """Two rows of four nodes."""
        return cls(shape=(2, 4)), "halving_doubling"

    @cached_property
    def numbers(self) -> FabricNumbers:
        """A NIC a dimension, which bonds wavelengths for one partner; control is two exchanges through one switch of the tree.

        A group has the nodes of one coordinate of dimension 0.
        """
        wavelengths = partners_of_side(max(self.shape)) if self.wavelengths is None else self.wavelengths
        return FabricNumbers(
            num_nodes=prod(self.shape),
            num_wavelengths=wavelengths,
            ports_per_node=len(self.shape),
            lasers_per_port=wavelengths,
            rate_bits_per_s=self.nic_rate,
            reconfiguration_s=self.reconfiguration,
            shortest_control_s=2 * self.control_switch_delay * (1 - self.control_hidden),
            dimensions=self.shape,
            nodes_per_group=prod(self.shape[1:]),
        )

    def sub_machine(self, nodes: IntArray) -> Oddl | None:
        """An ODDL of the coordinates that cross in the nodes, whose lines have a switch each.

        Args: nodes: as of `Fabric.sub_machine`.
        """
        values = sub_grid(self.shape, nodes)
        if values is None:
            return None
        return replace(self, shape=tuple(map(len, values)), wavelengths=self.num_wavelengths, failed=None)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Transmitters and receivers, each tuned to one partner at a time; inputs, then outputs of the switches."""
        ports = self.num_nodes * len(self.shape)
        return (
            Resource("tx_port", ports, per_wavelength=False),
            Resource("rx_port", ports, per_wavelength=False),
            Resource("switch_port", 2 * ports, once_per_job=True),
        )

    def usage(self, circuits: Circuits) -> Iterator[Usage]:
        """Transmitter, receiver, and the switch: where the light of an input goes, and whose light an output gets."""
        tx, rx, wss = self.resources
        dimensions, ports = np.int64(len(self.shape)), self.num_nodes * len(self.shape)
        dimension = circuits.hops.astype(np.int64)
        sender, receiver = circuits.src * dimensions + dimension, circuits.dst * dimensions + dimension
        yield Usage(tx, sender)
        yield Usage(rx, receiver)
        yield Usage(wss, sender, setting=circuits.dst.astype(np.int64))
        yield Usage(wss, ports + receiver, setting=circuits.src.astype(np.int64))

    def inventory(self) -> tuple[PartKind, ...]:
        """NICs and fibres of every dimension, switches, and the control switches that nodes are attached to.

        A switch that is stuck leads the light of every input, on any wavelength, `setting` outputs further, in a circle.
        """
        netlist = self.netlist()
        return (
            PartKind("node", self.num_nodes),
            PartKind("transmitter", netlist.count("transmitter")),
            PartKind("receiver", netlist.count("receiver")),
            PartKind("input_fibre", netlist.count("fibre_up")),
            PartKind("output_fibre", netlist.count("fibre_down")),
            PartKind("switch", sum(switches_per_dimension(self.shape)), max(self.shape)),
            PartKind("control_switch", -(-self.num_nodes // (self.control_radix // 2)), weakens=False),
        )

    def parts_used(self, circuits: Circuits) -> Iterator[PartUse]:
        """NICs and fibres of both ends, the switch of their line, and the control switches that both are attached to.

        Reading: switches of the upper layers of the control network have others beside them that do the same.
        """
        yield from super().parts_used(circuits)
        sides = np.int64(len(self.shape))
        src, dst, dimension = (np.asarray(c, np.int64) for c in (circuits.src, circuits.dst, circuits.port))
        sender, receiver = src * sides + dimension, dst * sides + dimension
        yield PartUse("transmitter", sender)
        yield PartUse("receiver", receiver)
        yield PartUse("input_fibre", sender)
        yield PartUse("output_fibre", receiver)
        yield PartUse("switch", self._switch(src, dimension))
        hosts = self.control_radix // 2
        yield PartUse("control_switch", src // hosts)
        yield PartUse("control_switch", dst // hosts)

    def _switch(self, node: IntArray, dimension: IntArray) -> IntArray:
        """The switch of the line of each node in a dimension, int64 (n,).

        Args:
            node, dimension: int64 (n,) each.
        """
        first = np.concatenate([[0], np.cumsum(switches_per_dimension(self.shape))])[:-1]
        side = np.array(self.shape, np.int64)[dimension]
        stride = np.array([prod(self.shape[d + 1 :]) for d in range(len(self.shape))], np.int64)[dimension]
        switch: IntArray = first[dimension] + node // (stride * side) * stride + node % stride
        return switch

    def part_faults(self, circuits: Circuits) -> Iterator[Fault]:
        """Circuits that need a dead part, or another setting of a stuck switch."""
        yield from super().part_faults(circuits)
        setting = {c.index: c.value for c in self.conditions if c.mode == "stuck"}
        if not setting:
            return
        of_switch = np.full(sum(switches_per_dimension(self.shape)), -1)
        of_switch[list(setting)] = list(setting.values())
        src, dst, dimension = (np.asarray(c, np.int64) for c in (circuits.src, circuits.dst, circuits.port))
        at, to = (coordinate(self.shape, end, dimension) for end in (src, dst))
        needed = (to - at) % np.array(self.shape, np.int64)[dimension]
        stuck_at = of_switch[self._switch(src, dimension)]
        yield Fault(
            "part_failed", np.flatnonzero((stuck_at >= 0) & (stuck_at != needed)), "a stuck switch leads elsewhere"
        )

    def options(self, src: IntArray, dst: IntArray) -> Options:
        """All wavelengths of the one dimension in which the two nodes differ, bonded; none where they differ in more."""
        dimension = dimension_between(self.shape, np.asarray(src, np.int64), np.asarray(dst, np.int64))
        row = np.flatnonzero(dimension >= 0)
        port = dimension[row]
        bonded = Circuits.of(
            row, np.asarray(src)[row], np.asarray(dst)[row], port, 0, self.num_wavelengths, port[:, None]
        )
        return options_of_pairs(bonded)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """Laser and receiver of every NIC; inputs of the switches, set once a job."""
        nics = self.num_nodes * len(self.shape)
        return (
            Device("laser", nics, self.reconfiguration),
            Device("receiver", nics, self.reconfiguration),
            Device("wss", nics * self.num_wavelengths, once_per_job=True),
        )

    def settings(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Laser: first wavelength and number of them; receiver: source of its clock; switch: output of each wavelength."""
        dimensions = np.int64(len(self.shape))
        dimension = circuits.hops.astype(np.int64)
        sender, receiver = circuits.src * dimensions + dimension, circuits.dst * dimensions + dimension
        tuned = circuits.wavelength_lo * np.int64(self.num_wavelengths + 1) + circuits.wavelength_n
        yield SettingUse("laser", sender, tuned)
        yield SettingUse("receiver", receiver, circuits.src.astype(np.int64))
        circuit, wavelength = circuits.each_wavelength()
        switched = sender[circuit] * self.num_wavelengths + wavelength
        yield SettingUse("wss", switched, circuits.dst[circuit].astype(np.int64), circuit)

    @cached_property
    def _switches(self) -> tuple[Switches, ...]:
        return switches_of(self.shape, map(modules_passed, self.shape), PASSIVE_PORTS)

    def netlist(self) -> Netlist:
        """NICs, switches with the modules that they are built of, amplifiers."""
        return oddl_netlist(self._switches, self.num_nodes, self.num_wavelengths, self.nic_rate)

    def states(self, circuits: Circuits) -> Iterator[SettingUse]:
        """Laser and receiver of the NICs; inputs and outputs of the modules that light passes."""
        yield from oddl_states(self._switches, self.settings(circuits), self.num_wavelengths)

    def ends(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """NIC of the sender, photodiode of the receiver's NIC and the wavelength."""
        return lanes_at_ends(circuits, len(self.shape), self.num_wavelengths, circuits.hops.astype(np.int64))

    def faults(self, circuits: Circuits) -> Iterator[Fault]:
        """NICs and switches of another dimension than the one that differs, and wavelengths apart."""
        bad_path = circuits.num_hops() != 1
        yield Fault("path_broken", np.flatnonzero(bad_path), "one hop, the dimension of the switch")
        if bad_path.any():
            return
        dimension = dimension_between(self.shape, circuits.src, circuits.dst)
        wrong = (dimension < 0) | (circuits.hops != dimension) | (circuits.port != dimension)
        yield Fault("path_broken", np.flatnonzero(wrong), "NIC and switch of the one dimension that differs")
        apart = (circuits.wavelength_n > 1) & (circuits.wavelength_step != 1)
        yield Fault("wavelength_unheard", np.flatnonzero(apart), "neighbouring wavelengths")

    @property
    def links_all(self) -> bool:
        """Nodes of one line are linked."""
        return False

    def linked(self, src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        """Whether two nodes differ in one coordinate alone, and their NICs and switch work."""
        apart = dimension_between(self.shape, src, dst) >= 0
        return apart & self.joined_around(src, dst) if self.conditions else apart

    def axes(self, nodes: IntArray) -> Iterator[Axis]:
        """A dimension each, with its NIC: one partner at a time, and for each wavelength one partner a job."""
        routes, nodes = self.lasers_per_port, nodes.astype(np.int64)
        rate = routes * self.rate_bits_per_s
        for d in range(len(self.shape)):
            yield Axis(f"dimension {d}", coordinate(self.shape, nodes, np.array(d)), rate, 1, routes)

    def ring_order(self) -> IntArray:
        """Dimension by dimension; see `ring_order`."""
        return self.order_around(ring_order(self.shape))

    def control_s(self, src: IntArray, dst: IntArray) -> float:
        """Two exchanges over the control tree, for the pair that is farthest apart [s]. Source: equation 1."""
        farthest = int(control_hops(src, dst, self.control_radix).max(initial=0))
        return 2 * self.control_switch_delay * farthest * (1 - self.control_hidden)

    def hop_passages(self, floor: FloorPlan) -> Passage:
        """Fibre of each dimension: within a rack where its lines are, else through the centre."""
        lines = [(prod(self.shape[d + 1 :]), side) for d, side in enumerate(self.shape)]
        return Passage(fibre_m=np.array([floor.lines_m(self.num_nodes, *line) for line in lines]))

    def control_plane(self) -> ControlPlane:
        """An arbiter once a job, partners among themselves before every round."""
        return control_plane(
            "oddl",
            "the arbiter sets the job's ports of the switches",
            "two exchanges of messages between the control units of partners",
        )

    def cell_grid(self) -> CellGrid:
        """Its own grid; lines need not be neighbours."""
        return CellGrid(np.arange(self.num_nodes).reshape(*self.shape, 1), contiguous=False)

    @cached_property
    def light_path(self) -> LightPath:
        """A path for each dimension."""
        return _light(self.shape)

    def limits(self, values: Optics) -> tuple[Limit, ...]:
        """Margin of switches of 8 to 64 ports without an amplifier, and the amplifiers that close it."""
        return tuple(_switch_limit(ports, values) for ports in LIMIT_PORTS)

    def parts(self) -> tuple[Part, ...]:
        """Optical parts, and the switches of the control network.

        Reading: the control network is a folded Clos of 2 l - 1 switch ports a node and layer, l the layers that hold the
            nodes.
        """
        radix, layers = self.control_radix, 1
        while radix * (radix // 2) ** (layers - 1) < self.num_nodes and radix > 2:
            layers += 1
        switches = -(-self.num_nodes * (2 * layers - 1) // radix)
        return *super().parts(), Part("control_switch", switches, ports=radix)

    def coordinates(self, node: int) -> str:
        """Coordinates on the grid."""
        return str(tuple(int(c) for c in np.unravel_index(node, self.shape)))

    def place_name(self, resource: Resource, index: int) -> str:
        """An input or output of a switch."""
        sides = len(self.shape)
        half, port = divmod(index, self.num_nodes * sides)
        node, side = divmod(port, sides)
        return f"{'output' if half else 'input'} for {self.node_name(node)} of its switch of dimension {side}"


# --- light --------------------------------------------------------------------------------------------------------------

_ELEMENTS = ("fibre", "wss8", "wss16", "wss32", "edfa")


def modules_passed(ports: int) -> tuple[int, int]:
    """Ports of a module, and modules that light passes in a switch of that many ports.

    >>> [modules_passed(ports) for ports in (2, 8, 16, 20, 64, 256, 2048)]
    [(8, 1), (8, 1), (16, 1), (32, 1), (8, 3), (16, 3), (32, 5)]
    """
    sizes = optics_of("oddl").geometry["module_ports"]
    for most in (1, 3):
        for size in sizes:
            if clos_stages(ports, size) <= most:
                return size, clos_stages(ports, size)
    return sizes[-1], clos_stages(ports, sizes[-1])


def _light(shape: tuple[int, ...]) -> LightPath:
    """A path for each dimension. Args: shape: ports of the switches of each dimension."""
    passed = pieces_passed(switches_of(shape, map(modules_passed, shape), PASSIVE_PORTS), prod(shape))
    longest = np.array([[pieces[kind] for kind in _ELEMENTS] for pieces in passed], np.float64)

    def counts(circuits: Circuits) -> Counts:
        return longest[circuits.hops[circuits.hop_offsets[:-1]]]

    shares = np.array(shape) - 1.0
    typical = shares @ longest / shares.sum() if shares.any() else longest[0]
    names = tuple(f"dimension {dimension}, {ports} port{'s' * (ports > 1)}" for dimension, ports in enumerate(shape))
    elements = tuple(Element(kind, amplifies=kind == "edfa") for kind in _ELEMENTS)
    return LightPath(optics_of("oddl"), elements, counts, longest, names, typical)


def _switch_limit(ports: int, values: Optics) -> Limit:
    """Margin of one switch without an amplifier."""
    light, name = _light((ports,)), f"margin_{ports}_ports_db"
    size, modules = modules_passed(ports)
    if values.missing([f"wss{size}.loss"]):
        return Limit(name, None, f"{ports} ports: no value for wss{size}.loss")
    chain = chain_of(light, values)
    losses = (light.extremes[0] * chain.loss_db)[:-1]  # all but the amplifier
    margin = chain.launch_dbm - float(losses.sum()) - chain.sensitivity_dbm
    text = f"{ports} ports ({modules} x wss{size}): margin {margin:+.1f} dB without amplifier"
    gain, most = float(chain.gain_db[-1]), float(chain.most_dbm[-1])
    if margin < -ROUNDING_DB and gain:
        try:
            places = amplifier_places(chain.launch_dbm, losses, gain, chain.sensitivity_dbm, most_dbm=most)
            text += f", closes with {len(places)} of {gain:g} dB"
        except ParameterError:
            text += f", and no number of amplifiers of {gain:g} dB closes it"
    elif margin < -ROUNDING_DB:
        text += ": an amplifier is needed"
    return Limit(name, margin, text)
