"""SiPAC against its electrical rivals: component counts of figure 9, primitives of figure 11, figures 12 and 13, the testbed.

Figure 11 has ranges alone, and no set of assumptions that is known gives all of them. Assumptions:

    message     1 MB is all that a node sends: 1/512 of it to each other (`PAIR`), or 1 MB to each other (`EACH`)
    closed form the latency of the longest path, then the most congested link; flow and packet engine overlap both
    SuperPod    as the fabric's preset has it (`SUPERPOD`); or fitted: 32-port switches, over which flows spread evenly, and
                half of NVLink's 9 us at each end (`FITTED`)
"""

from __future__ import annotations

from functools import cache
from typing import Any

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric, job
from opticcl.fabrics.superpod import SuperPod
from opticcl.ir import CircuitPlan, Fabric
from opticcl.papers import Found, claim, found, printed_claims
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.simulate import Profile, profile, simulate

PAIR, EACH = 10**6, 512 * 10**6  # what a node sends in all [bytes]
SIPAC = "sipac:radix=8,levels=3,node_rate=2048Gb/s"
TORUS = "torus:shape=16x32,rate=512Gb/s"
BCUBE = "bcube:radix=8,levels=3,node_rate=2048Gb/s"
SUPERPOD = "superpod:nodes=512,preset=sipac,nvlink_rate=2048Gb/s"
FITTED = f"{SUPERPOD},radix=32,leaf_latency=5.5us"

# --- figure 9 ---------------------------------------------------------------------------------------------------------

ENDS = ("transceiver", "comb_transceiver", "copper_end", "backplane_end")
COUNTED = {
    "sipac": SIPAC,
    "bcube": BCUBE,
    "torus": "torus:shape=8x8x8",
    "fat_tree": "fat_tree:nodes=512,radix=16,layers=3",
    "dragonfly": "dragonfly:nodes=550,nodes_per_router=5,routers_per_group=10,global_links=1",
}


def _count(where: Fabric, *kinds: str) -> int:
    return sum(part.count for part in where.parts() if part.kind in kinds)


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
    where = fabric(FITTED)
    card = min(resource.capacity for resource in where.resources)
    return where.machine_as(SuperPod).nodes_per_server * card


@claim("sipac", "S23d")
def links_of_three_networks() -> list[float]:
    """Links a node of SiPAC, BCube and a torus of three dimensions."""
    return [_links_a_node(name) for name in ("sipac", "bcube", "torus")]


@claim("sipac", "S26")
def fewer_links_than_superpod() -> Found:
    """The fabric has a node's NVLinks as one."""
    where = fabric(FITTED)
    nvswitches: int = printed_claims("sipac")["S26"]["nvswitches"]
    links = nvswitches * _count(where, "backplane_end") // 2 + _count(where, "transceiver") // 2
    sipac, superpod = _links_a_node("sipac"), links / where.num_nodes
    return found(sipac < superpod, sipac=sipac, superpod=superpod)


@claim("sipac", "S27")
def fewer_transceivers() -> Found:
    """Per node."""
    rivals = {name: _ends_a_node(name) for name in ("bcube", "torus", "fat_tree")}
    return found(all(_ends_a_node("sipac") < ends for ends in rivals.values()), sipac=_ends_a_node("sipac"), **rivals)


@claim("sipac", "S27d")
def fewer_transceivers_than_dragonfly() -> Found:
    """Per node."""
    sipac, dragonfly = _ends_a_node("sipac"), _ends_a_node("dragonfly")
    return found(sipac < dragonfly, sipac=sipac, dragonfly=dragonfly)


@claim("sipac", "S28")
def traditional_networks_have_fewer() -> Found:
    """Whether most of three are fewer a node than SiPAC's: links of a dragonfly and a fat tree, switches of a dragonfly."""
    links = [_links_a_node(name) < _links_a_node("sipac") for name in ("dragonfly", "fat_tree")]
    dragonfly, sipac = fabric(COUNTED["dragonfly"]), fabric(SIPAC)
    switches = (
        _count(dragonfly, "electrical_switch") / dragonfly.num_nodes,
        _count(sipac, "mrr_switch") / sipac.num_nodes,
    )
    per_node = {name: _links_a_node(name) for name in ("dragonfly", "fat_tree", "sipac")}
    fewer = sum([*links, switches[0] < switches[1]])
    return found(fewer >= 2, fewer=fewer, **per_node)


