"""Small files of each format, written for the tests, and what is done with all of them."""

import json
from fractions import Fraction

import numpy as np

from opticcl.fabrics import fabric

CSV = """source,target,rate,latency,directed
# two boxes of two
a0,a1,50GB/s,700ns,no
b0,b1,50GB/s,700ns,no
a0,b0,25GB/s,700ns,no
a1,b1,200Gb/s,0.7us,no
"""
GRAPHML = """<?xml version="1.0"?>
<!DOCTYPE graphml SYSTEM "http://graphml.graphdrawing.org/dtds/graphml.dtd">
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <key id="k" for="node" attr.name="kind"><default>node</default></key>
  <key id="r" for="edge" attr.name="rate"><default>25GB/s</default></key>
  <key id="l" for="edge" attr.name="latency"><default>700ns</default></key>
  <key id="d" for="node" yfiles.type="nodegraphics"/>
  <graph edgedefault="undirected">
    <node id="a0"><data key="d"><y:ShapeNode><y:NodeLabel>one</y:NodeLabel></y:ShapeNode></data></node>
    <node id="a1"/><node id="b0"/><node id="b1"/>
    <edge source="a0" target="a1"><data key="r">50GB/s</data></edge>
    <edge source="b0" target="b1"><data key="r">50GB/s</data></edge>
    <edge source="a0" target="b0"/>
    <edge source="a1" target="b1" directed="true"/>
    <edge source="b1" target="a1" directed="true"/>
  </graph>
</graphml>
"""
GML = """Creator "by hand"
graph [
  directed 0
  node [ id 7 label "a0" ] node [ id 3 label "a1" ]
  node [ id 5 label "b0" ] node [ id 4 label "b1" ]
  edge [ source 7 target 3 rate "50GB/s" latency "700ns" ]
  edge [ source 5 target 4 rate "50GB/s" latency "700ns" ]
  edge [ source 7 target 5 rate "25GB/s" latency "700ns" ]
  edge [ source 3 target 4 rate "25GB/s" latency "700ns" ]
]
"""
NODE_LINK = """{"directed": false, "multigraph": true, "nodes": [{"id": "a0"}, {"id": "a1"}, {"id": "b0"}, {"id": "b1"}],
 "edges": [{"source": "a0", "target": "a1", "rate": "25GB/s", "latency": "700ns"},
  {"source": "a0", "target": "a1", "rate": "25GB/s", "latency": "700ns", "key": 1},
  {"source": "b0", "target": "b1", "rate": "50GB/s", "latency": "700ns"},
  {"source": "a0", "target": "b0", "rate": "25GB/s", "latency": "700ns"},
  {"source": "a1", "target": "b1", "rate": "25GB/s", "latency": "700ns"}]}"""
MSCCL = """{"msccl_type": "topology", "name": "two boxes", "switches": [],
 "links": [[0, 2, 1, 0], [2, 0, 0, 1], [1, 0, 0, 2], [0, 1, 2, 0]]}"""
SIMGRID = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Floyd">
  <host id="a0" speed="1Gf"/><host id="a1" speed="1Gf"/><host id="b0" speed="1Gf"/><host id="b1" speed="1Gf"/>
  <link id="a" bandwidth="50GBps" latency="700ns" sharing_policy="SPLITDUPLEX"/>
  <link id="b" bandwidth="50GBps" latency="700ns" sharing_policy="SPLITDUPLEX"/>
  <link id="0" bandwidth="25GBps" latency="700ns" sharing_policy="SPLITDUPLEX"/>
  <link id="1" bandwidth="200Gbps" latency="0.7us" sharing_policy="SPLITDUPLEX"/>
  <route src="a0" dst="a1"><link_ctn id="a"/></route>
  <route src="b0" dst="b1"><link_ctn id="b"/></route>
  <route src="a0" dst="b0"><link_ctn id="0"/></route>
  <route src="a1" dst="b1"><link_ctn id="1"/></route>
  <route src="a0" dst="b1"><link_ctn id="a"/><link_ctn id="1"/></route>
