"""ODDL: shapes, links, control plane, and what its hardware refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError
from opticcl.fabrics import _failures, fabric, fabric_at_scale
from opticcl.fabrics.oddl import Oddl, dimension_between, modules_passed, ring_order, switches_per_dimension
from opticcl.ir import CircuitPlan, Circuits
from opticcl.optics.values import optics
from opticcl.schedule import generate
from opticcl.verify import verify


@pytest.mark.parametrize(
    ("shape", "nodes", "wavelengths", "switches"),
    [
        ("32x32", 1024, 5, (32, 32)),
        ("16x16x16", 4096, 4, (256, 256, 256)),
        ("8x8x8", 512, 3, (64, 64, 64)),
        ("8x8x16", 1024, 4, (128, 128, 64)),
        ("256", 256, 8, (1,)),
        ("5", 5, 3, (1,)),
        ("1", 1, 1, (1,)),
    ],
)
def test_numbers_of_the_paper(shape: str, nodes: int, wavelengths: int, switches: tuple[int, ...]) -> None:
    """Nodes, wavelengths of a NIC and switches of the grids of section 3.C, 8x8x8 and 16x16x16 corrected."""
    made = fabric("oddl", shape=shape)
    assert (made.num_nodes, made.num_wavelengths) == (nodes, wavelengths)
    assert made.ports_per_node == len(switches)
    assert switches_per_dimension(made.parameters["shape"]) == switches


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (1, (1,)),
        (2, (2,)),
        (32, (32,)),
        (64, (8, 8)),
        (128, (8, 16)),
        (1024, (32, 32)),
        (2048, (8, 16, 16)),
        (4096, (16, 16, 16)),
        (32768, (32, 32, 32)),
    ],
)
def test_shape_at_scale(nodes: int, shape: tuple[int, ...]) -> None:
    """The grid nearest to a square with sides up to 32, and the whole rate of a node where one is asked for."""
    made = fabric_at_scale("oddl", nodes, 1e12)
    assert made.parameters["shape"] == shape
    assert made.node_rate_bits_per_s == pytest.approx(1e12)


@pytest.mark.parametrize(("nodes", "near"), [(3, "2 or 4"), (1000, "512 or 1024"), (65536, "32768"), (10**9, "32768")])
def test_sizes_that_do_not_exist(nodes: int, near: str) -> None:
    """Other than powers of two up to 32 x 32 x 32 are refused, with the nearest."""
    with pytest.raises(FabricError, match=f"{nodes} nodes .* nearest: {near}$"):
        fabric_at_scale("oddl", nodes)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("shape=2x2x2x2", "shape=2x2x2x2 has 4 dimensions, 1 to 3 exist; nearest: 2x2x4"),
        ("wavelengths=0", "wavelengths=0; a switch takes 1 to 96, nearest: wavelengths=1"),
        ("wavelengths=97", "wavelengths=97; a switch takes 1 to 96, nearest: wavelengths=96"),
        ("control_radix=15", "control_radix=15 is not an even number of at least 2; nearest: 14 or 16"),
        ("control_radix=-4", "nearest: 2"),
        ("nic_rate=0b/s", "nic_rate must be positive"),
        ("reconfiguration=-1s", "not negative"),
    ],
)
def test_bad_parameters_are_refused(arguments: str, text: str) -> None:
    """One line that names the field, its value and what to try."""
    with pytest.raises(FabricError, match=text):
        fabric(f"oddl:{arguments}")


@pytest.mark.parametrize(
    "shape", ["2", "3", "7", "2x2", "2x3", "3x3", "3x5", "1x5x1", "4x1", "3x4x5", "3x3x3", "2x2x2", "5x2x7", "32x32"]
)
def test_ring_order_is_a_cycle_of_single_hops(shape: str) -> None:
    """Every node once, neighbours linked, the last and the first too."""
    made = fabric("oddl", shape=shape)
    order = made.ring_order()
    assert sorted(order) == list(range(made.num_nodes))
    assert made.linked(order, np.roll(order, -1)).all()
    assert order[0] == 0


def test_linked_is_one_coordinate() -> None:
    """One hop joins nodes that differ in one coordinate alone; a node is not linked to itself."""
    linked = fabric("oddl:shape=2x3x4").linked
    coordinates = np.stack(np.unravel_index(np.arange(24), (2, 3, 4)), axis=1)
    differing = (coordinates[:, None] != coordinates[None]).sum(axis=2)
    node = np.arange(24)
    assert np.array_equal(linked(node[:, None], node[None]), differing == 1)


def test_mean_hops_of_the_control_tree() -> None:
    """Equation 1 at 1024 nodes: 4.863 switches over all pairs, 3.2 over the partners of halving-doubling."""
    made = fabric("oddl:control_switch_delay=0.5s")  # two exchanges at half a second a switch: seconds are hops
    assert made.control_s is not None
    hops = [made.control_s(np.array([0]), np.array([other])) for other in range(1, 1024)]
    assert np.mean(hops) == pytest.approx(4.863, abs=5e-4)
    assert np.mean([hops[(1 << bit) - 1] for bit in range(10)]) == pytest.approx(3.2)


def test_control_waits_for_the_farthest_pair() -> None:
    """A step takes as long as its longest exchange; a step without transfers takes none."""
    made = fabric("oddl")
    assert made.control_s is not None
    assert made.control_s(np.array([0, 8]), np.array([7, 15])) == pytest.approx(10e-6)
    assert made.control_s(np.array([0, 0]), np.array([7, 63])) == pytest.approx(30e-6)
    assert made.control_s(np.array([0, 0]), np.array([7, 64])) == pytest.approx(50e-6)
    assert made.control_s(np.zeros(0, np.int32), np.zeros(0, np.int32)) == 0


def _alone(*circuits: tuple[int, int, int, int]) -> set[str]:
    """Rules that (round, src, dst, wavelength) on one switch of four ports break."""
    where = fabric("oddl:shape=4,wavelengths=4")
    schedule = generate("recursive_doubling", "all_reduce", where)
    rows = np.array(circuits)

    def rounds(i: int) -> tuple[Circuits, ...]:
        if i:
            return ()
        picked = [rows[rows[:, 0] == number] for number in np.unique(rows[:, 0])]
        return tuple(
            Circuits.of(np.arange(len(r)), r[:, 1], r[:, 2], 0, r[:, 3], 1, np.zeros((len(r), 1))) for r in picked
        )

    physics = {"transmitter_shared", "receiver_shared", "switch_reset"}
    return {v.rule for v in verify(CircuitPlan(where, schedule, rounds)).violations} & physics


@pytest.mark.parametrize(
    ("circuits", "rules"),
    [
        ([(0, 0, 1, 0), (0, 1, 2, 0), (0, 2, 0, 0)], set()),  # one wavelength, three inputs, three outputs
        ([(0, 0, 1, 0), (0, 0, 2, 1)], {"transmitter_shared"}),  # a NIC has one partner at a time
        ([(0, 0, 2, 0), (0, 1, 2, 1)], {"receiver_shared"}),
        ([(0, 0, 1, 0), (1, 0, 2, 1)], set()),  # retuned between rounds
        ([(0, 0, 1, 0), (1, 0, 2, 0)], {"switch_reset"}),  # the input would have to be set again
        ([(0, 0, 2, 0), (1, 1, 2, 0)], {"switch_reset"}),  # and the output
    ],
)
def test_physics_of_one_switch(circuits: list[tuple[int, int, int, int]], rules: set[str]) -> None:
    """Exclusive NICs in a round, one setting of the switch for the whole job."""
    assert _alone(*circuits) == rules


# --- circuits of one switch -------------------------------------------------------------------------------------------


# --- every NIC and switch, line by line -------------------------------------------------------------------------------


def _lines(shape: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """(dimension, nodes) of every switch: nodes that differ in that coordinate alone, in the order of the first of them."""
    grid = np.arange(np.prod(shape)).reshape(shape)
    found = []
    for d, side in enumerate(shape):
        lines = np.moveaxis(grid, d, -1).reshape(-1, side).tolist()
        found += [(d, tuple(line)) for line in sorted(lines)]
    return found


def _every_pair(shape: tuple[int, ...]) -> Circuits:
    """A circuit between all nodes of each line, both ways."""
    rows = [(d, a, b) for d, line in _lines(shape) for a in line for b in line if a != b]
    dimension, src, dst = np.array(rows).reshape(-1, 3).T
    return Circuits.of(np.arange(len(src)), src, dst, dimension, 0, 1, dimension[:, None])


@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, 2, 4)])
def test_a_stuck_switch_leads_light_that_many_ports_further(shape: tuple[int, ...]) -> None:
    """Whatever switch it is: of the circuits that pass it, those to the port that many further in a circle work."""
    circuits = _every_pair(shape)
    for number, (_, line) in enumerate(_lines(shape)):
        for value in range(1, len(line)):
            where = fabric("oddl", shape=shape, failed=f"switch:{number}:stuck={value}")
            (fault,) = (f for f in where.part_faults(circuits) if len(f.circuits) or f.expected.startswith("a stuck"))
            due = [
                row
                for row, (a, b) in enumerate(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True))
                if a in line and b in line and line.index(b) != (line.index(a) + value) % len(line)
            ]
            assert (fault.rule, fault.circuits.tolist()) == ("part_failed", due)
        for value in (0, len(line)):
            with pytest.raises(
                FabricError,
                match=rf"(ports further; nearest: stuck=(1|{len(line) - 1})|settings of a switch are 0 to {len(line) - 1})$",
            ):
                fabric("oddl", shape=shape, failed=f"switch:{number}:stuck={value}")
    assert not [f for f in fabric("oddl", shape=shape).part_faults(circuits) if len(f.circuits)]


@pytest.mark.parametrize("shape", [(4,), (2, 3), (3, 2, 4)])
def test_circuits_use_their_nics_fibres_and_switch(shape: tuple[int, ...]) -> None:
    """NIC d of node i is number i D + d; control switches of 4 ports hold two nodes each."""
    where, circuits, sides = fabric("oddl", shape=shape, control_radix=4), _every_pair(shape), len(shape)
    src, dst, d = (column.astype(int).tolist() for column in (circuits.src, circuits.dst, circuits.port))
    sender = [a * sides + k for a, k in zip(src, d, strict=True)]
    receiver = [b * sides + k for b, k in zip(dst, d, strict=True)]
    lines = _lines(shape)
    switch = [next(i for i, (e, line) in enumerate(lines) if e == k and a in line) for a, k in zip(src, d, strict=True)]
    found: dict[str, list[list[int]]] = {}
    for use in where.parts_used(circuits):
        found.setdefault(use.kind, []).append(np.asarray(use.part).tolist())
    assert found == {
        "node": [src, dst],
        "transmitter": [sender],
        "receiver": [receiver],
        "input_fibre": [sender],
        "output_fibre": [receiver],
        "switch": [switch],
        "control_switch": [[a // 2 for a in src], [b // 2 for b in dst]],
    }
    n = where.num_nodes
    kinds = [(kind.kind, kind.count, kind.settings, kind.weakens) for kind in where.inventory()]
    nics = [(name, n * sides, 0, True) for name in ("transmitter", "receiver", "input_fibre", "output_fibre")]
    switches = [("switch", len(lines), max(shape), True), ("control_switch", -(-n // 2), 0, False)]
    assert kinds == [("node", n, 0, True), *nics, *switches]
    tx, rx, wss = where.resources
    assert (tx.count, rx.count, wss.count, wss.once_per_job) == (n * sides, n * sides, 2 * n * sides, True)
    used = [
        (use.index.tolist(), None if use.setting is None else use.setting.tolist()) for use in where.usage(circuits)
    ]
    outputs = [n * sides + port for port in receiver]
    assert used == [(sender, None), (receiver, None), (sender, dst), (outputs, src)]


def test_devices_are_set_to_wavelengths_and_partners() -> None:
    """On 2 x 3 nodes with 4 wavelengths, 0 -> 2 on wavelengths 1 and 2, 4 -> 1 on wavelength 3."""
    where = fabric("oddl:shape=2x3,wavelengths=4,reconfiguration=3us")
    assert [(d.kind, d.count, d.setting_time_s, d.once_per_job) for d in where.devices] == [
        ("laser", 12, 3e-6, False),
        ("receiver", 12, 3e-6, False),
        ("wss", 48, 0.0, True),
    ]
    circuits = Circuits.of([0, 1], [0, 4], [2, 1], [1, 0], [1, 3], [2, 1], np.array([[1], [0]]))
    laser, receiver, wss = where.settings(circuits)
    assert laser.index.tolist() == [1, 8]
    assert receiver.index.tolist() == [5, 2]
    assert receiver.setting.tolist() == [0, 4]
    assert wss.index.tolist() == [4 + 1, 4 + 2, 32 + 3]
    assert wss.setting.tolist() == [2, 2, 1]
    every = [(lo, n) for lo in range(4) for n in range(1, 5 - lo)]
    lo, n = np.array(every).T
    tuned = Circuits.of(
        np.arange(len(lo)), np.zeros(len(lo), int), np.ones(len(lo), int), 1, lo, n, np.ones((len(lo), 1))
    )
    assert len(np.unique(next(iter(where.settings(tuned))).setting)) == len(every)


def test_one_wavelength_has_no_neighbour() -> None:
    """What lies between the wavelengths of a circuit matters from two on."""
    where = fabric("oddl:shape=4,wavelengths=4")
    for n, due in ((1, []), (2, [0])):
        circuits = Circuits.of([0], [0], [1], 0, 0, n, np.zeros((1, 1)), wavelength_step=2)
        assert [row for fault in where.faults(circuits) for row in fault.circuits.tolist()] == due


def test_a_node_has_one_partner_a_dimension() -> None:
    """At the rate of all wavelengths of its NIC; light does not turn from one switch into another."""
    where = fabric("oddl:shape=2x3,wavelengths=4,nic_rate=10Gb/s")
    axes = [(a.name, a.coordinate.tolist(), a.rate_bits_per_s, a.partners) for a in where.axes(np.arange(6))]
    assert axes == [("dimension 0", [0, 0, 0, 1, 1, 1], 40e9, 1), ("dimension 1", [0, 1, 2, 0, 1, 2], 40e9, 1)]
    assert not where.links_all
    names = [where.place_name(where.resources[2], index) for index in (0, 3, 12, 23)]
    assert names == [
        f"{side} for {where.node_name(node)} of its switch of dimension {d}"
        for side, node, d in (("input", 0, 0), ("input", 1, 1), ("output", 0, 0), ("output", 5, 1))
    ]


@pytest.mark.parametrize("at_once", [1 << 12, 5])
@pytest.mark.parametrize("table", [256, 6, 5])
def test_links_pass_no_dead_part(table: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NIC that sends, one that receives and a switch of 2 x 3 nodes are dead: what is left, from a table or pair by pair."""
    monkeypatch.setattr(_failures, "MOST_NODES_OF_TABLE", table)
    monkeypatch.setattr(_failures, "PAIRS_AT_ONCE", at_once)
    where = fabric("oddl:shape=2x3,failed=transmitter:1+receiver:4+switch:4")  # NIC 1 of node 0, NIC 0 of node 2, row 1
    node = np.arange(6)
    due = {(a, b) for _, line in _lines((2, 3)) for a in line for b in line if a != b and line != (3, 4, 5)}
    due -= {(0, 1), (0, 2), (5, 2)}
    assert {tuple(pair) for pair in np.argwhere(where.linked(node[:, None], node[None])).tolist()} == due
    assert where.joined_around(node, node).all()
    assert where.joined_around(np.array([0, 3]), np.array([1, 0])).tolist() == [False, True]
    assert fabric("oddl:shape=2x3").joined_around(node[:, None], node[None]).all()


