"""Bills: the parts of machines with their price and power."""

import math

import pytest

from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.estimate.cost import bill_of, part_sheets, price_lists
from opticcl.fabrics import FABRICS, fabric, fabric_at_scale, job, nearest_sizes
from opticcl.files import read_toml


def counts(bill):
    """Parts by kind."""
    found = {}
    for item in bill.items:
        found[item.part.kind] = found.get(item.part.kind, 0) + item.part.count
    return found


@pytest.mark.parametrize(
    ("specification", "kind", "count"),
    [
        ("ramp:groups=32,racks=32,wavelengths=64", "tunable_transceiver", 2_097_152),  # RAMP table 3
        ("ramp:groups=32,racks=32,wavelengths=64", "star_coupler", 32_768),
        ("ramp:groups=32,racks=32,wavelengths=64", "fibre_ribbon", 2_097_152),  # section 3.1, 2 b J x^3
        (
            "ramp:groups=32,racks=32,wavelengths=64,switches=ecs",
            "transceiver",
            67_108_864,
        ),  # section 3.1, b x^3 J L more
        ("ramp:groups=32,racks=32,wavelengths=64,switches=eps", "electrical_switch", 32_768),
        ("oddl:shape=32x32", "wss", 64),  # ODDL section 3.C
        ("oddl:shape=16x16x16", "wss", 768),
        ("oddl:shape=32x32", "control_switch", 320),  # section 5.A: a fat tree of 16 ports
        ("sipac:radix=16,levels=2", "mrr_switch", 32),  # SiPAC section III-A, L r^(L-1)
        ("sipac:radix=8,levels=3,wavelengths=8", "comb_transceiver", 1536),  # figure 9, p L
        ("bcube:radix=8,levels=3", "transceiver", 3072),  # 2 p L
        ("torus:shape=8x8x8", "transceiver", 3072),  # 2 n p
        ("fat_tree:nodes=65536,radix=64,layers=3", "electrical_switch", 5120),  # RAMP table 3, 5 N / 64
        ("lightpath:shape=16x16", "wafer", 8),  # LUMORPH section 3
        ("terarack:nodes=5", "fibre", 10),
        ("terarack_torus:shape=2x3", "fibre", 24),
        ("terarack_torus:shape=2x3,wrap=no", "fibre", 14),
    ],
)
def test_parts_are_those_of_the_papers(specification, kind, count):
    """Numbers of parts that the papers print."""
    assert counts(bill_of(fabric(specification)))[kind] == count


def test_an_amplifier_only_where_the_loss_asks_for_it():
    """ODDL section 3.C: switches of 8 ports do without."""
    assert "edfa" not in counts(bill_of(fabric("oddl:shape=8x8")))
    assert counts(bill_of(fabric("oddl:shape=8x32")))["edfa"] == 256


def test_a_switch_larger_than_a_module_is_billed_as_the_clos_that_light_passes():
    """ODDL section 3.B: 64 ports are 8 modules of 8 x 16, 16 of 8 x 8 and 8 of 16 x 8, and light passes three of them."""
    made = fabric("oddl:shape=64x2")
    switches = {part.ports: part.count for part in made.parts() if part.kind == "wss"}
    assert switches == {16: 2 * (8 + 8), 8: 2 * 16, 2: 64}
    kinds = [element.kind for element in made.light_path.elements]
    assert made.light_path.extremes[0][kinds.index("wss8")] == 3
    assert counts(bill_of(made))["edfa"] == 128  # behind the outputs of the two switches of 64 ports


def test_every_part_has_a_datasheet():
    """Whatever a fabric says it is built of can be priced, with a source."""
    sheets = part_sheets()
    for name in FABRICS.names():
        for size in (1, 4, 64):
            try:
                made = fabric_at_scale(name, size)
            except FabricError:
                continue
            for part in made.parts():
                assert part.kind in sheets, f"{name}: {part.kind}"
                assert part.count >= 0
    for name in price_lists():
        for kind, table in read_toml("opticcl.estimate", "prices.toml")[name].items():
            assert table["source"], kind
            assert 0 <= table["usd"][0] <= table["usd"][1]
            assert 0 <= table["w"][0] <= table["w"][1]


