"""Budgets of every optical fabric: the papers' numbers, the limits that follow, and the time to compute them."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opticcl.circuits import lower
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.estimate.budget import budget, plan_budget
from opticcl.fabrics import fabric, fabric_at_scale, light_table
from opticcl.optics.values import optics
from opticcl.plans.limits import limits
from opticcl.schedule import generate
from opticcl.schedule.wrht import longest_lightpath
from opticcl.verify.light.budget import check_budget

OPTICAL = ("lightpath", "ocs", "oddl", "ramp", "sip_ring", "sipac", "terarack", "terarack_torus", "topoopt")


def of(spec, preset="literal", which="worst", **settings):
    """Budget of a fabric, settings with _ for the dot."""
    made = fabric(spec)
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return budget(made, optics(made.light_path.table, preset, given), which)


def limit(spec, name, preset="literal", **settings):
    """One limit of a fabric."""
    made = fabric(spec)
    given = {key.replace("__", "."): value for key, value in settings.items()}
    return next(x.value for x in limits(made, optics(made.light_path.table, preset, given)) if x.name == name)


def test_oddls_link_budget():
    """Section 3.C and notes O11 to O13: 6.9 dB and +8.1 dB; -2.1 to -10.1 dB; the Clos 20.5 dB and -5.5 dB."""
    eight = of("oddl:shape=8x8x8")
    assert (eight.loss_db, eight.margin_db, eight.closes) == (pytest.approx(6.9), pytest.approx(8.1), True)
    assert [of("oddl", wss32__loss=loss).margin_db for loss in (17, 25)] == pytest.approx([-2.1, -10.1])
    clos = of("oddl:shape=64")
    assert (clos.loss_db, clos.margin_db, clos.closes) == (pytest.approx(20.5), pytest.approx(-5.5), False)
    assert of("oddl", "amplified").closes
    assert "edfa" not in [line.element for line in of("oddl:shape=8x8", "amplified").lines]  # nor in the bill


def test_the_dimension_that_loses_most_decides():
    """8 x 32: the switches of 32 ports."""
    found = of("oddl:shape=8x32")
    assert "dimension 1" in found.path
    assert found.margin_db == pytest.approx(-10.1)
    assert "dimension 0" in of("oddl:shape=64x32", wss32__loss=6).path  # there the three modules of the Clos are worse


def test_ramp_lacks_what_the_paper_leaves_out():
    """All of it in one line; notes RAMP-4-budget: splitting alone is 63.2 dB."""
    with pytest.raises(ParameterError, match=r"no launch, modulator\.loss, splitter\.loss, soa_gate\.gain"):
        of("ramp")
    assert limit("ramp", "splitting_db", "typical") == pytest.approx(15.05 + 33.11 + 15.05, abs=0.01)


def test_ramps_largest_scale_with_assumed_and_fitted_amplifiers():
    """Fitted: 65,536 and no more; assumed: a quarter. More gain alone does not help where amplifiers saturate."""
    assert limit("ramp", "largest_scale_nodes", "fitted") == 65536
    assert limit("ramp", "largest_scale_nodes", "typical") == 16384
    assert limit("ramp", "largest_scale_nodes", "typical", soa_gate__gain=60) == 16384
    assert limit("ramp", "largest_scale_nodes", "typical", launch=-100) is None


def test_ramps_path_by_hand():
    """10 - 6 - (15.05 + 1) + 27 - 0.02 - (33.11 + 2) - 0.02 - 1 + 27 - (15.05 + 1) dBm."""
    found = of("ramp", "typical")
    assert found.received_dbm == pytest.approx(10 - 6 - 16.051 + 27 - 0.02 - 35.113 - 0.02 - 1 + 27 - 16.051, abs=0.01)
    assert found.lowest_dbm == pytest.approx(-21.2, abs=0.01)
    assert found.margin_db == pytest.approx(-1.2, abs=0.01)  # the floor decides, not the detector
    assert found.optical_snr_db == pytest.approx(19.8, abs=0.1)


@pytest.mark.parametrize("preset", ["typical", "fitted"])
@pytest.mark.parametrize("switches", ["ecs", "eps"])
def test_light_of_ramp_ends_at_electrical_switches(switches, preset):
    """The span from a node by hand; the one to a node, whose light is amplified before it is split, has no less margin."""
    found, values = of(f"ramp:switches={switches}", preset), optics(light_table("ramp"), preset)
    gain, most = values.get("soa_gate.gain"), values.get("soa_gate.output")
    before = 10 - 6 - (10 * math.log10(32) + 1)
    assert found.lowest_dbm == pytest.approx(before)
    assert found.received_dbm == pytest.approx(min(before + gain, most) - 0.02)
    assert found.margin_db == pytest.approx(min(found.received_dbm + 15, before + 20))
    at_gate = 10 - 6 - 0.02
    arrived = min(at_gate + gain, most) - (10 * math.log10(32) + 1)
    assert found.margin_db <= min(arrived + 15, min(at_gate, arrived) + 20)
    assert found.joined_amplifiers == 1


@pytest.mark.parametrize(
    ("subnet", "joined", "snr_db"), [("broadcast", 64, 21.6), ("route_broadcast", 32, 24.8), ("route_switch", 1, 39.2)]
)
def test_a_star_joins_the_noise_of_open_gates(subnet, joined, snr_db):
    """By hand: the gates' noise, 6 dB above h f B, over their inputs; that of the sender's gate once for each open gate."""
    found = of(f"ramp:subnet={subnet}", "fitted")
    assert found.joined_amplifiers == joined
    assert found.optical_snr_db == pytest.approx(snr_db, abs=0.1)
    values, before, noise_w = optics(light_table("ramp"), "fitted"), found.launch_dbm, 0.0
    figure = values.get("soa_gate.noise")
    quantum_dbm = 10 * math.log10(6.62607015e-34 * 193.4e12 * 12.5e9 / 1e-3)
    gates = 0
    for line in found.lines:
        if line.element == "soa_gate":
            many = joined if gates == 0 else 1
            noise_w += many * 10 ** ((figure + quantum_dbm - before) / 10)
            gates += 1
        before = line.power_dbm
    assert found.optical_snr_db == pytest.approx(-10 * math.log10(noise_w), abs=0.1)


@pytest.mark.parametrize(("way", "shape"), [("x", "1x{}"), ("y", "{}x1")])
@pytest.mark.parametrize("fibre_db", [0.0, 3.0, 20.0])
def test_lightpaths_reach_counts_fibres_between_wafers(way, shape, fibre_db):
    """A line of one tile more than the reach closes, and no longer one does: the verdict and the reach agree."""
    reach = limit("lightpath:shape=1x12", f"reach_{way}_tiles", "typical", board_fibre__loss=fibre_db)
    budgets = [
        of(f"lightpath:shape={shape.format(tiles)}", "typical", board_fibre__loss=fibre_db)
        for tiles in (reach + 1, reach + 2)
    ]
    assert [found.closes for found in budgets] == [True, False]


def test_lightpaths_losses():
    """Notes L23: 1.25 and 2.25 dB a hop, 15.5 dB across a wafer, 8 and 4 tiles for 10 dB."""
    alone = {"launch": 0, "sensitivity": -10, "modulator__loss": 0, "mzi__loss": 0}
    losses = [of(f"lightpath:shape={shape}", **alone).loss_db for shape in ("1x2", "2x1", "4x8")]
    assert losses == pytest.approx([1.25, 2.25, 15.5])
    assert [limit("lightpath:shape=4x8", f"reach_{way}_tiles", **alone) for way in "xy"] == [8, 4]


def test_a_wafer_needs_no_fibre_and_a_rack_does():
    """The loss between wafers is not printed: 4 x 8 tiles close without it, 16 x 16 ask for it."""
    alone = {"launch": 20, "sensitivity": -20, "modulator__loss": 0, "mzi__loss": 0}
    assert of("lightpath:shape=4x8", **alone).closes
    with pytest.raises(ParameterError, match=r"no board_fibre\.loss"):
        of("lightpath", **alone)


def test_sipacs_crossings():
    """2 (r - 1) rings at 0.02 dB; the largest switch closes and the next does not."""
    assert limit("sipac", "crossings", "typical") == 14
    radix = limit("sipac", "largest_radix", "typical")
    shapes = [f"sipac:radix={r},levels=1,wavelengths=160" for r in (radix, radix + 1)]
    assert [of(shape, "typical").closes for shape in shapes] == [True, False]


@pytest.mark.parametrize(("nodes", "size", "segments"), [(1024, 32, 512), (64, 64, 32), (1024, 129, 516)])
def test_longest_lightpath_of_wrht(nodes, size, segments):
    """Notes W16, and the exchange of section 2.3: up to 32 times equation 7."""
    assert longest_lightpath(fabric("terarack", nodes=nodes), size) == segments


@given(st.integers(1, 150), st.integers(1, 6), st.integers(1, 2), st.data())
def test_longest_lightpath_is_the_one_of_the_circuits(nodes, wavelengths, rings, data):
    """Whatever ring and group size: the tree says what is measured on every circuit of the compiled plan."""
    made = fabric("terarack", nodes=nodes, wavelengths=wavelengths, rings=rings)
    size = data.draw(st.integers(2, 2 * wavelengths * rings + 1))
    plan = lower(made, generate(f"wrht:group_size={size}", "all_reduce", made))
    rounds = [circuits for step in range(plan.schedule.num_steps) for circuits in plan.rounds(step)]
    measured = max((int(circuits.num_hops().max()) for circuits in rounds if len(circuits)), default=0)
    assert longest_lightpath(made, size) == measured


def test_group_sizes_use_all_rings_of_fibres():
    """Two pairs of fibres have twice the wavelengths, and so groups up to 4 w + 1."""
    one, two = (limit(f"terarack:nodes=64,wavelengths=4,rings={r}", "largest_group", "optimistic") for r in (1, 2))
    assert (one, two) == (9, 17)


def test_group_sizes_that_are_not_searched_are_named():
    """Beyond 4,096 nodes only the largest groups are, and the text says so."""
    made = fabric("terarack:nodes=8192")
    found = {x.name: x for x in limits(made, optics(light_table("terarack"), "typical"))}
    assert found["largest_group"].value is None
    assert "the largest groups of WRHT do not close; smaller ones are evaluated" in found["largest_group"].text


def test_reach_is_of_the_light_and_not_of_the_ring():
    """A ring of one node passes no interface, and an interface without loss can be passed for ever."""
    reaches = [limit(f"terarack:nodes={n}", "reach_interfaces", "typical") for n in (1, 2, 1024)]
    assert reaches == [8, 8, 8]
    made = fabric("terarack:nodes=4")
    lossless = optics(light_table("terarack"), "typical", {"interface.loss": 0, "crosstalk.receiver": 1e5})
    texts = [x.text for x in limits(made, lossless)]
    assert texts[0].endswith("65,536 or more interfaces")
    assert texts[1].endswith("65,536 or more interfaces")


def test_wrhts_largest_group():
    """m' is the largest whose lightpaths are within reach; where none is, the ring is too long whatever m is."""
    made = fabric("terarack:nodes=64,wavelengths=8")
    reach = limit("terarack:nodes=64,wavelengths=8", "reach_interfaces", "typical", interface__loss=0.7)
    closes = [m for m in range(2, 18) if longest_lightpath(made, m) <= reach]
    settings = {"interface__loss": 0.7, "crosstalk__receiver": 60, "crosstalk__transmitter": 60}
    assert limit("terarack:nodes=64,wavelengths=8", "largest_group", "typical", **settings) == max(closes) < 17
    assert limit("terarack:nodes=1024", "largest_group", "typical") is None


