"""Elements of a SiPAC, one by one, from the drawing: buses of every switch with the rings on them, in their order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from tests.fabrics.test_sipac import CHANNELS, digits_of, output_of
from tests.fabrics.walks import Port, links_of

from opticcl.fabrics import fabric
from opticcl.fabrics._sipac_netlist import sipac_netlist
from opticcl.ir import Circuits
from opticcl.ir.netlist import Netlist

W = 5
RATE = 2e11
SIDES = [(1,), (2,), (3,), (5,), (2, 3), (3, 2, 2)]


def switches_of(level: int, sides: tuple[int, ...]) -> list[list[int]]:
    """Nodes of every switch of a level, in the order of its inputs; they differ in that digit alone."""
    lines: dict[tuple[int, ...], list[int]] = {}
    for node in range(int(np.prod(sides))):
        digits = digits_of(node, sides)
        lines.setdefault(tuple(digits[:level] + digits[level + 1 :]), []).append(node)
    return sorted(lines.values())


def rings_of(i: int, r: int, channels: str) -> list[tuple[int, int]]:
    """Name and output of each ring of an input bus, in their order: a ring is called after its place."""
    if channels == "retuned":
        return [(j, j) for j in range(r) if j != i]
    return [(place, (i + 1) % r if place == i and channels == "ring" else place) for place in range(r)]


def output_bus(j: int, r: int, channels: str) -> list[tuple[int, int]]:
    """Input and name of the rings of an output bus, in their order: of two of one input the ring of the loop is first."""
    return [
        (i, name)
        for i in range(r)
        for name, output in sorted(rings_of(i, r, channels), key=lambda ring: ring[0] != i)
        if output == j
    ]


def machine(sides: tuple[int, ...], channels: str) -> Netlist:
    """Of W lines; a receiver of level l has l + 2 rings beside its own."""
    strides = np.cumprod([1, *sides[:-1]])
    return sipac_netlist(sides, strides, W, channels, np.arange(len(sides)) + 2, RATE)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_links_of_buses(sides: tuple[int, ...], channels: str) -> None:
    """From the comb to the first ring of the input bus, and from the last ring of the output bus to the photodiodes."""
    due: Counter[tuple[Port, Port]] = Counter()
    for level, r in enumerate(sides):
        for number, members in enumerate(switches_of(level, sides)):
            ring = f"level {level} switch {number} ring "
            for i, node in enumerate(members):
                at = f"node {node} port {level}"
                due[("comb", at, 0), ("modulator", at, 0)] += 1
                due[("modulator", at, 0), ("fibre_up", at, 0)] += 1
                on_input = [f"{ring}({i}, {name})" for name, _ in rings_of(i, r, channels)]
                on_output = [f"{ring}({a}, {name})" for a, name in output_bus(i, r, channels)]
                if on_input:
                    due[("fibre_up", at, 0), (f"ring{level}", on_input[0], 0)] += 1
                for port, bus in enumerate((on_input, on_output)):
                    for one, other in pairwise(bus):
                        due[(f"ring{level}", one, port), (f"ring{level}", other, port)] += 1
                if on_output:
                    due[(f"ring{level}", on_output[-1], 1), ("fibre_down", at, 0)] += 1
                due[("fibre_down", at, 0), (f"demux{level}", at, 0)] += 1
                for k in range(W):
                    due[(f"demux{level}", at, k), ("photodiode", f"{at} wavelength {k}", 0)] += 1
    assert links_of(machine(sides, channels)) == due


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_elements(sides: tuple[int, ...], channels: str) -> None:
    """Ports, losses and parts; a modulator is passed with the others of its port, a filter with those beside it."""
    net = machine(sides, channels)
    nodes, levels = int(np.prod(sides)), range(len(sides))
    ports = [f"node {node} port {level}" for node in range(nodes) for level in levels]
    diodes = [f"{port} wavelength {k}" for port in ports for k in range(W)]
    cables = {"fibre": 1, "coupler": 1}

    def rings(level: int, r: int) -> tuple[object, ...]:
        on_inputs = [(i, name) for i in range(r) for name, _ in rings_of(i, r, channels)]
        where = [f"level {level} switch {s} ring ({i}, {n})" for s in range(nodes // r) for i, n in on_inputs]
        bill = ("mrr_switch", len(on_inputs), r, 0) if on_inputs else None
        return f"ring{level}", "cross", 2, 2, False, {"ring_pass": 1}, {"ring_drop": 1}, bill, where

    assert [
        (g.name, g.kind, g.n_in, g.n_out, g.per_wavelength, dict(g.loss), g.moved, g.bill, places(net, g.name))
        for g in net.groups
    ] == [
        ("comb", "comb", 0, 1, False, {}, None, ("comb_transceiver", 1, W, RATE), ports),
        ("modulator", "modulator", 1, 1, True, {"modulator": 1, "bus_ring": W - 1, "coupler": 1}, None, None, ports),
        ("fibre_up", "fibre", 1, 1, False, cables, None, ("fibre", 1, 0, 0), ports),
        *(rings(level, r) for level, r in enumerate(sides)),
        ("fibre_down", "fibre", 1, 1, False, cables, None, ("fibre", 1, 0, 0), ports),
        *(
            (
                f"demux{level}", "demux", 1, W, False, {"coupler": 1, "bus_ring": level + 2, "ring_drop": 1}, None, None,
                [f"node {node} port {level}" for node in range(nodes)],
            )
            for level in levels
        ),
        ("photodiode", "photodiode", 1, 0, False, {}, None, None, diodes),
    ]  # fmt: skip
    assert {g.name: g.node_of(np.arange(g.count)).tolist() for g in net.groups if g.node_of is not None} == {
        "modulator": [int(port.split()[1]) for port in ports],
        "photodiode": [int(diode.split()[1]) for diode in diodes],
    }
    assert (net.transmitter, net.num_wavelengths) == ("modulator", W)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("sides", SIDES)
def test_lines_that_a_ring_moves(sides: tuple[int, ...], channels: str) -> None:
    """Those that lead from its input to its output; where two rings do, group 0 is that of the loop."""
    net = machine(sides, channels)
    for level, r in enumerate(sides):
        group = net.groups[net.position[f"ring{level}"]]
        element = np.arange(group.count)
        residue, period = (group.parameters[name](element).tolist() for name in ("residue", "period"))
        on_inputs = [(i, *ring) for i in range(r) for ring in rings_of(i, r, channels)] * (int(np.prod(sides)) // r)
        for (i, name, output), left, of in zip(on_inputs, residue, period, strict=True):
            leads = {k for k in range(40) if output_of(i, k, r, channels) == output}
            if channels == "ring":
                leads = {k for k in leads if (k % r == 0) == (name == i)}
            assert {k for k in range(40) if k % of == left} == leads


@pytest.mark.parametrize("sides", SIDES)
def test_ends_of_circuits(sides: tuple[int, ...]) -> None:
    """The modulator of the sender's port, and of the receiver's port the photodiode of each of its lines."""
    where = fabric("sipac", radices=sides, wavelengths=W)
    net = machine(sides, "published")
    every = [(a, b, port) for a in range(where.num_nodes) for b in range(where.num_nodes) for port in range(len(sides))]
    src, dst, port = np.array(every).T
    sender, receiver = where.ends(Circuits.of(np.arange(len(src)), src, dst, port, 1, 2, port[:, None], 2))
    assert [net.place("modulator", one) for one in sender.tolist()] == [
        f"node {a} port {port}" for a, _, port in every for _ in range(2)
    ]
    assert [net.place("photodiode", one) for one in receiver.tolist()] == [
        f"node {b} port {port} wavelength {line}" for _, b, port in every for line in (1, 3)
    ]


def places(net: Netlist, name: str) -> list[str]:
    """Of the elements of a group."""
    return [net.place(name, element) for element in range(net.count(name))]