@pytest.mark.parametrize("name", [n for n in FABRICS.names() if n != "ideal"])
def test_sums_are_the_sums_of_the_lines(name):
    """Price, power, and both for each Gb/s."""
    size = 64
    try:
        made = fabric_at_scale(name, size)
    except FabricError:
        pytest.fail(f"{name} has no machine of {size} nodes; {nearest_sizes(size, lambda n: n == size)}")
    bill = bill_of(made)
    for low_or_high in (0, 1):
        assert bill.usd[low_or_high] == pytest.approx(sum(item.usd[low_or_high] for item in bill.items))
        assert bill.w[low_or_high] == pytest.approx(sum(item.w[low_or_high] for item in bill.items))
    assert bill.usd_per_gbps[0] * 1e-9 * size * made.node_rate_bits_per_s == pytest.approx(bill.usd[0])
    assert bill.energy_j(2.0)[1] == pytest.approx(2 * bill.w[1])
    assert 0 < bill.usd[0] <= bill.usd[1] < math.inf


def test_twice_the_rate_costs_more_in_transceivers_alone():
    """What has no rate on its datasheet stays as it is."""
    slow, fast = (
        bill_of(fabric(f"ramp:groups=4,racks=4,wavelengths=4,line_rate={rate}")) for rate in ("400Gb/s", "800Gb/s")
    )
    dearer = {i.part.kind: j.usd[0] / i.usd[0] for i, j in zip(slow.items, fast.items, strict=True)}
    assert dearer == {"tunable_transceiver": 2, "star_coupler": 1, "fibre_ribbon": 1}


def test_a_part_filled_tree_has_no_switches_without_links():
    """The top level of a tree of two pods is as small as its links."""
    whole, part = (
        sum(p.count for p in fabric(f"fat_tree:nodes={n},radix=8,layers=3").parts() if p.ports) for n in (128, 32)
    )
    assert (whole, part) == (80, 16 + 4)


def test_a_job_is_billed_the_whole_machine():
    """A job needs the whole of each star coupler."""
    machine = fabric("sipac:radix=4,levels=2")
    part, whole = bill_of(job(machine, range(3))), bill_of(machine)
    assert part.usd == whole.usd
    assert part.usd_per_gbps == whole.usd_per_gbps


def test_numbers_can_be_set():
    """The user's own price or power, marked as given."""
    machine = fabric("oddl:shape=4x4")
    bill = bill_of(machine, changes={"wss.usd": 0, "fibre.w": 1})
    items = {item.part.kind: item for item in bill.items}
    assert items["wss"].usd == (0, 0)
    assert items["fibre"].w == (64, 64)
    assert items["fibre"].sheet.source.startswith("given w")


@pytest.mark.parametrize(
    ("prices", "changes", "says"),
    [
        ("defalt", {}, "did you mean 'default'"),
        ("default", {"wss": 3}, "price and the power"),
        ("default", {"wss.colour": 3}, "price and the power"),
        ("default", {"wsss.usd": 3}, "did you mean 'wss'"),
        ("default", {"wss.usd": -1}, "not from 0"),
        ("default", {"wss.usd": math.nan}, "not from 0"),
        ("default", {"wss.usd": 1e13}, "not from 0"),
    ],
)
def test_what_cannot_be_is_refused(prices, changes, says):
    """The message has the rule and a value that works."""
    with pytest.raises(ParameterError, match=says):
        bill_of(fabric("oddl:shape=2x2"), prices, changes)


def test_an_ideal_switch_has_no_bill():
    """It has no list of parts."""
    with pytest.raises(UnsupportedError, match="ideal has no bill: it has no list of parts"):
        bill_of(fabric("ideal:nodes=4"))


def test_a_node_alone_needs_no_network():
    """A SuperPod of one GPU has neither switches nor cables."""
    with pytest.raises(UnsupportedError, match="superpod has no bill: one node needs no network"):
        bill_of(fabric_at_scale("superpod", 1))