def test_crosstalk_limits_the_interfaces_too():
    """1 / 80.12 = (n + 1) / 1000 for 30 dB: eleven."""
    assert limit("terarack:nodes=8", "crosstalk_interfaces", "typical") == 11
    assert limit("terarack:nodes=8", "crosstalk_interfaces", "typical", crosstalk__transmitter=10) is None


def test_a_plan_is_measured_on_its_circuits():
    """A ring all-reduce passes one interface, WRHT on the same machine half the ring."""
    made, values = fabric("terarack:nodes=16"), optics(light_table("terarack"), "typical")

    def interfaces(algorithm):
        found = plan_budget(lower(made, generate(algorithm, "all_reduce", made)), values)
        return next(line.count for line in found.lines if line.element == "interface")

    assert (interfaces("ring"), interfaces("wrht")) == (1, 8)


def test_absurd_values_come_out_as_absurd_numbers():
    """Amplifiers in hundreds of thousands of decibels of loss: no endless search, no division by zero."""
    values = optics(light_table("oddl"), "amplified", {"fibre.loss": 1e6, "fibre.length": 1e6})
    found = budget(fabric("oddl"), values)
    assert found.optical_snr_db < -1e11
    assert "no number of amplifiers" in limits(fabric("oddl"), values)[-1].text


