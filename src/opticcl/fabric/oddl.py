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
a node retunes its laser, and the switch stays as it is. Readiness is told over an electrical control network, a fat
tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.data import datasheet
from opticcl.errors import FabricError
from opticcl.fabric import register_fabric
from opticcl.fabric._control import shown_share
from opticcl.fabric._light_oddl import PASSIVE_PORTS, modules_passed, oddl_light
from opticcl.ir import Circuits, Fabric, Fault, IntArray, Part, Resource, Usage
from opticcl.physics.clos import clos_modules
from opticcl.units import Rate, Seconds, Shape
from opticcl.units import shape as parse_shape

__all__ = ["control_hops", "coordinate", "dimension_between", "oddl", "partners_of_side", "switches_per_dimension"]

SHEET = datasheet("oddl")
SHAPE = parse_shape(SHEET["shape"])
MAX_DIMENSIONS = 3
MAX_WAVELENGTHS: int = round(SHEET["band"] / SHEET["channel_spacing"])


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


def at_scale(num_nodes: int) -> dict[str, Any]:
    """Parameters for that many nodes.

    Raises: FabricError: num_nodes is no power of two, or more than three sides of 32.
    """
    shape = shape_at_scale(num_nodes)
    if shape is None:
        largest = SHEET["longest_side"] ** MAX_DIMENSIONS
        below = min(largest, 1 << num_nodes.bit_length() - 1)
        near = f"{below} or {2 * below}" if below < largest else f"{below}"
        raise FabricError(f"oddl: {num_nodes} nodes are no power of two up to {largest}; nearest: {near}")
    return {"shape": shape}


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
    """Coordinate of each node in its given dimension; arrays that broadcast."""
    strides = np.array([prod(shape[d + 1 :]) for d in range(len(shape))], np.int64)
    return node // strides[dimension] % np.array(shape, np.int64)[dimension]


def dimension_between(shape: tuple[int, ...], src: IntArray, dst: IntArray) -> IntArray:
    """The one dimension in which two nodes differ, -1 if they differ in none or in several; arrays that broadcast."""
    dimension = np.full(np.broadcast(src, dst).shape, -1, np.int32)
    count = np.zeros(dimension.shape, np.int32)
    for d in range(len(shape)):
        differ = coordinate(shape, src, np.array(d)) != coordinate(shape, dst, np.array(d))
        dimension[differ] = d
        count += differ
    return np.where(count == 1, dimension, -1)


