"""Readers of files that describe networks: what each format says, what it leaves out, and what is refused in one line."""

import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.fabrics.network_files import (
    ASTRA,
    CSV,
    DOGBONE,
    GML,
    GRAPHML,
    HTSIM,
    HTSIM_OF_THREE,
    MSCCL,
    NODE_LINK,
    RING,
    SIMAI,
    SIMGRID,
    TWO_BOXES,
    a100_boxes,
    cluster,
    columns,
    every_pair,
    most_of_all_cuts,
    nccl,
    network_of,
    smi,
    written,
)

import opticcl
from opticcl.assumptions import assumptions
from opticcl.errors import FabricError, OpticclError
from opticcl.fabrics import fabric
from opticcl.fabrics.networks import FORMATS
from opticcl.routing.forest.optimum import optimum

BOXES = sorted(
    (a, b, rate, 700.0)
    for one, other, rate in (("a0", "a1", 50.0), ("b0", "b1", 50.0), ("a0", "b0", 25.0), ("a1", "b1", 25.0))
    for a, b in ((one, other), (other, one))
)


@pytest.mark.parametrize("form", TWO_BOXES)
def test_the_same_boxes_in_every_format(form, tmp_path):
    """Equal links; two links of 25 GB/s between two nodes are as one of 50 where a format lists them."""
    text, given = TWO_BOXES[form]
    made = network_of(tmp_path, text, **given)
    found = Counter()
    rename = {str(k): name for k, name in enumerate(("a0", "a1", "b0", "b1"))} if form == "msccl" else {}
    for a, b, rate, late in columns(made):
        found[rename.get(a, a), rename.get(b, b), late] += rate
    assert sorted((a, b, rate, late) for (a, b, late), rate in found.items()) == BOXES
    assert made.num_nodes == 4
    assert most_of_all_cuts(made) == Fraction(1, 25)  # one box: two shards over 50 GB/s
    assert made.node_rate_bits_per_s == 600e9


@pytest.mark.parametrize("form", TWO_BOXES)
def test_two_boxes_of_a100_in_every_format(form, tmp_path):
    """3/65 s a GB of each GPU's part, as ForestColl finds, by all cuts."""
    text, given = a100_boxes()[form]
    made = network_of(tmp_path, text, **given)
    assert (made.num_nodes, made.network.num_vertices) == (16, 20)
    assert most_of_all_cuts(made) == Fraction(3, 65)
    graph = made.graph(np.arange(16))
    best = optimum(graph)
    assert best.time / Fraction(graph.unit_bits_per_s) * 8 * 10**9 == Fraction(3, 65)


@pytest.mark.parametrize(
    "form", [form if form == "csv" else pytest.param(form, marks=pytest.mark.deep) for form in TWO_BOXES]
)
def test_a_schedule_of_two_boxes_of_a100_takes_as_long(form, tmp_path):
    """As the optimum above, but for its last piece."""
    text, given = a100_boxes()[form]
    made = network_of(tmp_path, text, **given)
    plan = opticcl.compile(made, "all_gather", 10**11, algorithm="forest:pipeline=64")
    total_s = plan.simulate(assumptions=assumptions("published", compute="none")).total_s
    assert 300 / 65 / 16 < total_s < 1.04 * 300 / 65 / 16


def test_limits_of_one_sender(tmp_path):
    """A star whose middle sends or takes one at a time, as MSCCL-tools describe it: both ways of a switch before it."""
    text = '{"msccl_type": "topology", "links": [[0,1,1,1],[1,0,0,0],[1,0,0,0],[1,0,0,0]], "switches": '
    text += '[[[0], [1, 2, 3], 1, "out"], [[1, 2, 3], [0], 1, "in"]]}'
    made = network_of(tmp_path, text, rate="1GB/s")
    assert made.network.num_links == 8
    assert most_of_all_cuts(made) == 3  # what three nodes have enters the first by one link


def test_topologies_of_sccl(tmp_path):
    """As those of MSCCL-tools, under the name before; TACCL writes another form under it."""
    text = MSCCL.replace("msccl_type", "sccl_type")
    assert text != MSCCL
    assert columns(network_of(tmp_path, text, rate="25GB/s")) == columns(network_of(tmp_path, MSCCL, rate="25GB/s"))
    with pytest.raises(FabricError, match="is a topology of TACCL; write its links as a CSV edge list"):
        network_of(tmp_path, '{"sccl_type": "topology", "name": "x", "ngpus_per_node": 8, "node_links": []}')


@pytest.mark.parametrize("form", FORMATS.names())
def test_a_text_is_of_one_format(form):
    """And of the one that reads it."""
    texts = {form: text for form, (text, _) in TWO_BOXES.items()}
    texts |= {"astra_sim": ASTRA, "htsim": HTSIM, "ns3": SIMAI, "nvidia_smi": smi(every_pair(3, "NV4")), "nccl": nccl()}
    assert [name for name in FORMATS.names() if FORMATS.get(name).sniff(texts[form])] == [form]


