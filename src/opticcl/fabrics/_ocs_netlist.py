r"""Elements of nodes on optical circuit switches.

::

    node i   transmitter --> own ------> joined ==fibre==> input i  [ switch ]  output j ==fibre==> interface of node j
             interface ----> forwarded -/                                                            |--> receiver
                                                                                                     `--> forwarded

A wavelength of this netlist is a channel: the circuits of a round are numbered, and data that share a link are distinguished by
the number of their circuit. The interface of a node hands a channel to its receiver, or sends it on by the port of the plane
that it is set to. It receives the light and sends it again, which is followed as if light passed.

Source: the model of Harvest (arXiv 2602.09188) and arXiv 2602.10468. Reading: a switch has a mirror for each input and one for
each output, as those of 3-D MEMS have, and light passes where both face each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.ir.netlist import BillLine, Bundle, ElementGroup, Netlist

__all__ = ["MOST_CHANNELS", "ocs_netlist"]

MOST_CHANNELS = limit("ocs_netlist.MOST_CHANNELS")

SOURCE = "arXiv 2602.09188, 2602.10468"


def ocs_netlist(nodes: int, planes: int, port_rate: float, keeps_plane: bool) -> Netlist:
    """Elements of all nodes and switches; port p of node i is element i planes + p.

    Args:
        nodes: of the machine, also the ports of a switch [count].
        planes: switches [count].
        port_rate: of a port [bit/s].
        keeps_plane: whether an interface passes light on by the plane on which it came alone.
    """
    ports = nodes * planes
    each = np.arange(ports)
    node, plane = np.divmod(each, planes)

    def port(element: int) -> str:
        return f"node {element // planes} plane {element % planes}"

    def node_of(device: IntArray) -> IntArray:
        return device // planes

    def hop(element: IntArray) -> IntArray:
        return element % planes * nodes + element // planes

    groups = (
        ElementGroup(
            "transmitter", "emitter", ports, 0, 1, per_wavelength=True,
            bill=BillLine("transceiver", rate_bits_per_s=port_rate), place=port, node_of=node_of, source=SOURCE,
        ),
        ElementGroup("own", "waveguide", ports, hops=hop, place=port, source=SOURCE),
        ElementGroup("forwarded", "waveguide", ports, hops=lambda element: hop(element) + ports, place=port, source=SOURCE),
        ElementGroup("joined", "mux", ports, 2, 1, place=port, source=SOURCE),
        ElementGroup("fibre_up", "fibre", ports, loss={"fibre": 1}, bill=BillLine("fibre"), place=port, source=SOURCE),
        ElementGroup(
            "switch", "matrix", planes, nodes, nodes, parameters={"selects": np.ones_like}, device="input",
            loss={"circuit_switch": 1}, bill=BillLine("circuit_switch", 1, nodes), place=lambda element: f"plane {element}",
            source=SOURCE,
        ),
        ElementGroup("fibre_down", "fibre", ports, loss={"fibre": 1}, bill=BillLine("fibre"), place=port, source=SOURCE),
        ElementGroup(
            "interface", "relay", nodes, planes, 2 * planes, parameters={"keeps_plane": np.ones_like} if keeps_plane else {},
            per_wavelength=True, place=lambda element: f"node {element}", node_of=np.array, source=SOURCE,
        ),
        ElementGroup(
            "receiver", "photodiode", ports, 1, 0, per_wavelength=True, place=port, node_of=node_of, source=SOURCE
        ),
    )  # fmt: skip

    def bundles() -> Iterator[Bundle]:
        yield Bundle("transmitter", each, "own", each)
        yield Bundle("own", each, "joined", 2 * each)
        yield Bundle("forwarded", each, "joined", 2 * each + 1)
        yield Bundle("joined", each, "fibre_up", each)
        yield Bundle("fibre_up", each, "switch", plane * nodes + node)
        yield Bundle("switch", plane * nodes + node, "fibre_down", each)
        yield Bundle("fibre_down", each, "interface", each)
        yield Bundle("interface", 2 * planes * node + plane, "receiver", each)
        yield Bundle("interface", 2 * planes * node + planes + plane, "forwarded", each)

    return Netlist("ocs", groups, MOST_CHANNELS, bundles, "transmitter")
