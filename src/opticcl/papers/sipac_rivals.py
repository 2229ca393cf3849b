"""SiPAC against its electrical rivals: component counts of figure 9, primitives of figure 11, hybrid traffic of figure 13.

Figure 11 gives ranges alone, and no assumption that we know gives all of them. Its two endpoints that come out were
found by trying many assumptions (our notes count 192), so they are fits and confirm nothing. What is assumed:

    message     1 MB is all that a node sends: 1/512 of it to each other (`PAIR`), or 1 MB to each other (`EACH`)
    closed form the longest path's latency, then the busiest link; the flow engine lets both overlap
    SuperPod    32-port switches, over which flows spread evenly, and half of NVLink's 9 us at each end (`NVLINK`)
"""

from __future__ import annotations

from functools import cache

from opticcl.circuits import lower
from opticcl.data import load
from opticcl.fabric import fabric, job
from opticcl.ir import Fabric
from opticcl.papers import claim
from opticcl.schedule import generate
from opticcl.simulate import assumptions, closed_form
from opticcl.simulate.flow import flow

PAIR, EACH = 10**6, 512 * 10**6  # what a node sends in all [bytes]
SIPAC = "sipac:radix=8,levels=3,node_rate=2048Gb/s"
TORUS = "torus:shape=16x32,rate=512Gb/s"
BCUBE = "bcube:radix=8,levels=3,node_rate=2048Gb/s"
NVLINK = "nvlink_rate=2048Gb/s,radix=32,leaf_latency=5.5us"
SUPERPOD = f"superpod:nodes=512,preset=sipac,{NVLINK}"

# --- figure 9 ---------------------------------------------------------------------------------------------------------

ENDS = ("transceiver", "comb_transceiver", "copper_end", "backplane_end")
COUNTED = {
    "sipac": SIPAC,
    "bcube": BCUBE,
    "torus": "torus:shape=8x8x8",
    "fat_tree": "fat_tree:nodes=512,radix=16,layers=3",
    "dragonfly": "dragonfly:nodes=576,nodes_per_router=8,routers_per_group=8,global_links=1",
}


def _count(where: Fabric, *kinds: str) -> int:
    return sum(part.count for part in where.parts if part.kind in kinds)


def _ends_a_node(name: str) -> float:
    """Ends of links that a node has its share in, all of them optical."""
    where = fabric(COUNTED[name])
    return _count(where, *ENDS) / where.num_nodes


def _links_a_node(name: str) -> float:
    """Links that a node has its share in; of SiPAC, whose switches have no transceivers, those of the nodes."""
    return _ends_a_node(name) / (1 if name == "sipac" else 2)


@claim("sipac", "S22")
def server_rate() -> float:
    """Cards of the eight nodes of a server [bit/s]."""
    where = fabric(SUPERPOD)
    card = min(resource.capacity for resource in where.resources)
    nodes: int = where.parameters["nodes_per_server"]
    return nodes * card


@claim("sipac", "S23d")
def links_of_three_networks() -> list[float]:
    """Links a node of SiPAC, BCube and a torus of three dimensions."""
    return [_links_a_node(name) for name in ("sipac", "bcube", "torus")]


@claim("sipac", "S26")
def fewer_links_than_superpod() -> bool:
    """3 p against 8 p: our SuperPod draws a node's NVLinks as one."""
    where = fabric(SUPERPOD)
    nvswitches: int = load("papers/sipac_rivals.toml")["S26"]["nvswitches"]
    links = nvswitches * _count(where, "backplane_end") // 2 + _count(where, "transceiver") // 2
    return _links_a_node("sipac") * where.num_nodes < links


@claim("sipac", "S27")
def fewer_transceivers() -> bool:
    """3 p against 6 p of each."""
    return all(_ends_a_node("sipac") < _ends_a_node(name) for name in ("bcube", "torus", "fat_tree"))


@claim("sipac", "S27d")
def fewer_transceivers_than_dragonfly() -> bool:
    """3 p against 3 p."""
    return _ends_a_node("sipac") < _ends_a_node("dragonfly")


@claim("sipac", "S28")
def traditional_networks_have_fewer() -> list[bool]:
    """Links of a dragonfly and a fat tree, switches of a dragonfly: fewer a node than SiPAC's."""
    links = [_links_a_node(name) < _links_a_node("sipac") for name in ("dragonfly", "fat_tree")]
    dragonfly, sipac = fabric(COUNTED["dragonfly"]), fabric(SIPAC)
    switches = (
        _count(dragonfly, "electrical_switch") / dragonfly.num_nodes,
        _count(sipac, "mrr_switch") / sipac.num_nodes,
    )
    return [*links, switches[0] < switches[1]]


# --- figure 11 --------------------------------------------------------------------------------------------------------