# --- trees and rings --------------------------------------------------------------------------------------------------


def shape(made):
    """Links by the kinds of their ends and their rate in GB/s."""
    kind, names = made.vertex_kinds()
    net = made.network
    rows = zip(net.tail.tolist(), net.head.tolist(), net.rate_bits_per_s.tolist(), strict=True)
    return Counter((names[kind[a]], names[kind[b]], rate / 8e9) for a, b, rate in rows)


def test_a_tree_of_htsim(tmp_path):
    """Bundles are parallel links, a latency has that of the switch at the end of the link, up-links follow from radices."""
    made = network_of(tmp_path, HTSIM)
    ends = [("node", "ToR", 12.5), ("ToR", "node", 12.5), ("ToR", "core", 12.5), ("core", "ToR", 12.5)]
    assert shape(made) == Counter(dict.fromkeys(ends, 8))
    assert {late for a, _, _, late in columns(made) if a.startswith("core")} == {1000.0}
    assert {late for a, b, _, late in columns(made) if b.startswith("ToR") and not a.startswith("core")} == {1250.0}
    queues = network_of(tmp_path, HTSIM.replace("Radix_Up 4", "Radix_Up 4\nQueue_Up 10\nQueue_Down 20"))
    assert columns(queues) == columns(made)
    assert queues.notes[0] == "Sizes of queues are left out."
    made = network_of(tmp_path, HTSIM_OF_THREE)
    assert shape(made)["aggregation", "core", 6.25] == 8
    cores = {
        name: {b for a, b, _, _ in columns(made) if a == name} for name in ("core 0", "core 1", "core 2", "core 3")
    }
    assert cores == {
        "core 0": {"aggregation 0", "aggregation 2"}, "core 1": {"aggregation 1", "aggregation 3"},
        "core 2": {"aggregation 0", "aggregation 2"}, "core 3": {"aggregation 1", "aggregation 3"},
    }  # fmt: skip


def test_dimensions_of_astra_sim(tmp_path):
    """The first is fastest, a ring of two has one link, a switch one a group."""
    made = network_of(tmp_path, ASTRA)
    assert shape(made) == Counter({("node", "switch", 400): 8, ("switch", "node", 400): 8, ("node", "node", 50): 8})
    links = {(a, b): late for a, b, _, late in columns(made)}
    assert links["0", "4"] == links["7", "3"] == 1000
    assert links["3", "switch 0 of dimension 0"] == links["switch 1 of dimension 0", "4"] == 936.25
    ring = ASTRA.replace("[ Switch, Ring ]", "[ FullyConnected, Ring ]").replace("[ 4, 2 ]", "[ 3, 4 ]")
    assert shape(network_of(tmp_path, ring)) == Counter({("node", "node", 400): 24, ("node", "node", 50): 24})
    later = ASTRA.replace("[400, 50.0 ]", "[tbd, 50]").replace("[ 936.25, 1e3 ]", "[ 1, tbd ]")
    assert shape(network_of(tmp_path, later, rate="10GB/s", latency="1us"))["node", "switch", 10] == 8
    dashes = re.sub(r"\[(.*?)\]", lambda found: "".join(f"\n- {one.strip()}" for one in found[1].split(",")), ASTRA)
    assert columns(network_of(tmp_path, dashes)) == columns(made)
    assert columns(network_of(tmp_path, ASTRA.replace(",", ",  # the first\n  "))) == columns(made)


def test_texts_of_ns3(tmp_path):
    """Six numbers with NVSwitches first, three with an empty line where no switch is; ends in any order."""
    made = network_of(tmp_path, SIMAI)
    assert shape(made) == Counter(
        {
            ("node", "NVSwitch", 360): 4,
            ("NVSwitch", "node", 360): 4,
            ("node", "switch", 50): 4,
            ("switch", "node", 50): 4,
        }
    )
    assert most_of_all_cuts(made) == Fraction(1, 50)  # a box: two shards over two cards
    assert shape(network_of(tmp_path, RING)) == Counter({("node", "node", 3.125): 6})


