"""RAMP's ports and light: the paper's numbers, which shapes exist, what circuits may and may not share."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from opticcl.collective import collective
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.ramp import shape_at_scale
from opticcl.ir import CircuitPlan, Circuits, Fabric, Occupied, Op, Schedule, Transfers
from opticcl.ir.representatives import LightMove
from opticcl.optics.values import chain_of, optics
from opticcl.verify.light.circuits import check_light

SUBNETS = ("broadcast", "route_broadcast", "route_switch")
X, J, L = 4, 3, 8  # of the small fabric below


def small(subnet: str = "broadcast", b: int = 1) -> Fabric:
    """96 nodes."""
    return fabric("ramp", groups=X, racks=J, wavelengths=L, subnet=subnet, transceivers_per_group=b)


def node(g: int, j: int, device: int) -> int:
    """Number of a node."""
    return (g * J + j) * L + device


def wavelength(subnet: str, src: int, dst: int) -> int:
    """The receiver's on star couplers, the difference behind routers."""
    return dst % L if subnet == "broadcast" else (dst - src) % L


def refusals(where: Fabric, rows: list[tuple[int, int, int]], op: Op = Op.COPY, chunks: Any = 0) -> set[str]:
    """Rules that circuits (src, dst, port), each with a transfer of its own, break in one round."""
    src, dst, port = np.array(rows, np.int32).T
    transfers = Transfers.of(src, dst, chunks, 1, op)
    light = [wavelength(where.parameters["subnet"], s, d) for s, d, _ in rows]
    gates = np.stack([dst // (J * L), src // (J * L)], axis=1)
    circuits = Circuits.of(np.arange(len(rows)), src, dst, port, light, 1, gates)
    schedule = Schedule("by hand", collective("broadcast", where.num_nodes, 4), 1, lambda i: transfers)
    plan = CircuitPlan(where, schedule, lambda i: (circuits,))
    return {v.rule for v in check_light(plan, progress=lambda *_: None).violations}


def test_numbers_of_the_paper() -> None:
    """Abstract and sections 3.1, 4.1, 4.2: 65,536 nodes of 12.8 Tb/s, 32,768 couplers, 2,097,152 paths, 950 B a slot."""
    where = fabric("ramp")
    assert (where.num_nodes, where.node_rate_bits_per_s) == (65536, 12.8e12)
    assert where.slot_payload_bytes == pytest.approx(950)
    assert where.latency_s == pytest.approx(1.4e-6)
    assert [small(subnet).signals_meet for subnet in SUBNETS] == [False] * 3  # by filters, or by a crossbar
    assert fabric("ramp", receiver="none").signals_meet
    assert {r.kind: r.count for r in where.resources} == {"tx_port": 2097152, "rx_port": 2097152, "subnet": 32768}


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (1, (1, 1, 1, 32)),
        (2, None),
        (4, (2, 1, 2, 16)),
        (7, None),
        (8, (2, 2, 2, 16)),
        (12, None),
        (54, (3, 3, 6, 11)),
        (64, (8, 1, 8, 4)),
        (1024, (32, 1, 32, 1)),
        (65536, (32, 32, 64, 1)),
    ],
)
def test_at_scale(nodes: int, shape: tuple[int, ...] | None) -> None:
    """The most groups whose square fits; a small RAMP keeps 32 transceivers a node, or a few more."""
    if shape is None:
        near = {2: "1 or 4", 7: "4 or 8", 12: "9 or 16"}[nodes]
        with pytest.raises(FabricError, match=f"nearest: {near}"):
            fabric_at_scale("ramp", nodes)
        return
    names = ("groups", "racks", "wavelengths", "transceivers_per_group")
    where = fabric_at_scale("ramp", nodes)
    assert tuple(where.parameters[name] for name in names) == shape
    assert where.ports_per_node >= 32


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"groups": 3, "racks": 4, "wavelengths": 6}, "racks=4 is more than groups=3"),
        ({"groups": 4, "racks": 4, "wavelengths": 9}, "nearest: wavelengths=8 or 12"),
        ({"groups": 0}, "1 or more"),
        ({"transceivers_per_group": 0}, "1 or more"),
        ({"slot": "1ns"}, "leaves no time for data"),
        ({"line_rate": 0}, "line_rate must be positive"),
        ({"switching": -1e-9}, "switching, propagation and io not negative"),
        ({"receiver": "fixed", "subnet": "route_broadcast"}, "receiver=fixed with subnet=route_broadcast"),
    ],
)
def test_shapes_that_do_not_exist(parameters: dict[str, Any], text: str) -> None:
    """One clear line with the field and the nearest that exists."""
    with pytest.raises(FabricError, match=text):
        fabric("ramp", **parameters)


def test_a_path_has_two_gates() -> None:
    """Paths of one and of three hops are refused by number, and nothing else is said of them."""
    paths = (np.array([0, 0, 0, 0]), np.array([0, 1, 4]))
    circuits = Circuits.of(np.arange(2), np.array([0, 1]), np.array([2, 3]), 0, [2, 3], 1, paths)
    (fault,) = small().faults(circuits)
    assert (fault.rule, fault.circuits.tolist()) == ("path_broken", [0, 1])