@cache
def _time_s(spec: str, collective: str, size: int, engine: str = "closed_form") -> float:
    """SiPCO on SiPAC, everything at once on the others."""
    where = fabric(spec)
    plan = lower(where, generate("sipco" if where.name == "sipac" else "mesh", collective, where))
    play = closed_form if engine == "closed_form" else flow
    return play(plan, size, assumptions("sipac")).total_s


def _slower(spec: str, collective: str, size: int = PAIR, engine: str = "closed_form") -> float:
    """Time over SiPAC's."""
    return _time_s(spec, collective, size, engine) / _time_s(SIPAC, collective, size, engine)


@claim("sipac", "S29")
def superpod_least() -> float:
    """All-to-all, fitted."""
    return _slower(SUPERPOD, "all_to_all")


@claim("sipac", "S29f")
def superpod_least_by_flows() -> float:
    """The same by the flow engine."""
    return _slower(SUPERPOD, "all_to_all", engine="flow")


@claim("sipac", "S29l")
def superpod_least_as_described() -> float:
    """All-to-all with the fabric's preset: 40-port switches, NVLink's latency within a server only."""
    return _slower("superpod:nodes=512,preset=sipac,nvlink_rate=2048Gb/s", "all_to_all")


@claim("sipac", "S29u")
def superpod_most() -> float:
    """One to all, over the root's own card."""
    return _slower(SUPERPOD, "scatter")


@claim("sipac", "S30")
def torus_most() -> float:
    """All-to-all, fitted: the longest path and then the busiest link."""
    return _slower(TORUS, "all_to_all")


@claim("sipac", "S30f")
def torus_most_by_flows() -> float:
    """All-to-all by the flow engine, where far and near messages overlap."""
    return _slower(TORUS, "all_to_all", engine="flow")


@claim("sipac", "S30l")
def torus_least() -> float:
    """One to all, 1 MB to each."""
    return _slower(TORUS, "scatter", EACH)


@claim("sipac", "S31")
def bcube_least() -> float:
    """One to all over the digits in turn."""
    return _slower(BCUBE, "scatter")


@claim("sipac", "S31a")
def bcube_all_to_all() -> float:
    """All-to-all."""
    return _slower(BCUBE, "all_to_all")


@claim("sipac", "S31u")
def bcube_most() -> float:
    """One to all, 1 MB to each, with the digits always in one order: the worst of all that we tried."""
    return _slower(f"{BCUBE},routing=dimension_order", "scatter", EACH)


# --- figure 13 --------------------------------------------------------------------------------------------------------

RATES = (128e9, 512e9, 1024e9, 2048e9, 4096e9)  # of a node
HYBRID = 100 * 10**6
MODEL, RADIX = 8, 8  # nodes of a model group (the text's mapping), all on one switch or in one server


def _s(where: Fabric, algorithm: str, collective: str) -> float:
    return closed_form(lower(where, generate(algorithm, collective, where)), HYBRID, assumptions("sipac")).total_s


@cache
def _hybrid_s(name: str, nodes: int, rate: float) -> float:
    """All-to-all in a group of 8, then an all-reduce across the groups; all groups at once, and none meets another.

    SiPAC has its published channels: a model group is a switch of level 0, the others have the other levels. A
    SuperPod's card is no faster than its node.
    """
    levels = {64: 2, 512: 3}[nodes]
    if name == "sipac":
        link = rate / levels
        group = fabric("sipac", radix=RADIX, levels=1, node_rate=link)
        across = fabric("sipac", radix=RADIX, levels=levels - 1, node_rate=link * (levels - 1))
        return _s(group, "sipco", "all_to_all") + _s(across, "sipco", "all_reduce")
    machine = (
        fabric("superpod", nodes=nodes, preset="sipac", nvlink_rate=rate, card_rate=min(rate, 200e9))
        if name == "superpod"
        else fabric("bcube", radix=RADIX, levels=levels, node_rate=rate)
    )
    group, across = job(machine, range(MODEL)), job(machine, range(0, nodes, MODEL))
    return _s(group, "mesh", "all_to_all") + _s(across, "ring", "all_reduce")


@claim("sipac", "S34")
def all_alike_at_first() -> float:
    """Slowest over fastest of BCube, SuperPod and SiPAC, 64 nodes of 128 Gb/s."""
    times = [_hybrid_s(name, 64, RATES[0]) for name in ("bcube", "superpod", "sipac")]
    return max(times) / min(times)


@claim("sipac", "S35")
def slower_than_superpod_at_first() -> list[bool]:
    """512 nodes: whether SiPAC is slower than the SuperPod at each rate."""
    return [_hybrid_s("sipac", 512, rate) > _hybrid_s("superpod", 512, rate) for rate in RATES]


@claim("sipac", "S36")
def superpod_is_flat() -> bool:
    """512 nodes: whether 8 times the rate, from 512 Gb/s on, saves less than a fifth of the time."""
    return _hybrid_s("superpod", 512, RATES[-1]) > 0.8 * _hybrid_s("superpod", 512, RATES[1])