def test_clusters_of_simgrid(tmp_path):
    """A ring of two has two links, a fat tree parallel ones, a backbone is between all."""
    torus = network_of(tmp_path, cluster("TORUS", 6, "3,2"))
    assert shape(torus) == Counter({("node", "node", 0.125): 24})
    assert Counter((a, b) for a, b, _, _ in columns(torus))["n0", "n3"] == 2
    tree = network_of(tmp_path, cluster("FAT_TREE", 16, "2;4,4;1,2;1,2", loopback_bw="100MBps", loopback_lat="0"))
    assert shape(tree) == Counter(
        {("node", "switch", 0.125): 16, ("switch", "node", 0.125): 16, ("switch", "switch", 0.125): 32}
    )
    assert tree.network.num_vertices == 22
    assert "Loopback links are left out." in tree.notes
    wide = network_of(tmp_path, cluster("FLAT", 3, bb_bw="1GBps", bb_lat="1us", bb_sharing_policy="FATPIPE"))
    assert shape(wide) == Counter({("node", "switch", 0.125): 3, ("switch", "node", 0.125): 3})
    assert wide.notes == ("The backbone of policy FATPIPE limits no sum of flows and is left out.",)
    star = network_of(tmp_path, cluster("FLAT", 3, bb_bw="1GBps", bb_lat="1us"))
    assert shape(star) == Counter(
        {("node", "switch", 0.125): 3, ("switch", "node", 0.125): 3, ("switch", "switch", 1): 1}
    )


def test_routes_of_one_direction(tmp_path):
    """A route that is not symmetrical has one; a second one has the other, by the name of the direction too."""
    one = '<route src="a0" dst="b0" symmetrical="NO"><link_ctn id="0_UP"/></route>'
    other = '<route src="b0" dst="a0" symmetrical="NO"><link_ctn id="0_DOWN"/></route>'
    whole = '<route src="a0" dst="b0"><link_ctn id="0"/></route>'
    assert columns(network_of(tmp_path, SIMGRID.replace(whole, one + other))) == BOXES
    assert columns(network_of(tmp_path, SIMGRID.replace(whole, one + whole))) == BOXES
    assert columns(network_of(tmp_path, SIMGRID.replace(whole, other))) == [
        row for row in BOXES if row[:2] != ("a0", "b0")
    ]