</zone></platform>
"""
TWO_BOXES = {
    "csv": (CSV, {"nodes": "a*+b*"}),
    "graphml": (GRAPHML, {}),
    "gml": (GML, {}),
    "node_link": (NODE_LINK, {}),
    "msccl": (MSCCL, {"rate": "25GB/s", "latency": "700ns"}),
    "simgrid": (SIMGRID, {}),
}
"""Text of each format and what its caller says: two boxes of two nodes, 50 GB/s within and 25 GB/s between them."""


def a100_boxes():
    """Two boxes of eight A100 in each format: (text, what its caller says).

    A GPU has 12 NVLinks of 25 GB/s to the NVSwitches of its box and a card of 200 Gb/s, every second one on the same switch.
    Source: NVIDIA, DGX A100 datasheet; the two switches as in the topologies of ForestColl.
    """
    gpus = [(f"b{box}g{gpu}", f"b{box}nvs", f"ib{gpu % 2}") for box in range(2) for gpu in range(8)]
    links = [(gpu, nvs, "300GB/s", "700ns") for gpu, nvs, _ in gpus]
    links += [(gpu, ib, "200Gb/s", "2us") for gpu, _, ib in gpus]
    kinds = dict.fromkeys((gpu for gpu, _, _ in gpus), "node") | dict.fromkeys(
        ("b0nvs", "b1nvs", "ib0", "ib1"), "switch"
    )
    number = {one: k for k, one in enumerate(kinds)}
    counts = [[0 if a == b else 12 if a // 8 == b // 8 else 1 for a in range(16)] for b in range(16)]
    limits = []
    for gpu in range(16):
        box, other = ([v for v in range(16) if v != gpu and (v // 8 == gpu // 8) is same] for same in (True, False))
        for some, most in ((box, 12), (other, 1)):
            limits += [[[gpu], some, most, f"{gpu} out"], [some, [gpu], most, f"{gpu} in"]]
    csv = ["source,target,rate,latency,directed,source_kind,target_kind"]
    csv += [f"{a},{b},{rate},{late},no,{kinds[a]},{kinds[b]}" for a, b, rate, late in links]
    keys = (("k", "node", "kind"), ("r", "edge", "rate"), ("l", "edge", "latency"))
    graphml = [f'<key id="{key}" for="{of}" attr.name="{name}"/>' for key, of, name in keys]
    graphml += ['<graph edgedefault="undirected">']
    graphml += [f'<node id="{one}"><data key="k">{kind}</data></node>' for one, kind in kinds.items()]
    for a, b, rate, late in links:
        body = f'<data key="r">{rate}</data><data key="l">{late}</data>'
        graphml.append(f'<edge source="{a}" target="{b}">{body}</edge>')
    gml = [f'node [ id {number[one]} label "{one}" kind "{kind}" ]' for one, kind in kinds.items()]
    gml += [f'edge [ source {number[a]} target {number[b]} rate "{r}" latency "{late}" ]' for a, b, r, late in links]
    listed = {
        "nodes": [{"id": one, "kind": kind} for one, kind in kinds.items()],
        "links": [{"source": a, "target": b, "rate": rate, "latency": late} for a, b, rate, late in links],
    }
    zone = [
        f'<host id="{one}" speed="1Gf"/>' if kind == "node" else f'<router id="{one}"/>' for one, kind in kinds.items()
    ]
    for a, b, rate, late in links:
        bandwidth = rate.replace("/", "p")
        zone.append(
            f'<link id="{a}-{b}" bandwidth="{bandwidth}" latency="{late}" sharing_policy="SPLITDUPLEX"/>'
            f'<route src="{a}" dst="{b}"><link_ctn id="{a}-{b}"/></route>'
        )
    return {
        "csv": ("\n".join(csv), {}),
        "graphml": (f"<graphml>{''.join(graphml)}</graph></graphml>", {}),
        "gml": (f"graph [ directed 0 {' '.join(gml)} ]", {}),
        "node_link": (json.dumps(listed | {"directed": False, "multigraph": False}), {}),
        "msccl": (
            json.dumps({"msccl_type": "topology", "name": "", "switches": limits, "links": counts}),
            {"rate": "25GB/s"},
        ),
        "simgrid": (f'<platform version="4.1"><zone id="z" routing="Floyd">{"".join(zone)}</zone></platform>', {}),
    }


ASTRA = """# rings of two
topology: [ Switch, Ring ]
npus_count: [ 4, 2 ]
bandwidth: [400, 50.0 ]  # GB/s
latency: [ 936.25, 1e3 ] # ns
"""
HTSIM = """# two tiers
Nodes 8
Tiers 2
Podsize 8
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 1000
Switch_Latency_ns 250
Oversubscribed 1
Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Bundle 2
Downlink_Latency_ns 1000
"""
HTSIM_OF_THREE = """Nodes 8
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 2
Downlink_speed_Gbps 50
Radix_Down 2
Downlink_Latency_ns 1000
"""
SIMAI = """7 2 2 1 8 H100
4 5 6
0 4 2880Gbps 0.000025ms 0
1 4 2880Gbps 0.000025ms 0
2 5 2880Gbps 0.000025ms 0
3 5 2880Gbps 0.000025ms 0
0 6 400Gbps 0.0005ms 0
1 6 400Gbps 0.0005ms 0
2 6 400Gbps 0.0005ms 0
6 3 400Gbps 0.0005ms 0
"""
RING = "3 0 3\n\n0 1 25Gbps 0.005ms 0\n1 2 25Gbps 0.005ms 0\n2 0 25Gbps 0.005ms 0\n"
DOGBONE = """<platform version="4.1"><zone id="z" routing="Full">
  <host id="S1" speed="1Gf"/><host id="S2" speed="1Gf"/><host id="C1" speed="1Gf"/><host id="C2" speed="1Gf"/>
  <router id="R1"/><router id="R2"/>
  <link id="1" bandwidth="100MBps" latency="10ms"/><link id="2" bandwidth="100MBps" latency="10ms"/>
  <link id="3" bandwidth="100MBps" latency="10ms"/><link id="4" bandwidth="100MBps" latency="10ms"/>
  <link id="5" bandwidth="100MBps" latency="10ms"/><link id="lo" bandwidth="1GBps" latency="0" sharing_policy="FATPIPE"/>
  <route src="S1" dst="R1"><link_ctn id="1"/></route>
  <route src="R1" dst="R2"><link_ctn id="2"/></route>
  <route src="R2" dst="C1"><link_ctn id="3"/></route>
  <route src="S2" dst="R1"><link_ctn id="4"/></route>
  <route src="R2" dst="C2"><link_ctn id="5"/></route>
  <route src="S1" dst="C2"><link_ctn id="1"/><link_ctn id="2"/><link_ctn id="5"/></route>
  <route src="S1" dst="S1"><link_ctn id="lo"/></route>
