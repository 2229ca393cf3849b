"""Elements of TeraRack nodes, one by one, from the drawing: on double rings, on a torus and on a mesh."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.fabrics.test_terarack_torus import fibres
from tests.fabrics.walks import Port, links_of

from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Fabric

W = 3
RATE = 25e9
Fibre = tuple[int, int, int, str]
"""Node where light enters, node where it leaves, port of both, name."""


def on_rings(nodes: int, rings: int) -> tuple[Fabric, list[Fibre]]:
    """Port 2 r of every node leads to the next node of ring r, port 2 r + 1 to the one before."""
    where = fabric("terarack", nodes=nodes, rings=rings, wavelengths=W, wavelength_rate=RATE)
    found = []
    for node in range(nodes):
        for port in range(2 * rings):
            end, way = ((node + 1) % nodes, "") if port % 2 == 0 else ((node - 1) % nodes, "counter-")
            ring = f"ring {port // 2}, " if rings > 1 else ""
            found.append((node, end, port, f"fibre from node {node} to node {end} ({ring}{way}clockwise)"))
    return where, found


def on_grid(shape: tuple[int, int], wrap: bool) -> tuple[Fabric, list[Fibre]]:
    """Ports 0 and 1 lead along the row and back, ports 2 and 3 along the column and back."""
    where = fabric("terarack_torus", shape=shape, wrap=wrap, wavelengths=W, wavelength_rate=RATE)
    found = []
    for segment, (begin, end) in fibres(*shape, wrap).items():
        port = segment // where.num_nodes
        name = f"fibre from {where.node_name(begin)} to {where.node_name(end)} (port {port})"
        found.append((begin, end, port, name))
    return where, sorted(found, key=lambda fibre: (fibre[0], fibre[2]))


MACHINES = [
    *(on_rings(*shape) for shape in ((1, 1), (2, 1), (5, 1), (3, 2))),
    *(on_grid(shape, wrap) for shape in ((1, 4), (4, 1), (2, 3), (3, 4)) for wrap in (True, False)),
]


@pytest.mark.parametrize(("where", "joined"), MACHINES)
def test_elements_and_links(where: Fabric, joined: list[Fibre]) -> None:
    """A comb adds to its fibre behind what the filters of the same port let pass; what they take goes to photodiodes."""
    net, ports = where.netlist(), where.ports_per_node
    assert net is not None
    sides = [f"node {node} port {port}" for node in range(where.num_nodes) for port in range(ports)]
    diodes = [f"{side} wavelength {k}" for side in sides for k in range(W)]
    due: Counter[tuple[Port, Port]] = Counter()
    for side in sides:
        due[("transmitter", side, 0), ("add", side, 1)] += 1
        due[("drop", side, 0), ("add", side, 0)] += 1
        due[("drop", side, 1), ("demux", side, 0)] += 1
        for k in range(W):
            due[("demux", side, k), ("photodiode", f"{side} wavelength {k}", 0)] += 1
    for begin, end, port, name in joined:
        due[("add", f"node {begin} port {port}", 0), ("fibre", name, 0)] += 1
        due[("fibre", name, 0), ("drop", f"node {end} port {port}", 0)] += 1
    assert links_of(net) == due
    comb, fibre = ("comb_transceiver", 1, W, W * RATE), ("fibre", 1, 0, 0)
    assert [
        (g.name, g.kind, g.n_in, g.n_out, g.per_wavelength, dict(g.loss), g.device, g.bill) for g in net.groups
    ] == [
        ("transmitter", "emitter", 0, 1, True, {"modulator": 1}, "", comb),
        ("add", "ringbank", 2, 2, True, {}, "modulator", None),
        ("fibre", "fibre", 1, 1, False, {}, "", fibre),
        ("drop", "ringbank", 2, 2, True, {"interface": 1}, "ring", None),
        ("demux", "demux", 1, W, False, {}, "", None),
        ("photodiode", "photodiode", 1, 0, False, {}, "", None),
    ]
    found = {g.name: [g.place(element) for element in range(g.count)] for g in net.groups}
    names = [name for *_, name in joined]
    assert found == {"fibre": names, "photodiode": diodes} | dict.fromkeys(
        ("transmitter", "add", "drop", "demux"), sides
    )
    assert {g.name: g.node_of(np.arange(g.count)).tolist() for g in net.groups if g.node_of is not None} == {
        name: [int(place.split()[1]) for place in found[name]] for name in ("transmitter", "add", "drop", "photodiode")
    }
    assert (net.transmitter, net.num_wavelengths) == ("transmitter", W)


@pytest.mark.parametrize(("where", "joined"), MACHINES)
def test_ends_of_circuits(where: Fabric, joined: list[Fibre]) -> None:
    """The comb of the sender's port, and of the receiver's port the photodiode of each wavelength."""
    net = where.netlist()
    assert net is not None
    src, dst, port = np.array([fibre[:3] for fibre in joined]).T
    sender, receiver = where.ends(Circuits.of(np.arange(len(src)), src, dst, port, 1, 2))
    assert [net.place("transmitter", one) for one in sender.tolist()] == [
        f"node {begin} port {port}" for begin, _, port, _ in joined for _ in range(2)
    ]
    assert [net.place("photodiode", one) for one in receiver.tolist()] == [
        f"node {end} port {port} wavelength {k}" for _, end, port, _ in joined for k in (1, 2)
    ]