# --- figure 11 --------------------------------------------------------------------------------------------------------


@cache
def _plan(spec: str, collective: str) -> CircuitPlan:
    """SiPCO on SiPAC, all pairs in one step on the others."""
    where = fabric(spec)
    return lower(where, generate(where.algorithm or "mesh", collective, where))


@cache
def _time_s(spec: str, collective: str, size: int, engine: str = "closed_form", **options: Any) -> float:
    """Time of the plan of that name [s]."""
    return simulate(_plan(spec, collective), size, "sipac", engine=engine, **options).timeline.total_s


@claim("sipac", "S29f", FITTED, "all_to_all", engine="flow")
@claim("sipac", "S29l", SUPERPOD, "all_to_all")
@claim("sipac", "S29p", SUPERPOD, "all_to_all", engine="packet")
@claim("sipac", "S29u", FITTED, "scatter")
@claim("sipac", "S29g", SUPERPOD, "gather", engine="packet")
@claim("sipac", "S29s", SUPERPOD, "scatter", engine="packet")
@claim("sipac", "S30", TORUS, "all_to_all")
@claim("sipac", "S30f", TORUS, "all_to_all", engine="flow")
@claim("sipac", "S31p", BCUBE, "scatter", engine="packet")
@claim("sipac", "S31a", BCUBE, "all_to_all")
@claim("sipac", "S31u", f"{BCUBE},routing=dimension_order", "scatter", EACH)
def _slower(spec: str, collective: str, size: int = PAIR, engine: str = "closed_form", **options: Any) -> float:
    """Time over SiPAC's; options of the engine are for the rival.

    The closed form takes the longest path and then the most congested link, where the flow engine lets far and near messages
    overlap. S31u, with the digits always in one order, is the largest of all that were tried.
    """
    return _time_s(spec, collective, size, engine, **options) / _time_s(SIPAC, collective, size, engine)


@claim("sipac", "S29")
def superpod_least() -> Found:
    """All-to-all, fitted; and with NVLink's latency left out or doubled."""
    none, twice = (f"{SUPERPOD},radix=32,leaf_latency={latency}" for latency in ("1us", "10us"))
    return found(_slower(FITTED, "all_to_all"), least=_slower(none, "all_to_all"), most=_slower(twice, "all_to_all"))


@claim("sipac", "S30l")
def torus_least() -> Found:
    """One to all, 1 MB to each."""
    return found(_slower(TORUS, "scatter", EACH), in_all=_slower(TORUS, "scatter"))


@claim("sipac", "S31")
def bcube_least() -> Found:
    """One to all over the digits in turn."""
    return found(_slower(BCUBE, "scatter"), all_to_all=_slower(BCUBE, "all_to_all"))


@claim("sipac", "S31g")
def bcube_most_with_small_buffers() -> Found:
    """All to one by the packet engine, senders with a window and buffers of 150 kB; and of 200 kB."""
    small, large = (
        _slower(BCUBE, "gather", engine="packet", transport="windowed", buffer_bytes=size) for size in (150e3, 200e3)
    )
    return found(small, large=large)


@claim("sipac", "S32")
def least_and_most() -> Found:
    """Least and most over SuperPod and BCube by the packet engine, BCube's all-to-all in closed form; lossless."""
    factors = {
        f"{collective} on {name}": _slower(spec, collective, engine="packet")
        for name, spec in (("the SuperPod", SUPERPOD), ("BCube", BCUBE))
        for collective in ("gather", "scatter")
    }
    factors["all_to_all on the SuperPod"] = _slower(SUPERPOD, "all_to_all", engine="packet")
    factors["all_to_all on BCube"] = _slower(BCUBE, "all_to_all")
    least, most = (which(factors, key=factors.__getitem__) for which in (min, max))
    return found([round(factors[least], 2), round(factors[most], 2)], least=least, most=most)


# --- figure 12 and the testbed ----------------------------------------------------------------------------------------


@cache
def _all_reduce(spec: str, algorithm: str) -> Profile:
    """Cost of an all-reduce."""
    return profile(compile(spec, "all_reduce", 0, algorithm=algorithm).circuits, assumptions("sipac"))


