"""Netlists of the five systems: element counts against light paths and bills, and where light and the judge differ."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tests.optics.circuit_sets import accepts, both_judges

import opticcl
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job
from opticcl.ir import Circuits, Op, Transfers, concatenate_circuits
from opticcl.ir.netlist import Bundle
from opticcl.ir.programme import DeviceTable
from opticcl.optics.elements import KINDS
from opticcl.optics.emulator import Emulator, Listeners, load
from opticcl.optics.rounds import (
    emulator_of,
    lanes_of,
    needed_settings,
    netlist_of,
    round_light,
    round_settings,
    settings_of,
)

SPECIFICATIONS = [
    "terarack:nodes=9,wavelengths=4", "terarack:nodes=6,wavelengths=3,rings=2",
    "terarack_torus:shape=3x4,wavelengths=4", "terarack_torus:shape=4x3,wavelengths=4,wrap=false",
    "sipac:radix=4,levels=2,wavelengths=8", "sipac:radices=3x5,wavelengths=15", "sipac:radix=3,levels=2,channels=retuned",
    "sipac:radix=4,levels=2,wavelengths=8,channels=ring", "sipac:radices=2x5,wavelengths=10,channels=ring",
    "oddl:shape=4x3", "oddl:shape=16x2", "oddl:shape=33x2",
    "ramp:groups=3,racks=2,wavelengths=6", "ramp:groups=2,racks=2,wavelengths=4,transceivers_per_group=2",
    "ramp:groups=4,racks=2,wavelengths=8,subnet=route_broadcast", "ramp:groups=4,racks=2,wavelengths=4,subnet=route_switch",
    "lightpath:shape=3x10,lasers=4", "lightpath:shape=6x3,waveguides=2,lasers=4",
    "lightpath:shape=3x3,lasers=3,dead_tiles=4,dead_lasers=0:1,dead_waveguides=1-2:38",
    "lightpath:shape=3x10,waveguides=4,lasers=3,switch_unit=waveguide",
]  # fmt: skip


def rounds_of(plan):
    """(transfers, circuits) of every round."""
    for i in range(plan.schedule.num_steps):
        for circuits in plan.rounds(i):
            yield plan.schedule.step(i), circuits


def plan_of(specification, collective="all_to_all"):
    """A plan on a machine."""
    return opticcl.compile(specification, collective, "1 MB").circuits


# --- counts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_light_passes_the_elements_of_the_light_path(specification):
    """Circuit by circuit, element by element."""
    plan = plan_of(specification)
    emulator = emulator_of(plan.fabric)
    everything = concatenate_circuits([circuits for _, circuits in rounds_of(plan)])
    standing = [needed_settings(plan.fabric, emulator.netlist, everything, True)]
    path, seen, differing = plan.fabric.light_path, 0, set()
    for transfers, circuits in rounds_of(plan):
        found = round_light(plan.fabric, emulator, circuits, transfers, standing, count=True)
        assert found.report.ok
        circuit_of = np.full(emulator.netlist.photodiodes.count, -1)
        circuit_of[found.lanes.photodiode] = found.lanes.circuit
        rows = found.report.rows
        circuit = circuit_of[rows.photodiode]
        counted, due = rows.counts[circuit >= 0], path(circuits)[circuit[circuit >= 0]]
        for kind in path.kinds:
            expected = due[:, [element.kind == kind for element in path.elements]].sum(axis=1)
            passed = counted[:, emulator.keys.index(kind)] if kind in emulator.keys else np.zeros(len(expected))
            if (expected != passed).any():
                differing.add(kind)
        seen += len(counted)
    assert seen
    assert set(emulator.keys) <= set(path.kinds)
    assert not differing


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_light_passes_the_hops_of_its_circuit(specification):
    """In their order; the gates of RAMP are no hops that light is traced by."""
    plan = plan_of(specification)
    emulator = emulator_of(plan.fabric)
    everything = concatenate_circuits([circuits for _, circuits in rounds_of(plan)])
    standing = needed_settings(plan.fabric, emulator.netlist, everything, True)
    for transfers, circuits in rounds_of(plan):
        lanes = lanes_of(plan.fabric, circuits, transfers)
        settings = round_settings(plan.fabric, emulator.netlist, circuits, lanes)
        light = emulator.light(emulator.load(DeviceTable.joined([settings, standing])), hops=True)
        paths = np.split(light.hops, light.hop_offsets[1:-1])
        circuit_of = dict(zip(lanes.photodiode.tolist(), lanes.circuit.tolist(), strict=True))
        for photodiode, path in zip(light.photodiode.tolist(), paths, strict=True):
            due = circuits.path(circuit_of[photodiode]).tolist() if photodiode in circuit_of else None
            assert due is None or path.tolist() == due * (not specification.startswith("ramp"))


@pytest.mark.parametrize(
    ("specification", "bill"),
    [
        ("ramp:groups=3,racks=2,wavelengths=6",  # b x^3 stars and 2 b J x^3 ribbons
         "108 tunable_transceiver, 27 star_coupler 12, 108 fibre_ribbon 6"),
        ("ramp:groups=2,racks=2,wavelengths=4,transceivers_per_group=2,receiver=tunable",
         "64 tunable_transceiver, 16 star_coupler 8, 128 tunable_filter, 64 fibre_ribbon 4"),
        ("ramp:groups=4,racks=2,wavelengths=8,subnet=route_broadcast",
         "256 tunable_transceiver, 128 awgr 8, 512 star_coupler 2, 1024 tunable_filter, 256 fibre_ribbon 8"),
        ("ramp:groups=4,racks=2,wavelengths=4,subnet=route_switch",
         "128 tunable_transceiver, 128 awgr 4, 256 soa_crossbar 2, 256 fibre_ribbon 4"),
        ("sipac:radices=3x5,wavelengths=15", "30 comb_transceiver 15, 5 mrr_switch 3, 3 mrr_switch 5, 60 fibre"),
        ("sipac:radix=3,levels=2,channels=ring", "18 comb_transceiver 159, 6 mrr_switch 3, 36 fibre"),
        ("sipac:radix=3,levels=2,channels=retuned", "18 comb_transceiver 160, 6 mrr_switch 3, 36 fibre"),
        ("terarack:nodes=6,wavelengths=3,rings=2", "24 comb_transceiver 3, 24 fibre"),
        ("terarack_torus:shape=2x3,wavelengths=3,wrap=false", "24 comb_transceiver 3, 14 fibre"),
        ("oddl:shape=16x2", "64 tunable_transceiver, 2 wss 16, 16 wss 2, 32 edfa, 128 fibre, 6 control_switch 16"),
        ("oddl:shape=33x2",
         "132 tunable_transceiver, 20 wss 16, 32 wss 5, 33 wss 2, 66 edfa, 264 fibre, 13 control_switch 16"),
        ("oddl:shape=2048",  # five stages: 64 modules at each edge and 64 middles of 2, 64 and 2 modules
         "2048 tunable_transceiver, 384 wss 64, 4096 wss 2, 2048 edfa, 4096 fibre, 896 control_switch 16"),
        ("lightpath:shape=3x10,lasers=4", "30 integrated_tile 4, 1 wafer"),
    ],
)  # fmt: skip
def test_bills_by_hand(specification, bill):
    """Parts of the papers' formulas, worked out by hand for each shape."""
    parts = fabric(specification).parts()
    assert ", ".join(f"{p.count} {p.kind} {p.ports or ''}".strip() for p in parts) == bill