def test_ring_order_leads_around_dead_parts() -> None:
    """A closed order over links that work; without failures, or where none is found, the order of the shape."""
    whole = fabric("oddl:shape=3x3").ring_order()
    for nic in range(18):
        where = fabric("oddl", shape=(3, 3), failed=f"transmitter:{nic}")
        order = where.ring_order()
        assert sorted(order) == list(range(9))
        assert where.linked(order, np.roll(order, -1)).all()
        works = where.linked(whole, np.roll(whole, -1)).all()
        assert np.array_equal(order, whole) == works
    alone = fabric("oddl:shape=3,failed=transmitter:0")
    assert np.array_equal(alone.ring_order(), fabric("oddl:shape=3").ring_order())


@pytest.mark.parametrize(
    ("shape", "radix", "switches"),
    [("16", 16, 1), ("17", 16, 4), ("16x8", 16, 24), ("32x32", 16, 320), ("2x4", 4, 6), ("9", 4, 12), ("5", 2, 3)],
)
def test_control_switches_of_a_folded_clos(shape: str, radix: int, switches: int) -> None:
    """2 l - 1 ports a node, l layers of switches hold radix (radix / 2)^(l - 1) nodes; with two ports there is one layer."""
    where = fabric(f"oddl:shape={shape},control_radix={radix}")
    *others, control = where.parts()
    assert (control.kind, control.count, control.ports) == ("control_switch", switches, radix)
    assert "transmitter" not in control.kind
    assert len(others) > 0


