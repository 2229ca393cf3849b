r"""Elements of a TeraRack ring.

::

    node i, one direction:   ==fibre==> [drop bank] ----> [add bank] ==fibre==> node i + 1
                                             |                 ^
                                             v                 |
                                           demux          comb laser, w modulators
                                        w photodiodes

A bank has a micro-ring for every wavelength; a ring that is on swaps its wavelength between the fibre and the other bus. Light
that comes in where the node adds the same wavelength is lost.

Source: WRHT section 3.2, figure 2. Reading: the loss of an interface is that of one drop bank; adding costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.fabrics._ring_settings import of_wavelengths
from opticcl.ir import Circuits, IntArray
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = ["fibre_of_segment", "ring_fibre_name", "terarack_ends", "terarack_netlist"]

SOURCE = "WRHT section 3.2, figure 2"


def terarack_netlist(nodes: int, ports: int, wavelengths: int, wavelength_rate: float) -> Netlist:
    """Elements of all nodes and directions.

    Args:
        nodes: on the ring [count].
        ports: of a node: two directions a ring [count].
        wavelengths: of a fibre [count].
        wavelength_rate: of one wavelength [bit/s].
    """
    sides, w = nodes * ports, wavelengths

    def side(element: int) -> str:
        node, port = divmod(element, ports)
        return f"node {node} port {port}"

    def diode(element: int) -> str:
        return f"{side(element // w)} wavelength {element % w}"

    def segment(element: int) -> str:
        node, port = divmod(element, ports)
        ring, way = divmod(port, 2)
        return ring_fibre_name(nodes, ports // 2, (2 * ring + way) * nodes + (node - way) % nodes)

    def node_of(device: IntArray) -> IntArray:
        return device // ports

    groups = (
        ElementGroup(
            "transmitter", "emitter", sides, 0, 1, per_wavelength=True, loss={"modulator": 1},
            bill=BillLine("comb_transceiver", 1, w, w * wavelength_rate), place=side, node_of=node_of, source=SOURCE,
        ),
        ElementGroup(
            "add", "ringbank", sides, 2, 2, per_wavelength=True, place=side, node_of=node_of, device="modulator",
            source=SOURCE,
        ),
        ElementGroup("fibre", "fibre", sides, bill=BillLine("fibre"), place=segment, source=SOURCE),
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
        each = np.arange(sides)
        node, port = np.divmod(each, ports)
        onward = (node + 1 - 2 * (port % 2)) % nodes * ports + port
        yield Bundle("transmitter", each, "add", 2 * each + 1)
        yield Bundle("add", 2 * each, "fibre", each)
        yield Bundle("fibre", each, "drop", 2 * onward)
        yield Bundle("drop", 2 * each, "add", 2 * each)
        yield Bundle("drop", 2 * each + 1, "demux", each)
        diodes = np.arange(sides * w)
        yield Bundle("demux", diodes, "photodiode", diodes)

    return Netlist("terarack", groups, w, bundles, "transmitter")


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


def terarack_ends(circuits: Circuits, ports: int, wavelengths: int) -> tuple[IntArray, IntArray]:
    """Transmitter and photodiode of every (circuit, wavelength), int64 (m,) each.

    Args:
        circuits: of a round.
        ports: of a node [count].
        wavelengths: of a fibre [count].
    """
    circuit, wavelength = of_wavelengths(circuits)
    port = circuits.port.astype(np.int64)
    sender, receiver = circuits.src * np.int64(ports) + port, circuits.dst * np.int64(ports) + port
    return sender[circuit], receiver[circuit] * wavelengths + wavelength