</zone></platform>
"""


def cluster(topology, nodes, parameters="", **more):
    """A SimGrid platform of one cluster."""
    given = {"bw": "125MBps", "lat": "50us", **more} | ({"topo_parameters": parameters} if parameters else {})
    attributes = " ".join(f'{name}="{value}"' for name, value in given.items())
    return (
        f'<platform version="4.1"><zone id="w" routing="Full"><cluster id="c" prefix="n" radical="0-{nodes - 1}" suffix="" '
        f'speed="1Gf" topology="{topology}" {attributes}/></zone></platform>'
    )


def smi(words, nics=(), tabs=True):
    """A matrix of nvidia-smi: `words` of the upper triangle of GPUs, row by row, and for each NIC its words to the GPUs."""
    count = len(words) + 1
    mark = "\t" if tabs else "    "
    cells = [["X"] * (count + len(nics)) for _ in range(count + len(nics))]
    for row, of in enumerate(words):
        for column, word in enumerate(of, row + 1):
            cells[row][column] = cells[column][row] = word
    for place, of in enumerate(nics, count):
        for gpu, word in enumerate(of):
            cells[place][gpu] = cells[gpu][place] = word
        for other in range(count, count + len(nics)):
            if other != place:
                cells[place][other] = "SYS"
    names = [f"GPU{k}" for k in range(count)] + [f"NIC{k}" for k in range(len(nics))]
    rows = [mark + mark.join([*names, "CPU Affinity", "NUMA Affinity"])]
    rows += [
        mark.join([name, *of, *(["0-31,64-95", "0"] if "GPU" in name else [])])
        for name, of in zip(names, cells, strict=True)
    ]
    return "\n".join(["$ nvidia-smi topo -m", *rows, "", "Legend:", "", "  X    = Self", "  NV#  = bonded NVLinks", ""])


def every_pair(count, word):
    """The upper triangle of a matrix with one word."""
    return [[word] * (count - 1 - row) for row in range(count - 1)]


def nccl(*, links="nvlink", template=False, nics=True):
    """Two CPUs, each with a PCI switch, two GPUs and a NIC; two NVSwitches with three links of each GPU to each of them."""
    found, gpu = [], 0
    for cpu in range(2):
        inside = []
        for _ in range(2):
            ends = "".join(f'<{links} target="0000:F{s}:00.0" count="3" tclass="0x068000"/>' for s in range(2))
            body = (
                "" if template else f'<gpu dev="{gpu}" sm="80" rank="{3 - gpu}" gdr="1">{ends if links else ""}</gpu>'
            )
            inside.append(
                f'<pci busid="0000:0{gpu}:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">{body}</pci>'
            )
            gpu += 1
        net = "" if template else f'<nic><net name="mlx5_{cpu}" speed="200000" latency="0.000000"/></nic>'
        nic = (
            f'<pci busid="0000:1{cpu}:00.0" class="0x020700" link_speed="16 GT/s" link_width="16">{net}</pci>'
            if nics
            else ""
        )
        found.append(
            f'<cpu numaid="{cpu}" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">'
            f'<pci busid="ffff:ff:0{cpu}.0" class="0x060400" link_speed="16 GT/s" link_width="16">'
            f"{''.join(inside)}{nic}</pci></cpu>"
        )
    return f'<system version="1">{"".join(found)}</system>'


def written(folder, text, name="net"):
    """Path of a file with that text."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def network_of(folder, text, **given):
    """The fabric that a text describes."""
    return fabric("network", file=str(written(folder, text)), **given)