# --- servers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "given", "due"),
    [
        (every_pair(8, "NV12"), {"gpu": "a100"}, Fraction(7, 300)),  # ForestColl's value of a DGX A100
        (every_pair(4, "NV4"), {"gpu": "a100"}, Fraction(1, 100)),  # direct: three pairs use all twelve links
        (every_pair(4, "NV6"), {"gpu": "h100"}, Fraction(3, 450)),  # 18 links of an H100 are direct
        (every_pair(4, "NV6"), {"gpu": "v100"}, Fraction(3, 150)),  # a V100 has six: NVSwitches
        (every_pair(4, "NV6"), {"nvlink_rate": "25GB/s", "nvswitch": "no"}, Fraction(3, 450)),
        (
            [["NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS"], ["NV2", "NV1", "SYS", "NV2", "SYS", "SYS"],
             ["NV2", "SYS", "SYS", "NV1", "SYS"], ["SYS", "SYS", "SYS", "NV1"], ["NV1", "NV1", "NV2"], ["NV2", "NV1"], ["NV2"]],
            {"gpu": "v100"}, Fraction(7, 150),  # DGX-1: 7/6 of one link
        ),
        ([["PXB", "SYS", "SYS"], ["SYS", "SYS"], ["PIX"]], {"pcie": "12GB/s", "sys": "8GB/s"}, Fraction(1, 4)),
        ([["PXB", "SYS", "SYS"], ["SYS", "SYS"], ["PIX"]], {"pcie": "12GB/s", "sys": "6GB/s"}, Fraction(1, 3)),
        ([["NV4", "SYS", "SYS"], ["SYS", "SYS"], ["NV4"]], {"gpu": "a6000", "pcie": "12GB/s", "sys": "6GB/s"}, Fraction(1, 3)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tabs", [True, False])
def test_servers_of_nvidia_smi(words, given, due, tabs, tmp_path):
    """Switches or direct links, and PCIe where NVLinks do not join all: the worst of all cuts."""
    assert most_of_all_cuts(network_of(tmp_path, smi(words, tabs=tabs), **given)) == due


def test_codes_of_terminals_and_rows_of_cards_do_not_matter(tmp_path):
    """Underlined header, Windows line ends, another legend."""
    near = [["PIX", "SYS", "SYS"], ["SYS", "PIX", "SYS"], ["SYS", "SYS", "SYS"]]
    plain = smi(every_pair(3, "NV18"), near)
    marked = (
        plain.replace("\tGPU0", "\t\x1b[4mGPU0", 1)
        .replace("NUMA Affinity", "NUMA Affinity\tGPU NUMA ID\x1b[0m", 1)
        .replace("\n", "\r\n")
    )
    assert columns(network_of(tmp_path, marked, gpu="h100")) == columns(network_of(tmp_path, plain, gpu="h100"))
    glued = plain.replace("NV18\tPIX\tSYS", "NV18PIX\tSYS").replace("SYS\tSYS", "SYSSYS").replace("X\tNV18", "XNV18")
    assert len(glued) < len(plain)
    assert columns(network_of(tmp_path, glued, gpu="h100")) == columns(network_of(tmp_path, plain, gpu="h100"))


@pytest.mark.parametrize(
    ("nics", "links"),
    [
        (
            [["PIX", "SYS"], ["SYS", "PXB"], ["SYS", "SYS"]],
            {("0/GPU0", 25), ("0/GPU1", 25), ("1/GPU0", 25), ("1/GPU1", 25)},
        ),
        ([["PXB", "PXB"], ["PXB", "PXB"]], {("0/GPU0", 25), ("0/GPU1", 25), ("1/GPU0", 25), ("1/GPU1", 25)}),
        ([["PIX", "PIX"]], {("0/PCI switch of NIC0", 25), ("1/PCI switch of NIC0", 25)}),
    ],
)
def test_cards_join_copies(nics, links, tmp_path):
    """Each is given to the nearest GPU, of equal ones one a GPU; one that two GPUs share is behind their PCI switch."""
    made = network_of(tmp_path, smi([["NV12"]], nics), gpu="a100", copies=2, nic_rate="200Gb/s", pcie="24GB/s")
    into = {(a, rate) for a, b, rate, _ in columns(made) if b == "switch of the NICs"}
    assert into == links
    assert made.num_nodes == 4
    shared = {(a, b, rate) for a, b, rate, _ in columns(made) if "PCI" in b and "GPU" in a}
    assert {rate for _, _, rate in shared} == ({24} if "PCI" in min(links)[0] or "PCI" in max(links)[0] else set())


def test_dumps_and_templates_of_nccl(tmp_path):
    """GPUs in the order of their ranks, NVSwitches that only targets name; PCIe by NCCL's table, alone or beside."""
    made = network_of(tmp_path, nccl())
    assert [made.coordinates(k) for k in range(4)] == ["0 (GPU0)", "1 (GPU1)", "2 (GPU2)", "3 (GPU3)"]
    assert shape(made) == Counter({("node", "NVSwitch", 75): 8, ("NVSwitch", "node", 75): 8})
    assert any("25 GB/s in a direction, that of a100" in note for note in made.notes)
    assert most_of_all_cuts(made) == Fraction(3, 150)
    beside = network_of(tmp_path, nccl(), with_pcie=True)
    assert most_of_all_cuts(beside) == Fraction(3, 174)  # 150 and 24
    unsaid = network_of(tmp_path, nccl().replace("16.0 GT/s PCIe", "Unknown speed"), with_pcie=True)
    assert most_of_all_cuts(unsaid) == Fraction(3, 162)
    assert any("4 PCI links, read as NCCL does" in note for note in unsaid.notes)
    alone = network_of(tmp_path, nccl(links=""))
    assert shape(alone)["CPU", "CPU", 16] == 2
    assert most_of_all_cuts(alone) == Fraction(1, 8)  # one GPU: three shards into 24; one CPU: two over 16
    assert most_of_all_cuts(network_of(tmp_path, nccl(links=""), sys="8GB/s", pcie="12GB/s")) == Fraction(1, 4)
    equal = network_of(tmp_path, nccl(links="").replace("ffff:ff:01.0", "ffff:ff:00.0"))
    assert (shape(equal), most_of_all_cuts(equal)) == (shape(alone), Fraction(1, 8))  # one address of two switches
    template = network_of(tmp_path, nccl(template=True), nvlink=12, gpu="a100")
    assert shape(template) == Counter({("node", "NVSwitch", 300): 4, ("NVSwitch", "node", 300): 4})


def test_a_dump_of_two_hosts(tmp_path):
    """Equal addresses of two hosts are two GPUs, joined by the switches that both name."""
    one = nccl().replace("<cpu ", '<cpu host_hash="0xa" ')
    other = re.sub('rank="(.)"', lambda found: f'rank="{int(found[1]) + 4}"', one.replace("0xa", "0xb"))
    both = one.replace("</system>", other.partition(">")[2])
    made = network_of(tmp_path, both)
    assert shape(made) == Counter({("node", "NVSwitch", 75): 16, ("NVSwitch", "node", 75): 16})
    assert made.num_nodes == 8
    with pytest.raises(FabricError, match="has several hosts; PCIe of one host is read"):
        network_of(tmp_path, both, with_pcie=True)
    with pytest.raises(FabricError, match="has several hosts whose NVLinks do not join all GPUs"):
        network_of(tmp_path, re.sub("<nvlink.*?/>", "", both))
    twice = re.sub(r"(<gpu .*?</gpu>)", lambda found: found[1] + found[1], nccl(), count=1)
    with pytest.raises(FabricError, match=r"2 ranks share the GPU .* and its links; a file with a rank a GPU"):
        network_of(tmp_path, twice)


def test_copies_of_a_dump(tmp_path):
    """The rates of its cards are in the file; a card that two GPUs share is behind a PCI switch of 24 GB/s."""
    made = network_of(tmp_path, nccl(), copies=2)
    assert shape(made)["PCI switch", "switch", 25] == 4
    assert shape(made)["node", "PCI switch", 24] == 8
    assert made.nodes_per_group == 4
    port = '<net name="mlx5_0" speed="200000" latency="0.000000"/>'
    ports = network_of(tmp_path, nccl().replace(port, port + port.replace("mlx5_0", "mlx5_2")), copies=2)
    assert shape(ports)["node", "switch", 25] == 4  # of a card of two ports a GPU has one
    beside = network_of(tmp_path, nccl(), copies=2, with_pcie=True)
    assert shape(beside)["PCI switch", "switch", 25] == 4
    assert shape(beside)["node", "PCI switch", 24] == 8


# --- what others call their attributes --------------------------------------------------------------------------------


def test_attributes_of_other_names(tmp_path):
    """Rates without a unit, kinds by another key, patterns of names, one-way links that are written once."""
    text = (
        NODE_LINK.replace('"rate"', '"capacity"')
        .replace('"25GB/s"', "25000.5")
        .replace('"50GB/s"', "50000")
        .replace('"directed": false', '"directed": true')
    )
    text = text.replace('"latency": "700ns"', '"delay": 0.7')
    late = {"latency_key": "delay", "latency_unit": "us"}
    made = network_of(tmp_path, text, rate_key="capacity", rate_unit="MB/s", directed="no", nodes="a*", **late)
    assert {late for *_, late in columns(made)} == {700.0}
    assert made.num_nodes == 2
    assert made.network.rate_bits_per_s.max() == 50000 * 8e6
    assert made.network.rate_bits_per_s.min() == 25000.5 * 8e6
    kinds = GML.replace('label "a0"', 'label "a0" role "host"').replace('label "b1"', 'label "b1" role "router"')
    assert network_of(tmp_path, kinds, node_key="role").num_nodes == 1
    kinds = GML.replace('label "b1"', 'label "b1" kind "switch"')
    assert network_of(tmp_path, kinds).num_nodes == 3  # the others are marked by what they are not
    twice = GML.replace("directed 0", "directed 1").replace(
        "]\n]", ']\n  edge [ source 3 target 7 rate "50GB/s" latency "700ns" ]\n]'
    )
    assert columns(network_of(tmp_path, twice, directed="no")) == BOXES
    equal = GML.replace('"a1"', '"a0"')
    assert {a for a, *_ in columns(network_of(tmp_path, equal))} == {"7", "3", "5", "4"}
    marked = (
        CSV.replace("directed\n", "directed,source_kind\n").replace(",no\n", ",no,node\n").replace("a1,b1", "b1,a1")
    )
    assert network_of(tmp_path, marked).num_nodes == 3
    inside = "source,target,rate,target_kind\na,s,1GB/s,NVSwitch\ns,a,1GB/s,host\nb,s,1GB/s,nvswitch\ns,b,1GB/s,gpu\n"
    assert network_of(tmp_path, inside).vertex_kinds()[1] == ("node", "NVSwitch")


def test_node_links_of_older_programs(tmp_path):
    """Ends are places in the list, vertices without id go by their name or their place."""
    places = {one: str(place) for place, one in enumerate(("a0", "a1", "b0", "b1"))}
    by_place = re.sub('("(?:source|target)": )"(..)"', lambda found: found[1] + places[found[2]], NODE_LINK)
    boxes = columns(network_of(tmp_path, NODE_LINK))
    assert by_place != NODE_LINK
    assert columns(network_of(tmp_path, by_place)) == boxes
    assert columns(network_of(tmp_path, by_place.replace('"id"', '"name"'))) == boxes
    assert columns(network_of(tmp_path, NODE_LINK.replace('"id"', '"name"'))) == boxes
    nameless = re.sub('"id": "(..)"', lambda found: f'"id_of_box": "{found[1][0]}"', by_place)
    assert {a for a, *_ in columns(network_of(tmp_path, nameless))} == {"0", "1", "2", "3"}


def test_columns_between_spaces(tmp_path):
    """As many as wanted, at the end of a line too."""
    spaced = CSV.replace(",", "   ").replace("no\n", "no  \n")
    assert columns(network_of(tmp_path, spaced, nodes="*")) == columns(network_of(tmp_path, CSV, nodes="*"))


# --- refusals ---------------------------------------------------------------------------------------------------------

TAIL = "\na9,a9,1GB/s,0s,no\n"
REFUSED = [
    ("", {}, "is empty"),
    ("hello\nworld\n", {}, "is of no format that is known by its content; known are ASTRA-sim .yml, CSV edge lists"),
    ("10000,20000\n" * 60 + "x\n", {}, "is of no format that is known by its content"),
    (
        NODE_LINK.replace('"directed"', '"msccl_type": "topology", "directed"'),
        {},
        "is of several formats, msccl and node_link; say which: format=msccl",
    ),
    (CSV, {}, "an edge list does not say which vertices are nodes"),
    (CSV, {"nodes": "gpu*"}, r"nodes=gpu\* fits none of the vertices a0, a1, b0, b1"),
    (
        CSV.replace(",no", ",yes"),
        {"nodes": "*"},
        "no path leads from a1 to a0; as written, links lead one way: directed=no",
    ),
    (CSV + TAIL, {"nodes": "*"}, "line 8: an edge leads from 'a9' to itself"),
    (CSV + "c,d,1GB/s,0s,no\n", {"nodes": "*"}, "no path leads from a0 to c; every node must reach every other"),
    (CSV + "c,d,0GB/s,0s,no\n", {"nodes": "*"}, "line 7: rate=0 bit/s; a rate is positive and finite"),
    (CSV + "c,d,inf,0s,no\n", {"nodes": "*"}, "line 7: rate: 'inf' is not a number with a unit"),
    (CSV + "c,d,1e999GB/s,0s,no\n", {"nodes": "*"}, "line 7: rate: '1e999GB/s' is beyond every rate"),
    (CSV + "c,d,1GB/s,-3us,no\n", {"nodes": "*"}, "line 7: latency=-3e-06 s; a latency is 0 or more"),
    (CSV + "c,d,1GB/s,3,no\n", {"nodes": "*"}, "line 7: latency: '3' has no unit; write it with its unit"),
    (CSV + "c,d,1GB/s\n", {"nodes": "*"}, "line 7: 3 cells, and the header has 5"),
    (CSV + "c,d,1GB/s,0s,maybe\n", {"nodes": "*"}, "line 7: directed='maybe' is neither yes nor no"),
    (CSV + "a0,b1,1b/s,0s,no\n", {"nodes": "*"}, "rates of 1 to 4e.11 bit/s; a factor of at most 1,000,000,000 is"),
    (CSV, {"nodes": "*", "edges": 3}, "line 6: more than 3 edges; raise edges="),
    (GRAPHML.replace('id="b1"', 'id="a1"'), {}, "line 10: two vertices are called 'a1'"),
    (
        GRAPHML.replace("graphml SYSTEM", "graphml [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><graphml SYSTEM"),
        {},
        "declarations in the document type",
    ),
    (GRAPHML.replace('target="b0"', 'target="zz"'), {}, "line 13: an edge ends at 'zz', which is not a vertex"),
    (GRAPHML.replace("</graph>", ""), {}, "no XML: mismatched tag"),
    (GML.replace("]\n]", "]\n"), {}, "ends inside a list"),
    (GML.replace("id 3", "id 7"), {}, "line 4: two vertices have the id '7'"),
    (NODE_LINK[:-2], {}, "line 6: no JSON: Expecting"),
    (
        NODE_LINK.replace("50GB/s", "50"),
        {},
        "edge 2 of the list: rate: '50' has no unit; name it, such as rate_key=rate,rate_unit=Gb/s",
    ),
    (
        NODE_LINK.replace('"rate"', '"capacity"'),
        {},
        "the link a0 to a1 has no rate, and rate= gives none; its edges have capacity",
    ),
    (MSCCL, {}, "the file counts links: rate= is that of one"),
    (
        MSCCL.replace("[]", '[[[0], [2, 3], 1, "x"], [[1], [2, 3], 1, "y"]]'),
        {"rate": "1GB/s"},
        "nodes 0, 1 are limited against node 2, which has no limit against them",
    ),
    (
        MSCCL.replace(
            "[]", '[[[0, 1], [2], 1, "x"], [[0, 1], [3], 1, "y"], [[0], [2, 3], 1, "z"], [[1], [2, 3], 1, "t"]]'
        ),
        {"rate": "1GB/s"},
        "the link of nodes 0 and 3 is less than their limits",
    ),
    (
        MSCCL.replace("[]", '[[[0], [1, 4], 1, "x"]]'),
        {"rate": "1GB/s"},
        r"switches\[0\] has no sets of nodes 0 to 3",
    ),
    (
        MSCCL.replace("[]", '[[[0, 1], [2, 3], 1, "x"]]'),
        {"rate": "1GB/s"},
        r"switches\[0\] limits a set that is not a node against others",
    ),
    (MSCCL.replace("[[0, 2, 1, 0],", "[[0, 2, 1],"), {"rate": "1GB/s"}, "links is not a square matrix"),
    (
        SIMGRID.replace('<link_ctn id="b"/>', '<link_ctn id="a"/>'),
        {},
        "link 'a' joins two pairs of vertices; a graph has no such link",
    ),
    (
        SIMGRID.replace('latency="700ns" sharing', 'latency="700ns" bandwidth_file="x" sharing', 1),
        {},
        "bandwidth_file= names another file",
    ),
    (SIMGRID.replace("SPLITDUPLEX", "WIFI", 1), {}, "sharing_policy=WIFI; known are"),
    (
        SIMGRID.replace('id="a"/><link_ctn', 'id="0"/><link_ctn'),
        {},
        "a route over link '1', which no route of one link places",
    ),
    (SIMGRID.replace('link id="1"', 'link id="0"'), {}, "two links are called '0'"),
    (
        SIMGRID.replace('<link_ctn id="b"/>', '<link_ctn id="c"/>'),
        {},
        "a route over 'c', which is not a link of the zone",
    ),
    (cluster("DRAGONFLY", 4, "1"), {}, "topology=DRAGONFLY; FLAT, TORUS and FAT_TREE are read"),
    (cluster("TORUS", 4, "3,2"), {}, "topo_parameters of 6 nodes, and radical names 4"),
    (
        ASTRA.replace("50.0", "tbd"),
        {},
        "line 4: bandwidth: 'tbd' is not a number with a unit; rate= stands for what is to be done",
    ),
    (ASTRA.replace("[ 4, 2 ]", "[ 4000000, 2 ]"), {}, "8,000,000 NPUs, and at most edges=1,000,000 are read"),
    (HTSIM.replace("Radix_Down 4\nBundle", "Radix_Down 8\nBundle"), {}, "tier 1: Radix_Down 8, and 4 links lead down"),
    (HTSIM.replace("Oversubscribed 1", "Oversubscribed 4"), {}, "tier 0: Oversubscribed 4, and its links say 1"),
    (SIMAI.replace("7 2 2", "10 2 2"), {}, "line 1: 8 links cannot join 10 vertices"),
    (SIMAI.replace(" 8 H100", " 9 H100"), {}, "line 1: the head says 9 links, and 8 rows follow"),
    (SIMAI.replace("4 5 6", "4 5"), {}, "line 2: numbers of 2 switches, and the head says 3"),
    (
        smi(every_pair(4, "NV6")),
        {"nvlink_rate": "25GB/s"},
        "NV6 between 4 GPUs may be NVSwitches or direct links; say gpu=",
    ),
    (smi(every_pair(4, "NV4")), {}, "no such file says the rate of a link between GPUs; give nvlink_rate="),
    (smi(every_pair(4, "NV4")), {"gpu": "tpu"}, "gpu=tpu is not in the table"),
    (smi(every_pair(8, "NV18")), {"gpu": "a100"}, "a GPU with 18 links to others, and gpu=a100 has 12"),
    (nccl(), {"gpu": "p100"}, "a GPU with 6 links to others, and gpu=p100 has 4"),
    (smi(every_pair(3, "NV4")) * 2, {"gpu": "a100"}, "a second row GPU0; a file has the matrix of one server"),
    (CSV.replace("latency", "rate"), {"nodes": "*"}, "two columns are called 'rate'"),
    (cluster("FLAT", 3, limiter_link="1GBps"), {}, "limiter_link= limits both ways of a node together"),
    (smi(every_pair(4, "SYS")), {}, r"topo -mp hides NVLinks.*give pcie="),
    (smi(every_pair(4, "SYS")), {"pcie": "12GB/s"}, "GPUs of 4 CPUs are joined by PCIe: sys= is the rate"),
    (smi(every_pair(4, "OK")), {}, "is a matrix of nvidia-smi topo -p2p"),
    (
        smi(every_pair(4, "NV4")).replace("\nGPU3\t", "\nGPU4\t"),
        {"gpu": "a100"},
        "row 'GPU4' has no column in the header; is a line wrapped",
    ),
    (
        smi(every_pair(4, "NV4")).replace("\tNV4\tX\t0-31", "\n\tNV4\tX\t0-31"),
        {"gpu": "a100"},
        "cells, and the header has 4 columns; is a line wrapped",
    ),
    (
        smi(every_pair(2, "NV12"), [["SYS", "SYS"]]),
        {"gpu": "a100", "copies": 2},
        "none of NIC0 shares a PCI switch with a GPU; nics=NAME",
    ),
    (
        smi(every_pair(2, "NV12"), [["PIX", "SYS"]]),
        {"gpu": "a100", "copies": 2},
        "does not say the rate of NIC0; give nic_rate=",
    ),
    (nccl(template=True), {}, "is a template, which holds no links between GPUs: give nvlink="),
    (
        nccl().replace("0000:F0:00.0", "0000:00:00.0"),
        {},
        "a link of 0000:00:00.0 to itself, as some virtual machines show",
    ),
    (
        nccl().replace("200000", "200000000"),
        {"copies": 2},
        "mlx5_0 of 200,000 Gb/s is faster than any NIC; say it: nic_rate=",
    ),
    (
        nccl().replace("AuthenticAMD", "Mine"),
        {"with_pcie": True},
        "no rate between CPUs of vendor 'Mine' is known; give sys=",
    ),
    (CSV, {"nodes": "*", "copies": 2}, r"copies=2; CSV edge lists .* have no network cards"),
    ('<graphs version="1"><graph id="0"/></graphs>', {}, "is a graph of NCCL .* take NCCL_TOPO_DUMP_FILE"),
    ("name: c\ntopology:\n  kinds:\n    linux:\n      image: x\n  nodes:\n    a:\n", {}, "is a containerlab file"),
    ("===== ROCm System Management Interface =====\n", {}, "is a table of rocm-smi"),
    (
        SIMGRID.replace("</platform>", '<trace_connect kind="BANDWIDTH" trace="t" element="0"/></platform>'),
        {},
        "a trace changes a link with time; constant rates are read",
    ),
    (SIMGRID.replace('routing="', 'routing="Vivaldi" was="'), {}, "times by coordinates .Vivaldi., without links"),
    ("ACCESS TABLE:\n       05:00.0\n05:00.0 ENABLED\n", {}, "is a table of amd-smi, without rates; take RCCL's"),
    (
        '<topology version="2.0"><object type="Machine"/></topology>',
        {},
        "is a topology of hwloc .* take nvidia-smi topo",
    ),
    ("Machine (31GB total)\n  Package L#0\n", {}, "is a topology of hwloc"),
    ("<topology><node/></topology>", {}, "is a topology of FNSS"),
    ('// two\nstrict digraph "x" {\n  a -> b;\n}\n', {}, "is a graph of Graphviz .* write it as GraphML"),
    ('<gexf version="1.2"><graph/></gexf>', {}, "is a graph in GEXF"),
    ("*Vertices 2\n1 a\n2 b\n", {}, "is a graph of Pajek"),
    ("?SNDlib native format; type: network\nNODES (\n)\n", {}, "is a network of SNDlib"),
    ("NODES 1\nlabel x y\na 0 0\n", {}, "is a topology of Repetita"),
    ("Topology: ( 1 Nodes, 0 Edges )\n", {}, "is a topology of BRITE"),
    ('vendid=0x1\nSwitch\t2 "S-00ff"\t\t# "s"\n', {}, "is a list of ibnetdiscover; write its links as a CSV edge list"),
    ("router 0 node 0 router 1 4\n", {}, "is an anynet file of BookSim"),
    ("SwitchName=s Nodes=n[0-1]\n", {}, "is a topology of SLURM"),
    ('{"topologies-per-dim": ["Ring"]}', {}, "is a network of ASTRA-sim 1, in JSON; write topology, npus_count"),
    ('{"logical-dims": ["4"]}', {}, "is a list of the dimensions of a job .* take the physical topology"),
    ('{"nodes": [], "adjacency": []}', {}, "is a graph of networkx in adjacency JSON"),
    (
        "# two links\n0 1\n1 2\n",
        {},
        "is a list or a matrix without a header; write source,target,rate as its first line",
    ),
    ("a0,b0,100Gb/s\nb0,a0,100Gb/s", {}, "is a list or a matrix without a header"),
    ('{"nodes": [{"id": 1}, {}], "links": []}', {}, "node 1 of the list has no id"),
]


@pytest.mark.parametrize(("text", "given", "why"), REFUSED, ids=[why[:30] for *_, why in REFUSED])
def test_what_is_no_network_is_refused_in_one_line(text, given, why, tmp_path):
    """With the file, the place, the rule, and what to try."""
    path = written(tmp_path, text)
    with pytest.raises(FabricError, match=why) as refused:
        fabric("network", file=str(path), **given)
    assert str(refused.value).startswith(f"network: {path}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"file": "nowhere.csv"}, "nowhere.csv: there is no such file"),
        ({"file": "."}, "is a directory"),
        ({"file": "a,b.csv"}, "a comma separates parameters"),
        ({}, "file is missing"),
        ({"file": "x", "copies": 0}, "copies=0; at least 1"),
        ({"file": "x", "rate": 0.0}, "rate=0 bit/s; more than 0"),
        ({"file": "x", "latency": -1.0}, "latency=-1; at least 0"),
    ],
)
def test_parameters_are_checked_before_the_file(given, why):
    """In the words of every fabric."""
    with pytest.raises(OpticclError, match=why):
        fabric("network", **given)


def answer(path, given):
    """Number of nodes, or the message that there are none."""
    try:
        return str(fabric("network", file=str(path), **given).num_nodes)
    except OpticclError as error:
        return str(error)


def test_texts_that_are_none(tmp_path):
    """Bytes of no encoding, and every file cut at any place, give a fabric or one line."""
    path = tmp_path / "net"
    path.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(FabricError, match="is not text in UTF-8"):
        fabric("network", file=str(path))
    texts = [(text, given) for text, given in TWO_BOXES.values()]
    texts += [
        (ASTRA, {}),
        (HTSIM, {}),
        (SIMAI, {}),
        (DOGBONE, {}),
        (smi(every_pair(3, "NV12")), {"gpu": "a100"}),
        (nccl(), {}),
    ]
    for text, given in texts:
        for end in range(0, len(text), 7):
            path.write_text(text[:end])
            assert "\n" not in answer(path, given)