def test_the_example_is_small() -> None:
    """Eighteen nodes, and the algorithm of the paper; nodes have coordinates."""
    assert small().coordinates(node(1, 1, 3)) == "(g=1, j=1, l=3)"
    assert type(small()).example() == (fabric("ramp:groups=3,racks=2,wavelengths=3"), "ramp")


def test_unknown_subnet() -> None:
    """The three kinds are named."""
    with pytest.raises(ParameterError, match="broadcast, route_broadcast, route_switch"):
        fabric("ramp", subnet="awgr")


@pytest.mark.parametrize("subnet", SUBNETS)
@pytest.mark.parametrize("b", [1, 2])
def test_usage_stays_within_the_resources(subnet: str, b: int) -> None:
    """The last node, port and gate have the last resource, the first the first."""
    where = small(subnet, b)
    last = where.num_nodes - 1
    circuits = Circuits.of([0, 1], [0, last], [0, last], [0, X * b - 1], [0, 0], 1, [[0, 0], [X - 1, X - 1]])
    for used in where.usage(circuits):
        entries = J if used.resource.kind == "switch_port" else 1
        assert used.index[0] == 0
        assert used.resource.count - (1 if entries == 1 else L * X * b * X * J) <= used.index[1] < used.resource.count


@pytest.mark.parametrize("subnet", SUBNETS)
@pytest.mark.parametrize(
    ("path", "shift", "rule"),
    [
        (None, 0, "path_broken"),  # no gates
        ([[1]], 0, "path_broken"),  # one
        ([[2, 0]], 0, "path_broken"),  # TX gate at another group
        ([[1, 1]], 0, "path_broken"),  # RX gate at another group
        ([[-1, 0]], 0, "path_broken"),
        ([[1, 0]], 1, "wavelength_unheard"),
        ([[2, 0]], 1, "path_broken"),  # nothing is said of the wavelength of a path that leads elsewhere
        ([[1, 0]], 0, None),
    ],
)
def test_what_a_circuit_needs(subnet: str, path: Any, shift: int, rule: str | None) -> None:
    """Two gates at the right groups and the one wavelength that gets there."""
    src, dst = node(0, 1, 2), node(1, 2, 5)
    light = (wavelength(subnet, src, dst) + shift) % L
    found = {f.rule for f in small(subnet).faults(Circuits.of([0], [src], [dst], 0, light, 1, path)) if len(f.circuits)}
    assert found == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # two racks of one group to one wavelength of another, from devices 2 and 3: only the star coupler mixes them
        ([(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 3), node(1, 1, 5), 0)], ({"wavelength_clash"}, set(), set())),
        # from device 2 of both racks: routers send both to the same coupler on the same wavelength, crossbars apart
        (
            [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(1, 1, 5), 0)],
            ({"wavelength_clash"}, {"wavelength_clash"}, set()),
        ),
        # one rack to two racks: a crossbar leads a rack to one rack
        (
            [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 0, 3), node(1, 1, 5), 0)],
            ({"wavelength_clash"}, set(), {"switch_reset"}),
        ),
        # other transceivers, other wavelengths or other groups never meet
        ([(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(1, 1, 5), 1)], (set(), set(), set())),
        ([(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(1, 1, 6), 0)], (set(), set(), set())),
        ([(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(2, 1, 5), 0)], (set(), set(), set())),
        # one receiver, two senders of different groups
        ([(node(0, 0, 2), node(1, 0, 5), 0), (node(2, 0, 3), node(1, 0, 5), 0)], ({"receiver_shared"},) * 3),
        # one sender, two receivers of different wavelengths
        ([(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 0, 2), node(2, 0, 6), 0)], ({"transmitter_shared"},) * 3),
    ],
)
def test_what_circuits_may_share(rows: list[tuple[int, int, int]], expected: tuple[set[str], ...]) -> None:
    """Section 3.1's three kinds of subnet and what light meets in each."""
    for subnet, rules in zip(SUBNETS, expected, strict=True):
        assert refusals(small(subnet), rows, chunks=np.arange(len(rows))) == rules, subnet


def test_light_is_split_where_it_can_be() -> None:
    """One signal through two gates to two racks each (section 6.1.5); a crossbar leads to one rack."""
    groups = [(node(0, 0, 2), node(g, 0, 5), 0) for g in (1, 2)]
    racks = [(node(0, 0, 2), node(1, j, 5), 0) for j in range(J)]
    for subnet in SUBNETS:
        assert refusals(small(subnet), groups) == set()
    assert refusals(small("broadcast"), racks) == refusals(small("route_broadcast"), racks) == set()
    assert refusals(small("route_switch"), racks) == {"switch_reset"}