def test_parts_have_the_rate_of_their_machine():
    """A transceiver all lines of its port, a tile one laser."""
    for specification, rate in (
        ("ramp:groups=3,racks=2,wavelengths=6,line_rate=300Gb/s", 300e9),
        ("sipac:radix=4,levels=2,wavelengths=8,node_rate=1Tb/s", 500e9),
        ("terarack:nodes=5,wavelengths=3,wavelength_rate=10Gb/s", 30e9),
        ("oddl:shape=4x3,wavelengths=3,nic_rate=10Gb/s", 30e9),
        ("lightpath:shape=3x3,laser_rate=20Gb/s", 20e9),
    ):
        assert fabric(specification).parts()[0].rate_bits_per_s == rate


def test_counts_are_formulas_at_every_size():
    """RAMP in full: 134 million fibres in 2 million ribbons of 64."""
    netlist = fabric_at_scale("ramp", 65_536).netlist()
    assert netlist.num_elements > 3 * 10**8
    assert sum(group.count for group in netlist.groups if group.kind == "fibre") == 134_217_728
    assert netlist.bill()["fibre_ribbon", 64, 0.0] == 2_097_152
    with pytest.raises(ParameterError, match="input ports of optical elements"):
        netlist.links()


@pytest.mark.parametrize("name", ["ramp", "sipac", "terarack", "terarack_torus", "oddl", "lightpath"])
def test_a_bill_of_many_nodes_makes_no_arrays_of_elements(name):
    """Parts of 32,768 nodes in less memory than a byte a node."""
    made = fabric_at_scale(name, 32_768)
    made.netlist()  # what the fabric keeps of its own is made here
    tracemalloc.start()
    parts = made.parts()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(part.count for part in parts) >= 32_768
    assert most < 32_768