def test_control_that_is_hidden_takes_no_time() -> None:
    """Two exchanges of 1 s a switch, a quarter of them hidden; a share above 1 is refused."""
    where = fabric("oddl:shape=4,control_switch_delay=1s,control_hidden=0.25")
    assert where.shortest_control_s == 1.5 == where.control_s(np.array([0]), np.array([1]))
    with pytest.raises(FabricError, match="control_hidden=2"):
        fabric("oddl:control_hidden=2")
    assert fabric("oddl:control_switch_delay=0s,reconfiguration=0s,control_radix=2").shortest_control_s == 0
    with pytest.raises(FabricError, match="not negative"):
        fabric("oddl:control_switch_delay=-1s")
    with pytest.raises(FabricError, match=r"nearest: 2$"):
        fabric("oddl:control_radix=1")
    with pytest.raises(FabricError, match=r"nearest: 2 or 4$"):
        fabric("oddl:control_radix=3")


@pytest.mark.parametrize(("rack", "near"), [(1, []), (3, [2]), (6, [1, 2]), (12, [1, 2]), (24, [0, 1, 2])])
def test_lines_within_a_rack_need_no_fibre_through_the_centre(rack: int, near: list[int]) -> None:
    """4 x 2 x 3 nodes in racks of some: dimension 2 joins 3 nodes in a row, dimension 1 two such rows, dimension 0 all."""
    floor = replace(assumptions("common").floor, nodes_per_rack=rack)
    where = fabric("oddl:shape=4x2x3")
    far = floor.through_centre_m(24)
    due = [2 * floor.in_rack_m if d in near else far for d in range(3)]
    assert np.asarray(where.hop_passages(floor).fibre_m).tolist() == due
    assert where.passage(floor).receivers == 1
    grid = where.cell_grid()
    assert (grid.cells.shape, grid.contiguous) == ((4, 2, 3, 1), False)