@pytest.mark.parametrize(
    ("op", "chunks", "rules"),
    [
        (Op.COPY, [0, 1, 2], {"transmitter_shared", "wavelength_clash"}),  # other data are other signals
        (Op.REDUCE, [0, 1, 2], {"transmitter_shared", "wavelength_clash"}),
        (Op.COPY, 0, set()),
        (Op.REDUCE, 0, set()),  # what a receiver does with the data makes no difference to the light
    ],
)
def test_split_light_is_one_signal(op: Op, chunks: Any, rules: set[str]) -> None:
    """One sender, one wavelength, the same chunks: one signal, whether it is stored or added (decision 0003)."""
    rows = [(node(0, 0, 2), node(1, j, 5), 0) for j in range(J)]
    assert refusals(small(), rows, op, chunks) == rules


@pytest.mark.parametrize(
    ("second", "broken"),
    [
        ((node(0, 0, 2), node(1, 0, 5)), False),  # the same pair
        ((node(0, 0, 2), node(1, 1, 5)), False),  # another rack hears the same wavelength through the same gates
        ((node(0, 0, 2), node(1, 0, 6)), True),  # the group's laser has one wavelength
        ((node(0, 0, 2), node(2, 0, 5)), True),  # and its gates obey one instruction
        ((node(2, 0, 2), node(1, 0, 5)), True),  # so do the receiver's
    ],
)
def test_transceivers_of_a_group_obey_one_instruction(second: tuple[int, int], broken: bool) -> None:
    """Section 3.1: b transceivers share light source and control; with ports of two groups all of it is free."""
    first = (node(0, 0, 2), node(1, 0, 5))
    where = small(b=2)
    assert refusals(where, [(*first, 0), (*second, 1)], chunks=[0, 1]) == ({"control_shared"} if broken else set())
    assert refusals(where, [(*first, 0), (*second, 2)], chunks=[0, 1]) == set()


@pytest.mark.parametrize(
    ("subnet", "receiver", "broken"),
    [
        ("broadcast", "by_subnet", "idle_plane_light"),  # the wavelength is that of the receiver
        (
            "route_broadcast",
            "by_subnet",
            "control_shared",
        ),  # that of the pair: one instruction sets the tunable filters
        ("route_broadcast", "none", "idle_plane_light"),  # no filter
    ],
)
def test_tunable_filters_of_a_group_have_one_wavelength(subnet: str, receiver: str, broken: str) -> None:
    """Two senders of a rack reach one receiver on two planes of a group."""
    shape = {"groups": X, "racks": J, "wavelengths": L, "transceivers_per_group": 2}
    where = fabric("ramp", subnet=subnet, receiver=receiver, **shape)
    found = Circuits.of(
        np.arange(2),
        np.array([node(0, 0, 2), node(0, 0, 3)]),
        np.array([node(1, 0, 5)] * 2),
        np.arange(2),
        np.array([5, 5]) if subnet == "broadcast" else np.array([3, 2]),
        1,
        np.array([[1, 0], [1, 0]]),
    )
    assert {fault.rule for fault in where.faults(found) if len(fault.circuits)} == {broken}


@pytest.mark.parametrize(
    ("subnet", "second", "lit"),
    [
        ("broadcast", (node(0, 1, 2), node(1, 1, 5)), True),  # another sender, on the plane that the first leaves idle
        ("broadcast", (node(0, 1, 2), node(1, 1, 6)), False),  # another wavelength
        ("broadcast", (node(0, 1, 2), node(2, 1, 5)), False),  # another gate
        ("route_broadcast", (node(0, 1, 2), node(1, 1, 5)), True),  # the star coupler behind the router
        ("route_broadcast", (node(0, 1, 3), node(1, 1, 5)), False),  # another wavelength
        ("route_switch", (node(0, 0, 3), node(1, 1, 5)), True),  # the input of the crossbar, whatever the wavelength
        ("route_switch", (node(0, 1, 2), node(1, 1, 5)), False),  # racks have crossbars of their own
    ],
)
def test_an_idle_plane_has_the_light_of_its_group(subnet: str, second: tuple[int, int], lit: bool) -> None:
    """The laser of a group is split over its planes, and their gates open together: no second sender may use the other one."""
    where = small(b=2, subnet=subnet)
    first = (node(0, 0, 2), node(1, 0, 5))
    assert refusals(where, [(*first, 0), (*second, 1)], chunks=[0, 1]) == ({"idle_plane_light"} if lit else set())
    assert refusals(where, [(*first, 0), (*second, 2)], chunks=[0, 1]) == set()


def test_all_transceivers_of_a_group_split_alike() -> None:
    """If one transceiver's gates are open to two groups, so are the others': a third gate on one alone is refused."""
    where = small(b=2)
    rows = [(node(0, 0, 2), node(g, 0, 5), port) for g in (1, 2) for port in (0, 1)]
    assert refusals(where, rows) == set()
    assert refusals(where, [*rows, (node(0, 0, 2), node(3, 0, 5), 0)]) == {"control_shared"}