def test_splitting_is_that_of_the_light_path():
    """Loss by division of every circuit: each element with ways, once."""
    for subnet in ("broadcast", "route_broadcast", "route_switch"):
        plan = plan_of(f"ramp:groups=4,racks=2,wavelengths=4,subnet={subnet}", "all_reduce")
        ways = [element.ways for element in plan.fabric.light_path.elements]
        transfers, circuits = next(rounds_of(plan))
        rows = round_light(plan.fabric, emulator_of(plan.fabric), circuits, transfers).report.rows
        assert np.allclose(rows.splitting_db, 10 * np.log10(ways).sum())


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_links_join_ports_once(specification):
    """Names are unique, kinds are known, every place has a name, and a job has the elements of its machine."""
    made = fabric(specification)
    netlist = made.netlist()
    assert len(netlist.position) == len(netlist.groups)
    assert {group.kind for group in netlist.groups} <= KINDS.keys()
    assert netlist.links().shape[0] == 2
    for group in netlist.groups:
        if group.count:
            assert group.place(0) != group.place(group.count - 1) or group.count == 1
            assert group.device_of(np.array([group.count - 1])) == group.num_devices - 1
    assert job(made, [0, 1]).netlist().bill() == netlist.bill()


# --- named readings: where the judge of resources and light differ ----------------------------------------------------------


def verdicts(specification, rows, paths, chunks, waveguide=None):
    """Whether the judge accepts circuits (src, dst, port, wavelength), and whether their light arrives."""
    made = fabric(specification)
    src, dst, port, lo = np.array(rows).T
    ends = np.cumsum([0, *map(len, paths)])
    path = np.concatenate(paths), ends
    circuits = Circuits.of(np.arange(len(rows)), src, dst, port, lo, 1, path, waveguide=waveguide)
    transfers = Transfers.of(src, dst, chunks, 1, Op.COPY)
    accepted, clean = both_judges(made, [(circuits, transfers)])
    assert accepted[0] == accepts(made, circuits, transfers)
    return bool(accepted[0]), bool(clean[0])


def test_a_crossbar_can_feed_two_racks():
    """RAMP route_switch: `usage` gives an input one rack; its splitter and gates could hand one signal to two."""
    made = "ramp:groups=2,racks=2,wavelengths=2,subnet=route_switch"
    rows = [(0, 4, 0, 0), (0, 6, 0, 0)]
    assert verdicts(made, rows, [[1, 0], [1, 0]], [1, 1]) == (False, True)
    assert verdicts(made, rows, [[1, 0], [1, 0]], [1, 2]) == (False, False)
    assert verdicts(made, rows[:1], [[1, 0]], [1]) == (True, True)


def test_planes_of_a_group_with_different_gates():
    """RAMP route_switch, b = 2: ganged gates are open on both planes; a crossbar that is not set lets none of it through."""
    rows = [(4, 6, 2, 0), (4, 2, 3, 0)]
    paths = [[1, 1], [0, 1]]
    shape = "groups=2,racks=2,wavelengths=2,transceivers_per_group=2"
    assert verdicts(f"ramp:{shape},subnet=route_switch", rows, paths, [1, 0]) == (False, True)
    assert verdicts(f"ramp:{shape},subnet=route_broadcast", rows, paths, [1, 0]) == (False, False)


def test_two_planes_of_one_sender_to_devices_of_one_wavelength():
    """RAMP broadcast, b = 2: each receiver's other plane is open too and receives what the sender has for the other one.

    `usage` counts what is on the way and not what an idle plane receives; data without a listener is refused as light.
    """
    rows, paths = [(4, 0, 1, 0), (4, 2, 0, 0)], [[0, 1], [0, 1]]
    shape = "ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=2"
    assert verdicts(shape, rows, paths, [1, 1]) == (True, False)
    assert verdicts(shape, rows[:1], paths[:1], [1]) == (True, True)