def test_modules_of_a_switch() -> None:
    """One module of 8, 16 or 32 ports where one is large enough, else a Clos: three stages of the smallest, or of 32 ports."""
    due = {
        1: (8, 1),
        8: (8, 1),
        9: (16, 1),
        16: (16, 1),
        17: (32, 1),
        32: (32, 1),
        64: (8, 3),
        65: (16, 3),
        8192: (32, 5),
    }
    assert {ports: modules_passed(ports) for ports in due} == due


def test_options_bond_all_wavelengths() -> None:
    """From the first on, by the one NIC that leads to the node; none to nodes that differ in two coordinates."""
    where = fabric("oddl:shape=2x3,wavelengths=4")
    src, dst = np.divmod(np.arange(36), 6)
    found = where.options(src, dst)
    due = {(a, b, d) for d, line in _lines((2, 3)) for a in line for b in line if a != b}
    rows = found.circuits
    assert {*zip(rows.src.tolist(), rows.dst.tolist(), rows.port.tolist(), strict=True)} == due
    assert len(rows) == len(due)
    assert found.choice.tolist() == list(range(len(due)))
    assert (rows.wavelength_lo == 0).all()
    assert (rows.wavelength_n == 4).all()
    assert not any(len(fault.circuits) for fault in where.faults(rows))
    assert Oddl.example() == (fabric("oddl:shape=2x4"), "halving_doubling")
    assert fabric("oddl:nic_rate=1b/s").rate_bits_per_s == 1