def columns(made):
    """(sender, receiver, rate in GB/s, latency in ns) of every link by names, sorted."""
    names, net = made.names, made.network
    rows = zip(net.tail.tolist(), net.head.tolist(), net.rate_bits_per_s.tolist(), net.latency_s.tolist(), strict=True)
    return sorted((names[a], names[b], rate / 8e9, round(late * 1e9, 6)) for a, b, rate, late in rows)


def most_of_all_cuts(made):
    """Largest ratio of nodes in a set to the rate that leaves it, over all sets that leave a node out, as a fraction [s/GB]."""
    net = made.network
    sets = np.arange(1 << net.num_vertices)
    has = [sets >> vertex & 1 for vertex in range(net.num_vertices)]
    nodes, leaves = sum(has[: net.num_nodes]), np.zeros(len(sets), np.int64)
    for a, b, rate in zip(net.tail.tolist(), net.head.tolist(), net.rate_bits_per_s.tolist(), strict=True):
        leaves += round(rate) * (has[a] & ~has[b])
    proper = (nodes > 0) & (nodes < net.num_nodes)
    pairs = np.unique(np.stack([nodes[proper], leaves[proper]]), axis=1)
    return max(8 * 10**9 * Fraction(int(count), int(rate)) for count, rate in pairs.T)