def test_waveguides_that_are_switched_as_a_whole():
    """LIGHTPATH switch_unit=waveguide: equal paths share a waveguide, two that part do not; equation 6 takes both."""
    shape = "lightpath:shape=2x2,lasers=2,waveguides=1"
    whole = f"{shape},switch_unit=waveguide"
    for rows, paths, shares in (
        ([(0, 1, 0, 0), (0, 1, 0, 1)], [[0], [0]], True),
        ([(0, 1, 0, 0), (0, 3, 0, 1)], [[0], [0, 6]], False),
    ):
        assert verdicts(shape, rows, paths, [0, 1]) == (True, True)
        assert verdicts(whole, rows, paths, [0, 1], waveguide=0) == (shares, shares)
        assert verdicts(whole, rows, paths, [0, 1]) == (False, False)  # its switches cannot be set


def test_outputs_of_oddl_that_select():
    """ODDL: an output takes a wavelength from one input a job; an output that combines would need no setting."""
    made = fabric("oddl:shape=3")
    netlist = made.netlist()
    combining = replace(
        netlist,
        groups=tuple(replace(group, parameters={}) if group.kind == "wss" else group for group in netlist.groups),
    )
    rounds = [
        (Circuits.of([0], [src], [2], 0, 0, 1, [[0]]), Transfers.of([src], [2], [0], 1, Op.COPY)) for src in (0, 1)
    ]
    both = concatenate_circuits([circuits for circuits, _ in rounds])
    standing = [needed_settings(made, netlist, both, True)]
    for which, ok in ((netlist, [False, False]), (combining, [True, True])):
        emulator = Emulator(which)
        found = [round_light(made, emulator, circuits, transfers, standing).report for circuits, transfers in rounds]
        select = [replace(report, clashes=()) for report in found] if which is combining else found
        assert [report.ok for report in select] == ok


def test_tunable_filters_behind_crossbars():
    """RAMP route_switch: `usage` gives an input one circuit; filters could take two wavelengths of it apart, in two racks."""
    rows, paths = [(0, 4, 0, 0), (1, 6, 0, 1)], [[1, 0], [1, 0]]
    shape = "ramp:groups=2,racks=2,wavelengths=2,subnet=route_switch"
    assert verdicts(f"{shape},receiver=tunable", rows, paths, [0, 1]) == (False, True)
    assert verdicts(shape, rows, paths, [0, 1]) == (False, False)


def test_the_switch_behind_a_laser_is_in_no_formula_of_losses():
    """LIGHTPATH: light of h hops passes h + 1 tiles, and the formula has the two switches of each hop."""
    made = fabric("lightpath:shape=2x3,lasers=2")
    netlist = made.netlist()
    groups = tuple(replace(group, loss={"tile": 1}) if group.name == "tile" else group for group in netlist.groups)
    emulator = Emulator(replace(netlist, groups=groups))
    circuits, transfers = Circuits.of([0], [0], [5], 0, 0, 1, [[0, 4, 10]]), Transfers.of([0], [5], [0], 1, Op.COPY)
    (passed,) = round_light(made, emulator, circuits, transfers, count=True).report.rows.counts
    pieces = dict(zip(emulator.keys, passed.tolist(), strict=True))
    assert (pieces["tile"], pieces["mzi"]) == (4, 6)
    path = made.light_path
    assert "tile" not in path.kinds
    assert path(circuits)[0, path.kinds.index("mzi")] == 6


