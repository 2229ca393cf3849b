"""RAMP tables 3 and 4: what 65,536 nodes of 12.8 Tb/s cost and draw, as RAMP and as parallel electrical networks."""

from __future__ import annotations

from functools import cache

from opticcl.data import load
from opticcl.evaluate.cost import Bill, bill_of, part_sheets
from opticcl.fabric import fabric
from opticcl.papers import claim

REFERENCE = {key: entry["value"] for key, entry in load("evaluation/ramp_tables.toml").items()}
NODES, NODE_RATE = REFERENCE["nodes"], REFERENCE["node_rate"]
RATES = (NODE_RATE, REFERENCE["rate_10_to_1"], REFERENCE["rate_64_to_1"])  # of a node, by oversubscription


@cache
def ramp_bill() -> Bill:
    return bill_of(fabric("ramp:groups=32,racks=32,wavelengths=64"), "ramp_dcn")


@cache
def dcn_bill() -> Bill:
    """One of the parallel networks."""
    return bill_of(fabric("fat_tree", nodes=NODES, radix=64, layers=3, rate=100e9), "ramp_dcn")


def count(bill: Bill, *kinds: str) -> int:
    return sum(item.part.count for item in bill.items if item.part.kind in kinds)


def hpc_networks() -> list[int]:
    return [int(rate // REFERENCE["hpc_port"]) for rate in RATES]


def dcn_networks() -> list[int]:
    return [int(rate // REFERENCE["dcn_port"]) for rate in RATES]


def hpc_switch_ports(networks: int) -> int:
    """Of the inferred switches: what its oversubscribed networks and all its costs count as transceivers."""
    return REFERENCE["hpc_switches"] * networks * REFERENCE["hpc_radix"]


def hpc_cost(networks: int) -> tuple[float, float]:
    """Dollars of transceivers and of switches; the number of switches is inferred, see data/evaluation/ramp_tables.toml."""
    sheets = part_sheets("ramp_hpc")
    switches = REFERENCE["hpc_switches"] * networks
    transceivers = hpc_switch_ports(networks)
    return transceivers * sheets["transceiver"].usd[0], switches * sheets["electrical_switch"].usd[0]


def hpc_watts(networks: int) -> float:
    sheets = part_sheets("ramp_hpc")
    switches = REFERENCE["hpc_switches"] * networks
    return switches * sheets["electrical_switch"].w[0] + hpc_switch_ports(networks) * sheets["transceiver"].w[0]


def spent(bill: Bill, *kinds: str) -> float:
    return sum(item.usd[0] for item in bill.items if item.part.kind in kinds)


@claim("ramp", "RAMP-T3-networks")
def networks() -> list[int]:
    return hpc_networks() + dcn_networks()


@claim("ramp", "RAMP-T3-trx-ramp")
def ramp_transceivers() -> int:
    return count(ramp_bill(), "tunable_transceiver")


@claim("ramp", "RAMP-T3-coupler-ramp")
def ramp_couplers() -> int:
    return count(ramp_bill(), "star_coupler")


@claim("ramp", "RAMP-T3-trxprice")
def ramp_transceiver_price() -> list[float]:
    return list(part_sheets()["tunable_transceiver"].usd)


@claim("ramp", "RAMP-T3-cost-ramp")
def ramp_cost_low() -> float:
    return ramp_bill().usd[0] / 1e9


@claim("ramp", "RAMP-T3-cost-ramp-high")
def ramp_cost_high() -> float:
    return ramp_bill().usd[1] / 1e9


@claim("ramp", "RAMP-T3-norm-ramp")
def ramp_price_of_a_gbps() -> float:
    return ramp_bill().usd_per_gbps[0]


@claim("ramp", "RAMP-T3-norm-ramp-high")
def ramp_price_of_a_gbps_high() -> float:
    return ramp_bill().usd_per_gbps[1]


@claim("ramp", "RAMP-T3-ratio-ramp")
def ramp_share_of_transceivers() -> float:
    return 100 * spent(ramp_bill(), "tunable_transceiver") / ramp_bill().usd[0]


@claim("ramp", "RAMP-T3-sw-hpc")
def hpc_switches() -> int:
    return REFERENCE["hpc_switches"] * hpc_networks()[0]


@claim("ramp", "RAMP-T3-sw-hpc-counted")
def hpc_switches_counted() -> int:
    """Of a folded Clos of three layers, if 40 ports could hold so many: five switch ports a node."""
    return -(-5 * NODES // REFERENCE["hpc_radix"]) * hpc_networks()[0]


@claim("ramp", "RAMP-T3-topology")
def hpc_endpoints() -> int:
    return int(REFERENCE["hpc_radix"] ** 3 // 4)


@claim("ramp", "RAMP-T3-trx-hpc-1:1")
def hpc_transceivers() -> int:
    """Both ends of a node's link and of the two above it."""
    return 6 * NODES * hpc_networks()[0]


@claim("ramp", "RAMP-T3-trx-hpc-10:1")
def hpc_transceivers_10() -> int:
    return hpc_switch_ports(hpc_networks()[1])


@claim("ramp", "RAMP-T3-trx-hpc-64:1")
def hpc_transceivers_64() -> int:
    return hpc_switch_ports(hpc_networks()[2])


@claim("ramp", "RAMP-T3-cost-hpc-1:1")
def hpc_cost_1() -> float:
    return sum(hpc_cost(hpc_networks()[0])) / 1e9


@claim("ramp", "RAMP-T3-cost-hpc-10:1")
def hpc_cost_10() -> float:
    return sum(hpc_cost(hpc_networks()[1])) / 1e9


@claim("ramp", "RAMP-T3-cost-hpc-64:1")
def hpc_cost_64() -> float:
    return sum(hpc_cost(hpc_networks()[2])) / 1e9


@claim("ramp", "RAMP-T3-norm-hpc")
def hpc_price_of_a_gbps() -> float:
    return sum(hpc_cost(hpc_networks()[0])) / (NODES * NODE_RATE) * 1e9


@claim("ramp", "RAMP-T3-ratio-hpc")
def hpc_share_of_transceivers() -> float:
    transceivers, switches = hpc_cost(1)
    return 100 * transceivers / (transceivers + switches)


@claim("ramp", "RAMP-T3-trx-dcn")
def dcn_transceivers() -> int:
    return count(dcn_bill(), "transceiver", "copper_end") * dcn_networks()[0]


@claim("ramp", "RAMP-T3-sw-dcn")
def dcn_switches() -> int:
    return count(dcn_bill(), "electrical_switch") * dcn_networks()[0]


@claim("ramp", "RAMP-T3-cost-dcn")
def dcn_cost() -> float:
    return dcn_bill().usd[0] * dcn_networks()[0] / 1e9


@claim("ramp", "RAMP-T3-cost-dcn-10:1")
def dcn_cost_10() -> float:
    return dcn_bill().usd[0] * dcn_networks()[1] / 1e9


@claim("ramp", "RAMP-T3-norm-dcn")
def dcn_price_of_a_gbps() -> float:
    return dcn_bill().usd_per_gbps[0]


@claim("ramp", "RAMP-T3-ratio-dcn")
def dcn_share_of_transceivers() -> float:
    return 100 * spent(dcn_bill(), "transceiver") / dcn_bill().usd[0]


@claim("ramp", "RAMP-T3-impr-low")
def cheaper_than_hpc() -> float:
    return hpc_price_of_a_gbps() / ramp_bill().usd_per_gbps[1]


@claim("ramp", "RAMP-T3-impr")
def cheaper_than_dcn() -> float:
    return dcn_price_of_a_gbps() / ramp_bill().usd_per_gbps[0]


@claim("ramp", "RAMP-1-12.4x")
def cheaper_than_hpc_at_best() -> float:
    return hpc_price_of_a_gbps() / ramp_bill().usd_per_gbps[0]


@claim("ramp", "RAMP-4-2.16B")
def ramp_at_most() -> float:
    return ramp_bill().usd[1] / 1e9


@claim("ramp", "RAMP-9-6.12")
def conclusion_price() -> float:
    return ramp_bill().usd_per_gbps[1]


@claim("ramp", "RAMP-T4-pJ-hpc")
def hpc_energy_of_a_path() -> float:
    """Five switches, each for the eighth of it that 200 Gb/s of 8 Tb/s take, and six transceivers [pJ/bit]."""
    sheets = part_sheets("ramp_hpc")
    switch, transceiver = sheets["electrical_switch"], sheets["transceiver"]
    through = switch.w[0] / (switch.ports * switch.rate_bits_per_s)
    return (5 * through + 6 * transceiver.w[0] / transceiver.rate_bits_per_s) * 1e12


@claim("ramp", "RAMP-T4-pJ-dcn")
def dcn_energy_of_a_path() -> float:
    sheets = part_sheets("ramp_dcn")
    switch, optical, copper = (sheets[kind] for kind in ("electrical_switch", "transceiver", "copper_end"))
    through = switch.w[0] / (switch.ports * switch.rate_bits_per_s)
    ends = (4 * optical.w[0] + 2 * copper.w[0]) / optical.rate_bits_per_s
    return (5 * through + ends) * 1e12


@claim("ramp", "RAMP-T4-pJ-ramp")
def ramp_energy_of_a_path() -> list[float]:
    low, high = ramp_bill().j_per_bit
    return [round(low * 1e12, 6), round(high * 1e12, 6)]


@claim("ramp", "RAMP-T4-mW-hpc")
def hpc_milliwatts() -> float:
    return hpc_watts(hpc_networks()[0]) / (NODES * NODE_RATE) * 1e12


@claim("ramp", "RAMP-T4-mW-dcn")
def dcn_milliwatts() -> float:
    return dcn_bill().j_per_bit[0] * 1e12


@claim("ramp", "RAMP-T4-mW-ramp")
def ramp_milliwatts() -> list[float]:
    return ramp_energy_of_a_path()


@claim("ramp", "RAMP-T4-MW-hpc")
def hpc_megawatts() -> float:
    return hpc_watts(hpc_networks()[0]) / 1e6


@claim("ramp", "RAMP-T4-MW-hpc-10:1")
def hpc_megawatts_10() -> float:
    return hpc_watts(hpc_networks()[1]) / 1e6


@claim("ramp", "RAMP-T4-MW-hpc-64:1")
def hpc_megawatts_64() -> float:
    return hpc_watts(hpc_networks()[2]) / 1e6


@claim("ramp", "RAMP-T4-MW-dcn")
def dcn_megawatts() -> float:
    return dcn_bill().w[0] * dcn_networks()[0] / 1e6


@claim("ramp", "RAMP-T4-MW-dcn-10:1")
def dcn_megawatts_10() -> float:
    return dcn_bill().w[0] * dcn_networks()[1] / 1e6


@claim("ramp", "RAMP-T4-MW-dcn-64:1")
def dcn_megawatts_64() -> float:
    return dcn_bill().w[0] * dcn_networks()[2] / 1e6


@claim("ramp", "RAMP-T4-MW-ramp")
def ramp_megawatts() -> float:
    return ramp_bill().w[0] / 1e6


@claim("ramp", "RAMP-T4-MW-ramp-high")
def ramp_megawatts_high() -> float:
    return ramp_bill().w[1] / 1e6


@claim("ramp", "RAMP-T4-38-47")
def saved_least() -> float:
    return hpc_megawatts() / ramp_megawatts_high()


@claim("ramp", "RAMP-T4-38-47-high")
def saved_most() -> float:
    return dcn_megawatts() / ramp_megawatts()


@claim("ramp", "RAMP-4-3.6x")
def less_than_10_to_1() -> float:
    return hpc_megawatts_10() / ramp_megawatts_high()


@claim("ramp", "RAMP-4-36-66")
def more_than_64_to_1() -> float:
    return 100 * (ramp_megawatts() / dcn_megawatts_64() - 1)


@claim("ramp", "RAMP-4-36-66-high")
def more_than_64_to_1_high() -> float:
    return 100 * (ramp_megawatts_high() / hpc_megawatts_64() - 1)


@claim("ramp", "RAMP-4-30MW")
def above_the_power_budget() -> float:
    return hpc_megawatts() / REFERENCE["power_budget"]


@claim("ramp", "RAMP-9-400MW")
def conclusion_megawatts() -> float:
    return dcn_megawatts()
