r"""Elements of TeraRack nodes on a ring, a torus or a mesh.

::

    node i, one direction:   ==fibre==> [drop bank] ----> [add bank] ==fibre==> node i + 1
                                             |                 ^
                                             v                 |
                                           demux          comb laser, w modulators
                                        w photodiodes

A bank has a micro-ring for every wavelength; a ring that is on swaps its wavelength between the fibre and the other bus. Light
that comes in where the node adds the same wavelength is lost.

Source: WRHT section 3.2, figure 2; on a torus or mesh the same node has two more directions. Reading: the loss of an interface
is that of one drop bank; adding costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = [
    "Segments",
    "fibre_of_segment",
    "ring_fibre_name",
    "ring_segments",
    "terarack_netlist",
    "terarack_states",
]

SOURCE = "WRHT section 3.2, figure 2"


@dataclass(frozen=True, slots=True)
class Segments:
    """The fibres between nodes; side node x ports + port is what a node has in one direction.

    Args:
        count: fibres [count].
        onward: returns the side that the fibre of each side leads to, -1 of one without a fibre, int64 (sides,).
        name: a fibre in words; fibres are numbered in the order of their sides.
        ways: directions of a path: 2 on rings, 4 on a torus or mesh [count].
    """

    count: int
    onward: Callable[[], IntArray]
    name: Callable[[int], str]
    ways: int


def ring_segments(nodes: int, rings: int) -> Segments:
    """Segments of double rings.

    Args:
        nodes: on a ring [count].
        rings: double rings [count].
    """
    ports = 2 * rings

    def onward() -> IntArray:
        node, port = np.divmod(np.arange(nodes * ports), ports)
        segments: IntArray = (node + 1 - 2 * (port % 2)) % nodes * ports + port
        return segments

    def name(side: int) -> str:
        node, port = divmod(side, ports)
        ring, way = divmod(port, 2)
        return ring_fibre_name(nodes, rings, (2 * ring + way) * nodes + (node - way) % nodes)

    return Segments(nodes * ports, onward, name, 2)


def terarack_netlist(
    name: str, sides: int, ports: int, wavelengths: int, wavelength_rate: float, segments: Segments
) -> Netlist:
    """Elements of all nodes and directions.

    Args:
        name: of the fabric.
        sides: nodes x ports [count].
        ports: of a node, one a direction [count].
        wavelengths: of a fibre [count].
        wavelength_rate: of one wavelength [bit/s].
        segments: fibres between the nodes.
    """
    w = wavelengths

    def side(element: int) -> str:
        node, port = divmod(element, ports)
        return f"node {node} port {port}"

    def diode(element: int) -> str:
        return f"{side(element // w)} wavelength {element % w}"

    def node_of(device: IntArray) -> IntArray:
        return device // ports

    def hop_of(fibre: IntArray) -> IntArray:
        onward = segments.onward()
        near = np.flatnonzero(onward >= 0)[fibre]
        way = near % ports % segments.ways  # hops of each way have the number of the node that is first on even ways
        hops: IntArray = way * (sides // ports) + np.where(way % 2, onward[near], near) // ports
        return hops

    groups = (
        ElementGroup(
            "transmitter", "emitter", sides, 0, 1, per_wavelength=True, loss={"modulator": 1},
            bill=BillLine("comb_transceiver", 1, w, w * wavelength_rate), place=side, node_of=node_of, source=SOURCE,
        ),
        ElementGroup(
            "add", "ringbank", sides, 2, 2, per_wavelength=True, place=side, node_of=node_of, device="modulator",
            source=SOURCE,
        ),
        ElementGroup(
            "fibre", "fibre", segments.count, bill=BillLine("fibre"), place=segments.name, hops=hop_of, source=SOURCE
        ),
        ElementGroup(
            "drop", "ringbank", sides, 2, 2, per_wavelength=True, loss={"interface": 1}, place=side, node_of=node_of,
            device="ring", source=SOURCE,
        ),
        ElementGroup("demux", "demux", sides, 1, w, place=side, source=SOURCE),
        ElementGroup(
            "photodiode", "photodiode", sides * w, 1, 0, place=diode, node_of=lambda device: device // (ports * w),
            source=SOURCE,
        ),
    )  # fmt: skip

    def bundles() -> Iterator[Bundle]:
        each, onward = np.arange(sides), segments.onward()
        linked = np.flatnonzero(onward >= 0)
        fibre = np.arange(len(linked))
        yield Bundle("transmitter", each, "add", 2 * each + 1)
        yield Bundle("add", 2 * linked, "fibre", fibre)
        yield Bundle("fibre", fibre, "drop", 2 * onward[linked])
        yield Bundle("drop", 2 * each, "add", 2 * each)
        yield Bundle("drop", 2 * each + 1, "demux", each)
        diodes = np.arange(sides * w)
        yield Bundle("demux", diodes, "photodiode", diodes)

    return Netlist(name, groups, w, bundles, "transmitter")


def terarack_states(uses: Iterable[SettingUse], wavelengths: int) -> Iterator[SettingUse]:
    """Rings that add at the sender, those that drop at the receiver and are off at the nodes between.

    Args:
        uses: settings, as `ring_settings` yields them.
        wavelengths: of a fibre [count].
    """
    for use in uses:
        number, wavelength = np.divmod(use.index, wavelengths)
        group = "add" if use.kind == "modulator" else "drop"
        yield SettingUse(group, number, use.setting, use.circuit, within=wavelength)


def ring_fibre_name(nodes: int, rings: int, index: int) -> str:
    """A segment of a ring by its ends; clockwise segments come first.

    Args:
        nodes: on the ring [count].
        rings: double rings [count].
        index: of the segment.

    >>> ring_fibre_name(4, 1, 3), ring_fibre_name(4, 2, 12)
    ('fibre from node 3 to node 0 (clockwise)', 'fibre from node 1 to node 0 (ring 1, counter-clockwise)')
    """
    ring, rest = divmod(index, 2 * nodes)
    way, near = divmod(rest, nodes)
    begin, end = (near + way) % nodes, (near + 1 - way) % nodes
    which = f"ring {ring}, " if rings > 1 else ""
    return f"fibre from node {begin} to node {end} ({which}{'counter-' if way else ''}clockwise)"


def fibre_of_segment(nodes: int, rings: int, index: int) -> int:
    """Element of the group of fibres that is a segment of a ring.

    Args: as `ring_fibre_name`.

    >>> fibre_of_segment(4, 1, 3), fibre_of_segment(4, 2, 12)
    (6, 7)
    """
    ring, rest = divmod(index, 2 * nodes)
    way, near = divmod(rest, nodes)
    return (near + way) % nodes * 2 * rings + 2 * ring + way