def test_fixed_filters_behind_routers_that_broadcast():
    """RAMP route_broadcast: what arrives with tunable filters does not with fixed ones, so the fabric refuses them."""
    with pytest.raises(FabricError, match="one sender of each rack; try receiver=tunable"):
        fabric("ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast,receiver=fixed")
    plan = plan_of("ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast", "all_reduce")
    made = plan.fabric
    fixed = {"fixed": lambda element: element // (2 * 2) % 4}
    netlist = made.netlist()
    groups = tuple(replace(g, parameters=fixed) if g.kind == "filter" else g for g in netlist.groups)
    oks = []
    for which in (netlist, replace(netlist, groups=groups)):
        emulator = Emulator(which)
        oks.append(all(round_light(made, emulator, c, t).report.ok for t, c in rounds_of(plan)))
    assert oks == [True, False]


# --- refusals and small netlists ----------------------------------------------------------------------------------------------


def test_fabrics_without_light_have_no_netlist():
    """Packet networks, and systems whose elements are not written down."""
    for name in FABRICS.names():
        made = fabric_at_scale(name, 16)
        if made.netlist() is None:
            with pytest.raises(UnsupportedError, match="netlist"):
                netlist_of(made)
            with pytest.raises(UnsupportedError, match="no netlist"):
                made.ends(Circuits.of([0], [0], [1]))
            assert tuple(made.states(Circuits.of([0], [0], [1]))) == ()
    assert {n for n in FABRICS.names() if fabric_at_scale(n, 16).netlist()} == {
        "lightpath", "ocs", "oddl", "ramp", "sipac", "terarack", "terarack_torus"
    }  # fmt: skip


def test_a_machine_that_is_too_large_names_one_that_fits():
    """Four million ports."""
    with pytest.raises(ParameterError, match="nearest: 1024 nodes"):
        emulator_of(fabric_at_scale("ramp", 4096))
    with pytest.raises(UnsupportedError, match="try sides of at most 1024"):
        emulator_of(fabric("oddl:shape=2048"))


def test_devices_that_do_not_exist():
    """A group, and a number."""
    netlist = fabric("terarack:nodes=3,wavelengths=2").netlist()
    emulator = Emulator(netlist)
    from opticcl.ir.device import SettingUse

    with pytest.raises(ParameterError, match="no elements 'ring'; known: transmitter, add"):
        settings_of(netlist, [SettingUse("ring", np.array([0]), np.array([1]))])
    with pytest.raises(ParameterError, match="drop:6 is not a device; drop has 0 to 5"):
        emulator.load(settings_of(netlist, [SettingUse("drop", np.array([6]), np.array([1]))]))


@pytest.mark.parametrize(("outputs", "inputs", "text"), [
    ([0, 0], [0, 1], "two links at one output"), ([0, 1], [0, 0], "two links at one input"),
    ([6], [0], "a port that transmitter does not have"),
])  # fmt: skip
def test_links_that_cannot_be(outputs, inputs, text):
    """Two at one port, and a port that does not exist."""
    netlist = fabric("terarack:nodes=3,wavelengths=2").netlist()
    wrong = replace(netlist, bundles=lambda: [Bundle("transmitter", np.array(outputs), "add", np.array(inputs))])
    with pytest.raises(FabricError, match=text):
        wrong.links()


def test_a_report_counts_what_arrives():
    """Dark, another signal, stray data and idle light, each where it is."""
    netlist = fabric("sipac:radix=2,levels=1,wavelengths=2").netlist()
    emulator = Emulator(netlist)
    none = Listeners(*(np.zeros(0, np.int64) for _ in range(3)))
    report = emulator.run(settings_of(netlist, []), none)
    assert (report.ok, report.idle, len(report.stray)) == (True, 4, 0)
    from opticcl.ir.device import SettingUse

    sent = settings_of(netlist, [SettingUse("modulator", np.array([0]), np.array([7]), within=np.array([1]))])
    report = emulator.run(sent, none)
    assert (report.ok, report.idle, report.stray.tolist()) == (False, 3, [3])
    report = emulator.run(sent, Listeners(np.array([3]), np.array([1]), np.array([8])))
    assert (report.ok, report.wrong.tolist(), report.received.tolist()) == (False, [0], [7])


@pytest.mark.parametrize("seed", range(8))
def test_settings_are_loaded_as_into_a_dictionary(seed):
    """Of each device and index the first state is held, and the first other one clashes with it."""
    netlist, random, n = fabric("terarack:nodes=3,wavelengths=2").netlist(), np.random.default_rng(seed), 5 * seed
    kind = random.choice([netlist.position["add"], netlist.position["drop"]], n)
    device, index, setting = (random.integers(0, most, n) for most in (6, 2, 2))
    rows = DeviceTable.of(kind=kind, device=device, index=index, setting=setting, owner=np.arange(n))
    held, clashes = {}, {}
    for row, place in enumerate(zip(kind.tolist(), device.tolist(), index.tolist(), strict=True)):
        first = held.setdefault(place, row)
        if setting[row] != setting[first]:
            clashes.setdefault(place, (first, row))
    loaded = load(netlist, rows)
    found = {(one.group, one.number, one.index): one.owners for one in loaded.clashes}
    assert found == clashes
    for position in range(len(netlist.groups)):
        columns = (column.tolist() for column in loaded.held(position))
        states = {(position, number, place): value for number, place, value in zip(*columns, strict=True)}
        assert states == {key: setting[row] for key, row in held.items() if key[0] == position}
