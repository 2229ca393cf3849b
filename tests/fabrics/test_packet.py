"""What all packet fabrics have in common: limits of size, names of links, kinds of vertices, parts."""

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from tests.fabrics.walks import pairs, routed

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError
from opticcl.fabrics import _packet, fabric
from opticcl.fabrics._packet import PacketFabric
from opticcl.ir.capacity import thresholds

ODD = (
    "fat_tree:nodes=1",
    "fat_tree:nodes=29,radix=4,layers=4",
    "fat_tree:nodes=30,radix=8,layers=2,oversubscription=3",
    "leaf_spine:nodes=1",
    "leaf_spine:nodes=50,nodes_per_leaf=7,spines=5",
    "superpod:nodes=1",
    "superpod:nodes=9",
    "superpod:nodes=40,nodes_per_server=1",
    "superpod:nodes=61,nodes_per_server=3,radix=8",
    "bcube:radix=1,levels=1",
    "bcube:radix=3,levels=3",
    "dragonfly:nodes=1",
    "dragonfly:nodes=11,nodes_per_router=11,routers_per_group=1,global_links=0",
    "dragonfly:nodes=31",
    "torus:shape=1",
    "torus:shape=2x1x3",
    "torus:shape=3x4",
    "topoopt:nodes=1",
    "topoopt:nodes=2,degree=3",
    "topoopt:nodes=13,degree=2",
)


@pytest.mark.parametrize("name", ["fat_tree", "leaf_spine", "superpod", "dragonfly", "topoopt"])
def test_factors_are_positive(name):
    """The message names the factor, not the rate that results."""
    with pytest.raises(FabricError, match=f"{name}: rate_factor=-1; more than 0"):
        fabric(name, rate_factor=-1.0)


