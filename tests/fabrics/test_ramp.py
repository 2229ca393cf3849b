"""RAMP's ports and light: the paper's numbers, which shapes exist, what circuits may and may not share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opticcl.collective import collective
from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir import CircuitPlan, Circuits, Fabric, Op, Schedule, Transfers
from opticcl.verify.light import check_light

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
