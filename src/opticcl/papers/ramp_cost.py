"""RAMP tables 3 and 4: what 65,536 nodes of 12.8 Tb/s cost and draw, as RAMP and as parallel electrical networks.

Two HPC networks stand side by side. One has the number of switches in ramp_tables.toml, which is fitted to tables 3 and 4. The
other is the bill of the library's SuperPod of 65,536 nodes, which needs a fourth tier of 40-port switches.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opticcl.errors import FabricError
from opticcl.estimate.cost import Bill, bill_of, part_sheets
from opticcl.fabrics import fabric
from opticcl.files import read_toml
from opticcl.papers import Found, claim, found, printed_claims

REFERENCE = {key: entry["value"] for key, entry in read_toml("opticcl.papers", "ramp_tables.toml").items()}
NODES, NODE_RATE = REFERENCE["nodes"], REFERENCE["node_rate"]
RATES = (NODE_RATE, REFERENCE["rate_10_to_1"], REFERENCE["rate_64_to_1"])  # of a node, by oversubscription


@cache
def ramp_bill() -> Bill:
    return bill_of(fabric("ramp:groups=32,racks=32,wavelengths=64"), "ramp_dcn")


@cache
def dcn_bill() -> Bill:
    """One of the parallel networks."""
    return bill_of(fabric("fat_tree", nodes=NODES, radix=64, layers=3, rate=100e9), "ramp_dcn")


@cache
def superpod_bill() -> Bill:
    """One of the parallel networks, as the library builds it."""
    return bill_of(fabric("superpod", nodes=NODES), "ramp_hpc")


@cache
def largest_of_three_tiers() -> int:
    """End points of the largest fat tree of three tiers of the HPC network's switches [count]."""
    low, high = 1, NODES
    while high - low > 1:
        nodes = (low + high) // 2
        try:
            fabric("fat_tree", radix=REFERENCE["hpc_radix"], layers=3, nodes=nodes)
        except FabricError:
            high = nodes
        else:
            low = nodes
    return low


@cache
def three_tier_bill() -> Bill:
    """A SuperPod whose three tiers are full, which shows what a node of it needs."""
    return bill_of(fabric("superpod", nodes=largest_of_three_tiers()), "ramp_hpc")


def count(bill: Bill, *kinds: str) -> int:
    return sum(item.part.count for item in bill.items if item.part.kind in kinds)


