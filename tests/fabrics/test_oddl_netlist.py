"""Elements of ODDL, one by one, from the drawing: switches of one module, and small Clos networks of three stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tests.fabrics.walks import Port, links_of

from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.fabrics._oddl_netlist import oddl_netlist, oddl_states, switches_of
from opticcl.ir import Circuits
from opticcl.ir.device import SettingUse
from opticcl.ir.netlist import BillLine, Netlist

W = 2
PASSIVE = 3
CASES: list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = [
    ((1,), ((8, 1),)),
    ((5,), ((3, 3),)),
    ((2, 3), ((2, 1), (4, 1))),
    ((3, 4), ((2, 3), (2, 3))),
    ((3, 2, 5), ((2, 3), (4, 1), (3, 3))),
    ((9, 1, 2), ((3, 3), (2, 1), (2, 1))),
]
"""Shapes, and for each dimension the ports of a module and how many modules light passes."""


def lines(shape: Sequence[int]) -> list[list[list[int]]]:
    """For each dimension its switches: the nodes of each in the order of their ports."""
    grid = np.arange(int(np.prod(shape))).reshape(shape)
    return [sorted(np.moveaxis(grid, d, -1).reshape(-1, side).tolist()) for d, side in enumerate(shape)]


def module(d: int, line: int, number: int | None = None) -> str:
    """A module of a switch, or the only one."""
    return f"dimension {d} switch {line}{'' if number is None else f' module {number}'}"


@pytest.mark.parametrize(("shape", "modules"), CASES)
def test_elements_of_switches(shape: tuple[int, ...], modules: tuple[tuple[int, int], ...]) -> None:
    """NIC d of a node enters and leaves its switch of dimension d; an edge module of a Clos has a link to every middle."""
    nodes, sides = int(np.prod(shape)), len(shape)
    net = oddl_netlist(switches_of(shape, modules, PASSIVE), nodes, W, 10e9)
    due: Counter[tuple[Port, Port]] = Counter()
    switches = []
    for d, (side, (n, stages)) in enumerate(zip(shape, modules, strict=True)):
        edges, some = -(-side // n), len(lines(shape)[d])
        numbers = {name: [*range(count)] for name, count in (("ingress", edges), ("middle", 2 * n), ("egress", edges))}
        ports = {"ingress": (n, 2 * n), "middle": (edges, edges), "egress": (2 * n, n)}
        if stages == 1:
            switches.append((f"wss{d}", side, side, n, [module(d, line) for line in range(some)]))
        else:
            switches += [
                (f"{name}{d}", *ports[name], n, [module(d, line, k) for line in range(some) for k in numbers[name]])
                for name in ports
            ]
        if side > PASSIVE:
            switches.append((f"edfa{d}", 1, 1, 0, [f"output for node {node}" for node in range(nodes)]))
        for line, members in enumerate(lines(shape)[d]):
            for edge in range(edges) if stages == 3 else ():
                for m in range(2 * n):
                    due[(f"ingress{d}", module(d, line, edge), m), (f"middle{d}", module(d, line, m), edge)] += 1
                    due[(f"middle{d}", module(d, line, m), edge), (f"egress{d}", module(d, line, edge), m)] += 1
            for port, node in enumerate(members):
                nic, first, last = f"node {node} NIC {d}", f"wss{d}", f"wss{d}"
                at = module(d, line), port
                if stages == 3:
                    first, last, at = f"ingress{d}", f"egress{d}", (module(d, line, port // n), port % n)
                due[("transmitter", nic, 0), ("fibre_up", nic, 0)] += 1
                due[("fibre_up", nic, 0), (first, *at)] += 1
                behind = (last, *at)
                if side > PASSIVE:
                    due[behind, (f"edfa{d}", f"output for node {node}", 0)] += 1
                    behind = f"edfa{d}", f"output for node {node}", 0
                due[behind, ("fibre_down", nic, 0)] += 1
                due[("fibre_down", nic, 0), ("demux", nic, 0)] += 1
                for w in range(W):
                    due[("demux", nic, w), ("photodiode", f"{nic} wavelength {w}", 0)] += 1
    assert links_of(net) == due
    assert not net.unlinked
    nics = [f"node {node} NIC {d}" for node in range(nodes) for d in range(sides)]
    diodes = [f"{nic} wavelength {w}" for nic in nics for w in range(W)]
    fibre = BillLine("fibre")
    assert [
        (g.name, g.kind, g.n_in, g.n_out, g.per_wavelength, g.once_per_job, g.bill, dict(g.loss), places(net, g.name))
        for g in net.groups
    ] == [
        ("transmitter", "emitter", 0, 1, True, False, ("tunable_transceiver", 1, 0, W * 10e9), {}, nics),
        ("laser", "control", 0, 0, False, False, None, {}, nics),
        ("receiver", "control", 0, 0, False, False, None, {}, nics),
        ("fibre_up", "fibre", 1, 1, False, False, fibre, {"fibre": 1}, nics),
        *(
            (name, "edfa", 1, 1, False, False, BillLine("edfa"), {"edfa": 1}, those)
            if not n
            else (name, "wss", n_in, n_out, True, True, ("wss", 1, max(n_in, n_out), 0), {f"wss{n}": 1}, those)
            for name, n_in, n_out, n, those in switches
        ),
        ("fibre_down", "fibre", 1, 1, False, False, fibre, {}, nics),
        ("demux", "demux", 1, W, False, False, None, {}, nics),
        ("photodiode", "photodiode", 1, 0, False, False, None, {}, diodes),
    ]
    assert {g.name: g.node_of(np.arange(g.count)).tolist() for g in net.groups if g.node_of is not None} == {
        name: [int(place.split()[1]) for place in (diodes if name == "photodiode" else nics)]
        for name in ("transmitter", "laser", "receiver", "photodiode")
    }
    laser, receiver = (net.groups[net.position[name]].parameters for name in ("laser", "receiver"))
    assert laser["tunes"](np.arange(3)).tolist() == [0, 1, 2]
    listens = receiver["receives"](np.arange(len(diodes))).tolist()
    assert [nics[nic] for nic in listens] == [place.rpartition(" wavelength")[0] for place in diodes]


def places(net: Netlist, name: str) -> list[str]:
    """Of the elements of a group."""
    return [net.place(name, element) for element in range(net.count(name))]


def light(shape: tuple[int, ...], seed: int) -> Circuits:
    """Circuits of one or two wavelengths round each line in a random order, some of them several times.

    Args:
        shape: of the machine.
        seed: of the draws.
    """
    random = np.random.default_rng(seed)
    rows = []
    for d, of_dimension in enumerate(lines(shape)):
        for line in of_dimension:
            around = random.permutation(line).tolist()
            for a, b in zip(around, [*around[1:], around[0]], strict=True):
                rows.append((a, b, d, *((0, 1), (0, 2), (1, 1))[int(random.integers(3))]))
    src, dst, port, lo, n = np.array([row for row in rows if row[0] != row[1]]).T
    order = random.permutation(np.concatenate([np.arange(len(src)), random.integers(0, len(src), 3)]))
    return Circuits.of(np.arange(len(src)), src, dst, port, lo, n, port[:, None]).take(order)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("shape", "modules"), CASES[1:])
def test_states_of_switches(shape: tuple[int, ...], modules: tuple[tuple[int, int], ...], seed: int) -> None:
    """Inputs select outputs and outputs inputs; through a Clos by the first middle module that is free at both ends."""
    circuits = light(shape, seed)
    uses = list(fabric("oddl", shape=shape, wavelengths=W).settings(circuits))
    paths = sorted(
        {
            (d, line, w, members.index(a), members.index(b))
            for a, b, d, lo, n in rows_of(circuits)
            for w in range(lo, lo + n)
            for line, members in enumerate(lines(shape)[d])
            if a in members
        }
    )
    middle: dict[tuple[int, ...], int] = {}
    busy = set()
    for d, line, w, i, o in paths:
        n = modules[d][0]
        ends = [("in", d, line, w, i // n), ("out", d, line, w, o // n)]
        middle[d, line, w, i, o] = next(m for m in range(2 * n) if not any((*end, m) in busy for end in ends))
        busy.update((*end, middle[d, line, w, i, o]) for end in ends)

    def due() -> Iterator[tuple[str, int, int, int, int]]:
        for row, (a, b, d, lo, many) in enumerate(rows_of(circuits)):
            line, members = next((k, one) for k, one in enumerate(lines(shape)[d]) if a in one)
            i, o, n = members.index(a), members.index(b), modules[d][0]
            edges = -(-shape[d] // n)
            for w in range(lo, lo + many):
                passed = [("wss", line, i, o, shape[d])]
                if modules[d][1] == 3:
                    m = middle[d, line, w, i, o]
                    passed = [
                        ("ingress", line * edges + i // n, i % n, m, n),
                        ("middle", line * 2 * n + m, i // n, o // n, edges),
                        ("egress", line * edges + o // n, m, o % n, 2 * n),
                    ]
                for name, number, into, out, n_in in passed:
                    yield f"{name}{d}", number, into * W + w, out, row
                    yield f"{name}{d}", number, (n_in + out) * W + w, into, row

    states = list(oddl_states(switches_of(shape, modules, PASSIVE), uses, W))
    found = [
        (use.kind, *row)
        for use in states
        if use.within is not None
        for row in zip(
            *(np.asarray(c).tolist() for c in (use.index, use.within, use.setting, use.circuit)), strict=True
        )
    ]
    assert sorted(found) == sorted(due())
    controls = [
        (use.kind, use.index.tolist(), use.setting.tolist(), use.circuit) for use in states if use.within is None
    ]
    assert controls == [(use.kind, use.index.tolist(), use.setting.tolist(), None) for use in uses[:2]]
    nothing = fabric("oddl", shape=shape, wavelengths=W).settings(circuits.take(np.zeros(0, int)))
    assert not any(len(use.index) for use in oddl_states(switches_of(shape, modules, PASSIVE), nothing, W))


def test_states_of_a_circuit_by_hand() -> None:
    """From node 5 to node 7 of 2 x 4 nodes on wavelength 1: the second switch of dimension 1, from input 1 to output 3."""
    where = fabric("oddl", shape=(2, 4), wavelengths=W)
    one = Circuits.of([0], [5], [7], 1, 1, 1, [[1]])
    laser, receiver, into, out = (use for use in where.states(one) if len(use.index))
    assert (laser.kind, laser.index.tolist()) == ("laser", [2 * 5 + 1])
    assert (receiver.kind, receiver.index.tolist(), receiver.setting.tolist()) == ("receiver", [2 * 7 + 1], [5])
    assert (into.kind, into.index.tolist(), into.setting.tolist()) == ("wss1", [1], [3])
    assert (out.kind, out.index.tolist(), out.setting.tolist()) == ("wss1", [1], [1])
    assert into.within is not None
    assert out.within is not None
    assert (into.within.tolist(), out.within.tolist()) == ([1 * W + 1], [(4 + 3) * W + 1])


def rows_of(circuits: Circuits) -> list[tuple[int, int, int, int, int]]:
    """Sender, receiver, dimension, first wavelength and number of them of each circuit."""
    columns = circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_five_stages_are_counted_without_links() -> None:
    """Of 5 ports of modules of 2: three at each edge, and for the four middles three ports of three stages again."""
    five = switches_of((2, 5), ((2, 1), (2, 5)), PASSIVE)
    net = oddl_netlist(five, 10, W, 10e9)
    assert [(g.name, g.count, g.n_in, g.n_out) for g in net.groups if g.kind == "wss"] == [
        ("wss0", 5, 2, 2),
        ("stage0_1", 6, 2, 4),
        ("stage1_1", 16, 2, 4),
        ("stage2_1", 32, 2, 2),
        ("stage3_1", 16, 4, 2),
        ("stage4_1", 6, 4, 2),
    ]
    assert [one.unlinked for one in five] == [
        "",
        "oddl: a switch of 5 ports has 5 stages; light is followed through up to 3, try sides of at most 4",
    ]
    assert net.unlinked == five[1].unlinked
    none = np.zeros(0, np.int64)
    with pytest.raises(UnsupportedError, match="5 stages"):
        list(oddl_states(five, [SettingUse("wss", none, none, none)], W))
