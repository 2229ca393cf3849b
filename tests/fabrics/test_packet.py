"""What all packet fabrics have in common: limits of size, names of links, kinds of vertices, parts."""

from itertools import pairwise

import numpy as np
import pytest
from tests.fabrics.walks import pairs, routed

from opticcl.errors import FabricError
from opticcl.fabrics import fabric
from opticcl.fabrics._packet import PacketFabric

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


@pytest.mark.parametrize(
    ("specification", "words"),
    [
        ("leaf_spine:nodes=1000000000", "1,000,000,000 nodes; at most 4,194,304"),
        ("leaf_spine:nodes=1000000,nodes_per_leaf=1,spines=1000000", "2,000,002,000,000 links; at most 67,108,864"),
        ("fat_tree:nodes=1000000000,radix=100000", "1,000,000,000 nodes"),
        ("superpod:nodes=1000000000,radix=100000", "1,000,000,000 nodes"),
        ("superpod:nodes=16,radix=100000000", "links; at most"),
        ("dragonfly:nodes=2,nodes_per_router=1,routers_per_group=1000000,global_links=9", "999,999,000,004 links"),
        ("sip_ring:nodes=1000000000", "1,000,000,000 nodes"),
    ],
)
def test_machines_too_large_for_memory_are_refused(specification, words):
    """With the number and the largest one, before an array of that size is allocated."""
    with pytest.raises(FabricError, match=words):
        fabric(specification)


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