HPC_NETWORKS = [int(rate // REFERENCE["hpc_port"]) for rate in RATES]
DCN_NETWORKS = [int(rate // REFERENCE["dcn_port"]) for rate in RATES]
"""Parallel networks by oversubscription: 1:1, 10:1, 64:1 [count]."""


def hpc_switch_ports(networks: int) -> int:
    """Of the fitted switches: what its oversubscribed networks and all its costs count as transceivers."""
    return REFERENCE["hpc_switches"] * networks * REFERENCE["hpc_radix"]


def hpc_cost(networks: int) -> tuple[float, float]:
    """Dollars of transceivers and of switches; the number of switches is fitted, see ramp_tables.toml."""
    sheets = part_sheets("ramp_hpc")
    switches = REFERENCE["hpc_switches"] * networks
    transceivers = hpc_switch_ports(networks)
    return transceivers * sheets["transceiver"].usd[0], switches * sheets["electrical_switch"].usd[0]


def hpc_watts(networks: int) -> float:
    sheets = part_sheets("ramp_hpc")
    switches = REFERENCE["hpc_switches"] * networks
    return switches * sheets["electrical_switch"].w[0] + hpc_switch_ports(networks) * sheets["transceiver"].w[0]


def spent(bill: Bill, *kinds: str, end: int = 0) -> float:
    """Dollars of parts: low (0) or high (1)."""
    return sum(item.usd[end] for item in bill.items if item.part.kind in kinds)


def fitted(value: float | list[float], **facts: float) -> Found:
    """A value that rests on the fitted number of switches."""
    return found(value, switches=REFERENCE["hpc_switches"], **facts)


@claim("ramp", "RAMP-T3-prices")
def prices() -> list[float]:
    """Of an HPC transceiver, an HPC and a DCN switch and a star coupler."""
    hpc, dcn = part_sheets("ramp_hpc"), part_sheets("ramp_dcn")
    sheets = hpc["transceiver"], hpc["electrical_switch"], dcn["electrical_switch"], hpc["star_coupler"]
    return [sheet.usd[0] for sheet in sheets]


@claim("ramp", "RAMP-T3-networks")
def networks() -> list[int]:
    return HPC_NETWORKS + DCN_NETWORKS


@claim("ramp", "RAMP-T3-trx-ramp", "tunable_transceiver")
@claim("ramp", "RAMP-T3-coupler-ramp", "star_coupler")
def ramp_parts(kind: str) -> int:
    return count(ramp_bill(), kind)


@claim("ramp", "RAMP-T3-trxprice")
def ramp_transceiver_price() -> list[float]:
    return list(part_sheets()["tunable_transceiver"].usd)


@claim("ramp", "RAMP-T3-cost-ramp", 0)
@claim("ramp", "RAMP-T3-cost-ramp-high", 1)
@claim("ramp", "RAMP-4-2.16B", 1)
def ramp_cost(end: int) -> float:
    """Low (0) or high (1) price of a transceiver."""
    return ramp_bill().usd[end] / 1e9


@claim("ramp", "RAMP-T3-norm-ramp", 0)
@claim("ramp", "RAMP-T3-norm-ramp-high", 1)
@claim("ramp", "RAMP-9-6.12", 1)
def ramp_price_of_a_gbps(end: int) -> float:
    return ramp_bill().usd_per_gbps[end]


@claim("ramp", "RAMP-T3-ratio-ramp", 0)
@claim("ramp", "RAMP-T3-ratio-ramp-high", 1)
@claim("ramp", "RAMP-4-98:2", 1)
def ramp_share_of_transceivers(end: int) -> float:
    return 100 * spent(ramp_bill(), "tunable_transceiver", end=end) / ramp_bill().usd[end]


@cache
def electrical_bill(switches: str) -> Bill:
    """Of the largest RAMP with electrical switches in place of its subnets (section 3.1)."""
    return bill_of(fabric("ramp:groups=32,racks=32,wavelengths=64", switches=switches), "ramp_hpc")


@claim("ramp", "RAMP-3-ecs")
def electrical_transceivers() -> int:
    """Those of the nodes, and one at each port of the switches."""
    return count(electrical_bill("ecs"), "tunable_transceiver", "transceiver")


@claim("ramp", "RAMP-3-ecs-cost", "ecs")
@claim("ramp", "RAMP-3-eps-cost", "eps")
def electrical_is_dearer(switches: str) -> Found:
    """Whether the electrical version costs more at least than RAMP at most, and takes more power."""
    usd, w = electrical_bill(switches).usd[0], electrical_bill(switches).w[0]
    ramp_usd, ramp_w = ramp_bill().usd[1], ramp_bill().w[1]
    return found(usd > ramp_usd and w > ramp_w, usd_b=usd / 1e9, mw=w / 1e6, dearer=usd / ramp_usd, hotter=w / ramp_w)


_PRINTED_SWITCHES = (530e3, 49.7e3, 8.3e3)  # table 3, by oversubscription


def switches_that_fit() -> tuple[int, int]:
    """Least and most switches of a network that make all three printed numbers, to their digits."""
    digits = (3, 3, 2)
    fit = [
        each
        for each in range(8000, 9000)
        if all(
            float(f"{each * networks:.{places}g}") == printed
            for networks, places, printed in zip(HPC_NETWORKS, digits, _PRINTED_SWITCHES, strict=True)
        )
    ]
    return fit[0], fit[-1]


@claim("ramp", "RAMP-T3-sw-hpc")
def hpc_switches() -> Found:
    least, most = switches_that_fit()
    return fitted(REFERENCE["hpc_switches"] * HPC_NETWORKS[0], least=least, most=most)


@claim("ramp", "RAMP-T3-sw-hpc-10:1", HPC_NETWORKS[1])
@claim("ramp", "RAMP-T3-sw-hpc-64:1", HPC_NETWORKS[2])
def hpc_switches_oversubscribed(networks: int) -> Found:
    return fitted(REFERENCE["hpc_switches"] * networks)


@claim("ramp", "RAMP-T3-sw-hpc-bill")
def superpod_switches() -> Found:
    _, ends = superpod_bill().fabric.route(np.array([0]), np.array([NODES - 1]))
    return fitted(count(superpod_bill(), "electrical_switch"), tiers=int(ends[-1]) // 2)  # as many links up as down


@claim("ramp", "RAMP-T3-sw-hpc-counted")
def hpc_switches_counted() -> Found:
    """Of a folded Clos of three layers, if its switches sufficed for the nodes."""
    network = -(-count(three_tier_bill(), "electrical_switch") * NODES // largest_of_three_tiers())
    return found(network * HPC_NETWORKS[0], network=network)


@claim("ramp", "RAMP-T3-topology")
def hpc_endpoints() -> int:
    return largest_of_three_tiers()


def _each_node() -> int:
    """Transceivers that a node of full tiers has its share in."""
    return count(three_tier_bill(), "transceiver") // largest_of_three_tiers()


def _six_a_node(networks: int) -> int:
    """Transceivers of that many parallel networks, as many a node as in full tiers."""
    return _each_node() * NODES * networks


@claim("ramp", "RAMP-T3-trx-hpc-1:1")
def hpc_transceivers() -> Found:
    """Both ends of a node's link and of the two above it."""
    return found(_six_a_node(HPC_NETWORKS[0]), each=_each_node(), counted=hpc_switch_ports(HPC_NETWORKS[0]) / 1e6)


@claim("ramp", "RAMP-T3-trx-hpc-10:1", HPC_NETWORKS[1])
@claim("ramp", "RAMP-T3-trx-hpc-64:1", HPC_NETWORKS[2])
def hpc_transceivers_oversubscribed(networks: int) -> Found:
    return fitted(hpc_switch_ports(networks), each=_each_node(), six=_six_a_node(networks) / 1e6)


@claim("ramp", "RAMP-T3-cost-hpc-sum")
def hpc_cost_of_the_printed_numbers() -> Found:
    sheets, printed = part_sheets("ramp_hpc"), printed_claims("ramp")
    kinds = {"RAMP-T3-trx-hpc-1:1": "transceiver", "RAMP-T3-sw-hpc": "electrical_switch"}
    items = [printed[id]["published"] * sheets[kind].usd[0] for id, kind in kinds.items()]
    needed = (printed["RAMP-T3-cost-hpc-sum"]["published"] * 1e9 - items[1]) / sheets["transceiver"].usd[0]
    return found(sum(items) / 1e9, needed=needed / 1e6)


@claim("ramp", "RAMP-T3-cost-hpc-1:1")
def hpc_cost_1() -> Found:
    transceivers, switches = hpc_cost(HPC_NETWORKS[0])
    each = part_sheets("ramp_hpc")["transceiver"].usd[0]
    printed = (_six_a_node(HPC_NETWORKS[0]) * each + switches) / 1e9
    return fitted(sum((transceivers, switches)) / 1e9, printed=printed)


@claim("ramp", "RAMP-T3-cost-hpc-10:1", HPC_NETWORKS[1])
@claim("ramp", "RAMP-T3-cost-hpc-64:1", HPC_NETWORKS[2])
def hpc_cost_oversubscribed(networks: int) -> Found:
    return fitted(sum(hpc_cost(networks)) / 1e9)


@claim("ramp", "RAMP-T3-cost-hpc-bill")
def superpod_cost() -> Found:
    return fitted(superpod_bill().usd[0] / 1e9, counted=count(superpod_bill(), "electrical_switch"))


def hpc_usd_per_gbps() -> float:
    return sum(hpc_cost(HPC_NETWORKS[0])) / (NODES * NODE_RATE) * 1e9


@claim("ramp", "RAMP-T3-norm-hpc")
def hpc_price_of_a_gbps() -> Found:
    return fitted(hpc_usd_per_gbps())


@claim("ramp", "RAMP-T3-ratio-hpc")
def hpc_share_of_transceivers() -> Found:
    transceivers, switches = hpc_cost(1)
    return fitted(100 * transceivers / (transceivers + switches))


@claim("ramp", "RAMP-T3-trx-dcn", DCN_NETWORKS[0], "transceiver", "copper_end")
@claim("ramp", "RAMP-T3-trx-dcn-10:1", DCN_NETWORKS[1], "transceiver", "copper_end")
@claim("ramp", "RAMP-T3-trx-dcn-64:1", DCN_NETWORKS[2], "transceiver", "copper_end")
@claim("ramp", "RAMP-T3-sw-dcn", DCN_NETWORKS[0], "electrical_switch")
@claim("ramp", "RAMP-T3-sw-dcn-10:1", DCN_NETWORKS[1], "electrical_switch")
@claim("ramp", "RAMP-T3-sw-dcn-64:1", DCN_NETWORKS[2], "electrical_switch")
def dcn_parts(networks: int, *kinds: str) -> int:
    return count(dcn_bill(), *kinds) * networks


@claim("ramp", "RAMP-T3-cost-dcn")
def dcn_cost() -> Found:
    """Copper ends have no price in this list."""
    each = part_sheets("ramp_dcn")["transceiver"].usd[0]
    return found(dcn_bill().usd[0] * DCN_NETWORKS[0] / 1e9, each=each, text=REFERENCE["dcn_port"] / 1e9)


@claim("ramp", "RAMP-T3-cost-dcn-10:1", DCN_NETWORKS[1])
@claim("ramp", "RAMP-T3-cost-dcn-64:1", DCN_NETWORKS[2])
def dcn_cost_oversubscribed(networks: int) -> float:
    return dcn_bill().usd[0] * networks / 1e9


@claim("ramp", "RAMP-T3-norm-dcn")
def dcn_price_of_a_gbps() -> float:
    return dcn_bill().usd_per_gbps[0]


@claim("ramp", "RAMP-T3-ratio-dcn")
def dcn_share_of_transceivers() -> float:
    return 100 * spent(dcn_bill(), "transceiver") / dcn_bill().usd[0]


@claim("ramp", "RAMP-T3-impr-low", 1)
@claim("ramp", "RAMP-1-12.4x", 0)
def cheaper_than_hpc(end: int) -> Found:
    return fitted(hpc_usd_per_gbps() / ramp_bill().usd_per_gbps[end])


@claim("ramp", "RAMP-T3-impr")
def cheaper_than_dcn() -> Found:
    dcn, ramp = dcn_price_of_a_gbps(), ramp_bill().usd_per_gbps[0]
    return found(dcn / ramp, dcn=dcn, ramp=ramp, needed=dcn / printed_claims("ramp")["RAMP-T3-impr"]["published"])


@claim("ramp", "RAMP-T4-pJ-hpc")
def hpc_energy_of_a_path() -> Found:
    """Of full tiers while all cards send [pJ/bit]."""
    energy = three_tier_bill().w[0] / (largest_of_three_tiers() * REFERENCE["hpc_port"]) * 1e12
    switches, transceivers = _parts_of_a_path(three_tier_bill(), "transceiver")
    return found(energy, switches=switches, transceivers=transceivers)


@claim("ramp", "RAMP-T4-pJ-dcn")
def dcn_energy_of_a_path() -> float:
    """Its three tiers are full."""
    return round(dcn_bill().j_per_bit[0] * 1e12, 6)


@claim("ramp", "RAMP-T4-parts")
def watts_of_parts() -> list[float]:
    """Switches of HPC and DCN, SOA; transceivers of HPC, DCN (copper, optical) and RAMP (low, high)."""
    hpc, dcn = part_sheets("ramp_hpc"), part_sheets("ramp_dcn")
    sheets = hpc["electrical_switch"], dcn["electrical_switch"], hpc["soa_crossbar"], hpc["transceiver"]
    ends = dcn["copper_end"], dcn["transceiver"]
    return [*(sheet.w[0] for sheet in (*sheets, *ends)), *hpc["tunable_transceiver"].w]


@claim("ramp", "RAMP-T4-path")
def parts_of_a_path() -> list[int]:
    """Switches and transceivers of a full tree's longest path."""
    return [
        sum(_parts_of_a_path(three_tier_bill(), "transceiver")),
        sum(_parts_of_a_path(dcn_bill(), "transceiver", "copper_end")),
    ]


def _parts_of_a_path(bill: Bill, *ends: str) -> tuple[int, int]:
    """Switches and ends of links on a full tree's longest path: a port and an end a node for each of them."""
    nodes = bill.fabric.num_machine_nodes
    ports = sum(item.part.count * item.part.ports for item in bill.items if item.part.kind == "electrical_switch")
    return ports // nodes, count(bill, *ends) // nodes


@claim("ramp", "RAMP-9-pJ")
@claim("ramp", "RAMP-T4-mW-ramp")
def ramp_pj_per_bit() -> list[float]:
    """Low and high."""
    low, high = ramp_bill().j_per_bit
    return [round(low * 1e12, 6), round(high * 1e12, 6)]


@claim("ramp", "RAMP-T4-pJ-ramp")
def ramp_energy_of_a_path() -> Found:
    sheets = part_sheets()
    rate, soa = sheets["tunable_transceiver"].rate_bits_per_s, sheets["soa_crossbar"].w[0]
    low, high = (value + 2 * soa / rate * 1e12 for value in ramp_pj_per_bit())
    return found(ramp_pj_per_bit(), low=low, high=high)


@claim("ramp", "RAMP-T4-mW-hpc")
def hpc_milliwatts() -> Found:
    return fitted(hpc_watts(HPC_NETWORKS[0]) / (NODES * NODE_RATE) * 1e12)


@claim("ramp", "RAMP-T4-mW-dcn")
def dcn_milliwatts() -> float:
    return dcn_bill().j_per_bit[0] * 1e12


def hpc_mw(which: int) -> float:
    """Power by oversubscription: 0 for 1:1, 1 for 10:1, 2 for 64:1 [MW]."""
    return hpc_watts(HPC_NETWORKS[which]) / 1e6


@claim("ramp", "RAMP-T4-MW-hpc", 0)
@claim("ramp", "RAMP-T4-MW-hpc-10:1", 1)
@claim("ramp", "RAMP-T4-MW-hpc-64:1", 2)
def hpc_megawatts(which: int) -> Found:
    return fitted(hpc_mw(which))


@claim("ramp", "RAMP-T4-MW-hpc-bill")
def superpod_megawatts() -> Found:
    return fitted(superpod_bill().w[0] / 1e6, counted=count(superpod_bill(), "electrical_switch"))


@claim("ramp", "RAMP-T4-MW-dcn")
@claim("ramp", "RAMP-T4-MW-dcn-10:1", 1)
@claim("ramp", "RAMP-T4-MW-dcn-64:1", 2)
@claim("ramp", "RAMP-9-400MW")
def dcn_megawatts(which: int = 0) -> float:
    """Power by oversubscription [MW]."""
    return dcn_bill().w[0] * DCN_NETWORKS[which] / 1e6


@claim("ramp", "RAMP-T4-MW-ramp", 0)
@claim("ramp", "RAMP-T4-MW-ramp-high", 1)
def ramp_megawatts(end: int) -> float:
    """Low (0) or high (1) power of a transceiver [MW]."""
    return ramp_bill().w[end] / 1e6


@claim("ramp", "RAMP-9-MW")
def ramp_megawatts_in_the_conclusion() -> list[float]:
    return [ramp_megawatts(0), ramp_megawatts(1)]


@claim("ramp", "RAMP-1-38-42")
def saved_in_the_introduction() -> Found:
    """Both networks against RAMP at most."""
    return fitted([hpc_mw(0) / ramp_megawatts(1), dcn_megawatts() / ramp_megawatts(1)])


@claim("ramp", "RAMP-T4-38-47", 0)
@claim("ramp", "RAMP-4-3.6x", 1)
def saved_against_hpc(which: int) -> Found:
    return fitted(hpc_mw(which) / ramp_megawatts(1))


@claim("ramp", "RAMP-T4-38-47-high")
def saved_most() -> float:
    return dcn_megawatts() / ramp_megawatts(0)


@claim("ramp", "RAMP-4-10x", 1)
@claim("ramp", "RAMP-4-64x", 2)
def faster_than_oversubscribed(which: int) -> float:
    return RATES[0] / RATES[which]


@claim("ramp", "RAMP-4-36-66")
@claim("ramp", "RAMP-9-33-66")
def more_than_64_to_1() -> float:
    return 100 * (ramp_megawatts(0) / dcn_megawatts(2) - 1)


@claim("ramp", "RAMP-4-36-66-high")
def more_than_64_to_1_high() -> Found:
    printed = printed_claims("ramp")
    rounded = printed["RAMP-T4-MW-ramp-high"]["published"] / printed["RAMP-T4-MW-hpc-64:1"]["published"]
    return fitted(100 * (ramp_megawatts(1) / hpc_mw(2) - 1), rounded=100 * (rounded - 1))


@claim("ramp", "RAMP-4-30MW")
def above_the_power_budget() -> Found:
    return fitted(hpc_mw(0) / REFERENCE["power_budget"])