def test_a_path_on_which_nothing_is_lost():
    """It has no lines, and its lowest place is its beginning."""
    found = of("terarack:nodes=1", "typical", modulator__loss=0)
    assert (found.lines, found.lowest_dbm, found.loss_db) == ((), 10.0, 0)


def test_lines_add_up():
    """Launch less losses plus gains is what arrives, on every fabric and both paths."""
    for name in OPTICAL:
        for which in ("worst", "typical"):
            found = of(name, "typical", which)
            change = sum(line.gain_db - line.loss_db for line in found.lines)
            assert found.received_dbm == pytest.approx(found.launch_dbm + change - found.penalty_db)
            assert all(line.basis for line in found.lines)


@given(st.sampled_from(OPTICAL), st.floats(0, 20))
def test_more_loss_never_raises_the_margin(name, more):
    """Whatever the element."""
    made = fabric(name)
    values = optics(made.light_path.table, "typical")
    before = budget(made, values).margin_db
    for kind in made.light_path.kinds:
        unit = values.unit(f"{kind}.loss")
        lossy = {f"{kind}.loss": f"{(values.get(f'{kind}.loss') or 0) + more}{unit}"}
        assert budget(made, optics(made.light_path.table, "typical", lossy)).margin_db <= before + 1e-9


@pytest.mark.parametrize("name", OPTICAL)
def test_a_single_node_needs_no_hop(name):
    """N = 1: paths are finite and ask for nothing that is not there."""
    assert np.isfinite(budget(fabric_at_scale(name, 1), optics(fabric(name).light_path.table, "typical")).margin_db)