def test_dimensions_between_and_order() -> None:
    """-1 where none or several coordinates differ; a side of 1 does not change the order."""
    assert dimension_between((2, 3), np.array([0, 0, 0, 0]), np.array([0, 1, 3, 4])).tolist() == [-1, 1, 0, -1]
    for shape in ((4, 1), (1, 4), (2, 1, 3)):
        assert ring_order(shape).tolist() == ring_order(tuple(side for side in shape if side > 1)).tolist()


def test_options_in_rows() -> None:
    """Rows of a choice."""
    rows = Circuits.of(np.arange(6), np.zeros(6, int), np.ones(6, int))
    assert _failures.options_of_pairs(rows).choice.tolist() == [0, 1, 2, 3, 4, 5]
    assert _failures.options_of_pairs(rows, 2).choice.tolist() == [0, 0, 1, 1, 2, 2]


def test_margins_of_switches() -> None:
    """From 4.5 dBm to -10.5 dBm over 0.1 dB of fibre: 6.8 dB of 8 ports, 25 dB of 32, three of 8 ports make 64."""
    where = fabric("oddl")

    def margins(*given: object) -> list[tuple[str, float | None, str]]:
        return [
            (x.name, x.value and round(x.value, 6), x.text)
            for x in where.limits(optics(where.light_path.table, *given))
        ]

    eight = ("margin_8_ports_db", 8.1, "8 ports (1 x wss8): margin +8.1 dB without amplifier")
    assert margins() == [
        eight,
        ("margin_16_ports_db", None, "16 ports: no value for wss16.loss"),
        (
            "margin_32_ports_db",
            -10.1,
            "32 ports (1 x wss32): margin -10.1 dB without amplifier: an amplifier is needed",
        ),
        ("margin_64_ports_db", -5.5, "64 ports (3 x wss8): margin -5.5 dB without amplifier: an amplifier is needed"),
    ]
    assert margins("amplified") == [
        eight,
        ("margin_16_ports_db", 1.0, "16 ports (1 x wss16): margin +1.0 dB without amplifier"),
        ("margin_32_ports_db", -6.1, "32 ports (1 x wss32): margin -6.1 dB without amplifier, closes with 1 of 20 dB"),
        ("margin_64_ports_db", -5.5, "64 ports (3 x wss8): margin -5.5 dB without amplifier, closes with 1 of 20 dB"),
    ]
    assert margins("amplified", {"sensitivity": "40dBm"})[2][2].endswith(
        ", and no number of amplifiers of 20 dB closes it"
    )
    just = margins("typical", {"sensitivity": "-2.4dBm"})[0], margins("amplified", {"sensitivity": "-9.5dBm"})[1]
    assert [text for *_, text in just] == [
        "8 ports (1 x wss8): margin +0.0 dB without amplifier",
        "16 ports (1 x wss16): margin +0.0 dB without amplifier",
    ]