@pytest.mark.parametrize(
    ("parameters", "rows", "rules"),
    [  # the second pair meets the first in a star coupler, on another wavelength
        ({}, [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(1, 1, 6), 0)], set()),
        ({"receiver": "tunable"}, [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(1, 1, 6), 0)], set()),
        (
            {"receiver": "none"},
            [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 2), node(1, 1, 6), 0)],
            {"wavelength_clash"},
        ),
        (
            {"subnet": "route_broadcast", "receiver": "none"},
            [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 3), node(1, 1, 5), 0)],
            {"wavelength_clash"},
        ),
        ({"subnet": "route_broadcast"}, [(node(0, 0, 2), node(1, 0, 5), 0), (node(0, 1, 3), node(1, 1, 5), 0)], set()),
    ],
)
def test_without_filters_a_subnet_has_one_signal(parameters: Any, rows: Any, rules: set[str]) -> None:
    """Photodiodes receive all wavelengths of what their gate lets in."""
    where = fabric("ramp", groups=X, racks=J, wavelengths=L, **parameters)
    assert refusals(where, rows, chunks=[0, 1]) == rules


def test_a_tunable_filter_takes_any_wavelength_of_a_star_coupler() -> None:
    """A fixed one that of its device alone."""
    rows = (node(0, 0, 2), node(1, 0, 5))
    gates = np.array([[1, 0]])
    for receiver, allowed in (("fixed", False), ("tunable", True)):
        where = fabric("ramp", groups=X, racks=J, wavelengths=L, receiver=receiver)
        circuits = Circuits.of([0], [rows[0]], [rows[1]], 0, 3, 1, gates)
        rules = {fault.rule for fault in where.faults(circuits) if len(fault.circuits)}
        assert rules == (set() if allowed else {"wavelength_unheard"})


@pytest.mark.parametrize(
    ("subnet", "filters"), [("broadcast", "fixed"), ("route_broadcast", "tunable"), ("route_switch", "none")]
)
def test_filters_that_a_subnet_needs(subnet: str, filters: str) -> None:
    """Tunable ones are devices with settings, light passes those that are there, and each is billed."""
    where = fabric("ramp", groups=X, racks=J, wavelengths=L, subnet=subnet)
    same = fabric("ramp", groups=X, racks=J, wavelengths=L, subnet=subnet, receiver=filters)
    tunable = filters == "tunable"
    for one in (where, same):
        assert ("filter" in one.light_path.kinds) == (filters != "none")
        assert ("filter" in {device.kind for device in one.devices}) == tunable
        assert sum(part.count for part in one.parts() if part.kind == "tunable_filter") == tunable * 96 * X * X
    with pytest.raises(ParameterError, match="receiver"):
        fabric("ramp", groups=X, racks=J, wavelengths=L, subnet=subnet, receiver="some")


# --- numbers of parts, devices and cells, counted in the drawing --------------------------------------------------------

TINY = {"groups": 3, "racks": 2, "wavelengths": 3, "transceivers_per_group": 2}  # 18 nodes of 6 transceivers
PORTS = 3 * 2


def tiny(subnet: str = "broadcast", **changed: Any) -> Fabric:
    """18 nodes."""
    return fabric("ramp", **{**TINY, "subnet": subnet, **changed})


def place_of(number: int) -> tuple[int, int, int]:
    """Group, rack and device of a node of `tiny`."""
    return number // 6, number // 3 % 2, number % 3