def control_hops(src: IntArray, dst: IntArray, radix: int) -> IntArray:
    """Switches of the control network on the way between two nodes: 1, 3 or 5; arrays that broadcast.

    Source: section 4.B, a fat tree of three layers.
    """
    hosts_per_edge = radix // 2
    same_edge, same_pod = (src // hosts == dst // hosts for hosts in (hosts_per_edge, hosts_per_edge**2))
    return np.where(same_edge, 1, np.where(same_pod, 3, 5))


def ring_order(shape: tuple[int, ...]) -> IntArray:
    """Nodes of a grid in a closed order from 0 in which each differs from the next in one coordinate, int64 (nodes,).

    Dimension by dimension: a snake along the path so far over all values of the new coordinate but 0, and home along 0.
    It closes for every shape, since a switch joins any two values.
    """
    path = np.zeros(1, np.int64)
    for side in shape:
        if side > 1:
            snake = path[:, None] * side + np.arange(1, side)
            snake[1::2] = snake[1::2, ::-1]
            path = np.concatenate([path[:1] * side, snake.ravel(), path[:0:-1] * side])
    return path


@register_fabric("oddl", at_scale, rate="nic_rate", own="halving_doubling")
def oddl(
    *,
    shape: Shape = SHAPE,
    wavelengths: int | None = None,
    nic_rate: Rate = SHEET["nic_rate"],
    reconfiguration: Seconds = SHEET["reconfiguration"],
    control_switch_delay: Seconds = SHEET["control_switch_delay"],
    control_radix: int = SHEET["control_radix"],
    control_hidden: float = SHEET["control_hidden"],
) -> Fabric:
    """ODDL on a grid of one to three dimensions.

    Args:
        shape: nodes along each dimension, also the ports of its switches.
        wavelengths: that a NIC can tune to [count]; None: ceil(log2(longest side)), one for each partner.
        nic_rate: of a NIC on one wavelength [bit/s]; bonded wavelengths add up.
        reconfiguration: from one partner to the next: laser, clock and data recovery [s].
        control_switch_delay: of one switch of the control network [s].
        control_radix: ports of a switch of the control network, an even number [count].
        control_hidden: share of the control messages' time that hides behind computing (adding up, host transfers), 0 to 1.
    Raises: FabricError: no such shape.
    Source: ODDL sections 3, 4.B, 5.A.
    Reading: the text leaves open what a NIC sends at once. Section 3.A gives two wavelengths to a partner where a laser
        has eight and a node four partners, so we let a NIC light any neighbouring wavelengths, all of them towards one
        partner. Radix 16 in three layers ends at 1024 hosts, the message of section 4.B at 4096 nodes; the top layer is
        taken as wide as it must be, never as a fourth layer.
    """
    if len(shape) > MAX_DIMENSIONS:
        given, near = ("x".join(map(str, sides)) for sides in (shape, (*shape[:2], prod(shape[2:]))))
        raise FabricError(f"oddl: shape={given} has {len(shape)} dimensions, 1 to 3 exist; nearest: {near}")
    num_wavelengths = partners_of_side(max(shape)) if wavelengths is None else wavelengths
    if not 1 <= num_wavelengths <= MAX_WAVELENGTHS:
        near = str(min(max(num_wavelengths, 1), MAX_WAVELENGTHS))
        raise FabricError(
            f"oddl: wavelengths={num_wavelengths}; a switch takes 1 to {MAX_WAVELENGTHS}, nearest: wavelengths={near}"
        )
    if nic_rate <= 0 or reconfiguration < 0 or control_switch_delay < 0:
        raise FabricError("oddl: nic_rate must be positive; reconfiguration and control_switch_delay not negative")
    if control_radix < 2 or control_radix % 2:
        near = "2" if control_radix < 2 else f"{control_radix - 1} or {control_radix + 1}"
        raise FabricError(f"oddl: control_radix={control_radix} is no even number of at least 2; nearest: {near}")
    shown = shown_share("oddl", control_hidden)

    num_nodes, num_dimensions = prod(shape), len(shape)
    num_ports = num_nodes * num_dimensions
    tx = Resource("tx_port", num_ports, per_wavelength=False)  # tuned to one partner at a time
    rx = Resource("rx_port", num_ports, per_wavelength=False)
    wss = Resource("switch_port", 2 * num_ports, once_per_job=True)  # all inputs, then all outputs

    def usage(circuits: Circuits) -> Iterator[Usage]:
        """Transmitter, receiver, and the switch: where the light of an input goes, and whose light an output gets."""
        dimension = circuits.hops.astype(np.int64)
        sender = circuits.src * np.int64(num_dimensions) + dimension
        receiver = circuits.dst * np.int64(num_dimensions) + dimension
        yield Usage(tx, sender)
        yield Usage(rx, receiver)
        yield Usage(wss, sender, setting=circuits.dst.astype(np.int64))
        yield Usage(wss, num_ports + receiver, setting=circuits.src.astype(np.int64))

    def faults(circuits: Circuits) -> Iterator[Fault]:
        bad_path = circuits.num_hops() != 1
        yield Fault("path_broken", np.flatnonzero(bad_path), "one hop, the dimension of the switch")
        if bad_path.any():
            return
        dimension = dimension_between(shape, circuits.src, circuits.dst)
        wrong = (dimension < 0) | (circuits.hops != dimension) | (circuits.port != dimension)
        yield Fault("path_broken", np.flatnonzero(wrong), "NIC and switch of the one dimension that differs")
        apart = (circuits.wavelength_n > 1) & (circuits.wavelength_step != 1)
        yield Fault("wavelength_unheard", np.flatnonzero(apart), "neighbouring wavelengths")

    def linked(src: IntArray, dst: IntArray) -> npt.NDArray[np.bool_]:
        return dimension_between(shape, src, dst) >= 0

    def control_s(src: IntArray, dst: IntArray) -> float:
        """Two exchanges over the control tree, for the pair that is farthest apart. Source: equation 1."""
        farthest = int(control_hops(src, dst, control_radix).max(initial=0))
        return 2 * control_switch_delay * farthest * shown

    def coordinates(node: int) -> str:
        return str(tuple(int(c) for c in np.unravel_index(node, shape)))

    return Fabric(
        name="oddl",
        num_nodes=num_nodes,
        num_wavelengths=num_wavelengths,
        ports_per_node=num_dimensions,
        lasers_per_port=num_wavelengths,
        rate_bits_per_s=nic_rate,
        reconfiguration_s=reconfiguration,
        resources=(tx, rx, wss),
        usage=usage,
        faults=faults,
        linked=linked,
        ring_order=lambda: ring_order(shape),
        control_s=control_s,
        coordinates=coordinates,
        source="ODDL sections 3, 4.B, 5.A",
        light_path=oddl_light(shape),
        parts=_parts(shape, num_wavelengths * nic_rate, control_radix),
    )


def _parts(shape: tuple[int, ...], port_rate: float, control_radix: int) -> tuple[Part, ...]:
    """What the machine is built of.

    Source: section 3.B: a switch of more ports than modules have is a Clos of them; section 3.C: a switch of 8 ports needs no
        amplifier, one of 32 does.
    Reading: the Clos is of the modules that light passes (`modules_passed`); one of unequal sides counts the ports of its
        larger side, and links between modules are inside the switch. An amplifier for each output of a switch of more than 8
        ports. The control network is a folded Clos of 2 l - 1 switch ports a node and layer, l the layers that hold the nodes.
    """
    num_ports = prod(shape) * len(shape)
    modules = Counter[int]()
    for side, count in zip(shape, switches_per_dimension(shape), strict=True):
        for sides, number in clos_modules(side, modules_passed(side)[0]).items():
            modules[max(sides)] += count * number
    amplified = sum(prod(shape) for side in shape if side > PASSIVE_PORTS)
    layers = 1
    while control_radix * (control_radix // 2) ** (layers - 1) < prod(shape) and control_radix > 2:
        layers += 1
    control = -(-prod(shape) * (2 * layers - 1) // control_radix)
    return (
        Part("tunable_transceiver", num_ports, rate_bits_per_s=port_rate),
        *(Part("wss", count, ports=ports) for ports, count in modules.items()),
        *([Part("edfa", amplified)] if amplified else []),
        Part("fibre", 2 * num_ports),
        Part("control_switch", control, ports=control_radix),
    )