@pytest.mark.parametrize("name", OPTICAL)
def test_65536_nodes_take_less_than_a_tenth_of_a_second(name):
    """ODDL ends at 32,768 on grids, so one switch there; the file is read before."""
    made = fabric("oddl:shape=65536") if name == "oddl" else fabric_at_scale(name, 65536)
    assert made.num_nodes == 65536
    values = optics(made.light_path.table, "typical")
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        budget(made, values)
        budget(made, values, "typical")
        limits(made, values)
        best = min(best, time.process_time() - started)
    assert best < 0.1


def test_electrical_networks_are_refused():
    """With those that have light."""
    made = fabric("fat_tree")
    with pytest.raises(UnsupportedError, match="fat_tree: no light path: packets are forwarded"):
        budget(made, optics(light_table("oddl")))


@pytest.mark.parametrize(
    ("spec", "most", "step"),
    [
        ("ramp:groups=2,racks=2", 122, 2),  # section 4.1
        ("sipac:radix=4,levels=2", 160, 1),  # section III-B
        ("terarack:nodes=4", 256, 1),  # RAMP section 2
        ("terarack_torus:shape=2x2", 256, 1),
        ("sip_ring:nodes=4", 256, 1),
    ],
)
def test_wavelengths_outside_the_band_are_refused(spec, most, step):
    """As many as the papers' sources have are followed, by the machine and by its plans; one more is not."""
    of(f"{spec},wavelengths={most}", "typical")
    too_many = f"{spec},wavelengths={most + step}"
    says = f"wavelengths={most + step} lie outside the band: its sources have {most} channels"
    with pytest.raises(ParameterError, match=says):
        of(too_many, "typical")
    made = fabric(too_many)
    with pytest.raises(ParameterError, match=says):
        check_budget(lower(made, generate("ring", "all_reduce", made)), optics(made.light_path.table, "typical"))


def test_the_ring_of_one_direction_is_twice_as_long():
    """SiP-Ring: all segments but one, or half of them; so its reach holds as many nodes once, or twice."""
    one, two = "sip_ring:nodes=64", "sip_ring:nodes=64,directions=2"
    interfaces = [next(x.count for x in of(s, "typical").lines if x.element == "interface") for s in (one, two)]
    assert interfaces == [63, 32]
    reach = limit(one, "reach_interfaces", "typical")
    largest = [limit(s, "largest_ring_nodes", "typical") for s in (one, two)]
    assert largest == [1 + reach, 1 + 2 * reach]
    for spec, directions in (("sip_ring:nodes={}", 1), ("sip_ring:directions=2,nodes={}", 2)):
        fits = 1 + directions * reach
        assert [of(spec.format(n), "typical").closes for n in (fits, fits + directions)] == [True, False]


def test_what_the_panel_of_topoopt_may_lose():
    """Launch less both fibres less the sensitivity; a panel of just that loss closes, one of more does not."""
    most = limit("topoopt", "largest_panel_loss_db", "typical")
    assert most == pytest.approx(0 - 2 * 0.2 * 0.1 + 4)
    assert [of("topoopt", "typical", patch_panel__loss=most + more).closes for more in (0, 0.01)] == [True, False]
    assert limit("topoopt", "largest_panel_loss_db", "typical", launch=-5) is None


def test_a_plan_without_circuits_is_refused():
    """One node has no partner."""
    made = fabric("oddl:shape=1")
    with pytest.raises(UnsupportedError, match="has no circuits"):
        plan_budget(lower(made, generate("ring", "all_reduce", made)), optics(light_table("oddl")))
