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

__all__ = ["terarack_ends", "terarack_netlist"]

SOURCE = "WRHT section 3.2, figure 2"


def terarack_netlist(nodes: int, ports: int, wavelengths: int) -> Netlist:
    """Elements of all nodes and directions.

    Args:
        nodes: on the ring [count].
        ports: of a node: two directions a ring [count].
        wavelengths: of a fibre [count].
    """
    sides, w = nodes * ports, wavelengths

    def side(element: int) -> str:
        node, port = divmod(element, ports)
        return f"node {node} port {port}"

    def diode(element: int) -> str:
        return f"{side(element // w)} wavelength {element % w}"

    def node_of(device: IntArray) -> IntArray:
        return device // ports

    groups = (
        ElementGroup(
            "transmitter", "emitter", sides, 0, 1, per_wavelength=True, loss={"modulator": 1},
            bill=BillLine("comb_transceiver", 1, w), place=side, node_of=node_of, source=SOURCE,
        ),
        ElementGroup(
            "add", "ringbank", sides, 2, 2, per_wavelength=True, place=side, node_of=node_of, device="modulator",
            source=SOURCE,
        ),
        ElementGroup("fibre", "fibre", sides, bill=BillLine("fibre"), place=side, source=SOURCE),
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
