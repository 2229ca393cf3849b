"""Elements of RAMP, one by one, from the drawing: transceivers with their gates, and the three kinds of subnet."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from tests.fabrics.walks import Port, links_of, pairs

from opticcl.fabrics import fabric
from opticcl.fabrics._ramp_netlist import Filters, RampShape, ramp_netlist

RATE = 300e9
STAGES = 2.0
SHAPES = [(2, 2, 2, 1), (3, 2, 3, 1), (2, 1, 4, 2), (1, 1, 2, 3)]
"""Groups, racks, devices and transceivers of a group."""

KINDS: list[tuple[str, Filters]] = [
    ("broadcast", "fixed"),
    ("broadcast", "none"),
    ("route_broadcast", "tunable"),
    ("route_switch", "none"),
    ("route_switch", "tunable"),
]


class Drawing:
    """What stands where, in words.

    Args:
        shape: groups, racks, devices and transceivers of a group.
        subnet: kind of subnet.
    """

    def __init__(self, shape: tuple[int, int, int, int], subnet: str) -> None:
        x, racks, devices, b = shape
        self.members = list(product(range(x), range(racks), range(devices)))
        self.ports, self.groups, self.racks, self.devices = range(x * b), range(x), range(racks), range(devices)
        self.subnets = list(product(range(x), range(x), self.ports))
        self.subnet = subnet

    def node(self, g: int, j: int, device: int) -> int:
        """Number of a node."""
        return self.members.index((g, j, device))

    def core_in(self, g: int, j: int, device: int, to: int, t: int) -> Port:
        """Where a fibre from a node enters its subnet."""
        if self.subnet == "broadcast":
            return (
                "star",
                f"star coupler {between(g, to, t)}",
                list(product(self.racks, self.devices)).index((j, device)),
            )
        return "awgr", f"router {between(g, to, t, rack=j)}", device

    def core_out(self, g: int, to: int, t: int, j: int, device: int) -> Port:
        """Where a fibre to a node leaves its subnet."""
        if self.subnet == "broadcast":
            return (
                "star",
                f"star coupler {between(g, to, t)}",
                list(product(self.racks, self.devices)).index((j, device)),
            )
        if self.subnet == "route_broadcast":
            return "star", f"star coupler {between(g, to, t, device=device)}", j
        return "core_combiner", f"crossbar {between(g, to, t, device=device)} to rack {j}", 0

    def core_links(self) -> Counter[tuple[Port, Port]]:
        """From routers to star couplers, or through the crosspoints of a crossbar."""
        found: Counter[tuple[Port, Port]] = Counter()
        if self.subnet == "broadcast":
            return found
        for (g, to, t), j, device in product(self.subnets, self.racks, self.devices):
            router = "awgr", f"router {between(g, to, t, rack=j)}", device
            behind = between(g, to, t, device=device)
            if self.subnet == "route_broadcast":
                found[router, ("star", f"star coupler {behind}", j)] += 1
                continue
            side = f"crossbar {between(g, to, t, rack=j, device=device)}"
            found[router, ("core_splitter", side, 0)] += 1
            for other in self.racks:
                point = f"{side} to rack {other}"
                found[("core_splitter", side, other), ("crossbar", point, 0)] += 1
                found[("crossbar", point, 0), ("core_combiner", f"crossbar {behind} to rack {other}", j)] += 1
        return found


def between(g: int, to: int, t: int, rack: int | None = None, device: int | None = None) -> str:
    """A subnet, or a part of it.

    Args:
        g, to: communication groups.
        t: transceiver.
        rack: of the senders; None: all.
        device: of the receivers; None: all.
    """
    begin = f"group {g}" if rack is None else f"group {g} rack {rack}"
    return f"{begin} -> group {to} (port {t}{'' if device is None else f', outputs to devices {device}'})"


@pytest.mark.parametrize(("subnet", "filters"), KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_elements_and_links(shape: tuple[int, int, int, int], subnet: str, filters: Filters) -> None:
    """A gate and a fibre for each transceiver and group, on both sides of a subnet for each pair of groups."""
    x, racks, devices, b = shape
    drawn = Drawing(shape, subnet)
    net = ramp_netlist(RampShape(x, racks, devices, b, subnet, filters, STAGES, RATE))
    due = drawn.core_links()
    for (g, j, device), t in product(drawn.members, drawn.ports):
        at = f"node {drawn.node(g, j, device)} port {t}"
        due[("laser", at, 0), ("modulator", at, 0)] += 1
        due[("modulator", at, 0), ("splitter", at, 0)] += 1
        due[("combiner", at, 0), ("photodiode", at, 0)] += 1
        for other in drawn.groups:
            fan = f"{at} group {other}"
            due[("splitter", at, other), ("tx_gate", fan, 0)] += 1
            due[("tx_gate", fan, 0), ("fibre_up", fan, 0)] += 1
            due[("fibre_up", fan, 0), drawn.core_in(g, j, device, other, t)] += 1
            due[drawn.core_out(other, g, t, j, device), ("fibre_down", fan, 0)] += 1
            behind = "fibre_down"
            if filters != "none":
                due[("fibre_down", fan, 0), ("filter", fan, 0)] += 1
                behind = "filter"
            due[(behind, fan, 0), ("rx_gate", fan, 0)] += 1
            due[("rx_gate", fan, 0), ("combiner", at, other)] += 1
    assert links_of(net) == due
    ports = [f"node {node} port {t}" for node in range(len(drawn.members)) for t in drawn.ports]
    fans = [f"{at} group {other}" for at in ports for other in drawn.groups]
    ribbon = ("fibre_ribbon", devices, devices, 0)
    tunable = ("tunable_filter", 1, 0, 0) if filters == "tunable" else None
    assert [
        (g.name, g.kind, g.n_in, g.n_out, dict(g.loss), g.bill, [g.place(e) for e in range(g.count)])
        for g in net.groups
    ] == [
        ("laser", "laser", 0, 1, {}, ("tunable_transceiver", 1, 0, RATE), ports),
        ("modulator", "modulator", 1, 1, {"modulator": 1}, None, ports),
        ("splitter", "splitter", 1, x, {"splitter": 1}, None, ports),
        ("tx_gate", "gate", 1, 1, {"soa_gate": 1}, None, fans),
        ("fibre_up", "fibre", 1, 1, {"fibre": 1}, ribbon, fans),
        *core_of(drawn),
        ("fibre_down", "fibre", 1, 1, {"fibre": 1}, ribbon, fans),
        *([("filter", "filter", 1, 1, {"filter": 1}, tunable, fans)] if filters != "none" else []),
        ("rx_gate", "gate", 1, 1, {"soa_gate": 1}, None, fans),
        ("combiner", "combiner", x, 1, {"combiner": 1}, None, ports),
        ("photodiode", "photodiode", 1, 0, {}, None, ports),
    ]
    assert not any(g.per_wavelength or g.once_per_job or g.moved for g in net.groups)
    assert (net.transmitter, net.num_wavelengths) == ("modulator", devices)


def core_of(drawn: Drawing) -> list[tuple[object, ...]]:
    """Groups of elements of the subnets."""
    racks, devices = len(drawn.racks), len(drawn.devices)
    routers = [f"router {between(*one, rack=j)}" for one in drawn.subnets for j in drawn.racks]
    behind = [between(*one, device=device) for one in drawn.subnets for device in drawn.devices]
    awgr = ("awgr", "awgr", devices, devices, {"awgr": 1}, ("awgr", 1, devices, 0), routers)
    if drawn.subnet == "broadcast":
        stars, ways = [f"star coupler {between(*one)}" for one in drawn.subnets], racks * devices
        return [("star", "splitter", ways, ways, {"star": STAGES}, ("star_coupler", 1, ways, 0), stars)]
    if drawn.subnet == "route_broadcast":
        stars = [f"star coupler {one}" for one in behind]
        return [awgr, ("star", "splitter", racks, racks, {"star": STAGES}, ("star_coupler", 1, racks, 0), stars)]
    sides = [
        f"crossbar {between(*one, rack=j, device=device)}"
        for one in drawn.subnets
        for device in drawn.devices
        for j in drawn.racks
    ]
    points = [f"{side} to rack {j}" for side in sides for j in drawn.racks]
    outputs = [f"crossbar {one} to rack {j}" for one in behind for j in drawn.racks]
    crossbar = ("soa_crossbar", racks, racks, 0)
    return [
        awgr,
        ("core_splitter", "splitter", 1, racks, {"core_splitter": 1}, None, sides),
        ("crossbar", "gate", 1, 1, {"soa_gate": 1}, None, points),
        ("core_combiner", "combiner", racks, 1, {"core_combiner": 1}, crossbar, outputs),
    ]


@pytest.mark.parametrize("filters", ["fixed", "tunable"])
@pytest.mark.parametrize("shape", SHAPES)
def test_transceivers_of_a_group_are_one_device(shape: tuple[int, int, int, int], filters: Filters) -> None:
    """They share laser, filter and, for each group, the gates; a fixed filter passes the wavelength of its device."""
    x, racks, devices, b = shape
    drawn = Drawing(shape, "broadcast")
    net = ramp_netlist(RampShape(x, racks, devices, b, "broadcast", filters, STAGES, RATE))
    for name in ("laser", "tx_gate", "filter", "rx_gate"):
        group = net.groups[net.position[name]]
        of_device: dict[tuple[int, ...], set[int]] = {}
        for element, device in enumerate(group.device_of(np.arange(group.count)).tolist()):
            node, port, *other = (int(word) for word in group.place(element).split()[1::2])
            key = node, port // b, *(other if name.endswith("gate") else ())
            of_device.setdefault(key, set()).add(device)
        assert [of_device[key] for key in sorted(of_device)] == [{device} for device in range(group.num_devices)]
        assert group.node_of is not None
        nodes = group.node_of(np.arange(group.num_devices)).tolist()
        assert nodes == [key[0] for key in sorted(of_device)]
    group = net.groups[net.position["filter"]]
    if filters == "tunable":
        assert not group.parameters
    else:
        passed = group.parameters["fixed"](np.arange(group.count)).tolist()
        assert passed == [drawn.members[int(group.place(e).split()[1])][2] for e in range(group.count)]


@pytest.mark.parametrize(("subnet", "filters"), KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_states_of_circuits(shape: tuple[int, int, int, int], subnet: str, filters: Filters) -> None:
    """Laser and tunable filter of their transceiver groups, the gates towards each other, a crosspoint from rack to rack."""
    x, racks, devices, b = shape
    sizes = {"groups": x, "racks": racks, "wavelengths": devices, "transceivers_per_group": b}
    where = fabric("ramp", **sizes, subnet=subnet, receiver=filters)
    net, members = where.netlist(), Drawing(shape, subnet).members
    assert net is not None
    lit = where.options(*pairs(where.num_nodes)).circuits
    due: set[tuple[object, ...]] = set()
    for row, (a, c, t, light) in enumerate(zip(lit.src, lit.dst, lit.port, lit.wavelength_lo, strict=True)):
        (g, j, _), (to, k, device) = members[a], members[c]
        due |= {("laser", (a, t // b), light, row)}
        due |= {("tx_gate", (a, t // b, to), 1, row), ("rx_gate", (c, t // b, g), 1, row)}
        if filters == "tunable":
            due |= {("filter", (c, t // b), light, row)}
        if subnet == "route_switch":
            due |= {("crossbar", f"crossbar {between(g, to, t, rack=j, device=device)} to rack {k}", 1, row)}
    transceivers = list(product(range(where.num_nodes), range(x)))
    gates = list(product(range(where.num_nodes), range(x), range(x)))
    words = {"laser": transceivers, "filter": transceivers, "tx_gate": gates, "rx_gate": gates}
    found = [
        (use.kind, words[use.kind][n] if use.kind in words else net.place(use.kind, n), value, row)
        for use in where.states(lit)
        for row, (n, value) in enumerate(zip(use.index.tolist(), use.setting.tolist(), strict=True))
    ]
    assert len(found) == len(due)
    assert set(found) == due