@pytest.mark.parametrize("specification", ODD)
def test_every_link_has_a_name_of_its_own(specification):
    """Names begin at the sender's end: the links of a path connect by their names too."""
    made = fabric(specification)
    assert isinstance(made, PacketFabric)
    names = [name for r, kind in enumerate(made.resources) for name in made.place_names(r, np.arange(kind.count))]
    assert len(names) == len(set(names)) == len(made.network.tail)
    ends = [name.removeprefix("link ").split(" -> ") for name in names]
    circuits = routed(made, *pairs(made.num_nodes))
    for i in range(0, len(circuits), max(1, len(circuits) // 50)):
        hops = circuits.hops[circuits.hop_offsets[i] : circuits.hop_offsets[i + 1]]
        path = [ends[hop] for hop in hops]
        assert path[0][0] == made.node_name(int(circuits.src[i]))
        assert path[-1][1] == made.node_name(int(circuits.dst[i]))
        assert all(left[1] == right[0] for left, right in pairwise(path))


@pytest.mark.parametrize("specification", ODD)
def test_kinds_of_links_follow_from_kinds_of_vertices(specification):
    """Nodes are kind 0, every switch has another kind, and the kind of a link names both."""
    made = fabric(specification)
    kind, names = made.vertex_kinds()
    assert names[0] == "node"
    assert len(kind) == made.network.num_vertices
    assert (kind[: made.num_nodes] == 0).all()
    assert (kind[made.num_nodes :] > 0).all()
    assert kind.max() < len(names)
    first = 0
    for r, resource in enumerate(made.resources):
        kinds, of_link = made.kind_names(r, np.arange(resource.count))
        tail, head = (end[first : first + resource.count] for end in (made.network.tail, made.network.head))
        expected = [f"{names[kind[a]]} -> {names[kind[b]]}" for a, b in zip(tail, head, strict=True)]
        assert [kinds[k] for k in of_link] == expected
        first += resource.count


@pytest.mark.parametrize("specification", ODD)
def test_rates_and_latencies_of_links(specification):
    """One resource per rate in the order of the links; latencies are not negative."""
    made = fabric(specification)
    latencies = made.hop_latency_s(np.arange(made.network.num_links))
    assert latencies is not None
    assert (latencies >= 0).all()
    assert sum(r.count for r in made.resources) == made.network.num_links
    assert all(r.shared and r.capacity > 0 for r in made.resources)
    assert made.is_packet_switched
    scaled = made.with_node_rate(3 * made.node_rate_bits_per_s)
    assert scaled.node_rate_bits_per_s == pytest.approx(3 * made.node_rate_bits_per_s)
    assert [r.capacity for r in scaled.resources] == pytest.approx([3 * r.capacity for r in made.resources])


@pytest.mark.parametrize("specification", ODD)
def test_parts_have_an_end_for_every_link(specification):
    """Ends of cables: as many as directed links; but a node alone in its server has nothing to connect."""
    made = fabric(specification)
    ends = sum(p.count for p in made.parts() if p.kind in ("transceiver", "copper_end", "backplane_end"))
    if specification == "superpod:nodes=1":
        assert ends == 0
    elif made.name == "topoopt":  # parallel interfaces are one link
        assert ends == made.num_nodes * made.ports_per_node
    else:
        assert ends == made.network.num_links


# --- brute force --------------------------------------------------------------------------------------------------------

SMALL = (
    "fat_tree:nodes=10,radix=4,layers=3",
    "leaf_spine:nodes=7,nodes_per_leaf=3,spines=2",
    "superpod:nodes=13,nodes_per_server=3,radix=4",
    "bcube:radix=3,levels=2",
    "bcube:radix=2,levels=3",
    "dragonfly:nodes=11,nodes_per_router=2,routers_per_group=2,global_links=1",
    "torus:shape=2x3",
    "topoopt:nodes=7,degree=2",
)


def ends_of_links(made):
    """(tail, head, rate) of every link."""
    rates = [resource.capacity for resource in made.resources for _ in range(resource.count)]
    return list(zip(made.network.tail.tolist(), made.network.head.tolist(), rates, strict=True))


def relaxed(made, node, *, backwards, steps):
    """Least latency over at most that many links from a node to each vertex, or back from it [s]."""
    seconds = made.network.latency_s.tolist()
    found = [inf] * made.network.num_vertices
    found[node] = 0.0
    for _ in range(steps):
        before = list(found)
        for (tail, head, _), late in zip(ends_of_links(made), seconds, strict=True):
            begin, end = (head, tail) if backwards else (tail, head)
            found[end] = min(found[end], before[begin] + late)
    return found


@pytest.mark.parametrize("specification", SMALL)
def test_shortest_paths_are_the_least_sums_over_links(specification):
    """There and back, of one node, of all lengths of paths."""
    made = fabric(specification)
    for node in (0, made.num_nodes - 1):
        there, back = made.shortest_paths_s(node, made.hop_latency_s)
        for found, backwards in ((there, False), (back, True)):
            due = relaxed(made, node, backwards=backwards, steps=10)
            assert found.tolist() == pytest.approx(due[: made.num_nodes])


def leaving_by_hand(made, nodes):
    """What leaves and enters nodes and the switches that most of their incoming capacity joins to them [bit/s]."""
    inside, links = set(nodes), ends_of_links(made)
    for _ in range(8):
        joined = set(nodes)
        for switch in range(made.num_nodes, made.network.num_vertices):
            into = [(tail, rate) for tail, head, rate in links if head == switch]
            if 2 * sum(rate for tail, rate in into if tail in inside) > sum(rate for _, rate in into):
                joined.add(switch)
        if joined == inside:
            break
        inside = joined
    out = sum(rate for tail, head, rate in links if tail in inside and head not in inside)
    return out, sum(rate for tail, head, rate in links if tail not in inside and head in inside)


@pytest.mark.parametrize("specification", SMALL)
def test_cuts_have_the_capacity_of_the_links_between_both_sides(specification):
    """First coordinates of each dimension; first nodes: powers of two, quarters, those that share a switch with node 0."""
    made = fabric(specification)
    n, links = made.num_nodes, ends_of_links(made)
    for nodes in (np.arange(n), np.array([1, 3, 4, n - 1])):
        due = []
        sides = made.dimensions if len(made.dimensions) > 1 else ()
        coordinates = np.array(list(np.ndindex(*sides))) if sides else np.zeros((n, 0), int)
        for d in range(len(sides)):
            for first in thresholds(coordinates[nodes, d]):
                below = [node for node in range(n) if coordinates[node, d] < first]
                due.append((f"cut of dimension {d}", below))
        switches = {head for tail, head, _ in links if tail == 0 and head >= n}
        near = 1 + max([tail for tail, head, _ in links if head in switches and tail < n], default=0)
        ends = {end for end in {2, 4, 8, near, *thresholds(nodes)} if 0 < end < n}
        due += [(f"links of nodes 0 to {end - 1}", list(range(end))) for end in sorted(ends)]
        narrowest = len(list(made.narrowest_cuts(nodes)))
        found = list(made.cuts(nodes))[narrowest:]
        assert [cut.where for cut in found] == [where for where, _ in due]
        for cut, (_, below) in zip(found, due, strict=True):
            assert cut.inside.tolist() == [node in below for node in nodes.tolist()]
            assert (cut.out_bits_per_s, cut.in_bits_per_s) == pytest.approx(leaving_by_hand(made, below))


@pytest.mark.parametrize("specification", SMALL)
def test_no_cut_is_narrower_than_the_narrowest(specification):
    """Nodes on a side over what leaves it, of all sets of nodes with each switch where it passes least."""
    made = fabric(specification)
    n, links = made.num_nodes, ends_of_links(made)
    nodes = np.arange(n)
    narrowest = list(made.narrowest_cuts(nodes))
    for cut in narrowest:
        switches = range(n, made.network.num_vertices)
        if len(switches) > 8:
            continue
        side = set(nodes[cut.inside].tolist())
        sets = [side | {w for k, w in enumerate(switches) if bits >> k & 1} for bits in range(1 << len(switches))]
        least = min(sum(rate for tail, head, rate in links if tail in s and head not in s) for s in sets)
        assert cut.out_bits_per_s == pytest.approx(least)
    ratios = [max(c.inside.sum() / c.out_bits_per_s, (~c.inside).sum() / c.in_bits_per_s) for c in made.cuts(nodes)]
    assert max(ratios, default=0) <= max((c.inside.sum() / c.out_bits_per_s for c in narrowest), default=0) * (
        1 + 1e-12
    )


@pytest.mark.parametrize(
    ("specification", "where", "tbits_per_s", "parts"),
    [
        ("superpod:nodes=16", "cut of 15 nodes from node 0", 2.6, 16),
        ("superpod:nodes=32", "cut of 24 nodes from nodes 0 to 7", 1.6, 4),
        ("superpod:nodes=17", "cut of 16 nodes from node 16", 0.2, 2),
        ("torus:shape=3x4", "cut of 11 nodes from node 0", 2.048, 12),
    ],
)
def test_narrowest_cuts_by_name(specification, where, tbits_per_s, parts):
    """A GPU behind NVLink and card, a server behind its eight cards, one GPU alone in its server, a node behind four links.

    All nodes divide into as many such sets, but for the server with one GPU, which is behind less than the others.
    """
    (cut,) = fabric(specification).narrowest_cuts(np.arange(fabric(specification).num_nodes))
    assert (cut.where, cut.out_bits_per_s, cut.parts) == (where, pytest.approx(tbits_per_s * 1e12), parts)


def test_a_machine_with_many_links_is_not_cut(monkeypatch):
    """Exactly as many as allowed are."""
    made = fabric("torus:shape=2x3")
    monkeypatch.setattr(_packet, "MOST_LINKS_CUT", made.network.num_links)
    assert list(made.cuts(np.arange(6)))
    monkeypatch.setattr(_packet, "MOST_LINKS_CUT", made.network.num_links - 1)
    assert not list(made.cuts(np.arange(6)))


@pytest.mark.parametrize("specification", SMALL)
def test_usage_names_every_link_of_every_path(specification):
    """By resource and number within it, for every circuit."""
    made = fabric(specification)
    circuits = routed(made, *pairs(made.num_nodes))
    of_link = [(r, index) for r, resource in enumerate(made.resources) for index in range(resource.count)]
    due = [(i, *of_link[hop]) for i, hop in zip(circuits.hop_owner().tolist(), circuits.hops.tolist(), strict=True)]
    found = []
    for usage in made.usage(circuits):
        r = next(r for r, resource in enumerate(made.resources) if resource is usage.resource)
        found += [(i, r, index) for i, index in zip(usage.circuit.tolist(), usage.index.tolist(), strict=True)]
    assert sorted(found) == sorted(due)


def walks(made, src, dst, hops):
    """Whether links lead from src to dst, end to end, through what may pass packets on."""
    links, at = ends_of_links(made), src
    for k, hop in enumerate(hops):
        if not 0 <= hop < len(links) or links[hop][0] != at or (k and at < made.num_nodes and not made.network.relays):
            return False
        at = links[hop][1]
    return bool(hops) and at == dst


@pytest.mark.parametrize("specification", SMALL)
def test_faults_are_the_circuits_whose_links_lead_elsewhere(specification):
    """Paths of which one link is another one, of neighbours too, and paths cut short; with and without a kernel."""
    made = fabric(specification)
    src, dst = pairs(made.num_nodes)
    good = routed(made, src, dst)
    draw = np.random.default_rng(5)
    for wrong in (0, 1, 4):
        hops = good.hops.copy()
        at = draw.choice(len(hops), wrong, replace=False)
        hops[at] = draw.integers(0, made.network.num_links, wrong)
        bad = replace(good, hops=hops)
        paths = np.split(hops, good.hop_offsets[1:-1])
        ways = zip(src.tolist(), dst.tolist(), paths, strict=True)
        due = [i for i, (a, b, path) in enumerate(ways) if not walks(made, a, b, path.tolist())]
        assert refused(made, bad) == due
    for ends in ((good.dst, good.dst), (good.src, good.src), (good.dst, good.src)):
        swapped = replace(good, src=ends[0], dst=ends[1])
        assert refused(made, swapped) == list(range(len(good)))


def refused(made, circuits):
    """Circuits that the fabric has a fault of."""
    return [row for fault in made.faults(circuits) for row in fault.circuits.tolist()]


def test_a_path_through_a_node_is_refused_where_only_switches_forward():
    """Node 0 to node 2 by way of node 1: among circuits that arrive."""
    for specification, allowed in (
        ("leaf_spine:nodes=7,nodes_per_leaf=3,spines=2", False),
        ("bcube:radix=3,levels=2", True),
    ):
        made = fabric(specification)
        legs = [made.route(np.array([a]), np.array([b]))[0] for a, b in ((1, 2), (0, 1), (1, 2), (2, 0))]
        path = (np.concatenate(legs), np.array([0, 2, 6, 8]))
        circuits = _packet.Circuits.of(np.arange(3), np.array([1, 0, 2]), np.array([2, 2, 0]), path=path)
        found = [row for fault in made.faults(circuits) for row in fault.circuits.tolist()]
        assert found == ([] if allowed else [1])


@pytest.mark.parametrize("specification", SMALL[:-1])  # topoopt has lengths of its own
@pytest.mark.parametrize("per_rack", [2, 3, 5, 100])
def test_links_pass_metres_receivers_and_switches(specification, per_rack):
    """A switch of one rack's nodes stands there, every other one at the centre; NVSwitches have no receiver."""
    made = fabric(specification)
    n, floor = made.num_nodes, replace(assumptions("common").floor, nodes_per_rack=per_rack)
    racks = -(-n // per_rack)
    links = ends_of_links(made)
    passage = made.hop_passages(floor)
    servers = set(made.server_switches)

    def rack(vertex):
        if racks == 1:
            return 0
        if vertex < n:
            return vertex // per_rack
        joined = {tail // per_rack for tail, head, _ in links if head == vertex and tail < n}
        return joined.pop() if len(joined) == 1 else None

    for k, (tail, head, _) in enumerate(links):
        one, other = rack(tail), rack(head)
        if one is None and other is None:
            due = floor.overhead_m
        elif one is None or other is None:
            due = floor.to_centre_m(racks)[other if one is None else one]
        else:
            due = floor.between_m(racks, np.array([one]), np.array([other]))[0]
        assert passage.fibre_m[k] == pytest.approx(due)
        assert passage.receivers[k] == (not {tail, head} & servers)
        assert passage.server_switches[k] == (head in servers)
    alone = made.passage(floor)
    assert {alone.fibre_m, alone.waveguide_m, alone.receivers, alone.server_switches} == {0.0}


@pytest.mark.parametrize("specification", SMALL)
def test_a_path_of_h_links_has_h_minus_1_that_forward(specification):
    """Between any two nodes, over one link or more: switches, switches of servers and nodes on the way, not the receiver."""
    made = fabric(specification)
    floor, nodes = assumptions("common").floor, np.arange(made.num_nodes)
    src, dst = (ends.ravel() for ends in np.meshgrid(nodes, nodes))
    hops, ends = made.route(src[src != dst], dst[src != dst])
    of_hops, alone = made.hop_passages(floor), made.passage(floor)
    each = np.broadcast_to(of_hops.switches + of_hops.server_switches, made.network.num_links)
    forwards = np.add.reduceat(each[hops], ends[:-1]) + alone.switches
    assert forwards.tolist() == (np.diff(ends) - 1).tolist()


@pytest.mark.parametrize(
    "specification",
    [
        "fat_tree:nodes=10,radix=4,layers=3",
        "leaf_spine:nodes=7,nodes_per_leaf=3,spines=2",
        "superpod:nodes=13,nodes_per_server=3,radix=4",
        "superpod:nodes=9,nodes_per_server=1,radix=4",
        "superpod:nodes=8",
        "superpod:nodes=1",
        "dragonfly:nodes=11,nodes_per_router=2,routers_per_group=2,global_links=1",
    ],
)
def test_links_are_counted_before_they_are_made(specification, monkeypatch):
    """A machine with exactly as many as allowed is accepted, and with one more refused."""
    links = fabric(specification).network.num_links
    monkeypatch.setattr(_packet, "MAX_LINKS", links)
    fabric(specification)
    monkeypatch.setattr(_packet, "MAX_LINKS", links - 1)
    with pytest.raises(FabricError, match=rf": {links:,} links; at most {links - 1:,}, try fewer nodes or switches$"):
        fabric(specification)


def test_one_node_alone_has_no_way_to_go():
    """Without links."""
    made = fabric("torus:shape=1")
    assert [found.tolist() for found in made.shortest_paths_s(0, made.hop_latency_s)] == [[0.0], [0.0]]