def test_light_of_a_mean_path() -> None:
    """Paths of dimensions in proportion to the partners in them: of 8 x 2 nodes 7 and 1; an amplifier above 8 ports."""
    path = fabric("oddl:shape=8x2").light_path
    longest, typical = path.extremes, path.typical
    assert typical == pytest.approx((7 * longest[0] + longest[1]) / 8)
    path = fabric("oddl:shape=16x2").light_path
    kinds = [element.kind for element in path.elements]
    assert path.extremes[:, kinds.index("edfa")].tolist() == [1, 0]
    assert path.typical == pytest.approx((15 * path.extremes[0] + path.extremes[1]) / 16)
    assert [element.kind for element in path.elements if element.amplifies] == ["edfa"]
    assert fabric("oddl:shape=1").light_path.typical.tolist() == fabric("oddl:shape=1").light_path.extremes[0].tolist()


def test_states_of_a_circuit_by_hand() -> None:
    """From node 5 to node 7 of 2 x 4 nodes on wavelength 1: the second switch of dimension 1, from input 1 to output 3."""
    where = fabric("oddl", shape=(2, 4), wavelengths=4)
    one = Circuits.of([0], [5], [7], 1, 1, 1, [[1]])
    laser, receiver, into, out = (use for use in where.states(one) if len(use.index))
    assert (laser.kind, laser.index.tolist()) == ("laser", [2 * 5 + 1])
    assert (receiver.kind, receiver.index.tolist(), receiver.setting.tolist()) == ("receiver", [2 * 7 + 1], [5])
    assert (into.kind, into.index.tolist(), into.setting.tolist()) == ("wss1", [1], [3])
    assert (out.kind, out.index.tolist(), out.setting.tolist()) == ("wss1", [1], [1])
    assert into.within is not None
    assert out.within is not None
    assert (into.within.tolist(), out.within.tolist()) == ([1 * 4 + 1], [(4 + 3) * 4 + 1])