def rows_of(where: Fabric) -> tuple[Circuits, list[tuple[int, int, int]]]:
    """A circuit for every pair of nodes and port, and (src, dst, port) of each."""
    n = where.num_nodes
    rows = [(a, b, p) for a in range(n) for b in range(n) if a != b for p in range(where.ports_per_node)]
    src, dst, port = np.array(rows).T
    subnet = where.parameters["subnet"]
    light = dst % 3 if subnet == "broadcast" else (dst - src) % 3
    gates = np.stack([dst // 6, src // 6], axis=1)
    return Circuits.of(np.arange(len(rows)), src, dst, port, light, 1, gates), rows


@pytest.mark.parametrize("subnet", SUBNETS)
def test_parts_are_numbered_as_they_are_drawn(subnet: str) -> None:
    """Transceivers by node, gates and fibres by their transceiver, cores by both groups: every part once, in that order."""
    where = tiny(subnet)
    circuits, rows = rows_of(where)
    groups, nodes, ports = range(3), range(18), range(PORTS)
    of_transceiver = list(product(nodes, ports))
    of_gate = list(product(nodes, ports, groups))
    drawn: dict[str, list[Any]] = {
        "node": list(nodes), "transmitter": of_transceiver, "receiver": of_transceiver, "tx_gate": of_gate, "rx_gate": of_gate,
        "input_fibre": of_gate, "output_fibre": of_gate,
    }  # fmt: skip
    if subnet == "broadcast":
        drawn["star"] = list(product(groups, groups, ports))
    else:
        drawn["router"] = list(product(groups, range(2), groups, ports))
        drawn["star" if subnet == "route_broadcast" else "crossbar"] = list(product(groups, groups, ports, range(3)))
    assert {kind.kind: kind.count for kind in where.inventory()} == {kind: len(parts) for kind, parts in drawn.items()}
    settings = {kind.kind: kind.settings for kind in where.inventory()}
    assert settings == {kind: 9 if (kind, subnet) == ("transmitter", "broadcast") else 0 for kind in drawn}
    found: dict[str, list[set[Any]]] = {}
    for use in where.parts_used(circuits):
        passed = found.setdefault(use.kind, [set() for _ in rows])
        for row, part in zip(use.owners().tolist(), use.part.tolist(), strict=True):
            passed[row].add(drawn[use.kind][part])
    assert set(found) == set(drawn)
    for row, (src, dst, port) in enumerate(rows):
        (g, j, _), (h, _, m) = place_of(src), place_of(dst)
        due = {
            "node": {src, dst}, "transmitter": {(src, port)}, "receiver": {(dst, port)}, "tx_gate": {(src, port, h)},
            "rx_gate": {(dst, port, g)}, "input_fibre": {(src, port, h)}, "output_fibre": {(dst, port, g)},
            "router": {(g, j, h, port)}, "crossbar": {(g, h, port, m)},
            "star": {(g, h, port) if subnet == "broadcast" else (g, h, port, m)},
        }  # fmt: skip
        assert {kind: found[kind][row] for kind in drawn} == {kind: due[kind] for kind in drawn}


@pytest.mark.parametrize("switches", ["ecs", "eps"])
def test_an_electrical_switch_is_in_the_place_of_a_star_coupler(switches: str) -> None:
    """The same circuits meet there; one switch less takes as many of them; no light is followed beyond it."""
    where, stars = tiny(switches=switches), tiny()
    circuits, _ = rows_of(where)
    for one, other in zip(where.usage(circuits), stars.usage(circuits), strict=True):
        assert (one.resource, one.index.tolist()) == (other.resource, other.index.tolist())
    parts = [
        {"star" if use.kind == "switch" else use.kind: use.part.tolist() for use in made.parts_used(circuits)}
        for made in (where, stars)
    ]
    assert parts[0] == parts[1]
    counts = [[(kind.count, kind.settings) for kind in made.inventory()] for made in (where, stars)]
    assert counts[0] == counts[1]
    assert where.place_name(where.resources[2], 7) == f"switch group 0 -> group {7 // PORTS} (port {7 % PORTS})"
    with pytest.raises(UnsupportedError, match=f"switches={switches}: light ends at electrical switches"):
        where.netlist().targets()


@pytest.mark.parametrize("subnet", SUBNETS)
def test_resources_are_counted_by_groups_ports_and_devices(subnet: str) -> None:
    """A star coupler for both groups and the port; behind routers one for each device; a crossbar's input for each rack."""
    where = tiny(subnet)
    circuits, rows = rows_of(where)
    groups, ports = range(3), range(PORTS)
    cores = {
        "broadcast": list(product(groups, groups, ports)),
        "route_broadcast": list(product(groups, groups, ports, range(3))),
        "route_switch": list(product(groups, range(2), groups, ports, range(3))),
    }[subnet]
    tx, rx, core = where.usage(circuits)
    transceivers = list(product(range(18), ports))
    assert [used.resource.count for used in (tx, rx, core)] == [len(transceivers), len(transceivers), len(cores)]
    assert [r.per_wavelength for r in where.resources] == [False, False, subnet != "route_switch"]
    assert [r.splits for r in where.resources] == [True, False, subnet != "route_switch"]
    for row, (src, dst, port) in enumerate(rows):
        (g, j, _), (h, _, m) = place_of(src), place_of(dst)
        due = {"broadcast": (g, h, port), "route_broadcast": (g, h, port, m), "route_switch": (g, j, h, port, m)}[
            subnet
        ]
        assert transceivers[tx.index[row]] == (src, port)
        assert transceivers[rx.index[row]] == (dst, port)
        assert cores[core.index[row]] == due


@pytest.mark.parametrize("subnet", SUBNETS)
def test_devices_belong_to_what_their_circuits_occupy(subnet: str) -> None:
    """`units_of_devices`: the unit of a device is the transmitter, receiver or input that the circuit of its setting uses."""
    where = tiny(subnet, slot=0)
    circuits, _ = rows_of(where)
    used = list(where.usage(circuits))
    kinds = {device.kind: device for device in where.devices}
    units = dict(zip(kinds, where.units_of_devices(), strict=True))
    for use in where.settings(circuits):
        resource, each = units[use.kind]
        assert kinds[use.kind].count == used[resource].resource.count * each
        assert kinds[use.kind].setting_time_s == where.parameters["switching"]
        assert (use.index // each == used[resource].index).all()
    further = {"broadcast": set(), "route_broadcast": {"filter"}, "route_switch": {"crossbar"}}[subnet]
    assert set(kinds) == {"laser", "tx_gate", "rx_gate"} | further


@pytest.mark.parametrize("subnet", SUBNETS)
def test_options_are_all_transceiver_groups_of_a_pair(subnet: str) -> None:
    """On the wavelength and the gates of the pair, both planes of a group together; transfer and choice count pairs."""
    where = tiny(subnet)
    src, dst = np.array([0, 4, 17, 7]), np.array([5, 16, 3, 8])
    found = where.options(src, dst)
    lit = found.circuits
    due = [(i, a, b, port) for i, (a, b) in enumerate(zip(src, dst, strict=True)) for port in range(PORTS)]
    assert list(zip(lit.transfer, lit.src, lit.dst, lit.port, strict=True)) == due
    assert found.choice.tolist() == [row // 2 for row in range(len(due))]
    wanted = [b % 3 if subnet == "broadcast" else (b - a) % 3 for _, a, b, _ in due]
    assert (lit.wavelength_lo.tolist(), lit.wavelength_n.tolist()) == (wanted, [1] * len(due))
    assert lit.hops.reshape(-1, 2).tolist() == [[b // 6, a // 6] for _, a, b, _ in due]


@pytest.mark.parametrize("receiver", ["by_subnet", "tunable", "none"])
def test_light_of_a_stuck_transmitter_takes_its_cell(receiver: str) -> None:
    """Behind its gate, on its wavelength; without filters the whole star coupler, whatever the wavelength."""
    where = tiny(receiver=receiver, failed="node:17+transmitter:27:stuck=5+transmitter:107:stuck=8")
    # node 4 (group 0) port 3: gate 1, wavelength 2; node 17 (group 2) port 5: gate 2, wavelength 2
    cells = [((0 * 3 + 1) * PORTS + 3, 2), ((2 * 3 + 2) * PORTS + 5, 2)]
    rows = [(2, index, 0 if receiver == "none" else light, 1) for index, light in cells]
    assert where.occupied == Occupied.of(rows)
    assert not len(tiny(receiver=receiver).occupied)


def test_without_filters_no_other_signal_passes_a_stuck_transmitters_coupler() -> None:
    """The one behind its gate and port alone: senders of its group there clash, on any wavelength."""
    where = tiny(
        receiver="none", transceivers_per_group=1, failed="transmitter:0:stuck=5"
    )  # node 0, port 0: gate 1, wavelength 2
    clashing = {
        (dst // 6, port)
        for dst, port in product((2, 7, 8, 13), range(3))
        if "wavelength_clash" in refusals_of_one(where, 1, dst, port)
    }
    assert clashing == {(1, 0)}


def refusals_of_one(where: Fabric, src: int, dst: int, port: int) -> set[str]:
    """Rules that a single circuit breaks."""
    circuits = Circuits.of([0], [src], [dst], port, dst % 3, 1, [[dst // 6, src // 6]])
    transfers = Transfers.of(np.array([src]), np.array([dst]), 0, 1, Op.COPY)
    schedule = Schedule("by hand", collective("broadcast", where.num_nodes, 4), 1, lambda i: transfers)
    return {
        v.rule
        for v in check_light(CircuitPlan(where, schedule, lambda i: (circuits,)), progress=lambda *_: None).violations
    }


def test_stuck_transmitters_send_no_data() -> None:
    """Each circuit from one is refused, and each that needs a dead part; no other one."""
    where = tiny(failed="transmitter:27:stuck=5+transmitter:2:stuck=0+receiver:40")
    assert not where.links_all
    assert tiny().links_all
    circuits, rows = rows_of(where)
    found: dict[str, list[int]] = {}
    for fault in where.part_faults(circuits):
        found.setdefault(fault.expected, []).extend(fault.circuits.tolist())
    stuck = [i for i, (src, _, port) in enumerate(rows) if src * PORTS + port in (27, 2)]
    dead = [i for i, (_, dst, port) in enumerate(rows) if dst * PORTS + port == 40]
    assert sorted(found.pop("no data from a stuck transmitter")) == stuck
    assert sorted(row for others in found.values() for row in others) == dead
    assert not any(len(fault.circuits) for fault in tiny().part_faults(circuits))


# --- instructions that transceivers share, by brute force ----------------------------------------------------------------


# --- images of resources -------------------------------------------------------------------------------------------------


def turned(by: int = 1, ports: tuple[int, ...] = (2, 0, 1), lights: tuple[int, ...] = (1, 2, 0)) -> LightMove:
    """Groups of `tiny` turn by one, racks of group 0 change places, and so do transceiver groups and devices."""
    nodes = []
    for number in range(18):
        g, j, m = place_of(number)
        nodes.append((((g + by) % 3) * 2 + (1 - j if g == 0 else j)) * 3 + lights[m])
    hops = np.array([(g + by) % 3 for g in range(3)])
    return LightMove(np.array(nodes), np.array(ports), np.array(lights), hops)


def test_images_of_resources_are_those_of_the_images_of_circuits() -> None:
    """What the image of a circuit occupies is the image of what the circuit occupies."""
    where = tiny(transceivers_per_group=1)
    circuits, _ = rows_of(where)
    for by in (0, 1, 2):
        move = turned(by)
        images = where.resource_images(move)
        assert images is not None
        for image, before, after in zip(images, where.usage(circuits), where.usage(move.of(circuits)), strict=True):
            assert len(image) == before.resource.count
            assert (image[before.index] == after.index).all()


def test_moves_without_images() -> None:
    """Planes that share instructions, light that meets, routers, failed parts, nodes moved against gates or wavelengths."""
    one = {"transceivers_per_group": 1}
    move = turned()
    assert tiny(**one).resource_images(move) is not None
    assert tiny(receiver="tunable", **one).resource_images(move) is not None
    two = LightMove(move.nodes, np.array([4, 5, 0, 1, 2, 3]), move.wavelengths, move.hops)
    assert tiny().resource_images(two) is None
    for changed in ({"receiver": "none"}, {"failed": "star:3"}):
        assert tiny(**one, **changed).resource_images(move) is None
    for subnet in SUBNETS[1:]:
        assert tiny(subnet, **one).resource_images(move) is None
    against = LightMove(move.nodes, move.ports, move.wavelengths, np.array([0, 2, 1]))
    assert tiny(**one).resource_images(against) is None
    swapped = move.nodes.copy()
    swapped[[0, 6]] = swapped[[6, 0]]  # a node of group 0 goes elsewhere than the others
    assert tiny(**one).resource_images(LightMove(swapped, move.ports, move.wavelengths, move.hops)) is None
    other = LightMove(move.nodes, move.ports, np.array([2, 0, 1]), move.hops)
    assert tiny(**one).resource_images(other) is None


def test_light_begins_and_ends_at_the_transceivers_of_the_port() -> None:
    """One lane for each wavelength of a circuit."""
    circuits = Circuits.of([0, 1], [4, 17], [16, 3], [3, 5], [2, 0], [1, 2], [[2, 0], [0, 2]])
    sender, receiver = tiny().ends(circuits)
    assert sender.tolist() == [4 * PORTS + 3, 17 * PORTS + 5, 17 * PORTS + 5]
    assert receiver.tolist() == [16 * PORTS + 3, 3 * PORTS + 5, 3 * PORTS + 5]


# --- ends, names, cells, limits ------------------------------------------------------------------------------------------


def test_names_of_nodes_and_of_places() -> None:
    """By group, rack and device; the places of the last resource in the order in which they are numbered."""
    where = tiny()
    assert [where.coordinates(n) for n in range(18)] == [
        f"(g={g}, j={j}, l={m})" for g, j, m in map(place_of, range(18))
    ]
    groups, ports = range(3), range(PORTS)
    names = {
        "broadcast": [f"star coupler group {g} -> group {h} (port {p})" for g, h, p in product(groups, groups, ports)],
        "route_broadcast": [
            f"star coupler group {g} -> group {h} (port {p}, outputs to devices {m})"
            for g, h, p, m in product(groups, groups, ports, range(3))
        ],
        "route_switch": [
            f"crossbar group {g} rack {j} -> group {h} (port {p}, outputs to devices {m})"
            for g, j, h, p, m in product(groups, range(2), groups, ports, range(3))
        ],
    }
    for subnet in SUBNETS:
        made = tiny(subnet)
        middle = made.resources[2]
        assert middle.count == len(names[subnet])
        for i in (*range(0, middle.count, 7), middle.count - 1):
            assert made.place_name(middle, i) == names[subnet][i]


def test_a_cell_has_the_nodes_of_all_racks() -> None:
    """Groups x devices, whose nodes need not be neighbours."""
    grid = tiny().cell_grid()
    assert np.asarray(grid.cells).tolist() == [
        [[(g * 2 + j) * 3 + m for j in range(2)] for m in range(3)] for g in range(3)
    ]
    assert not grid.contiguous


@pytest.mark.parametrize("subnet", SUBNETS)
@pytest.mark.parametrize(("wavelengths", "launch"), [(1, 10), (12, 10), (64, 10), (12, -100)])
def test_limits_are_those_of_the_largest_machine_that_closes(subnet: str, wavelengths: int, launch: float) -> None:
    """x = J divides the wavelengths; machines of each size by themselves."""
    where = fabric("ramp", groups=1, racks=1, wavelengths=wavelengths, subnet=subnet)
    values = optics(where.light_path.table, "typical", {"launch": launch})
    sizes = []
    for x in (x for x in range(1, wavelengths + 1) if wavelengths % x == 0):
        light = fabric("ramp", groups=x, racks=x, wavelengths=wavelengths, subnet=subnet).light_path
        if chain_of(light, values).closes(light.extremes).all():
            sizes.append(x)
    largest = max(sizes, default=None)
    scale, split = where.limits(values)
    assert (scale.name, scale.value) == ("largest_scale_nodes", largest and largest**2 * wavelengths)
    found = f"{largest**2 * wavelengths:,} nodes (x = J = {largest})" if largest else "none closes"
    assert scale.text == f"largest {subnet} machine with {wavelengths} wavelengths: {found}"
    alone = float(chain_of(where.light_path, values).once_db.sum())
    assert (split.name, split.value, split.text) == ("splitting_db", alone, f"splitting alone loses {alone:.1f} dB")


def test_noise_joins_from_the_gates_that_are_open_towards_a_coupler() -> None:
    """Those of all wavelengths of a subnet, of the racks behind a router, of one rack through a crossbar."""
    for subnet, open_gates in (("broadcast", 3), ("route_broadcast", 2), ("route_switch", 1)):
        amplifiers = [element for element in tiny(subnet).light_path.elements if element.amplifies]
        assert [element.joined for element in amplifiers] == [open_gates, *[1] * (len(amplifiers) - 1)]
        assert len(amplifiers) == 2 + (subnet == "route_switch")
        others = [element for element in tiny(subnet).light_path.elements if not element.amplifies]
        assert {element.joined for element in others} == {1}


def test_shares_of_control_and_the_last_shapes() -> None:
    """Synchronisation less the hidden share; as many device groups as groups are one too many; 1 bit/s is positive."""
    where = tiny(synchronisation=1e-6, control_hidden=0.25)
    assert where.shortest_control_s == where.control_s(np.array([0]), np.array([1])) == pytest.approx(0.75e-6)
    assert where.control_s(np.array([]), np.array([])) == 0.0
    assert shape_at_scale(7**4) is None  # 7 groups of 7 racks of 49
    assert tiny(line_rate=1.0).rate_bits_per_s == 1.0
    large = {"groups": 1024, "racks": 1024, "wavelengths": 1024, "subnet": "route_broadcast"}
    kinds = [element.kind for element in fabric("ramp", **large).light_path.elements]
    assert fabric("ramp", **large).light_path.extremes[0][kinds.index("star")] == 1  # its couplers have 1,024 ports


def shared_by_hand(where: Fabric, rows: list[tuple[int, ...]]) -> dict[str, set[int]]:
    """Rows (src, dst, port, wavelength) that break the rule of one instruction, and whose light meets another sender's."""
    subnet, tuned, meet = where.parameters["subnet"], where.filters == "tunable", where.signals_meet
    control, meeting = set(), set()
    for i, (src, dst, port, light) in enumerate(rows):
        same_tx = [one for one in rows if (one[0], one[2] // 2) == (src, port // 2)]
        same_rx = [one for one in rows if (one[1], one[2] // 2) == (dst, port // 2)]
        if len({one[3] for one in same_tx}) > 1 or len({one[0] // 6 for one in same_rx}) > 1:
            control.add(i)
        if tuned and len({one[3] for one in same_rx}) > 1:
            control.add(i)
        if {one[2] for one in same_tx if one[1] // 6 == dst // 6} != {one[2] for one in same_tx}:
            control.add(i)

        def lights(one: tuple[int, ...]) -> tuple[int, ...]:
            a, b, p, w = one
            place = (a // 3 if subnet == "route_switch" else a // 6, b // 6, p // 2)
            device = () if subnet == "broadcast" else (b % 3,)
            return (*place, *device, *(() if meet or subnet == "route_switch" else (w,)))

        if len({one[0] for one in rows if lights(one) == lights((src, dst, port, light))}) > 1:
            meeting.add(i)
    return {"control_shared": control, "idle_plane_light": meeting}


@pytest.mark.parametrize(
    ("subnet", "receiver"),
    [
        ("broadcast", "fixed"),
        ("broadcast", "tunable"),
        ("broadcast", "none"),
        ("route_broadcast", "tunable"),
        ("route_broadcast", "none"),
        ("route_switch", "none"),
        ("route_switch", "tunable"),
    ],
)
def test_instructions_and_idle_light_by_brute_force(subnet: str, receiver: str) -> None:
    """Random rounds among few nodes: exactly the circuits at fault are named."""
    where = tiny(subnet, receiver=receiver)
    draw = np.random.default_rng(11)
    for _ in range(40):
        few = draw.choice(18, 4, replace=False)
        rows = []
        for _ in range(draw.integers(2, 7)):
            src, dst = draw.choice(few, 2, replace=False).tolist()
            light = dst % 3 if subnet == "broadcast" else (dst - src) % 3
            rows.append((src, dst, int(draw.integers(0, 4)), light))
        src, dst, port, light = np.array(rows).T
        circuits = Circuits.of(np.arange(len(rows)), src, dst, port, light, 1, np.stack([dst // 6, src // 6], axis=1))
        faults = {fault.rule: set(fault.circuits.tolist()) for fault in where.faults(circuits) if len(fault.circuits)}
        due = shared_by_hand(where, rows)
        assert faults == {rule: found for rule, found in due.items() if found}