def _all_reduce_s(spec: str, algorithm: str, size: int) -> float:
    return _all_reduce(spec, algorithm).timeline(size, bounded=False).total_s


@claim("sipac", "S37")
def order_of_algorithms() -> bool:
    """Whether SiPCO on SiPAC is faster than the mesh on BCube, and that than the hierarchical ring, 1 to 100 MB."""
    return all(
        _all_reduce_s(SIPAC, "sipco", size)
        < _all_reduce_s(BCUBE, "mesh", size)
        < _all_reduce_s(BCUBE, "hierarchical_ring:group_size=8", size)
        for size in (10**6, 10**7, 10**8)
    )


@claim("sipac", "S38")
def testbed_over_bcube() -> float:
    """Part of BCube(2, 2)'s time that SiPAC(2, 2) saves in a ring all-reduce of MobileNetV2's gradients [%]."""
    gradients = 4 * int(printed_claims("sipac")["S38"]["parameters"])
    sipac, bcube = (
        _all_reduce_s(spec, "ring", gradients)
        for spec in (
            "sipac:radix=2,levels=2,node_rate=20Gb/s,channels=retuned",
            "bcube:radix=2,levels=2,node_rate=20Gb/s",
        )
    )
    return 100 * (1 - sipac / bcube)


# --- figure 13 --------------------------------------------------------------------------------------------------------

RATES = (128e9, 512e9, 1024e9, 2048e9, 4096e9)  # of a node
HYBRID = 100 * 10**6
MODEL, RADIX = 8, 8  # nodes of a model group (the text's mapping), all on one switch or in one server


def _s(where: Fabric, algorithm: str, collective: str) -> float:
    return simulate(lower(where, generate(algorithm, collective, where)), HYBRID, "sipac").timeline.total_s


@cache
def _hybrid_s(name: str, nodes: int, rate: float, model: int = MODEL) -> float:
    """All-to-all in a model group, then an all-reduce across the groups; all groups at the same time, without conflicts [s].

    SiPAC has its published channels: a model group fills its lowest levels, the others join the groups. A SuperPod's card is
    no faster than its node.

    Args:
        rate: of a node [bit/s].
    """
    levels, lower_levels = {64: 2, 512: 3}[nodes], {8: 1, 64: 2}[model]
    if name == "sipac":
        link = rate / levels
        group = fabric("sipac", radix=RADIX, levels=lower_levels, node_rate=link * lower_levels)
        across = fabric("sipac", radix=RADIX, levels=levels - lower_levels, node_rate=link * (levels - lower_levels))
        return _s(group, "sipco", "all_to_all") + _s(across, "sipco", "all_reduce")
    machine = (
        fabric("superpod", nodes=nodes, preset="sipac", nvlink_rate=rate, card_rate=min(rate, 200e9))
        if name == "superpod"
        else fabric("bcube", radix=RADIX, levels=levels, node_rate=rate)
    )
    group, across = job(machine, range(model)), job(machine, range(0, nodes, model))
    return _s(group, "mesh", "all_to_all") + _s(across, "ring", "all_reduce")


@claim("sipac", "S33", 64)
@claim("sipac", "S35", MODEL)
def _slower_than_superpod(model: int) -> Found:
    """512 nodes: whether SiPAC is slower than the SuperPod at each rate, and between which rates it overtakes [Gb/s]."""
    slower = [_hybrid_s("sipac", 512, rate, model) > _hybrid_s("superpod", 512, rate, model) for rate in RATES]
    first = slower.index(False)
    return found(slower, below=RATES[first - 1] / 1e9, above=RATES[first] / 1e9)


@claim("sipac", "S34")
def similar_at_first() -> Found:
    """Slowest over fastest of BCube, SuperPod and SiPAC, 64 nodes of 128 Gb/s."""
    times = {name: _hybrid_s(name, 64, RATES[0]) * 1e3 for name in ("bcube", "superpod", "sipac")}
    return found(max(times.values()) / min(times.values()), **times)


@claim("sipac", "S36")
def superpod_is_flat() -> Found:
    """512 nodes: whether 8 times the rate, from 512 Gb/s on, saves less than a fifth of the time."""
    saved = 1 - _hybrid_s("superpod", 512, RATES[-1]) / _hybrid_s("superpod", 512, RATES[1])
    return found(saved < 0.2, saved=100 * saved)
